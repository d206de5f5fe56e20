"""The Laplace kernel error equals the double sum, and its random estimators are unbiased."""

import numpy as np
import pytest
from oracles import normalised
from problems import small_case

from skcalib.metrics import laplace_kernel_calibration_error, squared_kernel_calibration_error


def square_by_double_sum(proba, outcome, weight=None, bandwidth=1.0):
    mass = normalised(weight, len(proba)) * (outcome - proba)
    total = 0.0
    for i in range(len(proba)):
        for j in range(len(proba)):
            total += mass[i] * mass[j] * np.exp(-abs(proba[i] - proba[j]) / bandwidth)
    return total


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.25, 0.4, 0.5])
def test_two_points_by_hand(epsilon):
    # Definition 1.1 of Błasiok et al. (2023): masses ∓(½ − ε)/2, 2ε apart
    error = laplace_kernel_calibration_error([0, 1], [0.5 - epsilon, 0.5 + epsilon])
    expected = (0.5 - epsilon) * np.sqrt((1 - np.exp(-2 * epsilon)) / 2)
    assert error == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("bandwidth", [1e-300, 1e-6, 1e-3, 0.1, 1.0, 50.0])
def test_equals_the_double_sum(bandwidth):
    for seed in range(40):
        proba, outcome, weight = small_case(seed)
        square = laplace_kernel_calibration_error(
            outcome, proba, sample_weight=weight, labels=[0, 1], bandwidth=bandwidth, squared=True
        )
        expected = square_by_double_sum(proba, outcome, weight, bandwidth)
        assert square == pytest.approx(expected, abs=1e-14)


def test_limits_of_the_bandwidth():
    rng = np.random.default_rng(0)
    proba, outcome = rng.random(100), rng.integers(0, 2, size=100)
    residual = outcome - proba
    wide = laplace_kernel_calibration_error(outcome, proba, bandwidth=1e12)
    assert wide == pytest.approx(abs(residual.mean()), abs=1e-10)
    narrow = laplace_kernel_calibration_error(outcome, proba, bandwidth=1e-12)
    assert narrow == pytest.approx(np.sqrt(np.sum(residual**2)) / 100, abs=1e-12)


def test_is_half_of_the_biased_matrix_form():
    rng = np.random.default_rng(0)
    proba, outcome = rng.random(100), rng.integers(0, 2, size=100)
    square = laplace_kernel_calibration_error(outcome, proba, bandwidth=0.3, squared=True)
    matrix = squared_kernel_calibration_error(outcome, proba, bandwidth=0.3, estimation="biased")
    assert 2 * square == pytest.approx(matrix, abs=1e-15)


@pytest.mark.parametrize("method", ["subsample", "fourier", "binning"])
def test_random_estimators_are_unbiased_for_the_square(method):
    rng = np.random.default_rng(1)
    proba, outcome = rng.random(25), rng.integers(0, 2, size=25)
    weight = rng.exponential(size=25)
    estimates = [
        laplace_kernel_calibration_error(
            outcome,
            proba,
            sample_weight=weight,
            bandwidth=0.2,
            method=method,
            n_draws=20_000 if method == "subsample" else 200,
            squared=True,
            random_state=seed,
        )
        for seed in range(100)
    ]
    exact = square_by_double_sum(proba, outcome, weight, 0.2)
    standard_error = np.std(estimates) / np.sqrt(len(estimates))
    assert standard_error < 0.02 * exact
    assert abs(np.mean(estimates) - exact) < 4 * standard_error


def test_root_of_a_negative_estimate_is_zero():
    options = {"method": "subsample", "n_draws": 1}
    proba, outcome = [0.4, 0.6], [0, 1]
    squares = [
        laplace_kernel_calibration_error(
            outcome, proba, squared=True, **options | {"random_state": s}
        )
        for s in range(20)
    ]
    assert min(squares) < 0 < max(squares)
    seed = int(np.argmin(squares))
    error = laplace_kernel_calibration_error(outcome, proba, **options | {"random_state": seed})
    assert error == 0
    seed = int(np.argmax(squares))
    error = laplace_kernel_calibration_error(outcome, proba, **options | {"random_state": seed})
    assert error == np.sqrt(max(squares))


def test_default_numbers_of_draws():
    rng = np.random.default_rng(0)
    proba, outcome = rng.random(30), rng.integers(0, 2, size=30)
    for method, n_draws in (("subsample", 300), ("fourier", 100), ("binning", 100)):
        options = {"method": method, "random_state": 3}
        assert laplace_kernel_calibration_error(
            outcome, proba, **options
        ) == laplace_kernel_calibration_error(outcome, proba, n_draws=n_draws, **options)


def test_draws_for_an_exact_value_are_refused():
    with pytest.raises(ValueError, match="n_draws must be left out for method='exact'"):
        laplace_kernel_calibration_error([0, 1], [0.2, 0.9], n_draws=5)


def test_many_pairs_are_drawn_in_batches(monkeypatch):
    from skcalib.metrics import _laplace

    monkeypatch.setattr(_laplace, "_MAX_BLOCK_PAIRS", 1000)
    rng = np.random.default_rng(0)
    proba, outcome = rng.random(20), np.ones(20, dtype=int)
    estimate = laplace_kernel_calibration_error(
        outcome, proba, method="subsample", n_draws=20_500, squared=True, random_state=0
    )
    assert estimate == pytest.approx(square_by_double_sum(proba, outcome), rel=0.05)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("bandwidth", 0),
        ("bandwidth", -1.0),
        ("bandwidth", np.nan),
        ("bandwidth", "median"),
        ("method", "exakt"),
        ("n_draws", 0),
        ("n_draws", 2.5),
        ("squared", "no"),
        ("random_state", "seed"),
    ],
)
def test_bad_options_are_refused(option, value):
    with pytest.raises(ValueError, match=f"'{option}' parameter"):
        laplace_kernel_calibration_error([0, 1], [0.2, 0.9], **{option: value})
