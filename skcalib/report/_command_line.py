"""The command line: ``skcalib demo`` and ``skcalib report FILE``."""

import argparse
import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .. import __version__
from .._inputs.arrays import listed
from ..forecasts import EnsembleForecast, GaussianForecast, QuantileForecast
from ..forecasts._base import Forecast
from . import _demo
from ._output import check_target, progress, say, show
from ._report import calibration_report
from ._tables import (
    ANYTHING,
    GROUP,
    LABEL,
    NUMBER,
    POSITIVE,
    PROBABILITY,
    WEIGHT,
    Rule,
    Table,
    classes_of_columns,
    probabilities,
    quantiles,
    read_table,
    two_classes,
)

# Exit status of a program that a closed pipe ended, as in ``| head -1``: 128 + SIGPIPE.
_CLOSED_PIPE = 141

# Options that are of no use without another one.
_COMPANIONS = {"mean": "std", "std": "mean", "levels": "quantiles", "pos_label": "proba"}

# Finds 0.05 in "q0.05", and nothing in "q97.5".
_LEVEL = re.compile(r"(?<![0-9])0?\.[0-9]+$")

_NO_FIGURES = ", without figures, as matplotlib is missing (pip install matplotlib)"

# Options that name one column, or several, and their help.
_COLUMN = {
    "label": "column of true labels, or of outcomes",
    "mean": "means of normal forecasts, with --std",
    "std": "standard deviations of normal forecasts, with --mean",
    "weight": "column of weights of the rows",
    "groups": "column that names rows which are not independent, such as those of one patient",
}
_COLUMNS = {
    "proba": "one column of probabilities of the positive class, or one for each class, named like "
    "the class, possibly after a common prefix (proba_cat proba_dog, or p0 p1)",
    "quantiles": "quantiles, in columns whose names end in their levels (q0.05 q0.5 q0.95), with "
    "--levels if they do not",
    "members": "members of ensembles, one column for each",
    "by": "columns whose values are subgroups, which are reported apart; several make crossings",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    try:
        try:
            options = _parser().parse_args(arguments)
            options.command(options)
        finally:
            sys.stdout.flush()  # or Python would report a closed pipe with a traceback
    except BrokenPipeError:
        # a standard output that is no file has no number
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return _CLOSED_PIPE
    except (ValueError, OSError, ImportError, MemoryError) as error:
        say(f"error: {str(error) or 'out of memory'}")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    called = Path(sys.argv[0]).name
    program = "python -m skcalib" if called == "__main__.py" else "skcalib"
    parser = argparse.ArgumentParser(
        prog=program,
        description="Is a model calibrated, how far from it is it, and how to fix it.",
    )
    parser.add_argument("--version", action="version", version=f"skcalib {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo_parser = commands.add_parser("demo", help="recalibrate classifiers on scikit-learn's data")
    demo_parser.add_argument(
        "--output", default="skcalib_demo.png", metavar="PNG", help="the figure"
    )
    demo_parser.set_defaults(command=_demo_command)

    report = commands.add_parser(
        "report",
        help="report on a table of outcomes and probabilities or forecasts",
        usage=f"{program} report FILE --label COLUMN (--proba COLUMN [COLUMN ...] | --mean "
        "COLUMN --std COLUMN | --quantiles COLUMN [COLUMN ...] | --members COLUMN [COLUMN ...]) "
        "[options]",
    )
    text = "separated values with a header (CSV), Parquet or Arrow; - is the standard input"
    report.add_argument("file", metavar="FILE", help=text)
    predictions = report.add_mutually_exclusive_group(required=True)
    for name, text in _COLUMN.items():
        group = predictions if name == "mean" else report
        group.add_argument(f"--{name}", metavar="COLUMN", help=text, required=name == "label")
    for name, text in _COLUMNS.items():
        group = report if name == "by" else predictions
        group.add_argument(f"--{name}", nargs="+", metavar="COLUMN", help=text)
    text = "levels of --quantiles"
    report.add_argument("--levels", nargs="+", type=float, metavar="LEVEL", help=text)
    text = "the class of a single column of --proba (default: the larger)"
    report.add_argument("--pos-label", metavar="LABEL", help=text)
    text = "the predictions have been recalibrated: the report does not advise that"
    report.add_argument("--recalibrated", action="store_true", help=text)
    text = "what separates the values (default: the likely one)"
    report.add_argument("--sep", metavar="CHARACTER", help=text)
    report.add_argument(
        "--html", metavar="OUT", help="also write the report as a page to this file"
    )
    text = "replace OUT though it is not a page of a report"
    report.add_argument("--force", action="store_true", help=text)
    report.add_argument("--json", action="store_true", help="print JSON in place of the text")
    report.add_argument("--seed", type=int, default=0, help="seed of the test (default: 0)")
    report.set_defaults(command=_report)
    return parser


def _demo_command(options: argparse.Namespace) -> None:
    for text in _demo.run(options.output):
        show(text)
        sys.stdout.flush()


def _report(options: argparse.Namespace) -> None:
    for option, needed in _COMPANIONS.items():
        if getattr(options, option) is not None and getattr(options, needed) is None:
            name = option.replace("_", "-")
            raise ValueError(
                f"--{name} must come with --{needed}; found it alone. Add --{needed}, or leave "
                f"--{name} out."
            )
    if options.html is not None:
        check_target(options.html, force=options.force)
    with progress():
        report = calibration_report(
            **_arguments(options), recalibrated=options.recalibrated, random_state=options.seed
        )
    try:
        if options.html is not None:
            with progress():
                report.to_html(options.html)
            say(f"page written to {options.html}{'' if report.figures else _NO_FIGURES}")
    finally:  # a page that could not be written takes nothing from the text
        if options.json:
            show(report.to_json(), json.dumps)
        else:
            show(str(report))


def _separator(text: str | None) -> str | None:
    r"""One character; a tab may be written as \t."""
    separator = "\t" if text == "\\t" else text
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ValueError(
            f"--sep must be one character that separates values; found {text!r}. Pass ';' or "
            "'\\t', for instance."
        )
    return separator


def _arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The columns of the file as arguments of the report."""
    weight = [] if options.weight is None else [(options.weight, WEIGHT)]
    by = [(name, ANYTHING) for name in options.by or ()]
    groups = [] if options.groups is None else [(options.groups, GROUP)]

    def read(outcome: Rule, predictions: list[tuple[str, Rule]]) -> Table:
        columns = [(options.label, outcome), *predictions, *weight, *by]
        names = [name for name, _ in columns]
        if len(set(names)) < len(names):
            raise ValueError(f"Each column must be named once; found {listed(names)}.")
        return read_table(options.file, columns + groups, _separator(options.sep))

    make = _probabilities if options.proba is not None else _forecasts
    table, found = make(options, read)
    if weight:
        found["sample_weight"] = table.columns[weight[0]]
    if by:
        found["by"] = {name: table.subgroups(name) for name in options.by}
    if groups:
        found["groups"] = table.columns[groups[0]]
    return found


def _probabilities(
    options: argparse.Namespace, read: Callable[..., Table]
) -> tuple[Table, dict[str, Any]]:
    """Labels, probabilities and classes."""
    names = options.proba
    if len(names) > 1 and options.pos_label is not None:
        raise ValueError(
            f"--pos-label is for a single column of probabilities; found {len(names)} columns. "
            "Leave it out."
        )
    columns = [(name, PROBABILITY) for name in names]
    table = read(LABEL, columns)
    labels = table.columns[options.label, LABEL]
    if len(names) == 1:
        classes = two_classes(labels, options.pos_label)
    else:
        classes = classes_of_columns(labels, names)
    return table, {"y_true": labels, "y_proba": probabilities(table, columns), "labels": classes}


def _forecasts(
    options: argparse.Namespace, read: Callable[..., Table]
) -> tuple[Table, dict[str, Any]]:
    """Outcomes and forecasts."""
    forecast: Forecast
    if options.mean is not None:
        columns = [(options.mean, NUMBER), (options.std, POSITIVE)]
        table = read(NUMBER, columns)
        forecast = GaussianForecast(*table.matrix(columns).T)
    elif options.quantiles is not None:
        names, levels = _in_order(options.quantiles, options.levels)
        columns = [(name, NUMBER) for name in names]
        table = read(NUMBER, columns)
        forecast = QuantileForecast(quantiles(table, columns), levels)
    elif len(options.members) < 2:
        raise ValueError(
            f"--members must name at least two columns; found {listed(options.members)}. One "
            "number for each row is a prediction without a distribution."
        )
    else:
        columns = [(name, NUMBER) for name in options.members]
        table = read(NUMBER, columns)
        forecast = EnsembleForecast(table.matrix(columns))
    return table, {"y_true": table.columns[options.label, NUMBER], "y_proba": forecast}


def _in_order(
    columns: Sequence[str], levels: Sequence[float] | None
) -> tuple[Sequence[str], Sequence[float]]:
    """The columns of quantiles and their levels, sorted by level.

    The levels are those given, or the decimal fractions at the ends of the names: 0.05 of "q0.05".
    """
    if levels is None:
        levels = []
        for name in columns:
            level = _LEVEL.search(name)
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
            f"{listed(levels)}. Pass the right ones with --levels."
        )
    return columns, levels
