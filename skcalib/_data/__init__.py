"""Checked data: what flows from a user's arguments to metrics, tests and recalibrators."""

from .base import EvaluationData as EvaluationData
from .checks import (
    Data as Data,
    check_data as check_data,
    check_fit_input as check_fit_input,
    check_forecasts as check_forecasts,
    check_given as check_given,
    check_no_labels as check_no_labels,
    check_predictions as check_predictions,
    count_groups as count_groups,
    with_given as with_given,
    with_groups as with_groups,
)
from .classes import ClassData as ClassData, MultilabelData as MultilabelData
from .forecasts import ForecastData as ForecastData

# Of classes, or of a number.
AnyData = ClassData | ForecastData
