"""The test of equivalence inverts the upper confidence limit."""

from functools import partial

import numpy as np
import pytest
from oracles import change_without_groups, student_by_hand
from sklearn.metrics import log_loss

from skcalib._data import check_predictions
from skcalib.datasets import make_temperature_family
from skcalib.forecasts import GaussianForecast
from skcalib.hypothesis_tests import EquivalenceTest
from skcalib.metrics import calibration_in_the_large, calibration_slope
from skcalib.metrics._terms import MetricTerms
from skcalib.uncertainty import confidence_interval
from skcalib.uncertainty._limits import ScoreLimits, StudentLimits
from skcalib.uncertainty._units import Units

FAST = {"n_resamples": 39, "random_state": 0}


def in_order(n, inverse_temperature, seed=0):
    """Labels and predictions sorted by these, in which order the test resamples them."""
    y, p = make_temperature_family(n, inverse_temperature=inverse_temperature, random_state=seed)
    order = np.argsort(p)
    return y[order], p[order]


def test_p_value_by_hand():
    y, p = in_order(100, 2)
    weight, proba = np.full(100, 0.01), np.column_stack([1 - p, p])
    cell = (p > 0.5).astype(int)
    gap = np.array([np.sum((y - p)[cell == k]) for k in (0, 1)])
    sign = np.sign(gap)[cell]
    value = np.sum(np.abs(gap)) / 100
    # the error is a mean of the residuals with the signs of their bins, or of the others
    terms = MetricTerms(weight, sign * (y - p), sign[:, None] * (np.arange(2) - p[:, None]), proba)
    data = check_predictions(y, p)
    score = ScoreLimits(terms, Units(data))
    changes = change_without_groups(sign * (y - p), np.ones(100), np.arange(100))
    for margin in (0.12, 0.2):
        test = EquivalenceTest(
            "expected_calibration_error", margin=margin, metric_params={"n_bins": 2}, **FAST
        ).fit(p, y)
        student = StudentLimits(*student_by_hand(value, changes, 100))
        tails = student.tails(margin)[0], score.tails(margin)[0], score.tails(-margin)[1]
        assert test.statistic_ == pytest.approx(value, rel=1e-12)
        assert test.p_value_ == pytest.approx(max(tails), rel=1e-9)


@pytest.mark.parametrize("metric", ["expected_calibration_error", log_loss])
def test_p_value_is_the_level_at_which_the_limit_meets_the_margin(metric):
    for seed in range(8):  # also margins that no labels lead to
        y, p = make_temperature_family(20, inverse_temperature=3, random_state=seed)
        for level in (0.8, 0.95):
            options = {"confidence_level": level, "labels": [0, 1], **FAST}
            limit = EquivalenceTest(metric, margin=9.0, **options).fit(p, y).upper_limit_
            for margin in (0.999 * limit, 1.001 * limit):
                p_value = EquivalenceTest(metric, margin=margin, **options).fit(p, y).p_value_
                assert (limit <= margin) == (p_value <= 1 - level)


@pytest.mark.parametrize(
    ("weighted", "grouped", "level"), [(False, False, 0.8), (True, True, 0.95)]
)
def test_limit_is_that_of_the_interval_and_agrees_with_the_p_value(weighted, grouped, level):
    y, p = in_order(60, 2)
    data = {
        "sample_weight": np.random.default_rng(0).uniform(0.5, 1, size=60) if weighted else None,
        "groups": np.arange(60) // 3 if grouped else None,
    }
    interval = confidence_interval(
        "smooth_calibration_error", y, p, alternative="less", confidence_level=level,
        **data, **FAST
    )  # fmt: skip
    assert interval.low == 0
    for margin in (interval.high - 1e-5, interval.high + 1e-5):
        test = EquivalenceTest(margin=margin, confidence_level=level, **FAST)
        test.fit(p, y, **data)
        assert test.upper_limit_ == pytest.approx(interval.high, abs=1e-12)
        assert test.statistic_ == pytest.approx(interval.estimate, abs=1e-12)
        assert (test.upper_limit_ <= margin) == (test.p_value_ <= 1 - level + 1e-9)


def test_only_small_miscalibration_is_equivalent():
    p_values = []
    for inverse_temperature in (1, 2, 4):
        y, p = in_order(1000, inverse_temperature)
        test = EquivalenceTest(margin=0.06, random_state=0, n_resamples=19)
        p_values.append(test.fit(p, y).p_value_)
    assert p_values[0] < 0.05 < p_values[1]
    assert p_values[2] > 0.99


def test_forecasts():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=300)
    forecast, y = GaussianForecast(mean, 1.0), rng.normal(mean)
    test = EquivalenceTest("quantile_calibration_error", margin=0.15, **FAST).fit(forecast, y)
    assert test.p_value_ < 0.001
    assert test.statistic_ < test.upper_limit_ < 0.15
    assert not hasattr(test, "classes_")
    narrow = EquivalenceTest("quantile_calibration_error", margin=0.15, **FAST)
    assert narrow.fit(GaussianForecast(mean, 0.1), y).p_value_ > 0.5


def test_bad_input():
    y, p = in_order(40, 1)
    for margin in (0, -0.1, 0.0, "0.1", None):
        with pytest.raises(ValueError, match="'margin' parameter of EquivalenceTest must be"):
            EquivalenceTest(margin=margin).fit(p, y)
    with pytest.raises(ValueError, match="y must hold at least 10 samples"):
        EquivalenceTest(margin=0.1).fit(p[:9], np.arange(9) % 2)
    with pytest.raises(ValueError, match="groups must name at least 10 groups"):
        EquivalenceTest(margin=0.1).fit(p, y, groups=np.arange(40) % 9)
    with pytest.raises(ValueError, match="metric must be a metric of classes"):
        EquivalenceTest("quantile_calibration_error", margin=0.1).fit(p, y)
    with pytest.raises(TypeError, match="margin"):
        EquivalenceTest()


@pytest.mark.parametrize(
    "metric", [calibration_in_the_large, partial(calibration_slope, labels=[0, 1])]
)
def test_measures_that_err_on_both_sides_are_refused(metric):
    rng = np.random.default_rng(0)
    proba = rng.random(50)
    with pytest.raises(ValueError, match="which has another best value"):
        EquivalenceTest(metric, margin=0.1).fit(proba, rng.random(50) < proba)
