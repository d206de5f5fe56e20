"""Texts of all figures can be read at several sizes, and legends hide no curve."""

import pytest
from figures import FIGURES, WIDTHS, assert_legends_hide_no_curve, assert_texts_are_clear
from matplotlib import pyplot as plt

# One figure of each display, as narrow as can be, where most goes wrong.
QUICK = (
    "comparison",
    "decisions",
    "local_calibration",
    "null_distribution",
    "pit_histogram",
    "quantile_reliability",
    "reliability",
    "score_plane",
    "sequential_test",
    "simplex",
    "witness",
)


# Other figures and sizes have a leg of their own, beside the site, which checks those of examples.
CASES = [
    pytest.param(
        name,
        width,
        marks=[] if name in QUICK and width == min(WIDTHS) else pytest.mark.integration,
    )
    for name in FIGURES
    for width in WIDTHS
]


@pytest.mark.parametrize(("name", "width"), CASES)
def test_texts_are_clear(name, width, layout):
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
