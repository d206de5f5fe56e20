"""Outcomes for the tests of forecasts where some are known to be late, but not how late."""

import numpy as np

from .._inputs.arrays import ArrayLike
from .._inputs.checks import check_follow_up
from .._inputs.drawing import draw_seed
from .._inputs.scikit_learn import RandomState
from ._as_forecast import as_forecast
from ._derived import ppf_log_odds


def impute_censored(
    forecast: object, time: ArrayLike, event: ArrayLike, random_state: RandomState = None
) -> np.ndarray:
    r"""Draw outcomes that are right-censored from their own forecasts, for tests.

    A patient who has left at some time has an event later than that. If the forecasts are
    calibrated, the outcomes that are drawn have their law, like those that were observed. So all
    tests of forecasts stay exact, for every number of samples and whatever censoring depends on, as
    long as event and censoring are independent given the features.

    Parameters
    ----------
    forecast : forecast
        A forecast of the time of the event, as :func:`as_forecast` takes it, such as a frozen
        distribution of SciPy.

    time : array-like of shape (n_samples,)
        Time of the event, or the last time at which none had occurred.

    event : array-like of shape (n_samples,)
        True or 1 where the event was observed; False or 0 where it was censored: it is later.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    y : ndarray of shape (n_samples,)
        The time where the event was observed, else a later one. Use it with this forecast only,
        and for tests and figures of calibration only: errors and scores of imputed outcomes are
        smaller than the true ones, by about the share that is censored.

    See Also
    --------
    skcalib.metrics.censoring_weights : Weights for measures of the risk until a horizon.
    skcalib.hypothesis_tests.CalibrationTest : Takes the outcomes.

    Notes
    -----
    An outcome that is censored at c and has the distribution function F is replaced by the y whose
    cumulative hazard :math:`-\log(1 - F(y))` is that at c plus an exponential variable, accurately
    far out in the tail. Of calibrated forecasts, F(Y) given censoring at c is uniform on (F(c), 1),
    and so is that of the draw. D-calibration [1]_ spreads censored outcomes over the same interval,
    and takes the counts for a multinomial sample; its test is conservative.

    The draws cost power, the more so the more is censored, and a p-value depends on their seed.
    Fix it beforehand. Forecasts by quantiles, and members without weights, do not tell the
    probability of later outcomes; they are refused.

    References
    ----------
    .. [1] Haider, Hoehn, Davis and Greiner (2020). Effective Ways to Build and Evaluate Individual
       Survival Distributions. Journal of Machine Learning Research 21.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import weibull_min
    >>> from skcalib.forecasts import impute_censored
    >>> forecast = weibull_min(1.5, scale=np.array([2.0, 2.0, 4.0]))
    >>> y = impute_censored(forecast, time=[1.0, 1.0, 3.0], event=[1, 0, 0], random_state=0)
    >>> (y > [0, 1, 3]).tolist(), y[0].item()
    ([True, True, True], 1.0)
    """
    forecast = as_forecast(forecast, name="forecast")
    if forecast._has_quantiles_only or forecast.is_exchangeable:
        raise ValueError(
            "forecast must tell the law of later outcomes; found quantiles, or members without "
            "weights. Pass a whole distribution, or EnsembleForecast(members, weights)."
        )
    value, observed = check_follow_up(time, event, len(forecast))
    rows = np.flatnonzero(~observed)
    hazard = -forecast[rows].logsf(value[rows])  # the cumulative one
    if np.isinf(hazard).any():
        row = rows[hazard.argmax()]
        raise ValueError(
            f"forecast must hold later outcomes to be possible; found none after {value[row]:.6g} "
            f"in row {row}. Use a forecast with a longer tail."
        )
    hazard += np.random.default_rng(draw_seed(random_state)).exponential(size=len(rows))
    log_odds = hazard + np.log(-np.expm1(-hazard))
    value[rows] = np.maximum(value[rows], ppf_log_odds(forecast[rows], log_odds[:, None])[:, 0])
    return value
