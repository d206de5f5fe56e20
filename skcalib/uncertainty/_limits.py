"""Limits of a number: by Student's t, by a score interval, and by outcomes that are drawn.

A number is near what was observed a constant plus a sum of terms, one for each sample. All limits
follow from these; the interval is the hull of all, and a p-value the largest of all. So a value
lies outside of the interval if and only if its p-value is small.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from .._data import AnyData
from .._numerics.dependence import UnitSums, cross_variances, split_columns
from .._statistics.base import TIE_RTOL
from ..metrics._registry import root_of_estimate
from ..metrics._terms import MetricTerms
from ._units import Units

# Tilts, times the standard deviation of the terms, are searched up to the first number. If the mean
# that is sought lies further away, the range is tripled until it exceeds the second number.
_FIRST_TILT, _MAX_TILT = 12.0, 1000.0

# The error of a tilt, likewise times the standard deviation.
_TILT_ATOL = 1e-9

# How far the mean of a tilt may be from the one that is sought, in standard deviations.
_MEAN_RTOL = 1e-7

# Logarithms of p-values between which the one of given ends is found, by halves.
_LOG_TAILS, _N_HALVINGS = (-700.0, float(np.log(0.5))), 24

# Keeps the logarithms of probabilities of 0 finite.
_MIN_PROBA = 1e-30


class Limits(Protocol):
    """Limits of the true value."""

    def ends(self, tail: float) -> tuple[float, float]:
        """The ends of the interval, with this error probability on either side."""

    def tails(self, null: float) -> tuple[float, float]:
        """The p-values of "less" and "greater", where the true value is `null`."""


def find_interval(
    ends: Callable[[float], tuple[float, float]], confidence_level: float, alternative: str
) -> tuple[float, float]:
    """The interval of an alternative, from the ends for an error probability on either side."""
    low, high = ends((1 - confidence_level) / (2 if alternative == "two-sided" else 1))
    return (-np.inf if alternative == "less" else low, np.inf if alternative == "greater" else high)


class StudentLimits(NamedTuple):
    """Limits by Student's t."""

    estimate: float
    deviation: float  # the standard error; infinite if unknown
    degrees: float

    def ends(self, tail: float) -> tuple[float, float]:
        if not np.isfinite(self.deviation):
            return -np.inf, np.inf
        margin = float(stats.t.isf(tail, self.degrees)) * self.deviation
        return self.estimate - margin, self.estimate + margin

    def tails(self, null: float) -> tuple[float, float]:
        deviation = max(self.deviation, np.finfo(np.float64).tiny)
        with np.errstate(over="ignore"):
            score = (self.estimate - null) / deviation
        return float(stats.t.cdf(score, self.degrees)), float(stats.t.sf(score, self.degrees))

    def cross(self, other: "StudentLimits", both: "StudentLimits") -> "StudentLimits":
        """Limits of crossed groups, whose variance is V_a + V_b − V_ab, and no less than either."""
        a, b, ab = self.deviation**2, other.deviation**2, both.deviation**2
        variance = cross_variances(a, b, ab) if np.isfinite([a, b, ab]).all() else np.inf
        degrees = min(self.degrees, other.degrees)
        return StudentLimits(self.estimate, float(np.sqrt(variance)), degrees)


class Changes(NamedTuple):
    """An estimate, and by how much each unit raises it; the variance is the sum of the squares."""

    estimate: float
    changes: np.ndarray  # (U,)
    size: float  # effective number of units
    least_variance: float = 0.0  # a lower bound
    degrees: float | None = None  # of freedom; None if the changes tell

    def limits(self) -> StudentLimits:
        """Limits by Student's t.

        If a few units make up most of the variance, the degrees of freedom are hardly more.
        """
        if not np.isfinite(self.changes).all():
            return StudentLimits(self.estimate, np.inf, self.size - 1)
        squares = self.changes**2
        total, spread = squares.sum(), np.sum((squares - squares.mean()) ** 2)
        degrees = self.degrees
        if degrees is None:
            degrees = 2 * total**2 / spread if spread > 0 else np.inf
        degrees = max(1.0, min(self.size - 1, degrees))
        pairs = (total, degrees), (self.least_variance, self.size - 1)
        widths = [stats.t.isf(0.025, degrees) * np.sqrt(variance) for variance, degrees in pairs]
        variance, degrees = pairs[int(np.argmax(widths))]  # the wider one of 95 %
        return StudentLimits(self.estimate, float(np.sqrt(variance)), degrees)

    def scale(self, factor: float, estimate: float) -> "Changes":
        return self._replace(
            estimate=estimate,
            changes=factor * self.changes,
            least_variance=factor**2 * self.least_variance,
        )

    @classmethod
    def from_terms(
        cls,
        terms: np.ndarray,
        units: Units,
        least_variance: float = 0.0,
        share: np.ndarray | None = None,
    ) -> "Changes":
        """The change of a sum of terms (n,) when each unit is left out, scaled for the jackknife.

        The sum of squared changes is the jackknife's variance. For a mean with equal weights it is
        the variance of the paired t-test.
        """
        estimate = float(terms.sum())
        share = units.share if share is None else share
        left_out = units.add(terms - estimate * units.weight) / (1 - share)
        changes = np.sqrt(1 - 1 / units.number) * left_out
        return cls(estimate, changes, units.effective_size, least_variance)


class ScoreLimits:
    """Limits at which outcomes are as far from their expectation as the observed ones.

    The probabilities of all possible outcomes are tilted along their terms, to be proportional to
    p exp(α t). Their mean rises with α; so does its distance from the estimate, in standard
    deviations of the sum: of outcomes, given the predictions, and of their expectations.
    """

    def __init__(self, terms: MetricTerms, units: Units) -> None:
        possible: Any = terms.possible
        self.weight, self.row, self.possible = terms.weight, terms.row, possible
        self.units, self.degrees = units, units.effective_size - 1
        self.entries = (
            units
            if terms.row is None
            else UnitSums(terms.weight, units.code[terms.row] if units.has_groups else None)
        )
        self.estimate = float(terms.weight @ terms.observed)
        self.log_proba = np.log(np.maximum(cast(Any, terms.proba), _MIN_PROBA))
        centred = possible - possible.mean(axis=1, keepdims=True)
        mean_square = terms.weight @ np.sum(centred**2, axis=1) / terms.weight.sum()
        self.scale = np.sqrt(mean_square) or 1.0
        self.distances: dict[float, tuple[float, float]] = {}
        self.dependence = np.zeros(units.number)
        if units.has_groups:  # as dependent as the residuals, where the mean is the observed one
            mean, deviation = self._moments(self._tilt_of_mean(self.estimate))
            self.dependence = self.entries.dependence(
                self.weight * (terms.observed - mean), self.weight * deviation
            )

    @classmethod
    def find(cls, terms: MetricTerms | None, units: Units) -> list["ScoreLimits"]:
        """The limits, if the terms of all possible outcomes are known; else none."""
        return [] if terms is None or terms.possible is None else [cls(terms, units)]

    def _moments(self, tilt: float) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations (m,) of the terms."""
        log_proba = self.log_proba + tilt / self.scale * self.possible
        proba = np.exp(log_proba - log_proba.max(axis=1, keepdims=True))
        proba /= proba.sum(axis=1, keepdims=True)
        mean = np.einsum("mj,mj->m", proba, self.possible)
        square = np.einsum("mj,mj->m", proba, (self.possible - mean[:, None]) ** 2)
        return mean, np.sqrt(square)

    def distance(self, tilt: float) -> tuple[float, float]:
        """The mean, and its distance from the estimate in standard deviations."""
        if tilt not in self.distances:
            self.distances[tilt] = self._distance(tilt)
        return self.distances[tilt]

    def _distance(self, tilt: float) -> tuple[float, float]:
        means, deviation = self._moments(tilt)
        total = float(self.weight @ means)
        terms = self.weight * means
        if self.row is not None:
            terms = np.bincount(self.row, terms, len(self.units.weight))
        variance = self.entries.variance(self.weight * deviation, self.dependence)
        variance += np.sum(self.units.add(terms - total * self.units.weight) ** 2)
        return total, (total - self.estimate) / np.sqrt(variance + np.finfo(np.float64).tiny)

    def _solve(self, function: Callable[[float], float]) -> float:
        """The tilt at which a rising function is 0; the nearer end if it is nowhere."""
        most = _FIRST_TILT
        while (low := function(-most)) * (high := function(most)) >= 0 and most < _MAX_TILT:
            most *= 3
        if low >= 0 or high <= 0:
            return -most if low >= 0 else most
        return float(brentq(function, -most, most, xtol=_TILT_ATOL))

    def _tilt_of_mean(self, mean: float) -> float:
        return self._solve(lambda tilt: float(self.weight @ self._moments(tilt)[0]) - mean)

    def _mean_at(self, distance: float) -> float:
        tilt = self._solve(lambda tilt: self.distance(tilt)[1] - distance)
        return self.distance(tilt)[0]

    def ends(self, tail: float) -> tuple[float, float]:
        margin = float(stats.t.isf(tail, self.degrees))
        return self._mean_at(-margin), self._mean_at(margin)

    def tails(self, null: float) -> tuple[float, float]:
        mean, distance = self.distance(self._tilt_of_mean(null))
        if abs(mean - null) > _MEAN_RTOL * self.scale:  # no tilt has this mean
            distance = float(np.copysign(np.inf, null - mean))
        return float(stats.t.sf(distance, self.degrees)), float(stats.t.cdf(distance, self.degrees))


class DrawnLimits(NamedTuple):
    """Limits by values of outcomes that are drawn where the true value is known.

    The lower end excludes 0 if and only if the one-sided test that the draws make rejects.
    """

    estimate: float
    values: np.ndarray  # (B,), minus the true value
    is_error: bool = False  # True if it cannot be negative: there is no upper end then

    def ends(self, tail: float) -> tuple[float, float]:
        # with this order statistic (1 + #{more extreme}) / (1 + B) is at most the tail
        rank = int(tail * (len(self.values) + 1) * (1 + TIE_RTOL))
        if rank < 1:  # so few draws do not show the quantile
            return -np.inf, (-np.inf if self.is_error else np.inf)
        ordered = np.sort(self.values)
        least, most = float(ordered[rank - 1]), float(ordered[-rank])
        tolerance = TIE_RTOL * abs(self.estimate)  # a tie is no excess, as for the p-value
        low, high = self.estimate - most - tolerance, self.estimate - least + tolerance
        return low, (-np.inf if self.is_error else high)

    def tails(self, null: float) -> tuple[float, float]:
        deviation = self.estimate - null
        tolerance = TIE_RTOL * abs(self.estimate)
        n_more = 1 + np.sum(self.values >= deviation - tolerance)
        n_less = 0 if self.is_error else 1 + np.sum(self.values <= deviation + tolerance)
        return float(n_less / (1 + len(self.values))), float(n_more / (1 + len(self.values)))


class MeasureLimits(Limits):
    """Limits of a measure, which give its interval and its p-values."""

    def interval(
        self, confidence_level: float, alternative: str = "two-sided"
    ) -> tuple[float, float]:
        return find_interval(self.ends, confidence_level, alternative)

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """The p-value of the hypothesis that the true value is `null`."""
        less, greater = self.tails(null)
        if alternative == "two-sided":
            return min(1.0, 2 * min(less, greater))
        return less if alternative == "less" else greater


@dataclass(frozen=True)
class Hull(MeasureLimits):
    """The hull of limits.

    An end that does not exclude 0 is also an end of the limits in `shifted`: where there is a
    difference, both errors are biased upwards, the smaller one more.
    """

    estimate: float
    limits: Sequence[Limits]
    shifted: Sequence[Limits] = ()

    def ends(self, tail: float) -> tuple[float, float]:
        lows, highs = zip(*(limit.ends(tail) for limit in self.limits), strict=True)
        low, high = min(self.estimate, *lows), max(self.estimate, *highs)
        shifted = [limit.ends(tail) for limit in self.shifted]
        if low <= 0:
            low = min([low, *(least for least, _ in shifted)])
        if high >= 0:
            high = max([high, *(most for _, most in shifted)])
        return float(low), float(high)

    def tails(self, null: float) -> tuple[float, float]:
        less, greater = np.max([limit.tails(null) for limit in self.limits], axis=0).tolist()
        return less, greater

    def cross(self, other: "Hull", both: "Hull") -> "Hull":
        """Limits of crossed groups.

        Scores, and limits by numbers of events, are those of the samples in which both agree.
        Outcomes are drawn with the dependence of either, and of both.
        """
        of_either = DrawnLimits | ScaledLimits
        limits: list[Limits] = [self.student.cross(other.student, both.student)]
        limits += (x for x in both.limits if not isinstance(x, StudentLimits | ScaledLimits))
        limits += (x for x in (*self.limits, *other.limits) if isinstance(x, of_either))
        return Hull(self.estimate, limits, [*self.shifted, *other.shifted, *both.shifted])

    @property
    def student(self) -> StudentLimits:
        return next(limit for limit in self.limits if isinstance(limit, StudentLimits))

    @property
    def deviation(self) -> float:
        """The standard error."""
        return self.student.deviation


def to_square(root: float | np.ndarray) -> Any:
    """The squares of roots, with their sign."""
    return np.copysign(root**2, root)


to_root = partial(root_of_estimate, signed=True)


@dataclass(frozen=True)
class ScaledLimits(MeasureLimits):
    """Limits of a measure that are those on another scale, such as that of its square."""

    estimate: float
    limits: Any  # on the scale
    to_measure: Callable[[float], Any]  # from the scale
    to_scale: Callable[[float], Any] | None = None  # for p-values; None if they are unknown

    def ends(self, tail: float) -> tuple[float, float]:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # of infinite ones
            low, high = (float(self.to_measure(end)) for end in self.limits.ends(tail))
        return min(low, self.estimate), max(high, self.estimate)

    def tails(self, null: float) -> tuple[float, float]:
        return self.limits.tails(cast(Any, self.to_scale)(null))

    def cross(self, other: "ScaledLimits", both: "ScaledLimits") -> "ScaledLimits":
        return replace(self, limits=self.limits.cross(other.limits, both.limits))


@dataclass(frozen=True)
class UnpairedLimits(MeasureLimits):
    """Limits of the difference of two measures of independent samples, by the limits of each.

    The distances of their ends from the estimates are squared and added (Newcombe, 1998).
    """

    limits: Sequence[Any]
    clip: Callable[[float, float], tuple[float, float]]  # ends, to what a measure can be

    def ends(self, tail: float) -> tuple[float, float]:
        a, b = (limit.estimate for limit in self.limits)
        (low_a, high_a), (low_b, high_b) = (self.clip(*limit.ends(tail)) for limit in self.limits)
        below, above = np.hypot([a - low_a, high_a - a], [high_b - b, b - low_b]).tolist()
        return a - b - below, a - b + above

    def tails(self, null: float) -> tuple[float, float]:
        least, most = _LOG_TAILS  # the interval of the first holds `null`, that of the second not
        for _ in range(_N_HALVINGS):
            middle = (least + most) / 2
            low, high = self.ends(float(np.exp(middle)))
            least, most = (middle, most) if low <= null <= high else (least, middle)
        tail, (a, b) = float(np.exp(most)), (limit.estimate for limit in self.limits)
        return (1 - tail, tail) if a - b > null else (tail, 1 - tail)


def cross_groups(
    models: tuple[AnyData, ...], find_limits: Callable[[tuple[AnyData, ...]], list[Any]]
) -> list[Any]:
    """Limits of models whose groups are codes (n,), or (n, 2) of crossed groups."""
    limits = [
        find_limits(tuple(replace(data, groups=code) for data in models))
        for code in split_columns(models[0].groups)
    ]
    if len(limits) == 1:
        return limits[0]
    return [first.cross(second, both) for first, second, both in zip(*limits, strict=True)]
