"""The Venn-Abers fits equal one isotonic regression for each query."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from skcalib._numerics.venn_abers import venn_abers_bounds, venn_abers_fit


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
@pytest.mark.parametrize("seed", range(20))
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


def test_by_hand():
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
