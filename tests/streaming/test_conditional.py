from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import on_grid
from scipy.stats import binom

from skcalib import metrics
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.streaming import CalibrationState


def test_p_value_is_that_of_all_numbers_of_events():
    """Every number of events at each prediction, with its binomial probability."""
    point, size = np.array([0.2, 0.5, 0.9]), np.array([4, 3, 5])
    events = np.array([2, 3, 3])

    def rows(number):
        label = np.concatenate(
            [np.arange(n) < k for n, k in zip(size, number, strict=True)]
        ).astype(int)
        return label, np.repeat(point, size)

    state = CalibrationState(labels=[0, 1]).update(*rows(events))
    for statistic in ("smooth_calibration_error", "brier_score_loss"):

        def value(number, statistic=statistic):
            label, proba = rows(number)
            if statistic == "brier_score_loss":
                return np.mean((label - proba) ** 2 - proba * (1 - proba))
            return metrics.smooth_calibration_error(label, proba, labels=[0, 1])

        numbers = list(product(*(range(n + 1) for n in size)))
        mass = np.array([np.prod(binom.pmf(number, size, point)) for number in numbers])
        values = np.array([value(number) for number in numbers])
        observed = value(events)
        p_value = mass[values >= observed - 1e-12].sum()
        if statistic == "brier_score_loss":  # two-sided: twice the smaller tail
            p_value = min(1, 2 * min(p_value, mass[values <= observed + 1e-12].sum()))
        n = 1500
        test = CalibrationTest(statistic, n_resamples=n, random_state=0).fit(state)
        assert_allclose(test.statistic_, observed, rtol=1e-12)
        assert abs(test.p_value_ - p_value) < 5 * np.sqrt(p_value * (1 - p_value) / n) + 1 / n


@pytest.mark.parametrize(
    ("statistic", "options"),
    [
        ("omnibus", {}),
        ("skce", {}),
        ("skce", {"bandwidth": 0.3, "kernel": "exponential", "estimation": "biased"}),
        ("log_loss", {}),
        ("brier_score_loss", {}),
        ("smooth_calibration_error", {}),
        ("expected_calibration_error", {"metric_params": {"estimation": "debiased", "norm": "l2"}}),
        ("kernel_calibration_error", {}),
        ("kernel_calibration_error", {"bandwidth": 0.3}),
        ("squared_kernel_calibration_error", {"metric_params": {"class_kernel": [[2, 0], [0, 1]]}}),
    ],
)
def test_statistics_are_those_of_the_rows(statistic, options):
    label, proba = on_grid(400)
    proba = np.clip(proba, 1e-7, 1 - 1e-7)
    options = {"n_resamples": 19, "random_state": 0, **options}
    state = CalibrationState([0, 1]).update(label, proba)
    of_state = CalibrationTest(statistic, **options).fit(state)
    of_rows = CalibrationTest(statistic, **options).fit(proba, label)
    if statistic == "omnibus":
        ours, theirs = of_state.component_statistics_, of_rows.component_statistics_
        assert list(ours) == list(theirs)
        assert_allclose(list(ours.values()), list(theirs.values()), rtol=1e-9)
    else:
        assert_allclose(of_state.statistic_, of_rows.statistic_, rtol=1e-9)
    assert of_state.null_distribution_.shape == (19,)
    assert_array_equal(of_state.classes_, [0, 1])


@pytest.mark.parametrize("statistic", ["omnibus", "skce", "log_loss"])
def test_draws_follow_the_law_of_drawn_labels(statistic):
    """Means and standard deviations of draws of the state and of the rows, within 4.5 errors."""
    _, proba = on_grid(150)
    proba = np.round(np.clip(proba, 0.02, 0.98), 2)
    label = (np.random.default_rng(3).random(150) < proba).astype(int)
    n = 1500
    state = CalibrationState([0, 1]).update(label, proba)
    tests = [
        CalibrationTest(statistic, n_resamples=n, random_state=seed).fit(*data)
        for seed, data in enumerate([(state,), (proba, label)])
    ]
    null_distributions = [
        list(test.component_null_distributions_.values())
        if statistic == "omnibus"
        else [test.null_distribution_]
        for test in tests
    ]
    for ours, theirs in zip(*null_distributions, strict=True):
        error = np.sqrt((ours.var() + theirs.var()) / n)
        assert abs(ours.mean() - theirs.mean()) < 4.5 * error
        assert abs(np.log(ours.std() / theirs.std())) < 0.15


def test_the_size_is_the_level():
    rng = np.random.default_rng(0)
    proba = np.round(rng.random(60) * 0.98 + 0.01, 1)
    rejected = 0
    for seed in range(100):
        state = CalibrationState([0, 1]).update(rng.random(60) < proba, proba)
        test = CalibrationTest("skce", n_resamples=19, random_state=seed).fit(state)
        rejected += test.p_value_ <= 0.1
    assert abs(rejected - 10) < 4 * np.sqrt(100 * 0.1 * 0.9)


def test_single_precision_is_on_the_grid():
    label, proba = on_grid(100)
    proba = np.round(proba, 2).astype(np.float32)
    state = CalibrationState([0, 1]).update(label, proba)
    assert 0 < CalibrationTest("skce", n_resamples=9, random_state=0).fit(state).p_value_ <= 1


def test_equal_weights_are_tested():
    label, proba = on_grid(100)
    options = {"statistic": "skce", "n_resamples": 19, "random_state": 0}
    plain = CalibrationTest(**options).fit(CalibrationState().update(label, proba))
    tripled = CalibrationState().update(label, proba, np.full(100, 3.0))
    assert_allclose(CalibrationTest(**options).fit(tripled).p_value_, plain.p_value_)
    count = np.full(100, 10)
    sums = {"weight": count * 0.1, "squared_weight": np.full(100, sum([0.1**2] * 10))}  # rounded
    counted = CalibrationState.from_counts(label, proba, count, **sums)
    repeated = CalibrationState.from_counts(label, proba, count)
    first, second = (
        CalibrationTest(**options).fit(state).p_value_ for state in (counted, repeated)
    )
    assert_allclose(first, second)
