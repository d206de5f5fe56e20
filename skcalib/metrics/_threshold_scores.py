"""The decomposition of the CRPS of forecasts, at every threshold."""

import numpy as np

from .._numerics.sorting import pool_ties
from .._numerics.thresholds import mean_half_distance, recalibrated_brier, threshold_cells
from ..forecasts._data import ForecastData
from ._forecast_scores import losses_between

# The integral of the Brier scores over cells may miss the exact score by this share of it.
_TOLERANCE = 1e-4

# Numbers of cells that are tried, one after another.
_CELLS = tuple(2**k for k in range(9, 15))


def crps_parts(data: ForecastData) -> np.ndarray:
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
    for n_cells in _CELLS:
        middle, width = threshold_cells(points, mass, n_cells)
        brier = [weight @ (forecast.at_threshold(t) - (value > t)) ** 2 for t in middle]
        integral = float(width @ brier)
        if abs(integral - inside) <= _TOLERANCE * score:
            break
    best = [recalibrated_brier(forecast.at_threshold(t), value > t, weight) for t in middle]
    recalibrated = float(width @ best) + inside - integral
    recalibrated = min(max(recalibrated, 0.0), inside, uncertainty, score)
    return np.array([score - recalibrated, uncertainty - recalibrated, uncertainty, score])


def check_thresholds_known(data):
    """Quantiles at some levels say nothing about other thresholds."""
    levels = getattr(data.forecast, "levels", None)
    if levels is not None:
        raise ValueError(
            "score='crps' needs the probability to exceed any threshold; found quantiles at "
            f"{len(levels)} levels, which do not tell it. Pass a forecast with a distribution "
            "function, such as an EnsembleForecast."
        )
