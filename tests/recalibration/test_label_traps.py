"""Recalibrators with any names of classes and any pandas index.

Other packages return wrong numbers for such labels without a warning.
"""

import numpy as np
import pandas as pd
import polars
import pytest
import sklearn.calibration
from cases import RECALIBRATOR_CASES
from problems import random_problem
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from skcalib.recalibration import (
    IsotonicRecalibrator,
    PredictProba,
    RecalibratedClassifier,
    SigmoidRecalibrator,
    TemperatureRecalibrator,
)

# Sorted; the first two are names of two classes.
NAMES = {
    "from one": [1, 2, 3],
    "gaps": [0, 10, 20],
    "signs": [-1, 1, 5],
    "strings": ["1", "10", "9"],
}

# Names, index and type of a series: the index lacks 0, or is in another order than the rows.
SERIES = {
    "shifted": ([1, 2, 3], lambda n: np.arange(n) + 7, None),
    "shuffled": ([0, 1, 2], lambda n: np.random.default_rng(0).permutation(n), None),
    "repeated": ([-1, 1, 5], lambda n: np.ones(n, dtype=int), None),
    "words": (["a", "b", "c"], lambda n: [f"row {k}" for k in range(n)], None),
    "objects": ([1, 2, 3], lambda n: np.arange(n) + 7, object),
    "categories": (["a", "b", "c"], lambda n: np.arange(n) + 7, "category"),
    "nullable": ([0, 10, 20], lambda n: np.arange(n)[::-1], "Int64"),
}

all_names = pytest.mark.parametrize("names", [NAMES["signs"], NAMES["strings"]], ids=str)
both_kinds = pytest.mark.parametrize("n_classes", [2, 3])


def direct(recalibrator):
    return clone(recalibrator)


def ensemble(recalibrator):
    return RecalibratedClassifier(GaussianNB(), recalibrator, cv=3)


def single(recalibrator):
    return RecalibratedClassifier(GaussianNB(), recalibrator, cv=3, ensemble=False)


def pipeline(recalibrator):
    return make_pipeline(PredictProba(GaussianNB(), cv=3), clone(recalibrator))


def scored(recalibrator):
    return make_pipeline(
        PredictProba(LinearSVC(), cv=3, response_method="decision_function"), clone(recalibrator)
    )


WAYS = (direct, ensemble, single, pipeline, scored)

# The ways treat all recalibrators alike, and test_laws.py sees each of these alone: here one with a
# map for each class, and one for all.
EVERY_WAY = {
    f"{way.__name__}, {name}": (way, RECALIBRATOR_CASES[name])
    for way, *names in (
        (direct, "isotonic", "temperature"),
        (ensemble, "isotonic"),
        (single, "temperature"),
        (pipeline, "isotonic"),
        (scored, "temperature"),
    )
    for name in names
}
every_way = pytest.mark.parametrize(("way", "recalibrator"), EVERY_WAY.values(), ids=EVERY_WAY)


def training_data(way, n_classes):
    """What the model is fitted on, and labels 0..K−1."""
    if way is direct:
        label, proba = random_problem(np.random.default_rng(0), 60, n_classes)
        return proba, label
    features, target = load_iris(return_X_y=True)
    used = target >= 3 - n_classes  # the last two classes overlap
    return features[used, :2][::2], target[used][::2] - (3 - n_classes)


@every_way
@both_kinds
def test_names_are_numbers_in_their_order(way, recalibrator, n_classes):
    X, label = training_data(way, n_classes)
    reference = way(recalibrator).fit(X, label)
    expected = reference.predict_proba(X)
    assert np.ptp(expected, axis=0).max() > 0.1  # not the same for all
    used = NAMES if way is direct else ("gaps", "strings")
    for names in map(NAMES.get, used):
        names = np.array(names)[:n_classes]
        model = way(recalibrator)
        if way is direct and n_classes == 2:  # one column, and "10" is the event
            model.set_params(labels=names)
        model.fit(X, names[label])
        assert model.classes_.tolist() == names.tolist()
        np.testing.assert_array_equal(model.predict_proba(X), expected)
        np.testing.assert_array_equal(model.predict(X), names[reference.predict(X)])


@pytest.mark.parametrize("name", ["Venn-Abers", "isotonic", "pairwise scaling", "temperature"])
def test_a_column_named_after_the_other_class_is_not_mapped(name):
    proba, label = training_data(direct, 2)
    model = clone(RECALIBRATOR_CASES[name]).set_params(labels=["cat", "dog"])
    model.fit(proba, np.array(["cat", "dog"])[label])
    for column in (pd.Series(1 - proba, name="p_cat"), polars.Series("cat", 1 - proba)):
        with pytest.raises(ValueError, match="X must hold the probability of 'dog'; found"):
            model.predict_proba(column)
    actual = model.predict_proba(pd.Series(proba, name="dog"))
    np.testing.assert_array_equal(actual, model.predict_proba(proba))


@every_way
def test_the_index_of_pandas_is_ignored(way, recalibrator):
    X, label = training_data(way, 3)
    expected = way(recalibrator).fit(X, label).predict_proba(X)
    # what is handed to a classifier is the same for all ways: one series with each trap is enough
    used = SERIES.values() if way is direct else [SERIES["shuffled"], SERIES["categories"]]
    for names, index, dtype in used:
        y = pd.Series(np.array(names)[label], index=index(len(label)), dtype=dtype)
        frame = pd.DataFrame(X, index=y.index).add_prefix("x")
        np.testing.assert_array_equal(way(recalibrator).fit(X, y).predict_proba(X), expected)
        model = way(recalibrator).fit(frame, y)
        assert model.classes_.tolist() == names
        np.testing.assert_allclose(model.predict_proba(frame), expected, atol=1e-8)


@every_way
def test_a_split_of_pandas(way, recalibrator):
    X, label = training_data(way, 3)
    y = pd.Series(label + 1)
    X_train, X_test, y_train, _ = train_test_split(X, y, random_state=0, stratify=y)
    model = way(recalibrator).fit(X_train, y_train)
    expected = way(recalibrator).fit(X_train, y_train.to_numpy() - 1).predict_proba(X_test)
    np.testing.assert_array_equal(model.predict_proba(X_test), expected)


# Scikit-learn is right with labels 0..K−1: what it says then is what other names should give.


@all_names
@both_kinds
def test_isotonic_equals_scikit_learn(names, n_classes):
    X, label = training_data(pipeline, n_classes)
    oracle = CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=3, ensemble=False)
    expected = oracle.fit(X, label).predict_proba(X)
    isotonic = IsotonicRecalibrator(strict=False)
    model = RecalibratedClassifier(GaussianNB(), isotonic, cv=3, ensemble=False)
    model.fit(X, np.array(names)[label])
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-12)


def test_isotonic_of_scores_equals_scikit_learn_where_it_was_fitted():
    # between the scores it was fitted on, scikit-learn interpolates them and not expit of them
    X, label = training_data(pipeline, 2)
    frozen = FrozenEstimator(LinearSVC().fit(X[::2], label[::2]))
    expected = CalibratedClassifierCV(frozen, method="isotonic").fit(X, label).predict_proba(X)
    model = RecalibratedClassifier(
        frozen, IsotonicRecalibrator(strict=False), response_method="decision_function"
    ).fit(X, label)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-12)


@pytest.mark.skipif(
    not hasattr(sklearn.calibration, "_TemperatureScaling"),
    reason="scikit-learn has it from 1.8 on",
)
@all_names
@both_kinds
def test_temperature_equals_scikit_learn(names, n_classes):
    X, label = training_data(pipeline, n_classes)
    classifier = LogisticRegression()
    oracle = CalibratedClassifierCV(classifier, method="temperature", cv=3, ensemble=False)
    expected = oracle.fit(X, label).predict_proba(X)
    model = RecalibratedClassifier(
        classifier, TemperatureRecalibrator(prior_weight=0), cv=3, ensemble=False
    ).fit(X, np.array(names)[label])
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-4)


@all_names
def test_sigmoid_of_scores_equals_scikit_learn(names):
    # but for Platt's 1/(n + 2), which scikit-learn adds to the labels
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    label = (X.sum(axis=1) + rng.logistic(size=4000) > 0).astype(int)
    expected = CalibratedClassifierCV(LinearSVC(), method="sigmoid", cv=3).fit(X, label)
    model = RecalibratedClassifier(
        LinearSVC(), SigmoidRecalibrator(), response_method="decision_function", cv=3
    ).fit(X, np.array(names)[label])
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=2e-3)


class Overconfident(ClassifierMixin, BaseEstimator):
    """X holds the true log-odds, and it doubles them."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):
        return expit(2 * X * [-1, 1])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def test_overconfidence_is_corrected_on_the_scale_of_log_odds():
    rng = np.random.default_rng(1)
    X = rng.normal(scale=1.5, size=(50_000, 1))
    truth = expit(X[:, 0])
    label = (rng.random(50_000) < truth).astype(int)
    frozen = FrozenEstimator(Overconfident())

    def error(model):
        return np.abs(model.predict_proba(X)[:, 1] - truth).mean()

    assert error(frozen) > 0.08
    # scikit-learn fits a sigmoid of the probability, which no sigmoid corrects
    assert error(CalibratedClassifierCV(frozen, method="sigmoid").fit(X, label)) > 0.03
    assert error(RecalibratedClassifier(frozen, SigmoidRecalibrator()).fit(X, label)) < 0.005
