"""The continuous ranked probability score of forecasts of several kinds, and its decomposition.

All scores are in the units of the outcome, and 0 is best. Outcomes are (n,), and so are the scores.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace
from scipy.optimize import isotonic_regression
from scipy.special import expit, log_expit, log_ndtr, logit, ndtr, ndtri

from .array_api import Array, bounded_ratio, power_of_two, special_functions
from .logits import iter_row_blocks
from .sorting import cumulate

_SQRT_PI = math.sqrt(math.pi)
_SQRT_2_PI = math.sqrt(2 * math.pi)

# Beyond this many standard deviations the normal density and its tail are 0 in double precision.
_DENSITY_REACH = 40.0

# Beyond this many scales, the squares of all distribution functions are 0 in double precision.
_FAR = 700.0

# Beyond this many standard deviations a normal distribution function is 0 or 1.
_CDF_REACH = 9.0

# Up to this many distinct outcomes (or steps of forecasts), all of them are edges of cells.
_MAX_EDGES = 2048

# Equal probabilities differ by less than this fraction of themselves, and by less than its square,
# as sums are rounded. Outcomes far outside of forecasts have tiny probabilities,
# which differ by much less, and matter.
_PROBABILITY_RTOL = 1e-6

# Nodes of the quadrature on each piece between kinks.
NODES_PER_PIECE = 32

# A piece is halved while its error is above _PIECE_RTOL of the integral: at most _MAX_HALVINGS
# times, and not if more than _MAX_PIECES for each row would be, on average. A result with an error
# above _INTEGRAL_RTOL of the integral is marked as inexact.
_MIN_LEVEL, _MAX_LEVEL = np.nextafter([0.0, 1.0], 0.5)
_PIECE_RTOL, _MAX_HALVINGS, _MAX_PIECES, _INTEGRAL_RTOL = 1e-7, 60, 200, 1e-6


def gauss_legendre(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1], each (n_nodes,)."""
    node, weight = np.polynomial.legendre.leggauss(n_nodes)
    return (node + 1) / 2, weight / 2


def normal_density(z: Array) -> Array:
    xp = array_namespace(z)
    z = xp.clip(z, -_DENSITY_REACH, _DENSITY_REACH)  # squares of huge numbers would overflow
    return xp.exp(-(z**2) / 2) / _SQRT_2_PI


def mean_distance(shift: Array, deviation: Array | None) -> Array:
    """E|D| of D ~ N(shift, deviation²); |shift| where the deviation is 0, or if it is None."""
    xp = array_namespace(shift)
    if deviation is None:
        return xp.abs(shift)
    z = bounded_ratio(shift, deviation)
    probability = special_functions(xp).ndtr(-z)
    return 2 * deviation * normal_density(z) + shift * (1 - 2 * probability)


def crps_gaussian(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """σ (z (2Φ(z) − 1) + 2φ(z) − 1/√π) with z = (y − μ)/σ (Gneiting and Raftery 2007)."""
    return mean_distance(y - mean, std) - std / _SQRT_PI


def crps_mixture(
    y: np.ndarray, mean: np.ndarray, std: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """E|X − y| − ½ E|X − X'| of a mixture of normals; mean, std and weight (n, c).

    Cost O(n c²), memory O(n c).
    """
    unit = power_of_two(std, 1)
    variance = (std / unit) ** 2
    score = np.einsum("nc,nc->n", weight, mean_distance(y[:, None] - mean, std))
    for k in range(mean.shape[1]):
        deviation = unit * np.sqrt(variance + variance[:, k : k + 1])
        apart = mean_distance(mean - mean[:, k : k + 1], deviation)
        score -= weight[:, k] / 2 * np.einsum("nc,nc->n", weight, apart)
    return score


def crps_ensemble(
    y: np.ndarray, members: np.ndarray, weight: np.ndarray | None, *, fair: bool = False
) -> np.ndarray:
    """Σ_k w_k |x_k − y| − ½ Σ_{k,l} w_k w_l |x_k − x_l| of sorted members (n, s); weight (n, s).

    The weights sum to 1; None are equal ones, with Σ_k (2k − s − 1) x_(k) / s² as the second term.
    A fair score divides the second sum by s (s − 1) in place of s², for s equal weights that are
    not 0.
    """
    size = members.shape[1]
    rank_weight = np.arange(1 - size, size, 2) / (size * (size - 1) if fair else size**2)
    score = np.empty(len(y))
    for rows in iter_row_blocks(len(y), size):
        gap = members[rows] - y[rows, None]
        if weight is None:
            score[rows] = np.abs(gap).mean(axis=1) - np.einsum("ns,s->n", gap, rank_weight)
        else:
            spread = mean_half_distances(members[rows], weight[rows])
            if fair:
                spread /= 1 - 1 / (weight[rows] > 0).sum(axis=1)
            score[rows] = np.einsum("ns,ns->n", weight[rows], np.abs(gap)) - spread
    return score


def mean_half_distances(members: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """½ Σ_{k,l} w_k w_l |x_k − x_l| of sorted rows, Σ_k W_k (1 − W_k) (x_(k+1) − x_(k)), (n,).

    W_k = w_1 + … + w_k, the members x and their weights are (n, s).
    """
    below = np.cumsum(weight, axis=1)[:, :-1]
    return np.einsum("ns,ns->n", below * (1 - below), np.diff(members, axis=1))


class EnsembleScore:
    """Scores of sorted ensembles (n, s) at any outcomes, and their derivatives 2F(y) − 1.

    Σ_k w_k |x_k − y| = y (2 W_r − 1) + V_s − 2 V_r, where r members are at most y, W_r is their
    weight and V_r the sum of their w_k x_k. Evaluations take O(n log s) once W and V are known.
    Members are centred in each row, so that no digits are lost to a common offset.
    """

    def __init__(self, members: np.ndarray, weight: np.ndarray, cumulative: np.ndarray) -> None:
        """Prepare for weights (n, s), and the weight of the first 0 to s members, (n, s + 1)."""
        self.members, self.cumulative = np.ascontiguousarray(members), cumulative
        self.centre = members[:, members.shape[1] // 2]
        self.partial = cumulate(weight * (members - self.centre[:, None]))
        self.constant = self.partial[:, -1] - mean_half_distances(members, weight)

    def __call__(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = np.arange(len(y))
        rank = count_members(y[:, None], self.members, strict=False)[:, 0]
        slope = 2 * self.cumulative[rows, rank] - 1
        below = self.partial[rows, rank]
        return (y - self.centre) * slope - 2 * below + self.constant, slope


def count_members(y: np.ndarray, members: np.ndarray, *, strict: bool) -> np.ndarray:
    """Count the members at most y, or less than y, in sorted rows (n, s), (n, m) for y (n, m).

    All rows are bisected at once, O(n m log s).
    """
    compare = np.less if strict else np.less_equal
    size, flat = members.shape[1], members.ravel()
    start = np.arange(0, members.size, size)[:, None]
    index = np.repeat(start, y.shape[1], axis=1)
    while size > 1:
        half = size // 2
        index += half * compare(flat.take(index + (half - 1)), y)
        size -= half
    index += compare(flat.take(index), y)
    return index - start


def crps_quantiles(y: np.ndarray, quantiles: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Σ_k (α_(k+1) − α_(k−1)) ρ_k with pinball losses ρ_k, α_0 = 0 and α_(K+1) = 1.

    Parameters: quantiles (n, K) at the sorted levels (K,). It is the trapezoidal rule for the score
    2 ∫ ρ_α dα, with the pinball loss 0 at the levels 0 and 1.
    """
    gap = y[:, None] - quantiles
    return pinball(gap, levels) @ level_weights(levels)


def level_weights(levels: np.ndarray) -> np.ndarray:
    """α_(k+1) − α_(k−1) at the sorted levels (K,), with α_0 = 0 and α_(K+1) = 1."""
    bounds = np.concatenate([[0.0], levels, [1.0]])
    return bounds[2:] - bounds[:-2]


def pinball(gap: np.ndarray, level: np.ndarray) -> np.ndarray:
    """ρ_α(d) = max(α d, (α − 1) d) of the gap d = y − q."""
    return np.maximum(level * gap, (level - 1) * gap)


def quantile_nodes(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Levels and weights (n_nodes,) for integrals of quantile functions over [0, 1].

    They are Gauss–Legendre nodes in t with the level s(t) = 10 t³ − 15 t⁴ + 6 t⁵, which crowds them
    at both ends, where quantile functions may be infinite. For the mean of a Gaussian kernel of a
    normal variable, 64 nodes are right to 6e-11, where those without s are to 3e-5.
    """
    t, weight = gauss_legendre(n_nodes)
    return t**3 * (10 - 15 * t + 6 * t**2), 30 * (t * (1 - t)) ** 2 * weight


def integrate_levels(
    integrand: Callable[[np.ndarray, np.ndarray], np.ndarray], levels: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integrate functions of a level, with kinks at `levels` (n, k), over [0, 1].

    The integrand takes levels (m, q) and the rows (m,) to which they belong, and returns (m, q), or
    (a, m, q) for a functions. Pieces are halved until the last Legendre coefficients of all are
    small, or halves agree with the whole. Returns the integrals (a, n); a mask (n,),
    True where neither came about; and the pieces: their rows, starts and widths, (3, m).
    """
    n = len(levels)
    ends = np.column_stack([np.zeros(n), np.sort(levels, axis=1), np.ones(n)])
    row = np.repeat(np.arange(n), ends.shape[1] - 1)
    start, width = ends[:, :-1].ravel(), np.diff(ends, axis=1).ravel()
    node, weight = quantile_nodes(NODES_PER_PIECE)
    position = 2 * gauss_legendre(NODES_PER_PIECE)[0] - 1
    waves = np.polynomial.legendre.legvander(position, NODES_PER_PIECE - 1)[:, -2:]
    check = 2 * NODES_PER_PIECE * weight[:, None] * waves  # the last two Legendre coefficients
    total = size = whole = np.zeros(n)
    pieces = []

    def add(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.array([np.bincount(rows, column, n) for column in values])

    for halving in range(_MAX_HALVINGS + 1):
        exact = start[:, None] + width[:, None] * node
        level = np.where(width[:, None] > 0, np.clip(exact, _MIN_LEVEL, _MAX_LEVEL), 0.5)
        value = integrand(level, row).reshape(-1, *level.shape)
        piece, gap = width * (value @ weight), width * np.abs(value @ check).sum(axis=-1)
        if halving:  # halves that agree with the whole may do so by chance: a geometric mean
            change = np.abs(whole - piece[:, ::2] - piece[:, 1::2])
            gap = np.minimum(gap, np.sqrt(gap) * np.sqrt(np.repeat(change, 2, axis=1)))
        gap += width * (np.abs(value * (level != exact)) @ weight)  # beyond what doubles resolve
        size = np.maximum(size, add(np.abs(piece), row))
        is_open = (gap > _PIECE_RTOL * size[:, row]).any(axis=0)
        if halving == _MAX_HALVINGS or is_open.sum() > _MAX_PIECES * n:
            is_open[:] = False
        total = total + add(piece[:, ~is_open], row[~is_open])
        pieces.append(np.stack([row, start, width])[:, ~is_open])
        if not is_open.any():
            break
        whole = piece[:, is_open]
        row, start, width = (np.repeat(array[is_open], 2) for array in (row, start, width / 2))
        start[1::2] += width[1::2]
    is_rough = add(gap, row) > _INTEGRAL_RTOL * size
    return total, np.any(is_rough, axis=0), np.concatenate(pieces, axis=1)


def nodes_of_pieces(pieces: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Levels and weights (n, c) of the nodes in the pieces (3, m) of n rows.

    Rows of fewer pieces have nodes of the weight 0 at the level 1/2.
    """
    row, start, width = pieces[:, np.lexsort(pieces[1::-1])]
    row = row.astype(np.intp)
    count = np.bincount(row, minlength=n)
    column = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    level, share = np.full((2, n, count.max(), NODES_PER_PIECE), [[[[0.5]]], [[[0.0]]]])
    node, weight = quantile_nodes(NODES_PER_PIECE)
    level[row, column] = start[:, None] + width[:, None] * node
    share[row, column] = width[:, None] * weight
    return level.reshape(n, -1), share.reshape(n, -1)


def crps_nodes(
    y: np.ndarray, quantiles: np.ndarray, level: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """2 Σ_k π_k ρ_(u_k)(y − F⁻¹(u_k)) for nodes u (n, m) with weights π and quantiles F⁻¹(u).

    Nodes that rounding has moved to 0 or 1, where quantiles may be infinite, contribute nothing:
    the loss tends to 0 there.
    """
    is_inner = (level > 0) & (level < 1)
    gap = np.where(is_inner, y[:, None] - np.where(is_inner, quantiles, 0.0), 0.0)
    return 2 * np.einsum("nm,nm->n", weight, pinball(gap, level))


class StandardLaw(NamedTuple):
    """A symmetric distribution at location 0 and scale 1.

    These are its cdf, the logarithm and the inverse of it, and ∫ F(x)² dx up to z.
    """

    cdf: Callable[[np.ndarray], np.ndarray]
    log_cdf: Callable[[np.ndarray], np.ndarray]
    ppf: Callable[[np.ndarray], np.ndarray]
    squared_cdf_integral: Callable[[np.ndarray], np.ndarray]


def _normal_integral(z: np.ndarray) -> np.ndarray:
    """∫ Φ(x)² dx over x from −∞ to z: z Φ(z)² + 2 φ(z) Φ(z) − Φ(√2 z)/√π, and 0 for z = −∞."""
    z = np.maximum(z, -_DENSITY_REACH)
    below = ndtr(z)
    return z * below**2 + 2 * normal_density(z) * below - ndtr(np.sqrt(2) * z) / _SQRT_PI


def _logistic_integral(z: np.ndarray) -> np.ndarray:
    """∫ Λ(x)² dx over x from −∞ to z: log(1 + eᶻ) − Λ(z), as Λ² = Λ − Λ'."""
    return -log_expit(-z) - expit(z)


NORMAL = StandardLaw(ndtr, log_ndtr, ndtri, _normal_integral)
LOGISTIC = StandardLaw(expit, log_expit, logit, _logistic_integral)


def crps_between(
    y: np.ndarray,
    location: np.ndarray,
    scale: np.ndarray,
    low: float | np.ndarray,
    high: float | np.ndarray,
    law: StandardLaw,
) -> np.ndarray:
    """∫ (F(t) − 1[y ≤ t])² dt over t from low to high, which may be infinite, or one for each y."""
    integral, z = law.squared_cdf_integral, (np.clip(y, low, high) - location) / scale
    value = integral(z) + integral(-z)
    for sign, end in ((1, low), (-1, high)):
        if np.isfinite(end).any():
            value -= integral(sign * (end - location) / scale)
    return scale * value


def crps_above_with_slopes(
    y: np.ndarray, location: np.ndarray, scale: np.ndarray, low: float, law: StandardLaw
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`crps_between` from low up, with its derivatives in location and scale, for y ≥ low."""
    value = crps_between(y, location, scale, low, np.inf, law)
    z, first = (y - location) / scale, np.maximum((low - location) / scale, -_FAR)
    slope, censored = 2 * law.cdf(z) - 1, law.cdf(first) ** 2
    return value, censored - slope, value / scale - z * slope + first * censored


def crps_mixture_between(
    y: np.ndarray,
    mean: np.ndarray,
    std: np.ndarray,
    weight: np.ndarray,
    low: float | np.ndarray,
    high: float | np.ndarray,
) -> np.ndarray:
    """`crps_between` for mixtures of normals; mean, std and weight (n, c).

    Gauss–Legendre quadrature with 16 nodes on pieces of at most 2 standard deviations of any
    component that varies there: right to 1e-12. Cost O(n c²).
    """
    steps = np.linspace(-_CDF_REACH, _CDF_REACH, 10)
    ends = (mean[:, :, None] + std[:, :, None] * steps).reshape(len(mean), -1)
    low, high = (np.reshape(end, (-1, 1)) for end in (low, high))  # (1, 1) or (n, 1)
    ends = np.sort(np.clip(np.column_stack([ends, y]), low, high), axis=1)  # (n, 10 c + 1)
    node, node_weight = gauss_legendre(16)
    score = np.zeros(len(y))
    for first, last in itertools.pairwise(ends.T):
        t = first[:, None] + (last - first)[:, None] * node  # (n, 16)
        sign = np.where(first >= y, -1.0, 1.0)  # to the right of y it is the survival function
        cdf = np.zeros_like(t)
        for m, s, w in zip(mean.T, std.T, weight.T, strict=True):
            cdf += w[:, None] * ndtr((sign / s)[:, None] * (t - m[:, None]))
        score += (last - first) * (cdf**2 @ node_weight)
    return score


def crps_ppf_between(
    y: np.ndarray,
    ppf: Callable[[np.ndarray, np.ndarray], np.ndarray],
    levels: np.ndarray,
    low: float | np.ndarray,
    high: float | np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """`crps_between` for a quantile function; and a mask, True where its error may exceed 1e-6.

    `ppf` takes levels (m, q) and the rows (m,) to which they belong. The law of min(max(Y, low),
    high) has quantiles clipped in the same way, which have kinks at the levels F(low) and F(high);
    the pinball loss has one at F(y). So `levels` (n, k) are these, as far as the thresholds are
    finite.
    """
    low, high = np.broadcast_to(low, len(y)), np.broadcast_to(high, len(y))
    y = np.clip(y, low, high)

    def loss(level: np.ndarray, row: np.ndarray) -> np.ndarray:
        quantiles = np.clip(ppf(level, row), low[row, None], high[row, None])
        return 2 * pinball(y[row, None] - quantiles, level)

    score, is_rough, _ = integrate_levels(loss, levels)
    return score[0], is_rough


def threshold_cells(
    points: np.ndarray, mass: np.ndarray, steps: np.ndarray, n_cells: int
) -> tuple[np.ndarray, np.ndarray]:
    """Midpoints and widths of cells between the least and the greatest outcome, (m,) each.

    Parameters: sorted distinct outcomes, the weight of each, and the points at which forecasts
    have steps. Half of the cells' edges follow the weight, and half are evenly spaced: no cell is
    wide, or holds much weight. Few outcomes and steps are edges themselves, so that nothing jumps
    within cells.
    """
    share = np.cumsum(mass) - mass / 2
    share = (share - share[0]) / (share[-1] - share[0])
    even = (points - points[0]) / (points[-1] - points[0])
    edges = np.interp(np.linspace(0, 1, n_cells + 1), (share + even) / 2, points)
    steps = np.unique(steps[(steps > points[0]) & (steps < points[-1])])
    jumps = [values for values in (points, steps) if len(values) <= _MAX_EDGES]
    edges = np.unique(np.concatenate([edges, *jumps]))
    return edges[:-1] + np.diff(edges) / 2, np.diff(edges)


def isotonic_brier_score(
    proba: np.ndarray, complement: np.ndarray, event: np.ndarray, weight: np.ndarray
) -> float:
    """The least weighted Brier score of all nondecreasing functions of the probability (n,).

    The complement is 1 minus the probability, and keeps the digits of those near 1. Probabilities
    that differ by rounding only are tied. In a block of equal values v of the isotonic fit, v is
    the mean of the events, so that the score is that of v(1 − v).
    """
    order = np.lexsort((-complement, np.minimum(proba, 0.5)))
    is_new = _is_above_previous(proba[order]) | _is_above_previous(complement[order[::-1]])[::-1]
    start = np.flatnonzero(np.append(True, is_new))
    mass = np.add.reduceat(np.stack([weight, weight * event])[:, order], start, axis=1)
    value = np.clip(isotonic_regression(mass[1] / mass[0], weights=mass[0]).x, 0.0, 1.0)
    return float(mass[0] @ (value * (1 - value)))


def _is_above_previous(ordered: np.ndarray) -> np.ndarray:
    """True where sorted probabilities (n,) increase by more than rounding, (n − 1,)."""
    return np.diff(ordered) > _PROBABILITY_RTOL * np.minimum(ordered[1:], _PROBABILITY_RTOL)
