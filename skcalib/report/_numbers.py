"""The numbers of a report."""

from dataclasses import replace

import numpy as np
from sklearn.metrics import log_loss

from .._numerics.proper import PROPER_LOSSES
from ..hypothesis_tests import CalibrationTest
from ..metrics import calibration_distance_bounds
from ..metrics._registry import METRICS
from ._findings import certainties, findings, impossible

# Seconds that a test may take, and those for each drawn label: of one, or of the sign of a sample
# in a group, and of each class.
_SECONDS = 20.0
_SECONDS_PER_LABEL, _SECONDS_PER_SIGN = 2e-8, 3e-8
_SECONDS_PER_CLASS = 1.5e-10


def reductions(predictions):
    """The data of binary measures and their `multi_class`, by the suffix that they add to names."""
    if predictions.is_binary:
        return {"": (predictions, "confidence")}
    return {
        "_confidence": (predictions.confidence(), "confidence"),
        "_classwise": (predictions, "classwise"),
    }


def of_labels(predictions):
    """The probability of each label, (n,), of rows that sum to 1."""
    label, proba = predictions.label, predictions.proba
    if predictions.is_binary:
        return np.where(label == 1, proba, 1 - proba)
    return proba[np.arange(len(label)), label] / proba.sum(axis=1, dtype=np.float64)


def measure(predictions):
    """Scores and measures by name; and the smooth calibration error of each of more classes."""
    label, weight = predictions.label, predictions.weight
    rows = predictions
    if predictions.is_binary:
        rows = replace(predictions, proba=predictions.matrix)
    confident = rows.confidence()
    occurred = np.ones(len(label))
    numbers = {
        "n_samples": len(label),
        "n_classes": len(predictions.classes),
        "accuracy": float(weight @ confident.label),
        "mean_confidence": float(weight @ confident.proba),
        "brier_score_loss": float(weight @ PROPER_LOSSES["brier"](predictions.proba, label)),
        "log_loss": float(
            log_loss(occurred, of_labels(predictions), sample_weight=weight, labels=[0, 1])
        ),
    }
    values = {}  # of measures of classes, those of all classes
    for entry in METRICS.values():
        if not entry.in_report:
            continue
        for suffix, (data, multi_class) in reductions(predictions).items():
            values[entry.name + suffix] = entry.function(
                data.label,
                data.proba,
                sample_weight=weight,
                labels=np.arange(len(data.classes)),
                multi_class=multi_class,
                average=None,
            )
    numbers |= {name: float(np.mean(value)) for name, value in values.items()}
    suffix, (data, _) = next(iter(reductions(predictions).items()))
    numbers["distance_lower_bound" + suffix], numbers["distance_upper_bound" + suffix] = (
        calibration_distance_bounds(data.label, data.proba, sample_weight=weight, labels=[0, 1])
    )
    return numbers, values.get("smooth_calibration_error_classwise")


def most_tested(predictions, n_resamples=999):
    """As many samples are tested within a few seconds."""
    each = _SECONDS_PER_LABEL if predictions.groups is None else _SECONDS_PER_SIGN
    per_label = each + len(predictions.classes) * _SECONDS_PER_CLASS
    return int(_SECONDS / (per_label * n_resamples))


def run_test(predictions, random_state):
    """The numbers of the calibration test, and what it found, in words.

    They are of a random part of the samples, if all would take longer than a few seconds. A sample
    whose label had probability 0 is always in it. A calibrated model has none, so that does not
    change the size of the test.
    """
    n_classes = len(predictions.classes)
    test = CalibrationTest(labels=np.arange(n_classes), random_state=random_state)
    n_tested = min(len(predictions.label), most_tested(predictions, test.n_resamples))
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
