"""The best temperature of log-probabilities."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from . import array_api
from .array_api import MIN_DENOMINATOR, Array, array_namespace
from .logits import SAMPLE_SIZE, iter_row_blocks, softmax_in_place
from .newton import nonnegative_step

# The search ends after a relative step below this: convergence is cubic, so that the error left is
# below rounding.
_STEP_RTOL = 3e-6

# Halley's correction may shorten or stretch a Newton step by at most this factor.
_MAX_CORRECTION = 2.0

# Temperatures are searched up to this power of 2 away from the start, on either side.
_MAX_OCTAVES = 5

# The smallest share at the start, from which each can grow.
_MIN_START_SHARE = 1e-6

# The search for shares ends at a step that promises to lower the loss by no more than this:
# convergence is quadratic.
_SHARES_DECREASE_ATOL = 1e-11

# Temperatures far from the start are tried on this many to twice as many rows.
_COARSE_SAMPLE_SIZE = 1024

# Up to this many probabilities stay in memory from one temperature to the next, with logarithms.
_MAX_CACHED_ENTRIES = 10**6

# Newton steps for the shares; a few suffice.
_MAX_SHARE_STEPS = 50

# Losses are compared after rounding to this many decimals.
_LOSS_DIGITS = 12

# A derivative of the loss below the first number is a rounding error. The second one is the
# precision of T, relative to it.
_SLOPE_ATOL, _TEMPERATURE_RTOL = 1e-14, 1e-7


def scale_by_temperature(log_proba: Array, temperature: float) -> Array:
    """softmax(log p / T) of each row (n, K); at T = 0 its largest entries share everything."""
    xp = array_namespace(log_proba)
    scores = log_proba - xp.max(log_proba, axis=1, keepdims=True)
    if temperature == 0:
        scores = xp.where(scores == 0, scores, -np.inf)
    else:
        scores /= temperature
    return softmax_in_place(scores)


class TemperingProblem(NamedTuple):
    """The rows to which a temperature is fitted.

    The targets are mixtures: the labels with the share 1 − prior, and the predictions p with the
    share prior.
    """

    log_proba: Callable[[slice], Array]  # the rows of a slice, (b, K), in double precision
    label: Array  # (n,)
    weight: Array  # (n,)
    prior: float

    def best_temperature(self) -> float:
        """The T in [0, ∞] with the least loss of softmax(log p / T); 1 if all T have the same loss.

        The solution for a subsample of the rows is the start for all rows.
        """
        n, problem = self.label.shape[0], self._replace(weight=array_api.doubles(self.weight))
        inverse = 1.0
        for every in (max(n // SAMPLE_SIZE, 1), 1):
            start = inverse if 0 < inverse < np.inf else 1.0
            inverse = problem._best_inverse(every, start)
        with np.errstate(divide="ignore"):
            return float(np.divide(1.0, inverse))

    def _best_inverse(self, every: int, start: float) -> float:
        """The best β = 1/T for one row in `every`.

        The slope of the loss in β is Σ w (E_β − E_t) log p, its curvature is Σ w Var_β log p, and
        the third derivative is Σ w times the third central moment. These moments are over the
        classes with the probabilities softmax(β log p); E_t is the mean with the targets t as
        probabilities. The slope at β = 0, and its limit at ∞ where only the largest log p of a row
        counts, tell whether the minimum is at one of these ends. Otherwise Halley's method finds it
        inside a bracket. The largest log p of each row is subtracted first, so that the limit at ∞
        is exact.
        """
        log_proba, label, weight, prior = self
        xp, n_classes = array_namespace(weight), log_proba(slice(0, 1)).shape[1]
        blocks = list(iter_row_blocks(label.shape[0], n_classes, every, like=weight))

        def moments(beta: float) -> tuple[float, float, float]:
            """Σ w times the mean of log p, its variance and its third central moment."""
            mean = second = third = 0.0
            for rows in blocks:
                value = log_proba(rows)
                value -= xp.max(value, axis=1, keepdims=True)
                share = beta * value
                array_api.apply_out("exp", share, out=share)
                total = xp.sum(share, axis=1)
                mean_value = array_api.row_dots(share, value) / total
                value -= mean_value[:, None]
                mean += weight[rows] @ mean_value
                share *= value
                second += weight[rows] @ (array_api.row_dots(share, value) / total)
                share *= value
                third += weight[rows] @ (array_api.row_dots(share, value) / total)
            return float(mean), float(second), float(third)

        observed = uniform = 0.0
        for rows in blocks:
            value = log_proba(rows)
            top = xp.max(value, axis=1)
            label_value = array_api.take_labels(value, label[rows, None])[:, 0]
            observed += weight[rows] @ (label_value - top)
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
                step /= min(max(shrinkage, 1 / _MAX_CORRECTION), _MAX_CORRECTION)
            if abs(step) <= _STEP_RTOL * beta:
                return beta + step
            new = beta + step
            if not low < new < high:
                new = (low + high) / 2 if high < np.inf else 2 * beta
            if new in (low, high):
                return new
            beta = new

    def best_mixture(self, start: float) -> tuple[float, np.ndarray]:
        """T and shares of tempered, given and uniform predictions with the least loss.

        For given T the loss is convex in the shares, and their optimum exact. In T it need not be
        convex. So a sample of rows is tried at T = start / 2^x first, for whole numbers x. From the
        best one the search goes downhill to the root of the derivative for all rows.
        """
        n = len(self.label)
        coarse = _Profile(self, max(n // _COARSE_SAMPLE_SIZE, 1))
        octaves = np.arange(_MAX_OCTAVES, -_MAX_OCTAVES - 1.0, -1.0).tolist()
        losses = (round(coarse.fit(2.0**x / start).loss, _LOSS_DIGITS) for x in octaves)
        *_, origin = min((loss, abs(x), x) for loss, x in zip(losses, octaves, strict=True))
        fine = coarse if n < 2 * _COARSE_SAMPLE_SIZE else _Profile(self, 1)
        fine.latest = coarse.fit(2.0**origin / start)
        x = _find_minimum(fine, start, origin)
        fits = [fine.fit(2.0**exponent / start) for exponent in (x, origin, 0.0)]
        best_fit = min(fits, key=lambda fit: round(fit.loss, _LOSS_DIGITS))
        for profile in (coarse, fine):
            # SciPy's search leaves a cycle of references, which keeps data until it is collected
            vars(profile).clear()
        return 1 / best_fit.inverse, best_fit.shares


class _Fit(NamedTuple):
    """The best shares of the parts, the loss, and its derivative by log 1/T."""

    inverse: float  # 1/T
    shares: np.ndarray  # (3,)
    loss: float
    slope: float
    bend: np.ndarray  # (3,), the derivative of the slope by the shares
    curvature: np.ndarray  # (3, 3), of the loss in the shares

    def shares_at(self, inverse: float) -> np.ndarray:
        """Approximately best shares at another 1/T, all of them positive."""
        gradient = self.bend * np.log(inverse / self.inverse)
        shares = self.shares + nonnegative_step(self.shares, gradient, self.curvature)
        return (1 - _MIN_START_SHARE) * shares / shares.sum() + _MIN_START_SHARE / 3


def mix_tempered(log_proba: Array, temperature: float, shares: np.ndarray) -> Array:
    """The mixture of softmax(log p / T), p and 1/K, row by row (n, K)."""
    tempered_share, given_share, uniform_share = shares.tolist()
    mixture = tempered_share * scale_by_temperature(log_proba, temperature)
    mixture += given_share * scale_by_temperature(log_proba, 1.0)
    mixture += uniform_share / log_proba.shape[1]
    return mixture


def _find_minimum(profile: "_Profile", start: float, origin: float) -> float:
    """The x downhill from the origin where the derivative at T = start / 2^x is 0.

    Or the last one allowed.
    """
    first = profile.fit(2.0**origin / start)
    if abs(first.slope) <= _SLOPE_ATOL or first.shares[0] == 0:
        return origin
    toward = -float(np.sign(first.slope))

    def rise(steps: float) -> float:
        fit = profile.fit(2.0 ** (origin + toward * steps) / start)
        # where tempered predictions have no share, T has no effect
        return toward * fit.slope if fit.shares[0] > 0 else 1.0

    end = 0
    while rise(end) < 0 and abs(origin + toward * (end + 1)) <= _MAX_OCTAVES:
        end += 1
    steps = brentq(rise, end - 1, end, xtol=_TEMPERATURE_RTOL) if rise(end) > 0 else end
    return origin + toward * steps


class _Profile:
    """The least loss for each 1/T of one row in `every`."""

    def __init__(self, problem: TemperingProblem, every: int) -> None:
        (self.log_proba, self.label, self.weight, self.prior), self.every = problem, every
        self.n_classes = self.log_proba(slice(0, 1)).shape[1]
        self.latest = _Fit(1.0, np.full(3, 1 / 3), np.inf, 0.0, np.zeros(3), np.eye(3))
        self.fits: dict[float, _Fit] = {}
        is_small = len(self.label) // every * self.n_classes <= _MAX_CACHED_ENTRIES
        self.cached_blocks = list(self._iter_blocks()) if is_small else None

    def _iter_blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """log p, its largest entry 0, the parts and the weighted targets, of blocks of samples.

        These are (K, b), (4, K b) and (K b,). The first part, which depends on T, is yet to come,
        and so is its derivative, in the last row.
        """
        for rows in iter_row_blocks(len(self.label), self.n_classes, self.every):
            value = np.ascontiguousarray(self.log_proba(rows).T)
            value -= value.max(axis=0)
            plain = np.exp(value)
            plain /= plain.sum(axis=0)
            target = self.prior * plain
            target[self.label[rows], np.arange(target.shape[1])] += 1 - self.prior
            target *= self.weight[rows]
            components = np.stack([plain, plain, np.full_like(plain, 1 / self.n_classes), plain])
            yield value, components.reshape(4, -1), target.ravel()

    def fit(self, inverse: float) -> _Fit:
        """Newton's method for Σ shares − Σ target log mixture, whose optimum sums to Σ target.

        This leaves the restriction to shares of at least 0, and each step is a least-squares
        problem with that.
        """
        if inverse in self.fits:
            return self.fits[inverse]
        shares = self.latest.shares_at(inverse)
        loss, gradient, curvature = self._derivatives(inverse, shares)
        for _ in range(_MAX_SHARE_STEPS):
            step = nonnegative_step(shares, gradient[:3], curvature[:3, :3])
            promise = -float(gradient[:3] @ step)
            if promise <= _SHARES_DECREASE_ATOL:
                break
            scale = 1.0
            while True:
                new_shares = shares + scale * step
                new_shares /= new_shares.sum()
                new = self._derivatives(inverse, new_shares)
                goal = loss - 0.25 * scale * promise
                if new[0] <= goal or scale * promise <= _SHARES_DECREASE_ATOL:
                    break
                scale /= 2
            shares, (loss, gradient, curvature) = new_shares, new
        else:
            step, promise = np.zeros(3), 0.0
        # the last step is so short that the loss is quadratic along it
        bend = shares[0] * curvature[:3, 3] + [gradient[3], 0.0, 0.0]
        slope = float(shares[0] * gradient[3] + bend @ step)
        shares = (shares + step) / (shares + step).sum()
        self.latest = _Fit(inverse, shares, loss - promise / 2, slope, bend, curvature[:3, :3])
        self.fits[inverse] = self.latest
        return self.latest

    def _derivatives(
        self, inverse: float, shares: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """The loss, and its first and second derivatives by the shares and by log 1/T.

        Those by log 1/T come last, as if the share of the tempered part were 1; of the second ones,
        what bends this part itself is left out.
        """
        loss = total = 0.0
        gradient, curvature = np.zeros(4), np.zeros((4, 4))
        for value, components, target in self.cached_blocks or self._iter_blocks():
            value = value * inverse
            tempered, change = (components[row].reshape(value.shape) for row in (0, 3))
            np.exp(value, out=tempered)
            tempered /= tempered.sum(axis=0)
            value -= np.einsum("kn,kn->n", tempered, value)
            np.multiply(tempered, value, out=change)
            mixture = shares @ components[:3] + MIN_DENOMINATOR
            total += float(target.sum())
            loss -= float(target @ np.log(mixture))
            ratio = target / mixture
            gradient -= components @ ratio
            ratio /= mixture
            curvature += (components * ratio) @ components.T
        gradient[:3] += total
        return loss + total * float(shares.sum()), gradient, curvature
