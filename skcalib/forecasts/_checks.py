"""Checks of the arrays that forecasts are made of."""

import contextlib
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._inputs.arrays import as_array


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


def check_rows(rows: Any, n: int) -> np.ndarray:
    """Indices of rows from what may stand in brackets; `[rows, ...]` is the same as `[rows]`."""
    if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
        rows = rows[0]
    if isinstance(rows, slice):
        return np.arange(n)[rows]
    array = np.asarray(rows)
    if array.size == 0 and array.ndim == 1:
        array = array.astype(np.intp)
    if array.ndim != 1 or array.dtype.kind not in "biu":
        raise IndexError(
            "Forecasts must be indexed by a slice, a list of row numbers or a mask of shape "
            f"({n},); found {rows!r:.80}. Pass forecast[[i]] for a single row."
        )
    if array.dtype.kind == "b":
        if len(array) != n:
            raise IndexError(
                f"A mask must have one value for each of the {n} forecasts; found {len(array)}. "
                "Build it from the same rows."
            )
        return np.flatnonzero(array)
    if array.size and not (-n <= array.min() and array.max() < n):
        row = array[(array < -n) | (array >= n)][0]
        raise IndexError(
            f"Row numbers must lie between 0 and {n - 1}, as there are {n} forecasts; found {row}. "
            "Make the forecasts and the outcomes of the same rows."
        )
    return array


def number_or_array(values: Any, name: str) -> np.ndarray:
    """Doubles, without dimensions for a single number."""
    return check_numbers(
        np.asarray(values) if np.ndim(values) == 0 else as_array(values, name), name
    )


def check_numbers(array: np.ndarray, name: str) -> np.ndarray:
    """Real numbers as doubles."""
    if array.dtype.kind == "O":
        with contextlib.suppress(TypeError, ValueError):
            array = array.astype(np.float64)
    if array.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} must hold numbers; found type {array.dtype}. Convert it, or remove what is "
            "not a number."
        )
    return array.astype(np.float64)


def check_outcome_values(y: ArrayLike, n: int, name: str) -> np.ndarray:
    """Outcomes as doubles (n,)."""
    values = as_array(y, name)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    values = check_numbers(values, name)
    if values.shape != (n,):
        raise ValueError(
            f"{name} must be 1-D, with one outcome for each of the {n} forecasts; found shape "
            f"{values.shape}, inconsistent numbers of samples. Pass outcomes and forecasts of the "
            "same rows."
        )
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise ValueError(
            f"{name} must be finite; found {values[row]} (NaN or infinity) in row {row}. Remove "
            "the sample."
        )
    return values


def check_common_levels(levels: ArrayLike) -> np.ndarray:
    """Probabilities in [0, 1] that are the same for all rows, (m,)."""
    array = check_levels(levels, "levels")
    if array.ndim != 1:
        raise ValueError(
            f"levels must be 1-D, the same for all rows; found shape {array.shape}. Use ppf for "
            "levels that differ between rows."
        )
    return array


def check_levels(levels: ArrayLike, name: str) -> np.ndarray:
    """Probabilities in [0, 1]."""
    array = number_or_array(levels, name)
    if not ((array >= 0) & (array <= 1)).all():
        raise ValueError(
            f"{name} must lie in [0, 1]; found {array[~((array >= 0) & (array <= 1))][0]}. Pass "
            "0.05 for 5 %."
        )
    return array


def check_estimator_of_score(estimator: Any) -> None:
    if estimator not in ("ecdf", "fair"):
        raise ValueError(
            f"estimator must be 'ecdf' or 'fair'; found {estimator!r}. Leave it out for the score "
            "of the forecast as it is."
        )


def check_count(count: Any, name: str) -> None:
    """A number of draws or nodes."""
    if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
        raise ValueError(
            f"{name} must be a whole number of at least 1; found {count!r}. Leave it out for the "
            "default."
        )
