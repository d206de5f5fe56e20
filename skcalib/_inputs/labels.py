"""Class labels."""

from numbers import Integral
from typing import Any

import numpy as np

from .arrays import PIXELS_REMEDY, ArrayLike, are_probably_probabilities, as_array

# Up to this size every integer can be represented as a double.
_MAX_EXACT_INTEGER = np.float64(2**53)

# Labels of one of these types can be compared with each other.
_COMPARABLE_TYPES: tuple[tuple[type, ...], ...] = ((str,), (bytes,), (bool, np.bool_))


def label_array(y: ArrayLike, *, name: str = "y_true", partner: str = "y_proba") -> np.ndarray:
    """Return labels (n,) of any type, which are not yet checked one by one."""
    if y is None:
        raise ValueError(
            f"{name} must hold one class label for each row of {partner}; found None: this "
            f"requires {name} to be passed, but the target {name} is None."
        )
    values = as_labels(y, name)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"{name} must be 1-D, one label for each row of {partner}; found shape {values.shape}. "
            f"{_remedy_for_matrix(values, name, partner)}"
        )
    return values


def _remedy_for_matrix(values: np.ndarray, name: str, partner: str) -> str:
    if values.dtype.kind == "f" and are_probably_probabilities(values):
        return f"{name} and {partner} look swapped: exchange them."
    if values.dtype.kind in "iuf" and not np.isin(values, [0, 1]).all():
        return PIXELS_REMEDY
    if values.dtype.kind in "biuf" and (values.sum(axis=1) != 1).any():
        return (
            "Labels that do not exclude each other are measured with multi_class=Multilabel() of "
            "skcalib.lenses where it is taken (multilabel), or one at a time: pass "
            f"{name}[:, k] with column k of {partner}. Of pixels or tokens pass labels.reshape(-1)."
        )
    return "Turn one-hot rows into labels with .argmax(axis=1)."


def remedy_for_ignored(labels: list, name: str) -> str:
    """Return the remedy if labels hold −100 or 255, by which losses mark what has no label."""
    marks = [k for k in (-100, 255) if k in labels and not {k - 1, k + 1} & set(labels)]
    text = " If {0} marks samples without a label (ignore_index), leave out the rows {1} == {0}."
    return text.format(marks[0], name) if marks else ""


def as_labels(values: object, name: str) -> np.ndarray:
    """Return an array that keeps distinct labels distinct, where the usual conversion does not."""
    array = as_array(values, name)
    is_sequence = isinstance(values, list | tuple)
    if array.dtype.kind == "T" or (array.dtype.kind in "US" and is_sequence):
        return np.array(values, dtype=object)  # NumPy would make a string of a missing value
    was_float = getattr(getattr(values, "dtype", None), "kind", "") == "f"
    if array.dtype.kind == "f" and not was_float and (np.abs(array) >= _MAX_EXACT_INTEGER).any():
        return np.array(values, dtype=object)  # integers became doubles, which merge large ones
    return array


def encode_labels(
    y: ArrayLike, *, name: str = "y_true", partner: str = "y_proba"
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted distinct labels, and for each sample the index of its label."""
    return encode(label_array(y, name=name, partner=partner), name=name, partner=partner)


def encode(y: np.ndarray, *, name: str, partner: str) -> tuple[np.ndarray, np.ndarray]:
    """`encode_labels` of an array (n,)."""
    if len(y) == 0:
        raise ValueError(f"{name} must hold at least one label; found 0 sample(s).")
    if y.dtype.kind == "O":
        return _encode_objects(y, name, partner)
    if y.dtype.kind == "f":
        _check_whole(y, name, partner)
    elif y.dtype.kind not in "biuUS":
        raise ValueError(
            f"{name} must hold class labels (strings, integers or booleans); found type {y.dtype}. "
            "Convert them with .astype(str)."
        )
    if y.dtype.kind in "biuf":  # two distinct numbers are found without sorting
        low, high = y.min(), y.max()
        code = y == high
        if low != high and np.all(code | (y == low)):
            return np.array([low, high]), code.astype(np.int32)
    observed, code = np.unique(y, return_inverse=True)
    return observed, code.astype(np.int32)


def _check_whole(y: np.ndarray, name: str, partner: str) -> None:
    if not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise ValueError(
            f"{name} must not hold missing values; found {y[row]} (NaN or infinity) in row {row}. "
            "Remove the samples without a label."
        )
    if (y % 1 != 0).any():
        row = int(np.argmax(y % 1 != 0))
        raise ValueError(
            f"{name} must hold class labels; found the fraction {float(y[row])!r} in row {row}, "
            f"which is a continuous value (Unknown label type: continuous). Perhaps {name} and "
            f"{partner} are swapped. A soft label s is exactly two rows, 1 of weight s and 0 of "
            f"weight 1 - s: {name}=np.repeat([1, 0], len(s)), {partner}=np.tile(p, 2), "
            "sample_weight=np.r_[s, 1 - s]."
        )


def _encode_objects(y: np.ndarray, name: str, partner: str) -> tuple[np.ndarray, np.ndarray]:
    values = y.tolist()
    types = {type(value) for value in values}
    if any(all(issubclass(type_, kind) for type_ in types) for kind in _COMPARABLE_TYPES):
        return _encode_distinct(values)
    floats = {type_ for type_ in types if issubclass(type_, float | np.floating)}
    if all(issubclass(type_, Integral) and type_ is not bool for type_ in types - floats):
        if not floats:
            return _encode_distinct(values)
        _check_whole(np.array([v if type(v) in floats else 0.0 for v in values]), name, partner)
        return _encode_distinct(values if floats == types else [int(value) for value in values])
    for row, value in enumerate(values):
        is_float = isinstance(value, float | np.floating) and np.isfinite(value)
        if not is_float and not isinstance(value, str | bytes | Integral | np.bool_):
            raise ValueError(
                f"{name} must hold class labels (strings, integers or booleans) without missing "
                f"values; found {value!r} of type {type(value).__name__} in row {row} (Unknown "
                "label type). Remove the samples without a label, or convert the labels to one "
                "type."
            )
    type_names = ", ".join(sorted(type_.__name__ for type_ in types))
    raise ValueError(
        f"{name} must hold labels of one type; found a mix of {type_names} (Unknown label type). "
        "Convert them with .astype(str)."
    )


def _encode_distinct(values: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    observed = sorted(set(values))
    index = {value: k for k, value in enumerate(observed)}
    code = np.fromiter((index[value] for value in values), dtype=np.int32, count=len(values))
    return class_array(observed), code


def class_array(classes: list[Any]) -> np.ndarray:
    """Return classes (K,) in the type that NumPy finds, or as objects if it merges some."""
    array = np.array(classes)
    if array.tolist() == classes:
        return array
    objects = np.empty(len(classes), dtype=object)
    objects[:] = classes
    return objects
