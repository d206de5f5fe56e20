"""Kernels of decisions: outcomes and forecasts compared by finitely many features.

With ℓ(y, y') = ⟨φ(y), φ(y')⟩ the residuals φ(y_i) − E φ(Y_i) take the place of waves.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._numerics.decision_kernels import smoothed_tanh
from ..forecasts import Forecast, QuantileForecast
from ..forecasts._decisions import DecisionLoss
from .matching_checks import check_moments, check_size_of_losses, check_width_of_steps
from .matching_given import N_THRESHOLDS, pooled_thresholds
from .matching_losses import as_losses
from .matching_target import NODES

# Rows of forecasts whose components are held at once.
_ROWS = 2**11

# Between these places, times the scale, tanh rises. With nodes on each piece its mean is right to
# 1e-13, where those from its middle to infinity miss it by up to 1e-7.
_ENDS = np.array([-8.0, 0.0, 8.0])
_LARGEST_SCALE = 1e300


class FeatureMap(NamedTuple):
    """φ, and its mean for each forecast."""

    at: Callable[[np.ndarray], np.ndarray]  # outcomes (m,) to (C, m)
    mean: np.ndarray  # E φ(Y_i), (C, n)
    largest_term: float | None = None  # a bound on ‖φ(y) − E φ(Y)‖²


class OutcomeFeatures:
    """Outcomes and forecasts with one of the kernels of decisions."""

    def __init__(self, features: FeatureMap, weight: np.ndarray, scale: float) -> None:
        self.features, self.weight, self.scale = features, weight, scale

    def counts(self, values: np.ndarray) -> tuple[np.ndarray, int]:
        count = len(self.features.mean)
        return np.full(len(values), count), count

    def prepare(self, values: np.ndarray) -> Callable[[slice], np.ndarray]:
        """The features of some rows, (R, C, b), times the weights."""

        def rows_of(rows):
            part = values[:, rows]  # (R, b)
            features = self.features.at(part.ravel()).reshape(-1, *part.shape).transpose(1, 0, 2)
            return (features - self.features.mean[:, rows]) * (self.scale * self.weight[rows])

        return rows_of

    def gaps(self, value: np.ndarray, rows: np.ndarray, grid: np.ndarray) -> np.ndarray:
        """ℓ(y_i, t) − e_i(t) at the points t of a grid, (a, b)."""
        residual = self.features.at(value[rows]) - self.features.mean[:, rows]
        return self.scale * (residual.T @ self.features.at(grid))

    def at_rows(self, rows: np.ndarray, weight: np.ndarray) -> "OutcomeFeatures":
        """The same features of some samples."""
        part = self.features._replace(mean=self.features.mean[:, rows])
        return OutcomeFeatures(part, weight, self.scale)


def outcome_features(
    forecast: Forecast, weight: np.ndarray, scale: float, options: dict[str, Any]
) -> OutcomeFeatures:
    """The features for the options of a `MatchingError`."""
    kernel = options["kernel"]
    if kernel == "moments":
        features = _moments(forecast)
    elif kernel == "thresholds":
        features = _thresholds(forecast)
    else:
        losses = as_losses(options["loss"])
        if kernel == "tanh":
            features = _steps(forecast, [one.loss for one in losses], options["bandwidth"])
        else:
            features = _losses(forecast, losses)
    return OutcomeFeatures(features, weight, scale)


def _moments(forecast):
    mean, std = forecast.mean(), forecast.std()
    check_moments(mean, std)
    return FeatureMap(_powers, np.array([mean, mean**2 + std**2]))


def _powers(y):
    return np.array([y, y**2])


def _thresholds(forecast):
    """1[y ≤ t]/8 for 64 quantiles t of all forecasts pooled."""
    n = len(forecast)
    if isinstance(forecast, QuantileForecast):
        # on the scale of levels, where all forecasts are alike: the upper ends of cells
        level = (np.arange(N_THRESHOLDS) + 0.5) / N_THRESHOLDS
        ends = np.append(forecast.levels, 1.0)
        thresholds = ends[np.searchsorted(forecast.levels, level)]
        probability = np.broadcast_to(thresholds, (n, N_THRESHOLDS))
    else:
        thresholds = pooled_thresholds(forecast)
        probability = forecast.cdf(np.broadcast_to(thresholds, (n, N_THRESHOLDS)))
    root = np.sqrt(N_THRESHOLDS)
    return FeatureMap(partial(_indicators, thresholds), probability.T / root, largest_term=1.0)


def _indicators(thresholds, y):
    return (y <= thresholds[:, None]) / np.sqrt(len(thresholds))


def _steps(forecast, thresholds, scale):
    """tanh((y − c)/s) for L thresholds c, divided by √L."""
    points = np.array(thresholds, dtype=np.float64)
    blocks = [
        _mean_steps(forecast[start : start + _ROWS], points, scale)
        for start in range(0, len(forecast), _ROWS)
    ]
    mean = np.concatenate(blocks, axis=1) / np.sqrt(len(points))
    return FeatureMap(partial(_tanh, points, scale), mean, largest_term=4.0)


def _tanh(thresholds, scale, y):
    with np.errstate(over="ignore"):
        return np.tanh((y - thresholds[:, None]) / scale) / np.sqrt(len(thresholds))


def _mean_steps(forecast, thresholds, scale):
    """E tanh((Y_i − c)/s), (L, n): closed for what has normal components, else by nodes."""
    location, variance, weight = forecast.components(NODES)
    mean = np.empty((len(thresholds), len(forecast)))
    is_normal = variance.any(axis=1)
    check_width_of_steps(scale, variance)
    for row, threshold in zip(mean, thresholds, strict=True):
        with np.errstate(over="ignore"):
            steps = smoothed_tanh(threshold, scale, location[is_normal], variance[is_normal])
        row[is_normal] = np.einsum("nc,nc->n", weight[is_normal], steps)
        if not is_normal.all():
            ends = threshold + min(scale, _LARGEST_SCALE) * _ENDS
            step = DecisionLoss(partial(_column, threshold, scale), breakpoints=ends)
            row[~is_normal] = step.expected_of(forecast[~is_normal])[:, 0]
    return mean


def _column(threshold, scale, y):
    return _tanh(np.array([threshold]), scale, y).T


def _losses(forecast, losses):
    """The losses of all actions, for L losses divided by √L."""
    root = np.sqrt(len(losses))
    mean = np.concatenate([one.expected_of(forecast).T for one in losses]) / root
    check_size_of_losses(mean)
    is_bounded = all(not callable(one.loss) for one in losses)
    return FeatureMap(partial(_losses_at, losses), mean, 2.0 if is_bounded else None)


def _losses_at(losses, y):
    return np.concatenate([one.at_outcomes(y).T for one in losses]) / np.sqrt(len(losses))


class LossResiduals:
    """The losses of all actions for labels, minus those expected of class probabilities."""

    def __init__(self, matrix: np.ndarray, weight: np.ndarray, table: np.ndarray) -> None:
        self.weight, self.table = weight, table  # (K, C)
        self.mean = matrix @ table  # (n, C)

    def counts(self, values: np.ndarray) -> tuple[np.ndarray, int]:
        count = self.table.shape[1]
        return np.full(len(values), count), count

    def prepare(self, values: np.ndarray) -> Callable[[slice], np.ndarray]:
        """The residuals of some rows, (R, C, b), times the weights."""

        def rows_of(rows):
            residual = self.table[values[:, rows]] - self.mean[rows]  # (R, b, C)
            return residual.transpose(0, 2, 1) * self.weight[rows]

        return rows_of


def loss_table(loss: Any, classes: np.ndarray) -> np.ndarray:
    """The losses of all actions for each class, for L losses divided by √L, (K, C)."""
    losses = as_losses(loss)
    tables = [one.of_classes(classes, len(classes)) for one in losses]
    table = np.concatenate(tables, axis=1)
    check_size_of_losses(table)
    return table / np.sqrt(len(losses))
