"""Sums that states keep: counts on the grid of probabilities, and of random features."""

from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np

from .._data import ClassData
from .._numerics.logits import iter_row_blocks
from .._numerics.sorting import first_of_ties
from .._statistics.gram import fourier_features, random_frequencies
from .._statistics.kernels import KERNELS

# Decimals in single precision differ from themselves by at most this fraction.
SINGLE_RTOL = 2.0**-24

# Equal weights differ by at most this fraction, as their sums are rounded.
WEIGHT_RTOL = 1e-9

# Differences of probabilities are exact up to this number.
_DIFFERENCE_ATOL = 1e-12

# New tables are merged once their keys outnumber the first number and those of the sorted table.
# Each table counts as the second number of extra keys, for its overhead.
_MIN_WAITING_KEYS, _KEYS_PER_TABLE = 2**16, 2**8

# Keys are counted in an array of all possible keys if it has at most this many for each sample.
_MAX_KEYS_PER_SAMPLE = 4

# Digits behind the point of the finest steps: 1 − 1e-15 is the last such number below 1 that
# double precision tells from its neighbours.
_MAX_DECIMALS = 15

# Between 0.01 and 0.99 all steps are the same: 0.01 has this many decimals.
_COARSE_DECIMALS = 2

Copyable = TypeVar("Copyable", "Tally", "FourierSums")


@dataclass(frozen=True)
class RowWeights:
    """The number of samples that each row stands for, and their weights."""

    count: np.ndarray | None = None  # (n,), None if each is one sample
    weight: np.ndarray | None = None  # sums of weights and squared weights (2, n), None if all 1
    rounding: float | np.ndarray = 0.0  # how far predictions may have been moved before

    @property
    def mass(self) -> np.ndarray | float:
        """The weight of each row."""
        if self.weight is not None:
            return self.weight[0]
        return 1.0 if self.count is None else self.count

    @property
    def weights(self) -> tuple[float, float]:
        """Two weights, such that one sample's is no larger and one's no smaller.

        They are the least and the largest, as far as sums tell.
        """
        if self.weight is None:
            return 1.0, 1.0
        mean, apart = self.weight[0], 0.0
        if self.count is not None:
            mean, square = self.weight / self.count
            variance = square - mean**2
            deviation = np.sqrt(np.where(variance > WEIGHT_RTOL * mean**2, variance, 0.0))
            apart = deviation / np.sqrt(np.maximum(self.count - 1, 1))
        return float(np.min(mean - apart)), float(np.max(mean + apart))

    def take(self, rows: np.ndarray | slice) -> "RowWeights":
        return RowWeights(
            None if self.count is None else self.count[rows],
            None if self.weight is None else self.weight[:, rows],
            self.rounding if np.ndim(self.rounding) == 0 else self.rounding[rows],  # type: ignore[index]
        )


class Sums(NamedTuple):
    """Counts and sums of weights for each key."""

    key: np.ndarray  # (m,), ascending
    samples: np.ndarray  # (m,), the number of samples
    weight: np.ndarray | None  # (2, m), sums of weights and squared weights; None if all are 1

    @property
    def weights(self) -> np.ndarray:
        """Sums of weights, and of squared weights, (2, m)."""
        if self.weight is None:
            return np.stack([self.samples, self.samples]).astype(np.float64)
        return self.weight


_EMPTY_SUMS = Sums(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), None)


class Tally:
    """P problems of two classes: sums for each point of the grid and event that occurs.

    The key of a sample is (problem · m + cell) · 2 + event, for m points of the grid. New sums wait
    in a list until there are as many as in the sorted table: so a sample costs the same on average
    whether it comes alone or with a million others.
    """

    def __init__(self, n_problems: int, decimals: int) -> None:
        self.decimals = decimals
        self.moves = np.zeros(n_problems)  # Σ w |p − point|
        self.max_moves = np.zeros(n_problems)
        self.is_off_grid = np.zeros(n_problems, dtype=bool)
        self._tables = [_EMPTY_SUMS]  # the sorted one, and those that wait to be merged
        self._n_waiting = 0

    @property
    def points(self) -> np.ndarray:
        """The points of the grid, (m,)."""
        return grid(self.decimals)

    @property
    def sums(self) -> Sums:
        """The sums of all samples; tables that wait are merged first."""
        if len(self._tables) > 1:
            self.sums = merge_tables(self._tables)
        return self._tables[0]

    @sums.setter
    def sums(self, sums: Sums) -> None:
        self._tables, self._n_waiting = [sums], 0

    def add(
        self, problem: np.ndarray | int, proba: np.ndarray, event: np.ndarray, rows: RowWeights
    ) -> None:
        """Add samples (n,) of the problems (n,), or all of one problem."""
        cell = nearest_on_grid(proba, self.decimals)
        move = np.abs(self.points[cell] - proba)
        if np.any(rows.rounding):
            move += rows.rounding
        is_off_grid = move > SINGLE_RTOL * proba
        key, n_keys = 2 * cell + event, 2 * len(self.points)
        if isinstance(problem, int):  # fewer keys are possible, which counts faster
            self.moves[problem] += np.sum(move * rows.mass)
            self.max_moves[problem] = max(self.max_moves[problem], move.max())
            self.is_off_grid[problem] |= is_off_grid.any()
            sums = sum_rows(key, n_keys, rows)
            self._append(sums._replace(key=sums.key + n_keys * problem))
        else:
            np.add.at(self.moves, problem, move * rows.mass)
            np.maximum.at(self.max_moves, problem, move)
            self.is_off_grid[problem[is_off_grid]] = True
            self._append(sum_rows(key + n_keys * problem, n_keys * len(self.moves), rows))

    def merge(self, other: "Tally") -> None:
        self._append(other.sums)
        self.moves += other.moves
        self.max_moves = np.maximum(self.max_moves, other.max_moves)
        self.is_off_grid |= other.is_off_grid

    def _append(self, sums: Sums) -> None:
        self._tables.append(sums)
        self._n_waiting += len(sums.key) + _KEYS_PER_TABLE
        if self._n_waiting > max(_MIN_WAITING_KEYS, len(self._tables[0].key)):
            self.sums = merge_tables(self._tables)

    def take_problem(self, k: int) -> "Tally":
        """Return the tally of problem k alone."""
        n_keys = 2 * len(self.points)
        key, samples, weight = self.sums
        rows = slice(*np.searchsorted(key, [k * n_keys, (k + 1) * n_keys]))
        weight = None if weight is None else weight[:, rows]
        sums = Sums(key[rows] - k * n_keys, samples[rows], weight)
        return self._make_single(sums, slice(k, k + 1))

    def merge_problems(self) -> "Tally":
        """Return the tally of all problems as one."""
        n_keys = 2 * len(self.points)
        key, samples, weight = self.sums
        sums = sum_rows(key % n_keys, n_keys, RowWeights(samples, weight))
        return self._make_single(sums, slice(None))

    def _make_single(self, sums: Sums, problem_slice: slice) -> "Tally":
        """Return the tally of a single problem with these sums, rounded like the given problems."""
        tally = Tally(1, self.decimals)
        tally.sums = sums
        tally.moves[0] = self.moves[problem_slice].sum()
        tally.max_moves[0] = self.max_moves[problem_slice].max()
        tally.is_off_grid[0] = self.is_off_grid[problem_slice].any()
        return tally

    def to_data(self, classes: np.ndarray) -> ClassData:
        """Return the only problem as data, a row for each point and label that occur."""
        key, samples, _ = self.sums
        weight, square = self.sums.weights
        total = weight.sum()
        return ClassData(
            self.points[key // 2],
            (key % 2).astype(np.int32),
            classes,
            weight=weight / total,
            square=square / total**2,
            count=samples,
            mean_rounding=float(self.moves[0] / total),
        )

    def shares(self, classes: np.ndarray) -> ClassData:
        """Return the only problem as data, one row for each point, labelled by its share of events.

        All samples must have the same weight.
        """
        key, samples, _ = self.sums
        cell, start = np.unique(key // 2, return_index=True)
        count = np.add.reduceat(samples, start)
        events = np.add.reduceat(samples * (key % 2), start)
        total = count.sum()
        return ClassData(
            self.points[cell],
            events / count,
            classes,
            weight=count / total,
            square=count / float(total) ** 2,
            count=count,
        )


def copy_arrays(original: Copyable) -> Copyable:
    """A copy that can take more samples while the original stays as it is."""
    duplicate = copy(original)
    vars(duplicate).update((name, copy(value)) for name, value in vars(original).items())
    return duplicate


def sum_rows(key: np.ndarray, n_keys: int, rows: RowWeights) -> Sums:
    """The sums of rows with keys (n,) of 0, …, n_keys − 1."""
    if n_keys > _MAX_KEYS_PER_SAMPLE * len(key):
        samples = np.ones(len(key), dtype=np.int64) if rows.count is None else rows.count
        return merge_tables([Sums(key, samples, rows.weight)])
    samples = np.bincount(key, rows.count, n_keys).astype(np.int64, copy=False)  # below 2^53
    occurs = np.flatnonzero(samples)
    weight = rows.weight
    if weight is not None:
        weight = np.stack([np.bincount(key, values, n_keys)[occurs] for values in weight])
    return Sums(occurs, samples[occurs], weight)


def merge_tables(tables: list[Sums]) -> Sums:
    """The sums of all rows of the tables, which may repeat keys in any order."""
    key = np.concatenate([table.key for table in tables])
    order = np.argsort(key)
    key = key[order]
    start = np.flatnonzero(first_of_ties(key))
    samples = np.concatenate([table.samples for table in tables])
    weight = None
    if any(table.weight is not None for table in tables):
        weight = np.concatenate([table.weights for table in tables], axis=1)
        weight = np.add.reduceat(weight[:, order], start, axis=1)
    return Sums(key[start], np.add.reduceat(samples[order], start), weight)


class FourierSums:
    """Σ w φ(p) (e_y − p)ᵀ of random features φ with ⟨φ(p), φ(q)⟩ ≈ k(p, q), and Σ w² ‖e_y − p‖²."""

    def __init__(
        self, n_classes: int, n_components: int, kernel: str, bandwidth: float, seed: int
    ) -> None:
        self.frequencies = random_frequencies(
            KERNELS[kernel], bandwidth, (n_components, n_classes), np.random.default_rng(seed)
        )
        self.gap = np.zeros((n_classes, 2 * n_components))
        self.total = np.zeros(3)  # Σ w, Σ w² and Σ w² ‖e_y − p‖²
        self.is_rounded = False  # True if any predictions were rounded before

    def add(self, proba: np.ndarray, label: np.ndarray, rows: RowWeights) -> None:
        """Add rows of probabilities (n, K), and labels (n,)."""
        mass = np.broadcast_to(rows.mass, len(label)).astype(np.float64)
        square = mass if rows.weight is None else rows.weight[1]
        for block in iter_row_blocks(len(label), self.gap.shape[1], min_rows=len(self.gap)):
            residual = -proba[block].astype(np.float64)
            residual[np.arange(len(residual)), label[block]] += 1
            self.total[2] += square[block] @ np.einsum("nk,nk->n", residual, residual)
            residual *= mass[block, None]
            self.gap += residual.T @ fourier_features(proba[block], self.frequencies)
        self.total[:2] += mass.sum(), square.sum()
        self.is_rounded |= bool(np.any(rows.rounding))

    def merge(self, other: "FourierSums") -> None:
        self.gap += other.gap
        self.total += other.total
        self.is_rounded |= other.is_rounded

    def squared_error(self, estimation: str) -> float:
        """The "biased" or "unbiased" estimate."""
        biased = float(np.sum(self.gap**2))
        weight, square, diagonal = self.total.tolist()
        if estimation == "biased":
            return biased / weight**2
        return (biased - diagonal) / (weight**2 - square)


def add_classes(
    tallies: dict[str, Tally],
    sums: FourierSums | None,
    proba: np.ndarray,
    label: np.ndarray,
    rows: RowWeights,
) -> None:
    """Add probabilities (n, K) of more than two classes to the tallies and sums of a state."""
    top = np.argmax(proba, axis=1)
    confidence = proba.max(axis=1).astype(np.float64, copy=False)
    unsure = _confidence_weights(proba, confidence, rows)
    tallies["top-label"].add(top, confidence, label == top, unsure)
    for k in range(proba.shape[1]):
        tallies["classwise"].add(k, proba[:, k].astype(np.float64), label == k, rows)
    if sums is not None:
        sums.add(proba, label, rows)


def _confidence_weights(proba: np.ndarray, confidence: np.ndarray, rows: RowWeights) -> RowWeights:
    """Return the rows, with infinite rounding where it may have changed the predicted class."""
    if np.all(rows.rounding == 0):
        return rows
    second = np.partition(proba, -2, axis=1)[:, -2]
    is_unsure = confidence - second <= 2 * rows.rounding + _DIFFERENCE_ATOL
    return replace(rows, rounding=np.where(is_unsure, np.inf, rows.rounding))


@cache
def grid(decimals: int) -> np.ndarray:
    """The ascending points (m,), symmetric about 1/2: p is one of them if and only if 1 − p is.

    Between 0.01 and 0.99 they are the numbers with `decimals` decimals. Each decade nearer to 0 or
    1 has one decimal more, as far as double precision goes. All are the doubles nearest to decimal
    numbers. 0 and 1 stand alone.
    """
    finest = 10**_MAX_DECIMALS
    decades = [np.array([0], dtype=np.int64)]
    lowest = 10 ** (decimals - _COARSE_DECIMALS)
    for digits in range(_MAX_DECIMALS, decimals, -1):  # 10^-(digits − decimals + 2) and above
        step = 10 ** (_MAX_DECIMALS - digits)
        decades.append(step * np.arange(lowest, 10 * lowest, dtype=np.int64))
    step = 10 ** (_MAX_DECIMALS - decimals)
    decades.append(step * np.arange(lowest, 10**decimals // 2, dtype=np.int64))
    left = np.concatenate(decades)
    points = np.concatenate([left, [finest // 2], finest - left[::-1]]) / finest
    points.flags.writeable = False
    return points


@cache
def _middles(decimals: int) -> np.ndarray:
    """The numbers between neighbouring points, from which on the upper one is nearest, (m − 1,)."""
    points = grid(decimals)
    middles = (points[1:] + points[:-1]) / 2
    middles[0], middles[-1] = 0.0, np.nextafter(1.0, 0.0)  # only 0 and 1 are rounded to 0 and 1
    return middles


def nearest_on_grid(proba: np.ndarray, decimals: int) -> np.ndarray:
    """The indices of the nearest points of the grid, (...), for probabilities (...) in [0, 1]."""
    scale, coarse = 10**decimals, 10 ** (decimals - _COARSE_DECIMALS)
    n_below = (len(grid(decimals)) - 1) // 2 - (scale // 2 - coarse)  # points below 0.01
    index = np.rint(proba * scale).astype(np.int32)
    index += n_below - coarse
    is_tail = (index <= n_below) | (index >= len(grid(decimals)) - 1 - n_below)
    index[is_tail] = np.searchsorted(_middles(decimals), proba[is_tail], side="left")
    return index
