"""The commands, their arguments, and how they end."""

import argparse
import sys
from collections.abc import Sequence

from ..report import calibration_report
from . import demo
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
        help="report on a CSV file of labels and probabilities",
        usage="python -m skcalib report FILE --label COLUMN --proba COLUMN [COLUMN ...] "
        "[--positive LABEL] [--seed SEED]",
    )
    report.add_argument("file", metavar="FILE", help="comma-separated values with a header")
    report.add_argument("--label", required=True, metavar="COLUMN", help="column of true labels")
    report.add_argument(
        "--proba",
        required=True,
        nargs="+",
        metavar="COLUMN",
        help="one column of probabilities of the positive class, or one for each class, named "
        "like the class, possibly after a common prefix (proba_cat proba_dog)",
    )
    report.add_argument(
        "--positive", metavar="LABEL", help="the class of a single column (default: the larger)"
    )
    report.add_argument("--seed", type=int, default=0, help="seed of the test (default: 0)")
    report.set_defaults(command=_report)
    return parser


def _report(options: argparse.Namespace) -> None:
    y_true, y_proba, classes = read_predictions(
        options.file, options.label, options.proba, options.positive
    )
    text = calibration_report(y_true, y_proba, labels=classes, random_state=options.seed)
    print("\n".join(map(escaped, str(text).split("\n"))))


def _demo(options: argparse.Namespace) -> None:
    for text in demo.run(options.output):
        print(text, flush=True)
