"""Intervals of numbers of two classes in closed form: how much they change without each unit.

Units are samples, or groups of samples. Nothing is drawn, and the order of the samples does not
matter.
"""

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit, logit

from .._data import ClassData
from .._numerics.logits import log_odds
from ..metrics._clinical import check_two_classes, compute_calibration_intercept, logistic_line
from ._limits import Changes, Hull, ScaledLimits
from ._units import Units

# Fewer effective events do not show how many there may be.
MIN_EFFECTIVE_EVENTS = 10

# No log-odds of a double are further from 0.
_MAX_SHIFT = 800.0

# A unit of this share, up to rounding, is the only one.
_SHARE_ATOL = 1e-12

# Keeps the change finite if a coefficient depends on one unit alone, whose leverage is 1.
_LEVERAGE_ATOL = 1e-12

# The measures with a sign: too high or too low, too extreme or too cautious.
SIGNED_MEASURES = (
    "calibration_in_the_large",
    "observed_expected_ratio",
    "calibration_intercept",
    "calibration_slope",
)

# The number of events alone decides on all but the last one.
_DECIDED_BY_EVENTS = frozenset(SIGNED_MEASURES[:3])


class TwoClasses:
    """Data of two classes whose labels may depend on each other within units."""

    def __init__(self, data: ClassData) -> None:
        check_two_classes(data)
        self.data = data = data.to_numpy()
        self.units = Units(data)
        self.label, self.weight = data.label, data.weight
        self.proba, self.logits = data.proba, log_odds(data.proba)

    def label_variance(
        self, factor: np.ndarray, proba: np.ndarray, dependence: np.ndarray | None = None
    ) -> float:
        """The variance of the sum of labels times factors (n,), if the probabilities are these."""
        if dependence is None:
            dependence = self.dependence(factor, proba)
        return self.units.variance(_deviation(factor, proba), dependence)

    def dependence(self, factor: np.ndarray, proba: np.ndarray) -> np.ndarray:
        """The dependence of labels, times factors (n,), within each unit (U,), from 0 to 1."""
        return self.units.dependence(factor * (self.label - proba), _deviation(factor, proba))

    @cached_property
    def shift(self) -> float:
        """The calibration intercept."""
        return compute_calibration_intercept(self.data)

    @property
    def prevalent_proba(self) -> np.ndarray:
        """The probabilities (n,) whose mean is the observed frequency."""
        return expit(self.logits + self.shift)

    @property
    def has_single_unit(self) -> bool:
        """True if a unit holds all events, or all non-events: nothing tells how they vary."""
        masses = (self.units.add(self.weight * (self.label == k)) for k in range(2))
        return any(mass.max() >= (1 - _SHARE_ATOL) * mass.sum() for mass in masses)

    @property
    def effective_n_events(self) -> float:
        """Number of independent events, or non-events, that would vary as much as those expected.

        The smaller of the two numbers.
        """
        dependence = self.dependence(self.weight, self.prevalent_proba)
        proba = expit(self.logits)  # neither 0 nor 1
        expected = min(self.weight @ proba, self.weight @ (1 - proba))
        return float(expected**2 / self.label_variance(self.weight, proba, dependence))

    def shifts(self, tail: float) -> np.ndarray:
        """Return a score interval (2,) of the calibration intercept.

        Its ends are the shifts of all log-odds at which the observed frequency is t standard
        deviations from the expected one.
        """
        margin = stats.t.isf(tail, self.units.effective_size - 1)
        dependence = self.dependence(self.weight, self.prevalent_proba)

        def excess(shift: float, sign: int) -> float:
            proba = expit(self.logits + shift)
            variance = self.label_variance(self.weight, proba, dependence)
            return float(self.weight @ (self.label - proba) - sign * margin * np.sqrt(variance))

        return np.array([brentq(excess, -_MAX_SHIFT, _MAX_SHIFT, args=(sign,)) for sign in (1, -1)])

    # Estimates, and how much they change without each unit

    def mean_residual(self) -> Changes:
        residual = self.label - self.proba
        return Changes.from_terms(self.weight * residual, self.units)

    def observed_expected_ratio(self) -> Changes:
        ratio = float(self.weight @ self.label / (self.weight @ self.proba))
        terms = self.weight * (self.label - ratio * self.proba) / (self.weight @ self.proba)
        return Changes.from_terms(terms, self.units)._replace(estimate=ratio)

    def intercept(self) -> Changes:
        ones = np.ones((len(self.label), 1))
        return self._coefficient(ones, self.shift, self.logits + self.shift)

    def slope(self) -> Changes:
        intercept, slope = logistic_line(self.data)
        if not np.isfinite([intercept, slope]).all():
            return self._unknown(slope)
        centred = self.logits - self.weight @ self.logits  # keeps the digits of nearly equal ones
        scale = float(np.abs(centred).max())
        design = np.column_stack([np.ones(len(self.label)), centred / scale])
        change = self._coefficient(design, scale * slope, intercept + slope * self.logits)
        return change.scale(1 / scale, slope)

    def _coefficient(self, design: np.ndarray, estimate: float, logits: np.ndarray) -> Changes:
        """The last coefficient of a logistic regression, by one Newton step without each unit.

        The sum of the squares is the sandwich of the type HC3, of groups CR3.
        """
        proba, n_columns = expit(logits), design.shape[1]
        weighted = design * (self.weight * proba * (1 - proba))[:, None]
        inverse = np.linalg.pinv(weighted.T @ design)
        columns = [[self.units.add(w * x) for x in design.T] for w in weighted.T]
        leverage = np.moveaxis(np.array(columns), 2, 0) @ inverse  # (U, C, C)
        residual = self.weight * (self.label - proba)
        score = np.column_stack([self.units.add(x * residual) for x in design.T])[..., None]
        left = np.eye(n_columns) * (1 + _LEVERAGE_ATOL) - leverage
        changes = (np.linalg.solve(left, score)[..., 0] @ inverse)[:, -1]
        factor = self.weight * (design @ inverse[:, -1])
        variance = self.label_variance(factor, proba)
        return Changes(estimate, changes, self.units.effective_size, variance)

    def _unknown(self, estimate: float) -> Changes:
        changes = np.full(self.units.number, np.inf)
        return Changes(estimate, changes, self.units.effective_size)

    def area_under_roc_curve(self) -> Changes:
        """The area, and the placements of DeLong et al. (1988)."""
        events, non_events = self.weight * self.label, self.weight * (1 - self.label)
        _, tie = np.unique(self.proba, return_inverse=True)
        non_events_below, events_below = (
            (np.cumsum(mass) - mass / 2)[tie] / mass.sum()
            for mass in (np.bincount(tie, non_events), np.bincount(tie, events))
        )
        estimate = float(events @ non_events_below / events.sum())
        terms = events * (non_events_below - estimate) / events.sum()
        terms += non_events * (1 - events_below - estimate) / non_events.sum()
        shares = [self.units.add(mass) / mass.sum() for mass in (events, non_events)]
        if self.has_single_unit:
            return self._unknown(estimate)
        variances = [
            np.sum(self.units.add(terms * side) ** 2) for side in (self.label, 1 - self.label)
        ]
        sizes = [max(1 / (share @ share) - 1, 1.0) for share in shares]
        scatter = sum(v**2 / n for v, n in zip(variances, sizes, strict=True))
        degrees = sum(variances) ** 2 / scatter if scatter > 0 else np.inf  # Welch (1947)
        changes = Changes.from_terms(terms, self.units, share=np.maximum(*shares))
        return changes._replace(estimate=estimate, degrees=degrees)


MEASURES = {
    "calibration_in_the_large": TwoClasses.mean_residual,
    "observed_expected_ratio": TwoClasses.observed_expected_ratio,
    "calibration_intercept": TwoClasses.intercept,
    "calibration_slope": TwoClasses.slope,
    "area_under_roc_curve": TwoClasses.area_under_roc_curve,
}


def _deviation(factor: np.ndarray, proba: np.ndarray) -> np.ndarray:
    """The standard deviations (n,) of labels times factors."""
    return np.abs(factor) * np.sqrt(proba * (1 - proba))


class _EventLimits(NamedTuple):
    """Limits by the number of events: what a measure is at the shifts of a score interval."""

    name: str
    classes: TwoClasses
    shifts: Callable[[float], np.ndarray]

    def ends(self, tail: float) -> np.ndarray:
        shifts, classes = self.shifts(tail), self.classes
        if self.name == "calibration_intercept":
            return shifts
        shifted = np.array([classes.weight @ expit(classes.logits + shift) for shift in shifts])
        expected = float(classes.weight @ classes.proba)
        if self.name == "observed_expected_ratio":
            return np.log(shifted / expected)
        return shifted - expected


def signed_limits(models: tuple[Any, ...], names: Sequence[str] = SIGNED_MEASURES) -> list[Any]:
    """Limits of measures of one model, or of their differences between two of the same units."""
    classes = [TwoClasses(data) for data in models]
    with np.errstate(all="ignore"):  # of infinite ones, nothing is known
        changes = [[MEASURES[name](model) for model in classes] for name in names]
        if len(models) == 1:
            check_both_outcomes(models[0])
            shifts = cache(classes[0].shifts)
            return [
                _single_limits(change, _EventLimits(name, classes[0], shifts))
                for name, (change,) in zip(names, changes, strict=True)
            ]
        return [_difference_limits(a, b, classes) for a, b in changes]


def _single_limits(change: Changes, events: _EventLimits) -> ScaledLimits:
    """Limits by Student's t on a scale on which the estimate is nearly normal.

    Where the number of events decides on the measure, they are the hull with those by that number.
    """
    change, to_measure = _to_normal_scale(events.name, change)
    limits: Any = change.limits()
    if events.name in _DECIDED_BY_EVENTS:
        limits = Hull(change.estimate, cast(Any, [limits, events]))
    return ScaledLimits(float(to_measure(change.estimate)), limits, to_measure)


def _difference_limits(a: Changes, b: Changes, classes: list[TwoClasses]) -> Hull:
    changes = a.changes - b.changes
    if any(model.has_single_unit for model in classes):
        changes = np.full(len(changes), np.inf)
    difference = Changes(a.estimate - b.estimate, changes, a.size)
    return Hull(difference.estimate, [difference.limits()])


def _to_normal_scale(name: str, change: Changes) -> tuple[Changes, Callable]:
    """The changes on a scale on which the estimate is nearly normal, and the way back."""
    value = change.estimate
    if name == "observed_expected_ratio":
        return change.scale(1 / value, float(np.log(value))), np.exp
    if name == "area_under_roc_curve" and 0 < value < 1:
        return change.scale(1 / (value * (1 - value)), float(logit(value))), expit
    if name == "area_under_roc_curve":
        return change, lambda row: np.clip(row, 0.0, 1.0)
    return change, np.asarray


def check_both_outcomes(data: ClassData) -> None:
    """Refuse labels of one class: they do not show how much the number of events varies."""
    n_events = int(data.label.sum())
    if n_events in (0, len(data.label)):
        raise ValueError(
            f"y_true must hold both outcomes; found {n_events} events among "
            f"{len(data.label)} samples of positive weight. Collect more samples; the "
            "metrics themselves, such as observed_expected_ratio, take one outcome, too."
        )
