"""Kernels on a line: their means under normal and uniform distributions, and their features.

Kernels are ℓ(d) of the difference d of two outcomes, with a bandwidth ν in the units of the
outcomes: "rbf" exp(−d²/(2ν²)), "laplacian" exp(−|d|/ν), and "energy" −|d|, which has none.
"""

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from .array_api import Array, asarray_like, bounded_ratio, erfcx, hypot, special_functions
from .crps import mean_distance

# The trapezoidal rule for the rbf kernel uses frequencies up to the first number over the bandwidth
# and a period that exceeds the range of differences by the second number of bandwidths.
_FINE_RULE = 6.5, 7.0  # misses the kernel by about 1e-10
_ROUGH_RULE = 5.0, 5.5  # misses it by about 1e-6

# Numbers of frequencies up to which counts are exact.
_MAX_EXACT_COUNT = 2.0**53

# Below this argument erfcx comes close to overflow.
_MIN_ERFCX_ARGUMENT = -5.0

_ROOT_2 = math.sqrt(2.0)

# Intervals of a smaller probability count as points.
_MIN_INTERVAL_WIDTH = 1e-8

# Gaussian kernels are 0 from this many bandwidths on.
_MAX_BANDWIDTHS = 1e4

# Entries of the waves that are held at once.
_MAX_WAVE_ENTRIES = 2**19

# Standard deviations in units of the step, up to which tanh is averaged as it is. Both quadratures
# are right to 1e-14 on either side of it.
_MIN_WIDE_DEVIATION = 0.8

# The trapezoidal rule for the mean of a function of a standard normal variable.
_NORMAL_NODES = 0.3 * np.arange(-28, 29)
_NORMAL_WEIGHTS = np.exp(-(_NORMAL_NODES**2) / 2) / np.exp(-(_NORMAL_NODES**2) / 2).sum()

# tanh misses the sign by 2/(e^{2x} + 1) at x > 0, which is below 1e-15 beyond this point.
_TANH_REACH = 18.0
_LEGENDRE, _LEGENDRE_WEIGHT = np.polynomial.legendre.leggauss(48)
_TANH_NODES = (_LEGENDRE + 1) / 2 * _TANH_REACH
_SIGN_GAP_WEIGHTS = _LEGENDRE_WEIGHT / 2 * _TANH_REACH * 2 / (np.exp(2 * _TANH_NODES) + 1)


# Means under normal distributions


def normal_kernel_mean(
    kernel: str, shift: Array, deviation: Array | None, bandwidth: float | None
) -> Array:
    """E ℓ(D) of D ~ N(shift, deviation²); ℓ(shift) where the deviation is 0, or if it is None."""
    if kernel == "energy":
        return -mean_distance(shift, deviation)
    xp = array_namespace(shift)
    if kernel == "rbf":
        if deviation is None:
            return _gaussian_kernel(shift, bandwidth)
        width = hypot(deviation, xp.full_like(deviation, bandwidth))
        return _gaussian_kernel(shift, width) * (bandwidth / width)
    distance = xp.abs(shift) / bandwidth
    if deviation is None:
        return xp.exp(-distance)
    return _normal_laplacian_mean(distance, deviation / bandwidth)


def _gaussian_kernel(shift: Array, width: Array | float) -> Array:
    xp = array_namespace(shift)
    ratio = xp.clip(xp.abs(shift) / width, None, _MAX_BANDWIDTHS)  # whose square does not overflow
    return xp.exp(-(ratio**2) / 2)


def mixture_kernel_mean(
    kernel: str,
    bandwidth: float | None,
    location: Array,
    deviation: Array | None,
    weight: Array,
    points: Array,
) -> Array:
    """E ℓ(Y_i, t_j) at points (m,) of mixtures Σ_c weight · N(location, deviation²), (n, m).

    The parts are (n, c). The deviation is (n, c, 1), or (n, c, m) where it depends on the point;
    None if the parts are points.
    """
    xp = array_namespace(location)
    values = normal_kernel_mean(kernel, location[:, :, None] - points, deviation, bandwidth)
    if location.shape[1] == 1:
        return weight * values[:, 0, :]
    return xp.sum(weight[:, :, None] * values, axis=1)


def _normal_laplacian_mean(distance: Array, spread: Array) -> Array:
    """½ e^{−m²/2s²} [erfcx((s − m/s)/√2) + erfcx((s + m/s)/√2)], m and s over the bandwidth."""
    xp = array_namespace(distance, spread)
    ratio = bounded_ratio(distance, spread)
    near, far = (spread - ratio) / _ROOT_2, (spread + ratio) / _ROOT_2
    level = xp.exp(-(ratio**2) / 2)
    is_steep = near < _MIN_ERFCX_ARGUMENT
    tail = special_functions(xp).erfc(xp.where(is_steep, near, 0.0))
    square = xp.where(is_steep, spread, 0.0) ** 2  # which overflows elsewhere
    steep = tail * xp.exp(xp.where(is_steep, square / 2 - distance, 0.0))
    flat = level * erfcx(xp.where(is_steep, 0.0, near))
    return (xp.where(is_steep, steep, flat) + level * erfcx(far)) / 2


# Means over intervals


def interval_mean(
    kernel: str,
    bandwidth: float,
    low: np.ndarray,
    high: np.ndarray,
    other_low: np.ndarray,
    other_high: np.ndarray,
) -> np.ndarray:
    """E ℓ(U − V) of independent U and V, uniform on intervals within [0, 1] that may be points.

    Intervals that do not overlap are apart from the kink of the laplacian and energy kernels, and
    the mean is a product. For others the kernel is integrated twice, and differences are taken.
    """
    low, high, other_low, other_high = np.broadcast_arrays(low, high, other_low, other_high)
    width, other_width = high - low, other_high - other_low
    gap = np.abs((low + high) - (other_low + other_high)) / 2
    reach = (width + other_width) / 2
    if kernel == "energy":
        value = -gap
    elif kernel == "laplacian":
        value = np.exp(-np.maximum(gap - reach, 0.0) / bandwidth)
        value *= _mean_decay(width / bandwidth) * _mean_decay(other_width / bandwidth)
    else:
        value = np.exp(-((gap / bandwidth) ** 2) / 2)
    overlap = (reach > 0) & ((gap < reach) | (kernel == "rbf"))
    narrow = 1e-4 * bandwidth if kernel == "rbf" else _MIN_INTERVAL_WIDTH
    wide, other_wide = width > narrow, other_width > narrow
    either = overlap & (wide != other_wide)
    if either.any():
        gaps, size = gap[either], np.where(wide, width, other_width)[either]
        area = _integral(kernel, 1, gaps + size / 2, bandwidth)
        area -= _integral(kernel, 1, gaps - size / 2, bandwidth)
        value[either] = area / size
    both = overlap & wide & other_wide
    if both.any():
        gaps, a, b = gap[both], width[both] / 2, other_width[both] / 2
        volume = _integral(kernel, 2, gaps + a + b, bandwidth)
        volume += _integral(kernel, 2, gaps - a - b, bandwidth)
        volume -= _integral(kernel, 2, gaps + a - b, bandwidth)
        volume -= _integral(kernel, 2, gaps - a + b, bandwidth)
        value[both] = volume / (4 * a * b)
    points = overlap & ~wide & ~other_wide
    if points.any():
        value[points] = _integral(kernel, 0, gap[points], bandwidth)
    return value


def uniform_mean(kernel: str, bandwidth: float, points: Array) -> Array:
    """E ℓ(U − t) of U uniform on [0, 1], at points t in [0, 1]."""
    return _integral(kernel, 1, points, bandwidth) + _integral(kernel, 1, 1 - points, bandwidth)


def uniform_pair_mean(kernel: str, bandwidth: float) -> float:
    """E ℓ(U − V) of independent U and V, uniform on [0, 1]."""
    return 2 * float(_integral(kernel, 2, np.ones(1), bandwidth)[0])


def _mean_decay(length: np.ndarray) -> np.ndarray:
    """(1 − e^{−x})/x, 1 at 0."""
    return np.divide(-np.expm1(-length), length, out=np.ones_like(length), where=length > 0)


def _integral(kernel: str, order: int, gap: Array, bandwidth: float) -> Array:
    """The kernel integrated `order` times, an even or an odd function that is 0 at 0 if integrated.

    Nothing else would keep the digits of narrow intervals.
    """
    xp = array_namespace(gap)
    if kernel == "energy":
        return -xp.abs(gap) * (1.0, gap / 2, gap**2 / 6)[order]
    z = gap / bandwidth
    if kernel == "laplacian":
        distance = xp.abs(z)
        if order == 0:
            return xp.exp(-distance)
        decay = xp.expm1(-distance)
        return -bandwidth * xp.sign(z) * decay if order == 1 else bandwidth**2 * (decay + distance)
    if order == 0:
        return xp.exp(-(z**2) / 2)
    area = math.sqrt(math.pi / 2) * special_functions(xp).erf(z / _ROOT_2)
    return bandwidth * area if order == 1 else bandwidth**2 * (xp.expm1(-(z**2) / 2) + z * area)


# Fourier features. The rows of waves are 1, cos(hx), …, cos(Mhx), sin(hx), …, sin(Mhx).


def fourier_grid(extent: Any, largest: Any, smallest: Any, *, is_rough: bool = False) -> tuple:
    """Step h and number M of the frequencies for the rbf kernels of some bandwidths.

    `extent` is the largest difference that occurs; the bandwidths lie between the other two. All
    three are numbers, or arrays of several cases.
    """
    cut_off, margin = _ROUGH_RULE if is_rough else _FINE_RULE
    step = 2 * np.pi / (extent + margin * largest)
    return step, np.minimum(np.ceil(cut_off / (smallest * step)), _MAX_EXACT_COUNT).astype(np.intp)


def fourier_weights(step: float, count: int, bandwidth: np.ndarray) -> np.ndarray:
    """Weights of the products of waves that sum to the rbf kernel: (R, 2M + 1) from (R,)."""
    scaled = step * bandwidth[:, None]  # (R, 1)
    order = np.arange(count + 1)
    weight = scaled / np.sqrt(2 * np.pi) * np.exp(-((order * scaled) ** 2) / 2)
    weight[:, 1:] *= 2
    return np.hstack([weight, weight[:, 1:]])


def fourier_features_1d(points: np.ndarray, step: float, count: int) -> np.ndarray:
    """(…, 2M + 1, n) of points (…, n).

    The three-term recurrence cos((m+1)θ) = 2 cos θ cos(mθ) − cos((m−1)θ), and the same for the
    sine, takes a fraction of the time of trigonometric functions. Its error is about M² ulp.
    """
    wave = np.empty((*points.shape[:-1], 2 * count + 1, points.shape[-1]))
    wave[..., 0, :] = 1.0
    if count == 0:
        return wave
    angle = step * points
    cosine, sine = wave[..., : count + 1, :], wave[..., count:, :]  # sine[0] is the last cosine
    np.cos(angle, out=cosine[..., 1, :])
    np.sin(angle, out=sine[..., 1, :])
    if count == 1:
        return wave
    twice = 2 * cosine[..., 1, :]
    np.multiply(twice, cosine[..., 1, :], out=cosine[..., 2, :])
    cosine[..., 2, :] -= 1.0
    np.multiply(twice, sine[..., 1, :], out=sine[..., 2, :])
    for m in range(3, count + 1):
        for features in (cosine, sine):
            np.multiply(twice, features[..., m - 1, :], out=features[..., m, :])
            features[..., m, :] -= features[..., m - 2, :]
    return wave


def mixture_fourier_features(
    location: np.ndarray, variance: np.ndarray, weight: np.ndarray, step: float, count: int
) -> np.ndarray:
    """Means of waves under the mixtures Σ_c weight · N(location, variance), (2M + 1, n).

    All three arrays are (n, c).
    """
    n, n_components = location.shape
    mean = np.zeros((2 * count + 1, n))
    order = np.arange(count + 1)
    square = -((step * np.concatenate([order, order[1:]])) ** 2) / 2
    has_spread = variance.any()
    size = max(1, _MAX_WAVE_ENTRIES // mean.size)
    for start in range(0, n_components, size):
        columns = slice(start, start + size)
        wave = fourier_features_1d(location[:, columns].T, step, count)  # (size, 2M + 1, n)
        if has_spread:
            wave *= np.exp(square[:, None] * variance[:, columns].T[:, None])
        mean += np.einsum("ckn,nc->kn", wave, weight[:, columns])
    return mean


def shift_fourier_features(
    shift: np.ndarray, mean: np.ndarray, step: float, count: int
) -> np.ndarray:
    """Means of the waves of x + shift from those of x: (2M + 1, n) from (n,) and (2M + 1, 1)."""
    wave = fourier_features_1d(shift, step, count)
    shifted = np.empty_like(wave)
    shifted[0] = 1.0
    cosine, sine, other_cosine, other_sine = (
        half for rows in (wave, mean) for half in (rows[1 : count + 1], rows[count + 1 :])
    )
    shifted[1 : count + 1] = cosine * other_cosine - sine * other_sine
    shifted[count + 1 :] = sine * other_cosine + cosine * other_sine
    return shifted


def interval_fourier_features(
    low: np.ndarray, high: np.ndarray, step: float, count: int
) -> np.ndarray:
    """Means of waves over intervals, which may be points: (…, 2M + 1, n) of ends (…, n)."""
    wave = fourier_features_1d((low + high) / 2, step, count)
    half = (high - low) / 2
    if half.any():
        order = np.arange(1, count + 1)[:, None]
        damping = np.sinc(step / np.pi * order * half[..., None, :])
        wave[..., 1 : count + 1, :] *= damping
        wave[..., count + 1 :, :] *= damping
    return wave


# Threshold calibration


def distance_pair_sum(values: np.ndarray, mass: np.ndarray) -> float:
    """Σ_{i,j} |values_i − values_j| ⟨mass_i, mass_j⟩ of values (n,) and mass (C, n).

    With the running sums S of the mass in the order of the values and their total T it is
    2 Σ_k (v_(k+1) − v_(k)) ⟨S_k, T − S_k⟩, at O(n (C + log n)).
    """
    order = np.argsort(values)
    running = np.cumsum(mass[:, order], axis=1)
    remaining = running[:, -1:] - running[:, :-1]
    return 2 * float(np.einsum("ck,ck->k", running[:, :-1], remaining) @ np.diff(values[order]))


# Decisions


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


def normal_tanh_mean(
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
    is_narrow = spread < _MIN_WIDE_DEVIATION
    narrow = _mean_tanh(xp, gap, xp.where(is_narrow, spread, _MIN_WIDE_DEVIATION))
    wide = _mean_sign(xp, gap, xp.where(is_narrow, _MIN_WIDE_DEVIATION, spread))
    return xp.where(is_narrow, narrow, wide)


def _mean_tanh(xp: Any, mean: Array, deviation: Array) -> Array:
    node, share = (asarray_like(mean, array) for array in (_NORMAL_NODES, _NORMAL_WEIGHTS))
    return xp.sum(share * xp.tanh(mean[..., None] + deviation[..., None] * node), axis=-1)


def _mean_sign(xp: Any, mean: Array, deviation: Array) -> Array:
    """erf(m/(r√2)) − ∫ 2/(e^{2x} + 1) [φ((x − m)/r) − φ((x + m)/r)]/r dx over x > 0."""
    distance, missed = (asarray_like(mean, array) for array in (_TANH_NODES, _SIGN_GAP_WEIGHTS))
    sign = special_functions(xp).erf(mean / deviation / math.sqrt(2.0))
    mean, deviation = mean[..., None], deviation[..., None]
    above = xp.exp(-(((distance - mean) / deviation) ** 2) / 2)
    below = xp.exp(-(((distance + mean) / deviation) ** 2) / 2)
    correction = xp.sum(missed * (above - below) / deviation, axis=-1)
    return sign - correction / math.sqrt(2 * math.pi)
