"""The columns of a table that the command line reads, and the predictions that they hold."""

import argparse
import contextlib
import csv
import io
import math
import re
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .._inputs.arrays import format_values
from .._inputs.probabilities import ROUNDING
from ._sections import notify_progress

# A terminal shows how many rows are read each time that this many more are.
_ROWS_BETWEEN_NEWS = 2**16

# The first bytes of Parquet and Arrow files.
_BINARY = b"PAR1", b"ARROW1"

# Characters of a line; the next one is looked for in no file that is a table.
_LONGEST_LINE = 2**24

_COMMA_FOR_POINT = str.maketrans(",.", ".,")

_MISSING = {"", "na", "n/a", "nan", "null", "<na>", "#n/a"}


class Rule(NamedTuple):
    """The rule for the values of a column: its words, and how a text is read."""

    words: str
    value: Callable[[str], Any]  # of the text of a row; None is refused
    is_number: bool = False


def _number(words: str, is_allowed: Callable[[float], bool]) -> Rule:
    def value(text: str) -> float | None:
        try:
            number = float(text)
        except ValueError:
            return None
        return number if is_allowed(number) and "_" not in text else None  # not 0.1_5

    return Rule(f"hold {words}", value, is_number=True)


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


PROBABILITY = _number("a probability in [0, 1]", lambda p: -ROUNDING <= p <= 1 + ROUNDING)
WEIGHT = _number("a weight, 0 or larger,", lambda w: 0 <= w < np.inf)
NUMBER = _number("a number", math.isfinite)
POSITIVE = _number("a positive standard deviation", lambda s: 0 < s < np.inf)
LABEL = Rule("hold a label", lambda text: None if _is_missing(text) else canonical(text))
GROUP = Rule("name a group", lambda text: None if _is_missing(text) else text.strip())
ANYTHING = Rule("hold a text", str)

Column = tuple[str, Rule]


# its name, the wanted texts, and all of them or these again
Row = tuple[str, Sequence[str], Sequence[str]]


class Table(NamedTuple):
    """Columns of a file, of numbers or of texts, and the name of each row: its line or number."""

    columns: dict[Column, np.ndarray]
    rows: list[str]
    n_dropped: int  # rows that were left out, as values are missing
    header: Sequence[str]
    texts: list[Sequence[str]]  # of whole rows, if they were to be kept

    def matrix(self, columns: Sequence[Column]) -> np.ndarray:
        """Columns of numbers, (n, m)."""
        return np.column_stack([self.columns[column] for column in columns])

    def subgroups(self, name: str) -> np.ndarray:
        """Numbers if some are fractions; otherwise texts, as whole numbers may be names."""
        texts = [None if _is_missing(text) else text for text in self.columns[name, ANYTHING]]
        whole = [None if text is None else canonical(text) for text in texts]
        if all(one is None or one.lstrip("-").isdigit() for one in whole):
            return np.array(whole, object)
        try:
            return np.array([np.nan if text is None else float(text) for text in texts])
        except ValueError:
            return np.array([text if text is None else text.strip() for text in texts], object)


def read_table(path: str, wanted: Sequence[Column], options: argparse.Namespace) -> Table:
    """The wanted columns, whose rows are judged as they are read.

    Python's csv module reads texts, pandas reads Parquet and Arrow. The path "-" is the standard
    input.
    """
    source = "standard input" if path == "-" else path
    found: list[str] = []
    kept: list[Sequence[str]] = []
    wrong: list[tuple[str, Rule, str, str]] = []
    n_wrong = n_dropped = 0
    columns: list[Any] = [array("d") if rule.is_number else [] for _, rule in wanted]
    given = contextlib.nullcontext[Any](sys.stdin.buffer)
    try:
        with given if path == "-" else open(path, "rb") as file:
            is_binary = file.peek(8).startswith(_BINARY)
            read = _binary_rows if is_binary else _text_rows
            point = _COMMA_FOR_POINT if options.decimal == "," and not is_binary else {}
            rows = read(file, source, [name for name, _ in wanted], options)
            header = next(rows)[2]
            for where, texts, row in rows:
                values = [
                    rule.value(text.translate(point) if point and rule.is_number else text)
                    for (_, rule), text in zip(wanted, texts, strict=True)
                ]
                if None in values:
                    bad = [
                        (*wanted[k], text, where)
                        for k, text in enumerate(texts)
                        if values[k] is None and not (options.drop_missing and _is_missing(text))
                    ]
                    n_wrong, n_dropped = n_wrong + bool(bad), n_dropped + (not bad)
                    wrong = wrong or bad
                    continue
                for column, value in zip(columns, values, strict=True):
                    column.append(value)
                found.append(where)
                if options.keeps_rows:
                    kept.append(row)
                if len(found) % _ROWS_BETWEEN_NEWS == 0:
                    notify_progress(f"reading {source}: {len(found)} rows")
    except (UnicodeDecodeError, LookupError, csv.Error) as error:
        raise ValueError(
            f"{source} is not a text file of separated values in {options.encoding}: {error}. Name "
            "its encoding with --encoding, such as latin-1 or utf-16."
        ) from error
    except OSError as error:
        raise ValueError(f"{source} cannot be read: {error.strerror or error}.") from error
    if wrong:
        name, rule, text, where = wrong[0]
        more = f" ({n_wrong} rows are wrong)" if n_wrong > 1 else ""
        raise ValueError(
            f"Column {name!r} must {rule.words} in every row; found "
            f"{repr(text) if text.strip() else 'nothing'} in {where} of {source}{more}. "
            f"{_remedy(rule, text)}"
        )
    if not found:
        raise ValueError(
            f"{source} must hold at least one row below the header; found {n_dropped} that are "
            "left out."
        )
    arrays = [
        np.asarray(column, np.float64 if rule.is_number else object)
        for column, (_, rule) in zip(columns, wanted, strict=True)
    ]
    return Table(dict(zip(wanted, arrays, strict=True)), found, n_dropped, header, kept)


def _remedy(rule: Rule, text: str) -> str:
    if _is_missing(text):
        return "Repair such rows, or pass --drop-missing to leave them out."
    if re.fullmatch("[-+.0-9]*,[0-9]+", text.strip()):
        return "Pass --decimal , if that is a decimal comma."
    if rule is PROBABILITY and NUMBER.value(text.rstrip("% ")) is not None:
        return "Divide percentages by 100, map log odds to probabilities, or repair the row."
    return "Remove or repair the row."


def _text_rows(
    file: BinaryIO, source: str, wanted: Sequence[str], options: argparse.Namespace
) -> Iterator[Row]:
    """The header, and the line and texts of each row below it; blank lines are skipped."""
    text = _lines(file, options.encoding)
    head = []
    for line in text:
        head.append(line)
        if line.strip():
            break
    separator = _separator(options.sep) or max(",;\t|", key="".join(head).count)
    rows = csv.reader(chain(head, text), delimiter=separator)
    filled = (row for row in rows if len(row) > 1 or "".join(row).strip())
    header = [name.strip() for name in next(filled, [])]
    hint = f" Values are taken to be separated by {separator!r}; --sep names another."
    check_header(header, source, wanted, hint)
    places = list(map(header.index, wanted))
    yield "header", wanted, header
    for row in filled:
        if len(row) != len(header):
            raise ValueError(
                f"Every row must have the {len(header)} columns of the header; found {len(row)} "
                f"in line {rows.line_num} of {source}."
            )
        yield f"line {rows.line_num}", [row[place] for place in places], row


def _separator(text: str | None) -> str | None:
    r"""One character; a tab may be written as \t."""
    separator = "\t" if text == "\\t" else text
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ValueError(
            f"--sep must be one character that separates values; found {text!r}. Pass ';' or "
            "'\\t', for instance."
        )
    return separator


def _lines(file: BinaryIO, encoding: str) -> Iterator[str]:
    with io.TextIOWrapper(file, encoding, newline="") as text:
        for line in iter(partial(text.readline, _LONGEST_LINE), ""):
            if len(line) == _LONGEST_LINE:
                raise csv.Error(f"a line has {_LONGEST_LINE} characters or more")
            yield line


def _binary_rows(
    file: BinaryIO, source: str, wanted: Sequence[str], options: argparse.Namespace
) -> Iterator[Row]:
    """The header, and the number and texts of each row of Parquet or Arrow; "" if missing."""
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
    check_header(list(frame.columns), source, wanted)
    names = list(frame.columns) if options.keeps_rows else list(wanted)
    yield "header", wanted, names
    texts = []
    for name in names:
        values = frame[name].tolist()
        if name in wanted and any(isinstance(value, (list, dict)) for value in values):
            raise ValueError(
                f"Column {name!r} must hold numbers or texts; found the type {frame[name].dtype}."
            )
        texts.append(np.where(frame[name].isna(), "", list(map(str, values))).tolist())
    places = list(map(names.index, wanted))
    for number, row in enumerate(zip(*texts, strict=True), start=1):
        yield f"row {number}", [row[place] for place in places], row


def check_header(header: list[str], source: str, wanted: Sequence[str], hint: str = "") -> None:
    if not header:
        raise ValueError(f"{source} is empty; its first line must name the columns.")
    for name in wanted:
        if name not in header:
            raise ValueError(
                f"{source} has no column {name!r}; its columns are {format_values(header)}.{hint}"
            )
        if header.count(name) > 1:
            raise ValueError(
                f"{source} must have one column of each name; found {header.count(name)} named "
                f"{name!r}. Rename them."
            )
