"""Scaling compared with scikit-learn, and with netcal and probmetrics where they are installed."""

import numpy as np
import pytest
import sklearn.calibration
from problems import random_problem
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skcalib.recalibration import MatrixScalingRecalibrator, TemperatureRecalibrator

# what the peers warn about is theirs
pytestmark = pytest.mark.filterwarnings("ignore")


def split(n=400, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, 3 * n, n_classes)
    return proba[:n], label[:n], proba[n:], label[n:]


@pytest.mark.skipif(
    not hasattr(sklearn.calibration, "_TemperatureScaling"),
    reason="scikit-learn has it from 1.8 on",
)
def test_temperature_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = np.argmax(X[:, :3] + rng.gumbel(size=(300, 3)), axis=1)
    classifier = LogisticRegression(C=100).fit(X[:60], y[:60])
    theirs = CalibratedClassifierCV(FrozenEstimator(classifier), method="temperature")
    expected = theirs.fit(X, y).predict_proba(X)
    # a frozen classifier is calibrated on all samples
    proba = classifier.predict_proba(X)
    ours = TemperatureRecalibrator(prior_weight=0).fit(proba, y).predict_proba(proba)
    np.testing.assert_allclose(ours, expected, atol=1e-4)


def test_temperature_of_netcal():
    scaling = pytest.importorskip("netcal.scaling", exc_type=ImportError)
    proba, label, query, _ = split()
    theirs = scaling.TemperatureScaling()
    theirs.fit(proba, label)
    ours = TemperatureRecalibrator(prior_weight=0).fit(proba, label).predict_proba(query)
    np.testing.assert_allclose(theirs.transform(query), ours, atol=1e-3)


def test_temperature_of_probmetrics():
    calibrators = pytest.importorskip("probmetrics.calibrators", exc_type=ImportError)
    proba, label, query, _ = split()
    theirs = calibrators.get_calibrator("temp-scaling").fit(proba, label)
    ours = TemperatureRecalibrator(prior_weight=0).fit(proba, label).predict_proba(query)
    np.testing.assert_allclose(theirs.predict_proba(query), ours, atol=2e-3)


@pytest.mark.parametrize("n_classes", [3, 5])
def test_matrix_scaling_is_as_good_as_that_of_probmetrics(n_classes):
    calibrators = pytest.importorskip("probmetrics.calibrators", exc_type=ImportError)
    ours = theirs = 0.0
    for seed in range(3):
        proba, label, query, truth = split(200, n_classes, seed)
        peer = calibrators.get_calibrator("sms").fit(proba, label)
        theirs += log_loss(truth, peer.predict_proba(query))
        fitted = MatrixScalingRecalibrator().fit(proba, label)
        ours += log_loss(truth, fitted.predict_proba(query))
    assert ours <= theirs + 0.005
