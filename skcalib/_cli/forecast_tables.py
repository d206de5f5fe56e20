"""Outcomes and forecasts from a table."""

import re
from collections.abc import Sequence

import numpy as np

from .._inputs.arrays import listed
from ..forecasts import EnsembleForecast, GaussianForecast, QuantileForecast
from ..forecasts._base import Forecast
from .files import Rows, as_numbers
from .further import Table

# A number at the end of a column's name, as in q0.05, p05, 2.5% or quantile_97.5
_LEVEL = re.compile(r"([0-9]*\.?[0-9]+)\s*(%?)$")


def read_moments(
    table: Table, label_column: str, mean_column: str, std_column: str
) -> tuple[np.ndarray, Forecast]:
    """Outcomes (n,), and normal forecasts."""
    outcome, numbers, rows = _numbers(table, label_column, [mean_column, std_column])
    mean, std = numbers.T
    if (std <= 0).any():
        row = int(np.argmax(std <= 0))
        raise ValueError(
            f"Column {std_column!r} must hold a positive standard deviation in every row; found "
            f"{std[row]:.6g} in {rows.name(row)}. Remove or repair the row."
        )
    return outcome, GaussianForecast(mean, std)


def read_members(
    table: Table, label_column: str, member_columns: Sequence[str]
) -> tuple[np.ndarray, Forecast]:
    """Outcomes (n,), and ensembles that they are taken to be exchangeable with."""
    if len(member_columns) < 2:
        raise ValueError(
            f"--members must name at least two columns; found {listed(member_columns)}. One number "
            "for each row is a prediction without a distribution."
        )
    outcome, members, _ = _numbers(table, label_column, member_columns)
    return outcome, EnsembleForecast(members)


def read_quantiles(
    table: Table,
    label_column: str,
    quantile_columns: Sequence[str],
    levels: Sequence[float] | None = None,
) -> tuple[np.ndarray, Forecast]:
    """Outcomes (n,), and quantiles in the order of their levels.

    The levels are those given, or the numbers at the ends of the names of the columns.
    """
    names, level = _in_order(quantile_columns, levels)
    outcome, quantiles, rows = _numbers(table, label_column, names)
    falls = np.diff(quantiles, axis=1) < 0
    if falls.any():
        row, k = (int(index) for index in np.argwhere(falls)[0])
        raise ValueError(
            f"The quantiles of a row must not cross; found {quantiles[row, k]:.6g} in column "
            f"{names[k]!r} and {quantiles[row, k + 1]:.6g} in column {names[k + 1]!r}, in "
            f"{rows.name(row)}. Sort the quantiles of each row."
        )
    return outcome, QuantileForecast(quantiles, level)


def _numbers(
    table: Table, label_column: str, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, Rows]:
    """Outcomes (n,), the columns of the forecasts (n, m), and where they are in the file."""
    wanted = [label_column, *names]
    parts: list[np.ndarray] = []
    numbers: list[int] = []
    for rows, *texts in table.parts(wanted):
        parts.append(
            np.column_stack(
                [
                    as_numbers(rows, column, name, "a number", np.isfinite)
                    for name, column in zip(wanted, texts, strict=True)
                ]
            )
        )
        numbers += rows.numbers
    values = np.concatenate(parts)
    return values[:, 0], values[:, 1:], Rows(rows.word, numbers)


def _in_order(
    columns: Sequence[str], levels: Sequence[float] | None
) -> tuple[list[str], list[float]]:
    """The names of the columns and their levels, sorted by level."""
    if levels is None:
        levels = [_level_of(name) for name in columns]
    if len(levels) != len(columns):
        raise ValueError(
            f"--levels must give one level for each column of --quantiles; found {len(levels)} for "
            f"{len(columns)} columns. Pass them in the same order."
        )
    pairs = sorted(zip(levels, columns, strict=True))
    outside = [level for level in levels if not 0 < level < 1]
    if outside or len(set(levels)) < len(levels):
        raise ValueError(
            "The levels of the quantiles must be different numbers between 0 and 1; found "
            f"{listed([level for level, _ in pairs])}. Pass the right ones with --levels."
        )
    return [name for _, name in pairs], [level for level, _ in pairs]


def _level_of(name: str) -> float:
    """The level that the name of a column ends in: 0.05 of "q0.05", "p05", "5%" and "q_5.0".

    Two or more digits without a point are those behind it. Numbers above 1 are per cent. A single
    digit could be either.
    """
    found = _LEVEL.search(name)
    digits, percent = found.groups() if found else ("", "")
    if not digits or (len(digits) == 1 and not percent):
        raise ValueError(
            f"The name of a column of quantiles must end in its level, such as q0.05, p05 or 5%; "
            f"found {name!r}. Rename it, or pass all levels with --levels."
        )
    if "." not in digits and not percent:
        return float(f"0.{digits}")
    number = float(digits)
    # of the decimal number that stands there, not of its rounded hundredth
    return float(f"{digits}e-2") if percent or number > 1 else number
