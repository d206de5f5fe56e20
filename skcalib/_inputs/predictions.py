"""The data every measure, test and recalibrator works on, once it has been checked."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .._numerics.pooled import Pooled, pooled
from .._numerics.sorting import pool_sorted, pool_ties, sort_labelled
from .drawing import draw_labels

# Rows of double precision that sum to 1 miss it by less than this.
_ROUNDING = 1e-12

# Numbers in the columns that are copied at once (8 MB).
_COLUMNS = 2**20


@dataclass(frozen=True)
class Predictions:
    """Checked predictions. With two classes `proba` is the probability of the second one.

    Keeping one number instead of two complementary ones makes `(n,)` and `(n, 2)` input the same
    by construction, and saves half the memory. The reductions of K classes to two are such
    `Predictions` again.

    Single precision of K classes stays what it is, as double precision would take twice the memory
    of what may be the largest array there is. Numbers are computed in double precision all the
    same: of `doubles`, `matrix`, `columns`, or of blocks of rows.
    """

    kind: ClassVar[str] = "classes"

    proba: np.ndarray  # (n,) for two classes, else (n, K), perhaps in single precision
    label: np.ndarray  # (n,), index into classes
    weight: np.ndarray  # (n,), positive, sums to 1
    classes: np.ndarray  # (K,)
    given: np.ndarray | None = None  # (n, d), or (n,) labels of groups: conditioned on
    log_proba: np.ndarray | None = None  # (n, K), of logits: these tell more than `proba`
    groups: np.ndarray | None = None  # (n,), codes: samples of a group are not independent
    # (n,), Σ w² of the samples that a row stands for; None if each is one sample
    square: np.ndarray | None = None
    # (n,), how many samples a row stands for; None if each is one. Outcomes are shares of events
    # if rows stand for several.
    count: np.ndarray | None = None
    mean_move: float = 0.0  # how far predictions were moved to a grid, on average

    @property
    def is_binary(self) -> bool:
        return self.proba.ndim == 1

    @property
    def doubles(self) -> np.ndarray:
        """`proba` in double precision."""
        return self.proba.astype(np.float64, copy=False)

    @property
    def matrix(self) -> np.ndarray:
        """The probabilities of all classes in double precision, (n, K)."""
        return np.column_stack([1 - self.proba, self.proba]) if self.is_binary else self.doubles

    def columns(self) -> Iterator[np.ndarray]:
        """The probabilities (n,) of one class after another, in double precision."""
        at_once = max(1, _COLUMNS // len(self.proba))
        for k in range(0, self.proba.shape[1], at_once):
            yield from self.proba[:, k : k + at_once].T.astype(np.float64, order="C")

    @property
    def simplex(self) -> np.ndarray:
        """`matrix`; rows whose sum is not 1 in double precision are divided by it."""
        matrix = self.matrix if self.is_binary else self.proba.astype(np.float64)
        total = matrix.sum(axis=1, keepdims=True)
        inexact = np.abs(total - 1) > _ROUNDING
        return np.divide(matrix, total, out=matrix, where=inexact)

    @property
    def share_of_one_sample(self) -> float:
        """Σ w_i², one over the effective number of samples; 1/n for equal weights."""
        return float(self.weight @ self.weight if self.square is None else self.square.sum())

    @property
    def squares(self) -> np.ndarray:
        """Σ w² of the samples that each row stands for, (n,)."""
        return self.weight**2 if self.square is None else self.square

    @property
    def n_samples(self) -> int:
        """The number of samples, of which a row may stand for several."""
        return self.weight.shape[0] if self.count is None else int(self.count.sum())

    def on_host(self) -> "Predictions":
        """The same in arrays of NumPy."""
        return self

    @property
    def outcome(self) -> np.ndarray:
        """What was observed, and what `redraw` draws anew, (n,)."""
        return self.label

    def take(self, rows: np.ndarray | slice) -> "Predictions":
        """Some of the samples, possibly repeated; their weights sum to 1 again."""
        weight = self.weight[rows]
        total = weight.sum()
        is_equal = self.weight.strides == (0,)  # no weights were passed: 1/n to the last bit
        return replace(
            self,
            proba=self.proba[rows],
            label=self.label[rows],
            weight=np.broadcast_to(1 / len(weight), len(weight)) if is_equal else weight / total,
            square=None if self.square is None else self.square[rows] / total**2,
            count=None if self.count is None else self.count[rows],
            given=None if self.given is None else self.given[rows],
            log_proba=None if self.log_proba is None else self.log_proba[rows],
            groups=None if self.groups is None else self.groups[rows],
        )

    def redraw(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """Independent outcomes drawn from the predictions, (size, n)."""
        if self.count is not None:
            return generator.binomial(self.count, self.proba, (size, len(self.proba))) / self.count
        return draw_labels(self.proba, size, generator)

    def with_outcome(self, outcome: np.ndarray) -> "Predictions":
        """The same predictions with other outcomes (n,).

        Rows that stand for several samples are split into those without and with the event.
        """
        if self.count is None:
            return replace(self, label=outcome)
        share = np.stack([1 - outcome, outcome])  # (2, n)
        label, row = np.nonzero(share)
        part = share[label, row]
        return replace(
            self,
            proba=self.proba[row],
            label=label.astype(np.int32),
            weight=self.weight[row] * part,
            square=self.squares[row] * part,
            count=np.rint(self.count[row] * part).astype(np.int64),
        )

    def arguments(
        self, outcome: np.ndarray, proba: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """What a metric gets for one vector of outcomes (n,): labels and probabilities.

        These are `proba`, or those of the predictions, if they were made ready by `shown`.
        """
        if self.count is not None:
            rows = self.with_outcome(outcome)
            return rows, rows.proba  # type: ignore[return-value]
        return self.classes[outcome], self.proba if proba is None else proba

    def shown(self, *, as_matrix: bool, as_simplex: bool) -> tuple[np.ndarray]:
        """The probabilities for `arguments`, in one column or several, that none may change.

        Rows that sum to 1 in double precision are for functions that are not ours.
        """
        if as_simplex:
            proba = self.simplex if as_matrix else self.doubles
        else:
            proba = self.matrix if as_matrix and self.is_binary else self.proba
        proba = proba.view()
        proba.flags.writeable = False  # it may be the caller's
        return (proba,)

    @property
    def known(self) -> dict[str, Any]:
        """Further arguments of metrics, by their names."""
        given = {} if self.given is None else {"given": self.given}
        return {"labels": self.classes} | given

    def canonical_order(self) -> np.ndarray:
        """Indices (n,) that sort the samples by their values, in whatever order they came.

        They are sorted by the largest probability, and where that is tied by everything else.
        """
        largest = self.proba if self.is_binary else self.proba.max(axis=1)
        order = np.argsort(largest, kind="stable")
        same = np.diff(largest[order]) == 0
        is_tied = np.append(same, False) | np.append(False, same)
        tied = order[is_tied]
        columns = [*np.atleast_2d(self.proba[tied].T)]
        if self.given is not None:
            columns += [*np.atleast_2d(self.given[tied].T)]
        order[is_tied] = tied[np.lexsort((self.weight[tied], *columns, largest[tied]))]
        return order

    def sorted(self) -> "Predictions":
        """The same samples in an order of their own, in whatever order they came.

        A sum depends on the order by rounding, and so does what almost certain predictions leave
        almost undetermined.
        """
        known = self.proba if self.log_proba is None else self.log_proba
        first = np.lexsort((self.weight, self.label))
        rows = np.ascontiguousarray(known[first])
        if rows.ndim == 2:  # compared as bytes, which any order may do
            rows = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
        return self.take(first[np.argsort(rows, kind="stable")])

    @property
    def signed_mass(self) -> np.ndarray:
        """c_i = w_i (y_i − p_i) of two classes, (n,)."""
        mass = self.label - self.proba
        mass *= self.weight
        return mass

    def pooled_mass(self) -> tuple[np.ndarray, np.ndarray]:
        """The sorted distinct predictions of two classes (m,), and the signed mass of each (m,)."""
        if not (self.weight == self.weight[0]).all():
            return pool_ties(self.proba, self.signed_mass)
        proba, label = sort_labelled(self.proba, self.label)  # no weights to sort along
        points, mass = pool_sorted(proba, label - proba)  # exact, as not yet weighted
        mass *= self.weight[0]
        return points, mass

    def pooled(self) -> Pooled:
        """The weights of two classes, summed where predictions are tied."""
        return pooled(self.proba, self.label, self.weight, self.square)

    def confidence(self) -> "Predictions":
        """The probability of the predicted class, and whether the prediction was right."""
        hit = self.label == np.argmax(self.proba, axis=1)
        return _binary(self.proba.max(axis=1), hit, self.weight)

    def top_label(self) -> Iterator[tuple[float, "Predictions | None"]]:
        """`confidence` for each predicted class alone, with its share; None if that is 0."""
        top = np.argmax(self.proba, axis=1)
        for k in range(len(self.classes)):
            rows = np.flatnonzero(top == k)
            weight = self.weight[rows]
            share = float(weight.sum())
            hit = self.label[rows] == k
            yield share, _binary(self.proba[rows, k], hit, weight / share) if len(rows) else None

    def classwise(self) -> Iterator[tuple[float, "Predictions"]]:
        """Each class against the rest, with the class's share of the labels."""
        for k, proba in enumerate(self.columns()):
            hit = self.label == k
            yield float(self.weight @ hit), _binary(proba, hit, self.weight)


def _binary(proba: np.ndarray, hit: np.ndarray, weight: np.ndarray) -> Predictions:
    proba = proba.astype(np.float64, copy=False)
    return Predictions(proba, hit.astype(np.int32), weight, np.array([False, True]))
