"""The bars and lines are the draws and statistics of the test."""

from itertools import pairwise

import numpy as np
import pytest
from figures import several_classes, two_classes
from matplotlib import pyplot as plt
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from skcalib.datasets import make_forecasts
from skcalib.display import NullDistributionDisplay
from skcalib.hypothesis_tests import CalibrationTest, CoxTest, SpiegelhalterTest


@pytest.fixture
def ax():
    """Axes without a layout engine, which takes most of the time."""
    return plt.subplots()[1]


def assert_shows(display, statistics, draws, p_values):
    assert len(display.bars_) == len(display.lines_) == len(statistics)
    for k, name in enumerate(statistics):
        counts, edges, _ = display.bars_[k].get_data()
        inside = [(draws[name] >= low) & (draws[name] < high) for low, high in pairwise(edges)]
        inside[-1] |= draws[name] == edges[-1]
        np.testing.assert_array_equal(counts, np.sum(inside, axis=1))
        assert counts.sum() == len(draws[name])
        extent = edges[-1] - edges[0]
        shown = np.clip(statistics[name], edges[0] - 3 * extent, edges[-1] + 3 * extent)
        assert set(display.lines_[k].get_xdata()) == {shown}
        # the bars stay visible, and a value beyond the axes is written
        low, high = display.axes_[k].get_xlim()
        assert extent > 0.2 * (high - low)
        texts = [text.get_text() for text in display.axes_[k].texts]
        assert len(texts) == int(shown != statistics[name])
        assert all(f"{statistics[name]:.3g}" in text for text in texts)
        assert f"p = {p_values[name]:.2g}" in display.axes_[k].get_title()
        low, high = display.axes_[k].get_xlim()
        assert low < min(statistics[name], draws[name].min())
        assert high > max(statistics[name], draws[name].max())


@pytest.mark.parametrize("data", [two_classes(100), several_classes(100)])
def test_components_of_the_omnibus(data, ax):
    label, proba = data
    test = CalibrationTest(n_resamples=29, random_state=0).fit(proba, label)
    display = NullDistributionDisplay.from_test(test, name="forest", ax=ax)
    assert_shows(
        display,
        test.component_statistics_,
        test.component_null_distributions_,
        test.adjusted_p_values_,
    )
    assert all("adjusted" in one.get_title() for one in display.axes_)
    note = display.legend_.get_title().get_text().replace("\n", " ")
    assert note == f"forest, all together: p = {test.p_value_:.2g}"


@pytest.mark.parametrize(
    ("test", "title"),
    [
        (CalibrationTest("smooth_calibration_error", n_resamples=20, random_state=0), "smooth c"),
        (CalibrationTest("skce", n_resamples=20, random_state=0), "kernel error"),
        (SpiegelhalterTest(method="conditional", n_resamples=20, random_state=0), "Spiegelhalter"),
    ],
)
def test_a_single_statistic(test, title, ax):
    label, proba = two_classes(60)
    display = NullDistributionDisplay.from_predictions(label, proba, test=test, ax=ax)
    assert not hasattr(test, "p_value_")  # a copy was fitted
    test.fit(proba, label)
    (name,) = display.statistics
    assert_shows(
        display, {name: test.statistic_}, {name: test.null_distribution_}, {name: test.p_value_}
    )
    assert display.ax_ is ax
    assert display.ax_.get_title().startswith(title)
    assert "adjusted" not in display.ax_.get_title()


def test_from_estimator_and_forecasts(ax):
    X, y = load_iris(return_X_y=True)
    test = CalibrationTest(n_resamples=9, random_state=0)
    weight = np.arange(1.0, 101) / 3
    names = np.array(["c", "b"])
    model = GaussianNB().fit(X[50:], names[y[50:] - 1])
    options = {"test": test, "sample_weight": weight, "groups": np.arange(100) // 5}
    shown = NullDistributionDisplay.from_estimator(
        model, X[50:], names[y[50:] - 1], ax=ax, **options
    )
    test.fit(model.predict_proba(X[50:]), names[y[50:] - 1], weight, groups=np.arange(100) // 5)
    assert shown.statistics == test.component_statistics_
    for name, draws in test.component_null_distributions_.items():
        np.testing.assert_array_equal(shown.null_distributions[name], draws)
    assert shown.name == "GaussianNB"
    y, forecast = make_forecasts(20, random_state=0)
    test = CalibrationTest(n_resamples=5, random_state=0)
    shown = NullDistributionDisplay.from_predictions(y, forecast, test=test, ax=plt.gca())
    assert shown.statistics == test.fit(forecast, y).component_statistics_


def test_labels_name_the_columns(ax):
    label, proba = two_classes(40)
    label = np.array(["benign", "malignant"])[label]
    test = CalibrationTest("brier_score_loss", n_resamples=5, random_state=0)
    backwards = ["malignant", "benign"]
    shown = NullDistributionDisplay.from_predictions(
        label, proba, test=test, labels=backwards, ax=ax
    )
    expected = test.set_params(labels=backwards).fit(proba, label).statistic_
    assert shown.statistics == {"brier_score_loss": expected}


def test_infinite_values_are_at_the_end(ax):
    draws = {"log_loss": np.linspace(0, 1, 20)}
    display = NullDistributionDisplay({"log_loss": np.inf}, draws, {"log_loss": 0.05}).plot(ax)
    assert 1 < display.lines_[0].get_xdata()[0] < display.ax_.get_xlim()[1]


def test_values_below_all_draws_are_shown(ax):
    draws = {"log_loss": np.linspace(0, 1, 20)}
    display = NullDistributionDisplay({"log_loss": -3.0}, draws, {"log_loss": 0.1}).plot(ax)
    assert_shows(display, {"log_loss": -3.0}, draws, {"log_loss": 0.1})


def test_panels_on_given_axes():
    _, axes = plt.subplots(2, 2)
    label, proba = two_classes(40)
    test = CalibrationTest(n_resamples=5, random_state=0).fit(proba, label)
    display = NullDistributionDisplay.from_test(test, ax=axes, color="k")
    assert list(display.axes_) == list(axes.ravel())
    assert {line.get_color() for line in display.lines_} == {"k"}
    with pytest.raises(ValueError, match="ax must be one for each of the 4 panels"):
        NullDistributionDisplay.from_test(test, ax=axes[0])


def test_bad_input():
    label, proba = two_classes(40)
    test = CalibrationTest("skce", method="distribution-free").fit(proba, label)
    with pytest.raises(ValueError, match=r"test must have drawn outcomes.*'distribution-free'"):
        NullDistributionDisplay.from_test(test)
    with pytest.raises(ValueError, match="test must have drawn outcomes"):
        NullDistributionDisplay.from_predictions(label, proba, test=CoxTest(method="asymptotic"))
    with pytest.raises(TypeError, match=r"test must be an object; found the class.* CoxTest\(\)"):
        NullDistributionDisplay.from_predictions(label, proba, test=CoxTest)
    with pytest.raises(TypeError, match="unknown option 'n_resample'"):
        NullDistributionDisplay.from_predictions(label, proba, n_resample=5)


def test_draws_that_are_all_but_equal_have_a_histogram():
    draws = 1e9 + np.array([0.0, 1e-7, 1e-7])
    display = NullDistributionDisplay({"log_loss": 1e9}, {"log_loss": draws}, {"log_loss": 1.0})
    display.plot()
