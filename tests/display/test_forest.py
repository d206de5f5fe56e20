"""The forest plot shows the numbers of its result."""

from dataclasses import replace

import numpy as np
import pytest
from figures import assert_texts_are_clear, two_classes
from matplotlib import pyplot as plt

from skcalib.display import ForestDisplay
from skcalib.uncertainty import clinical_calibration, confidence_interval

LABEL, PROBA = two_classes(150)
SITE = np.repeat(["a", "b", "c"], 50)
RESULT = clinical_calibration(LABEL, PROBA, by=SITE, n_resamples=5, random_state=0)


def test_what_is_drawn():
    display = ForestDisplay.from_result(RESULT, marker="o")
    assert display.axes_[0].get_xscale() == "log"
    for ax, name, points in zip(display.axes_, display.tables, display.points_, strict=True):
        table, effect = RESULT.tables[name], RESULT.random_effects[name]
        assert points.get_xdata() == pytest.approx([*table.estimate, table.whole.estimate])
        assert points.get_marker() == "o"
        corners = ax.patches[0].get_xy()[:, 0]
        assert corners.min() == pytest.approx(effect.low)
        assert corners.max() == pytest.approx(effect.high)
        prediction = ax.lines[2].get_xdata()
        assert prediction == pytest.approx([effect.prediction_low, effect.prediction_high])
        (ideal,) = set(ax.lines[1].get_xdata())
        assert ideal == 1
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    events = [np.sum(LABEL[site == SITE]) for site in "abc"]
    sites = [f"{site}, {n}/50" for site, n in zip("abc", events, strict=True)]
    assert labels == [*sites, "all samples", "mean over subgroups", "a new subgroup"]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_the_numbers_are_written_beside_the_rows():
    display = ForestDisplay.from_result(RESULT)
    assert [ax.get_title() for ax in display.axes_] == ["O:E ratio", "calibration slope"]
    for ax, (name, table) in zip(display.axes_, display.tables.items(), strict=True):
        effect = RESULT.random_effects[name]
        rows = [(table[site].estimate, *table[site]) for site in "abc"]
        rows += [(table.whole.estimate, *table.whole), (effect.estimate, effect.low, effect.high)]
        written = [f"{value:.2f} ({low:.2f} to {high:.2f})" for value, low, high in rows]
        new = f"{effect.prediction_low:.2f} to {effect.prediction_high:.2f}"
        assert texts(ax) == [*written, new]
        sizes = ax.collections[0].get_sizes()[:3]
        lengths = np.log(table.high / table.low) if ax is display.ax_ else table.high - table.low
        np.testing.assert_array_equal(np.argsort(sizes), np.argsort(-lengths))
        assert sizes.max() == 49


def arrows(ax):
    """The rows at which bars go on, by the direction."""
    return {
        mark: [line.get_ydata()[0] for line in ax.lines if line.get_marker() == mark]
        for mark in "<>"
    }


def test_bars_that_leave_the_axes_end_in_arrows():
    far = replace(
        RESULT.observed_expected_ratio,
        estimate=np.array([0.0, 1.0, np.nan]),
        low=np.array([np.nan, 1e-4, np.nan]),
        high=np.array([np.nan, np.inf, np.nan]),
    )
    (ax,) = ForestDisplay({"observed_expected_ratio": far}, {}).plot().axes_
    assert arrows(ax) == {"<": [0, 1], ">": [1]}
    assert texts(ax)[:3] == ["0.00 (too few)", "1.00 (0.00 to inf)", "–"]
    sizes = ax.collections[0].get_sizes()
    assert (sizes > 0).tolist() == [False, True, False, True]  # without an interval hollow alone
    assert ax.lines[0].get_fillstyle() == "none"
    effect = RESULT.random_effects["calibration_slope"]
    assert effect.prediction_high > RESULT.calibration_slope.high.max()
    (ax,) = ForestDisplay.from_result(RESULT, measures=["calibration_slope"]).axes_
    assert 5.5 in arrows(ax)[">"]


def test_titles_are_as_narrow_as_their_panels(layout):
    ax = plt.subplots(figsize=(4, 2.8), layout="constrained")[1]
    display = ForestDisplay.from_result(RESULT, ax=ax)
    assert_texts_are_clear(display.figure_)
    assert [ax.get_title().count("\n") for ax in display.axes_] == [0, 1]


def test_long_names_have_two_lines(layout):
    site = np.char.add("University hospital of the eastern district, ward ", SITE)
    options = {"by": site, "n_resamples": 5, "random_state": 0}
    interval = confidence_interval("calibration_in_the_large", LABEL, PROBA, **options)
    display = ForestDisplay.from_result(interval)
    assert display.ax_.get_yticklabels()[0].get_text().count("\n") == 1
    assert_texts_are_clear(display.figure_)


def test_all_measures_and_any_metric():
    names = list(RESULT.tables)
    display = ForestDisplay.from_result(RESULT, measures=names)
    assert [ax.get_ylim() for ax in display.axes_] == [display.ax_.get_ylim()] * 7
    options = {"by": SITE, "n_resamples": 5, "random_state": 0}
    table = confidence_interval("smooth_calibration_error", LABEL, PROBA, **options)
    display = ForestDisplay.from_result(table)
    assert len(display.ax_.get_yticklabels()) == 4
    table = confidence_interval("observed_expected_ratio", LABEL, PROBA, by=SITE, random_state=0)
    assert 0.05 < ForestDisplay.from_result(table).ax_.get_xlim()[0] < table.low.min()
    ax = plt.subplots()[1]
    assert display.plot(ax).ax_ is ax


def test_sites_without_events_have_a_row():
    y = np.where(SITE == "a", 0, LABEL)
    result = clinical_calibration(y, PROBA, by=SITE, n_resamples=5, random_state=0)
    display = ForestDisplay.from_result(result, measures=list(result.tables))
    display.figure_.canvas.draw()
    assert display.ax_.get_yticklabels()[0].get_text() == "a, 0/50"


def test_a_measure_without_a_finite_value_has_rows():
    y = np.arange(150) % 2  # separated by the predictions
    table = confidence_interval("calibration_slope", y, 0.3 + 0.4 * y, by=SITE, random_state=0)
    display = ForestDisplay.from_result(table)
    assert len(display.ax_.get_yticklabels()) == 4


@pytest.mark.parametrize(
    ("result", "measures", "message"),
    [
        (RESULT, ["slope"], "measures must be a list of names among"),
        (RESULT, "calibration_slope", "measures must be a list"),
        (RESULT, [], "measures must be a list"),
        (RESULT.e50, ["e50"], "result must be what clinical_calibration returns with `by`"),
        (None, None, "found NoneType"),
    ],
)
def test_bad_input(result, measures, message):
    with pytest.raises(ValueError, match=message):
        ForestDisplay.from_result(result, measures=measures)


def test_unknown_options():
    with pytest.raises(TypeError, match="measure_s"):
        ForestDisplay.from_result(RESULT, measure_s=3)
