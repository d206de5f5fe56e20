"""The command line prints the report and the demo, and explains every mistake in a table."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from problems import random_problem

from skcalib._cli import main
from skcalib.report import calibration_report


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


def run(capsys, *arguments):
    status = main(list(arguments))
    output = capsys.readouterr()
    return status, output.out, output.err


def test_report_of_one_column(table, capsys):
    label, proba = random_problem(np.random.default_rng(0), 100)
    path = table(pd.DataFrame({"x": 0, "outcome": label, "p": proba}))
    status, out, _ = run(capsys, "report", path, "--label", "outcome", "--proba", "p")
    assert status == 0
    assert out == calibration_report(label, proba, random_state=0) + "\n"


def test_report_of_the_other_class(table, capsys):
    label, proba = random_problem(np.random.default_rng(0), 100)
    path = table(pd.DataFrame({"y": np.array(["yes", "no"])[label], "p": proba}))
    arguments = ["report", path, "--label", "y", "--proba", "p", "--positive", "no", "--seed", "3"]
    status, out, _ = run(capsys, *arguments)
    assert status == 0
    assert out == calibration_report(label, proba, random_state=3) + "\n"


@pytest.mark.parametrize("prefix", ["", "proba_", "P of "])
def test_columns_are_matched_with_labels_by_name(prefix, table, capsys):
    label, proba = random_problem(np.random.default_rng(0), 100, 3)
    names = ["setosa", "virginica", "versicolor"]
    frame = pd.DataFrame(proba, columns=[prefix + name for name in names])
    frame["species"] = np.array(names)[label]
    columns = [prefix + name for name in (names[1], names[0], names[2])]
    path = table(frame)
    status, out, _ = run(capsys, "report", path, "--label", "species", "--proba", *columns)
    assert status == 0
    expected = calibration_report(
        frame["species"], frame[columns], labels=[names[1], names[0], names[2]], random_state=0
    )
    assert out == expected + "\n"


def test_numbers_as_labels_and_a_class_that_does_not_occur(table, capsys):
    path = table("y,p_1,p_2,p_10\n1,0.5,0.25,0.25\n10,0.25,0.25,0.5\n1,1,0,0\n")
    status, out, _ = run(capsys, "report", path, "--label", "y", "--proba", "p_1", "p_2", "p_10")
    assert status == 0
    assert "3 predictions, 3 classes" in out


def test_one_label_only(table, capsys):
    path = table("y,p\n1,0.5\n1,0.9\n")
    assert run(capsys, "report", path, "--label", "y", "--proba", "p")[0] == 0
    path = table("y,p\nb,0.5\nb,0.9\n")
    arguments = ["report", path, "--label", "y", "--proba", "p", "--positive", "b"]
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

    status, out, _ = report("y,p\n1.0,0.9\n1.0,0.8\n", "--proba", "p", "--positive", "1.0")
    assert (status, "accuracy" + 43 * " " + "1.0000" in out) == (0, True)
    assert report("y,p\n1.0,0.9\n0.0,0.8\n", "--proba", "p", "--positive", "1.0")[0] == 0
    text = "y,0.0,1.0,2.0\n0.0,0.5,0.25,0.25\n2.0,0,0,1\n"
    assert report(text, "--proba", "0.0", "1.0", "2.0")[0] == 0
    text = "y,proba_007,proba_008\n007,0.5,0.5\n008,0.25,0.75\n"
    assert report(text, "--proba", "proba_007", "proba_008")[0] == 0
    status, _, err = report("y,p\n01,0.9\n1,0.8\n0,0.5\n", "--proba", "p")
    assert (status, "found 3: 0, " in err) == (2, True)


def test_demo_without_matplotlib(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, out, err = run(capsys, "demo")
    assert status == 2
    assert out == ""
    assert "pip install matplotlib" in err


MISTAKES = {
    "unknown column": ("y,p\n1,0.5\n", ["q"], "has no column 'q'; its columns are 'y', 'p'"),
    "semicolons": ("y;p\n1;0.5\n", ["p"], "Values are separated by commas"),
    "missing probability": ("y,p\n1,0.5\n0,\n", ["p"], "found nothing in line 3"),
    "nan": ("y,p\n1,0.5\n0,nan\n", ["p"], "'p' must hold a probability in [0, 1]"),
    "lines": ('y,p,note\n1,0.5,"a\nb"\n\n\n0,x,c\n', ["p"], "found 'x' in line 6"),
    "label NA": ("y,p\n1,0.5\nNA,0.3\n", ["p"], "found 'NA' in line 3"),
    "two columns of a name": ("y,p,p\n1,0.5,0.5\n", ["p"], "one column of each name; found 2"),
    "text": ("y,p\n1,0.5\n0,high\n", ["p"], "found 'high' in line 3"),
    "missing label": ("y,p\n1,0.5\n,0.3\n", ["p"], "found '' in line 3"),
    "out of range": ("y,p\n1,0.5\n0,1.5\n", ["p"], "in [0, 1] in every row; found '1.5' in line 3"),
    "rows": ("y,p_0,p_1\n1,0.3,0.7\n0,0.5,0.2\n", ["p_0", "p_1"], "sum of 0.7 in line 3"),
    "label without column": (
        "y,p_a,p_b\na,0.5,0.5\nc,0.3,0.7\n",
        ["p_a", "p_b"],
        "found 'c', and columns for 'a', 'b'",
    ),
    "three labels": ("y,p\na,0.5\nb,0.3\nc,0.2\n", ["p"], "for two labels; found 3: a, b, c"),
    "one label": ("y,p\na,0.5\n", ["p"], "--positive"),
    "short row": ("y,p\n1,0.5\n0\n", ["p"], "found 1 in line 3"),
    "no rows": ("y,p\n", ["p"], "at least one row"),
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
    arguments = ["report", path, "--label", "y", "--proba", "p", "--positive", "c"]
    status, _, err = run(capsys, *arguments)
    assert status == 2
    assert "--positive c must be one of two labels; found a, b" in err
    path = table("y,p_a,p_b\na,0.5,0.5\n")
    arguments = ["report", path, "--label", "y", "--proba", "p_a", "p_b", "--positive", "a"]
    assert run(capsys, *arguments)[0] == 2


def test_unreadable_files(tmp_path, capsys):
    status, _, err = run(capsys, "report", "nowhere.csv", "--label", "y", "--proba", "p")
    assert status == 2
    assert "nowhere.csv cannot be read: No such file" in err
    path = tmp_path / "binary.csv"
    path.write_bytes(bytes(range(256)))
    assert run(capsys, "report", str(path), "--label", "y", "--proba", "p")[0] == 2


def test_command_line_without_arguments_shows_usage():
    done = subprocess.run([sys.executable, "-m", "skcalib"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "usage: python -m skcalib" in done.stderr


def test_demo(tmp_path, capsys):
    path = tmp_path / "demo.png"
    status, out, _ = run(capsys, "demo", "--output", str(path))
    assert status == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert str(path) in out
    for problem in ("breast cancer", "digits"):
        for classifier in ("GaussianNB", "RandomForestClassifier"):
            assert f"{classifier} on {problem}" in out
    assert out.count("--- before recalibration ---") == 4
    assert out.count("--- what changed ---") == 4
