"""Loess equals that of R, and the same regression written with general tools."""

import numpy as np
import pytest
from oracles import loess
from scipy.interpolate import CubicHermiteSpline

from skcalib._numerics import loess as module
from skcalib._numerics.loess import _last_of_lower_half

# The data frame `cars` of R: speed, and the distances that belong to it.
CARS = {
    4: [2, 10], 7: [4, 22], 8: [16], 9: [10], 10: [18, 26, 34], 11: [17, 28],
    12: [14, 20, 24, 28], 13: [26, 34, 34, 46], 14: [26, 36, 60, 80], 15: [20, 26, 54],
    16: [32, 40], 17: [32, 40, 50], 18: [42, 56, 76, 84], 19: [36, 46, 68],
    20: [32, 48, 52, 56, 64], 22: [66], 23: [54], 24: [70, 92, 93, 120], 25: [85],
}  # fmt: skip

# `predict(loess(dist ~ speed, cars), data.frame(speed = seq(5, 25, 1)))` of R, as printed
PRINTED_BY_R = [
    7.797353, 10.002308, 12.499786, 15.281082, 18.446568, 21.865315, 25.517015, 29.350386,
    33.230660, 37.167935, 41.205226, 45.055736, 48.355889, 49.824812, 51.986702, 56.461318,
    61.959729, 68.569313, 76.316068, 85.212121, 95.324047,
]  # fmt: skip


def test_only_the_near_samples_are_looked_at(monkeypatch):
    x = np.sort(np.random.default_rng(0).random(400))
    fit_parabolas, shapes = module._fit_parabolas, []

    def record(gap, *arrays):
        shapes.append(gap.shape)
        return fit_parabolas(gap, *arrays)

    monkeypatch.setattr(module, "_fit_parabolas", record)
    loess(x, x**2, np.ones(400))
    assert {n_samples for _, n_samples in shapes} == {300}
    tied = np.repeat([0.2, 0.5, 0.9], [20, 360, 20])  # most samples are equally near to a vertex
    assert np.isfinite(loess(tied, tied, np.ones(400))).all()


def test_equals_the_example_of_r():
    speed = np.repeat(list(CARS), [len(distances) for distances in CARS.values()])
    distance = np.concatenate(list(CARS.values()))
    fitted = dict(zip(speed, loess(speed, distance, np.ones(50)), strict=True))
    expected = dict(zip(range(5, 26), PRINTED_BY_R, strict=True))
    common = sorted(set(fitted) & set(expected))
    assert len(common) == 18
    np.testing.assert_allclose(
        [fitted[s] for s in common], [expected[s] for s in common], atol=6e-7
    )


def cut(x):
    """Where R cuts the sorted points of a cell: numbers count from 1 there."""
    first, last = 1, len(x)
    middle, offset = (first + last) // 2, 0
    while first <= middle + offset < last:
        if x[middle + offset - 1] != x[middle + offset]:
            return middle + offset
        offset = -offset if offset > 0 else 1 - offset
    return middle


def vertices(x, left, right, most):
    if len(x) <= most:
        return []
    k = cut(x)
    point = x[k - 1]
    if point in (left, right):
        return []
    return [*vertices(x[:k], left, point, most), point, *vertices(x[k:], point, right, most)]


def naive_loess(points, values, weight):
    x = sorted(points)
    margin = 0.005 * (x[-1] - x[0])
    ends = [x[0] - margin, x[-1] + margin]
    knots = [ends[0], *vertices(x, *ends, int(0.15 * len(x))), ends[1]]
    fits = []
    for q in knots:
        distance = np.abs(points - q)
        radius = sorted(distance)[int(0.75 * len(x)) - 1]
        kernel = np.maximum(1 - (distance / radius) ** 3, 0) ** 3 * weight
        # polyfit multiplies residuals before it squares them
        fits.append(np.polyfit(points - q, values, 2, w=np.sqrt(kernel)))
    curve = CubicHermiteSpline(knots, [fit[2] for fit in fits], [fit[1] for fit in fits])
    return curve(points)


def test_ties_are_cut_like_in_r():
    rng = np.random.default_rng(0)
    for n in np.repeat(range(2, 12), 30):
        x = np.sort(rng.integers(0, 4, size=n).astype(float))
        assert _last_of_lower_half(x) == cut(x) - 1


@pytest.mark.parametrize("seed", range(10))
def test_equals_general_tools(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 120))
    points = np.round(rng.beta(0.7, 2, size=n), 2 + seed % 3)
    values = (rng.random(n) < points).astype(float)
    weight = np.ones(n) if seed % 2 else rng.exponential(size=n)
    expected = naive_loess(points, values, weight)
    np.testing.assert_allclose(loess(points, values, weight), expected, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decimals", [None, 2, 1])
@pytest.mark.parametrize("n", [10, 33, 200, 1001])
def test_equals_the_fortran_code_of_r(n, decimals, weighted):
    peer = pytest.importorskip("skmisc.loess", exc_type=ImportError)
    rng = np.random.default_rng(n)
    points = rng.random(n)
    points = points if decimals is None else np.round(points, decimals)
    values = (rng.random(n) < points**2).astype(float)
    weight = rng.exponential(size=n) if weighted else np.ones(n)
    theirs = peer.loess(points, values, weights=weight, span=0.75, degree=2)
    theirs.fit()
    actual = loess(points, values, weight)
    np.testing.assert_allclose(actual, theirs.outputs.fitted_values, atol=1e-11)


def test_parabolas_stay_as_they_are():
    points = np.random.default_rng(0).random(100)
    values = 2 - 3 * points + 4 * points**2
    np.testing.assert_allclose(loess(points, values, np.ones(100)), values, atol=1e-12)


def test_the_scale_of_the_points_does_not_matter():
    rng = np.random.default_rng(0)
    points, values = rng.random(100), rng.random(100)
    for scale in (1e-4, 1e4):
        rescaled = loess(scale * (points + 1), values, np.ones(100))
        np.testing.assert_allclose(rescaled, loess(points, values, np.ones(100)), atol=1e-9)


def test_local_regressions_at_each_point_are_close():
    rng = np.random.default_rng(0)
    points = rng.random(300)
    values = np.sin(3 * points)
    direct = []
    for q in points:
        distance = np.abs(points - q)
        kernel = np.maximum(1 - (distance / np.sort(distance)[224]) ** 3, 0) ** 1.5
        direct.append(np.polyfit(points - q, values, 2, w=kernel)[2])
    np.testing.assert_allclose(loess(points, values, np.ones(300)), direct, atol=3e-3)


# Where R stops or takes a pseudoinverse


@pytest.mark.parametrize("point", [0.0, 0.3, 1.0])
def test_one_distinct_point_gets_the_mean(point):
    fitted = loess(np.full(4, point), np.array([0.0, 1, 1, 1]), np.array([1.0, 1, 1, 2]))
    np.testing.assert_allclose(fitted, 0.8)


@pytest.mark.parametrize("n_low", [5, 50, 95])
def test_two_distinct_points_get_their_means(n_low):
    points = np.repeat([0.2, 0.8], [n_low, 100 - n_low])
    values = (np.arange(100) % 5 == 0).astype(float)
    low, high = values[:n_low].mean(), values[n_low:].mean()
    fitted = loess(points, values, np.ones(100))
    np.testing.assert_allclose(fitted[[0, -1]], [low, high], atol=1e-4)


def test_few_samples_are_met_exactly():
    for n in range(1, 5):
        points, values = np.linspace(0.1, 0.7, n) ** 2, np.arange(n) % 2
        np.testing.assert_allclose(loess(points, values, np.ones(n)), values, atol=1e-12)


@pytest.mark.parametrize("n", [12_000, 40_000])
def test_many_equal_points_get_their_mean(n):
    # rounding made a slope of 20,000 equal predictions, and a value that was off by 3e-5
    values = (np.random.default_rng(0).random(n) < 0.3).astype(float)
    for weight in (np.full(n, 1 / n), np.arange(1.0, n + 1)):
        fitted = loess(np.full(n, 0.3), values, weight)
        np.testing.assert_allclose(fitted, np.average(values, weights=weight), rtol=1e-12)
    points = np.where(np.arange(n) < 0.1 * n, 0.9, 0.3)
    expected = values[points == 0.3].mean()  # nothing else is near
    np.testing.assert_allclose(loess(points, values, np.ones(n))[-1], expected, rtol=1e-12)


@pytest.mark.parametrize("scene", ["even", "skew", "rounded", "weighted"])
def test_sums_of_many_samples_equal_general_tools(scene):
    rng = np.random.default_rng(0)
    n = 12_000
    points = rng.beta(0.1, 8, n) if scene == "skew" else rng.random(n)
    points = np.round(points, 2) if scene == "rounded" else points
    values = (rng.random(n) < points**2).astype(float)
    weight = rng.exponential(size=n) if scene == "weighted" else np.ones(n)
    expected = naive_loess(points, values, weight)
    np.testing.assert_allclose(loess(points, values, weight), expected, atol=1e-9)
