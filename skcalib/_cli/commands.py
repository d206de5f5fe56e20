"""The commands, their arguments, and how they end."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import __version__
from ..report import CalibrationReport, calibration_report
from . import demo
from .forecast_tables import read_members, read_moments, read_quantiles
from .further import Table
from .tables import read_predictions
from .terminal import CLOSED_PIPE, discard_output, escaped, escaped_json, progress


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()  # or Python would report a closed pipe with a traceback
    except BrokenPipeError:
        discard_output()
        return CLOSED_PIPE


def _run(arguments: Sequence[str] | None) -> int:
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ImportError) as error:
        print(f"skcalib: error: {escaped(str(error))}", file=sys.stderr)
        return 2
    return 0


def _program() -> str:
    """How the program was called."""
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
    demo_parser.set_defaults(command=_demo)

    report = commands.add_parser(
        "report",
        help="report on a table of outcomes and probabilities or forecasts",
        usage=f"{program} report FILE --label COLUMN (--proba COLUMN [COLUMN ...] | --mean "
        "COLUMN --std COLUMN | --quantiles COLUMN [COLUMN ...] | --members COLUMN [COLUMN ...]) "
        "[options]",
    )
    report.add_argument(
        "file",
        metavar="FILE",
        help="separated values with a header (CSV), Parquet or Arrow; - is the standard input",
    )
    report.add_argument(
        "--label", required=True, metavar="COLUMN", help="column of true labels, or of outcomes"
    )
    predictions = report.add_mutually_exclusive_group(required=True)
    predictions.add_argument(
        "--proba",
        nargs="+",
        metavar="COLUMN",
        help="one column of probabilities of the positive class, or one for each class, named "
        "like the class, possibly after a common prefix (proba_cat proba_dog, or p0 p1)",
    )
    predictions.add_argument(
        "--mean", metavar="COLUMN", help="means of normal forecasts, with --std"
    )
    predictions.add_argument(
        "--quantiles",
        nargs="+",
        metavar="COLUMN",
        help="quantiles, in columns whose names end in their levels (q0.05 q0.5 q0.95, or p05), "
        "with --levels if they do not",
    )
    predictions.add_argument(
        "--members", nargs="+", metavar="COLUMN", help="members of ensembles, one column for each"
    )
    report.add_argument(
        "--std", metavar="COLUMN", help="standard deviations of normal forecasts, with --mean"
    )
    report.add_argument(
        "--levels", nargs="+", type=float, metavar="LEVEL", help="levels of --quantiles"
    )
    report.add_argument(
        "--pos-label",
        metavar="LABEL",
        help="the class of a single column of --proba (default: the larger)",
    )
    report.add_argument("--weight", metavar="COLUMN", help="column of weights of the rows")
    report.add_argument(
        "--by",
        nargs="+",
        default=[],
        metavar="COLUMN",
        help="columns whose values are subgroups, which are reported apart; several make crossings",
    )
    report.add_argument(
        "--groups",
        metavar="COLUMN",
        help="column that names rows which are not independent, such as those of one patient",
    )
    report.add_argument(
        "--recalibrated",
        action="store_true",
        help="the predictions have been recalibrated: the report does not advise that",
    )
    report.add_argument(
        "--sep", metavar="CHARACTER", help="what separates the values (default: the likely one)"
    )
    report.add_argument(
        "--html", metavar="OUT", help="also write the report as a page to this file"
    )
    report.add_argument("--json", action="store_true", help="print JSON in place of the text")
    report.add_argument("--seed", type=int, default=0, help="seed of the test (default: 0)")
    report.set_defaults(command=_report)
    return parser


# Options that are of no use without another one.
_COMPANIONS = {"mean": "std", "std": "mean", "levels": "quantiles", "pos_label": "proba"}


def _report(options: argparse.Namespace) -> None:
    for option, needed in _COMPANIONS.items():
        if getattr(options, option) is not None and getattr(options, needed) is None:
            name = option.replace("_", "-")
            raise ValueError(
                f"--{name} must come with --{needed}; found it alone. Add --{needed}, or leave "
                f"--{name} out."
            )
    with progress():
        table = Table(
            options.file,
            separator=_separator(options.sep),
            weight=options.weight,
            by=options.by,
            groups=options.groups,
        )
        report = calibration_report(
            **_read(table, options),
            **table.arguments(),
            recalibrated=options.recalibrated,
            random_state=options.seed,
        )
        if options.html is not None:
            report.to_html(options.html)
    print(_shown(report, as_json=options.json))


def _shown(report: CalibrationReport, *, as_json: bool) -> str:
    if as_json:
        return escaped_json(report.to_json())
    return "\n".join(map(escaped, str(report).split("\n")))


def _separator(text: str | None) -> str | None:
    r"""One character; a tab may be written as \t."""
    separator = "\t" if text == "\\t" else text
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ValueError(
            f"--sep must be one character that separates values; found {text!r}. Pass ';' or "
            "'\\t', for instance."
        )
    return separator


def _read(table: Table, options: argparse.Namespace) -> dict[str, Any]:
    """What the report is about, as its arguments."""
    label = options.label
    if options.proba is not None:
        y_true, y_proba, classes = read_predictions(table, label, options.proba, options.pos_label)
        return {"y_true": y_true, "y_proba": y_proba, "labels": classes}
    if options.quantiles is not None:
        outcome, forecast = read_quantiles(table, label, options.quantiles, options.levels)
    elif options.members is not None:
        outcome, forecast = read_members(table, label, options.members)
    else:
        outcome, forecast = read_moments(table, label, options.mean, options.std)
    return {"y_true": outcome, "y_proba": forecast}


def _demo(options: argparse.Namespace) -> None:
    for text in demo.run(options.output):
        print(text, flush=True)
