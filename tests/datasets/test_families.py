"""The simulated data sets follow the formulas, moments and calibration errors of their papers."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta as beta_distribution

from skcalib.datasets import make_covariate_shift, make_dirichlet_family, make_temperature_family
from skcalib.datasets._families import _sharpen
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
    actual = _sharpen(np.array([float(f)]), beta)
    np.testing.assert_allclose(actual, expected, rtol=1e-15, atol=0)


@pytest.mark.parametrize("beta", [0.3, 1, 2, 20])
def test_moments(beta):
    n = 20_000
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
    n = 20_000
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


MODELS = ["M1", "M2", "M3"]


def dirichlet_case(model, n_classes, seed=0, n_samples=10_000):
    return make_dirichlet_family(
        n_samples, n_classes=n_classes, model=model, return_true_proba=True, random_state=seed
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("n_classes", [2, 10])
def test_true_probabilities_are_those_of_the_paper(model, n_classes):
    _, proba, truth = dirichlet_case(model, n_classes, n_samples=20)
    for row, true_row in zip(proba, truth, strict=True):
        if model == "M1":
            expected = row
        elif model == "M2":
            expected = [0.5 * p + 0.5 * (k == 0) for k, p in enumerate(row)]
        else:
            expected = [1 / n_classes] * n_classes
        np.testing.assert_allclose(true_row, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("n_classes", [2, 10])
def test_predictions_have_the_moments_of_the_dirichlet_distribution(n_classes):
    n = 10_000
    _, proba, _ = dirichlet_case("M1", n_classes)
    marginal = beta_distribution(0.1, 0.1 * (n_classes - 1))
    for k in range(n_classes):
        for power in (1, 2):
            values = proba[:, k] ** power
            assert values.mean() == pytest.approx(
                marginal.moment(power), abs=4.5 * values.std() / math.sqrt(n)
            )
    # E p_j p_k = α² / (Kα (Kα + 1))
    values = proba[:, 0] * proba[:, 1]
    total = 0.1 * n_classes
    expected = 0.1**2 / (total * (total + 1))
    assert values.mean() == pytest.approx(expected, abs=4 * values.std() / math.sqrt(n))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("n_classes", [2, 10])
def test_labels_follow_the_true_probabilities(model, n_classes):
    n = 10_000
    y, proba, truth = dirichlet_case(model, n_classes)
    for k in range(n_classes):
        for weight in (np.ones(n), proba[:, 0], proba[:, k]):
            values = weight * ((y == k) - truth[:, k])
            assert abs(values.mean()) < 4.5 * values.std() / math.sqrt(n)


@pytest.mark.parametrize("n_classes", [2, 10])
def test_expected_calibration_errors_of_the_notes(n_classes):
    n = 10_000
    marginal = beta_distribution(0.1, 0.1 * (n_classes - 1))
    low, high = (quad(marginal.cdf, 0, 1 / n_classes)[0], quad(marginal.sf, 1 / n_classes, 1)[0])
    expected = {  # E|b − 1/K| = ∫ P(b ≤ t) below 1/K + ∫ P(b > t) above
        "M1": 0,
        "M2": (1 - 1 / n_classes) / 2,
        "M3": n_classes / 2 * (low + high),
    }
    for model, error in expected.items():
        _, proba, truth = dirichlet_case(model, n_classes)
        distance = np.abs(proba - truth).sum(axis=1) / 2
        four_deviations = 4 * distance.std() / math.sqrt(n)
        assert distance.mean() == pytest.approx(error, abs=four_deviations + 1e-12)
        if n_classes == 10:
            assert error == pytest.approx({"M1": 0, "M2": 0.45, "M3": 0.71}[model], abs=0.005)


def test_only_the_first_model_is_calibrated():
    p_values = {}
    for model in MODELS:
        y, proba = make_dirichlet_family(model=model, random_state=0)
        test = CalibrationTest(n_resamples=99, random_state=0)
        p_values[model] = test.fit(proba, y).p_value_
    assert p_values["M1"] > 0.05
    assert p_values["M2"] == p_values["M3"] == 0.01


def test_the_model_changes_the_labels_only():
    cases = [make_dirichlet_family(model=model, random_state=3) for model in MODELS]
    for y, proba in cases:
        np.testing.assert_array_equal(proba, cases[0][1])
        assert y.shape == (250,)
        assert proba.shape == (250, 10)
        assert y.dtype.kind == "i"
        assert set(y) <= set(range(10))
        np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-14)
    assert (cases[1][0] == 0).mean() > 0.4 > (cases[0][0] == 0).mean()
    assert not np.array_equal(cases[0][0], cases[2][0])


def test_seeds_of_the_dirichlet_family():
    def proba(random_state):
        return make_dirichlet_family(20, random_state=random_state)[1]

    np.testing.assert_array_equal(proba(5), proba(np.random.RandomState(5)))
    assert not np.array_equal(proba(5), proba(6))


@pytest.mark.parametrize(
    "parameters", [{"n_samples": 0}, {"n_classes": 1}, {"model": "M4"}, {"model": 1}], ids=str
)
def test_bad_parameters_of_the_dirichlet_family_are_named(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"The '{name}' parameter"):
        make_dirichlet_family(**parameters)


@pytest.mark.parametrize("location", [-1.0, 0.0, 0.3])
def test_covariate_shift_by_quadrature(location):
    n = 20_000
    y_true, y_proba, true_proba = make_covariate_shift(
        n, location=location, return_true_proba=True, random_state=0
    )
    x = np.linspace(-1, 1, 20_001)
    density = np.exp(-((x - location) ** 2) / (2 * 0.25**2))
    density /= density.sum()
    expected_truth = density @ (1 / (1 + np.exp(-x)))
    expected_proba = density @ (1 / (1 + np.exp(-5 * x)))
    assert abs(true_proba.mean() - expected_truth) < 4 * true_proba.std() / np.sqrt(n)
    assert abs(y_proba.mean() - expected_proba) < 4 * y_proba.std() / np.sqrt(n)
    assert abs(np.mean(y_true - true_proba)) < 4 * 0.5 / np.sqrt(n)
    odds = np.log(true_proba / (1 - true_proba))  # the model multiplies them by 5
    np.testing.assert_allclose(np.log(y_proba / (1 - y_proba)), 5 * odds, atol=1e-10)


@pytest.mark.parametrize(("option", "value"), [("location", 1.5), ("n_samples", 0)])
def test_bad_options_of_the_covariate_shift(option, value):
    with pytest.raises(ValueError, match=f"'{option}' parameter"):
        make_covariate_shift(**{option: value})
