"""Statistics that are functions of sums of residuals, for batches of drawn labels.

Each takes labels (R, n), and gives R values. Where samples of a group depend on each other, labels
cannot be drawn; then each takes signs (R, n) by which the observed residuals are multiplied.
"""

from typing import Any

import numpy as np
from scipy.special import xlogy
from scipy.stats import chi2

from .._inputs.predictions import Predictions
from .._kernels.functions import KERNELS, SMALLEST_BANDWIDTH, resolved_bandwidth
from .._numerics.bins import quantile_bins
from .._numerics.laplace import laplace_pair_sum
from .._numerics.logits import log_odds
from .._numerics.picked import picked

# The most groups of similar predictions that are looked at.
_MOST_GROUPS = 1024

# If the mean confidence is larger, few labels are a surprise: they are added up alone, as the
# rounding of sums over all labels would break ties.
_MOSTLY_CERTAIN = 0.9

# Cells into which many predictions are pooled for the kernel error.
MOST_CELLS = 4096


class ResidualStatistic:
    """What the test of calibration needs to know of a statistic of class probabilities."""

    kind = "classes"
    has_known_law = False
    is_signed = False  # values on both sides of 0 speak against the hypothesis
    depends_on_order = False
    least_batches = 1  # all draws of a batch are evaluated at once
    resolution = 0.0

    data: Predictions

    @property
    def numbers_per_draw(self) -> int:
        return len(self.data.weight)

    def __call__(self, labels: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def of_signs(self, signs: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class ScoreExcess(ResidualStatistic):
    """A proper score minus its expectation: positive if the predictions are too sure."""

    is_signed = True

    def __init__(self, data: Predictions, score: str) -> None:
        self.data = data
        self.score = score
        matrix = np.ascontiguousarray(data.matrix)  # labels pick entries fast in this order only
        if score == "log_loss":
            with np.errstate(divide="ignore"):
                loss = -np.log(matrix)
            expected = -xlogy(matrix, matrix).sum(axis=1)
        else:  # the Brier score; of two classes, half the sum over both, as scikit-learn has it
            scale = 0.5 if data.is_binary else 1.0
            square = np.sum(matrix**2, axis=1)
            loss = scale * (square[:, None] + 1 - 2 * matrix)
            expected = scale * (1 - square)
        self.excess = loss - expected[:, None]  # (n, K), infinite for impossible labels
        self.excess *= data.weight[:, None]
        if data.is_binary:
            self.flips = Flips(data.proba)
            likely, unlikely = self.flips.split(self.excess)
            self.base = float(likely.sum())
            self.certain = np.flatnonzero(np.isinf(unlikely))
            self.change = np.where(np.isinf(unlikely), 0.0, unlikely - likely)

    def on(self, data: Predictions) -> "ScoreExcess":
        return ScoreExcess(data, self.score)

    def __call__(self, labels):
        if not self.data.is_binary:
            return picked(self.excess, labels).sum(axis=1)
        flips = self.flips.of(labels)
        value = flips @ self.change + self.base
        value[flips[:, self.certain].any(axis=1)] = np.inf
        return value

    def of_signs(self, signs):
        observed = picked(self.excess, self.data.label[None])[0]
        largest = np.max(np.abs(observed), where=np.isfinite(observed), initial=1.0)
        return signs @ np.minimum(observed, largest)  # a sign of ∞ means nothing


class LevelAndSpread(ResidualStatistic):
    """Whether a class is predicted too often, or too surely: the largest value of all classes.

    These are the scores of intercept and slope of a logistic regression of the class on its own
    log-odds, squared and divided by their variances. Of a class that is hardly ever expected a
    single label is no evidence; so the variances are increased by that of one label.
    """

    def __init__(self, data: Predictions) -> None:
        self.data = data
        proba = data.proba[:, None] if data.is_binary else data.doubles
        weight = data.weight[:, None]
        information = weight**2 * proba * (1 - proba)
        level = information.sum(axis=0)  # (K,)
        known = level > 0
        spread = log_odds(proba)
        centre = np.sum(information * spread, axis=0)
        spread -= np.divide(centre, level, out=np.zeros_like(centre), where=known)
        variance = np.stack([level, np.sum(information * spread**2, axis=0)])
        self.spread = np.ascontiguousarray(weight * spread)  # (n, K)
        gap = -proba
        if data.is_binary:
            self.flips = Flips(data.proba)
            gap[:, 0] += self.flips.likely
            self.columns = self.flips.sign[:, None] * np.column_stack([data.weight, self.spread])
        else:
            self.top = proba.argmax(axis=1)
            gap[np.arange(len(gap)), self.top] += 1.0
        self.expected = np.stack([data.weight @ proba, np.sum(self.spread * proba, axis=0)])
        # the sums if every label were the likeliest
        self.base = np.stack([data.weight @ gap, np.sum(self.spread * gap, axis=0)])
        one_label = data.share_of_one_sample / len(data.weight)
        with np.errstate(divide="ignore", invalid="ignore"):  # where a class cannot occur
            self.scale = np.where(variance > 0, variance * (1 + one_label / level), np.inf)

    def on(self, data: Predictions) -> "LevelAndSpread":
        return LevelAndSpread(data)

    def by_class(self, labels: np.ndarray) -> np.ndarray:
        """Sums of residuals, and of residuals times log-odds, (2, R, K)."""
        if self.data.is_binary:
            return (self.flips.of(labels) @ self.columns).T[:, :, None] + self.base[:, None]
        if self.data.weight @ self.data.proba.max(axis=1) > _MOSTLY_CERTAIN:
            return self._surprises(labels) + self.base[:, None]
        n_draws, n_classes = len(labels), self.data.proba.shape[1]
        cell = (labels + n_classes * np.arange(n_draws)[:, None]).ravel()
        level = np.broadcast_to(self.data.weight, labels.shape).ravel()
        spread = picked(self.spread, labels).ravel()
        cells = [np.bincount(cell, part, n_draws * n_classes) for part in (level, spread)]
        return np.reshape(cells, (2, n_draws, n_classes)) - self.expected[:, None]

    def _surprises(self, labels):
        """The change of the sums by labels that are not the likeliest, (2, R, K)."""
        n_draws, n_classes = len(labels), self.data.proba.shape[1]
        draw, row = np.nonzero(labels != self.top)
        changes = np.zeros((2, n_draws * n_classes))
        for label, sign in ((labels[draw, row], 1.0), (self.top[row], -1.0)):
            cell = draw * n_classes + label
            for change, part in zip(
                changes, (self.data.weight[row], self.spread[row, label]), strict=True
            ):
                change += sign * np.bincount(cell, part, len(change))
        return changes.reshape(2, n_draws, n_classes)

    def __call__(self, labels):
        return self._largest(self.by_class(labels))

    def of_signs(self, signs):
        label, proba = self.data.label, self.data.doubles
        if self.data.is_binary:
            residual = (label - proba)[:, None]
        else:
            residual = (label[:, None] == np.arange(proba.shape[1])) - proba
        weight = self.data.weight[:, None]
        sums = [signs @ (part * residual) for part in (weight, self.spread)]
        return self._largest(np.stack(sums))

    def _largest(self, sums):
        squares = np.sum(sums**2 / self.scale[:, None], axis=0)
        return squares.max(axis=1)


class Flips:
    """Labels of two classes as differences from the likelier ones.

    Sums of residuals of almost certain predictions are tiny: they would be lost in the rounding of
    sums over all labels, and draws that are tied would differ.
    """

    def __init__(self, proba):
        self.likely = (proba > 0.5).astype(np.int32)
        self.sign = 1.0 - 2.0 * self.likely  # of the change of a label

    def of(self, labels):
        """Where labels (R, n) are not the likelier ones."""
        return labels != self.likely

    def split(self, values):
        """The columns (n, 2) of the likelier and of the other labels, each (n,)."""
        rows = np.arange(len(values))
        return values[rows, self.likely], values[rows, 1 - self.likely]


class ResidualCells:
    """Weighted residuals of hits, summed over cells of similar probability and equal mass."""

    def __init__(self, proba, weight, hit, n_cells):
        is_sorted = (proba[1:] >= proba[:-1]).all()
        self.order = slice(None) if is_sorted else np.argsort(proba, kind="stable")
        proba, weight = proba[self.order], weight[self.order]
        cell = quantile_bins(proba, weight, n_cells)
        self.start = np.flatnonzero(np.diff(cell, prepend=-1))
        self.occupied = cell[self.start]
        self.proba, self.weight, self.hit = proba, weight, hit[self.order]
        self.has_equal_weights = (weight == weight[0]).all()
        self.likely = Flips(proba).likely
        self.likely_counts = np.add.reduceat(self.likely, self.start)
        self.expected, self.mass, self.base = self._sums(
            np.stack([weight * proba, weight, weight * (self.likely - proba)])
        )
        self.variance = self._sums((weight**2 * proba * (1 - proba))[None])[0]

    def _sums(self, values):
        return np.add.reduceat(values, self.start, axis=1)

    def of_hits(self, hits):
        """For drawn hits (R, n), as (R, cells)."""
        if self.has_equal_weights:  # whole numbers are exact and fast, and nothing is copied
            counts = np.add.reduceat(hits[:, self.order], self.start, axis=1, dtype=np.int64)
            return self.weight[0] * (counts - self.likely_counts) + self.base
        sums = [
            self._sums(((row[self.order] - self.likely) * self.weight)[None])[0]
            for row in hits.astype(np.int32, copy=False)
        ]
        return np.array(sums) + self.base

    def of_signs(self, signs):
        """For observed residuals multiplied by signs (R, n), as (R, cells)."""
        return self._sums(signs[:, self.order] * (self.weight * (self.hit - self.proba)))


class LocalGaps(ResidualStatistic):
    """Gaps between confidence and accuracy in groups of similar confidence, at all resolutions.

    There are 1, 2, 4, … up to about √n groups of equal mass. Of each number of groups, the squared
    gaps in standard deviations are summed; the value is the largest of these sums, each on the
    scale of the logarithm of its chi-squared tail. Of two classes, groups and gaps are of the
    probability of the second.
    """

    def __init__(self, data: Predictions) -> None:
        self.data = data
        proba = data.proba if data.is_binary else data.confidence().proba
        self.top = 1 if data.is_binary else np.argmax(data.proba, axis=1)
        n_effective = 1 / data.share_of_one_sample
        self.n_groups = min(2 ** round(np.log2(n_effective) / 2), _MOST_GROUPS)
        hit = data.label == self.top
        self.cells = ResidualCells(proba, data.weight, hit, self.n_groups)
        self.one_label = data.share_of_one_sample / len(data.weight)

    def on(self, data: Predictions) -> "LocalGaps":
        return LocalGaps(data)

    def __call__(self, labels):
        hits = labels if self.data.is_binary else labels == self.top
        return self._value(self.cells.of_hits(hits))

    def of_signs(self, signs):
        return self._value(self.cells.of_signs(signs))

    def _value(self, sums):
        n_groups = self.n_groups
        gaps, variance = np.zeros((len(sums), n_groups)), np.zeros(n_groups)
        gaps[:, self.cells.occupied] = sums
        variance[self.cells.occupied] = self.cells.variance
        largest = np.full(len(sums), -np.inf)
        while True:
            squares = gaps**2 / (variance + self.one_label)
            surprise = -chi2.logsf(squares.sum(axis=1), max(np.sum(variance > 0), 1))
            largest = np.maximum(largest, surprise)
            if n_groups == 1:
                return largest
            n_groups //= 2
            gaps = gaps.reshape(len(gaps), n_groups, 2).sum(axis=2)
            variance = variance.reshape(n_groups, 2).sum(axis=1)


class PooledKernelError(ResidualStatistic):
    """The squared kernel error of two classes, with predictions moved to the mean of their cell.

    For many samples, whose exact error would take longer than drawing the labels: there are 4096
    cells of equal mass.
    """

    def __init__(self, data: Predictions, *, kernel: Any, bandwidth: float | str) -> None:
        self.data = data
        chosen = resolved_bandwidth(data, kernel, bandwidth)
        self.options: dict = {"kernel": kernel, "bandwidth": chosen}
        self.length = max(chosen, SMALLEST_BANDWIDTH) / KERNELS[kernel].per_probability
        self.cells = ResidualCells(data.proba, data.weight, data.label, MOST_CELLS)
        self.points = self.cells.expected / self.cells.mass

    def on(self, data: Predictions) -> "PooledKernelError":
        return PooledKernelError(data, **self.options)

    def __call__(self, labels):
        return self._value(self.cells.of_hits(labels))

    def of_signs(self, signs):
        return self._value(self.cells.of_signs(signs))

    def _value(self, mass):
        pairs = laplace_pair_sum(self.points, mass, self.length)
        return 2 * (pairs + np.einsum("rn,rn->r", mass, mass))
