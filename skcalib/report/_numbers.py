"""The numbers of a report."""

import numpy as np
from sklearn.metrics import log_loss

from .._numerics.proper import PROPER_LOSSES
from ..hypothesis_tests import CalibrationTest
from ..metrics import calibration_distance_bounds
from ..metrics._registry import METRICS
from ._findings import certainties, findings, impossible

# Seconds that a test may take, and those for each drawn label: of one, and of each class.
_SECONDS = 20.0
_SECONDS_PER_LABEL = 3e-8
_SECONDS_PER_CLASS = 1e-9


def reductions(predictions):
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
        for suffix, multi_class in reductions(predictions).items():
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


def most_tested(n_classes, n_resamples=999):
    """As many samples are tested within a few seconds."""
    per_label = _SECONDS_PER_LABEL + n_classes * _SECONDS_PER_CLASS
    return int(_SECONDS / (per_label * n_resamples))


def run_test(predictions, random_state):
    """The numbers of the calibration test, and what it found, in words.

    They are of a random part of the samples, if all would take longer than a few seconds. A sample
    whose label had probability 0 is always in it. A calibrated model has none, so that does not
    change the size of the test.
    """
    n_classes = len(predictions.classes)
    test = CalibrationTest(labels=np.arange(n_classes), random_state=random_state)
    n_tested = min(len(predictions.label), most_tested(n_classes, test.n_resamples))
    tested = predictions
    if n_tested < len(predictions.label):
        rows = random_state.permutation(len(predictions.label))
        ruled_out = impossible(predictions)[rows]
        tested = predictions.take(rows[np.argsort(~ruled_out, kind="stable")][:n_tested])
    test.fit(tested.proba, tested.label, sample_weight=tested.weight, groups=tested.groups)
    numbers = {"p_value": test.p_value_}
    numbers |= {f"p_value_{name}": p for name, p in test.adjusted_p_values_.items()}
    numbers["n_tested"] = n_tested
    return numbers, certainties(predictions) + findings(test, tested)
