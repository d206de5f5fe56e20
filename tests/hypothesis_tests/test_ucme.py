"""The test at chosen locations equals its formula."""

import numpy as np
import pytest
from oracles import kernel_value
from problems import random_problem, two_columns
from scipy.stats import chi2

from skcalib.hypothesis_tests import UCMETest


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_ucme_by_loops(n_classes, weighted):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 80, n_classes)
    weight = rng.exponential(size=80) if weighted else np.ones(80)
    matrix = two_columns(proba) if n_classes == 2 else proba
    points, classes = rng.dirichlet(np.ones(n_classes), size=3), rng.integers(n_classes, size=3)
    w = weight / weight.sum()
    mean, covariance = np.zeros(3), np.zeros((3, 3))
    for p, y, share in zip(matrix, label, w, strict=True):
        k = np.array([kernel_value("rbf", t, p, 0.4) for t in points])
        mean += share * k * ((y == classes) - p[classes])
        for a in range(3):
            for b in range(3):  # of the indicators of two classes, of which one occurs
                both = p[classes[a]] if classes[a] == classes[b] else 0.0
                covariance[a, b] += share**2 * k[a] * k[b] * (both - p[classes[a]] * p[classes[b]])
    expected = mean @ np.linalg.solve(covariance, mean)
    test = UCMETest(
        locations=(points, classes),
        kernel="rbf",
        bandwidth=0.4,
        method="asymptotic",
        labels=range(n_classes),
    )
    test.fit(proba, label, sample_weight=weight if weighted else None)
    assert test.statistic_ == pytest.approx(expected, rel=1e-9)
    assert test.degrees_of_freedom_ == 3
    assert test.p_value_ == pytest.approx(chi2.sf(expected, 3), rel=1e-9)


def test_ucme_of_impossible_labels():
    label = np.random.default_rng(0).integers(0, 3, size=100)
    for seed in range(5):
        test = UCMETest(method="asymptotic", random_state=seed, labels=range(3))
        test.fit(np.eye(3)[(label + 1) % 3], label)
        assert test.statistic_ == np.inf
        assert 0 < test.p_value_ < 1e-300
    p_values = [
        UCMETest(method="asymptotic", random_state=0, labels=[0, 1])
        .fit(np.full(n, 0.3), np.zeros(n, int))
        .p_value_
        for n in (2, 5, 10, 50)
    ]
    assert p_values == sorted(p_values, reverse=True)
    assert 1 > p_values[0] > 0.3 > 1e-4 > p_values[-1] > 0


def test_ucme_leaves_out_directions_without_variation():
    label, proba = random_problem(np.random.default_rng(0), 100, 3)
    point = np.full((2, 3), 1 / 3)
    options = {"method": "asymptotic", "labels": range(3)}
    twice = UCMETest(locations=(point, [1, 1]), **options).fit(proba, label)
    once = UCMETest(locations=(point[:1], [1]), **options).fit(proba, label)
    assert twice.degrees_of_freedom_ == once.degrees_of_freedom_ == 1
    assert twice.p_value_ == pytest.approx(once.p_value_, rel=1e-9)
    perfect = UCMETest(random_state=0, labels=range(3)).fit(np.eye(3)[label], label)
    assert (perfect.degrees_of_freedom_, perfect.p_value_) == (0, 1.0)


def test_ucme_locations_are_drawn_from_the_simplex():
    label, proba = random_problem(np.random.default_rng(0), 100, 3)
    test = UCMETest(n_locations=200, random_state=0).fit(proba, np.array(["c", "a", "b"])[label])
    points, classes = test.locations_
    assert points.shape == (200, 3)
    np.testing.assert_allclose(points.sum(axis=1), 1)
    assert set(classes) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("locations", "message"),
    [
        ((np.full((2, 3), 1 / 3),), "must be a pair"),
        ((np.full((2, 2), 1 / 2), [0, 1]), "probability vectors of 3 classes"),
        ((np.full((2, 3), 1 / 2), [0, 1]), "must sum to 1"),
        ((np.full((2, 3), 1 / 3), [0]), "same length"),
        ((np.full((2, 3), 1 / 3), [0, 7]), "must hold only the classes"),
    ],
)
def test_bad_locations_are_refused(locations, message):
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    with pytest.raises(ValueError, match=message):
        UCMETest(locations=locations, labels=range(3)).fit(proba, label)


def test_locations_beyond_the_memory_are_refused():
    with pytest.raises(MemoryError, match=r"n_locations=1000000 needs .* GB of memory"):
        UCMETest(n_locations=10**6).fit([0.2, 0.8, 0.4], [0, 1, 1])
