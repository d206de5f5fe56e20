"""Measures of a state."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple

import numpy as np
from sklearn.metrics import brier_score_loss

from .._data import ClassData
from .._inputs.annotations import Value
from .._statistics.kernels import SIMPLEX_KERNELS
from .._statistics.squared_error import check_enough_for_estimation, has_negligible_pairs
from ..lenses import _NAMED_LENSES, Lens, _get_lens
from ..metrics._reductions import average_over_reductions
from ..metrics._registry import FOREIGN_METRICS, Metric, find_entry, is_data, metrics_of_counts
from ._checks import is_same_lens

_KERNEL_ERROR_NAMES = (
    "kernel_calibration_error",
    "squared_kernel_calibration_error",
    "laplace_kernel_calibration_error",
)


class BoundedValue(NamedTuple, Generic[Value]):
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
    BoundedValue(value=0.5, bound=0.0)
    """

    value: Value
    bound: Value


@dataclass(frozen=True)
class _BinaryProblems(ClassData):
    """Data of more than two classes, of which a state has only the problems of two classes."""

    state: Any = None

    def iter_problems(self, lens: Lens) -> Iterator[tuple[Any, float, Any]]:
        state = self.state
        if lens not in _NAMED_LENSES.values():
            yield from state._iter_lens_problems()
        elif lens is _get_lens("confidence"):
            yield "", 1.0, state.confidence()._rows()
        elif lens is _get_lens("top-label"):
            for name, problem in state.top_label().items():
                share = problem.total_weight / state.total_weight
                yield name, share, problem._rows() if problem.n_samples else None
        else:
            for name, problem in state.classwise().items():
                rows = problem._rows()
                yield name, float(rows.weight @ rows.label), rows


def evaluate_state(state: Any, metric: str | Callable, params: dict[str, Any]) -> BoundedValue:
    """The value of a metric of a state, and the bound on its change by the grid."""
    entry = _find_entry(metric)
    if entry is None:
        metric = FOREIGN_METRICS[metric] if isinstance(metric, str) else metric
        y_true, y_proba, weight = state.to_arrays()
        value = metric(y_true, y_proba, sample_weight=weight, **params)
        return BoundedValue(value, _foreign_error_bound(metric, params, state.mean_rounding))
    params = entry.fixed | params
    check_metric_params(params, state._multi_class)
    options = entry.validate_options(params)
    has_lens = state._problems and not isinstance(options["multi_class"], str)
    data = next(state._iter_lens_problems())[-1] if has_lens else state._to_binary()._rows()
    if has_lens or not state.is_binary:
        if not has_lens and options["multi_class"] == "canonical":
            return _evaluate_fourier_sums(state, entry.name, params)
        unknown = np.empty((0, len(state.classes)))
        data = _BinaryProblems(
            **vars(data) | {"proba": unknown, "classes": state.classes, "state": state}
        )
    reduction = {name: options[name] for name in ("multi_class", "average")}
    bound = average_over_reductions(partial(_grid_error_bound, entry, options), data, **reduction)
    return BoundedValue(entry.measure(data, **options), bound)


def _find_entry(metric: str | Callable) -> Metric | None:
    """The registry's entry of a metric that counts suffice for; None for a user's function."""
    names = [*metrics_of_counts(), *FOREIGN_METRICS]
    is_taken = metric in names if isinstance(metric, str) else callable(metric)
    entry = find_entry(metric) if is_taken else None
    if not is_taken or (entry and not entry.supports_counts):
        raise ValueError(
            f"metric must be one of {names}, or a function of your own that takes labels, "
            f"probabilities and sample_weight; found {metric!r:.80}. Other metrics need the "
            "samples themselves: compute them from some of the rows."
        )
    return entry


def check_metric_params(params: dict[str, Any], lens: Lens | None = None) -> None:
    """Refuse arguments that the state provides, and options that need the order of samples.

    It counts the problems of a lens if it was made with one.
    """
    reserved = sorted(name for name, value in params.items() if is_data(name, value))
    if reserved:
        raise ValueError(
            f"params must be those that choose how a metric is computed; found {reserved}, "
            "which the state holds. Leave these out."
        )
    if params.get("estimation") in ("linear", "block"):
        raise ValueError(
            f"estimation must not be 'linear' or 'block' for a CalibrationState, in which samples "
            f"have no order; found {params['estimation']!r}. Use 'unbiased' or 'biased'."
        )
    multi_class = params.get("multi_class", "confidence")
    if not isinstance(multi_class, str) and not is_same_lens(multi_class, lens):
        raise ValueError(
            "multi_class must be the name of a lens, or the lens whose problems the state counts; "
            f"found {multi_class!r}, and {lens!r} in the state. Make the state with "
            f"CalibrationState(multi_class={multi_class!r}), and evaluate it."
        )
    if params.get("strategy") == "median-variance":
        raise ValueError(
            "strategy must be 'uniform' or 'quantile' for a CalibrationState, as the least number "
            "of samples in a bin needs the samples; found 'median-variance'."
        )


def _foreign_error_bound(metric: str | Callable, params: dict[str, Any], move: float) -> float:
    """The bound for a metric of another package: finite for the Brier score only."""
    if move == 0:
        return 0.0
    if metric is not brier_score_loss:
        return np.inf
    return (2.0 if params.get("scale_by_half", True) else 4.0) * move


def _grid_error_bound(entry: Metric, options: dict[str, Any], rows: ClassData) -> float:
    """The largest change of a measure of two classes by the grid; infinite if it is not known."""
    move = rows.mean_rounding
    if move == 0:
        return 0.0
    if entry.lipschitz_constant is not None:
        return entry.lipschitz_constant * move
    change = _squared_error_slope(entry.name, options) * move
    if entry.name == "kernel_calibration_error" or not options.get("squared", True):
        return float(np.sqrt(change))
    if not np.isfinite(change) or options.get("estimation", "biased") == "biased":
        return change
    has_pairs = rows.n_samples > 1 and not has_negligible_pairs(rows)
    return change / (1 - rows.inverse_effective_size) if has_pairs else np.nan


def _squared_error_slope(name: str, options: dict[str, Any]) -> float:
    """The largest change of a squared kernel error by a move of 1; infinite if it is not known.

    It is known for exact errors with a named kernel that is not Gaussian, and a bandwidth.
    """
    if name not in _KERNEL_ERROR_NAMES or options.get("method", "exact") != "exact":
        return np.inf
    bandwidth = options["bandwidth"]
    if name == "laplace_kernel_calibration_error":
        return 2 * (1 + 1 / bandwidth)
    kernel = options["kernel"]
    family = None if callable(kernel) else SIMPLEX_KERNELS[kernel]
    if family is None or family.is_gaussian or options["class_kernel"] is not None:
        return np.inf
    bandwidth = 1.0 if family.is_linear else bandwidth
    return np.inf if bandwidth == "median" else 4 * (1 + family.per_probability / bandwidth)


def _evaluate_fourier_sums(state: Any, name: str, params: dict[str, Any]) -> BoundedValue:
    """`evaluate_state` for the squared kernel error of all classes together, or its root."""
    is_root = name == "kernel_calibration_error"
    if not is_root and name != "squared_kernel_calibration_error":
        raise ValueError(
            f"multi_class='canonical' needs the samples themselves for {name}; found "
            "a CalibrationState. Choose another multi_class."
        )
    state_options = state._options | {"method": "fourier", "class_kernel": None, "block_size": None}
    del state_options["decimals"]
    requested = params.keys() - {"estimation", "multi_class", "average"}
    agrees = all(
        name in state_options and np.array_equal(state_options[name], params[name])
        for name in requested
    )
    if state._sums is None or not agrees:
        raise ValueError(
            "The kernel error of all classes together is that of the random features whose sums "
            f"the state keeps, with {state_options}; found {params}. Leave the arguments but "
            "estimation out (and make the state with the kernel and bandwidth that you want, and "
            "n_components > 0), or pass multi_class='confidence' or 'classwise'."
        )
    estimation = "biased" if is_root else params.get("estimation", "unbiased")
    check_enough_for_estimation(state.confidence()._rows(), estimation)
    value = state._sums.squared_error(estimation)
    bound = np.inf if state._sums.is_rounded else 0.0
    return BoundedValue(float(np.sqrt(value)) if is_root else value, bound)
