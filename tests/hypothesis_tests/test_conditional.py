"""The classical tests by labels drawn from the predictions: exact at every number of samples."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from problems import random_problem, two_columns
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, log_expit, logit
from scipy.stats import norm
from sklearn.base import clone

from skcalib._numerics.logistic_batch import (
    LikelihoodCurve,
    intercepts,
    likelihood_gains,
    slope_scores,
)
from skcalib._numerics.logits import log_odds
from skcalib.hypothesis_tests import (
    CalibrationInTheLargeTest,
    CalibrationSlopeTest,
    CoxTest,
    HosmerLemeshowTest,
    SpiegelhalterTest,
    UCMETest,
)

TESTS = {
    "Spiegelhalter": SpiegelhalterTest(),
    "in the large": CalibrationInTheLargeTest(),
    "slope": CalibrationSlopeTest(),
    "Hosmer-Lemeshow": HosmerLemeshowTest(),
    "Cox": CoxTest(),
    "UCME": UCMETest(n_locations=3),
}
SIGNED = ["Spiegelhalter", "in the large", "slope"]
# What turns into its opposite if the classes change places.
ODD = {"Spiegelhalter": 1, "in the large": -1, "slope": 1}

all_tests = pytest.mark.parametrize("name", TESTS)
signed_tests = pytest.mark.parametrize("name", SIGNED)


def prepared(name, **options):
    return clone(TESTS[name]).set_params(**{"labels": [0, 1], "random_state": 0, **options})


def close(value, tolerance=1e-12):
    return pytest.approx(value, rel=tolerance, abs=tolerance)


# The test is exact


def every_vector(proba):
    """All vectors of labels, and their probabilities under the predictions."""
    labels = np.array(list(product([0, 1], repeat=len(proba))))
    return labels, np.prod(np.where(labels == 1, proba, 1 - proba), axis=1)


SMALL = {
    "one": ([0.3], None),
    "ties": ([0.2, 0.2, 0.2, 0.7], None),
    "certain": ([0.0, 1.0, 0.4, 0.8], None),
    "crowded": ([1e-9, 0.02, 0.97, 1 - 1e-6], None),
    "symmetric": ([0.1, 0.5, 0.9], None),
    "weights": ([0.1, 0.3, 0.6, 0.8], [1.0, 8.0, 1.0, 0.1]),
}


@all_tests
@pytest.mark.parametrize("case", SMALL)
def test_p_values_are_those_of_the_enumerated_law(name, case):
    """P(T* ≥ T), from all label vectors, lies within Monte Carlo error of the p-value."""
    proba, weight = SMALL[case]
    labels, chance = every_vector(np.array(proba))
    test = prepared(name, n_resamples=199)
    if name in SIGNED:
        test.set_params(alternative="greater")
    fits = [clone(test).fit(proba, y, sample_weight=weight) for y in labels[chance > 0]]
    chance = chance[chance > 0]
    statistic = np.array([fit.statistic_ for fit in fits])
    assert np.isfinite(statistic).all()
    for fit in fits:
        exact = min(1.0, chance[statistic >= fit.statistic_ - 1e-9].sum())
        deviation = np.sqrt(exact * (1 - exact) / 199)
        assert abs((200 * fit.p_value_ - 1) / 199 - exact) <= 4.5 * deviation + 1e-9
        # every drawn value is the value of some labels
        nearest = np.abs(np.subtract.outer(fit.null_distribution_, statistic)).min(axis=1)
        assert nearest.max() < 1e-9 * max(1, np.abs(statistic).max())


def p_values_of_calibrated(test, n, seeds, crowded, weighted, n_classes):
    p_values = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        proba = rng.dirichlet(np.full(n_classes, 0.01 if crowded else 1.0), size=n)
        label = (rng.random((n, 1)) > np.cumsum(proba, axis=1)[:, :-1]).sum(axis=1)
        # the effective size (Σw)²/Σw² of exp(1.34 Z) is n/6
        weight = np.exp(1.34 * rng.normal(size=n)) if weighted else None
        test.set_params(labels=range(n_classes), random_state=seed)
        p_values.append(test.fit(proba, label, sample_weight=weight).p_value_)
    return np.array(p_values)


def at_most(level, repetitions):
    return level + 4 * np.sqrt(level * (1 - level) / repetitions)


# Whether predictions crowd at the corners, whether there are weights, and the number of classes.
SETTINGS = {
    "uniform": (False, False, 2),
    "corners": (True, False, 2),
    "corners, weights": (True, True, 3),
    "weights": (False, True, 10),
}


@pytest.mark.slow
@all_tests
@pytest.mark.parametrize("n", [2, 10, 500])
@pytest.mark.parametrize("setting", SETTINGS)
def test_size(name, n, setting):
    test, repetitions = prepared(name, n_resamples=99), 60 if n == 500 else 200
    if name in SIGNED:  # at the least level that 99 draws reach
        test.set_params(alternative="greater" if name == "in the large" else "less")
    p_values = p_values_of_calibrated(test, n, range(repetitions), *SETTINGS[setting])
    for level in (0.01, 0.1):
        rate = np.mean(p_values <= level)
        assert rate <= at_most(level, repetitions)
        if n == 500 and "corners" not in setting:  # where ties are rare
            assert rate >= 2 * level - at_most(level, repetitions)


@all_tests
def test_power_at_a_glance(name):
    rng = np.random.default_rng(0)
    proba = rng.random(600)
    label = rng.random(600) < (0.15 + 0.75 * proba if name != "in the large" else proba**1.5)
    test = prepared(name, n_resamples=199, labels=[False, True])
    assert test.fit(proba, label).p_value_ <= 0.02


# What is drawn, and what p-values are made of


@all_tests
def test_p_values_count_the_drawn_values(name):
    label, proba = random_problem(np.random.default_rng(3), 40, calibrated=True)
    test = prepared(name, n_resamples=99).fit(proba, label)
    null = test.null_distribution_
    assert null.shape == (99,)
    gap = null - test.statistic_
    greater, less = 1 + np.sum(gap >= -1e-9), 1 + np.sum(gap <= 1e-9)
    expected = min(2 * min(greater, less), 100) if name in SIGNED else greater
    assert test.p_value_ == close(expected / 100)
    test.set_params(method="asymptotic").fit(proba, label)
    assert not hasattr(test, "null_distribution_")


@all_tests
def test_the_order_of_the_samples_does_not_matter(name):
    label, proba = random_problem(np.random.default_rng(0), 50)
    order = np.random.default_rng(1).permutation(50)
    one = prepared(name, n_resamples=19).fit(proba, label)
    other = prepared(name, n_resamples=19).fit(proba[order], label[order])
    np.testing.assert_allclose(other.null_distribution_, one.null_distribution_, rtol=1e-9)
    assert other.p_value_ == one.p_value_


@pytest.mark.parametrize("name", sorted(set(TESTS) - {"in the large"}))  # it has many ties
def test_batches_are_drawn_apart(name, monkeypatch):
    label, proba = random_problem(np.random.default_rng(0), 30)
    monkeypatch.setattr("skcalib._inputs.drawing._MAX_BATCH_RESIDUALS", 300)  # a few draws in each
    null = prepared(name, n_resamples=50).fit(proba, label).null_distribution_
    assert null.shape == (50,)
    assert len(np.unique(null.round(9))) > 40


@all_tests
def test_drawn_statistics_are_those_of_the_drawn_labels(name, monkeypatch):
    """The null distribution equals fits to the labels that were drawn."""
    drawn = []

    def remember(proba, size, generator):
        drawn.append((generator.random((size, len(proba))) < proba).astype(np.int32))
        return drawn[-1]

    monkeypatch.setattr("skcalib._data.classes.draw_labels", remember)
    label, proba = random_problem(np.random.default_rng(0), 25)
    weight = np.random.default_rng(1).exponential(size=25)
    test = prepared(name, n_resamples=20).fit(proba, label, sample_weight=weight)
    order = np.argsort(proba)
    labels = np.concatenate(drawn)
    asymptotic = prepared(name, method="asymptotic")
    expected = [
        asymptotic.fit(proba[order], y, sample_weight=weight[order]).statistic_ for y in labels
    ]
    np.testing.assert_allclose(test.null_distribution_, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", sorted(set(TESTS) - {"slope"}))  # which two predictions leave open
def test_impossible_data_have_the_least_p_value(name):
    proba = np.array([0.0, 1.0, 1.0, 0.0, 0.0])
    possible, impossible = [0, 1, 1, 0, 0], [1, 1, 1, 0, 1]
    test = prepared(name, n_resamples=99)
    assert test.fit(proba, possible).p_value_ == 1
    least = 0.02 if name in SIGNED else 0.01
    assert test.fit(proba, impossible).p_value_ == least


@all_tests
@pytest.mark.parametrize("kind", ["certain", "almost", "powers of ten"])
def test_certain_predictions_that_came_true_are_not_rejected(name, kind):
    # whatever the rounding errors, all vectors of labels that are drawn are the same
    rng = np.random.default_rng(0)
    test = prepared(name, n_resamples=99)
    if name in SIGNED:
        test.set_params(alternative="greater")
    for n in (3, 10, 10, 1000):
        label = rng.integers(2, size=n)
        miss = {"certain": 0.0, "almost": 1e-16, "powers of ten": 10 ** -rng.uniform(7, 30, size=n)}
        proba = np.abs(label - miss[kind])
        for weight in (None, rng.exponential(size=n)):
            assert test.fit(proba, label, sample_weight=weight).p_value_ == 1


def test_all_classes_are_drawn_for_the_locations():
    # of three classes; labels of a class of probability 0 would be impossible
    label, proba = random_problem(np.random.default_rng(0), 30, 3, calibrated=True)
    proba[:10] = np.round(proba[:10] / proba[:10].max(axis=1, keepdims=True) - 0.4)
    proba[:10] = np.eye(3)[proba[:10].argmax(axis=1)]
    label[:10] = proba[:10].argmax(axis=1)
    test = prepared("UCME", labels=range(3), n_resamples=99).fit(proba, label)
    assert np.isfinite(test.null_distribution_).all()
    assert len(np.unique(test.null_distribution_)) > 90
    assert test.p_value_ > 0.02


# Directions


@signed_tests
@pytest.mark.parametrize("method", ["conditional", "asymptotic"])
def test_alternatives_share_the_statistic(name, method):
    label, proba = random_problem(np.random.default_rng(5), 60)
    fitted = {
        side: prepared(name, alternative=side, method=method, n_resamples=99).fit(proba, label)
        for side in ("two-sided", "less", "greater")
    }
    p = {side: test.p_value_ for side, test in fitted.items()}
    assert len({test.statistic_ for test in fitted.values()}) == 1
    assert p["two-sided"] == close(min(1, 2 * min(p["less"], p["greater"])))
    assert (p["greater"] < p["less"]) == (fitted["less"].statistic_ > 0)
    if method == "asymptotic":
        assert p["greater"] == close(norm.sf(fitted["greater"].statistic_))
        assert p["less"] + p["greater"] == close(1)


@signed_tests
def test_alternatives_mirror_each_other(name):
    label, proba, weight = *random_problem(np.random.default_rng(6), 40), np.arange(40) + 0.5
    for side, mirrored in (("less", "greater"), ("greater", "less"), ("two-sided", "two-sided")):
        options = {"method": "asymptotic", "alternative": side}
        one = prepared(name, **options).fit(proba, label, sample_weight=weight)
        options["alternative"] = side if ODD[name] > 0 else mirrored
        other = prepared(name, **options).fit(1 - proba, 1 - label, sample_weight=weight)
        assert other.statistic_ == close(ODD[name] * one.statistic_, 1e-9)
        assert other.p_value_ == close(one.p_value_, 1e-9)


DIRECTIONS = {
    "Spiegelhalter": (lambda p: 0.2 + 0.6 * p, "greater"),  # overconfident
    "in the large": (lambda p: np.sqrt(p), "greater"),  # risk is underestimated
    "slope": (lambda p: 0.2 + 0.6 * p, "less"),  # overconfident
}


@signed_tests
@pytest.mark.parametrize("method", ["conditional", "asymptotic"])
def test_the_right_side_has_the_power(name, method):
    truth, right = DIRECTIONS[name]
    wrong = {"less": "greater", "greater": "less"}[right]
    rng = np.random.default_rng(0)
    proba = rng.random(800)
    label = (rng.random(800) < truth(proba)).astype(int)
    options = {"method": method, "n_resamples": 199}
    assert prepared(name, alternative=right, **options).fit(proba, label).p_value_ <= 0.005
    assert prepared(name, alternative=wrong, **options).fit(proba, label).p_value_ > 0.9


def test_in_the_large_by_hand():
    # 2 observed, 0.2 + 0.5 + 0.4 expected, variances 0.16, 0.25 and 0.24
    test = CalibrationInTheLargeTest(method="asymptotic").fit([0.2, 0.5, 0.4], [1, 0, 1])
    assert test.statistic_ == close(0.9 / np.sqrt(0.65))
    assert test.p_value_ == close(2 * norm.sf(0.9 / np.sqrt(0.65)))
    test.fit([0.2, 0.5, 0.4], [1, 0, 1], sample_weight=[1.5, 1, 0.5])
    variance = 9 * 0.16 + 4 * 0.25 + 0.24
    assert test.statistic_ == close((3 * 0.8 - 2 * 0.5 + 0.6) / np.sqrt(variance))


def test_slope_of_two_predictions_by_hand():
    # logits ±log 4; 3 of 8 outcomes: with q₁, q₂ at slope 1, odds e^a/4 and 4 e^a
    proba, label = np.repeat([0.2, 0.8], 4), np.array([0, 0, 0, 1, 0, 1, 0, 1])
    a = brentq(lambda a: 4 * expit(a - np.log(4)) + 4 * expit(a + np.log(4)) - 3, -5, 5)
    q = expit(a + np.array([-np.log(4), np.log(4)]))
    v = q * (1 - q)
    # with 4 samples each, the residuals are ∓(2 − 4 q₂), the distance of the logits log 16
    variance = 4 * np.log(16) ** 2 * v[0] * v[1] / v.sum()
    expected = (2 - 4 * q[1]) * np.log(16) / np.sqrt(variance)
    test = CalibrationSlopeTest(method="asymptotic", alternative="less").fit(proba, label)
    assert test.statistic_ == close(expected)
    assert test.p_value_ == close(norm.cdf(expected))
    assert test.slope_ == close(np.log(3) / np.log(16))
    assert test.intercept_ == close(-np.log(3) / 2)


def test_slope_equals_the_derivative_of_the_profile_likelihood():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 50)
    weight, x = rng.exponential(size=50), logit(proba)

    def loss(a, b):
        return -weight @ log_expit((2 * label - 1) * (a + b * x))

    def profile(b):
        return minimize_scalar(lambda a: loss(a, b), bracket=(-1, 1), tol=1e-14).fun

    a = brentq(lambda a: weight @ (label - expit(a + x)), -20, 20, xtol=1e-14)
    v = expit(a + x) * expit(-a - x)
    deviation = x - (weight * v) @ x / (weight @ v)
    derivative = -(profile(1 + 1e-4) - profile(1 - 1e-4)) / 2e-4
    test = CalibrationSlopeTest(method="asymptotic").fit(proba, label, sample_weight=weight)
    assert test.statistic_ == close(derivative / np.sqrt(weight**2 * v @ deviation**2), 1e-5)
    assert (test.slope_ > 1) == (test.statistic_ > 0)


def test_the_slope_does_not_see_the_intercept():
    # whose error of 1 the other tests find at once
    rng = np.random.default_rng(0)
    p_values = []
    for seed in range(60):
        x = rng.normal(size=100)
        label = (rng.random(100) < expit(x + 1)).astype(int)
        fit = partial(prepared, n_resamples=39, random_state=seed)
        p_values.append([fit(name).fit(expit(x), label).p_value_ for name in SIGNED[1:]])
    rates = np.mean(np.array(p_values) <= 0.1, axis=0)
    assert rates[0] > 0.9
    assert rates[1] <= at_most(0.1, 60)


@pytest.mark.parametrize(
    ("proba", "label"),
    [(np.full(6, 0.3), [0, 1, 0, 1, 1, 1]), (np.linspace(0.1, 0.9, 6), np.ones(6, int))],
    ids=["equal predictions", "equal labels"],
)
def test_a_slope_that_cannot_be_known_is_not_rejected(proba, label):
    for method in ("conditional", "asymptotic"):
        test = prepared("slope", method=method, n_resamples=19)
        test.fit(proba, label, sample_weight=np.arange(1, 7) / 2)
        assert np.isnan(test.slope_)
        assert test.statistic_ == 0
        if method == "asymptotic" or np.ptp(proba) == 0:  # else other labels may be drawn
            assert test.p_value_ == 1


def test_separated_labels_have_a_score():
    test = prepared("slope", n_resamples=99).fit([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1])
    assert test.slope_ == np.inf
    assert 0 < test.statistic_ < 3
    assert prepared("slope").fit([0.2, 0.4, 0.6, 0.8], [1, 1, 0, 0]).slope_ == -np.inf


# The batched fits


HARD = {
    "usual": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: rng.choice([-1.0, 0.0, 2.0], size=n),
    "wide": lambda rng, n: 12 * rng.normal(size=n),
    "corners": lambda rng, n: np.clip(logit(rng.beta(0.05, 0.05, size=n)), -36, 36),
    "all but one certain": lambda rng, n: np.append(rng.choice([-36.0, 36.0], size=n - 1), 0.3),
    "close": lambda rng, n: 1e-11 * rng.random(n),
    "equal": lambda rng, n: np.full(n, 0.7),
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("n", [2, 6, 40])
def test_batched_fits_equal_single_ones(kind, n):
    """Of many label vectors: the gain of log-likelihood, by a fit to each alone."""
    rng = np.random.default_rng(n)
    proba = expit(np.sort(HARD[kind](rng, n)))
    x = log_odds(proba)
    weight = rng.exponential(size=n) ** 2
    weight /= weight.sum()
    labels = (rng.random((20, n)) < expit(x)).astype(np.int32)
    labels[10:] = rng.integers(2, size=(10, n))  # impossible ones among them
    labels[:3] = [[0] * n, [1] * n, (x > x[n // 2]).astype(int)]
    labels[3] = 1 - labels[2]
    gain = likelihood_gains(x, labels, weight)
    test = CoxTest(method="asymptotic", labels=[0, 1])
    for y, value in zip(labels, gain, strict=True):
        alone = likelihood_gains(x, y[None], weight)[0]
        assert value == close(alone, 1e-9)
    for y, value in zip(labels[::2], gain[::2], strict=True):
        fitted = test.fit(proba, y, sample_weight=weight)
        if np.isfinite([fitted.slope_, fitted.intercept_]).all() and kind != "close":
            line, sign = fitted.intercept_ + fitted.slope_ * x, 2 * y - 1
            expected = weight @ (log_expit(sign * line) - log_expit(sign * x))
            assert value == close(expected, 1e-9)
    np.testing.assert_array_less(-1e-12, gain)


def test_batched_fits_that_are_given_up_are_fitted_alone(monkeypatch):
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(size=30))
    labels = (rng.random((20, 30)) < expit(x)).astype(np.int32)
    weight = np.full(30, 1 / 30)
    expected = likelihood_gains(x, labels, weight)
    monkeypatch.setattr("skcalib._numerics.logistic_batch.MAX_NEWTON_STEP", 0.0)
    np.testing.assert_allclose(likelihood_gains(x, labels, weight), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["logistic", "beta", "weighted"])
def test_many_samples_are_fitted_on_a_curve_that_all_labels_share(kind):
    rng, n = np.random.default_rng(0), 1200
    x = np.sort(rng.logistic(size=n) if kind == "logistic" else logit(rng.beta(0.6, 0.6, n)))
    weight = rng.dirichlet(np.ones(n)) if kind == "weighted" else np.full(n, 1 / n)
    labels = (rng.random((40, n)) < expit(x)).astype(np.int32)
    labels[0] = rng.random(n) < expit(3 * x)  # far away from what predictions draw
    labels[1], labels[2] = 1, x > 0
    curve = LikelihoodCurve.make(x, weight)
    expected = likelihood_gains(x, labels, weight)
    actual = likelihood_gains(x, labels, weight, curve)
    np.testing.assert_allclose(actual, expected, atol=1e-11 * np.median(expected), rtol=1e-13)
    assert curve.gains(labels)[1].tolist() == [False] * 3 + [True] * 37


def test_a_curve_keeps_more_digits_than_sums_over_the_samples():
    rng, n = np.random.default_rng(0), 20_000
    x = np.sort(rng.normal(size=n))
    label, weight = (rng.random(n) < expit(x)).astype(np.int32), np.full(n, 1 / n)
    gain = likelihood_gains(x, label[None], weight, LikelihoodCurve.make(x, weight))[0]
    # Newton's method in extended precision
    design = np.stack([np.ones(n), x]).astype(np.longdouble)
    line, start = np.array([0, 1], dtype=np.longdouble), design[1]
    for _ in range(8):
        proba = 1 / (1 + np.exp(-line @ design))
        gradient, (a, b, c) = design @ (label - proba), _moments(proba * (1 - proba), design)
        line += np.array([c * gradient[0] - b * gradient[1], a * gradient[1] - b * gradient[0]]) / (
            a * c - b**2
        )
    rise = np.logaddexp(0, line @ design) - np.logaddexp(0, start)
    expected = float(np.mean(label * (line @ design - start) - rise))
    assert gain == pytest.approx(expected, rel=1e-10)


def _moments(weight, design):
    return weight.sum(), weight @ design[1], weight @ design[1] ** 2


def test_cox_draws_are_not_fitted_one_by_one(monkeypatch):
    rng = np.random.default_rng(0)
    proba = rng.random(1000)
    label = (rng.random(1000) < proba).astype(int)
    slow = CoxTest(n_resamples=99, random_state=0)
    monkeypatch.setattr(LikelihoodCurve, "make", lambda *args: None)
    slow.fit(proba, label)
    monkeypatch.undo()
    monkeypatch.setattr("skcalib._numerics.logistic_batch._newton_gains", None)
    fast = CoxTest(n_resamples=99, random_state=0).fit(proba, label)
    assert fast.p_value_ == slow.p_value_
    np.testing.assert_allclose(fast.null_distribution_, slow.null_distribution_, atol=1e-10)


def test_no_curve_is_made_where_it_is_not_close():
    x = np.sort(np.random.default_rng(0).normal(size=2000))
    for points in (x[:999], np.full(2000, 0.3), np.where(np.arange(2000) < 1999, -36.0, 36.0)):
        assert LikelihoodCurve.make(points, np.full(len(points), 1 / len(points))) is None


@pytest.mark.parametrize("kind", HARD)
def test_batched_intercepts_solve_their_equation(kind):
    rng = np.random.default_rng(0)
    x = np.sort(HARD[kind](rng, 40))
    weight = rng.exponential(size=40)
    weight /= weight.sum()
    labels = rng.integers(2, size=(50, 40))
    for one, y in zip(intercepts(x, labels, weight), labels, strict=True):
        assert weight @ expit(one + x) == close(weight @ y)


@pytest.mark.parametrize("kind", ["usual", "ties", "wide"])
def test_batched_scores_equal_loops(kind):
    rng = np.random.default_rng(1)
    x = np.sort(HARD[kind](rng, 30))
    weight = rng.exponential(size=30)
    weight /= weight.sum()
    labels = (rng.random((20, 30)) < expit(x)).astype(np.int32)
    for y, score in zip(labels, slope_scores(x, labels, weight), strict=True):
        a = brentq(lambda a, y=y: weight @ (expit(a + x) - y), -60, 60, xtol=1e-14)
        q = expit(a + x)
        mean = sum(w * p * (1 - p) * z for w, p, z in zip(weight, q, x, strict=True))
        mean /= sum(w * p * (1 - p) for w, p in zip(weight, q, strict=True))
        gap = sum(w * (o - p) * (z - mean) for w, o, p, z in zip(weight, y, q, x, strict=True))
        variance = sum(
            (w * (z - mean)) ** 2 * p * (1 - p) for w, p, z in zip(weight, q, x, strict=True)
        )
        assert score == close(gap / np.sqrt(variance), 1e-7)


# Bad input


def test_fitted_parameters_need_the_asymptotic_method():
    label, proba = random_problem(np.random.default_rng(0), 60)
    with pytest.raises(ValueError, match=r"ddof must be 0 .*found ddof=2.*'asymptotic'"):
        HosmerLemeshowTest(ddof=2).fit(proba, label)


@pytest.mark.parametrize(
    "parameters",
    [{"method": "exact"}, {"n_resamples": 0}, {"alternative": "larger"}, {"random_state": "a"}],
)
@all_tests
def test_bad_parameters_are_refused(name, parameters):
    (parameter,) = parameters
    if parameter == "alternative" and name not in SIGNED:
        with pytest.raises(TypeError, match="unexpected keyword argument 'alternative'"):
            type(TESTS[name])(**parameters)
        return
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter of .*Test must"):
        prepared(name, **parameters).fit([0.2, 0.7], [0, 1])


@all_tests
def test_both_forms_of_binary_predictions(name):
    label, proba = random_problem(np.random.default_rng(0), 30)
    fit = partial(prepared, name, n_resamples=19)
    assert fit().fit(proba, label).p_value_ == fit().fit(two_columns(proba), label).p_value_
