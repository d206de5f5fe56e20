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
from itertools import chain, compress
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .._inputs.arrays import format_values
from .._inputs.probabilities import PROBABILITY_ATOL
from ..report._sections import notify_progress

# Tables of more rows are refused before they are decoded, unless --max-rows allows them.
MAX_ROWS = 10**7

# Rows whose texts are in memory at a time, and rows between two messages of progress.
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
_MISSING_VALUE = Rule("be missing", _is_missing, is_number=True)

Column = tuple[str, Rule]


class Table(NamedTuple):
    """Columns of a file, of numbers or of texts."""

    columns: dict[Column, np.ndarray]  # of the rows where no value is missing
    frame: Any  # a data frame with the index "line" or "row"; with all columns if they are kept
    is_complete: np.ndarray  # of all rows, whether no value is missing

    @property
    def n_dropped(self) -> int:
        """Rows that were left out, as values are missing."""
        return int((~self.is_complete).sum())

    def name_row(self, position: int) -> str:
        return _name_row(self.frame, int(np.flatnonzero(self.is_complete)[position]))

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
    values = [to_values(frame[name], rule, point) for name, rule in columns]
    is_refused = np.column_stack([array != array for array in values])  # NaN
    is_wrong = is_refused
    if options.drop_missing:
        is_missing = [to_values(frame[name], _MISSING_VALUE) == 1 for name in names]
        is_wrong = is_refused & ~np.column_stack(is_missing)
    if is_wrong.any():
        row, k = np.argwhere(is_wrong)[0].tolist()
        name, rule = columns[k]
        (text,) = to_values(frame[name].iloc[[row]], ANYTHING)
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


def to_values(column: Any, rule: Rule, point: dict[int, int] | None = None) -> np.ndarray:
    """Return the values of a column of a data frame; NaN where the rule refuses a value."""
    dtype: Any = np.float64 if rule.is_number else object
    blocks = [np.empty(0, dtype)]
    for first in range(0, len(column), _MAX_BLOCK_ROWS):
        block = column.iloc[first : first + _MAX_BLOCK_ROWS]
        try:
            code, distinct = block.factorize()
            used, code = np.unique(code, return_inverse=True)  # of a large dictionary, few
            # as Python's numbers: float64 has no 2⁵³ + 1
            texts = [*map(str, distinct[used[used >= 0]].tolist())]
        except (TypeError, NotImplementedError) as error:  # cells are lists
            raise ValueError(
                f"Column {column.name!r} must hold numbers or texts; found the type {column.dtype}."
            ) from error
        texts = [""] * int(used[0] < 0) + texts  # the code of missing values is -1
        if rule.is_number and point:
            texts = [text.translate(point) for text in texts]
        values = [np.nan if value is None else value for value in map(rule.value, texts)]
        blocks.append(np.array(values, dtype)[code])
    return np.concatenate(blocks)


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
            is_held = [options.keeps_rows or name in names for name in header]
            columns = [*compress(header, is_held)]
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
                rows.append([*compress(row, is_held)])
                line_numbers.append(number)
                _check_size(len(rows), source, options)
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
    """Return a data frame of the columns of a Parquet, Arrow or JSON Lines file."""
    content = file.read()
    load = _load_json if content.startswith(_FORMATS[2:]) else _load_arrow
    frame = load(content, source, names, options)
    return frame.set_axis((frame.index + 1).rename("row"))


@contextlib.contextmanager
def _refuse_unsound(source: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, LookupError, OSError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{source} is not a sound Parquet, Arrow or JSON Lines file: {error}."
        ) from error


def _load_arrow(content: bytes, source: str, names: list[str], options: argparse.Namespace) -> Any:
    """Return a data frame of Parquet or Arrow; refuse too many rows before they are decoded.

    A few bytes may hold many rows, so texts of Parquet stay codes of the distinct ones.
    """
    import pandas
    from pyarrow import BufferReader, dataset, types

    file_format: Any = dataset.IpcFileFormat()
    if content.startswith(_FORMATS[0]):
        file_format = dataset.ParquetFileFormat(dictionary_columns=names)
    with _refuse_unsound(source):
        fragment = file_format.make_fragment(BufferReader(content))
        header = fragment.physical_schema.names
    check_header(header, source, names)
    with _refuse_unsound(source):
        n_rows = fragment.count_rows()
    _check_size(n_rows, source, options)
    with _refuse_unsound(source):
        table = fragment.to_table(columns=None if options.keeps_rows else list({*names}))
        frame = table.to_pandas(types_mapper=pandas.ArrowDtype, ignore_metadata=True)
    for name in frame:  # pandas shortens long lists, and takes no rows of views
        kind = table[name].type
        if options.keeps_rows if types.is_nested(kind) else "view" in str(kind):
            frame[name] = [row if row is None else str(row) for row in table[name].to_pylist()]
    return frame


def _load_json(content: bytes, source: str, names: list[str], options: argparse.Namespace) -> Any:
    import pandas

    with _refuse_unsound(source):
        lines = [line for line in content.decode(options.encoding).split("\n") if line.strip()]
    _check_size(len(lines), source, options)
    parse = partial(json.loads, parse_float=str, parse_int=str)  # digits as they are
    with _refuse_unsound(source):
        rows = [*map(parse, lines)]
        header = list(dict.fromkeys(chain.from_iterable(map(dict.keys, rows))))
    check_header(header, source, names)
    columns = header if options.keeps_rows else list({*names})
    return pandas.DataFrame(rows, columns=columns, dtype=object)


def _check_size(n_rows: int, source: str, options: argparse.Namespace) -> None:
    if n_rows > options.max_rows:
        raise ValueError(
            f"{source} must have at most {options.max_rows:,} rows; found {n_rows:,} or more. Take "
            "a random sample of the rows, or pass a larger --max-rows if all fit into memory."
        )


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
