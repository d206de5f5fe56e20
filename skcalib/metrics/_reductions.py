"""How a binary measure is taken of more than two classes."""

import numpy as np


def over_reductions(function, predictions, multi_class):
    """A function of two classes; for more, a list of its values for single classes.

    It is None for a class that is never predicted. With "confidence" there is one problem, so its
    value stands alone.
    """
    if predictions.is_binary:
        return function(predictions)
    if multi_class == "confidence":
        return function(predictions.confidence())
    problems = predictions.top_label() if multi_class == "top-label" else predictions.classwise()
    return [None if problem is None else function(problem) for _, problem in problems]


def average_over_reductions(measure, predictions, multi_class, average):
    """Value of a binary measure, for more than two classes through the reduction `multi_class`.

    A measure that sees all classes at once takes them as they are: "canonical". The measure may
    also return several values (C,) at once, which are averaged one by one.
    """
    if predictions.is_binary or multi_class == "canonical":
        return measure(predictions)
    if multi_class == "confidence":
        return measure(predictions.confidence())
    problems = predictions.top_label() if multi_class == "top-label" else predictions.classwise()
    share = np.array([share for share, _ in problems])  # (K,)
    values = (np.nan if problem is None else measure(problem) for _, problem in problems)
    value = np.stack(np.broadcast_arrays(*values))  # (K,) or (K, C)
    if average is None:
        return value
    if average == "auto":
        average = "weighted" if multi_class == "top-label" else "macro"
    exists = ~np.isnan(value).reshape(len(value), -1).any(axis=1)
    if not exists.any():
        return np.nan
    weights = share[exists] if average == "weighted" else None
    mean = np.average(value[exists], axis=0, weights=weights)
    return float(mean) if mean.ndim == 0 else mean
