"""Boosted trees that all classes share, on the ranks of predicted probabilities."""

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csc_array
from scipy.special import softmax
from sklearn import config_context
from sklearn.tree import ExtraTreeRegressor

from .._data import ClassData
from .._numerics.logits import iter_row_blocks
from ._base import Recalibrator
from ._maps import Map, NoMapError

# A rank is the number of quantiles below a probability, of this many less one. Cuts of equal width
# in log-probabilities would leave most bins empty.
_N_QUANTILES = 256

# Limits of a tree: rows that it is grown on, its leaves, and the samples in each leaf.
_MAX_TREE_ROWS, _MAX_LEAVES, _MIN_LEAF_SAMPLES = 2000, 16, 20

# A leaf moves scores by this part of a Newton step, of two classes and of more. The step has this
# ridge, and at most this length.
_TWO_CLASS_RATE, _RATE, _RIDGE, _MAX_LEAF_STEP = 0.2, 0.3, 2.0, 1.0

# Rounds end if the loss has not fallen for `_PATIENCE` rounds, or at a maximum: the second one with
# more than `_MANY_SAMPLES` samples.
_PATIENCE, _MAX_ROUNDS, _MAX_ROUNDS_OF_MANY, _MANY_SAMPLES = 8, 150, 300, 10_000

# With more than the first number of samples, trees end after the second one of rounds if their
# likeliest share in a mixture with other predictions is below the third. Where they helped in the
# end, on the data that defaults are chosen on, it was at least 0.036 by then.
_FEW_SAMPLES, _N_TRIAL_ROUNDS, _MIN_TRIAL_SHARE = 500, 32, 0.02


class TreeRecalibrator(Recalibrator):
    """Boosted trees on the ranks of probabilities, which start from the class frequencies.

    Classes and samples count in the order in which they are given: random cuts depend on it.
    """

    def _fit(self, data: ClassData) -> None:
        self.fit_folds(data, np.arange(len(data.label)) % 5, np.arange(len(data.classes)))

    def fit_folds(
        self,
        data: ClassData,
        fold: np.ndarray,
        class_order: np.ndarray,
        rival: np.ndarray | None = None,
    ) -> np.ndarray:
        """Fit all folds, and return the out-of-fold probabilities (n, K).

        `rival` is that of `BoostedTrees.fit`.
        """
        self.classes_, self._class_order = data.classes, class_order
        n, n_classes = len(data.label), len(data.classes)
        self._cuts = [quantile_cuts(data.proba[:, k]) for k in class_order]
        label = np.argsort(class_order)[data.label]
        weight = data.weight / data.inverse_effective_size  # 1 if all are equal
        share = np.bincount(label, weight, n_classes) + 1
        self._prior = np.log(share / share.sum()).astype(np.float32)
        self._trees = BoostedTrees()
        start = np.broadcast_to(share / share.sum(), (n, n_classes))
        boosted = self._trees.fit(self._ranks(data.proba), label, weight, start, fold, rival)
        self.n_rounds_, proba = self._trees.n_rounds, np.empty((n, n_classes))
        proba[:, class_order] = boosted
        return proba

    def _ranks(self, proba: np.ndarray) -> np.ndarray:
        """The number of quantiles up to each probability, (n, K), in the order of the trees."""
        columns = zip(self._cuts, proba.T[self._class_order], strict=True)
        return np.column_stack([np.searchsorted(*pair) for pair in columns]).astype(np.float32)

    def _map(self, proba: np.ndarray) -> np.ndarray:
        mapped = np.empty(proba.shape)
        for rows in iter_row_blocks(*proba.shape):
            scores = self._prior + self._trees.correction(self._ranks(proba[rows]))
            mapped[rows, self._class_order] = softmax(scores.T.astype(np.float64), axis=0).T
        return mapped

    def _state_map(self) -> Map:
        raise NoMapError(
            "AutoRecalibrator with trees",
            "Fit AutoRecalibrator(trees=False) and call export_onnx, or call predict_proba.",
        )


def quantile_cuts(column: np.ndarray) -> np.ndarray:
    """Return the distinct quantiles (m,) of a column, the numbers of which are its ranks."""
    levels = np.arange(1, _N_QUANTILES) / _N_QUANTILES
    return np.unique(np.quantile(column, levels, method="inverted_cdf"))


class BoostedTrees:
    """The mean of boosted trees of several folds, each fitted without one of them.

    In each round a random tree with a leaf value for each class is grown to the residuals. All
    folds have the same number of rounds, the best one for the samples left out, whose probabilities
    so come with the fit.
    """

    def fit(
        self,
        design: np.ndarray,
        label: np.ndarray,
        weight: np.ndarray,
        start: np.ndarray,
        fold: np.ndarray,
        rival: np.ndarray | None = None,
    ) -> np.ndarray:
        """Change the starting probabilities (n, K), and return the out-of-fold ones.

        With a rival, of which the probabilities (n,) of the labels are given, the number of rounds
        is that of the likeliest mixture of both, and with many samples, trees that cannot improve
        it end early.
        """
        n = len(label)
        max_rounds = _MAX_ROUNDS if n <= _MANY_SAMPLES else _MAX_ROUNDS_OF_MANY
        runs = [
            BoostedFold(design, label, weight, start, fold == k, seed=k)
            for k in range(fold.max() + 1)
        ]
        memory = np.empty(start.shape, dtype=np.float32)
        label_proba, gain = start[np.arange(n), label].astype(np.float64), 0.0
        scores = [(weight @ np.log(label_proba), gain)]
        while len(scores) <= min(max_rounds, np.argmax(scores, axis=0).max() + _PATIENCE):
            for run in runs:
                run.grow(memory)
                label_proba[run.test] = run.proba[run.test, label[run.test]]
            if rival is not None:
                share = likeliest_share(rival, label_proba, weight)
                gain = weight @ np.log1p(share * (label_proba / rival - 1))
            scores.append((weight @ np.log(label_proba), gain))
            is_tried = rival is not None and n > _FEW_SAMPLES and len(scores) == _N_TRIAL_ROUNDS + 1
            if is_tried and share < _MIN_TRIAL_SHARE:
                break
        best_alone, best_mixed = np.argmax(scores, axis=0)
        self.n_rounds, self._n_folds = int(best_mixed or best_alone), len(runs)
        self._trees = [tree for run in runs for tree in run.trees[: self.n_rounds]]
        for run in runs:
            memory[run.test] = run.test_proba(self.n_rounds)
        return memory

    def correction(self, design: np.ndarray) -> np.ndarray:
        """Return what the trees add to the scores, (n, K)."""
        total = np.zeros((len(design), 1), dtype=np.float32)
        for tree, value in self._trees:
            total = total + value[tree.apply(design)]
        return total / self._n_folds


class BoostedFold:
    """Trees that are fitted to all samples but those of a test, and the probabilities of all.

    Samples, weights and starting probabilities are those of `BoostedTrees.fit`.
    """

    def __init__(
        self,
        design: np.ndarray,
        label: np.ndarray,
        weight: np.ndarray,
        start: np.ndarray,
        is_test: np.ndarray,
        seed: int,
    ) -> None:
        self.design, self.label, self.is_weighted = design, label, np.ptp(weight) > 0
        self.train, self.test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
        self.weight = np.where(is_test, 0, weight).astype(np.float32)
        self.proba = start.astype(np.float32, order="C")
        self.generator = np.random.default_rng(seed)
        self.trees: list[tuple[Any, np.ndarray]] = []

    def test_proba(self, n_trees: int) -> np.ndarray:
        """Return the probabilities of the test samples (m, K) by the first trees."""
        proba, design = self.proba[self.test], self.design[self.test]
        for tree, value in self.trees[n_trees:]:
            proba /= np.exp(value)[tree.apply(design)]
        return proba / proba.sum(axis=1, keepdims=True)

    def grow(self, memory: np.ndarray) -> None:
        """Add a tree: its shape from some rows, the values of its leaves from all.

        `memory` (n, K) is overwritten: new memory would cost more time than the numbers in it.
        """
        n, n_classes = self.proba.shape
        n_train = len(self.train)
        n_rows = min(_MAX_TREE_ROWS, n_train // 2)
        rows = self.train[self.generator.choice(n_train, n_rows, replace=False, shuffle=False)]
        residual = -self.proba[rows].astype(np.float64)
        residual[np.arange(n_rows), self.label[rows]] += 1
        model = ExtraTreeRegressor(
            max_leaf_nodes=_MAX_LEAVES,
            # of more classes, cuts of all columns take longer and gain nothing
            max_features=None if n_classes == 2 else "sqrt",
            min_samples_leaf=max(2, round(_MIN_LEAF_SAMPLES * n_rows / n_train)),
            random_state=int(self.generator.integers(2**31)),
        )
        weight = self.weight[rows] if self.is_weighted else None
        with config_context(skip_parameter_validation=True, assume_finite=True):
            tree = model.fit(self.design[rows], residual, weight, check_input=False).tree_
        node, shape = tree.apply(self.design), (tree.node_count, n_classes)
        in_node = csc_array((self.weight, node, np.arange(n + 1)), (tree.node_count, n))
        expected = in_node @ self.proba
        curvature = expected - in_node @ np.square(self.proba, out=memory)
        observed = np.bincount(node * n_classes + self.label, self.weight, math.prod(shape))
        step = (observed.reshape(shape) - expected) / (curvature + _RIDGE) * (1 - 1 / n_classes)
        step -= step.mean(axis=1, keepdims=True)
        rate = _TWO_CLASS_RATE if n_classes == 2 else _RATE
        value = np.clip(rate * step, -_MAX_LEAF_STEP, _MAX_LEAF_STEP).astype(np.float32)
        self.trees.append((tree, value))
        self.proba *= np.take(np.exp(value), node, axis=0, out=memory, mode="clip")
        self.proba /= (self.proba @ np.ones(n_classes, np.float32))[:, None]


# Pseudo-samples that only the first component of a mixture explains.
_N_PSEUDO_SAMPLES = 4

# A smaller share of the second component counts as 0; a share is at most 1 less the tolerance.
_MIN_SHARE, _SHARE_ATOL = 0.01, 1e-9


def likeliest_share(first: np.ndarray, second: np.ndarray, weight: np.ndarray) -> float:
    """The share s of the second component in a mixture of most likelihood, 0 if below 0.01.

    Takes the probabilities (n,) of the labels in both components, and weights (n,) that sum to the
    number of samples; four more are of the first component alone. The log-likelihood, Σ w log((1 −
    s) a + s b) + 4 log(1 − s), is concave.
    """
    ratio = second / first

    def slope(share: float) -> float:
        gain = weight @ ((ratio - 1) / (1 - share + share * ratio))
        return float(gain - _N_PSEUDO_SAMPLES / (1 - share))

    return brentq(slope, _MIN_SHARE, 1 - _SHARE_ATOL) if slope(_MIN_SHARE) > 0 else 0.0
