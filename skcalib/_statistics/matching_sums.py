"""Sums over pairs of samples, from features of all samples or from terms of pairs.

`rows_of(rows)` are the weighted residuals w_i ρ_i of some rows, (R, C, b) for R vectors of outcomes
and C features. All functions return Σ_{i≠j} w_i w_j h_ij and Σ_i w_i² h_ii.
"""

from collections.abc import Callable, Iterator

import numpy as np

from .._numerics.matching import distance_pair_sum
from .gram import gram_diagonal, gram_pair_sum
from .matching_given import Given

# Features of this many entries are computed at once (4 MB).
_ENTRIES = 2**19

# Fewer rows at once are not faster.
_LEAST_ROWS = 64

# Up to this many samples the threshold kernel is evaluated for pairs.
_FEW = 2000

Rows = Callable[[slice], np.ndarray]

Terms = Callable[[np.ndarray, np.ndarray], np.ndarray]  # indices (a,) and (b,) to (a, b)


def feature_sums(rows_of: Rows, given: Given, n_numbers: int) -> tuple[np.ndarray, np.ndarray]:
    """Both sums, (R,), from features; `n_numbers` of them, R C, belong to each sample."""
    if given.features is not None:
        return _linear_sums(rows_of, given, given.features, n_numbers)
    mass = all_rows(rows_of, len(given.points), n_numbers)
    diagonal = np.einsum("rcn,rcn,n->r", mass, mass, given.diagonal)
    if given.is_of_thresholds and len(given.points) > _FEW:
        total = np.sum(mass.sum(axis=2) ** 2, axis=1)
        distances = [
            np.mean([distance_pair_sum(column, one) for column in given.points.T]) for one in mass
        ]
        return total - distances - diagonal, diagonal
    return gram_pair_sum(given.kernel, given.points, mass.transpose(2, 0, 1)), diagonal


def all_rows(rows_of: Rows, n: int, n_numbers: int) -> np.ndarray:
    """The residuals of all rows, (R, C, n), computed in blocks that stay in the cache."""
    return np.concatenate([rows_of(rows) for rows in _blocks(n, n_numbers)], axis=2)


def _blocks(n: int, n_numbers: int) -> Iterator[slice]:
    size = max(_LEAST_ROWS, _ENTRIES // n_numbers)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _linear_sums(
    rows_of: Rows, given: Given, features_of: Callable, n_numbers: int
) -> tuple[np.ndarray, np.ndarray]:
    """‖Σ_i φ_i ⊗ w_i ρ_i‖² for the features φ of what is given, and the part of each sample."""
    total = diagonal = np.zeros(())
    for rows in _blocks(len(given.points), n_numbers):
        mass = rows_of(rows)
        features = features_of(rows)  # (b, d)
        flat = mass.reshape(-1, mass.shape[2]).astype(features.dtype, copy=False)
        total = total + (features.T @ flat.T).reshape(-1, *mass.shape[:2])
        diagonal = diagonal + np.einsum("rcn,rcn,n->r", mass, mass, given.diagonal[rows])
    return np.einsum("drc,drc->r", total, total) - diagonal, diagonal


def term_sums(terms: Terms, given: Given, weight: np.ndarray) -> tuple[float, float]:
    """Both sums from the terms t of pairs, h = k t."""
    index, mass = np.arange(len(weight))[:, None], weight[:, None, None]
    kernel = times_given(terms, given)
    return gram_pair_sum(kernel, index, mass)[0], weight**2 @ gram_diagonal(kernel, index)


def times_given(terms: Terms, given: Given) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """h = k t as a kernel on the indices of samples, (a, 1) and (b, 1) to (a, b)."""

    def kernel(rows, columns):
        i, j = rows[:, 0], columns[:, 0]
        return terms(i, j) * given.kernel(given.points[i], given.points[j])

    return kernel
