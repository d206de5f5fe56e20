"""Class labels."""

import numbers

import numpy as np

from .arrays import as_array


def check_labels(y, *, name="y_true", partner="y_proba"):
    """The sorted distinct labels, and for each sample the index of its own among them."""
    if y is None:
        raise ValueError(
            f"{name} must hold one class label for each row of {partner}; found None: this "
            f"requires {name} to be passed, but the target {name} is None."
        )
    values, y = y, as_array(y, name)
    if y.dtype.kind == "T" or (y.dtype.kind in "US" and isinstance(values, list | tuple)):
        y = np.array(values, dtype=object)  # NumPy would make a string of a missing value
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(
            f"{name} must be 1-D, one label for each row of {partner}; found shape {y.shape}. "
            "Turn one-hot rows into labels with .argmax(axis=1)."
        )
    if len(y) == 0:
        raise ValueError(f"{name} must hold at least one label; found 0 sample(s).")
    if y.dtype.kind == "O":
        return _encode_objects(y, name)
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


def _check_whole(y, name, partner):
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
            f"{partner} are swapped."
        )


def _encode_objects(y, name):
    values = y.tolist()
    kinds = {type(value) for value in values}
    if any(
        all(issubclass(kind, one) for kind in kinds) for one in (str, bytes, bool, np.bool_)
    ) or all(issubclass(kind, numbers.Integral) and kind is not bool for kind in kinds):
        observed = sorted(set(values))
        index = {value: k for k, value in enumerate(observed)}
        code = np.fromiter((index[value] for value in values), dtype=np.int32, count=len(values))
        return np.array(observed), code
    for row, value in enumerate(values):
        if not isinstance(value, str | bytes | numbers.Integral | np.bool_):
            raise ValueError(
                f"{name} must hold class labels (strings, integers or booleans) without missing "
                f"values; found {value!r} of type {type(value).__name__} in row {row} (Unknown "
                "label type). Remove the samples without a label, or convert the labels to one "
                "type."
            )
    found = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise ValueError(
        f"{name} must hold labels of one type; found a mix of {found} (Unknown label type). "
        "Convert them with .astype(str)."
    )
