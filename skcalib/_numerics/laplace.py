"""Sums over pairs with the kernel exp(−|s − t|/h) on a line, without looking at pairs."""

import numpy as np

# exp(x) and exp(-x) are finite and far from underflow up to here.
_LONGEST_EXPONENT = 500.0

# Smaller ones only overflow: distinct probabilities are then infinitely far apart anyway.
_SMALLEST_BANDWIDTH = 1e-290


def laplace_quadratic_form(points: np.ndarray, mass: np.ndarray, bandwidth: float) -> np.ndarray:
    """Σ_{i,j} mass_i mass_j exp(−|points_i − points_j|/h) for each row of mass.

    With A_j = Σ_{i≤j} mass_i exp(−(points_j − points_i)/h) for sorted points the sum is 2 Σ_j
    mass_j A_j − Σ_j mass_j². A is a cumulative sum of mass·exp(points/h), rescaled; it is taken
    over stretches of points short enough for the exponential, and what one stretch hands on decays
    into the next.

    Parameters: points (n,) sorted, mass (..., n). Returns (...,). Cost O(n) per row.
    """
    position = points / max(bandwidth, _SMALLEST_BANDWIDTH)
    stretch = (position - position[0]) // _LONGEST_EXPONENT
    starts = np.flatnonzero(np.diff(stretch, prepend=-1.0))
    total = np.zeros(mass.shape[:-1])
    carried = np.zeros(mass.shape[:-1])  # A at the last point so far
    for first, stop in zip(starts, np.append(starts[1:], len(points)), strict=True):
        here = position[first:stop] - position[first]
        local = mass[..., first:stop]
        decay = np.exp(-here)
        reach = np.cumsum(local * np.exp(here), axis=-1)
        if first > 0:
            reach += (carried * np.exp(position[first - 1] - position[first]))[..., None]
        reach *= decay
        total += 2 * np.sum(local * reach, axis=-1) - np.sum(local * local, axis=-1)
        carried = reach[..., -1]
    return total
