"""The command line reports on columns of forecasts, and explains every mistake in them."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from skcalib._cli.columns import load_columns
from skcalib._cli.command_line import _make_parser, run_command
from skcalib.datasets import make_forecasts
from skcalib.hypothesis_tests import CalibrationTest
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


@pytest.fixture
def few_resamples(monkeypatch):
    test = partial(CalibrationTest, n_resamples=99)
    monkeypatch.setattr("skcalib.report._forecasts.CalibrationTest", test)
    monkeypatch.setitem(DRAWING, "n_resamples", 2)
    monkeypatch.setattr("skcalib.report._sections.Sections.gain", lambda _: None)


def run(capsys, *arguments):
    status = run_command(list(arguments))
    output = capsys.readouterr()
    return status, output.out, output.err


def read(path, *options):
    """Outcomes and forecasts, as the report gets them."""
    _, found = load_columns(_make_parser().parse_args(["report", path, "--label", "y", *options]))
    return found["y_true"], found["y_pred"]


@pytest.mark.usefixtures("few_resamples")
def test_report_of_means_and_standard_deviations(table, capsys):
    y, forecast = make_forecasts(30, dispersion=0.4, random_state=0)
    path = table(pd.DataFrame({"x": "a", "y": y, "m": forecast.mean(), "s": forecast.std()}))
    arguments = ["report", path, "--label", "y", "--mean", "m", "--std", "s", "--seed", "3"]
    status, out, err = run(capsys, *arguments)
    assert (status, err) == (0, "")
    assert out == f"{calibration_report(y, forecast, random_state=3)}\n"
    assert "are too small" in " ".join(out.split())


@pytest.mark.usefixtures("few_resamples")
def test_report_of_members(table, capsys):
    y, forecast = make_forecasts(20, problem="ensemble", n_members=3, random_state=0)
    frame = pd.DataFrame(forecast.members, columns=["a", "b", "c"]).assign(y=y)
    arguments = ["report", table(frame), "--label", "y", "--members", "a", "b", "c"]
    status, out, _ = run(capsys, *arguments)
    assert status == 0
    assert out == f"{calibration_report(y, forecast, random_state=0)}\n"


@pytest.mark.usefixtures("few_resamples")
def test_report_of_quantiles(table, capsys):
    y, forecast = make_forecasts(20, random_state=0)
    names, levels = ["low", "middle", "high"], [0.05, 0.5, 0.95]
    path = table(pd.DataFrame(forecast.quantiles(levels), columns=names).assign(y=y))
    options = ["--quantiles", *names, "--levels", *map(str, levels)]
    status, out, _ = run(capsys, "report", path, "--label", "y", *options)
    assert status == 0
    assert "coverage of the 90 % intervals" in out
    assert "20 forecasts" in out


@pytest.mark.usefixtures("few_resamples")
def test_subgroups_groups_and_weights(table, capsys):
    y, forecast = make_forecasts(40, random_state=0)
    frame = pd.DataFrame({"y": y, "m": forecast.mean(), "s": forecast.std()})
    frame["site"], frame["patient"] = ["north", "=1+1"] * 20, np.arange(40) // 2
    frame["w"] = np.repeat([1.0, 2.0], 20)
    options = ["--mean", "m", "--std", "s", "--by", "site", "--groups", "patient", "--weight", "w"]
    status, out, _ = run(capsys, "report", table(frame), "--label", "y", *options)
    report = calibration_report(
        y,
        forecast,
        by={"site": frame["site"]},
        groups=frame["patient"],
        sample_weight=frame["w"],
        random_state=0,
    )
    assert status == 0
    assert out == f"{report}\n"
    assert "\nsite   samples  quantile calibration error" in out


def test_values_come_back_to_the_last_digit(table):
    y, forecast = make_forecasts(500, random_state=0)
    quantiles = forecast.quantiles([0.1, 0.9])
    frame = pd.DataFrame({"y": y, "m": forecast.mean(), "s": forecast.std()})
    frame[["q0.9", "q0.1"]] = quantiles[:, ::-1]
    path = table(frame)
    outcome, found = read(path, "--mean", "m", "--std", "s")
    np.testing.assert_array_equal(outcome, y)
    np.testing.assert_array_equal(found.mean(), forecast.mean())
    np.testing.assert_array_equal(found.std(), forecast.std())
    outcome, found = read(path, "--quantiles", "q0.9", "q0.1")
    np.testing.assert_array_equal(found.values, quantiles)
    np.testing.assert_array_equal(found.levels, [0.1, 0.9])
    outcome, found = read(path, "--members", "m", "s")
    np.testing.assert_array_equal(found.members, frame[["m", "s"]])
    assert found.is_exchangeable


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("q0.05", 0.05),
        ("q.05", 0.05),
        ("quantile_0.5", 0.5),
        ("0.1", 0.1),
        ("q0.29", 0.29),
        ("model2_q0.9", 0.9),
    ],
)
def test_levels_of_names(name, level, table):
    path = table(f"y,{name},other\n1,2,3\n")
    forecast = read(path, "--quantiles", name)[1]
    assert forecast.levels.tolist() == [level]


MISTAKES = {
    "text": ("y,m,s\n1,2,1\n1,high,1\n", "--mean m --std s", "'m' must hold a number in every row"),
    "line": ("y,m,s\n1,2,1\n1,high,1\n", "--mean m --std s", "found 'high' in line 3"),
    "outcome": ("y,m,s\n1,2,1\nnan,2,1\n", "--mean m --std s", "'y' must hold a number in every"),
    "infinite": ("y,m,s\n1,2,1\n1,inf,1\n", "--mean m --std s", "found 'inf' in line 3"),
    "underscore": ("y,m,s\n1,2,1_0\n", "--mean m --std s", "found '1_0' in line 2"),
    "std": (
        "y,m,s\n1,2,1\n\n1,2,0\n",
        "--mean m --std s",
        "'s' must hold a positive standard deviation in every row; found '0' in line 4",
    ),
    "crossing": (
        "y,q0.1,q0.9\n1,2,3\n1,3,2\n",
        "--quantiles q0.1 q0.9",
        "found 3 in column 'q0.1' and 2 in column 'q0.9', in line 3. Sort",
    ),
    "no level": ("y,low,high\n1,2,3\n", "--quantiles low high", "found 'low'. Rename it, or pass"),
    "one digit": ("y,q1,q9\n1,2,3\n", "--quantiles q1 q9", "must end in its level"),
    "per cent": ("y,q0.1,q97.5\n1,2,3\n", "--quantiles q0.1 q97.5", "found 'q97.5'"),
    "percent sign": ("y,5%\n1,2\n", "--quantiles 5%", "must end in its level"),
    "ten and a half": ("y,q10.5\n1,2\n", "--quantiles q10.5", "must end in its level"),
    "equal levels": (
        "y,q0.5,q.5\n1,2,3\n",
        "--quantiles q0.5 q.5",
        "different numbers between 0 and 1; found [0.5, 0.5]",
    ),
    "levels outside": ("y,a,b\n1,2,3\n", "--quantiles a b --levels 0 0.5", "found [0.0, 0.5]"),
    "number of levels": (
        "y,a,b\n1,2,3\n",
        "--quantiles a b --levels 0.5",
        "one level for each column of --quantiles; found 1 for 2 columns",
    ),
    "one member": ("y,a\n1,2\n", "--members a", "at least two columns; found ['a']"),
    "unknown column": ("y,m\n1,2\n", "--mean m --std s", "has no column 's'"),
    "mean alone": ("y,m\n1,2\n", "--mean m", "--mean must come with --std; found it alone"),
    "std alone": ("y,a,b\n1,2,3\n", "--members a b --std a", "--std must come with --mean"),
    "levels alone": ("y,a,b\n1,2,3\n", "--members a b --levels 0.5", "come with --quantiles"),
    "positive": ("y,a,b\n1,2,3\n", "--members a b --pos-label 1", "--pos-label must come with"),
    "twice": ("y,a\n1,2\n", "--members a a", "Each column must be named once"),
    "no rows": ("y,a,b\n", "--members a b", "at least one row"),
}


@pytest.mark.parametrize(("text", "options", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_have_a_message_and_status_2(text, options, message, table, capsys):
    status, out, err = run(capsys, "report", table(text), "--label", "y", *options.split())
    assert (status, out) == (2, "")
    assert message in err
    assert err.startswith("skcalib: error: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("options", ["", "--proba a --members a b", "--mean a --quantiles b"])
def test_one_kind_of_prediction(options, table, capsys):
    with pytest.raises(SystemExit) as exit_status:
        run_command(["report", table("y,a,b\n1,2,3\n"), "--label", "y", *options.split()])
    assert exit_status.value.code == 2
    assert "--me" in capsys.readouterr().err
