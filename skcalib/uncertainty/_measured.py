"""The metric of one or several models on the same samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, cast

import numpy as np
from sklearn.metrics import roc_auc_score

from .._data import AnyData, check_data, with_groups
from .._inputs.arrays import ArrayLike, check_same_length, is_pair
from .._inputs.by import format_bounded
from .._inputs.probabilities import is_forecast
from .._inputs.scikit_learn import Label, num_samples
from ..metrics._registry import (
    ALL_METRICS,
    SIGNED_METRICS,
    CallableMetric,
    Metric,
    MetricNames,
    find_arguments,
    find_entry,
    resolve_metric,
)
from ..metrics._statistic import check_metric_fits
from ..metrics._terms import MetricTerms
from ._closed_form import signed_limits
from ._errors import error_limits
from ._limits import Changes, Hull, ScaledLimits, UnpairedLimits, cross_groups, to_root, to_square
from ._losses import mean_limits, mean_terms, subtract_terms
from ._units import Units, check_finite_values

LIMITS_CONSTRAINTS: dict[str, Any] = {
    "metric": [MetricNames("metric", ALL_METRICS | SIGNED_METRICS), callable]
}


@dataclass(frozen=True, repr=False)
class Result:
    """Numbers by name, shown with four digits."""

    def __repr__(self) -> str:
        values = {field.name: f"={getattr(self, field.name):.4g}" for field in fields(self)}
        if "p_value" in values:
            values["p_value"] = format_bounded(vars(self)["p_value"], digits=4).replace(" ", "")
        return f"{type(self).__name__}({', '.join(k + v for k, v in values.items())})"


@dataclass(frozen=True)
class MeasuredModels:
    """The metric of one or several models, of the same samples, weights and groups."""

    metrics: tuple[Metric, ...]  # of each model, as foreign functions get what the user passed
    options: dict[str, Any]  # judged
    models: tuple[AnyData, ...]
    shares_outcomes: bool = True  # False if each model has outcomes of its own
    is_paired: bool = True  # False if each model has samples of its own

    @classmethod
    def make(
        cls,
        metric: str | Callable,
        metric_params: dict | None,
        *,
        models: Sequence[AnyData],
        as_matrix: Sequence[bool],
        weighted: bool,
        **pairing: bool,
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
        return cls(metrics, options, tuple(models), **pairing)

    def take(self, rows: np.ndarray | slice) -> "MeasuredModels":
        """This metric and its models, with only some of the samples."""
        return replace(self, models=tuple(data.take(rows) for data in self.models))

    def values(self) -> list[float]:
        """The values (C,) of the models."""
        pairs = zip(self.metrics, self.models, strict=True)
        return [metric.measure(data, **self.options) for metric, data in pairs]

    def limits(self, name: str = "y_true", **drawing: Any) -> Any:
        """The limits of one model's metric, or of the difference of two models' metrics.

        `name` is that of the outcomes in messages. The options of draws are n_resamples,
        random_state and n_jobs.
        """
        if not self.is_paired:
            pairs = zip(self.metrics, self.models, strict=True)
            singles = [replace(self, metrics=(m,), models=(x,), is_paired=True) for m, x in pairs]
            limits = [x.limits(f"{name}[{k}]", **drawing) for k, x in enumerate(singles)]
            return UnpairedLimits(limits, self.clip)
        return cross_groups(self.models, lambda models: [self._limits(models, name, drawing)])[0]

    def _limits(self, models: tuple[AnyData, ...], name: str, drawing: dict[str, Any]) -> Any:
        measured, metric, data = replace(self, models=models), self.metrics[0], cast(Any, models[0])
        units = Units(data, name)
        if not metric.lower_is_better:
            return signed_limits(models, [metric.name])[0]
        if metric.chosen and not isinstance(metric, CallableMetric):
            return measured._error_limits(units, drawing)
        if metric.function is roc_auc_score and data.is_binary and not self.options:
            return signed_limits(models, ["area_under_roc_curve"])[0]
        values = check_finite_values([measured.values()])[0]
        terms = measured._mean_terms(values)
        if terms is not None:
            return mean_limits(terms, units)
        # what is neither a mean nor an error has the jackknife of blocks of units
        contrast = np.array([1.0, -1.0])[: len(values)]
        changes, size = units.jackknife(measured, drawing.get("n_jobs"))
        estimate = float(values @ contrast)
        return Hull(estimate, [Changes(estimate, changes @ contrast, size).limits()])

    def _error_limits(self, units: Units, drawing: dict[str, Any]) -> Hull | ScaledLimits:
        metric = self.metrics[0]
        if not metric.clips_square(metric.options | self.options):
            return error_limits(self, units, **drawing)
        # a clipped root does not vary
        signed = replace(self, options=self.options | {"signed": True})
        if len(self.models) == 2:
            return error_limits(signed, units, **drawing)
        limits = error_limits(signed, units, **drawing, scale=to_square)
        estimate = check_finite_values([self.values()]).item()
        return ScaledLimits(estimate, limits, to_root, to_square)

    def _mean_terms(self, values: np.ndarray) -> MetricTerms | None:
        """The terms of a mean loss, or of a difference of two; None if it is not known as one."""
        if self.metrics[0].chosen:
            return None
        terms: list[Any] = [
            mean_terms(metric, data, self.options, value)
            for metric, data, value in zip(self.metrics, self.models, values, strict=True)
        ]
        if None in terms:
            return None
        # forecasts have possible outcomes of their own
        is_shared = self.shares_outcomes and not self.models[0].is_forecast
        return terms[0] if len(terms) == 1 else subtract_terms(terms, is_shared)

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


def check_measured(
    metric: str | Callable,
    metric_params: dict | None,
    probas: dict[str, Any],
    y_true: ArrayLike,
    outcomes: dict[str, Any] | None,
    **data_args: Any,
) -> MeasuredModels:
    """The measured models of a user's arguments; `check_predicted` says what those of data are.

    The positive class is part of the data, not an argument of the metric if that is one of ours.
    """
    multi_class = find_arguments(metric, metric_params).get("multi_class")
    entry = find_entry(metric)
    if entry is not None and "pos_label" in entry.parameters:
        metric_params, fixed = dict(metric_params or {}), dict(entry.fixed)
        data_args["pos_label"] = metric_params.pop("pos_label", fixed.pop("pos_label", None))
        metric = partial(entry.function, **fixed)
    elif not any(map(has_several_columns, probas.values())):  # a matrix stays as it is passed
        pos_label = find_arguments(metric, metric_params).get("pos_label")
        if isinstance(pos_label, str):  # numbers tell by themselves
            data_args["pos_label"] = pos_label
    data_args["multi_class"] = multi_class
    models = check_predicted(probas, y_true, outcomes, may_be_unpaired=True, **data_args)
    return MeasuredModels.make(metric, metric_params, **models)


def check_predicted(
    probas: dict[str, Any],
    y_true: ArrayLike,
    outcomes: dict[str, Any] | None = None,
    *,
    groups: ArrayLike | None,
    may_be_crossed: bool = True,
    may_be_unpaired: bool = False,
    **data_args: Any,
) -> dict[str, Any]:
    """The predictions of one model or several, given by name, as `MeasuredModels.make` takes them.

    `outcomes` are those of each model by name, if it has its own, in place of `y_true`; `data_args`
    hold sample_weight, labels, given and multi_class. Groups may have two columns. Two outcomes of
    different lengths, or tuples of two of what belongs to rows, are those of independent samples.
    """
    check_same_kind(probas)
    models: list[Any] = []
    lengths = {name: num_samples(values) for name, values in (outcomes or {}).items()}
    names = ("sample_weight", "given", "groups")
    by_row: dict[str, Any] = {name: (data_args | {"groups": groups}).get(name) for name in names}
    is_paired = outcomes is None or not any(map(is_pair, by_row.values()))
    if not may_be_unpaired:
        remedy = "Take those that all of them have, or two models at a time with compare_models."
        check_same_length(lengths, remedy)
    elif len(set(lengths.values())) > 1:
        is_paired = False
    samples = [by_row] * len(probas) if is_paired else split_samples(by_row)
    pairs = outcomes.items() if outcomes else [("y_true", y_true)] * len(probas)
    triples = zip(pairs, probas.items(), samples, strict=True)
    for (outcome_name, outcome), (name, y_pred), of_sample in triples:
        arguments = data_args | of_sample
        groups, weight = arguments.pop("groups"), arguments["sample_weight"]
        data = check_data(outcome, y_pred, names=(outcome_name, name), **arguments)
        models.append(with_groups(data, outcome, groups, weight, may_be_crossed=may_be_crossed))
        if data_args["labels"] is None:  # those of the first model hold for the next ones, too
            data_args["labels"] = _order_columns(models[0].labels, data_args.get("pos_label"))
    return {
        "models": models,
        "as_matrix": [has_several_columns(y_pred) for y_pred in probas.values()],
        "weighted": data_args["sample_weight"] is not None,
        "shares_outcomes": outcomes is None,
        "is_paired": is_paired,
    }


def split_samples(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Weights, groups and what is conditioned on, of each of two independent samples."""
    for name, value in arguments.items():
        if value is not None and not is_pair(value):
            raise ValueError(
                f"{name} must be a tuple of two, as y_true, for two samples that are no pairs of "
                f"rows; found {type(value).__name__}. Pass ({name}_a, {name}_b)."
            )
    pairs: Any = {name: (None, None) if x is None else x for name, x in arguments.items()}
    groups_a, groups_b = (set(np.ravel(groups).tolist()) - {None} for groups in pairs["groups"])
    if not groups_a.isdisjoint(groups_b):
        raise ValueError(
            "groups must differ between two samples that are no pairs of rows, as these count as "
            f"independent; found {len(groups_a & groups_b)} in both. Compare the models on the "
            "rows that both have."
        )
    return [{name: pair[k] for name, pair in pairs.items()} for k in range(2)]


def _order_columns(classes: np.ndarray | None, pos_label: Label | None) -> np.ndarray | None:
    """The classes (2,) in the order of columns: those of checked data end with `pos_label`."""
    if classes is None or pos_label is None or classes[0] is None:
        return classes
    return np.unique(classes)


def split_outcomes(y_true: Any) -> dict[str, Any] | None:
    """The outcomes of two models, each with its own, by name; None if they share them."""
    if is_pair(y_true) and y_true[0] is not None:  # else it is a missing label
        return {f"y_true[{k}]": outcome for k, outcome in enumerate(y_true)}
    return None


def has_several_columns(y_pred: Any) -> bool:
    try:
        shape = tuple(np.shape(y_pred))
    except (TypeError, ValueError):  # rows of unequal lengths, which are refused later
        return False
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
