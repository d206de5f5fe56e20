"""The columns of a table that the command line reads, and the predictions that they hold."""

import codecs
import contextlib
import csv
import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from typing import Any, BinaryIO

import numpy as np

from .._inputs.arrays import listed
from .._inputs.probabilities import SUM_TOLERANCE, divide_by_sums
from ._sections import stage

# Rows whose texts are in memory at once: a few megabytes.
_ROWS_AT_ONCE = 2**16

# The first bytes of Parquet and Arrow files.
_BINARY = b"PAR1", b"ARROW1"

_MISSING = {"", "na", "n/a", "nan", "null", "<na>", "#n/a"}

# A larger miss is refused. Rounding can cause one if there are many classes and few digits, but
# dividing by the sum would not bring back what was rounded away.
_LARGEST_MISS = 0.05


@dataclass(frozen=True)
class Rule:
    """Which numbers a column may hold, in words and as a function."""

    words: str
    is_allowed: Callable[[np.ndarray], np.ndarray]

    def numbers(self, name: str, texts: Sequence[str], rows: Sequence[str]) -> np.ndarray:
        """The numbers of a column; `rows` are the names of the rows."""
        with contextlib.suppress(ValueError):
            numbers = np.array(list(map(float, texts)))
            if self.is_allowed(numbers).all() and "_" not in "".join(texts):
                return numbers
        row = next(row for row, text in enumerate(texts) if not self._holds(text))
        found = repr(texts[row]) if texts[row].strip() else "nothing"
        raise ValueError(
            f"Column {name!r} must hold {self.words} in every row; found {found} in {rows[row]}. "
            "Remove or repair the row."
        )

    def _holds(self, text: str) -> bool:
        try:
            return bool(self.is_allowed(np.array(float(text)))) and "_" not in text  # as in 0.1_5
        except ValueError:
            return False


PROBABILITY = Rule("a probability in [0, 1]", lambda p: (p >= 0) & (p <= 1))
WEIGHT = Rule("a weight, 0 or larger,", lambda w: np.isfinite(w) & (w >= 0))
NUMBER = Rule("a number", np.isfinite)
POSITIVE = Rule("a positive standard deviation", lambda s: np.isfinite(s) & (s > 0))


@dataclass(frozen=True)
class Table:
    """Columns of a file, numbers or texts, and the name of each row: its line, or its number."""

    columns: dict[str, Any]
    rows: list[str]

    def matrix(self, names: Sequence[str]) -> np.ndarray:
        """Columns of numbers, (n, m)."""
        return np.column_stack([self.columns[name] for name in names])

    def texts(self, name: str, what: str, remedy: str) -> list[str]:
        """A column in which no text may be missing, without spaces around the texts."""
        for row, text in enumerate(self.columns[name]):
            if _is_missing(text):
                raise ValueError(
                    f"Column {name!r} must {what} in every row; found {text!r} in "
                    f"{self.rows[row]}. {remedy}"
                )
        return [text.strip() for text in self.columns[name]]

    def subgroups(self, name: str) -> np.ndarray:
        """Numbers, NaN where missing, if all are numbers; otherwise texts, None where missing."""
        texts = self.columns[name]
        try:
            return np.array([np.nan if _is_missing(text) else float(text) for text in texts])
        except ValueError:
            return np.array([None if _is_missing(text) else text.strip() for text in texts], object)


def _is_missing(text: str) -> bool:
    return text.strip().lower() in _MISSING


def read_table(
    path: str, wanted: Sequence[tuple[str, Rule | None]], separator: str | None = None
) -> Table:
    """The wanted columns: numbers where there is a rule, otherwise texts.

    Python's csv module reads texts, pandas reads Parquet and Arrow. The path "-" is the standard
    input.
    """
    names = [name for name, _ in wanted]
    if len(set(names)) < len(names):
        raise ValueError(f"Each column must be named once; found {listed(names)}.")
    source = "standard input" if path == "-" else path
    found: list[str] = []
    parts: list[list[Any]] = [[] for _ in wanted]
    given = contextlib.nullcontext[Any](sys.stdin.buffer)
    try:
        with given if path == "-" else open(path, "rb") as file:
            is_text = not file.peek(8).startswith(_BINARY)
            rows = (_text_rows if is_text else _binary_rows)(file, source, names, separator)
            while some := list(islice(rows, _ROWS_AT_ONCE)):
                where, *columns = zip(*some, strict=True)
                found += where
                stage(f"reading {source}: {len(found)} rows")
                for part, (name, rule), texts in zip(parts, wanted, columns, strict=True):
                    part.append(texts if rule is None else rule.numbers(name, texts, where))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{source} is not a text file of separated values: {error}.") from error
    except OSError as error:
        raise ValueError(f"{source} cannot be read: {error.strerror or error}.") from error
    if not found:
        raise ValueError(f"{source} must hold at least one row below the header; found none.")
    joined = [
        list(chain(*part)) if rule is None else np.concatenate(part)
        for part, (_, rule) in zip(parts, wanted, strict=True)
    ]
    return Table(dict(zip(names, joined, strict=True)), found)


def _text_rows(
    file: BinaryIO, source: str, wanted: Sequence[str], separator: str | None
) -> Iterator[tuple[str, ...]]:
    """The line and the wanted texts of each row below the header; blank lines are skipped."""
    text = codecs.iterdecode(file, "utf-8-sig")
    head = []
    for line in text:
        head.append(line)
        if line.strip():
            break
    separator = separator or max(",;\t|", key="".join(head).count)
    rows = csv.reader(chain(head, text), delimiter=separator)
    header = [name.strip() for name in next((row for row in rows if not _is_blank(row)), [])]
    hint = f" Values are taken to be separated by {separator!r}; --sep names another."
    _check_header(header, source, wanted, hint)
    pick = itemgetter(*map(header.index, wanted))
    for row in rows:
        if len(row) == len(header):
            yield f"line {rows.line_num}", *pick(row)
        elif not _is_blank(row):
            raise ValueError(
                f"Every row must have the {len(header)} columns of the header; found {len(row)} "
                f"in line {rows.line_num} of {source}."
            )


def _is_blank(row: list[str]) -> bool:
    return len(row) < 2 and not "".join(row).strip()


def _binary_rows(
    file: BinaryIO, source: str, wanted: Sequence[str], separator: str | None
) -> Iterator[tuple[str, ...]]:
    """The number and the wanted texts of each row of a Parquet or Arrow file; "" if missing."""
    try:
        import pandas

        content = io.BytesIO(file.read())
        is_parquet = content.getvalue().startswith(_BINARY[0])
        read = pandas.read_parquet if is_parquet else pandas.read_feather
        frame = read(content, dtype_backend="pyarrow")
    except ImportError as error:
        raise ImportError(
            f"{source} is a Parquet or Arrow file, which pandas and pyarrow read. Please install "
            'them (pip install "skcalib[tables]"), or write the table as CSV.'
        ) from error
    except (ValueError, OSError) as error:
        raise ValueError(f"{source} is not a sound Parquet or Arrow file: {error}.") from error
    _check_header(list(frame.columns), source, wanted)
    texts = []
    for name in wanted:
        values = frame[name].tolist()
        if any(isinstance(value, (list, dict)) for value in values):
            raise ValueError(
                f"Column {name!r} must hold numbers or texts; found the type {frame[name].dtype}."
            )
        texts.append(np.where(frame[name].isna(), "", list(map(str, values))).tolist())
    yield from zip((f"row {row + 1}" for row in range(len(frame))), *texts, strict=True)


def _check_header(header: list[str], source: str, wanted: Sequence[str], hint: str = "") -> None:
    if not header:
        raise ValueError(f"{source} is empty; its first line must name the columns.")
    missing = [name for name in wanted if name not in header]
    if missing:
        raise ValueError(
            f"{source} has no column {', '.join(map(repr, missing))}; its columns are "
            f"{listed(header)}.{hint}"
        )
    twice = next((name for name in wanted if header.count(name) > 1), None)
    if twice is not None:
        raise ValueError(
            f"{source} must have one column of each name; found {header.count(twice)} named "
            f"{twice!r}. Rename them."
        )


def canonical(label: str) -> str:
    """The shortest text of a whole number: "1" for "01", "+1" and "1.0"; other texts as they are.

    So whole numbers are the same labels however they are written.
    """
    number = re.fullmatch(r"([+-]?)0*([0-9]+)(\.0*)?", label.strip())
    if number is None:
        return label.strip()
    sign, digits, _ = number.groups()
    return f"-{digits}" if sign == "-" and digits != "0" else digits


def probabilities(table: Table, names: Sequence[str]) -> np.ndarray:
    """One column as (n,), several as (n, K).

    The sum of a row may miss 1 by what rounding to the digits of the file makes; it is then divided
    by its sum.
    """
    proba = table.matrix(names)
    if len(names) == 1:
        return proba[:, 0]
    total = proba.sum(axis=1)
    miss = np.abs(total - 1)
    if miss.max() <= SUM_TOLERANCE:
        return proba
    tolerance = np.clip(_rounding(proba).sum(axis=1), SUM_TOLERANCE, _LARGEST_MISS)
    row = int(np.argmax(miss - tolerance))
    if miss[row] > tolerance[row] * (1 + 1e-9):
        raise ValueError(
            f"The probabilities of a row must sum to 1; found a sum of {total[row]:.6g} in "
            f"{table.rows[row]}, which rounding to the digits of the file does not explain. Name "
            "the columns of all classes, and write their values with more digits or divided by "
            "their sum."
        )
    return divide_by_sums(proba, total)


def _rounding(proba: np.ndarray) -> np.ndarray:
    """Half a unit in the last digit of each probability, (n, K).

    Files may be written with a fixed number of decimals or of significant digits. The place of the
    last digit follows from the largest number of either in the file; of the two places, the coarser
    one counts.
    """
    decimals = significant = 0
    for text in map(repr, np.unique(proba).tolist()):
        mantissa, _, exponent = text.partition("e")
        whole, _, fraction = mantissa.removesuffix(".0").partition(".")
        decimals = max(decimals, len(fraction) - int(exponent or 0))
        significant = max(significant, len((whole + fraction).lstrip("0")))
    magnitude = np.floor(np.log10(np.where(proba > 0, proba, 1e-300))) + 1
    return 0.5 * 10.0 ** np.maximum(-decimals, magnitude - significant)


def two_classes(labels: Sequence[str], pos_label: str | None) -> list[str]:
    """The class that a single column of probabilities is not of, and the one that it is of."""
    observed = sorted(set(labels))
    with contextlib.suppress(ValueError):  # words stay in the order of the alphabet
        observed = sorted(observed, key=float)
    if pos_label is None:
        if len(observed) == 2:
            return observed
        if set(observed) <= {"0", "1"}:
            return ["0", "1"]
        raise ValueError(
            f"One column of probabilities is for two labels; found {len(observed)}: "
            f"{listed(observed)}. Pass one column for each class, or name the class of the column "
            "with --pos-label."
        )
    pos_label = canonical(pos_label)
    others = [label for label in observed if label != pos_label]
    if len(observed) > 2 or len(others) > 1:
        raise ValueError(
            f"--pos-label {pos_label!r} must be one of two labels; found {listed(observed)}."
        )
    return [*(others or [f"not {pos_label}"]), pos_label]


def classes_of_columns(labels: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The names of the columns without a common prefix, such that every label is among them.

    A prefix ends in a separator or before a number: "proba_cat", "proba_dog"; "p0", "p1".
    """
    observed = sorted(set(labels))
    prefixes = [columns[0][:end] for end in range(len(columns[0]), -1, -1)]
    candidates = [
        [canonical(name.removeprefix(prefix)) for name in columns]
        for prefix in prefixes
        if all(name.startswith(prefix) for name in columns) and _ends_a_prefix(prefix, columns)
    ]
    for classes in candidates:
        if set(observed) <= set(classes):
            return classes
    unknown = [label for label in observed if label not in candidates[0]]
    raise ValueError(
        f"Every label must match a column of probabilities; found {listed(unknown)}, and columns "
        f"for {listed(candidates[0])}. Name each column like its label, or proba_ and the label."
    )


def _ends_a_prefix(prefix: str, columns: Sequence[str]) -> bool:
    """Whether names of classes may begin behind it: "p_" of "p_cat", and "p" of "p0", "p1"."""
    rests = [name[len(prefix) :] for name in columns]
    return not prefix[-1:].isalnum() or (
        prefix[-1].isalpha() and all(rest[:1].isdigit() for rest in rests)
    )


def quantiles(table: Table, names: Sequence[str]) -> np.ndarray:
    """Quantiles in the order of their levels, (n, m), which must not cross."""
    values = table.matrix(names)
    falls = np.argwhere(np.diff(values, axis=1) < 0)
    if len(falls):
        row, k = falls[0].tolist()
        raise ValueError(
            f"The quantiles of a row must not cross; found {values[row, k]:.6g} in column "
            f"{names[k]!r} and {values[row, k + 1]:.6g} in column {names[k + 1]!r}, in "
            f"{table.rows[row]}. Sort the quantiles of each row."
        )
    return values
