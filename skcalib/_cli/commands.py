"""The commands, their arguments, and how they end."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from ..report import calibration_report
from . import demo
from .forecast_tables import read_members, read_moments, read_quantiles
from .tables import read_predictions
from .terminal import CLOSED_PIPE, discard_output, escaped


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m skcalib",
        description="Is a model calibrated, how far from it is it, and how to fix it.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo_parser = commands.add_parser("demo", help="recalibrate classifiers on scikit-learn's data")
    demo_parser.add_argument(
        "--output", default="skcalib_demo.png", metavar="PNG", help="the figure"
    )
    demo_parser.set_defaults(command=_demo)

    report = commands.add_parser(
        "report",
        help="report on a CSV file of outcomes and probabilities or forecasts",
        usage="python -m skcalib report FILE --label COLUMN (--proba COLUMN [COLUMN ...] | --mean "
        "COLUMN --std COLUMN | --quantiles COLUMN [COLUMN ...] | --members COLUMN [COLUMN ...]) "
        "[options]",
    )
    report.add_argument("file", metavar="FILE", help="comma-separated values with a header")
    report.add_argument(
        "--label", required=True, metavar="COLUMN", help="column of true labels, or of outcomes"
    )
    predictions = report.add_mutually_exclusive_group(required=True)
    predictions.add_argument(
        "--proba",
        nargs="+",
        metavar="COLUMN",
        help="one column of probabilities of the positive class, or one for each class, named "
        "like the class, possibly after a common prefix (proba_cat proba_dog)",
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
        "--positive",
        metavar="LABEL",
        help="the class of a single column of --proba (default: the larger)",
    )
    report.add_argument("--seed", type=int, default=0, help="seed of the test (default: 0)")
    report.set_defaults(command=_report)
    return parser


# Options that are of no use without another one.
_COMPANIONS = {"mean": "std", "std": "mean", "levels": "quantiles", "positive": "proba"}


def _report(options: argparse.Namespace) -> None:
    for option, needed in _COMPANIONS.items():
        if getattr(options, option) is not None and getattr(options, needed) is None:
            raise ValueError(
                f"--{option} must come with --{needed}; found it alone. Add --{needed}, or leave "
                f"--{option} out."
            )
    text = calibration_report(**_read(options), random_state=options.seed)
    print("\n".join(map(escaped, str(text).split("\n"))))


def _read(options: argparse.Namespace) -> dict[str, Any]:
    """What the report is about, as its arguments."""
    path, label = options.file, options.label
    if options.proba is not None:
        y_true, y_proba, classes = read_predictions(path, label, options.proba, options.positive)
        return {"y_true": y_true, "y_proba": y_proba, "labels": classes}
    if options.quantiles is not None:
        outcome, forecast = read_quantiles(path, label, options.quantiles, options.levels)
    elif options.members is not None:
        outcome, forecast = read_members(path, label, options.members)
    else:
        outcome, forecast = read_moments(path, label, options.mean, options.std)
    return {"y_true": outcome, "y_proba": forecast}


def _demo(options: argparse.Namespace) -> None:
    for text in demo.run(options.output):
        print(text, flush=True)
