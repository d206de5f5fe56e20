"""Predictions of a batch: probabilities of classes, or distributions of a number."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from scipy.special import ndtri

from .._numerics.array_api import (
    Array,
    arange_like,
    as_type,
    asarray_like,
    bounded_ratio,
    hypot,
    promote_to_float,
    special_functions,
    stop_gradient,
)
from .._numerics.crps import gauss_legendre, nodes_of_pieces
from .._numerics.matching import mixture_kernel_mean, normal_kernel_mean, normal_tanh_mean
from .._statistics.matching_features import NODES

# Probabilities are clipped to at least this where their logarithm is taken.
MIN_PROBABILITY = 1e-30


class ClassPredictions(NamedTuple):
    """Probabilities of classes, their logarithms, and labels 0, …, K − 1.

    If there are draws from the probabilities, their mean takes the place of them in the residuals.
    """

    proba: Array  # (n, K)
    log_proba: Array  # (n, K)
    label: Array  # (n,)
    drawn_labels: Array | None = None  # (n, K)

    def residuals(self) -> Array:
        """One-hot labels minus probabilities, (n, K)."""
        xp = array_namespace(self.proba)
        is_class = self.label[:, None] == arange_like(self.proba, self.proba.shape[1])
        expected = self.proba if self.drawn_labels is None else self.drawn_labels
        return xp.astype(is_class, self.proba.dtype) - expected

    def problems(self, multi_class: str) -> tuple[Array, Array]:
        """Probabilities and residuals of P binary problems, (n, P) each.

        They are the second of two classes; of more, the confidence, or each class and the rest.
        """
        arrays = self.proba, self.residuals()
        if self.proba.shape[1] == 2:
            return arrays[0][:, 1:], arrays[1][:, 1:]
        if multi_class == "classwise":
            return arrays
        xp = array_namespace(self.proba)
        top = xp.argmax(self.proba, axis=1)[:, None]
        is_top = top == arange_like(self.proba, self.proba.shape[1])
        proba, residual = (xp.sum(xp.where(is_top, values, 0.0), axis=1) for values in arrays)
        return proba[:, None], residual[:, None]


def class_predictions(prediction: Array, target: Array, input_type: str) -> ClassPredictions:
    """From logits or probabilities, (n, K), or (n,) or (n, 1) of the second of two classes.

    They are NaN for samples whose label is none of 0, …, K − 1.
    """
    xp = array_namespace(prediction)
    (value,) = promote_to_float(prediction)
    if value.ndim == 2 and value.shape[1] == 1:
        value = value[:, 0]
    are_probabilities = input_type == "probabilities"
    if value.ndim == 1:
        first = 1 - value if are_probabilities else xp.zeros_like(value)
        value = xp.stack([first, value], axis=1)
    is_label = xp.any(target[:, None] == arange_like(value, value.shape[1]), axis=1)
    value = xp.where(is_label[:, None], value, math.nan)
    if are_probabilities:
        log_proba = xp.log(xp.clip(value, MIN_PROBABILITY, None))
        return ClassPredictions(value, log_proba, target)
    value = less_largest(value)
    log_proba = value - xp.log(xp.sum(xp.exp(value), axis=1, keepdims=True))
    return ClassPredictions(xp.exp(log_proba), log_proba, target)


def less_largest(score: Array) -> Array:
    """Scores minus the largest along the last axis, so that exponentials do not overflow.

    What is subtracted is held constant: it does not matter to shares, and derivatives of a maximum
    need care where it is recomputed.
    """
    xp = array_namespace(score)
    return score - stop_gradient(xp.max(score, axis=-1, keepdims=True))


@dataclass(frozen=True)
class SampledForecast:
    """Predictive distributions that are known by draws from each.

    Gradients flow through the draws (reparameterization) and their weights. The loss is an unbiased
    estimate.

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

    weight : array of shape (n_samples, n_draws), default=None
        The weights of the draws, which sum to 1 for each sample: of draws from each component of a
        mixture, or of all values of a discrete distribution. By default they are equal.

    See Also
    --------
    distribution_matching_loss : Takes them in place of means and standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.losses import SampledForecast, distribution_matching_loss
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=256)
    >>> y = np.exp(mean + rng.normal(size=256))  # lognormal
    >>> draws = SampledForecast(np.exp(mean[:, None] + rng.normal(size=(256, 8))))
    >>> loss = distribution_matching_loss(draws, y, calibration="marginal", bandwidth=1.0)
    >>> bool(abs(loss) < 0.01)
    True
    """

    values: Any
    cdf: Callable[[Any], Any] | None = None
    parameters: Any = None
    weight: Any = None


class Distributions(NamedTuple):
    """A mixture of c normal distributions for each sample, or of c points without `deviation`."""

    location: Array  # (n, c)
    deviation: Array | None  # (n, c)
    share: Array  # (n, c), sums to 1
    cdf: Callable[[Array], Array] | None  # F_i(t) at points (n,), or at (1, m) in common, (n, m)
    parameters: Array | None  # (n, d)

    @property
    def dtype(self) -> Any:
        return self.location.dtype

    def place_points(self, x: Array, share: Array) -> "Distributions":
        """Points in place of the normal distributions, at places (…, m) of a standard one."""
        deviation: Array = self.deviation
        location = self.location[:, :, None] + deviation[:, :, None] * x
        xp, shape = array_namespace(location), (len(location), -1)
        share = xp.broadcast_to(self.share[:, :, None] * share, location.shape)
        return self._replace(
            location=xp.reshape(location, shape), deviation=None, share=xp.reshape(share, shape)
        )

    def nodes(self) -> "Distributions":
        """The points that the metric takes for functions without closed forms."""
        if self.deviation is None:
            return self
        halves = np.array([[0, 0], [0, 0.5], [0.5, 0.5]])
        level, share = (values[0] for values in nodes_of_pieces(halves, 1))
        points = asarray_like(self.location, ndtri(level))
        return self.place_points(points, asarray_like(self.location, share))

    def kernel_means(self, kernel: str | Callable, bandwidth: float | None, points: Array) -> Array:
        """E ℓ(Y_i, t_j) at points (m,), (n, m)."""
        if callable(kernel):
            return self._means(lambda location: line_kernel(kernel, None, location, points))
        deviation = None if self.deviation is None else self.deviation[:, :, None]
        return mixture_kernel_mean(kernel, bandwidth, self.location, deviation, self.share, points)

    def pair_means(self, kernel: str | Callable, bandwidth: float | None) -> Array:
        """E ℓ(Y_i, Y_j) of independent Y_i and Y_j, (n, n)."""
        distributions = self.nodes() if callable(kernel) else self
        xp, deviation = array_namespace(distributions.location), None
        points = xp.reshape(distributions.location, (-1,))
        if callable(kernel):
            means = distributions.kernel_means(kernel, None, points)
        else:
            if self.deviation is not None:
                other_deviation = xp.reshape(self.deviation, (1, 1, -1))
                deviation = hypot(self.deviation[:, :, None], other_deviation)
            means = mixture_kernel_mean(
                kernel, bandwidth, self.location, deviation, self.share, points
            )
        means = xp.reshape(means, (len(means), *distributions.location.shape))
        return xp.sum(distributions.share * means, axis=2)

    def loss_means(self, loss: Callable) -> Array:
        """The expected losses of all actions, (n, A)."""
        return self._means(lambda location: loss_values(loss, location))

    def _means(self, function: Callable[[Array], Array]) -> Array:
        """The means of a function of points (k,) that returns (k, m), by nodes or draws, (n, m)."""
        distributions = self.nodes()
        xp = array_namespace(distributions.location)
        values = function(xp.reshape(distributions.location, (-1,)))
        values = xp.reshape(values, (*distributions.location.shape, values.shape[1]))
        return xp.sum(distributions.share[:, :, None] * values, axis=1)

    def feature_means(self, kernel: str, thresholds: Array, scale: Any) -> Array:
        """E φ(Y_i) of a kernel of decisions, (C, n)."""
        xp = array_namespace(self.location)
        if kernel == "moments":
            square = self.location**2
            square = square if self.deviation is None else square + self.deviation**2
            return xp.stack(
                [xp.sum(self.share * power, axis=1) for power in (self.location, square)]
            )
        if kernel == "tanh":
            variance = None if self.deviation is None else self.deviation[:, :, None] ** 2
            steps = normal_tanh_mean(thresholds, scale, self.location[:, :, None], variance)
            mean = xp.sum(self.share[:, :, None] * steps, axis=1)
        else:
            mean = self.cdf(thresholds[None])  # type: ignore[misc]
        return mean.T / thresholds.shape[0] ** 0.5


def uniform_like(array: Array) -> Distributions:
    """One uniform distribution on [0, 1], by nodes."""
    level, share = (
        asarray_like(array, nodes_or_weights)[None] for nodes_or_weights in gauss_legendre(NODES)
    )
    return Distributions(level, None, share, None, None)


# Functions of users


def call_kernel(kernel: Callable, points: Array, other: Array) -> Array:
    """A kernel of points (a, d) and (b, d), (a, b)."""
    values = kernel(points, other)
    if np.shape(values) != (len(points), len(other)):
        raise ValueError(
            "kernel and given_kernel must return the values for all pairs of rows, of shape (a, b) "
            f"for arrays of shapes (a, d) and (b, d); found shape {tuple(np.shape(values))} for a "
            f"= {len(points)}, b = {len(other)}. Use s[:, None] and t[None]."
        )
    return values


def line_kernel(kernel: Any, bandwidth: float | None, values: Array, other: Array) -> Array:
    """ℓ of numbers (a,) and (b,), (a, b)."""
    if callable(kernel):
        return call_kernel(kernel, values[:, None], other[:, None])
    return normal_kernel_mean(kernel, values[:, None] - other, None, bandwidth)


def loss_values(loss: Callable, outcome: Array) -> Array:
    """The losses of all actions, (m, A), for outcomes (m,)."""
    values = loss(outcome)
    if len(np.shape(values)) != 2 or len(values) != len(outcome):
        raise ValueError(
            "loss must return the losses of all actions, of shape (m, n_actions) for outcomes of "
            f"shape (m,); found shape {tuple(np.shape(values))} for m = {len(outcome)}. Stack the "
            "losses of each action on the second axis."
        )
    return values


def as_distributions(prediction: Any) -> Distributions:
    """Means and standard deviations, with weights of mixtures, or draws, at least in float32.

    Standard deviations are NaN where they are not positive.
    """
    if isinstance(prediction, SampledForecast):
        (values,) = promote_to_float(prediction.values)
        cdf, share = prediction.cdf, as_type(prediction.weight, values.dtype)
        if share is None:
            share = array_namespace(values).full_like(values, 1 / values.shape[1])
        if cdf is not None:
            cdf = partial(_cdf_of_draws, cdf, len(values))
        return Distributions(values, None, share, cdf, prediction.parameters)
    mean, std, *weight = promote_to_float(*prediction)
    xp = array_namespace(mean)
    std = xp.where(std > 0, std, math.nan)
    if weight:
        (share,) = weight
        share = share / xp.sum(xp.where(share >= 0, share, math.nan), axis=1, keepdims=True)
    else:
        mean, std = mean[:, None], std[:, None]
        share = xp.ones_like(mean)
    return Distributions(
        mean, std, share, partial(_cdf, mean, std, share), _moments(mean, std, share)
    )


def _moments(mean: Array, std: Array, share: Array) -> Array:
    """Mean and log standard deviation of mixtures, (n, 2), from squares that do not overflow."""
    xp = array_namespace(mean)
    centre = xp.sum(share * mean, axis=1)
    gap = mean - centre[:, None]
    unit = stop_gradient(xp.max(xp.maximum(std, xp.abs(gap)), axis=1, keepdims=True))
    square = xp.sum(share * ((std / unit) ** 2 + (gap / unit) ** 2), axis=1)
    return xp.stack([centre, xp.log(unit[:, 0]) + xp.log(square) / 2], axis=1)


def _cdf(mean: Array, std: Array, share: Array, points: Array) -> Array:
    column = (slice(None), None) if points.ndim == 2 else slice(None)
    z = bounded_ratio(points[..., None] - mean[column], std[column])
    xp = array_namespace(z)
    return xp.sum(share[column] * special_functions(xp).ndtr(z), axis=-1)


def _cdf_of_draws(cdf: Callable[[Array], Array], n: int, points: Array) -> Array:
    probability, shape = cdf(points), (n, *points.shape[1:])
    if tuple(probability.shape) != shape:
        raise ValueError(
            f"cdf of SampledForecast must return shape {shape} for points of shape "
            f"{tuple(points.shape)}; found {tuple(probability.shape)}. Give its parameters a "
            "second axis if the points have one."
        )
    return probability
