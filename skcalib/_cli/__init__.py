"""The command line: ``python -m skcalib demo`` and ``python -m skcalib report FILE``."""

import argparse
import sys

from .._sklearn import check_matplotlib_support
from ..report._report import calibration_report
from ..report._text import format_report, format_row
from .demo import draw, run
from .tables import read_predictions

_CHANGES = ("smooth_calibration_error", "expected_calibration_error", "log_loss", "p_value")


def main(arguments=None):
    """Run the command line and return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except (ValueError, OSError, ImportError) as error:
        print(f"skcalib: error: {error}", file=sys.stderr)
        return 2


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m skcalib",
        description="Is a model calibrated, how far from it is it, and how to fix it.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="recalibrate classifiers on data of scikit-learn")
    demo.add_argument("--output", default="skcalib_demo.png", metavar="PNG", help="the figure")
    demo.set_defaults(command=_demo)

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


def _report(options):
    y_true, y_proba, classes = read_predictions(
        options.file, options.label, options.proba, options.positive
    )
    print(calibration_report(y_true, y_proba, labels=classes, random_state=options.seed))
    return 0


def _demo(options):
    check_matplotlib_support("python -m skcalib demo")
    results = []
    for title, outcome in run():
        results.append((title, outcome))
        print(f"{'=' * 72}\n{title}\n{'=' * 72}")
        for stage, (_, _, numbers) in outcome.items():
            print(f"\n--- {stage} recalibration ---\n{format_report(numbers)}")
        before, after = (numbers for _, _, numbers in outcome.values())
        print("\n--- what changed ---")
        print(f"{'':<48}{'before':>9}  {'after':>9}")
        for name in before:
            if name.startswith(_CHANGES):
                print(format_row(name, before[name], after[name]))
        print()
    draw(results, options.output)
    print(f"Reliability diagrams before and after: {options.output}")
    return 0
