"""Censored and logistic forecasts against SciPy, quadrature and loops over draws."""

import itertools
import pickle

import numpy as np
import pytest
from scipy import integrate, stats

from skcalib.decisions import DecisionLoss
from skcalib.forecasts import (
    CensoredForecast,
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    GaussianMixtureForecast,
    LogisticForecast,
)
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import continuous_ranked_probability_loss, negative_log_likelihood
from skcalib.recalibration import LocationScaleRecalibrator, PITRecalibrator

RNG = np.random.default_rng(0)
N = 6
LOCATION, SCALE = RNG.normal(size=N), RNG.uniform(0.3, 2.0, size=N)
LOWER = np.array([0.1, -30.0, 0.0, 2.0, 0.5, LOCATION[5]])  # one is never reached
Y = LOWER + np.array([0.0, 29.0, 1.0, 0.2, -0.7, 3.0])
LAWS = {
    "normal": (GaussianForecast(LOCATION, SCALE), stats.norm, 1e-11),
    "logistic": (LogisticForecast(LOCATION, SCALE), stats.logistic, 1e-11),
    "mixture": (GaussianMixtureForecast(LOCATION[:, None], SCALE[:, None]), stats.norm, 1e-11),
    "SciPy": (DistributionForecast(stats.logistic(LOCATION, SCALE)), stats.logistic, 1e-7),
}
WINDOWS = [(-np.inf, np.inf), (-0.3, 1.1), (0.7, np.inf), (-np.inf, -1.0)]

all_laws = pytest.mark.parametrize("name", LAWS)


def cdf_of(name, row):
    law = LAWS[name][1](LOCATION[row], SCALE[row])
    return lambda t: law.cdf(t) if t >= LOWER[row] else 0.0


@all_laws
@pytest.mark.parametrize("window", WINDOWS)
def test_crps_is_the_integral(name, window):
    base, _, accuracy = LAWS[name]
    forecast = CensoredForecast(base, LOWER)
    thresholds = None if np.isinf(window).all() else window
    score = continuous_ranked_probability_loss(Y, forecast, thresholds=thresholds, average=None)
    for row in range(N):
        cdf, kinks = cdf_of(name, row), [LOWER[row], Y[row], LOCATION[row]]
        low, high = max(window[0], min(kinks) - 60), min(window[1], max(kinks) + 60)
        ends = np.clip([low, *np.sort(kinks), high], low, high)
        expected = sum(
            integrate.quad(
                lambda t, cdf=cdf, y=Y[row]: (cdf(t) - (y <= t)) ** 2,
                *piece,
                epsabs=1e-13,
                limit=200,
            )[0]
            for piece in itertools.pairwise(ends)
        )
        assert score[row] == pytest.approx(expected, abs=accuracy)


@all_laws
def test_functions(name):
    base, family, _ = LAWS[name]
    forecast, law = CensoredForecast(base, LOWER), family(LOCATION, SCALE)
    is_below, is_at = Y < LOWER, Y == LOWER
    np.testing.assert_allclose(forecast.cdf(Y), np.where(is_below, 0, law.cdf(Y)), rtol=1e-12)
    np.testing.assert_allclose(forecast.sf(Y), np.where(is_below, 1, law.sf(Y)), rtol=1e-12)
    density = np.where(is_at, law.logcdf(Y), law.logpdf(Y))
    expected = np.where(is_below, -np.inf, density)
    np.testing.assert_allclose(forecast.logpdf(Y), expected, rtol=1e-12)
    for level in (0.0, 0.01, 0.5, 0.99):
        np.testing.assert_allclose(forecast.ppf(level), np.maximum(law.ppf(level), LOWER))
    lower, upper = forecast.pit_bounds(Y)
    np.testing.assert_array_equal(lower, np.where(Y <= LOWER, 0, upper))
    np.testing.assert_allclose(upper, forecast.cdf(Y))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(forecast)).cdf(Y), forecast.cdf(Y))
    np.testing.assert_allclose(
        forecast[[3, 0]].crps(Y[[3, 0]]), forecast.crps(Y)[[3, 0]], rtol=1e-14
    )


@all_laws
def test_moments_and_expected_losses_are_integrals(name):
    forecast, family = CensoredForecast(LAWS[name][0], LOWER), LAWS[name][1]

    def above(action, t):  # a loss with a jump: 1 for outcomes above 0.6, less for others
        return np.where(action == 0, t > 0.6, np.abs(t - 0.6))

    losses = DecisionLoss(above, actions=[0, 1], breakpoints=[0.6]).expected_of(forecast)
    mean, std = forecast.mean(), forecast.std()
    for row in range(N):
        law = family(LOCATION[row], SCALE[row])

        def expect(function, law=law, low=LOWER[row]):
            points = sorted({low, max(low, 0.6), max(low, law.mean())})
            pieces = itertools.pairwise([*points, max(points) + 40 * law.std()])
            inner = sum(
                integrate.quad(lambda t: function(t) * law.pdf(t), *ends, epsabs=1e-13)[0]
                for ends in pieces
            )
            return inner + function(low) * law.cdf(low)

        first = expect(lambda t: t)
        assert mean[row] == pytest.approx(first, abs=1e-6)
        variance = expect(lambda t, first=first: (t - first) ** 2)
        assert std[row] == pytest.approx(np.sqrt(variance), abs=1e-4)
        assert losses[row, 0] == pytest.approx(expect(lambda t: t > 0.6), abs=1e-9)
        assert losses[row, 1] == pytest.approx(expect(lambda t: abs(t - 0.6)), abs=1e-6)


def test_logistic_is_scipys():
    forecast, law = LogisticForecast(LOCATION, SCALE), stats.logistic(LOCATION, SCALE)
    y = LOCATION + SCALE * np.array([-800, -30, -1, 0, 2, 700])
    for name in ("cdf", "sf", "logcdf", "logsf", "logpdf"):
        np.testing.assert_allclose(getattr(forecast, name)(y), getattr(law, name)(y), rtol=1e-12)
    np.testing.assert_allclose(forecast.pit_log_odds(y), [-800, -30, -1, 0, 2, 700], rtol=1e-12)
    for name in ("mean", "std", "entropy"):
        np.testing.assert_allclose(getattr(forecast, name)(), getattr(law, name)(), rtol=1e-12)
    np.testing.assert_allclose(forecast.ppf(0.07), law.ppf(0.07), rtol=1e-12)


def test_a_bound_that_is_never_reached_changes_nothing():
    base, y = GaussianForecast(LOCATION, SCALE), LOCATION + 1
    forecast = CensoredForecast(base, -1e6)
    for name in ("cdf", "logsf", "logpdf", "crps"):
        np.testing.assert_allclose(getattr(forecast, name)(y), getattr(base, name)(y), rtol=1e-9)


def test_all_below_the_bound_is_a_certain_forecast():
    forecast = CensoredForecast(([0.0, 0.0], [1.0, 1e-3]), 50.0)
    np.testing.assert_allclose(forecast.crps([50.0, 47.0]), [0.0, 3.0], atol=1e-12)
    np.testing.assert_allclose(forecast.mean(), 50.0, rtol=1e-12)
    assert (forecast.std() < 1e-6).all()
    np.testing.assert_allclose(forecast.interval(0.9), 50.0)


def test_transforms_at_the_bound_are_uniform_below_its_probability():
    forecast = CensoredForecast((np.zeros(4000), 1.0))
    y = forecast.sample(random_state=1)
    assert (y == 0).mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(4000))
    u = forecast.pit(y, random_state=2)
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    assert stats.kstest(u[y == 0], stats.uniform(0, 0.5).cdf).pvalue > 1e-3


def test_recalibration_keeps_the_mass():
    rng = np.random.default_rng(3)
    mean = rng.normal(size=400)
    y = np.maximum(mean + 2 * rng.normal(size=400), 0)
    forecast = CensoredForecast((mean, 1.0))
    by_level = PITRecalibrator("beta").fit(forecast, y).transform(forecast)
    moved = LocationScaleRecalibrator(scale_only=True).fit(forecast, y).transform(forecast)
    for recalibrated in (by_level, moved):
        assert isinstance(recalibrated, CensoredForecast)
        assert recalibrated.crps(y).mean() < forecast.crps(y).mean()
    np.testing.assert_array_equal(by_level.lower, 0.0)
    assert negative_log_likelihood(y, by_level) < negative_log_likelihood(y, forecast)


def test_the_test_has_its_level():
    rng = np.random.default_rng(4)
    p_values = []
    for _ in range(200):
        forecast = CensoredForecast((rng.normal(size=30), 1.0))
        y = forecast.sample(random_state=rng.integers(2**31))
        test = CalibrationTest("quantile_calibration_error", n_resamples=19, random_state=0)
        p_values.append(test.fit(forecast, y).p_value_)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 200)


@pytest.mark.parametrize(
    ("forecast", "lower", "match"),
    [
        (EnsembleForecast([[1.0, 2.0]]), 0, r"must be continuous.*EnsembleForecast\(np\.maximum"),
        (([0.0, 1.0], 1.0), [0.0, 1.0, 2.0], r"each of the 2 forecasts; found shape \(3,\)"),
        (([0.0, 1.0], 1.0), np.nan, "lower must be finite"),
        (([0.0, 1.0], 1.0), "zero", "lower must hold numbers"),
    ],
)
def test_bad_input(forecast, lower, match):
    with pytest.raises(ValueError, match=match):
        CensoredForecast(forecast, lower)


def test_impossible_outcomes():
    forecast = CensoredForecast((np.zeros(3), 1.0))
    with pytest.raises(ValueError, match=r"found -0\.5 in row 1, whose forecast reaches from 0 to"):
        negative_log_likelihood([0, -0.5, 1], forecast)
    with pytest.raises(ValueError, match="scale must be positive"):
        LogisticForecast([0.0], [-1.0])
