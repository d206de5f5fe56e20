"""The set of clinical measures equals the single metrics, and their intervals."""

import dataclasses
from functools import partial

import numpy as np
import pytest
from problems import random_problem, two_columns
from scipy import stats
from scipy.special import expit, logit

from skcalib import metrics
from skcalib._data import check_predictions, with_groups
from skcalib.forecasts import GaussianForecast
from skcalib.uncertainty import (
    ClinicalCalibration,
    ConfidenceInterval,
    clinical_calibration,
    compare_models,
    confidence_interval,
)
from skcalib.uncertainty._group_scores import GroupScores, widen_by_scores
from skcalib.uncertainty._resampling import Units
from skcalib.uncertainty._signed import jackknife_limits

FAST = {"n_resamples": 39, "random_state": 0}
SMOOTH = ["calibration_in_the_large", "calibration_intercept", "calibration_slope"]
QUANTILES = {"integrated_calibration_index": None, "e50": 0.5, "e90": 0.9}
ALL = ["observed_expected_ratio", *SMOOTH, *QUANTILES]

LABEL, PROBA = random_problem(np.random.default_rng(0), 60)
WEIGHT = np.random.default_rng(1).random(60) + 0.5


def ends(interval):
    return [interval.estimate, interval.low, interval.high]


def log_ratio(y_true, y_proba, sample_weight=None, labels=None):
    return float(
        np.log(metrics.observed_expected_ratio(y_true, y_proba, sample_weight=sample_weight))
    )


@pytest.mark.parametrize(
    ("weight", "groups"), [(None, None), (WEIGHT, np.arange(60) // 3)], ids=["single", "groups"]
)
def test_equals_the_intervals_of_single_metrics(weight, groups):
    # one number has one interval, whichever function is asked (0.3 s, for the jackknife of seven
    # measures, each found in two ways)
    options = {"sample_weight": weight, "groups": groups, "confidence_level": 0.9}
    result = clinical_calibration(LABEL, PROBA, **options, **FAST)
    for name in ["observed_expected_ratio", *SMOOTH]:
        for metric in (name, getattr(metrics, name)):
            expected = confidence_interval(metric, LABEL, PROBA, random_state=0, **options)
            assert ends(getattr(result, name)) == pytest.approx(ends(expected), abs=1e-9)
    for name, quantile in QUANTILES.items():
        expected = confidence_interval(
            "integrated_calibration_index",
            LABEL,
            PROBA,
            metric_params={"quantile": quantile},
            **options,
            **FAST,
        )
        assert ends(getattr(result, name)) == pytest.approx(ends(expected), abs=1e-12)
        assert getattr(result, name).confidence_level == 0.9


def test_the_ratio_is_that_of_a_jackknife_of_its_logarithm():
    result = confidence_interval("observed_expected_ratio", LABEL, PROBA)
    expected = confidence_interval(log_ratio, LABEL, PROBA, method="jackknife")
    assert ends(result) == pytest.approx(np.exp(ends(expected)))
    upper = confidence_interval(
        "observed_expected_ratio", LABEL, PROBA, alternative="less", confidence_level=0.975
    )
    assert ends(upper) == pytest.approx([result.estimate, 0, result.high])


def test_more_than_100_samples_have_the_same_interval_with_the_same_seed():
    label, proba = random_problem(np.random.default_rng(3), 150)
    result = clinical_calibration(label, proba, **FAST)
    for name in ["observed_expected_ratio", *SMOOTH]:
        expected = confidence_interval(name, label, proba, random_state=0)
        assert ends(getattr(result, name)) == ends(expected)


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


def test_two_models_are_compared_by_the_paired_jackknife():
    other = PROBA**1.5
    result = compare_models("observed_expected_ratio", LABEL, PROBA, other)
    rows = np.arange(60)
    ratio = [LABEL.sum() / p.sum() for p in (PROBA, other)]
    without = [[LABEL[rows != k].sum() / p[rows != k].sum() for p in (PROBA, other)] for k in rows]
    deviation = np.sqrt(59 * np.var(np.diff(without)))
    margin = stats.t.isf(0.025, 59) * deviation
    assert result.difference == pytest.approx(ratio[0] - ratio[1])
    assert result.high - result.difference == pytest.approx(margin)


def test_large_samples_have_the_errors_of_the_theory():
    rng = np.random.default_rng(3)
    x = rng.normal(-1, 1, size=800)
    p = expit(x)
    y = (rng.random(800) < p).astype(int)
    rows = np.column_stack([np.ones(800), x])
    information = rows.T @ (rows * (p * (1 - p))[:, None])
    variance = {
        "calibration_in_the_large": np.sum(p * (1 - p)) / 800**2,
        "calibration_intercept": 1 / information[0, 0],
        "calibration_slope": np.linalg.inv(information)[1, 1],
    }
    result = clinical_calibration(y, p, n_resamples=1, random_state=0)
    for name, expected in variance.items():
        one = getattr(result, name)
        deviation = (one.high - one.low) / 2 / stats.t.ppf(0.975, 99)
        assert deviation == pytest.approx(np.sqrt(expected), rel=0.2)
    ratio = result.observed_expected_ratio
    error = np.sqrt(variance["calibration_in_the_large"]) / p.mean()
    assert np.log(ratio.high / ratio.low) == pytest.approx(
        2 * stats.t.ppf(0.975, 99) * error, rel=0.2
    )


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
    assert ends(result.calibration_intercept)[1:] == [-np.inf, np.inf]
    assert ends(result.observed_expected_ratio) == pytest.approx([0.1, 0, np.inf])
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


def alike_in_groups(n_groups=15, size=3):
    """Predictions and labels that are equal within each group, of 15 groups of three."""
    rng = np.random.default_rng(4)
    risk = rng.uniform(0.1, 0.5, size=n_groups)
    label = (rng.random(n_groups) < risk).astype(int)
    return (np.repeat(values, size) for values in (label, risk, np.arange(n_groups)))


def test_groups_of_equal_labels_are_single_samples():
    y, p, groups = alike_in_groups()
    result = clinical_calibration(y, p, groups=groups, **FAST)
    alone = confidence_interval(  # a function of one's own, whose interval no score widens
        lambda y, p, labels: metrics.calibration_intercept(y, p, labels=labels),
        y,
        p,
        groups=groups,
        method="jackknife",
    )
    ends = []
    for sign in (1, -1):  # a grid in place of a root: 15 samples that count as one each
        shift = np.linspace(-4, 4, 80_001)[:, None]
        shifted = expit(logit(p[::3]) + shift)
        deviation = 1.959964 * np.sqrt(np.sum(shifted * (1 - shifted), axis=1))
        score = np.sum(y[::3] - shifted, axis=1) - sign * deviation
        best = np.argmin(np.abs(score))
        ends.append([shift[best, 0], *(shifted[best].mean() - p.mean() + np.zeros(1))])
    low, high = ends
    assert result.calibration_intercept.low == pytest.approx(min(low[0], alone.low), abs=2e-4)
    assert result.calibration_intercept.high == pytest.approx(max(high[0], alone.high), abs=2e-4)
    assert result.calibration_in_the_large.low <= low[1] + 1e-4
    assert result.calibration_in_the_large.high >= high[1] - 1e-4
    ratio = result.observed_expected_ratio
    assert ratio.low <= 1 + low[1] / p.mean() + 1e-3
    assert ratio.high >= 1 + high[1] / p.mean() - 1e-3
    p = p[::3]
    assert result.effective_n_events == pytest.approx(p.sum() ** 2 / np.sum(p * (1 - p)))
    assert result.effective_n_events < 10
    assert repr(result).endswith(
        f"Few events: the groups count as {result.effective_n_events:.2g} independent ones."
    )


def test_variance_of_labels_that_follow_one_number():
    y, p = random_problem(np.random.default_rng(1), 12)
    data = check_predictions(y, p, sample_weight=WEIGHT[:12])
    groups = np.repeat([0, 1], [5, 7])
    scores = GroupScores.make(with_groups(data, y, groups, None))
    identical = dataclasses.replace(scores, dependence=np.ones(2))
    uniform = (np.arange(400_000) + 0.5) / 400_000
    factor, proba = scores.weight, expit(scores.logits)
    expected = sum(
        np.var((uniform[:, None] < proba[rows]) @ factor[rows])
        for rows in (slice(0, 5), slice(5, 12))
    )
    assert identical.variance(proba, factor) == pytest.approx(expected, rel=1e-4)
    apart = dataclasses.replace(scores, dependence=np.zeros(2))
    assert apart.variance(proba, factor) == pytest.approx(np.sum(factor**2 * proba * (1 - proba)))


def mean_residual(data):
    return float(data.weight @ (data.label - data.proba))


def test_few_large_groups_with_a_common_cause():
    # 20 of 60 rows and 380 pairs: what the jackknife sees are the large groups that had an event
    rng = np.random.default_rng(0)
    size = np.r_[np.full(20, 60), np.full(380, 2)]
    group = np.repeat(np.arange(400), size)
    covered = np.zeros(2)
    for _ in range(10):
        risk = rng.beta(1.5, 98.5, size=len(group))
        shared = np.where(size == 60, 0.9, 0.0)[group]
        score = np.sqrt(shared) * rng.normal(size=400)[group]
        score += np.sqrt(1 - shared) * rng.normal(size=len(group))
        y = (stats.norm.cdf(score) < risk).astype(int)
        data = with_groups(check_predictions(y, risk), y, group, None)
        (limits,) = jackknife_limits(
            data, Units(data), np.random.RandomState(0), None, lambda data: [mean_residual(data)]
        )
        alone = np.tile(limits.interval(0.95), (4, 1))
        widened = widen_by_scores(data, Units(data), alone, 0.95, [0, 1, 2, 3])
        for k, ends in enumerate((alone, widened)):
            covered[k] += ends[0, 0] <= 0 <= ends[0, 1]
    assert covered[0] <= 7
    assert covered[1] == 10


@pytest.mark.slow
def test_smooth_measures_are_covered():
    grid = stats.beta.ppf((np.arange(2000) + 0.5) / 2000, 2, 4)
    extreme = expit(1.5 * logit(grid))
    offset = metrics.calibration_intercept(
        np.repeat([0, 1], 2000), np.tile(extreme, 2), sample_weight=np.r_[1 - grid, grid]
    )
    mean = extreme.mean()
    expected = [1 / 3 - mean, np.log(1 / 3 / mean), offset, 1 / 1.5]
    rng = np.random.default_rng(0)
    missed = np.zeros(4)
    for _ in range(150):
        truth = rng.beta(2, 4, size=100)
        label = (rng.random(100) < truth).astype(int)
        predictions = check_predictions(label, expit(1.5 * logit(truth)), labels=[0, 1])
        limits = jackknife_limits(predictions, Units(predictions), np.random.RandomState(0), None)
        ends = np.array([one.interval(0.95) for one in limits])
        missed += (expected < ends[:, 0]) | (expected > ends[:, 1])
    assert (missed / 150 <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 150)).all()


def test_rare_events_without_groups():
    for seed in (9, 29, 38):  # four events are expected, and one came
        rng = np.random.default_rng(seed)
        risk = rng.beta(1.5, 73.5, size=200)
        y = (rng.random(200) < risk).astype(int)
        interval = confidence_interval("calibration_in_the_large", y, risk, random_state=0)
        assert interval.low < 0 < interval.high  # the jackknife alone ended below 0
        label_variance = np.sum(risk * (1 - risk)) / 200**2
        assert interval.high > interval.estimate + 1.96 * np.sqrt(label_variance)


def test_separated_outcomes_have_no_slope_in_groups():
    y = np.arange(40) % 2
    result = clinical_calibration(y, 0.3 + 0.4 * y, groups=np.arange(40) // 2, **FAST)
    assert (result.calibration_slope.low, result.calibration_slope.high) == (-np.inf, np.inf)
    assert np.isfinite(result.observed_expected_ratio.high)
