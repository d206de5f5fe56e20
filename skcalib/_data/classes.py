"""The data every measure, test and recalibrator works on, once it has been checked."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from array_api_compat import array_namespace

from .._inputs.drawing import draw_labels, draw_labels_in_groups
from .._numerics import sorting
from .._numerics.array_api import Array, to_numpy
from .._numerics.logits import column_log_odds
from .base import EvaluationData

# Rows of double precision that sum to 1 miss it by less than this.
_ROW_SUM_ATOL = 1e-12

# Numbers in the columns that are copied at once (8 MB).
_COLUMNS = 2**20


@dataclass(frozen=True)
class ClassData(EvaluationData):
    """Checked predictions. With two classes `proba` is the probability of the second one.

    Keeping one number instead of two complementary ones makes `(n,)` and `(n, 2)` input of measures
    the same by construction, and saves half the memory. Recalibrators also read the other column,
    as it tells how close to 1 a probability is. The reductions of K classes to two are such
    `ClassData` again.

    Single precision of K classes stays what it is, as double precision would take twice the memory
    of what may be the largest array there is. Numbers are computed in double precision all the
    same: of `matrix`, `iter_class_proba`, or of blocks of rows.

    If scikit-learn dispatches arrays, tensors stay where they live: then all arrays but the classes
    are there, and have what sums need. `to_numpy` makes NumPy's arrays of them, for what sorts or
    searches. Probabilities have the precision of the user's, weights are double.
    """

    kind: ClassVar[str] = "classes"
    is_forecast: ClassVar[Literal[False]] = False
    _shared = frozenset({"classes", "mean_rounding", "has_common_rank"})

    # as stored: (n,) of the second of two classes, else (n, K), perhaps in single precision
    proba: np.ndarray
    label: np.ndarray  # (n,), index into classes
    classes: np.ndarray  # (K,)
    log_proba: np.ndarray | None = None  # (n, K), logarithms of `matrix`; None without logits
    # (n,), how many samples a row stands for; None if each is one. Outcomes are shares of events
    # if rows stand for several.
    count: np.ndarray | None = None
    mean_rounding: float = 0.0  # how far predictions were moved to a grid, on average
    # whether simulated labels of a group share the rank of their class, instead of the class
    has_common_rank: bool = False
    # (n,), the given probability of the first of two classes; None if 1 − proba says as much
    complement: np.ndarray | None = None

    @property
    def is_binary(self) -> bool:
        return self.proba.ndim == 1

    @property
    def matrix(self) -> Array:
        """The probabilities of all classes, (n, K), doubles on the host; what formulas read."""
        if not self.is_binary:
            return self.proba.astype(np.float64, copy=False) if self.is_on_host else self.proba
        first = 1 - self.proba if self.complement is None else self.complement
        return array_namespace(self.proba).stack([first, self.proba], axis=1)

    @property
    def columns(self) -> Array:
        """The probabilities as given, (n, K), or (n,) of the last of two; what `fit` takes."""
        return self.proba if self.complement is None else self.matrix

    @property
    def user_labels(self) -> np.ndarray:
        """The labels (n,) as users pass them."""
        return self.classes[self.label]

    def swap_classes(self) -> "ClassData":
        """Return the same data of two classes, in the other order."""
        first, last = self.matrix.T
        fields = {"complement": last, "label": 1 - self.label, "classes": self.classes[::-1]}
        return replace(self.with_proba(first), **fields)

    def iter_class_proba(self) -> Iterator[np.ndarray]:
        """The probabilities (n,) of one class after another, in double precision."""
        at_once = max(1, _COLUMNS // len(self.proba))
        for k in range(0, self.proba.shape[1], at_once):
            yield from self.proba[:, k : k + at_once].T.astype(np.float64, order="C")

    @property
    def simplex(self) -> np.ndarray:
        """`matrix` with rows that sum to 1 in double precision; what other libraries take."""
        matrix = self.matrix if self.is_binary else self.proba.astype(np.float64)
        total = matrix.sum(axis=1, keepdims=True)
        inexact = np.abs(total - 1) > _ROW_SUM_ATOL
        return np.divide(matrix, total, out=matrix, where=inexact)

    @property
    def n_samples(self) -> int:
        """The number of samples, of which a row may stand for several."""
        return self.weight.shape[0] if self.count is None else int(self.count.sum())

    @property
    def is_on_host(self) -> bool:
        """True if the arrays are NumPy's."""
        return isinstance(self.proba, np.ndarray)

    def to_numpy(self) -> "ClassData":
        """Return a copy whose arrays are NumPy's."""
        if self.is_on_host:
            return self
        fields = self._map_rows(to_numpy)
        fields["label"] = fields["label"].astype(np.int32)
        if self.is_binary:
            fields["proba"] = fields["proba"].astype(np.float64)
        return replace(self, **fields)

    @property
    def outcome(self) -> np.ndarray:
        """The observed labels (n,), as `simulate_outcomes` returns simulated ones."""
        return self.label

    def simulate_outcomes(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """Outcomes drawn from the predictions, (size, n); they are independent but for groups."""
        if self.count is not None:
            return generator.binomial(self.count, self.proba, (size, len(self.proba))) / self.count
        if self.groups is not None:
            sample = self.matrix, self.label, self.groups, np.asarray(self.weight)
            by_rank = self.has_common_rank
            return draw_labels_in_groups(*sample, size, generator, by_rank=by_rank)
        return draw_labels(self.proba, size, generator)

    def iter_residuals(self) -> Iterator[np.ndarray]:
        """Yield the residuals (n,) of y − p of each class from its best line in p.

        So what all samples share, such as overconfidence, does not count as dependence.
        """
        data = self.to_numpy()
        columns = [data.proba] if data.is_binary else data.iter_class_proba()
        for k, proba in enumerate(columns, start=int(data.is_binary)):
            hit = data.label[:, k] if data.label.ndim == 2 else data.label == k
            residual = hit - proba
            residual -= data.weight @ residual
            centred = proba - data.weight @ proba
            variance = data.weight @ centred**2
            if variance > 0:
                residual -= data.weight @ (centred * residual) / variance * centred
            is_rounding = data.weight @ residual**2 < _ROW_SUM_ATOL**2
            yield 0 * residual if is_rounding else residual

    def iter_couplings(self) -> Iterator["ClassData"]:
        """Yield the data whose groups share classes, and those whose groups share ranks.

        Of two classes, one of which is the likeliest of all samples, both are the same.
        """
        yield self
        if self.groups is not None:
            likeliest = self.matrix.argmax(axis=1)
            if not self.is_binary or (likeliest != likeliest[0]).any():
                yield replace(self, has_common_rank=True)

    def with_outcome(self, outcome: np.ndarray) -> "ClassData":
        """Return the same predictions with other outcomes (n,).

        Rows that stand for several samples are split into those without and with the event.
        """
        if self.count is None:
            return replace(self, label=outcome)
        share = np.stack([1 - outcome, outcome])  # (2, n)
        label, row = np.nonzero(share)
        event_share = share[label, row]
        fields = self._map_rows(lambda values: values[row])
        fields["label"] = label.astype(np.int32)
        fields["weight"] *= event_share
        fields["square"] = self.squares[row] * event_share
        fields["count"] = np.rint(fields["count"] * event_share).astype(np.int64)
        return replace(self, **fields)

    @property
    def labels(self) -> np.ndarray:
        """The argument `labels` of functions for users."""
        return self.classes

    def canonical_order(self) -> Array:
        """Indices (n,) that sort the samples by their values, in whatever order they came.

        They are sorted by the largest probability, and where that is tied by everything else.
        """
        xp = array_namespace(self.proba)
        largest = self.proba if self.is_binary else xp.max(self.proba, axis=1)
        order = xp.argsort(largest, stable=True)
        same = xp.diff(xp.take(largest, order)) == 0
        no = xp.zeros_like(same[:1])
        is_tied = xp.concat([same, no]) | xp.concat([no, same])
        tied = order[is_tied]
        columns = [] if self.is_binary else [self.proba[:, k] for k in range(self.proba.shape[1])]
        if self.given is not None:
            columns += [*np.atleast_2d(self.given.T)]
        for key in (self.weight, *columns, largest):  # the last key counts most
            tied = xp.take(tied, xp.argsort(xp.take(key, tied), stable=True))
        order[is_tied] = tied
        return order

    def sort_samples(self) -> "ClassData":
        """Return the samples in an order that does not depend on the one in which they came.

        A sum depends on the order by rounding, and so does what almost certain predictions leave
        almost undetermined.
        """
        if not self.is_on_host:  # sums on a device are not the same to the last bit anyway
            return self
        values = self.columns if self.log_proba is None else self.log_proba
        first = np.lexsort((self.weight, self.label))
        rows = np.ascontiguousarray(values[first])
        if rows.ndim == 2:  # compared as bytes, which any order may do
            rows = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
        return self.take(first[np.argsort(rows, kind="stable")])

    @property
    def weighted_residuals(self) -> np.ndarray:
        """c_i = w_i (y_i − p_i) of two classes, (n,)."""
        mass = self.label - self.proba
        mass *= self.weight
        return mass

    def pool_residuals(self) -> tuple[np.ndarray, np.ndarray]:
        """The sorted distinct predictions of two classes (m,), and the signed mass of each (m,)."""
        if not (self.weight == self.weight[0]).all():
            return sorting.pool_ties(self.proba, self.weighted_residuals)
        proba, label = sorting.sort_labelled(self.proba, self.label)  # no weights to sort along
        points, mass = sorting.pool_sorted(proba, label - proba)  # exact, as not yet weighted
        mass *= self.weight[0]
        return points, mass

    def pool_label_weights(self) -> sorting.LabelWeights:
        """The weights of two classes, summed where predictions are tied.

        If both columns are given, log p₁ − log p₀ tells which are tied, and sorts them.
        """
        if self.complement is None:
            return sorting.pool_label_weights(self.proba, self.label, self.weight, self.square)
        spread = column_log_odds(self.matrix)
        pooled = sorting.pool_label_weights(spread, self.label, self.weight, self.squares)
        share = self.proba / (self.proba + self.complement)
        points = share[np.unique(spread, return_index=True)[1]]
        return pooled._replace(points=np.maximum.accumulate(points))

    def with_proba(self, proba: Array) -> "ClassData":
        """Return the same labels with other probabilities, (n,) or (n, K)."""
        return replace(self, proba=proba, complement=None, log_proba=None)

    def _reduce(self, event: np.ndarray, proba: np.ndarray, rows: Any = None) -> "ClassData":
        """Return data of two classes: an event (n,), or (m,) of some rows, and its probability."""
        data = self.with_proba(self.weight)  # rows of K probabilities need not be copied
        data = data if rows is None else data.take(rows)
        proba, label = proba.astype(np.float64, copy=False), event.astype(np.int32)
        fields = {"proba": proba, "label": label, "classes": np.array([False, True])}
        return ClassData(**vars(data) | fields)

    def confidence(self) -> "ClassData":
        """The probability of the predicted class, and whether the prediction was right."""
        return self._reduce(self.label == np.argmax(self.proba, axis=1), self.proba.max(axis=1))

    def iter_problems(self, lens: Any) -> Iterator[tuple[Any, float, Any]]:
        """The name, weight and data of each problem of a lens; None if no sample is in it."""
        for event, proba, weight, name, rows in lens.reduce(self):
            yield name, weight, self._reduce(event, proba, rows) if len(event) else None

    def iter_one_vs_rest(self) -> Iterator[tuple[float, "ClassData"]]:
        """Each class against the rest, with the class's share of the labels."""
        for k, proba in enumerate(self.iter_class_proba()):
            hit = self.label == k
            yield float(self.weight @ hit), self._reduce(hit, proba)


@dataclass(frozen=True)
class MultilabelData(ClassData):
    """Labels that do not exclude each other: `label` (n, L) holds 0 and 1, `classes` their names.

    Rows, weights and outcomes are those of `ClassData`; what needs the law of labels together, or
    classes that exclude each other, is refused.
    """

    @property
    def is_binary(self) -> bool:
        return False  # a single label is a matrix, too

    @property
    def simplex(self) -> np.ndarray:
        """`matrix`, whose rows need not sum to 1."""
        return self.matrix

    @property
    def user_labels(self) -> np.ndarray:
        """The indicator matrix (n, L)."""
        return self.label

    def simulate_outcomes(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """Refuse: probabilities of single labels do not say how labels depend on each other."""
        raise ValueError(
            "multi_class=Multilabel() has no p-value for what joins labels, as the probabilities "
            "of single labels do not fix the law of all of them; found "
            f"{len(self.classes)} label(s). Use CalibrationTest, which tests each label, or "
            "confidence_interval."
        )
