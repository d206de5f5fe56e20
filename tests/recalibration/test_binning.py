"""Interval binning and its certificate equal loops and the best of all partitions."""

import numpy as np
import pytest
from oracles import interval_error_by_enumeration, normalised, quantile_bin, uniform_bin
from problems import random_problem, small_case
from sklearn.metrics import log_loss

from skcalib.metrics import (
    expected_calibration_error,
    interval_calibration_error,
    lower_distance_to_calibration,
    smooth_calibration_error,
)
from skcalib.recalibration import IntervalBinningRecalibrator

STRATEGIES = ["optimal", "uniform", "quantile"]
all_strategies = pytest.mark.parametrize("strategy", STRATEGIES)


def test_by_hand():
    # 0.7 and 0.8 share an interval: Σ|mass| = (0.1 + 0.2 + |0.3 − 0.8|)/4, width 0.1 · ½
    recalibrator = IntervalBinningRecalibrator(pseudo_count=0).fit(
        [0.1, 0.2, 0.7, 0.8], [0, 0, 1, 0]
    )
    np.testing.assert_array_equal(recalibrator.partition_, [[0.1, 0.1], [0.2, 0.2], [0.7, 0.8]])
    np.testing.assert_array_equal(recalibrator.values_, [0, 0, 0.5])
    certificate = recalibrator.certificate_
    assert certificate.binned_error == pytest.approx(0.2, abs=1e-15)
    assert certificate.mean_width == pytest.approx(0.05, abs=1e-15)
    assert certificate.distance_bound == pytest.approx(0.25, abs=1e-15)
    assert certificate.movement == pytest.approx((0.1 + 0.2 + 0.2 + 0.3) / 4, abs=1e-15)
    # the nearer interval, and the upper one at 0.45 (a little below is nearer to 0.2)
    query = [0.0, 0.44, 0.45, 0.7, 0.75, 1.0]
    calibrated = recalibrator.predict_proba(query)[:, 1]
    np.testing.assert_array_equal(calibrated, [0, 0, 0.5, 0.5, 0.5, 0.5])


def test_optimal_is_the_best_of_all_partitions():
    for seed in range(50):
        proba, outcome, weight = (x if x is None else x[:8] for x in small_case(seed))
        recalibrator = IntervalBinningRecalibrator(labels=[0, 1], pseudo_count=0)
        recalibrator.fit(proba, outcome, sample_weight=weight)
        used = slice(None) if weight is None else weight > 0
        expected = interval_error_by_enumeration(
            proba[used], outcome[used], None if weight is None else weight[used]
        )
        assert recalibrator.certificate_.distance_bound == pytest.approx(expected, abs=1e-14), seed


@all_strategies
@pytest.mark.parametrize("pseudo_count", [0, 1.5])
@pytest.mark.parametrize("seed", range(10))
def test_certificate_equals_loops(strategy, pseudo_count, seed):
    proba, outcome, weight = small_case(seed)
    recalibrator = IntervalBinningRecalibrator(
        strategy, n_bins=4, labels=[0, 1], pseudo_count=pseudo_count
    )
    recalibrator.fit(proba, outcome, sample_weight=weight)
    weight = normalised(weight, len(proba))
    smallest = recalibrator.smallest_probability_
    kept = [min(max(p, smallest), 1 - smallest) for p in proba]
    extra = pseudo_count * sum(w**2 for w in weight)
    error = width = movement = remaining = 0.0
    for (low, high), value in zip(recalibrator.partition_, recalibrator.values_, strict=True):
        rows = [i for i in range(len(proba)) if low <= proba[i] <= high and weight[i] > 0]
        share = sum(weight[i] for i in rows)
        positive = sum(weight[i] * outcome[i] for i in rows)
        mean = sum(weight[i] * kept[i] for i in rows) / share
        assert value == pytest.approx((positive + extra * mean) / (share + extra), abs=1e-12)
        assert 0 < value < 1 or pseudo_count == 0
        assert low == min(proba[i] for i in rows)
        assert high == max(proba[i] for i in rows)
        error += abs(sum(weight[i] * (outcome[i] - proba[i]) for i in rows))
        width += (high - low) * share
        movement += sum(weight[i] * abs(value - proba[i]) for i in rows)
        remaining += abs(positive - share * value)
    certificate = recalibrator.certificate_
    assert certificate.binned_error == pytest.approx(error, abs=1e-12)
    assert certificate.mean_width == pytest.approx(width, abs=1e-12)
    assert certificate.movement == pytest.approx(movement, abs=1e-12)
    assert certificate.remaining_error == pytest.approx(remaining, abs=1e-12)
    assert certificate.remaining_error <= extra * len(recalibrator.values_) + 1e-12
    both = certificate.movement + certificate.remaining_error
    assert both <= certificate.distance_bound + smallest + 1e-12


@all_strategies
@pytest.mark.parametrize("pseudo_count", [0.5, 5, 500])
def test_movement_and_remaining_error_bound_the_distance(strategy, pseudo_count):
    for seed in range(2):
        label, proba = random_problem(np.random.default_rng(seed), 40)
        recalibrator = IntervalBinningRecalibrator(strategy, n_bins=4, pseudo_count=pseudo_count)
        certificate = recalibrator.fit(proba, label).certificate_
        both = certificate.movement + certificate.remaining_error
        assert lower_distance_to_calibration(label, proba) <= both + 1e-9
        assert both <= certificate.distance_bound + 1e-12
        fitted = recalibrator.predict_proba(proba)
        remaining = lower_distance_to_calibration(label, fitted)
        assert remaining <= certificate.remaining_error + 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_certificate_of_optimal_is_the_interval_calibration_error(seed):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, 400)
    weight = rng.random(400)
    recalibrator = IntervalBinningRecalibrator(pseudo_count=0).fit(
        proba, label, sample_weight=weight
    )
    error = interval_calibration_error(label, proba, sample_weight=weight)
    assert recalibrator.certificate_.distance_bound == error
    for strategy in ("uniform", "quantile"):
        other = IntervalBinningRecalibrator(strategy, pseudo_count=0).fit(
            proba, label, sample_weight=weight
        )
        assert other.certificate_.distance_bound > error


def test_certificates_of_several_classes_are_those_of_each():
    label, proba = random_problem(np.random.default_rng(0), 200, 3)
    recalibrator = IntervalBinningRecalibrator(pseudo_count=0).fit(proba, label)
    errors = interval_calibration_error(label, proba, multi_class="classwise", average=None)
    assert [one.distance_bound for one in recalibrator.certificate_] == errors.tolist()
    assert [len(one) for one in recalibrator.partition_] == [
        len(one) for one in recalibrator.values_
    ]
    for k in range(3):
        binary = IntervalBinningRecalibrator(pseudo_count=0).fit(proba[:, k], label == k)
        np.testing.assert_array_equal(binary.partition_, recalibrator.partition_[k])


def test_beyond_the_number_of_cuts_the_metric_is_the_same(monkeypatch):
    from skcalib._numerics import interval

    monkeypatch.setattr(interval, "_MAX_CUTS", 100)
    monkeypatch.setattr(interval, "_DEFAULT_PRECISION", 0.05)
    label, proba = random_problem(np.random.default_rng(0), 400)
    certificate = IntervalBinningRecalibrator(pseudo_count=0).fit(proba, label).certificate_
    assert certificate.distance_bound == interval_calibration_error(label, proba)
    assert certificate.distance_bound > interval_calibration_error(label, proba, precision=0)


@pytest.mark.parametrize(
    ("strategy", "random_shift"), [*((name, False) for name in STRATEGIES), ("uniform", True)]
)
def test_the_sample_itself_becomes_calibrated(strategy, random_shift):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 500)
    recalibrator = IntervalBinningRecalibrator(
        strategy, random_shift=random_shift, random_state=0, pseudo_count=0
    ).fit(proba, label)
    fitted = recalibrator.predict_proba(proba)
    for error in (smooth_calibration_error, interval_calibration_error, expected_calibration_error):
        assert error(label, proba) > 0.05
        assert error(label, fitted) < 1e-12
    moved = np.mean(np.abs(fitted[:, 1] - proba))
    assert recalibrator.certificate_.movement == pytest.approx(moved, abs=1e-15)


@pytest.mark.parametrize("n_bins", [1, 7, 100])
def test_uniform_equals_loops(n_bins):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 300)
    proba[:100] = np.round(proba[:100], 2)
    weight = rng.random(300)
    proba[(proba > 0.5) & (proba < 0.7)] = 0.3  # at 100 and 7 bins some are empty
    recalibrator = IntervalBinningRecalibrator("uniform", n_bins=n_bins, pseudo_count=0)
    recalibrator.fit(proba, label, sample_weight=weight)
    query = np.concatenate([np.arange(n_bins + 1) / n_bins, rng.random(200), proba])
    bins = np.array([uniform_bin(p, n_bins) for p in proba])
    for p, calibrated in zip(query, recalibrator.predict_proba(query)[:, 1], strict=True):
        rows = bins == uniform_bin(p, n_bins)
        expected = np.average(label[rows], weights=weight[rows]) if rows.any() else p
        assert calibrated == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n_bins", [1, 5, 1000])
def test_quantile_equals_loops(n_bins):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 200)
    proba[:100] = np.round(proba[:100], 1)
    weight = rng.random(200)
    recalibrator = IntervalBinningRecalibrator("quantile", n_bins=n_bins, pseudo_count=0)
    recalibrator.fit(proba, label, sample_weight=weight)
    bins = np.array([quantile_bin(p, proba, weight, n_bins) for p in proba])
    calibrated = recalibrator.predict_proba(proba)[:, 1]
    for j in set(bins):
        rows = bins == j
        expected = np.average(label[rows], weights=weight[rows])
        np.testing.assert_allclose(calibrated[rows], expected, atol=1e-12)
    assert len(recalibrator.values_) == len(set(bins))


@pytest.mark.parametrize("strategy", ["optimal", "quantile"])
def test_gaps_belong_to_the_nearer_interval(strategy):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 60)
    recalibrator = IntervalBinningRecalibrator(strategy, n_bins=6, pseudo_count=0).fit(proba, label)
    query = rng.random(500)
    low, high = recalibrator.partition_.T
    distance = np.maximum(np.maximum(low - query[:, None], query[:, None] - high), 0)
    nearest = recalibrator.values_[distance.argmin(axis=1)]
    np.testing.assert_array_equal(recalibrator.predict_proba(query)[:, 1], nearest)


def test_adjacent_doubles_are_told_apart():
    points = [0.3]
    for _ in range(7):
        points.append(np.nextafter(points[-1], 1))
    label = [0, 1] * 4
    recalibrator = IntervalBinningRecalibrator("quantile", n_bins=8, pseudo_count=0).fit(
        points, label
    )
    np.testing.assert_array_equal(recalibrator.predict_proba(points)[:, 1], label)


def test_random_shift_moves_the_grid():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 2000)
    cuts = []
    for seed in range(50):
        recalibrator = IntervalBinningRecalibrator(
            "uniform", n_bins=4, random_shift=True, random_state=seed, pseudo_count=0
        )
        cuts.append(recalibrator.fit(proba, label).maps_[0].cuts)
        np.testing.assert_allclose(np.diff(cuts[-1]), 0.25, atol=1e-15)
        bins = np.floor((proba - cuts[-1][0]) / 0.25)
        fitted = recalibrator.predict_proba(proba)[:, 1]
        for j in range(-1, 4):
            np.testing.assert_allclose(fitted[bins == j], label[bins == j].mean(), atol=1e-12)
    first = np.array(cuts)[:, 0]
    assert (first >= 0).all()
    assert (first < 0.25).all()
    assert first.min() < 0.03
    assert first.max() > 0.22
    unseeded = IntervalBinningRecalibrator("uniform", random_shift=True, pseudo_count=0)
    shifts = {unseeded.fit(proba, label).maps_[0].cuts[0] for _ in range(3)}
    assert len(shifts) == 3


def test_pseudo_count_by_hand():
    recalibrator = IntervalBinningRecalibrator("uniform", n_bins=2, pseudo_count=2)
    recalibrator.fit([0.1, 0.2, 0.3, 0.8], [0, 0, 0, 1])
    # two samples more in each: at 0.2 in the first, at 0.8 in the second
    np.testing.assert_allclose(recalibrator.values_, [0.4 / 5, 2.6 / 3], rtol=1e-15)
    np.testing.assert_allclose(
        recalibrator.certificate_.remaining_error, (0.24 + 0.4 / 3) / 4, rtol=1e-12
    )


def test_a_pseudo_count_replaces_exact_zeros():
    recalibrator = IntervalBinningRecalibrator("uniform", n_bins=2)
    recalibrator.fit([0.0, 0.0, 0.3, 1.0], [0, 0, 0, 1])
    # half of 0.3, but at most a quarter
    np.testing.assert_allclose(recalibrator.values_, [0.2 / 4, 1.85 / 2], rtol=1e-15)
    assert recalibrator.smallest_probability_ == pytest.approx(0.15)
    assert IntervalBinningRecalibrator(pseudo_count=0).fit([0.0, 0.5], [0, 1]).values_[0] == 0


@all_strategies
def test_pseudo_count_keeps_the_log_loss_finite(strategy):
    query = [0.0, 0.5, 1.0]
    for proba, label in [([0.2, 0.9], [0, 1]), ([0.4], [1]), ([0.4, 0.45], [0, 0])]:
        recalibrator = IntervalBinningRecalibrator(strategy, pseudo_count=1e-3, labels=[0, 1])
        calibrated = recalibrator.fit(proba, label).predict_proba(query)
        assert (calibrated > 0).all()
        assert np.isfinite(log_loss([1, 0, 0], calibrated))


@all_strategies
def test_a_pseudo_count_of_a_certain_prediction_rounds_neither_to_0_nor_to_1(strategy):
    for proba, label in [([1.0] * 3, [1] * 3), ([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1])]:
        recalibrator = IntervalBinningRecalibrator(strategy, labels=[0, 1]).fit(proba, label)
        calibrated = recalibrator.predict_proba([0.0, 1.0])
        assert (calibrated > 0).all()
        assert (recalibrator.values_ < 1).all()


def test_interval_without_data_keeps_its_predictions():
    recalibrator = IntervalBinningRecalibrator("uniform", n_bins=4, pseudo_count=0).fit(
        [0.1, 0.9], [1, 0]
    )
    np.testing.assert_array_equal(
        recalibrator.predict_proba([0.2, 0.25, 0.6, 0.75, 1.0])[:, 1], [1, 0.25, 0.6, 0, 0]
    )
    np.testing.assert_array_equal(recalibrator.values_, [1, 0])
    np.testing.assert_array_equal(recalibrator.maps_[0].values, [1, np.nan, np.nan, 0])


DIFFICULT = {
    "one sample": ([0.3], [1]),
    "two samples": ([0.3, 0.4], [1, 0]),
    "certain and right": ([0.0, 1.0], [0, 1]),
    "certain and wrong": ([0.0, 1.0], [1, 0]),
    "constant": ([0.4] * 6, [0, 1, 0, 0, 0, 1]),
    "separable": ([0.1, 0.2, 0.3, 0.6, 0.9], [0, 0, 0, 1, 1]),
    "one class": ([0.1, 0.2, 0.8], [0, 0, 0]),
    "tiny": ([5e-324, 1e-310, 1e-300, 0.5], [0, 1, 0, 1]),
}


@all_strategies
@pytest.mark.parametrize("pseudo_count", [0, 1])
@pytest.mark.parametrize(("proba", "label"), DIFFICULT.values(), ids=DIFFICULT)
def test_difficult_data(proba, label, strategy, pseudo_count):
    query = np.concatenate([proba, np.linspace(0, 1, 101)])
    for weight in (None, np.full(len(proba), 1e-300), np.linspace(1e-12, 1e12, len(proba))):
        recalibrator = IntervalBinningRecalibrator(
            strategy, n_bins=3, pseudo_count=pseudo_count, labels=[0, 1]
        )
        calibrated = recalibrator.fit(proba, label, sample_weight=weight).predict_proba(query)
        assert ((calibrated >= 0) & (calibrated <= 1)).all()
        np.testing.assert_allclose(calibrated.sum(axis=1), 1, atol=1e-15)


def test_absent_class_gets_no_probability():
    label, proba = random_problem(np.random.default_rng(0), 50, 3)
    recalibrator = IntervalBinningRecalibrator(labels=[0, 1, 2], pseudo_count=0).fit(
        proba, label % 2
    )
    assert (recalibrator.predict_proba(proba)[:, 2] == 0).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("strategy", "optimum"),
        ("n_bins", 0),
        ("n_bins", 2.5),
        ("random_shift", "no"),
        ("random_state", "seed"),
        ("pseudo_count", -1),
    ],
)
def test_bad_parameters_are_refused(name, value):
    recalibrator = IntervalBinningRecalibrator(pseudo_count=0).set_params(**{name: value})
    with pytest.raises(ValueError, match=f"The '{name}' parameter"):
        recalibrator.fit([0.1, 0.9], [0, 1])


@pytest.mark.parametrize("strategy", ["optimal", "quantile"])
def test_only_equal_widths_can_be_shifted(strategy):
    with pytest.raises(ValueError, match="random_shift=True needs strategy='uniform'"):
        IntervalBinningRecalibrator(strategy, random_shift=True, pseudo_count=0).fit(
            [0.2, 0.7], [0, 1]
        )


def test_a_pseudo_count_has_the_weight_of_samples():
    recalibrator = IntervalBinningRecalibrator("uniform", n_bins=1, pseudo_count=2)
    recalibrator.fit([0.2, 0.8], [0, 1], sample_weight=[1, 3])
    # Σw² = 10/16 for each of two samples
    expected = (12 + 20 * 0.65) / (16 + 20)  # whose mean prediction is 0.65
    assert recalibrator.values_ == pytest.approx([expected], rel=1e-12)
