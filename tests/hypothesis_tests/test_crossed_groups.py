"""Tests of samples with two columns of groups, such as patients and readers."""

import numpy as np
import pytest
from scipy.stats import norm

from skcalib._data import check_forecasts, check_predictions, with_groups
from skcalib._inputs.drawing import _draw_coupled
from skcalib._numerics.dependence import UnitSums
from skcalib._numerics.pit import normal_scores
from skcalib.forecasts import GaussianForecast
from skcalib.hypothesis_tests import (
    CalibrationTest,
    RatingGradeTest,
    SubgroupCalibrationTest,
    find_miscalibrated_subgroups,
)
from skcalib.uncertainty import confidence_interval

N_PATIENTS, N_READERS = 30, 12
PATIENT = np.repeat(np.arange(N_PATIENTS), N_READERS)
READER = np.tile(np.arange(N_READERS), N_PATIENTS)
GROUPS = np.column_stack([PATIENT, READER])


def scores(rng, patient_share, reader_share):
    """Normal numbers (n,) with common parts of these shares of the variance."""
    single = np.sqrt(1 - patient_share - reader_share) * rng.standard_normal(len(PATIENT))
    patient = np.sqrt(patient_share) * rng.standard_normal(N_PATIENTS)[PATIENT]
    return patient + np.sqrt(reader_share) * rng.standard_normal(N_READERS)[READER] + single


def labelled(seed, patient_share, reader_share):
    """Calibrated probabilities and labels."""
    rng = np.random.default_rng(seed)
    proba = rng.beta(1, 4, len(PATIENT))
    return proba, (norm.cdf(scores(rng, patient_share, reader_share)) < proba).astype(int)


def mean_products(residual, code):
    """The mean product (R,) of the residuals (R, n) of two samples of a group."""
    sums = np.stack([np.bincount(code, row) for row in residual])
    size = np.bincount(code)
    pairs = np.sum(size * (size - 1))
    return (np.sum(sums**2, axis=1) - np.sum(residual**2, axis=1)) / pairs


@pytest.mark.parametrize("dependence", [(0.0, 0.0), (0.3, 0.0), (0.0, 0.4), (0.3, 0.2), (0.4, 0.4)])
def test_labels_of_either_column_follow_one_number_as_often_as_it_says(dependence):
    proba = np.tile([0.7, 0.3], (len(PATIENT), 1))
    given = [np.full(size, share) for size, share in zip((30, 12), dependence, strict=True)]
    label = _draw_coupled(proba, [PATIENT, READER], given, 4000, np.random.default_rng(0))
    residual = label.T - 0.3
    assert abs(residual.mean()) < 4 * 0.46 / np.sqrt(4000 * 5)  # 12 readers count little more
    for code, share in zip((PATIENT, READER), dependence, strict=True):
        correlation = mean_products(residual, code) / 0.21
        error = correlation.std() / np.sqrt(4000)
        # two groups of 0.4 leave each other too little room: 0.36 remain of the first one
        expected = 0.36 if dependence == (0.4, 0.4) and code is PATIENT else share
        assert abs(correlation.mean() - expected) < 4 * error
    assert error < 0.01


def test_levels_of_forecasts_go_together_in_both_columns():
    z = scores(np.random.default_rng(1), 0.3, 0.3)
    forecast = GaussianForecast(np.zeros(len(z)), 1.0)
    data = with_groups(check_forecasts(z, forecast), z, GROUPS, None)
    draws = data.simulate_outcomes(np.random.default_rng(2), 4000)
    assert abs(np.mean(draws**2) - 1) < 0.05
    score = normal_scores(*forecast.pit_bounds(z))[0]
    for code in (PATIENT, READER):
        units = UnitSums(data.weight, code)
        share = units.dependence(data.weight * score, data.weight * np.sqrt(np.mean(score**2)))
        correlation = mean_products(draws, code)
        assert share[0] > 0.15
        assert abs(correlation.mean() - share[0]) < 4 * correlation.std() / np.sqrt(4000)


def test_a_second_column_without_dependence_changes_little():
    proba, y = labelled(3, 0.5, 0.0)
    alone, crossed = (
        CalibrationTest(n_resamples=1999, random_state=0).fit(proba, y, groups=groups).p_value_
        for groups in (PATIENT, GROUPS)
    )
    assert crossed == pytest.approx(alone, abs=0.15)


# 9 of 12 readers say always yes, the others no: signs of readers exceed 6 in 299 of 2048 cases
ALWAYS = np.full(len(PATIENT), 0.5), (READER < 9).astype(int)


@pytest.mark.parametrize("columns", [[0, 1], [1, 0]])
def test_the_p_value_is_not_less_than_that_of_signs_of_either_column(columns):
    patient, reader, both = (
        CalibrationTest(random_state=0).fit(*ALWAYS, groups=groups).p_value_
        for groups in (PATIENT, READER, GROUPS[:, columns])
    )
    assert patient < 0.01 < 0.1 < reader
    assert both > 299 / 2048 - 4 * np.sqrt(0.15 * 0.85 / 999)


def reject_rate(fit, shares, n_repetitions, seed):
    p_values = [fit(*labelled([seed, r], *shares)) for r in range(n_repetitions)]
    return np.mean(np.array(p_values) <= 0.05)


def fit_test(groups, test=CalibrationTest, **by):
    return lambda proba, y: (
        test(n_resamples=99, random_state=0).fit(proba, y, groups=groups, **by).p_value_
    )


@pytest.mark.slow
@pytest.mark.parametrize("shares", [(0.2, 0.2), (0.1, 0.4), (0.4, 0.1), (0.0, 0.0)])
def test_calibrated_predictions_are_rejected_no_more_often_than_promised(shares):
    # 0.05 of 200 have the standard error 0.015
    assert reject_rate(fit_test(GROUPS), shares, 200, 0) < 0.05 + 3 * 0.016


@pytest.mark.slow
def test_one_column_alone_is_rejected_too_often():
    assert reject_rate(fit_test(PATIENT), (0.1, 0.4), 100, 0) > 0.2


@pytest.mark.slow
def test_subgroups_of_calibrated_predictions_are_rejected_no_more_often_than_promised():
    by = np.random.default_rng(5).integers(3, size=len(PATIENT))
    fit = fit_test(GROUPS, SubgroupCalibrationTest, by=by)
    assert reject_rate(fit, (0.1, 0.4), 100, 1) < 0.05 + 3 * 0.022


def test_a_wrong_model_is_still_found():
    rng = np.random.default_rng(0)
    proba, y = labelled(rng, 0.1, 0.1)
    wrong = proba**2
    assert CalibrationTest(random_state=0).fit(wrong, y, groups=GROUPS).p_value_ < 0.05
    column = rng.random(len(y))
    found = find_miscalibrated_subgroups(
        y, np.where(column > 0.5, wrong, proba), {"c": column}, groups=GROUPS, random_state=0
    )
    assert 0 < found.p_value <= 1


def test_draws_of_an_interval_follow_both_columns():
    # with the readers' dependence left out, the error would exceed 0
    proba, y = ALWAYS
    options = {"n_resamples": 99, "random_state": 0}
    rows = np.random.default_rng(0).permutation(len(y))  # neighbours are compared
    by_patient, by_both = (
        confidence_interval("expected_calibration_error", y[rows], proba, groups=code, **options)
        for code in (PATIENT[rows], GROUPS[rows])
    )
    assert by_patient.estimate == pytest.approx(0.25)
    assert by_patient.low > by_both.low == 0


def test_codes_of_both_columns_are_those_of_their_crossings():
    groups = np.array([[0, 1], [1, 0], [0, 1], [0, 0]])
    units = UnitSums(np.full(4, 0.25), groups)
    np.testing.assert_array_equal(units.code, [0, 1, 0, 2])
    some = np.array([[1, 12], [2, 8], [50, 60], [70, 80]])  # the codes of a few rows of many
    assert UnitSums(np.full(4, 0.25), some).number == 4


def test_more_columns_and_grades_are_refused():
    proba, y = labelled(0, 0.0, 0.0)
    with pytest.raises(ValueError, match="one column, or two that cross each other"):
        CalibrationTest().fit(proba, y, groups=np.column_stack([GROUPS, READER]))
    grades = np.arange(len(y)) % 3
    with pytest.raises(ValueError, match="Pass one column: the one within whose groups"):
        RatingGradeTest().fit(np.array([0.1, 0.2, 0.3])[grades], y, groups=GROUPS)


def test_crossed_groups_are_checked_data():
    proba, y = labelled(0, 0.0, 0.0)
    data = with_groups(check_predictions(y, proba), y, GROUPS.astype(str), None)
    assert data.groups.shape == GROUPS.shape
