"""Means over the samples have the limits of Student's t and of scores."""

import inspect
from functools import partial

import numpy as np
import pytest
from oracles import change_without_groups, student_by_hand
from problems import random_problem
from scipy import stats
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss

from skcalib._data import check_predictions, with_groups
from skcalib.forecasts import GaussianForecast
from skcalib.metrics._terms import MetricTerms
from skcalib.uncertainty import compare_models, confidence_interval
from skcalib.uncertainty._limits import ScoreLimits, StudentLimits
from skcalib.uncertainty._losses import class_terms, subtract_terms
from skcalib.uncertainty._units import Units


def log_losses(y, p):
    """One number for each sample; p is (n,) or (n, K)."""
    p = p if p.ndim == 2 else np.column_stack([1 - p, p])
    return -np.log(np.clip(p[np.arange(len(y)), y], np.finfo(float).eps, 1))


def brier_losses(y, p):
    return (y - p) ** 2


LOSSES = {log_loss: log_losses, brier_score_loss: brier_losses}


def ends(result):
    return result.low, result.high


def hull_by_hand(data, losses, possible, level):
    """The hull of both kinds of limits, which are tested in `test_limits.py`.

    The losses of the outcomes observed are (n,), and those of all that are possible (n, K).
    """
    code = np.arange(len(losses)) if data.groups is None else data.groups
    size = 1 / np.sum(np.bincount(code, data.weight) ** 2)
    changes = change_without_groups(losses, data.weight, code)
    mean = np.average(losses, weights=data.weight)
    student = StudentLimits(*student_by_hand(mean, changes, size))
    score = ScoreLimits(MetricTerms(data.weight, losses, possible, data.matrix), Units(data))
    tail = (1 - level) / 2
    (a, b), (c, d) = student.ends(tail), score.ends(tail)
    return min(a, c), max(b, d)


@pytest.mark.parametrize("metric", LOSSES)
@pytest.mark.parametrize("kind", ["plain", "weighted", "grouped"])
def test_interval_of_a_mean(metric, kind):
    rng = np.random.default_rng(1)
    label, proba = random_problem(rng, 120)
    weight = rng.random(120) if kind == "weighted" else None
    groups = rng.integers(30, size=120) if kind == "grouped" else None
    losses = LOSSES[metric](label, proba)
    possible = np.column_stack([LOSSES[metric](np.full(120, k), proba) for k in (0, 1)])
    data = with_groups(check_predictions(label, proba, weight), label, groups, weight)
    expected = hull_by_hand(data, losses, possible, 0.9)
    for options in ({}, {"labels": [0, 1]}):
        result = confidence_interval(
            metric, label, proba, sample_weight=weight, groups=groups, confidence_level=0.9,
            **options
        )  # fmt: skip
        assert result.estimate == pytest.approx(np.average(losses, weights=weight), rel=1e-12)
        assert ends(result) == pytest.approx(expected, rel=1e-9)


def test_interval_of_a_mean_of_three_classes():
    label, proba = random_problem(np.random.default_rng(1), 200, 3)
    data = check_predictions(label, proba)
    expected = hull_by_hand(data, log_losses(label, proba), -np.log(proba), 0.95)
    assert ends(confidence_interval(log_loss, label, proba)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_comparison_of_means_holds_the_paired_t_test(alternative):
    # it has but as many degrees of freedom as the samples that make up the variance
    rng = np.random.default_rng(1)
    label, proba = random_problem(rng, 200)
    other = np.clip(proba + rng.normal(0, 0.1, size=200), 0.01, 0.99)
    result = compare_models(
        partial(brier_score_loss, pos_label=1), label, proba, other, alternative=alternative
    )
    a, b = (brier_losses(label, p) for p in (proba, other))
    expected = stats.ttest_rel(a, b, alternative=alternative)
    assert result.difference == pytest.approx(np.mean(a - b), rel=1e-12)
    assert result.p_value >= expected.pvalue * (1 - 1e-9) or expected.pvalue > 0.5
    assert result.p_value == pytest.approx(expected.pvalue, rel=0.1)
    low, high = expected.confidence_interval(0.95)
    assert result.low <= low + 1e-12
    assert result.high >= high - 1e-12
    assert ends(result) == pytest.approx((low, high), abs=0.001)


def test_terms_of_a_difference():
    label, proba = random_problem(np.random.default_rng(0), 30)
    a, b = (check_predictions(label, p) for p in (proba, proba**2))
    terms = [class_terms("log_loss", data, log_losses(label, data.proba)) for data in (a, b)]
    shared = subtract_terms(terms, True)
    row = np.arange(30)
    np.testing.assert_allclose(shared.observed, shared.possible[row, label], rtol=1e-9)
    np.testing.assert_allclose(shared.possible[:, 1], np.log(proba**2) - np.log(proba), atol=1e-12)
    np.testing.assert_allclose(shared.proba[:, 1], (proba + proba**2) / 2)
    assert subtract_terms(terms, False).possible is None


@pytest.mark.parametrize("scale_by_half", [False, True])
def test_arguments_of_a_mean_count(scale_by_half):
    if "scale_by_half" not in inspect.signature(brier_score_loss).parameters:
        pytest.skip("this scikit-learn has no such argument")
    label, proba = random_problem(np.random.default_rng(2), 100)
    factor = 1 if scale_by_half else 2
    possible = factor * np.column_stack([proba**2, (1 - proba) ** 2])
    losses = possible[np.arange(100), label]
    expected = hull_by_hand(check_predictions(label, proba), losses, possible, 0.95)
    params = {"scale_by_half": scale_by_half}
    result = confidence_interval(brier_score_loss, label, proba, metric_params=params)
    assert ends(result) == pytest.approx(expected, rel=1e-9)


def test_a_mean_of_unknown_terms_has_the_jackknife():
    label, proba = random_problem(np.random.default_rng(2), 100)
    losses = brier_losses(1 - label, proba)
    changes = change_without_groups(losses, np.ones(100), np.arange(100))
    expected = StudentLimits(*student_by_hand(losses.mean(), changes, 100)).ends(0.025)
    result = confidence_interval(brier_score_loss, label, proba, metric_params={"pos_label": 0})
    assert ends(result) == pytest.approx(expected, rel=1e-9)


def test_a_sum_is_no_mean():
    label, proba = random_problem(np.random.default_rng(0), 16)
    own = confidence_interval(lambda y, p: float(log_losses(y, p).sum()), label, proba)
    for metric, params in (
        (partial(log_loss, normalize=False), {}),
        (log_loss, {"normalize": False}),
    ):
        total = confidence_interval(metric, label, proba, metric_params=params)
        assert ends(total) == pytest.approx(ends(own), rel=1e-9)


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


@pytest.mark.parametrize("metric", LOSSES)
def test_losses_of_scikit_learn_follow_the_order_of_the_classes(metric):
    rng = np.random.default_rng(0)
    proba = rng.random(40)
    label = (rng.random(40) < proba).astype(int)
    names = np.array(["neg", "yes"])[label]
    expected = confidence_interval(metric, label, proba)
    cases = [(names, proba, ["neg", "yes"]), (names, 1 - proba, ["yes", "neg"])]
    if metric is log_loss:  # the Brier score takes one column only before scikit-learn 1.7
        cases += [
            (names, np.column_stack([proba, 1 - proba]), ["yes", "neg"]),
            (label, np.column_stack([proba, 1 - proba]), [1, 0]),
        ]
    for y, p, labels in cases:
        found = confidence_interval(metric, y, p, labels=labels)
        numbers = [(one.estimate, one.low, one.high) for one in (found, expected)]
        np.testing.assert_allclose(*numbers, rtol=1e-9)
    three = rng.dirichlet(np.ones(3), size=40)
    label = np.arange(40) % 3
    expected = confidence_interval(log_loss, label, three)
    found = confidence_interval(log_loss, label, three[:, [2, 0, 1]], labels=[2, 0, 1])
    assert found.estimate == pytest.approx(expected.estimate, rel=1e-12)
    assert ends(found) == pytest.approx(ends(expected), rel=1e-9)


def test_losses_of_a_class_that_is_named_take_its_column():
    rng = np.random.default_rng(0)
    proba = rng.random(20)
    label = (rng.random(20) < proba).astype(int)
    names = np.array(["neg", "yes"])[label]
    cases = [(names, 1 - proba, "neg"), (names, proba, "yes"), (label, 1 - proba, 0)]
    for metric in (brier_score_loss, average_precision_score):
        for y, p, pos_label in cases:
            expected = metric(y, p, pos_label=pos_label)
            params = {"pos_label": pos_label}
            fixed = partial(metric, **params)
            for function, arguments in ((metric, {"metric_params": params}), (fixed, {})):
                found = confidence_interval(function, y, p, n_resamples=9, **arguments)
                assert found.estimate == pytest.approx(expected)
    matrix = np.column_stack([1 - proba, proba])
    shares = confidence_interval(
        lambda y, p, pos_label: float(np.mean(p[y == pos_label, 0])),
        *(names, matrix),
        metric_params={"pos_label": "neg"},
        n_resamples=9,
    )
    assert shares.estimate == pytest.approx(np.mean(1 - proba[label == 0]))
