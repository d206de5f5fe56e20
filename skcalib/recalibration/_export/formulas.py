"""The maps of recalibrators as formulas in SQL, each registered for the class that has it."""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np

from .._auto import AutoRecalibrator
from .._base import supports_map
from .._binning import IntervalBinningRecalibrator, ScalingBinningRecalibrator
from .._either import IdentityRecalibrator
from .._isotonic import IsotonicRecalibrator, VennAbersRecalibrator
from .._logistic import BetaRecalibrator, QuadraticRecalibrator, SigmoidRecalibrator
from .._pairwise import MIN_PRODUCT_PROBABILITY, PairwiseScalingRecalibrator
from .._prior_shift import PriorShiftRecalibrator
from .._registry import RecalibratorChain
from .._scaling import (
    DirichletRecalibrator,
    EnsembleTemperatureRecalibrator,
    MatrixScalingRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
)
from .._spline import SplineRecalibrator, spline_pieces
from .._trees import TreeRecalibrator
from .._updating import ClosedTestingRecalibrator, InterceptRecalibrator
from .sql import (
    MAX_PROBA,
    MIN_PROBA,
    Subqueries,
    clip,
    clip_expression,
    difference,
    expit,
    float_literal,
    linear,
    log_expressions,
    log_pair,
    normalize_expressions,
    parenthesize,
    quotient_expression,
    score_softmax,
    softmax_expressions,
    steps,
)
from .tables import to_piecewise_linear, unwrap_single_candidate

# Recalibrators whose maps have the same kind of formula. Subclasses must pass `supports_map`, too.
PiecewiseLinearMap = IsotonicRecalibrator | IntervalBinningRecalibrator
LogOddsMap = SigmoidRecalibrator | QuadraticRecalibrator | BetaRecalibrator | SplineRecalibrator
OneVsRestMap = PiecewiseLinearMap | VennAbersRecalibrator | LogOddsMap
MatrixMap = MatrixScalingRecalibrator | DirichletRecalibrator
LinearMap = TemperatureRecalibrator | VectorScalingRecalibrator | InterceptRecalibrator | MatrixMap


def sql_expressions(
    recalibrator: Any, names: list[str], layers: Subqueries | None = None
) -> list[str]:
    """The map as formulas, one for two classes or K, of the names of the probabilities.

    They may use names of expressions that they add to the layers, if there are layers.
    """
    if isinstance(recalibrator, TreeRecalibrator):
        raise ValueError(
            "recalibrator must have a map that a formula can express; found an AutoRecalibrator "
            "with trees, whose formulas would be too long. Fit AutoRecalibrator(trees=False), or "
            "call its predict_proba."
        )
    if not supports_map(_write, recalibrator):
        raise ValueError(
            "recalibrator must have a map that a formula can express; found "
            f"{type(recalibrator).__name__}. Call its predict_proba, or choose another "
            "recalibrator."
        )
    if layers is None:
        return _write(recalibrator, names)
    return _write_in_layers(recalibrator, names, layers)


@singledispatch
def _write(recalibrator: Any, names: list[str]) -> list[str]:
    """The formulas of names; registered for every class that has formulas."""
    raise NotImplementedError


@_write.register
def _(recalibrator: IdentityRecalibrator, names: list[str]) -> list[str]:
    return names


@_write.register
def _(recalibrator: AutoRecalibrator, names: list[str]) -> list[str]:
    if (only := unwrap_single_candidate(recalibrator)) is not recalibrator:
        return sql_expressions(only, names)
    components = [
        [
            f"{float_literal(recalibrator.weights_[name])} * {parenthesize(formula)}"
            for formula in sql_expressions(candidate, names)
        ]
        for name, candidate in recalibrator.recalibrators_.items()
    ]
    if recalibrator.uniform_share_ > 0:
        uniform = float_literal(recalibrator.uniform_share_ / len(recalibrator.classes_))
        components.append([uniform] * len(names))
    return [" + ".join(terms) for terms in zip(*components, strict=True)]


@_write.register
def _(recalibrator: OneVsRestMap, names: list[str]) -> list[str]:
    if len(names) == 2:
        positive = _both_columns_expression(recalibrator, names)
        return [f"{float_literal(1)} - {parenthesize(positive)}", positive]
    mapped = _class_expressions(recalibrator, names)
    if len(names) == 1:
        return mapped
    return normalize_expressions(list(map(parenthesize, mapped)), names)


@_write.register
def _(recalibrator: PriorShiftRecalibrator, names: list[str]) -> list[str]:
    new, old = recalibrator.prevalence_, recalibrator.source_prevalence_
    if np.array_equal(new, old):
        return names
    both = [parenthesize(f"{float_literal(1)} - {names[0]}"), *names] if len(names) == 1 else names
    products = [
        parenthesize(linear(0.0, [factor], [name]))
        for factor, name in zip(new / old, both, strict=True)
    ]
    total = parenthesize(" + ".join(products))
    shares = [
        quotient_expression(product, total, float_literal(prevalence))
        for product, prevalence in zip(products, new, strict=True)
    ]
    return shares[-len(names) :]


@_write.register
def _write_linear(recalibrator: LinearMap, names: list[str]) -> list[str]:
    check_is_of_probabilities(recalibrator)
    smallest = smallest_clipped(recalibrator, names)
    factors, shift = recalibrator._linear_map()
    matrix = np.diag(factors) if factors.ndim == 1 else factors
    if len(names) == 1:
        slope, constant = (matrix[1] - matrix[0])[::-1], shift[1] - shift[0]

        def sigmoid(clipped: str) -> str:
            return expit(linear(constant, slope, log_pair(clipped)))

        return [clip_expression(names[0], smallest, _last_column(recalibrator), sigmoid)]
    return softmax_expressions(log_expressions(names, smallest), -np.log(smallest), matrix, shift)


@_write.register
def _(recalibrator: ClosedTestingRecalibrator, names: list[str]) -> list[str]:
    if recalibrator.chosen_ == "none" and recalibrator.input_type == "probabilities":
        return names
    return _write_linear(recalibrator, names)


@_write.register
def _(recalibrator: EnsembleTemperatureRecalibrator, names: list[str]) -> list[str]:
    check_is_of_probabilities(recalibrator)
    smallest = smallest_clipped(recalibrator, names)
    inverse = 1 / recalibrator.temperature_
    *shares, uniform_share = recalibrator.shares_
    if len(names) == 1:

        def mixture(clipped: str) -> str:
            tempered = parenthesize(expit(linear(0.0, [inverse, -inverse], log_pair(clipped))))
            return linear(uniform_share / 2, shares, [tempered, clipped])

        return [clip_expression(names[0], smallest, _last_column(recalibrator), mixture)]
    logs, n_classes = log_expressions(names, smallest), len(names)
    tempered, unchanged = (
        softmax_expressions(
            logs, -np.log(smallest), factor * np.eye(n_classes), np.zeros(n_classes)
        )
        for factor in (inverse, 1.0)
    )
    mixtures = [
        linear(uniform_share / n_classes, shares, [parenthesize(t), parenthesize(u)])
        for t, u in zip(tempered, unchanged, strict=True)
    ]
    return [clip(parenthesize(formula), MIN_PROBA, MAX_PROBA) for formula in mixtures]


@_write.register
def _(
    recalibrator: RecalibratorChain | ScalingBinningRecalibrator | PairwiseScalingRecalibrator,
    names: list[str],
) -> list[str]:
    layers = Subqueries(names)
    return [layers.wrap(formula) for formula in _write_in_layers(recalibrator, names, layers)]


@singledispatch
def _write_in_layers(recalibrator: Any, names: list[str], layers: Subqueries) -> list[str]:
    """The formulas of names in layers, where the map uses an expression often."""
    return _write(recalibrator, names)


@_write_in_layers.register
def _(recalibrator: OneVsRestMap, names: list[str], layers: Subqueries) -> list[str]:
    if len(names) < 3:
        return _write(recalibrator, names)
    return normalize_expressions(layers.add_layer(_class_expressions(recalibrator, names)), names)


@_write_in_layers.register
def _(recalibrator: RecalibratorChain, names: list[str], layers: Subqueries) -> list[str]:
    first = sql_expressions(recalibrator.base_, names, layers)
    return sql_expressions(recalibrator.second_, layers.add_layer(first), layers)


@_write_in_layers.register
def _(recalibrator: ScalingBinningRecalibrator, names: list[str], layers: Subqueries) -> list[str]:
    results = layers.add_layer(sql_expressions(recalibrator.recalibrator_, names, layers))
    n_maps = len(recalibrator.maps_)
    binned = [
        steps(name, step_map.cuts, [*map(float_literal, step_map.values)])
        for name, step_map in zip(results[-n_maps:], recalibrator.maps_, strict=True)
    ]
    if n_maps == 1:
        return [f"{float_literal(1)} - {binned[0]}", *binned][-len(names) :]
    return normalize_expressions(layers.add_layer(binned), results)


@_write_in_layers.register
def _(recalibrator: MatrixMap, names: list[str], layers: Subqueries) -> list[str]:
    if len(names) == 1:
        return _write(recalibrator, names)
    factors, shifts = recalibrator._linear_map()
    logs = layers.add_layer(log_expressions(names, recalibrator.smallest_probability_))
    scores = [linear(shift, row, logs) for shift, row in zip(shifts, factors, strict=True)]
    shares = layers.add_layer(score_softmax(layers.add_layer(scores)))
    return [clip(share, MIN_PROBA, MAX_PROBA) for share in shares]


@_write_in_layers.register
def _(recalibrator: PairwiseScalingRecalibrator, names: list[str], layers: Subqueries) -> list[str]:
    n_classes, least = len(recalibrator.classes_), np.log(MIN_PRODUCT_PROBABILITY)
    base = layers.add_layer(sql_expressions(recalibrator.base_, names, layers))
    proba = [parenthesize(f"{float_literal(1)} - {base[0]}"), *base] if len(base) == 1 else base
    logs = layers.add_layer(log_expressions(proba, recalibrator.smallest_probability_))
    clipped_logs = [steps(log, np.array([least]), [float_literal(least), log]) for log in logs]
    mean = f"{parenthesize(' + '.join(clipped_logs))} / {float_literal(n_classes)}"
    relative = layers.add_layer([f"{log} - {mean}" for log in clipped_logs])
    pairs = zip(*np.triu_indices(n_classes), strict=True)
    terms = [f"{relative[i]} * {relative[j]}" for i, j in pairs]
    shifts, factors = recalibrator.intercept_, recalibrator.coef_.T
    scores = [
        f"{log} + {parenthesize(linear(shift, row, terms))}"
        for log, shift, row in zip(logs, shifts, factors, strict=True)
    ]
    shares = score_softmax(layers.add_layer(scores))[-len(names) :]
    return [clip(parenthesize(share), MIN_PROBA, MAX_PROBA) for share in shares]


def _class_expressions(recalibrator: Any, names: list[str]) -> list[str]:
    """The map of each class as a formula, or of the last of two."""
    return [
        _class_expression(recalibrator, name, params)
        for name, params in zip(names, recalibrator.maps_, strict=True)
    ]


@singledispatch
def _both_columns_expression(recalibrator: Any, names: list[str]) -> str:
    """The map of the last of two classes as a formula of both columns."""
    if recalibrator._both_params is None:
        return _class_expression(recalibrator, names[1], recalibrator.maps_[0])
    first, last = (
        _class_expression(recalibrator, parenthesize(f"{name} / ({' + '.join(names)})"), params)
        for name, params in zip(names, recalibrator._both_params, strict=True)
    )
    return (
        f"CASE WHEN {names[1]} > {names[0]} THEN {float_literal(1)} - {parenthesize(first)} "
        f"ELSE {last} END"
    )


@_both_columns_expression.register
def _(recalibrator: IntervalBinningRecalibrator, names: list[str]) -> str:
    params = recalibrator.maps_[0]
    if params.complement_cuts is None:
        return _class_expression(recalibrator, names[1], params)
    last, first = (parenthesize(f"{name} / ({' + '.join(names)})") for name in names[::-1])
    values = [*map(float_literal, params.values)]  # without random cuts, none is NaN
    low = steps(last, params.cuts, values)
    high = steps(first, params.complement_cuts[::-1], values[::-1], closed=True)
    return f"CASE WHEN {names[1]} > {names[0]} THEN {high} ELSE {low} END"


@_both_columns_expression.register
def _(recalibrator: LogOddsMap, names: list[str]) -> str:
    logs = log_expressions(names, recalibrator.smallest_probability_)
    log_odds = parenthesize(f"{logs[1]} - {logs[0]}")
    pair = [parenthesize(f"-ln(1e0 + exp({sign}{log_odds}))") for sign in ("-", "")]
    if not isinstance(recalibrator, BetaRecalibrator):
        pair = [logs[1], logs[0]]
    return expit(_log_odds_expression(recalibrator, pair, recalibrator.maps_[0]))


@singledispatch
def _class_expression(recalibrator: Any, name: str, params: Any) -> str:
    """The map of one class as a formula; by default of pieces that are linear."""
    piecewise = to_piecewise_linear(recalibrator, params)
    pieces = [
        linear(value, [slope], [difference(name, start)])
        for start, value, slope in zip(*piecewise, strict=True)
    ]
    return steps(name, piecewise.start[1:], pieces)


@_class_expression.register
def _(recalibrator: VennAbersRecalibrator, name: str, params: Any) -> str:
    (from_knot, lower), (to_knot, upper) = params
    low = parenthesize(steps(name, from_knot, [*map(float_literal, [0.0, *lower])]))
    high = parenthesize(steps(name, to_knot, [*map(float_literal, [*upper, 1.0])], closed=True))
    return f"{high} / ({float_literal(1)} - {low} + {high})"


@_class_expression.register
def _(recalibrator: LogOddsMap, name: str, params: Any) -> str:
    return clip_expression(
        name,
        smallest_clipped(recalibrator, [name]),
        lambda ends: recalibrator._map_binary(ends, params),
        lambda clipped: expit(_log_odds_expression(recalibrator, log_pair(clipped), params)),
    )


@singledispatch
def _log_odds_expression(recalibrator: Any, logs: list[str], params: Any) -> str:
    """Calibrated log-odds, of the logarithms of a probability and of the other one.

    By default they are a polynomial.
    """
    x = parenthesize(" - ".join(logs))
    powers = [" * ".join([x] * power) for power in range(1, len(params))]
    return linear(params[0], params[1:], powers)


@_log_odds_expression.register
def _(recalibrator: BetaRecalibrator, logs: list[str], params: Any) -> str:
    c, a, b = params
    return linear(c, [a, -b], logs)


@_log_odds_expression.register
def _(recalibrator: SplineRecalibrator, logs: list[str], params: Any) -> str:
    x = parenthesize(" - ".join(logs))
    knots, values = params
    pieces = []
    for origin, coefficients in zip([knots[0], *knots], spline_pieces(knots, values), strict=True):
        distance = difference(x, origin)
        piece = float_literal(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            piece = f"{float_literal(coefficient)} + {distance} * ({piece})"
        pieces.append(piece)
    return steps(x, knots, pieces)


def _last_column(recalibrator: Any) -> Callable[[np.ndarray], np.ndarray]:
    """The map of two classes as a function, whose results are those of the last one."""
    return lambda proba: recalibrator._map(proba)[:, 1]


def smallest_clipped(recalibrator: Any, names: list[str]) -> float:
    """The lower bound, but of a single column at least ε: the other class is not known better."""
    smallest = recalibrator.smallest_probability_
    return max(smallest, MIN_PROBA) if len(names) == 1 else smallest


def check_is_of_probabilities(recalibrator: Any) -> None:
    """Refuse a map of logits, which has no formula of probabilities."""
    if recalibrator.input_type == "logits":
        raise ValueError(
            "recalibrator must be fitted on probabilities, whose formula this is; found "
            "input_type='logits'. Fit it on scipy.special.softmax(X, axis=1), and apply the "
            "formula to that."
        )
