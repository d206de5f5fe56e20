"""The kinds of forecasts against SciPy, loops and quadrature."""

import itertools
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, special, stats

from skcalib.forecasts import (
    CensoredForecast,
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    GaussianMixtureForecast,
    LogisticForecast,
    QuantileForecast,
    ResidualForecast,
)

RNG = np.random.default_rng(0)
N = 7
MEAN, STD = RNG.normal(size=(N, 3)), RNG.uniform(0.2, 2.0, size=(N, 3))
WEIGHTS = RNG.dirichlet([1, 1, 1], size=N)
MEMBERS = np.round(RNG.normal(size=(N, 6)), 1)
MEMBER_WEIGHTS = RNG.dirichlet(np.ones(6), size=N)
LEVELS = np.array([0.1, 0.25, 0.5, 0.9])

FORECASTS = {
    "Gaussian": GaussianForecast(MEAN[:, 0], STD[:, 0]),
    "logistic": LogisticForecast(MEAN[:, 0], STD[:, 0]),
    "censored": CensoredForecast((MEAN[:, 0], STD[:, 0]), MEAN[:, 1] - 0.5),
    "mixture": GaussianMixtureForecast(MEAN, STD, WEIGHTS),
    "ensemble": EnsembleForecast(MEMBERS),
    "weighted ensemble": EnsembleForecast(MEMBERS, MEMBER_WEIGHTS),
    "residual": ResidualForecast(MEAN[:, 0], MEMBERS[0], MEMBER_WEIGHTS[0]),
    "quantile": QuantileForecast(np.sort(MEMBERS[:, :4], axis=1), LEVELS),
    "gamma": DistributionForecast(stats.gamma(STD[:, 0] + 0.5, scale=STD[:, 1])),
    "Poisson": DistributionForecast(stats.poisson(3 * STD[:, 0])),
}
if hasattr(stats, "make_distribution"):  # since SciPy 1.15
    gamma = stats.make_distribution(stats.gamma)
    FORECASTS["new style"] = DistributionForecast(gamma(a=STD[:, 0] + 0.5))

KNOWN_EVERYWHERE = {k: v for k, v in FORECASTS.items() if k != "quantile"}

all_forecasts = pytest.mark.parametrize("forecast", FORECASTS.values(), ids=FORECASTS)
known_everywhere = pytest.mark.parametrize(
    "forecast", KNOWN_EVERYWHERE.values(), ids=KNOWN_EVERYWHERE
)


def outcomes_of(forecast):
    """Possible outcomes: some of positive probability, where there are any."""
    return forecast.ppf(np.linspace(0.15, 0.85, len(forecast)))


def mixture_law(row):
    parts = list(zip(WEIGHTS[row], MEAN[row], STD[row], strict=True))
    return lambda y: sum(w * stats.norm(m, s).cdf(y) for w, m, s in parts)


def test_equal_weights_of_members_take_no_memory_and_change_no_number():
    rng = np.random.default_rng(0)
    members, y = np.round(rng.normal(size=(2000, 30)), 1), rng.normal(size=2000).round(1)
    equal, weighted = EnsembleForecast(members), EnsembleForecast(members, np.ones(30))
    assert equal[500:].weights.strides == (0, 0)
    levels, points = np.array([0.0, 0.1, 1 / 3, 0.9, 1.0]), np.column_stack([y, y + 0.1])
    np.testing.assert_array_equal(equal.quantiles(levels), weighted.quantiles(levels))
    for name in ("cdf", "sf"):
        values = [getattr(forecast, name)(points) for forecast in (equal, weighted)]
        np.testing.assert_array_equal(*values)
    np.testing.assert_allclose(equal.crps(y), weighted.crps(y), atol=1e-12)
    tracemalloc.start()
    EnsembleForecast(members).crps(y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * members.nbytes


def test_no_levels_have_no_quantiles():
    level = np.zeros((3, 0))
    for forecast in (
        GaussianForecast(np.zeros(3), 1.0),
        GaussianMixtureForecast(np.zeros((3, 2)), np.ones((3, 2))),
    ):
        assert forecast.ppf(level).shape == (3, 0)


def test_gaussian_is_scipys_normal():
    forecast, law = FORECASTS["Gaussian"], stats.norm(MEAN[:, 0], STD[:, 0])
    y = MEAN[:, 0] + STD[:, 0] * np.array([-40, -9, -1, 0, 1, 9, 40])
    for name in ("cdf", "logcdf", "logsf", "logpdf"):
        np.testing.assert_allclose(getattr(forecast, name)(y), getattr(law, name)(y), rtol=1e-13)
    np.testing.assert_allclose(forecast.sf(y), law.sf(y), rtol=1e-12)
    np.testing.assert_allclose(forecast.entropy(), law.entropy(), rtol=1e-14)
    np.testing.assert_allclose(forecast.interval(0.8), law.interval(0.8), rtol=1e-13)
    np.testing.assert_allclose(forecast.mean(), law.mean())
    np.testing.assert_allclose(forecast.std(), law.std())


def test_mixture_is_the_sum_of_its_components():
    forecast = FORECASTS["mixture"]
    for row in range(N):
        law = mixture_law(row)
        for y in (-3.0, 0.1, 2.0):
            assert forecast.cdf(y)[row] == pytest.approx(law(y), rel=1e-13)
            density = sum(WEIGHTS[row] * stats.norm(MEAN[row], STD[row]).pdf(y))
            assert forecast.logpdf(y)[row] == pytest.approx(np.log(density), rel=1e-12)
        mean = WEIGHTS[row] @ MEAN[row]
        second = WEIGHTS[row] @ (MEAN[row] ** 2 + STD[row] ** 2)
        assert forecast.mean()[row] == pytest.approx(mean)
        assert forecast.std()[row] == pytest.approx(np.sqrt(second - mean**2))


def test_mixtures_are_accurate_in_the_tails():
    forecast = FORECASTS["mixture"]
    y = np.array([-60.0, 60.0])
    for row in range(N):
        z = (y[:, None] - MEAN[row]) / STD[row]
        below = np.logaddexp.reduce(np.log(WEIGHTS[row]) + stats.norm.logcdf(z), axis=1)
        above = np.logaddexp.reduce(np.log(WEIGHTS[row]) + stats.norm.logsf(z), axis=1)
        np.testing.assert_allclose(
            forecast[[row]].logcdf(y[None])[0], below, rtol=1e-12, atol=1e-15
        )
        np.testing.assert_allclose(forecast[[row]].logsf(y[None])[0], above, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("mean", "std"), [([0.0, 0.0], [1.0, 1.0]), ([0.0, 1e6], [1e-3, 1.0]), ([-1, 1], [1e-9, 1e-9])]
)
def test_quantiles_of_mixtures_invert_the_cdf(mean, std):
    forecast = GaussianMixtureForecast([mean], [std], [0.3, 0.7])
    levels = np.array([1e-300, 1e-12, 0.1, 0.299, 0.301, 0.5, 0.9, 1 - 1e-12])
    quantiles = forecast.quantiles(levels)[0]
    assert (np.diff(quantiles) >= 0).all()
    np.testing.assert_allclose(
        forecast.logcdf(quantiles[None])[0, :7], np.log(levels[:7]), rtol=1e-6
    )
    np.testing.assert_allclose(forecast.sf(quantiles[-1:]), 1 - levels[-1], rtol=1e-3)
    assert forecast.quantiles([0.0, 1.0]).tolist() == [[-np.inf, np.inf]]


def test_quantiles_of_mixtures_have_the_unit_of_the_outcome():
    mean, std, levels = np.array([[-1.0, 2.0]]), np.array([[1.0, 0.3]]), np.arange(1, 10) / 10
    expected = GaussianMixtureForecast(mean, std).quantiles(levels)
    actual = GaussianMixtureForecast(2.0**-40 * mean, 2.0**-40 * std).quantiles(levels)
    np.testing.assert_array_equal(2.0**40 * actual, expected)


def test_ensembles_by_hand():
    forecast = EnsembleForecast([[3.0, 1.0, 2.0, 2.0]])
    assert forecast.cdf([[0.0, 1.0, 2.0, 2.5, 3.0]]).tolist() == [[0, 0.25, 0.75, 0.75, 1]]
    assert forecast.ppf([[0.0, 0.25, 0.26, 0.75, 0.76, 1.0]]).tolist() == [[1, 1, 2, 2, 3, 3]]
    assert forecast.pit_bounds([2.0]) == (pytest.approx([0.2]), pytest.approx([0.8]))
    assert forecast.pit_bounds([9.0]) == (pytest.approx([0.8]), pytest.approx([1.0]))
    assert forecast.sf(2.0).tolist() == [0.25]
    weighted = EnsembleForecast([[3.0, 1.0, 2.0, 2.0]], [0.0, 1.0, 1.0, 2.0])
    assert weighted.cdf([[0.5, 1.0, 2.0]]).tolist() == [[0, 0.25, 1]]
    assert weighted.pit_bounds([2.0]) == (pytest.approx([0.25]), pytest.approx([1.0]))
    assert weighted.quantiles([0.0, 1.0]).tolist() == [[1.0, 2.0]]


def test_residuals_are_an_ensemble_around_each_location():
    shared, weight = MEMBERS[0], MEMBER_WEIGHTS[0]
    forecast = FORECASTS["residual"]
    twin = EnsembleForecast(MEAN[:, :1] + shared, weight)
    y = outcomes_of(twin)
    y[0] += 0.01
    levels = np.linspace(0, 1, N)
    for name, argument in (("cdf", y), ("ppf", levels), ("sf", y), ("crps", y)):
        np.testing.assert_allclose(
            getattr(forecast, name)(argument), getattr(twin, name)(argument), atol=1e-12
        )
    for mine, other in zip(forecast.pit_bounds(y + 1e-9), twin.pit_bounds(y + 1e-9), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-12)
    np.testing.assert_allclose(forecast.mean(), twin.mean())
    np.testing.assert_allclose(forecast.std(), twin.std())
    location = np.sort(forecast.components().location, axis=1)
    np.testing.assert_allclose(location, np.sort(twin.components().location, axis=1))


def test_quantile_grid_by_hand():
    forecast = QuantileForecast([[0.0, 1.0, 1.0, 3.0]], LEVELS)
    bounds = {
        -1: (0, 0.1),
        0: (0, 0.1),
        0.5: (0.1, 0.25),
        1: (0.1, 0.5),
        2: (0.5, 0.9),
        9: (0.9, 1),
    }
    for y, (low, high) in bounds.items():
        assert forecast.pit_bounds([y]) == (pytest.approx([low]), pytest.approx([high])), y
        assert forecast._match_scale(np.array([float(y)])) == pytest.approx([(low + high) / 2])
    assert forecast.cdf([[0.0, 0.5, 1.0, 2.0, 3.0]])[0] == pytest.approx(
        [0.1, 0.175, 0.5, 0.7, 0.9]
    )
    assert forecast.ppf([[0.1, 0.175, 0.25, 0.5, 0.7, 0.9]])[0] == pytest.approx(
        [0, 0.5, 1, 1, 2, 3]
    )
    # by hand: weights (.25, .4, .65, .5) times the pinball losses at y = 2
    losses = np.array([0.1 * 2, 0.25 * 1, 0.5 * 1, 0.1 * 1])
    assert forecast.crps([2.0]) == pytest.approx([np.dot([0.25, 0.4, 0.65, 0.5], losses)])


def test_a_quantile_grid_has_no_tails():
    forecast = FORECASTS["quantile"]
    for name, argument in (
        ("cdf", [-99.0] * N),
        ("ppf", 0.05),
        ("sf", 99.0),
        ("logpdf", [0.0] * N),
        ("interval", 0.95),
    ):
        with pytest.raises(ValueError, match="not known for this forecast: QuantileForecast"):
            getattr(forecast, name)(argument)
    for name in ("mean", "std", "entropy", "sample"):
        with pytest.raises(ValueError, match=f"{name} is not known"):
            getattr(forecast, name)()


def test_draws_fall_into_the_cells_of_a_quantile_grid():
    forecast = FORECASTS["quantile"][[0] * 4000]
    forecast = QuantileForecast(np.tile([0.0, 1.0, 2.0, 3.0], (4000, 1)), LEVELS)
    lower, upper = forecast.pit_bounds(forecast._simulate(np.random.default_rng(0), 1)[0])
    for low, high in zip([0, *LEVELS], [*LEVELS, 1], strict=True):
        share = np.mean((lower == low) & (upper == high))
        assert abs(share - (high - low)) < 4 * np.sqrt(0.25 / 4000)


@pytest.mark.parametrize("name", [n for n in ("gamma", "Poisson", "new style") if n in FORECASTS])
def test_distributions_of_scipy(name):
    forecast = FORECASTS[name]
    laws = {
        "gamma": [stats.gamma(a + 0.5, scale=b) for a, b, _ in STD],
        "Poisson": [stats.poisson(3 * a) for a, _, _ in STD],
        "new style": [stats.gamma(a + 0.5) for a, _, _ in STD],
    }[name]
    y = outcomes_of(forecast)
    for method in ("cdf", "logcdf", "logsf"):
        expected = [getattr(law, method)(value) for law, value in zip(laws, y, strict=True)]
        np.testing.assert_allclose(getattr(forecast, method)(y), expected, rtol=1e-10)
    log_density = "logpmf" if name == "Poisson" else "logpdf"
    expected = [getattr(law, log_density)(value) for law, value in zip(laws, y, strict=True)]
    np.testing.assert_allclose(forecast.logpdf(y), expected, rtol=1e-10)
    np.testing.assert_allclose(forecast.mean(), [law.mean() for law in laws])
    np.testing.assert_allclose(forecast.std(), [law.std() for law in laws])
    lower, upper = forecast.pit_bounds(y)
    mass = [law.pmf(v) if name == "Poisson" else 0 for law, v in zip(laws, y, strict=True)]
    np.testing.assert_allclose(upper - lower, mass, atol=1e-13)


def crps_by_quadrature(forecast, row, y):
    """∫ (F(t) − 1[y ≤ t])² dt, over pieces on which a forecast with atoms is constant."""
    one = forecast[[row]]
    low, high = one.quantiles([1e-13, 1 - 1e-13])[0]
    inner = one.quantiles(np.linspace(0.01, 0.99, 60))[0]
    if not forecast.is_continuous:
        inner = np.arange(min(low, y), max(high, y) + 1)
    points = np.unique([low, y, high, *inner])
    total = 0.0
    for a, b in itertools.pairwise(points):
        if forecast.is_continuous:
            total += integrate.quad(lambda t: (one.cdf(t)[0] - (y <= t)) ** 2, a, b)[0]
        else:
            total += (one.cdf(a)[0] - (y <= a)) ** 2 * (b - a)
    return total


@pytest.mark.parametrize(
    ("name", "accuracy"), [("Gaussian", 1e-9), ("mixture", 1e-9), ("Poisson", 1e-9)]
)
def test_crps_is_the_integral(name, accuracy):
    forecast = FORECASTS[name]
    y = outcomes_of(forecast)
    y[:2] = forecast.ppf([0.001, 0.999] + [0.5] * (N - 2))[:2]
    for row in range(3):
        expected = crps_by_quadrature(forecast, row, y[row])
        assert forecast.crps(y)[row] == pytest.approx(expected, rel=accuracy)


@pytest.mark.parametrize("level", [1e-4, 0.2, 0.999])
@pytest.mark.parametrize("shape", [0.3, 2.3])
def test_crps_of_any_distribution_is_right_to_eight_digits(shape, level):
    # closed form: Scheuerer and Möller (2015), https://doi.org/10.1214/15-AOAS843
    law = stats.gamma(shape)
    y = law.ppf(level)
    spread = 2 * stats.gamma(shape + 1).cdf(y) - 1
    exact = y * (2 * law.cdf(y) - 1) - shape * spread - 1 / special.beta(0.5, shape)
    forecast = DistributionForecast(stats.gamma(np.array([shape])))
    assert forecast.crps([y])[0] == pytest.approx(exact, rel=2e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_crps_of_ensembles_is_the_double_sum(weighted):
    forecast = FORECASTS["weighted ensemble" if weighted else "ensemble"]
    y = MEMBERS[:, 0]
    for row in range(N):
        x, w = forecast.members[row], forecast.weights[row]
        apart = np.abs(x[:, None] - x)
        expected = w @ np.abs(x - y[row]) - w @ apart @ w / 2
        assert forecast.crps(y)[row] == pytest.approx(expected, abs=1e-14)
        if not weighted:
            fair = w @ np.abs(x - y[row]) - apart.sum() / (2 * 6 * 5)
            assert forecast.crps(y, estimation="fair")[row] == pytest.approx(fair, abs=1e-14)


def test_kinds_agree_on_the_same_distribution():
    mean, std, y = MEAN[:, 0], STD[:, 0], MEAN[:, 1]
    gaussian = GaussianForecast(mean, std)
    mixture = GaussianMixtureForecast(np.tile(mean[:, None], 2), np.tile(std[:, None], 2))

    class Shifted:  # a normal distribution that is not recognised
        def __init__(self):
            self.law = stats.norm(mean, std)

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return getattr(self.law, name)

    class NotFrozen(Shifted):
        args = None

        def __getattribute__(self, name):
            if name in ("dist", "kwds", "args"):
                raise AttributeError(name)
            return object.__getattribute__(self, name)

    other = DistributionForecast(NotFrozen())
    for twin, tolerance in ((mixture, 1e-12), (other, 1e-5)):
        np.testing.assert_allclose(twin.cdf(y), gaussian.cdf(y), rtol=1e-12)
        np.testing.assert_allclose(twin.ppf(0.3), gaussian.ppf(0.3), rtol=1e-9)
        np.testing.assert_allclose(twin.pit_log_odds(y), gaussian.pit_log_odds(y), rtol=1e-9)
        np.testing.assert_allclose(twin.crps(y), gaussian.crps(y), rtol=tolerance)
    members = EnsembleForecast(gaussian.sample(20_000, random_state=0))
    np.testing.assert_allclose(members.crps(y), gaussian.crps(y), atol=0.02)


@known_everywhere
def test_ppf_is_the_inverse_of_cdf(forecast):
    levels = np.array([0.013, 0.2, 0.5, 0.77, 0.99])
    quantiles = forecast.quantiles(levels)
    assert (forecast.cdf(quantiles) >= levels - 1e-9).all()
    below = np.nextafter(quantiles, -np.inf) - 1e-9 * np.abs(quantiles)
    assert (forecast.cdf(below) <= levels + 1e-9).all()


@known_everywhere
def test_draws_have_the_distribution(forecast):
    draws = forecast.sample(4000, random_state=0)
    assert draws.shape == (N, 4000)
    assert forecast.sample(random_state=0).shape == (N,)
    few = [forecast.sample(5, random_state=0) for _ in range(2)]
    np.testing.assert_array_equal(*few)
    with pytest.raises(ValueError, match="random_state must be an integer from 0"):
        forecast.sample(random_state=-1)
    error = forecast.std() / np.sqrt(4000)
    assert (np.abs(draws.mean(axis=1) - forecast.mean()) < 5 * error).all()
    redrawn = forecast._simulate(np.random.default_rng(0), 100)
    assert redrawn.shape == (100, N)
    lower = np.mean([forecast.sf(y) for y in redrawn])
    assert 0.2 < lower < 0.7


@all_forecasts
def test_forecasts_are_indexed_like_arrays(forecast):
    assert forecast.shape == (N,) == (len(forecast),)
    mask = np.arange(N) % 2 == 0
    y = outcomes_of(forecast)
    expected = forecast.crps(y)
    for rows in (slice(2, 5), [0, 0, 3], np.array([-1, 2]), mask):
        np.testing.assert_allclose(forecast[rows].crps(y[rows]), expected[rows])
        assert forecast[rows, ...].shape == y[rows].shape
    again = forecast[[3, 1, 3, 3, 0]][[1, 1, 3]]
    np.testing.assert_allclose(again.crps(y[[1, 1, 3]]), expected[[1, 1, 3]])
    assert len(forecast[[]]) == 0
    for rows in ([N], [-N - 1]):
        with pytest.raises(IndexError, match=f"there are {N} forecasts; found"):
            forecast[rows]
    for rows in (0, (slice(None), 0), mask[:3], [0.5]):
        with pytest.raises(IndexError, match="must"):
            forecast[rows]


@pytest.mark.parametrize("name", [name for name in FORECASTS if name != "new style"])
def test_forecasts_are_pickled(name):
    forecast = FORECASTS[name]
    forecast.crps(outcomes_of(forecast))
    y = outcomes_of(forecast)
    again = pickle.loads(pickle.dumps(forecast))
    np.testing.assert_array_equal(again.crps(y), forecast.crps(y))


@all_forecasts
def test_values_pair_with_rows_or_have_columns(forecast):
    y = outcomes_of(forecast)
    if isinstance(forecast, QuantileForecast):
        y = forecast.ppf(0.5)
    table = np.column_stack([y, y])
    np.testing.assert_array_equal(forecast.cdf(table), np.column_stack([forecast.cdf(y)] * 2))
    np.testing.assert_array_equal(forecast.cdf(pd.Series(y, index=y)), forecast.cdf(y))
    assert forecast.ppf(0.5).shape == (N,)
    assert forecast.ppf(np.full((N, 3), 0.5)).shape == (N, 3)
    for values in (y[:2], np.zeros((N, 2, 2)), np.full(N, np.nan), ["a"] * N):
        with pytest.raises(ValueError, match=r"^y must"):
            forecast.cdf(values)


def test_log_odds_do_not_saturate():
    z = np.array([-50.0, -30.0, 30.0, 50.0])
    forecast = GaussianForecast(np.zeros(4), 1.0)
    odds = forecast.pit_log_odds(z)
    assert np.isfinite(odds).all()
    assert (np.diff(odds) > 0).all()
    np.testing.assert_allclose(odds, -odds[::-1])
    assert odds[0] == pytest.approx(stats.norm.logcdf(-50))
    for kind in ("ensemble", "Poisson", "quantile"):
        with pytest.raises(ValueError, match="outcomes of positive probability"):
            FORECASTS[kind].pit_log_odds(outcomes_of(FORECASTS[kind]))


def test_pit_of_atoms_is_randomised_between_its_bounds():
    forecast = FORECASTS["Poisson"]
    y = outcomes_of(forecast)
    lower, upper = forecast.pit_bounds(y)
    pit = forecast.pit(y, random_state=0)
    assert ((lower < pit) & (pit < upper)).all()
    np.testing.assert_array_equal(pit, forecast.pit(y, random_state=0))
    assert (pit != forecast.pit(y, random_state=1)).all()


def test_parameters_are_mean_and_log_std():
    expected = np.column_stack([MEAN[:, 0], np.log(STD[:, 0])])
    np.testing.assert_allclose(FORECASTS["Gaussian"]._parameters(), expected)
    certain = EnsembleForecast([[1.0, 1.0], [0.0, 2.0]])._parameters()
    assert np.isfinite(certain).all()
    with pytest.raises(ValueError, match="given="):
        DistributionForecast(stats.cauchy(MEAN[:, 0]))._parameters()


@pytest.mark.parametrize("weights", [None, np.ones(10), np.arange(1.0, 11)])
def test_the_order_of_members_changes_no_bit(weights):
    rng = np.random.default_rng(0)
    members = np.tile(np.arange(10.0), (50, 1))
    order = np.array([rng.permutation(10) for _ in range(50)])
    y = rng.choice(12, size=50) - 0.5
    given = [(members, weights)]
    shuffled = None if weights is None else np.take_along_axis(np.tile(weights, (50, 1)), order, 1)
    given.append((np.take_along_axis(members, order, axis=1), shuffled))
    one, two = (EnsembleForecast(*pair) for pair in given)
    for name in ("cdf", "sf", "crps"):
        np.testing.assert_array_equal(getattr(one, name)(y), getattr(two, name)(y))
    np.testing.assert_array_equal(one.pit_bounds(y), two.pit_bounds(y))
    assert set(one.cdf(10.0)) == set(one.sf(-1.0)) == {1.0}
    assert set(one.cdf(-1.0)) == set(one.sf(10.0)) == {0.0}
    if weights is None or np.ptp(weights) == 0:
        expected = (np.arange(10) + 1) / 10
        np.testing.assert_array_equal(one[:1].cdf(np.arange(10.0)[None])[0], expected)
        np.testing.assert_array_equal(
            ResidualForecast([0.0], np.arange(10.0)).cdf(np.arange(10.0)[None])[0], expected
        )


def test_forecasts_are_neither_sequences_nor_arrays():
    forecast = FORECASTS["Gaussian"]
    for use in (list, np.asarray, lambda f: list(zip(range(N), f, strict=True))):
        with pytest.raises(TypeError, match="A GaussianForecast"):
            use(forecast)


@pytest.mark.parametrize(
    ("dist", "y"),
    [
        # test case of scoringRules' issue 50
        (stats.nbinom(np.array([20000.1]), 0.9), [2222]),
        (stats.poisson(np.array([2000.0, 0.5, 20.0])), [2013, 0, 4000]),
        (stats.binom(np.array([10_000]), 0.5), [5015]),
        (stats.nbinom(5.0, 5 / (5 + np.linspace(50, 3000, 9))), np.linspace(0, 3000, 9).round()),
    ],
)
def test_score_of_counts_is_the_sum_over_all_of_them(dist, y):
    count, y = np.arange(60_000)[:, None], np.array(y, dtype=float)
    expected = np.sum((dist.cdf(count) - (count >= y)) ** 2, axis=0)
    np.testing.assert_allclose(DistributionForecast(dist).crps(y), expected, rtol=1e-12)


def test_counts_without_end_are_refused():
    with pytest.raises(ValueError, match=r"at most 2²² likely ones .*; found more in row 1"):
        DistributionForecast(stats.randint([0, 0], np.array([9, 10**8]))).crps([1, 9])


class KinkedLaw:
    """0.4 N(0, 1), 0.4 of [2, 3] and 0.2 at 5: a quantile function with kinks and jumps."""

    is_continuous = True

    def cdf(self, y):
        return 0.4 * stats.norm.cdf(y) + 0.4 * np.clip(np.subtract(y, 2), 0, 1) + 0.2 * (y >= 5)

    def ppf(self, level):
        level = np.atleast_1d(level)
        low, high = np.full(level.shape, -50.0), np.full(level.shape, 50.0)
        for _ in range(70):
            middle = (low + high) / 2
            is_below = self.cdf(middle) < level
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        return high


def test_score_of_a_law_with_kinks_and_jumps_is_that_by_quadrature_between_them():
    law, y = KinkedLaw(), 2.2
    ends = [-9.0, -3.0, 0.0, 2.0, y, 3.0, 5.0]
    expected = sum(
        integrate.quad(lambda t: float(law.cdf(t) - (t >= y)) ** 2, *pair, epsabs=1e-12)[0]
        for pair in itertools.pairwise(ends)
    )
    assert DistributionForecast(law).crps([y])[0] == pytest.approx(expected, rel=1e-7)


def test_a_score_that_no_quadrature_resolves_is_told():
    class Comb(KinkedLaw):
        def ppf(self, level):
            return np.floor(np.atleast_1d(level) * 1e5) % 2

    with pytest.warns(UserWarning, match="CRPS of 1 forecasts, the first in row 0, may not be"):
        DistributionForecast(Comb()).crps([0.5])
