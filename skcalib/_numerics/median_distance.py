"""Median distance between the points of a sample, over all pairs i < j with weights w_i w_j.

If the weight can be halved between two neighbouring distances, the median is their mean. So it is
continuous in the points.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from .sorting import cumulate, pool_ties

# Up to this many points in more than one dimension, the median is that of all pairs.
MAX_MEDIAN_POINTS = 2000

# The median counts as at least this fraction of the root mean square distance.
_MIN_MEDIAN_RATIO = 0.1

# Sums of weights that are half of the total differ from it by less than this fraction.
_HALF_WEIGHT_RTOL = 1e-14

# The width of the cells of a grid. Points in one cell are merged before a subset is drawn.
_CELL_WIDTH = 2.0**-24

# Entries of a block (rows, K) of points that are hashed at once.
_MAX_HASHED_ENTRIES = 2**20

# The increment of the generator SplitMix64, and 1.
_ONE, _GOLDEN = np.uint64(1), np.uint64(0x9E3779B97F4A7C15)


def median_distance(
    points: np.ndarray, weight: np.ndarray, metric: str, square: np.ndarray | None = None
) -> float:
    """The weighted median distance, but at least a tenth of the root mean square distance.

    Parameters: points (n,) on a line, or (n, K) with the name of a metric in SciPy; weight (n,),
    positive; on a line also `square` (n,), the sums of squared weights of the samples that a point
    stands for, if there are several. The distance is 0 if all points are equal.

    On a line the median is exact, at O(n log n). In more dimensions it is exact for up to
    MAX_MEDIAN_POINTS samples; of more, a subset stands for all (see `_subset`).
    """
    largest = weight.max()
    weight = weight / largest
    if points.ndim == 1:
        return _median_distance_1d(points, weight, None if square is None else square / largest**2)
    at_zero = 0.0
    if len(points) > MAX_MEDIAN_POINTS:
        points, weight, at_zero = _subset(points, weight)
    return median_of_pairs(pdist(points, metric), weight, at_zero)


def median_of_pairs(distance: np.ndarray, weight: np.ndarray, at_zero: float = 0.0) -> float:
    """The `median_distance` by the distances of all pairs i < j, in the order of SciPy.

    Further pairs of the weight `at_zero` have the distance 0.
    """
    if len(distance) == 0:
        return 0.0
    if at_zero == 0 and (weight == weight[0]).all():
        floor = _MIN_MEDIAN_RATIO * np.sqrt(np.mean(distance**2))
        middle = len(distance) // 2
        distance.partition(middle)  # several times faster than np.median
        below = distance[middle] if len(distance) % 2 else distance[:middle].max()
        return float(max((below + distance[middle]) / 2, floor))
    first, second = np.triu_indices(len(weight), 1)
    pairs = weight[first] * weight[second]
    spread = np.sqrt(pairs @ distance**2 / (pairs.sum() + at_zero))
    return max(_weighted_median(distance, pairs, at_zero), _MIN_MEDIAN_RATIO * float(spread))


def pair_weight(weight: np.ndarray) -> Any:
    """Σ_{i≠j} w_i w_j along the last axis.

    It avoids the cancellation in (Σ w)² − Σ w² where one weight is almost everything.
    """
    before = np.cumsum(weight[..., :-1], axis=-1)
    return 2 * np.einsum("...i,...i->...", weight[..., 1:], before)


def _weighted_median(distance: np.ndarray, pairs: np.ndarray, at_zero: float) -> float:
    """The median of distances with weights `pairs`, and of a distance 0 with weight `at_zero`."""
    order = np.argsort(distance)
    distance = np.append(0.0, distance[order])
    within = at_zero + cumulate(pairs[order])
    half = within[-1] / 2
    lower = np.searchsorted(within, half * (1 - _HALF_WEIGHT_RTOL))
    upper = np.searchsorted(within, half * (1 + _HALF_WEIGHT_RTOL), side="right")
    return float(distance[lower] + distance[upper]) / 2


# On a line


def _median_distance_1d(points: np.ndarray, weight: np.ndarray, square: np.ndarray | None) -> float:
    """The median distance of points (n,) with weights (n,), but at least the floor.

    A distance t is described by what each of the sorted distinct points (m,) reaches: the index
    after the last point that is at most t to the right of it, (m,). The weight of the pairs within
    t follows from cumulative sums. They leave out the heaviest point, beside which rounding could
    hide the others.
    """
    total = pair_weight(weight) / 2
    if square is not None:  # pairs of the samples that one row stands for
        total += float(np.sum(np.maximum(weight**2 - square, 0.0))) / 2
    points, mass = pool_ties(points, weight)
    if len(points) == 1:
        return 0.0
    heaviest = np.argmax(mass)
    centred = points - points[heaviest]  # keeps the digits if one sample outweighs all others
    centred -= mass @ centred / mass.sum()
    spread = float(np.sqrt(mass.sum() * (mass @ centred**2) / total))
    if spread == 0:  # the squares underflow
        return 0.0
    # at most half of the weight is farther than `high`
    low, high = _MIN_MEDIAN_RATIO * spread, 1.5 * spread
    tied = max(total - pair_weight(mass) / 2, 0.0)  # pairs of samples at the same point
    light = mass.copy()
    light[heaviest] = 0
    before = cumulate(light)

    def reach(distance: float) -> tuple[np.ndarray, float]:
        """The index that each point reaches, (m,), and the weight of the pairs within reach."""
        stop = np.searchsorted(points, points + distance, side="right")
        while True:  # sums and differences are rounded differently; differences decide
            is_short = stop < len(points)
            is_short &= points[np.minimum(stop, len(points) - 1)] - points <= distance
            is_long = points[stop - 1] - points > distance
            if not (is_short.any() or is_long.any()):
                break
            stop += is_short
            stop -= is_long
        start = np.count_nonzero(points[heaviest] - points[:heaviest] > distance)
        with_heaviest = mass[heaviest] * (before[stop[heaviest]] - before[start])
        return stop, tied + with_heaviest + light @ (before[stop] - before[1:])

    enough, above_half = total / 2 * (1 - _HALF_WEIGHT_RTOL), total / 2 * (1 + _HALF_WEIGHT_RTOL)
    weight_low = reach(low)[1]
    if weight_low > above_half:
        return low
    if weight_low < enough:
        lower = _select_distance(points, mass, reach, enough, low, high)
    else:
        lower = 0.0 if tied >= enough else _select_distance(points, mass, reach, enough, 0.0, low)
    stop, weight_lower = reach(lower)
    if weight_lower > above_half:
        return max(lower, low)
    is_inside = stop < len(points)
    upper = float(np.min(points[stop[is_inside]] - points[is_inside]))
    if reach(upper)[1] < above_half:  # its weight is next to none
        upper = _select_distance(points, mass, reach, above_half, upper, high)
    return max((lower + upper) / 2, low)


def _select_distance(
    points: np.ndarray, mass: np.ndarray, reach: Callable, weight: float, low: float, high: float
) -> float:
    """The least distance in (low, high] within which pairs of this total weight lie.

    The interval is cut where linear interpolation puts that distance. If more than half of it is
    left, the next cut is in the middle. This goes on until few pairs are left in the interval.
    """
    from_low, weight_low = reach(low)
    from_high, weight_high = reach(high)
    halve = False
    while np.sum(from_high - from_low) > 4 * len(points):
        share = 0.5 if halve else (weight - weight_low) / (weight_high - weight_low)
        cut = low + (high - low) * min(max(share, 0.01), 0.99)
        if not low < cut < high:
            return high  # no number lies between
        from_cut, weight_cut = reach(cut)
        width = high - low
        if weight_cut < weight:
            low, from_low, weight_low = cut, from_cut, weight_cut
        else:
            high, from_high, weight_high = cut, from_cut, weight_cut
        halve = not halve and high - low > width / 2
    count = from_high - from_low  # pairs that are left for each first point
    first = np.repeat(np.arange(len(count)), count)
    second = np.arange(len(first)) + np.repeat(from_high - np.cumsum(count), count)
    distance = points[second] - points[first]
    order = np.argsort(distance)
    cumulated = weight_low + np.cumsum((mass[first] * mass[second])[order])
    k = min(int(np.searchsorted(cumulated, weight)), len(order) - 1)
    return float(distance[order[k]])


# In more dimensions


def _subset(points: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """A subset of at most MAX_MEDIAN_POINTS points, their weights, and the weight of merged pairs.

    The last is the weight of all pairs of samples that were merged into the same point.

    Samples in the same cell of a grid are merged into their weighted mean. If there are still too
    many points, a priority sample is drawn (Duffield, Lund and Thorup 2007). Each point gets a
    pseudo-random number u in (0, 1], and the points with the largest ratios of weight to u are
    kept. Points that are lighter than the largest ratio left out, t, get the weight t. The numbers
    u are hashes of the cells, and the same for all permutations of a vector. So the subset does not
    depend on the order of the samples or of the classes. It does not depend on rounding errors
    either, unless one moves a point into another cell.
    """
    cell, uniform = _hashes(points)
    _, first, index = np.unique(cell, return_index=True, return_inverse=True)
    mass = np.bincount(index, weights=weight)
    same = np.maximum(mass**2 - np.bincount(index, weights=weight**2), 0.0) / 2
    selected, adjusted = np.arange(len(first)), mass
    if len(first) > MAX_MEDIAN_POINTS:
        ratio = mass / uniform[first]
        order = np.argsort(-ratio, kind="stable")
        threshold = ratio[order[MAX_MEDIAN_POINTS]]
        selected = np.flatnonzero(ratio > threshold)
        if len(selected) < 2:  # all are permutations of one vector
            selected = order[:MAX_MEDIAN_POINTS]
        adjusted = np.maximum(mass[selected], threshold)
    merged = points[first[selected]].astype(np.float64)
    position = np.full(len(first), -1)
    position[selected] = np.arange(len(selected))
    position = position[index]  # of each sample among the points
    is_shared = np.bincount(index) > 1
    rows = np.flatnonzero((position >= 0) & is_shared[index])
    moves = points[rows] - merged[position[rows]]  # digits of near points are kept
    moves *= (weight[rows] / mass[index[rows]])[:, None]
    np.add.at(merged, position[rows], moves)
    return merged, adjusted, float(same[selected] @ (adjusted / mass[selected]))


def _hashes(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A hash of the cell of each point (n, K), (n,), and a hash in (0, 1] of its unordered cell,
    (n,).

    The edges of the cells keep away from 0, 1 and short decimals.
    """
    position = (np.arange(points.shape[1], dtype=np.uint64) + _ONE) * _GOLDEN
    cell, key = np.empty((2, len(points)), dtype=np.uint64)
    n_rows = max(1, _MAX_HASHED_ENTRIES // points.shape[1])
    for i in range(0, len(points), n_rows):
        rows = slice(i, i + n_rows)
        grid = (points[rows].astype(np.float64) / _CELL_WIDTH + 0.618034).astype(np.uint64)
        cell[rows] = _splitmix64(grid + position).sum(axis=1)
        key[rows] = _splitmix64(_splitmix64(grid).sum(axis=1))
    return cell, ((key >> np.uint64(11)) + _ONE) * 2.0**-53


def _splitmix64(bits: np.ndarray) -> np.ndarray:
    """The finalizer of the generator SplitMix64, of integers modulo 2⁶⁴."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
