"""The command line: ``skcalib demo``, ``report`` and ``recalibrate``."""

import argparse
import contextlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from sklearn.base import clone

from .._inputs.by import printable
from .._versions import __version__
from ..recalibration import AutoRecalibrator
from ..recalibration._auto import SQLAutoRecalibrator
from ..recalibration._registry import RECALIBRATORS
from ..report import calibration_report
from ..report._html import check_target, write_atomically
from ..report._sections import PROGRESS_LISTENER
from . import demo
from .columns import fit_and_apply, load_columns
from .tables import MAX_ROWS, Table

# Exit status of a program that a closed pipe ended, as in ``| head -1``: 128 + SIGPIPE.
_CLOSED_PIPE = 141

# Options that are of no use without another one.
_COMPANIONS = {"mean": "std", "std": "mean", "levels": "quantiles", "pos_label": "proba"}

# Takes back the line of a terminal that shows what is being done.
_ERASE_LINE = "\r\x1b[K"

_NO_FIGURES = ", without figures, as matplotlib is missing (pip install matplotlib)"

RECALIBRATORS_BY_METHOD = {
    name.lower().replace(" ", "-"): entry.recalibrator for name, entry in RECALIBRATORS.items()
}
RECALIBRATORS_BY_METHOD["auto"] = AutoRecalibrator()

_FILE_OPTIONS = {
    "apply": "the table whose probabilities are recalibrated",
    "output": "that table with columns of recalibrated probabilities, as CSV",
    "map": "also write the map of 1001 probabilities to this file, as CSV (for two classes)",
    "sql": "also write the map as SQL expressions to this file, which give NULL where the sum of "
    "several probabilities misses 1 by more than 0.00001: divide rounded ones by their sum before; "
    "for more than two classes, the method auto then leaves out trees and pairwise scaling, whose "
    "SQL would be too long",
}

# Options that name one column, or several, and their help.
_COLUMN_OPTIONS = {
    "label": "column of true labels, or of outcomes",
    "mean": "means of normal forecasts, with --std",
    "std": "standard deviations of normal forecasts, with --mean",
    "weight": "column of weights of the rows",
    "groups": "column that names rows which are not independent, such as those of one patient",
}
_COLUMN_LIST_OPTIONS = {
    "proba": "one column of probabilities of the positive class, or one for each class, named like "
    "the class, possibly after a common prefix (proba_cat proba_dog, or p0 p1); for recalibration, "
    "one column does not tell how close to 1 it is where that is less than rounding",
    "quantiles": "quantiles, in columns whose names end in their levels (q0.05 q0.5 q0.95), with "
    "--levels if they do not",
    "members": "members of ensembles, one column for each",
    "by": "columns whose values are subgroups, which are reported apart; several make crossings",
}


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    try:
        try:
            options = _make_parser().parse_args(arguments)
            with _print_warnings_once():
                options.command(options)
        finally:
            sys.stdout.flush()  # or Python would report a closed pipe with a traceback
    except BrokenPipeError:
        # a standard output that is no file has no number
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return _CLOSED_PIPE
    except (ValueError, OSError, ImportError, MemoryError) as error:
        _print_error(f"error: {str(error) or 'out of memory'}")
        return 2
    return 0


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        text = f"{self.prog}: error: {message}. {self.prog} --help lists the options."
        self.exit(2, printable(text) + "\n")


def _make_parser() -> argparse.ArgumentParser:
    called = Path(sys.argv[0]).name
    program = "python -m skcalib" if called == "__main__.py" else "skcalib"
    parser = _Parser(
        prog=program, description="Is a model calibrated, how far from it is it, and how to fix it."
    )
    parser.add_argument("--version", action="version", version=f"skcalib {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo_parser = commands.add_parser("demo", help="recalibrate classifiers on scikit-learn's data")
    text = "the figure"
    demo_parser.add_argument("--output", default="skcalib_demo.png", metavar="PNG", help=text)
    demo_parser.set_defaults(command=_run_demo)

    table = _Parser(add_help=False)
    text = (
        "separated values with a header (CSV), JSON Lines, Parquet, Arrow; - is the standard input"
    )
    table.add_argument("file", metavar="FILE", help=text)
    text = "the class of a single column of --proba (default: the larger)"
    table.add_argument("--pos-label", metavar="LABEL", help=text)
    text = "what separates the values (default: the likely one)"
    table.add_argument("--sep", metavar="CHARACTER", help=text)
    text = "the decimal point or comma (default: .)"
    table.add_argument("--decimal", choices=".,", default=".", help=text)
    text = "the encoding of a text, such as latin-1 (default: UTF-8)"
    table.add_argument("--encoding", default="utf-8-sig", metavar="NAME", help=text)
    text = "leave out rows where a value is missing, but in --by, and say how many"
    table.add_argument("--drop-missing", action="store_true", help=text)
    text = f"refuse a table of more rows before it is decoded (default: {MAX_ROWS})"
    table.add_argument("--max-rows", type=int, default=MAX_ROWS, metavar="ROWS", help=text)
    text = "replace a file that exists; a page of a report is replaced without"
    table.add_argument("--force", action="store_true", help=text)

    report = commands.add_parser(
        "report",
        help="report on a table of outcomes and probabilities or forecasts",
        parents=[table],
        usage=f"{program} report FILE --label COLUMN (--proba COLUMN [COLUMN ...] | --mean "
        "COLUMN --std COLUMN | --quantiles COLUMN [COLUMN ...] | --members COLUMN [COLUMN ...]) "
        "[options]",
    )
    text = "learn a map of probabilities from a table, and apply it to another"
    recalibrate = commands.add_parser("recalibrate", help=text, parents=[table])
    data = report.add_mutually_exclusive_group(required=True)
    for name, text in _COLUMN_OPTIONS.items():
        group = data if name == "mean" else report
        group.add_argument(f"--{name}", metavar="COLUMN", help=text, required=name == "label")
    for name, text in _COLUMN_LIST_OPTIONS.items():
        group = report if name == "by" else data
        group.add_argument(f"--{name}", nargs="+", metavar="COLUMN", help=text)
    text = "levels of --quantiles"
    report.add_argument("--levels", nargs="+", type=float, metavar="LEVEL", help=text)
    text = "the predictions have been recalibrated: the report does not advise that"
    report.add_argument("--recalibrated", action="store_true", help=text)
    report.add_argument("--name", metavar="MODEL", help="name of the model, for the head")
    report.add_argument("--date", metavar="DATE", help="date that the report bears")
    text = "also write the report as a page to this file"
    report.add_argument("--html", metavar="OUT", help=text)
    report.add_argument("--json", action="store_true", help="print JSON in place of the text")
    report.add_argument("--seed", type=int, default=0, help="seed of the test (default: 0)")
    report.set_defaults(command=_run_report, keeps_rows=False)

    recalibrate.add_argument(
        "--label", metavar="COLUMN", help=_COLUMN_OPTIONS["label"], required=True
    )
    recalibrate.add_argument("--weight", metavar="COLUMN", help=_COLUMN_OPTIONS["weight"])
    text = _COLUMN_LIST_OPTIONS["proba"]
    recalibrate.add_argument("--proba", nargs="+", metavar="COLUMN", help=text, required=True)
    text = "how the map is learned (default: auto, an average)"
    recalibrate.add_argument("--method", choices=RECALIBRATORS_BY_METHOD, default="auto", help=text)
    for name, text in _FILE_OPTIONS.items():
        is_needed = name in ("apply", "output")
        recalibrate.add_argument(f"--{name}", metavar="FILE", help=text, required=is_needed)
    recalibrate.set_defaults(command=_run_recalibrate, by=None, groups=None, keeps_rows=True)
    return parser


def _run_demo(options: argparse.Namespace) -> None:
    for text in demo.run_demo(options.output):
        _print_output(text)


def _run_report(options: argparse.Namespace) -> None:
    for option, needed in _COMPANIONS.items():
        if getattr(options, option) is not None and getattr(options, needed) is None:
            name = option.replace("_", "-")
            raise ValueError(
                f"--{name} must come with --{needed}; found it alone. Add --{needed}, or leave "
                f"--{name} out."
            )
    if options.html is not None:
        check_target(options.html, force=options.force)
    with _show_progress():
        table, data_args = load_columns(options)
        for name in ("recalibrated", "name", "date"):
            data_args[name] = getattr(options, name)
        report: Any = calibration_report(**data_args, random_state=options.seed)
    _print_omissions(options.file, table, data_args)
    if table.n_dropped:
        report.audit["rows dropped"] = f"{table.n_dropped} (with missing values)"
    try:
        if options.html is not None:
            with _show_progress():
                report.to_html(options.html)
            _print_error(f"page written to {options.html}{'' if report.figures else _NO_FIGURES}")
    finally:  # a page that could not be written takes nothing from the text
        if options.json:
            _print_output(report.to_json(), json.dumps)
        else:
            _print_output(str(report))


def _run_recalibrate(options: argparse.Namespace) -> None:
    targets = {name: getattr(options, name) for name in ("output", "map", "sql")}
    _check_targets_differ({f"--{name}": path for name, path in targets.items() if path is not None})
    for path in filter(None, targets.values()):
        check_target(path, force=options.force, is_page=False)
    with _show_progress():
        table, data_args = load_columns(options)
        labels = data_args["labels"]
        if options.map is not None and len(labels) > 2:
            raise ValueError("--map must be of two classes; found more. Pass --sql in its place.")
        recalibrator = clone(RECALIBRATORS_BY_METHOD[options.method]).set_params(labels=labels)
        if options.sql is not None and options.method == "auto" and len(labels) > 2:
            recalibrator = SQLAutoRecalibrator(labels=labels)
        new_table, files = fit_and_apply(recalibrator, data_args, options)
    _print_omissions(options.file, table, data_args)
    if new_table.n_dropped:
        _print_error(f"{options.apply}: {new_table.n_dropped} rows with missing values got none")
    _print_output(f"{options.method}: {recalibrator!r}")
    for path, text in files.items():
        write_atomically(path, text)
        _print_error(f"written to {path}")


def _check_targets_differ(targets: dict[str, str]) -> None:
    """Refuse one file for two outputs: the second would replace the first."""
    option_of: dict[str, str] = {}
    for option, path in targets.items():
        file = os.path.realpath(path)
        if file in option_of and not (os.path.exists(file) and not os.path.isfile(file)):
            raise ValueError(
                f"{option} must name another file than {option_of[file]}; found {path} for both. "
                "Name a file for each."
            )
        option_of[file] = option


def _print_omissions(source: str, table: Table, data_args: dict[str, Any]) -> None:
    n_weightless = np.count_nonzero(data_args.get("sample_weight", 1) == 0)
    for number, kind in ((table.n_dropped, "with missing values"), (n_weightless, "of weight 0")):
        if number:
            _print_error(f"{source}: left out {number} rows {kind}")


def _print_error(text: str) -> None:
    """Print a line on the standard error, apart from the report; it is lost if that is full."""
    with contextlib.suppress(OSError):
        print(f"skcalib: {printable(text)}", file=sys.stderr)


def _print_output(text: str, escape: Callable[[str], str] = ascii) -> None:
    r"""Print lines on the standard output; what its encoding lacks is escaped, as "\xe9"."""
    # a text in memory has no encoding
    print(printable(text, "\n", escape, sys.stdout.encoding or "utf-8"), flush=True)


@contextlib.contextmanager
def _print_warnings_once() -> Iterator[None]:
    """Print each warning as one line, and once."""
    texts: set[str] = set()

    def print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in texts:
            texts.add(str(message))
            _print_error(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = print_warning
        yield


@contextlib.contextmanager
def _show_progress() -> Iterator[None]:
    """Show on one line of a terminal what is being done, and nothing where errors are piped."""
    if not sys.stderr.isatty():
        yield
        return

    def show_title(title: str) -> None:
        print(f"{_ERASE_LINE}{printable(title)} ...", end="", file=sys.stderr, flush=True)

    before = PROGRESS_LISTENER.set(show_title)
    try:
        yield
    finally:
        PROGRESS_LISTENER.reset(before)
        print(_ERASE_LINE, end="", file=sys.stderr, flush=True)
