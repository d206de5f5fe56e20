"""Kernels on the simplex, and sums over pairs of samples taken tile by tile."""

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist, pdist

Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (a, K), (b, K) -> (a, b)

# Rows and columns of a tile: 8 MB of kernel values.
_TILE = 1024

# Pairs of this many points settle a median.
_MEDIAN_POINTS = 1000


def total_variation(s: np.ndarray, t: np.ndarray) -> np.ndarray:
    return 0.5 * cdist(s, t, "cityblock")


DISTANCES: dict[str, Kernel] = {
    "exponential": lambda s, t: cdist(s, t, "euclidean"),
    "laplacian": lambda s, t: cdist(s, t, "cityblock"),
    "total-variation": total_variation,
    "rbf": lambda s, t: cdist(s, t, "euclidean"),
}

# On the segment between the two classes every distance is this multiple of |p − q|.
DISTANCE_PER_PROBABILITY = {
    "exponential": np.sqrt(2.0),
    "laplacian": 2.0,
    "total-variation": 1.0,
    "rbf": np.sqrt(2.0),
}


def named_kernel(name: str, bandwidth: float) -> Kernel:
    """exp(−d/ν), or exp(−d²/(2ν²)) for "rbf", with the distance of that name."""
    distance = DISTANCES[name]

    def kernel(s: np.ndarray, t: np.ndarray) -> np.ndarray:
        gram = distance(s, t)
        gram /= bandwidth
        if name == "rbf":
            np.square(gram, out=gram)
            gram *= 0.5
        np.negative(gram, out=gram)
        return np.exp(gram, out=gram)

    return kernel


def median_distance(points: np.ndarray, name: str) -> float:
    """Median distance between distinct points (n, K), or (n,) for |s − t|; 1 if there is only one.

    Of more than 1000 distinct points 1000 are taken at even spacing, in the order of their sorted
    coordinates. So the number depends neither on the order of the samples or of the classes, nor
    on how often a sample is repeated.
    """
    distinct = np.unique(points, axis=0) if points.ndim == 2 else np.unique(points)[:, None]
    if len(distinct) == 1:
        return 1.0
    if len(distinct) > _MEDIAN_POINTS:
        order = np.lexsort(np.sort(distinct, axis=1).T)
        chosen = np.linspace(0, len(distinct) - 1, _MEDIAN_POINTS).round().astype(np.intp)
        distinct = distinct[order[chosen]]
    distance = pdist(distinct, "euclidean" if name in ("exponential", "rbf") else "cityblock")
    scale = 0.5 if name == "total-variation" and points.ndim == 2 else 1.0
    return scale * float(np.median(distance))


def gram_quadratic_form(kernel: Kernel, points: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Σ_{i,j} k(points_i, points_j) ⟨mass_i, mass_j⟩ for each of several masses.

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
            half = kernel(points[rows], points[columns]) @ flat[columns]
            total += (1 if i == j else 2) * np.einsum("ij,ij->j", half, flat[rows])
    return total.reshape(n_replicates, -1).sum(axis=1)


def gram_diagonal(kernel: Kernel, points: np.ndarray) -> np.ndarray:
    """k(points_i, points_i), (n,)."""
    tile = 64
    parts = [
        np.diagonal(kernel(points[i : i + tile], points[i : i + tile]))
        for i in range(0, len(points), tile)
    ]
    return np.concatenate(parts)
