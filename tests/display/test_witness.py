"""The curve is the witness of the metric, and the bars are the residuals that it sees."""

import matplotlib as mpl
import numpy as np
import pytest
from figures import several_classes, two_classes
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from skcalib.datasets import make_temperature_family
from skcalib.display import WitnessDisplay
from skcalib.metrics import smooth_calibration_error, smooth_calibration_witness

mpl.use("Agg")
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    """Axes without a layout engine, which takes most of the time."""
    return plt.subplots()[1]


def test_by_hand(ax):
    display = WitnessDisplay.from_predictions([1, 1, 0, 1], [0.25, 0.25, 0.75, 0.75], ax=ax)
    np.testing.assert_array_equal(display.predicted, [0.25, 0.75])
    np.testing.assert_allclose(display.residual, [0.375, -0.125])
    np.testing.assert_allclose(display.witness, [1.0, 0.5])
    assert display.error == pytest.approx(0.3125)
    bars, edges, _ = display.bars_.get_data()
    np.testing.assert_allclose(bars[[10, 30]], [0.375, -0.125])
    np.testing.assert_allclose(edges[[10, 30]], [0.25, 0.75])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_artists_have_the_numbers_of_the_metric(n_classes, weighted, ax):
    y, proba = two_classes(200) if n_classes == 2 else several_classes(200, n_classes)
    weight = np.random.default_rng(0).random(200) if weighted else None
    display = WitnessDisplay.from_predictions(y, proba, sample_weight=weight, name="model", ax=ax)
    error = smooth_calibration_error(y, proba, sample_weight=weight)
    points, values = smooth_calibration_witness(y, proba, sample_weight=weight)
    np.testing.assert_array_equal(display.line_.get_data(), [points, values])
    np.testing.assert_allclose(display.error, error, rtol=1e-12)
    assert f"model\nsmooth calibration error {error:.3f}" in display.line_.get_label()
    if n_classes == 2:
        residual = (y == "malignant") - proba
    else:
        residual = (y == np.array(list("abcd"))[proba.argmax(axis=1)]) - proba.max(axis=1)
    mean_residual = np.average(residual, weights=weight)
    np.testing.assert_allclose(display.bars_.get_data().values.sum(), mean_residual, rtol=1e-9)
    assert display.ax_ is ax


def test_from_estimator(ax):
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X, y)
    proba = model.predict_proba(X)
    shown = WitnessDisplay.from_estimator(model, X, y, ax=ax)
    expected = WitnessDisplay.from_predictions(y, proba, ax=ax)
    np.testing.assert_array_equal(shown.witness, expected.witness)
    assert shown.name == "GaussianNB"
    names = np.array(["b", "a"])
    model.fit(X[50:], names[y[50:] - 1])
    shown = WitnessDisplay.from_estimator(model, X[50:], names[y[50:] - 1], pos_label="a", ax=ax)
    points, values = smooth_calibration_witness(
        y[50:] == 2, model.predict_proba(X[50:])[:, 0], labels=[False, True]
    )
    np.testing.assert_array_equal(shown.predicted, points)
    np.testing.assert_array_equal(shown.witness, values)
    assert shown.ax_.get_xlabel() == "predicted probability of a"


def test_models_share_axes_and_strip(ax):
    y, proba = make_temperature_family(60, random_state=0)
    first = WitnessDisplay.from_predictions(y, proba, color="k", ax=ax)
    second = WitnessDisplay(first.predicted, first.witness, 3 * first.residual).plot(ax)
    assert second.strip_ is first.strip_
    ends = (-0.05, 1.05) if first.witness.max() > 0 else (-1.05, 0.05)
    assert ax.get_ylim() == ends
    WitnessDisplay(first.predicted, -first.witness, -first.residual).plot(ax)
    assert ax.get_ylim() == (-1.05, 1.05)
    assert second.strip_.get_ylim()[1] >= np.abs(second.bars_.get_data().values).max()
    assert first.line_.get_color() == "k"
    assert first.line_.get_linestyle() != second.line_.get_linestyle()


def test_a_single_prediction_can_be_seen(ax):
    assert WitnessDisplay.from_predictions([1, 0], [0.5, 0.5], ax=ax).line_.get_marker() == "o"


def test_bad_input():
    with pytest.raises(TypeError, match="unknown option 'colour'"):
        WitnessDisplay.from_predictions([0, 1], [0.5, 0.5], colour="k")
    with pytest.raises(TypeError, match="Did you mean 'sample_weight'"):
        WitnessDisplay.from_predictions([0, 1], [0.5, 0.5], sample_weights=[1, 1])
    with pytest.raises(ValueError, match="y_proba"):
        WitnessDisplay.from_predictions([0, 1], [0.5, 1.5])
