"""What holds for every display: it may be made of an estimator, and keeps to its own axes."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import Collection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import BayesianRidge
from sklearn.naive_bayes import GaussianNB

from skcalib import display
from skcalib.hypothesis_tests import CalibrationTest, SequentialCalibrationTest
from skcalib.report import CalibrationReport

X, number = load_iris(return_X_y=True)
y = np.array(["setosa", "versicolor", "virginica"])[number]
features, outcome = load_diabetes(return_X_y=True)
features, outcome = features[:200, [2, 8]], outcome[:200]

CLASSES = GaussianNB().fit(X[::2], y[::2]), X[1::2], y[1::2]
PAIR = GaussianNB().fit(X[50::3], y[50::3]), X[50:], y[50:]
FORECASTS = BayesianRidge().fit(features[:100], outcome[:100]), features[100:], outcome[100:]
SEED = {"random_state": 0}

CASES = {
    "reliability": (display.ReliabilityDisplay, PAIR, SEED | {"n_resamples": 9}),
    "reliability of a class": (
        display.ReliabilityDisplay,
        PAIR,
        {"pos_label": "versicolor", "method": "binned", "band": "confidence", "shade": True},
    ),
    "reliability of confidence": (display.ReliabilityDisplay, CLASSES, {"band": None}),
    "witness": (display.WitnessDisplay, PAIR, {"pos_label": "versicolor"}),
    "witness of confidence": (display.WitnessDisplay, CLASSES, {}),
    "null distribution": (
        display.NullDistributionDisplay,
        PAIR,
        {"test": CalibrationTest(n_resamples=19, random_state=0)},
    ),
    "score decomposition": (display.ScoreDecompositionDisplay, CLASSES, SEED),
    "score decomposition, points": (
        display.ScoreDecompositionDisplay,
        PAIR,
        SEED | {"kind": "points", "pos_label": "versicolor"},
    ),
    "simplex": (display.SimplexDisplay, CLASSES, SEED | {"n_resamples": 9}),
    "actions": (display.DecisionDisplay, PAIR, {"loss": [[0, 1], [5, 0]]}),
    "net benefit": (
        display.DecisionDisplay,
        PAIR,
        {"kind": "net-benefit", "pos_label": "versicolor"},
    ),
    "pit": (display.PITHistogramDisplay, FORECASTS, SEED | {"n_resamples": 9}),
    "quantiles": (display.QuantileReliabilityDisplay, FORECASTS, SEED | {"n_resamples": 9}),
}


def predictions_of(estimator, data, truth):
    if hasattr(estimator, "classes_"):
        return (truth, estimator.predict_proba(data)), {"labels": estimator.classes_}
    return (truth, estimator.predict(data, return_std=True)), {}


def made(name, *, of_estimator, **options):
    kind, (estimator, data, truth), own = CASES[name]
    options = {"name": "model"} | own | options
    if "ax" not in options:
        options["ax"] = plt.subplots()[1]  # without a layout engine, which takes most of the time
    if of_estimator:
        return kind.from_estimator(estimator, data, truth, **options)
    arguments, known = predictions_of(estimator, data, truth)
    return kind.from_predictions(*arguments, **known, **options)


def drawn(figure):
    """What is to be seen: lines, areas and texts, with their colours."""
    found = []
    for artist in figure.findobj():
        if isinstance(artist, Line2D):
            style = str(artist.get_color()), artist.get_linestyle()
            found.append((artist.get_xydata().tolist(), style))
        elif isinstance(artist, Collection):
            paths = [path.vertices.tolist() for path in artist.get_paths()]
            found.append((paths, artist.get_facecolor().tolist()))
        elif isinstance(artist, Patch):
            found.append((artist.get_path().vertices.tolist(), artist.get_facecolor()))
        elif isinstance(artist, Text):
            found.append(artist.get_text())
    return found


@pytest.mark.parametrize("name", CASES)
def test_from_estimator_is_from_predictions_which_may_be_drawn_again(name):
    one, other = (made(name, of_estimator=kind) for kind in (True, False))
    first = drawn(one.figure_)
    assert first == drawn(other.figure_)
    assert len(first) > 20
    with pytest.raises(TypeError, match="n_resample_s"):
        one.plot(n_resample_s=3)
    plots = {"shade": True} if "shade" in CASES[name][2] else {}
    assert drawn(one.plot(plt.subplots()[1], **plots).figure_) == first


@pytest.mark.parametrize("name", CASES)
def test_settings_and_random_numbers_of_the_user_are_left_alone(name):
    settings = {"axes.facecolor": "0.9", "lines.linewidth": 3.0, "font.size": 7.0}
    with mpl.rc_context(settings):
        before = dict(mpl.rcParams)
        state = np.random.mtrand._rand.get_state(legacy=False)["state"]
        figure, (ax, other) = plt.subplots(1, 2)
        one = made(name, of_estimator=False, ax=ax)
        assert one.figure_ is figure
        assert plt.get_fignums() == [figure.number]
        assert not [*other.lines, *other.collections, *other.patches]
        assert ax.get_facecolor() == mpl.colors.to_rgba("0.9")
        assert dict(mpl.rcParams) == before
        after = np.random.mtrand._rand.get_state(legacy=False)["state"]
        np.testing.assert_equal(after, state)


@pytest.mark.parametrize("name", CASES)
def test_unknown_options_are_refused_by_name(name):
    for of_estimator in (True, False):
        with pytest.raises(TypeError, match="n_resample_s"):
            made(name, of_estimator=of_estimator, n_resample_s=3)


SHORT_NAMES = {"stairs": {"lw": 3}, "quiver": {}, "barh": {"lw": 3}}


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("simplex")])
def test_short_names_of_matplotlib_are_those_it_knows(name):
    short = SHORT_NAMES.get(CASES[name][0]._method, {"ls": "-.", "lw": 3})
    if name == "score decomposition":
        short = SHORT_NAMES["barh"]
    long = {{"ls": "linestyle", "lw": "linewidth"}[key]: value for key, value in short.items()}
    one, other = (made(name, of_estimator=False, **options) for options in (short, long))
    assert drawn(one.figure_) == drawn(other.figure_)
    one.plot(plt.subplots()[1], **short)


def test_displays_that_no_estimator_makes_have_no_such_method():
    assert not hasattr(display.SequentialTestDisplay, "from_estimator")


def test_every_display_is_a_case():
    names = {name for name in display.__all__ if name.endswith("Display")}
    tested = {kind.__name__ for kind, _, _ in CASES.values()}
    # several estimators, a result, or a test that is fitted batch by batch
    others = {"ComparisonDisplay", "ForestDisplay", "RatingGradeDisplay", "SequentialTestDisplay"}
    assert names - tested == others


def test_unknown_options_of_displays_without_a_single_estimator():
    estimator, data, truth = PAIR
    with pytest.raises(TypeError, match="n_resample_s"):
        display.ComparisonDisplay.from_estimators({"m": estimator}, data, truth, n_resample_s=3)
    test = SequentialCalibrationTest().partial_fit([0.2, 0.8] * 20, [0, 1] * 20)
    with pytest.raises(TypeError, match="n_resample_s"):
        display.SequentialTestDisplay.from_test(test, n_resample_s=3)


def test_labels_are_those_of_the_estimator():
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X, y)
    message = r"labels must be left out, .* found \[2, 1, 0\]"
    with pytest.raises(TypeError, match=message):
        display.SimplexDisplay.from_estimator(model, X, y, labels=[2, 1, 0])
    with pytest.raises(TypeError, match=message):
        display.ComparisonDisplay.from_estimators({"m": model}, X, y, labels=[2, 1, 0])
    with pytest.raises(TypeError, match=message):
        CalibrationReport.from_estimator(model, X, y, labels=[2, 1, 0])
    display.SimplexDisplay.from_estimator(model, X, y, labels=None, n_resamples=9)


def test_what_is_no_axes_is_refused_by_name():
    with pytest.raises(TypeError, match=r"ax must be axes of matplotlib; found 3\. Pass"):
        display.DecisionDisplay.from_predictions([0, 1, 1, 0], [0.2, 0.8, 0.6, 0.3], ax=3)
