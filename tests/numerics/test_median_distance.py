"""The median distance over all pairs, against pairs one at a time."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

from skcalib._numerics import median_distance as module
from skcalib._numerics.median_distance import median_distance


def median_by_pairs(points, weight, metric):
    """The weighted median over all pairs i < j, and a tenth of the root mean square distance."""
    rows = points.reshape(len(points), -1)
    pairs = []
    for i in range(len(rows)):
        for j in range(i):
            pairs.append((cdist(rows[[i]], rows[[j]], metric).item(), weight[i] * weight[j]))
    distance, mass = np.array(sorted(pairs)).T
    within = np.cumsum(mass) / mass.sum()
    lower = distance[np.flatnonzero(within >= 0.5 - 1e-13)[0]]
    upper = distance[np.flatnonzero(within > 0.5 + 1e-13)[0]]
    return max((lower + upper) / 2, np.sqrt(mass @ distance**2 / mass.sum()) / 10)


def line_case(seed):
    """Points on a line and weights; the seed cycles through everything that is special."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    points = [
        rng.random(n),
        np.round(rng.random(n), 1),
        np.where(rng.random(n) < 0.8, 1e-100 * rng.random(n), rng.random(n)),
        rng.choice([0.1, 0.3, 0.9], n) + 1e-16 * rng.integers(0, 3, n),
        rng.choice([0.0, 0.5, 1.0], n),
        0.5 + 1e-9 * rng.random(n),
    ][seed % 6]
    weight = [np.full(n, 1 / n), rng.choice([1.0, 2.0, 3.0], n), rng.random(n) ** 8][seed // 6 % 3]
    if seed % 5 == 0:
        weight[0] = 1e20
    return points, weight


@pytest.mark.parametrize("seed", range(90))
def test_on_a_line_equals_all_pairs(seed):
    points, weight = line_case(seed)
    expected = median_by_pairs(points, weight, "cityblock")
    assert median_distance(points, weight, "cityblock") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("decimals", [None, 2])
def test_many_points_on_a_line_equal_all_pairs(decimals):
    rng = np.random.default_rng(0)
    points = rng.beta(0.5, 2, size=1501)
    if decimals is not None:
        points = np.round(points, decimals)
    expected = np.median(pdist(points[:, None], "cityblock"))
    assert median_distance(points, np.ones(1501), "cityblock") == expected
    weight = rng.choice([1, 2, 3], size=1501)
    first, second = np.triu_indices(1501, 1)
    repeated = np.repeat(pdist(points[:, None]), weight[first] * weight[second])
    actual = median_distance(points, weight, "cityblock")
    assert actual == pytest.approx(np.median(repeated), rel=1e-13)


def test_clusters_closer_than_rounding_errors():
    # next to no number lies between the distances of points in two clusters
    rng = np.random.default_rng(0)
    points = rng.choice([0.1, 0.2, 0.7], size=700) + 1e-16 * rng.integers(0, 9, size=700)
    expected = np.median(pdist(points[:, None]))
    assert median_distance(points, np.ones(700), "cityblock") == expected


@pytest.mark.parametrize("metric", ["cityblock", "euclidean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_in_more_dimensions_equals_all_pairs(metric, weighted):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        points = rng.dirichlet(np.ones(3), size=int(rng.integers(2, 20)))
        points[: len(points) // 2] = points[0]
        weight = rng.choice([0.5, 1.0, 3.0], len(points)) if weighted else np.ones(len(points))
        expected = median_by_pairs(points, weight, metric)
        assert median_distance(points, weight, metric) == pytest.approx(expected, rel=1e-12)


def test_crowded_points_have_a_tenth_of_the_root_mean_square_distance():
    points = np.concatenate([10.0 ** -np.arange(20.0, 220.0), [0.25, 0.5, 1.0]])
    floor = np.sqrt(np.mean(pdist(points[:, None]) ** 2)) / 10
    n = len(points)
    assert median_distance(points, np.ones(n), "cityblock") == pytest.approx(floor)
    corner = np.column_stack([points, 1 - points, np.zeros(n)])
    assert median_distance(corner, np.ones(n), "cityblock") == pytest.approx(2 * floor)


def test_equal_points_are_at_distance_0():
    for points in (
        np.full(5, 0.3),
        np.full((5, 3), 1 / 3),
        np.array([0.3]),
        np.full((1, 3), 1 / 3),
    ):
        assert median_distance(points, np.ones(len(points)), "cityblock") == 0
    tiny = 10.0 ** -np.arange(200.0, 220.0)  # squared distances underflow
    assert median_distance(tiny, np.ones(20), "cityblock") < 1e-100


def crowds(rng, n):
    return rng.dirichlet(np.full(4, 0.1), size=n)


def lattice(rng, n):
    """Many rows that are permutations of each other, and ties."""
    points = np.round(rng.dirichlet(np.ones(4), size=n) * 60)
    points[:, 0] += 60 - points.sum(axis=1)
    return np.abs(points) / 60


def spread(rng, n):
    return rng.dirichlet([8.0, 1.0, 0.5, 0.5], size=n)


subsets = pytest.mark.parametrize("draw", [crowds, lattice, spread])


@pytest.mark.parametrize(
    ("draw", "n", "most"), [(crowds, 1000, 700), (lattice, 600, 500), (spread, 1000, 700)]
)
def test_a_subset_is_close_and_depends_on_no_order(draw, n, most, monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(module, "MAX_MEDIAN_POINTS", most)
    points = draw(rng, n)
    weight = rng.choice([1.0, 2.0], size=n)
    value = median_distance(points, weight, "cityblock")
    order = rng.permutation(n)
    shuffled = median_distance(points[order], weight[order], "cityblock")
    assert shuffled == pytest.approx(value, rel=1e-12)
    relabelled = median_distance(points[:, [2, 0, 3, 1]], weight, "cityblock")
    assert relabelled == pytest.approx(value, rel=1e-12)
    perturbed = points + rng.uniform(-1e-15, 1e-15, size=points.shape)
    assert median_distance(np.abs(perturbed), weight, "cityblock") == pytest.approx(
        value, rel=1e-12
    )
    monkeypatch.setattr(module, "MAX_MEDIAN_POINTS", n)
    assert value == pytest.approx(median_distance(points, weight, "cityblock"), rel=0.03)


@subsets
def test_a_small_subset_is_off_by_a_few_percent(draw, monkeypatch):
    # of 200 points out of 1000
    values = []
    for seed in range(10):
        points = draw(np.random.default_rng(seed), 1000)
        monkeypatch.setattr(module, "MAX_MEDIAN_POINTS", 200)
        subset = median_distance(points, np.ones(1000), "cityblock")
        monkeypatch.setattr(module, "MAX_MEDIAN_POINTS", 1000)
        values.append(subset / median_distance(points, np.ones(1000), "cityblock") - 1)
    assert 0 < np.sqrt(np.mean(np.square(values))) < 0.05


def test_copies_in_a_subset_are_weights(monkeypatch):
    rng = np.random.default_rng(0)
    points = rng.dirichlet(np.ones(3), size=300)
    monkeypatch.setattr(module, "MAX_MEDIAN_POINTS", 100)
    once = module._subset(points, np.ones(300))
    twice = module._subset(np.repeat(points, 2, axis=0), np.ones(600))
    np.testing.assert_array_equal(np.sort(twice[0], axis=0), np.sort(once[0], axis=0))
    np.testing.assert_allclose(twice[1], 2 * once[1])
    assert once[2] == 0
    assert twice[2] == pytest.approx(once[1].sum())  # a pair of copies for each


def test_permutations_of_one_vector_still_make_a_subset(monkeypatch):
    from itertools import permutations

    points = np.array(list(permutations([0.1, 0.2, 0.3, 0.4])))
    whole = median_distance(points, np.ones(24), "cityblock")
    monkeypatch.setattr(module, "MAX_MEDIAN_POINTS", 12)
    assert median_distance(points, np.ones(24), "cityblock") == pytest.approx(whole, rel=0.5)


def test_a_subset_holds_no_more_points_than_are_looked_at(monkeypatch):
    monkeypatch.setattr(module, "MAX_MEDIAN_POINTS", 50)
    points = np.random.default_rng(0).dirichlet(np.ones(3), size=80)
    subset, mass, _ = module._subset(points, np.ones(80))
    assert len(subset) == len(mass) == 50
    assert mass.sum() == pytest.approx(80, rel=0.15)  # as those that are left stand for all


def test_cells_are_hashed_in_blocks(monkeypatch):
    points = np.random.default_rng(0).dirichlet(np.ones(8), size=100)
    expected, sizes, mixed = module._hashes(points), [], module._splitmix64
    monkeypatch.setattr(module, "_MAX_HASHED_ENTRIES", 64)
    monkeypatch.setattr(module, "_splitmix64", lambda bits: sizes.append(bits.size) or mixed(bits))
    np.testing.assert_array_equal(module._hashes(points), expected)
    assert max(sizes) == 64


@pytest.mark.parametrize("most", [2, 100])
def test_samples_of_one_cell_become_their_weighted_mean(most, monkeypatch):
    monkeypatch.setattr(module, "MAX_MEDIAN_POINTS", most)
    rng = np.random.default_rng(0)
    code = rng.integers(6, size=40)
    cells = rng.integers(2**24, size=(6, 3)) * 2.0**-24
    points = cells[code] + 1e-9 * rng.random((40, 3))
    weight = rng.random(40)
    subset, mass, same = module._subset(points, weight)
    assert len(subset) == min(most, len(np.unique(code)))
    for point in subset:
        rows = code == np.argmin(np.abs(cells - point).sum(axis=1))
        mean = np.average(points[rows], axis=0, weights=weight[rows])
        np.testing.assert_allclose(point, mean, rtol=0, atol=1e-15)
    if most == 100:
        assert mass.sum() == pytest.approx(weight.sum(), rel=1e-14)
        pairs = np.triu(np.outer(weight, weight), 1)[code[:, None] == code]
        assert same == pytest.approx(pairs.sum(), rel=1e-13)
