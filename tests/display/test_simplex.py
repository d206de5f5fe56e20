"""The arrows lead from mean predictions to frequencies, and their lengths are the metric's."""

import numpy as np
import pytest
from figures import several_classes, two_classes
from matplotlib import pyplot as plt
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from skcalib.display import SimplexDisplay
from skcalib.metrics import expected_calibration_error

CORNERS = np.array([[0, 0], [1, 0], [0.5, 3**0.5 / 2]])


@pytest.fixture
def ax():
    """Axes without a layout engine, which takes most of the time."""
    return plt.subplots()[1]


def test_by_hand(ax):
    proba = [[0.8, 0.1, 0.1], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]]
    display = SimplexDisplay.from_predictions(
        ["a", "b", "c"], proba, sample_weight=[1, 1, 2], n_bins=2, random_state=0, ax=ax
    )
    np.testing.assert_allclose(sorted(display.predicted.tolist()), [proba[2], [0.7, 0.2, 0.1]])
    order = np.argsort(display.predicted[:, 0])
    np.testing.assert_allclose(display.observed[order], [[0, 0, 1], [0.5, 0.5, 0]])
    np.testing.assert_allclose(display.share, 0.5)
    assert display.error == pytest.approx(0.5 * 0.2 + 0.5 * 0.3)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["a", "b"]
    (top,) = ax.texts
    centre = top.get_window_extent().bounds[0] + top.get_window_extent().width / 2
    assert top.get_text() == "c"
    assert centre == pytest.approx(ax.transData.transform(CORNERS[2])[0], abs=0.7)  # pixels


@pytest.mark.parametrize("n_bins", [1, 5])
def test_the_arrows_are_the_error_of_the_metric(n_bins, ax):
    y, proba = several_classes(300, 3)
    weight = np.random.default_rng(0).random(300)
    options = {"sample_weight": weight, "n_bins": n_bins, "labels": ["c", "a", "b"]}
    display = SimplexDisplay.from_predictions(
        y, proba, n_resamples=20, random_state=0, ax=ax, name="forest", **options
    )
    error = expected_calibration_error(y, proba, multi_class="canonical", **options)
    np.testing.assert_allclose(display.error, error, rtol=1e-12)
    title = display.legend_.get_title().get_text()
    assert title == f"forest\nexpected calibration error {error:.3f}"
    arrows = display.arrows_
    np.testing.assert_allclose(arrows.XY, display.predicted @ CORNERS)
    np.testing.assert_allclose(arrows.XY + np.column_stack([arrows.U, arrows.V]),
                               display.observed @ CORNERS, atol=1e-12)  # fmt: skip
    np.testing.assert_allclose(display.dots_.get_offsets(), arrows.XY)
    is_grey = np.ptp(arrows.get_facecolors()[:, :3], axis=1) == 0
    np.testing.assert_array_equal(is_grey, display.p_value > 0.1)
    assert display.ax_ is ax


def test_p_values_are_right_for_calibrated_cells():
    generator = np.random.default_rng(0)
    proba = generator.dirichlet([2, 2, 2], 4000)
    y = (proba.cumsum(axis=1) > generator.random((4000, 1))).argmax(axis=1)
    options = {"n_bins": 20, "n_resamples": 99, "random_state": 0}
    display = SimplexDisplay.from_predictions(y, proba, ax=plt.subplots()[1], **options)
    p_value = display.p_value[display.share >= 10 / 4000]  # few samples have large, tied p-values
    assert len(p_value) > 150
    for level in (0.1, 0.5):
        deviation = np.sqrt(level * (1 - level) / len(p_value))
        assert abs(np.mean(p_value <= level) - level) < 4 * deviation
    # certainly wrong labels are never by chance
    wrong = SimplexDisplay.from_predictions(
        (proba.argmax(axis=1) + 1) % 3, proba, ax=plt.subplots()[1], n_resamples=9, random_state=0
    )
    is_clear = (wrong.share > 0.02) & (wrong.predicted.max(axis=1) > 0.5)
    assert is_clear.sum() > 5
    assert (wrong.p_value[is_clear] == 0.1).all()


def test_from_estimator(ax):
    X, y = load_iris(return_X_y=True)
    names = np.array(["x", "z", "y"])[y]
    model = GaussianNB().fit(X, names)
    X, names = X[:100], names[:100]  # of two classes
    options = {"n_resamples": 5, "random_state": 0, "ax": ax, "color": "k"}
    shown = SimplexDisplay.from_estimator(model, X, names, **options)
    expected = SimplexDisplay.from_predictions(
        names, model.predict_proba(X), labels=["x", "y", "z"], **options
    )
    for numbers in ("predicted", "observed", "share", "p_value", "classes"):
        np.testing.assert_array_equal(getattr(shown, numbers), getattr(expected, numbers))
    assert shown.name == "GaussianNB"


def test_certain_predictions_that_are_right_are_as_drawn(ax):
    display = SimplexDisplay.from_predictions([0, 1, 2], np.eye(3), n_resamples=5, ax=ax)
    assert display.p_value.tolist() == [1, 1, 1]
    assert display.error == 0


@pytest.mark.usefixtures("layout")
def test_long_names_stay_inside_of_the_figure_and_apart():
    label, proba = several_classes(60, 3)
    names = np.array(
        [
            "Iris setosa of the northern hemisphere and more",
            "a very long class name indeed that has many words",
            "International classification of diseases, tenth revision, chapter",
        ]
    )
    display = SimplexDisplay.from_predictions(
        names[np.unique(label, return_inverse=True)[1]],
        proba,
        labels=names,
        n_resamples=5,
        name="a model of a long name " * 3,
    )
    figure = display.figure_
    figure.draw_without_rendering()
    texts = [*display.ax_.texts, *display.ax_.get_xticklabels()]
    boxes = [text.get_window_extent() for text in texts]
    for box in [*boxes, display.legend_.get_window_extent()]:
        assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1
    assert boxes[-2].x1 < boxes[-1].x0


def test_bad_input():
    with pytest.raises(ValueError, match="y_proba must be of three classes; found 2"):
        SimplexDisplay.from_predictions(*two_classes(20))
    with pytest.raises(ValueError, match="n_bins"):
        SimplexDisplay.from_predictions(*several_classes(20, 3), n_bins=0)
    with pytest.raises(TypeError, match="colour"):
        SimplexDisplay.from_predictions(*several_classes(20, 3), colour="k")
