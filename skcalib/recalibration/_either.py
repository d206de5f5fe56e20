"""Recalibrators of probabilities of classes and of forecasts of a number alike."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._data import AnyData, check_forecasts, check_no_labels
from .._inputs.arrays import ArrayLike
from .._inputs.probabilities import is_forecast
from .._inputs.scikit_learn import fit_context
from .._numerics.logits import PROPER_LOSSES
from ..forecasts import as_forecast
from ..forecasts._quantile import check_same_levels
from ._base import Recalibrator, check_calibration_data, clone_for, count_outer_groups, to_matrix
from ._folds import fit_with_units
from ._maps import ClassFactors
from ._responses import align_proba
from ._scores import negative_crps

# Attributes that a fit on probabilities sets and a fit on forecasts deletes.
_CLASS_ATTRIBUTES = ("classes_", "n_features_in_", "feature_names_in_")

_SAME_LEVELS_REMEDY = (
    "Pass QuantileForecast(forecast.quantiles(levels), levels) with the levels that you need, or "
    "leave such candidates out."
)


def check_fitted_on_classes(recalibrator: BaseEstimator) -> bool:
    """Raise AttributeError after a fit on forecasts of a number, which have no classes."""
    if recalibrator._is_forecast:
        raise AttributeError(
            f"{type(recalibrator).__name__} is fitted on forecasts of a number, which have no "
            "classes. Call transform."
        )
    return True


class ClassOrForecastRecalibrator(Recalibrator):
    """Base of recalibrators that accept probabilities or forecasts, in `_fit` and `_map`, too."""

    _is_forecast: Any = None  # whether the data at `fit` were forecasts

    @property
    def _response_method(self) -> str:
        """Return the method that recalibrators of this kind of data have."""
        return "transform" if self._is_forecast else "predict_proba"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the map from predicted to calibrated probabilities or forecasts.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Predictions of samples that the model was not fitted on: probabilities of classes,
            one-dimensional ones of the last class; or forecasts of a number, whatever
            :func:`~skcalib.forecasts.as_forecast` takes.

        y : array-like of shape (n_samples,)
            Labels; or outcomes, for forecasts.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        self : object
            The fitted recalibrator.
        """
        self._fit(self._check(X, y, sample_weight))
        return self

    def _check(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> AnyData:
        """Check the arguments of `fit`; set the attributes of the classes and of X."""
        # a tuple of two columns is a mean and a standard deviation
        is_pair = isinstance(X, tuple) and len(X) == 2 and np.shape(y) != (2,)
        if not (is_pair or is_forecast(X)):
            self._is_forecast = False
            class_data = check_calibration_data(self, X, y, sample_weight)
            self.classes_ = class_data.classes
            return class_data
        check_no_labels(self.labels)
        forecast_data = check_forecasts(y, X, sample_weight=sample_weight, names=("y", "X"))
        for name in _CLASS_ATTRIBUTES:
            self.__dict__.pop(name, None)
        self._is_forecast = True
        return count_outer_groups(self, forecast_data, sample_weight)

    if not TYPE_CHECKING:  # for type checkers they are those of a recalibrator
        predict_proba = available_if(check_fitted_on_classes)(Recalibrator.predict_proba)
        predict = available_if(check_fitted_on_classes)(Recalibrator.predict)
        get_feature_names_out = available_if(check_fitted_on_classes)(
            Recalibrator.get_feature_names_out
        )

    @abstractmethod
    def _fit(self, data: AnyData) -> Any:
        """Set fitted attributes from checked data of either kind."""

    def transform(self, X: ArrayLike) -> Any:
        """Calibrated probabilities, the same as :meth:`predict_proba`, or forecasts.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Predictions of the same kind as at :meth:`fit`.

        Returns
        -------
        calibrated : ndarray of shape (n_samples, n_classes), or Forecast
            Calibrated probabilities, a data frame after ``set_output``; or forecasts of the same
            samples.
        """
        check_is_fitted(self)
        if self._is_forecast:
            return self._map(as_forecast(X, name="X"))
        return self.predict_proba(X)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Minus the log loss of the probabilities, or minus the mean CRPS of the forecasts.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Predictions of the same kind as at :meth:`fit`.

        y : array-like of shape (n_samples,)
            Labels or outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        score : float
            At most 0, which is best: minus the mean log loss, or minus the mean continuous ranked
            probability score (CRPS), in the units of the outcome.
        """
        check_is_fitted(self)
        if self._is_forecast:
            return negative_crps(self.transform(X), y, sample_weight)
        return super().score(X, y, sample_weight)

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_forecast is not None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self._is_forecast:
            tags.estimator_type, tags.classifier_tags = None, None
            tags.input_tags.positive_only = tags.input_tags.two_d_array = False
            tags.no_validation = True
        return tags


class IdentityRecalibrator(ClassOrForecastRecalibrator):
    """Leaves the probabilities, or the forecasts of a number, as they are.

    It stands for "no recalibration", as one value of a pipeline step in a grid search.

    Parameters
    ----------
    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    AutoRecalibrator : Decides by itself whether to recalibrate.

    Notes
    -----
    A pipeline that ends with "passthrough" has no `predict_proba`, so a grid search scores it NaN.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import Pipeline
    >>> from skcalib.recalibration import IdentityRecalibrator, PredictProba, SigmoidRecalibrator
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> pipeline = Pipeline(
    ...     [("classifier", PredictProba(GaussianNB())), ("recalibrator", IdentityRecalibrator())]
    ... )
    >>> grid = {"recalibrator": [IdentityRecalibrator(), SigmoidRecalibrator()]}
    >>> search = GridSearchCV(pipeline, grid, scoring="neg_log_loss").fit(X, y)
    >>> search.best_params_
    {'recalibrator': SigmoidRecalibrator()}
    """

    _is_order_preserving = True

    def _fit(self, data: AnyData) -> None:
        pass

    def _map(self, proba: Any) -> Any:
        return proba if self._is_forecast else proba.copy()

    def _state_map(self) -> ClassFactors:
        return ClassFactors.identity(len(self.classes_))


def calibrate(recalibrator: BaseEstimator, X: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return calibrated probabilities (n, K) of a fitted recalibrator, of this package or not.

    A single column of two classes reaches those of this package as it is: they know that it tells
    less than two columns.
    """
    return align_proba(recalibrator, _columns_for(recalibrator, X), classes)


def _columns_for(recalibrator: BaseEstimator, X: ArrayLike) -> Any:
    return X if isinstance(recalibrator, Recalibrator) else to_matrix(X)


class FitData(NamedTuple):
    """Predictions and outcomes to which copies of a recalibrator are fitted."""

    X: Any  # probabilities (n, K), or (n,) if only those of the last of two are given; or forecasts
    y: np.ndarray  # (n,), labels or outcomes
    code: np.ndarray  # (n,), index into classes, or outcomes
    weight: np.ndarray | None  # (n,), near 1; None if all are equal
    classes: np.ndarray | None  # (K,); None for forecasts
    groups: np.ndarray | None  # (n,) codes, or None
    blocks: np.ndarray | None  # (n,) codes of what no fold divides, or None
    inflation: np.ndarray | None  # (n,) ratio of `squares` to w², if there are groups; or None

    def fit_clone(
        self, recalibrator: BaseEstimator, rows: Any = slice(None), *, warm_start_from: Any = None
    ) -> Any:
        """Return a copy of the recalibrator, fitted to some rows, from a fit to similar ones."""
        named = {"sample_weight": self.weight, "groups": self.groups, "blocks": self.blocks}
        named["inflation"] = self.inflation
        params = {name: values[rows] for name, values in named.items() if values is not None}
        X = self.X if self.classes is None else _columns_for(recalibrator, self.X)
        copy, neighbour = clone_for(recalibrator, self.classes), warm_start_from
        return fit_with_units(copy, X[rows], self.y[rows], neighbour=neighbour, **params)

    def losses(
        self, recalibrator: BaseEstimator, rows: Any, scoring: str, uniform: float = 0.0
    ) -> tuple[np.ndarray, Any]:
        """Return the loss of each of some rows (m,) under a fitted recalibrator.

        `uniform` is the weight of equal probabilities, which are mixed in. Also return the
        calibrated probabilities (m, K) before that, None for forecasts.
        """
        X, code = self.X[rows], self.code[rows]
        if self.classes is None:
            forecast = recalibrator.transform(X)
            if scoring == "log_loss":
                return -forecast.logpdf(code), None
            source = f"those that {type(recalibrator).__name__} makes of it"
            check_same_levels({"X": X, source: forecast}, _SAME_LEVELS_REMEDY)
            return forecast.crps(code), None
        proba = calibrate(recalibrator, X, self.classes)
        mixed = (1 - uniform) * proba + uniform / proba.shape[1] if uniform > 0 else proba
        return PROPER_LOSSES[scoring](mixed[:, 1] if mixed.shape[1] == 2 else mixed, code), proba


def to_fit_data(data: AnyData) -> FitData:
    """Convert `ClassData` or `ForecastData` to the arguments of `fit`."""
    if data.is_forecast:
        X, y, code, classes = data.forecast, data.value, data.value, None
        weight = data.weight * len(data.weight)
    else:
        X, y, code, classes = data.columns, data.classes[data.label], data.label, data.classes
        weight = data.weight / data.inverse_effective_size
    weights = weight if np.ptp(weight) > 0 else None
    inflation = None if data.groups is None else data.squares / data.weight**2
    return FitData(X, y, code, weights, classes, data.groups, data.blocks, inflation)
