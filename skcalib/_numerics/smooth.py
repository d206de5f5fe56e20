"""Maximisation over 1-Lipschitz functions bounded by 1, for predictions on a line.

The linear program of Theorem 7.14 of Błasiok, Gopalan, Hu & Nakkiran (2023) asks for the largest
Σ_k c_k z_k with |z_k| ≤ 1 and |z_{k+1} − z_k| ≤ d_k, where c_k is the signed mass at the k-th
distinct prediction and d_k the distance to the next. Its dual moves mass along the path of
predictions at a cost of d_k per unit, or discards it at a cost of 1. The path is at most 1 long,
so discarding a positive and a negative unit (cost 2) never beats matching them (cost ≤ 1): exactly
|Σ c_k| is discarded, all of one sign. With F the cumulative mass and G what has been discarded so
far,

    maximum = C + min Σ_k d_k |F_k − G_k|   over   0 ≤ G_1 ≤ … ≤ G_{m−1} ≤ C,

where C = Σ c_k ≥ 0 (flip all signs otherwise): a bounded isotonic regression in L1.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from .sorting import cumulate, first_of_ties, order_within_groups

# Items per block from which on collapsing runs of items saves more time than it takes.
_ITEMS_WORTH_COLLAPSING = 96

# Problems share their steps up to this many items, which stay in the cache.
_MAX_ITEMS_AT_ONCE = 2**16


def lipschitz_maxima(problems: Iterable[tuple[np.ndarray, np.ndarray]]) -> list[float]:
    """max Σ mass·f(points) over 1-Lipschitz f with |f| ≤ 1, of each problem, for points in [0, 1].

    Points (m,) are sorted and distinct, with the signed mass (m,) at each. Cost O(m log m). Small
    problems share their steps. Problems are taken from the iterable as they are solved, so that few
    are in memory at once.
    """
    maxima: list[float] = []
    rows: list[tuple[np.ndarray, np.ndarray]] = []
    length = 0
    for points, mass in problems:
        length = max(length, len(points))
        if rows and length * (len(rows) + 1) > _MAX_ITEMS_AT_ONCE:
            maxima += _maxima_of_rows(rows)
            rows, length = [], len(points)
        rows.append((points, mass))
    return maxima + _maxima_of_rows(rows) if rows else maxima


def _maxima_of_rows(rows: list[tuple[np.ndarray, np.ndarray]]) -> list[float]:
    """The maxima of problems that fit into one table; shorter ones end with distances of 0."""
    shape = len(rows), max(len(points) for points, _ in rows)
    flow, distance = np.empty(shape), np.zeros(shape)
    for row, (points, mass) in enumerate(rows):
        n = len(points)
        np.cumsum(mass, out=flow[row, :n])
        flow[row, n:] = flow[row, n - 1]
        np.subtract(points[1:], points[:-1], out=distance[row, : n - 1])
    total, flow, distance = flow[:, -1].copy(), flow[:, :-1], distance[:, :-1]
    flow *= np.copysign(1.0, total)[:, None]
    np.abs(total, out=total)
    gap = bounded_isotonic_l1(flow, distance, total)
    np.subtract(flow, gap, out=gap)
    np.abs(gap, out=gap)
    total += np.einsum("ij,ij->i", distance, gap)
    return total.tolist()


def lipschitz_maximiser(points: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Values (m,) at the points of a function that attains the maximum of `lipschitz_maxima`.

    By complementary slackness, the function is 1 where mass is discarded, that is where G
    increases. It falls as steeply as it may where F exceeds G, rises as steeply where F is below G,
    and has any slope where they are equal. The largest function with these slopes and values of at
    most 1 is the smaller of two: the largest with these slopes from the left and the largest from
    the right. It is 1 somewhere and the points are at most 1 apart, so it is nowhere below 0.
    """
    flow = np.cumsum(mass)
    sign = -1.0 if flow[-1] < 0 else 1.0
    flow *= sign
    total, flow = flow[-1], flow[:-1]
    distance = np.diff(points)  # (m - 1,)
    excess = flow - bounded_isotonic_l1(flow[None], distance[None], total)[0]
    rise = np.where(excess > 0, -distance, distance)  # the most that it may rise
    fall = np.where(excess < 0, -distance, distance)  # the most that it may fall
    from_left = _largest_below_one(rise)
    from_right = _largest_below_one(fall[::-1])[::-1]
    return sign * np.minimum(from_left, from_right)


def _largest_below_one(rise: np.ndarray) -> np.ndarray:
    """The largest z ≤ 1 with z_{k+1} − z_k ≤ rise_k, (m,)."""
    climb = cumulate(rise)
    return 1 + (climb - np.maximum.accumulate(climb))


class _Items(NamedTuple):
    """Elements of the regression, or two stand-ins for a run of them."""

    weight: np.ndarray  # (m,), positive
    rank: np.ndarray  # (m,), rank of the value among the distinct values
    end: np.ndarray  # (m,), index after the last element that the item stands for


class _Blocks(NamedTuple):
    """Consecutive groups of items whose fitted values lie between two ranks."""

    start: np.ndarray  # (b,), first item
    length: np.ndarray  # (b,), number of items, at least one
    origin: np.ndarray  # (b,), first element
    low: np.ndarray  # (b,), lowest possible rank of the fit
    high: np.ndarray  # (b,), highest possible rank of the fit


def bounded_isotonic_l1(
    values: np.ndarray, weights: np.ndarray, upper: np.ndarray | float
) -> np.ndarray:
    """argmin Σ weights·|values − G| over 0 ≤ G_1 ≤ … ≤ G_m ≤ upper for each row, (R, m).

    The upper bounds are (R,). The unbounded solution clipped to the bounds solves the bounded
    problem, so the values are clipped first. A problem falls apart wherever no value before exceeds
    a value after; a value that stands alone then is its own fit. Cost O(R m log m).
    """
    fit = np.clip(values, 0.0, np.reshape(upper, (-1, 1)))
    is_start = np.ones(fit.shape, dtype=bool)
    lowest_after = np.minimum.accumulate(fit[:, :0:-1], axis=1)[:, ::-1]
    highest_before = np.maximum.accumulate(fit[:, :-1], axis=1)
    np.less_equal(highest_before, lowest_after, out=is_start[:, 1:])
    joined = np.logical_not(is_start)
    joined[:, :-1] |= joined[:, 1:]  # the first of a block, too
    if joined.any():
        numbers = np.arange(len(fit), dtype=np.min_scalar_type(len(fit)))
        row = np.repeat(numbers, np.count_nonzero(joined, axis=1))
        fit[joined] = _fit_of_blocks(fit[joined], weights[joined], is_start[joined], row)
    return fit


def _fit_of_blocks(
    values: np.ndarray, weights: np.ndarray, is_start: np.ndarray, row: np.ndarray
) -> np.ndarray:
    """The fit of blocks that begin at some of the values, which belong to ascending rows.

    Divide and conquer over the ranks of the values halves the range of ranks of every block at
    once: G is at most the middle rank up to the lowest prefix sum of ±weights (+ where the value is
    above the middle) and above it from there on. There are at most log2(m) rounds. An element whose
    value is outside the range of its block keeps its sign for good; runs of such elements collapse
    to two items, which makes the rounds shorter and shorter.
    """
    levels, rank = _ranks(values, row)
    start = np.flatnonzero(is_start).astype(rank.dtype)
    items = _Items(weights, rank, np.arange(1, len(rank) + 1, dtype=rank.dtype))
    low, high = np.minimum.reduceat(rank, start), np.maximum.reduceat(rank, start)
    blocks = _Blocks(start, np.diff(start, append=rank.dtype.type(len(rank))), start, low, high)
    # the rank of G, noted where a finished block begins
    fit = np.zeros(len(values), dtype=rank.dtype)
    while True:
        finished = blocks.low == blocks.high
        fit[blocks.origin[finished]] = blocks.low[finished]
        if finished.all():
            break
        if finished.any():
            items, blocks = _keep_blocks(items, blocks, ~finished)
        if len(items.rank) > _ITEMS_WORTH_COLLAPSING * len(blocks.start):
            items, blocks = _collapse(items, blocks, above_all=len(levels))
        blocks = _split(items, blocks)
    return levels[np.maximum.accumulate(fit, out=fit)]


def _ranks(values: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values of each row, sorted within rows, and for each value its place among them."""
    order = order_within_groups(values, row)
    ordered = values[order]
    is_new = first_of_ties(ordered)
    is_new[1:] |= row[1:] != row[:-1]
    dtype = np.int32 if len(values) < 2**31 - 1 else np.int64
    rank = np.empty(len(values), dtype=dtype)
    rank[order] = np.cumsum(is_new, dtype=dtype) - 1
    return ordered[is_new], rank


def _keep_blocks(items: _Items, blocks: _Blocks, keep: np.ndarray) -> tuple[_Items, _Blocks]:
    mask = np.repeat(keep, blocks.length)
    length = blocks.length[keep]
    items = _Items(items.weight[mask], items.rank[mask], items.end[mask])
    start = np.cumsum(length) - length
    return items, _Blocks(start, length, blocks.origin[keep], blocks.low[keep], blocks.high[keep])


def _lowest_prefix(
    signed: np.ndarray, start: np.ndarray, length: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each segment the lowest non-empty prefix sum, the first place where it ends, and the sum.

    Overwrites `signed`.
    """
    prefix = np.cumsum(signed, out=signed)  # over all segments
    lowest = np.minimum.reduceat(prefix, start)
    before = prefix[start - 1]
    before[0] = 0.0
    whole = prefix[start + length - 1] - before
    is_lowest = np.flatnonzero(prefix == np.repeat(lowest, length))
    return lowest - before, is_lowest[np.searchsorted(is_lowest, start)], whole


def _signed(weight: np.ndarray, is_negative: np.ndarray) -> np.ndarray:
    signed = weight.copy()
    return np.negative(signed, out=signed, where=is_negative)


def _collapse(items: _Items, blocks: _Blocks, above_all: int) -> tuple[_Items, _Blocks]:
    """Replace each run of settled items by two: up to its lowest prefix sum, and the rest.

    The first part acts as a value below its block's range, the second as one above it.
    """
    weight, rank, end = items
    below = rank <= np.repeat(blocks.low, blocks.length)
    settled = rank >= np.repeat(blocks.high, blocks.length)
    settled |= below

    opens = settled.copy()
    opens[1:] &= ~settled[:-1]
    opens[blocks.start] = settled[blocks.start]
    closes = settled.copy()
    closes[:-1] &= ~settled[1:] | opens[1:]
    first, last = np.flatnonzero(opens), np.flatnonzero(closes)
    if len(first) == 0:
        return items, blocks
    length = last - first + 1
    start = np.cumsum(length) - length  # among the settled items only
    signed = _signed(weight[settled], below[settled])
    lowest, position, whole = _lowest_prefix(signed, start, length)

    np.minimum(lowest, 0.0, out=lowest)  # the empty prefix counts
    turn = first + position - start
    descends = lowest < 0
    rises = ~(descends & (turn == last))
    turn, last = turn[descends], last[rises]
    keep = np.logical_not(settled, out=settled)
    keep[turn] = True
    keep[last] = True
    n_kept = np.cumsum(keep, dtype=rank.dtype)
    items = _Items(weight[keep], rank[keep], end[keep])
    turn, last = n_kept[turn] - 1, n_kept[last] - 1
    items.weight[turn], items.rank[turn] = -lowest[descends], -1
    items.weight[last], items.rank[last] = (whole - lowest)[rises], above_all
    n_left = np.diff(n_kept[blocks.start + blocks.length - 1], prepend=rank.dtype.type(0))
    start = np.cumsum(n_left, dtype=n_left.dtype) - n_left
    return items, blocks._replace(start=start, length=n_left)


def _split(items: _Items, blocks: _Blocks) -> _Blocks:
    """Halve the range of ranks of every block, at the lowest prefix sum of its signed weights."""
    start, length, origin, low, high = blocks
    middle = (low + high) // 2
    signed = _signed(items.weight, items.rank <= np.repeat(middle, length))
    lowest, position, _ = _lowest_prefix(signed, start, length)
    n_lower = np.where(lowest < 0, position + 1 - start, 0)  # the empty prefix counts
    right_origin = np.where(n_lower > 0, items.end[start + n_lower - 1], origin)
    halves = np.empty((5, len(start), 2), dtype=start.dtype)
    halves[..., 0] = start, n_lower, origin, low, middle
    halves[..., 1] = start + n_lower, length - n_lower, right_origin, middle + 1, high
    halves = halves.reshape(5, -1)
    return _Blocks(*halves[:, halves[1] > 0])
