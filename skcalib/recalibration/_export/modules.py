"""The maps of recalibrators as modules of PyTorch, each registered for the class that has it."""

from typing import Any

import numpy as np

from .._auto import AutoRecalibrator
from .._base import make_module, write_module
from .._either import IdentityRecalibrator
from .._logistic import BetaRecalibrator
from .._pairwise import MIN_PRODUCT_PROBABILITY, PairwiseScalingRecalibrator
from .._prior_shift import PriorShiftRecalibrator
from .._scaling import EnsembleTemperatureRecalibrator
from .._spline import SplineRecalibrator, spline_pieces
from .._updating import ClosedTestingRecalibrator
from .formulas import LinearMap, LogOddsMap


@write_module.register
def _(recalibrator: LinearMap | ClosedTestingRecalibrator, dtype: Any) -> Any:
    factor, shift = recalibrator._linear_map()
    return _torch().Scaling(factor, shift, recalibrator.smallest_probability_, dtype)


@write_module.register
def _(recalibrator: IdentityRecalibrator, dtype: Any) -> Any:
    return _scale_all(recalibrator, 1.0, dtype)


@write_module.register
def _(recalibrator: PriorShiftRecalibrator, dtype: Any) -> Any:
    ratio = recalibrator.prevalence_ / recalibrator.source_prevalence_
    with np.errstate(divide="ignore"):
        return _torch().Scaling(np.ones(len(ratio)), np.log(ratio), 0.0, dtype)


@write_module.register
def _(recalibrator: LogOddsMap, dtype: Any) -> Any:
    maps = [_find_pieces(recalibrator, params) for params in recalibrator.maps_]
    n_knots = max(len(knots) for knots, _ in maps)
    shape = len(maps), n_knots + 1, len(maps[0][1][-1])
    knots, coefficients = np.full(shape[:2], np.inf)[:, 1:], np.zeros(shape)
    for k, (points, pieces) in enumerate(maps):
        knots[k, : len(points)] = points
        coefficients[k, : len(pieces)] = pieces
    skew = np.zeros(len(maps))
    if isinstance(recalibrator, BetaRecalibrator):  # a log p - b log q = (a - b) log p + b log p/q
        skew = np.array([a - b for _, a, b in recalibrator.maps_])
    return _torch().LogOddsMaps(
        len(recalibrator.classes_),
        recalibrator.smallest_probability_,
        dtype,
        knots=knots,
        origin=np.hstack([knots[:, :1], knots]) if n_knots else np.zeros(shape[:2]),
        coefficients=coefficients,
        skew=skew,
    )


def _find_pieces(recalibrator: Any, params: Any) -> tuple[np.ndarray, np.ndarray]:
    """The knots (m,) and the coefficients (m + 1, d) of one map, the lowest power first."""
    if isinstance(recalibrator, SplineRecalibrator):
        pieces = spline_pieces(*params)
        return params[0], np.array([np.pad(piece, (0, 4 - len(piece))) for piece in pieces])
    params = params[[0, 2]] if isinstance(recalibrator, BetaRecalibrator) else params
    return np.empty(0), np.array([params])


@write_module.register
def _(recalibrator: EnsembleTemperatureRecalibrator, dtype: Any) -> Any:
    smallest = recalibrator.smallest_probability_
    factors = 1 / recalibrator.temperature_, 1.0, 0.0
    members = [_scale_all(recalibrator, factor, dtype, smallest) for factor in factors]
    return _mix(recalibrator, members, recalibrator.shares_, dtype)


@write_module.register
def _(recalibrator: AutoRecalibrator, dtype: Any) -> Any:
    members = [make_module(each, dtype) for each in recalibrator.recalibrators_.values()]
    members.append(_scale_all(recalibrator, 0.0, dtype))
    weights = [*recalibrator.weights_.values(), recalibrator.uniform_share_]
    return _mix(recalibrator, members, weights, dtype)


@write_module.register
def _(recalibrator: PairwiseScalingRecalibrator, dtype: Any) -> Any:
    n_classes = len(recalibrator.classes_)
    quadratic = np.zeros((n_classes, n_classes, n_classes))
    quadratic[np.triu_indices(n_classes)] = recalibrator.coef_
    base = make_module(recalibrator.base_, dtype)
    return _torch().PairwiseScaling(
        base,
        float(np.log(MIN_PRODUCT_PROBABILITY)),
        recalibrator.smallest_probability_,
        dtype,
        quadratic=quadratic,
        shift=recalibrator.intercept_,
    )


def _scale_all(recalibrator: Any, factor: float, dtype: Any, smallest: float = 0.0) -> Any:
    """A module that multiplies log-probabilities by a factor: 1 for none, 0 for equal ones."""
    n_classes = len(recalibrator.classes_)
    return _torch().Scaling(np.full(n_classes, factor), np.zeros(n_classes), smallest, dtype)


def _mix(recalibrator: Any, members: list[Any], weights: Any, dtype: Any) -> Any:
    """The weighted mean of modules of positive weight; a single one is returned itself."""
    used = [(member, weight) for member, weight in zip(members, weights, strict=True) if weight > 0]
    if len(used) == 1:
        return used[0][0]
    positive = np.array([weight for _, weight in used])
    n_classes = len(recalibrator.classes_)
    return _torch().Mixture(n_classes, [member for member, _ in used], positive, dtype)


def _torch() -> Any:
    """The classes of modules, which need PyTorch."""
    try:
        from . import torch_modules
    except ImportError as error:
        raise ImportError(
            'to_module() needs PyTorch; it is not installed. Run pip install "skcalib[torch]".'
        ) from error
    return torch_modules
