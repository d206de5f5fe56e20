"""Binary problems on the grid: what a state knows of each class, or of the confidence."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._inputs.predictions import Predictions
from .._numerics.grid import grid, nearest_on_grid
from ._tally import Sums, Tally, sums_of

# A decimal in single precision misses itself by at most this share.
_SINGLE = 2.0**-24

# Sums of equal weights agree up to this.
EQUAL = 1e-9


@dataclass(frozen=True)
class Rows:
    """How many samples rows stand for, and their weights."""

    count: np.ndarray | None = None  # (n,), None if each is one sample
    weight: np.ndarray | None = None  # sums of weights and squared weights (2, n), None if all 1
    moved: float | np.ndarray = 0.0  # how far the predictions may have been moved before

    @property
    def mass(self) -> np.ndarray | float:
        """The weight of each row."""
        if self.weight is not None:
            return self.weight[0]
        return 1.0 if self.count is None else self.count

    def n_samples(self, n: int) -> int:
        """The number of samples of n rows."""
        return n if self.count is None else int(self.count.sum())

    def total(self, n: int) -> float:
        """The weight of n rows."""
        return float(np.broadcast_to(self.mass, n).sum())

    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest weight of a sample; 0 and ∞ if a row has several."""
        if self.weight is None:
            return 1.0, 1.0
        mean = self.weight[0] / (1.0 if self.count is None else self.count)
        if not np.allclose(mean * self.weight[0], self.weight[1], rtol=EQUAL, atol=0):
            return 0.0, np.inf
        return float(mean.min()), float(mean.max())

    def take(self, rows: np.ndarray | slice) -> "Rows":
        return Rows(
            None if self.count is None else self.count[rows],
            None if self.weight is None else self.weight[:, rows],
            self.moved if np.ndim(self.moved) == 0 else self.moved[rows],  # type: ignore[index]
        )


class Problems:
    """P binary problems: probabilities on the grid, and events.

    The key of a sample is (problem · m + cell) · 2 + event, for m points of the grid.
    """

    def __init__(self, n_problems: int, decimals: int) -> None:
        self.decimals = decimals
        self.tally = Tally()
        self.moves = np.zeros(n_problems)  # Σ w |p − point|
        self.largest_moves = np.zeros(n_problems)
        self.is_off_grid = np.zeros(n_problems, dtype=bool)

    def add(
        self, problem: np.ndarray | int, proba: np.ndarray, event: np.ndarray, rows: Rows
    ) -> None:
        """Samples (n,) of the problems (n,), or of one."""
        points = grid(self.decimals)
        cell = nearest_on_grid(proba, self.decimals)
        move = np.abs(points[cell] - proba)
        if np.any(rows.moved):
            move += rows.moved
        is_off_grid = move > _SINGLE * proba
        key, n_keys = 2 * cell + event, 2 * len(points)
        if isinstance(problem, int):  # fewer keys are possible, which counts faster
            self.moves[problem] += np.sum(move * rows.mass)
            self.largest_moves[problem] = max(self.largest_moves[problem], move.max())
            self.is_off_grid[problem] |= is_off_grid.any()
            sums = sums_of(key, n_keys, rows.count, rows.weight)
            sums = sums._replace(key=sums.key + n_keys * problem)
        else:
            np.add.at(self.moves, problem, move * rows.mass)
            np.maximum.at(self.largest_moves, problem, move)
            self.is_off_grid[problem[is_off_grid]] = True
            key = key + n_keys * problem.astype(np.int64)
            sums = sums_of(key, n_keys * len(self.moves), rows.count, rows.weight)
        self.tally.merge(sums)

    def merge(self, other: "Problems") -> None:
        self.tally.merge(other.tally.sums)
        self.moves = self.moves + other.moves
        self.largest_moves = np.maximum(self.largest_moves, other.largest_moves)
        self.is_off_grid = self.is_off_grid | other.is_off_grid

    def part(self, k: int) -> "Problems":
        """One of the problems alone."""
        n_keys = 2 * len(grid(self.decimals))
        sums = self.tally.sums
        rows = slice(*np.searchsorted(sums.key, [k * n_keys, (k + 1) * n_keys]))
        weight = None if sums.weight is None else sums.weight[:, rows]
        own = Sums(sums.key[rows] - k * n_keys, sums.samples[rows], weight)
        return self._with(own, slice(k, k + 1))

    def united(self) -> "Problems":
        """All problems as one."""
        n_keys = 2 * len(grid(self.decimals))
        sums = self.tally.sums
        united = sums_of(sums.key % n_keys, n_keys, sums.samples, sums.weight)
        return self._with(united, slice(None))

    def _with(self, sums: Sums, parts: slice) -> "Problems":
        """A single problem with these sums, of what some of the problems hold."""
        problems = Problems(1, self.decimals)
        problems.tally = Tally(sums)
        problems.moves[0] = self.moves[parts].sum()
        problems.largest_moves[0] = self.largest_moves[parts].max()
        problems.is_off_grid[0] = self.is_off_grid[parts].any()
        return problems

    def predictions(self, classes: np.ndarray) -> "GridPredictions":
        """The only problem, one row for each point of the grid and label that occurs."""
        sums = self.tally.sums
        weight, square = sums.weights
        total = weight.sum()
        return GridPredictions(
            grid(self.decimals)[sums.key // 2],
            (sums.key % 2).astype(np.int32),
            weight / total,
            classes,
            square=square / total**2,
            mean_move=float(self.moves[0] / total),
            count=int(sums.samples.sum()),
        )

    def counted(self, classes: np.ndarray) -> "CountedPredictions":
        """The only problem, one row for each point of the grid; for equal weights."""
        sums = self.tally.sums
        cell, start = np.unique(sums.key // 2, return_index=True)
        size = np.add.reduceat(sums.samples, start)
        events = np.add.reduceat(sums.samples * (sums.key % 2), start)
        total = size.sum()
        return CountedPredictions(
            grid(self.decimals)[cell],
            events / size,
            size / total,
            classes,
            square=size / float(total) ** 2,
            size=size,
        )


@dataclass(frozen=True)
class GridPredictions(Predictions):
    """Two classes; each row stands for the samples at a point of the grid that have one label."""

    mean_move: float = 0.0  # the mean distance between predictions and points
    count: int = 0  # of samples

    @property
    def n_samples(self) -> int:
        return self.count


@dataclass(frozen=True)
class CountedPredictions(Predictions):
    """Two classes; each row stands for all samples at a point, of equal weight.

    Labels are shares of events, which are drawn as binomial counts.
    """

    size: np.ndarray = field(default_factory=lambda: np.ones(0, dtype=np.int64))  # (n,), samples

    def redraw(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """Shares of events if every label is drawn from its prediction, (size, n)."""
        return generator.binomial(self.size, self.proba, (size, len(self.proba))) / self.size

    @property
    def n_samples(self) -> int:
        return int(self.size.sum())

    def arguments(self, outcome: np.ndarray, proba: Any = None) -> tuple[Any, Any]:
        """What a metric gets for shares of events (n,): rows, which it takes as they are."""
        share = np.stack([1 - outcome, outcome])  # (2, n)
        label, row = np.nonzero(share)
        part = share[label, row]
        rows = GridPredictions(
            self.proba[row],
            label.astype(np.int32),
            self.weight[row] * part,
            self.classes,
            square=self.squares[row] * part,
            count=self.n_samples,
        )
        return rows, rows.proba

    def take(self, rows: np.ndarray | slice) -> "CountedPredictions":
        """Some of the rows; their weights sum to 1 again."""
        taken = super().take(rows)
        return replace(self, **vars(taken) | {"size": self.size[rows]})


def sample_rows(count: np.ndarray, n: int, random_state: Any) -> np.ndarray:
    """For each of n samples, drawn without replacement, its row; rows stand for several samples."""
    seed = check_random_state(random_state).randint(2**31 - 1)
    place = np.random.default_rng(seed).choice(int(count.sum()), n, replace=False)
    return np.searchsorted(np.cumsum(count), place, side="right")
