"""Features in any container reach the classifier, and their names what comes after it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import IsolationForest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags

from skcalib.metrics import get_scorer
from skcalib.recalibration import (
    AutoRecalibrator,
    IsotonicRecalibrator,
    PredictProba,
    RecalibratedClassifier,
)

X, y = load_breast_cancer(return_X_y=True)

standard = StandardScaler().fit_transform(X)


def scored(classifier, **options):
    return RecalibratedClassifier(
        classifier, IsotonicRecalibrator(), response_method="decision_function", **options
    )


@pytest.mark.parametrize("ensemble", [True, False])
def test_sparse_features(ensemble):
    sparse = csr_array(np.where(standard > 0, standard, 0))
    model = RecalibratedClassifier(MultinomialNB(), IsotonicRecalibrator(), ensemble=ensemble)
    dense = clone(model).fit(sparse.toarray(), y).predict_proba(sparse.toarray())
    np.testing.assert_allclose(model.fit(sparse, y).predict_proba(sparse), dense, atol=1e-10)
    transformer = PredictProba(MultinomialNB())
    assert transformer.fit_transform(sparse, y).shape == (569, 2)


def test_texts():
    texts = ["good fine", "bad awful", "fine day", "awful day"] * 10
    target = ["pro", "contra"] * 20
    classifier = make_pipeline(CountVectorizer(), MultinomialNB())
    model = RecalibratedClassifier(classifier, IsotonicRecalibrator(), cv=4).fit(texts, target)
    assert model.predict(["fine", "awful"]).tolist() == ["pro", "contra"]
    pipeline = make_pipeline(PredictProba(classifier), IsotonicRecalibrator()).fit(texts, target)
    assert pipeline.predict(["fine", "awful"]).tolist() == ["pro", "contra"]


@pytest.mark.parametrize("ensemble", [True, False])
def test_polars_features(ensemble):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(X, schema=[f"x{k}" for k in range(30)])
    series = polars.Series(np.where(y == 1, "yes", "no"))
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), ensemble=ensemble)
    expected = clone(model).fit(X, y).predict_proba(X)
    actual = model.fit(frame, series).predict_proba(frame)
    np.testing.assert_allclose(actual, expected, atol=1e-12)
    assert model.feature_names_in_.tolist() == frame.columns
    assert model.classes_.tolist() == ["no", "yes"]


def test_names_of_features_are_those_of_the_last_fit():
    frame = pd.DataFrame(X).add_prefix("x")
    for model in (
        PredictProba(GaussianNB()),
        RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator()),
    ):
        assert model.fit(frame, y).feature_names_in_.tolist() == frame.columns.tolist()
        assert not hasattr(model.fit(X, y), "feature_names_in_")


def test_tags_of_the_features_are_the_classifiers():
    for classifier in (
        MultinomialNB(),
        KNeighborsClassifier(metric="precomputed"),
        make_pipeline(CountVectorizer(), MultinomialNB()),
    ):
        expected = get_tags(classifier).input_tags
        for model in (
            PredictProba(classifier),
            RecalibratedClassifier(classifier, IsotonicRecalibrator()),
        ):
            assert get_tags(model).input_tags == expected


@pytest.fixture(params=["predict_proba", "decision_function"])
def model(request):
    """A fitted mean over folds, of either response."""
    return RecalibratedClassifier(
        LogisticRegression(), IsotonicRecalibrator(), response_method=request.param, ensemble=True
    ).fit(standard, y)


def test_pickles_are_equal(model):
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(standard), model.predict_proba(standard))


@pytest.mark.integration
@pytest.mark.parametrize("ensemble", [True, False])
def test_parallel_fits_are_equal(model, ensemble):
    model.set_params(ensemble=ensemble).fit(standard, y)
    expected = model.predict_proba(standard)
    parallel = clone(model).set_params(n_jobs=2).fit(standard, y)
    np.testing.assert_array_equal(parallel.predict_proba(standard), expected)


def test_the_method_is_that_of_the_fit():
    model = RecalibratedClassifier(LogisticRegression(), IsotonicRecalibrator()).fit(standard, y)
    expected = model.predict_proba(standard)
    model.set_params(response_method="decision_function")
    np.testing.assert_array_equal(model.predict_proba(standard), expected)
    assert model.scales_ == [None] * 5
    assert np.abs(model.fit(standard, y).predict_proba(standard) - expected).max() > 0


@pytest.mark.parametrize("response_method", ["predict_proba", "decision_function"])
def test_search_over_every_part(response_method):
    model = RecalibratedClassifier(
        LogisticRegression(), IsotonicRecalibrator(), cv=2, response_method=response_method
    )
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {
            "recalibratedclassifier__estimator__C": [0.01, 1],
            "recalibratedclassifier__ensemble": [True, False],
        },
        scoring=get_scorer("neg_smooth_calibration_error"),
        cv=2,
        error_score="raise",
    ).fit(X[::4], y[::4])
    assert search.predict_proba(X).shape == (569, 2)
    scores = cross_validate(search.best_estimator_, X[::4], y[::4], scoring="neg_log_loss", cv=2)
    assert scores["test_score"].shape == (2,)


def test_labels_that_a_frozen_classifier_does_not_know_are_named():
    X, y = load_iris(return_X_y=True)
    model = RecalibratedClassifier(FrozenEstimator(GaussianNB().fit(X, y)))
    with pytest.raises(ValueError, match=r"y must hold classes of the frozen estimator, .*'c1'"):
        model.fit(X, np.array(["c0", "c1", "c2"])[y])


def test_an_estimator_without_classes_is_no_classifier():
    X, y = load_iris(return_X_y=True)
    model = RecalibratedClassifier(
        IsolationForest(n_estimators=2), response_method="decision_function"
    )
    with pytest.raises(ValueError, match="estimator must be a classifier, with the attribute"):
        model.fit(X, y)


def test_by_default_the_recalibrator_is_chosen():
    X, y = (column[::4] for column in load_breast_cancer(return_X_y=True))
    default, auto = (
        RecalibratedClassifier(GaussianNB(), recalibrator, cv=2).fit(X, y)
        for recalibrator in (None, AutoRecalibrator())
    )
    np.testing.assert_array_equal(default.predict_proba(X), auto.predict_proba(X))
    assert isinstance(default.recalibrator_, AutoRecalibrator)


def test_what_was_fitted_is_shown_but_lives_in_one_place():
    model = scored(LinearSVC(), cv=3).fit(standard, y)
    assert [type(classifier) for classifier in model.estimators_] == [LinearSVC] * 3
    assert len(model.scales_) == 3
    copy = pickle.loads(pickle.dumps(model))
    assert copy.scales_ == model.scales_
    transformer = PredictProba(LinearSVC(), response_method="decision_function").fit(standard, y)
    assert isinstance(transformer.estimator_, LinearSVC)
    assert pickle.loads(pickle.dumps(transformer)).scale_ == transformer.scale_
    for unfitted in (clone(model), clone(transformer)):
        fitted = ("estimators_", "recalibrator_", "scales_", "estimator_")
        assert not any(hasattr(unfitted, name) for name in fitted)


def test_warnings_point_at_the_caller():
    features, target = np.random.default_rng(0).random((40, 2)), np.arange(40) % 2
    neighbours = RecalibratedClassifier(KNeighborsClassifier(), IsotonicRecalibrator(), cv=2)
    with pytest.warns(UserWarning, match="takes no sample_weight") as record:
        neighbours.fit(features, target, sample_weight=np.ones(40))
    assert record[0].filename == __file__
