"""A table, and the columns that a report takes besides labels and predictions."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..report._progress import stage
from .files import Rows, Source, as_numbers

_MISSING = {"", "na", "n/a", "nan", "null", "<na>", "#n/a"}


def is_missing(text: str) -> bool:
    return text.strip().lower() in _MISSING


class Table:
    """A file of which some columns are read, at most once."""

    def __init__(
        self,
        path: str,
        *,
        separator: str | None = None,
        weight: str | None = None,
        by: Sequence[str] = (),
        groups: str | None = None,
    ) -> None:
        self.source = Source(path, separator)
        self.weight, self.by, self.groups = weight, list(by), groups
        self._weights: list[np.ndarray] = []
        self._texts: dict[str, list[str]] = {name: [] for name in self.by}
        if groups is not None:
            self._texts[groups] = []

    def parts(self, wanted: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """For some rows at a time, where they are, and the texts of each wanted column."""
        weight = [] if self.weight is None else [self.weight]
        groups = [] if self.groups is None or self.groups in self.by else [self.groups]
        n_rows = 0
        for rows, *texts in self.source.parts([*wanted, *weight, *self.by, *groups]):
            n_rows += len(rows.numbers)
            stage(f"reading {self.source.name}: {n_rows} rows")
            further = iter(texts[len(wanted) :])
            for name in weight:
                self._weights.append(_weights(rows, next(further), name))
            for name in (*self.by, *groups):
                self._texts[name] += next(further)
            if self.groups is not None:
                _check_groups(rows, self._texts[self.groups][-len(rows.numbers) :], self.groups)
            yield rows, *texts[: len(wanted)]

    def arguments(self) -> dict[str, Any]:
        """What was read of the further columns, as arguments of the report."""
        found: dict[str, Any] = {}
        if self.weight is not None:
            found["sample_weight"] = np.concatenate(self._weights)
        if self.by:
            found["by"] = {name: _subgroups(self._texts[name]) for name in self.by}
        if self.groups is not None:
            found["groups"] = np.array([text.strip() for text in self._texts[self.groups]])
        return found


def _weights(rows: Rows, texts: Sequence[str], name: str) -> np.ndarray:
    return as_numbers(
        rows, texts, name, "a weight, 0 or larger,", lambda w: np.isfinite(w) & (w >= 0)
    )


def _check_groups(rows: Rows, texts: Sequence[str], name: str) -> None:
    for row, text in enumerate(texts):
        if is_missing(text):
            raise ValueError(
                f"Column {name!r} must name a group in every row; found {text!r} in "
                f"{rows.name(row)}. Give such rows groups of their own."
            )


def _subgroups(texts: Sequence[str]) -> np.ndarray:
    """Numbers, NaN where they are missing, if all are; otherwise texts, None where missing."""
    try:
        return np.array([np.nan if is_missing(text) else float(text) for text in texts])
    except ValueError:
        return np.array([None if is_missing(text) else text.strip() for text in texts], object)
