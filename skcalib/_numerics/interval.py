"""Partitions of the line into intervals: the best one, and the average over random shifts."""

import numpy as np

from .sorting import cumulate, first_of_ties, last_of_runs

# Cells in one block of ends of runs, or of their candidate starts.
_RUN_BLOCK_SIZE = 128

# Points in one stretch of the line; an interval moves over one stretch after the other.
_STRETCH_SIZE = 2**15

# Up to this number of distinct predictions the dynamic programme takes a second or two.
_MAX_CUTS = 100_000

# For more, it cuts only between cells by default. This precision makes about `_MAX_CUTS` cells.
_DEFAULT_PRECISION = 2 / _MAX_CUTS

# Values of partitions that differ by a smaller fraction are equal up to rounding.
PARTITION_RTOL = 1e-12


def optimal_partition(
    points: np.ndarray, weight: np.ndarray, precision: float | None = None
) -> np.ndarray:
    """Indices of the sorted distinct points at which the intervals of least error start, (r,).

    Points (m,) with the weight of each label (2, m); `precision` as in the metric.
    """
    total, mass = weight.sum(axis=0), _weighted_residuals(points, weight)
    if precision is None:
        precision = 0.0 if len(points) <= _MAX_CUTS else _DEFAULT_PRECISION
    if precision < PARTITION_RTOL:
        return best_partition(points, points, total, mass)[1]
    start = cell_starts(points, total, precision)
    last = points[last_of_runs(start, len(points))]
    total, mass = np.add.reduceat(total, start), np.add.reduceat(mass, start)
    return start[best_partition(points[start], last, total, mass)[1]]


def partition_errors(
    points: np.ndarray, weight: np.ndarray, start: np.ndarray
) -> tuple[float, float]:
    """Return the binned error and the mean width of intervals that start at the given indices."""
    extent = points[last_of_runs(start, len(points))] - points[start]
    error = np.abs(np.add.reduceat(_weighted_residuals(points, weight), start)).sum()
    return float(error), float(extent @ np.add.reduceat(weight.sum(axis=0), start))


def _weighted_residuals(points: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return weight[1] * (1 - points) - weight[0] * points


def cell_starts(points: np.ndarray, weight: np.ndarray, precision: float) -> np.ndarray:
    """Indices where cells of sorted points start that have at most this extent.

    Points (m,) with weights (m,) that sum to 1. Without its last point, a cell has at most this
    weight, too. There are at most 2/precision + 2 cells.
    """
    before = np.cumsum(weight) - weight
    is_first = np.ones(len(points), dtype=bool)
    is_first[1:] = np.diff(np.floor(points / precision)) > 0
    is_first[1:] |= np.diff(np.floor(before / precision)) > 0
    return np.flatnonzero(is_first)


def best_partition(
    first: np.ndarray, last: np.ndarray, weight: np.ndarray, mass: np.ndarray
) -> tuple[float, np.ndarray]:
    """min Σ_j |mass of I_j| + |I_j|·weight of I_j over the partitions into runs of cells.

    Cells (m,) are given by their smallest and largest point, their weight and their mass; the
    extent |I_j| of a run reaches from its first to its last point. Returns the minimum and the
    index of the first cell of each run, (r,).

    Dynamic programme over the last cell b: best[b + 1] is the least over starts a of best[a] + cost
    of the run (a, …, b). Ends are taken in blocks, and so are starts. A block of starts is skipped
    if for each end a lower bound on the cost exceeds that of the run from the first cell of the
    block of ends. The bound has two terms: the width term of the last start in the block, which is
    the smallest, and the smallest best − M in the block, plus the M of b, where M is the mass up to
    a cell; or the same with −M for M. Cost O(m²) at most, nearly O(m) in practice.
    """
    n_cells = len(first)
    mass_before = cumulate(mass)
    weight_before = cumulate(weight)
    best = np.zeros(n_cells + 1)
    start = np.zeros(n_cells + 1, dtype=np.intp)
    # the smallest best − mass and best + mass in every block of starts
    rising, falling = np.empty((2, -(-n_cells // _RUN_BLOCK_SIZE), 1))

    def terms(starts: slice, ends: slice) -> tuple[np.ndarray, np.ndarray]:
        """|mass| and width term of the runs, (starts, ends)."""
        after = slice(ends.start + 1, ends.stop + 1)
        mass_of_run = mass_before[after] - mass_before[starts, None]
        extent = last[ends] - first[starts, None]
        return np.abs(mass_of_run), extent * (weight_before[after] - weight_before[starts, None])

    for k, begin in enumerate(range(0, n_cells, _RUN_BLOCK_SIZE)):
        ends = slice(begin, min(begin + _RUN_BLOCK_SIZE, n_cells))
        after = slice(begin + 1, ends.stop + 1)
        bound = terms(slice(_RUN_BLOCK_SIZE - 1, begin, _RUN_BLOCK_SIZE), ends)[1]
        bound += np.maximum(rising[:k] + mass_before[after], falling[:k] - mass_before[after])
        size, width = terms(ends, ends)
        worth = np.flatnonzero((bound < size[0] + best[begin] + width[0]).any(axis=1))
        least = np.full(ends.stop - begin, np.inf)
        for low in (_RUN_BLOCK_SIZE * worth).tolist():
            starts = slice(low, low + _RUN_BLOCK_SIZE)
            cost, extra = terms(starts, ends)
            cost += best[starts, None]
            cost += extra
            _keep_least(cost, low, least, start[after])
        within = least.copy()
        for i in range(len(within)):  # the starts of this block, whose best is known one by one
            cost = size[i, i:]
            cost += best[begin + i]
            cost += width[i, i:]
            np.minimum(within[i:], cost, out=within[i:])
            best[begin + i + 1] = within[i]
        size[np.tril_indices(len(size), -1)] = np.inf  # no run starts after its end
        _keep_least(size, begin, least, start[after])
        rising[k] = (best[ends] - mass_before[ends]).min()
        falling[k] = (best[ends] + mass_before[ends]).min()
    runs = []
    end = n_cells
    while end > 0:
        end = start[end]
        runs.append(end)
    return float(best[-1]), np.array(runs[::-1])


def _keep_least(cost: np.ndarray, first: int, least: np.ndarray, start: np.ndarray) -> None:
    """Update the least cost of each end (e,) and its start by those of starts from `first` on."""
    choice = cost.argmin(axis=0)
    value = cost[choice, np.arange(len(choice))]
    is_less = value < least
    least[is_less], start[is_less] = value[is_less], first + choice[is_less]


def mean_partition_sum(points: np.ndarray, mass: np.ndarray, width: float) -> float:
    """E Σ_j |mass in [r + j·width, r + (j + 1)·width)| over a shift r, uniform in [0, width).

    The average over r and the sum over j make one integral, (1/width) ∫ |mass in (t, t + width]|
    dt over the line, whose integrand changes where t or t + width passes a point. Points (m,) are
    sorted. Cost O(m). The line is cut into stretches whose arrays fit into the cache.
    """
    entering = points - width  # the t at which a point comes within the width
    stops = np.append(points[_STRETCH_SIZE::_STRETCH_SIZE], np.inf)
    total = inside = 0.0
    first, left, right = entering[0], 0, 0
    ends = np.searchsorted(entering, stops), np.searchsorted(points, stops)
    for next_left, next_right in zip(*ends, strict=True):
        change = np.concatenate([entering[left:next_left], points[right:next_right]])
        gain = np.concatenate([mass[left:next_left], -mass[right:next_right]])
        order = np.argsort(change, kind="stable")  # merges two sorted runs
        change = np.concatenate([[first], change[order]])
        height = np.cumsum(np.concatenate([[inside], gain[order]]))
        total += float(np.abs(height[:-1]) @ np.diff(change))
        first, inside, left, right = change[-1], height[-1], next_left, next_right
    return total / width


def sample_partition_sum(
    points: np.ndarray, mass: np.ndarray, width: float, shifts: np.ndarray
) -> float:
    """`mean_partition_sum` with the mean over r = `width` · `shifts`, shifts (d,) in [0, 1)."""
    total = 0.0
    for shift in shifts:
        is_first = first_of_ties(np.floor((points - width * shift) / width))
        total += float(np.abs(np.add.reduceat(mass, np.flatnonzero(is_first))).sum())
    return total / len(shifts)
