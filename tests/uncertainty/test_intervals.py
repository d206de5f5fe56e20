"""What confidence intervals and comparisons take, of names, labels, weights and functions."""

from dataclasses import FrozenInstanceError
from functools import partial

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from oracles import student_by_hand
from problems import random_problem, two_columns
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss

from skcalib.metrics import (
    expected_calibration_error,
    smooth_calibration_error,
)
from skcalib.uncertainty import compare_models, confidence_interval

FAST = {"n_resamples": 39, "random_state": 0}


def mean_residual(y_true, y_proba, sample_weight=None):
    return float(np.average(y_true - y_proba, weights=sample_weight))


class Recorder:
    """A mean that remembers which samples it was given, known by their predictions."""

    def __init__(self, proba):
        self.proba, self.rows, self.values = proba, [], []

    def __call__(self, y_true, y_proba, sample_weight=None):
        self.rows.append(np.flatnonzero(np.isin(self.proba, y_proba)))
        self.values.append(mean_residual(y_true, y_proba, sample_weight) ** 2)
        return self.values[-1]


@pytest.mark.parametrize(("n_groups", "weighted"), [(24, True), (150, True), (None, False)])
def test_a_callable_has_the_jackknife_of_blocks(n_groups, weighted):
    rng = np.random.default_rng(0)
    group = np.arange(250) if n_groups is None else np.arange(400) % 391 % n_groups
    n = len(group)
    label, proba = random_problem(rng, n)
    weight = rng.uniform(0.2, 1, size=n) if weighted else None
    metric = Recorder(proba)
    names = None if n_groups is None else [f"patient {k}" for k in group]
    interval = confidence_interval(
        metric, label, proba, groups=names, sample_weight=weight, confidence_level=0.9
    )
    n_blocks = min(len(set(group)), 100)
    assert len(metric.values) == 1 + n_blocks
    left_out = [np.setdiff1d(np.arange(n), rows) for rows in metric.rows[1:]]
    assert sorted(np.concatenate(left_out)) == list(range(n))  # each sample once
    for rows in left_out:  # whole groups
        assert np.isin(group, group[rows]).sum() == len(rows)
    whole, values = metric.values[0], np.array(metric.values[1:])
    changes = np.sqrt((n_blocks - 1) / n_blocks) * (values - values.mean())
    of_block = [len(rows) if weight is None else weight[rows].sum() for rows in left_out]
    size = np.sum(of_block) ** 2 / np.sum(np.square(of_block))
    _, deviation, degrees = student_by_hand(whole, changes, size)
    margin = stats.t.isf(0.05, degrees) * deviation
    assert interval.estimate == whole
    assert [*interval] == pytest.approx([whole - margin, whole + margin], rel=1e-9)


def test_the_result_depends_on_the_seed_but_not_on_the_jobs():
    label, proba = random_problem(np.random.default_rng(0), 50)
    for function, models in ((confidence_interval, [proba]), (compare_models, [proba, proba**2])):
        first = function(expected_calibration_error, label, *models, **FAST)
        with parallel_config("threading"):
            assert first == function(expected_calibration_error, label, *models, n_jobs=2, **FAST)
        again = function(expected_calibration_error, label, *models, n_resamples=39, random_state=1)
        assert (again.low, again.high) != (first.low, first.high)
        callables = [function(mean_residual, label, *models, random_state=seed) for seed in (0, 1)]
        assert callables[0] == callables[1]


def test_ways_to_name_a_metric_are_equal():
    label, proba = random_problem(np.random.default_rng(0), 40)
    expected = confidence_interval(
        "expected_calibration_error", label, proba, metric_params={"n_bins": 5}, **FAST
    )
    assert expected.estimate == expected_calibration_error(label, proba, n_bins=5)
    metric = partial(partial(expected_calibration_error, norm="l1"), n_bins=5)
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
    expected = confidence_interval(brier_score_loss, label, proba)
    params = {"pos_label": "yes"}
    assert expected == confidence_interval(brier_score_loss, y, proba, metric_params=params)

    def column(y, p):
        return brier_score_loss(y, p if p.ndim == 1 else p[:, 1], pos_label="yes")

    first, second = (
        confidence_interval(column, y, p, labels=["no", "yes"]) for p in (proba, two_columns(proba))
    )
    assert (first.low, first.high) == pytest.approx((second.low, second.high), rel=1e-9)
    turned = confidence_interval(
        smooth_calibration_error, y, 1 - proba, metric_params={"pos_label": "no"}, **FAST
    )
    straight = confidence_interval(smooth_calibration_error, label, proba, **FAST)
    ends = (turned.estimate, turned.high), (straight.estimate, straight.high)
    np.testing.assert_allclose(*ends, atol=1e-12)  # the lower one is that of other draws


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
        ({"metric": "brier_score"}, "Did you mean .brier_score_loss."),
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


def test_rows_of_unequal_lengths_are_refused_by_name():
    with pytest.raises(ValueError, match="y_pred_b must be an array"):
        compare_models("smooth_calibration_error", [0, 1], [0.2, 0.7], [[0.2], [0.5, 0.5]])


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
