"""The numbers of a report."""

import numpy as np
from sklearn.metrics import log_loss

from .._numerics.proper import PROPER_LOSSES
from ..hypothesis_tests import CalibrationTest
from ..metrics import calibration_distance_bounds
from ..metrics._registry import METRICS

# For more than two classes the test multiplies n × n by n × (classes · resamples) matrices. This
# many multiplications take about ten seconds.
_MULTIPLICATIONS = 2e11

# For two classes, this many draws of a label take about eight seconds.
_DRAWS = 3e8


def _reductions(predictions):
    """The reductions of binary measures, by the suffix that they add to the names."""
    if predictions.is_binary:
        return {"": "confidence"}
    return {"_confidence": "confidence", "_classwise": "classwise"}


def measure(predictions):
    """Scores and measures by name."""
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
        "brier_score_loss": float(weight @ PROPER_LOSSES["brier"](predictions.proba, label)),
        "log_loss": float(log_loss(label, simplex, sample_weight=weight, labels=classes)),
    }
    for entry in METRICS.values():
        if not entry.in_report:
            continue
        for suffix, multi_class in _reductions(predictions).items():
            numbers[entry.name + suffix] = entry.function(
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
    """The numbers of the calibration test, on a random part of the samples if all take minutes."""
    test = CalibrationTest(labels=np.arange(len(predictions.classes)), random_state=random_state)
    if predictions.is_binary:
        affordable = _DRAWS / test.n_resamples
    else:
        affordable = np.sqrt(_MULTIPLICATIONS / (len(predictions.classes) * test.n_resamples))
    n_tested = min(len(predictions.label), int(affordable))
    tested = predictions
    if n_tested < len(predictions.label):
        tested = predictions.take(random_state.permutation(len(predictions.label))[:n_tested])
    if n_tested == 1:
        test.set_params(estimator="biased")
    test.fit(tested.proba, tested.label, sample_weight=tested.weight)
    return {
        "squared_kernel_calibration_error": test.statistic_,
        "p_value": test.p_value_,
        "n_tested": n_tested,
    }
