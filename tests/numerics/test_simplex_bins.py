"""The bins of the simplex equal loops and a recursion that follows the definition."""

import numpy as np
import pytest
from oracles import uniform_bin

from skcalib._numerics.sorting import bin_edges, median_variance_bins, product_bins


def as_partition(bins):
    return {frozenset(np.flatnonzero(bins == j).tolist()) for j in np.unique(bins)}


def check_numbers(bins, n_bins):
    assert sorted(set(bins.tolist())) == list(range(n_bins))


def random_points(seed):
    """Points on the simplex, by turns with ties and crowded at the corners, and weights."""
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(1, 60)), int(rng.integers(3, 6))
    points = rng.dirichlet(np.full(n_classes, rng.choice([0.1, 1.0, 5.0])), size=n)
    if seed % 3 == 0:
        points = np.round(points, 1)
    weights = rng.choice([1.0, 2.5, 40.0], size=n) if seed % 2 else np.ones(n)
    return points, weights / weights.sum()


@pytest.mark.parametrize("seed", range(7))
def test_product_bins_equal_loops(seed):
    points, _ = random_points(seed)
    n_bins = 1 + seed % 7
    cells = {}
    for i, row in enumerate(points):
        cells.setdefault(tuple(uniform_bin(p, n_bins) for p in row), set()).add(i)
    bins, n_filled = product_bins(points, bin_edges(n_bins, 1))
    assert as_partition(bins) == {frozenset(cell) for cell in cells.values()}
    check_numbers(bins, n_filled)


def test_more_products_than_integers():
    # 1000^40 products; rows differ in one coordinate only, the first or the last
    points = np.full((5, 40), 0.5)
    points[1, 0] = points[2, 0] = points[3, -1] = 0.25
    bins, n_bins = product_bins(points, bin_edges(1000, 1))
    assert as_partition(bins) == {frozenset({0, 4}), frozenset({1, 2}), frozenset({3})}
    check_numbers(bins, n_bins)


def median_variance_by_recursion(points, weights, min_size, rows=None):
    rows = list(range(len(points))) if rows is None else rows
    share = {i: weights[i] / sum(weights[j] for j in rows) for i in rows}
    variance = []
    for k in range(points.shape[1]):
        mean = sum(share[i] * points[i, k] for i in rows)
        variance.append(sum(share[i] * (points[i, k] - mean) ** 2 for i in rows))
    widest = next(k for k, v in enumerate(variance) if v >= max(variance) * (1 - 1e-9))
    imbalance = {}
    for value_at_cut in sorted({points[i, widest] for i in rows})[1:]:
        below = sum(share[i] for i in rows if points[i, widest] < value_at_cut)
        imbalance[value_at_cut] = abs(below - 0.5)
    if not imbalance:
        return [rows]
    least = min(imbalance.values())
    cut = min(value_at_cut for value_at_cut, value in imbalance.items() if value <= least + 1e-9)
    halves = [
        [i for i in rows if points[i, widest] < cut],
        [i for i in rows if points[i, widest] >= cut],
    ]
    if min(len(half) for half in halves) < min_size:
        return [rows]
    return [
        cell for p in halves for cell in median_variance_by_recursion(points, weights, min_size, p)
    ]


@pytest.mark.parametrize("min_size", [1, 2, 5, 10])
@pytest.mark.parametrize("seed", range(8))
def test_median_variance_bins_equal_recursion(seed, min_size):
    points, weights = random_points(seed)
    bins, n_bins = median_variance_bins(points, weights, min_size)
    expected = median_variance_by_recursion(points, weights, min_size)
    assert as_partition(bins) == {frozenset(cell) for cell in expected}
    check_numbers(bins, n_bins)


def partition_of(points, min_size, weights=None):
    points = np.array(points, dtype=float)
    weights = np.ones(len(points)) if weights is None else np.array(weights, dtype=float)
    return as_partition(median_variance_bins(points, weights / weights.sum(), min_size)[0])


def test_examples_of_calibration_errors_jl():
    # its test/binning/medianvariance.jl, with samples counted from 0
    points = [[0.4, 0.1, 0.5], [0.5, 0.3, 0.2], [0.3, 0.7, 0.0]]
    assert partition_of(points, 1) == {frozenset({i}) for i in range(3)}
    assert partition_of(points, 2) == {frozenset(range(3))}
    points += [[0.1, 0.0, 0.9], [0.8, 0.1, 0.1]]
    assert partition_of(points, 1) == {frozenset({i}) for i in range(5)}
    assert partition_of(points, 2) == {frozenset({2, 4}), frozenset({0, 1, 3})}
    assert partition_of(points, 3) == {frozenset(range(5))}


def test_ties_stay_together_on_the_side_that_is_more_even():
    line = np.array([0.0, 0.0, 0.0, 0.0, 0.7, 0.8, 0.9])[:, None]
    assert partition_of(line, 3) == {frozenset(range(4)), frozenset({4, 5, 6})}
    assert partition_of(line, 4) == {frozenset(range(7))}  # the other place is no better
    assert partition_of(1 - line, 3) == partition_of(line, 3)
    assert partition_of(np.full((20, 3), 1 / 3), 1) == {frozenset(range(20))}


def test_the_median_is_that_of_the_weight_and_the_size_that_of_samples():
    line = np.array([0.1, 0.2, 0.3, 0.4])[:, None]
    assert partition_of(line, 2) == {frozenset({0, 1}), frozenset({2, 3})}
    heavy = [5, 1, 1, 1]  # half of it lies nearest to the place behind the first
    assert partition_of(line, 1, heavy) == {frozenset({i}) for i in range(4)}
    assert partition_of(line, 2, heavy) == {frozenset(range(4))}


@pytest.mark.parametrize("seed", range(10))
def test_every_bin_has_the_least_size_and_could_not_be_larger_by_much(seed):
    rng = np.random.default_rng(seed)
    points = rng.dirichlet(np.ones(4), size=500)
    bins, n_bins = median_variance_bins(points, np.full(500, 1 / 500), 10)
    size = np.bincount(bins)
    assert size.min() >= 10
    assert size.max() < 20  # any bin of 20 distinct points is split in halves of 10
    assert n_bins == len(size)


def test_whole_weights_are_repetitions_if_bins_may_be_single():
    rng = np.random.default_rng(0)
    for _ in range(20):
        points = np.round(rng.dirichlet(np.ones(3), size=30), 1)
        weights = rng.integers(1, 4, size=30)
        copy_of = np.repeat(np.arange(30), weights)
        weighted = partition_of(points, 1, weights)
        repeated = partition_of(points[copy_of], 1)
        assert {frozenset(copy_of[list(cell)].tolist()) for cell in repeated} == weighted


def test_order_of_points_does_not_matter():
    # the variances of the two columns are equal, but not their sums in floating point
    rng = np.random.default_rng(0)
    column = rng.random(200)
    points = np.column_stack([column, rng.permutation(column)])
    expected = partition_of(points, 4)
    for _ in range(20):
        order = rng.permutation(200)
        actual = partition_of(points[order], 4)
        assert {frozenset(order[list(cell)].tolist()) for cell in actual} == expected
