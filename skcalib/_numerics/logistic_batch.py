"""Logistic regressions of many vectors of labels on one feature.

The feature x (n,) is ascending, the weights (n,) sum to 1, and labels (R, n) are 0 or 1.
"""

import numpy as np
from scipy.special import expit, log_expit, logit, xlogy

from .logistic import MAX_NEWTON_STEP, logistic_fit

# Newton's method ends after a step that promises less than this fraction of one sample's weight:
# the fraction is squared by the step.
_SAMPLE_GAIN_RTOL = 1e-12

_MAX_BATCH_STEPS = 30
_MAX_HALVINGS = 8

# Second derivatives are singular if less than this fraction of their determinant is left.
_DETERMINANT_RTOL = 1e-10

_MAX_BISECTIONS = 100
_INTERCEPT_RTOL = 1e-13


def likelihood_gains(x: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Log-likelihood of the best log-odds a + bx, or its supremum, less that of x itself, (R,)."""
    gain = np.empty(len(labels))
    separated, threshold = _find_separation(x, labels)
    apart, overlapping = np.flatnonzero(separated), np.flatnonzero(~separated)
    alone = labels[apart]
    null = alone @ (weight * log_expit(x)) + (1 - alone) @ (weight * log_expit(-x))
    gain[apart] = _supremum_of_separated(x, alone, weight, threshold[apart]) - null
    if len(overlapping):
        gain[overlapping] = _newton_gains(x, labels[overlapping], weight)
    return gain


def intercepts(x: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The best a (R,) for log-odds a + x, if either label occurs.

    Newton's method, replaced by bisection where it would leave the bounds. It sums residuals, not
    frequencies, so that every digit is kept where all are almost 0.
    """
    target = np.sum(labels * weight, axis=1)
    low, high = logit(target) - x[-1], logit(target) - x[0]
    a = np.clip(0.0, low, high)
    rows = np.arange(len(a))
    for _ in range(_MAX_BISECTIONS):
        residual, spread = _residuals(a[rows, None] + x, labels[rows])
        lack = np.sum(weight * residual, axis=1)
        low[rows] = np.where(lack > 0, a[rows], low[rows])
        high[rows] = np.where(lack < 0, a[rows], high[rows])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            further = a[rows] + lack / (spread @ weight)
        inside = (further >= low[rows]) & (further <= high[rows])
        further = np.where(inside, further, (low[rows] + high[rows]) / 2)
        goes_on = (np.abs(further - a[rows]) > _INTERCEPT_RTOL * (1 + np.abs(further))) & (
            lack != 0
        )
        a[rows] = np.where(lack == 0, a[rows], further)
        rows = rows[goes_on]
        if not len(rows):
            break
    return a


def _residuals(log_odds: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """y − q and q(1 − q), with every digit where q is almost y."""
    sign = 2.0 * labels - 1
    miss = expit(-sign * log_odds)
    return sign * miss, miss * expit(sign * log_odds)


def slope_scores(x: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Rao's score of the slope b at a + bx for b = 1 and the best a, in standard deviations, (R,).

    It is 0 where all x or all labels are equal, so that the slope is not determined.
    """
    score = np.zeros(len(labels))
    share = labels @ weight
    rows = np.flatnonzero(
        (labels.min(axis=1) < labels.max(axis=1)) & (share > 0) & (share < 1) & (x[0] < x[-1])
    )
    if not len(rows):
        return score
    mixed = labels[rows]
    a = intercepts(x, mixed, weight)[:, None]
    residual, spread = _residuals(a + x, mixed)  # (r, n)
    z = x - weight @ x  # keeps every digit if all x are nearly equal
    mass = weight * spread
    scale = z - np.sum(mass * z, axis=1, keepdims=True) / mass.sum(axis=1, keepdims=True)
    scale *= weight
    gap, variance = np.sum(residual * scale, axis=1), np.sum(scale**2 * spread, axis=1)
    score[rows] = np.divide(gap, np.sqrt(variance), out=np.zeros(len(rows)), where=variance > 0)
    return score


def _find_separation(x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """True where labels are equal, or separated by a threshold but for ties; and the thresholds."""
    n = labels.shape[1]
    positive = labels == 1
    first, last = [], []
    for outcome in (positive, ~positive):
        first.append(x[outcome.argmax(axis=1)])
        last.append(x[n - 1 - outcome[:, ::-1].argmax(axis=1)])
    ascending = last[1] <= first[0]
    alike = positive.all(axis=1) | ~positive.any(axis=1)
    threshold = np.where(ascending, first[0], first[1])
    return alike | ascending | (last[0] <= first[1]), threshold


def _supremum_of_separated(
    x: np.ndarray, labels: np.ndarray, weight: np.ndarray, threshold: np.ndarray
) -> np.ndarray:
    """The supremum for separated labels: all are certain but those at the threshold."""
    mass = np.where(x == threshold[:, None], weight, 0.0)
    total = mass.sum(axis=1)
    positive = np.sum(mass * labels, axis=1)
    negative = np.sum(mass * (1 - labels), axis=1)
    return xlogy(positive, positive / total) + xlogy(negative, negative / total)


def _newton_gains(x: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """`likelihood_gains` by Newton's method in (α, β): log-odds x + α + βz, standardized z."""
    z = x - weight @ x
    z /= np.sqrt(weight @ z**2)
    powers = weight[:, None] * np.stack([np.ones_like(z), z, z**2], axis=1)  # (n, 3)
    target = labels @ powers[:, :2]
    position, converged = _maximize(
        x, z, powers, target, _SAMPLE_GAIN_RTOL * float(weight @ weight)
    )
    log_odds = x + position[:, :1] + position[:, 1:] * z
    gain = np.sum(position * target, axis=1)
    gain += (log_expit(-log_odds) - log_expit(-x)) @ weight
    for row in np.flatnonzero(~converged):
        gain[row] = _single_gain(x, z, labels[row], weight)
    return gain


def _maximize(
    x: np.ndarray, z: np.ndarray, powers: np.ndarray, target: np.ndarray, last_gain: float
) -> tuple[np.ndarray, np.ndarray]:
    """The maxima (R, 2), and True where they have been reached. Too long steps are halved."""

    def derivatives(rows: np.ndarray, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        fitted = expit(x + position[:, :1] + position[:, 1:] * z)
        gradient = target[rows] - fitted @ powers[:, :2]
        return gradient, (fitted * (1 - fitted)) @ powers

    position, converged = np.zeros_like(target), np.zeros(len(target), dtype=bool)
    rows = np.arange(len(target))
    gradient, curvature = derivatives(rows, position)
    for _ in range(_MAX_BATCH_STEPS):
        step, regular = _newton_steps(gradient, curvature)
        is_last = np.sum(step * gradient, axis=1) <= last_gain
        size = np.sum(gradient**2, axis=1)
        here, length = position[rows], np.ones(len(rows))
        there = here + step
        gradient, curvature = derivatives(rows, there)
        for _ in range(_MAX_HALVINGS):
            too_far = np.sum(gradient**2, axis=1) > (1 - length / 4) ** 2 * size
            again = np.flatnonzero(too_far & ~is_last & regular)
            if not len(again):
                break
            length[again] /= 2
            there[again] = here[again] + length[again, None] * step[again]
            gradient[again], curvature[again] = derivatives(rows[again], there[again])
        position[rows] = there
        converged[rows] = is_last & regular
        goes_on = regular & ~is_last
        rows, gradient, curvature = rows[goes_on], gradient[goes_on], curvature[goes_on]
        if not len(rows):
            break
    return position, converged


def _newton_steps(gradient: np.ndarray, curvature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Steps (R, 2), and True where the second derivatives (R, 3) are far enough from singular."""
    level, cross, slope = curvature.T
    determinant = level * slope - cross**2
    regular = determinant > _DETERMINANT_RTOL * level * slope
    solution = np.stack(
        [
            slope * gradient[:, 0] - cross * gradient[:, 1],
            level * gradient[:, 1] - cross * gradient[:, 0],
        ],
        axis=1,
    )
    step = np.zeros_like(gradient)
    np.divide(solution, determinant[:, None], out=step, where=regular[:, None])
    return step, regular & (np.abs(step).max(axis=1) <= MAX_NEWTON_STEP)


def _single_gain(x: np.ndarray, z: np.ndarray, label: np.ndarray, weight: np.ndarray) -> float:
    """The gain of one vector of labels by `logistic_fit`, which is slower and more careful."""
    design = np.column_stack([np.ones_like(z), z])
    fit = logistic_fit(design, weight * np.stack([1 - label, label]), np.zeros(2))
    sign = 2 * label - 1
    return float(weight @ (log_expit(sign * (design @ fit.coefficients)) - log_expit(sign * x)))
