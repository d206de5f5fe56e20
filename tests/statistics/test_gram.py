"""Kernels, their medians of distances and their sums over tiles equal the whole matrix."""

from functools import partial

import numpy as np
import pytest
from oracles import kernel_value

from skcalib._statistics import gram, kernels as functions


@pytest.mark.parametrize("name", functions.KERNELS)
def test_named_kernels_equal_their_formulas(name):
    rng = np.random.default_rng(0)
    s, t = rng.dirichlet(np.ones(4), size=5), rng.dirichlet(np.ones(4), size=3)
    expected = [[kernel_value(name, a, b, 0.3) for b in t] for a in s]
    np.testing.assert_allclose(
        functions.kernel_values(s, t, functions.KERNELS[name], 0.3), expected, rtol=1e-12
    )


def test_tiles_equal_the_whole(monkeypatch):
    rng = np.random.default_rng(0)
    points = rng.dirichlet(np.ones(3), size=50)
    mass = rng.normal(size=(50, 4, 3))
    kernel = partial(
        functions.kernel_values, family=functions.KERNELS["total-variation"], bandwidth=0.5
    )
    pairs = kernel(points, points) - np.eye(50)
    expected = np.einsum("ij,irc,jrc->r", pairs, mass, mass)
    for tile in (7, 50, 1024):
        monkeypatch.setattr(gram, "_TILE", tile)
        actual = gram.gram_pair_sum(kernel, points, mass)
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_diagonal():
    points = np.random.default_rng(0).random((150, 2))
    np.testing.assert_allclose(
        gram.gram_diagonal(lambda s, t: s @ t.T, points), (points**2).sum(axis=1)
    )


@pytest.mark.parametrize("name", functions.KERNELS)
def test_tiny_bandwidths_leave_the_ties(name):
    points = np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]])
    values = functions.kernel_values(points, points, functions.KERNELS[name], 1e-310)
    np.testing.assert_array_equal(values, [[1, 1, 0], [1, 1, 0], [0, 0, 1]])


def test_quadratic_forms_and_row_sums_equal_the_whole(monkeypatch):
    rng = np.random.default_rng(0)
    points = rng.dirichlet(np.ones(3), size=50)
    mass, vectors = rng.normal(size=(50, 3)), rng.normal(size=(50, 7))
    kernel = partial(functions.kernel_values, family=functions.KERNELS["rbf"], bandwidth=0.5)
    h = kernel(points, points) * (mass @ mass.T)
    monkeypatch.setattr(gram, "_TILE", 16)
    forms, row_sums = gram.gram_quadratic_forms(kernel, points, mass, vectors)
    np.testing.assert_allclose(forms, np.diagonal(vectors.T @ h @ vectors), atol=1e-12)
    np.testing.assert_allclose(row_sums, h.sum(axis=1), atol=1e-12)


@pytest.mark.parametrize("block_size", [2, 5, 50])
def test_block_sums_equal_pair_sums_of_the_blocks(block_size):
    rng = np.random.default_rng(0)
    points = rng.dirichlet(np.ones(3), size=53)
    mass = rng.normal(size=(53, 4, 3))
    kernel = partial(functions.kernel_values, family=functions.KERNELS["rbf"], bandwidth=0.5)
    sums = gram.gram_block_sums(kernel, points, mass, block_size)
    assert sums.shape == (53 // block_size, 4)
    for b, row in enumerate(sums):
        block = slice(b * block_size, (b + 1) * block_size)
        expected = gram.gram_pair_sum(kernel, points[block], mass[block])
        np.testing.assert_allclose(row, expected, atol=1e-12)
