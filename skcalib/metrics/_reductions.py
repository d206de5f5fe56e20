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
from ..lenses import Lens, _get_lens

# The name and the weight of a problem, and its data: None if it has no samples.
NamedProblem = tuple[Any, float, ClassData | None]


def map_problems(
    function: Callable[[ClassData], Any], problems: Iterable[NamedProblem], n_jobs: int | None
) -> list[tuple[Any, float, Any]]:
    """Return the name, weight and value of each problem; None for one without samples.

    Jobs are threads, which share the data: sorting and long sums release the interpreter's lock.
    """

    def evaluate(name: Any, weight: float, problem: ClassData | None) -> tuple[Any, float, Any]:
        return name, weight, None if problem is None else function(problem)

    if effective_n_jobs(n_jobs) == 1:  # joblib takes as long as the error of a few samples
        return [evaluate(*problem) for problem in problems]
    return Parallel(n_jobs=n_jobs, require="sharedmem")(
        delayed(evaluate)(*problem) for problem in problems
    )


def map_reduction(
    function: Callable[[ClassData], Any],
    data: ClassData,
    multi_class: str | Lens,
    n_jobs: int | None = 1,
) -> Any:
    """Return the value of a function of two classes; for more, a list with its value for each.

    The value of a problem without samples is None. With "confidence" there is only one problem,
    and its value is returned without a list.
    """
    lens = _get_lens(multi_class)
    if lens._is_identity(data):
        return function(data)
    values = [value for *_, value in map_problems(function, data.iter_problems(lens), n_jobs)]
    return values[0] if lens.is_single else values


class SampleRequirement(NamedTuple):
    """The samples of a class that a measure needs, and the remedy if they are missing."""

    minimum: str
    remedy: str


_DEFAULT_REQUIREMENT = SampleRequirement("enough samples", "collect more samples")


def average_over_reductions(
    measure: Callable[..., Any],
    data: ClassData,
    multi_class: str | Lens = "confidence",
    average: str | None = "auto",
    needs: SampleRequirement = _DEFAULT_REQUIREMENT,
    n_jobs: int | None = 1,
    **options: Any,
) -> Any:
    """Return the value of a binary measure; `multi_class` says how more classes become two.

    It is a lens of :mod:`skcalib.lenses`, or its name.

    The measure gets `options`. With "canonical" nothing is reduced: the measure sees all classes at
    once. A measure may return several values (C,), which are averaged one by one. If it returns NaN
    for a class, whose samples do not suffice, the average leaves out that class. More than one job
    is for measures that draw no random numbers.
    """
    if options:
        measure = partial(measure, **options)
    if isinstance(multi_class, str) and multi_class == "canonical":
        return measure(data)
    lens = _get_lens(multi_class)
    if lens._is_identity(data):
        return measure(data)
    data = data.to_numpy()  # the predicted classes are searched, others sorted
    if lens.is_single:
        ((_, _, problem),) = data.iter_problems(lens)
        return measure(problem)
    results = map_problems(measure, data.iter_problems(lens), n_jobs)
    share = np.array([weight for _, weight, _ in results])  # (P,)
    exists = np.array([value is not None for *_, value in results])
    values = (np.nan if value is None else value for *_, value in results)
    value = np.stack(np.broadcast_arrays(*values))  # (P,) or (P, C)
    is_measured = ~np.isnan(value).reshape(len(value), -1).any(axis=1)
    check_any_measured(is_measured, exists, multi_class, needs)
    if average is None:
        return value
    if not is_measured[exists].all():
        left_out = [results[k][0] for k in np.flatnonzero(exists & ~is_measured)]
        warn(
            f"The average leaves out the class(es) {', '.join(map(repr, left_out))}: with "
            f"multi_class={multi_class!r} a class needs {needs.minimum}. To include every class, "
            f"{needs.remedy}.",
            UndefinedMetricWarning,
        )
    if average == "auto":
        average = lens.average
    weights = share[is_measured] if average == "weighted" else None
    if weights is not None and not weights.any():
        raise ValueError(
            f"average={average!r} needs a problem of multi_class={multi_class!r} of positive "
            "weight, such as a label that occurs; found none. Pass average='macro'."
        )
    mean = np.average(value[is_measured], axis=0, weights=weights)
    return float(mean) if mean.ndim == 0 else mean


def check_any_measured(
    is_measured: np.ndarray, exists: np.ndarray, multi_class: str | Lens, needs: SampleRequirement
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
