"""The test at which one may look at any time."""

import itertools
import pickle
from copy import deepcopy

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import softmax
from scipy.stats import binom, norm
from sklearn.base import clone

from skcalib._inputs.drawing import draw_labels
from skcalib._numerics.vasicek import log_likelihood
from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    QuantileForecast,
)
from skcalib.hypothesis_tests import SequentialCalibrationTest
from skcalib.recalibration import InterceptRecalibrator, TemperatureRecalibrator


def weeks(test, rng, n_weeks, change=None, begin=0, n=50, n_classes=2):
    """The test after so many weeks of predictions, whose logits are multiplied from one on."""
    for week in range(n_weeks):
        z = 1.5 * rng.normal(size=(n, n_classes))
        truth = softmax(z * (change if change and week >= begin else 1.0), axis=1)
        test.partial_fit(softmax(z, axis=1), draw_labels(truth, 1, rng)[0])
    return test


@pytest.mark.parametrize("n_classes", [2, 3])
def test_expectation_of_the_e_value_is_one(n_classes, monkeypatch):
    # over all labels of two small batches: the stake neither grows nor shrinks on average
    monkeypatch.setattr("skcalib.hypothesis_tests._sequential._MIN_NEW_SAMPLES", 2)
    proba = np.random.default_rng(0).dirichlet(np.ones(n_classes), size=4)
    mean, values = 0.0, []
    n_samples = 4 if n_classes == 2 else 3
    for label in itertools.product(range(n_classes), repeat=n_samples):
        windows = (2, 4) if n_classes == 2 else (4,)
        test = SequentialCalibrationTest(windows=windows, labels=range(n_classes))
        test.partial_fit(proba[:2], label[:2]).partial_fit(proba[2:n_samples], label[2:])
        values.append(test.e_value_)
        mean += np.prod(proba[np.arange(n_samples), label]) * test.e_value_
    assert mean == pytest.approx(1.0, abs=1e-12)
    assert np.std(values) > 0.01


def test_rows_that_are_rounded_are_no_evidence():
    label = np.random.default_rng(0).integers(0, 3, 3000)
    test = SequentialCalibrationTest([TemperatureRecalibrator()], windows=(50,), labels=range(3))
    for _ in range(5):
        test.partial_fit(np.full((3000, 3), 0.33333), label)
    assert test.e_value_ == pytest.approx(1.0, abs=1e-6)


def test_e_value_by_hand(monkeypatch):
    monkeypatch.setattr("skcalib.hypothesis_tests._sequential._MIN_NEW_SAMPLES", 2)
    rng = np.random.default_rng(0)
    proba, label = rng.random((3, 2)), rng.integers(2, size=(3, 2))
    test = SequentialCalibrationTest([TemperatureRecalibrator()], windows=(4,), labels=[0, 1])
    for p, y in zip(proba, label, strict=True):
        test.partial_fit(p, y)
    gains = [1.0]  # of the first batch, before anything was learned
    for k in (1, 2):
        past = TemperatureRecalibrator(labels=[0, 1]).fit(proba[:k].ravel(), label[:k].ravel())
        moved = past.predict_proba(proba[k])[[0, 1], label[k]]
        given = np.where(label[k] == 1, proba[k], 1 - proba[k])
        gains.append(np.prod(0.99 * moved / given + 0.01))
    expected = gains[0] * gains[1] * gains[2] / 2 + gains[1] * gains[2] / 6 + gains[2] / 12 + 1 / 4
    assert test.e_value_ == pytest.approx(expected, rel=1e-12)
    assert test.log_e_value_ == pytest.approx(np.log(expected), abs=1e-12)
    assert test.n_seen_ == 6


def test_p_value_is_that_of_the_largest_e_value():
    test = weeks(SequentialCalibrationTest(), np.random.default_rng(0), 20, change=0.6)
    history = test.history_
    assert history["n_seen"] == list(range(50, 1001, 50))
    largest = np.maximum.accumulate(np.maximum(history["log_e_value"], 0.0))
    np.testing.assert_allclose(history["p_value"], np.exp(-largest), rtol=1e-12)
    assert (np.diff(history["p_value"]) <= 0).all()
    assert history["p_value"][-1] == test.p_value_ < 0.01


def test_a_drift_after_a_long_time_is_found():
    test = weeks(SequentialCalibrationTest(), np.random.default_rng(0), 40, change=0.6, begin=25)
    before = test.history_["p_value"][24]
    assert before > 0.2
    assert test.p_value_ < 0.01


def test_batches_may_be_of_any_size():
    rng = np.random.default_rng(0)
    proba = rng.random(600)
    label = rng.random(600) < proba**2
    whole = SequentialCalibrationTest().fit(proba, label)
    assert whole.p_value_ < 0.001  # learned from the first half, and bet on the second
    assert whole.fit(proba, label).history_["n_seen"] == [600]


def test_pickled_in_between():
    rng = np.random.default_rng(0)
    test = weeks(SequentialCalibrationTest(), rng, 5, change=0.5)
    state = rng.bit_generator.state
    copy = pickle.loads(pickle.dumps(test))
    weeks(test, rng, 5, change=0.5)
    rng.bit_generator.state = state
    assert weeks(copy, rng, 5, change=0.5).log_e_value_ == test.log_e_value_
    assert not hasattr(clone(test), "n_seen_")


@pytest.mark.parametrize("when", [0, 1])
def test_impossible_labels_are_certain_evidence(when):
    test = SequentialCalibrationTest(labels=[0, 1])
    for k in range(2):
        test.partial_fit([0.0 if k == when else 0.5, 0.5], [1, 0])
    assert test.e_value_ == np.inf
    assert 0 < test.p_value_ < 1e-300
    assert test.partial_fit([0.5], [1]).e_value_ == np.inf


def test_labels_of_the_first_batch_hold():
    test = SequentialCalibrationTest(labels=["no", "yes"])
    test.partial_fit([0.2, 0.7], ["no", "yes"])
    assert list(test.partial_fit([0.4], ["yes"]).classes_) == ["no", "yes"]
    with pytest.raises(ValueError, match="labels"):
        test.partial_fit([0.4], ["perhaps"])
    with pytest.raises(ValueError, match="as many columns as in the first batch, 1; found 2"):
        test.partial_fit([[0.4, 0.6]], ["yes"])


@pytest.mark.parametrize("windows", [(), (20,), (500, 1.5), (True,)])
def test_bad_windows(windows):
    with pytest.raises(ValueError, match="windows must be whole numbers of at least 50"):
        SequentialCalibrationTest(windows=windows).fit([0.2, 0.7], [0, 1])


@pytest.mark.parametrize("recalibrators", [[], ["x"], [TemperatureRecalibrator]])
def test_bettors_must_be_recalibrators(recalibrators):
    with pytest.raises(ValueError, match=r"recalibrators must hold recalibrators.*found \["):
        SequentialCalibrationTest(recalibrators).fit([0.2, 0.7], [0, 1])


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 4])
def test_size_under_weekly_looks(n_classes):
    repetitions, level = 60, 0.1
    rejected = 0
    for seed in range(repetitions):
        test = SequentialCalibrationTest(windows=(300,))
        weeks(test, np.random.default_rng(seed), 104, n_classes=n_classes)
        rejected += test.p_value_ <= level
    assert rejected / repetitions <= level + 4 * np.sqrt(level * (1 - level) / repetitions)


def test_labels_of_a_batch_that_share_a_factor_are_no_evidence():
    """The expected e-value of a calibrated batch is the one before it, over all its labels."""
    rng = np.random.default_rng(0)
    test = SequentialCalibrationTest([InterceptRecalibrator()], windows=(50,), correlation=0.4)
    test.partial_fit(np.full(60, 0.2), rng.random(60) < 0.5)
    threshold, slope = norm.ppf([0.05, 0.3, 0.5, 0.9]), np.sqrt(0.4)
    expected = total = 0.0
    for label in itertools.product([0, 1], repeat=4):
        after = deepcopy(test).partial_fit(norm.cdf(threshold), label)
        sign = 2 * np.array(label) - 1

        def density(z, sign=sign):
            given = norm.cdf(sign * (threshold - slope * z) / np.sqrt(0.6))
            return np.prod(given) * norm.pdf(z)

        proba = quad(density, -12, 12, epsabs=1e-13)[0]
        expected, total = expected + proba * after.e_value_, total + proba
    assert total == pytest.approx(1, abs=1e-9)
    assert after.e_value_ != pytest.approx(test.e_value_)
    assert expected == pytest.approx(test.e_value_, rel=1e-9)


@pytest.mark.parametrize(("n", "correlation"), [(3, 0.12), (400, 0.12), (2000, 0.01), (500, 0.9)])
def test_the_likelihood_of_one_factor(n, correlation):
    rng = np.random.default_rng(n)
    proba = rng.uniform(0.001, 0.2, n).round(2 if n == 500 else 9)
    event = rng.random(n) < np.clip(3 * proba, 0, 1)
    seen = norm.ppf(np.clip(np.where(event, proba, 1 - proba), 1e-300, 1))
    slope = np.where(event, -1, 1) * np.sqrt(correlation)

    def log_density(z):
        return norm.logcdf((seen + slope * z) / np.sqrt(1 - correlation)).sum() + norm.logpdf(z)

    z = np.linspace(-9, 9, 801)
    peak = z[np.argmax([log_density(x) for x in z])]
    inner = quad(lambda x: np.exp(log_density(x) - log_density(peak)), peak - 1, peak + 1)[0]
    outer = [
        quad(lambda x: np.exp(log_density(x) - log_density(peak)), *ends)[0]
        for ends in ((peak - 9, peak - 1), (peak + 1, peak + 9))
    ]
    expected = log_density(peak) + np.log(inner + sum(outer))
    found = log_likelihood(norm.cdf(seen), event, correlation)
    assert found == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("correlation", [0.5, 0.99, 0.9999])
def test_the_likelihood_of_one_label_is_its_probability(correlation):
    for proba in (0.001, 0.3, 0.9, 1.0):
        found = log_likelihood(np.array([proba]), np.array([True]), correlation)
        assert found == pytest.approx(np.log(proba), rel=1e-12, abs=1e-12)


def test_correlation_is_of_two_classes():
    for X in (np.full((3, 3), 1 / 3), GaussianForecast(np.zeros(3), 1.0)):
        with pytest.raises(ValueError, match="correlation must be 0 except for two classes"):
            SequentialCalibrationTest(correlation=0.1).fit(X, [0, 1, 2])


def test_forecasts_have_an_expected_e_value_of_one():
    """Over all outcomes of a batch of counts, without a draw: the e-value stays as it was."""
    forecast = DistributionForecast(binom(2, np.array([0.3, 0.5, 0.9])))
    before = SequentialCalibrationTest().partial_fit(forecast[[0] * 60], np.ones(60))
    expected = 0.0
    for outcome in itertools.product(range(3), repeat=3):
        after = deepcopy(before).partial_fit(forecast, outcome)
        proba = np.prod(binom.pmf(outcome, 2, [0.3, 0.5, 0.9]))
        expected += proba * after.e_value_
    assert after.e_value_ != pytest.approx(before.e_value_)
    assert expected == pytest.approx(before.e_value_, rel=1e-12)


FORECASTS = {
    "normal": (lambda n: GaussianForecast(np.zeros(n), 1.0), lambda rng, n: rng.normal(size=n)),
    "quantiles": (
        lambda n: QuantileForecast(np.tile(norm.ppf([0.1, 0.5, 0.9]), (n, 1)), [0.1, 0.5, 0.9]),
        lambda rng, n: rng.normal(size=n),
    ),
    "ensemble": (
        lambda n: EnsembleForecast(np.random.default_rng(n).poisson(2, size=(n, 9))),
        lambda rng, n: rng.poisson(2, size=n),
    ),
}


@pytest.mark.parametrize(("forecast", "draw"), FORECASTS.values(), ids=FORECASTS)
def test_forecasts_that_drift_are_found(forecast, draw):
    rng = np.random.default_rng(0)
    test = SequentialCalibrationTest()
    for week in range(20):
        test.partial_fit(forecast(50 + week), draw(rng, 50 + week) * (1.0 if week < 10 else 1.8))
        if week == 9:
            assert test.p_value_ > 0.05
    assert test.p_value_ < 1e-3
    with pytest.raises(ValueError, match="X must hold forecasts of a number, as the first"):
        test.partial_fit([0.2, 0.7], [0, 1])
    with pytest.raises(ValueError, match="X must hold probabilities, as the first"):
        test.fit([0.2, 0.7], [0, 1]).partial_fit(forecast(2), [0.0, 1.0])
    with pytest.raises(ValueError, match="recalibrators must be None for forecasts"):
        SequentialCalibrationTest([TemperatureRecalibrator()]).fit(forecast(2), [0.0, 1.0])
