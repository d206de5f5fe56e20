"""Forecasts by normal distributions, calibrated or wrong in known ways."""

from numbers import Real
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils import check_random_state

from .._inputs.constraints import IntegerInterval
from .._inputs.scikit_learn import Interval, StrOptions, validate_params
from .._inputs.types import RandomState
from ..forecasts import GaussianForecast, GaussianMixtureForecast

GENERATOR_CONSTRAINTS: dict = {
    "n_samples": [IntegerInterval(1)],
    "random_state": ["random_state"],
}
DISPERSION_CONSTRAINTS: dict = GENERATOR_CONSTRAINTS | {
    "dispersion": [Interval(Real, 0, None, closed="neither")],
    "bias": [Interval(Real, None, None, closed="neither")],
}


def draw_mean_and_std(n_samples, rng):
    """Means from N(0, 1), and standard deviations between 1/4 and 1, uniform on the log scale."""
    return rng.standard_normal(n_samples), 4.0 ** -rng.uniform(size=n_samples)


@validate_params(
    DISPERSION_CONSTRAINTS | {"return_true_forecast": ["boolean"]},
    prefer_skip_nested_validation=True,
)
def make_gaussian_forecasts(
    n_samples: int = 1000,
    *,
    dispersion: float = 1.0,
    bias: float = 0.0,
    return_true_forecast: bool = False,
    random_state: RandomState = None,
) -> tuple[Any, ...]:
    r"""Normal forecasts of differing width: calibrated, too narrow, too wide or biased.

    Every outcome is normal, some with a large standard deviation and some with a small one. The
    forecasts know mean and standard deviation, but scale the one and shift the other.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.

    dispersion : float, default=1.0
        Standard deviation of the forecast over the true one. Below 1 the forecasts are too narrow
        (overconfident), above 1 too wide.

    bias : float, default=0.0
        Mean of the forecast minus the true one, in true standard deviations.

    return_true_forecast : bool, default=False
        Whether to return the true distributions too.

    random_state : int, RandomState instance or None, default=None
        Draws the true means and standard deviations, then the outcomes. An integer gives the same
        outcomes for every dispersion and bias.

    Returns
    -------
    y_true : ndarray of shape (n_samples,)
        Outcomes.

    y_forecast : GaussianForecast
        The forecasts, one for each outcome.

    true_forecast : GaussianForecast
        The distributions that the outcomes were drawn from. Only if `return_true_forecast` is True.

    See Also
    --------
    make_ensemble_forecasts : Ensembles with the same faults.
    make_spatial_forecasts : Forecasts that are wrong in places only.

    Notes
    -----
    With dispersion d and bias b,

    .. math:: \mu \sim \mathrm{N}(0, 1), \quad \sigma = 4^{-u}, \; u \sim \mathrm{U}[0, 1], \quad
        y \sim \mathrm{N}(\mu, \sigma^2), \quad \text{forecast } \mathrm{N}(\mu + b \sigma,
        (d \sigma)^2).

    So the standardised errors :math:`z = (y - \text{mean}) / \text{std}` have the distribution
    :math:`\mathrm{N}(-b/d, 1/d^2)`. Without bias, the quantile calibration error (l1) of the whole
    distribution is :math:`|1/4 - \arctan(d) / \pi|`, and at most 1/4.

    Examples
    --------
    >>> from skcalib.datasets import make_gaussian_forecasts
    >>> for dispersion in [1, 0.5]:
    ...     y_true, forecast = make_gaussian_forecasts(dispersion=dispersion, random_state=0)
    ...     low, high = forecast.interval(0.8)
    ...     print(((low <= y_true) & (y_true <= high)).mean().round(2))
    0.81
    0.49
    """
    rng = check_random_state(random_state)
    mean, std = draw_mean_and_std(n_samples, rng)
    y_true = mean + std * rng.standard_normal(n_samples)
    forecast = GaussianForecast(mean + bias * std, dispersion * std)
    if return_true_forecast:
        return y_true, forecast, GaussianForecast(mean, std)
    return y_true, forecast


_FORECASTERS = ("ideal", "climatological", "unfocused", "sign-reversed")


@validate_params(
    GENERATOR_CONSTRAINTS | {"forecaster": [StrOptions(set(_FORECASTERS))]},
    prefer_skip_nested_validation=True,
)
def make_forecaster_family(
    n_samples: int = 1000, *, forecaster: str = "ideal", random_state: RandomState = None
) -> tuple[np.ndarray, GaussianForecast | GaussianMixtureForecast]:
    r"""Four forecasters that tell the kinds of calibration apart.

    All forecast the same outcomes. Two are calibrated in every sense, though one knows nothing; one
    has uniform PIT values but is wrong given what it says; one agrees with the outcomes on average
    over all samples, and with nothing else. The problem is that of [1]_, the last forecaster of
    [2]_.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.

    forecaster : {"ideal", "climatological", "unfocused", "sign-reversed"}, default="ideal"
        Who forecasts; see the notes.

    random_state : int, RandomState instance or None, default=None
        Draws what can be known, then the outcomes, then what confuses the unfocused forecaster. An
        integer gives the same outcomes for every forecaster.

    Returns
    -------
    y_true : ndarray of shape (n_samples,)
        Outcomes.

    y_forecast : GaussianForecast or GaussianMixtureForecast
        The forecasts, one for each outcome; a mixture for the unfocused forecaster.

    See Also
    --------
    make_gaussian_forecasts : Forecasts of the wrong width or mean.

    Notes
    -----
    What can be known is :math:`\mu \sim \mathrm{N}(0, 1)`; the outcome is :math:`y \sim
    \mathrm{N}(\mu, 1)`.

    - "ideal" says :math:`\mathrm{N}(\mu, 1)`, which is calibrated in every sense.
    - "climatological" says :math:`\mathrm{N}(0, 2)`, of variance 2, for every outcome. This is
      calibrated in every sense of forecast and outcome, and as wide as the outcomes are spread.
    - "unfocused" says :math:`\frac12 (\mathrm{N}(\mu, 1) + \mathrm{N}(\mu + \tau, 1))`, where
      :math:`\tau` is −1 or 1 with equal probability. Its PIT values are uniform (quantile
      calibration), but outcomes do not follow the forecast given the forecast (auto-calibration),
      nor on average over all samples (marginal calibration).
    - "sign-reversed" says :math:`\mathrm{N}(-\mu, 1)`. The mean of its distributions is that of the
      outcomes, N(0, 2): it is marginally calibrated, and in no other sense.

    References
    ----------
    .. [1] T. Gneiting, F. Balabdaoui and A. E. Raftery (2007). Probabilistic forecasts, calibration
       and sharpness. Journal of the Royal Statistical Society B 69(2).
       :doi:`10.1111/j.1467-9868.2007.00587.x`
    .. [2] T. Gneiting and R. Ranjan (2013). Combining predictive distributions. Electronic Journal
       of Statistics 7. :doi:`10.1214/13-EJS823`

    Examples
    --------
    >>> from skcalib.datasets import make_forecaster_family
    >>> for forecaster in ["ideal", "climatological", "unfocused", "sign-reversed"]:
    ...     y_true, forecast = make_forecaster_family(forecaster=forecaster, random_state=0)
    ...     low, high = forecast.interval(0.8)
    ...     print(forecaster, ((low <= y_true) & (y_true <= high)).mean().round(1))
    ideal 0.8
    climatological 0.8
    unfocused 0.8
    sign-reversed 0.4
    """
    rng = check_random_state(random_state)
    known = rng.standard_normal(n_samples)
    y_true = known + rng.standard_normal(n_samples)
    one = np.ones(n_samples)
    if forecaster == "unfocused":
        confused = known + rng.choice([-1.0, 1.0], size=n_samples)
        mean = np.column_stack([known, confused])
        return y_true, GaussianMixtureForecast(mean, np.ones_like(mean), np.array([0.5, 0.5]))
    if forecaster == "climatological":
        return y_true, GaussianForecast(0 * one, np.sqrt(2.0) * one)
    return y_true, GaussianForecast(known if forecaster == "ideal" else -known, one)


@validate_params(
    GENERATOR_CONSTRAINTS
    | {
        "local_bias": [Interval(Real, 0, 1, closed="left")],
        "n_waves": [IntegerInterval(1)],
        "return_true_forecast": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def make_spatial_forecasts(
    n_samples: int = 1000,
    *,
    local_bias: float = 0.7,
    n_waves: int = 1,
    return_true_forecast: bool = False,
    random_state: RandomState = None,
) -> tuple[Any, ...]:
    r"""Forecasts on a map that are calibrated on the whole, but biased in each place.

    The forecasts do not know that outcomes are higher in some places and lower in others. They
    allow for the spread over all places, so that PIT values are uniform, and outcomes follow the
    forecasts even given the forecast. Only who looks at places sees that they are wrong.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.

    local_bias : float in [0, 1), default=0.7
        Standard deviation of the local biases over the map, in standard deviations of the
        forecasts. 0 gives forecasts that are calibrated everywhere.

    n_waves : int, default=1
        How often the biases rise and fall across the map.

    return_true_forecast : bool, default=False
        Whether to return the true distributions, given the position, too.

    random_state : int, RandomState instance or None, default=None
        Draws the positions, the forecasts, then the outcomes.

    Returns
    -------
    y_true : ndarray of shape (n_samples,)
        Outcomes.

    y_forecast : GaussianForecast
        The forecasts, one for each outcome.

    positions : ndarray of shape (n_samples, 2)
        Where the outcomes were observed, uniform on the unit square.

    true_forecast : GaussianForecast
        The distributions that the outcomes were drawn from. Only if `return_true_forecast` is True.

    See Also
    --------
    make_gaussian_forecasts : Forecasts that are wrong everywhere alike.

    Notes
    -----
    With forecasts :math:`\mathrm{N}(\mu, \sigma^2)` as in :func:`make_gaussian_forecasts`,
    independent of the position s, with `local_bias` β and w waves,

    .. math:: b(s) = \frac{\beta}{\sqrt 2} \left( \Phi^{-1}(t(s_1)) + \Phi^{-1}(t(s_2)) \right),
        \quad y \sim \mathrm{N}\left(\mu + b(s) \sigma, (1 - \beta^2) \sigma^2 \right),

    where t rises linearly from 0 to 1 and falls again, w times from 0 to 1. As :math:`t(s_k)` is
    uniform, b(s) has the distribution :math:`\mathrm{N}(0, \beta^2)` over the map, and together
    with the variance that is left, standardised errors are standard normal.

    Examples
    --------
    >>> from skcalib.datasets import make_spatial_forecasts
    >>> y_true, forecast, positions = make_spatial_forecasts(random_state=0)
    >>> pit = forecast.pit(y_true)
    >>> middle = abs(positions - 0.5).max(axis=1) < 0.25
    >>> print(pit.mean().round(2), pit[middle].mean().round(2))
    0.48 0.73
    """
    rng = check_random_state(random_state)
    positions = rng.uniform(size=(n_samples, 2))
    mean, std = draw_mean_and_std(n_samples, rng)
    phase = (n_waves * positions) % 1.0
    bias = local_bias / np.sqrt(2.0) * ndtri(1 - np.abs(2 * phase - 1)).sum(axis=1)
    true_mean, true_std = mean + bias * std, np.sqrt(1 - local_bias**2) * std
    y_true = true_mean + true_std * rng.standard_normal(n_samples)
    forecast = GaussianForecast(mean, std)
    if return_true_forecast:
        return y_true, forecast, positions, GaussianForecast(true_mean, true_std)
    return y_true, forecast, positions
