"""Where labels are nearly all alike, intervals say what may not have been seen by chance."""

import numpy as np
import pytest
from problems import random_problem
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss

from skcalib.hypothesis_tests import EquivalenceTest
from skcalib.metrics import observed_expected_ratio
from skcalib.metrics._registry import METRICS
from skcalib.report import calibration_report
from skcalib.uncertainty import clinical_calibration, compare_models, confidence_interval
from skcalib.uncertainty._measured import check_predicted
from skcalib.uncertainty._resampling import Units, rare_event_labels

FAST = {"n_resamples": 19, "random_state": 0}
SMOOTH = "smooth_calibration_error"
ONE_BIN = {"metric_params": {"n_bins": 1}}  # the error is |observed − predicted frequency|


def labels_with(n_events, n):
    return (np.arange(n) < n_events).astype(int)


def clopper_pearson(n_events, n, tail):
    low = stats.beta.ppf(tail, n_events, n - n_events + 1) if n_events else 0.0
    return low, stats.beta.isf(tail, n_events + 1, n - n_events) if n_events < n else 1.0


def interval_of_frequency(n_events, n, predicted, level):
    return confidence_interval(
        "expected_calibration_error", labels_with(n_events, n), np.full(n, predicted),
        labels=[0, 1], confidence_level=level, **ONE_BIN, **FAST
    )  # fmt: skip


@pytest.mark.parametrize("n_deaths", [0, 1])
@pytest.mark.parametrize("metric", [SMOOTH, "expected_calibration_error"])
def test_few_deaths_are_compatible_with_no_error_and_with_a_large_one(metric, n_deaths):
    rng = np.random.default_rng(0)
    for n in (50, 100):
        risk = np.sort(rng.uniform(0.002, 0.01, size=n))
        y = rng.permutation(labels_with(n_deaths, n))
        one = confidence_interval(metric, y, risk, labels=[0, 1], **FAST)
        farthest = clopper_pearson(n_deaths, n, 0.025)[1] - risk.mean()
        assert farthest <= one.high <= 2 * farthest
        assert one.low == 0
        test = EquivalenceTest(metric, margin=0.01, labels=[0, 1], **FAST).fit(risk, y)
        assert test.p_value_ > 0.5


@pytest.mark.parametrize("predicted", [0.02, 0.9])
def test_coverage_and_size_with_every_number_of_events(predicted):
    # exact: the law of the number of events is binomial
    n, level = 20, 0.9
    found = [interval_of_frequency(k, n, predicted, level) for k in range(n + 1)]
    low, high = np.array([(one.low, one.high) for one in found]).T
    tests = [
        EquivalenceTest("expected_calibration_error", margin=0.2, labels=[0, 1], **ONE_BIN, **FAST)
        .fit(np.full(n, predicted), labels_with(k, n))
        .p_value_
        for k in range(n + 1)
    ]
    for truth in np.linspace(0, 1, 41):
        law, error = stats.binom.pmf(np.arange(n + 1), n, truth), abs(truth - predicted)
        assert law[(low <= error + 1e-12) & (error - 1e-12 <= high)].sum() >= level
        if error >= 0.2:
            assert law[np.array(tests) <= 0.05].sum() <= 0.05


def test_moved_labels_by_loops():
    rng = np.random.default_rng(0)
    proba = np.concatenate([rng.uniform(0.01, 0.1, size=25), rng.uniform(0.9, 1, size=15)])
    y = (proba > 0.5).astype(int)
    y[[3, 30, 31]] = 1 - y[[3, 30, 31]]  # wrong: one of those predicted to be 0, two of the others
    data = check_predicted(
        {"p": proba}, y, sample_weight=None, labels=None, given=None, groups=None
    )["models"][0]
    moves = rare_event_labels(data, Units(data))
    cases = [(side, is_right) for side in (proba < 0.5, proba > 0.5) for is_right in (False, True)]
    assert len(moves) == 4
    for (labels, tails), (side, is_right) in zip(moves, cases, strict=True):
        n_seen = np.sum(((y == (proba > 0.5)) == is_right) & side)
        for label, tail in zip(labels, tails, strict=True):
            moved = np.flatnonzero(label != y)
            assert side[moved].all()
            n_now = np.sum(((label == (proba > 0.5)) == is_right) & side)
            assert n_now == n_seen + len(moved)
            expected = stats.binom.cdf(n_seen, side.sum(), n_now / side.sum())
            assert tail == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert (np.diff(tails) < 0).all()
        assert tails[-1] < 1e-9 or len(moved) == side.sum() - n_seen


@pytest.mark.parametrize("metric", [SMOOTH, log_loss])
@pytest.mark.parametrize("n_events", [0, 2])
def test_p_values_agree_with_the_intervals(metric, n_events):
    rng = np.random.default_rng(0)
    risk = rng.uniform(0.01, 0.05, size=40)
    y = rng.permutation(labels_with(n_events, 40))
    for level in (0.8, 0.95):
        test = EquivalenceTest(
            metric, margin=1.0, confidence_level=level, labels=[0, 1], **FAST
        ).fit(risk, y)
        for margin in (test.upper_limit_ * 0.9999, test.upper_limit_ * 1.0001):
            p_value = EquivalenceTest(metric, margin=margin, labels=[0, 1], **FAST)
            p_value = p_value.fit(risk, y).p_value_
            assert (test.upper_limit_ <= margin) == (p_value <= 1 - level + 1e-12)
        result = compare_models(
            metric, y, risk, risk[::-1] / 3, labels=[0, 1], confidence_level=level, **FAST
        )
        assert (not result.low <= 0 <= result.high) == (result.p_value <= 1 - level + 1e-12)


@pytest.mark.parametrize("multi_class", ["confidence", "classwise"])
def test_a_classifier_that_was_always_right(multi_class):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(5), size=100) * 0.04
    label = rng.integers(5, size=100)
    proba[np.arange(100), label] += 0.96
    one = confidence_interval(
        SMOOTH, label, proba, metric_params={"multi_class": multi_class}, **FAST
    )
    assert one.low == 0
    unseen = clopper_pearson(0, 100, 0.025)[1] - (1 - proba.max(axis=1).mean())
    assert one.high >= (unseen if multi_class == "confidence" else unseen / 5)


def test_nothing_happened_in_groups():
    groups = np.arange(400) // 20  # nobody of 20 patients died, who have 20 rows each
    risk = np.random.default_rng(0).uniform(0.002, 0.01, size=400)
    one = confidence_interval(
        SMOOTH, np.zeros(400, int), risk, labels=[0, 1], groups=groups, **FAST
    )
    assert one.low == 0
    assert one.high >= clopper_pearson(0, 20, 0.025)[1] - risk.mean()
    alone = confidence_interval(SMOOTH, np.zeros(400, int), risk, labels=[0, 1], **FAST)
    assert alone.high < one.high / 10


def test_weights_count_by_their_effective_number():
    weight = np.random.default_rng(0).uniform(size=200)
    risk = np.full(200, 0.01)
    one = confidence_interval(
        SMOOTH, np.zeros(200, int), risk, labels=[0, 1], sample_weight=weight, **FAST
    )
    n_effective = weight.sum() ** 2 / (weight @ weight)
    assert one.high >= clopper_pearson(0, n_effective, 0.025)[1] - 0.01


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
    assert high >= clopper_pearson(0, 60, 0.025)[1] - risk.mean()
    loss = confidence_interval(log_loss, y, risk, labels=[0, 1])
    assert report["intervals"]["log_loss"] == pytest.approx((loss.low, loss.high))


def test_ends_are_values_that_the_metric_can_have():
    y, wrong = labels_with(6, 12), 0.99 - 0.98 * labels_with(6, 12)
    for name, entry in METRICS.items():
        largest = entry.largest(entry.options) if callable(entry.largest) else entry.largest
        if np.isfinite(largest):
            one = confidence_interval(name, y, wrong, method="jackknife", **FAST)
            assert 0 <= one.low <= one.high <= largest, name
    y, wrong = labels_with(10, 12), np.full(12, 0.01)  # Student's end would be 1.06
    test = EquivalenceTest(margin=1.0, **FAST).fit(wrong, y)
    assert test.upper_limit_ == 1
    assert test.p_value_ < 1e-9  # as no error is larger
    for method in ("resampling", "finite-sample"):
        assert confidence_interval(SMOOTH, y, wrong, method=method, **FAST).high == 1


@pytest.mark.parametrize(
    ("name", "params"),
    [
        (SMOOTH, {}),
        ("level_set_calibration_error", {}),
        ("interval_calibration_error", {}),
        ("smooth_expected_calibration_error", {}),
        ("cumulative_calibration_error", {"kind": "max"}),
        ("cumulative_calibration_error", {"kind": "range"}),
        *(("expected_calibration_error", {"norm": norm}) for norm in ("l1", "l2", "max")),
    ],
)
def test_no_error_is_below_that_of_the_frequency(name, params):
    for seed in range(20):
        label, proba = random_problem(np.random.default_rng(seed), 40)
        value = METRICS[name].function(label, proba, labels=[0, 1], **params)
        assert value >= abs(np.mean(label - proba)) - 1e-9


def test_clinical_calibration_of_few_events():
    risk = np.random.default_rng(0).uniform(0.002, 0.01, size=100)
    y = np.random.default_rng(1).permutation(labels_with(1, 100))
    result = clinical_calibration(y, risk, **FAST)
    expected = confidence_interval("integrated_calibration_index", y, risk, **FAST)
    ici = result.integrated_calibration_index
    assert ici.low == expected.low == 0
    assert ici.high >= clopper_pearson(1, 100, 0.025)[1] - risk.mean() - 0.01
    assert observed_expected_ratio(y, risk) > 1
