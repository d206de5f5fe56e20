"""Sums over pairs with the kernel exp(−|s − t|/h) on a line, without looking at pairs."""

import numpy as np


def laplace_pair_sum(points: np.ndarray, mass: np.ndarray, bandwidth: float) -> np.ndarray:
    """Σ_{i≠j} mass_i mass_j exp(−|points_i − points_j|/h) for each row of mass.

    Neighbouring points are merged two by two, then these groups two by two, and so on. Two numbers
    describe the mass of a group: as seen from its first point and as seen from its last point,
    decayed over the distance to that point. The pairs between two neighbouring groups sum to the
    product of their masses, as seen from the ends that face each other, and the decay over the gap.
    All exponents are negative, so nothing overflows at any bandwidth. (The pairs i = j are left
    out, as a caller can add Σ_j mass_j² without losing digits, but not subtract it.)

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
