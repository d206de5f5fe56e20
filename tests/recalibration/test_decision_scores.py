"""Decision scores become probabilities, whatever their units, and only where this is declared."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax, logit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC

from skcalib.recalibration import (
    IsotonicRecalibrator,
    PredictProba,
    RecalibratedClassifier,
    TemperatureRecalibrator,
)

X, y = (column[::2] for column in load_breast_cancer(return_X_y=True))

standard = StandardScaler().fit_transform(X)

iris = load_iris(return_X_y=True)

flowers = StandardScaler().fit_transform(iris[0]), iris[1]


def scored(classifier, **options):
    return RecalibratedClassifier(
        classifier, IsotonicRecalibrator(), response_method="decision_function", **options
    )


def root_mean_square(classifier, fitted_on):
    """Of the scores, minus the mean of their row, in plain loops."""
    training = classifier.decision_function(fitted_on)
    if training.ndim == 1:
        return np.sqrt(sum(s**2 for s in training) / len(training))
    squares = [(s - np.mean(row)) ** 2 for row in training for s in row]
    return np.sqrt(sum(squares) / len(squares))


def probabilities_by_hand(classifier, fitted_on, query, temperature):
    """The scores divided by their scale, then expit or softmax, in plain loops."""
    scale = temperature * root_mean_square(classifier, fitted_on)
    scores = classifier.decision_function(query)
    if scores.ndim == 1:
        return np.array([[expit(-s / scale), expit(s / scale)] for s in scores])
    return np.array([softmax(row / scale) for row in scores])


def check_temperature(temperature, out_of_fold, target):
    """No other temperature makes the labels likelier."""
    logs = np.log(out_of_fold)
    loss, lower, higher = (
        -log_softmax(logs * factor, axis=1)[np.arange(len(target)), target].mean()
        for factor in (1, 0.99, 1.01)
    )
    assert loss < min(lower, higher)
    assert 0.02 < temperature < 10


SCORERS = [LinearSVC(), SVC(kernel="linear"), RidgeClassifier()]


@pytest.mark.parametrize("classifier", SCORERS, ids=str)
@pytest.mark.parametrize("data", [(standard, y), flowers], ids=["two classes", "three classes"])
def test_scores_become_probabilities(classifier, data):
    features, target = data
    transformer = PredictProba(classifier, response_method="decision_function", cv=3)
    out_of_fold = transformer.fit_transform(features, target)
    whole = clone(classifier).fit(features, target)
    temperature = transformer.scale_ / root_mean_square(whole, features)
    check_temperature(temperature, out_of_fold, target)
    expected = np.empty((len(target), len(np.unique(target))))
    for train, test in StratifiedKFold(3).split(features, target):
        fitted = clone(classifier).fit(features[train], target[train])
        expected[test] = probabilities_by_hand(fitted, features[train], features[test], temperature)
    np.testing.assert_allclose(out_of_fold, expected, rtol=1e-10, atol=1e-14)
    proba = probabilities_by_hand(whole, features, features, temperature)
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
    probas, out_of_fold = [], np.empty((len(target), len(np.unique(target))))
    folds = list(StratifiedKFold(3).split(features, target))
    fits = [LinearSVC().fit(features[train], target[train]) for train, _ in folds]
    squares = [root_mean_square(fits[k], features[train]) for k, (train, _) in enumerate(folds)]
    temperatures = np.array(model.scales_) / squares
    np.testing.assert_allclose(temperatures, temperatures[0], rtol=1e-12)
    for fitted, (train, test) in zip(fits, folds, strict=True):
        proba = probabilities_by_hand(fitted, features[train], features, temperatures[0])
        out_of_fold[test] = proba[test]
        probas.append(proba)
    check_temperature(temperatures[0], out_of_fold, target)
    recalibrator = IsotonicRecalibrator().fit(out_of_fold, target)
    expected = [recalibrator.predict_proba(proba) for proba in probas]
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
    scores, out_of_fold = [], np.empty(len(y))
    for train, test in StratifiedKFold(3).split(standard, y):
        score = clone(machine).fit(standard[train], y[train]).decision_function(standard)
        scores.append(score / np.sqrt(np.mean(score[train] ** 2)))
        out_of_fold[test] = scores[-1][test]
    fitted = clone(sigmoid).fit(out_of_fold[:, None], y)
    expected = [fitted.predict_proba(score[:, None]) for score in scores]
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


@pytest.mark.parametrize("ensemble", [False, "nested"])
def test_scores_of_a_good_classifier_are_not_doubted(ensemble):
    """A prior means the same on scores and on probabilities, which are their softmax here."""
    features, target = flowers
    classifier = LogisticRegression(C=100)
    losses = [
        log_loss(
            target,
            RecalibratedClassifier(
                classifier,
                TemperatureRecalibrator(),
                response_method=method,
                cv=3,
                ensemble=ensemble,
            )
            .fit(features, target)
            .predict_proba(features),
        )
        for method in ("decision_function", "predict_proba")
    ]
    assert losses[0] < losses[1] * 1.05


def test_scores_that_tell_nothing_stay_different():
    rng = np.random.default_rng(0)
    features, target = rng.normal(size=(200, 1)), np.arange(200) % 2
    features[:, 0] -= target  # the larger the score, the less likely is the last class
    model = scored(Scores(), ensemble=False).fit(features, target)
    np.testing.assert_allclose(model.scales_, 10 * np.sqrt(np.mean(features**2)), rtol=1e-12)
    assert len(np.unique(model._fitted[0].response(features)[:, 1])) == 200


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
    models = [PredictProba(classifier), scored(classifier)]
    for model in models[: 1 + frozen]:  # repeated samples would be in other folds
        model.set_params(response_method="decision_function")
        scale = [
            clone(model).fit(features, target, sample_weight=weight),
            clone(model).fit(features[repeated], target[repeated]),
        ]
        scale = [getattr(fitted, "scale_", None) or fitted.scales_[0] for fitted in scale]
        np.testing.assert_allclose(scale[0], scale[1], rtol=1e-10)


def test_frozen_scores():
    frozen = FrozenEstimator(LinearSVC().fit(standard[:150], y[:150]))
    model = scored(frozen).fit(standard[150:], y[150:])
    temperature = model.scales_[0] / root_mean_square(frozen, standard[150:])
    proba = probabilities_by_hand(frozen, standard[150:], standard, temperature)
    check_temperature(temperature, proba[150:], y[150:])
    expected = IsotonicRecalibrator().fit(proba[150:], y[150:]).predict_proba(proba)
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
