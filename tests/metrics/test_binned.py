import numpy as np
import pytest
from helpers import binned_error, quantile_bin, uniform_bin

from skcalib.metrics import expected_calibration_error


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("seed", range(20))
def test_equals_loops(strategy, norm, seed):
    rng = np.random.default_rng(seed)
    n, n_bins = int(rng.integers(1, 50)), int(rng.integers(1, 12))
    proba = np.round(rng.random(n), int(rng.integers(1, 9)))
    outcome = rng.integers(0, 2, size=n)
    weight = rng.choice([0.0, 1.0, 2.5], size=n)
    weight[0] = 1
    if strategy == "uniform":
        bins = [uniform_bin(p, n_bins) for p in proba]
    else:
        bins = [quantile_bin(p, proba, weight, n_bins) for p in proba]
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
