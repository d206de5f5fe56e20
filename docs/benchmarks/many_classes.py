"""A thousand classes: time and log loss of scalings, beside scikit-learn, netcal and probmetrics.

Everything that a user's call does is timed. Single-precision probabilities of 1000 classes come
from synthetic logits with the accuracy and the overconfidence of a network on ImageNet. Run in an
environment with the peers (those that are missing are left out):

    pip install . netcal probmetrics && python docs/benchmarks/many_classes.py

A part of the name of a method, as an argument, restricts the table to what contains it.
"""

import contextlib
import io
import sys
import time
import warnings

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

import skcalib._numerics.scaling as solver
from skcalib.recalibration import (
    EnsembleTemperatureRecalibrator,
    MatrixScalingRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
)

warnings.simplefilter("ignore")


class Given(ClassifierMixin, BaseEstimator):
    """The features are the probabilities."""

    def __init__(self, n_classes=2):
        self.n_classes = n_classes

    def fit(self, X, y):
        self.classes_ = np.arange(self.n_classes)
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return self.classes_[X.argmax(axis=1)]


def problem(n, n_classes, seed):
    """Labels and logits (single precision); classes differ in their scale and their bias."""
    rng = np.random.default_rng(0)
    bias, scale = 0.5 * rng.normal(size=n_classes), np.exp(0.1 * rng.normal(size=n_classes))
    rng = np.random.default_rng(seed)
    right = 1.5 * rng.normal(size=(n, n_classes))
    right[np.arange(n), rng.integers(n_classes, size=n)] += rng.gamma(9, 1.3, size=n)
    label = np.argmax(right + rng.gumbel(size=right.shape), axis=1)
    return label, (1.25 * scale * right + bias).astype(np.float32)


def skcalib(recalibrator):
    def fit(proba, logits, label):
        is_logits = getattr(recalibrator, "input_type", None) == "logits"
        recalibrator.set_params(labels=np.arange(proba.shape[1]))
        recalibrator.fit(logits if is_logits else proba, label)
        return lambda p, z: recalibrator.predict_proba(z if is_logits else p)

    return fit


def converged(recalibrator):
    """Without the end of the fit that is earlier with many probabilities."""
    fit = skcalib(recalibrator)

    def fit_to_the_end(proba, logits, label):
        many, solver._MAX_EXACT_ENTRIES = solver._MAX_EXACT_ENTRIES, np.inf
        try:
            return fit(proba, logits, label)
        finally:
            solver._MAX_EXACT_ENTRIES = many

    return fit_to_the_end


def of_one_class_each(**penalties):
    """Matrix scaling without influences of one class on another."""
    return skcalib(MatrixScalingRecalibrator(off_diagonal_penalty=np.inf, **penalties))


def scikit_learn(proba, logits, label):
    frozen = FrozenEstimator(Given(proba.shape[1]).fit(proba, label))
    fitted = CalibratedClassifierCV(frozen, method="temperature", cv=2).fit(proba, label)
    return lambda p, z: fitted.predict_proba(p)


def netcal(proba, logits, label):
    from netcal.scaling import TemperatureScaling

    fitted = TemperatureScaling()
    fitted.fit(proba, label)
    return lambda p, z: fitted.transform(p)


def probmetrics(name):
    def fit(proba, logits, label):
        from probmetrics.calibrators import get_calibrator

        fitted = get_calibrator(name).fit(proba, label)
        return lambda p, z: fitted.predict_proba(p)

    return fit


METHODS = {
    "none": lambda proba, logits, label: lambda p, z: p,
    "skcalib temperature": skcalib(TemperatureRecalibrator()),
    "skcalib temperature, of logits": skcalib(TemperatureRecalibrator(input_type="logits")),
    "scikit-learn temperature": scikit_learn,
    "netcal temperature": netcal,
    "probmetrics temp-scaling": probmetrics("temp-scaling"),
    "skcalib ensemble temperature": skcalib(EnsembleTemperatureRecalibrator()),
    "skcalib vector": skcalib(VectorScalingRecalibrator()),
    "skcalib vector, converged": converged(VectorScalingRecalibrator()),
    "probmetrics svs": probmetrics("svs"),
    "skcalib matrix": skcalib(MatrixScalingRecalibrator()),
    "skcalib matrix, shifts alone": of_one_class_each(diagonal_penalty=np.inf),
    "skcalib matrix, diagonal alone": of_one_class_each(),
    "skcalib matrix, diagonal alone, penalties 1": of_one_class_each(
        diagonal_penalty=1.0, intercept_penalty=1.0
    ),
}


def log_loss(proba, label):
    return -np.log(np.maximum(proba[np.arange(len(label)), label], 1e-300)).mean()


def main(quick=False, only=""):
    n, n_classes = (300, 20) if quick else (50_000, 1000)
    label, logits = problem(n, n_classes, seed=1)
    new_label, new_logits = problem(min(n, 10_000), n_classes, seed=2)
    proba, new_proba = (softmax(z, axis=1).astype(np.float32) for z in (logits, new_logits))
    print("| method | seconds | CPU seconds | log loss, same data | log loss, new data |")
    print("|---|---|---|---|---|")
    for name, fit in METHODS.items():
        if only not in name:
            continue
        seconds, cpu = [], []
        is_slow = any(word in name for word in ("ensemble", "matrix", "converged"))
        for _ in range(1 if is_slow else 3):
            start, cpu_start = time.perf_counter(), time.process_time()
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    mapped = fit(proba, logits, label)
            except ImportError:
                break
            seconds.append(time.perf_counter() - start)
            cpu.append(time.process_time() - cpu_start)
        if seconds:
            loss = log_loss(mapped(proba, logits), label)
            new = log_loss(mapped(new_proba, new_logits), new_label)
            print(
                f"| {name} | {min(seconds):.2f} | {min(cpu):.2f} | {loss:.9f} | {new:.6f} |",
                flush=True,
            )


if __name__ == "__main__":
    main("--quick" in sys.argv, "".join(a for a in sys.argv[1:] if a[0] != "-"))
