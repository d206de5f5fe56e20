"""Recalibration of the location and the spread of forecasts."""

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr

from .._data import ForecastData
from .._inputs.arrays import check_numbers
from .._inputs.scikit_learn import estimator_class
from .._numerics.array_api import power_of_two
from .._numerics.crps import normal_density
from .._numerics.newton import minimize_in_bounds
from ..forecasts import Forecast
from ..forecasts._base import MAX_NUMBER, ScoreWithSlope
from ..forecasts._transformed import affine, center_and_spread
from ._base import ForecastRecalibrator, check_enough_outcomes, warn_unless_inside
from ._prior import prior_share

# The least standard deviation but 0, relative to the largest number.
_MIN_RELATIVE_STD = 1e-70

# Step of the derivative of a log density, in standard deviations.
_STEP = 1e-5

# The loss of an outcome that a forecast, moved on the way to the optimum, holds to be impossible.
_MAX_LOSS = 1e6


@estimator_class()
class LocationScaleRecalibrator(ForecastRecalibrator):
    r"""Moves forecasts by a linear map of their mean, and of their variance.

    A forecast of mean μ and standard deviation σ becomes one of mean :math:`a + bμ` and variance
    :math:`c^2 + d^2σ^2`, of the same shape.

    Parameters
    ----------
    scoring : {"crps", "log_loss"}, default="crps"
        The mean score that the fit minimises: the continuous ranked probability score, or the log
        score, which takes forecasts with a density.

    scale_only : bool, default=False
        Whether only the standard deviation changes, by a factor: a = 0, b = 1, c = 0. With the log
        score of normal forecasts, d² is the mean square of (y − μ)/σ, where prior samples count 1.

    prior_weight : float, default=4.0
        Number of additional samples in the fit, for each fitted parameter. They pull the scale to
        1, and the rest to what `scale_only` finds. 0 is the minimum of the score.

    Attributes
    ----------
    intercept_ : float
        a, in the units of the outcome.

    coef_ : float
        b.

    added_std_ : float
        c ≥ 0, in the units of the outcome.

    factor_ : float
        d > 0.

    See Also
    --------
    PITRecalibrator : Corrects the shape of forecasts.
    AutoRecalibrator : Chooses one of both, both or none.

    Notes
    -----
    For normal forecasts and the CRPS this is ensemble model output statistics [1]_. Other forecasts
    are moved by :math:`y \mapsto μ' + (σ'/σ)(y - μ)`: mixtures stay mixtures, members of ensembles
    move about their mean, and quantiles about the median. Counts leave the whole numbers.

    The score is :math:`(1 - π)` times the mean score of the data, plus π times the mean score
    expected of outcomes from :math:`N(μ, s^2σ^2)` for the forecast :math:`N(a + bμ, c^2 + d^2σ^2)`.
    If only the scale is fitted, s = 1 and π = w/(n + w), with w the `prior_weight` and n the number
    of samples (:math:`1/\sum_i w_i^2` if weighted). Else s is the d of that fit, and π = 4w/(n +
    4w).

    Below some 50 samples, use `scale_only`. If tails matter, use ``scoring="log_loss"``. No
    coverage is guaranteed. The cost is that of about 30 evaluations of the score.

    References
    ----------
    .. [1] Gneiting, Raftery, Westveld and Goldman (2005). Calibrated probabilistic forecasting
       using ensemble model output statistics and minimum CRPS estimation. :doi:`10.1175/MWR2904.1`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.forecasts import GaussianForecast
    >>> from skcalib.recalibration import LocationScaleRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=10_000)
    >>> y = rng.normal(mean, 6)  # the forecast below says 1
    >>> forecast = GaussianForecast(mean, np.ones(10_000))
    >>> recalibrator = LocationScaleRecalibrator(scale_only=True).fit(forecast, y)
    >>> round(recalibrator.factor_, 1)
    6.0
    """

    scoring: Literal["crps", "log_loss"] = "crps"
    _: KW_ONLY
    scale_only: bool = False
    prior_weight: float = 4.0

    def _fit(self, data: ForecastData) -> None:
        if not self.scale_only:
            check_enough_outcomes(data, "to fit a location and a spread")
        check_numbers(data.value, "y", most=MAX_NUMBER)
        forecast, is_log = data.forecast, self.scoring == "log_loss"
        mean, std = center_and_spread(forecast)
        unit = _unit(data.value, mean, std)
        score = _make_scaled_score(
            _log_score(forecast, std) if is_log else forecast._make_crps_with_slope(), unit, is_log
        )
        prior = prior_share(data, self.prior_weight)
        value, mean, std = data.value / unit, mean / unit, std / unit
        problem = LocationScaleProblem(value, mean, std, data.weight, score, is_log, prior)
        if not forecast.is_continuous:
            problem = replace(problem, loss_rtol=_KINKED_LOSS_RTOL)
        fitted, is_inside = fit_location_scale(problem, scale_only=True)
        if not self.scale_only:
            prior = prior_share(data, 4 * self.prior_weight)  # there are four parameters
            problem = replace(problem, prior=prior, prior_factor=float(fitted[3]))
            fitted, is_inside = fit_location_scale(problem, scale_only=False)
        fitted = fitted * [unit, 1, unit, 1]
        self.intercept_, self.coef_, self.added_std_, self.factor_ = fitted.tolist()
        warn_unless_inside(self, is_inside, "the moved forecasts hit all outcomes exactly")

    def _map(self, forecast: Forecast) -> Forecast:
        mean, std = center_and_spread(forecast)
        # forecasts without spread have members that cannot be moved apart
        safe = np.where(std > 0, std, 1.0)
        ratio = np.where(std > 0, np.hypot(self.factor_, self.added_std_ / safe), 1.0)
        return affine(forecast, mean, self.intercept_ + self.coef_ * mean, ratio)


def _unit(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> float:
    """The unit of outcomes and forecasts, in which squares are finite; refuse too narrow ones."""
    largest = max(float(np.abs(values).max()) for values in (y, mean, std))
    least = float(std.min(where=std > 0, initial=np.inf))
    if least < _MIN_RELATIVE_STD * largest:
        raise ValueError(
            f"X must hold standard deviations of 0, or of at least {_MIN_RELATIVE_STD:g} times the "
            f"largest outcome or mean, as squares of ratios overflow; found {least:.3g} and "
            f"{largest:.3g}. Pass wider forecasts, or remove those that are all but certain."
        )
    return float(power_of_two(np.array([largest]), 0).item())


def _make_scaled_score(score: Any, unit: float, is_log: bool) -> Any:
    """The score of forecasts and outcomes in this unit."""

    def score_in_unit(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, slope = score(unit * y)
        return (value - np.log(unit), unit * slope) if is_log else (value / unit, slope)

    return score_in_unit


def _log_score(forecast: Forecast, std: np.ndarray) -> Any:
    """Minus the log density of each forecast, and its derivative in the outcome."""
    if not forecast.is_continuous:
        raise ValueError(
            "scoring must be 'crps' for forecasts without a density; found 'log_loss' for "
            f"{type(forecast).__name__}. Pass scoring='crps'."
        )
    step = _STEP * std

    def score(y: np.ndarray) -> tuple[Any, ...]:
        loss = np.minimum(-forecast.logpdf(y), _MAX_LOSS)
        above, below = (-forecast.logpdf(y + sign * step) for sign in (1, -1))
        is_finite = np.isfinite(above) & np.isfinite(below)
        slope = np.subtract(above, below, out=np.zeros(len(y)), where=is_finite)
        return loss, np.divide(slope, 2 * step, out=slope, where=step > 0)

    return score


# The search stops if a step lowers the loss by less than this fraction: of smooth losses, and of
# those with kinks, where steps become short long after the loss has settled.
_SMOOTH_LOSS_RTOL, _KINKED_LOSS_RTOL = 1e-15, 1e-12

# The least d, relative to that of the start: a smaller one would be a forecast without spread.
_MIN_FACTOR = 1e-4


@dataclass(frozen=True, eq=False)
class LocationScaleProblem:
    """Outcomes, and the mean and standard deviation of their forecasts, each (n,).

    `score` takes outcomes on the scale of the forecasts as they are, t = μ + σ (y − μ')/σ'. The
    loss of a moved forecast is (σ'/σ) score(t), or score(t) + log(σ'/σ) if it is a log score.
    """

    y: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    weight: np.ndarray
    score: ScoreWithSlope
    is_log: bool
    prior: float = 0.0  # fraction of the total weight carried by the prior samples
    prior_factor: float = 1.0  # by which their standard deviations exceed the predicted ones
    loss_rtol: float = _SMOOTH_LOSS_RTOL

    @cached_property
    def centre(self) -> float:
        return float(self.weight @ self.y)

    def with_prior(self, square: np.ndarray) -> np.ndarray:
        """Squares of errors (n,), averaged with those of the prior samples."""
        expected = (self.prior_factor * self.std) ** 2
        return square + self.prior * (self.std > 0) * (expected - square)

    @cached_property
    def unit(self) -> float:
        """Standard deviation of the outcomes and prior samples, by which they are divided."""
        for values in (self.y - self.centre, self.y - self.mean):
            unit = float(np.sqrt(self.weight @ self.with_prior(values**2)))
            if unit > 0:
                return unit
        return 1.0

    def loss(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Mean loss and its gradient in (a', b, c'², d²), for standardised outcomes.

        μ' = centre + unit a' + b (μ − centre) and σ'² = unit² c'² + d² σ².
        """
        unit, has_spread = self.unit, self.std > 0
        a, b, added, factor = parameters
        shifted = self.mean - self.centre
        std = np.where(has_spread, self.std, 1.0)
        new_std = np.sqrt(unit**2 * added + factor * std**2)
        ratio = np.where(has_spread, new_std / std, 1.0)
        gap = self.y - (self.centre + unit * a + b * shifted)
        value, slope = self.score(self.mean + gap / ratio)
        if self.is_log:
            size, losses = 1.0, value + np.log(ratio)
            by_location = -slope / ratio
            by_ratio = (1 - slope * gap / ratio) / ratio
        else:
            size, losses = unit, ratio * value
            by_location = -slope
            by_ratio = value - slope * gap / ratio
        by_variance = np.where(has_spread, by_ratio / (2 * std**2 * ratio), 0.0)
        if self.prior:
            shift = self.y - gap - self.mean
            expected = _normal_score_mean(shift, self.prior_factor * std, new_std, self.is_log)
            for observed, other in zip((losses, by_location, by_variance), expected, strict=True):
                observed += self.prior * has_spread * (other - observed)
        by_parameter = [
            by_location * unit,
            by_location * shifted,
            by_variance * unit**2,
            by_variance * std**2,
        ]
        gradient = np.array([self.weight @ values for values in by_parameter])
        return float(self.weight @ losses) / size, gradient / size

    def starts(self) -> list[float]:
        """Starts of d²: the mean square of z, and the mean square of errors over that of σ.

        If they are tiny but for the prior samples, the optimum of the CRPS can be where they are.
        If one is huge, it can be where the others, or the prior, are: near the predicted spread.
        """
        square, mean_variance = (self.y - self.mean) ** 2, self.weight @ self.std**2
        candidates: list[float] = []
        predicted = (self.prior_factor * self.std) ** 2
        for errors in (self.with_prior(square), square, predicted):
            z = np.divide(errors, self.std**2, out=np.zeros(len(errors)), where=self.std > 0)
            starts = [float(self.weight @ z)]
            if mean_variance > 0 and np.ptp(self.std) > 0:  # else it would be the same start again
                starts.append(float(self.weight @ errors / mean_variance))
            limit = _MIN_FACTOR * min(candidates, default=np.inf)
            candidates += [start for start in starts if 0 < start < limit]
            if self.is_log:  # whose optimum is near the first
                break
        return candidates or [1.0]


def _normal_score_mean(
    shift: np.ndarray, outcome_std: np.ndarray, std: np.ndarray, is_log: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean score of N(shift, std²) for outcomes of N(0, drawn²), each (n,).

    Also its derivatives in the shift and in std².
    """
    if is_log:
        square = (shift**2 + outcome_std**2) / std**2
        return np.log(std) + square / 2, shift / std**2, (1 - square) / (2 * std**2)
    total = np.hypot(outcome_std, std)
    z = shift / total
    density = normal_density(z)
    value = 2 * total * density + shift * (1 - 2 * ndtr(-z)) - std / np.sqrt(np.pi)
    return value, 2 * ndtr(z) - 1, density / total - 1 / (2 * np.sqrt(np.pi) * std)


def fit_location_scale(
    problem: LocationScaleProblem, *, scale_only: bool
) -> tuple[np.ndarray, bool]:
    """(a, b, c, d) of the least mean score, and whether it leaves the forecasts some spread.

    The free parameters are a, b, c² and d², so that c = 0 is no saddle point.
    """
    free = slice(3, 4) if scale_only else slice(0, 4)
    first = np.array([0.0, 1.0, 0.0, 1.0])
    bounds = [(None, None), (None, None), (0.0, None), (_MIN_FACTOR**2, None)]
    fits = []
    for start in problem.starts():
        units = np.array([1.0, 1.0, 1.0, start])

        def loss(values: np.ndarray, units: np.ndarray = units) -> tuple[float, np.ndarray]:
            parameters = first.copy()
            parameters[free] = values
            value, gradient = problem.loss(parameters * units)
            return value, (gradient * units)[free]

        result = minimize_in_bounds(
            loss, first[free], bounds[free], loss_rtol=problem.loss_rtol, gradient_atol=1e-9
        )
        parameters = first.copy()
        parameters[free] = result.x
        is_inside = bool(parameters[2] > 0 or parameters[3] > _MIN_FACTOR**2)
        fits.append((float(result.fun), parameters * units, is_inside))
    _, (a, b, added, factor), is_inside = min(fits, key=lambda one: one[0])
    a = problem.unit * a + (1 - b) * problem.centre
    return np.array([a, b, problem.unit * np.sqrt(added), np.sqrt(factor)]), is_inside
