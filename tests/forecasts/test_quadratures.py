"""Every integral over a forecast equals a sum over its atoms, or quadrature, or warns."""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy import stats

from skcalib._numerics.pit_maps import BetaMap
from skcalib.decisions import DecisionLoss, bayes_action
from skcalib.forecasts import CensoredForecast, DistributionForecast, Forecast, concatenate
from skcalib.forecasts._derived import AffineForecast, RecalibratedForecast
from skcalib.metrics import decision_curve


class Mixture:
    """A mixture of laws of scipy that knows its cdf and quantiles only, in a row."""

    def __init__(self, laws, weights):
        self.laws, self.weights = laws, weights

    def cdf(self, y):
        return sum(w * law.cdf(y) for w, law in zip(self.weights, self.laws, strict=True))

    def ppf(self, level):
        level = np.broadcast_to(level, np.broadcast_shapes(np.shape(level), (1,)))
        if len(self.laws) == 1:
            return self.laws[0].ppf(level)
        low, high = np.full(level.shape, -2e3), np.full(level.shape, 2e3)
        for _ in range(60):
            middle = (low + high) / 2
            is_below = self.cdf(middle) < level
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        return high


LAWS = {
    "far modes": ([stats.norm(0, 1), stats.norm(1000, 1)], [0.9993, 0.0007]),
    "jump": ([stats.uniform(0, 1), stats.uniform(3, 10)], [0.41, 0.59]),
    "nearly an atom": ([stats.uniform(0, 1e-9), stats.gamma(2)], [0.37, 0.63]),
    "narrow": ([stats.uniform(100, 1e-3)], [1.0]),
    "heavy tail": ([stats.t(3)], [1.0]),
    "heavier tail": ([stats.pareto(2.5)], [1.0]),
    "smooth": ([stats.norm(0, 1)], [1.0]),
}
COUNTS = {
    "wide": stats.nbinom([5, 5], 5 / (5 + np.array([9000, 50]))),
    "many": stats.poisson([2000.0, 3.0]),
    "sums": stats.binom([10_000, 10_000], [0.5, 0.3]),
}
ENDS = 10.0 ** np.arange(-34, 0, 0.5)
NODE, SHARE = np.polynomial.legendre.leggauss(24)


def expect(law, function, kink):
    """E f(Y) by Gauss nodes between many quantiles, and the kink."""
    levels = np.concatenate([law.ppf([*ENDS, 0.5]), law.isf(ENDS), [kink]])
    ends = np.unique(np.clip(levels, *law.support()))
    width = np.diff(ends)[:, None] / 2
    y = ends[:-1, None] + width * (NODE + 1)
    return np.sum(width * SHARE * law.pdf(y) * function(y))


# Each integral of a forecast as that of a function of outcomes, with or without a kink; and the
# integral as it is found. An outcome y0 is a quantile of level 0.37, the unit s is a deviation.
QUADRATURES = {
    "mean": (lambda y, y0, s: y, lambda f, y0, s: Forecast.mean(f)),
    "std": (None, lambda f, y0, s: Forecast.std(f)),
    "decision": (
        lambda y, y0, s: abs(y - y0),
        lambda f, y0, s: DecisionLoss(lambda y: abs(y - y0)[:, None]).expected_of(f)[:, 0],
    ),
    "decision with breakpoints": (
        lambda y, y0, s: 1.0 * (y > y0),
        lambda f, y0, s: DecisionLoss(
            lambda y: 1.0 * (y > y0)[:, None], breakpoints=[y0]
        ).expected_of(f)[:, 0],
    ),
    "components": (
        lambda y, y0, s: np.exp(-(((y - y0) / s) ** 2) / 2),
        lambda f, y0, s: np.sum(
            f.components().weight * np.exp(-(((f.components().location - y0) / s) ** 2) / 2), axis=1
        ),
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_integrals_over_levels_are_exact_or_warn(name):
    laws, weights = LAWS[name]
    forecast = DistributionForecast(Mixture(laws, weights))
    y0 = float(forecast.ppf(0.37)[0])

    def average(values):
        return np.dot(weights, list(values))

    mean = average(law.mean() for law in laws)
    std = np.sqrt(average(law.var() + (law.mean() - mean) ** 2 for law in laws))
    rough = []
    for quadrature, (function, integrate) in QUADRATURES.items():
        if function is not None:
            of_outcome = partial(function, y0=y0, s=std)
            expected = average(expect(law, of_outcome, y0) for law in laws)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            value = integrate(forecast, y0, std)
        rough += [quadrature for warning in seen if "may not be exact" in str(warning.message)]
        if not seen:
            reference = std if function is None else expected
            rtol = 1e-5 if quadrature == "components" else 1e-6  # atoms for any kernel
            np.testing.assert_allclose(value, reference, rtol, atol=1e-9, err_msg=quadrature)
    assert rough == (["std"] if name == "heavier tail" else [])


@pytest.mark.parametrize("name", COUNTS)
def test_integrals_over_counts_are_sums(name, monkeypatch):
    monkeypatch.setattr("skcalib.forecasts._distribution._MAX_ALL_ATOMS", 2**18)
    law = COUNTS[name]
    count = np.arange(100_000)[:, None]
    mass = law.pmf(count)
    level_map = BetaMap(1.3, 0.8, 0.2)
    mapped = np.exp(level_map.log_cdf(law.logcdf(count) - law.logsf(count)))
    forecast = DistributionForecast(law)
    shifted = AffineForecast(forecast, np.array([2.0, -1.0]), np.array([3.0, 0.5]))
    cases = {
        "as it is": (forecast, count, mass),
        "recalibrated": (
            RecalibratedForecast(forecast, level_map),
            count,
            np.diff(mapped, axis=0, prepend=0.0),
        ),
        "shifted": (shifted, shifted.shift + shifted.factor * count, mass),
        "side by side": (concatenate([forecast[[0]], shifted[[1]]]), None, mass),
    }
    cases["side by side"] = (
        cases["side by side"][0],
        np.hstack([count, cases["shifted"][1][:, 1:]]),
        mass,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for case, (of, value, share) in cases.items():
            value = np.broadcast_to(value, share.shape)
            y = np.round(of.ppf(0.37))
            expected = np.sum(share * np.abs(value - y[0]), axis=0)
            loss = DecisionLoss(lambda v, y=y: np.abs(v - y[0])[:, None])
            np.testing.assert_allclose(
                loss.expected_of(of)[:, 0], expected, rtol=1e-9, err_msg=case
            )
            mean = np.sum(share * value, axis=0)
            np.testing.assert_allclose(of.mean(), mean, rtol=1e-9, err_msg=case)
            std = np.sqrt(np.sum(share * (value - mean) ** 2, axis=0))
            np.testing.assert_allclose(of.std(), std, rtol=1e-9, err_msg=case)
            step = np.diff(value, axis=0, append=value[-1:])
            crps = np.sum((np.cumsum(share, axis=0) - (value >= y)) ** 2 * step, axis=0)
            y_on = value[np.argmax(value >= y, axis=0), [0, 1]]
            np.testing.assert_allclose(of.crps(y_on), crps, rtol=1e-8, err_msg=case)


@pytest.mark.parametrize("function", [np.square, np.tanh])
def test_censored_forecasts_have_an_atom(function):
    laws = stats.gamma(0.7), stats.gamma(3.0)
    forecast = CensoredForecast(DistributionForecast(stats.gamma([0.7, 3.0])), 1.0)
    expected = [expect(law, lambda y: function(np.maximum(y, 1.0)), 1.0) for law in laws]
    actual = DecisionLoss(lambda y: function(y)[:, None]).expected_of(forecast)[:, 0]
    np.testing.assert_allclose(actual, expected, rtol=1e-7)
    location, _, weight = forecast.components()
    np.testing.assert_allclose(np.sum(weight * function(location), axis=1), expected, rtol=1e-6)


def test_the_first_of_equally_good_actions_may_be_to_act():
    # at p = t both losses are t (1 − t)
    for t in np.linspace(0.05, 0.95, 19):
        proba = np.array([t - 0.01, t, t + 0.01])
        acts = bayes_action(proba, loss=[[t, 0], [0, 1 - t]]) == 0
        np.testing.assert_array_equal(acts, proba >= t)
        curve = decision_curve([1, 1, 1], proba, thresholds=[t])
        assert curve.realised[0] == pytest.approx(acts.mean())
