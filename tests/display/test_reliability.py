"""The reliability diagram draws the numbers of the metrics, of single models and of many parts."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from figures import assert_texts_are_clear, several_classes, two_classes
from matplotlib import pyplot as plt
from problems import random_problem
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from skcalib.display import ReliabilityDisplay
from skcalib.metrics import (
    expected_calibration_error,
    score_decomposition,
    smooth_calibration_error,
    smooth_expected_calibration_error,
)
from skcalib.metrics._reliability_curve import ReliabilityCurve
from skcalib.recalibration import IsotonicRecalibrator

METHODS = ("isotonic", "smooth", "binned")
QUICK = {"n_resamples": 5, "random_state": 0}
OPTIONS = {"isotonic": {}, "smooth": {"bandwidth": 0.05}, "binned": {"n_bins": 10}}


@pytest.fixture
def undrawn(monkeypatch):
    """Only the numbers."""
    monkeypatch.setattr(ReliabilityDisplay, "plot", lambda self, ax, **style: self)


def curve_of(*data, **options):
    if options.get("band", "consistency") == "consistency":
        options = QUICK | options
    (curve,) = ReliabilityDisplay.from_predictions(*data, **options).curves
    return curve


def texts_of(legend):
    return [text.get_text() for text in legend.get_texts()]


def test_isotonic_curve_is_the_recalibrator():
    label, proba = random_problem(np.random.default_rng(0), 200)
    display = ReliabilityDisplay.from_predictions(label, proba, shade=True, **QUICK)
    (curve,) = display.curves
    recalibrator = IsotonicRecalibrator(strict=False).fit(proba, label)
    knots, values = recalibrator.maps_[0]
    np.testing.assert_array_equal(curve.predicted, knots)
    np.testing.assert_allclose(curve.observed, values, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(display.line_.get_xydata().T, [curve.predicted, curve.observed])
    assert curve.error == pytest.approx(smooth_calibration_error(label, proba), abs=1e-15)
    assert display.line_.get_label() == f"smooth CE {curve.error:.3f}"
    gap = np.abs(recalibrator.transform(proba)[:, 1] - proba).mean()
    assert curve.gap == pytest.approx(gap, abs=1e-12)
    assert f"mean gap {gap:.3f}" in texts_of(display.legend_)
    assert display.ax_.get_xlabel() == "predicted probability of 1"


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_binned_curve_adds_up_to_the_error(strategy):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 100)
    options = {"n_bins": 8, "strategy": strategy, "sample_weight": rng.random(100)}
    display = ReliabilityDisplay.from_predictions(
        label, proba, method="binned", shade=True, **options, **QUICK
    )
    (curve,) = display.curves
    error = expected_calibration_error(label, proba, **options)
    assert curve.error == pytest.approx(error, abs=1e-12)
    assert curve.gap == curve.error
    assert curve.share @ np.abs(curve.observed - curve.predicted) == pytest.approx(error, abs=1e-12)
    assert curve.share.sum() == pytest.approx(1)
    assert (np.diff(curve.predicted) > 0).all()
    assert ((curve.ends[0] <= curve.predicted) & (curve.predicted <= curve.ends[1])).all()
    np.testing.assert_array_equal(display.line_.get_xydata().T, [curve.predicted, curve.observed])
    heights = [bar.get_height() for bar in display.areas_[0]]
    np.testing.assert_allclose(heights, curve.observed - curve.predicted, atol=1e-15)
    if strategy == "uniform":  # the strip shows the same bins
        bars = curve.events + curve.others
        np.testing.assert_allclose(bars[bars > 0], curve.share, atol=1e-12)


@pytest.mark.parametrize("bandwidth", [None, 0.1])
def test_smooth_curve_integrates_to_the_error(bandwidth, undrawn):
    label, proba = random_problem(np.random.default_rng(0), 100)
    curve = curve_of(label, proba, method="smooth", bandwidth=bandwidth)
    error = smooth_expected_calibration_error(label, proba, bandwidth=bandwidth)
    assert curve.error == curve.gap == pytest.approx(error, abs=1e-12)
    assert curve.measure == "smECE"
    # Gaussian density of the predictions, reflected at 0 and 1
    places, width = curve.predicted, bandwidth or error
    images = np.concatenate([2 * k + s * proba for k in (-1, 0, 1) for s in (1, -1)])
    density = np.exp(-((np.subtract.outer(places, images) / width) ** 2) / 2).sum(axis=1)
    density /= 100 * width * np.sqrt(2 * np.pi)
    gap = np.where(np.isnan(curve.observed), 0, np.abs(curve.observed - places))
    assert np.trapezoid(gap * density, places) == pytest.approx(error, rel=0.02)


def test_smooth_curve_ends_where_predictions_do(undrawn):
    curve = curve_of([0, 1, 1, 1], [0.1, 0.11, 0.9, 0.89], method="smooth", bandwidth=0.02)
    shown = curve.predicted[np.isfinite(curve.observed)]
    np.testing.assert_allclose(shown[[0, -1]], [0.06, 0.94], atol=0.006)
    assert not ((shown > 0.16) & (shown < 0.84)).any()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["consistency", "confidence"])
def test_bands_hold_what_they_should(method, kind, undrawn):
    """The curve of calibrated labels, or the frequencies of labels that are not calibrated."""
    rng = np.random.default_rng(0)
    proba = rng.random(300)
    rate = proba if kind == "consistency" else 0.2 + 0.6 * proba
    inside = []
    for seed in range(8):
        label = (rng.random(300) < rate).astype(int)
        options = {"method": method, "band": kind, "random_state": seed, **OPTIONS[method]}
        if kind == "consistency":
            options["n_resamples"] = 40
        curve = curve_of(label, proba, **options)
        band = curve.band
        known = np.isfinite(band.lower)
        if kind == "confidence":
            frequency = 0.2 + 0.6 * band.positions
            if method == "binned":  # the mean frequency in the bin
                means = np.repeat(0.2 + 0.6 * curve.predicted, 3)
                frequency = means
        elif method == "binned":
            frequency = np.repeat(curve.observed, 3)
        else:
            frequency = np.interp(band.positions, curve.predicted, curve.observed)
        inner = (
            known & (band.positions > 0.1) & (band.positions < 0.9)
        )  # smoothing flattens the ends
        inside.append(
            np.mean(
                (band.lower <= frequency + 1e-9)[inner] & (frequency <= band.upper + 1e-9)[inner]
            )
        )
        assert band.kind == kind
        assert band.confidence_level == 0.9
    share = np.mean(inside)
    noise = 4 * np.std(inside) / np.sqrt(8)
    if kind == "consistency":
        assert share == pytest.approx(0.9, abs=0.03 + noise)
    else:
        assert share >= 0.9 - noise
        assert np.nanmean(band.upper - band.lower) < 0.45


def test_the_second_axis_is_named_in_one_line():
    ax = plt.subplots(figsize=(2.5, 4))[1]
    ReliabilityDisplay.from_predictions(*two_classes(20), band=None, ax=ax)
    assert ax.get_ylabel() == "observed frequency"


def test_without_a_band():
    display = ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7], band=None)
    assert display.curves[0].band is None
    assert display.bands_ == [None]
    assert texts_of(display.legend_)[-1] == "calibrated"


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_repetitions(method, undrawn):
    label, proba = random_problem(np.random.default_rng(0), 40)
    weight = np.random.default_rng(1).integers(0, 4, size=40)
    options = {"method": method, "band": None, **OPTIONS[method]}
    weighted = curve_of(label, proba, sample_weight=weight, **options)
    repeated = curve_of(np.repeat(label, weight), np.repeat(proba, weight), **options)
    for name in ("predicted", "observed", "events", "others", "error", "gap"):
        expected = getattr(repeated, name)
        np.testing.assert_allclose(getattr(weighted, name), expected, atol=1e-9, err_msg=name)


def test_strip_shows_events_above_others():
    label, proba = two_classes(50)
    label = np.array(["benign", "malignant"])[label]
    display = ReliabilityDisplay.from_predictions(label, proba, pos_label="malignant", **QUICK)
    (curve,) = display.curves
    for name, bars in (("malignant", curve.events), ("benign", curve.others)):
        expected = np.histogram(proba[label == name], curve.edges)[0] / 50
        np.testing.assert_allclose(bars, expected, atol=1e-15)
    (strip,) = display.strips_
    values, edges, _ = strip.patches[0].get_data()
    highest = max(curve.events.max(), curve.others.max())
    np.testing.assert_allclose(values, curve.events / highest)
    np.testing.assert_array_equal(edges, curve.edges)
    np.testing.assert_allclose(strip.patches[2].get_data().values, -curve.others / highest)
    assert [text.get_text() for text in strip.texts] == ["malignant", "benign"]
    display.figure_.canvas.draw()
    assert strip.get_window_extent().y1 < display.ax_.get_window_extent().y0
    assert strip.get_xlim() == display.ax_.get_xlim()
    low, high = strip.get_ylim()
    assert low < -curve.others.max() / highest
    assert high > curve.events.max() / highest
    for tick, text in zip(strip.get_yticks(), strip.get_yticklabels(), strict=True):
        assert text.get_text() == f"{100 * abs(tick) * highest:.3g} %"
    # half of the mass in a single bar of another model squashes no bars of this one
    proba = np.where(np.arange(50) % 2, 0.5, proba)
    other = ReliabilityDisplay.from_predictions(
        label, proba, pos_label="malignant", ax=display.ax_, **QUICK
    )
    assert other.strips_ == [strip]
    first, second = (
        max(np.abs(bars.get_data().values).max() for bars in strip.patches[model : model + 4])
        for model in (0, 4)
    )
    assert first == second == 1
    assert len(strip.get_yticks()) == 0


@pytest.mark.parametrize("method", METHODS)
def test_from_estimator_is_from_predictions(method, undrawn):
    X, y = load_iris(return_X_y=True)
    y = np.array(["no", "yes"])[(y == 1).astype(int)]
    model = LogisticRegression().fit(X, y)
    weight = np.random.default_rng(0).random(len(y))
    options = QUICK | {"method": method, "sample_weight": weight, "pos_label": "no"}
    frame = pd.DataFrame(X, index=np.arange(len(X))[::-1] * 7)
    labels = pd.Series(y, index=frame.index[::-1])
    expected = ReliabilityDisplay.from_predictions(
        labels, model.predict_proba(X), labels=model.classes_, **options
    )
    for response in ("predict_proba", "decision_function"):
        display = ReliabilityDisplay.from_estimator(
            model, X, labels, response_method=response, **options
        )
        assert display.name == "LogisticRegression"
        (found,), (curve,) = display.curves, expected.curves
        for name in ("predicted", "observed", "events", "others", "edges", "error"):
            np.testing.assert_allclose(
                getattr(found, name), getattr(curve, name), atol=1e-9, err_msg=name
            )
        np.testing.assert_allclose(found.band.upper, curve.band.upper, atol=1e-9)
        assert found.names == curve.names == ("no", "yes")


def test_several_classes_are_shown_by_confidence():
    label, proba = several_classes()
    display = ReliabilityDisplay.from_predictions(label, proba, **QUICK)
    (curve,) = display.curves
    expected = smooth_calibration_error(label, proba)
    assert curve.error == pytest.approx(expected, abs=1e-15)
    assert curve.names == ("right", "wrong")
    assert display.ax_.get_xlabel() == "confidence"
    hit = label == np.array(list("abcdef"))[proba.argmax(axis=1)]
    assert curve.events.sum() == pytest.approx(hit.mean())


@pytest.mark.parametrize("multi_class", ["classwise", "top-label"])
def test_classes_are_panels_the_worst_first(multi_class):
    label, proba = several_classes()
    options = QUICK | {"method": "binned", "multi_class": multi_class, "max_panels": 2}
    display = ReliabilityDisplay.from_predictions(label, proba, **options)
    errors = expected_calibration_error(label, proba, multi_class=multi_class, average=None)
    order = np.argsort(-errors)
    titles = ["abcdef"[k] for k in order]
    assert [curve.title for curve in display.curves] == titles[:2]
    np.testing.assert_allclose([curve.error for curve in display.curves], errors[order[:2]])
    assert list(display.left_out) == titles[2:]
    assert all(name in display.legend_.get_title().get_text() for name in titles[2:])
    assert len(display.axes_) == len(display.lines_) == len(display.strips_) == 2
    shown = [ax.get_title() for ax in display.axes_]
    assert shown == [f"{c.title}\nECE {c.error:.3f}" for c in display.curves]
    again = ReliabilityDisplay.from_predictions(
        label, proba, ax=display.axes_, name="again", **options
    )
    assert (again.axes_ == display.axes_).all()
    assert again.axes_[0].get_title() == f"{shown[0]}, {errors.max():.3f}"
    assert texts_of(again.legend_)[:2] == ["observed frequency", "again"]
    with pytest.raises(ValueError, match="one for each of the 2 panels"):
        ReliabilityDisplay.from_predictions(label, proba, ax=display.axes_[:1], **options)


def test_subgroups_are_panels_in_their_order():
    label, proba = two_classes(90)
    group = np.array(["group 2", "group 10", "group 1"])[np.arange(90) % 3]
    weight = np.r_[np.zeros(10), np.ones(80)]
    figure, axes = plt.subplots(1, 2, layout="constrained")
    display = ReliabilityDisplay.from_predictions(
        label, proba, by=pd.Series(group, index=range(90, 0, -1)), sample_weight=weight,
        ax=axes[1], max_panels=3, **QUICK,
    )  # fmt: skip
    assert [curve.title for curve in display.curves] == ["group 1", "group 2", "group 10"]
    assert display.figure_ is figure
    for curve in display.curves:
        rows = (group == curve.title) & (weight > 0)
        error = smooth_calibration_error(label[rows], proba[rows])
        assert curve.error == pytest.approx(error, abs=1e-12)
    display = ReliabilityDisplay.from_predictions(
        label, proba, by=group, max_panels=1, ax=plt.subplots()[1], **QUICK
    )
    assert display.curves[0].error == max([display.curves[0].error, *display.left_out.values()])
    with pytest.raises(ValueError, match="ax must be a subplot"):
        ReliabilityDisplay.from_predictions(
            label, proba, by=group, ax=plt.figure().add_axes([0, 0, 1, 1]), **QUICK
        )
    with pytest.raises(ValueError, match="by must be None with multi_class='classwise'"):
        ReliabilityDisplay.from_predictions(
            *several_classes(), by=np.arange(400) % 2, multi_class="classwise"
        )


def test_models_share_axes_diagonal_and_legend_of_the_band():
    rng = np.random.default_rng(0)
    _, ax = plt.subplots()
    displays = [
        ReliabilityDisplay.from_predictions(*random_problem(rng, 50), name=name, ax=ax, **QUICK)
        for name in ("first", "the second of them, whose name is too long for a line")
    ]
    lines = [display.line_ for display in displays]
    assert len({line.get_color() for line in lines}) == 2
    assert len({line.get_linestyle() for line in lines}) == 2
    legend = texts_of(ax.get_legend())
    errors = [f"smooth CE {display.curves[0].error:.3f}" for display in displays]
    expected = [
        f"first, {errors[0]}",
        f"the second of them, whose name is too long for a line\n{errors[1]}",
    ]
    assert legend == [*expected, "by chance (90 %)", "calibrated"]
    swatches = displays[-1].legend_.findobj(mpl.patches.Rectangle)  # in the colours of the bands
    for swatch, display in zip(swatches, displays, strict=True):
        color = display.bands_[0].get_facecolor()[0]
        np.testing.assert_array_equal(swatch.get_facecolor(), color)
    assert displays[0].strips_ == displays[1].strips_
    assert len(ax.child_axes) == 1
    assert sum(line.get_label() == "calibrated" for line in ax.lines) == 1


def test_axes_are_logarithmic_where_most_predictions_are_very_sure(undrawn):
    label, proba = np.arange(9) % 2, np.r_[np.full(5, 0.005), np.full(4, 0.5)]

    def scale_of(proba, **own):
        options = {"band": None} | own
        return ReliabilityDisplay.from_predictions(label, proba, **options).axis_scale

    assert scale_of(proba) == scale_of(1 - proba) == "logit"
    assert scale_of(proba, axis_scale="linear") == "linear"
    assert scale_of(proba[::-1], sample_weight=np.arange(9)[::-1]) == "linear"
    assert scale_of({"sure": proba, "less": np.full(9, 0.5)}) == "linear"
    assert scale_of(proba, by=label) == "linear"


def test_the_next_model_takes_the_scale_of_the_axes():
    for proba in (0.005, 0.5):
        displays = [ReliabilityDisplay.from_predictions([0, 1], [proba] * 2, band=None)]
        for other in (0.005, 0.5):
            options = {"band": None, "ax": displays[0].ax_}
            displays.append(ReliabilityDisplay.from_predictions([0, 1], [other] * 2, **options))
        assert {one.axis_scale for one in displays} == {"logit" if proba < 0.01 else "linear"}


def test_parts_of_the_brier_score_are_in_the_corner():
    label, proba = two_classes(60)
    models = {"before": proba, "after": two_classes(60, 1.0)[1]}
    display = ReliabilityDisplay.from_predictions(label, models, decomposition=True, **QUICK)
    for text, one in zip(display.ax_.texts, models.values(), strict=True):
        parts = score_decomposition(label, one, n_resamples=0)
        expected = parts.miscalibration, parts.discrimination, parts.uncertainty
        found = [float(line.split()[1]) for line in text.get_text().split("\n")]
        np.testing.assert_allclose(found, expected, atol=6e-4)
        assert text.get_text().startswith("MCB")
    display = ReliabilityDisplay.from_predictions(*several_classes(60), **QUICK)
    assert not display.ax_.texts


def test_logit_axes_show_0_and_1():
    proba = np.array([0.0, 0.0, 1e-4, 0.01, 0.3, 0.9, 0.999, 1.0])
    label = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    display = ReliabilityDisplay.from_predictions(label, proba, axis_scale="logit", **QUICK)
    (curve,) = display.curves
    display.figure_.canvas.draw()
    ax = display.ax_
    box = ax.get_window_extent()
    pixel = ax.transData.transform(np.column_stack([proba, proba]))
    assert (np.diff(pixel[1:, 0]) > 10).all()  # apart from each other, and within the axes
    assert (pixel > [box.x0, box.y0]).all()
    assert (pixel < [box.x1, box.y1]).all()
    np.testing.assert_allclose(ax.transData.inverted().transform(pixel)[:, 0], proba, atol=1e-9)
    assert (curve.events + curve.others)[0] == pytest.approx(2 / 8)
    assert curve.edges[1] == pytest.approx(1e-4)
    ticks = [text.get_text() for text in ax.get_yticklabels()]
    assert {"0", "0.01", "0.5", "0.99", "1"} <= set(ticks)
    with pytest.raises(ValueError, match="axis_scale must be that of the other models"):
        ReliabilityDisplay.from_predictions(label, proba, ax=ax, axis_scale="linear", **QUICK)
    wider = ReliabilityDisplay.from_predictions(label, proba**2, axis_scale="logit", ax=ax, **QUICK)
    assert wider.ax_.transData.transform((1e-8, 0))[0] > wider.ax_.transData.transform((0, 0))[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("scale", "band"), [("linear", "consistency"), ("logit", "confidence")])
@pytest.mark.parametrize(
    ("label", "proba"),
    [
        ([1], [0.3]),
        ([0, 0], [0.2, 0.7]),
        ([0, 1, 1], [0, 1, 0]),
        ([0, 1], [0, 1]),
        ([0, 1], [0.5, 0.5]),
    ],
    ids=["one sample", "one class", "certain", "perfect", "constant"],
)
def test_poor_data_are_drawn(method, scale, band, label, proba, undrawn, monkeypatch):
    curve = curve_of(label, np.array(proba, float), method=method, axis_scale=scale, band=band)
    assert np.isfinite(curve.observed).any()
    assert ((curve.observed >= 0) & (curve.observed <= 1) | np.isnan(curve.observed)).all()
    assert curve.events.sum() + curve.others.sum() == pytest.approx(1)
    known = np.isfinite(curve.band.lower)
    assert known.any()
    assert (curve.band.lower <= curve.band.upper)[known].all()
    monkeypatch.undo()
    if band == "confidence" and method == "isotonic":
        display = ReliabilityDisplay([curve], axis_scale=scale).plot(shade=True)
        assert display.line_.get_marker() != "None" or np.isfinite(curve.observed).sum() > 1


def test_style_and_name_reach_the_curve():
    display = ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7], color="red", lw=3)
    assert display.line_.get_color() == "red"
    assert display.line_.get_linewidth() == 3
    display.plot(name="again", color="black")
    assert display.line_.get_label().startswith("again")


@pytest.mark.parametrize(
    "layout", [None, "tight", pytest.param("constrained", marks=pytest.mark.integration)]
)
def test_every_layout_keeps_texts_apart(layout):
    _, axes = plt.subplots(1, 2, figsize=(9, 6), layout=layout)
    label, proba = two_classes()
    for ax in axes:
        ReliabilityDisplay.from_predictions(label, proba, ax=ax, **QUICK)
    assert_texts_are_clear(axes[0].figure)


def test_settings_of_the_user_are_kept():
    before = dict(mpl.rcParams)
    with mpl.rc_context({"axes.prop_cycle": mpl.cycler(color=["#123456"], linestyle=[":"])}):
        figure, ax = plt.subplots()
        ax.set_title("mine")
        display = ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7], ax=ax, **QUICK)
    assert display.line_.get_color() == "#123456"
    assert display.line_.get_linestyle() == ":"
    assert ax.get_title() == "mine"
    assert figure.get_layout_engine() is None
    assert dict(mpl.rcParams) == before


def test_a_bare_curve_can_be_drawn():
    curve = ReliabilityCurve(np.array([0.1, 0.9]), np.array([0.2, 0.8]))
    display = ReliabilityDisplay([curve]).plot(shade=True)
    assert display.line_.get_label() == "observed frequency"
    assert display.strips_ == [None]
    display.figure_.canvas.draw()
    ReliabilityDisplay([ReliabilityCurve(*curve_of([0, 1], [0.2, 0.7]).band[:2], title="a")]).plot()


@pytest.mark.parametrize(
    ("option", "value", "match"),
    [
        ("method", "loess", "method"),
        ("band", "both", "band"),
        ("axis_scale", "log", "axis_scale"),
        ("confidence_level", 1.5, "confidence_level"),
        ("bandwidth", 0, "bandwidth"),
        ("n_bins", 0, "n_bins"),
        ("strategy", "equal", "strategy"),
        ("multi_class", "canonical", "multi_class"),
        ("max_panels", 0, "max_panels"),
        ("shade", "yes", "shade"),
        ("by", ["a"], "by"),
    ],
)
def test_bad_options_are_refused(option, value, match):
    with pytest.raises(ValueError, match=match):
        ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7], **{option: value})


def test_unknown_options_are_refused_by_name():
    message = r"unknown option 'strategie'\. Did you mean 'strategy'\?"
    with pytest.raises(TypeError, match=message):
        ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7], strategie="quantile")
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match=message):
        ReliabilityDisplay.from_estimator(model, [[0.0], [1.0]], [0, 1], strategie="quantile")
    with pytest.raises(TypeError, match="unknown option 'q'"):
        ReliabilityDisplay([]).plot(q=1)
    assert not plt.get_fignums()
    with pytest.raises(ValueError, match="response_method"):
        ReliabilityDisplay.from_estimator(model, [[0.0]], [0], response_method="predict")
    with pytest.raises(NotFittedError):
        ReliabilityDisplay.from_estimator(GaussianNB(), [[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("multi_class", ["confidence", "classwise"])
def test_a_dict_of_models_is_drawn_as_one_after_the_other(multi_class, monkeypatch):
    label, before = several_classes(60, 3)
    models = {"before": before, "after": np.sqrt(before) / np.sqrt(before).sum(1, keepdims=True)}
    options = QUICK | {"multi_class": multi_class}
    first = ReliabilityDisplay.from_predictions(label, models, **options)
    again = first.plot()
    monkeypatch.setattr(ReliabilityDisplay, "plot", lambda self, ax, **style: self)
    assert [one.name for one in (first, *first.others)] == ["before", "after"]
    for shown, (name, proba) in zip((first, *first.others), models.items(), strict=True):
        alone = ReliabilityDisplay.from_predictions(label, proba, name=name, **options)
        alone_by_title = {curve.title: curve for curve in alone.curves}
        for curve, line in zip(shown.curves, shown.lines_, strict=True):
            expected = alone_by_title[curve.title]
            assert curve.error == expected.error
            if multi_class == "confidence":  # elsewhere the seed goes through other panels before
                np.testing.assert_array_equal(curve.band.upper, expected.band.upper)
            np.testing.assert_array_equal(line.get_ydata(), expected.observed)
        assert (shown.axes_ == first.axes_).all()
    titles = [curve.title for curve in first.curves]
    assert [curve.title for curve in first.others[0].curves] == titles
    entries = " ".join(texts_of(first.legend_))
    assert "before" in entries
    assert "after" in entries
    assert sum(line.get_gid() is not None for line in again.ax_.lines) == 2
    assert again.legend_.figure is again.figure_


def test_models_with_other_panels_or_without_names_are_refused_by_name():
    label, proba = two_classes(40)
    with pytest.raises(ValueError, match=r"y_proba\['after'\]"):
        ReliabilityDisplay.from_predictions(label, {"before": proba, "after": proba + 1})
    for models, name in (({}, None), ({"before": proba}, "name")):
        with pytest.raises(ValueError, match=r"y_proba must be a dict .* at least 1 model"):
            ReliabilityDisplay.from_predictions(label, models, name=name)
    names = np.repeat(["a", "b", "c"], 4)
    first, second = np.eye(3)[[0, 1] * 6], np.eye(3)[[1, 2] * 6]
    models = {"one": first, "other": second}
    with pytest.raises(ValueError, match="same classes with multi_class='top-label'"):
        ReliabilityDisplay.from_predictions(
            names, models, labels=list("abc"), multi_class="top-label"
        )


def test_bars_have_the_heights_of_the_bins():
    label, proba = random_problem(np.random.default_rng(0), 200, 2)
    display = ReliabilityDisplay.from_predictions(
        label, proba, method="binned", shade="bars", band=None
    )
    (curve,) = display.curves
    heights = [patch.get_height() for patch in display.ax_.containers[0]]
    np.testing.assert_array_equal(heights, curve.observed)
    gaps = [patch.get_height() for patch in display.areas_[0]]
    np.testing.assert_allclose(gaps, curve.observed - curve.predicted)
    assert display.axis_scale == "linear"
    with pytest.raises(ValueError, match="shade='bars' must come with method='binned'"):
        ReliabilityDisplay.from_predictions(label, proba, shade="bars")
    models = {"a": proba, "b": proba}
    with pytest.raises(ValueError, match="shade='bars' must come with a single model"):
        ReliabilityDisplay.from_predictions(label, models, method="binned", shade="bars")
