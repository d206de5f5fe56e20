"""Groups of samples, their weights and blocks of series in intervals and comparisons."""

import numpy as np
import pytest
from oracles import change_without_groups, student_by_hand
from problems import random_problem
from scipy import stats

from skcalib.forecasts import GaussianForecast
from skcalib.uncertainty import compare_models, confidence_interval

FAST = {"n_resamples": 39, "random_state": 0}
SMOOTH = "smooth_calibration_error"
CRPS = "continuous_ranked_probability_loss"


def ends(result):
    return result.low, result.high


def test_groups_of_one_sample_are_no_groups_and_names_do_not_matter():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 30)
    plain = confidence_interval("expected_calibration_error", label, proba, **FAST)
    for singles in (np.arange(30), -np.arange(30.0)):
        grouped = confidence_interval(
            "expected_calibration_error", label, proba, groups=singles, **FAST
        )
        assert ends(grouped) == pytest.approx(ends(plain), abs=1e-12)
    group = rng.integers(15, size=30)
    names = rng.permutation(15).astype(str)
    one = compare_models("expected_calibration_error", label, proba, proba**2, groups=group, **FAST)
    assert one == compare_models(
        "expected_calibration_error", label, proba, proba**2, groups=names[group], **FAST
    )
    assert one != compare_models("expected_calibration_error", label, proba, proba**2, **FAST)


def test_repeated_samples_as_groups_are_single_samples():
    label, proba = random_problem(np.random.default_rng(0), 130)
    single = confidence_interval("calibration_in_the_large", label, proba)
    label, proba = label.repeat(3), proba.repeat(3)
    groups = np.arange(130).repeat(3)
    three = confidence_interval("calibration_in_the_large", label, proba, groups=groups)
    assert ends(three) == pytest.approx(ends(single), abs=0.002)  # the dependence is estimated
    as_if_independent = confidence_interval("calibration_in_the_large", label, proba)
    assert np.ptp(ends(as_if_independent)) < 0.8 * np.ptp(ends(single))
    errors = [
        np.ptp(ends(confidence_interval(SMOOTH, label, proba, groups=kind, **FAST)))
        for kind in (groups, None)
    ]
    assert errors[1] < 0.8 * errors[0]


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
    difference = (a.crps(y) - b.crps(y))[used]
    changes = change_without_groups(difference, np.ones(60), group[used])
    _, deviation, degrees = student_by_hand(difference.mean(), changes, 15)
    result = compare_models(CRPS, y[used], a[used], b[used], groups=group[used], alternative="less")
    expected = stats.t.cdf(difference.mean() / deviation, degrees)
    assert result.p_value == pytest.approx(expected, rel=1e-9)


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
    if "method" not in given:
        with pytest.raises(ValueError, match=match):
            compare_models(y_pred_a=proba, y_pred_b=proba**2, **given)


def test_comparisons_have_no_finite_sample_interval():
    with pytest.raises(TypeError, match="'method'"):
        compare_models(SMOOTH, [0, 1], [0.1, 0.9], [0.1, 0.9], method="finite-sample")
