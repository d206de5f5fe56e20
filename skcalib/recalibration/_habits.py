"""What other packages have taught people to write, and what to write here instead."""

import re
import reprlib
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from .._inputs.scikit_learn import InvalidParameterError
from ._registry import RECALIBRATORS

Function = TypeVar("Function", bound=Callable)

# Recalibrators by names for them, and others by what they are called elsewhere.
_OF_CLASSES = {
    **{type(entry.recalibrator).__name__: "" for entry in RECALIBRATORS.values()},
    "SigmoidRecalibrator": "platt logistic",
    "IntervalBinningRecalibrator": "histogram",
    "IdentityRecalibrator": "none passthrough",
    "AutoRecalibrator": "",
}
_OF_FORECASTS = {
    "PITRecalibrator": "conformal",
    "QuantileRecalibrator": "",
    "LocationScaleRecalibrator": "",
    "IdentityForecastRecalibrator": "none passthrough",
    "AutoForecastRecalibrator": "",
}


def recalibrator_named(name: Any, method: str = "predict_proba") -> str:
    """How to write the recalibrator that a name seems to mean; any, if it means none.

    Recalibrators of forecasts have the method "transform", those of classes "predict_proba".
    """
    known = _OF_FORECASTS if method == "transform" else _OF_CLASSES
    asked = re.sub("[^a-z]", "", str(name).lower())
    for family, others in known.items():
        stem = family.removesuffix("Recalibrator").lower()
        if len(asked) > 2 and (asked in stem or stem in asked or asked in others.split()):
            return f"{family}()"
    return "PITRecalibrator()" if method == "transform" else "IsotonicRecalibrator()"


def check_is_object(
    owner: Any, name: str, methods: list[str], such_as: Callable[[Any], str]
) -> None:
    """A parameter that holds an estimator: an object, neither its name nor its class."""
    value = getattr(owner, name)
    if isinstance(value, type):
        found, remedy = f"the class {value.__name__}", f"an object, {value.__name__}()"
    elif isinstance(value, str):
        found, remedy = f"the string {value!r}", f"an object such as {such_as(value)}"
    elif not all(hasattr(value, method) for method in methods):
        found, remedy = reprlib.repr(value), f"an object such as {such_as('')}"
    else:
        return
    raise InvalidParameterError(
        f"The {name!r} parameter of {type(owner).__name__} must be an object with "
        f"{' and '.join(methods)}; found {found}. Pass {remedy}."
    )


def check_cv_is_no_word(owner: Any) -> None:
    """There is no word for folds; "prefit" was one for estimators that are fitted."""
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


def without(**remedies: Callable[[Any], str]) -> Callable[[Function], Function]:
    """Decorator of `__init__`: refuses arguments of other packages with what to write instead."""

    def decorate(init: Function) -> Function:
        @wraps(init)
        def checked(self: Any, *args: Any, **params: Any) -> None:
            for name in remedies.keys() & params.keys():
                own = type(self).__name__
                raise TypeError(
                    f"{own} has no argument {name}; found {name}={params[name]!r}. "
                    f"Pass {remedies[name](params[name])}."
                )
            init(self, *args, **params)

        return checked  # type: ignore[return-value]

    return decorate
