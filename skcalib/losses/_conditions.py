"""What a calibration is conditioned on: kernels between the samples of a batch."""

from typing import NamedTuple

from array_api_compat import array_namespace

from .._kernels.functions import KERNELS, kernel_values
from .._numerics.array_api import Array, distances, stop_gradient

# The default bandwidth on probabilities of classes.
PROBABILITY_BANDWIDTH = 0.4


class Condition(NamedTuple):
    """A kernel on points, through which gradients flow unless it is detached."""

    kernel: str
    bandwidth: float | None
    is_detached: bool

    def near(self, points: Array) -> Array:
        """k of points (n,) or (n, d), (n, n)."""
        if self.is_detached:
            points = stop_gradient(points)
        bandwidth = PROBABILITY_BANDWIDTH if self.bandwidth is None else self.bandwidth
        points = points if points.ndim == 2 else points[:, None]
        return kernel_values(points, points, KERNELS[self.kernel], bandwidth)

    def near_probabilities(self, proba: Array) -> Array:
        """k of the distributions (1 − p, p) for p (n,), (n, n)."""
        return self.near(array_namespace(proba).stack([1 - proba, proba], axis=1))

    def near_thresholds(self, probability: Array) -> Array:
        """1 − the mean of |F_i(t) − F_j(t)| over thresholds, from F (n, m)."""
        if self.is_detached:
            probability = stop_gradient(probability)
        return 1 - distances(probability, probability, "cityblock") / probability.shape[1]


def same_group(codes: Array, dtype: object) -> Array:
    """The share of the columns of codes (n, L), or (n,), in which two samples agree, (n, n)."""
    xp = array_namespace(codes)
    codes = codes if codes.ndim == 2 else codes[:, None]
    return xp.mean(xp.astype(codes[:, None] == codes, dtype), axis=2)
