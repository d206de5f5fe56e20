"""What all recalibrators share."""

from abc import ABCMeta, abstractmethod
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._validation import Interval, check_fit_input, check_predict_input, fit_context

# Of recalibrators whose parameters are fitted to `targets`.
PRIOR_CONSTRAINTS: dict = {"prior_weight": [Interval(Real, 0, None, closed="left")]}


class Recalibrator(ClassifierMixin, TransformerMixin, BaseEstimator, metaclass=ABCMeta):
    """From probabilities to probabilities, checked here and mapped by the subclasses."""

    _parameter_constraints: dict = {"labels": ["array-like", None]}

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Learn the map from predicted to calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities of samples that the classifier was not fitted on;
            one-dimensional ones are of the last class.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        self : object
            The fitted recalibrator.
        """
        predictions = check_fit_input(self, X, y, sample_weight)
        self.classes_ = predictions.classes
        self._fit(predictions)
        return self

    def predict_proba(self, X):
        """Calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities. For two classes one column, of the last class, and two columns
            are the same.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; rows sum to 1.
        """
        calibrated = self._map(check_predict_input(self, X))
        if calibrated.ndim == 1:
            return np.column_stack([1 - calibrated, calibrated])
        return calibrated

    def transform(self, X):
        """Calibrated probabilities, the same as :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; a data frame after ``set_output``.
        """
        return self.predict_proba(X)

    def predict(self, X):
        """The class of the largest calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels; the first of several classes with the same probability.
        """
        proba = self.predict_proba(X)
        return self.classes_[np.argmax(proba, axis=1)]

    def get_feature_names_out(self, input_features=None):
        """Names of the columns that :meth:`transform` returns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Ignored; the columns are the classes.

        Returns
        -------
        names : ndarray of shape (n_classes,) of str
            "proba_" followed by the class.
        """
        check_is_fitted(self)
        return probability_names(self.classes_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    @abstractmethod
    def _fit(self, predictions):
        """Set fitted attributes from checked `Predictions`."""

    @abstractmethod
    def _map(self, proba):
        """From checked probabilities, (n,) for two classes or (n, K), to calibrated ones."""


class OneVsRestRecalibrator(Recalibrator):
    """A recalibrator of two classes: more are mapped one by one, and rows divided by their sums.

    `_fit_binary` returns what one map has learned, `_map_binary` applies it. A row that maps to
    zeros keeps its predicted probabilities.
    """

    def _fit(self, predictions):
        problems = [predictions]
        if not predictions.is_binary:
            problems = [problem for _, problem in predictions.classwise()]
        self.maps_ = [self._fit_binary(problem) for problem in problems]

    def _map(self, proba):
        if proba.ndim == 1:
            return self._map_binary(proba, self.maps_[0])
        mapped = np.column_stack(
            [self._map_binary(*pair) for pair in zip(proba.T, self.maps_, strict=True)]
        )
        impossible = ~mapped.any(axis=1)
        mapped[impossible] = proba[impossible]
        return mapped / mapped.sum(axis=1, keepdims=True)

    @abstractmethod
    def _fit_binary(self, predictions):
        """What the map of one class learns from `Predictions` of two classes."""

    @abstractmethod
    def _map_binary(self, proba, learned):
        """The map of one class, (n,) to (n,)."""


def probability_names(classes):
    return np.array([f"proba_{label}" for label in classes.tolist()], dtype=object)


def targets(predictions, prior_weight):
    """The probabilities that a fit aims at, (n,) for two classes or (n, K).

    The outcomes, mixed with the predictions as if `prior_weight` samples more had been like the
    others, but with labels distributed as predicted.
    """
    prior = prior_weight * predictions.share_of_one_sample
    prior /= 1 + prior
    target = prior * predictions.proba
    if predictions.is_binary:
        target += (1 - prior) * predictions.label
    else:
        target[np.arange(len(target)), predictions.label] += 1 - prior
    return target
