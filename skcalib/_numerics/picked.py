"""The entries of a matrix that labels pick."""

import numpy as np


def picked(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """values[i, labels[i, r]] for values (n, K) in C order and labels (n, R), as (n, R)."""
    n, n_columns = values.shape
    return np.take(values.reshape(-1), labels + np.arange(0, n * n_columns, n_columns)[:, None])
