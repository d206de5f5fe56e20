"""How far sums over groups vary, against loops over pairs of samples."""

import itertools

import numpy as np
import pytest

from skcalib._numerics.dependence import GroupedSums


def variance_by_loops(weight, code, residual, deviation):
    """Variances, and for each pair of a group the product of deviations times its dependence."""
    n, names = len(weight), sorted(set(code))
    share = {g: sum(weight[i] for i in range(n) if code[i] == g) for g in names}
    seen, most = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
    for i, j in itertools.permutations(range(n), 2):
        if code[i] == code[j]:
            seen[code[i]] += residual[i] * residual[j]
            most[code[i]] += deviation[i] * deviation[j]
    total = sum(d**2 for d in deviation)
    for g in names:
        similar = [h for h in names if 0.5 - 1e-6 <= share[h] / share[g] <= 2 + 1e-6]
        top = sum(seen[h] for h in similar) + 2 * most[g]
        bottom = sum(most[h] for h in similar) + 2 * most[g]
        total += (min(max(top / bottom, 0.0), 1.0) if bottom > 0 else 1.0) * most[g]
    return total


@pytest.mark.parametrize("seed", range(3))
def test_variances_of_groups_and_of_two_columns_that_cross(seed):
    rng = np.random.default_rng(seed)
    n = 60
    first = np.sort(np.minimum(rng.geometric(0.15, size=n), 12)) - 1  # large and small ones
    second = rng.integers(5, size=n)
    weight = rng.random(n)
    weight /= weight.sum()
    common = rng.normal(size=12)[first] + rng.normal(size=5)[second]
    deviation = weight * rng.random(n)
    residual = deviation * (common + rng.normal(size=n))
    columns = [code.tolist() for code in (first, second)]
    cells = list(zip(*columns, strict=True))
    found = [variance_by_loops(weight, code, residual, deviation) for code in (*columns, cells)]
    exact = max(found[0] + found[1] - found[2], *found[:2])
    codes = np.column_stack([np.unique(code, return_inverse=True)[1] for code in columns])
    sums = GroupedSums(weight, codes)
    assert sums.standard_deviation(residual, deviation) ** 2 == pytest.approx(exact, rel=1e-12)
    sizes = [1 / np.sum(np.bincount(code, weight) ** 2) for code in columns]
    assert sums.degrees == pytest.approx(min(sizes) - 1)
    alone = GroupedSums(weight, codes[:, 0]).standard_deviation(residual, deviation) ** 2
    assert alone == pytest.approx(found[0], rel=1e-12)
    assert deviation @ deviation < alone < exact
