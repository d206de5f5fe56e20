"""Labels, probabilities and weights judged together: of functions, and of estimators."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._numerics.array_api import Array
from .._numerics.logits import log_softmax
from .arrays import (
    ArrayLike,
    as_array,
    check_numbers,
    check_same_length,
    column_names,
    fill_missing,
    format_values,
)
from .labels import remedy_for_ignored
from .probabilities import check_label_proba, check_logits, check_probabilities
from .scikit_learn import check_feature_names

# A sample with a smaller share of the total weight is left out: squared, it would underflow.
MIN_WEIGHT_SHARE = 1e-150

# Shares that were computed from weights sum to 1 up to this.
_SHARE_SUM_ATOL = 1e-14


def check_predict_input(estimator: Any, X: ArrayLike) -> Array:
    """Probabilities of the classes seen at `fit`: (n, K), or (n,) of the last of two.

    Of an estimator that takes logits, log-probabilities (n, K).
    """
    check_is_fitted(estimator)
    check_feature_names(estimator, X, reset=False)
    on_device = estimator._maps_on_device
    has_indicator = getattr(getattr(estimator, "multi_class", None), "needs_indicator", False)
    if has_indicator:
        kind, proba = "probabilities", check_label_proba(X, "X")
    elif estimator._expects_logits:
        kind, proba = "logits", log_softmax(check_logits(X, name="X", on_device=on_device))
    else:
        kind = "probabilities"
        proba = check_probabilities(
            X, name="X", on_device=on_device, keep_single=on_device, estimator=estimator
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
    if n_classes == 2:
        check_column_name(find_column_names(X), estimator.classes_, name="X")
    needs_both = kind == "logits" or has_indicator or estimator._reads_both_columns
    return proba if needs_both or proba.shape[1:] != (2,) else proba[:, 1]


def check_sample_weight(sample_weight: ArrayLike | None, n: int) -> np.ndarray:
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


def check_follow_up(time: ArrayLike, event: ArrayLike, length: int | None = None) -> tuple:
    """Times as doubles (n,), and truth values (n,): whether the event was observed then."""
    value = check_numbers(time, "time", ndim=1, length=length)
    array = fill_missing(as_array(event, "event"))
    if array.shape != value.shape or not ((array == 0) | (array == 1)).all():
        raise ValueError(
            "event must hold True where it was observed and False where it was censored, or 1 and "
            f"0, for each time; found {format_values(array)} of shape {array.shape}. Convert it."
        )
    return value, array == 1


def positive_weight_rows(sample_weight: ArrayLike | None, n: int) -> np.ndarray | slice:
    """The samples whose weight is not 0."""
    if sample_weight is None:
        return slice(None)
    weight = check_sample_weight(sample_weight, n)
    is_used = weight / weight.sum() > MIN_WEIGHT_SHARE
    return slice(None) if is_used.all() else is_used


def normalize_weights(weight: np.ndarray) -> np.ndarray:
    """Weights divided by their sum, the same to the last bit in any order, and if done again."""
    total = np.sort(weight).sum()
    return weight if abs(total - 1) <= _SHARE_SUM_ATOL else weight / total


def check_column_order(y_proba: ArrayLike, classes: np.ndarray, name: str) -> None:
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
                f"{format_values(names)}; found columns named {format_values(columns)}. "
                "Reorder the columns, or name the classes in the order that they have with "
                f"labels={format_values(in_order)}."
            )


# Prefixes and suffixes of columns that are named after a class: "p_dog", "P(dog)", "dog_proba".
_AROUND_NAMES = re.compile(
    r"^(predict_)?p(red|rob|roba|robability)?[^a-z0-9]|[^a-z0-9]p(rob|roba|robability)?$|\)$", re.I
)


def find_column_names(values: object) -> list[Any]:
    """Return the names of the columns of a table, or of a single column; none if there are none."""
    is_single = getattr(values, "shape", ())[1:] in ((), (1,))
    return column_names(values) or [getattr(values, "name", None)] * is_single


def check_column_name(columns: Sequence[object], classes: np.ndarray, name: str) -> None:
    """A single column must not be named after the other of two classes.

    "dog", "p_dog" and "P(dog)" are named after the class "dog". Whole numbers are positions.
    """
    if len(columns) == 1 and isinstance(columns[0], str) and not columns[0].isdigit():
        other, event = classes.tolist()
        shortened = _AROUND_NAMES.sub("", columns[0].strip())
        if _as_written(other) in map(_as_written, (columns[0], shortened)):
            raise ValueError(
                f"{name} must hold the probability of {event!r}; found a column named "
                f"{columns[0]!r}. Pass that of the other class, or pos_label={other!r} or "
                f"labels={format_values(classes[::-1])} if it is, or the values alone."
            )


def _strip_common_prefix(names: list) -> list:
    """The names without the beginning that all of them share, if that ends in a separator."""
    if not all(isinstance(name, str) for name in names):
        return names
    shared = names[0] if names else ""
    while shared and (shared[-1].isalnum() or not all(name.startswith(shared) for name in names)):
        shared = shared[:-1]
    return [name[len(shared) :] for name in names]


def _as_written(value: object) -> str:
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
            f"as the labels.{remedy_for_ignored(unknown, name)}"
        )
    table = np.array([index[value] for value in observed.tolist()], dtype=np.int32)
    return table[code]
