"""Recalibrators on the scale of log-probabilities: those of predictions, or of logits."""

from dataclasses import field
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags

from .._data import ClassData
from .._inputs.scikit_learn import estimator_class
from .._inputs.warnings import warn
from .._numerics import logits
from .._numerics.array_api import (
    Array,
    arange_like,
    array_namespace,
    asarray_like,
    doubles,
    to_numpy,
)
from .._numerics.logits import SAMPLE_SIZE
from .._numerics.scaling import is_large
from .._numerics.scaling_designs import Affine, ScaledAndShifted
from . import _prior
from ._base import Recalibrator, log_matrix
from ._maps import LogLinear, Map

# Rows of this many classes are long enough for NumPy's loops.
_MIN_LONG_ROW = 256

# If the last Newton step moves scores by more than this, they grow without limit.
_SETTLED = 0.1


# At most this many log-probabilities decide whether they tell a slope.
_MAX_ENTRIES_TO_JUDGE = 2**15


@estimator_class(kw_only=True)
class LogScaleRecalibrator(Recalibrator):
    """The softmax of scores that are linear in log-probabilities.

    `_linear_map` returns the factors of the classes (K,), or a matrix (K, K), and the shifts (K,).
    `_regress` finds them by a softmax regression, from log-probabilities and targets (n, K).
    """

    prior_weight: Any
    input_type: Literal["probabilities", "logits"] = "probabilities"
    coef_: np.ndarray = field(init=False)
    intercept_: np.ndarray = field(init=False)
    _is_smooth = True
    _fits_on_device = _maps_on_device = True

    _bounds: np.ndarray | None = field(default=None, init=False)

    _starts_near = True  # the map of almost the same samples is close to the optimum

    # Whether prior samples lend each class the best temperature, rather than what is predicted.
    _draws_to_temperature = False

    @property
    def _expects_logits(self) -> bool:
        return self.input_type == "logits"

    def _fit(self, data: ClassData) -> None:
        self.smallest_probability_ = 0.0
        if data.log_proba is None:
            least = _prior.least_probability(data, self.prior_weight)
            data = data.with_proba(data.columns)
            self.smallest_probability_ = logits.smallest_probability(data.proba, least)
        self._bounds = None if self.prior_weight == 0 else self._find_bounds(data)
        self._fit_scores(data)

    def _find_bounds(self, data: ClassData) -> np.ndarray | None:
        """The least and greatest log-probabilities (2, K) if these hardly tell a slope, else None.

        Many rows are judged by a subsample.
        """
        n, n_classes = data.label.shape[0], len(data.classes)
        rows = slice(None, None, 1 + max(n // SAMPLE_SIZE, n * n_classes // _MAX_ENTRIES_TO_JUDGE))
        logs, weight = self._log_proba(data, rows), doubles(data.weight, copy=True)[rows]
        xp = array_namespace(logs)
        weight /= xp.sum(weight)
        share, x = weight @ xp.exp(logs), logs - weight @ logs
        information = float(weight @ (x**2 @ share - (x @ share) ** 2)) / (n_classes - 1)
        if information >= _prior.MIN_INFORMATION * data.inverse_effective_size:
            return None
        blocks = (self._log_proba(data, block) for block in logits.iter_row_blocks(n, n_classes))
        least, greatest = zip(
            *[(to_numpy(xp.min(logs, axis=0)), to_numpy(xp.max(logs, axis=0))) for logs in blocks],
            strict=True,
        )
        ends = np.stack([np.min(least, axis=0), np.max(greatest, axis=0)])
        if self._is_order_preserving:  # one line for all classes
            ends[0], ends[1] = ends[0].min(), ends[1].max()
        return ends

    def _fit_scores(self, data: ClassData) -> None:
        """Set the parameters by a softmax regression."""
        if not is_large(data.proba):
            data = data.sort_samples()
        log_proba = self._log_proba(data)
        data = data.with_proba(log_proba)  # frees the sorted ones
        # zeros are replaced by small numbers in the predictions that make up the prior, too
        if self._draws_to_temperature:
            prior, target = _prior.class_prior(log_proba, data, self.prior_weight)
        else:
            target = logits.softmax_in_place(doubles(log_proba, copy=True))
            prior = _prior.prior_share(data, self.prior_weight)
        target *= prior
        _add_to_labels(target, data.label, 1 - prior)
        change = self._regress(log_proba, target, data)
        if change < np.inf:
            _prior.warn_unless_converged(self, change <= _SETTLED)
        else:
            warn(
                f"The fit of {type(self).__name__} has not reached its optimum; the last step is "
                "kept. Choose a larger prior_weight, or fewer parameters, as those of a "
                "TemperatureRecalibrator.",
                ConvergenceWarning,
            )

    def _log_proba(self, data: ClassData, rows: slice = slice(None)) -> Array:
        """log p of all classes (b, K), which may be changed.

        With NumPy columns are contiguous if rows are too short for its loops.
        """
        if data.log_proba is not None:
            return doubles(data.log_proba[rows, ...], copy=True)
        order = "F" if len(data.classes) < _MIN_LONG_ROW else "C"
        return log_matrix(doubles(data.proba[rows, ...]), self.smallest_probability_, order)

    def _map(self, proba: Array) -> Array:
        if not isinstance(proba, np.ndarray):
            return self._map_rows(proba)
        n_classes = len(self.classes_)
        mapped = np.empty((len(proba), n_classes))
        for rows in logits.iter_row_blocks(len(proba), n_classes, min_rows=n_classes):
            mapped[rows] = self._map_rows(proba[rows])
        return mapped

    def _map_rows(self, proba: Array) -> Array:
        if self.input_type == "probabilities":  # else these are log-probabilities
            proba = log_matrix(proba, self.smallest_probability_)
        if self._bounds is None:
            return logits.clip_proba(self._map_scores(proba))
        xp = array_namespace(proba)
        clipped = xp.clip(proba, *asarray_like(proba, self._bounds))
        mapped = self._map_scores(clipped + 0.0) * xp.exp(proba - clipped)
        return logits.clip_proba(mapped / xp.sum(mapped, axis=1, keepdims=True))

    def _map_scores(self, log_proba: Array) -> Array:
        """From log-probabilities (n, K) to probabilities, each row to the last bit by itself."""
        return logits.softmax_in_place(linear_scores(*self._linear_map(), log_proba))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.input_type == "probabilities"
        return tags

    def _regress(self, log_proba: Array, target: Array, data: ClassData) -> float:
        """Set the parameters; return how much the scores moved at the end.

        Both matrices may be changed.
        """
        raise NotImplementedError

    def _first_map(self, identity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The factors and shifts where a search begins: of the neighbour, or the identity."""
        # without a prior there may be no optimum, and the neighbour is far away then
        if self._neighbour is None or self.prior_weight == 0:
            return identity, np.zeros(len(identity))
        return self._neighbour.coef_, self._neighbour.intercept_

    def _linear_map(self) -> tuple[np.ndarray, np.ndarray]:
        """The factors and the shifts that make scores of log-probabilities."""
        return self.coef_, self.intercept_

    def _state_map(self) -> Map:
        return LogLinear(*self._linear_map(), self.smallest_probability_, self._bounds)


def linear_scores(factor: np.ndarray, shift: np.ndarray, log_proba: Array) -> Array:
    """Scores (n, K) from the factors of classes (K,), or a matrix of them, and shifts (K,)."""
    diagonal = factor if factor.ndim == 1 else factor.diagonal()
    if np.count_nonzero(factor) == np.count_nonzero(diagonal):
        return ScaledAndShifted.scores_of_rows(np.stack([diagonal, shift]), log_proba)
    return Affine.scores_of_rows(np.vstack([factor.T, shift]), log_proba)


def _add_to_labels(target: Array, label: Array, share: float) -> None:
    """Add a number to the entries (n, K) of the labels (n,)."""
    if isinstance(target, np.ndarray):
        target[np.arange(len(target)), label] += share
    else:
        target += share * doubles(label[:, None] == arange_like(target, target.shape[1]))
