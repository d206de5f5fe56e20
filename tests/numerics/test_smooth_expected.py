"""The smoothed residual equals sums of cosines, and the fixed point is found at any scale."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from skcalib._numerics.smooth_expected import (
    cosine_coefficients,
    smooth_absolute_mass,
    smooth_absolute_mass_fixed_point,
)


def weighted_residuals(rng, n):
    mass = rng.normal(size=n)
    return mass / np.abs(mass).sum()


def separated(distance, bandwidth):
    """∫|r_σ| of the masses ½ and −½ at a distance, far from 0 and 1 for the bandwidth."""
    return math.erf(distance / (math.sqrt(8) * bandwidth))


@pytest.mark.parametrize("n_cells", [8, 64, 512])
def test_coefficients_are_sums_of_cosines_up_to_the_taylor_remainder(n_cells):
    rng = np.random.default_rng(n_cells)
    points = np.concatenate([[0.0, 1.0, 0.5, 1 / n_cells], rng.random(30)])
    mass = weighted_residuals(rng, len(points))
    k = np.arange(n_cells)
    expected = [
        sum(c * math.cos(math.pi * j * p) for p, c in zip(points, mass, strict=True)) for j in k
    ]
    error = np.abs(cosine_coefficients(points, mass, n_cells) - expected)
    remainder = (np.pi * k / (2 * n_cells)) ** 8 / math.factorial(8)
    assert (error <= remainder + 1e-13).all()
    assert error.max() > 1e-6  # only the slow cosines are exact


def test_arguments_are_left_alone():
    rng = np.random.default_rng(0)
    points, mass = rng.random(20), weighted_residuals(rng, 20)
    before = points.copy(), mass.copy()
    smooth_absolute_mass(points, mass, 0.1)
    smooth_absolute_mass_fixed_point(points, mass)
    np.testing.assert_array_equal(points, before[0])
    np.testing.assert_array_equal(mass, before[1])


@pytest.mark.parametrize(
    "bandwidth", [pytest.param(1e-5, marks=pytest.mark.slow), 1e-4, 1e-3, 1e-2]
)
def test_two_masses_on_every_grid(bandwidth):
    distance = 1.3 * bandwidth
    points = np.array([0.4 - distance / 2, 0.4 + distance / 2])
    actual = smooth_absolute_mass(points, np.array([-0.5, 0.5]), bandwidth)
    assert actual == pytest.approx(separated(distance, bandwidth), abs=1e-7)


@pytest.mark.parametrize("distance", [1e-2, 1e-4, 1e-6, 1e-8])
def test_fixed_point_of_two_masses_on_every_grid(distance):
    points = np.array([0.5 - distance / 2, 0.5 + distance / 2])
    expected = brentq(lambda s: separated(distance, s) - s, 1e-6, 1, xtol=1e-15)
    actual = smooth_absolute_mass_fixed_point(points, np.array([-0.5, 0.5]))
    assert actual == pytest.approx(expected, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("distance", [1e-10, 1e-11, 1e-13])
def test_fixed_point_is_within_a_millionth_at_any_scale(distance):
    points = np.array([0.5 - distance / 2, 0.5 + distance / 2])
    expected = brentq(lambda s: separated(points[1] - points[0], s) - s, 1e-10, 1, xtol=1e-15)
    actual = smooth_absolute_mass_fixed_point(points, np.array([-0.5, 0.5]))
    assert expected - 1e-8 <= actual < max(expected + 1e-8, 1e-6)


def test_masses_far_apart_add_up():
    # the error is below every bandwidth that is tried, and known to be exact all the same
    points = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    for size in (1e-4, 1e-7, 1e-12):
        mass = size * np.array([1, -2, 3, -4, 5])
        actual = smooth_absolute_mass_fixed_point(points, mass)
        assert actual == pytest.approx(15 * size, rel=1e-12)


def test_masses_that_cancel():
    assert smooth_absolute_mass_fixed_point(np.full(4, 0.5), np.array([0.25, -0.25] * 2)) == 0
    assert smooth_absolute_mass_fixed_point(np.array([0.0, 1.0]), np.zeros(2)) == 0


def test_zeros_on_the_grid_of_the_integral_are_harmless():
    # r_σ is odd about ½, which belongs to every such grid, and vanishes there up to rounding
    points, mass = np.array([0.25, 0.75]), np.array([-0.5, 0.5])
    for bandwidth in np.linspace(0.02, 0.04, 50):
        actual = smooth_absolute_mass(points, mass, bandwidth)
        assert actual == pytest.approx(separated(0.5, bandwidth), abs=1e-10)
