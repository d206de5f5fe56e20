"""The cumulative calibration error equals loops over the sorted predictions."""

import numpy as np
import pytest
from oracles import normalised

from skcalib.metrics import cumulative_calibration_error


def cumulative_error(proba, outcome, weight, norm):
    """Sums over the predictions up to each threshold, one at a time."""
    weight = normalised(weight, len(proba))
    sums = [0.0]
    for threshold in set(proba):
        rows = zip(proba, outcome, weight, strict=True)
        sums.append(sum(w * (y - p) for p, y, w in rows if p <= threshold))
    return max(abs(s) for s in sums) if norm == "max" else max(sums) - min(sums)


@pytest.mark.parametrize("norm", ["max", "range"])
@pytest.mark.parametrize("seed", range(20))
def test_equals_loops(norm, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    proba = np.round(rng.random(n), 1 + seed % 5)
    outcome = rng.integers(0, 2, size=n)
    weight = None if seed % 2 else rng.choice([0.5, 1.0, 3.0], size=n)
    actual = cumulative_calibration_error(
        outcome, proba, sample_weight=weight, labels=[0, 1], norm=norm
    )
    assert actual == pytest.approx(cumulative_error(proba, outcome, weight, norm), abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_range_is_the_largest_sum_over_an_interval(seed):
    rng = np.random.default_rng(seed)
    proba, outcome = np.round(rng.random(15), 1), rng.integers(0, 2, size=15)
    largest = max(
        abs(np.sum((outcome - proba)[(proba >= low) & (proba <= high)])) / 15
        for low in proba
        for high in proba
    )
    error = cumulative_calibration_error(outcome, proba, labels=[0, 1], norm="range")
    assert error == pytest.approx(largest, abs=1e-12)


def test_by_hand():
    # residuals −0.25, 0.5 + 0.5 (tied), −1, each with weight ¼
    y_true, y_proba = [0, 1, 1, 0], [0.25, 0.5, 0.5, 1.0]
    assert cumulative_calibration_error(y_true, y_proba) == 0.75 / 4
    assert cumulative_calibration_error(y_true, y_proba, norm="range") == (0.75 + 0.25) / 4


def test_range_begins_at_zero():
    # all residuals positive: without F_0 the range would lack the first of them
    y_true, y_proba = [1, 1], [0.25, 0.75]
    for norm in ("max", "range"):
        error = cumulative_calibration_error(y_true, y_proba, labels=[0, 1], norm=norm)
        assert error == (0.75 + 0.25) / 2
    down = cumulative_calibration_error([0, 0], y_proba, labels=[0, 1], norm="range")
    assert down == 0.5


@pytest.mark.parametrize("norm", ["max", "range"])
def test_a_perfect_constant_forecast_has_no_error(norm):
    # MCGrad 0.1.5 and probmetrics 1.3.0 say 0.25 on such data; MAPIE 1.6.0 1.20 or 0.80, depending
    # on the order of the rows
    y_true = np.array([0, 1] * 512)
    for order in (np.arange(1024), np.argsort(y_true), np.argsort(-y_true)):
        assert cumulative_calibration_error(y_true[order], np.full(1024, 0.5), norm=norm) == 0
    y_true = np.arange(1000) % 10 < 3
    error = cumulative_calibration_error(y_true, np.full(1000, 0.3), norm=norm)
    assert error == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("norm", ["max", "range"])
def test_rounded_scores_do_not_depend_on_the_order_of_rows(norm):
    # MCGrad 0.1.5 gives p-values between 0.005 and 0.25
    rng = np.random.default_rng(0)
    proba = np.round(rng.random(500), 1)
    outcome = (rng.random(500) < proba).astype(int)
    expected = cumulative_calibration_error(outcome, proba, norm=norm)
    for order in (np.argsort(outcome), np.argsort(-outcome), rng.permutation(500)):
        actual = cumulative_calibration_error(outcome[order], proba[order], norm=norm)
        assert actual == pytest.approx(expected, abs=1e-15)


def test_it_jumps_where_predictions_meet():
    y_true = [1, 0]
    assert cumulative_calibration_error(y_true, [0.5, 0.5]) == 0
    assert cumulative_calibration_error(y_true, [0.5 - 1e-9, 0.5]) == pytest.approx(0.25)


def test_three_classes_by_hand():
    proba = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.0, 0.75]]
    label = [0, 0, 2]
    # confidences 0.5, 0.5, 0.75: right, wrong, right
    error = cumulative_calibration_error(label, proba, labels=[0, 1, 2])
    assert error == pytest.approx(0.25 / 3, abs=1e-15)
    by_class = cumulative_calibration_error(
        label, proba, labels=[0, 1, 2], multi_class="classwise", average=None, norm="range"
    )
    # class 0: 0.75 − 0.25 at 0.25, 0.5 at 0.5; class 1: 0, −0.25, −0.5; class 2: −0.5, 0.25
    np.testing.assert_allclose(by_class, np.array([1.0, 0.75, 0.5]) / 3, atol=1e-15)


def test_bad_kind():
    with pytest.raises(ValueError, match=r"'norm' parameter .* must be a str among"):
        cumulative_calibration_error([0, 1], [0.1, 0.9], norm="mean")
