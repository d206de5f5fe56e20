"""Isotonic regression of outcomes on predictions."""

import numpy as np
from scipy.optimize import isotonic_regression

from .sorting import first_of_ties, last_of_runs, last_of_ties, pool_ties

# Equal means of outcomes differ by less than this, depending on the order of summation.
_ROUNDING = 1e-12


def isotonic_fit(
    points: np.ndarray, outcomes: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Least squares over nondecreasing functions: sorted knots (m,) and values (m,) in [0, 1].

    Tied points are pooled first; inside a block of equal values only its two ends are kept, so
    that linear interpolation between knots is the fit at every point. Pool adjacent violators, O(n
    log n).
    """
    return isotonic_knots(*pool_ties(points, weights * np.stack([1 - outcomes, outcomes])))


def isotonic_knots(points: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`isotonic_fit` of sorted distinct points (m,), given the weight of each label (2, m)."""
    total = weight.sum(axis=0)
    value = np.clip(isotonic_regression(weight[1] / total, weights=total).x, 0.0, 1.0)
    is_end = first_of_ties(value) | last_of_ties(value)
    return points[is_end], value[is_end]


def centred_isotonic_knots(
    points: np.ndarray, weight: np.ndarray, extra: float
) -> tuple[np.ndarray, np.ndarray]:
    """The strictly increasing variant of `isotonic_knots`: knots from 0 to 1, values in (0, 1).

    The data are fitted together with two samples of weight `extra`: a 1 before all of them and a 0
    behind them. A block of equal values becomes one knot at its mean point (Oron and Flournoy
    2017); at 0 the value is half of the first one, at 1 the mean of the last one and 1.
    """
    total = weight.sum(axis=0)
    rate = np.concatenate([[1.0], weight[1] / total, [0.0]])
    fit = isotonic_regression(rate, weights=np.concatenate([[extra], total, [extra]])).x
    rises = np.diff(fit[1:-1]) > _ROUNDING  # no block holds an extra sample alone
    start = np.flatnonzero(np.append(True, rises))
    last = last_of_runs(start, len(points))
    value = fit[1:-1][start]
    centre = np.add.reduceat(total * points, start) / np.add.reduceat(total, start)
    centre = np.clip(centre, points[start], points[last])  # rounding must not exchange two
    if centre[0] > 0:
        centre, value = np.insert(centre, 0, 0.0), np.insert(value, 0, value[0] / 2)
    if centre[-1] < 1:
        centre, value = np.append(centre, 1.0), np.append(value, (1 + value[-1]) / 2)
    return centre, value
