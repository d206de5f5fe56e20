"""Averages over the pairs of a batch."""

from array_api_compat import array_namespace

from .._numerics.array_api import Array, count_like


def weights_of(sample_weight: Array | None, like: Array) -> Array:
    """Weights (n,) that sum to 1, of the type of an array (n, …)."""
    xp = array_namespace(like)
    if sample_weight is None:
        return xp.full_like(like.reshape(len(like), -1)[:, 0], 1 / len(like))
    weight = xp.astype(sample_weight, like.dtype)
    return weight / xp.sum(weight)


def pair_average(terms: Array, weight: Array, estimator: str) -> Array:
    """Σ w_i w_j h_ij over all pairs, or the average over pairs of different samples."""
    xp = array_namespace(terms)
    share = weight[:, None] * weight
    if estimator == "unbiased":
        index = count_like(weight, len(weight))
        share = xp.where(index[:, None] == index, 0.0, share)
        share = share / xp.sum(share)
    return xp.sum(share * terms)
