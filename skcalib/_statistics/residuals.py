"""Statistics that are functions of sums of residuals, for batches of drawn labels.

Each takes labels (R, n), and gives R values. Of more than two classes, the sums are taken over
blocks of samples. Where samples of a group depend on each other, labels cannot be drawn; then each
statistic takes signs (R, n) by which the observed residuals are multiplied.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import chdtrc, log_ndtr

from .._data import ClassData
from .._numerics.array_api import take_labels
from .._numerics.logits import iter_row_blocks, log_odds
from .._numerics.sorting import quantile_bins
from .base import BlockSums, Statistic

# If the mean confidence is larger, few labels are a surprise: they are added up alone, as the
# rounding of sums over all labels would break ties.
_MOSTLY_CERTAIN = 0.9


# The most groups of similar predictions that are looked at.
_MAX_GAP_GROUPS = 1024

# The most neighbouring groups that are merged.
_MAX_MERGED_GROUPS = 3

# Tails of sums of squared gaps that are smaller are not told apart.
_MIN_TAIL = np.finfo(np.float64).tiny


class ResidualStatistic(Statistic):
    """A statistic of class probabilities that is made of residuals.

    With two classes there are no sums over blocks, as there is a faster way.
    """

    supports = frozenset({"any-order", "counts", "groups"})

    n_sums = 1  # numbers in the sums of one draw

    # Sums of some draws, what adds rows of labels to them, and what makes values of them.
    _init_sums: Callable[[int], np.ndarray]
    _update_sums: Callable[[np.ndarray, np.ndarray, np.ndarray], None]
    _values_from_sums: Callable[[np.ndarray], np.ndarray]

    def __init__(self, data: ClassData, **options: Any) -> None:
        self.data, self.options = data, options
        if data.is_binary:
            self.likely = (data.proba > 0.5).astype(np.int32)

    @property
    def sums(self) -> BlockSums | None:
        if self.data.is_binary:
            return None
        return BlockSums(self.n_sums, self._init_sums, self._update_sums, self._values_from_sums)

    def is_unlikely(self, labels: np.ndarray) -> np.ndarray:
        """Mark labels (R, n) of two classes that are not the likelier ones; for shares, their part.

        Sums of residuals of almost certain predictions are tiny. They would be lost in the rounding
        of sums over all labels, and draws that are tied would differ: so changes are added up.
        """
        is_share = labels.dtype.kind == "f"
        return np.abs(labels - self.likely) if is_share else labels != self.likely


class ScoreExcess(ResidualStatistic):
    """A proper score minus its expectation: positive for overconfident predictions."""

    is_two_sided = True

    def __init__(self, data: ClassData, score: str) -> None:
        super().__init__(data, score=score)
        self.score = score
        if data.is_binary:
            excess, rows = self._excess(slice(None)), np.arange(len(data.proba))
            likely, unlikely = excess[rows, self.likely], excess[rows, 1 - self.likely]
            self.base = float(likely.sum())
            self.certain = np.flatnonzero(np.isinf(unlikely))
            self.change = np.where(np.isinf(unlikely), 0.0, unlikely - likely)

    def _excess(self, rows: np.ndarray | slice) -> np.ndarray:
        """The weighted excess of each label of some samples (m, K), infinite if impossible."""
        proba, weight = self.data.proba[rows], self.data.weight[rows]
        if self.data.is_binary:
            proba = np.column_stack([1 - proba, proba])
        proba = np.ascontiguousarray(proba, dtype=np.float64)
        if self.score == "log_loss":
            with np.errstate(divide="ignore", invalid="ignore"):
                excess = -np.log(proba)
                expected = np.where(proba > 0, excess * proba, 0.0).sum(axis=1)
        else:  # the Brier score; of two classes, half the sum over both, as scikit-learn has it
            scale = 0.5 if self.data.is_binary else 1.0
            square = np.einsum("nk,nk->n", proba, proba)
            excess = scale * (square[:, None] + 1 - 2 * proba)
            expected = scale * (1 - square)
        excess -= expected[:, None]
        excess *= weight[:, None]
        return excess

    def __call__(self, labels: np.ndarray) -> np.ndarray:
        if not self.data.is_binary:
            return super().__call__(labels)
        flips = self.is_unlikely(labels)
        value = flips @ self.change + self.base
        value[flips[:, self.certain].any(axis=1)] = np.inf
        return value

    def _init_sums(self, n_draws: int) -> np.ndarray:
        return np.zeros(n_draws)

    def _update_sums(self, sums: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> None:
        for block in iter_cache_blocks(labels, self.data):
            sums += take_labels(self._excess(rows[block]), labels[block]).sum(axis=0)

    def _values_from_sums(self, sums: np.ndarray) -> np.ndarray:
        return sums

    def flip_signs(self, signs: np.ndarray) -> np.ndarray:
        data, observed = self.data, np.empty(len(self.data.label))
        for rows in iter_row_blocks(len(data.label), len(data.classes)):
            observed[rows] = take_labels(self._excess(rows), data.label[rows, None])[:, 0]
        largest = np.max(np.abs(observed), where=np.isfinite(observed), initial=1.0)
        return signs @ np.minimum(observed, largest)  # a sign of ∞ means nothing


class ClasswiseScoreTest(ResidualStatistic):
    """Finds a class that is predicted too often or too extremely: the largest value of all.

    These are the scores of intercept and slope of a logistic regression of the class on its own
    log-odds, squared and divided by their variances. Of a class that is hardly ever expected a
    single label is no evidence; so the variances are increased by that of one label.
    """

    def __init__(self, data: ClassData) -> None:
        super().__init__(data)
        self.n_columns = 1 if data.is_binary else data.proba.shape[1]
        self.n_sums = 2 * self.n_columns
        level, centre = np.zeros((2, self.n_columns))
        for rows, proba, _ in self._blocks():
            information = data.squares[rows][:, None] * proba * (1 - proba)
            level += information.sum(axis=0)
            centre += np.sum(information * log_odds(proba), axis=0)
        self.centre = np.divide(centre, level, out=np.zeros_like(centre), where=level > 0)
        spread_variance = np.zeros(self.n_columns)
        # sums of the probabilities, and of what is left if every label is the likeliest
        expected, surplus = np.zeros((2, 2, self.n_columns))
        certainty = 0.0
        for rows, proba, weight in self._blocks():
            spread = log_odds(proba) - self.centre
            information = data.squares[rows][:, None] * proba * (1 - proba)
            spread_variance += np.sum(information * spread**2, axis=0)
            is_top = proba.argmax(axis=1)[:, None] == np.arange(self.n_columns)
            gap = (proba > 0.5 if data.is_binary else is_top) - proba
            for sums, values in ((expected, proba), (surplus, gap)):
                sums += [np.sum(weight * values, axis=0), np.sum(weight * spread * values, axis=0)]
            certainty += float(np.sum(data.weight[rows] * proba.max(axis=1)))
        if data.is_binary:
            weight = data.weight * (1.0 - 2.0 * self.likely)
            spread = log_odds(data.proba) - self.centre[0]
            self.flip_columns = np.column_stack([weight, weight * spread])
        self.is_mostly_certain = certainty > _MOSTLY_CERTAIN
        self.base = surplus if data.is_binary or self.is_mostly_certain else -expected
        one_label = data.inverse_effective_size / data.n_samples
        variance = np.stack([level, spread_variance])
        with np.errstate(divide="ignore", invalid="ignore"):  # where a class cannot occur
            self.scale = np.where(variance > 0, variance + one_label * (variance / level), np.inf)

    def _blocks(self) -> Any:
        """Rows, probabilities (m, C) and weights (m, 1)."""
        for rows in iter_row_blocks(len(self.data.weight), self.n_columns):
            proba = self.data.proba[rows].reshape(-1, self.n_columns)
            yield rows, proba.astype(np.float64, copy=False), self.data.weight[rows, None]

    def __call__(self, labels: np.ndarray) -> np.ndarray:
        return self._values_from_sums(self.sum_by_class(labels))

    def sum_by_class(self, labels: np.ndarray) -> np.ndarray:
        """Sums of residuals, and of residuals times log-odds, (2, R, C) for labels (R, n)."""
        if self.data.is_binary:
            return (self.is_unlikely(labels) @ self.flip_columns).T[:, :, None] + self.base[:, None]
        sums = self._init_sums(len(labels))
        self._update_sums(sums, np.arange(labels.shape[1]), np.ascontiguousarray(labels.T))
        return sums

    def _init_sums(self, n_draws: int) -> np.ndarray:
        return np.repeat(self.base[:, None], n_draws, axis=1)

    def _update_sums(self, sums: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> None:
        iter_updates = self._unlikely_updates if self.is_mostly_certain else self._labels
        n_draws = labels.shape[1]
        # all cells are added up for each part: it has at least as many samples as classes
        for block in iter_cache_blocks(labels, self.data, min_rows=self.n_columns):
            for sum_, cell, values in iter_updates(rows[block], labels[block], sums):
                sum_ += np.bincount(cell, values, sum_.size).reshape(n_draws, -1)

    def _labels(self, rows: np.ndarray, labels: np.ndarray, sums: np.ndarray) -> Any:
        """For each sum, the cells (of draw and class) and the numbers that are added to them."""
        cell = (labels + self.n_columns * np.arange(labels.shape[1])).ravel()
        weight = self.data.weight[rows, None]
        yield sums[0], cell, np.broadcast_to(weight, labels.shape).ravel()
        yield sums[1], cell, (weight * self._center_log_odds(rows, labels)).ravel()

    def _unlikely_updates(self, rows: np.ndarray, labels: np.ndarray, sums: np.ndarray) -> Any:
        """Cells and numbers for the change by labels that are not the likeliest."""
        top = self.data.proba[rows].argmax(axis=1).astype(np.int32)
        row, draw = np.nonzero(labels != top[:, None])
        weight = self.data.weight[rows][row]
        for label, sign in ((labels[row, draw], weight), (top[row], -weight)):
            cell = draw * self.n_columns + label
            yield sums[0], cell, sign
            yield sums[1], cell, sign * self._center_log_odds(rows[row], label[:, None])[:, 0]

    def _center_log_odds(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The log-odds of the labels (m, R), centred."""
        proba = np.ascontiguousarray(self.data.proba[rows], dtype=np.float64)
        if labels.shape[1] < self.n_columns:
            return log_odds(take_labels(proba, labels)) - self.centre[labels]
        return take_labels(log_odds(proba) - self.centre, labels)

    def _values_from_sums(self, sums: np.ndarray) -> np.ndarray:
        squares = np.sum(sums**2 / self.scale[:, None], axis=0)
        return squares.max(axis=1)

    def flip_signs(self, signs: np.ndarray) -> np.ndarray:
        sums = np.zeros((2, len(signs), self.n_columns))
        for rows, proba, weight in self._blocks():
            label = self.data.label[rows, None]
            hit = label == (1 if self.data.is_binary else np.arange(self.n_columns))
            residual = weight * (hit - proba)
            sums[0] += signs[:, rows] @ residual
            sums[1] += signs[:, rows] @ (residual * (log_odds(proba) - self.centre))
        return self._values_from_sums(sums)


class BinnedResiduals:
    """Weighted residuals of hits, summed over cells of similar probability and equal mass."""

    def __init__(self, proba: Any, weight: Any, squares: Any, hit: Any, n_cells: int) -> None:
        is_sorted = (proba[1:] >= proba[:-1]).all()
        self.order = slice(None) if is_sorted else np.argsort(proba, kind="stable")
        proba, weight, squares = proba[self.order], weight[self.order], squares[self.order]
        cell = quantile_bins(proba, weight, n_cells)
        self.start = np.flatnonzero(np.diff(cell, prepend=-1))
        self.occupied = cell[self.start]
        self.proba, self.weight, self.hit = proba, weight, hit[self.order]
        self.has_equal_weights = (weight == weight[0]).all()
        self.likely = (proba > 0.5).astype(np.int32)
        values = [weight * proba, weight, squares * proba * (1 - proba)]
        values += [weight * (self.likely - proba), self.likely]
        sums = np.add.reduceat(np.stack(values), self.start, axis=1)
        self.expected, self.mass, self.variance, self.base, self.likely_counts = sums

    def bin_hits(self, hits: np.ndarray) -> np.ndarray:
        """For drawn hits, or shares of hits, (R, n), as (R, cells)."""
        if self.has_equal_weights and hits.dtype.kind != "f":  # exact, fast and not copied
            counts = np.add.reduceat(hits[:, self.order], self.start, axis=1, dtype=np.int64)
            return self.weight[0] * (counts - self.likely_counts) + self.base
        rows = ((row[self.order] - self.likely) * self.weight for row in hits)
        return np.array([np.add.reduceat(row, self.start) for row in rows]) + self.base

    def flip_signs(self, signs: np.ndarray) -> np.ndarray:
        """For observed residuals multiplied by signs (R, n), as (R, cells)."""
        residuals = self.weight * (self.hit - self.proba)
        return np.add.reduceat(signs[:, self.order] * residuals, self.start, axis=1)

    @cached_property
    def positions(self) -> tuple[Any, ...]:
        """Return the rank of each sample, and the cell of each rank."""
        n = len(self.proba)
        position = np.empty(n, np.intp)
        position[self.order] = np.arange(n)
        return position, np.repeat(np.arange(len(self.start)), np.diff(self.start, append=n))

    def add_hits(self, sums: np.ndarray, rows: np.ndarray, hits: np.ndarray) -> None:
        """Add hits (m, R) of the samples `rows`, less the likelier outcomes, to (cells, R)."""
        position, cell = self.positions
        at = position[rows]
        change, weight = hits - self.likely[at, None], self.weight[at]
        if self.has_equal_weights:  # whole numbers, whose sums are exact
            change, weight = change.astype(np.float32), np.ones(len(rows), np.float32)
        shape = (len(sums), len(rows))
        sums += sparse.csc_array((weight, cell[at], np.arange(len(rows) + 1)), shape) @ change

    def residuals_from_sums(self, sums: np.ndarray) -> np.ndarray:
        """The residual in each cell, (R, cells), once the changes of all samples were added."""
        return (self.weight[0] if self.has_equal_weights else 1.0) * sums.T + self.base


class MultiResolutionGaps(ResidualStatistic):
    """Gaps between confidence and accuracy in groups of similar confidence, at all resolutions.

    There are 1, 2, 4, … up to about √n groups of equal mass. Of each number of groups, the squared
    gaps in standard deviations are summed, which finds errors everywhere; and the largest squared
    gap of one group, or of two or three neighbours merged, finds one in a small range. The value
    is the largest of all, each on the scale of the logarithm of its chi-squared tail; the largest
    gap pays for the number of groups. Of two classes, groups and gaps are of the probability of
    the second.
    """

    def __init__(self, data: ClassData) -> None:
        super().__init__(data)
        proba, hit = data.proba, data.label
        if not data.is_binary:
            self.top = np.argmax(proba, axis=1)
            proba, hit = proba.max(axis=1).astype(np.float64), data.label == self.top
        n_effective = 1 / data.inverse_effective_size
        self.n_groups = min(2 ** round(np.log2(n_effective) / 2), _MAX_GAP_GROUPS)
        self.cells = BinnedResiduals(proba, data.weight, data.squares, hit, self.n_groups)
        self.n_sums = len(self.cells.start)
        self.one_label = data.inverse_effective_size / data.n_samples

    def __call__(self, labels: np.ndarray) -> np.ndarray:
        if not self.data.is_binary:
            return super().__call__(labels)
        return self._values_from_cells(self.cells.bin_hits(labels))

    def _init_sums(self, n_draws: int) -> np.ndarray:
        return np.zeros((self.n_sums, n_draws))

    def _update_sums(self, sums: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> None:
        self.cells.add_hits(sums, rows, labels == self.top[rows, None])

    def _values_from_sums(self, sums: np.ndarray) -> np.ndarray:
        return self._values_from_cells(self.cells.residuals_from_sums(sums))

    def flip_signs(self, signs: np.ndarray) -> np.ndarray:
        return self._values_from_cells(self.cells.flip_signs(signs))

    def _values_from_cells(self, sums: np.ndarray) -> np.ndarray:
        """Values (R,) of gaps (R, cells)."""
        n_groups = self.n_groups
        gaps, variance = np.zeros((len(sums), n_groups)), np.zeros(n_groups)
        gaps[:, self.cells.occupied] = sums
        variance[self.cells.occupied] = self.cells.variance
        largest = np.full(len(sums), -np.inf)
        while True:
            n_filled = np.maximum(np.sum(variance > 0), 1)
            squares = gaps**2 / (variance + self.one_label)
            peak, merged, merged_variance = squares.max(axis=1), gaps, variance
            for width in range(2, min(n_groups, _MAX_MERGED_GROUPS) + 1):
                merged = merged[:, :-1] + gaps[:, width - 1 :]
                merged_variance = merged_variance[:-1] + variance[width - 1 :]
                gap_square = merged**2 / (merged_variance + self.one_label)
                peak = np.maximum(peak, gap_square.max(axis=1))
            tail = chdtrc(n_filled, squares.sum(axis=1))
            largest = np.maximum(largest, -np.log(np.maximum(tail, _MIN_TAIL)))
            largest = np.maximum(largest, -log_ndtr(-np.sqrt(peak)) - np.log(2 * n_filled))
            if n_groups == 1:
                return largest
            n_groups //= 2
            gaps = gaps.reshape(len(gaps), n_groups, 2).sum(axis=2)
            variance = variance.reshape(n_groups, 2).sum(axis=1)


def iter_cache_blocks(labels: np.ndarray, data: ClassData, min_rows: int = 1) -> Iterator[slice]:
    """Slices of the samples of labels (m, R) whose probabilities and labels stay in the cache."""
    n_samples, n_draws = labels.shape
    return iter_row_blocks(n_samples, max(n_draws, data.proba.shape[1]), min_rows=min_rows)
