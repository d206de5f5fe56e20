"""What a calibration is conditioned on: kernels between the samples of a batch."""

from typing import Any, NamedTuple

from array_api_compat import array_namespace

from .._kernels.functions import KERNELS, kernel_values
from .._numerics.array_api import Array, distances, stop_gradient
from ._pairs import gaussian_average, pair_average

# The default bandwidth on probabilities of classes.
PROBABILITY_BANDWIDTH = 0.4

# Half of the range of probabilities, in bandwidths, up to which a power series of the Gaussian
# kernel is better than pairs, and does not underflow in single precision.
_LARGEST_REACH = 6.0


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

    def pair_averages(self, proba: Array, residual: Array, weight: Array, estimator: str) -> Array:
        """`pair_average` of k r_i r_j for binary problems with p and r (n, P), (P,)."""
        family, bandwidth = KERNELS[self.kernel], self.bandwidth or PROBABILITY_BANDWIDTH
        reach = family.per_probability / bandwidth / 2
        if family.is_gaussian and reach <= _LARGEST_REACH:
            points = stop_gradient(proba) if self.is_detached else proba
            return gaussian_average((2 * points - 1) * reach, residual, reach, weight, estimator)
        pairs = [
            pair_average(self.near_probabilities(p) * r[:, None] * r, weight, estimator)
            for p, r in zip(proba.T, residual.T, strict=True)
        ]
        return array_namespace(proba).stack(pairs)

    def near_probabilities(self, proba: Array) -> Array:
        """k of the distributions (1 − p, p) for p (n,), (n, n)."""
        return self.near(array_namespace(proba).stack([1 - proba, proba], axis=1))

    def near_thresholds(self, probability: Array) -> Array:
        """1 − the mean of |F_i(t) − F_j(t)| over thresholds, from F (n, m)."""
        if self.is_detached:
            probability = stop_gradient(probability)
        return 1 - distances(probability, probability, "cityblock") / probability.shape[1]


def same_group(groups: Array, dtype: Any) -> Array:
    """1 where two samples agree in all columns of groups (n, d), or (n,), (n, n)."""
    xp = array_namespace(groups)
    groups = groups if groups.ndim == 2 else groups[:, None]
    return xp.astype(xp.all(groups[:, None] == groups, axis=2), dtype)


def same_actions(actions: Array, dtype: Any) -> Array:
    """The share of decisions, of actions (n, L), in which two samples agree, (n, n)."""
    xp = array_namespace(actions)
    return xp.mean(xp.astype(actions[:, None] == actions, dtype), axis=2)
