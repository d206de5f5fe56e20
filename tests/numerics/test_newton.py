"""Steps of Newton's method."""

from types import SimpleNamespace

import numpy as np
import pytest

from skcalib._numerics.newton import line_search, nonnegative_step


def search(loss, start, step, slope):
    discarded = []
    found = line_search(
        lambda x: SimpleNamespace(x=x, loss=loss(x)),
        start,
        step,
        loss(start),
        -slope * step,
        rounding=0.0,
        discard=discarded.append,
    )
    return found and found.x, [point.x for point in discarded]


def test_a_good_step_is_taken():
    assert search(lambda x: 1 + x**2, 1.0, -1.0, 2.0) == (0.0, [])


def test_a_step_that_goes_too_far_is_halved():
    assert search(lambda x: 1 + x**2, 1.0, -4.0, 2.0) == (0.0, [-3.0, -1.0])


def test_no_step_uphill():
    found, discarded = search(lambda x: 1 + x**2, 1.0, 1.0, -2.0)  # the slope has a wrong sign
    assert found is None
    assert len(discarded) == 31


def test_straight_losses_are_followed_to_their_end():
    found, discarded = search(lambda x: 100 + abs(x - 20), 0.0, 1.0, -1.0)
    assert found == 16.0
    assert discarded == [1.0, 2.0, 4.0, 8.0, 32.0]


@pytest.mark.parametrize("seed", range(5))
def test_steps_among_nonnegative_numbers_are_optimal(seed):
    rng = np.random.default_rng(seed)
    root, x, gradient = rng.normal(size=(6, 4)), rng.uniform(size=4), rng.normal(size=4)
    matrix = root.T @ root
    there = x + nonnegative_step(x, gradient, matrix)
    slope = gradient + matrix @ (there - x)  # of the quadratic approximation: the KKT conditions
    assert there.min() >= 0
    assert slope.min() > -1e-10
    np.testing.assert_allclose(slope * there, 0, atol=1e-10)
