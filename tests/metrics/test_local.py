"""Local calibration equals loops over the points, and finds errors that cancel elsewhere."""

import itertools

import numpy as np
import pandas as pd
import pytest
from oracles import kernel_value
from scipy.stats import norm

from skcalib.datasets import make_forecasts
from skcalib.forecasts import EnsembleForecast, GaussianForecast, QuantileForecast
from skcalib.metrics import (
    _local as local_module,
    local_calibration,
    local_calibration_error,
    quantile_calibration_error,
)


def local_case(seed, n=25, n_features=2):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, n_features)) * [1.0, 30.0][:n_features]
    mean, std = rng.normal(size=n), rng.uniform(0.5, 2, size=n)
    weight = rng.choice([0.5, 1.0, 3.0], size=n)
    return mean + std * rng.normal(size=n), GaussianForecast(mean, std), x, weight


def by_loops(y, forecast, x, query, weight, kernel, bandwidth):
    """Error², debiased error², bias, spread and size at each point, from the sorted PITs."""
    u = norm.cdf(y, forecast.loc, forecast.scale)
    rows = []
    for point in query:
        local = weight * [kernel_value(kernel, point, xi, bandwidth) for xi in x]
        local = local / local.sum()
        order = np.argsort(u)
        total = np.cumsum(local[order])
        square = total**2 @ np.diff(np.append(u[order], 1.0)) - local @ (1 - u**2) + 1 / 3
        share = np.sum(local**2)
        own = local**2 @ ((u**3 + (1 - u) ** 3) / 3)
        mean = local @ u
        spread = 12 * (local @ (u - mean) ** 2) / (1 - share) - 1
        rows.append([square, (square - own) / (1 - share), mean - 0.5, spread, 1 / share])
    return np.array(rows).T


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "exponential"])
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_loops(kernel, seed):
    y, forecast, x, weight = local_case(seed)
    query = x[:4] + 0.1
    expected = by_loops(y, forecast, x, query, weight, kernel, 2.0)
    options = {
        "given": x,
        "query": query,
        "sample_weight": weight,
        "kernel": kernel,
        "bandwidth": 2.0,
    }
    around = local_calibration(y, forecast, **options)
    found = [
        around.error**2,
        around.squared_error,
        around.bias,
        around.spread,
        around.effective_sample_size,
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(around.points, query)
    assert around.p_value is None
    raw = local_calibration_error(y, forecast, average=None, **options)
    np.testing.assert_allclose(raw, np.sqrt(expected[0]), rtol=1e-11)
    clipped = np.maximum(expected[1], 0)
    debiased = local_calibration_error(y, forecast, average=None, estimation="debiased", **options)
    np.testing.assert_allclose(debiased, np.sqrt(clipped), atol=1e-11)
    mean = local_calibration_error(y, forecast, estimation="debiased", **options)
    assert mean == pytest.approx(np.sqrt(clipped).mean(), abs=1e-12)
    root = local_calibration_error(y, forecast, average="root-mean-square", **options)
    assert root == pytest.approx(np.sqrt(expected[0].mean()), abs=1e-12)


def test_the_mean_is_over_the_weighted_samples():
    y, forecast, x, weight = local_case(2)
    square = by_loops(y, forecast, x, x, weight, "rbf", 5.0)[0]
    error = local_calibration_error(y, forecast, given=x, sample_weight=weight, bandwidth=5.0)
    assert error == pytest.approx(np.average(np.sqrt(square), weights=weight), abs=1e-12)


def test_there_is_one_value_for_each_row_also_without_weight():
    y, forecast, x, weight = local_case(2)
    weight[3:5] = 0
    options = {"given": x, "sample_weight": weight, "bandwidth": 5.0}
    expected = by_loops(y, forecast, x, x, weight, "rbf", 5.0)
    around = local_calibration(y, forecast, **options)
    np.testing.assert_array_equal(around.points, x)
    np.testing.assert_allclose(around.bias, expected[2], atol=1e-12)
    errors = local_calibration_error(y, forecast, average=None, **options)
    np.testing.assert_allclose(errors, np.sqrt(expected[0]), atol=1e-12)
    error = local_calibration_error(y, forecast, **options)
    assert error == pytest.approx(np.average(errors, weights=weight), abs=1e-12)


@pytest.mark.parametrize("bandwidth", ["median", "auto"])
def test_bandwidths_are_those_of_standardised_features(bandwidth):
    y, forecast, x, _ = local_case(3)
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    pairs = itertools.combinations(scaled, 2)
    median = np.median([np.linalg.norm(a - b) for a, b in pairs])
    width = median * 25 ** (-1 / 6) if bandwidth == "auto" else median
    expected = np.sqrt(by_loops(y, forecast, scaled, scaled, np.ones(25), "rbf", width)[0])
    options = {"average": None, "bandwidth": bandwidth}
    for given in (x, 1000 * x - 5, pd.DataFrame(x)):
        error = local_calibration_error(y, forecast, given=given, **options)
        np.testing.assert_allclose(error, expected, rtol=1e-10)
    # a query is in the units of the features; a constant feature changes nothing
    error = local_calibration_error(y, forecast, given=x, query=x[:3], **options)
    np.testing.assert_allclose(error, expected[:3], rtol=1e-10)
    constant = np.column_stack([x, np.full(25, 0.1)])
    error = local_calibration_error(y, forecast, given=constant, **options)
    np.testing.assert_allclose(error, expected, rtol=1e-10)


def test_the_default_bandwidth_sees_a_map():
    y, forecast, place = make_forecasts(
        1000, problem="spatial", return_positions=True, random_state=1
    )
    options = {"given": place, "estimation": "debiased", "average": "root-mean-square"}
    fine = local_calibration_error(y, forecast, bandwidth=0.1, **options)
    assert local_calibration_error(y, forecast, **options) > 0.6 * fine
    assert local_calibration_error(y, forecast, bandwidth="median", **options) < 0.2 * fine


def test_wide_kernels_give_the_quantile_calibration_error():
    y, forecast, x, weight = local_case(4)
    for estimation in ("biased", "debiased"):
        options = {"sample_weight": weight, "estimation": estimation}
        expected = quantile_calibration_error(y, forecast, norm="l2", **options)
        error = local_calibration_error(y, forecast, given=x, bandwidth=1e9, **options)
        assert error == pytest.approx(expected, abs=1e-12)
    narrow = local_calibration_error(y, forecast, given=x, bandwidth=1e-9, average=None)
    u = norm.cdf(y, forecast.loc, forecast.scale)
    np.testing.assert_allclose(narrow**2, (u**3 + (1 - u) ** 3) / 3, atol=1e-14)


def test_errors_that_cancel_are_found():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=400)
    y = rng.normal(loc=np.sign(x))
    forecast = (np.zeros(400), np.sqrt(2.0))
    around = local_calibration(y, forecast, given=x, query=[-0.7, 0.7])
    assert around.bias[0] < -0.1
    assert around.bias[1] > 0.1
    assert (around.squared_error > 0.01).all()
    assert quantile_calibration_error(y, forecast, norm="l2", squared=True) < 0.003


def test_the_spread_of_calibrated_samples_is_zero_on_average():
    # five neighbours: undivided by 1 − Σ ω² it would be −0.2
    rng = np.random.default_rng(0)
    place = 100.0 * np.arange(400)  # far from each other
    options = {"given": np.repeat(place, 5), "query": place, "bandwidth": 1.0}
    members = np.array([-0.4, 0.0, 0.7])
    for y, forecast in (
        (rng.normal(size=2000), (np.zeros(2000), 1.0)),
        (rng.choice(members, size=2000), EnsembleForecast(np.tile(members, (2000, 1)), [1] * 3)),
    ):
        around = local_calibration(y, forecast, **options)
        for values in (around.spread, around.bias, around.squared_error):
            assert abs(values.mean()) < 4 * values.std() / np.sqrt(400)


def test_p_values_of_a_single_point():
    rng = np.random.default_rng(1)
    x = np.zeros(40)
    options = {"given": x, "query": [0.0], "bandwidth": 1.0, "n_resamples": 99}
    y = rng.normal(size=40)
    calibrated = local_calibration(y, (x, 1.0), random_state=0, **options)
    assert calibrated.p_value[0] > 0.05
    narrow = local_calibration(y, (x, 0.3), random_state=0, **options)
    assert narrow.p_value[0] == 0.01
    members = rng.normal(size=(40, 4))
    assert local_calibration(y, EnsembleForecast(members), **options).p_value[0] > 0.01
    outside = local_calibration(y, EnsembleForecast(0.1 * members), random_state=0, **options)
    assert outside.p_value[0] == 0.01
    grid = QuantileForecast(np.tile(norm.ppf([0.1, 0.5, 0.9]), (40, 1)), [0.1, 0.5, 0.9])
    assert local_calibration(y, grid, random_state=0, **options).p_value[0] > 0.05


def test_draws_that_are_tied_with_the_data_count():
    forecast = EnsembleForecast(np.ones((5, 2)), [1, 1])
    around = local_calibration(np.ones(5), forecast, given=np.arange(5), n_resamples=9)
    np.testing.assert_array_equal(around.p_value, 1)


def test_p_values_are_ranks_among_draws():
    # the same draws by hand: the outcomes are normal, the PITs uniform
    y, forecast, x, weight = local_case(5)
    around = local_calibration(
        y, forecast, given=x, sample_weight=weight, bandwidth=9.0, n_resamples=200, random_state=0
    )
    again = local_calibration(
        y, forecast, given=x, sample_weight=weight, bandwidth=9.0, n_resamples=200, random_state=0
    )
    np.testing.assert_array_equal(around.p_value, again.p_value)
    rng = np.random.default_rng(0)
    null = np.array(
        [
            local_calibration(
                norm.ppf(rng.random(25)),
                (np.zeros(25), 1.0),
                given=x,
                sample_weight=weight,
                bandwidth=9.0,
            ).squared_error
            for _ in range(300)
        ]
    )
    expected = (null >= around.squared_error).mean(axis=0)
    np.testing.assert_allclose(around.p_value, expected, atol=4 * np.sqrt(0.25 / 200 + 0.25 / 300))


def test_quantile_forecasts_are_measured_at_their_levels():
    rng = np.random.default_rng(0)
    levels = np.array([0.2, 0.5, 0.9])
    values, y, x = np.sort(rng.normal(size=(30, 3)), axis=1), rng.normal(size=30), rng.random(30)
    below = y[:, None] <= values
    error = local_calibration_error(
        y, QuantileForecast(values, levels), given=x, query=[0.3], bandwidth=0.5, average=None
    )
    local = np.exp(-((x - 0.3) ** 2) / 0.5)
    gap = local @ below / local.sum() - levels
    assert error[0] == pytest.approx(np.sqrt(np.mean(gap**2)), abs=1e-14)


def test_points_that_no_sample_is_near():
    y, forecast, x, _ = local_case(6)
    query = np.array([[0.0, 0.0], [1e6, 1e6]])
    around = local_calibration(y, forecast, given=x, query=query, n_resamples=9)
    assert np.isfinite(around.error[0])
    for values in (around.error, around.squared_error, around.bias, around.spread, around.p_value):
        assert np.isnan(values[1])
    assert around.effective_sample_size[1] == 0
    error = local_calibration_error(y, forecast, given=x, query=query)
    assert error == around.error[0]
    far = local_calibration_error(y, forecast, given=x, query=query[1:])
    assert np.isnan(far)


def test_blocks_change_nothing(monkeypatch):
    y, forecast, x, weight = local_case(7)
    options = {"given": x, "sample_weight": weight, "n_resamples": 19, "random_state": 0}
    whole = local_calibration(y, forecast, **options)
    monkeypatch.setattr(local_module, "_MAX_CURVE_ENTRIES", 1)
    for one, two in zip(
        vars(whole).values(), vars(local_calibration(y, forecast, **options)).values(), strict=True
    ):
        np.testing.assert_allclose(one, two, rtol=1e-12)


def test_one_sample_and_one_feature():
    around = local_calibration([1.0], ([0.0], [1.0]), given=[3.0])
    assert around.bias[0] == pytest.approx(norm.cdf(1) - 0.5)
    assert np.isnan(around.squared_error[0])
    assert np.isnan(around.spread[0])
    assert np.isnan(
        local_calibration_error([1.0], ([0.0], [1.0]), given=[3.0], estimation="debiased")
    )


def test_kernels_of_users():
    y, forecast, x, _ = local_case(8)

    def nearest(query, given):
        distance = np.abs(query[:, :1] - given[:, 0])
        return distance <= np.sort(distance, axis=1)[:, 4:5]

    around = local_calibration(y, forecast, given=x, kernel=nearest)
    np.testing.assert_allclose(around.effective_sample_size, 5)
    with pytest.raises(ValueError, match=r"kernel must return finite weights.* found -1"):
        local_calibration(y, forecast, given=x, kernel=lambda a, b: -np.ones((len(a), len(b))))
    with pytest.raises(ValueError, match=r"of shape \(25, 25\) here; found shape \(25,\)"):
        local_calibration(y, forecast, given=x, kernel=lambda a, b: np.ones(len(b)))


def test_bad_input():
    y, forecast, x, _ = local_case(9)
    with pytest.raises(ValueError, match=r"query must have the 2 feature\(s\) of given; found 1"):
        local_calibration_error(y, forecast, given=x, query=[0.0])
    with pytest.raises(ValueError, match="given must hold numbers"):
        local_calibration_error(y, forecast, given=np.repeat(["a"], 25))
    with pytest.raises(ValueError, match=r"query must be finite; found nan .* in row 0"):
        local_calibration_error(y, forecast, given=x, query=[[np.nan, 0.0]])
    with pytest.raises(ValueError, match="given"):
        local_calibration_error(y, forecast, given=x[:5])
    with pytest.raises(ValueError, match="'bandwidth' parameter"):
        local_calibration_error(y, forecast, given=x, bandwidth=0)
    with pytest.raises(TypeError, match="given"):
        local_calibration_error(y, forecast)
    with pytest.raises(ValueError, match=r"given must hold the features.* found None"):
        local_calibration_error(y, forecast, given=None)
