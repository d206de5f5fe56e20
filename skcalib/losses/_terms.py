"""The terms of pairs of samples: ℓ(y_i, y_j) − e_i(y_j) − e_j(y_i) + c_ij, (n, n)."""

from typing import Any

from array_api_compat import array_namespace

from .._numerics.array_api import Array
from .._numerics.matching import smoothed_kernel, uniform_mean, uniform_pair_mean
from ._forecasts import Normal, Sample


def outcome_terms(
    forecast: Normal | Sample, outcome: Array, kernel: str, bandwidth: float
) -> Array:
    """For outcomes and forecasts, with a kernel of the difference of outcomes."""
    pairs = smoothed_kernel(kernel, outcome[:, None] - outcome, None, bandwidth)
    means = forecast.kernel_means(kernel, bandwidth, outcome)
    return pairs - means - means.T + forecast.pair_means(kernel, bandwidth)


def uniform_terms(pit: Array, kernel: str, bandwidth: float) -> Array:
    """For probability integral transforms (n,) and the uniform distribution."""
    pairs = smoothed_kernel(kernel, pit[:, None] - pit, None, bandwidth)
    means = uniform_mean(kernel, bandwidth, pit)
    return pairs - means[:, None] - means + uniform_pair_mean(kernel, bandwidth)


def feature_residuals(
    forecast: Normal | Sample,
    outcome: Array,
    kernel: str,
    bandwidth: Any,
    thresholds: Array,
) -> Array:
    """φ(y_i) − E φ(Y_i), (n, C), whose inner products are the terms."""
    xp = array_namespace(outcome)
    if kernel == "moments":
        return xp.stack([outcome, outcome**2], axis=1) - forecast.moments()
    if kernel == "tanh":
        observed = xp.tanh((outcome[:, None] - thresholds) / bandwidth)
        residual = observed - forecast.tanh_means(thresholds, bandwidth)
    else:
        is_below = xp.astype(outcome[:, None] <= thresholds, outcome.dtype)
        residual = is_below - forecast.cdf(thresholds[None])
    return residual / len(thresholds) ** 0.5
