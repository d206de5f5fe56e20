"""Boosted trees that all classes share, on the ranks of predicted probabilities."""

from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn import config_context
from sklearn.tree import ExtraTreeRegressor

from .._data import ClassData
from .._inputs.arrays import ArrayLike
from .._numerics.logits import iter_row_blocks
from ._base import Recalibrator

# A rank is the number of quantiles below a probability, of this many less one. The logarithms of
# almost certain predictions would be cut where none are.
_N_QUANTILES = 256

# Trees are grown on at most so many rows, to so many leaves, each of at least so many of all rows.
_MAX_TREE_ROWS, _MAX_LEAVES, _MIN_LEAF_SAMPLES = 2000, 16, 20

# A leaf moves scores by this part of a Newton step, which has this ridge, and at most by the limit.
_RATE, _RIDGE, _MAX_LEAF_STEP = 0.3, 2.0, 1.0

# Rounds end if the loss has not fallen for so many; or at a maximum, which is the second one if
# there are more samples than the last number.
_PATIENCE, _MAX_ROUNDS, _MAX_ROUNDS_OF_MANY, _MANY_SAMPLES = 8, 150, 300, 10_000


class TreeRecalibrator(Recalibrator):
    """The mean of boosted trees of several folds, each fitted without one of them.

    In each round a random tree with a leaf value for each class is grown to the residuals. All
    folds have the same number of rounds, that of the least loss of the samples left out, whose
    probabilities so come with the fit. Classes and samples count in the order in which they are
    given: random cuts depend on it.
    """

    def __init__(self, *, labels: ArrayLike | None = None) -> None:
        self.labels = labels

    def _fit(self, data: ClassData) -> None:
        self.fit_folds(data, np.arange(len(data.label)) % 5, np.arange(len(data.classes)))

    def fit_folds(self, data: ClassData, fold: np.ndarray, class_order: np.ndarray) -> np.ndarray:
        """Fit all folds, and return the out-of-fold probability of each label (n,)."""
        self.classes_, self._class_order = data.classes, class_order
        n, n_classes = len(data.label), len(data.classes)
        levels = np.arange(1, _N_QUANTILES) / _N_QUANTILES
        self._cuts = [
            np.unique(np.quantile(column, levels, method="inverted_cdf"))
            for column in (data.proba[:, k] for k in class_order)
        ]
        label = np.argsort(class_order)[data.label]
        weight = (data.weight / data.inverse_effective_size).astype(np.float32)  # 1 if all equal
        share = np.bincount(label, weight, n_classes) + 1
        self._prior = np.log(share / share.sum()).astype(np.float32)
        ranks = self._ranks(data.proba)
        max_rounds = _MAX_ROUNDS if n <= _MANY_SAMPLES else _MAX_ROUNDS_OF_MANY
        with config_context(skip_parameter_validation=True, assume_finite=True):
            runs = [
                _BoostedFold(ranks, label, weight, self._prior, fold == k, seed=k)
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
        self.n_rounds_, self._n_folds = int(np.argmin(losses)), len(runs)
        self._trees = [tree for run in runs for tree in run.trees[: self.n_rounds_]]
        label_proba = np.empty(n)
        for k, run in enumerate(runs):
            rows = fold == k
            label_proba[rows] = _softmax_columns(run.best_scores)[
                label[rows], np.arange(rows.sum())
            ]
        return label_proba

    def _ranks(self, proba: np.ndarray) -> np.ndarray:
        """The number of quantiles up to each probability, (n, K), in the order of the trees."""
        columns = zip(self._cuts, proba.T[self._class_order], strict=True)
        return np.column_stack([np.searchsorted(*pair) for pair in columns]).astype(np.float32)

    def _map(self, proba: np.ndarray) -> np.ndarray:
        mapped = np.empty(proba.shape)
        for rows in iter_row_blocks(*proba.shape):
            ranks = self._ranks(proba[rows])
            scores = np.zeros(ranks.shape, dtype=np.float32)
            for tree, value in self._trees:
                scores += value[tree.apply(ranks)]
            scores = self._prior + scores / self._n_folds
            mapped[rows, self._class_order] = _softmax_columns(scores.T.astype(np.float64)).T
        return mapped


class _BoostedFold:
    """Trees that are fitted without a fold, and the scores (K, n) that they add up to."""

    def __init__(
        self,
        ranks: np.ndarray,
        label: np.ndarray,
        weight: np.ndarray,
        prior: np.ndarray,
        is_test: np.ndarray,
        seed: int,
    ) -> None:
        train = ~is_test
        self.ranks, self.label, self.weight = ranks[train], label[train], weight[train]
        self.test_ranks, self.test_label = ranks[is_test], label[is_test]
        self.test_weight, self.is_weighted = weight[is_test], np.ptp(weight) > 0
        self.scores = np.repeat(prior[:, None], train.sum(), axis=1)
        self.test_scores = np.repeat(prior[:, None], is_test.sum(), axis=1)
        self.best_scores = self.test_scores.copy()
        self.random_state = np.random.RandomState(seed)
        self.trees: list[tuple[Any, np.ndarray]] = []

    def loss(self) -> float:
        """Return the weighted sum of the log losses of the fold."""
        scores = self.test_scores - self.test_scores.max(axis=0)
        label_scores = scores[self.test_label, np.arange(len(self.test_label))]
        losses = np.log(np.exp(scores).sum(axis=0)) - label_scores
        return float(losses.astype(np.float64) @ self.test_weight)

    def grow(self) -> None:
        """Add a tree: its shape from some rows, the values of its leaves from all."""
        n, n_classes = len(self.label), len(self.scores)
        proba = _softmax_columns(self.scores)
        curvature = proba * (1 - proba)
        residual = np.negative(proba, out=proba)
        residual[self.label, np.arange(n)] += 1
        n_rows = min(_MAX_TREE_ROWS, n // 2)
        rows = self.random_state.permutation(n)[:n_rows]
        model = ExtraTreeRegressor(
            max_leaf_nodes=_MAX_LEAVES,
            max_features="sqrt",  # more trials of a cut take longer and gain nothing
            min_samples_leaf=max(2, round(_MIN_LEAF_SAMPLES * n_rows / n)),
            random_state=self.random_state,
        )
        target = residual[:, rows].T.astype(np.float64)
        weight = self.weight[rows] if self.is_weighted else None
        tree = model.fit(self.ranks[rows], target, weight, check_input=False).tree_
        node = tree.apply(self.ranks)
        is_leaf = np.bincount(node, minlength=tree.node_count) > 0
        leaf = (np.cumsum(is_leaf) - 1)[node]
        is_in = np.zeros((n, leaf.max() + 1), dtype=np.float32)
        is_in[np.arange(n), leaf] = self.weight
        step = (residual @ is_in) / (curvature @ is_in + _RIDGE) * (1 - 1 / n_classes)
        step = np.clip(_RATE * (step - step.mean(axis=0)), -_MAX_LEAF_STEP, _MAX_LEAF_STEP)
        value = np.zeros((tree.node_count, n_classes), dtype=np.float32)
        value[is_leaf] = step.T
        self.scores += step.astype(np.float32)[:, leaf]
        self.test_scores += value[tree.apply(self.test_ranks)].T
        self.trees.append((tree, value))


def _softmax_columns(scores: np.ndarray) -> np.ndarray:
    """The softmax of each column of scores (K, n)."""
    proba = np.exp(scores - scores.max(axis=0))
    proba /= proba.sum(axis=0)
    return proba


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
