"""Calibration in the large, O:E ratio, intercept and slope."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import random_problem, two_columns
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skcalib.hypothesis_tests import CoxTest
from skcalib.metrics import (
    calibration_in_the_large,
    calibration_intercept,
    calibration_slope,
    observed_expected_ratio,
)

ALL = [calibration_in_the_large, calibration_intercept, calibration_slope, observed_expected_ratio]
each = pytest.mark.parametrize("measure", ALL)

UNCALIBRATED = random_problem(np.random.default_rng(0), 200)
WEIGHT = np.random.default_rng(1).exponential(size=200)


def log_loss(parameters, y, p, weight):
    intercept, slope = parameters
    score = np.where(y == 1, 1, -1) * (intercept + slope * logit(p))
    return weight @ np.logaddexp(0, -score) / weight.sum()


def test_means_by_hand():
    y, p = [0, 1, 1], [0.5, 0.25, 0.75]
    assert calibration_in_the_large(y, p) == pytest.approx(2 / 3 - 1 / 2)
    assert observed_expected_ratio(y, p) == pytest.approx(4 / 3)
    weight = [2, 1, 1]
    assert calibration_in_the_large(y, p, sample_weight=weight) == pytest.approx(0)
    assert observed_expected_ratio(y, p, sample_weight=weight) == pytest.approx(1)


def test_regressions_by_hand():
    # frequencies 1/4 and 3/4 where 1/10 and 9/10 are predicted: log 3 where log 9 is
    y = [1, 0, 0, 0, 1, 1, 1, 0]
    p = np.repeat([0.1, 0.9], 4)
    assert calibration_slope(y, p) == pytest.approx(1 / 2, abs=1e-12)
    assert calibration_intercept(y, p) == pytest.approx(0, abs=1e-12)
    # odds of 3 where 1/4 was predicted
    assert calibration_intercept([1, 1, 1, 0], [0.2] * 4) == pytest.approx(np.log(12))


@pytest.mark.parametrize("weight", [np.ones(200), WEIGHT], ids=["equal", "weighted"])
def test_regressions_equal_a_general_optimiser(weight):
    y, p = UNCALIBRATED
    offset = minimize(lambda a: log_loss([a[0], 1], y, p, weight), [0.0], tol=1e-10)
    intercept = calibration_intercept(y, p, sample_weight=weight)
    assert intercept == pytest.approx(offset.x[0], abs=1e-6)
    line = LogisticRegression(C=np.inf, tol=1e-10).fit(logit(p)[:, None], y, weight)
    slope = calibration_slope(y, p, sample_weight=weight)
    assert slope == pytest.approx(line.coef_[0, 0], abs=1e-5)


def test_the_slope_is_that_of_cox():
    y, p = UNCALIBRATED
    assert calibration_slope(y, p) == pytest.approx(CoxTest().fit(p, y).slope_, abs=1e-12)


def test_what_the_intercept_says():
    y, p = UNCALIBRATED
    moved = expit(logit(p) + calibration_intercept(y, p))
    assert calibration_in_the_large(y, moved) == pytest.approx(0, abs=1e-12)
    assert calibration_intercept(y, moved) == pytest.approx(0, abs=1e-12)
    assert calibration_slope(y, moved) == pytest.approx(calibration_slope(y, p))


def test_intercepts_of_extreme_predictions():
    p = np.array([0.0, 1e-300, 1e-12, 0.5, 1.0])
    intercept = calibration_intercept([1, 0, 0, 1, 1], p)
    clipped = np.clip(p, 2.0**-52, 1 - 2.0**-52)
    assert expit(logit(clipped) + intercept).sum() == pytest.approx(3)


@each
def test_the_positive_class(measure):
    y, p = UNCALIBRATED
    expected = measure(y, p)
    assert measure(y, two_columns(p)) == pytest.approx(expected, abs=1e-9)
    names = np.array(["well", "ill"])[y]
    assert measure(names, p, pos_label="ill") == expected
    assert measure(names, p, labels=["well", "ill"]) == expected
    order = np.random.default_rng(2).permutation(len(y))
    assert measure(y[order], p[order]) == pytest.approx(expected, abs=1e-12)
    repeated = measure(np.repeat(y, 2), np.repeat(p, 2))
    assert repeated == pytest.approx(expected, abs=1e-12)
    doubled = measure(y, p, sample_weight=np.full(len(y), 2))
    assert doubled == pytest.approx(expected, abs=1e-12)


def test_the_other_class():
    y, p = UNCALIBRATED
    for measure, sign in ((calibration_in_the_large, -1), (calibration_intercept, -1)):
        assert measure(1 - y, 1 - p) == pytest.approx(sign * measure(y, p), abs=1e-9)
    assert calibration_slope(1 - y, 1 - p) == pytest.approx(calibration_slope(y, p), abs=1e-9)


# Limits


def test_one_outcome():
    p = [0.2, 0.5, 0.6]
    for outcome, sign in ((1, 1), (0, -1)):
        y = [outcome] * 3
        assert calibration_intercept(y, p) == sign * np.inf
        assert np.isnan(calibration_slope(y, p))


@pytest.mark.parametrize(
    ("y", "slope"),
    [
        ([0, 0, 1, 1], np.inf),
        ([0, 1, 0, 1], np.inf),  # tied at the threshold
        ([1, 1, 0, 0], -np.inf),
        ([1, 0, 1, 0], -np.inf),
    ],
)
def test_separated_outcomes(y, slope):
    assert calibration_slope(y, [0.1, 0.5, 0.5, 0.7]) == slope


def test_equal_predictions_have_no_slope():
    assert np.isnan(calibration_slope([0, 1, 1], [0.3] * 3))


def test_no_expected_events():
    assert observed_expected_ratio([0, 1], [0.0, 0.0]) == np.inf
    assert np.isnan(observed_expected_ratio([0, 0], [0.0, 0.0], labels=[0, 1]))


@each
def test_more_than_two_classes_are_refused(measure):
    message = "y_proba must be about two classes; found 3 columns. For one class c against the rest"
    with pytest.raises(ValueError, match=message):
        measure([0, 1, 2], np.eye(3))


@each
@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([0, 1], [0.5, 1.5], r"\[0, 1\]"),
        ([0, 1], [0.5], "length|same number|inconsistent"),
        ([0, 1], [0.5, np.nan], "NaN"),
    ],
)
def test_bad_input(measure, y, p, message):
    with pytest.raises(ValueError, match=message):
        measure(y, p)


def test_without_convergence_there_is_a_warning(monkeypatch):
    monkeypatch.setattr("skcalib.metrics._clinical._MAX_CLINICAL_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 steps"):
        calibration_slope(*UNCALIBRATED)


def test_weights_by_the_probability_of_observation_undo_censoring():
    """The model is right; means of 20 samples lie within five standard errors of 1, 0 and 1."""
    measures = [observed_expected_ratio, calibration_intercept, calibration_slope]
    rng, n, values = np.random.default_rng(0), 1000, []
    for _ in range(20):
        risk = expit(rng.normal(-1, 1, size=n))
        event, end = rng.exponential(-1 / np.log1p(-risk)), rng.uniform(0, 1.5, size=n)
        time, is_censored = np.minimum(event, end), end < event
        order = np.argsort(time)
        stays = np.cumprod(1 - is_censored[order] / np.arange(n, 0, -1))
        before = np.searchsorted(time[order], np.minimum(time, 1))
        is_known = ~is_censored | (end > 1)
        weight = is_known / np.r_[1, stays][before]
        values.append([measure(event <= 1, risk, sample_weight=weight) for measure in measures])
    error = np.std(values, axis=0, ddof=1) / np.sqrt(20)
    assert_allclose(np.mean(values, axis=0) / error, [1, 0, 1] / error, atol=5)
    dropped = observed_expected_ratio(event[is_known] <= 1, risk[is_known])
    assert dropped > 1.2
