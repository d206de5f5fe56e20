"""Predictive distributions of a number, for the samples of a batch."""

from typing import Any, NamedTuple

from array_api_compat import array_namespace

from .._numerics.array_api import Array, special_functions
from .._numerics.decision_kernels import smoothed_tanh
from .._numerics.matching import smoothed_kernel
from ._classes import at_least_single


class Normal(NamedTuple):
    """Normal distributions with means and standard deviations (n,)."""

    mean: Array
    std: Array

    def cdf(self, points: Array) -> Array:
        """F_i(t) at points (n,), or (n, m) or (1, m)."""
        column = (slice(None), None) if points.ndim == 2 else slice(None)
        z = (points - self.mean[column]) / self.std[column]
        return special_functions(array_namespace(z)).ndtr(z)

    def parameters(self) -> Array:
        """Mean and log standard deviation, (n, 2)."""
        xp = array_namespace(self.mean)
        return xp.stack([self.mean, xp.log(self.std)], axis=1)

    def kernel_means(self, kernel: str, bandwidth: float, points: Array) -> Array:
        """E ℓ(Y_i, t_j) at points (m,), (n, m)."""
        shift = self.mean[:, None] - points
        return smoothed_kernel(kernel, shift, self.std[:, None] ** 2, bandwidth)

    def pair_means(self, kernel: str, bandwidth: float) -> Array:
        """E ℓ(Y_i, Y_j) of independent Y_i and Y_j, (n, n)."""
        variance = self.std**2
        shift = self.mean[:, None] - self.mean
        return smoothed_kernel(kernel, shift, variance[:, None] + variance, bandwidth)

    def tanh_means(self, thresholds: Array, scale: float) -> Array:
        """E tanh((Y_i − c)/s) at thresholds c (m,), (n, m)."""
        return smoothed_tanh(thresholds, scale, self.mean[:, None], self.std[:, None] ** 2)

    def moments(self) -> Array:
        """E Y_i and E Y_i², (n, 2)."""
        xp = array_namespace(self.mean)
        return xp.stack([self.mean, self.mean**2 + self.std**2], axis=1)


class Draws(NamedTuple):
    """Distributions by draws from each, whose average is an unbiased estimate of an expectation.

    Gradients flow through the draws, which are a function of the parameters
    (reparameterization). For n samples and s draws:

    Attributes
    ----------
    values : array of shape (n, s)
        The draws.

    cdf : callable or None
        The distribution functions: takes points of shape (n,), or (1, m) for m points in common,
        and returns probabilities of shape (n,) or (n, m). Needed by the forms of calibration that
        compare probability integral transforms, and by ``kernel="thresholds"``.

    parameters_ : array of shape (n, d) or None
        What describes the distributions; conditioned on with ``calibration="distribution"``.
    """

    values: Array
    cdf: Any = None
    parameters_: Array | None = None

    def parameters(self) -> Array | None:
        return self.parameters_

    def kernel_means(self, kernel: str, bandwidth: float, points: Array) -> Array:
        shift = self.values[:, :, None] - points
        xp = array_namespace(shift)
        return xp.mean(smoothed_kernel(kernel, shift, None, bandwidth), axis=1)

    def pair_means(self, kernel: str, bandwidth: float) -> Array:
        shift = self.values[:, None, :, None] - self.values[:, None, :]
        xp = array_namespace(shift)
        return xp.mean(smoothed_kernel(kernel, shift, None, bandwidth), axis=(2, 3))

    def tanh_means(self, thresholds: Array, scale: float) -> Array:
        shift = (self.values[:, :, None] - thresholds) / scale
        xp = array_namespace(shift)
        return xp.mean(xp.tanh(shift), axis=1)

    def moments(self) -> Array:
        xp = array_namespace(self.values)
        return xp.stack([xp.mean(self.values, axis=1), xp.mean(self.values**2, axis=1)], axis=1)


def as_distributions(prediction: Any) -> Normal | Draws:
    """A pair of means and standard deviations, or draws, in single or double precision."""
    if isinstance(prediction, Draws):
        return prediction._replace(values=at_least_single(prediction.values))
    mean, std = prediction
    return Normal(at_least_single(mean), at_least_single(std))
