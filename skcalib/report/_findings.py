"""The sentences of a report; their numbers have the names that they have in the report."""

from collections.abc import Mapping
from string import Formatter
from types import MappingProxyType
from typing import Any, cast

from ._text import format_p_value

_MAX_DIGITS = 6


class Finding(str):
    """A sentence of a report, with what it was made of.

    Attributes
    ----------
    name : str
        What it is about.

    template : str
        The sentence with the names of its values in braces.

    values : dict of str to object
        Its numbers, by their names in the numbers of the report or as ends of its intervals, and
        the names of the classes and subgroups that it speaks of.

    choice : str
        The rule by which its class, range or level was chosen, or an empty string.

    evidence : str
        The name of the p-value that it rests on, or an empty string.
    """

    name: str
    template: str
    values: dict[str, Any]
    choice: str
    evidence: str


class _Words(Formatter):
    """Python's formats, "p" for p-values, "percent" for shares, "|" for absolute values."""

    def format_field(self, value: object, format_spec: str) -> str:
        number, size = cast(float, value), format_spec.removeprefix("|")
        if format_spec == "percent":
            return f"{100 * number:.3g} %"
        if format_spec.startswith("p"):
            return format_p_value(number, n_tests=int(format_spec[1:] or 1))
        return format(number if size == format_spec else abs(number), size)


_WORDS = _Words()


def say(
    name: str,
    template: str,
    values: Mapping[str, object] = MappingProxyType({}),
    *,
    choice: str = "",
    evidence: str = "",
) -> Finding:
    """Return a sentence: the template, with the values of its fields filled in."""
    finding = Finding(_WORDS.vformat(template, (), values))
    finding.name, finding.template = name, template
    finding.choice, finding.evidence = choice, evidence
    finding.values = {field: values[field] for _, field, _, _ in _WORDS.parse(template) if field}
    return finding


def name_ends(intervals: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """Return the ends of intervals by the name of the number and "_low" or "_high"."""
    sides = ("low", "high")
    return {
        f"{name}_{side}": end
        for name, ends in intervals.items()
        for side, end in zip(sides, ends, strict=True)
    }


def distinct_format(first: float, other: float, digits: int) -> str:
    """Return the format of two numbers with `digits` digits, or more if they would look alike."""
    while digits < _MAX_DIGITS and f"{first:.{digits}g}" == f"{other:.{digits}g}":
        digits += 1
    return f".{digits}g"


def join_sentences(verdict: list[Finding], findings: list[Finding]) -> str:
    """Return the advice: the first sentence of the verdict, the findings, and the other ones."""
    problems = [f"{'; '.join(findings)}."] if findings else []
    return " ".join([verdict[0], *problems, *verdict[1:]])


def collect_numbers(sentences: list[Finding], values: Mapping[str, object]) -> dict[str, Any]:
    """Return the numbers of sentences by name, but for those that are among the values."""
    return {
        name: value
        for sentence in sentences
        for name, value in sentence.values.items()
        if not isinstance(value, str) and name not in values
    }
