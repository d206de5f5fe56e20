import numpy as np
import pytest
from helpers import kernel_value

from skcalib._numerics import gram


@pytest.mark.parametrize("name", gram.DISTANCES)
def test_named_kernels_equal_their_formulas(name):
    rng = np.random.default_rng(0)
    s, t = rng.dirichlet(np.ones(4), size=5), rng.dirichlet(np.ones(4), size=3)
    expected = [[kernel_value(name, a, b, 0.3) for b in t] for a in s]
    np.testing.assert_allclose(gram.named_kernel(name, 0.3)(s, t), expected, rtol=1e-12)


def test_tiles_equal_the_whole(monkeypatch):
    rng = np.random.default_rng(0)
    points = rng.dirichlet(np.ones(3), size=50)
    mass = rng.normal(size=(50, 4, 3))
    kernel = gram.named_kernel("total-variation", 0.5)
    expected = np.einsum("ij,irc,jrc->r", kernel(points, points), mass, mass)
    for tile in (7, 50, 1024):
        monkeypatch.setattr(gram, "_TILE", tile)
        actual = gram.gram_quadratic_form(kernel, points, mass)
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_diagonal():
    points = np.random.default_rng(0).random((150, 2))
    np.testing.assert_allclose(
        gram.gram_diagonal(lambda s, t: s @ t.T, points), (points**2).sum(axis=1)
    )


def test_median_distance():
    points = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]])
    # the distinct pairs are at total variation distance 1, 1/2 and 1/2
    assert gram.median_distance(points, "total-variation") == 0.5
    assert gram.median_distance(points, "laplacian") == 1.0
    assert gram.median_distance(points, "rbf") == pytest.approx(np.sqrt(0.5))
    assert gram.median_distance(points[:, 1], "laplacian") == 0.5
    assert gram.median_distance(points[2:], "laplacian") == 1.0  # one distinct point only


def test_median_distance_of_a_subset_is_close_and_ignores_orders():
    rng = np.random.default_rng(0)
    points = rng.dirichlet(np.ones(3), size=3000)
    whole = np.median(
        0.5 * np.abs(points[:, None] - points[None]).sum(axis=2)[np.triu_indices(3000, 1)]
    )
    value = gram.median_distance(points, "total-variation")
    assert value == pytest.approx(whole, rel=0.02)
    assert gram.median_distance(rng.permutation(points), "total-variation") == value
    assert gram.median_distance(points[:, [2, 0, 1]], "total-variation") == pytest.approx(
        value, rel=1e-12
    )
