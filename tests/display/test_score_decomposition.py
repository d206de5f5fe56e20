"""The bars are the parts of the score, of forecasts and of classes."""

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import BayesianRidge
from sklearn.naive_bayes import GaussianNB

from skcalib.datasets import make_gaussian_forecasts, make_temperature_family
from skcalib.display import ScoreDecompositionDisplay
from skcalib.metrics import ScoreDecomposition, score_decomposition

mpl.use("Agg")
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def widths(display):
    return [bar.get_width() for bar in display.bars_]


@pytest.mark.parametrize(
    ("problem", "score", "expected"),
    [
        (make_gaussian_forecasts(12, dispersion=0.5, random_state=0), "auto", "crps"),
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
        model, X[50:], y[50:], pos_label=1, n_resamples=0
    )
    expected = score_decomposition(y[50:], model.predict_proba(X[50:]), pos_label=1, labels=[1, 2])
    assert display.decomposition == expected


def test_tiny_parts_are_shown_as_0():
    display = ScoreDecompositionDisplay(ScoreDecomposition(0.5, 1e-9, 0.7, 1.2)).plot()
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == ["0.5", "0", "0.7"]
    assert display.ax_.get_yticklabels()[0].get_text() == "CRPS 1.2"


def test_bad_input():
    y, forecast = make_gaussian_forecasts(20, random_state=0)
    with pytest.raises(ValueError, match="score"):
        ScoreDecompositionDisplay.from_predictions(y, forecast, score="brier")
    with pytest.raises(ValueError, match="n_resamples"):
        ScoreDecompositionDisplay.from_predictions(y, forecast, n_resamples=-1)
