"""Recalibration of the forecasts of each subgroup."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

from skcalib.forecasts import GaussianForecast, QuantileForecast
from skcalib.recalibration import (
    IdentityRecalibrator,
    LocationScaleRecalibrator,
    PITRecalibrator,
    QuantileRecalibrator,
    SubgroupRecalibrator,
)

SCALE = np.array([0.5, 1.0, 3.0])


def problem(rng, n, scale=SCALE):
    by = rng.permutation(np.arange(n) % len(scale))
    mean = rng.normal(size=n)
    return GaussianForecast(mean, np.ones(n)), rng.normal(mean, scale[by]), by


@pytest.mark.parametrize(
    "recalibrator", [PITRecalibrator(), PITRecalibrator("beta"), LocationScaleRecalibrator()]
)
def test_each_subgroup_is_recalibrated_by_its_samples(recalibrator):
    rng = np.random.default_rng(0)
    forecast, y, by = problem(rng, 120)
    weight = rng.random(120)
    new, outcome, new_by = problem(rng, 30)
    fitted = SubgroupRecalibrator(recalibrator).fit(forecast, y, weight, by=by)
    found = fitted.transform(new, by=new_by)
    for k in range(3):
        own, rows = by == k, new_by == k
        alone = recalibrator.fit(forecast[own], y[own], weight[own]).transform(new[rows])
        np.testing.assert_allclose(
            found[rows].cdf(outcome[rows]), alone.cdf(outcome[rows]), atol=1e-7
        )
        np.testing.assert_allclose(found[rows].interval(0.8), alone.interval(0.8), atol=1e-7)
        np.testing.assert_allclose(found.interval(0.8)[0][rows], alone.interval(0.8)[0], atol=1e-7)
        np.testing.assert_allclose(found.mean()[rows], alone.mean(), atol=1e-7)
    assert fitted.score(new, outcome, by=new_by) == pytest.approx(-found.crps(outcome).mean())


def test_conformal_intervals_cover_in_each_subgroup():
    # the expected coverage of intervals by ranks of 39 samples is 36/40, exactly
    coverage, common = np.zeros(3), np.zeros(3)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        forecast, y, by = problem(rng, 117)
        fitted = SubgroupRecalibrator(PITRecalibrator()).fit(forecast, y, by=by)
        new = GaussianForecast(np.zeros(3), np.ones(3))
        low, high = fitted.transform(new, by=[0, 1, 2]).interval(0.9)
        coverage += norm.cdf(high, scale=SCALE) - norm.cdf(low, scale=SCALE)
        low, high = fitted.recalibrator_.transform(new).interval(0.9)
        common += norm.cdf(high, scale=SCALE) - norm.cdf(low, scale=SCALE)
    # a Beta(36, 4) variable has the standard deviation 0.047
    np.testing.assert_allclose(coverage / 60, 0.9, atol=4 * 0.047 / np.sqrt(60))
    assert common[0] / 60 > 0.97
    assert common[2] / 60 < 0.8


def test_small_and_unknown_subgroups_get_the_common_recalibrator():
    rng = np.random.default_rng(0)
    forecast, y, by = problem(rng, 90)
    by = np.where(np.arange(90) < 5, "few", np.array(["a", "b", "c"])[by])
    fitted = SubgroupRecalibrator(LocationScaleRecalibrator(), min_samples=6)
    fitted.fit(forecast, y, by=by)
    assert fitted.subgroups_ == ["a", "b", "c", "few"]
    assert list(fitted.subgroup_recalibrators_) == ["a", "b", "c"]
    common = LocationScaleRecalibrator().fit(forecast, y).transform(forecast[:3])
    found = fitted.transform(forecast[:3], by=["few", "new", None])
    np.testing.assert_allclose(found.mean(), common.mean())
    np.testing.assert_allclose(found.std(), common.std())


def test_prior_weights_go_from_separate_to_common():
    rng = np.random.default_rng(0)
    forecast, y, by = problem(rng, 90, np.array([1.0, 3.0]))
    new = GaussianForecast([0.0], [1.0])
    std = {}
    for prior_weight in (0.0, 20.0, 45.0, 1e9):
        one = SubgroupRecalibrator(LocationScaleRecalibrator(), prior_weight=prior_weight)
        std[prior_weight] = one.fit(forecast, y, by=by).transform(new, by=[1]).std()[0]
    assert list(std.values()) == sorted(std.values(), reverse=True)
    common = LocationScaleRecalibrator().fit(forecast, y).transform(new).std()[0]
    assert std[45.0] == pytest.approx(common, rel=1e-6)  # all samples count as themselves
    assert std[1e9] == pytest.approx(common, rel=1e-6)
    own = by == 1
    alone = LocationScaleRecalibrator().fit(forecast[own], y[own]).transform(new).std()[0]
    assert std[0.0] == pytest.approx(alone, rel=1e-9)
    weight = np.where(own, 1.0, 20 / 45)
    drawn = LocationScaleRecalibrator().fit(forecast, y, weight).transform(new).std()[0]
    assert std[20.0] == pytest.approx(drawn, rel=1e-6)


def test_quantiles_and_crossings():
    rng = np.random.default_rng(0)
    levels = [0.1, 0.5, 0.9]
    forecast = QuantileForecast(np.tile(norm.ppf(levels), (100, 1)), levels)
    by = {"a": np.arange(100) % 2, "b": ["x"] * 50 + ["y"] * 50}
    y = rng.normal(0, 1.0 + by["a"])
    found = SubgroupRecalibrator(QuantileRecalibrator()).fit_transform(forecast, y, by=by)
    assert isinstance(found, QuantileForecast)
    assert len(np.unique(found.values, axis=0)) == 4


def test_bad_input():
    rng = np.random.default_rng(0)
    forecast, y, by = problem(rng, 60)
    fitted = SubgroupRecalibrator(IdentityRecalibrator())
    with pytest.raises(NotFittedError):
        fitted.transform(forecast, by=by)
    with pytest.raises(ValueError, match=r"\(the predictions: 60, by: 59\)"):
        fitted.fit(forecast, y, by=by[1:])
    with pytest.raises(ValueError, match=r"such as PITRecalibrator\(\)"):
        SubgroupRecalibrator("conformal").fit(forecast, y, by=by)
    with pytest.raises(ValueError, match="'min_samples' parameter"):
        SubgroupRecalibrator(min_samples=0).fit(forecast, y, by=by)
    with pytest.raises(ValueError, match="by must have the columns that it had at fit"):
        fitted.fit(forecast, y, by=by).transform(forecast[:2], by=["a", "b"])
