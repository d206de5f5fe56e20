"""Squared Hilbert-Schmidt norm of a kernel ridge regression of vectors on points.

With weights w that sum to 1, vectors r_i and features φ with k(p, q) = ⟨φ(p), φ(q)⟩, the operator M
minimises Σ_i w_i ‖r_i − M φ(p_i)‖² + λ‖M‖². If the features have coordinates, M = C (S + λI)⁻¹ with
C = Σ w r φᵀ and S = Σ w φ φᵀ. If only their Gram matrix K is known, ‖M‖² = Σ aᵀ (D^½ r − λ a) with
D = diag(w) and a = (D^½ K D^½ + λI)⁻¹ D^½ r. For equal weights that is tr(W R W K) with W = (K + λ
n I)⁻¹ and R_ij = ⟨r_i, r_j⟩.
"""

from collections.abc import Callable

import numpy as np
from array_api_compat import array_namespace
from scipy.linalg import cho_factor, cho_solve

from .array_api import Array, count_like

# Rows of features that are held at once.
_ROWS = 4096


def ridge_norm(gram: Array, vectors: Array, weight: Array, regularization: float) -> float:
    """‖M‖² from the Gram matrix (n, n), which is overwritten, and vectors (n, C). Cost O(n³)."""
    xp = array_namespace(gram)
    root = xp.sqrt(weight)[:, None]
    gram *= root
    gram *= root.T
    target = root * vectors
    solution = _solution(gram.T, regularization, target)  # transposed, in the order of LAPACK
    return max(float(xp.sum(solution * (target - regularization * solution))), 0.0)


def ridge_norm_of_features(
    features: Callable[[slice], Array],
    vectors: Callable[[slice], Array],
    weight: Array,
    regularization: float,
) -> float:
    """‖M‖² from features (b, d) and vectors (b, C) of any rows. Cost O(n d² + d³), memory O(d²)."""
    second = cross = 0.0
    for i in range(0, weight.shape[0], _ROWS):
        rows = slice(i, min(i + _ROWS, weight.shape[0]))
        block = features(rows)
        weighted = weight[rows, None] * block
        second = second + block.T @ weighted
        cross = cross + weighted.T @ vectors(rows)
    solution = _solution(second, regularization, cross)
    return float(array_namespace(solution).sum(solution**2))


def _solution(matrix: Array, ridge: float, right: Array) -> Array:
    """(matrix + ridge I)⁻¹ right of a semi-definite matrix, which is overwritten."""
    if isinstance(matrix, np.ndarray):
        np.einsum("ii->i", matrix)[:] += ridge
        factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
        return cho_solve(factor, right)
    xp = array_namespace(matrix)
    index = count_like(matrix, matrix.shape[0])
    return xp.linalg.solve(xp.where(index[:, None] == index, matrix + ridge, matrix), right)
