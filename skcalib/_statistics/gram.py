"""Sums of a kernel over pairs of samples, tile by tile, and features in its place."""

import math
from collections.abc import Iterator
from time import perf_counter

import numpy as np
from array_api_compat import array_namespace, device

from .._inputs.warnings import warn_if_slow
from .._numerics.array_api import Array, arange_like, column_dots, doubles, row_dots, to_numpy
from .._numerics.logits import iter_slices
from .kernels import MIN_KERNEL_BANDWIDTH, Kernel, KernelFamily

# Rows and columns of a tile, whose kernel values take half a megabyte. A GPU needs more at once,
# and so do kernels whose values are matrices, as few pairs at a time take long.
_TILE, _TILE_ON_DEVICE, _TILE_OF_MATRICES = 256, 4096, 1024

# Rows and columns of a tile if only entries near its diagonal are needed.
_SMALL_TILE = 64


def gram_pair_sum(kernel: Kernel, points: Array, mass: Array) -> np.ndarray:
    """Σ_{i≠j} k(points_i, points_j) ⟨mass_i, mass_j⟩ for each of several masses.

    Parameters: points (n, K), mass (n, R, C) for R replicates of vectors in C dimensions. Returns
    (R,). The kernel is symmetric: only the tiles on and above the diagonal are computed, one at a
    time. Cost O(n² R C) in matrix products, memory O(tile · (tile + R C)). If the values of the
    kernel are matrices, each term is ⟨mass_i, k(points_i, points_j) mass_j⟩, at C times the cost.
    """
    xp, (n, n_replicates, _) = array_namespace(points), mass.shape
    flat, total = xp.reshape(mass, (n, -1)), 0.0
    for rows, columns, gram in _iter_tiles(kernel, points):
        gram = _clear_diagonal(gram) if rows == columns else gram
        tile_sums = column_dots(_times(gram, flat[columns, :]), flat[rows, :])
        total += (1 if rows == columns else 2) * doubles(tile_sums)
    return to_numpy(total).reshape(n_replicates, -1).sum(axis=1)


def gram_product(
    kernel: Kernel, points: np.ndarray, mass: np.ndarray, skips_own: bool
) -> np.ndarray:
    """Σ_j k(points_i, points_j) mass_j of mass (n, C), over all j; or over j ≠ i, (n, C).

    Only one tile is in memory, as in `gram_pair_sum`.
    """
    product = np.zeros(mass.shape)
    for rows, columns, gram in _iter_tiles(kernel, points, is_symmetric=False):
        gram = _clear_diagonal(gram) if skips_own and rows == columns else gram
        product[rows] += _times(gram, mass[columns])
    return product


def _iter_tiles(
    kernel: Kernel, points: Array, *, is_symmetric: bool = True
) -> Iterator[tuple[slice, slice, Array]]:
    """Yield rows, columns and kernel values (a, b) of all tiles, or of none below the diagonal.

    In the second case, warn after the first row of tiles if the others will take long.
    """
    xp, n, tile = array_namespace(points), points.shape[0], _pair_tile(kernel, points)
    blocks, start = list(iter_slices(n, tile)), perf_counter()
    for i, rows in enumerate(blocks):
        for columns in blocks[i * is_symmetric :]:
            yield rows, columns, xp.asarray(kernel(points[rows, :], points[columns, :]))
        if i == 0 and is_symmetric:
            warn_of_pairs(n, (perf_counter() - start) * (n / tile + 1) / 2)


def _clear_diagonal(gram: Array) -> Array:
    """The values of a kernel (a, a), with 0 on the diagonal."""
    index = arange_like(gram, gram.shape[0])
    is_other = _expand_for_kernel(index[:, None] != index, gram)
    return array_namespace(gram).where(is_other, gram, 0.0)


def _pair_tile(kernel: Kernel, points: Array) -> int:
    """Rows and columns of a tile of pairs."""
    if not isinstance(points, np.ndarray):
        return _TILE_ON_DEVICE
    width = kernel_width(kernel, points)
    return _TILE if width == 1 else max(1, _TILE_OF_MATRICES // width)


def kernel_width(kernel: Kernel, points: Array) -> int:
    """1 if the values of the kernel are numbers, C if they are matrices (C, C)."""
    return (1, *np.shape(kernel(points[:1, :], points[:1, :]))[2:])[-1]


def _expand_for_kernel(pairs: Array, gram: Array) -> Array:
    """An array of pairs (a, b), to be combined with the values of a kernel."""
    return array_namespace(pairs).reshape(pairs, gram.shape[:2] + (1,) * (gram.ndim - 2))


def _times(gram: Array, flat: Array) -> Array:
    """Σ_j gram_ij flat_j of flat (b, R C) and numbers (a, b) or matrices (a, b, C, C), (a, R C)."""
    if gram.ndim == 2:
        return gram @ flat
    mass = flat.reshape(len(flat), -1, gram.shape[3])
    product = np.tensordot(gram, mass, axes=([1, 3], [0, 2]))  # (a, C, R)
    return product.swapaxes(1, 2).reshape(len(gram), -1)


def warn_of_pairs(n: int, seconds: float) -> None:
    """Warn that sums over all pairs of n samples take long."""
    warn_if_slow(
        seconds,
        f"A sum over all pairs of {n} samples",
        "Pass a random subsample of the rows. Some functions also take method='fourier' or "
        "estimation='block', which are faster.",
    )


def gram_matrix(kernel: Kernel, points: Array) -> Array:
    """All kernel values in double precision, (n, n). No other array is as large."""
    xp, n = array_namespace(points), points.shape[0]
    tile = _TILE if isinstance(points, np.ndarray) else _TILE_ON_DEVICE
    gram = xp.empty((n, n), dtype=xp.float64, device=device(points))
    for rows in iter_slices(n, tile):
        gram[rows, :] = doubles(xp.asarray(kernel(points[rows, :], points)))
    return gram


def gram_block_sums(
    kernel: Kernel, points: np.ndarray, mass: np.ndarray, block_size: int
) -> np.ndarray:
    """Σ_{i≠j} k(points_i, points_j) ⟨mass_i, mass_j⟩ within each whole block of consecutive points.

    Parameters: points (n, K), mass (n, R, C), as in `gram_pair_sum`. Returns (n // block_size, R).
    A tile covers several small blocks, and only the blocks on its diagonal count. A large block is
    a sum over its pairs.
    """
    n_blocks = len(points) // block_size
    if block_size > _pair_tile(kernel, points):
        blocks = (slice(b * block_size, (b + 1) * block_size) for b in range(n_blocks))
        return np.stack([gram_pair_sum(kernel, points[block], mass[block]) for block in blocks])
    per_tile = max(1, _SMALL_TILE // (block_size * kernel_width(kernel, points)))
    same_block = np.kron(np.eye(per_tile), 1 - np.eye(block_size))
    block_sums = []
    for rows in iter_slices(n_blocks * block_size, per_tile * block_size):
        gram, n_rows = np.asarray(kernel(points[rows], points[rows])), rows.stop - rows.start
        gram = gram * _expand_for_kernel(same_block[:n_rows, :n_rows], gram)
        products = _times(gram, mass[rows].reshape(n_rows, -1)).reshape(mass[rows].shape)
        sums = np.einsum("nrc,nrc->nr", products, mass[rows])
        block_sums.append(sums.reshape(-1, block_size, mass.shape[1]).sum(axis=1))
    return np.concatenate(block_sums)


def gram_quadratic_forms(
    kernel: Kernel, points: np.ndarray, mass: np.ndarray, vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """vᵀHv for each column v of the vectors, and the row sums of H, whose entries are
    h_ij = k(points_i, points_j) ⟨mass_i, mass_j⟩, or of matrices ⟨mass_i, k(…) mass_j⟩.

    Parameters: points (n, K), mass (n, C), vectors (n, R). Returns (R,) and (n,). Cost O(n² (C +
    R)), memory O(tile · (tile + R)).
    """
    forms, row_sums = np.zeros(vectors.shape[1]), np.zeros(len(points))
    for rows, columns, gram in _iter_tiles(kernel, points):
        if gram.ndim == 2:
            h = gram * (mass[rows] @ mass[columns].T)
        else:
            h = np.einsum("ac,abcd,bd->ab", mass[rows], gram, mass[columns], optimize=True)
        row_sums[rows] += h.sum(axis=1)
        product = np.einsum("ij,ij->j", h @ vectors[columns], vectors[rows])
        if rows != columns:
            row_sums[columns] += h.sum(axis=0)
            product *= 2
        forms += product
    return forms, row_sums


def gram_diagonal(kernel: Kernel, points: Array) -> Array:
    """k(points_i, points_i), (n,)."""
    xp, n = array_namespace(points), points.shape[0]
    blocks = (points[rows, :] for rows in iter_slices(n, _SMALL_TILE))
    return xp.concat([xp.linalg.diagonal(xp.asarray(kernel(block, block))) for block in blocks])


def gram_own_terms(kernel: Kernel, points: Array, mass: Array) -> Array:
    """⟨mass_i, k(points_i, points_i) mass_i⟩, (n, R), for mass (n, R, C)."""
    if not isinstance(points, np.ndarray) or kernel_width(kernel, points) == 1:
        return gram_diagonal(kernel, points)[:, None] * row_dots(mass, mass)
    pairs = ((points[i : i + 1], mass[i]) for i in range(len(points)))
    values = ((np.asarray(kernel(point, point))[0, 0], residual) for point, residual in pairs)
    return np.stack([row_dots(residual @ value, residual) for value, residual in values])


def fourier_features(points: Array, frequencies: Array) -> Array:
    """[cos(ωᵀp), sin(ωᵀp)]/√D, (b, 2D), for frequencies (D, K).

    For ω ~ N(0, γ⁻² I) the inner products have the mean exp(−‖s − t‖²/(2γ²)).
    """
    xp, phase = array_namespace(points), points @ frequencies.T
    return xp.concat([xp.cos(phase), xp.sin(phase)], axis=1) / math.sqrt(frequencies.shape[0])


def random_frequencies(
    family: KernelFamily, bandwidth: float, shape: tuple[int, int], generator: np.random.Generator
) -> np.ndarray:
    """Frequencies (D, d) whose waves have the kernel as their mean product (Bochner)."""
    if family.metric == "cityblock":
        direction = generator.standard_cauchy(shape)
    else:
        direction = generator.standard_normal(shape)
        if not family.is_gaussian:  # the Cauchy distribution in d dimensions
            direction /= np.abs(generator.standard_normal((shape[0], 1)))
    return direction * (family.scale / max(bandwidth, MIN_KERNEL_BANDWIDTH))


def compute_pivoted_cholesky(
    kernel: Kernel,
    points: np.ndarray,
    diagonal: np.ndarray,
    weight: np.ndarray,
    most: int,
    tolerance: float,
) -> tuple[np.ndarray, float]:
    """Features (n, d) whose inner products approximate the kernel from below, and the error left.

    Points are added, the one with the largest weighted error first, until the error Σ_i w_i (k_ii −
    ⟨φ_i, φ_i⟩) is at most the tolerance, or there are `most`. Cost O(n d²), memory O(n d).
    """
    residual_diagonal = diagonal.astype(np.float64)
    features = np.zeros((len(points), min(most, len(points))))
    for d in range(features.shape[1]):
        pivot = int(np.argmax(weight * residual_diagonal))
        if weight @ residual_diagonal <= tolerance or residual_diagonal[pivot] <= 0:
            return features[:, :d], float(weight @ residual_diagonal)
        column = np.asarray(kernel(points, points[pivot : pivot + 1]))[:, 0]
        column = column - features[:, :d] @ features[pivot, :d]
        column /= np.sqrt(residual_diagonal[pivot])
        features[:, d] = column
        residual_diagonal = np.maximum(residual_diagonal - column**2, 0.0)
    return features, float(weight @ residual_diagonal)
