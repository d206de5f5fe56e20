"""Boosted trees that all classes share, on the ranks of predicted probabilities."""

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn import config_context
from sklearn.tree import ExtraTreeRegressor

from .._data import ClassData
from .._inputs.arrays import ArrayLike
from .._numerics.logits import iter_row_blocks
from ._base import Recalibrator

# A rank is the number of quantiles below a probability, of this many less one. The logarithms of
# almost certain predictions would be cut where none are.
_N_QUANTILES = 256

# Limits of a tree: rows that it is grown on, its leaves, and the samples in each leaf.
_MAX_TREE_ROWS, _MAX_LEAVES, _MIN_LEAF_SAMPLES = 2000, 16, 20

# A leaf moves scores by this part of a Newton step, of two classes and of more. The step has this
# ridge, and at most this length.
_TWO_CLASS_RATE, _RATE, _RIDGE, _MAX_LEAF_STEP = 0.2, 0.3, 2.0, 1.0

# Rounds end if the loss has not fallen for `_PATIENCE` rounds, or at a maximum: the second one with
# more than `_MANY_SAMPLES` samples.
_PATIENCE, _MAX_ROUNDS, _MAX_ROUNDS_OF_MANY, _MANY_SAMPLES = 8, 150, 300, 10_000


class TreeRecalibrator(Recalibrator):
    """Boosted trees on the ranks of probabilities, which start from the class frequencies.

    Classes and samples count in the order in which they are given: random cuts depend on it.
    """

    def __init__(self, *, labels: ArrayLike | None = None) -> None:
        self.labels = labels

    def _fit(self, data: ClassData) -> None:
        self.fit_folds(data, np.arange(len(data.label)) % 5, np.arange(len(data.classes)))

    def fit_folds(self, data: ClassData, fold: np.ndarray, class_order: np.ndarray) -> np.ndarray:
        """Fit all folds, and return the out-of-fold probabilities (n, K)."""
        self.classes_, self._class_order = data.classes, class_order
        n, n_classes = len(data.label), len(data.classes)
        self._cuts = [quantile_cuts(data.proba[:, k]) for k in class_order]
        label = np.argsort(class_order)[data.label]
        weight = data.weight / data.inverse_effective_size  # 1 if all are equal
        share = np.bincount(label, weight, n_classes) + 1
        self._prior = np.log(share / share.sum()).astype(np.float32)
        self._trees = BoostedTrees()
        start = np.broadcast_to(self._prior[:, None], (n_classes, n))
        scores = self._trees.fit(self._ranks(data.proba), label, weight, start, fold)
        self.n_rounds_, proba = self._trees.n_rounds, np.empty((n, n_classes))
        proba[:, class_order] = softmax(scores, axis=0).T
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


def quantile_cuts(column: np.ndarray) -> np.ndarray:
    """Return the distinct quantiles (m,) of a column, the numbers of which are its ranks."""
    levels = np.arange(1, _N_QUANTILES) / _N_QUANTILES
    return np.unique(np.quantile(column, levels, method="inverted_cdf"))


class BoostedTrees:
    """The mean of boosted trees of several folds, each fitted without one of them.

    In each round a random tree with a leaf value for each class is grown to the residuals. All
    folds have the same number of rounds, that of the least loss of the samples left out, whose
    scores so come with the fit.
    """

    def fit(
        self,
        design: np.ndarray,
        label: np.ndarray,
        weight: np.ndarray,
        start: np.ndarray,
        fold: np.ndarray,
    ) -> np.ndarray:
        """Add to the starting scores (K, n), and return the out-of-fold scores."""
        n = len(label)
        max_rounds = _MAX_ROUNDS if n <= _MANY_SAMPLES else _MAX_ROUNDS_OF_MANY
        runs = [
            BoostedFold(design, label, weight, start, fold != k, fold == k, seed=k)
            for k in range(fold.max() + 1)
        ]
        losses = [sum(run.loss() for run in runs)]
        while len(losses) <= min(max_rounds, int(np.argmin(losses)) + _PATIENCE):
            for run in runs:
                run.grow()
            losses.append(sum(run.loss() for run in runs))
            if losses[-1] < min(losses[:-1]):
                for run in runs:
                    run.best_scores = run.test_scores.copy()
        self.n_rounds, self._n_folds = int(np.argmin(losses)), len(runs)
        self._trees = [tree for run in runs for tree in run.trees[: self.n_rounds]]
        scores = np.empty(start.shape, dtype=np.float32)
        for k, run in enumerate(runs):
            scores[:, fold == k] = run.best_scores
        return scores

    def correction(self, design: np.ndarray) -> np.ndarray:
        """Return what the trees add to the scores, (n, K)."""
        total = np.zeros((len(design), 1), dtype=np.float32)
        for tree, value in self._trees:
            total = total + value[tree.apply(design)]
        return total / self._n_folds


class BoostedFold:
    """Trees that are fitted to some samples, and the scores (K, n) that they give to these.

    `test_scores` are those of other samples.
    """

    def __init__(
        self,
        design: np.ndarray,
        label: np.ndarray,
        weight: np.ndarray,
        start: np.ndarray,
        train: np.ndarray,
        test: np.ndarray,
        seed: int,
    ) -> None:
        weight = weight.astype(np.float32)
        self.design, self.label, self.weight = design[train], label[train], weight[train]
        self.test_design, self.test_label = design[test], label[test]
        self.test_weight, self.is_weighted = weight[test], np.ptp(weight) > 0
        self.scores = start[:, train].astype(np.float32)
        self.best_scores = self.test_scores = start[:, test].astype(np.float32)
        self.random_state = np.random.RandomState(seed)
        self.trees: list[tuple[Any, np.ndarray]] = []

    def loss(self) -> float:
        """Return the weighted sum of the log losses of the test samples."""
        scores = self.test_scores - self.test_scores.max(axis=0)
        label_scores = scores[self.test_label, np.arange(len(self.test_label))]
        losses = np.log(np.exp(scores).sum(axis=0)) - label_scores
        return float(losses.astype(np.float64) @ self.test_weight)

    def grow(self) -> None:
        """Add a tree: its shape from some rows, the values of its leaves from all."""
        n, n_classes = len(self.label), len(self.scores)
        proba = softmax(self.scores, axis=0)
        curvature = proba * (1 - proba)
        residual = np.negative(proba, out=proba)
        residual[self.label, np.arange(n)] += 1
        n_rows = min(_MAX_TREE_ROWS, n // 2)
        rows = self.random_state.permutation(n)[:n_rows]
        model = ExtraTreeRegressor(
            max_leaf_nodes=_MAX_LEAVES,
            # of more classes, cuts of all columns take longer and gain nothing
            max_features=None if n_classes == 2 else "sqrt",
            min_samples_leaf=max(2, round(_MIN_LEAF_SAMPLES * n_rows / n)),
            random_state=self.random_state,
        )
        target = residual[:, rows].T.astype(np.float64)
        weight = self.weight[rows] if self.is_weighted else None
        with config_context(skip_parameter_validation=True, assume_finite=True):
            tree = model.fit(self.design[rows], target, weight, check_input=False).tree_
        node = tree.apply(self.design)
        is_leaf = np.bincount(node, minlength=tree.node_count) > 0
        leaf = (np.cumsum(is_leaf) - 1)[node]
        is_in = np.zeros((n, leaf.max() + 1), dtype=np.float32)
        is_in[np.arange(n), leaf] = self.weight
        step = (residual @ is_in) / (curvature @ is_in + _RIDGE) * (1 - 1 / n_classes)
        rate = _TWO_CLASS_RATE if n_classes == 2 else _RATE
        step = np.clip(rate * (step - step.mean(axis=0)), -_MAX_LEAF_STEP, _MAX_LEAF_STEP)
        value = np.zeros((tree.node_count, n_classes), dtype=np.float32)
        value[is_leaf] = step.T
        self.scores += step.astype(np.float32)[:, leaf]
        self.test_scores = self.test_scores + value[tree.apply(self.test_design)].T
        self.trees.append((tree, value))


# Samples that favour the first component of a mixture, and how close to 1 a share can be.
_N_PSEUDO_SAMPLES, _SHARE_ATOL = 2, 1e-9


def likeliest_share(first: np.ndarray, second: np.ndarray, weight: np.ndarray) -> float:
    """The share s of the second component in a mixture of most likelihood.

    Takes the probabilities (n,) of the labels in both components, and weights (n,) that sum to the
    number of samples; two more are of the first component alone. The log-likelihood, Σ w log((1 −
    s) a + s b) + 2 log(1 − s), is concave.
    """
    ratio = second / first

    def slope(share: float) -> float:
        gain = weight @ ((ratio - 1) / (1 - share + share * ratio))
        return float(gain - _N_PSEUDO_SAMPLES / (1 - share))

    return brentq(slope, 0.0, 1 - _SHARE_ATOL) if slope(0.0) > 0 else 0.0
