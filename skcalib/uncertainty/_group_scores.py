"""Score intervals of two classes, by what labels that depend within groups may add up to."""

from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

from .._data import ClassData
from .._inputs.drawing import estimate_group_dependence
from .._numerics.logits import log_odds
from .._numerics.sorting import codes_by_appearance
from ..metrics._clinical import logistic_line
from ._resampling import MIN_EVENTS, Units

# Fewer effective events do not show how many there may be.
MIN_EFFECTIVE_EVENTS = 10

# No log-odds of a double are further from 0.
_MAX_SHIFT = 800.0


@dataclass(frozen=True)
class GroupScores:
    """Samples of two classes in groups, each from its highest prediction to its lowest."""

    label: np.ndarray  # (n,)
    logits: np.ndarray  # (n,)
    weight: np.ndarray  # (n,)
    start: np.ndarray  # (G,), of the groups
    dependence: np.ndarray  # (G,), of the labels in them
    line: tuple[float, float]  # intercept and slope of the logistic regression on the log-odds

    @classmethod
    def make(cls, data: ClassData) -> "GroupScores":
        """The scores of checked data; each sample is a group if they have none."""
        data, logits = data.to_numpy(), log_odds(data.proba)
        groups = np.arange(len(logits)) if data.groups is None else np.asarray(data.groups)
        code = codes_by_appearance(groups)
        dependence = estimate_group_dependence(data.matrix, data.label, code, data.weight)
        order = np.lexsort((-logits, code))
        start = np.flatnonzero(np.diff(code[order], prepend=-1))
        label, weight = data.label[order], data.weight[order]
        return cls(label, logits[order], weight, start, dependence, logistic_line(data))

    @property
    def effective_n_events(self) -> float:
        """Number of independent events, or non-events, that would vary as much as those expected.

        Of both the smaller one.
        """
        expected = np.array([self.weight @ expit(self.logits), self.weight @ expit(-self.logits)])
        return float(expected.min() ** 2 / self.variance(expit(self.logits), self.weight))

    def variance(self, proba: np.ndarray, factor: np.ndarray) -> float:
        """The variance of the sum of factors (n,) of the events.

        Of each group it lies between that of independent labels and that of labels which all follow
        one number, by its dependence.
        """
        independent = np.add.reduceat(factor**2 * proba * (1 - proba), self.start)
        total = np.cumsum(factor)
        sizes = np.diff(self.start, append=len(factor))
        total -= np.repeat(total[self.start] - factor[self.start], sizes)  # within the group
        following = np.append(proba[1:], 0.0)
        following[np.append(self.start[1:], len(factor)) - 1] = 0.0
        square = np.add.reduceat((proba - following) * total**2, self.start)
        identical = square - np.add.reduceat(factor * proba, self.start) ** 2
        excess = np.maximum(identical - independent, 0.0)
        return float(np.sum(independent + self.dependence * excess))

    def intervals(self, confidence_level: float) -> np.ndarray:
        """Lower and upper ends (4, 2).

        Of calibration in the large, the logarithm of the O:E ratio, intercept and slope.
        """
        margin = stats.norm.isf((1 - confidence_level) / 2)
        observed, expected = self.weight @ self.label, self.weight @ expit(self.logits)

        def excess(shift: float, sign: int) -> float:
            proba = expit(self.logits + shift)
            deviation = np.sqrt(self.variance(proba, self.weight))
            return float(observed - self.weight @ proba - sign * margin * deviation)

        shifts = np.array(
            [brentq(excess, -_MAX_SHIFT, _MAX_SHIFT, args=(sign,)) for sign in (1, -1)]
        )
        shifted = np.array([self.weight @ expit(self.logits + shift) for shift in shifts])
        slope = np.array([-np.inf, np.inf])
        if np.isfinite(self.line).all():
            slope = self.line[1] + margin * self._slope_deviation() * np.array([-1.0, 1.0])
        return np.stack([shifted - expected, np.log(shifted / expected), shifts, slope])

    def _slope_deviation(self) -> float:
        """The standard error of a finite slope."""
        intercept, slope = self.line
        proba = expit(intercept + slope * self.logits)
        design = np.column_stack([np.ones(len(proba)), self.logits])
        curvature = self.weight * proba * (1 - proba)
        influence = np.linalg.pinv(design.T @ (curvature[:, None] * design))[1] @ design.T
        if slope >= 0:
            return float(np.sqrt(self.variance(proba, self.weight * influence)))
        # fitted probabilities rise where the predictions fall
        return float(np.sqrt(self.variance(1 - proba, self.weight * influence)))


def widen_by_scores(
    data: ClassData, units: Units, ends: np.ndarray, confidence_level: float, measures: list[int]
) -> np.ndarray:
    """The hull of ends (C, 2) and the score intervals of these of the four measures.

    Only with groups, or if events, or non-events, are rare: otherwise the ends themselves.
    """
    is_event = data.to_numpy().label == 1
    n_rare = min(units.effective_size_of(rows) for rows in (is_event, ~is_event))
    if data.groups is None and n_rare >= MIN_EVENTS:
        return ends
    scores = GroupScores.make(data).intervals(confidence_level)[measures]
    return np.column_stack(
        [np.minimum(ends[:, 0], scores[:, 0]), np.maximum(ends[:, 1], scores[:, 1])]
    )
