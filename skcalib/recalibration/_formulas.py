"""The maps of recalibrators as formulas in SQL, and the pieces of interval maps."""

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from ._auto import AutoRecalibrator
from ._base import OneVsRestRecalibrator
from ._binning import ScalingBinningRecalibrator
from ._either import IdentityRecalibrator
from ._isotonic import IsotonicRecalibrator, VennAbersRecalibrator
from ._logistic import BetaRecalibrator, LogisticRecalibrator
from ._logits import LogScaleRecalibrator
from ._pairwise import LEAST, PairwiseScalingRecalibrator
from ._prior_shift import PriorShiftRecalibrator
from ._registry import RecalibratorChain
from ._scaling import (
    DirichletRecalibrator,
    EnsembleTemperatureRecalibrator,
    MatrixScalingRecalibrator,
)
from ._spline import SplineRecalibrator, spline_pieces
from ._sql import (
    HIGHEST,
    LOWEST,
    Subqueries,
    clip,
    clip_expression,
    expit,
    float_literal,
    from_point,
    linear,
    log_expressions,
    logs_of,
    normalize_expressions,
    parenthesize,
    share,
    shares_of,
    softmax,
    steps,
)
from ._updating import ClosedTestRecalibrator


def unwrap_single_candidate(recalibrator: Any) -> Any:
    """The recalibrator itself, or the one that has all the weight of an average."""
    is_auto = isinstance(recalibrator, AutoRecalibrator)
    return (
        recalibrator.best_recalibrator_
        if is_auto and len(recalibrator.weights_) == 1 and recalibrator.uniform_share_ == 0
        else recalibrator
    )


class Pieces(NamedTuple):
    """From each start to the next one, the map is value + slope · (p − start); the first is 0."""

    start: np.ndarray
    value: np.ndarray
    slope: np.ndarray


def to_piecewise_linear(recalibrator: Any, params: Any) -> Pieces:
    """The map of one class of an interval recalibrator."""
    if isinstance(recalibrator, IsotonicRecalibrator):
        knots, values = params
        with np.errstate(over="ignore"):
            slope = np.append(np.diff(values) / np.diff(knots), 0.0)
        slope[~np.isfinite(slope)] = 0.0  # a step, as nothing lies between
        if knots[0] == 0:
            return Pieces(knots, values, slope)
        return Pieces(np.append(0.0, knots), np.append(values[0], values), np.append(0.0, slope))
    low, high = recalibrator._clip(np.array([0.0, 1.0]))
    start = np.unique([0.0, low, high, *params.cuts[params.cuts <= 1]])
    value = recalibrator._map_binary(start, params)
    bins = np.searchsorted(params.cuts, start, side="right")
    keeps = np.isnan(params.values[bins]) & (start >= low) & (start < high)
    begins = np.append(True, np.diff(value) != 0) | keeps
    return Pieces(start[begins], value[begins], keeps[begins].astype(np.float64))


@singledispatch
def sql_expressions(recalibrator: Any, names: list[str]) -> list[str]:
    """The map as formulas, one for two classes or K, of the names of the probabilities."""
    raise ValueError(
        "recalibrator must have a map that a formula can express; found "
        f"{type(recalibrator).__name__}. Call its predict_proba, or choose another recalibrator."
    )


@sql_expressions.register
def _(recalibrator: IdentityRecalibrator, names: list[str]) -> list[str]:
    return names


@sql_expressions.register
def _(recalibrator: AutoRecalibrator, names: list[str]) -> list[str]:
    if (only := unwrap_single_candidate(recalibrator)) is not recalibrator:
        return sql_expressions(only, names)
    components = [
        [
            f"{float_literal(weight)} * {parenthesize(formula)}"
            for formula in sql_expressions(mapped_name, names)
        ]
        for mapped_name, weight in zip(
            recalibrator.recalibrators_.values(), recalibrator.weights_.values(), strict=True
        )
    ]
    if recalibrator.uniform_share_ > 0:
        uniform = float_literal(recalibrator.uniform_share_ / len(recalibrator.classes_))
        components.append([uniform] * len(names))
    return [" + ".join(terms) for terms in zip(*components, strict=True)]


@sql_expressions.register(OneVsRestRecalibrator)
@sql_expressions.register(LogisticRecalibrator)
def _(recalibrator: Any, names: list[str]) -> list[str]:
    mapped = _class_expressions(recalibrator, names)
    return (
        mapped
        if len(names) == 1
        else normalize_expressions([parenthesize(mapped_name) for mapped_name in mapped], names)
    )


@sql_expressions.register
def _(recalibrator: PriorShiftRecalibrator, names: list[str]) -> list[str]:
    new, old = recalibrator.prevalence_, recalibrator.source_prevalence_
    if np.array_equal(new, old):
        return names
    both = [parenthesize(f"{float_literal(1)} - {names[0]}"), *names] if len(names) == 1 else names
    components = [
        parenthesize(linear(0.0, [factor], [name]))
        for factor, name in zip(new / old, both, strict=True)
    ]
    total = parenthesize(" + ".join(components))
    shares = [
        share(component, total, float_literal(mapped_name))
        for component, mapped_name in zip(components, new, strict=True)
    ]
    return shares[-len(names) :]


@sql_expressions.register
def _(recalibrator: LogScaleRecalibrator, names: list[str]) -> list[str]:
    check_is_of_probabilities(recalibrator)
    smallest = recalibrator.smallest_probability_
    factors, shift = recalibrator._linear_map()
    matrix = np.diag(factors) if factors.ndim == 1 else factors
    if len(names) == 1:
        slope, constant = (matrix[1] - matrix[0])[::-1], shift[1] - shift[0]

        def positive(ends: np.ndarray) -> np.ndarray:
            return recalibrator._map(ends)[:, 1]

        def of_kept(clipped: str) -> str:
            return expit(linear(constant, slope, logs_of(clipped)))

        return [clip_expression(names[0], smallest, positive, of_kept)]
    return softmax(log_expressions(names, smallest), -np.log(smallest), matrix, shift)


@sql_expressions.register
def _(recalibrator: ClosedTestRecalibrator, names: list[str]) -> list[str]:
    if recalibrator.chosen_ == "none" and recalibrator.input_type == "probabilities":
        return names
    return sql_expressions.dispatch(LogScaleRecalibrator)(recalibrator, names)


@sql_expressions.register
def _(recalibrator: EnsembleTemperatureRecalibrator, names: list[str]) -> list[str]:
    check_is_of_probabilities(recalibrator)
    smallest, inverse = recalibrator.smallest_probability_, 1 / recalibrator.temperature_
    *shares, uniform_share = recalibrator.shares_
    if len(names) == 1:

        def positive(ends: np.ndarray) -> np.ndarray:
            return recalibrator._map(ends)[:, 1]

        def mixture(clipped: str) -> str:
            tempered = parenthesize(expit(linear(0.0, [inverse, -inverse], logs_of(clipped))))
            return linear(uniform_share / 2, shares, [tempered, clipped])

        return [clip_expression(names[0], smallest, positive, mixture)]
    logs, n_classes = log_expressions(names, smallest), len(names)
    tempered, given = (
        softmax(logs, -np.log(smallest), factor * np.eye(n_classes), np.zeros(n_classes))
        for factor in (inverse, 1.0)
    )
    return [
        clip(
            parenthesize(
                linear(uniform_share / n_classes, shares, [parenthesize(t), parenthesize(g)])
            ),
            LOWEST,
            HIGHEST,
        )
        for t, g in zip(tempered, given, strict=True)
    ]


@singledispatch
def sql_expressions_in_layers(recalibrator: Any, names: list[str], layers: Subqueries) -> list[str]:
    """The map as formulas of names that it adds in layers, where it uses an expression often."""
    return sql_expressions(recalibrator, names)


@sql_expressions_in_layers.register(OneVsRestRecalibrator)
@sql_expressions_in_layers.register(LogisticRecalibrator)
def _(recalibrator: Any, names: list[str], layers: Subqueries) -> list[str]:
    mapped = _class_expressions(recalibrator, names)
    return mapped if len(names) == 1 else normalize_expressions(layers.add_layer(mapped), names)


@sql_expressions_in_layers.register
def _(recalibrator: RecalibratorChain, names: list[str], layers: Subqueries) -> list[str]:
    first = sql_expressions_in_layers(recalibrator.first_, names, layers)
    return sql_expressions_in_layers(recalibrator.second_, layers.add_layer(first), layers)


@sql_expressions_in_layers.register
def _(recalibrator: ScalingBinningRecalibrator, names: list[str], layers: Subqueries) -> list[str]:
    results = layers.add_layer(sql_expressions_in_layers(recalibrator.recalibrator_, names, layers))
    binned = [
        steps(name, mapped_name.cuts, [*map(float_literal, mapped_name.values)])
        for name, mapped_name in zip(results, recalibrator.maps_, strict=True)
    ]
    return binned if len(names) == 1 else normalize_expressions(layers.add_layer(binned), results)


@sql_expressions_in_layers.register(MatrixScalingRecalibrator)
@sql_expressions_in_layers.register(DirichletRecalibrator)
def _(recalibrator: Any, names: list[str], layers: Subqueries) -> list[str]:
    if len(names) == 1:
        return sql_expressions(recalibrator, names)
    factors, shifts = recalibrator._linear_map()
    logs = layers.add_layer(log_expressions(names, recalibrator.smallest_probability_))
    scores = [linear(shift, row, logs) for shift, row in zip(shifts, factors, strict=True)]
    shares = layers.add_layer(shares_of(layers.add_layer(scores)))
    return [clip(share, LOWEST, HIGHEST) for share in shares]


@sql_expressions_in_layers.register
def _(recalibrator: PairwiseScalingRecalibrator, names: list[str], layers: Subqueries) -> list[str]:
    n_classes, least = len(recalibrator.classes_), np.log(LEAST)
    base = layers.add_layer(sql_expressions_in_layers(recalibrator.base_, names, layers))
    proba = [parenthesize(f"{float_literal(1)} - {base[0]}"), *base] if len(base) == 1 else base
    logs = layers.add_layer(log_expressions(proba, recalibrator.smallest_probability_))
    clipped_logs = [steps(log, np.array([least]), [float_literal(least), log]) for log in logs]
    mean = f"{parenthesize(' + '.join(clipped_logs))} / {float_literal(n_classes)}"
    relative = layers.add_layer([f"{mapped_name} - {mean}" for mapped_name in clipped_logs])
    pairs = zip(*np.triu_indices(n_classes), strict=True)
    terms = [f"{relative[i]} * {relative[j]}" for i, j in pairs]
    shifts, factors = recalibrator.intercept_, recalibrator.coef_.T
    scores = [
        f"{log} + {parenthesize(linear(shift, row, terms))}"
        for log, shift, row in zip(logs, shifts, factors, strict=True)
    ]
    shares = shares_of(layers.add_layer(scores))[-len(names) :]
    return [clip(parenthesize(share), LOWEST, HIGHEST) for share in shares]


@sql_expressions.register(RecalibratorChain)
@sql_expressions.register(ScalingBinningRecalibrator)
@sql_expressions.register(PairwiseScalingRecalibrator)
def _(recalibrator: Any, names: list[str]) -> list[str]:
    layers = Subqueries(names)
    return [
        layers.wrap(formula) for formula in sql_expressions_in_layers(recalibrator, names, layers)
    ]


def _class_expressions(recalibrator: Any, names: list[str]) -> list[str]:
    """The map of each class as a formula, or of the last of two."""
    return [
        _class_expression(recalibrator, name, params)
        for name, params in zip(names, recalibrator.maps_, strict=True)
    ]


def _class_expression(recalibrator: Any, name: str, params: Any) -> str:
    """The map of one class as a formula."""
    if isinstance(recalibrator, VennAbersRecalibrator):
        (from_knot, lower), (to_knot, upper) = params
        low = parenthesize(steps(name, from_knot, [*map(float_literal, [0.0, *lower])]))
        high = parenthesize(steps(name, to_knot, [*map(float_literal, [*upper, 1.0])], closed=True))
        return f"{high} / ({float_literal(1)} - {low} + {high})"
    if not isinstance(recalibrator, LogisticRecalibrator):
        piecewise = to_piecewise_linear(recalibrator, params)
        pieces = [
            linear(value, [slope], [from_point(name, start)])
            for start, value, slope in zip(*piecewise, strict=True)
        ]
        return steps(name, piecewise.start[1:], pieces)
    return clip_expression(
        name,
        recalibrator.smallest_probability_,
        lambda ends: recalibrator._map_binary(ends, params),
        lambda kept: expit(_log_odds_of(recalibrator, logs_of(kept), params)),
    )


def _log_odds_of(recalibrator: LogisticRecalibrator, logs: list[str], params: Any) -> str:
    """Calibrated log-odds, of the logarithms of a probability and of the other one."""
    if isinstance(recalibrator, BetaRecalibrator):
        c, a, b = params
        return linear(c, [a, -b], logs)
    x = parenthesize(" - ".join(logs))
    if not isinstance(recalibrator, SplineRecalibrator):
        powers = [" * ".join([x] * power) for power in range(1, len(params))]
        return linear(params[0], params[1:], powers)
    knots, values = params
    pieces = []
    for origin, coefficients in zip([knots[0], *knots], spline_pieces(knots, values), strict=True):
        distance = from_point(x, origin)
        piece = float_literal(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            piece = f"{float_literal(coefficient)} + {distance} * ({piece})"
        pieces.append(piece)
    return steps(x, knots, pieces)


def check_is_of_probabilities(recalibrator: Any) -> None:
    """Refuse a map of logits, which has no formula of probabilities."""
    if recalibrator.input_type == "logits":
        raise ValueError(
            "recalibrator must be fitted on probabilities, whose formula this is; found "
            "input_type='logits'. Fit it on scipy.special.softmax(X, axis=1), and apply the "
            "formula to that."
        )
