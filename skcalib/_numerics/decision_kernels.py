"""Features of decisions, and the means of smooth steps under normal distributions."""

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from .array_api import Array, constant_like, special_functions

# Standard deviations in units of the step, up to which tanh is averaged as it is. Both quadratures
# are right to 1e-14 on either side of it.
_SWITCH = 0.8

# The trapezoidal rule for the mean of a function of a standard normal variable.
_NODE = 0.3 * np.arange(-28, 29)
_SHARE = np.exp(-(_NODE**2) / 2) / np.exp(-(_NODE**2) / 2).sum()

# tanh misses the sign by 2/(e^{2x} + 1) at x > 0, which is below 1e-15 beyond this point.
_REACH = 18.0
_LEGENDRE, _LEGENDRE_WEIGHT = np.polynomial.legendre.leggauss(48)
_DISTANCE = (_LEGENDRE + 1) / 2 * _REACH
_MISSED = _LEGENDRE_WEIGHT / 2 * _REACH * 2 / (np.exp(2 * _DISTANCE) + 1)


def feature_values(kernel: str, outcome: Array, thresholds: Array, scale: Any) -> Array:
    """φ(y) of outcomes (m,), whose inner products are a kernel of decisions, (C, m)."""
    xp = array_namespace(outcome)
    if kernel == "moments":
        return xp.stack([outcome, outcome**2])
    if kernel == "tanh":
        values = xp.tanh((outcome - thresholds[:, None]) / scale)
    else:
        values = xp.astype(outcome <= thresholds[:, None], outcome.dtype)
    return values / thresholds.shape[0] ** 0.5


def smoothed_tanh(
    threshold: Array | float, scale: Array | float, location: Array, variance: Array | None = None
) -> Array:
    """E tanh((Y − c)/s) of Y ~ N(location, variance); tanh itself where the variance is 0, or None.

    Right to 1e-14 for every ratio of the standard deviation to the scale s, as long as neither that
    nor the distance from the threshold c is more than 1e150 times s. With m and r for the mean and
    the standard deviation of x = (Y − c)/s: a narrow normal takes the trapezoidal rule. For a wide
    one the mean of sign(x), which is erf(m/(r√2)), is known, and the rest is smooth on either side.
    """
    xp = array_namespace(location)
    gap = (location - threshold) / scale
    if variance is None:
        return xp.tanh(gap)
    # the root is moved away from 0, where it has no derivative, by less than the rounding of tanh
    spread = xp.sqrt(variance / scale / scale + float(xp.finfo(gap.dtype).eps))
    gap, spread = xp.broadcast_arrays(gap, spread)
    is_narrow = spread < _SWITCH
    narrow = _mean_tanh(xp, gap, xp.where(is_narrow, spread, _SWITCH))
    wide = _mean_sign(xp, gap, xp.where(is_narrow, _SWITCH, spread))
    return xp.where(is_narrow, narrow, wide)


def _mean_tanh(xp: Any, mean: Array, deviation: Array) -> Array:
    node, share = (constant_like(mean, array) for array in (_NODE, _SHARE))
    return xp.sum(share * xp.tanh(mean[..., None] + deviation[..., None] * node), axis=-1)


def _mean_sign(xp: Any, mean: Array, deviation: Array) -> Array:
    """erf(m/(r√2)) − ∫ 2/(e^{2x} + 1) [φ((x − m)/r) − φ((x + m)/r)]/r dx over x > 0."""
    distance, missed = (constant_like(mean, array) for array in (_DISTANCE, _MISSED))
    sign = special_functions(xp).erf(mean / deviation / math.sqrt(2.0))
    mean, deviation = mean[..., None], deviation[..., None]
    above = xp.exp(-(((distance - mean) / deviation) ** 2) / 2)
    below = xp.exp(-(((distance + mean) / deviation) ** 2) / 2)
    rest = xp.sum(missed * (above - below) / deviation, axis=-1)
    return sign - rest / math.sqrt(2 * math.pi)
