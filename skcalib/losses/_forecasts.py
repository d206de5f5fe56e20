"""Predictive distributions of a number, for the samples of a batch."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from array_api_compat import array_namespace

from .._numerics.array_api import (
    Array,
    at_least_single,
    bounded_ratio,
    hypot,
    special_functions,
)
from .._numerics.decision_kernels import smoothed_tanh
from .._numerics.matching import smoothed_kernel


class Normal(NamedTuple):
    """Normal distributions with means and standard deviations (n,)."""

    mean: Array
    std: Array

    @property
    def dtype(self) -> Any:
        return self.mean.dtype

    def cdf(self, points: Array) -> Array:
        """F_i(t) at points (n,), or at (1, m) points in common, (n, m)."""
        column = (slice(None), None) if points.ndim == 2 else slice(None)
        z = bounded_ratio(points - self.mean[column], self.std[column])
        return special_functions(array_namespace(z)).ndtr(z)

    def parameters(self) -> Array:
        """Mean and log standard deviation, (n, 2)."""
        xp = array_namespace(self.mean)
        return xp.stack([self.mean, xp.log(self.std)], axis=1)

    def kernel_means(self, kernel: str, bandwidth: float | None, points: Array) -> Array:
        """E ℓ(Y_i, t_j) at points (m,), (n, m)."""
        shift = self.mean[:, None] - points
        return smoothed_kernel(kernel, shift, self.std[:, None], bandwidth)

    def pair_means(self, kernel: str, bandwidth: float | None) -> Array:
        """E ℓ(Y_i, Y_j) of independent Y_i and Y_j, (n, n)."""
        shift = self.mean[:, None] - self.mean
        deviation = hypot(self.std[:, None], self.std[None])
        return smoothed_kernel(kernel, shift, deviation, bandwidth)

    def tanh_means(self, thresholds: Array, scale: float) -> Array:
        """E tanh((Y_i − c)/s) at thresholds c (m,), (n, m)."""
        return smoothed_tanh(thresholds, scale, self.mean[:, None], self.std[:, None] ** 2)

    def moments(self) -> Array:
        """E Y_i and E Y_i², (n, 2)."""
        xp = array_namespace(self.mean)
        return xp.stack([self.mean, self.mean**2 + self.std**2], axis=1)


@dataclass(frozen=True)
class Draws:
    """Predictive distributions that are known by draws from each.

    Gradients flow through the draws, which are functions of what a model predicts
    (reparameterization). Averages over them are unbiased estimates of expectations, and so is the
    loss that is made of them.

    Parameters
    ----------
    values : array of shape (n_samples, n_draws)
        The draws.

    cdf : callable, default=None
        The distribution functions: takes points of shape (n_samples,), or (1, m) for m points in
        common, and returns probabilities of shape (n_samples,) or (n_samples, m). Needed by the
        forms of calibration that compare probability integral transforms (PITs), by "decision", and
        by ``kernel="thresholds"``.

    parameters : array of shape (n_samples, n_parameters), default=None
        What describes the distributions. ``calibration="distribution"`` conditions on it.

    See Also
    --------
    distribution_matching_loss : Takes them in place of means and standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.losses import Draws, distribution_matching_loss
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=256)
    >>> y = np.exp(mean + rng.normal(size=256))  # lognormal
    >>> draws = Draws(np.exp(mean[:, None] + rng.normal(size=(256, 8))))
    >>> loss = distribution_matching_loss(draws, y, calibration="marginal", bandwidth=1.0)
    >>> bool(abs(loss) < 0.01)
    True
    """

    values: Any
    cdf: Callable[[Any], Any] | None = None
    parameters: Any = None


class Sample(NamedTuple):
    """Distributions by their draws, with the methods of `Normal`."""

    draws: Draws

    @property
    def dtype(self) -> Any:
        return self.draws.values.dtype

    def cdf(self, points: Array) -> Array:
        probability = self.draws.cdf(points)  # type: ignore[misc]
        shape = (len(self.draws.values), *points.shape[1:])
        if tuple(probability.shape) != shape:
            raise ValueError(
                f"cdf of Draws must return shape {shape} for points of shape "
                f"{tuple(points.shape)}; found {tuple(probability.shape)}. Give its parameters a "
                "second axis if the points have one."
            )
        return probability

    def parameters(self) -> Array | None:
        return self.draws.parameters

    def kernel_means(self, kernel: str, bandwidth: float | None, points: Array) -> Array:
        shift = self.draws.values[:, :, None] - points
        return _mean(smoothed_kernel(kernel, shift, None, bandwidth), 1)

    def pair_means(self, kernel: str, bandwidth: float | None) -> Array:
        shift = self.draws.values[:, None, :, None] - self.draws.values[:, None, :]
        return _mean(smoothed_kernel(kernel, shift, None, bandwidth), (2, 3))

    def tanh_means(self, thresholds: Array, scale: float) -> Array:
        shift = (self.draws.values[:, :, None] - thresholds) / scale
        return _mean(array_namespace(shift).tanh(shift), 1)

    def moments(self) -> Array:
        values = self.draws.values
        return array_namespace(values).stack([_mean(values, 1), _mean(values**2, 1)], axis=1)


def _mean(values, axis):
    return array_namespace(values).mean(values, axis=axis)


def as_distributions(prediction: Any) -> Normal | Sample:
    """A pair of means and standard deviations, or draws, in single or double precision.

    Standard deviations are NaN where they are not positive.
    """
    if isinstance(prediction, Draws):
        (values,) = at_least_single(prediction.values)
        return Sample(replace(prediction, values=values))
    mean, std = at_least_single(*prediction)
    return Normal(mean, array_namespace(std).where(std > 0, std, math.nan))
