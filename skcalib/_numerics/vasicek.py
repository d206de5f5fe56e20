"""Number of events whose probabilities follow one normal factor: Vasicek's one-factor model."""

from collections.abc import Callable

import numpy as np
from scipy.special import betaln, log_ndtr, logsumexp, ndtr, ndtri
from scipy.stats import beta

# Φ of a larger number is 1, and of its negative next to the smallest double.
_MAX_THRESHOLD = 40.0

# Densities that are smaller by the factor exp(−50) than the largest one do not count.
_LOG_RANGE = 50.0

_MIN_NODES = 400

# Rows whose nodes are computed at once.
_BLOCK_SIZE = 1000

# A factor is larger with the probability 1e-19; and the most numbers that are computed at once.
_MAX_FACTOR, _MAX_ENTRIES = 9.0, 2**20

# The absolute error of 1 less a sum of probabilities.
_MIN_SUM_TAIL = 1e-10

_LOG_NORMALIZER = np.log(2 * np.pi) / 2


def log_tail(
    n: np.ndarray, events: np.ndarray, threshold: np.ndarray, correlation: float
) -> np.ndarray:
    """log P(D ≥ d) of n samples with events of probability Φ((c − √ρ Z) / √(1 − ρ)) given Z.

    All arrays are (m,), the thresholds c may be infinite, and 0 < ρ < 1. Given Z, D ≥ d exactly if
    the d-th smallest of n uniform numbers, Φ(X), is at most this probability. Its distribution is
    Beta(d, n + 1 − d), so that P(D ≥ d) = E Φ((c − √(1 − ρ) X) / √ρ). The integrand over X is
    analytic and log-concave: the trapezoidal rule, between points where it has vanished, is exact
    up to rounding.
    """
    result = np.zeros(len(n))
    rows = np.flatnonzero(events > 0)
    for block in np.array_split(rows, max(1, len(rows) // _BLOCK_SIZE)):
        if len(block):
            bounded = np.clip(threshold[block], -_MAX_THRESHOLD, _MAX_THRESHOLD)
            _, log_weight = _nodes(n[block], events[block], bounded, correlation)
            result[block] = np.minimum(logsumexp(log_weight, axis=1), 0.0)
    return result


def sum_tails(
    sizes: np.ndarray, events: int, thresholds: np.ndarray, correlation: float
) -> tuple[float, float]:
    """P(D ≥ d) and P(D ≤ d) of the sum of numbers of events in periods, each with its own factor.

    Sizes and thresholds are (T,), as those of `log_tail`. Both are right to 1e-10.
    """
    total = np.ones(1)
    bounded = np.clip(thresholds, -_MAX_THRESHOLD, _MAX_THRESHOLD)
    for size, threshold in zip(sizes, bounded, strict=True):
        proba = _count_probabilities(int(size), min(events, int(size)), threshold, correlation)
        total = np.convolve(total, proba)[: events + 1]
    return max(1 - float(total[:events].sum()), _MIN_SUM_TAIL), min(float(total.sum()), 1.0)


def _count_probabilities(size: int, most: int, threshold: float, correlation: float) -> np.ndarray:
    """P(D = k) of so many samples, for k = 0, …, most.

    By the trapezoidal rule over Z, whose step is short for the largest count, given which Z varies
    by some 1 / (√(ρ / (1 − ρ)) √k).
    """
    count = np.arange(most + 1)
    slope = np.sqrt(correlation / (1 - correlation))
    nodes = np.linspace(-_MAX_FACTOR, _MAX_FACTOR, _MIN_NODES + int(60 * slope * np.sqrt(most)))
    log_weight = np.log(nodes[1] - nodes[0]) - _LOG_NORMALIZER - betaln(count + 1, size - count + 1)
    proba = np.zeros(most + 1)
    for block in np.array_split(nodes, 1 + len(nodes) * most // _MAX_ENTRIES):
        z = block[:, None]
        argument = threshold / np.sqrt(1 - correlation) - slope * z
        log_term = count * log_ndtr(argument) + (size - count) * log_ndtr(-argument) - z**2 / 2
        proba += np.exp(log_term + log_weight).sum(axis=0)
    return proba / (size + 1)


def log_likelihood(label_proba: np.ndarray, is_event: np.ndarray, correlation: float) -> float:
    """log P(labels) of samples with events of probability Φ((c − √ρ Z) / √(1 − ρ)) given Z.

    `label_proba` (n,) are the probabilities of what was seen, and 0 < ρ < 1. The integrand over Z
    is analytic and log-concave, as that of `log_tail`.
    """
    kinds = np.stack([label_proba, np.where(is_event, -1.0, 1.0)])
    (proba, sign), count = np.unique(kinds, axis=1, return_counts=True)
    threshold = np.clip(ndtri(proba), -_MAX_THRESHOLD, _MAX_THRESHOLD) / np.sqrt(1 - correlation)
    slope = sign * np.sqrt(correlation / (1 - correlation))

    def log_integrand(z: np.ndarray) -> np.ndarray:
        return np.array([count @ log_ndtr(threshold + slope * x) - x**2 / 2 for x in z])

    def derivative(z: np.ndarray) -> np.ndarray:
        return np.array([(count * slope) @ _hazard(threshold + slope * x) - x for x in z])

    limit = np.array([_MAX_THRESHOLD])
    mode = bisect(lambda z: derivative(z) > 0, -limit, limit)
    _, log_term = _trapezoid(log_integrand, mode, np.max(np.abs(slope)))
    return float(logsumexp(log_term)) - _LOG_NORMALIZER


def _trapezoid(
    log_integrand: Callable, mode: np.ndarray, slope: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes between the points where the integrand has vanished, and logarithms of their terms."""
    limit = np.full(mode.shape, 2 * _MAX_THRESHOLD)
    least = log_integrand(mode) - _LOG_RANGE
    low = bisect(lambda x: log_integrand(x) < least, mode - limit, mode)
    high = bisect(lambda x: log_integrand(x) > least, mode, mode + limit)
    # a distribution function falls over a width of 1 / slope
    n_nodes = max(_MIN_NODES, int(2 * slope * np.max(high - low)))
    nodes = low + (high - low) * np.linspace(0, 1, n_nodes)
    return nodes, log_integrand(nodes) + np.log((high - low) / (n_nodes - 1))


def _nodes(
    n: np.ndarray, events: np.ndarray, threshold: np.ndarray, correlation: float
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes X and the logarithms of their terms in the integral of `log_tail`, both (m, nodes)."""
    n, events, threshold = (column[:, None] for column in (n, events, threshold))
    slope = np.sqrt((1 - correlation) / correlation)
    normalizer = betaln(events, n - events + 1) + _LOG_NORMALIZER

    def argument(x: np.ndarray) -> np.ndarray:
        return threshold / np.sqrt(correlation) - slope * x

    def log_integrand(x: np.ndarray) -> np.ndarray:
        log_beta = (events - 1) * log_ndtr(x) + (n - events) * log_ndtr(-x) - x**2 / 2
        return log_beta - normalizer + log_ndtr(argument(x))

    def derivative(x: np.ndarray) -> np.ndarray:
        beta_slope = (events - 1) * _hazard(x) - (n - events) * _hazard(-x) - x
        return beta_slope - slope * _hazard(argument(x))

    limit = np.full(n.shape, _MAX_THRESHOLD)
    mode = bisect(lambda x: derivative(x) > 0, -limit, limit)
    return _trapezoid(log_integrand, mode, slope)


def default_rate_limits(
    n: np.ndarray, events: np.ndarray, tail: float, correlation: float
) -> tuple[np.ndarray, np.ndarray]:
    """The rates (m,) at which P(D ≥ d), and P(D ≤ d), have this value; 0 and 1 if there is none.

    Effective numbers need not be whole, if the correlation is 0.
    """
    if correlation > 0:
        low = ndtr(_threshold_of_tail(n, events, tail, correlation))
        high = ndtr(-_threshold_of_tail(n, n - events, tail, correlation))
    else:  # the bounds of Clopper and Pearson
        low = beta.ppf(tail, events, n - events + 1)
        high = beta.isf(tail, events + 1, n - events)
    return np.where(events > 0, low, 0.0), np.where(events < n, high, 1.0)


def _threshold_of_tail(
    n: np.ndarray, events: np.ndarray, tail: float, correlation: float
) -> np.ndarray:
    """The threshold c at which P(D ≥ d) has this value, (m,); some number if d is 0."""
    counts, inverse = np.unique(np.stack([n, events]), axis=1, return_inverse=True)
    size, least = counts[0], np.maximum(counts[1], 1)
    nodes, log_weight = _nodes(size, least, np.full(len(size), np.inf), correlation)
    weight = np.exp(log_weight)

    def is_below(threshold: np.ndarray) -> np.ndarray:
        shift = threshold[:, None] - np.sqrt(1 - correlation) * nodes
        return np.sum(weight * ndtr(shift / np.sqrt(correlation)), axis=1) < tail

    bound = np.full(len(size), _MAX_THRESHOLD)
    return bisect(is_below, -bound, bound)[np.ravel(inverse)]


def _hazard(x: np.ndarray) -> np.ndarray:
    """φ(x) / Φ(x)."""
    return np.exp(-(x**2) / 2 - _LOG_NORMALIZER - log_ndtr(x))


def bisect(is_below: Callable, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The first point at which the condition fails, which holds at `low` and fails at `high`."""
    for _ in range(50):
        middle = (low + high) / 2
        below = is_below(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high
