"""QuantileRecalibrator: coverage of each level and interval exactly as stated."""

import math

import numpy as np
import pytest

from skcalib.forecasts import EnsembleForecast, GaussianForecast, QuantileForecast
from skcalib.recalibration import QuantileRecalibrator

rng = np.random.default_rng(0)
N = 99
CENTRE = 3 * rng.normal(size=N)
Y = CENTRE + 2 * rng.normal(size=N) + 0.5
GRID = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
FORECAST = QuantileForecast(CENTRE[:, None] + [-1.0, -0.5, 0.0, 0.6, 1.0], GRID)


def left_out(level_type, forecast, y):
    """For each sample the quantiles that the others make of its forecast."""
    n = len(y)
    quantiles = []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        fitted = QuantileRecalibrator(level_type).fit(forecast[rest], y[rest])
        quantiles.append(fitted.transform(forecast[[i]]).values[0])
    return np.array(quantiles)


@pytest.mark.parametrize("n", [10, 20, 33])
def test_coverage_of_exchangeable_samples_is_exact(n):
    # a forecast whose moved quantiles never cross
    forecast, y = FORECAST[:n], Y[:n]
    levels = np.array([0.15, 0.5, 0.85])
    wide = QuantileForecast(forecast.values[:, [0, 2, 4]], levels)
    below = (y[:, None] <= left_out("quantile", wide, y)).mean(axis=0)
    low, *rest = (round(n * level, 9) for level in levels)
    expected = [math.floor(low) / n, *(math.ceil(rank) / n for rank in rest)]
    np.testing.assert_allclose(below, expected)
    assert below[0] <= 0.15
    assert (below[1:] >= levels[1:]).all()
    assert (below[1:] <= levels[1:] + 1 / n).all()
    assert below[2] - below[0] >= 0.7  # so a central interval covers what it says

    moved = left_out("interval", wide, y)
    inside = np.mean((y >= moved[:, 0]) & (y <= moved[:, 2]))
    assert inside == pytest.approx(math.ceil(round(n * 0.7, 9)) / n)


def test_running_extremes_keep_the_bounds():
    """Quantiles that differ wildly cross when moved; sorting them would break the bounds."""
    generator = np.random.default_rng(1)
    n, levels = 100, np.array([0.4, 0.45, 0.5, 0.55])
    values = np.sort(generator.normal(size=(n, 4)) * 5, axis=1)
    y = generator.normal(size=n)
    forecast = QuantileForecast(values, levels)
    below = (y[:, None] <= left_out("quantile", forecast, y)).mean(axis=0)
    assert (below[:2] <= levels[:2] + 1e-12).all()
    assert (below[2:] >= levels[2:] - 1e-12).all()
    fitted = QuantileRecalibrator().fit(forecast, y)
    moved = values + fitted.offsets_
    assert (np.diff(moved, axis=1) < 0).any()
    expected = [
        [min(row[0], row[1], row[2]), min(row[1], row[2]), row[2], max(row[2], row[3])]
        for row in moved
    ]
    np.testing.assert_array_equal(fitted.transform(forecast).values, expected)
    low = QuantileRecalibrator(levels=levels[:2]).fit(forecast, y)
    expected = np.column_stack([moved[:, :2].min(axis=1), moved[:, 1]])
    np.testing.assert_allclose(low.transform(forecast).values, expected)


def test_offsets_by_hand():
    forecast = QuantileForecast(np.zeros((4, 3)), [0.2, 0.5, 0.8])
    y = [3.0, -1.0, 5.0, 2.0]
    levels = QuantileRecalibrator().fit(forecast, y)
    # ranks ⌊5 · 0.2⌋ = 1, ⌈2.5⌉ = 3 and 4 of −1, 2, 3, 5
    np.testing.assert_array_equal(levels.offsets_, [-1, 3, 5])
    intervals = QuantileRecalibrator("interval").fit(forecast, y)
    # the score of (0.2, 0.8) is |y|, and the rank ⌈5 · 0.6⌉ = 3 of 1, 2, 3, 5
    np.testing.assert_array_equal(intervals.offsets_, [-3, 0, 3])


def test_unequal_weights_by_hand():
    forecast = QuantileForecast(np.zeros((3, 1)), [0.5])
    fitted = QuantileRecalibrator().fit(forecast, [1.0, 2.0, 3.0], sample_weight=[4, 1, 1])
    # the first has the level (4/6)/(1 + 18/36) = 0.444, with the second 0.556
    np.testing.assert_array_equal(fitted.offsets_, [2.0])


def test_moved_intervals_are_nested():
    generator = np.random.default_rng(2)
    levels = np.array([0.1, 0.25, 0.4, 0.6, 0.75, 0.9])
    values = np.sort(generator.normal(size=(60, 6)) * [3, 3, 3, 3, 3, 3], axis=1)
    y = 0.2 * generator.normal(size=60)
    forecast = QuantileForecast(values, levels)
    fitted = QuantileRecalibrator("interval").fit(forecast, y)
    new = fitted.transform(forecast).values
    moved = values + fitted.offsets_
    assert (new[:, :3] <= moved[:, :3]).all()
    assert (new[:, 3:] >= moved[:, 3:]).all()
    assert (np.diff(new, axis=1) >= 0).all()
    assert (new[:, 0] == moved[:, :3].min(axis=1)).any()


def test_any_forecast_at_given_levels():
    gaussian = GaussianForecast(CENTRE, 1.0)
    ensemble = EnsembleForecast(CENTRE[:, None] + rng.normal(size=(N, 9)))
    for forecast in (gaussian, ensemble):
        fitted = QuantileRecalibrator(levels=[0.1, 0.5, 0.9]).fit(forecast, Y)
        new = fitted.transform(forecast)
        assert isinstance(new, QuantileForecast)
        below = (Y[:, None] <= new.values).mean(axis=0)
        np.testing.assert_allclose(below, [10 / 99, 50 / 99, 90 / 99])


def test_bad_input():
    with pytest.raises(ValueError, match=r"levels must be given .* found None"):
        QuantileRecalibrator().fit(GaussianForecast(CENTRE, 1.0), Y)
    with pytest.raises(ValueError, match=r"more outcomes for a bound at the level 0.9"):
        QuantileRecalibrator().fit(FORECAST[:8], Y[:8])
    QuantileRecalibrator().fit(FORECAST[:9], Y[:9])
    low = QuantileForecast(FORECAST.values[:, :2], [0.1, 0.3])
    with pytest.raises(ValueError, match=r"at the level 0.1: the rank ⌊\(n \+ 1\) level⌋"):
        QuantileRecalibrator().fit(low[:8], Y[:8])
    skew = QuantileForecast(FORECAST.values, [0.1, 0.3, 0.5, 0.7, 0.95])
    with pytest.raises(ValueError, match="levels must lie symmetrically about 1/2"):
        QuantileRecalibrator("interval").fit(skew, Y)
    fitted = QuantileRecalibrator().fit(FORECAST, Y)
    with pytest.raises(ValueError, match="X must have the levels that it had at fit"):
        fitted.transform(skew)
    with pytest.raises(ValueError, match=r"levels must increase"):
        QuantileRecalibrator(levels=[0.9, 0.1]).fit(FORECAST, Y)
