"""Likelihood-ratio tests among nested updates: shifts, a common scale, a scale for each class."""

import numpy as np
from scipy.stats import chi2

from .logits import log_softmax, row_blocks, softmax

# Columns are constant, or multiples of each other, up to this fraction of the largest number.
_ROUNDING = 1e-12

# Directions with less than this fraction of the largest information count as not determined.
_FLAT = 1e-10


def numbers_of_parameters(log_proba: np.ndarray) -> tuple[int, int, int, int]:
    """How many parameters of scores v∘x + b of rows x (n, K) have an effect.

    With b = 0 and v = 1; with v = 1; with all v equal; and without restrictions. A number added to
    all scores of a row has no effect. Thus a scale of a constant column is a shift, scales of
    columns that are multiples of each other change all scores of a row alike, and so on.
    """
    n_classes = log_proba.shape[1]
    moved = log_proba - log_proba.mean(axis=0)
    size = np.abs(moved).max(axis=0)
    is_constant = size <= _ROUNDING * np.abs(log_proba).max()
    n_constant = int(is_constant.sum())
    scales = n_classes - n_constant
    if n_constant == 0:
        longest = moved[:, np.argmax(size)]
        rest = moved - np.outer(longest, longest @ moved / (longest @ longest))
        scales -= bool(np.abs(rest).max() <= _ROUNDING * np.abs(log_proba).max())
    shifts = n_classes - 1
    return 0, shifts, shifts + min(scales, 1), shifts + scales


def cross_entropy(
    scale: np.ndarray,
    shift: np.ndarray,
    log_proba: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
) -> float:
    """Σ_i w_i (log Σ_k exp s_ik − Σ_k t_ik s_ik) of scores s = v∘x + b and targets t (n, K)."""
    loss = 0.0
    for rows in row_blocks(*target.shape):
        log_share = log_softmax(scale * log_proba[rows] + shift)
        loss -= weight[rows] @ np.einsum("nk,nk->n", target[rows], log_share)
    return float(loss)


def effects_of_weights(
    scale: np.ndarray, shift: np.ndarray, log_proba: np.ndarray, weight: np.ndarray
) -> list[float]:
    """tr(I⁻¹J) of the parameters of each of these four updates, at the given one.

    I is the information with weights w (n,), and J that with w². For equal weights it is the
    number of parameters divided by n.
    """
    n_classes = len(scale)
    proba = softmax(scale * log_proba + shift)
    moved = log_proba - weight @ log_proba
    information = _information(proba, moved, weight)
    noise = _information(proba, moved, weight**2)
    scales, shifts = np.split(np.eye(2 * n_classes), 2, axis=1)
    common = scales.sum(axis=1, keepdims=True)
    bases = shifts[:, :0], shifts, np.hstack([common, shifts]), np.hstack([scales, shifts])
    return [_trace(basis.T @ information @ basis, basis.T @ noise @ basis) for basis in bases]


def _information(proba: np.ndarray, inputs: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Σ w times the covariance of the derivatives of the scores in v and b, (2K, 2K)."""
    own = proba * weight[:, None]
    slopes = np.hstack([inputs * proba, proba])  # (n, 2K)
    second, first = (own * inputs**2).sum(axis=0), (own * inputs).sum(axis=0)
    blocks = np.block(
        [[np.diag(second), np.diag(first)], [np.diag(first), np.diag(own.sum(axis=0))]]
    )
    return blocks - slopes.T @ (weight[:, None] * slopes)


def _trace(information: np.ndarray, noise: np.ndarray) -> float:
    """The trace of I⁻¹J in the directions that are determined."""
    diagonal = np.diagonal(information)
    is_known = diagonal > _ROUNDING * diagonal.max(initial=0.0)
    known = np.ix_(is_known, is_known)
    size = np.sqrt(np.outer(diagonal[is_known], diagonal[is_known]))
    inverse = np.linalg.pinv(information[known] / size, rcond=_FLAT, hermitian=True)
    return float(np.vdot(inverse, noise[known] / size))


def chi_squared_p_value(statistic: float, degrees_of_freedom: int) -> float:
    """Positive; 1 without degrees of freedom."""
    if degrees_of_freedom == 0:
        return 1.0
    return max(float(chi2.sf(statistic, degrees_of_freedom)), np.finfo(np.float64).tiny)
