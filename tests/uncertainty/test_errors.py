"""Limits of errors and of their differences equal loops over the same draws."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from oracles import change_without_groups, student_by_hand
from problems import random_problem
from scipy import stats
from sklearn.utils import check_random_state

from skcalib._data import check_forecasts, check_predictions, with_groups
from skcalib._inputs.drawing import make_batches
from skcalib.forecasts import EnsembleForecast, GaussianForecast
from skcalib.metrics import (
    expected_calibration_error,
    integrated_calibration_index,
    quantile_calibration_error,
)
from skcalib.metrics._registry import ALL_METRICS
from skcalib.uncertainty import compare_models, confidence_interval
from skcalib.uncertainty._errors import _true_difference, error_limits
from skcalib.uncertainty._limits import DrawnLimits, ScoreLimits
from skcalib.uncertainty._measured import MeasuredModels
from skcalib.uncertainty._units import Units

ECE, SMOOTH = "expected_calibration_error", "smooth_calibration_error"
WITHOUT_TERMS = "integrated_calibration_index"
BINS = {"n_bins": 3}


def two_models(n=40, seed=0, groups=None):
    """A model that is wrong, another, and labels."""
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, n)
    other = np.clip(proba + rng.normal(0, 0.2, size=n), 0.01, 0.99)
    models = [check_predictions(label, p, labels=[0, 1]) for p in (proba, other)]
    if groups is not None:
        models = [with_groups(model, label, groups, None) for model in models]
    return tuple(models)


def options_of(name, **options):
    return ALL_METRICS[name].validate_options(options)


def limits_of(name, data, n_resamples=19, **options):
    return hull_of(name, (data,), n_resamples, options)


def difference_of(name, models, n_resamples=19, **options):
    return hull_of(name, models, n_resamples, options)


def hull_of(name, models, n_resamples, options):
    metrics = (ALL_METRICS[name],) * len(models)
    measured = MeasuredModels(metrics, options_of(name, **options), models)
    return error_limits(measured, Units(models[0]), n_resamples, random_state=0, n_jobs=None)


def rank(values, tail, side):
    """The value that so many exceed that (1 + #) / (1 + B) is the tail."""
    k = round(tail * (len(values) + 1)) - 1
    return sorted(values, reverse=side == "most")[k]


def drawn_labels(models, n_resamples=19, seed=0):
    """Labels (B, n) of both worlds and of the one in the middle, by the same random numbers."""
    worlds = [[], [], []]
    for size, batch_seed in make_batches(n_resamples, 1, 32, check_random_state(seed)):
        generators = [np.random.default_rng(batch_seed) for _ in models]
        a, b = (m.simulate_outcomes(g, size) for m, g in zip(models, generators, strict=True))
        coin = generators[0].random(a.shape) < 0.5
        for world, labels in zip(worlds, (a, b, np.where(coin, a, b)), strict=True):
            world.extend(labels)
    return worlds


# One error


@pytest.mark.parametrize("groups", [None, np.arange(80) // 2])
def test_the_parts_of_an_error(groups):
    (data, _) = two_models(80, groups=groups)
    hull = limits_of(ECE, data, **BINS)
    student, score, *draws = hull.limits
    assert hull.estimate == expected_calibration_error(data.label, data.proba, **BINS)
    terms = ALL_METRICS[ECE].terms(data, **options_of(ECE, **BINS))
    code = np.arange(80) if groups is None else groups
    values = 80 * terms.sum_by_sample(80)  # by sample the metric is their mean
    changes = change_without_groups(values, np.ones(80), code)
    noise = max(np.var(world.values) for world in draws)
    by_hand = student_by_hand(values.mean(), changes, len(set(code)), noise)
    assert student == pytest.approx(by_hand, rel=1e-9)
    low, high = ScoreLimits(terms, Units(data)).ends(0.05)
    assert score.ends(0.05) == (low, max(high, -low))  # the witness may point the other way
    assert score.tails(score.ends(0.05)[1])[0] == pytest.approx(0.05, rel=1e-5)
    assert len(draws) == (1 if groups is None else 2)  # groups share classes, or ranks
    for coupled, world in zip(data.iter_couplings(), draws, strict=True):
        assert world.is_error
        assert world.ends(0.05)[1] == -np.inf
        batches = make_batches(19, 1, 32, check_random_state(0))
        labels = [
            row
            for size, seed in batches
            for row in coupled.simulate_outcomes(np.random.default_rng(seed), size)
        ]
        measure = partial(expected_calibration_error, y_proba=data.proba, labels=[0, 1], **BINS)
        np.testing.assert_allclose(world.values, [measure(row) for row in labels], atol=1e-12)
    ends = [part.ends(0.05) for part in hull.limits]
    expected = min(e[0] for e in ends), max(e[1] for e in ends[:2])
    assert hull.interval(0.9) == pytest.approx(expected, rel=1e-12)


def test_the_witness_of_a_larger_error_may_point_the_other_way():
    # fewer events than predicted came, but there may be more by a larger number: Wilson's ends
    data = check_predictions((np.arange(100) < 4).astype(int), np.full(100, 0.05))
    score, t = limits_of(ECE, data, n_bins=1).limits[1], stats.t.isf(0.025, 99)
    centre, margin = (4 + t**2 / 2) / (100 + t**2), t / (100 + t**2) * np.sqrt(3.84 + t**2 / 4)
    low, high = centre - margin - 0.05, centre + margin - 0.05
    assert high > 1.2 * -low
    assert score.ends(0.025) == pytest.approx((-high, high), rel=1e-6)
    assert score.tails(high)[0] == pytest.approx(0.025, rel=1e-5)


def test_noise_is_the_least_variance():
    rng = np.random.default_rng(1)
    proba = rng.random(100)
    data = check_predictions((rng.random(100) < proba).astype(int), proba)
    student, *_, draws = limits_of("squared_kernel_calibration_error", data, 39).limits
    assert student.deviation == pytest.approx(np.std(draws.values), rel=1e-12)
    assert student.degrees == pytest.approx(99)


@pytest.mark.parametrize("n", [30, 130])
def test_an_error_without_terms_has_the_jackknife_of_blocks(n):
    (data, _) = two_models(n)
    student, draws = limits_of(WITHOUT_TERMS, data).limits
    assert isinstance(draws, DrawnLimits)
    block = np.random.default_rng(0).permutation(n) % min(n, 100)
    error = partial(integrated_calibration_index, labels=[0, 1])
    values = np.array(
        [error(data.label[block != k], data.proba[block != k]) for k in range(min(n, 100))]
    )
    changes = np.sqrt(1 - 1 / len(values)) * (values - values.mean())
    size = n**2 / np.sum(np.bincount(block) ** 2)
    whole, noise = error(data.label, data.proba), np.var(draws.values)
    assert student == pytest.approx(student_by_hand(whole, changes, size, noise), rel=1e-9)


@pytest.mark.parametrize("name", [ECE, SMOOTH, "integrated_calibration_index"])
def test_a_calibrated_model_may_have_no_error(name):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        proba = rng.random(60)
        label = (rng.random(60) < proba).astype(int)
        interval = confidence_interval(name, label, proba, n_resamples=39, random_state=seed)
        assert interval.low == 0
        wrong = confidence_interval(name, label, 1 - proba, n_resamples=39, random_state=seed)
        assert wrong.low > 0.02


DEBIASED = {"norm": "l2", "estimation": "debiased"}


def test_a_clipped_root_varies():
    y, p = clipped_problem()
    interval = confidence_interval(
        ECE, y, p, metric_params=DEBIASED, n_resamples=39, random_state=0
    )
    assert (interval.estimate, interval.low) == (0, 0)

    def square(y_true, y_proba):  # of 15 bins, from the definition
        total = 0.0
        for k in range(15):
            label = y_true[np.minimum(15 * y_proba, 14).astype(int) == k]
            gap = np.mean(label - y_proba[np.minimum(15 * y_proba, 14).astype(int) == k])
            noise = np.var(label) / (len(label) - 1) if len(label) > 1 else gap**2
            total += len(label) / len(y_true) * (gap**2 - noise) if len(label) else 0
        return total

    jackknife = confidence_interval(square, y, p)
    assert interval.high >= (1 - 1e-12) * np.sqrt(jackknife.high) > 0.02
    fixed = partial(expected_calibration_error, labels=[0, 1], **DEBIASED)
    for function, models in ((confidence_interval, [p]), (compare_models, [p, p])):
        with pytest.raises(ValueError, match=r"must not fix data .* debiased"):
            function(fixed, y, *models)
    metric = partial(expected_calibration_error, pos_label=1, **DEBIASED)
    again = confidence_interval(metric, y, p, n_resamples=39, random_state=0)
    assert again == interval


def clipped_problem():
    """Labels of which the unbiased square of the error is negative."""
    rng = np.random.default_rng(1)
    truth = rng.random(300)
    y = (rng.random(300) < truth).astype(int)
    assert expected_calibration_error(y, truth, **DEBIASED) == 0
    return y, truth


# Differences of two errors


@pytest.mark.parametrize("level", [0.9, 0.8])
@pytest.mark.parametrize("groups", [None, np.arange(40) // 2])
def test_ends_of_a_difference_equal_loops(groups, level):
    models = two_models(groups=groups)
    hull, tail = difference_of(ECE, models, **BINS), (1 - level) / 2
    label = models[0].label

    def difference(labels):
        return [
            expected_calibration_error(row, models[0].proba, labels=[0, 1], **BINS)
            - expected_calibration_error(row, models[1].proba, labels=[0, 1], **BINS)
            for row in labels
        ]

    def error(labels, k):
        measure = partial(expected_calibration_error, labels=[0, 1], **BINS)
        return np.array([measure(row, models[k].proba) for row in labels])

    estimate = difference([label])[0]
    assert hull.estimate == pytest.approx(estimate, abs=1e-12)
    lows, highs, moved_lows, moved_highs, noise, less, more = ([] for _ in range(7))
    for coupled in zip(*(model.iter_couplings() for model in models), strict=True):
        a, b, middle = drawn_labels(coupled)
        true = [-bin_distance(models, 0), bin_distance(models, 1)]
        for values in (error(a, 0) - error(b, 1), difference(middle)):
            lows.append(estimate - rank(values, tail, "most"))
            highs.append(estimate - rank(values, tail, "least"))
            more.append((1 + np.sum(np.array(values) >= estimate - 1e-12)) / 20)
            less.append((1 + np.sum(np.array(values) <= estimate + 1e-12)) / 20)
        noise.append(np.var(error(a, 0) - error(b, 1)))
        for labels, known in zip((a, b), true, strict=True):
            values = np.array(difference(labels)) - known
            moved_lows.append(estimate - rank(values, tail, "most"))
            moved_highs.append(estimate - rank(values, tail, "least"))
    student = hull.limits[0]
    terms = [ALL_METRICS[ECE].terms(m, **options_of(ECE, **BINS)).sum_by_sample(40) for m in models]
    code = np.arange(40) if groups is None else groups
    changes = change_without_groups(40 * (terms[0] - terms[1]), np.ones(40), code)
    expected = student_by_hand(estimate, changes, len(set(code)), max(noise))
    assert student == pytest.approx(expected, rel=1e-9)
    low, high = student.ends(tail)
    low, high = min(low, *lows), max(high, *highs)
    assert low <= 0 <= high
    assert hull.interval(level) == pytest.approx(
        (min(low, *moved_lows), max(high, *moved_highs)), abs=1e-9
    )
    p_values = [
        max(stats.t.sf(estimate / student.deviation, student.degrees), *more),
        max(stats.t.cdf(estimate / student.deviation, student.degrees), *less),
    ]
    assert hull.p_value(0.0) == pytest.approx(min(1, 2 * min(p_values)), abs=1e-12)


def bin_distance(models, law):
    """The error of the other model if the outcomes follow one: in its bins, by expectations."""
    truth, other = models[law].proba, models[1 - law].proba
    cell = np.minimum((3 * other).astype(int), 2)
    return sum(abs(np.sum((truth - other)[cell == k])) for k in range(3)) / len(other)


@pytest.mark.parametrize(("seed", "is_noise"), [(3, False), (22, True)])
def test_a_difference_without_terms_has_the_jackknife_of_both(seed, is_noise):
    rng = np.random.default_rng(seed)
    truth = rng.random(40)
    label = (rng.random(40) < truth).astype(int)
    other = np.clip(truth + rng.normal(0, 0.1, size=40), 0, 1)
    models = tuple(check_predictions(label, p, labels=[0, 1]) for p in (truth, other))
    hull = difference_of(WITHOUT_TERMS, models)
    error = partial(integrated_calibration_index, labels=[0, 1])
    rows = np.arange(40)
    values = np.array([[error(label[rows != i], m.proba[rows != i]) for m in models] for i in rows])
    difference = values[:, 0] - values[:, 1]
    changes = np.sqrt(39 / 40) * (difference - difference.mean())
    noise = np.var(hull.limits[1].values)
    expected = student_by_hand(hull.estimate, changes, 40, noise)
    assert hull.limits[0] == pytest.approx(expected, rel=1e-9)
    assert (hull.limits[0].deviation == pytest.approx(np.sqrt(noise))) == is_noise


@pytest.mark.parametrize("law", [0, 1])
def test_true_differences_by_expected_residuals(law):
    models = two_models()
    true = _true_difference(ALL_METRICS[ECE], options_of(ECE, **BINS), models, models[law])
    expected = (1 if law else -1) * bin_distance(models, law)
    assert true == pytest.approx(expected, abs=1e-12)
    assert abs(true) > 0.01


def test_true_differences_of_forecasts():
    rng = np.random.default_rng(0)
    mean, y = rng.normal(size=50), rng.normal(size=50)
    models = [check_forecasts(y, GaussianForecast(mean + s, 1.0)) for s in (0.0, 0.5)]
    metric = ALL_METRICS["quantile_calibration_error"]
    options = options_of("quantile_calibration_error")
    node = stats.norm.ppf((np.arange(20) + 0.5) / 20)
    rows, nodes = np.repeat(mean, 20), np.tile(node, 50)
    expected = quantile_calibration_error(
        rows + nodes, GaussianForecast(rows, 1.0)
    ) - quantile_calibration_error(rows + nodes, GaussianForecast(rows + 0.5, 1.0))
    true = _true_difference(metric, options, models, models[0])
    assert true == pytest.approx(expected, abs=1e-12)
    assert expected < -0.1


def test_swapped_models_mirror_the_limits():
    a, b = two_models()
    one, two = (difference_of(ECE, pair, **BINS) for pair in ((a, b), (b, a)))
    assert one.estimate == -two.estimate
    assert one.limits[0].deviation == pytest.approx(two.limits[0].deviation, rel=1e-12)
    np.testing.assert_array_equal(one.limits[1].values, -two.limits[1].values)
    # the coin that chooses the model is the same for both: a label of A is one of B
    assert not np.array_equal(one.limits[2].values, -two.limits[2].values)
    for first, last in zip(one.shifted, two.shifted[::-1], strict=True):
        np.testing.assert_allclose(first.values, -last.values, atol=1e-12)


def test_a_difference_that_excludes_0_is_not_moved():
    rng = np.random.default_rng(0)
    truth = rng.random(300)
    y = (rng.random(300) < truth).astype(int)
    models = tuple(check_predictions(y, p) for p in (1 - truth, truth))
    hull = difference_of(ECE, models, 39)
    low, high = hull.interval(0.95)
    assert 0 < low == min(part.ends(0.025)[0] for part in hull.limits)
    assert high == max(part.ends(0.025)[1] for part in [*hull.limits, *hull.shifted])
    same = difference_of(ECE, (models[1], models[1]), 39)
    assert (same.interval(0.95), same.p_value(0.0)) == ((0, 0), 1)


def test_models_wrong_on_opposite_sides():
    # errors of .02 on opposite sides, and noise that happens to be on one side
    rng = np.random.default_rng(0)
    truth = 0.05 + 0.9 * rng.random(300)
    y, a, b = (rng.random(300) < truth).astype(int), truth + 0.02, truth - 0.02
    metric = "laplace_kernel_calibration_error"
    unseen = compare_models(metric, y, a, b, n_resamples=99, random_state=0)
    hull = difference_of(metric, tuple(check_predictions(y, p) for p in (a, b)), 99)
    without = [part.tails(0.0) for k, part in enumerate(hull.limits) if k != 2]
    assert 2 * min(np.max(without, axis=0)) <= 0.05 < unseen.p_value
    assert unseen.low <= 0 <= unseen.high


def test_ensembles_have_no_world_in_the_middle():
    rng = np.random.default_rng(0)
    y, members = rng.normal(size=40), rng.normal(size=(40, 6))
    models = tuple(check_forecasts(y, EnsembleForecast(members + s)) for s in (0.0, 0.5))
    hull = difference_of("quantile_calibration_error", models)
    assert (len(hull.limits), len(hull.shifted)) == (2, 0)


def test_the_coupling_of_groups_counts():
    (data, _) = two_models(60, groups=np.arange(60) // 5)
    grouped, alone = (
        limits_of(ECE, one, 199, n_bins=2) for one in (data, replace(data, groups=None))
    )
    assert np.var(grouped.limits[-1].values) > 1.4 * np.var(alone.limits[-1].values)
