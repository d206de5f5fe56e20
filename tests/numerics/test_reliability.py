"""Curves and bounds of reliability diagrams."""

import numpy as np
import pytest
from scipy.stats import beta, norm

from skcalib._numerics.reliability import (
    assign_bins,
    effective_counts,
    increasing_rate_bounds,
    rate_bounds,
    smooth_rates,
)
from skcalib._numerics.smooth_expected import interpolate_smooth_mass, smooth_absolute_mass
from skcalib._numerics.sorting import pool_label_weights


def reflected_kernel(grid, points, bandwidth):
    """κ(t, p) with all images that matter."""
    images = [2 * k + sign * points for k in range(-3, 4) for sign in (1, -1)]
    return sum(norm.pdf(np.subtract.outer(grid, image) / bandwidth) for image in images)


@pytest.mark.parametrize("bandwidth", [0.03, 0.2, 1.5])
def test_smooth_rates_are_kernel_means(bandwidth):
    generator = np.random.default_rng(0)
    points, outcome = generator.random(50), generator.integers(0, 2, 50)
    weight = generator.random(50)
    grid = np.clip(points[:9], 0.1, 0.9)
    kernel = reflected_kernel(grid, points, bandwidth) * weight
    density = interpolate_smooth_mass(points, weight, bandwidth, grid)
    np.testing.assert_allclose(density, kernel.sum(axis=1) / bandwidth, rtol=1e-3)
    rate = smooth_rates(points, weight * (outcome - points), density, bandwidth, grid)
    expected = grid + kernel @ (outcome - points) / kernel.sum(axis=1)
    np.testing.assert_allclose(rate, np.clip(expected, 0, 1), atol=1e-3)
    count = effective_counts(points, weight, bandwidth, grid)
    expected = kernel.sum(axis=1) ** 2 / (kernel**2).sum(axis=1)
    np.testing.assert_allclose(count, expected, rtol=0.01)


def test_smoothed_residuals_integrate_to_the_error():
    generator = np.random.default_rng(0)
    points, mass = generator.random(30), generator.normal(size=30) / 30
    grid = np.linspace(0, 1, 100_001)
    smoothed = np.abs(interpolate_smooth_mass(points, mass, 0.05, grid))
    expected = smooth_absolute_mass(points, mass, 0.05)
    assert np.trapezoid(smoothed, grid) == pytest.approx(expected, rel=1e-3)


def test_bins_end_where_they_should():
    points, weight = np.array([0.0, 0.05, 0.5, 1.0]), np.ones(4)
    bins, begin, end = assign_bins(points, weight, np.arange(5) / 4, "uniform")
    assert bins.tolist() == [0, 0, 1, 2]
    np.testing.assert_array_equal([begin, end], [[0, 0.5, 0.75], [0.25, 0.75, 1]])
    bins, begin, end = assign_bins(points, weight, np.arange(3) / 2, "quantile")
    assert bins.tolist() == [0, 0, 1, 1]
    np.testing.assert_array_equal([begin, end], [[0, 0.5], [0.05, 1]])


def test_rate_bounds_are_quantiles_of_beta():
    lower, upper = rate_bounds(np.array([0, 0.3, 1]), np.array([10, 10, 7.5]), 0.05)
    np.testing.assert_allclose(lower, [0, beta.ppf(0.05, 3, 8), 0.05 ** (1 / 7.5)])
    np.testing.assert_allclose(upper, [1 - 0.05**0.1, beta.ppf(0.95, 4, 7), 1])


def test_bounds_of_increasing_rates_by_hand():
    # of so few samples there is one window: all of them on one side
    points = np.array([0.2, 0.4, 0.6, 0.8])
    table = pool_label_weights(points, np.array([0, 1, 1, 1]), np.full(4, 0.25))
    lower, upper = increasing_rate_bounds(table, np.array([0.1, 0.5, 0.6, 0.9]), 0.05)
    expected = [0, beta.ppf(0.05, 1, 2), beta.ppf(0.05, 2, 2), beta.ppf(0.05, 3, 2)]
    np.testing.assert_allclose(lower, expected)
    np.testing.assert_allclose(upper, [beta.ppf(0.95, 4, 1), 1, 1, 1])


@pytest.mark.parametrize("curve", [np.square, np.ones_like, lambda p: (p > 0.5) * 1.0])
def test_bounds_of_increasing_rates_hold(curve):
    generator = np.random.default_rng(0)
    points = np.sort(generator.beta(0.5, 0.5, 200))
    grid = np.linspace(points[0], points[-1], 15)
    missed = np.zeros((2, len(grid)))
    n_repetitions, tail = 300, 0.1
    for _ in range(n_repetitions):
        outcome = (generator.random(200) < curve(points)).astype(int)
        bounds = increasing_rate_bounds(
            pool_label_weights(points, outcome, np.full(200, 1 / 200)), grid, tail
        )
        missed += [bounds[0] > curve(grid) + 1e-12, bounds[1] < curve(grid) - 1e-12]
    assert (missed / n_repetitions).max() <= tail + 4 * np.sqrt(tail * (1 - tail) / n_repetitions)
    if curve is np.square:  # not at the price of telling nothing
        assert np.mean(bounds[1] - bounds[0]) < 0.46
