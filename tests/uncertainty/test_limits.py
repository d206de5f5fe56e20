"""Limits by Student's t, by scores and by draws equal slow twins of a few lines."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import change_without_groups, dependence_by_pairs, student_by_hand
from problems import random_problem
from scipy import stats
from sklearn.metrics import brier_score_loss

from skcalib._data import check_predictions, with_groups
from skcalib.metrics._registry import METRICS
from skcalib.metrics._terms import MetricTerms
from skcalib.uncertainty import confidence_interval
from skcalib.uncertainty._limits import (
    Changes,
    DrawnLimits,
    Hull,
    ScaledLimits,
    ScoreLimits,
    StudentLimits,
    cross_groups,
    to_root,
    to_square,
)
from skcalib.uncertainty._losses import class_terms
from skcalib.uncertainty._units import Units


def data_of(n, n_classes=2, *, groups=None, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, n, n_classes)
    weight = rng.uniform(0.5, 1.5, size=n) if weighted else None
    data = check_predictions(label, proba, weight, labels=range(n_classes))
    return data if groups is None else with_groups(data, label, groups, weight)


def unequal_groups(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.permutation(np.repeat(np.arange(n), 1 + np.arange(n) % 4))[:n]


# Student's t


@pytest.mark.parametrize(("weighted", "n_groups"), [(False, None), (True, None), (True, 40)])
def test_changes_of_a_mean_are_those_without_each_unit(weighted, n_groups):
    groups = None if n_groups is None else np.arange(120) % 37 % n_groups
    data = data_of(120, groups=groups, weighted=weighted)
    units, losses = Units(data), (data.label - data.proba) ** 2
    changes = Changes.from_terms(data.weight * losses, units)
    code = np.arange(120) if groups is None else data.groups
    expected = change_without_groups(losses, data.weight, code)
    np.testing.assert_allclose(changes.changes, expected, rtol=1e-9, atol=1e-15)
    share = np.bincount(code, data.weight)
    mean = np.average(losses, weights=data.weight)
    by_hand = student_by_hand(mean, expected, 1 / np.sum(share**2))
    assert changes.limits() == pytest.approx(by_hand, rel=1e-9)
    if not weighted:
        assert changes.limits().deviation == pytest.approx(stats.sem(losses), rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "options", "deviation", "degrees"),
    [
        ([1, -1] * 8, {}, 4, 15),  # all alike: as many as units, less one
        ([3, *[0] * 15], {}, 3, 32 / 15),  # 2 · 81² / (64² + ...) of one unit
        ([1, 1, *[0] * 14], {}, 2**0.5, 2 * 4 / (2 - 4 / 16)),
        ([1e-9, *[0] * 15], {"degrees": 0.3}, 1e-9, 1),  # never less than 1
        ([1] * 16, {"degrees": 7.5}, 4, 7.5),
        ([1] * 16, {"degrees": 40.0}, 4, 15),
        ([1] * 16, {"least_variance": 25.0}, 5, 15),
        ([1] * 16, {"least_variance": 15.0}, 4, 15),
        # one degree of freedom makes a smaller error the wider one
        ([1] * 16, {"least_variance": 25.0, "degrees": 1.0}, 4, 1),
    ],
)
def test_degrees_of_freedom_by_hand(changes, options, deviation, degrees):
    limits = Changes(2.0, np.array(changes, dtype=float), 16.0, **options).limits()
    assert limits == pytest.approx((2.0, deviation, degrees), rel=1e-12)


def test_limits_of_student_by_hand():
    limits = StudentLimits(1.0, 0.5, 7.0)
    assert limits.ends(0.05) == pytest.approx(stats.t.interval(0.9, 7, 1, 0.5))
    assert limits.tails(1.7) == pytest.approx((stats.t.cdf(-1.4, 7), stats.t.sf(-1.4, 7)))
    certain = StudentLimits(1.0, 0.0, 7.0)
    assert certain.ends(0.05) == (1, 1)
    assert [certain.tails(null) for null in (0.0, 1.0, 2.0)] == [(1, 0), (0.5, 0.5), (0, 1)]
    unknown = Changes(1.0, np.array([np.inf, 1.0]), 12.0).limits()
    assert unknown.ends(0.05) == (-np.inf, np.inf)
    assert unknown.tails(3.0) == (0.5, 0.5)
    scaled = Changes(1.0, np.ones(16), 16.0, 25.0).scale(-3.0, 9.0).limits()
    assert scaled == pytest.approx((9.0, 15.0, 15.0))


# Scores


def moments_by_hand(terms, tilt):
    """Means and standard deviations (T, m) of terms whose probabilities are tilted by (T,)."""
    proba = terms.proba * np.exp(tilt[:, None, None] * terms.possible)
    proba /= proba.sum(axis=2, keepdims=True)
    mean = np.sum(proba * terms.possible, axis=2)
    return mean, np.sqrt(np.sum(proba * (terms.possible - mean[:, :, None]) ** 2, axis=2))


def score_ends_by_grid(terms, data, tail, n_tilts=30_001):
    """Where the mean is t standard deviations from the estimate, on a dense grid of tilts.

    Terms are moved by at most 36 of their root mean square distances from their means.
    """
    spread = [np.sum((row - row.mean()) ** 2) for row in terms.possible]
    most = 36 / np.sqrt(np.average(spread, weights=terms.weight))
    tilt = np.linspace(-most, most, n_tilts)
    mean, deviation = moments_by_hand(terms, tilt)
    row = np.arange(len(terms.weight)) if terms.row is None else terms.row
    code = np.arange(len(data.weight)) if data.groups is None else data.groups
    total, estimate = mean @ terms.weight, terms.weight @ terms.observed
    variance = np.zeros(n_tilts)
    share = np.bincount(code, data.weight)
    dependence = dict.fromkeys(code.tolist(), 0.0)
    if data.groups is not None:
        at, spread = moments_by_hand(terms, np.interp([estimate], total, tilt))
        residual = terms.weight * (terms.observed - at[0])
        dependence = dependence_by_pairs(
            terms.weight, code[row], residual, terms.weight * spread[0]
        )
    for g in range(len(share)):
        own = code[row] == g
        spread = terms.weight[own] * deviation[:, own]
        independent = np.sum(spread**2, axis=1)
        variance += independent + dependence[g] * (np.sum(spread, axis=1) ** 2 - independent)
        variance += (mean[:, own] @ terms.weight[own] - total * share[g]) ** 2
    distance = (total - estimate) / np.sqrt(variance)
    margin = stats.t.isf(tail, 1 / np.sum(share**2) - 1)
    return np.interp([-margin, margin], distance, total)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("name", "n_classes"), [("log_loss", 2), ("brier_score_loss", 3)])
def test_score_limits_equal_those_on_a_grid(name, n_classes, grouped):
    data = data_of(40, n_classes, groups=unequal_groups(40) if grouped else None, weighted=True)
    proba = data.simplex
    brier = 1 + np.sum(proba**2, axis=1)[:, None] - 2 * proba
    every = -np.log(proba) if name == "log_loss" else brier
    terms = class_terms(name, data, every[np.arange(40), data.label])
    np.testing.assert_allclose(terms.possible, every, rtol=1e-9)
    limits = ScoreLimits(terms, Units(data))
    for tail in (0.025, 0.2):
        ends = limits.ends(tail)
        assert ends == pytest.approx(score_ends_by_grid(terms, data, tail), rel=1e-6)
        p_values = [limits.tails(ends[1])[0], limits.tails(ends[0])[1]]
        assert p_values == pytest.approx([tail, tail], rel=1e-6)
    assert limits.tails(100.0) == (0, 1)  # no outcome leads there
    assert limits.tails(-100.0) == (1, 0)
    assert sum(limits.tails(limits.estimate)) == pytest.approx(1)


@pytest.mark.parametrize("grouped", [False, True])
def test_score_limits_of_the_problems_of_a_lens(grouped):
    data = data_of(30, 3, groups=np.arange(30) // 2 if grouped else None)
    metric = METRICS["expected_calibration_error"]
    options = metric.validate_options({"multi_class": "classwise", "n_bins": 3})
    terms = metric.terms(data, **options)
    assert len(terms.row) == 90
    ends = ScoreLimits(terms, Units(data)).ends(0.05)
    assert ends == pytest.approx(score_ends_by_grid(terms, data, 0.05), rel=1e-5)


@pytest.mark.parametrize("n_wrong", [0, 1, 7])
def test_score_limits_of_a_frequency_are_those_of_wilson(n_wrong):
    # Wilson (1927), with a quantile of Student's t; of no wrong one t²/(n + t²), near the 3/n of
    # the rule of three. The predictions do not matter, for they are tilted.
    n, label = 100, (np.arange(100) >= n_wrong).astype(int)
    for level in (0.9, 0.95):
        t = stats.t.isf((1 - level) / 2, n - 1)
        centre = (n_wrong + t**2 / 2) / (n + t**2)
        margin = t / (n + t**2) * np.sqrt(n_wrong * (n - n_wrong) / n + t**2 / 4)
        for proba in (0.999, 0.6):
            data = check_predictions(label, np.full(n, proba), labels=[0, 1])
            terms = class_terms("accuracy", data, label.astype(float))
            ends = 1 - np.array(ScoreLimits(terms, Units(data)).ends((1 - level) / 2))
            expected = centre + margin, centre - margin
            assert ends == pytest.approx(expected, abs=1e-5)  # the largest tilt leaves e⁻¹²
            if n_wrong == 0:
                assert 0.02 < ends[0] < 0.04


# Draws


@pytest.mark.parametrize("n_draws", [19, 39])
def test_draws_reject_as_often_as_the_level_says(n_draws):
    # without a true error the estimate is one of B + 1 exchangeable values: all ranks by turns
    values = np.arange(n_draws + 1.0) + 1
    for tail in (0.05, 0.1, 0.5):
        limits = [DrawnLimits(values[k], np.delete(values, k), True) for k in range(n_draws + 1)]
        rejected = [one.ends(tail)[0] > 0 for one in limits]
        assert np.mean(rejected) == pytest.approx(np.floor(tail * (n_draws + 1)) / (n_draws + 1))
        assert rejected == [one.tails(0.0)[1] <= tail for one in limits]
    for k, one in enumerate(limits):
        assert one.tails(0.0) == (0, (n_draws + 1 - k) / (n_draws + 1))


def test_draws_by_hand():
    limits = DrawnLimits(2.0, np.array([3.0, -1.0, 0.5]))
    assert limits.ends(0.25) == pytest.approx((-1.0, 3.0))
    assert limits.ends(0.24) == (-np.inf, np.inf)  # (1 + 0) / 4 is not as small as that
    assert limits.tails(0.0) == (0.75, 0.5)
    assert limits.tails(-1.0) == (1.0, 0.5)  # as far as a draw
    assert limits._replace(is_error=True).ends(0.25) == (pytest.approx(-1), -np.inf)
    assert limits._replace(is_error=True).tails(0.0) == (0.0, 0.5)
    for n_draws, level in ((19, 0.9), (39, 0.95), (9, 0.8)):  # 1 − 0.9 is less than 0.1
        assert DrawnLimits(9.0, np.zeros(n_draws)).ends((1 - level) / 2) == pytest.approx((9, 9))
    few = DrawnLimits(9.0, np.zeros(18), True)
    assert few.ends(0.05)[0] <= 0
    assert few.tails(0.0)[1] > 0.05


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95, 0.99])
def test_ties_among_draws_are_no_excess(level):
    rng, tail = np.random.default_rng(0), (1 - level) / 2
    for _ in range(200):
        values, estimate = rng.integers(12, size=199) / 7, rng.integers(6, 14) / 7
        limits = DrawnLimits(estimate, values, True)
        assert (limits.ends(tail)[0] > 0) == (limits.tails(0.0)[1] <= tail + 1e-12)


# What is made of these


def test_the_hull_and_moved_ends_by_hand():
    narrow, wide = StudentLimits(1.0, 0.1, 9.0), StudentLimits(2.0, 0.3, 9.0)
    hull = Hull(1.5, [narrow, wide])
    t = stats.t.isf(0.05, 9)
    assert hull.interval(0.9) == pytest.approx((1 - 0.1 * t, 2 + 0.3 * t))
    assert hull.interval(0.95, "less") == (-np.inf, pytest.approx(2 + 0.3 * t))
    assert hull.interval(0.95, "greater") == (pytest.approx(1 - 0.1 * t), np.inf)
    assert hull.p_value(1.2, "greater") == pytest.approx(stats.t.sf(-2, 9))
    assert hull.p_value(1.9, "less") == pytest.approx(stats.t.cdf(1 / 3, 9))
    assert hull.p_value(0.7) == pytest.approx(2 * stats.t.sf(3, 9))
    assert hull.p_value(1.5) == 1
    assert hull.student == narrow
    assert Hull(9.0, [narrow]).interval(0.9) == (pytest.approx(1 - 0.1 * t), 9.0)
    moved = StudentLimits(0.0, 5.0, 9.0)
    low, high = Hull(1.5, [narrow, wide], [moved]).interval(0.9)
    assert low == pytest.approx(1 - 0.1 * t)  # it excludes 0
    assert high == pytest.approx(5 * t)
    for estimate, sign in ((-1.5, 1), (0.1, 0)):
        parts = [StudentLimits(estimate, 0.1, 9.0)]
        ends = np.array(Hull(estimate, parts, [moved]).interval(0.9))
        expected = [-5 * t, estimate + 0.1 * t if sign else 5 * t]
        assert ends == pytest.approx(expected)


def test_a_root_has_the_limits_of_its_square():
    square = Hull(-0.1, [StudentLimits(-0.1, 0.2, 9.0)])
    root = ScaledLimits(0.0, square, to_root, to_square)
    low, high = square.interval(0.9)
    assert root.interval(0.9) == pytest.approx((-np.sqrt(-low), np.sqrt(high)))
    assert root.p_value(0.3, "less") == square.p_value(0.09, "less")
    assert root.p_value(-0.3, "greater") == square.p_value(-0.09, "greater")


def crossed_mean(data):
    """Limits by Student's t alone of the mean residual, and of the three kinds of its groups."""

    def find_limits(models):
        terms = models[0].weight * (models[0].label - models[0].proba)
        changes = Changes.from_terms(terms, Units(models[0]))
        return [Hull(changes.estimate, [changes.limits()])]

    return cross_groups((data,), find_limits)[0]


@pytest.mark.parametrize("seed", range(3))
def test_crossed_groups_have_the_variance_of_both_kinds_less_that_of_their_crossings(seed):
    rng = np.random.default_rng(seed)
    patient, reader = rng.integers(40, size=300), rng.integers(15, size=300)
    effect = rng.normal(size=40)[patient] + rng.normal(size=15)[reader]
    label = (effect + rng.normal(size=300) > 0).astype(int)
    data = check_predictions(label, np.full(300, 0.5))
    limits = crossed_mean(replace(data, groups=np.column_stack([patient, reader])))
    assert isinstance(limits, Hull)
    kinds = patient, reader, 15 * patient + reader
    residual = label - 0.5
    by_kind = []
    for kind in kinds:
        size = 300**2 / np.sum(np.bincount(kind) ** 2)
        changes = change_without_groups(residual, np.ones(300), kind)
        by_kind.append(student_by_hand(residual.mean(), changes, size))
    a, b, ab = (deviation**2 for _, deviation, _ in by_kind)
    assert a + b - ab > max(a, b)
    assert limits.student.deviation == pytest.approx(np.sqrt(a + b - ab), rel=1e-9)
    degrees = min(degrees for *_, degrees in by_kind[:2])
    for alternative, tail in (("two-sided", 0.05), ("less", 0.1), ("greater", 0.1)):
        margin = np.sqrt(a + b - ab) * stats.t.isf(tail, degrees)
        low, high = residual.mean() - margin, residual.mean() + margin
        expected = {"two-sided": (low, high), "less": (-np.inf, high), "greater": (low, np.inf)}
        assert limits.interval(0.9, alternative) == pytest.approx(expected[alternative], rel=1e-9)
    for null in (-0.1, 0.0, 0.2):
        for alternative in ("two-sided", "less", "greater"):
            p_value = limits.p_value(null, alternative)
            if 1e-9 < p_value < 0.5:  # the level at which the end touches it
                low, high = limits.interval(1 - p_value, alternative)
                assert min(abs(low - null), abs(high - null)) < 1e-9


def test_crossed_groups_vary_at_least_as_those_of_one_kind():
    data = check_predictions(np.arange(100) % 2, np.full(100, 0.5))
    groups = np.column_stack([np.arange(100), np.arange(100) // 2])  # nested
    crossed = crossed_mean(replace(data, groups=groups))
    alone = crossed_mean(replace(data, groups=groups[:, 0]))
    assert crossed.student.deviation == pytest.approx(alone.student.deviation, rel=1e-12)
    assert crossed.student.degrees == pytest.approx(49)


def test_terms_of_one_value_have_no_margin():
    data = data_of(20)
    terms = MetricTerms(data.weight, np.ones(20), np.ones((20, 2)), data.matrix)
    assert ScoreLimits(terms, Units(data)).ends(0.05) == pytest.approx((1, 1))


@pytest.mark.parametrize("proba", [0.0, 1e-12, 0.01])
def test_score_limits_reach_the_mean_of_wrong_predictions(proba):
    """50 of 1000 predictions are wrong, whatever they claimed."""
    y_true = np.arange(1000) % 2
    is_wrong = np.arange(1000) < 50
    y_proba = np.where((y_true == 1) != is_wrong, 1 - proba, proba)
    low, high = confidence_interval(brier_score_loss, y_true, y_proba, labels=[0, 1])
    loss = np.where(is_wrong, (1 - proba) ** 2, proba**2)
    student = loss.mean() - stats.t.isf(0.025, 999) * stats.sem(loss)
    frequency = stats.binomtest(50, 1000).proportion_ci(method="wilson")
    assert low == pytest.approx(student, rel=0.01)  # the score interval lies above
    assert high == pytest.approx(loss[-1] + (loss[0] - loss[-1]) * frequency.high, rel=0.01)
