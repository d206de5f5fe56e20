"""The columns of a file of comma-separated values."""

import contextlib
import csv
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import itemgetter

import numpy as np

from .._inputs.arrays import listed

# Rows that are parsed at once: a few megabytes of text.
_ROWS_AT_ONCE = 2**16


def columns_in_parts(path: str, wanted: Sequence[str]) -> Iterator[tuple[tuple, ...]]:
    """For some rows at a time, the numbers of their lines and the texts of each column."""
    records = _records(path, wanted)
    rows = list(islice(records, _ROWS_AT_ONCE))
    if not rows:
        raise ValueError(f"{path} must hold at least one row below the header; found none.")
    while rows:
        yield tuple(zip(*rows, strict=True))
        rows = list(islice(records, _ROWS_AT_ONCE))


def _records(path: str, wanted: Sequence[str]) -> Iterator[tuple]:
    """For each row of the file the number of its line, and the texts of the columns."""
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"Each column must be named once; found {listed(wanted)}.")
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            header = [name.strip() for name in next((r for r in rows if not _is_blank(r)), [])]
            _check_header(path, header, wanted)
            pick = itemgetter(*(header.index(name) for name in wanted))
            for row in rows:
                if len(row) == len(header):
                    yield rows.line_num, *pick(row)
                elif not _is_blank(row):
                    raise ValueError(
                        f"Every row must have the {len(header)} columns of the header; found "
                        f"{len(row)} in line {rows.line_num} of {path}."
                    )
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path} is not a text file of comma-separated values: {error}."
        ) from error


def _is_blank(row: list[str]) -> bool:
    return len(row) < 2 and not "".join(row).strip()


def _check_header(path: str, header: list[str], wanted: Sequence[str]) -> None:
    if not header:
        raise ValueError(f"{path} is empty; its first line must name the columns.")
    missing = [name for name in wanted if name not in header]
    if missing:
        raise ValueError(
            f"{path} has no column {', '.join(map(repr, missing))}; its columns are "
            f"{listed(header)}. Values are separated by commas."
        )
    twice = [name for name in wanted if header.count(name) > 1]
    if twice:
        raise ValueError(
            f"{path} must have one column of each name; found {header.count(twice[0])} named "
            f"{twice[0]!r}. Rename them."
        )


def as_numbers(
    lines: Sequence[int],
    texts: Sequence[str],
    name: str,
    rule: str,
    is_allowed: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """The numbers of a column; all must be allowed, as the rule says in words."""
    with contextlib.suppress(ValueError):
        numbers = np.array(list(map(float, texts)))
        if is_allowed(numbers).all() and "_" not in "".join(texts):
            return numbers
    row = next(row for row, text in enumerate(texts) if not _is_allowed(text, is_allowed))
    found = repr(texts[row]) if texts[row].strip() else "nothing"
    raise ValueError(
        f"Column {name!r} must hold {rule} in every row; found {found} in line {lines[row]}. "
        "Remove or repair the row."
    )


def _is_allowed(text: str, is_allowed: Callable[[np.ndarray], np.ndarray]) -> bool:
    try:
        return bool(is_allowed(np.array(float(text)))) and "_" not in text  # Python allows 0.1_5
    except ValueError:
        return False
