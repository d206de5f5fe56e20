import math

import numpy as np
import pytest
from scipy.integrate import quad

from skcalib.datasets import _at_inverse_temperature, make_temperature_family
from skcalib.hypothesis_tests import CalibrationTest


def prediction(f, beta):
    """Equation (34) of Błasiok et al. (2023), as it stands there."""
    return f**beta / (f**beta + (1 - f) ** beta)


@pytest.mark.parametrize("beta", [0, 0.1, 0.5, 1, 2, 7.5])
def test_predictions_are_the_formula_of_the_paper(beta):
    _, proba, truth = make_temperature_family(
        500, inverse_temperature=beta, return_true_proba=True, random_state=0
    )
    np.testing.assert_allclose(proba, [prediction(f, beta) for f in truth], rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("f", "beta", "expected"),
    [
        (1 / 4, 2, 1 / 10),  # 1 : 9
        (1 / 5, 0.5, 1 / 3),  # 1 : 2
        (1 / 3, 3, 1 / 9),  # 1 : 8
        (1 / 2, 1e300, 1 / 2),
        (0.4999, 1e300, 0),
        (0.5001, 1e300, 1),
        (0.3, 5e-324, 1 / 2),
        (0, 2, 0),
        (1, 2, 1),
        (0, 0, 1 / 2),
        (1, 0, 1 / 2),
        (1e-300, 1, 1e-300),
    ],
)
def test_predictions_by_hand_and_at_the_extremes(f, beta, expected):
    actual = _at_inverse_temperature(np.array([float(f)]), beta)
    np.testing.assert_allclose(actual, expected, rtol=1e-15, atol=0)


@pytest.mark.parametrize("beta", [0.3, 1, 2, 20])
def test_moments(beta):
    n = 100_000
    y, proba, truth = make_temperature_family(
        n, inverse_temperature=beta, return_true_proba=True, random_state=1
    )
    moments = {  # of the sample, and as an integral over f, y being f on average
        "y": (y, lambda f: f),
        "y f": (y * truth, lambda f: f**2),
        "y p": (y * proba, lambda f: f * prediction(f, beta)),
        "p": (proba, lambda f: prediction(f, beta)),
        "p²": (proba**2, lambda f: prediction(f, beta) ** 2),
    }
    for name, (values, integrand) in moments.items():
        expected = quad(integrand, 0, 1)[0]
        four_deviations = 4 * values.std() / math.sqrt(n)
        assert values.mean() == pytest.approx(expected, abs=four_deviations), name


def test_expected_calibration_error_by_hand():
    # E|f − p| = (ln 2)/2 − 1/4 at β = 2; its standard deviation is below 0.06
    n = 100_000
    _, proba, truth = make_temperature_family(
        n, inverse_temperature=2, return_true_proba=True, random_state=2
    )
    expected = math.log(2) / 2 - 1 / 4
    assert np.abs(truth - proba).mean() == pytest.approx(expected, abs=4 * 0.06 / math.sqrt(n))


def test_only_inverse_temperature_one_is_calibrated():
    p_values = {}
    for beta in (0.5, 1, 2):
        y, proba = make_temperature_family(2000, inverse_temperature=beta, random_state=0)
        test = CalibrationTest(n_resamples=99, random_state=0)
        p_values[beta] = test.fit(proba, y).p_value_
    assert p_values[1] > 0.05
    assert p_values[0.5] == p_values[2] == 0.01


def test_calibrated_predictions_are_the_truth():
    y, proba, truth = make_temperature_family(return_true_proba=True, random_state=0)
    np.testing.assert_allclose(proba, truth, rtol=1e-15)
    assert y.shape == proba.shape == truth.shape == (1000,)
    assert y.dtype.kind == "i"
    assert set(y) == {0, 1}
    assert proba.dtype == np.float64


def test_the_temperature_changes_neither_outcomes_nor_truth():
    first = make_temperature_family(50, return_true_proba=True, random_state=3)
    second = make_temperature_family(
        50, inverse_temperature=4, return_true_proba=True, random_state=3
    )
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[2], second[2])
    assert np.abs(first[1] - second[1]).max() > 0.1


def test_seeds():
    def truth(random_state):
        return make_temperature_family(20, return_true_proba=True, random_state=random_state)[2]

    np.testing.assert_array_equal(truth(5), truth(5))
    np.testing.assert_array_equal(truth(5), truth(np.random.RandomState(5)))
    assert not np.array_equal(truth(5), truth(6))
    state = np.random.RandomState(5)
    assert not np.array_equal(truth(state), truth(state))


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_samples": 0},
        {"n_samples": 10.0},
        {"inverse_temperature": -1},
        {"inverse_temperature": np.nan},
        {"inverse_temperature": np.inf},
        {"inverse_temperature": "2"},
        {"return_true_proba": 2},
        {"random_state": "seed"},
    ],
    ids=str,
)
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises((ValueError, TypeError), match=f"The '{name}' parameter"):
        make_temperature_family(**parameters)
