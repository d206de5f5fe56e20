"""Isotonic regression of outcomes on predictions."""

import numpy as np
from scipy.optimize import isotonic_regression

from .sorting import cumulate, first_of_ties, last_of_runs, last_of_ties

# Equal means of outcomes differ by less than this, as sums are rounded.
_MEAN_ATOL = 1e-12

# A step function: sorted knots (r,), and values (r,).
StepFunction = tuple[np.ndarray, np.ndarray]


def isotonic_knots(points: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least squares over nondecreasing functions: sorted knots (r,) and values (r,) in [0, 1].

    The points (m,) are sorted and distinct, with the weight of each label (2, m). Inside a block of
    equal values only its two ends are kept, so that linear interpolation between knots is the fit
    at every point.
    """
    total = weight.sum(axis=0)
    value = np.clip(isotonic_regression(weight[1] / total, weights=total).x, 0.0, 1.0)
    is_end = first_of_ties(value) | last_of_ties(value)
    return points[is_end], value[is_end]


def strictly_isotonic_knots(
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
    rises = np.diff(fit[1:-1]) > _MEAN_ATOL  # no block holds an extra sample alone
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


def venn_abers_fit(
    points: np.ndarray, weight: np.ndarray, extra: float
) -> tuple[StepFunction, StepFunction]:
    """Isotonic fits at a query that joins the data with weight `extra`, once with label 0, then 1.

    Takes sorted distinct points (m,) and the weight of each label (2, m). A further 0 behind a
    point is pooled with that point, and a further 1 before a point with that one. So the fit with
    label 0 is a step function of the query, continuous from the right: a value holds from its knot
    on. The fit with label 1 is continuous from the left: a value holds up to its knot.
    """
    lower = 1 - _fit_with_extra_positive(weight[::-1, ::-1], extra)[::-1]
    upper = _fit_with_extra_positive(weight, extra)
    is_start = first_of_ties(lower)
    is_end = last_of_ties(upper)
    return (points[is_start], lower[is_start]), (points[is_end], upper[is_end])


def venn_abers_bounds(query: np.ndarray, lower: StepFunction, upper: StepFunction) -> np.ndarray:
    """The two fits at each query, (n, 2).

    A query with label 0 before all points stands alone, with the fit 0; so does one with label 1
    behind them, with the fit 1.
    """
    below = np.searchsorted(lower[0], query, side="right")
    above = np.searchsorted(upper[0], query, side="left")
    low, high = np.append(0.0, lower[1]), np.append(upper[1], 1.0)
    return np.column_stack([low[below], high[above]])


def _fit_with_extra_positive(weight: np.ndarray, extra: float) -> np.ndarray:
    """The isotonic fit at each of m points if a further 1 of weight `extra` is added to it, (m,).

    In the diagram of cumulated weight and cumulated positives, P_0, …, P_m, the sample moves P_j,
    …, P_m by (extra, extra). Equivalently, it moves P_0, …, P_{j−1} by as much the other way, to
    Q_0, …, Q_{j−1}. The fit is the slope of the line that supports both parts from below. As j
    grows, its ends only move to the right: the left one to a Q below the line, the right one along
    the corners of the convex minorant of Q_0, P_1, …, P_m. O(m), as Algorithms 1 and 2 of Vovk,
    Petej and Fedorova (2015).
    """
    total = weight.sum(axis=0)
    rate = np.append(1.0, weight[1] / total)
    pooled = isotonic_regression(rate, weights=np.append(extra, total)).x
    corners = np.flatnonzero(last_of_ties(pooled))[::-1].tolist()  # the leftmost is last
    x, y = (cumulate(weights).tolist() for weights in (total, weight[1]))

    def slope_to(corner: int) -> float:
        return (y[corner] - left_y) / (x[corner] - left_x)

    left_x = left_y = -extra
    right = corners.pop()
    slope = slope_to(right)
    fit = np.empty(len(total))
    for j in range(1, len(x)):
        fit[j - 1] = slope
        q_x, q_y = x[j] - extra, y[j] - extra
        if j < right and q_y >= left_y + slope * (q_x - left_x):
            continue
        left_x, left_y = q_x, q_y
        if j == right and corners:
            right = corners.pop()
        slope = slope_to(right)
        while corners and slope_to(corners[-1]) <= slope:
            right = corners.pop()
            slope = slope_to(right)
    return np.maximum.accumulate(np.clip(fit, 0.0, 1.0))  # rounding must not exchange two
