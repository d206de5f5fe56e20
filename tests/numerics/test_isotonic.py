import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from skcalib._numerics.isotonic import isotonic_fit


@pytest.mark.parametrize("seed", range(50))
def test_equals_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 80))
    points = np.round(rng.random(n), rng.integers(1, 8))
    outcome = (rng.random(n) < points).astype(float)
    weight = rng.random(n) + 0.01
    oracle = IsotonicRegression(out_of_bounds="clip").fit(points, outcome, sample_weight=weight)
    query = np.concatenate([points, rng.random(20), [0, 1]])
    actual = np.interp(query, *isotonic_fit(points, outcome, weight))
    np.testing.assert_allclose(actual, oracle.predict(query), atol=1e-12)


def test_by_hand():
    knots, values = isotonic_fit(
        np.array([0.1, 0.2, 0.3, 0.8]), np.array([0, 1, 0, 1]), np.full(4, 0.25)
    )
    np.testing.assert_array_equal(knots, [0.1, 0.2, 0.3, 0.8])
    np.testing.assert_array_equal(values, [0, 0.5, 0.5, 1])
