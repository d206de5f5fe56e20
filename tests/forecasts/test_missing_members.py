"""A row of an ensemble with missing members is the same row in an ensemble of its own size."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skcalib._data import check_forecasts
from skcalib.decisions import DecisionLoss, bayes_action, expected_loss
from skcalib.forecasts import EnsembleForecast, concatenate
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import (
    continuous_ranked_probability_loss,
    distribution_matching_error,
    interval_loss,
    pit_histogram,
    quantile_calibration_error,
)
from skcalib.recalibration import LocationScaleRecalibrator, PITRecalibrator
from skcalib.report._forecasts import _interval_probability, standardized_errors
from skcalib.uncertainty import compare_models, confidence_interval

N, S = 60, 7
RNG = np.random.default_rng(0)


def make_ragged(n, size, rng, dtype=float):
    """Members and outcomes of one law in each row, a third of the members missing; with ties."""
    values = (rng.normal(size=(n, size + 1)) + rng.normal(size=(n, 1))).round(1)
    is_missing = rng.random((n, size)) < 1 / 3
    is_missing[:, :2] = False
    return values[:, 0], np.where(is_missing, np.nan, values[:, 1:])


Y, MEMBERS = make_ragged(N, S, RNG)
WEIGHTS = RNG.random((N, S))
RAGGED = {
    "members": (EnsembleForecast(MEMBERS), None),
    "weighted": (EnsembleForecast(MEMBERS, WEIGHTS), WEIGHTS),
}


def alone(row, weights):
    """The forecast of a row, in an ensemble of its own size."""
    is_there = ~np.isnan(MEMBERS[row])
    weight = None if weights is None else weights[row, is_there]
    return EnsembleForecast(MEMBERS[None, row, is_there], weight)


def squares(y):
    return np.column_stack([(y - action) ** 2 for action in (-1, 0, 1)])


LEVELS = [0.0, 0.1, 1 / 3, 0.5, 0.75, 1.0]
METHODS = {
    "cdf": lambda forecast, y: forecast.cdf(y),
    "logcdf": lambda forecast, y: forecast.logcdf(y + 0.05),
    "sf": lambda forecast, y: forecast.sf(y),
    "quantiles": lambda forecast, y: forecast.quantiles(LEVELS),
    "ppf of cdf": lambda forecast, y: forecast.ppf(forecast.cdf(y)),
    "mean": lambda forecast, y: forecast.mean(),
    "std": lambda forecast, y: forecast.std(),
    "bounds": lambda forecast, y: np.transpose(forecast.pit_bounds(y)),
    "crps": lambda forecast, y: forecast.crps(y),
    "crps with slope": lambda forecast, y: np.transpose(forecast._make_crps_with_slope()(y)),
    "crps between": lambda forecast, y: continuous_ranked_probability_loss(
        y, forecast, thresholds=(-0.5, 1), average=None
    ),
    "interval loss": lambda forecast, y: interval_loss(y, forecast, average=None),
    "weighted interval score": lambda forecast, y: continuous_ranked_probability_loss(
        y, forecast, levels=[0.1, 0.5, 0.9], level_weights="equal", average=None
    ),
    "expected loss": lambda forecast, y: expected_loss(forecast, loss=DecisionLoss(squares)),
    "best action": lambda forecast, y: bayes_action(forecast, loss=DecisionLoss(squares)),
    "moved": lambda forecast, y: _SCALED.transform(forecast).quantiles(LEVELS),
    "moved crps": lambda forecast, y: _SCALED.transform(forecast).crps(y),
    "remapped": lambda forecast, y: _REMAPPED.transform(forecast).crps(y),
    "remapped cdf": lambda forecast, y: _REMAPPED.transform(forecast).cdf(y),
    "joined": lambda forecast, y: concatenate([EnsembleForecast([[0, 1, 2]]), forecast])[1:].crps(
        y
    ),
}
FAIR = {
    "fair": lambda forecast, y: forecast.crps(y, estimation="fair"),
    "fair between": lambda forecast, y: continuous_ranked_probability_loss(
        y, forecast, thresholds=(-0.5, 1), estimation="fair", average=None
    ),
}
WHOLE = EnsembleForecast(RNG.normal(size=(40, 5)))
_SCALED = LocationScaleRecalibrator().fit(WHOLE, 2 * RNG.normal(size=40) + 1)
_REMAPPED = PITRecalibrator(method="beta").fit(WHOLE, 2 * RNG.normal(size=40))


@pytest.mark.parametrize("kind", RAGGED)
@pytest.mark.parametrize("name", METHODS | FAIR)
def test_rows_are_as_alone(kind, name):
    forecast, weights = RAGGED[kind]
    if weights is not None and (name in FAIR or name == "joined"):
        return
    method = (METHODS | FAIR)[name]
    expected = np.concatenate([method(alone(i, weights), Y[[i]]) for i in range(20)])
    assert_allclose(method(forecast, Y)[:20], expected, rtol=1e-12, atol=1e-12)
    backwards = np.arange(20)[::-1]
    assert_allclose(method(forecast[backwards], Y[backwards])[::-1], expected, 1e-12, 1e-12)


def test_published_fair_score():
    # github.com/google-research/weatherbench2, issue 302: of the members 1 and 3 at 2 it is 0
    forecast = EnsembleForecast([[1, 3, np.nan], [0, 1, 2]])
    assert_allclose(forecast.crps([2, 1], estimation="fair"), [0, 2 / 3 - 2 / 3], atol=1e-15)
    assert_allclose(forecast.crps([2, 1]), [1 - 0.5, 2 / 3 - 4 / 9])
    assert_allclose(forecast.pit_bounds([2, 5]), [[1 / 3, 3 / 4], [2 / 3, 1]])


def test_missing_columns_change_nothing():
    # a further member that is missing in all rows, also in what is drawn
    whole = EnsembleForecast(np.nan_to_num(MEMBERS))
    wide = EnsembleForecast(np.column_stack([np.full(N, np.nan), np.nan_to_num(MEMBERS)]))
    matching = [distribution_matching_error(Y, forecast) for forecast in (whole, wide)]
    assert matching[0] == pytest.approx(matching[1], rel=1e-9)
    error = [quantile_calibration_error(Y, forecast) for forecast in (whole, wide)]
    assert error[0] == pytest.approx(error[1], rel=1e-12)
    z = [standardized_errors(check_forecasts(Y, forecast)) for forecast in (whole, wide)]
    assert_allclose(*z, rtol=1e-12)


def test_reports_expect_what_rows_expect_alone():
    def probability(forecast, y):
        data = check_forecasts(y, forecast)
        return _interval_probability(data, 0.5, forecast.interval(0.5))

    expected = [probability(alone(i, None), Y[[i]])[0] for i in range(N)]
    assert_allclose(probability(EnsembleForecast(MEMBERS), Y), expected, rtol=1e-12)
    # (s + 1) / (s - 1) times the variance of the members, on average
    y, members = make_ragged(20_000, 3, np.random.default_rng(3))
    z = standardized_errors(check_forecasts(y, EnsembleForecast(members)))
    assert np.mean(z**2) == pytest.approx(1, abs=0.04)


def test_pickles_and_copies_stay_ragged():
    forecast = RAGGED["members"][0]
    copy = pickle.loads(pickle.dumps(forecast))
    assert_array_equal(copy.crps(Y), forecast.crps(Y))
    assert copy.is_exchangeable
    assert_array_equal(copy[[2, 0]].members, MEMBERS[[2, 0]])


def test_rank_histograms_are_flat():
    y, members = make_ragged(20_000, S, np.random.default_rng(1))
    histogram = pit_histogram(y, EnsembleForecast(members), confidence_level=None)
    assert len(histogram.density) == S + 1
    assert_allclose(histogram.density, 1, atol=0.06)
    u = EnsembleForecast(members).pit(y, random_state=0)
    assert stats.kstest(u, "uniform").pvalue > 0.01


@pytest.mark.parametrize("statistic", ["quantile_calibration_error", "distribution_matching_error"])
def test_tests_are_exact(statistic):
    rng = np.random.default_rng(2)
    test = CalibrationTest(statistic, n_resamples=9, random_state=0)
    p_values = []
    for _ in range(50):
        y, members = make_ragged(6, 4, rng)
        p_values.append(test.fit(EnsembleForecast(members), y).p_value_)
    # uniform on 0.1, 0.2 to 1 but for ties
    assert np.mean(np.array(p_values) <= 0.2) == pytest.approx(0.2, abs=4 * 0.057)
    assert np.mean(p_values) == pytest.approx(0.55, abs=4 * 0.041)
    y, members = make_ragged(60, 4, rng)
    assert test.fit(EnsembleForecast(members), 5 * y).p_value_ == 0.1


def test_intervals_and_skill():
    forecast = RAGGED["members"][0]
    low, high = confidence_interval("continuous_ranked_probability_loss", Y, forecast)
    assert low < continuous_ranked_probability_loss(Y, forecast) < high
    reference = EnsembleForecast(np.broadcast_to(np.sort(Y), (N, N)))
    result = compare_models("continuous_ranked_probability_loss", Y, forecast, reference)
    expected = 1 - forecast.crps(Y).mean() / reference.crps(Y).mean()
    assert result.skill_score == pytest.approx(expected, rel=1e-12)
