"""Forecasts that put mass on single values: ensembles, counts, and amounts that are often zero."""

from numbers import Real

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import nbinom, poisson
from sklearn.utils import check_random_state

from .._inputs.constraints import IntegerInterval
from .._inputs.scikit_learn import Interval, validate_params
from .._inputs.types import RandomState
from ..forecasts import DistributionForecast, EnsembleForecast
from ._forecasts import (
    DISPERSION_CONSTRAINTS,
    GENERATOR_CONSTRAINTS,
    draw_mean_and_std,
    make_gaussian_forecasts,
)


@validate_params(
    DISPERSION_CONSTRAINTS | {"n_members": [IntegerInterval(2)]},
    prefer_skip_nested_validation=True,
)
def make_ensemble_forecasts(
    n_samples: int = 1000,
    *,
    n_members: int = 10,
    dispersion: float = 1.0,
    bias: float = 0.0,
    random_state: RandomState = None,
) -> tuple[np.ndarray, EnsembleForecast]:
    r"""Ensembles that the outcome could be a member of, or that are too narrow, wide or biased.

    With the defaults, outcome and members are drawn from the same distribution: they are
    exchangeable, so the outcome is equally likely to have any rank among them. The ensemble as a
    distribution of its own, with a mass at each member, is too narrow even then.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.

    n_members : int, default=10
        Number of members of each ensemble, at least 2.

    dispersion : float, default=1.0
        Standard deviation that the members are drawn with, over that of the outcome. Below 1 the
        ensembles are too narrow (overconfident), above 1 too wide.

    bias : float, default=0.0
        Mean that the members are drawn with minus that of the outcome, in standard deviations of
        the outcome.

    random_state : int, RandomState instance or None, default=None
        Draws means and standard deviations, then the outcomes, then the members. An integer gives
        the same outcomes for every dispersion and bias.

    Returns
    -------
    y_true : ndarray of shape (n_samples,)
        Outcomes.

    y_forecast : EnsembleForecast
        The ensembles, one for each outcome.

    See Also
    --------
    make_gaussian_forecasts : The distributions themselves as forecasts.

    Notes
    -----
    With :math:`\mu` and :math:`\sigma` as in :func:`make_gaussian_forecasts`, the outcome is drawn
    from :math:`\mathrm{N}(\mu, \sigma^2)`, and the members independently from :math:`\mathrm{N}(\mu
    + b \sigma, (d \sigma)^2)`, where d is the dispersion and b the bias.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.datasets import make_ensemble_forecasts
    >>> for dispersion in [1, 0.5]:  # how often the outcome is below, among and above 4 members
    ...     y_true, ensemble = make_ensemble_forecasts(
    ...         n_members=4, dispersion=dispersion, random_state=0
    ...     )
    ...     rank = (ensemble.members < y_true[:, None]).sum(axis=1)
    ...     print((np.bincount(rank) / len(y_true)).round(2))
    [0.2  0.22 0.2  0.2  0.19]
    [0.32 0.13 0.12 0.14 0.29]
    """
    rng = check_random_state(random_state)
    mean, std = draw_mean_and_std(n_samples, rng)
    y_true = mean + std * rng.standard_normal(n_samples)
    noise = rng.standard_normal((n_samples, n_members))
    members = (mean + bias * std)[:, None] + (dispersion * std)[:, None] * noise
    return y_true, EnsembleForecast(members)


@validate_params(
    GENERATOR_CONSTRAINTS
    | {
        "overdispersion": [Interval(Real, 0, None, closed="left")],
        "forecast_overdispersion": [Interval(Real, 0, None, closed="left"), None],
    },
    prefer_skip_nested_validation=True,
)
def make_count_forecasts(
    n_samples: int = 1000,
    *,
    overdispersion: float = 0.0,
    forecast_overdispersion: float | None = None,
    random_state: RandomState = None,
) -> tuple[np.ndarray, DistributionForecast]:
    r"""Forecasts of counts: Poisson or negative binomial, of the right variance or not.

    Means are known; what may be wrong is the variance. Poisson forecasts of counts that vary more
    are the usual case of forecasts that are too narrow.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.

    overdispersion : float, default=0.0
        The α by which the variance of a count exceeds its mean m: it is :math:`m + \alpha m^2`. 0
        draws from Poisson distributions.

    forecast_overdispersion : float or None, default=None
        The same of the forecasts. By default that of the outcomes, which makes the forecasts
        calibrated.

    random_state : int, RandomState instance or None, default=None
        Draws the means, then the outcomes.

    Returns
    -------
    y_true : ndarray of shape (n_samples,)
        Outcomes: whole numbers, as float.

    y_forecast : DistributionForecast
        The forecasts, one for each outcome.

    See Also
    --------
    make_zero_inflated_forecasts : Amounts that are often zero.

    Notes
    -----
    The means are 10 to the power of a uniform number in [0, 1]. A negative binomial distribution of
    mean m and variance :math:`m + \alpha m^2` is SciPy's ``nbinom(1 / α, 1 / (1 + α m))``.

    Examples
    --------
    >>> from skcalib.datasets import make_count_forecasts
    >>> y_true, forecast = make_count_forecasts(
    ...     overdispersion=0.5, forecast_overdispersion=0, random_state=0
    ... )
    >>> print((((y_true - forecast.mean()) / forecast.std()) ** 2).mean().round(1))
    2.8
    """
    rng = check_random_state(random_state)
    mean = 10.0 ** rng.uniform(size=n_samples)
    if forecast_overdispersion is None:
        forecast_overdispersion = overdispersion
    y_true = _counts(mean, overdispersion).rvs(random_state=rng).astype(np.float64)
    return y_true, DistributionForecast(_counts(mean, forecast_overdispersion))


def _counts(mean, overdispersion):
    if overdispersion == 0:
        return poisson(mean)
    return nbinom(1 / overdispersion, 1 / (1 + overdispersion * mean))


class _CensoredNormal:
    """Normal distributions of which what is below 0 counts as 0."""

    is_continuous = False

    def __init__(self, loc, scale):
        self.loc = loc
        self.scale = scale

    def cdf(self, y):
        return np.where(y < 0, 0.0, ndtr((y - self.loc) / self.scale))

    def sf(self, y):
        return np.where(y < 0, 1.0, ndtr((self.loc - y) / self.scale))

    def ppf(self, level):
        return np.maximum(self.loc + self.scale * ndtri(level), 0.0)

    def mean(self):
        z = self.loc / self.scale
        return self.loc * ndtr(z) + self.scale * _density(z)

    def std(self):
        z = self.loc / self.scale
        square = (self.loc**2 + self.scale**2) * ndtr(z) + self.loc * self.scale * _density(z)
        return np.sqrt(square - self.mean() ** 2)

    def support(self):
        return 0.0, np.inf


def _density(z):
    return np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


@validate_params(DISPERSION_CONSTRAINTS, prefer_skip_nested_validation=True)
def make_zero_inflated_forecasts(
    n_samples: int = 1000,
    *,
    dispersion: float = 1.0,
    bias: float = 0.0,
    random_state: RandomState = None,
) -> tuple[np.ndarray, DistributionForecast]:
    r"""Forecasts of amounts that are often exactly zero, as of rain.

    Outcomes are normal, but what is below zero counts as zero. So are the forecasts: they have a
    point mass at zero, and a density above it.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.

    dispersion : float, default=1.0
        Standard deviation of the forecast over the true one, before values below zero become zero.
        Below 1 the forecasts are too narrow (overconfident), above 1 too wide.

    bias : float, default=0.0
        Mean of the forecast minus the true one, in true standard deviations, before values below
        zero become zero.

    random_state : int, RandomState instance or None, default=None
        Draws means and standard deviations, then the outcomes. An integer gives the same outcomes
        for every dispersion and bias.

    Returns
    -------
    y_true : ndarray of shape (n_samples,)
        Outcomes, about half of them 0.

    y_forecast : DistributionForecast
        The forecasts, one for each outcome.

    See Also
    --------
    make_count_forecasts : Counts.

    Notes
    -----
    The outcome is the maximum of 0 and that of :func:`make_gaussian_forecasts`, and the forecast is
    the distribution of the maximum of 0 and the normal forecast.

    Examples
    --------
    >>> from skcalib.datasets import make_zero_inflated_forecasts
    >>> for bias in [0, 1]:
    ...     y_true, forecast = make_zero_inflated_forecasts(bias=bias, random_state=0)
    ...     print((y_true > 0).mean().round(2), forecast.at_threshold(0).mean().round(2))
    0.48 0.48
    0.48 0.66
    """
    y_true, forecast = make_gaussian_forecasts(
        n_samples, dispersion=dispersion, bias=bias, random_state=random_state
    )
    censored = _CensoredNormal(forecast.loc, forecast.scale)
    return np.maximum(y_true, 0.0), DistributionForecast(censored)
