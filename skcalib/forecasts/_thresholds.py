"""The continuous ranked probability score between two thresholds, for each kind of forecast."""

from functools import singledispatch

import numpy as np

from .._numerics.crps import crps_between, crps_ensemble, crps_mixture_between, crps_quantiles
from .._numerics.logits import iter_row_blocks
from ._base import Forecast
from ._ensemble import EnsembleForecast, ResidualForecast
from ._gaussian import GaussianMixtureForecast, LocationScaleForecast
from ._quantile import QuantileForecast

Bound = float | np.ndarray  # the same threshold for all rows, or one for each (n,)


@singledispatch
def threshold_weighted_crps(
    forecast: Forecast, y: np.ndarray, low: Bound, high: Bound
) -> np.ndarray:
    """Return ∫ (F(t) − 1[y ≤ t])² dt over t from low to high, (n,)."""
    if not forecast._is_of_counts and forecast._atoms() is not None:  # all rows have members
        return threshold_crps_of_members(forecast, y, low, high)
    kinks = [forecast.cdf(end) for end in (y, low, high) if np.isfinite(end).all()]
    levels = np.column_stack([*kinks, np.full(len(y), 0.5)])  # some have a kink at ½
    return forecast._crps_by_quantiles(y, levels, low, high)


@threshold_weighted_crps.register
def _(forecast: LocationScaleForecast, y: np.ndarray, low: Bound, high: Bound) -> np.ndarray:
    return crps_between(y, forecast.loc, forecast.scale, low, high, forecast.law)


@threshold_weighted_crps.register
def _(forecast: GaussianMixtureForecast, y: np.ndarray, low: Bound, high: Bound) -> np.ndarray:
    return crps_mixture_between(y, forecast.loc, forecast.scale, forecast.weights, low, high)


@threshold_weighted_crps.register
def _(forecast: QuantileForecast, y: np.ndarray, low: float, high: float) -> np.ndarray:
    values = np.clip(forecast.values, low, high)
    return crps_quantiles(np.clip(y, low, high), values, forecast.levels)


@threshold_weighted_crps.register(EnsembleForecast)
@threshold_weighted_crps.register(ResidualForecast)
def threshold_crps_of_members(
    forecast: Forecast, y: np.ndarray, low: Bound, high: Bound, *, fair: bool = False
) -> np.ndarray:
    """Return the CRPS of members and outcomes that are clipped to [low, high]."""
    score = np.empty(len(y))
    for block in iter_row_blocks(len(y), forecast[:1].components().location.size):
        location, _, weight = forecast[block].components()
        order = np.argsort(location, axis=1, kind="stable")
        members = np.clip(np.take_along_axis(location, order, axis=1), low, high)
        weight = np.take_along_axis(weight, order, axis=1)
        score[block] = crps_ensemble(np.clip(y[block], low, high), members, weight, fair=fair)
    return score
