"""Where labels are nearly all alike, intervals say what may not have been seen by chance."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss

from skcalib.hypothesis_tests import EquivalenceTest
from skcalib.metrics._registry import METRICS
from skcalib.report import calibration_report
from skcalib.uncertainty import compare_models, confidence_interval

FAST = {"n_resamples": 19, "random_state": 0}
SMOOTH = "smooth_calibration_error"
ONE_BIN = {"metric_params": {"n_bins": 1}}  # the error is |observed − predicted frequency|


def labels_with(n_events, n):
    return (np.arange(n) < n_events).astype(int)


def wilson(n_events, n, tail):
    """The upper end of the score interval of a frequency, with a quantile of Student's t."""
    t, rate = stats.t.isf(tail, n - 1), n_events / n
    margin = t * np.sqrt(rate * (1 - rate) / n + t**2 / (4 * n**2))
    return (rate + t**2 / (2 * n) + margin) / (1 + t**2 / n)


@pytest.mark.parametrize("n_deaths", [0, 1])
@pytest.mark.parametrize("metric", [SMOOTH, "expected_calibration_error"])
def test_few_deaths_are_compatible_with_no_error_and_with_a_large_one(metric, n_deaths):
    rng = np.random.default_rng(0)
    for n in (50, 100):
        risk = np.sort(rng.uniform(0.002, 0.01, size=n))
        y = rng.permutation(labels_with(n_deaths, n))
        interval = confidence_interval(metric, y, risk, labels=[0, 1], **FAST)
        farthest = wilson(n_deaths, n, 0.025) - risk.mean()
        assert 0.95 * farthest <= interval.high <= 2 * farthest
        assert interval.low == 0
        test = EquivalenceTest(metric, margin=0.01, labels=[0, 1], **FAST).fit(risk, y)
        assert test.p_value_ > 0.05


@pytest.mark.parametrize("predicted", [0.02, 0.9])
def test_coverage_and_size_with_every_number_of_events(predicted):
    # exact: the law of the number of events is binomial. Score intervals cover on average what they
    # should, and at single frequencies, as the numbers are whole, up to 0.05 less.
    n, level = 20, 0.9
    intervals = [
        confidence_interval(
            "expected_calibration_error", labels_with(k, n), np.full(n, predicted),
            labels=[0, 1], confidence_level=level, **ONE_BIN, **FAST
        )
        for k in range(n + 1)
    ]  # fmt: skip
    low, high = np.transpose([[*one] for one in intervals])
    covered = []
    for truth in (np.arange(40) + 0.5) / 40:
        law, error = stats.binom.pmf(np.arange(n + 1), n, truth), abs(truth - predicted)
        covered.append(law[(low <= error + 1e-12) & (error - 1e-12 <= high)].sum())
    assert np.mean(covered) >= level
    assert np.min(covered) >= level - 0.05


@pytest.mark.parametrize("multi_class", ["confidence", "classwise"])
def test_a_classifier_that_was_always_right(multi_class):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(5), size=100) * 0.04
    label = rng.integers(5, size=100)
    proba[np.arange(100), label] += 0.96
    interval = confidence_interval(
        SMOOTH, label, proba, metric_params={"multi_class": multi_class}, **FAST
    )
    assert interval.low == 0
    unseen = 0.95 * (wilson(0, 100, 0.025) - (1 - proba.max(axis=1).mean()))
    assert interval.high >= (unseen if multi_class == "confidence" else unseen / 5)


def test_weights_count_by_their_effective_number():
    weight = np.random.default_rng(0).uniform(size=200)
    n_effective = weight.sum() ** 2 / (weight @ weight)
    label, risk = np.zeros(200, int), np.full(200, 0.01)
    interval = confidence_interval(SMOOTH, label, risk, labels=[0, 1], sample_weight=weight, **FAST)
    farthest = wilson(0, n_effective, 0.025) - 0.01
    assert farthest - 1e-9 <= interval.high <= 1.5 * farthest


@pytest.mark.parametrize("metric", [log_loss, brier_score_loss])
def test_no_model_wins_because_nothing_happened(metric):
    y = np.zeros(50, int)
    low, high = np.full(50, 0.01), np.full(50, 0.03)
    result = compare_models(metric, y, high, low, labels=[0, 1])
    assert result.low < 0 < result.high
    assert result.p_value > 0.05


def test_the_report_says_the_same():
    risk = np.random.default_rng(0).uniform(0.002, 0.01, size=60)
    y = np.zeros(60, int)
    report = calibration_report(y, risk, labels=[0, 1], random_state=0).to_dict()
    low, high = report["intervals"]["smooth_calibration_error"]
    assert low == 0
    assert high >= 0.95 * (wilson(0, 60, 0.025) - risk.mean())
    loss = confidence_interval(log_loss, y, risk, labels=[0, 1])
    assert report["intervals"]["log_loss"] == pytest.approx((loss.low, loss.high))


def test_ends_are_values_that_the_metric_can_have():
    y, wrong = labels_with(10, 12), np.full(12, 0.01)  # Student's end would be 1.06
    for name in (SMOOTH, "expected_calibration_error", "cumulative_calibration_error"):
        largest = METRICS[name].largest
        interval = confidence_interval(name, y, wrong, **FAST)
        assert interval.high == (largest(METRICS[name].options) if callable(largest) else largest)
    test = EquivalenceTest(margin=1.0, **FAST).fit(wrong, y)
    assert test.upper_limit_ == 1
    assert test.p_value_ < 1e-9  # as no error is larger
    finite = confidence_interval(SMOOTH, y, wrong, method="finite-sample", **FAST)
    assert finite.high == 1
