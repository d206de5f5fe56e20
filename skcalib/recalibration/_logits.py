"""Logits, and the recalibrators that take them: those on the scale of log-probabilities."""

from abc import abstractmethod
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._inputs.predictions import Predictions
from .._inputs.scikit_learn import StrOptions
from .._numerics.array_api import Array, doubles
from .._numerics.logits import clipped, log_probabilities, smallest_probability
from .._numerics.softmax import row_blocks
from ._base import Recalibrator
from ._languages import Language, logs_of, write_logistic
from ._modules import scaling_module


class ScoreRecalibrator(Recalibrator):
    """A map of log-probabilities: those of predictions, or of logits.

    `_fit_scores` and `_map_scores` get them from here.
    """

    _parameter_constraints: dict = {
        **Recalibrator._parameter_constraints,
        "input_type": [StrOptions({"probabilities", "logits"})],
    }

    _is_smooth = True

    # whether tensors stay where they are, at `fit` and afterwards
    _fits_in_place = False
    _maps_in_place = True

    def _fit(self, predictions: Predictions) -> None:
        is_exact = predictions.log_proba is not None
        self.smallest_probability_ = 0.0 if is_exact else smallest_probability(predictions.proba)
        self._fit_scores(predictions)

    def _log_proba(self, predictions: Predictions, rows: slice = slice(None)) -> Array:
        """log p of all classes (b, K), which may be changed."""
        if predictions.log_proba is not None:
            return doubles(predictions.log_proba[rows, ...], copy=True)
        return log_matrix(doubles(predictions.proba[rows, ...]), self.smallest_probability_)

    def _map(self, proba: Array) -> Array:
        if not isinstance(proba, np.ndarray):
            return self._map_rows(proba)
        n_classes = len(self.classes_)
        mapped = np.empty((len(proba), n_classes))
        for rows in row_blocks(len(proba), n_classes, fewest=n_classes):
            mapped[rows] = self._map_rows(proba[rows])
        return mapped

    def _map_rows(self, proba: Array) -> Array:
        if self.input_type == "probabilities":  # else these are log-probabilities
            proba = log_matrix(proba, self.smallest_probability_)
        return clipped(self._map_scores(proba))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.input_type == "probabilities"
        return tags

    @abstractmethod
    def _fit_scores(self, predictions: Predictions) -> None:
        """Set the parameters."""

    @abstractmethod
    def _map_scores(self, log_proba: Array) -> Array:
        """From log-probabilities (n, K) to calibrated probabilities."""


class LogScaleRecalibrator(ScoreRecalibrator):
    """The softmax of scores that are linear in log-probabilities.

    `_linear_map` returns what the scores are: factors of each class (K,), or a matrix (K, K), and
    shifts (K,).
    """

    def to_module(self, *, dtype: Any = None) -> Any:
        """The fitted map as a module of PyTorch, to append to a network.

        Parameters
        ----------
        dtype : torch.dtype, default=None
            The floating-point type in which the module computes and that it returns. None is
            PyTorch's default, single precision as a rule.

        Returns
        -------
        module : torch.nn.Module
            Maps logits of shape (n_samples, n_classes) to calibrated ones; for two classes also
            log-odds of the last one, of shape (n_samples,) or (n_samples, 1), to calibrated
            log-odds. The softmax of the result is what :meth:`predict_proba` returns for the same
            logits, or for their softmax if the recalibrator was fitted on probabilities; also for
            those that it clips.

        Notes
        -----
        The parameters are buffers: they move to another device with the network and are saved with
        it, but not trained. Gradients reach the logits.
        """
        check_is_fitted(self)
        return scaling_module(*self._linear_map(), self.smallest_probability_, dtype)

    def _write(self, language: Language, proba: list[str]) -> list[str]:
        check_is_of_probabilities(self)
        smallest = self.smallest_probability_
        factors, shift = self._linear_map()
        matrix = np.diag(factors) if factors.ndim == 1 else factors
        if len(proba) == 1:
            own = language.of_class(1)
            slope, constant = (matrix[1] - matrix[0])[::-1], shift[1] - shift[0]
            return [
                write_logistic(
                    own,
                    proba[0],
                    smallest,
                    lambda ends: self._map(ends)[:, 1],
                    lambda kept: own.linear(constant, slope, logs_of(own, kept)),
                )
            ]
        logs = write_logs(language, proba, smallest)
        return language.softmax(logs, -np.log(smallest), matrix, shift)

    @abstractmethod
    def _linear_map(self) -> tuple[np.ndarray, np.ndarray]:
        """The factors and the shifts that make scores of log-probabilities."""


def log_matrix(proba: Array, smallest: float) -> Array:
    """log p of all classes (n, K), rows contiguous, of probabilities (n,) or (n, K)."""
    if proba.ndim == 1:
        proba = array_namespace(proba).stack([1 - proba, proba], axis=1)
    if isinstance(proba, np.ndarray):
        proba = np.ascontiguousarray(proba, dtype=np.float64)
    return log_probabilities(proba, smallest)


def write_logs(language: Language, proba: list[str], smallest: float) -> list[str]:
    """The logarithms of clipped probabilities, K names of them."""
    logs = []
    for k, name in enumerate(proba):
        own = language.of_class(k)
        logs.append(own.let("x", own.log(own.clip(name, smallest, 1 - smallest))))
    return logs


def check_is_of_probabilities(recalibrator: Any) -> None:
    """A map of logits has no formula of probabilities."""
    if recalibrator.input_type == "logits":
        raise ValueError(
            "recalibrator must be fitted on probabilities, whose formula this is; found "
            "input_type='logits'. Fit it on softmax(X, axis=1), and apply the formula to these."
        )
