"""Weights of any type and size."""

import numpy as np
import pytest

from skcalib._data import check_predictions
from skcalib._inputs.checks import check_sample_weight
from skcalib.metrics import smooth_calibration_error, squared_kernel_calibration_error
from skcalib.recalibration import IsotonicRecalibrator

Y, PROBA = [0, 1, 1], np.array([0.2, 0.7, 0.6])

OVERFLOWING = {
    "sum": np.array([1e308, 1e308, 1.0]),
    "sum of a list": [1e308, 1e308, 0.0],
    "long double": np.array([1, 1, np.longdouble(10) ** 400]),
}


@pytest.mark.parametrize("weight", OVERFLOWING.values(), ids=OVERFLOWING)
def test_weights_that_overflow_are_refused_by_name(weight):
    for use in (
        lambda: smooth_calibration_error(Y, PROBA, sample_weight=weight),
        lambda: squared_kernel_calibration_error(Y, PROBA, sample_weight=weight),
        lambda: IsotonicRecalibrator().fit(PROBA, Y, sample_weight=weight),
    ):
        with pytest.raises(ValueError, match=r"sample_weight must .* finite"):
            use()


def test_weights_that_hardly_overflow_are_taken():
    weight = np.array([8e307, 8e307, 0.0])
    expected = smooth_calibration_error(Y, PROBA, sample_weight=[1, 1, 0])
    assert smooth_calibration_error(Y, PROBA, sample_weight=weight) == expected
    subnormal = np.array([5e-324, 5e-324, 0.0])
    assert smooth_calibration_error(Y, PROBA, sample_weight=subnormal) == expected


def test_shares_do_not_depend_on_the_order():
    rng = np.random.default_rng(0)
    weight, label = 10 ** rng.uniform(-8, 0, 1000), np.arange(1000) % 2
    shares = check_predictions(label, label / 2, sample_weight=weight).weight
    for _ in range(5):  # to the last bit
        order = rng.permutation(1000)
        own = check_predictions(label[order], label[order] / 2, sample_weight=weight[order])
        np.testing.assert_array_equal(own.weight, shares[order])


def test_weights_as_objects():
    expected = smooth_calibration_error(Y, PROBA, sample_weight=[1, 2, 3])
    for values in ([1, 2, 3], [1.0, 2, np.float32(3)], [np.int8(1), 2, 3]):
        weight = np.array(values, dtype=object)
        assert smooth_calibration_error(Y, PROBA, sample_weight=weight) == expected
    for values in ([1, None, 3], ["1", 2, 3], [10**400, 2, 3]):
        weight = np.array(values, dtype=object)
        with pytest.raises(ValueError, match=r"sample_weight must (hold numbers|be finite)"):
            smooth_calibration_error(Y, PROBA, sample_weight=weight)


def test_the_row_of_a_negative_weight_is_named():
    with pytest.raises(ValueError, match=r"found -1\.0 in row 1"):
        check_sample_weight([0.0, -1.0, 1.0], 3)
