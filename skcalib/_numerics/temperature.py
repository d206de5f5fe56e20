"""The best temperature of log-probabilities."""

from collections.abc import Callable

import numpy as np
from array_api_compat import array_namespace

from .array_api import Array, doubles, picked, row_dots, written
from .logits import SAMPLE, row_blocks, softmax

# The search ends after a relative step below this: convergence is cubic, so that the error left is
# below rounding.
_SMALL_STEP = 3e-6

# The next order may shorten or stretch a step of Newton by this factor.
_MOST_CORRECTION = 2.0


def tempered(log_proba: Array, temperature: float) -> Array:
    """softmax(log p / T) of each row (n, K); at T = 0 its largest entries share everything."""
    xp = array_namespace(log_proba)
    scores = log_proba - xp.max(log_proba, axis=1, keepdims=True)
    if temperature == 0:
        scores = xp.where(scores == 0, scores, -np.inf)
    else:
        scores /= temperature
    return softmax(scores)


def best_temperature(
    log_proba: Callable[[slice], Array], label: Array, weight: Array, prior: float
) -> float:
    """The T in [0, ∞] with the least loss of softmax(log p / T); 1 if all T have the same loss.

    `log_proba` returns the rows of a slice, (b, K), in double precision. The targets are mixtures:
    the labels (n,) with the share 1 − prior, and the predictions p with the share prior. The
    solution for a subsample of the rows is the start for all rows.
    """
    n, inverse, weight = label.shape[0], 1.0, doubles(weight)
    for every in (max(n // SAMPLE, 1), 1):
        start = inverse if 0 < inverse < np.inf else 1.0
        inverse = _best_inverse_temperature(log_proba, label, weight, prior, every, start)
    with np.errstate(divide="ignore"):
        return float(np.divide(1.0, inverse))


def _best_inverse_temperature(
    log_proba: Callable[[slice], Array],
    label: Array,
    weight: Array,
    prior: float,
    every: int,
    start: float,
) -> float:
    """The best β = 1/T for one row in `every`.

    The slope of the loss in β is Σ w (E_β − E_t) log p, its curvature is Σ w Var_β log p, and the
    third derivative is Σ w times the third central moment. These moments are over the classes with
    the probabilities softmax(β log p); E_t is the mean with the targets t as probabilities. The
    slope at β = 0, and its limit at ∞ where only the largest log p of a row counts, tell whether
    the minimum is at one of these ends. Otherwise Halley's method finds it inside a bracket. The
    largest log p of each row is subtracted first, so that the limit at ∞ is exact.
    """
    xp, n_classes = array_namespace(weight), log_proba(slice(0, 1)).shape[1]
    blocks = list(row_blocks(label.shape[0], n_classes, every, on=weight))

    def moments(beta: float) -> tuple[float, float, float]:
        """Σ w times the mean of log p, its variance and its third central moment."""
        mean = second = third = 0.0
        for rows in blocks:
            value = log_proba(rows)
            value -= xp.max(value, axis=1, keepdims=True)
            share = beta * value
            written("exp", share, out=share)
            total = xp.sum(share, axis=1)
            own = row_dots(share, value) / total
            value -= own[:, None]
            mean += weight[rows] @ own
            share *= value
            second += weight[rows] @ (row_dots(share, value) / total)
            share *= value
            third += weight[rows] @ (row_dots(share, value) / total)
        return float(mean), float(second), float(third)

    observed = uniform = 0.0
    for rows in blocks:
        value = log_proba(rows)
        top = xp.max(value, axis=1)
        own = picked(value, label[rows, None])[:, 0]
        observed += weight[rows] @ (own - top)
        uniform += weight[rows] @ xp.sum(value - top[:, None], axis=1) / n_classes
    observed, uniform = float(observed), float(uniform)
    if prior > 0:
        observed = (1 - prior) * observed + prior * moments(1.0)[0]
    if uniform == 0:
        return 1.0
    if observed == 0:
        return np.inf
    if observed <= uniform:
        return 0.0

    low, beta, high = 0.0, start, np.inf
    while True:
        mean, curvature, bend = moments(beta)
        if mean < observed:
            low = beta
        else:
            high = beta
        step = np.inf
        if curvature > 0:
            step = (observed - mean) / curvature
            shrinkage = 1 + step * bend / (2 * curvature)
            step /= min(max(shrinkage, 1 / _MOST_CORRECTION), _MOST_CORRECTION)
        if abs(step) <= _SMALL_STEP * beta:
            return beta + step
        new = beta + step
        if not low < new < high:
            new = (low + high) / 2 if high < np.inf else 2 * beta
        if new in (low, high):
            return new
        beta = new
