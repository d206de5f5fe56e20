"""The clinical measures of each site, and what the sites have in common."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, logit

from skcalib._data import check_predictions
from skcalib._numerics.random_effects import fit_random_effects
from skcalib.uncertainty import _units, clinical_calibration
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


def measured(y, p):
    """Estimates and standard errors (4,), on the scale on which sites are combined."""
    limits = signed_limits((check_predictions(y, p),))
    return [one.estimate for one in limits], [one.limits.deviation for one in limits]


def test_what_sites_have_in_common_follows_from_their_standard_errors(result):
    at_sites = [measured(Y[rows], P[rows]) for rows in site_masks()]
    estimates, errors = (np.array(column) for column in zip(*at_sites, strict=True))
    for k, name in enumerate(SIGNED_MEASURES):
        is_ratio = name == "observed_expected_ratio"
        scale, inverse = (np.log, np.exp) if is_ratio else (np.asarray, np.asarray)
        effect = result.random_effects[name]
        fit = fit_random_effects(scale(estimates[:, k]), errors[:, k] ** 2)
        half = stats.t.isf(0.025, 2) * fit.deviation
        wide = stats.t.isf(0.025, 1) * np.sqrt(fit.deviation**2 + fit.between**2)
        expected = inverse(fit.mean + np.array([0, -half, half, -wide, wide]))
        found = [effect.estimate, effect.low, effect.high]
        found += [effect.prediction_low, effect.prediction_high]
        assert found == pytest.approx(expected.tolist(), rel=1e-6)
        assert effect.heterogeneity == pytest.approx(fit.between, rel=1e-6)
        assert (effect.corrected, effect.left_out) == ((), ())


def site_masks():
    return [np.isin(SITE, label) for label in SHIFT]


def test_sites_that_cannot_be_measured_are_named():
    y, p, site = Y.copy(), P, SITE.astype(object)
    y[site == "west"] = 0
    site[:8] = "few"
    result = clinical_calibration(y, p, by=site, **FAST)
    ratio, slope = (
        result.random_effects[f"{m}"] for m in ("observed_expected_ratio", SIGNED_MEASURES[3])
    )
    assert ratio.corrected == ("few", "west")
    assert ratio.left_out == ()
    assert slope.left_out == ("few", "west")
    assert np.isnan(slope.estimate)  # of two sites
    assert np.isfinite(ratio.prediction_low)
    few, *_, west = result.calibration_slope.notes
    assert "at least 10 samples" in few
    assert "found 0 events among 80 samples" in west
    text = repr(result)
    assert "O:E ratio, ½ added: 2 (few; west)" in text
    assert "calibration slope, left out: 2 (few; west)" in text
    assert "nan" not in text
    # the corrected logarithm and its variance, by hand, beside the standard errors of the others
    ratios = [
        np.transpose(measured(y[rows], p[rows]))[1] for rows in (site == "north", site == "south")
    ]
    (north, error), (south, other) = ratios
    events = np.array([y[:8].sum(), 0]) + 0.5
    corrected = np.log(events / np.array([p[:8].sum() + 0.5, p[site == "west"].sum() + 0.5]))
    estimate = np.r_[corrected[0], np.log([north, south]), corrected[1]]
    variance = np.r_[1 / events[0], error**2, other**2, 1 / events[1]]
    fit = fit_random_effects(estimate, variance)
    assert ratio.estimate == pytest.approx(np.exp(fit.mean), rel=1e-6)


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
