"""Random effects of sites, against metafor, integrals by quadrature, a grid and enumeration."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.special import logsumexp

from skcalib._numerics import random_effects
from skcalib._numerics.random_effects import (
    _BETWEEN,
    conditional_log_likelihood,
    fit_random_effects,
    maximize_over_mean,
)

# Trials of the BCG vaccine against tuberculosis (Colditz et al. 1994; dat.bcg of the R package
# metafor): cases and others among the vaccinated, and among the controls.
BCG = np.array(
    [
        [4, 119, 11, 128], [6, 300, 29, 274], [3, 228, 11, 209], [62, 13536, 248, 12619],
        [33, 5036, 47, 5761], [180, 1361, 372, 1079], [8, 2537, 10, 619],
        [505, 87886, 499, 87892], [29, 7470, 45, 7232], [17, 1699, 65, 1600],
        [186, 50448, 141, 27197], [5, 2493, 3, 2338], [27, 16886, 29, 17825],
    ]
)  # fmt: skip

GRID = np.sinh(np.linspace(-4.7, 4.7, 121))

# Rows and events of sites with the log-odds 0 + intercept: none, all, few, many
ROWS, EVENTS = np.array([12, 3, 2, 40, 25]), np.array([0, 3, 1, 9, 16])


def site_log_likelihood(intercept, rows, events):
    return events * intercept - rows * np.logaddexp(0, intercept)


def likelihoods(rows=ROWS, events=EVENTS):
    return site_log_likelihood(GRID[:, None], rows, events)


def normal_log_likelihoods(estimate, variance):
    return -((GRID[:, None] - estimate) ** 2) / (2 * variance)


def test_published_numbers():
    # rma(measure="RR") of metafor prints tau^2 = 0.3132 and estimate -0.7145 (se 0.1798, as
    # 1/sqrt(sum of weights)); here τ is one of numbers 0.3 % apart
    a, b, c, d = BCG.T
    estimate = np.log(a / (a + b) / (c / (c + d)))
    variance = 1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)
    table = normal_log_likelihoods(estimate, variance)
    mean, low, high, *_, between = fit_random_effects(GRID, table, 1.5, 0.025)
    assert between**2 == pytest.approx(0.3132, rel=3e-3)
    assert mean == pytest.approx(-0.7145, abs=1e-4)
    # the half-width with the prior of τ is more than that of the one τ, and less than 1.3 times it
    assert 1 < (high - low) / (2 * 1.96 * 0.1798) < 1.3


def test_the_likelihood_is_that_of_quadrature_and_the_largest_over_the_mean():
    pieces = CubicSpline(GRID, likelihoods()).c
    means, log_variances, found = maximize_over_mean(GRID, pieces, -0.5, 48)

    def log_integral(mean, tau):
        total = 0.0
        for n, d in zip(ROWS, EVENTS, strict=True):
            value, _ = quad(
                lambda z, n=n, d=d: np.exp(site_log_likelihood(mean + tau * z, n, d) - z**2 / 2),
                *(-12, 12),
                points=[-4, -2, 0, 2, 4],
            )
            total += np.log(value / np.sqrt(2 * np.pi))
        return total

    for t in (0, 35, 48, 55):
        mean, tau, step = means[t], _BETWEEN[t], 0.05
        below, at, above = (log_integral(mean + shift, tau) for shift in (-step, 0, step))
        assert found[t] == pytest.approx(at, abs=2e-3)
        assert max(below, above) < at
        offset = (above - below) / (2 * step) * np.exp(log_variances[t])
        assert offset == pytest.approx(0, abs=2e-3)
        assert (2 * at - above - below) / step**2 == pytest.approx(np.exp(-log_variances[t]), 5e-3)


def test_the_fit_is_that_of_a_dense_grid():
    mean, between = np.linspace(-4, 3, 71), np.linspace(0.02, 4, 60)
    z = np.linspace(-6, 6, 81)
    value = mean[:, None, None] + between[:, None] * z  # (M, T, Z)
    log_likelihood = np.zeros((71, 60))
    for n, d in zip(ROWS, EVENTS, strict=True):
        log_term = site_log_likelihood(value, n, d) - z**2 / 2
        log_likelihood += logsumexp(log_term, axis=2)
    joint = np.exp(log_likelihood - log_likelihood.max())
    center, *ends, tau = fit_random_effects(GRID, likelihoods(), 1.5, 0.025)
    restricted = joint.sum(axis=0)  # flat in the mean
    best = between[np.argmax(restricted)]
    assert tau == pytest.approx(best, rel=0.08)
    assert center == pytest.approx(mean[np.argmax(joint[:, np.argmax(restricted)])], abs=0.07)
    joint = joint * np.exp(-((between / 1.5) ** 2) / 2)
    joint /= joint.sum()
    share = [joint[mean <= end].sum() for end in ends[:2]]
    assert share == pytest.approx([0.025, 0.975], abs=0.015)
    share = [np.sum(joint * stats.norm.cdf((end - mean[:, None]) / between)) for end in ends[2:]]
    assert share == pytest.approx([0.025, 0.975], abs=0.01)


def test_precise_sites_that_differ_much_have_the_fit_of_normal_estimates():
    estimate, variance = np.array([1.104, -2.579, 0.877]), 1e-8 * np.array([0.5, 1.0, 2.0])
    fit = fit_random_effects(GRID, normal_log_likelihoods(estimate, variance), 1.5, 0.025)
    # of sites without any error, the mean, and the deviation with k − 1
    assert fit[0] == pytest.approx(estimate.mean(), abs=1e-4)
    assert fit[5] == pytest.approx(estimate.std(ddof=1), rel=5e-3)


def test_without_a_maximum_there_is_no_fit(monkeypatch):
    assert np.isnan(fit_random_effects(GRID, likelihoods(ROWS, ROWS), 1.5, 0.025)).all()
    monkeypatch.setattr(random_effects, "_NUMBERS_OF_NODES", (1, 2))  # they differ too much
    assert np.isnan(fit_random_effects(GRID, likelihoods(), 1.5, 0.025)).all()


@pytest.mark.parametrize("n_events", [0, 1, 3, 6, 7])
def test_conditional_likelihood_is_that_of_all_labels(n_events):
    rng = np.random.default_rng(n_events)
    logits, label = rng.normal(-1, 1, size=7), np.zeros(7)
    label[rng.permutation(7)[:n_events]] = 1
    slope = np.array([-20.0, 0.0, 0.7, 3.0, 50.0])
    sums = [sum(chosen) for chosen in itertools.combinations(logits, n_events)]
    expected = slope * (label @ logits) - logsumexp(np.outer(slope, sums), axis=1)
    found = conditional_log_likelihood(slope, logits, label)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
