"""Nonhomogeneous regression against a general optimiser of a score by quadrature."""

import itertools
import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from skcalib._numerics.crps import LOGISTIC, NORMAL, crps_above_with_slopes, crps_between
from skcalib.forecasts import (
    CensoredForecast,
    EnsembleForecast,
    GaussianForecast,
    LogisticForecast,
    QuantileForecast,
)
from skcalib.recalibration import NonhomogeneousRegressionRecalibrator as Recalibrator

NODE, NODE_WEIGHT = np.polynomial.legendre.leggauss(32)
FAMILIES = {"normal": stats.norm.cdf, "logistic": stats.logistic.cdf}


def problem(n=60, seed=0, least=-np.inf):
    rng = np.random.default_rng(seed)
    signal, spread = 2 * rng.normal(size=n), np.exp(0.5 * rng.normal(size=n))
    members = signal[:, None] + 0.6 * spread[:, None] * rng.normal(size=(n, 11)) + 0.5
    y = np.maximum(signal + spread * rng.normal(size=n), least)
    return EnsembleForecast(members), y


def crps_by_quadrature(y, location, scale, least, cdf):
    """∫ (F(t) − 1[y ≤ t])² dt from the bound to the outcome, and beyond it, by 32 nodes each."""
    total = 0.0
    low = np.maximum(np.minimum(y, location - 40 * scale), least)
    high = np.maximum(y, location + 40 * scale)
    middle = np.clip(location, low, high)
    ends = np.sort([low, middle, y, high], axis=0)
    for first, last in itertools.pairwise(ends):
        for k in range(2):
            start, half = first + (last - first) * k / 2, (last - first) / 4
            t = (start + half)[:, None] + half[:, None] * NODE
            z = (t - location[:, None]) / scale[:, None]
            total += half * ((cdf(z) - (y[:, None] <= t)) ** 2 @ NODE_WEIGHT)
    return total


def mean_score(parameters, forecast, y, family, spread, least, min_spread):
    a, b, c, d = parameters
    std = np.maximum(forecast.std(), min_spread)
    scale = np.exp(c + d * np.log(std)) if spread == "power" else c + d * std
    if d < 0 or (spread == "affine" and c <= 0):
        return 1e3
    location = a + b * forecast.mean()
    return crps_by_quadrature(y, location, scale, least, FAMILIES[family]).mean()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("spread", ["power", "affine"])
@pytest.mark.parametrize("censored_at", [None, 0.0])
def test_no_general_search_finds_a_smaller_score(family, spread, censored_at):
    least = -np.inf if censored_at is None else censored_at
    forecast, y = problem(n=25, least=least)
    fitted = Recalibrator(family, spread, censored_at=censored_at, prior_weight=0)
    fitted.fit(forecast, y)
    names = ("intercept_", "coef_", "scale_intercept_", "scale_coef_")
    parameters = np.array([getattr(fitted, name) for name in names])
    arguments = forecast, y, family, spread, least, fitted.min_spread_
    value = mean_score(parameters, *arguments)
    assert fitted.transform(forecast).crps(y).mean() == pytest.approx(value, rel=1e-5)
    rng = np.random.default_rng(1)
    starts = [parameters + rng.normal(scale=0.3, size=4), [y.mean(), 0.1, 0.8, 0.1]]
    for start in starts:
        found = minimize(
            mean_score, start, arguments, method="Nelder-Mead", options={"maxfev": 250}
        )
        assert value <= found.fun + 1e-6


@pytest.mark.parametrize("law", [NORMAL, LOGISTIC], ids=FAMILIES)
@pytest.mark.parametrize("low", [-np.inf, 0.0])
def test_slopes_are_those_of_differences(law, low):
    rng = np.random.default_rng(0)
    y, location, scale = (
        np.maximum(rng.normal(size=8), low),
        rng.normal(size=8),
        rng.random(8) + 0.1,
    )
    y[0] = max(low, -30.0)
    value, by_location, by_scale = crps_above_with_slopes(y, location, scale, low, law)

    def score(location, scale):
        return crps_between(y, location, scale, low, np.inf, law)

    step = 1e-6
    np.testing.assert_array_equal(value, score(location, scale))
    change = score(location + step, scale) - score(location - step, scale)
    np.testing.assert_allclose(by_location, change / (2 * step), atol=1e-8)
    change = score(location, scale + step) - score(location, scale - step)
    np.testing.assert_allclose(by_scale, change / (2 * step), atol=1e-8)


def prior_problem(forecast, y, weight):
    """The rows of a fit with their prior samples, and their weights."""
    n, mean, std = len(y), forecast.mean(), forecast.std()
    distance = np.sqrt(np.pi / 2) * np.abs(y - mean).sum() / std.mean()
    factor = (distance + weight) / (n + weight)
    outcomes = mean[:, None] + factor * std[:, None] * [-1.0757, 0.0, 1.0757]
    share = 4 * weight / (n + 4 * weight)
    weights = np.repeat([(1 - share) / n, share / (3 * n)], [n, 3 * n])
    return np.tile(np.arange(n), 4), np.concatenate([y, outcomes.T.ravel()]), weights, share


def test_prior_samples_are_outcomes_of_the_forecast():
    forecast, y = problem(n=12)
    rows, all_y, weights, _ = prior_problem(forecast, y, 2.0)
    plain = Recalibrator(spread="affine", prior_weight=0)
    expected = plain.fit(forecast[rows], all_y, sample_weight=weights).transform(forecast)
    actual = Recalibrator(spread="affine", prior_weight=2.0).fit(forecast, y).transform(forecast)
    np.testing.assert_allclose(actual.loc, expected.loc, rtol=1e-6)
    np.testing.assert_allclose(actual.scale, expected.scale, rtol=1e-6)


def test_the_exponent_is_drawn_to_1():
    forecast, y = problem(n=12)
    rows, all_y, weights, share = prior_problem(forecast, y, 2.0)
    mean, std = forecast.mean()[rows], forecast.std()[rows]
    line = np.polyfit(mean, all_y, 1, w=np.sqrt(weights))
    error = np.sqrt(weights @ (all_y - np.polyval(line, mean)) ** 2)

    def loss(parameters):
        a, b, c, d = parameters
        score = GaussianForecast(a + b * mean, np.exp(c + d * np.log(std))).crps(all_y)
        return weights @ score + 0.02 * error * share * (d - 1) ** 2

    fitted = Recalibrator(prior_weight=2.0).fit(forecast, y)
    names = ("intercept_", "coef_", "scale_intercept_", "scale_coef_")
    actual = np.array([getattr(fitted, name) for name in names])
    options = {"xatol": 1e-9, "fatol": 1e-14, "maxiter": 4000}
    oracle = minimize(loss, [0, 1, 0, 1], method="Nelder-Mead", options=options)
    np.testing.assert_allclose(actual, oracle.x, atol=1e-5)


def noisy_spreads(kind, rng, n):
    """Predicted spreads of n samples and of 1000 later ones, and the true ones of all."""
    size = n + 1000
    if kind in ("right", "too narrow", "constant"):  # few per cent at fit, twice as much later
        std = np.r_[1 + 0.05 * rng.random(n), 1 + rng.random(1000)]
        return std, {"right": std, "too narrow": 2 * std, "constant": np.ones(size)}[kind]
    if kind == "all the same":
        return np.ones(size), np.ones(size)
    std = np.exp(0.5 * rng.normal(size=size))
    return std, std ** float(kind)


@pytest.mark.parametrize(
    ("kind", "gain"),
    [
        *[("right", 0), ("too narrow", 0.06), ("constant", 0), ("all the same", 0)],
        *[("0.5", 0.01), ("1", 0), ("1.5", 0.01)],
    ],
)
def test_it_never_harms_much_and_gains_where_there_is_something_to_gain(kind, gain):
    for n in (10, 30, 300):
        ratios = []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            std, true = noisy_spreads(kind, rng, n)
            mean = rng.normal(size=len(std))
            y = mean + true * rng.normal(size=len(std))
            fitted = Recalibrator().fit((mean[:n], std[:n]), y[:n])
            later = GaussianForecast(mean[n:], std[n:])
            ratios.append(fitted.transform(later).crps(y[n:]).mean() / later.crps(y[n:]).mean())
        assert max(ratios) < 1.1
    assert np.mean(ratios) < 1.01 - gain  # with 300 samples


def test_exponents_have_a_bound():
    rng = np.random.default_rng(0)
    std = np.exp(0.3 * rng.normal(size=300))
    y = std**4 * rng.normal(size=300)
    fitted = Recalibrator(prior_weight=0).fit((np.zeros(300), std), y)
    assert fitted.scale_coef_ == 2
    low, high = fitted.spread_range_
    assert (low, high) == (std.min(), std.max())
    scale = fitted.transform(GaussianForecast(np.zeros(4), [low / 3, low, high, 5 * high])).scale
    np.testing.assert_allclose(scale[[0, 3]], scale[[1, 2]] * [1 / 3, 5])


@pytest.mark.parametrize("spread", ["power", "affine"])
@pytest.mark.parametrize(("factor", "shift"), [(1e-3, 0.0), (50.0, -700.0), (2.0**-600, 0.0)])
def test_units(spread, factor, shift):
    forecast, y = problem(least=0.0)
    moved = EnsembleForecast(factor * forecast.members + shift)

    def levels(forecast, y, bound):
        recalibrator = Recalibrator(spread=spread, censored_at=bound).fit(forecast, y)
        return recalibrator.transform(forecast).quantiles([0.05, 0.4, 0.95])

    expected = factor * levels(forecast, y, 0.0) + shift
    actual = levels(moved, factor * y + shift, shift)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6 * factor)


def test_the_standard_normal_has_the_least_score_for_prior_outcomes():
    y = np.array([-1.0757, 0.0, 1.0757])
    scores = [np.mean(GaussianForecast(np.zeros(3), std).crps(y)) for std in (0.999, 1.0, 1.001)]
    assert np.argmin(scores) == 1


def test_weights():
    forecast, y = problem()
    times, plain = np.arange(60) % 3, Recalibrator(prior_weight=0)
    rows = np.repeat(np.arange(60), times)
    expected = plain.fit(forecast[rows], y[rows]).transform(forecast)
    actual = plain.fit(forecast, y, sample_weight=times).transform(forecast)
    np.testing.assert_allclose(actual.loc, expected.loc, rtol=1e-6)
    np.testing.assert_allclose(actual.scale, expected.scale, rtol=1e-6)


@pytest.mark.parametrize("spread", ["power", "affine"])
def test_members_that_agree(spread):
    forecast, y = problem(n=200)
    members = forecast.members.copy()
    members[:5] = members[:5, :1]
    recalibrated = Recalibrator(spread=spread).fit(EnsembleForecast(members), y)
    scale = recalibrated.transform(EnsembleForecast(members)).scale
    assert np.isfinite(scale).all()
    assert (scale > 0).all()
    assert scale[:5] == pytest.approx(scale[0])
    assert scale[0] == pytest.approx(scale.min())
    certain = EnsembleForecast(members[:, :1].repeat(2, axis=1))  # no spread in any row
    y = certain.mean() + 3 * np.random.default_rng(3).normal(size=200)
    fitted = Recalibrator(spread=spread, prior_weight=0).fit(certain, y).transform(certain)
    assert np.ptp(fitted.scale) < 1e-9
    assert fitted.scale[0] == pytest.approx((y - fitted.loc).std(), rel=0.1)


def test_intervals_cover_in_the_rows_where_the_spread_is_wrong():
    forecast, y = problem(n=8000)
    fitted = Recalibrator().fit(forecast[:4000], y[:4000])
    low, high = fitted.transform(forecast[4000:]).interval(0.9)
    is_inside = (low <= y[4000:]) & (y[4000:] <= high)
    groups = np.array_split(np.argsort(forecast[4000:].std()), 4)
    for rows in groups:  # of small to large spread; raw intervals of the middle ones hold 70 %
        assert is_inside[rows].mean() == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 1000))


def test_simulated_parameters_are_found():
    rng = np.random.default_rng(2)
    mean, std = rng.normal(size=8000), np.exp(rng.normal(size=8000))
    for family, law in (("normal", stats.norm), ("logistic", stats.logistic)):
        y = law.rvs(1 - 2 * mean, np.exp(0.3 + 0.4 * np.log(std)), random_state=rng)
        fitted = Recalibrator(family).fit((mean, std), y)
        values = fitted.intercept_, fitted.coef_, fitted.scale_intercept_, fitted.scale_coef_
        np.testing.assert_allclose(values, [1, -2, 0.3, 0.4], atol=0.1)


def test_kinds_of_results_and_forecasts():
    forecast, y = problem(least=0.0)
    assert isinstance(Recalibrator().fit(forecast, y).transform(forecast), GaussianForecast)
    fitted = Recalibrator("logistic", censored_at=0).fit(forecast, y)
    result = pickle.loads(pickle.dumps(fitted)).transform(forecast[:3])
    assert isinstance(result, CensoredForecast)
    assert isinstance(result.base, LogisticForecast)
    quantiles = QuantileForecast(forecast.quantiles([0.1, 0.5, 0.9]), [0.1, 0.5, 0.9])
    assert len(Recalibrator().fit(quantiles, y).transform(quantiles)) == 60


@pytest.mark.parametrize("prior_weight", [0, 1])
@pytest.mark.parametrize("censored_at", [None, 0.0])
@pytest.mark.filterwarnings("ignore:The fit of Nonhomogeneous")
def test_few_and_degenerate_rows(prior_weight, censored_at):
    rng = np.random.default_rng(5)
    members = np.abs(rng.normal(size=(6, 4)))
    for mean, y in (
        (members, np.zeros(6)),
        (members, np.full(6, 3.0)),
        (np.tile(members[0], (6, 1)), np.arange(6.0)),
        (members, members.mean(axis=1)),
        (members[:2], np.array([0.0, 1.0])),
        (np.zeros((6, 4)), np.zeros(6)),
        (np.zeros((6, 4)), np.arange(6.0)),
    ):
        forecast = EnsembleForecast(mean)
        fitted = Recalibrator(censored_at=censored_at, prior_weight=prior_weight)
        result = fitted.fit(forecast, y).transform(forecast)
        assert np.isfinite(result.crps(y)).all()
        assert np.isfinite(result.quantiles([0.05, 0.95])).all()


def test_a_line_that_hits_all_outcomes_has_no_optimum():
    forecast, _ = problem()
    with pytest.warns(UserWarning, match="a line through the means hits all outcomes exactly"):
        Recalibrator(prior_weight=0).fit(forecast, 2 * forecast.mean())


@pytest.mark.parametrize(
    ("options", "change", "match"),
    [
        ({"censored_at": 0.0}, -1.0, r"y must be at least censored_at=0; found -1\. "),
        ({"censored_at": np.nan}, 0, "'censored_at' parameter"),
        ({"family": "gamma"}, 0, "'family' parameter"),
        ({"spread": "log"}, 0, "'spread' parameter"),
        ({"prior_weight": -1}, 0, "'prior_weight' parameter"),
    ],
)
def test_bad_input(options, change, match):
    forecast, _ = problem()
    with pytest.raises(ValueError, match=match):
        Recalibrator(**options).fit(forecast, np.full(60, change))


def test_a_single_row_is_not_enough():
    forecast, y = problem()
    with pytest.raises(ValueError, match="at least 2 outcomes"):
        Recalibrator().fit(forecast[:1], y[:1])
