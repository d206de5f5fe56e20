"""Forecasts with a least outcome that has a positive probability, such as no rain."""

from typing import Any, ClassVar

import numpy as np

from .._inputs.arrays import ArrayLike, check_numbers
from ._as_forecast import as_forecast
from ._base import MAX_NUMBER, Forecast
from ._derived import ppf_log_odds
from ._thresholds import Bound, threshold_weighted_crps
from ._transformed import affine, apply_level_map


class CensoredForecast(Forecast):
    r"""Forecasts of max(Y, lower): what would lie below a bound is moved onto it.

    Rain is the usual case: a normal forecast of its square root, censored at 0.

    Parameters
    ----------
    forecast : forecast of shape (n_samples,)
        The forecasts of Y, continuous: whatever :func:`as_forecast` takes.

    lower : float or array-like of shape (n_samples,), default=0.0
        The bound, in the units of the outcome.

    Attributes
    ----------
    base : Forecast
        The forecasts of Y.

    lower : ndarray of shape (n_samples,)
        The bounds.

    See Also
    --------
    EnsembleForecast : Takes members that are clipped, ``np.maximum(members, lower)``.
    skcalib.recalibration.NonhomogeneousRegressionRecalibrator : Fits such forecasts to ensembles.

    Notes
    -----
    The bound has the probability F(lower). There `logpdf` is the logarithm of this probability, and
    above it that of the density. Outcomes below the bound are impossible. The probability integral
    transform of an outcome at the bound is drawn uniformly from [0, F(lower)].

    :meth:`crps` is the integral of :math:`(F(t) - 1[y \le t])^2` over t from the bound up: a closed
    form for normal forecasts, their mixtures and logistic ones, and quadrature for others.

    References
    ----------
    .. [1] Thorarinsdottir and Gneiting (2010). Probabilistic forecasts of wind speed.
       :doi:`10.1111/j.1467-985X.2009.00616.x`

    Examples
    --------
    >>> from skcalib.forecasts import CensoredForecast
    >>> forecast = CensoredForecast(([-1.0, 2.0], [1.0, 1.0]))
    >>> forecast.cdf(0.0).round(3)
    array([0.841, 0.023])
    >>> forecast.ppf(0.5)
    array([0., 2.])
    >>> forecast.crps([0.0, 1.0]).round(3)
    array([0.007, 0.602])
    """

    is_continuous = False

    _row_attributes: ClassVar[tuple[str, ...]] = ("base", "lower")

    def __init__(self, forecast: Forecast, lower: ArrayLike = 0.0) -> None:
        self.base = as_forecast(forecast, name="forecast")
        if not self.base.is_continuous:
            raise ValueError(
                "forecast must be continuous, so that only the bound has a positive probability; "
                f"found {type(self.base).__name__}. Clip the members of an ensemble: "
                "EnsembleForecast(np.maximum(members, lower))."
            )
        bound = check_numbers(lower, "lower", most=MAX_NUMBER)
        if bound.shape not in ((), (len(self.base),)):
            raise ValueError(
                f"lower must be a number, or have one value for each of the {len(self.base)} "
                f"forecasts; found shape {bound.shape}. Pass 0 for outcomes such as rain."
            )
        self.lower = np.broadcast_to(bound, (len(self.base),)).copy()

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return np.where(y < self.lower[:, None], 0.0, self.base._cdf(y))

    def _sf(self, y: np.ndarray) -> np.ndarray:
        return np.where(y < self.lower[:, None], 1.0, self.base._sf(y))

    def _logcdf(self, y: np.ndarray) -> np.ndarray:
        return np.where(y < self.lower[:, None], -np.inf, self.base._logcdf(y))

    def _logsf(self, y: np.ndarray) -> np.ndarray:
        return np.where(y < self.lower[:, None], 0.0, self.base._logsf(y))

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        lower = self.lower[:, None]
        above = self.base._logpdf(np.maximum(y, lower))
        at_most = np.where(y < lower, -np.inf, self.base._logcdf(lower))
        return np.where(y > lower, above, at_most)

    def _ppf(self, level: np.ndarray) -> np.ndarray:
        return np.maximum(self.base._ppf(level), self.lower[:, None])

    def quantiles(self, levels: ArrayLike) -> np.ndarray:
        return np.maximum(self.base.quantiles(levels), self.lower[:, None])

    def interval(self, coverage: float) -> tuple[np.ndarray, np.ndarray]:
        low, high = (np.maximum(end, self.lower) for end in self.base.interval(coverage))
        return low, high

    def _kink_levels(self) -> np.ndarray:
        return np.column_stack([super()._kink_levels(), self.base._cdf(self.lower[:, None])])

    def _sample(self, generator: np.random.Generator, size: int) -> np.ndarray:
        return np.maximum(self.base._sample(generator, size), self.lower[:, None])

    def _pit_bounds(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        upper = self._cdf(y[:, None])[:, 0]
        return np.where(y <= self.lower, 0.0, upper), upper

    def _crps(self, y: np.ndarray) -> np.ndarray:
        return threshold_weighted_crps(self, y, -np.inf, np.inf)

    def _support(self) -> tuple[Any, Any]:
        return self.lower, np.maximum(self.lower, self.base._support()[1])

    def _sort_keys(self) -> list[np.ndarray]:
        return [*self.base._sort_keys(), self.lower]


@threshold_weighted_crps.register
def _(forecast: CensoredForecast, y: np.ndarray, low: Bound, high: Bound) -> np.ndarray:
    first, y_above = np.maximum(low, forecast.lower), np.maximum(y, forecast.lower)
    first = np.minimum(first, high)
    above = threshold_weighted_crps(forecast.base, y_above, first, np.broadcast_to(high, y.shape))
    return above + np.maximum(first - np.maximum(y, low), 0.0)  # below the bound, the cdf is 0


@affine.register
def _(forecast: CensoredForecast, centre: Any, new: Any, factor: Any) -> Forecast:
    lower = new + factor * (forecast.lower - centre)
    return CensoredForecast(affine(forecast.base, centre, new, factor), lower)


@apply_level_map.register
def _(forecast: CensoredForecast, level_map: Any) -> Forecast:
    return CensoredForecast(apply_level_map(forecast.base, level_map), forecast.lower)


@ppf_log_odds.register
def _(forecast: CensoredForecast, z: np.ndarray) -> np.ndarray:
    return np.maximum(ppf_log_odds(forecast.base, z), forecast.lower[:, None])
