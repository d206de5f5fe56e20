"""The smooth expected calibration error (smECE) equals numerical quadrature."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from skcalib.metrics import smooth_calibration_error, smooth_expected_calibration_error


def smoothed_residual(t, proba, mass, bandwidth):
    """Mirror images of all points at 0 and 1, summed in real space; t (T,)."""
    reach = math.ceil(9 * bandwidth / 2) + 1
    value = np.zeros_like(t)
    for m in range(-reach, reach + 1):
        for p, c in zip(proba, mass, strict=True):
            value += c * norm.pdf(t, 2 * m + p, bandwidth)
            value += c * norm.pdf(t, 2 * m - p, bandwidth)
    return value


def smooth_error_by_quadrature(proba, mass, bandwidth, n_nodes=20_000):
    midpoints = (np.arange(n_nodes) + 0.5) / n_nodes
    return np.abs(smoothed_residual(midpoints, proba, mass, bandwidth)).mean()


def few_samples(seed):
    """Labels, probabilities and weights; the seed cycles through everything that is special."""
    rng = np.random.default_rng(seed)
    kind = seed % 6
    n = int(rng.integers(3, 13))
    proba = rng.random(n)
    if kind == 1:
        proba = np.round(proba, 1)  # ties
    if kind == 2:
        proba = rng.choice([0.0, 1.0, 0.5], size=n)
    if kind == 3:
        proba = 0.5 + 0.05 * proba
    truth = 1 - proba if kind in (2, 4) else proba
    outcome = (rng.random(n) < truth).astype(int)
    weight = rng.choice([0.0, 1.0, 2.5], size=n) if kind == 5 else np.ones(n)
    weight[0] = 1.0
    return outcome, proba, weight


def masses(outcome, proba, weight):
    return weight / weight.sum() * (outcome - proba)


@pytest.mark.parametrize(
    ("seed", "bandwidth"), [(k, (0.02, 0.1, 0.4, 1.5)[(k + k // 4) % 4]) for k in range(6)]
)
def test_equals_quadrature_at_given_bandwidths(seed, bandwidth):
    outcome, proba, weight = few_samples(seed)
    expected = smooth_error_by_quadrature(proba, masses(outcome, proba, weight), bandwidth)
    actual = smooth_expected_calibration_error(
        outcome, proba, sample_weight=weight, labels=[0, 1], bandwidth=bandwidth
    )
    assert actual == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_equals_the_fixed_point_of_quadrature(seed):
    outcome, proba, weight = few_samples(seed)
    mass = masses(outcome, proba, weight)
    expected = brentq(
        lambda s: smooth_error_by_quadrature(proba, mass, s, 4000) - s, 2e-3, 1.5, xtol=1e-8
    )
    actual = smooth_expected_calibration_error(outcome, proba, sample_weight=weight, labels=[0, 1])
    assert actual == pytest.approx(expected, abs=2e-6)


@pytest.mark.slow
def test_equals_adaptive_quadrature():
    proba, outcome = np.array([0.0, 0.35, 1.0]), np.array([1, 0, 1])
    mass = (outcome - proba) / 3
    expected, _ = quad(
        lambda t: abs(smoothed_residual(np.array([t]), proba, mass, 0.3)[0]), 0, 1, epsabs=1e-9
    )
    actual = smooth_expected_calibration_error(outcome, proba, bandwidth=0.3)
    assert actual == pytest.approx(expected, abs=1e-8)


def test_wide_kernels_are_not_cut_off():
    # relplot 1.0.3 cuts the kernel off at ±½: .2359 for outcomes of probability p³, exact .2271.
    # As p³ < p, the smoothed residuals have one sign, and the error is the bias.
    rng = np.random.default_rng(0)
    proba = rng.random(5000)
    outcome = (rng.random(5000) < proba**3).astype(int)
    error = smooth_expected_calibration_error(outcome, proba)
    assert error == pytest.approx(np.mean(proba - outcome), abs=1e-12)
    # reversed predictions, whose residuals have both signs
    proba = (np.arange(20) + 0.5) / 20
    outcome = (proba < 0.5).astype(int)
    error = smooth_expected_calibration_error(outcome, proba)
    assert error > 0.35
    mass = masses(outcome, proba, np.ones(20))
    assert error == pytest.approx(smooth_error_by_quadrature(proba, mass, error), abs=1e-7)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-4, 1e-2, 0.02])
def test_two_points_by_hand(epsilon):
    # Definition 1.1 of Błasiok et al. (2023): residual masses ∓(½ − ε)/2, 2ε apart; far from 0
    # and 1 the integral is (½ − ε) erf(ε / (√2 σ))
    expected = brentq(
        lambda s: (0.5 - epsilon) * math.erf(epsilon / (math.sqrt(2) * s)) - s, 1e-9, 1, xtol=1e-15
    )
    error = smooth_expected_calibration_error([0, 1], [0.5 - epsilon, 0.5 + epsilon])
    # the ends are felt by as much of the mass as reaches them
    assert error == pytest.approx(expected, abs=1e-7 + norm.sf((0.5 - epsilon) / expected))


def test_residuals_of_one_sign_give_the_bias():
    for proba in ([0.5] * 4, [0.0, 0.1, 0.7, 0.9]):
        bias = 1 - np.mean(proba)
        for bandwidth in (None, 1e-4, 0.1, 3.0):
            error = smooth_expected_calibration_error(
                [1, 1, 1, 1], proba, labels=[0, 1], bandwidth=bandwidth
            )
            assert error == pytest.approx(bias, abs=1e-12)


def test_worst_forecast():
    assert smooth_expected_calibration_error([1, 1, 0], [0.0, 0.0, 1.0]) == pytest.approx(
        brentq(lambda s: smooth_error_by_quadrature([0, 1], [2 / 3, -1 / 3], s) - s, 0.1, 1),
        abs=1e-6,
    )
    error = smooth_expected_calibration_error([1, 1], [0.0, 0.0], labels=[0, 1])
    assert error == pytest.approx(1, abs=1e-12)


def test_calibrated_forecasts():
    assert smooth_expected_calibration_error([0, 1, 1], [0.0, 1.0, 1.0]) == 0
    assert smooth_expected_calibration_error([0, 1], [0.5, 0.5]) == 0
    error = smooth_expected_calibration_error([0] * 7 + [1] * 3 + [0, 1], [0.3] * 10 + [0.5] * 2)
    assert error == pytest.approx(0, abs=1e-15)


def test_limits_of_the_bandwidth():
    proba = np.array([0.1, 0.1, 0.4, 0.8, 0.8])
    outcome = np.array([1, 0, 1, 0, 1])
    residual = (outcome - proba) / 5
    narrow = smooth_expected_calibration_error(outcome, proba, bandwidth=1e-4)
    by_value = abs(residual[:2].sum()) + abs(residual[2]) + abs(residual[3:].sum())
    assert narrow == pytest.approx(by_value, abs=1e-10)
    wide = smooth_expected_calibration_error(outcome, proba, bandwidth=100)
    assert wide == pytest.approx(abs(residual.sum()), abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_does_not_increase_with_the_bandwidth(seed):
    outcome, proba, weight = few_samples(seed)
    values = [
        smooth_expected_calibration_error(
            outcome, proba, sample_weight=weight, labels=[0, 1], bandwidth=bandwidth
        )
        for bandwidth in np.geomspace(1e-3, 3, 20)
    ]
    assert np.diff(values).max() < 1e-8


@pytest.mark.parametrize("n", [1, 10, 1000, 10_000])
def test_error_at_its_own_bandwidth_is_the_error(n):
    rng = np.random.default_rng(n)
    for width in (1, 0.001):
        proba = width * rng.random(n)
        outcome = (rng.random(n) < proba).astype(int)
        error = smooth_expected_calibration_error(outcome, proba, labels=[0, 1])
        again = smooth_expected_calibration_error(outcome, proba, labels=[0, 1], bandwidth=error)
        assert again == pytest.approx(error, abs=1e-12)


def test_consistent_with_the_smooth_calibration_error():
    # A function |g| ≤ 1 smoothed has the Lipschitz constant √(2/π)/σ, so smECE_σ is at most
    # max(1, √(2/π)/σ)·smCE; a 1-Lipschitz function moves by at most √(2/π)·σ when smoothed, so smCE
    # is at most smECE_σ + √(2/π)·σ.
    c = math.sqrt(2 / math.pi)
    for seed in range(60):
        outcome, proba, weight = few_samples(seed)
        data = {"sample_weight": weight, "labels": [0, 1]}
        smooth = smooth_calibration_error(outcome, proba, **data)
        error = smooth_expected_calibration_error(outcome, proba, **data)
        assert smooth <= (1 + c) * error + 1e-7
        assert error <= max(smooth, math.sqrt(c * smooth)) + 1e-7
        for bandwidth in (0.03, 0.3):
            at = smooth_expected_calibration_error(outcome, proba, bandwidth=bandwidth, **data)
            assert smooth <= at + c * bandwidth + 1e-7
            assert at <= max(1, c / bandwidth) * smooth + 1e-7


def test_classes_by_hand():
    proba = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]
    # both predictions have confidence ½, one is right; class b has one prediction, and class c
    # residuals of one sign
    labels = ["a", "b", "c"]
    assert smooth_expected_calibration_error(["a", "b"], proba, labels=labels) == 0
    by_class = smooth_expected_calibration_error(
        ["a", "b"], proba, labels=labels, multi_class="classwise", average=None
    )
    assert by_class.shape == (3,)
    np.testing.assert_allclose(by_class[1:], [0.2, 0.35], atol=1e-12)
    of_a = smooth_expected_calibration_error([1, 0], [0.5, 0.2])
    assert by_class[0] == pytest.approx(of_a, abs=1e-15)


@pytest.mark.parametrize("bandwidth", [0, -0.1, 1e-6, np.inf, np.nan, "auto", [0.1]])
def test_bad_bandwidth(bandwidth):
    with pytest.raises(ValueError, match=r"'bandwidth' .* must be a float in the range \[1e-05"):
        smooth_expected_calibration_error([0, 1], [0.2, 0.7], bandwidth=bandwidth)


def test_huge_bandwidths_leave_the_mean_residual():
    y, proba = [0, 1, 1], [0.2, 0.7, 0.9]
    for bandwidth in (1e12, 1.7e308):
        error = smooth_expected_calibration_error(y, proba, bandwidth=bandwidth)
        assert error == pytest.approx(0.2 / 3, abs=1e-15)
