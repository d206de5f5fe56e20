"""Ends of intervals where errors are biased, clipped, or due to chance alone."""

from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit
from sklearn.metrics import brier_score_loss

from skcalib import metrics
from skcalib.hypothesis_tests import EquivalenceTest
from skcalib.metrics import (
    expected_calibration_error,
    laplace_kernel_calibration_error,
    level_set_calibration_error,
)
from skcalib.uncertainty import compare_models, confidence_interval

ECE = "expected_calibration_error"
FAST = {"n_resamples": 39, "random_state": 0}


def before_and_after(n, slope=1.4, seed=0):
    """Labels, overconfident predictions and the true probabilities."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n)
    return (rng.random(n) < truth).astype(int), expit(slope * logit(truth)), truth


@pytest.mark.slow
def test_gain_of_recalibration_is_covered():
    # the true difference is .0488; without the biases 6 of 20 upper ends were below it
    highs = [
        compare_models(
            ECE, *before_and_after(1000, seed=seed), n_resamples=19, random_state=seed
        ).high
        for seed in range(20)
    ]
    assert np.sum(np.array(highs) < 0.0488) <= 1


def recorded_ends(y, a, b, level):
    """Both ends from the definition, by loops over what a callable returned.

    A callable of the user gets the same subsamples, and an interval whose ends are not moved.
    """
    values = []

    def metric(y_true, y_proba):
        values.append(expected_calibration_error(y_true, y_proba, labels=[0, 1]))
        return values[-1]

    plain = compare_models(metric, y, a, b, confidence_level=level, **FAST)
    n, size, t = len(y), int(np.ceil(3 * np.sqrt(len(y)))), stats.t.isf((1 - level) / 2, 99)
    margins = []
    for k in (0, 1):
        whole, leave_out, parts = values[k], values[2 + k : 202 : 2], values[202 + k :: 2]
        deviation = np.sqrt(99 / 100 * sum((v - np.mean(leave_out)) ** 2 for v in leave_out))
        root, ratio = np.sqrt(size / n), size / n
        above = sorted(parts)[-1]  # 39 subsamples, a tail of .025
        low = max(0, min(whole - t * deviation, (whole - root * above) / (1 - root)))
        margins.append((
            max(0, sum(root * (v - low) for v in parts) / len(parts)),
            max(0, sum(ratio / (1 - ratio) * (v - whole) for v in parts) / len(parts)),
        ))  # fmt: skip
    difference = np.array(values[0::2]) - values[1::2]
    normal = t * np.sqrt(99 * np.var(difference[1:101]))
    largest = max(abs(difference[101:]))
    up = min(largest, max(0, margins[1][0] - margins[0][1]))
    down = min(largest, max(0, margins[0][0] - margins[1][1]))
    low, high = plain.low, plain.high
    return (
        low if low > 0 else min(low, difference[0] - normal - down),
        high if high < 0 else max(high, difference[0] + normal + up),
        plain,
    )


@pytest.mark.parametrize("slope", [1.4, 4])  # the lower end is moved; it excludes 0
def test_ends_equal_loops(slope):
    y, a, b = before_and_after(300, slope)  # 100 parts of three samples
    low, high, plain = recorded_ends(y, a, b, 0.95)
    result = compare_models(ECE, y, a, b, **FAST)
    assert (result.low, result.high) == pytest.approx((low, high), abs=1e-12)
    assert result.high > plain.high + 0.01
    assert (result.low == plain.low) == (plain.low > 0) == (slope == 4)
    assert result.p_value == plain.p_value
    swapped = compare_models(ECE, y, b, a, **FAST)
    assert (-swapped.high, -swapped.low) == pytest.approx((low, high), abs=1e-12)


def test_which_differences_are_not_moved():
    y, a, b = before_and_after(120)
    same = compare_models(ECE, y, a, a, **FAST)
    assert (same.low, same.high, same.p_value) == (0, 0, 1)
    mean = compare_models(brier_score_loss, y, a, b, method="resampling", **FAST)
    assert mean == compare_models(lambda y, p: brier_score_loss(y, p), y, a, b, **FAST)
    plain = compare_models(ECE, y, a, b, method="jackknife", **FAST)
    assert compare_models(ECE, y, a, b, **FAST).high > plain.high
    assert compare_models(ECE, y, a, b, alternative="greater", **FAST).high == np.inf


def opposite_models(seed):
    """Errors of .02 on opposite sides, and noise that happens to be on one side."""
    rng = np.random.default_rng(seed)
    truth = 0.05 + 0.9 * rng.random(300)
    return (rng.random(300) < truth).astype(int), truth + 0.02, truth - 0.02


def test_models_wrong_on_opposite_sides():
    metric = "laplace_kernel_calibration_error"
    y, a, b = opposite_models(0)
    error = partial(laplace_kernel_calibration_error, labels=[0, 1])
    unseen = compare_models(lambda y, p: error(y, p), y, a, b, **FAST)
    assert unseen.p_value <= 0.05  # without halves: a false alarm
    assert not unseen.low <= 0 <= unseen.high
    rng, halves = np.random.default_rng(0), []
    for _ in range(50):
        is_first = rng.permutation(300) < 150
        halves += [error(y[h], a[h]) - error(y[h], b[h]) for h in (is_first, ~is_first)]
    difference = error(y, a) - error(y, b)
    centred = difference + np.array(halves) - np.median(halves)
    n_crossed = np.sum(centred * np.sign(difference) <= 0)
    assert n_crossed > 2
    for metric in (error, "laplace_kernel_calibration_error"):
        result = compare_models(metric, y, a, b, **FAST)
        assert result.p_value == pytest.approx(2 * (1 + n_crossed) / 101, abs=1e-12)
        assert result.low <= 0 <= result.high
    strict = compare_models(error, y, a, b, confidence_level=0.999 - result.p_value, **FAST)
    assert not strict.low <= 0 <= strict.high


@pytest.mark.parametrize(
    ("metric", "params"),
    [
        ("cumulative_calibration_error", {}),
        ("decision_calibration_error", {}),
        ("kernel_calibration_error", {"bandwidth": 0.3}),
        ("quantile_calibration_error", {"norm": "max"}),
        (ECE, {"n_bins": 1}),
    ],
)
def test_opposite_sides_of_one_direction(metric, params):
    y, a, b = opposite_models(0)
    if metric.startswith("quantile"):
        y = np.random.default_rng(5).normal(size=300)
        a, b = ((np.full(300, mean), np.ones(300)) for mean in (0.05, -0.05))
    result = compare_models(metric, y, a, b, metric_params=params, **FAST)
    assert result.p_value > 0.07  # without halves it was 0.05
    assert result.low <= 0 <= result.high
    if params and not metric.startswith("quantile"):  # also where arguments that are data are fixed
        fixed = partial(getattr(metrics, metric), labels=[0, 1], **params)
        assert compare_models(fixed, y, a, b, **FAST).p_value == pytest.approx(result.p_value)


DEBIASED = {"norm": "l2", "debias": True}


def clipped_problem():
    """Labels of which the unbiased square of the error is negative."""
    y, _, truth = before_and_after(300, seed=1)
    assert expected_calibration_error(y, truth, **DEBIASED) == 0
    return y, truth


def test_interval_of_a_clipped_root():
    y, p = clipped_problem()
    interval = confidence_interval(ECE, y, p, metric_params=DEBIASED, **FAST)
    assert interval.estimate == interval.low == 0

    def square(y_true, y_proba):  # of 15 bins, from the definition
        total = 0.0
        for k in range(15):
            label = y_true[np.minimum(15 * y_proba, 14).astype(int) == k]
            gap = np.mean(label - y_proba[np.minimum(15 * y_proba, 14).astype(int) == k])
            noise = np.var(label) / (len(label) - 1) if len(label) > 1 else gap**2
            total += len(label) / len(y_true) * (gap**2 - noise) if len(label) else 0
        return total

    jackknife = confidence_interval(square, y, p, method="jackknife", **FAST)
    assert interval.high >= np.sqrt(jackknife.high) > 0.02
    again = confidence_interval(ECE, y, p, metric_params=DEBIASED, method="jackknife", **FAST)
    assert again.high == pytest.approx(np.sqrt(jackknife.high), abs=1e-12)


def test_interval_of_a_clipped_root_with_a_positive_class():
    y, p = clipped_problem()
    expected = confidence_interval(ECE, y, p, metric_params=DEBIASED, **FAST)
    metric = partial(expected_calibration_error, pos_label=1, **DEBIASED)
    assert confidence_interval(metric, y, p, **FAST) == expected  # it was from 0 to 0
    fixed = partial(expected_calibration_error, labels=[0, 1], **DEBIASED)
    with pytest.raises(ValueError, match=r"must not fix data .* debiased"):
        confidence_interval(fixed, y, p, **FAST)
    with pytest.raises(ValueError, match=r"must not fix data .* debiased"):
        compare_models(fixed, y, p, p, **FAST)


def test_equivalence_of_a_clipped_root():
    y, p = clipped_problem()
    test = EquivalenceTest(
        metric=ECE, metric_params=DEBIASED, margin=0.01, n_resamples=39, random_state=0
    ).fit(p, y)
    assert test.statistic_ == 0
    assert test.upper_limit_ > 0.02
    assert test.p_value_ > 0.05  # it was 0.025: an error of 0 that does not vary


@pytest.mark.parametrize(
    ("n_levels", "is_zero"),
    [(None, True), (400, True), (20, False)],
    ids=["all distinct", "more than in a subsample", "few"],
)
def test_levels_of_single_samples(n_levels, is_zero):
    rng = np.random.default_rng(0)
    truth = (
        rng.random(1000)
        if n_levels is None
        else (rng.integers(n_levels, size=1000) + 0.5) / n_levels
    )
    y, p = rng.random(1000) < truth, expit(3 * logit(truth))
    for metric in (
        level_set_calibration_error,
        partial(level_set_calibration_error, labels=[0, 1]),
    ):
        interval = confidence_interval(metric, y, p, **FAST)
        assert (interval.low == 0) == is_zero
    several = np.column_stack([p, (1 - p) / 2, (1 - p) / 2])
    for multi_class in ("confidence", "classwise", "canonical"):
        params = {"multi_class": multi_class}
        interval = confidence_interval(
            "level_set_calibration_error",
            1 - y,
            several,
            labels=[0, 1, 2],
            metric_params=params,
            **FAST,
        )
        assert interval.low == 0 or not is_zero
        assert interval.high >= interval.estimate
