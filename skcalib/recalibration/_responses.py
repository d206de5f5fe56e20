"""Fitted classifiers, and probabilities from their predictions or decision scores."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from .._inputs.arrays import ArrayLike, as_array, format_values, is_device_array
from .._inputs.probabilities import check_probabilities
from .._numerics.array_api import asarray_like, to_numpy


@dataclass(frozen=True, eq=False)
class FittedClassifier:
    """A fitted classifier, the columns of its probabilities, and the scale of its scores."""

    estimator: Any
    scale: float | None  # what decision scores are divided by; None for probabilities
    classes: np.ndarray

    @property
    def response_options(self) -> dict[str, Any]:
        """Return options of `fit_classifier` that give another classifier the same columns."""
        return {"classes": self.classes}

    def response(self, X: ArrayLike) -> np.ndarray:
        """Return probabilities with a column for each class, 0 for classes not seen at `fit`."""
        if self.scale is None:
            return align_proba(self.estimator, X, self.classes)
        scores = check_scores(self.estimator.decision_function(X), self.estimator)
        return _align_columns(scores_to_proba(scores, self.scale), self.estimator, self.classes)


def fit_classifier(
    estimator: BaseEstimator,
    X: Any,
    y: np.ndarray,
    params: Any,
    *,
    response_method: str,
    classes: np.ndarray | None = None,
    temperature: float = 1.0,
) -> FittedClassifier:
    """Fit a classifier; by default its own classes are the columns of its response.

    Decision scores are divided by their root mean square and the temperature.
    """
    if is_device_array(X) and y.dtype.kind in "biuf":
        y = asarray_like(X, y)  # labels live where the features do
    estimator.fit(X, y, **params)
    check_response(estimator, response_method, fitted=True)
    scale = None
    if response_method == "decision_function":
        scores = check_scores(estimator.decision_function(X), estimator)
        scale = temperature * score_scale(scores, params.get("sample_weight"))
    if classes is None:
        classes = to_numpy(estimator.classes_)
    return FittedClassifier(estimator, scale, classes)


def align_proba(estimator: BaseEstimator, X: Any, classes: np.ndarray, **params: Any) -> np.ndarray:
    """Return the estimator's probabilities with a column for each class, 0 for unseen classes."""
    proba = to_numpy(estimator.predict_proba(X, **params))
    check_probabilities(proba, name=f"The output of {type(estimator).__name__}.predict_proba")
    return _align_columns(np.clip(proba, 0, 1), estimator, classes)


def _align_columns(proba: np.ndarray, estimator: BaseEstimator, classes: np.ndarray) -> np.ndarray:
    estimator_classes = to_numpy(estimator.classes_)
    if np.array_equal(estimator_classes, classes):
        return proba
    column = {label: k for k, label in enumerate(classes.tolist())}
    unknown = [label for label in estimator_classes.tolist() if label not in column]
    if unknown:
        raise ValueError(
            f"estimator must have the classes of y, {format_values(classes)}; "
            f"{type(estimator).__name__} also has {format_values(unknown)}. Pass a classifier with "
            "more classes than y as FrozenEstimator itself, not inside another estimator."
        )
    aligned = np.zeros((len(proba), len(classes)), dtype=proba.dtype)
    aligned[:, [column[label] for label in estimator_classes.tolist()]] = proba
    return aligned


def check_response(estimator: BaseEstimator, response_method: str, *, fitted: bool) -> None:
    """Refuse a classifier without the method; some classifiers have it only once fitted."""
    for inner in iter_predictors(estimator):
        if isinstance(inner, FixedThresholdClassifier | TunedThresholdClassifierCV):
            name = type(inner).__name__
            raise ValueError(
                "estimator must be a classifier that decides by the largest probabilities; found "
                f"{name}, whose threshold would be lost. Put the threshold around: {name}("
                "RecalibratedClassifier(classifier), ...)."
            )
    if fitted and not hasattr(estimator, "classes_"):
        raise ValueError(
            f"estimator must be a classifier, with the attribute classes_ once it is fitted; found "
            f"{type(estimator).__name__}, which has none. Pass a classifier."
        )
    if hasattr(estimator, response_method):
        return
    if not fitted and hasattr(type(estimator), response_method):
        return
    other = {"predict_proba", "decision_function"}.difference([response_method]).pop()
    available, remedy = "neither that nor " + other, "Pass a classifier."
    if hasattr(estimator, other):
        available, remedy = other + " only", f"Pass response_method={other!r}."
    raise ValueError(
        f"estimator must have the method {response_method}, as response_method="
        f"{response_method!r}; found {type(estimator).__name__}, which has {available}. {remedy}"
    )


def iter_predictors(estimator: BaseEstimator | None) -> Iterator[BaseEstimator]:
    """Yield an estimator, then the one inside of it that predicts for it, and so on.

    That is the last step of a pipeline, the best estimator of a search, the final one of a stack,
    or the `estimator` of a wrapper.
    """
    while estimator is not None:
        yield estimator
        steps = getattr(estimator, "steps", None)
        inner = steps[-1][1] if steps else getattr(estimator, "estimator", None)
        inner = getattr(estimator, "final_estimator", inner)
        estimator = getattr(estimator, "best_estimator_", inner)


def score_scale(scores: np.ndarray, weight: np.ndarray) -> float:
    """Return the root mean square of the scores minus the mean of their row; 1 if it is 0."""
    if scores.ndim == 2:
        scores = scores - scores.mean(axis=1, keepdims=True)  # softmax ignores it
    largest = np.abs(scores).max() or 1.0  # squares relative to it do not overflow
    square = np.average((scores / largest) ** 2, axis=0, weights=weight)
    return float(largest * np.sqrt(square.mean())) or 1.0


def scores_to_proba(scores: np.ndarray, scale: float) -> np.ndarray:
    """Convert scores (n,) of the last of two classes to (n, 2), and scores (n, K) to (n, K)."""
    if scores.ndim == 1:
        return expit(np.outer(scores / scale, [-1, 1]))
    return softmax(scores / scale, axis=1)


def check_scores(scores: np.ndarray, estimator: BaseEstimator) -> np.ndarray:
    """Check decision scores of a fitted classifier: (n,) for the last of two classes, or (n, K)."""
    name = f"The output of {type(estimator).__name__}.decision_function"
    scores, n_classes = as_array(scores, name), estimator.classes_.shape[0]
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


def _has_pairwise_scores(estimator: BaseEstimator) -> bool:
    """True if a support vector machine scores pairs of classes; three classes have three pairs."""
    # an ensemble has a score for each class, whatever the scores of its members are
    path = takewhile(lambda inner: not hasattr(inner, "estimators_"), iter_predictors(estimator))
    return any(getattr(inner, "decision_function_shape", None) == "ovo" for inner in path)
