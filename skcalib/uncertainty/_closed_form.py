"""Intervals of numbers of two classes in closed form: how much they change without each unit.

Units are samples, or groups of samples. Nothing is drawn, and the order of the samples does not
matter.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit, logit

from .._data import ClassData
from .._inputs.drawing import MAX_SIZE_RATIO, N_ADDED_GROUPS
from .._numerics.logits import log_odds
from ..metrics._clinical import check_two_classes, compute_calibration_intercept, logistic_line
from ._resampling import Limits, Units

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


class Changes(NamedTuple):
    """An estimate, and by how much each unit raises it; the variance is the sum of the squares."""

    estimate: float
    changes: np.ndarray  # (U,)
    label_variance: float = 0.0  # if labels follow the fitted probabilities; a lower bound
    degrees: float | None = None  # of freedom; None if the changes tell

    def limits(self, units: Units) -> Limits:
        """Limits by Student's t.

        If a few units make up most of the variance, the degrees of freedom are hardly more.
        """
        size = units.effective_size
        if not np.isfinite(self.changes).all():
            return Limits(self.estimate, np.inf, size - 1, np.empty(0))
        squares = self.changes**2
        total, spread = squares.sum(), np.sum((squares - squares.mean()) ** 2)
        degrees = self.degrees
        if degrees is None:
            degrees = 2 * total**2 / spread if spread > 0 else np.inf
        pairs = [(total, max(1.0, min(size - 1, degrees))), (self.label_variance, size - 1)]
        widths = [stats.t.isf(0.025, degrees) * np.sqrt(variance) for variance, degrees in pairs]
        variance, degrees = pairs[int(np.argmax(widths))]  # the wider one of 95 %
        return Limits(self.estimate, float(np.sqrt(variance)), degrees, np.empty(0))

    def scale(self, factor: float, estimate: float) -> "Changes":
        return self._replace(
            estimate=estimate,
            changes=factor * self.changes,
            label_variance=factor**2 * self.label_variance,
        )


class TwoClasses:
    """Data of two classes whose labels may depend on each other within units."""

    def __init__(self, data: ClassData) -> None:
        check_two_classes(data)
        self.data = data = data.to_numpy()
        self.units = Units(data)
        self.label, self.weight = data.label, data.weight
        self.proba, self.logits = data.proba, log_odds(data.proba)
        self.share = self.add(self.weight)

    def add(self, terms: np.ndarray) -> np.ndarray:
        """The sums (U,) of terms (n,) over units."""
        return np.bincount(self.units.code, terms, self.units.number)

    # Labels that depend on each other

    def dependence(self, factor: np.ndarray, proba: np.ndarray) -> np.ndarray:
        """How far labels, times factors (n,), go together in each unit (U,), from 0 to 1.

        It compares the products of residuals within groups with the largest that they can be, over
        all groups of at least half and at most twice the weight. Two groups of the same weight are
        added, in which all labels depend on one random number.
        """
        if self.data.groups is None:
            return np.zeros(self.units.number)
        residual, deviation = factor * (self.label - proba), _deviation(factor, proba)
        most = self.add(deviation) ** 2 - self.add(deviation**2)
        products = self.add(residual) ** 2 - self.add(residual**2)
        order = np.argsort(self.share, kind="stable")
        first = np.searchsorted(self.share[order], self.share / MAX_SIZE_RATIO)
        last = np.searchsorted(self.share[order], self.share * MAX_SIZE_RATIO)

        def sum_similar(values: np.ndarray) -> np.ndarray:
            total = np.append(0.0, np.cumsum(values[order]))
            return total[last] - total[first] + N_ADDED_GROUPS * most

        products, most = sum_similar(products), sum_similar(most)
        ratio = np.divide(products, most, out=np.ones_like(most), where=most > 0)
        return np.clip(ratio, 0.0, 1.0)

    def label_variance(
        self, factor: np.ndarray, proba: np.ndarray, dependence: np.ndarray
    ) -> float:
        """The variance of the sum of labels times factors (n,), if the probabilities are these."""
        deviation = _deviation(factor, proba)
        if self.data.groups is None:
            return float(deviation @ deviation)
        independent = self.add(deviation**2)
        excess = dependence * (self.add(deviation) ** 2 - independent)
        return float(np.sum(independent + excess))

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
        masses = (self.add(self.weight * (self.label == k)) for k in range(2))
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

    def shifts(self, confidence_level: float) -> np.ndarray:
        """Return a score interval (2,) of the calibration intercept.

        Its ends are the shifts of all log-odds at which the observed frequency is t standard
        deviations from the expected one.
        """
        margin = stats.t.isf((1 - confidence_level) / 2, self.units.effective_size - 1)
        dependence = self.dependence(self.weight, self.prevalent_proba)

        def excess(shift: float, sign: int) -> float:
            proba = expit(self.logits + shift)
            variance = self.label_variance(self.weight, proba, dependence)
            return float(self.weight @ (self.label - proba) - sign * margin * np.sqrt(variance))

        return np.array([brentq(excess, -_MAX_SHIFT, _MAX_SHIFT, args=(sign,)) for sign in (1, -1)])

    # Estimates, and how much they change without each unit

    def mean_residual(self) -> Changes:
        residual = self.label - self.proba
        estimate = float(self.weight @ residual)
        return Changes(estimate, self._leave_out(self.weight * (residual - estimate)))

    def observed_expected_ratio(self) -> Changes:
        ratio = float(self.weight @ self.label / (self.weight @ self.proba))
        terms = self.weight * (self.label - ratio * self.proba) / (self.weight @ self.proba)
        return Changes(ratio, self._leave_out(terms))

    def intercept(self) -> Changes:
        ones = np.ones((len(self.label), 1))
        return self._coefficient(ones, self.shift, self.logits + self.shift)

    def slope(self) -> Changes:
        intercept, slope = logistic_line(self.data)
        if not np.isfinite([intercept, slope]).all():
            return Changes(slope, np.full(self.units.number, np.inf))
        centred = self.logits - self.weight @ self.logits  # keeps the digits of nearly equal ones
        scale = float(np.abs(centred).max())
        design = np.column_stack([np.ones(len(self.label)), centred / scale])
        change = self._coefficient(design, scale * slope, intercept + slope * self.logits)
        return change.scale(1 / scale, slope)

    def _leave_out(self, terms: np.ndarray, share: Any = None) -> np.ndarray:
        """How a mean changes by each unit (U,), from terms (n,) that sum to 0.

        The sum of the squares is the jackknife's variance: of a mean of equal weights that of the
        t-test.
        """
        share = self.share if share is None else share
        return np.sqrt(1 - 1 / self.units.number) * self.add(terms) / (1 - share)

    def _coefficient(self, design: np.ndarray, estimate: float, logits: np.ndarray) -> Changes:
        """The last coefficient of a logistic regression, by one Newton step without each unit.

        The sum of the squares is the sandwich of the type HC3, of groups CR3.
        """
        proba, n_columns = expit(logits), design.shape[1]
        weighted = design * (self.weight * proba * (1 - proba))[:, None]
        inverse = np.linalg.pinv(weighted.T @ design)
        columns = [[self.add(w * x) for x in design.T] for w in weighted.T]
        leverage = np.moveaxis(np.array(columns), 2, 0) @ inverse  # (U, C, C)
        residual = self.weight * (self.label - proba)
        score = np.column_stack([self.add(x * residual) for x in design.T])[..., None]
        left = np.eye(n_columns) * (1 + _LEVERAGE_ATOL) - leverage
        changes = (np.linalg.solve(left, score)[..., 0] @ inverse)[:, -1]
        factor = self.weight * (design @ inverse[:, -1])
        variance = self.label_variance(factor, proba, self.dependence(factor, proba))
        return Changes(estimate, changes, variance)

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
        shares = [self.add(mass) / mass.sum() for mass in (events, non_events)]
        if self.has_single_unit:
            return Changes(estimate, np.full(self.units.number, np.inf))
        variances = [np.sum(self.add(terms * side) ** 2) for side in (self.label, 1 - self.label)]
        sizes = [max(1 / (share @ share) - 1, 1.0) for share in shares]
        scatter = sum(v**2 / n for v, n in zip(variances, sizes, strict=True))
        degrees = sum(variances) ** 2 / scatter if scatter > 0 else np.inf  # Welch (1947)
        return Changes(estimate, self._leave_out(terms, np.maximum(*shares)), degrees=degrees)


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


def compute_intervals(
    data: ClassData,
    names: Sequence[str] = SIGNED_MEASURES,
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
) -> tuple[np.ndarray, np.ndarray]:
    """Estimates and ends (C, 3) of measures, and their standard errors (C,).

    The standard error of the O:E ratio is that of its logarithm. Where the number of events decides
    on a measure, the ends are the hull with those of its score interval.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # then nothing is known
        return _compute_intervals(TwoClasses(data), names, confidence_level, alternative)


def _compute_intervals(
    classes: TwoClasses, names: Sequence[str], confidence_level: float, alternative: str
) -> tuple[np.ndarray, np.ndarray]:
    check_both_outcomes(classes.data)
    level = confidence_level if alternative == "two-sided" else 2 * confidence_level - 1
    ends_by_events = {}
    if not _DECIDED_BY_EVENTS.isdisjoint(names):  # half of the time goes into the search for ends
        shifts = classes.shifts(level)
        shifted = np.array([classes.weight @ expit(classes.logits + shift) for shift in shifts])
        expected = classes.weight @ classes.proba
        ends = shifted - expected, np.log(shifted / expected), shifts
        ends_by_events = dict(zip(SIGNED_MEASURES, ends, strict=False))
    rows, deviations = [], []
    for name in names:
        change, to_measure = _to_normal_scale(name, MEASURES[name](classes))
        limits = change.limits(classes.units)
        low, high = limits.interval(confidence_level, alternative)
        least, most = ends_by_events.get(name, (low, high))
        rows.append(to_measure(np.array([change.estimate, min(low, least), max(high, most)])))
        deviations.append(limits.deviation)
    return np.array(rows), np.array(deviations)


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


def compute_difference_limits(
    data: ClassData, other: ClassData, names: Iterable[str]
) -> list[Limits]:
    """Limits of the differences of measures between two models of the same units."""
    classes = TwoClasses(data), TwoClasses(other)
    with np.errstate(all="ignore"):  # of infinite ones, nothing is known
        pairs = [[MEASURES[name](model) for model in classes] for name in names]
        changes = [Changes(a.estimate - b.estimate, a.changes - b.changes) for a, b in pairs]
    if any(model.has_single_unit for model in classes):
        unknown = np.full(classes[0].units.number, np.inf)
        changes = [change._replace(changes=unknown) for change in changes]
    return [change.limits(classes[0].units) for change in changes]


def check_both_outcomes(data: ClassData) -> None:
    """Refuse labels of one class: they do not show how much the number of events varies."""
    n_events = int(data.label.sum())
    if n_events in (0, len(data.label)):
        raise ValueError(
            f"y_true must hold both outcomes; found {n_events} events among "
            f"{len(data.label)} samples of positive weight. Collect more samples; the "
            "metrics themselves, such as observed_expected_ratio, take one outcome, too."
        )
