"""Kernel ridge regression of residuals on predictions: the norm of the fitted operator.

With weights w that sum to 1, vectors r_i and features φ with k(p, q) = ⟨φ(p), φ(q)⟩, the operator M
minimises Σ_i w_i ‖r_i − M φ(p_i)‖² + λ‖M‖². Its squared Hilbert-Schmidt norm is a quadratic form,
‖M‖² = Σ_ij Q_ij ⟨r_i, r_j⟩ with Q = D^½ (G + λ)⁻¹ G (G + λ)⁻¹ D^½. Here D = diag(w), G = D^½ K D^½,
and K is the Gram matrix of the features.
"""

from collections.abc import Callable

import numpy as np
from array_api_compat import array_namespace
from scipy.linalg import cho_factor, cho_solve

from .array_api import Array, arange_like, identity_like
from .logits import iter_slices

# Rows of features in one block.
_FEATURE_BLOCK_SIZE = 4096

# Entries of a block of pairs (b, n).
_MAX_PAIR_ENTRIES = 2**21

# The values of λ that cross-validation compares.
PENALTIES = np.logspace(-5, 2, 29)


def ridge_norm(gram: Array, vectors: Array, weight: Array, regularization: float) -> float:
    """‖M‖² from the Gram matrix (n, n) and vectors (n, C) in O(n³).

    It is Σ aᵀ (D^½ r − λ a) with a = (G + λ)⁻¹ D^½ r. For equal weights that is tr(W R W K), where
    W = (K + λ n I)⁻¹ and R_ij = ⟨r_i, r_j⟩. The Gram matrix is overwritten.
    """
    xp, root = array_namespace(gram), _scale_by_weights(gram, weight)
    target = root * vectors
    solution = _solution(gram.T, regularization, target)  # transposed, in the order of LAPACK
    return max(float(xp.sum(solution * (target - regularization * solution))), 0.0)


def ridge_norm_of_features(
    features: Callable[[slice], Array],
    vectors: Callable[[slice], Array],
    weight: Array,
    regularization: float,
) -> float:
    """‖M‖² from features (b, d) and vectors (b, C) of any rows. Cost O(n d² + d³), memory O(d²).

    M = C (S + λ)⁻¹ with C = Σ w r φᵀ and S = Σ w φ φᵀ.
    """
    second = cross = 0.0
    for rows in iter_slices(weight.shape[0], _FEATURE_BLOCK_SIZE):
        block = features(rows)
        weighted = weight[rows, None] * block
        second = second + block.T @ weighted
        cross = cross + weighted.T @ vectors(rows)
    solution = _solution(second, regularization, cross)
    return float(array_namespace(solution).sum(solution**2))


def ridge_form(gram: Array, weight: Array, regularization: float) -> Array:
    """The matrix Q (n, n) of the quadratic form. The Gram matrix is overwritten."""
    _scale_by_weights(gram, weight)
    inverse = _solution(gram.T, regularization, identity_like(gram, gram.shape[0]))
    form = inverse - regularization * (inverse @ inverse)
    _scale_by_weights(form, weight)
    return form


def ridge_scores(features: Array, weight: Array, regularization: float) -> Array:
    """U (n, d) with Q = U Uᵀ, from features (n, d): the rows w_i (S + λ)⁻¹ φ_i."""
    weighted = weight[:, None] * features
    return _solution(features.T @ weighted, regularization, weighted.T).T


def residual_variances(proba: Array) -> Array:
    """E ‖r_i‖² of the residuals of labels drawn from probabilities (n, K), (n,)."""
    return array_namespace(proba).sum(proba * (1 - proba), axis=1)


def noise_variance(diagonal: Array, pairs: float, proba: Array) -> float:
    """The variance of Σ Q_ij ⟨r_i, r_j⟩ if labels are drawn from the probabilities (n, K).

    With the covariance matrices C_i of the residuals it is Σ_{i≠j} 2 Q_ij² tr(C_i C_j) + Σ_i Q_ii²
    Var ‖r_i‖², as the terms of different pairs are not correlated. `pairs` is the sum of
    Q_ij² tr(C_i C_j) over all i and j; `diagonal` (n,) holds Q_ii.
    """
    xp = array_namespace(proba)
    mean = xp.sum(proba**2, axis=1, keepdims=True)
    square_variance = 4 * xp.sum(proba * (proba - mean) ** 2, axis=1)
    diagonal_squares = square_variance - 2 * _covariance_products(proba.T, proba.T)
    return max(float(2 * pairs + xp.sum(diagonal**2 * diagonal_squares)), 0.0)


def noise_of_pairs(form: Callable[[slice], Array], proba: Array) -> float:
    """Σ_ij Q_ij² tr(C_i C_j) from any rows (b, n) of Q, in O(n² K)."""
    xp, n, columns = array_namespace(proba), proba.shape[0], proba.T
    size, total = max(1, _MAX_PAIR_ENTRIES // n), 0.0
    for rows in iter_slices(n, size):
        products = _covariance_products(columns[:, rows, None], columns[:, None, :])
        total += float(xp.sum(form(rows) ** 2 * products))
    return total


def noise_of_scores(scores: Array, proba: Array) -> float:
    """Σ_ij Q_ij² tr(C_i C_j) for Q = U Uᵀ and scores U (n, d), in O(n d² K²) or O(n² (d + K)).

    It is the squared norm of Σ_i C_i ⊗ u_i u_iᵀ, a matrix (d, d) for each pair of classes.
    """
    xp, (n, n_classes) = array_namespace(proba), proba.shape
    if 2 * n < scores.shape[1] * n_classes**2:
        return noise_of_pairs(lambda rows: scores[rows, :] @ scores.T, proba)
    total = 0.0
    for k in range(n_classes):
        for other in range(k + 1):
            share = proba[:, k] * ((1 if other == k else 0) - proba[:, other])
            moment = (share[:, None] * scores).T @ scores
            total += (1 if other == k else 2) * float(xp.sum(moment**2))
    return total


def cross_validated_norm(
    vectors: Array, weight: Array, *, gram: Array | None = None, features: Array | None = None
) -> float:
    """‖M‖² with the λ of least squared error at samples that are left out, one at a time.

    From the Gram matrix, which is overwritten, or from features (n, d). The error is exact and
    takes one decomposition: without sample i the residual D^½ (r − M φ) is (b_i − (H b)_i) / (1 −
    H_ii), with b = D^½ r and the matrix H = G (G + λ)⁻¹ of the fit.
    """
    xp, root = array_namespace(vectors), array_namespace(vectors).sqrt(weight)[:, None]
    if features is None:
        _scale_by_weights(gram, weight)
        spectrum, basis = xp.linalg.eigh(gram)
        spectrum = xp.clip(spectrum, 0.0, None)
        scores = basis * xp.sqrt(spectrum)
    else:
        features = root * features
        spectrum, basis = xp.linalg.eigh(features.T @ features)
        spectrum, scores = xp.clip(spectrum, 0.0, None), features @ basis
    target = root * vectors
    along, squares = scores.T @ target, scores**2
    candidates = []
    for penalty in PENALTIES.tolist():
        share = 1 / (spectrum + penalty)
        fitted_values = share[:, None] * along
        left_out = (target - scores @ fitted_values) / (1 - squares @ share)[:, None]
        candidates.append((float(xp.sum(left_out**2)), float(xp.sum(fitted_values**2))))
    return min(candidates)[1]


def _covariance_products(first: Array, second: Array) -> Array:
    """tr(C C′) for classes on the first axis, without differences of nearly equal numbers."""
    total = running = 0.0
    for k in range(first.shape[0]):
        p, q = first[k, ...], second[k, ...]
        both = p * q
        total = total + both * ((1 - p) * (1 - q) + 2 * running)
        running = running + both
    return total


def _scale_by_weights(gram: Array, weight: Array) -> Array:
    """Overwrite a matrix by D^½ (matrix) D^½; return the roots of the weights, (n, 1)."""
    root = array_namespace(gram).sqrt(weight)[:, None]
    gram *= root
    gram *= root.T
    return root


def _solution(matrix: Array, ridge: float, right: Array) -> Array:
    """(matrix + ridge I)⁻¹ right of a semi-definite matrix, which is overwritten."""
    if isinstance(matrix, np.ndarray):
        np.einsum("ii->i", matrix)[:] += ridge
        factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
        return cho_solve(factor, right)
    xp = array_namespace(matrix)
    index = arange_like(matrix, matrix.shape[0])
    return xp.linalg.solve(xp.where(index[:, None] == index, matrix + ridge, matrix), right)
