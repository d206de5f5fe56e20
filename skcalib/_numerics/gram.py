"""Kernels on the simplex, and sums over pairs of samples taken tile by tile."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist, pdist

Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (a, K), (b, K) -> (a, b)

# The squared reciprocals of smaller ones overflow; distinct probabilities are then as good as
# infinitely far apart anyway.
SMALLEST_BANDWIDTH = 1e-150

# Rows and columns of a tile: half a megabyte of kernel values.
_TILE = 256

# The same where only entries near the diagonal are wanted.
_SMALL_TILE = 64

# The median is taken over the pairs of at most this many points.
_MEDIAN_POINTS = 1000


class KernelFamily(NamedTuple):
    """exp(−d/ν) of a distance d, or exp(−d²/(2ν²)) if Gaussian."""

    metric: str  # name in scipy
    scale: float  # d is so many times that metric
    per_probability: float  # d of two-class predictions is so many times |p − q|
    is_gaussian: bool = False


KERNELS = {
    "total-variation": KernelFamily("cityblock", 0.5, 1.0),
    "laplacian": KernelFamily("cityblock", 1.0, 2.0),
    "exponential": KernelFamily("euclidean", 1.0, np.sqrt(2.0)),
    "rbf": KernelFamily("euclidean", 1.0, np.sqrt(2.0), is_gaussian=True),
}


def kernel_values(
    s: np.ndarray, t: np.ndarray, family: KernelFamily, bandwidth: float
) -> np.ndarray:
    gram = cdist(s, t, family.metric)
    gram *= family.scale / max(bandwidth, SMALLEST_BANDWIDTH)
    if family.is_gaussian:
        np.square(gram, out=gram)
        gram *= 0.5
    np.negative(gram, out=gram)
    return np.exp(gram, out=gram)


def median_distance(points: np.ndarray, metric: str) -> float:
    """Median distance between distinct points (n, K), or (n,) on a line; 1 if there is only one.

    A tenth of the mean distance if that is larger: where most points crowd at a corner, as those of
    an overconfident classifier do, the median can be as small as 1e-100.

    Of more than 1000 distinct points 1000 are taken at even spacing, in the order of their sorted
    coordinates, then of their distance to the mean. So the number depends neither on the order of
    the samples or of the classes, nor on how often a sample is repeated.
    """
    distinct = np.unique(points, axis=0) if points.ndim == 2 else np.unique(points)[:, None]
    if len(distinct) == 1:
        return 1.0
    if len(distinct) > _MEDIAN_POINTS:
        offset = np.round(np.linalg.norm(distinct - distinct.mean(axis=0), axis=1), 12)
        order = np.lexsort((offset, *np.sort(distinct, axis=1).T))
        chosen = np.linspace(0, len(distinct) - 1, _MEDIAN_POINTS).round().astype(np.intp)
        distinct = distinct[order[chosen]]
    distance = pdist(distinct, metric)
    return float(max(_median(distance), distance.mean() / 10)) or 1.0


def _median(values: np.ndarray) -> float:
    """The same as NumPy's, several times faster because it looks for no NaN."""
    middle = len(values) // 2
    values = np.partition(values, middle)
    below = values[middle] if len(values) % 2 else values[:middle].max()
    return float((below + values[middle]) / 2)


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
    Small blocks are taken several to a tile, of which only the blocks on the diagonal count.
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
