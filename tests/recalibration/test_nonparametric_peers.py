"""Venn-Abers and isotonic recalibration equal probcal and venn-abers, where they are installed."""

import numpy as np
import pytest
from problems import random_problem, two_columns

from skcalib.recalibration import (
    IntervalBinningRecalibrator,
    IsotonicRecalibrator,
    VennAbersRecalibrator,
)

# what the peers warn about is theirs
pytestmark = pytest.mark.filterwarnings("ignore")


def peer(module):
    with np.errstate():  # venn_abers sets it for the whole process
        return pytest.importorskip(module, exc_type=ImportError)


def rounded_problem(decimals=16, n=600):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, n)
    proba = np.round(proba, decimals)
    return label, proba, np.concatenate([proba, rng.random(300), [0, 1]])


@pytest.mark.parametrize("decimals", [2, 16])
def test_venn_abers_of_venn_abers(decimals):
    label, proba, query = rounded_problem(decimals)
    theirs = peer("venn_abers").VennAbers()
    theirs.fit(two_columns(proba), label)
    with np.errstate(all="ignore"):
        merged, interval = theirs.predict_proba(two_columns(query))
    recalibrator = VennAbersRecalibrator().fit(proba, label)
    actual = np.stack(recalibrator.predict_interval(query), axis=-1)
    np.testing.assert_allclose(actual, interval, atol=1e-12)
    np.testing.assert_allclose(recalibrator.predict_proba(query), merged, atol=1e-12)


@pytest.mark.parametrize("decimals", [2, 16])
def test_venn_abers_of_probcal(decimals):
    label, proba, query = rounded_problem(decimals)
    theirs = peer("probcal.vennabers").VennAbersCalibrator().fit(proba, label)
    recalibrator = VennAbersRecalibrator().fit(proba, label)
    interval = theirs.predict_interval(query)
    actual = np.stack(recalibrator.predict_interval(query), axis=-1)
    np.testing.assert_allclose(actual, interval, atol=1e-12)


def test_histogram_binning_of_probcal():
    label, proba, query = rounded_problem()
    theirs = peer("probcal.binning").HistogramBinningCalibrator(10, "width", None)
    theirs.fit(proba, label)
    recalibrator = IntervalBinningRecalibrator("uniform", n_bins=10, pseudo_count=0)
    calibrated = recalibrator.fit(proba, label).predict_proba(query)[:, 1]
    np.testing.assert_allclose(calibrated, theirs.predict_proba(query), atol=1e-12)


def test_isotonic_of_probcal():
    label, proba, _ = rounded_problem(2)
    theirs = peer("probcal.isotonic").IsotonicCalibrator().fit(proba, label)
    fitted = IsotonicRecalibrator(strict=False).fit(proba, label).predict_proba(proba)[:, 1]
    np.testing.assert_allclose(fitted, theirs.predict_proba(proba), atol=1e-12)


def test_centred_isotonic_of_probcal():
    # away from the ends, where two samples more keep ours from 0 and 1
    label, proba, _ = rounded_problem(16, n=5000)
    theirs = peer("probcal.isotonic").CenteredIsotonicCalibrator().fit(proba, label)
    recalibrator = IsotonicRecalibrator().fit(proba, label)
    query = np.linspace(0.3, 0.8, 1000)
    calibrated = recalibrator.predict_proba(query)[:, 1]
    np.testing.assert_allclose(calibrated, theirs.predict_proba(query), atol=1e-12)
