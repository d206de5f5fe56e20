"""The displays of PITs show the numbers of the metrics, in bands that calibrated forecasts keep."""

from functools import partial

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.linear_model import BayesianRidge, Ridge

from skcalib.datasets import make_forecasts
from skcalib.display import PITHistogramDisplay, QuantileReliabilityDisplay
from skcalib.forecasts import QuantileForecast
from skcalib.metrics import quantile_calibration_error

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]

DISPLAYS = [PITHistogramDisplay, QuantileReliabilityDisplay]


def make_quantile_forecasts(n, *, random_state, **kwargs):
    y, forecast = make_forecasts(n, random_state=random_state, **kwargs)
    return y, QuantileForecast(forecast.quantiles(LEVELS), LEVELS)


PROBLEMS = {
    "gaussian": make_forecasts,
    "ensemble": partial(make_forecasts, problem="ensemble"),
    "counts": partial(make_forecasts, problem="counts"),
    "zero-inflated": partial(make_forecasts, problem="zero-inflated"),
    "quantiles": make_quantile_forecasts,
}


def share_in_bin(low, high, start, stop, *, is_last):
    """The part of a PIT's interval [low, high] in a bin (start, stop], one at a time."""
    if high - low < 1e-12:
        below_stop = high <= stop or is_last
        above_start = high > start or start == 0
        return float(below_stop and above_start)
    return max(0.0, min(high, stop) - max(low, start)) / (high - low)


@pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS)
def test_bars_are_the_mean_shares_of_the_bins(make):
    y, forecast = make(60, random_state=0)
    weight = np.random.default_rng(0).random(60)
    display = PITHistogramDisplay.from_predictions(
        y, forecast, sample_weight=weight, n_bins=7, confidence_level=None
    )
    expected = np.zeros(7)
    for low, high, w in zip(*forecast.pit_bounds(y), weight, strict=True):
        for k in range(7):
            share = share_in_bin(low, high, k / 7, (k + 1) / 7, is_last=k == 6)
            expected[k] += w * share / weight.sum() * 7
    np.testing.assert_allclose(display.density, expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(display.edges, np.arange(8) / 7)
    np.testing.assert_array_equal(display.bars_.get_data().values, display.density)
    error = quantile_calibration_error(y, forecast, sample_weight=weight)
    assert display.error == pytest.approx(error, abs=1e-14)
    assert f"quantile calibration error {error:.3f}" in display.bars_.get_label()


def test_saturated_pits_stay_in_the_outer_bins():
    display = PITHistogramDisplay.from_predictions(
        [-1e9, 1e9, 0.0], (np.zeros(3), np.ones(3)), n_bins=4, confidence_level=None
    )
    np.testing.assert_allclose(display.density * 3 / 4, [1, 1, 0, 1])


def test_default_bins():
    def edges(problem):
        display = PITHistogramDisplay.from_predictions(*problem, confidence_level=None)
        return display.edges

    np.testing.assert_array_equal(edges(make_forecasts(20)), np.arange(11) / 10)
    ranks = edges(make_forecasts(20, problem="ensemble", n_members=4))
    np.testing.assert_array_equal(ranks, np.arange(6) / 5)
    many = edges(make_forecasts(20, problem="ensemble", n_members=50))
    np.testing.assert_array_equal(many, np.arange(11) / 10)
    grid = edges(make_quantile_forecasts(20, random_state=0))
    np.testing.assert_array_equal(grid, [0, *LEVELS, 1])


def test_atoms_may_be_drawn():
    y, forecast = make_forecasts(100, problem="counts", random_state=0)
    display = PITHistogramDisplay.from_predictions(y, forecast, atoms="randomize", random_state=5)
    pit = forecast.pit(y, random_state=5)
    expected = np.histogram(pit, bins=10, range=(0, 1), density=True)[0]
    np.testing.assert_allclose(display.density, expected, atol=1e-12)
    # the band is that of single PITs, wider than that of averages
    average = PITHistogramDisplay.from_predictions(y, forecast, random_state=5)
    assert (display.band.upper - display.band.lower).mean() > (
        average.band.upper - average.band.lower
    ).mean()


def test_bands_of_bars_of_different_widths():
    display = PITHistogramDisplay.from_predictions(
        *make_quantile_forecasts(400, random_state=0), atoms="randomize", random_state=0
    )
    width = np.diff(display.edges)
    spread = np.sqrt((1 - width) / (400 * width))  # of binomial counts
    found = (display.band.upper - display.band.lower) / (2 * 1.645)
    np.testing.assert_allclose(found, spread, rtol=0.25)


@pytest.mark.parametrize(
    ("display", "make"),
    [
        (PITHistogramDisplay, make_forecasts),
        (PITHistogramDisplay, partial(make_forecasts, problem="ensemble")),
        (PITHistogramDisplay, make_quantile_forecasts),
        (QuantileReliabilityDisplay, make_forecasts),
        (QuantileReliabilityDisplay, partial(make_forecasts, problem="zero-inflated")),
    ],
)
def test_bands_hold_calibrated_forecasts(display, make, monkeypatch):
    monkeypatch.setattr(display, "plot", lambda self, ax: self)
    one, all_of_them = [], []
    for seed in range(16):
        weight = np.random.default_rng(seed).random(50) if seed % 2 else None
        shown = display.from_predictions(
            *make(50, random_state=seed),
            sample_weight=weight,
            confidence_level=0.8,
            n_resamples=50,
            random_state=seed,
        )
        if display is PITHistogramDisplay:
            value, inner = shown.density, slice(None)
        else:  # nothing is by chance at the levels 0 and 1
            value, inner = shown.observed, (shown.levels > 0.02) & (shown.levels < 0.98)
        band, slack = shown.band, 1e-9
        within = (band.lower - slack <= value) & (value <= band.upper + slack)
        one.append(within[inner].mean())
        within = (band.lower_of_all - slack <= value) & (value <= band.upper_of_all + slack)
        all_of_them.append(within.all())
    # few resamples make the bands uneven
    assert np.mean(one) == pytest.approx(0.8, abs=0.02 + 4 * np.std(one) / np.sqrt(16))
    assert np.mean(all_of_them) == pytest.approx(0.8, abs=4 * np.sqrt(0.8 * 0.2 / 16))


@pytest.mark.parametrize("level_type", ["quantile", "interval"])
@pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS)
def test_curve_and_error_are_those_of_the_metric(make, level_type):
    y, forecast = make(60, random_state=1)
    weight = np.random.default_rng(0).random(60)
    display = QuantileReliabilityDisplay.from_predictions(
        y, forecast, sample_weight=weight, level_type=level_type, random_state=0
    )
    error = quantile_calibration_error(y, forecast, sample_weight=weight, level_type=level_type)
    assert display.error == pytest.approx(error, abs=1e-14)
    for level, observed in zip(display.levels[1::40], display.observed[1::40], strict=True):
        gap = quantile_calibration_error(
            y, forecast, sample_weight=weight, level_type=level_type, levels=[level]
        )
        assert abs(observed - level) == pytest.approx(gap, abs=1e-12)
    np.testing.assert_array_equal(display.line_.get_xydata().T, [display.levels, display.observed])
    assert level_type in display.ax_.get_xlabel()


def test_share_below_quantiles_by_hand():
    # PITs Φ(0) = 1/2 twice and 1
    forecast = ([0.0, 0.0, 0.0], 1.0)
    display = QuantileReliabilityDisplay.from_predictions(
        [0.0, 0.0, 99.0], forecast, levels=[0.9, 0.1, 0.5], confidence_level=None
    )
    np.testing.assert_array_equal(display.levels, [0.1, 0.5, 0.9])
    np.testing.assert_allclose(display.observed, [0, 2 / 3, 2 / 3])
    assert display.band is None


def test_quantiles_are_shown_at_their_levels():
    y, forecast = make_quantile_forecasts(50, random_state=0)
    display = QuantileReliabilityDisplay.from_predictions(y, forecast, random_state=0)
    np.testing.assert_array_equal(display.levels, LEVELS)
    np.testing.assert_allclose(display.observed, (y[:, None] <= forecast.values).mean(axis=0))
    display = QuantileReliabilityDisplay.from_predictions(
        y, forecast, level_type="interval", random_state=0
    )
    np.testing.assert_allclose(display.levels, [0.5, 0.9])
    inside = (forecast.values[:, 0] < y) & (y <= forecast.values[:, -1])
    assert display.observed[-1] == pytest.approx(inside.mean())


@pytest.mark.parametrize("display", DISPLAYS)
def test_from_estimator(display):
    X, y = load_diabetes(return_X_y=True)
    model = BayesianRidge().fit(X[:200], y[:200])
    _, ax = plt.subplots()
    shown = display.from_estimator(model, X[200:], y[200:], random_state=0, ax=ax)
    same = display.from_predictions(
        y[200:], model.predict(X[200:], return_std=True), random_state=0
    )
    assert shown.ax_ is ax
    assert shown.figure_ is ax.figure
    assert shown.name == "BayesianRidge"
    assert shown.error == same.error
    np.testing.assert_array_equal(shown.band.upper_of_all, same.band.upper_of_all)
    with pytest.raises(TypeError, match="forecast"):
        display.from_estimator(Ridge().fit(X, y), X, y)


@pytest.mark.parametrize("display", DISPLAYS)
def test_models_share_axes(display):
    _, ax = plt.subplots()
    for name, dispersion in (("first", 0.7), ("second", 1.5)):
        problem = make_forecasts(50, dispersion=dispersion, random_state=0)
        shown = display.from_predictions(*problem, name=name, ax=ax, random_state=0)
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [text.split("\n")[0] for text in legend] == [
        legend[0],
        legend[1],
        "calibrated",
        "first",
        "second",
    ]
    assert all("by chance (90 %)" in text for text in legend[:2])
    assert shown.plot(name="again", color="red").ax_ is not ax


def test_bad_input():
    y, forecast = make_forecasts(20, random_state=0)
    for display in DISPLAYS:
        with pytest.raises(ValueError, match="confidence_level"):
            display.from_predictions(y, forecast, confidence_level=1.5)
        with pytest.raises(ValueError, match="y_true"):
            display.from_predictions(y[1:], forecast)
        with pytest.raises(TypeError, match="y_forecast must be a forecast"):
            display.from_predictions(y, np.ones((20, 2)))
    with pytest.raises(ValueError, match="atoms"):
        PITHistogramDisplay.from_predictions(y, forecast, atoms="drop")
    with pytest.raises(ValueError, match="levels"):
        QuantileReliabilityDisplay.from_predictions(y, forecast, levels=[0.5, 1.5])


def test_bare_displays_can_be_drawn():
    bars = PITHistogramDisplay(np.array([0, 0.5, 1]), np.array([0.8, 1.2])).plot()
    assert bars.bars_.get_label() == "outcomes"
    curve = QuantileReliabilityDisplay(np.array([0.5]), np.array([0.6])).plot()
    assert curve.line_.get_label() == "outcomes"


def test_the_legend_of_many_models_is_below_the_bars():
    ax = plt.subplots(layout="constrained")[1]
    for k in range(6):
        y, forecast = make_forecasts(40, random_state=k)
        PITHistogramDisplay.from_predictions(y, forecast, n_resamples=5, name=f"{k}", ax=ax)
    ax.figure.draw_without_rendering()
    legend, bars = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert legend.y1 < bars.y0
    assert bars.height > 0.3 * ax.figure.bbox.height


@pytest.mark.parametrize("name", [None, "a model"])
def test_the_legend_of_one_model_is_above_what_is_drawn(name, layout):
    y, forecast = make_forecasts(6, random_state=0)
    shown = PITHistogramDisplay.from_predictions(y, forecast, n_resamples=20, name=name)
    shown.figure_.draw_without_rendering()
    top = shown.ax_.transData.transform((0, shown.ax_.dataLim.y1))[1]
    assert shown.ax_.get_legend().get_window_extent().y0 > top
