"""The sums of kernels on a line equal the double sums over all pairs."""

import numpy as np
import pytest

from skcalib._numerics.laplace import laplace_pair_sum, linear_pair_sum, linear_product


@pytest.mark.parametrize("bandwidth", [1e-9, 1e-4, 1e-3, 0.1, 1.0, 100.0])
def test_equals_the_double_sum(bandwidth):
    rng = np.random.default_rng(0)
    points = np.sort(np.round(rng.random(80), 2))  # with ties
    mass = rng.normal(size=(3, 80))
    gram = np.exp(-np.abs(points[:, None] - points) / bandwidth) - np.eye(80)
    expected = [row @ gram @ row for row in mass]
    np.testing.assert_allclose(
        laplace_pair_sum(points, mass, bandwidth), expected, rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13])
def test_any_number_of_points(n):
    points, mass = np.linspace(0.1, 0.9, n), np.arange(1.0, n + 1)
    gram = np.exp(-np.abs(points[:, None] - points)) - np.eye(n)
    assert laplace_pair_sum(points, mass, 1.0) == pytest.approx(mass @ gram @ mass, abs=1e-12)


def test_tiny_bandwidth_leaves_the_ties():
    mass = np.array([1.0, 2.0, 4.0])
    assert laplace_pair_sum(np.array([0.0, 0.0, 1.0]), mass, 1e-300) == 2 * 1 * 2


def test_keeps_every_digit_beside_a_large_mass():
    mass = np.array([1.0, 1e-12])
    pair = laplace_pair_sum(np.array([0.1, 0.9]), mass, 1.0)
    assert pair == pytest.approx(2e-12 * np.exp(-0.8), rel=1e-14)


@pytest.mark.parametrize("n", [1, 2, 80])
def test_linear_sums_equal_the_double_sums(n):
    rng = np.random.default_rng(0)
    points = np.sort(np.round(rng.random(n), 2))  # of 80, some are ties
    mass = rng.normal(size=(3, n))
    gram = 1 - np.abs(points[:, None] - points)
    expected = np.einsum("ri,ij,rj->r", mass, gram - np.eye(n), mass)
    np.testing.assert_allclose(linear_pair_sum(points, mass), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(linear_product(points, mass[0]), gram @ mass[0], atol=1e-12)
