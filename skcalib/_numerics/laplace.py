"""Sums of kernels over pairs of points on a line, such as exp(−|s − t|/h), in linear time."""

import numpy as np
from scipy.linalg import solve_banded

from .sorting import cumulate


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
            empty = np.zeros((*mass.shape[:-1], 1))
            from_first = np.concatenate([from_first, empty], axis=-1)
            from_last = np.concatenate([from_last, empty], axis=-1)
        facing = from_last[..., ::2] * _decay(last[::2] - first[1::2], bandwidth)
        total += np.einsum("...j,...j->...", facing, from_first[..., 1::2])
        first_gap, last_gap = first[::2] - first[1::2], last[::2] - last[1::2]
        from_first = from_first[..., ::2] + from_first[..., 1::2] * _decay(first_gap, bandwidth)
        from_last = from_last[..., ::2] * _decay(last_gap, bandwidth) + from_last[..., 1::2]
        first, last = first[::2], last[1::2]
    return 2 * total


def laplace_product(points: np.ndarray, mass: np.ndarray, bandwidth: float) -> np.ndarray:
    """Σ_j mass_j exp(−|points_i − points_j|/h) at each of the sorted points (m,), O(m).

    The sum over the points up to the i-th, f_i = mass_i + f_{i−1} exp(−d/h), solves a bidiagonal
    system.
    """
    band = np.ones((2, len(points)))
    band[1, :-1] = -_decay(points[:-1] - points[1:], bandwidth)
    up_to = solve_banded((1, 0), band, mass)
    band[1, :-1] = band[1, -2::-1]
    return up_to + solve_banded((1, 0), band, mass[::-1])[::-1] - mass


def linear_pair_sum(points: np.ndarray, mass: np.ndarray, _: float = 1.0) -> np.ndarray:
    """Σ_{i≠j} mass_i mass_j (1 − |points_i − points_j|) for each row of mass.

    Parameters: points (n,) sorted, mass (..., n). Returns (...,). Cost O(n) per row.
    """
    return 2 * np.einsum("...j,...j->...", mass, _sum_before(points, mass))


def linear_product(points: np.ndarray, mass: np.ndarray, _: float = 1.0) -> np.ndarray:
    """Σ_j mass_j (1 − |points_i − points_j|) at each of the sorted points (m,), O(m)."""
    return _sum_before(points, mass) + mass + _sum_before(-points[::-1], mass[::-1])[::-1]


def _sum_before(points: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Σ_{i<j} mass_i (1 + points_i − points_j) at each of the sorted points, (..., n)."""
    return (1 - points) * cumulate(mass)[..., :-1] + cumulate(mass * points)[..., :-1]


def _decay(difference: np.ndarray, bandwidth: float) -> np.ndarray:
    """exp(difference/h) of differences that are at most 0, and underflow at small h."""
    with np.errstate(over="ignore"):
        difference /= bandwidth
    return np.exp(difference, out=difference)


class MemberKernelMeans:
    """E ℓ(Y_i, t) for the weighted members (n, s) of rows i, at O(log s) for each point t.

    The kernels are "laplacian" exp(−|d|/ν) and "energy" −|d|. Running sums over the sorted members
    are prepared at O(n s log s).
    """

    def __init__(
        self, kernel: str, bandwidth: float | None, members: np.ndarray, weight: np.ndarray
    ) -> None:
        order = np.argsort(members, axis=1)
        self.kernel = kernel
        self.origin = members.mean()  # differences of large numbers would lose digits
        self.members = np.take_along_axis(members, order, axis=1) - self.origin
        weight = np.take_along_axis(weight, order, axis=1)
        self.bandwidth = 1.0 if bandwidth is None else bandwidth
        if kernel == "energy":
            self.below = cumulate(weight)
            self.partial = cumulate(weight * self.members)
            return
        decay = np.exp(-np.diff(self.members, axis=1) / self.bandwidth)
        left, right = weight.copy(), weight.copy()
        for k in range(1, members.shape[1]):
            left[:, k] += left[:, k - 1] * decay[:, k - 1]
            right[:, -k - 1] += right[:, -k] * decay[:, -k]
        self.left, self.right = left, right

    def means(self, rows: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Return the means (a, b) of a rows at points (b,)."""
        points = points - self.origin
        return np.array([self._row_means(row, points) for row in rows])

    def _row_means(self, row: int, points: np.ndarray) -> np.ndarray:
        members = self.members[row]
        index = np.searchsorted(members, points)
        if self.kernel == "energy":
            below, partial = self.below[row], self.partial[row]
            excess = 2 * below[index] - below[-1]
            return -(points * excess + partial[-1] - 2 * partial[index])
        before, after = np.maximum(index - 1, 0), np.minimum(index, len(members) - 1)
        from_left = np.exp(-np.abs(points - members[before]) / self.bandwidth)
        from_left *= np.where(index > 0, self.left[row][before], 0.0)
        from_right = np.exp(-np.abs(members[after] - points) / self.bandwidth)
        return from_left + from_right * np.where(index < len(members), self.right[row][after], 0.0)
