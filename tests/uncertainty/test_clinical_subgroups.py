"""The clinical measures of each site, and what the sites have in common."""

from dataclasses import astuple, replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from skcalib._data import check_predictions
from skcalib.metrics._registry import SIGNED_METRICS
from skcalib.uncertainty import _units, clinical_calibration
from skcalib.uncertainty._clinical import combine_sites
from skcalib.uncertainty._closed_form import SIGNED_MEASURES, signed_limits

FAST = {"n_resamples": 9, "random_state": 0}
SHIFT = {"north": 0.4, "south": -0.3, "west": 0.0}


def sites(sizes, seed=0):
    """Labels, predictions and sites, whose log-odds are shifted."""
    rng = np.random.default_rng(seed)
    site = np.repeat(list(SHIFT), sizes)
    proba = expit(rng.normal(-1, 1, size=len(site)))
    truth = expit(logit(proba) + [SHIFT[name] for name in site])
    return (rng.random(len(site)) < truth).astype(int), proba, site


Y, P, SITE = sites([90, 60, 80])


@pytest.fixture(scope="module", autouse=True)
def few_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_units, "_N_BLOCKS", 10)  # of the jackknife of the ICI, which is tested apart
        yield


@pytest.fixture(scope="module")
def result(few_blocks):
    return clinical_calibration(Y, P, by=list(SITE), **FAST)


def ends(interval):
    return [interval.estimate, interval.low, interval.high]


def test_each_site_is_measured_as_if_alone(result):
    assert list(result.observed_expected_ratio) == ["north", "south", "west"]
    whole = clinical_calibration(Y, P, **FAST)
    for name, table in result.tables.items():
        assert ends(table.whole) == ends(getattr(whole, name))
        for label in SHIFT:
            rows = np.isin(SITE, label)
            alone = clinical_calibration(Y[rows], P[rows], **FAST)
            assert ends(table[label]) == pytest.approx(ends(getattr(alone, name)))
    assert result.n_events.tolist() == [Y[np.isin(SITE, label)].sum() for label in SHIFT]


def site_masks():
    return [np.isin(SITE, label) for label in SHIFT]


def naive_log_likelihood(name, value, y, p):
    """That of one value of a measure in one site, by loops."""
    slope = value if name == "calibration_slope" else 1.0
    logits = logit(p)
    if name == "calibration_in_the_large":
        return -((value - np.mean(y - p)) ** 2) / 2 / np.sum(p * (1 - p)) * len(y) ** 2
    if name == "observed_expected_ratio":  # a Poisson number with the variance of a binomial one
        return (y.sum() * np.log(value) - p.sum() * value) / (np.sum(p * (1 - p)) / p.sum())
    if name == "calibration_intercept":
        q = expit(value + logits)
        return np.sum(np.log(np.where(y == 1, q, 1 - q)))
    sums = [-np.inf] * (y.sum() + 1)  # logarithms of sums over all sets of d rows
    sums[0] = 0.0
    for x in logits:
        for d in range(y.sum(), 0, -1):
            sums[d] = np.logaddexp(sums[d], sums[d - 1] + slope * x)
    return slope * (y @ logits) - sums[-1]


IDEAL = {"observed_expected_ratio": 1.0, "calibration_slope": 1.0}


def test_the_mean_of_like_sites_is_the_likeliest_value():
    # sites of the same predictions and labels do not differ: τ is 0, one of them has no events
    rows = [np.r_[0:12], np.r_[0:12], np.r_[12:30], np.r_[12:30], np.r_[12:30], np.r_[30:38]]
    y, p = Y[:38].copy(), P[:38]
    y[30:] = 0
    index, site = np.concatenate(rows), np.repeat(np.arange(6), [len(r) for r in rows])
    result = clinical_calibration(y[index], p[index], by=site, **FAST)
    for name, effect in result.random_effects.items():

        def loss(value, name=name):
            return -sum(naive_log_likelihood(name, value, y[r], p[r]) for r in rows)

        center = IDEAL.get(name, 0.0)
        bounds = (0.05, 9) if center else (-5, 5)
        best = minimize_scalar(loss, bounds=bounds, method="bounded").x
        assert effect.heterogeneity == 0
        assert effect.estimate == pytest.approx(best, abs=3e-4)
        assert effect.left_out == ((5,) if name == "calibration_slope" else ())
        assert effect.prediction_low < effect.low < best < effect.high < effect.prediction_high


def test_many_events_are_a_normal_estimate():
    # ten sites of 150 events and more: the standard errors of the measures, and REML of metafor's
    # model, found on a grid
    rng = np.random.default_rng(0)
    site = np.repeat(np.arange(10), 600)
    p = expit(rng.normal(-0.5, 0.7, size=6000))
    y = (rng.random(6000) < expit(logit(p) + rng.normal(0.3, 0.3, size=10)[site])).astype(int)
    limits = [signed_limits((check_predictions(y[site == k], p[site == k]),)) for k in range(10)]
    sites_data = [check_predictions(y[site == k], p[site == k]) for k in range(10)]
    for k, name in enumerate(SIGNED_MEASURES[1:], 1):
        estimate = np.array([columns[k].estimate for columns in limits])
        deviation = np.array([columns[k].limits.deviation for columns in limits])
        effect = combine_sites(name, sites_data, tuple(range(10)), estimate, deviation, 0.95)
        variance, estimate = deviation**2, np.log(estimate) if k == 1 else estimate

        def deviance(tau, estimate=estimate, variance=variance):
            total = variance + tau**2
            residuals = estimate - np.average(estimate, weights=1 / total)
            spread = np.log(total).sum() + np.sum(residuals**2 / total)
            return spread + np.log(np.sum(1 / total))

        tau = minimize_scalar(deviance, bounds=(0, 2), method="bounded").x
        tau = min(tau, 0.0, key=deviance)
        mean = np.average(estimate, weights=1 / (variance + tau**2))
        assert effect.heterogeneity == pytest.approx(tau, rel=3e-3, abs=2e-3)
        expected = np.exp(mean) if k == 1 else mean
        assert effect.estimate == pytest.approx(expected, abs=1e-4)


def test_sites_that_say_nothing_are_named():
    y, p, site = Y.copy(), P, SITE.astype(object)
    y[site == "west"] = 0
    site[:8], y[:8] = "few", 1
    result = clinical_calibration(y, p, by=site, **FAST)
    ratio, slope = (
        result.random_effects[f"{m}"] for m in ("observed_expected_ratio", SIGNED_MEASURES[3])
    )
    assert ratio.left_out == ()
    assert slope.left_out == ("few", "west")
    assert np.isnan(slope.estimate)  # of two sites
    assert np.isfinite(ratio.prediction_low)
    few, *_, west = result.calibration_slope.notes
    assert "at least 10 samples" in few
    assert "found 0 events among 80 samples" in west
    text = repr(result)
    assert "calibration slope, left out: 2 (few; west)" in text
    assert "less sure below 30 events" not in text
    assert "nan" not in text
    y[site == "south"] = 0
    y[np.flatnonzero(y)[20:]] = 0
    assert "less sure below 30 events" in repr(clinical_calibration(y, p, by=site, **FAST))


def test_the_data_frame_and_the_containers(result):
    by = pd.DataFrame({"site": SITE, "sex": np.where(np.arange(len(Y)) % 2, "f", "m")})
    by.index = np.arange(len(Y))[::-1]  # rows count by their position
    frame = clinical_calibration(Y, P, by=by, **FAST).to_frame()
    assert frame.shape == (7 * 6, 6)
    assert frame.index.names == ["measure", "site", "sex"]
    assert result.to_frame().loc[("calibration_slope", "north"), "n_samples"] == 90


def test_groups_and_weights_reach_the_sites():
    groups = np.arange(len(Y)) // 2
    weight = np.linspace(1, 2, len(Y))
    result = clinical_calibration(Y, P, by=SITE, groups=groups, sample_weight=weight, **FAST)
    rows = SITE == "south"
    alone = clinical_calibration(
        Y[rows], P[rows], groups=groups[rows], sample_weight=weight[rows], **FAST
    )
    assert ends(result.calibration_slope["south"]) == pytest.approx(ends(alone.calibration_slope))
    # pairs of rows that always agree say no more than single rows, with a standard error or without
    index = np.repeat(np.arange(len(Y)), 2)
    single, pairs = check_predictions(Y, P), check_predictions(Y[index], P[index])
    pairs = replace(pairs, groups=index)
    for name in SIGNED_MEASURES[:3]:
        effects = []
        for data, of_row in ((single, SITE), (pairs, SITE[index])):
            sites_data = [data.take(np.flatnonzero(of_row == label)) for label in SHIFT]
            estimate = np.array([SIGNED_METRICS[name].measure(site) for site in sites_data])
            unknown = np.full(3, np.nan)
            effects.append(combine_sites(name, sites_data, tuple(SHIFT), estimate, unknown, 0.95))
        expected, found = map(astuple, effects)
        assert found[:6] == pytest.approx(expected[:6])


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (SITE[:5], "by"),
        (P, "by must name subgroups"),
        ("site", "by must hold the subgroup of each sample"),
    ],
)
def test_bad_input(by, message):
    with pytest.raises(ValueError, match=message):
        clinical_calibration(Y, P, by=by, **FAST)
