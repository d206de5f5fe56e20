"""The mixture of tempered, given and uniform predictions is the best one."""

import numpy as np
import pytest
from problems import random_problem, two_columns
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.metrics import log_loss

from skcalib.recalibration import EnsembleTemperatureRecalibrator, TemperatureRecalibrator

both_kinds = pytest.mark.parametrize("n_classes", [2, 4])


def noisy_problem(n_classes, n=150, seed=0, temperature=0.4):
    """Overconfident predictions; a fifth of the labels is drawn from all classes."""
    rng = np.random.default_rng(seed)
    scores = 2 * rng.normal(size=(n, n_classes))
    label = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    wrong = rng.random(n) < 0.2
    label[wrong] = rng.integers(n_classes, size=wrong.sum())
    weight = rng.random(n)
    return label, scores / temperature, weight / weight.sum()


def mixture(log_proba, temperature, shares):
    """The documented map."""
    tempered = softmax(log_proba / temperature, axis=1)
    return shares[0] * tempered + shares[1] * np.exp(log_proba) + shares[2] / log_proba.shape[1]


def objective(log_proba, label, weight, prior_weight, temperature, shares):
    proba = np.exp(log_proba)
    share = prior_weight * (weight**2).sum()
    target = (np.eye(proba.shape[1])[label] + share * proba) / (1 + share)
    return -weight @ (target * np.log(mixture(log_proba, temperature, shares))).sum(axis=1)


# SciPy before 1.14 warns of its own steps beyond the bounds
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")
@pytest.mark.parametrize(
    ("n_classes", "prior_weight"),
    [
        pytest.param(2, 0.0, marks=pytest.mark.slow),
        pytest.param(4, 0.0, marks=pytest.mark.slow),
        pytest.param(4, 8.0, marks=pytest.mark.slow),
        (2, 8.0),
    ],
)
def test_a_general_optimiser_finds_nothing_better(n_classes, prior_weight):
    label, logits, weight = noisy_problem(n_classes)
    recalibrator = EnsembleTemperatureRecalibrator(prior_weight=prior_weight, input_type="logits")
    fitted = recalibrator.fit(logits, label, sample_weight=weight)
    log_proba = log_softmax(logits, axis=1)

    def loss(parameters):
        data = log_proba, label, weight, prior_weight
        return objective(*data, np.exp(parameters[0]), parameters[1:])

    found = np.append(np.log(fitted.temperature_), fitted.shares_)
    assert 0 < fitted.shares_[0] < 1
    losses = []
    for start in ([0, 0.4, 0.3, 0.3], [1.5, 0.8, 0.1, 0.1], [-1, 0.2, 0.6, 0.2]):
        oracle = minimize(
            loss,
            start,
            method="SLSQP",
            bounds=[(-3, 3), (1e-9, 1), (1e-9, 1), (1e-9, 1)],
            constraints={"type": "eq", "fun": lambda x: x[1:].sum() - 1},
            options={"ftol": 1e-14},
        )
        losses.append(oracle.fun)
    assert loss(found) <= min(losses) + 1e-12
    assert loss(found) == pytest.approx(min(losses), abs=1e-7)
    # T is a root, so that its derivative is small to all digits
    moved = [found + change * np.eye(4)[0] for change in (1e-4, -1e-4)]
    assert abs(loss(moved[0]) - loss(moved[1])) / 2e-4 < 1e-7
    assert min(map(loss, moved)) > loss(found)


@both_kinds
def test_the_map_is_the_mixture(n_classes):
    label, logits, _ = noisy_problem(n_classes)
    fitted = EnsembleTemperatureRecalibrator(input_type="logits").fit(logits, label)
    calibrated = fitted.predict_proba(logits)
    expected = mixture(log_softmax(logits, axis=1), fitted.temperature_, fitted.shares_)
    np.testing.assert_allclose(calibrated, expected, atol=1e-13, rtol=0)
    assert fitted.shares_.sum() == pytest.approx(1, abs=1e-15)
    assert (fitted.shares_ >= 0).all()
    np.testing.assert_array_equal(calibrated.argmax(axis=1), logits.argmax(axis=1))
    # declared logits and their probabilities are worth the same
    proba = softmax(logits, axis=1)
    same = EnsembleTemperatureRecalibrator().fit(proba, label).predict_proba(proba)
    np.testing.assert_allclose(same, calibrated, atol=1e-8)


def test_by_hand():
    # three of four are right where certainty is claimed: 3/4 = 1 − w + w/2, so that w = 1/2
    proba = [[1 - 1e-9, 1e-9]] * 2 + [[1e-9, 1 - 1e-9]] * 2
    fitted = EnsembleTemperatureRecalibrator(prior_weight=0).fit(proba, [0, 0, 1, 0])
    np.testing.assert_allclose(fitted.predict_proba(proba[:1]), [[0.75, 0.25]], atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
@both_kinds
def test_it_is_never_worse_than_its_parts(n_classes, seed):
    label, proba = random_problem(np.random.default_rng(seed), 60, n_classes)
    fitted = EnsembleTemperatureRecalibrator(prior_weight=0).fit(proba, label)
    temperature = TemperatureRecalibrator(prior_weight=0).fit(proba, label)
    loss = log_loss(label, fitted.predict_proba(proba))
    matrix = two_columns(proba) if n_classes == 2 else proba
    assert loss <= log_loss(label, temperature.predict_proba(proba)) + 1e-12
    assert loss <= log_loss(label, matrix) + 1e-12
    assert loss <= np.log(n_classes) + 1e-12


# takes longer: the search on a sample starts at 8192 samples
def test_a_sample_shows_where_to_search():
    label, logits, _ = noisy_problem(3, n=9000)
    fitted = EnsembleTemperatureRecalibrator(input_type="logits").fit(logits, label)
    assert fitted.shares_[2] == pytest.approx(0.2, abs=0.03)  # labels drawn from all classes
    moved = fitted.temperature_ * np.array([0.99, 1.01])
    weight = np.full(len(label), 1 / len(label))
    data = log_softmax(logits, axis=1), label, weight, 8.0
    best = objective(*data, fitted.temperature_, fitted.shares_)
    assert all(objective(*data, t, fitted.shares_) > best for t in moved)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_extreme_calibration_sets(n_classes):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(n_classes), 30)
    top = proba.argmax(axis=1)
    labels = list(range(n_classes))
    for prior_weight in (0.0, 8.0):
        recalibrator = EnsembleTemperatureRecalibrator(prior_weight=prior_weight, labels=labels)
        certain = recalibrator.fit(proba, top).predict_proba(proba)
        assert (certain[np.arange(30), top] > proba.max(axis=1) - 1e-9).all()
        worst = recalibrator.fit(proba, (top + 1) % n_classes).predict_proba(proba)
        assert log_loss((top + 1) % n_classes, worst, labels=labels) <= np.log(n_classes) * 1.2
        constant = np.full((4, n_classes), 1 / n_classes)
        same = recalibrator.fit(constant, [0, 0, 1, 1]).predict_proba(constant)
        np.testing.assert_allclose(same, constant, atol=1e-12)


@pytest.mark.parametrize("seed", [4, 7, 10])
def test_sure_predictions_that_are_no_better_than_chance(seed):
    # the three parts can be exchanged for each other, so which of them has a share is left open
    rng = np.random.default_rng(seed)
    proba, label = np.eye(3)[rng.integers(0, 3, 60)], rng.integers(0, 3, 60)
    fitted = EnsembleTemperatureRecalibrator(prior_weight=8, labels=[0, 1, 2]).fit(proba, label)
    n_right = np.sum(proba.argmax(axis=1) == label)
    expected = (n_right + 8) / (60 + 8)  # the eight samples of the prior are as predicted
    assert fitted.predict_proba(proba).max(axis=1) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("prior_weight", [None, 8])
def test_where_the_temperature_has_no_share_it_is_not_searched(prior_weight):
    rng = np.random.default_rng(50)
    n_classes = int(rng.integers(2, 5))
    proba, label = np.eye(n_classes)[rng.integers(0, n_classes, 40)], rng.integers(0, n_classes, 40)
    options = {} if prior_weight is None else {"prior_weight": prior_weight}
    fitted = EnsembleTemperatureRecalibrator(labels=range(n_classes), **options).fit(proba, label)
    calibrated = fitted.predict_proba(proba)
    losses = -np.log(np.clip([proba, calibrated], 1e-3, 1)[:, range(40), label])
    assert losses[1].mean() < losses[0].mean()
