"""What can become an array, and how messages list values."""

import numpy as np
import pytest

from skcalib._inputs.arrays import as_array, listed
from skcalib.metrics import smooth_calibration_error
from skcalib.recalibration import TemperatureRecalibrator


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_values_are_listed_up_to_ten(kind):
    assert listed(kind([1, 2])) == "[1, 2]"
    assert listed(kind(["a"])) == "['a']"
    assert listed(kind([])) == "[]"
    assert listed(kind(range(10))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
    assert listed(kind(range(11))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …]"


def test_sets_have_no_order():
    y, proba = ["a", "b", "a", "b"], [0.1, 0.8, 0.6, 0.3]
    for labels in ({"a", "b"}, frozenset("ab")):
        with pytest.raises(ValueError, match=r"labels must have an order; found a \w*set.*list"):
            smooth_calibration_error(y, proba, labels=labels)
        with pytest.raises(ValueError, match=r"labels must have an order; found a \w*set.*list"):
            TemperatureRecalibrator(labels=labels).fit(proba, y)
    with pytest.raises(ValueError, match="y_true must have an order; found a set"):
        smooth_calibration_error({0, 1}, [0.1, 0.8])
    with pytest.raises(ValueError, match="y_proba must have an order; found a set"):
        smooth_calibration_error([0, 1], {0.1, 0.8})
    for keys in ({"a": 0, "b": 1}, {"a": 0, "b": 1}.keys()):
        with pytest.raises(ValueError, match="labels must be a list or an array"):
            smooth_calibration_error(y, proba, labels=keys)


def test_plain_arrays_are_taken_as_they_are(monkeypatch):
    # check_array takes 20 times as long, and fits of forecasts pass through here at each step
    monkeypatch.setattr("skcalib._inputs.arrays.check_array", None)
    for values in (np.array([0.5, np.nan]), np.zeros((2, 3), dtype=np.float32), np.arange(3)):
        assert as_array(values, "y") is values
