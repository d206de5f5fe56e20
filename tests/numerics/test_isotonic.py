"""Isotonic means and their centred form equal scikit-learn and loops over blocks."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from sklearn.isotonic import IsotonicRegression

from skcalib._numerics.isotonic import (
    isotonic_knots,
    strictly_isotonic_knots,
    venn_abers_bounds,
    venn_abers_fit,
)
from skcalib._numerics.sorting import pool_ties


def labelled_weight(outcome, weight):
    return weight * np.stack([1 - outcome, outcome])


@pytest.mark.parametrize("seed", range(20))
def test_equals_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 80))
    points = np.round(rng.random(n), rng.integers(1, 8))
    outcome = (rng.random(n) < points).astype(float)
    weight = rng.random(n) + 0.01
    oracle = IsotonicRegression(out_of_bounds="clip").fit(points, outcome, sample_weight=weight)
    query = np.concatenate([points, rng.random(20), [0, 1]])
    knots = isotonic_knots(*pool_ties(points, labelled_weight(outcome, weight)))
    actual = np.interp(query, *knots)
    np.testing.assert_allclose(actual, oracle.predict(query), atol=1e-12)


def test_by_hand():
    knots, values = isotonic_knots(
        np.array([0.1, 0.2, 0.3, 0.8]), labelled_weight(np.array([0, 1, 0, 1]), 0.25)
    )
    np.testing.assert_array_equal(knots, [0.1, 0.2, 0.3, 0.8])
    np.testing.assert_array_equal(values, [0, 0.5, 0.5, 1])


def test_centred_by_hand():
    # with a 1 in front and a 0 behind: 1 0 | 1 0 | 1 0, each block with the mean 1/2
    knots, values = strictly_isotonic_knots(
        np.array([0.1, 0.2, 0.3, 0.8]), labelled_weight(np.array([0, 1, 0, 1]), 0.25), 0.25
    )
    np.testing.assert_allclose(knots, [0, 0.35, 1], rtol=1e-15)
    np.testing.assert_array_equal(values, [0.25, 0.5, 0.75])
    points = np.array([0.1, 0.2, 0.4, 0.8, 0.9, 1.0])
    weight = np.array([1, 1, 3, 1, 1, 1])
    knots, values = strictly_isotonic_knots(
        points, labelled_weight(np.array([0, 0, 0, 1, 1, 1]), weight), 1
    )
    # the 1 in front is pooled with all five zeros: 1/6; the 0 behind with the three ones: 3/4
    np.testing.assert_allclose(knots, [0, 1.5 / 5, 0.9, 1], rtol=1e-15)
    np.testing.assert_allclose(values, [1 / 12, 1 / 6, 3 / 4, 7 / 8], rtol=1e-15)


def centred_by_loops(points, positive, total, extra):
    """Knots and values, by pooling neighbours one pair at a time."""
    blocks = [[extra, extra, 0.0, 0.0]]  # weight, positives, and without the extra: weight, moment
    for p, s, w in zip(points, positive, total, strict=True):
        blocks.append([w, s, w, w * p])
    blocks.append([extra, 0.0, 0.0, 0.0])
    k = 0
    while k + 1 < len(blocks):
        first, second = blocks[k : k + 2]
        if first[1] / first[0] >= second[1] / second[0] - 1e-12:
            blocks[k : k + 2] = [[a + b for a, b in zip(first, second, strict=True)]]
            k = max(k - 1, 0)
        else:
            k += 1
    knots = [moment / weight for _, _, weight, moment in blocks]
    values = [s / w for w, s, _, _ in blocks]
    if knots[0] > 0:
        knots, values = [0.0, *knots], [values[0] / 2, *values]
    if knots[-1] < 1:
        knots, values = [*knots, 1.0], [*values, (1 + values[-1]) / 2]
    return knots, values


@pytest.mark.parametrize("seed", range(20))
def test_centred_equals_loops(seed):
    rng = np.random.default_rng(seed)
    points = np.unique(np.round(rng.random(int(rng.integers(1, 60))), rng.integers(1, 8)))
    total = rng.random(len(points)) + 0.01
    share = rng.choice([0.0, 1.0, rng.random()], size=len(points))
    extra = float(rng.choice([1e-6, 0.1, 3.0]))
    knots, values = strictly_isotonic_knots(points, total * np.stack([1 - share, share]), extra)
    expected = centred_by_loops(points, total * share, total, extra)
    np.testing.assert_allclose(knots, expected[0], atol=1e-12)
    np.testing.assert_allclose(values, expected[1], atol=1e-12)


@pytest.mark.parametrize(
    ("points", "outcome"),
    [
        ([0.3], [1]),
        ([0.0], [0]),
        ([1.0], [0]),
        ([0.0, 1.0], [0, 1]),
        ([0.0, 1.0], [1, 0]),
        ([0.5, np.nextafter(0.5, 1)], [0, 1]),
        ([0.1, 0.2, 0.3], [0, 0, 0]),
        ([5e-324, 1e-310, 0.5, 1 - 1e-16], [0, 1, 0, 1]),
    ],
)
@pytest.mark.parametrize("extra", [1e-9, 0.5, 1.0])
def test_centred_is_strict_whatever_the_data(points, outcome, extra):
    points, outcome = np.array(points), np.array(outcome)
    knots, values = strictly_isotonic_knots(points, labelled_weight(outcome, 1.0), extra)
    assert knots[0] == 0
    assert knots[-1] == 1
    assert (np.diff(knots) > 0).all()
    assert (np.diff(values) > 0).all()
    assert 0 < values[0] < values[-1] < 1


def test_centred_knots_of_adjacent_doubles():
    # a block of one point keeps it, though w·p/w may be the next double
    rng = np.random.default_rng(0)
    points = 0.3 + np.arange(100) * np.spacing(0.3)
    share = np.linspace(0.1, 0.9, 100)
    knots, _ = strictly_isotonic_knots(points, rng.random(100) * np.stack([1 - share, share]), 1e-9)
    np.testing.assert_array_equal(knots[1:-1], points)


def test_equal_means_are_one_block_whatever_the_rounding():
    rng = np.random.default_rng(0)
    for n in range(5, 50):
        points, outcome = np.sort(rng.random(n)), rng.integers(2, size=n)
        weight = labelled_weight(outcome, np.ones(n))
        expected = strictly_isotonic_knots(points, weight, 1)
        for scale in (1 / n, 1 / 3, 0.1):
            scaled = strictly_isotonic_knots(points, scale * weight, scale)
            np.testing.assert_allclose(scaled, expected, atol=1e-12)


def test_the_last_point_is_a_knot():
    knots, values = isotonic_knots(np.array([0.1, 0.2, 0.3]), np.array([[1, 0, 0], [0, 1, 1]]))
    np.testing.assert_array_equal(knots, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(values, [0, 1, 1])


def refitted(points, weight, extra, query):
    """Isotonic regression once more for each query and each label it might have, (n, 2)."""
    fits = np.empty((len(query), 2))
    for i, point in enumerate(query):
        for label in (0, 1):
            _, index = np.unique(np.append(points, point), return_inverse=True)
            total = np.bincount(index, weights=np.append(weight.sum(axis=0), extra))
            positive = np.bincount(index, weights=np.append(weight[1], extra * label))
            fit = isotonic_regression(positive / total, weights=total).x
            fits[i, label] = fit[index[-1]]
    return fits


def queries(points):
    """Each point, a place between two of them, and the ends."""
    return np.unique(np.concatenate([points, (points[1:] + points[:-1]) / 2, [0, 1]]))


def random_weight(rng, points, kind):
    n = len(points)
    if kind == "counts":
        return rng.integers(0, 3, size=(2, n)) + np.eye(2)[rng.integers(0, 2, size=n)].T
    if kind == "real":
        return 10.0 ** rng.uniform(-6, 0, size=(2, n))
    outcome = {
        "random": rng.random(n) < points,
        "separable": points > 0.5,
        "wrong": points < 0.5,
        "one class": np.full(n, rng.random() < 0.5),
    }[kind].astype(float)
    return np.stack([1 - outcome, outcome])


@pytest.mark.parametrize("kind", ["random", "counts", "real", "separable", "wrong", "one class"])
@pytest.mark.parametrize("seed", range(6))
def test_equals_isotonic_regression_for_each_query(seed, kind):
    rng = np.random.default_rng(seed)
    points = np.unique(np.round(rng.random(int(rng.integers(1, 30))), rng.integers(1, 5)))
    weight = random_weight(rng, points, kind)
    weight /= weight.sum()
    extra = float(rng.choice([(weight**2).sum(), 1.0, 1e-3]))
    query = queries(points)
    bounds = venn_abers_bounds(query, *venn_abers_fit(points, weight, extra))
    np.testing.assert_allclose(bounds, refitted(points, weight, extra, query), atol=1e-12)


def test_equals_isotonic_regression_on_a_larger_case():
    rng = np.random.default_rng(0)
    points = np.sort(rng.random(3000))
    outcome = (rng.random(3000) < points**2).astype(float)
    weight = np.stack([1 - outcome, outcome]) / 3000
    query = np.concatenate([rng.choice(points, 30), rng.random(30)])
    bounds = venn_abers_bounds(query, *venn_abers_fit(points, weight, 1 / 3000))
    np.testing.assert_allclose(bounds, refitted(points, weight, 1 / 3000, query), atol=1e-12)


def test_venn_abers_by_hand():
    # between the two, a 0 is pooled with the 0 before it, and a 1 with the 1 behind; a 1 at ¼ makes
    # that ½, as does a 0 at ¾; before both a 0, and behind both a 1, stands alone
    weight = np.array([[1.0, 0.0], [0.0, 1.0]])
    fits = venn_abers_fit(np.array([0.25, 0.75]), weight, 1.0)
    query = np.array([0.0, 0.25, 1 / 3, 0.5, 0.75, 1.0])
    expected = [[0, 0.5], [0, 0.5], [0, 1], [0, 1], [0.5, 1], [0.5, 1]]
    np.testing.assert_array_equal(venn_abers_bounds(query, *fits), expected)


def test_steps_are_few_and_increase():
    rng = np.random.default_rng(0)
    points = np.sort(rng.random(2000))
    outcome = (rng.random(2000) < 0.5).astype(float)
    for knots, values in venn_abers_fit(points, np.stack([1 - outcome, outcome]), 1.0):
        assert len(knots) == len(values) < 100
        assert (np.diff(knots) > 0).all()
        assert (np.diff(values) > 0).all()


def test_steps_increase_despite_rounding():
    for seed in range(500):
        rng = np.random.default_rng(seed)
        weight = rng.integers(0, 3, size=(2, 12)) + np.eye(2)[rng.integers(0, 2, size=12)].T
        weight = weight / weight.sum()
        for _, values in venn_abers_fit(np.arange(12.0), weight, float((weight**2).sum())):
            assert (np.diff(values) > 0).all()
