"""Errors, curves, decompositions and isotonic maps are those of calibre 0.14."""

import sys

import numpy as np
import pytest
from problems import random_problem

from skcalib.metrics import expected_calibration_error, reliability_curve, score_decomposition
from skcalib.recalibration import IsotonicRecalibrator

if sys.version_info < (3, 12):
    pytest.skip("calibre 0.14 needs Python 3.12", allow_module_level=True)
calibre = pytest.importorskip("calibre", minversion="0.14", exc_type=ImportError)

# the peer's own warnings say nothing about skcalib
pytestmark = pytest.mark.filterwarnings("ignore")


def problem(decimals=16, n=600):
    outcome, proba = random_problem(np.random.default_rng(0), n, calibrated=True)
    return outcome, np.round(proba, decimals)


def close(value):
    return pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("n_bins", [5, 10, 15])
def test_binned_errors(n_bins):
    y, p = problem()
    bins = {"n_bins": n_bins}
    uniform, mass = bins | {"strategy": "uniform"}, bins | {"strategy": "quantile"}
    error = expected_calibration_error
    assert error(y, p, **uniform) == close(calibre.expected_calibration_error(y, p, **bins))
    largest = calibre.maximum_calibration_error(y, p, **bins)
    assert error(y, p, norm="max", **uniform) == close(largest)
    # 5, 10 and 15 divide 600: packages differ in where they put the samples that remain
    for norm in (1, 2):
        theirs = calibre.plugin_calibration_error(y, p, norm=norm, **bins)
        assert error(y, p, norm=f"l{norm}", **mass) == close(theirs)


@pytest.mark.parametrize("n_bins", [5, 10, 15])
def test_debiased_error(n_bins):
    y, p = problem()
    y = 1 - y  # far from calibrated
    options = {"norm": "l2", "estimation": "debiased", "strategy": "quantile"}
    theirs = calibre.debiased_calibration_error(y, p, n_bins=n_bins)
    assert theirs > 0.1
    assert expected_calibration_error(y, p, n_bins=n_bins, **options) == close(theirs)


@pytest.mark.parametrize("decimals", [1, 16])
@pytest.mark.parametrize("weighted", [False, True])
def test_curve_and_decomposition(weighted, decimals):
    y, p = problem(decimals)
    p = np.clip(p, 0.05, 0.95)
    weight = np.random.default_rng(2).integers(1, 5, size=len(y)) if weighted else None
    theirs = calibre.corp_reliability(y, p, sample_weight=weight)
    fitted = IsotonicRecalibrator(strict=False).fit(p, y, sample_weight=weight)
    ours = fitted.predict_proba(theirs.prediction_values)[:, 1]
    np.testing.assert_allclose(ours, theirs.event_probabilities, rtol=0, atol=1e-12)
    for score, name in (("brier", "brier"), ("log_loss", "log")):
        parts = calibre.score_decomposition(y, p, score=name, sample_weight=weight)
        decomposition = score_decomposition(y, p, score=score, sample_weight=weight)
        for part in ("miscalibration", "discrimination", "uncertainty"):
            assert getattr(decomposition, part) == close(parts[part])


def test_consistency_bands():
    # both are quantiles of curves of drawn outcomes; theirs draws the predictions as well
    y, p = problem(1)
    band = reliability_curve(y, p, n_resamples=1000, random_state=0).band
    theirs = calibre.consistency_bands(p, level=band.confidence_level, n_resamples=1000)
    for side in ("lower", "upper"):
        ours = np.interp(theirs["prediction_values"], band.positions, getattr(band, side))
        np.testing.assert_allclose(ours, theirs[side], rtol=0, atol=0.025)


@pytest.mark.parametrize("decimals", [2, 16])
def test_isotonic_maps(decimals):
    y, p = problem(decimals)
    query = np.linspace(0, 1, 101)
    fitted = IsotonicRecalibrator(strict=False).fit(p, y).predict_proba(query)[:, 1]
    for peer in (calibre.IsotonicCalibrator(), calibre.RelaxedPAVACalibrator(0.0)):
        np.testing.assert_allclose(fitted, peer.fit(p, y).transform(query), rtol=0, atol=1e-12)
    # away from the ends, where two samples more keep ours from 0 and 1
    y, p = problem(decimals, n=5000)
    query = np.linspace(0.3, 0.8, 101)
    fitted = IsotonicRecalibrator().fit(p, y).predict_proba(query)[:, 1]
    theirs = calibre.CenteredIsotonicCalibrator().fit(p, y).transform(query)
    np.testing.assert_allclose(fitted, theirs, rtol=0, atol=1e-12)
