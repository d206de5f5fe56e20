"""Dots and lines are the estimates and intervals of the models."""

import numpy as np
import pandas as pd
import pytest
from figures import two_classes
from matplotlib import pyplot as plt
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.naive_bayes import GaussianNB

from skcalib.datasets import make_forecasts
from skcalib.display import ComparisonDisplay
from skcalib.uncertainty import compare_models, confidence_interval

LABEL, SURE = two_classes(60)
MODELS = {"sure": SURE, "modest": two_classes(60, 0.5)[1], "half": np.full(60, 0.5)}
METRICS = ["smooth_calibration_error", "conditional_kernel_calibration_error", brier_score_loss]
OPTIONS = {"n_resamples": 9, "random_state": 0, "confidence_level": 0.8, "labels": None}


@pytest.fixture
def ax():
    """Axes without a layout engine, which takes most of the time."""
    return plt.subplots()[1]


def assert_shows(display, k, results, value):
    """The panel k has these estimates and intervals, from top to bottom."""
    rows = np.arange(len(results))
    expected = [getattr(result, value) for result in results]
    np.testing.assert_array_equal(display.points_[k].get_data(), [expected, rows])
    ends = [[[one.low, row], [one.high, row]] for one, row in zip(results, rows, strict=True)]
    np.testing.assert_array_equal(display.whiskers_[k].get_segments(), ends)
    bottom, top = display.axes_[k].get_ylim()
    assert bottom > top


def test_each_panel_has_the_intervals_of_a_measure(ax):
    weight = np.random.default_rng(0).random(60)
    params = {"conditional_kernel_calibration_error": {"bandwidth": 0.3}}
    options = {"sample_weight": weight, **OPTIONS}
    display = ComparisonDisplay.from_predictions(
        LABEL == "malignant", MODELS, metrics=METRICS, metric_params=params, ax=ax, **options
    )
    names = [*METRICS[:2], "brier_score_loss"]
    assert display.metrics == names
    for k, metric in enumerate(METRICS):
        results = [
            confidence_interval(
                metric, LABEL == "malignant", y, metric_params=params.get(names[k]), **options
            )
            for y in MODELS.values()
        ]
        assert_shows(display, k, results, "estimate")
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == list(MODELS)
    assert display.axes_[1].get_title().replace("\n", " ").startswith("conditional kernel")
    assert display.p_value is None
    assert display.legend_.get_texts()[0].get_text() == "estimate\nand its 80 % interval"


def test_differences_from_a_reference(ax):
    display = ComparisonDisplay.from_predictions(
        LABEL, MODELS, metrics=METRICS[:1], reference="modest", ax=ax, **OPTIONS
    )
    results = [
        compare_models(METRICS[0], LABEL, MODELS[name], MODELS["modest"], **OPTIONS)
        for name in ("sure", "half")
    ]
    assert display.models == ["sure", "half"]
    assert_shows(display, 0, results, "difference")
    assert display.p_value.tolist() == [[one.p_value] for one in results]
    assert display.ax_ is ax
    assert "difference from modest" in display.legend_.get_texts()[0].get_text()


def test_from_estimators(ax):
    X, y = load_iris(return_X_y=True)
    models = {"Bayes": GaussianNB().fit(X, y), "logistic": LogisticRegression(C=0.1).fit(X, y)}
    options = {"metrics": METRICS[:1], "n_resamples": 5, "random_state": 0, "color": "k"}
    shown = ComparisonDisplay.from_estimators(models, X, y, ax=ax, **options)
    probas = {name: model.predict_proba(X) for name, model in models.items()}
    expected = ComparisonDisplay.from_predictions(y, probas, ax=plt.subplots()[1], **options)
    for numbers in ("estimate", "low", "high"):
        np.testing.assert_array_equal(getattr(shown, numbers), getattr(expected, numbers))
    assert shown.points_[0].get_color() == "k"
    models["two classes"] = GaussianNB().fit(X[:100], y[:100])
    with pytest.raises(ValueError, match="estimators must have been fitted to the same classes"):
        ComparisonDisplay.from_estimators(models, X, y)


def test_measures_of_the_report_by_default():
    y, forecast = make_forecasts(30, random_state=0)
    axes = plt.subplots(1, 2)[1]
    options = {"n_resamples": 3, "random_state": np.random.RandomState(0)}
    display = ComparisonDisplay.from_predictions(y, {"normal": forecast}, ax=axes, **options)
    of_forecasts = ["quantile_calibration_error", "continuous_ranked_probability_loss"]
    assert display.metrics == of_forecasts
    assert list(display.axes_) == list(axes)
    assert (display.low <= display.high).all()


def test_estimates_outside_of_their_intervals_are_drawn(ax):
    numbers = np.array([[-0.1]]), np.array([[0.0]]), np.array([[0.2]])
    display = ComparisonDisplay(["model"], ["squared_kernel_calibration_error"], *numbers).plot(ax)
    assert display.points_[0].get_xdata() == [-0.1]
    assert display.ax_.get_xlim()[0] < -0.1


def test_bad_input():
    make = ComparisonDisplay.from_predictions
    with pytest.raises(ValueError, match="y_preds must be a dict"):
        make(LABEL, SURE)
    with pytest.raises(ValueError, match="at least 2 model"):
        make(LABEL, {"sure": SURE}, reference="sure")
    with pytest.raises(ValueError, match="reference must be the name of one of the models"):
        make(LABEL, MODELS, reference="other")
    for reference in (pd.DataFrame({"sure": SURE}), ["sure"]):
        with pytest.raises(ValueError, match="reference must be the name of one of the models"):
            make(LABEL, MODELS, reference=reference)
    with pytest.raises(ValueError, match="metrics must name at least one measure"):
        make(LABEL, MODELS, metrics=[])
    with pytest.raises(ValueError, match="metric_params must have names of measures as keys"):
        make(LABEL, MODELS, metric_params={"n_bins": {}})
    with pytest.raises(TypeError, match=r"unknown option 'metric'.*'metrics'"):
        make(LABEL, MODELS, metric=METRICS)
    with pytest.raises(ValueError, match=r"Did you mean .brier_score_loss."):
        make(LABEL, MODELS, metrics=["brier"])
    with pytest.raises(ValueError, match="'n_resamples' parameter of ComparisonDisplay must be"):
        make(LABEL, MODELS, n_resamples=0)
    with pytest.raises(ValueError, match=r"y_preds\['sure'\] must lie in \[0, 1\]"):
        make(LABEL, {"sure": SURE * 2})


def test_arguments_of_measures_are_a_dict():
    with pytest.raises(ValueError, match=r"metric_params must have .*; found 1\.0"):
        ComparisonDisplay.from_predictions([0, 1], {"a": [0.2, 0.3]}, metric_params=1.0)


@pytest.mark.parametrize("metrics", [False, [], 1.5])
def test_what_lists_no_measures_is_refused(metrics):
    with pytest.raises(ValueError, match="at least one measure; found"):
        ComparisonDisplay.from_predictions([0, 1], {"a": [0.2, 0.3]}, metrics=metrics)
