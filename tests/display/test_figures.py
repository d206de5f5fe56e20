"""Texts of all figures can be read at several sizes, and legends hide no curve."""

import numpy as np
import pytest
from figures import (
    FIGURES,
    WIDTHS,
    assert_legends_hide_no_curve,
    assert_texts_are_clear,
    two_classes,
)
from matplotlib import pyplot as plt

from skcalib import display
from skcalib.datasets import make_forecasts

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
        name, width, marks=[] if name in QUICK and width == min(WIDTHS) else pytest.mark.integration
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


LONG = "gradient boosting with 500 trees, fitted to the data of all hospitals (version 3.14)"
CLASS = "neoplasm of the upper outer quadrant of the breast, in stage"


def _long(k):
    return np.array([f"{CLASS} {one}" for one in "abcdefghijkl"])[k]


def _of_classes(which, n_classes, **options):
    def draw():
        generator = np.random.default_rng(0)
        proba = generator.dirichlet(np.ones(n_classes), 60)
        label = proba.argmax(1)
        options_of_all = {"labels": _long(np.arange(n_classes)), "name": LONG} | options
        return getattr(display, which).from_predictions(_long(label), proba, **options_of_all)

    return draw


CLASSWISE = {"multi_class": "classwise"}
MODELS = {LONG: two_classes(60)[1], "other": two_classes(60, 1.0)[1]}
LONG_NAMES = {
    "reliability": _of_classes("ReliabilityDisplay", 2, band=None),
    "classes": _of_classes("ReliabilityDisplay", 10, band=None, **CLASSWISE),
    "witness": _of_classes("WitnessDisplay", 2),
    "witness_classes": _of_classes("WitnessDisplay", 10, **CLASSWISE),
    "simplex": _of_classes("SimplexDisplay", 3, random_state=0, n_resamples=9),
    "decisions": _of_classes("DecisionDisplay", 3),
    "decisions_loss": _of_classes("DecisionDisplay", 2, kind="loss"),
    "bars": _of_classes("ScoreDecompositionDisplay", 2, random_state=0),
    "points": _of_classes("ScoreDecompositionDisplay", 2, random_state=0, kind="points"),
    "comparison": lambda: display.ComparisonDisplay.from_predictions(
        two_classes(60)[0], MODELS, n_resamples=9, random_state=0
    ),
    "sequential": lambda: display.SequentialTestDisplay([1, 2], [0.0, 9.0], name=LONG).plot(),
    "quantiles": lambda: display.QuantileReliabilityDisplay.from_predictions(
        *make_forecasts(60, random_state=0), name=LONG, random_state=0
    ),
}
SHOWN = ("reliability", "decisions")  # others are slow, and have the leg of the site


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in SHOWN else pytest.mark.integration)
        for name in LONG_NAMES
    ],
)
def test_long_names_are_broken_and_shortened(name, layout):
    assert_texts_are_clear(LONG_NAMES[name]().figure_)  # a collapsed layout would warn


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
