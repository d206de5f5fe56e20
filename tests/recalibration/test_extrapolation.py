"""Beyond the predictions that they were fitted to, recalibrators go on no faster than before."""

import itertools

import numpy as np
import pytest
from scipy.special import expit, logit, softmax

from skcalib.forecasts import GaussianForecast
from skcalib.forecasts._quantile import select_levels
from skcalib.recalibration import (
    NonhomogeneousRegressionRecalibrator,
    QuantileRecalibrator,
    SigmoidRecalibrator,
)
from skcalib.recalibration._registry import (
    _MULTICLASS_SETTINGS,
    FORECAST_RECALIBRATORS,
    RECALIBRATORS,
)

FORECAST_CASES = FORECAST_RECALIBRATORS | {
    "affine regression": NonhomogeneousRegressionRecalibrator(spread="affine"),
    "regression without a prior": NonhomogeneousRegressionRecalibrator(prior_weight=0),
    "intervals": QuantileRecalibrator("interval"),
}
SPREADS = {
    "hardly vary": lambda rng, n: 1 + 0.01 * rng.random(n),
    "vary": lambda rng, n: np.exp(0.4 * rng.normal(size=n)),
}


@pytest.mark.parametrize("kind", SPREADS)
@pytest.mark.parametrize("name", FORECAST_CASES)
def test_spreads_ten_times_beyond_those_of_the_fit(name, kind):
    """The width stays between the nearest one of the fit, and that times the factor of the spread.

    Both are right somewhere: where errors do not grow further, and where they grow as predicted.
    Between them the CRPS is at most that of a spread that is ten times wrong; an exponent, or a
    square, goes beyond any bound. Where errors exceed the spread, a constant added to it stays
    between them, too.
    """
    for seed in range(6):
        rng = np.random.default_rng(seed)
        std, mean = SPREADS[kind](rng, 60), rng.normal(size=60)
        y = mean + 2 * std**1.7 * rng.normal(size=60)
        low, high = std.min(), std.max()
        new = GaussianForecast(np.zeros(4), [low / 10, low, high, 10 * high])
        fit_forecast = GaussianForecast(mean, std)
        if isinstance(FORECAST_CASES[name], QuantileRecalibrator):
            new, fit_forecast = (select_levels(f, [0.1, 0.9]) for f in (new, fit_forecast))
        bottom, top = FORECAST_CASES[name].fit(fit_forecast, y).transform(new).interval(0.8)
        below, least, most, beyond = top - bottom
        assert (1 - 1e-9) * least / 10 <= below <= (1 + 1e-9) * least
        assert (1 - 1e-9) * most <= beyond <= 10 * (1 + 1e-9) * most


# True log-odds of the last of two classes, as a function of the predicted ones.
TRUE_LOG_ODDS = {
    "overconfident": lambda x: 0.5 * x,
    "underconfident": lambda x: 2 * x,
    "bent": lambda x: x + 0.4 * x**2 - 0.5,
    "hollow": lambda x: np.abs(x) - 1,
    "falling": lambda x: -x,
}
CLASS_CASES = {
    name: entry.recalibrator
    for name, entry in (RECALIBRATORS | _MULTICLASS_SETTINGS).items()
    if name not in ("decision", "any decision")  # they add to probabilities, and reach 0 and 1
}
DIRECTIONS = {
    2: [[0, 1], [0, -1]],
    3: [[1, 0, -1], [0, 1, -1], [1, -1, 0], [1, 1, -1], [-1, -1, 1], [0, -1, 1]],
}


def log_odds_along_rays(recalibrator, distances, directions):
    """Calibrated log-odds of all pairs of classes (m, rays · pairs) at m distances."""
    first, second = np.triu_indices(len(directions[0]), 1)
    columns = []
    for direction in directions:
        proba = recalibrator.predict_proba(softmax(np.outer(distances, direction), axis=1))
        columns.append(np.log(proba[:, first]) - np.log(proba[:, second]))
    return np.hstack(columns)


@pytest.mark.filterwarnings("ignore")  # of separated or missing classes, and few samples
@pytest.mark.parametrize("n_classes", DIRECTIONS)
@pytest.mark.parametrize("name", CLASS_CASES)
def test_log_odds_ten_times_beyond_those_of_the_fit(name, n_classes):
    """They are finite, and go on no steeper than within the fit or than the predictions do.

    So the log loss of new predictions grows at most as fast as with the steepest part of the map;
    the slope of a square is ten times as large there. Half as much again is allowed, as a log p − b
    log(1 − p) is straight only far out. Nor do they turn back as a square does, by which the most
    certain predictions become the opposite: at most half as steeply, as what products are added to
    goes on where they end.
    """
    if name == "trees" and n_classes == 2:
        pytest.skip("trees are for more classes")
    directions = 2.0 * np.array(DIRECTIONS[n_classes])
    for truth, seed in itertools.product(TRUE_LOG_ODDS.values(), range(2)):
        rng = np.random.default_rng(seed)
        logits = rng.uniform(-2, 2, size=(100, n_classes))
        logits[:, 0] *= n_classes > 2
        proba = softmax(truth(logits) - truth(logits[:, :1]) * (n_classes == 2), axis=1)
        label = (proba.cumsum(axis=1) < rng.random((100, 1))).sum(axis=1).clip(max=n_classes - 1)
        label[:n_classes] = np.arange(n_classes)
        fitted = CLASS_CASES[name].fit(softmax(logits, axis=1), label)
        inside = log_odds_along_rays(fitted, np.linspace(0, 1, 21), directions)
        beyond = log_odds_along_rays(fitted, np.arange(1, 11), directions)
        assert np.isfinite(beyond).all()
        slopes = np.diff(inside, axis=0) / 0.05
        steepest = max(np.abs(slopes).max(), np.ptp(directions, axis=1).max())
        assert np.abs(np.diff(beyond, axis=0)).max() <= 1.5 * steepest
        turn = (beyond[0] - beyond[-1]) / 9 * np.sign(slopes[-1])
        assert turn.max() <= 0.5 * steepest


NEARLY_CONSTANT_CASES = {
    name: entry.recalibrator
    for name, entry in (RECALIBRATORS | _MULTICLASS_SETTINGS).items()
    if "pairwise" not in name  # products of log-probabilities that hardly vary have no bounds
}


@pytest.mark.filterwarnings("ignore")  # of few samples and equal predictions
@pytest.mark.parametrize("n_classes", DIRECTIONS)
@pytest.mark.parametrize("name", NEARLY_CONSTANT_CASES)
def test_log_odds_that_hardly_vary_tell_little_of_others(name, n_classes):
    """New predictions lose at most 0.4 of log loss, where those of the fit were all but the same.

    They are calibrated, with a standard deviation of 1; in the fit it was 0.01, so that the noise
    of a slope is 6 or more. The most are lost by constants beyond the fit, 0.36 by those of bins.
    """
    if name == "trees" and n_classes == 2:
        pytest.skip("trees are for more classes")
    for (centre, n), seed in itertools.product([(0, 100), (1, 100), (1, 1000)], range(2)):
        rng = np.random.default_rng(seed)
        logits = centre * np.arange(n_classes) + 0.01 * rng.normal(size=(n, n_classes))
        proba = softmax(logits, axis=1)
        label = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=n_classes - 1)
        label[:n_classes] = np.arange(n_classes)
        fitted = NEARLY_CONSTANT_CASES[name].fit(proba, label)
        new = softmax(centre * np.arange(n_classes) + rng.normal(size=(200, n_classes)), axis=1)
        calibrated = fitted.predict_proba(new).clip(1e-15)
        loss = (new * (np.log(new) - np.log(calibrated))).sum(axis=1).mean()
        assert loss <= 0.4


def test_a_fit_that_hardly_tells_a_slope_goes_on_beside_the_predictions():
    rng = np.random.default_rng(0)
    x = 1 + 0.01 * rng.normal(size=100)
    y = rng.random(100) < expit(x)
    ends = np.array([x.min(), x.max()])
    for name in ("sigmoid", "beta", "quadratic", "spline"):
        fitted = RECALIBRATORS[name].recalibrator.fit(expit(x), y)
        at_ends, beyond = (
            logit(fitted.predict_proba(expit(ends + shift))[:, 1]) for shift in ([0, 0], [-2, 3])
        )
        np.testing.assert_allclose(beyond - at_ends, [-2, 3], rtol=1e-9)
        if name == "sigmoid":
            line = fitted.intercept_ + fitted.coef_[0] * ends
            np.testing.assert_allclose(at_ends, line, rtol=1e-9)


@pytest.mark.parametrize(("n", "prior_weight"), [(6, 16), (10, 16), (6, 0)])
def test_slopes_hold_beyond_the_fit_from_an_information_of_1_on(n, prior_weight):
    """Half of the labels are 1, and log-odds of ±√½ have a variance of ½: it is n/4 · ½."""
    x = np.sqrt(0.5) * np.tile([-1, 1], n // 2)
    label = np.arange(n) < n / 2
    fitted = SigmoidRecalibrator(prior_weight=prior_weight).fit(expit(x), label)
    at_end, beyond = logit(fitted.predict_proba(expit(np.sqrt(0.5) + np.array([0, 1])))[:, 1])
    slope = fitted.coef_.item()
    assert slope < 0.9
    assert beyond - at_end == pytest.approx(1 if n < 8 and prior_weight else slope)
