"""Sigmoid, beta and quadratic recalibration equal general optimisers and survive extreme data."""

from functools import partial

import numpy as np
import pytest
from oracles import labels_of_prior
from problems import random_problem, two_columns
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skcalib.recalibration import (
    BetaRecalibrator,
    QuadraticRecalibrator,
    SigmoidRecalibrator,
    VectorScalingRecalibrator,
)

EPS = np.finfo(np.float64).eps
FAMILY = {
    "sigmoid": SigmoidRecalibrator,
    "quadratic": QuadraticRecalibrator,
    "beta": BetaRecalibrator,
    "beta, am": partial(BetaRecalibrator, "am"),
    "beta, ab": partial(BetaRecalibrator, "ab"),
}
whole_family = pytest.mark.parametrize("make", FAMILY.values(), ids=FAMILY)


def features(make, proba):
    """Features, how many of the first coefficients must not be negative, and the identity."""
    recalibrator = make()
    x = logit(proba)
    if not isinstance(recalibrator, BetaRecalibrator):
        degree = 1 + isinstance(recalibrator, QuadraticRecalibrator)
        return x[:, None] ** np.arange(degree + 1), 0, np.eye(degree + 1)[1]
    one, rising, falling = np.ones(len(x)), np.log(proba), -np.log(1 - proba)
    if recalibrator.parameters == "am":
        return np.column_stack([rising + falling, one]), 1, np.array([1.0, 0.0])
    if recalibrator.parameters == "ab":
        design = np.column_stack([rising + np.log(2), falling - np.log(2)])
        return design, 2, np.array([1.0, 1.0])
    return np.column_stack([rising, falling, one]), 2, np.array([1.0, 1.0, 0.0])


def soft_loss(coefficients, design, target, weight):
    linear = design @ coefficients
    return weight @ (target * np.logaddexp(0, -linear) + (1 - target) * np.logaddexp(0, linear))


def weighted_target(proba, label, weight, prior_weight):
    weight = np.ones(len(proba)) if weight is None else weight
    weight = weight / weight.sum()
    prior = prior_weight * np.sum(weight**2)
    return (label + prior * proba) / (1 + prior), weight


@pytest.mark.parametrize("prior_weight", [0, 1.0])
@pytest.mark.parametrize("seed", range(6))
@whole_family
def test_equals_a_general_optimiser(make, seed, prior_weight):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, 80)
    if seed == 1:
        label = 1 - label  # every coefficient at its bound
    if seed == 2:
        label = (rng.random(80) < 0.5 + (proba - 0.5) ** 2).astype(int)  # one of them
    if seed == 3:
        label = (rng.random(80) < 0.6 - 0.5 * (1 - proba) ** 3).astype(int)
    weight = rng.random(80) if seed % 2 else None
    recalibrator = make(prior_weight=prior_weight).fit(proba, label, sample_weight=weight)
    target, normalised = weighted_target(proba, label, weight, prior_weight)
    design, n_bounded, identity = features(make, proba)
    bounds = [(0, None)] * n_bounded + [(None, None)] * (design.shape[1] - n_bounded)
    oracle = minimize(
        soft_loss,
        identity,
        (design, target, normalised),
        method="SLSQP",
        bounds=bounds,
        options={"ftol": 1e-15, "maxiter": 500},
    )
    fitted = logit(recalibrator.predict_proba(proba)[:, 1])
    np.testing.assert_allclose(expit(fitted), expit(design @ oracle.x), atol=1e-5)
    ours = normalised @ (target * np.logaddexp(0, -fitted) + (1 - target) * np.logaddexp(0, fitted))
    assert ours <= oracle.fun + 1e-13


@pytest.mark.parametrize("seed", range(5))
@whole_family
def test_no_other_map_of_the_family_is_better(make, seed):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, 30)
    target, weight = weighted_target(proba, label, None, 16.0)
    design, n_bounded, _ = features(make, proba)
    fitted = logit(make().fit(proba, label).predict_proba(proba)[:, 1])
    coefficients = np.linalg.lstsq(design, fitted, rcond=None)[0]
    best = soft_loss(coefficients, design, target, weight)
    for scale in 10.0 ** rng.uniform(-4, 0, size=100):
        moved = coefficients + scale * rng.normal(size=len(coefficients))
        moved[:n_bounded] = np.maximum(moved[:n_bounded], 0)
        assert soft_loss(moved, design, target, weight) >= best - 1e-14


def coefficients(recalibrator):
    return np.column_stack([recalibrator.intercept_, recalibrator.coef_])


def test_sigmoid_equals_scikit_learn():
    label, proba = random_problem(np.random.default_rng(1), 300)
    oracle = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12)
    oracle.fit(logit(proba)[:, None], label)
    recalibrator = SigmoidRecalibrator(prior_weight=0).fit(proba, label)
    expected = [[oracle.intercept_[0], oracle.coef_[0, 0]]]
    np.testing.assert_allclose(coefficients(recalibrator), expected, rtol=1e-9)


def test_two_predictions_by_hand():
    # the fit goes through both frequencies, 1/4 and 1/2
    proba, label = np.repeat([0.2, 0.8], 4), np.array([0, 0, 0, 1, 0, 1, 0, 1])
    recalibrator = SigmoidRecalibrator(prior_weight=0).fit(proba, label)
    np.testing.assert_allclose(
        coefficients(recalibrator), [[-np.log(3) / 2, np.log(3) / np.log(16)]], rtol=1e-12
    )
    # a prior of 8 samples: half-way from the frequencies to the predictions
    for make in list(FAMILY.values())[:4]:
        fitted = make(prior_weight=8).fit(proba, label).predict_proba([0.2, 0.8])[:, 1]
        np.testing.assert_allclose(fitted, [0.225, 0.65], rtol=1e-12)


def test_fitting_a_sigmoid_twice_changes_nothing_more():
    label, proba = random_problem(np.random.default_rng(0), 200)
    once = SigmoidRecalibrator(prior_weight=0).fit(proba, label).predict_proba(proba)
    again = SigmoidRecalibrator(prior_weight=0).fit(once, label)
    np.testing.assert_allclose(coefficients(again), [[0, 1]], atol=1e-9)
    np.testing.assert_allclose(again.predict_proba(once), once, atol=1e-9)


@whole_family
def test_a_strong_prior_changes_nothing(make):
    label, proba = random_problem(np.random.default_rng(0), 50)
    recalibrator = make(prior_weight=1e12).fit(proba, label)
    np.testing.assert_allclose(recalibrator.predict_proba(proba), two_columns(proba), atol=1e-9)


@whole_family
def test_equal_predictions_are_shifted(make):
    proba, label = np.full(9, 0.3), np.array([0, 0, 0, 0, 0, 0, 1, 1, 1])
    label[0] = 1
    recalibrator = make(prior_weight=0).fit(proba, label)
    at, elsewhere = recalibrator.predict_proba([0.3, 0.6])[:, 1]
    assert at == pytest.approx(4 / 9, rel=1e-12)
    if make is not FAMILY["beta, ab"]:  # which must not move 1/2
        assert logit(elsewhere) - logit(at) == pytest.approx(logit(0.6) - logit(0.3), rel=1e-12)


def test_two_predictions_leave_the_square_at_0_and_both_ends_alike():
    proba, label = np.repeat([0.2, 0.7], 4), np.array([0, 0, 0, 1, 0, 1, 0, 1])
    sigmoid = SigmoidRecalibrator().fit(proba, label)
    quadratic = QuadraticRecalibrator().fit(proba, label)
    beta = BetaRecalibrator().fit(proba, label)
    np.testing.assert_allclose(
        coefficients(quadratic), [[*coefficients(sigmoid)[0], 0]], atol=1e-12
    )
    intercept, slope = coefficients(sigmoid)[0]
    np.testing.assert_allclose(coefficients(beta), [[intercept, slope, slope]], rtol=1e-12)


def test_beta_of_equal_ends_is_the_sigmoid():
    label, proba = random_problem(np.random.default_rng(0), 100)
    intercept, slope = coefficients(SigmoidRecalibrator().fit(proba, label))[0]
    beta = BetaRecalibrator("am").fit(proba, label)
    np.testing.assert_allclose(coefficients(beta), [[intercept, slope, slope]], rtol=1e-12)


def test_beta_that_keeps_one_half():
    label, proba = random_problem(np.random.default_rng(0), 100)
    beta = BetaRecalibrator("ab").fit(proba, label)
    assert beta.predict_proba([0.5])[0, 1] == pytest.approx(0.5, rel=1e-12)
    c, a, b = coefficients(beta)[0]
    assert c == pytest.approx((a - b) * np.log(2), rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("parameters", ["abm", "am", "ab"])
def test_beta_keeps_the_ranking(seed, parameters):
    rng = np.random.default_rng(seed)
    proba = expit(rng.normal(size=40) * 10 ** rng.uniform(-1, 1))
    label = rng.integers(0, 2, size=40)
    recalibrator = BetaRecalibrator(parameters).fit(proba, label)
    assert (recalibrator.coef_ >= 0).all()
    fitted = recalibrator.predict_proba(np.linspace(0, 1, 1001))[:, 1]
    assert (np.diff(fitted) >= -1e-15).all()


def test_quadratic_need_not_keep_the_ranking():
    proba = np.linspace(0.1, 0.9, 9)
    label = np.array([1, 1, 0, 0, 0, 0, 0, 1, 1])
    fitted = QuadraticRecalibrator().fit(proba, label).predict_proba(proba)[:, 1]
    assert fitted[0] > fitted[4] < fitted[8]


@whole_family
def test_several_classes_are_one_against_the_rest(make):
    label, proba = random_problem(np.random.default_rng(0), 200, 4)
    recalibrator = make(prior_weight=0).fit(proba, label)
    singles = [make(prior_weight=0).fit(proba[:, k], label == k) for k in range(4)]
    np.testing.assert_allclose(
        coefficients(recalibrator),
        np.vstack([coefficients(single) for single in singles]),
        rtol=1e-9,
    )
    columns = [single.predict_proba(proba[:, k])[:, 1] for k, single in enumerate(singles)]
    expected = np.column_stack(columns) / np.sum(columns, axis=0)[:, None]
    np.testing.assert_allclose(recalibrator.predict_proba(proba), expected, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@whole_family
def test_the_prior_of_several_classes_is_a_temperature(make, weighted):
    rng = np.random.default_rng(1)
    label, proba = random_problem(rng, 60, 4)
    weight = rng.random(60) if weighted else np.ones(60)
    weight /= weight.sum()
    recalibrator = make(prior_weight=6).fit(proba, label, sample_weight=weight)
    share = 2 * 6 * (weight**2).sum()  # half of four classes
    expected = labels_of_prior(np.log(proba), label, weight)
    for k in range(4):
        target = ((label == k) + share * expected[:, k]) / (1 + share)
        design, n_bounded, _ = features(make, proba[:, k])
        fitted = logit(recalibrator._map_binary(proba[:, k], recalibrator._curves[k]))
        found = np.linalg.lstsq(design, fitted, rcond=None)[0]
        best = soft_loss(found, design, target, weight)
        for scale in 10.0 ** rng.uniform(-4, 0, size=50):
            moved = found + scale * rng.normal(size=len(found))
            moved[:n_bounded] = np.maximum(moved[:n_bounded], 0)
            assert soft_loss(moved, design, target, weight) >= best - 1e-14


@pytest.mark.parametrize("make", [SigmoidRecalibrator, VectorScalingRecalibrator])
def test_a_class_without_labels_has_those_of_its_prior(make):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(6), size=300)
    fitted = make(labels=range(6)).fit(proba, rng.integers(0, 5, size=300)).predict_proba(proba)
    # predictions tell nothing, so that the temperature is high; eight samples for each class
    assert fitted[:, 5].mean() == pytest.approx(8 / 348, rel=0.1)


@whole_family
def test_outcomes_that_can_be_separated(make):
    proba = np.array([0.1, 0.2, 0.3, 0.7, 0.8])
    for label in (proba > 0.5, proba < 0.5, proba < 2, (proba > 0.5) ^ (proba == 0.3)):
        for prior_weight in (1e-6, 1.0):
            fitted = make(prior_weight=prior_weight, labels=[False, True]).fit(proba, label)
            assert np.isfinite(coefficients(fitted)).all()
            assert log_loss(label, fitted.predict_proba(proba), labels=[False, True]) < 1
    with pytest.warns(ConvergenceWarning, match="no maximum.*Set a positive prior_weight"):
        fitted = make(prior_weight=0).fit(proba, proba > 0.5)
    assert np.isfinite(coefficients(fitted)).all()
    assert log_loss(proba > 0.5, fitted.predict_proba(proba)) < 1e-9


@whole_family
def test_absent_class(make):
    proba = np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.3, 0.2]])
    recalibrator = make(labels=["a", "b", "c"]).fit(proba, ["a", "b", "a"])
    fitted = recalibrator.predict_proba(proba)
    assert (fitted > 0).all()
    assert fitted[:, 2].mean() < proba[:, 2].mean()
    with pytest.warns(ConvergenceWarning):
        recalibrator.set_params(prior_weight=0).fit(proba, ["a", "b", "a"])
    np.testing.assert_allclose(recalibrator.predict_proba(proba).sum(axis=1), 1)


@whole_family
def test_votes_of_a_forest(make):
    rng = np.random.default_rng(0)
    votes = np.round(rng.beta(0.3, 0.3, size=2000), 2)
    label = rng.random(2000) < np.clip(votes, 0.03, 0.97)
    recalibrator = make().fit(votes, label)
    assert recalibrator.smallest_probability_ == 0.04  # of those that are tried next to 0.03
    fitted = recalibrator.predict_proba([0.0, 0.04, 1.0])[:, 1]
    assert fitted[0] == fitted[1]
    assert 0.01 < fitted[0] < 0.06
    assert 0.94 < fitted[2] < 0.99


@pytest.mark.parametrize("wrong", [False, True])
@whole_family
def test_predictions_next_to_0_and_1(make, wrong):
    rng = np.random.default_rng(0)
    proba = expit(rng.choice([-700, -40, -1, 1, 40, 700], size=300) + rng.normal(size=300))
    label = rng.random(300) < (1 - proba if wrong else np.clip(proba, 0.1, 0.9))
    recalibrator = make().fit(proba, label)
    assert recalibrator.smallest_probability_ == EPS
    fitted = recalibrator.predict_proba(np.append(proba, [0, 1]))[:, 1]
    assert (fitted >= EPS).all()
    assert (fitted <= 1 - EPS).all()
    assert log_loss(label, fitted[:-2]) < np.log(2) + 1e-6


@whole_family
def test_extreme_data(make):
    for seed in range(24):
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
        recalibrator = make(labels=[False, True]).fit(proba, label, sample_weight=weight)
        fitted = recalibrator.predict_proba(np.append(proba, [0.0, 1e-300, 0.5, 1.0]))
        assert np.isfinite(coefficients(recalibrator)).all()
        assert ((fitted > 0) & (fitted < 1)).all()
        np.testing.assert_allclose(fitted.sum(axis=1), 1, rtol=1e-12)


@whole_family
def test_prior_weight_is_a_number_of_samples(make):
    # so many samples with the labels that are predicted, seen in the right proportion
    label, proba = random_problem(np.random.default_rng(0), 40)
    prior = make(prior_weight=5).fit(proba, label)
    extended = np.concatenate([proba, proba, proba])
    labels = np.concatenate([label, np.ones(40, int), np.zeros(40, int)])
    weight = np.concatenate([np.full(40, 1.0), 5 / 40 * proba, 5 / 40 * (1 - proba)])
    seen = make(prior_weight=0).fit(extended, labels, sample_weight=weight)
    np.testing.assert_allclose(coefficients(seen), coefficients(prior), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "recalibrator",
    [
        SigmoidRecalibrator(prior_weight=-1),
        QuadraticRecalibrator(prior_weight=np.nan),
        BetaRecalibrator(prior_weight="1"),
        BetaRecalibrator("a"),
        BetaRecalibrator(None),
    ],
    ids=repr,
)
def test_bad_parameters_are_refused(recalibrator):
    with pytest.raises(ValueError, match=r"parameter of .*Recalibrator must be"):
        recalibrator.fit([0.2, 0.7], [0, 1])


def votes(seed, n, prevalence=0.5, n_trees=100):
    """Shares of votes, and outcomes of which each vote says the same: 0 and 0.01 hardly differ."""
    rng = np.random.default_rng(seed)
    label = (rng.random(n) < prevalence).astype(int)
    side = np.where(rng.random(n) < 0.03, 1 - label, label)
    share = np.where(side == 1, 1 - rng.beta(0.7, 4, n), rng.beta(0.7, 4, n))
    return rng.binomial(n_trees, share) / n_trees, label


@whole_family
def test_votes_are_clipped_where_it_is_likeliest(make):
    """Without prior samples the twin is a fit to clipped predictions, none of which is 0 or 1."""
    (proba, label), (new_proba, new_label) = votes(0, 400), votes(1, 4000)
    floors = [0.005, 0.01, 0.02, 0.04, 0.08]
    lines = [LogisticRegression(C=np.inf) for _ in floors]
    scores = [logit(np.clip(proba, floor, 1 - floor))[:, None] for floor in floors]
    losses = [
        log_loss(label, line.fit(score, label).predict_proba(score))
        for line, score in zip(lines, scores, strict=True)
    ]
    best = floors[np.argmin(losses)]
    recalibrator = make(prior_weight=0).fit(proba, label)
    assert best > 0.01
    assert recalibrator.smallest_probability_ == best
    twins = {
        low: make(prior_weight=0)
        .fit(np.clip(proba, low, 1 - low), label)
        .predict_proba(np.clip(new_proba, low, 1 - low))
        for low in (best, 0.005)
    }
    np.testing.assert_allclose(recalibrator.predict_proba(new_proba), twins[best], rtol=1e-12)
    assert log_loss(new_label, twins[best]) < log_loss(new_label, twins[0.005]) - 0.005


def test_a_rare_class_keeps_its_ranking():
    """Predictions up to half the share of a class may be all that tells it from others."""
    proba, label = votes(2, 3000, prevalence=0.02)
    floor = SigmoidRecalibrator().fit(proba, label).smallest_probability_
    assert 0.005 <= floor < label.mean() / 2 < 0.02


def test_predictions_without_zeros_are_clipped_as_before():
    proba, label = votes(3, 400)
    recalibrator = SigmoidRecalibrator().fit(np.clip(proba, 0.001, 0.999), label)
    assert recalibrator.smallest_probability_ == EPS


def test_a_quadratic_map_is_straight_beyond_the_fit():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=400)
    label = rng.random(400) < expit(x + 0.4 * x**2)
    fitted = QuadraticRecalibrator().fit(expit(x), label)
    (intercept,), ((b, c),), ((low, high),) = fitted.intercept_, fitted.coef_, fitted.ends_
    np.testing.assert_allclose([low, high], [x.min(), x.max()])
    inside = np.linspace(low, high, 9)
    expected = intercept + b * inside + c * inside**2
    actual = logit(fitted.predict_proba(expit(inside))[:, 1])
    np.testing.assert_allclose(actual, expected, rtol=1e-9)
    # the slope is b + 2 c low < 0 at the lower end, and more than 1 at the upper one
    far = logit(fitted.predict_proba(expit([low - 3, high + 3]))[:, 1])
    np.testing.assert_allclose(far, [expected[0], expected[-1] + 3], rtol=1e-9)
    same = QuadraticRecalibrator().fit(np.full(9, 0.3), np.arange(9) % 2)
    shift = logit(same.predict_proba([0.3, 0.001])[:, 1]) - logit([0.3, 0.001])
    assert shift[0] == pytest.approx(shift[1])
