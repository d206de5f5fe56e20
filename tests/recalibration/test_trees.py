"""Trees inside the default recalibrator: by loops, by other optimisers, and by laws."""

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.tree import ExtraTreeRegressor

from skcalib._data import check_predictions
from skcalib.recalibration import (
    AutoRecalibrator,
    TemperatureRecalibrator,
    _trees,
    export_onnx,
    export_sql,
)
from skcalib.recalibration._folds import assign_folds
from skcalib.recalibration._trees import TreeRecalibrator, likeliest_share


def bent_problem(n=400, n_classes=3, seed=0):
    """Probabilities whose first class is likely in the middle of its range."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), n)
    scores = np.log(proba)
    scores[:, 0] = 3 - 40 * (proba[:, 0] - 0.35) ** 2
    return proba, (softmax(scores, axis=1).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


def test_trees_enter_where_no_other_map_bends():
    proba, y = bent_problem(1000)
    query, outcome = bent_problem(2000, seed=1)
    auto, plain = AutoRecalibrator().fit(proba, y), AutoRecalibrator(trees=False).fit(proba, y)
    assert auto.weights_["trees"] > 0.2
    assert "trees" in repr(auto)
    assert "trees" not in plain.weights_
    assert sum(auto.weights_.values()) + auto.uniform_share_ == pytest.approx(1, abs=1e-12)
    assert auto.results_["name"][-1] == "trees"
    assert len({len(column) for column in auto.results_.values()}) == 1
    losses = [
        -np.log(fitted.predict_proba(query)[np.arange(2000), outcome]).mean()
        for fitted in (auto, plain)
    ]
    assert losses[0] < losses[1] - 0.02
    expected = sum(
        weight * auto.recalibrators_[name].predict_proba(query)
        for name, weight in auto.weights_.items()
    )
    expected += auto.uniform_share_ / 3
    np.testing.assert_allclose(auto.predict_proba(query), expected, atol=1e-12)
    restored = pickle.loads(pickle.dumps(auto))
    np.testing.assert_array_equal(restored.predict_proba(query), auto.predict_proba(query))


@pytest.mark.parametrize("weighted", [False, True])
def test_one_round_by_loops(weighted, monkeypatch):
    monkeypatch.setattr(_trees, "_MAX_ROUNDS", 1)
    proba, y = bent_problem(200)
    fitted = TreeRecalibrator()
    data_weight = np.random.default_rng(5).random(200) if weighted else np.ones(200)
    fitted.fit(proba, y, data_weight)
    assert fitted.n_rounds_ == 1
    share = data_weight / data_weight.sum()
    weight = share / np.sum(share**2)
    cuts = [np.unique(np.quantile(column, np.arange(1, 256) / 256, method="inverted_cdf"))
            for column in proba.T]  # fmt: skip
    ranks = np.array([[np.sum(cuts[k] < p) for k, p in enumerate(row)] for row in proba])
    prior = np.array([weight[y == k].sum() + 1 for k in range(3)])
    prior /= prior.sum()
    total = np.zeros((200, 3))
    for fold in range(5):
        train = np.flatnonzero(np.arange(200) % 5 != fold)
        generator = np.random.default_rng(fold)
        rows = train[generator.choice(160, 80, replace=False, shuffle=False)]
        seed = int(generator.integers(2**31))
        tree = ExtraTreeRegressor(
            max_leaf_nodes=16, max_features="sqrt", min_samples_leaf=10, random_state=seed
        ).fit(ranks[rows], np.eye(3)[y[rows]] - prior, weight[rows])
        leaf = tree.apply(ranks)
        for j in set(leaf):
            step = np.empty(3)
            for k in range(3):
                gradient = curvature = 0.0
                for i in train[leaf[train] == j]:
                    gradient += weight[i] * ((y[i] == k) - prior[k])
                    curvature += weight[i] * prior[k] * (1 - prior[k])
                step[k] = gradient / (curvature + 2) * (2 / 3)
            total[leaf == j] += np.clip(0.3 * (step - step.mean()), -1, 1) / 5
    expected = softmax(np.log(prior) + total, axis=1)
    np.testing.assert_allclose(fitted.predict_proba(proba), expected, atol=2e-6)


def test_share_is_of_most_likelihood():
    rng = np.random.default_rng(0)
    for scale in (0.5, 1.0, 1.5):
        first, weight = rng.random(300), rng.exponential(size=300)
        second = np.clip(first + rng.normal(0, 0.3, 300), 0.01, 1) ** (1 / scale)

        def loss(s, first=first, second=second, weight=weight):
            return -(weight @ np.log((1 - s) * first + s * second) + 4 * np.log1p(-s))

        expected = minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
        assert likeliest_share(first, second, weight) == pytest.approx(expected.x, abs=1e-5)
    assert likeliest_share(np.ones(9), np.full(9, 0.5), np.ones(9)) == 0


def test_neither_order_nor_names_nor_scale_matter():
    proba, y = bent_problem(400, 4)
    weight = np.random.default_rng(1).integers(0, 4, 400).astype(float)
    expected = AutoRecalibrator().fit(proba, y, weight)
    assert "trees" not in expected.results_["name"]  # too few samples, as their weights say
    weight[weight == 0] = 1
    expected = AutoRecalibrator().fit(proba, y, weight)
    assert expected.weights_["trees"] > 0.1
    rows, columns = np.random.default_rng(2).permutation(400), [2, 0, 3, 1]
    names = np.array(["c", "a", "d", "b"])  # in the order of the columns
    auto = AutoRecalibrator(labels=names[columns], n_jobs=2)
    auto.fit(proba[rows][:, columns], names[y[rows]], 7 * weight[rows])
    found = auto.predict_proba(proba[:, columns])
    np.testing.assert_allclose(found, expected.predict_proba(proba)[:, columns], atol=1e-12)
    more = np.vstack([proba, proba[:50]])
    zeros = AutoRecalibrator().fit(more, np.append(y, y[:50]), np.append(weight, np.zeros(50)))
    np.testing.assert_allclose(
        zeros.predict_proba(proba), expected.predict_proba(proba), rtol=0, atol=1e-12
    )


def test_absent_classes_and_exact_zeros_stay_finite():
    proba, y = bent_problem(400, 4)
    proba[::3, 1] = 0
    proba /= proba.sum(axis=1, keepdims=True)
    y[y == 3] = 0
    with pytest.warns(UserWarning, match="no sample of 1 of the 4 classes"):
        auto = AutoRecalibrator(labels=range(4)).fit(proba, y)
    assert "trees" in auto.weights_
    found = auto.predict_proba(proba)
    assert (found > 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize(
    "auto",
    [
        AutoRecalibrator(keep_order=True),
        AutoRecalibrator(ensemble=False),
        AutoRecalibrator(scoring="brier"),
        AutoRecalibrator([("temperature", TemperatureRecalibrator())]),
    ],
)
def test_trees_are_for_the_default_average_only(auto):
    proba, y = bent_problem(400)
    assert "trees" not in auto.fit(proba, y).results_["name"]


def test_what_is_too_large_for_trees_is_named(monkeypatch):
    proba, y = bent_problem(400)
    monkeypatch.setattr("skcalib.recalibration._registry._MAX_ENTRIES_FOR_TREES", 1000)
    assert AutoRecalibrator().fit(proba, y).left_out_ == ["trees"]


def test_sql_of_trees_is_refused_with_the_remedy():
    pytest.importorskip("onnx")
    proba, y = bent_problem(400)
    auto = AutoRecalibrator().fit(proba, y)
    with pytest.raises(ValueError, match=r"trees.*AutoRecalibrator\(trees=False\)"):
        export_sql(auto)
    assert len(export_onnx(AutoRecalibrator(trees=False).fit(proba, y)).graph.output) == 1


def test_out_of_fold_probabilities_are_those_of_their_fold():
    proba, y = bent_problem(300)
    label_proba = {}

    class Spy(TreeRecalibrator):
        def _fit(self, data):
            fold = assign_folds(data, 5)
            label_proba[0] = self.fit_folds(data, fold, np.arange(3))[np.arange(300), data.label]
            label_proba[1] = fold

    fitted = Spy().fit(proba, y)
    boosted, n_rounds = fitted._trees, fitted.n_rounds_
    trees = boosted._trees
    for fold in range(5):
        boosted._trees, boosted._n_folds = trees[fold * n_rounds : (fold + 1) * n_rounds], 1
        rows = label_proba[1] == fold
        found = fitted.predict_proba(proba[rows])[np.arange(rows.sum()), y[rows]]
        np.testing.assert_allclose(label_proba[0][rows], found, rtol=1e-5)


def test_rounds_are_the_best_ones_for_a_mixture():
    proba, y = bent_problem(500, 4, seed=3)
    rival, weight = (0.5 * proba + 0.125)[np.arange(500), y], np.ones(500)
    shared = np.float32(99 * proba), y, weight, np.full((500, 4), 0.25)
    fold, trees, alone = np.arange(500) % 5, _trees.BoostedTrees(), _trees.BoostedTrees()
    trees.fit(*shared, fold, rival)
    alone.fit(*shared, fold)
    runs = [_trees.BoostedFold(*shared, fold == k, seed=k) for k in range(5)]
    label_proba, losses, mixed_losses = np.empty(500), [], []
    for _ in range(trees.n_rounds + 8):
        for run in runs:
            run.grow(np.empty((500, 4), np.float32))
            label_proba[run.test] = run.proba[run.test, y[run.test]]

        def loss(s, label_proba=label_proba):
            return -np.log((1 - s) * rival + s * label_proba).sum() - 4 * np.log1p(-s)

        share = minimize_scalar(loss, bounds=(0, 1), method="bounded").x
        mixed_losses.append(-np.log((1 - share) * rival + share * label_proba).sum())
        losses.append(-np.log(label_proba).sum())
    assert trees.n_rounds == np.argmin(mixed_losses) + 1
    assert alone.n_rounds == np.argmin(losses) + 1
    assert trees.n_rounds > alone.n_rounds


def test_trees_end_early_where_they_cannot_improve_a_rival(monkeypatch):
    monkeypatch.setattr(_trees, "_N_TRIAL_ROUNDS", 5)

    def n_rounds(n, rival):
        proba, y = bent_problem(n)
        data, fitted = check_predictions(y, proba, None), TreeRecalibrator()
        proba = fitted.fit_folds(data, np.arange(n) % 5, np.arange(3), rival)
        assert len(fitted._trees._trees) == 5 * fitted.n_rounds_
        np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-5)
        return fitted.n_rounds_

    assert n_rounds(1500, np.full(1500, 0.9)) <= 5 < n_rounds(1500, np.full(1500, 0.1))
    assert n_rounds(500, np.full(500, 0.9)) == n_rounds(500, None)
