"""Rows without a prediction, which are left out on request, with all that belongs to them."""

from collections.abc import Mapping
from functools import wraps
from inspect import signature
from itertools import cycle
from typing import Any, cast

import numpy as np

from .arrays import ArrayLike, as_array, check_same_length, find_missing, is_pair
from .probabilities import is_forecast
from .scikit_learn import Function, _safe_indexing, num_samples
from .warnings import warn

_OF_ROWS = ("y_true", "sample_weight", "given", "groups", "by", "by_each")


def omit_missing(function: Function) -> Function:
    """Decorate a function so that nan_policy="omit" leaves out rows where a prediction is missing.

    Of two samples that are no pairs of rows, each loses its own. Forecasts are left as they are.
    """

    @wraps(function)
    def wrapper(*args: object, **options: object) -> Any:
        bound = signature(function).bind(*args, **options)
        arguments = bound.arguments
        names = [name for name in arguments if name.startswith("y_pred")]
        models = [model for name in names for model in _values_of(arguments[name])]
        if arguments.get("nan_policy") != "omit" or any(map(is_forecast, models)):
            return function(*args, **options)
        complete = [_find_complete_rows(model) for model in models]
        pairs = {name for name in _OF_ROWS if len(names) == 2 and is_pair(arguments.get(name))}
        says_unpaired = "y_true" in pairs and len(pairs) > 1
        if len({len(rows) for rows in complete}) == 1 and not says_unpaired:
            complete = [np.logical_and.reduce(complete)]  # of all models
        for k, name in enumerate(names):
            arguments[name] = _take(name, arguments[name], complete[k:][:1] or complete)
        for name in arguments.keys() & _OF_ROWS:
            value: Any = arguments[name]
            if name in pairs:
                by_sample = zip(value, cycle(complete), strict=False)
                arguments[name] = tuple(
                    each if each is None else _take(name, each, [rows]) for each, rows in by_sample
                )
            elif value is not None:
                arguments[name] = _take(name, value, complete)
        if len(complete) == 2 and not says_unpaired:  # also if their lengths are now equal
            arguments["given"] = None, None
        result = function(*bound.args, **bound.kwargs)
        n_omitted = sum(int((~rows).sum()) for rows in complete)
        if n_omitted:
            warn(f"{n_omitted} rows without a prediction were left out (nan_policy='omit').")
        for report in _values_of(getattr(result, "reports", result)):
            if n_omitted and hasattr(report, "audit"):
                report.audit["rows dropped"] = f"{n_omitted} (with missing values)"
        return result

    return cast(Function, wrapper)


def _values_of(values: object) -> list[Any]:
    return list(values.values()) if isinstance(values, Mapping) else [values]


def _find_complete_rows(model: ArrayLike) -> np.ndarray:
    missing = find_missing(as_array(model, "y_pred"))
    return np.logical_and.reduce(~np.atleast_2d(missing.T))


def _take(name: str, values: object, complete: list[np.ndarray]) -> Any:
    """The complete rows of an argument, or of each of its columns or models by name."""
    if isinstance(values, Mapping):
        return {key: _take(name, column, complete) for key, column in values.items()}
    check_same_length({name: num_samples(values), "the predictions": len(complete[0])})
    return _safe_indexing(values, np.flatnonzero(complete[0]))
