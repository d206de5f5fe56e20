"""The best temperature of log-probabilities."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace
from scipy.optimize import brentq

from .array_api import Array, doubles, picked, row_dots, written
from .logits import SAMPLE, row_blocks, softmax
from .newton import nonnegative_step

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


# Temperatures are searched up to this power of 2 away from the start, on either side.
_OCTAVES = 5

# Keeps quotients and logarithms finite; results are clipped far above it.
_TINY = 1e-100

# Shares are found if a step promises to lower the loss by no more than this: convergence is
# quadratic.
_SMALL_DECREASE = 1e-12

# Temperatures far from the start are tried on about these many to twice as many rows.
_SAMPLE = 1024

# At most these many probabilities are kept from one temperature to the next, with their logarithms.
_MOST_KEPT = 10**6

# Steps and halvings of one; a few are enough.
_MOST_STEPS = 50

# Losses that differ in later digits are equal.
_DIGITS = 12

# A derivative of the loss below the first number is a rounding error. The second one is the
# precision of T, relative to it.
_LEVEL, _PRECISION = 1e-14, 1e-10


class _Fit(NamedTuple):
    """The best shares of the parts, the loss, and its derivative by log 1/T."""

    inverse: float  # 1/T
    shares: np.ndarray  # (3,)
    loss: float
    slope: float


def mixed(log_proba: Array, temperature: float, shares: np.ndarray) -> Array:
    """The mixture of softmax(log p / T), p and 1/K, row by row (n, K)."""
    of_tempered, of_given, of_uniform = shares.tolist()
    mixture = of_tempered * tempered(log_proba, temperature)
    mixture += of_given * tempered(log_proba, 1.0)
    mixture += of_uniform / log_proba.shape[1]
    return mixture


def best_mixture(
    log_proba: Callable[[slice], np.ndarray],
    label: np.ndarray,
    weight: np.ndarray,
    prior: float,
    start: float,
) -> tuple[float, np.ndarray]:
    """T and shares of tempered, given and uniform predictions with the least loss.

    `log_proba` returns the rows of a slice, (b, K). The targets are mixtures: the labels (n,) with
    the share 1 − prior, and the predictions p with the share prior.

    For given T the loss is convex in the shares, and their optimum exact. In T it need not be
    convex. So a sample of rows is tried at T = start · 2^j first; from the best one, the full data
    go down in such steps, until the derivative changes its sign, and the root of it is found.
    """
    n = len(label)
    coarse = _Profile(log_proba, label, weight, prior, max(n // _SAMPLE, 1))
    fine = coarse if n < 2 * _SAMPLE else _Profile(log_proba, label, weight, prior, 1)
    octaves = sorted(range(-_OCTAVES, _OCTAVES + 1), key=abs)
    octave = min(octaves, key=lambda j: round(coarse.at(2.0**j / start).loss, _DIGITS))
    inverse = _descend(fine, start, octave)
    found = [fine.at(one) for one in (inverse, 2.0**octave / start, 1 / start)]
    best = int(np.argmin([round(fit.loss, _DIGITS) for fit in found]))
    return 1 / found[best].inverse, found[best].shares


def _descend(profile: "_Profile", start: float, octave: int) -> float:
    """1/T where the derivative is 0, downhill from start · 2^octave, or the last one allowed."""
    slope = profile.at(2.0**octave / start).slope
    if abs(slope) <= _LEVEL:
        return 2.0**octave / start
    toward = -int(np.sign(slope))

    def rise(steps: float) -> float:
        fit = profile.at(2.0 ** (octave + toward * steps) / start)
        # where tempered predictions have no share, T has no effect
        return toward * fit.slope if fit.shares[0] > 0 else 1.0

    end = 0
    while rise(end) < 0 and abs(octave + toward * (end + 1)) <= _OCTAVES:
        end += 1
    steps = brentq(rise, end - 1, end, xtol=_PRECISION) if rise(end) > 0 else end
    return 2.0 ** (octave + toward * steps) / start


class _Profile:
    """The least loss for each 1/T of one row in `every`."""

    def __init__(
        self,
        log_proba: Callable[[slice], np.ndarray],
        label: np.ndarray,
        weight: np.ndarray,
        prior: float,
        every: int,
    ) -> None:
        self.log_proba, self.label, self.weight = log_proba, label, weight
        self.prior, self.every = prior, every
        self.n_classes = log_proba(slice(0, 1)).shape[1]
        self.shares = np.full(3, 1 / 3)
        self.known: dict[float, _Fit] = {}
        is_small = len(label) // every * self.n_classes <= _MOST_KEPT
        self.kept = list(self._blocks()) if is_small else None

    def _blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """log p, its largest entry 0, p and the weighted targets, of blocks of rows (b, K)."""
        for rows in row_blocks(len(self.label), self.n_classes, self.every):
            value = self.log_proba(rows)
            plain = softmax(value.copy())
            value -= value.max(axis=1, keepdims=True)
            target = self.prior * plain
            target[np.arange(len(target)), self.label[rows]] += 1 - self.prior
            target *= self.weight[rows, None]
            yield value, plain, target

    def at(self, inverse: float) -> _Fit:
        """Newton's method for Σ shares − Σ target log mixture, whose optimum sums to Σ target.

        This leaves the restriction to shares of at least 0, and each step is a least-squares
        problem with that.
        """
        if inverse in self.known:
            return self.known[inverse]
        shares = self.shares
        loss, slope, gradient, curvature = self._derivatives(inverse, shares)
        for _ in range(_MOST_STEPS):
            step = nonnegative_step(shares, gradient, curvature)
            promise = -float(gradient @ step)
            scale = 1.0
            while True:
                moved = shares + scale * step
                new = self._derivatives(inverse, moved)
                if new[0] <= loss - 1e-4 * scale * promise or scale * promise <= _SMALL_DECREASE:
                    break
                scale /= 2
            is_last = promise <= _SMALL_DECREASE
            if is_last or new[0] < loss:
                shares, (loss, slope, gradient, curvature) = moved, new
            if is_last or scale * promise <= _SMALL_DECREASE:
                break
        shares = shares / shares.sum()
        self.shares = 0.999 * shares + 0.001 / 3  # a start from which every share can grow
        self.known[inverse] = _Fit(inverse, shares, loss, slope)
        return self.known[inverse]

    def _derivatives(
        self, inverse: float, shares: np.ndarray
    ) -> tuple[float, float, np.ndarray, np.ndarray]:
        """The loss, its derivative by log 1/T, and gradient and Hessian in the shares."""
        loss, slope, total = 0.0, 0.0, 0.0
        gradient, curvature = np.zeros(3), np.zeros((3, 3))
        uniform = 1 / self.n_classes
        for value, plain, target in self.kept or self._blocks():
            value = value * inverse
            part = np.exp(value)
            part /= np.einsum("nk->n", part)[:, None]
            total += target.sum()
            mixture = shares[0] * part + shares[1] * plain + (shares[2] * uniform + _TINY)
            loss -= float(np.vdot(target, np.log(mixture)))
            target = target / mixture
            value -= np.einsum("nk,nk->n", part, value)[:, None]
            value *= part
            slope -= shares[0] * float(np.vdot(target, value))
            parts = np.stack([part.ravel(), plain.ravel(), np.full(part.size, uniform)])
            gradient -= parts @ target.ravel()
            target /= mixture
            curvature += (parts * target.ravel()) @ parts.T
        return loss + total * float(shares.sum()), slope, gradient + total, curvature
