"""Bins on the probability simplex."""

import numpy as np

from .intervals import uniform_bins
from .sorting import first_of_ties

# Variances that differ relatively by less, and shares of weight that differ by less, are equal.
_ROUNDING = 1e-9

# Numbers of products of intervals stay below this.
_LARGEST = 2**62


def product_bins(points: np.ndarray, n_bins: int) -> tuple[np.ndarray, int]:
    """Index of the product of intervals [j/B, (j+1)/B) of each point (n, K), and their number.

    Only products that hold a point are numbered: memory O(n), not B^K.
    """
    cells, n_cells = np.zeros(len(points), dtype=np.int64), 1
    for column in points.T:
        if n_cells * n_bins > _LARGEST:
            cells, n_cells = _number_occupied(cells)
        cells = cells * n_bins + uniform_bins(column, n_bins)
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

    What becomes of a bin does not depend on the others, so all of a level are split at once, at
    O(n (K + log n)); there are about log₂(n / min_size) levels if the weights are even.
    """
    bins, n_bins = np.zeros(len(points), dtype=np.intp), 1
    rows, size = np.arange(len(points)), np.array([len(points)])  # of the bins yet to split
    while len(size):
        start, group = np.cumsum(size) - size, np.repeat(np.arange(len(size)), size)
        rows, cut = _cut_at_medians(points, weights, rows, start, group)
        part = 2 * group + (np.arange(len(rows)) >= cut[group])
        size = np.bincount(part, minlength=2 * len(start)).reshape(-1, 2)  # below, above
        is_split = size.min(axis=1) >= min_size
        upper = np.flatnonzero(is_split[group] & (part % 2 == 1))
        bins[rows[upper]] = n_bins - 1 + np.cumsum(is_split)[group[upper]]
        n_bins += int(is_split.sum())
        size[~is_split] = 0
        goes_on = size.ravel() >= 2 * min_size
        rows, size = rows[goes_on[part]], size.ravel()[goes_on]
    return bins, n_bins


def _cut_at_medians(
    points: np.ndarray, weights: np.ndarray, rows: np.ndarray, start: np.ndarray, group: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For groups of rows (r,), one after another from `start` (g,) on: sorted rows, and where to
    cut each group, (g,); at its start if all values are equal.
    """
    share = weights[rows]
    share /= np.add.reduceat(share, start)[group]
    widest = _widest_coordinates(points.take(rows, axis=0), share, start, group)
    value = points[rows, widest[group]]
    order = _order_within_groups(value, group)
    value, share = value[order], share[order]
    below = np.cumsum(share) - share - group  # the shares of every group sum to 1
    imbalance = np.abs(below - 0.5)
    may_cut = first_of_ties(value)
    may_cut[start] = False
    imbalance[~may_cut] = np.inf
    least = np.minimum.reduceat(imbalance, start)[group]
    best = np.flatnonzero(imbalance <= least + _ROUNDING)
    return rows[order], best[first_of_ties(group[best])]


def _widest_coordinates(
    points: np.ndarray, share: np.ndarray, start: np.ndarray, group: np.ndarray
) -> np.ndarray:
    """The coordinate of the largest variance of each group of points (n, K), (g,)."""
    mean = np.add.reduceat(share[:, None] * points, start)  # (g, K)
    square = points - mean[group]
    square *= square
    square *= share[:, None]
    variance = np.add.reduceat(square, start)
    largest = variance.max(axis=1, keepdims=True)
    return np.argmax(variance >= (1 - _ROUNDING) * largest, axis=1)


def _order_within_groups(value: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Any order in which the groups, given sorted, stay and the values within them are sorted.

    Faster than `lexsort`: nothing is said of equal values, and NumPy sorts small integers in linear
    time.
    """
    order = np.argsort(value)
    short = group.astype(np.min_scalar_type(group[-1]))
    return order[np.argsort(short[order], kind="stable")]
