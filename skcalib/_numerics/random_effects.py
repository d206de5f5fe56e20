"""Random effects of sites: the mean of a measure, and how much sites differ, from likelihoods."""

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from .vasicek import bisect

# Standard deviations τ between sites at which the likelihood is computed, and between which it is
# interpolated. Below the first, sites differ by nothing.
_BETWEEN, _FINE_BETWEEN = np.geomspace(1e-3, 4, 60), np.geomspace(1e-3, 4, 3000)

# Nodes of the integral of a site: twice as many each time, until no weight of a τ changes by more
# than the tolerance.
_NUMBERS_OF_NODES, _WEIGHT_ATOL = (12, 24, 48, 96, 192), 1e-4

_MAX_STEPS, _STEP_ATOL = 100, 1e-7


def fit_random_effects(
    grid: np.ndarray, log_likelihood: np.ndarray, scale: float, tail: float
) -> np.ndarray:
    """Fit N(μ, τ²) to the values of k > 1 sites, of which concave log-likelihoods (G, k) are known.

    Returns (6,): the mean, the ends of its interval and of that of a new site, and τ. The
    likelihood of (μ, τ) is a product of one integral for each site. Restricted to τ, it is
    integrated over μ by Laplace's method. The estimates are where it is largest; the intervals are
    averages over τ, times the density of a half-normal distribution of this scale. All are NaN if
    the likelihood has no maximum, or the integrals do not converge.
    """
    total, before = log_likelihood.sum(axis=1), np.inf
    if total[[0, -1]].max() > total.max() - 1:
        return np.full(6, np.nan)
    sites = _Sites(grid, log_likelihood)
    for n_nodes in _NUMBERS_OF_NODES:
        columns = sites.maximize(grid[np.argmax(total)], n_nodes)
        spline = CubicSpline(np.log(_BETWEEN), columns, axis=1)
        mean, log_variance, likelihood = spline(np.log(_FINE_BETWEEN))
        restricted = likelihood + log_variance / 2
        weight = np.exp(restricted - restricted.max())
        if np.max(np.abs(weight - before)) < _WEIGHT_ATOL:
            break
        before = weight
    else:
        return np.full(6, np.nan)
    best = int(np.argmax(weight))
    weight *= np.exp(-((_FINE_BETWEEN / scale) ** 2) / 2) * np.gradient(_FINE_BETWEEN)
    weight /= weight.sum()
    deviation = np.exp(log_variance / 2)
    reach = np.abs(mean).max() + 40 * (deviation.max() + _BETWEEN[-1])

    def excess(x: float, spread: np.ndarray, share: float) -> float:
        return float(weight @ ndtr((x - mean) / spread)) - share

    ends = [
        brentq(excess, -reach, reach, args=(spread, share))
        for spread in (deviation, np.hypot(deviation, _FINE_BETWEEN))
        for share in (tail, 1 - tail)
    ]
    return np.array([mean[best], *ends, _FINE_BETWEEN[best] if best else 0.0])


class _Sites:
    """Log-likelihoods of k sites, as splines, and the likelihood of the mean for each τ (T,)."""

    def __init__(self, grid: np.ndarray, log_likelihood: np.ndarray) -> None:
        self.grid, self.pieces = grid, CubicSpline(grid, log_likelihood).c  # (4, G − 1, k)
        self.mode = np.zeros((len(_BETWEEN), log_likelihood.shape[1], 1))

    def evaluate(self, value: np.ndarray) -> tuple[np.ndarray, ...]:
        """The log-likelihoods at values (T, k, N), and their first and second derivatives."""
        value = np.clip(value, self.grid[0], self.grid[-1])
        piece = np.clip(np.searchsorted(self.grid, value, "right") - 1, 0, len(self.grid) - 2)
        a, b, c, d = self.pieces[:, piece, np.arange(value.shape[1])[:, None]]
        x = value - self.grid[piece]
        return d + x * (c + x * (b + x * a)), c + x * (2 * b + 3 * a * x), 2 * b + 6 * a * x

    def integrate(self, mean: np.ndarray, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
        """Nodes z (T, k, N) of sites with the value μ + τ z, and the logarithms of their terms.

        Gauss–Hermite nodes around the mode, as wide as the curvature there says.
        """
        mean, between = mean[:, None, None], _BETWEEN[:, None, None]
        for _ in range(_MAX_STEPS):
            _, slope, curvature = self.evaluate(mean + between * self.mode)
            precision = 1 - np.minimum(between**2 * curvature, 0.0)
            step = np.clip((between * slope - self.mode) / precision, -3, 3)
            self.mode = self.mode + step
            if np.abs(step).max() < _STEP_ATOL:
                break
        node, weight = np.polynomial.hermite.hermgauss(n_nodes)
        z = self.mode + np.sqrt(2 / precision) * node
        density = (node**2 + np.log(weight)) - np.log(np.pi * precision) / 2
        return z, self.evaluate(mean + between * z)[0] - z**2 / 2 + density

    def maximize(self, center: float, n_nodes: int) -> np.ndarray:
        """For each τ the likeliest mean, the logarithm of its variance, and of the likelihood."""
        mean = np.full(len(_BETWEEN), center)
        for _ in range(_MAX_STEPS):
            z, log_term = self.integrate(mean, n_nodes)
            largest = log_term.max(axis=2, keepdims=True)
            term = np.exp(log_term - largest)
            total = term.sum(axis=2, keepdims=True)
            first, second = (np.sum(term / total * z**k, axis=2) for k in (1, 2))
            slope = first.sum(axis=1) / _BETWEEN
            curvature = np.sum(1 - (second - first**2), axis=1) / _BETWEEN**2
            step = np.clip(slope / curvature, -1, 1)
            mean = mean + step
            if np.abs(step).max() < _STEP_ATOL:
                break
        log_integral = np.sum(np.log(total) + largest, axis=(1, 2))
        return np.stack([mean, -np.log(curvature), log_integral])


def conditional_log_likelihood(
    slope: np.ndarray, logits: np.ndarray, label: np.ndarray
) -> np.ndarray:
    """Log-likelihoods of slopes (G,) for log-odds and labels (n,), given the number of events.

    It holds whatever the intercept is: it is computed at the one with as many expected events as
    there are.
    """
    if 2 * label.sum() > len(label):
        logits, label = -logits, 1 - label
    n_events = int(label.sum())
    if n_events == 0:
        return np.zeros(len(slope))
    scores = np.outer(logits - logits.mean(), slope)  # (n, G)
    bound = np.abs(scores).max(axis=0) + np.log(len(label)) + 1
    scores += bisect(lambda x: expit(scores + x).sum(axis=0) < n_events, -bound, bound)
    probability = np.zeros((n_events + 1, len(slope)))  # of numbers of events
    probability[0] = 1.0
    for proba in expit(scores):
        probability[1:] += proba * (probability[:-1] - probability[1:])
        probability[0] *= 1 - proba
    return label @ scores - np.logaddexp(0, scores).sum(axis=0) - np.log(probability[-1])
