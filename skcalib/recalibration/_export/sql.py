"""Expressions of standard SQL, with `ln` and `exp`; numbers are in double precision.

An expression is a string. Names, calls and expressions in parentheses can stand anywhere; sums need
`parenthesize`. "--" starts a comment, so no sign may follow another one.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np

from ..._numerics.logits import clip_proba, log_odds

MIN_PROBA, MAX_PROBA = clip_proba(np.array([0.0, 1.0])).tolist()
_MAX_LOG_ODDS = float(log_odds(np.array(1.0)))

# The exponential of a larger number overflows; some databases raise an error then.
_MAX_EXP_ARGUMENT = 700.0

# The quotes around a name, and the natural logarithm.
DIALECTS = {"standard": ('"', '"', "ln"), "sqlserver": ("[", "]", "LOG"), "mysql": ("`", "`", "ln")}


def quote_name(name: str) -> str:
    """Put a name in double quotes, as standard SQL needs it."""
    return '"' + name.replace('"', '""') + '"'


def translate(expression: str, dialect: str) -> str:
    """Return an expression of standard SQL as one of the dialect."""
    begin, end, logarithm = DIALECTS[dialect]

    def translate_token(token: re.Match) -> str:
        if token[0] == "ln(":
            return f"{logarithm}("
        name = token[0][1:-1].replace('""', '"')
        return begin + name.replace(end, 2 * end) + end

    return re.sub(r'"(?:[^"]|"")*"|\bln\(', translate_token, expression)


def parenthesize(expression: str) -> str:
    return f"({expression})"


def float_literal(value: float) -> str:
    """Return a number with all digits; without an exponent databases would read a decimal."""
    digits = repr(float(value))
    return digits if "e" in digits else f"{digits}e0"


def linear(constant: float, coef: Sequence[float] | np.ndarray, terms: Sequence[str]) -> str:
    """Return a constant plus multiples of terms; terms with the factor 0 are left out."""
    used = [(factor, term) for factor, term in zip(coef, terms, strict=True) if factor != 0]
    expression = float_literal(constant) if constant != 0 or not used else ""
    for factor, term in used:
        expression += f" {'-' if factor < 0 else '+'} {float_literal(abs(factor))} * {term}"
    return expression.removeprefix(" + ").strip()


def difference(name: str, point: float) -> str:
    """Return a number minus a point."""
    return f"({name} {'+' if point < 0 else '-'} {float_literal(abs(point))})"


def steps(name: str, cuts: np.ndarray, pieces: Sequence[str]) -> str:
    """Return the first piece whose cut is above the number, or the last one."""
    cases = "".join(
        f"WHEN {name} < {float_literal(cut)} THEN {piece} "
        for piece, cut in zip(pieces, cuts, strict=False)
    )
    return f"(CASE {cases}ELSE {pieces[-1]} END)" if cases else f"({pieces[-1]})"


def clip(expression: str, low: float, high: float) -> str:
    """Clip an expression; LEAST and GREATEST would turn a missing number into the lower end."""
    return steps(
        expression, np.array([low, high]), [float_literal(low), expression, float_literal(high)]
    )


def clip_expression(
    name: str, smallest: float, mapping: Callable, write: Callable[[str], str]
) -> str:
    """Return a formula of a clipped probability, with results at both ends computed in Python."""
    ends = np.array([smallest, 1 - smallest])
    at_low, at_high = map(float_literal, mapping(ends))
    return steps(name, ends, [at_low, write(name), at_high])


def log_pair(name: str) -> list[str]:
    """Return log p and log(1 − p)."""
    return [f"ln({name})", f"ln({float_literal(1)} - {name})"]


def log_expressions(names: list[str], smallest: float) -> list[str]:
    """Return the logarithms of clipped probabilities."""
    return [parenthesize(f"ln({clip(name, smallest, 1 - smallest)})") for name in names]


def expit(expression: str) -> str:
    """Return the probability of clipped log-odds, which is neither 0 nor 1."""
    clipped = clip(parenthesize(expression), -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
    return f"{float_literal(1)} / ({float_literal(1)} + exp(-{clipped}))"


def quotient_expression(numerator: str, total: str, otherwise: str) -> str:
    """Return numerator / total, or `otherwise` if the total is 0."""
    return f"COALESCE({numerator} / NULLIF({total}, {float_literal(0)}), {otherwise})"


def normalize_expressions(mapped: list[str], names: list[str]) -> list[str]:
    """Divide mapped probabilities by their sum; if it is 0, return the predicted ones."""
    total, total_predicted = parenthesize(" + ".join(mapped)), " + ".join(names)
    return [
        quotient_expression(numerator, total, f"{name} / ({total_predicted})")
        for numerator, name in zip(mapped, names, strict=True)
    ]


def softmax_expressions(
    logs: Sequence[str], largest: float, coef: np.ndarray, intercept: np.ndarray
) -> list[str]:
    """Return the clipped softmax of W x + b, with x (K,) between -largest and 0.

    Entry k is 1 / Σ_j exp(s_j − s_k), as the scores s have no names.
    """
    shares = []
    for k in range(len(coef)):
        terms = [float_literal(1)]
        for j in range(len(coef)):
            if j != k:
                slope, shift = coef[j] - coef[k], intercept[j] - intercept[k]
                exponent = parenthesize(linear(shift, slope, logs))
                if np.abs(slope).sum() * largest + abs(shift) > _MAX_EXP_ARGUMENT:
                    exponent = clip(exponent, -_MAX_EXP_ARGUMENT, _MAX_EXP_ARGUMENT)
                terms.append(f"exp({exponent})")
        share = parenthesize(f"{float_literal(1)} / ({' + '.join(terms)})")
        shares.append(clip(share, MIN_PROBA, MAX_PROBA))
    return shares
