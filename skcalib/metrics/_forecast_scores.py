"""Proper losses of forecasts."""

from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Literal

import numpy as np

from .._data import ForecastData, check_forecasts
from .._inputs.annotations import SampleAverage
from .._inputs.arrays import ArrayLike, check_numbers, is_number
from .._inputs.scikit_learn import Interval
from .._numerics.crps import pinball
from ..forecasts._base import MAX_NUMBER
from ..forecasts._quantile import select_levels
from ..forecasts._thresholds import threshold_crps_of_members, threshold_weighted_crps
from ._registry import register_metric


def _check_score_input(
    y_true: ArrayLike,
    y_forecast: object,
    sample_weight: ArrayLike | None,
    average: str | None,
    *,
    may_be_impossible: bool = True,
) -> ForecastData:
    """Return the data; with average=None of all samples, also those of weight 0."""
    check = partial(check_forecasts, y_true, y_forecast, may_be_impossible=may_be_impossible)
    data = check(sample_weight=sample_weight)
    return check() if average is None and sample_weight is not None else data


def _mean_loss(data: ForecastData, loss: np.ndarray, average: str | None) -> float | np.ndarray:
    """Return the mean of the losses (n,), or all of them."""
    return loss if average is None else float(data.weight @ loss)


def _crps_loss(
    data: ForecastData,
    estimation: Literal["ecdf", "fair"],
    thresholds: tuple[float, float] | None,
    levels: ArrayLike | None,
    level_weights: Literal["spacing", "equal"],
    average: str | None,
) -> float | np.ndarray:
    check_numbers(data.value, "y_true", most=MAX_NUMBER)
    if levels is not None:
        data = replace(data, forecast=select_levels(data.forecast, levels))
    low, high = (-np.inf, np.inf) if thresholds is None else check_threshold_pair(thresholds)
    if thresholds is None or estimation == "fair":  # only ensembles have a fair score
        loss = data.forecast.crps(data.value, estimation=estimation)
    if level_weights == "equal":  # the weighted interval score
        if not data.forecast._has_quantiles_only:
            raise ValueError(
                "level_weights='equal' needs quantiles at some levels; found a whole distribution. "
                "Pass levels, such as levels=[0.1, 0.5, 0.9]."
            )
        gap = np.clip(data.value, low, high)[:, None] - np.clip(data.forecast.values, low, high)
        loss = 2 * pinball(gap, data.forecast.levels).mean(axis=1)
    elif thresholds is not None and estimation == "fair":
        loss = threshold_crps_of_members(data.forecast, data.value, low, high, fair=True)
    elif thresholds is not None:
        loss = threshold_weighted_crps(data.forecast, data.value, low, high)
    return _mean_loss(data, loss, average)


def _interval_loss(data: ForecastData, coverage: float, average: str | None) -> float | np.ndarray:
    low, high = data.forecast.interval(coverage)
    miss = np.maximum(low - data.value, 0.0) + np.maximum(data.value - high, 0.0)
    with np.errstate(over="ignore"):  # the loss of an outcome next to the largest number is inf
        loss = (high - low) + 2 / (1 - coverage) * miss
    return _mean_loss(data, loss, average)


def _negative_log_likelihood(data: ForecastData, average: str | None) -> float | np.ndarray:
    loss = check_density(-data.forecast.logpdf(data.value))
    return _mean_loss(data, loss, average)


@register_metric(
    _crps_loss,
    {"thresholds": [tuple, list, np.ndarray, None]},
    cost="n",
    takes=("forecasts",),
    chosen=False,
    in_report=True,
)
def continuous_ranked_probability_loss(
    y_true: ArrayLike,
    y_forecast: object,
    *,
    sample_weight: ArrayLike | None = None,
    estimation: Literal["ecdf", "fair"] = "ecdf",
    thresholds: tuple[float, float] | None = None,
    levels: ArrayLike | None = None,
    level_weights: Literal["spacing", "equal"] = "spacing",
    average: SampleAverage = "mean",
) -> float | np.ndarray:
    r"""Continuous ranked probability score (CRPS), the mean absolute error of forecasts.

    It is 0 if the forecasts are certain and right. It is proper: on average the true distribution
    has the smallest loss. For forecasts that are single numbers it is the mean absolute error.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Outcomes.

    y_forecast : forecast
        A forecast, as :func:`~skcalib.forecasts.as_forecast` takes it, such as (mean, std).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    estimation : {"ecdf", "fair"}, default="ecdf"
        For ensembles: the loss of the members' empirical distribution, or an unbiased estimate of
        the loss of the distribution that they were drawn from.

    thresholds : tuple of two floats, default=None
        Lower and upper threshold, in the units of the outcome; either may be infinite. Only what is
        forecast about thresholds between them counts.

    levels : array-like of shape (n_levels,), default=None
        Increasing levels in (0, 1). Only the quantiles at these levels count; compare at equal
        levels. By default all that is known.

    level_weights : {"spacing", "equal"}, default="spacing"
        For quantiles: each level counts by the distance between its neighbours, or all alike. The
        latter is the weighted interval score (WIS), twice the mean pinball loss.

    average : {"mean"} or None, default="mean"
        How the values are averaged, with the weights of the samples. None returns all values.

    Returns
    -------
    loss : float or ndarray of shape (n_samples,)
        In the units of the outcome; 0 is best. "fair" can be negative.

    See Also
    --------
    score_decomposition : What of the loss is miscalibration.
    interval_loss : The loss of a single prediction interval.

    Notes
    -----
    For a forecast with the distribution function F [1]_,

    .. math:: \ell(F, y) = \int (F(t) - 1[y \le t])^2 dt = E|Y - y| - \tfrac12 E|Y - Y'|,

    with independent :math:`Y, Y' \sim F`. It has a closed form for normal forecasts, and for
    mixtures of c normals, at :math:`O(c^2)`. For an ensemble of s members it takes :math:`O(s \log
    s)`; "fair" uses the mean distance between different members [2]_. For quantiles :math:`q_k` at
    the levels :math:`\alpha_1 < \dots < \alpha_K` it is :math:`\sum_k (\alpha_{k+1} - \alpha_{k-1})
    \rho_k(y - q_k)` with the pinball (quantile) losses :math:`\rho_k`, :math:`\alpha_0 = 0` and
    :math:`\alpha_{K+1} = 1`; with `level_weights` "equal" it is the weighted interval score [4]_,
    :math:`\tfrac2K \sum_k \rho_k(y - q_k)`. For any other distribution the pinball loss is
    integrated numerically.

    Forecasts of counts refuse outcomes that are not whole numbers. With `thresholds` the integral
    runs from the lower to the upper one (threshold-weighted CRPS [3]_), which is proper as well.

    References
    ----------
    .. [1] Gneiting and Raftery (2007). Strictly Proper Scoring Rules, Prediction, and Estimation.
       Journal of the American Statistical Association. :doi:`10.1198/016214506000001437`
    .. [2] Ferro (2014). Fair scores for ensemble forecasts. Quarterly Journal of the Royal
       Meteorological Society. :doi:`10.1002/qj.2270`
    .. [3] Gneiting and Ranjan (2011). Comparing Density Forecasts Using Threshold- and
       Quantile-Weighted Scoring Rules. Journal of Business & Economic Statistics.
       :doi:`10.1198/jbes.2010.08110`
    .. [4] Bracher, Ray, Gneiting and Reich (2021). Evaluating epidemic forecasts in an interval
       format. PLOS Computational Biology. :doi:`10.1371/journal.pcbi.1008618`

    Examples
    --------
    >>> from skcalib.forecasts import EnsembleForecast
    >>> from skcalib.metrics import continuous_ranked_probability_loss
    >>> forecast = EnsembleForecast([[0.0, 2.0], [1.0, 3.0]])
    >>> continuous_ranked_probability_loss([1.0, 3.0], forecast)
    0.5
    >>> round(continuous_ranked_probability_loss([0.0], ([0.0], [1.0])), 4)
    0.2337
    """
    data = _check_score_input(y_true, y_forecast, sample_weight, average)
    return _crps_loss(data, estimation, thresholds, levels, level_weights, average)


def check_threshold_pair(thresholds: tuple[float, float]) -> tuple[float, float]:
    """Return the two thresholds; refuse all but two numbers, the smaller one first."""
    is_pair = len(thresholds) == 2 and all(is_number(value) for value in thresholds)
    if not is_pair or not thresholds[0] < thresholds[1]:
        raise ValueError(
            "thresholds must be two numbers, the lower one first; found "
            f"{thresholds!r:.80}. Pass (c, np.inf) for thresholds above c."
        )
    return float(thresholds[0]), float(thresholds[1])


@register_metric(
    _interval_loss,
    {"coverage": [Interval(Real, 0, 1, closed="neither")]},
    cost="n",
    takes=("forecasts",),
    chosen=False,
)
def interval_loss(
    y_true: ArrayLike,
    y_forecast: object,
    *,
    sample_weight: ArrayLike | None = None,
    coverage: float = 0.9,
    average: SampleAverage = "mean",
) -> float | np.ndarray:
    r"""Interval score (Winkler score): width of a prediction interval, plus penalties for misses.

    It is small if the central prediction intervals are narrow and yet hold the outcomes. It is
    proper: on average the true distribution has the smallest loss.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Outcomes.

    y_forecast : forecast
        A forecast, as :func:`~skcalib.forecasts.as_forecast` takes it, such as (mean, std).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    coverage : float, default=0.9
        Probability of the central interval, in (0, 1). Half of the rest lies on either side.

    average : {"mean"} or None, default="mean"
        How the values are averaged, with the weights of the samples. None returns all values.

    Returns
    -------
    loss : float or ndarray of shape (n_samples,)
        In the units of the outcome; not negative, 0 is best.

    See Also
    --------
    continuous_ranked_probability_loss : The loss of all intervals together.
    sharpness : The width alone.

    Notes
    -----
    For the interval [l, u] of probability :math:`1 - \alpha` the loss is [1]_

    .. math:: (u - l) + \frac{2}{\alpha} \big[(l - y)_+ + (y - u)_+\big].

    References
    ----------
    .. [1] Gneiting and Raftery (2007). Strictly Proper Scoring Rules, Prediction, and Estimation.
       Journal of the American Statistical Association. :doi:`10.1198/016214506000001437`

    Examples
    --------
    The interval from 0 to 2 misses the second outcome by 1, which costs 2/0.2.

    >>> from skcalib.forecasts import QuantileForecast
    >>> from skcalib.metrics import interval_loss
    >>> forecast = QuantileForecast([[0.0, 2.0], [0.0, 2.0]], levels=[0.1, 0.9])
    >>> interval_loss([1.0, 3.0], forecast, coverage=0.8, average=None).round(9)
    array([ 2., 12.])
    """
    data = _check_score_input(y_true, y_forecast, sample_weight, average)
    return _interval_loss(data, coverage, average)


@register_metric(
    _negative_log_likelihood, cost="n", takes=("forecasts",), chosen=False, may_be_negative=True
)
def negative_log_likelihood(
    y_true: ArrayLike,
    y_forecast: object,
    *,
    sample_weight: ArrayLike | None = None,
    average: SampleAverage = "mean",
) -> float | np.ndarray:
    r"""Logarithmic score: minus the logarithm of the density of the outcome, in nats.

    It is proper: on average the true distribution has the smallest loss. Ensembles and quantiles
    have no density and are refused.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Outcomes.

    y_forecast : forecast
        A forecast, as :func:`~skcalib.forecasts.as_forecast` takes it, such as (mean, std).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    average : {"mean"} or None, default="mean"
        How the values are averaged, with the weights of the samples. None returns all values.

    Returns
    -------
    loss : float or ndarray of shape (n_samples,)
        Any number, depending on the units of the outcome; smaller is better. Infinite if an outcome
        has density 0. An infinite density is refused.

    See Also
    --------
    continuous_ranked_probability_loss : A loss that needs no density.

    Notes
    -----
    The loss of a sample is :math:`-\log f_i(y_i)` with the density :math:`f_i`, or the probability
    of the outcome for discrete forecasts. It is right also where the density underflows.

    References
    ----------
    .. [1] Good (1952). Rational Decisions. Journal of the Royal Statistical Society B.
       :doi:`10.1111/j.2517-6161.1952.tb00104.x`

    Examples
    --------
    >>> from skcalib.metrics import negative_log_likelihood
    >>> round(negative_log_likelihood([0.0, 40.0], ([0.0, 0.0], [1.0, 1.0])), 3)
    400.919
    """
    data = _check_score_input(y_true, y_forecast, sample_weight, average, may_be_impossible=False)
    return _negative_log_likelihood(data, average)


def check_density(loss: np.ndarray) -> np.ndarray:
    """Refuse infinite densities: one such outcome would outweigh all others."""
    if (loss == -np.inf).any():
        row = int(np.argmax(loss == -np.inf))
        raise ValueError(
            f"y_forecast must have a finite density at the outcomes; found an infinite one in row "
            f"{row}. Use continuous_ranked_probability_loss, which needs no density."
        )
    return loss
