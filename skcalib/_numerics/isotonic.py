"""Isotonic regression of outcomes on predictions."""

import numpy as np
from scipy.optimize import isotonic_regression

from .sorting import pool_ties


def isotonic_fit(
    points: np.ndarray, outcomes: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Least squares over nondecreasing functions: sorted knots (m,) and values (m,) in [0, 1].

    Tied points are pooled first; inside a block of equal values only its two ends are kept, so
    that linear interpolation between knots is the fit at every point. Pool adjacent violators, O(n
    log n).
    """
    knots, (weight, sums) = pool_ties(points, np.stack([weights, weights * outcomes]))
    value = np.clip(isotonic_regression(sums / weight, weights=weight).x, 0.0, 1.0)
    is_end = np.ones(len(value), dtype=bool)
    is_end[1:-1] = (value[1:-1] != value[:-2]) | (value[1:-1] != value[2:])
    return knots[is_end], value[is_end]
