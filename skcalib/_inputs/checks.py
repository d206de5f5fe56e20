"""Labels, probabilities and weights judged together: of functions, and of estimators."""

import re
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from .._numerics.array_api import Array, take_rows
from .._numerics.logits import log_softmax
from .arrays import as_array, check_numbers, check_same_length, column_names, format_values
from .labels import as_labels, class_array, encode, label_array
from .predictions import ClassData
from .probabilities import (
    check_logits,
    check_not_swapped,
    check_probabilities,
    is_forecast,
    warn_of_hard_labels,
)
from .scikit_learn import check_feature_names
from .warnings import warn

# A sample with a smaller share of the total weight is left out: squared, it would underflow.
MIN_WEIGHT_SHARE = 1e-150

# Shares that were computed from weights sum to 1 up to this.
_SHARE_SUM_ATOL = 1e-14


def check_predictions(
    y_true: Any,
    y_proba: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    *,
    names: tuple[str, str] = ("y_true", "y_proba"),
    as_logits: bool = False,
    in_place: bool = False,
    estimator: Any = None,
) -> ClassData:
    """Labels, probabilities and weights as `ClassData`; rows of weight 0 are left out.

    `names` are the names of the first two arguments in error messages. With `as_logits`, the second
    holds logits. With `in_place`, arrays of other packages stay where they live, if they may. The
    `estimator`, if any, is what takes them.
    """
    if is_forecast(y_true):
        check_not_swapped(y_true, names)
    values = label_array(y_true, name=names[0], partner=names[1])
    log_proba = None
    if as_logits:
        logits = check_logits(y_proba, name=names[1], in_place=in_place)
        log_proba = log_softmax(logits)
        exp = array_namespace(log_proba).exp
        proba = exp(log_proba[:, 1] if logits.ndim == 1 else log_proba)
    else:
        proba = check_probabilities(
            y_proba,
            name=names[1],
            partner=names[0],
            partner_values=y_true,
            keep_single=True,
            in_place=in_place,
            estimator=estimator,
        )
    observed, code = encode(values, name=names[0], partner=names[1])
    check_same_length({names[0]: len(code), names[1]: proba.shape[0]})
    classes = _resolve_classes(observed, proba, pos_label, labels, names)
    check_column_order(y_proba, classes, name=names[1])
    if labels is None and not as_logits:  # an estimator's predict_proba comes with its classes
        warn_of_hard_labels(proba, names[1])
    label = code if classes is observed else map_codes(observed, code, classes, name=names[0])
    positive = 1 if pos_label is None else _positive_index(classes, pos_label)
    if proba.ndim == 2 and proba.shape[1] == 2:
        proba = proba[:, positive]
    if positive == 0:
        label, classes = 1 - label, classes[::-1]
    share = np.broadcast_to(1.0 / len(label), len(label))
    if sample_weight is not None:
        weight = check_sample_weight(sample_weight, len(label))
        share = _normalize_weights(weight)
        used = share > MIN_WEIGHT_SHARE
        if not used.all():
            proba, label, share = (
                take_rows(proba, used),
                label[used],
                _normalize_weights(weight[used]),
            )
            log_proba = None if log_proba is None else take_rows(log_proba, used)
    if not isinstance(proba, np.ndarray):  # labels and weights join them where they live
        xp = array_namespace(proba)
        label = xp.asarray(label.astype(np.int64), device=device(proba))
        share = xp.asarray(np.array(share), device=device(proba))
    return ClassData(proba, label, share, classes, log_proba=log_proba)


def check_fit_input(estimator: Any, X: Any, y: Any, sample_weight: Any) -> ClassData:
    """`ClassData` from the arguments of `fit`; sets what scikit-learn's estimators know of X."""
    data = check_predictions(
        y,
        X,
        sample_weight=sample_weight,
        labels=estimator.labels,
        names=("y", "X"),
        as_logits=estimator._takes_logits,
        in_place=estimator._fits_in_place,
        estimator=estimator,
    )
    if np.shape(y)[1:] == (1,):
        warn(
            "A column-vector y was passed when a 1d array was expected. Pass y.ravel().",
            DataConversionWarning,
        )
    check_feature_names(estimator, X, reset=True)
    estimator.n_features_in_ = int(np.prod(np.shape(X)[1:]))
    return data


def check_predict_input(estimator: Any, X: Any) -> Array:
    """Probabilities of the classes seen at `fit`: (n,) for two of them, else (n, K).

    Of an estimator that takes logits, log-probabilities (n, K).
    """
    check_is_fitted(estimator)
    check_feature_names(estimator, X, reset=False)
    in_place = estimator._maps_in_place
    if estimator._takes_logits:
        kind, proba = "logits", log_softmax(check_logits(X, name="X", in_place=in_place))
    else:
        kind = "probabilities"
        proba = check_probabilities(
            X, name="X", in_place=in_place, keep_single=in_place, estimator=estimator
        )
    n_classes = len(estimator.classes_)
    n_columns = 2 if proba.ndim == 1 else proba.shape[1]
    if n_columns != n_classes:
        raise ValueError(
            f"X must hold the {kind} of the {n_classes} classes seen at fit; found "
            f"{n_columns} columns (one column stands for two classes). Pass one column for each "
            "class."
        )
    check_column_order(X, estimator.classes_, name="X")
    return proba[:, 1] if kind == "probabilities" and proba.shape[1:] == (2,) else proba


def check_sample_weight(sample_weight: Any, n: int) -> np.ndarray:
    """Finite weights of shape (n,), none negative and not all zero."""
    weight = as_array(sample_weight, "sample_weight")
    is_truth = weight.dtype.kind == "b"
    weight = check_numbers(weight.astype(np.int8) if is_truth else weight, "sample_weight")
    if weight.ndim != 1:
        raise ValueError(
            "sample_weight must be 1-D, one weight for each sample; found shape "
            f"{weight.shape}. Pass one column."
        )
    check_same_length({"the predictions": n, "sample_weight": len(weight)})
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(
            f"sample_weight must not be negative; found {float(weight[row])!r} in row {row}. Give "
            "a sample that should not count the weight 0."
        )
    if not weight.any():
        raise ValueError(
            "sample_weight must have a positive, finite sum; found 0.0: all weights are zero. Give "
            "some sample a positive weight."
        )
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total):
        raise ValueError(
            f"sample_weight must have a positive, finite sum; found one that overflows, with "
            f"weights up to {weight.max():.3g}. Divide the weights by the largest one."
        )
    return weight


def positive_weight_rows(sample_weight: Any, n: int) -> np.ndarray | slice:
    """The samples whose weight is not 0."""
    if sample_weight is None:
        return slice(None)
    weight = check_sample_weight(sample_weight, n)
    return weight / weight.sum() > MIN_WEIGHT_SHARE


def _normalize_weights(weight: np.ndarray) -> np.ndarray:
    """Weights divided by their sum, the same to the last bit in any order, and if done again."""
    total = np.sort(weight).sum()
    return weight if abs(total - 1) <= _SHARE_SUM_ATOL else weight / total


def _resolve_classes(
    observed: np.ndarray, proba: np.ndarray, pos_label: Any, labels: Any, names: tuple[str, str]
) -> np.ndarray:
    """The classes in the order of the columns of proba."""
    n_columns = 2 if proba.ndim == 1 else proba.shape[1]
    columns = (
        f"{names[1]} is 1-D and so"
        if proba.ndim == 1
        else f"{names[1]} has {n_columns} columns and"
    )
    if labels is not None:
        classes = as_labels(labels, "labels")
        if classes.dtype.kind == "O":
            classes = class_array(classes.tolist())
        if classes.ndim != 1 or len(set(classes.tolist())) != classes.size:
            raise ValueError(
                f"labels must list each class once; found {format_values(classes)}. Give the "
                "classes in "
                f"the order of the columns of {names[1]}."
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
            f"distinct labels: {format_values(observed)}. Pass one column of probabilities for "
            "each "
            "class."
        )
    if n_columns == 2:
        if pos_label is not None and observed[0] != pos_label:
            return np.unique([observed[0], pos_label])
        if observed.dtype.kind == "b":
            return np.array([False, True])
        if observed.dtype.kind in "iuf" and observed[0] in (-1, 0, 1):
            return np.array([min(observed[0], 0), 1]).astype(observed.dtype)
        if pos_label is not None and proba.ndim == 1:
            return np.array([None, pos_label], dtype=object)
    raise ValueError(
        f"{columns} stands for {n_columns} classes, but {names[0]} holds only {len(observed)} "
        f"distinct label(s): {format_values(observed)}. Name all classes with labels=[...], in the "
        "order "
        "of the columns."
    )


def check_column_order(y_proba: Any, classes: np.ndarray, name: str) -> None:
    """Columns that are named after the classes must be in the order of the classes.

    A column is named after a class if both are written alike. Files and polars know column names
    as text only, so a column "1" or "1.0" is named after the class 1, and "true" after True. All
    names may begin alike up to a separator, as "proba_0" and "proba_1" do.
    """
    columns = [] if isinstance(y_proba, np.ndarray) else column_names(y_proba)
    if not columns:
        return
    names = classes.tolist()
    written = [_as_written(name) for name in names]
    as_written = [_as_written(name) for name in columns], written
    shortened = [_as_written(name) for name in _strip_common_prefix(columns)], written
    for written_columns, expected in ((columns, names), as_written, shortened):
        if written_columns != expected and set(written_columns) == set(expected):
            in_order = [names[expected.index(column)] for column in written_columns]
            raise ValueError(
                f"The columns of {name} must be in the order of the classes, "
                f"{format_values(names)}; "
                f"found columns named {format_values(columns)}. Pass labels in the order of the "
                "columns, "
                f"{format_values(in_order)}, or reorder the columns."
            )


def _strip_common_prefix(names: list) -> list:
    """The names without the beginning that all of them share, if that ends in a separator."""
    if not all(isinstance(name, str) for name in names):
        return names
    shared = names[0] if names else ""
    while shared and (shared[-1].isalnum() or not all(name.startswith(shared) for name in names)):
        shared = shared[:-1]
    return [name[len(shared) :] for name in names]


def _as_written(value: Any) -> str:
    """The text of a column name or class; whole numbers and truth values in one spelling."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    text = re.sub(r"^([+-]?[0-9]+)\.0*$", r"\1", text)
    return {"true": "1", "false": "0"}.get(text.lower(), text)


def map_codes(observed: np.ndarray, code: np.ndarray, classes: np.ndarray, name: str) -> np.ndarray:
    """Indices into `observed` turned into indices into `classes`."""
    index = {value: k for k, value in enumerate(classes.tolist())}
    unknown = [value for value in observed.tolist() if value not in index]
    if unknown:
        raise ValueError(
            f"{name} must hold only the classes {format_values(classes)}; found "
            f"{format_values(unknown)}. Name all classes with labels=[...], of the same type "
            "as the labels."
        )
    table = np.array([index[value] for value in observed.tolist()], dtype=np.int32)
    return table[code]


def _positive_index(classes: np.ndarray, pos_label: Any) -> int:
    if len(classes) != 2:
        raise ValueError(
            f"pos_label is for two classes; found {len(classes)} classes. Leave it out, or pass "
            "the column of that class and the labels y_true == pos_label."
        )
    if pos_label not in classes.tolist():
        raise ValueError(
            f"pos_label must be one of the classes {format_values(classes)}; found {pos_label!r} "
            "(pos_label is not a valid label)."
        )
    return classes.tolist().index(pos_label)
