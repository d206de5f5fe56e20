"""The continuous ranked probability score of forecasts of several kinds.

All scores are in the units of the outcome, and 0 is best. Outcomes are (n,), and so are the scores.
"""

import numpy as np
from scipy.special import ndtr

_SQRT_PI = np.sqrt(np.pi)
_SQRT_2_PI = np.sqrt(2 * np.pi)

# Nodes of the quadrature on either side of the outcome.
_NODES_PER_SIDE = 32


def gauss_legendre(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1], each (n_nodes,)."""
    node, weight = np.polynomial.legendre.leggauss(n_nodes)
    return (node + 1) / 2, weight / 2


def normal_density(z: np.ndarray) -> np.ndarray:
    return np.exp(-(z**2) / 2) / _SQRT_2_PI


def mean_distance(shift: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """E|D| of D ~ N(shift, variance); |shift| where the variance is 0."""
    shift, variance = np.broadcast_arrays(shift, variance)
    deviation = np.sqrt(variance)
    z = np.divide(shift, deviation, out=np.zeros(shift.shape), where=deviation > 0)
    spread = 2 * deviation * normal_density(z)
    return np.where(deviation > 0, spread + shift * (1 - 2 * ndtr(-z)), np.abs(shift))


def crps_gaussian(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """σ (z (2Φ(z) − 1) + 2φ(z) − 1/√π) with z = (y − μ)/σ (Gneiting and Raftery 2007)."""
    z = (y - mean) / std
    return std * (z * (1 - 2 * ndtr(-z)) + 2 * normal_density(z) - 1 / _SQRT_PI)


def crps_mixture(
    y: np.ndarray, mean: np.ndarray, std: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """E|X − y| − ½ E|X − X'| of a mixture of normals; mean, std and weight (n, c).

    Cost O(n c²), memory O(n c).
    """
    variance = std**2
    score = np.einsum("nc,nc->n", weight, mean_distance(y[:, None] - mean, variance))
    for k in range(mean.shape[1]):
        apart = mean_distance(mean - mean[:, k : k + 1], variance + variance[:, k : k + 1])
        score -= weight[:, k] / 2 * np.einsum("nc,nc->n", weight, apart)
    return score


def crps_ensemble(
    y: np.ndarray, members: np.ndarray, weight: np.ndarray, *, fair: bool = False
) -> np.ndarray:
    """Σ_k w_k |x_k − y| − ½ Σ_{k,l} w_k w_l |x_k − x_l| of sorted members (n, s); weight (n, s).

    The weights sum to 1. A fair score divides the second sum by s (s − 1) in place of s², for
    equal weights. With W_k = w_1 + … + w_k the second sum is 2 Σ_k W_k (1 − W_k) (x_(k+1) − x_(k)),
    at O(n s) once the members are sorted.
    """
    error = np.einsum("ns,ns->n", weight, np.abs(members - y[:, None]))
    below = np.cumsum(weight, axis=1)[:, :-1]
    spread = np.einsum("ns,ns->n", below * (1 - below), np.diff(members, axis=1))
    size = members.shape[1]
    return error - spread * (size / (size - 1) if fair else 1.0)


def crps_quantiles(y: np.ndarray, quantiles: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Σ_k (α_(k+1) − α_(k−1)) ρ_k with pinball losses ρ_k, α_0 = 0 and α_(K+1) = 1.

    Parameters: quantiles (n, K) at the sorted levels (K,). It is the trapezoidal rule for the score
    2 ∫ ρ_α dα, with the pinball loss 0 at the levels 0 and 1.
    """
    bounds = np.concatenate([[0.0], levels, [1.0]])
    gap = y[:, None] - quantiles
    return pinball(gap, levels) @ (bounds[2:] - bounds[:-2])


def pinball(gap: np.ndarray, level: np.ndarray) -> np.ndarray:
    """ρ_α(d) = max(α d, (α − 1) d) of the gap d = y − q."""
    return np.maximum(level * gap, (level - 1) * gap)


def split_nodes(level: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Legendre nodes and weights on [0, level] and [level, 1], (n, 64) for levels (n,)."""
    node, weight = gauss_legendre(_NODES_PER_SIDE)
    below, above = level[:, None] * node, level[:, None] + (1 - level[:, None]) * node
    weights = [level[:, None] * weight, (1 - level[:, None]) * weight]
    return np.hstack([below, above]), np.hstack(weights)


def crps_nodes(
    y: np.ndarray, quantiles: np.ndarray, level: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """2 Σ_k π_k ρ_(u_k)(y − F⁻¹(u_k)) for nodes u (n, m) with weights π and quantiles F⁻¹(u)."""
    return 2 * np.einsum("nm,nm->n", weight, pinball(y[:, None] - quantiles, level))
