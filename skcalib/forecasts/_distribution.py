"""Distributions of other packages as forecasts."""

from typing import Any, ClassVar

import numpy as np

from .._inputs.arrays import ArrayLike, as_array
from ._base import MAX_NUMBER, Components, Forecast
from ._foreign import wrap

# Methods that return the probability of all outcomes up to a value, or beyond it.
_CUMULATIVE_METHODS = ("cdf", "sf", "logcdf", "logsf")

# Values that are less likely than this share do not count among the likely ones.
_MIN_PROBABILITY = 1e-15

# A discrete distribution is the sum over its likely values if each has at most this many, or all
# together that many.
_MAX_ATOMS, _MAX_ALL_ATOMS = 512, 2**22


class DistributionForecast(Forecast):
    """Distributions of any package, one for each sample.

    Parameters
    ----------
    dist : object
        One object that holds the distributions of all samples: a frozen or new-style distribution
        of :mod:`scipy.stats` whose parameters are arrays of shape (n_samples,), one of skpro,
        NGBoost or torch.distributions, or any object with the methods `cdf` and `ppf` that
        broadcast against (n_samples,), and, if it has them, `logcdf`, `logsf`, `logpdf`, `mean`
        and `std`. Discrete ones are taken as well.

    Attributes
    ----------
    dist : object
        The distributions.

    See Also
    --------
    as_forecast : Also makes a :class:`GaussianForecast` of normal distributions.

    Notes
    -----
    Without `logcdf` and `logsf`, the log odds of an outcome whose `cdf` is 0 or 1 in double
    precision are refused, not guessed. The score :meth:`crps` is found by quadrature of the
    quantile function, with 32 nodes on each piece between 0, 1/2, the level of the outcome and 1;
    pieces are halved until their error is below 1e-7 of the integral, and a warning says where more
    than 1e-6 remains. So are :meth:`mean` and :meth:`std` of objects without their own. Of a
    distribution of whole numbers they are sums over all likely ones, at most 2²² in each row.
    :meth:`components` are 64 nodes or more, or the likely whole numbers, up to 512 in each row or
    2²² in all; they average smooth functions, those with a kink to about 1e-3. Outcomes beyond the
    support have a score; what needs their probability refuses them.

    Examples
    --------
    >>> from scipy.stats import gamma
    >>> from skcalib.forecasts import DistributionForecast
    >>> forecast = DistributionForecast(gamma([1.0, 2.0]))
    >>> forecast.mean()
    array([1., 2.])
    >>> forecast.sf(3.0).round(3)
    array([0.05 , 0.199])
    """

    _row_attributes: ClassVar[tuple[str, ...]] = ("_wrapped",)

    def __init__(self, dist: object) -> None:
        self._wrapped = wrap(dist)
        self.is_continuous = self._wrapped.is_continuous

    @property
    def _is_of_counts(self) -> bool:  # type: ignore[override]
        return not self.is_continuous and self._wrapped.has_whole_numbers

    @property
    def dist(self) -> Any:
        """The distributions."""
        return self._wrapped.dist

    def _call(self, name: str, values: np.ndarray) -> np.ndarray:
        kind = type(self.dist).__name__
        if not self._wrapped.has(name):
            self._raise_unknown(
                name, f"wraps {kind}, which does not tell it", "Pass a distribution that has it."
            )
        if name in _CUMULATIVE_METHODS and self._wrapped.has_whole_numbers:
            values = self._wrapped.round_down(values)  # some packages interpolate
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # checked below
            result = self._wrapped.call(name, values)
        if np.isnan(result).any():
            row = int(np.argmax(np.isnan(result).any(axis=1)))
            raise ValueError(
                f"dist must have valid parameters; found {name} to be NaN in row {row} of a "
                f"{kind}. Look for parameters that are NaN, negative or 0 there."
            )
        return result

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return self._call("cdf", y)

    def _sf(self, y: np.ndarray) -> np.ndarray:
        return self._call("sf", y) if self._wrapped.has("sf") else np.exp(self._logsf(y))

    def _logcdf(self, y: np.ndarray) -> np.ndarray:
        return self._call("logcdf", y) if self._wrapped.has("logcdf") else super()._logcdf(y)

    def _logsf(self, y: np.ndarray) -> np.ndarray:
        if self._wrapped.has("logsf"):
            return self._call("logsf", y)
        if self._wrapped.has("sf"):
            return super()._logsf(y)
        with np.errstate(divide="ignore"):
            return np.log1p(-self._cdf(y))

    def pit_log_odds(self, y: ArrayLike) -> np.ndarray:
        odds = super().pit_log_odds(y)
        if not np.isfinite(odds).all():
            row = int(np.argmin(np.isfinite(odds)))
            outcome = as_array(y, "y")[row]
            self._raise_unknown(
                "pit_log_odds",
                f"says that the outcome {outcome:.6g} in row {row} is impossible, in double "
                "precision",
                "Pass a distribution with the methods logcdf and logsf, or remove the sample.",
            )
        return odds

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        return self._call("logpdf", y)

    def _ppf(self, level: np.ndarray) -> np.ndarray:
        quantile = self._call("ppf", level)
        is_broken = np.isinf(quantile) & (level > 0) & (level < 1)
        if is_broken.any():
            row, column = np.argwhere(is_broken)[0]
            raise ValueError(
                "dist must have finite quantiles at levels below 1 and above 0; found an infinite "
                f"one at {float(level[row, column])!r} in row {row} of a "
                f"{type(self.dist).__name__}. Make its parameters double precision, or look for "
                "some that are too large."
            )
        return quantile

    def mean(self) -> np.ndarray:
        return self._wrapped.moment("mean") if self._wrapped.has("mean") else super().mean()

    def std(self) -> np.ndarray:
        if not self._wrapped.has("std"):
            return super().std()
        with np.errstate(over="ignore"):
            std = self._wrapped.moment("std")
        is_lost = ~(std > 1 / MAX_NUMBER)  # many packages take the root of a variance
        return np.where(is_lost, super().std(), std) if is_lost.any() else std

    def entropy(self) -> np.ndarray:
        if self.is_continuous and self._wrapped.has("entropy"):
            return self._wrapped.moment("entropy")
        return super().entropy()

    def _pit_bounds(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self._wrapped.has_whole_numbers:  # those that rounding has moved are meant
            is_possible = self._wrapped.is_possible(y[:, None])
            y = np.where(is_possible, self._wrapped.round_down(y[:, None] + 0.5), y[:, None])[:, 0]
        upper = self._cdf(y[:, None])[:, 0]
        if self.is_continuous:
            return upper, upper
        return self._cdf(np.nextafter(y, -np.inf)[:, None])[:, 0], upper

    def _atoms(self) -> Components | None:
        """Return all likely values of a discrete distribution of whole numbers, if they are few."""
        if not self._is_of_counts:
            return None
        levels = np.tile([_MIN_PROBABILITY, 1 - _MIN_PROBABILITY], (len(self), 1))
        bounds = self._ppf(levels)
        most = np.ptp(bounds, axis=1).max() + 1
        if not most <= max(_MAX_ATOMS, _MAX_ALL_ATOMS // len(self)):
            return None
        location = bounds[:, :1] + np.arange(int(most))
        inner = self._cdf(location[:, :-1])
        probability = np.diff(inner, axis=1, prepend=0.0, append=1.0)
        return Components(location, np.zeros_like(location), np.maximum(probability, 0.0))

    def _support(self) -> tuple[Any, Any]:
        return self._wrapped.support()

    def _check_outcomes(self, y: np.ndarray, name: str, *, may_be_impossible: bool) -> None:
        if self._wrapped.has_whole_numbers:
            check_counts(y, self._wrapped.is_possible(y[:, None])[:, 0], name)
        super()._check_outcomes(y, name, may_be_impossible=may_be_impossible)


def check_counts(y: np.ndarray, is_possible: np.ndarray, name: str) -> None:
    """Refuse outcomes of a discrete forecast that are not its whole numbers."""
    if not is_possible.all():
        row = int(np.argmin(is_possible))
        raise ValueError(
            f"{name} must hold whole numbers, as its forecasts are of counts; found {y[row]:.6g} "
            f"in row {row}. Pass the counts themselves, not rates or means of them."
        )
