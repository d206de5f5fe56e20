"""The display of decisions shows the numbers of the metric, and decision curves."""

import numpy as np
import pytest
from figures import assert_texts_are_clear
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import BayesianRidge

from skcalib.decisions import DecisionLoss, bayes_action, expected_loss
from skcalib.display import DecisionDisplay
from skcalib.metrics import decision_calibration

plt = pytest.importorskip("matplotlib.pyplot")

RNG = np.random.default_rng(0)
P = RNG.beta(1, 2, size=200)
Y = RNG.random(200) < P**1.5
LOSS = DecisionLoss([[0, 5], [1, 0]], actions=["grant", "refuse"])


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_points_are_those_of_the_table():
    table = decision_calibration(Y, P, loss=LOSS)
    display = DecisionDisplay.from_predictions(Y, P, loss=LOSS, name="model")
    np.testing.assert_array_equal(display.line_.get_xdata(), table.expected)
    np.testing.assert_array_equal(display.line_.get_ydata(), table.realised)
    np.testing.assert_allclose(display.margin / table.standard_error, 1.96, atol=1e-4)
    groups = np.arange(200) // 10  # 20 of the same size
    table_of_groups = decision_calibration(Y, P, loss=LOSS, groups=groups)
    grouped = DecisionDisplay.from_predictions(Y, P, loss=LOSS, groups=groups)
    quantile = stats.t.isf(0.025, 19)
    np.testing.assert_allclose(grouped.margin, quantile * table_of_groups.standard_error)
    assert texts(display.ax_)[0] == f"grant ({table.share[0]:.0%})"
    again = DecisionDisplay.from_predictions(Y, P, loss=LOSS, name="other", ax=display.ax_)
    assert again.figure_ is display.figure_
    labels = display.ax_.get_legend_handles_labels()[1]
    assert labels == ["as expected", "model", "other"]


def test_a_name_is_written_as_a_text():
    display = DecisionDisplay.from_predictions(Y, P, loss=LOSS).plot(name=np.array([1, 2]))
    assert "[1 2]" in display.ax_.get_legend_handles_labels()[1]


def test_losses_that_are_close_have_clear_ticks_and_a_true_diagonal(layout):
    generator = np.random.default_rng(0)
    proba = generator.random(2000)
    display = DecisionDisplay.from_predictions(generator.random(2000) < proba, proba)
    assert_texts_are_clear(display.figure_)
    ax = display.ax_
    assert ax.get_xlim() == ax.get_ylim()
    assert np.ptp(ax.transData.transform([(0, 0), (1, 1)]), axis=0) @ [1, -1] == pytest.approx(0)


def test_names_of_actions_at_the_left_end_do_not_touch():
    # a short name that stands on the left of its point meets a long one on the right of its own
    names = np.array(["discharge with a visit", "admit", "wait"])
    expected, realised = np.array([0.1, 0.2, 0.5]), np.array([0.11, 0.115, 0.45])
    display = DecisionDisplay(names, expected, realised, margin=realised / 5).plot()
    assert_texts_are_clear(display.figure_)


def test_actions_that_are_never_best_are_not_drawn():
    display = DecisionDisplay.from_predictions(Y, P, loss=[[0, 5], [1, 0], [9, 9]])
    assert len(texts(display.ax_)) == 2


@pytest.mark.parametrize("t", [0.1, 0.5, 0.83])
def test_curves_are_losses_and_net_benefits(t):
    loss = np.array([[0, 1 - t], [t, 0]])
    action = bayes_action(P, loss=loss)
    realised = loss[action, Y.astype(int)].mean()
    shown = DecisionDisplay.from_predictions(Y, P, kind="loss", thresholds=[t])
    assert shown.realised[0] == pytest.approx(realised, abs=1e-14)
    assert shown.expected[0] == pytest.approx(expected_loss(P, loss=loss).mean(), abs=1e-14)
    # Vickers and Elkin (2006): true positives minus weighted false positives, over n
    benefit = np.mean(action & Y) - np.mean(action & ~Y) * t / (1 - t)
    curve = DecisionDisplay.from_predictions(Y, P, kind="net-benefit", thresholds=[t])
    assert curve.realised[0] == pytest.approx(benefit, abs=1e-14)
    assert benefit == pytest.approx(Y.mean() - realised / (1 - t))
    variance = np.mean(action * P * (1 - P)) / (1 - t) ** 2  # of the benefit of drawn labels
    assert curve.margin[0] == pytest.approx(1.959964 * np.sqrt(variance / 200), rel=1e-6)
    expected = np.mean(action * (P - (1 - P) * t / (1 - t)))
    assert curve.expected[0] == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("kind", ["loss", "net-benefit"])
def test_reference_lines(kind):
    t = np.array([0.2, 0.4])
    ax = DecisionDisplay.from_predictions(Y, P, kind=kind, thresholds=t).ax_
    lines = {line.get_label(): line.get_ydata() for line in ax.lines}
    base = Y.mean()
    always, never = {
        "loss": ((1 - base) * t, base * (1 - t)),
        "net-benefit": (base - (1 - base) * t / (1 - t), 0 * t),
    }[kind]
    np.testing.assert_allclose(lines["always act"], always)
    np.testing.assert_allclose(lines["never act"], never)
    bottom, top = ax.get_ylim()  # to act always may cost more than it brings
    assert (bottom < 0) == (kind == "net-benefit")
    assert max(lines["realised"].max(), lines["expected"].max()) < top


def test_forecasts_are_two_classes_by_a_threshold():
    mean = RNG.normal(size=100)
    y = mean + RNG.normal(size=100)
    forecast = mean, np.full(100, 0.5)
    shown = DecisionDisplay.from_predictions(y, forecast, kind="loss", loss=0.2, thresholds=[0.3])
    from skcalib.forecasts import as_forecast

    twin = DecisionDisplay.from_predictions(
        y > 0.2, as_forecast(forecast).sf(0.2), kind="loss", thresholds=[0.3]
    )
    assert shown.realised == pytest.approx(twin.realised)
    assert shown.expected == pytest.approx(twin.expected)


def test_estimators():
    X, y = P[:, None], Y.astype(int)
    model = DummyClassifier(strategy="prior").fit(X, y)
    display = DecisionDisplay.from_estimator(model, X, y, loss=LOSS)
    assert "DummyClassifier" in display.ax_.get_legend_handles_labels()[1]
    target = P + 0.1 * RNG.normal(size=200)
    ridge = BayesianRidge().fit(X, target)
    display = DecisionDisplay.from_estimator(ridge, X, target, loss=0.3, kind="net-benefit")
    assert display.place.shape == (99,)


def test_bad_input():
    proba = RNG.dirichlet(np.ones(3), size=20)
    label = np.arange(20) % 3
    with pytest.raises(ValueError, match="or kind='actions' of DecisionDisplay"):
        DecisionDisplay.from_predictions(label, proba, kind="loss")
    mean = RNG.normal(size=20)
    with pytest.raises(ValueError, match="loss must be a number c for forecasts"):
        DecisionDisplay.from_predictions(
            mean, (mean, 1 + 0 * mean), kind="loss", loss=lambda y: np.column_stack([y, -y])
        )
