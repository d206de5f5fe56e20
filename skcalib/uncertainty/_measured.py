"""The metric of one or several models on the same samples."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.utils import check_random_state

from .._inputs.constraints import METRIC_CONSTRAINTS, IntegerInterval
from .._inputs.predictions import Predictions
from .._inputs.probabilities import is_forecast
from .._inputs.scikit_learn import Interval, StrOptions
from .._inputs.types import RandomState
from ..forecasts._data import ForecastData, check_either
from ..metrics._registry import ALL_METRICS, entry_of, with_known, with_params
from ..metrics._statistic import MetricStatistic, check_takes_given, check_takes_kind
from ._resampling import Resamples, Units, checked_values, resampled

# The estimate of a calibrated model is taken to fall like n^-`_RATE` if the metric is unknown.
_RATE = 1 / 2

# The mean of the losses may miss the metric by this share, for it is summed in another order.
_SHARE = 1e-9

RESAMPLING_CONSTRAINTS = METRIC_CONSTRAINTS | {
    "metric": [StrOptions(set(ALL_METRICS)), callable],
    "given": "no_validation",
    "groups": "no_validation",
    "metric_params": [dict, None],
    "confidence_level": [Interval(Real, 0, 1, closed="neither")],
    "alternative": [StrOptions({"two-sided", "less", "greater"})],
    "method": [StrOptions({"auto", "resampling", "jackknife"})],
    "n_resamples": [IntegerInterval(1)],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}

Data = Predictions | ForecastData


@dataclass(frozen=True, repr=False)
class Result:
    """Numbers by name, shown with four digits."""

    def __repr__(self) -> str:
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return f"{type(self).__name__}({', '.join(f'{k}={v:.4g}' for k, v in values)})"


class Measured:
    """The metric of one or several models, of the same outcomes, weights and groups."""

    def __init__(
        self,
        metric: str | Callable,
        models: list[Data],
        metric_params: dict | None,
        *,
        as_matrix: list[bool],
        weighted: bool,
    ) -> None:
        entry = entry_of(metric)
        self.function = with_params(
            ALL_METRICS[metric].function if isinstance(metric, str) else metric,
            metric_params or {},
            own=("y_true", "y_proba", "y_forecast", "sample_weight", "labels", "given"),
        )
        if entry is not None:
            check_takes_kind(entry, models[0].kind, "metric")
        check_takes_given(self.function, models[0])
        self.statistics = [
            MetricStatistic(data, self.function, as_matrix=is_matrix, weighted=weighted)
            for data, is_matrix in zip(models, as_matrix, strict=True)
        ]
        self.n_samples = len(models[0].weight)
        is_loss = is_mean_loss(self.function)
        self.is_mean = entry.is_mean if entry else is_loss
        self.may_be_negative = entry.may_be_negative if entry else not is_loss
        self.rate = entry.rate if entry else _RATE

    def of_rows(self, rows: np.ndarray | slice) -> list[float]:
        """The values (C,) of the models for these samples."""
        parts = [one.on(one.data.take(rows)) for one in self.statistics]
        return [part(part.data.outcome[None])[0] for part in parts]

    def of_data(self) -> np.ndarray:
        """The values (C,) of all samples."""
        return checked_values([[one(one.data.outcome[None])[0] for one in self.statistics]])[0]

    def resample(
        self,
        method: str,
        n_resamples: int,
        random_state: RandomState,
        n_jobs: int | None,
        *,
        name: str = "y_true",
    ) -> Resamples:
        """The values of all samples, of subsamples unless a mean needs none, and of the jackknife.

        `name` is that of the outcomes in messages.
        """
        units = Units(self.statistics[0].data, name)
        values, rng = self.of_data(), check_random_state(random_state)
        needs_none = method == "jackknife" or (method == "auto" and self.is_mean)
        losses = self._losses(values) if self.is_mean and needs_none else None
        if losses is not None:
            jackknife = units.without_each(values, losses)
        else:
            jackknife = units.without_parts(self.of_rows, rng, n_jobs)
        n_resamples = 0 if needs_none else n_resamples
        return resampled(
            self.of_rows, values, jackknife, units, self.rate, n_resamples, rng, n_jobs
        )

    def _losses(self, values: np.ndarray) -> np.ndarray | None:
        """The losses (n, C) whose means the values are; None if they are not known."""
        losses = [
            losses_of(self.function, statistic.data, value)
            for statistic, value in zip(self.statistics, values.tolist(), strict=True)
        ]
        known = [one for one in losses if one is not None]
        return np.column_stack(known) if len(known) == len(losses) else None


def check_models(
    probas: dict[str, Any], y_true: Any, sample_weight: Any, labels: Any, given: Any, groups: Any
) -> list[Data]:
    """The checked predictions of one model or several, given by name, on the same samples."""
    check_same_kind(probas)
    models = []
    for name, y_proba in probas.items():
        data = check_either(
            y_true,
            y_proba,
            sample_weight=sample_weight,
            labels=labels,
            given=given,
            groups=groups,
            names=("y_true", name),
        )
        labels = data.known.get("labels")  # the classes of the first model hold for the next
        models.append(data)
    return models


def is_mean_loss(function: partial) -> bool:
    """Whether this is a loss of scikit-learn, which is never negative, and no sum of losses."""
    is_sum = not function.keywords.get("normalize", True)
    return _unwrapped(function) in (log_loss, brier_score_loss) and not is_sum


def losses_of(
    function: partial, data: Predictions | ForecastData, value: float
) -> np.ndarray | None:
    """The losses (n,) of which this `value` of the metric is the mean; None if they are not known.

    Arguments of scikit-learn's functions may change what they are means of: then the mean differs.
    """
    for losses in _candidates(function, data):
        if np.isclose(data.weight @ losses, value, rtol=_SHARE, atol=0):
            return losses
    return None


def _candidates(function, data):
    if isinstance(data, ForecastData):
        metric = with_known(partial(function, average=None), data.known)
        return [metric(*data.arguments(data.outcome))]
    proba = data.simplex
    of_label = np.take_along_axis(proba, data.label[:, None], axis=1)[:, 0]
    if _unwrapped(function) is log_loss:
        return [-np.log(np.maximum(of_label, np.finfo(np.float64).eps))]
    square = np.einsum("nk,nk->n", proba, proba) - 2 * of_label + 1
    return [square / 2, square]  # for two classes the half by default


def _unwrapped(function: Callable) -> Callable:
    while isinstance(function, partial):
        function = function.func
    return function


def has_several_columns(y_proba: Any) -> bool:
    shape = y_proba.shape if hasattr(y_proba, "shape") else np.shape(y_proba)
    return len(shape) == 2 and shape[1] > 1


def check_same_kind(probas: dict[str, Any]) -> None:
    """Refuse to compare forecasts with probabilities."""
    kinds = ["a forecast" if is_forecast(one) else "probabilities" for one in probas.values()]
    if len(set(kinds)) > 1:
        raise ValueError(
            f"{' and '.join(probas)} must be of the same kind; found {' and '.join(kinds)}. "
            "Compare forecasts with forecasts, and probabilities with probabilities."
        )
