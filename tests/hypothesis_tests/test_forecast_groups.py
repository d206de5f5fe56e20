"""Outcomes of forecasts that are drawn with the dependence of their groups."""

import numpy as np
import pytest
from scipy.stats import kstest, norm

from skcalib._data import check_forecasts, with_groups
from skcalib._numerics.pit import normal_scores
from skcalib.forecasts import EnsembleForecast, GaussianForecast, QuantileForecast, ResidualForecast

LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9]


def quantiles(rng, mean):
    return QuantileForecast(mean[:, None] + norm.ppf(LEVELS), LEVELS)


def ensemble(size, weights=None):
    return lambda rng, mean: EnsembleForecast(
        mean[:, None] + rng.standard_normal((len(mean), size)), weights
    )


FORECASTS = {
    "normal": lambda rng, mean: GaussianForecast(mean, 1.0),
    "quantiles": quantiles,
    "ensemble of 10": ensemble(10),
    "ensemble of 2": ensemble(2),
    "residuals": lambda rng, mean: ResidualForecast(mean, norm.ppf((np.arange(20) + 0.5) / 20)),
}


def grouped(name, rng, correlation, n_groups, size):
    """Calibrated forecasts, whose normal scores have a common part in groups."""
    groups = np.repeat(np.arange(n_groups), size)
    common = rng.standard_normal(n_groups)[groups]
    z = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.standard_normal(len(groups))
    mean = 2 * rng.standard_normal(len(groups))
    forecast = FORECASTS[name](rng, mean)
    y = forecast.ppf(norm.cdf(z)) if name == "residuals" else mean + z
    return with_groups(check_forecasts(y, forecast), y, groups, None)


def correlation_in_groups(data, size):
    score = normal_scores(*data.forecast.pit_bounds(data.value))[0].reshape(-1, size)
    products = score.sum(axis=1) ** 2 - (score**2).sum(axis=1)
    return products.mean() / (size - 1) / (score**2).sum(axis=1).mean()


@pytest.mark.parametrize("name", FORECASTS)
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_redrawn_outcomes_go_together_as_the_observed_ones(name, correlation):
    data = grouped(name, np.random.default_rng(0), correlation, 2000, 4)
    observed = correlation_in_groups(data, 4)
    draws = data.simulate_outcomes(np.random.default_rng(1), 5)
    redrawn = [correlation_in_groups(data.with_outcome(draw), 4) for draw in draws]
    # 5 draws have the standard error 0.005; a correlation of 0.5 is estimated with one of 0.015
    assert np.mean(redrawn) == pytest.approx(observed, abs=0.02)
    assert (observed > 0.2) == (correlation > 0)


def test_a_common_number_has_its_share_of_the_weight():
    # within similar weights: heavy groups go together, light ones do not
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(400), 4)
    weight = np.repeat([10.0, 0.1], 800)
    z = rng.standard_normal(1600)
    z[:800] = np.repeat(z[:200], 4)
    data = with_groups(
        check_forecasts(z, GaussianForecast(np.zeros(1600), 1.0), sample_weight=weight),
        z,
        groups,
        None,
    )
    draws = data.simulate_outcomes(np.random.default_rng(1), 20)
    heavy, light = draws[:, :800].reshape(-1, 4), draws[:, 800:].reshape(-1, 4)
    assert np.corrcoef(heavy.T)[0, 1] > 0.98
    assert abs(np.corrcoef(light.T)[0, 1]) < 0.1
    assert kstest(draws[:, ::4].ravel(), "norm").pvalue > 1e-4  # each is drawn from its forecast


def test_positions_follow_ranks_and_are_equally_likely():
    rng = np.random.default_rng(0)
    data = grouped("ensemble of 2", rng, 0.9, 3000, 2)
    level = rng.random((4, 6000))
    values = data.to_outcome_values(data._simulate_at(level))
    pooled = np.sort(data.exchangeable_values(), axis=1)
    rank = np.floor(3 * level).astype(int)
    expected = np.stack([pooled[np.arange(6000), row] for row in rank])
    np.testing.assert_array_equal(values, expected)
    draws = data.simulate_outcomes(rng, 10)
    shares = [np.mean(draws == k) for k in range(3)]
    np.testing.assert_allclose(shares, 1 / 3, atol=0.015)


@pytest.mark.parametrize("name", FORECASTS)
def test_without_groups_draws_are_independent_and_as_ever(name):
    data = grouped(name, np.random.default_rng(0), 0.5, 50, 4)
    alone = check_forecasts(data.value, data.forecast)
    draws = alone.simulate_outcomes(np.random.default_rng(3), 4)
    generator = np.random.default_rng(3)
    if data.forecast.is_exchangeable:
        expected = generator.integers(data.exchangeable_values().shape[1], size=(4, 200))
    else:
        expected = data.forecast._simulate(generator, 4)
    np.testing.assert_array_equal(draws, expected)
