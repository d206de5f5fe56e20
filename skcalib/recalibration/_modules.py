"""The maps of recalibrators as modules of PyTorch, each registered for a node."""

from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._inputs.arrays import import_package
from . import _maps as maps


def make_module(recalibrator: BaseEstimator, dtype: Any) -> Any:
    """The map as a module; refuse maps that are not differentiable, or of more than logits."""
    check_is_fitted(recalibrator)
    try:
        if not hasattr(recalibrator, "classes_"):
            raise maps.NoMapError(type(recalibrator).__name__)
        return _make(maps.state_map(recalibrator, takes_logits=True), dtype)
    except maps.NoMapError as error:
        raise TypeError(
            f"Modules are differentiable maps of logits alone, which this {error.args[0]} is not. "
            "Fit a TemperatureRecalibrator or another smooth map, or an AutoRecalibrator with such "
            "maps as its candidates."
        ) from None


@singledispatch
def _make(stated: maps.Map, dtype: Any) -> Any:
    """The module; registered for every node that is differentiable."""
    raise maps.NoMapError(stated.source)


@_make.register
def _(stated: maps.LogLinear, dtype: Any) -> Any:
    factors, bounds = stated.factors, {}
    if stated.bounds is not None:
        factors, bounds = stated.matrix, {"bounds": stated.bounds}
    return _torch().Scaling(factors, stated.shifts, stated.smallest, dtype, **bounds)


@_make.register
def _(stated: maps.ClassFactors, dtype: Any) -> Any:
    with np.errstate(divide="ignore"):
        shifts = np.log(stated.factors)
    return _torch().Scaling(np.ones(len(shifts)), shifts, 0.0, dtype)


@_make.register
def _(stated: maps.LogOdds, dtype: Any) -> Any:
    curves = stated.curves
    # a log p - b log q = (a - b) log p + b log p/q
    tables = [curve.coefficients for curve in curves]
    n_pieces = max(map(len, tables))
    shape = len(curves), n_pieces, max(2, *(table.shape[1] for table in tables))
    knots, coefficients = np.full((len(curves), n_pieces - 1), np.inf), np.zeros(shape)
    for k, (curve, table) in enumerate(zip(curves, tables, strict=True)):
        knots[k, : len(curve.knots)] = curve.knots
        coefficients[k, : len(table), : table.shape[1]] = table
    coefficients[:, :, 1] += np.array([[curve.b] for curve in curves])
    return _torch().LogOddsMaps(
        max(2, len(curves)),
        stated.smallest,
        dtype,
        knots=knots,
        origin=np.hstack([knots[:, :1], knots]) if n_pieces > 1 else np.zeros(shape[:2]),
        coefficients=coefficients,
        skew=np.array([curve.a - curve.b for curve in curves]),
    )


@_make.register
def _(stated: maps.WeightedMean, dtype: Any) -> Any:
    members, weights = [_make(member, dtype) for member in stated.members], [*stated.weights]
    if stated.uniform > 0:
        zeros = np.zeros(stated.n_classes)
        members.append(_torch().Scaling(zeros, zeros, 0.0, dtype))
        weights.append(stated.uniform)
    return _torch().Mixture(stated.n_classes, members, np.array(weights), dtype)


@_make.register
def _(stated: maps.Composition, dtype: Any) -> Any:
    second, first = (_make(each, dtype) for each in (stated.second, stated.first))
    return _torch().Chain(first, second, dtype)


@_make.register
def _(stated: maps.Pairs, dtype: Any) -> Any:
    n_classes = len(stated.shifts)
    quadratic = np.zeros((n_classes, n_classes, n_classes))
    quadratic[np.triu_indices(n_classes)] = stated.coef
    return _torch().PairwiseScaling(
        n_classes,
        stated.smallest,
        dtype,
        floor=np.log(stated.floor),
        quadratic=quadratic,
        shift=stated.shifts,
    )


def _torch() -> Any:
    """The classes of modules, which need PyTorch."""
    import_package("torch", "to_module()", '"skcalib[torch]"')
    from . import _torch_modules

    return _torch_modules
