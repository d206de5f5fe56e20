"""Confidence intervals and comparisons equal loops over subsamples and keep their coverage."""

from dataclasses import FrozenInstanceError
from functools import partial

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from problems import random_problem, two_columns
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss

from skcalib import metrics
from skcalib.datasets import make_temperature_family
from skcalib.metrics import (
    expected_calibration_error,
    smooth_calibration_error,
    squared_kernel_calibration_error,
)
from skcalib.uncertainty import _resampling, compare_models, confidence_interval
from skcalib.uncertainty._resampling import jackknife_deviation

FAST = {"n_resamples": 39, "random_state": 0}


def mean_residual(y_true, y_proba, sample_weight=None):
    return float(np.average(y_true - y_proba, weights=sample_weight))


class Recorder:
    """A metric that remembers what it was given and what it returned."""

    def __init__(self, metric=mean_residual):
        self.metric, self.rows, self.values = metric, [], []

    def __call__(self, y_true, y_proba):
        self.rows.append(y_proba)
        self.values.append(self.metric(y_true, y_proba))
        return self.values[-1]


def order_statistic(values, tail, n_resamples):
    """The value that so many resamples reach or exceed that (1 + #)/(1 + B) just exceeds `tail`."""
    n_more_extreme = round(tail * (n_resamples + 1)) - 1
    return sorted(values, reverse=True)[n_more_extreme]


def interval_by_loops(values, n, n_groups, size, level, rate=0.5):
    """The interval from the values: of all samples, without each group, and of the subsamples."""
    value, jackknife, subsamples = values[0], values[1 : n_groups + 1], values[n_groups + 1 :]
    mean = sum(jackknife) / n_groups
    variance = (n_groups - 1) / n_groups * sum((v - mean) ** 2 for v in jackknife)
    tail = (1 - level) / 2
    margin = stats.t.ppf(1 - tail, n_groups - 1) * np.sqrt(variance)
    ratio = (size / n) ** rate
    above = order_statistic(subsamples, tail, len(subsamples))
    below = -order_statistic([-v for v in subsamples], tail, len(subsamples))
    low = (value - ratio * above) / (1 - ratio)
    high = (value - ratio * below) / (1 - ratio)
    return min(low, value - margin), max(high, value + margin)


@pytest.mark.parametrize(
    ("n", "n_groups", "size"), [(10, 10, 5), (36, 36, 18), (100, 100, 30), (250, 100, 48)]
)
@pytest.mark.parametrize("level", [0.8, 0.9])
def test_interval_equals_loops(n, n_groups, size, level):
    label, proba = random_problem(np.random.default_rng(0), n)
    metric = Recorder()
    interval = confidence_interval(metric, label, proba, confidence_level=level, **FAST)
    assert len(metric.values) == 1 + n_groups + 39
    expected = interval_by_loops(metric.values, n, n_groups, size, level)
    np.testing.assert_allclose((interval.low, interval.high), expected, atol=1e-12)
    assert interval.estimate == metric.values[0]
    assert interval.confidence_level == level


def test_resamples_are_parts_without_repetition():
    proba = np.random.default_rng(0).random(250)
    metric = Recorder()
    confidence_interval(metric, proba > 0.5, proba, **FAST)
    groups, subsamples = metric.rows[1:101], metric.rows[101:]
    left_out = np.concatenate([np.setdiff1d(proba, rows) for rows in groups])
    np.testing.assert_array_equal(np.sort(left_out), np.sort(proba))  # each sample once
    assert {len(rows) for rows in groups} == {247, 248}
    for rows in subsamples:
        assert len(np.intersect1d(rows, proba)) == len(rows) == 48
    assert len({rows.tobytes() for rows in subsamples}) == 39


def test_jackknife_of_a_mean_is_its_standard_error():
    values = np.array([1.0, 2.0, 6.0, 7.0])
    without_one = (values.sum() - values) / 3
    assert jackknife_deviation(without_one) == pytest.approx(stats.sem(values), abs=1e-12)


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("smooth_calibration_error", 1 / 2),
        ("smooth_expected_calibration_error", 1 / 3),
        ("interval_calibration_error", 1 / 3),
    ],
)
def test_rate_of_the_measure(name, rate, monkeypatch):
    # 0.3 s: each resample is a fixed point of its own
    label, proba = make_temperature_family(36, inverse_temperature=6, random_state=0)
    monkeypatch.setattr(_resampling, "MIN_EVENTS", 0)  # tested apart: labels that are moved
    metric = Recorder(partial(getattr(metrics, name), labels=[0, 1]))
    confidence_interval(metric, label, proba, confidence_level=0.8, **FAST)
    expected = interval_by_loops(metric.values, 36, 36, 18, 0.8, rate)
    interval = confidence_interval(name, label, proba, confidence_level=0.8, **FAST)
    assert (interval.low, interval.high) == pytest.approx(
        (max(expected[0], 0), expected[1]), abs=1e-12
    )


@pytest.mark.parametrize("function", [confidence_interval, compare_models])
def test_result_does_not_depend_on_jobs_but_on_the_seed(function):
    label, proba = random_problem(np.random.default_rng(0), 50)
    models = [proba] if function is confidence_interval else [proba, proba**2]
    one = function(mean_residual, label, *models, **FAST)
    with parallel_config("threading"):
        assert one == function(mean_residual, label, *models, n_jobs=2, **FAST)
    assert one == function(mean_residual, label, *models, n_resamples=39, random_state=0)
    assert one != function(mean_residual, label, *models, n_resamples=39, random_state=1)


def test_affine_metrics_have_affine_intervals():
    label, proba = random_problem(np.random.default_rng(0), 60)
    interval = confidence_interval(mean_residual, label, proba, **FAST)
    other = confidence_interval(lambda y, p: 3 - 2 * mean_residual(y, p), label, proba, **FAST)
    np.testing.assert_allclose(
        [other.estimate, other.high, other.low],
        3 - 2 * np.array([interval.estimate, interval.low, interval.high]),
        atol=1e-12,
    )


def test_ways_to_name_a_metric_are_equal():
    label, proba = random_problem(np.random.default_rng(0), 40)
    expected = confidence_interval(
        "expected_calibration_error", label, proba, metric_params={"n_bins": 5}, **FAST
    )
    assert expected.estimate == expected_calibration_error(label, proba, n_bins=5)
    for metric in (
        partial(expected_calibration_error, n_bins=5),
        partial(partial(expected_calibration_error, labels=[0, 1]), n_bins=5),
    ):
        assert confidence_interval(metric, label, proba, **FAST) == expected
    assert expected == confidence_interval(
        expected_calibration_error, label, proba, metric_params={"n_bins": 5}, **FAST
    )


@pytest.mark.parametrize(
    "metric", ["smooth_calibration_error", "squared_kernel_calibration_error", log_loss]
)
def test_classes_may_be_missing_from_a_part(metric):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=40)
    y = np.array(["b"] * 39 + ["a"])
    with pytest.raises(ValueError, match="Name all classes with labels"):
        confidence_interval(metric, y, proba, **FAST)
    interval = confidence_interval(metric, y, proba, labels=["a", "b", "c"], **FAST)
    assert interval.low <= interval.estimate <= interval.high or interval.low == 0


@pytest.mark.parametrize("as_given", [lambda y, p: (y, two_columns(p)), lambda y, p: (y + 5, p)])
@pytest.mark.parametrize("container", [list, np.array, pd.Series])
def test_forms_of_the_data(as_given, container):
    label, proba = random_problem(np.random.default_rng(0), 15)
    expected = confidence_interval(smooth_calibration_error, label, proba, **FAST)
    y, p = as_given(label, proba)
    p = pd.DataFrame(p) if container is pd.Series else p
    actual = confidence_interval(smooth_calibration_error, container(y), p, **FAST)
    assert (actual.low, actual.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_metric_gets_probabilities_as_passed():
    label, proba = random_problem(np.random.default_rng(0), 40)
    y = np.where(label, "yes", "no")
    options = {"method": "resampling", **FAST}
    expected = confidence_interval(brier_score_loss, label, proba, **options)
    assert expected == confidence_interval(
        brier_score_loss, y, proba, metric_params={"pos_label": "yes"}, **options
    )

    def second_column(y, p):
        return brier_score_loss(y, p[:, 1], pos_label="yes")

    assert expected == confidence_interval(second_column, y, two_columns(proba), **options)
    turned = confidence_interval(
        smooth_calibration_error, y, 1 - proba, metric_params={"pos_label": "no"}, **FAST
    )
    straight = confidence_interval(smooth_calibration_error, y, proba, **FAST)
    np.testing.assert_allclose((turned.low, turned.high), (straight.low, straight.high), atol=1e-12)


def test_weights():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 60)
    expected = confidence_interval(mean_residual, label, proba, **FAST)
    ones = confidence_interval(mean_residual, label, proba, sample_weight=np.ones(60), **FAST)
    assert (ones.low, ones.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    weight = rng.random(60)
    weight[:20] = 0
    some = confidence_interval(mean_residual, label, proba, sample_weight=7 * weight, **FAST)
    rest = confidence_interval(
        mean_residual, label[20:], proba[20:], sample_weight=weight[20:], **FAST
    )
    assert (some.low, some.high) == pytest.approx((rest.low, rest.high), abs=1e-12)
    assert rest.estimate == pytest.approx(
        np.average((label - proba)[20:], weights=weight[20:]), abs=1e-12
    )


def test_only_errors_of_the_package_end_at_zero():
    label, proba = make_temperature_family(50, random_state=3)
    for metric in (smooth_calibration_error, squared_kernel_calibration_error):
        interval = confidence_interval(metric, label, proba, **FAST)
        assert interval.low == 0
        assert interval.high >= 0

    def copy(y, p):
        return smooth_calibration_error(y, p, labels=[0, 1])

    assert confidence_interval(copy, label, proba, **FAST).low < 0


def test_comparison_equals_loops():
    rng = np.random.default_rng(0)
    n = 100
    label, proba = random_problem(rng, n)
    other = np.clip(proba + rng.normal(0, 0.1, size=n), 0, 1)
    metric = Recorder(lambda y, p: mean_residual(y, p) ** 2)
    result = compare_models(metric, label, proba, other, confidence_level=0.9, **FAST)
    a, b = np.array(metric.values[0::2]), np.array(metric.values[1::2])
    assert (result.estimate_a, result.estimate_b) == (a[0], b[0])
    assert result.difference == a[0] - b[0]
    expected = interval_by_loops(list(a - b), n, 100, 30, 0.9)
    np.testing.assert_allclose((result.low, result.high), expected, atol=1e-12)
    deviation = jackknife_deviation((a - b)[1:101])
    p_values = []
    for sign in (1, -1):
        difference = sign * (a - b)
        exceeding = sum(np.sqrt(30 / n) * d >= difference[0] for d in difference[101:])
        normal = 1 - stats.t.cdf(difference[0] / deviation, 99)
        p_values.append(max((1 + exceeding) / 40, normal))
    assert result.p_value == pytest.approx(min(1, 2 * min(p_values)), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_p_value_agrees_with_the_interval(seed):
    y, a = make_temperature_family(80, inverse_temperature=8, random_state=seed)
    b = make_temperature_family(80, inverse_temperature=1, random_state=seed)[1]
    p_value = compare_models(mean_square, y, a, b, **FAST).p_value
    for level in (0.5, 0.8, 0.9, 0.95):
        result = compare_models(mean_square, y, a, b, confidence_level=level, **FAST)
        assert result.p_value == p_value
        assert (not result.low <= 0 <= result.high) == (p_value <= 1 - level + 1e-12)


def mean_square(y_true, y_proba):
    return float(np.mean((y_true - y_proba) ** 2))


def test_comparison_is_antisymmetric():
    label, proba = random_problem(np.random.default_rng(0), 30)
    one = compare_models(smooth_calibration_error, label, proba, proba**2, **FAST)
    two = compare_models(smooth_calibration_error, label, proba**2, proba, **FAST)
    assert one.difference == -two.difference
    assert (one.low, one.high) == pytest.approx((-two.high, -two.low), abs=1e-12)
    assert one.p_value == two.p_value


def test_equal_predictions_do_not_differ():
    label, proba = random_problem(np.random.default_rng(0), 40)
    result = compare_models(
        smooth_calibration_error, label, proba, two_columns(proba)[:, 1], **FAST
    )
    assert (result.difference, result.low, result.high, result.p_value) == (0, 0, 0, 1)


def test_clear_difference():
    y, calibrated = make_temperature_family(200, random_state=0)
    result = compare_models(smooth_calibration_error, y, 1 - calibrated, calibrated, **FAST)
    assert result.low > 0
    assert result.p_value == 2 / 40


def test_results_are_frozen_and_short():
    label, proba = random_problem(np.random.default_rng(0), 40)
    result = confidence_interval(mean_residual, label, proba, **FAST)
    with pytest.raises(FrozenInstanceError):
        result.low = 0
    assert repr(result) == (
        f"ConfidenceInterval(estimate={result.estimate:.4g}, low={result.low:.4g}, "
        f"high={result.high:.4g}, confidence_level=0.95)"
    )
    assert repr(compare_models(mean_residual, label, proba, proba, **FAST)).startswith(
        "Comparison(estimate_a="
    )


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"metric": "brier_score_loss"}, "metric must be one of"),
        ({"metric": 3}, "'metric' parameter"),
        ({"confidence_level": 0.0}, "'confidence_level' parameter"),
        ({"confidence_level": 1.0}, "'confidence_level' parameter"),
        ({"confidence_level": 95}, "'confidence_level' parameter"),
        ({"n_resamples": 0}, "'n_resamples' parameter"),
        ({"metric_params": {"n_bins": 0}}, "'n_bins' parameter"),
        ({"metric": lambda y, p: p}, "metric must return one number"),
        ({"metric": lambda y, p: [1.0, 2.0]}, "metric must return one number"),
        ({"metric": lambda y, p: "0.1"}, "metric must return one number"),
        ({"metric": lambda y, p: np.nan}, "metric must be finite"),
        ({"sample_weight": np.ones(3)}, "sample_weight"),
        ({"sample_weight": np.arange(40) < 9}, "at least 10 samples of positive weight; found 9"),
        ({"y_true": np.zeros(39)}, "inconsistent numbers of samples"),
    ],
)
def test_bad_input(changed, match):
    label, proba = random_problem(np.random.default_rng(0), 40)
    given = {
        "metric": "expected_calibration_error",
        "y_true": label,
        "y_pred": proba,
        "n_resamples": 5,
    }
    given |= changed
    if callable(given["metric"]):
        given["metric"] = lambda y, p, metric=given["metric"]: metric(y, p)
    with pytest.raises(ValueError, match=match):
        confidence_interval(**given)


def test_values_of_single_classes_are_refused():
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    arguments = smooth_calibration_error, label, proba
    params = {"multi_class": "classwise", "average": None}
    with pytest.raises(ValueError, match="choose an average"):
        confidence_interval(*arguments, labels=range(3), metric_params=params, **FAST)
    params = {"multi_class": "classwise"}
    assert confidence_interval(*arguments, labels=range(3), metric_params=params, **FAST).high > 0


def test_models_must_be_of_the_same_problem():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 40)
    with pytest.raises(ValueError, match="y_pred_b"):
        compare_models(mean_residual, label, proba, proba[:39], **FAST)
    with pytest.raises(ValueError, match="y_pred_b has 3 columns"):
        compare_models(mean_residual, label, proba, rng.dirichlet(np.ones(3), size=40), **FAST)
    with pytest.raises(ValueError, match="y_pred_a must"):
        compare_models(mean_residual, label, proba + 1, proba, **FAST)


def four_deviations_below(level, n_repetitions):
    return level - 4 * np.sqrt(level * (1 - level) / n_repetitions)


@pytest.mark.slow
@pytest.mark.parametrize("inverse_temperature", [1, 2])
@pytest.mark.parametrize("n", [100, 1000])
def test_coverage(n, inverse_temperature):
    truth = (np.arange(10_000) + 0.5) / 10_000
    odds = (truth / (1 - truth)) ** inverse_temperature
    for metric in (smooth_calibration_error, expected_calibration_error):
        value = metric(
            np.repeat([0, 1], 10_000),
            np.tile(odds / (1 + odds), 2),
            sample_weight=np.concatenate([1 - truth, truth]),
        ) if inverse_temperature != 1 else 0.0  # fmt: skip
        covered = []
        for seed in range(100):
            y, p = make_temperature_family(
                n, inverse_temperature=inverse_temperature, random_state=seed
            )
            interval = confidence_interval(
                metric, y, p, confidence_level=0.9, n_resamples=39, random_state=seed
            )
            covered.append(interval.low <= value <= interval.high)
        assert np.mean(covered) >= four_deviations_below(0.9, 100)


@pytest.mark.slow
def test_false_alarms_and_the_bootstrap_that_fails():
    rng = np.random.default_rng(0)
    rejected, bootstrap_covers = [], []
    for seed in range(100):
        y, p = make_temperature_family(500, random_state=seed)
        coarse = (np.floor(4 * p) + 0.5) / 4  # calibrated too
        result = compare_models(smooth_calibration_error, y, p, coarse, **FAST)
        rejected.append(result.p_value <= 0.1)
        rows = rng.integers(500, size=(39, 500))
        errors = [smooth_calibration_error(y[r], p[r], labels=[0, 1]) for r in rows]
        bootstrap_covers.append(min(errors) <= 0)
    assert np.mean(rejected) <= 1 - four_deviations_below(0.9, 100)
    assert not any(bootstrap_covers)


def test_metrics_of_scikit_learn_get_rows_that_sum_to_1_in_double_precision():
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    single = proba.astype(np.float32)
    exact = single / single.astype(float).sum(axis=1, keepdims=True)
    result = confidence_interval(log_loss, label, single, n_resamples=9, random_state=0)
    assert result.estimate == pytest.approx(log_loss(label, exact), abs=1e-15)
    result = confidence_interval(
        smooth_calibration_error, label, single, n_resamples=9, random_state=0
    )
    assert result.estimate == smooth_calibration_error(label, single)


def test_jobs_do_not_change_the_last_digit():
    rng = np.random.default_rng(0)
    proba = rng.random(1000)
    label = (rng.random(1000) < proba).astype(int)
    options = {"random_state": 0, "n_resamples": 20}
    alone, shared = (
        confidence_interval("smooth_calibration_error", label, proba, **options, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    )
    assert alone == shared
