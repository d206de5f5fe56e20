"""Metrics of probabilities: binary measures, applied to more than two classes."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, groupby
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import UndefinedMetricWarning

from .._data import ClassData
from .._inputs.scikit_learn import Average, Parallel, delay
from .._inputs.warnings import warn
from ..lenses import Lens, _get_lens

# The name and the weight of a problem, and its data: None if it has no samples.
NamedProblem = tuple[Any, float, ClassData | None]

# The values of many binary problems, which may be solved together.
MeasureEach = Callable[[Iterable[ClassData]], Iterable[Any]]


def map_problems(
    measure_each: MeasureEach, problems: Iterable[NamedProblem], n_jobs: int | None = 1
) -> list[tuple[Any, float, Any]]:
    """Return the name, weight and value of each problem; None for one without samples.

    Jobs are threads, which share the data: sorting and long sums release the interpreter's lock.
    """
    names: list[tuple[Any, float, bool]] = []

    def iter_data() -> Iterator[ClassData]:
        for name, weight, problem in problems:
            names.append((name, weight, problem is not None))
            if problem is not None:
                yield problem

    if effective_n_jobs(n_jobs) == 1:  # joblib takes as long as the error of a few samples
        values = iter(list(measure_each(iter_data())))
    else:
        measure = delay(lambda problem: list(measure_each([problem])))
        tasks = map(measure, iter_data())
        values = chain.from_iterable(Parallel(n_jobs=n_jobs, require="sharedmem")(tasks))
    return [(name, weight, next(values) if exists else None) for name, weight, exists in names]


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
    measured = map_problems(partial(map, function), data.iter_problems(lens), n_jobs)
    values = [value for *_, value in measured]
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
    average: Average = "auto",
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
    measure_each = partial(map, partial(measure, **options) if options else measure)
    return average_each(measure_each, [data], multi_class, average, needs, n_jobs)[0]


def average_each(
    measure_each: MeasureEach,
    data: Iterable[ClassData],
    multi_class: str | Lens = "confidence",
    average: Average = "auto",
    needs: SampleRequirement = _DEFAULT_REQUIREMENT,
    n_jobs: int | None = 1,
) -> list[Any]:
    """Return the value of `average_over_reductions` for each of the data.

    All their binary problems are measured at once, which pays off for small ones.
    """
    lens = _get_lens(multi_class)
    is_single: list[bool] = []

    def iter_problems() -> Iterator[NamedProblem]:
        for number, predictions in enumerate(data):
            if lens is None or lens._is_identity(predictions):
                is_single.append(True)
                yield (number, None), 1.0, predictions
                continue
            is_single.append(lens.is_single)
            # the predicted classes are searched, others sorted
            for name, weight, problem in predictions.to_numpy().iter_problems(lens):
                yield (number, name), weight, problem

    if lens is not None and average == "auto":
        average = lens.average
    averages = []
    results = map_problems(measure_each, iter_problems(), n_jobs)
    for number, group in groupby(results, lambda result: result[0][0]):
        problems = [(name, weight, value) for (_, name), weight, value in group]
        averages.append(
            problems[0][2]
            if is_single[number] and average is not None
            else _average(problems, multi_class, average, needs)
        )
    return averages


def _average(
    results: list[tuple[Any, float, Any]],
    multi_class: str | Lens,
    average: Average,
    needs: SampleRequirement,
) -> Any:
    """Return the mean of the values of all problems, or the values if `average` is None."""
    share = np.array([weight for _, weight, _ in results])  # (P,)
    exists = np.array([value is not None for *_, value in results])
    values = (np.nan if value is None else value for *_, value in results)
    value = np.stack(np.broadcast_arrays(*values))  # (P,) or (P, C)
    is_measured = ~np.isnan(value).reshape(len(value), -1).any(axis=1)
    if not is_measured.any():
        raise ValueError(
            f"multi_class={multi_class!r} needs a class with {needs.minimum}; found none among the "
            f"{exists.sum()} classes that have samples. Pass multi_class='confidence', or "
            f"{needs.remedy}."
        )
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
    weights = share[is_measured] if average == "weighted" else None
    if weights is not None and not weights.any():
        raise ValueError(
            f"average={average!r} needs a problem of multi_class={multi_class!r} of positive "
            "weight, such as a label that occurs; found none. Pass average='macro'."
        )
    mean = np.average(value[is_measured], axis=0, weights=weights)
    return float(mean) if mean.ndim == 0 else mean


def reduce_classes(measure: Callable[..., Any]) -> Callable[..., Any]:
    """Return the measure of any number of classes that reduces them to those of a binary one."""
    return partial(average_over_reductions, measure)
