"""Scores and calibration errors of forecasts are those of other packages."""

import numpy as np
import pytest
from scipy.stats import poisson, t as student

from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianMixtureForecast,
    QuantileForecast,
)
from skcalib.metrics import (
    continuous_ranked_probability_loss,
    interval_loss,
    quantile_calibration_error,
    sharpness,
)

# what the peers warn about is theirs
pytestmark = pytest.mark.filterwarnings("ignore")


def peer(module):
    return pytest.importorskip(module, exc_type=ImportError)


def problem(seed=0, n=40):
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), rng.uniform(0.3, 2, size=n)
    return mean + 1.3 * std * rng.normal(size=n), mean, std, rng


def losses(y, forecast, **options):
    return continuous_ranked_probability_loss(y, forecast, average=None, **options)


def test_scoringrules():
    sr = peer("scoringrules")
    y, mean, std, rng = problem()
    np.testing.assert_allclose(
        losses(y, (mean, std)), sr.crps_normal(y, mean, std), rtol=1e-12, atol=1e-13
    )
    means, stds, weights = rng.normal(size=(40, 3)), rng.random((40, 3)) + 0.1, rng.random((40, 3))
    weights /= weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        losses(y, GaussianMixtureForecast(means, stds, weights)),
        sr.crps_mixnorm(y, means, stds, weights),
        rtol=1e-11,
        atol=1e-13,
    )
    np.testing.assert_allclose(
        losses(y, DistributionForecast(student(5, mean, std))),
        sr.crps_t(y, 5, mean, std),
        rtol=1e-6,
    )
    counts = rng.poisson(np.exp(mean))
    np.testing.assert_allclose(
        losses(counts, DistributionForecast(poisson(np.exp(mean)))),
        sr.crps_poisson(counts, np.exp(mean)),
        rtol=1e-10,
        atol=1e-12,
    )


def test_ensembles_of_scoringrules():
    sr = peer("scoringrules")
    y, mean, _, rng = problem()
    members, weights = mean[:, None] + rng.normal(size=(40, 9)), rng.random((40, 9))
    for estimation, theirs in (("ecdf", "nrg"), ("fair", "fair")):
        found = losses(y, EnsembleForecast(members), estimation=estimation)
        expected = sr.crps_ensemble(y, members, estimator=theirs)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
        found = losses(y, EnsembleForecast(members), estimation=estimation, thresholds=(-0.5, 1.0))
        expected = sr.twcrps_ensemble(y, members, -0.5, 1.0, estimator=theirs)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    found = losses(y, EnsembleForecast(members, weights))
    share = weights / weights.sum(axis=1, keepdims=True)
    expected = sr.crps_ensemble(y, members, ens_w=share, estimator="nrg")
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_thresholds_of_scoringrules():
    # the score of a normal law censored at both thresholds, and of the outcome moved there
    sr = peer("scoringrules")
    y, mean, std, _ = problem()
    found = losses(y, (mean, std), thresholds=(-0.5, 1.0))
    expected = sr.crps_cnormal(np.clip(y, -0.5, 1.0), mean, std, -0.5, 1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_quantiles_and_intervals_of_scoringrules():
    # their CRPS is the mean over equally spaced levels, ours has the weight of the spacing
    sr = peer("scoringrules")
    y, mean, _, rng = problem()
    levels = np.arange(1, 20) / 20
    values = mean[:, None] + np.sort(rng.normal(size=(40, 19)), axis=1)
    found = losses(y, QuantileForecast(values, levels))
    expected = 19 / 20 * sr.crps_quantile(y, values, levels)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    found = interval_loss(y, QuantileForecast(values, levels), coverage=0.9, average=None)
    expected = sr.interval_score(y, values[:, 0], values[:, -1], 0.1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_properscoring():
    ps = peer("properscoring")
    y, mean, std, rng = problem()
    np.testing.assert_allclose(losses(y, (mean, std)), ps.crps_gaussian(y, mean, std), rtol=1e-12)
    members, weights = mean[:, None] + rng.normal(size=(40, 9)), rng.random((40, 9))
    np.testing.assert_allclose(
        losses(y, EnsembleForecast(members)), ps.crps_ensemble(y, members), rtol=1e-12
    )
    np.testing.assert_allclose(
        losses(y, EnsembleForecast(members, weights)),
        ps.crps_ensemble(y, members, weights=weights),
        rtol=1e-12,
    )


@pytest.mark.parametrize("level_type", ["quantile", "interval"])
def test_uncertainty_toolbox(level_type):
    uct = peer("uncertainty_toolbox")
    y, mean, std, _ = problem()
    # its intervals at the levels 0 and 1 hold nothing and everything, as ours do
    levels = np.linspace(0, 1, 100)
    calls = {
        "l1": uct.metrics_calibration.mean_absolute_calibration_error,
        "l2": uct.metrics_calibration.root_mean_squared_calibration_error,
    }
    for norm, theirs in calls.items():
        found = quantile_calibration_error(
            y, (mean, std), norm=norm, level_type=level_type, levels=levels
        )
        assert found == pytest.approx(theirs(mean, std, y, prop_type=level_type), abs=1e-12)
    # many levels come near to all levels
    many = calls["l1"](mean, std, y, num_bins=4000, prop_type=level_type)
    assert quantile_calibration_error(y, (mean, std), level_type=level_type) == pytest.approx(
        many, abs=1e-3
    )


def test_losses_and_sharpness_of_uncertainty_toolbox():
    uct = peer("uncertainty_toolbox")
    y, mean, std, _ = problem()
    crps = uct.metrics_scoring_rule.crps_gaussian(mean, std, y)
    assert continuous_ranked_probability_loss(y, (mean, std)) == pytest.approx(crps, rel=1e-12)
    # it averages variances
    equal = np.full(40, 2.0)
    assert sharpness((mean, equal)).std == pytest.approx(uct.metrics_calibration.sharpness(equal))
