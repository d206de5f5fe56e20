"""AutoRecalibrator scores its candidates as loops do, and keeps the surest gain."""

import numpy as np
import pytest
from scipy import stats

from skcalib._data import check_forecasts
from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    QuantileForecast,
    ResidualForecast,
)
from skcalib.recalibration import (
    AutoRecalibrator,
    IdentityRecalibrator,
    LocationScaleRecalibrator,
    PITRecalibrator,
    QuantileRecalibrator,
)
from skcalib.recalibration._folds import assign_folds
from skcalib.recalibration._levels import normal_score_p_value
from skcalib.recalibration._registry import (
    RecalibratorChain,
    find_spread_remedy,
    forecast_candidates,
)

rng = np.random.default_rng(0)
N = 120
MEAN, STD = 3 * rng.normal(size=N), rng.uniform(0.5, 2.0, N)
Y = MEAN + STD * rng.normal(size=N)
CANDIDATES = [
    ("scale", LocationScaleRecalibrator(scale_only=True)),
    ("levels", PITRecalibrator("beta")),
]


def test_few_levels_do_not_compete_with_whole_distributions():
    levels = [0.05, 0.5, 0.95]
    candidates = [("levels", PITRecalibrator()), ("few", QuantileRecalibrator(levels=levels))]
    forecast = GaussianForecast(MEAN, STD)
    with pytest.raises(ValueError, match=r"of the same levels .* leave such candidates out"):
        AutoRecalibrator(candidates).fit(forecast, Y)
    grid = QuantileForecast(forecast.quantiles(levels), levels)
    assert AutoRecalibrator(candidates[1:]).fit(grid, Y).best_name_ == "none"


@pytest.mark.parametrize("scoring", ["crps", "log_loss"])
@pytest.mark.parametrize("weighted", [False, True])
def test_results_equal_loops(scoring, weighted):
    forecast = GaussianForecast(MEAN, STD / 2)
    weight = np.random.default_rng(1).random(N) if weighted else np.ones(N)
    given = {"sample_weight": weight} if weighted else {}
    auto = AutoRecalibrator(CANDIDATES, scoring=scoring, cv=3)
    auto.fit(forecast, Y, **given)
    share = weight / weight.sum()
    fold = assign_folds(check_forecasts(Y, forecast, sample_weight=weight if weighted else None), 3)
    losses = []
    for candidate in (
        IdentityRecalibrator(),
        LocationScaleRecalibrator(scale_only=True),
        PITRecalibrator("beta"),
    ):
        row = np.empty(N)
        for k in range(3):
            rest = fold != k
            candidate.fit(forecast[rest], Y[rest], sample_weight=weight[rest])
            new = candidate.transform(forecast[~rest])
            row[~rest] = new.crps(Y[~rest]) if scoring == "crps" else -new.logpdf(Y[~rest])
        losses.append(row)
    gain = losses[0] - np.array(losses)
    error = [np.sqrt(np.sum(share**2 * (g - g @ share) ** 2)) for g in gain]
    assert auto.results_["name"] == ["none", "scale", "levels"]
    np.testing.assert_allclose(auto.results_["loss"], np.array(losses) @ share, rtol=1e-6)
    np.testing.assert_allclose(auto.results_["gain"], gain @ share, atol=1e-6)
    np.testing.assert_allclose(auto.results_["gain_error"], error, atol=1e-6)
    best = np.argmax(gain @ share - error)
    assert auto.best_name_ == auto.results_["name"][best]
    assert auto.weights_ == {auto.best_name_: 1.0}
    assert auto.recalibrators_[auto.best_name_] is auto.best_recalibrator_
    np.testing.assert_array_equal(auto.results_["weight"], np.eye(3)[best])


def test_calibrated_forecasts_stay_as_they_are():
    forecast = GaussianForecast(MEAN, STD)
    auto = AutoRecalibrator().fit(forecast, Y)
    assert auto.best_name_ == "none"
    assert auto.transform(forecast) is forecast


@pytest.mark.parametrize("kind", ["gaussian", "ensemble", "quantiles", "residual"])
def test_standard_deviations_six_times_too_small(kind):
    """Levels alone cannot mend them: the scale comes first."""
    levels = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    narrow = GaussianForecast(MEAN, STD / 6)
    forecast = {
        "gaussian": narrow,
        "ensemble": EnsembleForecast(
            MEAN[:, None] + STD[:, None] / 6 * np.random.default_rng(2).normal(size=(N, 5))
        ),
        "quantiles": QuantileForecast(narrow.quantiles(levels), levels),
        "residual": ResidualForecast(MEAN, np.random.default_rng(3).normal(size=30) / 5),
    }[kind]
    auto = AutoRecalibrator(cv=2).fit(forecast, Y)
    table = dict(zip(auto.results_["name"], auto.results_["loss"], strict=True))
    assert "scale" in auto.best_name_
    if kind != "quantiles":  # which have no tails to run out of
        assert table["scale"] < table["levels"] < table["none"]
    assert type(auto.transform(forecast)) is type(forecast) or "levels" in auto.best_name_


def test_the_order_of_rows_does_not_matter():
    forecast = GaussianForecast(MEAN, STD / 2)
    order = np.random.default_rng(4).permutation(N)
    auto = AutoRecalibrator(CANDIDATES).fit(forecast, Y)
    same = AutoRecalibrator(CANDIDATES).fit(forecast[order], Y[order])
    np.testing.assert_allclose(same.results_["loss"], auto.results_["loss"], rtol=1e-6)


def test_few_samples_try_less():
    # four of five samples are fitted, and 50 are enough for more than a scale
    forecast, auto = GaussianForecast(MEAN, STD), AutoRecalibrator()
    names = {n: auto.fit(forecast[:n], Y[:n]).results_["name"] for n in (10, 62, 63)}
    assert names[10] == names[62] == ["none", "scale"]
    assert names[63] == [
        "none",
        "scale",
        "location and scale",
        "levels",
        "location, scale and levels",
    ]
    # all ranks exist from 99 samples on
    grid = QuantileForecast(forecast.quantiles([0.1, 0.99]), [0.1, 0.99])
    assert "levels" not in forecast_candidates(grid, 98, "crps")
    assert "levels" in forecast_candidates(grid, 99, "crps")
    counts = DistributionForecast(stats.poisson(np.ones(N)))
    assert not forecast_candidates(counts, 15, "crps")
    assert list(forecast_candidates(counts, 16, "crps")) == ["levels"]


def test_a_wrong_spread_does_not_stay_though_no_gain_is_sure():
    generator = np.random.default_rng(0)
    mean = generator.normal(size=10)
    y, forecast = generator.normal(mean), GaussianForecast(mean, np.full(10, 0.5))
    auto = AutoRecalibrator().fit(forecast, y)
    gain, error = auto.results_["gain"][1], auto.results_["gain_error"][1]
    assert abs(gain) < error
    assert auto.best_name_ == "scale"
    assert auto.weights_ == {"scale": 1.0}
    # candidates that are given are judged by their gain alone
    given = [("scale", LocationScaleRecalibrator(scale_only=True))]
    assert AutoRecalibrator(given).fit(forecast, y).best_name_ == "none"
    # two outcomes far out: another scale is surely worse by the CRPS
    z = stats.norm.ppf((np.arange(40) + 0.5) / 40)
    z[[0, -1]] = -5, 5
    forecast = GaussianForecast(MEAN[:40], STD[:40])
    y = MEAN[:40] + STD[:40] * np.random.default_rng(0).permutation(z)
    assert normal_score_p_value(check_forecasts(y, forecast)) < 0.01
    assert AutoRecalibrator().fit(forecast, y).best_name_ == "none"


def test_quantiles_of_the_wrong_spread_are_moved_by_levels():
    names = ["none", "scale", "location and scale", "levels"]
    levels = [0.05, 0.5, 0.95]
    forecast = GaussianForecast(MEAN, STD)
    grid = QuantileForecast(forecast.quantiles(levels), levels)
    for factor, of_grid, of_gaussian in ((1, "none", "none"), (2, "levels", "scale")):
        y = MEAN + factor * (Y - MEAN)
        assert find_spread_remedy(check_forecasts(y, grid), names) == of_grid
        assert find_spread_remedy(check_forecasts(y, forecast), names) == of_gaussian
    assert find_spread_remedy(check_forecasts(y, grid), names[:2]) == "scale"
    assert find_spread_remedy(check_forecasts(y, forecast), names[:1]) == "none"


def test_the_p_value_of_the_spread():
    y, forecast = MEAN + 1.2 * STD, GaussianForecast(MEAN, STD)
    weight = np.random.default_rng(6).random(N)
    n = weight.sum() ** 2 / (weight @ weight)
    exact = normal_score_p_value(check_forecasts(y, forecast, sample_weight=weight))
    assert exact == pytest.approx(2 * stats.chi2.sf(1.44 * n, n), rel=1e-8)
    assert normal_score_p_value(check_forecasts(MEAN, forecast)) == 0
    assert normal_score_p_value(check_forecasts(y, GaussianForecast(MEAN, STD * 1e-9))) == 0
    # levels between 0.05 and 0.95, and beyond: the mean of z² in an interval, by integration
    grid = QuantileForecast(forecast.quantiles([0.05, 0.95]), [0.05, 0.95])
    n_outside = 18
    y = MEAN + STD * np.where(np.arange(N) < n_outside, 3.0, 0.1)
    end = stats.norm.ppf(0.95)
    outside = 1 + end * stats.norm.pdf(end) / 0.05
    inside = 1 - 2 * end * stats.norm.pdf(end) / 0.9
    total = n_outside * outside + (N - n_outside) * inside
    expected = 2 * min(stats.chi2.sf(total, N), stats.chi2.cdf(total, N))
    assert normal_score_p_value(check_forecasts(y, grid)) == pytest.approx(expected, rel=0.1)


def test_both_steps_know_the_weights():
    forecast, weight = GaussianForecast(MEAN, STD / 3), np.random.default_rng(5).random(N)
    scale, levels = LocationScaleRecalibrator(), PITRecalibrator("beta")
    chain = RecalibratorChain(scale, levels).fit(forecast, Y, sample_weight=weight)
    first = scale.fit(forecast, Y, sample_weight=weight).transform(forecast)
    second = levels.fit(first, Y, sample_weight=weight).transform(first)
    np.testing.assert_allclose(chain.transform(forecast).ppf(0.3), second.ppf(0.3), rtol=1e-6)
    np.testing.assert_allclose(chain.transform(forecast).logpdf(Y), second.logpdf(Y), rtol=1e-6)


def test_outcomes_that_moving_makes_impossible():  # 0.3 s: integrals of moved gamma laws
    """Gamma forecasts moved upwards hold small outcomes to be impossible; these lose."""
    generator = np.random.default_rng(7)
    shape = generator.uniform(1, 3, 45)
    y = generator.gamma(shape) * 2
    forecast = DistributionForecast(stats.gamma(shape))
    auto = AutoRecalibrator(scoring="log_loss", cv=2).fit(forecast, y)
    assert auto.best_name_ != "none"
    y[:8] = 1e-8
    candidates = [("both", RecalibratorChain(LocationScaleRecalibrator(), PITRecalibrator("beta")))]
    for scoring in ("crps", "log_loss"):
        auto = AutoRecalibrator(candidates, scoring=scoring, cv=2)
        auto.fit(forecast[:24], y[:24])
        assert np.isfinite(auto.results_["loss"][0])
        assert auto.best_name_ == "none" or np.isfinite(auto.results_["loss"][1])


def test_counts_stay_whole_numbers():
    generator = np.random.default_rng(8)
    rate = generator.uniform(2, 9, 150)
    y = generator.negative_binomial(2, 2 / (2 + rate))
    forecast = DistributionForecast(stats.poisson(rate))
    auto = AutoRecalibrator().fit(forecast, y)
    assert auto.results_["name"] == ["none", "levels"]
    assert auto.best_name_ == "levels"
    assert (auto.transform(forecast).ppf(0.3) % 1 == 0).all()


def test_bad_input():
    forecast = GaussianForecast(MEAN, STD)
    for candidates, message in (
        ([("a", IdentityRecalibrator)], "objects with the methods fit and transform"),
        ([("none", IdentityRecalibrator())], "different names, none of them 'none'"),
        ([IdentityRecalibrator()], "pairs of a name and a recalibrator"),
    ):
        with pytest.raises(ValueError, match=message):
            AutoRecalibrator(candidates).fit(forecast, Y)
    with pytest.raises(ValueError, match="at least 2 samples"):
        AutoRecalibrator().fit(forecast[:1], Y[:1])
    for options, message in (
        ({"scoring": "brier"}, "scoring must be 'crps' or 'log_loss' for forecasts"),
        ({"labels": [0, 1]}, "labels must be None for forecasts"),
    ):
        with pytest.raises(ValueError, match=message):
            AutoRecalibrator(**options).fit(forecast, Y)
    ensemble = EnsembleForecast(np.random.default_rng(6).normal(size=(N, 4)))
    with pytest.raises(ValueError, match="scoring must be 'crps' for forecasts"):
        AutoRecalibrator(scoring="log_loss").fit(ensemble, Y)


def test_the_first_of_two_maps_is_fitted_once_where_it_is_a_candidate_itself(monkeypatch):
    fits = []
    fit_alone = LocationScaleRecalibrator._fit

    def count(self, data):
        fits.append(len(data.value))
        fit_alone(self, data)

    monkeypatch.setattr(LocationScaleRecalibrator, "_fit", count)
    candidates = forecast_candidates(GaussianForecast(MEAN, STD), N, "crps")
    names = ["location and scale", "location, scale and levels"]
    pairs = [(name, candidates[name]) for name in names]
    results = {}
    for name in [*names, None]:
        fits.clear()
        auto = AutoRecalibrator([pair for pair in pairs if name in (None, pair[0])], cv=2)
        results[name] = auto.fit((MEAN, STD), Y).results_["loss"]
    assert fits.count(N // 2) == 2  # the folds
    np.testing.assert_array_equal(results[None][1:], [results[name][1] for name in names])
