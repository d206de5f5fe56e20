"""Metrics of probabilities: binary measures, applied to more than two classes."""

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from .._inputs.checks import check_predictions
from .._inputs.scikit_learn import Parallel, delayed
from .._inputs.warnings import warn
from ..forecasts._data import check_data
from ._registry import Function, get_option_defaults, metric


def map_classes(function, problems, n_jobs):
    """The share and the value of each class; None for the value of one that is never predicted.

    Jobs are threads, which share the data; sorting and sums of many numbers let others run.
    """

    def pair(share, problem):
        return share, None if problem is None else function(problem)

    return Parallel(n_jobs=n_jobs, require="sharedmem")(
        delayed(pair)(*share_and_problem) for share_and_problem in problems
    )


def map_reduction(function, data, multi_class, n_jobs=1):
    """The value of a function of two classes; for more classes, a list with its value for each.

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
    """Least samples of a class that a measure needs, and the remedy if they are missing."""

    least: str
    remedy: str


_ENOUGH_SAMPLES = SampleRequirement("enough samples", "collect more samples")


def average_over_reductions(
    measure,
    data,
    multi_class="confidence",
    average="auto",
    needs=_ENOUGH_SAMPLES,
    n_jobs=1,
    **options,
):
    """Value of a binary measure; more than two classes are reduced to two as `multi_class` says.

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
    """Refuse data in which no class has enough samples."""
    if not is_measured.any():
        raise ValueError(
            f"multi_class={multi_class!r} needs a class with {needs.least}; found none among the "
            f"{exists.sum()} classes that have samples. Pass multi_class='confidence', or "
            f"{needs.remedy}."
        )


def reduce_classes(measure):
    """A measure of two classes as one of any number of them: `average_over_reductions` of it."""
    return partial(average_over_reductions, measure)


def _check_with_tuples(y_true, y_proba, **data_args):
    """Probabilities, or forecasts, of which a tuple may be lists of means and deviations."""
    return check_data(y_true, y_proba, may_be_numbers=isinstance(y_proba, tuple), **data_args)


def probability_metric(
    compute: Callable,
    constraints: dict | None = None,
    *,
    in_place: bool = False,
    prepare: Callable | None = None,
    **facts: Any,
) -> Callable[[Function], Function]:
    """Declare a metric of probabilities by its signature and docstring; its body is here.

    `compute` gets `ClassData` and all options; or `ForecastData`, if the metric takes forecasts
    as well. With `in_place`, arrays of other packages stay where they live. Where options follow
    the data, `prepare` makes both out of `y_true`, `y_proba`, the other data and the options. The
    other arguments are those of `metric`.
    """
    check: Callable = (
        _check_with_tuples if "forecasts" in facts.get("takes", ()) else check_predictions
    )

    def declare(function: Function) -> Function:
        defaults = get_option_defaults(function)

        def measured(y_true, y_proba, **options):
            data_args = {name: options.pop(name) for name in options.keys() - defaults.keys()}
            if prepare is None:
                data = check(y_true, y_proba, in_place=in_place, **data_args)
            else:
                data, options = prepare(y_true, y_proba, data_args, defaults | options)
            return compute(data, **(defaults | options))

        public: Any = update_wrapper(measured, function)
        return metric(compute, constraints, **facts)(public)

    return declare
