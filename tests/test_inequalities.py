"""The inequalities between the measures, on hundreds of data sets.

Numbers refer to Błasiok, Gopalan, Hu & Nakkiran (2023), A Unifying Theory of Distance from
Calibration. The distance itself is found by enumeration, so these data sets are small.
"""

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from oracles import distance_by_enumeration, upper_distance_by_enumeration

from skcalib.metrics import (
    calibration_distance_bounds,
    cumulative_calibration_error,
    expected_calibration_error,
    interval_calibration_error,
    laplace_kernel_calibration_error,
    lower_distance_to_calibration,
    smooth_calibration_error,
    smooth_expected_calibration_error,
)

ROUNDING = 1e-12
TOL = 1e-5  # of the lower distance: its exact value lies in [value, value + TOL]

probabilities = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0.0, 1.0, 0.5, 0.1, 0.9]),
    st.integers(0, 20).map(lambda k: k / 20),
    st.floats(-1e-3, 1e-3).map(lambda x: 0.5 + x),
)
weights = st.one_of(st.just(1.0), st.floats(0.01, 100), st.sampled_from([1e-9, 1e9]))


def data_sets(max_size):
    sample = st.tuples(st.integers(0, 1), probabilities, weights)
    return st.lists(sample, min_size=1, max_size=max_size).map(
        lambda rows: tuple(np.array(column) for column in zip(*rows, strict=True))
    )


def many(max_examples):
    return settings(max_examples=max_examples, deadline=None, derandomize=True, database=None)


def value(measure, data, **options):
    outcome, proba, weight = data
    return measure(outcome, proba, sample_weight=weight, labels=[0, 1], **options)


@many(60)  # 0.6 s: eight measures of each data set, in all their inequalities
@given(
    data_sets(40), st.integers(1, 20), st.sampled_from(["uniform", "quantile"]), st.floats(0, 0.2)
)
def test_measures_bound_each_other(data, n_bins, strategy, step):
    outcome, proba, weight = data
    smooth = value(smooth_calibration_error, data)
    lower = value(lower_distance_to_calibration, data, tol=TOL)

    # Theorem 7.3
    assert lower / 2 <= smooth + ROUNDING
    assert smooth <= 2 * (lower + TOL)

    # Theorems 6.2 and 6.11; and the interval error is the least of all binnings
    interval = value(interval_calibration_error, data)
    surrogate = value(interval_calibration_error, data, method="surrogate")
    bins = {"n_bins": n_bins, "strategy": strategy}
    binned = value(expected_calibration_error, data, **bins, add_bin_width=True)
    assert interval <= 4 * np.sqrt(lower + TOL)
    assert interval <= surrogate + ROUNDING
    assert interval <= binned + ROUNDING

    # Theorem 8.5. The norm of a function with |f| ≤ 1 and slopes up to 1 is at most √2; and a
    # function of norm 1 changes by at most √(2|u − v|).
    kernel = value(laplace_kernel_calibration_error, data)
    assert smooth <= np.sqrt(2) * kernel + ROUNDING
    assert kernel <= np.sqrt(2 * (lower + TOL)) + lower + TOL

    # Σ c f = C f(1) − ∫ F f' for a function f that changes by at most 1
    largest = value(cumulative_calibration_error, data)
    spread = value(cumulative_calibration_error, data, norm="range")
    assert largest <= spread + ROUNDING
    assert spread <= 2 * largest + ROUNDING
    assert smooth <= 2 * largest + ROUNDING

    # With c = √(2/π): the smoothed residual's sign, smoothed, has slopes up to c/σ; and smoothing a
    # function with slopes up to 1 changes it by at most c·σ.
    if smooth > 1e-4:  # the accuracy of the smooth expected error is absolute
        c = np.sqrt(2 / np.pi)
        expected = value(smooth_expected_calibration_error, data)
        assert smooth <= (1 + c) * expected + 1e-6
        assert expected <= max(smooth, np.sqrt(c * smooth)) + 1e-6

    # The lower distance is 1-Lipschitz, the smooth error 2-Lipschitz, in the mean change.
    moved = np.clip(proba + step * np.sin(1000 * proba), 0, 1)
    change = np.average(np.abs(moved - proba), weights=weight)
    other = value(lower_distance_to_calibration, (outcome, moved, weight), tol=TOL)
    assert abs(lower - other) <= change + TOL
    smooth_other = value(smooth_calibration_error, (outcome, moved, weight))
    assert abs(smooth - smooth_other) <= 2 * change + ROUNDING


@many(60)  # 0.4 s: the distance is found by enumeration
@given(data_sets(6), st.integers(1, 12), st.sampled_from(["uniform", "quantile"]))
def test_the_distance_lies_between_its_bounds(data, n_bins, strategy):
    # equation 6 and Theorem 6.2
    outcome, proba, weight = data
    lower, upper = value(calibration_distance_bounds, data)
    distance = distance_by_enumeration(proba, outcome, weight)
    of_functions = upper_distance_by_enumeration(proba, outcome, weight)
    assert lower <= distance + ROUNDING
    assert distance <= of_functions + ROUNDING
    assert of_functions == pytest.approx(upper, abs=ROUNDING)
    assert upper <= value(interval_calibration_error, data) + ROUNDING

    # equation 5; without the width it does not
    bins = {"n_bins": n_bins, "strategy": strategy}
    bound = value(expected_calibration_error, data, **bins, add_bin_width=True)
    assert of_functions <= bound + ROUNDING
    _, number = np.unique(proba, return_inverse=True)
    alone = np.bincount(number, np.asarray(weight) / weight.sum() * (outcome - proba))
    assert of_functions <= np.abs(alone).sum() + ROUNDING  # the error of every prediction alone


@many(30)
@given(st.floats(1e-6, 0.5))
@example(0.5)
@example(1 / 6)
def test_two_points_by_hand(epsilon):
    # Definition 1.1: how far the measures of one and the same data set are apart
    data = (np.array([0, 1]), np.array([0.5 - epsilon, 0.5 + epsilon]), np.ones(2))
    rest = 0.5 - epsilon
    assert value(smooth_calibration_error, data) == pytest.approx(epsilon * rest, abs=1e-15)
    lower = value(lower_distance_to_calibration, data, tol=TOL)
    assert 2 * epsilon * rest - TOL <= lower <= 2 * epsilon * rest + 1e-15
    interval = value(interval_calibration_error, data)
    assert interval == pytest.approx(min(2 * epsilon, rest), abs=1e-15)
    kernel = value(laplace_kernel_calibration_error, data)
    assert kernel == pytest.approx(rest * np.sqrt(-np.expm1(-2 * epsilon) / 2), abs=1e-12)
    # So Theorem 7.3 is tight here. The distance itself is that of a constant ½, or of the labels.
    assert distance_by_enumeration(data[1], data[0]) == pytest.approx(min(epsilon, rest), abs=1e-15)
