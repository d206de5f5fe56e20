"""Features of outcomes and forecasts: vectors ρ_i = a(y_i) − E a(Y_i) of all samples.

Their inner products are the terms ℓ(y_i, y_j) − e_i(y_j) − e_j(y_i) + c_ij of pairs, which
`matching_pairs` has for kernels without features.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._data import ClassData
from .._numerics.matching import (
    feature_values,
    fourier_features_1d,
    fourier_grid,
    fourier_weights,
    interval_fourier_features,
    mixture_fourier_features,
    normal_tanh_mean,
    shift_fourier_features,
)
from .._numerics.median_distance import median_distance
from ..forecasts import Forecast, ResidualForecast
from ..forecasts._decisions import DecisionLoss
from .gram import random_frequencies
from .kernels import KERNELS
from .matching_checks import (
    MatchingOptions,
    check_moments,
    check_size_of_losses,
    check_width_of_steps,
)
from .matching_given import LEVELS, ConditionKernel, Rows, quantile_thresholds

# A normal distribution ends this many standard deviations from its mean, but for a share of 1e-9.
_NORMAL_REACH = 6.0

NODES = 64

# Rows of forecasts whose components are held at once.
_COMPONENT_BLOCK_SIZE = 2**11

# Between these places, times the scale, tanh rises. With nodes on each piece its mean is right to
# 1e-13, where those from its middle to infinity miss it by up to 1e-7.
_ENDS = np.array([-8.0, 0.0, 8.0])
_MAX_SCALE = 1e300


class Features:
    """Features of outcomes, or of PITs, whose number may depend on the outcomes.

    Forecasts have n rows, and the mass (n,) is what the features of each are multiplied by.
    """

    size: int  # their number, if it is the same for all outcomes

    is_exact = False  # but for rounding

    largest_term: float | None = None  # a bound on |ρ_i|², if one is known

    def counts(self, values: np.ndarray, bandwidth: np.ndarray) -> tuple[np.ndarray, int]:
        """Number of features that each row of outcomes needs, (R,), and that all need."""
        return np.full(len(values), self.size), self.size

    def make_feature_function(self, values: np.ndarray, bandwidth: np.ndarray) -> Rows:
        """A function that returns the features of some rows, (R, C, b), times the mass.

        The outcomes are (R, n), and each row of them has a bandwidth, (R,).
        """
        raise NotImplementedError


class OutcomeWaves(Features):
    """Outcomes and forecasts with the rbf kernel: Fourier features by the trapezoidal rule.

    They are accurate to about 1e-10, or 1e-6 if they are rough.
    """

    def __init__(self, forecast: Any, mass: np.ndarray, *, is_rough: bool) -> None:
        self.forecast, self.mass, self.is_rough = forecast, mass, is_rough
        if isinstance(forecast, ResidualForecast):
            location, residuals = forecast.location, forecast.residuals
            self.components = None
            low, high = location.min() + residuals[0], location.max() + residuals[-1]
        else:
            self.components = forecast.components()
            reach = _NORMAL_REACH * np.sqrt(self.components.variance)
            low = (self.components.location - reach).min()
            high = (self.components.location + reach).max()
        self.range = float(low), float(high)

    def _grid(
        self,
        low: float | np.ndarray,
        high: float | np.ndarray,
        largest: float | np.ndarray,
        smallest: float | np.ndarray,
    ) -> tuple[Any, ...]:
        """Origin, step and number of the frequencies, for a range of outcomes or for several."""
        low, high = np.minimum(low, self.range[0]), np.maximum(high, self.range[1])
        step, count = fourier_grid(high - low, largest, smallest, is_rough=self.is_rough)
        return (low + high) / 2, step, count

    def counts(self, values: np.ndarray, bandwidth: np.ndarray) -> tuple[Any, ...]:
        low, high = values.min(axis=1), values.max(axis=1)
        each = self._grid(low, high, bandwidth, bandwidth)[2]
        count = self._grid(low.min(), high.max(), bandwidth.max(), bandwidth.min())[2]
        return 2 * each + 1, int(2 * count + 1)

    def make_feature_function(self, values: np.ndarray, bandwidth: np.ndarray) -> Callable:
        ends = values.min(), values.max(), bandwidth.max(), bandwidth.min()
        origin, step, count = self._grid(*ends)
        root = np.sqrt(fourier_weights(step, count, bandwidth))[..., None]  # (R, C, 1)
        if self.components is None:
            residuals, weights = self.forecast.residuals[None], self.forecast.weights[None]
            variance = np.zeros_like(residuals)
            mean = mixture_fourier_features(residuals, variance, weights, step, count)

        def feature_rows(rows: slice) -> np.ndarray:
            features = fourier_features_1d(values[:, rows] - origin, step, count)
            if self.components is None:
                shift = self.forecast.location[rows] - origin
                features -= shift_fourier_features(shift, mean, step, count)
            else:
                location, variance, weight = (array[rows] for array in self.components)
                normals = location - origin, variance, weight
                features -= mixture_fourier_features(*normals, step, count)
            features *= self.mass[rows]
            features *= root
            return features

        return feature_rows


class UniformWaves(Features):
    """PITs and the uniform distribution with the rbf kernel; atoms are averaged."""

    def __init__(self, forecast: Forecast, mass: np.ndarray, bandwidth: float) -> None:
        self.forecast, self.mass = forecast, mass
        self.step, self.count = fourier_grid(1.0, bandwidth, bandwidth)
        self.size = 2 * self.count + 1
        self.mean = interval_fourier_features(np.zeros(1), np.ones(1), self.step, self.count)

    def make_feature_function(self, values: np.ndarray, bandwidth: np.ndarray) -> Callable:
        low, high = pit_intervals(self.forecast, values)
        root = np.sqrt(fourier_weights(self.step, self.count, bandwidth[:1]))[0, :, None]

        def feature_rows(rows: slice) -> np.ndarray:
            features = interval_fourier_features(low[:, rows], high[:, rows], self.step, self.count)
            features -= self.mean
            features *= self.mass[rows]
            features *= root
            return features

        return feature_rows


class RandomWaves(Features):
    """Outcomes and forecasts with the laplacian kernel, by waves of random frequencies.

    The waves are multiplied by random waves of the points of `ConditionKernel`, so that with k = 1
    the
    products of features have the mean k ℓ.
    """

    def __init__(
        self, forecast: Forecast, mass: np.ndarray, given: ConditionKernel, options: MatchingOptions
    ) -> None:
        self.components, self.mass = forecast.components(), mass
        size, generator = options.n_components, np.random.default_rng(options.seed)
        self.size = 2 * size
        self.frequency = generator.standard_cauchy(size)  # of the bandwidth 1
        self.turns = np.zeros((size, len(mass)))  # the phases of the points over 2π
        if given.bandwidth is not None:
            kernel, shape = options.given_kernel, (size, given.points.shape[1])
            family = KERNELS["exponential" if kernel == "wasserstein" else kernel]
            frequencies = random_frequencies(family, given.bandwidth, shape, generator)
            self.turns = frequencies / (2 * np.pi) @ given.points.T

    def make_feature_function(self, values: np.ndarray, bandwidth: np.ndarray) -> Callable:
        def feature_rows(rows: slice) -> np.ndarray:
            features = [
                self._features(value[rows], rows, self.frequency / width)
                for value, width in zip(values, bandwidth, strict=True)
            ]
            return np.array(features) * self.mass[rows]

        return feature_rows

    def _features(self, value: np.ndarray, rows: slice, frequency: np.ndarray) -> np.ndarray:
        location, variance, weight = (component[rows] for component in self.components)
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


class FeatureMap(Features):
    """A map φ of outcomes with its mean for each forecast: kernels of decisions, and of classes."""

    is_exact = True

    def __init__(
        self,
        at: Callable[[np.ndarray], np.ndarray],  # outcomes (m,) to (C, m)
        mean: np.ndarray,  # E φ(Y_i), (C, n)
        mass: np.ndarray,
        largest_term: float | None = None,
    ) -> None:
        self.at, self.mean, self.mass, self.largest_term = at, mean, mass, largest_term
        self.size = len(mean)

    def make_feature_function(self, values: np.ndarray, bandwidth: np.ndarray) -> Callable:
        def feature_rows(rows: slice) -> np.ndarray:
            block = values[:, rows]  # (R, b)
            features = self.at(block.ravel()).reshape(-1, *block.shape).transpose(1, 0, 2)
            return (features - self.mean[:, rows]) * self.mass[rows]

        return feature_rows

    def gaps(self, value: np.ndarray, rows: np.ndarray, grid: np.ndarray) -> np.ndarray:
        """ℓ(y_i, t) − e_i(t) at the points t of a grid, (a, b)."""
        return (self.at(value[rows]) - self.mean[:, rows]).T @ self.at(grid)

    def take(self, rows: np.ndarray, mass: np.ndarray) -> "FeatureMap":
        """The map, with the means of some samples."""
        return FeatureMap(self.at, self.mean[:, rows], mass, self.largest_term)


def class_features(data: ClassData, options: MatchingOptions) -> FeatureMap:
    """One-hot labels, or the losses of all actions for them, and their means."""
    table, mean = np.eye(len(data.classes)), data.matrix
    if options.kernel == "loss":
        table = loss_table(options.losses, data.classes)
        mean = mean @ table
    return FeatureMap(partial(np.take, table.T, axis=1), mean.T, data.weight)


def loss_table(losses: list[DecisionLoss], classes: np.ndarray) -> np.ndarray:
    """The losses of all actions for each class, for L losses divided by √L, (K, C)."""
    tables = [decision.of_classes(classes, len(classes)) for decision in losses]
    table = np.concatenate(tables, axis=1)
    check_size_of_losses(table)
    return table / np.sqrt(len(losses))


def decision_features(forecast: Forecast, mass: np.ndarray, options: MatchingOptions) -> FeatureMap:
    """The features of the kernels of decisions."""
    at: Callable[[np.ndarray], np.ndarray]
    kernel, largest_term = options.kernel, None
    if kernel == "moments":
        location, std = forecast.mean(), forecast.std()
        check_moments(location, std)
        at = partial(feature_values, kernel, thresholds=None, scale=None)
        mean = np.array([location, location**2 + std**2])
    elif kernel == "thresholds":
        thresholds, mean = _threshold_probabilities(forecast, mass)
        at = partial(feature_values, kernel, thresholds=thresholds, scale=None)
        largest_term = 1.0
    elif kernel == "tanh":
        thresholds = options.step_thresholds
        at, largest_term = partial(_tanh, thresholds, options.bandwidth), 4.0
        mean = _mean_steps(forecast, thresholds, options.bandwidth)
    else:
        losses = options.losses
        at = partial(_losses_at, losses)
        mean = np.concatenate([decision.expected_of(forecast).T for decision in losses])
        mean /= np.sqrt(len(losses))
        check_size_of_losses(mean)
        largest_term = None if any(callable(decision.loss) for decision in losses) else 2.0
    return FeatureMap(at, mean, mass, largest_term)


def _threshold_probabilities(forecast: Forecast, weight: np.ndarray) -> tuple[Any, ...]:
    """64 quantiles t of all forecasts pooled, and F_i(t)/8, (64, n)."""
    if forecast._has_quantiles_only:
        # on the scale of levels, where all forecasts are alike: the upper ends of cells
        ends = np.append(forecast.levels, 1.0)
        thresholds = ends[np.searchsorted(forecast.levels, LEVELS)]
        probability = np.broadcast_to(thresholds, (len(forecast), len(thresholds)))
    else:
        thresholds = quantile_thresholds(forecast, weight)
        probability = forecast.cdf(np.broadcast_to(thresholds, (len(forecast), len(thresholds))))
    return thresholds, probability.T / np.sqrt(len(thresholds))


def _tanh(thresholds: np.ndarray, scale: float, y: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return feature_values("tanh", y, thresholds, scale)


def _mean_steps(forecast: Forecast, thresholds: np.ndarray, scale: float) -> np.ndarray:
    """E tanh((Y_i − c)/s)/√L for L thresholds c, (L, n)."""
    blocks = [
        _mean_steps_of(forecast[start : start + _COMPONENT_BLOCK_SIZE], thresholds, scale)
        for start in range(0, len(forecast), _COMPONENT_BLOCK_SIZE)
    ]
    return np.concatenate(blocks, axis=1) / np.sqrt(len(thresholds))


def _mean_steps_of(forecast: Any, thresholds: np.ndarray, scale: float) -> np.ndarray:
    """E tanh((Y_i − c)/s), (L, n): closed for normal components, else by nodes."""
    location, variance, weight = forecast.components()
    mean = np.empty((len(thresholds), len(forecast)))
    is_normal = variance.any(axis=1)
    check_width_of_steps(scale, variance)
    for row, threshold in zip(mean, thresholds, strict=True):
        with np.errstate(over="ignore"):
            steps = normal_tanh_mean(threshold, scale, location[is_normal], variance[is_normal])
        row[is_normal] = np.einsum("nc,nc->n", weight[is_normal], steps)
        if not is_normal.all():
            ends = threshold + min(scale, _MAX_SCALE) * _ENDS
            step = DecisionLoss(partial(_column, threshold, scale), breakpoints=ends)
            row[~is_normal] = step.expected_of(forecast[~is_normal])[:, 0]
    return mean


def _column(threshold: float, scale: float, y: np.ndarray) -> np.ndarray:
    return _tanh(np.array([threshold]), scale, y).T


def _losses_at(losses: list[Any], y: np.ndarray) -> np.ndarray:
    return np.concatenate([decision.at_outcomes(y).T for decision in losses]) / np.sqrt(len(losses))


def outcome_bandwidth(value: np.ndarray, weight: np.ndarray, forecast: Forecast) -> float:
    """The median distance of the outcomes; if all are equal, the spread of a forecast."""
    median = median_distance(value, weight, "cityblock")
    if median > 0:
        return median
    components = forecast.components()
    spread = components.variance.mean() + components.location.var()
    return float(np.sqrt(spread)) or 1.0


def pit_intervals(forecast: Forecast, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the intervals of the PITs of outcomes (R, n), each (R, n)."""
    low, high = np.empty((2, *values.shape))
    for r, value in enumerate(values):
        low[r], high[r] = forecast.pit_bounds(value)
    return low, high
