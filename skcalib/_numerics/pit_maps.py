"""Maps R of the probability integral transform u, which make the forecast R∘F of F.

They take z = log u − log(1 − u), the log-odds of u, in place of u: u itself rounds to 0 or 1 for
outcomes that are far out, and z tells these apart.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from .crps import gauss_legendre
from .newton import minimize_in_bounds

# Steps of Newton's method. It converges from one side, as the function is convex or concave there.
_MAX_INVERSE_STEPS = 100

# log a and log b stay within ± this number; only separated data reach it.
_MAX_LOG_SHAPE = 8.0

# Pieces of the levels between the outermost ranks, for integrals, and those of single ranks.
_N_PIECES, _N_OUTER = 192, 24

# Ends of the pieces beyond the outermost ranks, as shares of the probability there.
_TAIL_EDGES = np.concatenate([[0.0], 10.0 ** np.arange(-10, -1), np.linspace(0.1, 1, 10)])

# A function of (log a, log b, c), with its gradient.
Loss = Callable[[np.ndarray], tuple[float, np.ndarray]]

_RANK_RTOL = 8 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class ConformalMap:
    """R(u_(k)) = k/(n + 1) at the sorted transforms of n outcomes.

    Between them R is linear in z. Beyond them u and 1 − u are multiplied by a number, so that the
    tails are those of the base forecast.
    """

    rank_point: np.ndarray  # (n,), sorted log-odds z_(k)
    rank_level: np.ndarray  # (n,), R at each, increasing and below 1
    point: np.ndarray  # (m,), the distinct finite ones
    level: np.ndarray  # (m,)

    has_density = False

    def log_cdf(self, z: np.ndarray) -> np.ndarray:
        """log R(u)."""
        above = np.log1p(-np.exp(self._log_above(z)))
        inside = np.log(np.interp(z, self.point, self.level))
        return self._join_tails(z, self._log_below(z), inside, above)

    def log_sf(self, z: np.ndarray) -> np.ndarray:
        """log(1 − R(u))."""
        below = np.log1p(-np.exp(self._log_below(z)))
        inside = np.log1p(-np.interp(z, self.point, self.level))
        return self._join_tails(z, below, inside, self._log_above(z))

    def _join_tails(
        self, z: np.ndarray, below: np.ndarray, inside: np.ndarray, above: np.ndarray
    ) -> np.ndarray:
        return np.where(z < self.point[0], below, np.where(z > self.point[-1], above, inside))

    def _log_below(self, z: np.ndarray) -> np.ndarray:
        """log R(u) in the lower tail; its end for larger z."""
        z = np.minimum(z, self.point[0])
        return np.log(self.level[0]) + log_expit(z) - log_expit(self.point[0])

    def _log_above(self, z: np.ndarray) -> np.ndarray:
        """log(1 − R(u)) in the upper tail; its end for smaller z."""
        z = np.maximum(z, self.point[-1])
        return np.log1p(-self.level[-1]) + log_expit(-z) - log_expit(-self.point[-1])

    def inverse(self, log_level: np.ndarray, log_rest: np.ndarray) -> np.ndarray:
        """The z at which R is the level, from the logarithms of it and of one minus it."""
        level = np.exp(log_level)
        log_below = log_level - np.log(self.level[0]) + log_expit(self.point[0])
        log_above = log_rest - np.log1p(-self.level[-1]) + log_expit(-self.point[-1])
        inside = np.interp(level, self.level, self.point)
        inside = np.where(level > self.level[-1], -_logit_from_log(log_above), inside)
        return np.where(level < self.level[0], _logit_from_log(log_below), inside)

    def nodes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Nodes z, their levels and weights, each (m,), for integrals from kink to kink of R.

        Of more than _N_PIECES kinks, only the outermost are all used: pieces between are small.
        """
        last = len(self.level) - 1
        if last <= _N_PIECES:  # pieces in equal parts
            n_parts = -(-_N_PIECES // (last + 1))
            rank = np.arange(last * n_parts + 1) / n_parts
        else:
            inner = np.linspace(_N_OUTER, last - _N_OUTER, _N_PIECES - 2 * _N_OUTER).round()
            outer = np.arange(_N_OUTER)
            rank = np.concatenate([outer, inner, last - outer[::-1]])
        ends = np.interp(rank, np.arange(last + 1), self.level)
        level, weight = _nodes_of_pieces(ends)
        below, below_weight = _nodes_of_pieces(self.level[0] * _TAIL_EDGES)
        above, above_weight = _nodes_of_pieces((1 - self.level[-1]) * _TAIL_EDGES)
        above, above_weight = above[::-1], above_weight[::-1]
        log_level = np.concatenate([np.log(below), np.log(level), np.log1p(-above)])
        log_rest = np.concatenate([np.log1p(-below), np.log1p(-level), np.log(above)])
        z = self.inverse(log_level, log_rest)
        weight = np.concatenate([below_weight, weight, above_weight])
        return z, np.exp(log_level), weight

    def rank(self, level: np.ndarray) -> np.ndarray:
        """The least z_(k) with R(u_(k)) ≥ level; infinity if there is none."""
        return least_rank(self.rank_point, self.rank_level, level)

    def central(self, level: float) -> np.ndarray:
        """The largest z_(k) with R ≤ (1 − level)/2, and the least with R ≥ (1 + level)/2, (2,)."""
        half = (1 - level) / 2
        low = greatest_rank(self.rank_point, self.rank_level, half)
        return np.array([low, self.rank(np.asarray(1 - half))])


def _nodes_of_pieces(ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two nodes and weights in each piece between neighbouring ends, both (2 (m − 1),)."""
    node, weight = gauss_legendre(2)
    width = np.diff(ends)[:, None]
    return (ends[:-1, None] + width * node).ravel(), (width * weight).ravel()


def least_rank(point: np.ndarray, rank_level: np.ndarray, level: Any) -> np.ndarray:
    """The least sorted point (n,) whose level (n,) is at least `level`; infinity if there is none.

    Levels that equal k/(n + 1) but for rounding have rank k.
    """
    return _take_padded(point, np.searchsorted(rank_level, np.asarray(level) * (1 - _RANK_RTOL)))


def greatest_rank(point: np.ndarray, rank_level: np.ndarray, level: Any) -> np.ndarray:
    """The greatest sorted point (n,) whose level (n,) is at most `level`; −∞ if there is none."""
    index = np.searchsorted(rank_level, np.asarray(level) * (1 + _RANK_RTOL), side="right")
    return _take_padded(point, index - 1)


def _take_padded(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Sorted values, continued by −∞ before the first and ∞ after the last."""
    return np.concatenate([[-np.inf], values, [np.inf]])[index + 1]


def _logit_from_log(log_u: np.ndarray) -> np.ndarray:
    """log u − log(1 − u) from log u ≤ 0."""
    log_u = np.minimum(log_u, 0.0)
    with np.errstate(divide="ignore"):
        return log_u - np.log(-np.expm1(log_u))


def rank_levels(weight: np.ndarray, share: float) -> np.ndarray:
    """Σ_{i ≤ k} w_i/(1 + share) for weights (n,) that sum to 1.

    The share of one more sample is 1 / the effective number of samples; for n equal weights without
    groups the levels are k/(n + 1).
    """
    if (weight == weight[0]).all():
        n = len(weight)
        return np.arange(1, n + 1) / (n + n * share)
    return np.cumsum(weight) / (1 + share)


def fit_conformal(z: np.ndarray, weight: np.ndarray, share: float) -> ConformalMap:
    """The map whose ranks are those of the log-odds (n,); the share is that of one more sample."""
    order = np.argsort(z, kind="stable")
    rank_point, rank_level = z[order], rank_levels(weight[order], share)
    last = np.append(rank_point[1:] != rank_point[:-1], True) & np.isfinite(rank_point)
    if not last.any():  # outcomes at the ends of the support only
        return ConformalMap(rank_point, rank_level, np.zeros(1), np.full(1, 0.5))
    return ConformalMap(rank_point, rank_level, rank_point[last], rank_level[last])


@dataclass(frozen=True, eq=False)
class BetaMap:
    """logit R(u) = a log u − b log(1 − u) + c with a, b > 0."""

    a: float
    b: float
    c: float

    has_density = True

    def odds(self, z: np.ndarray) -> np.ndarray:
        """logit R(u)."""
        return self.a * log_expit(z) - self.b * log_expit(-z) + self.c

    def log_cdf(self, z: np.ndarray) -> np.ndarray:
        """log R(u)."""
        return log_expit(self.odds(z))

    def log_sf(self, z: np.ndarray) -> np.ndarray:
        """log(1 − R(u))."""
        return log_expit(-self.odds(z))

    def log_slope(self, z: np.ndarray) -> np.ndarray:
        """log R'(u), from R' = R (1 − R) (a/u + b/(1 − u))."""
        odds = self.odds(z)
        slope = np.logaddexp(np.log(self.a) - log_expit(z), np.log(self.b) - log_expit(-z))
        return log_expit(odds) + log_expit(-odds) + slope

    def inverse(self, log_level: np.ndarray, log_rest: np.ndarray) -> np.ndarray:
        """The z at which R is the level, from the logarithms of it and of one minus it."""
        target = log_level - log_rest - self.c
        finite = np.where(np.isfinite(target), target, 0.0)
        z = np.where(finite < 0, finite / self.a, finite / self.b)
        for _ in range(_MAX_INVERSE_STEPS):
            excess = self.a * log_expit(z) - self.b * log_expit(-z) - finite
            step = excess / (self.a * expit(-z) + self.b * expit(z))
            z = z - step
            if (np.abs(step) <= 4e-16 * (1 + np.abs(z))).all():
                break
        return np.where(np.isfinite(target), z, target)


def fit_beta(z: np.ndarray, weight: np.ndarray) -> tuple[BetaMap, bool]:
    """The map of maximum likelihood R'(u) for log-odds z (n,), and True if the solver converged."""
    return _minimize(_make_density_loss(z, weight))


def _make_density_loss(z: np.ndarray, weight: np.ndarray) -> Loss:
    log_u, log_v = log_expit(z), log_expit(-z)

    def negative_log_likelihood(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        log_a, log_b, c = parameters
        a, b = np.exp(log_a), np.exp(log_b)
        odds = a * log_u - b * log_v + c
        share = expit(log_a - log_b + log_v - log_u)  # of a/u in a/u + b/(1 − u)
        with np.errstate(invalid="ignore"):  # infinite where an outcome has probability 0
            slope = np.logaddexp(log_a - log_u, log_b - log_v)
        value = weight @ (log_expit(odds) + log_expit(-odds) + slope)
        by_odds = 1 - 2 * expit(odds)
        gradient = [
            weight @ (by_odds * a * log_u + share),
            weight @ (-by_odds * b * log_v + 1 - share),
            weight @ by_odds,
        ]
        return -value, -np.array(gradient)

    return negative_log_likelihood


def fit_beta_to_intervals(
    lower: np.ndarray, upper: np.ndarray, z: np.ndarray, weight: np.ndarray
) -> tuple[BetaMap, bool]:
    """`fit_beta` for intervals (n,) of likelihood R(upper) − R(lower); R'(u) if it is a point."""
    is_point = (lower == upper) & np.isfinite(z)
    losses = [
        _make_density_loss(z[is_point], weight[is_point]),
        _make_interval_loss(lower[~is_point], upper[~is_point], weight[~is_point]),
    ]

    def total(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        (value, gradient), (other_value, other_gradient) = (loss(parameters) for loss in losses)
        return value + other_value, gradient + other_gradient

    return _minimize(total)


def _make_interval_loss(lower: np.ndarray, upper: np.ndarray, weight: np.ndarray) -> Loss:
    logs = [_logarithms(u) for u in (lower, upper)]

    def negative_log_likelihood(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        a, b = np.exp(parameters[:2])
        ends, slopes = [], []
        for (log_u, log_v, inner), outside in zip(logs, (0.0, 1.0), strict=True):
            odds = a * log_u - b * log_v + parameters[2]
            level = np.where(inner, expit(odds), outside)
            density = np.where(inner, expit(odds) * expit(-odds), 0.0)
            ends.append(level)
            slopes.append(density * np.stack([a * log_u, -b * log_v, np.ones_like(log_u)]))
        mass = np.maximum(ends[1] - ends[0], np.finfo(float).tiny)
        return -(weight @ np.log(mass)), -(((slopes[1] - slopes[0]) / mass) @ weight)

    return negative_log_likelihood


def _logarithms(u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log u, log(1 − u), and True where 0 < u < 1; elsewhere the logarithms are those of 1/2."""
    inner = (u > 0) & (u < 1)
    u = np.where(inner, u, 0.5)
    return np.log(u), np.log1p(-u), inner


def _minimize(negative_log_likelihood: Loss) -> tuple[BetaMap, bool]:
    bounds = [(-_MAX_LOG_SHAPE, _MAX_LOG_SHAPE)] * 2 + [(None, None)]
    result = minimize_in_bounds(
        negative_log_likelihood, np.zeros(3), bounds, loss_rtol=1e-15, gradient_atol=1e-10
    )
    a, b = np.exp(result.x[:2])
    inside = bool((np.abs(result.x[:2]) < _MAX_LOG_SHAPE).all() and np.isfinite(result.x[2]))
    return BetaMap(float(a), float(b), float(result.x[2])), inside
