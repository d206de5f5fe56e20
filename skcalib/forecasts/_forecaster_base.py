"""What regressors with `predict_forecast` have in common."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin
from sklearn.utils import Tags, column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from .._inputs.scikit_learn import fit_context
from .._inputs.weights import check_sample_weight
from ._base import Forecast
from ._checks import check_outcome_values
from ._quantile import QuantileForecast


class ForecastingRegressor(RegressorMixin):
    """Predictions of a regressor that all come from its `predict_forecast`."""

    @abstractmethod
    def predict_forecast(self, X: ArrayLike) -> Forecast:
        """Forecasts of the outcomes."""

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Means of the forecasts, or medians where only quantiles are known.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        return_std : bool, default=False
            Whether to return the standard deviations as well.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predicted outcomes.

        std : ndarray of shape (n_samples,)
            Standard deviations of the forecasts, if asked for.
        """
        forecast = self.predict_forecast(X)
        if return_std:
            return forecast.mean(), forecast.std()
        return forecast.ppf(0.5) if isinstance(forecast, QuantileForecast) else forecast.mean()

    def predict_quantiles(self, X: ArrayLike, levels: ArrayLike) -> np.ndarray:
        """Quantiles of the forecasts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        levels : array-like of shape (n_levels,)
            Probabilities in [0, 1].

        Returns
        -------
        y : ndarray of shape (n_samples, n_levels)
            Quantiles, in the units of the outcome.
        """
        return self.predict_forecast(X).quantiles(levels)

    def predict_interval(
        self, X: ArrayLike, coverage: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Central prediction intervals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        coverage : float, default=0.9
            Probability of the intervals, in (0, 1).

        Returns
        -------
        low, high : ndarray of shape (n_samples,)
            Ends of the intervals, in the units of the outcome. They may be infinite if the
            forecasts were recalibrated conformally with too few samples.
        """
        return self.predict_forecast(X).interval(coverage)


class Forecaster(ForecastingRegressor, MetaEstimatorMixin, BaseEstimator):
    """A regressor around another one, whose predictions it turns into forecasts."""

    estimator: Any

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **params: Any) -> Self:
        """Fit the regressor, and what the forecasts need.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        y : array-like of shape (n_samples,)
            Outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights, handed to the regressor, which must take them.

        **params : dict
            Passed to the regressor's `fit`; with metadata routing, what it requests.

        Returns
        -------
        self : object
            The fitted regressor.
        """
        y = column_or_1d(y, warn=True)
        X, y = indexable(X, check_outcome_values(y, len(y), "y"))
        if sample_weight is not None:
            sample_weight = params["sample_weight"] = check_sample_weight(sample_weight, len(y))
        if get_config()["enable_metadata_routing"]:
            params = process_routing(self, "fit", **params).estimator.fit
        fitted = self._fit(X, y, sample_weight, params)
        adopt_features(self, fitted)
        return self

    def predict_forecast(self, X: ArrayLike) -> Forecast:
        """Forecasts of the outcomes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        forecast : Forecast
            A distribution of the outcome for each sample.
        """
        check_is_fitted(self)
        return self._forecast(X)

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            What is passed on to the regressor.
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self._unfitted(), method_mapping=mapping)
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._unfitted()).input_tags
        tags.target_tags.required = True
        return tags

    def _unfitted(self) -> Any:
        """The regressor that is cloned and fitted."""
        return self.estimator

    @abstractmethod
    def _fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None, params: dict) -> Any:
        """Set fitted attributes, and return a fitted regressor that knows its features."""

    @abstractmethod
    def _forecast(self, X: Any) -> Forecast:
        """Forecasts from the fitted attributes."""


def adopt_features(estimator: Any, fitted: Any) -> None:
    """Give an estimator the number and the names of the features of the one that it holds."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(fitted, name):
            setattr(estimator, name, getattr(fitted, name))
        elif hasattr(estimator, name):
            delattr(estimator, name)
