"""Sums over pairs with the kernel exp(−|s − t|/h) on a line, without looking at pairs."""

import numpy as np


def laplace_pair_sum(points: np.ndarray, mass: np.ndarray, bandwidth: float) -> np.ndarray:
    """Σ_{i≠j} mass_i mass_j exp(−|points_i − points_j|/h) for each row of mass.

    Neighbouring points are merged two by two, then the pairs, and so on. Of a group only its two
    ends matter and its mass as seen from them, decayed over the distance to each: the pairs of
    points in two groups sum to the product of the mass at the ends that face each other and the
    decay over the gap. All exponents are negative, so nothing overflows at any bandwidth. (Adding
    Σ_j mass_j² to the sum, instead of subtracting it, keeps every digit.)

    Parameters: points (n,) sorted, mass (..., n). Returns (...,). Cost O(n) per row.
    """
    first = last = points
    from_first = from_last = mass
    total = np.zeros(mass.shape[:-1])
    while len(first) > 1:
        if len(first) % 2:  # an empty group makes the number even
            first, last = np.append(first, last[-1]), np.append(last, last[-1])
            none = np.zeros((*mass.shape[:-1], 1))
            from_first = np.concatenate([from_first, none], axis=-1)
            from_last = np.concatenate([from_last, none], axis=-1)
        across, forth, back = (
            _decay(a - b, bandwidth)
            for a, b in (
                (last[::2], first[1::2]),
                (first[::2], first[1::2]),
                (last[::2], last[1::2]),
            )
        )
        facing = from_last[..., ::2] * across
        total += np.einsum("...j,...j->...", facing, from_first[..., 1::2])
        from_first = from_first[..., ::2] + from_first[..., 1::2] * forth
        from_last = from_last[..., ::2] * back + from_last[..., 1::2]
        first, last = first[::2], last[1::2]
    return 2 * total


def _decay(difference: np.ndarray, bandwidth: float) -> np.ndarray:
    """exp(difference/h) of differences that are at most 0, and underflow at small h."""
    with np.errstate(over="ignore"):
        difference /= bandwidth
    return np.exp(difference, out=difference)
