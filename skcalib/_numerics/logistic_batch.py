"""Logistic regressions of many vectors of labels on one feature.

The feature x (n,) is ascending, the weights (n,) sum to 1, and labels (R, n) are 0 or 1.
"""

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import expit, log_expit, logit, xlogy

from .logistic import MAX_NEWTON_STEP, logistic_fit

# Newton's method ends after a step that promises less than this fraction of one sample's weight:
# the fraction is squared by the step.
_SAMPLE_GAIN_RTOL = 1e-12

_MAX_BATCH_STEPS = 30
_MAX_HALVINGS = 8

# Second derivatives are singular if less than this fraction of their determinant is left.
_DETERMINANT_RTOL = 1e-10

# A curve reaches this many standard deviations of the best positions from 0. For fewer samples it
# bends too much there. It is interpolated at a square of nodes; their number is the first one
# for which its highest coefficients are below `_CURVE_GAIN_RTOL` times the expected gain.
_CURVE_REACH, _MIN_CURVE_SAMPLES = 5.0, 1000
_CURVE_NODES, _CURVE_GAIN_RTOL = (10, 14, 18, 24), 1e-10

# The last step of Newton's method on a curve is shorter than this part of its reach; its square,
# which is what is left, is rounding.
_CURVE_STEP_ATOL = 1e-7

_MAX_BISECTIONS = 100
_INTERCEPT_RTOL = 1e-13


def likelihood_gains(
    x: np.ndarray, labels: np.ndarray, weight: np.ndarray, curve: "LikelihoodCurve | None" = None
) -> np.ndarray:
    """Log-likelihood of the best log-odds a + bx, or its supremum, less that of x itself, (R,).

    With a `curve` of the same x and weights, Newton's method need not go through all samples.
    """
    gain = np.empty(len(labels))
    separated, threshold = _find_separation(x, labels)
    apart, overlapping = np.flatnonzero(separated), np.flatnonzero(~separated)
    alone = labels[apart]
    null = alone @ (weight * log_expit(x)) + (1 - alone) @ (weight * log_expit(-x))
    # all separated labels are certain but those at the threshold
    mass = np.where(x == threshold[apart, None], weight, 0.0)
    total, positive = mass.sum(axis=1), np.sum(mass * alone, axis=1)
    negative = np.sum(mass * (1 - alone), axis=1)
    gain[apart] = xlogy(positive, positive / total) + xlogy(negative, negative / total) - null
    if curve is not None and len(overlapping):
        mixed = labels[overlapping] if len(apart) else labels
        gain[overlapping], is_inside = curve.gains(mixed)
        overlapping = overlapping[~is_inside]
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
        step = np.abs(further - a[rows])
        goes_on = (step > _INTERCEPT_RTOL * (1 + np.abs(further))) & (lack != 0)
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
    varies = (labels.min(axis=1) < labels.max(axis=1)) & (x[0] < x[-1])
    rows = np.flatnonzero(varies & (share > 0) & (share < 1))
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


class LikelihoodCurve:
    """The part of the log-likelihood that all vectors of labels share, as a polynomial.

    At log-odds x + α + βz, with z as in `_newton_gains`, the gain of labels y is linear in the
    residuals of y, less A(α, β) = Σ w (log(1 + e^(x + α + βz)) − log(1 + e^x) − q(α + βz)), where q
    are the probabilities. A is interpolated at Chebyshev nodes in the coordinates u in which the
    best positions of labels drawn from q are nearly standard normal.
    """

    def __init__(self, x: np.ndarray, weight: np.ndarray, root: np.ndarray) -> None:
        self.proba, self.root = expit(x), root
        self.x, self.weight, self.powers = x, weight, _standardized_powers(x, weight)
        self.expected = self.powers @ (weight * self.proba)
        self.surface = np.zeros((1, 1))

    @classmethod
    def make(cls, x: np.ndarray, weight: np.ndarray) -> "LikelihoodCurve | None":
        """Return the curve; None for few samples, or if no polynomial is close enough to it."""
        if len(x) < _MIN_CURVE_SAMPLES or x[0] == x[-1]:
            return None
        proba, powers = expit(x), _standardized_powers(x, weight)
        spread = weight * proba * (1 - proba) * powers  # (2, n)
        information, covariance = spread @ powers.T, (weight * spread) @ powers.T
        try:
            root = np.linalg.cholesky(covariance)
            curve = cls(x, weight, _CURVE_REACH * np.linalg.solve(information, root))
        except np.linalg.LinAlgError:
            return None
        expected_gain = float(np.trace(np.linalg.solve(information, covariance))) / 2
        for n_nodes in _CURVE_NODES:
            if curve._interpolate(n_nodes) <= _CURVE_GAIN_RTOL * expected_gain:
                return curve
        return None

    def _interpolate(self, n_nodes: int) -> float:
        """Set the coefficients of A in u/reach; return the sum of those of the highest degrees."""
        nodes = np.cos(np.pi * (np.arange(n_nodes) + 0.5) / n_nodes)
        shared, values = _softplus(self.x), np.empty((n_nodes, n_nodes))
        for i, j in np.ndindex(values.shape):
            shift = self.root @ [nodes[i], nodes[j]] @ self.powers
            rise = _softplus(self.x + shift) - shared
            values[i, j] = self.weight @ (rise - self.proba * shift)
        transform = chebyshev.chebvander(nodes, n_nodes - 1).T * (2 / n_nodes)
        transform[0] /= 2
        self.surface = transform @ values @ transform.T
        return float(np.abs(self.surface[-2:]).sum() + np.abs(self.surface[:, -2:]).sum())

    def gains(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gains (R,) of labels (R, n), and True where the best position is on the curve."""
        slope = (labels @ (self.weight * self.powers).T - self.expected) @ self.root  # (R, 2)
        position, is_done = np.zeros_like(slope), np.zeros(len(slope), dtype=bool)
        for _ in range(_MAX_BATCH_STEPS):
            value, gradient, curvature = self._evaluate(position)
            step, is_regular = _newton_steps(slope - gradient, curvature)
            position = np.clip(position + step, -1.0, 1.0)
            is_done = is_regular & (np.abs(step).max(axis=1) < _CURVE_STEP_ATOL)
            if is_done.all():
                break
        value = self._evaluate(position)[0]
        is_inside = is_done & (np.abs(position).max(axis=1) < 1)
        return np.sum(slope * position, axis=1) - value, is_inside

    def _evaluate(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A at positions (R, 2), with its first (R, 2) and second derivatives (R, 3)."""
        degree = len(self.surface) - 1
        basis = [chebyshev.chebvander(column, degree) for column in position.T]

        def derivative(i: int, j: int) -> np.ndarray:
            surface = chebyshev.chebder(chebyshev.chebder(self.surface, i, axis=0), j, axis=1)
            first, second = (b[:, :k] for b, k in zip(basis, surface.shape, strict=True))
            return np.einsum("rj,rj->r", first @ surface, second)

        gradient = np.stack([derivative(1, 0), derivative(0, 1)], axis=1)
        curvature = np.stack([derivative(2, 0), derivative(1, 1), derivative(0, 2)], axis=1)
        return derivative(0, 0), gradient, curvature


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _standardized_powers(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """1 and the standardized z, (2, n)."""
    z = x - weight @ x
    return np.stack([np.ones_like(z), z / np.sqrt(weight @ z**2)])


def _newton_gains(x: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """`likelihood_gains` by Newton's method in (α, β): log-odds x + α + βz, standardized z."""
    ones, z = _standardized_powers(x, weight)
    powers = weight[:, None] * np.stack([ones, z, z**2], axis=1)  # (n, 3)
    target = labels @ powers[:, :2]
    last_gain = _SAMPLE_GAIN_RTOL * float(weight @ weight)
    position, converged = _maximize(x, z, powers, target, last_gain)
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
    by_level, by_slope = gradient.T
    solution = np.column_stack(
        [slope * by_level - cross * by_slope, level * by_slope - cross * by_level]
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
