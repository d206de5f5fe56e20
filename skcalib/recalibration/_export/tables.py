"""The interval maps of recalibrators as tables."""

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from .._auto import AutoRecalibrator
from .._binning import IntervalBinningRecalibrator
from .._isotonic import IsotonicRecalibrator


def unwrap_single_candidate(recalibrator: Any) -> Any:
    """The recalibrator itself, or the one that has all the weight of an average."""
    is_auto = isinstance(recalibrator, AutoRecalibrator)
    is_single = is_auto and len(recalibrator.weights_) == 1 and recalibrator.uniform_share_ == 0
    return recalibrator.best_recalibrator_ if is_single else recalibrator


class Pieces(NamedTuple):
    """From each start to the next one, the map is value + slope · (p − start); the first is 0."""

    start: np.ndarray
    value: np.ndarray
    slope: np.ndarray


@singledispatch
def to_piecewise_linear(recalibrator: Any, params: Any) -> Pieces:
    """The map of one class of an interval recalibrator."""
    raise NotImplementedError


@to_piecewise_linear.register
def _(recalibrator: IsotonicRecalibrator, params: Any) -> Pieces:
    knots, values = params
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        slope = np.append(np.diff(values) / np.diff(knots), 0.0)
    slope[~np.isfinite(slope)] = 0.0  # a step, as nothing lies between
    if knots[0] == 0:
        return Pieces(knots, values, slope)
    return Pieces(np.append(0.0, knots), np.append(values[0], values), np.append(0.0, slope))


@to_piecewise_linear.register
def _(recalibrator: IntervalBinningRecalibrator, params: Any) -> Pieces:
    low, high = recalibrator._clip(np.array([0.0, 1.0]))
    start = np.unique([0.0, low, high, *params.cuts[params.cuts <= 1]])
    value = recalibrator._map_binary(start, params)
    bins = np.searchsorted(params.cuts, start, side="right")
    is_identity = np.isnan(params.values[bins]) & (start >= low) & (start < high)
    begins = np.append(True, np.diff(value) != 0) | is_identity
    return Pieces(start[begins], value[begins], is_identity[begins].astype(np.float64))
