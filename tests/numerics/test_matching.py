"""Means of kernels and Fourier features against quadrature, and sums against loops."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from skcalib._numerics import matching
from skcalib._numerics.laplace import MemberKernelMeans

KERNELS = {
    "rbf": lambda d, nu: np.exp(-(d**2) / (2 * nu**2)),
    "laplacian": lambda d, nu: np.exp(-np.abs(d) / nu),
    "energy": lambda d, nu: -np.abs(d),
}

all_kernels = pytest.mark.parametrize("name", KERNELS)


@all_kernels
@pytest.mark.parametrize(
    ("shift", "variance", "bandwidth"),
    [(0.3, 0.5, 0.7), (2.0, 0.01, 0.1), (5.0, 1e-4, 0.3), (0.0, 4.0, 0.01), (-3.0, 2.0, 1.0)],
)
def test_smoothed_kernels_equal_quadrature(name, shift, variance, bandwidth):
    deviation = np.sqrt(variance)
    expected, _ = quad(
        lambda d: KERNELS[name](d, bandwidth) * norm.pdf(d, shift, deviation),
        shift - 10 * deviation,
        shift + 10 * deviation,
        points=[0, shift],
        epsabs=1e-14,
        limit=500,
    )
    arguments = np.array([shift]), np.array([deviation]), bandwidth
    actual = matching.normal_kernel_mean(name, *arguments)[0]
    np.testing.assert_allclose(actual, expected, rtol=1e-8, atol=1e-13)


@all_kernels
def test_smoothed_kernels_without_variance_are_the_kernels(name):
    shift = np.array([-2.0, 0.0, 1.0])
    expected = KERNELS[name](shift, 0.5)
    for deviation in (0.0, 1e-300, 1e-30):
        actual = matching.normal_kernel_mean(name, shift, np.full(3, deviation), 0.5)
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)


def test_the_smoothed_laplacian_is_right_far_out_and_for_tiny_bandwidths():
    # E e^{−|D|/ν} ≈ e^{s²/2ν² − m/ν} where D > 0 nearly surely, and 2ν φ(m/s)/s for small ν
    far = matching.normal_kernel_mean("laplacian", np.array([40.0]), np.ones(1), 0.5)
    np.testing.assert_allclose(far, np.exp(2 - 80), rtol=1e-12)
    near = matching.normal_kernel_mean("laplacian", np.array([0.5]), np.ones(1), 1e-6)
    np.testing.assert_allclose(near, 2e-6 * norm.pdf(0.5), rtol=1e-10)


def mean_over_pieces(function, *breaks):
    """Gauss–Legendre between sorted breaks, numbers or arrays, divided by the length."""
    node, weight = np.polynomial.legendre.leggauss(40)
    total = 0.0
    for a, b in pairwise(breaks):
        points = np.add.outer((a + b) / 2, np.zeros(40)) + np.multiply.outer((b - a) / 2, node)
        total = total + (b - a) / 2 * (function(points) @ weight)
    return total / (breaks[-1] - breaks[0])


@all_kernels
@pytest.mark.parametrize(
    "ends",
    [
        (0.2, 0.5, 0.3, 0.9),
        (0.2, 0.2, 0.1, 0.7),
        (0.1, 0.3, 0.25, 0.25),
        (0.1, 0.1, 0.4, 0.4),
        (0.0, 1.0, 0.0, 1.0),
        (0.2, 0.3, 0.6, 0.9),
        (0.2, 0.2 + 1e-5, 0.1, 0.8),
        (0.2, 0.201, 0.2005, 0.2015),
    ],
)
def test_means_over_intervals_equal_quadrature(name, ends):
    low, high, start, stop = ends

    def inner(x):
        if start == stop:
            return KERNELS[name](x - start, 0.2236)
        return mean_over_pieces(
            lambda y: KERNELS[name](np.subtract.outer(x, np.zeros(40)) - y, 0.2236),
            start,
            np.clip(x, start, stop),
            stop,
        )

    if low == high:
        expected = inner(low)
    else:
        breaks = sorted([low, np.clip(start, low, high), np.clip(stop, low, high), high])
        expected = mean_over_pieces(inner, *breaks)
    actual = matching.interval_mean(name, 0.2236, *(np.array([end]) for end in ends))[0]
    np.testing.assert_allclose(actual, expected, atol=2e-11)
    swapped = matching.interval_mean(name, 0.2236, *(np.array([ends[k]]) for k in (2, 3, 0, 1)))
    np.testing.assert_allclose(swapped, actual, atol=1e-11)


@pytest.mark.parametrize("name", ["laplacian", "energy"])
def test_narrow_intervals_keep_their_digits(name):
    # apart, the mean is that of the middles, but for (w/ν)²/24
    ends = 0.2, 0.2 + 1e-7, 0.7, 0.7 + 1e-6
    actual = matching.interval_mean(name, 0.3, *(np.array([end]) for end in ends))[0]
    middle = KERNELS[name](0.5 + 0.45e-6, 0.3)
    np.testing.assert_allclose(actual, middle, rtol=1e-11)


@pytest.mark.parametrize("bandwidth", [0.05, 0.3, 2.0])
def test_products_of_waves_sum_to_the_rbf_kernel(bandwidth):
    points = np.random.default_rng(0).normal(size=200)
    for is_rough, tolerance in ((False, 2e-10), (True, 2e-6)):
        grid = matching.fourier_grid(np.ptp(points), bandwidth, bandwidth, is_rough=is_rough)
        wave = matching.fourier_features_1d(points, *grid)
        weight = matching.fourier_weights(*grid, np.array([bandwidth]))[0]
        expected = KERNELS["rbf"](points[:, None] - points, bandwidth)
        np.testing.assert_allclose((wave.T * weight) @ wave, expected, atol=tolerance)


def test_waves_are_cosines_and_sines():
    points = np.random.default_rng(0).normal(size=(3, 50))
    for count in (1, 2, 3, 200):
        phase = np.arange(count + 1)[:, None] * (0.3 * points)[:, None]
        expected = np.concatenate([np.cos(phase), np.sin(phase[:, 1:])], axis=1)
        np.testing.assert_allclose(
            matching.fourier_features_1d(points, 0.3, count), expected, atol=1e-11
        )


def test_means_of_waves_equal_quadrature_and_sums(monkeypatch):
    rng = np.random.default_rng(0)
    location, weight = rng.normal(size=(4, 3)), rng.dirichlet(np.ones(3), size=4)
    variance = rng.random((4, 3))
    node, share = np.polynomial.hermite_e.hermegauss(60)
    members = location[..., None] + np.sqrt(variance)[..., None] * node
    share = weight[..., None] * share / share.sum()
    expected = np.einsum(
        "nck,mnck->mn", share, np.moveaxis(matching.fourier_features_1d(members, 0.7, 5), -2, 0)
    )
    for entries in (1, 2**19):
        monkeypatch.setattr(matching, "_MAX_WAVE_ENTRIES", entries)
        actual = matching.mixture_fourier_features(location, variance, weight, 0.7, 5)
        np.testing.assert_allclose(actual, expected, atol=1e-12)


def test_shifted_waves_are_those_of_all_members():
    rng = np.random.default_rng(0)
    shift, residuals, weight = rng.normal(size=6), rng.normal(size=4), rng.dirichlet(np.ones(4))
    residual_waves = matching.mixture_fourier_features(
        residuals[None], np.zeros((1, 4)), weight[None], 0.7, 5
    )
    members = shift[:, None] + residuals
    weights = np.broadcast_to(weight, members.shape)
    expected = matching.mixture_fourier_features(members, np.zeros_like(members), weights, 0.7, 5)
    np.testing.assert_allclose(
        matching.shift_fourier_features(shift, residual_waves, 0.7, 5), expected, atol=1e-13
    )


def test_waves_of_intervals_are_means():
    low, high = np.array([0.1, 0.4, 0.0]), np.array([0.3, 0.4, 1.0])
    node, share = np.polynomial.legendre.leggauss(30)
    points = low + (node[:, None] + 1) / 2 * (high - low)
    expected = np.tensordot(share / 2, matching.fourier_features_1d(points, 3.0, 4), axes=1)
    np.testing.assert_allclose(
        matching.interval_fourier_features(low, high, 3.0, 4), expected, atol=1e-13
    )


def test_pair_sums_of_distances_equal_loops():
    rng = np.random.default_rng(0)
    values, mass = rng.integers(5, size=20) / 4.0, rng.normal(size=(3, 20))
    distance = np.abs(values[:, None] - values)
    expected = np.einsum("ij,ci,cj->", distance, mass, mass)
    np.testing.assert_allclose(matching.distance_pair_sum(values, mass), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["laplacian", "energy"])
@pytest.mark.parametrize("origin", [0.0, 1e6])
def test_means_over_members_equal_sums(name, origin):
    rng = np.random.default_rng(0)
    members = rng.integers(9, size=(5, 7)) + origin
    weight, points = rng.dirichlet(np.ones(7), size=5), rng.normal(4, 5, size=30) + origin
    points[:9] = np.arange(9) + origin
    value = KERNELS[name](members[..., None] - points, 0.4)
    expected = np.einsum("nsm,ns->nm", value, weight)
    actual = MemberKernelMeans(name, 0.4, members, weight).means(np.array([4, 0, 2]), points)
    np.testing.assert_allclose(actual, expected[[4, 0, 2]], rtol=1e-9, atol=1e-13)
