"""How far residuals go together within units equals loops over pairs."""

import numpy as np
import pytest
from oracles import dependence_by_pairs

from skcalib._numerics.dependence import UnitSums

SIZES = [1, 2, 2, 3, 4, 4, 6, 8, 12]  # some exactly half, and some exactly twice as large


def grouped(seed, scale=0.3):
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(len(SIZES)), SIZES))
    n = len(group)
    deviation = rng.uniform(0.5, 1, size=n)
    residual = deviation * (scale * rng.normal(size=len(SIZES))[group] + rng.normal(size=n) / 2)
    return np.full(n, 1 / n), group, residual, deviation


@pytest.mark.parametrize("seed", range(5))
def test_dependence_equals_loops_over_pairs(seed):
    weight, group, residual, deviation = grouped(seed)
    sums = UnitSums(weight, group)
    assert sums.has_groups
    _, first = np.unique(sums.code, return_index=True)
    expected = dependence_by_pairs(weight, group, residual, deviation)
    actual = sums.dependence(residual, deviation)
    np.testing.assert_allclose(actual, [expected[group[i]] for i in first], atol=1e-12)
    assert np.ptp(actual) > 0.01
    np.testing.assert_allclose(sums.share, [np.mean(group == group[i]) for i in first])


def test_dependence_is_from_0_to_1():
    weight, group, _, deviation = grouped(0)
    sums = UnitSums(weight, group)
    sign = np.where(np.arange(len(group)) % 2, 1, -1)
    np.testing.assert_allclose(sums.dependence(deviation, deviation), 1, atol=1e-12)
    assert (sums.dependence(5 * deviation, deviation) == 1).all()
    assert (sums.dependence(9 * sign * deviation, deviation) >= 0).all()
    # groups of one sample tell nothing: all may go together
    singles = UnitSums(np.full(4, 0.25), np.arange(4))
    np.testing.assert_array_equal(singles.dependence(np.ones(4), np.ones(4)), 1)
    assert not UnitSums(np.full(4, 0.25), None).dependence(np.ones(4), np.ones(4)).any()


def test_variance_is_the_sum_over_all_pairs():
    weight, group, _, deviation = grouped(1)
    sums = UnitSums(weight, group)
    shared = np.linspace(0, 1, len(SIZES))
    same = sums.code[:, None] == sums.code
    covariance = np.where(same, shared[sums.code][:, None], 0) * np.outer(deviation, deviation)
    np.fill_diagonal(covariance, deviation**2)
    assert sums.variance(deviation, shared) == pytest.approx(covariance.sum(), rel=1e-12)
    alone = UnitSums(weight, None)
    assert alone.variance(deviation, np.ones(len(group))) == pytest.approx(np.sum(deviation**2))
