"""Sorting and pooling equal NumPy's stable sort and loops over ties."""

import numpy as np
import pytest
from problems import small_case

from skcalib._numerics.sorting import (
    first_of_ties,
    last_of_runs,
    last_of_ties,
    pool_label_weights,
    pool_ties,
    sort_labelled,
)


def test_sort_labelled_equals_argsort():
    rng = np.random.default_rng(0)
    special = [0.0, -0.0, 1.0, 5e-324, 1e-300, np.nextafter(1, 0), 0.5, 0.5]
    points = np.concatenate([rng.random(1000), np.round(rng.random(1000), 2), special])
    labels = rng.integers(0, 2, size=len(points)).astype(np.int32)
    order = np.lexsort((labels, points))
    sorted_points, sorted_labels = sort_labelled(points, labels)
    np.testing.assert_array_equal(sorted_points, points[order])
    np.testing.assert_array_equal(sorted_labels, labels[order])
    assert not np.signbit(sorted_points).any()


def test_sort_labelled_takes_columns():
    matrix = np.random.default_rng(0).random((50, 2))
    labels = np.ones(50, dtype=np.int32)
    np.testing.assert_array_equal(sort_labelled(matrix[:, 1], labels)[0], np.sort(matrix[:, 1]))


def test_pool_ties():
    points, mass = pool_ties(np.array([0.5, 0.1, 0.5]), np.array([[1.0, 2, 3], [4, 5, 6]]))
    np.testing.assert_array_equal(points, [0.1, 0.5])
    np.testing.assert_array_equal(mass, [[2, 4], [5, 10]])


def test_ends_of_ties_and_of_runs():
    ordered = np.array([1.0, 1.0, 2.0, 5.0, 5.0, 5.0])
    np.testing.assert_array_equal(first_of_ties(ordered), [True, False, True, True, False, False])
    np.testing.assert_array_equal(last_of_ties(ordered), [False, True, True, False, False, True])
    np.testing.assert_array_equal(last_of_ties(ordered[:1]), [True])
    np.testing.assert_array_equal(last_of_runs(np.array([0, 2, 3]), 6), [1, 2, 5])
    np.testing.assert_array_equal(last_of_runs(np.array([0]), 6), [5])


@pytest.mark.parametrize("seed", range(20))
def test_pooled_by_loops(seed):
    proba, outcome, weight = small_case(seed)
    weight = np.full(len(proba), 0.25) if weight is None else weight
    table = pool_label_weights(proba, outcome, weight)
    assert table.points.tolist() == sorted(set(proba))
    for k, point in enumerate(table.points):
        for label in (0, 1):
            here = weight[(proba == point) & (outcome == label)]
            assert table.weight[label, k] == pytest.approx(sum(here), abs=1e-15)
            assert table.square[label, k] == pytest.approx(sum(here**2), abs=1e-15)
    np.testing.assert_array_equal(table.total, table.weight[0] + table.weight[1])
