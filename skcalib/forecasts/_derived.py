"""Forecasts of other forecasts: of a + b Y, and with the cdf R∘F."""

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_expit, logit, ndtri_exp

from .._inputs.arrays import ArrayLike
from .._inputs.warnings import warn
from .._numerics.array_api import root_mean_square
from .._numerics.crps import crps_nodes
from ._base import Components, Forecast, RowFunction, check_common_levels
from ._ensemble import cumulative_weights
from ._gaussian import GaussianForecast
from ._logistic import LogisticForecast

# The largest number of quantiles in one block of rows.
_MAX_BLOCK_QUANTILES = 2**22

# Between these log-odds a level can be inverted: above, one minus it has too few digits, and below
# it underflows.
_MIN_LOG_ODDS, _MAX_LOG_ODDS = -690.0, 16.0

# Doublings of the interquartile range that reach `MAX_NUMBER`.
_MAX_DOUBLINGS = 2100

# An outcome that is mapped to the base and back changes by less than this share.
_ROUND_TRIP_RTOL = 1e-15


class AffineForecast(Forecast):
    """The forecasts of a + b Y with b > 0, where Y has the base forecasts."""

    _row_attributes: ClassVar[tuple[str, ...]] = ("base", "shift", "factor")

    def __init__(self, base: Forecast, shift: np.ndarray, factor: np.ndarray) -> None:
        self.base = base
        self.shift = shift
        self.factor = factor

    @property
    def is_continuous(self) -> bool:  # type: ignore[override]
        return self.base.is_continuous

    def _to_base(self, y: np.ndarray) -> np.ndarray:
        return ((y.T - self.shift) / self.factor).T  # y is (n,) or (n, m)

    def _rounding_error(self, y: np.ndarray) -> np.ndarray:
        """Return the largest rounding error of `_to_base`."""
        error = _ROUND_TRIP_RTOL * (np.abs(y.T) + np.abs(self.shift)) / self.factor
        return np.where(np.isfinite(y), error.T, 0.0)

    def _to_base_inclusive(self, y: np.ndarray) -> np.ndarray:
        """Return `_to_base`, rounded up so that the probability of y itself is not lost."""
        base_y = self._to_base(y)
        return base_y if self.is_continuous else base_y + self._rounding_error(y)

    def _from_base(self, y: np.ndarray) -> np.ndarray:
        return (self.shift + self.factor * y.T).T

    def _support(self) -> tuple[np.ndarray, np.ndarray]:
        bounds = (np.broadcast_to(bound, len(self)) for bound in self.base._support())
        low, high = (self._from_base(bound) for bound in bounds)
        slack = self.factor * self._rounding_error(low), self.factor * self._rounding_error(high)
        return low - slack[0], high + slack[1]

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return self.base._cdf(self._to_base_inclusive(y))

    def _sf(self, y: np.ndarray) -> np.ndarray:
        return self.base._sf(self._to_base_inclusive(y))

    def _logcdf(self, y: np.ndarray) -> np.ndarray:
        return self.base._logcdf(self._to_base_inclusive(y))

    def _logsf(self, y: np.ndarray) -> np.ndarray:
        return self.base._logsf(self._to_base_inclusive(y))

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        base_y = self._to_base(y)
        if self.is_continuous:
            return self.base._logpdf(base_y) - np.log(self.factor)[:, None]
        whole = np.rint(base_y)  # the outcomes of discrete forecasts are whole numbers
        is_whole = np.abs(whole - base_y) <= self._rounding_error(y)
        return self.base._logpdf(np.where(is_whole, whole, base_y))

    def _ppf(self, level: np.ndarray) -> np.ndarray:
        return self._from_base(self.base._ppf(level))

    def quantiles(self, levels: ArrayLike) -> np.ndarray:
        return self._from_base(self.base.quantiles(levels))

    def mean(self) -> np.ndarray:
        return self._from_base(self.base.mean())

    def std(self) -> np.ndarray:
        return self.factor * self.base.std()

    def entropy(self) -> np.ndarray:
        return self.base.entropy() + np.log(self.factor)

    def _sample(self, generator: np.random.Generator, size: int) -> np.ndarray:
        return self._from_base(self.base._sample(generator, size))

    def _pit_bounds(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.is_continuous:
            return self.base._pit_bounds(self._to_base(y))
        base_y, slack = self._to_base(y), self._rounding_error(y)
        return self.base._pit_bounds(base_y - slack)[0], self.base._pit_bounds(base_y + slack)[1]

    def _crps(self, y: np.ndarray) -> np.ndarray:
        return self.factor * self.base._crps(self._to_base(y))

    def _expect(self, function: RowFunction, kinks: np.ndarray | None = None) -> np.ndarray:
        def evaluate_at_base(y: np.ndarray, row: np.ndarray) -> np.ndarray:
            return function(self.shift[row, None] + self.factor[row, None] * y, row)

        return self.base._expect(evaluate_at_base, None if kinks is None else self._to_base(kinks))

    def components(self, n_nodes: int | None = None) -> Components:
        return self._shift_components(self.base.components(n_nodes))

    def _atoms(self) -> Components | None:
        atoms = self.base._atoms()
        return None if atoms is None else self._shift_components(atoms)

    def _shift_components(self, components: Components) -> Components:
        location, variance, weight = components
        return Components(self._from_base(location), self.factor[:, None] ** 2 * variance, weight)

    def _sort_keys(self) -> list[np.ndarray]:
        return [*self.base._sort_keys(), self.shift, self.factor]


class RecalibratedForecast(Forecast):
    """The forecasts R∘F, where F are the cdfs of the base forecasts, and R is a map of levels.

    :meth:`quantiles` and :meth:`interval` of a conformal map are those of ranks, for which the
    statements on coverage hold; `cdf`, `ppf` and what follows from them interpolate. Its mean,
    deviation and CRPS are integrals with two nodes in each of some 200 pieces: exact to about 1e-3
    of the deviation where quantile functions are smooth, and tails not heavy.
    """

    _row_attributes: ClassVar[tuple[str, ...]] = ("base",)

    def __init__(self, base: Forecast, level_map: Any) -> None:
        self.base = base
        self.level_map = level_map

    @property
    def is_continuous(self) -> bool:  # type: ignore[override]
        return self.base.is_continuous

    @property
    def _is_of_counts(self) -> bool:  # type: ignore[override]
        return self.base._is_of_counts

    def _logcdf(self, y: np.ndarray) -> np.ndarray:
        return self.level_map.log_cdf(self.base._log_odds(y))

    def _logsf(self, y: np.ndarray) -> np.ndarray:
        return self.level_map.log_sf(self.base._log_odds(y))

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        if not self.level_map.has_density:
            self._raise_unknown(
                "logpdf",
                "has no density, as its ranks are those of outcomes",
                "Use crps, or PITRecalibrator(method='beta').",
            )
        if self.is_continuous:
            log_density = self.base._logpdf(y)
            with np.errstate(invalid="ignore"):  # the slope at the levels 0 and 1 may be infinite
                slope = self.level_map.log_slope(self.base._log_odds(y))
            return np.where(np.isneginf(log_density), -np.inf, log_density + slope)
        with np.errstate(divide="ignore"):
            bounds = [self._pit_bounds(column) for column in y.T]
            return np.log(np.column_stack([upper - lower for lower, upper in bounds]))

    def _ppf(self, level: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            z = self.level_map.inverse(np.log(level), np.log1p(-level))
        return ppf_log_odds(self.base, z)

    def quantiles(self, levels: ArrayLike) -> np.ndarray:
        """Quantiles at the same levels for all rows; those of ranks for a conformal map.

        Parameters
        ----------
        levels : array-like of shape (m,)
            Probabilities in [0, 1].

        Returns
        -------
        y : ndarray of shape (n_samples, m)
            Quantiles, in the units of the outcome; infinite where there are too few ranks.
        """
        if self.level_map.has_density:
            return super().quantiles(levels)
        return self._evaluate_at_points(self.level_map.rank(check_common_levels(levels)))

    def interval(self, coverage: float) -> tuple[np.ndarray, np.ndarray]:
        """Central prediction intervals; between ranks for a conformal map.

        Parameters
        ----------
        coverage : float in (0, 1)
            Probability of the interval. Half of the rest lies on either side.

        Returns
        -------
        low, high : ndarray of shape (n_samples,)
            Ends of the intervals, in the units of the outcome; infinite, with a warning, where
            there are too few ranks: fewer than 2/(1 − coverage) − 1 samples.
        """
        bounds = super().interval(coverage)
        if self.level_map.has_density:
            return bounds
        low, high = self._evaluate_at_points(self.level_map.central(coverage)).T
        if np.isinf([low, high]).any():
            n_ranks = math.ceil(2 / (1 - coverage) - 1 - 1e-9)
            warn(
                f"Intervals of probability {coverage:g} are infinite, as too few samples were "
                f"ranked. Fit PITRecalibrator to {n_ranks} samples or more, or use its "
                "method='beta'."
            )
        return low, high

    def _evaluate_at_points(self, z: np.ndarray) -> np.ndarray:
        return ppf_log_odds(self.base, np.broadcast_to(z, (len(self), len(z))))

    def _integrate(self, summary: Callable) -> np.ndarray:
        """Call `summary` for blocks of rows, and join its answers, (n,).

        It gets the quantiles (b, m) at nodes, their levels and weights (m,), and the rows as a
        slice.
        """
        z, level, weight = self.level_map.nodes()
        size = max(1, _MAX_BLOCK_QUANTILES // len(z))
        blocks = [slice(start, start + size) for start in range(0, len(self), size)]
        return np.concatenate(
            [summary(self[rows]._evaluate_at_points(z), level, weight, rows) for rows in blocks]
        )

    def _atoms(self) -> Components | None:
        atoms = self.base._atoms()
        if atoms is None:
            return None
        return atoms._replace(weight=remap_weights(atoms.weight, self.level_map))

    @property
    def _needs_nodes(self) -> bool:
        """True if integrals have the kinks of many ranks."""
        has_sum = self._is_of_counts or self._atoms() is not None
        return not (self.level_map.has_density or has_sum)

    def mean(self) -> np.ndarray:
        if not self._needs_nodes:
            return super().mean()
        return self._integrate(lambda values, level, weight, rows: values @ weight)

    def std(self) -> np.ndarray:
        if not self._needs_nodes:
            return super().std()
        return self._integrate(
            lambda values, level, weight, rows: root_mean_square(
                weight, values - (values @ weight)[:, None]
            )
        )

    def _crps(self, y: np.ndarray) -> np.ndarray:
        if not self._needs_nodes:
            return super()._crps(y)
        return self._integrate(
            lambda values, level, weight, rows: crps_nodes(
                y[rows], values, level, np.broadcast_to(weight, values.shape)
            )
        )

    def _pit_bounds(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.is_continuous:
            return super()._pit_bounds(y)
        lower, upper = self.base._pit_bounds(y)
        with np.errstate(divide="ignore"):
            return tuple(np.exp(self.level_map.log_cdf(logit(u))) for u in (lower, upper))

    def _support(self) -> tuple[Any, Any]:
        return self.base._support()

    def _check_outcomes(self, y: np.ndarray, name: str, *, may_be_impossible: bool) -> None:
        self.base._check_outcomes(y, name, may_be_impossible=may_be_impossible)

    def _sort_keys(self) -> list[np.ndarray]:
        return self.base._sort_keys()


def remap_weights(weights: np.ndarray, level_map: Any) -> np.ndarray:
    """Return R(W_k) − R(W_(k−1)) for the running sums W of weights (n, s)."""
    with np.errstate(divide="ignore"):
        level = np.exp(level_map.log_cdf(logit(cumulative_weights(weights)[:, 1:])))
    return np.diff(level, axis=1, prepend=0.0)


@singledispatch
def ppf_log_odds(forecast: Forecast, z: np.ndarray) -> np.ndarray:
    """Return outcomes (n, m) where logcdf − logsf is z (n, m), even if the level rounds to 1."""
    y = forecast._ppf(expit(np.where(np.isinf(z), z, np.clip(z, _MIN_LOG_ODDS, _MAX_LOG_ODDS))))
    is_far = ((z > _MAX_LOG_ODDS) | (z < _MIN_LOG_ODDS)) & np.isfinite(z) & np.isfinite(y)
    if not is_far.any() or not forecast.is_continuous:
        return y
    rows = np.flatnonzero(is_far.any(axis=1))
    if len(rows) < len(forecast):
        y[rows] = ppf_log_odds(forecast[rows], z[rows])
        return y
    quartiles = forecast._ppf(np.broadcast_to([0.25, 0.75], (len(forecast), 2)))
    side = np.where(is_far, np.sign(z), 0.0)
    step = np.where(is_far, np.diff(quartiles, axis=1), 0.0)
    near = np.where(is_far, y, quartiles[:, :1])  # any finite value where it is not far
    z = np.where(is_far, z, 0.0)
    end = near + side * step
    for _ in range(_MAX_DOUBLINGS):  # until the outcome lies between near and end
        is_short = is_far & (side * (forecast._log_odds(end) - z) < 0)
        if not is_short.any():
            break
        near = np.where(is_short, end, near)
        step = np.where(is_short, 2 * step, step)
        end = np.where(is_short, end + side * step, end)
    for _ in range(_MAX_DOUBLINGS):
        middle = (near + end) / 2
        if ((middle == near) | (middle == end)).all():
            break
        is_short = side * (forecast._log_odds(middle) - z) < 0
        near, end = np.where(is_short, middle, near), np.where(is_short, end, middle)
    return np.where(is_far, end, y)


@ppf_log_odds.register
def _(forecast: GaussianForecast, z: np.ndarray) -> np.ndarray:
    tail = log_expit(-np.abs(z))
    deviation = np.where(np.isinf(z), -np.inf, ndtri_exp(tail))
    deviation = np.where(z == 0, 0.0, deviation)
    return forecast.loc[:, None] - np.sign(z) * forecast.scale[:, None] * deviation


@ppf_log_odds.register
def _(forecast: LogisticForecast, z: np.ndarray) -> np.ndarray:
    return forecast.loc[:, None] + forecast.scale[:, None] * z


@ppf_log_odds.register
def _(forecast: AffineForecast, z: np.ndarray) -> np.ndarray:
    return forecast._from_base(ppf_log_odds(forecast.base, z))
