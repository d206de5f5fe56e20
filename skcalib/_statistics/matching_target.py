"""What is matched: outcomes and forecasts, or PITs and the uniform distribution.

A target with features has vectors ρ_i = a(y_i) − E a(Y_i), whose inner products are the terms
ℓ(y_i, y_j) − e_i(y_j) − e_j(y_i) + c_ij. `matching_pairs` has these terms for other kernels.
"""

from collections.abc import Callable

import numpy as np

from .._numerics.matching import (
    interval_waves,
    mixture_waves,
    shifted_waves,
    wave_grid,
    wave_weights,
    waves,
)
from .._numerics.median_distance import median_distance
from ..forecasts import Forecast, ResidualForecast

# Nothing of a normal distribution is noticed beyond this many standard deviations.
_REACH = 6.0

# Up to this many features per sample they are faster than the terms of pairs of normal forecasts.
MOST_FEATURES = 300

NODES = 64


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
            self.components = forecast.components(NODES)
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
        self.parts = forecast.components(NODES)
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
    parts = forecast.components(NODES)
    spread = parts.variance.mean() + parts.location.var()
    return float(np.sqrt(spread)) or 1.0


def pit_intervals(forecast: Forecast, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the intervals of the PITs of outcomes (R, n), each (R, n)."""
    low, high = np.empty((2, *values.shape))
    for r, value in enumerate(values):
        low[r], high[r] = forecast.pit_bounds(value)
    return low, high
