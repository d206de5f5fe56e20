"""Predictive distributions of a number: normal, mixtures, ensembles, quantiles, any other."""

from .._guesses import guess_other_names
from ._as_forecast import as_forecast
from ._base import Components as Components, Forecast as Forecast
from ._censored import CensoredForecast
from ._distribution import DistributionForecast
from ._ensemble import EnsembleForecast, ResidualForecast
from ._estimators import get_forecast
from ._gaussian import GaussianForecast, GaussianMixtureForecast
from ._imputation import impute_censored
from ._logistic import LogisticForecast
from ._quantile import QuantileForecast
from ._transformed import concatenate

__all__ = [
    "CensoredForecast",
    "DistributionForecast",
    "EnsembleForecast",
    "GaussianForecast",
    "GaussianMixtureForecast",
    "LogisticForecast",
    "QuantileForecast",
    "ResidualForecast",
    "as_forecast",
    "concatenate",
    "get_forecast",
    "impute_censored",
]


guess_other_names(__name__)
