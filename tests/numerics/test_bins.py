"""Bins of equal width and of equal mass follow their definitions, sample by sample."""

import numpy as np
import pytest
from oracles import quantile_bin, uniform_bin

from skcalib._numerics.sorting import (
    bin_edges,
    bin_extents,
    interval_bins,
    mean_variances,
    quantile_bins,
)


@pytest.mark.parametrize("n_bins", [1, 2, 10, 15, 100])
def test_uniform_bins_equal_the_definition(n_bins):
    decimals = np.arange(101) / 100
    points = np.concatenate([decimals, np.random.default_rng(0).random(50)])
    expected = [uniform_bin(p, n_bins) for p in points]
    np.testing.assert_array_equal(interval_bins(points, bin_edges(n_bins, 1)), expected)


def test_decimals_belong_to_the_bin_they_start():
    points = np.array([0.29, 0.3, 0.57, 0.58, 0.6, 0.7, 1.0])
    bins = interval_bins(points, bin_edges(100, 1))
    np.testing.assert_array_equal(bins, [29, 30, 57, 58, 60, 70, 99])
    bins = interval_bins(np.array([0.3, 0.6, 1.0]), bin_edges(10, 1))
    np.testing.assert_array_equal(bins, [3, 6, 9])


def test_automatic_number_of_bins_is_the_cube_root_rounded_up():
    # as n_bins="cube_root" of scikit-learn, pull request 33856
    sizes = [1, 2, 8, 9, 27, 28, 1000, 1001, 10**6, 10**6 + 1]
    numbers = [len(bin_edges("auto", size)) - 1 for size in sizes]
    assert numbers == [1, 2, 2, 3, 3, 4, 10, 11, 100, 101]


@pytest.mark.parametrize("n_bins", [1, 3, 7])
@pytest.mark.parametrize("decimals", [1, 8])
def test_quantile_bins_equal_the_definition(n_bins, decimals):
    rng = np.random.default_rng(0)
    points = np.round(rng.random(40), decimals)
    weights = rng.integers(1, 5, size=40) / 7
    expected = [quantile_bin(p, points, weights, n_bins) for p in points]
    np.testing.assert_array_equal(quantile_bins(points, weights, n_bins), expected)


def test_a_light_last_point_is_in_the_last_bin():
    bins = quantile_bins(np.array([0.1, 0.2, 0.8, 0.9]), np.array([1, 1, 1, 1e-10]), 2)
    np.testing.assert_array_equal(bins, [0, 0, 1, 1])


def test_quantile_bins_without_ties_have_equal_mass():
    points = np.random.default_rng(0).permutation(30) / 30
    counts = np.bincount(quantile_bins(points, np.full(30, 1 / 30), 15))
    np.testing.assert_array_equal(counts, np.full(15, 2))


def test_extents_of_bins():
    bins, points = np.array([2, 0, 2, 3, 2]), np.array([0.4, 1.0, 0.1, 0.0, 0.3])
    np.testing.assert_array_equal(bin_extents(bins, points, 5), [0, 0, 0.4 - 0.1, 0, 0])


def test_variances_of_means():
    bins, outcomes = np.array([0, 0, 0, 1, 3, 3]), np.array([1, 1, 0, 1, 0, 1])
    equal = mean_variances(bins, outcomes, np.full(6, 0.1), 4)
    np.testing.assert_allclose(equal, [2 / 9 / 2, np.nan, np.nan, 1 / 4], atol=1e-15)
    # bin 3: y = ¼, Σ w² = 10, (Σ w)² = 16; tiny weights do not underflow
    for scale in (1.0, 1e-200):
        weights = np.array([1, 1, 1, 5, 3 * scale, 1 * scale])
        unequal = mean_variances(bins, outcomes, weights, 4)
        np.testing.assert_allclose(unequal, [1 / 9, np.nan, np.nan, 3 / 16 * 10 / 6], atol=1e-15)
