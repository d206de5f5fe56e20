import numpy as np
import pytest
from helpers import smooth_calibration_cvxpy, smooth_calibration_linprog
from sklearn.metrics import log_loss

from skcalib.metrics import expected_calibration_error, smooth_calibration_error


def small_case(seed):
    """A random small problem; the seed cycles through everything that is special."""
    rng = np.random.default_rng(seed)
    kind = seed % 10
    n = 1 if kind == 0 else int(rng.integers(2, 31))
    proba = rng.random(n)
    if kind in (1, 2):
        proba = np.round(proba, 1)  # ties, 0 and 1 among them
    if kind == 3:
        proba = rng.choice([0.0, 1.0, 0.5], size=n)
    if kind == 4:
        proba = 0.5 + 1e-3 * proba
    outcome = (rng.random(n) < (proba if kind % 2 else rng.random())).astype(int)
    if kind == 5:
        outcome[:] = seed // 10 % 2  # one class only
    if kind == 6:
        outcome[:] = 1  # all residuals positive
    weight = None
    if kind >= 7:
        weight = rng.choice([0.0, 0.5, 1.0, 3.0], size=n)
        weight[0] = 1.0
    return proba, outcome, weight


@pytest.mark.parametrize("start", range(0, 600, 50))
def test_smooth_error_equals_the_linear_program(start):
    for seed in range(start, start + 50):
        proba, outcome, weight = small_case(seed)
        expected = smooth_calibration_linprog(proba, outcome, weight)
        actual = smooth_calibration_error(outcome, proba, sample_weight=weight, labels=[0, 1])
        assert actual == pytest.approx(expected, abs=1e-9), seed


@pytest.mark.parametrize("seed", [11, 13, 17])
def test_smooth_error_equals_cvxpy(seed):
    proba, outcome, weight = small_case(seed)
    expected = smooth_calibration_cvxpy(proba, outcome, weight)
    actual = smooth_calibration_error(outcome, proba, sample_weight=weight, labels=[0, 1])
    assert actual == pytest.approx(expected, abs=1e-9)


def test_smooth_error_equals_the_linear_program_on_a_larger_case():
    rng = np.random.default_rng(0)
    proba = rng.random(400)
    outcome = (rng.random(400) < proba).astype(int)
    expected = smooth_calibration_linprog(proba, outcome)
    assert smooth_calibration_error(outcome, proba) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.25, 0.4, 0.5])
def test_smooth_error_of_two_points_by_hand(epsilon):
    # Definition 1.1 of Błasiok et al. (2023): residuals −(½ − ε) and ½ − ε, 2ε apart
    error = smooth_calibration_error([0, 1], [0.5 - epsilon, 0.5 + epsilon])
    assert error == pytest.approx(epsilon * (0.5 - epsilon), abs=1e-15)


def test_smooth_error_of_one_prediction_is_the_bias():
    assert smooth_calibration_error([0, 1, 1, 1], [0.5] * 4) == pytest.approx(0.25, abs=1e-15)


def test_smooth_error_is_continuous_where_binned_error_is_not():
    outcome = np.array([0, 1] * 50)
    shift = np.array([-1e-9, 1e-9] * 50)
    assert smooth_calibration_error(outcome, 0.5 + shift) < 1e-8
    assert expected_calibration_error(outcome, 0.5 + shift, n_bins=2) > 0.49


def test_smooth_error_lies_between_bias_and_mean_residual():
    # f = ±1 is among the functions, and none is larger than 1
    rng = np.random.default_rng(0)
    for _ in range(50):
        proba, outcome = rng.random(20), rng.integers(0, 2, size=20)
        bias = abs(np.mean(outcome - proba))
        worst = np.mean(np.abs(outcome - proba))
        assert bias - 1e-15 <= smooth_calibration_error(outcome, proba) <= worst


def test_smooth_error_of_confidence_by_hand():
    proba = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]
    # both predictions have confidence 0.5, one is right: calibrated; for "classwise" class a has
    # masses (1 − 0.5)/2 at 0.5 and −0.2/2 at 0.2: 0.15 discarded, 0.1 moved by 0.3
    assert smooth_calibration_error(["a", "b"], proba, labels=["a", "b", "c"]) == 0
    by_class = smooth_calibration_error(
        ["a", "b"], proba, labels=["a", "b", "c"], multi_class="classwise", average=None
    )
    expected = [0.15 + 0.1 * 0.3, 0.2, 0.35]  # b: one prediction, 0.3; c: masses −0.25, −0.1
    np.testing.assert_allclose(by_class, expected, atol=1e-15)


def test_averages_by_hand():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=30)
    label = rng.integers(0, 3, size=30)
    weight = rng.random(30)

    def error(multi_class, average):
        return smooth_calibration_error(
            label, proba, sample_weight=weight, multi_class=multi_class, average=average
        )

    def share(labels):
        return [weight[labels == k].sum() / weight.sum() for k in range(3)]

    top = proba.argmax(axis=1)
    for multi_class, shares, default in (
        ("top-label", share(top), "weighted"),
        ("classwise", share(label), "macro"),
    ):
        values = error(multi_class, None)
        assert error(multi_class, "macro") == pytest.approx(np.mean(values), abs=1e-15)
        assert error(multi_class, "weighted") == pytest.approx(values @ shares, abs=1e-15)
        assert error(multi_class, "auto") == error(multi_class, default)
    for k in range(3):
        alone = smooth_calibration_error(
            label[top == k] == k, proba[top == k, k], sample_weight=weight[top == k]
        )
        assert error("top-label", None)[k] == pytest.approx(alone, abs=1e-15)


def test_a_class_that_is_never_predicted_does_not_count():
    proba = np.array([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.8, 0.2, 0.0]])
    values = smooth_calibration_error([0, 1, 2], proba, multi_class="top-label", average=None)
    assert np.isnan(values[2])
    mean = smooth_calibration_error([0, 1, 2], proba, multi_class="top-label", average="macro")
    assert mean == pytest.approx(np.mean(values[:2]), abs=1e-15)


def test_a_useless_forecast_can_be_calibrated():
    label = np.array([0, 1, 2] * 10)
    proba = np.full((30, 3), 1 / 3)
    assert smooth_calibration_error(label, proba) == pytest.approx(0, abs=1e-15)
    assert log_loss(label, proba) > 1
