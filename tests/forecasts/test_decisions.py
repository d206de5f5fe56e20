"""Best actions and expected losses against loops, quadrature and closed forms."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from test_forecast_laws import FORECASTS

from skcalib.decisions import DecisionLoss, bayes_action, expected_loss
from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    GaussianMixtureForecast,
    QuantileForecast,
    ResidualForecast,
)
from skcalib.metrics import decision_calibration, decision_calibration_error, decision_curve

RNG = np.random.default_rng(0)
N = 12
MEAN, STD = RNG.normal(size=N), RNG.uniform(0.5, 2, size=N)
LOSS = np.array([[0, 4, 9], [2, 1, 2], [5, 3, 0], [2, 2, 2]])
PROBA = RNG.dirichlet(np.ones(3), size=40)


def squares(y):
    return np.column_stack([(y - a) ** 2 for a in (-1, 0, 1)])


def cost(order, demand):
    return np.where(demand > order, 3.0, 1.0) * np.abs(demand - order)


def test_classes_equal_loops():
    for row, action, expected in zip(
        PROBA, bayes_action(PROBA, loss=LOSS), expected_loss(PROBA, loss=LOSS), strict=True
    ):
        losses = [sum(p * one for p, one in zip(row, of, strict=True)) for of in LOSS]
        assert action == losses.index(min(losses))
        assert expected == pytest.approx(min(losses), abs=1e-14)


def test_two_classes_in_one_column_or_two():
    p = PROBA[:, 0] / 2
    loss = [[0, 5], [1, 0]]
    np.testing.assert_array_equal(bayes_action(p, loss=loss), p > 1 / 6)
    both = np.column_stack([1 - p, p])
    np.testing.assert_array_equal(
        expected_loss(p, loss=loss), expected_loss(both, loss=loss, labels=["a", "b"])
    )


def test_zero_one_losses_call_for_the_most_probable_class():
    np.testing.assert_array_equal(bayes_action(PROBA, loss="zero-one"), PROBA.argmax(axis=1))
    np.testing.assert_allclose(expected_loss(PROBA, loss="zero-one"), 1 - PROBA.max(axis=1))


def test_numbers_and_callables_of_classes_are_matrices():
    labels = [10, 30, 20]  # in the order of the columns
    above = np.array([[0, 1, 1], [1, 0, 0]])
    matrix = np.array([[(y - a) ** 2 for y in labels] for a in (0, 20, 25)])

    def distance(y):
        return np.column_stack([(y - a) ** 2 for a in (0, 20, 25)])

    for loss, table in ((15, above), (distance, matrix)):
        for function in (bayes_action, expected_loss):
            actual = function(PROBA, loss=loss, labels=labels)
            np.testing.assert_allclose(actual, function(PROBA, loss=table), atol=1e-12)


def test_ties_go_to_the_first_action_up_to_rounding():
    assert bayes_action([0.5, 0.1 + 0.2], loss=[[0, 0.7], [0.3, 0]]).tolist() == [1, 0]
    members = np.array([[1.0, 2.0, 3.0, 4.0]])
    assert bayes_action(EnsembleForecast(members), loss=2.5).tolist() == [0]
    assert bayes_action(EnsembleForecast(members), loss=2.4).tolist() == [0]
    assert bayes_action(EnsembleForecast(members), loss=1.9).tolist() == [1]


@pytest.mark.parametrize("forbidden", [1e13, 1e300])
def test_a_forbidden_action_changes_no_other(forbidden):
    proba, loss = [0.05, 0.3, 0.9, 0.99], [[0, 5], [1, 0]]
    with_it = bayes_action(proba, loss=[*loss, [forbidden, forbidden]])
    np.testing.assert_array_equal(with_it, bayes_action(proba, loss=loss))


def test_actions_have_names():
    loss = DecisionLoss(LOSS, actions=["grant", "ask", "refuse", "wait"])
    names = bayes_action(PROBA, loss=loss)
    assert set(names) <= {"grant", "ask", "refuse", "wait"}
    np.testing.assert_allclose(
        expected_loss(PROBA, loss=loss, action=names), expected_loss(PROBA, loss=LOSS)
    )
    np.testing.assert_allclose(expected_loss(PROBA, loss=loss, action="ask"), PROBA @ LOSS[1])
    np.testing.assert_allclose(expected_loss(PROBA, loss=LOSS, action=1), PROBA @ LOSS[1])


def test_a_number_is_a_threshold_of_the_outcome():
    forecast = GaussianForecast(MEAN, STD)
    above = stats.norm(MEAN, STD).sf(0.3)
    np.testing.assert_array_equal(bayes_action(forecast, loss=0.3), above > 0.5)
    np.testing.assert_allclose(expected_loss(forecast, loss=0.3), np.minimum(above, 1 - above))
    np.testing.assert_allclose(expected_loss(forecast, loss=0.3, action=0), above)


def test_squares_have_a_closed_form():
    exact = np.column_stack([(MEAN - a) ** 2 + STD**2 for a in (-1, 0, 1)])
    mixture = GaussianMixtureForecast(MEAN[:, None], STD[:, None])
    for forecast in ((MEAN, STD), DistributionForecast(stats.norm(MEAN, STD)), mixture):
        for a in range(3):
            actual = expected_loss(forecast, loss=squares, action=a)
            np.testing.assert_allclose(actual, exact[:, a], rtol=1e-6)


def test_members_are_summed():
    members = MEAN[:, None] + RNG.normal(size=(N, 5))
    weight = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    exact = np.array([weight @ squares(row) for row in members])
    actual = expected_loss(EnsembleForecast(members, weight), loss=squares)
    np.testing.assert_allclose(actual, exact.min(axis=1), rtol=1e-13)
    residual = ResidualForecast(MEAN, [-1.0, 0.5, 2.0])
    exact = np.array([squares(m + np.array([-1.0, 0.5, 2.0])).mean(axis=0) for m in MEAN])
    actual = expected_loss(residual, loss=squares)
    np.testing.assert_allclose(actual, exact.min(axis=1), rtol=1e-13)


def test_atoms_are_summed():
    rate = np.array([0.3, 2.0, 7.0])
    values = np.arange(60)
    probability = stats.poisson(rate[:, None]).pmf(values)
    loss = DecisionLoss(cost, actions=np.arange(12))
    exact = np.array([[p @ cost(a, values) for a in range(12)] for p in probability])
    forecast = DistributionForecast(stats.poisson(rate))
    np.testing.assert_allclose(expected_loss(forecast, loss=loss), exact.min(axis=1), rtol=1e-9)
    np.testing.assert_array_equal(bayes_action(forecast, loss=loss), exact.argmin(axis=1))


@pytest.mark.parametrize("where", [0.3, -40.0, 1e3])
def test_breakpoints_make_steps_and_kinks_exact(where):
    def step(y):
        return np.column_stack([np.where(y > where, y, 0.0), np.abs(y - where)])

    loss = DecisionLoss(step, breakpoints=[where])
    z = (where - MEAN) / STD
    exact = MEAN * stats.norm.sf(z) + STD * stats.norm.pdf(z)
    actual = expected_loss((MEAN, STD), loss=loss, action=0)
    np.testing.assert_allclose(actual, exact, rtol=1e-7, atol=1e-7)
    # E|Y − t| = (μ − t) (2Φ((μ − t)/σ) − 1) + 2 σ φ((μ − t)/σ), the mean of a folded normal
    far = -z * STD * (2 * stats.norm.cdf(-z) - 1) + 2 * STD * stats.norm.pdf(z)
    near = expected_loss((MEAN, STD), loss=loss, action=1)
    np.testing.assert_allclose(near, far, rtol=1e-6)


def test_many_rows_are_taken_in_blocks(monkeypatch):
    expected = expected_loss((MEAN, STD), loss=squares)
    monkeypatch.setattr("skcalib.forecasts._base._MAX_EXPECTED_ROWS", 5)
    np.testing.assert_array_equal(expected_loss((MEAN, STD), loss=squares), expected)


def test_quantiles_know_the_median_and_no_expectation():
    grid = QuantileForecast([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [0.1, 0.5, 0.9])
    assert bayes_action(grid, loss=2.5).tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"loss must be a number .* for a QuantileForecast"):
        expected_loss(grid, loss=squares)


LOSSES_OF_NUMBERS = [
    0.3,
    squares,
    DecisionLoss(lambda a, y: np.abs(y - a), actions=[-1, 0, 2], breakpoints=[-1, 0, 2]),
]


@pytest.mark.parametrize("kind", sorted(set(FORECASTS) - {"quantile"}))  # expects no losses
def test_the_mean_without_outcomes_is_the_one_beside_realised_losses(kind):
    forecast, weight = FORECASTS[kind][17:23], [3, 0, 2, 2, 1, 4]
    is_slow = kind in ("mixture", "concatenated")  # 0.4 s for each callable
    for loss in LOSSES_OF_NUMBERS[:1] if is_slow else LOSSES_OF_NUMBERS:
        table = decision_calibration(np.ones(6), forecast, loss=loss, sample_weight=weight)
        mean = np.average(expected_loss(forecast, loss=loss), weights=weight)
        assert mean == pytest.approx(table.expected_loss, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize(
    "kind", ["normal", "logistic", "gamma", "censored", "affine", "recalibrated"]
)
def test_expected_squares_are_integrals_of_the_distribution_function(kind):
    # E(Y − a)² = 2 ∫ |y − a| (P(Y ≤ y) below a, P(Y > y) above it) dy, by the midpoint rule
    width = 0.05
    y = np.arange(-30, 30, width) + width / 2
    below = FORECASTS[kind][np.full(len(y), 20)].cdf(y)
    for k, a in enumerate((-1, 0, 1)):
        integral = 2 * width * np.abs(y - a) @ np.where(y < a, below, 1 - below)
        actual = expected_loss(FORECASTS[kind][20:21], loss=squares, action=k)
        assert actual == pytest.approx(integral, rel=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_mean_without_labels_is_the_one_beside_realised_losses(n_classes):
    rng = np.random.default_rng(n_classes)
    proba = rng.dirichlet(np.ones(n_classes), 40)
    labels, weight = np.array([*"edcba"])[:n_classes], rng.random(40)  # not in their sorted order
    y, losses = rng.choice(labels, 40), rng.normal(size=(4, n_classes))
    options = {"labels": labels, "sample_weight": weight}
    for loss in (losses, "zero-one", DecisionLoss(losses, actions=[*"pqrs"])):
        table = decision_calibration(y, proba, loss=loss, **options)
        mean = weight / weight.sum() @ expected_loss(proba, loss=loss, labels=labels)
        assert mean == pytest.approx(table.expected_loss, rel=1e-12, abs=1e-14)
        if n_classes == 2:
            single = expected_loss(proba[:, 1], loss=loss, labels=labels)
            assert weight / weight.sum() @ single == pytest.approx(mean, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8])
def test_decision_curves_expect_the_same_loss(threshold):
    p = np.array([0.02, 0.1, 0.4, 0.5, 0.7, 0.8, 0.97])
    curve = decision_curve(p > 0.3, p, kind="loss", thresholds=[threshold])
    mean = expected_loss(p, loss=[[0, 1 - threshold], [threshold, 0]]).mean()
    assert mean == pytest.approx(curve.expected[0], rel=1e-12)


NOT_A_LOSS = {
    "matrix of another shape": ({"loss": [[0, 1]]}, "one column for each of the 3 classes"),
    "vector": ({"loss": [0, 1, 2]}, "loss must be a finite matrix with one row for each action"),
    "nothing": ({"loss": None}, "loss must be a finite matrix"),
    "truth value": ({"loss": True}, "loss must be a finite matrix"),
    "NaN": ({"loss": [[0, 1, 2], [1, 0, np.nan]]}, "found NaN or infinity for action 1"),
    "no actions": ({"loss": np.empty((0, 3))}, "loss must be a finite matrix"),
    "text": ({"loss": "zero"}, "loss must be 'zero-one'"),
    "infinite": ({"loss": np.inf}, "loss must be a finite number"),
    "unknown classes": ({"loss": 0.5}, "labels must be given"),
    "names of classes": ({"loss": 0.5, "labels": list("abc")}, "classes on both sides"),
    "beyond the classes": ({"loss": 7, "labels": [1, 2, 3]}, "classes on both sides"),
    "too few labels": ({"loss": 1, "labels": [1, 2]}, "one class for each of the 3 columns"),
    "one column": ({"loss": lambda y: y, "labels": [1, 2, 3]}, "must return the finite losses"),
    "infinite values": (
        {"loss": lambda y: np.outer(y, [np.inf]), "labels": [1, 2, 3]},
        "must return the finite losses",
    ),
}


@pytest.mark.parametrize("name", NOT_A_LOSS)
def test_bad_losses(name):
    options, message = NOT_A_LOSS[name]
    for function in (bayes_action, expected_loss):
        with pytest.raises(ValueError, match=message):
            function(PROBA, **options)


def test_bad_actions():
    with pytest.raises(ValueError, match="one action for each of the 4 that have losses; found 2"):
        DecisionLoss(LOSS, actions=["a", "b"])
    with pytest.raises(ValueError, match="one action for each of the 2"):
        DecisionLoss(0.5, actions=["a"])
    with pytest.raises(ValueError, match="one action for each of the 3"):
        bayes_action(PROBA, loss=DecisionLoss("zero-one", actions=["a", "b"]))
    with pytest.raises(ValueError, match="actions must list each action once"):
        DecisionLoss(LOSS, actions=["a", "b", "a", "c"])
    with pytest.raises(ValueError, match="action must be among those"):
        expected_loss(PROBA, loss=LOSS, action=4)
    with pytest.raises(ValueError, match="one for each of the 40 samples"):
        expected_loss(PROBA, loss=LOSS, action=[0, 1])
    with pytest.raises(ValueError, match="of one action, of shape"):
        bayes_action((MEAN, STD), loss=DecisionLoss(lambda a, y: squares(y), actions=[1, 2]))
    for action in ({"a": 1}, pd.NA, [[1], [1, 2]]):
        with pytest.raises(ValueError, match="action must be"):
            expected_loss(PROBA, loss=LOSS, action=action)
    with pytest.raises(ValueError, match="breakpoints must be an array"):
        DecisionLoss(squares, breakpoints=[[1], [1, 2]])
    with pytest.raises(ValueError, match="breakpoints must be finite"):
        DecisionLoss(squares, breakpoints=[np.nan])


def test_predictions_are_refused_by_their_name():
    with pytest.raises(ValueError, match=r"y_pred must lie in \[0, 1\]"):
        bayes_action([20.0, 30.0], loss="zero-one")
    for columns, labels in (([2, 1, 0], None), ([*"bca"], [*"abc"])):
        frame = pd.DataFrame(PROBA, columns=columns)
        with pytest.raises(ValueError, match=r"y_pred .*order"):
            bayes_action(frame, loss="zero-one", labels=labels)


def test_losses_of_classes_are_none_of_numbers():
    for loss in (LOSS, "zero-one"):
        with pytest.raises(ValueError, match="for forecasts of a number; found DecisionLoss"):
            bayes_action((MEAN, STD), loss=loss)


def test_thresholds_and_losses_of_other_precisions_are_judged_as_doubles():
    assert DecisionLoss(np.float32(0.5)).loss == 0.5
    for infinite in (np.float32("inf"), np.full((2, 2), np.longdouble("1e400"))):
        with pytest.raises(ValueError, match="loss must be a finite"):
            DecisionLoss(infinite)


@pytest.mark.parametrize("metric", [decision_calibration_error, decision_calibration])
@pytest.mark.parametrize(
    "predictions", [[0.2, 0.7], GaussianForecast([0.0, 1.0], [1.0, 1.0])], ids=["p", "normal"]
)
def test_losses_whose_squares_overflow_have_no_gaps(metric, predictions):
    def huge(y):
        return np.column_stack([y, y]) * 1e200

    loss = [[0, 1e200], [1, 0]] if isinstance(predictions, list) else huge
    with pytest.raises(ValueError, match=r"loss must be at most 1e\+70.*larger unit"):
        metric([0, 1], predictions, loss=loss)
