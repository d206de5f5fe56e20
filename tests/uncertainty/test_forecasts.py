"""Intervals around metrics of forecasts, and the comparison of two forecasts."""

import numpy as np
import pytest
from joblib import parallel_config
from oracles import change_without_groups, student_by_hand
from scipy import stats
from sklearn.base import clone

from skcalib import metrics
from skcalib._data import check_forecasts
from skcalib.forecasts import EnsembleForecast, GaussianForecast, QuantileForecast, as_forecast
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import distribution_matching_error
from skcalib.metrics._terms import MetricTerms
from skcalib.uncertainty import compare_models, confidence_interval
from skcalib.uncertainty._limits import ScoreLimits, StudentLimits
from skcalib.uncertainty._units import Units

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
        "ensemble": EnsembleForecast(members),
        "weighted": EnsembleForecast(members, np.arange(1, 6)),
    }


NODES = (np.arange(20) + 0.5) / 20  # the levels of the outcomes that stand for all


@pytest.mark.parametrize("forecast", kinds().values(), ids=kinds())
def test_interval_of_a_loss_is_the_hull_of_both_kinds_of_limits(forecast):
    _, y, _ = problem()
    losses = metrics.continuous_ranked_probability_loss(y, forecast, average=None)
    interval = confidence_interval(CRPS, y, forecast, confidence_level=0.9)
    changes = change_without_groups(losses, np.ones(60), np.arange(60))
    student = StudentLimits(*student_by_hand(losses.mean(), changes, 60)).ends(0.05)
    forecast = as_forecast(forecast)
    if forecast.is_exchangeable:  # the outcome may have been any of the members
        values = np.sort(np.column_stack([forecast.members, y]), axis=1)
        every = []
        for k in range(values.shape[1]):
            others = EnsembleForecast(np.delete(values, k, axis=1))
            every.append(
                metrics.continuous_ranked_probability_loss(values[:, k], others, average=None)
            )
    else:
        every = [
            metrics.continuous_ranked_probability_loss(nodes, forecast, average=None)
            for nodes in forecast.quantiles(NODES).T
        ]
    possible = np.column_stack(every)
    data = check_forecasts(y, forecast)
    terms = MetricTerms(data.weight, losses, possible, np.full(possible.shape, 1 / len(every)))
    score = ScoreLimits(terms, Units(data)).ends(0.05)
    assert interval.estimate == pytest.approx(losses.mean(), rel=1e-12)
    expected = min(student[0], score[0]), max(student[1], score[1])
    assert [*interval] == pytest.approx(expected, rel=1e-9)


def test_quantile_forecasts_have_no_tails_and_the_limits_of_student_alone():
    forecast, y, _ = problem()
    few = QuantileForecast(forecast.quantiles(LEVELS), LEVELS)
    losses = metrics.continuous_ranked_probability_loss(y, few, average=None)
    changes = change_without_groups(losses, np.ones(60), np.arange(60))
    student = StudentLimits(*student_by_hand(losses.mean(), changes, 60))
    assert [*confidence_interval(CRPS, y, few)] == pytest.approx(student.ends(0.025), rel=1e-9)


def test_losses_over_other_levels_are_not_compared():
    forecast, y, _ = problem()
    few, more = (QuantileForecast(forecast.quantiles(some), some) for some in (LEVELS, [0.1, 0.9]))
    for pair in ((forecast, few), (few, forecast), (few, more)):
        with pytest.raises(ValueError, match=r"of the same levels .* metric_params={'levels'"):
            compare_models(CRPS, y, *pair)
    same = compare_models(CRPS, y, forecast, few, metric_params={"levels": LEVELS})
    assert same.difference == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("forecast", kinds().values(), ids=kinds())
def test_comparison_of_losses_has_paired_differences(forecast):
    other, y, _ = problem()
    other = GaussianForecast(other.mean() + 0.3, 0.8)
    result = compare_models(CRPS, y, forecast, other)
    a = metrics.continuous_ranked_probability_loss(y, forecast, average=None)
    b = metrics.continuous_ranked_probability_loss(y, other, average=None)
    changes = change_without_groups(a - b, np.ones(60), np.arange(60))
    student = StudentLimits(*student_by_hand(np.mean(a - b), changes, 60))
    assert result.difference == pytest.approx(np.mean(a - b), rel=1e-9)
    assert result.p_value == pytest.approx(2 * min(student.tails(0.0)), rel=1e-9)
    assert [*result] == pytest.approx(student.ends(0.025), rel=1e-9)
    assert result.p_value == pytest.approx(stats.ttest_rel(a, b).pvalue, abs=0.01)


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
    params = params | {"estimation": "debiased"}
    interval = confidence_interval(name, y, forecast, given=given, metric_params=params, **FAST)
    assert interval.estimate == interval.low == 0
    assert interval.high > 0.02


def test_difference_of_clipped_roots_varies():
    rng = np.random.default_rng(0)
    y, std = rng.normal(0.05, size=300), np.ones(300)
    a, b = ((np.full(300, mean), std) for mean in (0.0, 0.01))
    params = {"norm": "l2", "estimation": "debiased"}
    result = compare_models("quantile_calibration_error", y, a, b, metric_params=params, **FAST)
    assert result.estimate_a == result.estimate_b == result.difference == 0
    assert result.low < -0.002 < 0.002 < result.high


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
    assert set(seen) == {40, 39}  # all, and without one
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
