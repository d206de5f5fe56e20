"""The display of the grades of a rating."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skcalib.display import RatingGradeDisplay
from skcalib.hypothesis_tests import CalibrationTest, RatingGradeTest


def test_the_artists_have_the_numbers_of_the_table():
    proba, grades = np.repeat([0.3, 0.02, 0.1], 100), np.repeat(["C", "A", "B"], 100)
    label = np.r_[np.arange(100) < 30, np.zeros(100, bool), np.arange(100) < 40]
    test = RatingGradeTest().fit(proba, label, grades=grades)
    shown = RatingGradeDisplay.from_test(test, name="card", markersize=9.0)
    table = test.table_
    for light, points in shown.points_.items():
        rows = np.flatnonzero(table["light"] == light)
        assert points.get_xdata().tolist() == rows.tolist()
        rate = np.maximum(table["rate"][rows], shown.ax_.get_ylim()[0])
        np.testing.assert_allclose(points.get_ydata(), rate)
        assert (points.get_markersize(), points.get_label()) == (9.0, f"observed: {light}")
    assert shown.ax_.get_title() == "card"
    assert set(shown.points_) == {"green", "red"}
    np.testing.assert_allclose(shown.predicted_.get_ydata(), [0.02, 0.1, 0.3])
    for segment, low, high in zip(
        shown.intervals_.get_segments(), table["low"], table["high"], strict=True
    ):
        assert segment[1, 1] == pytest.approx(high)
        assert segment[0, 1] == pytest.approx(max(low, shown.ax_.get_ylim()[0]))
    assert [text.get_text() for text in shown.ax_.get_xticklabels()] == ["A", "B", "C"]


def test_bad_input():
    with pytest.raises(TypeError, match="test must be a RatingGradeTest; found CalibrationTest"):
        RatingGradeDisplay.from_test(CalibrationTest())
    with pytest.raises(NotFittedError):
        RatingGradeDisplay.from_test(RatingGradeTest())
