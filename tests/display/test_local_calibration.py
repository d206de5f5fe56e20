"""The map shows the numbers of `local_calibration`, grey where they may be chance."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import BayesianRidge

from skcalib.datasets import make_forecasts
from skcalib.display import LocalCalibrationDisplay
from skcalib.metrics import local_calibration


def draw(n=200, *, local_bias=0.7, **kwargs):
    y, forecast, positions = make_forecasts(
        n, problem="spatial", return_positions=True, local_bias=local_bias, random_state=0
    )
    style = {"given": positions, "n_cells": 4, "n_resamples": 19, "random_state": 0} | kwargs
    return y, forecast, positions, LocalCalibrationDisplay.from_predictions(y, forecast, **style)


@pytest.mark.parametrize("kind", ["bias", "spread", "error"])
def test_cells_are_those_of_the_function(kind):
    stretch = np.array([10.0, 0.5])
    y, forecast, positions, display = draw(kind=kind)
    low, span = positions.min(axis=0), np.ptp(positions, axis=0)
    # both features in units of their ranges; rows of the map are along the second feature
    centre = [[(i + 0.5) / 4, (j + 0.5) / 4] for j in range(4) for i in range(4)]
    around = local_calibration(
        y,
        forecast,
        given=(positions - low) / span,
        query=centre,
        bandwidth=0.1,
        n_resamples=19,
        random_state=0,
    )
    expected = getattr(around, "squared_error" if kind == "error" else kind).reshape(4, 4)
    if kind == "error":
        expected = np.sqrt(np.maximum(expected, 0))
    np.testing.assert_allclose(display.value, expected, atol=1e-12)
    np.testing.assert_array_equal(display.is_chance.ravel(), around.p_value > 0.05)
    np.testing.assert_allclose(display.x, low[0] + span[0] * np.arange(5) / 4)
    shown = display.mesh_.get_array()
    np.testing.assert_array_equal(np.ma.getmaskarray(shown), display.is_chance)
    stretched = draw(kind=kind, given=stretch * positions)[3]
    np.testing.assert_allclose(stretched.value, display.value, atol=1e-9)
    np.testing.assert_allclose(stretched.y, stretch[1] * display.y)


def test_signs():
    value = draw(1000)[3].value
    assert value[1:3, 1:3].min() > 0.1  # higher than forecast in the middle
    corners = value[[0, 0, -1, -1], [0, -1, 0, -1]]
    assert corners.max() < -0.1


def test_calibrated_forecasts_are_mostly_grey(monkeypatch):
    monkeypatch.setattr(LocalCalibrationDisplay, "plot", lambda self, ax: self)
    options = {"n_cells": 3, "n_resamples": 9, "confidence_level": 0.8}
    grey = []
    for seed in range(30):
        y, forecast, x = make_forecasts(
            60, problem="spatial", return_positions=True, local_bias=0, random_state=seed
        )
        display = LocalCalibrationDisplay.from_predictions(
            y, forecast, given=x, random_state=seed, **options
        )
        grey.append(display.is_chance.mean())
    # nine cells of a map are about as much as five independent ones
    assert np.mean(grey) == pytest.approx(0.8, abs=4 * np.sqrt(0.8 * 0.2 / 150))


def test_cells_without_samples_are_empty():
    _, _, positions, _ = draw()
    corner = (positions > 0.5).all(axis=1)
    y, forecast, positions = (part[~corner] for part in draw()[:3])
    display = LocalCalibrationDisplay.from_predictions(
        y, forecast, given=positions, n_cells=4, n_resamples=1
    )
    is_empty = np.isnan(display.value)
    assert is_empty[3, 3]
    assert not is_empty[:2].any()


def test_names_come_from_data_frames():
    _, _, positions, _ = draw()
    frame = pd.DataFrame(positions, columns=["longitude", "latitude"])
    display = draw(given=frame, name="map")[3]
    assert display.ax_.get_xlabel() == "longitude"
    assert display.ax_.get_ylabel() == "latitude"
    assert display.ax_.get_title() == "map"
    assert "above 0" in display.colorbar_.ax.get_ylabel()


def test_from_estimator():
    rng = np.random.default_rng(0)
    X = rng.random((100, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(100)
    model = BayesianRidge().fit(X, y)
    options = {"n_cells": 2, "n_resamples": 5, "random_state": 0}
    display = LocalCalibrationDisplay.from_estimator(model, X, y, **options)
    same = LocalCalibrationDisplay.from_predictions(
        y, model.predict(X, return_std=True), given=X, **options
    )
    np.testing.assert_array_equal(display.value, same.value)
    assert display.ax_.get_title() == "BayesianRidge"
    other = LocalCalibrationDisplay.from_estimator(model, X, y, given=X[:, ::-1], **options)
    np.testing.assert_allclose(other.value, display.value.T, atol=1e-12)


def test_bad_input():
    y, forecast, positions, _ = draw()
    for given, message in (
        (positions[:, 0], "given must have two columns"),
        (np.column_stack([positions, positions]), r"found shape \(200, 4\)"),
        (
            np.column_stack([positions[:, 0], np.ones(200)]),
            "constant column; found one in column 1",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            LocalCalibrationDisplay.from_predictions(y, forecast, given=given)
    with pytest.raises(ValueError, match="kind"):
        draw(kind="variance")
