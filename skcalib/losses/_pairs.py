"""Averages over the pairs of a batch."""

import math

from array_api_compat import array_namespace

from .._numerics.array_api import Array, count_like


def weights_of(sample_weight: Array | None, like: Array) -> Array:
    """Weights (n,) that sum to 1, of the type of an array (n, m); NaN if one is negative."""
    xp = array_namespace(like)
    if sample_weight is None:
        return xp.full_like(like[:, 0], 1 / len(like))
    weight = xp.astype(sample_weight, like.dtype)
    return weight / xp.sum(xp.where(weight >= 0, weight, math.nan))


def pair_average(terms: Array, weight: Array, estimator: str) -> Array:
    """Σ w_i w_j h_ij over all pairs, or the average over pairs of different samples."""
    xp = array_namespace(terms)
    share = weight[:, None] * weight
    if estimator == "unbiased":
        index = count_like(weight, len(weight))
        share = xp.where(index[:, None] == index, 0.0, share)
        share = share / xp.sum(share)
    return xp.sum(share * terms)


def gaussian_average(
    points: Array, residual: Array, reach: float, weight: Array, estimator: str
) -> Array:
    """`pair_average` of exp(−(z_i − z_j)²/2) r_i r_j for the columns of z and r (n, P), (P,).

    The kernel is Σ_m φ_m(z_i) φ_m(z_j) with φ_m(z) = e^{−z²/2} z^m/√(m!), so that no pairs are
    held. For |z| ≤ reach, what is left out is the tail of a Poisson distribution of mean reach²,
    below 1e-16. Cost O(n P) times the number of terms.
    """
    xp = array_namespace(points)
    mass = weight[:, None] * residual
    term = xp.exp(-(points**2) / 2) * mass
    total = xp.sum(term, axis=0) ** 2
    for m in range(1, math.ceil(reach**2 + 9 * reach + 12)):
        term = term * points / math.sqrt(m)
        total = total + xp.sum(term, axis=0) ** 2
    if estimator == "biased":
        return total
    return (total - xp.sum(mass**2, axis=0)) / (1 - xp.sum(weight**2))
