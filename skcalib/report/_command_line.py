"""The command line: ``skcalib demo`` and ``skcalib report FILE``, also ``python -m skcalib``."""

import argparse
import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._inputs.arrays import listed
from ..forecasts import EnsembleForecast, GaussianForecast, QuantileForecast
from ..forecasts._base import Forecast
from . import _demo
from ._report import calibration_report
from ._sections import LISTENER
from ._tables import (
    NUMBER,
    POSITIVE,
    PROBABILITY,
    WEIGHT,
    Rule,
    Table,
    canonical,
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
            return _run(arguments)
        finally:
            sys.stdout.flush()  # or Python would report a closed pipe with a traceback
    except BrokenPipeError:
        _discard_output()
        return _CLOSED_PIPE


def _run(arguments: Sequence[str] | None) -> int:
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ImportError) as error:
        print(f"skcalib: error: {_escaped(str(error))}", file=sys.stderr)
        return 2
    return 0


def _program() -> str:
    """The name that the program was called by."""
    called = Path(sys.argv[0]).name
    return "python -m skcalib" if called == "__main__.py" else "skcalib"


def _parser() -> argparse.ArgumentParser:
    program = _program()
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
    report.add_argument("--json", action="store_true", help="print JSON in place of the text")
    report.add_argument("--seed", type=int, default=0, help="seed of the test (default: 0)")
    report.set_defaults(command=_report)
    return parser


def _demo_command(options: argparse.Namespace) -> None:
    for text in _demo.run(options.output):
        print(text, flush=True)


def _report(options: argparse.Namespace) -> None:
    for option, needed in _COMPANIONS.items():
        if getattr(options, option) is not None and getattr(options, needed) is None:
            name = option.replace("_", "-")
            raise ValueError(
                f"--{name} must come with --{needed}; found it alone. Add --{needed}, or leave "
                f"--{name} out."
            )
    with _progress():
        report = calibration_report(
            **_arguments(options), recalibrated=options.recalibrated, random_state=options.seed
        )
        if options.html is not None:
            report.to_html(options.html)
    if options.json:
        print(_escaped_json(report.to_json()))
    else:
        print("\n".join(map(_escaped, str(report).split("\n"))))


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
    label_rule, predictions = _predictions(options)
    wanted = [(options.label, label_rule), *predictions]
    if options.weight is not None:
        wanted.append((options.weight, WEIGHT))
    wanted += [(name, None) for name in options.by or ()]
    if options.groups is not None and options.groups not in (options.by or ()):
        wanted.append((options.groups, None))
    table = read_table(options.file, wanted, _separator(options.sep))
    found = _outcomes(table, [name for name, _ in predictions], options)
    if options.weight is not None:
        found["sample_weight"] = table.columns[options.weight]
    if options.by:
        found["by"] = {name: table.subgroups(name) for name in options.by}
    if options.groups is not None:
        remedy = "Give such rows groups of their own."
        found["groups"] = table.texts(options.groups, "name a group", remedy)
    return found


def _predictions(options: argparse.Namespace) -> tuple[Rule | None, list[tuple[str, Rule | None]]]:
    """The rule for the outcomes, and the columns of the predictions with their rules."""
    if options.proba is not None:
        if len(options.proba) > 1 and options.pos_label is not None:
            raise ValueError(
                f"--pos-label is for a single column of probabilities; found {len(options.proba)} "
                "columns. Leave it out."
            )
        return None, [(name, PROBABILITY) for name in options.proba]
    if options.mean is not None:
        return NUMBER, [(options.mean, NUMBER), (options.std, POSITIVE)]
    if options.quantiles is not None:
        names, options.levels = _in_order(options.quantiles, options.levels)
        return NUMBER, [(name, NUMBER) for name in names]
    if len(options.members) < 2:
        raise ValueError(
            f"--members must name at least two columns; found {listed(options.members)}. One "
            "number for each row is a prediction without a distribution."
        )
    return NUMBER, [(name, NUMBER) for name in options.members]


def _in_order(
    columns: Sequence[str], levels: Sequence[float] | None
) -> tuple[list[str], list[float]]:
    """The columns of quantiles and their levels, sorted by level.

    The levels are those given, or the decimal fractions at the ends of the names: 0.05 of "q0.05".
    """
    if levels is None:
        found = [(name, _LEVEL.search(name)) for name in columns]
        unknown = next((name for name, level in found if level is None), None)
        if unknown is not None:
            raise ValueError(
                "The name of a column of quantiles must end in its level, such as q0.05; found "
                f"{unknown!r}. Rename it, or pass all levels with --levels."
            )
        levels = [float(level[0]) for _, level in found if level]
    if len(levels) != len(columns):
        raise ValueError(
            f"--levels must give one level for each column of --quantiles; found {len(levels)} for "
            f"{len(columns)} columns. Pass them in the same order."
        )
    pairs = sorted(zip(levels, columns, strict=True))
    levels = [level for level, _ in pairs]
    if not all(0 < level < 1 for level in levels) or len(set(levels)) < len(levels):
        raise ValueError(
            "The levels of the quantiles must be different numbers between 0 and 1; found "
            f"{listed(levels)}. Pass the right ones with --levels."
        )
    return [name for _, name in pairs], levels


def _outcomes(table: Table, names: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Labels, probabilities and classes; or outcomes and forecasts."""
    if options.proba is not None:
        remedy = "Remove the rows without a label."
        labels = list(map(canonical, table.texts(options.label, "hold a label", remedy)))
        if len(names) == 1:
            classes = two_classes(labels, options.pos_label)
        else:
            classes = classes_of_columns(labels, names)
        proba = probabilities(table, names)
        return {"y_true": np.array(labels, object), "y_proba": proba, "labels": classes}
    forecast: Forecast
    if options.mean is not None:
        forecast = GaussianForecast(*table.matrix(names).T)
    elif options.quantiles is not None:
        forecast = QuantileForecast(quantiles(table, names), options.levels)
    else:
        forecast = EnsembleForecast(table.matrix(names))
    return {"y_true": table.columns[options.label], "y_proba": forecast}


def _escaped(text: str) -> str:
    r"""One line of text with control characters such as escape written out: "\x1b"."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _escaped_json(text: str) -> str:
    r"""Lines of JSON with control characters written as JSON does: "\u001b"."""
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def _discard_output() -> None:
    """Send what is still to be printed nowhere, so that Python does not fail at its exit."""
    with contextlib.suppress(OSError, ValueError):  # a standard output that is no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextlib.contextmanager
def _progress() -> Iterator[None]:
    """Show on one line of a terminal what is being done, and nothing where errors are piped."""
    if not sys.stderr.isatty():
        yield
        return
    erase = "\r\x1b[K"
    before = LISTENER.set(
        lambda title: print(f"{erase}{_escaped(title)} ...", end="", file=sys.stderr, flush=True)
    )
    try:
        yield
    finally:
        LISTENER.reset(before)
        print(erase, end="", file=sys.stderr, flush=True)
