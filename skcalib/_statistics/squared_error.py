"""The squared kernel calibration error as a function of the labels."""

import math
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from .._data import ClassData
from .._inputs.arrays import as_array
from .._inputs.options import select_arguments
from .._numerics.array_api import arange_like, as_type, asarray_like, to_numpy
from .._numerics.median_distance import pair_weight
from . import kernels
from .base import Statistic
from .gram import gram_block_sums, gram_diagonal, gram_own_terms, gram_pair_sum, kernel_width
from .kernels import MIN_KERNEL_BANDWIDTH, SIMPLEX_KERNELS

# Kernel values in single precision are wrong by less than this share.
_SINGLE_KERNEL_RTOL = 1e-6

_MAX_KERNEL_ENTRY = 1e150  # of a class kernel

# Where rows stand for several samples, the weight of all pairs is a difference of rounded sums, of
# which less than this may be rounding alone.
_PAIR_WEIGHT_RTOL = 1e-9


class SquaredKernelError(Statistic):
    """The squared kernel calibration error as a function of the labels of given predictions.

    Predictions stay where they live, if all pairs of more than two classes are summed; `data` says.
    What does not depend on the labels is prepared once: a test evaluates many label vectors. With
    the root L of the class kernel, M = L Lᵀ, the term of a pair is h_ij = k(p_i, p_j) ⟨L r_i, L
    r_j⟩, or r_iᵀ k(p_i, p_j) r_j if the kernel is matrix-valued. All estimates and tests are sums
    of such terms, taken by :mod:`skcalib._statistics.gram`.
    """

    supports = frozenset({"any-order", "groups", "pair-terms"})

    def __init__(
        self,
        data: ClassData,
        *,
        kernel: Any = "total-variation",
        bandwidth: Any = "median",
        class_kernel: np.ndarray | None = None,
        estimation: str = "unbiased",
        block_size: int | None = None,
    ) -> None:
        if data.is_binary or callable(kernel) or estimation not in ("unbiased", "biased"):
            data = data.to_numpy()  # sorted, of a user's function, or cheap
        self.data = data
        self.estimation = estimation
        weight = to_numpy(data.weight)
        most = block_size or max(2, math.isqrt(len(weight)))
        self.block_size: Any = {"linear": 2, "block": most}.get(estimation)  # None: all pairs
        if self.block_size is not None:
            n_blocks = len(weight) // self.block_size
            weight = weight[: n_blocks * self.block_size].reshape(n_blocks, self.block_size)
            self.supports = self.supports - {"any-order", "groups"}
        self.square: Any = data.square  # of the samples that a row stands for
        # of each block, if there are blocks
        self.pair_weight = pair_weight(weight) if self.square is None else 1 - self.square.sum()
        self.root = None if class_kernel is None else _root(class_kernel, data)
        bandwidth = kernels.resolve_bandwidth(data, kernel, bandwidth)
        names = ("kernel", "bandwidth", "class_kernel", "estimation", "block_size")
        self.options = select_arguments(locals(), names)
        self.family: Any = None if callable(kernel) else SIMPLEX_KERNELS[kernel]
        self.uses_sorted_algorithm = data.is_binary and bool(self.family and self.family.pair_sum)
        if self.uses_sorted_algorithm and self.block_size is None:
            self.supports = self.supports | {"counts"}
        if self.uses_sorted_algorithm:
            bandwidth = max(bandwidth, MIN_KERNEL_BANDWIDTH)
            self.length = bandwidth / SIMPLEX_KERNELS[kernel].per_probability
            is_sorted = (data.proba[1:] >= data.proba[:-1]).all()
            self.order = slice(None) if is_sorted else np.argsort(data.proba)
            self.ordered_proba = data.proba[self.order]
            self.ordered_weight = data.weight[self.order]
            # the residual vector is (y − p) (−1, 1): |L (−1, 1)|² is a factor of every term
            direction = np.array([-1.0, 1.0])
            self.scale = np.sum((direction if self.root is None else direction @ self.root) ** 2)

    @cached_property
    def kernel(self) -> Any:
        """The kernel as a function of rows of probabilities."""
        options = self.options["kernel"], self.options["bandwidth"]
        return kernels.kernel_function(self.data, *options, may_be_matrices=self.root is None)

    @property
    def largest_term(self) -> float | None:
        """The largest |h_ij|; of a callable kernel, which is semi-definite, by its diagonal."""
        class_factor = largest_term(self.options["class_kernel"], len(self.data.classes))
        if not callable(self.options["kernel"]):
            return class_factor
        points = self.data.matrix
        if kernel_width(self.kernel, points) == 1:
            largest = class_factor * float(gram_diagonal(self.kernel, points).max())
        else:
            matrices = [np.asarray(self.kernel(row, row))[0, 0] for row in points[:, None]]
            largest = _largest_form(np.stack(matrices))
        kernels.check_finite_kernel(np.array(largest))
        return largest

    @property
    def numbers_per_draw(self) -> int:
        return math.prod(self.data.proba.shape)

    def __call__(self, labels: np.ndarray) -> np.ndarray:
        """Values (R,) for R label vectors (R, n)."""
        if self.block_size is not None:
            return self.block_sums(labels).sum(axis=0) / self.pair_weight.sum()
        return self._values_from_residuals(self._residuals(labels))

    def flip_signs(self, signs: np.ndarray) -> np.ndarray:
        """Values (R,) if the residuals of the observed labels are multiplied by signs (R, n)."""
        residual = self._residuals(self.data.label[None])
        if self.uses_sorted_algorithm:
            return self._values_from_residuals(residual * signs[:, self.order])
        return self._values_from_residuals(residual * signs.T[:, :, None])

    def _values_from_residuals(self, residual: np.ndarray) -> np.ndarray:
        """Values (R,) of pairs i ≠ j, with those of samples with themselves if need be."""
        if self.uses_sorted_algorithm:
            pairs = self.scale * self.family.pair_sum(self.ordered_proba, residual, self.length)
        else:
            pairs = gram_pair_sum(self.kernel, self.data.matrix, residual)
        is_biased = self.estimation == "biased"
        diagonal = self._diagonal(residual) if is_biased or self.square is not None else 0.0
        if is_biased:
            values = pairs + diagonal
        elif self.square is None:
            values = pairs / self.pair_weight
        else:  # pairs of the samples that a row stands for
            values = (pairs + diagonal - self._diagonal_of_singles(residual)) / self.pair_weight
        kernels.check_finite_kernel(values)
        if is_biased:
            check_not_negative(values, self.data.weight.shape[0] * diagonal)
            values = np.maximum(values, 0.0)
        return values

    def block_sums(self, labels: np.ndarray) -> np.ndarray:
        """Σ_{i≠j} w_i w_j h_ij within each block, (n_blocks, R)."""
        mass = self.weighted_residuals(labels)
        sums = gram_block_sums(self.kernel, self.data.matrix, mass, self.block_size)
        kernels.check_finite_kernel(sums)
        return sums

    def gram_terms(self) -> tuple[Any, ...]:
        """The kernel k, points and masses with w_i w_j h_ij = ⟨mass_i, k(point_i, point_j) mass_j⟩,
        of the labels that were observed.
        """
        data = self.data
        mass = self.weighted_residuals(data.label[None])[:, 0]
        return self.kernel, data.matrix, mass

    def weighted_residuals(self, labels: np.ndarray) -> np.ndarray:
        """w_i L r_i for R label vectors (R, n): (n, R, K)."""
        points = self.data.matrix
        is_label = labels.T[:, :, None] == arange_like(points, points.shape[1])
        residual = as_type(is_label, points.dtype)
        residual -= points[:, None, :]
        residual *= as_type(self.data.weight, points.dtype)[:, None, None]
        return residual if self.root is None else residual @ asarray_like(points, self.root)

    def _residuals(self, labels: np.ndarray) -> np.ndarray:
        """Weighted residuals: on a line y − p in its order, (R, n), else vectors (n, R, K)."""
        if not self.uses_sorted_algorithm:
            return self.weighted_residuals(labels)
        residual = labels[:, self.order] - self.ordered_proba
        residual *= self.ordered_weight
        return residual

    def _diagonal_of_singles(self, residual: np.ndarray) -> np.ndarray:
        """Σ w² h of single samples with themselves, if rows stand for several, with any labels.

        On a line, a share f of labels 1 has Σ w² (y − p)² = (Σ w²) ((f − p)(1 − 2p) + p(1 − p)).
        """
        if not self.uses_sorted_algorithm:
            share = np.divide(self.square, self.data.weight**2)
            return share @ gram_own_terms(self.kernel, self.data.matrix, residual)
        proba, square = self.ordered_proba, self.square[self.order]
        noise = square @ (proba * (1 - proba))
        return self.scale * (residual @ (square / self.ordered_weight * (1 - 2 * proba)) + noise)

    def _diagonal(self, residual: np.ndarray) -> np.ndarray:
        """Σ_i w_i² h_ii."""
        if not self.uses_sorted_algorithm:
            terms = gram_own_terms(self.kernel, self.data.matrix, residual)
            return to_numpy(array_namespace(terms).sum(terms, axis=0))
        return self.scale * np.einsum("rn,rn->r", residual, residual)


def largest_term(class_kernel: np.ndarray | None, n_classes: int) -> float:
    """max rᵀ M r' over residuals r and r', for a kernel of at most 1: reached by e_i − e_j."""
    if class_kernel is None:
        return 2.0
    return _largest_form(check_class_kernel(class_kernel, n_classes))


def _largest_form(matrices: np.ndarray) -> float:
    """max (e_i − e_j)ᵀ M (e_i − e_j) over classes i and j, and over matrices M (…, K, K)."""
    diagonal = np.diagonal(matrices, axis1=-2, axis2=-1)
    return float(np.max(diagonal[..., None] + diagonal[..., None, :] - 2 * matrices))


def _root(class_kernel: np.ndarray, data: ClassData) -> np.ndarray:
    """L with L Lᵀ = M, for the class kernel M in the order of the classes."""
    matrix = check_class_kernel(class_kernel, len(data.classes))
    eigenvalue, vector = kernels.check_semidefinite(matrix, "class_kernel")
    return vector * np.sqrt(np.maximum(eigenvalue, 0))


def check_class_kernel(class_kernel: np.ndarray, n_classes: int) -> np.ndarray:
    """The class kernel as a matrix (K, K) of doubles."""
    matrix = as_array(class_kernel, "class_kernel")
    if matrix.dtype.kind not in "biuf" or matrix.shape != (n_classes, n_classes):
        raise ValueError(
            f"class_kernel must be a matrix of numbers with one row and one column for each of the "
            f"{n_classes} classes; found shape {matrix.shape} and type {matrix.dtype}. (With a "
            "multi_class other than 'canonical' there are two classes at a time.)"
        )
    matrix = matrix.astype(np.float64, copy=False)
    largest = np.abs(matrix).max()
    if 0 < largest < np.inf and not 1 / _MAX_KERNEL_ENTRY <= largest <= _MAX_KERNEL_ENTRY:
        raise ValueError(
            f"The largest entry of class_kernel must lie between {1 / _MAX_KERNEL_ENTRY:.0e} and "
            f"{_MAX_KERNEL_ENTRY:.0e}, so that squares neither underflow nor overflow; found "
            f"{largest:.3g}. Divide the matrix by it: the error is divided by the same number."
        )
    centred = matrix - matrix.mean(axis=0)
    if np.abs(centred - centred.mean(axis=1, keepdims=True)).max() <= 1e-12 * largest:
        raise ValueError(
            "class_kernel must tell classes apart; found a matrix that gives every residual the "
            "norm 0. Pass None for the identity."
        )
    return matrix


def check_not_negative(values: np.ndarray, largest: np.ndarray) -> None:
    """Biased estimates are squared norms, and at most `largest`, if the kernel is semi-definite."""
    if (values < -_SINGLE_KERNEL_RTOL * largest).any():
        raise ValueError(
            "kernel must be positive semi-definite, so that biased estimates are at least 0; found "
            f"{values.min():.3g}. Choose another one."
        )


def check_enough_for_estimation(
    data: ClassData, estimation: str, block_size: int | None = None
) -> None:
    """All estimates but the biased one average over pairs of different samples."""
    n = data.n_samples
    check_has_pairs(estimation, n)
    if estimation == "unbiased" and has_negligible_pairs(data):
        raise ValueError(
            "estimation='unbiased' of a CalibrationState needs weights that are comparable, as the "
            "state keeps only their sums; found one sample with almost all weight. Use "
            "estimation='biased'."
        )
    if estimation == "block" and block_size is not None and n < block_size:
        raise ValueError(
            f"block_size must be at most the number of samples of positive weight; found "
            f"block_size={block_size} for {n} samples. Choose smaller blocks."
        )


def check_has_pairs(estimation: str, n: int) -> None:
    """Refuse a single sample where pairs of different samples are averaged."""
    if estimation != "biased" and n < 2:
        raise ValueError(
            f"estimation={estimation!r} needs at least 2 samples of positive weight; found 1. Use "
            "estimation='biased'."
        )


def has_negligible_pairs(data: ClassData) -> bool:
    """True if the weight of all pairs is lost in the rounding of sums of weights and squares."""
    return data.square is not None and data.inverse_effective_size > 1 - _PAIR_WEIGHT_RTOL
