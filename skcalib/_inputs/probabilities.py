"""Predicted probabilities, and logits: the scores whose softmax are probabilities."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from .._numerics.array_api import Array, as_type, row_sums
from .._numerics.logits import EPSILON, iter_row_blocks
from .arrays import (
    MIN_DISTINCT_NUMBERS,
    ArrayLike,
    are_counts,
    are_probably_measurements,
    are_probably_probabilities,
    as_array,
    as_device_floats,
    check_numbers,
    convert_numbers,
    fill_missing,
    is_number,
)
from .warnings import warn

# Largest distance of the sum of a row from 1, by the bytes of a probability; the last is for
# double precision. A softmax in single precision misses 1 by up to 1.5e-6 for a thousand
# classes, and may come converted to double precision. Single precision gets scikit-learn's
# tolerance, √ε. Half precision gets ten times the error that rounding each probability can make.
_SUM_ATOL_BY_ITEMSIZE = {2: 5e-3, 4: 3.5e-4}
ROW_SUM_ATOL = 1e-5

# By how much rounding takes a probability beyond 0 or 1, likewise: some units in the last place.
PROBABILITY_ATOL_BY_ITEMSIZE = {2: 4e-3, 4: 5e-7}
PROBABILITY_ATOL = 1e-14

# Probabilities beyond 0 or 1 by less look as if they were rounded more than that.
_MAX_ROUNDING_EXCESS = 1e-3

# The probability of larger log-odds is 1 in double precision.
_MAX_UNCERTAIN_LOGIT = 37

# Next to larger logits, differences between the other classes would be lost to rounding.
_MAX_LOGIT = 1e6


def check_probabilities(
    y_proba: ArrayLike,
    *,
    name: str = "y_proba",
    partner: str = "y_true",
    partner_values: ArrayLike | None = None,
    keep_single: bool = False,
    on_device: bool = False,
    estimator: object = None,
) -> Array:
    """Return probabilities as float64, `(n,)` for the positive class or `(n, K)` with K ≥ 2.

    The `estimator`, if any, is what takes them. With `keep_single`, those of more than two classes
    in single precision stay what they are. With `on_device`, arrays of other packages stay where
    they are, if they may (see `is_device_array`).

    Probabilities beyond 0 or 1 by at most 1e-14, in single precision 5e-7 and in half precision
    4e-3, are taken for 0 or 1. The sum of a row may miss 1 by 1e-5, in single precision by 3.5e-4,
    in half precision by 5e-3. Rows that miss it by at most 1e-5 are kept as they are: divided by
    their sums, probabilities that are tied in single precision would differ in the last digits. The
    others are divided.
    """
    if is_forecast(y_proba) and not are_probably_probabilities(y_proba):
        check_not_forecast(y_proba, name)
    device_proba = _device_probabilities(y_proba) if on_device else None
    if device_proba is not None:
        return device_proba
    proba = _as_numbers(as_array(y_proba, name))
    if proba.dtype.kind != "f" and proba.size > 0:
        _raise_wrong_type(proba, name, partner, partner_values)
    # NumPy may hold a tensor of half precision in a wider type
    itemsize = getattr(getattr(y_proba, "dtype", None), "itemsize", 8)
    tolerance = _SUM_ATOL_BY_ITEMSIZE.get(min(itemsize, proba.dtype.itemsize), ROW_SUM_ATOL)
    beyond = PROBABILITY_ATOL_BY_ITEMSIZE.get(min(itemsize, proba.dtype.itemsize), PROBABILITY_ATOL)
    proba = as_predicted(proba, name, keep_single)
    if not (proba.min() >= 0 and proba.max() <= 1):
        if not (proba.min() >= -beyond and proba.max() <= 1 + beyond):
            _raise_out_of_range(proba, beyond, name, partner_values, estimator)
        proba = np.clip(proba, 0, 1)
    if proba.ndim == 1:
        return proba
    return _check_row_sums(proba, tolerance, name, partner_values, estimator)


def check_label_proba(y_proba: ArrayLike, name: str) -> np.ndarray:
    """Probabilities of labels (n, L) that need not sum to 1, also from scikit-learn's list."""
    if isinstance(y_proba, list | tuple) and y_proba and all(np.ndim(p) == 2 for p in y_proba):
        shapes = {np.shape(p) for p in y_proba}
        if len(shapes) > 1 or shapes.pop()[1] != 2:
            raise ValueError(
                f"{name} must hold an array (n_samples, 2) for each label if it is a list; found "
                f"shapes {[np.shape(p) for p in y_proba]}. A classifier that saw one value of a "
                "label only has one column: pass the probabilities as a matrix (n_samples, "
                "n_labels)."
            )
        y_proba = np.column_stack([as_array(p, name)[:, 1] for p in y_proba])
    proba = check_numbers(y_proba, name)
    if proba.ndim != 2 or proba.size == 0:
        raise ValueError(
            f"{name} must have shape (n_samples, n_labels) with multi_class=Multilabel(), and hold "
            f"at least one prediction; found {proba.shape}. Pass one label as y_proba[:, None], or "
            "check the filter or the split that left no rows."
        )
    if proba.min() < 0 or proba.max() > 1:
        column = int(np.argmax(((proba < 0) | (proba > 1)).any(axis=0)))
        _raise_out_of_range(proba[:, column], 0.0, f"{name}[:, {column}]", None, None)
    return proba


def _device_probabilities(values: Any) -> Array | None:
    """Return probabilities on their own device; None for others, and for those to be refused."""
    proba = as_device_floats(values)
    if proba is None:
        return None
    xp = array_namespace(proba)
    itemsize = getattr(values.dtype, "itemsize", 8)
    beyond = PROBABILITY_ATOL_BY_ITEMSIZE.get(itemsize, PROBABILITY_ATOL)
    if not xp.all((proba >= 0) & (proba <= 1)):
        if not xp.all((proba >= -beyond) & (proba <= 1 + beyond)):
            return None
        proba = xp.clip(proba, 0, 1)
    if proba.ndim == 1:
        return proba
    total = xp.sum(proba, axis=1, dtype=xp.float64)
    miss = xp.abs(total - 1)
    if xp.any(miss > _SUM_ATOL_BY_ITEMSIZE.get(itemsize, ROW_SUM_ATOL)):
        return None
    if xp.all(miss <= ROW_SUM_ATOL):
        return proba
    return proba / as_type(xp.where(miss <= ROW_SUM_ATOL, 1.0, total), proba.dtype)[:, None]


def as_predicted(predicted: np.ndarray, name: str, keep_single: bool) -> np.ndarray:
    """Return predictions of at least one sample, (n,) or (n, K) with K ≥ 2, in double precision.

    With `keep_single`, those of more than two classes in single precision stay what they are.
    """
    if predicted.ndim == 2 and predicted.shape[1] == 1:
        predicted = predicted[:, 0]
    if predicted.ndim not in (1, 2):
        raise ValueError(
            f"{name} must have shape (n,) or (n, K); found shape {predicted.shape}. Pass one "
            "column for the positive class, or one for each class."
        )
    if len(predicted) == 0 or predicted.shape[-1] == 0:
        missing = "sample" if len(predicted) == 0 else "feature"
        raise ValueError(
            f"{name} must hold at least one prediction; found 0 {missing}(s) "
            f"(shape={predicted.shape}) while a minimum of 1 is required. Check the filter or the "
            "split that produced it."
        )
    if keep_single and predicted.dtype == np.float32 and predicted.shape[1:] > (2,):
        return predicted
    with np.errstate(over="ignore"):  # long doubles become infinite, which is refused
        return predicted.astype(np.float64, copy=False)


def _as_numbers(predicted: np.ndarray) -> np.ndarray:
    """Return objects as numbers, NaN for what is missing; unchanged if some are no numbers."""
    return convert_numbers(fill_missing(predicted)) if predicted.dtype.kind == "O" else predicted


def is_forecast(obj: object) -> bool:
    """True if an argument that may hold probabilities of classes holds forecasts instead.

    Forecasts have a distribution function, as those of other packages do; or are (mean, std).
    """
    if callable(getattr(obj, "cdf", None)) and not isinstance(obj, type):
        return True
    if not (isinstance(obj, tuple) and len(obj) == 2):
        return False
    mean, std = obj
    return hasattr(mean, "shape") and hasattr(std, "shape") and np.ndim(mean) == np.ndim(std) == 1


def check_not_swapped(y_true: ArrayLike, names: tuple[str, str]) -> None:
    """Refuse forecasts in place of outcomes; `names` are those of the two arguments."""
    if is_forecast(y_true):
        raise ValueError(
            f"{names[0]} must hold outcomes; found a forecast of a number, "
            f"{type(y_true).__name__}. {names[0]} and {names[1]} look swapped: exchange them."
        )


def check_not_forecast(y_proba: ArrayLike, name: str) -> None:
    """Refuse forecasts of a number, which hold no probabilities of classes."""
    if is_forecast(y_proba):
        raise ValueError(
            f"{name} must hold probabilities of classes; found a forecast of a number, "
            f"{type(y_proba).__name__}. Use a metric or test of forecasts, or the probability that "
            "the outcome y exceeds a number t: the labels y > t with as_forecast(...).sf(t)."
        )


def _raise_wrong_type(proba: np.ndarray, name: str, partner: str, partner_values: Any) -> None:
    remedy = (
        "Pass the output of predict_proba; in make_scorer set response_method='predict_proba'; "
        "convert true probabilities with .astype(float)."
    )
    remedy += _remedy_for_numbers(partner_values, is_single=proba.ndim == 1)
    if are_probably_probabilities(partner_values):
        remedy = f"{partner} and {name} look swapped: exchange them."
    values = proba.ravel().tolist()
    first = next((value for value in values if not is_number(value)), values[0])
    raise ValueError(
        f"{name} must hold probabilities as floating-point numbers; found {first!r} of type "
        f"{proba.dtype}, which is taken for a class label. {remedy}"
    )


def _remedy_for_numbers(partner_values: ArrayLike | None, *, is_single: bool = False) -> str:
    """Return the remedy if outcomes look like numbers, which have no probabilities of classes.

    Beside a single column, which is for two classes, more than two counts are numbers, too.
    """
    has_counts = is_single and are_counts(partner_values)
    if not (has_counts or are_probably_measurements(partner_values)):
        return ""
    return (
        " Forecasts of a number are passed as an EnsembleForecast, a QuantileForecast or (mean, "
        "std); see skcalib.forecasts.as_forecast."
    )


def _remedy_for_features(estimator: Any) -> str:
    """Return the remedy if an estimator of predictions got the features of a model."""
    if estimator is None:
        return ""
    kind = type(estimator).__name__
    logits = ", or logits if input_type='logits'" if "input_type" in estimator.get_params() else ""
    is_map = hasattr(estimator, "transform")
    other = f", which RecalibratedClassifier(model, {kind}()) takes" if is_map else ""
    return f" {kind} takes the output of predict_proba{logits}, not features{other}."


def _raise_out_of_range(
    proba: np.ndarray, beyond: float, name: str, partner_values: ArrayLike | None, estimator: object
) -> None:
    check_finite(proba, name)
    row = np.unravel_index(np.argmin((proba >= -beyond) & (proba <= 1 + beyond)), proba.shape)
    low, high = proba.min(), proba.max()
    remedy = _remedy_for_numbers(partner_values, is_single=proba.ndim == 1)
    if max(-low, high - 1) < _MAX_ROUNDING_EXCESS:
        remedy = f" Clip rounding errors of more than {beyond:g} with np.clip(..., 0, 1)."
    elif not remedy:
        has_sums = proba.ndim == 1 or np.allclose(proba.sum(axis=1), 100, atol=1)
        is_percent = low >= 0 and high <= 100 and has_sums
        remedy = _remedy_for_features(estimator)
        remedy += " Divide percentages by 100." if is_percent else ""
        if high <= 0 and proba.ndim == 1:
            remedy += (
                " Numbers that are all at most 0 may be logarithms of probabilities: pass np.exp "
                "of them. Log-odds become probabilities with scipy.special.expit."
            )
        elif not is_percent or high < _MAX_UNCERTAIN_LOGIT:
            remedy += (
                " Map logits to probabilities with scipy.special.softmax(logits, axis=1), or expit "
                "for one column."
            )
    raise ValueError(
        f"{name} must lie in [0, 1]; found {float(proba[row])!r} in row {row[0]}.{remedy}"
    )


def warn_of_hard_labels(proba: Array, name: str) -> None:
    """Warn of probabilities that are all 0 or 1, unless they are few, as by chance."""
    is_many = isinstance(proba, np.ndarray) and len(proba) >= MIN_DISTINCT_NUMBERS
    if is_many and not (proba[:MIN_DISTINCT_NUMBERS] % 1).any() and not (proba % 1).any():
        warn(
            f"All values of {name} are 0 or 1, as predicted labels are. Pass the output of "
            "predict_proba; if this is it, say so with labels=[...]."
        )


def check_finite(predicted: np.ndarray, name: str) -> None:
    """Refuse predictions (n,) or (n, K) that are NaN or infinite."""
    finite = np.isfinite(predicted)
    if not finite.all():
        row = np.unravel_index(np.argmin(finite), predicted.shape)
        raise ValueError(
            f"{name} must be finite; found {predicted[row]} (None, NaN or infinity) in row "
            f"{row[0]}, and {np.sum(~finite)} such value(s) in all. Leave out these rows, in all "
            "arguments, and say how many they are: a missing prediction is no 0."
        )


def _check_row_sums(
    proba: np.ndarray, tolerance: float, name: str, partner_values: ArrayLike | None, estimator: Any
) -> np.ndarray:
    """Return rows that sum to 1; rows that miss it by more than 1e-5 are divided by their sums."""
    total = np.empty(len(proba))
    for rows in iter_row_blocks(*proba.shape):
        total[rows] = row_sums(proba[rows])
    miss = np.abs(total - 1)
    worst = np.argmax(miss)
    if miss[worst] > tolerance:
        remedy = "Divide each row by its sum, or pass columns of one-vs-rest scores one at a time."
        if np.rint(total.max()) >= 2:
            remedy = (
                "Probabilities of several models are features for a LogisticRegression: take "
                "RecalibratedClassifier(StackingClassifier(models)). Else divide rows by their sum."
            )
        raise ValueError(
            f"The rows of {name} must sum to 1 (within {tolerance:g}); found a sum of "
            f"{total[worst]:.10g} in row {worst}. {remedy}"
            f"{_remedy_for_numbers(partner_values)}{_remedy_for_features(estimator)}"
        )
    return divide_by_sums(proba, total)


def tells_more_than_one(proba: Array, last: int) -> bool:
    """True if two columns (n, 2) hold more than the last one alone: more than it and 1 − p."""
    column, complement = proba[:, last], proba[:, 1 - last]
    is_small = (column > 0) & (column < EPSILON)  # 1 − p is 1
    return bool(((complement != 1 - column) | is_small).any())


def divide_by_sums(proba: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Divide the rows by their sums; those that miss 1 by at most `ROW_SUM_ATOL` stay as is."""
    is_normalized = np.abs(total - 1) <= ROW_SUM_ATOL
    return proba if is_normalized.all() else proba / np.where(is_normalized, 1.0, total)[:, None]


def check_logits(logits: ArrayLike, *, name: str, on_device: bool = False) -> Array:
    """Return logits as float64: `(n,)` log-odds of the last of two classes, or `(n, K)` with K ≥ 2.

    Those of more than two classes in single precision stay what they are. With `on_device`, arrays
    of other packages stay where they are, if they may (see `is_device_array`).
    """
    device_logits = _device_logits(logits) if on_device else None
    if device_logits is not None:
        return device_logits
    scores = _as_numbers(as_array(logits, name))
    if scores.dtype.kind not in "iuf" and scores.size > 0:
        raise ValueError(
            f"{name} must hold logits as numbers; found type {scores.dtype}. Pass the scores of "
            "the classifier before its softmax."
        )
    scores = as_predicted(scores, name, keep_single=True)
    if max(-scores.min(), scores.max()) > _MAX_LOGIT:  # infinite ones, too, but no NaN
        row = np.unravel_index(np.argmax(np.abs(scores)), scores.shape)
        raise ValueError(
            f"{name} must hold logits between {-_MAX_LOGIT:g} and {_MAX_LOGIT:g}; found "
            f"{float(scores[row])!r} in row {row[0]}. Replace a number that excludes a class by "
            "-1e4, as with np.clip(..., -1e4, 1e4)."
        )
    check_finite(scores, name)
    # rows of logits sum to 1 by chance, but hardly two of them
    are_sums = scores.ndim == 2 and all(
        np.allclose(scores[rows].sum(axis=1, dtype=np.float64), 1, rtol=0, atol=ROW_SUM_ATOL)
        for rows in iter_row_blocks(*scores.shape)
    )
    if are_sums and len(scores) > 1 and are_probably_probabilities(scores):
        raise ValueError(
            f"{name} must hold logits, as declared; found rows between 0 and 1 that sum to 1. "
            "Declare them as probabilities, or pass the scores before the softmax."
        )
    return scores


def _device_logits(values: object) -> Array | None:
    """Return logits on their own device; None for others, and for those that may be refused."""
    logits = as_device_floats(values)
    if logits is None:
        return None
    xp = array_namespace(logits)
    is_in_range = xp.all(xp.abs(logits) <= _MAX_LOGIT)
    may_be_shares = logits.ndim == 2 and xp.all((logits >= 0) & (logits <= 1))
    return logits if is_in_range and not may_be_shares else None


def check_outcomes_by_model(y_true: Mapping, y_pred: Any, name: str = "y_pred") -> None:
    """Refuse a dict of outcomes unless the predictions are a dict with the same names."""
    if not isinstance(y_pred, Mapping) or set(y_true) != set(y_pred):
        names = list(y_pred) if isinstance(y_pred, Mapping) else type(y_pred).__name__
        raise ValueError(
            f"y_true must be a dict only if {name} is one with the same names; found "
            f"{list(y_true)} and {names}. Pass {{'name': y_true}} and {{'name': {name}}}."
        )
