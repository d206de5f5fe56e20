"""The continuous ranked probability score equals quadrature of its definition."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammainc, ndtr
from scipy.stats import gamma, norm

from skcalib._numerics.crps import (
    NORMAL,
    EnsembleScore,
    crps_between,
    crps_ensemble,
    crps_gaussian,
    crps_mixture,
    crps_mixture_between,
    crps_ppf_between,
    crps_quantiles,
    integrate_levels,
    mean_distance,
)

# Thresholds between which the score is taken; the first pair holds everything.
WINDOWS = [(-np.inf, np.inf), (-1.0, 1.5), (2.0, 50.0), (3.0, 4.0), (-np.inf, 0.5), (0.3, np.inf)]
windows = pytest.mark.parametrize("window", WINDOWS)


def integrate(cdf, y, window, kinks):
    """∫ (F(t) − 1[y ≤ t])² dt, piece by piece."""
    low, high = np.clip(window, -60, 60)
    ends = np.unique(np.clip([low, high, y, *kinks], low, high))
    return sum(
        quad(lambda t: (cdf(t) - (y <= t)) ** 2, a, b, epsabs=1e-14, epsrel=1e-13, limit=200)[0]
        for a, b in itertools.pairwise(ends)
    )


def mixtures():
    """Outcomes, means, standard deviations and weights; some outcomes are far away."""
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=(6, 3)), rng.uniform(0.05, 2, size=(6, 3))
    weight = rng.dirichlet(np.ones(3), size=6)
    weight[2] = [1, 0, 0]
    return np.append([40.0, -30.0], 2 * rng.normal(size=4)), mean, std, weight


def kinks_of(mean, std):
    return (mean + std * np.arange(-8, 9, 2)[:, None]).ravel()


@windows
def test_gaussian(window):
    y, mean, std, _ = mixtures()
    mean, std = mean[:, 0], std[:, 0]
    expected = [
        integrate(lambda t, m=m, s=s: ndtr((t - m) / s), c, window, kinks_of(m, s))
        for c, m, s in zip(y, mean, std, strict=True)
    ]
    score = crps_between(y, mean, std, *window, NORMAL)
    np.testing.assert_allclose(score, expected, atol=1e-12)
    if window == WINDOWS[0]:
        np.testing.assert_allclose(crps_gaussian(y, mean, std), expected, atol=1e-12)


@windows
def test_mixture(window):
    y, *components = mixtures()
    expected = [
        integrate(lambda t, m=m, s=s, w=w: w @ ndtr((t - m) / s), c, window, kinks_of(m, s))
        for c, m, s, w in zip(y, *components, strict=True)
    ]
    score = crps_mixture_between(y, *components, *window)
    np.testing.assert_allclose(score, expected, atol=1e-12)
    if window == WINDOWS[0]:
        np.testing.assert_allclose(crps_mixture(y, *components), expected, atol=1e-12)


def test_one_component_is_a_gaussian():
    y, mean, std, _ = mixtures()
    ones = np.ones((6, 1))
    for window in WINDOWS:
        np.testing.assert_allclose(
            crps_mixture_between(y, mean[:, :1], std[:, :1], ones, *window),
            crps_between(y, mean[:, 0], std[:, 0], *window, NORMAL),
            atol=1e-12,
        )


def test_mean_distance():
    shift, deviation = np.array([0.0, -1.5, 3.0, -2.0]), np.array([1.0, 0.5, 2.0, 0.0])
    expected = [
        quad(lambda x, m=m, s=s: abs(x) * norm.pdf(x, m, s), -30, 30, points=[0, m])[0]
        for m, s in zip(shift[:3], deviation[:3], strict=True)
    ]
    np.testing.assert_allclose(mean_distance(shift, deviation), [*expected, 2.0], atol=1e-10)


def pairs(y, members, weight, fair):
    """The definition by means of distances; fair ones leave out pairs of a member with itself."""
    error = sum(w * abs(x - y) for x, w in zip(members, weight, strict=True))
    size = len(members)
    spread = sum(
        weight[k] * weight[j] * abs(members[k] - members[j])
        for k in range(size)
        for j in range(size)
    )
    return error - spread / 2 * (size / (size - 1) if fair else 1)


@pytest.mark.parametrize("fair", [False, True])
def test_ensembles(fair):
    rng = np.random.default_rng(0)
    members = np.sort(np.round(rng.normal(size=(8, 5)), 1), axis=1)
    weight = np.full((8, 5), 0.2) if fair else rng.dirichlet(np.ones(5), size=8)
    y = np.append(np.round(rng.normal(size=7), 1), 1e3)
    expected = [pairs(*row, fair) for row in zip(y, members, weight, strict=True)]
    for weights in [weight, None] if fair else [weight]:  # None are equal ones
        actual = crps_ensemble(y, members, weights, fair=fair)
        np.testing.assert_allclose(actual, expected, atol=1e-12)


def test_ensembles_of_many_rows_are_those_of_each_row():
    rng = np.random.default_rng(0)
    members, y = np.sort(rng.normal(size=(3000, 20)), axis=1), rng.normal(size=3000)
    weight = rng.dirichlet(np.ones(20), size=3000)
    for weights, at_row in ((None, lambda k: None), (weight, lambda k: weight[k, None])):
        score = crps_ensemble(y, members, weights)
        expected = [crps_ensemble(y[[k]], members[[k]], at_row(k))[0] for k in range(0, 3000, 99)]
        np.testing.assert_array_equal(score[::99], expected)


@pytest.mark.parametrize("size", [2, 5, 8])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_score_of_prepared_ensembles(size, offset):
    rng = np.random.default_rng(size)
    members = offset + np.sort(rng.integers(-4, 5, (40, size)), axis=1) / 4  # with ties
    weight = rng.dirichlet(np.ones(size), size=40)
    weight[3] = np.eye(size)[0]
    score = EnsembleScore(members, weight, np.insert(np.cumsum(weight, axis=1), 0, 0.0, axis=1))
    for y in (offset + rng.integers(-5, 6, 40) / 4, rng.normal(offset, 10, 40)):
        value, slope = score(y)
        np.testing.assert_allclose(value, crps_ensemble(y, members, weight), atol=1e-12)
        at_most = [w[x <= c].sum() for w, x, c in zip(weight, members, y, strict=True)]
        np.testing.assert_allclose(slope, 2 * np.array(at_most) - 1, atol=1e-12)


def test_ensembles_by_hand():
    # |0 − 1|/2 + |2 − 1|/2 − |0 − 2|/4, and − |0 − 2|/2 if fair
    members, weight = np.array([[0.0, 2.0]]), np.full((1, 2), 0.5)
    assert crps_ensemble(np.ones(1), members, weight)[0] == 0.5
    assert crps_ensemble(np.ones(1), members, weight, fair=True)[0] == 0


def test_fair_scores_are_unbiased():
    # all samples of two members from three values, against the score of their law
    values, probability, y = np.array([0.0, 1.0, 5.0]), np.array([0.5, 0.3, 0.2]), np.array([2.0])
    fair = sum(
        probability[a]
        * probability[b]
        * crps_ensemble(y, np.sort(values[[[a, b]]]), np.full((1, 2), 0.5), fair=True)[0]
        for a, b in itertools.product(range(3), repeat=2)
    )
    law = crps_ensemble(y, values[None], probability[None])[0]
    assert fair == pytest.approx(law, abs=1e-15)


def test_quantiles_by_hand():
    # levels ¼ and ½: (½ − 0)·ρ + (1 − ¼)·ρ
    quantiles, levels = np.array([[0.0, 1.0]]), np.array([0.25, 0.5])
    expected = 0.5 * 0.25 * 3 + 0.75 * 0.5 * 2
    assert crps_quantiles(np.array([3.0]), quantiles, levels)[0] == expected
    expected = 0.5 * 0.75 * 1 + 0.75 * 0.5 * 2
    assert crps_quantiles(np.array([-1.0]), quantiles, levels)[0] == expected


def test_many_quantiles_are_the_distribution():
    y = np.array([-1.0, 0.2, 2.0])
    levels = np.linspace(0, 1, 4001)[1:-1]
    values = np.tile(norm.ppf(levels), (3, 1))
    score = crps_quantiles(y, values, levels)
    np.testing.assert_allclose(score, crps_gaussian(y, np.zeros(3), np.ones(3)), rtol=1e-4)
    # the 23 unequal levels of forecasting hubs, where twice the mean pinball loss is off by 17 %
    levels = np.array([0.01, 0.025, *np.arange(1, 20) / 20, 0.975, 0.99])
    values = np.tile(norm.ppf(levels), (3, 1))
    score = crps_quantiles(y, values, levels)
    np.testing.assert_allclose(score, crps_gaussian(y, np.zeros(3), np.ones(3)), rtol=0.03)


@windows
def test_quantile_functions(window):
    shape = np.array([0.5, 1.2, 2.0, 3.0, 4.0])
    y = np.array([40.0, 1e-9, 0.7, 3.0, 12.0])

    def ppf(level, row):
        return gamma.ppf(level, shape[row, None])

    expected = [
        integrate(
            lambda t, a=a: gammainc(a, t), c, np.maximum(window, 0), [*np.arange(12) ** 3 / 20]
        )
        for c, a in zip(y, shape, strict=True)
    ]
    ends = np.column_stack([y, *(np.full(5, end) for end in window)])
    levels = gamma.cdf(ends, shape[:, None])
    score, is_rough = crps_ppf_between(y, ppf, levels, *window)
    assert not is_rough.any()
    np.testing.assert_allclose(score, expected, rtol=1e-6, atol=1e-7)


def test_outcomes_beyond_what_a_cdf_resolves():
    # F(y) is 0 or 1 in double precision, and the score all but a distance
    y = np.array([40.0, -40.0, 1e6, 1e300])
    expected = np.abs(y) - 1 / np.sqrt(np.pi)
    score = crps_mixture(y, np.zeros((4, 1)), np.ones((4, 1)), np.ones((4, 1)))
    np.testing.assert_allclose(score, expected, rtol=1e-15)
    np.testing.assert_allclose(crps_gaussian(y, np.zeros(4), np.ones(4)), expected, rtol=1e-15)
    score, _ = crps_ppf_between(
        y, lambda level, row: norm.ppf(level), norm.cdf(y)[:, None], -np.inf, np.inf
    )
    np.testing.assert_allclose(score, expected, rtol=1e-7)


def test_pieces_are_halved_until_jumps_do_not_matter_():
    functions = [lambda u: u > 0.3, lambda u: np.abs(u - 0.7)]

    def integrand(level, row):
        return np.array([functions[r](u) for r, u in zip(row, level, strict=True)], dtype=float)

    (value,), is_rough, _ = integrate_levels(integrand, np.full((2, 1), 0.5))
    np.testing.assert_allclose(value, [0.7, 0.29], rtol=1e-7)
    assert not is_rough.any()
