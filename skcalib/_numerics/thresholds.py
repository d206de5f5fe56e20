"""Scores of forecasts as integrals over thresholds: at each, an outcome exceeds it or not."""

import numpy as np
from scipy.optimize import isotonic_regression

# Up to this many distinct outcomes, or steps of forecasts, all of them are edges of cells.
_MOST_EDGES = 2048

# Probabilities that are the same differ by less than this share of themselves, and its square,
# depending on the order of summation. Outcomes far outside of forecasts have tiny probabilities,
# which differ by much less, and matter.
_ROUNDING = 1e-6

# Probabilities near 1 are rounded to doubles.
_LEAST_REST = 1e-9


def threshold_cells(
    points: np.ndarray, mass: np.ndarray, steps: np.ndarray, n_cells: int
) -> tuple[np.ndarray, np.ndarray]:
    """Midpoints and widths of cells between the least and the greatest outcome, (m,) each.

    Parameters: sorted distinct outcomes, and the weight of each; where the forecasts have steps.
    Half of the cells' edges follow the weight, and half are evenly spaced: no cell is wide, or
    holds much weight. Few outcomes and steps are edges themselves, so that nothing jumps within
    cells.
    """
    share = np.cumsum(mass) - mass / 2
    share = (share - share[0]) / (share[-1] - share[0])
    even = (points - points[0]) / (points[-1] - points[0])
    edges = np.interp(np.linspace(0, 1, n_cells + 1), (share + even) / 2, points)
    steps = np.unique(steps[(steps > points[0]) & (steps < points[-1])])
    jumps = [values for values in (points, steps) if len(values) <= _MOST_EDGES]
    edges = np.unique(np.concatenate([edges, *jumps]))
    return edges[:-1] + np.diff(edges) / 2, np.diff(edges)


def recalibrated_brier(proba: np.ndarray, event: np.ndarray, weight: np.ndarray) -> float:
    """The least weighted Brier score of all nondecreasing functions of the probability (n,).

    Probabilities that rounding may have made differ are tied. In a block of equal values v of the
    isotonic fit, v is the mean of the events, so that the score is that of v(1 − v).
    """
    order = np.argsort(proba)
    ordered = proba[order]
    size = np.minimum(ordered, np.maximum(1 - ordered, _LEAST_REST))[1:]
    is_new = np.diff(ordered) > _ROUNDING * np.minimum(size, _ROUNDING)
    start = np.flatnonzero(np.append(True, is_new))
    mass = np.add.reduceat(np.stack([weight, weight * event])[:, order], start, axis=1)
    value = np.clip(isotonic_regression(mass[1] / mass[0], weights=mass[0]).x, 0.0, 1.0)
    return float(mass[0] @ (value * (1 - value)))


def mean_half_distance(points: np.ndarray, mass: np.ndarray) -> float:
    """½ Σ_{i,j} w_i w_j |y_i − y_j| of sorted outcomes, the integral of F̂(1 − F̂)."""
    below = np.cumsum(mass)[:-1]
    above = np.cumsum(mass[::-1])[::-1][1:]
    return float((below * above) @ np.diff(points))
