"""Checks of the parameters of meta-estimators: estimators, folds, subgroups."""

import reprlib
from collections.abc import Container
from difflib import get_close_matches
from inspect import signature
from typing import Any

import numpy as np

from .._guesses import WRITE_INSTEAD
from .._inputs.by import to_columns
from .._inputs.scikit_learn import InvalidParameterError, check_method_params
from ._base import find_needed_arguments, is_order_preserving
from ._registry import FORECAST_RECALIBRATORS, RECALIBRATORS

# Class names that messages suggest, by the method that is needed; the first one by default.
_SUGGESTED_NAMES = {
    "predict_proba": [
        "IsotonicRecalibrator",
        *[type(entry.recalibrator).__name__ for entry in RECALIBRATORS.values()],
        "AutoRecalibrator",
    ],
    "transform": [
        *[type(recalibrator).__name__ for recalibrator in FORECAST_RECALIBRATORS.values()],
        "AutoRecalibrator",
    ],
}


def suggest_recalibrator(name: Any, method: str = "predict_proba") -> str:
    """Return code for the recalibrator whose name is closest to this one, or for the usual one.

    The method is "transform" for recalibrators of forecasts, "predict_proba" for those of classes.
    """
    names = _SUGGESTED_NAMES[method]
    alias = WRITE_INSTEAD.get(str(name).lower(), "").rpartition(".")[2]
    if alias in names:
        return alias + "()"
    stems = [class_name.removesuffix("Recalibrator").lower() for class_name in names]
    close = get_close_matches(str(name).lower().removesuffix("recalibrator"), stems, n=1)
    return names[stems.index(close[0]) if close else 0] + "()"


def check_is_object(owner: object, name: str, methods: list[str], example: str) -> None:
    """Refuse names, classes and objects that lack a method, where an estimator is needed."""
    value = getattr(owner, name)
    if isinstance(value, type):
        description, remedy = f"the class {value.__name__}", f"an object, {value.__name__}()"
    elif isinstance(value, str):
        description, remedy = f"the string {value!r}", f"an object such as {example}"
    elif not all(hasattr(value, method) for method in methods):
        description, remedy = reprlib.repr(value), f"an object such as {example}"
    else:
        return
    raise InvalidParameterError(
        f"The {name!r} parameter of {type(owner).__name__} must be an object with "
        f"{' and '.join(methods)}; found {description}. Pass {remedy}."
    )


def check_recalibrator(owner: Any, method: str) -> None:
    """Refuse a parameter `recalibrator` that is neither None nor an object with fit and method."""
    if owner.recalibrator is not None:
        example = suggest_recalibrator(owner.recalibrator, method)
        check_is_object(owner, "recalibrator", ["fit", method], example)


def check_candidates(candidates: Any, method: str, reserved: Container[str] = ()) -> dict[str, Any]:
    """Check pairs of a name and a recalibrator with `fit` and the method; return a dictionary.

    The names are none of those reserved, which `set_params` sets.
    """

    def example(meant: Any) -> str:
        name = meant if isinstance(meant, str) else "my choice"
        return f"Pass a list such as [({name!r}, {suggest_recalibrator(meant, method)})]."

    if not isinstance(candidates, list | tuple):
        raise ValueError(
            "candidates must be a list of pairs of a name and a recalibrator, or None; found "
            f"{reprlib.repr(candidates)}. {example(candidates)}"
        )
    by_name: dict[str, Any] = {}
    for pair in candidates:
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise ValueError(
                "candidates must be pairs of a name and a recalibrator; found "
                f"{reprlib.repr(pair)}. {example(pair)}"
            )
        name, recalibrator = pair
        is_estimator = hasattr(recalibrator, "fit") and hasattr(recalibrator, method)
        if isinstance(recalibrator, type) or not is_estimator:
            raise ValueError(
                f"candidates must be objects with the methods fit and {method}; found "
                f"{reprlib.repr(recalibrator)} under the name {name!r}. {example(name)}"
            )
        if name in reserved or "__" in name:
            raise ValueError(
                "candidates must have names without '__' that are no parameters of "
                f"AutoRecalibrator; found {name!r}. Choose another name."
            )
        if name == "none" or name in by_name:
            raise ValueError(
                "candidates must have different names, none of them 'none', which stands for no "
                f"recalibration; found {name!r}{' twice' * (name in by_name)}. Choose another name."
            )
        by_name[name] = recalibrator
    return by_name


def check_can_keep_order(candidates: Any, is_forecast: bool) -> None:
    """Refuse forecasts, which have no classes, and candidates that change the order of classes."""
    if is_forecast:
        raise ValueError(
            "keep_order must be False for forecasts of a number, which have no classes; found True."
            " Leave it out."
        )
    for name, recalibrator in check_candidates(candidates, "predict_proba").items():
        if not is_order_preserving(recalibrator):
            raise ValueError(
                "candidates must keep the order of the classes in each row if keep_order=True, as "
                "TemperatureRecalibrator() and EnsembleTemperatureRecalibrator() do; found "
                f"{reprlib.repr(recalibrator)} under the name {name!r}. Leave it out, or set "
                "keep_order=False."
            )


def check_cv_is_no_string(owner: Any) -> None:
    """Refuse strings as `cv`; "prefit" was a string of scikit-learn for fitted estimators."""
    if not isinstance(owner.cv, str):
        return
    remedy = "Pass the number of folds, as in cv=5."
    if owner.cv == "prefit":
        remedy = (
            "Freeze the fitted estimator: pass FrozenEstimator(estimator), from sklearn.frozen, "
            "and leave out cv."
        )
    raise InvalidParameterError(
        f"The 'cv' parameter of {type(owner).__name__} must be a number of folds, a splitter or an "
        f"iterable of splits; found {owner.cv!r}. {remedy}"
    )


def check_supports_arguments(recalibrator: Any, arguments: dict[str, Any], method: str) -> None:
    """Refuse `by` and `given` that `fit` does not take, and the lack of what it needs."""
    by, given = arguments.get("by"), arguments.get("given")
    parameters = signature(recalibrator.fit).parameters
    parameter, name = parameters.get("by"), type(recalibrator).__name__
    passed = {"by"} if given is None else {"by", "given"}
    for needed in find_needed_arguments(recalibrator) - passed:
        remedy = "Make it the last step of a pipeline after PredictProba, with metadata routing"
        if needed == "given":
            remedy = "Pass RecalibratedClassifier(..., given='X'), or the names of columns of X"
        raise ValueError(
            "recalibrator must require no fit arguments but X, y and by; found "
            f"{name}, which requires {needed}. {remedy}."
        )
    if given is not None and "given" not in parameters:
        raise ValueError(
            f"given must be None for a recalibrator whose fit takes no given; found features for "
            f"{name}. Choose a FeatureRecalibrator."
        )
    if by is not None and parameter is None:
        raise ValueError(
            f"by must be None for a recalibrator whose fit takes no by; found subgroups for "
            f"{name}. Choose a SubgroupRecalibrator."
        )
    if by is None and parameter is not None and parameter.default is parameter.empty:
        raise ValueError(
            f"by must hold the subgroup of each sample for {name}; found None. Pass them to the "
            f"method: {method}."
        )


def take_row_arguments(arguments: dict[str, Any], n: int, rows: np.ndarray) -> dict[str, Any]:
    """Return the arguments `by` and `given` for some of n samples.

    Columns keep their names and types.
    """
    return {
        name: check_method_params(range(n), to_columns(columns, n, name), indices=rows)
        for name, columns in arguments.items()
    }
