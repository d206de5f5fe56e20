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
from ._numbers import of_labels, reductions
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
    # the means of scores are those of events that all occurred, with probabilities to fit
    occurred = np.ones(len(predictions.label))
    losses = PROPER_LOSSES["brier"](predictions.proba, predictions.label)
    largest = 1.0 if predictions.is_binary else 2.0
    scores = {
        "brier_score_loss": (brier_score_loss, 1 - np.sqrt(np.minimum(losses / largest, 1.0))),
        "log_loss": (log_loss, of_labels(predictions)),
    }
    wanted: dict[str, tuple[Callable, np.ndarray, np.ndarray, dict[str, str]]] = {
        name: (metric, occurred, proba, {}) for name, (metric, proba) in scores.items()
    }
    for entry in METRICS.values():
        for suffix, (data, multi_class) in reductions(predictions).items():
            if entry.in_report and data.proba.size <= _MOST_VALUES:
                params = {"multi_class": multi_class}
                wanted[entry.name + suffix] = (entry.function, data.label, data.proba, params)
    shared = _shared(predictions, random_state)
    found = {}
    for name, (metric, label, proba, params) in wanted.items():
        stage(f"finding the interval of the {title_of_number(name)}")
        labels = np.arange(2 if proba.ndim == 1 else proba.shape[1])
        interval = confidence_interval(
            metric, label, proba, metric_params=params, labels=labels, **shared
        )
        scale = largest if metric is brier_score_loss else 1.0
        found[name] = (scale * interval.low, scale * interval.high)
    return found


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
