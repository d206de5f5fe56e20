"""PredictProba and RecalibratedClassifier cross-fit as scikit-learn's own cross-validation does."""

import numpy as np
import pandas as pd
import pytest
import sklearn.calibration
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_validate,
    train_test_split,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.metrics import get_scorer, smooth_calibration_error
from skcalib.recalibration import (
    IsotonicRecalibrator,
    PredictProba,
    RecalibratedClassifier,
    SigmoidRecalibrator,
    TemperatureRecalibrator,
    _classifier as classifier_module,
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
    assert len(model.estimators_) == 1
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


# Probabilities of an unsmoothed one are a rounding error from 1, and the knots of an isotonic map
# so close that the order of a sum shows.
CLASSIFIER = GaussianNB(var_smoothing=0.01)


def ensemble_by_hand(recalibrator, features, target, weight, n_folds):
    """The recalibrator of all out-of-fold probabilities, and what it makes of each classifier's."""
    classifiers, proba = [], np.empty((len(target), len(np.unique(target))))
    for train, test in StratifiedKFold(n_folds).split(features, target):
        classifier = clone(CLASSIFIER).fit(
            features[train], target[train], sample_weight=weight[train]
        )
        proba[test] = classifier.predict_proba(features[test])
        classifiers.append(classifier)
    recalibrator = clone(recalibrator).fit(proba, target, sample_weight=weight)
    return recalibrator, [
        recalibrator.predict_proba(c.predict_proba(features)) for c in classifiers
    ]


def geometric_mean(probas):
    product = np.prod(np.power(probas, 1 / len(probas)), axis=0)
    return product / product.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("recalibrator", "mean"),
    [
        (IsotonicRecalibrator(), lambda probas: np.mean(probas, axis=0)),
        (LogisticRegression(), lambda probas: np.mean(probas, axis=0)),
        (SigmoidRecalibrator(), geometric_mean),
        (TemperatureRecalibrator(), geometric_mean),
    ],
)
@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_ensemble_is_the_mean_over_folds(load, recalibrator, mean):
    features, target = load(return_X_y=True)
    weight = np.random.default_rng(0).random(len(target))
    model = RecalibratedClassifier(CLASSIFIER, recalibrator, cv=3)
    model.fit(features, target, sample_weight=weight)
    _, probas = ensemble_by_hand(recalibrator, features, target, weight, 3)
    assert len(model.estimators_) == 3
    assert model.temperature_ is None
    np.testing.assert_allclose(model.predict_proba(features), mean(probas), atol=1e-12)


@pytest.mark.parametrize("recalibrator", [None, SigmoidRecalibrator(), IsotonicRecalibrator()])
@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_few_rows_are_recalibrated_in_one_call(load, recalibrator, monkeypatch):
    features, target = load(return_X_y=True)
    model = RecalibratedClassifier(CLASSIFIER, recalibrator, cv=3).fit(features, target)
    calls = []

    class Spy:
        def __getattr__(self, name):
            return getattr(recalibrator_, name)

        def predict_proba(self, proba):
            calls.append(len(proba))
            return recalibrator_.predict_proba(proba)

    recalibrator_ = model.recalibrator_
    model.recalibrator_ = Spy()
    together = model.predict_proba(features)
    assert calls == [3 * len(features)]
    monkeypatch.setattr(classifier_module, "_MAX_ENTRIES_OF_ONE_CALL", 3 * target.size - 1)
    np.testing.assert_allclose(model.predict_proba(features), together, rtol=0, atol=1e-15)
    assert calls == [3 * len(features), *(3 * [len(features)])]


def test_nested_ensemble():
    # by hand, with the indices of folds written out
    model = RecalibratedClassifier(CLASSIFIER, SigmoidRecalibrator(), cv=3, ensemble="nested")
    model.fit(X, y)
    recalibrator, probas = ensemble_by_hand(SigmoidRecalibrator(), X, y, np.ones(len(y)), 3)
    tests = [test for _, test in StratifiedKFold(3).split(X, y)]
    seen = np.empty((len(y), 2))
    for i, others in [(0, (1, 2)), (1, (0, 2)), (2, (0, 1))]:
        parts = []
        for j in others:
            (left,) = {0, 1, 2} - {i, j}
            classifier = clone(CLASSIFIER).fit(X[tests[left]], y[tests[left]])
            parts.append(recalibrator.predict_proba(classifier.predict_proba(X[tests[i]])))
        seen[tests[i]] = geometric_mean(parts)
    temperature = TemperatureRecalibrator().fit(seen, y)
    assert model.temperature_ == pytest.approx(temperature.temperature_, rel=1e-9)
    expected = temperature.predict_proba(geometric_mean(probas))
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-9)
    with pytest.raises(ValueError, match="cv must have at least 3 folds for ensemble='nested'"):
        clone(model).set_params(cv=2).fit(X, y)
    with pytest.raises(ValueError, match="cv must put every sample into exactly one test set"):
        clone(model).set_params(cv=ShuffleSplit(3, random_state=0)).fit(X, y)


def test_predictions_of_a_sample_share_its_weight():
    test = np.arange(0, len(y), 2)
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    without_prior = SigmoidRecalibrator(prior_weight=0)
    once = RecalibratedClassifier(GaussianNB(), without_prior, cv=folds).fit(X, y)
    twice = RecalibratedClassifier(GaussianNB(), without_prior, cv=folds * 2).fit(X, y)
    np.testing.assert_allclose(twice.predict_proba(X), once.predict_proba(X), atol=1e-9)
    part = [(np.setdiff1d(np.arange(len(y)), test), test)]
    model = RecalibratedClassifier(GaussianNB(), SigmoidRecalibrator(), cv=part).fit(X, y)
    classifier = GaussianNB().fit(X[1::2], y[1::2])
    expected = SigmoidRecalibrator().fit(classifier.predict_proba(X[test]), y[test])
    proba = expected.predict_proba(classifier.predict_proba(X))
    np.testing.assert_allclose(model.predict_proba(X), proba, atol=1e-12)


@pytest.mark.parametrize("scoring", ["neg_log_loss", get_scorer("neg_smooth_calibration_error")])
def test_grid_search_over_the_whole_pipeline(scoring):
    pipeline = make_pipeline(StandardScaler(), PredictProba(GaussianNB()), IsotonicRecalibrator())
    grid = {"predictproba__estimator__var_smoothing": [1e-9, 1e-1], "predictproba__cv": [2, 3]}
    search = GridSearchCV(pipeline, grid, scoring=scoring, error_score="raise", cv=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict_proba(X).shape == (569, 2)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()


@pytest.mark.parametrize(
    "classifier",
    [
        GaussianNB(),
        pytest.param(RandomForestClassifier(10, random_state=0), marks=pytest.mark.slow),
    ],
    ids=["nb", "forest"],
)
def test_out_of_fold_probabilities_lower_the_held_out_error(classifier):
    error = {"raw": [], "in-sample": [], "out-of-fold": []}
    for seed in range(10):
        X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=seed)
        pipeline = make_pipeline(
            StandardScaler(), PredictProba(classifier), IsotonicRecalibrator(strict=False)
        ).fit(X_train, y_train)
        raw = pipeline[:-1]
        in_sample = IsotonicRecalibrator(strict=False).fit(raw.transform(X_train), y_train)
        for name, proba in {
            "raw": raw.transform(X_test),
            "in-sample": in_sample.predict_proba(raw.transform(X_test)),
            "out-of-fold": pipeline.predict_proba(X_test),
        }.items():
            error[name].append(smooth_calibration_error(y_test, proba, labels=[0, 1]))
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


@pytest.mark.parametrize("response_method", ["predict_proba", "decision_function"])
@pytest.mark.parametrize("wrap", [lambda step: step, make_pipeline], ids=["itself", "pipeline"])
def test_weights_that_the_recalibrator_declines(wrap, response_method):
    """Weights that balance the classes are for the classifier alone: they shift probabilities."""
    features, target = X[:, 10:13], X[:, 0] > 18
    weight = np.where(target, 10.0, 1.0)
    options = {"cv": KFold(3), "response_method": response_method}
    with config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        oof = PredictProba(inner, **options).fit_transform(features, target, sample_weight=weight)
        fits = {}
        for request in (True, False):
            recalibrator = wrap(SigmoidRecalibrator().set_fit_request(sample_weight=request))
            model = RecalibratedClassifier(inner, recalibrator, ensemble=False, **options)
            fits[request] = model.fit(features, target, sample_weight=weight)
    means = {request: fit.predict_proba(features)[:, 1].mean() for request, fit in fits.items()}
    assert abs(means[False] - target.mean()) < 0.02
    assert means[True] > target.mean() + 0.15
    if response_method == "predict_proba":
        expected = SigmoidRecalibrator().fit(oof, target)
        mapped = fits[False].recalibrator_.predict_proba(oof)
        np.testing.assert_array_equal(mapped, expected.predict_proba(oof))


def test_requests_count_with_metadata_routing_only():
    weight = np.random.default_rng(0).random(len(y))
    with config_context(enable_metadata_routing=True):
        declining = SigmoidRecalibrator().set_fit_request(sample_weight=False)
    models = [
        RecalibratedClassifier(GaussianNB(), recalibrator).fit(X, y, sample_weight=weight)
        for recalibrator in (declining, SigmoidRecalibrator())
    ]
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in models))


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
        X, y, predictproba__sample_weight=weight, isotonicrecalibrator__sample_weight=weight
    )
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), ensemble=False)
    model.fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(pipeline.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "options",
    [
        {"cv": list(KFold(3, shuffle=True, random_state=0).split(X))},
        pytest.param({"n_jobs": 2}, marks=pytest.mark.integration),
    ],
    ids=["splits", "jobs"],
)
def test_splitters_and_jobs(options):
    plan = {"cv": KFold(3, shuffle=True, random_state=0)}
    one = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), **plan).fit(X, y)
    other = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), **(plan | options))
    np.testing.assert_array_equal(other.fit(X, y).predict_proba(X), one.predict_proba(X))


def test_folds_that_lack_a_class():
    features, target = load_iris(return_X_y=True)
    few = np.concatenate([np.arange(100), [101, 102]])
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator())
    with pytest.warns(UserWarning, match="least populated class"):
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
        LogisticRegression(), {"class_weight": [None, "balanced"]}, scoring="recall", cv=3
    )
    scaled = StandardScaler().fit_transform(X[:, :5])
    proba = PredictProba(search, cv=2).fit_transform(scaled, y + 1)
    expected = np.empty_like(proba)
    for train, test in StratifiedKFold(2).split(scaled, y):
        expected[test] = clone(search).fit(scaled[train], y[train] + 1).predict_proba(scaled[test])
    np.testing.assert_array_equal(proba, expected)


def test_recalibrators_that_lack_a_class_are_aligned():
    features, target = load_iris(return_X_y=True)
    model = RecalibratedClassifier(GaussianNB(), GaussianNB(), cv=KFold(3))  # sorted by class
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
        transformer.fit_transform(features[:100], target[:100]), inner.predict_proba(features[:100])
    )


@pytest.mark.parametrize("estimator", [RecalibratedClassifier, PredictProba])
def test_several_labels_are_refused_with_what_works(estimator):
    features, labels = X[:60], np.stack([y[:60], 1 - y[:60], y[1:61]], axis=1)
    with pytest.raises(ValueError, match=r"found shape \(60, 3\)\. .*MultiOutputClassifier\(Recal"):
        estimator(MultiOutputClassifier(GaussianNB())).fit(features, labels)
    fitted = MultiOutputClassifier(RecalibratedClassifier(GaussianNB(), cv=2)).fit(features, labels)
    for proba, label in zip(fitted.predict_proba(features), labels.T, strict=True):
        expected = RecalibratedClassifier(GaussianNB(), cv=2).fit(features, label)
        np.testing.assert_array_equal(proba, expected.predict_proba(features))


def test_columns_of_labels_are_warned_about():
    frame = pd.DataFrame({"y": y})
    for model in (
        RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator()),
        make_pipeline(PredictProba(GaussianNB()), IsotonicRecalibrator()),
    ):
        with pytest.warns(DataConversionWarning):
            model.fit(X, frame)
        assert np.mean(model.predict(X) == y) > 0.9


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
    isotonic = IsotonicRecalibrator(strict=False)
    model = RecalibratedClassifier(classifier, isotonic, ensemble=False)
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
    weight = np.ones(len(y))
    weight[folds[1][1]] = 0
    model = RecalibratedClassifier(GaussianNB(), SigmoidRecalibrator(), cv=folds)
    model.fit(X, y, sample_weight=weight)
    counts = np.flatnonzero(weight)
    proba = np.vstack(
        [GaussianNB().fit(X[a], y[a], weight[a]).predict_proba(X[b]) for a, b in folds]
    )
    rows = np.concatenate([b for _, b in folds])
    expected = SigmoidRecalibrator().fit(
        proba[np.isin(rows, counts)], y[rows[np.isin(rows, counts)]]
    )
    np.testing.assert_allclose(model.recalibrator_.maps_[0], expected.maps_[0], rtol=1e-9)


def test_frozen_classifiers_take_no_weights_without_a_warning():
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    model = RecalibratedClassifier(frozen, IsotonicRecalibrator())
    model.fit(X, y, sample_weight=np.ones(len(y)))


@pytest.mark.parametrize("combine", ["log", "mean"])
def test_how_classifiers_are_combined_can_be_said(combine):
    X, y = load_breast_cancer(return_X_y=True)
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), combine=combine, cv=2)
    model.fit(X, y)
    assert model.combine_ == combine
    probas = [
        model.recalibrator_.predict_proba(inner.predict_proba(X)) for inner in model.estimators_
    ]
    if combine == "mean":
        expected = np.mean(probas, axis=0)
    else:
        products = np.prod(np.sqrt(np.clip(probas, np.finfo(float).tiny, None)), axis=0)
        expected = products / products.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-12)


FIXED = FixedThresholdClassifier(GaussianNB(), threshold=0.2)
TUNED = TunedThresholdClassifierCV(GaussianNB(), cv=2)


def recalibrated(model):
    return RecalibratedClassifier(model, SigmoidRecalibrator(), cv=2)


@pytest.mark.parametrize(
    "model",
    [
        recalibrated(FIXED),
        recalibrated(TUNED),
        PredictProba(FIXED),
        recalibrated(FrozenEstimator(clone(FIXED).fit(X, y))),
        recalibrated(make_pipeline(StandardScaler(), TUNED)),
        recalibrated(FrozenEstimator(make_pipeline(StandardScaler(), FIXED).fit(X, y))),
        recalibrated(GridSearchCV(make_pipeline(FIXED), {})),
        recalibrated(GridSearchCV(make_pipeline(GaussianNB()), {"gaussiannb": [FIXED]}, cv=2)),
        recalibrated(StackingClassifier([("nb", GaussianNB())], FIXED)),
        recalibrated(OneVsRestClassifier(FIXED)),
    ],
    ids=[
        *("fixed", "tuned", "PredictProba", "frozen", "pipeline", "frozen pipeline", "search"),
        *("grid", "stack", "one-vs-rest"),
    ],
)
def test_a_threshold_inside_is_refused_with_what_works(model):
    match = r"largest probabilities; found (\w+ThresholdClassifier\w*), .* around: \1\(Recalibrated"
    with pytest.raises(ValueError, match=match):
        model.fit(X, y)


def test_a_threshold_around_is_kept():
    model = recalibrated(GaussianNB())
    outer = FixedThresholdClassifier(model, threshold=0.9).fit(X, y)
    expected = clone(model).fit(X, y).predict_proba(X)[:, 1] >= 0.9
    np.testing.assert_array_equal(outer.predict(X), expected.astype(int))
    # decisions that are features of a stack are not lost
    stack = StackingClassifier([("nb", FIXED)], stack_method="predict", cv=2)
    recalibrated(stack).fit(X, y)
