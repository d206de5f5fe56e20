"""The door for user input: the only file that judges it.

It is also the only importer of private scikit-learn names.
"""

import numbers
import warnings

import numpy as np
from sklearn.base import _fit_context as fit_context
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils import check_array
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions, validate_params
from sklearn.utils.validation import _check_feature_names, check_is_fitted
from sklearn.utils.validation import _check_method_params as check_method_params

from ._predictions import Predictions

__all__ = [
    "METRIC_CONSTRAINTS",
    "REDUCTION_CONSTRAINTS",
    "HasMethods",
    "Interval",
    "StrOptions",
    "check_fit",
    "check_fitted",
    "check_folds",
    "check_labels",
    "check_method_params",
    "check_predictions",
    "check_probabilities",
    "check_sample_weight",
    "fit_context",
    "safe_indexing",
    "validate_params",
]

# What every metric takes; `check_predictions` judges the values.
METRIC_CONSTRAINTS: dict = {
    "y_true": "no_validation",
    "y_proba": "no_validation",
    "sample_weight": "no_validation",
    "pos_label": [numbers.Real, str, "boolean", None],
    "labels": ["array-like", None],
}
REDUCTION_CONSTRAINTS: dict = {
    "multi_class": [StrOptions({"confidence", "top-label", "classwise"})],
    "average": [StrOptions({"auto", "macro", "weighted"}), None],
}


def check_predictions(
    y_true,
    y_proba,
    *,
    sample_weight=None,
    pos_label=None,
    labels=None,
    names=("y_true", "y_proba"),
):
    """Labels, probabilities and weights as `Predictions`; rows of weight 0 are left out.

    `names` are the names of the first two arguments in error messages.
    """
    proba = check_probabilities(y_proba, name=names[1], partner=(names[0], y_true))
    observed, code = check_labels(y_true, name=names[0], partner=names[1])
    check_same_length({names[0]: code, names[1]: proba})
    classes = _resolve_classes(observed, proba, pos_label, labels, names)
    label = _recode(observed, code, classes, name=names[0])
    positive = _positive_index(classes, pos_label)
    if proba.ndim == 2 and proba.shape[1] == 2:
        proba = proba[:, positive]
    if positive == 0:
        label, classes = 1 - label, classes[::-1]
    if sample_weight is None:
        return Predictions(proba, label, np.broadcast_to(1.0 / len(label), len(label)), classes)
    weight = check_sample_weight(sample_weight, len(label))
    if not weight.all():
        used = weight > 0
        proba, label, weight = proba[used], label[used], weight[used]
    return Predictions(proba, label, weight / weight.sum(), classes)


def check_probabilities(y_proba, *, name="y_proba", partner=None):
    """Probabilities as float64, `(n,)` for the positive class or `(n, K)` with K ≥ 2."""
    proba = check_array(
        y_proba,
        dtype=None,
        ensure_2d=False,
        ensure_all_finite=False,
        ensure_min_samples=0,
        ensure_min_features=0,
        input_name=name,
    )
    if proba.dtype.kind == "O":
        proba = _floats_of_objects(proba, name)
    if proba.dtype.kind != "f":
        swapped = ""
        if partner is not None and _looks_like_probabilities(partner[1]):
            swapped = f" {partner[0]} and {name} look swapped: {partner[0]} comes first."
        raise ValueError(
            f"{name} must hold probabilities as floating-point numbers; found values of type "
            f"{proba.dtype}, which are taken for class labels.{swapped} Pass the output of "
            "predict_proba; in make_scorer set response_method='predict_proba'; convert true "
            "probabilities with .astype(float)."
        )
    if proba.ndim == 2 and proba.shape[1] == 1:
        proba = proba[:, 0]
    if proba.ndim not in (1, 2):
        raise ValueError(
            f"{name} must have shape (n,) or (n, K); found shape {proba.shape}. Pass the "
            "probability of the positive class, or one column for each class."
        )
    if len(proba) == 0 or proba.shape[-1] == 0:
        missing = "sample" if len(proba) == 0 else "feature"
        raise ValueError(
            f"{name} must hold at least one prediction; found 0 {missing}(s) "
            f"(shape={proba.shape}) while a minimum of 1 is required. Check the filter or the "
            "split that produced it."
        )
    precision = np.finfo(proba.dtype).eps
    proba = proba.astype(np.float64, copy=False)
    _check_range(proba, name)
    if proba.ndim == 2:
        total = _check_row_sums(proba, np.sqrt(precision), name)
        if proba.shape[1] > 2 and precision > np.finfo(np.float64).eps:
            proba = proba / total[:, None]  # what rounding to a lower precision lost
    return proba


def _check_row_sums(proba, tolerance, name):
    total = proba.sum(axis=1)
    worst = np.argmax(np.abs(total - 1))
    if abs(total[worst] - 1) > tolerance:
        raise ValueError(
            f"The rows of {name} must sum to 1 (within {tolerance:.0e}); found a sum of "
            f"{total[worst]:.10g} in row {worst}. Divide each row by its sum, or pass the columns "
            "of one-vs-rest scores one at a time."
        )
    return total


def check_fit(estimator, X, y, sample_weight):
    """What `fit` of an estimator of probabilities starts with: `Predictions` of its `labels`."""
    if np.asarray(y).shape[1:] == (1,):
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Pass y.ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
    predictions = check_predictions(
        y, X, sample_weight=sample_weight, labels=estimator.labels, names=("y", "X")
    )
    _check_feature_names(estimator, X, reset=True)
    estimator.n_features_in_ = int(np.prod(np.asarray(X).shape[1:]))
    return predictions


def check_fitted(estimator, X):
    """Probabilities of the classes seen at `fit`: (n,) for two of them, else (n, K)."""
    check_is_fitted(estimator)
    _check_feature_names(estimator, X, reset=False)
    proba = check_probabilities(X, name="X")
    n_classes = len(estimator.classes_)
    n_columns = 2 if proba.ndim == 1 else proba.shape[1]
    if n_columns != n_classes:
        raise ValueError(
            f"X must hold the probabilities of the {n_classes} classes seen at fit; found "
            f"{n_columns} columns (one column stands for two classes). Pass one column for each "
            "class."
        )
    return proba[:, 1] if proba.ndim == 2 and n_columns == 2 else proba


def _check_range(proba, name):
    low, high = proba.min(), proba.max()
    if low >= 0 and high <= 1:
        return
    row = np.unravel_index(np.argmin((proba >= 0) & (proba <= 1)), proba.shape)
    if not np.isfinite(proba).all():
        row = np.unravel_index(np.argmin(np.isfinite(proba)), proba.shape)
        raise ValueError(
            f"{name} must be finite; found {proba[row]} (NaN or infinity) in row {row[0]}, and "
            f"{np.sum(~np.isfinite(proba))} such value(s) in all. Remove or impute these "
            "predictions."
        )
    raise ValueError(
        f"{name} must lie in [0, 1]; found {float(proba[row])!r} in row {row[0]}. Map scores or "
        "logits to probabilities first; clip rounding errors with np.clip(..., 0, 1)."
    )


def _floats_of_objects(values, name):
    flat = values.ravel().tolist()
    for value in flat:
        if not isinstance(value, float):
            raise ValueError(
                f"{name} must hold probabilities as floating-point numbers; found {value!r} of "
                f"type {type(value).__name__} in an array of Python objects. Convert it with "
                ".astype(float)."
            )
    return np.array(flat, dtype=np.float64).reshape(values.shape)


def _looks_like_probabilities(values):
    try:
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    in_range = values.size > 0 and values.min() >= 0 and values.max() <= 1
    return bool(in_range and (values % 1 != 0).any())


def check_labels(y, *, name="y_true", partner="y_proba"):
    """The sorted distinct labels, and for each sample the index of its own among them."""
    if y is None:
        raise ValueError(
            f"{name} must hold one class label for each row of {partner}; found None: this "
            f"requires {name} to be passed, but the target {name} is None."
        )
    y = check_array(
        y,
        dtype=None,
        ensure_2d=False,
        ensure_all_finite=False,
        ensure_min_samples=0,
        ensure_min_features=0,
        input_name=name,
    )
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
    elif y.dtype.kind not in "biuUST":
        raise ValueError(
            f"{name} must hold class labels (strings, integers or booleans); found type {y.dtype}."
        )
    if y.dtype.kind in "biuf":
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
            f"which is a continuous value (Unknown label type: continuous). If {name} and "
            f"{partner} look swapped, they probably are: {name} holds the labels."
        )


def _encode_objects(y, name):
    values = y.tolist()
    kinds = {type(value) for value in values}
    if all(issubclass(kind, str) for kind in kinds):
        observed = sorted(set(values))
        index = {value: k for k, value in enumerate(observed)}
        code = np.fromiter((index[value] for value in values), dtype=np.int32, count=len(values))
        return np.array(observed), code
    if all(issubclass(kind, bool | np.bool_) for kind in kinds) or all(
        issubclass(kind, numbers.Integral) and not issubclass(kind, bool) for kind in kinds
    ):
        observed, code = np.unique(np.array(values), return_inverse=True)
        return observed, code.astype(np.int32)
    for row, value in enumerate(values):
        if not isinstance(value, str | numbers.Integral | np.bool_):
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


def check_same_length(arrays):
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise ValueError(
            f"{' and '.join(lengths)} must have the same length; found inconsistent numbers of "
            f"samples ({found}). Pass one label for each prediction."
        )


def check_sample_weight(sample_weight, n):
    """Finite weights of shape (n,), none negative and not all zero."""
    weight = check_array(
        sample_weight,
        dtype=np.float64,
        ensure_2d=False,
        ensure_all_finite=False,
        ensure_min_samples=0,
        input_name="sample_weight",
    )
    if weight.ndim != 1:
        raise ValueError(
            "Sample weights must be 1D array or scalar-free: sample_weight holds one weight for "
            f"each sample; found shape {weight.shape}. Pass one column."
        )
    check_same_length({"the predictions": np.broadcast_to(0, n), "sample_weight": weight})
    if not np.isfinite(weight).all():
        row = int(np.argmin(np.isfinite(weight)))
        raise ValueError(
            f"sample_weight must be finite; found {weight[row]} (NaN or infinity) in row {row}. "
            "Remove the sample, or give it weight 0."
        )
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(
            f"sample_weight must not be negative; found {float(weight[row])!r} in row {row}. Give "
            "a sample that should not count the weight 0."
        )
    total = weight.sum()
    if not 0 < total < np.inf:
        raise ValueError(
            f"sample_weight must have a positive, finite sum; found {float(total)!r}: all weights "
            "are zero, or their sum overflows. Give some sample a positive weight, or rescale "
            "the weights."
        )
    return weight


def _resolve_classes(observed, proba, pos_label, labels, names):
    """The classes in the order of the columns of proba."""
    n_columns = 2 if proba.ndim == 1 else proba.shape[1]
    columns = (
        f"{names[1]} is 1-D and so"
        if proba.ndim == 1
        else f"{names[1]} has {n_columns} columns and"
    )
    if labels is not None:
        classes = np.asarray(labels)
        if classes.dtype.kind == "O":
            classes = np.array(classes.tolist())
        if classes.ndim != 1 or len(np.unique(classes)) != classes.size:
            raise ValueError(
                f"labels must list each class once; found {labels!r}. Give the classes in the "
                f"order of the columns of {names[1]}."
            )
        if len(classes) != n_columns:
            raise ValueError(
                f"labels must name one class for each column: {columns} stands for {n_columns} "
                f"classes; found {len(classes)} labels. Give the classes in the order of the "
                "columns."
            )
        return classes
    if len(observed) == n_columns:
        return observed
    if len(observed) > n_columns:
        raise ValueError(
            f"{columns} stands for {n_columns} classes, but {names[0]} holds {len(observed)} "
            f"distinct labels: {_shown(observed)}. Pass one column of probabilities for each "
            "class."
        )
    if n_columns == 2:
        if observed.dtype.kind == "b":
            return np.array([False, True])
        if observed.dtype.kind in "iuf" and observed[0] in (-1, 0, 1):
            return np.array([min(observed[0], 0), 1]).astype(observed.dtype)
        if pos_label is not None:
            other = None if observed[0] == pos_label else observed[0]
            return np.array([other, pos_label], dtype=object if other is None else None)
    raise ValueError(
        f"{columns} stands for {n_columns} classes, but {names[0]} holds only {len(observed)} "
        f"distinct label(s): {_shown(observed)}. Name all classes with labels=[...], in the order "
        "of the columns."
    )


def _recode(observed, code, classes, name):
    """Indices into `observed` turned into indices into `classes`."""
    if len(observed) == len(classes) and np.array_equal(observed, classes):
        return code
    index = {value: k for k, value in enumerate(classes.tolist())}
    unknown = [value for value in observed.tolist() if value not in index]
    if unknown:
        raise ValueError(
            f"{name} must hold only the classes {_shown(classes)}; found "
            f"{_shown(np.array(unknown))}. Name all classes with labels=[...], of the same type "
            "as the labels."
        )
    table = np.array([index[value] for value in observed.tolist()], dtype=np.int32)
    return table[code]


def _positive_index(classes, pos_label):
    if pos_label is None:
        return 1
    if len(classes) != 2:
        raise ValueError(
            f"pos_label is for two classes; found {len(classes)} classes. Leave it out, or pass "
            "the column of that class and the labels y_true == pos_label."
        )
    if pos_label not in classes.tolist():
        raise ValueError(
            f"pos_label must be one of the classes {_shown(classes)}; found {pos_label!r} "
            "(pos_label is not a valid label)."
        )
    return classes.tolist().index(pos_label)


def _shown(values, limit=10):
    shown = ", ".join(repr(value) for value in values.tolist()[:limit])
    return f"[{shown}, …]" if len(values) > limit else f"[{shown}]"


def check_folds(cv, classes, code):
    """A number of folds must not exceed the number of samples, and should not that of any class."""
    if not isinstance(cv, numbers.Integral):
        return
    if len(code) < cv:
        raise ValueError(
            f"cv={cv} needs at least {cv} samples; found {len(code)} sample(s) "
            f"(n_samples={len(code)}). Choose fewer folds, or freeze a fitted classifier "
            "(FrozenEstimator)."
        )
    count = np.bincount(code, minlength=len(classes))
    if count.min() < cv:
        warnings.warn(
            f"Class {classes.tolist()[count.argmin()]!r} has {count.min()} sample(s), fewer than "
            f"the {cv} folds: some folds lack it. Choose fewer folds, or ensemble=False.",
            UserWarning,
            stacklevel=4,
        )
