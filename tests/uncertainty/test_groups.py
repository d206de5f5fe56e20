"""Groups of samples, their weights and blocks of series in intervals and comparisons."""

import numpy as np
import pytest
from problems import random_problem
from scipy import stats
from scipy.signal import lfilter
from sklearn.metrics import log_loss

from skcalib.forecasts import GaussianForecast
from skcalib.uncertainty import compare_models, confidence_interval
from skcalib.uncertainty._resampling import Limits

FAST = {"n_resamples": 39, "random_state": 0}
SMOOTH = "smooth_calibration_error"
CRPS = "continuous_ranked_probability_loss"


def ends(result):
    return result.low, result.high


def effective(weight):
    return weight.sum() ** 2 / (weight @ weight)


class Recorder:
    """A mean that remembers which samples it was given, known by their predictions."""

    def __init__(self, proba):
        self.proba, self.rows, self.values = proba, [], []

    def __call__(self, y_true, y_proba, sample_weight=None):
        self.rows.append(np.flatnonzero(np.isin(self.proba, y_proba)))
        self.values.append(float(np.average((y_true - y_proba) ** 2, weights=sample_weight)))
        return self.values[-1]


def unequal_groups(rng, n_groups):
    return rng.permutation(np.repeat(np.arange(n_groups), 1 + np.arange(n_groups) % 4))


@pytest.mark.parametrize(
    ("n_groups", "weighted", "alternative"),
    [
        (24, False, "two-sided"),
        (24, True, "less"),
        (24, True, "greater"),
        (150, True, "two-sided"),  # more than the parts of the jackknife
    ],
)
def test_interval_equals_loops_over_whole_groups(n_groups, weighted, alternative):
    rng = np.random.default_rng(0)
    group = unequal_groups(rng, n_groups)
    n = len(group)
    label, proba = random_problem(rng, n)
    weight = rng.uniform(0.2, 1, size=n) if weighted else np.ones(n)
    if n_groups == 150:  # a heavy group: parts without it have a larger effective number than all
        weight[group == 0] = 0.3 * weight.sum() / np.sum(group == 0)
    metric = Recorder(proba)
    interval = confidence_interval(
        metric,
        label,
        proba,
        groups=[f"patient {k}" for k in group],
        sample_weight=weight if weighted else None,
        confidence_level=0.8,
        alternative=alternative,
        **FAST,
    )
    n_parts = min(n_groups, 100)
    of_group = np.bincount(group, weight)
    size = min(int(np.ceil(3 * n_groups / np.sqrt(effective(of_group)))), n_groups // 2)
    jackknife, subsamples = metric.rows[1 : 1 + n_parts], metric.rows[1 + n_parts :]
    left_out = [np.setdiff1d(np.arange(n), rows) for rows in jackknife]
    assert sorted(np.concatenate(left_out)) == list(range(n))  # each sample once
    for rows in left_out + subsamples:  # whole groups
        assert np.isin(group, group[rows]).sum() == len(rows)
    assert {len(set(group[rows])) for rows in subsamples} == {size}
    assert len({tuple(rows) for rows in subsamples}) == 39

    value, values = metric.values[0], np.array(metric.values[1:])
    deviation = np.sqrt((n_parts - 1) * np.var(values[:n_parts]))
    degrees = effective(np.array([weight[rows].sum() for rows in left_out])) - 1
    tail = 0.1 if alternative == "two-sided" else 0.2
    margin = stats.t.isf(tail, degrees) * deviation
    pivots, ratios = [], []
    for rows, one in zip(subsamples, values[n_parts:], strict=True):
        within = np.bincount(group[rows], weight[rows], minlength=n_groups)
        ratios.append(effective(within) / effective(of_group))
        ratio = np.sqrt(min(ratios[-1], 0.8))
        pivots.append((value - ratio * one) / (1 - ratio))
    assert (max(ratios) > 1) == (n_groups == 150)
    k = round(40 * tail) - 1
    low = min(value - margin, sorted(pivots)[k])
    high = max(value + margin, sorted(pivots, reverse=True)[k])
    if alternative == "less":
        low = -np.inf
    if alternative == "greater":
        high = np.inf
    assert ends(interval) == pytest.approx((low, high), abs=1e-12)


def test_groups_of_one_sample_are_no_groups_and_names_do_not_matter():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 30)
    plain = confidence_interval(SMOOTH, label, proba, **FAST)
    for singles in (np.arange(30), -np.arange(30.0)):
        grouped = confidence_interval(SMOOTH, label, proba, groups=singles, **FAST)
        assert ends(grouped) == pytest.approx(ends(plain), abs=1e-12)
    group = rng.integers(15, size=30)
    names = rng.permutation(15).astype(str)
    one = compare_models(SMOOTH, label, proba, proba**2, groups=group, **FAST)
    assert one == compare_models(SMOOTH, label, proba, proba**2, groups=names[group], **FAST)
    assert one != compare_models(SMOOTH, label, proba, proba**2, **FAST)


@pytest.mark.parametrize(("metric", "n"), [(SMOOTH, 130), (log_loss, 130)])
def test_repeated_samples_as_groups_are_single_samples(metric, n):
    label, proba = random_problem(np.random.default_rng(0), n)
    one = compare_models(metric, label, proba, proba**2, **FAST)
    three = compare_models(
        metric, label.repeat(3), proba.repeat(3), proba.repeat(3) ** 2,
        groups=np.arange(n).repeat(3), **FAST
    )  # fmt: skip
    assert (three.low, three.high, three.p_value) == pytest.approx(
        (one.low, one.high, one.p_value), abs=1e-9
    )
    as_if_independent = compare_models(
        metric, label.repeat(3), proba.repeat(3), proba.repeat(3) ** 2, **FAST
    )
    assert np.ptp(ends(as_if_independent)) < 0.8 * np.ptp(ends(one))


def test_groups_of_forecasts_and_of_samples_without_weight():
    rng = np.random.default_rng(0)
    mean, group = rng.normal(size=80), np.arange(80) % 20
    y = rng.normal(mean)
    a, b = GaussianForecast(mean, 1.0), GaussianForecast(mean + 0.3, 1.0)
    weight = np.where(group < 5, 0.0, 1.0)
    used = weight > 0
    for metric in (CRPS, "quantile_calibration_error"):
        some = compare_models(metric, y, a, b, groups=group, sample_weight=weight, **FAST)
        rest = compare_models(
            metric, y[used], a[used], b[used], groups=group[used],
            sample_weight=np.ones(60), **FAST
        )  # fmt: skip
        assert (some.low, some.high, some.p_value) == pytest.approx(
            (rest.low, rest.high, rest.p_value), abs=1e-12
        )
    difference = np.bincount(group, a.crps(y) - b.crps(y))[5:] / 4
    expected = stats.ttest_1samp(difference, 0, alternative="less")
    result = compare_models(CRPS, y[used], a[used], b[used], groups=group[used], alternative="less")
    assert result.p_value == pytest.approx(expected.pvalue, rel=1e-9)  # equal groups


def test_subsamples_follow_the_effective_number_of_samples():
    rng = np.random.default_rng(0)
    n = 400
    label, proba = random_problem(rng, n)
    sizes = []

    def metric(y, p, sample_weight=None):
        sizes.append(len(y))
        return float(np.average((y - p) ** 2, weights=sample_weight))

    confidence_interval(metric, label, proba, **FAST)
    confidence_interval(metric, label, proba, sample_weight=1 + np.zeros(n), **FAST)
    assert sizes[101:140] == sizes[241:] == [60] * 39
    sizes.clear()
    weight = np.where(np.arange(n) < 100, 1.0, 0.01)
    confidence_interval(metric, label, proba, sample_weight=weight, **FAST)
    expected = int(np.ceil(3 * n / np.sqrt(effective(weight))))
    assert set(sizes[101:]) == {expected}
    assert 100 < expected < 120


def test_limits_by_hand():
    limits = Limits(estimate=1.0, deviation=0.5, degrees=np.inf, pivots=np.array([-2.0, 0.5, 3.0]))
    # ranks of 0.25 and 0.75 among three values are the first and the third of them
    assert limits.interval(0.5) == (-2.0, 3.0)
    assert limits.interval(0.75, "less") == (-np.inf, 3.0)
    assert limits.interval(0.75, "greater") == (-2.0, np.inf)
    assert limits.p_value(-2.0, "greater") == 0.5  # (1 + 1) / 4, at the pivot itself
    assert limits.p_value(-2.1, "greater") == 0.25
    assert limits.p_value(3.0, "less") == 0.5
    assert limits.p_value(3.1, "less") == 0.25
    assert limits.p_value(1.0) == 1.0  # both are (1 + 2) / 4 or (1 + 1) / 4, and 0.5
    assert limits.p_value(3.1) == 0.5
    normal = Limits(1.0, 0.5, np.inf, np.empty(0))
    assert normal.p_value(0.0) == pytest.approx(2 * stats.norm.sf(2), rel=1e-12)
    assert normal.p_value(2.0, "less") == pytest.approx(stats.norm.cdf(-2), rel=1e-12)
    assert normal.p_value(2.0, "greater") == pytest.approx(stats.norm.cdf(2), rel=1e-12)
    certain = Limits(1.0, 0.0, 9.0, np.empty(0))
    assert certain.interval(0.9) == (1.0, 1.0)
    assert [certain.p_value(null) for null in (0.0, 1.0, 2.0)] == [0.0, 1.0, 0.0]


def test_one_sided_p_values():
    label, proba = random_problem(np.random.default_rng(3), 80)

    def metric(y, p):
        return float(np.mean((y - p) ** 2))

    one, less, greater = (
        compare_models(metric, label, proba, proba**2, alternative=alternative, **FAST)
        for alternative in ("two-sided", "less", "greater")
    )
    assert one.p_value == pytest.approx(min(1, 2 * min(less.p_value, greater.p_value)))
    swapped = compare_models(metric, label, proba**2, proba, alternative="less", **FAST)
    assert swapped.p_value == greater.p_value
    assert swapped.high == pytest.approx(-greater.low, abs=1e-12)
    assert (greater.high, less.low) == (np.inf, -np.inf)
    assert one.low < greater.low < one.difference < less.high < one.high
    finite = confidence_interval(SMOOTH, label, proba, method="finite-sample", alternative="less")
    both = confidence_interval(SMOOTH, label, proba, method="finite-sample")
    assert finite.low == 0
    assert finite.estimate < finite.high < both.high


BAD = {
    "length": ({"groups": np.arange(39)}, r"must have the same length.*groups: 39"),
    "one group": ({"groups": np.zeros(40)}, "groups must name at least two groups.* found 1"),
    "few groups": ({"groups": np.arange(40) % 9}, "groups must name at least 10 .* found 9"),
    "missing": ({"groups": [*"ab" * 19, "c", None]}, "groups must not hold missing values"),
    "without weight": (
        {"groups": np.arange(40) // 4, "sample_weight": np.arange(40) < 36},
        "groups must name at least 10 .* found 9",
    ),
    "one heavy group": (
        {"groups": np.maximum(np.arange(40) - 20, 0)},
        r"groups and sample_weight must leave an effective .* of groups.*found 3.48 of 20",
    ),
    "heavy samples": (
        {"sample_weight": np.where(np.arange(40) < 9, 1.0, 1e-3)},
        r"sample_weight must leave an effective .* of samples.*found 9.06 of 40",
    ),
    "finite": (
        {"groups": np.arange(40) // 2, "method": "finite-sample", "metric": SMOOTH},
        "method='finite-sample' needs groups=None",
    ),
    "method": ({"method": "bootstrap"}, "'method' parameter"),
    "alternative": ({"alternative": "smaller"}, "'alternative' parameter"),
}


@pytest.mark.parametrize(("changed", "match"), BAD.values(), ids=BAD)
def test_bad_input(changed, match):
    label, proba = random_problem(np.random.default_rng(0), 40)
    given = {"metric": "expected_calibration_error", "y_true": label, "n_resamples": 5} | changed
    with pytest.raises(ValueError, match=match):
        confidence_interval(y_pred=proba, **given)
    if "finite" not in given.get("method", ""):
        with pytest.raises(ValueError, match=match):
            compare_models(y_pred_a=proba, y_pred_b=proba**2, **given)


def test_comparisons_have_no_finite_sample_interval():
    with pytest.raises(ValueError, match="'method' parameter of compare_models must be"):
        compare_models(SMOOTH, [0, 1], [0.1, 0.9], [0.1, 0.9], method="finite-sample")


@pytest.mark.slow
def test_false_alarms_with_groups_and_in_series():
    with_groups, without = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(40), rng.integers(2, 51, size=40))
        score = np.sqrt(0.3) * rng.normal(size=40)[group]
        score += np.sqrt(0.7) * rng.normal(size=len(group))
        proba = rng.uniform(0.2, 0.8, size=len(group))
        y = (stats.norm.cdf(score) < proba).astype(int)
        shift = rng.choice([-0.1, 0.1], size=40)[group]  # no model is better than the other
        models = log_loss, y, proba + shift, proba - shift
        with_groups.append(compare_models(*models, groups=group).p_value)
        without.append(compare_models(*models).p_value)
        means = lfilter([0.6], [1, -0.8], rng.normal(size=(2, 500)))
        y = rng.normal(size=500)
        models = CRPS, y, *(GaussianForecast(mean, 1.4) for mean in means)
        with_groups.append(compare_models(*models, groups=np.arange(500) * 22 // 500).p_value)
        without.append(compare_models(*models).p_value)
    for offset in (0, 1):
        false_alarms = np.mean(np.array(with_groups[offset::2]) <= 0.05)
        highest = 0.05 + 4 * np.sqrt(0.05 * 0.95 / 300)
        assert false_alarms < highest < np.mean(np.array(without[offset::2]) <= 0.05)
