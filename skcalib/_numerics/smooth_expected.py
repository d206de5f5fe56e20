"""Mass on [0, 1] smoothed by a Gaussian kernel that is reflected at 0 and 1.

With c_i the mass at p_i and all mirror images, the smoothed mass solves the heat equation without
flow through the ends,

    r_σ(t) = a_0 + 2 Σ_k exp(−(πσk)²/2) a_k cos(πkt),    a_k = Σ_i c_i cos(πk p_i),

so the a_k, computed once, serve all bandwidths σ. ∫|r_σ| does not increase with σ, hence equals σ
exactly once.
"""

import math
from functools import cache

import numpy as np
from array_api_compat import array_namespace
from scipy.fft import dct, dst
from scipy.optimize import brentq

from .array_api import Array, arange_like
from .sorting import pool_ties

# The least bandwidth: for a smaller one the integral would take more than `_MAX_GRID_STEPS` steps.
MIN_SMOOTHING_BANDWIDTH = 1e-5

# Larger bandwidths are replaced by this: the smoothed mass is constant, and squares would overflow.
_MAX_BANDWIDTH = 1e10

# Numbers of cells that are tried until one resolves the bandwidth sought. They do not depend on the
# number of samples, so that a weight of 2 is the same as a sample that occurs twice.
_GRID_SIZES = tuple(2**power for power in (12, 16, 19, 22))

# Taylor polynomials of degree 7 in cells of width h: the s-th derivative of the kernel has an
# integral of at most √(s!)/σ^s (Cauchy-Schwarz), so ∫|r_σ| is wrong by at most (h/2σ)^8/√(8!) of
# Σ|c|, 3e-9 for h = σ/3.
_N_TAYLOR_TERMS = 8

_CELLS_PER_BANDWIDTH = 3

# Modes k with a larger σk are left out: there exp(−(πσk)²/2) is below 5e-18. The limit is below
# `_CELLS_PER_BANDWIDTH`, so that there are coefficients for all modes that are kept.
_MAX_MODE = 2.85

# With this many steps, the integral of |r_σ| is wrong by at most 1e-7 of Σ|c|. If the integral is
# as small as σ, the fewer steps that `_MAX_GRID_STEPS` allows suffice for a much smaller σ.
_GRID_STEPS_PER_BANDWIDTH = 64

_MIN_GRID_STEPS, _MAX_GRID_STEPS = 2**12, 2**23

# With the first number of steps per bandwidth, σ is mostly found up to this relative error.
_ROUGH_STEPS, _ROUGH_RTOL = 4, 1e-4

# If smoothing lowers the absolute mass by less than this, the points are too far apart for the
# bandwidth to cancel any mass.
_MASS_ATOL = 1e-10


def smooth_absolute_mass(points: np.ndarray, mass: np.ndarray, bandwidth: float) -> float:
    """∫|r_σ| for points (n,) in [0, 1] that hold the mass (n,), and σ ≥ `MIN_SMOOTHING_BANDWIDTH`.

    Cost O(n + s log s) with s = 1/σ.
    """
    bandwidth = min(bandwidth, _MAX_BANDWIDTH)
    n_cells = next(size for size in _GRID_SIZES if bandwidth * size >= _CELLS_PER_BANDWIDTH)
    return _absolute_integral(bandwidth, cosine_coefficients(points, mass, n_cells))


def smooth_absolute_mass_fixed_point(points: np.ndarray, mass: np.ndarray) -> float:
    """The σ with ∫|r_σ| = σ, for Σ|mass| ≤ 1. Cost O(n + s log s) with s = 1/σ.

    If σ < 1e-6, the result may be an upper bound on σ that is itself below 1e-6. The points are
    sorted only if the first grid is not fine enough.
    """
    for n_cells in _GRID_SIZES:
        coefficients = cosine_coefficients(points, mass, n_cells)
        finest = _CELLS_PER_BANDWIDTH / n_cells
        root = _fixed_point_above(finest, coefficients)
        if root is not None:
            return root
        points, mass = pool_ties(points, mass)
        unsmoothed = float(np.abs(mass).sum())  # the limit for σ → 0
        if unsmoothed - _absolute_integral(finest, coefficients) < _MASS_ATOL:
            return unsmoothed
    return min(unsmoothed, finest)


def _fixed_point_above(finest: float, coefficients: np.ndarray) -> float | None:
    """The σ ≥ finest with ∫|r_σ| = σ; None if it is smaller.

    It is bracketed with few steps, which take a sixteenth of the time.
    """

    @cache
    def excess(bandwidth: float, steps: int = _GRID_STEPS_PER_BANDWIDTH) -> float:
        return _absolute_integral(bandwidth, coefficients, steps) - bandwidth

    upper = lower = 2.0  # more than any value
    while excess(lower, _ROUGH_STEPS) < 0:
        if lower == finest:
            return None
        upper, lower = lower, max(lower / 4, finest)
    rough = brentq(excess, lower, upper, args=(_ROUGH_STEPS,), rtol=_ROUGH_RTOL / 100)
    for low, high in (rough * (1 - _ROUGH_RTOL), rough * (1 + _ROUGH_RTOL)), (finest, 2.0):
        low = max(low, finest)
        if excess(low) >= 0 >= excess(high):
            return brentq(excess, low, high, xtol=1e-15)
    return None


def cosine_coefficients(points: np.ndarray, mass: np.ndarray, n_cells: int) -> np.ndarray:
    """Σ_i mass_i cos(πk points_i) for k = 0, …, n_cells − 1.

    The cosines are expanded about the centres of the cells, where the transforms evaluate them.
    """
    offset = points * n_cells
    cell = np.minimum(offset.astype(np.intp), n_cells - 1)  # (n,)
    offset -= cell
    offset -= 0.5  # from the centre, in cells
    frequency = np.pi * np.arange(n_cells) / n_cells  # (M,), per cell
    coefficients = np.zeros(n_cells)
    moment = mass.copy()  # mass · offset^s
    factor = np.full(n_cells, 0.5)  # ±½ frequency^s / s!, as the transforms are twice the sums
    for s in range(_N_TAYLOR_TERMS):
        sums = np.bincount(cell, weights=moment, minlength=n_cells)  # (M,)
        if s % 2 == 0:
            coefficients += factor * dct(sums, type=2)
            factor *= -frequency / (s + 1)  # cos' = −sin
        else:
            coefficients[1:] += factor[1:] * dst(sums, type=2)[:-1]
            factor *= frequency / (s + 1)  # sin' = cos
        moment *= offset
    return coefficients


def _absolute_integral(
    bandwidth: float, coefficients: np.ndarray, steps: int = _GRID_STEPS_PER_BANDWIDTH
) -> float:
    """∫|r_σ| from the cosine coefficients of the mass."""
    n_steps = 2 ** math.ceil(math.log2(steps / bandwidth))
    n_steps = min(max(n_steps, _MIN_GRID_STEPS), _MAX_GRID_STEPS)
    smoothed = _evaluate_on_grid(bandwidth, coefficients, n_steps)
    # The trapezoid rule gets ∫r_σ right to all digits. |r_σ| has a kink at each zero: in the
    # fraction x of a step h, with slopes ±q, it adds h²q(x(1 − x) − 1/6) to the rule.
    height = np.abs(smoothed)
    is_negative = smoothed < 0
    kink = np.flatnonzero(is_negative[1:] != is_negative[:-1])
    left, right = height[kink], height[kink + 1]  # hqx and hq(1 − x)
    total = height.sum() - (height[0] + height[-1]) / 2
    total -= np.sum(left * right / (left + right) - (left + right) / 6)
    return float(total / n_steps)


def _evaluate_on_grid(bandwidth: float, coefficients: np.ndarray, n_steps: int) -> np.ndarray:
    """r_σ at 0, 1/s, …, 1 for s steps, (s + 1,)."""
    n_modes = min(len(coefficients), int(_MAX_MODE / bandwidth) + 1)
    damping = np.exp(-0.5 * (np.pi * bandwidth * np.arange(n_modes)) ** 2)
    return dct(damping * coefficients[:n_modes], type=1, n=n_steps + 1)


def interpolate_smooth_mass(
    points: np.ndarray, mass: np.ndarray, bandwidth: float, x: np.ndarray
) -> np.ndarray:
    """r_σ at places (m,) in [0, 1], for σ ≥ 0.001: interpolated on a grid of at least 16/σ steps.

    The error is at most 1e-3 of the largest value. Cost O(n + s log s) with s = 1/σ.
    """
    bandwidth = min(bandwidth, _MAX_BANDWIDTH)
    coefficients = cosine_coefficients(points, mass, _GRID_SIZES[0])
    heights = _evaluate_on_grid(bandwidth, coefficients, _MIN_GRID_STEPS * 4)
    return np.interp(x * (len(heights) - 1), np.arange(len(heights)), heights)


def smooth_mass(points: Array, mass: Array, bandwidth: float, n_steps: int) -> Array:
    """r_σ(t) at t = 0, 1/s, …, 1 for s steps, on the namespace of the arrays.

    Points and mass are (n, P), and the result is (P, s + 1). It can be differentiated. Cost
    O(n P/σ + P s log s), memory O(n P/σ).
    """
    xp = array_namespace(points, mass)
    n_modes = int(_MAX_MODE / bandwidth) + 1
    order = xp.astype(arange_like(points, n_modes), points.dtype)
    wave = xp.cos(math.pi * points.T[:, :, None] * order)  # (P, n, n_modes)
    coefficients = (mass.T[:, None, :] @ wave)[:, 0]
    damped = coefficients * xp.exp(-((math.pi * bandwidth * order) ** 2) / 2)
    return 2 * n_steps * xp.fft.irfft(damped, n=2 * n_steps)[:, : n_steps + 1]
