"""The metric of one or several models on the same samples."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from sklearn.utils import check_random_state

from .._data import AnyData, ForecastData, check_data
from .._inputs.arrays import ArrayLike, check_same_length
from .._inputs.probabilities import is_forecast
from .._inputs.scikit_learn import (
    METRIC_CONSTRAINTS,
    N_JOBS,
    Count,
    Interval,
    Label,
    RandomState,
    StrOptions,
    num_samples,
)
from .._numerics.logits import PROPER_LOSSES
from ..metrics._registry import (
    ALL_METRICS,
    SIGNED_METRICS,
    CallableMetric,
    Metric,
    MetricNames,
    find_entry,
    resolve_metric,
    unwrap_partial,
)
from ..metrics._statistic import check_metric_fits
from ._resampling import Limits, Resamples, RootLimits, Units, check_finite_values, resample

# The mean of the losses may miss the metric by this share, for it is summed in another order.
_SHARE = 1e-9

RESAMPLING_CONSTRAINTS = METRIC_CONSTRAINTS | {
    "metric": [MetricNames("metric", ALL_METRICS | SIGNED_METRICS), callable],
    "given": "no_validation",
    "groups": "no_validation",
    "metric_params": [dict, None],
    "confidence_level": [Interval(Real, 0, 1, closed="neither")],
    "alternative": [StrOptions({"two-sided", "less", "greater"})],
    "method": [StrOptions({"auto", "resampling", "jackknife"})],
    "n_resamples": [Count(1, 10**9)],
    "random_state": ["random_state"],
    "n_jobs": N_JOBS,
}


@dataclass(frozen=True, repr=False)
class Result:
    """Numbers by name, shown with four digits."""

    def __repr__(self) -> str:
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return f"{type(self).__name__}({', '.join(f'{k}={v:.4g}' for k, v in values)})"


@dataclass(frozen=True)
class MeasuredModels:
    """The metric of one or several models, of the same samples, weights and groups."""

    metrics: tuple[Metric, ...]  # of each model, as foreign functions get what the user passed
    options: dict[str, Any]  # judged
    models: tuple[AnyData, ...]
    shares_outcomes: bool = True  # False if each model has outcomes of its own

    @classmethod
    def make(
        cls,
        metric: str | Callable,
        metric_params: dict | None,
        *,
        models: Sequence[AnyData],
        as_matrix: Sequence[bool],
        weighted: bool,
        shares_outcomes: bool = True,
    ) -> "MeasuredModels":
        """The measured models, if the metric takes such data and all that is given."""
        entries = [
            resolve_metric(metric, metric_params, as_matrix=m, weighted=weighted) for m in as_matrix
        ]
        first, options = entries[0]
        entry = find_entry(first.function) if isinstance(first, CallableMetric) else None
        if entry is not None and entry.clips_square(entry.options | options):
            raise ValueError(
                f"metric must not fix data if {entry.name} is debiased; found labels, pos_label or "
                "sample_weight. Pass labels and weights beside the metric."
            )
        check_metric_fits(first, models[0], "metric")
        metrics = tuple(entry for entry, _ in entries)
        return cls(metrics, options, tuple(models), shares_outcomes)

    def take(self, rows: np.ndarray | slice) -> "MeasuredModels":
        """This metric and its models, with only some of the samples."""
        return replace(self, models=tuple(data.take(rows) for data in self.models))

    def with_outcome(self, outcome: np.ndarray, k: int = 0) -> "MeasuredModels":
        """This metric and its models, with other outcomes (n,) of model k, or of all that share."""
        return replace(
            self,
            models=tuple(
                data.with_outcome(outcome) if self.shares_outcomes or j == k else data
                for j, data in enumerate(self.models)
            ),
        )

    def values(self) -> list[float]:
        """The values (C,) of the models."""
        pairs = zip(self.metrics, self.models, strict=True)
        return [metric.measure(data, **self.options) for metric, data in pairs]

    def values_of(self, parts: Iterable["MeasuredModels"]) -> list[list[float]]:
        """The values (C,) of this metric and its models, of each of many parts of the samples."""
        metric, n_models = self.metrics[0], len(self.models)
        if metric.compute_each is None:
            return [measured.values() for measured in parts]
        models = (data for measured in parts for data in measured.models)
        values = metric.measure_each(models, **self.options)
        return [values[start : start + n_models] for start in range(0, len(values), n_models)]

    def resample(
        self,
        *,
        method: str,
        n_resamples: int,
        random_state: RandomState,
        n_jobs: int | None = None,
        name: str = "y_true",
    ) -> Resamples:
        """The values of all samples, of subsamples unless a mean needs none, and of the jackknife.

        `name` is that of the outcomes in messages.
        """
        units, rng = Units(self.models[0], name), check_random_state(random_state)
        values = check_finite_values([self.values()])[0]
        is_smooth = self.metrics[0].is_mean or not self.metrics[0].lower_is_better
        needs_none = method == "jackknife" or (method == "auto" and is_smooth)
        return resample(
            self.values_of,
            self,
            units,
            values,
            n_resamples=0 if needs_none else n_resamples,
            rng=rng,
            n_jobs=n_jobs,
            rate=self.metrics[0].rate,
            losses=self._losses(values) if self.metrics[0].is_mean and needs_none else None,
            models=() if self.metrics[0].may_be_negative else self.models,
            is_error=len(self.models) == 1 and not self.metrics[0].is_mean,
        )

    def halves(self, n_jobs: int | None) -> np.ndarray:
        """The differences (H,) of two models in halves of the samples."""
        units = Units(self.models[0])
        return units.halves(self.values_of, self, n_jobs) @ [1.0, -1.0]

    def limits(self, **resampling: Any) -> Limits | RootLimits:
        """The limits of one model's metric; `resampling` holds the arguments of `resample`."""
        metric, options = self.metrics[0], self.options
        if not metric.clips_square(metric.options | options):
            limits = self.resample(**resampling).limits([1.0])
            return replace(limits, chance=1.0) if self._has_single_samples() else limits
        signed = replace(self, options=options | {"signed": True})
        estimate = float(check_finite_values([self.values()])[0, 0])
        return RootLimits(estimate, signed.resample(**resampling).squared_limits())

    def _has_single_samples(self) -> bool:
        """True if subsamples have less samples than cells: their errors are then due to chance."""
        data, count_cells = self.models[0], self.metrics[0].count_cells
        if count_cells is None or isinstance(data, ForecastData):
            return False
        multi_class = self.options.get("multi_class", "confidence")
        units = Units(data)
        n_cells = count_cells(data, multi_class=multi_class)
        return bool(n_cells > units.n_drawn * len(data.weight) / units.number)

    def clip(self, low: float, high: float) -> tuple[float, float]:
        """The ends of an interval within the values that the metric can have."""
        least = -np.inf if self.metrics[0].may_be_negative else 0.0
        low, high = np.clip([low, high], least, self.largest).tolist()
        return low, high

    @property
    def largest(self) -> float:
        """The largest value that the metric can have."""
        most = self.metrics[0].largest
        return most(self.metrics[0].options | self.options) if callable(most) else most

    def _losses(self, values: np.ndarray) -> np.ndarray | None:
        """The losses (n, C) whose means the values are; None if they are not known.

        Arguments of scikit-learn's functions may change what they are means of: then the mean of
        the losses differs from the value.
        """
        columns = []
        for metric, data, value in zip(self.metrics, self.models, values, strict=True):
            for losses in self._candidates(metric, data):
                if np.isclose(data.weight @ losses, value, rtol=_SHARE, atol=0):
                    columns.append(losses)
                    break
        return np.column_stack(columns) if len(columns) == len(values) else None

    def _candidates(self, metric: Metric, data: AnyData) -> list[np.ndarray]:
        """Losses (n,) of which the metric may be the mean."""
        if isinstance(data, ForecastData):
            return [metric.measure(data, **self.options | {"average": None})]
        if unwrap_partial(metric.function)[0] is log_loss:
            most = -np.log(np.finfo(np.float64).eps)
            return [np.minimum(PROPER_LOSSES["log_loss"](data.simplex, data.label), most)]
        square = PROPER_LOSSES["brier"](data.simplex, data.label)
        return [square / 2, square]  # for two classes the half by default


def check_predicted(
    probas: dict[str, Any], y_true: Any, outcomes: dict[str, Any] | None = None, **data_args: Any
) -> dict[str, Any]:
    """The predictions of one model or several, given by name, as `MeasuredModels.make` takes them.

    `outcomes` are those of each model by name, if it has its own, in place of `y_true`; `data_args`
    hold sample_weight, labels, given, groups and multi_class.
    """
    check_same_kind(probas)
    models: list[Any] = []
    if outcomes is not None:
        check_same_length({name: num_samples(values) for name, values in outcomes.items()})
    pairs = outcomes.items() if outcomes else [("y_true", y_true)] * len(probas)
    for (outcome_name, outcome), (name, y_pred) in zip(pairs, probas.items(), strict=True):
        models.append(check_data(outcome, y_pred, names=(outcome_name, name), **data_args))
        if data_args["labels"] is None:  # those of the first model hold for the next ones, too
            data_args["labels"] = _order_columns(models[0].labels, data_args.get("pos_label"))
    return {
        "models": models,
        "as_matrix": [has_several_columns(y_pred) for y_pred in probas.values()],
        "weighted": data_args["sample_weight"] is not None,
        "shares_outcomes": outcomes is None,
    }


def _order_columns(classes: np.ndarray | None, pos_label: Label | None) -> np.ndarray | None:
    """The classes (2,) in the order of columns: those of checked data end with `pos_label`."""
    if classes is None or pos_label is None or classes[0] is None:
        return classes
    return np.unique(classes)


def split_outcomes(y_true: ArrayLike) -> dict[str, Any] | None:
    """The outcomes of two models, each with its own, by name; None if they share them."""
    if isinstance(y_true, tuple | list) and len(y_true) == 2 and all(map(np.ndim, y_true)):
        return {f"y_true[{k}]": outcome for k, outcome in enumerate(y_true)}
    return None


def split_pos_label(
    metric: str | Callable, metric_params: dict | None
) -> tuple[Any, dict | None, Any]:
    """The metric, its arguments and, if it is one of ours, the positive class apart from these."""
    entry, params = find_entry(metric), dict(metric_params or {})
    if entry is None or "pos_label" not in entry.parameters:
        return metric, metric_params, None
    fixed = dict(entry.fixed)
    pos_label = params.pop("pos_label", fixed.pop("pos_label", None))
    return partial(entry.function, **fixed), params, pos_label


def has_several_columns(y_pred: Any) -> bool:
    shape = y_pred.shape if hasattr(y_pred, "shape") else np.shape(y_pred)
    return len(shape) == 2 and shape[1] > 1


def check_same_kind(probas: dict[str, Any]) -> None:
    """Refuse to compare forecasts with probabilities."""
    kinds = [
        "a forecast" if is_forecast(prediction) else "probabilities"
        for prediction in probas.values()
    ]
    if len(set(kinds)) > 1:
        raise ValueError(
            f"{' and '.join(probas)} must be of the same kind; found {' and '.join(kinds)}. "
            "Compare forecasts with forecasts, and probabilities with probabilities."
        )
