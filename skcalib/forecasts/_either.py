"""Probabilities of classes, or forecasts of a number: whichever was passed."""

from typing import Any

from .._inputs.checks import check_predictions
from .._inputs.predictions import Predictions
from ._as_forecast import is_forecast
from ._data import ForecastData, check_forecasts


def check_either(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    given: Any = None,
    names: tuple[str, str] = ("y_true", "y_proba"),
) -> Predictions | ForecastData:
    """`Predictions` from probabilities, and `ForecastData` from forecasts."""
    if is_forecast(y_proba):
        check_no_labels(labels)
        return check_forecasts(
            y_true, y_proba, sample_weight=sample_weight, given=given, names=names
        )
    check_not_given(given)
    return check_predictions(
        y_true, y_proba, sample_weight=sample_weight, labels=labels, names=names
    )


def check_no_labels(labels: Any) -> None:
    """Forecasts of a number have no classes."""
    if labels is not None:
        raise ValueError(
            f"labels must be None for forecasts of a number, which have no classes; found "
            f"{labels!r:.80}. Leave it out."
        )


def check_not_given(given: Any) -> None:
    """Measures of classes condition on the predictions."""
    if given is not None:
        raise ValueError(
            "given must be None for probabilities of classes, which are conditioned on themselves; "
            f"found {type(given).__name__}. Leave it out, or pass a forecast of a number."
        )
