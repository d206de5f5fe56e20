"""Samples with tied predictions are summed, and what stands behind a sum is kept."""

import numpy as np
import pytest
from problems import small_case

from skcalib._numerics.sorting import pooled


@pytest.mark.parametrize("seed", range(40))
def test_pooled_by_loops(seed):
    proba, outcome, weight = small_case(seed)
    weight = np.full(len(proba), 0.25) if weight is None else weight
    table = pooled(proba, outcome, weight)
    assert table.points.tolist() == sorted(set(proba))
    for k, point in enumerate(table.points):
        for label in (0, 1):
            here = weight[(proba == point) & (outcome == label)]
            assert table.weight[label, k] == pytest.approx(sum(here), abs=1e-15)
            assert table.square[label, k] == pytest.approx(sum(here**2), abs=1e-15)
    np.testing.assert_array_equal(table.total, table.weight[0] + table.weight[1])
