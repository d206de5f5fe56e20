"""Groups of samples that belong together, of any type, become codes."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from skcalib._data import check_data
from skcalib._inputs.by import check_groups
from skcalib.forecasts import GaussianForecast

NAMES = ["b", "a", "b", "c", "a"]
CODES = [0, 1, 0, 2, 1]


@pytest.mark.parametrize(
    "groups",
    [
        NAMES,
        tuple(NAMES),
        np.array(NAMES),
        np.array(NAMES, dtype=object),
        np.array(NAMES, dtype="S1"),
        pd.Series(NAMES, index=[5, 5, 2, 1, 0]),
        pd.Categorical(NAMES),
        [7, -1, 7, 0, -1],
        [0.5, np.inf, 0.5, -2.0, np.inf],
        [1, "1", 1, "one", "1"],  # NumPy would make strings of all of them
        [2**60, 2**60 + 1, 2**60, 3.5, 2**60 + 1],  # and doubles of these
        np.array(["2020-02", "2020-01", "2020-02", "2021-01", "2020-01"], dtype="M8[M]"),
        [dt.date(2020, 2, k) for k in (2, 1, 2, 3, 1)],
        pd.Series([2, 1, 2, 3, 1], dtype="Int64"),
    ],
)
def test_codes_are_numbers_in_the_order_of_appearance(groups):
    code = check_groups(groups, 5)
    assert code.tolist() == CODES
    assert code.dtype.kind == "i"


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        (["a", None, "b"], "groups must not hold missing values; found None in row 1"),
        (["a", "b", np.nan], "groups must not hold missing values; found nan in row 2"),
        ([0.0, np.nan, 1.0], r"missing values; found .*nan.* in row 1"),
        (np.array(["2020", "NaT", "2021"], dtype="M8[Y]"), "missing values; found .*NaT.* row 1"),
        (pd.array(["a", pd.NA, "b"]), "missing values; found .* in row 1"),
        (pd.Series([1, None, 2], dtype="Int64"), "missing values; found .* in row 1"),
        (["a", "b"], r"must have the same length; .*\(the predictions: 3, groups: 2\)"),
        (np.zeros((3, 2)), r"groups must be 1-D.*shape \(3, 2\)"),
        (["a", "a", "a"], "groups must name at least two groups .* found 1"),
        (np.array([{1}, {2}, {1}], dtype=object), "can be hashed.* found set in row 0"),
        ("ab", "groups must be"),
        (3, "groups must be"),
    ],
)
def test_bad_groups(groups, match):
    with pytest.raises(ValueError, match=match):
        check_groups(groups, 3)


@pytest.mark.parametrize("forecast", [False, True])
def test_groups_of_samples_without_weight_are_left_out(forecast):
    proba = np.full(5, 0.25)
    predicted = GaussianForecast(proba, 1.0) if forecast else proba
    y = [0, 1, 0, 1, 1]
    data = check_data(y, predicted, sample_weight=[0, 1, 1, 0, 2], groups=NAMES)
    assert data.groups.tolist() == [0, 1, 0]
    assert data.take(np.array([2, 1])).groups.tolist() == [0, 1]
    assert data.take(np.array([1])).groups.tolist() == [1]
    assert check_data(y, predicted).take(np.arange(2)).groups is None
    with pytest.raises(ValueError, match=r"at least two groups .* found 1"):
        check_data(y, predicted, sample_weight=[0, 1, 0, 0, 2], groups=NAMES)
