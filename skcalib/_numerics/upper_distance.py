"""The calibrated predictor of least change among those that give equal levels equal values.

A level v has a prediction p_v, a weight w_v and a mean outcome η_v. A predictor that is constant on
the cells of a partition of the levels is calibrated if its value is the mean outcome of each cell.
Its change Σ w_v |p_v − g_v| is to be least over all partitions (Definitions 4.1 and 5.2 of Błasiok,
Gopalan, Hu & Nakkiran 2023). For few levels all partitions are compared; for more, a good one is
found from the transport that gives the lower distance, and a relaxation bounds what is possible.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import sparse
from scipy.optimize import linprog

from .distance import CertifiedTransport
from .sorting import cumulate, last_of_runs

# Up to this number of levels all partitions are compared, in some 20 ms.
_MAX_COMPARED_LEVELS = 12

# Up to these numbers of levels, single ones are moved between cells, and the relaxation is solved.
_MAX_MOVED_LEVELS = 256
_MAX_RELAXED_LEVELS = 128

# In each round every cell is cut into parts, and unions of neighbouring parts are compared.
_N_CUT_ROUNDS = 3
_PARTS_PER_CELL = 8
_MAX_UNION_PARTS = 32  # the most parts in a union

_MAX_MOVE_SWEEPS = 20

# Levels of less than this share of the largest weight move no mean outcome.
_MIN_WEIGHT_RATIO = 1e-15

# Costs are compared after rounding, so that ties are broken alike whatever the order of the sums.
_COST_DIGITS = 12


class Levels(NamedTuple):
    """Predictions, or inputs, that can be told apart."""

    points: np.ndarray  # (m,), increasing, perhaps with ties
    total: np.ndarray  # (m,), weights, which sum to 1
    positive: np.ndarray  # (m,), weights of label 1

    def take(self, rows: np.ndarray) -> "Levels":
        return Levels(*(values[rows] for values in self))

    def means(self, cells: np.ndarray) -> np.ndarray:
        """The mean outcome of the cell of each level, (m,)."""
        return (np.bincount(cells, self.positive) / np.bincount(cells, self.total))[cells]

    def change(self, cells: np.ndarray, order: float = 1.0) -> float:
        """Σ w |p − mean outcome of the cell|^order."""
        return float(self.total @ np.abs(self.points - self.means(cells)) ** order)


def is_exact(levels: Levels) -> bool:
    """True if `exhaustive_partition` can compare all partitions in a short time."""
    return len(levels.points) <= _MAX_COMPARED_LEVELS


def nearest_cells(
    levels: Levels, transport: CertifiedTransport, guess: np.ndarray, order: float
) -> np.ndarray:
    """The cells (m,) of a partition of small change, not worse than the `guess` (m,).

    Levels are sorted by their predictions, and by where the transport moves them, and both orders
    are cut into the best runs that are found. With up to 256 levels, single levels are then moved
    between cells as long as that helps.
    """

    def search(levels: Levels, guess: np.ndarray) -> np.ndarray:
        target = np.round(_targets(levels, transport), 6)
        along = np.arange(len(target)), np.argsort(target, kind="stable")
        partitions = [guess, *(_partition_into_runs(levels, rows) for rows in along)]
        if len(target) <= _MAX_MOVED_LEVELS:
            partitions = [_improve_by_moves(levels, cells, order) for cells in partitions]
        return min(partitions, key=lambda cells: levels.change(cells, order))

    return _search_without_light_levels(search, levels, guess, order)


def nearest_intervals(levels: Levels, guess: np.ndarray) -> np.ndarray:
    """Cells (m,) that are intervals of the predictions; for up to 12 levels the best of any form.

    Unlike other cells, intervals cannot sort the levels by the labels that chance gave them, so
    their change on a sample is near that on the population.
    """

    def search(levels: Levels, guess: np.ndarray) -> np.ndarray:
        return min(guess, _partition_into_runs(levels, np.arange(len(guess))), key=levels.change)

    return _search_without_light_levels(search, levels, guess, 1.0)


def _search_without_light_levels(
    search: Callable[[Levels, np.ndarray], np.ndarray],
    levels: Levels,
    guess: np.ndarray,
    order: float,
) -> np.ndarray:
    """Cells (m,) that `search` finds, or all partitions of a few levels; a light level joins.

    It joins the cell of the heavy level before it, so that intervals stay intervals.
    """
    is_heavy = levels.total > _MIN_WEIGHT_RATIO * levels.total.max()
    heavy = levels.take(is_heavy)
    if is_exact(heavy):
        cells = exhaustive_partition(heavy, order)
    else:
        cells = search(heavy, np.unique(guess[is_heavy], return_inverse=True)[1])
    return cells[np.maximum(np.cumsum(is_heavy) - 1, 0)]


def exhaustive_partition(levels: Levels, order: float) -> np.ndarray:
    """The cells (m,) of the best of all partitions. Sets are numbered by their bits; O(4^m).

    A set is the union of a cell with its first level and of a set of later levels.
    """
    points, total, positive = levels
    m = len(points)
    sets = np.arange(2**m)
    members = sets[1:, None] >> np.arange(m) & 1  # (2^m − 1, m)
    mean = (members @ positive) / (members @ total)
    cost = (members * total * np.abs(points - mean[:, None]) ** order).sum(axis=1)
    best, first_cell = np.where(sets > 0, np.inf, 0.0), np.zeros(2**m, dtype=np.intp)
    for cell in sorted(range(1, 2**m), key=lambda cell: -(cell & -cell)):
        later = sets[:: 2 * (cell & -cell)]
        later = later[later & cell == 0]
        value, union = best[later] + cost[cell - 1], later | cell
        is_better = value < best[union]
        best[union[is_better]], first_cell[union[is_better]] = value[is_better], cell
    cells, left = np.empty(m, dtype=np.intp), 2**m - 1
    for k in range(m):
        cells[members[first_cell[left] - 1] == 1] = k
        left -= first_cell[left]
        if not left:
            break
    return cells


def _targets(levels: Levels, transport: CertifiedTransport) -> np.ndarray:
    """The mean prediction to which the transport moves each level, (m,).

    On a line it moves the levels of one label in their order, to the law of that label.
    """
    target = np.zeros(len(levels.points))
    nodes, law = transport.nodes, transport.law
    both = (levels.total - levels.positive, (1 - nodes) * law), (levels.positive, nodes * law)
    first = np.flatnonzero(np.diff(levels.points, prepend=-1))
    number = np.repeat(np.arange(len(first)), last_of_runs(first, len(target)) - first + 1)
    for weight, offered in both:
        mass = np.add.reduceat(weight, first)  # at each prediction
        reached, moment = cumulate(offered), cumulate(offered * nodes)
        gain = np.diff(np.interp(np.minimum(cumulate(mass), reached[-1]), reached, moment))
        target += (weight * (gain / np.where(mass > 0, mass, 1))[number]) / levels.total
    return target


def _partition_into_runs(levels: Levels, along: np.ndarray) -> np.ndarray:
    """Cells (m,) that are runs of the levels in the order `along` (m,), O(m log m).

    Runs are first halves of halves; then each is cut into parts, and the best union of neighbouring
    parts is found, in some rounds.
    """
    ordered, m = levels.take(along), len(along)
    start = _best_halves(ordered)
    runs = []
    for _ in range(_N_CUT_ROUNDS):
        length = last_of_runs(start, m) - start + 1
        cuts = start[:, None] + length[:, None] * np.arange(_PARTS_PER_CELL) // _PARTS_PER_CELL
        start = _best_unions(ordered, np.unique(cuts))
        cells = np.empty(m, dtype=np.intp)
        cells[along] = np.repeat(np.arange(len(start)), last_of_runs(start, m) - start + 1)
        runs.append(cells)
    return min(runs, key=levels.change)


def _best_halves(levels: Levels) -> np.ndarray:
    """Starts of the best runs among halves of halves of … all levels."""
    number = np.arange(len(levels.points))
    least = levels.total * np.abs(levels.points - levels.positive / levels.total)
    depth = np.zeros(len(number), dtype=np.intp)
    for k in range(1, int(number[-1]).bit_length() + 1):
        cells = number >> k
        whole = np.bincount(cells, levels.total * np.abs(levels.points - levels.means(cells)))
        split = np.bincount(np.arange(len(least)) >> 1, least)
        is_whole = np.round(whole, _COST_DIGITS) <= np.round(split, _COST_DIGITS)
        least = np.where(is_whole, whole, split)
        depth[is_whole[cells]] = k
    return np.flatnonzero(np.diff(number >> depth << depth, prepend=-1))


def _best_unions(levels: Levels, start: np.ndarray) -> np.ndarray:
    """Starts of the best unions of neighbouring blocks, which begin at `start` (k,).

    The predictions of a block count as two: the mean of those below its mean outcome, and of those
    above it. The change of unions is exact unless their outcome is on the other side.
    """
    k = len(start)
    block = np.repeat(np.arange(k), last_of_runs(start, len(levels.points)) - start + 1)
    half = block + k * (levels.points > levels.means(block))
    weight = np.bincount(half, levels.total, 2 * k).reshape(2, k)
    moment = np.bincount(half, levels.total * levels.points, 2 * k).reshape(2, k)
    point = moment / np.where(weight > 0, weight, 1)
    # not differences of running sums, in which small weights are lost
    block_sums = np.stack([np.bincount(block, levels.positive), weight.sum(axis=0)])
    union_sums = np.zeros_like(block_sums)
    longest = min(_MAX_UNION_PARTS, k)
    cost = np.full((longest, k), np.inf)  # row r: of the unions of r + 1 blocks, by the first
    for n_extra in range(longest):
        n = k - n_extra
        union_sums = union_sums[:, :n] + block_sums[:, n_extra:]
        mean = union_sums[0] / union_sums[1]
        weights, points = (sliding_window_view(x, n_extra + 1, axis=1) for x in (weight, point))
        cost[n_extra, :n] = (weights * np.abs(points - mean[:, None])).sum(axis=(0, 2))
    least, begin = np.zeros(k + 1), np.zeros(k + 1, dtype=np.intp)
    for stop in range(1, k + 1):
        first = np.arange(stop - 1, max(stop - longest, 0) - 1, -1)
        value = np.round(least[first] + cost[np.arange(len(first)), first], _COST_DIGITS)
        choice = int(value.argmin())
        least[stop], begin[stop] = value[choice], first[choice]
    runs, stop = [], k
    while stop > 0:
        stop = begin[stop]
        runs.append(stop)
    return start[runs[::-1]]


def _improve_by_moves(levels: Levels, cells: np.ndarray, order: float) -> np.ndarray:
    """The cells (m,) after levels have moved, one by one, to the best cell; O(m²) a sweep."""
    scale = levels.change(cells, order)
    for _ in range(_MAX_MOVE_SWEEPS if scale > 0 else 0):
        before = np.unique(cells, return_inverse=True)[1]
        cells = before.copy()
        for row in range(len(cells)):
            cost = np.round(_cost_of_joining(levels, cells, row, order) / scale, _COST_DIGITS)
            if cost.min() < cost[cells[row]]:
                cells[row] = cost.argmin()
        if np.array_equal(cells, before):
            break
    return np.unique(cells, return_inverse=True)[1]


def _cost_of_joining(levels: Levels, cells: np.ndarray, row: int, order: float) -> np.ndarray:
    """The increase of the change if a level joins each cell or an empty one, (cells + 1,)."""
    point, level_weight, event = (values[row] for values in levels)
    n = int(cells.max()) + 2
    weight = levels.total.copy()
    weight[row] = 0
    total = np.bincount(cells, weight, n)
    positive = np.bincount(cells, np.where(weight > 0, levels.positive, 0), n)
    without = positive / np.where(total > 0, total, 1)
    within = (positive + event) / (total + level_weight)
    distance = np.abs(levels.points - within[cells]) ** order
    distance -= np.abs(levels.points - without[cells]) ** order
    change = np.bincount(cells, weight * distance, n)
    return change + level_weight * np.abs(point - within) ** order


def relaxation_bound(levels: Levels) -> float:
    """A lower bound on the change: the least if levels may be split between cells.

    That is a linear program, whose dual is to maximise Σ w_v min_g |p_v − g| + λ(g) (η_v − g) over
    functions λ on [0, 1]. It is solved at nodes g; between them λ is linear and the minimum over g
    has a formula, so the bound holds whatever the solver returns. 0 for more than 128 levels, and
    where outcomes are all 0 or 1: then it is the lower distance.
    """
    points, total, positive = levels
    outcome = positive / total
    if len(points) > _MAX_RELAXED_LEVELS or np.isin(outcome, [0, 1]).all():
        return 0.0
    nodes = np.union1d(points, np.linspace(0, 1, 33))
    m, n = len(points), len(nodes)
    distance, gap = np.abs(points[:, None] - nodes), outcome[:, None] - nodes  # (m, n)
    calibrated = (total[:, None] * gap).ravel(), (np.tile(np.arange(n), m), np.arange(m * n))
    sums = sparse.kron(sparse.eye(m), np.ones((1, n)))
    matrix, right = sparse.vstack([sums, sparse.csr_matrix(calibrated)]), np.repeat([1, 0], [m, n])
    cost = (total[:, None] * distance).ravel()
    solution = linprog(cost, A_eq=matrix, b_eq=right, method="highs")
    if not solution.success:
        return 0.0
    multiplier = -solution.eqlin.marginals[m:]
    value, step = distance + multiplier * gap, np.diff(nodes)
    # at t from a node, value + linear·t + curvature·t²
    curvature = -np.diff(multiplier) / step
    linear = np.diff(value) / step - curvature * step
    with np.errstate(divide="ignore", invalid="ignore"):
        lowest = np.where(curvature > 0, -linear / (2 * curvature), 0.0)
    lowest = np.clip(lowest, 0, step)
    between = value[:, :-1] + linear * lowest + curvature * lowest**2
    return float(total @ np.minimum(value.min(axis=1), between.min(axis=1)))
