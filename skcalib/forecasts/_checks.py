"""Checks of the arrays that forecasts are made of."""

from typing import Any

import numpy as np

from .._inputs.arrays import as_array
from ._base import check_numbers, number_or_array


def check_vector(values: Any, name: str) -> np.ndarray:
    """Finite numbers (n,)."""
    array = check_numbers(as_array(values, name), name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(
            f"{name} must be 1-D, with one value for each sample; found shape {array.shape}. Pass "
            "at least one value, in one column."
        )
    return check_finite(array, name)


def check_matrix(values: Any, name: str) -> np.ndarray:
    """Finite numbers (n, s)."""
    array = check_numbers(as_array(values, name), name)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            f"{name} must be 2-D, with one row for each sample; found shape {array.shape}. Pass "
            "an array of shape (n_samples, n_columns)."
        )
    return check_finite(array, name)


def check_finite(array: np.ndarray, name: str) -> np.ndarray:
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array).reshape(len(array), -1).all(axis=1)))
        raise ValueError(
            f"{name} must be finite; found NaN or infinity in row {row}. Remove the sample, or "
            "repair the forecast."
        )
    return array


def check_positive(values: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Positive finite numbers of this shape; one number stands for all."""
    array = number_or_array(values, name)
    if array.ndim == 2 and len(shape) == 1 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim > 0 and array.shape != shape:
        raise ValueError(
            f"{name} must have the same shape as the means, {shape}, or be one number; found shape "
            f"{array.shape}. Pass one value for each mean."
        )
    array = np.broadcast_to(array, shape).copy()
    check_finite(array, name)
    if (array <= 0).any():
        row = int(np.argmax((array <= 0).reshape(len(array), -1).any(axis=1)))
        raise ValueError(
            f"{name} must be positive; found {array[row].min():.6g} in row {row}. Use a small "
            "positive number for an outcome that is all but certain."
        )
    return array


def check_member_weights(weights: Any, name: str, shape: tuple[int, int]) -> np.ndarray:
    """Weights (n, s) whose rows sum to 1; equal ones by default, the same row for all from (s,)."""
    if weights is None:
        return np.full(shape, 1 / shape[1])
    array = check_numbers(as_array(weights, name), name)
    if array.shape not in (shape, shape[1:]):
        raise ValueError(
            f"{name} must have shape {shape[1:]} or {shape}, one weight for each column; found "
            f"shape {array.shape}. Pass the same weights for all rows, or a row for each."
        )
    array = np.broadcast_to(array, shape)
    check_finite(array, name)
    total = array.sum(axis=1, keepdims=True)
    if (array < 0).any() or not (total > 0).all():
        row = int(np.argmax((array < 0).any(axis=1) | (total[:, 0] <= 0)))
        raise ValueError(
            f"{name} must not be negative, and not all be 0 in a row; found {array[row].min():.6g} "
            f"as the least and {total[row, 0]:.6g} as the sum in row {row}. Repair the weights."
        )
    return array / total
