"""Spline recalibration is a sigmoid where it is stiff, and bends where the data bend."""

import numpy as np
import pytest
from problems import random_problem, two_columns
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from skcalib.recalibration import SigmoidRecalibrator, SplineRecalibrator

EPS = np.finfo(np.float64).eps


def bent(rng, n):
    proba = expit(2 * rng.normal(size=n))
    truth = 0.1 + 0.8 * proba**3
    return (rng.random(n) < truth).astype(int), proba, truth


def test_stiff_splines_are_sigmoids():
    label, proba = random_problem(np.random.default_rng(0), 100)
    sigmoid = SigmoidRecalibrator().fit(proba, label)
    for stiff in (SplineRecalibrator(smoothing=1e9), SplineRecalibrator(2)):
        stiff.fit(proba, label)
        query = np.linspace(0, 1, 50)
        np.testing.assert_allclose(
            stiff.predict_proba(query), sigmoid.predict_proba(query), atol=1e-7
        )


def test_smoothing_is_that_of_the_best_fit_for_it():
    label, proba, _ = bent(np.random.default_rng(0), 400)
    chosen = SplineRecalibrator().fit(proba, label)
    given = SplineRecalibrator(smoothing=chosen.smoothing_[0]).fit(proba, label)
    np.testing.assert_allclose(given.maps_[0][1], chosen.maps_[0][1], rtol=1e-9)


def test_bends_where_the_data_do():
    rng = np.random.default_rng(0)
    label, proba, _ = bent(rng, 2000)
    test_label, test_proba, truth = bent(rng, 5000)
    spline = SplineRecalibrator().fit(proba, label).predict_proba(test_proba)[:, 1]
    sigmoid = SigmoidRecalibrator().fit(proba, label).predict_proba(test_proba)[:, 1]
    assert log_loss(test_label, spline) < log_loss(test_label, sigmoid) - 0.01
    assert np.mean(np.abs(spline - truth)) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 100, 1000])
def test_costs_little_where_a_line_is_right(n):
    rng = np.random.default_rng(0)
    costs = []
    for _ in range(200):
        proba = expit(2 * rng.normal(size=n + 2000))
        truth = expit(0.5 + 0.7 * logit(proba))
        label = rng.random(len(proba)) < truth
        losses = []
        for recalibrator in (SplineRecalibrator(), SigmoidRecalibrator()):
            q = recalibrator.fit(proba[:n], label[:n]).predict_proba(proba[n:])[:, 1]
            t = truth[n:]
            losses.append(-np.mean(t * np.log(q) + (1 - t) * np.log(1 - q)))
        costs.append(losses[0] - losses[1])
    assert np.mean(costs) < 1 / n  # as much as two coefficients


def test_several_classes_are_one_against_the_rest():
    label, proba = random_problem(np.random.default_rng(0), 200, 4)
    recalibrator = SplineRecalibrator(prior_weight=1e-9).fit(proba, label)
    singles = [SplineRecalibrator(prior_weight=1e-9).fit(proba[:, k], label == k) for k in range(4)]
    columns = [single.predict_proba(proba[:, k])[:, 1] for k, single in enumerate(singles)]
    expected = np.column_stack(columns) / np.sum(columns, axis=0)[:, None]
    np.testing.assert_allclose(recalibrator.predict_proba(proba), expected, atol=1e-8)
    expected = [single.smoothing_[0] for single in singles]
    np.testing.assert_allclose(recalibrator.smoothing_, expected, rtol=1e-12)


def test_maps_give_the_calibrated_logits():
    label, proba, _ = bent(np.random.default_rng(0), 200)
    recalibrator = SplineRecalibrator(5).fit(proba, label)
    knots, values = recalibrator.maps_[0]
    assert len(knots) == 5
    assert (knots[0], knots[-1]) == (logit(proba.min()), logit(proba.max()))
    fitted = logit(recalibrator.predict_proba(expit(knots))[:, 1])
    np.testing.assert_allclose(fitted, values, rtol=1e-9)
    # straight lines go on
    beyond = knots[-1] + np.arange(3.0)
    fitted = logit(recalibrator.predict_proba(expit(beyond))[:, 1])
    assert np.diff(fitted, 2) == pytest.approx(0, abs=1e-9)


def test_a_strong_prior_changes_nothing():
    label, proba = random_problem(np.random.default_rng(0), 50)
    recalibrator = SplineRecalibrator(prior_weight=1e12).fit(proba, label)
    np.testing.assert_allclose(recalibrator.predict_proba(proba), two_columns(proba), atol=1e-9)


def test_equal_predictions_are_shifted():
    recalibrator = SplineRecalibrator(prior_weight=0).fit(np.full(9, 0.3), [0] * 5 + [1] * 4)
    at, elsewhere = recalibrator.predict_proba([0.3, 0.6])[:, 1]
    assert at == pytest.approx(4 / 9, rel=1e-12)
    assert logit(elsewhere) - logit(at) == pytest.approx(logit(0.6) - logit(0.3), rel=1e-12)


def test_outcomes_that_can_be_separated():
    proba = np.linspace(0.05, 0.95, 12)
    label = proba > 0.5
    fitted = SplineRecalibrator().fit(proba, label).predict_proba(proba)
    assert log_loss(label, fitted) < 0.3
    with pytest.warns(ConvergenceWarning, match="no maximum.*Set a positive prior_weight"):
        fitted = SplineRecalibrator(prior_weight=0).fit(proba, label).predict_proba(proba)
    assert log_loss(label, fitted) < 1e-6


def test_votes_of_a_forest():
    rng = np.random.default_rng(0)
    votes = np.round(rng.beta(0.3, 0.3, size=2000), 2)
    label = rng.random(2000) < np.clip(votes, 0.03, 0.97)
    recalibrator = SplineRecalibrator().fit(votes, label)
    assert recalibrator.smallest_probability_ == pytest.approx(0.005)
    fitted = recalibrator.predict_proba([0.0, 0.005, 1.0])[:, 1]
    assert fitted[0] == fitted[1]
    assert 0.01 < fitted[0] < 0.06
    assert 0.94 < fitted[2] < 0.99


@pytest.mark.parametrize(
    ("seed", "smoothing"),
    [(seed, value) for seed in range(24) for value in (None, (0, 1e-3)[seed % 2])],
)
def test_extreme_data(seed, smoothing):
    rng = np.random.default_rng(seed)
    n = [1, 2, 5, 30][seed % 4]
    proba = [
        expit(15 * rng.normal(size=n)),
        rng.choice([0.0, 0.3, 1.0], size=n),
        10.0 ** rng.uniform(-320, 0, size=n),
        0.5 + 1e-13 * rng.random(n),
        np.full(n, 0.5),
        np.round(rng.random(n), 1),
    ][seed // 4 % 6]
    label = rng.random(n) < (proba if seed % 3 else 0.3)
    weight = 10.0 ** rng.uniform(-12, 0, size=n) if seed % 5 == 0 else None
    recalibrator = SplineRecalibrator(smoothing=smoothing, labels=[False, True])
    recalibrator.fit(proba, label, sample_weight=weight)
    fitted = recalibrator.predict_proba(np.append(proba, [0.0, 1e-300, 0.5, 1.0]))
    assert ((fitted > 0) & (fitted < 1)).all()
    np.testing.assert_allclose(fitted.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize(
    "parameters",
    [{"n_knots": 1}, {"n_knots": 2.5}, {"smoothing": -1}, {"smoothing": "a"}, {"prior_weight": -1}],
    ids=str,
)
def test_bad_parameters_are_refused(parameters):
    with pytest.raises(ValueError, match="parameter of SplineRecalibrator must be"):
        SplineRecalibrator(**parameters).fit([0.2, 0.7], [0, 1])


@pytest.mark.parametrize("smoothing", [1e15, 1e30, 1e300])
def test_a_very_large_smoothing_is_a_straight_line(smoothing):
    label, proba = random_problem(np.random.default_rng(0), 100)
    spline = SplineRecalibrator(smoothing=smoothing).fit(proba, label).predict_proba(proba)
    sigmoid = SigmoidRecalibrator().fit(proba, label).predict_proba(proba)
    np.testing.assert_allclose(spline, sigmoid, atol=1e-10)


@pytest.mark.parametrize("spread", [0.02, 0.2, 1.0])
def test_the_curve_bends_within_the_range_of_narrow_predictions(spread):
    """What logits of standard deviation 1 can learn, narrower ones can, too."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=2000)
    truth = expit(z**2 - 1)
    label = (rng.random(2000) < truth).astype(int)
    proba = expit(spread * z)
    fitted = SplineRecalibrator().fit(proba[:500], label[:500]).predict_proba(proba)[:, 1]
    assert np.mean(np.abs(fitted - truth)[500:]) < 0.06
