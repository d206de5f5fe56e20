"""Numbers of reports on two classes: events, means, O:E, intercept, slope, ICI and AUC."""

from functools import partial
from typing import Any

import numpy as np

from .._data import ClassData
from ..metrics._clinical import logistic_line
from ..uncertainty._group_scores import widen_by_scores
from ..uncertainty._measured import MeasuredModels
from ..uncertainty._resampling import Units
from ..uncertainty._signed import differentiable_measures, jackknife_limits
from ._sections import (
    MAX_RESAMPLED_VALUES,
    MAX_SAMPLE_SHARE,
    Intervals,
    Numbers,
    inverse_effective_size,
    notify_progress,
)

_CLINICAL_NAMES = (
    "observed_expected_ratio",
    "calibration_intercept",
    "calibration_slope",
    "area_under_roc_curve",
)

# A deviation from chance by this many standard deviations is a mistake, not a bad model.
CLEAR_DEVIATION = 4.0

# The measures of a clinical validation take longer than the others.
CLINICAL_COST_FACTOR = 4

# A larger intercept follows from the clipping of predictions of 0 and 1, whose log odds are 36.
_MAX_INTERCEPT = 18.0

# Where some predictions are 0 or 1 and no other is nearer to these, they were rounded.
_MIN_ROUNDED = 1e-6

# A narrower interval is one of a number that does not vary.
_INTERVAL_ATOL = 1e-9


def two_class_numbers(data: ClassData) -> Numbers:
    """Return events, mean prediction, signed measures and ranks, as far as they are determined.

    Beside the measures stand the numbers that they are made of.
    """
    numbers = {
        "event": str(data.classes[1]),
        "n_events": int(data.label.sum()),
        "prevalence": float(data.weight @ data.label),
        "mean_prediction": float(data.weight @ data.proba),
    }
    values = dict(zip(_CLINICAL_NAMES, clinical_measures(data), strict=True))
    # where log-odds are clipped decides on these, for certain predictions
    if is_rounded(data.proba):
        values["calibration_slope"] = np.nan
    if is_rounded(data.proba) or _MAX_INTERCEPT < abs(values["calibration_intercept"]) < np.inf:
        values["calibration_intercept"] = np.nan
    return numbers | {name: value for name, value in values.items() if not np.isnan(value)}


def clinical_measures(data: ClassData) -> list[float]:
    """Return the O:E ratio, intercept, slope, and area under the ROC curve."""
    _, log_ratio, *line = differentiable_measures(data)
    return [float(np.exp(log_ratio)), *line, area_under_roc_curve(data)]


def clinical_intervals(data: ClassData, rng: np.random.RandomState, numbers: Numbers) -> Intervals:
    """Return their 95 % intervals, of the ratio by its logarithm; none of perfect ranks."""
    if not _has_intervals(data):
        return {}
    notify_progress("finding the intervals of calibration intercept and slope")
    measures = partial(_log_ratio_measures, start=logistic_line(data))
    units = Units(data)
    limits = jackknife_limits(data, units, rng, None, measures)
    intervals = np.array([limit.interval(0.95) for limit in limits])
    intervals[:3] = widen_by_scores(data, units, intervals[:3], 0.95, [1, 2, 3])
    ends = dict(zip(_CLINICAL_NAMES, map(tuple, intervals.tolist()), strict=True))
    low, high = np.exp(ends["observed_expected_ratio"]).tolist()
    ends["observed_expected_ratio"] = low, high
    low, high = np.clip(ends["area_under_roc_curve"], 0.0, 1.0).tolist()
    ends["area_under_roc_curve"] = low, high
    shown_ends = {name: limit for name, limit in ends.items() if name in numbers}
    return {
        name: (low, high) for name, (low, high) in shown_ends.items() if high - low > _INTERVAL_ATOL
    }


def clinical_difference_intervals(
    data: ClassData, other: ClassData, rng: np.random.RandomState
) -> Intervals:
    """Return 95 % intervals of the differences from another model of the same outcomes."""
    if not _has_intervals(data):
        return {}
    pair = MeasuredModels((), {}, (data, other))
    limits = jackknife_limits(pair, Units(data), rng, None, _measure_differences)
    return dict(zip(_CLINICAL_NAMES, (limit.interval(0.95) for limit in limits), strict=True))


def _measure_differences(pair: Any) -> list[float]:
    values = zip(*map(clinical_measures, pair.models), strict=True)
    return [value - other for value, other in values]


def _has_intervals(data: ClassData) -> bool:
    """True if there are two classes, both outcomes, and enough samples, but not too many."""
    return bool(
        data.is_binary
        and inverse_effective_size(data) <= MAX_SAMPLE_SHARE
        and data.n_samples <= MAX_RESAMPLED_VALUES // CLINICAL_COST_FACTOR
        and data.label.min() < data.label.max()
    )


def _log_ratio_measures(data: ClassData, start: tuple[float, float]) -> list[float]:
    return [*differentiable_measures(data, start)[1:], area_under_roc_curve(data)]


def area_under_roc_curve(data: ClassData) -> float:
    """Return the share of pairs in which the event has the higher prediction; ties count half.

    NaN if only one outcome occurs.
    """
    negative, positive = data.pool_label_weights().weight  # each (m,)
    below = np.cumsum(negative) - negative / 2
    with np.errstate(invalid="ignore"):
        return float(positive @ below / (negative.sum() * positive.sum()))


def mean_area_under_roc_curve(data: ClassData) -> float:
    """Return the mean over the classes, each against all others, that occur."""
    areas = [area_under_roc_curve(problem) for share, problem in data.iter_one_vs_rest() if share]
    return float(np.mean(areas))


def is_rounded(proba: np.ndarray) -> bool:
    """True if predictions of 0 or 1 were rounded, so that their log-odds are unknown."""
    distance = np.minimum(proba, 1 - proba)
    nearest = distance.min(initial=1.0, where=distance > 0)
    return bool((distance == 0).any() and nearest >= _MIN_ROUNDED)


def find_reversed_ranking(data: ClassData) -> str | None:
    """Return a message if the class that is predicted to be less likely happens more often."""
    weight, label = data.weight, data.label
    mass, squares = np.bincount(label, weight, 2), np.bincount(label, weight**2, 2)
    if mass.min() == 0:
        return None
    area = area_under_roc_curve(data)
    deviation = np.sqrt(np.sum(squares / mass**2) / 12)  # that of ranks without a relation
    if area >= 0.5 - CLEAR_DEVIATION * deviation:
        return None
    return (
        "The probabilities rank the labels backwards: what is predicted to be more likely happens "
        f"less often (the area under the ROC curve is {area:.2g}). Check which column, and which "
        "pos_label, they belong to before anything else."
    )
