"""CalibrationTest of forecasts: exact p-values, what a swap changes, weak hypotheses, size."""

import pickle
from functools import partial
from itertools import product

import numpy as np
import pytest
from joblib import parallel_config
from scipy import stats
from sklearn.base import clone

from skcalib import metrics
from skcalib._data import check_forecasts
from skcalib._statistics.omnibus_forecasts import ForecastOmnibus
from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    GaussianMixtureForecast,
    QuantileForecast,
    ResidualForecast,
)
from skcalib.hypothesis_tests import (
    CalibrationTest,
    CoxTest,
    RatingGradeTest,
    SpiegelhalterTest,
    UCMETest,
)
from skcalib.metrics import continuous_ranked_probability_loss, smooth_calibration_error
from skcalib.metrics._statistic import make_statistic
from skcalib.report import calibration_report
from skcalib.uncertainty import confidence_interval

LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9]


def normal(rng, n):
    mean, std = rng.normal(size=n), np.exp(0.5 * rng.normal(size=n))
    return GaussianForecast(mean, std), rng.normal(mean, std)


def mixture(rng, n):
    mean, std = rng.normal(size=(n, 2)), rng.uniform(0.3, 1, size=(n, 2))
    chosen = (rng.random(n) < 0.7).astype(int)
    rows = np.arange(n), chosen
    return GaussianMixtureForecast(mean, std, [0.3, 0.7]), rng.normal(mean[rows], std[rows])


def gamma(rng, n):
    shape = np.exp(rng.normal(size=n))
    return DistributionForecast(stats.gamma(shape, scale=2.0)), 2 * rng.gamma(shape)


def poisson(rng, n):
    mean = np.exp(rng.normal(size=n))
    return DistributionForecast(stats.poisson(mean)), rng.poisson(mean).astype(float)


def grid(rng, n):
    forecast, y = normal(rng, n)
    return QuantileForecast(forecast.quantiles(LEVELS), LEVELS), y


def residuals(rng, n):
    location, pool = rng.normal(size=n), rng.normal(size=30)
    return ResidualForecast(location, pool), location + rng.choice(pool, size=n)


def ensemble(rng, n, size=5):
    mean, std = rng.normal(size=(n, 1)), np.exp(0.5 * rng.normal(size=(n, 1)))
    values = rng.normal(mean, std, size=(n, size + 1))
    return EnsembleForecast(values[:, 1:]), values[:, 0]


def weighted_ensemble(rng, n):
    members, weights = rng.normal(size=(n, 4)), rng.dirichlet(np.ones(4), size=n)
    chosen = [rng.choice(row, p=weight) for row, weight in zip(members, weights, strict=True)]
    return EnsembleForecast(members, weights), np.array(chosen)


DRAWN = {
    "normal": normal,
    "mixture": mixture,
    "gamma": gamma,
    "poisson": poisson,
    "grid": grid,
    "residuals": residuals,
    "weighted ensemble": weighted_ensemble,
}
SWAPPED = {
    "2 members": partial(ensemble, size=2),
    "5 members": ensemble,
    "50 members": partial(ensemble, size=50),
}
CALIBRATED = DRAWN | SWAPPED


def scaled_crps(y_true, y_forecast):
    """A callable, whose scale follows the outcomes it gets."""
    return float(np.mean(y_forecast.crps(y_true)) / (1 + np.ptp(y_true)))


def options_of(statistic, **params):
    return {"statistic": statistic, "metric_params": params or None}


STATISTICS = {
    "omnibus": options_of("omnibus"),
    "skce": options_of("skce"),
    "skce, biased": {"statistic": "skce", "estimation": "biased"},
    "skce, energy": {"statistic": "skce", "kernel": "energy"},
    "skce, laplacian": {"statistic": "skce", "kernel": "laplacian"},
    "skce, fixed": {"statistic": "skce", "bandwidth": 0.7},
    "skce, wasserstein": options_of("skce", given_kernel="wasserstein"),
    "skce, marginal": options_of("skce", calibration="marginal"),
    "skce, threshold": options_of("skce", calibration="threshold"),
    "skce, decision": options_of("skce", calibration="decision", loss=[0.0, 0.5]),
    "skce, quantile": options_of("skce", calibration="quantile"),
    "quantile": options_of("quantile_calibration_error"),
    "quantile, l2": options_of("quantile_calibration_error", norm="l2"),
    "quantile, max": options_of("quantile_calibration_error", norm="max"),
    "crps": options_of("continuous_ranked_probability_loss"),
    "callable": options_of(scaled_crps),
}
GIVEN_STATISTICS = {
    "omnibus, given": options_of("omnibus"),
    "individual": options_of("skce", calibration="individual"),
    "local": options_of("skce", calibration="local"),
    "group": options_of("skce", calibration="group"),
    "given": options_of("skce", calibration="distribution"),
    "local error": options_of("local_calibration_error"),
}
ALL_STATISTICS = STATISTICS | GIVEN_STATISTICS


def evaluator(options, forecast, y, given=None):
    """The statistic that a test of these data uses, on vectors of outcomes."""
    test = CalibrationTest(**options)
    name, params = test._resolve_statistic()
    return make_statistic(
        name,
        check_forecasts(y, forecast, given=given),
        params,
        as_matrix=False,
        weighted=False,
        n_resamples=99,
        random_state=None,
    )


# The draws


@pytest.mark.parametrize("options", ALL_STATISTICS.values(), ids=ALL_STATISTICS)
@pytest.mark.parametrize("kind", [normal, grid, weighted_ensemble])
def test_null_distribution_does_not_depend_on_the_outcomes_seen(kind, options):
    # a bandwidth held at the median distance of the outcomes seen would show
    rng = np.random.default_rng(0)
    forecast, y = kind(rng, 6)
    given = (
        {"given": np.array([0.0, 1, 0, 1, 0, 1])} if options in GIVEN_STATISTICS.values() else {}
    )
    draws = forecast._simulate(rng, 5)
    expected = evaluator(options, forecast, y, **given)(draws)
    other = evaluator(options, forecast, draws[0], **given)(draws)
    np.testing.assert_allclose(other, expected, rtol=0, atol=1e-9)
    seen = evaluator(options, forecast, y, **given)(y[None])
    np.testing.assert_allclose(evaluator(options, forecast, draws[1], **given)(y[None]), seen)


@pytest.mark.parametrize(
    ("name", "n", "size"),
    [*((name, 2, 2) for name in ALL_STATISTICS), ("skce", 2, 3), ("quantile", 2, 3)],
)
def test_every_swap_has_the_same_null_distribution(name, n, size):
    # All assignments of the pooled values are equally likely if outcomes are exchangeable with
    # members. The test is exact if they share one null distribution, so that the rank of the
    # statistic in it is uniform. It fails if a bandwidth, a kernel on the forecasts or the
    # forecast itself does not take part in the swap.
    rng, options = np.random.default_rng(0), ALL_STATISTICS[name]
    pooled, given = rng.normal(size=(n, size + 1)), rng.integers(2, size=n).astype(float)
    given = {"given": given} if name in GIVEN_STATISTICS else {}
    places = np.array(list(product(range(size + 1), repeat=n)))
    observed, null = [], []
    for place in places:
        y = pooled[np.arange(n), place]
        members = np.array([np.delete(row, k) for row, k in zip(pooled, place, strict=True)])
        statistic = evaluator(options, EnsembleForecast(members), y, **given)
        values = statistic(places)
        observed.append(values[0])  # the first assignment leaves everything in place
        null.append(np.sort(values, axis=0))
    np.testing.assert_allclose(null, np.broadcast_to(null[0], np.shape(null)), atol=1e-12)
    np.testing.assert_allclose(np.sort(observed, axis=0), null[0], atol=1e-12)


def exact_p_value(values, probabilities):
    """P(T* ≥ T) of the first value, from the values of all outcomes."""
    return probabilities[values >= values[0] - 1e-12].sum()


def close_to(p_value, expected, n_resamples):
    return abs(p_value - expected) < 4 * np.sqrt(expected / n_resamples) + 1 / n_resamples


@pytest.mark.parametrize("statistic", ["skce", "quantile_calibration_error", scaled_crps])
def test_p_value_of_swaps_approaches_the_exact_one(statistic):
    forecast, y = ensemble(np.random.default_rng(1), 4, 2)
    places = np.array(list(product(range(3), repeat=4)))
    values = evaluator({"statistic": statistic}, forecast, y)(places)
    expected = exact_p_value(values, np.full(81, 1 / 81))
    test = CalibrationTest(statistic, n_resamples=699, random_state=0).fit(forecast, y)
    assert close_to(test.p_value_, expected, 699)
    assert set(np.round(test.null_distribution_, 10)) == set(np.round(values, 10))


@pytest.mark.parametrize(
    ("kind", "statistic"), [("weighted ensemble", "skce"), ("discrete", scaled_crps)]
)
def test_p_value_of_draws_approaches_the_exact_one(kind, statistic):
    proba = np.array([0.1, 0.4, 0.5, 0.8, 0.7])
    if kind == "discrete":
        values, forecast = np.tile([0.0, 1.0], (5, 1)), DistributionForecast(stats.bernoulli(proba))
    else:
        values = np.column_stack([np.zeros(5), np.arange(1.0, 6)])
        forecast = EnsembleForecast(values, np.column_stack([1 - proba, proba]))
    chosen = np.array(list(product(range(2), repeat=5)))
    chosen = chosen[np.argsort((chosen != [0, 0, 0, 1, 0]).sum(axis=1), kind="stable")]
    outcomes = values[np.arange(5), chosen]
    weight = np.prod(np.where(chosen, proba, 1 - proba), axis=1)
    expected = exact_p_value(
        evaluator({"statistic": statistic}, forecast, outcomes[0])(outcomes), weight
    )
    test = CalibrationTest(statistic, n_resamples=699, random_state=0)
    assert 0.05 < expected < 0.95
    assert close_to(test.fit(forecast, outcomes[0]).p_value_, expected, 699)


def test_statistics_that_see_into_cells_are_refused():
    forecast, y = grid(np.random.default_rng(0), 9)
    for statistic in ("continuous_ranked_probability_loss", scaled_crps):
        with pytest.raises(ValueError, match="statistic must depend on nothing but the cells"):
            CalibrationTest(statistic, n_resamples=5).fit(forecast, y)
    y[:5] = forecast.values[np.arange(5), np.arange(5)]  # at quantiles
    for statistic in ("skce", "quantile_calibration_error"):
        assert CalibrationTest(statistic, n_resamples=5, random_state=0).fit(forecast, y).p_value_


def test_p_value_of_draws_from_cells_approaches_the_exact_one():
    forecast = QuantileForecast(np.tile([-1.0, 0.0, 2.0], (3, 1)), [0.2, 0.5, 0.9])
    cells, share = np.array([-2.0, -0.5, 1.0, 3.0]), np.array([0.2, 0.3, 0.4, 0.1])
    chosen = np.array(list(product(range(4), repeat=3)))
    chosen = chosen[np.argsort((chosen != [3, 2, 3]).sum(axis=1), kind="stable")]
    values = evaluator(options_of("quantile_calibration_error"), forecast, cells[chosen[0]])
    expected = exact_p_value(values(cells[chosen]), np.prod(share[chosen], axis=1))
    test = CalibrationTest("quantile_calibration_error", n_resamples=699, random_state=0)
    assert close_to(test.fit(forecast, cells[chosen[0]]).p_value_, expected, 699)


@pytest.mark.parametrize("kind", ["normal", "mixture", "gamma", "residuals"])
def test_p_value_of_a_single_outcome_is_its_survival_function(kind):
    forecast, y = CALIBRATED[kind](np.random.default_rng(3), 1)
    test = CalibrationTest(lambda y, forecast: y[0], n_resamples=699, random_state=0)
    expected = 1 - forecast.pit_bounds(y)[0][0]
    assert close_to(test.fit(forecast, y).p_value_, expected, 699)


# The statistic


@pytest.mark.parametrize("kind", [*DRAWN.values(), ensemble], ids=[*DRAWN, "5 members"])
@pytest.mark.parametrize(
    "options",
    [
        STATISTICS["skce"],
        STATISTICS["skce, energy"],
        STATISTICS["skce, threshold"],
        STATISTICS["quantile, l2"],
        STATISTICS["crps"],
    ],
    ids=str,
)
def test_statistic_is_the_metric(kind, options):
    rng = np.random.default_rng(0)
    forecast, y = kind(rng, 12)
    name, params = options["statistic"], options.get("metric_params") or {}
    if kind is grid and name == "continuous_ranked_probability_loss":
        return  # which it refuses
    metric = getattr(metrics, "distribution_matching_error" if name == "skce" else name)
    chosen = {k: v for k, v in options.items() if k == "kernel"} | params
    test = CalibrationTest(**options, n_resamples=3, random_state=0).fit(forecast, y)
    assert test.statistic_ == pytest.approx(metric(y, forecast, **chosen), rel=1e-9, abs=1e-12)
    weight = rng.random(12)
    weight[:3] = 0
    test.fit(forecast, y, sample_weight=weight)
    expected = metric(y, forecast, sample_weight=weight, **chosen)
    assert test.statistic_ == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", ["normal", "grid", "weighted ensemble", "5 members"])
@pytest.mark.parametrize("estimation", ["unbiased", "biased"])
def test_batches_equal_the_metric_of_each_draw(kind, estimation):
    rng = np.random.default_rng(0)
    forecast, y = CALIBRATED[kind](rng, 12)
    data = check_forecasts(y, forecast)
    draws = data.simulate_outcomes(rng, 6)
    statistic = evaluator({"statistic": "skce", "estimation": estimation}, forecast, y)
    one_by_one = [
        metrics.distribution_matching_error(one.value, one.forecast, estimation=estimation)
        for one in map(data.with_outcome, draws)
    ]
    np.testing.assert_allclose(statistic(draws), one_by_one, rtol=1e-9, atol=1e-12)


def test_skce_is_given_the_forecast_and_rbf():
    forecast, y = normal(np.random.default_rng(0), 30)
    test = CalibrationTest("skce", n_resamples=3, random_state=0).fit(forecast, y)
    expected = metrics.distribution_matching_error(
        y, forecast, calibration="distribution", kernel="rbf", given_kernel="rbf"
    )
    assert test.statistic_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", [name for name in GIVEN_STATISTICS if "omnibus" not in name])
def test_given_reaches_the_statistic(name):
    options = GIVEN_STATISTICS[name]
    rng = np.random.default_rng(0)
    forecast, y = normal(rng, 30)
    given, weight = rng.integers(3, size=(30, 1)).astype(float), rng.random(30)
    given = given[:, 0] if options["metric_params"] == {"calibration": "group"} else given
    weight[::4] = 0
    test = CalibrationTest(**options, n_resamples=9, random_state=0)
    test.fit(forecast, y, sample_weight=weight, given=given)
    name = (
        "distribution_matching_error"
        if options["statistic"] == "skce"
        else "local_calibration_error"
    )
    expected = getattr(metrics, name)(
        y, forecast, sample_weight=weight, given=given, **(options["metric_params"] or {})
    )
    assert test.statistic_ == pytest.approx(expected, rel=1e-9)
    assert 0 < test.p_value_ <= 1


# The omnibus


def bias_and_spread_by_loops(lower, upper, points, weight):
    """The largest squared score, with normal scores by quadrature over the intervals of PITs."""
    node, share = np.polynomial.legendre.leggauss(200)
    largest = 0.0
    for column in [np.ones(len(weight)), *points.T]:
        moments = [(lambda z: z, 1.0), (lambda z: z**2 - 1, 2.0)]
        if np.ptp(column) == 0:  # of all samples alone
            moments.append((lambda z: z**3 - 3 * z, 6.0))
        for score, variance in moments:
            total = norm = 0.0
            for i, w in enumerate(weight):
                u = lower[i] + (upper[i] - lower[i]) * (node + 1) / 2
                total += w * column[i] * (share / 2) @ score(stats.norm.ppf(u))
                norm += variance * (w * column[i]) ** 2
            largest = max(largest, total**2 / norm)
    return largest


@pytest.mark.parametrize("kind", CALIBRATED.values(), ids=CALIBRATED)
@pytest.mark.parametrize("weighted", [False, True])
def test_components_of_the_omnibus_equal_metrics_and_loops(kind, weighted):
    rng = np.random.default_rng(0)
    forecast, y = kind(rng, 25)
    weight = rng.random(25) if weighted else None
    data = check_forecasts(y, forecast, sample_weight=weight)
    statistic = ForecastOmnibus(data)
    found = dict(zip(statistic.components, statistic(data.outcome[None])[0], strict=True))
    error = metrics.distribution_matching_error
    assert found["skce"] == pytest.approx(error(y, forecast, sample_weight=weight), rel=1e-9)
    points = statistic.components["pit"].data.given
    local = error(y, forecast, sample_weight=weight, calibration="local", given=points)
    assert found["pit"] == pytest.approx(local, rel=1e-9)
    np.testing.assert_allclose(data.weight @ points, 0, atol=1e-9)
    bounds = forecast.pit_bounds(y)
    expected = bias_and_spread_by_loops(*bounds, points, data.weight)
    # quadrature is coarse where a normal score is infinite
    assert found["bias_and_spread"] == pytest.approx(expected, rel=0.03)
    signs = rng.choice([-1.0, 1.0], size=(3, 25))
    same = np.ones((1, 25))
    values = statistic.flip_signs(np.concatenate([same, -signs, signs]))
    assert values[0, 2] == pytest.approx(found["bias_and_spread"])
    np.testing.assert_allclose(values[1:4], values[4:], rtol=1e-9)


SHARP = {
    "narrow": lambda rng, x: 2.0 * rng.normal(size=200),
    "wide": lambda rng, x: 0.5 * rng.normal(size=200),
    "t3": lambda rng, x: rng.standard_t(3, size=200) / np.sqrt(3),
    "skewed": lambda rng, x: rng.exponential(size=200) - 1,
    "width off with the mean": lambda rng, x: rng.normal(size=200) * np.where(x > 0, 1.6, 0.6),
}


@pytest.mark.parametrize("name", SHARP)
@pytest.mark.parametrize("grouped", [False, True])
def test_what_is_wrong_with_sharp_forecasts_is_found(name, grouped):
    # the matching error alone finds none of these
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = 10 * x + SHARP[name](rng, x)
    groups = np.arange(200) // 2 if grouped else None
    test = CalibrationTest(n_resamples=199, random_state=0)
    test.fit(GaussianForecast(10 * x, 1.0), y, groups=groups)
    assert test.p_value_ <= 0.05
    assert test.component_p_values_["skce"] > 0.05


def test_skewed_errors_are_found_by_the_third_moment():
    # rejected at .05 in about .97 of the samples, and without the third moment in .16
    rng = np.random.default_rng(0)
    p_values = []
    for seed in range(8):
        x, error = rng.normal(size=150), rng.gamma(2, size=150)
        test = CalibrationTest(n_resamples=99, random_state=seed)
        test.fit(GaussianForecast(30 * x, 1.0), 30 * x + (error - 2) / np.sqrt(2))
        p_values.append(test.component_p_values_["bias_and_spread"])
    assert np.sum(np.array(p_values) <= 0.05) >= 7


@pytest.mark.parametrize("as_text", [False, True])
def test_groups_that_are_given_show_widths_that_cancel(as_text):
    rng = np.random.default_rng(0)
    mean, group = 10 * rng.normal(size=200), rng.integers(2, size=200)
    y = mean + rng.normal(size=200) * np.where(group, 1.5, 0.65)
    forecast, given = GaussianForecast(mean, 1.0), group.astype(str if as_text else float)
    test = CalibrationTest(n_resamples=199, random_state=0).fit(forecast, y, given=given)
    assert test.adjusted_p_values_["bias_and_spread"] <= 0.05
    assert test.component_p_values_["skce"] > 0.05


def test_mixtures_that_are_skewed_the_other_way_are_found():
    # a mean and a standard deviation do not tell them apart, so the matching error sees nothing
    rng = np.random.default_rng(0)
    mean, side = rng.normal(size=200), rng.choice([-1.0, 1.0], 200)
    location = mean[:, None] + side[:, None] * np.array([-0.5, 2.0])
    forecast = GaussianMixtureForecast(location, 0.5, [0.8, 0.2])
    right = rng.random(200) < 0.2
    y = mean - side * (np.where(right, 2.0, -0.5) + 0.5 * rng.normal(size=200))
    test = CalibrationTest(n_resamples=199, random_state=0).fit(forecast, y)
    assert test.p_value_ == 0.005
    assert test.component_p_values_["skce"] > 0.05


def test_omnibus_of_few_or_equal_forecasts_and_of_those_without_moments():
    y = np.array([0.1, -0.3, 40.0])
    test = CalibrationTest(n_resamples=19, random_state=0)
    for n, forecast in (
        (1, GaussianForecast([0.0], 1.0)),
        (3, GaussianForecast(np.zeros(3), 1.0)),
        (3, DistributionForecast(stats.cauchy(np.zeros(3)))),
        (3, DistributionForecast(stats.cauchy([0.0, 1.0, 2.0]))),
    ):
        assert 0 < test.fit(forecast, y[:n]).p_value_ <= 1
        assert ("skce" in test.component_p_values_) == (type(forecast) is GaussianForecast)
    with pytest.raises(
        ValueError, match=r"'omnibus' of forecasts has no options; found 'calibration'"
    ):
        CalibrationTest("omnibus", metric_params={"calibration": "group"}).fit(forecast, y)


def test_callables_get_outcomes_forecasts_and_what_is_given():
    seen = []

    def statistic(y_true, y_forecast, *, given, sample_weight):
        seen.append((y_true.dtype, type(y_forecast), len(y_forecast), given.shape))
        np.testing.assert_allclose(sample_weight, np.arange(1, 9) / 36)
        return float(given[:, 0] @ y_true)

    forecast, y = normal(np.random.default_rng(0), 9)
    test = CalibrationTest(statistic, n_resamples=5, random_state=0)
    test.fit(forecast, y, sample_weight=np.arange(9) / 2, given=np.ones((9, 2)))
    assert set(seen) == {(np.dtype(float), GaussianForecast, 8, (8, 2))}
    assert test.statistic_ == pytest.approx(y[1:].sum())


def test_callables_of_ensembles_get_what_the_swap_makes_of_them():
    forecast, y = ensemble(np.random.default_rng(0), 6, 3)
    pooled = np.sort(np.column_stack([y, forecast.members]), axis=1)
    outcomes = []

    def statistic(y_true, y_forecast):
        values = np.column_stack([y_true, y_forecast.members])
        np.testing.assert_array_equal(np.sort(values, axis=1), pooled)
        outcomes.append(tuple(y_true))
        return 0.0

    CalibrationTest(statistic, n_resamples=200, random_state=0).fit(forecast, y)
    assert outcomes[0] == tuple(y)
    for row, values in zip(np.transpose(outcomes[1:]), pooled, strict=True):
        counts = [np.sum(row == value) for value in values]
        assert sum(counts) == 200
        assert 50 - 4 * 6.2 < min(counts) <= max(counts) < 50 + 4 * 6.2


def test_statistics_cannot_change_the_outcomes():
    def sort(y_true, y_forecast):
        y_true.sort()
        return 0.0

    forecast, y = normal(np.random.default_rng(0), 9)
    with pytest.raises(ValueError, match="read-only"):
        CalibrationTest(sort, n_resamples=5).fit(forecast, y)


# Results


@pytest.mark.parametrize(
    ("statistic", "kind"),
    [
        *(("skce", kind) for kind in CALIBRATED),
        *(("quantile_calibration_error", kind) for kind in ("normal", "grid", "2 members")),
    ],
)
def test_results_depend_neither_on_jobs_nor_on_the_order_of_samples(kind, statistic, monkeypatch):
    monkeypatch.setattr("skcalib._inputs.drawing._MAX_BATCH_RESIDUALS", 1000)
    rng = np.random.default_rng(0)
    forecast, y = CALIBRATED[kind](rng, 12)
    y[:2], rows = y[0], [0, 0, *range(2, 12)]
    forecast = forecast[rows]  # the first two forecasts are equal
    y[1] = y[2] if kind in SWAPPED else y[0]
    options = {"n_resamples": 15, "random_state": 0}
    one = CalibrationTest(statistic, **options).fit(forecast, y)
    order = rng.permutation(12)
    with parallel_config("threading"):
        other = CalibrationTest(statistic, n_jobs=2, **options).fit(forecast[order], y[order])
    assert other.statistic_ == pytest.approx(one.statistic_, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(other.null_distribution_, one.null_distribution_, atol=1e-9)
    assert len(set(one.null_distribution_)) > 5


@pytest.mark.parametrize("random_state", [1, np.random.RandomState(1)])
def test_random_state(random_state):
    forecast, y = ensemble(np.random.default_rng(0), 9)
    options = {"statistic": "quantile_calibration_error", "n_resamples": 9}
    expected = CalibrationTest(**options, random_state=1).fit(forecast, y).null_distribution_
    test = CalibrationTest(**options, random_state=random_state).fit(forecast, y)
    np.testing.assert_array_equal(test.null_distribution_, expected)
    other = CalibrationTest(**options, random_state=2).fit(forecast, y)
    assert (other.null_distribution_ != expected).any()


@pytest.mark.parametrize("options", [{"method": "fourier"}, {}], ids=str)
def test_what_is_random_in_a_statistic_follows_the_seed(options):
    forecast, y = normal(np.random.default_rng(0), 20)
    options |= {"n_components": 5} if options else {}
    test = CalibrationTest("skce", metric_params=options, n_resamples=9, random_state=0)
    one, again = clone(test).fit(forecast, y), clone(test).fit(forecast, y)
    np.testing.assert_array_equal(one.null_distribution_, again.null_distribution_)
    assert one.statistic_ == again.statistic_
    params = options | {"random_state": 7}
    with_seed = clone(test).set_params(metric_params=params).fit(forecast, y)
    expected = metrics.distribution_matching_error(y, forecast, **params)
    assert with_seed.statistic_ == pytest.approx(expected, rel=1e-9)
    seen = []

    def statistic(y_true, y_forecast, random_state):
        seen.append(random_state)
        return 0.0

    CalibrationTest(statistic, n_resamples=9, random_state=0).fit(forecast, y)
    assert len(set(seen)) == 1
    draws = np.random.RandomState(0).randint(2**31 - 1, size=9)
    assert seen[0] not in {0, *draws}


def test_whatever_becomes_a_forecast_is_tested_as_that():
    forecast, y = normal(np.random.default_rng(0), 20)
    mean, std = forecast.mean(), forecast.std()
    test = CalibrationTest("quantile_calibration_error", n_resamples=19, random_state=0)
    expected = test.fit(forecast, y).p_value_
    for other in ((mean, std), stats.norm(mean, std)):
        assert test.fit(other, y).p_value_ == expected


def test_the_test_stays_an_estimator():
    rng = np.random.default_rng(0)
    forecast, y = normal(rng, 20)
    proba = rng.random((20, 2))
    proba /= proba.sum(axis=1, keepdims=True)
    test = CalibrationTest("quantile_calibration_error", n_resamples=9, random_state=0)
    classes = CalibrationTest(n_resamples=9, random_state=0).fit(proba, y > 0)
    assert classes.n_features_in_ == 2
    classes.set_params(**test.get_params()).fit(forecast, y)
    assert classes.n_features_in_ == 1
    assert not hasattr(classes, "classes_")
    assert classes.p_value_ == clone(test).fit(forecast, y).p_value_
    assert pickle.loads(pickle.dumps(classes)).p_value_ == classes.p_value_
    again = classes.set_params(statistic="skce").fit(proba, y > 0)
    assert (again.n_features_in_, *again.classes_) == (2, False, True)


# The laws


def h_by_loops(forecast, y, bandwidth, points, given_bandwidth):
    """h_ij of normal forecasts with rbf kernels, spec 4.3."""

    def mean(m, v):
        total = bandwidth**2 + v
        return bandwidth / np.sqrt(total) * np.exp(-(m**2) / (2 * total))

    n, mu, var = len(y), forecast.mean(), forecast.std() ** 2
    h = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            k = np.exp(-np.sum((points[i] - points[j]) ** 2) / (2 * given_bandwidth**2))
            h[i, j] = k * (
                mean(y[i] - y[j], 0)
                - mean(mu[i] - y[j], var[i])
                - mean(mu[j] - y[i], var[j])
                + mean(mu[i] - mu[j], var[i] + var[j])
            )
    return h


def test_bootstrap_and_bounds_equal_their_formulas():
    rng = np.random.default_rng(0)
    forecast, y = normal(rng, 20)
    y, points = y + 1.5, rng.normal(size=(20, 2))
    h = h_by_loops(forecast, y, 0.8, points, 1.3)
    params = {"given_bandwidth": 1.3}
    test = CalibrationTest(
        method="asymptotic", bandwidth=0.8, metric_params=params, n_resamples=7, random_state=0
    )
    test.fit(forecast, y, given=points)
    unbiased = (h.sum() - np.trace(h)) / (20 * 19)
    assert test.statistic_ == pytest.approx(unbiased, rel=1e-8)
    order = check_forecasts(y, forecast, given=points).canonical_order()
    counts = np.random.RandomState(0).multinomial(20, np.full(20, 1 / 20), size=7)
    for value, count in zip(test.null_distribution_, counts, strict=True):
        c = np.empty(20)
        c[order] = count
        total = sum(
            c[i] * (20 / 19 * (c[j] - (i == j)) - 2) * h[i, j] for i in range(20) for j in range(20)
        )
        assert value == pytest.approx((total / 400 + h.mean()) * 19 / 20, abs=1e-9)
    test.set_params(method="distribution-free").fit(forecast, y, given=points)
    assert test.p_value_ == pytest.approx(np.exp(-10 * unbiased**2 / 8), rel=1e-7)
    assert not hasattr(test, "null_distribution_")
    test.set_params(estimation="biased").fit(forecast, y, given=points)
    root = np.sqrt(20 * h.mean() / 2)
    assert test.p_value_ == pytest.approx(np.exp(-(max(0, root - 1) ** 2) / 2), rel=1e-7)


def test_consistency_resampling_draws_forecasts_again():
    seen = []

    def statistic(y_true, y_forecast, given):
        seen.append((tuple(np.sort(y_forecast.mean())), tuple(given - y_forecast.mean())))
        return float(y_true.mean())

    forecast, y = normal(np.random.default_rng(0), 4)
    test = CalibrationTest(statistic, method="consistency", n_resamples=30, random_state=0)
    test.fit(forecast, y, given=forecast.mean() + 3)
    assert len({means for means, _ in seen}) > 10
    np.testing.assert_allclose([gap for _, gap in seen], 3.0)
    with_swaps = CalibrationTest(method="consistency", n_resamples=9, random_state=0)
    assert with_swaps.fit(*ensemble(np.random.default_rng(0), 9)).null_distribution_.std() > 0


# Errors

BAD = {
    "metric of classes": ({"statistic": "smooth_calibration_error"}, {}, "sf"),
    "no kernel": (
        {"statistic": "quantile_calibration_error", "kernel": "rbf"},
        {},
        "metric_params",
    ),
    "not for forecasts": ({"kernel": "exponential"}, {}, "kernel"),
    "unknown argument": (
        {"statistic": "skce", "metric_params": {"n_bins": 3}},
        {},
        "metric_params must be arguments",
    ),
    "option of all three": ({"bandwidth": 1.0}, {}, "'omnibus' of forecasts has no options"),
    "given as a param": (
        {"statistic": "local_calibration_error", "metric_params": {"given": [1.0]}},
        {},
        "metric_params must not hold .*given",
    ),
    "nothing given": ({"statistic": "local_calibration_error"}, {}, "given must hold what local_"),
    "nothing to condition on": (
        {"statistic": "quantile_calibration_error"},
        {"given": np.ones(9)},
        "found one, while quantile_calibration_error has none",
    ),
    "groups of forms without": (
        {"statistic": "skce", "metric_params": {"calibration": "marginal"}},
        {"given": np.ones(9)},
        "given must be left out .*calibration='marginal'",
    ),
    "labels": ({"labels": [0, 1]}, {}, "labels must be None for forecasts"),
    "law of a metric": (
        {"statistic": "quantile_calibration_error", "method": "asymptotic"},
        {},
        "needs statistic='skce'",
    ),
    "law of the biased": ({"estimation": "biased", "method": "asymptotic"}, {}, "unbiased"),
    "blocks": ({"statistic": "skce", "estimation": "linear"}, {}, "'estimation' parameter"),
    "bound of energy": ({"kernel": "energy", "method": "distribution-free"}, {}, "at most 1"),
    "bound of the median": ({"method": "distribution-free"}, {}, "does not depend on the outcomes"),
    "weights": (
        {"method": "asymptotic"},
        {"sample_weight": np.arange(1.0, 10.0) / 2},
        "needs equal weights",
    ),
    "length of given": ({}, {"given": np.ones(8)}, "inconsistent numbers of samples"),
    "length of weights": ({}, {"sample_weight": np.ones(8)}, "sample_weight"),
}


@pytest.mark.parametrize(("options", "fit_options", "match"), BAD.values(), ids=BAD)
def test_bad_input(options, fit_options, match):
    forecast, y = normal(np.random.default_rng(0), 9)
    with pytest.raises((ValueError, TypeError), match=match):
        CalibrationTest(**options, n_resamples=5).fit(forecast, y, **fit_options)


@pytest.mark.parametrize("test", [UCMETest(), CoxTest(), SpiegelhalterTest(), RatingGradeTest()])
def test_tests_of_classes_refuse_forecasts(test):
    forecast, y = normal(np.random.default_rng(0), 9)
    for found in (forecast, (forecast.mean(), forecast.std()), stats.norm(forecast.mean())):
        with pytest.raises(ValueError, match=r"X must hold probabilities of classes.*sf"):
            test.fit(found, y > 0)
    test.fit(forecast.sf(0.0), y > 0)
    with pytest.raises(
        ValueError, match=r"y_proba must hold probabilities of classes; found a fore"
    ):
        smooth_calibration_error(y > 0, forecast)


@pytest.mark.parametrize(
    "call",
    [
        lambda y, x: CalibrationTest().fit(x, y),
        lambda y, x: CoxTest().fit(x, y),
        lambda y, x: confidence_interval("quantile_calibration_error", y, x),
        calibration_report,
        smooth_calibration_error,
        continuous_ranked_probability_loss,
    ],
)
def test_swapped_arguments_are_recognised(call):
    forecast, y = normal(np.random.default_rng(0), 30)
    for found in (forecast, (forecast.mean(), forecast.std()), stats.norm(forecast.mean())):
        with pytest.raises(ValueError, match=r"hold outcomes; found a fore.* look swapped: exch"):
            call(found, y)


def test_numbers_that_are_no_probabilities_are_told_what_forecasts_are():
    rng = np.random.default_rng(0)
    y, members = rng.normal(size=30), rng.random((30, 4))
    for wrong in (y + 2, members):
        with pytest.raises(ValueError, match=r"EnsembleForecast, a Quant.*forecasts.as_forecast"):
            CalibrationTest().fit(wrong, y)
        for labels in (y > 0, np.arange(30) % 2, np.arange(30).astype(str)):
            with pytest.raises(ValueError, match=r"must (lie in|sum to 1)") as caught:
                CalibrationTest().fit(wrong, labels)
            assert "EnsembleForecast" not in str(caught.value)


def test_metrics_of_forecasts_refuse_classes():
    with pytest.raises(ValueError, match="statistic must be a metric of classes"):
        CalibrationTest("quantile_calibration_error").fit([0.1, 0.9], [0, 1])
    with pytest.raises(ValueError, match=r"given must be None.*'omnibus' has none"):
        CalibrationTest().fit([0.1, 0.9], [0, 1], given=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"given must be None.*squared_kernel_calibration_error"):
        CalibrationTest("skce").fit([0.1, 0.9], [0, 1], given=[1.0, 2.0])


# Size and power


def rejections(kind, n, options, n_repetitions, level, change=lambda y: y, n_resamples=19):
    """How often a test rejects at a level that its resamples meet exactly."""
    count = 0
    for seed in range(n_repetitions):
        rng = np.random.default_rng(seed)
        forecast, y = CALIBRATED[kind](rng, n)
        test = CalibrationTest(**options, n_resamples=n_resamples, random_state=seed)
        count += test.fit(forecast, change(y)).p_value_ <= level + 1e-9
    return count / n_repetitions


def within(rate, level, n_repetitions):
    return abs(rate - level) < 4 * np.sqrt(level * (1 - level) / n_repetitions)


@pytest.mark.parametrize("kind", ["normal", "2 members"])
def test_size_and_power_at_a_glance(kind):
    options = STATISTICS["skce"]
    assert within(rejections(kind, 10, options, 40, 0.2), 0.2, 40)
    assert rejections(kind, 20, options, 5, 0.05, lambda y: y + 3) == 1


@pytest.mark.slow
@pytest.mark.parametrize("options", ["skce", "quantile, l2"])
@pytest.mark.parametrize("n", [5, 20, 200])
@pytest.mark.parametrize("kind", CALIBRATED)
def test_size(kind, n, options):
    n_repetitions = 100 if n < 200 else 30
    rate = rejections(kind, n, STATISTICS[options], n_repetitions, 0.1)
    ties = 0.1 if kind in ("poisson", "weighted ensemble", "2 members", "grid") and n < 50 else 0.0
    assert rate < 0.1 + 4 * np.sqrt(0.09 / n_repetitions)
    assert rate > 0.1 - ties - 4 * np.sqrt(0.09 / n_repetitions)


def sign_reversed(rng, n, std=1.0):
    """Marginally calibrated, as x and −x have the same distribution, and wrong for each x."""
    x = rng.normal(size=n)
    return GaussianForecast(-x, std), rng.normal(x, std)


@pytest.mark.slow
def test_marginal_calibration_needs_the_asymptotic_method():
    params = {"calibration": "marginal"}
    rates = {}
    for method in ("conditional", "asymptotic"):
        test = CalibrationTest("skce", method=method, metric_params=params, n_resamples=99)
        p_values = [
            test.set_params(random_state=s)
            .fit(*sign_reversed(np.random.default_rng(s), 200))
            .p_value_
            for s in range(200)
        ]
        rates[method] = np.mean(np.array(p_values) <= 0.05)
    assert rates["conditional"] > 0.1
    assert within(rates["asymptotic"], 0.05, 200)


@pytest.mark.slow
def test_quantile_calibration_is_tested_under_the_weak_hypothesis():
    # the PIT of N(0, 2) for N(x, 1) with x ~ N(0, 1) is uniform, and the forecast not ideal

    def climatology(rng, n):
        return GaussianForecast(np.zeros(n), np.sqrt(2.0)), rng.normal(rng.normal(size=n))

    # new draws for each repetition: PITs of the same draws are the same, whatever the forecast
    test = CalibrationTest("quantile_calibration_error", n_resamples=19)
    p_values = [
        test.set_params(random_state=s).fit(*climatology(np.random.default_rng(s), 50)).p_value_
        for s in range(200)
    ]
    assert within(np.mean(np.array(p_values) <= 0.1 + 1e-9), 0.1, 200)
