"""The evidence of a sequential test against time."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from skcalib.display import SequentialTestDisplay
from skcalib.hypothesis_tests import CalibrationTest, SequentialCalibrationTest


@pytest.fixture
def test():
    """Three batches, in the last of which a label has probability 0."""
    test = SequentialCalibrationTest(labels=[0, 1])
    for last in (0.9, 0.8, 0.0):
        test.partial_fit([0.2, 0.7, last], [0, 1, 1])
    return test


def test_what_is_drawn_is_the_history(test):
    drawn = SequentialTestDisplay.from_test(test, alpha=0.1)
    assert drawn.n_seen.tolist() == [3, 6, 9]
    assert drawn.log_e_value.tolist() == test.history_["log_e_value"]
    seen, e_value = drawn.line_.get_data()
    assert seen.tolist() == [3, 6, 9]
    np.testing.assert_allclose(e_value[:2], np.exp(test.history_["log_e_value"][:2]))
    assert np.isfinite(e_value).all()
    assert e_value[2] > drawn.ax_.get_ylim()[1] == pytest.approx(100)
    assert drawn.threshold_.get_ydata()[0] == pytest.approx(10)
    assert drawn.rejected_at == 9


def test_strong_evidence_stays_on_the_axes_and_is_named():
    drawn = SequentialTestDisplay([10, 20, 30], np.log([1.0, 50.0, 1e40]))
    assert drawn.plot().ax_.get_ylim()[1] > 1e40
    assert drawn.line_.get_label() == "e-value, now 1e+40"
    drawn = SequentialTestDisplay([10, 20], np.array([1.0, 400 * np.log(10)])).plot()
    assert drawn.line_.get_label() == "e-value, now 1e+400"
    drawn.figure_.canvas.draw()


def test_a_single_batch_can_be_seen(test):
    once = SequentialCalibrationTest(labels=[0, 1]).partial_fit([0.2, 0.7], [0, 1])
    assert SequentialTestDisplay.from_test(once).line_.get_marker() == "o"
    assert SequentialTestDisplay.from_test(test).line_.get_marker() == "None"


def test_without_rejection():
    test = SequentialCalibrationTest(labels=[0, 1]).partial_fit([0.2, 0.7], [0, 1])
    assert SequentialTestDisplay.from_test(test).rejected_at is None


def test_two_models_share_axes_and_threshold(test):
    ax = SequentialTestDisplay.from_test(test, name="one").ax_
    other = SequentialTestDisplay.from_test(test, name="two", ax=ax, color="black")
    assert other.ax_ is ax
    assert other.line_.get_color() == "black"
    labels = [line.get_label() for line in ax.lines if not line.get_label().startswith("_")]
    assert sorted(labels) == ["one, now inf", "rejected at the level 0.05", "two, now inf"]


def test_refuses_what_has_no_history(test):
    fitted = CalibrationTest(n_resamples=9).fit([0.2, 0.7], [0, 1])
    with pytest.raises(ValueError, match="test must be a SequentialCalibrationTest"):
        SequentialTestDisplay.from_test(fitted)
    for alpha in (5, "0.05", np.nan):
        with pytest.raises(ValueError, match="The 'alpha' parameter of SequentialTestDisplay"):
            SequentialTestDisplay.from_test(test, alpha=alpha)
    with pytest.raises(TypeError, match="unknown option 'colour'"):
        SequentialTestDisplay.from_test(test, colour="red")


def test_axes_may_come_as_an_array_of_one(test):
    axes = plt.subplots(1, 2, squeeze=False)[1]
    assert SequentialTestDisplay.from_test(test, ax=axes[:, :1]).ax_ is axes[0, 0]
    with pytest.raises(ValueError, match=r"ax must be a single one.*found 2"):
        SequentialTestDisplay.from_test(test, ax=axes)
    plt.close("all")
