"""Steps of Newton's method."""

from types import SimpleNamespace

import numpy as np
import pytest

from skcalib._numerics.newton import line_search, nonnegative_step


def search(loss, start, step, slope):
    """Return the position that the line search finds, and all that it tried."""
    tried = []

    def evaluate(x):
        tried.append(x)
        return SimpleNamespace(x=x, loss=loss(x))

    point = line_search(evaluate, start, step, loss(start), -slope * step, rounding=0.0)
    return point and point.x, tried


def test_a_good_step_is_taken():
    assert search(lambda x: 1 + x**2, 1.0, -1.0, 2.0) == (0.0, [0.0])


def test_a_step_that_goes_too_far_is_halved():
    assert search(lambda x: 1 + x**2, 1.0, -4.0, 2.0) == (0.0, [-3.0, -1.0, 0.0])


def test_no_step_uphill():
    position, tried = search(lambda x: 1 + x**2, 1.0, 1.0, -2.0)  # the slope has a wrong sign
    assert position is None
    assert len(tried) == 31


def test_straight_losses_are_followed_to_their_end():
    position, tried = search(lambda x: 100 + abs(x - 20), 0.0, 1.0, -1.0)
    assert position == 16.0
    assert tried == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]


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
