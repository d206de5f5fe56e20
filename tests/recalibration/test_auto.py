"""AutoRecalibrator scores its candidates as loops do, and averages them by these scores."""

import pickle

import numpy as np
import pandas as pd
import pytest
from oracles import brier_score, normalised
from problems import random_problem, two_columns
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import GaussianNB

from skcalib._data import check_predictions
from skcalib._numerics.dependence import UnitSums
from skcalib._numerics.scaling import SoftmaxProblem
from skcalib.datasets import make_temperature_family
from skcalib.recalibration import (
    AutoRecalibrator,
    DirichletRecalibrator,
    IdentityRecalibrator,
    IsotonicRecalibrator,
    MatrixScalingRecalibrator,
    PairwiseScalingRecalibrator,
    RecalibratedClassifier,
    SigmoidRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
    _registry,
    export_sql,
    export_table,
)
from skcalib.recalibration._auto import average_weights
from skcalib.recalibration._either import to_fit_data
from skcalib.recalibration._folds import assign_folds
from skcalib.recalibration._registry import RECALIBRATORS

TWO = ["none", "temperature", "sigmoid", "spline", "isotonic", "ensemble temperature"]
PAIRS = ["pairwise scaling", "isotonic and pairwise scaling"]
MORE = [
    "none",
    "temperature",
    "isotonic",
    "ensemble temperature",
    "vector scaling",
    "matrix scaling",
    "Dirichlet",
    "pairwise scaling",
    "matrix scaling with weak penalties",
    "isotonic and pairwise scaling",
]

CANDIDATES = [
    ("temperature", TemperatureRecalibrator()),
    ("isotonic", IsotonicRecalibrator(strict=True)),
]


def gain_by_loops(label, proba, weight, scoring, n_folds, mixes=False):
    """Loss and gain of doing nothing and of each candidate, one sample at a time."""
    classes = np.arange(2 if proba.ndim == 1 else proba.shape[1])
    weight = normalised(weight, len(label))
    fold = assign_folds(check_predictions(label, proba, sample_weight=weight), n_folds)
    matrix = two_columns(proba) if proba.ndim == 1 else proba

    def one_loss(row, y):
        if scoring == "log_loss":
            return -np.log(row[y])
        # for two classes the half, as the loss of the positive one
        return brier_score(np.array([y]), row[None]) / (1 + (len(row) == 2))

    losses = [[one_loss(row, y) for row, y in zip(matrix, label, strict=True)]]
    for _, candidate in CANDIDATES:
        fitted = []
        for k in range(n_folds):
            rest = fold != k
            fitted.append(clone(candidate).set_params(labels=classes))
            fitted[k].fit(proba[rest], label[rest], sample_weight=weight[rest])
        rows = [fitted[k].predict_proba(proba[i : i + 1])[0] for i, k in enumerate(fold)]
        if mixes:  # with samples of equal weight
            n = len(label) - np.bincount(fold)[fold][:, None]
            rows = (n * np.array(rows) + 1 / 2) / (n + 1)
        losses.append([one_loss(row, y) for row, y in zip(rows, label, strict=True)])
    losses = np.array(losses)
    gain = losses[0] - losses
    error = [
        np.sqrt(sum(w**2 * (g - weight @ row) ** 2 for w, g in zip(weight, row, strict=True)))
        for row in gain
    ]
    return losses @ weight, gain @ weight, error


@pytest.mark.parametrize(
    ("scoring", "n_classes", "weighted"),
    [("log_loss", 2, False), ("log_loss", 3, True), ("brier", 2, True), ("brier", 3, False)],
)
def test_results_equal_loops(scoring, n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    label, proba = random_problem(rng, 24, n_classes)
    weight = rng.random(24) if weighted else None
    auto = AutoRecalibrator(CANDIDATES, scoring=scoring, ensemble=False, cv=3)
    auto.fit(proba, label, sample_weight=weight)
    loss, gain, error = gain_by_loops(label, proba, weight, scoring, 3)
    results = auto.results_
    assert results["name"] == ["none", "temperature", "isotonic"]
    np.testing.assert_allclose(results["loss"], loss, rtol=1e-10)
    np.testing.assert_allclose(results["gain"], gain, atol=1e-12)
    np.testing.assert_allclose(results["gain_error"], error, atol=1e-12)
    surest = results["name"][np.argmax(gain - error)]
    assert auto.best_name_ == surest
    assert auto.weights_ == {surest: 1.0}


@pytest.mark.parametrize("scoring", ["log_loss", "brier"])
def test_candidates_for_two_classes_are_mixed_with_equal_probabilities(scoring):
    label, proba = random_problem(np.random.default_rng(2), 24)
    auto = AutoRecalibrator(CANDIDATES, scoring=scoring, cv=3).fit(proba, label)
    loss, gain, error = gain_by_loops(label, proba, None, scoring, 3, mixes=True)
    np.testing.assert_allclose(auto.results_["loss"], loss, rtol=1e-10)
    np.testing.assert_allclose(auto.results_["gain"], gain, atol=1e-12)
    np.testing.assert_allclose(auto.results_["gain_error"], error, atol=1e-12)


def test_hopeless_candidates_are_stopped_and_all_else_is_the_same(monkeypatch):
    label, proba = make_temperature_family(1500, inverse_temperature=3, random_state=0)
    constant = LogisticRegression(C=1e-9)
    candidates = [("constant", constant), *CANDIDATES, ("twice", TemperatureRecalibrator())]
    fast = AutoRecalibrator(candidates).fit(proba, label)
    assert fast.results_["folds"].tolist() == [5, 1, 5, 5, 5]
    order = np.random.default_rng(0).permutation(1500)
    moved = AutoRecalibrator(candidates).fit(proba[order], label[order])
    np.testing.assert_allclose(moved.results_["gain"], fast.results_["gain"], atol=1e-10)
    monkeypatch.setattr("skcalib.recalibration._auto._MIN_SAMPLES_TO_STOP", np.inf)
    slow = AutoRecalibrator(candidates).fit(proba, label)
    assert slow.results_["folds"].tolist() == [5] * 5
    assert slow.weights_ == pytest.approx(fast.weights_, rel=1e-12)
    for key in ("loss", "gain", "gain_error"):
        full, part = slow.results_[key], fast.results_[key]
        np.testing.assert_array_equal(np.delete(part, 1), np.delete(full, 1))
    # what is known of the one that was stopped
    assert abs(part[1] / full[1] - np.sqrt(5)) < 0.5
    assert abs(fast.results_["gain"][1] - slow.results_["gain"][1]) < 4 * part[1]
    first = assign_folds(check_predictions(label, proba), 5) == 0
    fitted = LogisticRegression(C=1e-9).fit(two_columns(proba[~first]), label[~first])
    mixed = (1200 * fitted.predict_proba(two_columns(proba[first])) + 1 / 2) / 1201
    gain = log_loss(label[first], proba[first]) - log_loss(label[first], mixed)
    assert fast.results_["gain"][1] == pytest.approx(gain, rel=1e-9)
    assert fast.results_["loss"][1] == pytest.approx(fast.results_["loss"][0] - gain, rel=1e-12)


def weights_by_loops(loss, weight, order):
    """The documented weights, one draw and one candidate after another."""
    generator, n = np.random.default_rng(0), 1 / sum(w**2 for w in weight)
    shares = np.zeros((200, len(loss)))
    for draw in shares:
        drawn = dict(zip(order, generator.exponential(size=len(weight)), strict=True))
        total = sum(weight[i] * drawn[i] for i in order)
        for c, row in enumerate(loss):
            mean = sum(weight[i] * drawn[i] * row[i] for i in order) / total
            draw[c] = np.exp(3 * (c == 0) - n / 2 * mean)
        draw /= draw.sum()
    mean = shares.mean(axis=0)
    mean[mean < 0.01] = 0
    return mean / mean.sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_equal_loops(weighted):
    rng = np.random.default_rng(0)
    loss, order = rng.exponential(size=(5, 30)), rng.permutation(30)
    loss[4] += 3
    weight = normalised(rng.random(30) if weighted else None, 30)
    found = average_weights(loss, UnitSums(weight, None), order)
    np.testing.assert_allclose(found, weights_by_loops(loss, weight, order), atol=1e-12)
    assert found[4] == 0 < np.sort(found)[-2]


def test_weights_are_the_mean_over_dirichlet_weights():
    # the mean loss of n samples with weights from a flat Dirichlet distribution
    rng = np.random.default_rng(1)
    loss = rng.exponential(size=(3, 40))
    drawn = rng.dirichlet(np.ones(40), size=20_000) @ loss.T
    share = np.exp(-20 * drawn + [3, 0, 0])
    share /= share.sum(axis=1, keepdims=True)
    expected, error = share.mean(axis=0), share.std(axis=0) / np.sqrt(200)
    found = average_weights(loss, UnitSums(np.full(40, 1 / 40), None), np.arange(40))
    assert error.max() < 0.04
    assert (np.abs(found - expected) < 4 * error + 0.01).all()


def test_candidates_that_do_the_same_share_what_is_left():
    loss = np.tile(np.random.default_rng(0).exponential(size=20), (4, 1))
    expected = np.array([np.e**3, 1, 1, 1]) / (np.e**3 + 3)
    found = average_weights(loss, UnitSums(np.full(20, 0.05), None), np.arange(20))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("n_classes", "weighted"), [(2, False), (3, True)])
def test_the_result_is_the_weighted_mean_of_the_candidates(n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    label, proba = random_problem(rng, 60, n_classes)
    weight = rng.random(60) if weighted else None
    candidates = [*CANDIDATES, ("sigmoid", SigmoidRecalibrator())]
    auto = AutoRecalibrator(candidates).fit(proba, label, sample_weight=weight)
    assert len(auto.weights_) > 1
    uniform = (1 - auto.weights_.get("none", 0)) / 61 if n_classes == 2 else 0
    assert auto.uniform_share_ == pytest.approx(uniform, abs=1e-15)
    assert sum(auto.weights_.values()) == pytest.approx(1 - uniform, abs=1e-15)
    expected = np.full((60, n_classes), uniform / n_classes)
    for name, share in auto.weights_.items():
        one = dict([("none", IdentityRecalibrator()), *candidates])[name]
        one = clone(one).fit(proba, label, sample_weight=weight)
        expected += share * one.predict_proba(proba)
    np.testing.assert_allclose(auto.predict_proba(proba), expected, atol=1e-12)
    table = dict(zip(auto.results_["name"], auto.results_["weight"], strict=True))
    assert {name: share for name, share in table.items() if share > 0} == auto.weights_
    assert auto.weights_[auto.best_name_] == max(auto.weights_.values())
    order = rng.permutation(60)
    moved = AutoRecalibrator(candidates).fit(
        proba[order], label[order], sample_weight=None if weight is None else weight[order]
    )
    np.testing.assert_allclose(moved.predict_proba(proba), expected, atol=1e-10)
    copy = pickle.loads(pickle.dumps(auto))
    np.testing.assert_array_equal(copy.predict_proba(proba), auto.predict_proba(proba))


def test_what_entered_is_shown():
    label, proba = make_temperature_family(200, inverse_temperature=3, random_state=0)
    auto = AutoRecalibrator(CANDIDATES, cv=3)
    assert "#" not in repr(auto)
    auto.fit(proba, label)
    named = clone(auto).set_params(labels=np.array([0, 1]))
    assert "labels=array([0, 1])" in repr(named)
    assert repr(named.fit(proba, label)) == repr(auto)
    shown = repr(auto).partition("  # ")[2]
    assert shown.count(" + ") == len(auto.weights_) - 1
    assert shown.startswith(f"{max(auto.weights_.values()):.2f} {auto.best_name_}")
    assert shown in auto._repr_html_()
    model = RecalibratedClassifier(GaussianNB(), auto).fit(*load_breast_cancer(return_X_y=True))
    assert f"{model.recalibrator_!r}".count("#") == 1


@pytest.mark.parametrize(("power", "names"), [(2, MORE[5:]), (3, PAIRS)])
def test_what_would_take_too_long_is_left_out(power, names, monkeypatch):
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    data, limit = check_predictions(label, proba), 60 * 3**power
    monkeypatch.setattr(_registry, "_MAX_MULTIPLICATIONS", limit)
    candidates, left_out = _registry.select_candidates(data, 48, "log_loss")
    assert left_out == PAIRS * (power == 2)
    assert ["none", *candidates] == [name for name in MORE if name not in left_out]
    monkeypatch.setattr(_registry, "_MAX_MULTIPLICATIONS", limit - 1)
    candidates, left_out = _registry.select_candidates(data, 48, "log_loss")
    assert ["none", *candidates] == [name for name in MORE if name not in names]
    assert left_out == names


@pytest.mark.parametrize(
    ("n", "names"), [(2, PAIRS), (30, []), (150, []), (151, ["matrix scaling", "Dirichlet"])]
)
def test_matrices_need_samples_and_strong_penalties_few(n, names):
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    candidates, _ = _registry.select_candidates(check_predictions(label, proba), n, "log_loss")
    expected = [name for name in MORE if name not in (*names, "isotonic" * (n < 6))]
    assert ["none", *candidates] == expected


@pytest.mark.parametrize(("n", "n_classes"), [(59, 60), (60, 60), (30, 50)])
def test_large_matrices_need_as_many_samples_as_classes(n, n_classes):
    label, proba = random_problem(np.random.default_rng(0), 200, n_classes)
    data = check_predictions(label, proba, labels=range(n_classes))
    candidates, _ = _registry.select_candidates(data, n, "log_loss")
    assert ("Dirichlet" in candidates) == (n >= n_classes or n_classes <= 50)


def test_what_is_left_out_is_named(monkeypatch):
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    monkeypatch.setattr(_registry, "_MAX_MULTIPLICATIONS", 0)
    auto = AutoRecalibrator(cv=2, labels=range(3)).fit(proba, label)
    assert auto.results_["name"] == MORE[:5]
    assert auto.left_out_ == MORE[5:]
    assert repr(auto).endswith(f"; not tried: {', '.join(MORE[5:])}")
    assert f"; not tried: {', '.join(MORE[5:])}" in auto._repr_html_()
    # who asks for it gets it
    auto.set_params(candidates=[("slow", DirichletRecalibrator())]).fit(proba, label)
    assert auto.results_["name"] == ["none", "slow"]
    assert auto.left_out_ == []
    assert "not tried" not in repr(auto)


def test_pairs_of_classes_need_samples_of_each():
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    data = check_predictions(label, proba)
    assert PAIRS[0] in _registry.select_candidates(data, 30, "log_loss")[0]
    candidates, left_out = _registry.select_candidates(data, 29, "log_loss")
    assert ["none", *candidates] == [name for name in MORE if name not in PAIRS]
    assert left_out == []


def test_an_average_has_no_table_and_one_recalibrator_has_its_formula():
    label, proba = make_temperature_family(200, inverse_temperature=3, random_state=0)
    auto = AutoRecalibrator([*CANDIDATES, ("sigmoid", SigmoidRecalibrator())]).fit(proba, label)
    with pytest.raises(ValueError, match="found AutoRecalibrator"):
        export_table(auto)
    auto.set_params(ensemble=False).fit(proba, label)
    assert export_sql(auto) == export_sql(auto.best_recalibrator_)


def test_a_table_of_one_interval_map_needs_no_average():
    label, proba = make_temperature_family(2000, inverse_temperature=3, random_state=0)
    auto = AutoRecalibrator([("isotonic", IsotonicRecalibrator())]).fit(proba, label)
    assert list(auto.weights_) == ["isotonic"]
    with pytest.raises(ValueError, match="ensemble=False"):  # equal probabilities are mixed in
        export_table(auto)
    table = export_table(auto.set_params(ensemble=False).fit(proba, label))
    np.testing.assert_array_equal(table["value"], export_table(auto.best_recalibrator_)["value"])


def test_the_best_is_fitted_on_everything():
    label, proba = make_temperature_family(500, inverse_temperature=3, random_state=0)
    auto = AutoRecalibrator(CANDIDATES, ensemble=False).fit(proba, label)
    assert auto.best_name_ == "temperature"
    expected = TemperatureRecalibrator().fit(proba, label)
    assert auto.best_recalibrator_.temperature_ == pytest.approx(expected.temperature_, rel=1e-12)
    np.testing.assert_allclose(auto.transform(proba), expected.transform(proba), atol=1e-14)
    assert not hasattr(CANDIDATES[0][1], "temperature_")  # the candidates stay as they are


def test_calibrated_predictions_may_stay_as_they_are():
    label, proba = make_temperature_family(2000, inverse_temperature=1, random_state=1)
    auto = AutoRecalibrator([("isotonic", IsotonicRecalibrator())], ensemble=False).fit(
        proba, label
    )
    assert auto.best_name_ == "none"
    np.testing.assert_array_equal(auto.predict_proba(proba), two_columns(proba))
    assert auto.results_["gain"][0] == auto.results_["gain_error"][0] == 0
    assert auto.results_["gain"][1] < 0


def test_a_proper_score_does_not_throw_the_predictions_away():
    """The class frequencies are calibrated; a calibration error would choose them."""
    label, proba = make_temperature_family(1000, inverse_temperature=1, random_state=0)
    constant = LogisticRegression(C=1e-9)  # of the two probabilities, it keeps the frequencies
    auto = AutoRecalibrator([("constant", constant)], ensemble=False).fit(proba, label)
    assert np.ptp(auto.results_["loss"]) > 0.05
    assert auto.best_name_ == "none"


def test_candidates_of_other_packages():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=100)
    names = np.array(["a", "b", "c"])[rng.integers(3, size=100)]  # predictions tell nothing
    auto = AutoRecalibrator([("logistic", LogisticRegression())], ensemble=False).fit(proba, names)
    expected = LogisticRegression().fit(proba, names).predict_proba(proba)
    assert auto.best_name_ == "logistic"
    np.testing.assert_allclose(auto.predict_proba(proba), expected, atol=1e-6)
    np.testing.assert_array_equal(auto.classes_, ["a", "b", "c"])


def test_candidates_that_a_fold_shows_only_some_classes():
    label, proba = np.array([0, 0, 0, 1, 2, 2]), np.random.default_rng(1).dirichlet(np.ones(3), 6)
    logistic = LogisticRegression()
    auto = AutoRecalibrator([("logistic", logistic)], cv=3).fit(proba, label)
    fold = assign_folds(check_predictions(label, proba), 3)
    losses = []
    for i in range(6):
        fitted = clone(logistic).fit(proba[fold != fold[i]], label[fold != fold[i]])
        row = dict(zip(fitted.classes_, fitted.predict_proba(proba[i : i + 1])[0], strict=True))
        losses.append(-np.log(max(row.get(label[i], 0.0), np.finfo(float).eps)))
    assert auto.results_["loss"][1] == pytest.approx(np.mean(losses), rel=1e-6)


def test_candidates_of_other_packages_get_two_columns_and_give_all():
    rng = np.random.default_rng(0)
    proba = rng.random(100)
    auto = AutoRecalibrator([("logistic", LogisticRegression())], ensemble=False)
    auto.fit(proba, rng.integers(0, 2, size=100))
    assert auto.best_name_ == "logistic"
    np.testing.assert_array_equal(auto.predict_proba(proba), auto.predict_proba(two_columns(proba)))
    absent = AutoRecalibrator(
        [("logistic", LogisticRegression())], ensemble=False, labels=[0, 1, 2]
    )
    matrix = rng.dirichlet(np.ones(3), size=100)
    absent.fit(matrix, rng.integers(0, 2, size=100))
    assert absent.best_name_ == "logistic"
    assert absent.predict_proba(matrix).shape == (100, 3)


def test_the_usual_candidates():
    label, proba = random_problem(np.random.default_rng(0), 50)
    two = AutoRecalibrator().fit(proba, label).results_["name"]
    assert two == [*TWO, "Venn-Abers"]
    few, many = (
        _registry.select_candidates(check_predictions(label, proba), n, "log_loss")[0]
        for n in (400, 401)
    )
    assert [*few] == two[1:]
    assert [*many] == TWO[1:]
    label, proba = random_problem(np.random.default_rng(0), 50, 3)
    more = AutoRecalibrator().fit(proba, label).results_["name"]
    assert more == MORE


def test_of_equals_nothing_is_done():
    label, proba = random_problem(np.random.default_rng(0), 50)
    assert (
        AutoRecalibrator([("same", IdentityRecalibrator())]).fit(proba, label).best_name_ == "none"
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_calibrated_predictions_mostly_stay_as_they_are(n_classes):
    """Most weight stays with them in three of four, and the expected loss grows by little."""
    n_unchanged, loss = 0, 0.0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        label, proba = random_problem(rng, 100, n_classes, calibrated=True)
        auto = AutoRecalibrator(labels=range(n_classes)).fit(proba, label)
        n_unchanged += auto.best_name_ == "none"
        matrix = two_columns(proba) if n_classes == 2 else proba
        loss += (matrix * np.log(matrix / auto.predict_proba(proba))).sum() / 100 / 60
    assert n_unchanged >= 42
    assert loss < 0.01


def test_results_are_a_table():
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_cal, y_train, y_cal = train_test_split(X, y, test_size=0.5, random_state=0)
    proba = GaussianNB().fit(X_train, y_train).predict_proba(X_cal)
    auto = AutoRecalibrator().fit(proba, y_cal)
    table = pd.DataFrame(auto.results_).set_index("name")
    assert list(table.columns) == ["loss", "gain", "gain_error", "folds", "weight"]
    assert table["weight"].idxmax() == auto.best_name_
    assert table.loc["none", "loss"] == pytest.approx(log_loss(y_cal, proba))
    assert table.loc[auto.best_name_, "gain"] > 2 * table.loc[auto.best_name_, "gain_error"] > 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_folds_are_dealt_within_classes_whatever_the_order(n_classes):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 103, n_classes)
    proba[50:60], label[50:60] = proba[50], label[50]  # equal rows with different weights
    weight = rng.random(103)
    proba[:20] = proba[0]  # with different labels and equal weights
    weight[:20] = weight[0]
    fold = assign_folds(check_predictions(label, proba, sample_weight=weight), 5)
    for k in range(n_classes):
        counts = np.bincount(fold[label == k], minlength=5)
        assert np.ptp(counts) <= 1
    assert np.ptp(np.bincount(fold)) <= 1
    order = rng.permutation(103)
    predictions = check_predictions(label[order], proba[order], sample_weight=weight[order])
    moved = assign_folds(predictions, 5)
    np.testing.assert_array_equal(moved[order >= 20], fold[order][order >= 20])
    for k in range(n_classes):  # of equal samples, it does not matter which is where
        same = (np.arange(103) < 20) & (label == k)
        np.testing.assert_array_equal(np.sort(moved[same[order]]), np.sort(fold[same]))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_names_of_classes_do_not_matter(n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    label, proba = random_problem(rng, 80, n_classes)
    proba = two_columns(proba) if n_classes == 2 else proba
    proba[:30] = np.eye(n_classes)[rng.integers(0, n_classes, 30)]  # ties, of zeros and ones
    proba[30:50] = proba[rng.integers(50, 60, 20)]
    weight = rng.integers(1, 4, 80).astype(float) if weighted else None
    moved, rows = np.roll(np.arange(n_classes), 1), rng.permutation(80)
    plain = AutoRecalibrator(CANDIDATES, cv=3, labels=range(n_classes))
    plain.fit(proba, label, sample_weight=weight)
    other = clone(plain).fit(
        proba[rows][:, moved],
        np.argsort(moved)[label[rows]],
        sample_weight=None if weight is None else weight[rows],
    )
    np.testing.assert_allclose(
        other.predict_proba(proba[:, moved]), plain.predict_proba(proba)[:, moved], atol=1e-9
    )
    for key, values in plain.results_.items():
        if key != "name":
            np.testing.assert_allclose(other.results_[key], values, rtol=1e-9, atol=1e-12)


def test_names_of_classes_do_not_matter_if_predictions_are_certain():
    moved = np.roll(np.arange(5), 1)
    for seed in range(20):  # in some, two classes have equal counts of labels and hits
        label, predicted = np.random.default_rng(seed).integers(0, 5, (2, 60))
        folds = []
        for columns in (np.arange(5), moved):
            proba = np.eye(5)[predicted][:, columns]
            data = check_predictions(np.argsort(columns)[label], proba, labels=range(5))
            fold = assign_folds(data, 3)
            folds.append(sorted(zip(predicted, label, fold, strict=True)))
        np.testing.assert_array_equal(*folds)


def test_folds_do_not_depend_on_the_predictions_beyond_their_order():
    """Folds that alternate along the predictions would hide how much a flexible map overfits."""
    label, proba = np.zeros(1000, dtype=int), np.linspace(0, 1, 1000)
    fold = assign_folds(check_predictions(label, proba, labels=[0, 1]), 2)
    n_changes = np.sum(fold[1:] != fold[:-1])
    assert abs(n_changes - 500) < 4 * np.sqrt(250)


@pytest.mark.parametrize(("n", "n_classes"), [(2, 2), (3, 2), (2, 3), (5, 3)])
def test_few_samples(n, n_classes):
    label, proba = random_problem(np.random.default_rng(n), n, n_classes)
    auto = AutoRecalibrator(labels=range(n_classes)).fit(proba, label)
    calibrated = auto.predict_proba(proba)
    assert calibrated.min() >= 0
    np.testing.assert_allclose(calibrated.sum(axis=1), 1, rtol=1e-14)


def test_one_sample_says_nothing():
    with pytest.raises(ValueError, match="X must hold at least 2 samples of positive weight"):
        AutoRecalibrator(labels=[0, 1]).fit([0.2, 0.3], [0, 1], sample_weight=[1, 0])


@pytest.mark.integration
def test_jobs_do_not_change_the_result():
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    one, two = (AutoRecalibrator(CANDIDATES, n_jobs=n_jobs).fit(proba, label) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.results_["loss"], two.results_["loss"])


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([TemperatureRecalibrator()], "must be pairs of a name and a recalibrator"),
        ([("a", TemperatureRecalibrator)], "must be objects with the methods"),
        ([("a", "temperature")], "must be objects with the methods fit and"),
        ([("none", SigmoidRecalibrator())], "none of them 'none'"),
        ([("a", SigmoidRecalibrator()), ("a", SigmoidRecalibrator())], "found 'a' twice"),
    ],
)
def test_bad_candidates_are_refused(candidates, message):
    with pytest.raises(ValueError, match=message):
        AutoRecalibrator(candidates).fit([0.2, 0.7, 0.6, 0.1], [0, 1, 1, 0])


@pytest.mark.parametrize(
    ("name", "value"),
    [("scoring", "accuracy"), ("scoring", "crps"), ("cv", 1), ("cv", 2.5)],
)
def test_bad_options_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        AutoRecalibrator(**{name: value}).fit([0.2, 0.7], [0, 1])


@pytest.mark.parametrize(("n_classes", "ensemble"), [(2, True), (3, False), (10, True)])
def test_the_order_of_classes_can_be_kept(n_classes, ensemble):
    for seed, (n, spread) in enumerate([(30, 3), (30, 20), (80, 0.1)]):
        rng = np.random.default_rng(seed)
        proba = softmax(spread * rng.normal(size=(n, n_classes)), axis=1)
        proba[: n // 3] = np.round(proba[: n // 3], 1) + 1e-3  # with ties
        proba /= proba.sum(axis=1, keepdims=True)
        if seed == 1:  # right labels are those that are said to be impossible
            label = proba.argmin(axis=1)
        else:
            label = (rng.random(n)[:, None] > proba.cumsum(axis=1)).sum(axis=1)
        auto = AutoRecalibrator(keep_order=True, ensemble=ensemble, labels=range(n_classes))
        fitted = auto.fit(proba, label).predict_proba(proba)
        np.testing.assert_allclose(fitted.sum(axis=1), 1, rtol=1e-12)
        order = np.argsort(proba, axis=1, kind="stable")
        steps = np.diff(np.take_along_axis(fitted, order, axis=1), axis=1)
        before = np.diff(np.take_along_axis(proba, order, axis=1), axis=1)
        assert (steps >= -1e-15).all()
        assert (steps[before > 1e-8] > 0).all()
        np.testing.assert_allclose(steps[before == 0], 0, atol=1e-15)
        np.testing.assert_array_equal(auto.predict(proba), proba.argmax(axis=1))
        assert "0.00" not in repr(auto)


def test_recalibrators_say_whether_they_keep_the_order():
    label, proba = random_problem(np.random.default_rng(3), 50, 4)
    proba, label = proba**0.3, (label + (label == 1)) % 4
    proba /= proba.sum(axis=1, keepdims=True)
    for name, entry in RECALIBRATORS.items():
        recalibrator = clone(entry.recalibrator)
        if "labels" not in recalibrator.get_params() or name in ("decision", "prior shift"):
            continue
        fitted = recalibrator.set_params(labels=range(4)).fit(proba, label).predict_proba(proba)
        kept = (fitted.argmax(axis=1) == proba.argmax(axis=1)).all()
        assert kept == recalibrator._is_order_preserving, name


def test_a_base_that_is_a_candidate_is_fitted_with_what_stands_on_it(monkeypatch):
    """Also where the latter is a base itself; that alters no result."""
    label, proba = random_problem(np.random.default_rng(3), 60, 3)
    label[:3] = range(3)
    base = MatrixScalingRecalibrator()
    second = PairwiseScalingRecalibrator(base)
    third = PairwiseScalingRecalibrator(second, penalty=1.0)
    fits, fit = [], MatrixScalingRecalibrator._fit
    monkeypatch.setattr(
        MatrixScalingRecalibrator, "_fit", lambda self, data: fits.append(0) or fit(self, data)
    )

    def results(*candidates):
        fits.clear()
        named = [(str(k), one) for k, one in enumerate(candidates)]
        return AutoRecalibrator(named, cv=2, ensemble=False).fit(proba, label).results_

    for shared, n_saved in (((base, second), 2), ((second, base, third), 2)):
        found, n_fits = results(*shared), len(fits)
        expected = results(*map(clone, shared))
        assert n_fits == len(fits) - n_saved
        for key in found:
            np.testing.assert_array_equal(found[key], expected[key], err_msg=key)


def test_what_does_not_keep_the_order_is_refused():
    label, proba = random_problem(np.random.default_rng(3), 50, 4)
    AutoRecalibrator(CANDIDATES[:1], keep_order=True).fit(proba, label)
    for refused in (SigmoidRecalibrator(), LogisticRegression(), AutoRecalibrator()):
        auto = AutoRecalibrator([("mine", refused)], keep_order=True)
        with pytest.raises(ValueError, match=r"keep the order.* name 'mine'\. Leave"):
            auto.fit(proba, label)
    with pytest.raises(ValueError, match="keep_order must be False for forecasts"):
        AutoRecalibrator(keep_order=True).fit(([0.0, 1, 2], [1.0, 1, 1]), [0.0, 1, 2])


def test_few_lucky_samples_of_many_classes_do_not_make_certain():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 6
    proba = np.full((30, 6), 1e-30)
    proba[np.arange(30), y] = 1 - 5e-30  # all right, by luck
    auto = AutoRecalibrator().fit(proba, y)
    assert auto.uniform_share_ == pytest.approx(0.1 / 31, rel=1e-9)
    assert auto.predict_proba(proba[rng.permutation(30)]).min() > 0.0005
    assert sum(auto.weights_.values()) + auto.uniform_share_ == pytest.approx(1, abs=1e-12)
    own = AutoRecalibrator([("temperature", TemperatureRecalibrator())]).fit(proba, y)
    assert own.uniform_share_ == 0


def test_steps_need_two_samples_of_each_of_more_than_two_classes():
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    data = check_predictions(label, proba)
    assert "isotonic" in _registry.select_candidates(data, 6, "log_loss")[0]
    assert "isotonic" not in _registry.select_candidates(data, 5, "log_loss")[0]
    two = check_predictions(label > 0, proba[:, 0])
    assert "isotonic" in _registry.select_candidates(two, 2, "log_loss")[0]


def test_parameters_of_candidates_can_be_searched():
    auto = AutoRecalibrator([("s", SigmoidRecalibrator()), ("t", TemperatureRecalibrator())])
    auto.set_params(s__prior_weight=3.0, t=IsotonicRecalibrator())
    assert auto.get_params()["s__prior_weight"] == 3.0
    assert [type(candidate) for _, candidate in auto.candidates] == [
        SigmoidRecalibrator,
        IsotonicRecalibrator,
    ]
    label, proba = random_problem(np.random.default_rng(0), 60)
    search = GridSearchCV(auto, {"s__prior_weight": [1.0, 100.0]}, cv=2).fit(proba, label)
    assert search.best_params_["s__prior_weight"] in (1.0, 100.0)
    clash = AutoRecalibrator([("scoring", SigmoidRecalibrator())])
    with pytest.raises(ValueError, match=r"names .*found 'scoring'"):
        clash.fit(proba, label)
    assert AutoRecalibrator().get_params()["candidates"] is None


NEWTON_FITS = [
    VectorScalingRecalibrator(),
    MatrixScalingRecalibrator(),
    MatrixScalingRecalibrator(off_diagonal_penalty=np.inf, diagonal_penalty=np.inf),
    DirichletRecalibrator(),
    DirichletRecalibrator(off_diagonal_penalty=np.inf),
    PairwiseScalingRecalibrator(),
]


@pytest.mark.parametrize("recalibrator", NEWTON_FITS)
@pytest.mark.parametrize("case", ["plain", "weighted", "absent class", "constant column"])
def test_fits_from_a_neighbour_equal_fits_anew(recalibrator, case):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 300, 4)
    weight = rng.exponential(size=300) if case == "weighted" else None
    near, rows = np.arange(300) < 240, np.arange(300) >= 60
    if case == "absent class":
        near &= label != 3
    if case == "constant column":
        proba[rows, 3] = 0.1
        proba[rows, :3] *= 0.9 / proba[rows, :3].sum(axis=1, keepdims=True)
    examples = to_fit_data(check_predictions(label, proba, sample_weight=weight))
    neighbour = examples.fit_clone(recalibrator, near)
    warm = examples.fit_clone(recalibrator, rows, warm_start_from=neighbour)
    anew = examples.fit_clone(recalibrator, rows)
    np.testing.assert_allclose(warm.predict_proba(proba), anew.predict_proba(proba), atol=1e-9)
    assert vars(warm).keys() == vars(anew).keys()


@pytest.mark.filterwarnings("ignore:The likelihood of MatrixScalingRecalibrator")
def test_fits_without_an_optimum_start_anew():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=60)
    examples = to_fit_data(check_predictions(proba.argmax(axis=1), proba))
    recalibrator = MatrixScalingRecalibrator(prior_weight=0)
    neighbour = examples.fit_clone(recalibrator, slice(0, 50))
    warm = examples.fit_clone(recalibrator, slice(10, 60), warm_start_from=neighbour)
    np.testing.assert_array_equal(warm.coef_, examples.fit_clone(recalibrator, slice(10, 60)).coef_)


def test_each_fold_starts_from_the_one_before(monkeypatch):
    label, proba = random_problem(np.random.default_rng(0), 1000, 5)
    n_evaluations, evaluate = [0], SoftmaxProblem.evaluate

    def counted(self, parameters):
        n_evaluations[-1] += 1
        return evaluate(self, parameters)

    monkeypatch.setattr(SoftmaxProblem, "evaluate", counted)
    VectorScalingRecalibrator().fit(proba, label)
    n_evaluations.append(0)
    AutoRecalibrator([("vector", VectorScalingRecalibrator())]).fit(proba, label)
    assert n_evaluations[1] < 5 * n_evaluations[0]  # for 6 fits
