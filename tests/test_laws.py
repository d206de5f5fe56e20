"""Laws that every public metric, test and recalibrator obeys; the lists are in ``cases.py``."""

import re
from functools import cache

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
from sklearn.base import clone

from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics._registry import METRICS


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

RECALIBRATOR_MEASURES = [
    measure for name, measure in MEASURES.items() if name.startswith("recalibrator: ")
]

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

all_doors = pytest.mark.parametrize("measure", DOORS.values(), ids=DOORS)


def in_turn(measures, first):
    """Each measure with two classes or with four: on their number the law does not depend."""
    cases = [
        pytest.param(measure, (2, 4)[(i + first) % 2], id=name)
        for i, (name, measure) in enumerate(measures.items())
    ]
    return pytest.mark.parametrize(("measure", "n_classes"), cases)


all_metrics = pytest.mark.parametrize("metric", METRIC_CASES.values(), ids=METRIC_CASES)

metric_doors = pytest.mark.parametrize(
    "metric", one_of_each(METRIC_CASES).values(), ids=one_of_each(METRIC_CASES)
)

both_kinds = pytest.mark.parametrize("n_classes", [2, 4])


@cache
def reference(measure, n_classes):
    """The value for the problem as it is, which the laws compare with."""
    return measure(*problem(n_classes))


@cache
def weighted_reference(measure, n_classes):
    """The value for the problem with unequal weights, and these weights."""
    label, proba = problem(n_classes)
    weight = np.random.default_rng(1).random(len(label))
    return measure(label, proba, sample_weight=weight), weight


def assert_same(actual, expected, tolerance=1e-12):
    np.testing.assert_allclose(actual, expected, atol=tolerance, rtol=tolerance)


def column_tolerance(measure):
    """Recalibrators read both columns of two classes, of which 1 − p is rounded."""
    return 1e-12 if measure in RECALIBRATOR_MEASURES else 0


def test_every_metric_is_among_the_cases():
    covered = {getattr(case, "func", case).__name__ for case in METRIC_CASES.values()}
    assert covered == {*METRICS, "weighted_calibration_error"}


def test_every_estimator_is_among_the_cases():
    from skcalib import hypothesis_tests, recalibration

    cases = TEST_CASES | EQUAL_WEIGHT_CASES | RECALIBRATOR_CASES
    covered = {type(case).__name__ for case in cases.values()}
    others = {
        "FeatureRecalibrator",  # needs features
        "PredictProba",
        "RecalibratedClassifier",
        "SubgroupCalibrationTest",  # needs subgroups
        "SubgroupRecalibrator",
    }
    of_forecasts = {
        "LocationScaleRecalibrator",
        "NonhomogeneousRegressionRecalibrator",
        "PITRecalibrator",
        "QuantileRecalibrator",
        "RecalibratedRegressor",
    }
    functions = {
        "export_onnx",
        "export_sql",
        "export_table",
        "find_miscalibrated_subgroups",
        "power_of_test",
        "required_sample_size",
        "sample_size_for_precision",
    }
    all_names = {*hypothesis_tests.__all__, *recalibration.__all__}
    assert covered | others | functions == all_names - of_forecasts


@in_turn(MEASURES, 0)
def test_order_of_samples_does_not_matter(measure, n_classes):
    label, proba = problem(n_classes)
    expected, weight = weighted_reference(measure, n_classes)
    order = np.random.default_rng(2).permutation(len(label))
    assert_same(measure(label[order], proba[order]), reference(measure, n_classes))
    assert_same(measure(label[order], proba[order], sample_weight=weight[order]), expected)


@in_turn(DOORS, 0)
def test_names_of_classes_do_not_matter(measure, n_classes):
    label, proba = problem(n_classes)
    names = np.array(["a", "b", "c", "d"])[:n_classes]
    labels = names if n_classes == 2 else None  # one column needs to know which is its event
    assert_same(measure(names[label], proba, labels=labels), reference(measure, n_classes), 0)
    if n_classes == 2:
        for y in (names[label], names[label].astype(object), pd.Categorical(names[label])):
            for column in (proba, proba[:, None]):
                with pytest.raises(ValueError, match="pos_label is not specified"):
                    measure(y, column)


@all_doors
def test_a_column_is_not_named_after_the_other_class(measure):
    label, proba = problem(2)
    names = np.array(["a", "b"])
    for name in ("a", "p_a", "P(a)", "a_proba", "predict_proba_a"):
        for column in (pd.Series(proba, name=name), pd.DataFrame({name: proba})):
            with pytest.raises(ValueError, match="must hold the probability of 'b'; found"):
                measure(names[label], column, labels=names)
    for name in ("b", "proba_b", "model_a", 0):  # a whole number is the position of a column
        column = pd.Series(proba, name=name)
        assert_same(measure(names[label], column, labels=names), reference(measure, 2), 0)


@in_turn(DOORS, 0)
def test_numbers_of_any_kind_are_names_of_classes(measure, n_classes):
    label, proba = problem(n_classes)
    kinds = [-5, -1], [0.0, 1.0]
    for names in kinds if n_classes == 2 else ([1, 2, 3, 4], [0, 10, 20, 1000]):
        y = np.array(names)[label]
        assert_same(measure(y, proba), reference(measure, n_classes), 0)


@all_doors
def test_truth_values_are_labels(measure):
    label, proba = problem(2)
    assert_same(measure(label == 1, proba), reference(measure, 2), 0)
    assert_same(measure(np.where(label == 1, 1, -1), proba), reference(measure, 2), 0)


@in_turn(DOORS, 1)
def test_labels_give_the_order_of_the_columns(measure, n_classes):
    label, proba = problem(n_classes)
    matrix = two_columns(proba) if n_classes == 2 else proba
    names = np.array(["d", "a", "c", "b"][:n_classes])
    actual = measure(names[label], matrix, labels=names)
    assert_same(actual, reference(measure, n_classes), column_tolerance(measure))


@in_turn(DOORS, 0)
def test_pandas_with_any_index(measure, n_classes):
    label, proba = problem(n_classes)
    index = np.random.default_rng(0).permutation(len(label)) + 100
    names = np.array(["a", "b", "c", "d"])[label]
    frame = pd.DataFrame(two_columns(proba) if n_classes == 2 else proba, index=index)
    frame = frame.add_prefix("p")
    of_two = (pd.Series(label, index=index), pd.Series(names, index=index, dtype="category"))
    of_four = (
        pd.Series(names, index=index),
        pd.Series(names, index=index, dtype=object),
        pd.Series(label, index=index, dtype="Int64"),
    )
    for series in of_two if n_classes == 2 else of_four:
        weight = pd.Series(np.ones(len(label)), index=index[::-1])
        assert_same(measure(series, frame, sample_weight=weight), reference(measure, n_classes))
    if n_classes == 2:
        assert_same(measure(label, pd.Series(proba, index=index)), reference(measure, 2), 0)


@in_turn(DOORS, 1)
def test_polars(measure, n_classes):
    label, proba = problem(n_classes)
    names = pl.Series(np.array(["a", "b", "c", "d"])[label].tolist())
    frame = pl.DataFrame(two_columns(proba) if n_classes == 2 else proba)
    assert_same(measure(names, frame), reference(measure, n_classes), column_tolerance(measure))
    if n_classes == 2:
        assert_same(measure(pl.Series(label), pl.Series(proba)), reference(measure, 2), 0)


@in_turn(DOORS, 0)
def test_lists_and_layouts(measure, n_classes):
    label, proba = problem(n_classes)
    expected = reference(measure, n_classes)
    assert_same(measure(label.tolist(), proba.tolist()), expected, 0)
    assert_same(measure(label, np.asfortranarray(proba)), expected, 0)
    strided = np.repeat(proba, 2, axis=0)[::2]
    assert_same(measure(np.repeat(label, 2)[::2], strided), expected, 0)


@in_turn(MEASURES, 1)
def test_what_is_passed_stays_as_it_is(measure, n_classes):
    label, proba = problem(n_classes)
    weight = np.random.default_rng(1).random(len(label))
    for array in (label, proba, weight):
        array.flags.writeable = False
    measure(label, proba, sample_weight=weight)


@in_turn(DOORS, 0)
def test_other_precisions_are_computed_in_double(measure, n_classes):
    label, proba = problem(n_classes)
    for dtype in (np.float32, np.float16 if n_classes == 2 else np.longdouble):
        lower = proba.astype(dtype)
        rounded = lower.astype(np.float64)
        if n_classes > 2:  # what single precision does to the sums of rows is left as it is
            total = rounded.sum(axis=1, keepdims=True)
            rounded = np.where(np.abs(total - 1) > 1e-5, rounded / total, rounded)
        expected = measure(label, rounded)
        assert_same(measure(label, lower), expected)
        if dtype is np.float32:  # once it has been single precision
            assert_same(measure(label, lower.astype(np.float64)), expected)


@in_turn(DOORS, 1)
def test_columns_named_after_the_classes_must_be_in_their_order(measure, n_classes):
    label, proba = problem(n_classes)
    names = np.array(["a", "b", "c", "d"][:n_classes])
    matrix = two_columns(proba) if n_classes == 2 else proba
    frame = pd.DataFrame(matrix, columns=names)
    assert_same(
        measure(names[label], frame), reference(measure, n_classes), column_tolerance(measure)
    )
    mixed = frame[names[::-1]]
    for container in (mixed, pl.DataFrame(mixed)):
        with pytest.raises(ValueError, match=r"columns of .* must be in the order of the classes"):
            measure(names[label], container)
    measure(names[label], mixed, labels=list(mixed.columns))


@all_doors
def test_one_column_and_two_are_the_same(measure):
    label, proba = problem(2)
    assert_same(
        measure(label, two_columns(proba)), reference(measure, 2), column_tolerance(measure)
    )
    assert_same(measure(label, proba[:, None]), reference(measure, 2), 0)


@in_turn(MEASURES, 0)
def test_equal_weights_are_no_weights(measure, n_classes):
    label, proba = problem(n_classes)
    weight = [3] * len(label)
    assert_same(measure(label, proba, sample_weight=weight), reference(measure, n_classes))


@in_turn(MEASURES, 0)
def test_scale_of_weights_does_not_matter(measure, n_classes):
    label, proba = problem(n_classes)
    expected, weight = weighted_reference(measure, n_classes)
    scale = 1e-6 if n_classes == 2 else 1e9
    assert_same(measure(label, proba, sample_weight=scale * weight), expected)
    extreme = np.where(weight > 0.5, 1e300, 1e-300)
    used = weight > 0.5
    assert_same(
        measure(label, proba, sample_weight=extreme, labels=range(n_classes)),
        measure(label[used], proba[used], labels=range(n_classes)),
    )


@in_turn(MEASURES, 1)
def test_weight_zero_is_removal(measure, n_classes):
    label, proba = problem(n_classes)
    weight = np.random.default_rng(1).integers(0, 3, size=len(label)) / 3
    weight[:n_classes] = 1 / 3
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
def test_certain_and_right_predictions_are_calibrated_which_is_a_float(metric):
    for n_classes in (2, 4):
        label = np.arange(8) % n_classes
        proba = np.eye(n_classes)[label]
        assert metric(label, proba) == 0
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
    "nan": ([0, 1, 1], [0.1, np.nan, 0.5], r"must be finite; found nan .* row 1.*all arguments"),
    "none among numbers": ([0, 1, 1], [0.1, None, 0.5], r"row 1, .*Leave out .* all arguments"),
    "log-probabilities": ([0, 1, 1], [-0.1, -0.2, -0.3], r"pass np\.exp of them"),
    "an ignored label": ([0, -100, 1], [0.1, 0.2, 0.5], r"ignore_index.* leave out .*y.* == -100"),
    "an ignored label of 255": ([0, 255, 1], [0.1, 0.2, 0.5], r"leave out .*y.* == 255"),
    "infinity": ([0, 1, 1], [0.1, 0.5, np.inf], r"must be finite; found inf .* row 2"),
    "above one": ([0, 1, 1], [0.1, 1.5, 0.5], r"lie in \[0, 1\]; found 1.5 in row 1"),
    "a rounding error above one": ([0, 1, 1], [0.1, 1.0000001, 0.5], r"lie in \[0, 1\]"),
    "negative": ([0, 1, 1], [0.1, -0.5, 0.5], r"lie in \[0, 1\]; found -0.5 in row 1"),
    "rows": ([0, 1], [[0.5, 0.5], [0.3, 0.3]], r"sum to 1 .* found a sum of 0.6 in row 1"),
    "empty": ([], [], "at least one prediction; found 0 sample"),
    "lengths": ([0, 1, 1], [0.1, 0.5], "same length; found .* 3.* 2"),
    "pixels": ([0, 1], np.full((2, 2, 3), 0.5), r"one or two dim.* np\.moveaxis\(p, 1, -1\)"),
    "labels of pixels": (
        np.ones((2, 3, 3)).tolist(),
        np.full((2, 2), 0.5),
        r"labels\.reshape\(-1\)",
    ),
    "labels of tokens": ([[0, 2], [1, 1]], np.full((2, 2), 0.5), r"labels\.reshape\(-1\)"),
    "ragged": ([0, 1], [[0.5, 0.5], [1.0]], "must be an array of one or two dimensions"),
    "complex": ([0, 1], np.array([0.5, 0.5j]), "must be an array .*Complex data not supported$"),
    "masked": ([0, 1], np.ma.array([0.5, 0.6], mask=[False, True]), "must not have masked values"),
    "masked labels": (np.ma.array([0, 1], mask=[0, 1]), [0.5, 0.6], "must not have masked values"),
    "dates": (np.array(["2020-01-01"] * 2, dtype="M8[D]"), [0.5, 0.6], "found type datetime64"),
    "one-hot labels": ([[0, 1], [1, 0]], [[0.5, 0.5], [0.5, 0.5]], "must be 1-D"),
    "continuous labels": ([0.5, 1.5], [0.5, 0.6], "fraction 0.5 in row 0.*soft label .* weight s"),
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
    "too many labels": ([0, 1, 2], [0.5, 0.6, 0.7], "holds 3 distinct .*whether the answer was"),
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


@pytest.mark.parametrize("name", [name for name in METRICS if "average" in METRICS[name].options])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_average_none_gives_an_array_whatever_the_classes(name, n_classes):
    y, proba = random_problem(np.random.default_rng(3), 8, n_classes)
    metric = METRICS[name].function
    values = metric(y, proba, average=None)
    assert isinstance(values, np.ndarray)
    assert values.ndim == 1
    assert values.tolist() == [metric(y, proba)]  # of the predicted class, or the only one
    each = metric(y, proba, multi_class="classwise", average=None)
    assert each.shape == (1 if n_classes == 2 else 3,)
