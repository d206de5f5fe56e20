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
_NUMBERS_OF_NODES, _WEIGHT_ATOL = (12, 24, 48, 96, 192), 1e-6

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
    prior = np.exp(-((_FINE_BETWEEN / scale) ** 2) / 2) * np.gradient(_FINE_BETWEEN)
    if total[[0, -1]].max() > total.max() - 1:
        return np.full(6, np.nan)
    pieces = CubicSpline(grid, log_likelihood).c  # (4, G − 1, k)
    for n_nodes in _NUMBERS_OF_NODES:
        columns = maximize_over_mean(grid, pieces, grid[np.argmax(total)], n_nodes)
        spline = CubicSpline(np.log(_BETWEEN), columns, axis=1)
        mean, log_variance, likelihood = spline(np.log(_FINE_BETWEEN))
        restricted = likelihood + log_variance / 2
        weight = np.exp(restricted - restricted.max()) * prior
        weight /= weight.sum()
        if np.max(np.abs(weight - before)) < _WEIGHT_ATOL:
            break
        before = weight
    else:
        return np.full(6, np.nan)
    best = int(np.argmax(restricted))
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


def maximize_over_mean(
    grid: np.ndarray, pieces: np.ndarray, center: float, n_nodes: int
) -> np.ndarray:
    """For each τ (T,) the likeliest mean, the logarithm of its variance, and of the likelihood.

    In the integral of a site over z, with the value μ + τ z, the Gauss–Hermite nodes are around the
    mode, and as wide as the curvature there says.
    """
    between, columns = _BETWEEN[:, None, None], np.arange(pieces.shape[2])[:, None]

    def evaluate(value: np.ndarray) -> tuple[np.ndarray, ...]:  # and the first two derivatives
        value = np.clip(value, grid[0], grid[-1])
        piece = np.clip(np.searchsorted(grid, value, "right") - 1, 0, len(grid) - 2)
        (a, b, c, d), x = pieces[:, piece, columns], value - grid[piece]
        return d + x * (c + x * (b + x * a)), c + x * (2 * b + 3 * a * x), 2 * b + 6 * a * x

    node, weight = np.polynomial.hermite.hermgauss(n_nodes)
    mean, mode = np.full(between.shape, center), np.zeros((len(between), len(columns), 1))
    for _ in range(_MAX_STEPS):
        _, slope, curvature = evaluate(mean + between * mode)
        precision = 1 - np.minimum(between**2 * curvature, 0.0)
        reach = 3 + np.abs(mode)
        mode_step = np.clip((between * slope - mode) / precision, -reach, reach)
        mode += mode_step
        z = mode + np.sqrt(2 / precision) * node  # (T, k, N)
        log_term = evaluate(mean + between * z)[0] - z**2 / 2 + (node**2 + np.log(weight))
        largest = log_term.max(axis=2, keepdims=True)
        term = np.exp(log_term - largest)
        total = term.sum(axis=2, keepdims=True)
        first, second = (np.sum(term / total * z**k, axis=2, keepdims=True) for k in (1, 2))
        information = np.sum(1 - (second - first**2), axis=1, keepdims=True) / between**2
        step = np.clip(np.sum(first, axis=1, keepdims=True) / between / information, -1, 1)
        if max(np.abs(step).max(), np.abs(mode_step).max()) < _STEP_ATOL:
            break
        mean += step
    likelihood = np.sum(np.log(total) + largest - np.log(np.pi * precision) / 2, axis=1)
    return np.stack([mean[:, 0, 0], -np.log(information[:, 0, 0]), likelihood[:, 0]])


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
