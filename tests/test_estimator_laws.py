"""What scikit-learn expects of every estimator; the lists are in ``cases.py``."""

import pickle
from unittest import SkipTest

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import EQUAL_WEIGHT_CASES, RECALIBRATOR_CASES, TEST_CASES, one_of_each
from problems import problem, random_problem, two_columns
from scipy.special import softmax
from sklearn.base import clone, is_classifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from skcalib._inputs.drawing import draw_labels
from skcalib.recalibration import (
    AutoRecalibrator,
    IdentityRecalibrator,
    IsotonicRecalibrator,
    PredictProba,
    PriorShiftRecalibrator,
    RecalibratedClassifier,
    SigmoidRecalibrator,
    SubgroupRecalibrator,
    TemperatureRecalibrator,
)

QUERY = {k: random_problem(np.random.default_rng(7), 20, k)[1] for k in (2, 4)}

both_kinds = pytest.mark.parametrize("n_classes", [2, 4])

ESTIMATOR_CASES = TEST_CASES | EQUAL_WEIGHT_CASES | RECALIBRATOR_CASES

all_estimators = pytest.mark.parametrize("estimator", ESTIMATOR_CASES.values(), ids=ESTIMATOR_CASES)

all_recalibrators = pytest.mark.parametrize(
    "recalibrator", RECALIBRATOR_CASES.values(), ids=RECALIBRATOR_CASES
)


def fitted_state(estimator):
    return {key: value for key, value in vars(estimator).items() if key.endswith("_")}


# What fit stores, repeats and copies does not depend on the number of classes: both occur here.
@all_estimators
def test_fit_returns_self_and_changes_no_parameter(estimator):
    n_classes = 4
    label, proba = problem(n_classes)
    estimator = clone(estimator)
    assert fitted_state(estimator) == {}
    before = joblib.hash(estimator.get_params())
    assert estimator.fit(proba, label) is estimator
    assert joblib.hash(estimator.get_params()) == before
    assert estimator.n_features_in_ == n_classes
    label, proba = problem(2)
    assert estimator.fit(proba, label).n_features_in_ == 1


@all_estimators
def test_fit_can_be_repeated(estimator):
    label, proba = problem(2)
    other_label, other_proba = problem(4, seed=1)
    estimator = clone(estimator)
    first = joblib.hash(fitted_state(estimator.fit(proba, label)))
    estimator.fit(other_proba, other_label)
    assert joblib.hash(fitted_state(estimator.fit(proba, label))) == first


@all_estimators
def test_pickles(estimator):
    label, proba = problem(4)
    estimator = clone(estimator).fit(proba, label)
    copy = pickle.loads(pickle.dumps(estimator))
    assert joblib.hash(fitted_state(copy)) == joblib.hash(fitted_state(estimator))


@all_estimators
def test_column_vectors_of_labels_are_warned_about(estimator):
    label, proba = problem(2)
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        clone(estimator).fit(proba, label[:, None])


@all_estimators
def test_column_names_are_kept(estimator):
    label, proba = problem(4)
    frame = pd.DataFrame(proba, columns=list("wxyz"))
    estimator = clone(estimator).fit(frame, label)
    assert estimator.feature_names_in_.tolist() == list("wxyz")
    assert not hasattr(estimator.fit(proba, label), "feature_names_in_")


@all_estimators
def test_memory_maps(estimator, tmp_path):
    label, proba = problem(4)
    joblib.dump((label, proba), tmp_path / "data")
    mapped = joblib.load(tmp_path / "data", mmap_mode="r")
    expected = fitted_state(clone(estimator).fit(proba, label))
    actual = fitted_state(clone(estimator).fit(mapped[1], mapped[0]))
    assert joblib.hash(actual) == joblib.hash(expected)


@all_recalibrators
@both_kinds
def test_recalibrated_probabilities_are_on_the_simplex(recalibrator, n_classes):
    for seed in range(2):
        label, proba = problem(n_classes, seed=seed, n=5 if seed % 2 else 40)
        recalibrator = clone(recalibrator).fit(proba, label)
        for query in (proba, QUERY[n_classes], two_columns(proba) if n_classes == 2 else proba):
            calibrated = recalibrator.predict_proba(query)
            assert calibrated.shape == (len(query), n_classes)
            assert (calibrated >= 0).all()
            np.testing.assert_allclose(calibrated.sum(axis=1), 1, atol=1e-12)


@all_recalibrators
@both_kinds
def test_transform_predict_proba_and_predict_agree(recalibrator, n_classes):
    label, proba = problem(n_classes)
    names = np.array(["d", "a", "c", "b"])[label]
    labels = sorted(set(names)) if n_classes == 2 else None
    recalibrator = clone(recalibrator).set_params(labels=labels).fit(proba, names)
    calibrated = recalibrator.predict_proba(proba)
    assert recalibrator.classes_.tolist() == sorted(set(names))
    np.testing.assert_array_equal(recalibrator.transform(proba), calibrated)
    expected = recalibrator.classes_[calibrated.argmax(axis=1)]
    np.testing.assert_array_equal(recalibrator.predict(proba), expected)
    transformed = clone(recalibrator).fit_transform(proba, names)
    np.testing.assert_array_equal(transformed, calibrated)
    loss = log_loss(names, calibrated, labels=recalibrator.classes_)
    assert recalibrator.score(proba, names) == pytest.approx(-loss, rel=1e-14)


@all_recalibrators
@both_kinds
def test_rows_are_mapped_alone(recalibrator, n_classes):
    label, proba = problem(n_classes)
    recalibrator = clone(recalibrator).fit(proba, label)
    together = recalibrator.predict_proba(proba)
    alone = np.vstack([recalibrator.predict_proba(proba[i : i + 1]) for i in range(len(proba))])
    np.testing.assert_array_equal(alone, together)
    order = np.random.default_rng(0).permutation(len(proba))
    np.testing.assert_array_equal(recalibrator.predict_proba(proba[order]), together[order])


@all_recalibrators
def test_unfitted(recalibrator):
    unfitted = clone(recalibrator)
    for method in (unfitted.transform, unfitted.predict_proba, unfitted.predict):
        with pytest.raises(NotFittedError):
            method([0.5])
    with pytest.raises(NotFittedError):
        unfitted.get_feature_names_out()


def test_a_fit_that_fails_changes_nothing():
    (y, proba), (y_three, proba_three) = (
        random_problem(np.random.default_rng(0), 40, n_classes) for n_classes in (2, 3)
    )
    recalibrator = PriorShiftRecalibrator([0.2, 0.8])
    with pytest.raises(ValueError, match="prevalence"):
        recalibrator.fit(proba_three, y_three)
    with pytest.raises(NotFittedError):
        recalibrator.predict_proba(proba_three)
    before = recalibrator.fit(proba, y).predict_proba(proba)
    with pytest.raises(ValueError, match="prevalence"):
        recalibrator.fit(proba_three, y_three)
    np.testing.assert_array_equal(recalibrator.classes_, np.unique(y))
    np.testing.assert_array_equal(recalibrator.predict_proba(proba), before)


@pytest.mark.parametrize("precision", [np.float32, np.float16])
def test_scores_of_single_precision_are_silent(precision):
    # the sums of rows miss 1 by more than scikit-learn's log loss accepts of doubles
    y, proba = random_problem(np.random.default_rng(0), 40, 3)
    low = proba.astype(precision)
    exact = low.astype(float) / low.astype(float).sum(axis=1, keepdims=True)
    score = IdentityRecalibrator().fit(low, y).score(low, y)
    assert score == pytest.approx(-log_loss(y, exact), rel=1e-12)


@all_recalibrators
def test_set_output(recalibrator):
    label, proba = problem(4)
    frame = pd.DataFrame(proba, columns=list("wxyz"), index=np.arange(40) + 7)
    names = np.array(["d", "a", "c", "b"])[label]
    recalibrator = clone(recalibrator).set_output(transform="pandas").fit(frame, names)
    out = recalibrator.transform(frame)
    assert out.columns.tolist() == ["proba_a", "proba_b", "proba_c", "proba_d"]
    assert out.index.equals(frame.index)
    with pytest.raises(ValueError, match="feature names"):
        recalibrator.transform(frame[["z", "w", "x", "y"]])
    polars = recalibrator.set_output(transform="polars").transform(frame)
    assert isinstance(polars, pl.DataFrame)
    np.testing.assert_array_equal(polars.to_numpy(), out.to_numpy())


@all_recalibrators
def test_bad_predictions_are_refused_after_fit(recalibrator):
    label, proba = problem(4)
    recalibrator = clone(recalibrator).fit(proba, label)
    for bad in (proba * 2, proba[:, :3] / proba[:, :3].sum(axis=1)[:, None], proba[:, 0], -proba):
        with pytest.raises(ValueError, match="X"):
            recalibrator.predict_proba(bad)
    with pytest.raises(ValueError, match="at least one prediction; found 0 sample"):
        recalibrator.predict_proba(proba[:0])


REFUSALS = (
    *("must lie in [0, 1]", "must sum to 1", "floating-point numbers"),
    "'cv' parameter of AutoRecalibrator must be an int",  # a check passes folds
)

PROBABILITIES_ONLY = "takes probabilities only; the check feeds other numbers"

EXPECTED_OF_ALL = dict.fromkeys(
    [
        "check_all_zero_sample_weights_error",
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_estimators_fit_returns_self",
        "check_estimators_nan_inf",
        "check_estimators_overwrite_params",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit2d_1feature",
        "check_fit2d_1sample",
        "check_fit2d_predict1d",
        "check_fit_check_is_fitted",
        "check_fit_idempotent",
        "check_fit_score_takes_y",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_n_features_in",
        "check_n_features_in_after_fitting",
        "check_pipeline_consistency",
        "check_positive_only_tag_during_fit",
        "check_readonly_memmap_input",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weights_list",
        "check_sample_weights_not_an_array",
        "check_sample_weights_not_overwritten",
        "check_sample_weights_pandas_series",
        "check_sample_weights_shape",
    ],
    PROBABILITIES_ONLY,
)

EXPECTED_OF_CLASSIFIERS = dict.fromkeys(
    [
        "check_classifier_data_not_an_array",
        "check_classifiers_classes",
        "check_classifiers_one_label",
        "check_classifiers_one_label_sample_weights",
        "check_classifiers_regression_target",
        "check_classifiers_train",
        "check_supervised_y_2d",
        "check_transformer_data_not_an_array",
        "check_transformer_general",
        "check_transformer_preserve_dtypes",
    ],
    PROBABILITIES_ONLY,
)

# Skipped where no other package of arrays is installed; without SciPy 1.14 scikit-learn has none.
EXPECTED_OF_ARRAYS = dict.fromkeys(
    [
        "check_array_api_input",
        "check_array_api_mixed_inputs",
        "check_array_api_same_namespace",
    ],
    PROBABILITIES_ONLY,
)


def causes(exception):
    while exception is not None:
        yield str(exception)
        exception = exception.__cause__ or exception.__context__


CHECKED = one_of_each(ESTIMATOR_CASES) | {"auto": AutoRecalibrator()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", CHECKED.values(), ids=CHECKED)
def test_probability_estimators_fail_declared_checks_only(estimator):
    expected = EXPECTED_OF_ALL | (EXPECTED_OF_CLASSIFIERS if is_classifier(estimator) else {})
    of_arrays = EXPECTED_OF_ARRAYS if get_tags(estimator).array_api_support else {}
    results = check_estimator(
        clone(estimator), expected_failed_checks=expected | of_arrays, on_fail=None, on_skip=None
    )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    for result in results:
        if result["status"] == "xfail" and result["check_name"] not in of_arrays:
            text = " | ".join(causes(result["exception"]))
            assert any(refusal in text for refusal in REFUSALS), f"{result['check_name']}: {text}"
    known = {r["check_name"] for r in results}  # older releases have fewer checks
    refused = {r["check_name"] for r in results if r["status"] == "xfail"}
    assert refused - set(of_arrays) == known & set(expected)


PASSED = ("passed", "skipped")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "estimator",
    [
        RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(strict=False)),
        pytest.param(  # features are handed through: test_features.py sees sparse ones by default
            RecalibratedClassifier(MultinomialNB(), IsotonicRecalibrator(strict=False)),
            marks=pytest.mark.slow,
        ),
        pytest.param(  # test_features.py fits scores by default
            RecalibratedClassifier(
                RidgeClassifier(),
                IsotonicRecalibrator(strict=False),
                response_method="decision_function",
                ensemble=False,
            ),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["ensemble", "positive and sparse", "single, scores"],
)  # a second: scikit-learn's sixty checks find what no other test looks for
def test_recalibrated_classifiers_pass_every_check(estimator):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    bad = {r["check_name"]: r["exception"] for r in results if r["status"] not in PASSED}
    assert bad == {}


# scikit-learn's sixty checks: 0.3 s
@pytest.mark.filterwarnings("ignore")
def test_predict_proba_passes_every_check_but_those_of_cross_fitting():
    expected = dict.fromkeys(
        ["check_transformer_data_not_an_array", "check_transformer_general"],
        "fit_transform returns out-of-fold probabilities, transform those of the whole fit",
    )
    results = check_estimator(
        PredictProba(LogisticRegression()),
        expected_failed_checks=expected,
        on_fail=None,
        on_skip=None,
    )
    bad = {r["check_name"]: r["status"] for r in results if r["status"] not in PASSED}
    assert bad == dict.fromkeys(expected, "xfail")


# Multiplying all weights by 2 changes nothing, while repeating all samples halves the share of a
# prior: no prior can obey both laws.
NO_REPETITION = {
    "check_sample_weight_equivalence_on_dense_data": "a prior has the weight of a sample",
    "check_sample_weight_equivalence_on_sparse_data": "a prior has the weight of a sample",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ensemble", ["auto", False])
def test_the_default_recalibrated_classifier_passes_every_check_but_repetition(ensemble):
    results = check_estimator(
        RecalibratedClassifier(LogisticRegression(C=1), ensemble=ensemble),
        expected_failed_checks=NO_REPETITION,
        on_fail=None,
        on_skip=None,
    )
    bad = {r["check_name"]: r["status"] for r in results if r["status"] not in PASSED}
    assert bad == dict.fromkeys(NO_REPETITION, "xfail")


# 0.6 s: the part of the slow test above that finds weights which do not reach a prior
@pytest.mark.filterwarnings("ignore")
def test_the_default_recalibrated_classifier_passes_the_checks_of_weights_but_repetition():
    checks = estimator_checks_generator(RecalibratedClassifier(LogisticRegression(C=1), cv=2))
    failed = []
    for estimator, check in checks:
        name = check.func.__name__
        if any(word in name for word in ("weight", "one_label")):
            try:
                check(estimator)
            except AssertionError:
                failed.append(name)
            except SkipTest:
                pass
    assert sorted(failed) == sorted(NO_REPETITION)


@pytest.mark.parametrize("recalibrator", [None, SigmoidRecalibrator()], ids=str)
def test_a_single_class_of_positive_weight_is_refused_as_a_single_class_is(recalibrator):
    X, y = np.random.default_rng(0).random((10, 3)), np.arange(10) % 2
    model = RecalibratedClassifier(LogisticRegression(), recalibrator)
    with pytest.raises(ValueError, match="at least two classes in samples of positive weight"):
        model.fit(X, y, sample_weight=y)
    with pytest.raises(ValueError, match="at least two classes"):
        model.fit(X[y == 1], y[y == 1])


@pytest.mark.parametrize("labels", [[b"x", b"y"], np.array([3, 4], dtype=object), ["a", "b"]])
def test_scores_take_the_labels_that_fits_take(labels):
    proba, code = np.linspace(0.1, 0.9, 20), np.resize([0, 0, 1, 1, 1], 20)
    label = np.array(labels)[code]
    recalibrators = [IdentityRecalibrator(), TemperatureRecalibrator()]
    for one in [*recalibrators, SubgroupRecalibrator(TemperatureRecalibrator())]:
        one.set_params(labels=labels)
        by = {"by": np.resize(["p", "q"], 20)} if isinstance(one, SubgroupRecalibrator) else {}
        fitted = one.fit(proba, label, **by)
        found = fitted.score(proba, label, **by)
        calibrated = fitted.predict_proba(proba, **by)
        assert found == -log_loss(code, calibrated)
        weight = np.arange(20)
        weighted = -log_loss(code, calibrated, sample_weight=weight)
        assert fitted.score(proba, label, sample_weight=weight, **by) == pytest.approx(weighted)
        with pytest.raises(ValueError, match="y must hold classes that were seen at fit"):
            fitted.score(proba, code + 10, **by)


def fit_wrapped(recalibrator, X, y):
    model = RecalibratedClassifier(LogisticRegression(), recalibrator, cv=3)
    return model.fit(X, y)


@all_recalibrators
@both_kinds
def test_wrapping_a_recalibrator_changes_no_prediction(recalibrator, n_classes):
    label, proba = problem(n_classes)
    X = proba.reshape(len(proba), -1) + np.random.default_rng(0).normal(size=(len(proba), 1))
    plain = fit_wrapped(recalibrator, X, label)
    expected = plain.predict_proba(X)
    for wrap in (make_pipeline, lambda inner: GridSearchCV(inner, {}, cv=2)):
        wrapped = fit_wrapped(wrap(clone(recalibrator)), X, label)
        assert wrapped.combine_ == plain.combine_
        np.testing.assert_allclose(wrapped.predict_proba(X), expected, atol=1e-14)


def test_a_search_by_the_default_score_finds_the_better_recalibrator():
    # accuracy is the same for all temperatures
    rng = np.random.default_rng(0)
    z = rng.normal(size=(400, 3))
    label = draw_labels(softmax(z, axis=1), 1, rng)[0]
    grid = {"prior_weight": [1e5, 1.0]}
    search = GridSearchCV(TemperatureRecalibrator(), grid, cv=3)
    assert search.fit(softmax(4 * z, axis=1), label).best_params_ == {"prior_weight": 1.0}
    pipeline = make_pipeline(TemperatureRecalibrator()).fit(softmax(4 * z, axis=1), label)
    proba = pipeline.predict_proba(softmax(4 * z, axis=1))
    assert pipeline.score(softmax(4 * z, axis=1), label) == -log_loss(label, proba)
