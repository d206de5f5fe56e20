"""A metric of one or several models, resampled."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from .._inputs.constraints import METRIC_CONSTRAINTS, IntegerInterval
from .._inputs.drawing import seeded_batches
from .._inputs.groups import codes_by_appearance
from .._inputs.predictions import Predictions
from .._inputs.probabilities import is_forecast
from .._inputs.scikit_learn import Interval, StrOptions
from .._inputs.types import RandomState
from ..forecasts._data import ForecastData, check_either
from ..metrics._registry import ALL_METRICS, entry_of, with_params
from ..metrics._statistic import MetricStatistic, check_takes_given, check_takes_kind
from ._limits import Resamples
from ._means import is_mean, is_mean_loss, losses_of

# Samples in a subsample, in units of √n: a small part of all, but enough for 15 bins if n is 100.
_SUBSAMPLE = 3

# The effective size of a subsample, as a part of that of all samples, counts as at most this.
_LARGEST_RATIO = 0.8

# Numbers of samples that miss a whole number by less are that number.
_ROUNDING = 1e-6

# The number of parts of which the jackknife leaves out one at a time.
_PARTS = 100

# The estimate of a calibrated model is taken to fall like n^-`_RATE` if the metric is unknown.
_RATE = 1 / 2

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


@dataclass(frozen=True, repr=False)
class Result:
    """Numbers by name, shown with four digits."""

    def __repr__(self) -> str:
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return f"{type(self).__name__}({', '.join(f'{k}={v:.4g}' for k, v in values)})"


def check_models(
    probas: dict[str, Any], y_true: Any, sample_weight: Any, labels: Any, given: Any, groups: Any
) -> list[Predictions | ForecastData]:
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


class Estimates:
    """The metric of one or several models on the same samples, whole and resampled.

    What is drawn and left out are whole groups, or samples if there are none. Each `model` has the
    same outcomes, weights and groups.
    """

    def __init__(
        self,
        metric: str | Callable,
        models: list[Predictions | ForecastData],
        metric_params: dict | None,
        *,
        as_matrix: list[bool],
        weighted: bool,
        name: str = "y_true",
    ) -> None:
        self.name = name  # of the outcomes, in messages
        entry = entry_of(metric)
        function = with_params(
            ALL_METRICS[metric].function if isinstance(metric, str) else metric,
            metric_params or {},
            own=("y_true", "y_proba", "y_forecast", "sample_weight", "labels", "given"),
        )
        if entry is not None:
            check_takes_kind(entry, models[0].kind, "metric")
        check_takes_given(function, models[0])
        self.statistics = [
            MetricStatistic(data, function, as_matrix=is_matrix, weighted=weighted)
            for data, is_matrix in zip(models, as_matrix, strict=True)
        ]
        self.function = function
        self.is_mean = is_mean(function)
        self.may_be_negative = entry.may_be_negative if entry else not is_mean_loss(function)
        self.rate = entry.rate if entry else _RATE
        self.weight = models[0].weight
        self.n_samples = len(self.weight)
        self.groups = models[0].groups
        self.unit = (
            np.arange(self.n_samples) if self.groups is None else codes_by_appearance(self.groups)
        )
        self.n_units = int(self.unit.max()) + 1
        self.effective_size = self.effective_size_of(slice(None))
        drawn = _SUBSAMPLE * self.n_units / np.sqrt(self.effective_size)
        self.n_drawn = min(int(np.ceil(drawn - _ROUNDING)), self.n_units // 2)

    def effective_size_of(self, rows: np.ndarray | slice) -> float:
        """(Σ W)² / Σ W² of the weights W of the groups, or samples, in these rows."""
        total = self.weight[rows]
        if self.groups is not None:
            total = np.bincount(self.unit[rows], total)
        return float(total.sum() ** 2 / (total @ total))

    def of_data(self) -> list[float]:
        return [statistic(statistic.data.outcome[None])[0] for statistic in self.statistics]

    def of_rows(self, rows: np.ndarray) -> list[float]:
        parts = [statistic.on(statistic.data.take(rows)) for statistic in self.statistics]
        return [part(part.data.outcome[None])[0] for part in parts]

    def without_part(self, part: np.ndarray, k: int) -> list[list[float]]:
        return [self.of_rows(np.flatnonzero(part != k))]

    def of_subsamples(self, size: int, seed: int) -> list[list[float]]:
        """The values (C,) of random groups, and behind them their effective number."""
        rng = np.random.default_rng(seed)
        results = []
        for _ in range(size):
            rows = rng.choice(self.n_units, self.n_drawn, replace=False)
            if self.n_units < self.n_samples:
                is_drawn = np.zeros(self.n_units, dtype=bool)
                is_drawn[rows] = True
                rows = np.flatnonzero(is_drawn[self.unit])
            results.append([*self.of_rows(rows), self.effective_size_of(rows)])
        return results

    def resample(
        self, method: str, n_resamples: int, random_state: RandomState, n_jobs: int | None
    ) -> Resamples:
        check_enough_to_resample(self)
        values = check_metric_values([self.of_data()])[0]
        rng = check_random_state(random_state)
        parallel = Parallel(n_jobs=n_jobs)
        losses = None
        if self.is_mean and method != "resampling":
            losses = self._losses(values)
        if losses is not None:
            share, jackknife = self._without_each_unit(values, losses)
        else:
            n_parts = min(self.n_units, _PARTS)
            part = (rng.permutation(self.n_units) % n_parts)[self.unit]
            share = np.bincount(part, self.weight)
            tasks = (delayed(self.without_part)(part, k) for k in range(n_parts))
            jackknife = _values(parallel(tasks))
        subsamples = np.empty((0, len(values) + 1))
        if method == "resampling" or (method == "auto" and not self.is_mean):
            batches = seeded_batches(n_resamples, 1, MetricStatistic.least_batches, rng)
            subsamples = _values(parallel(delayed(self.of_subsamples)(*one) for one in batches))
        ratio = subsamples[:, -1] / self.effective_size
        return Resamples(
            values,
            subsamples[:, :-1],
            np.minimum(ratio, _LARGEST_RATIO) ** self.rate,
            jackknife,
            float(1 / (share @ share)) - 1,
        )

    def _losses(self, values: np.ndarray) -> np.ndarray | None:
        """The losses (n, C) whose means the values are, if they are known."""
        losses = [
            losses_of(self.function, statistic.data, value)
            for statistic, value in zip(self.statistics, values.tolist(), strict=True)
        ]
        known = [one for one in losses if one is not None]
        return np.column_stack(known) if len(known) == len(losses) else None

    def _without_each_unit(
        self, values: np.ndarray, losses: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The weights (U,) of the groups, or samples, and the means (U, C) without one of them."""
        share = np.bincount(self.unit, self.weight)
        total = [np.bincount(self.unit, self.weight * one) for one in losses.T]
        return share, (values - np.column_stack(total)) / (1 - share[:, None])


def _values(results):
    return check_metric_values([row for rows in results for row in rows])


def has_several_columns(y_proba: Any) -> bool:
    shape = y_proba.shape if hasattr(y_proba, "shape") else np.shape(y_proba)
    return len(shape) == 2 and shape[1] > 1


# Fewer samples say nothing about how the estimate varies.
_FEWEST_TO_RESAMPLE = 10


def check_same_kind(probas: dict[str, Any]) -> None:
    """Two models are compared on the same outcomes."""
    kinds = ["a forecast" if is_forecast(one) else "probabilities" for one in probas.values()]
    if len(set(kinds)) > 1:
        raise ValueError(
            f"{' and '.join(probas)} must be of the same kind; found {' and '.join(kinds)}. "
            "Compare forecasts with forecasts, and probabilities with probabilities."
        )


def check_enough_to_resample(estimates: Estimates) -> None:
    """How an estimate varies is learnt from parts of the samples."""
    fewest = _FEWEST_TO_RESAMPLE
    if estimates.n_samples < fewest:
        raise ValueError(
            f"{estimates.name} must hold at least {fewest} samples of positive weight; found "
            f"{estimates.n_samples}. So few samples say nothing about how the metric varies: "
            "collect more."
        )
    if estimates.n_units < fewest:
        raise ValueError(
            f"groups must name at least {fewest} groups of samples with positive weight; found "
            f"{estimates.n_units}. So few groups say nothing about how the metric varies: collect "
            "more, or divide a series into shorter blocks."
        )
    if estimates.effective_size < fewest - _ROUNDING:
        units = "samples" if estimates.groups is None else "groups"
        cause = "sample_weight" if estimates.groups is None else "groups and sample_weight"
        raise ValueError(
            f"{cause} must leave an effective number of {units}, (Σ W)² / Σ W² of their weights W, "
            f"of at least {fewest}; found {estimates.effective_size:.3g} of {estimates.n_units}. "
            f"A few {units} outweigh all others: collect more, or limit the largest weights."
        )


def check_metric_values(results: list) -> np.ndarray:
    """What a metric returned for several samples, (R, C)."""
    values = np.asarray(results)
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise ValueError(
            f"metric must return one number; found values of shape {values.shape[2:]} and type "
            f"{values.dtype}. With more than two classes choose an average; or wrap the metric in "
            "a function that returns a float."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            "metric must be finite for every part of the samples; found "
            f"{np.sum(~np.isfinite(values))} of {values.size} value(s) that are not. If it fails "
            "where a class does not occur among the labels, let it take an argument `labels`, in "
            "which it gets the classes."
        )
    return values.astype(np.float64)
