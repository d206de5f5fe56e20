"""The clinical measures of each site, and what the sites have in common."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, logit

from skcalib._data import check_predictions
from skcalib._numerics.random_effects import fit_random_effects
from skcalib.uncertainty import clinical_calibration
from skcalib.uncertainty._clinical import _ANALYSED
from skcalib.uncertainty._closed_form import compute_intervals

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


@pytest.fixture(scope="module")
def result():
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


def test_what_sites_have_in_common_follows_from_their_standard_errors(result):
    at_sites = [compute_intervals(check_predictions(Y[rows], P[rows])) for rows in site_masks()]
    estimates, errors = (np.array(column) for column in zip(*at_sites, strict=True))
    for k, name in enumerate(_ANALYSED):
        is_ratio = name == "observed_expected_ratio"
        scale, inverse = (np.log, np.exp) if is_ratio else (np.asarray, np.asarray)
        effect = result.random_effects[name]
        fit = fit_random_effects(scale(estimates[:, k, 0]), errors[:, k] ** 2)
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
        result.random_effects[f"{m}"] for m in ("observed_expected_ratio", _ANALYSED[3])
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
    names = ["observed_expected_ratio"]
    measured = [
        compute_intervals(check_predictions(y[site == label], p[site == label]), names)
        for label in ("north", "south")
    ]
    error = [float(deviation[0]) for _, deviation in measured]
    events = np.array([y[:8].sum(), 0]) + 0.5
    corrected = np.log(events / np.array([p[:8].sum() + 0.5, p[site == "west"].sum() + 0.5]))
    estimate = np.r_[corrected[0], [np.log(rows[0, 0]) for rows, _ in measured], corrected[1]]
    fit = fit_random_effects(estimate, np.r_[1 / events[0], np.square(error), 1 / events[1]])
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


@pytest.mark.slow
def test_mean_and_new_site_are_covered_with_three_sites():
    rng = np.random.default_rng(0)
    covered = np.zeros(2)
    for _ in range(200):
        site = np.repeat(np.arange(3), [60, 120, 200])
        shift, new = rng.normal(0, 0.3, size=3), rng.normal(0, 0.3)
        p = expit(rng.normal(-1, 1, size=len(site)))
        y = rng.random(len(site)) < expit(logit(p) + shift[site])
        options = {"n_resamples": 1, "random_state": 0}
        effect = clinical_calibration(y, p, by=site, **options).random_effects[_ANALYSED[2]]
        covered[0] += effect.low <= 0 <= effect.high
        covered[1] += effect.prediction_low <= new <= effect.prediction_high
    assert (covered / 200 >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 200)).all()
