"""Measures of a state."""

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import brier_score_loss

from .._inputs.predictions import Predictions
from .._statistics.functions import KERNELS
from .._statistics.squared_error import check_enough_for_estimator, pairs_are_lost
from ..metrics._reductions import average_over_reductions
from ..metrics._registry import METRICS, entry_of

KNOWN = sorted(name for name, metric in METRICS.items() if metric.of_counts)


class Evaluation(NamedTuple):
    """A measure of the predictions on the grid, and what the grid can have changed.

    Parameters
    ----------
    value : float or ndarray of shape (n_classes,)
        The measure.

    bound : float or ndarray of shape (n_classes,)
        How far it can be from the same measure of the predictions as they came: 0 if all were on
        the grid, infinite if nothing is known.

    See Also
    --------
    CalibrationState.evaluate : Where evaluations come from.

    Examples
    --------
    >>> from skcalib.streaming import CalibrationState
    >>> state = CalibrationState().update([0, 1, 1, 0], [0.1, 0.4, 0.6, 0.9])
    >>> state.evaluate("expected_calibration_error")
    Evaluation(value=0.5, bound=0.0)
    """

    value: float | np.ndarray
    bound: float | np.ndarray


@dataclass(frozen=True)
class _Reduced(Predictions):
    """More than two classes, of which a state knows the problems of two classes alone."""

    state: Any = None

    def confidence(self) -> Predictions:
        return self.state.confidence()._rows()

    def top_label(self) -> Iterator[tuple[float, Predictions | None]]:
        for part in self.state.top_label().values():
            share = part.total_weight / self.state.total_weight
            yield share, part._rows() if part.n_samples else None

    def classwise(self) -> Iterator[tuple[float, Predictions]]:
        for part in self.state.classwise().values():
            rows = part._rows()
            yield float(rows.weight @ rows.label), rows


def evaluated(state: Any, metric: str | Callable, params: dict[str, Any]) -> Evaluation:
    """The value of a metric, and what the grid can have changed."""
    function = _function_of(metric)
    is_ours = entry_of(function) is not None
    while is_ours and isinstance(function, partial):
        params = function.keywords | params
        function = function.func
    if not is_ours:
        y_true, y_proba, weight = state.to_arrays()
        rows = (state if state.is_binary else state.confidence())._rows()
        value = function(y_true, y_proba, sample_weight=weight, **params)
        return Evaluation(value, _change(function, params, rows))
    check_params(params)
    if state.is_binary:
        rows = state._rows()
        return Evaluation(function(rows, None, **params), _change(function, params, rows))
    chosen = _defaults(function) | params
    if chosen["multi_class"] == "canonical":
        return _by_fourier_sums(state, function, params)
    rows, unknown = state.confidence()._rows(), np.empty((0, len(state.classes)))
    reduced = _Reduced(**vars(rows) | {"proba": unknown, "classes": state.classes, "state": state})
    change = partial(_change, function, params)
    return Evaluation(
        function(reduced, None, **params),
        average_over_reductions(change, reduced, chosen["multi_class"], chosen["average"]),
    )


def _function_of(metric: str | Callable) -> Callable:
    entry = METRICS.get(metric) if isinstance(metric, str) else entry_of(metric)
    if entry is None and not isinstance(metric, str):
        return metric
    if entry is None or not entry.of_counts:
        raise ValueError(
            f"metric must be one of {KNOWN}, or a function of your own that takes labels, "
            f"probabilities and sample_weight; found {metric!r}. Others need the samples "
            "themselves: compute them of a part of the rows."
        )
    return entry.function if isinstance(metric, str) else metric


def check_params(params: dict[str, Any]) -> None:
    """Refuse arguments that the state provides, and options that need the order of samples."""
    held = {"y_true", "y_proba", "sample_weight", "labels", "pos_label"} & params.keys()
    if held:
        raise ValueError(
            f"params must be those that choose how a metric is computed; found {sorted(held)}, "
            "which the state holds. Leave these out."
        )
    if params.get("estimator", "biased") not in ("biased", "unbiased"):
        raise ValueError(
            f"estimator must be 'unbiased' or 'biased' for a CalibrationState, in which samples "
            f"have no order; found {params['estimator']!r}."
        )
    if params.get("strategy") == "median-variance":
        raise ValueError(
            "strategy must be 'uniform' or 'quantile' for a CalibrationState, as the least number "
            "of samples in a bin needs the samples; found 'median-variance'."
        )


def _defaults(function: Callable) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not one.empty}


def _change(function: Callable, params: dict[str, Any], rows: Predictions) -> float:
    """By how much the grid can have changed a measure of two classes."""
    move, entry = rows.mean_move, entry_of(function)
    if move == 0:
        return 0.0
    if function is brier_score_loss:
        return (2.0 if params.get("scale_by_half", True) else 4.0) * move
    if entry is None:
        return np.inf
    name, chosen = entry.name, _defaults(function) | params
    if entry.change_per_move is not None:
        return entry.change_per_move * move
    if name == "laplace_kernel_calibration_error" and chosen["method"] == "exact":
        change = 2 * move * (1 + 1 / chosen["bandwidth"])
        return change if chosen["squared"] else float(np.sqrt(change))
    is_kernel = name in ("kernel_calibration_error", "squared_kernel_calibration_error")
    if is_kernel and chosen["bandwidth"] != "median" and chosen["class_kernel"] is None:
        family = KERNELS.get(chosen["kernel"]) if isinstance(chosen["kernel"], str) else None
        is_exact = chosen.get("method", "exact") == "exact"
        if family is not None and not family.is_gaussian and is_exact:
            change = 4 * move * (1 + family.per_probability / chosen["bandwidth"])
            if name == "kernel_calibration_error":
                return float(np.sqrt(change))
            if chosen["estimator"] == "biased":
                return change
            has_pairs = rows.n_samples > 1 and not pairs_are_lost(rows)
            return change / (1 - rows.share_of_one_sample) if has_pairs else np.nan
    return np.inf


def _by_fourier_sums(state: Any, function: Callable, params: dict[str, Any]) -> Evaluation:
    """The squared kernel error of all classes together, and its root."""
    is_root = function is METRICS["kernel_calibration_error"].function
    if not is_root and function is not METRICS["squared_kernel_calibration_error"].function:
        raise ValueError(
            f"multi_class='canonical' needs the samples themselves for {function.__name__}; found "
            "a CalibrationState. Choose another multi_class."
        )
    own = {name: state._options[name] for name in ("kernel", "bandwidth", "n_components")}
    own |= {"random_state": state._options["random_state"], "method": "fourier"}
    own |= {"class_kernel": None, "block_size": None}
    others = params.keys() - {"estimator", "multi_class", "average"}
    is_own = all(name in own and np.array_equal(own[name], params[name]) for name in others)
    if state._sums is None or not is_own:
        raise ValueError(
            "The kernel error of all classes together is that of the random features whose sums "
            f"the state keeps, with {own}; found {params}. Leave the arguments but estimator out "
            "(and make the state with the kernel and bandwidth that you want, and n_components > "
            "0), or pass multi_class='confidence' or 'classwise'."
        )
    estimator = "biased" if is_root else params.get("estimator", "unbiased")
    check_enough_for_estimator(state.confidence()._rows(), estimator)
    value = state._sums.squared_error(estimator)
    bound = np.inf if state._sums.moved else 0.0
    return Evaluation(math.sqrt(value) if is_root else value, bound)
