"""Expressions of standard SQL, with `ln` and `exp`; numbers are in double precision.

An expression is a string. A name, a call and whatever is in parentheses can be put anywhere; `let`
puts a sum in parentheses. "--" starts a comment, so no sign may follow another one.
"""

from collections.abc import Callable, Sequence

import numpy as np

from .._numerics.logits import clip_proba, log_odds

LOWEST, HIGHEST = clip_proba(np.array([0.0, 1.0])).tolist()
_LARGEST_LOG_ODDS = float(log_odds(np.array(1.0)))

# Names within expressions begin so.
PREFIX = "skcalib_"

# The exponential of a larger number overflows; some databases raise an error then.
_LARGEST_EXPONENT = 700.0


def parenthesize(expression: str) -> str:
    return f"({expression})"


def float_literal(value: float) -> str:
    """A number with all digits; without an exponent it would be a decimal number."""
    digits = repr(float(value))
    return digits if "e" in digits else f"{digits}e0"


class Subqueries:
    """Expressions that have names, one layer after another, each of names of those before it.

    Every layer is a query of one row without a table: databases compute these just once.
    """

    def __init__(self, columns: list[str]) -> None:
        outer = columns[0].removeprefix(PREFIX)
        self._depth = int(outer.split("_")[0]) + 1 if outer != columns[0] else 0
        self._tables: list[str] = []

    def add_layer(self, expressions: list[str]) -> list[str]:
        """The names of the expressions."""
        table = f"{PREFIX}{self._depth + len(self._tables)}"
        names = [f"{table}_{k}" for k in range(len(expressions))]
        columns = ", ".join(
            f"{expression} AS {name}" for expression, name in zip(expressions, names, strict=True)
        )
        self._tables.append(f"(SELECT {columns}) AS {table}")
        return names

    def wrap(self, expression: str) -> str:
        """An expression of the names as one of the columns."""
        for table in reversed(self._tables):
            expression = f"(SELECT {expression} FROM {table})"
        return expression


def linear(constant: float, coef: Sequence[float] | np.ndarray, terms: Sequence[str]) -> str:
    """A constant plus multiples of terms."""
    used = [(factor, term) for factor, term in zip(coef, terms, strict=True) if factor != 0]
    expression = float_literal(constant) if constant != 0 or not used else ""
    for factor, term in used:
        expression += f" {'-' if factor < 0 else '+'} {float_literal(abs(factor))} * {term}"
    return expression.removeprefix(" + ").strip()


def from_point(name: str, point: float) -> str:
    """The distance of a number from a point."""
    return f"({name} {'+' if point < 0 else '-'} {float_literal(abs(point))})"


def steps(name: str, cuts: np.ndarray, pieces: Sequence[str], *, closed: bool = False) -> str:
    """The first piece whose cut is above the number (closed: or equal), else the last piece."""
    sign = "<=" if closed else "<"
    cases = "".join(
        f"WHEN {name} {sign} {float_literal(cut)} THEN {piece} "
        for piece, cut in zip(pieces, cuts, strict=False)
    )
    return f"(CASE {cases}ELSE {pieces[-1]} END)" if cases else f"({pieces[-1]})"


def clip(expression: str, low: float, high: float) -> str:
    """The expression between two numbers; LEAST and GREATEST would turn a missing one into low."""
    return steps(
        expression, np.array([low, high]), [float_literal(low), expression, float_literal(high)]
    )


def clip_expression(
    name: str, smallest: float, mapping: Callable, write: Callable[[str], str]
) -> str:
    """A formula of a clipped probability; the results at both ends are computed in Python."""
    ends = np.array([smallest, 1 - smallest])
    at_low, at_high = map(float_literal, mapping(ends))
    return steps(name, ends, [at_low, write(name), at_high])


def logs_of(name: str) -> list[str]:
    """The logarithms of a probability and of the other one."""
    return [f"ln({name})", f"ln({float_literal(1)} - {name})"]


def log_expressions(names: list[str], smallest: float) -> list[str]:
    """The logarithms of clipped probabilities."""
    return [parenthesize(f"ln({clip(name, smallest, 1 - smallest)})") for name in names]


def expit(expression: str) -> str:
    """The probability of log-odds, kept away from 0 and 1."""
    clipped = clip(parenthesize(expression), -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS)
    return f"{float_literal(1)} / ({float_literal(1)} + exp(-{clipped}))"


def share(numerator: str, total: str, otherwise: str) -> str:
    """A part divided by the total; otherwise, if that is 0."""
    return f"COALESCE({numerator} / NULLIF({total}, {float_literal(0)}), {otherwise})"


def normalize_expressions(mapped: list[str], names: list[str]) -> list[str]:
    """Mapped probabilities divided by their sum; if that is 0, the predicted ones."""
    total, total_given = parenthesize(" + ".join(mapped)), " + ".join(names)
    return [
        share(numerator, total, f"{name} / ({total_given})")
        for numerator, name in zip(mapped, names, strict=True)
    ]


def softmax(
    logs: Sequence[str], largest: float, coef: np.ndarray, intercept: np.ndarray
) -> list[str]:
    """The clipped softmax of W x + b, with x (K,) between -largest and 0.

    It is 1 / Σ_j exp(s_j − s_k), as scores have no names.
    """
    shares = []
    for k in range(len(coef)):
        terms = [float_literal(1)]
        for j in range(len(coef)):
            if j != k:
                slope, shift = coef[j] - coef[k], intercept[j] - intercept[k]
                exponent = parenthesize(linear(shift, slope, logs))
                if np.abs(slope).sum() * largest + abs(shift) > _LARGEST_EXPONENT:
                    exponent = clip(exponent, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
                terms.append(f"exp({exponent})")
        share = parenthesize(f"{float_literal(1)} / ({' + '.join(terms)})")
        shares.append(clip(share, LOWEST, HIGHEST))
    return shares


def shares_of(scores: list[str]) -> list[str]:
    """The softmax of scores that have names."""
    shares = []
    for own in scores:
        gaps = (f"({other} - {own})" for other in scores if other != own)
        terms = [f"exp({clip(gap, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)})" for gap in gaps]
        shares.append(f"{float_literal(1)} / ({' + '.join([float_literal(1), *terms])})")
    return shares
