"""The columns that options of the command line name, as predictions; and recalibrated ones."""

import argparse
import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._inputs.arrays import format_values
from .._inputs.checks import check_column_name
from .._inputs.probabilities import ROW_SUM_ATOL, divide_by_sums
from ..forecasts import EnsembleForecast, GaussianForecast, QuantileForecast
from ..forecasts._base import Forecast
from ..recalibration import export_sql
from ..recalibration._export.sql import quote_name
from ..report._sections import notify_progress
from . import tables
from .tables import Column, Rule, Table, to_canonical

# A larger miss is refused. Rounding can cause one if there are many classes and few digits, but
# dividing by the sum would not bring back what was rounded away.
_MAX_SUM_ERROR = 0.05

# Finds 0.05 in "q0.05", and nothing in "q97.5".
_LEVEL_PATTERN = re.compile(r"(?<![0-9])0?\.[0-9]+$")


def load_columns(options: argparse.Namespace) -> tuple[Table, dict[str, Any]]:
    """Return the columns of the file, also as arguments of the report."""
    weight = [] if options.weight is None else [(options.weight, tables.WEIGHT)]
    by = [(name, tables.ANYTHING) for name in options.by or ()]
    groups = [] if options.groups is None else [(options.groups, tables.GROUP)]

    def load(outcome: Rule, predictions: list[Column]) -> Table:
        columns = [(options.label, outcome), *predictions, *weight, *by]
        names = [name for name, _ in columns]
        if len(set(names)) < len(names):
            raise ValueError(f"Each column must be named once; found {format_values(names)}.")
        return tables.load_table(options.file, columns + groups, options)

    load_predictions = _load_forecasts if options.proba is None else _load_probabilities
    table, data_args = load_predictions(options, load)
    if weight:
        data_args["sample_weight"] = table.columns[weight[0]]
    if by:
        data_args["by"] = {name: table.subgroups(name) for name in options.by}
    if groups:
        data_args["groups"] = table.columns[groups[0]]
    return table, data_args


def _load_probabilities(
    options: argparse.Namespace, load: Callable[[Rule, list[Column]], Table]
) -> tuple[Table, dict[str, Any]]:
    """Return labels, probabilities and classes."""
    names = options.proba
    if len(names) > 1 and options.pos_label is not None:
        raise ValueError(
            f"--pos-label is for a single column of probabilities; found {len(names)} columns. "
            "Leave it out."
        )
    columns = [(name, tables.PROBABILITY) for name in names]
    table = load(tables.LABEL, columns)
    labels = table.columns[options.label, tables.LABEL]
    if len(names) == 1:
        classes = find_two_classes(labels, options.pos_label)
        check_column_name(names, np.array(classes), "--proba")
    else:
        classes = find_column_classes(labels, names)
    return table, {"y_true": labels, "y_pred": to_probabilities(table, columns), "labels": classes}


def _load_forecasts(
    options: argparse.Namespace, load: Callable[[Rule, list[Column]], Table]
) -> tuple[Table, dict[str, Any]]:
    """Return outcomes and forecasts."""
    forecast: Forecast
    if options.mean is not None:
        columns = [(options.mean, tables.NUMBER), (options.std, tables.STANDARD_DEVIATION)]
        table = load(tables.NUMBER, columns)
        forecast = GaussianForecast(*table.matrix(columns).T)
    elif options.quantiles is not None:
        names, levels = _sort_by_level(options.quantiles, options.levels)
        columns = [(name, tables.NUMBER) for name in names]
        table = load(tables.NUMBER, columns)
        forecast = QuantileForecast(to_quantiles(table, columns), levels)
    elif len(options.members) < 2:
        raise ValueError(
            f"--members must name at least two columns; found {format_values(options.members)}. "
            "One number for each row is a prediction without a distribution."
        )
    else:
        columns = [(name, tables.NUMBER) for name in options.members]
        table = load(tables.NUMBER, columns)
        forecast = EnsembleForecast(table.matrix(columns))
    return table, {"y_true": table.columns[options.label, tables.NUMBER], "y_pred": forecast}


def _sort_by_level(
    columns: Sequence[str], levels: Sequence[float] | None
) -> tuple[Sequence[str], Sequence[float]]:
    """Return the columns of quantiles and their levels, sorted by level.

    The levels are those given, or the decimal fractions at the ends of the names: 0.05 of "q0.05".
    """
    if levels is None:
        levels = []
        for name in columns:
            level = _LEVEL_PATTERN.search(name)
            if level is None:
                raise ValueError(
                    "The name of a column of quantiles must end in its level, such as q0.05; found "
                    f"{name!r}. Rename it, or pass all levels with --levels."
                )
            levels.append(float(level[0]))
    if len(levels) != len(columns):
        raise ValueError(
            f"--levels must give one level for each column of --quantiles; found {len(levels)} for "
            f"{len(columns)} columns. Pass them in the same order."
        )
    levels, columns = zip(*sorted(zip(levels, columns, strict=True)), strict=True)
    if not all(0 < level < 1 for level in levels) or len(set(levels)) < len(levels):
        raise ValueError(
            "The levels of the quantiles must be different numbers between 0 and 1; found "
            f"{format_values(levels)}. Pass the right ones with --levels."
        )
    return columns, levels


def to_probabilities(table: Table, columns: Sequence[Column]) -> np.ndarray:
    """Return one column as (n,), several as (n, K).

    The sum of a row may miss 1 by what rounding to the digits of the file makes; it is then divided
    by its sum.
    """
    proba = table.matrix(columns)
    if len(columns) == 1:
        return proba[:, 0]
    total = proba.sum(axis=1)
    miss = np.abs(total - 1)
    if miss.max() <= ROW_SUM_ATOL:
        return proba
    tolerance = np.clip(_half_last_digits(proba).sum(axis=1), ROW_SUM_ATOL, _MAX_SUM_ERROR)
    row = int(np.argmax(miss - tolerance))
    if miss[row] > tolerance[row] * (1 + 1e-9):
        raise ValueError(
            f"The probabilities of a row must sum to 1; found a sum of {total[row]:.6g} in "
            f"{table.name_row(row)}, which rounding to the digits of the file does not explain. "
            "Name the columns of all classes, and write their values with more digits or divided "
            "by their sum."
        )
    return divide_by_sums(proba, total)


def _half_last_digits(proba: np.ndarray) -> np.ndarray:
    """Return half a unit in the last digit of each probability, (n, K).

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


def find_two_classes(labels: Iterable[str], pos_label: str | None) -> list[str]:
    """Return both classes; the single column of probabilities is of the second one."""
    observed = sorted(set(labels))
    tell_their_order = set(map(str.lower, observed)) == {"false", "true"}
    with contextlib.suppress(ValueError):  # words stay in the order of the alphabet
        observed, tell_their_order = sorted(observed, key=float), True
    if pos_label is None:
        classes = ["0", "1"] if set(observed) <= {"0", "1"} else observed
        if len(classes) != 2:
            remedy = "Pass one column for each class, or name its class with --pos-label."
            if len(observed) > 2 and None not in map(tables.PROBABILITY.value, observed):
                remedy = "They look like probabilities: exchange --label and --proba."
            raise ValueError(
                f"One column of probabilities is for two labels; found {len(observed)}: "
                f"{format_values(observed)}. {remedy}"
            )
        if not tell_their_order:
            raise ValueError(
                f"--pos-label must name the event, whose probability the column holds; the labels "
                f"are {format_values(observed)}. Pass one of them."
            )
        return classes
    pos_label = to_canonical(pos_label)
    other_labels = [label for label in observed if label != pos_label] or [f"not {pos_label}"]
    if len(observed) > 2 or len(other_labels) > 1:
        raise ValueError(
            f"--pos-label {pos_label!r} must be one of two labels; found {format_values(observed)}."
        )
    return [*other_labels, pos_label]


def find_column_classes(labels: Iterable[str], columns: Sequence[str]) -> list[str]:
    """Return the names of the columns without a common prefix, such that every label is among them.

    A prefix ends in a separator or before a number: "proba_cat", "proba_dog"; "p0", "p1".
    """
    ends = [end for end in range(len(columns[0]), -1, -1) if _is_prefix(columns, end)]
    candidates = [[to_canonical(name[end:]) for name in columns] for end in ends]
    for classes in candidates:
        if set(labels) <= set(classes):
            return classes
    unknown = sorted(set(labels) - set(candidates[0]))
    raise ValueError(
        f"Every label must match a column of probabilities; found {format_values(unknown)}, and "
        f"columns for {format_values(candidates[0])}. Name each column like its label, or proba_ "
        "and the label; leave out rows without a label."
    )


def _is_prefix(columns: Sequence[str], end: int) -> bool:
    """True if names of classes may begin at `end`: behind "p_" of "p_cat", and "p" of "p0"."""
    prefix, last = columns[0][:end], columns[0][:end][-1:]
    is_before_numbers = last.isalpha() and all(name[end : end + 1].isdigit() for name in columns)
    is_common = all(name.startswith(prefix) for name in columns)
    return is_common and (is_before_numbers or not last.isalnum())


def to_quantiles(table: Table, columns: Sequence[Column]) -> np.ndarray:
    """Return quantiles in the order of their levels, (n, m), which must not cross."""
    values = table.matrix(columns)
    falls = np.argwhere(np.diff(values, axis=1) < 0)
    if len(falls):
        row, k = falls[0].tolist()
        raise ValueError(
            f"The quantiles of a row must not cross; found {values[row, k]:.6g} in column "
            f"{columns[k][0]!r} and {values[row, k + 1]:.6g} in column {columns[k + 1][0]!r}, "
            f"in {table.name_row(row)}. Sort the quantiles of each row."
        )
    return values


def fit_and_apply(
    recalibrator: BaseEstimator, data_args: dict[str, Any], options: argparse.Namespace
) -> tuple[Table, dict[str, str]]:
    """Return the recalibrated table, and the texts of files: table, map of two classes, and SQL."""
    columns = [(name, tables.PROBABILITY) for name in options.proba]
    table = tables.load_table(options.apply, columns, options)
    names = [f"recalibrated_{name}" for name in options.proba]
    tables.check_header([*table.frame.columns, *names], options.apply, names)
    notify_progress("recalibrating")
    weight = data_args.get("sample_weight")
    recalibrator.fit(data_args["y_pred"], data_args["y_true"], weight)

    def format_number(number: float) -> str:
        return repr(number).replace(".", options.decimal)

    def to_csv(texts: Any, proba: np.ndarray, is_complete: np.ndarray) -> str:
        recalibrated = recalibrator.predict_proba(proba)[:, -len(names) :].T
        for name, column in zip(names, recalibrated.tolist(), strict=True):
            values = np.full(len(texts), "", object)
            values[is_complete] = list(map(format_number, column))
            texts[name] = values
        delimiter = ";" if options.decimal == "," else ","
        return texts.to_csv(index=False, sep=delimiter, lineterminator="\n")

    proba = to_probabilities(table, columns)
    files = {options.output: to_csv(table.frame, proba, table.is_complete)}
    if options.map is not None:
        points = np.linspace(0, 1, 1001)
        texts = type(table.frame)({options.proba[-1]: map(format_number, points.tolist())})
        files[options.map] = to_csv(texts, points, np.ones(len(points), bool))
    if options.sql is not None:
        formulas = export_sql(recalibrator, columns=options.proba)[-len(names) :]
        lines = [f"{sql} AS {quote_name(name)}" for sql, name in zip(formulas, names, strict=True)]
        files[options.sql] = ",\n".join(lines) + "\n"
    return table, files
