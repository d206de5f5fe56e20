"""What is matched: outcomes and forecasts, or PITs and the uniform distribution.

A target with features has vectors ρ_i = a(y_i) − E a(Y_i), whose inner products are the terms
ℓ(y_i, y_j) − e_i(y_j) − e_j(y_i) + c_ij. One without gives these terms for pairs of samples.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._numerics.atoms import Atoms
from .._numerics.crps import gauss_legendre
from .._numerics.matching import (
    interval_mean,
    interval_waves,
    mixture_waves,
    shifted_waves,
    smoothed_kernel,
    wave_grid,
    wave_weights,
    waves,
)
from .._numerics.median_distance import median_distance
from ..forecasts import Forecast, ResidualForecast
from ..forecasts._base import Components

# Nothing of a normal distribution is noticed beyond this many standard deviations.
_REACH = 6.0

# Up to this many features per sample they are faster than the terms of pairs of normal forecasts.
MOST_FEATURES = 300

# Entries of a block of kernel values.
_ENTRIES = 2**20

_NODES = 64

# Nodes for the PITs of one outcome of positive probability.
_NODES_OF_ATOM = 16


class OutcomeWaves:
    """Outcomes and forecasts with the rbf kernel: Fourier features by the trapezoidal rule.

    They are accurate to about 1e-10, or 1e-6 if they are rough.
    """

    def __init__(
        self, forecast, weight: np.ndarray, bandwidth, scale: float, *, is_rough=False
    ) -> None:
        self.forecast, self.weight, self.bandwidth, self.scale = forecast, weight, bandwidth, scale
        self.is_rough = is_rough
        self.last: tuple[np.ndarray, np.ndarray] | None = None
        if isinstance(forecast, ResidualForecast):
            location, residuals = forecast.location, forecast.residuals
            self.components = None
            low, high = location.min() + residuals[0], location.max() + residuals[-1]
        else:
            self.components = forecast.components(_NODES)
            reach = _REACH * np.sqrt(self.components.variance)
            low = (self.components.location - reach).min()
            high = (self.components.location + reach).max()
        self.range = float(low), float(high)

    def bandwidths(self, values: np.ndarray) -> np.ndarray:
        """The bandwidth for each row of outcomes (R, n), (R,)."""
        if self.bandwidth != "median":
            return np.full(len(values), float(self.bandwidth))
        if self.last is None or self.last[0] is not values:  # they are needed twice
            bandwidth = [outcome_bandwidth(row, self.weight, self.forecast) for row in values]
            self.last = values, np.array(bandwidth)
        return self.last[1]

    def grid(self, values, bandwidth):
        low, high = min(values.min(), self.range[0]), max(values.max(), self.range[1])
        step, count = wave_grid(
            high - low, bandwidth.max(), bandwidth.min(), is_rough=self.is_rough
        )
        return (low + high) / 2, step, count

    def counts(self, values: np.ndarray) -> tuple[np.ndarray, int]:
        """Number of features that each row of outcomes (R, n) needs, (R,), and that all need."""
        bandwidth = self.bandwidths(values)
        grids = (self.grid(values[r], bandwidth[r : r + 1]) for r in range(len(values)))
        counts = np.array([2 * count + 1 for _, _, count in grids])
        return counts, 2 * self.grid(values, bandwidth)[2] + 1

    def prepare(self, values: np.ndarray) -> Callable[[slice], np.ndarray]:
        """The features of some rows, (R, C, b), times the weights."""
        bandwidth = self.bandwidths(values)
        origin, step, count = self.grid(values, bandwidth)
        root = self.scale * np.sqrt(wave_weights(step, count, bandwidth))[..., None]  # (R, C, 1)

        def rows_of(rows):
            features = waves(values[:, rows] - origin, step, count)
            features -= self._mean(rows, origin, step, count)
            features *= self.weight[rows]
            features *= root
            return features

        return rows_of

    def _mean(self, rows, origin, step, count):
        """E a(Y_i), (C, b)."""
        if self.components is not None:
            location, variance, weight = (part[rows] for part in self.components)
            return mixture_waves(location - origin, variance, weight, step, count)
        residuals, weights = self.forecast.residuals[None], self.forecast.weights[None]
        mean = mixture_waves(residuals, np.zeros_like(residuals), weights, step, count)
        return shifted_waves(self.forecast.location[rows] - origin, mean, step, count)


class UniformWaves:
    """PITs and the uniform distribution with the rbf kernel; atoms are averaged."""

    def __init__(self, forecast: Forecast, weight: np.ndarray, bandwidth: float) -> None:
        self.forecast, self.weight, self.bandwidth = forecast, weight, bandwidth
        self.step, self.count = wave_grid(1.0, bandwidth, bandwidth)
        self.root = np.sqrt(wave_weights(self.step, self.count, np.array([bandwidth])))[0, :, None]
        whole = np.array([0.0]), np.array([1.0])
        self.mean = interval_waves(*whole, self.step, self.count)

    def counts(self, values: np.ndarray) -> tuple[np.ndarray, int]:
        return _same_for_all(2 * self.count + 1, values)

    def prepare(self, values: np.ndarray) -> Callable[[slice], np.ndarray]:
        low, high = pit_intervals(self.forecast, values)

        def rows_of(rows):
            features = interval_waves(low[:, rows], high[:, rows], self.step, self.count)
            features -= self.mean
            features *= self.weight[rows]
            features *= self.root
            return features

        return rows_of


class RandomWaves:
    """Outcomes and forecasts with the laplacian kernel, by waves of random frequencies.

    The waves are multiplied by random waves of what is given, so that with k = 1 the products of
    features have the mean k ℓ.
    """

    def __init__(
        self, forecast: Forecast, weight: np.ndarray, bandwidth, scale: float, frequency, turns
    ) -> None:
        self.outcome = OutcomeWaves(forecast, weight, bandwidth, scale)
        self.parts = forecast.components(_NODES)
        self.weight, self.scale = weight, scale
        self.frequency = frequency  # (D,), of the bandwidth 1
        self.turns = turns  # (D, n), the phases of what is given over 2π

    def counts(self, values: np.ndarray) -> tuple[np.ndarray, int]:
        return _same_for_all(2 * len(self.frequency), values)

    def prepare(self, values: np.ndarray) -> Callable[[slice], np.ndarray]:
        bandwidths = self.outcome.bandwidths(values)

        def rows_of(rows):
            features = [
                self._features(value[rows], rows, self.frequency / bandwidth)
                for value, bandwidth in zip(values, bandwidths, strict=True)
            ]
            return np.array(features) * (self.weight[rows] * self.scale)

        return rows_of

    def _features(self, value, rows, frequency):
        location, variance, weight = (part[rows] for part in self.parts)
        turn = frequency[:, None] / (2 * np.pi)
        wave = _unit_wave(turn * value + self.turns[:, rows])
        for k in range(location.shape[1]):
            decay = weight[:, k] * np.exp(-(frequency[:, None] ** 2) * variance[:, k] / 2)
            wave -= decay * _unit_wave(turn * location[:, k] + self.turns[:, rows])
        return np.concatenate([wave.real, wave.imag]) / np.sqrt(len(frequency))


def _unit_wave(turns: np.ndarray) -> np.ndarray:
    """e^{2πi t}, to single precision, which the randomness of the frequencies hides by far."""
    turns = turns - np.rint(turns)
    phase = (2 * np.pi * turns).astype(np.float32)
    wave = np.empty(turns.shape, dtype=np.complex128)
    wave.real, wave.imag = np.cos(phase), np.sin(phase)
    return wave


class Residuals:
    """One-hot labels minus probabilities."""

    def __init__(self, matrix: np.ndarray, weight: np.ndarray) -> None:
        self.matrix, self.weight = matrix, weight

    def counts(self, values: np.ndarray) -> tuple[np.ndarray, int]:
        return _same_for_all(self.matrix.shape[1], values)

    def prepare(self, values: np.ndarray) -> Callable[[slice], np.ndarray]:
        classes = np.arange(self.matrix.shape[1])[:, None]

        def rows_of(rows):
            residual = (values[:, None, rows] == classes) - self.matrix[rows].T
            residual *= self.weight[rows]
            return residual

        return rows_of


def _same_for_all(count, values):
    """The numbers of features, if all rows of outcomes need the same."""
    return np.full(len(values), count), count


def outcome_bandwidth(value: np.ndarray, weight: np.ndarray, forecast: Forecast) -> float:
    """The median distance of the outcomes; if all are equal, the spread of a forecast."""
    median = median_distance(value, weight, "cityblock")
    if median > 0:
        return median
    parts = forecast.components(_NODES)
    spread = parts.variance.mean() + parts.location.var()
    return float(np.sqrt(spread)) or 1.0


def pit_intervals(forecast: Forecast, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the intervals of the PITs of outcomes (R, n), each (R, n)."""
    low, high = np.empty((2, *values.shape))
    for r, value in enumerate(values):
        low[r], high[r] = forecast.pit_bounds(value)
    return low, high


# Terms of pairs of samples


class OutcomePairs:
    """Outcomes and forecasts with any kernel, pair by pair."""

    def __init__(self, forecast: Forecast, kernel, bandwidth, scale: float) -> None:
        self.kernel, self.bandwidth, self.factor = kernel, bandwidth, scale**2
        if callable(kernel):  # it can be averaged over single values only
            parts = forecast.components(_NODES)
            if parts.variance.any():
                parts = Forecast.components(forecast, _NODES)
        else:
            parts = forecast.components(_NODES)
        self.parts = Components(*(np.ascontiguousarray(part) for part in parts))
        self.atoms = None
        if kernel in ("laplacian", "energy") and not parts.variance.any():
            self.atoms = Atoms(kernel, bandwidth, parts.location, parts.weight)

    def forecast_pairs(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """c_ij, (a, b)."""
        other = Components(*(part[columns] for part in self.parts))
        value = np.zeros((len(rows), len(columns)))
        size = max(1, _ENTRIES // value.size)
        for start in range(0, other.location.shape[1], size):
            location, variance, weight = (part[:, start : start + size] for part in other)
            means = self._means(rows, location.ravel(), variance.ravel())
            value += np.einsum("abc,bc->ab", means.reshape(len(rows), *weight.shape), weight)
        return self.factor * value

    def _means(self, rows, location, variance=None):
        """E ℓ(Y_i, Z_j) for forecasts of some rows and normal Z_j, (a, b)."""
        if self.atoms is not None:
            return self.atoms.means(rows, location)
        parts = Components(*(part[rows] for part in self.parts))
        value = np.zeros((len(rows), len(location)))
        size = max(1, _ENTRIES // value.size)
        for start in range(0, parts.location.shape[1], size):
            some = slice(start, start + size)
            if callable(self.kernel):
                points = parts.location[:, some].reshape(-1, 1)
                values = self.kernel(points, location[:, None])
                values = values.reshape(len(rows), -1, len(location))
            else:
                shift = parts.location[:, some, None] - location
                spread = parts.variance[:, some, None]
                spread = spread if variance is None else spread + variance
                values = smoothed_kernel(self.kernel, shift, spread, self.bandwidth)
            value += np.einsum("acb,ac->ab", values, parts.weight[:, some])
        return value

    def gaps(self, value: np.ndarray, rows: np.ndarray, grid: np.ndarray) -> np.ndarray:
        """ℓ(y_i, t) − e_i(t) at the points t of a grid, (a, b)."""
        own = value[rows]
        if callable(self.kernel):
            values = np.array(self.kernel(own[:, None], grid[:, None]), dtype=np.float64)
        else:
            values = smoothed_kernel(self.kernel, own[:, None] - grid, np.zeros(1), self.bandwidth)
        return np.sqrt(self.factor) * (values - self._means(rows, grid))

    def outcome_pairs(self, value: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """ℓ(y_i, y_j) − e_i(y_j) − e_j(y_i), (a, b)."""
        own, other = value[rows], value[columns]
        if callable(self.kernel):
            pairs = np.array(self.kernel(own[:, None], other[:, None]), dtype=np.float64)
        else:
            pairs = smoothed_kernel(self.kernel, own[:, None] - other, np.zeros(1), self.bandwidth)
        pairs -= self._means(rows, other)
        pairs -= self._means(columns, own).T
        return self.factor * pairs


class _Nodes(NamedTuple):
    """Gauss–Legendre nodes of intervals of PITs; each of the distinct intervals is held once."""

    points: np.ndarray  # (m, k)
    share: np.ndarray  # (k,), sums to 1
    which: np.ndarray  # (n,), the interval of each sample


def _nodes_of(low: np.ndarray, high: np.ndarray) -> _Nodes:
    """The nodes of the intervals [low, high], (n,) each; points themselves without widths."""
    if (low == high).all():
        return _Nodes(low[:, None], np.ones(1), np.arange(len(low)))
    ends, which = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True)
    node, share = gauss_legendre(_NODES_OF_ATOM)
    return _Nodes(ends[:, :1] + np.diff(ends) * node, share, which.ravel())


class UniformPairs:
    """PITs and the uniform distribution with any kernel, pair by pair."""

    def __init__(self, forecast: Forecast, kernel, bandwidth: float) -> None:
        self.forecast, self.kernel, self.bandwidth = forecast, kernel, bandwidth
        node, share = gauss_legendre(_NODES)
        self.uniform = _Nodes(node[None], share, np.zeros(1, dtype=np.intp))

    def intervals(self, values: np.ndarray) -> np.ndarray:
        """(R, n, 2)."""
        return np.stack(pit_intervals(self.forecast, values), axis=-1)

    def forecast_pairs(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if callable(self.kernel):
            mean = self._kernel_means(self.uniform, self.uniform)[0, 0]
        else:
            zero, one = np.zeros(1), np.ones(1)
            mean = interval_mean(self.kernel, self.bandwidth, zero, one, zero, one)[0]
        return np.full((len(rows), len(columns)), mean)

    def _kernel_means(self, rows, columns):
        """The mean of the user's kernel over the nodes of rows and columns, (a, b)."""
        value = np.empty((len(rows.points), len(columns.points)))
        n_nodes = len(columns.share)
        size = max(1, _ENTRIES // (rows.points.size * n_nodes))
        for start in range(0, len(columns.points), size):
            points = columns.points[start : start + size]
            values = self.kernel(rows.points.reshape(-1, 1), points.reshape(-1, 1))
            values = np.array(values, dtype=np.float64)
            values = values.reshape(*rows.points.shape, len(points), n_nodes) @ columns.share
            value[:, start : start + size] = np.einsum("akb,k->ab", values, rows.share)
        return value[rows.which][:, columns.which]

    def _means(self, low, high):
        """E ℓ(U, u), (a,)."""
        if callable(self.kernel):
            return self._kernel_means(_nodes_of(low, high), self.uniform)[:, 0]
        return interval_mean(self.kernel, self.bandwidth, low, high, np.zeros(1), np.ones(1))

    def gaps(self, value: np.ndarray, rows: np.ndarray, grid: np.ndarray) -> np.ndarray:
        """ℓ(u_i, t) − E ℓ(U, t) at the points t of a grid, (a, b)."""
        low, high = value[rows].T
        if callable(self.kernel):
            values = self._kernel_means(_nodes_of(low, high), _nodes_of(grid, grid))
        else:
            ends = low[:, None], high[:, None]
            values = interval_mean(self.kernel, self.bandwidth, *ends, grid, grid)
        return values - self._means(grid, grid)

    def outcome_pairs(self, value: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        low, high = value[rows].T
        other_low, other_high = value[columns].T
        if callable(self.kernel):
            pairs = self._kernel_means(_nodes_of(low, high), _nodes_of(other_low, other_high))
        else:
            ends = low[:, None], high[:, None], other_low, other_high
            pairs = interval_mean(self.kernel, self.bandwidth, *ends)
        return pairs - self._means(low, high)[:, None] - self._means(other_low, other_high)
