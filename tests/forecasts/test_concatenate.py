"""Forecasts of several models, side by side, answer as each of them does."""

import numpy as np
import pytest
from scipy import stats

from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    GaussianMixtureForecast,
    QuantileForecast,
    ResidualForecast,
    concatenate,
)
from skcalib.forecasts._derived import ppf_log_odds
from skcalib.forecasts._transformed import ConcatenatedForecast
from skcalib.metrics import continuous_ranked_probability_loss, score_decomposition

rng = np.random.default_rng(0)
Y = rng.normal(size=5)
PAIRS = {
    "gaussian": [GaussianForecast(rng.normal(size=n), rng.random(n) + 1) for n in (2, 3)],
    "mixture": [
        GaussianMixtureForecast(rng.normal(size=(n, 2)), rng.random((n, 2)) + 1) for n in (2, 3)
    ],
    "ensemble": [EnsembleForecast(rng.normal(size=(n, 4))) for n in (2, 3)],
    "other sizes": [EnsembleForecast(rng.normal(size=(n, s))) for n, s in ((2, 4), (3, 9))],
    "weighted": [
        EnsembleForecast(rng.normal(size=(n, s)), rng.random((n, s))) for n, s in ((2, 4), (3, 6))
    ],
    "quantiles": [
        QuantileForecast(np.sort(rng.normal(size=(n, 3)), axis=1), [0.2, 0.5, 0.8]) for n in (2, 3)
    ],
    "residual": [ResidualForecast(rng.normal(size=n), [-1.0, 0.5, 2.0]) for n in (2, 3)],
}
MIXED = {
    "distributions": [DistributionForecast(stats.t(5, loc=rng.normal(size=n))) for n in (2, 3)],
    "two kinds": [PAIRS["gaussian"][0], PAIRS["mixture"][1]],
    "other residuals": [PAIRS["residual"][0], ResidualForecast(rng.normal(size=3), [0.0, 1.0])],
}


def expected(parts, method, *arguments):
    first = getattr(parts[0], method)(*(a[:2] for a in arguments))
    second = getattr(parts[1], method)(*(a[2:] for a in arguments))
    return np.concatenate([first, second])


@pytest.mark.parametrize("name", [*PAIRS, *MIXED])
def test_answers_are_those_of_the_parts(name):
    parts = (PAIRS | MIXED)[name]
    whole = concatenate(parts)
    if name in PAIRS:
        assert type(whole) is type(parts[0])
    else:
        assert isinstance(whole, ConcatenatedForecast)
    assert whole.is_continuous == parts[0].is_continuous
    order = np.array([4, 0, 3, 2, 1, 0])
    methods = ["crps"] if name == "quantiles" else ["crps", "cdf", "logcdf", "logsf"]
    for method in methods:
        want = expected(parts, method, Y)
        np.testing.assert_allclose(getattr(whole, method)(Y), want, atol=1e-12)
        np.testing.assert_allclose(getattr(whole[order], method)(Y[order]), want[order], atol=1e-12)
    level = np.linspace(0.21, 0.79, 5)
    np.testing.assert_allclose(whole.ppf(level), expected(parts, "ppf", level), atol=1e-9)
    bounds = [part.pit_bounds(y) for part, y in zip(parts, (Y[:2], Y[2:]), strict=True)]
    np.testing.assert_allclose(whole.pit_bounds(Y), np.hstack(bounds), atol=1e-12)
    if name != "quantiles":
        np.testing.assert_allclose(whole.mean(), expected(parts, "mean"), atol=1e-12)
        np.testing.assert_allclose(whole.std(), expected(parts, "std"), atol=1e-12)
        assert whole.sample(3, random_state=0).shape == (5, 3)
        location, variance, weight = whole.components()
        mean = (weight * location).sum(axis=1)
        np.testing.assert_allclose(mean, whole.mean(), atol=1e-3)
        np.testing.assert_allclose(weight.sum(axis=1), 1)
        assert variance.shape == weight.shape
    if whole.is_continuous:
        np.testing.assert_allclose(
            whole.pit_log_odds(Y), expected(parts, "pit_log_odds", Y), atol=1e-12
        )
        z = np.tile([-50.0, 0.3, 50.0], (5, 1))
        want = np.vstack([ppf_log_odds(parts[0], z[:2]), ppf_log_odds(parts[1], z[2:])])
        np.testing.assert_allclose(ppf_log_odds(whole, z), want, rtol=1e-9)


def test_slices_of_side_by_side_forecasts():
    whole = concatenate(MIXED["two kinds"])
    assert len(whole[3:]) == 2
    assert len(whole[[0]]) == 1
    np.testing.assert_array_equal(whole[[0]].mean(), whole.mean()[:1])
    np.testing.assert_array_equal(whole[-1:].mean(), whole.mean()[-1:])
    np.testing.assert_array_equal(whole[whole.mean() > 0].mean(), whole.mean()[whole.mean() > 0])


def test_arguments_may_be_passed_by_name():
    whole = concatenate(MIXED["two kinds"])
    named = (
        whole.interval(coverage=0.8),
        whole.quantiles(levels=[0.1, 0.5]),
        whole.components(n_nodes=5),
    )
    by_position = whole.interval(0.8), whole.quantiles([0.1, 0.5]), whole.components(5)
    for actual, wanted in zip(named, by_position, strict=True):
        np.testing.assert_array_equal(actual, wanted)


def test_scores_of_counts_side_by_side():
    rate, y = np.array([1.0, 3.0, 2.0, 5.0, 4.0]), np.array([0, 4, 1, 3, 6])
    parts = [DistributionForecast(stats.poisson(rate[rows])) for rows in ([0, 1], [2, 3, 4])]
    whole, joint = (
        score_decomposition(y, forecast, score="crps")
        for forecast in (concatenate(parts), DistributionForecast(stats.poisson(rate)))
    )
    np.testing.assert_allclose(whole.miscalibration, joint.miscalibration, rtol=1e-12)


def test_scores_between_thresholds_of_members_beside_a_density():
    for part in (PAIRS["gaussian"][0], MIXED["distributions"][0], PAIRS["residual"][0]):
        parts = part, PAIRS["ensemble"][1]
        whole, options = concatenate(parts), {"thresholds": (-0.5, 1.0), "average": None}
        want = [
            continuous_ranked_probability_loss(y, forecast, **options)
            for y, forecast in zip((Y[:2], Y[2:]), parts, strict=True)
        ]
        score = continuous_ranked_probability_loss(Y, whole, **options)
        np.testing.assert_allclose(score, np.concatenate(want), rtol=1e-6)


def test_one_forecast_is_returned_as_it_is():
    assert concatenate(PAIRS["gaussian"][:1]) is PAIRS["gaussian"][0]


def test_whatever_is_a_forecast_is_taken():
    whole = concatenate([([1.0, 2.0], [1.0, 3.0]), GaussianForecast([5.0], [2.0])])
    assert type(whole) is GaussianForecast
    np.testing.assert_array_equal(whole.mean(), [1, 2, 5])


@pytest.mark.parametrize(
    ("forecasts", "match"),
    [
        ([], "forecasts must hold at least one forecast; found none. Pass a list"),
        ([PAIRS["gaussian"][0], 3.0], r"forecasts\[1\] must be a forecast; found float. Pass"),
        (PAIRS["gaussian"][0], "cannot be iterated over"),
    ],
)
def test_what_is_no_list_of_forecasts(forecasts, match):
    with pytest.raises((TypeError, ValueError), match=match):
        concatenate(forecasts)
