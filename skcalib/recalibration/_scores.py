"""Scores of calibrated predictions, given labels or outcomes of any type; higher is better."""

from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from .._data import check_forecasts
from .._inputs.arrays import ArrayLike, check_same_length, format_values
from .._inputs.checks import check_sample_weight
from .._inputs.labels import encode_labels
from .._numerics.array_api import Array, to_numpy
from ..forecasts import Forecast


def accuracy(y: ArrayLike, predicted: Array, classes: np.ndarray, sample_weight: Any) -> float:
    """Return the share of labels of any type that are predicted correctly."""
    observed, code, weight = _check_scored_labels(y, len(predicted), classes, sample_weight)
    return float(np.average(observed[code] == to_numpy(predicted), weights=weight))


def negative_log_loss(y: ArrayLike, proba: Array, classes: np.ndarray, sample_weight: Any) -> float:
    """Return minus the mean log loss of labels of any type."""
    observed, code, weight = _check_scored_labels(y, len(proba), classes, sample_weight)
    positions = {label: k for k, label in enumerate(classes.tolist())}
    unknown = [label for label in observed.tolist() if label not in positions]
    if unknown:
        raise ValueError(
            "y must hold only classes that were seen at fit, as others have no probability; found "
            f"{format_values(np.array(unknown))}. Name all classes with labels=[...]."
        )
    index = np.array([positions[label] for label in observed.tolist()])[code]
    labels = np.arange(len(classes))
    values = to_numpy(proba)
    values = values / values.sum(axis=1, keepdims=True)  # sums of single precision miss 1
    return -float(log_loss(index, values, labels=labels, sample_weight=weight))


def _check_scored_labels(
    y: ArrayLike, n_samples: int, classes: np.ndarray, sample_weight: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the observed classes, the code of each label, and checked weights."""
    observed, code = encode_labels(y, name="y", partner="X")
    check_same_length({"X": n_samples, "y": len(code)})
    if not set(observed.tolist()) & set(classes.tolist()):
        raise ValueError(
            f"y must hold classes that were seen at fit, {format_values(classes)}; found "
            f"{format_values(observed)}. Pass labels of the same type."
        )
    weight = None if sample_weight is None else check_sample_weight(sample_weight, len(code))
    return observed, code, weight


def negative_crps(forecast: Forecast, y: ArrayLike, sample_weight: ArrayLike | None) -> float:
    """Return minus the mean continuous ranked probability score."""
    data = check_forecasts(
        y, forecast, sample_weight=sample_weight, names=("y", "X"), may_be_impossible=True
    )
    return -float(data.weight @ data.forecast.crps(data.value))
