"""How concentrated forecasts are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._inputs.checks import check_sample_weight
from .._inputs.scikit_learn import validate_params
from ..forecasts import as_forecast
from ._quantile import known_levels

# The levels at which widths are reported.
_LEVELS = (0.5, 0.8, 0.95)


@dataclass(frozen=True, eq=False)
class Sharpness:
    """How concentrated forecasts are, on average: what :func:`sharpness` returns.

    Parameters
    ----------
    levels : ndarray of shape (n_levels,)
        Probabilities of central intervals.

    width : ndarray of shape (n_levels,)
        Mean widths of these intervals, in the units of the outcome.

    std : float
        Mean standard deviation, in the units of the outcome; NaN if the forecasts have none.

    entropy : float
        Mean differential entropy, in nats; NaN if the forecasts have none in closed form.

    See Also
    --------
    sharpness : The function that returns it.

    Examples
    --------
    >>> from skcalib.metrics import sharpness
    >>> sharpness(([0.0, 1.0], [1.0, 3.0])).std
    2.0
    """

    levels: np.ndarray
    width: np.ndarray
    std: float
    entropy: float


@validate_params({"levels": ["array-like", None]})
def sharpness(
    y_forecast: Any,
    *,
    sample_weight: ArrayLike | None = None,
    levels: ArrayLike | None = None,
) -> Sharpness:
    """How sharp forecasts are: mean width of intervals, standard deviation and entropy.

    Sharpness is a property of the forecasts alone. Among calibrated forecasts, sharper ones are
    better; a forecast that is too sure is sharp as well.

    Parameters
    ----------
    y_forecast : forecast
        A forecast of :mod:`skcalib.forecasts`, or whatever
        :func:`~skcalib.forecasts.as_forecast` takes, such as the tuple (mean, std).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    levels : array-like of shape (n_levels,), default=None
        Probabilities of central intervals, in (0, 1). By default 0.5, 0.8 and 0.95; for a
        :class:`~skcalib.forecasts.QuantileForecast` those of its own intervals.

    Returns
    -------
    sharpness : Sharpness
        With the numbers `std` and `entropy`, NaN where the forecasts do not know them, and the
        arrays `levels` and `width`. Smaller is sharper.

    See Also
    --------
    quantile_calibration_error : Whether forecasts are right, sharp or not.

    Notes
    -----
    Standard deviations are averaged, not variances.

    References
    ----------
    .. [1] T. Gneiting, F. Balabdaoui and A. E. Raftery (2007). Probabilistic forecasts, calibration
       and sharpness. Journal of the Royal Statistical Society B 69, 243–268.
       :doi:`10.1111/j.1467-9868.2007.00587.x`

    Examples
    --------
    >>> from skcalib.metrics import sharpness
    >>> of_forecast = sharpness(([0.0, 1.0], [1.0, 3.0]))
    >>> of_forecast.std, of_forecast.width.round(2)
    (2.0, array([2.7 , 5.13, 7.84]))
    """
    forecast = as_forecast(y_forecast)
    weight = None
    if sample_weight is not None:
        weight = check_sample_weight(sample_weight, len(forecast))
    known = known_levels(forecast, "interval", levels)
    known = np.array(_LEVELS) if known is None else known
    width = [np.average(np.subtract(*forecast.interval(p)[::-1]), weights=weight) for p in known]
    std, entropy = (_mean_or_nan(of, weight) for of in (forecast.std, forecast.entropy))
    return Sharpness(known, np.array(width), std, entropy)


def _mean_or_nan(method, weight):
    """The mean over the rows; NaN if the forecast refuses, as it cannot know."""
    try:
        return float(np.average(method(), weights=weight))
    except ValueError:
        return float("nan")
