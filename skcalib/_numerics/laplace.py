"""Sums over pairs with the kernel exp(−|s − t|/h) on a line, without looking at pairs."""

import numpy as np

# exp(x) and exp(-x) are finite and far from underflow up to here.
_LONGEST_EXPONENT = 500.0

# The reciprocals of smaller ones overflow when squared; distinct probabilities are then as good as
# infinitely far apart anyway.
SMALLEST_BANDWIDTH = 1e-150


def laplace_pair_sum(points: np.ndarray, mass: np.ndarray, bandwidth: float) -> np.ndarray:
    """Σ_{i≠j} mass_i mass_j exp(−|points_i − points_j|/h) for each row of mass.

    With A_j = Σ_{i<j} mass_i exp(−(points_j − points_i)/h) for sorted points the sum is
    2 Σ_j mass_j A_j. A is a cumulative sum of mass·exp(points/h), rescaled; it is taken over
    stretches of points short enough for the exponential, and what one hands on decays into the
    next. (Adding Σ_j mass_j² to the sum, instead of subtracting it, keeps every digit.)

    Parameters: points (n,) sorted, mass (..., n). Returns (...,). Cost O(n) per row.
    """
    position = points / max(bandwidth, SMALLEST_BANDWIDTH)
    stretch = (position - position[0]) // _LONGEST_EXPONENT
    starts = np.flatnonzero(np.diff(stretch, prepend=-1.0))
    total = np.zeros(mass.shape[:-1])
    carried = np.zeros(mass.shape[:-1])  # A at the first point of the stretch
    for first, stop in zip(starts, np.append(starts[1:], len(points)), strict=True):
        here = position[first:stop] - position[first]
        local = mass[..., first:stop]
        reach = np.cumsum(local * np.exp(here), axis=-1)
        reach += carried[..., None]
        total += local[..., 0] * carried
        total += np.einsum("...j,...j->...", local[..., 1:] * np.exp(-here[1:]), reach[..., :-1])
        if stop < len(points):
            carried = reach[..., -1] * np.exp(position[first] - position[stop])
    return 2 * total
