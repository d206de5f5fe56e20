"""The decomposition of the CRPS of forecasts, at every threshold."""

import numpy as np

from .._numerics.sorting import pool_ties
from .._numerics.thresholds import mean_half_distance, recalibrated_brier, threshold_cells
from ..forecasts._data import ForecastData
from ._forecast_scores import losses_between

# Integrals over cells of thresholds may miss by this share of the score.
_TOLERANCE = 1e-4

# The same where a mean over many draws is wanted.
DRAW_TOLERANCE = 5e-3

# Up to this many values of discrete forecasts are looked at for steps.
_MOST_VALUES = 2**20

# Numbers of cells that are tried, one after another.
_CELLS = tuple(2**k for k in range(7, 15))


def crps_parts(data: ForecastData, tolerance: float = _TOLERANCE) -> np.ndarray:
    """Miscalibration, discrimination, uncertainty and score, (4,).

    Uncertainty and score are exact. The score of the recalibrated forecasts is an integral over
    cells, from which the error that the same cells make for the forecasts themselves is taken off.
    """
    forecast, value, weight = data.forecast, data.value, data.weight
    score = float(weight @ forecast.crps(value))
    points, mass = pool_ties(value, weight)
    if len(points) == 1:
        return np.array([score, 0.0, 0.0, score])
    uncertainty = mean_half_distance(points, mass)
    inside = float(weight @ losses_between(forecast, value, points[0], points[-1]))
    steps, recalibrated = _steps(forecast), np.inf
    for n_cells in _CELLS:
        error, before = -inside, recalibrated
        recalibrated = 0.0
        for t, width in zip(*threshold_cells(points, mass, steps, n_cells), strict=True):
            proba, event = forecast.at_threshold(t), value > t
            error += width * (weight @ (proba - event) ** 2)
            recalibrated += width * recalibrated_brier(proba, event, weight)
        recalibrated -= error
        if max(abs(error), abs(recalibrated - before)) <= tolerance * score:
            break
    recalibrated = min(max(recalibrated, 0.0), uncertainty, score)
    return np.array([score - recalibrated, uncertainty - recalibrated, uncertainty, score])


def _steps(forecast):
    """Where discrete forecasts jump, if they have few values altogether."""
    if forecast.is_continuous:
        return np.empty(0)
    n_values = forecast[:1].components().location.size * len(forecast)
    return forecast.components().location.ravel() if n_values <= _MOST_VALUES else np.empty(0)


def check_thresholds_known(data):
    """Quantiles at some levels say nothing about other thresholds."""
    levels = getattr(data.forecast, "levels", None)
    if levels is not None:
        raise ValueError(
            "score='crps' needs the probability to exceed any threshold; found quantiles at "
            f"{len(levels)} levels, which do not tell it. Pass a forecast with a distribution "
            "function, such as an EnsembleForecast."
        )
