"""The maps of recalibrators as formulas in SQL, each registered for a node."""

from functools import singledispatch

import numpy as np
from scipy.special import expit as evaluate_expit

from ..._numerics.logits import clip_proba
from .. import _maps as maps
from . import sql


@singledispatch
def sql_expressions(stated: maps.Map, names: list[str]) -> list[str]:
    """The map as formulas, one for two classes or K, of the names of the probabilities."""
    raise maps.NoMapError(
        f"{stated.source}, whose expressions would be too long",
        "Call export_onnx, or choose another recalibrator.",
    )


@sql_expressions.register
def _(stated: maps.ClassFactors, names: list[str]) -> list[str]:
    if (stated.factors == 1).all():
        return names
    both = names
    if len(names) == 1:
        both = [sql.parenthesize(f"{sql.float_literal(1)} - {names[0]}"), *names]
    products = [
        sql.parenthesize(sql.linear(0.0, [factor], [name]))
        for factor, name in zip(stated.factors, both, strict=True)
    ]
    total = sql.parenthesize(" + ".join(products))
    shares = [
        sql.quotient_expression(product, total, sql.float_literal(share))
        for product, share in zip(products, stated.otherwise, strict=True)
    ]
    return shares[-len(names) :]


@sql_expressions.register
def _(stated: maps.WeightedMean, names: list[str]) -> list[str]:
    components = []
    for member, weight in zip(stated.members, map(sql.float_literal, stated.weights), strict=True):
        formulas = map(sql.parenthesize, sql_expressions(member, names))
        components.append([f"{weight} * {formula}" for formula in formulas])
    if stated.uniform > 0:
        components.append([sql.float_literal(stated.uniform / stated.n_classes)] * len(names))
    return [" + ".join(terms) for terms in zip(*components, strict=True)]


@sql_expressions.register
def _(stated: maps.Composition, names: list[str]) -> list[str]:
    if len(names) > 2 or not isinstance(stated.second, maps.PerClass):
        return sql_expressions.dispatch(maps.Map)(stated, names)
    first = [sql.parenthesize(formula) for formula in sql_expressions(stated.first, names)]
    return sql_expressions(stated.second, first)


@sql_expressions.register
def _(stated: maps.LogLinear, names: list[str]) -> list[str]:
    shifts = stated.shifts
    matrix, smallest = stated.matrix, _smallest_clipped(stated, names)
    if len(names) == 1 and stated.bounds is None:
        slope, constant = (matrix[1] - matrix[0])[::-1], shifts[1] - shifts[0]
        return [
            sql.clip_expression(
                names[0],
                smallest,
                lambda p: clip_proba(evaluate_expit(constant + slope @ np.log([p, p[::-1]]))),
                lambda clipped: sql.expit(sql.linear(constant, slope, sql.log_pair(clipped))),
            )
        ]
    both = [f"(1e0 - {names[0]})", *names] if len(names) == 1 else names
    logs = sql.log_expressions(both, smallest)
    if stated.bounds is not None:
        pairs = zip(logs, stated.bounds.T, strict=True)
        logs = [sql.clip(log, *ends) for log, ends in pairs] + logs
    return sql.softmax_expressions(logs, -np.log(smallest), matrix, shifts)[-len(names) :]


@sql_expressions.register
def _(stated: maps.PerClass, names: list[str]) -> list[str]:
    if len(names) != 2:
        formulas = [_formula_of_pieces(*pair) for pair in zip(names, stated.pieces, strict=True)]
        return _normalize(formulas, names)
    positive = _formula_of_pieces(names[1], stated.pieces[0])
    if stated.both is not None:
        first, last = (
            _formula_of_pieces(sql.parenthesize(f"{name} / ({' + '.join(names)})"), pieces)
            for name, pieces in zip(names, stated.both, strict=True)
        )
        opposite = f"{sql.float_literal(1)} - {sql.parenthesize(first)}"
        positive = f"CASE WHEN {names[1]} > {names[0]} THEN {opposite} ELSE {last} END"
    return [f"{sql.float_literal(1)} - {sql.parenthesize(positive)}", positive]


def _formula_of_pieces(name: str, pieces: maps.Pieces) -> str:
    formulas = [
        sql.linear(value, [slope], [sql.difference(name, start)])
        for start, value, slope in zip(*pieces, strict=True)
    ]
    return sql.steps(name, pieces.start[1:], formulas)


@sql_expressions.register
def _(stated: maps.LogOdds, names: list[str]) -> list[str]:
    if len(names) == 2:
        logs = sql.log_expressions(names, stated.smallest)
        log_odds = sql.parenthesize(f"{logs[1]} - {logs[0]}")
        pair = [sql.parenthesize(f"-ln(1e0 + exp({sign}{log_odds}))") for sign in ("-", "")]
        positive = sql.expit(_curve(stated.curves[0], log_odds, pair))
        return [f"{sql.float_literal(1)} - {sql.parenthesize(positive)}", positive]
    smallest = _smallest_clipped(stated, names[:1])

    def formula(name: str, curve: maps.Curve) -> str:
        return sql.clip_expression(
            name,
            smallest,
            lambda ends: stated.evaluate(ends, curve),
            lambda p: sql.expit(
                _curve(curve, sql.parenthesize(" - ".join(sql.log_pair(p))), sql.log_pair(p))
            ),
        )

    formulas = [formula(*pair) for pair in zip(names, stated.curves, strict=True)]
    return _normalize(formulas, names)


def _curve(curve: maps.Curve, x: str, pair: list[str]) -> str:
    """Calibrated log-odds, of predicted ones x and the logarithms of p and 1 − p."""
    formulas = []
    for origin, coefficients in zip(curve.origins, curve.coefficients, strict=True):
        distance = sql.difference(x, origin) if origin else x
        degree = np.flatnonzero(coefficients).max(initial=0)
        *lower, formula = map(sql.float_literal, coefficients[: degree + 1])
        for coefficient in lower[::-1]:
            formula = f"{coefficient} + {distance} * ({formula})"
        formulas.append(formula)
    polynomials = sql.steps(x, curve.knots, formulas)
    return sql.linear(0.0, [1.0, curve.a, -curve.b], [polynomials, *pair])


def _normalize(formulas: list[str], names: list[str]) -> list[str]:
    """Rows divided by their sums, if there are all classes."""
    if len(names) == 1:
        return formulas
    return sql.normalize_expressions(list(map(sql.parenthesize, formulas)), names)


def _smallest_clipped(stated: maps.LogLinear | maps.LogOdds, names: list[str]) -> float:
    """The lower bound, but of a single column at least ε: the other class is not known better."""
    return max(stated.smallest, sql.MIN_PROBA) if len(names) == 1 else stated.smallest
