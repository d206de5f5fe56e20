"""Tables that the command line reads, and the rules that check their columns."""

import argparse
import contextlib
import csv
import io
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .._inputs.arrays import format_values
from .._inputs.probabilities import PROBABILITY_ATOL
from ..report._sections import notify_progress

# Rows of a text between two messages of progress.
_MAX_BLOCK_ROWS = 2**16

# The first bytes of Parquet, Arrow and JSON Lines files.
_FORMATS = b"PAR1", b"ARROW1", b"{", b"\xef\xbb\xbf{"

# Characters of a line: a file with a longer one is no table.
_MAX_LINE_LENGTH = 2**24

_SEPARATORS = ",;\t|"

_COMMA_FOR_POINT = str.maketrans(",.", ".,")

_MISSING = {"", "na", "n/a", "nan", "null", "<na>", "#n/a"}


class Rule(NamedTuple):
    """The rule for the values of a column: its words, and how a text is read."""

    words: str
    value: Callable[[str], Any]  # of the text of a row; None is refused
    is_number: bool = False


def _make_number_rule(words: str, is_allowed: Callable[[float], bool]) -> Rule:
    def value(text: str) -> float | None:
        try:
            number = float(text)
        except ValueError:
            return None
        return number if is_allowed(number) and "_" not in text else None  # not 0.1_5

    return Rule(f"hold {words}", value, is_number=True)


def to_canonical(label: str) -> str:
    """Return the shortest text of a whole number: "1" for "01", "+1" and "1.0"; or the text.

    So whole numbers are the same labels however they are written.
    """
    number = re.fullmatch(r"([+-]?)([0-9]+)(\.0*)?", label.strip())
    if number is None:
        return label.strip()
    sign, digits = number[1], number[2].lstrip("0") or "0"
    return f"-{digits}" if sign == "-" and digits != "0" else digits


def _is_missing(text: str) -> bool:
    return text.strip().lower() in _MISSING


PROBABILITY = _make_number_rule(
    "a probability in [0, 1]", lambda p: -PROBABILITY_ATOL <= p <= 1 + PROBABILITY_ATOL
)
WEIGHT = _make_number_rule("a weight, 0 or larger,", lambda w: 0 <= w < np.inf)
NUMBER = _make_number_rule("a number", math.isfinite)
STANDARD_DEVIATION = _make_number_rule("a positive standard deviation", lambda s: 0 < s < np.inf)
LABEL = Rule("hold a label", lambda text: None if _is_missing(text) else to_canonical(text))
GROUP = Rule("name a group", lambda text: None if _is_missing(text) else text.strip())
ANYTHING = Rule("hold a text", str)

Column = tuple[str, Rule]


class Table(NamedTuple):
    """Columns of a file, of numbers or of texts."""

    columns: dict[Column, np.ndarray]  # of the rows where no value is missing
    texts: Any  # a data frame, whose index has the name "line" or "row"; of all columns if kept
    is_complete: np.ndarray  # of all rows, whether no value is missing

    @property
    def n_dropped(self) -> int:
        """Rows that were left out, as values are missing."""
        return int((~self.is_complete).sum())

    def name_row(self, position: int) -> str:
        return _name_row(self.texts, int(np.flatnonzero(self.is_complete)[position]))

    def matrix(self, columns: Sequence[Column]) -> np.ndarray:
        """Return columns of numbers, (n, m)."""
        return np.column_stack([self.columns[column] for column in columns])

    def subgroups(self, name: str) -> np.ndarray:
        """Return numbers if some are fractions; otherwise texts, as whole numbers may be names."""
        texts = [None if _is_missing(text) else text for text in self.columns[name, ANYTHING]]
        labels = [None if text is None else to_canonical(text) for text in texts]
        if all(label is None or label.lstrip("-").isdigit() for label in labels):
            return np.array(labels, object)
        try:
            return np.array([np.nan if text is None else float(text) for text in texts])
        except ValueError:
            return np.array([text if text is None else text.strip() for text in texts], object)


def load_table(path: str, columns: Sequence[Column], options: argparse.Namespace) -> Table:
    """Read a file, or the standard input if its path is "-", and check the values of columns."""
    source = "standard input" if path == "-" else path
    stdin = contextlib.nullcontext[Any](sys.stdin.buffer)
    names = [name for name, _ in columns]
    try:
        with stdin if path == "-" else open(path, "rb") as file:
            is_typed = file.peek(8).startswith(_FORMATS)
            read = _load_typed if is_typed else _load_text
            frame = read(file, source, names, options)
    except ImportError as error:
        raise ImportError(
            f"{source} is a table, which pandas reads, with pyarrow if it is a Parquet or Arrow "
            'file. Please install them (pip install "skcalib[tables]").'
        ) from error
    except OSError as error:
        raise ValueError(f"{source} cannot be read: {error.strerror or error}.") from error
    point = _COMMA_FOR_POINT if options.decimal == "," and not is_typed else {}
    values = [_to_values(frame[name], rule, point) for name, rule in columns]
    is_refused = np.column_stack([array != array for array in values])  # NaN
    is_wrong = is_refused
    if options.drop_missing:
        is_wrong = is_refused & ~frame[names].map(_is_missing).to_numpy(bool)
    if is_wrong.any():
        row, k = np.argwhere(is_wrong)[0].tolist()
        (name, rule), text = columns[k], frame[names].iloc[row, k]
        n_wrong = np.count_nonzero(is_wrong.any(axis=1))
        raise ValueError(
            f"Column {name!r} must {rule.words} in every row; found "
            f"{repr(text) if text.strip() else 'nothing'} in {_name_row(frame, row)} of {source}"
            f"{f' ({n_wrong} rows are wrong)' if n_wrong > 1 else ''}. {_find_remedy(rule, text)}"
        )
    is_complete = np.logical_not(is_refused.any(axis=1))
    if not is_complete.any():
        omitted = f"{len(frame)} with missing values, which are left out" if len(frame) else "none"
        raise ValueError(f"{source} must hold at least one row below the header; found {omitted}.")
    arrays = [array[is_complete] for array in values]
    return Table(dict(zip(columns, arrays, strict=True)), frame, is_complete)


def _to_values(texts: Any, rule: Rule, point: dict[int, int]) -> np.ndarray:
    """Return the values of the texts of a column; NaN where one is refused."""
    if rule.is_number and point:
        texts = [text.translate(point) for text in texts]
    values = [np.nan if value is None else value for value in map(rule.value, texts)]
    return np.array(values, np.float64 if rule.is_number else object)


def _name_row(frame: Any, position: int) -> str:
    """Return "line 3", for instance, by the name and the numbers of the index."""
    return f"{frame.index.name} {frame.index[position]}"


def _find_remedy(rule: Rule, text: str) -> str:
    if _is_missing(text):
        return "Repair such rows, or pass --drop-missing to leave them out."
    if re.fullmatch("[-+.0-9]*,[0-9]+", text.strip()):
        return "Pass --decimal , if that is a decimal comma."
    if rule is PROBABILITY and NUMBER.value(text.rstrip("% ")) is not None:
        return "Divide percentages by 100, take exp of log p, expit of log-odds, or repair the row."
    return "Remove or repair the row."


def _load_text(file: BinaryIO, source: str, names: list[str], options: argparse.Namespace) -> Any:
    """Return a data frame of texts, whose index holds the last line of each row that is not blank.

    Only the named columns are held unless `options.keeps_rows`.
    """
    import pandas

    rows: list[list[str]] = []
    line_numbers: list[int] = []
    try:
        with io.TextIOWrapper(file, options.encoding, newline="") as text:
            lines = _iter_lines(text)
            n_blank, first = next(((k, row) for k, row in enumerate(lines) if row.strip()), (0, ""))
            separator = _check_separator(options.sep) or _guess_separator(first)
            reader = csv.reader(chain([first], lines), delimiter=separator, strict=True)
            header = [name.strip() for name in next(reader, [])]
            hint = f" Values are taken to be separated by {separator!r}; --sep names another."
            check_header(header, source, names, hint)
            columns, positions = header, list(range(len(header)))
            if not options.keeps_rows:
                columns = list(dict.fromkeys(names))
                positions = [header.index(name) for name in columns]
            for row in reader:
                number = n_blank + reader.line_num
                if len(row) < 2 and not "".join(row).strip():
                    continue
                if len(row) != len(header):
                    raise ValueError(
                        f"Every row must have the {len(header)} columns of the header; found "
                        f"{len(row)} in line {number} of {source}. Put quotes around values that "
                        "contain the separator, or name another one with --sep."
                    )
                rows.append([row[k] for k in positions])
                line_numbers.append(number)
                if len(rows) % _MAX_BLOCK_ROWS == 0:
                    notify_progress(f"reading {source}: {len(rows)} rows")
    except (UnicodeDecodeError, LookupError, csv.Error) as error:
        raise ValueError(
            f"{source} is not a text file of separated values in {options.encoding}: {error}. "
            "Name its encoding with --encoding, such as latin-1 or utf-16; close quotes; or "
            "convert JSON."
        ) from error
    return pandas.DataFrame(rows, pandas.Index(line_numbers, name="line"), columns, dtype=str)


def _iter_lines(text: io.TextIOWrapper) -> Iterator[str]:
    """The lines of a text; one that is longer than the limit is refused."""
    while line := text.readline(_MAX_LINE_LENGTH):
        if len(line) == _MAX_LINE_LENGTH:
            raise csv.Error(f"a line has {_MAX_LINE_LENGTH} characters or more")
        yield line


def _check_separator(text: str | None) -> str | None:
    r"""Return the one character that was passed; a tab may be written as \t."""
    separator = "\t" if text == "\\t" else text
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ValueError(
            f"--sep must be one character that separates values; found {text!r}. Pass ';' or "
            "'\\t', for instance."
        )
    return separator


def _guess_separator(header: str) -> str:
    """Return the most frequent separator outside of quotes."""
    return max(_SEPARATORS, key=re.sub('"[^"]*("|$)', "", header).count)


def _load_typed(file: BinaryIO, source: str, names: list[str], options: argparse.Namespace) -> Any:
    """Return a data frame of the texts of a Parquet, Arrow or JSON Lines file; "" where missing."""
    import pandas

    content = io.BytesIO(file.read())
    is_parquet = content.getvalue().startswith(_FORMATS[0])
    read = pandas.read_parquet if is_parquet else pandas.read_feather
    try:
        if content.getvalue().startswith(_FORMATS[2:]):
            parse = partial(json.loads, parse_float=str, parse_int=str)  # digits as they are
            lines = content.getvalue().decode(options.encoding).split("\n")
            frame = pandas.DataFrame([parse(line) for line in lines if line.strip()], dtype=object)
        else:
            frame = read(content, dtype_backend="pyarrow")
    except (ValueError, LookupError, OSError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{source} is not a sound Parquet, Arrow or JSON Lines file: {error}."
        ) from error
    check_header(list(frame.columns), source, names)
    columns = {}
    for name in frame.columns if options.keeps_rows else names:
        values = frame[name].tolist()  # Python's numbers, as 2⁵³ + 1 is not float64
        if name in names and any(isinstance(value, (list, dict)) for value in values):
            raise ValueError(
                f"Column {name!r} must hold numbers or texts; found the type {frame[name].dtype}."
            )
        texts = np.array(list(map(str, values)), object)
        columns[name] = np.where(frame[name].isna(), "", texts)
    return pandas.DataFrame(columns, pandas.RangeIndex(1, len(frame) + 1, name="row"))


def check_header(header: list[str], source: str, names: Sequence[str], hint: str = "") -> None:
    if not header:
        raise ValueError(f"{source} is empty; its first line must name the columns.")
    for name in names:
        if name not in header:
            raise ValueError(
                f"{source} has no column {name!r}; its columns are {format_values(header)}.{hint}"
            )
        if header.count(name) > 1:
            raise ValueError(
                f"{source} must have one column of each name; found {header.count(name)} named "
                f"{name!r}. Rename them."
            )
