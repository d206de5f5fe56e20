"""The simulated data sets follow the formulas, moments and calibration errors of their papers."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta as beta_distribution, norm

from skcalib import datasets
from skcalib.datasets import make_covariate_shift, make_dirichlet_family, make_temperature_family
from skcalib.datasets._families import _sharpen
from skcalib.hypothesis_tests import CalibrationTest

N = 10_000
MODELS = ["M1", "M2", "M3"]


def assert_mean(values, expected, n_deviations=4):
    """The mean is as expected, up to so many standard deviations."""
    atol = n_deviations * np.std(values) / math.sqrt(len(values)) + 1e-12
    assert np.mean(values) == pytest.approx(expected, abs=atol)


def prediction(f, beta):
    """Equation (34) of Błasiok et al. (2023), as it stands there."""
    return f**beta / (f**beta + (1 - f) ** beta)


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


@pytest.mark.parametrize("beta", [0, 0.1, 0.3, 0.5, 1, 2, 7.5, 20])
def test_temperature_family(beta):
    options = {"return_true_proba": True, "random_state": 1}
    y, proba, truth = make_temperature_family(20_000, inverse_temperature=beta, **options)
    np.testing.assert_allclose(proba, prediction(truth, beta), rtol=0, atol=1e-15)
    assert (y.dtype.kind, set(y), proba.dtype) == ("i", {0, 1}, np.float64)
    for values, integrand in (  # of the sample, and as an integral over f, y being f on average
        (y, lambda f: f),
        (y * truth, lambda f: f**2),
        (y * proba, lambda f: f * prediction(f, beta)),
        (proba, lambda f: prediction(f, beta)),
        (proba**2, lambda f: prediction(f, beta) ** 2),
    ):
        assert_mean(values, quad(integrand, 0, 1)[0])
    if beta == 2:
        assert_mean(np.abs(truth - proba), math.log(2) / 2 - 1 / 4)
    default = make_temperature_family(20_000, **options)  # calibrated, of the same truth
    np.testing.assert_array_equal(y, default[0])
    np.testing.assert_array_equal(truth, default[2])
    np.testing.assert_allclose(default[1], truth, rtol=1e-15)


def test_calibrated_are_only_inverse_temperature_one_and_the_first_model():
    cases = {model: make_dirichlet_family(model=model, random_state=0) for model in MODELS}
    for beta in (0.5, 1, 2):
        cases[beta] = make_temperature_family(2000, inverse_temperature=beta, random_state=0)
    for key, (y, proba) in cases.items():
        p_value = CalibrationTest(n_resamples=99, random_state=0).fit(proba, y).p_value_
        assert p_value > 0.05 if key in (1, "M1") else p_value == 0.01


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("n_classes", [2, 10])
def test_dirichlet_family(model, n_classes):
    y, proba, truth = make_dirichlet_family(
        N, n_classes=n_classes, model=model, return_true_proba=True, random_state=0
    )
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-14)
    marginal = beta_distribution(0.1, 0.1 * (n_classes - 1))
    for k in range(n_classes):
        assert_mean(proba[:, k], marginal.moment(1), 4.5)
        assert_mean(proba[:, k] ** 2, marginal.moment(2), 4.5)
    total = 0.1 * n_classes  # E p_j p_k = α² / (Kα (Kα + 1))
    assert_mean(proba[:, 0] * proba[:, 1], 0.1**2 / (total * (total + 1)))
    # true probabilities
    one = np.eye(n_classes)[0]
    expected = {"M1": proba, "M2": (proba + one) / 2, "M3": np.full_like(proba, 1 / n_classes)}
    np.testing.assert_allclose(truth, expected[model], rtol=0, atol=1e-15)
    for k in range(n_classes):
        for weight in (np.ones(N), proba[:, 0], proba[:, k]):
            assert_mean(weight * ((y == k) - truth[:, k]), 0, 4.5)
    # calibration errors: E|b − 1/K| = ∫ P(b ≤ t) below 1/K + ∫ P(b > t) above
    low, high = quad(marginal.cdf, 0, 1 / n_classes)[0], quad(marginal.sf, 1 / n_classes, 1)[0]
    errors = {"M1": 0, "M2": (1 - 1 / n_classes) / 2, "M3": n_classes / 2 * (low + high)}
    assert_mean(np.abs(proba - truth).sum(axis=1) / 2, errors[model])
    if n_classes == 10:
        assert errors[model] == pytest.approx({"M1": 0, "M2": 0.45, "M3": 0.71}[model], abs=0.005)


def test_the_model_changes_the_labels_only():
    first, second, third = (make_dirichlet_family(model=m, random_state=3) for m in MODELS)
    for y, proba in (first, second, third):
        np.testing.assert_array_equal(proba, first[1])
        assert (y.shape, proba.shape, y.dtype.kind) == ((250,), (250, 10), "i")
    assert (second[0] == 0).mean() > 0.4 > (first[0] == 0).mean()
    assert not np.array_equal(first[0], third[0])


@pytest.mark.parametrize("location", [-1.0, 0.0, 0.3])
def test_covariate_shift_by_quadrature(location):
    y, proba, truth = make_covariate_shift(
        20_000, location=location, return_true_proba=True, random_state=0
    )
    x = np.linspace(-1, 1, 20_001)
    density = norm.pdf(x, location, 0.25)
    for values, factor in ((truth, 1), (proba, 5)):
        assert_mean(values, density @ (1 / (1 + np.exp(-factor * x))) / density.sum())
    assert_mean(y - truth, 0)
    odds = np.log(truth / (1 - truth))  # the model multiplies them by 5
    np.testing.assert_allclose(np.log(proba / (1 - proba)), 5 * odds, atol=1e-10)


@pytest.mark.parametrize(
    "make", [make_temperature_family, make_dirichlet_family, make_covariate_shift]
)
def test_seeds(make):
    def draw(random_state):
        return make(20, random_state=random_state)[1]

    np.testing.assert_array_equal(draw(5), draw(5))
    np.testing.assert_array_equal(draw(5), draw(np.random.RandomState(5)))
    assert not np.array_equal(draw(5), draw(6))
    state = np.random.RandomState(5)
    assert not np.array_equal(draw(state), draw(state))
    assert len(make()[0]) == (250 if make is make_dirichlet_family else 1000)


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        ("temperature_family", "n_samples", 0),
        ("temperature_family", "n_samples", 10.0),
        ("temperature_family", "inverse_temperature", -1),
        ("temperature_family", "inverse_temperature", np.nan),
        ("temperature_family", "inverse_temperature", np.inf),
        ("temperature_family", "inverse_temperature", "2"),
        ("temperature_family", "return_true_proba", 2),
        ("temperature_family", "random_state", "seed"),
        ("dirichlet_family", "n_samples", 0),
        ("dirichlet_family", "n_classes", 1),
        ("dirichlet_family", "model", "M4"),
        ("dirichlet_family", "model", 1),
        ("covariate_shift", "location", 1.5),
        ("covariate_shift", "n_samples", 0),
    ],
)
def test_bad_parameters_are_named(make, name, value):
    with pytest.raises((ValueError, TypeError), match=f"The '{name}' parameter"):
        getattr(datasets, f"make_{make}")(**{name: value})
