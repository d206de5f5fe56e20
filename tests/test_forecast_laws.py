"""Laws that every metric of forecasts obeys."""

import inspect
from functools import cache, partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from skcalib.forecasts import (
    CensoredForecast,
    DistributionForecast,
    EnsembleForecast,
    Forecast,
    GaussianForecast,
    GaussianMixtureForecast,
    LogisticForecast,
    QuantileForecast,
    ResidualForecast,
    concatenate,
)
from skcalib.forecasts._derived import AffineForecast
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import (
    conditional_kernel_calibration_error,
    continuous_ranked_probability_loss,
    decision_calibration_error,
    distribution_matching_error,
    distribution_matching_witness,
    local_calibration_error,
    negative_log_likelihood,
    quantile_calibration_error,
    score_decomposition,
)
from skcalib.metrics._registry import FORECAST_METRICS
from skcalib.recalibration import LocationScaleRecalibrator, PITRecalibrator

N = 30
RNG = np.random.default_rng(0)
MEAN, STD, X = RNG.normal(size=N), RNG.uniform(0.5, 2, size=N), RNG.normal(size=(N, 2))
Y = MEAN + 1.5 * STD * RNG.normal(size=N)
GROUP = np.array(["a", "b", "c"])[np.arange(N) % 3]

matching = partial(distribution_matching_error, bandwidth=1.0)


def squares(y):
    return np.column_stack([(y - action) ** 2 for action in (-1, 0, 1)])


CASES = {
    **{name: entry.function for name, entry in FORECAST_METRICS.items()},
    "quantile, l2": partial(quantile_calibration_error, norm="l2"),
    "quantile, max, interval": partial(
        quantile_calibration_error, norm="max", level_type="interval"
    ),
    "quantile, levels": partial(quantile_calibration_error, levels=[0.1, 0.5, 0.8]),
    "quantile, debiased": partial(
        quantile_calibration_error, norm="l2", estimation="debiased", squared=True
    ),
    "local, debiased": partial(
        local_calibration_error, estimation="debiased", average="root-mean-square"
    ),
    "matching, quantile": partial(distribution_matching_error, calibration="quantile"),
    "matching, marginal": partial(distribution_matching_error, calibration="marginal"),
    "matching, threshold": partial(distribution_matching_error, calibration="threshold"),
    "matching, local": partial(distribution_matching_error, calibration="local"),
    "matching, individual": partial(distribution_matching_error, calibration="individual"),
    "matching, decision": partial(matching, calibration="decision", loss=0.3),
    "matching, biased": partial(matching, estimation="biased", given_bandwidth=1.0),
    "matching, laplacian": partial(distribution_matching_error, kernel="laplacian"),
    "matching, energy": partial(distribution_matching_error, kernel="energy"),
    "matching, moments": partial(distribution_matching_error, kernel="moments"),
    "matching, all thresholds": partial(distribution_matching_error, kernel="thresholds"),
    "matching, all thresholds, biased": partial(
        distribution_matching_error,
        kernel="thresholds",
        calibration="marginal",
        estimation="biased",
    ),
    "matching, threshold, biased": partial(matching, calibration="threshold", estimation="biased"),
    "matching, tanh": partial(matching, kernel="tanh", thresholds=0.3),
    "matching, loss": partial(distribution_matching_error, kernel="loss", loss=[0.3, squares]),
    "conditional": conditional_kernel_calibration_error,
    "conditional, debiased": partial(
        conditional_kernel_calibration_error, outcome_bandwidth=1.0, estimation="debiased"
    ),
    "decision": partial(decision_calibration_error, loss=0.3, given="action"),
    "decision, squares": partial(
        decision_calibration_error, loss=squares, compared_actions="chosen"
    ),
    "crps decomposition": lambda y, forecast, **options: (
        score_decomposition(y, forecast, score="crps", **options).miscalibration
    ),
}


@pytest.fixture(autouse=True)
def few_thresholds(monkeypatch):
    """The laws hold for any number of thresholds, and its own tests try many."""
    monkeypatch.setattr("skcalib.metrics._proper._CRPS_CELLS", (64,))


# A row of weight 2 makes no pair with itself, two equal rows do; debiased errors subtract it.
REPEATABLE = {
    "quantile_calibration_error",
    "continuous_ranked_probability_loss",
    "interval_loss",
    "quantile, l2",
    "quantile, max, interval",
    "quantile, levels",
    "matching, biased",
    "matching, all thresholds, biased",
    "matching, threshold, biased",
    "decision",
    "decision, squares",
}

all_cases = pytest.mark.parametrize("name", CASES)


def needs_features(name):
    function = getattr(CASES[name], "func", CASES[name])
    parameter = inspect.signature(function).parameters.get("given")
    chosen = getattr(CASES[name], "keywords", {})
    by_features = chosen.get("calibration") in ("local", "individual")
    return parameter is not None and (parameter.default is parameter.empty or by_features)


def measure(name, y=Y, forecast=(MEAN, STD), rows=slice(None), **options):
    if needs_features(name):
        options["given"] = X[rows]
    return CASES[name](y, forecast, **options)


@cache
def reference(name):
    return measure(name)


def assert_same(actual, expected, tolerance=1e-11):
    np.testing.assert_allclose(actual, expected, atol=tolerance, rtol=tolerance)


def test_every_metric_is_among_the_cases():
    assert set(FORECAST_METRICS) <= set(CASES)


@all_cases
def test_order_of_samples_does_not_matter(name):
    order = np.random.default_rng(1).permutation(N)
    assert_same(measure(name, Y[order], (MEAN[order], STD[order]), order), reference(name))


@all_cases
def test_only_ratios_of_weights_matter(name):
    assert_same(measure(name, sample_weight=np.full(N, 7)), reference(name))
    weight = np.random.default_rng(1).random(N)
    assert_same(measure(name, sample_weight=1e6 * weight), measure(name, sample_weight=weight))


@all_cases
def test_a_weight_of_zero_removes_the_sample(name):
    weight = np.random.default_rng(1).random(N) * (np.arange(N) % 3 > 0)
    rows = weight > 0
    part = measure(name, Y[rows], (MEAN[rows], STD[rows]), rows, sample_weight=weight[rows])
    assert_same(measure(name, sample_weight=weight), part)


@pytest.mark.parametrize("name", sorted(REPEATABLE))
def test_whole_weights_are_repetitions(name):
    times = np.arange(N) % 4
    rows = np.repeat(np.arange(N), times)
    repeated = measure(name, Y[rows], (MEAN[rows], STD[rows]), rows)
    assert_same(measure(name, sample_weight=times), repeated)


@all_cases
def test_containers_do_not_matter(name):
    index = np.random.default_rng(1).permutation(N) + 5
    series = pd.Series(Y, index=index)
    pair = pd.Series(MEAN, index=index[::-1]), pd.Series(STD, index=index)
    assert_same(measure(name, series, pair, sample_weight=pd.Series(np.ones(N))), reference(name))
    assert_same(measure(name, pl.Series(Y), (pl.Series(MEAN), pl.Series(STD))), reference(name))
    assert_same(measure(name, Y.tolist(), (MEAN.tolist(), STD.tolist())), reference(name))
    assert_same(measure(name, Y[:, None], (MEAN[:, None], STD[:, None])), reference(name))


@all_cases
def test_arguments_are_not_changed(name):
    y, mean, std, weight = Y.copy(), MEAN.copy(), STD.copy(), np.ones(N)
    measure(name, y, (mean, std), sample_weight=weight)
    for actual, before in ((y, Y), (mean, MEAN), (std, STD), (weight, np.ones(N))):
        np.testing.assert_array_equal(actual, before)


SCALED = {
    "continuous_ranked_probability_loss",
    "interval_loss",
    "crps decomposition",
    "matching, energy",
}
IN_UNITS = {
    "negative_log_likelihood",
    "conditional, debiased",
    "decision",
    "decision, squares",
    "matching, decision",
    "matching, biased",
    "matching, moments",
    "matching, tanh",
    "matching, loss",
}


@pytest.mark.parametrize("name", sorted(set(CASES) - IN_UNITS))
@pytest.mark.parametrize(("shift", "scale"), [(100.0, 3.0), (0.0, 1e-3)])
def test_units_of_the_outcome(name, shift, scale):
    moved = measure(name, shift + scale * Y, (shift + scale * MEAN, scale * STD))
    factor = scale if name in SCALED else 1.0
    tolerance = 1e-4 if name == "crps decomposition" else 1e-8
    np.testing.assert_allclose(moved, factor * reference(name), rtol=tolerance, atol=1e-12 * factor)


BY_FEATURES = {
    **{name: CASES[name] for name in CASES if needs_features(name)},
    "conditional": CASES["conditional"],
    "matching, fourier": partial(
        CASES["matching, individual"], kernel="laplacian", method="fourier", random_state=0
    ),
    "witness": lambda y, forecast, given: (
        distribution_matching_witness(y, forecast, calibration="individual", given=given).value
    ),
    "test": lambda y, forecast, given: list(
        CalibrationTest(n_resamples=1, random_state=0)
        .fit(forecast, y, given=given)
        .component_statistics_.values()
    ),
}


@pytest.mark.parametrize("power", [-1000, -600, 400])
@pytest.mark.parametrize("name", BY_FEATURES)
def test_units_of_the_features(name, power):
    moved, expected = (
        BY_FEATURES[name](Y, (MEAN, STD), given=X * unit) for unit in (2.0**power, 1.0)
    )
    np.testing.assert_allclose(moved, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "measure",
    [
        partial(local_calibration_error, given=X, bandwidth=1e-160),
        partial(conditional_kernel_calibration_error, given=X, bandwidth=1e-160),
        partial(CASES["matching, individual"], given=X, given_bandwidth=1e-160),
    ],
    ids=["local", "conditional", "matching"],
)
def test_bandwidths_whose_squares_vanish_are_refused(measure):
    with pytest.raises(ValueError, match=r"bandwidth' parameter of .*range \[1e-150, inf\)"):
        measure(Y, (MEAN, STD))


def of_kind(kind, unit):
    """Forecasts of each kind, with all numbers in a unit."""
    members = unit * (MEAN[:, None] + STD[:, None] * [-1.0, 2.0])
    return {
        "normal": lambda: GaussianForecast(unit * MEAN, unit * STD),
        "mixture": lambda: GaussianMixtureForecast(members, np.full((N, 2), unit)),
        "ensemble": lambda: EnsembleForecast(members),
        "residuals": lambda: ResidualForecast(unit * MEAN, unit * Y[:5]),
        "SciPy": lambda: DistributionForecast(stats.logistic(unit * MEAN, unit * STD)),
    }[kind]()


@pytest.mark.parametrize("power", [-600, 400])
@pytest.mark.parametrize("kind", ["normal", "mixture", "ensemble", "residuals", "SciPy"])
def test_no_unit_is_too_small(kind, power):
    def numbers(unit):
        y, forecast = unit * Y, of_kind(kind, unit)
        moved = LocationScaleRecalibrator().fit(forecast, y).transform(forecast).mean()
        return np.concatenate([forecast.std(), forecast.crps(y), moved]) / unit

    # below 1e-150 the standard deviation of SciPy is replaced by one of quantiles
    tolerance = 1e-4 if kind == "SciPy" else 1e-9
    np.testing.assert_allclose(numbers(2.0**power), numbers(1.0), rtol=tolerance)


def test_standard_deviations_that_lack_digits_are_refused():
    with pytest.raises(ValueError, match=r"found 1e-310 in row 0\. .* but at least 1e-300"):
        GaussianMixtureForecast([[0.0, 1e-310]], 1e-310)


@pytest.mark.parametrize(
    ("forecast", "tolerance"),
    [
        (stats.norm(MEAN, STD), 0),
        (GaussianMixtureForecast(MEAN[:, None], STD[:, None]), 1e-9),
        (DistributionForecast(stats.norm(MEAN, STD)), 1e-6),
    ],
    ids=["recognised", "mixture", "quadrature"],
)
@all_cases
def test_kinds_of_forecasts_agree(name, forecast, tolerance):
    if name == "crps decomposition" and tolerance:
        tolerance = 1e-3
    if name in ("matching, laplacian", "matching, energy"):  # quadrature across a kink
        tolerance = max(tolerance, 1e-4) if tolerance else 0
    assert_same(measure(name, forecast=forecast), reference(name), tolerance)


FORECASTS = {
    "ensemble": EnsembleForecast(
        MEAN[:, None] + STD[:, None] * np.random.default_rng(1).normal(size=(N, 9))
    ),
    "weighted": EnsembleForecast(np.random.default_rng(1).normal(size=(N, 9)), np.arange(1, 10)),
    "quantile": QuantileForecast(
        stats.norm(MEAN, STD).ppf(np.c_[[0.05, 0.5, 0.95]]).T, [0.05, 0.5, 0.95]
    ),
    "Poisson": DistributionForecast(stats.poisson(np.exp(MEAN))),
    "gamma": DistributionForecast(stats.gamma(np.exp(MEAN))),
    "normal": GaussianForecast(MEAN, STD),
    "logistic": LogisticForecast(MEAN, STD),
    "censored": CensoredForecast((MEAN, STD)),
    "mixture": GaussianMixtureForecast(MEAN[:, None] + [-1.0, 1.0], np.ones((N, 2))),
    "residuals": ResidualForecast(MEAN, Y[:9] - MEAN[:9]),
    "weighted residuals": ResidualForecast(MEAN, Y[:9] - MEAN[:9], np.arange(1, 10)),
}
FORECASTS |= {
    "affine": AffineForecast(DistributionForecast(stats.logistic(np.zeros(N))), MEAN, STD),
    "recalibrated": PITRecalibrator(method="beta").fit((MEAN, STD), Y).transform((MEAN, STD)),
    "concatenated": concatenate([FORECASTS["normal"][:20], FORECASTS["mixture"][20:]]),
    "concatenated counts": concatenate([FORECASTS["Poisson"][:20], FORECASTS["ensemble"][20:]]),
}


def subclasses(kind):
    for subclass in kind.__subclasses__():
        yield subclass
        yield from subclasses(subclass)


def test_every_forecast_has_an_example():
    package_kinds = {
        kind
        for kind in subclasses(Forecast)
        if kind.__module__.startswith("skcalib.") and not kind.__subclasses__()
    }
    missing = sorted(kind.__name__ for kind in package_kinds - set(map(type, FORECASTS.values())))
    assert not missing, f"add an example of {', '.join(missing)} to FORECASTS, for the laws"


@pytest.mark.parametrize("kind", sorted(set(FORECASTS) - {"quantile"}))  # its tails are unknown
@pytest.mark.parametrize(("y", "below"), [(-np.inf, 0), (-1e308, 0), (1e308, 1), (np.inf, 1)])
def test_distribution_functions_at_the_ends(kind, y, below):
    forecast = FORECASTS[kind]
    np.testing.assert_array_equal(forecast.cdf(y), np.full(N, below))
    np.testing.assert_array_equal(np.exp(forecast.logcdf(y)), np.full(N, below))
    np.testing.assert_array_equal(forecast.sf(y), np.full(N, 1 - below))
    np.testing.assert_array_equal(np.exp(forecast.logsf(y)), np.full(N, 1 - below))


@pytest.mark.parametrize("kind", sorted(set(FORECASTS) - {"quantile"}))
def test_crps_far_outside_is_the_distance_as_far_as_it_can_be_summed(kind):
    forecast, far = FORECASTS[kind], np.full(N, 1e150)
    crps_decomposition = partial(score_decomposition, score="crps")
    np.testing.assert_allclose(forecast.crps(far), far, rtol=1e-6)
    for huge in (1e151, 1e308):
        far[3] = huge
        with pytest.raises(ValueError, match=r"y must lie within ±1e\+150.*larger unit"):
            forecast.crps(far)
        for measure in (continuous_ranked_probability_loss, crps_decomposition):
            with pytest.raises(ValueError, match=r"y_true must lie within ±1e\+150.*larger unit"):
                measure(far, forecast)


# The metrics that some kinds of forecasts do not know enough for, and these kinds.
REFUSED = dict.fromkeys(
    [
        "quantile, levels",
        "matching, moments",
        "matching, tanh",
        "matching, loss",
        "decision",
        "decision, squares",
        "crps decomposition",
    ],
    frozenset({"quantile"}),
) | {
    "negative_log_likelihood": {
        "ensemble", "weighted", "quantile", "gamma", "residuals", "weighted residuals",
        "concatenated counts",
    },
}  # fmt: skip


@all_cases
def test_every_metric_takes_every_forecast_but_those_listed(name):
    y, order = np.round(np.abs(Y)), np.random.default_rng(1).permutation(N)
    for kind, forecast in FORECASTS.items():
        if kind in REFUSED.get(name, ()):
            reasons = "not known for this forecast|levels|expected losses|infinite one"
            with pytest.raises(ValueError, match=reasons):
                measure(name, y, forecast)
            continue
        value = measure(name, y, forecast)
        assert np.isfinite(value)
        assert_same(measure(name, y[order], forecast[order], order), value, 1e-9)


@all_cases
def test_bad_input_is_refused(name):
    for y, forecast, message in (
        (Y[:-1], (MEAN, STD), "inconsistent numbers of samples"),
        (Y, np.column_stack([MEAN, STD]), "an array of shape|Forecasts of a number are passed"),
        (np.where(np.arange(N) == 3, np.nan, Y), (MEAN, STD), "y_true must be finite"),
        (Y, (MEAN, -STD), "std must be positive"),
        (GROUP, (MEAN, STD), "y_true must hold numbers"),
        ((MEAN, STD), Y, "look swapped: exchange them"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            measure(name, y, forecast)
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        measure(name, sample_weight=-np.ones(N))


@all_cases
def test_single_precision_is_enough(name):
    y, mean, std = (values.astype(np.float32) for values in (Y, MEAN, STD))
    assert_same(measure(name, y, (mean, std)), reference(name), 2e-3)


def test_crps_of_a_certain_forecast_is_the_absolute_error():
    value = continuous_ranked_probability_loss(Y, (MEAN, 1e-12))
    assert value == pytest.approx(np.mean(np.abs(Y - MEAN)))
    assert isinstance(as_float := value, float), as_float
    assert GaussianForecast(MEAN, 1e-12).pit_bounds(MEAN)[0].tolist() == [0.5] * N


def test_an_infinite_density_is_refused():
    forecast = stats.gamma(np.array([0.5, 2.0]))
    with pytest.raises(ValueError, match="finite density at the outcomes; found an infinite one"):
        negative_log_likelihood([0.0, 1.0], forecast)
    assert negative_log_likelihood([1.0, 0.0], forecast) == np.inf


def test_a_wide_bandwidth_is_no_overflow():
    wide, wider = (
        conditional_kernel_calibration_error(Y, (MEAN, STD), given=X, kernel="rbf", bandwidth=one)
        for one in (1e100, 1e300)
    )
    assert wide == wider
