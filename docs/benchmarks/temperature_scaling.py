"""Temperature, vector and matrix scaling: time, beside scikit-learn, netcal and probmetrics.

A temperature is fitted to the same probabilities and labels by all, and everything that a user's
call does is timed. Run in an environment with the peers (those that are missing are left out):

    pip install . netcal probmetrics && python docs/benchmarks/temperature_scaling.py
"""

import contextlib
import io
import sys
import time
import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from skcalib.recalibration import (
    DirichletRecalibrator,
    MatrixScalingRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
)

warnings.simplefilter("ignore")


class Given(ClassifierMixin, BaseEstimator):
    """The features are the probabilities."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return self.classes_[X.argmax(axis=1)]


def problem(n, n_classes, temperature=1.5, seed=0):
    """Overconfident probabilities of all classes, and labels drawn from the right ones."""
    rng = np.random.default_rng(seed)
    scores = 2 * rng.normal(size=(n, n_classes))
    label = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    proba = np.exp(temperature * scores)
    return proba / proba.sum(axis=1, keepdims=True), label


def scikit_learn(proba, label):
    frozen = FrozenEstimator(Given().fit(proba[:1000], label[:1000]))
    fitted = CalibratedClassifierCV(frozen, method="temperature", cv=2).fit(proba, label)
    return fitted.predict_proba


def netcal(proba, label):
    from netcal.scaling import TemperatureScaling

    fitted = TemperatureScaling()
    fitted.fit(proba, label)
    return fitted.transform


def probmetrics(name):
    def fit(proba, label):
        from probmetrics.calibrators import get_calibrator

        return get_calibrator(name).fit(proba, label).predict_proba

    return fit


def skcalib(recalibrator):
    def fit(proba, label):
        return recalibrator.fit(proba, label).predict_proba

    return fit


TEMPERATURES = {
    "skcalib": skcalib(TemperatureRecalibrator()),
    "scikit-learn": scikit_learn,
    "netcal": netcal,
    "probmetrics": probmetrics("temp-scaling"),
}
REGRESSIONS = {
    "skcalib vector": skcalib(VectorScalingRecalibrator()),
    "skcalib matrix": skcalib(MatrixScalingRecalibrator()),
    "skcalib Dirichlet": skcalib(DirichletRecalibrator()),
    "probmetrics svs": probmetrics("svs"),
    "probmetrics sms": probmetrics("sms"),
}


def seconds_and_loss(fit, proba, label, repetitions):
    best = np.inf
    for _ in range(repetitions):
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            predict = fit(proba, label)
        best = min(best, time.perf_counter() - start)
    fitted = predict(proba)[np.arange(len(label)), label]
    return best, -np.log(np.maximum(fitted, 1e-300)).mean()


def table(methods, sizes, repetitions):
    print("| n | K | method | seconds | log loss on the same data |\n|---|---|---|---|---|")
    for n, n_classes in sizes:
        proba, label = problem(n, n_classes)
        for name, fit in methods.items():
            try:
                seconds, loss = seconds_and_loss(fit, proba, label, repetitions)
            except ImportError:
                continue
            print(f"| {n} | {n_classes} | {name} | {seconds:.3f} | {loss:.9f} |", flush=True)


def main(quick=False):
    sizes = [(10**3, 10), (10**4, 10), (10**5, 10), (10**5, 100)]
    table(TEMPERATURES, sizes[:1] if quick else sizes, repetitions=3)
    print()
    sizes = [(10**3, 3), (10**4, 10), (10**5, 10)]
    table(REGRESSIONS, sizes[:1] if quick else sizes, repetitions=1)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
