"""Labels of every kind: distinct ones stay distinct, and objects are what typed arrays are."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skcalib._inputs.labels import encode_labels
from skcalib.metrics import expected_calibration_error, smooth_calibration_error
from skcalib.recalibration import TemperatureRecalibrator
from skcalib.streaming import CalibrationState

PROBA = np.array([0.1, 0.8, 0.6, 0.3])
CODE = np.array([0, 1, 1, 0])
LARGE = [2**53, 2**53 + 1]  # the same double


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


CONTAINERS = {
    "list": list,
    "array": np.array,
    "objects": objects,
    "pandas": pd.Series,
    "pandas, Int64": lambda values: pd.Series(values, dtype="Int64"),
    "pandas, objects": lambda values: pd.Series(values, dtype=object),
    "frame, Int64": lambda values: pd.DataFrame({"y": pd.Series(values, dtype="Int64")}),
    "polars": pl.Series,
}
all_containers = pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)


@all_containers
def test_large_integers_stay_distinct(container):
    y = container([LARGE[k] for k in CODE])
    classes, code = encode_labels(y)
    assert classes.tolist() == LARGE
    np.testing.assert_array_equal(code, CODE)
    assert smooth_calibration_error(y, PROBA) == smooth_calibration_error(CODE, PROBA)


def test_large_integers_of_pyarrow_stay_distinct():
    pytest.importorskip("pyarrow")
    y = pd.Series([LARGE[k] for k in CODE], dtype="int64[pyarrow]")
    assert encode_labels(y)[0].tolist() == LARGE


def test_integers_that_no_type_of_numpy_holds_stay_distinct():
    names = [-1, 2**63, 2**63 + 1]
    code = np.array([0, 1, 2, 1])
    y = [names[k] for k in code]
    classes, found = encode_labels(y)
    assert classes.tolist() == names
    np.testing.assert_array_equal(found, code)
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=4)
    expected = smooth_calibration_error(code, proba)
    assert smooth_calibration_error(y, proba) == expected
    assert smooth_calibration_error(y, proba, labels=names) == expected
    model = TemperatureRecalibrator().fit(proba, y)
    assert model.classes_.tolist() == names
    assert set(model.predict(proba).tolist()) <= set(names)


def test_numbers_are_sorted_by_value():
    classes, code = encode_labels([3, -1, -5, 0])
    assert (classes.tolist(), code.tolist()) == ([-5, -1, 0, 3], [3, 1, 0, 2])


def test_whole_floats_and_integers_are_the_same_numbers():
    reference = smooth_calibration_error(CODE, PROBA)
    for y in ([2**53 + 1.0, 3, 3.0, 2**53], objects([0.0, 1.0, 1, 0]), [0, 1.0, 1, 0.0]):
        assert smooth_calibration_error(y, 1 - PROBA if y[0] > 1 else PROBA) == pytest.approx(
            reference, abs=1e-15
        )
    assert len(encode_labels([2**53 + 1, 2.0**53])[0]) == 2


@pytest.mark.parametrize("kind", [float, np.float32, np.float64, np.longdouble])
def test_objects_that_are_whole_floats(kind):
    y = objects([kind(value) for value in (1, 2, 2, 1)])
    classes, code = encode_labels(y)
    assert classes.dtype.kind == "f"
    assert classes.tolist() == [1, 2]
    np.testing.assert_array_equal(code, CODE)
    assert encode_labels(pd.Series(y))[0].tolist() == [1, 2]


def test_objects_that_are_no_whole_floats():
    with pytest.raises(ValueError, match=r"found the fraction 0\.5 in row 1"):
        encode_labels(objects([1.0, 0.5]))
    with pytest.raises(ValueError, match=r"found the fraction 0\.5 in row 1"):
        encode_labels(objects([1, 0.5]))
    with pytest.raises(ValueError, match=r"missing values; found nan .* in row 1"):
        encode_labels(objects([1, float("nan")]))
    with pytest.raises(ValueError, match="found a mix of bool, float"):
        encode_labels(objects([1.0, True]))


def test_both_kinds_of_truth_values():
    assert encode_labels(objects([True, np.False_]))[0].tolist() == [False, True]


def test_bytes_are_labels_everywhere():
    y = np.array([b"a", b"b"])[CODE]
    reference = smooth_calibration_error(CODE, PROBA)
    for labels in (y, y.tolist(), y.astype(object)):
        assert smooth_calibration_error(labels, PROBA, pos_label=b"b") == reference
        assert smooth_calibration_error(labels, PROBA, labels=[b"a", b"b"]) == reference
    flipped = smooth_calibration_error(y, 1 - PROBA, pos_label=b"a")
    assert flipped == pytest.approx(reference, abs=1e-15)
    with pytest.raises(ValueError, match="pos_label must be one of the classes"):
        smooth_calibration_error(y, PROBA, pos_label="b")


def test_a_matrix_of_labels_is_judged_one_column_at_a_time():
    y = np.array([[0, 1, 1], [1, 1, 0], [0, 0, 0]])
    proba = np.array([[0.1, 0.9, 0.8], [0.7, 0.6, 0.2], [0.2, 0.3, 0.1]])
    for labels, predictions in (
        (y, proba),
        (y.tolist(), proba),
        (y == 1, proba),
        (pd.DataFrame(y), pd.DataFrame(proba)),
        (y, [np.column_stack([1 - p, p]) for p in proba.T]),  # of a forest
    ):
        with pytest.raises(ValueError, match=r"multilabel.* one at a time: pass y_true\[:, k\]"):
            smooth_calibration_error(labels, predictions)
        with pytest.raises(ValueError, match=r"multilabel.* one at a time: pass y\[:, k\]"):
            TemperatureRecalibrator().fit(predictions, labels)
    with pytest.raises(ValueError, match=r"one-hot rows .* \.argmax\(axis=1\)"):
        smooth_calibration_error(np.eye(3), np.eye(3))
    with pytest.raises(ValueError, match="y_true and y_proba look swapped"):
        smooth_calibration_error(np.full((2, 2), 0.5), [0, 1])


@pytest.mark.parametrize("mark", [-100, 255])
def test_a_label_for_what_the_loss_ignores_is_no_class(mark):
    proba = np.full((4, 3), 1 / 3)
    with pytest.warns(UserWarning, match=rf"ignore_index\), leave out the rows y_true == {mark}"):
        expected_calibration_error([0, 1, mark, 1], proba)  # class 2 has no sample
    with pytest.raises(ValueError, match=rf"ignore_index\), leave out the rows y_true == {mark}"):
        CalibrationState(labels=range(3)).update([0, 1, mark, 1], proba)


def test_masks_and_neighbours_of_what_losses_ignore_are_classes():
    y = np.array([0, 1, 1, 0])
    expected = smooth_calibration_error(y, [0.2, 0.9, 0.6, 0.3])
    for negative, positive in ((0, 255), (254, 255), (-100, -99)):
        labels = np.where(y, positive, negative)
        assert smooth_calibration_error(labels, [0.2, 0.9, 0.6, 0.3]) == expected
    for grey in ([0, 127, 255], [-100, 0, 100]):
        assert expected_calibration_error(grey, np.eye(3)) == 0


@pytest.mark.parametrize("package", ["numpy", "torch"])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5)])
def test_pixels_and_tokens_become_rows_as_the_message_says(package, shape):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=(2, *shape[2:]))  # classes last
    labels = rng.integers(3, size=(2, *shape[2:]))
    expected = expected_calibration_error(labels.ravel(), p.reshape(-1, 3))
    p = np.moveaxis(p, -1, 1)
    if package == "torch":
        torch = pytest.importorskip("torch")
        p, labels = torch.as_tensor(p), torch.as_tensor(labels)
    with pytest.raises(ValueError, match=r"pass labels\.reshape\(-1\), and p\.reshape") as error:
        expected_calibration_error(labels, p)
    assert "p.movedim(1, -1) of a tensor" in str(error.value)
    p = p.movedim(1, -1) if package == "torch" else np.moveaxis(p, 1, -1)
    assert expected_calibration_error(labels.reshape(-1), p.reshape(-1, 3)) == expected


def test_ragged_labels_are_refused_by_name():
    for fit in (TemperatureRecalibrator().fit, lambda X, y: smooth_calibration_error(y, X)):
        with pytest.raises(ValueError, match="must be an array of one or two dimensions"):
            fit(PROBA, [[0], [1, 0], [1], [0]])
