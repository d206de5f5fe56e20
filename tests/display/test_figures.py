"""Texts of all figures can be read at several sizes, and legends hide no curve."""

import matplotlib as mpl
import pytest
from figures import FIGURES, WIDTHS, assert_legends_hide_no_curve, assert_texts_are_clear

mpl.use("Agg")
from matplotlib import pyplot as plt

QUICK = {
    ("reliability_classes", 4.0),
    ("reliability_subgroups", 4.0),
    ("pit_histogram", 3.2),
    ("local_calibration", 3.2),
}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


# The narrow ones find most; of the grids, which have one panel then, a wider one, too. Two of half
# the width of a page show where labels need more lines.
CASES = [
    pytest.param(
        name,
        width,
        marks=[] if width == min(WIDTHS) or (name, width) in QUICK else pytest.mark.slow,
    )
    for name in FIGURES
    for width in WIDTHS
]


@pytest.mark.parametrize(("name", "width"), CASES)
def test_texts_are_clear(name, width):
    figure = FIGURES[name](width)
    assert_texts_are_clear(figure)
    if name.startswith("reliability"):
        assert_legends_hide_no_curve(figure)


def test_what_cannot_be_read_is_found():
    figure, ax = plt.subplots()
    ax.set_axis_off()
    ax.text(0.5, 0.5, "one")
    assert_texts_are_clear(figure)
    other = ax.text(0.51, 0.51, "another")
    with pytest.raises(AssertionError, match="overlap"):
        assert_texts_are_clear(figure)
    other.set_position((1.2, 0.8))
    with pytest.raises(AssertionError, match="cut off"):
        assert_texts_are_clear(figure)
    other.remove()
    ax.plot([0, 1, 2], label="line")
    ax.legend(loc="lower right")
    figure.canvas.draw()
    assert_legends_hide_no_curve(figure)
    ax.legend(loc="center")
    figure.canvas.draw()
    with pytest.raises(AssertionError, match="hides"):
        assert_legends_hide_no_curve(figure)
