"""Intervals of the signed measures of clinical validations, by the jackknife."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._data import ClassData
from .._inputs.scikit_learn import RandomState
from ..metrics._clinical import (
    check_two_classes,
    compute_calibration_in_the_large,
    compute_calibration_intercept,
    compute_calibration_slope,
    compute_observed_expected_ratio,
    logistic_line,
)
from ._group_scores import widen_by_scores
from ._resampling import Limits, Samples, Units, jackknife_deviation


def _log_observed_expected_ratio(data: ClassData) -> float:
    with np.errstate(divide="ignore"):  # no events
        return float(np.log(compute_observed_expected_ratio(data)))


# The measures without absolute values, on the scale on which they are nearly normal.
SIGNED_MEASURES = {
    "calibration_in_the_large": compute_calibration_in_the_large,
    "observed_expected_ratio": _log_observed_expected_ratio,
    "calibration_intercept": compute_calibration_intercept,
    "calibration_slope": compute_calibration_slope,
}


def differentiable_measures(
    data: ClassData,
    start: tuple[float, float] | None = None,
    names: Iterable[str] = SIGNED_MEASURES,
) -> list[float]:
    """Return the measures without absolute values, the ratio as its logarithm.

    A `start` of intercept and slope, of nearly the same samples, makes it faster.
    """
    return [
        logistic_line(data, start)[1]
        if name == "calibration_slope"
        else SIGNED_MEASURES[name](data)
        for name in names
    ]


def signed_intervals(
    data: ClassData,
    names: Sequence[str],
    confidence_level: float,
    *,
    alternative: str = "two-sided",
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Estimates and ends (C, 3) of some signed measures, and their standard errors (C,).

    The standard error of the O:E ratio is that of its logarithm. With groups, or rare events, the
    ends are the hull of those of the jackknife and of the score intervals.
    """
    check_two_classes(data)
    units = Units(data)
    check_both_outcomes(data)
    limits = jackknife_limits(
        data,
        units,
        check_random_state(random_state),
        n_jobs,
        partial(differentiable_measures, start=logistic_line(data), names=names),
    )
    ends = np.array([limit.interval(confidence_level, alternative) for limit in limits])
    level = confidence_level if alternative == "two-sided" else 2 * confidence_level - 1
    measures = [[*SIGNED_MEASURES].index(name) for name in names]
    ends = widen_by_scores(data, units, ends, level, measures)
    rows = np.column_stack([[limit.estimate for limit in limits], ends])
    is_ratio = np.array([name == "observed_expected_ratio" for name in names])
    rows[is_ratio] = np.exp(rows[is_ratio])
    return rows, np.array([limit.deviation for limit in limits])


def jackknife_limits(
    data: Samples,
    units: Units,
    rng: np.random.RandomState,
    n_jobs: int | None,
    measures: Callable[[Any], list[float]] = differentiable_measures,
) -> list[Limits]:
    """Jackknife limits; infinite ones if a part of the samples has no finite value."""
    without, degrees = units.leave_block_out_means(partial(map, measures), data, rng, n_jobs)
    values = np.array(without)  # (G, C)
    deviation = np.full(values.shape[1], np.inf)
    is_finite = np.isfinite(values).all(axis=0)
    deviation[is_finite] = jackknife_deviation(values[:, is_finite])
    return [
        Limits(estimate, float(std), degrees, np.empty(0))
        for estimate, std in zip(measures(data), deviation, strict=True)
    ]


def check_both_outcomes(data: ClassData) -> None:
    """Refuse data without events, or without non-events: no measure is finite then."""
    n_events = int(data.label.sum())
    if n_events in (0, len(data.label)):
        raise ValueError(
            f"y_true must hold both outcomes; found {n_events} events among "
            f"{len(data.label)} samples of positive weight. Collect more samples; the "
            "metrics themselves, such as observed_expected_ratio, take one outcome, too."
        )
