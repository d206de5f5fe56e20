"""Probabilities of classes, or forecasts of a number: whichever was passed."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from .._inputs.arrays import as_array
from .._inputs.checks import check_predictions, rows_that_count
from .._inputs.groups import check_groups, check_several_groups, codes_by_appearance
from .._inputs.predictions import Predictions
from .._inputs.probabilities import is_forecast
from ._data import ForecastData, check_forecasts, check_given

Data = TypeVar("Data", bound=Predictions | ForecastData)


def check_either(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    given: Any = None,
    groups: Any = None,
    names: tuple[str, str] = ("y_true", "y_proba"),
) -> Predictions | ForecastData:
    """`Predictions` from probabilities, and `ForecastData` from forecasts."""
    if is_forecast(y_proba):
        check_no_labels(labels)
        data = check_forecasts(
            y_true, y_proba, sample_weight=sample_weight, given=given, names=names
        )
        return with_groups(data, y_true, groups, sample_weight)
    predictions = check_predictions(
        y_true, y_proba, sample_weight=sample_weight, labels=labels, names=names
    )
    predictions = with_given(predictions, y_true, given, sample_weight)
    return with_groups(predictions, y_true, groups, sample_weight)


def holds_forecasts(y_true: Any, y_proba: Any) -> bool:
    """Whether the arguments are outcomes and forecasts, rather than labels and probabilities.

    Fractions are no labels; and two columns in a tuple are the mean and the standard deviation.
    """
    if is_forecast(y_proba):
        return True
    if isinstance(y_proba, tuple) and len(y_proba) == 2 and len(y_true) != 2:
        return True
    values = as_array(y_true, "y_true")
    return values.dtype.kind == "f" and not np.array_equal(values, np.rint(values), equal_nan=True)


def with_given(
    predictions: Predictions, y_true: Any, given: Any, sample_weight: Any
) -> Predictions:
    """The predictions with what they are conditioned on; rows of weight 0 are left out."""
    if given is None:
        return predictions
    given = check_given(given, len(y_true))
    return replace(predictions, given=given[rows_that_count(sample_weight, len(y_true))])


def with_groups(data: Data, y_true: Any, groups: Any, sample_weight: Any) -> Data:
    """The data with codes of their groups; rows of weight 0, and their groups, are left out."""
    if groups is None:
        return data
    code = check_groups(groups, len(y_true))
    code = codes_by_appearance(code[rows_that_count(sample_weight, len(y_true))])
    check_several_groups(code)
    return replace(data, groups=code)


def check_no_labels(labels: Any, pos_label: Any = None) -> None:
    """Forecasts of a number have no classes."""
    for name, value in (("pos_label", pos_label), ("labels", labels)):
        if value is not None:
            raise ValueError(
                f"{name} must be None for forecasts of a number, which have no classes; found "
                f"{value!r:.80}. Leave it out."
            )
