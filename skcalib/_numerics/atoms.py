"""Means of kernels under weighted members, at any points."""

import numpy as np


class Atoms:
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
            self.below = _padded(np.cumsum(weight, axis=1))
            self.partial = _padded(np.cumsum(weight * self.members, axis=1))
            return
        decay = np.exp(-np.diff(self.members, axis=1) / self.bandwidth)
        left, right = weight.copy(), weight.copy()
        for k in range(1, members.shape[1]):
            left[:, k] += left[:, k - 1] * decay[:, k - 1]
            right[:, -k - 1] += right[:, -k] * decay[:, -k]
        self.left, self.right = left, right

    def means(self, rows: np.ndarray, points: np.ndarray) -> np.ndarray:
        """(a, b) for a rows and points (b,)."""
        points = points - self.origin
        return np.array([self._of_row(row, points) for row in rows])

    def _of_row(self, row: int, points: np.ndarray) -> np.ndarray:
        members = self.members[row]
        place = np.searchsorted(members, points)
        if self.kernel == "energy":
            below, partial = self.below[row], self.partial[row]
            excess = 2 * below[place] - below[-1]
            return -(points * excess + partial[-1] - 2 * partial[place])
        before, after = np.maximum(place - 1, 0), np.minimum(place, len(members) - 1)
        from_left = np.exp(-np.abs(points - members[before]) / self.bandwidth)
        from_left *= np.where(place > 0, self.left[row][before], 0.0)
        from_right = np.exp(-np.abs(members[after] - points) / self.bandwidth)
        return from_left + from_right * np.where(place < len(members), self.right[row][after], 0.0)


def _padded(sums: np.ndarray) -> np.ndarray:
    return np.hstack([np.zeros((len(sums), 1)), sums])
