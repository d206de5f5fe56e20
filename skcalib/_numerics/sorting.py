"""Sorting, pooling and binning of predictions: what most computations start with."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

# Equal shares of the weight differ by less than this, as they are rounded; so do variances,
# relative to the largest.
_SHARE_RTOL = 1e-9

# Products of intervals are renumbered before their numbers exceed this, so that they fit into 64
# bits.
_MAX_CELL_NUMBER = 2**62


def codes_by_appearance(values: np.ndarray) -> np.ndarray:
    """The distinct values numbered in the order in which they first appear, (n,)."""
    _, first, code = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[code]


def first_of_ties(ordered: np.ndarray) -> np.ndarray:
    """True for sorted values (n,) that differ from the one before them, (n,)."""
    is_first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return is_first


def last_of_ties(ordered: np.ndarray) -> np.ndarray:
    """True for sorted values (n,) that differ from the one behind them, (n,)."""
    return np.append(first_of_ties(ordered)[1:], True)


def last_of_runs(start: np.ndarray, n: int) -> np.ndarray:
    """The last index of each run, (r,), if `start` (r,) cuts 0, …, n − 1 into runs."""
    return np.append(start[1:], n) - 1


def cumulate(values: np.ndarray) -> np.ndarray:
    """The sums of the first 0, 1, …, n values along the last axis, (..., n + 1)."""
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=sums[..., 1:])
    return sums


def sort_labelled(points: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points in [0, 1] sorted, and their labels, 0 or 1, in the same order.

    Non-negative doubles are ordered like the integers with the same bits, and below 2 their first
    two bits are 0. Shifted by one place, they have room for the label, and one sort of integers
    replaces an argsort and its random access to memory. The sign of −0.0 is shifted out.
    """
    key = points.view(np.int64) << 1
    key |= labels
    if not (key[1:] >= key[:-1]).all():
        key.sort()
    labels = key & 1
    key >>= 1
    return key.view(np.float64), labels


def pool_sorted(points: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From sorted points (n,) and mass (..., n): distinct points (m,), mass at each (..., m)."""
    is_new = first_of_ties(points)
    if is_new.all():
        return points, mass
    start = np.flatnonzero(is_new)
    return points[start], np.add.reduceat(mass, start, axis=-1)


def pool_ties(points: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From points (n,) and mass (..., n): sorted distinct points (m,), mass at each (..., m)."""
    order = np.argsort(points)
    return pool_sorted(points[order], mass[..., order])


class LabelWeights(NamedTuple):
    """The weights of both labels at each distinct prediction.

    The squares say how many samples stand behind a weight. Tables of different samples are merged
    by summing their rows at equal points.
    """

    points: np.ndarray  # (m,), sorted and distinct
    weight: np.ndarray  # (2, m), sum of the weights of the samples with label 0, and with label 1
    square: np.ndarray  # (2, m), sum of their squared weights

    @property
    def total(self) -> np.ndarray:
        """The weight at each point, whatever the label, (m,)."""
        return self.weight.sum(axis=0)


def pool_label_weights(
    points: np.ndarray, labels: np.ndarray, weight: np.ndarray, square: np.ndarray | None = None
) -> LabelWeights:
    """The table of samples with predictions (n,), labels 0 or 1 (n,), and weights (n,).

    If a row stands for several samples, `square` (n,) is the sum of their squared weights.
    """
    if square is not None or not (weight == weight[0]).all():
        square = weight**2 if square is None else square
        is_label = labels == [[0], [1]]  # (2, n)
        distinct, sums = pool_ties(points, np.concatenate([weight * is_label, square * is_label]))
        return LabelWeights(distinct, sums[:2], sums[2:])
    ordered, labels = sort_labelled(points, labels)  # no weights to sort along
    distinct, mass = pool_sorted(ordered, weight[0] * np.stack([1 - labels, labels]))
    return LabelWeights(distinct, mass, weight[0] * mass)


# Bins of one probability, or on the simplex


def bin_edges(n_bins: ArrayLike, size: float) -> np.ndarray:
    """The ends (B + 1,) of bins: the numbers themselves, or of B bins of equal width.

    "auto" is the cube root of the size, the effective number of samples, rounded up.

    The edges are the correctly rounded quotients j/B, so that a decimal such as 0.29 belongs to the
    interval that starts at 29/100. Multiplying would put it into the one before, as 0.29·100 =
    28.999….
    """
    if isinstance(n_bins, str):
        n_bins = int(np.ceil((1 - _SHARE_RTOL) * np.cbrt(size)))
    edges = np.asarray(n_bins, dtype=np.float64)
    return edges if edges.ndim else np.arange(float(edges) + 1) / edges


def interval_bins(points: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Index of the interval [a, b) of each point between edges; the last interval is closed."""
    return np.searchsorted(edges[1:-1], points, side="right")  # (n,)


def quantile_bins(points: np.ndarray, weights: np.ndarray, n_bins: int) -> np.ndarray:
    """Index of the bin of each point: j if a share in [j/B, (j+1)/B) of the weight lies below it.

    Without ties these are bins of equal mass, up to that of one point; tied points are never
    separated.
    """
    distinct, mass = pool_ties(points, weights)
    below = np.cumsum(mass) - mass
    share = below / (below[-1] + mass[-1])
    bins = np.floor(n_bins * share + _SHARE_RTOL).astype(np.intp)  # (m,)
    np.minimum(bins, n_bins - 1, out=bins)
    first = np.flatnonzero(first_of_ties(bins))  # of each bin that holds any
    return bins[first][np.searchsorted(distinct[first[1:]], points, side="right")]  # (n,)


def cuts_before(points: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The lower edges of all bins but the first, halfway between sorted distinct points.

    `start` holds the index of the first point of each bin.
    """
    before, after = points[start[1:] - 1], points[start[1:]]
    return np.maximum((before + after) / 2, np.nextafter(before, 2))  # never at `before`


def bin_extents(bins: np.ndarray, points: np.ndarray, n_bins: int) -> np.ndarray:
    """Length of the interval from the least to the greatest point of each bin, 0 if empty, (B,)."""
    least, greatest = np.full(n_bins, np.inf), np.full(n_bins, -np.inf)
    np.minimum.at(least, bins, points)
    np.maximum.at(greatest, bins, points)
    return np.maximum(greatest - least, 0.0)


def mean_variances(
    bins: np.ndarray,
    outcomes: np.ndarray,
    weights: np.ndarray,
    n_bins: int,
    squares: np.ndarray | None = None,
) -> np.ndarray:
    """Estimated variance of the mean of the outcomes in each bin; NaN below two points, (B,).

    The outcomes y_i are 0 or 1. Let r_i be the share of a point in the weight of its bin, and y = Σ
    r_i y_i. The estimate is y(1 − y) Σ r_i² / (1 − Σ r_i²): unbiased for independent outcomes of
    equal probability, and y(1 − y)/(n − 1) for n equal weights. If a point stands for several
    outcomes, `squares` (n,) are the sums of their squared weights.
    """
    total = np.bincount(bins, weights, n_bins)[bins]  # (n,)
    relative = weights / total
    mean = np.bincount(bins, relative * outcomes, n_bins)
    without_event = np.bincount(bins, relative * (1 - outcomes), n_bins)  # exactly 0 if all are 1
    relative_squares = relative**2 if squares is None else squares / total**2
    square = np.bincount(bins, relative_squares, n_bins)
    # that of one point, which sums have rounded
    max_square = 1 if squares is None else 1 - _SHARE_RTOL
    variance, is_known = np.full(n_bins, np.nan), (square > 0) & (square < max_square)
    return np.divide(mean * without_event * square, 1 - square, out=variance, where=is_known)


def product_bins(points: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, int]:
    """Index of the product of intervals between edges of each point (n, K), and their number.

    Only products that hold a point are numbered: memory O(n), not B^K.
    """
    cells, n_cells, n_bins = np.zeros(len(points), dtype=np.int64), 1, len(edges) - 1
    for column in points.T:
        if n_cells * n_bins > _MAX_CELL_NUMBER:
            cells, n_cells = _number_occupied(cells)
        cells = cells * n_bins + interval_bins(column, edges)
        n_cells *= n_bins
    return _number_occupied(cells)


def _number_occupied(cells: np.ndarray) -> tuple[np.ndarray, int]:
    """Any integers (n,) numbered from 0 on in their order, and how many are distinct."""
    distinct, index = np.unique(cells, return_inverse=True)
    return index, len(distinct)


def median_variance_bins(
    points: np.ndarray, weights: np.ndarray, min_size: int
) -> tuple[np.ndarray, int]:
    """Index of the bin of each point (n, K), and their number, by splitting bins at medians.

    A bin is split in two as long as both parts hold at least `min_size` points: along the
    coordinate of the largest variance (the first one of several), where the weight of the points
    below is nearest to half (the lower place of two). Equal values stay together.

    How a bin is split does not depend on the other bins, so all bins of a level are split at once,
    at O(n (K + log n)); there are about log₂(n / min_size) levels if the weights are even.
    """
    bins, n_bins = np.zeros(len(points), dtype=np.intp), 1
    rows, size = np.arange(len(points)), np.array([len(points)])  # of the bins yet to split
    while len(size):
        start, group = np.cumsum(size) - size, np.repeat(np.arange(len(size)), size)
        rows, cut = _split_at_medians(points, weights, rows, start, group)
        half = 2 * group + (np.arange(len(rows)) >= cut[group])
        size = np.bincount(half, minlength=2 * len(start)).reshape(-1, 2)  # below, above
        is_split = size.min(axis=1) >= min_size
        upper = np.flatnonzero(is_split[group] & (half % 2 == 1))
        bins[rows[upper]] = n_bins - 1 + np.cumsum(is_split)[group[upper]]
        n_bins += int(is_split.sum())
        size[~is_split] = 0
        goes_on = size.ravel() >= 2 * min_size
        rows, size = rows[goes_on[half]], size.ravel()[goes_on]
    return bins, n_bins


def _split_at_medians(
    points: np.ndarray, weights: np.ndarray, rows: np.ndarray, start: np.ndarray, group: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rows (r,) sorted within their groups, and the place where to cut each group, (g,).

    The groups follow one another and begin at `start` (g,). A group of equal values is cut at its
    start.
    """
    share = weights[rows]
    share /= np.add.reduceat(share, start)[group]
    ordered = points.take(rows, axis=0)
    mean = np.add.reduceat(share[:, None] * ordered, start)  # (g, K)
    square = ordered - mean[group]
    square *= square
    square *= share[:, None]
    variance = np.add.reduceat(square, start)
    largest = variance.max(axis=1, keepdims=True)
    widest = np.argmax(variance >= (1 - _SHARE_RTOL) * largest, axis=1)  # coordinates (g,)
    value = points[rows, widest[group]]
    order = order_within_groups(value, group)
    value, share = value[order], share[order]
    below = np.cumsum(share) - share - group  # the shares of every group sum to 1
    imbalance = np.abs(below - 0.5)
    may_cut = first_of_ties(value)
    may_cut[start] = False
    imbalance[~may_cut] = np.inf
    least = np.minimum.reduceat(imbalance, start)[group]
    best = np.flatnonzero(imbalance <= least + _SHARE_RTOL)
    return rows[order], best[first_of_ties(group[best])]


def order_within_groups(value: np.ndarray, group: np.ndarray) -> np.ndarray:
    """An order that leaves the groups, which are sorted, in place and sorts the values within them.

    Faster than `lexsort`: equal values may come in any order, and NumPy sorts small integers in
    linear time.
    """
    order = np.argsort(value)
    if group[-1] == 0:
        return order
    short = group.astype(np.min_scalar_type(group[-1]))
    return order[np.argsort(short[order], kind="stable")]
