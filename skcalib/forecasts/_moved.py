"""Forecasts moved to another location and spread, or to other levels, each kind in its way."""

from functools import singledispatch
from typing import Any

import numpy as np
from scipy.special import ndtri

from ._base import Forecast
from ._derived import AffineForecast, RecalibratedForecast, remapped_weights
from ._ensemble import EnsembleForecast, ResidualForecast
from ._gaussian import GaussianForecast, GaussianMixtureForecast
from ._quantile import QuantileForecast


@singledispatch
def affine(forecast: Forecast, centre: np.ndarray, new: np.ndarray, factor: np.ndarray) -> Forecast:
    """The forecasts of new + factor (Y − centre), of the same kind if there is one."""
    return AffineForecast(forecast, new - factor * centre, factor)


@affine.register
def _(forecast: GaussianForecast, centre: Any, new: Any, factor: Any) -> Forecast:
    return GaussianForecast(new + factor * (forecast.loc - centre), factor * forecast.scale)


@affine.register
def _(forecast: GaussianMixtureForecast, centre: Any, new: Any, factor: Any) -> Forecast:
    location = new[:, None] + factor[:, None] * (forecast.loc - centre[:, None])
    return GaussianMixtureForecast(location, factor[:, None] * forecast.scale, forecast.weights)


@affine.register
def _(forecast: EnsembleForecast, centre: Any, new: Any, factor: Any) -> Forecast:
    members = forecast.members - centre[:, None]
    return forecast._with_members(new[:, None] + factor[:, None] * members)


@affine.register
def _(forecast: ResidualForecast, centre: Any, new: Any, factor: Any) -> Forecast:
    # the spread of all rows is the same, and so is its factor
    location = new + factor[0] * (forecast.location - centre)
    return ResidualForecast(location, factor[0] * forecast.residuals, forecast.weights)


@affine.register
def _(forecast: QuantileForecast, centre: Any, new: Any, factor: Any) -> Forecast:
    values = new[:, None] + factor[:, None] * (forecast.values - centre[:, None])
    return QuantileForecast(np.maximum.accumulate(values, axis=1), forecast.levels)


@singledispatch
def centre_and_spread(forecast: Forecast) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation; median and spread of the quartiles where these are infinite."""
    mean, std = forecast.mean(), forecast.std()
    known = np.isfinite(mean) & np.isfinite(std)
    if known.all():
        return mean, std
    low, median, high = forecast.quantiles([0.25, 0.5, 0.75]).T
    spread = (high - low) / (ndtri(0.75) - ndtri(0.25))
    return np.where(known, mean, median), np.where(known, std, spread)


@centre_and_spread.register
def _(forecast: QuantileForecast) -> tuple[np.ndarray, np.ndarray]:
    levels, values = forecast.levels, forecast.values
    centre = forecast.quantiles([np.clip(0.5, levels[0], levels[-1])])[:, 0]
    width = ndtri(levels[-1]) - ndtri(levels[0])
    return centre, (values[:, -1] - values[:, 0]) / (width or 1.0)


@singledispatch
def remap(forecast: Forecast, level_map: Any) -> Forecast:
    """The forecasts R∘F; members of ensembles stay where they are, and get other weights."""
    return RecalibratedForecast(forecast, level_map)


@remap.register
def _(forecast: EnsembleForecast, level_map: Any) -> Forecast:
    members, weights = forecast._cached_order
    return EnsembleForecast(members, remapped_weights(weights, level_map))


@remap.register
def _(forecast: ResidualForecast, level_map: Any) -> Forecast:
    weights = remapped_weights(forecast.weights[None], level_map)[0]
    return ResidualForecast(forecast.location, forecast.residuals, weights)
