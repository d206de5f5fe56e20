"""The tests of Spiegelhalter, Hosmer and Lemeshow, and Cox: statistics and limit laws.

They equal loops, and keep their size for many samples. That of labels drawn from the predictions is
in ``test_conditional.py``.
"""

import warnings
from functools import partial

import numpy as np
import pytest
from oracles import quantile_bin
from problems import random_problem, two_columns
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import chi2, kstest, norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skcalib import hypothesis_tests
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.hypothesis_tests._classical import _two_squares_sf

SpiegelhalterTest = partial(hypothesis_tests.SpiegelhalterTest, method="asymptotic")
HosmerLemeshowTest = partial(hypothesis_tests.HosmerLemeshowTest, method="asymptotic")
CoxTest = partial(hypothesis_tests.CoxTest, method="asymptotic")

TINY = np.finfo(np.float64).tiny
TESTS = [SpiegelhalterTest, HosmerLemeshowTest, CoxTest]
all_tests = pytest.mark.parametrize("test", TESTS, ids=["Spiegelhalter", "Hosmer-Lemeshow", "Cox"])


def close(value, tolerance=1e-12):
    return pytest.approx(value, rel=tolerance, abs=tolerance)


def weighted_problem(seed, n=60, decimals=None):
    """Weights none, random, or very unequal, in turn."""
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, n)
    proba = proba if decimals is None else np.round(proba, decimals)
    return label, proba, [None, rng.random(n), rng.exponential(size=n) ** 3][seed % 3]


def ones(weight, n):
    return np.ones(n) if weight is None else weight


# Spiegelhalter


def test_spiegelhalter_by_hand():
    # (−0.2·0.6 + 0.8·0.6 + 0.9·0.8) / √(2·0.36·0.16 + 0.64·0.09) = 1.08 / √0.1728
    test = SpiegelhalterTest().fit([0.2, 0.8, 0.1], [0, 0, 1])
    assert test.statistic_ == close(1.5 * np.sqrt(3))
    assert test.p_value_ == pytest.approx(0.009374768, abs=5e-10)


def test_spiegelhalter_is_the_standardised_brier_score():
    label, proba = random_problem(np.random.default_rng(0), 50)
    brier = np.mean((label - proba) ** 2)
    expected = np.mean(proba * (1 - proba))
    deviation = np.sqrt(np.mean((1 - 2 * proba) ** 2 * proba * (1 - proba)) / 50)
    statistic = SpiegelhalterTest().fit(proba, label).statistic_
    assert statistic == close((brier - expected) / deviation)


@pytest.mark.parametrize("seed", range(6))
def test_spiegelhalter_equals_a_loop(seed):
    label, proba, weight = weighted_problem(seed)
    numerator = variance = 0.0
    for p, y, w in zip(proba, label, ones(weight, 60), strict=True):
        numerator += w * ((y - p) ** 2 - p * (1 - p))
        # variance of the squared error of a Bernoulli variable, from its two values
        mean = p * (1 - p) ** 2 + (1 - p) * p**2
        variance += w**2 * (p * (1 - p) ** 4 + (1 - p) * p**4 - mean**2)
    test = SpiegelhalterTest().fit(proba, label, sample_weight=weight)
    assert test.statistic_ == close(numerator / np.sqrt(variance))
    assert test.p_value_ == close(2 * norm.cdf(-abs(test.statistic_)))


def test_spiegelhalter_tells_overconfidence_from_underconfidence():
    rng = np.random.default_rng(0)
    proba = rng.random(2000)
    for truth, sign in ((0.25 + 0.5 * proba, 1), (np.round(proba), -1)):
        test = SpiegelhalterTest().fit(proba, rng.random(2000) < truth)
        assert sign * test.statistic_ > 5
        assert test.p_value_ < 1e-6  # MAPIE 1.6.0: 1 for the second


def test_spiegelhalter_of_predictions_without_variance():
    proba = np.array([0.0, 0.5, 0.5, 1.0])
    test = SpiegelhalterTest().fit(proba, [0, 0, 1, 1])
    assert (test.statistic_, test.p_value_) == (0, 1)
    for wrong in ([1, 0, 1, 1], [0, 0, 1, 0]):
        test = SpiegelhalterTest().fit(proba, wrong)
        assert (test.statistic_, test.p_value_) == (np.inf, TINY)


@pytest.mark.parametrize("test", [SpiegelhalterTest, HosmerLemeshowTest])
def test_variances_that_underflow_reject_nothing(test):
    test = test(labels=[0, 1]).fit(np.full(1000, 1e-322), np.zeros(1000))
    assert test.statistic_ == 0
    assert test.p_value_ == 1


# Hosmer and Lemeshow


def test_hosmer_lemeshow_by_hand():
    # two groups of two, with 0.3 and 1.5 positives expected, 1 and 1 observed, and variances
    # 2·0.15·0.85 and 2·0.75·0.25
    test = HosmerLemeshowTest(n_bins=2).fit([0.1, 0.8, 0.2, 0.7], [0, 1, 1, 0])
    assert test.statistic_ == close(0.7**2 / 0.255 + 0.5**2 / 0.375)
    assert test.degrees_of_freedom_ == 2
    assert test.p_value_ == close(np.exp(-test.statistic_ / 2))  # chi-squared with two degrees


def test_one_group_compares_the_means():
    label, proba = random_problem(np.random.default_rng(0), 80)
    test = HosmerLemeshowTest(n_bins=1).fit(proba, label)
    mean = proba.mean()
    z = (label.mean() - mean) / np.sqrt(mean * (1 - mean) / 80)
    assert test.statistic_ == close(z**2)
    assert test.p_value_ == close(2 * norm.sf(abs(z)))


@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("seed", range(6))
def test_hosmer_lemeshow_equals_a_loop(seed, decimals):
    label, proba, weight = weighted_problem(seed, decimals=decimals)
    proba = np.clip(proba, 0.05, 0.95)
    w = ones(weight, 60)
    bins = np.array([quantile_bin(p, proba, w, 7) for p in proba])
    statistic, n_groups = 0.0, 0
    for j in range(7):
        rows = np.flatnonzero(bins == j)
        square = sum(w[i] ** 2 for i in rows)
        if len(rows) == 0:
            continue
        n_groups += 1
        mean = sum(w[i] ** 2 * proba[i] for i in rows) / square
        gap = sum(w[i] * (label[i] - proba[i]) for i in rows)
        statistic += gap**2 / (square * mean * (1 - mean))
    test = HosmerLemeshowTest(n_bins=7).fit(proba, label, sample_weight=weight)
    assert test.statistic_ == close(statistic)
    assert test.degrees_of_freedom_ == n_groups
    assert test.p_value_ == close(chi2.sf(statistic, n_groups))
    fitted = HosmerLemeshowTest(n_bins=7, ddof=2).fit(proba, label, sample_weight=weight)
    assert fitted.p_value_ == close(chi2.sf(statistic, n_groups - 2))


def test_ties_are_not_separated():
    proba = np.repeat([0.2, 0.6], [30, 70])
    test = HosmerLemeshowTest(n_bins=10).fit(proba, np.arange(100) % 2)
    assert test.degrees_of_freedom_ == 2
    assert test.statistic_ == close(9**2 / (30 * 0.16) + 7**2 / (70 * 0.24))


def test_groups_without_variance_do_not_count():
    proba = np.array([0.0, 0.0, 0.5, 0.5, 1.0, 1.0])
    test = HosmerLemeshowTest(n_bins=3).fit(proba, [0, 0, 0, 0, 1, 1])
    assert test.degrees_of_freedom_ == 1
    assert test.statistic_ == close(1**2 / 0.5)
    test.fit(proba, [0, 0, 0, 1, 1, 0])
    assert (test.statistic_, test.p_value_) == (np.inf, TINY)


def test_predictions_of_certain_groups_only():
    proba = np.array([0.0, 0.0, 1.0, 1.0])
    test = HosmerLemeshowTest(n_bins=2).fit(proba, [0, 0, 1, 1])
    assert (test.statistic_, test.degrees_of_freedom_, test.p_value_) == (0, 0, 1)
    assert test.fit(proba, [0, 1, 1, 1]).p_value_ == TINY


def test_too_many_fitted_parameters_are_refused():
    label, proba = [0, 1, 0, 1], [0.2, 0.2, 0.7, 0.7]
    with pytest.raises(ValueError, match=r"ddof must be less than .* found ddof=2 and 2 group"):
        HosmerLemeshowTest(ddof=2).fit(proba, label)
    assert HosmerLemeshowTest(ddof=1).fit(proba, label).degrees_of_freedom_ == 1


@pytest.mark.parametrize("parameters", [{"n_bins": 0}, {"n_bins": 2.5}, {"ddof": -1}])
def test_bad_parameters_are_refused(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"The '{name}' parameter of HosmerLemeshowTest must"):
        HosmerLemeshowTest(**parameters).fit([0.2, 0.7], [0, 1])


# Cox


def log_likelihood(theta, x, label, weight):
    return -weight @ np.logaddexp(0, (1 - 2 * label) * (theta[0] + theta[1] * x))


def cox_by_optimiser(proba, label, weight):
    """Parameters and likelihood ratio, whose weights sum to 1, of a general optimiser."""
    x = logit(proba)

    def cost(theta):
        return -log_likelihood(theta, x, label, weight)

    start = minimize(cost, [0, 1], method="Nelder-Mead", options={"xatol": 1e-6}).x
    best = minimize(cost, start, method="BFGS", options={"gtol": 1e-9})
    return best.x, 2 * (cost([0, 1]) - best.fun)


def eigenvalues_under_the_null(proba, weight):
    design = np.column_stack([np.ones(len(proba)), logit(proba)])
    variance = proba * (1 - proba)
    information = design.T @ (design * (weight * variance)[:, None])
    score = design.T @ (design * (weight**2 * variance)[:, None])
    return np.linalg.eigvals(np.linalg.solve(information, score)).real


@pytest.mark.parametrize("seed", range(6))
def test_cox_equals_a_general_optimiser(seed):
    label, proba, weight = weighted_problem(seed)
    test = CoxTest().fit(proba, label, sample_weight=weight)
    weight = ones(weight, 60) / ones(weight, 60).sum()
    (intercept, slope), ratio = cox_by_optimiser(proba, label, weight)
    assert test.intercept_ == close(intercept, 1e-5)
    assert test.slope_ == close(slope, 1e-5)
    scale = eigenvalues_under_the_null(proba, weight).mean()
    assert test.statistic_ == close(ratio / scale, 1e-7)
    assert test.degrees_of_freedom_ == 2


@pytest.mark.parametrize("seed", range(12))
def test_cox_solves_the_likelihood_equations(seed):
    label, proba, weight = weighted_problem(seed, decimals=2 if seed % 2 else None)
    proba = np.clip(proba, 1e-3, 1 - 1e-3)
    test = CoxTest().fit(proba, label, sample_weight=weight)
    weight = ones(weight, 60) / ones(weight, 60).sum()
    residual = weight * (label - expit(test.intercept_ + test.slope_ * logit(proba)))
    assert abs(residual.sum()) < 1e-12
    assert abs(residual @ logit(proba)) < 1e-12


def test_cox_equals_unpenalised_logistic_regression():
    label, proba = random_problem(np.random.default_rng(1), 300)
    oracle = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12)
    oracle.fit(logit(proba)[:, None], label)
    test = CoxTest().fit(proba, label)
    assert test.intercept_ == close(oracle.intercept_[0], 1e-9)
    assert test.slope_ == close(oracle.coef_[0, 0], 1e-9)


def test_cox_of_two_predictions_by_hand():
    # the regression goes through both frequencies, 1/4 and 1/2
    proba, label = np.repeat([0.2, 0.8], 4), np.array([0, 0, 0, 1, 0, 1, 0, 1])
    test = CoxTest().fit(proba, label)
    assert test.slope_ == close(np.log(3) / np.log(16))
    assert test.intercept_ == close(-np.log(3) / 2)
    fitted = 3 * np.log(3 / 4) + np.log(1 / 4) + 4 * np.log(1 / 2)
    null = 5 * np.log(0.8) + 3 * np.log(0.2)
    assert test.statistic_ == close(2 * (fitted - null))
    assert test.p_value_ == close(np.exp(null - fitted))


@pytest.mark.parametrize(("intercept", "slope"), [(0, 1), (0.5, 1), (0, 0.5), (-0.4, 2)])
def test_cox_finds_the_parameters(intercept, slope):
    rng = np.random.default_rng(0)
    x = rng.normal(size=100_000)
    label = rng.random(100_000) < expit(intercept + slope * x)
    test = CoxTest().fit(expit(x), label)
    # about four standard errors
    assert test.intercept_ == pytest.approx(intercept, abs=0.04)
    assert test.slope_ == pytest.approx(slope, abs=0.06)
    assert (test.p_value_ < 1e-6) == ((intercept, slope) != (0, 1))


def test_p_value_of_unequal_weights():
    label, proba, weight = weighted_problem(2)
    test = CoxTest().fit(proba, label, sample_weight=weight)
    large, small = sorted(eigenvalues_under_the_null(proba, weight / weight.sum()))[::-1]
    assert large > 1.1 * small
    normal = np.random.default_rng(0).normal(size=(2, 10**6)) ** 2
    ratio = test.statistic_ * (large + small) / 2
    simulated = np.mean(large * normal[0] + small * normal[1] >= ratio)
    assert test.p_value_ == pytest.approx(simulated, abs=4 * np.sqrt(0.25 / 10**6))


@pytest.mark.parametrize("value", [0.0, 0.1, 3.0, 40.0, 900.0])
@pytest.mark.parametrize("spread", [0.0, 0.3, 0.9, 0.999])
def test_sum_of_two_squares(value, spread):
    # P((1 − ρ) Z₂² > t − (1 + ρ) z²) over z = edge · sin u, and all of what is beyond the edge
    edge = np.sqrt(value / (1 + spread))

    def integrand(u):
        rest = value * np.cos(u) ** 2 / (1 - spread)
        return 2 * norm.pdf(edge * np.sin(u)) * edge * np.cos(u) * chi2.sf(rest, 1)

    inside = quad(integrand, 0, np.pi / 2, epsabs=0, epsrel=1e-10, limit=200)[0]
    expected = inside + 2 * norm.sf(edge)
    assert _two_squares_sf(value, spread) == pytest.approx(expected, rel=1e-8)


def test_equal_weights_have_the_usual_distribution():
    label, proba = random_problem(np.random.default_rng(0), 30)
    test = CoxTest().fit(proba, label)
    assert test.p_value_ == close(chi2.sf(test.statistic_, 2))


def test_equal_predictions_leave_the_intercept():
    label = np.repeat([0, 1], [15, 5])
    test = CoxTest().fit(np.full(20, 0.5), label)
    assert np.isnan(test.slope_)
    assert test.intercept_ == close(-np.log(3))
    assert test.degrees_of_freedom_ == 1
    assert test.statistic_ == close(2 * (15 * np.log(1.5) + 5 * np.log(0.5)))
    assert test.p_value_ == close(chi2.sf(test.statistic_, 1))
    weight = np.tile([0.5, 1.5], 10)
    weighted = CoxTest().fit(np.full(20, 0.5), label, sample_weight=weight)
    share = weight[15:].sum() / weight.sum()
    gain = (1 - share) * np.log(2 * (1 - share)) + share * np.log(2 * share)
    assert weighted.statistic_ == close(2 * gain * weight.sum() ** 2 / (weight**2).sum())


@pytest.mark.parametrize("weight", [None, [0.5, 1.0, 1.5, 0.5, 1.0, 0.5, 1.0]])
@pytest.mark.parametrize(
    ("label", "intercept", "slope"),
    [
        ([0, 0, 0, 0, 0, 1, 1], np.nan, np.inf),
        ([0, 0, 0, 1, 1, 1, 1], np.nan, np.inf),  # but for a tie
        ([1, 1, 1, 1, 1, 0, 0], np.nan, -np.inf),
        ([1, 1, 0, 1, 1, 0, 0], np.nan, -np.inf),
        ([0, 0, 0, 0, 0, 0, 0], -np.inf, np.nan),
        ([1, 1, 1, 1, 1, 1, 1], np.inf, np.nan),
    ],
)
def test_separated_outcomes_have_a_supremum(label, intercept, slope, weight):
    proba, label = np.array([0.1, 0.2, 0.4, 0.4, 0.4, 0.7, 0.9]), np.array(label)
    test = CoxTest(labels=[0, 1]).fit(proba, label, sample_weight=weight)
    np.testing.assert_equal([test.intercept_, test.slope_], [intercept, slope])
    assert test.degrees_of_freedom_ == 2
    weight = ones(weight, 7) / np.sum(ones(weight, 7))
    supremum, tied = 0.0, slice(2, 5)
    if len(set(label[tied])) == 2:  # all others become certain
        share = np.average(label[tied], weights=weight[tied])
        supremum = weight[tied] @ np.log(np.where(label[tied] == 1, share, 1 - share))
    null = weight @ np.log(np.where(label == 1, proba, 1 - proba))
    scale = eigenvalues_under_the_null(proba, weight).mean()
    assert test.statistic_ == close(2 * (supremum - null) / scale)


def test_nearly_separated_outcomes():
    # two outcomes in the wrong order, close to each other: a steep but finite maximum
    proba = np.array([0.1, 0.2, 0.5, 0.5 + 1e-6, 0.8, 0.9])
    label = np.array([0, 0, 1, 0, 1, 1])
    test = CoxTest().fit(proba, label)
    assert 5 < test.slope_ < 20
    # two outcomes cost log 2 before and after, the others nothing any more
    assert test.statistic_ == close(-4 * np.log(0.9 * 0.8), 1e-4)
    residual = label - expit(test.intercept_ + test.slope_ * logit(proba))
    assert abs(residual.sum()) < 1e-12
    assert abs(residual @ logit(proba)) < 1e-12


def test_nearly_equal_predictions():
    proba = np.repeat([0.5, 0.5 + 1e-12], 8)
    label = np.tile([0, 0, 0, 1, 0, 0, 1, 1], 2)
    label[-1] = 0
    test = CoxTest().fit(proba, label)
    # as for any two predictions, the fit goes through both frequencies, 3/8 and 2/8
    expected = sum(k * np.log(k / 8) for k in (3, 5, 2, 6)) - 16 * np.log(0.5)
    assert test.statistic_ == close(2 * expected, 1e-6)


def test_cox_clips_where_the_logit_is_taken():
    eps = np.finfo(np.float64).eps
    label, proba = np.array([0, 1, 0, 1, 0, 1]), np.array([0.0, 1.0, 0.3, 0.4, 0.6, 0.7])
    exact = CoxTest().fit(proba, label)
    clipped = CoxTest().fit(np.clip(proba, eps, 1 - eps), label)
    assert (exact.slope_, exact.p_value_) == (clipped.slope_, clipped.p_value_)
    assert exact.p_value_ > 0.1
    # a certain but wrong prediction costs 36 in the likelihood
    wrong = CoxTest().fit(proba, np.array([1, 1, 0, 1, 0, 0]))
    assert wrong.p_value_ < 1e-12


def test_steps_that_do_not_suffice_are_warned_about(monkeypatch):
    monkeypatch.setattr("skcalib.metrics._clinical._MAX_CLINICAL_STEPS", 1)
    label, proba = random_problem(np.random.default_rng(0), 30)
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 steps"):
        CoxTest().fit(proba, label)


@pytest.mark.parametrize("seed", range(20))
def test_extreme_data_give_p_values(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    proba = [
        expit(15 * rng.normal(size=n)),
        rng.choice([0.0, 0.3, 1.0], size=n),
        10.0 ** rng.uniform(-320, 0, size=n),
        0.5 + 1e-13 * rng.random(n),
    ][seed % 4]
    label = rng.random(n) < (proba if seed % 3 else 0.3)
    weight = 10.0 ** rng.uniform(-12, 0, size=n) if seed % 5 == 0 else None
    with warnings.catch_warnings(action="error"):
        for test in TESTS:
            fitted = test(labels=[False, True]).fit(proba, label, sample_weight=weight)
            assert 0 < fitted.p_value_ <= 1
            assert not np.isnan(fitted.statistic_)


# All three


@all_tests
def test_more_than_two_classes_are_tested_by_confidence(test):
    label, proba = random_problem(np.random.default_rng(0), 80, 4)
    weight = np.random.default_rng(1).random(80)
    several = test().fit(proba, label, sample_weight=weight)
    binary = test().fit(proba.max(axis=1), proba.argmax(axis=1) == label, sample_weight=weight)
    assert several.p_value_ == binary.p_value_
    assert several.statistic_ == binary.statistic_
    assert several.classes_.tolist() == [0, 1, 2, 3]


@all_tests
def test_either_class_can_be_the_positive_one(test):
    label, proba, weight = weighted_problem(1)
    # groups are counted from below: their bounds are mirrored only if weights are equal
    weight = None if test is HosmerLemeshowTest else weight
    one = test().fit(proba, label, sample_weight=weight)
    other = test().fit(1 - proba, 1 - label, sample_weight=weight)
    assert abs(other.statistic_) == close(abs(one.statistic_), 1e-9)
    assert other.p_value_ == close(one.p_value_, 1e-9)


@all_tests
def test_p_values_that_underflow_are_positive(test):
    proba = np.full(10_000, 0.1)
    assert test(labels=[0, 1]).fit(proba, np.ones(10_000)).p_value_ == TINY


@all_tests
def test_statistics_serve_the_exact_test(test):
    label, proba = random_problem(np.random.default_rng(0), 100, calibrated=True)

    def statistic(y_true, y_proba):
        return abs(test(labels=[0, 1]).fit(y_proba, y_true).statistic_)

    exact = CalibrationTest(statistic, random_state=0, n_resamples=99).fit(
        two_columns(proba), label
    )
    asymptotic = test().fit(proba, label).p_value_
    assert exact.p_value_ == pytest.approx(asymptotic, abs=0.1)


def p_values(test, n, seeds, weighted=False, truth=lambda proba: proba):
    def one(seed):
        rng = np.random.default_rng(seed)
        proba = rng.random(n)
        weight = rng.exponential(size=n) if weighted else None
        label = rng.random(n) < truth(proba)
        return test.fit(proba, label, sample_weight=weight).p_value_

    return np.array([one(seed) for seed in seeds])


# With unequal weights, ten groups of 200 samples hold too few to claim their size.
SIZE_CASES = {
    "Spiegelhalter": (SpiegelhalterTest(), [200, 2000]),
    "Hosmer-Lemeshow": (HosmerLemeshowTest(), [2000]),
    "Hosmer-Lemeshow, 5 groups": (HosmerLemeshowTest(5), [200, 2000]),
    "Cox": (CoxTest(), [200, 2000]),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "n", "weighted"),
    [
        pytest.param(test, n, weighted, id=f"{name}, {n}, {'weighted' if weighted else 'equal'}")
        for name, (test, weighted_n) in SIZE_CASES.items()
        for weighted, sizes in ((False, [200, 2000]), (True, weighted_n))
        for n in sizes
    ],
)
def test_size(test, n, weighted):
    p = p_values(test, n, range(2000), weighted)
    for level in (0.01, 0.05, 0.1):
        assert abs(np.mean(p <= level) - level) < 4 * np.sqrt(level * (1 - level) / 2000)


def crowded_p_values(seed):
    rng = np.random.default_rng(seed)
    proba = rng.beta(0.3, 0.3, size=200)
    label = rng.random(200) < proba

    def statistic(y_true, y_proba):
        return HosmerLemeshowTest(labels=[False, True]).fit(y_proba, y_true).statistic_

    exact = CalibrationTest(statistic, n_resamples=99, random_state=seed).fit(proba, label)
    return HosmerLemeshowTest().fit(proba, label).p_value_, exact.p_value_


@pytest.mark.slow
def test_crowded_predictions_need_the_exact_test():
    p = [crowded_p_values(seed) for seed in range(1000)]
    approximate, exact = np.mean(np.array(p) <= 0.01, axis=0)
    deviation = np.sqrt(0.01 * 0.99 / 1000)
    assert approximate > 0.01 + 4 * deviation
    assert abs(exact - 0.01) < 4 * deviation


@pytest.mark.slow
@all_tests
def test_p_values_of_many_samples_are_uniform(test):
    p = p_values(test(), 20_000, range(500))
    assert kstest(p, "uniform").pvalue > 1e-4


@pytest.mark.slow
def test_size_of_degrees_of_freedom_for_fitted_models_on_held_out_data():
    # calzone 0.1.0 uses them there
    p = p_values(HosmerLemeshowTest(ddof=2), 2000, range(2000))
    assert np.mean(p <= 0.05) > 0.05 + 4 * np.sqrt(0.05 * 0.95 / 2000)


def fitted_p_value(seed, ddof):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(500, 2))
    label = (rng.random(500) < expit(x.sum(axis=1))).astype(int)
    model = LogisticRegression(C=np.inf).fit(x, label)
    return HosmerLemeshowTest(ddof=ddof).fit(model.predict_proba(x), label).p_value_


@pytest.mark.slow
def test_size_on_the_data_of_the_fit():
    p = {ddof: np.array([fitted_p_value(seed, ddof) for seed in range(2000)]) for ddof in (0, 2)}
    deviation = np.sqrt(0.05 * 0.95 / 2000)
    assert abs(np.mean(p[2] <= 0.05) - 0.05) < 4 * deviation
    assert np.mean(p[0] <= 0.05) < 0.05 - 4 * deviation


def underconfident(proba):
    return expit(1.5 * logit(proba))


@pytest.mark.slow
@all_tests
def test_power_against_underconfidence(test):
    p = p_values(test(), 1000, range(200), truth=underconfident)
    assert np.mean(p <= 0.05) > 0.8


@all_tests
def test_size_and_power_at_a_glance(test):
    calibrated = p_values(test(), 200, range(80))
    assert np.mean(calibrated <= 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 80)
    power = partial(p_values, test(), 1000, range(10))
    assert np.mean(power(truth=underconfident) <= 0.05) > 0.5
    assert np.mean(power(truth=lambda p: 0.2 + 0.6 * p) <= 0.05) == 1


@pytest.mark.parametrize("option", ["n_bins", "ddof"])
def test_counts_are_whole_numbers(option):
    with pytest.raises(ValueError, match=f"'{option}' .*must be an int .*Got True"):
        HosmerLemeshowTest(**{option: True}).fit([0.2, 0.7, 0.6], [0, 1, 1])
