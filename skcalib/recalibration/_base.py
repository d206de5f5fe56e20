"""The base classes of recalibrators."""

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from functools import cache
from numbers import Real
from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from .._inputs.estimators import check_fit_input, check_predict_input
from .._inputs.predictions import Predictions
from .._inputs.scikit_learn import Interval, fit_context
from .._inputs.warnings import warn
from .._numerics.array_api import Array, to_numpy
from ..forecasts import Forecast, as_forecast
from ..forecasts._data import ForecastData, check_forecasts
from ._languages import Language

_threads = cache(ThreadpoolController)

# For products of smaller matrices than those of this many classes, threads cost time.
_FEWEST_TO_SHARE = 256

# For recalibrators with a prior, which draws them to the predictions.
PRIOR_CONSTRAINTS: dict = {"prior_weight": [Interval(Real, 0, None, closed="left")]}


class Recalibrator(ClassifierMixin, TransformerMixin, BaseEstimator, metaclass=ABCMeta):
    """Maps probabilities to probabilities: input is checked here, subclasses do the mapping."""

    _parameter_constraints: dict = {"labels": ["array-like", None]}

    # Whether the map is a smooth function, neither 0 nor 1 anywhere.
    _is_smooth = False

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the map from predicted to calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities of samples that the classifier was not fitted on;
            one-dimensional ones are of the last class. Tensors of PyTorch are taken from any
            device, with or without gradients. Results are arrays of NumPy; with scikit-learn's
            `array_api_dispatch`, recalibrators that scale log-probabilities return tensors.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        self : object
            The fitted recalibrator.
        """
        predictions = self._check(X, y, sample_weight)
        limit = None if len(self.classes_) >= _FEWEST_TO_SHARE else 1
        with _threads().limit(limits=limit, user_api="blas"):
            self._fit(predictions)
        return self

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
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
            return array_namespace(calibrated).stack([1 - calibrated, calibrated], axis=1)
        return calibrated

    def transform(self, X: ArrayLike) -> np.ndarray:
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

    def predict(self, X: ArrayLike) -> np.ndarray:
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
        return labels_of(self.classes_, array_namespace(proba).argmax(proba, axis=1))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Names of the columns that :meth:`transform` returns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Ignored; the columns are the classes.

        Returns
        -------
        names : ndarray of shape (n_classes,) of str
            ``"proba_"`` followed by the class.
        """
        check_is_fitted(self)
        return probability_names(self.classes_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _check(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """`Predictions` from the arguments of `fit`; sets what is known of the classes and of X."""
        predictions = check_fit_input(self, X, y, sample_weight)
        self.classes_ = predictions.classes
        return predictions

    @abstractmethod
    def _fit(self, predictions: Any) -> Any:
        """Set fitted attributes from checked `Predictions`."""

    @abstractmethod
    def _map(self, proba: Any) -> Any:
        """Map checked probabilities, (n,) for two classes or (n, K), to calibrated ones."""

    def _write(self, language: Language, proba: list[str]) -> list[str]:
        """`_map` as formulas, one for two classes or K: of names of the probabilities."""
        raise no_formula(self)


class ForecastRecalibrator(TransformerMixin, BaseEstimator, metaclass=ABCMeta):
    """Maps forecasts to forecasts: input is checked here, subclasses do the mapping."""

    _parameter_constraints: dict = {}

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the map from forecasts to calibrated forecasts.

        Parameters
        ----------
        X : forecast of shape (n_samples,)
            Forecasts of samples that the model was not fitted on: whatever
            :func:`~skcalib.forecasts.as_forecast` takes.

        y : array-like of shape (n_samples,)
            Outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        self : object
            The fitted recalibrator.
        """
        self._fit(check_forecasts(y, X, sample_weight=sample_weight, names=("y", "X")))
        return self

    def transform(self, X: Any) -> Forecast:
        """Calibrated forecasts.

        Parameters
        ----------
        X : forecast of shape (n_samples,)
            Forecasts of the same kind as at :meth:`fit`.

        Returns
        -------
        forecast : Forecast
            Calibrated forecasts of the same samples.
        """
        check_is_fitted(self)
        return self._map(as_forecast(X, name="X"))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Minus the mean continuous ranked probability score of the calibrated forecasts.

        Parameters
        ----------
        X : forecast of shape (n_samples,)
            Forecasts of the same kind as at :meth:`fit`.

        y : array-like of shape (n_samples,)
            Outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        score : float
            At most 0, which is best; in the units of the outcome.
        """
        return negative_crps(self.transform(X), y, sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags

    @abstractmethod
    def _fit(self, data: ForecastData) -> None:
        """Set fitted attributes from checked `ForecastData`."""

    @abstractmethod
    def _map(self, forecast: Forecast) -> Forecast:
        """Map checked forecasts to calibrated ones."""


class OneVsRestRecalibrator(Recalibrator):
    """Recalibrates two classes; more are mapped one by one, and the rows divided by their sums.

    `_fit_binary` returns the fitted state of one map, `_map_binary` applies it. A row that maps to
    zeros keeps its predicted probabilities.
    """

    def _fit(self, predictions: Predictions) -> None:
        self.maps_ = [self._fit_binary(problem) for problem in self._problems(predictions)]

    def _problems(self, predictions: Predictions) -> Iterator[Any]:
        """What `_fit_binary` gets, for two classes once, else for each class."""
        if predictions.is_binary:
            return iter([predictions])
        return (problem for _, problem in predictions.classwise())

    def _map(self, proba: np.ndarray) -> np.ndarray:
        if proba.ndim == 1:
            return self._map_binary(proba, self.maps_[0])
        mapped = np.empty(proba.shape)
        for k, learned in enumerate(self.maps_):
            mapped[:, k] = self._map_binary(proba[:, k], learned)
        impossible = ~mapped.any(axis=1)
        mapped[impossible] = proba[impossible]
        mapped /= mapped.sum(axis=1, keepdims=True)
        return mapped

    def _write(self, language: Language, proba: list[str]) -> list[str]:
        if len(proba) == 1:
            return [self._write_binary(language.of_class(1), proba[0], self.maps_[0])]
        mapped = []
        for k, (name, learned) in enumerate(zip(proba, self.maps_, strict=True)):
            own = language.of_class(k)
            mapped.append(own.let("m", self._write_binary(own, name, learned)))
        total = language.let("total", " + ".join(mapped))
        rest = " + ".join(proba)
        return [
            language.share(part, total, f"{name} / ({rest})")
            for part, name in zip(mapped, proba, strict=True)
        ]

    @abstractmethod
    def _fit_binary(self, problem: Any) -> Any:
        """The fitted state of the map of one class, by default from its `Predictions`."""

    @abstractmethod
    def _map_binary(self, proba: np.ndarray, learned: Any) -> np.ndarray:
        """Apply the map of one class, (n,) to (n,)."""

    def _write_binary(self, language: Language, proba: str, learned: Any) -> str:
        """`_map_binary` as a formula, of a name."""
        raise no_formula(self)


def no_formula(recalibrator: Any) -> ValueError:
    return ValueError(
        "recalibrator must have a map that a formula can express; found "
        f"{type(recalibrator).__name__}. Call its predict_proba, or choose another recalibrator."
    )


def labels_of(classes: np.ndarray, index: Array) -> Array:
    """The classes of indices (n,), where these are if the classes are numbers."""
    if isinstance(index, np.ndarray) or classes.dtype.kind not in "bif":
        return classes[to_numpy(index)]
    xp = array_namespace(index)
    return xp.take(xp.asarray(np.array(classes), device=device(index)), index, axis=0)


def probability_names(classes: np.ndarray) -> np.ndarray:
    return np.array([f"proba_{label}" for label in classes.tolist()], dtype=object)


def negative_crps(forecast: Forecast, y: Any, sample_weight: Any) -> float:
    """Minus the mean continuous ranked probability score."""
    data = check_forecasts(y, forecast, sample_weight=sample_weight, names=("y", "X"))
    return -float(data.weight @ data.forecast.crps(data.value))


def clone_for(recalibrator: Any, classes: np.ndarray | None) -> Any:
    """An unfitted copy that knows the classes, not all of which occur in every fold."""
    recalibrator = clone(recalibrator)
    if classes is not None and "labels" in recalibrator.get_params():
        recalibrator.set_params(labels=classes)
    return recalibrator


def is_smooth(recalibrator: Any) -> bool:
    """Whether it is one of this package's smooth maps."""
    return isinstance(recalibrator, Recalibrator) and recalibrator._is_smooth


def share_of_prior(predictions: Predictions, prior_weight: float) -> float:
    """Fraction of the total weight carried by the prior samples.

    The labels of prior samples are distributed as predicted. A fit aims at the observed outcomes
    mixed with the predictions in this proportion.
    """
    prior = float(prior_weight) * predictions.share_of_one_sample
    return prior / (1 + prior)


def warn_unless_converged(recalibrator: Any, converged: bool) -> None:
    # with a prior there is always a maximum, and the last step was within rounding of it
    if not converged and recalibrator.prior_weight == 0:
        warn(
            f"The likelihood of {type(recalibrator).__name__} has no maximum, as the outcomes can "
            "be separated; the last step is kept. Set a positive prior_weight, which keeps the fit "
            "finite.",
            ConvergenceWarning,
        )


def check_enough_outcomes(data: ForecastData, least: int, why: str) -> None:
    if data.n_samples < least:
        raise ValueError(
            f"y must hold at least {least} outcomes of positive weight, {why}; found "
            f"{data.n_samples} (n_samples={data.n_samples}). Collect more."
        )


def warn_unless_inside(recalibrator: Any, is_inside: bool, why: str) -> None:
    if not is_inside:
        warn(
            f"The fit of {type(recalibrator).__name__} has no optimum, as {why}; the last step is "
            "kept. Collect more samples.",
            ConvergenceWarning,
        )
