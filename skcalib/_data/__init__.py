"""Checked data: what flows from a user's arguments to metrics, tests and recalibrators."""

from .base import EvaluationData
from .checks import (
    Data,
    check_data,
    check_fit_input,
    check_forecasts,
    check_given,
    check_no_labels,
    check_predictions,
    count_groups,
    with_given,
    with_groups,
)
from .classes import ClassData, MultilabelData
from .forecasts import ForecastData

__all__ = [
    "AnyData",
    "ClassData",
    "Data",
    "EvaluationData",
    "ForecastData",
    "MultilabelData",
    "check_data",
    "check_fit_input",
    "check_forecasts",
    "check_given",
    "check_no_labels",
    "check_predictions",
    "count_groups",
    "with_given",
    "with_groups",
]

# Of classes, or of a number.
AnyData = ClassData | ForecastData
