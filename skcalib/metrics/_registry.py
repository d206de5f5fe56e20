"""The metrics: one entry each, from which all other lists derive."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .._statistics.decisions import DecisionGaps
from .._statistics.fourier_error import AnyKernelError
from .._statistics.matching import MatchingError
from ._binned import expected_calibration_error
from ._conditional import (
    conditional_kernel_calibration_error,
    joint_kernel_calibration_error,
)
from ._cumulative import cumulative_calibration_error
from ._decisions import decision_calibration_error
from ._distance import lower_distance_to_calibration
from ._forecast_scores import (
    continuous_ranked_probability_loss,
    interval_loss,
    log_density_loss,
)
from ._integrated import integrated_calibration_index
from ._interval import interval_calibration_error
from ._kernel import kernel_calibration_error, squared_kernel_calibration_error
from ._laplace import laplace_kernel_calibration_error
from ._level_set import level_set_calibration_error
from ._local import local_calibration_error
from ._matching import distribution_matching_error
from ._quantile import quantile_calibration_error
from ._smooth import smooth_calibration_error
from ._smooth_expected import smooth_expected_calibration_error


@dataclass(frozen=True)
class Metric:
    """A metric, and what scorers, tests, intervals and the report need to know of it."""

    function: Callable
    cost: str  # growth with the number of samples n
    takes: frozenset[str] = frozenset({"classes"})  # kinds of predictions
    is_mean: bool = False  # whether it is a mean over the samples
    may_be_negative: bool = False  # the value on a whole distribution, not an estimate of it
    rate: float = 1 / 2  # the estimate of a calibrated model falls like n^-rate
    # what evaluates batches of outcomes
    statistic: type[AnyKernelError | MatchingError | DecisionGaps] | None = None
    in_report: bool = False
    # whether it sees no more than sums of weights, and squared weights, by prediction and label
    of_counts: bool = False
    # how much it changes at most if predictions are moved by 1 on average, if that is known
    change_per_move: float | None = None

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def title(self) -> str:
        return self.name.replace("_", " ")


# `weighted_calibration_error` is not among them: its default takes minutes for more than two
# classes and some hundred samples. `make_scorer` takes it, and so does every test and interval.
METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            smooth_calibration_error,
            "n log n",
            in_report=True,
            of_counts=True,
            change_per_move=2.0,
        ),
        Metric(expected_calibration_error, "n log n", in_report=True, of_counts=True),
        Metric(lower_distance_to_calibration, "n log n", of_counts=True, change_per_move=1.0),
        Metric(interval_calibration_error, "n log n", rate=1 / 3, of_counts=True),
        Metric(laplace_kernel_calibration_error, "n log n", of_counts=True),
        Metric(smooth_expected_calibration_error, "n", rate=1 / 3, of_counts=True),
        Metric(cumulative_calibration_error, "n log n", of_counts=True),
        Metric(level_set_calibration_error, "n log n", of_counts=True),
        Metric(integrated_calibration_index, "n log n"),
        Metric(kernel_calibration_error, "n²", of_counts=True),
        Metric(squared_kernel_calibration_error, "n²", statistic=AnyKernelError, of_counts=True),
        Metric(joint_kernel_calibration_error, "n²"),
        Metric(conditional_kernel_calibration_error, "n³"),
        Metric(
            decision_calibration_error,
            "n",
            frozenset({"classes", "forecasts"}),
            statistic=DecisionGaps,
        ),
    )
}


_FORECASTS = frozenset({"forecasts"})
_BOTH = frozenset({"classes", "forecasts"})

# The metrics of forecasts; some take probabilities of classes, too.
FORECAST_METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(quantile_calibration_error, "n log n", _FORECASTS, in_report=True),
        Metric(local_calibration_error, "n²", _FORECASTS),
        Metric(distribution_matching_error, "n²", _BOTH, statistic=MatchingError),
        Metric(continuous_ranked_probability_loss, "n", _FORECASTS, is_mean=True, in_report=True),
        Metric(interval_loss, "n", _FORECASTS, is_mean=True),
        Metric(log_density_loss, "n", _FORECASTS, is_mean=True, may_be_negative=True),
    )
}

ALL_METRICS = METRICS | FORECAST_METRICS


def entry_of(metric) -> Metric | None:
    """The entry of a metric given by name, as the function, or with some arguments fixed.

    None for a function that is not ours.
    """
    while isinstance(metric, partial):
        metric = metric.func
    if isinstance(metric, str):
        return ALL_METRICS[metric]
    return next((entry for entry in ALL_METRICS.values() if entry.function is metric), None)


def takes(metric, name) -> bool:
    """Whether a function has an argument of this name that is not fixed yet."""
    return name in _open_parameters(metric)


def requires(metric, name) -> bool:
    """The same, if the argument has no default."""
    parameter = _open_parameters(metric).get(name)
    return parameter is not None and parameter.default is parameter.empty


def with_known(metric, known):
    """The metric with those arguments fixed that it takes of what the data know, such as `labels`:
    a part of the data may lack a class.
    """
    parameters = _open_parameters(metric)
    taken = {name: value for name, value in known.items() if name in parameters}
    return partial(metric, **taken) if taken else metric


def with_params(metric, params, own=()):
    """The metric with a user's `metric_params` fixed.

    Those that it does not take are refused, and so are those that the caller fills in: its `own`.
    """
    parameters = _open_parameters(metric)
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    name = getattr(metric, "__name__", "the metric")
    for param, value in params.items():
        if param in own and not (param == "given" and isinstance(value, str)):  # not data
            raise ValueError(
                f"metric_params must not hold {', '.join(own)}, which come from elsewhere; found "
                f"{param!r}. Pass it to the function or to fit instead, if that takes it."
            )
        if param not in parameters and not takes_any:
            raise TypeError(
                f"metric_params must be arguments of the metric; found {param!r}, while {name} "
                f"takes {', '.join(parameters)}. Leave it out (a CalibrationTest also hands on a "
                "kernel, bandwidth or estimator that is not the default)."
            )
    return partial(metric, **params)


def _open_parameters(metric):
    """The parameters of a function, without those that a partial function has fixed."""
    fixed: set[str] = set()
    while isinstance(metric, partial):
        fixed |= metric.keywords.keys()
        metric = metric.func
    try:
        parameters = inspect.signature(metric).parameters
    except ValueError:  # some functions written in C do not tell
        return {}
    return {name: one for name, one in parameters.items() if name not in fixed}
