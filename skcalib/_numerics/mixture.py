"""Quantiles of mixtures of normals."""

import numpy as np
from scipy.special import ndtr, ndtri

from .crps import normal_density

# Bisection alone needs no more steps than these.
_MOST_STEPS = 200

_ROUNDING = 4e-16


def mixture_quantiles(
    level: np.ndarray, mean: np.ndarray, std: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Quantiles (n, m) at levels (n, m) of the mixtures Σ_k weight · N(mean, std²), each (n, c).

    The quantile lies between the least and the largest quantile of the components. Newton steps
    that leave this bracket, or that do not shrink fast, are replaced by bisection. In the upper
    half the steps look at the survival function, which is as accurate there as the cdf is below.
    """
    return np.column_stack([_quantiles(column, mean, std, weight) for column in level.T]).reshape(
        level.shape
    )


def _quantiles(
    level: np.ndarray, mean: np.ndarray, std: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    sign = np.where(level > 0.5, -1.0, 1.0)  # upper levels by symmetry
    tail = np.where(level > 0.5, 1 - level, level)
    centre = sign[:, None] * mean
    used = weight > 0
    ends = centre + std * ndtri(tail)[:, None]
    low = np.where(used, ends, np.inf).min(axis=1)
    high = np.where(used, ends, -np.inf).max(axis=1)
    x = (low + high) / 2
    active = np.flatnonzero(low < high)
    last = before_last = high[active] - low[active]
    for _ in range(_MOST_STEPS):
        if len(active) == 0:
            break
        z = (x[active, None] - centre[active]) / std[active]
        excess = np.einsum("nc,nc->n", weight[active], ndtr(z)) - tail[active]
        slope = np.einsum("nc,nc->n", weight[active], normal_density(z) / std[active])
        low[active] = np.where(excess < 0, x[active], low[active])
        high[active] = np.where(excess < 0, high[active], x[active])
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = x[active] - excess / slope
        inside = (newton >= low[active]) & (newton <= high[active])
        is_fast = 2 * np.abs(excess) <= before_last * slope
        new = np.where(inside & is_fast, newton, (low[active] + high[active]) / 2)
        step = np.abs(new - x[active])
        x[active] = new
        rest = (step > _ROUNDING * np.abs(new)) & (excess != 0)
        active, before_last, last = active[rest], last[rest], step[rest]
    return sign * x
