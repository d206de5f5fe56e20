"""The classical tests equal those of probcal and mapie, where they are installed."""

from functools import partial

import numpy as np
import pytest
from problems import random_problem
from scipy.special import expit

from skcalib import hypothesis_tests

SpiegelhalterTest = partial(hypothesis_tests.SpiegelhalterTest, method="asymptotic")
HosmerLemeshowTest = partial(hypothesis_tests.HosmerLemeshowTest, method="asymptotic")
CoxTest = partial(hypothesis_tests.CoxTest, method="asymptotic")

# what the peers warn about is theirs
pytestmark = pytest.mark.filterwarnings("ignore")


def peer(module):
    return pytest.importorskip(module, exc_type=ImportError)


def weighted_problem(calibrated=True):
    label, proba = random_problem(np.random.default_rng(0), 600, calibrated=calibrated)
    return label, proba, np.random.default_rng(1).exponential(size=600)


def close(value, tolerance=1e-10):
    return pytest.approx(value, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("calibrated", [False, True])
def test_spiegelhalter_of_probcal(calibrated, weighted):
    label, proba, weight = weighted_problem(calibrated)
    weight = weight if weighted else None
    theirs = peer("probcal.metrics").spiegelhalter_z(label, proba, sample_weight=weight)
    test = SpiegelhalterTest().fit(proba, label, sample_weight=weight)
    assert test.statistic_ == close(theirs.z)
    assert test.p_value_ == close(theirs.p_value)


@pytest.mark.parametrize(("n_bins", "ddof"), [(1, 0), (5, 0), (10, 0), (5, 2), (10, 2)])
def test_hosmer_lemeshow_of_probcal(n_bins, ddof):
    label, proba, _ = weighted_problem()
    theirs = peer("probcal.metrics").hosmer_lemeshow(label, proba, n_bins=n_bins, ddof=ddof)
    test = HosmerLemeshowTest(n_bins, ddof=ddof).fit(proba, label)
    assert test.statistic_ == close(theirs.statistic)
    assert test.degrees_of_freedom_ == theirs.df
    assert test.p_value_ == close(theirs.p_value)


def test_weighted_hosmer_lemeshow_of_probcal():
    # its groups have equal numbers of samples, so only one group is the same
    label, proba, weight = weighted_problem()
    metrics = peer("probcal.metrics")
    theirs = metrics.hosmer_lemeshow(label, proba, n_bins=1, sample_weight=weight)
    test = HosmerLemeshowTest(1).fit(proba, label, sample_weight=weight)
    assert test.statistic_ == close(theirs.statistic)


@pytest.mark.parametrize("calibrated", [False, True])
def test_cox_of_probcal(calibrated):
    label, proba, _ = weighted_problem(calibrated)
    theirs = peer("probcal.metrics").calibration_test(label, proba)
    test = CoxTest().fit(proba, label)
    assert test.slope_ == close(theirs.slope, 1e-7)
    assert test.intercept_ == close(theirs.intercept, 1e-7)
    assert test.statistic_ == close(theirs.statistic, 1e-8)
    assert test.p_value_ == close(theirs.p_value, 1e-8)


def test_weighted_cox_of_probcal():
    # it fits a chi-squared distribution to the first two moments of the sum of two squares
    label, proba, weight = weighted_problem()
    theirs = peer("probcal.metrics").calibration_test(label, proba, sample_weight=weight)
    test = CoxTest().fit(proba, label, sample_weight=weight)
    assert test.slope_ == close(theirs.slope, 1e-7)
    assert test.intercept_ == close(theirs.intercept, 1e-7)
    assert test.statistic_ == close(theirs.statistic * 2 / theirs.df, 1e-8)
    assert test.p_value_ == pytest.approx(theirs.p_value, abs=0.01)


def test_spiegelhalter_of_mapie_is_one_sided():
    metrics = peer("mapie.metrics.calibration")
    rng = np.random.default_rng(0)
    logits = rng.normal(size=1000)
    label = (rng.random(1000) < expit(3 * logits)).astype(int)  # underconfident
    test = SpiegelhalterTest().fit(expit(logits), label)
    theirs = metrics.spiegelhalter_statistic(label, expit(logits))
    assert test.statistic_ == close(theirs)
    assert test.statistic_ < -5
    assert metrics.spiegelhalter_p_value(label, expit(logits)) > 0.99
    assert test.p_value_ < 1e-6
