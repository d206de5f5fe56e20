"""Sums over pairs of samples, taken tile by tile."""

import numpy as np

from .functions import Kernel

# Rows and columns of a tile, whose kernel values take half a megabyte.
_TILE = 256

# Rows and columns of a tile if only entries near its diagonal are needed.
_SMALL_TILE = 64


def gram_pair_sum(kernel: Kernel, points: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Σ_{i≠j} k(points_i, points_j) ⟨mass_i, mass_j⟩ for each of several masses.

    Parameters: points (n, K), mass (n, R, C) for R replicates of vectors in C dimensions. Returns
    (R,). The kernel is symmetric: only the tiles on and above the diagonal are computed, one at a
    time. Cost O(n² R C) in matrix products, memory O(tile · (tile + R C)).
    """
    n, n_replicates, _ = mass.shape
    flat = mass.reshape(n, -1)
    total = np.zeros(flat.shape[1])
    for i in range(0, n, _TILE):
        rows = slice(i, i + _TILE)
        for j in range(i, n, _TILE):
            columns = slice(j, j + _TILE)
            gram = np.array(kernel(points[rows], points[columns]))
            if i == j:
                np.fill_diagonal(gram, 0.0)
            total += (1 if i == j else 2) * np.einsum("ij,ij->j", gram @ flat[columns], flat[rows])
    return total.reshape(n_replicates, -1).sum(axis=1)


def gram_block_sums(
    kernel: Kernel, points: np.ndarray, mass: np.ndarray, block_size: int
) -> np.ndarray:
    """Σ_{i≠j} k(points_i, points_j) ⟨mass_i, mass_j⟩ within each whole block of consecutive points.

    Parameters: points (n, K), mass (n, R, C), as in `gram_pair_sum`. Returns (n // block_size, R).
    A tile covers several small blocks, and only the blocks on its diagonal count.
    """
    n_blocks = len(points) // block_size
    per_tile = max(1, _SMALL_TILE // block_size)
    tile = per_tile * block_size
    same_block = np.kron(np.eye(per_tile), 1 - np.eye(block_size))
    parts = []
    for i in range(0, n_blocks * block_size, tile):
        rows = slice(i, min(i + tile, n_blocks * block_size))
        flat = mass[rows].reshape(rows.stop - i, -1)
        gram = kernel(points[rows], points[rows]) * same_block[: len(flat), : len(flat)]
        products = (gram @ flat).reshape(mass[rows].shape)
        sums = np.einsum("nrc,nrc->nr", products, mass[rows])
        parts.append(sums.reshape(-1, block_size, mass.shape[1]).sum(axis=1))
    return np.concatenate(parts)


def gram_quadratic_forms(
    kernel: Kernel, points: np.ndarray, mass: np.ndarray, vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """vᵀHv for each column v of the vectors, and the row sums of H, whose entries are
    h_ij = k(points_i, points_j) ⟨mass_i, mass_j⟩.

    Parameters: points (n, K), mass (n, C), vectors (n, R). Returns (R,) and (n,). Cost O(n² (C +
    R)), memory O(tile · (tile + R)).
    """
    n = len(points)
    forms, row_sums = np.zeros(vectors.shape[1]), np.zeros(n)
    for i in range(0, n, _TILE):
        rows = slice(i, i + _TILE)
        for j in range(i, n, _TILE):
            columns = slice(j, j + _TILE)
            h = kernel(points[rows], points[columns]) * (mass[rows] @ mass[columns].T)
            row_sums[rows] += h.sum(axis=1)
            if i != j:
                row_sums[columns] += h.sum(axis=0)
            product = np.einsum("ij,ij->j", h @ vectors[columns], vectors[rows])
            forms += product if i == j else 2 * product
    return forms, row_sums


def gram_diagonal(kernel: Kernel, points: np.ndarray) -> np.ndarray:
    """k(points_i, points_i), (n,)."""
    parts = [
        np.diagonal(kernel(points[i : i + _SMALL_TILE], points[i : i + _SMALL_TILE]))
        for i in range(0, len(points), _SMALL_TILE)
    ]
    return np.concatenate(parts)
