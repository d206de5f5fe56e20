"""Two models that are right on different questions, paired by question."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import brier_score_loss

from skcalib.metrics import smooth_calibration_error
from skcalib.report import calibration_report
from skcalib.uncertainty import compare_models
from skcalib.uncertainty._measured import MeasuredModels, check_predicted

FAST = {"n_resamples": 39, "random_state": 0}


def questions(n, seed, correlation=0.7, stretch=(0.0, 0.0)):
    """Right answers and stated confidences of two models, dependent through the question."""
    rng = np.random.default_rng(seed)
    covariance = [[1, correlation], [correlation, 1]]
    normal = stats.norm.cdf(rng.multivariate_normal([0, 0], covariance, size=n))
    risk = 0.5 + 0.45 * stats.norm.cdf(rng.multivariate_normal([0, 0], covariance, size=n))
    right = (normal < risk).T.astype(int)
    confidence = risk.T + np.array(stretch)[:, None] * (1 - risk.T)
    return right, confidence


RIGHT, CONFIDENCE = questions(120, 0)


def brier(y_true, y_proba):
    return float(np.mean((y_true - y_proba) ** 2))


def test_a_mean_loss_has_the_paired_t_test():
    result = compare_models(brier_score_loss, tuple(RIGHT), *CONFIDENCE)
    losses = (RIGHT - CONFIDENCE) ** 2
    expected = stats.ttest_rel(*losses)
    assert result.difference == pytest.approx(losses[0].mean() - losses[1].mean())
    assert result.p_value == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert [*result] == pytest.approx([interval.low, interval.high])


def test_each_model_is_measured_on_its_own_outcomes():
    result = compare_models("smooth_calibration_error", tuple(RIGHT), *CONFIDENCE, **FAST)
    assert result.estimate_a == smooth_calibration_error(RIGHT[0], CONFIDENCE[0])
    assert result.estimate_b == smooth_calibration_error(RIGHT[1], CONFIDENCE[1])
    mirrored = compare_models(
        "smooth_calibration_error", tuple(RIGHT[::-1]), *CONFIDENCE[::-1], **FAST
    )
    assert mirrored.difference == pytest.approx(-result.difference)
    assert mirrored.p_value == pytest.approx(result.p_value)


def test_a_list_of_two_is_a_tuple_of_two():
    expected = compare_models(brier_score_loss, tuple(RIGHT), *CONFIDENCE)
    assert compare_models(brier_score_loss, list(RIGHT), *CONFIDENCE) == expected


def test_equal_outcomes_are_shared_ones():
    options = {"n_resamples": 99, "random_state": 0}
    twice = compare_models(
        "smooth_calibration_error", (RIGHT[0], RIGHT[0].copy()), *CONFIDENCE, **options
    )
    shared = compare_models("smooth_calibration_error", RIGHT[0], *CONFIDENCE, **options)
    assert twice == shared


def test_groups_of_questions():
    right, confidence = questions(600, 1)
    losses = ((right - confidence) ** 2).reshape(2, 150, 4).mean(axis=2)
    groups = np.arange(600) // 4
    result = compare_models(brier_score_loss, tuple(right), *confidence, groups=groups)
    assert result.p_value == pytest.approx(stats.ttest_rel(*losses).pvalue)


def test_only_the_outcomes_of_one_model_are_moved():
    data = {"sample_weight": None, "labels": None, "given": None, "groups": None}
    probas = dict(zip("ab", CONFIDENCE, strict=True))
    outcomes = dict(zip(["y[0]", "y[1]"], RIGHT, strict=True))
    measured = MeasuredModels.make(brier, None, **check_predicted(probas, None, outcomes, **data))
    before = measured.values()
    after = measured.with_outcome(1 - RIGHT[1], 1).values()
    assert after[0] == before[0]
    assert after[1] == pytest.approx(brier(1 - RIGHT[1], CONFIDENCE[1]))


def test_few_wrong_answers_of_one_model_widen_the_interval():
    # model B was always right: its Brier score may be up to 0.03, the bound of Clopper and Pearson
    right = np.array([np.arange(120) % 5 < 3, np.ones(120)]).astype(int)
    confidence = np.array([np.full(120, 0.6), np.full(120, 0.99)])
    result = compare_models(brier_score_loss, tuple(right), *confidence)
    plain = stats.ttest_rel(*((right - confidence) ** 2)).confidence_interval(0.95)
    assert result.low < plain.low - 0.005
    assert result.high == pytest.approx(plain.high)


def test_the_report_of_two_models():
    names = ["north", "south"]
    y_true = dict(zip(names, RIGHT, strict=True))
    y_proba = dict(zip(names, CONFIDENCE, strict=True))
    report = calibration_report(y_true, y_proba, random_state=0)
    for name in names:
        alone = calibration_report(y_true[name], y_proba[name], random_state=0)
        assert report.reports[name].numbers == alone.numbers
    changes = {change["measure"]: change for change in report.changes}
    losses = (RIGHT - CONFIDENCE) ** 2
    brier_change = changes["brier_score_loss"]
    assert brier_change["difference"] == pytest.approx(np.diff(losses.mean(axis=1))[0])
    interval = stats.ttest_rel(*losses[::-1]).confidence_interval(0.95)
    assert brier_change["low"] == pytest.approx(interval.low)
    assert brier_change["high"] == pytest.approx(interval.high)


@pytest.mark.parametrize(
    ("y_true", "message"),
    [
        ((RIGHT[0], RIGHT[1][:-1]), r"y_true\[0\] and y_true\[1\] must have the same length"),
        ((RIGHT[0][:-1], RIGHT[1][:-1]), r"y_true\[0\] and y_pred_a must have the same length"),
        ((RIGHT[0], CONFIDENCE[1]), r"y_true\[1\]"),
        ((RIGHT[0], RIGHT[1], RIGHT[1]), "y_true must be 1-D"),
        ((RIGHT[0], RIGHT[1] + 1), r"y_true\[1\]"),
    ],
)
def test_bad_outcomes(y_true, message):
    with pytest.raises(ValueError, match=message):
        compare_models("smooth_calibration_error", y_true, *CONFIDENCE, **FAST)


@pytest.mark.parametrize("y_proba", [CONFIDENCE[0], {"other": CONFIDENCE[0]}])
def test_bad_outcomes_of_the_report(y_proba):
    with pytest.raises(ValueError, match="y_true must be a dict only if y_pred is one with the"):
        calibration_report({"model": RIGHT[0]}, y_proba)


def test_a_missing_confidence_is_refused_with_the_remedy():
    confidence = [None, *CONFIDENCE[0][1:]]
    with pytest.raises(ValueError, match=r"found None in 1 of 120 places. Leave out these rows"):
        smooth_calibration_error(RIGHT[0], confidence)
    with pytest.raises(ValueError, match=r"y_pred_a .* found nan .* in row 0"):
        compare_models(
            brier_score_loss, tuple(RIGHT), np.array(confidence, dtype=float), CONFIDENCE[1]
        )


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 1000])
def test_size_and_power_with_dependent_outcomes(n):
    rejected = {0.0: 0, 0.5: 0}
    for seed in range(100):
        for stretch in rejected:
            right, confidence = questions(n, seed, stretch=(stretch, 0.0))
            result = compare_models(
                "smooth_calibration_error",
                tuple(right),
                *confidence,
                n_resamples=79,
                random_state=0,
            )
            rejected[stretch] += result.p_value <= 0.05
    assert rejected[0.0] <= 5 + 4 * np.sqrt(100 * 0.05 * 0.95)
    assert rejected[0.5] >= 80
