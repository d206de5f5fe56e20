"""Forecasts of numbers, calibrated or wrong in known ways."""

from numbers import Real
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import nbinom, norm, poisson
from sklearn.utils import check_random_state

from .._inputs.options import check_options_of
from .._inputs.scikit_learn import Count, IntegerInterval, Interval, RandomState, validate_params
from ..forecasts import (
    DistributionForecast,
    EnsembleForecast,
    Forecast,
    GaussianForecast,
    GaussianMixtureForecast,
)

# The options of each problem.
_FORECAST_OPTIONS: dict[str, tuple[str, ...]] = {
    "gaussian": ("dispersion", "bias"),
    "ensemble": ("dispersion", "bias", "n_members"),
    "zero-inflated": ("dispersion", "bias"),
    "counts": ("overdispersion", "forecast_overdispersion"),
    "spatial": ("local_bias", "n_waves", "return_positions"),
    "ideal": (),
    "climatological": (),
    "unfocused": (),
    "sign-reversed": (),
}


@validate_params(
    {
        "dispersion": [Interval(Real, 0, None, closed="neither")],
        "bias": [Interval(Real, None, None, closed="neither")],
        "n_members": [Count(2, 10**4)],
        "overdispersion": [Interval(Real, 0, None, closed="left")],
        "forecast_overdispersion": [Interval(Real, 0, None, closed="left"), None],
        "local_bias": [Interval(Real, 0, 1, closed="left")],
        "n_waves": [IntegerInterval(1)],
    }
)
def make_forecasts(
    n_samples: int = 1000,
    *,
    problem: Literal[
        "gaussian",
        "ensemble",
        "zero-inflated",
        "counts",
        "spatial",
        "ideal",
        "climatological",
        "unfocused",
        "sign-reversed",
    ] = "gaussian",
    dispersion: float = 1.0,
    bias: float = 0.0,
    n_members: int = 10,
    overdispersion: float = 0.0,
    forecast_overdispersion: float | None = None,
    local_bias: float = 0.7,
    n_waves: int = 1,
    return_positions: bool = False,
    return_true_forecast: bool = False,
    random_state: RandomState = None,
) -> tuple[Any, ...]:
    r"""Outcomes and forecasts of them: calibrated, too narrow, biased, or wrong in places.

    With the defaults all are calibrated, except those of "unfocused", "sign-reversed" and
    "spatial".

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.

    problem : {"gaussian", "ensemble", "zero-inflated", "counts", "spatial", "ideal", \
            "climatological", "unfocused", "sign-reversed"}, default="gaussian"
        What is forecast, and by whom; see the notes.

    dispersion : float, default=1.0
        Standard deviation of the forecast over the true one, for "gaussian", "ensemble" and
        "zero-inflated". Below 1 the forecasts are too narrow (overconfident), above 1 too wide.

    bias : float, default=0.0
        Mean of the forecast minus the true one, in true standard deviations, for the same problems.

    n_members : int, default=10
        Number of members of each forecast of "ensemble", at least 2.

    overdispersion : float, default=0.0
        The α by which the variance of a count exceeds its mean m, for "counts": it is :math:`m +
        \alpha m^2`. 0 draws from Poisson distributions.

    forecast_overdispersion : float or None, default=None
        The same of the forecasts. By default that of the outcomes, which makes them calibrated.

    local_bias : float in [0, 1), default=0.7
        Standard deviation of the local biases over the map, for "spatial", in standard deviations
        of the forecasts. 0 gives calibrated forecasts.

    n_waves : int, default=1
        How often the biases of "spatial" rise and fall across the map.

    return_positions : bool, default=False
        Whether to return the positions of "spatial" too.

    return_true_forecast : bool, default=False
        Whether to return the true distributions too.

    random_state : int, RandomState instance or None, default=None
        An integer gives the same outcomes for every dispersion and bias, and for each of the last
        four problems.

    Returns
    -------
    y_true : ndarray of shape (n_samples,)
        Outcomes, as float.

    y_forecast : Forecast
        The forecasts, one for each outcome.

    positions : ndarray of shape (n_samples, 2)
        Where the outcomes were observed, uniform on the unit square. Only if `return_positions` is
        True.

    true_forecast : Forecast
        The distributions that the outcomes were drawn from. Only if `return_true_forecast` is True.

    Notes
    -----
    - "gaussian": normal outcomes, some with a large and some with a small standard deviation. With
      dispersion d and bias b,

      .. math:: \mu \sim \mathrm{N}(0, 1), \quad \sigma = 4^{-u}, \; u \sim \mathrm{U}[0, 1], \quad
          y \sim \mathrm{N}(\mu, \sigma^2), \quad \text{forecast } \mathrm{N}(\mu + b \sigma,
          (d \sigma)^2).

      Without bias, the quantile calibration error (l1) of the whole distribution is :math:`|1/4 -
      \arctan(d) / \pi|`.
    - "ensemble": the same outcomes; the members of an :class:`~skcalib.forecasts.EnsembleForecast`
      are independent draws from the normal forecast.
    - "zero-inflated": amounts as of rain: outcomes and forecasts of "gaussian", with 0 in place of
      everything below.
    - "counts": Poisson or negative binomial outcomes, and forecasts of the same means, which are 10
      to the power of a uniform number in [0, 1]. The negative binomial distribution is SciPy's
      ``nbinom(1 / α, 1 / (1 + α m))``.
    - "spatial": forecasts on a map that are biased in each place, but calibrated over all places,
      even given the forecast. With forecasts :math:`\mathrm{N}(\mu, \sigma^2)` as in "gaussian",
      independent of the position s, with `local_bias` β and w waves,

      .. math:: b(s) = \frac{\beta}{\sqrt 2} \left( \Phi^{-1}(t(s_1)) + \Phi^{-1}(t(s_2)) \right),
          \quad y \sim \mathrm{N}\left(\mu + b(s) \sigma, (1 - \beta^2) \sigma^2 \right),

      where t rises linearly from 0 to 1 and falls again, w times from 0 to 1.

    The other four tell the kinds of calibration apart [1]_, [2]_, for :math:`\mu \sim \mathrm{N}(0,
    1)` and :math:`y \sim \mathrm{N}(\mu, 1)`.

    - "ideal" says :math:`\mathrm{N}(\mu, 1)`: calibrated in every sense.
    - "climatological" says :math:`\mathrm{N}(0, 2)`, of variance 2, for every outcome: calibrated
      in every sense, too.
    - "unfocused" says :math:`\frac12 (\mathrm{N}(\mu, 1) + \mathrm{N}(\mu + \tau, 1))`, where
      :math:`\tau` is −1 or 1 with equal probability. Its PIT values are uniform (quantile
      calibration), but it is neither auto-calibrated nor marginally calibrated.
    - "sign-reversed" says :math:`\mathrm{N}(-\mu, 1)`, which is only marginally calibrated.

    References
    ----------
    .. [1] Gneiting, Balabdaoui and Raftery (2007). Probabilistic forecasts, calibration and
       sharpness. Journal of the Royal Statistical Society B.
       :doi:`10.1111/j.1467-9868.2007.00587.x`
    .. [2] Gneiting and Ranjan (2013). Combining predictive distributions. Electronic Journal of
       Statistics. :doi:`10.1214/13-EJS823`

    Examples
    --------
    >>> from skcalib.datasets import make_forecasts
    >>> for dispersion in [1, 0.5]:
    ...     y_true, forecast = make_forecasts(dispersion=dispersion, random_state=0)
    ...     low, high = forecast.interval(0.8)
    ...     print(((low <= y_true) & (y_true <= high)).mean().round(2))
    0.81
    0.49

    Forecasts that are right on the map, and wrong in the middle of it:

    >>> y_true, forecast, positions = make_forecasts(
    ...     problem="spatial", return_positions=True, random_state=0
    ... )
    >>> pit = forecast.pit(y_true)
    >>> middle = abs(positions - 0.5).max(axis=1) < 0.25
    >>> print(pit.mean().round(2), pit[middle].mean().round(2))
    0.48 0.73
    """
    check_options_of(make_forecasts, {"problem": _FORECAST_OPTIONS}, locals())
    rng = check_random_state(random_state)
    positions = rng.uniform(size=(n_samples, 2)) if problem == "spatial" else np.empty(0)
    forecast: Any
    truth: Any
    if problem == "counts":
        mean = 10.0 ** rng.uniform(size=n_samples)
        predicted_dispersion = (
            overdispersion if forecast_overdispersion is None else forecast_overdispersion
        )
        forecast = DistributionForecast(_count_distribution(mean, predicted_dispersion))
        truth = DistributionForecast(_count_distribution(mean, overdispersion))
        outcomes = truth.dist.rvs(random_state=rng)  # a number, of one sample
        y_true = np.atleast_1d(outcomes).astype(np.float64)
    elif problem == "spatial":
        mean, std = _draw_mean_and_std(n_samples, rng)
        forecast = GaussianForecast(mean, std)
        phase = (n_waves * positions) % 1.0
        local = local_bias / np.sqrt(2.0) * ndtri(1 - np.abs(2 * phase - 1)).sum(axis=1)
        truth = GaussianForecast(mean + local * std, np.sqrt(1 - local_bias**2) * std)
        y_true = truth.loc + truth.scale * rng.standard_normal(n_samples)
    elif _FORECAST_OPTIONS[problem]:
        mean, std = _draw_mean_and_std(n_samples, rng)
        truth = GaussianForecast(mean, std)
        y_true = mean + std * rng.standard_normal(n_samples)
        forecast = GaussianForecast(mean + bias * std, dispersion * std)
        if problem == "ensemble":
            noise = rng.standard_normal((n_samples, n_members))
            forecast = EnsembleForecast(forecast.loc[:, None] + forecast.scale[:, None] * noise)
        if problem == "zero-inflated":
            y_true = np.maximum(y_true, 0.0)
            forecast, truth = (
                DistributionForecast(_CensoredNormal(normal.loc, normal.scale))
                for normal in (forecast, truth)
            )
    else:
        mean, unit_std = rng.standard_normal(n_samples), np.ones(n_samples)
        truth = GaussianForecast(mean, unit_std)
        y_true = mean + rng.standard_normal(n_samples)
        forecast = _make_forecaster(problem, mean, unit_std, rng)
    extra = [positions] * return_positions + [truth] * return_true_forecast
    return y_true, forecast, *extra


def _draw_mean_and_std(n_samples: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Draw means from N(0, 1), and standard deviations from 1/4 to 1, uniform on the log scale."""
    return rng.standard_normal(n_samples), 4.0 ** -rng.uniform(size=n_samples)


def _make_forecaster(
    problem: str, mean: np.ndarray, unit_std: np.ndarray, rng: np.random.RandomState
) -> Forecast:
    """Return forecasts of outcomes N(mean, 1), from the means themselves or from less."""
    if problem == "unfocused":
        wrong_mean = mean + rng.choice([-1.0, 1.0], size=len(mean))
        means = np.column_stack([mean, wrong_mean])
        return GaussianMixtureForecast(means, np.ones_like(means), np.array([0.5, 0.5]))
    if problem == "climatological":
        return GaussianForecast(0 * unit_std, np.sqrt(2.0) * unit_std)
    return GaussianForecast(mean if problem == "ideal" else -mean, unit_std)


def _count_distribution(mean: np.ndarray, overdispersion: float) -> Any:
    if overdispersion == 0:
        return poisson(mean)
    return nbinom(1 / overdispersion, 1 / (1 + overdispersion * mean))


class _CensoredNormal:
    """Normal distributions whose values below 0 count as 0."""

    is_continuous = False

    def __init__(self, loc: np.ndarray, scale: np.ndarray) -> None:
        self.loc = loc
        self.scale = scale

    def cdf(self, y: np.ndarray) -> np.ndarray:
        return np.where(y < 0, 0.0, ndtr((y - self.loc) / self.scale))

    def sf(self, y: np.ndarray) -> np.ndarray:
        return np.where(y < 0, 1.0, ndtr((self.loc - y) / self.scale))

    def ppf(self, level: np.ndarray) -> np.ndarray:
        return np.maximum(self.loc + self.scale * ndtri(level), 0.0)

    def mean(self) -> np.ndarray:
        z = self.loc / self.scale
        return self.loc * ndtr(z) + self.scale * norm.pdf(z)

    def std(self) -> np.ndarray:
        z = self.loc / self.scale
        square = (self.loc**2 + self.scale**2) * ndtr(z) + self.loc * self.scale * norm.pdf(z)
        return np.sqrt(square - self.mean() ** 2)

    def support(self) -> tuple[float, float]:
        return 0.0, np.inf
