"""The sample size for a precision, against the authors' software and by simulation."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from skcalib.hypothesis_tests import sample_size_for_precision
from skcalib.metrics import calibration_slope, decision_curve
from skcalib.uncertainty import confidence_interval

GRID = (np.arange(20_000) + 0.5) / 20_000


def test_numbers_of_the_authors_software():
    # pmvalsampsize 0.2.1 (Whittle and Ensor), which follows Riley et al. (2021):
    # lpbeta=(1.33, 1.75), prevalence=0.43 prints 510 and 2136; with oeciwidth=0.4 and
    # csciwidth=0.3 129 and 950; it rounds the standard error of O:E up to 1e-4, and draws a
    # million log-odds
    proba = stats.beta.ppf(GRID, 1.33, 1.75)
    size = sample_size_for_precision(proba)
    assert size.observed_expected_ratio == pytest.approx(510, rel=0.01)
    assert size.calibration_slope == pytest.approx(2136, rel=0.01)
    assert size.n_samples == size.calibration_slope
    assert size.n_events == pytest.approx(size.n_samples * proba.mean())
    size = sample_size_for_precision(proba, ratio_width=0.4, slope_width=0.3)
    assert size.observed_expected_ratio == pytest.approx(129, rel=0.02)
    assert size.calibration_slope == pytest.approx(950, rel=0.01)
    # lpnormal=(-5, 2.5), prevalence=0.018, oeciwidth=1 prints 905 and 4544
    proba = expit(stats.norm.ppf(GRID, -5, 2.5))
    assert sample_size_for_precision(proba).calibration_slope == pytest.approx(4544, rel=0.01)
    size = sample_size_for_precision(proba, ratio_width=1, prevalence=0.018)
    assert size.observed_expected_ratio == pytest.approx(905, rel=0.002)
    assert size.n_events == pytest.approx(0.018 * size.n_samples)
    # cstatistic=0.8 needs 4252 at this prevalence (its tests/testthat/test_bin.R); as many
    # predictions of q as of 1 - q have the C-statistic q
    size = sample_size_for_precision([0.2, 0.8], prevalence=0.018)
    assert size.area_under_roc_curve == 4252


def test_the_net_benefit_and_the_c_statistic_vary_as_much_as_planned():
    rng = np.random.default_rng(3)
    proba = expit(rng.normal(-1, 1.2, size=3000))
    options = {"threshold": 0.3, "net_benefit_width": 0.3, "auc_width": 0.1}
    size = sample_size_for_precision(proba, **options)
    benefits, areas = [], []
    for _ in range(400):
        p = rng.choice(proba, size.net_benefit)
        y = rng.random(len(p)) < p
        benefits.append(decision_curve(y, p, thresholds=[0.3]).net_benefit_per_event[0])
        p = rng.choice(proba, size.area_under_roc_curve)
        areas.append(roc_auc_score(rng.random(len(p)) < p, p))
    tolerance = 4 / np.sqrt(800)
    assert np.std(benefits) == pytest.approx(0.15 / 1.96, rel=tolerance)
    # Newcombe's variance is an approximation
    assert np.std(areas) == pytest.approx(0.05 / 1.96, rel=tolerance + 0.05)


def test_the_slope_varies_as_much_as_planned():
    rng = np.random.default_rng(0)
    proba = expit(rng.normal(-1, 1.2, size=3000))
    size = sample_size_for_precision(proba, slope_width=0.6)
    slopes = []
    for _ in range(400):
        p = rng.choice(proba, size.calibration_slope)
        slopes.append(calibration_slope(rng.random(len(p)) < p, p))
    # relative standard error of a standard deviation: 1/√800
    assert np.std(slopes) == pytest.approx(0.3 / 1.96, rel=4 / np.sqrt(800))


def test_the_interval_of_the_ratio_is_no_wider_than_planned():
    rng = np.random.default_rng(1)
    proba = expit(rng.normal(-1, 1.2, size=3000))
    size = sample_size_for_precision(proba, ratio_width=0.4)
    p = rng.choice(proba, size.observed_expected_ratio)
    low, high = confidence_interval("observed_expected_ratio", rng.random(len(p)) < p, p)
    assert 0.2 < high - low < 0.4


def test_columns_and_certain_predictions():
    proba = np.array([0.1, 0.3, 0.6])
    expected = sample_size_for_precision(proba)
    assert sample_size_for_precision(np.column_stack([1 - proba, proba])) == expected
    with_zeros = sample_size_for_precision([*proba, 0.0, 0.0, 0.0])
    assert with_zeros.calibration_slope == pytest.approx(2 * expected.calibration_slope, abs=1)


@pytest.mark.parametrize(
    ("proba", "options", "message"),
    [
        ([0.2, 0.2], {}, "y_proba must hold at least two different probabilities"),
        ([0.0, 1.0], {}, "between 0 and 1"),
        (np.full((3, 3), 1 / 3), {}, r"found shape \(3, 3\)"),
        ([], {}, "y_proba"),
        ([0.1, np.nan], {}, "y_proba"),
        ([10, 20], {}, "y_proba"),
        ([0.1, 0.3], {"ratio_width": 0}, "ratio_width"),
        ([0.1, 0.3], {"slope_width": "narrow"}, "slope_width"),
        ([0.1, 0.3], {"confidence_level": 1}, "confidence_level"),
        ([0.1, 0.3], {"prevalence": 1}, "prevalence"),
        ([0.1, 0.3], {"threshold": 0}, "threshold"),
    ],
)
def test_bad_input(proba, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sample_size_for_precision(proba, **options)
