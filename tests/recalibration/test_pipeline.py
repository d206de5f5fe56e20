"""PredictProba and RecalibratedClassifier: cross-fitting, scores, splitters and containers.

The expected numbers come from scikit-learn's own cross-validation or from loops over the folds.
"""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.calibration
from scipy.sparse import csr_array
from scipy.special import expit, logit, softmax
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_validate,
    train_test_split,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import get_tags

from skcalib.metrics import get_scorer, smooth_calibration_error
from skcalib.recalibration import (
    AutoRecalibrator,
    IsotonicRecalibrator,
    PredictProba,
    RecalibratedClassifier,
)

X, y = load_breast_cancer(return_X_y=True)


def test_predict_proba_cross_fits():
    transformer = PredictProba(GaussianNB(), cv=3)
    expected = cross_val_predict(GaussianNB(), X, y, cv=3, method="predict_proba")
    np.testing.assert_array_equal(transformer.fit_transform(X, y), expected)
    everything = GaussianNB().fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(transformer.transform(X), everything)
    np.testing.assert_array_equal(PredictProba(GaussianNB()).fit(X, y).transform(X), everything)
    assert np.abs(expected - everything).max() > 1e-3


def test_frozen_estimator_is_used_as_it_is():
    frozen = FrozenEstimator(GaussianNB().fit(X[:300], y[:300]))
    expected = frozen.predict_proba(X[300:])
    transformer = PredictProba(frozen)
    np.testing.assert_array_equal(transformer.fit_transform(X[300:], y[300:]), expected)

    model = RecalibratedClassifier(frozen, IsotonicRecalibrator()).fit(X[300:], y[300:])
    assert len(model.pairs_) == 1
    np.testing.assert_array_equal(
        model.predict_proba(X[300:]),
        IsotonicRecalibrator().fit(expected, y[300:]).predict_proba(expected),
    )


def test_frozen_estimator_knows_more_classes_than_the_calibration_data():
    features, target = load_iris(return_X_y=True)
    frozen = FrozenEstimator(GaussianNB().fit(features, target))
    model = RecalibratedClassifier(frozen, IsotonicRecalibrator())
    model.fit(features[:100], target[:100])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(features).shape == (150, 3)


def test_pipeline_is_a_recalibrated_classifier_without_ensemble():
    pipeline = make_pipeline(PredictProba(GaussianNB(), cv=4), IsotonicRecalibrator()).fit(X, y)
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=4, ensemble=False)
    np.testing.assert_array_equal(pipeline.predict_proba(X), model.fit(X, y).predict_proba(X))
    np.testing.assert_array_equal(pipeline.predict(X), model.predict(X))


def test_ensemble_is_the_mean_over_folds():
    weight = np.random.default_rng(0).random(len(y))
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=3)
    model.fit(X, y, sample_weight=weight)
    expected = []
    for train, test in StratifiedKFold(3).split(X, y):
        classifier = GaussianNB().fit(X[train], y[train], sample_weight=weight[train])
        recalibrator = IsotonicRecalibrator().fit(
            classifier.predict_proba(X[test]), y[test], sample_weight=weight[test]
        )
        expected.append(recalibrator.predict_proba(classifier.predict_proba(X)))
    assert len(model.pairs_) == 3
    np.testing.assert_allclose(model.predict_proba(X), np.mean(expected, axis=0), atol=1e-15)


@pytest.mark.parametrize("scoring", ["neg_log_loss", get_scorer("neg_smooth_calibration_error")])
def test_grid_search_over_the_whole_pipeline(scoring):
    pipeline = make_pipeline(StandardScaler(), PredictProba(GaussianNB()), IsotonicRecalibrator())
    grid = {"predictproba__estimator__var_smoothing": [1e-9, 1e-1], "predictproba__cv": [3, 5]}
    search = GridSearchCV(pipeline, grid, scoring=scoring, error_score="raise").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict_proba(X).shape == (569, 2)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()


@pytest.mark.parametrize(
    "classifier", [GaussianNB(), RandomForestClassifier(10, random_state=0)], ids=["nb", "forest"]
)
def test_out_of_fold_probabilities_lower_the_held_out_error(classifier):
    error = {"raw": [], "in-sample": [], "out-of-fold": []}
    for seed in range(10):
        X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=seed)
        pipeline = make_pipeline(
            StandardScaler(), PredictProba(classifier), IsotonicRecalibrator()
        ).fit(X_train, y_train)
        raw = pipeline[:-1]
        in_sample = IsotonicRecalibrator().fit(raw.transform(X_train), y_train)
        for name, proba in {
            "raw": raw.transform(X_test),
            "in-sample": in_sample.predict_proba(raw.transform(X_test)),
            "out-of-fold": pipeline.predict_proba(X_test),
        }.items():
            error[name].append(smooth_calibration_error(y_test, proba))
    mean = {name: np.mean(values) for name, values in error.items()}
    assert mean["out-of-fold"] < mean["raw"]
    assert mean["out-of-fold"] < mean["in-sample"]


@pytest.mark.parametrize("names", [[0, 1, 2], [3, 1, 2], [-1, 0, 20], ["b", "c", "a"]])
def test_any_labels(names):
    features, target = load_iris(return_X_y=True)
    labels = np.array(names)[target]
    reference = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator()).fit(features, target)
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator()).fit(features, labels)
    assert model.classes_.tolist() == sorted(names)
    columns = [sorted(names).index(name) for name in names]
    np.testing.assert_allclose(
        model.predict_proba(features)[:, columns], reference.predict_proba(features), atol=1e-12
    )
    assert set(model.predict(features)) <= set(names)


def test_pandas_with_a_shuffled_index():
    # scikit-learn 1.9.1 raises KeyError: 0 for temperature scaling if the index of y lacks 0
    order = np.random.default_rng(0).permutation(len(y)) + 5
    frame = pd.DataFrame(X, index=order).add_prefix("x")
    series = pd.Series(np.where(y == 1, "benign", "malignant"), index=order)
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator()).fit(frame, series)
    expected = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator()).fit(X, 1 - y)
    np.testing.assert_allclose(model.predict_proba(frame), expected.predict_proba(X), atol=1e-12)
    assert model.feature_names_in_.tolist() == frame.columns.tolist()


def test_set_output_names_the_classes():
    frame = pd.DataFrame(X).add_prefix("x")
    pipeline = make_pipeline(
        StandardScaler(), PredictProba(GaussianNB()), IsotonicRecalibrator()
    ).set_output(transform="pandas")
    out = pipeline.fit(frame, np.where(y == 1, "benign", "malignant")).transform(frame)
    assert out.columns.tolist() == ["proba_benign", "proba_malignant"]
    assert out.index.equals(frame.index)
    assert pipeline[-1].feature_names_in_.tolist() == ["proba_benign", "proba_malignant"]
    polars = pytest.importorskip("polars")
    out = pipeline.set_output(transform="polars").fit(frame, y).transform(frame)
    assert isinstance(out, polars.DataFrame)
    assert out.columns == ["proba_0", "proba_1"]


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what reached its fit."""

    log = []

    def fit(self, X, y, sample_weight=None, note=None):
        Recorder.log.append((len(y), sample_weight, note))
        self.classes_ = np.unique(y)
        self.fitted_ = True
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.mark.parametrize("ensemble", [True, False])
def test_metadata_reaches_what_requests_it(ensemble):
    weight = np.arange(1.0, len(y) + 1)
    groups = np.arange(len(y)) % 7
    Recorder.log.clear()
    with config_context(enable_metadata_routing=True):
        inner = Recorder().set_fit_request(sample_weight=True, note=True)
        model = RecalibratedClassifier(
            inner, IsotonicRecalibrator(), cv=GroupKFold(3), ensemble=ensemble
        ).set_fit_request(sample_weight=True)
        model.fit(X, y, sample_weight=weight, groups=groups, note=weight)
    assert len(Recorder.log) == 3 + (not ensemble)
    for n, seen_weight, note in Recorder.log:
        assert len(seen_weight) == len(note) == n
        np.testing.assert_array_equal(seen_weight, note)


def pipeline_that_requests_weights():
    return make_pipeline(
        PredictProba(GaussianNB().set_fit_request(sample_weight=True), cv=GroupKFold(3)),
        IsotonicRecalibrator()
        .set_fit_request(sample_weight=True)
        .set_score_request(sample_weight=True),
    )


METADATA = {
    "sample_weight": np.random.default_rng(0).random(len(y)),
    "groups": np.arange(len(y)) % 7,
}


def test_metadata_through_a_pipeline():
    with config_context(enable_metadata_routing=True):
        pipeline = pipeline_that_requests_weights().fit(X, y, **METADATA)
        proba = cross_val_predict(
            GaussianNB().set_fit_request(sample_weight=True),
            X,
            y,
            cv=GroupKFold(3),
            method="predict_proba",
            params=METADATA,
        )
    expected = IsotonicRecalibrator().fit(proba, y, sample_weight=METADATA["sample_weight"])
    np.testing.assert_array_equal(pipeline[-1].maps_[0], expected.maps_[0])


@pytest.mark.skipif(
    not hasattr(sklearn.calibration, "_TemperatureScaling"),
    reason="before 1.8 scikit-learn does not ask the default scorer of a pipeline for metadata",
)
def test_metadata_through_cross_validation():
    with config_context(enable_metadata_routing=True):
        pipeline = pipeline_that_requests_weights()
        result = cross_validate(pipeline, X, y, params=METADATA, error_score="raise")
    assert np.isfinite(result["test_score"]).all()


def test_weights_without_routing():
    weight = np.random.default_rng(0).random(len(y))
    pipeline = make_pipeline(PredictProba(GaussianNB()), IsotonicRecalibrator())
    pipeline.fit(
        X,
        y,
        predictproba__sample_weight=weight,
        isotonicrecalibrator__sample_weight=weight,
    )
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), ensemble=False)
    model.fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(pipeline.predict_proba(X), model.predict_proba(X))


def test_splitters_and_jobs():
    cv = KFold(3, shuffle=True, random_state=0)
    one = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=cv).fit(X, y)
    two = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=cv, n_jobs=2).fit(X, y)
    splits = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=list(cv.split(X)))
    expected = one.predict_proba(X)
    np.testing.assert_array_equal(two.predict_proba(X), expected)
    np.testing.assert_array_equal(splits.fit(X, y).predict_proba(X), expected)


def test_folds_that_lack_a_class():
    features, target = load_iris(return_X_y=True)
    few = np.concatenate([np.arange(100), [101, 102]])
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator())
    with (
        pytest.warns(UserWarning, match="3 of 5 test sets lack some class"),
        pytest.warns(UserWarning, match="least populated class"),
    ):
        model.fit(features[few], target[few])
    proba = model.predict_proba(features)
    np.testing.assert_allclose(proba.sum(axis=1), 1)

    with pytest.raises(ValueError, match="cv=5 needs at least 5 samples; found 3"):
        model.fit(features[[0, 60, 120]], target[[0, 60, 120]])


def test_wrong_parts_are_named():
    with pytest.raises(ValueError, match="'recalibrator' parameter of RecalibratedClassifier"):
        RecalibratedClassifier(GaussianNB(), StandardScaler()).fit(X, y)
    with pytest.raises(ValueError, match="'estimator' parameter of PredictProba"):
        PredictProba("forest").fit(X, y)
    with pytest.raises(ValueError, match="'response_method' parameter of PredictProba"):
        PredictProba(GaussianNB(), response_method="predict").fit(X, y)
    for response_method in ("predict_proba", "decision_function"):
        with pytest.raises(ValueError, match="StandardScaler, which has neither that nor"):
            PredictProba(StandardScaler(), response_method=response_method).fit(X, y)
    with pytest.raises(ValueError, match="'ensemble' parameter"):
        RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), ensemble="yes").fit(X, y)


def test_any_recalibrator_will_do():
    # a recalibrator from elsewhere: a logistic regression on the probabilities
    model = RecalibratedClassifier(GaussianNB(), LogisticRegression(), cv=3).fit(X, y)
    assert model.predict_proba(X).shape == (569, 2)


def test_clone_keeps_everything():
    model = RecalibratedClassifier(GaussianNB(var_smoothing=1e-3), IsotonicRecalibrator(), cv=3)
    copy = clone(model)
    assert copy.get_params()["estimator__var_smoothing"] == 1e-3
    assert copy.cv == 3


@pytest.mark.parametrize("ensemble", [True, False])
def test_labels_reach_the_classifier_as_they_are(ensemble):
    # cross_val_predict would number them
    names = np.array(["malignant", "benign"])[y]
    classifier = make_pipeline(
        StandardScaler(), LogisticRegression(class_weight={"benign": 1, "malignant": 5})
    )
    model = RecalibratedClassifier(classifier, IsotonicRecalibrator(), ensemble=ensemble)
    assert model.fit(X, names).score(X, names) > 0.9


def test_labels_reach_a_search_as_they_are():
    search = GridSearchCV(
        LogisticRegression(),
        {"class_weight": [None, "balanced"], "C": [1e-3, 1]},
        scoring="recall",
        cv=3,
    )
    scaled = StandardScaler().fit_transform(X[:, :5])
    proba = PredictProba(search).fit_transform(scaled, y + 1)
    expected = np.empty_like(proba)
    for train, test in StratifiedKFold(5).split(scaled, y):
        expected[test] = clone(search).fit(scaled[train], y[train] + 1).predict_proba(scaled[test])
    np.testing.assert_array_equal(proba, expected)


def test_recalibrators_that_lack_a_class_are_aligned():
    features, target = load_iris(return_X_y=True)
    model = RecalibratedClassifier(GaussianNB(), GaussianNB(), cv=KFold(3))  # sorted by class
    with pytest.warns(UserWarning, match="3 of 3 test sets lack some class"):
        model.fit(features, target)
    proba = model.predict_proba(features)
    assert proba.shape == (150, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_single_precision_with_a_training_fold_that_lacks_a_class():
    features, target = load_digits(return_X_y=True)
    few = np.concatenate([np.flatnonzero(target < 3), np.flatnonzero(target == 9)[:1]])
    model = RecalibratedClassifier(
        LogisticRegression(max_iter=1000), IsotonicRecalibrator(), cv=KFold(5)
    )
    with pytest.warns(UserWarning, match="test sets lack some class"):
        model.fit((features[few] / 16).astype(np.float32), target[few])
    assert model.predict_proba(features[:5].astype(np.float32)).shape == (5, 4)


def test_frozen_estimator_inside_another_must_have_the_classes_of_y():
    features, target = load_iris(return_X_y=True)
    inner = FrozenEstimator(GaussianNB().fit(features, target))
    model = RecalibratedClassifier(make_pipeline(inner), IsotonicRecalibrator())
    with pytest.raises(ValueError, match=r"estimator must have the classes of y, \[0, 1\]"):
        model.fit(features[:100], target[:100])
    transformer = PredictProba(make_pipeline(inner))
    np.testing.assert_array_equal(
        transformer.fit_transform(features[:100], target[:100]),
        inner.predict_proba(features[:100]),
    )


def test_columns_of_labels_are_warned_about():
    frame = pd.DataFrame({"y": y})
    for model in (
        RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator()),
        make_pipeline(PredictProba(GaussianNB()), IsotonicRecalibrator()),
    ):
        with pytest.warns(DataConversionWarning):
            model.fit(X, frame)
        assert model.score(X, y) > 0.9


def test_out_of_fold_needs_a_partition():
    cv = ShuffleSplit(3, random_state=0)
    Recorder.log.clear()
    with pytest.raises(ValueError, match="cv must put every sample into exactly one test set"):
        PredictProba(Recorder(), cv=cv).fit_transform(X, y)
    assert Recorder.log == []  # refused before anything is fitted
    RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=cv).fit(X, y)


@pytest.mark.parametrize("ensemble", [True, False])
def test_splits_from_a_generator(ensemble):
    weight = np.random.default_rng(0).random(len(y))
    with config_context(enable_metadata_routing=True):
        inner = GaussianNB().set_fit_request(sample_weight=True)
        models = [
            RecalibratedClassifier(inner, IsotonicRecalibrator(), cv=cv, ensemble=ensemble).fit(
                X, y, sample_weight=weight
            )
            for cv in (StratifiedKFold(3), StratifiedKFold(3).split(X, y))
        ]
    np.testing.assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))


def test_weights_that_the_classifier_does_not_take():
    weight = np.random.default_rng(0).random(len(y))
    model = RecalibratedClassifier(KNeighborsClassifier(), IsotonicRecalibrator())
    with pytest.warns(UserWarning, match="KNeighborsClassifier takes no sample_weight"):
        model.fit(X, y, sample_weight=weight)


def test_unclear_beginnings():
    with pytest.raises(NotFittedError):
        RecalibratedClassifier(FrozenEstimator(GaussianNB()), IsotonicRecalibrator()).fit(X, y)
    with pytest.raises(ValueError, match="y must hold at least two classes; found 1 class"):
        RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator()).fit(X, np.ones(len(y)))


class NotANumber(GaussianNB):
    def predict_proba(self, X):
        return super().predict_proba(X) * np.nan


def test_bad_probabilities_name_their_source():
    model = RecalibratedClassifier(NotANumber(), IsotonicRecalibrator())
    with pytest.raises(ValueError, match=r"The output of NotANumber.predict_proba must be finite"):
        model.fit(X, y)


def test_distances_instead_of_features():
    distances = pairwise_distances(StandardScaler().fit_transform(X))
    classifier = KNeighborsClassifier(metric="precomputed")
    model = RecalibratedClassifier(classifier, IsotonicRecalibrator(), ensemble=False)
    model.fit(distances, y)
    oracle = CalibratedClassifierCV(classifier, method="isotonic", ensemble=False, cv=5)
    expected = oracle.fit(distances, y).predict_proba(distances)
    np.testing.assert_allclose(model.predict_proba(distances), expected, atol=1e-12)
    with pytest.raises(ValueError, match="ensemble must be False for KNeighborsClassifier"):
        RecalibratedClassifier(classifier, IsotonicRecalibrator()).fit(distances, y)


def test_a_generator_is_used_up():
    model = RecalibratedClassifier(
        GaussianNB(), IsotonicRecalibrator(), cv=StratifiedKFold(3).split(X, y)
    ).fit(X, y)
    with pytest.raises(ValueError, match="cv must yield at least one split"):
        model.fit(X, y)


def test_folds_whose_samples_do_not_count():
    folds = list(StratifiedKFold(3).split(X, y))
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=folds)
    weight = np.ones(len(y))
    weight[folds[1][1]] = 0
    with pytest.raises(ValueError, match="zeros only in that of split 1"):
        model.fit(X, y, sample_weight=weight)
    weight[folds[1][1]] = y[folds[1][1]]
    with pytest.warns(UserWarning, match="1 of 3 test sets lack some class"):
        model.fit(X, y, sample_weight=weight)


def test_frozen_classifiers_take_no_weights_without_a_warning():
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    model = RecalibratedClassifier(frozen, IsotonicRecalibrator())
    model.fit(X, y, sample_weight=np.ones(len(y)))


# Decision scores, declared by `response_method`.

standard = StandardScaler().fit_transform(X)
iris = load_iris(return_X_y=True)
flowers = StandardScaler().fit_transform(iris[0]), iris[1]


def scored(classifier, **options):
    return RecalibratedClassifier(
        classifier, IsotonicRecalibrator(), response_method="decision_function", **options
    )


def probabilities_by_hand(classifier, fitted_on, query):
    """The scores divided by their root mean square, then expit or softmax, in plain loops."""
    training, scores = classifier.decision_function(fitted_on), classifier.decision_function(query)
    if scores.ndim == 1:
        scale = np.sqrt(sum(s**2 for s in training) / len(training))
        return np.array([[1 - expit(s / scale), expit(s / scale)] for s in scores])
    squares = [(s - np.mean(row)) ** 2 for row in training for s in row]
    scale = np.sqrt(sum(squares) / len(squares))
    return np.array([softmax(row / scale) for row in scores])


SCORERS = [
    LinearSVC(),
    SVC(kernel="linear"),
    RidgeClassifier(),
    SGDClassifier(loss="hinge", random_state=0),
    Perceptron(random_state=0),
]


@pytest.mark.parametrize("classifier", SCORERS, ids=str)
@pytest.mark.parametrize("data", [(standard, y), flowers], ids=["two classes", "three classes"])
def test_scores_become_probabilities(classifier, data):
    features, target = data
    expected = np.empty((len(target), len(np.unique(target))))
    for train, test in StratifiedKFold(3).split(features, target):
        fitted = clone(classifier).fit(features[train], target[train])
        expected[test] = probabilities_by_hand(fitted, features[train], features[test])
    transformer = PredictProba(classifier, response_method="decision_function", cv=3)
    out_of_fold = transformer.fit_transform(features, target)
    np.testing.assert_allclose(out_of_fold, expected, rtol=1e-12, atol=1e-15)
    whole = clone(classifier).fit(features, target)
    proba = probabilities_by_hand(whole, features, features)
    np.testing.assert_allclose(transformer.transform(features), proba, rtol=1e-12, atol=1e-15)

    model = scored(classifier, cv=3, ensemble=False).fit(features, target)
    recalibrator = IsotonicRecalibrator().fit(expected, target)
    np.testing.assert_allclose(
        model.predict_proba(features), recalibrator.predict_proba(proba), atol=1e-10
    )
    pipeline = make_pipeline(transformer, IsotonicRecalibrator()).fit(features, target)
    np.testing.assert_array_equal(pipeline.predict_proba(features), model.predict_proba(features))


@pytest.mark.parametrize("data", [(standard, y), flowers], ids=["two classes", "three classes"])
def test_ensemble_of_scores_has_a_scale_for_each_fold(data):
    features, target = data
    model = scored(LinearSVC(), cv=3).fit(features, target)
    expected = []
    for train, test in StratifiedKFold(3).split(features, target):
        fitted = LinearSVC().fit(features[train], target[train])
        recalibrator = IsotonicRecalibrator().fit(
            probabilities_by_hand(fitted, features[train], features[test]), target[test]
        )
        proba = probabilities_by_hand(fitted, features[train], features)
        expected.append(recalibrator.predict_proba(proba))
    np.testing.assert_allclose(model.predict_proba(features), np.mean(expected, axis=0), atol=1e-10)
    assert len(set(model.scales_)) == 3


def last_log_odds(proba):
    return logit(proba[:, 1:])


def test_sigmoid_map_sees_the_scores_up_to_a_factor():
    sigmoid = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10)
    recalibrator = make_pipeline(FunctionTransformer(last_log_odds), sigmoid)
    machine = LinearSVC(C=1e-3)
    model = RecalibratedClassifier(
        machine, recalibrator, response_method="decision_function", cv=3
    ).fit(standard, y)
    expected = []
    for train, test in StratifiedKFold(3).split(standard, y):
        scores = clone(machine).fit(standard[train], y[train]).decision_function(standard)
        fitted = clone(sigmoid).fit(scores[test, None], y[test])
        expected.append(fitted.predict_proba(scores[:, None]))
    np.testing.assert_allclose(model.predict_proba(standard), np.mean(expected, axis=0), atol=1e-6)


class Scores(ClassifierMixin, BaseEstimator):
    """Knows its scores without learning: the first column of X, or all of several."""

    def __init__(self, factor=1.0, offset=0.0):
        self.factor = factor
        self.offset = offset

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        scores = self.factor * (np.asarray(X) + self.offset)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("factor", [1e-200, 1e-6, 1e6, 1e200])
@pytest.mark.parametrize("ensemble", [True, False])
def test_units_of_scores_do_not_matter(n_columns, factor, ensemble):
    features, target = flowers[0][:, :n_columns], flowers[1]
    target = np.minimum(target, 1) if n_columns == 1 else target
    model = scored(Scores(), ensemble=ensemble).fit(features, target)
    other = scored(Scores(factor), ensemble=ensemble).fit(features, target)
    np.testing.assert_allclose(
        other.predict_proba(features), model.predict_proba(features), atol=1e-10
    )
    np.testing.assert_allclose(other.scales_, factor * np.array(model.scales_), rtol=1e-12)


def test_offsets_of_rows_do_not_matter_to_more_than_two_classes():
    features, target = flowers[0][:, :3], flowers[1]
    reference = scored(Scores()).fit(features, target).predict_proba(features)
    moved = scored(Scores(offset=1e5)).fit(features, target).predict_proba(features)
    np.testing.assert_allclose(moved, reference, atol=1e-8)


def test_scores_are_never_taken_for_probabilities():
    # rows in [0, 1] that sum to 1, of which scikit-learn takes the logarithm
    scores = np.random.default_rng(0).dirichlet(np.ones(3), size=60)
    target = np.arange(60) % 3
    transformer = PredictProba(Scores(), response_method="decision_function")
    proba = transformer.fit(scores, target).transform(scores)
    expected = softmax(scores / np.sqrt(np.mean((scores - 1 / 3) ** 2)), axis=1)
    np.testing.assert_allclose(proba, expected, rtol=1e-12)
    one = PredictProba(Scores(), response_method="decision_function")
    proba = one.fit(scores[:, :1], target > 0).transform([[0.0], [0.5]])
    assert proba[0].tolist() == [0.5, 0.5]
    assert proba[1, 1] > 0.7


def test_scores_without_any_difference():
    features = np.zeros((20, 1))
    model = scored(Scores()).fit(features, np.arange(20) % 2)
    assert model.scales_ == [1.0] * 5
    np.testing.assert_allclose(model.predict_proba(features), 0.5)


@pytest.mark.parametrize("frozen", [True, False])
def test_weights_of_scores_are_repetitions(frozen):
    features, target = standard[:60], y[:60]
    weight = np.arange(60) % 3
    repeated = np.repeat(np.arange(60), weight)
    classifier = RidgeClassifier()
    if frozen:
        classifier = FrozenEstimator(classifier.fit(standard, y))
    for model in (PredictProba(classifier), scored(classifier, ensemble=False, cv=3)):
        model.set_params(response_method="decision_function")
        scale = [
            clone(model).fit(features, target, sample_weight=weight),
            clone(model).fit(features[repeated], target[repeated]),
        ]
        scale = [getattr(fitted, "scale_", None) or fitted.scales_[0] for fitted in scale]
        np.testing.assert_allclose(scale[0], scale[1], rtol=1e-10)


def test_frozen_scores():
    frozen = FrozenEstimator(LinearSVC().fit(standard[:300], y[:300]))
    model = scored(frozen).fit(standard[300:], y[300:])
    proba = probabilities_by_hand(frozen, standard[300:], standard)
    expected = IsotonicRecalibrator().fit(proba[300:], y[300:]).predict_proba(proba)
    np.testing.assert_allclose(model.predict_proba(standard), expected, atol=1e-10)


def test_training_folds_that_lack_a_class_of_scores():
    features, target = flowers
    model = scored(LinearSVC(), cv=KFold(3), ensemble=False).fit(features, target)  # sorted
    assert model.predict_proba(features).shape == (150, 3)
    proba = PredictProba(LinearSVC(), cv=KFold(3), response_method="decision_function")
    out_of_fold = proba.fit_transform(features, target)
    for k in range(3):
        assert (out_of_fold[target == k, k] == 0).all()
    np.testing.assert_allclose(out_of_fold.sum(axis=1), 1)


@pytest.mark.parametrize(
    "classifier",
    [
        LinearSVC(),
        SVC(),
        make_pipeline(StandardScaler(), LinearSVC()),
        GridSearchCV(LinearSVC(), {"C": [1]}),
        FrozenEstimator(LinearSVC().fit(X, y)),
    ],
    ids=["linear", "kernel", "pipeline", "search", "frozen"],
)
def test_probabilities_that_are_missing(classifier):
    message = r"which has decision_function only. Pass response_method='decision_function'"
    for model in (
        PredictProba(classifier),
        RecalibratedClassifier(classifier, IsotonicRecalibrator()),
        RecalibratedClassifier(classifier, IsotonicRecalibrator(), ensemble=False),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)


def test_scores_that_are_missing():
    with pytest.raises(ValueError, match="has predict_proba only"):
        scored(GaussianNB()).fit(X, y)


def test_probabilities_that_only_the_fitted_search_has():
    search = GridSearchCV(
        SGDClassifier(random_state=0), {"loss": ["log_loss", "modified_huber"]}, cv=3
    )
    assert not hasattr(search, "predict_proba")
    model = RecalibratedClassifier(search, IsotonicRecalibrator()).fit(standard, y)
    assert model.score(standard, y) > 0.9


@pytest.mark.parametrize(
    "wrap",
    [
        lambda machine: machine,
        lambda machine: make_pipeline(StandardScaler(), machine),
        lambda machine: GridSearchCV(make_pipeline(machine), {"svc__C": [1]}),
        lambda machine: FrozenEstimator(make_pipeline(machine).fit(*iris)),
    ],
    ids=["plain", "pipeline", "search", "frozen"],
)
def test_scores_of_pairs_of_classes_are_refused(wrap):
    machine = SVC(decision_function_shape="ovo")
    with pytest.raises(ValueError, match=r"each pair of them. Set decision_function_shape='ovr'"):
        scored(wrap(machine)).fit(*iris)
    scored(wrap(SVC())).fit(*iris)


def test_scores_of_pairs_do_no_harm_inside():
    machine = SVC(decision_function_shape="ovo")
    scored(machine).fit(X, y)
    scored(OneVsRestClassifier(machine)).fit(*iris)
    digits = load_digits(return_X_y=True)
    with pytest.raises(ValueError, match=r"found shape \(n?.*, 45\) for 10 classes"):
        PredictProba(machine, response_method="decision_function").fit(*digits)


@pytest.mark.parametrize(
    ("features", "target", "message"),
    [
        (np.zeros((9, 2)), np.arange(9) % 2, r"found shape \(9, 2\) for 2 classes"),
        (np.zeros((9, 1)), np.arange(9) % 3, r"found shape \(9,\) for 3 classes"),
        (np.full((9, 1), np.nan), np.arange(9) % 2, "must be finite; found NaN or inf.* row 0"),
        (np.full((9, 1), "a", dtype=object), np.arange(9) % 2, "must hold numbers"),
    ],
    ids=["columns", "one column", "nan", "words"],
)
def test_bad_scores_are_refused(features, target, message):
    class Anything(Scores):
        def decision_function(self, X):
            return X[:, 0] if X.shape[1] == 1 else X

    with pytest.raises(ValueError, match=f"The output of Anything.decision_function.*{message}"):
        PredictProba(Anything(), response_method="decision_function").fit(features, target)


# Splitters.

GROUPS = np.arange(len(y)) // 10 % 7
PARTITIONS = {
    "int": 4,
    "none": None,
    "k-fold": KFold(4, shuffle=True, random_state=0),
    "groups": GroupKFold(3),
    "one group out": LeaveOneGroupOut(),
    "stratified groups": StratifiedGroupKFold(3),
    "predefined": PredefinedSplit(np.arange(len(y)) % 3),
    "pairs": list(KFold(3).split(X)),
    "lists": [(train.tolist(), test.tolist()) for train, test in KFold(3).split(X)],
    "masks": [(np.arange(len(y)) % 3 != k, np.arange(len(y)) % 3 == k) for k in range(3)],
}
OTHER_SPLITTERS = {
    "time series": TimeSeriesSplit(4),
    "shuffled": ShuffleSplit(4, random_state=0),
    "repeated": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    "predefined in part": PredefinedSplit(np.arange(len(y)) % 4 - 1),
}
NEED_GROUPS = ("groups", "one group out", "stratified groups")


def pairs_of(name):
    """The folds as index pairs, straight from the splitter."""
    if name in ("int", "none"):
        return list(StratifiedKFold(4 if name == "int" else 5).split(X, y))
    if name in ("pairs", "lists"):
        return PARTITIONS["pairs"]
    if name == "masks":
        return [tuple(map(np.flatnonzero, pair)) for pair in PARTITIONS["masks"]]
    groups = GROUPS if name in NEED_GROUPS else None
    return list((PARTITIONS | OTHER_SPLITTERS)[name].split(X, y, groups))


@pytest.mark.parametrize("name", PARTITIONS | OTHER_SPLITTERS)
@pytest.mark.parametrize("weighted", [True, False])
def test_ensemble_with_any_splitter(name, weighted):
    weight = np.random.default_rng(0).random(len(y)) if weighted else np.ones(len(y))
    cv = (PARTITIONS | OTHER_SPLITTERS)[name]
    params = {"groups": GROUPS} if name in NEED_GROUPS else {}
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=cv)
    model.fit(X, y, sample_weight=weight if weighted else None, **params)
    expected = []
    for train, test in pairs_of(name):
        classifier = GaussianNB().fit(X[train], y[train], sample_weight=weight[train])
        recalibrator = IsotonicRecalibrator().fit(
            classifier.predict_proba(X[test]), y[test], sample_weight=weight[test]
        )
        expected.append(recalibrator.predict_proba(classifier.predict_proba(X)))
    np.testing.assert_allclose(model.predict_proba(X), np.mean(expected, axis=0), atol=1e-10)


@pytest.mark.parametrize("name", PARTITIONS)
def test_out_of_fold_with_any_partition(name):
    cv = PARTITIONS[name]
    params = {"groups": GROUPS} if name in NEED_GROUPS else {}
    expected = np.empty((len(y), 2))
    for train, test in pairs_of(name):
        expected[test] = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])
    transformer = PredictProba(GaussianNB(), cv=cv)
    np.testing.assert_array_equal(transformer.fit_transform(X, y, **params), expected)
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=cv, ensemble=False)
    model.fit(X, y, **params)
    maps = IsotonicRecalibrator().fit(expected, y).maps_
    np.testing.assert_array_equal(model.pairs_[0][1].maps_[0], maps[0])


@pytest.mark.parametrize("name", OTHER_SPLITTERS)
def test_other_splitters_have_no_out_of_fold_probabilities(name):
    cv = OTHER_SPLITTERS[name]
    message = "Choose a splitter such as KFold; a RecalibratedClassifier with ensemble=True takes"
    for model in (
        PredictProba(GaussianNB(), cv=cv),
        RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=cv, ensemble=False),
    ):
        fit = getattr(model, "fit_transform", model.fit)
        with pytest.raises(ValueError, match=message):
            fit(X, y)


def test_groups_in_a_pipeline_without_routing():
    pipeline = make_pipeline(PredictProba(GaussianNB(), cv=GroupKFold(3)), IsotonicRecalibrator())
    pipeline.fit(X, y, predictproba__groups=GROUPS)
    model = RecalibratedClassifier(
        GaussianNB(), IsotonicRecalibrator(), cv=GroupKFold(3), ensemble=False
    ).fit(X, y, groups=pd.Series(GROUPS, index=np.arange(len(y)) + 7))
    np.testing.assert_array_equal(pipeline.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        model.fit(X, y)


def test_groups_in_a_search():
    with config_context(enable_metadata_routing=True):
        model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=GroupKFold(3))
        search = GridSearchCV(
            model, {"estimator__var_smoothing": [1e-9, 1e-3]}, cv=GroupKFold(2), error_score="raise"
        )
        search.fit(X, y, groups=GROUPS)
    assert len(search.best_estimator_.pairs_) == 3


@pytest.mark.parametrize("pair", [([], [0, 1]), ([0, 1], []), (np.zeros(569, dtype=bool), [0, 1])])
def test_empty_folds_are_refused(pair):
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=[pair])
    with pytest.raises(ValueError, match="cv must put samples into every training and test set"):
        model.fit(X, y)


# Containers and names.


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


@pytest.mark.parametrize("response_method", ["predict_proba", "decision_function"])
@pytest.mark.parametrize("ensemble", [True, False])
def test_pickles_and_parallel_fits_are_equal(response_method, ensemble):
    model = RecalibratedClassifier(
        LogisticRegression(),
        IsotonicRecalibrator(),
        response_method=response_method,
        ensemble=ensemble,
    ).fit(standard, y)
    expected = model.predict_proba(standard)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(standard), expected)
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
        LogisticRegression(), IsotonicRecalibrator(), response_method=response_method
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
    ).fit(X, y)
    assert search.predict_proba(X).shape == (569, 2)
    scores = cross_validate(search.best_estimator_, X, y, scoring="neg_log_loss", cv=2)
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
    X, y = load_breast_cancer(return_X_y=True)
    default, auto = (
        RecalibratedClassifier(GaussianNB(), recalibrator, cv=3).fit(X, y)
        for recalibrator in (None, AutoRecalibrator())
    )
    np.testing.assert_array_equal(default.predict_proba(X), auto.predict_proba(X))
    assert all(isinstance(chosen, AutoRecalibrator) for _, chosen in default.pairs_)


def test_what_was_fitted_is_shown_but_lives_in_one_place():
    model = scored(LinearSVC(), cv=3).fit(standard, y)
    assert [type(classifier) for classifier, _ in model.pairs_] == [LinearSVC] * 3
    assert len(model.scales_) == 3
    copy = pickle.loads(pickle.dumps(model))
    assert copy.scales_ == model.scales_
    transformer = PredictProba(LinearSVC(), response_method="decision_function").fit(standard, y)
    assert isinstance(transformer.estimator_, LinearSVC)
    assert pickle.loads(pickle.dumps(transformer)).scale_ == transformer.scale_
    for unfitted in (clone(model), clone(transformer)):
        assert not any(hasattr(unfitted, name) for name in ("pairs_", "scales_", "estimator_"))


def test_warnings_point_at_the_caller():
    features, target = np.random.default_rng(0).random((40, 2)), np.arange(40) % 2
    target[:2] = 2
    isotonic = IsotonicRecalibrator()
    with pytest.warns(UserWarning, match="lack some class") as record:
        RecalibratedClassifier(GaussianNB(), isotonic, cv=KFold(5)).fit(features, target)
    assert record[0].filename == __file__
    neighbours = RecalibratedClassifier(KNeighborsClassifier(), isotonic, cv=2)
    with pytest.warns(UserWarning, match="takes no sample_weight") as record:
        neighbours.fit(features, target % 2, sample_weight=np.ones(40))
    assert record[0].filename == __file__
