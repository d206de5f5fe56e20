"""Recalibration of the levels of forecasts, by their probability integral transform."""

from typing import Any

import numpy as np

from .._inputs.scikit_learn import StrOptions
from .._numerics.pit_maps import fit_beta, fit_beta_to_intervals, fit_conformal
from ..forecasts import EnsembleForecast, Forecast, ResidualForecast
from ..forecasts._data import ForecastData
from ..forecasts._derived import AffineForecast
from ..forecasts._transformed import remap
from ._base import ForecastRecalibrator, check_enough_outcomes, warn_unless_inside

# The log-odds of the least positive number.
_FARTHEST = 744.0


class PITRecalibrator(ForecastRecalibrator):
    r"""Maps the levels of forecasts, so that the outcomes' levels are uniform.

    A forecast of cdf F becomes one of cdf R∘F. The map R is learnt from the probability integral
    transforms u = F(y) of outcomes, and is the same for all samples.

    Parameters
    ----------
    method : {"conformal", "beta"}, default="conformal"
        "conformal": R has the value k/(n + 1) at the k-th smallest of n transforms; its intervals
        have guaranteed coverage (see Notes), and it has no density. It takes continuous forecasts.
        "beta": a smooth map of three parameters, so that forecasts with a density keep one; it
        also takes ensembles, whose members get other weights, and discrete forecasts.

    Attributes
    ----------
    map_ : object
        The fitted map R, a function of log u − log(1 − u).

    See Also
    --------
    LocationScaleRecalibrator : Comes first if standard deviations are much too small.
    QuantileRecalibrator : The same guarantee for the quantiles of any forecast.

    Notes
    -----
    **Conformal** is the recalibration of [1]_, whose isotonic fit is the empirical distribution of
    the transforms, with n + 1 in place of n. The transforms are sorted, and interpolated, on the
    scale :math:`\log u - \log(1 - u)`, where outcomes that are far out stay apart whose u rounds to
    0 or 1. `quantiles` and `interval` of the result are those of ranks: the
    quantile at the level α is :math:`F^{-1}(u_{(k)})` with :math:`k = \lceil (n+1)α \rceil`, and

    .. math:: α \le P(y \le F^{-1}(u_{(k)})) \le α + \frac{1}{n + 1},

    and an interval between the ranks :math:`\lfloor (n+1)(1-p)/2 \rfloor` and :math:`\lceil (n+1)
    (1+p)/2 \rceil` covers at least p. Where such a rank does not exist the end is infinite. This
    holds exactly if the samples here and new ones are exchangeable, have equal weights, and were
    used neither to fit the model, nor for any step before this one, nor to choose it; the
    upper bound also needs transforms without ties. It is a statement on average over samples, not
    for each. With unequal weights, rank k has the level :math:`\sum_{i \le k} w_i/(1 + \sum_i
    w_i^2)`, and nothing is guaranteed.

    `cdf`, `ppf`, the mean, the score and all else interpolate between ranks, and continue
    beyond the outermost ones with the tails of the base forecast; the bounds are not theirs.

    **Beta** is :math:`\mathrm{logit}\, R(u) = a \log u - b \log(1 - u) + c` with a, b > 0, the map
    of :class:`BetaRecalibrator` [2]_, by the largest mean of :math:`\log R'(u)`. The density is
    :math:`f R'(F)`. For ensembles and discrete forecasts the likelihood is that of the intervals in
    which the transforms lie; these of an ensemble whose weights have the effective size
    :math:`s = 1/\sum_k w_k^2` are :math:`[sF(y-), sF(y) + 1]/(s + 1)`.

    Neither can mend standard deviations that are many times too small, as all that counts
    lies in the tails then: a :class:`LocationScaleRecalibrator` must come first. The cost is
    that of sorting, or of some 20 sums over the samples.

    References
    ----------
    .. [1] Kuleshov, Fenner and Ermon (2018). Accurate uncertainties for deep learning using
       calibrated regression. :arxiv:`1807.00263`
    .. [2] Kull, Silva Filho and Flach (2017). Beta calibration. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.forecasts import GaussianForecast
    >>> from skcalib.recalibration import PITRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> y = rng.exponential(size=199)
    >>> forecast = GaussianForecast(np.ones(199), np.ones(199))
    >>> recalibrated = PITRecalibrator().fit(forecast, y).transform(forecast)
    >>> recalibrated.quantiles([0.1, 0.5, 0.9])[0].round(2)
    array([0.11, 0.8 , 2.64])
    """

    _parameter_constraints: dict = {"method": [StrOptions({"conformal", "beta"})]}

    def __init__(self, method: str = "conformal") -> None:
        self.method = method

    def _fit(self, data: ForecastData) -> None:
        forecast, weight = data.forecast, data.weight
        if forecast._is_grid:
            raise ValueError(
                "X must be a forecast with a cdf; found QuantileForecast, which has levels only. "
                "Use QuantileRecalibrator."
            )
        if self.method == "conformal":
            self.map_: Any = fit_conformal(check_log_odds(data), weight)
            return
        check_enough_outcomes(data, 2, "to fit a curve")
        if forecast.is_continuous:
            self.map_, is_inside = fit_beta(check_log_odds(data), weight)
        else:
            lower, upper = _level_intervals(data)
            self.map_, is_inside = fit_beta_to_intervals(lower, upper, weight)
        warn_unless_inside(self, is_inside, "the transforms are too few or too much alike")

    def _map(self, forecast: Forecast) -> Forecast:
        if forecast._is_grid:
            raise ValueError(
                "X must be a forecast with a cdf, as at fit; found QuantileForecast. Use "
                "QuantileRecalibrator."
            )
        if not self.map_.has_density:
            check_continuous(forecast)
        return remap(forecast, self.map_)


def check_continuous(forecast: Forecast) -> None:
    if not forecast.is_continuous:
        raise ValueError(
            f"X must be a continuous forecast for method='conformal'; found "
            f"{type(forecast).__name__}, by which single outcomes have positive probability, so "
            "that ranks tie. Pass method='beta', or use QuantileRecalibrator(levels=...)."
        )


def check_log_odds(data: ForecastData) -> np.ndarray:
    """The log-odds (n,) of the outcomes' levels, which must be finite."""
    check_continuous(data.forecast)
    z = data.forecast.log_odds(data.value)
    if isinstance(data.forecast, AffineForecast):  # which may have moved the support
        z = np.clip(z, -_FARTHEST, _FARTHEST)
    if not np.isfinite(z).all():
        row = int(np.argmin(np.isfinite(z)))
        raise ValueError(
            f"y must hold outcomes that are possible by their forecasts; found "
            f"{data.value[row]:.6g} in row {row}, whose level is 0 or 1. Use forecasts with wider "
            "support, or a LocationScaleRecalibrator before this one."
        )
    return z


def _level_intervals(data: ForecastData) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of positive length in which the outcomes' levels lie."""
    forecast = data.forecast
    lower, upper = forecast.pit_bounds(data.value)
    if forecast.is_exchangeable:
        return lower, upper
    if isinstance(forecast, EnsembleForecast | ResidualForecast):
        size = 1 / (forecast.weights**2).sum(axis=-1)
        return size * lower / (size + 1), (size * upper + 1) / (size + 1)
    return lower, upper
