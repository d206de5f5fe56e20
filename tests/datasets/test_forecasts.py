"""The simulated forecasts have the laws that their documentation says."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, norm

from skcalib.datasets import make_forecasts
from skcalib.metrics import quantile_calibration_error

N = 5_000

FORECASTERS = ("ideal", "climatological", "unfocused", "sign-reversed")

CALIBRATED = {
    "gaussian": {},
    "ideal": {"problem": "ideal"},
    "climatological": {"problem": "climatological"},
    "unfocused": {"problem": "unfocused"},
    "spatial": {"problem": "spatial"},
    "two waves": {"problem": "spatial", "n_waves": 2, "local_bias": 0.95},
    "ensemble": {"problem": "ensemble"},
    "two members": {"problem": "ensemble", "n_members": 2},
    "poisson": {"problem": "counts"},
    "negative binomial": {"problem": "counts", "overdispersion": 0.5},
    "zero-inflated": {"problem": "zero-inflated"},
}

MISCALIBRATED = {
    "too narrow": {"dispersion": 0.8},
    "too wide": {"dispersion": 1.25},
    "biased": {"bias": 0.3},
    "sign-reversed": {"problem": "sign-reversed"},
    "narrow ensemble": {"problem": "ensemble", "dispersion": 0.5},
    "biased ensemble": {"problem": "ensemble", "bias": 1},
    "too narrow counts": {"problem": "counts", "overdispersion": 0.5, "forecast_overdispersion": 0},
    "narrow zero-inflated": {"problem": "zero-inflated", "dispersion": 0.7},
    "biased zero-inflated": {"problem": "zero-inflated", "bias": 0.5},
}


def assert_follows(values, law):
    assert kstest(values, law).pvalue > 1e-3


@pytest.mark.parametrize("key", [*CALIBRATED, *MISCALIBRATED])
def test_pits_are_uniform_where_promised_and_nowhere_else(key):
    options = (CALIBRATED | MISCALIBRATED)[key] | {"random_state": 1}
    y, forecast, truth = make_forecasts(N, **options, return_true_forecast=True)
    assert y.shape == forecast.shape == (N,)
    assert y.dtype == np.float64
    assert_follows(truth.pit(y, random_state=1), "uniform")
    p_value = kstest(forecast.pit(y, random_state=1), "uniform").pvalue
    assert p_value > 1e-3 if key in CALIBRATED else p_value < 1e-6
    y, forecast = make_forecasts(5, **options)
    again, same = make_forecasts(5, **options)
    np.testing.assert_array_equal(y, again)
    np.testing.assert_array_equal(forecast.quantiles([0.3, 0.9]), same.quantiles([0.3, 0.9]))
    assert (y != make_forecasts(5, **options | {"random_state": 8})[0]).any()


@pytest.mark.parametrize(("dispersion", "bias"), [(1, 0), (0.5, 0), (2, -1)])
def test_standardised_errors(dispersion, bias):
    y, forecast, truth = make_forecasts(
        N, dispersion=dispersion, bias=bias, return_true_forecast=True, random_state=0
    )
    z = (y - forecast.mean()) / forecast.std()
    assert_follows(z, norm(-bias / dispersion, 1 / dispersion).cdf)
    np.testing.assert_allclose(forecast.std(), dispersion * truth.std(), rtol=1e-14)
    np.testing.assert_allclose(forecast.mean() - truth.mean(), bias * truth.std(), atol=1e-14)
    assert_follows(truth.mean(), "norm")
    assert_follows(np.log(truth.std()) / -math.log(4), "uniform")
    if bias == 0:
        expected = abs(1 / 4 - math.atan(dispersion) / math.pi)
        assert quantile_calibration_error(y, forecast) == pytest.approx(expected, abs=0.02)


def test_outcomes_do_not_depend_on_what_the_forecasts_do():
    for problem in ("gaussian", "ensemble", "zero-inflated"):
        expected = make_forecasts(50, problem=problem, random_state=3)[0]
        found = make_forecasts(50, problem=problem, dispersion=2, bias=1, random_state=3)[0]
        np.testing.assert_array_equal(found, expected)
    first, *others = (make_forecasts(50, problem=name, random_state=3)[0] for name in FORECASTERS)
    for other in others:
        np.testing.assert_array_equal(other, first)


@pytest.mark.parametrize(
    ("forecaster", "marginal", "given"),
    [
        ("ideal", True, True),
        ("climatological", True, True),
        ("unfocused", False, False),
        ("sign-reversed", True, False),
    ],
)
def test_kinds_of_calibration(forecaster, marginal, given):
    y, forecast = make_forecasts(N, problem=forecaster, random_state=0)
    # mean distribution of the forecasts at some points, against that of the outcomes, N(0, 2)
    points = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    mean = forecast.cdf(np.tile(points, (N, 1))).mean(axis=0)
    gap = np.abs(mean - norm.cdf(points, scale=math.sqrt(2))).max()
    assert (gap < 4 * 0.5 / math.sqrt(N)) == marginal
    # errors given the forecast: their mean where the forecast's mean is above 1, and where below −1
    error = y - forecast.mean()
    share = np.array([(error * (s * forecast.mean() > 1)).mean() for s in (-1, 1)])
    noise = 4 * error.std() / math.sqrt(N)
    assert (np.abs(share).max() < noise) == given


def test_places():
    beta, returned = 0.7, {"return_positions": True, "return_true_forecast": True}
    y, forecast, positions, truth = make_forecasts(
        N, problem="spatial", local_bias=beta, n_waves=2, **returned, random_state=0
    )
    assert positions.shape == (N, 2)
    for column in positions.T:
        assert_follows(column, "uniform")
    assert_follows((y - truth.mean()) / truth.std(), "norm")
    bias = (truth.mean() - forecast.mean()) / forecast.std()
    assert_follows(bias, norm(scale=beta).cdf)
    np.testing.assert_allclose(truth.std(), math.sqrt(1 - beta**2) * forecast.std(), rtol=1e-12)
    # up and down, twice: highest at 1/4 and 3/4 of the way
    wave = 1 - np.abs(1 - (4 * positions) % 2)
    np.testing.assert_allclose(bias, beta / math.sqrt(2) * norm.ppf(wave).sum(axis=1), atol=1e-8)
    # uniform given what the forecasts say
    wide = forecast.std() > 0.5
    assert_follows(forecast.pit(y)[wide], "uniform")
    assert make_forecasts(30, problem="spatial", local_bias=0)[1].shape == (30,)


@pytest.mark.parametrize("n_members", [2, 5])
def test_ranks_of_exchangeable_outcomes(n_members):
    y, ensemble = make_forecasts(N, problem="ensemble", n_members=n_members, random_state=0)
    assert ensemble.members.shape == (N, n_members)
    rank = (ensemble.members < y[:, None]).sum(axis=1)
    share = np.bincount(rank, minlength=n_members + 1) / N
    p = 1 / (n_members + 1)
    np.testing.assert_allclose(share, p, atol=4 * math.sqrt(p / N))


@pytest.mark.parametrize("alpha", [0, 0.5, 2])
def test_moments_of_counts(alpha):
    options = {"problem": "counts", "overdispersion": alpha, "random_state": 0}
    y, forecast = make_forecasts(1, **options)
    assert y.shape == (1,) == (len(forecast),)
    y, forecast = make_forecasts(N, **options)
    mean = forecast.mean()
    assert_follows(np.log10(mean), "uniform")
    np.testing.assert_allclose(forecast.std() ** 2, mean + alpha * mean**2, rtol=1e-10)
    z = (y - mean) / forecast.std()
    assert z.mean() == pytest.approx(0, abs=4 / math.sqrt(N))
    assert np.mean(z**2) == pytest.approx(1, abs=4 * np.std(z**2) / math.sqrt(N))
    assert (y == y.astype(int)).all()


def test_point_mass_at_zero():
    y, forecast = make_forecasts(200, problem="zero-inflated", random_state=0)
    lower, upper = forecast.pit_bounds(y)
    assert (lower[y == 0] == 0).all()
    np.testing.assert_allclose(upper[y == 0], forecast.cdf(0.0)[y == 0])
    np.testing.assert_allclose(lower[y > 0], upper[y > 0], rtol=0, atol=1e-9)
    one = forecast[:1]
    loc, scale = one.dist.loc[0], one.dist.scale[0]
    for power, expected in ((1, one.mean()[0]), (2, one.std()[0] ** 2 + one.mean()[0] ** 2)):
        found = quad(lambda t, k=power: t**k * norm.pdf(t, loc, scale), 0, loc + 12 * scale)[0]
        assert found == pytest.approx(expected, rel=1e-8)
    draws = forecast.sample(2000, random_state=0)
    zero = (draws == 0).mean(axis=1) - forecast.cdf(0.0)
    assert np.abs(zero).max() < 5 * 0.5 / math.sqrt(2000)


def test_bad_parameters():
    for problem, name, value in (
        ("gaussian", "dispersion", 0.0),
        ("gaussian", "bias", np.inf),
        ("honest", "problem", "honest"),
        ("spatial", "local_bias", 1.0),
        ("spatial", "n_waves", 0),
        ("ensemble", "n_members", 1),
        ("counts", "overdispersion", -1.0),
        ("zero-inflated", "n_samples", 0),
    ):
        with pytest.raises(ValueError, match=f"The '{name}' parameter"):
            make_forecasts(**{"problem": problem, name: value})
    for problem, name, value in (
        ("counts", "bias", 1.0),
        ("gaussian", "n_members", 5),
        ("ideal", "dispersion", 2.0),
        ("gaussian", "return_positions", True),
    ):
        with pytest.raises(ValueError, match=f"{name} must be left out for problem='{problem}'"):
            make_forecasts(**{"problem": problem, name: value})
