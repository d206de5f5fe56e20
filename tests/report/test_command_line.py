"""The command line prints the report and the demo, and explains every mistake in a table."""

import csv
import importlib
import io
import json
import os
import subprocess
import sys
import tomllib
import tracemalloc
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pages import read_page
from problems import random_problem
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

import skcalib
from skcalib.__main__ import main as program
from skcalib._cli import tables
from skcalib._cli.columns import load_columns
from skcalib._cli.command_line import RECALIBRATORS_BY_METHOD, _make_parser, run_command
from skcalib._cli.demo import Outcome, _format_summary
from skcalib._cli.tables import to_canonical
from skcalib._inputs.by import printable
from skcalib._inputs.probabilities import check_probabilities
from skcalib.recalibration import AutoRecalibrator, TemperatureRecalibrator, export_sql
from skcalib.recalibration._registry import RECALIBRATORS
from skcalib.report import calibration_report
from skcalib.report._sections import DRAWING


@pytest.fixture
def table(tmp_path):
    """Writes a table and returns its path."""

    def write(frame):
        path = tmp_path / "table.csv"
        if isinstance(frame, str):
            path.write_text(frame, encoding="utf-8")
        else:
            frame.to_csv(path, index=False)
        return str(path)

    return write


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setitem(DRAWING, "n_resamples", 2)
    monkeypatch.setattr("skcalib.report._sections.Sections.gain", lambda _: None)


def run(capsys, *arguments):
    status = run_command(list(arguments))
    output = capsys.readouterr()
    return status, output.out, output.err


def read_predictions(path, label, columns, *options):
    """Labels, probabilities and classes, as the report gets them."""
    arguments = ["report", str(path), "--label", label, "--proba", *columns, *options]
    _, found = load_columns(_make_parser().parse_args(arguments))
    return found["y_true"], found["y_pred"], found["labels"]


def test_report_of_one_column(table, capsys):
    label, proba = random_problem(np.random.default_rng(0), 60)
    path = table(pd.DataFrame({"x": 0, "outcome": label, "p": proba}))
    status, out, _ = run(capsys, "report", path, "--label", "outcome", "--proba", "p")
    assert status == 0
    assert out == f"{calibration_report(label, proba, random_state=0)}\n"


def test_recalibrated_predictions(table, capsys):
    proba = np.linspace(0.05, 0.95, 60)
    path = table(pd.DataFrame({"y": (proba > 0.5).astype(int), "p": proba}))
    options = ["report", path, "--label", "y", "--proba", "p"]
    assert "\nMiscalibrated (p ≤ " in run(capsys, *options)[1]
    assert "\nStill miscalibrated (p ≤ " in run(capsys, *options, "--recalibrated")[1]


def test_report_of_the_other_class(table, capsys):
    label, proba = random_problem(np.random.default_rng(0), 60)
    names = np.array(["yes", "no"])
    path = table(pd.DataFrame({"y": names[label], "p": proba}))
    arguments = ["report", path, "--label", "y", "--proba", "p", "--pos-label", "no", "--seed", "3"]
    head = {"name": "logistic", "date": "2026-01-31"}
    status, out, _ = run(capsys, *arguments, "--name", "logistic", "--date", "2026-01-31")
    assert status == 0
    expected = calibration_report(names[label], proba, labels=names, random_state=3, **head)
    assert out == f"{expected}\n"


@pytest.mark.parametrize("prefix", ["", "proba_", "P of "])
def test_columns_are_matched_with_labels_by_name(prefix, table):
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    names = ["setosa", "virginica", "versicolor"]
    frame = pd.DataFrame(proba, columns=[prefix + name for name in names])
    frame["species"] = np.array(names)[label]
    columns = [prefix + name for name in (names[1], names[0], names[2])]
    found, probabilities, classes = read_predictions(table(frame), "species", columns)
    assert found.tolist() == frame["species"].tolist()
    np.testing.assert_array_equal(probabilities, frame[columns])
    assert classes == [names[1], names[0], names[2]]


def test_report_of_several_columns(table, capsys):
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    frame = pd.DataFrame(proba, columns=["c", "a", "b"]).assign(y=np.array(list("cab"))[label])
    options = ["--label", "y", "--proba", "c", "a", "b", "--seed", "3"]
    status, out, _ = run(capsys, "report", table(frame), *options)
    assert status == 0
    expected = calibration_report(
        frame["y"], frame[["c", "a", "b"]], labels=["c", "a", "b"], random_state=3
    )
    assert out == f"{expected}\n"


def test_numbers_as_labels_and_a_class_that_does_not_occur(table, capsys):
    path = table("y,p_1,p_2,p_10\n1,0.5,0.25,0.25\n10,0.25,0.25,0.5\n1,1,0,0\n")
    status, out, _ = run(capsys, "report", path, "--label", "y", "--proba", "p_1", "p_2", "p_10")
    assert status == 0
    assert "3 predictions, 3 classes" in out


def test_one_label_only(table, capsys):
    path = table("y,p\n1,0.5\n1,0.9\n")
    assert run(capsys, "report", path, "--label", "y", "--proba", "p")[0] == 0
    path = table("y,p\nb,0.5\nb,0.9\n")
    arguments = ["report", path, "--label", "y", "--proba", "p", "--pos-label", "b"]
    assert run(capsys, *arguments)[0] == 0


def test_prefixes_end_where_the_labels_begin(table, capsys):
    path = table("y,p_new_york,p_new_jersey\nnew_york,0.5,0.5\nnew_jersey,0.25,0.75\n")
    columns = ["p_new_york", "p_new_jersey"]
    assert run(capsys, "report", path, "--label", "y", "--proba", *columns)[0] == 0


def test_whole_numbers_are_labels_however_they_are_written(table, capsys):
    path = table("y,p\n1,0.5\n0.0,0.4\n1.0,0.9\n0,0.1\n")
    status, out, _ = run(capsys, "report", path, "--label", "y", "--proba", "p")
    assert status == 0
    assert "4 predictions, 2 classes" in out


def test_labels_are_compared_as_they_are_written(table, capsys):
    def report(text, *options):
        return run(capsys, "report", table(text), "--label", "y", *options)

    status, out, _ = report("y,p\n1.0,0.9\n1.0,0.8\n", "--proba", "p", "--pos-label", "1.0")
    assert (status, "accuracy at threshold 0.5" + 26 * " " + "1.0000" in out) == (0, True)
    assert report("y,p\n1.0,0.9\n0.0,0.8\n", "--proba", "p", "--pos-label", "1.0")[0] == 0
    text = "y,0.0,1.0,2.0\n0.0,0.5,0.25,0.25\n2.0,0,0,1\n"
    assert report(text, "--proba", "0.0", "1.0", "2.0")[0] == 0
    text = "y,proba_007,proba_008\n007,0.5,0.5\n008,0.25,0.75\n"
    assert report(text, "--proba", "proba_007", "proba_008")[0] == 0
    status, _, err = report("y,p\na,0.9\nA,0.8\nb,0.5\n", "--proba", "p")
    assert (status, "found 3: ['A', 'a', 'b']" in err) == (2, True)


def test_demo_without_matplotlib(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, out, err = run(capsys, "demo")
    assert status == 2
    assert out == ""
    assert "pip install matplotlib" in err


MISTAKES = {
    "unknown column": ("y,p\n1,0.5\n", ["q"], "has no column 'q'; its columns are ['y', 'p']"),
    "JSON Lines": (
        '{"y": 1, "p": 0.5}\n{"y": 0',
        ["p"],
        "is not a sound Parquet, Arrow or JSON Lines",
    ),
    "JSON Lines without objects": ('{"y":1,"p":0.5}\n[1]', ["p"], "Arrow or JSON Lines file"),
    "missing in JSON Lines": ('{"y":1,"p":0.5}\n{"y":0}', ["p"], "found nothing in row 2"),
    "null in JSON Lines": ('{"y":1,"p":0.5}\n{"y":0,"p":null}', ["p"], "found nothing in row 2"),
    "nested JSON Lines": ('{"y":1,"p":[0.5]}\n', ["p"], "'p' must hold numbers or texts"),
    "column of JSON Lines": ('{"y":1,"p":0.5}\n', ["q"], "has no column 'q'; its columns are ['y'"),
    "another separator": ("y:p\n1:0.5\n", ["p"], "are taken to be separated by ','; --sep names"),
    "missing probability": ("y,p\n1,0.5\n0,\n", ["p"], "found nothing in line 3"),
    "nan": ("y,p\n1,0.5\n0,nan\n", ["p"], "'p' must hold a probability in [0, 1]"),
    "lines": ('y,p,note\n1,0.5,"a\nb"\n\n\n0,x,c\n', ["p"], "found 'x' in line 6"),
    "label NA": ("y,p\n1,0.5\nNA,0.3\n", ["p"], "found 'NA' in line 3"),
    "two columns of a name": ("y,p,p\n1,0.5,0.5\n", ["p"], "one column of each name; found 2"),
    "text": ("y,p\n1,0.5\n0,high\n", ["p"], "found 'high' in line 3"),
    "missing label": ("y,p\n1,0.5\n,0.3\n", ["p"], "found nothing in line 3"),
    "out of range": ("y,p\n1,0.5\n0,1.5\n", ["p"], "in [0, 1] in every row; found '1.5' in line 3"),
    "rows": ("y,p_0,p_1\n1,0.3,0.7\n0,0.5,0.2\n", ["p_0", "p_1"], "sum of 0.7 in line 3"),
    "label without column": (
        "y,p_a,p_b\na,0.5,0.5\nc,0.3,0.7\n",
        ["p_a", "p_b"],
        "found ['c'], and columns for ['a', 'b']",
    ),
    "row without label": (
        "y,p_0,p_1\n1,0.5,0.5\n-100,0.3,0.7\n",
        ["p_0", "p_1"],
        "leave out rows without a label.",
    ),
    "three labels": (
        "y,p\na,0.5\nb,0.3\nc,0.2\n",
        ["p"],
        "for two labels; found 3: ['a', 'b', 'c']",
    ),
    "one label": ("y,p\na,0.5\n", ["p"], "--pos-label"),
    "other class": (
        "y,p_late\nlate,0.5\nok,0.3\n",
        ["p_late", "--pos-label", "ok"],
        "probability of 'ok'",
    ),
    "no event": ("y,p\nlate,0.5\nok,0.3\n", ["p"], "--pos-label must name the event"),
    "short row": ("y,p\n1,0.5\n0\n", ["p"], "found 1 in line 3"),
    "long row": ("y,p\n1,0.5\n\n0,0.5,,\n", ["p"], "found 4 in line 4"),
    "much longer row": ('y,p\n1,0.5\n"0\n",0.5,,",","",7\n', ["p"], "found 6 in line 4"),
    "text after a quote": ('y,p\n"1"0,0.5\n', ["p"], "is not a text file of separated values"),
    "no rows": ("y,p\n", ["p"], "at least one row below the header; found none."),
    "empty": ("", ["p"], "is empty; its first line must name the columns"),
    "twice": ("y,p\n1,0.5\n", ["p", "p"], "named once"),
    "label as probability": ("y,p\n1,0.5\n", ["y"], "named once"),
}


@pytest.mark.parametrize(("text", "columns", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_have_a_message_and_status_2(text, columns, message, table, capsys):
    status, out, err = run(capsys, "report", table(text), "--label", "y", "--proba", *columns)
    assert status == 2
    assert out == ""
    assert message in err
    assert "Traceback" not in err
    assert err.startswith("skcalib: error: ")


def test_mistakes_of_positive(table, capsys):
    path = table("y,p\na,0.5\nb,0.3\n")
    arguments = ["report", path, "--label", "y", "--proba", "p", "--pos-label", "c"]
    status, _, err = run(capsys, *arguments)
    assert status == 2
    assert "--pos-label 'c' must be one of two labels; found ['a', 'b']" in err
    path = table("y,p_a,p_b\na,0.5,0.5\n")
    arguments = ["report", path, "--label", "y", "--proba", "p_a", "p_b", "--pos-label", "a"]
    assert run(capsys, *arguments)[0] == 2


def test_unreadable_files(tmp_path, capsys):
    status, _, err = run(capsys, "report", "nowhere.csv", "--label", "y", "--proba", "p")
    assert status == 2
    assert "nowhere.csv cannot be read: No such file" in err
    path = tmp_path / "binary.csv"
    path.write_bytes(bytes(range(256)))
    assert run(capsys, "report", str(path), "--label", "y", "--proba", "p")[0] == 2


@pytest.mark.integration
def test_command_line_without_arguments_says_what_is_missing():
    done = subprocess.run([sys.executable, "-m", "skcalib"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "required: COMMAND. python -m skcalib --help lists the options." in done.stderr


def test_the_program_goes_by_the_name_it_was_called_by(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["/usr/bin/skcalib"])
    with pytest.raises(SystemExit) as ended:
        run(capsys, "report")
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("skcalib report: error: the following arguments are required: FILE")
    assert err.endswith("skcalib report --help lists the options.\n")
    assert err.count("\n") == 1
    with pytest.raises(SystemExit) as ended:
        run(capsys, "--version")
    assert (ended.value.code, capsys.readouterr().out) == (0, f"skcalib {skcalib.__version__}\n")


def test_the_console_script_is_the_command_line():
    project = tomllib.loads(read_page("pyproject.toml"))
    module, name = project["project"]["scripts"]["skcalib"].split(":")
    assert getattr(importlib.import_module(module), name) is program


@pytest.mark.slow  # the leg `demo` of .ci/run runs it, too
def test_demo(tmp_path, capsys, monkeypatch):
    # three of the ten digits and small forests take a fraction of the time
    digits = load_digits(n_class=3)
    monkeypatch.setattr("skcalib._cli.demo.load_digits", lambda: digits)
    small = partial(RandomForestClassifier, n_estimators=5)
    monkeypatch.setattr("skcalib._cli.demo.RandomForestClassifier", small)
    monkeypatch.setattr("skcalib.report._sections.LEVEL", 1.1)  # everything is called miscalibrated
    monkeypatch.setattr("skcalib.report._sections.SMALL_ERROR", 0.0)  # and much
    path = tmp_path / "demo.png"
    status, out, _ = run(capsys, "demo", "--output", str(path))
    assert status == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert str(path) in out
    for problem in ("breast cancer", "digits"):
        for classifier in ("GaussianNB", "RandomForestClassifier"):
            assert f"{classifier} on {problem}" in out
    assert out.count(", before and after: ") == 4
    assert out.count("% is left, which") == 4
    for after in out.split("\nafter: ")[1:]:
        advice = " ".join(after.split("\n\n")[0].split())
        assert "Recalibrate on" not in advice
        assert advice.startswith("Still miscalibrated")


def test_the_demo_says_what_is_left_and_whether_it_may_be_chance():
    def outcome(p_value, **errors):
        key = "smooth_calibration_error" + ("_confidence" if p_value < 0.05 else "")
        reports = {
            name: SimpleNamespace(numbers={key: error, "p_value": p_value})
            for name, error in errors.items()
        }
        return Outcome(np.array([0, 1]), {}, SimpleNamespace(reports=reports))

    text = _format_summary(
        {"good": outcome(0.3, before=0.2, after=0.02), "bad": outcome(0.03, before=0.4, after=0.1)}
    )
    lines = [" ".join(line.split()) for line in text.splitlines()]
    good, bad = lines.index("good 0.2000 0.0200"), lines.index("bad 0.4000 0.1000")
    assert lines[good + 1] == "10% is left, which may be chance (p = 0.3)"
    assert lines[bad + 1] == "25% is left, which chance seldom leaves (p = 0.03)"
    assert "1 of 2 models pass the test of calibration now." in lines


@pytest.mark.parametrize("blank", ["\n", "\r\n", "  \n", "\n\n\n"])
def test_blank_lines_are_skipped_wherever_they_are(blank, table, capsys):
    arguments = ["--label", "y", "--proba", "p"]
    expected = run(capsys, "report", table("y,p\n1,0.5\n0,0.4\n"), *arguments)
    assert expected[0] == 0
    text = f"{blank}y,p\n{blank}1,0.5\n{blank}0,0.4\n{blank}"
    assert run(capsys, "report", table(text), *arguments) == expected


def test_whole_numbers_are_the_same_labels_with_zeros_in_front(table, capsys):
    def report(text, *columns):
        status, out, _ = run(capsys, "report", table(text), "--label", "y", "--proba", *columns)
        assert status == 0
        return out

    expected = report("y,p\n1,0.9\n1,0.8\n0,0.5\n", "p")
    assert report("y,p\n01,0.9\n1,0.8\n00,0.5\n", "p") == expected
    assert report("y,p\n+1,0.9\n001.0,0.8\n-0,0.5\n", "p") == expected
    names = ("p_07", "p_8")  # a program that read the labels as numbers wrote one of them
    text = "y,p_07,p_8\n7,0.5,0.5\n08,0.25,0.75\n7,0.5,0.5\n"
    assert report(text, *names) == report(text.replace("07", "7").replace("08", "8"), "p_7", "p_8")
    assert "2 classes" in report("y,p_-1,p_1\n-01,0.5,0.5\n1,0.25,0.75\n", "p_-1", "p_1")


@pytest.mark.parametrize("text", ["0.1_5", "0_0.5", "half", "0x1", "1e-1_0", "-0.1", "inf"])
def test_what_is_no_probability(text, table, capsys):
    path = table(f"y,p\n1,0.5\n0,{text}\n")
    status, _, err = run(capsys, "report", path, "--label", "y", "--proba", "p")
    assert status == 2
    assert f"'p' must hold a probability in [0, 1] in every row; found {text!r} in line 3" in err


def test_probabilities_are_numbers_as_usual(table, capsys):
    text = "y,p\n1, 5e-1\n0,+.25 \n0,0\n1,1.\n"
    status, out, _ = run(capsys, "report", table(text), "--label", "y", "--proba", "p")
    assert status == 0
    assert out == f"{calibration_report([1, 0, 0, 1], [0.5, 0.25, 0, 1], random_state=0)}\n"


def test_control_characters_do_not_reach_the_terminal(table, capsys):
    red = "\x1b[31mred"
    for text, columns in (
        (f"y,p\n{red},0.5\nb,0.5\nc\x07,0.5\n", ["p"]),
        (f"y,p\n{red},0.5\nb,0.5\n", ["p", "--pos-label", f"{red}!"]),
        (f"y,p_a,p_b\n{red},0.5,0.5\n", ["p_a", "p_b"]),
        (f"y,{red},p\n1,0.5\n", ["p"]),
        (f"y,p,{red}\n1,{red},0\n", ["p"]),
        ("y,p\n1,0.5\n", [red]),
    ):
        status, out, err = run(capsys, "report", table(text), "--label", "y", "--proba", *columns)
        assert status == 2
        assert all(c.isprintable() for c in (out + err).rstrip("\n"))
    status, _, err = run(capsys, "report", f"/{red}.csv", "--label", "y", "--proba", "p")
    assert (status, "\x1b" in err, "/\\x1b[31mred.csv cannot be read" in err) == (2, False, True)


def test_a_closed_standard_output(table, monkeypatch, capsys):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    path = table("y,p\n1,0.5\n0,0.4\n")
    monkeypatch.setattr("sys.stdout", Closed())
    assert run_command(["report", path, "--label", "y", "--proba", "p"]) == 141  # as of SIGPIPE
    assert capsys.readouterr().err == ""


@pytest.mark.integration
def test_a_closed_pipe_ends_the_program_quietly(table):
    path = table("y,p\n1,0.5\n0,0.4\n")
    command = [sys.executable, "-m", "skcalib", "report", path, "--label", "y", "--proba", "p"]
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 141  # as a shell reports of a program that SIGPIPE ended


def ended(monkeypatch, error):
    """The exit status of a report that ends in an error."""

    def report(**_):
        raise error

    monkeypatch.setattr("skcalib._cli.command_line.calibration_report", report)
    return program()


def test_ends_in_one_line(table, monkeypatch, capsys):
    path = table("y,p\n1,0.5\n0,0.4\n")
    monkeypatch.setattr("sys.argv", ["skcalib", "report", path, "--label", "y", "--proba", "p"])
    assert ended(monkeypatch, KeyboardInterrupt()) == 130  # as of SIGINT
    assert capsys.readouterr() == ("", "skcalib: interrupted\n")
    assert ended(monkeypatch, MemoryError()) == 2
    assert capsys.readouterr() == ("", "skcalib: error: out of memory\n")
    monkeypatch.setattr("sys.stdout", None)
    assert ended(monkeypatch, AssertionError()) == 2
    assert "standard output is closed" in capsys.readouterr().err


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_an_output_of_few_characters(option, table, capsys, monkeypatch):
    path = table("y,p\n" + "é,0.9\nä,0.9\n" * 30)
    arguments = ["report", path, "--label", "y", "--proba", "p", "--pos-label", "é", *option]
    _, expected, _ = run(capsys, *arguments)
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert run_command(arguments) == 0
    text = written.getvalue().decode("ascii")
    if option:
        assert json.loads(text) == json.loads(expected)
    else:
        assert "(p \\u2264 0.0" in text
        assert text.replace("\\u2264", "≤").replace("\\xe9", "é") == expected


@pytest.mark.integration
@pytest.mark.parametrize(
    ("streams", "status"),
    [("- <&-", 2), ("{} >&-", 2), ("{} 2>&-", 0), ("nowhere 2>&-", 2), ("{} 2>/dev/full", 0)],
)
def test_closed_streams(streams, status, table):
    path = table("y,p,w\n1,0.5,1\n0,0.4,0\n")
    program = f"{sys.executable} -m skcalib report --label y --proba p --weight w"
    done = subprocess.run(
        f"{program} {streams.format(path)}", shell=True, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "accuracy" in done.stdout) == (status, status == 0)
    assert len(done.stderr.splitlines()) == (0 if "2>" in streams else 1)


def test_a_label_of_many_zeros():
    assert to_canonical(100_000 * "0" + "x") == 100_000 * "0" + "x"  # took minutes
    assert to_canonical("-" + 100_000 * "0" + "1." + 100_000 * "0") == "-1"


def write_rows(table, template, label, proba):
    names = [f"p_{k}" for k in range(proba.shape[1])]
    rows = [
        ",".join([str(y), *(format(p, template) for p in row)])
        for y, row in zip(label, proba.tolist(), strict=True)
    ]
    return table("\n".join([",".join(["y", *names]), *rows]) + "\n"), names


@pytest.mark.parametrize("template", [".2f", ".4f", ".3g", ".2e", ".6f", ".9g", ""])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_rows_may_miss_1_by_what_rounding_makes(template, n_classes, table):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(n_classes), size=100)
    path, names = write_rows(table, template, np.arange(100) % n_classes, proba)
    _, found, _ = read_predictions(path, "y", names)
    printed = np.array([[float(format(p, template)) for p in row] for row in proba.tolist()])
    total = printed.sum(axis=1, keepdims=True)
    expected = np.where(np.abs(total - 1) > 1e-5, printed / total, printed)
    np.testing.assert_array_equal(found, expected)
    check_probabilities(found)


@pytest.mark.parametrize(("template", "miss"), [(".2f", 0.03), (".4f", 3e-4), ("", 3e-4)])
def test_rows_may_miss_1_by_no_more(template, miss, table):
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=100)
    path, names = write_rows(table, template, np.arange(100) % 3, proba * (1 - miss))
    with pytest.raises(ValueError, match="rounding to the digits of the file does not explain"):
        read_predictions(path, "y", names)


def test_whole_numbers_as_probabilities_explain_nothing(table):
    for row in ("1,1,0", "0,0,0", "0.5,0.5,0.5", "0.3,0.3,0.3"):
        path = table(f"y,p_0,p_1,p_2\n0,1,0,0\n1,{row}\n")
        with pytest.raises(ValueError, match=r"must sum to 1; found a sum of .* in line 3"):
            read_predictions(path, "y", ["p_0", "p_1", "p_2"])


def test_ties_of_single_precision_survive_a_file(table):
    votes = np.random.default_rng(0).multinomial(100, [0.5, 0.3, 0.2], size=500)
    single = (votes.astype(np.float32) / np.float32(100)).astype(np.float64)
    path, names = write_rows(table, "", np.arange(500) % 3, single)
    _, found, _ = read_predictions(path, "y", names)
    np.testing.assert_array_equal(found, single)


def test_rows_are_named_by_their_lines(table):
    broken = table("y,p\n1,0.5\n0,0.5\n\n1,0.5\n0,x\n")
    with pytest.raises(ValueError, match="found 'x' in line 6"):
        read_predictions(broken, "y", ["p"])


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found(separator, table):
    text = 'y,"a, b",p\n1,x,0.5\n0,"y;z",0.25\n'
    rows = list(csv.reader(io.StringIO(text)))
    file = io.StringIO()
    csv.writer(file, delimiter=separator).writerows(rows)
    label, proba, _ = read_predictions(table(file.getvalue()), "y", ["p"])
    assert (label.tolist(), proba.tolist()) == (["1", "0"], [0.5, 0.25])


def test_separators_in_quoted_names_do_not_count(table):
    label, proba, _ = read_predictions(table('"a,b,c""d,e";y;p\n1;1;0.5\n2;0;0.25\n'), "y", ["p"])
    assert (label.tolist(), proba.tolist()) == (["1", "0"], [0.5, 0.25])


def test_the_separator_is_named(table, capsys):
    path = table("y:p\n1:0.5\n0:0.25\n")
    _, proba, _ = read_predictions(path, "y", ["p"], "--sep", ":")
    assert proba.tolist() == [0.5, 0.25]
    tabs = table("y,z\tp\n1\t0.5\n0\t0.25\n")
    arguments = ["report", tabs, "--label", "y,z", "--proba", "p", "--sep"]
    assert run(capsys, *arguments, "\\t")[0] == 0
    for wrong in ("", "ab", "\n", '"'):
        status, _, err = run(capsys, *arguments, wrong)
        assert (status, "--sep must be one character" in err) == (2, True)


@pytest.mark.parametrize("prefix", ["p", "class", "proba_", "p_x", "x2p"])
def test_numbers_of_classes_after_any_letter(prefix, table):
    text = f"y,{prefix}0,{prefix}1,{prefix}10\n1,0.25,0.5,0.25\n10,0,0,1\n"
    columns = [prefix + k for k in ("0", "1", "10")]
    assert read_predictions(table(text), "y", columns)[2] == ["0", "1", "10"]


def test_a_prefix_does_not_end_within_a_number(table):
    text = "y,p10,p11\n1,0.25,0.75\n0,0.5,0.5\n"
    with pytest.raises(ValueError, match=r"found \['0', '1'\], and columns for \['10', '11'\]"):
        read_predictions(table(text), "y", ["p10", "p11"])


def test_the_standard_input(table, capsys, monkeypatch):
    text = "y,p\n1,0.5\n0,0.4\n"
    arguments = ["--label", "y", "--proba", "p"]
    expected = run(capsys, "report", table(text), *arguments)
    for content, found in ((text, expected), ("", (2, "", None)), ("y,p\n1,x\n", (2, "", None))):
        stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content.encode())))
        monkeypatch.setattr("sys.stdin", stdin)
        status, out, err = run(capsys, "report", "-", *arguments)
        assert (status, out) == found[:2]
    assert "found 'x' in line 2" in err


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    """A table with weights, subgroups and groups, and what the report takes of them."""
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 120)
    frame = pd.DataFrame(
        {
            "y": label,
            "p": proba,
            "w": rng.integers(0, 3, 120),
            "<script>": rng.choice(["north", "=1+1", ""], 120),
            "age": rng.choice([30, 40], 120),
            "who": [f"patient {k // 2}" for k in range(120)],
        }
    )
    site = frame["<script>"].replace("", None)
    known = {
        "sample_weight": frame["w"],
        "by": {"<script>": site, "age": frame["age"]},
        "groups": frame["who"],
    }
    path = tmp_path_factory.mktemp("rich") / "table.csv"
    frame.to_csv(path, index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DRAWING, "n_resamples", 2)
        patch.setattr("skcalib.report._sections.Sections.gain", lambda _: None)
        names = {"labels": ["0", "1"], "random_state": 0}
        report = calibration_report(label.astype(str), proba, **known, **names)
    return str(path), report


OPTIONS = ["--label", "y", "--proba", "p", "--weight", "w", "--groups", "who", "--by", "<script>"]


def test_weights_subgroups_and_groups(rich, capsys):
    path, expected = rich
    status, out, err = run(capsys, "report", path, *OPTIONS, "age")
    # no progress where errors are piped
    assert (status, err) == (0, f"skcalib: {path}: left out 37 rows of weight 0\n")
    assert out == f"{expected}\n"
    assert "<script> missing & age 40" in out


@pytest.mark.usefixtures("plain_page")
def test_json_and_page(rich, tmp_path, capsys):
    path, expected = rich
    page = tmp_path / "page.html"
    arguments = ["report", path, *OPTIONS, "age", "--json", "--html", str(page)]
    status, out, err = run(capsys, *arguments)
    assert (status, f"page written to {page}, without figures" in err) == (0, True)
    assert json.loads(out) == json.loads(expected.to_json())
    assert page.read_text("utf-8") == expected.to_html()


@pytest.fixture
def plain_page(monkeypatch):
    """Pages are drawn without figures, which take most of the time."""
    monkeypatch.setattr("skcalib.report._report.CalibrationReport.figures", {})


@pytest.mark.usefixtures("plain_page")
def test_only_pages_are_replaced(table, tmp_path, capsys):
    path = table("y,p\n1,0.5\n0,0.4\n")
    arguments = ["report", path, "--label", "y", "--proba", "p", "--html"]
    before = Path(path).read_text("utf-8")
    link = tmp_path / "link"
    link.symlink_to(path)
    for target in (path, link):
        status, out, err = run(capsys, *arguments, str(target))
        assert (status, out, "pass --force" in err) == (2, "", True)
        assert Path(path).read_text("utf-8") == before
    page = tmp_path / "page.html"
    for _ in range(2):  # the second one replaces the first one
        status, _, err = run(capsys, *arguments, str(page))
        assert (status, "page written to" in err) == (0, True)
    page.chmod(0o600)
    link.unlink()
    link.symlink_to(page)
    page.write_text("notes", "utf-8")
    assert run(capsys, *arguments, str(link))[0] == 2
    assert page.read_text("utf-8") == "notes"
    assert run(capsys, *arguments, str(link), "--force")[0] == 0
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert (link.is_symlink(), page.stat().st_mode & 0o777) == (True, 0o600)
    assert sorted(tmp_path.iterdir()) == sorted([link, page, Path(path)])


@pytest.mark.parametrize("target", ["no/page.html", "", "table.csv/page.html", "long" * 99])
def test_the_target_is_checked_before_the_work(target, table, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("skcalib._cli.command_line.calibration_report", None)
    path = table("y,p\n1,0.5\n0,0.4\n")
    arguments = ["report", path, "--label", "y", "--proba", "p", "--html"]
    assert run(capsys, *arguments, str(tmp_path / target))[:2] == (2, "")


@pytest.mark.usefixtures("plain_page")
def test_a_page_that_cannot_be_written_costs_nothing_else(table, tmp_path, capsys, monkeypatch):
    path, page = table("y,p\n1,0.5\n0,0.4\n"), tmp_path / "page.html"
    arguments = ["report", path, "--label", "y", "--proba", "p", "--html", str(page)]
    _, expected, _ = run(capsys, *arguments)
    before = page.read_text("utf-8")

    def full(path, *_, **__):
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    status, out, err = run(capsys, *arguments)
    assert (status, out, "No space left" in err) == (2, expected, True)
    assert page.read_text("utf-8") == before
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.usefixtures("plain_page")
def test_a_page_can_go_to_a_pipe(table, tmp_path, capsys):
    path = table("y,p\n1,0.5\n0,0.4\n")
    arguments = ["report", path, "--label", "y", "--proba", "p", "--html", os.devnull]
    assert run(capsys, *arguments)[0] == 0
    assert not Path(os.devnull).is_file()


def test_json_has_no_control_characters():
    text = json.dumps({"a\x9b[31m": ["\x1b", "é", "\U000e0001"]}, indent=2, ensure_ascii=False)
    shown = printable(text, "\n", json.dumps)
    assert all(line.isprintable() for line in shown.split("\n"))
    assert "é" in shown
    assert json.loads(shown) == json.loads(text)


def test_decimal_commas(table, capsys):
    text = "y;p;w\na;0,5;1,5\nb;0,25;2\na;,75;1e-1\n"
    options = ["--label", "y", "--proba", "p", "--pos-label", "b", "--weight", "w"]
    expected = run(capsys, "report", table(text.replace(",", ".")), *options)
    assert expected[0] == 0
    assert run(capsys, "report", table(text), *options, "--decimal", ",") == expected
    status, _, err = run(capsys, "report", table(text), *options)
    assert (status, "Pass --decimal , if" in err) == (2, True)
    points = table("y;p\na;0,5\nb;0.5\n")  # 1.234 may be a thousand
    status, _, err = run(capsys, "report", points, *options[:6], "--decimal", ",")
    assert (status, "found '0.5' in line 3" in err) == (2, True)


def test_encodings(tmp_path, capsys):
    text, path = "größe,p\nä,0.5\nü,0.25\n", tmp_path / "table.csv"
    arguments = ["report", str(path), "--label", "größe", "--proba", "p", "--pos-label", "ä"]
    path.write_text(text, "utf-8")
    expected = run(capsys, *arguments)
    assert expected[0] == 0
    for encoding in ("latin-1", "utf-16"):
        path.write_text(text, encoding)
        status, _, err = run(capsys, *arguments)
        assert (status, "with --encoding, such as latin-1" in err) == (2, True)
        assert run(capsys, *arguments, "--encoding", encoding) == expected
    status, _, err = run(capsys, *arguments, "--encoding", "bogus")
    assert (status, "unknown encoding: bogus" in err) == (2, True)


def test_missing_values_can_be_dropped(table, capsys):
    rows = ["1,0.5,1,a", "0,0.25,1,b", "1,0.5,1,", ",0.5,1,a", "0,NA,,b"]
    options = ["--label", "y", "--proba", "p", "--weight", "w", "--by", "g", "--json"]
    path = table("\n".join(["y,p,w,g", *rows]))
    status, out, err = run(capsys, "report", path, *options)
    assert (status, out) == (2, "")
    assert "found nothing in line 5" in err
    assert "(2 rows are wrong). Repair such rows, or pass --drop-missing" in err
    status, out, err = run(capsys, "report", path, *options, "--drop-missing")
    assert (status, err) == (0, f"skcalib: {path}: left out 2 rows with missing values\n")
    found = json.loads(out)
    assert found["n_samples"] == 3
    assert found["audit"].pop("rows dropped") == "2 (with missing values)"
    path = table("\n".join(["y,p,w,g", *rows[:3]]))
    assert json.loads(run(capsys, "report", path, *options)[1]) == found
    path = table("\n".join(["y,p,w,g", *rows, "1,,-1,a"]))  # a wrong weight is not missing
    status, _, err = run(capsys, "report", path, *options, "--drop-missing")
    assert (status, "found '-1' in line 7 of" in err) == (2, True)
    path = table("\n".join(["y,p,w,g", *rows[3:]]))
    status, _, err = run(capsys, "report", path, *options, "--drop-missing")
    message = "found 2 with missing values, which are left out."
    assert (status, message in err) == (2, True)


HINTS = {
    "percentages": ("1,63.7\n0,20\n", "Divide percentages by 100"),
    "percent": ("1,63.7 %\n0,20 %\n", "Divide percentages by 100"),
    "log-odds": ("1,0.5\n0,-1.7\n", "take exp of log p, expit of log-odds"),
    "words": ("1,0.5\n0,high\n", "Remove or repair the row."),
    "swapped": ("0.5,1\n0.25,0\n0.3,1\n", "exchange --label and --proba"),
    "three": ("1,1\n2,0\n3,1\n", "Pass one column for each class"),
}


@pytest.mark.parametrize(("rows", "hint"), HINTS.values(), ids=HINTS)
def test_hints(rows, hint, table, capsys):
    status, _, err = run(capsys, "report", table(f"y,p\n{rows}"), "--label", "y", "--proba", "p")
    assert (status, hint in err) == (2, True)


def test_whole_numbers_name_subgroups(table):
    path = table("y,p,id,age\n" + "".join(f"{k % 2},0.5,{k}.0,{k / 7}\n" for k in range(300)))
    arguments = ["report", path, "--label", "y", "--proba", "p", "--by", "id", "age"]
    by = load_columns(_make_parser().parse_args(arguments))[1]["by"]
    assert by["id"].tolist() == [str(k) for k in range(300)]
    assert by["age"].dtype == np.float64


def test_an_endless_line(table, capsys, monkeypatch):
    monkeypatch.setattr("skcalib._cli.tables._MAX_LINE_LENGTH", 20)
    arguments = ["--label", "y", "--proba", "p"]
    assert run(capsys, "report", table("y,p\n1,0.5\n0," + 15 * "0" + "\n"), *arguments)[0] == 0
    status, _, err = run(capsys, "report", table("y,p\n1,0.5\n0," + 30 * "0"), *arguments)
    assert (status, "a line has 20 characters or more" in err) == (2, True)


FURTHER_MISTAKES = {
    "weight": ("1,0.5,-1,a\n", ["--weight", "w"], "'w' must hold a weight, 0 or larger, in every"),
    "no weight": ("1,0.5,,a\n", ["--weight", "w"], "found nothing in line 3"),
    "no group": ("1,0.5,1,NA\n", ["--groups", "g"], "found 'NA' in line 3"),
    "unknown": ("1,0.5,1,a\n", ["--by", "q"], "has no column 'q'"),
    "twice": ("1,0.5,1,a\n", ["--by", "g", "g"], "named once"),
    "label": ("1,0.5,1,a\n", ["--by", "y"], "named once"),
}


@pytest.mark.parametrize(
    ("row", "options", "message"), FURTHER_MISTAKES.values(), ids=FURTHER_MISTAKES
)
def test_mistakes_of_further_columns(row, options, message, table, capsys):
    path = table("y,p,w,g\n0,0.2,1,b\n" + row)
    status, out, err = run(capsys, "report", path, "--label", "y", "--proba", "p", *options)
    assert (status, out, message in err) == (2, "", True)


def test_a_quantity_is_no_subgroup(table, capsys):
    text = "y,p,x\n" + "".join(f"{k % 2},0.5,{k / 7}\n" for k in range(50))
    arguments = ["--label", "y", "--proba", "p", "--by", "x"]
    status, _, err = run(capsys, "report", table(text), *arguments)
    assert (status, "which looks like a quantity" in err) == (2, True)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal(table, capsys, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("skcalib._cli.tables._MAX_BLOCK_ROWS", 20)
    path = table("y,p\n" + "1,0.9\n0,0.4\n" * 20)
    assert run(capsys, "report", path, "--label", "y", "--proba", "p")[0] == 0
    shown = terminal.getvalue().split("\r\x1b[K")
    assert f"reading {path}: 40 rows ..." in shown
    assert "testing ..." in shown
    assert "finding the interval of the log loss ..." in shown
    assert shown[-1] == ""  # the line is erased


@pytest.fixture
def arrow():
    pytest.importorskip("pyarrow.feather")
    pytest.importorskip("pyarrow.parquet")
    return pytest.importorskip("pyarrow")


def writers(arrow):
    from pyarrow import feather, parquet

    return {
        "parquet": lambda table, path: parquet.write_table(table, path, row_group_size=7),
        "feather": lambda table, path: feather.write_feather(table, path, chunksize=7),
    }


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_parquet_and_arrow(kind, arrow, tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 30, 3)
    names = np.array(["a", "b", "c"])
    table = arrow.table(
        {
            "y": arrow.array(names[label]).dictionary_encode(),
            **{f"p_{name}": column for name, column in zip("abc", proba.T, strict=True)},
            "list": [[1]] * 30,
        }
    )
    path = str(tmp_path / "table")
    writers(arrow)[kind](table, path)
    columns = ["p_a", "p_b", "p_c"]
    found = read_predictions(path, "y", columns)
    assert found[0].tolist() == names[label].tolist()
    np.testing.assert_array_equal(found[1], proba)
    assert found[2] == ["a", "b", "c"]
    with pytest.raises(ValueError, match="'list' must hold numbers or texts; found the type list"):
        read_predictions(path, "list", columns)
    with pytest.raises(
        ValueError, match=r"has no column 'q'; its columns are \['y', 'p_a', .*\]\.$"
    ):
        read_predictions(path, "y", ["q"])
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(Path(path).read_bytes())))
    monkeypatch.setattr("sys.stdin", stdin)
    np.testing.assert_array_equal(read_predictions("-", "y", columns)[1], proba)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_json_lines_are_read_as_the_same_table(encoding, table, tmp_path, capsys):
    label, proba = random_problem(np.random.default_rng(0), 20)
    frame = pd.DataFrame({"y": label == 1, "p": proba, "site": ["ä, b", "7"] * 10})
    lines = tmp_path / "log.jsonl"
    text = frame.to_json(orient="records", lines=True, double_precision=15)
    lines.write_text(text.replace("\n", "\n\n", 1), encoding=encoding)
    found, expected = (
        read_predictions(path, "y", ["p"], "--by", "site") for path in (lines, table(frame))
    )
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], atol=1e-15)
    assert found[2] == ["False", "True"]
    digits = '{"y": 1, "p": 0.12345678901234567}\n{"y": 12345678901234567890, "p": 1, "t":"\x85"}\n'
    lines.write_text(digits, "utf-8")
    y, p, _ = read_predictions(lines, "y", ["p"])
    assert (y.tolist(), p[0]) == (["1", "12345678901234567890"], 0.12345678901234567)
    lines.write_text('{"y": 1, "p": 0.7}\n{"p": 0.2}\n{"y": 0, "p": null}\n{"y": 0, "p": 0.1}\n')
    status, out, err = run(
        capsys, "report", str(lines), "--label", "y", "--proba", "p", "--drop-missing"
    )
    assert (status, "left out 2 rows with missing values" in err) == (0, True)
    assert "Calibration of 2 predictions" in out


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_mistakes_in_parquet_and_arrow(kind, arrow, tmp_path, capsys):
    path = str(tmp_path / "table")
    for proba, message in (
        ([0.5] * 20 + [None], "found nothing in row 21"),
        ([0.5] * 20 + [1.5], "found '1.5' in row 21"),
        ([], "must hold at least one row"),
    ):
        column = arrow.array(proba, arrow.float64())
        table = arrow.table({"y": arrow.array([True] * len(proba), arrow.bool_()), "p": column})
        writers(arrow)[kind](table, path)
        status, _, err = run(capsys, "report", path, "--label", "y", "--proba", "p")
        assert (status, message in err) == (2, True)
    Path(path).write_bytes(Path(path).read_bytes()[:50])
    status, _, err = run(capsys, "report", path, "--label", "y", "--proba", "p")
    assert (status, "is not a sound Parquet, Arrow or JSON Lines file" in err) == (2, True)


ZSTD = b"\x28\xb5\x2f\xfd"  # begins each compressed block


# a few bytes of the first two formats can hold any number of rows
@pytest.mark.parametrize("kind", ["parquet", "feather", "json", "csv"])
def test_rows_are_counted_before_they_are_decoded(kind, arrow, tmp_path, capsys):
    path, n = tmp_path / "table", 10**5
    if kind in ("parquet", "feather"):
        codes = np.repeat(np.array([0, 1], np.int8), n // 2)
        column = arrow.DictionaryArray.from_arrays(codes, ["0", "1"])
        table = arrow.table({"y": column, "p": arrow.array(codes / 2)})
        write = {"parquet": arrow.parquet.write_table, "feather": arrow.feather.write_feather}
        write[kind](table, str(path), compression="zstd")
        content = path.read_bytes()
        assert len(content) < 10_000
        path.write_bytes(content.replace(ZSTD, bytes(4)))  # decoding any block now fails
    else:
        n = 100
        line, head = ("1,0.5\n", "y,p\n") if kind == "csv" else ('{"y": 1, "p": 0.5}\n', "")
        path.write_text(head + n * line)
    arguments = ["report", str(path), "--label", "y", "--proba", "p", "--max-rows"]
    if kind in ("parquet", "feather"):
        assert "is not a sound Parquet, Arrow" in run(capsys, *arguments, str(n))[2]
    status, _, err = run(capsys, *arguments, str(n - 1))
    assert status == 2
    assert f"must have at most {n - 1:,} rows; found {n:,} or more" in err
    assert "pass a larger --max-rows" in err


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_memory_is_some_times_that_of_the_columns(kind, arrow, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_MAX_BLOCK_ROWS", 2**9)
    n = 2**13
    codes = arrow.array(np.repeat(np.array([0, 1], np.int8), n // 2))
    label = arrow.DictionaryArray.from_arrays(codes, ["0", "1" * 1000])
    path = str(tmp_path / "table")
    table = arrow.table({"y": label, "p": np.linspace(0, 1, n), "other": label})
    {"parquet": arrow.parquet.write_table, "feather": arrow.feather.write_feather}[kind](
        table, path
    )
    columns = [("y", tables.LABEL), ("p", tables.PROBABILITY)]
    options = SimpleNamespace(keeps_rows=False, drop_missing=False, decimal=".", max_rows=n)
    tables.load_table(path, columns, options)  # loads modules
    tracemalloc.start()
    loaded = tables.load_table(path, columns, options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert loaded.columns["y", tables.LABEL][-1] == "1" * 1000
    np.testing.assert_array_equal(loaded.columns["p", tables.PROBABILITY], np.linspace(0, 1, n))
    assert peak < 80 * n  # bytes, of two columns


def test_columns_of_views_and_of_one_name_twice(arrow, tmp_path):
    path = str(tmp_path / "table")
    views = arrow.array(["b", "a", None], arrow.string_view())  # as polars writes texts
    table = arrow.table({"y": views, "p": [0.5, 0.25, 1.0]})
    writers(arrow)["feather"](table, path)
    columns = [("y", tables.LABEL), ("p", tables.PROBABILITY)]
    options = {"drop_missing": True, "decimal": ".", "max_rows": 9}
    for keeps_rows in (False, True):
        options["keeps_rows"] = keeps_rows
        loaded = tables.load_table(path, columns, SimpleNamespace(**options))
        assert loaded.columns["y", tables.LABEL].tolist() == ["b", "a"]
    assert loaded.frame.to_csv(index=False, lineterminator=" ") == "y,p b,0.5 a,0.25 ,1.0 "
    twice = table.select(["p", "p"])  # old releases write no views to Parquet
    writers(arrow)["parquet"](twice.append_column("y", arrow.array(["b", "a", None])), path)
    with pytest.raises(ValueError, match="found 2 named 'p'"):
        tables.load_table(path, columns, SimpleNamespace(**options))


def test_a_block_reads_few_texts_of_a_large_dictionary(arrow):
    pandas, texts = pytest.importorskip("pandas"), []
    array = arrow.DictionaryArray.from_arrays([7, None, 3, 7], list(map(str, range(100))))
    column = pandas.Series(array, dtype=pandas.ArrowDtype(array.type))
    rule = tables.Rule("hold a text", lambda text: texts.append(text) or text)
    assert tables.to_values(column, rule).tolist() == ["7", "", "3", "7"]
    assert sorted(texts) == ["", "3", "7"]


@pytest.mark.parametrize(
    ("missing", "content"),
    [("pandas", b"y,p\n1,0.5\n"), ("pandas", b"PAR1 and more"), ("pyarrow", b"PAR1 and more")],
)
def test_tables_without_their_readers(missing, content, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    path = tmp_path / "table"
    path.write_bytes(content)
    status, _, err = run(capsys, "report", str(path), "--label", "y", "--proba", "p")
    assert (status, 'pip install "skcalib[tables]"' in err) == (2, True)
    assert err.count("\n") == 1


def written_by(capsys, tmp_path, train, new, *options):
    """What `skcalib recalibrate` writes: the recalibrated table, and what it says."""
    target = tmp_path / "recalibrated.csv"
    files = ["--apply", str(new), "--output", str(target)]
    assert run_command(["recalibrate", str(train), *files, *options]) == 0
    return target.read_text("utf-8"), capsys.readouterr()


# 0.4 s: four averages are fitted
def test_recalibrate_two_classes(table, tmp_path, capsys):
    label, proba = random_problem(np.random.default_rng(0), 90)
    names = np.array(["no", "yes"])[label]
    weight = np.arange(90) % 3
    train = table(pd.DataFrame({"y": names, "p": proba, "w": weight}))
    new = tmp_path / "new.csv"
    new.write_text('id,p,note\n007,0.25,"a, b"\n8, 0.75,\n', "utf-8")
    further = ["--map", str(tmp_path / "map.csv"), "--sql", str(tmp_path / "map.sql")]
    options = ["--label", "y", "--proba", "p", "--weight", "w", "--pos-label", "yes", *further]
    auto = AutoRecalibrator(labels=["no", "yes"]).fit(proba, names, weight)
    first, second = auto.predict_proba([0.25, 0.75])[:, 1].tolist()
    text, (out, err) = written_by(capsys, tmp_path, train, new, *options)
    expected = f'id,p,note,recalibrated_p\n007,0.25,"a, b",{first}\n8, 0.75,,{second}\n'
    assert text == expected
    assert out.startswith("auto: AutoRecalibrator(")
    assert err.splitlines()[0].endswith("left out 30 rows of weight 0")
    assert err.count("written to") == 3
    written = pd.read_csv(tmp_path / "map.csv")
    np.testing.assert_allclose(written["p"], np.linspace(0, 1, 1001), rtol=1e-12)
    np.testing.assert_allclose(
        written["recalibrated_p"], auto.predict_proba(np.linspace(0, 1, 1001))[:, 1], rtol=1e-12
    )
    sql = (tmp_path / "map.sql").read_text("utf-8")
    assert sql == f'{export_sql(auto, columns=["p"])[1]} AS "recalibrated_p"\n'
    arguments = ["recalibrate", train, *options, "--apply", str(new), "--output"]
    status, _, err = run(capsys, *arguments, str(new))
    assert (status, "as it exists. Name another file, or pass --force" in err) == (2, True)
    again = str(tmp_path / "again.csv")
    status, _, err = run(capsys, *arguments[:-3], "--apply", again, "--output", again, "--force")
    assert (status, "again.csv cannot be read" in err) == (2, True)
    target = str(tmp_path / "recalibrated.csv")
    status, _, err = run(capsys, *arguments[:-3], "--apply", target, "--output", again, "--force")
    assert (status, "found 2 named 'recalibrated_p'" in err) == (2, True)


def test_recalibrate_more_classes_with_commas(table, tmp_path, capsys, arrow):
    label, proba = random_problem(np.random.default_rng(0), 100, 3)
    frame = pd.DataFrame(proba, columns=["p_b", "p_a", "p_c"])
    new = tmp_path / "new.parquet"
    frame[:2].assign(id=[1, 2], list=[[1], [2]]).to_parquet(new)
    frame["y"] = np.array(["b", "a", "c"])[label]
    train = table(frame.to_csv(index=False, sep=";", decimal=",") + "0;;0;a\n")
    options = ["--label", "y", "--proba", "p_b", "p_a", "p_c", "--method", "temperature"]
    reading = ["--decimal", ",", "--drop-missing", "--sql", str(tmp_path / "map.sql")]
    text, (_, err) = written_by(capsys, tmp_path, train, new, *options, *reading)
    one = TemperatureRecalibrator(labels=["b", "a", "c"]).fit(proba, frame["y"])
    found = pd.read_csv(io.StringIO(text), sep=";", decimal=",")
    assert found.columns.tolist()[3:5] == ["id", "list"]
    np.testing.assert_allclose(found.iloc[:, -3:], one.predict_proba(proba[:2]), rtol=1e-12)
    assert found.columns[-3:].tolist() == [f"recalibrated_p_{name}" for name in "bac"]
    assert "table.csv: left out 1 rows with missing values" in err
    assert (tmp_path / "map.sql").read_text("utf-8").count(" AS ") == 3
    arguments = ["recalibrate", train, "--apply", str(new), "--output", str(tmp_path / "other")]
    status, _, err = run(capsys, *arguments, *options, *reading[:3], "--map", str(tmp_path / "map"))
    assert (status, "--map must be of two classes" in err) == (2, True)
    assert not (tmp_path / "other").exists()


def test_a_scored_table_keeps_its_rows(table, tmp_path, capsys):
    train = table("y,p\n1,0.9\n0,0.2\n1,0.6\n0,0.7\n,0.5\n")
    new = tmp_path / "new.csv"
    new.write_text("id,p\na,\nb,0.5\n\nc,NA\nd,0.25\n", "utf-8")
    options = ["--label", "y", "--proba", "p", "--method", "identity", "--drop-missing"]
    written, (_, err) = written_by(capsys, tmp_path, train, new, *options)
    assert written == "id,p,recalibrated_p\na,,\nb,0.5,0.5\nc,NA,\nd,0.25,0.25\n"
    assert err.splitlines()[:2] == [
        f"skcalib: {train}: left out 1 rows with missing values",
        f"skcalib: {new}: 2 rows with missing values got none",
    ]


@pytest.mark.parametrize("option", ["--map", "--sql"])
@pytest.mark.parametrize("name", ["new.csv", "link.csv"])
def test_no_output_replaces_another(option, name, table, tmp_path, capsys):
    train = table("y,p\n1,0.9\n0,0.2\n1,0.6\n0,0.7\n")
    new = tmp_path / "new.csv"
    (tmp_path / "link.csv").symlink_to(new)
    arguments = ["--label", "y", "--proba", "p", "--method", "identity", "--apply", train]
    other = [option, str(tmp_path / name)]
    status, out, err = run(capsys, "recalibrate", train, *arguments, "--output", str(new), *other)
    assert (status, out) == (2, "")
    assert f"{option} must name another file than --output" in err
    assert not new.exists()


def test_warnings_are_one_line_each(table, capsys, monkeypatch):
    def report(**options):
        for text in ("one label", "one label", "few\nsamples"):
            warnings.warn(text, stacklevel=1)
        return calibration_report(**options)

    monkeypatch.setattr("skcalib._cli.command_line.calibration_report", report)
    path = table("y,p\n1,0.5\n0,0.25\n")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        status, _, err = run(capsys, "report", path, "--label", "y", "--proba", "p")
    assert status == 0
    expected = ["skcalib: warning: one label", "skcalib: warning: few\\nsamples"]
    assert err.splitlines() == expected


def test_separators_in_quotes_do_not_count(table, capsys):
    path = table('y,"""; DROP TABLE t; --",";;;"\n1,0.5,a\n0,0.2,b\n1,0.9,c\n')
    options = ["--label", "y", "--proba", '"; DROP TABLE t; --']
    assert run(capsys, "report", path, *options)[0] == 0


def test_other_columns_stay_what_they_are(table, tmp_path, capsys, arrow):
    train = table("y,p\n1,0.9\n0,0.2\n1,0.6\n0,0.7\n")
    options = ["--label", "y", "--proba", "p", "--method", "identity"]
    header, row = "p,id,x,x,note,n", '0.5,007,NA,,"a\n""b",9007199254740993'
    new = tmp_path / "new"
    for text in (f"{header}\n{row}\n", f"\ufeff{header}\r\n\r\n{row}"):
        new.write_bytes(text.encode())
        written, _ = written_by(capsys, tmp_path, train, new, *options, "--force")
        assert written == f"{header},recalibrated_p\n{row},0.5\n"
        assert new.read_bytes() == text.encode()
    frame = arrow.table({"p": [0.5, 0.25], "n": arrow.array([2**53 + 1, None], arrow.int64())})
    writers(arrow)["parquet"](frame, new)
    written, _ = written_by(capsys, tmp_path, train, new, *options, "--force")
    assert written == "p,n,recalibrated_p\n0.5,9007199254740993,0.5\n0.25,,0.25\n"


def test_sql_of_more_classes_does_without_trees_and_products(table, tmp_path, capsys):
    label, proba = random_problem(np.random.default_rng(0), 320, 3)
    columns = ["p0", "p1", "p2"]
    frame = pd.DataFrame(proba, columns=columns)
    new = tmp_path / "new.csv"
    frame[:2].to_csv(new, index=False)
    options = ["--label", "y", "--proba", *columns, "--sql", str(tmp_path / "map.sql")]
    _, (out, _) = written_by(capsys, tmp_path, table(frame.assign(y=label)), new, *options)
    assert "not tried: pairwise scaling, trees" in out
    assert (tmp_path / "map.sql").read_text("utf-8").count(' AS "recalibrated_p') == 3


def test_methods_have_the_names_of_recalibrators():
    assert {"auto", "temperature", "venn-abers", "scaling-binning"} < set(RECALIBRATORS_BY_METHOD)
    assert len(RECALIBRATORS_BY_METHOD) == len(RECALIBRATORS) + 1
