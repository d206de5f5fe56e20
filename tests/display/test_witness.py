"""The curve is the smoothed residual, the bars are the residuals, and the error is the metric."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from figures import several_classes, two_classes
from matplotlib import pyplot as plt
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from skcalib.datasets import make_temperature_family
from skcalib.display import WitnessDisplay
from skcalib.display._panels import note_of_left_out
from skcalib.metrics import smooth_calibration_error, smooth_calibration_witness


@pytest.fixture
def ax():
    """Axes without a layout engine, which takes most of the time."""
    return plt.subplots()[1]


def test_by_hand(ax):
    display = WitnessDisplay.from_predictions([1, 1, 0, 1], [0.25, 0.25, 0.75, 0.75], ax=ax)
    (curve,) = display.curves
    np.testing.assert_array_equal(curve.predicted, [0.25, 0.75])
    np.testing.assert_allclose(curve.residual, [0.375, -0.125])
    np.testing.assert_allclose(curve.witness, [1.0, 0.5])
    assert curve.error == pytest.approx(0.3125)
    bars, edges, _ = display.bars_[0].get_data()
    np.testing.assert_allclose(bars[[10, 30]], [0.375, -0.125])
    np.testing.assert_allclose(edges[[10, 30]], [0.25, 0.75])


def naive_smooth_residuals(x, proba, residual, weight):
    """Means of residuals by a normal kernel that 0 and 1 reflect."""
    weight = weight / weight.sum()
    width = 2 * np.sqrt(weight @ (proba - weight @ proba) ** 2) * (weight @ weight) ** 0.2
    shifts = [side * proba + shift for side in (-1, 1) for shift in (-2, 0, 2)]
    kernel = sum(np.exp(-(((x[:, None] - at) / width) ** 2) / 2) for at in shifts) * weight
    return kernel @ residual / kernel.sum(axis=1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_artists_have_the_numbers_of_the_metric(n_classes, weighted, ax):
    y, proba = two_classes(200) if n_classes == 2 else several_classes(200, n_classes)
    weight = np.random.default_rng(0).random(200) if weighted else None
    display = WitnessDisplay.from_predictions(y, proba, sample_weight=weight, name="model", ax=ax)
    error = smooth_calibration_error(y, proba, sample_weight=weight)
    points, values = smooth_calibration_witness(y, proba, sample_weight=weight)
    (curve,) = display.curves
    np.testing.assert_array_equal(curve.predicted, points)
    np.testing.assert_allclose(curve.witness, values)
    weight_of = np.ones(200) if weight is None else weight
    shown = proba if n_classes == 2 else proba.max(axis=1)
    share = [weight_of[shown == point].sum() / weight_of.sum() for point in points]
    np.testing.assert_allclose(curve.share, share)
    np.testing.assert_allclose(display.curves[0].error, error, rtol=1e-12)
    assert display.line_.get_label() == f"model, smooth calibration error {error:.3f}"
    if n_classes == 2:
        residual = y - proba
    else:
        residual = (y == np.array(list("abcd"))[proba.argmax(axis=1)]) - proba.max(axis=1)
    x, drawn = display.line_.get_data()
    below = [curve.share @ (points < end) for end in (x[0], x[-1])]
    assert below[0] <= 0.025
    assert below[1] + curve.share.max() >= 0.975 - 1e-12
    expected = naive_smooth_residuals(x, shown, residual, weight_of)
    np.testing.assert_allclose(drawn, expected, atol=2e-4)  # kernels are interpolated
    mean_residual = np.average(residual, weights=weight)
    np.testing.assert_allclose(display.bars_[0].get_data().values.sum(), mean_residual, rtol=1e-9)
    assert display.ax_ is ax


def test_a_biased_model_has_a_curve_at_its_bias(ax):
    """Not one that is flat at 0, as if it erred nowhere."""
    rng = np.random.default_rng(0)
    proba = rng.uniform(0.1, 0.6, 2000)
    y = rng.random(2000) < proba + 0.25
    display = WitnessDisplay.from_predictions(y, proba, ax=ax)
    low, high = ax.get_ylim()
    (curve,) = display.curves
    assert curve.error == pytest.approx(0.25, abs=0.04)
    np.testing.assert_allclose(display.line_.get_ydata(), curve.error, atol=0.1)
    assert low < 0 < display.line_.get_ydata().max() < high


def test_the_curve_of_a_calibrated_model_looks_flat():
    rng = np.random.default_rng(0)
    for scale in (1.0, 0.1):
        proba = scale * rng.random(20_000)
        ax = plt.subplots()[1]
        display = WitnessDisplay.from_predictions(rng.random(20_000) < proba, proba, ax=ax)
        assert np.abs(display.line_.get_ydata()).max() < -0.3 * ax.get_ylim()[0]


def test_from_estimator(ax):
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X, y)
    proba = model.predict_proba(X)
    shown = WitnessDisplay.from_estimator(model, X, y, ax=ax)
    expected = WitnessDisplay.from_predictions(y, proba, ax=ax)
    np.testing.assert_array_equal(shown.curves[0].witness, expected.curves[0].witness)
    assert shown.name == "GaussianNB"
    grids = [
        make(multi_class="classwise", max_panels=2, by=None, ax=plt.subplots(1, 2)[1])
        for make in (
            partial(WitnessDisplay.from_estimator, model, X, y),
            partial(WitnessDisplay.from_predictions, y, proba),
        )
    ]
    assert grids[0].left_out == grids[1].left_out
    for one, other in zip(grids[0].curves, grids[1].curves, strict=True):
        np.testing.assert_array_equal(one.witness, other.witness)
    names = np.array(["b", "a"])
    model.fit(X[50:], names[y[50:] - 1])
    shown = WitnessDisplay.from_estimator(model, X[50:], names[y[50:] - 1], pos_label="a", ax=ax)
    points, values = smooth_calibration_witness(
        y[50:] == 2, model.predict_proba(X[50:])[:, 0], labels=[False, True]
    )
    np.testing.assert_array_equal(shown.curves[0].predicted, points)
    np.testing.assert_array_equal(shown.curves[0].witness, values)
    assert shown.ax_.get_xlabel() == "predicted probability of a"


def test_models_share_axes_and_strip(ax):
    y, proba = make_temperature_family(60, random_state=0)
    first = WitnessDisplay.from_predictions(y, proba, color="k", ax=ax)
    (curve,) = first.curves
    second = WitnessDisplay([replace(curve, residual=3 * curve.residual)]).plot(ax)
    assert second.strips_ == first.strips_
    low, high = ax.get_ylim()
    WitnessDisplay([replace(curve, smoothed=-curve.smoothed)]).plot(ax)
    assert ax.get_ylim() == pytest.approx((min(low, -high), max(high, -low)))
    assert second.strips_[0].get_ylim()[1] >= np.abs(second.bars_[0].get_data().values).max()
    assert first.line_.get_color() == "k"
    assert first.line_.get_linestyle() != second.line_.get_linestyle()


@pytest.mark.parametrize("weighted", [False, True])
def test_panels_of_classes_have_the_numbers_of_the_metric(weighted):
    y, proba = several_classes(100, 4)
    weight = np.random.default_rng(0).random(100) if weighted else None
    axes = plt.subplots(1, 3)[1]
    display = WitnessDisplay.from_predictions(
        y, proba, sample_weight=weight, multi_class="classwise", max_panels=3, ax=axes
    )
    errors = {
        name: smooth_calibration_error(y == name, proba[:, k], sample_weight=weight)
        for k, name in enumerate("abcd")
    }
    worst = sorted(errors, key=lambda name: -errors[name])
    assert [curve.title for curve in display.curves] == worst[:3]
    assert display.left_out == {worst[3]: pytest.approx(errors[worst[3]], rel=1e-12)}
    assert f"not shown: {worst[3]} (error {errors[worst[3]]:.3f})" == (
        note_of_left_out(display.left_out)
    )
    for ax, line, bars, name in zip(axes, display.lines_, display.bars_, worst[:3], strict=True):
        k = "abcd".index(name)
        points, values = smooth_calibration_witness(y == name, proba[:, k], sample_weight=weight)
        (curve,) = (curve for curve in display.curves if curve.title == name)
        np.testing.assert_array_equal(line.get_data(), [curve.positions, curve.smoothed])
        np.testing.assert_array_equal(curve.predicted, points)
        np.testing.assert_allclose(curve.witness, values)
        gap = np.average((y == name) - proba[:, k], weights=weight)
        np.testing.assert_allclose(bars.get_data().values.sum(), gap, atol=1e-12)
        assert ax.get_title() == f"{name}\nsmooth CE {errors[name]:.3f}"
        assert ax.get_ylim() == axes[0].get_ylim()
    assert len({strip.get_ylim() for strip in display.strips_}) == 1
    assert display.ax_ is axes[0]
    display.plot(axes, name="again")
    assert axes[0].get_title().endswith(f", {errors[worst[0]]:.3f}")


def test_panels_of_subgroups_and_of_predicted_classes():
    y, proba = several_classes(100, 3)
    axes = plt.subplots(1, 3)[1]
    display = WitnessDisplay.from_predictions(y, proba, multi_class="top-label", ax=axes)
    mean = 0.0
    for curve in display.curves:
        rows = np.array(list("abc"))[proba.argmax(axis=1)] == curve.title
        error = smooth_calibration_error(y[rows] == curve.title, proba[rows].max(axis=1))
        assert curve.error == pytest.approx(error, rel=1e-12)
        mean += rows.mean() * error
    assert mean == pytest.approx(smooth_calibration_error(y, proba, multi_class="top-label"))
    by = np.arange(100) % 3
    display = WitnessDisplay.from_predictions(y, proba, by=by, ax=plt.subplots(1, 3)[1])
    for k, curve in enumerate(display.curves):
        error = smooth_calibration_error(y[by == k], proba[by == k], labels=list("abc"))
        assert curve.error == pytest.approx(error, rel=1e-12)


def test_a_single_prediction_can_be_seen(ax):
    assert WitnessDisplay.from_predictions([1, 0], [0.5, 0.5], ax=ax).line_.get_marker() == "o"


def test_bad_input():
    with pytest.raises(TypeError, match="unknown option 'colour'"):
        WitnessDisplay.from_predictions([0, 1], [0.5, 0.5], colour="k")
    with pytest.raises(TypeError, match="Did you mean 'sample_weight'"):
        WitnessDisplay.from_predictions([0, 1], [0.5, 0.5], sample_weights=[1, 1])
    with pytest.raises(TypeError, match="Did you mean 'multi_class'"):
        WitnessDisplay.from_predictions([0, 1], [0.5, 0.5], multiclass="classwise")
    with pytest.raises(ValueError, match="The 'multi_class' parameter of WitnessDisplay"):
        WitnessDisplay.from_predictions([0, 1], [0.5, 0.5], multi_class="ovr")
    y, proba = several_classes(20, 3)
    with pytest.raises(ValueError, match="by must be None with multi_class='classwise'"):
        WitnessDisplay.from_predictions(y, proba, multi_class="classwise", by=[0, 1] * 10)
    with pytest.raises(ValueError, match="y_proba"):
        WitnessDisplay.from_predictions([0, 1], [0.5, 1.5])
