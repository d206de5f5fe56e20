"""The intervals of the numbers of a report."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import brier_score_loss, log_loss

from .._inputs.predictions import Predictions
from .._numerics.proper import PROPER_LOSSES
from ..forecasts._data import ForecastData
from ..metrics._registry import ALL_METRICS, FORECAST_METRICS, METRICS
from ..uncertainty import ConfidenceInterval, confidence_interval
from ._numbers import reductions
from ._progress import stage
from ._titles import title_of_number

# Resamples of the intervals, and values of predictions in the measures that get one.
_N_RESAMPLES = 199
_MOST_VALUES = 200_000

# Fewer than 10 independent samples say nothing about how a measure varies.
_LARGEST_SHARE = 0.1 + 1e-12

Ends = dict[str, tuple[float, float]]


def intervals(predictions: Predictions, random_state: np.random.RandomState) -> Ends:
    """The 95 % confidence intervals of scores and measures, by name, if they take seconds."""
    if share_of_one(predictions) > _LARGEST_SHARE:
        return {}
    is_binary, label = predictions.is_binary, predictions.label
    wanted: dict[str, tuple[Callable, dict[str, str]]] = {
        "brier_score_loss": (brier_score_loss if is_binary else _brier_score_of_classes, {}),
        "log_loss": (log_loss, {}),
    }
    for entry in METRICS.values():
        for suffix, multi_class in reductions(predictions).items() if entry.in_report else ():
            n_values = predictions.proba.size if multi_class == "classwise" else len(label)
            if n_values <= _MOST_VALUES:
                wanted[entry.name + suffix] = (entry.function, {"multi_class": multi_class})
    proba = predictions.proba if is_binary else predictions.simplex
    shared = _shared(predictions, random_state)
    shared["labels"] = np.arange(len(predictions.classes))
    found = {}
    for name, (metric, params) in wanted.items():
        stage(f"finding the interval of the {title_of_number(name)}")
        method = "jackknife" if metric is _brier_score_of_classes else "auto"
        interval = confidence_interval(
            metric, label, proba, metric_params=params, method=method, **shared
        )
        found[name] = (interval.low, interval.high)
    return found


def _brier_score_of_classes(y_true, y_proba, *, sample_weight=None):
    """Scikit-learn's takes two classes only before 1.7."""
    return float(np.average(PROPER_LOSSES["brier"](y_proba, y_true), weights=sample_weight))


def forecast_intervals(
    data: ForecastData, numbers: dict[str, Any], random_state: np.random.RandomState
) -> Ends:
    """The same of those measures of forecasts that are among the numbers."""
    if share_of_one(data) > _LARGEST_SHARE:
        return {}
    found = {}
    for entry in FORECAST_METRICS.values():
        takes_seconds = entry.is_mean or data.n_samples <= _MOST_VALUES
        if entry.in_report and entry.name in numbers and takes_seconds:
            stage(f"finding the interval of the {entry.title}")
            interval = confidence_interval(
                entry.name, data.value, data.forecast, **_shared(data, random_state)
            )
            found[entry.name] = (interval.low, interval.high)
    return found


def subgroup_interval(
    metric: str, data: Predictions | ForecastData, random_state: np.random.RandomState
) -> ConfidenceInterval:
    """That of a metric of some samples; its ends are NaN if they are too few."""
    outcome, predicted = data.arguments(data.outcome)
    if share_of_one(data) > _LARGEST_SHARE:
        function = ALL_METRICS[metric].function
        estimate = function(outcome, predicted, sample_weight=data.weight, **data.known)
        return ConfidenceInterval(float(estimate), np.nan, np.nan, 0.95)
    return confidence_interval(
        metric, outcome, predicted, **_shared(data, random_state), **data.known
    )


def share_of_one(data: Predictions | ForecastData) -> float:
    """One over the effective number of samples, or of groups if there are any."""
    if data.groups is None:
        return data.share_of_one_sample
    return float(np.sum(np.bincount(data.groups, data.weight) ** 2))


def _shared(
    data: Predictions | ForecastData, random_state: np.random.RandomState
) -> dict[str, Any]:
    """What all intervals get."""
    return {
        "sample_weight": None if np.ptp(data.weight) == 0 else data.weight,
        "groups": data.groups,
        "n_resamples": _N_RESAMPLES,
        "random_state": random_state,
    }
