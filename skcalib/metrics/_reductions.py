"""How a binary measure is taken of more than two classes."""

import numpy as np


def average_over_reductions(measure, predictions, multi_class, average):
    """Value of a binary measure, for more than two classes through the reduction `multi_class`."""
    if predictions.is_binary:
        return measure(predictions)
    if multi_class == "confidence":
        return measure(predictions.confidence())
    problems = predictions.top_label() if multi_class == "top-label" else predictions.classwise()
    share = np.array([share for share, _ in problems])  # (K,)
    value = np.array([np.nan if problem is None else measure(problem) for _, problem in problems])
    if average is None:
        return value
    if average == "auto":
        average = "weighted" if multi_class == "top-label" else "macro"
    exists = ~np.isnan(value)
    if not exists.any():
        return np.nan
    return float(
        np.average(value[exists], weights=share[exists] if average == "weighted" else None)
    )
