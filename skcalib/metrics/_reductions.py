"""Metrics of probabilities: binary measures, applied to more than two classes."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import UndefinedMetricWarning

from .._data import ClassData
from .._inputs.scikit_learn import Parallel, delayed
from .._inputs.warnings import warn

# The share of a class, and its binary problem: None if the class is never predicted.
ClassProblem = tuple[float, ClassData | None]


def map_classes(
    function: Callable[[ClassData], Any], problems: Iterable[ClassProblem], n_jobs: int | None
) -> list[tuple[float, Any]]:
    """Return the share and the value of each class; None for one that is never predicted.

    Jobs are threads, which share the data: sorting and long sums release the interpreter's lock.
    """

    def pair(share: float, problem: ClassData | None) -> tuple[float, Any]:
        return share, None if problem is None else function(problem)

    if effective_n_jobs(n_jobs) == 1:  # joblib takes as long as the error of a few samples
        return [pair(*share_and_problem) for share_and_problem in problems]
    return Parallel(n_jobs=n_jobs, require="sharedmem")(
        delayed(pair)(*share_and_problem) for share_and_problem in problems
    )


def map_reduction(
    function: Callable[[ClassData], Any], data: ClassData, multi_class: str, n_jobs: int | None = 1
) -> Any:
    """Return the value of a function of two classes; for more, a list with its value for each.

    The value of a class that is never predicted is None. With "confidence" there is only one
    problem, and its value is returned without a list.
    """
    if data.is_binary:
        return function(data)
    if multi_class == "confidence":
        return function(data.confidence())
    problems = data.iter_top_label() if multi_class == "top-label" else data.iter_one_vs_rest()
    return [value for _, value in map_classes(function, problems, n_jobs)]


class SampleRequirement(NamedTuple):
    """The samples of a class that a measure needs, and the remedy if they are missing."""

    minimum: str
    remedy: str


_DEFAULT_REQUIREMENT = SampleRequirement("enough samples", "collect more samples")


def average_over_reductions(
    measure: Callable[..., Any],
    data: ClassData,
    multi_class: str = "confidence",
    average: str | None = "auto",
    needs: SampleRequirement = _DEFAULT_REQUIREMENT,
    n_jobs: int | None = 1,
    **options: Any,
) -> Any:
    """Return the value of a binary measure; `multi_class` says how more classes become two.

    The measure gets `options`. With "canonical" nothing is reduced: the measure sees all classes at
    once. A measure may return several values (C,), which are averaged one by one. If it returns NaN
    for a class, whose samples do not suffice, the average leaves out that class. More than one job
    is for measures that draw no random numbers.
    """
    if options:
        measure = partial(measure, **options)
    if data.is_binary or multi_class == "canonical":
        return measure(data)
    data = data.to_numpy()  # the predicted classes are searched, others sorted
    if multi_class == "confidence":
        return measure(data.confidence())
    problems = data.iter_top_label() if multi_class == "top-label" else data.iter_one_vs_rest()
    results = map_classes(measure, problems, n_jobs)
    share = np.array([share for share, _ in results])  # (K,)
    exists = np.array([value is not None for _, value in results])
    values = (np.nan if value is None else value for _, value in results)
    value = np.stack(np.broadcast_arrays(*values))  # (K,) or (K, C)
    is_measured = ~np.isnan(value).reshape(len(value), -1).any(axis=1)
    check_any_measured(is_measured, exists, multi_class, needs)
    if average is None:
        return value
    if not is_measured[exists].all():
        left_out = data.classes[exists & ~is_measured].tolist()
        warn(
            f"The average leaves out the class(es) {', '.join(map(repr, left_out))}: with "
            f"multi_class={multi_class!r} a class needs {needs.minimum}. To include every class, "
            f"{needs.remedy}.",
            UndefinedMetricWarning,
        )
    if average == "auto":
        average = "weighted" if multi_class == "top-label" else "macro"
    weights = share[is_measured] if average == "weighted" else None
    mean = np.average(value[is_measured], axis=0, weights=weights)
    return float(mean) if mean.ndim == 0 else mean


def check_any_measured(
    is_measured: np.ndarray, exists: np.ndarray, multi_class: str, needs: SampleRequirement
) -> None:
    """Refuse data in which no class has enough samples."""
    if not is_measured.any():
        raise ValueError(
            f"multi_class={multi_class!r} needs a class with {needs.minimum}; found none among the "
            f"{exists.sum()} classes that have samples. Pass multi_class='confidence', or "
            f"{needs.remedy}."
        )


def reduce_classes(measure: Callable[..., Any]) -> Callable[..., Any]:
    """Return the measure of any number of classes that reduces them to those of a binary one."""
    return partial(average_over_reductions, measure)
