"""The power of tests by simulation, and the number of samples that it takes."""

import numpy as np
import pytest
from joblib import parallel_config
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm

from skcalib.hypothesis_tests import (
    CalibrationInTheLargeTest,
    CalibrationTest,
    EquivalenceTest,
    SpiegelhalterTest,
    power_of_test,
    required_sample_size,
)
from skcalib.hypothesis_tests._power import fit_power_curve
from skcalib.recalibration import TemperatureRecalibrator

PROBA = np.linspace(0.3, 0.7, 50)
TEST = CalibrationInTheLargeTest(alternative="greater", method="asymptotic")


def power_of_z(n, gap, level=0.05):
    """By the central limit theorem, of the sum of residuals if each true probability is higher.

    A row is drawn with replacement, but the gap is the same in all of them.
    """
    deviations = [np.sqrt(np.mean(p * (1 - p))) for p in (PROBA, PROBA + gap)]
    return norm.cdf((gap * np.sqrt(n) - norm.isf(level) * deviations[0]) / deviations[1])


@pytest.mark.parametrize(
    ("gap", "level"), [pytest.param(0.1, 0.05, marks=pytest.mark.slow), (0.15, 0.01)]
)
def test_power_is_that_of_the_normal_test(gap, level):
    # a binomial standard deviation is at most 0.02, and the sum of 150 labels moves in steps of 1
    options = {"test": TEST, "alpha": level, "n_simulations": 400, "random_state": 0}
    found = power_of_test(PROBA, PROBA + gap, 150, **options)
    assert abs(found - power_of_z(150, gap, level)) < 4 * 0.02 + 0.01


@pytest.mark.parametrize("power", [pytest.param(0.5, marks=pytest.mark.slow), 0.9])
def test_size_is_that_of_the_normal_test(power):
    exact = brentq(lambda n: power_of_z(n, 0.1) - power, 10, 1000)
    options = {"test": TEST, "power": power, "n_simulations": 250, "random_state": 0}
    size = required_sample_size(PROBA, PROBA + 0.1, **options)
    assert abs(power_of_z(size.n_samples, 0.1) - power) < 4 * size.standard_error
    assert abs(size.n_samples - exact) < 0.25 * exact
    assert power <= size.power < power + 0.01
    assert 0.015 < size.standard_error < 0.04
    n_doublings = np.sum(np.log2(size.n_samples_searched) % 1 == 0)
    assert size.n_simulated.sum() == 250 + 25 * n_doublings
    assert (np.diff(size.n_samples_searched) > 0).all()
    rejected = size.powers * size.n_simulated
    np.testing.assert_allclose(rejected, rejected.round(), atol=1e-9)


@pytest.mark.parametrize("slope", [1.8, 2.5, 4.0])
def test_curve_recovers_itself(slope):
    """Shares without chance, of far more simulations than the prior counts for."""
    n = np.array([50, 80, 100, 130, 200, 3000, 5])
    rejected = 1e6 * norm.cdf(norm.ppf(0.8) + slope * (np.sqrt(n / 104.0) - 1))
    rejected[-2:] = 0, 1e6  # too far away to count
    simulated = np.full(len(n), 1e6)
    curve = fit_power_curve(n, rejected, simulated, power=0.8, alpha=0.05, guess=90.0)
    np.testing.assert_allclose([curve.middle, curve.slope], [104, slope], rtol=1e-3)
    assert curve.evaluate(104.0) == pytest.approx(0.8, abs=1e-3)
    # the same with fewer simulations is as much less certain
    fewer = fit_power_curve(n, rejected / 100, simulated / 100, power=0.8, alpha=0.05, guess=90.0)
    assert fewer.error == pytest.approx(10 * curve.error, rel=0.01)


def test_without_simulations_the_guess_is_off_by_a_factor_of_e_squared():
    few = {"n": np.array([400.0]), "rejected": np.array([1.0]), "simulated": np.array([2.0])}
    curve = fit_power_curve(**few, power=0.8, alpha=0.05, guess=100.0)
    none = {name: np.zeros(0) for name in few}
    assert fit_power_curve(**none, power=0.8, alpha=0.05, guess=100.0).error == 2
    usual = norm.ppf(0.8) + norm.isf(0.05)

    def negative_log_posterior(log_middle, log_slope):
        probit = norm.ppf(0.8) + np.exp(log_slope) * (np.sqrt(400 / np.exp(log_middle)) - 1)
        likelihood = norm.logcdf(probit) + norm.logsf(probit)
        prior = norm.logpdf(log_middle, np.log(100), 2) + norm.logpdf(log_slope, np.log(usual), 0.5)
        return -likelihood - prior

    best = np.log([curve.middle, curve.slope])
    for step in ([1e-3, 0], [0, 1e-3]):  # the slope of the surprise is 0
        difference = negative_log_posterior(*(best + step)) - negative_log_posterior(*(best - step))
        assert abs(difference / 2e-3) < 1e-3


def test_error_of_the_curve_is_that_of_a_share():
    """All simulations at the solution: the error of the power is the binomial one."""
    n, simulated = np.array([100.0]), np.array([1e4])
    curve = fit_power_curve(n, 0.8 * simulated, simulated, power=0.8, alpha=0.05, guess=100.0)
    assert curve.standard_error == pytest.approx(0.004, rel=0.01)


def test_stronger_miscalibration_needs_fewer_samples():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=200)
    test = CalibrationTest("log_loss", n_resamples=19, alternative="greater")

    def size(temperature):
        def truth(p):
            q = p ** (1 / temperature)
            return q / q.sum(axis=1, keepdims=True)

        options = {"test": test, "n_simulations": 25, "random_state": 0}
        return required_sample_size(proba, truth, **options).n_samples

    assert 16 == size(20.0) < size(2.0)


def test_truth_is_an_array_a_function_or_a_recalibrator():
    rng = np.random.default_rng(0)
    proba = rng.random(300)
    recalibrator = TemperatureRecalibrator().fit(proba, rng.random(300) < expit(logit(proba) / 3))
    truth = recalibrator.predict_proba(proba)
    options = {"test": TEST, "n_simulations": 20}
    found = power_of_test(proba, truth, 40, random_state=0, **options)
    for y_proba, true_proba, seed, n_jobs in (
        (proba, recalibrator, 0, 2),
        (proba, recalibrator.predict_proba, 0, None),
        (np.column_stack([1 - proba, proba]), truth[:, 1], 0, None),
        (proba.tolist(), truth.tolist(), np.random.RandomState(0), None),
    ):
        with parallel_config("threading"):
            again = power_of_test(
                y_proba, true_proba, 40, random_state=seed, n_jobs=n_jobs, **options
            )
        assert again == found
    assert 0 < found < 1


def test_search_follows_its_seed():
    options = {"test": TEST, "n_simulations": 10}
    one, same, other = (
        required_sample_size(PROBA, PROBA + 0.2, random_state=seed, **options) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.powers, same.powers)
    assert one.n_samples == same.n_samples
    assert not np.array_equal(one.powers, other.powers)


def test_default_is_the_test_of_calibration():
    truth = PROBA / 3
    options = {"n_simulations": 10, "random_state": 0}
    found = power_of_test(PROBA, truth, 16, **options)
    assert 0 < found < 1
    test = CalibrationTest(n_resamples=199, labels=["no", "yes"])  # simulated labels are 0 and 1
    assert power_of_test(PROBA, truth, 16, test=test, **options) == found
    assert test.get_params()["labels"] == ["no", "yes"]  # a clone is used


def test_calibrated_predictions_can_be_shown_to_be_so():
    test = EquivalenceTest("expected_calibration_error", margin=0.9, n_resamples=39)
    size = required_sample_size(PROBA, PROBA, test=test, n_simulations=1, random_state=0)
    assert size.n_samples == 16
    assert size.power > 0.8
    with pytest.raises(ValueError, match="true_proba must differ from y_proba; found the same"):
        required_sample_size(PROBA, PROBA)


def test_what_cannot_be_found_is_said():
    half, test = np.full(10, 0.5), SpiegelhalterTest(method="asymptotic")
    with pytest.raises(ValueError, match=r"max_samples=100; found 0 of 25 rejected there"):
        required_sample_size(half, half + 0.1, test=test, max_samples=100, random_state=0)


@pytest.mark.parametrize(
    ("test", "n_sides"),
    [
        (CalibrationTest("brier_score_loss", n_resamples=9), 2),
        (CalibrationTest("brier_score_loss", n_resamples=9, alternative="less"), 1),
        (CalibrationTest("cumulative_calibration_error", n_resamples=9), 1),
        (CalibrationInTheLargeTest(n_resamples=9), 2),
        (CalibrationInTheLargeTest(n_resamples=9, alternative="less"), 1),
    ],
)
def test_level_may_be_the_smallest_p_value(test, n_sides):
    options = {"test": test, "n_simulations": 10, "random_state": 0}
    truth = np.where(PROBA > 0.5, 0.8, 0.0)  # surer than the predictions, and lower on average
    assert power_of_test(PROBA, truth, 300, alpha=n_sides / 10, **options) > 0.9
    with pytest.raises(ValueError, match=f"alpha must be at least {n_sides} / "):
        power_of_test(PROBA, truth, 300, alpha=n_sides / 10 - 0.001, **options)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"power": 0.05}, r"power must be more than alpha.* found power=0.05 and alpha=0.05"),
        ({"power": 1.0}, "The 'power' parameter"),
        ({"alpha": 0.0}, "The 'alpha' parameter"),
        ({"alpha": 0.004}, r"1 / \(n_resamples \+ 1\).* found 0.004 and n_resamples=199"),
        ({"test": CalibrationTest}, r"found the class .*CalibrationTest\(\)"),
        ({"max_samples": 15}, "The 'max_samples' parameter"),
        ({"true_proba": np.full(9, 0.5)}, r"true_proba must have the shape .* \(9,\) and \(50,\)"),
        ({"true_proba": np.full((50, 3), 1 / 3)}, r"found \(50, 3\) and \(50,\)"),
        ({"true_proba": np.full(50, 1.5)}, "true_proba must"),
        ({"true_proba": lambda p: p[:3]}, r"found \(3,\) and \(50,\)"),
        ({"y_proba": [0.5, np.nan]}, "y_proba"),
    ],
)
def test_bad_input(changed, message):
    arguments = {"y_proba": PROBA, "true_proba": PROBA / 4} | changed
    arguments |= {"n_simulations": 1, "random_state": 0}
    with pytest.raises((ValueError, TypeError), match=message):
        required_sample_size(**arguments)
    common = {key: value for key, value in arguments.items() if key not in ("power", "max_samples")}
    if common.keys() & changed.keys():
        with pytest.raises((ValueError, TypeError), match=message):
            power_of_test(**common, n_samples=20)
