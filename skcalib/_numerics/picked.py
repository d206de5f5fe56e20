"""The entries of a matrix that labels pick."""

import numpy as np
from array_api_compat import array_namespace

from .array_api import Array


def picked(values: Array, labels: Array) -> Array:
    """values[i, labels[i, r]] for values (n, K) in C order and labels (n, R), as (n, R)."""
    if not isinstance(values, np.ndarray):
        return array_namespace(values).take_along_axis(values, labels, axis=1)
    n, n_columns = values.shape
    return np.take(values.reshape(-1), labels + np.arange(0, n * n_columns, n_columns)[:, None])
