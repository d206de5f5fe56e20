"""Probabilities from the decision scores of classifiers."""

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from .._inputs.arrays import as_array


def scale_of_scores(scores: np.ndarray, weight: np.ndarray) -> float:
    """The root mean square of the scores, relative to the mean of each row; 1 if that is 0."""
    if scores.ndim == 2:
        scores = scores - scores.mean(axis=1, keepdims=True)  # softmax ignores it
    largest = np.abs(scores).max() or 1.0  # squares relative to it do not overflow
    square = np.average((scores / largest) ** 2, axis=0, weights=weight)
    return float(largest * np.sqrt(square.mean())) or 1.0


def proba_of_scores(scores: np.ndarray, scale: float) -> np.ndarray:
    """(n, 2) from scores (n,) of the last of two classes; (n, K) from one for each class."""
    if scores.ndim == 1:
        return expit(np.outer(scores / scale, [-1, 1]))
    return softmax(scores / scale, axis=1)


def check_scores(scores: np.ndarray, estimator: Any) -> np.ndarray:
    """Decision scores of a fitted classifier: (n,) for the last of two classes, else (n, K)."""
    name = f"The output of {type(estimator).__name__}.decision_function"
    scores, n_classes = as_array(scores, name), len(estimator.classes_)
    if scores.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold numbers; found type {scores.dtype}.")
    is_pairwise = n_classes > 2 and _has_pairwise_scores(estimator)
    if is_pairwise or scores.shape[1:] != (() if n_classes == 2 else (n_classes,)):
        raise ValueError(
            f"{name} must have shape (n,) for two classes, and (n, K) with one score for each of "
            f"K > 2 classes; found shape {scores.shape} for {n_classes} classes"
            f"{', one score for each pair of them' * is_pairwise}. Set "
            "decision_function_shape='ovr' if the classifier has this parameter."
        )
    if not np.isfinite(scores).all():
        row = int(np.argmin(np.isfinite(scores).reshape(len(scores), -1).all(axis=1)))
        raise ValueError(
            f"{name} must be finite; found NaN or infinity in row {row}. Scale the features, or "
            "regularise the classifier."
        )
    return scores.astype(np.float64, copy=False)


def _has_pairwise_scores(estimator: Any) -> bool:
    """Whether the scores are a support vector machine's; of three classes there are three pairs."""
    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return getattr(estimator, "decision_function_shape", None) == "ovo"
