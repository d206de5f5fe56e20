"""The integrated calibration index, E50, E90 and Emax."""

import numpy as np
import pytest
from oracles import loess
from problems import random_problem

from skcalib.metrics import integrated_calibration_index
from skcalib.metrics._clinical import _weighted_quantiles


def test_equal_predictions():
    y, p = [0, 1, 1, 1], [0.5] * 4
    for quantile in (None, 0, 0.5, 0.9, 1):  # the curve is 3/4 everywhere
        assert integrated_calibration_index(y, p, quantile=quantile) == pytest.approx(0.25)
    weighted = integrated_calibration_index(y, p, sample_weight=[3, 1, 1, 1])
    assert weighted == pytest.approx(0)


def test_two_predictions():
    # observed frequencies 0.1 and 0.6: gaps of 0.1 for six of ten samples, 0.2 for the others
    p = np.repeat([0.2, 0.8], [60, 40])
    y = np.r_[np.arange(60) % 10 == 0, np.arange(40) % 5 < 3]
    index = {q: integrated_calibration_index(y, p, quantile=q) for q in (None, 0.5, 0.9, 1.0)}
    assert index == pytest.approx({None: 0.14, 0.5: 0.1, 0.9: 0.2, 1.0: 0.2}, abs=1e-4)


def test_numbers_of_r_code():
    """Those of Austin and Steyerberg (2019), with the same Fortran code and the quantiles of R."""
    peer = pytest.importorskip("skmisc.loess", exc_type=ImportError)
    y, p = random_problem(np.random.default_rng(0), 400)
    theirs = peer.loess(p, y, span=0.75, degree=2)
    theirs.fit()
    gap = np.abs(np.clip(theirs.outputs.fitted_values, 0, 1) - p)
    expected = {None: gap.mean(), 0.5: np.median(gap), 0.9: np.quantile(gap, 0.9), 1.0: gap.max()}
    index = {q: integrated_calibration_index(y, p, quantile=q) for q in expected}
    assert index == pytest.approx(expected, abs=1e-11)


def test_the_curve_is_cut_off_at_0_and_1():
    p = np.linspace(0, 1, 50)
    steep = (p > 0.5).astype(int)
    curve = loess(p, steep, np.ones(50))
    assert curve.min() < -0.01
    assert curve.max() > 1.01
    expected = np.mean(np.abs(np.minimum(np.maximum(curve, 0), 1) - p))
    assert integrated_calibration_index(steep, p) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("level", [0.0, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("n", [1, 2, 10, 33])
def test_quantiles_of_equal_weights_are_those_of_numpy(n, level):
    values = np.round(np.random.default_rng(n).random(n), 1)
    actual = _weighted_quantiles(values, np.full(n, 1 / n), [level])[0]
    assert actual == pytest.approx(np.quantile(values, level), abs=1e-12)


def test_quantiles_with_weights():
    # at the centres 1/8, 3/8 and 3/4 of the weights; the middle of 1/8 and 3/4 is 7/16
    values, weight = np.array([2.0, 0.0, 1.0]), np.array([0.5, 0.25, 0.25])
    assert _weighted_quantiles(values, weight, [0.5]) == pytest.approx([1 + 1 / 6])


@pytest.mark.parametrize("is_weighted", [False, True])
def test_distances_are_those_of_the_curve_at_each_sample(is_weighted):
    y, p = random_problem(np.random.default_rng(4), 150)
    p = p.round(2)
    weight = np.random.default_rng(5).random(150) if is_weighted else np.ones(150)
    gap = np.abs(np.clip(loess(p, y, weight), 0, 1) - p)
    data = {"y_true": y, "y_proba": p, "sample_weight": weight}
    expected = np.average(gap, weights=weight)
    assert integrated_calibration_index(**data) == pytest.approx(expected, abs=1e-12)
    expected = _weighted_quantiles(gap, weight / weight.sum(), [0.9])[0]
    assert integrated_calibration_index(**data, quantile=0.9) == pytest.approx(expected, abs=1e-12)


def test_quantiles_are_ordered_and_the_mean_is_between():
    y, p = random_problem(np.random.default_rng(3), 200)
    e50, e90, largest = (integrated_calibration_index(y, p, quantile=q) for q in (0.5, 0.9, 1))
    assert 0 < e50 < e90 < largest < 1
    assert e50 / 2 < integrated_calibration_index(y, p) < largest


@pytest.mark.parametrize("quantile", [-0.1, 1.1, "E50"])
def test_quantile_must_be_one(quantile):
    with pytest.raises(ValueError, match="The 'quantile' parameter of integrated_calibration"):
        integrated_calibration_index([0, 1], [0.2, 0.7], quantile=quantile)
