"""The numbers of a report."""

import numpy as np
from sklearn.metrics import brier_score_loss, log_loss

from ..hypothesis_tests import CalibrationTest
from ..metrics import (
    calibration_distance_bounds,
    expected_calibration_error,
    smooth_calibration_error,
)

# The test multiplies n x n by n x (classes · resamples) matrices when there are more than two
# classes: so many multiplications take about ten seconds.
_MULTIPLICATIONS = 2e11

_REDUCTIONS = {"_confidence": "confidence", "_classwise": "classwise"}


def measure(predictions):
    label, weight = predictions.label, predictions.weight
    proba = predictions.matrix
    classes = np.arange(proba.shape[1])
    simplex = proba / proba.sum(axis=1, keepdims=True)
    top = np.argmax(proba, axis=1)
    numbers = {
        "n_samples": len(label),
        "n_classes": len(classes),
        "accuracy": float(weight @ (top == label)),
        "mean_confidence": float(weight @ proba.max(axis=1)),
        "brier_score_loss": float(
            brier_score_loss(label, simplex, sample_weight=weight, labels=classes)
        ),
        "log_loss": float(log_loss(label, simplex, sample_weight=weight, labels=classes)),
    }
    for metric in (smooth_calibration_error, expected_calibration_error):
        reductions = {"": "confidence"} if predictions.is_binary else _REDUCTIONS
        for suffix, multi_class in reductions.items():
            numbers[metric.__name__ + suffix] = metric(
                label,
                predictions.proba,
                sample_weight=weight,
                labels=classes,
                multi_class=multi_class,
            )
    suffix = "" if predictions.is_binary else "_confidence"
    numbers["distance_lower_bound" + suffix], numbers["distance_upper_bound" + suffix] = (
        calibration_distance_bounds(label, predictions.proba, sample_weight=weight, labels=classes)
    )
    return numbers


def run_test(predictions, random_state):
    test = CalibrationTest(labels=np.arange(len(predictions.classes)), random_state=random_state)
    n_tested = len(predictions.label)
    if not predictions.is_binary:
        affordable = np.sqrt(_MULTIPLICATIONS / (len(predictions.classes) * test.n_resamples))
        n_tested = min(n_tested, int(affordable))
    rows = slice(None)
    if n_tested < len(predictions.label):
        rows = random_state.permutation(len(predictions.label))[:n_tested]
    if n_tested == 1:
        test.set_params(estimator="biased")
    test.fit(
        predictions.proba[rows], predictions.label[rows], sample_weight=predictions.weight[rows]
    )
    return {
        "squared_kernel_calibration_error": test.statistic_,
        "p_value": test.p_value_,
        "n_tested": n_tested,
    }
