"""The bars are the parts of the score, of forecasts and of classes."""

import numpy as np
import pytest
from figures import two_classes
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import BayesianRidge
from sklearn.naive_bayes import GaussianNB

from skcalib.datasets import make_forecasts, make_temperature_family
from skcalib.display import ScoreDecompositionDisplay
from skcalib.display._score_decomposition import _draw_isolines
from skcalib.metrics import ScoreDecomposition, score_decomposition


def widths(display):
    return [bar.get_width() for bar in display.bars_]


@pytest.mark.parametrize(
    ("problem", "score", "expected"),
    [
        (make_forecasts(12, dispersion=0.5, random_state=0), "auto", "crps"),
        (make_temperature_family(12, random_state=0), "auto", "brier"),
        (make_temperature_family(12, random_state=0), "log_loss", "log_loss"),
    ],
)
def test_bars_are_the_parts(problem, score, expected):
    weight = np.random.default_rng(0).random(12)
    options = {"sample_weight": weight, "n_resamples": 1, "random_state": 0}
    display = ScoreDecompositionDisplay.from_predictions(*problem, score=score, **options)
    parts = score_decomposition(*problem, score=expected, **options)
    assert display.score == expected
    assert display.decomposition == parts
    assert widths(display) == [parts.miscalibration, parts.discrimination, parts.uncertainty]
    lines = display.ax_.collections[0].get_segments()
    assert lines[0][0][0] == parts.expected_miscalibration
    assert f"{parts.score:.3g}" in display.ax_.get_yticklabels()[0].get_text()
    assert display.ax_.get_xlim()[1] > max(widths(display))


def test_models_share_axes():
    _, ax = plt.subplots()
    for name in ("first", "second"):
        parts = ScoreDecomposition(0.3, 0.1, 0.7, 0.9, 0.2)
        display = ScoreDecompositionDisplay(parts, name=name).plot(ax)
    assert display.ax_ is ax
    rows = [text.get_text().split("\n")[0] for text in ax.get_yticklabels()]
    assert rows == ["first", "second"]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    parts = ["miscalibration", "discrimination", "uncertainty"]
    assert legend == [*parts, "miscalibration of a calibrated model"]
    assert ax.get_ylim() == (1.5, -0.5)


def test_from_estimator():
    X, y = load_diabetes(return_X_y=True)
    model = BayesianRidge().fit(X[:100], y[:100])
    display = ScoreDecompositionDisplay.from_estimator(model, X[100:160], y[100:160], n_resamples=0)
    predicted = model.predict(X[100:160], return_std=True)
    assert display.decomposition == score_decomposition(y[100:160], predicted, score="crps")
    assert display.name == "BayesianRidge"
    assert display.decomposition.expected_miscalibration is None
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X[50:], y[50:])
    display = ScoreDecompositionDisplay.from_estimator(
        model, X[50:], y[50:], pos_label=1, n_resamples=0, kind="points"
    )
    assert display.point_.get_xdata() == [display.decomposition.miscalibration]
    expected = score_decomposition(y[50:], model.predict_proba(X[50:]), pos_label=1, labels=[1, 2])
    assert display.decomposition == expected


def test_tiny_parts_are_shown_as_0():
    display = ScoreDecompositionDisplay(ScoreDecomposition(0.5, 1e-9, 0.7, 1.2)).plot()
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == ["0.5", "0", "0.7"]
    assert display.ax_.get_yticklabels()[0].get_text() == "CRPS 1.2"


def test_a_single_line_of_equal_score():
    ax = plt.subplots(figsize=(2, 2))[1]
    ax.set(xlim=(0, 0.061), ylim=(0.01, 0.051))
    _draw_isolines(ax, 0.35, "score")
    assert [text.get_text() for text in ax.texts] == ["0.350"]


def test_points_and_lines_of_equal_score():
    ax = plt.subplots()[1]
    shown = []
    for name, sharpness in (("first", 3.0), ("second", 0.5)):
        y, proba = two_classes(100, sharpness)
        options = {"n_resamples": 1, "random_state": 0}
        shown.append(
            ScoreDecompositionDisplay.from_predictions(
                y, proba, kind="points", name=name, ax=ax, **options
            )
        )
        parts = score_decomposition(y, proba, **options)
        assert shown[-1].decomposition == parts
        place = [parts.miscalibration], [parts.discrimination]
        np.testing.assert_array_equal(shown[-1].point_.get_data(), place)
        assert shown[-1].point_.get_label() == f"{name}, Brier score {parts.score:.3f}"
    assert len({one.point_.get_marker() for one in shown}) == 2
    assert all(line.axes is None for line in shown[0].isolines_)  # drawn anew for both models
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    lines = shown[1].isolines_
    assert len(lines) > 2
    for line, text in zip(lines, ax.texts, strict=True):
        x, y = line.get_data()
        np.testing.assert_allclose(x - y + parts.uncertainty, float(text.get_text()), atol=1e-9)
        assert x[0] >= left
        assert y[0] >= bottom - 1e-9
        assert x[0] == left or y[0] == pytest.approx(bottom)
        assert x[1] == right or y[1] == pytest.approx(top)
    marks = [line for line in ax.lines if line.get_marker() == "|" and len(line.get_xdata())]
    expected = [one.decomposition.expected_miscalibration for one in shown]
    assert [mark.get_xdata()[0] for mark in marks] == expected
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    chance = "miscalibration of a calibrated model"
    assert labels == [*(one.point_.get_label() for one in shown), chance, "equal Brier score"]


def test_models_in_a_dict_share_axes():
    y, forecast = make_forecasts(20, random_state=0)
    models = {"first": forecast, "second": forecast[::-1]}
    options = {"kind": "points", "random_state": 0}
    shown = ScoreDecompositionDisplay.from_predictions(y, models, **options)
    assert list(shown) == ["first", "second"]
    assert shown["first"].ax_ is shown["second"].ax_
    for name, model in models.items():
        alone = ScoreDecompositionDisplay.from_predictions(y, model, **options)
        assert shown[name].decomposition == alone.decomposition
        assert shown[name].point_.get_label().startswith(name)
    with pytest.raises(ValueError, match=r"y_pred must be a dict .* without `name`"):
        ScoreDecompositionDisplay.from_predictions(y, models, name="model")


def test_bad_input_of_points():
    ax = plt.subplots()[1]
    parts = ScoreDecomposition(0.3, 0.1, 0.7, 0.9)
    ScoreDecompositionDisplay(parts, kind="points").plot(ax)
    other = ScoreDecomposition(0.3, 0.1, 0.5, 0.7)
    with pytest.raises(
        ValueError, match=r"ax must show models of the same outcomes.*0\.7 and 0\.5"
    ):
        ScoreDecompositionDisplay(other, kind="points").plot(ax)
    with pytest.raises(TypeError, match="unknown option 'height'"):
        ScoreDecompositionDisplay(parts, kind="points").plot(ax, height=1)
    with pytest.raises(ValueError, match="kind"):
        ScoreDecompositionDisplay.from_predictions([0, 1], [0.5, 0.5], kind="plane")


def test_bad_input():
    y, forecast = make_forecasts(20, random_state=0)
    with pytest.raises(ValueError, match="score"):
        ScoreDecompositionDisplay.from_predictions(y, forecast, score="brier")
    with pytest.raises(ValueError, match="n_resamples"):
        ScoreDecompositionDisplay.from_predictions(y, forecast, n_resamples=-1)
