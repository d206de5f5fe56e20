"""The omnibus statistic of forecasts: matching of outcomes and of PITs, bias and spread."""

from dataclasses import replace

import numpy as np

from .._data import ForecastData
from .._numerics.pit import normal_scores
from ..forecasts import Forecast
from .base import Statistic
from .matching import MatchingError
from .matching_checks import MatchingOptions, check_matching
from .matching_features import pit_intervals
from .omnibus import Omnibus

# Principal components of the quantiles that tell forecasts apart: mostly location, spread and
# shape, which of exchangeable members is mostly chance. Those that vary by less than this share of
# the first one are rounding.
_N_PROPERTIES, _OF_MEMBERS = 3, 2
_SINGULAR_VALUE_RTOL = 1e-6


class BiasAndSpread(Statistic):
    """Finds forecasts that are too low or high, too narrow or wide, or skewed: the largest score.

    The normal scores z of PITs, and z² − 1, are summed over all samples, and with each property of
    the forecasts, or column of features, as a factor; z³ − 3z over all samples. The sums are
    squared and divided by their variances.
    """

    supports = frozenset({"any-order", "groups"})
    tie_tolerance = 1e-9

    def __init__(self, error: MatchingError) -> None:
        self.data, self.error = error.data, error
        ones = np.ones(len(error.mass))
        columns = np.column_stack([ones, error.given.points]) * self.data.weight[:, None]
        deviation = np.sqrt(np.sum(columns**2, axis=0))
        self.columns = columns / np.where(deviation > 0, deviation, np.inf)

    def standardized_sums(self, values: np.ndarray) -> np.ndarray:
        """Standardised sums of z, z² − 1 and z³ − 3z for outcomes (R, n), (3, R, C)."""
        return self._sum_scores(self._scores(values))

    def _sum_scores(self, scores: np.ndarray) -> np.ndarray:
        """Sums of scores (3, R, n), (3, R, C); those of the third with properties count as 0."""
        sums = scores @ self.columns
        sums[2, :, 1:] = 0.0
        return sums

    def _scores(self, values: np.ndarray) -> np.ndarray:
        return normal_scores(*pit_intervals(self.error.forecast, values))

    def __call__(self, outcomes: np.ndarray) -> np.ndarray:
        sums = self.standardized_sums(self.error.to_component_scale(outcomes))
        return np.max(sums**2, axis=(0, 2))

    def flip_signs(self, signs: np.ndarray) -> np.ndarray:
        sums = self._sum_scores(signs * self._scores(self.error.observed[None]))
        return np.max(sums**2, axis=(0, 2))


class ForecastOmnibus(Omnibus):
    """The values of the components of forecasts, (R, C).

    Outcomes are compared with forecasts given the mean and standard deviation, and PITs with the
    uniform distribution given three properties of the forecasts; or both given features.
    """

    def __init__(self, data: ForecastData) -> None:
        self.data, self.kernel_method = data, "exact"
        estimation = "unbiased" if len(data.weight) > 1 else "biased"
        form, self.components = "distribution", {}
        points = data.given
        if points is not None and points.dtype.kind not in "biuf":  # labels of groups
            form, points = "group", (points[:, None] == np.unique(points)).astype(np.float64)
        if points is not None or has_moments(data.forecast):
            options = MatchingOptions(calibration=form, estimation=estimation)
            check_matching(data, options)
            self.components["skce"] = MatchingError(data, **vars(options))
        if points is None:
            pooled = MatchingError(data, calibration="quantile").forecast
            points = quantile_components(pooled, data.weight)
            points = points[:, : _OF_MEMBERS if data.forecast.is_exchangeable else _N_PROPERTIES]
        form = "local" if points.size else "quantile"
        error = MatchingError(replace(data, given=points), calibration=form, estimation=estimation)
        self.components |= {"pit": error, "bias_and_spread": BiasAndSpread(error)}
        self.weights = [0.5 if name == "skce" else 1.0 for name in self.components]
        self.n_columns = len(self.components)
        self.min_batches = max(component.min_batches for component in self.components.values())

    @property
    def numbers_per_draw(self) -> int:
        return max(component.numbers_per_draw for component in self.components.values())

    with_data = Statistic.with_data  # made from the data alone


def quantile_components(forecast: Forecast, weight: np.ndarray) -> np.ndarray:
    """Numbers that tell forecasts apart, (n, d): principal components of their quantiles.

    The distances of all components together are Wasserstein distances.
    """
    points = forecast._wasserstein_points()
    root = np.sqrt(weight)[:, None]
    left, size, _ = np.linalg.svd(root * (points - weight @ points), full_matrices=False)
    largest = np.maximum(size[0], np.abs(points).max() * _SINGULAR_VALUE_RTOL)
    return (left / root)[:, size > _SINGULAR_VALUE_RTOL * largest]


def has_moments(forecast: Forecast) -> bool:
    """True if forecasts have the moments that tell which are similar; some have no finite mean."""
    try:
        forecast._parameters()
    except ValueError:
        return False
    return True
