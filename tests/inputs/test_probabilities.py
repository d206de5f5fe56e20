"""Rows that do not sum to 1, ties in single precision, objects and tables as probabilities."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skcalib._data import check_predictions
from skcalib._inputs.probabilities import check_probabilities
from skcalib.forecasts import GaussianForecast
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.lenses import Multilabel, class_groups
from skcalib.metrics import expected_calibration_error, smooth_calibration_error
from skcalib.recalibration import (
    AutoRecalibrator,
    IsotonicRecalibrator,
    SigmoidRecalibrator,
    TemperatureRecalibrator,
)
from skcalib.report import calibration_report
from skcalib.streaming import CalibrationState

both_kinds = pytest.mark.parametrize("n_classes", [2, 3, 10])


def rows(n_classes, total=1.0, n=20):
    proba = np.random.default_rng(0).dirichlet(np.full(n_classes, 2.0), size=n)
    return proba / proba.sum(axis=1, keepdims=True) * np.resize([1.0, total], (n, 1))


TOLERANCES = {
    "double": (np.float64, 1e-5),
    "long double": (np.longdouble, 1e-5),
    "single": (np.float32, 3.5e-4),
    "half": (np.float16, 5e-3),
    "objects": (object, 1e-5),
}
all_precisions = pytest.mark.parametrize(("dtype", "allowed"), TOLERANCES.values(), ids=TOLERANCES)


@both_kinds
@all_precisions
def test_how_far_the_sum_of_a_row_may_be_from_1(dtype, allowed, n_classes):
    noise = 5e-4 if dtype is np.float16 else 2e-7  # of the rounding to the type
    for sign in (-1, 1):
        check_probabilities(rows(n_classes, 1 + sign * (allowed - noise)).astype(dtype))
        with pytest.raises(ValueError, match=rf"within {allowed:g}\); found a sum of .* in row"):
            check_probabilities(rows(n_classes, 1 + sign * (allowed + 2 * noise)).astype(dtype))


@both_kinds
def test_lists_are_double_precision(n_classes):
    with pytest.raises(ValueError, match="must sum to 1"):
        check_probabilities(rows(n_classes, 1 + 3e-4).tolist())
    proba = rows(n_classes, 1 + 9e-6)
    np.testing.assert_array_equal(check_probabilities(proba.tolist()), proba)


@both_kinds
def test_rows_within_the_rounding_of_single_precision_are_kept_as_they_are(n_classes):
    proba = rows(n_classes).astype(np.float32)
    for values in (proba, proba.astype(np.float64)):
        np.testing.assert_array_equal(check_probabilities(values), proba.astype(np.float64))


@both_kinds
@pytest.mark.parametrize(("dtype", "miss"), [(np.float32, 3e-4), (np.float16, 4e-3)])
def test_other_rows_are_divided_by_their_sums(dtype, miss, n_classes):
    proba = rows(n_classes, 1 + miss).astype(dtype)
    checked = check_probabilities(proba)
    exact = proba.astype(np.float64)
    total = exact.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(checked[1::2], (exact / total)[1::2], rtol=1e-15)
    assert np.abs(checked.sum(axis=1) - 1).max() <= 1e-5
    for row in range(4):  # alone as together
        np.testing.assert_array_equal(check_probabilities(proba[row : row + 1])[0], checked[row])
    np.testing.assert_array_equal(check_probabilities(checked), checked)  # once is enough


def forest_votes(n=3000, n_classes=10, n_trees=100):
    """Votes k/100 averaged in single precision, one tree after the other."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(n_classes, 0.3), size=n).cumsum(axis=1)
    votes = np.zeros((n, n_classes), dtype=np.float32)
    share = np.float32(1 / n_trees)
    for _ in range(n_trees):
        winner = (rng.random((n, 1)) > truth).sum(axis=1).clip(max=n_classes - 1)
        votes[np.arange(n), winner] += share
    return votes, winner


def test_ties_of_single_precision_are_kept():
    proba, label = forest_votes()
    totals = proba.astype(np.float64).sum(axis=1)
    divided = (proba / totals[:, None]).max(axis=1)
    n_tied = len(np.unique(proba.max(axis=1)))
    assert len(np.unique(divided)) > 5 * n_tied  # what dividing would do
    for values in (proba, proba.astype(np.float64)):
        predictions = check_predictions(label, values)
        assert len(np.unique(predictions.confidence().proba)) == n_tied
        for k, (_, problem) in enumerate(predictions.iter_one_vs_rest()):
            assert len(np.unique(problem.proba)) == len(np.unique(proba[:, k]))
    recalibrator = IsotonicRecalibrator().fit(proba, label)
    alike = np.unique(np.column_stack([proba, recalibrator.predict_proba(proba)]), axis=0)
    assert len(alike) == len(np.unique(proba, axis=0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_column_and_two_give_the_same_number(dtype):
    proba = rows(2, n=200).astype(dtype)
    label = np.arange(200) % 3 % 2
    for metric in (smooth_calibration_error, expected_calibration_error):
        assert metric(label, proba) == metric(label, proba[:, 1])
        assert metric(label, proba, pos_label=0) == metric(label, proba[:, 0], pos_label=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_what_a_lens_returns_is_taken_by_metrics(dtype):
    proba = rows(10, 1 + 3e-4).astype(dtype)
    label = np.arange(20) % 10
    group, of_group = class_groups(label, proba, [range(3), range(3, 6), range(6, 10)])
    smooth_calibration_error(group, of_group)


def test_objects_that_are_floats():
    proba = rows(3, 1 + 2e-4, n=4)
    y = [0, 1, 2, 1]
    single = np.array([[np.float32(p) for p in row] for row in proba], dtype=object)
    expected = smooth_calibration_error(y, proba.astype(np.float32))
    assert smooth_calibration_error(y, single) == expected
    mixed = single.copy()
    mixed[0] = [0.5, 0.5, 0]
    with pytest.raises(ValueError, match=r"within 1e-05\)"):  # some are Python floats
        smooth_calibration_error(y, mixed)
    mixed[:] = [1.0, np.float64(0), 0]
    assert smooth_calibration_error(y, mixed) == smooth_calibration_error(y, np.eye(3)[[0] * 4])
    for missing in (None, float("nan"), pd.NA, np.datetime64("NaT", "s")):
        mixed[2, 2] = missing
        with pytest.raises(ValueError, match=r"\(None, NaN or infinity\) in row 2, and 1 such"):
            smooth_calibration_error(y, mixed)
    for value in ("0.5", True):
        mixed[2, 2] = value
        with pytest.raises(ValueError, match=f"found {value!r} of type object"):
            smooth_calibration_error(y, mixed)


def test_a_missing_feature_may_be_imputed_but_no_prediction():
    p, y = np.array([0.1, 0.6, 0.4]), np.array([0, 1, 0])
    with pytest.raises(ValueError, match=r"given must be finite; .*only features may be imputed"):
        CalibrationTest().fit(p, y, given=[0.1, np.nan, 2.0])
    with pytest.raises(ValueError, match=r"X must be finite; .*is no 0\.$"):
        CalibrationTest().fit([0.1, np.nan, 0.4], y)
    with pytest.raises(ValueError, match=r"mean must be finite; .*Leave out the sample, in all"):
        calibration_report([0.1, 0.2, 0.3], (np.array([0.1, np.nan, 0.3]), np.ones(3)))


REMEDIES_FOR_LABELS = {
    "percentages": ([[30.0, 5.0], [90.0, 7.0], [20.0, 60.0]], r"Divide percentages by 100\.$"),
    "log-probabilities": ([[0.5, -0.2], [0.4, -0.3], [0.1, -2.0]], r"\[:, 1\] .*pass np\.exp"),
    "logits": ([[-2.0, 0.2], [3.0, 0.3], [0.1, 0.4]], r"\[:, 0\] .*-2.* row 0.* expit"),
}


@pytest.mark.parametrize(("proba", "remedy"), REMEDIES_FOR_LABELS.values(), ids=REMEDIES_FOR_LABELS)
def test_remedies_for_labels_that_do_not_exclude_each_other(proba, remedy):
    with pytest.raises(ValueError, match=remedy):
        expected_calibration_error(np.eye(3)[:, :2], np.array(proba), multi_class=Multilabel())


@pytest.mark.parametrize("mark", [np.nan, -1])
def test_a_missing_label_among_several_is_shown(mark):
    y = np.array([[0, 1], [1, 0], [mark, 1]])
    message = rf"found {mark}.*\. Where labels are missing, pass columns by themselves"
    with pytest.raises(ValueError, match=message):
        expected_calibration_error(y, np.full((3, 2), 0.5), multi_class=Multilabel())


class Table:
    """Like pyarrow's tables: `columns` are the columns themselves."""

    def __init__(self, values, column_names):
        self.values, self.column_names, self.shape = values, column_names, values.shape
        self.columns = list(values.T)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)

    def __len__(self):
        return len(self.values)


def test_pyarrow_tables_are_data_frames():
    proba, y = rows(2, n=4), [0, 1, 1, 0]
    tables = [Table]
    try:
        import pyarrow

        tables.append(lambda values, names: pyarrow.table(dict(zip(names, values.T, strict=True))))
    except ImportError:
        pass
    expected = smooth_calibration_error(y, proba)
    for table in tables:
        assert smooth_calibration_error(y, table(proba, ["0", "1"])) == expected
        assert smooth_calibration_error(y, table(proba, ["p", "q"])) == expected
        assert smooth_calibration_error(y, table(proba[:, 1:], ["p"])) == expected
        with pytest.raises(ValueError, match="must be in the order of the classes"):
            smooth_calibration_error(y, table(proba, ["1", "0"]))
        fitted = TemperatureRecalibrator().fit(table(proba, ["0", "1"]), y)
        assert fitted.n_features_in_ == 2


def test_columns_of_any_kind_are_no_names():
    frame = pd.DataFrame(rows(2, n=4), columns=pd.MultiIndex.from_tuples([("p", 0), ("p", 1)]))
    smooth_calibration_error([0, 1, 1, 0], frame)


def test_the_row_that_is_named_is_the_first_wrong_one():
    with pytest.raises(ValueError, match=r"found 1\.5 in row 2"):
        check_probabilities([0.0, 0.5, 1.5])
    with pytest.raises(ValueError, match=r"found a sum of 1\.3 in row 1"):
        check_probabilities([[0.2, 0.3, 0.5], [0.4, 0.4, 0.5]])


def test_a_single_sample_may_be_swapped_too():
    with pytest.raises(ValueError, match="y_true and y_proba look swapped"):
        smooth_calibration_error([0.3], [1])


def test_forecasts_are_pointed_to_thresholds():
    y, mean, std = np.array([0, 1, 1]), np.array([0.2, 3.0, 1.0]), np.ones(3)
    for forecast in ((mean, std), stats.norm(mean, std), GaussianForecast(mean, std)):
        with pytest.raises(ValueError, match=r"found a forecast of a number.*sf\(t\)"):
            smooth_calibration_error(y, forecast)
    rows = (np.array([0.2, 0.8]), np.array([0.5, 0.5]))  # of two samples
    assert smooth_calibration_error([0, 1], rows) == smooth_calibration_error([0, 1], [0.8, 0.5])


FEATURES = np.random.default_rng(1).normal(size=(40, 3))
LABEL = np.arange(40) % 2
OF_FEATURES = r"{0} takes the output of predict_proba.*, not features, which {1} takes\."


@pytest.mark.parametrize("scale", [1, 0.01], ids=["any", "in the unit interval"])
@pytest.mark.parametrize("kind", [SigmoidRecalibrator, TemperatureRecalibrator, AutoRecalibrator])
def test_features_for_a_recalibrator(kind, scale):
    features = scale * FEATURES + (0.5 if scale < 1 else 0)
    message = OF_FEATURES.format(
        kind.__name__, rf"RecalibratedClassifier\(model, {kind.__name__}\(\)\)"
    )
    with pytest.raises(ValueError, match=message):
        kind().fit(features, LABEL)
    with pytest.raises(ValueError, match=message):
        kind().fit(np.linspace(0.1, 0.9, 40), LABEL).predict_proba(features)


def test_features_for_a_test():
    with pytest.raises(ValueError, match=r"CalibrationTest takes .*, not features\. Map logits"):
        CalibrationTest().fit(FEATURES, LABEL)


def test_percentages():
    proba = np.random.default_rng(0).uniform(size=40)
    for one in (100 * proba, 100 * np.column_stack([1 - proba, proba])):
        with pytest.raises(ValueError, match=r"in row 0\. Divide percentages by 100\.$"):
            smooth_calibration_error(LABEL, one)
    # these may be either
    with pytest.raises(ValueError, match=r"Divide percentages by 100\. Map logits to"):
        smooth_calibration_error(LABEL, 5 * proba)
    with pytest.raises(
        ValueError,
        match=r"row 0\. Clip rounding errors of more than 1e-14 with np.clip\(..., 0, 1\)\.$",
    ):
        smooth_calibration_error([0, 1], [1 + 1e-9, 0.5])


def test_point_forecasts():
    outcome = np.random.default_rng(0).normal(size=40)
    for call in (smooth_calibration_error, lambda y, X: CalibrationTest().fit(X, y)):
        with pytest.raises(ValueError, match=r"row \d+\. Forecasts of a number .*\(mean, std\)"):
            call(outcome, outcome + 1)


BEYOND = {
    "double": (np.float64, [1 + 2**-52, -1e-17, 1 + 9e-15, -9e-15]),
    "single": (np.float32, [1 + 2**-23, -1e-17, 1 + 4e-7, -4e-7]),
    "half": (np.float16, [1 + 2**-10, -1e-7, 1 + 2**-9, -3e-3]),
}
USES = {
    "metric": smooth_calibration_error,
    "test": lambda y, p: CalibrationTest(n_resamples=9, random_state=0).fit(p, y).p_value_,
    "recalibrator": lambda y, p: SigmoidRecalibrator().fit(p, y).predict_proba(p),
    "state": lambda y, p: (
        CalibrationState([0, 1]).update(y, p).evaluate("smooth_calibration_error")
    ),
    "counts": lambda y, p: CalibrationState.from_counts(y, p, [1] * len(y)).to_arrow().to_pylist(),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(("dtype", "values"), BEYOND.values(), ids=BEYOND)
def test_rounding_beyond_0_and_1(use, dtype, values):
    proba = np.concatenate([values, np.linspace(0.1, 0.9, 16)]).astype(dtype)
    label = np.resize([1, 0, 1, 0, 0], 20)
    given = proba.copy()
    found = USES[use](label, proba)
    np.testing.assert_equal(found, USES[use](label, np.clip(proba, 0, 1)))
    np.testing.assert_array_equal(proba, given)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("value", [1.0001, -1e-6, 1 + 1e-13, -1e-13])
def test_more_than_rounding_is_refused(use, value):
    with pytest.raises(ValueError, match=r"row 2\. Clip rounding errors of more than 1e-14"):
        USES[use](np.resize([0, 1], 9), np.append([1 + 2**-52, -1e-17, value], np.full(6, 0.5)))


def test_rounding_beyond_0_and_1_of_more_classes():
    proba = np.array([[1 + 2**-52, -1e-17, 0.0], [0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
    checked = check_probabilities(proba)
    np.testing.assert_array_equal(checked, np.clip(proba, 0, 1))
    assert (checked.min(), checked.max()) == (0, 1)


def test_whole_numbers_beside_counts_may_be_forecasts_of_a_number():
    counts, predicted = np.array([3, 5, 2, 8, 1, 0, 4]), np.array([3, 4, 2, 7, 1, 1, 5])
    with pytest.raises(ValueError, match="Forecasts of a number are passed as"):
        calibration_report(counts, predicted)
    with pytest.raises(ValueError, match=r"with \.astype\(float\)\.$"):  # labels of three classes
        smooth_calibration_error([0, 1, 2, 1], [[0, 1, 0]] * 4)
