"""The expected calibration error with one probability per sample equals loops over its bins."""

import numpy as np
import pytest
from oracles import (
    binned_error,
    interval_error_by_enumeration,
    normalised,
    quantile_bin,
    uniform_bin,
)
from problems import labels_of
from sklearn.exceptions import UndefinedMetricWarning

from skcalib.metrics import expected_calibration_error, smooth_calibration_error


def random_case(seed, n_bins, strategy):
    """Predictions with ties, outcomes, weights with zeros among them, and the bins."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 50))
    proba = np.round(rng.random(n), int(rng.integers(1, 9)))
    outcome = rng.integers(0, 2, size=n)
    weight = rng.choice([0.0, 1.0, 2.5], size=n)
    weight[0] = 1
    if strategy == "uniform":
        return proba, outcome, weight, [uniform_bin(p, n_bins) for p in proba]
    return proba, outcome, weight, [quantile_bin(p, proba, weight, n_bins) for p in proba]


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("seed", range(11))
def test_equals_loops(strategy, norm, seed):
    n_bins = 1 + seed % 11
    proba, outcome, weight, bins = random_case(seed, n_bins, strategy)
    expected = binned_error(proba, outcome, weight, bins, n_bins, norm)
    actual = expected_calibration_error(
        outcome,
        proba,
        sample_weight=weight,
        labels=[0, 1],
        n_bins=n_bins,
        strategy=strategy,
        norm=norm,
    )
    assert actual == pytest.approx(expected, abs=1e-12)


def test_by_hand():
    y_true, y_proba = [0, 1, 1, 1], [0.1, 0.1, 0.9, 0.7]
    # bins [0, ½) and [½, 1]: gaps 0.4 and 0.2
    assert expected_calibration_error(y_true, y_proba, n_bins=2) == pytest.approx(0.3)
    assert expected_calibration_error(y_true, y_proba, n_bins=2, norm="max") == pytest.approx(0.4)
    l2 = expected_calibration_error(y_true, y_proba, n_bins=2, norm="l2")
    assert l2 == pytest.approx(np.sqrt((0.16 + 0.04) / 2))


def test_parity_of_the_number_of_bins():
    # Błasiok et al. (2023), §1: predictions ½ ± ε with outcomes 1 below and 0 above; a bin edge at
    # ½ separates them (even number of bins) or does not (odd)
    y_true, y_proba = [1, 0], [0.5 - 1e-6, 0.5 + 1e-6]
    assert expected_calibration_error(y_true, y_proba, n_bins=9) == pytest.approx(0, abs=1e-6)
    assert expected_calibration_error(y_true, y_proba, n_bins=10) == pytest.approx(0.5, abs=1e-5)


def test_probability_one_is_in_the_last_bin():
    # torchmetrics 1.9.0 puts 1.0 into a bin of its own: (½·0.05 + ½·1) = 0.525 where the one bin
    # has 0.475
    y_true, y_proba = [1, 0], [0.95, 1.0]
    assert expected_calibration_error(y_true, y_proba, n_bins=10) == pytest.approx(0.475)


def test_probability_zero_counts():
    # calzone 0.1.0 drops predictions of exactly 0
    y_true, y_proba = [1, 0, 1, 0], [0.0, 0.0, 0.5, 0.5]
    assert expected_calibration_error(y_true, y_proba) == pytest.approx(0.25)


def test_binary_error_concerns_the_positive_class_not_the_confidence():
    # as confidences both predictions are 0.8, one right and one wrong: a gap of 0.3
    y_true, y_proba = [1, 1], [0.2, 0.8]
    assert expected_calibration_error(y_true, y_proba, labels=[0, 1]) == pytest.approx(0.5)


def test_top_label_is_weighted_by_the_predicted_share():
    # MAPIE 1.6.0 takes the unweighted mean over predicted labels, 0.400 on such data
    proba = np.tile([[1.0, 0.0, 0.0]], (1000, 1))
    label = np.zeros(1000, dtype=int)
    proba[:10], label[:10] = [0.1, 0.9, 0.0], 2
    top_label = expected_calibration_error(label, proba, labels=[0, 1, 2], multi_class="top-label")
    assert top_label == pytest.approx(10 / 1000 * 0.9, abs=1e-12)
    macro = expected_calibration_error(
        label, proba, labels=[0, 1, 2], multi_class="top-label", average="macro"
    )
    assert macro == pytest.approx((0 + 0.9) / 2, abs=1e-12)


def test_labels_need_not_be_zero_and_one():
    # netcal 1.4.0 reports 1.005 for labels {1, 2}
    rng = np.random.default_rng(0)
    proba = rng.random(500)
    outcome = (rng.random(500) < proba).astype(int)
    error = expected_calibration_error(outcome, proba)
    assert expected_calibration_error(outcome + 1, proba) == error
    assert error < 0.1


def test_quantile_bins_survive_ties():
    # netcal 1.4.0 raises where quantiles coincide
    y_true, y_proba = [0, 1, 0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5, 0.5, 1.0]
    error = expected_calibration_error(y_true, y_proba, strategy="quantile", n_bins=4)
    assert error == pytest.approx(abs(3 - 2.5) / 6)


def debiased_square(proba, outcome, weight, bins, n_bins):
    """Ferro and Fricker (2012), with weights; None if no bin holds two samples."""
    weight = normalised(weight, len(proba))
    total, estimable = 0.0, False
    for j in range(n_bins):
        rows = [i for i in range(len(proba)) if bins[i] == j and weight[i] > 0]
        if len(rows) > 1:
            estimable = True
            share = sum(weight[i] for i in rows)
            mean = sum(weight[i] * outcome[i] for i in rows) / share
            gap = sum(weight[i] * (outcome[i] - proba[i]) for i in rows) / share
            same = sum(weight[i] ** 2 for i in rows)
            different = sum(weight[i] * weight[k] for i in rows for k in rows if i != k)
            total += share * (gap**2 - mean * (1 - mean) * same / different)
    return total if estimable else None


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("seed", range(16))
def test_debiased_error_equals_loops(strategy, seed):
    n_bins = 1 + seed % 8
    proba, outcome, weight, bins = random_case(seed, n_bins, strategy)
    expected = debiased_square(proba, outcome, weight, bins, n_bins)

    def error():
        return expected_calibration_error(
            outcome,
            proba,
            sample_weight=weight,
            labels=[0, 1],
            n_bins=n_bins,
            strategy=strategy,
            norm="l2",
            estimation="debiased",
        )

    if expected is None:
        with pytest.raises(ValueError, match="a bin in which at least 2 samples carry"):
            error()
    else:
        assert error() ** 2 == pytest.approx(max(expected, 0), abs=1e-12)


def debiased(y_true, y_proba, **options):
    return expected_calibration_error(y_true, y_proba, norm="l2", estimation="debiased", **options)


def test_debiased_error_by_hand():
    # [0, ½): gap ⅔ − 0.1, variance ⅔·⅓/2 = 1/9; [½, 1]: gap 1 − 0.9, variance 0
    y_true, y_proba = [1, 1, 0, 1, 1], [0.1, 0.1, 0.1, 0.9, 0.9]
    square = 3 / 5 * ((2 / 3 - 0.1) ** 2 - 1 / 9) + 2 / 5 * 0.1**2
    assert debiased(y_true, y_proba, n_bins=2) == pytest.approx(np.sqrt(square), abs=1e-15)
    # weights 2, 1, 1 in the first bin: gap ¾ − 0.1, variance ¾·¼·(4 + 1 + 1)/(16 − 6)
    square = 2 / 3 * ((3 / 4 - 0.1) ** 2 - 3 / 16 * 6 / 10) + 1 / 3 * 0.1**2
    actual = debiased(y_true, y_proba, n_bins=2, sample_weight=[2, 1, 1, 1, 1])
    assert actual == pytest.approx(np.sqrt(square), abs=1e-15)


def test_debiased_error_is_clipped_at_zero():
    # gap 0, variance ¼/3
    assert debiased([0, 0, 1, 1], [0.5] * 4) == 0


def test_a_bin_of_one_sample_tells_nothing_of_its_bias():
    # gap ½, variance 0 in the bin of two, which holds ⅔ of the weight
    error = debiased([1, 1, 0], [0.5, 0.5, 1.0], n_bins=2, strategy="quantile")
    assert error == pytest.approx(np.sqrt(2 / 3 * 0.25), abs=1e-15)
    tiny = debiased([1, 1, 0], [0.5, 0.5, 1.0], sample_weight=[1e-140, 1e-140, 1.0], n_bins=10)
    assert tiny == pytest.approx(np.sqrt(2e-140 * 0.25), rel=1e-12)
    with pytest.raises(ValueError, match="estimation='debiased' needs a bin in which at least 2"):
        debiased([1, 0], [0.2, 0.8])
    with pytest.raises(ValueError, match="choose fewer bins, or estimation='biased'"):
        debiased([0, 1, 2], np.eye(3), multi_class="top-label", average=None)


def test_debiasing_removes_the_bias_of_the_square():
    # every gap is 0.4, so large that nothing is clipped
    rng = np.random.default_rng(0)
    proba = np.repeat([0.1, 0.3, 0.5], 20)
    weight = rng.choice([1.0, 3.0], size=60)
    plain, corrected = [], []
    for _ in range(400):
        outcome = labels_of(proba + 0.4, rng)
        options = {"sample_weight": weight, "n_bins": 5, "labels": [0, 1]}
        plain.append(expected_calibration_error(outcome, proba, norm="l2", **options) ** 2)
        corrected.append(debiased(outcome, proba, **options) ** 2)
    deviation = np.std(corrected) / np.sqrt(400)
    assert abs(np.mean(corrected) - 0.4**2) < 4 * deviation
    assert np.mean(plain) - 0.4**2 > 4 * deviation


@pytest.mark.parametrize("seed", range(8))
def test_quantile_bin_width_equals_loops(seed):
    n_bins = 1 + seed % 8
    proba, outcome, weight, bins = random_case(seed, n_bins, "quantile")
    share = normalised(weight, len(proba))
    expected = binned_error(proba, outcome, weight, bins, n_bins)
    for j in range(n_bins):
        rows = [i for i in range(len(proba)) if bins[i] == j and weight[i] > 0]
        if rows:
            extent = max(proba[i] for i in rows) - min(proba[i] for i in rows)
            expected += extent * sum(share[i] for i in rows)
    actual = upper_bound(outcome, proba, weight, "quantile", n_bins)
    assert actual == pytest.approx(expected, abs=1e-12)


def upper_bound(outcome, proba, weight, strategy, n_bins):
    return expected_calibration_error(
        outcome,
        proba,
        sample_weight=weight,
        labels=[0, 1],
        n_bins=n_bins,
        strategy=strategy,
        add_bin_width=True,
    )


def test_bin_width_by_hand():
    y_true, y_proba = [0, 1, 1, 1], [0.1, 0.1, 0.9, 0.7]
    # gaps 0.4 and 0.2 as above; uniform bins of width ½, quantile bins from 0.1 to 0.1 and from
    # 0.7 to 0.9
    assert upper_bound(y_true, y_proba, None, "uniform", 2) == pytest.approx(0.3 + 0.5)
    assert upper_bound(y_true, y_proba, None, "quantile", 2) == pytest.approx(0.3 + 0.2 / 2)


def test_error_and_width_of_two_points_by_hand():
    # Błasiok et al. (2023), Definition 1.1: labels 0, 1 at ½ ∓ ε are at most ½ − ε from calibration
    # (each prediction moves to its own label), or 2ε/2 (both move to ½): one quantile bin or two
    epsilon = 0.1
    y_true, y_proba = [0, 1], [0.5 - epsilon, 0.5 + epsilon]
    assert upper_bound(y_true, y_proba, None, "quantile", 1) == pytest.approx(2 * epsilon)
    assert upper_bound(y_true, y_proba, None, "quantile", 2) == pytest.approx(0.5 - epsilon)
    assert smooth_calibration_error(y_true, y_proba) == pytest.approx(epsilon * (0.5 - epsilon))


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_error_and_width_bound_the_distance_to_calibration(strategy):
    # equations 5 and 6 of Błasiok et al. (2023)
    for seed in range(24):
        n_bins = 1 + seed % 8
        proba, outcome, weight, _ = random_case(seed, n_bins, strategy)
        bound = upper_bound(outcome, proba, weight, strategy, n_bins)
        smooth = smooth_calibration_error(outcome, proba, sample_weight=weight, labels=[0, 1])
        assert bound >= smooth / 2 - 1e-15
        few = slice(0, 6)
        bound = upper_bound(outcome[few], proba[few], weight[few], strategy, n_bins)
        assert bound >= interval_error_by_enumeration(proba[few], outcome[few], weight[few]) - 1e-15


def test_the_error_alone_does_not_bound_the_distance():
    # errors cancel within the one bin
    y_true, y_proba = [1, 0], [0.0, 1.0]
    assert expected_calibration_error(y_true, y_proba, n_bins=1) == 0
    assert smooth_calibration_error(y_true, y_proba) / 2 == 0.25
    assert upper_bound(y_true, y_proba, None, "uniform", 1) == 1


@pytest.mark.parametrize("norm", ["l1", "max"])
def test_debiasing_is_for_squares(norm):
    with pytest.raises(
        ValueError, match=f"estimation='debiased' needs norm='l2'.* found norm='{norm}'"
    ):
        expected_calibration_error([0, 1], [0.1, 0.9], norm=norm, estimation="debiased")


@pytest.mark.parametrize(
    ("norm", "estimation"), [("l2", "biased"), ("l2", "debiased"), ("max", "biased")]
)
def test_bin_width_is_for_mean_gaps(norm, estimation):
    with pytest.raises(ValueError, match=f"add_bin_width=True needs norm='l1'.* norm='{norm}'"):
        expected_calibration_error(
            [0, 1], [0.1, 0.9], norm=norm, estimation=estimation, add_bin_width=True
        )


def test_debiased_average_leaves_out_classes_without_two_samples_in_a_bin():
    y_true = [0, 1, 0, 1, 1, 2]
    y_proba = [[0.6, 0.4, 0.0]] * 2 + [[0.4, 0.6, 0.0]] * 3 + [[0.0, 0.1, 0.9]]
    options = {"multi_class": "top-label", "n_bins": 10}
    values = debiased(y_true, y_proba, average=None, **options)
    np.testing.assert_array_equal(np.isnan(values), [False, False, True])
    with pytest.warns(UndefinedMetricWarning, match=r"class\(es\) 2: .*fewer bins"):
        average = debiased(y_true, y_proba, **options)
    assert average == pytest.approx((2 * values[0] + 3 * values[1]) / 5)
    with pytest.raises(ValueError, match="needs a class with a bin in which at least 2"):
        debiased([0, 1, 2], np.eye(3), multi_class="top-label")


@pytest.mark.parametrize(("short", "bins"), [(1e-10, [0, 1]), (2e-9, [0, 0])])
def test_shares_that_just_miss_the_edge_of_a_quantile_bin(short, bins):
    # within 1e-9/B of 1/B, here of a half, a share counts as 1/B
    weight = np.array([0.5 - short, 0.5 + short])
    outcome, proba = np.array([1, 0]), np.array([0.3, 0.6])
    expected = binned_error(proba, outcome, weight, bins, 2)
    actual = expected_calibration_error(
        outcome, proba, sample_weight=weight, strategy="quantile", n_bins=2
    )
    assert actual == pytest.approx(expected, abs=1e-12)
