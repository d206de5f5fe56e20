"""Numbers of reports on two classes: events, means, O:E, intercept, slope, ICI and AUC."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._data import ClassData
from .._numerics.dependence import UnitSums
from ..metrics._registry import SIGNED_METRICS
from ..uncertainty._closed_form import signed_limits
from ..uncertainty._limits import cross_groups
from ._findings import Finding, say
from ._sections import MAX_SAMPLE_SHARE, Intervals, Numbers, inverse_effective_size

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
        "n_events": int(data.label.sum()),
        "prevalence": data.mean(data.label),
        "mean_prediction": data.mean(data.proba),
    }
    values = {name: SIGNED_METRICS[name].measure(data) for name in _CLINICAL_NAMES[:-1]}
    values["area_under_roc_curve"] = area_under_roc_curve(data)
    # where log-odds are clipped decides on these, for certain predictions
    if is_rounded(data.proba):
        values["calibration_slope"] = np.nan
    if is_rounded(data.proba) or _MAX_INTERCEPT < abs(values["calibration_intercept"]) < np.inf:
        values["calibration_intercept"] = np.nan
    return numbers | {name: value for name, value in values.items() if not np.isnan(value)}


def clinical_intervals(data: ClassData, numbers: Numbers) -> Intervals:
    """Return their 95 % intervals; none of perfect ranks."""
    intervals = find_clinical_intervals(data, names=[n for n in _CLINICAL_NAMES if n in numbers])
    return {
        name: (low, high) for name, (low, high) in intervals.items() if high - low > _INTERVAL_ATOL
    }


def measure_event_ratio(data: ClassData) -> Numbers:
    """Return the events and the O:E ratio of a subgroup, and the ends of its 95 % interval."""
    name = _CLINICAL_NAMES[0]
    numbers = {"n_events": int(data.label.sum()), name: float(SIGNED_METRICS[name].measure(data))}
    low, high = find_clinical_intervals(data, names=(name,)).get(name, (np.nan, np.nan))
    return numbers | {f"{name}_low": low, f"{name}_high": high}


def find_clinical_intervals(
    *models: ClassData, names: Sequence[str] = _CLINICAL_NAMES
) -> Intervals:
    """Return 95 % intervals of one model, or of the differences of two with the same outcomes."""
    if not _has_intervals(models[0]):
        return {}
    limits: list[Any] = cross_groups(models, lambda models: signed_limits(models, names))
    return {name: limit.interval(0.95) for name, limit in zip(names, limits, strict=True)}


def _has_intervals(data: ClassData) -> bool:
    """True if there are two classes, both outcomes, and enough samples."""
    return bool(
        data.is_binary
        and inverse_effective_size(data) <= MAX_SAMPLE_SHARE
        and data.label.min() < data.label.max()
    )


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


def find_reversed_ranking(data: ClassData) -> Finding | None:
    """Return a message if the class that is predicted to be less likely happens more often."""
    add = UnitSums(data.weight, data.groups).add
    masses = np.array([add(data.weight * (data.label == k)) for k in range(2)])  # (2, U)
    mass = masses.sum(axis=1)
    if mass.min() == 0:
        return None
    area = area_under_roc_curve(data)
    # that of ranks without a relation, as if all samples of a group agreed
    deviation = np.sqrt(np.sum((masses.T / mass) ** 2) / 12)
    if area >= 0.5 - CLEAR_DEVIATION * deviation:
        return None
    text = (
        "The probabilities rank the labels backwards: what is predicted to be more likely happens "
        "less often (the area under the ROC curve is {area_under_roc_curve:.2g}). Check which "
        "column, and which pos_label, they belong to before anything else."
    )
    return say("mistake", text, {"area_under_roc_curve": area})
