"""Statistics by name: their options are judged here, and metrics become functions of outcomes."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from .._data import AnyData
from .._inputs.drawing import draw_seed
from .._inputs.options import check_options_of
from .._inputs.scikit_learn import RandomState
from .._statistics.base import Statistic
from .._statistics.omnibus import SeveralBandwidths, omnibus, several_bandwidths
from .._statistics.omnibus_forecasts import ForecastOmnibus
from .._statistics.residuals import ScoreExcess
from ._kernel import KERNEL_OPTIONS
from ._registry import ALL_METRICS, Metric, raise_data_in_params, resolve_metric

# Proper scores minus what the predictions expect of them.
_SCORES = ("log_loss", "brier_score_loss")

# Statistics of residuals, whose law is known by draws alone.
RESIDUAL_STATISTICS = ("omnibus", *_SCORES)

STATISTICS = {"auto", "skce", *RESIDUAL_STATISTICS, *ALL_METRICS}

# The metric that "skce" stands for.
_KERNEL_ERRORS = {
    "classes": "squared_kernel_calibration_error",
    "forecasts": "distribution_matching_error",
}

# Options of the omnibus, which are those of its kernel error.
_OF_OMNIBUS = ("kernel", "bandwidth", "class_kernel", "estimation")


def make_statistic(
    name: str | Callable,
    data: AnyData,
    options: Mapping[str, Any],
    *,
    as_matrix: bool,
    weighted: bool,
    n_resamples: int,
    random_state: RandomState,
) -> Statistic:
    """The statistic of this name, or of a metric that is a function, with a user's options.

    "auto" is the omnibus. Options are judged here. A foreign function gets two columns of
    probabilities for two classes, and weights, if that is said.
    """
    name = "omnibus" if name == "auto" else name
    seed = partial(_independent_seed, random_state)  # drawn only where it is needed
    if "pos_label" in options:
        raise_data_in_params("pos_label")
    if str(options.get("bandwidth")) == "multiple":
        return make_multi_bandwidth_statistic(name, data, options, seed)
    if isinstance(name, str) and name in RESIDUAL_STATISTICS:
        if not (name == "omnibus" and data.is_forecast):
            check_is_of_classes(name, data)
        if name == "omnibus" and not data.is_forecast:
            judged = omnibus_options(options) if options else {}
            return omnibus(data, n_resamples=n_resamples, seed=seed, **judged)
        if options:
            raise ValueError(
                f"statistic={name!r} of {data.kind} has no options; found "
                f"{', '.join(map(repr, options))}. Leave them out, or use statistic='skce'."
            )
        return ForecastOmnibus(data) if data.is_forecast else ScoreExcess(data, name)
    if isinstance(name, str) and name == "skce":
        name = _KERNEL_ERRORS[data.kind]
    metric, judged = resolve_metric(name, options, as_matrix=as_matrix, weighted=weighted)
    check_metric_fits(metric, data, "statistic")
    is_random = data.is_forecast or judged.get("method") == "fourier"
    if is_random and "random_state" in metric.parameters and "random_state" not in options:
        judged["random_state"] = seed()
    batched = None
    if isinstance(name, str) and metric.statistic is not None:
        batched = metric.statistic(data, **judged)
    return MetricStatistic(data, metric, judged) if batched is None else batched


def make_multi_bandwidth_statistic(
    name: str | Callable, data: AnyData, options: Mapping[str, Any], seed: Callable[[], int]
) -> SeveralBandwidths:
    """The squared kernel error of all classes at once, with several bandwidths."""
    metric = ALL_METRICS[_KERNEL_ERRORS["classes"]]
    if name not in ("skce", metric.name) or data.is_forecast:
        raise ValueError(
            "bandwidth='multiple' is for statistic='skce' of probabilities of classes; found "
            f"statistic={name!r} of {data.kind}. Use statistic='skce', or another bandwidth."
        )
    check_metric_fits(metric, data, "statistic")
    judged = metric.validate_options({**options, "bandwidth": "median"})
    check_options_of(metric.function, KERNEL_OPTIONS, {**judged, "bandwidth": "multiple"})
    reduction = judged.pop("multi_class")
    if reduction != "canonical":
        raise ValueError(
            f"bandwidth='multiple' needs multi_class='canonical'; found multi_class={reduction!r}. "
            "Pass bandwidth='median', or a number."
        )
    del judged["average"]
    if judged["method"] == "fourier" and judged["random_state"] is None:
        judged["random_state"] = seed()
    return several_bandwidths(data, judged)


class MetricStatistic(Statistic):
    """Any metric, measured for one vector of outcomes at a time."""

    # enough batches for jobs to share, and for progress to be shown
    min_batches = 64
    supports: frozenset[str] = frozenset()  # the order may matter, unless known otherwise

    def __init__(self, data: AnyData, metric: Metric, params: dict[str, Any]) -> None:
        self.data, self.options = data, {"metric": metric, "params": params}
        self.metric, self.params = metric, params
        if metric.supports_counts:
            self.supports = frozenset({"counts"})

    @property
    def numbers_per_draw(self) -> int:
        data = self.data
        return math.prod(data.proba.shape) if not data.is_forecast else len(data.weight)

    def __call__(self, outcomes: np.ndarray) -> np.ndarray:
        """One value for each vector of outcomes (R, n)."""
        outcomes = outcomes.view()
        outcomes.flags.writeable = False  # they may be those of the data
        values = np.array(self.metric.measure_outcomes(self.data, outcomes, **self.params))
        if values.ndim != 1 or values.dtype.kind not in "biuf":
            raise ValueError(
                f"statistic must return one number; found values of shape {values.shape[1:]} and "
                f"type {values.dtype}. Wrap it in a function that returns a float."
            )
        return values.astype(np.float64, copy=False)


def _independent_seed(random_state: RandomState) -> int:
    """A seed of what is random in the statistic, whose numbers are not those of the draws."""
    if isinstance(random_state, Integral):
        random_state = np.random.RandomState([int(random_state), 1])
    return draw_seed(random_state)


def omnibus_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the omnibus are those of its kernel error, which sums over all pairs."""
    unknown = sorted(map(str, options.keys() - set(_OF_OMNIBUS)))
    if unknown:
        raise TypeError(
            f"The options of statistic='omnibus', which is what 'auto' means, must be among "
            f"{', '.join(_OF_OMNIBUS)}; found {', '.join(unknown)}. Leave them out, or choose the "
            "statistic that takes them, such as statistic='skce'."
        )
    judged = ALL_METRICS[_KERNEL_ERRORS["classes"]].validate_options(options)
    check_options_of(ALL_METRICS[_KERNEL_ERRORS["classes"]].function, KERNEL_OPTIONS, judged)
    if judged["estimation"] in ("linear", "block"):
        raise ValueError(
            "estimation must be 'unbiased' or 'biased' for statistic='omnibus', whose other "
            f"components do not depend on the order of the samples; found "
            f"{judged['estimation']!r}. Use statistic='skce'."
        )
    return {name: judged[name] for name in _OF_OMNIBUS}


def check_is_of_classes(name: str, data: AnyData) -> None:
    """Residuals are of labels, and given nothing but the predictions."""
    if data.is_forecast:
        raise ValueError(
            f"statistic={name!r} is for probabilities of classes; found a forecast. Use 'skce', or "
            "the name of a metric of forecasts."
        )
    if data.given is not None:
        raise ValueError(
            "given must be None unless the statistic has an argument of this name; found one, "
            f"while {name!r} has none. Leave it out, or choose another statistic."
        )


def check_metric_fits(metric: Metric, data: AnyData, name: str) -> None:
    """The metric must be of these data; nothing that is given may be ignored or be missing."""
    check_takes_kind(metric, data.kind, name)
    if data.given is not None and "given" not in metric.parameters:
        raise ValueError(
            f"given must be None unless the metric has an argument of this name; found one, while "
            f"{metric.name} has none. Leave it out, or choose another metric."
        )
    if data.given is None and metric.requires_given:
        raise ValueError(
            f"given must hold what {metric.name} conditions on; found None. Pass the features of "
            "the samples, given=X."
        )


def check_takes_kind(metric: Metric, kind: str, name: str) -> None:
    """Metrics of classes take no forecasts, and most metrics of forecasts no classes."""
    if kind in metric.takes:
        return
    suitable = sorted(entry.name for entry in ALL_METRICS.values() if kind in entry.takes)
    remedy = {
        "forecasts": "A metric of classes takes y > t and forecast.sf(t).",
        "classes": "Forecasts of a number are made with skcalib.forecasts.",
    }
    raise ValueError(
        f"{name} must be a metric of {kind}, which is what the predictions are; found "
        f"{metric.name!r}. Choose one of {suitable}. {remedy[kind]}"
    )
