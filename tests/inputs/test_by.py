"""Subgroups from columns of any type: their labels, order and codes."""

import datetime as dt
from decimal import Decimal
from enum import Enum

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skcalib._inputs.by import check_by

SEX = ["m", "f", "m", "f"]
AGE = ["18-30", "5-17", "5-17", "5-17"]

Site = Enum("Site", ["NORTH", "EAST"])  # members have no order


def found(by, n=4, **options):
    subgroups = check_by(by, n, **options)
    return list(subgroups.labels), subgroups.code.tolist()


@pytest.mark.parametrize(
    "by",
    [
        SEX,
        tuple(SEX),
        np.array(SEX),
        np.array(SEX, dtype=object),
        np.array(SEX)[:, None],
        pd.Series(SEX, index=[7, 7, 1, 0]),
        pd.Series(SEX, dtype="string"),
        pd.Categorical(SEX),
        pd.DataFrame({"sex": SEX}),
        pl.Series(SEX),
        pl.Series(SEX, dtype=pl.Categorical),
        pl.DataFrame({"sex": SEX}),
        {"sex": SEX},
        [np.array(SEX)],
    ],
)
def test_one_column(by):
    assert found(by) == (["f", "m"], [1, 0, 1, 0])


@pytest.mark.parametrize(
    "by",
    [
        pd.DataFrame({"sex": SEX, "age": AGE}, index=[3, 3, 1, 0]),
        pl.DataFrame({"sex": SEX, "age": AGE}),
        {"sex": np.array(SEX), "age": AGE},
        np.column_stack([SEX, AGE]),
        [SEX, AGE],
        [np.array(SEX), np.array(AGE)],
        [pd.Series(SEX), pl.Series(AGE)],
        list(zip(SEX, AGE, strict=True)),
    ],
)
def test_crossings_of_two_columns(by):
    # only those that occur, in the order of the columns, ages as people sort them
    labels = [("f", "5-17"), ("m", "5-17"), ("m", "18-30")]
    assert found(by) == (labels, [2, 0, 1, 0])


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        ([10, 9, 10, -1], [-1, 9, 10]),
        ([True, False, True, True], [False, True]),
        ([0.5, 2.0, 0.5, 1.0], [0.5, 1, 2]),
        ([1.0, np.nan, 0.0, 1.0], [0, 1, None]),
        ([1, None, 0, 1], [0, 1, None]),
        (pl.Series([1, None, 0, 1]), [0, 1, None]),
        (pd.array([1, None, 0, 1], dtype="Int64"), [0, 1, None]),
        (pd.array([True, None, False, True], dtype="boolean"), [False, True, None]),
        (["b", None, "a", np.nan], ["a", "b", None]),
        (pd.Series(["b", None, "a", pd.NA], dtype="string"), ["a", "b", None]),
        (pd.Categorical(["lo", "hi", None, "hi"], ["lo", "mid", "hi"]), ["lo", "hi", None]),
        (pl.Series(["lo", "hi", None, "hi"], dtype=pl.Enum(["lo", "hi"])), ["lo", "hi", None]),
        (["group 10", "group 9", "10", "9b"], ["9b", "10", "group 9", "group 10"]),
        ([1, "1", True, 1], [True, 1, "1"]),
        (
            np.array(["2020-02", "NaT", "2020-01", "2020-02"], "M8[M]"),
            ["2020-01-01", "2020-02-01", None],
        ),
        (
            pd.Series(pd.to_datetime(["2020-02-01", None, "2019-01-01", "2020-02-01"])),
            ["2019-01-01", "2020-02-01", None],
        ),
        (np.array([2, 1, 2, 10], "m8[D]"), ["1 days", "2 days", "10 days"]),
        ([dt.date(2020, 2, k) for k in (3, 1, 2, 1)], [dt.date(2020, 2, k) for k in (1, 2, 3)]),
        ([Site.NORTH, Site.EAST, None, Site.EAST], [Site.EAST, Site.NORTH, None]),
    ],
)
def test_types_of_labels(column, labels):
    subgroups = check_by(column, 4)
    assert list(subgroups.labels) == labels
    assert [type(label) for label in subgroups.labels] == [type(label) for label in labels]
    alike = [[a == b for b in subgroups.code] for a in subgroups.code]
    values = [None if pd.isna(value) else (type(value), value) for value in column]
    assert alike == [[a == b for b in values] for a in values]


def test_numbers_of_any_type_are_the_same_labels():
    # databases return Decimal
    assert found([Decimal(2), Decimal(1), None, Decimal("1.0")]) == ([1, 2, None], [1, 0, 2, 0])
    assert found([10**400, 1, 1, 10**400]) == ([1, 10**400], [1, 0, 0, 1])


def test_ranges_of_pandas():
    labels, code = found(pd.qcut(np.array([0.3, 12.5, 7.1, 100.0]), 2))
    assert [str(label) for label in labels] == ["(0.299, 9.8]", "(9.8, 100.0]"]
    assert code == [0, 1, 0, 1]


def test_names_and_titles():
    frame = pd.DataFrame({"sex": SEX, "age": [3, None, 3, 4]})
    subgroups = check_by(frame, 4)
    assert subgroups.names == ("sex", "age")
    assert subgroups.title == "sex, age"
    assert subgroups.titles == ["sex f & age 4", "sex f & age missing", "sex m & age 3"]
    assert check_by(frame["sex"], 4).names == ("sex",)
    assert check_by([frame["sex"], frame["age"]], 4).names == ("sex", "age")
    assert check_by(SEX, 4).names == ("by",)
    assert check_by(["a\nb", "c"], 2).titles == ["a\\nb", "c"]
    assert check_by([SEX, AGE], 4).names == ("by0", "by1")


def test_long_numbers_within_labels():
    labels = ["g" + "9" * 5000, "g1", "g007", "g10"]  # Python reads at most 4300 digits
    assert list(check_by(labels, 4).labels) == ["g1", "g007", "g10", labels[0]]


def test_rows_and_parts():
    subgroups = check_by(["b", "a", "b", "c", "a"], 5)
    assert [rows.tolist() for rows in subgroups.rows()] == [[1, 4], [0, 2], [3]]
    part = subgroups.take(np.array([3, 0, 3]))
    assert (part.labels, part.code.tolist()) == (("b", "c"), [1, 0, 1])
    assert subgroups.codes_among(["c", "x", "a"]).tolist() == [-1, 2, -1, 0, 2]


def test_samples_of_weight_0_are_left_out():
    assert found(SEX, sample_weight=[1, 0, 2, 0]) == (["m"], [0, 0])
    assert found(SEX, sample_weight=[1, 1, 0, 1]) == (["f", "m"], [1, 0, 0])


def test_many_crossings_do_not_overflow():
    rng = np.random.default_rng(0)
    columns = rng.integers(100, size=(40, 12))  # 10^24 possible ones
    subgroups = check_by(columns, 40)
    expected = sorted(set(map(tuple, columns.tolist())))
    assert list(subgroups.labels) == expected
    assert [subgroups.labels[k] for k in subgroups.code] == list(map(tuple, columns.tolist()))


@pytest.mark.filterwarnings("ignore:Determining the data types of a LazyFrame")  # of old polars
@pytest.mark.parametrize(
    ("by", "message"),
    [
        (pl.LazyFrame({"sex": SEX}), "by must be a list or an array; found LazyFrame"),
        ("sex", r"by must hold the subgroup of each sample; found 'sex'.*X\['sex'\]"),
        (None, "by must hold the subgroup of each sample; found None"),
        (3, "by must be a list or an array"),
        (SEX[:3], r"must have the same length; .*\(the predictions: 4, by: 3\)"),
        ({"sex": SEX, "age": AGE[:3]}, r"\(the predictions: 4, by\['age'\]: 3\)"),
        ({}, "at least one column"),
        ({"sex": [[1, 2]] * 4}, "by must be 1-D"),
        (np.zeros((4, 0)), "at least one column"),
        (pd.DataFrame([[1, 2]] * 4, columns=["a", "a"]), "different names"),
        (np.array([{1}, {2}, {1}, {2}], dtype=object), "can be hashed.* found set in row 0"),
        (np.zeros((4, 2, 2)), "by must be"),
    ],
)
def test_bad_input(by, message):
    with pytest.raises(ValueError, match=message):
        check_by(by, 4)


def test_quantities_are_refused():
    x = np.linspace(0.1, 3.3, 12)
    for by in (x, x.astype(object), np.arange(101), {"x": x, "sex": ["f", "m"] * 6}):
        n = len(by) if not isinstance(by, dict) else 12
        with pytest.raises(ValueError, match=r"by.* must name subgroups; found .* pandas\.qcut"):
            check_by(by, n)
    assert len(check_by(np.arange(101).astype(str), 101).labels) == 101
    assert len(check_by(np.arange(100), 100).labels) == 100
    assert len(check_by(pd.Categorical(x), 12).labels) == 12  # declared to be labels
