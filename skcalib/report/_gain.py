"""What recalibration would gain, by cross-validation."""

from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold

from .._inputs.predictions import Predictions
from .._numerics.proper import PROPER_LOSSES
from ..forecasts import DistributionForecast
from ..forecasts._data import ForecastData
from ..recalibration import AutoRecalibrator

_N_FOLDS = 5

# As many samples of two classes are recalibrated; of more, fewer by the square of their number.
_MOST_SAMPLES = 5000

# Fewer samples of each class, or forecasts, say nothing.
_FEWEST_OF_A_CLASS, _FEWEST_FORECASTS = 10, 20

# As many forecasts are recalibrated; those of any distribution, whose integrals take longer, and
# others.
_MOST_SLOW_FORECASTS, _MOST_FORECASTS = 200, 1000


def recalibration_gain(
    predictions: Predictions, rng: np.random.RandomState
) -> tuple[float, float, float] | None:
    """The mean log loss that `AutoRecalibrator` gains on samples it has not seen, and an interval.

    Of many samples a random part is used. None if there are too few for their number of classes.
    """
    n, n_classes = len(predictions.label), len(predictions.classes)
    most = max(4 * _MOST_SAMPLES // n_classes**2, 200)
    if min(n, most) < _FEWEST_OF_A_CLASS * n_classes:
        return None
    if n > most:
        predictions = predictions.take(rng.permutation(n)[:most])
    proba, label, weight = predictions.proba, predictions.label, predictions.weight
    after = np.empty(len(label), dtype=np.float64)
    for train, test in _folds(predictions, rng):
        model = AutoRecalibrator(labels=np.arange(n_classes))
        model.fit(proba[train], label[train], sample_weight=weight[train] / weight[train].max())
        moved = model.predict_proba(proba[test])
        moved = moved[:, 1] if predictions.is_binary else moved
        after[test] = PROPER_LOSSES["log_loss"](moved, label[test])
    return _mean_and_interval(predictions, PROPER_LOSSES["log_loss"](proba, label) - after)


def forecast_gain(
    data: ForecastData, rng: np.random.RandomState
) -> tuple[float, float, float] | None:
    """The same in CRPS, by `AutoRecalibrator`. None if the loss is infinite, too."""
    is_slow = isinstance(data.forecast, DistributionForecast)
    most = _MOST_SLOW_FORECASTS if is_slow else _MOST_FORECASTS
    if data.n_samples > most:
        data = data.take(rng.permutation(data.n_samples)[:most])
    before = data.forecast.crps(data.value)
    if data.n_samples < _FEWEST_FORECASTS or not np.isfinite(before).all():
        return None
    after = np.empty(data.n_samples)
    for train, test in _folds(data, rng):
        part, rest = data.take(train), data.take(test)
        model = AutoRecalibrator().fit(part.forecast, part.value, sample_weight=part.weight)
        after[test] = model.transform(rest.forecast).crps(rest.value)
    return _mean_and_interval(data, before - after) if np.isfinite(after).all() else None


def _folds(data: Predictions | ForecastData, rng: np.random.RandomState) -> Any:
    """Training and test sets that keep groups together."""
    rows = np.arange(len(data.weight))
    if data.groups is None:
        return KFold(_N_FOLDS, shuffle=True, random_state=rng).split(rows)
    folds = GroupKFold(min(_N_FOLDS, len(np.unique(data.groups))))
    return folds.split(rows, groups=data.groups)


def _mean_and_interval(
    data: Predictions | ForecastData, gain: np.ndarray
) -> tuple[float, float, float]:
    weight, groups = data.weight, data.groups
    mean = float(weight @ gain)
    parts = weight * (gain - mean)
    if groups is not None:
        parts = np.bincount(groups, parts).astype(np.float64)
    error = float(np.sqrt(np.sum(parts**2)))
    return mean, mean - 1.96 * error, mean + 1.96 * error
