"""The lenses top_k and class_groups equal loops and give valid input for every metric."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from problems import problem, two_columns

from skcalib.datasets import make_dirichlet_family
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.lenses import class_groups, top_k
from skcalib.metrics import (
    expected_calibration_error,
    smooth_calibration_error,
    squared_kernel_calibration_error,
)


def top_k_by_loops(label, proba, k):
    ranks, rows = [], []
    for y, row in zip(label, proba.tolist(), strict=True):
        order = sorted(range(len(row)), key=lambda j, row=row: (-row[j], j))
        kept = order[:k]
        rest = [row[j] for j in order[k:]]
        rows.append([row[j] for j in kept] + ([sum(rest)] if rest else []))
        ranks.append(kept.index(y) if y in kept else k)
    return ranks, rows


@pytest.mark.parametrize("k", [1, 2, 4, 5])
@pytest.mark.parametrize("seed", range(5))
def test_top_k_equals_loops(seed, k):
    label, proba = problem(5, seed, 60)
    ranks, rows = top_k_by_loops(label, proba, k)
    rank, top = top_k(label, proba, k)
    np.testing.assert_array_equal(rank, ranks)
    np.testing.assert_allclose(top, rows, rtol=0, atol=1e-12)


def test_top_k_by_hand():
    y_true = ["b", "a", "c"]
    y_proba = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.4, 0.2, 0.4]]
    rank, proba = top_k(y_true, y_proba, 1)
    assert rank.tolist() == [1, 1, 1]
    np.testing.assert_allclose(proba, [[0.5, 0.5], [0.7, 0.3], [0.4, 0.6]], atol=1e-15)
    rank, proba = top_k(y_true, y_proba, 2)
    assert rank.tolist() == [1, 2, 1]  # of two equal probabilities the first column comes first
    expected = [[0.5, 0.3, 0.2], [0.7, 0.2, 0.1], [0.4, 0.4, 0.2]]
    np.testing.assert_allclose(proba, expected, atol=1e-15)


def test_all_classes_are_sorted_and_none_is_left_as_other():
    label, proba = problem(5, n=60)
    rank, ordered = top_k(label, proba, 5)
    np.testing.assert_array_equal(ordered, -np.sort(-proba, axis=1))
    np.testing.assert_array_equal(ordered[np.arange(60), rank], proba[np.arange(60), label])
    one_less = top_k(label, proba, 4)
    np.testing.assert_array_equal(one_less[0], rank)
    np.testing.assert_array_equal(one_less[1], ordered)


def test_equal_probabilities_keep_the_order_of_the_columns():
    proba = np.tile([0.005, 0.015], (100, 50))
    rank, _ = top_k(np.arange(100), proba, 100)
    expected = [50 * (j % 2 == 0) + j // 2 for j in range(100)]
    np.testing.assert_array_equal(rank, expected)


METRICS = [
    smooth_calibration_error,
    expected_calibration_error,
    lambda *args, **options: squared_kernel_calibration_error(
        *args, multi_class="confidence", bandwidth=0.3, **options
    ),
]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(5))
def test_the_largest_one_is_the_confidence(metric, seed):
    label, proba = problem(5, seed, 60)
    weight = np.random.default_rng(seed).random(60)
    rank, top = top_k(label, proba, 1)
    actual = metric(rank, top, pos_label=0, sample_weight=weight)
    assert actual == pytest.approx(metric(label, proba, sample_weight=weight), abs=1e-12)


def test_groups_by_hand():
    y_true = [3, 0, 2]
    y_proba = [[0.1, 0.2, 0.3, 0.4], [0.0, 1.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]]
    expected = np.array([[0.6, 0.3, 0.1], [1, 0, 0], [0.5, 0.25, 0.25]])
    group, proba = class_groups(y_true, y_proba, [[1, 3], [2], (0,)], labels=range(4))
    assert group.tolist() == [0, 2, 1]
    np.testing.assert_allclose(proba, expected, atol=1e-15)
    named = {"y": np.array([1, 3]), "z": pd.Series([2], index=[7]), "x": {0}}
    group, proba = class_groups(y_true, y_proba, named, labels=range(4))
    assert group.tolist() == ["y", "x", "z"]
    np.testing.assert_allclose(proba, expected[:, [2, 0, 1]], atol=1e-15)


@pytest.mark.parametrize("names", ["abcde", [0, 10, 20, 30, 40], [-2, -1, 0, 1, 2]])
def test_groups_of_one_class_each_are_the_identity(names):
    label, proba = problem(5, n=60)
    y_true = np.array(list(names))[label]
    group, grouped = class_groups(y_true, proba, {name: [name] for name in names})
    np.testing.assert_array_equal(group, y_true)
    np.testing.assert_array_equal(grouped, proba)
    group, grouped = class_groups(y_true, proba, [[name] for name in names])
    np.testing.assert_array_equal(group, label)
    np.testing.assert_array_equal(grouped, proba)


def test_groups_of_groups_are_groups():
    label, proba = problem(5, n=60)
    once = class_groups(label, proba, [[0, 3, 4], [1, 2]])
    first = class_groups(label, proba, {"a": [0, 3], "b": [1, 2], "c": [4]})
    twice = class_groups(*first, [["a", "c"], ["b"]])
    np.testing.assert_array_equal(twice[0], once[0])
    np.testing.assert_allclose(twice[1], once[1], rtol=0, atol=1e-15)


def test_one_class_against_the_rest_is_classwise():
    label, proba = problem(5, n=60)
    errors = smooth_calibration_error(label, proba, multi_class="classwise", average=None)
    for k, expected in enumerate(errors):
        rest = [j for j in range(5) if j != k]
        group, grouped = class_groups(label, proba, [rest, [k]])
        assert smooth_calibration_error(group, grouped) == pytest.approx(expected, abs=1e-12)


LENSES = {
    "top 1": lambda y, proba, **options: top_k(y, proba, 1, **options),
    "top 2": lambda y, proba, **options: top_k(y, proba, 2, **options),
    "top 4": lambda y, proba, **options: top_k(y, proba, 4, **options),
    "groups": lambda y, proba, **options: class_groups(
        y, proba, {"odd": [1, 3], "even": [0, 2, 4]}, **options
    ),
}
all_lenses = pytest.mark.parametrize("lens", LENSES.values(), ids=LENSES)


@all_lenses
@pytest.mark.parametrize("seed", range(6))
def test_the_outcome_is_input_for_every_metric(lens, seed):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(5, [0.01, 1, 100][seed % 3]), size=200).astype(np.float32)
    label, seen = lens(rng.integers(0, 5, size=200), proba, labels=range(5))
    assert label.shape == (200,)
    assert 0 <= seen.min() <= seen.max() <= 1
    miss = np.abs(proba.astype(np.float64).sum(axis=1) - 1)  # of single precision
    assert (np.abs(seen.sum(axis=1) - 1) <= miss + 1e-14).all()
    classes = np.unique(label) if label.dtype.kind == "U" else range(seen.shape[1])
    for multi_class in ("confidence", "canonical"):
        error = expected_calibration_error(label, seen, labels=classes, multi_class=multi_class)
        assert 0 < error < 1


@all_lenses
def test_calibrated_predictions_seen_through_a_lens_are_calibrated(lens):
    # p-values of calibrated models are uniform: below 1/5 about 8 times in 40 (0.3 s for these)
    n_small = 0
    for seed in range(40):
        y, proba = make_dirichlet_family(40, n_classes=5, random_state=seed)
        label, seen = lens(y, proba, labels=range(5))
        classes = ["even", "odd"] if label.dtype.kind == "U" else range(seen.shape[1])
        test = CalibrationTest(n_resamples=9, labels=classes, random_state=seed)
        n_small += test.fit(seen, label).p_value_ <= 0.2
    assert abs(n_small - 8) < 4 * np.sqrt(40 * 0.2 * 0.8)


@all_lenses
def test_predictions_that_say_nothing_stay_uncalibrated(lens):
    y, proba = make_dirichlet_family(400, n_classes=5, model="M3", random_state=0)
    label, seen = lens(y, proba)
    test = CalibrationTest(n_resamples=99, random_state=0)
    assert test.fit(seen, label).p_value_ == 0.01


def test_lenses_hide_what_they_do_not_show():
    # classes 0 and 1 are confused, their sum is right
    proba = np.tile([0.8, 0.0, 0.2], (10, 1))
    label = np.array([1] * 8 + [2] * 2)
    assert smooth_calibration_error(
        *class_groups(label, proba, [[0, 1], [2]], labels=[0, 1, 2])
    ) == pytest.approx(0, abs=1e-15)
    assert expected_calibration_error(label, proba, labels=[0, 1, 2]) == pytest.approx(0.8)


def test_two_classes():
    label, proba = problem(2)
    for y_proba in (proba, two_columns(proba)):
        rank, top = top_k(label, y_proba, 1)
        np.testing.assert_array_equal(top[:, 0], np.maximum(1 - proba, proba))
        guess = (proba > 0.5).astype(int)
        np.testing.assert_array_equal(rank, (guess != label).astype(int))
        group, grouped = class_groups(label, y_proba, {"a": [1], "b": [0]})
        np.testing.assert_array_equal(grouped, two_columns(proba)[:, ::-1])
        np.testing.assert_array_equal(group, np.array(["b", "a"])[label])


@all_lenses
def test_containers(lens):
    label, proba = problem(5, n=60)
    expected = lens(label, proba)
    index = np.random.default_rng(0).permutation(60) + 100
    for y, matrix in (
        (label.tolist(), proba.tolist()),
        (pd.Series(label, index=index), pd.DataFrame(proba, index=index)),
        (pl.Series(label), pl.DataFrame(proba)),
        (label, np.asfortranarray(proba)),
    ):
        actual = lens(y, matrix)
        np.testing.assert_array_equal(actual[0], expected[0])
        np.testing.assert_array_equal(actual[1], expected[1])


@pytest.mark.parametrize(
    "lens", [lambda *args: top_k(*args, 2), lambda *args: class_groups(*args, [[0], [1]])]
)
def test_bad_predictions_are_refused(lens):
    with pytest.raises(ValueError, match=r"y_proba must lie in \[0, 1\]"):
        lens([0, 1], [0.5, 1.5])
    with pytest.raises(ValueError, match="y_true holds 3 distinct labels"):
        lens([0, 1, 2], [0.5, 0.5, 0.5])


def test_bad_numbers_of_classes_are_refused():
    label, proba = problem(5, n=60)
    with pytest.raises(ValueError, match=r"k must be at most .* found k=6 and 5 classes"):
        top_k(label, proba, 6)
    for k in (0, 1.5, "2", None):
        with pytest.raises(ValueError, match="The 'k' parameter"):
            top_k(label, proba, k)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([[0, 1], [2, 3]], r"partition must hold every class; found no group for \[4\]"),
        ([[0, 1], [1, 2, 3, 4]], "partition must hold each class once; found 1 a second time"),
        ([[0, 1, 0], [2, 3, 4]], "found 0 a second time, in group 0"),
        ({"a": [0, 1], "b": [2, 3, 4, 5]}, r"only the classes \[0, .*; found 5 in group 'b'"),
        ([["0", "1"], ["2", "3", "4"]], "found '0' in group 0.* of the same type"),
        ([[[0, 1]], [[2, 3, 4]]], r"found \[0, 1\] in group 0"),
        ({"a": "01", "b": [2, 3, 4]}, r"a list of classes for each group; found '01'.*\['01'\]"),
        ([0, 1, 2, 3, 4], r"a list of classes for each group; found 0 for group 0"),
        ([[0, 1, 2, 3, 4]], r"at least two.* found 1 group\(s\)"),
        ([[0, 1, 2, 3, 4], []], r"none of them empty; found 2 group\(s\), 1 of them"),
        ([], r"found no group for \[0, 1, 2, 3, 4\]"),
        ({"a": [0, 1], 1: [2, 3, 4]}, "The names in partition must hold labels of one type"),
        ("abc", "The 'partition' parameter"),
        (3, "The 'partition' parameter"),
    ],
    ids=str,
)
def test_bad_groups_are_refused(groups, message):
    label, proba = problem(5, n=60)
    with pytest.raises(ValueError, match=message):
        class_groups(label, proba, groups)
