"""What a calibration is conditioned on: kernels between the samples of a batch."""

from typing import Any, NamedTuple

from array_api_compat import array_namespace

from .._numerics.array_api import Array, distances, stop_gradient
from .._statistics.functions import KERNELS, kernel_values
from ._pairs import gaussian_average, pair_average

# The default bandwidth on probabilities of classes.
PROBABILITY_BANDWIDTH = 0.4

# Half of the range of probabilities, in bandwidths, up to which a power series of the Gaussian
# kernel is better than pairs, and does not underflow in single precision.
_LARGEST_REACH = 6.0

# The rounding errors of products of probabilities count for less than those of single precision
# with a Gaussian kernel of a larger bandwidth.
_SMALLEST_OF_PRODUCTS = 0.2


class Condition(NamedTuple):
    """A kernel on points, through which gradients flow unless it is detached."""

    kernel: str
    given_bandwidth: float | None
    is_detached: bool

    @property
    def bandwidth(self) -> float:
        return self.given_bandwidth or PROBABILITY_BANDWIDTH

    def near(self, points: Array) -> Array:
        """k of points (n,) or (n, d), (n, n)."""
        points = self._held(points if points.ndim == 2 else points[:, None])
        return kernel_values(points, points, KERNELS[self.kernel], self.bandwidth)

    def near_probabilities(self, proba: Array) -> Array:
        """k of probabilities of all classes (n, K), (n, n).

        The Gaussian kernel takes one matrix product in place of the distances of all pairs.
        """
        if not KERNELS[self.kernel].is_gaussian or self.bandwidth < _SMALLEST_OF_PRODUCTS:
            return self.near(proba)
        points = self._held(proba) / self.bandwidth
        xp = array_namespace(points)
        half = xp.sum(points**2, axis=1) / 2
        return xp.exp(points @ points.T - half[:, None] - half)

    def near_thresholds(self, probability: Array) -> Array:
        """1 − the mean of |F_i(t) − F_j(t)| over thresholds, from F (n, m).

        Of decisions 0 and 1, it is the share of those in which two samples agree.
        """
        probability = self._held(probability)
        return 1 - distances(probability, probability, "cityblock") / probability.shape[1]

    def pair_averages(self, proba: Array, residual: Array, weight: Array, estimator: str) -> Array:
        """`pair_average` of k r_i r_j for binary problems with p and r (n, P), (P,)."""
        xp = array_namespace(proba)
        family = KERNELS[self.kernel]
        reach = family.per_probability / self.bandwidth / 2
        if family.is_gaussian and reach <= _LARGEST_REACH:
            points = (2 * self._held(proba) - 1) * reach
            return gaussian_average(points, residual, reach, weight, estimator)
        averages = []
        for k in range(proba.shape[1]):
            p, r = proba[:, k], residual[:, k]
            near = self.near(xp.stack([1 - p, p], axis=1))
            averages.append(pair_average(near * r[:, None] * r, weight, estimator))
        return xp.stack(averages)

    def _held(self, points):
        return stop_gradient(points) if self.is_detached else points


def same_group(groups: Array, dtype: Any) -> Array:
    """1 where two samples agree in all columns of groups (n, d), or (n,), (n, n)."""
    xp = array_namespace(groups)
    groups = groups if groups.ndim == 2 else groups[:, None]
    return xp.astype(xp.all(groups[:, None] == groups, axis=2), dtype)
