"""Squared Hilbert-Schmidt norm of a kernel ridge regression of vectors on points.

With weights w that sum to 1, vectors r_i and features φ with k(p, q) = ⟨φ(p), φ(q)⟩, the operator M
minimises Σ_i w_i ‖r_i − M φ(p_i)‖² + λ‖M‖². If the features have coordinates, M = C (S + λI)⁻¹ with
C = Σ w r φᵀ and S = Σ w φ φᵀ. If only their Gram matrix K is known, ‖M‖² = Σ aᵀ (D^½ r − λ a) with
D = diag(w) and a = (D^½ K D^½ + λI)⁻¹ D^½ r. For equal weights that is tr(W R W K) with W = (K + λ
n I)⁻¹ and R_ij = ⟨r_i, r_j⟩.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

# Rows of features that are held at once.
_ROWS = 4096


def ridge_norm(
    gram: np.ndarray, vectors: np.ndarray, weight: np.ndarray, regularization: float
) -> float:
    """‖M‖² from the Gram matrix (n, n), which is overwritten, and vectors (n, C). Cost O(n³)."""
    root = np.sqrt(weight)[:, None]
    gram *= root
    gram *= root.T
    gram.flat[:: len(gram) + 1] += regularization
    target = root * vectors
    factor = cho_factor(gram.T, overwrite_a=True, check_finite=False)  # in the order of LAPACK
    solution = cho_solve(factor, target)
    return max(float(np.vdot(solution, target - regularization * solution)), 0.0)


def ridge_norm_of_features(
    features: Callable[[slice], np.ndarray],
    vectors: Callable[[slice], np.ndarray],
    weight: np.ndarray,
    regularization: float,
) -> float:
    """‖M‖² from features (b, d) and vectors (b, C) of any rows. Cost O(n d² + d³), memory O(d²)."""
    second = cross = np.zeros(())
    for i in range(0, len(weight), _ROWS):
        rows = slice(i, min(i + _ROWS, len(weight)))
        block = features(rows)
        weighted = weight[rows, None] * block
        second = second + block.T @ weighted
        cross = cross + weighted.T @ vectors(rows)
    second.flat[:: len(second) + 1] += regularization
    solution = cho_solve(cho_factor(second, overwrite_a=True, check_finite=False), cross)
    return float(np.vdot(solution, solution))
