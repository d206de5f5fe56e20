"""The reliability diagram draws the numbers of the isotonic recalibrator."""

import matplotlib as mpl
import numpy as np
import pytest
from problems import random_problem
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

from skcalib.display import ReliabilityDisplay
from skcalib.metrics import smooth_calibration_error
from skcalib.recalibration import IsotonicRecalibrator

mpl.use("Agg")
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_curve_is_the_isotonic_recalibrator():
    label, proba = random_problem(np.random.default_rng(0), 200)
    display = ReliabilityDisplay.from_predictions(label, proba, random_state=0)
    recalibrator = IsotonicRecalibrator(strict=False).fit(proba, label)
    knots, values = recalibrator.maps_[0]
    np.testing.assert_array_equal(display.predicted, knots)
    np.testing.assert_array_equal(display.observed, values)
    np.testing.assert_array_equal(display.line_.get_xdata(), display.predicted)
    assert display.error == pytest.approx(smooth_calibration_error(label, proba), abs=1e-15)
    assert f"smooth calibration error {display.error:.3f}" in display.line_.get_label()
    assert display.shares.sum() == pytest.approx(1)
    assert display.ax_.get_xlabel() == "predicted probability of 1"


def test_several_classes_are_shown_by_confidence():
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X, y)
    _, ax = plt.subplots()
    display = ReliabilityDisplay.from_estimator(model, X, y, ax=ax, random_state=0)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.line_.get_label().startswith("GaussianNB")
    assert ax.get_xlabel() == "predicted probability of the predicted class"
    expected = smooth_calibration_error(y, model.predict_proba(X))
    assert display.error == pytest.approx(expected, abs=1e-15)


def test_band_covers_calibrated_curves():
    rng = np.random.default_rng(0)
    proba = rng.random(500)
    inside = []
    ax = plt.figure().add_subplot()
    for seed in range(50):
        label = (rng.random(500) < proba).astype(int)
        display = ReliabilityDisplay.from_predictions(label, proba, random_state=seed, ax=ax)
        grid, lower, upper = display.band
        curve = np.interp(grid, display.predicted, display.observed)
        inside.append(np.mean((lower <= curve) & (curve <= upper)))
        ax.clear()
    assert np.mean(inside) == pytest.approx(0.9, abs=0.03)


def test_without_a_band():
    display = ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7], confidence_level=None)
    assert display.band is None
    with pytest.raises(ValueError, match="confidence_level"):
        ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7], confidence_level=1.5)


def test_weights_reach_the_curve():
    label, proba = random_problem(np.random.default_rng(0), 40)
    weight = np.random.default_rng(1).integers(1, 4, size=40)
    weighted = ReliabilityDisplay.from_predictions(label, proba, sample_weight=weight)
    repeated = ReliabilityDisplay.from_predictions(
        np.repeat(label, weight), np.repeat(proba, weight)
    )
    np.testing.assert_allclose(weighted.observed, repeated.observed, atol=1e-12)
    np.testing.assert_allclose(weighted.shares, repeated.shares, atol=1e-12)


def test_models_share_axes():
    rng = np.random.default_rng(0)
    _, ax = plt.subplots()
    displays = [
        ReliabilityDisplay.from_predictions(*random_problem(rng, 50), name=name, ax=ax)
        for name in ("first", "second")
    ]
    assert len({display.line_.get_color() for display in displays}) == 2
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(legend) == 3
    assert [label.split("\n")[0] for label in legend[1:]] == ["first", "second"]


def test_style_and_name_reach_the_curve():
    display = ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7], color="red", linewidth=3)
    assert display.line_.get_color() == "red"
    assert display.line_.get_linewidth() == 3
    display.plot(name="again", color="black")
    assert display.line_.get_label().startswith("again")


def test_a_bare_curve_can_be_drawn():
    display = ReliabilityDisplay(np.array([0.1, 0.9]), np.array([0.2, 0.8])).plot()
    assert display.line_.get_label() == "observed frequency"


def test_unfitted_estimators_are_refused():
    with pytest.raises(NotFittedError):
        ReliabilityDisplay.from_estimator(GaussianNB(), [[0.0], [1.0]], [0, 1])
