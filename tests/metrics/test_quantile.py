"""The quantile calibration error equals its definition, and its debiased form is unbiased."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, poisson

from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    QuantileForecast,
)
from skcalib.metrics import quantile_calibration_error

NORMS = ("l1", "l2", "max")


def gaussian_case(seed, n=30):
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), rng.uniform(0.5, 2, size=n)
    weight = None if seed % 2 else rng.choice([0.0, 0.5, 1.0, 3.0], size=n)
    return mean + 1.5 * std * rng.normal(size=n), GaussianForecast(mean, std), weight


def error_on_a_grid(u, weight, norm, level_type, n_levels):
    """The definition, at the middles of many intervals."""
    weight = np.ones(len(u)) if weight is None else weight
    u = np.abs(2 * u - 1) if level_type == "interval" else u
    p = (np.arange(n_levels) + 0.5) / n_levels
    gap = np.average(u[:, None] <= p, axis=0, weights=weight) - p
    return {"l1": np.abs(gap).mean(), "l2": np.sqrt(np.mean(gap**2)), "max": np.abs(gap).max()}[
        norm
    ]


@pytest.mark.parametrize("level_type", ["quantile", "interval"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_the_definition(seed, norm, level_type):
    y, forecast, weight = gaussian_case(seed)
    u = norm_cdf(y, forecast)
    exact = quantile_calibration_error(
        y, forecast, sample_weight=weight, norm=norm, level_type=level_type
    )
    expected = error_on_a_grid(u, weight, norm, level_type, 20000)
    assert exact == pytest.approx(expected, abs=1e-4)
    # the levels of the grid themselves, exactly
    p = (np.arange(50) + 0.5) / 50
    some = quantile_calibration_error(
        y, forecast, sample_weight=weight, norm=norm, level_type=level_type, levels=p
    )
    assert some == pytest.approx(error_on_a_grid(u, weight, norm, level_type, 50), abs=1e-14)


def norm_cdf(y, forecast):
    return norm.cdf(y, forecast.loc, forecast.scale)


def test_by_hand():
    # PITs ¼ and ¾
    y = norm.ppf([0.25, 0.75])
    forecast = ([0.0, 0.0], 1.0)
    assert quantile_calibration_error(y, forecast) == pytest.approx(1 / 8, abs=1e-15)
    square = quantile_calibration_error(y, forecast, norm="l2", squared=True)
    assert square == pytest.approx(1 / 48, abs=1e-15)
    assert quantile_calibration_error(y, forecast, norm="l2") == pytest.approx(48**-0.5)
    assert quantile_calibration_error(y, forecast, norm="max") == pytest.approx(1 / 4)
    # both at the edge of the central half
    error = quantile_calibration_error(y, forecast, level_type="interval", norm="max")
    assert error == pytest.approx(0.5, abs=1e-15)
    # own terms (u³ + (1 − u)³)/3 = 7/48, twice, with w² = ¼
    debiased = quantile_calibration_error(
        y, forecast, norm="l2", estimation="debiased", squared=True
    )
    assert debiased == pytest.approx((1 / 48 - 7 / 96) / (1 / 2), abs=1e-15)
    assert quantile_calibration_error(y, forecast, norm="l2", estimation="debiased") == 0


@pytest.mark.parametrize("levels", [None, [0.1, 0.5, 0.7]])
@pytest.mark.parametrize("level_type", ["quantile", "interval"])
def test_the_debiased_square_is_unbiased(level_type, levels):
    # all samples of three from a law of four PITs, which is not uniform; weights are unequal
    points = np.array([0.05, 0.3, 0.45, 0.8])
    probability = np.array([0.2, 0.3, 0.4, 0.1])
    weight = [1.0, 2.0, 4.0]
    options = {"norm": "l2", "squared": True, "level_type": level_type, "levels": levels}
    mean = 0.0
    for drawn in itertools.product(range(4), repeat=3):
        square = quantile_calibration_error(
            norm.ppf(points[list(drawn)]),
            (np.zeros(3), 1.0),
            sample_weight=weight,
            estimation="debiased",
            **options,
        )
        mean += probability[list(drawn)].prod() * square
    truth = quantile_calibration_error(
        norm.ppf(points), (np.zeros(4), 1.0), sample_weight=probability, **options
    )
    assert mean == pytest.approx(truth, abs=1e-14)


def test_the_debiased_square_of_atoms_is_unbiased():
    # counts from another law than forecast, all samples of two
    forecast, truth = DistributionForecast(poisson([2.0, 2.0])), poisson.pmf(np.arange(9), 1.0)
    truth = truth / truth.sum()
    mean = sum(
        truth[a]
        * truth[b]
        * quantile_calibration_error(
            [a, b], forecast, norm="l2", estimation="debiased", squared=True
        )
        for a, b in itertools.product(range(9), repeat=2)
    )
    expected = quantile_calibration_error(
        np.arange(9),
        DistributionForecast(poisson(np.full(9, 2.0))),
        sample_weight=truth,
        norm="l2",
        squared=True,
    )
    assert mean == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("level_type", ["quantile", "interval"])
def test_atoms_are_averaged_over_their_pits(level_type, norm):
    # an outcome for each rank among four members: every PIT interval once
    forecast = EnsembleForecast(np.tile([1.0, 2.0, 3.0, 4.0], (5, 1)))
    y = [0.5, 1.5, 2.5, 3.5, 4.5]
    error = quantile_calibration_error(y, forecast, norm=norm, level_type=level_type)
    assert error == pytest.approx(0, abs=1e-15)
    # counts with the weights that are forecast
    k = np.arange(40)
    error = quantile_calibration_error(
        k,
        DistributionForecast(poisson(np.full(40, 3.0))),
        sample_weight=poisson.pmf(k, 3.0),
        norm=norm,
        level_type=level_type,
    )
    assert error == pytest.approx(0, abs=1e-14)


def test_atoms_are_the_mean_of_randomised_pits():
    rng = np.random.default_rng(0)
    forecast = DistributionForecast(poisson(np.full(6, 1.5)))
    y = rng.poisson(1.5, size=6)
    lower, upper = forecast.pit_bounds(y)
    level = 0.37
    drawn = lower + rng.random((200_000, 6)) * (upper - lower)
    expected = abs((drawn <= level).mean() - level)
    error = quantile_calibration_error(y, forecast, levels=[level])
    assert error == pytest.approx(expected, abs=5 * 0.5 / np.sqrt(1.2e6))


def test_quantile_forecasts_are_measured_at_their_levels():
    rng = np.random.default_rng(1)
    levels = np.array([0.1, 0.25, 0.5, 0.9])
    values = np.sort(rng.normal(size=(50, 4)), axis=1)
    y = rng.normal(size=50)
    forecast = QuantileForecast(values, levels)
    gap = (y[:, None] <= values).mean(axis=0) - levels
    assert quantile_calibration_error(y, forecast) == pytest.approx(np.abs(gap).mean(), abs=1e-14)
    error = quantile_calibration_error(y, forecast, levels=[0.9, 0.1], norm="max")
    assert error == pytest.approx(np.abs(gap[[0, 3]]).max(), abs=1e-14)
    # only 0.1 and 0.9 are the ends of a central interval
    covered = ((y > values[:, 0]) & (y <= values[:, 3])).mean()
    for asked in (None, [0.8]):
        error = quantile_calibration_error(y, forecast, level_type="interval", levels=asked)
        assert error == pytest.approx(abs(covered - 0.8), abs=1e-14)


def test_levels_may_miss_by_rounding():
    # 0.7 − 0.3 is not 0.4
    forecast = QuantileForecast([[0.0, 1.0]], [0.3, 0.7])
    error = quantile_calibration_error([0.5], forecast, level_type="interval", levels=[0.4])
    assert error == pytest.approx(0.6, abs=1e-15)


def test_quantile_forecasts_know_no_other_levels():
    forecast = QuantileForecast([[0.0, 1.0]], [0.2, 0.5])
    with pytest.raises(ValueError, match=r"levels must be among .*\[0.2, 0.5\].* found 0.3"):
        quantile_calibration_error([0.5], forecast, levels=[0.3])
    with pytest.raises(ValueError, match="level_type='interval' needs quantiles at two levels"):
        quantile_calibration_error([0.5], forecast, level_type="interval")


@pytest.mark.parametrize("norm", NORMS)
def test_outcomes_far_outside_of_their_forecasts(norm):
    # PITs of 0 and 1 in double precision, tied
    y = np.array([40.0, 50.0, -40.0, -50.0])
    error = quantile_calibration_error(y, (np.zeros(4), 1.0), norm=norm)
    assert error == pytest.approx({"l1": 1 / 4, "l2": 12**-0.5, "max": 1 / 2}[norm], abs=1e-15)
    always = quantile_calibration_error(np.full(3, 1e6), (np.zeros(3), 1.0), norm=norm)
    assert always == pytest.approx({"l1": 1 / 2, "l2": 3**-0.5, "max": 1}[norm], abs=1e-15)


@pytest.mark.parametrize("norm", NORMS)
def test_laws(norm):
    y, forecast, weight = gaussian_case(0)
    mean, std = forecast.loc, forecast.scale

    def error(y, mean, std, weight):
        return quantile_calibration_error(y, (mean, std), sample_weight=weight, norm=norm)

    expected = error(y, mean, std, weight)
    order = np.random.default_rng(0).permutation(len(y))
    assert error(y[order], mean[order], std[order], weight[order]) == pytest.approx(
        expected, abs=1e-14
    )
    assert error(-3 * y + 7, -3 * mean + 7, 3 * std, weight) == pytest.approx(expected, abs=1e-13)
    used = weight > 0
    assert error(y[used], mean[used], std[used], 5 * weight[used]) == pytest.approx(
        expected, abs=1e-14
    )
    twice = np.repeat(np.arange(len(y)), (2 * weight).astype(int))
    assert error(y[twice], mean[twice], std[twice], None) == pytest.approx(expected, abs=1e-13)
    frame = error(pd.Series(y), pd.Series(mean), pd.Series(std), pd.Series(weight))
    assert frame == expected
    single = error(*(x.astype(np.float32) for x in (y, mean, std, weight)))
    assert single == pytest.approx(expected, abs=1e-5)
    scipy = quantile_calibration_error(y, norm_of(mean, std), sample_weight=weight, norm=norm)
    assert scipy == expected


def norm_of(mean, std):
    return norm(mean, std)


def test_constant_forecasts_and_one_sample():
    # the PIT 1 − Φ(1) or so of a single outcome
    u = norm.cdf(1.0)
    error = quantile_calibration_error([1.0], ([0.0], [1.0]))
    assert error == pytest.approx((u**2 + (1 - u) ** 2) / 2, abs=1e-15)
    with pytest.raises(ValueError, match="estimation='debiased' needs at least 2 samples; found 1"):
        quantile_calibration_error([1.0], ([0.0], [1.0]), norm="l2", estimation="debiased")
    with pytest.raises(ValueError, match="estimation='debiased' needs at least 2 samples; found 1"):
        quantile_calibration_error(
            [1.0, 2.0], ([0.0, 0.0], 1.0), sample_weight=[1, 0], norm="l2", estimation="debiased"
        )


def test_bad_options():
    call = ([0.0, 1.0], ([0.0, 0.0], 1.0))
    with pytest.raises(ValueError, match=r"estimation='debiased' needs norm='l2'.*found norm='l1'"):
        quantile_calibration_error(*call, estimation="debiased")
    with pytest.raises(ValueError, match=r"squared=True needs norm='l2'.*found norm='max'"):
        quantile_calibration_error(*call, norm="max", squared=True)
    with pytest.raises(ValueError, match="levels must lie in \\[0, 1\\]; found 5"):
        quantile_calibration_error(*call, levels=[0.5, 5])
    with pytest.raises(ValueError, match="levels must be 1-D"):
        quantile_calibration_error(*call, levels=[[0.5]])
    with pytest.raises(ValueError, match="levels must not be empty"):
        quantile_calibration_error(*call, levels=[])
    with pytest.raises(ValueError, match="'level_type' parameter"):
        quantile_calibration_error(*call, level_type="tail")
    with pytest.raises((TypeError, ValueError), match="y_forecast must be a forecast"):
        quantile_calibration_error([0.0, 1.0], np.zeros((2, 2)))


def test_folded_intervals_that_end_alike_are_different_laws():
    # the PITs of [0.2, 0.6] and of [0.2, 0.4] both reach from 0.2 or less to 0.6 if folded:
    # those of the first are denser, and reach down to 0
    members = EnsembleForecast([[0.0, 1.0, 2.0, 2.0], [0.0, 2.0, 2.0, 2.0]])
    y, weight = np.array([1.0, 1.0]), np.array([1.0, 3.0])
    options = {"level_type": "interval", "norm": "l2"}
    together = quantile_calibration_error(y, members, sample_weight=weight, **options)
    swapped = quantile_calibration_error(y, members[[1, 0]], sample_weight=weight[::-1], **options)
    level = (np.arange(200_000) + 0.5) / 200_000
    first = np.where(level < 0.2, 2.5 * level, np.minimum(0.5 + 1.25 * (level - 0.2), 1.0))
    second = np.clip((level - 0.2) / 0.4, 0.0, 1.0)
    gap = 0.25 * first + 0.75 * second - level
    assert together == pytest.approx(np.sqrt(np.mean(gap**2)), rel=1e-6)
    assert swapped == pytest.approx(together, rel=1e-12)
