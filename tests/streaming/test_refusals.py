import io
import pickle
import sys
from datetime import date
from functools import partial

import numpy as np
import pytest
from problems import classes_on_grid

from skcalib import metrics
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.streaming import CalibrationState

pyarrow = pytest.importorskip("pyarrow")

GOOD = {"y_true": [0, 1, 1], "y_proba": [0.1, 0.5, 0.9]}
COUNTS = GOOD | {"count": [1, 1, 1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_proba": [0.1, np.nan, 0.9]}, "y_proba must be finite; found nan"),
        ({"y_proba": [0.1, 1.5, 0.9]}, r"y_proba must lie in \[0, 1\]; found 1.5"),
        ({"y_true": [0, 1, 2]}, r"y_true must hold only the classes \[0, 1\]; found \[2\]"),
        ({"y_true": ["a", "b", "b"]}, "must hold only the classes"),
        ({"y_true": [0, 1]}, "must have the same length"),
        ({"y_proba": np.full((3, 3), 1 / 3)}, "labels must name one class for each column"),
        ({"y_true": [], "y_proba": [0.1]}, "at least one|same length"),
        ({"y_true": None, "y_proba": None}, "must hold one class label for each row"),
        ({"y_true": np.array(1), "y_proba": np.array(0.1)}, "must be a list or an array"),
        ({"sample_weight": [1, -1, 1]}, "sample_weight must not be negative"),
        ({"sample_weight": [0, 0, 0]}, "sample_weight must have a positive"),
        ({"sample_weight": [1, 1e140, 1]}, "sample_weight must lie between 1e-130 and 1e.130"),
        ({"sample_weight": [1e-170] * 3}, "sample_weight must lie between.*found 1e-170"),
        ({"by": ["a"] * 3}, "by must be given in all updates or in none"),
        ({"by": np.array([True, 1, "a"], dtype=object)}, "must not hold both True and 1"),
    ],
)
def test_refused_updates_change_nothing(change, message):
    state = CalibrationState().update(**GOOD)
    before = pickle.dumps(state)
    with pytest.raises(ValueError, match=message):
        state.update(**GOOD | change)
    assert pickle.dumps(state) == before


def test_empty_batches_change_nothing():
    state = CalibrationState().update([], []).update(np.empty(0, int), np.empty(0), [])
    assert (state.n_samples, state.classes) == (0, None)
    state.update(**GOOD)
    before = pickle.dumps(state)
    assert state.update([], [], by=[]) is state
    assert pickle.dumps(state) == before
    assert CalibrationState.from_counts([], [], []).n_samples == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": [1, -1, 1]}, "count must hold the number of samples"),
        ({"count": [1, 0.5, 1]}, "count must hold the number of samples"),
        ({"count": [1, np.inf, 1]}, "count must be finite"),
        ({"count": [0, 0, 0]}, "count must hold the number of samples"),
        ({"count": ["a", "b", "c"]}, "count must hold numbers"),
        ({"count": [2**53, 1, 1]}, "count must have a sum below"),
        ({"count": [1, 1]}, "count must be 1-D, with one number for each row"),
        ({"y_true": iter([0, 1, 1])}, "y_true must be a list or an array"),
        ({"weight": [1, 1, 1]}, "found weight without squared_weight"),
        ({"squared_weight": [1, 1, 1]}, "found squared_weight without weight"),
        ({"weight": ["a"] * 3, "squared_weight": [1] * 3}, "weight must hold numbers"),
        ({"weight": [1, 1, 1], "squared_weight": [1]}, "squared_weight must be 1-D, with one sum"),
        ({"weight": [1, 1, 1], "squared_weight": [1, 1, 2]}, "squared_weight must be the sum"),
        ({"weight": [1, 1, 0], "squared_weight": [1, 1, 0]}, "weight must lie.*found 0"),
        ({"weight": [1, 1, np.nan], "squared_weight": [1, 1, 1]}, "weight must lie.*found nan"),
        ({"weight": [1, 1, 1], "squared_weight": [1, 1, np.nan]}, "squared_weight must be the sum"),
        ({"weight": [1e140] * 3, "squared_weight": [1e280] * 3}, "weight must lie between"),
        ({"resolution": -0.1}, "'resolution' parameter of CalibrationState.from_counts"),
        ({"resolution": np.nan}, "'resolution' parameter of CalibrationState.from_counts"),
        ({"resolution": "1e-4"}, "'resolution' parameter of CalibrationState.from_counts"),
        ({"bandwidth": "median"}, "'bandwidth' parameter of CalibrationState.__init__"),
    ],
)
def test_refused_counts(change, message):
    with pytest.raises(ValueError, match=message):
        CalibrationState.from_counts(**COUNTS | change)


BY = {"sex": ["f", "m", "m"]}


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ({"stage": ["f", "i", "i"]}, r"the same columns.*found \['sex'\] and \['stage'\]"),
        (["f", "m", "m"], r"found \['sex'\] and \['by'\].*dictionary of columns by name"),
        (BY | {"age": [1, 1, 2]}, r"found \['sex'\] and \['sex', 'age'\]"),
    ],
)
def test_subgroups_of_other_columns_are_refused(by, message):
    state = CalibrationState().update(**GOOD, by=BY)
    merged = CalibrationState().merge(CalibrationState.from_arrow(state.to_arrow()))
    other = CalibrationState().update(**GOOD, by=by)
    for change in (lambda: state.update(**GOOD, by=by), lambda: merged.merge(other)):
        with pytest.raises(ValueError, match=message):
            change()


def test_true_is_not_1_in_later_updates():
    whole, truth = ({"a": a, "b": ["x"] * 3} for a in ([1, 0, 1], [True, False, True]))
    state, other = (CalibrationState().update(**GOOD, by=by) for by in (whole, truth))
    for change in (lambda: state.update(**GOOD, by=truth), lambda: state.merge(other)):
        with pytest.raises(ValueError, match="both True and 1"):
            change()


MANY = CalibrationState.from_counts([0, 1], [0.1, 0.5], [2**52 - 1, 2**52])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (MANY, "must hold fewer than 2.53 samples together; found 9,007,199,254,740,994"),
        (CalibrationState(decimals=5), "the same decimals; found 4 and 5"),
        (CalibrationState(random_state=1), "the same random_state"),
        (CalibrationState([3, 4]), r"the same classes; found \[0, 1\] and \[3, 4\]"),
        (CalibrationState().update([2, 3], [0.1, 0.2]), "the same classes"),
        (CalibrationState().update([0, 1], [0.1, 0.2], by=["a", "b"]), "both have subgroups"),
    ],
)
def test_refused_merges_change_nothing(other, message):
    state = CalibrationState().update(**GOOD)
    before = pickle.dumps(state)
    with pytest.raises(ValueError, match=message):
        state.merge(other)
    assert pickle.dumps(state) == before
    with pytest.raises(TypeError, match="other must be a CalibrationState"):
        state.merge(GOOD)


def with_metadata(table, change):
    """The table with changed metadata of the state."""
    key = b"skcalib.CalibrationState"
    text = change(table.schema.metadata[key])
    return table.replace_schema_metadata(table.schema.metadata | {key: text})


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda table: table.slice(1), r"found 2 row\(s\) with another digest"),
        (lambda table: table[::-1], r"found 3 row\(s\)"),
        (lambda table: pyarrow.concat_tables([table, table]), r"found 6 row\(s\)"),
        (lambda table: table.drop_columns(["count"]), "found the columns"),
        (lambda table: table.replace_schema_metadata(), "found Table without the metadata"),
        (lambda table: with_metadata(table, lambda text: text + b" "), "found 3 row"),
        (lambda _: None, "found NoneType without the metadata"),
    ],
)
def test_changed_tables_are_refused(change, finding):
    table = CalibrationState().update(**GOOD).to_arrow()
    with pytest.raises(ValueError, match=f"unchanged; {finding}.*merge states, not their tables"):
        CalibrationState.from_arrow(change(table))


def test_tables_with_a_changed_cell_are_refused():
    table = CalibrationState().update(**GOOD, by=["a", "a", "b"]).to_arrow()
    for k, name in enumerate(table.column_names):
        values = table[name].to_pylist()
        values[-1] = (
            "c"
            if isinstance(values[-1], str)
            else not values[-1]
            if name == "event"
            else values[-1] + 1
        )
        changed = pyarrow.array(values, table[name].type)
        with pytest.raises(ValueError, match="another digest"):
            CalibrationState.from_arrow(table.set_column(k, name, changed))


def test_files_with_a_flipped_bit_are_refused_or_hold_the_same():
    rng, parquet = np.random.default_rng(0), pytest.importorskip("pyarrow.parquet")
    label, proba, weight = rng.integers(0, 2, 50), rng.random(50), rng.random(50) + 0.1
    table = CalibrationState().update(label, proba, weight, by=list("aabbc") * 10).to_arrow()
    file, n_refused = io.BytesIO(), 0
    parquet.write_table(table, file, compression="none")
    for position in rng.choice(8 * len(file.getvalue()), 60, replace=False):
        flipped = bytearray(file.getvalue())
        flipped[position // 8] ^= 1 << position % 8
        try:
            read = parquet.read_table(io.BytesIO(flipped))
        except (OSError, pyarrow.ArrowException):
            continue
        try:
            assert CalibrationState.from_arrow(read).to_arrow().equals(table, check_metadata=True)
        except ValueError as error:
            n_refused += "unchanged; found" in str(error)
    # Others fall on what Parquet checks or does not use: how many, depends on its version.
    assert n_refused >= 10


def test_tables_of_another_version_are_refused(monkeypatch):
    monkeypatch.setattr("skcalib.streaming._arrow._FORMAT_VERSION", 3)
    table = CalibrationState().update(**GOOD).to_arrow()
    monkeypatch.undo()
    with pytest.raises(ValueError, match="version must be 2, found 3"):
        CalibrationState.from_arrow(table)


@pytest.mark.parametrize(
    ("state", "options", "message"),
    [
        (CalibrationState().update([0, 1], [0.12345, 0.3]), {}, "on its grid.*numpy.round"),
        (CalibrationState().update([0, 1], [1.004e-5, 0.3]), {}, "on its grid.*up to 4e-08"),
        (CalibrationState().update([0, 1], [1e-30, 0.3]), {}, "on its grid.*up to 1e-13"),
        (CalibrationState().update([0, 1], [0.1, 0.3], [1, 2]), {}, "some of 1 or less.*2 or more"),
        (  # at one point, and hardly apart
            CalibrationState().update([0, 1, 1], [0.1, 0.3, 0.3], [1, 1, 1 + 2e-9]),
            {},
            r"some of 1 or less and some of 1\.000000002 or more",
        ),
        (
            CalibrationState.from_arrow(
                CalibrationState().update([0, 1], [0.1, 0.1], [2, 7]).to_arrow()
            ),
            {},
            "some of 2 or less and some of 7 or more",
        ),
        (
            CalibrationState()
            .update(**GOOD)
            .merge(CalibrationState().update(**GOOD, sample_weight=[2, 2, 2])),
            {},
            "need equal weights.*found some of 1 or less and some of 2 or more",
        ),
        (
            CalibrationState.from_counts(
                **GOOD, count=[2] * 3, weight=[3] * 3, squared_weight=[5] * 3
            ),
            {},
            "found some of 1 or less and some of 2 or more",
        ),
        (  # weights of 1, 1 and 4: their sums tell that one is at most 1, and one at least 3
            CalibrationState.from_counts(
                **GOOD, count=[3] * 3, weight=[6] * 3, squared_weight=[18] * 3
            ),
            {},
            "found some of 1 or less and some of 3 or more",
        ),
        (
            CalibrationState().update(*classes_on_grid(20), np.arange(1, 21)).confidence(),
            {},
            "need equal weights",
        ),
        (CalibrationState().update(*classes_on_grid(20)), {}, "two classes"),
        (CalibrationState(), {}, "must hold samples"),
        (CalibrationState().update(**GOOD), {"y": [0, 1, 1]}, "y must be None"),
        (CalibrationState().update(**GOOD), {"sample_weight": [1, 1, 1]}, "sample_weight must be"),
        (CalibrationState().update(**GOOD), {"groups": [1, 1, 2]}, "groups must be None"),
    ],
)
def test_refused_tests(state, options, message):
    with pytest.raises(ValueError, match=message):
        CalibrationTest(n_resamples=9).fit(state, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "asymptotic"},
        {"statistic": "skce", "estimation": "linear"},
        {"statistic": "skce", "kernel": "rbf"},
        {"statistic": lambda y_true, y_proba: 0.0},
        {"statistic": "quantile_calibration_error"},
        {"statistic": "squared_kernel_calibration_error", "estimation": "block"},
        {
            "statistic": "expected_calibration_error",
            "metric_params": {"strategy": "median-variance"},
        },
    ],
)
def test_statistics_that_need_rows_are_refused(options):
    with pytest.raises(ValueError, match=r"CalibrationState|statistic"):
        CalibrationTest(n_resamples=9, **options).fit(CalibrationState().update(**GOOD))


@pytest.mark.parametrize(
    ("metric", "params", "message"),
    [
        ("bogus", {}, "metric must be one of"),
        ("calibration_slope", {}, "metric must be one of"),
        ("smooth_calibration_error", {"sample_weight": [1]}, "which the state holds"),
        ("smooth_calibration_error", {"labels": [1, 0]}, "which the state holds"),
        ("squared_kernel_calibration_error", {"estimation": "linear"}, "samples have no order"),
        ("expected_calibration_error", {"strategy": "median-variance"}, "strategy must be"),
    ],
)
def test_refused_measures(metric, params, message):
    state = CalibrationState().update(**GOOD)
    with pytest.raises(ValueError, match=message):
        state.evaluate(metric, **params)
    if params:  # fixed beforehand
        with pytest.raises(ValueError, match=message):
            state.evaluate(partial(getattr(metrics, metric), **params))


def test_refused_measures_of_several_classes():
    state = CalibrationState().update(*classes_on_grid(20))
    for params, message in [
        ({"estimation": "block"}, "samples have no order"),
        ({"bandwidth": 0.3}, "is that of the random features whose sums"),
        ({"kernel": "rbf"}, "is that of the random features whose sums"),
        ({"class_kernel": np.eye(4).tolist()}, "is that of the random features whose sums"),
        ({"method": "exact"}, "is that of the random features whose sums"),
        ({"random_state": 1}, "is that of the random features whose sums"),
    ]:
        with pytest.raises(ValueError, match=message):
            state.evaluate("squared_kernel_calibration_error", **params)
        fixed = partial(metrics.squared_kernel_calibration_error, **params)
        with pytest.raises(ValueError, match=message):
            state.evaluate(fixed)
    with pytest.raises(ValueError, match="needs the samples themselves for expected_cal"):
        state.evaluate("expected_calibration_error", multi_class="canonical")
    with pytest.raises(ValueError, match="'multi_class' parameter of smooth_calibration_error"):
        state.evaluate("smooth_calibration_error", multi_class="canonical")
    with pytest.raises(ValueError, match="more than two classes"):
        CalibrationState().update(**GOOD).confidence()


@pytest.mark.parametrize(
    ("weight", "message"), [([1, 0], "at least 2 samples"), ([1, 1e-12], "almost all weight")]
)
def test_pairs_of_several_classes_are_needed(weight, message):
    state = CalibrationState([0, 1, 2]).update([1, 2], [[0.2, 0.5, 0.3]] * 2, weight)
    with pytest.raises(ValueError, match=message):
        state.evaluate("squared_kernel_calibration_error")
    state.evaluate("squared_kernel_calibration_error", estimation="biased")


@pytest.mark.parametrize("n_samples", [0, -1, 2.0, "all"])
def test_refused_sizes_of_samples(n_samples):
    with pytest.raises(ValueError, match="of CalibrationState"):
        CalibrationState().update(**GOOD).sample(n_samples)


def test_pyarrow_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install \"skcalib\[arrow\]\""):
        CalibrationState().to_arrow()


def test_labels_that_tables_cannot_hold_are_refused():
    state = CalibrationState().update(**GOOD, by=[date(2026, 1, 1)] * 3)
    with pytest.raises(ValueError, match=r"Labels of classes and subgroups.*found datetime.date"):
        state.to_arrow()


@pytest.mark.parametrize("metric", [None, 7, b"x"])
def test_what_is_no_metric_is_refused(metric):
    with pytest.raises(ValueError, match=r"metric must be one of .*; found (None|7|b'x')"):
        CalibrationState().update(**GOOD).evaluate(metric)


def test_labels_that_cannot_be_copied_are_refused_by_name():
    with pytest.raises(ValueError, match="labels must be a list or an array; found dict_keys"):
        CalibrationState({0: "no", 1: "yes"}.keys()).update(**GOOD)
