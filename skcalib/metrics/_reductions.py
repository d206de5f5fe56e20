"""How a binary measure is applied to more than two classes."""

from typing import NamedTuple

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from .._warnings import warn


def over_reductions(function, predictions, multi_class):
    """The value of a function of two classes; for more classes, a list with its value for each.

    The value of a class that is never predicted is None. With "confidence" there is only one
    problem, and its value is returned without a list.
    """
    if predictions.is_binary:
        return function(predictions)
    if multi_class == "confidence":
        return function(predictions.confidence())
    problems = predictions.top_label() if multi_class == "top-label" else predictions.classwise()
    return [None if problem is None else function(problem) for _, problem in problems]


class Needs(NamedTuple):
    """What a measure needs of the samples of a class, and what helps if that is missing."""

    least: str
    remedy: str


_ENOUGH = Needs("enough samples", "collect more samples")


def average_over_reductions(measure, predictions, multi_class, average, needs=_ENOUGH):
    """Value of a binary measure; more than two classes are reduced to two as `multi_class` says.

    With "canonical" nothing is reduced: the measure sees all classes at once. A measure may return
    several values (C,), which are averaged one by one. If it returns NaN for a class, whose samples
    do not suffice, the average leaves out that class.
    """
    if predictions.is_binary or multi_class == "canonical":
        return measure(predictions)
    predictions = predictions.on_host()  # the predicted classes are searched, others sorted
    if multi_class == "confidence":
        return measure(predictions.confidence())
    problems = predictions.top_label() if multi_class == "top-label" else predictions.classwise()
    found = [
        (share, problem is not None, np.nan if problem is None else measure(problem))
        for share, problem in problems
    ]
    share, exists = (np.array([part[k] for part in found]) for k in (0, 1))  # (K,)
    value = np.stack(np.broadcast_arrays(*(part[2] for part in found)))  # (K,) or (K, C)
    is_measured = ~np.isnan(value).reshape(len(value), -1).any(axis=1)
    check_any_measured(is_measured, exists, multi_class, needs)
    if average is None:
        return value
    if not is_measured[exists].all():
        left_out = predictions.classes[exists & ~is_measured].tolist()
        warn(
            f"The average leaves out the class(es) {', '.join(map(repr, left_out))}: with "
            f"multi_class={multi_class!r} a class needs {needs.least}. To include every class, "
            f"{needs.remedy}.",
            UndefinedMetricWarning,
        )
    if average == "auto":
        average = "weighted" if multi_class == "top-label" else "macro"
    weights = share[is_measured] if average == "weighted" else None
    mean = np.average(value[is_measured], axis=0, weights=weights)
    return float(mean) if mean.ndim == 0 else mean


def check_any_measured(is_measured, exists, multi_class, needs):
    """At least one class must have samples that suffice."""
    if not is_measured.any():
        raise ValueError(
            f"multi_class={multi_class!r} needs a class with {needs.least}; found none among the "
            f"{exists.sum()} classes that have samples. Pass multi_class='confidence', or "
            f"{needs.remedy}."
        )
