"""What can become an array, and how messages list values."""

import sys
from fractions import Fraction

import numpy as np
import pytest

import skcalib.hypothesis_tests
import skcalib.uncertainty  # noqa: F401
from skcalib._inputs.arrays import as_array, check_numbers, format_values
from skcalib._inputs.labels import encode_labels
from skcalib.metrics import smooth_calibration_error
from skcalib.recalibration import TemperatureRecalibrator


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_values_are_listed_up_to_ten(kind):
    assert format_values(kind([1, 2])) == "[1, 2]"
    assert format_values(kind(["a"])) == "['a']"
    assert format_values(kind([])) == "[]"
    assert format_values(kind(range(10))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
    assert format_values(kind(range(11))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …]"


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


class Tensor:
    """What a tensor of PyTorch looks like from outside, if its gradient is recorded."""

    def __init__(self, values, numpy_has_its_type=True):
        self.values = values
        self.numpy_has_its_type = numpy_has_its_type
        self.shape = values.shape
        self.dtype = np.dtype(values.dtype if numpy_has_its_type else np.float16)

    def detach(self):
        return Tensor(self.values)

    def float(self):
        return Tensor(self.values.astype(np.float32))

    def numpy(self, *, force=False):
        if not self.numpy_has_its_type:
            raise TypeError("Got unsupported ScalarType BFloat16")
        if not force:
            raise RuntimeError("Call tensor.detach() first")
        return self.values

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Call tensor.detach() first")


def test_tensors_that_carry_gradients():
    proba, y = np.array([[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]]), np.array([1, 0, 1])
    weight = np.array([1.0, 2.0, 1.0])
    expected = TemperatureRecalibrator().fit(proba, y, weight).predict_proba(proba)
    for is_known in (True, False):
        tensor = Tensor(proba, is_known)
        fitted = TemperatureRecalibrator().fit(tensor, Tensor(y), Tensor(weight))
        np.testing.assert_array_equal(fitted.predict_proba(tensor), expected)
    assert smooth_calibration_error(Tensor(y), tensor) == smooth_calibration_error(y, proba)
    rounded = Tensor(np.float32([[0.251, 0.751], [0.5, 0.5]]), numpy_has_its_type=False)
    np.testing.assert_allclose(fitted.predict_proba(rounded).sum(axis=1), 1)  # as of 2 bytes
    with pytest.raises(ValueError, match=r"y_proba must lie in \[0, 1\]"):
        smooth_calibration_error(Tensor(y), Tensor(3 * proba))
    with pytest.raises(ValueError, match="look swapped"):
        smooth_calibration_error(Tensor(proba[:, 0]), Tensor(y))


def rows_of_masked(values):
    return list(np.ma.array(values, mask=np.arange(values.size).reshape(values.shape) == 2))


class WithoutData:
    """What a tensor on the device "meta" looks like."""

    shape = 3, 2

    def __init__(self, values):
        pass

    def detach(self):
        return self

    def numpy(self, *, force=False):
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")


@pytest.mark.parametrize("make", [rows_of_masked, WithoutData])
def test_arrays_without_all_numbers_are_refused_by_name(make):
    # the numbers under a mask are none, and a tensor may have no data
    proba = np.array([[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]])
    with pytest.raises((TypeError, ValueError), match="y_proba must"):
        smooth_calibration_error([1, 0, 1], make(proba))
    assert smooth_calibration_error([1, 0, 1], list(np.ma.array(proba))) == (
        smooth_calibration_error([1, 0, 1], proba)
    )


def test_numbers_of_two_bytes_are_compared_with_large_ones():
    distinct, code = encode_labels([np.float16(0), np.float16(1), np.float16(0)])
    assert (distinct.tolist(), code.tolist()) == ([0, 1], [0, 1, 0])


@pytest.mark.parametrize("values", [["1.5", "2"], ["1.5", 2.0], [b"1"], [10**400, 1.0], [[], 1.0]])
def test_text_is_no_number(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    with pytest.raises(ValueError, match="y must hold numbers; found type object"):
        check_numbers(array, "y")


def test_objects_that_are_numbers_become_doubles():
    array = check_numbers(np.array([1, 2.5, Fraction(1, 4)], dtype=object), "y")
    assert array.tolist() == [1.0, 2.5, 0.25]


def test_plain_arrays_are_taken_as_they_are(monkeypatch):
    # check_array takes 20 times as long, and fits of forecasts pass through here at each step
    monkeypatch.setattr("skcalib._inputs.arrays.check_array", None)
    for values in (np.array([0.5, np.nan]), np.zeros((2, 3), dtype=np.float32), np.arange(3)):
        assert as_array(values, "y") is values


def test_every_table_of_results_says_that_it_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    modules = [module for name, module in sys.modules.items() if name.startswith("skcalib.")]
    items = {item for module in modules for item in vars(module).values() if isinstance(item, type)}
    makers = [item.to_frame for item in items if hasattr(item, "to_frame")]
    assert len(makers) >= 7
    for to_frame in makers:
        with pytest.raises(
            ImportError, match=r"to_frame\(\) needs pandas; .* Run pip install pandas"
        ):
            to_frame(None)
