"""The maps of recalibrators in a few nodes: each family states its own, and writers walk them.

They map the probabilities of all classes, or that of the last of two alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator

from .._numerics.logits import clip_proba, log_odds

# A class that defines one of these, or a method that begins with "_map", has a map of its own.
_MAP_METHODS = {"predict_proba", "transform"}

# Methods by which a class states its map.
_STATEMENTS = {"_state_map", "_linear_map", "_curve", "_pieces"}


class Pieces(NamedTuple):
    """From each start to the next, the map is value + slope · (p − start); the first start is 0."""

    start: np.ndarray
    value: np.ndarray
    slope: np.ndarray


class Curve(NamedTuple):
    """Log-odds as a function of predicted ones, x = log p − log q.

    It consists of polynomials in the distance from the knot where each begins (of the first one:
    from the first knot), the lowest power first; plus a log p − b log q, where q = 1 − p.
    """

    coefficients: np.ndarray  # (m + 1, d)
    knots: np.ndarray = np.zeros(1)[:0]  # (m,); with strides like a pickled copy, for joblib.hash
    a: float = 0.0
    b: float = 0.0

    @property
    def origins(self) -> np.ndarray:
        """The points (m + 1,) from which distances are taken."""
        return np.append(self.knots[:1], self.knots) if len(self.knots) else np.zeros(1)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        """Calibrated log-odds (n,)."""
        piece: Any = np.searchsorted(self.knots, x, side="right") if len(self.knots) else 0
        distance, powers = x - self.origins[piece], self.coefficients.T[::-1]
        value = np.broadcast_to(powers[0][piece], distance.shape)
        for power in powers[1:]:
            value = power[piece] + distance * value
        if self.a == self.b == 0:
            return value
        return value + self.a * log_expit(x) - self.b * log_expit(-x)

    def parallel_beyond(self, ends: np.ndarray) -> "Curve":
        """Return a line or spline that is this one between two ends, with slope 1 beyond them."""
        coefficients, knots = self.coefficients.copy(), self.knots
        if not len(knots):
            low, high = self.evaluate(ends)
            coefficients, knots = np.array([[low, 1], [low, coefficients[0, 1]], [high, 1]]), ends
        coefficients[[0, -1], 1] = 1.0
        return self._replace(coefficients=coefficients, knots=knots)


@dataclass(frozen=True, eq=False)
class Map:
    """The base of all nodes."""

    source: str = field(default="", kw_only=True)  # the class of the recalibrator


@dataclass(frozen=True, eq=False)
class ClassFactors(Map):
    """Probabilities times factors, divided by their sum; `otherwise` if it is 0.

    Factors of 1 change nothing.
    """

    factors: np.ndarray
    otherwise: np.ndarray

    @classmethod
    def identity(cls, n_classes: int) -> Self:
        return cls(np.ones(n_classes), np.full(n_classes, 1 / n_classes))


@dataclass(frozen=True, eq=False)
class LogLinear(Map):
    """The softmax of factors, (K,) or a matrix, of clipped log-probabilities plus shifts (K,).

    Beyond bounds (2, K) of log-probabilities factors are 1.
    """

    factors: np.ndarray
    shifts: np.ndarray
    smallest: float
    bounds: np.ndarray | None = None

    @property
    def matrix(self) -> np.ndarray:
        """The factors as a matrix; if there are bounds, of clipped and given log-probabilities."""
        matrix = self.factors if self.factors.ndim == 2 else np.diag(self.factors)
        identity = np.eye(len(matrix))
        return matrix if self.bounds is None else np.hstack([matrix - identity, identity])


@dataclass(frozen=True, eq=False)
class LogOdds(Map):
    """A curve for the last of two classes, or for each one, then rows divided by their sums."""

    curves: Sequence[Curve]
    smallest: float

    def evaluate(self, proba: np.ndarray, curve: Curve) -> np.ndarray:
        """Calibrated probabilities of one class (n,)."""
        return clip_proba(expit(curve.evaluate(log_odds(proba, self.smallest))))


@dataclass(frozen=True, eq=False)
class PerClass(Map):
    """Pieces of the last of two classes, or of each one, then rows divided by their sums.

    If the columns of two classes tell more than one, `both` maps the smaller of the two; the other
    class gets 1 minus the result.
    """

    pieces: Sequence[Pieces]
    both: Sequence[Pieces] | None = None


@dataclass(frozen=True, eq=False)
class WeightedMean(Map):
    """The weighted mean of maps, and of equal probabilities of all classes."""

    members: Sequence[Map]
    weights: Sequence[float]
    uniform: float
    n_classes: int


@dataclass(frozen=True, eq=False)
class Composition(Map):
    """A map of the results of another one."""

    first: Map
    second: Map


@dataclass(frozen=True, eq=False)
class Pairs(Map):
    """The softmax of log-probabilities plus a linear function of the products x_i x_j, i ≤ j.

    Here x are log-probabilities, raised to at least the floor, less their row mean.
    """

    coef: np.ndarray  # (K (K + 1) / 2, K)
    shifts: np.ndarray
    smallest: float
    floor: float


def mix(members: Sequence[Map], weights: Iterable[float], uniform: float, n_classes: int) -> Map:
    """The mean of the members of positive weight; a single one is returned itself."""
    used = [(member, weight) for member, weight in zip(members, weights, strict=True) if weight > 0]
    if len(used) == 1 and uniform == 0:
        return used[0][0]
    return WeightedMean(
        [member for member, _ in used], [weight for _, weight in used], uniform, n_classes
    )


def states_map(recalibrator: BaseEstimator) -> bool:
    """True if the class that defines the map states it, too, and no subclass changes it alone."""
    if not hasattr(recalibrator, "_state_map"):
        return False
    for names in map(vars, type(recalibrator).__mro__):
        if not _STATEMENTS.isdisjoint(names):
            return True
        if any(name in _MAP_METHODS or name.startswith("_map") for name in names):
            return False
    return False


class NoMapError(TypeError):
    """Raised for a recalibrator whose map is not stated, with its name and the remedy."""


def state_map(recalibrator: BaseEstimator, *, takes_logits: bool = False) -> Map:
    """The map of a fitted recalibrator; maps of logits only with `takes_logits`."""
    name = type(recalibrator).__name__
    if not states_map(recalibrator):
        raise NoMapError(name, "Call its predict_proba, or choose another recalibrator.")
    if recalibrator._expects_logits and not takes_logits:
        raise NoMapError(f"{name} of logits", "Fit it on scipy.special.softmax(X, axis=1).")
    stated = recalibrator._state_map()
    return stated if stated.source else replace(stated, source=name)
