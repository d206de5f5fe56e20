"""Intervals around metrics of forecasts, and the comparison of two forecasts."""

import numpy as np
import pytest
from joblib import parallel_config
from scipy import stats
from sklearn.base import clone

from skcalib import metrics
from skcalib.forecasts import EnsembleForecast, GaussianForecast, QuantileForecast
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import distribution_matching_error
from skcalib.metrics._registry import FORECAST_METRICS
from skcalib.uncertainty import compare_models, confidence_interval

FAST = {"n_resamples": 39, "random_state": 0}
CRPS = "continuous_ranked_probability_loss"
LEVELS = [0.1, 0.5, 0.9]


def problem(n=60, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))
    return GaussianForecast(mean, std), rng.normal(mean + shift, std), rng.normal(size=(n, 2))


def kinds():
    forecast, _, _ = problem()
    members = forecast.sample(5, random_state=0)
    return {
        "normal": forecast,
        "pair": (forecast.mean(), forecast.std()),
        "scipy": stats.logistic(forecast.mean()),
        "quantiles": QuantileForecast(forecast.quantiles(LEVELS), LEVELS),
        "ensemble": EnsembleForecast(members),
        "weighted": EnsembleForecast(members, np.arange(1, 6)),
    }


@pytest.mark.parametrize("forecast", kinds().values(), ids=kinds())
def test_intervals_equal_those_of_the_values_of_samples(forecast):
    _, y, _ = problem()
    values = metrics.continuous_ranked_probability_loss(y, forecast, average=None)
    interval = confidence_interval(CRPS, y, forecast, confidence_level=0.9)
    # with 60 groups of one sample the jackknife of a mean is its standard error
    expected = stats.t.interval(0.9, 59, values.mean(), stats.sem(values))
    assert interval.estimate == pytest.approx(values.mean(), rel=1e-12)
    assert (interval.low, interval.high) == pytest.approx(expected, rel=1e-9)


def test_losses_over_other_levels_are_not_compared():
    forecast, y, _ = problem()
    few, more = (QuantileForecast(forecast.quantiles(some), some) for some in (LEVELS, [0.1, 0.9]))
    for pair in ((forecast, few), (few, forecast), (few, more)):
        with pytest.raises(ValueError, match=r"of the same levels .* metric_params={'levels'"):
            compare_models(CRPS, y, *pair)
    same = compare_models(CRPS, y, forecast, few, metric_params={"levels": LEVELS})
    assert same.difference == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("forecast", kinds().values(), ids=kinds())
def test_comparison_of_losses_is_a_paired_t_test(forecast):
    other, y, _ = problem()
    other = GaussianForecast(other.mean() + 0.3, 0.8)
    if isinstance(forecast, QuantileForecast):
        other = QuantileForecast(other.quantiles(LEVELS), LEVELS)
    result = compare_models(CRPS, y, forecast, other)
    a = metrics.continuous_ranked_probability_loss(y, forecast, average=None)
    b = metrics.continuous_ranked_probability_loss(y, other, average=None)
    expected = stats.ttest_rel(a, b)
    assert result.difference == pytest.approx(np.mean(a - b), rel=1e-9)
    assert result.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    ends = expected.confidence_interval(0.95)
    assert (result.low, result.high) == pytest.approx(tuple(ends), rel=1e-9)


def test_interval_of_a_clipped_root_equals_loops():
    rng = np.random.default_rng(0)
    y, forecast = rng.normal(0.05, size=300), (np.zeros(300), np.ones(300))
    params = {"norm": "l2", "debias": True}
    values = []

    def square(y_true, y_forecast):
        error = metrics.quantile_calibration_error(y_true, y_forecast, squared=True, **params)
        values.append(error)
        return error

    confidence_interval(square, y, forecast, **FAST)
    whole, parts, ratio = values[0], np.array(values[101:]), np.ceil(3 * np.sqrt(300)) / 300
    noise = ratio * np.sqrt(np.mean((parts - np.mean(parts)) ** 2))
    deviation = np.sqrt(99 * np.var(values[1:101]))
    margin = stats.t.isf(0.025, 99) * np.hypot(deviation, noise)
    pivots = (whole - ratio * parts) / (1 - ratio)
    interval = confidence_interval(
        "quantile_calibration_error", y, forecast, metric_params=params, **FAST
    )
    assert whole < 0
    assert interval.estimate == interval.low == 0
    assert interval.high == pytest.approx(np.sqrt(max(whole + margin, max(pivots))), abs=1e-12)
    assert interval.high > 0.0152  # the true error; with clipped roots the upper end was 0


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("quantile_calibration_error", {"norm": "l2"}),
        ("local_calibration_error", {"bandwidth": 5.0, "average": "mean"}),
        ("local_calibration_error", {"bandwidth": 5.0, "average": "root-mean-square"}),
    ],
)
def test_debiased_errors_of_forecasts_vary_where_they_are_clipped(name, params):
    forecast, y, X = problem(60)
    given = X if name.startswith("local") else None
    params = params | {"debias": True}
    interval = confidence_interval(name, y, forecast, given=given, metric_params=params, **FAST)
    assert interval.estimate == interval.low == 0
    assert interval.high > 0.02


def test_difference_of_clipped_roots_varies():
    rng = np.random.default_rng(0)
    y, std = rng.normal(0.05, size=300), np.ones(300)
    a, b = ((np.full(300, mean), std) for mean in (0.0, 0.01))
    params = {"norm": "l2", "debias": True}
    result = compare_models(
        "quantile_calibration_error", y, a, b, metric_params=params, method="jackknife", **FAST
    )
    assert result.estimate_a == result.estimate_b == result.difference == 0
    assert result.low < -0.002 < 0.002 < result.high  # both ends were 0


@pytest.mark.parametrize("name", FORECAST_METRICS)
def test_every_metric_has_an_interval_and_a_comparison(name):
    forecast, y, X = problem(20)
    metric = FORECAST_METRICS[name].function
    given = X if name == "local_calibration_error" else None
    options = {} if given is None else {"given": X}
    interval = confidence_interval(name, y, forecast, given=given, **FAST)
    assert interval.estimate == metric(y, forecast, **options)
    assert interval.low <= max(interval.estimate, 0) <= interval.high
    result = compare_models(name, y, forecast, GaussianForecast(y + 3, 0.5), given=given, **FAST)
    assert result.difference < 0
    assert result.p_value < 0.06


def test_only_means_may_have_intervals_below_zero():
    forecast, y, _ = problem()
    sharp = GaussianForecast(y, 1e-3 * np.exp(forecast.mean()))
    interval = confidence_interval("negative_log_likelihood", y, sharp)
    assert interval.low < interval.estimate < interval.high < 0
    assert confidence_interval("quantile_calibration_error", y, forecast, **FAST).low == 0


def test_given_is_taken_by_the_rows_that_are():
    forecast, y, _ = problem()
    group, weight = np.arange(60) % 3, np.ones(60)
    weight[:20] = 0
    seen = []

    def metric(y_true, y_forecast, *, given, sample_weight):
        np.testing.assert_allclose(given[:, 0], y_forecast.mean() + 1)
        seen.append(len(given))
        return float(np.average(y_true - given[:, 0], weights=sample_weight))

    given = np.column_stack([forecast.mean() + 1, group])
    interval = confidence_interval(metric, y, forecast, sample_weight=weight, given=given, **FAST)
    rest = confidence_interval(
        metric, y[20:], forecast[20:], sample_weight=weight[20:], given=given[20:], **FAST
    )
    assert interval == rest
    assert set(seen) == {40, 39, 19}  # all, without one, and subsamples
    params = {"calibration": "group"}
    by_group = confidence_interval(
        distribution_matching_error, y, forecast, given=group, metric_params=params, **FAST
    )
    assert by_group.estimate == distribution_matching_error(y, forecast, given=group, **params)


def test_given_of_classes():
    rng = np.random.default_rng(0)
    proba, group = rng.random(40), np.array(["a", "b"])[np.arange(40) % 2]
    y = rng.random(40) < proba
    params = {"calibration": "group"}
    expected = distribution_matching_error(y, proba, given=group, **params)

    options = {"given": group, "metric_params": params, **FAST}
    assert (
        confidence_interval(distribution_matching_error, y, proba, **options).estimate == expected
    )
    test = CalibrationTest(
        "distribution_matching_error", metric_params=params, n_resamples=9, random_state=0
    )
    assert test.fit(proba, y, given=group).statistic_ == expected
    order = rng.permutation(40)
    again = clone(test).fit(proba[order], y[order], given=group[order])
    np.testing.assert_allclose(again.null_distribution_, test.null_distribution_, atol=1e-12)


@pytest.mark.parametrize("metric", [CRPS, "quantile_calibration_error"])
def test_weights_and_jobs(metric):
    forecast, y, _ = problem()
    weight = np.random.default_rng(0).random(60)
    one = confidence_interval(metric, y, forecast, sample_weight=weight, **FAST)
    assert one.estimate == pytest.approx(
        getattr(metrics, metric)(y, forecast, sample_weight=weight), rel=1e-12
    )
    with parallel_config("threading"):
        assert one == confidence_interval(
            metric, y, forecast, sample_weight=weight, n_jobs=2, **FAST
        )


BAD = {
    "metric of classes": (
        {"metric": "smooth_calibration_error"},
        "metric must be a metric of fore",
    ),
    "given as a param": (
        {"metric_params": {"given": [1.0]}},
        "metric_params must not hold .*given",
    ),
    "nothing given": ({"metric": "local_calibration_error"}, "given must hold what local_calibra"),
    "not conditioned": ({"given": np.ones(60)}, "given must be None unless the metric has"),
    "labels": ({"labels": [0, 1]}, "labels must be None for forecasts"),
    "radius": ({"method": "finite-sample"}, "metric must be one with a known radius"),
    "length": ({"y_true": np.ones(59)}, "y_true must be 1-D, with one outcome for each of the 60"),
    "values": ({"metric": lambda y, forecast: forecast.crps(y)}, "metric must return one number"),
    "classes": ({"y_pred": np.full(60, 0.5), "y_true": np.arange(60) % 2}, "a metric of classes"),
}


@pytest.mark.parametrize(("changed", "match"), BAD.values(), ids=BAD)
def test_bad_input(changed, match):
    forecast, y, _ = problem()
    given = {"metric": "quantile_calibration_error", "y_true": y, "y_pred": forecast}
    with pytest.raises(ValueError, match=match):
        confidence_interval(**(given | changed), n_resamples=5)


def test_forecasts_are_compared_with_forecasts():
    forecast, y, _ = problem()
    with pytest.raises(ValueError, match="y_pred_a and y_pred_b must be of the same kind"):
        compare_models(CRPS, y, forecast, np.full(60, 0.5))
    with pytest.raises(ValueError, match="each of the 59 forecasts"):
        compare_models(CRPS, y, forecast, forecast[:59])


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_coverage_of_the_quantile_calibration_error(shift):
    # u = Φ(z + shift), so the gap at the level p is Φ(Φ⁻¹(p) − shift) − p
    level = (np.arange(10_000) + 0.5) / 10_000
    truth = np.mean(np.abs(stats.norm.cdf(stats.norm.ppf(level) - shift) - level))
    covered = []
    for seed in range(200):
        forecast, y, _ = problem(200, seed, shift)
        interval = confidence_interval(
            "quantile_calibration_error", y, forecast, confidence_level=0.9, **FAST
        )
        covered.append(interval.low <= truth <= interval.high)
    assert np.mean(covered) > 0.9 - 4 * np.sqrt(0.09 / 200)
