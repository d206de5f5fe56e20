"""Two models on different samples: the difference of independent measures."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import brier_score_loss

from skcalib.report import calibration_report
from skcalib.uncertainty import compare_models, confidence_interval
from skcalib.uncertainty._limits import UnpairedLimits

FAST = {"n_resamples": 9, "random_state": 0}


def sample(n, slope, seed):
    rng = np.random.default_rng(seed)
    logit = rng.normal(size=n)
    return (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int), 1 / (1 + np.exp(-slope * logit))


(Y_A, P_A), (Y_B, P_B) = sample(80, 1.0, 0), sample(60, 2.5, 1)


class Wilson:
    """The interval of a share by Wilson, as SciPy has it."""

    def __init__(self, count, size):
        self.count, self.size, self.estimate = count, size, count / size

    def ends(self, tail):
        return tuple(stats.binomtest(self.count, self.size).proportion_ci(1 - 2 * tail, "wilson"))


def test_squares_are_added_as_newcombe_does():
    # Newcombe (1998), Statistics in Medicine 17:873, Table II, (a): 56/70 − 48/80, method 10
    limits = UnpairedLimits([Wilson(56, 70), Wilson(48, 80)], lambda low, high: (low, high))
    assert [*limits.interval(0.95)] == pytest.approx([0.0524, 0.3339], abs=5e-5)


def test_a_mean_loss_is_near_the_test_of_welch():
    (y_a, p_a), (y_b, p_b) = sample(900, 1.0, 2), sample(500, 1.5, 3)
    result = compare_models(brier_score_loss, (y_a, y_b), p_a, p_b)
    losses = (y_a - p_a) ** 2, (y_b - p_b) ** 2
    welch = stats.ttest_ind(*losses, equal_var=False)
    assert result.difference == pytest.approx(losses[0].mean() - losses[1].mean())
    assert result.p_value == pytest.approx(welch.pvalue, rel=0.1)
    assert [*result] == pytest.approx([*welch.confidence_interval()], abs=0.001)


@pytest.mark.parametrize("metric", [brier_score_loss, "smooth_calibration_error"])
def test_ends_are_those_of_each_model(metric):
    result = compare_models(metric, (Y_A, Y_B), P_A, P_B, **FAST)
    singles = [confidence_interval(metric, y, p, **FAST) for y, p in ((Y_A, P_A), (Y_B, P_B))]
    assert [result.estimate_a, result.estimate_b] == pytest.approx(
        [single.estimate for single in singles]
    )
    a, b = singles
    below = np.hypot(a.estimate - a.low, b.high - b.estimate)
    above = np.hypot(a.high - a.estimate, b.estimate - b.low)
    assert result.difference - result.low == pytest.approx(below, rel=1e-9)
    assert result.high - result.difference == pytest.approx(above, rel=1e-9)
    mirrored = compare_models(metric, (Y_B, Y_A), P_B, P_A, **FAST)
    assert mirrored.p_value == pytest.approx(result.p_value)
    assert [*mirrored] == pytest.approx([-result.high, -result.low], rel=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_and_p_values_agree(level):
    result, less, greater = (
        compare_models(
            "calibration_slope",
            (Y_A, Y_B),
            P_A,
            P_B,
            confidence_level=level,
            alternative=alternative,
        )
        for alternative in ("two-sided", "less", "greater")
    )
    for side in (result, less, greater):
        assert (side.p_value <= 1 - level) == (not side.low <= 0 <= side.high)
    assert less.p_value + greater.p_value == pytest.approx(1)
    assert 2 * min(less.p_value, greater.p_value) == pytest.approx(result.p_value)


def test_weights_and_groups_are_pairs():
    weights = np.repeat([1.0, 0.0], [70, 10]), np.ones(60)
    weighted = compare_models(brier_score_loss, (Y_A, Y_B), P_A, P_B, sample_weight=weights, **FAST)
    taken = compare_models(brier_score_loss, (Y_A[:70], Y_B), P_A[:70], P_B, **FAST)
    assert [*weighted] == pytest.approx([*taken], rel=1e-9)


@pytest.mark.parametrize("length", [80, 60])
def test_groups_are_pairs_that_part_samples_of_equal_length_too(length):
    groups = np.arange(length) // 4, 1000 + np.arange(60) // 3
    y_a, p_a = Y_A[:length], P_A[:length]
    grouped = compare_models(brier_score_loss, (y_a, Y_B), p_a, P_B, groups=groups)
    singles = [
        confidence_interval(brier_score_loss, y, p, groups=g)
        for y, p, g in ((y_a, p_a, groups[0]), (Y_B, P_B, groups[1]))
    ]
    below = np.hypot(singles[0].estimate - singles[0].low, singles[1].high - singles[1].estimate)
    assert grouped.difference - grouped.low == pytest.approx(below, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"sample_weight": np.ones(80)},
            r"sample_weight must be a tuple of two.*weight_a, .*weight_b\)",
        ),
        ({"groups": np.arange(80)}, "groups must be a tuple of two"),
        ({"given": P_A}, "given must be a tuple of two"),
        (
            {"groups": (np.arange(80) // 2, np.arange(60) // 2)},
            "groups must differ .* found 30 in both.* rows that both have",
        ),
        ({"sample_weight": (np.ones(60), np.ones(80))}, "sample_weight"),
    ],
)
def test_what_does_not_belong_to_two_samples_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        compare_models(brier_score_loss, (Y_A, Y_B), P_A, P_B, **options)


def test_a_report_names_what_takes_other_samples():
    with pytest.raises(ValueError, match="or two models at a time with compare_models"):
        calibration_report({"a": Y_A, "b": Y_B}, {"a": P_A, "b": P_B})
