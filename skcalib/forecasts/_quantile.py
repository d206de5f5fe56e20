"""Forecasts by quantiles at given levels."""

from typing import ClassVar

import numpy as np

from .._inputs.arrays import ArrayLike, check_numbers, format_values
from .._numerics.crps import crps_quantiles, level_weights
from ._base import MAX_NUMBER, Components, Forecast, ScoreWithSlope

# Levels that differ by less than this are equal.
_LEVEL_ATOL = 1e-12


class QuantileForecast(Forecast):
    r"""Quantiles at the same levels for all samples.

    Parameters
    ----------
    quantiles : array-like of shape (n_samples, n_levels)
        Quantiles in the units of the outcome, none lower than the one before it.

    levels : array-like of shape (n_levels,)
        Their levels in (0, 1), increasing.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_levels)
        The quantiles.

    levels : ndarray of shape (n_levels,)
        Their levels.

    See Also
    --------
    EnsembleForecast : Members instead of quantiles.

    Notes
    -----
    Quantiles :math:`q_1 \le \dots \le q_K` at the levels :math:`\alpha_k` tell the probability
    :math:`\alpha_{k+1} - \alpha_k` of each cell :math:`(q_k, q_{k+1}]`, and nothing about how it is
    spread within the cell. So there is no density, mean or standard deviation, and no drawing.
    Within a cell, `cdf` and `ppf` interpolate linearly between neighbouring quantiles; beyond the
    outer ones they are refused. :meth:`pit_bounds` gives the levels around the outcome's cell.

    The score :meth:`crps` is the trapezoidal rule over the levels, :math:`\sum_k (\alpha_{k+1} -
    \alpha_{k-1}) \rho_k` with the pinball losses :math:`\rho_k`, :math:`\alpha_0 = 0` and
    :math:`\alpha_{K+1} = 1`.

    Examples
    --------
    >>> from skcalib.forecasts import QuantileForecast
    >>> forecast = QuantileForecast([[1.0, 2.0, 4.0]], [0.1, 0.5, 0.9])
    >>> forecast.interval(0.8)
    (array([1.]), array([4.]))
    >>> forecast.pit_bounds([3.0])
    (array([0.5]), array([0.9]))
    """

    is_continuous = False

    _has_quantiles_only = True

    _row_attributes: ClassVar[tuple[str, ...]] = ("values",)

    def __init__(self, quantiles: ArrayLike, levels: ArrayLike) -> None:
        self.values = check_numbers(quantiles, "quantiles", ndim=2, most=MAX_NUMBER)
        self.levels = check_quantile_levels(levels, self.values.shape[1])
        check_order(self.values, self.levels)

    @property
    def _bounds(self) -> np.ndarray:
        """The levels with 0 and 1, (K + 2,)."""
        return np.concatenate([[0.0], self.levels, [1.0]])

    def _cells(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Count the quantiles below y, and at most y, for y (n,)."""
        below = (self.values < y[:, None]).sum(axis=1)
        return below, (self.values <= y[:, None]).sum(axis=1)

    def _pit_bounds(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        below, up_to = self._cells(y)
        return self._bounds[below], self._bounds[np.maximum(up_to, below + 1)]

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return self._interpolate(y, self.levels)

    def _sf(self, y: np.ndarray) -> np.ndarray:
        return self._interpolate(y, 1 - self.levels)

    def _interpolate(self, y: np.ndarray, heights: np.ndarray) -> np.ndarray:
        """Interpolate heights (K,), one for each level, linearly at y (n, m)."""
        value = np.empty(y.shape)
        rows = np.arange(len(self))
        for j, column in enumerate(y.T):
            cell = self._cells(column)[1]
            is_outside = (cell == 0) | ((cell == len(self.levels)) & (column > self.values[:, -1]))
            if is_outside.any():
                row = int(np.argmax(is_outside))
                self._raise_unknown(
                    "cdf",
                    f"says nothing beyond its outer quantiles, and {column[row]:.6g} in row {row} "
                    f"lies outside of [{self.values[row, 0]:.6g}, {self.values[row, -1]:.6g}]",
                    "Use pit_bounds, or forecast quantiles at more extreme levels.",
                )
            after = np.minimum(cell, len(self.levels) - 1)
            low, high = self.values[rows, cell - 1], self.values[rows, after]
            share = np.divide(column - low, high - low, out=np.zeros(len(self)), where=high > low)
            step = heights[after] - heights[cell - 1]
            value[:, j] = heights[cell - 1] + share * step
        return value

    def _ppf(self, level: np.ndarray) -> np.ndarray:
        first, last = self.levels[0], self.levels[-1]
        if (level < first - _LEVEL_ATOL).any() or (level > last + _LEVEL_ATOL).any():
            outside = level[(level < first - _LEVEL_ATOL) | (level > last + _LEVEL_ATOL)][0]
            self._raise_unknown(
                "ppf",
                f"has levels from {first:.6g} to {last:.6g} and no tails; found the level "
                f"{outside:.6g}",
                "Forecast quantiles at more extreme levels.",
            )
        level = np.clip(level, first, last)
        after = np.clip(np.searchsorted(self.levels, level - _LEVEL_ATOL), 1, len(self.levels) - 1)
        if len(self.levels) == 1:
            return np.broadcast_to(self.values, level.shape).copy()
        low, high = self.levels[after - 1], self.levels[after]
        share = np.clip((level - low) / (high - low), 0.0, 1.0)
        share = np.where(np.abs(level - high) <= _LEVEL_ATOL, 1.0, share)
        share = np.where(np.abs(level - low) <= _LEVEL_ATOL, 0.0, share)
        start = np.take_along_axis(self.values, after - 1, axis=1)
        return start + share * (np.take_along_axis(self.values, after, axis=1) - start)

    def _sample(self, generator: np.random.Generator, size: int) -> np.ndarray:
        self._raise_unknown(
            "sample", "has quantiles only, and no tails", "Use an EnsembleForecast."
        )

    def _crps(self, y: np.ndarray) -> np.ndarray:
        return crps_quantiles(y, self.values, self.levels)

    def _make_crps_with_slope(self) -> ScoreWithSlope:
        weight = level_weights(self.levels)
        return lambda y: (self.crps(y), (self.levels - (y[:, None] < self.values)) @ weight)

    def _wasserstein_points(self) -> np.ndarray:
        weight = level_weights(self.levels)
        return self.values * np.sqrt(weight / weight.sum())

    def components(self, n_nodes: int | None = None) -> Components:
        bounds = self._bounds
        shape = (len(self), len(self.levels) + 1)
        location = np.broadcast_to((bounds[1:] + bounds[:-1]) / 2, shape)
        return Components(location, np.zeros(shape), np.broadcast_to(np.diff(bounds), shape))

    def _parameters(self) -> np.ndarray:
        return self.values.copy()

    def _match_scale(self, y: np.ndarray) -> np.ndarray:
        return np.mean(self._pit_bounds(y), axis=0)

    def _simulate(self, generator: np.random.Generator, size: int) -> np.ndarray:
        return self._simulate_at(generator.random((size, len(self))))

    def _simulate_at(self, level: np.ndarray) -> np.ndarray:
        cell = np.searchsorted(self.levels, level, side="left")
        return np.take_along_axis(self._inside_cells(), cell.T, axis=1).T.copy()

    def _to_simulated(self, y: np.ndarray) -> np.ndarray:
        below, up_to = self._cells(y)
        cell = np.maximum(up_to - 1, below)
        return self._inside_cells()[np.arange(len(self)), cell]

    def _inside_cells(self) -> np.ndarray:
        """Return one value inside of each cell, (n, K + 1)."""
        outer = np.maximum(np.ptp(self.values, axis=1), np.abs(self.values).max(axis=1) + 1)
        between = (self.values[:, 1:] + self.values[:, :-1]) / 2
        first, last = self.values[:, 0] - outer, self.values[:, -1] + outer
        return np.column_stack([first, between, last])


def check_quantile_levels(levels: ArrayLike, n_columns: int) -> np.ndarray:
    """Return increasing levels in (0, 1), one for each column; refuse all others."""
    array = check_numbers(levels, "levels", finite=False)
    if array.shape != (n_columns,) or n_columns == 0:
        raise ValueError(
            f"levels must hold one level for each of the {n_columns} columns of quantiles; found "
            f"shape {array.shape}. Pass the levels in the order of the columns."
        )
    if not ((array > 0) & (array < 1)).all():
        raise ValueError(
            f"levels must lie in (0, 1); found {format_values(array)}. Pass 0.05 for 5 %, and "
            "leave out the least and the largest outcome."
        )
    if not (np.diff(array) > 0).all():
        raise ValueError(
            f"levels must increase; found {format_values(array)}. Sort them, and the columns of "
            "quantiles with them."
        )
    return array


def select_levels(forecast: Forecast, levels: ArrayLike) -> QuantileForecast:
    """Return the forecast's quantiles at some levels as a forecast by quantiles."""
    levels = check_quantile_levels(levels, np.size(levels))
    return QuantileForecast(forecast.quantiles(levels), levels)


def check_same_levels(forecasts: dict[str, Forecast], remedy: str) -> None:
    """Refuse to compare losses over different levels: a trapezoid of few is smaller."""
    levels = [
        forecast.levels.round(12) if forecast._has_quantiles_only else np.empty(0)
        for forecast in forecasts.values()
    ]
    if any(not np.array_equal(levels[0], other) for other in levels[1:]):
        descriptions = [
            f"quantiles at the levels {format_values(grid)}" if grid.size else "whole distributions"
            for grid in levels
        ]
        raise ValueError(
            f"{' and '.join(forecasts)} must be forecasts of the same levels to compare their "
            f"losses, as that of few levels is smaller; found {' and '.join(descriptions)}. "
            f"{remedy}"
        )


def check_order(values: np.ndarray, levels: np.ndarray) -> None:
    """Refuse quantiles that cross."""
    crossing = np.diff(values, axis=1) < 0
    if crossing.any():
        row, column = np.argwhere(crossing)[0]
        raise ValueError(
            f"quantiles must not decrease from level to level; found {values[row, column]:.6g} at "
            f"{levels[column]:.6g} and {values[row, column + 1]:.6g} at "
            f"{levels[column + 1]:.6g} in row {row}. Sort each row (np.sort(quantiles, axis=1)), "
            "which is never less accurate."
        )
