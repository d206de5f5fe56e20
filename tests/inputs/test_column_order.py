"""Columns named after the classes, as they come from files, must be in the order of the classes."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skcalib.hypothesis_tests import SpiegelhalterTest
from skcalib.metrics import smooth_calibration_error
from skcalib.recalibration import TemperatureRecalibrator

PROBA = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])

# Labels, and the same classes as names of columns.
SPELLINGS = {
    "integers": ([0, 1, 1], ["0", "1"]),
    "integers with a decimal point": ([0, 1, 1], ["0.0", "1.0"]),
    "numbers": ([0.0, 1.0, 1.0], ["0", "1"]),
    "negative": ([-1, 1, 1], ["-1", "1"]),
    "text": (["0", "1", "1"], [0, 1]),
    "truth values": ([False, True, True], ["False", "True"]),
    "truth values in lower case": ([False, True, True], ["false", "true"]),
    "truth values as 0 and 1": ([False, True, True], [0, 1]),
    "words": (["cat", "dog", "dog"], ["cat", "dog"]),
    "bytes": ([b"cat", b"dog", b"dog"], ["cat", "dog"]),
}
all_spellings = pytest.mark.parametrize(("y", "columns"), SPELLINGS.values(), ids=SPELLINGS)


@all_spellings
def test_columns_in_another_order_are_refused(y, columns):
    frame = pd.DataFrame(PROBA, columns=columns)
    assert smooth_calibration_error(y, frame) == smooth_calibration_error(y, PROBA)
    with pytest.raises(ValueError, match="must be in the order of the classes") as error:
        smooth_calibration_error(y, frame[columns[::-1]])
    assert (
        f"Reorder the columns, or name the classes in the order that they have with labels="
        f"{sorted(set(y))[::-1]}." in str(error.value)
    )
    remedy = smooth_calibration_error(y, frame[columns[::-1]], labels=sorted(set(y))[::-1])
    assert remedy == pytest.approx(smooth_calibration_error(y, PROBA), abs=1e-15)


def test_tables_from_files():
    text = "y,1,0\n0,0.1,0.9\n1,0.8,0.2\n1,0.6,0.4\n"
    for read in (pd.read_csv, pl.read_csv):
        table = read(io.StringIO(text))
        with pytest.raises(ValueError, match="columns of y_proba must be in the order"):
            smooth_calibration_error(table["y"], table[["1", "0"]])
        for estimator in (TemperatureRecalibrator(), SpiegelhalterTest()):
            with pytest.raises(ValueError, match="columns of X must be in the order"):
                estimator.fit(table[["1", "0"]], table["y"])


def test_other_names_say_nothing():
    for columns in (["p1", "p0"], ["1", "2"], ["0", "zero"]):
        smooth_calibration_error([0, 1, 1], pd.DataFrame(PROBA, columns=columns))


def test_classes_that_would_be_written_alike_are_told_apart():
    frame = pd.DataFrame(PROBA, columns=["True", "1"])
    with pytest.raises(ValueError, match="must be in the order of the classes"):
        smooth_calibration_error(["1", "True", "True"], frame)


def test_the_order_is_also_judged_after_fit():
    fitted = TemperatureRecalibrator().fit(PROBA, [0, 1, 1])
    with (
        pytest.warns(UserWarning, match="fitted without feature names"),
        pytest.raises(ValueError, match="columns of X must be in the order"),
    ):
        fitted.predict_proba(pd.DataFrame(PROBA, columns=["1", "0"]))


def test_names_may_share_a_beginning():
    frame = pd.DataFrame(PROBA, columns=["proba_0", "proba_1"])
    assert smooth_calibration_error([0, 1, 1], frame) == smooth_calibration_error([0, 1, 1], PROBA)
    with pytest.raises(ValueError, match="must be in the order of the classes"):
        smooth_calibration_error([0, 1, 1], frame[["proba_1", "proba_0"]])
    fitted = (
        TemperatureRecalibrator().set_output(transform="pandas").fit(PROBA, ["no", "yes", "yes"])
    )
    calibrated = fitted.transform(PROBA)
    with pytest.raises(ValueError, match="must be in the order of the classes"):
        smooth_calibration_error(["no", "yes", "yes"], calibrated[["proba_yes", "proba_no"]])
