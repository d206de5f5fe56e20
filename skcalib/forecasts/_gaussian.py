"""Normal forecasts and mixtures of them."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

from .._inputs.arrays import ArrayLike, check_numbers
from .._numerics.array_api import root_mean_square
from .._numerics.crps import NORMAL, StandardLaw, crps_gaussian, crps_mixture, normal_density
from ._base import MAX_NUMBER, Components, Forecast
from ._ensemble import normalize_member_weights

_LOG_SQRT_2_PI = 0.5 * np.log(2 * np.pi)

# Entries of a block (rows, columns, components) of mixtures whose logarithms are taken at once.
_MAX_MIXTURE_BLOCK = 2**16

# Numbers below have fewer digits, and densities of narrower forecasts overflow.
_MIN_STD = 1e-300

# Bisection alone needs no more steps than these.
_MAX_QUANTILE_STEPS = 200

_QUANTILE_RTOL = 4e-16


class LocationScaleForecast(Forecast):
    """Forecasts loc + scale Z, where Z has a standard law."""

    law: ClassVar[StandardLaw]
    loc: np.ndarray
    scale: np.ndarray

    _row_attributes: ClassVar[tuple[str, ...]] = ("loc", "scale")

    def _standardize(self, y: np.ndarray) -> np.ndarray:
        return _standardize(y, self.loc[:, None], self.scale[:, None])

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return self.law.cdf(self._standardize(y))

    def _sf(self, y: np.ndarray) -> np.ndarray:
        return self.law.cdf(-self._standardize(y))

    def _logcdf(self, y: np.ndarray) -> np.ndarray:
        return self.law.log_cdf(self._standardize(y))

    def _logsf(self, y: np.ndarray) -> np.ndarray:
        return self.law.log_cdf(-self._standardize(y))

    def _ppf(self, level: np.ndarray) -> np.ndarray:
        return self.loc[:, None] + self.scale[:, None] * self.law.ppf(level)

    def mean(self) -> np.ndarray:
        return self.loc.copy()


class GaussianForecast(LocationScaleForecast):
    """Normal distributions, one for each sample.

    Parameters
    ----------
    mean : array-like of shape (n_samples,)
        Means, in the units of the outcome.

    std : float or array-like of shape (n_samples,)
        Standard deviations, positive.

    Attributes
    ----------
    loc : ndarray of shape (n_samples,)
        The means.

    scale : ndarray of shape (n_samples,)
        The standard deviations.

    See Also
    --------
    as_forecast : Makes forecasts of what models return.

    Notes
    -----
    All functions are exact to rounding, also in the tails: `logcdf` and `logsf` where `cdf` is 0
    or 1 in double precision, and :meth:`crps` by its closed form.

    Examples
    --------
    >>> from skcalib.forecasts import GaussianForecast
    >>> forecast = GaussianForecast([0.0, 10.0], [1.0, 2.0])
    >>> forecast.cdf([0.0, 12.0]).round(3)
    array([0.5  , 0.841])
    >>> forecast[1:].interval(0.9)[1].round(2)
    array([13.29])
    """

    law = NORMAL

    def __init__(self, mean: ArrayLike, std: ArrayLike) -> None:
        self.loc = check_numbers(mean, "mean", ndim=1, most=MAX_NUMBER)
        self.scale = check_deviations(std, self.loc.shape)

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # the density underflows to 0
            square = self._standardize(y) ** 2
        return -square / 2 - np.log(self.scale)[:, None] - _LOG_SQRT_2_PI

    def std(self) -> np.ndarray:
        return self.scale.copy()

    def entropy(self) -> np.ndarray:
        return 0.5 + _LOG_SQRT_2_PI + np.log(self.scale)

    def _sample(self, generator: np.random.Generator, size: int) -> np.ndarray:
        noise = generator.standard_normal((len(self), size))
        return self.loc[:, None] + self.scale[:, None] * noise

    def _crps(self, y: np.ndarray) -> np.ndarray:
        return crps_gaussian(y, self.loc, self.scale)

    def _wasserstein_points(self) -> np.ndarray:
        return np.column_stack([self.loc, self.scale])

    def components(self, n_nodes: int | None = None) -> Components:
        return Components(self.loc[:, None], self.scale[:, None] ** 2, np.ones((len(self), 1)))


def _standardize(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Return (y − μ)/σ, which is infinite if it overflows: so far out the cdf is 0 or 1."""
    with np.errstate(over="ignore"):
        return (y - mean) / std


class GaussianMixtureForecast(Forecast):
    """Mixtures of normal distributions, one for each sample.

    Parameters
    ----------
    mean : array-like of shape (n_samples, n_components)
        Means of the components, in the units of the outcome.

    std : float or array-like of shape (n_samples, n_components)
        Standard deviations of the components, positive.

    weights : array-like of shape (n_components,) or (n_samples, n_components), default=None
        Weights of the components, not negative. They are divided by their sum. By default all are
        equal, as in a deep ensemble.

    Attributes
    ----------
    loc : ndarray of shape (n_samples, n_components)
        The means of the components.

    scale : ndarray of shape (n_samples, n_components)
        The standard deviations of the components.

    weights : ndarray of shape (n_samples, n_components)
        The weights of the components; rows sum to 1.

    See Also
    --------
    GaussianForecast : A single component.

    Notes
    -----
    Quantiles have no closed form; Newton steps find them to the last digits.

    Examples
    --------
    >>> from skcalib.forecasts import GaussianMixtureForecast
    >>> forecast = GaussianMixtureForecast([[-1.0, 1.0]], 0.1)
    >>> forecast.cdf(0.0), forecast.std().round(3)
    (array([0.5]), array([1.005]))
    """

    _row_attributes: ClassVar[tuple[str, ...]] = ("loc", "scale", "weights")

    def __init__(self, mean: ArrayLike, std: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.loc = check_numbers(mean, "mean", ndim=2, most=MAX_NUMBER)
        self.scale = check_deviations(std, self.loc.shape)
        self.weights = normalize_member_weights(weights, self.loc.shape)

    def _mix_logs(self, log_values: Callable, y: np.ndarray) -> np.ndarray:
        """Return log Σ_k w_k exp(log_values(z_k)) with z_k = (y − μ_k)/σ_k for y (n, m)."""
        with np.errstate(divide="ignore"):
            log_weight = np.log(self.weights)[:, None]
        log_mean, n_block_columns = np.empty(y.shape), max(1, _MAX_MIXTURE_BLOCK // self.loc.size)
        for start in range(0, y.shape[1], n_block_columns):
            columns = slice(start, start + n_block_columns)
            z = _standardize(y[:, columns, None], self.loc[:, None], self.scale[:, None])
            log_mean[:, columns] = logsumexp(log_weight + log_values(z), axis=2)
        return log_mean

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return np.minimum(self._average(ndtr, y), 1.0)

    def _sf(self, y: np.ndarray) -> np.ndarray:
        return np.minimum(self._average(lambda z: ndtr(-z), y), 1.0)

    def _average(self, values: Callable, y: np.ndarray) -> np.ndarray:
        out = np.empty(y.shape)
        for j, column in enumerate(y.T):
            z = _standardize(column[:, None], self.loc, self.scale)
            out[:, j] = np.einsum("nc,nc->n", self.weights, values(z))
        return out

    def _logcdf(self, y: np.ndarray) -> np.ndarray:
        return np.minimum(self._mix_logs(log_ndtr, y), 0.0)

    def _logsf(self, y: np.ndarray) -> np.ndarray:
        return np.minimum(self._mix_logs(lambda z: log_ndtr(-z), y), 0.0)

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        log_scale = np.log(self.scale)[:, None]
        with np.errstate(over="ignore"):  # the density underflows to 0
            return self._mix_logs(lambda z: -(z**2) / 2 - log_scale - _LOG_SQRT_2_PI, y)

    def _ppf(self, level: np.ndarray) -> np.ndarray:
        mixtures = self.loc, self.scale, self.weights
        columns = [_mixture_quantiles(column, *mixtures) for column in level.T]
        return np.array(columns).T.reshape(level.shape)

    def _sample(self, generator: np.random.Generator, size: int) -> np.ndarray:
        cumulative = np.cumsum(self.weights, axis=1)
        uniform = generator.random((len(self), size)) * cumulative[:, -1:]
        component = np.zeros((len(self), size), dtype=np.intp)
        for k in range(self.loc.shape[1] - 1):
            component += uniform >= cumulative[:, k : k + 1]
        noise = generator.standard_normal((len(self), size))
        location = np.take_along_axis(self.loc, component, axis=1)
        return location + noise * np.take_along_axis(self.scale, component, axis=1)

    def _crps(self, y: np.ndarray) -> np.ndarray:
        return crps_mixture(y, self.loc, self.scale, self.weights)

    def mean(self) -> np.ndarray:
        return self.components()._mean()

    def std(self) -> np.ndarray:
        centred = self.loc - self.mean()[:, None]
        return root_mean_square(self.weights, np.hypot(centred, self.scale))

    def components(self, n_nodes: int | None = None) -> Components:
        return Components(self.loc, self.scale**2, self.weights)


def check_deviations(std: ArrayLike, shape: tuple[int, ...], name: str = "std") -> np.ndarray:
    """Return standard deviations in the shape of the means; refuse those that are not positive."""
    array = check_numbers(std, name, most=MAX_NUMBER)
    if array.ndim == 2 and len(shape) == 1 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim > 0 and array.shape != shape:
        raise ValueError(
            f"{name} must have the same shape as the means, {shape}, or be one number; found shape "
            f"{array.shape}. Pass one value for each mean."
        )
    array = np.broadcast_to(array, shape).copy()
    if (array < _MIN_STD).any():
        row = int(np.argmax((array < _MIN_STD).reshape(len(array), -1).any(axis=1)))
        raise ValueError(
            f"{name} must be positive; found {array[row].min():.6g} in row {row}. Use a small "
            f"number, but at least {_MIN_STD:g}, for an outcome that is all but certain."
        )
    return array


def _mixture_quantiles(
    level: np.ndarray, mean: np.ndarray, std: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Return quantiles (n,) at levels (n,) of the mixtures Σ_k weight · N(mean, std²), each (n, c).

    The quantile lies between the least and the largest quantile of the components. Newton steps
    that leave this bracket, or that do not shrink fast, are replaced by bisection. In the upper
    half the steps look at the survival function, which is as accurate there as the cdf is below.
    """
    sign = np.where(level > 0.5, -1.0, 1.0)  # upper levels by symmetry
    tail = np.where(level > 0.5, 1 - level, level)
    centre = sign[:, None] * mean
    has_weight = weight > 0
    component_quantiles = centre + std * ndtri(tail)[:, None]
    low = np.where(has_weight, component_quantiles, np.inf).min(axis=1)
    high = np.where(has_weight, component_quantiles, -np.inf).max(axis=1)
    x = (low + high) / 2
    active = np.flatnonzero(low < high)
    last = before_last = high[active] - low[active]
    for _ in range(_MAX_QUANTILE_STEPS):
        if len(active) == 0:
            break
        z = (x[active, None] - centre[active]) / std[active]
        excess = np.einsum("nc,nc->n", weight[active], ndtr(z)) - tail[active]
        slope = np.einsum("nc,nc->n", weight[active], normal_density(z) / std[active])
        low[active] = np.where(excess < 0, x[active], low[active])
        high[active] = np.where(excess < 0, high[active], x[active])
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = x[active] - excess / slope
        is_inside = (newton >= low[active]) & (newton <= high[active])
        is_fast = 2 * np.abs(excess) <= before_last * slope
        x_next = np.where(is_inside & is_fast, newton, (low[active] + high[active]) / 2)
        step = np.abs(x_next - x[active])
        x[active] = x_next
        unconverged = (step > _QUANTILE_RTOL * np.abs(x_next)) & (excess != 0)
        active, before_last, last = active[unconverged], last[unconverged], step[unconverged]
    return sign * x
