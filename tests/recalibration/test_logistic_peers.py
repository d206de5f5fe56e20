"""Beta and spline recalibration compared with betacal and splinecalib, where they are installed."""

import warnings

import numpy as np
import pytest
from problems import random_problem
from scipy.special import expit
from sklearn.metrics import brier_score_loss, log_loss

from skcalib.recalibration import BetaRecalibrator, SplineRecalibrator


@pytest.mark.parametrize("parameters", ["abm", "am", "ab"])
@pytest.mark.parametrize("seed", range(5))
def test_beta_equals_betacal(seed, parameters):
    betacal = pytest.importorskip("betacal")
    rng = np.random.default_rng(seed)
    proba = rng.beta(1, 2, size=2000)
    label = rng.random(2000) < expit(1.3 * np.log(2 * proba) - 0.6 * np.log(2 * (1 - proba)))
    with warnings.catch_warnings():  # betacal changes the filters of the whole process
        peer = betacal.BetaCalibration(parameters=parameters).fit(proba, label)
        expected = peer.predict(proba)
    recalibrator = BetaRecalibrator(parameters, prior_weight=0).fit(proba, label)
    assert (recalibrator.coef_ > 0).all()
    fitted = recalibrator.predict_proba(proba)[:, 1]
    # its optimiser (lbfgs) stops early on features of such different sizes
    np.testing.assert_allclose(fitted, expected, atol=5e-3)
    assert 0 <= log_loss(label, expected) - log_loss(label, fitted) < 1e-4


@pytest.mark.parametrize("seed", range(10))
def test_beta_is_never_less_likely_than_betacal(seed):
    betacal = pytest.importorskip("betacal")
    rng = np.random.default_rng(seed)
    _, proba = random_problem(rng, 100)
    label = rng.random(100) < [0.5, 0.3 + 0.5 * proba**4, 0.8 - 0.5 * (1 - proba) ** 4][seed % 3]
    with warnings.catch_warnings():
        peer = betacal.BetaCalibration().fit(proba, label)
        expected = peer.predict(proba)
    if min(peer.calibrator_.map_[:2]) < 0:  # it looks at the signs of its first fit only
        return
    fitted = BetaRecalibrator(prior_weight=0).fit(proba, label).predict_proba(proba)[:, 1]
    assert log_loss(label, fitted) <= log_loss(label, expected) + 1e-9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", [100, 300, 1000])
def test_spline_is_as_good_as_splinecalib(n):
    splinecalib = pytest.importorskip("splinecalib")
    rng = np.random.default_rng(0)
    shapes = [lambda x: x, lambda x: 0.5 * x, lambda x: x + 0.5 * np.abs(x), lambda x: np.sinh(x)]
    gains = []
    for k in range(40):
        x = 2 * rng.normal(size=n + 4000)
        proba, label = expit(x), rng.random(n + 4000) < expit(shapes[k % 4](x))
        peer = splinecalib.SplineCalib()
        peer.fit(proba[:n], label[:n].astype(int))
        ours = SplineRecalibrator().fit(proba[:n], label[:n]).predict_proba(proba[n:])[:, 1]
        theirs = peer.calibrate(proba[n:])
        gains.append(
            [
                score(label[n:], theirs) - score(label[n:], ours)
                for score in (log_loss, brier_score_loss)
            ]
        )
    assert (np.mean(gains, axis=0) > -np.std(gains, axis=0) / np.sqrt(len(gains))).all()
