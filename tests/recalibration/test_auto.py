"""AutoRecalibrator scores its candidates as loops do, and keeps the one with the surest gain."""

import numpy as np
import pandas as pd
import pytest
from oracles import brier_score, normalised
from problems import random_problem, two_columns
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from skcalib._inputs.checks import check_predictions
from skcalib.datasets import make_temperature_family
from skcalib.recalibration import (
    AutoRecalibrator,
    IdentityRecalibrator,
    IsotonicRecalibrator,
    SigmoidRecalibrator,
    TemperatureRecalibrator,
)
from skcalib.recalibration._auto import _folds
from skcalib.recalibration._registry import default_candidates

CANDIDATES = [
    ("temperature", TemperatureRecalibrator()),
    ("isotonic", IsotonicRecalibrator(strict=True)),
]


def gain_by_loops(label, proba, weight, scoring, n_folds):
    """Loss and gain of doing nothing and of each candidate, from scikit-learn's scores."""
    classes = np.arange(2 if proba.ndim == 1 else proba.shape[1])
    weight = normalised(weight, len(label))
    fold = _folds(check_predictions(label, proba, sample_weight=weight), n_folds)
    matrix = two_columns(proba) if proba.ndim == 1 else proba

    def one_loss(row, y):
        if scoring == "log_loss":
            return log_loss([y], [row], labels=classes)
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
        losses.append([one_loss(row, y) for row, y in zip(rows, label, strict=True)])
    losses = np.array(losses)
    gain = losses[0] - losses
    error = [
        np.sqrt(sum(w**2 * (g - weight @ row) ** 2 for w, g in zip(weight, row, strict=True)))
        for row in gain
    ]
    return losses @ weight, gain @ weight, error


@pytest.mark.parametrize("scoring", ["log_loss", "brier"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_results_equal_loops(scoring, n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    label, proba = random_problem(rng, 40, n_classes)
    weight = rng.random(40) if weighted else None
    auto = AutoRecalibrator(CANDIDATES, scoring=scoring, n_folds=3)
    auto.fit(proba, label, sample_weight=weight)
    loss, gain, error = gain_by_loops(label, proba, weight, scoring, 3)
    results = auto.results_
    assert results["name"] == ["none", "temperature", "isotonic"]
    np.testing.assert_allclose(results["loss"], loss, rtol=1e-10)
    np.testing.assert_allclose(results["gain"], gain, atol=1e-12)
    np.testing.assert_allclose(results["gain_error"], error, atol=1e-12)
    assert auto.best_name_ == results["name"][np.argmax(gain - error)]


def test_the_best_is_fitted_on_everything():
    label, proba = make_temperature_family(500, inverse_temperature=3, random_state=0)
    auto = AutoRecalibrator(CANDIDATES).fit(proba, label)
    assert auto.best_name_ == "temperature"
    expected = TemperatureRecalibrator().fit(proba, label)
    assert auto.best_recalibrator_.temperature_ == pytest.approx(expected.temperature_, rel=1e-12)
    np.testing.assert_allclose(auto.transform(proba), expected.transform(proba), atol=1e-14)
    assert not hasattr(CANDIDATES[0][1], "temperature_")  # the candidates stay as they are


def test_calibrated_predictions_may_stay_as_they_are():
    label, proba = make_temperature_family(2000, inverse_temperature=1, random_state=1)
    auto = AutoRecalibrator([("isotonic", IsotonicRecalibrator())]).fit(proba, label)
    assert auto.best_name_ == "none"
    np.testing.assert_array_equal(auto.predict_proba(proba), two_columns(proba))
    assert auto.results_["gain"][0] == auto.results_["gain_error"][0] == 0
    assert auto.results_["gain"][1] < 0


def test_a_proper_score_does_not_throw_the_predictions_away():
    """The class frequencies are calibrated; a calibration error would choose them."""
    label, proba = make_temperature_family(1000, inverse_temperature=1, random_state=0)
    constant = LogisticRegression(C=1e-9)  # of the two probabilities, it keeps the frequencies
    auto = AutoRecalibrator([("constant", constant)]).fit(proba, label)
    assert np.ptp(auto.results_["loss"]) > 0.05
    assert auto.best_name_ == "none"


def test_candidates_of_other_packages():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=100)
    names = np.array(["a", "b", "c"])[rng.integers(3, size=100)]  # predictions tell nothing
    auto = AutoRecalibrator([("logistic", LogisticRegression())]).fit(proba, names)
    expected = LogisticRegression().fit(proba, names).predict_proba(proba)
    assert auto.best_name_ == "logistic"
    np.testing.assert_allclose(auto.predict_proba(proba), expected, atol=1e-6)
    np.testing.assert_array_equal(auto.classes_, ["a", "b", "c"])


def test_candidates_that_a_fold_shows_only_some_classes():
    label, proba = np.array([0, 0, 0, 1, 2, 2]), np.random.default_rng(1).dirichlet(np.ones(3), 6)
    logistic = LogisticRegression()
    auto = AutoRecalibrator([("logistic", logistic)], n_folds=3).fit(proba, label)
    fold = _folds(check_predictions(label, proba), 3)
    losses = []
    for i in range(6):
        fitted = clone(logistic).fit(proba[fold != fold[i]], label[fold != fold[i]])
        row = dict(zip(fitted.classes_, fitted.predict_proba(proba[i : i + 1])[0], strict=True))
        losses.append(-np.log(max(row.get(label[i], 0.0), np.finfo(float).eps)))
    assert auto.results_["loss"][1] == pytest.approx(np.mean(losses), rel=1e-6)


def test_candidates_of_other_packages_get_two_columns_and_give_all():
    rng = np.random.default_rng(0)
    proba = rng.random(100)
    auto = AutoRecalibrator([("logistic", LogisticRegression())])
    auto.fit(proba, rng.integers(0, 2, size=100))
    assert auto.best_name_ == "logistic"
    np.testing.assert_array_equal(auto.predict_proba(proba), auto.predict_proba(two_columns(proba)))
    absent = AutoRecalibrator([("logistic", LogisticRegression())], labels=[0, 1, 2])
    matrix = rng.dirichlet(np.ones(3), size=100)
    absent.fit(matrix, rng.integers(0, 2, size=100))
    assert absent.best_name_ == "logistic"
    assert absent.predict_proba(matrix).shape == (100, 3)


def test_the_usual_candidates():
    label, proba = random_problem(np.random.default_rng(0), 50)
    two = AutoRecalibrator().fit(proba, label).results_["name"]
    assert two == ["none", "temperature", "sigmoid", "beta", "quadratic", "spline", "isotonic"]
    assert default_candidates(is_binary=True)["isotonic"].strict
    label, proba = random_problem(np.random.default_rng(0), 50, 3)
    more = AutoRecalibrator().fit(proba, label).results_["name"]
    assert more == ["none", "temperature", "sigmoid", "matrix scaling", "Dirichlet"]


def test_of_equals_nothing_is_done():
    label, proba = random_problem(np.random.default_rng(0), 50)
    assert (
        AutoRecalibrator([("same", IdentityRecalibrator())]).fit(proba, label).best_name_ == "none"
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_calibrated_predictions_mostly_stay_as_they_are(n_classes):
    """Some 53 of 60 do, with a standard deviation below 3; by the least loss 25 to 37 would."""
    n_unchanged = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        label, proba = random_problem(rng, 100, n_classes, calibrated=True)
        auto = AutoRecalibrator(labels=range(n_classes)).fit(proba, label)
        n_unchanged += auto.best_name_ == "none"
    assert n_unchanged >= 42


def test_results_are_a_table():
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_cal, y_train, y_cal = train_test_split(X, y, test_size=0.5, random_state=0)
    proba = GaussianNB().fit(X_train, y_train).predict_proba(X_cal)
    auto = AutoRecalibrator().fit(proba, y_cal)
    table = pd.DataFrame(auto.results_).set_index("name")
    assert list(table.columns) == ["loss", "gain", "gain_error"]
    assert table["loss"].idxmin() == auto.best_name_
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
    fold = _folds(check_predictions(label, proba, sample_weight=weight), 5)
    for k in range(n_classes):
        counts = np.bincount(fold[label == k], minlength=5)
        assert np.ptp(counts) <= 1
    assert np.ptp(np.bincount(fold)) <= 1
    order = rng.permutation(103)
    predictions = check_predictions(label[order], proba[order], sample_weight=weight[order])
    moved = _folds(predictions, 5)
    np.testing.assert_array_equal(moved[order >= 20], fold[order][order >= 20])
    for k in range(n_classes):  # of equal samples, it does not matter which is where
        same = (np.arange(103) < 20) & (label == k)
        np.testing.assert_array_equal(np.sort(moved[same[order]]), np.sort(fold[same]))


def test_folds_do_not_depend_on_the_predictions_beyond_their_order():
    """Folds that alternate along the predictions would hide how much a flexible map overfits."""
    label, proba = np.zeros(1000, dtype=int), np.linspace(0, 1, 1000)
    fold = _folds(check_predictions(label, proba, labels=[0, 1]), 2)
    n_changes = np.sum(fold[1:] != fold[:-1])
    assert abs(n_changes - 500) < 4 * np.sqrt(250)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_samples(n, n_classes):
    label, proba = random_problem(np.random.default_rng(n), n, n_classes)
    auto = AutoRecalibrator(labels=range(n_classes)).fit(proba, label)
    calibrated = auto.predict_proba(proba)
    assert calibrated.min() >= 0
    np.testing.assert_allclose(calibrated.sum(axis=1), 1, rtol=1e-14)


def test_one_sample_says_nothing():
    with pytest.raises(ValueError, match="X must hold at least 2 samples of positive weight"):
        AutoRecalibrator(labels=[0, 1]).fit([0.2, 0.3], [0, 1], sample_weight=[1, 0])


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
    ("name", "value"), [("scoring", "accuracy"), ("n_folds", 1), ("n_folds", 2.5)]
)
def test_bad_options_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        AutoRecalibrator(**{name: value}).fit([0.2, 0.7], [0, 1])
