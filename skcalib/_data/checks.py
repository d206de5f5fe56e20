"""The doors: arguments of functions and of `fit`, as checked data."""

import contextlib
import numbers
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from array_api_compat import array_namespace, device
from sklearn.exceptions import DataConversionWarning

from .._inputs.arrays import (
    ArrayLike,
    as_array,
    check_numbers,
    check_same_length,
    column_names,
    format_value,
    format_values,
)
from .._inputs.by import check_crossed_groups, check_groups
from .._inputs.checks import (
    check_column_name,
    check_column_order,
    check_sample_weight,
    find_column_names,
    map_codes,
    normalize_weights,
    positive_weight_rows,
)
from .._inputs.labels import as_labels, class_array, encode, label_array, remedy_for_ignored
from .._inputs.probabilities import (
    check_label_proba,
    check_logits,
    check_not_swapped,
    check_probabilities,
    is_forecast,
    tells_more_than_one,
    warn_of_hard_labels,
)
from .._inputs.scikit_learn import Label, check_feature_names, num_samples
from .._inputs.warnings import warn
from .._numerics.array_api import to_numpy
from .._numerics.dependence import UnitSums
from .._numerics.logits import log_softmax
from ..forecasts import as_forecast
from ..forecasts._base import MAX_NUMBER, check_outcomes
from .classes import ClassData, MultilabelData
from .forecasts import ForecastData

Data = TypeVar("Data", bound=ClassData | ForecastData)


def check_predictions(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    multi_class: Any = None,
    *,
    names: tuple[str, str] = ("y_true", "y_proba"),
    as_logits: bool = False,
    on_device: bool = False,
    estimator: Any = None,
) -> ClassData:
    """Labels, probabilities and weights as `ClassData`; rows of weight 0 are left out.

    A lens `multi_class` says whether labels are an indicator matrix, as `MultilabelData` hold it.

    `names` are the names of the first two arguments in error messages. With `as_logits`, the second
    holds logits. With `on_device`, arrays of other packages stay where they live, if they may. The
    `estimator`, if any, is what takes them; both columns of two classes are kept for it, if they
    tell more than one.
    """
    if getattr(multi_class, "needs_indicator", False):
        return _check_multilabel(y_true, y_proba, sample_weight, pos_label, labels, names)
    check_not_swapped(y_true, names)
    values = label_array(y_true, name=names[0], partner=names[1])
    log_proba = None
    if as_logits:
        logits = check_logits(y_proba, name=names[1], on_device=on_device)
        log_proba = log_softmax(logits)
        exp = array_namespace(log_proba).exp
        proba = exp(log_proba[:, 1] if logits.ndim == 1 else log_proba)
    else:
        partner: Any = {"name": names[1], "partner": names[0], "partner_values": y_true}
        proba = check_probabilities(
            y_proba, **partner, keep_single=True, on_device=on_device, estimator=estimator
        )
    observed, code = encode(values, name=names[0], partner=names[1])
    check_same_length({names[0]: len(code), names[1]: proba.shape[0]})
    classes = _resolve_classes(observed, proba, pos_label, labels, names)
    check_column_order(y_proba, classes, name=names[1])
    if labels is None and not as_logits:  # an estimator's predict_proba comes with its classes
        warn_of_hard_labels(proba, names[1])
    label = code if classes is observed else map_codes(observed, code, classes, name=names[0])
    positive = 1 if pos_label is None else _positive_index(classes, pos_label)
    complement = None
    if proba.ndim == 2 and proba.shape[1] == 2:
        if not (as_logits or estimator is None) and tells_more_than_one(proba, positive):
            complement = proba[:, 1 - positive]
        proba = proba[:, positive]
    if positive == 0:
        label, classes = 1 - label, classes[::-1]
    if proba.ndim == 1 and complement is None:
        check_column_name(find_column_names(y_proba), classes, name=names[1])
    n = len(label)
    share = np.broadcast_to(1.0 / n, n)
    data = ClassData(
        proba, label, classes, weight=share, log_proba=log_proba, complement=complement
    )
    if sample_weight is not None:
        rows = positive_weight_rows(sample_weight, n)
        share = normalize_weights(check_sample_weight(sample_weight, n)[rows])
        data = replace(data.take(rows), weight=share)
    if data.is_on_host:
        return data
    xp, where = array_namespace(proba), device(proba)  # labels and weights join them there
    label = xp.asarray(data.label.astype(np.int64), device=where)
    return replace(data, label=label, weight=xp.asarray(np.array(data.weight), device=where))


def _check_multilabel(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    sample_weight: ArrayLike | None,
    pos_label: Label | None,
    labels: ArrayLike | None,
    names: tuple[str, str],
) -> MultilabelData:
    """Labels (n, L), and probabilities (n, L) or scikit-learn's list of L arrays (n, 2)."""
    if pos_label is not None:
        raise ValueError(
            f"pos_label must be None for an indicator matrix, whose labels are 0 and 1; found "
            f"{pos_label!r}. Leave it out."
        )
    y_names, proba_names = column_names(y_true), column_names(y_proba)
    if y_names and proba_names and y_names != proba_names and set(y_names) == set(proba_names):
        raise ValueError(
            f"{names[1]} must have its columns in the order of {names[0]}, "
            f"{format_values(y_names)}; found {format_values(proba_names)}. Reorder them."
        )
    label = as_array(y_true.toarray() if hasattr(y_true, "toarray") else y_true, names[0])
    proba = check_label_proba(y_proba, names[1])
    if label.shape != proba.shape or not len(label):
        raise ValueError(
            f"{names[0]} must be an indicator matrix (n_samples, n_labels), and {names[1]} hold a "
            f"probability for each entry; found shapes {label.shape} and {proba.shape}. Pass a "
            "single label as one column, y[:, None]."
        )
    is_binary = np.isin(label, [0, 1]) if label.dtype.kind in "biuf" else np.zeros(label.shape)
    if not is_binary.all():
        raise ValueError(
            f"{names[0]} must hold 0 and 1, or False and True, with multi_class=Multilabel(); "
            f"found {label.ravel()[is_binary.argmin()]}. Where labels are missing, pass columns by "
            "themselves, without such rows. Else make the matrix with sklearn.preprocessing."
            f"MultiLabelBinarizer, or exchange {names[0]} and {names[1]} if they are swapped."
        )
    n, n_labels = label.shape
    classes = as_labels(y_names or range(n_labels) if labels is None else labels, "labels")
    if classes.shape != (n_labels,) or len(set(classes.tolist())) != n_labels:
        raise ValueError(
            f"labels must name each of the {n_labels} columns once; found "
            f"{format_values(classes)}. Give them in the order of the columns."
        )
    for name, values in zip(names, (y_true, y_proba), strict=True):
        check_column_order(values, classes, name)
    rows = positive_weight_rows(sample_weight, n)
    weight = np.ones(n) if sample_weight is None else check_sample_weight(sample_weight, n)[rows]
    share = np.broadcast_to(1.0 / n, n) if sample_weight is None else normalize_weights(weight)
    return MultilabelData(proba[rows], label[rows].astype(np.int32), classes, weight=share)


def check_fit_input(
    estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None, multi_class: Any = None
) -> ClassData:
    """`ClassData` from the arguments of `fit`; sets what scikit-learn's estimators know of X."""
    labelled, names = (y, X, sample_weight, None, estimator.labels, multi_class), ("y", "X")
    takes = {"as_logits": estimator._expects_logits, "on_device": estimator._fits_on_device}
    data = check_predictions(*labelled, names=names, **takes, estimator=estimator)
    if np.shape(y)[1:] == (1,) and data.label.ndim == 1:
        warn(
            "A column-vector y was passed when a 1d array was expected. Pass y.ravel().",
            DataConversionWarning,
        )
    is_column = estimator._expects_logits and np.shape(X)[1:] in ((), (1,)) and data.is_on_host
    if is_column and data.weight @ data.label > 0.5 and data.proba.max() <= 0.5:
        warn(
            "X holds log-odds that are all at most 0, so that no event is likely, but most labels "
            "are events. If these are logarithms of probabilities, pass np.exp of them, with "
            "input_type='probabilities'."
        )
    estimator._reads_both_columns = data.complement is not None
    check_feature_names(estimator, X, reset=True)
    is_list = data.label.ndim == 2  # maybe of arrays (n, 2)
    estimator.n_features_in_ = data.label.shape[1] if is_list else int(np.prod(np.shape(X)[1:]))
    return data


def _resolve_classes(
    observed: np.ndarray, proba: np.ndarray, pos_label: Any, labels: Any, names: tuple[str, str]
) -> np.ndarray:
    """The classes in the order of the columns of proba."""
    n_columns = 2 if proba.ndim == 1 else proba.shape[1]
    shape = "is 1-D and so" if proba.ndim == 1 else f"has {n_columns} columns and"
    columns = f"{names[1]} {shape}"
    if labels is not None:
        classes = as_labels(labels, "labels")
        if classes.dtype.kind == "O":
            classes = class_array(classes.tolist())
        if classes.ndim != 1 or len(set(classes.tolist())) != classes.size:
            raise ValueError(
                f"labels must list each class once; found {format_values(classes)}. Give the "
                f"classes in the order of the columns of {names[1]}."
            )
        if len(classes) != n_columns:
            raise ValueError(
                f"labels must name one class for each column: {columns} stands for {n_columns} "
                f"classes; found {len(classes)} labels. Give them in the order of the columns."
            )
        return classes
    remedy = remedy_for_ignored(observed.tolist(), names[0])
    if len(observed) == n_columns:
        if proba.ndim == 1 and pos_label is None and not _are_numbers(observed):
            first, last = observed.tolist()
            raise ValueError(
                f"{names[0]} must tell which label is the event, whose probability {names[1]} "
                f"holds; found {format_values(observed)} (pos_label is not specified). Pass "
                f"labels=[{first!r}, {last!r}], with the event last, or turn labels into 0 and 1."
            )
        n_codes = np.isin(range(n_columns), observed).sum()  # {0, 255} may be a binary mask
        if remedy and n_codes == n_columns - 1 and (n_columns > 2 or observed[0] == -100):
            warn(f"{names[0]} holds {format_values(observed)}, taken for classes.{remedy}")
        return observed
    if len(observed) > n_columns:
        raise ValueError(
            f"{columns} stands for {n_columns} classes, but {names[0]} holds {len(observed)} "
            f"distinct labels: {format_values(observed)}. Pass one column of probabilities for "
            f"each class; beside a confidence, whether the answer was right.{remedy}"
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
        "order of the columns."
    )


def _are_numbers(classes: np.ndarray) -> bool:
    """Numbers, False and True say by themselves which is the event: the larger."""
    return all(isinstance(value, numbers.Real | np.bool) for value in classes.tolist())


def _positive_index(classes: np.ndarray, pos_label: Label | None) -> int:
    if len(classes) != 2:
        raise ValueError(
            f"pos_label is for two classes; found {len(classes)} classes. Leave it out, or pass "
            "the column of that class and the labels y_true == pos_label."
        )
    if isinstance(pos_label, np.ndarray) or pos_label not in classes.tolist():
        raise ValueError(
            f"pos_label must be one of the classes {format_values(classes)}; found {pos_label!r} "
            "(pos_label is not a valid label)."
        )
    return classes.tolist().index(pos_label)


def check_forecasts(
    y_true: ArrayLike,
    y_forecast: object,
    *,
    sample_weight: ArrayLike | None = None,
    given: ArrayLike | None = None,
    names: tuple[str, str] = ("y_true", "y_forecast"),
    may_be_impossible: bool = False,
) -> ForecastData:
    """Outcomes, forecasts and weights as `ForecastData`; rows of weight 0 are left out.

    `names` are the names of the first two arguments in error messages. With `may_be_impossible`,
    outcomes may lie beyond the support of their forecasts.
    """
    check_not_swapped(y_true, names)
    forecast = as_forecast(y_forecast, name=names[1])
    value = check_outcomes(y_true, len(forecast), names[0])
    if len(value) == 0:
        raise ValueError(
            f"{names[0]} must hold at least one outcome; found none (0 sample(s)). Check which "
            "rows were taken."
        )
    forecast._check_outcomes(value, names[0], may_be_impossible=may_be_impossible)
    given = None if given is None else check_given(given, len(value))
    n = len(value)
    if sample_weight is None:
        return ForecastData(forecast, value, weight=np.broadcast_to(1.0 / n, n), given=given)
    weight = check_sample_weight(sample_weight, n)
    data = ForecastData(forecast, value, weight=weight, given=given)
    return data.take(positive_weight_rows(weight, n))


def check_given(given: ArrayLike, n: int) -> np.ndarray:
    """Features (n, d), or labels of groups (n,) of any type."""
    array = as_array(given, "given")
    if array.shape[1:] == (0,):
        raise ValueError(
            "given must name at least one column; found none. Pass a column, or leave given out."
        )
    check_same_length({"y_true": n, "given": len(array)})
    if array.dtype.kind == "O":
        with contextlib.suppress(ValueError):
            array = check_numbers(array, "given", finite=False)
    is_group = array.dtype.kind in "OUSMmb"
    return _labels_of_groups(array) if is_group else check_numbers(array, "given", most=MAX_NUMBER)


def _labels_of_groups(labels: np.ndarray) -> np.ndarray:
    """Labels of groups, (n,), which can be sorted."""
    if labels.ndim > 1 and labels.shape[1] != 1:
        raise ValueError(
            "given must hold numbers, or one column of labels of groups; found "
            f"{labels.shape[1]} columns of type {labels.dtype}. Join them into one label for each "
            "sample, or encode them as numbers."
        )
    labels = labels.ravel()
    try:
        np.unique(labels)
    except TypeError as error:
        types = sorted({type(label).__name__ for label in labels.tolist()})
        raise ValueError(
            f"given must hold labels of one type, none of them missing; found {', '.join(types)}. "
            "Name the missing ones, such as 'unknown', or turn all into strings."
        ) from error
    return labels


def check_data(
    y_true: ArrayLike,
    y_pred: Any,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    given: ArrayLike | None = None,
    *,
    groups: ArrayLike | None = None,
    names: tuple[str, str] = ("y_true", "y_pred"),
    multi_class: Any = None,
    may_be_numbers: bool = False,
    on_device: bool = False,
) -> ClassData | ForecastData:
    """`ClassData` from probabilities, and `ForecastData` from forecasts.

    With `may_be_numbers`, the outcomes tell if the predictions do not.
    """
    if is_forecast(y_pred) or (may_be_numbers and _is_forecast_problem(y_true, y_pred)):
        check_no_labels(labels, pos_label)
        data: ClassData | ForecastData = check_forecasts(
            y_true, y_pred, sample_weight=sample_weight, given=given, names=names
        )
    else:
        labelled = y_true, y_pred, sample_weight, pos_label, labels, multi_class
        data = check_predictions(*labelled, names=names, on_device=on_device)
        data = with_given(data, y_true, given, sample_weight)
    return data if groups is None else with_groups(data, y_true, groups, sample_weight)


def _is_forecast_problem(y_true: Any, y_pred: object) -> bool:
    """True if the arguments are outcomes and forecasts, not labels and probabilities.

    Fractions are no labels; and two columns in a tuple are the mean and the standard deviation.
    """
    values = as_array(y_true, "y_true")
    if isinstance(y_pred, tuple) and len(y_pred) == 2 and len(values) != 2:
        return True
    return values.dtype.kind == "f" and not np.array_equal(values, np.rint(values), equal_nan=True)


def with_given(data: ClassData, y_true: Any, given: Any, sample_weight: Any) -> ClassData:
    """Add the features to condition on; rows of weight 0 are left out."""
    if given is None:
        return data
    given = check_given(given, num_samples(y_true))
    return replace(data, given=given[positive_weight_rows(sample_weight, len(given))])


def with_groups(
    data: Data, y_true: Any, groups: object, sample_weight: Any, *, may_be_crossed: bool = True
) -> Data:
    """Add codes of one or two columns of groups, without rows of weight 0 and their groups."""
    if groups is None:
        return data
    check = check_crossed_groups if may_be_crossed else check_groups
    return replace(data, groups=check(groups, num_samples(y_true), sample_weight))


def count_groups(data: Data, groups: np.ndarray) -> Data:
    """Add codes of groups (n,), and let the effective number of samples be what they show.

    That is 1 / (Σ w_i² + ρ Σ w_i w_j) over pairs i ≠ j within groups, where ρ is the correlation
    of residuals there: 0 if samples are independent, 1 if they are copies of each other.
    """
    units = UnitSums(to_numpy(data.weight), groups)
    square = units.weight**2
    pairs = units.weight * units.share[units.code] - square
    square += units.correlation(data.iter_residuals()) * pairs
    return replace(data, groups=groups, square=square)


def check_no_labels(labels: ArrayLike | None, pos_label: Label | None = None) -> None:
    """Refuse labels of classes for forecasts of a number."""
    for name, value in (("pos_label", pos_label), ("labels", labels)):
        if value is not None:
            raise ValueError(
                f"{name} must be None for forecasts of a number, which have no classes; found "
                f"{format_value(value)}. Leave it out."
            )
