"""Laws that every public metric, test and recalibrator obeys; the lists are in ``cases.py``."""

import pickle
import re
from functools import cache
from unittest import SkipTest

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import (
    COMPOSITE_CASES,
    EQUAL_WEIGHT_CASES,
    LIKELIHOODS,
    METRIC_CASES,
    NOT_REPEATABLE,
    RECALIBRATOR_CASES,
    TEST_CASES,
    WITH_PRIOR_OR_FOLDS,
    one_of_each,
)
from problems import problem, random_problem, two_columns
from sklearn.base import clone, is_classifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics._registry import METRICS
from skcalib.recalibration import (
    AutoRecalibrator,
    IsotonicRecalibrator,
    PredictProba,
    RecalibratedClassifier,
    SigmoidRecalibrator,
)


def metric_measure(metric):
    def measure(y, proba, sample_weight=None, labels=None):
        return metric(y, proba, sample_weight=sample_weight, labels=labels)

    return measure


def hypothesis_test_measure(test):
    def measure(y, proba, sample_weight=None, labels=None):
        test_ = clone(test).set_params(labels=labels).fit(proba, y, sample_weight=sample_weight)
        return np.array([test_.statistic_, test_.p_value_])

    return measure


QUERY = {k: random_problem(np.random.default_rng(7), 20, k)[1] for k in (2, 4)}


def recalibrator_measure(recalibrator):
    """The recalibrated probabilities of other predictions, in the order of the columns."""

    def measure(y, proba, sample_weight=None, labels=None):
        fitted = clone(recalibrator).set_params(labels=labels)
        fitted.fit(proba, y, sample_weight=sample_weight)
        query = QUERY[len(fitted.classes_)]
        if hasattr(fitted, "feature_names_in_"):
            query = two_columns(query) if query.ndim == 1 else query
            query = pd.DataFrame(query, columns=fitted.feature_names_in_)
        return fitted.predict_proba(query)

    return measure


MEASURES = (
    {
        f"metric: {name}": metric_measure(metric)
        for name, metric in (METRIC_CASES | COMPOSITE_CASES).items()
    }
    | {f"test: {name}": hypothesis_test_measure(test) for name, test in TEST_CASES.items()}
    | {f"recalibrator: {name}": recalibrator_measure(r) for name, r in RECALIBRATOR_CASES.items()}
)
# What users pass is judged before any option counts: there, one case of each function is enough.
DOORS = {
    f"{kind}: {name}": MEASURES[f"{kind}: {name}"]
    for kind, cases in (
        ("metric", METRIC_CASES),
        ("metric", COMPOSITE_CASES),
        ("test", TEST_CASES),
        ("recalibrator", RECALIBRATOR_CASES),
    )
    for name in one_of_each(cases)
}
all_measures = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
all_doors = pytest.mark.parametrize("measure", DOORS.values(), ids=DOORS)
all_metrics = pytest.mark.parametrize("metric", METRIC_CASES.values(), ids=METRIC_CASES)
metric_doors = pytest.mark.parametrize(
    "metric", one_of_each(METRIC_CASES).values(), ids=one_of_each(METRIC_CASES)
)
both_kinds = pytest.mark.parametrize("n_classes", [2, 4])


@cache
def reference(measure, n_classes):
    """The value for the problem as it is, which the laws compare with."""
    return measure(*problem(n_classes))


def assert_same(actual, expected, tolerance=1e-12):
    np.testing.assert_allclose(actual, expected, atol=tolerance, rtol=tolerance)


def test_every_metric_is_among_the_cases():
    covered = {getattr(case, "func", case).__name__ for case in METRIC_CASES.values()}
    assert covered == {*METRICS, "weighted_calibration_error"}


def test_every_estimator_is_among_the_cases():
    from skcalib import hypothesis_tests, recalibration

    covered = {type(case).__name__ for case in (*TEST_CASES.values(), *RECALIBRATOR_CASES.values())}
    others = {"IntervalCertificate", "PredictProba", "RecalibratedClassifier"}
    assert covered | others == {*hypothesis_tests.__all__, *recalibration.__all__}


@all_measures
@both_kinds
def test_order_of_samples_does_not_matter(measure, n_classes):
    label, proba = problem(n_classes)
    weight = np.random.default_rng(1).random(len(label))
    order = np.random.default_rng(2).permutation(len(label))
    assert_same(measure(label[order], proba[order]), reference(measure, n_classes))
    assert_same(
        measure(label[order], proba[order], sample_weight=weight[order]),
        measure(label, proba, sample_weight=weight),
    )


@all_measures
@both_kinds
def test_names_of_classes_do_not_matter(measure, n_classes):
    label, proba = problem(n_classes)
    names = np.array(["a", "b", "c", "d"])
    assert_same(measure(names[label], proba), reference(measure, n_classes), 0)


@all_doors
@both_kinds
def test_numbers_of_any_kind_are_names_of_classes(measure, n_classes):
    label, proba = problem(n_classes)
    for names in ([1, 2, 3, 4], [-5, -1, 0, 7], [0, 10, 20, 1000], [0.0, 1.0, 2.0, 3.0]):
        y = np.array(names[:n_classes])[label]
        assert_same(measure(y, proba), reference(measure, n_classes), 0)


@all_doors
def test_truth_values_are_labels(measure):
    label, proba = problem(2)
    assert_same(measure(label == 1, proba), reference(measure, 2), 0)
    assert_same(measure(np.where(label == 1, 1, -1), proba), reference(measure, 2), 0)


@all_doors
@both_kinds
def test_labels_give_the_order_of_the_columns(measure, n_classes):
    label, proba = problem(n_classes)
    matrix = two_columns(proba) if n_classes == 2 else proba
    names = np.array(["d", "a", "c", "b"][:n_classes])
    assert_same(measure(names[label], matrix, labels=names), reference(measure, n_classes), 0)


@all_doors
@both_kinds
def test_pandas_with_any_index(measure, n_classes):
    label, proba = problem(n_classes)
    index = np.random.default_rng(0).permutation(len(label)) + 100
    names = np.array(["a", "b", "c", "d"])[label]
    frame = pd.DataFrame(two_columns(proba) if n_classes == 2 else proba, index=index)
    frame = frame.add_prefix("p")
    for series in (
        pd.Series(label, index=index),
        pd.Series(names, index=index),
        pd.Series(names, index=index, dtype="category"),
        pd.Series(names, index=index, dtype=object),
        pd.Series(label, index=index, dtype="Int64"),
    ):
        weight = pd.Series(np.ones(len(label)), index=index[::-1])
        assert_same(measure(series, frame, sample_weight=weight), reference(measure, n_classes))
    if n_classes == 2:
        assert_same(measure(label, pd.Series(proba, index=index)), reference(measure, 2), 0)


@all_doors
@both_kinds
def test_polars(measure, n_classes):
    label, proba = problem(n_classes)
    names = pl.Series(np.array(["a", "b", "c", "d"])[label].tolist())
    frame = pl.DataFrame(two_columns(proba) if n_classes == 2 else proba)
    assert_same(measure(names, frame), reference(measure, n_classes), 0)
    if n_classes == 2:
        assert_same(measure(pl.Series(label), pl.Series(proba)), reference(measure, 2), 0)


@all_doors
@both_kinds
def test_lists_and_layouts(measure, n_classes):
    label, proba = problem(n_classes)
    expected = reference(measure, n_classes)
    assert_same(measure(label.tolist(), proba.tolist()), expected, 0)
    assert_same(measure(label, np.asfortranarray(proba)), expected, 0)
    strided = np.repeat(proba, 2, axis=0)[::2]
    assert_same(measure(np.repeat(label, 2)[::2], strided), expected, 0)


@all_measures
@both_kinds
def test_what_is_passed_stays_as_it_is(measure, n_classes):
    label, proba = problem(n_classes)
    weight = np.random.default_rng(1).random(len(label))
    for array in (label, proba, weight):
        array.flags.writeable = False
    measure(label, proba, sample_weight=weight)


@all_doors
@both_kinds
def test_other_precisions_are_computed_in_double(measure, n_classes):
    label, proba = problem(n_classes)
    for dtype in (np.float32, np.float16, np.longdouble):
        lower = proba.astype(dtype)
        rounded = lower.astype(np.float64)
        if n_classes > 2:  # what single precision does to the sums of rows is left as it is
            total = rounded.sum(axis=1, keepdims=True)
            rounded = np.where(np.abs(total - 1) > 1e-5, rounded / total, rounded)
        expected = measure(label, rounded)
        assert_same(measure(label, lower), expected)
        if dtype is np.float32:  # once it has been single precision
            assert_same(measure(label, lower.astype(np.float64)), expected)


@all_doors
@both_kinds
def test_columns_named_after_the_classes_must_be_in_their_order(measure, n_classes):
    label, proba = problem(n_classes)
    names = np.array(["a", "b", "c", "d"][:n_classes])
    matrix = two_columns(proba) if n_classes == 2 else proba
    frame = pd.DataFrame(matrix, columns=names)
    assert_same(measure(names[label], frame), reference(measure, n_classes), 0)
    mixed = frame[names[::-1]]
    for container in (mixed, pl.DataFrame(mixed)):
        with pytest.raises(ValueError, match=r"columns of .* must be in the order of the classes"):
            measure(names[label], container)
    measure(names[label], mixed, labels=list(mixed.columns))


@all_doors
def test_one_column_and_two_are_the_same(measure):
    label, proba = problem(2)
    assert_same(measure(label, two_columns(proba)), reference(measure, 2), 0)
    assert_same(measure(label, proba[:, None]), reference(measure, 2), 0)


@all_measures
@both_kinds
def test_equal_weights_are_no_weights(measure, n_classes):
    label, proba = problem(n_classes)
    for weight in ([1] * len(label), np.full(len(label), 3)):
        assert_same(measure(label, proba, sample_weight=weight), reference(measure, n_classes))


@all_measures
@both_kinds
def test_scale_of_weights_does_not_matter(measure, n_classes):
    label, proba = problem(n_classes)
    weight = np.random.default_rng(1).random(len(label))
    expected = measure(label, proba, sample_weight=weight)
    for scale in (1e-6, 1e9):
        assert_same(measure(label, proba, sample_weight=scale * weight), expected)
    extreme = np.where(weight > 0.5, 1e300, 1e-300)
    used = weight > 0.5
    assert_same(
        measure(label, proba, sample_weight=extreme, labels=range(n_classes)),
        measure(label[used], proba[used], labels=range(n_classes)),
    )


@all_measures
@both_kinds
def test_weight_zero_is_removal(measure, n_classes):
    label, proba = problem(n_classes)
    weight = np.random.default_rng(1).integers(0, 3, size=len(label)).astype(float)
    weight[:n_classes] = 1
    used = weight > 0
    expected = measure(label[used], proba[used], sample_weight=weight[used])
    assert_same(measure(label, proba, sample_weight=weight), expected, 0)


@pytest.mark.parametrize("name", [name for name in METRIC_CASES if name not in NOT_REPEATABLE])
@both_kinds
def test_whole_weights_of_metrics_are_repetitions(name, n_classes):
    check_repetition(metric_measure(METRIC_CASES[name]), n_classes)


@pytest.mark.parametrize(
    "recalibrator",
    [
        *(case for name, case in RECALIBRATOR_CASES.items() if name not in WITH_PRIOR_OR_FOLDS),
        *LIKELIHOODS,
    ],
    ids=str,
)
@both_kinds
def test_whole_weights_of_recalibrators_are_repetitions(recalibrator, n_classes):
    check_repetition(recalibrator_measure(recalibrator), n_classes)


def check_repetition(measure, n_classes):
    label, proba = problem(n_classes)
    weight = np.random.default_rng(1).integers(1, 4, size=len(label))
    repeated = measure(np.repeat(label, weight), np.repeat(proba, weight, axis=0))
    assert_same(measure(label, proba, sample_weight=weight), repeated)


@pytest.mark.parametrize("name", sorted(NOT_REPEATABLE))
def test_the_exceptions_to_repetition_are_exceptions(name):
    with pytest.raises(AssertionError):
        check_repetition(metric_measure(METRIC_CASES[name]), 2)


@pytest.mark.parametrize("name", sorted(WITH_PRIOR_OR_FOLDS))
def test_the_recalibrators_that_are_exceptions_to_repetition_are(name):
    with pytest.raises(AssertionError):
        check_repetition(recalibrator_measure(RECALIBRATOR_CASES[name]), 4)


@all_metrics
@both_kinds
def test_certain_and_right_predictions_are_calibrated(metric, n_classes):
    label = np.arange(12) % n_classes
    proba = np.eye(n_classes)[label]
    assert metric(label, proba) == 0


@all_metrics
@both_kinds
def test_metrics_return_floats(metric, n_classes):
    assert type(reference(metric, n_classes)) is float


@metric_doors
def test_positive_label_says_whose_probability_it_is(metric):
    label, proba = problem(2)
    names = np.array(["yes", "no"])[label]  # the probability is that of "no"
    expected = metric(label, proba)
    assert_same(metric(names, proba, pos_label="no"), expected, 0)
    swapped = two_columns(proba)[:, ::-1]
    assert_same(metric(names, swapped, pos_label="no"), expected, 0)
    assert_same(metric(1 - label, proba, pos_label=0), expected, 0)


@metric_doors
def test_one_class_only(metric):
    proba = np.array([0.2, 0.5, 0.9])
    for one in (0, 1):
        expected = metric(np.full(3, one), proba, labels=[0, 1])
        assert_same(metric(np.full(3, one), proba), expected, 0)
        assert_same(metric(np.full(3, one == 1), proba), expected, 0)
        assert_same(
            metric(["no", "yes"][one : one + 1] * 3, proba, labels=["no", "yes"]), expected, 0
        )
        assert_same(metric(["no", "yes"][one : one + 1] * 3, proba, pos_label="yes"), expected, 0)
    assert_same(metric([-1, -1, -1], proba), metric([0, 0, 0], proba), 0)
    assert_same(metric([1, 1, 1], proba, pos_label=2), metric([0, 0, 0], proba), 0)
    assert_same(metric([2, 2, 2], proba, pos_label=2), metric([1, 1, 1], proba), 0)
    assert_same(metric([0, 0, 0], proba, pos_label=-1), metric([0, 0, 0], proba), 0)
    with pytest.raises(ValueError, match=r"y_true holds only 1 distinct label\(s\): \['no'\]"):
        metric(["no"] * 3, proba)


@metric_doors
@pytest.mark.parametrize("names", [[0, 1], [False, True], [1, 2], [-1, 1], ["a", "z"]], ids=str)
def test_one_class_only_with_two_columns(metric, names):
    # the other class is named by pos_label, or one of {0, 1}, {−1, 1} and {False, True}
    matrix = two_columns(np.array([0.2, 0.5, 0.9]))
    for one, other in (names, names[::-1]):
        expected = metric([one] * 3, matrix, labels=names, pos_label=other)
        assert_same(metric([one] * 3, matrix, pos_label=other), expected, 0)
    if names in ([0, 1], [False, True], [-1, 1]):
        for one in names[1:] if names == [-1, 1] else names:
            for pos_label in (one, None):
                expected = metric([one] * 3, matrix, labels=names, pos_label=pos_label)
                assert_same(metric([one] * 3, matrix, pos_label=pos_label), expected, 0)
    elif names == ["a", "z"]:
        with pytest.raises(ValueError, match="labels="):
            metric(["a"] * 3, matrix, pos_label="a")


def assert_refused(message, measure, *arguments, **options):
    """A ValueError whose text matches, which says what is wrong without the whole array."""
    text = "no error"
    try:
        measure(*arguments, **options)
    except ValueError as error:
        text = str(error)
    assert re.search(message, text)
    assert len(text) < 500


BAD_INPUT = {
    "labels for probabilities": ([0, 1, 1], [0, 1, 1], "floating-point numbers; found .* int"),
    "booleans": ([0, 1, 1], [False, True, True], "floating-point numbers; found .* bool"),
    "strings": ([0, 1, 1], ["0.1", "0.2", "0.3"], "floating-point numbers"),
    "swapped": ([0.1, 0.9, 0.8], [0, 1, 1], "look swapped: exchange them"),
    "swapped strings": ([0.1, 0.9, 0.8], ["a", "b", "b"], "look swapped: exchange them"),
    "swapped floats": ([0.1, 0.9, 0.8], [0.0, 1.0, 1.0], "swapped"),
    "nan": ([0, 1, 1], [0.1, np.nan, 0.5], r"must be finite; found nan .* row 1"),
    "infinity": ([0, 1, 1], [0.1, 0.5, np.inf], r"must be finite; found inf .* row 2"),
    "above one": ([0, 1, 1], [0.1, 1.5, 0.5], r"lie in \[0, 1\]; found 1.5 in row 1"),
    "a rounding error above one": ([0, 1, 1], [0.1, 1.0000001, 0.5], r"lie in \[0, 1\]"),
    "negative": ([0, 1, 1], [0.1, -0.5, 0.5], r"lie in \[0, 1\]; found -0.5 in row 1"),
    "rows": ([0, 1], [[0.5, 0.5], [0.3, 0.3]], r"sum to 1 .* found a sum of 0.6 in row 1"),
    "empty": ([], [], "at least one prediction; found 0 sample"),
    "lengths": ([0, 1, 1], [0.1, 0.5], "same length; found .* 3.* 2"),
    "three dimensions": ([0, 1], np.full((2, 2, 2), 0.5), "must be an array of one or two dim"),
    "ragged": ([0, 1], [[0.5, 0.5], [1.0]], "must be an array of one or two dimensions"),
    "complex": ([0, 1], np.array([0.5, 0.5j]), "must be an array .*Complex data not supported"),
    "masked": ([0, 1], np.ma.array([0.5, 0.6], mask=[False, True]), "must not have masked values"),
    "masked labels": (np.ma.array([0, 1], mask=[0, 1]), [0.5, 0.6], "must not have masked values"),
    "dates": (np.array(["2020-01-01"] * 2, dtype="M8[D]"), [0.5, 0.6], "found type datetime64"),
    "one-hot labels": ([[0, 1], [1, 0]], [[0.5, 0.5], [0.5, 0.5]], "must be 1-D"),
    "continuous labels": ([0.5, 1.5], [0.5, 0.6], "found the fraction 0.5 in row 0"),
    "missing label": ([0, np.nan, 1], [0.5, 0.6, 0.7], "missing values; found nan .* row 1"),
    "missing string": (["a", None, "b"], [0.5, 0.6, 0.7], "missing values; found None .* row 1"),
    "nan among strings": (["a", float("nan"), "b"], [0.5, 0.6, 0.7], "found nan .* row 1"),
    "nan of NumPy strings": (
        np.array(["a", np.nan, "b"], dtype=np.dtypes.StringDType(na_object=np.nan)),
        [0.5, 0.6, 0.7],
        "found nan .* row 1",
    ),
    "mixed list": (["a", 1, 1], [0.5, 0.6, 0.7], "one type; found a mix of int, str"),
    "mixed labels": (np.array(["a", 1], dtype=object), [0.5, 0.6], "one type; found a mix of"),
    "too many labels": ([0, 1, 2], [0.5, 0.6, 0.7], "holds 3 distinct labels"),
    "too few labels": ([0, 1], np.full((2, 3), 1 / 3), r"only 2 distinct label\(s\).*labels="),
    "none": (None, [0.5], "found None"),
}


@all_doors
def test_bad_input_is_refused(measure):
    for y, proba, message in BAD_INPUT.values():
        assert_refused(message, measure, y, proba)


BAD_WEIGHTS = {
    "negative": ([1, -1, 1], "sample_weight must not be negative; found -1.0 in row 1"),
    "zero": ([0, 0, 0], "sample_weight must have a positive, finite sum; found 0.0"),
    "nan": ([1, np.nan, 1], "sample_weight must be finite; found nan .* row 1"),
    "infinity": ([1, np.inf, 1], "sample_weight must be finite; found inf"),
    "lengths": ([1, 1], "same length"),
    "shape": ([[1], [1], [1]], r"sample_weight must be 1-D, .* found shape \(3, 1\)"),
    "words": (["a", "b", "c"], "sample_weight must hold numbers"),
    "a word": ("balanced", "sample_weight"),
    "dates": (np.array(["2020-01-01"] * 3, dtype="M8[D]"), "sample_weight must hold numbers"),
}


@all_doors
def test_bad_weights_are_refused(measure):
    for weight, message in BAD_WEIGHTS.values():
        assert_refused(message, measure, [0, 1, 1], [0.1, 0.5, 0.6], sample_weight=weight)


BAD_LABELS = {
    "unknown": ([0, 1, 1], ["a", "b"], "y.* must hold only the classes .*'a'.* found"),
    "twice": ([0, 1, 1], [0, 0], "labels must list each class once"),
    "too many": ([0, 1, 1], [0, 1, 2], "labels must name one class for each column"),
    "none": ([0, 1, 1], [None, 1], "must hold only the classes"),
}


@all_doors
def test_bad_class_names_are_refused(measure):
    for y, labels, message in BAD_LABELS.values():
        assert_refused(message, measure, y, [0.1, 0.5, 0.6], labels=labels)


@metric_doors
def test_bad_positive_label_is_refused(metric):
    with pytest.raises(ValueError, match="pos_label must be one of the classes"):
        metric([0, 1], [0.1, 0.5], pos_label="a")
    with pytest.raises(ValueError, match="pos_label is for two classes; found 3"):
        metric([0, 1, 2], np.full((3, 3), 1 / 3), pos_label=1)


@pytest.mark.parametrize("test", TEST_CASES.values(), ids=TEST_CASES)
@both_kinds
def test_p_values_are_probabilities(test, n_classes):
    label, proba = problem(n_classes)
    fitted = clone(test).fit(proba, label)
    assert 0 < fitted.p_value_ <= 1
    if isinstance(fitted, CalibrationTest):
        assert fitted.null_distribution_.shape == (test.n_resamples,)
    assert fitted.classes_.tolist() == list(range(n_classes))


# The contracts of `check_estimator`, on the only input that recalibrators and tests take.

ESTIMATOR_CASES = TEST_CASES | EQUAL_WEIGHT_CASES | RECALIBRATOR_CASES
all_estimators = pytest.mark.parametrize("estimator", ESTIMATOR_CASES.values(), ids=ESTIMATOR_CASES)
all_recalibrators = pytest.mark.parametrize(
    "recalibrator", RECALIBRATOR_CASES.values(), ids=RECALIBRATOR_CASES
)


def fitted_state(estimator):
    return {key: value for key, value in vars(estimator).items() if key.endswith("_")}


@all_estimators
@both_kinds
def test_fit_returns_self_and_changes_no_parameter(estimator, n_classes):
    label, proba = problem(n_classes)
    estimator = clone(estimator)
    assert fitted_state(estimator) == {}
    before = joblib.hash(estimator.get_params())
    assert estimator.fit(proba, label) is estimator
    assert joblib.hash(estimator.get_params()) == before
    assert estimator.n_features_in_ == (1 if n_classes == 2 else n_classes)


@all_estimators
@both_kinds
def test_fit_can_be_repeated(estimator, n_classes):
    label, proba = problem(n_classes)
    other_label, other_proba = problem(4, seed=1)
    estimator = clone(estimator)
    first = joblib.hash(fitted_state(estimator.fit(proba, label)))
    estimator.fit(other_proba, other_label)
    assert joblib.hash(fitted_state(estimator.fit(proba, label))) == first


@all_estimators
@both_kinds
def test_pickles(estimator, n_classes):
    label, proba = problem(n_classes)
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
    for seed in range(10):
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
    recalibrator = clone(recalibrator).fit(proba, names)
    calibrated = recalibrator.predict_proba(proba)
    assert recalibrator.classes_.tolist() == sorted(set(names))
    np.testing.assert_array_equal(recalibrator.transform(proba), calibrated)
    expected = recalibrator.classes_[calibrated.argmax(axis=1)]
    np.testing.assert_array_equal(recalibrator.predict(proba), expected)
    transformed = clone(recalibrator).fit_transform(proba, names)
    np.testing.assert_array_equal(transformed, calibrated)
    assert recalibrator.score(proba, names) == np.mean(expected == names)


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


REFUSALS = ("must lie in [0, 1]", "must sum to 1", "floating-point numbers")
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


def causes(exception):
    while exception is not None:
        yield str(exception)
        exception = exception.__cause__ or exception.__context__


CHECKED = one_of_each(ESTIMATOR_CASES) | {"auto": AutoRecalibrator()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", CHECKED.values(), ids=CHECKED)
def test_probability_estimators_fail_declared_checks_only(estimator):
    expected = EXPECTED_OF_ALL | (EXPECTED_OF_CLASSIFIERS if is_classifier(estimator) else {})
    results = check_estimator(
        clone(estimator), expected_failed_checks=expected, on_fail=None, on_skip=None
    )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    for result in results:
        if result["status"] == "xfail":
            text = " | ".join(causes(result["exception"]))
            assert any(refusal in text for refusal in REFUSALS), f"{result['check_name']}: {text}"
    known = {r["check_name"] for r in results}  # older releases have fewer checks
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == known & set(expected)


PASSED = ("passed", "skipped")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "estimator",
    [
        RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator()),
        RecalibratedClassifier(MultinomialNB(), IsotonicRecalibrator()),
        RecalibratedClassifier(
            RidgeClassifier(),
            IsotonicRecalibrator(),
            response_method="decision_function",
            ensemble=False,
        ),
    ],
    ids=["ensemble", "positive and sparse", "single, scores"],
)
def test_recalibrated_classifiers_pass_every_check(estimator):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    bad = {r["check_name"]: r["exception"] for r in results if r["status"] not in PASSED}
    assert bad == {}


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


@pytest.mark.filterwarnings("ignore")
def test_the_default_recalibrated_classifier_passes_the_checks_of_weights_but_repetition():
    checks = estimator_checks_generator(RecalibratedClassifier(LogisticRegression(C=1), cv=2))
    failed = []
    for estimator, check in checks:
        name = check.func.__name__
        if any(word in name for word in ("weight", "one_label", "classes")):
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
