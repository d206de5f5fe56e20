"""Losses of forecasts: definitions, agreement of the carriers, weights, and bad input."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, gamma, genpareto, laplace, norm, poisson, t as student, uniform
from sklearn.metrics import mean_pinball_loss

from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    GaussianMixtureForecast,
    QuantileForecast,
    ResidualForecast,
    as_forecast,
)
from skcalib.metrics import (
    continuous_ranked_probability_loss,
    interval_loss,
    negative_log_likelihood,
    score_decomposition,
    sharpness,
)

LOSSES = [continuous_ranked_probability_loss, interval_loss, negative_log_likelihood]
every_loss = pytest.mark.parametrize("loss", LOSSES)


def gaussian_case(seed=0, n=12):
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), rng.uniform(0.5, 2, size=n)
    return mean + std * rng.normal(size=n), mean, std, rng.choice([0.0, 0.5, 1.0, 3.0], size=n)


def carriers(mean, std):
    """The same normal forecasts, in all forms that hold them exactly or nearly so."""
    level = (np.arange(20_000) + 0.5) / 20_000
    members = mean[:, None] + std[:, None] * norm.ppf(level)
    two = np.ones((len(mean), 2))
    return {
        "tuple": (mean, std),
        "mixture": GaussianMixtureForecast(mean[:, None] * two, std[:, None] * two, [0.3, 0.7]),
        "SciPy": DistributionForecast(norm(mean, std)),
        "ensemble": EnsembleForecast(members, np.ones(20_000)),
        "quantiles": QuantileForecast(members, level),
    }


def test_outcomes_beyond_the_support_have_a_score():
    # ∫ (F(t) − 1[y ≤ t])² dt grows by 1 for each unit between the outcome and the support
    for forecast, y, end in (
        (genpareto([0.9]), -0.3, 0.0),
        (gamma([2.0]), -4.0, 0.0),
        (uniform([1.0]), 3.5, 2.0),
        (binom([10], 0.9), -8, 0),
    ):
        at_end, beyond = (
            continuous_ranked_probability_loss([value], forecast) for value in (end, y)
        )
        assert beyond == pytest.approx(at_end + abs(y - end), rel=1e-9)
        assert score_decomposition([y], forecast, score="crps", n_resamples=0).score == (
            pytest.approx(beyond, rel=1e-9)
        )
        low, high = as_forecast(forecast).interval(0.9)
        expected = high - low + 20 * (low - y if y < end else y - high)
        assert interval_loss([y], forecast, coverage=0.9) == pytest.approx(expected[0])
        with pytest.raises(ValueError, match="must lie in the support of its forecast"):
            negative_log_likelihood([y], forecast)
    # scoringrules.crps_gpd(-0.3, 0.9)
    assert continuous_ranked_probability_loss([-0.3], genpareto([0.9])) == pytest.approx(
        1.209, abs=5e-4
    )


@pytest.mark.parametrize("thresholds", [None, (-0.5, 1.0), (0.3, np.inf)])
def test_carriers_agree(thresholds):
    y, mean, std, _ = gaussian_case()
    y[:2] = 30, -30
    options = {"thresholds": thresholds, "average": None}
    expected = continuous_ranked_probability_loss(y, GaussianForecast(mean, std), **options)
    accuracy = {"tuple": 0, "mixture": 1e-12, "SciPy": 1e-6, "ensemble": 2e-4, "quantiles": 1e-3}
    for name, forecast in carriers(mean, std).items():
        found = continuous_ranked_probability_loss(y, forecast, **options)
        np.testing.assert_allclose(found, expected, atol=accuracy[name], err_msg=name)


def test_thresholds_are_any_pair():
    options = [{"thresholds": pair} for pair in ((0, 1), [0, 1], np.array([0, 1]))]
    scores = {continuous_ranked_probability_loss([0.5], ([0.0], [1.0]), **one) for one in options}
    assert len(scores) == 1


def test_thresholds_cut_the_score_into_parts():
    y, mean, std, _ = gaussian_case()
    rng = np.random.default_rng(0)
    forecasts = [
        *carriers(mean, std).values(),
        DistributionForecast(student(5, mean, std)),
        DistributionForecast(poisson(np.exp(mean))),
        EnsembleForecast(rng.normal(size=(12, 5))),
        ResidualForecast(mean, rng.normal(size=7)),
    ]
    for forecast in forecasts:
        outcome = np.round(np.abs(y)) if "Distribution" in repr(forecast) else y
        whole = continuous_ranked_probability_loss(outcome, forecast, average=None)
        parts = [
            continuous_ranked_probability_loss(outcome, forecast, thresholds=pair, average=None)
            for pair in [(-np.inf, -0.2), (-0.2, 0.9), (0.9, np.inf)]
        ]
        for part in parts:
            assert (part >= -1e-9).all()
        np.testing.assert_allclose(np.sum(parts, axis=0), whole, rtol=1e-5, atol=1e-7)


def test_thresholds_of_counts_with_too_many_values_to_list():
    forecast = DistributionForecast(poisson(np.full(3, 1e6)))
    y = np.array([999_000.0, 1_000_500.0, 1_004_000.0])
    normal = GaussianForecast(np.full(3, 1e6 - 0.5), 1e3)
    for thresholds in (None, (999_500.0, 1_001_000.0), (1_000_000.0, np.inf)):
        options = {"thresholds": thresholds, "average": None}
        found = continuous_ranked_probability_loss(y, forecast, **options)
        expected = continuous_ranked_probability_loss(y, normal, **options)
        np.testing.assert_allclose(found, expected, atol=0.5)
        count = np.arange(900_000, 1_100_000)[:, None]
        low, high = (-np.inf, np.inf) if thresholds is None else thresholds
        length = np.clip(count + 1, low, high) - np.clip(count, low, high)
        squares = (forecast.dist.cdf(count) - (count >= y)) ** 2
        np.testing.assert_allclose(found, np.sum(length * squares, axis=0), rtol=1e-12)


def test_the_weighted_interval_score_is_twice_the_mean_pinball_loss():
    # documented by yardstick's weighted_interval_score: 1.275
    y, levels = [3.3, 7.1], [0.2, 0.4, 0.6, 0.8]
    forecast = QuantileForecast([[1, 2, 3, 4], [8, 9, 10, 11]], levels)
    score = partial(continuous_ranked_probability_loss, level_weights="equal")
    assert score(y, forecast) == pytest.approx(1.275, abs=1e-12)
    pinball = np.mean(
        [mean_pinball_loss(y, q, alpha=a) for q, a in zip(forecast.values.T, levels, strict=True)]
    )
    assert score(y, forecast) == pytest.approx(2 * pinball, rel=1e-12)
    # Bracher et al. 2021: |y - median| / 2, and the interval scores by half of their level
    normal = as_forecast((np.array([1.0, 2.0]), np.array([1.0, 3.0])))
    interval = sum(interval_loss(y, normal, coverage=c) * (1 - c) / 2 for c in (0.5, 0.9))
    expected = (np.mean(np.abs(y - normal.mean())) / 2 + interval) / 2.5
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    assert score(y, normal, levels=levels) == pytest.approx(expected, rel=1e-12)
    low = score(y, forecast, thresholds=(-np.inf, 3.2)) + score(
        y, forecast, thresholds=(3.2, np.inf)
    )
    assert low == pytest.approx(1.275, abs=1e-12)
    with pytest.raises(ValueError, match=r"level_weights='equal' needs quantiles.*Pass levels"):
        score(y, normal)
    with pytest.raises(ValueError, match="'fair' is not known"):
        score(y, forecast, estimation="fair")


def test_fair_scores():
    forecast = EnsembleForecast([[0.0, 2.0], [1.0, 3.0]])
    y = [1.0, 3.0]
    assert continuous_ranked_probability_loss(y, forecast, estimation="fair") == 0
    # members between the thresholds 1 and 2.5: (1, 2) and (1, 2.5)
    fair = continuous_ranked_probability_loss(
        y, forecast, estimation="fair", thresholds=(1.0, 2.5), average=None
    )
    np.testing.assert_allclose(fair, [0.5 - 0.5, 0.75 - 0.75])
    for thresholds in (None, (0.0, 1.0)):
        with pytest.raises(ValueError, match="estimation='fair' is not known for this forecast"):
            continuous_ranked_probability_loss(
                y, (np.zeros(2), 1.0), estimation="fair", thresholds=thresholds
            )
        with pytest.raises(ValueError, match=r"estimation='fair' is not known .* has weights"):
            continuous_ranked_probability_loss(
                y, EnsembleForecast(np.eye(2), [1, 1]), estimation="fair", thresholds=thresholds
            )


def test_residuals_are_the_ensemble_that_they_make():
    rng = np.random.default_rng(0)
    location, residuals, weights = rng.normal(size=5), rng.normal(size=4), rng.random(4)
    y = rng.normal(size=5)
    shared = ResidualForecast(location, residuals, weights)
    own = EnsembleForecast(location[:, None] + residuals, weights)
    for options in ({}, {"thresholds": (-0.3, 0.4)}):
        np.testing.assert_allclose(
            continuous_ranked_probability_loss(y, shared, average=None, **options),
            continuous_ranked_probability_loss(y, own, average=None, **options),
            atol=1e-13,
        )


def test_the_interval_loss_is_a_sum_of_pinball_losses():
    y, mean, std, weight = gaussian_case()
    for level in (0.5, 0.9, 0.99):
        alpha = 1 - level
        expected = sum(
            mean_pinball_loss(y, norm.ppf(p, mean, std), alpha=p, sample_weight=weight)
            for p in (alpha / 2, 1 - alpha / 2)
        )
        found = interval_loss(y, (mean, std), coverage=level, sample_weight=weight)
        assert found == pytest.approx(2 / alpha * expected, rel=1e-12)


def test_few_levels_of_any_forecast():
    y, mean, std, weight = gaussian_case()
    levels = [0.05, 0.5, 0.95]
    for forecast in map(as_forecast, carriers(mean, std).values()):
        grid = QuantileForecast(forecast.quantiles(levels), levels)
        for options in ({}, {"thresholds": (-0.5, 0.5)}, {"sample_weight": weight}):
            found = continuous_ranked_probability_loss(y, forecast, levels=levels, **options)
            assert found == continuous_ranked_probability_loss(y, grid, **options)
    with pytest.raises(ValueError, match=r"levels must lie in \(0, 1\)"):
        continuous_ranked_probability_loss(y, (mean, std), levels=[5, 95])


def test_the_crps_is_the_mean_of_all_interval_losses():
    # 2 ∫ ρ_u du over (0, 1) = ∫ α/2 · (interval loss of probability 1 − α) dα
    y, mean, std, _ = gaussian_case()
    node, weight = np.polynomial.legendre.leggauss(400)
    total = sum(
        w / 2 * (1 - p) / 2 * interval_loss(y, (mean, std), coverage=p, average=None)
        for p, w in zip((node + 1) / 2, weight, strict=True)
    )
    crps = continuous_ranked_probability_loss(y, (mean, std), average=None)
    np.testing.assert_allclose(total, crps, rtol=1e-4)


def test_log_densities():
    y, mean, std, weight = gaussian_case()
    expected = -norm.logpdf(y, mean, std)
    np.testing.assert_allclose(
        negative_log_likelihood(y, (mean, std), average=None), expected, atol=1e-13
    )
    mean_loss = negative_log_likelihood(y, (mean, std), sample_weight=weight)
    assert mean_loss == pytest.approx(np.average(expected, weights=weight), abs=1e-13)
    far = negative_log_likelihood([40.0], ([0.0], [1.0]))
    assert far == pytest.approx(800 + np.log(2 * np.pi) / 2, rel=1e-15)
    counts = DistributionForecast(poisson([2.0, 3.0]))
    found = negative_log_likelihood([1, 4], counts, average=None)
    np.testing.assert_allclose(found, -poisson.logpmf([1, 4], [2.0, 3.0]))
    members = np.arange(4.0).reshape(2, 2)
    for forecast in (EnsembleForecast(members), QuantileForecast(members, [0.2, 0.8])):
        with pytest.raises(ValueError, match="logpdf is not known for this forecast"):
            negative_log_likelihood([0.0, 1.0], forecast)


@every_loss
def test_weights_and_single_losses(loss):
    y, mean, std, weight = gaussian_case()
    single = loss(y, (mean, std), average=None)
    assert single.shape == (12,)
    assert type(loss(y, (mean, std))) is float
    assert loss(y, (mean, std)) == pytest.approx(single.mean(), abs=1e-14)
    weighted = loss(y, (mean, std), sample_weight=weight)
    assert weighted == pytest.approx(np.average(single, weights=weight), abs=1e-14)
    # one loss for each sample, also for those of weight 0
    all_of_them = loss(y, (mean, std), sample_weight=weight, average=None)
    np.testing.assert_array_equal(all_of_them, single)
    frame = loss(pd.Series(y), (pd.Series(mean), pd.Series(std)), sample_weight=pd.Series(weight))
    assert frame == weighted
    as_single = loss(*(np.float32(y), (np.float32(mean), np.float32(std))))
    assert as_single == pytest.approx(single.mean(), rel=1e-5)


@every_loss
def test_units(loss):
    y, mean, std, _ = gaussian_case()
    before = loss(y, (mean, std))
    moved = loss(-3 * y + 7, (-3 * mean + 7, 3 * std))
    expected = before + np.log(3) if loss is negative_log_likelihood else 3 * before
    assert moved == pytest.approx(expected, rel=1e-12)


@every_loss
def test_the_truth_has_the_least_loss(loss):
    # on average over the truth N(0, 1), by quadrature over its outcomes
    y = norm.ppf((np.arange(2000) + 0.5) / 2000)
    best = loss(y, (np.zeros(2000), 1.0))
    for mean, std in [(0.2, 1.0), (-0.2, 1.0), (0.0, 1.3), (0.0, 0.8)]:
        assert loss(y, (np.full(2000, mean), std)) > best + 1e-3


def test_constant_forecasts_and_one_sample():
    assert continuous_ranked_probability_loss([3.0], EnsembleForecast([[1.0, 1.0]])) == 2
    assert interval_loss([3.0], EnsembleForecast([[1.0, 1.0]]), coverage=0.5) == pytest.approx(8)
    one = continuous_ranked_probability_loss([0.0], ([0.0], [1.0]))
    assert one == pytest.approx((np.sqrt(2) - 1) / np.sqrt(np.pi))


@pytest.mark.parametrize("thresholds", [None, (-50.0, 50.0)])
def test_kinks_at_the_median(thresholds):
    # E|X − z| − E|X − X'|/2 of a standard Laplace X
    z = np.array([-3.0, -0.2, 0.0, 1e-3, 0.7, 5.0])
    expected = np.abs(z) + np.exp(-np.abs(z)) - 0.75
    found = continuous_ranked_probability_loss(
        2 * z + 1, laplace(np.ones(6), 2.0), thresholds=thresholds, average=None
    )
    np.testing.assert_allclose(found, 2 * expected, rtol=1e-8)


def test_heavy_tails():
    # gamma(½) far out: F(y) is 1 in double precision
    y = np.array([60.0, 0.1])
    forecast = DistributionForecast(gamma([0.5, 0.5]))
    expected = [60 - 0.5 - 1 / np.pi]
    found = continuous_ranked_probability_loss(y, forecast, average=None)
    np.testing.assert_allclose(found[:1], expected, rtol=1e-7)


def test_interval_losses_next_to_the_largest_number():
    """20 misses of 1e307 are 2e308, above the largest number; of 1e306 they are not."""
    y, forecast = [-1e307, 1e306], ([0.0, 0.0], [1.0, 1.0])
    losses = interval_loss(y, forecast, coverage=0.9, average=None)
    np.testing.assert_allclose(losses, [np.inf, 2e307], rtol=1e-12)
    assert interval_loss(y, forecast, coverage=0.9) == np.inf


def test_sharpness():
    mean, std = np.zeros(3), np.array([1.0, 2.0, 6.0])
    found = sharpness((mean, std))
    assert found.std == 3
    assert found.entropy == pytest.approx(np.mean(norm.entropy(0, std)), abs=1e-14)
    np.testing.assert_array_equal(found.levels, [0.5, 0.8, 0.95])
    np.testing.assert_allclose(found.width, 6 * norm.ppf([0.75, 0.9, 0.975]))
    weighted = sharpness((mean, std), sample_weight=[1, 1, 0], levels=[0.9])
    assert weighted.std == 1.5
    np.testing.assert_allclose(weighted.width, [3 * norm.ppf(0.95)])
    with pytest.raises(ValueError, match=r"each of levels must be a number in \(0, 1\)"):
        sharpness((mean, std), levels=[0.0, 0.9])
    ensemble = sharpness(EnsembleForecast([[0.0, 2.0]]))
    assert ensemble.std == 1
    assert np.isnan(ensemble.entropy)
    grid = sharpness(QuantileForecast([[0.0, 1.0, 2.0, 5.0]], [0.1, 0.25, 0.75, 0.9]))
    np.testing.assert_allclose(grid.levels, [0.5, 0.8])
    np.testing.assert_allclose(grid.width, [1.0, 5.0])
    assert np.isnan(grid.std)
    with pytest.raises(ValueError, match="levels must be among"):
        sharpness(QuantileForecast([[0.0, 1.0]], [0.1, 0.9]), levels=[0.5])


@pytest.mark.parametrize("thresholds", [(1.0,), (2.0, 1.0), (0.0, 0.0), ("a", "b"), (0, np.nan)])
def test_bad_thresholds(thresholds):
    with pytest.raises(ValueError, match="thresholds must be two numbers, the lower one first"):
        continuous_ranked_probability_loss([0.0], ([0.0], [1.0]), thresholds=thresholds)


@every_loss
def test_bad_input(loss):
    call = ([0.0, 1.0], (np.zeros(2), 1.0))
    with pytest.raises(ValueError, match="'average' parameter"):
        loss(*call, average="macro")
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        loss(*call, sample_weight=[1, -1], average=None)
    with pytest.raises(ValueError, match="y_true must be finite"):
        loss([np.nan, 1.0], call[1])
    with pytest.raises((TypeError, ValueError), match="y_forecast must be a forecast"):
        loss(call[0], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="y_true"):
        loss([0.0], call[1])


def test_bad_levels():
    for level in (0, 1, 95):
        with pytest.raises(ValueError, match="'coverage' parameter"):
            interval_loss([0.0], ([0.0], [1.0]), coverage=level)
