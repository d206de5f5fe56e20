"""PITRecalibrator: coverage of ranks exactly as stated, and a beta map of maximum likelihood."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from skcalib._numerics.pit_maps import BetaMap
from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    GaussianMixtureForecast,
    QuantileForecast,
    ResidualForecast,
    concatenate,
)
from skcalib.forecasts._derived import ppf_log_odds
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.recalibration import LocationScaleRecalibrator, PITRecalibrator

rng = np.random.default_rng(0)
N = 60
MEAN, STD = rng.normal(size=N), rng.uniform(0.5, 2.0, N)
Y = MEAN + STD * (rng.exponential(size=N) - 0.5)
GAUSSIAN = GaussianForecast(MEAN, STD)
CONTINUOUS = {
    "gaussian": GAUSSIAN,
    "mixture": GaussianMixtureForecast(np.c_[MEAN - STD, MEAN + STD], np.c_[STD, STD / 2]),
    "t": DistributionForecast(stats.t(5, loc=MEAN, scale=STD)),
    "moved": LocationScaleRecalibrator()
    .fit(DistributionForecast(stats.t(5, loc=MEAN, scale=STD)), Y)
    .transform(DistributionForecast(stats.t(5, loc=MEAN, scale=STD))),
}
continuous = pytest.mark.parametrize("forecast", CONTINUOUS.values(), ids=CONTINUOUS)
both_methods = pytest.mark.parametrize("method", ["conformal", "beta"])

LEVELS = (0.01, 0.07, 0.1, 0.25, 0.1 + 0.2, 0.5, 0.7, 0.9, 0.93, 0.99)


def covered(n, level, spread):
    """Shares of the n + 1 exchangeable samples that lie below the quantile, inside the interval.

    Each of n + 1 samples in turn is the new one, and the others are calibrated on.
    """
    generator = np.random.default_rng(n)
    mean, std = generator.normal(size=n + 1), generator.uniform(0.1, 5, n + 1)
    y = mean + std * spread * generator.normal(size=n + 1)
    below = inside = 0
    for i in range(n + 1):
        rest = np.delete(np.arange(n + 1), i)
        fitted = PITRecalibrator().fit((mean[rest], std[rest]), y[rest])
        new = fitted.transform((mean[[i]], std[[i]]))
        below += y[i] <= new.quantiles([level])[0, 0]
        low, high = new.interval(level)
        inside += low[0] <= y[i] <= high[0]
    return below / (n + 1), inside / (n + 1)


@pytest.mark.filterwarnings("ignore:Intervals of probability")  # which hold all outcomes
@pytest.mark.parametrize("spread", [6.0, 60.0])
@pytest.mark.parametrize("n", [1, 2, 9, 20])
def test_coverage_of_exchangeable_samples_is_exact(n, spread):
    for level in LEVELS:
        below, inside = covered(n, level, spread)
        rank = math.ceil(round((n + 1) * level, 9))
        assert below == pytest.approx(min(rank, n + 1) / (n + 1))
        assert level - 1e-12 <= below <= level + 1 / (n + 1)
        first = math.floor(round((n + 1) * (1 - level) / 2, 9))
        last = math.ceil(round((n + 1) * (1 + level) / 2, 9))
        assert inside == pytest.approx((min(last, n + 1) - first) / (n + 1))
        assert inside >= level - 1e-12


def test_levels_without_a_rank_are_infinite():
    fitted = PITRecalibrator().fit(GAUSSIAN[:9], Y[:9]).transform(GAUSSIAN[:1])
    assert np.isfinite(fitted.quantiles([0.05, 0.9])).all()
    assert fitted.quantiles([0.901])[0, 0] == np.inf
    with pytest.warns(UserWarning, match=r"probability 0.81 are infinite.* to 10 samples or more"):
        low, high = fitted.interval(0.81)
    assert (low[0], high[0]) == (-np.inf, np.inf)
    assert np.isfinite(fitted.interval(0.8)).all()


def test_few_ranks_leave_a_finite_distribution_to_test():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=120)
    y, forecast = mean + rng.normal(size=120), GaussianForecast(mean, 1.0)
    new = PITRecalibrator().fit(forecast[:60], y[:60]).transform(forecast[60:])
    assert np.isinf(new.quantiles([0.999])).all()
    location, _, weight = new.components()
    assert np.isfinite(location).all()
    np.testing.assert_allclose(np.sum(weight * location, axis=1), new.mean(), atol=0.02)
    test = CalibrationTest(n_resamples=99, random_state=0).fit(new, y[60:])
    assert test.p_value_ > 0.01


def test_by_hand():
    # the levels of 0, 1 and −1 are ranks 2, 3 and 1 of 3
    forecast = GaussianForecast(np.zeros(3), 1.0)
    fitted = PITRecalibrator().fit(forecast, [0.0, 1.0, -1.0])
    new = fitted.transform(GaussianForecast([10.0], [2.0]))
    np.testing.assert_allclose(new.quantiles([0.25, 0.5, 0.75])[0], [8, 10, 12])
    np.testing.assert_allclose(new.cdf([[8.0, 10.0, 12.0]])[0], [0.25, 0.5, 0.75])
    base = stats.norm(10, 2)
    expected = [0.25 * base.cdf(5) / base.cdf(8), 1 - 0.25 * base.sf(15) / base.sf(12)]
    np.testing.assert_allclose(new.cdf([[5.0, 15.0]])[0], expected)
    assert new.logsf([200.0])[0] == pytest.approx(
        np.log(0.25) + base.logsf(200) - base.logsf(12), rel=1e-12
    )
    z = stats.norm.logcdf(0.5) - stats.norm.logsf(0.5)
    end = stats.norm.logcdf(1) - stats.norm.logsf(1)
    assert new.cdf([11.0])[0] == pytest.approx(0.5 + 0.25 * z / end, rel=1e-12)


@continuous
def test_transforms_of_the_samples_are_their_ranks(forecast):
    new = PITRecalibrator().fit(forecast, Y).transform(forecast)
    ranks = stats.rankdata(forecast.pit_log_odds(Y)) / (N + 1)
    np.testing.assert_allclose(new.cdf(Y), ranks, rtol=1e-9)
    np.testing.assert_allclose(new.pit(Y), ranks, rtol=1e-9)


def test_saturated_levels_stay_apart():
    """Far out u rounds to 0 or 1 for most outcomes; the ranks are still those of z."""
    y = MEAN + STD * 60 * np.random.default_rng(1).normal(size=N)
    u = GAUSSIAN.cdf(y)
    assert np.mean((u == 0) | (u == 1)) > 0.6
    new = PITRecalibrator().fit(GAUSSIAN, y).transform(GAUSSIAN)
    ranks = stats.rankdata((y - MEAN) / STD) / (N + 1)
    np.testing.assert_allclose(new.cdf(y), ranks, rtol=1e-9)
    np.testing.assert_allclose(new.ppf(ranks), y, rtol=1e-9)
    assert new.crps(y).mean() < GAUSSIAN.crps(y).mean()


@both_methods
@continuous
def test_quantiles_invert_the_cdf(forecast, method):
    new = PITRecalibrator(method).fit(forecast, Y).transform(forecast)
    level = np.random.default_rng(2).random((N, 4))
    level[:, 0] = 1e-12
    np.testing.assert_allclose(new.cdf(new.ppf(level)), level, rtol=1e-6)
    np.testing.assert_allclose(new.pit_log_odds(new.ppf(level)[:, 0]), np.log(1e-12), rtol=1e-6)
    np.testing.assert_allclose(np.exp(new.logcdf(Y)) + np.exp(new.logsf(Y)), 1)
    assert (new.ppf(1.0) == forecast.ppf(1.0)).all()


@both_methods
@pytest.mark.parametrize("n", [3, 200])
def test_score_and_moments_equal_sums_over_levels(n, method):
    """Midpoints of 20 000 levels, which miss a little of the tails."""
    generator = np.random.default_rng(n)
    y = generator.exponential(size=n) - 0.5
    forecast = GaussianForecast(np.zeros(n), 1.0)
    new = PITRecalibrator(method).fit(forecast, y).transform(forecast[:2])
    level = np.tile((np.arange(20_000) + 0.5) / 20_000, (2, 1))
    quantile = new.ppf(level)
    gap = y[:2, None] - quantile
    score = 2 * np.maximum(level * gap, (level - 1) * gap).mean(axis=1)
    np.testing.assert_allclose(new.crps(y[:2]), score, rtol=5e-4)
    np.testing.assert_allclose(new.mean(), quantile.mean(axis=1), atol=2e-3)
    np.testing.assert_allclose(new.std(), quantile.std(axis=1), rtol=5e-3)


def test_beta_density_is_the_derivative_of_the_cdf():
    new = PITRecalibrator("beta").fit(GAUSSIAN, Y).transform(GAUSSIAN[:5])
    at = np.linspace(-1.5, 3, 5)
    slope = (new.cdf(at + 1e-5) - new.cdf(at - 1e-5)) / 2e-5
    np.testing.assert_allclose(np.exp(new.logpdf(at)), slope, rtol=1e-6)
    far = np.full(5, 300.0)  # where the density underflows
    assert np.isfinite(new.logpdf(far)).all()


def likelihood(a, b, c, u, weight):
    """log R'(u) from its definition."""
    r = 1 / (1 + np.exp(-(a * np.log(u) - b * np.log(1 - u) + c)))
    return np.average(np.log(r * (1 - r) * (a / u + b / (1 - u))), weights=weight)


def test_beta_map_has_the_largest_likelihood():
    u, weight = GAUSSIAN.cdf(Y), np.random.default_rng(3).random(N)
    found = PITRecalibrator("beta").fit(GAUSSIAN, Y, sample_weight=weight).map_
    best = likelihood(found.a, found.b, found.c, u, weight)
    assert best > likelihood(1, 1, 0, u, weight) + 1e-3
    for k, step in itertools.product(range(3), (-1e-3, 1e-3, -0.1, 0.1)):
        nearby = np.array([found.a, found.b, found.c])
        nearby[k] += step
        assert likelihood(*nearby, u, weight) <= best + 1e-9


def test_beta_map_by_hand():
    found = BetaMap(2.0, 3.0, 0.5)
    u = np.array([0.2, 0.9])
    z = np.log(u / (1 - u))
    odds = 2 * np.log(u) - 3 * np.log(1 - u) + 0.5
    r = 1 / (1 + np.exp(-odds))
    np.testing.assert_allclose(np.exp(found.log_cdf(z)), r)
    np.testing.assert_allclose(np.exp(found.log_sf(z)), 1 - r)
    np.testing.assert_allclose(np.exp(found.log_slope(z)), r * (1 - r) * (2 / u + 3 / (1 - u)))
    np.testing.assert_allclose(found.inverse(np.log(r), np.log(1 - r)), z)


def test_levels_of_members_become_weights():
    generator = np.random.default_rng(4)
    members = generator.normal(size=(200, 7))
    y = 2 * generator.normal(size=200) + 1
    for forecast in (EnsembleForecast(members), EnsembleForecast(members, np.arange(1, 8))):
        fitted = PITRecalibrator("beta").fit(forecast, y)
        new = fitted.transform(forecast)
        np.testing.assert_array_equal(new.members, np.sort(members, axis=1))
        at = generator.normal(size=200)
        before = forecast.cdf(at)
        with np.errstate(divide="ignore"):
            expected = np.exp(fitted.map_.log_cdf(np.log(before) - np.log1p(-before)))
        np.testing.assert_allclose(new.cdf(at), expected, atol=1e-9)
        assert new.crps(y).mean() < forecast.crps(y).mean()


def test_intervals_of_levels_have_the_largest_likelihood():
    generator = np.random.default_rng(5)
    members = generator.normal(size=(150, 4))
    y = 1.5 * generator.normal(size=150) + 0.5
    found = PITRecalibrator("beta").fit(EnsembleForecast(members), y).map_
    rank = (members < y[:, None]).sum(axis=1)

    def value(a, b, c):
        r = [0.0]
        for u in np.arange(1, 5) / 5:
            r.append(1 / (1 + np.exp(-(a * np.log(u) - b * np.log(1 - u) + c))))
        return np.log(np.diff([*r, 1.0])[rank]).mean()

    best = value(found.a, found.b, found.c)
    for k, step in itertools.product(range(3), (-1e-3, 1e-3, -0.1, 0.1)):
        nearby = np.array([found.a, found.b, found.c])
        nearby[k] += step
        assert value(*nearby) <= best + 1e-9


def test_shared_residuals_stay_shared():
    generator = np.random.default_rng(6)
    forecast = ResidualForecast(generator.normal(size=100), generator.normal(size=20))
    y = forecast.location + 2 * generator.normal(size=100)
    new = PITRecalibrator("beta").fit(forecast, y).transform(forecast)
    assert isinstance(new, ResidualForecast)
    np.testing.assert_array_equal(new.residuals, forecast.residuals)
    assert new.weights.sum() == pytest.approx(1)
    assert new.weights[0] > forecast.weights[0]


def test_discrete_forecasts():
    generator = np.random.default_rng(7)
    rate = generator.uniform(1, 5, 150)
    y = generator.negative_binomial(2, 2 / (2 + rate))
    forecast = DistributionForecast(stats.poisson(rate))
    new = PITRecalibrator("beta").fit(forecast, y).transform(forecast)
    total = np.exp(new.logpdf(np.tile(np.arange(200.0), (150, 1)))).sum(axis=1)
    np.testing.assert_allclose(total, 1)
    assert new.logpdf(y.astype(float)).mean() > forecast.logpdf(y.astype(float)).mean()
    lower, upper = new.pit_bounds(y)
    np.testing.assert_allclose(np.log(upper - lower), new.logpdf(y.astype(float)), rtol=1e-9)
    assert set(new.ppf(0.5)) <= set(range(20))


def test_levels_of_unequal_weights():
    forecast = GaussianForecast(np.zeros(3), 1.0)
    fitted = PITRecalibrator().fit(forecast, [0.0, 1.0, -1.0], sample_weight=[2, 1, 1])
    share = 1 + (0.5**2 + 2 * 0.25**2)
    np.testing.assert_allclose(fitted.transform(forecast).cdf([0.0, 1, -1])[0], 0.75 / share)
    repeated = PITRecalibrator().fit(forecast, [0.0, 1.0, -1.0], sample_weight=[3, 3, 3])
    assert repeated.transform(forecast).cdf([0.0, 0, 0])[0] == pytest.approx(0.5)


@pytest.mark.parametrize("name", ["gaussian", "mixture", "t"])
def test_quantiles_of_extreme_log_odds(name):
    forecast = CONTINUOUS[name][:4]
    z = np.tile([-200.0, -40, -3, 0, 3, 40, 200], (4, 1))
    y = ppf_log_odds(forecast, z)
    assert (np.diff(y, axis=1) > 0).all()
    np.testing.assert_allclose(forecast._log_odds(y), z, rtol=1e-9, atol=1e-9)
    ends = ppf_log_odds(forecast, np.tile([-np.inf, np.inf], (4, 1)))
    np.testing.assert_array_equal(ends, np.tile([-np.inf, np.inf], (4, 1)))


def test_ties_of_ranks():
    forecast = GaussianForecast(np.zeros(4), 1.0)
    new = PITRecalibrator().fit(forecast, [1.0, 1.0, 1.0, 2.0]).transform(forecast)
    np.testing.assert_allclose(new.quantiles([0.2, 0.6, 0.8])[0], [1, 1, 2])
    assert new.cdf([1.0] * 4)[0] == pytest.approx(0.6)


def test_bad_input():
    ensemble = EnsembleForecast(np.random.default_rng(8).normal(size=(N, 5)))
    with pytest.raises(ValueError, match=r"continuous forecast .* QuantileRecalibrator"):
        PITRecalibrator().fit(ensemble, Y)
    with pytest.raises(ValueError, match="continuous forecast"):
        PITRecalibrator().fit(GAUSSIAN, Y).transform(ensemble)
    grid = QuantileForecast(GAUSSIAN.quantiles([0.2, 0.8]), [0.2, 0.8])
    for method in ("conformal", "beta"):
        with pytest.raises(ValueError, match="found QuantileForecast"):
            PITRecalibrator(method).fit(grid, Y)
        with pytest.raises(ValueError, match="found QuantileForecast"):
            PITRecalibrator(method).fit(GAUSSIAN, Y).transform(grid)
    with pytest.raises(ValueError, match=r"logpdf is not known for this forecast: .*beta"):
        PITRecalibrator().fit(GAUSSIAN, Y).transform(GAUSSIAN).logpdf(Y)
    with pytest.raises(ValueError, match="y must be finite"):
        PITRecalibrator().fit(GAUSSIAN, np.full(N, np.nan))
    with pytest.raises(ValueError, match="at least 2 outcomes"):
        PITRecalibrator("beta").fit(GAUSSIAN[:1], Y[:1])


def test_recalibrated_counts_are_summed_over_their_values():
    rates = np.linspace(0.5, 6, 40)
    counts = DistributionForecast(stats.poisson(rates))
    y = DistributionForecast(stats.poisson(1.5 * rates)).sample(random_state=0)
    parts = [
        DistributionForecast(stats.poisson(rates[part])) for part in (slice(15), slice(15, 40))
    ]
    value = np.arange(60.0)
    for forecast in (counts, concatenate(parts)):
        moved = PITRecalibrator("beta").fit(forecast, y).transform(forecast)
        below = moved.cdf(np.tile(value, (40, 1)))
        share = np.diff(below, axis=1, prepend=0.0)
        mean = share @ value
        np.testing.assert_allclose(moved.mean(), mean, rtol=1e-9)
        np.testing.assert_allclose(moved.std() ** 2, share @ value**2 - mean**2, rtol=1e-9)
        score = np.sum((below - (value >= y[:, None])) ** 2, axis=1)
        np.testing.assert_allclose(moved.crps(y), score, rtol=1e-9)
