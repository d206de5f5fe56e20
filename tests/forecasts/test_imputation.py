"""Imputed outcomes, against the conditional laws of SciPy's distributions, and in tests."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skcalib.forecasts import (
    CensoredForecast,
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    GaussianMixtureForecast,
    LogisticForecast,
    QuantileForecast,
    ResidualForecast,
    concatenate,
    impute_censored,
)
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.recalibration import LocationScaleRecalibrator, PITRecalibrator

N = 4000
RNG = np.random.default_rng(0)
X = RNG.normal(size=N)
SPREAD = np.exp(X / 3)
NORMAL = GaussianForecast(X, SPREAD)
GRID = np.linspace(-3, 3, 41)
FORECASTS = {
    "normal": NORMAL,
    "logistic": LogisticForecast(X, SPREAD),
    "mixture": GaussianMixtureForecast(X[:, None] + [0, 2], np.ones((N, 2)), [0.3, 0.7]),
    "censored": CensoredForecast(NORMAL, 0),
    "weibull": stats.weibull_min(1.3, scale=SPREAD),
    "counts": stats.poisson(SPREAD * 3),
    "members": EnsembleForecast(X[:, None] + GRID, stats.norm.pdf(GRID)),
    "residuals": ResidualForecast(X, GRID),
    "affine": LocationScaleRecalibrator().fit(NORMAL, X + 2 * SPREAD * RNG.normal(size=N)),
    "remapped": PITRecalibrator(method="beta").fit(NORMAL, X + 2 * SPREAD * RNG.normal(size=N)),
    "two kinds": concatenate([NORMAL[: N // 2], LogisticForecast(X[: N // 2], 1.0)]),
}


@pytest.mark.parametrize("name", FORECASTS)
def test_imputed_outcomes_have_the_law_of_the_forecast(name):
    # whatever follow-up depends on: here on the forecast, and on the feature
    forecast = FORECASTS[name]
    forecast = forecast.transform(NORMAL) if hasattr(forecast, "fit") else forecast
    forecast = DistributionForecast(forecast) if hasattr(forecast, "dist") else forecast
    outcome = forecast.sample(random_state=1)
    end = forecast.ppf(np.full(N, 0.7)) - np.abs(X) * np.random.default_rng(2).random(N)
    time, event = np.minimum(outcome, end), outcome <= end
    y = impute_censored(forecast, time, event, random_state=3)
    assert 0.2 < event.mean() < 0.9
    assert (y[event] == outcome[event]).all()
    assert (y[~event] > time[~event]).all()
    u = forecast.pit(y, random_state=4)
    assert stats.kstest(u, "uniform").pvalue > 0.01
    for feature in (X, end, np.abs(X)):
        assert stats.spearmanr(feature, u).pvalue > 0.001


def test_draws_are_right_far_out_in_the_tail():
    # beyond 40 standard deviations the excess of a normal variable is exponential, of mean 1/40
    n = 2000
    y = impute_censored(GaussianForecast(np.zeros(n), 1.0), np.full(n, 40.0), np.zeros(n), 0)
    assert (y > 40).all()
    excess = stats.norm.logsf(40) - stats.norm.logsf(y)
    assert stats.kstest(excess, "expon").pvalue > 0.01
    assert np.mean(y - 40) == pytest.approx(1 / 40, rel=0.1)


def weibull_data(rng, n, by_feature):
    x = rng.normal(size=n)
    scale = np.exp(-x / 2)
    outcome = scale * rng.weibull(1.3, size=n)
    end = rng.exponential(np.exp(-0.8 * x)) if by_feature else rng.uniform(0, 2, size=n)
    return x, scale, np.minimum(outcome, end), outcome <= end


@pytest.mark.parametrize("by_feature", [False, True])
def test_size_and_power_under_censoring(by_feature):
    rng = np.random.default_rng(0)
    x, scale, time, event = weibull_data(rng, 200 * 50, by_feature)
    forecast = stats.weibull_min(1.3, scale=scale)
    u = forecast.cdf(impute_censored(forecast, time, event, 1)).reshape(200, 50)
    p_values = stats.kstest(u, "uniform", axis=1).pvalue
    assert np.mean(p_values <= 0.05) == pytest.approx(0.05, abs=4 * 0.0154)
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    x, _, time, event = weibull_data(rng, 250, by_feature)
    wrong = stats.weibull_min(1.3, scale=np.exp(-1.2 * x))  # a slope of 1.2 for 0.5
    y = impute_censored(wrong, time, event, 0)
    params = {"calibration": "local"}
    test = CalibrationTest(
        "distribution_matching_error", metric_params=params, n_resamples=99, random_state=0
    )
    assert test.fit(wrong, y, given=x[:, None]).p_value_ == 0.01


def test_without_censoring_nothing_is_drawn():
    y = impute_censored(([0.0, 1.0], [1.0, 1.0]), [0.5, 0.7], [True, True])
    assert y.tolist() == [0.5, 0.7]


@pytest.mark.parametrize(
    ("forecast", "time", "event", "message"),
    [
        (([0.0], 1.0), [1.0], [2], r"event must hold True where.*found \[2"),
        (([0.0], 1.0), [1.0], [pd.NA], "event must hold True where.*found"),
        (([0.0], 1.0), [1.0], [1, 0], "for each time; found.*of shape"),
        (([0.0], 1.0), [1.0, 2.0], [1, 0], "time must be 1-D"),
        (([0.0], 1.0), [np.nan], [1], "time must be finite"),
        (EnsembleForecast([[1.0, 2.0]]), [0.0], [0], "members without weights"),
        (QuantileForecast([[1.0, 2.0]], [0.1, 0.9]), [0.0], [0], "found quantiles"),
        (EnsembleForecast([[1, 2]], [1, 1]), [2.0], [0], r"none after 2 in row 0\. Use a"),
        (stats.uniform(np.zeros(2), 1.0), [0.5, 3.0], [0, 0], "none after 3 in row 1"),
    ],
)
def test_refused(forecast, time, event, message):
    with pytest.raises(ValueError, match=message):
        impute_censored(forecast, time, event)
