"""Means over the samples get the intervals and tests of means."""

import inspect
from functools import partial

import numpy as np
import pytest
from problems import random_problem
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss

from skcalib.forecasts import GaussianForecast
from skcalib.uncertainty import compare_models, confidence_interval

FAST = {"n_resamples": 39, "random_state": 0}
ALTERNATIVES = ["two-sided", "less", "greater"]


def log_losses(y, p):
    """One number for each sample; p is (n,) or (n, K)."""
    p = p if p.ndim == 2 else np.column_stack([1 - p, p])
    return -np.log(np.clip(p[np.arange(len(y)), y], np.finfo(float).eps, 1))


def brier_losses(y, p):
    return (y - p) ** 2


def ends(result):
    return result.low, result.high


@pytest.mark.parametrize(("n", "n_classes"), [(120, 2), (300, 2), (200, 3)])
def test_interval_of_a_mean_is_that_of_student(n, n_classes):
    label, proba = random_problem(np.random.default_rng(1), n, n_classes)
    losses = log_losses(label, proba)
    expected = stats.t.interval(0.9, n - 1, losses.mean(), stats.sem(losses))
    for options in ({}, {"labels": range(n_classes)}, {"groups": np.arange(n)[::-1]}):
        result = confidence_interval(log_loss, label, proba, confidence_level=0.9, **options)
        assert result.estimate == pytest.approx(losses.mean(), rel=1e-12)
        assert ends(result) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_comparison_of_means_is_the_paired_t_test(alternative):
    rng = np.random.default_rng(1)
    label, proba = random_problem(rng, 200)
    other = np.clip(proba + rng.normal(0, 0.2, size=200), 0.01, 0.99)
    metric = partial(brier_score_loss, pos_label=1)
    result = compare_models(metric, label, proba, other, alternative=alternative)
    expected = stats.ttest_rel(
        brier_losses(label, proba), brier_losses(label, other), alternative=alternative
    )
    assert result.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert ends(result) == pytest.approx(tuple(expected.confidence_interval(0.95)), rel=1e-9)


def test_weighted_mean_by_hand():
    rng = np.random.default_rng(0)
    label, proba = rng.integers(2, size=90), rng.random(90)  # neither right nor wrong is rare
    weight = rng.random(90)
    share, losses = weight / weight.sum(), brier_losses(label, proba)
    mean = share @ losses
    without_one = np.array(
        [np.average(np.delete(losses, i), weights=np.delete(weight, i)) for i in range(90)]
    )
    deviation = np.sqrt(89 * np.var(without_one))
    margin = stats.t.isf(0.025, 1 / (share @ share) - 1) * deviation
    result = confidence_interval(brier_score_loss, label, proba, sample_weight=7 * weight)
    assert ends(result) == pytest.approx((mean - margin, mean + margin), rel=1e-9)
    own = confidence_interval(
        lambda y, p, sample_weight: float(np.average(brier_losses(y, p), weights=sample_weight)),
        label, proba, sample_weight=weight, method="jackknife"
    )  # fmt: skip
    assert ends(own) == pytest.approx(ends(result), rel=1e-9)


def test_parts_of_many_samples_are_random():
    label, proba = random_problem(np.random.default_rng(0), 2500)
    losses = log_losses(label, proba)
    low, high = stats.t.interval(0.95, 2499, losses.mean(), stats.sem(losses))
    known = [confidence_interval(log_loss, label, proba, random_state=seed) for seed in (0, 1)]
    assert known[0] == known[1]
    assert ends(known[0]) == pytest.approx((low, high), rel=1e-9)

    def metric(y, p):
        return float(log_losses(y, p).mean())

    own = [
        confidence_interval(metric, label, proba, method="jackknife", random_state=seed)
        for seed in (0, 1)
    ]
    assert own[0] != own[1]
    assert np.ptp(ends(own[0])) == pytest.approx(high - low, rel=0.25)  # 3.5 deviations


@pytest.mark.parametrize(
    "params", [{"scale_by_half": False}, {"scale_by_half": True}, {"pos_label": 0}]
)
def test_arguments_of_a_mean_count(params):
    if not params.keys() <= inspect.signature(brier_score_loss).parameters.keys():
        pytest.skip("this scikit-learn has no such argument")
    label, proba = random_problem(np.random.default_rng(2), 100)
    losses = brier_losses(1 - label if "pos_label" in params else label, proba)
    losses = losses * (1 + (params.get("scale_by_half") is False))
    expected = stats.t.interval(0.95, 99, losses.mean(), stats.sem(losses))
    result = confidence_interval(brier_score_loss, label, proba, metric_params=params)
    assert ends(result) == pytest.approx(expected, rel=1e-9)


def test_groups_of_a_mean():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 300)
    group = rng.integers(50, size=300)
    losses = brier_losses(label, proba)
    without_one = np.array([losses[group != k].mean() for k in range(50)])
    share = np.bincount(group) / 300
    margin = stats.t.isf(0.025, 1 / (share @ share) - 1) * np.sqrt(49 * np.var(without_one))
    result = confidence_interval(brier_score_loss, label, proba, groups=group)
    expected = losses.mean() - margin, losses.mean() + margin
    assert ends(result) == pytest.approx(expected, rel=1e-9)


def test_a_sum_is_no_mean_and_a_mean_may_be_resampled():
    label, proba = random_problem(np.random.default_rng(0), 16)
    narrow = confidence_interval(log_loss, label, proba)
    for metric, params in (
        (partial(log_loss, normalize=False), {}),
        (log_loss, {"normalize": False}),
    ):
        total = confidence_interval(metric, label, proba, metric_params=params, **FAST)
        copy = confidence_interval(lambda y, p: float(log_losses(y, p).sum()), label, proba, **FAST)
        assert ends(total) == pytest.approx(ends(copy), rel=1e-9)
    resampled = confidence_interval(log_loss, label, proba, method="resampling", **FAST)
    assert resampled.high - resampled.low > 1.2 * (narrow.high - narrow.low)
    own = confidence_interval(lambda y, p: float(log_losses(y, p).mean()), label, proba, **FAST)
    assert (max(own.low, 0), own.high) == pytest.approx(ends(resampled), rel=1e-9)


def test_losses_that_cannot_be_negative_have_no_negative_limits():
    label = np.array([0] * 29 + [1])
    proba = np.full(30, 0.01)
    for metric in (log_loss, partial(brier_score_loss, pos_label=1)):
        losses = (log_losses if metric is log_loss else brier_losses)(label, proba)
        assert losses.mean() < 2.1 * stats.sem(losses)  # where the interval would begin
        assert confidence_interval(metric, label, proba).low == 0
        assert confidence_interval(metric, label, proba, alternative="less").low == 0
        assert compare_models(metric, label, proba, proba / 2, alternative="less").low == -np.inf
    y = np.append(np.zeros(29), 9.0)
    sharp = GaussianForecast(np.zeros(30), 0.1)
    assert confidence_interval("continuous_ranked_probability_loss", y, sharp).low == 0
    assert confidence_interval("negative_log_likelihood", y, sharp).low < 0
    assert (
        confidence_interval("negative_log_likelihood", y, sharp, alternative="less").low == -np.inf
    )


@pytest.mark.parametrize("metric", [log_loss, brier_score_loss])
def test_losses_of_scikit_learn_follow_the_order_of_the_classes(metric):
    rng = np.random.default_rng(0)
    proba = rng.random(40)
    label = (rng.random(40) < proba).astype(int)
    names = np.array(["neg", "yes"])[label]
    expected = confidence_interval(metric, label, proba)
    cases = [(names, proba, None), (names, 1 - proba, ["yes", "neg"])]
    if metric is log_loss:  # the Brier score takes one column only before scikit-learn 1.7
        cases += [
            (names, np.column_stack([proba, 1 - proba]), ["yes", "neg"]),
            (label, np.column_stack([proba, 1 - proba]), [1, 0]),
        ]
    for y, p, labels in cases:
        found = confidence_interval(metric, y, p, labels=labels)
        ends = [(one.estimate, one.low, one.high) for one in (found, expected)]
        np.testing.assert_allclose(*ends, rtol=1e-12)
    three = rng.dirichlet(np.ones(3), size=40)
    label = np.arange(40) % 3
    expected = confidence_interval(log_loss, label, three)
    found = confidence_interval(log_loss, label, three[:, [2, 0, 1]], labels=[2, 0, 1])
    assert found.estimate == pytest.approx(expected.estimate, rel=1e-12)
