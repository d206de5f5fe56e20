"""Probabilities for other shares of the classes, and these shares from unlabelled predictions."""

from typing import NamedTuple

import numpy as np

# The fit ends when the log-likelihood is below its maximum by at most the first number, and a step
# does not halve that any more, or by at most the second one, which is rounding.
_GAP, _LEAST_GAP = 1e-12, 1e-15

_MOST_STEPS = 100

# Keeps the ratios of shares that the data do not determine, for shares above the second number.
_RIDGE, _SMALL_SHARE = 1e-12, 1e-6

# The search along a step gives up below the first fraction of it. A step must bring the second
# fraction of what the slope promises; the third is the rounding error of a log-likelihood.
_SHORTEST_FRACTION, _ENOUGH, _ROUNDING = 2.0**-40, 1e-4, 1e-14


class Shares(NamedTuple):
    share: np.ndarray  # (K,), sums to 1
    gap: float  # the log-likelihood is below its maximum by no more than this
    converged: bool


def moved(proba: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """p_k new_k / old_k of rows (n, K), divided by their sums; where these are 0, it is `new`."""
    product = proba * (new / old)
    total = product.sum(axis=1, keepdims=True)
    return np.divide(product, total, out=np.tile(new, (len(proba), 1)), where=total > 0)


def likeliest_shares(density: np.ndarray, weight: np.ndarray, start: np.ndarray) -> Shares:
    """The x (K,) with sum 1 that maximises ℓ(x) = Σ_i w_i log Σ_k x_k d_ki for densities (K, n).

    The weights (n,) sum to 1; the start is positive with sum 1. Let D_k = Σ_i w_i d_ki / Σ_l x_l
    d_li. A step of EM replaces x_k by x_k D_k. At the maximum D_k ≤ 1, with equality where x_k > 0,
    and elsewhere max_k D_k − 1 bounds both the distance to the maximum and what EM would change.

    As EM needs thousands of steps where the classes overlap, the steps here are Newton's for ℓ(x) −
    (Σ_k x_k)²/2, whose maximum over x ≥ 0 sums to 1 by itself. O(nK²) a step.
    """
    x, gap = start, np.inf
    for _ in range(_MOST_STEPS):
        ratio = density / (x @ density)
        slope = (weight * ratio).sum(axis=1)  # D, more exact than a product with the weights
        last, gap = gap, max(float(slope.max()) - 1, 0.0)
        if gap <= _LEAST_GAP or (gap <= _GAP and gap > last / 2):
            return Shares(x, gap, True)
        ratio *= np.sqrt(weight)
        # the second derivatives of ℓ take x to −D, those of the sum take it to −1
        goal = nonnegative_minimum(1 + ratio @ ratio.T, 2 * slope, x)
        x = _further(density, weight, x, goal - x, float((slope - 1) @ (goal - x)), x * slope)
    return Shares(x, gap, gap <= _GAP)


def _further(
    density: np.ndarray,
    weight: np.ndarray,
    x: np.ndarray,
    step: np.ndarray,
    promise: float,
    otherwise: np.ndarray,
) -> np.ndarray:
    """The first of x + step, x + step/2, … that raises ℓ enough; `otherwise` if none does."""
    value = weight @ np.log(x @ density)
    fraction = 1.0
    while fraction >= _SHORTEST_FRACTION:
        new = x + fraction * step
        new /= new.sum()
        mixed = new @ density
        if mixed.min() > 0:
            gain = weight @ np.log(mixed) - value
            if gain >= _ENOUGH * fraction * promise - _ROUNDING * (1 + abs(value)):
                return new
        fraction /= 2
    return otherwise


def nonnegative_minimum(matrix: np.ndarray, pull: np.ndarray, start: np.ndarray) -> np.ndarray:
    """argmin over z ≥ 0 of zᵀMz/2 − pullᵀz, from a start z ≥ 0, for a semidefinite matrix M (K, K).

    The method of Lawson and Hanson (1974): a variable that would become negative is held at 0, and
    let go as long as that lowers the minimum.
    """
    ridge = _RIDGE / np.maximum(start, _SMALL_SHARE)
    matrix, pull = matrix + np.diag(ridge), pull + ridge * start
    z, free = start.copy(), start > 0
    for _ in range(3 * len(z) + 1):
        goal = np.zeros_like(z)
        goal[free] = np.linalg.solve(matrix[np.ix_(free, free)], pull[free])
        negative = goal < 0
        if negative.any():
            reach = np.min(z[negative] / (z[negative] - goal[negative]))
            z = np.maximum(z + reach * (goal - z), 0.0)
            z[negative & (z <= _LEAST_GAP)] = 0.0
            free &= z > 0
            continue
        z = goal
        rise = np.where(free, -np.inf, pull - matrix @ z)
        if rise.max() <= _LEAST_GAP:
            break
        free[np.argmax(rise)] = True
    return z
