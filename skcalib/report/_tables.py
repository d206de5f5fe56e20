"""The columns of a table that the command line reads, and the predictions that they hold."""

import codecs
import contextlib
import csv
import io
import math
import re
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from operator import itemgetter
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .._inputs.arrays import listed
from .._inputs.probabilities import SUM_TOLERANCE, divide_by_sums
from ._sections import stage

# A terminal shows how many rows are read each time that this many more are.
_ROWS_BETWEEN_NEWS = 2**16

# The first bytes of Parquet and Arrow files.
_BINARY = b"PAR1", b"ARROW1"

_MISSING = {"", "na", "n/a", "nan", "null", "<na>", "#n/a"}

# A larger miss is refused. Rounding can cause one if there are many classes and few digits, but
# dividing by the sum would not bring back what was rounded away.
_LARGEST_MISS = 0.05


class Rule(NamedTuple):
    """The rule for the values of a column: its words, its remedy, and how a text is read."""

    words: str
    remedy: str
    value: Callable[[str], Any]  # of the text of a row; None is refused
    is_number: bool = False


def _number(words: str, is_allowed: Callable[[float], bool]) -> Rule:
    def value(text: str) -> float | None:
        try:
            number = float(text)
        except ValueError:
            return None
        return number if is_allowed(number) and "_" not in text else None  # not 0.1_5

    return Rule(f"hold {words}", "Remove or repair the row.", value, is_number=True)


def canonical(label: str) -> str:
    """The shortest text of a whole number: "1" for "01", "+1" and "1.0"; other texts as they are.

    So whole numbers are the same labels however they are written.
    """
    number = re.fullmatch(r"([+-]?)([0-9]+)(\.0*)?", label.strip())
    if number is None:
        return label.strip()
    sign, digits = number[1], number[2].lstrip("0") or "0"
    return f"-{digits}" if sign == "-" and digits != "0" else digits


def _is_missing(text: str) -> bool:
    return text.strip().lower() in _MISSING


PROBABILITY = _number("a probability in [0, 1]", lambda p: 0 <= p <= 1)
WEIGHT = _number("a weight, 0 or larger,", lambda w: 0 <= w < np.inf)
NUMBER = _number("a number", math.isfinite)
POSITIVE = _number("a positive standard deviation", lambda s: 0 < s < np.inf)
LABEL = Rule(
    "hold a label",
    "Remove the rows without a label.",
    lambda text: None if _is_missing(text) else canonical(text),
)
GROUP = Rule(
    "name a group",
    "Give such rows groups of their own.",
    lambda text: None if _is_missing(text) else text.strip(),
)
ANYTHING = Rule("hold a text", "", str)

Column = tuple[str, Rule]


class Table(NamedTuple):
    """Columns of a file, of numbers or of texts, and the name of each row: its line or number."""

    columns: dict[Column, np.ndarray]
    rows: list[str]

    def matrix(self, columns: Sequence[Column]) -> np.ndarray:
        """Columns of numbers, (n, m)."""
        return np.column_stack([self.columns[column] for column in columns])

    def subgroups(self, name: str) -> np.ndarray:
        """Numbers, NaN where missing, if all are numbers; otherwise texts, None where missing."""
        texts = self.columns[name, ANYTHING]
        try:
            return np.array([np.nan if _is_missing(text) else float(text) for text in texts])
        except ValueError:
            return np.array([None if _is_missing(text) else text.strip() for text in texts], object)


def read_table(path: str, wanted: Sequence[Column], separator: str | None = None) -> Table:
    """The wanted columns, whose rows are judged as they are read.

    Python's csv module reads texts, pandas reads Parquet and Arrow. The path "-" is the standard
    input.
    """
    source = "standard input" if path == "-" else path
    found: list[str] = []
    columns: list[Any] = [array("d") if rule.is_number else [] for _, rule in wanted]
    given = contextlib.nullcontext[Any](sys.stdin.buffer)
    try:
        with given if path == "-" else open(path, "rb") as file:
            read = _binary_rows if file.peek(8).startswith(_BINARY) else _text_rows
            for where, *texts in read(file, source, [name for name, _ in wanted], separator):
                for (name, rule), column, text in zip(wanted, columns, texts, strict=True):
                    value = rule.value(text)
                    if value is None:
                        raise ValueError(
                            f"Column {name!r} must {rule.words} in every row; found "
                            f"{repr(text) if text.strip() else 'nothing'} in {where} of {source}. "
                            f"{rule.remedy}"
                        )
                    column.append(value)
                found.append(where)
                if len(found) % _ROWS_BETWEEN_NEWS == 0:
                    stage(f"reading {source}: {len(found)} rows")
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{source} is not a text file of separated values: {error}.") from error
    except OSError as error:
        raise ValueError(f"{source} cannot be read: {error.strerror or error}.") from error
    if not found:
        raise ValueError(f"{source} must hold at least one row below the header; found none.")
    arrays = [
        np.asarray(column, np.float64 if rule.is_number else object)
        for column, (_, rule) in zip(columns, wanted, strict=True)
    ]
    return Table(dict(zip(wanted, arrays, strict=True)), found)


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
    filled = (row for row in rows if len(row) > 1 or "".join(row).strip())
    header = [name.strip() for name in next(filled, [])]
    hint = f" Values are taken to be separated by {separator!r}; --sep names another."
    _check_header(header, source, wanted, hint)
    pick = itemgetter(*map(header.index, wanted))
    for row in filled:
        if len(row) != len(header):
            raise ValueError(
                f"Every row must have the {len(header)} columns of the header; found {len(row)} "
                f"in line {rows.line_num} of {source}."
            )
        yield f"line {rows.line_num}", *pick(row)


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
    for name in wanted:
        if name not in header:
            raise ValueError(
                f"{source} has no column {name!r}; its columns are {listed(header)}.{hint}"
            )
        if header.count(name) > 1:
            raise ValueError(
                f"{source} must have one column of each name; found {header.count(name)} named "
                f"{name!r}. Rename them."
            )


def probabilities(table: Table, columns: Sequence[Column]) -> np.ndarray:
    """One column as (n,), several as (n, K).

    The sum of a row may miss 1 by what rounding to the digits of the file makes; it is then divided
    by its sum.
    """
    proba = table.matrix(columns)
    if len(columns) == 1:
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
    for number in np.unique(proba).tolist():
        _, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
        decimals, significant = max(decimals, -int(exponent)), max(significant, len(digits))
    magnitude = np.floor(np.log10(np.where(proba > 0, proba, 1e-300))) + 1
    return 0.5 * 10.0 ** np.maximum(-decimals, magnitude - significant)


def two_classes(labels: Iterable[str], pos_label: str | None) -> list[str]:
    """The class that a single column of probabilities is not of, and the one that it is of."""
    observed = sorted(set(labels))
    with contextlib.suppress(ValueError):  # words stay in the order of the alphabet
        observed = sorted(observed, key=float)
    if pos_label is None:
        classes = ["0", "1"] if set(observed) <= {"0", "1"} else observed
        if len(classes) != 2:
            raise ValueError(
                f"One column of probabilities is for two labels; found {len(observed)}: "
                f"{listed(observed)}. Pass one column for each class, or name the class of the "
                "column with --pos-label."
            )
        return classes
    pos_label = canonical(pos_label)
    others = [label for label in observed if label != pos_label] or [f"not {pos_label}"]
    if len(observed) > 2 or len(others) > 1:
        raise ValueError(
            f"--pos-label {pos_label!r} must be one of two labels; found {listed(observed)}."
        )
    return [*others, pos_label]


def classes_of_columns(labels: Iterable[str], columns: Sequence[str]) -> list[str]:
    """The names of the columns without a common prefix, such that every label is among them.

    A prefix ends in a separator or before a number: "proba_cat", "proba_dog"; "p0", "p1".
    """
    ends = [end for end in range(len(columns[0]), -1, -1) if _is_prefix(columns, end)]
    candidates = [[canonical(name[end:]) for name in columns] for end in ends]
    for classes in candidates:
        if set(labels) <= set(classes):
            return classes
    unknown = sorted(set(labels) - set(candidates[0]))
    raise ValueError(
        f"Every label must match a column of probabilities; found {listed(unknown)}, and columns "
        f"for {listed(candidates[0])}. Name each column like its label, or proba_ and the label."
    )


def _is_prefix(columns: Sequence[str], end: int) -> bool:
    """Whether names of classes may begin at `end`: behind "p_" of "p_cat", and "p" of "p0"."""
    prefix, last = columns[0][:end], columns[0][:end][-1:]
    is_before_numbers = last.isalpha() and all(name[end : end + 1].isdigit() for name in columns)
    is_common = all(name.startswith(prefix) for name in columns)
    return is_common and (is_before_numbers or not last.isalnum())


def quantiles(table: Table, columns: Sequence[Column]) -> np.ndarray:
    """Quantiles in the order of their levels, (n, m), which must not cross."""
    values = table.matrix(columns)
    falls = np.argwhere(np.diff(values, axis=1) < 0)
    if len(falls):
        row, k = falls[0].tolist()
        raise ValueError(
            f"The quantiles of a row must not cross; found {values[row, k]:.6g} in column "
            f"{columns[k][0]!r} and {values[row, k + 1]:.6g} in column {columns[k + 1][0]!r}, "
            f"in {table.rows[row]}. Sort the quantiles of each row."
        )
    return values
