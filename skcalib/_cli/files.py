"""The columns of a file of separated values, or of a Parquet or Arrow file, as texts."""

import csv
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from typing import Any, BinaryIO

import numpy as np

from .._inputs.arrays import listed
from .arrow_files import arrow_batches, is_arrow, texts_of

# Rows that are parsed at once: a few megabytes of text.
_ROWS_AT_ONCE = 2**16

# What may separate values, if the user does not say so.
_SEPARATORS = ",;\t| "


@dataclass(frozen=True)
class Rows:
    """Where some rows are in the file."""

    word: str  # "line" of a text, "row" of other files
    numbers: Sequence[int]

    def name(self, row: int) -> str:
        return f"{self.word} {self.numbers[row]}"


@dataclass(frozen=True)
class Source:
    """A file, "-" for the standard input, and what separates its values."""

    path: str
    separator: str | None = None

    @property
    def name(self) -> str:
        return "standard input" if self.path == "-" else self.path

    def parts(self, wanted: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """For some rows at a time, where they are, and the texts of each wanted column."""
        if len(set(wanted)) < len(wanted):
            raise ValueError(f"Each column must be named once; found {listed(wanted)}.")
        n_rows = 0
        try:
            with self._open() as file:
                parts = self._arrow_parts if is_arrow(file) else self._text_parts
                for rows, texts in parts(file, wanted):
                    n_rows += len(rows.numbers)
                    yield rows, *texts
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{self.name} is not a text file of separated values: {error}.") from (
                error
            )
        except OSError as error:
            reason = error.strerror or error
            raise ValueError(f"{self.name} cannot be read: {reason}.") from error
        if not n_rows:
            raise ValueError(
                f"{self.name} must hold at least one row below the header; found none."
            )

    @contextmanager
    def _open(self) -> Iterator[io.BufferedReader]:
        if self.path == "-":
            yield sys.stdin.buffer  # type: ignore[misc]
        else:
            with open(self.path, "rb") as file:
                yield file

    def _arrow_parts(
        self, file: BinaryIO, wanted: Sequence[str]
    ) -> Iterator[tuple[Rows, Sequence[Sequence[str]]]]:
        n_rows = 0
        for batch in arrow_batches(file, self.name, wanted):
            self._check_header(batch.schema.names, wanted)
            if batch.num_rows:
                texts = [texts_of(batch, name) for name in wanted]
                yield Rows("row", range(n_rows + 1, n_rows + 1 + batch.num_rows)), texts
            n_rows += batch.num_rows

    def _text_parts(
        self, file: BinaryIO, wanted: Sequence[str]
    ) -> Iterator[tuple[Rows, Sequence[Sequence[str]]]]:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        try:
            records = self._records(text, wanted)
            while rows := list(islice(records, _ROWS_AT_ONCE)):
                lines, *texts = zip(*rows, strict=True)
                yield Rows("line", lines), texts
        finally:
            with suppress(ValueError):  # a file that is closed already
                text.detach()

    def _records(self, text: io.TextIOWrapper, wanted: Sequence[str]) -> Iterator[tuple]:
        """For each row of the file the number of its line, and the texts of the columns."""
        head = []
        for line in text:
            head.append(line)
            if line.strip():
                break
        separator = self.separator or _likely_separator(head[-1:], wanted)
        rows = csv.reader(chain(head, text), delimiter=separator)
        header = [name.strip() for name in next((r for r in rows if not _is_blank(r)), [])]
        self._check_header(header, wanted, separator)
        pick = itemgetter(*(header.index(name) for name in wanted))
        for row in rows:
            if len(row) == len(header):
                yield rows.line_num, *pick(row)
            elif not _is_blank(row):
                raise ValueError(
                    f"Every row must have the {len(header)} columns of the header; found "
                    f"{len(row)} in line {rows.line_num} of {self.name}."
                )

    def _check_header(
        self, header: list[str], wanted: Sequence[str], separator: str | None = None
    ) -> None:
        if not header:
            raise ValueError(f"{self.name} is empty; its first line must name the columns.")
        missing = [name for name in wanted if name not in header]
        if missing:
            hint = ""
            if separator is not None:
                hint = f" Values are taken to be separated by {separator!r}; --sep names another."
            raise ValueError(
                f"{self.name} has no column {', '.join(map(repr, missing))}; its columns are "
                f"{listed(header)}.{hint}"
            )
        twice = [name for name in wanted if header.count(name) > 1]
        if twice:
            raise ValueError(
                f"{self.name} must have one column of each name; found {header.count(twice[0])} "
                f"named {twice[0]!r}. Rename them."
            )


def _likely_separator(header: list[str], wanted: Sequence[str]) -> str:
    """What divides the header into the wanted columns; otherwise, into the most columns."""

    def columns(separator: str) -> set[str]:
        return {name.strip() for name in next(csv.reader(header, delimiter=separator), [])}

    return max(_SEPARATORS, key=lambda one: (len(columns(one) & set(wanted)), len(columns(one))))


def _is_blank(row: list[str]) -> bool:
    return len(row) < 2 and not "".join(row).strip()


def as_numbers(
    rows: Rows,
    texts: Sequence[str],
    name: str,
    rule: str,
    is_allowed: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """The numbers of a column; all must be allowed, as the rule says in words."""
    with suppress(ValueError):
        numbers = np.array(list(map(float, texts)))
        if is_allowed(numbers).all() and "_" not in "".join(texts):
            return numbers
    row = next(row for row, text in enumerate(texts) if not _is_allowed(text, is_allowed))
    found = repr(texts[row]) if texts[row].strip() else "nothing"
    raise ValueError(
        f"Column {name!r} must hold {rule} in every row; found {found} in {rows.name(row)}. "
        "Remove or repair the row."
    )


def _is_allowed(text: str, is_allowed: Callable[[np.ndarray], np.ndarray]) -> bool:
    try:
        return bool(is_allowed(np.array(float(text)))) and "_" not in text  # Python allows 0.1_5
    except ValueError:
        return False
