"""The entries of all metrics, from which all other lists derive."""

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property, partial
from typing import Any, NamedTuple, NoReturn, Protocol, TypeVar, overload

import numpy as np
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from .._data import AnyData, ClassData, ForecastData
from .._inputs.annotations import Averaged, P
from .._inputs.scikit_learn import (
    InvalidParameterError,
    StrOptions,
    get_constraints,
    validate_parameter_constraints,
    validate_params,
)
from .._statistics.base import Statistic

FloatFunction = TypeVar("FloatFunction", bound=Callable[..., float])

# The arguments of metrics that are data, not options.
_DATA = {"y_true", "y_proba", "y_forecast", "y_pred", "sample_weight", "labels"}
_DATA |= {"pos_label", "given"}


class RadiusRule(NamedTuple):
    """Distance by which an estimate may be off; the Notes of `finite_sample_radius` say why.

    `bounds` gives B, R and what is added above, of all options. `options` are those that may have
    other values than their defaults: a list of values, or None for all that the metric takes.
    """

    bounds: Callable[[dict[str, Any]], tuple[float, float, float]]
    options: dict[str, Sequence[Any] | None] = {}


@dataclass(frozen=True)
class Metric:
    """A metric, with what scorers, tests, intervals and the report need to know of it."""

    function: Callable  # for users
    compute: Callable[..., Any]  # the private function beside it, of checked data and options
    cost: str  # growth with the number of samples n
    takes: tuple[str, ...] = ("classes",)  # kinds of predictions; listed among those of the first
    lower_is_better: bool = True  # False if its best value lies inside of its range
    may_be_negative: bool = False  # the value on a whole distribution, not an estimate of it
    # the upper bound on its values, or a function of all options; infinite if none is known
    largest: float | Callable[[dict[str, Any]], float] = math.inf
    # the terms whose sum it is, of data and all options; None if these options have none
    terms: Callable[..., Any] | None = None
    chosen: bool = True  # True if the data choose its terms, as of an error; False of a mean loss
    root: str | None = None  # the metric whose square it estimates
    # measures many data at once, small ones faster than `compute` one by one; None if it cannot
    compute_each: Callable[..., list[Any]] | None = None
    # makes an object that evaluates batches of outcomes; None if these options have none
    statistic: Callable[..., Statistic | None] | None = None
    # True for options with which an estimated square is clipped at 0 before its root is taken;
    # `compute` then takes signed=True, which gives the root the sign of the square instead
    clips_square: Callable[[dict[str, Any]], bool] = lambda options: False
    in_report: bool = False
    # True if it depends on sums of weights and squared weights by prediction and label alone
    supports_counts: bool = False
    # the most that it changes if predictions are moved by 1 on average; None if unknown
    lipschitz_constant: float | None = None
    supports_groups: bool = False  # True if a test of it takes samples that depend on each other
    radius: RadiusRule | None = None  # None if no finite-sample radius is known
    is_selectable: bool = True  # True if tests and intervals take its name
    fixed: dict[str, Any] = field(default_factory=dict)  # options of a partial function

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def symbol(self) -> str:
        """Return the name in papers, such as "(ECE)", from the docstring; empty if none."""
        match = re.search(r"\((\w+)\)", (self.function.__doc__ or "").partition("\n")[0])
        return match[0] if match else ""

    @property
    def title(self) -> str:
        return self.name.replace("_", " ")

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Return the arguments of the function for users."""
        return _free_parameters(self.function)

    @property
    def requires_given(self) -> bool:
        """True if the data must hold what the metric is conditioned on."""
        given = self.parameters.get("given")
        return given is not None and given.default is given.empty

    @cached_property
    def options(self) -> dict[str, Any]:
        """Return the options and their defaults, which are those of the function for users."""
        parameters = self.parameters.items()
        return {name: p.default for name, p in parameters if name not in _DATA} | self.fixed

    def sums_over_levels(self, options: Mapping[str, Any]) -> bool:
        """True if it is a loss over all levels that a forecast has, few or many."""
        return not self.chosen and "levels" in self.parameters and options.get("levels") is None

    def measure(self, data: AnyData, **options: Any) -> Any:
        """Return the metric of checked data; options that are left out have their defaults."""
        return self.compute(data, **(self.options | options))

    def measure_each(self, parts: Iterable[AnyData], **options: Any) -> list[Any]:
        """Return the metric of each of the data."""
        if self.compute_each is None:
            return [self.measure(data, **options) for data in parts]
        return self.compute_each(parts, **(self.options | options))

    def measure_outcomes(self, data: AnyData, outcomes: np.ndarray, **options: Any) -> list[Any]:
        """Return the metric of the data with each vector of outcomes (R, n) in place of theirs."""
        return self.measure_each(map(data.with_outcome, outcomes), **options)

    def validate_options(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options of `measure`: a user's `metric_params`, and defaults of the others.

        They must satisfy the constraints of the function for users.
        """
        self.check_names(params)
        options = {**self.options, **params}
        constraints = get_constraints(self.function)
        validate_parameter_constraints(constraints, options, caller_name=self.name)
        return options

    def check_names(self, params: Mapping[str, Any]) -> None:
        """Refuse data among a user's options, and arguments that the metric does not take."""
        kinds = {parameter.kind for parameter in self.parameters.values()}
        for name, value in params.items():
            if name != "pos_label" and is_data(name, value):
                raise_data_in_params(name)
            if name not in self.parameters and inspect.Parameter.VAR_KEYWORD not in kinds:
                raise TypeError(
                    f"metric_params must be arguments of the metric; found {name!r}, while "
                    f"{self.name} takes {', '.join(self.parameters)}. Leave it out."
                )


@dataclass(frozen=True)
class CallableMetric(Metric):
    """A function of labels and probabilities, or of outcomes and forecasts, that is called.

    It gets the data as the user passed them: labels of the same type, probabilities in one column
    or in several, and weights if there were any. `labels` and `given` are filled in if it has such
    arguments, as a part of the data may lack a class.
    """

    takes: tuple[str, ...] = ("classes", "forecasts")
    may_be_negative: bool = True
    as_matrix: bool = True  # True if two classes have two columns
    weighted: bool = False  # True if weights are passed

    @property
    def name(self) -> str:
        return getattr(unwrap_partial(self.function)[0], "__name__", "the metric")

    def measure(self, data: AnyData, **options: Any) -> Any:
        options = self._user_arguments(data) | options
        if isinstance(data, ForecastData):
            return self.function(data.value, data.forecast, **options)
        return self.function(data.user_labels, self._user_proba(data), **options)

    def measure_outcomes(self, data: AnyData, outcomes: np.ndarray, **options: Any) -> list[Any]:
        if isinstance(data, ForecastData):
            return super().measure_outcomes(data, outcomes, **options)
        options = self._user_arguments(data) | options
        proba = self._user_proba(data)
        return [self.function(data.classes[row], proba, **options) for row in outcomes]

    def validate_options(self, params: Mapping[str, Any]) -> dict[str, Any]:
        self.check_names(params)
        return dict(params)

    def _user_proba(self, data: ClassData) -> np.ndarray:
        """Return the probabilities as the function takes them; it may not change them."""
        proba = data.simplex if self.as_matrix else data.proba
        order = self._order(data)
        if order is not None:
            proba = proba[:, order] if proba.ndim == 2 else (proba if order[-1] == 1 else 1 - proba)
        proba = proba.view()
        proba.flags.writeable = False  # it may be the caller's
        return proba

    def _user_arguments(self, data: AnyData) -> dict[str, Any]:
        """Return `given`, `labels` and the others that the function takes."""
        arguments: dict[str, Any] = {} if data.given is None else {"given": data.given}
        if isinstance(data, ClassData):
            order = self._order(data)
            arguments["labels"] = data.classes if order is None else data.classes[order]
            if data.is_binary and not self.as_matrix and self._is_of_scikit_learn:
                arguments["pos_label"] = data.classes[-1]
        arguments = {name: value for name, value in arguments.items() if name in self.parameters}
        return arguments | ({"sample_weight": data.weight} if self.weighted else {})

    def _order(self, data: ClassData) -> np.ndarray | None:
        """Return the order of classes for scikit-learn's functions, which is sorted; else None.

        One column stays that of the positive class, where a function takes that.
        """
        names = {*self.parameters, *unwrap_partial(self.function)[1]}
        has_positive = data.is_binary and not self.as_matrix and "pos_label" in names
        is_sorted = self._is_of_scikit_learn and not has_positive
        return np.argsort(data.classes) if is_sorted else None

    @property
    def _is_of_scikit_learn(self) -> bool:
        module = getattr(unwrap_partial(self.function)[0], "__module__", "")
        return module.startswith("sklearn.")


# All metrics that have a name for tests and intervals, and those of classes and of forecasts.
ALL_METRICS: dict[str, Metric] = {}
METRICS: dict[str, Metric] = {}
FORECAST_METRICS: dict[str, Metric] = {}

# Functions of scikit-learn that arguments take by name, as they take skcalib's metrics.
FOREIGN_METRICS = {loss.__name__: loss for loss in (brier_score_loss, log_loss, roc_auc_score)}

# Measures that err on both sides of their best value: named for intervals and comparisons alone.
SIGNED_METRICS: dict[str, Metric] = {}

_ALL_ENTRIES: list[Metric] = []


def metrics_of_counts() -> list[str]:
    """Return the names of the metrics that depend on counts of samples alone."""
    return sorted(name for name, metric in METRICS.items() if metric.supports_counts)


class MetricNames(StrOptions):
    """Names that an argument takes: metrics of skcalib or scikit-learn, or other statistics."""

    def __init__(self, argument: str, names: Iterable[str]):
        super().__init__({*names, *FOREIGN_METRICS})
        self.argument = argument

    def is_satisfied_by(self, value: object) -> bool:
        if isinstance(value, str):
            check_name(self.argument, value, self.options, "Pass one of these, or a function.")
        return super().is_satisfied_by(value)


def check_name(argument: str, name: str, available: Iterable[str], remedy: str) -> None:
    """Refuse a name that is not available; the remedy is for one that resembles none of them.

    A name in papers, such as ECE, resembles all metrics that have it.
    """
    if isinstance(name, str) and name in available:
        return
    text = str(name)
    entries = {name: ALL_METRICS.get(name.removeprefix("neg_")) for name in available}
    symbol = f"({text.removeprefix('neg_')})".lower()
    similar = [name for name, entry in entries.items() if entry and entry.symbol.lower() == symbol]
    similar = sorted(similar) or get_close_matches(text, available, n=1, cutoff=0.7)
    similar = similar or [n for n in available if n in FOREIGN_METRICS and n.startswith(f"{text}_")]
    if similar:
        rule, remedy = "the name of a metric", f"Did you mean {' or '.join(map(repr, similar))}?"
    else:
        rule = f"one of {format_metric_names(available)}"
    raise InvalidParameterError(f"{argument} must be {rule}; found {name!r:.200}. {remedy}")


def format_metric_names(names: Iterable[str]) -> str:
    """Return a list of metrics, or of scorers, for messages: with their names in papers."""
    symbols = {name: entry.symbol for name, entry in ALL_METRICS.items()}
    listed = (f"{name!r} {symbols.get(name.removeprefix('neg_'), '')}" for name in sorted(names))
    return ", ".join(map(str.rstrip, listed))


class _Registration(Protocol):
    """The type of the decorator of public functions, for type checkers."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: FloatFunction
    ) -> FloatFunction: ...

    @overload
    def __call__(
        self, function: Callable[P, float | np.ndarray]
    ) -> Averaged[P, float, np.ndarray]: ...


def register_metric(
    compute: Callable[..., Any], constraints: dict | None = None, **registry_fields: Any
) -> _Registration:
    """Register a function for users as a metric, and check its parameters by the constraints.

    `compute` is the private function beside it, of checked data and all options. The fields are
    those of `Metric`.
    """

    def register(function: Callable) -> Any:
        validated = validate_params(constraints)(function)
        entry = Metric(validated, compute, **registry_fields)
        _ALL_ENTRIES.append(entry)
        if entry.is_selectable:
            family = METRICS if entry.takes[0] == "classes" else FORECAST_METRICS
            ALL_METRICS[entry.name] = family[entry.name] = entry
        elif not entry.lower_is_better:
            SIGNED_METRICS[entry.name] = entry
        return validated

    return register


def root_of_estimate(square: float | np.ndarray, signed: bool) -> Any:
    """Return the roots of estimated squares, 0 if these are negative, or `signed` with their sign.

    Signed ones vary where the others are clipped, which intervals need (`Metric.clips_square`).
    """
    return np.sign(square) * np.sqrt(np.abs(square)) if signed else np.sqrt(np.maximum(square, 0.0))


def resolve_metric(
    metric: str | Callable,
    params: Mapping[str, Any] | None = None,
    *,
    as_matrix: bool = True,
    weighted: bool = False,
) -> tuple[Metric, dict[str, Any]]:
    """Return the entry of a metric, which is named or a function, and all its options, checked.

    A user's function becomes a `CallableMetric`, with two columns for two classes if `as_matrix`
    and with weights if `weighted`. So does one of ours if arguments that are data are fixed by
    :func:`functools.partial`, or if a positive class is named.
    """
    params = params or {}
    metric = to_function(metric)
    entry = find_entry(metric)
    fixes_data = entry is not None and any(map(is_data, entry.fixed.keys(), entry.fixed.values()))
    if entry is None or fixes_data or "pos_label" in params:
        shared: dict[str, Any] = {"as_matrix": as_matrix, "weighted": weighted}
        if entry is not None:
            names = "chosen", "takes", "may_be_negative", "largest", "fixed"
            shared |= {name: vars(entry)[name] for name in names}
        elif is_mean_loss(partial(metric, **params)):
            shared |= {"chosen": False, "may_be_negative": False}
        if unwrap_partial(metric)[0] in FOREIGN_METRICS.values():
            shared["takes"] = ("classes",)
        callable_metric: Any = CallableMetric(metric, metric, "", **shared)
        return callable_metric, callable_metric.validate_options(params)
    return entry, entry.validate_options(params)


def find_arguments(metric: str | Callable, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of a metric that are given, or fixed by :func:`functools.partial`."""
    return unwrap_partial(metric)[1] | dict(params or {})


def is_mean_loss(metric: Callable) -> bool:
    """True for a loss of scikit-learn that is a mean, not a sum."""
    function, fixed = unwrap_partial(metric)
    return function in (log_loss, brier_score_loss) and fixed.get("normalize", True)


def to_function(metric: str | Callable) -> Callable:
    """Return the function of skcalib or scikit-learn that has this name."""
    if not isinstance(metric, str):
        return metric
    return FOREIGN_METRICS.get(metric) or (ALL_METRICS | SIGNED_METRICS)[metric].function


def find_entry(metric: str | Callable) -> Metric | None:
    """Return the entry of a metric, given as its name, its function, or a partial function.

    It is None for a function from elsewhere.
    """
    function, fixed = unwrap_partial(to_function(metric))
    entry = next((candidate for candidate in _ALL_ENTRIES if candidate.function is function), None)
    return replace(entry, fixed=fixed) if entry and fixed else entry


def unwrap_partial(metric: object) -> tuple[Any, dict[str, Any]]:
    """Return the function itself, and the arguments that :func:`functools.partial` has fixed."""
    fixed: dict[str, Any] = {}
    while isinstance(metric, partial):
        fixed = metric.keywords | fixed
        metric = metric.func
    return metric, fixed


def is_data(name: str, value: object) -> bool:
    """True if an argument is data. The name of what is conditioned on is an option."""
    return name in _DATA and not (name == "given" and isinstance(value, str))


def raise_data_in_params(name: str) -> NoReturn:
    """Refuse data among the options of a metric."""
    raise ValueError(
        f"metric_params must not hold data, but options of the metric; found {name!r}. Pass it to "
        "the function or to fit instead, if that takes it."
    )


def select_options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a metric from its `locals()`: all but data, raw or checked."""
    return {name: arguments[name] for name in arguments if name not in _DATA and name != "data"}


def select_data(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a metric from its `locals()`."""
    return {name: arguments[name] for name in arguments if name in _DATA}


def _free_parameters(metric: Callable) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function, without those that a partial function has fixed."""
    function, fixed = unwrap_partial(metric)
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # some functions written in C have no signature
        return {}
    return {name: parameter for name, parameter in parameters.items() if name not in fixed}
