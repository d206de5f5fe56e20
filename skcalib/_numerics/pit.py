"""The gap between probability integral transforms (PITs) and the uniform distribution.

The gap is d(p) = F̂(p) − p for p in [0, 1], where F̂ = Σ_i w_i G_i is the distribution of the PITs.
An outcome of a continuous forecast has a PIT u_i, and G_i is a step. One of positive probability
has an interval of PITs, over which G_i rises evenly: PITs drawn from it are averaged exactly.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from .crps import normal_density
from .sorting import cumulate, pool_ties

# Narrower intervals count as steps: on [½, 1] doubles are farther apart.
_MIN_RAMP_WIDTH = 2.0**-60

# Equal levels and PITs differ by less than this fraction, as they are rounded.
_PIT_LEVEL_RTOL = 1e-9

# The mean of a normal score over a narrower interval is replaced by the score at its middle.
_MIN_SCORE_WIDTH = 2.0**-20

# PITs are clipped to between this and 1 minus it, so that normal scores are finite.
MIN_PIT = 2.0**-53

# Slopes of intervals are summed together if the widths differ by less than 2 to this power.
_OCTAVES_PER_GROUP = 5


class PitLaw(NamedTuple):
    """The law of each PIT: uniform on [0, start] with probability `inner`, else on [start, stop].

    Each (n,). Without `inner` it is uniform on [start, stop], or a step if these are equal.
    """

    inner: np.ndarray
    start: np.ndarray
    stop: np.ndarray


class PitCurve(NamedTuple):
    """F̂ with left and right limits at sorted knots from 0 to 1; linear between them."""

    knots: np.ndarray  # (m,)
    before: np.ndarray  # (..., m), left limits
    after: np.ndarray  # (..., m), right limits


def pit_laws(lower: np.ndarray, upper: np.ndarray, *, folded: bool = False) -> PitLaw:
    """The laws of PITs u uniform on [lower, upper] (n,), or of |2u − 1| if folded.

    |2u − 1| is the probability of the smallest central interval that holds the outcome. If ½ lies
    inside [lower, upper], both halves are folded onto [0, 1]: where they overlap, the density is
    twice that of the rest.
    """
    if not folded:
        return PitLaw(np.broadcast_to(0.0, lower.shape), lower, upper)
    ends = np.abs(2 * lower - 1), np.abs(2 * upper - 1)
    start, stop = np.minimum(*ends), np.maximum(*ends)
    straddles = (lower < 0.5) & (upper > 0.5)
    inner = np.divide(start, upper - lower, out=np.zeros(lower.shape), where=straddles)
    return PitLaw(inner, start, stop)


def pit_cdf(law: PitLaw, level: float) -> np.ndarray:
    """G_i(level), (n,)."""
    rise = _rise(level, law.start, law.stop)
    if not law.inner.any():
        return rise
    return law.inner * _rise(level, np.zeros_like(law.start), law.start) + (1 - law.inner) * rise


def _rise(level: float, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """The distribution function of the uniform law on [start, stop] at the level, (n,)."""
    is_reached = stop <= level * (1 + _PIT_LEVEL_RTOL)
    width = stop - start
    is_ramp = width >= _MIN_RAMP_WIDTH
    if not is_ramp.any():
        return is_reached.astype(np.float64)
    share = np.divide(level - start, width, out=np.zeros(start.shape), where=is_ramp)
    return np.where(is_reached, 1.0, np.clip(share, 0.0, 1.0))


def normal_scores(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """z = Φ⁻¹(u), (z² − 1)/√2 and (z³ − 3z)/√6, averaged over u in [lower, upper] (...), (3, ...).

    If u is uniform, their means are 0, and without intervals they are uncorrelated and have the
    variance 1. With the normal density φ, the antiderivatives are −φ(z), −zφ(z) and −(z² − 1)φ(z).
    """
    z = ndtri(np.clip((lower + upper) / 2, MIN_PIT, 1 - MIN_PIT))
    scores = np.stack([z, z**2 - 1, z**3 - 3 * z])
    width = upper - lower
    wide = width > _MIN_SCORE_WIDTH
    if wide.any():
        ends = ndtri(np.clip([lower[wide], upper[wide]], MIN_PIT, 1 - MIN_PIT))
        density = normal_density(ends)
        antiderivatives = [density, ends * density, (ends**2 - 1) * density]
        scores[:, wide] = -np.diff(antiderivatives, axis=1)[:, 0] / width[wide]
    scores[1] /= np.sqrt(2)
    scores[2] /= np.sqrt(6)
    return scores


def pit_square_integrals(law: PitLaw) -> np.ndarray:
    """∫ (G_i(p) − p)² dp, (n,): (u³ + (1 − u)³)/3 for a step at u."""
    inner, start, stop = law
    first, last = inner - start, 1 - stop  # the gaps before start and behind stop
    middle = (stop - start) * (first * first + first * last + last * last)
    return (start * first * first + middle + last**3) / 3


def pit_curve(law: PitLaw, weight: np.ndarray) -> PitCurve:
    """F̂ for weights (..., n) that sum to 1.

    The cost is O(n log n) for each vector of weights.
    """
    if (law.stop - law.start < _MIN_RAMP_WIDTH).all() and not law.inner.any():
        return _step_curve(law.stop, weight)
    halves = np.flatnonzero(law.inner)
    start = np.concatenate([np.zeros(len(halves)), law.start])
    stop = np.concatenate([law.start[halves], law.stop])
    split = [weight[..., halves] * law.inner[halves], weight * (1 - law.inner)]
    mass = np.concatenate(split, axis=-1)
    knots = np.unique(np.concatenate([[0.0, 1.0], start, stop]))
    is_step = stop - start < _MIN_RAMP_WIDTH
    at = np.zeros((*weight.shape[:-1], len(knots)))
    jumps, size = pool_ties(stop[is_step], mass[..., is_step])
    at[..., np.searchsorted(knots, jumps)] = size
    below = np.cumsum(at, axis=-1) - at
    below += _sum_of_ramps(knots, start[~is_step], stop[~is_step], mass[..., ~is_step])
    return PitCurve(knots, below, below + at)


def _step_curve(points: np.ndarray, weight: np.ndarray) -> PitCurve:
    """The curve of steps; ties need no pooling, as no piece between them has a length."""
    n = len(points)
    if weight.ndim == 1 and (weight == weight[0]).all():
        knots, total = np.sort(points), np.arange(n + 1) / n
    else:
        order = np.argsort(points)
        knots, total = points[order], cumulate(weight[..., order])
    ones = np.ones((*weight.shape[:-1], 1))
    return PitCurve(
        np.concatenate([[0.0], knots, [1.0]]),
        np.concatenate([np.zeros_like(ones), total], axis=-1),
        np.concatenate([total, ones], axis=-1),
    )


def _sum_of_ramps(
    points: np.ndarray, start: np.ndarray, stop: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Σ_i w_i clip((p − start_i)/(stop_i − start_i), 0, 1) at points (m,) for weights (..., n).

    Slopes are cumulated. Rounding errors of a steep slope, after its ramp has ended, could exceed a
    gentle slope. So only slopes of about the same size are cumulated together, and the sum is reset
    to 0 wherever no ramp is under way.
    """
    octave = np.frexp(stop - start)[1] // _OCTAVES_PER_GROUP
    total = np.zeros((*weight.shape[:-1], len(points)))
    for size in np.unique(octave):
        in_octave = octave == size
        total += _similar_ramps(points, start[in_octave], stop[in_octave], weight[..., in_octave])
    return total


def _similar_ramps(
    points: np.ndarray, start: np.ndarray, stop: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """`_sum_of_ramps` for widths of about the same size."""
    steep = weight / (stop - start)
    ends = np.concatenate([start, stop])
    order = np.argsort(ends)
    ends = np.append(0.0, ends[order])
    slope = cumulate(np.concatenate([steep, -steep], axis=-1)[..., order])
    under_way = np.cumsum(np.append(0, np.where(order < len(start), 1, -1)))
    last_idle = np.maximum.accumulate(np.where(under_way == 0, np.arange(len(ends)), 0))
    slope -= slope[..., last_idle]
    height = cumulate(slope[..., :-1] * np.diff(ends))
    last = np.searchsorted(ends, points, side="right") - 1
    return height[..., last] + slope[..., last] * (points - ends[last])


def _pieces(curve: PitCurve) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The length of each piece, (m − 1,), and the gap at its two ends, (..., m − 1) each."""
    knots, before, after = curve
    return np.diff(knots), after[..., :-1] - knots[:-1], before[..., 1:] - knots[1:]


def gap_integral(curve: PitCurve) -> float:
    """∫ |d(p)| dp of one curve.

    A piece of length h with gaps a and b at its ends contributes h|a + b|/2, and if their signs
    differ h min(|a|, |b|)²/(|a| + |b|) on top of that.
    """
    length, first, last = _pieces(curve)
    total = length @ np.abs(first + last) / 2
    crossing = np.flatnonzero(first * last < 0)
    first, last = np.abs(first[crossing]), np.abs(last[crossing])
    return float(total + length[crossing] @ (np.minimum(first, last) ** 2 / (first + last)))


def gap_square_integral(curve: PitCurve) -> np.ndarray:
    """∫ d(p)² dp for each curve, (...)."""
    length, first, last = _pieces(curve)
    return (first * first + first * last + last * last) @ length / 3


def largest_gap(curve: PitCurve) -> float:
    """sup |d(p)| of one curve."""
    _, first, last = _pieces(curve)
    return float(max(first.max(), -first.min(), last.max(), -last.min()))
