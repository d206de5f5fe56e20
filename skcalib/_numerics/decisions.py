"""Adjustments of probabilities that make losses what they were announced to be."""

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

# Variance of one residual below which a prediction counts as certain.
_LEAST_VARIANCE = 1e-9

# Directions in which losses differ by less than this share of the largest difference.
_RANK_TOLERANCE = 1e-10


class Shift(NamedTuple):
    """What is added to the probabilities of the samples with one action."""

    vector: np.ndarray  # (K,), sums to 0
    p_value: float  # of the hypothesis that nothing need be added


def loss_directions(losses: np.ndarray) -> np.ndarray:
    """Orthonormal directions (K, d) of probabilities in which some expected loss changes.

    Parameters: losses (K, A). Probabilities sum to 1, so the directions sum to 0.
    """
    centred = losses - losses.mean(axis=0)
    vectors, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    return vectors[:, sizes > _RANK_TOLERANCE * np.abs(losses).max(initial=0.0)]


def best_shift(
    matrix: np.ndarray, label: np.ndarray, weight: np.ndarray, directions: np.ndarray
) -> Shift:
    """The mean residual e_y − p in the given directions, and whether it is more than chance.

    Parameters: probabilities (m, K), labels (m,), positive weights (m,), directions (K, d). The
    sum of residuals divided by its standard deviation is held against χ²_d, with labels drawn from
    the probabilities as they are, or from the shifted ones if these vary more. (With rare classes
    a single label would else look like a great surprise.)
    """
    share = weight / weight.sum()
    mean = share @ directions[label] - (share @ matrix) @ directions  # (d,)
    vector = directions @ mean
    moved = onto_simplex(matrix + vector)
    squares = min(_surprise(mean, one, share, directions) for one in (matrix, moved))
    return Shift(vector, float(chi2.sf(squares, directions.shape[1])))


def _surprise(
    mean: np.ndarray, matrix: np.ndarray, share: np.ndarray, directions: np.ndarray
) -> float:
    """mᵀ C⁻¹ m with the covariance C of the mean residual if labels follow these probabilities."""
    square = share**2
    seen = matrix @ directions  # (m, d)
    second = directions.T @ ((square @ matrix)[:, None] * directions)
    covariance = second - (seen * square[:, None]).T @ seen
    covariance += _LEAST_VARIANCE * square.sum() * np.eye(len(mean))
    return float(mean @ np.linalg.solve(covariance, mean))


def onto_simplex(points: np.ndarray) -> np.ndarray:
    """The nearest probabilities to points (m, K) whose rows sum to 1.

    Held, Wolfe and Crowder (1974): max(x − t, 0) with the t for which rows sum to 1. Rows without
    negative entries stay as they are.
    """
    outside = (points < 0).any(axis=1)
    if not outside.any():
        return points
    points = points.copy()
    rows = points[outside]
    falling = -np.sort(-rows, axis=1)
    excess = np.cumsum(falling, axis=1) - 1
    counts = np.arange(1, rows.shape[1] + 1)
    size = np.sum(falling * counts > excess, axis=1)
    level = excess[np.arange(len(rows)), size - 1] / size
    points[outside] = np.maximum(rows - level[:, None], 0.0)
    return points
