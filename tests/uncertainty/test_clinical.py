"""The set of clinical measures equals the single metrics, and their intervals."""

from functools import partial

import numpy as np
import pytest
from problems import random_problem, two_columns
from scipy import stats
from scipy.special import expit, logit

from skcalib import metrics
from skcalib._data import check_predictions, with_groups
from skcalib.forecasts import GaussianForecast
from skcalib.metrics._clinical import logistic_line
from skcalib.uncertainty import (
    ClinicalCalibration,
    ConfidenceInterval,
    clinical_calibration,
    compare_models,
    confidence_interval,
)
from skcalib.uncertainty._closed_form import TwoClasses, signed_limits

FAST = {"n_resamples": 39, "random_state": 0}
SMOOTH = ["calibration_in_the_large", "calibration_intercept", "calibration_slope"]
QUANTILES = {"integrated_calibration_index": None, "e50": 0.5, "e90": 0.9}
ALL = ["observed_expected_ratio", *SMOOTH, *QUANTILES]

LABEL, PROBA = random_problem(np.random.default_rng(0), 60)
WEIGHT = np.random.default_rng(1).random(60) + 0.5


def ends(interval):
    return [interval.estimate, interval.low, interval.high]


@pytest.mark.parametrize("groups", [None, np.arange(60) // 3])
def test_a_positive_class_may_be_named(groups):
    options = {"groups": groups, "random_state": 0}
    names = np.array(["well", "ill"])[LABEL]
    expected = ends(confidence_interval("calibration_intercept", LABEL, PROBA, **options))
    params = {"pos_label": "ill"}
    metric = metrics.calibration_intercept
    for named, metric_params in ((metric, params), (partial(metric, pos_label="ill"), None)):
        result = confidence_interval(named, names, PROBA, metric_params=metric_params, **options)
        assert ends(result) == expected
    assert params == {"pos_label": "ill"}
    matrices = (np.column_stack([p, 1 - p]) for p in (PROBA, PROBA**2))
    results = [
        compare_models(metric, names, *models, metric_params=params, random_state=0)
        for models in ((PROBA, PROBA**2), matrices)
    ]
    estimates = expected[0], metric(LABEL, PROBA**2)
    for result in results:
        assert (result.estimate_a, result.estimate_b) == pytest.approx(estimates)


def test_two_models_are_compared_in_pairs():
    other = PROBA**1.5
    result = compare_models("observed_expected_ratio", LABEL, PROBA, other)
    rows = np.arange(60)
    ratio = [LABEL.sum() / p.sum() for p in (PROBA, other)]
    without = [[LABEL[rows != k].sum() / p[rows != k].sum() for p in (PROBA, other)] for k in rows]
    deviation = np.sqrt(59 * np.var(np.diff(without)))
    assert result.difference == pytest.approx(ratio[0] - ratio[1])
    # the jackknife itself differs from one step of Newton's method by a part of 1/n
    margin = stats.t.isf(0.025, 59) * deviation
    assert margin / 1.15 < result.high - result.difference < margin * 1.15


def test_the_positive_class():
    label, proba = LABEL[:30], PROBA[:30]
    expected = clinical_calibration(label, proba, **FAST)
    names = np.array(["well", "ill"])[label]
    assert clinical_calibration(names, proba, pos_label="ill", **FAST) == expected
    columns = clinical_calibration(names, two_columns(proba), labels=["well", "ill"], **FAST)
    for name in ALL:
        assert ends(getattr(columns, name)) == pytest.approx(ends(getattr(expected, name)))


def test_the_table():
    numbers = ConfidenceInterval(0.12345, -1.0, 12.0, 0.95)
    lines = repr(ClinicalCalibration(*[numbers] * 7)).split("\n")
    assert lines[0].split() == ["estimate", "low", "high", "calibrated"]
    assert lines[2] == "O:E ratio                    0.123    -1.000    12.000           1"
    assert [line.split()[-1] for line in lines[1:]] == ["0", "1", "0", "1", "0", "0", "0"]
    assert {len(line) for line in lines} == {66}


def test_ends_stay_within_bounds():
    result = clinical_calibration(LABEL[:12], PROBA[:12], **FAST)
    for name in QUANTILES:
        one = getattr(result, name)
        assert 0 <= one.low <= one.estimate <= one.high <= 1
    assert result.observed_expected_ratio.low > 0


def test_what_the_data_do_not_tell_is_unbounded():
    proba = np.linspace(0.1, 0.9, 20)
    result = clinical_calibration(proba > 0.5, proba, **FAST)
    assert ends(result.calibration_slope) == [np.inf, -np.inf, np.inf]
    assert np.isfinite(ends(result.calibration_intercept)).all()
    one_event = np.arange(20) == 15
    result = clinical_calibration(one_event, proba, **FAST)
    assert result.calibration_intercept.low < -5 < 0 < result.calibration_intercept.high < np.inf
    ratio = result.observed_expected_ratio
    assert ratio.estimate == pytest.approx(0.1)
    assert 0 < ratio.low < 0.005
    assert 0.5 < ratio.high < np.inf
    result = clinical_calibration(one_event, np.full(20, 0.3), **FAST)
    assert np.isnan(result.calibration_slope.estimate)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.arange(20) % 3, np.full((20, 3), 1 / 3)), {}, "y_proba must be about two classes"),
        ((np.zeros(20, int), np.full(20, 0.3)), {}, "y_true must hold both outcomes; found 0 eve"),
        ((np.ones(20, int), np.full(20, 0.3)), {}, "must hold both outcomes; found 20 events am"),
        (([0, 1] * 4, [0.3] * 8), {}, "at least 10 samples of positive weight; found 8"),
        ((LABEL, PROBA), {"groups": np.arange(60) % 3}, "at least 10 groups"),
        ((LABEL, PROBA), {"groups": np.arange(59)}, "groups"),
        ((LABEL, PROBA), {"groups": np.where(np.arange(60) < 1, np.nan, 1.0)}, "groups"),
        ((LABEL, PROBA), {"sample_weight": -WEIGHT}, "sample_weight"),
        ((LABEL, PROBA), {"sample_weight": 10.0 ** np.arange(60)}, "effective number of samples"),
        ((LABEL, PROBA), {"confidence_level": 95}, "confidence_level"),
        ((LABEL, PROBA), {"n_resamples": 0}, "n_resamples"),
        ((LABEL * 1.0, GaussianForecast(PROBA, 1)), {}, "y_proba"),
    ],
)
def test_bad_input(arguments, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        clinical_calibration(*arguments, **options)


def test_signed_measures_are_of_two_classes():
    with pytest.raises(ValueError, match="y_proba must be about two classes; found 3 columns"):
        confidence_interval("calibration_slope", np.arange(30) % 3, np.full((30, 3), 1 / 3))


def alike_in_groups(n_groups=12, size=3):
    """Predictions and labels that are equal within each group, of 12 groups of three."""
    rng = np.random.default_rng(4)
    risk = rng.uniform(0.1, 0.5, size=n_groups)
    label = (rng.random(n_groups) < risk).astype(int)
    return (np.repeat(values, size) for values in (label, risk, np.arange(n_groups)))


def test_groups_of_equal_labels_are_single_samples():
    y, p, groups = alike_in_groups()
    result = clinical_calibration(y, p, groups=groups, **FAST)
    classes = TwoClasses(with_groups(check_predictions(y, p), y, groups, None))
    alone = classes.intercept().limits().ends(0.025)
    p = p[::3]
    # labels that are equal within groups: the estimated dependence is 1 but for chance
    seen = expit(logit(classes.proba) + metrics.calibration_intercept(y, classes.proba))
    dependence = classes.dependence(classes.weight, seen)
    assert dependence.min() > 0.8
    share = (1 + 2 * dependence) / 3  # of the variance of groups of one mind
    ends = []
    for sign in (1, -1):  # a grid in place of a root: 12 samples that count as one each
        shift = np.linspace(-4, 4, 80_001)[:, None]
        shifted = expit(logit(p) + shift)
        variance = np.sum(share * shifted * (1 - shifted), axis=1)
        score = np.sum(y[::3] - shifted, axis=1) - sign * stats.t.isf(0.025, 11) * variance**0.5
        best = np.argmin(np.abs(score))
        ends.append([shift[best, 0], *(shifted[best].mean() - p.mean() + np.zeros(1))])
    low, high = ends
    assert result.calibration_intercept.low == pytest.approx(min(low[0], alone[0]), abs=2e-4)
    assert result.calibration_intercept.high == pytest.approx(max(high[0], alone[1]), abs=2e-4)
    assert result.calibration_in_the_large.low <= low[1] + 1e-4
    assert result.calibration_in_the_large.high >= high[1] - 1e-4
    ratio = result.observed_expected_ratio
    assert ratio.low <= 1 + low[1] / p.mean() + 1e-3
    assert ratio.high >= 1 + high[1] / p.mean() - 1e-3
    share = (1 + 2 * classes.dependence(classes.weight, seen)) / 3
    assert result.effective_n_events == pytest.approx(p.sum() ** 2 / np.sum(share * p * (1 - p)))
    assert result.effective_n_events < 10
    assert repr(result).endswith(
        f"Few events: the groups count as {result.effective_n_events:.2g} independent ones."
    )


def leave_out(design, weight, label, logits, code):
    """One step of Newton's method without each unit, by a loop, (U, C)."""
    p = expit(logits)
    steps = []
    for unit in np.unique(code):
        kept = code != unit
        X, w = design[kept], (weight * p * (1 - p))[kept]
        score = X.T @ (weight * (label - p))[kept]
        steps.append(-np.linalg.solve(X.T @ (w[:, None] * X), score))
    return np.array(steps)


@pytest.mark.parametrize("groups", [np.arange(60), np.arange(60) // 4], ids=["HC3", "CR3"])
def test_coefficients_change_by_a_step_of_newtons_method(groups):
    data = check_predictions(LABEL, PROBA, sample_weight=WEIGHT)
    classes = TwoClasses(with_groups(data, LABEL, groups, None))
    line = logistic_line(data)
    ones, logits = np.ones(60), logit(PROBA)
    code = np.unique(groups, return_inverse=True)[1]
    fits = {
        "intercept": (
            ones[:, None],
            logits + metrics.calibration_intercept(LABEL, PROBA, sample_weight=WEIGHT),
        ),
        "slope": (np.column_stack([ones, logits]), line[0] + line[1] * logits),
    }
    for name, (design, fitted) in fits.items():
        expected = leave_out(design, data.weight, LABEL, fitted, code)[:, -1]
        found = getattr(classes, name)().changes
        order = np.unique(classes.units.code, return_index=True)[1]
        np.testing.assert_allclose(found, expected[code[order]], rtol=1e-8, atol=1e-12)


def test_standard_errors_are_those_of_statsmodels():
    # HC3 of the least squares into which Newton's method turns a logistic regression: working
    # responses z = η + (y − p) / (p (1 − p)) with the weights p (1 − p)
    sm = pytest.importorskip("statsmodels.api")
    classes = TwoClasses(check_predictions(LABEL, PROBA))
    logits, ones = logit(PROBA), np.ones(60)
    fits = {
        "slope": sm.GLM(LABEL, np.column_stack([ones, logits]), family=sm.families.Binomial()).fit(
            tol=1e-14
        ),
        "intercept": sm.GLM(LABEL, ones, offset=logits, family=sm.families.Binomial()).fit(
            tol=1e-14
        ),
    }
    for name, fit in fits.items():
        p = fit.fittedvalues
        response = fit.model.exog @ fit.params + (LABEL - p) / (p * (1 - p))
        line = sm.WLS(response, fit.model.exog, weights=p * (1 - p)).fit()
        change = getattr(classes, name)()
        assert change.estimate == pytest.approx(fit.params[-1], rel=1e-6)
        assert np.sum(change.changes**2) == pytest.approx(line.HC3_se[-1] ** 2, rel=1e-6)
        # what labels of these probabilities vary by is the least variance
        assert change.least_variance == pytest.approx(fit.bse[-1] ** 2, rel=1e-6)
        assert change.degrees is None


def test_the_area_varies_as_delong_says():
    events, others = PROBA[LABEL == 1], PROBA[LABEL == 0]
    above = (events[:, None] > others) + (events[:, None] == others) / 2
    variance = above.mean(axis=1).var(ddof=1) / len(events)
    variance += above.mean(axis=0).var(ddof=1) / len(others)
    change = TwoClasses(check_predictions(LABEL, PROBA)).area_under_roc_curve()
    assert change.estimate == pytest.approx(above.mean())
    # an event is left out of the events alone, of which there are fewer than samples
    n = np.array([len(events), len(others)])
    raised = [
        above.mean(axis=axis).var(ddof=1) / (size - 1) * 59 / 60
        for axis, size in zip((1, 0), n, strict=True)
    ]
    assert np.sum(change.changes**2) == pytest.approx(sum(raised), rel=1e-9)
    assert variance < np.sum(change.changes**2) < 1.1 * variance
    # Welch's degrees of freedom, of both kinds of placements
    parts = [above.mean(axis=axis).var() / size for axis, size in zip((1, 0), n, strict=True)]
    degrees = sum(parts) ** 2 / sum(
        part**2 / (size - 1) for part, size in zip(parts, n, strict=True)
    )
    assert change.degrees == pytest.approx(degrees, rel=1e-9)
    assert change.limits().degrees == pytest.approx(degrees, rel=1e-9)
    # on the scale of the log-odds
    (limits,) = signed_limits((check_predictions(LABEL, PROBA),), ["area_under_roc_curve"])
    area, margin = above.mean(), stats.t.isf(0.025, degrees) * np.sqrt(sum(raised))
    odds = margin / (area * (1 - area))
    expected = expit(logit(area) - odds), expit(logit(area) + odds)
    assert limits.interval(0.95) == pytest.approx(expected, rel=1e-9)
    assert limits.estimate == pytest.approx(area, rel=1e-12)


def test_one_event_tells_nothing_of_ranks_and_differences():
    y, p = np.arange(60) == 40, np.linspace(0.05, 0.9, 60)
    (area,) = signed_limits((check_predictions(y, p),), ["area_under_roc_curve"])
    assert area.interval(0.95) == (0, 1)
    result = compare_models("calibration_intercept", y, p, p**2)
    assert (result.low, result.high, result.p_value) == (-np.inf, np.inf, 1)
    groups = np.arange(60) // 3
    result = compare_models("calibration_slope", groups == 4, p, p**2, groups=groups)
    assert (result.low, result.high) == (-np.inf, np.inf)
    with pytest.raises(ValueError, match="metric must be finite"):
        compare_models("calibration_slope", p > 0.5, p, p**2)


def test_a_function_with_the_name_of_a_signed_measure_is_measured_itself():
    def observed_expected_ratio(y_true, y_proba, labels):
        return 100 * metrics.observed_expected_ratio(y_true, y_proba, labels=labels)

    other = PROBA**1.5
    found = compare_models(observed_expected_ratio, LABEL, PROBA, other)
    ours = compare_models("observed_expected_ratio", LABEL, PROBA, other)
    assert found.low == pytest.approx(100 * ours.low, rel=0.1)


def test_nearly_equal_predictions_keep_their_digits():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=300), rng.random(300) < 0.5
    ends = []
    for size in (1e-3, 1e-8):
        data = check_predictions(y, 0.5 + size * x)
        (limits,) = signed_limits((data,), ["calibration_slope"])
        ends.append(size * np.array([limits.estimate, *limits.interval(0.95)]))
    np.testing.assert_allclose(*ends, rtol=1e-3)


def test_errors_of_the_model_are_no_dependence():
    rng = np.random.default_rng(0)
    y, groups, p = rng.random(1000) < 0.3, np.arange(1000) // 10, np.full(1000, 0.05)
    data = with_groups(check_predictions(y, p), y, groups, None)
    assert TwoClasses(data).effective_n_events > 40  # 50 are expected


@pytest.mark.parametrize("proba", [0.0, 1.0])
def test_predictions_that_are_all_certain_warn_of_nothing(proba):
    y, groups = np.arange(60) % 4 == 0, np.arange(60) // 3
    data = with_groups(
        check_predictions(y, np.full(60, proba), labels=[False, True]), y, groups, None
    )
    first = signed_limits((data,))[0]
    assert np.isfinite([first.estimate, *first.interval(0.95)]).all()
    assert np.isfinite(TwoClasses(data).effective_n_events)


def test_separated_outcomes_have_no_slope_in_groups():
    y = np.arange(40) % 2
    result = clinical_calibration(y, 0.3 + 0.4 * y, groups=np.arange(40) // 2, **FAST)
    assert (result.calibration_slope.low, result.calibration_slope.high) == (-np.inf, np.inf)
    assert np.isfinite(result.observed_expected_ratio.high)
