"""Regression of outcomes on the mean and the spread of forecasts: model output statistics."""

from dataclasses import KW_ONLY
from numbers import Real
from typing import Literal

import numpy as np

from .._data import ForecastData
from .._inputs.arrays import check_numbers
from .._inputs.scikit_learn import Interval, estimator_class
from .._numerics.array_api import power_of_two
from .._numerics.crps import LOGISTIC, NORMAL, crps_above_with_slopes
from .._numerics.newton import minimize_in_bounds
from ..forecasts import CensoredForecast, Forecast, GaussianForecast, LogisticForecast
from ..forecasts._base import MAX_NUMBER
from ..forecasts._transformed import center_and_spread
from ._base import ForecastRecalibrator, check_enough_outcomes, warn_unless_inside
from ._prior import prior_share

_FAMILIES = {"normal": (GaussianForecast, NORMAL), "logistic": (LogisticForecast, LOGISTIC)}

# Smaller spreads count as this share of their root mean square, as 0 has no logarithm.
_MIN_SPREAD_SHARE = 0.01

# The least scale, relative to that of the errors of a linear regression on the mean.
_MIN_SCALE_SHARE = 1e-6

# The least error of that regression, relative to the standard deviation of the outcomes.
_MIN_ERROR_SHARE = 1e-8

# Outcomes of prior samples: of all normal forecasts the standard one has the least mean CRPS.
_PRIOR_OUTCOMES = np.array([-1.0757, 0.0, 1.0757])

# The mean distance of a standard normal variable from 0.
_MEAN_DISTANCE = np.sqrt(2 / np.pi)

# Exponents of the spread at which the search begins, and the largest one.
_STARTS, _MAX_EXPONENT = (0.0, 1.0), 2.0

# The penalty of the exponent d is this number times (d − 1)², as spreads that hardly vary say
# nothing of d. Samples whose spreads vary by a factor of 1.5 would penalise it as much.
_EXPONENT_PENALTY = 0.02


@estimator_class()
class NonhomogeneousRegressionRecalibrator(ForecastRecalibrator):
    r"""Regression on the mean and the spread of an ensemble, known as EMOS.

    Ensemble model output statistics [1]_, [2]_ are normal or logistic forecasts whose location is a
    linear function of the ensemble's mean m, and whose scale is a function of its standard
    deviation s.

    Parameters
    ----------
    family : {"normal", "logistic"}, default="normal"
        The distributions; logistic ones have heavier tails.

    spread : {"power", "affine"}, default="power"
        The scale σ: "power" is :math:`\log σ = c + d \log s` with d ≤ 2, "affine" is :math:`σ = c +
        d s`.

    censored_at : float, default=None
        Least possible outcome, such as 0 for rain: forecasts are censored there (see
        :class:`~skcalib.forecasts.CensoredForecast`), in the fit as well. None for no bound.

    prior_weight : float, default=8.0
        Number of additional samples in the fit, for each of the four parameters, with the outcomes
        that the ensemble predicts but for a factor of its spread. 0 is the minimum of the score.

    Attributes
    ----------
    intercept_, coef_ : float
        a and b of the location :math:`a + bm`.

    scale_intercept_, scale_coef_ : float
        c and d ≥ 0 of the scale σ: the standard deviation of normal forecasts, and
        :math:`\sqrt{3}/π` times that of logistic ones.

    min_spread_ : float
        Spreads below count as this one: a hundredth of the root mean square of all at fit.

    spread_range_ : tuple of float
        The least and the largest spread s at fit. With d > 1, "power" makes σ proportional to s
        beyond them.

    See Also
    --------
    LocationScaleRecalibrator : Keeps the shape of the forecasts, and the power of the spread.
    PITRecalibrator : Corrects the shape that is left, by a map of levels.

    Notes
    -----
    The fit minimises the mean continuous ranked probability score (CRPS). Transform skewed outcomes
    first, such as precipitation by a square root. Forecasts of any kind are allowed: m and s are
    their mean and standard deviation.

    Prior samples have the outcomes m and :math:`m \pm 1.08fs`, where f is 1.25 times the mean of
    :math:`|y - m|` over that of s, with `prior_weight` samples of f = 1 among them. Spreads that
    hardly vary say nothing of d: "power" adds :math:`0.02 e π (d - 1)^2` to the score, where e is
    the root mean square error of a linear regression on m, and π the share of the prior samples in
    all.

    A spread s beyond those of the fit changes σ at most in proportion to s: where d > 1, the power
    is :math:`\log σ = c + \log s + (d - 1) \log s'`, with s' the nearest spread of the fit.

    The cost is that of some 50 evaluations of the score.

    References
    ----------
    .. [1] Gneiting, Raftery, Westveld and Goldman (2005). Calibrated probabilistic forecasting
       using ensemble model output statistics and minimum CRPS estimation. :doi:`10.1175/MWR2904.1`
    .. [2] Messner, Mayr and Zeileis (2016). Heteroscedastic censored and truncated regression with
       crch. The R Journal. :doi:`10.32614/RJ-2016-012`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.forecasts import EnsembleForecast
    >>> from skcalib.recalibration import NonhomogeneousRegressionRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> signal, spread = rng.normal(size=(2, 20_000)) ** 2
    >>> members = signal[:, None] + spread[:, None] * rng.normal(size=(20_000, 50))
    >>> y = 1 + signal + 2 * np.sqrt(spread) * rng.normal(size=20_000)
    >>> recalibrator = NonhomogeneousRegressionRecalibrator().fit(EnsembleForecast(members), y)
    >>> round(recalibrator.intercept_, 1), round(recalibrator.scale_coef_, 1)
    (1.0, 0.5)
    """

    _parameter_constraints = {
        "censored_at": [Interval(Real, -MAX_NUMBER, MAX_NUMBER, closed="both"), None]
    }

    family: Literal["normal", "logistic"] = "normal"
    spread: Literal["power", "affine"] = "power"
    _: KW_ONLY
    censored_at: float | None = None
    prior_weight: float = 8.0

    def _fit(self, data: ForecastData) -> None:
        check_enough_outcomes(data, "to fit a location and a spread")
        data = data.take(data.canonical_order())  # sums are the same in any order of the rows
        y = check_numbers(data.value, "y", most=MAX_NUMBER)
        lower = -np.inf if self.censored_at is None else float(self.censored_at)
        if y.min() < lower:
            raise ValueError(
                f"y must be at least censored_at={lower:g}; found {y.min():.6g}. Pass the least "
                "possible outcome, or clip the outcomes."
            )
        mean, std = center_and_spread(data.forecast)
        largest = max(float(np.abs(values).max()) for values in (y, mean, std))
        unit = power_of_two(np.array([largest]), 0).item()  # in which squares are finite
        y, mean, std = y / unit, mean / unit, std / unit
        distance = float(data.weight @ np.abs(y - mean)) / _MEAN_DISTANCE
        typical_spread = float(np.sqrt(data.weight @ std**2))
        min_spread = _MIN_SPREAD_SHARE * typical_spread or distance or 1.0
        std = np.maximum(std, min_spread)
        share = prior_share(data, self.prior_weight)
        factor = (1 - share) * distance / float(data.weight @ std) + share
        share = prior_share(data, 4 * self.prior_weight)  # there are four parameters
        is_power = self.spread == "power"
        prior = _PRIOR_OUTCOMES if share else np.empty(0)
        outcomes = np.column_stack([y, mean[:, None] + factor * std[:, None] * prior])
        shares = np.array([1 - share, *np.full(len(prior), share / 3)])
        sample = (
            np.maximum(outcomes, lower / unit).ravel(),
            np.repeat(mean, len(shares)),
            np.repeat(std, len(shares)),
            np.outer(data.weight, shares).ravel(),
        )
        (a, b, c, d), is_inside = self._minimize(sample, lower / unit, share)
        self.intercept_, self.coef_, self.scale_coef_ = unit * a, b, d
        self.scale_intercept_ = c + (1 - d) * np.log(unit) if is_power else unit * c
        self.min_spread_ = unit * min_spread
        self.spread_range_ = unit * float(std.min()), unit * float(std.max())
        warn_unless_inside(self, is_inside, "a line through the means hits all outcomes exactly")

    def _minimize(
        self, sample: tuple[np.ndarray, ...], lower: float, share: float
    ) -> tuple[list[float], bool]:
        """(a, b, c, d) of the least mean score, and whether some spread is left.

        The sample is that of outcomes, means, standard deviations and weights, each (n,).
        """
        y, mean, std, weight = sample
        law, is_power = _FAMILIES[self.family][1], self.spread == "power"
        penalty = is_power * share * _EXPONENT_PENALTY
        centre, typical = float(weight @ mean), float(np.exp(weight @ np.log(std)))
        width = float(np.sqrt(weight @ (mean - centre) ** 2)) or 1.0
        x, ratio = (mean - centre) / width, std / typical
        log_ratio = np.log(ratio)
        a, b = float(weight @ y), float(weight @ (x * y)) if x.any() else 1.0
        error, deviation = (float(np.sqrt(weight @ (y - a - slope * x) ** 2)) for slope in (b, 0.0))
        is_inside = error > _MIN_ERROR_SHARE * deviation  # less is rounding
        error = max(error, _MIN_ERROR_SHARE * deviation) or 1.0
        least = _MIN_SCALE_SHARE * error

        def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            a, b, c, d = parameters
            scale = np.exp(c + d * log_ratio) if is_power else c + d * ratio
            by_c, by_d = (scale, scale * log_ratio) if is_power else (1.0, ratio)
            values, by_location, by_scale = crps_above_with_slopes(y, a + b * x, scale, lower, law)
            slopes = [by_location, by_location * x, by_scale * by_c, by_scale * by_d]
            gradient = np.array([weight @ slope for slope in slopes])
            gradient = gradient / error + [0, 0, 0, 2 * penalty * (d - 1)]
            return float(weight @ values) / error + penalty * (d - 1) ** 2, gradient

        lowest, most = (np.log(least), _MAX_EXPONENT) if is_power else (least, None)
        bounds = [(None, None), (None, None), (lowest, None), (0.0, most)]
        fits = []
        for d in _STARTS:
            c = np.log(error) if is_power else max(least, (1 - d) * error)
            start = [a, b, c, d * (is_power or error)]
            fits.append(
                minimize_in_bounds(loss, start, bounds, loss_rtol=1e-15, gradient_atol=1e-10)
            )
        a, b, c, d = min(fits, key=lambda fit: fit.fun).x.tolist()
        b /= width
        c, d = (c - d * np.log(typical), d) if is_power else (c, d / typical)
        return [a - b * centre, b, c, d], is_inside

    def _map(self, forecast: Forecast) -> Forecast:
        mean, std = center_and_spread(forecast)
        std = np.maximum(std, self.min_spread_)
        if self.spread == "power":
            nearest, d = np.clip(std, *self.spread_range_), self.scale_coef_
            logs = min(d, 1) * np.log(std) + max(d - 1, 0) * np.log(nearest)
            scale = np.exp(self.scale_intercept_ + logs)
        else:
            scale = self.scale_intercept_ + self.scale_coef_ * std
        result = _FAMILIES[self.family][0](self.intercept_ + self.coef_ * mean, scale)
        return result if self.censored_at is None else CensoredForecast(result, self.censored_at)
