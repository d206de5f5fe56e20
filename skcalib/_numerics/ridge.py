"""Squared Hilbert-Schmidt norm of a kernel ridge regression of vectors on points.

With weights w that sum to 1, vectors r_i and features φ with k(p, q) = ⟨φ(p), φ(q)⟩, the operator M
minimises Σ_i w_i ‖r_i − M φ(p_i)‖² + λ‖M‖². With the features in coordinates M = C (S + λI)⁻¹,
where C = Σ w r φᵀ and S = Σ w φ φᵀ. Without, with D = diag(w), the Gram matrix K and
a = (D^½ K D^½ + λI)⁻¹ D^½ r, it is ‖M‖² = Σ aᵀ (D^½ r − λ a). For equal weights that is
tr(W R W K) with W = (K + λ n I)⁻¹ and R_ij = ⟨r_i, r_j⟩.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .gram import Kernel, gram_diagonal

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


def fourier_features(points: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """[cos(ωᵀp), sin(ωᵀp)]/√D, (b, 2D), for frequencies (D, K).

    For ω ~ N(0, γ⁻² I) the inner products have the values exp(−‖s − t‖²/(2γ²)) as mean.
    """
    phase = points @ frequencies.T
    return np.hstack([np.cos(phase), np.sin(phase)]) / np.sqrt(len(frequencies))


def pivoted_cholesky(
    kernel: Kernel, points: np.ndarray, weight: np.ndarray, most: int, tolerance: float
) -> tuple[np.ndarray, float]:
    """Features (n, d) whose inner products approximate the kernel from below, and the error left.

    Points are added, the one with the largest weighted error first, until the error Σ_i w_i (k_ii −
    ⟨φ_i, φ_i⟩) is at most the tolerance, or there are `most`. Cost O(n d²), memory O(n d).
    """
    rest = gram_diagonal(kernel, points).astype(np.float64)
    features = np.zeros((len(points), min(most, len(points))))
    for d in range(features.shape[1]):
        pivot = int(np.argmax(weight * rest))
        if weight @ rest <= tolerance or rest[pivot] <= 0:
            return features[:, :d], float(weight @ rest)
        column = kernel(points, points[pivot : pivot + 1])[:, 0]
        column = column - features[:, :d] @ features[pivot, :d]
        column /= np.sqrt(rest[pivot])
        features[:, d] = column
        rest = np.maximum(rest - column**2, 0.0)
    return features, float(weight @ rest)
