"""What is learned from the training data, as it must not change from batch to batch."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._numerics.median_distance import median_distance
from .._statistics.matching_given import N_THRESHOLDS, median_of

# A column is constant if it varies by less than this share of its largest entry.
_ROUNDING = 1e-12


class Standardization(NamedTuple):
    """Columns are moved by a centre and multiplied by a factor, (d,) each."""

    centre: np.ndarray
    factor: np.ndarray
    median: float  # distance of the points after that


def training_array(name: str, values: ArrayLike | Tensor, n: int | None = None) -> np.ndarray:
    """Finite numbers, (n,) or (n, d), in double precision."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().to(torch.float64).numpy()
    try:
        array = np.asarray(values, dtype=np.float64)
    except ValueError as error:
        raise ValueError(
            f"{name} must be numbers, in as many columns for each sample; {error}. For classes, "
            "pass the indices of the labels."
        ) from error
    if array.ndim not in (1, 2) or len(array) != (len(array) if n is None else n):
        raise ValueError(
            f"{name} must have one row for each of the {n or 'training'} samples; found shape "
            f"{array.shape}."
        )
    if len(array) < 2:
        raise ValueError(f"{name} must have at least 2 training samples; found {len(array)}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; found NaN or infinity. Drop these samples.")
    return array


def outcome_bandwidth(outcome: np.ndarray) -> float:
    """The median distance of outcomes (n,) in any units; 1 if all are equal."""
    return median_distance(outcome, np.ones(len(outcome)), "cityblock") or 1.0


def outcome_quantiles(outcome: np.ndarray) -> np.ndarray:
    """The default thresholds."""
    return np.quantile(outcome, (np.arange(N_THRESHOLDS) + 0.5) / N_THRESHOLDS)


def standardization(points: np.ndarray, kernel: str) -> Standardization:
    """Of points (n, d); columns that are constant in the training data are multiplied by 0."""
    points = points.reshape(len(points), -1)
    centre, spread = points.mean(axis=0), points.std(axis=0)
    varies = spread > _ROUNDING * np.abs(points).max(axis=0)
    factor = np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)
    scaled = (points - centre) * factor
    return Standardization(centre, factor, median_of(scaled, np.ones(len(scaled)), kernel))


def standardization_of_parameters(outcome: np.ndarray) -> Standardization:
    """Of means and log standard deviations: the means in units of the spread of the outcomes."""
    spread = float(outcome.std())
    factor = 1 / spread if spread > _ROUNDING * np.abs(outcome).max() else 1.0
    return Standardization(np.array([outcome.mean(), 0.0]), np.array([factor, 1.0]), 1.0)
