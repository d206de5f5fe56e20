"""The languages in which the map of a recalibrator is written down: text, and SQL.

An expression is a string. A name, a call and whatever is in parentheses can be put anywhere; a sum
becomes such a thing by `let`. In SQL, "--" starts a comment, so no sign may follow another one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from .._numerics.logits import clipped, log_odds

_LOWEST, _HIGHEST = clipped(np.array([0.0, 1.0])).tolist()
_LARGEST_LOG_ODDS = float(log_odds(np.array(1.0)))

# The exponential of a larger number overflows; some databases raise an error then.
_LARGEST_EXPONENT = 700.0


class Language(ABC):
    """What formulas are made of. Names are those of columns, or what `let` returns."""

    @abstractmethod
    def of_class(self, k: int) -> "Language":
        """The same, for the formula of class k: the names that `let` makes differ."""

    @abstractmethod
    def let(self, name: str, expression: str) -> str:
        """An expression that can be put anywhere."""

    @abstractmethod
    def number(self, value: float) -> str:
        """A number, with all digits."""

    @abstractmethod
    def log(self, expression: str) -> str:
        """The natural logarithm."""

    @abstractmethod
    def clip(self, expression: str, low: float, high: float) -> str:
        """The expression, kept between two numbers."""

    @abstractmethod
    def of_clipped(
        self, name: str, low: float, high: float, ends: np.ndarray, write: Callable[[str], str]
    ) -> str:
        """What is written of a clipped number, with the values `ends` if that is low or high."""

    @abstractmethod
    def steps(
        self, name: str, cuts: np.ndarray, pieces: Sequence[str], *, closed: bool = False
    ) -> str:
        """The first piece whose cut is above the number (closed: or equal), else the last piece."""

    @abstractmethod
    def share(self, part: str, total: str, otherwise: str) -> str:
        """A part divided by the total; otherwise, if that is 0."""

    @abstractmethod
    def softmax(
        self, logs: Sequence[str], largest: float, coef: np.ndarray, intercept: np.ndarray
    ) -> list[str]:
        """The clipped softmax of W x + b, with x (K,) between -largest and 0."""

    def linear(
        self, constant: float, coef: Sequence[float] | np.ndarray, terms: Sequence[str]
    ) -> str:
        """A constant plus multiples of terms."""
        used = [(factor, term) for factor, term in zip(coef, terms, strict=True) if factor != 0]
        expression = self.number(constant) if constant != 0 or not used else ""
        for factor, term in used:
            sign = "-" if factor < 0 else "+"
            expression += f" {sign} {self.number(abs(factor))} * {term}"
        return expression.removeprefix(" + ").strip()

    def from_point(self, name: str, point: float) -> str:
        """The distance of a number from a point."""
        sign = "+" if point < 0 else "-"
        return f"({name} {sign} {self.number(abs(point))})"

    def expit(self, expression: str) -> str:
        """The probability of log-odds, kept away from 0 and 1."""
        name = self.let("f", expression)
        one, kept = self.number(1), self.clip(name, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS)
        return f"{one} / ({one} + exp(-{kept}))"


class Text(Language):
    """Assignments, one a line, in a notation that Python understands."""

    def __init__(self, lines: list[str] | None = None, suffix: str = "") -> None:
        self.lines: list[str] = [] if lines is None else lines
        self.suffix = suffix

    def of_class(self, k: int) -> "Text":
        return Text(self.lines, f"_{k}")

    def let(self, name: str, expression: str) -> str:
        self.lines.append(f"{name}{self.suffix} = {expression}")
        return name + self.suffix

    def number(self, value: float) -> str:
        return repr(int(value) if value == 1 else float(value))

    def log(self, expression: str) -> str:
        return f"log({expression})"

    def clip(self, expression: str, low: float, high: float) -> str:
        return f"min(max({expression}, {self.number(low)}), {self.number(high)})"

    def of_clipped(
        self, name: str, low: float, high: float, ends: np.ndarray, write: Callable[[str], str]
    ) -> str:
        kept = write(self.let("c", self.clip(name, low, high)))
        if 1 - high == low:
            return kept
        # the other probability of a clipped one is off by a rounding error, which is large near 0
        at_low, at_high = map(self.number, ends)
        return self.steps(name, np.array([low, high]), [at_low, kept, at_high])

    def steps(
        self, name: str, cuts: np.ndarray, pieces: Sequence[str], *, closed: bool = False
    ) -> str:
        sign = "<=" if closed else "<"
        lines = [
            f"{piece} if {name} {sign} {self.number(cut)} else"
            for piece, cut in zip(pieces, cuts, strict=False)
        ]
        return "(\n    " + "\n    ".join([*lines, pieces[-1]]) + "\n)"

    def share(self, part: str, total: str, otherwise: str) -> str:
        return f"{part} / {total} if {total} > 0 else {otherwise}"

    def softmax(
        self, logs: Sequence[str], largest: float, coef: np.ndarray, intercept: np.ndarray
    ) -> list[str]:
        scores = [
            self.of_class(k).let("s", self.linear(intercept[k], row, logs))
            for k, row in enumerate(coef)
        ]
        top = self.let("top", f"max({', '.join(scores)})")
        parts = [
            self.of_class(k).let("e", f"exp({score} - {top})") for k, score in enumerate(scores)
        ]
        total = self.let("total", " + ".join(parts))
        return [self.clip(f"{part} / {total}", _LOWEST, _HIGHEST) for part in parts]


class SQL(Language):
    """One expression of standard SQL, with `ln` and `exp`; numbers are in double precision."""

    def of_class(self, k: int) -> "SQL":
        return self

    def let(self, name: str, expression: str) -> str:
        return f"({expression})"

    def number(self, value: float) -> str:
        digits = repr(float(value))  # without an exponent it would be a decimal number
        return digits if "e" in digits else f"{digits}e0"

    def log(self, expression: str) -> str:
        return f"ln({expression})"

    def clip(self, expression: str, low: float, high: float) -> str:
        # of a missing number, LEAST and GREATEST would make `low`
        pieces = [self.number(low), expression, self.number(high)]
        return self.steps(expression, np.array([low, high]), pieces)

    def of_clipped(
        self, name: str, low: float, high: float, ends: np.ndarray, write: Callable[[str], str]
    ) -> str:
        at_low, at_high = map(self.number, ends)
        return self.steps(name, np.array([low, high]), [at_low, write(name), at_high])

    def steps(
        self, name: str, cuts: np.ndarray, pieces: Sequence[str], *, closed: bool = False
    ) -> str:
        sign = "<=" if closed else "<"
        cases = "".join(
            f"WHEN {name} {sign} {self.number(cut)} THEN {piece} "
            for piece, cut in zip(pieces, cuts, strict=False)
        )
        return f"(CASE {cases}ELSE {pieces[-1]} END)" if cases else f"({pieces[-1]})"

    def share(self, part: str, total: str, otherwise: str) -> str:
        return f"COALESCE({part} / NULLIF({total}, {self.number(0)}), {otherwise})"

    def softmax(
        self, logs: Sequence[str], largest: float, coef: np.ndarray, intercept: np.ndarray
    ) -> list[str]:
        # 1 / Σ_j exp(s_j − s_k), as scores have no names
        shares = []
        for k in range(len(coef)):
            terms = [self.number(1)]
            for j in range(len(coef)):
                if j != k:
                    slope, shift = coef[j] - coef[k], intercept[j] - intercept[k]
                    exponent = self.let("d", self.linear(shift, slope, logs))
                    if np.abs(slope).sum() * largest + abs(shift) > _LARGEST_EXPONENT:
                        exponent = self.clip(exponent, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
                    terms.append(f"exp({exponent})")
            share = self.let("q", f"{self.number(1)} / ({' + '.join(terms)})")
            shares.append(self.clip(share, _LOWEST, _HIGHEST))
        return shares


def write_logistic(
    language: Language,
    name: str,
    smallest: float,
    mapping: Callable[[np.ndarray], np.ndarray],
    log_odds_of: Callable[[str], str],
) -> str:
    """The probability of log-odds, which are written for the name of a clipped probability.

    The same map in Python tells its values at the smallest and the largest clipped probability.
    """
    low, high = smallest, 1 - smallest
    return language.of_clipped(
        name,
        low,
        high,
        mapping(np.array([low, high])),
        lambda kept: language.expit(log_odds_of(kept)),
    )


def logs_of(language: Language, name: str) -> list[str]:
    """The logarithms of a probability and of the other one."""
    return [language.log(name), language.log(f"{language.number(1)} - {name}")]
