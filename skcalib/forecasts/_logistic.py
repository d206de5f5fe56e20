"""Logistic forecasts."""

import numpy as np

from .._inputs.arrays import ArrayLike, check_numbers
from .._numerics.crps import LOGISTIC, crps_between
from ._base import MAX_NUMBER
from ._gaussian import LocationScaleForecast, check_deviations


class LogisticForecast(LocationScaleForecast):
    r"""Logistic distributions, one for each sample: heavier tails than those of a normal.

    Parameters
    ----------
    location : array-like of shape (n_samples,)
        Means, which are medians as well, in the units of the outcome.

    scale : float or array-like of shape (n_samples,)
        Scales, positive: :math:`\sqrt{3}/π` times the standard deviations.

    Attributes
    ----------
    loc : ndarray of shape (n_samples,)
        The locations.

    scale : ndarray of shape (n_samples,)
        The scales.

    See Also
    --------
    GaussianForecast : Normal distributions.
    CensoredForecast : The same with all that lies below a bound moved onto it.

    Notes
    -----
    The cdf is :math:`1/(1 + e^{-z})` with :math:`z = (y - \mathrm{location})/\mathrm{scale}`. All
    functions have closed forms, also :meth:`crps`.

    Examples
    --------
    >>> from skcalib.forecasts import LogisticForecast
    >>> forecast = LogisticForecast([0.0, 10.0], [1.0, 2.0])
    >>> forecast.cdf([0.0, 12.0]).round(3)
    array([0.5  , 0.731])
    """

    law = LOGISTIC

    def __init__(self, location: ArrayLike, scale: ArrayLike) -> None:
        self.loc = check_numbers(location, "location", ndim=1, most=MAX_NUMBER)
        self.scale = check_deviations(scale, self.loc.shape, "scale")

    def _log_odds(self, y: np.ndarray) -> np.ndarray:
        return self._standardize(y)

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        return self._logcdf(y) + self._logsf(y) - np.log(self.scale)[:, None]

    def std(self) -> np.ndarray:
        return np.pi / np.sqrt(3) * self.scale

    def entropy(self) -> np.ndarray:
        return 2 + np.log(self.scale)

    def _crps(self, y: np.ndarray) -> np.ndarray:
        return crps_between(y, self.loc, self.scale, -np.inf, np.inf, LOGISTIC)
