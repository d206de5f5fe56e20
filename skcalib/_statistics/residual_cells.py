"""Statistics of residuals that are summed over cells of similar probability."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import chi2

from .._inputs.predictions import Predictions
from .._numerics.bins import quantile_bins
from .._numerics.laplace import laplace_pair_sum
from .kernels import KERNELS, SMALLEST_BANDWIDTH, resolved_bandwidth
from .residual_sums import ResidualStatistic, likelier_labels

# The most groups of similar predictions that are looked at.
_MOST_GROUPS = 1024

# Cells into which many predictions are pooled for the kernel error.
MOST_CELLS = 4096


class ResidualCells:
    """Weighted residuals of hits, summed over cells of similar probability and equal mass."""

    def __init__(self, proba, weight, squares, hit, n_cells):
        is_sorted = (proba[1:] >= proba[:-1]).all()
        self.order = slice(None) if is_sorted else np.argsort(proba, kind="stable")
        proba, weight, squares = proba[self.order], weight[self.order], squares[self.order]
        cell = quantile_bins(proba, weight, n_cells)
        self.start = np.flatnonzero(np.diff(cell, prepend=-1))
        self.occupied = cell[self.start]
        self.proba, self.weight, self.hit = proba, weight, hit[self.order]
        self.has_equal_weights = (weight == weight[0]).all()
        self.likely = likelier_labels(proba)
        self.likely_counts = np.add.reduceat(self.likely, self.start)
        self.expected, self.mass, self.base = self._sums(
            np.stack([weight * proba, weight, weight * (self.likely - proba)])
        )
        self.variance = self._sums((squares * proba * (1 - proba))[None])[0]

    def _sums(self, values):
        return np.add.reduceat(values, self.start, axis=1)

    def of_hits(self, hits):
        """For drawn hits, or shares of hits, (R, n), as (R, cells)."""
        is_share = hits.dtype.kind == "f"
        if self.has_equal_weights and not is_share:  # whole numbers: exact, fast and not copied
            counts = np.add.reduceat(hits[:, self.order], self.start, axis=1, dtype=np.int64)
            return self._of_counts(counts)
        sums = [
            self._sums(((row[self.order] - self.likely) * self.weight)[None])[0]
            for row in (hits if is_share else hits.astype(np.int32, copy=False))
        ]
        return np.array(sums) + self.base

    def _of_counts(self, counts):
        return self.weight[0] * (counts - self.likely_counts) + self.base

    def of_signs(self, signs):
        """For observed residuals multiplied by signs (R, n), as (R, cells)."""
        return self._sums(signs[:, self.order] * (self.weight * (self.hit - self.proba)))


class SumsOfCells:
    """The sums of `ResidualCells.of_hits`, added up over blocks of samples in any order."""

    def __init__(self, cells):
        self.cells = cells
        n = len(cells.proba)
        self.cell, self.weight, self.likely = np.empty(n, int), np.empty(n), np.empty(n, np.int32)
        self.cell[cells.order] = np.repeat(
            np.arange(len(cells.start)), np.diff(cells.start, append=n)
        )
        self.weight[cells.order] = cells.weight
        self.likely[cells.order] = cells.likely

    def start(self, n_draws):
        return np.zeros((len(self.cells.start), n_draws))

    def add(self, sums, rows, hits):
        """Add the hits (m, R) of the samples `rows`."""
        weight, values = np.ones(len(rows), np.float32), hits.astype(np.float32)
        if not self.cells.has_equal_weights:
            weight, values = self.weight[rows], hits - self.likely[rows, None]
        shape = (len(sums), len(rows))
        sums += (
            sparse.csc_array((weight, self.cell[rows], np.arange(len(rows) + 1)), shape) @ values
        )

    def finish(self, sums):
        """As (R, cells)."""
        if self.cells.has_equal_weights:
            return self.cells._of_counts(sums.T)
        return sums.T + self.cells.base


class LocalGaps(ResidualStatistic):
    """Gaps between confidence and accuracy in groups of similar confidence, at all resolutions.

    There are 1, 2, 4, … up to about √n groups of equal mass. Of each number of groups, the squared
    gaps in standard deviations are summed; the value is the largest of these sums, each on the
    scale of the logarithm of its chi-squared tail. Of two classes, groups and gaps are of the
    probability of the second.
    """

    def __init__(self, data: Predictions) -> None:
        super().__init__(data)
        proba = data.proba if data.is_binary else data.proba.max(axis=1).astype(np.float64)
        self.top = np.ones(len(proba), int) if data.is_binary else np.argmax(data.proba, axis=1)
        n_effective = 1 / data.share_of_one_sample
        self.n_groups = min(2 ** round(np.log2(n_effective) / 2), _MOST_GROUPS)
        hit = data.label if data.is_binary else data.label == self.top
        self.cells = ResidualCells(proba, data.weight, data.squares, hit, self.n_groups)
        if self.adds_up:
            self.sums_of_cells = SumsOfCells(self.cells)
        self.n_sums = len(self.cells.start)
        self.one_label = data.share_of_one_sample / data.n_samples

    def of_two_classes(self, labels):
        return self._value(self.cells.of_hits(labels))

    def start(self, n_draws):
        return self.sums_of_cells.start(n_draws)

    def add(self, sums, rows, labels):
        self.sums_of_cells.add(sums, rows, labels == self.top[rows, None])

    def finish(self, sums):
        return self._value(self.sums_of_cells.finish(sums))

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
        chosen = resolved_bandwidth(data, kernel, bandwidth)
        super().__init__(data, kernel=kernel, bandwidth=chosen)
        self.length = max(chosen, SMALLEST_BANDWIDTH) / KERNELS[kernel].per_probability
        self.cells = ResidualCells(data.proba, data.weight, data.squares, data.label, MOST_CELLS)
        self.points = self.cells.expected / self.cells.mass

    def of_two_classes(self, labels):
        return self._value(self.cells.of_hits(labels))

    def of_signs(self, signs):
        return self._value(self.cells.of_signs(signs))

    def _value(self, mass):
        pairs = laplace_pair_sum(self.points, mass, self.length)
        return 2 * (pairs + np.einsum("rn,rn->r", mass, mass))
