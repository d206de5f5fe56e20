"""LocationScaleRecalibrator minimises the mean score, and moves forecasts of every kind."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_info, threadpool_limits

from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    Forecast,
    GaussianForecast,
    GaussianMixtureForecast,
    QuantileForecast,
    ResidualForecast,
)
from skcalib.forecasts._transformed import affine, center_and_spread
from skcalib.recalibration import LocationScaleRecalibrator, PITRecalibrator
from skcalib.recalibration._location_scale import LocationScaleProblem

rng = np.random.default_rng(0)
N = 80
MEAN, STD = 3 * rng.normal(size=N), rng.uniform(0.5, 2.0, N)
Y = 1 + 0.5 * MEAN + np.sqrt(0.3**2 + (2 * STD) ** 2) * rng.normal(size=N)
GAUSSIAN = GaussianForecast(MEAN, STD)
GRID = np.arange(1, 10) / 10
KINDS = {
    "gaussian": GAUSSIAN,
    "mixture": GaussianMixtureForecast(np.c_[MEAN - STD, MEAN + STD], np.c_[STD, STD / 2]),
    "ensemble": EnsembleForecast(MEAN[:, None] + STD[:, None] * rng.normal(size=(N, 9))),
    "quantiles": QuantileForecast(GAUSSIAN.quantiles(GRID), GRID),
    "residual": ResidualForecast(MEAN, rng.normal(size=30)),
    "t": DistributionForecast(stats.t(5, loc=MEAN, scale=STD)),
}
WITH_DENSITY = ["gaussian", "mixture", "t"]
all_kinds = pytest.mark.parametrize("forecast", KINDS.values(), ids=KINDS)


def mean_loss(recalibrator, forecast, y, weight=None):
    moved = recalibrator.transform(forecast)
    losses = moved.crps(y) if recalibrator.scoring == "crps" else -moved.logpdf(y)
    return np.average(losses, weights=weight)


def nearby(recalibrator, names, step):
    for name in names:
        for sign in (-1, 1):
            other = clone(recalibrator)
            other.__dict__.update(vars(recalibrator))
            value = getattr(recalibrator, name)
            if name == "added_std_" and value + sign * step < 0:
                continue
            setattr(other, name, value + sign * step)
            yield other


@pytest.mark.parametrize(
    ("scoring", "kind"),
    [*(("crps", kind) for kind in KINDS), *(("log_loss", kind) for kind in WITH_DENSITY)],
)
def test_no_parameters_nearby_score_better(scoring, kind):
    forecast = KINDS[kind]
    weight = np.random.default_rng(1).random(N)
    fitted = LocationScaleRecalibrator(scoring, prior_weight=0)
    fitted.fit(forecast, Y, sample_weight=weight)
    least = mean_loss(fitted, forecast, Y, weight)
    for step in (1e-3, 0.05):
        for other in nearby(fitted, ("intercept_", "coef_", "added_std_", "factor_"), step):
            assert mean_loss(other, forecast, Y, weight) >= least - 1e-9


@pytest.mark.parametrize("weights", [None, np.arange(1, 10)])
def test_ensembles_are_sorted_and_summed_once_for_all_evaluations(weights, monkeypatch):
    forecast = EnsembleForecast(KINDS["ensemble"].members, weights)
    expected = mean_loss(fit_by_public_scores(forecast), forecast, Y)
    monkeypatch.setattr(EnsembleForecast, "crps", None)
    monkeypatch.setattr(EnsembleForecast, "cdf", None)
    fitted = LocationScaleRecalibrator().fit(forecast, Y)
    monkeypatch.undo()
    # how near the minimum the two searches stop depends on the release of SciPy
    assert mean_loss(fitted, forecast, Y) == pytest.approx(expected, rel=2e-7)


def fit_by_public_scores(forecast):
    """Return the fit of a forecast of which nothing but its public scores is known."""

    class Ensemble(EnsembleForecast):
        _make_crps_with_slope = Forecast._make_crps_with_slope

    return LocationScaleRecalibrator().fit(Ensemble(forecast.members, forecast.weights), Y)


def test_fits_leave_other_cores_to_others(monkeypatch):
    n_threads = []

    def score(forecast):
        n_threads.extend(pool["num_threads"] for pool in threadpool_info() if is_blas(pool))
        return Forecast._make_crps_with_slope(forecast)

    def is_blas(pool):
        return pool["user_api"] == "blas"

    monkeypatch.setattr(GaussianForecast, "_make_crps_with_slope", score)
    with threadpool_limits(2, user_api="blas"):
        LocationScaleRecalibrator().fit(GAUSSIAN, Y)
    assert set(n_threads) == {1}


@pytest.mark.parametrize("is_log", [False, True])
def test_gradients_are_those_of_finite_differences(is_log):
    forecast = KINDS["mixture"]

    def score(y):
        if not is_log:
            return forecast.crps(y), 2 * forecast.cdf(y) - 1
        slope = (forecast.logpdf(y - 1e-6) - forecast.logpdf(y + 1e-6)) / 2e-6
        return -forecast.logpdf(y), slope

    weight = np.random.default_rng(1).dirichlet(np.ones(N))
    problem = LocationScaleProblem(Y, forecast.mean(), forecast.std(), weight, score, is_log)
    at = np.array([0.2, 0.7, 0.3, 1.6])
    for prior in (0.0, 0.4):
        problem = replace(problem, prior=prior, prior_factor=1.3)
        _, gradient = problem.loss(at)
        for k, step in enumerate(np.eye(4) * 1e-5):
            slope = (problem.loss(at + step)[0] - problem.loss(at - step)[0]) / 2e-5
            assert gradient[k] == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("scoring", ["crps", "log_loss"])
def test_prior_samples_are_outcomes_drawn_from_the_forecasts(scoring):
    """A fit with the prior is one without it, to more outcomes: the forecasts' own quantiles."""
    few, more = slice(10), 400
    quantile = stats.norm.ppf((np.arange(more) + 0.5) / more)
    options = {"scoring": scoring, "scale_only": True}
    factor = 1.0
    for n_parameters in (1, 4):
        fitted = LocationScaleRecalibrator(**options).fit(GAUSSIAN[few], Y[few])
        rows = np.append(np.arange(10), np.repeat(np.arange(10), more))
        drawn = MEAN[few, None] + factor * STD[few, None] * quantile
        # 4 prior samples for each parameter, spread over the quantiles of the 10 forecasts
        weight = np.append(np.ones(10), np.full(10 * more, 4 * n_parameters / (10 * more)))
        slow = LocationScaleRecalibrator(**options, prior_weight=0)
        slow.fit(GAUSSIAN[rows], np.append(Y[few], drawn), sample_weight=weight)
        for name in ("intercept_", "coef_", "added_std_", "factor_"):
            assert getattr(fitted, name) == pytest.approx(getattr(slow, name), abs=0.01)
        factor, options["scale_only"] = fitted.factor_, False


def test_ten_samples_are_not_overfitted():
    """Without the prior, calibrated forecasts of 10 samples become 14 % worse on average."""
    generator = np.random.default_rng(10)
    ratios = []
    for _ in range(20):
        mean = generator.normal(size=400)
        forecast, y = GaussianForecast(mean, np.ones(400)), generator.normal(mean)
        fitted = LocationScaleRecalibrator().fit(forecast[:10], y[:10])
        after = fitted.transform(forecast[10:]).crps(y[10:]).mean()
        ratios.append(after / forecast[10:].crps(y[10:]).mean())
    assert np.mean(ratios) < 1.06
    assert max(ratios) < 1.2


def test_scale_of_the_log_score_is_the_root_mean_square():
    weight = np.random.default_rng(2).random(N)
    square = np.average(((Y - MEAN) / STD) ** 2, weights=weight)
    n = weight.sum() ** 2 / (weight @ weight)
    for prior in (0.0, 4.0):
        fitted = LocationScaleRecalibrator("log_loss", scale_only=True, prior_weight=prior)
        fitted.fit(GAUSSIAN, Y, weight)
        expected = np.sqrt((n * square + prior) / (n + prior))
        assert fitted.factor_ == pytest.approx(expected, rel=1e-8)
    assert (fitted.intercept_, fitted.coef_, fitted.added_std_) == (0, 1, 0)
    np.testing.assert_array_equal(fitted.transform(GAUSSIAN).mean(), MEAN)


@pytest.mark.parametrize("size", [1e-150, 1e-8])
def test_outcomes_all_but_at_their_forecasts_leave_what_the_prior_expects(size):
    n, share = 5, 4 / (5 + 4)
    data = (np.zeros(n), STD[:n]), size * Y[:n]
    fitted = LocationScaleRecalibrator("log_loss", scale_only=True).fit(*data)
    assert fitted.factor_ == pytest.approx(np.sqrt(share), rel=1e-8)
    fitted = LocationScaleRecalibrator(scale_only=True).fit(*data)
    # where the derivative of (1 - π) d (√2 - 1) + π (√(2 + 2d²) - d) is 0
    ratio = (1 - (1 - share) / share * (np.sqrt(2) - 1)) / np.sqrt(2)
    assert fitted.factor_ == pytest.approx(ratio / np.sqrt(1 - ratio**2), rel=1e-6)


def test_with_enough_samples_the_crps_takes_outcomes_all_but_at_their_forecasts_at_their_word():
    few, fewer = (
        LocationScaleRecalibrator(scale_only=True).fit((np.zeros(20), STD[:20]), size * Y[:20])
        for size in (1e-3, 1e-6)
    )
    assert fewer.factor_ == pytest.approx(few.factor_ / 1000, rel=0.01)


@pytest.mark.parametrize("prior_weight", [0, 4])
def test_with_the_crps_one_outcome_far_outside_does_not_widen_all_forecasts(prior_weight):
    far, farther = (
        LocationScaleRecalibrator(scale_only=True, prior_weight=prior_weight).fit(
            (np.zeros(20), STD[:20]), np.append(Y[:19], size * STD[19])
        )
        for size in (1e3, 1e6)  # the derivative of its loss is the same
    )
    assert farther.factor_ == pytest.approx(far.factor_, rel=0.01)


def test_quantiles_of_normal_forecasts_have_their_mean_and_standard_deviation():
    np.testing.assert_allclose(center_and_spread(KINDS["quantiles"]), (MEAN, STD), rtol=1e-12)


def test_moved_counts_keep_their_probabilities():
    counts = DistributionForecast(stats.poisson(np.linspace(1, 9, 25)))
    drawn = counts.sample(random_state=0)
    moved = LocationScaleRecalibrator().fit(counts, np.rint(0.3 + 1.7 * drawn)).transform(counts)
    y = moved.sample(random_state=0)  # the same draws, moved: rounding must not lose them
    for actual, expected in (
        (moved.cdf(y), counts.cdf(drawn)),
        (moved.logpdf(y), counts.logpdf(drawn)),
        *zip(moved.pit_bounds(y), counts.pit_bounds(drawn), strict=True),
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-12)
    fine = affine(counts, np.zeros(25), np.ones(25), np.full(25, 1e-6))  # of digits, ten are left
    np.testing.assert_array_equal(fine.cdf(1 + 1e-6 * drawn), counts.cdf(drawn))
    np.testing.assert_array_equal(moved.components().weight, counts.components().weight)
    np.testing.assert_array_equal(moved.cdf(np.inf), 1)
    np.testing.assert_array_equal(moved.cdf(-np.inf), 0)


def test_formula_by_hand():
    fitted = LocationScaleRecalibrator().fit(GAUSSIAN, Y)
    moved = fitted.transform(GaussianForecast([2.0], [3.0]))
    assert moved.mean()[0] == pytest.approx(fitted.intercept_ + 2 * fitted.coef_, rel=1e-12)
    variance = fitted.added_std_**2 + 9 * fitted.factor_**2
    assert moved.std()[0] ** 2 == pytest.approx(variance, rel=1e-12)


def test_finds_the_truth():
    generator = np.random.default_rng(3)
    mean, std = generator.normal(size=20000) * 3, generator.uniform(0.1, 3, 20000)
    y = generator.normal(1 + 0.5 * mean, np.sqrt(0.8**2 + (2 * std) ** 2))
    for scoring in ("crps", "log_loss"):
        fitted = LocationScaleRecalibrator(scoring).fit((mean, std), y)
        found = [fitted.intercept_, fitted.coef_, fitted.added_std_, fitted.factor_]
        np.testing.assert_allclose(found, [1, 0.5, 0.8, 2], atol=0.08)


def test_standard_deviations_six_times_too_small():
    generator = np.random.default_rng(4)
    mean, std = generator.normal(size=2000), generator.uniform(0.5, 2, 2000)
    forecast = GaussianForecast(mean, std / 30)
    y = generator.normal(mean, std)
    fitted = LocationScaleRecalibrator().fit(forecast, y)
    assert np.hypot(fitted.factor_ / 30, 0) == pytest.approx(1, abs=0.1)
    truth = GaussianForecast(mean, std).crps(y).mean()
    assert fitted.transform(forecast).crps(y).mean() == pytest.approx(truth, rel=0.01)


@all_kinds
def test_moved_forecasts_are_those_of_a_moved_outcome(forecast):
    fitted = LocationScaleRecalibrator().fit(forecast, Y)
    moved = fitted.transform(forecast)
    if isinstance(forecast, QuantileForecast):
        centre, spread = forecast.ppf(0.5), np.ptp(forecast.values, axis=1)
        spread = spread / (stats.norm.ppf(0.9) - stats.norm.ppf(0.1))
    else:
        centre, spread = forecast.mean(), forecast.std()
        np.testing.assert_allclose(moved.mean(), fitted.intercept_ + fitted.coef_ * centre)
    factor = np.sqrt(fitted.added_std_**2 + fitted.factor_**2 * spread**2) / spread
    shift = fitted.intercept_ + fitted.coef_ * centre
    # the residuals of all rows, and so their quantiles, hold rounding apart from them
    levels = [0.21, 0.5, 0.77]
    expected = shift[:, None] + factor[:, None] * (forecast.quantiles(levels) - centre[:, None])
    np.testing.assert_allclose(moved.quantiles(levels), expected, atol=1e-9)
    np.testing.assert_allclose(
        moved.crps(Y), factor * forecast.crps(centre + (Y - shift) / factor), atol=1e-9
    )
    if not isinstance(forecast, DistributionForecast):
        assert type(moved) is type(forecast)


def test_other_distributions_agree_with_scipy():
    forecast = KINDS["t"]
    fitted = LocationScaleRecalibrator().fit(forecast, Y)
    moved = fitted.transform(forecast)
    scale = moved.std() / stats.t(5).std()
    expected = DistributionForecast(stats.t(5, loc=moved.mean(), scale=scale))
    at = np.array([-9.0, 0.0, 2.0])
    at = np.broadcast_to(at, (N, 3))
    for name in ("cdf", "logcdf", "logsf", "logpdf"):
        actual = getattr(moved, name)(at)
        np.testing.assert_allclose(actual, getattr(expected, name)(at), rtol=1e-10)
    np.testing.assert_allclose(moved.entropy(), expected.entropy(), rtol=1e-12)
    np.testing.assert_allclose(moved.sf(1.0), expected.sf(1.0), rtol=1e-10)
    np.testing.assert_allclose(moved.pit_log_odds(Y), expected.pit_log_odds(Y), rtol=1e-10)
    np.testing.assert_allclose(moved[3:5].ppf(0.3), expected.ppf(0.3)[3:5], rtol=1e-10)
    sample = moved.sample(4000, random_state=0)
    np.testing.assert_allclose(sample.mean(axis=1), moved.mean(), atol=0.6)


@all_kinds
def test_units_and_order_do_not_matter(forecast):
    # steps have kinks, so that the first of the two searches with a prior ends roughly
    options = {"prior_weight": 4.0 if forecast.is_continuous else 0.0}
    fitted = LocationScaleRecalibrator(**options).fit(forecast, Y)
    order = np.random.default_rng(5).permutation(N)
    same = LocationScaleRecalibrator(**options).fit(forecast[order], Y[order])
    assert same.score(forecast, Y) == pytest.approx(fitted.score(forecast, Y), rel=1e-5)
    if not isinstance(forecast, EnsembleForecast):  # whose optimum is flat, and has kinks
        assert same.factor_ == pytest.approx(fitted.factor_, rel=1e-4)
    unit = LocationScaleRecalibrator()
    if isinstance(forecast, GaussianForecast):
        unit.fit((100 + 7 * MEAN, 7 * STD), 100 + 7 * Y)
        assert unit.factor_ == pytest.approx(fitted.factor_, rel=1e-5)
        assert unit.coef_ == pytest.approx(fitted.coef_, rel=1e-5)
        assert unit.added_std_ == pytest.approx(7 * fitted.added_std_, rel=1e-4)


def test_weights_are_repetitions():
    count = np.random.default_rng(6).integers(0, 3, size=N)
    # repeated rows are more samples beside the prior ones
    weighted = LocationScaleRecalibrator(prior_weight=0).fit(GAUSSIAN, Y, sample_weight=count)
    rows = np.repeat(np.arange(N), count)
    repeated = LocationScaleRecalibrator(prior_weight=0).fit(GAUSSIAN[rows], Y[rows])
    assert weighted.coef_ == pytest.approx(repeated.coef_, rel=1e-6)
    assert weighted.factor_ == pytest.approx(repeated.factor_, rel=1e-6)


def test_members_that_agree_stay_together():
    members = KINDS["ensemble"].members.copy()
    members[0] = 2.0
    forecast = EnsembleForecast(members)
    fitted = LocationScaleRecalibrator().fit(forecast, Y)
    moved = fitted.transform(forecast)
    np.testing.assert_allclose(moved.members[0], fitted.intercept_ + 2 * fitted.coef_)
    assert moved.is_exchangeable


def test_in_pipelines_and_grid_searches():
    pipeline = make_pipeline(LocationScaleRecalibrator(), PITRecalibrator("beta"))
    grid = {"locationscalerecalibrator__scale_only": [False, True]}
    search = GridSearchCV(pipeline, grid, error_score="raise").fit(GAUSSIAN, Y)
    assert search.best_params_["locationscalerecalibrator__scale_only"] is False
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    fitted = search.best_estimator_[0]
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(
        copy.transform(GAUSSIAN).mean(), fitted.transform(GAUSSIAN).mean()
    )
    assert fitted.score(GAUSSIAN, Y) == pytest.approx(-fitted.transform(GAUSSIAN).crps(Y).mean())


def test_bad_input():
    recalibrator = LocationScaleRecalibrator("log_loss")
    with pytest.raises(ValueError, match="scoring must be 'crps' for forecasts without a density"):
        recalibrator.fit(KINDS["ensemble"], Y)
    with pytest.raises(ValueError, match="y must be 1-D, with one outcome for each of the 80"):
        recalibrator.fit(GAUSSIAN, Y[:-1])
    with pytest.raises(TypeError, match="X must be a forecast; found an array of shape"):
        recalibrator.fit(np.c_[MEAN, STD], Y)
    with pytest.raises(NotFittedError):
        recalibrator.transform(GAUSSIAN)
    with pytest.raises(ValueError, match=r"at least 2 outcomes .* found 1"):
        recalibrator.fit(GAUSSIAN[:1], Y[:1])
    with pytest.raises(ValueError, match="'scoring' parameter"):
        LocationScaleRecalibrator("rmse").fit(GAUSSIAN, Y)


def test_forecasts_that_hit_every_outcome_are_warned_about():
    with pytest.warns(UserWarning, match="has no optimum"):
        LocationScaleRecalibrator("log_loss", prior_weight=0).fit(
            GaussianForecast(MEAN + 1, 1.0), MEAN
        )
    # prior samples keep some spread
    LocationScaleRecalibrator("log_loss").fit(GaussianForecast(MEAN + 1, 1.0), MEAN)


def test_forecasts_that_are_as_wide_everywhere_are_searched_once():
    forecast = ResidualForecast(MEAN, Y - MEAN)
    mean, std = center_and_spread(forecast)
    weight = np.full(len(Y), 1 / len(Y))
    (start,) = LocationScaleProblem(Y, mean, std, weight, None, False).starts()
    assert start == pytest.approx(np.mean(((Y - mean) / std) ** 2))


def test_outcomes_whose_squares_overflow_are_refused():
    with pytest.raises(ValueError, match=r"y must lie within ±1e\+150.*found 1e\+300"):
        LocationScaleRecalibrator().fit((np.zeros(20), np.ones(20)), np.full(20, 1e300))


@pytest.mark.parametrize("unit", [2.0**-990, 2.0**490])
@pytest.mark.parametrize("scoring", ["crps", "log_loss"])
def test_tiny_and_huge_units_do_not_matter(scoring, unit):
    plain, moved = (
        LocationScaleRecalibrator(scoring).fit(GaussianForecast(one * MEAN, one), one * Y)
        for one in (1.0, unit)
    )
    np.testing.assert_allclose(
        [moved.intercept_ / unit, moved.coef_, moved.added_std_ / unit, moved.factor_],
        [plain.intercept_, plain.coef_, plain.added_std_, plain.factor_],
        rtol=1e-5,
        atol=1e-7,
    )


def test_ratios_whose_squares_overflow_are_refused():
    std = np.where(np.arange(len(Y)) == 3, 1e-300, 1.0)
    with pytest.raises(ValueError, match=r"X must hold standard deviations of 0.*found 1e-300"):
        LocationScaleRecalibrator().fit((MEAN, std), Y)
