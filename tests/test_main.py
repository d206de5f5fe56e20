import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from helpers import random_problem

from skcalib.__main__ import main
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


MISTAKES = {
    "unknown column": ("y,p\n1,0.5\n", ["q"], "has no column 'q'; its columns are 'y', 'p'"),
    "semicolons": ("y;p\n1;0.5\n", ["p"], "Values are separated by commas"),
    "missing probability": ("y,p\n1,0.5\n0,\n", ["p"], "found nothing in line 3"),
    "nan": ("y,p\n1,0.5\n0,nan\n", ["p"], "must be finite; found nan"),
    "text": ("y,p\n1,0.5\n0,high\n", ["p"], "found 'high' in line 3"),
    "missing label": ("y,p\n1,0.5\n,0.3\n", ["p"], "it is empty in line 3"),
    "out of range": ("y,p\n1,0.5\n0,1.5\n", ["p"], "must lie in [0, 1]; found 1.5"),
    "rows": ("y,p_0,p_1\n1,0.5,0.2\n0,0.3,0.7\n", ["p_0", "p_1"], "must sum to 1"),
    "label without column": (
        "y,p_a,p_b\na,0.5,0.5\nc,0.3,0.7\n",
        ["p_a", "p_b"],
        "found 'c', and columns for 'a', 'b'",
    ),
    "three labels": ("y,p\na,0.5\nb,0.3\nc,0.2\n", ["p"], "for two labels; found 3: a, b, c"),
    "one label": ("y,p\na,0.5\n", ["p"], "--positive"),
    "short row": ("y,p\n1,0.5\n0\n", ["p"], "found 1 in line 3"),
    "no rows": ("y,p\n", ["p"], "at least one row"),
    "empty": ("", ["p"], "has no column"),
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
    assert "usage: skcalib" in done.stderr


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
