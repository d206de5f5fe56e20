"""Two models that are right on different questions, paired by question."""

import numpy as np
import pytest
from oracles import change_without_groups, student_by_hand
from scipy import stats
from sklearn.metrics import brier_score_loss

from skcalib.metrics import smooth_calibration_error
from skcalib.report import _sections, calibration_report
from skcalib.uncertainty import compare_models
from skcalib.uncertainty._limits import StudentLimits

FAST = {"n_resamples": 39, "random_state": 0}


def questions(n, seed, correlation=0.7):
    """Right answers and stated confidences of two models, dependent through the question."""
    rng = np.random.default_rng(seed)
    covariance = [[1, correlation], [correlation, 1]]
    normal = stats.norm.cdf(rng.multivariate_normal([0, 0], covariance, size=n))
    risk = 0.5 + 0.45 * stats.norm.cdf(rng.multivariate_normal([0, 0], covariance, size=n))
    right = (normal < risk).T.astype(int)
    return right, risk.T


RIGHT, CONFIDENCE = questions(120, 0)


def brier(y_true, y_proba):
    return float(np.mean((y_true - y_proba) ** 2))


def test_a_mean_loss_has_paired_differences():
    result = compare_models(brier_score_loss, tuple(RIGHT), *CONFIDENCE)
    losses = (RIGHT - CONFIDENCE) ** 2
    changes = change_without_groups(losses[0] - losses[1], np.ones(120), np.arange(120))
    student = StudentLimits(*student_by_hand(losses[0].mean() - losses[1].mean(), changes, 120))
    assert result.difference == pytest.approx(student.estimate)
    assert result.p_value == pytest.approx(2 * min(student.tails(0.0)), rel=1e-9)
    assert [*result] == pytest.approx(student.ends(0.025), rel=1e-9)
    assert result.p_value == pytest.approx(stats.ttest_rel(*losses).pvalue, abs=0.01)


def test_each_model_is_measured_on_its_own_outcomes():
    result = compare_models("smooth_calibration_error", tuple(RIGHT), *CONFIDENCE, **FAST)
    assert result.estimate_a == smooth_calibration_error(RIGHT[0], CONFIDENCE[0])
    assert result.estimate_b == smooth_calibration_error(RIGHT[1], CONFIDENCE[1])
    mirrored = compare_models(
        "smooth_calibration_error", tuple(RIGHT[::-1]), *CONFIDENCE[::-1], **FAST
    )  # there is no world in the middle, whose coin would be another
    assert mirrored.difference == pytest.approx(-result.difference)
    assert [*mirrored] == pytest.approx([-result.high, -result.low], rel=1e-9)
    assert mirrored.p_value == pytest.approx(result.p_value)


def test_a_list_of_two_is_a_tuple_of_two():
    expected = compare_models(brier_score_loss, tuple(RIGHT), *CONFIDENCE)
    assert compare_models(brier_score_loss, list(RIGHT), *CONFIDENCE) == expected


def test_equal_outcomes_are_shared_ones():
    options = {"n_resamples": 19, "random_state": 0}
    twice = compare_models(
        "expected_calibration_error", (RIGHT[0], RIGHT[0].copy()), *CONFIDENCE, **options
    )
    shared = compare_models("expected_calibration_error", RIGHT[0], *CONFIDENCE, **options)
    assert twice.difference == shared.difference
    assert shared.low <= twice.low  # it has the worlds of both models, too
    assert shared.high >= twice.high


def test_groups_of_questions():
    right, confidence = questions(600, 1)
    losses = (right - confidence) ** 2
    groups = np.arange(600) // 4
    result = compare_models(brier_score_loss, tuple(right), *confidence, groups=groups)
    changes = change_without_groups(losses[0] - losses[1], np.ones(600), groups)
    student = StudentLimits(*student_by_hand(result.difference, changes, 150))
    assert result.p_value == pytest.approx(2 * min(student.tails(0.0)), rel=1e-9)


def test_the_report_of_two_models(monkeypatch):
    monkeypatch.setitem(_sections.DRAWING, "n_resamples", 9)
    monkeypatch.setattr(_sections.Sections, "gain", lambda _: None)
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
    expected = compare_models(brier_score_loss, tuple(RIGHT[::-1]), *CONFIDENCE[::-1])
    assert (brier_change["low"], brier_change["high"]) == pytest.approx([*expected])


@pytest.mark.parametrize(
    ("y_true", "message"),
    [
        (
            (RIGHT[0], RIGHT[1][:-1]),
            r"y_true\[1\] and y_pred_b must have the same length",
        ),
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
    with pytest.raises(ValueError, match=r"\(None, NaN .* 1 such .*\. Leave out these rows"):
        smooth_calibration_error(RIGHT[0], confidence)
    with pytest.raises(ValueError, match=r"y_pred_a .* found nan .* in row 0"):
        compare_models(
            brier_score_loss, tuple(RIGHT), np.array(confidence, dtype=float), CONFIDENCE[1]
        )
