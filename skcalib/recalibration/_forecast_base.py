"""The base class of recalibrators of forecasts."""

from abc import ABCMeta, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._inputs.scikit_learn import fit_context
from .._inputs.warnings import warn
from ..forecasts import Forecast, as_forecast
from ..forecasts._data import ForecastData, check_forecasts


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
        data = check_forecasts(y, self.transform(X), sample_weight=sample_weight, names=("y", "X"))
        return -float(data.weight @ data.forecast.crps(data.value))

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


class IdentityForecastRecalibrator(ForecastRecalibrator):
    """No recalibration: forecasts stay as they are.

    It stands for "none" where a recalibrator is expected, such as in a grid search.

    See Also
    --------
    AutoForecastRecalibrator : Chooses a recalibrator, or none.

    Examples
    --------
    >>> from skcalib.forecasts import GaussianForecast
    >>> from skcalib.recalibration import IdentityForecastRecalibrator
    >>> forecast = GaussianForecast([0.0, 1.0], 1.0)
    >>> IdentityForecastRecalibrator().fit(forecast, [0.3, 0.4]).transform(forecast).mean()
    array([0., 1.])
    """

    def _fit(self, data: ForecastData) -> None:
        self.is_fitted_ = True

    def _map(self, forecast: Forecast) -> Forecast:
        return forecast


class RecalibratorChain(ForecastRecalibrator):
    """Recalibrators one after another, each fitted on what the one before it returns.

    Unlike a pipeline it hands the weights to all of them.
    """

    def __init__(self, first: Any, second: Any) -> None:
        self.first = first
        self.second = second

    def _fit(self, data: ForecastData) -> None:
        self.first_ = fitted_on(self.first, data)
        moved = self.first_.transform(data.forecast)
        self.second_ = fitted_on(self.second, ForecastData(moved, data.value, data.weight))

    def _map(self, forecast: Forecast) -> Forecast:
        return self.second_.transform(self.first_.transform(forecast))


def fitted_on(recalibrator: Any, data: ForecastData, rows: Any = slice(None)) -> Any:
    """A copy of the recalibrator, fitted on some rows; without weights if they are equal."""
    weight = data.weight
    weights = {} if np.ptp(weight) == 0 else {"sample_weight": weight[rows] * len(weight)}
    return clone(recalibrator).fit(data.forecast[rows], data.value[rows], **weights)


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
