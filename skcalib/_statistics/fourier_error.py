"""The squared kernel calibration error by random Fourier features, in linear time."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from .._data import ClassData
from .._inputs.drawing import draw_seed
from .._inputs.options import select_arguments
from .._inputs.scikit_learn import RandomState
from .._numerics.array_api import (
    Array,
    apply_out,
    arange_like,
    as_type,
    asarray_like,
    doubles,
    row_dots,
    take_labels,
    take_rows,
    to_numpy,
    zeros_on,
)
from .._numerics.logits import iter_row_blocks, iter_slices
from .._numerics.median_distance import pair_weight
from .base import BlockSums, Statistic, iter_sample_blocks
from .gram import random_frequencies
from .kernels import KERNELS, check_semidefinite, resolve_bandwidth
from .squared_error import SquaredKernelError, check_class_kernel, check_enough_for_estimation

# Rows whose features are summed in single precision; the sums of such blocks are double.
_SINGLE_BLOCK_SIZE = 2**14

# Sums of features of all classes that stay in the cache (512 kB) while rows are added.
_SUMS = 2**17

# Entries of a matrix of ones and zeros, (R K, rows), on a GPU (1 GB).
_SUMS_ON_DEVICE = 2**28

# Rows of a product of matrices that takes all columns of a thousand classes.
_MIN_PRODUCT_ROWS = 256

# Rounding errors of sums in single precision, next to one term.
_SINGLE_SUM_RTOL = 1e-5

# Frequencies of the metric, if no number is chosen.
N_COMPONENTS = 200


def check_fourier(method: str, kernel: str | Callable, estimation: str) -> None:
    """Random features are known for named kernels, and replace sums over all pairs."""
    if method == "exact":
        return
    if callable(kernel) or kernel not in KERNELS:
        raise ValueError(
            f"method='fourier' needs a named kernel, one of {sorted(KERNELS)}, whose frequencies "
            f"are known; found {kernel!r}. Use method='exact'."
        )
    if estimation not in ("unbiased", "biased"):
        raise ValueError(
            f"method='fourier' needs estimation='unbiased' or 'biased'; found {estimation!r}, "
            "which is fast without random features. Use method='exact'."
        )


class FourierKernelError(Statistic):
    """The error of `SquaredKernelError` with ⟨φ(p_i), φ(p_j)⟩ in place of the kernel.

    φ holds the cosines and sines of D random frequencies, so that the inner products have the
    kernel as their mean. A vector of labels enters by the sums of the rows φ(p_i) of each class:
    O(n D) for each draw of the labels, whatever the number of classes.
    """

    supports = frozenset({"any-order", "groups"})

    def __init__(
        self,
        data: ClassData,
        *,
        kernel: Any = "total-variation",
        bandwidth: Any = "median",
        class_kernel: np.ndarray | None = None,
        estimation: str = "unbiased",
        n_components: int = N_COMPONENTS,
        seed: int = 0,
    ) -> None:
        if data.is_binary:
            data = data.to_numpy()  # as `SquaredKernelError` does
        self.data = data
        self.estimation = estimation
        bandwidth = resolve_bandwidth(data, kernel, bandwidth)
        names = ("kernel", "bandwidth", "class_kernel", "estimation", "n_components", "seed")
        self.options = select_arguments(locals(), names)
        n_classes, weight = len(data.classes), to_numpy(data.weight)
        self.class_kernel = None
        if class_kernel is not None:
            matrix = check_class_kernel(class_kernel, n_classes)
            check_semidefinite(matrix, "class_kernel")
            self.class_kernel = asarray_like(data.weight, matrix)
        shape, generator = (n_components, n_classes), np.random.default_rng(seed)
        frequencies = random_frequencies(KERNELS[kernel], bandwidth, shape, generator)
        self.frequencies = asarray_like(data.weight, frequencies)
        self.largest = float(weight.max())
        self.tie_tolerance = _SINGLE_SUM_RTOL * data.inverse_effective_size
        square = data.square
        self.pair_weight = pair_weight(weight) if square is None else 1 - square.sum()
        self.expected = self._zeros((n_classes, 2 * n_components))
        n_columns = max(self.expected.shape)
        for rows in iter_sample_blocks(arange_like(self.frequencies, len(weight)), n_columns):
            self.expected += self._compute_expected(rows)

    def waves(self, rows: np.ndarray) -> np.ndarray:
        """φ of some samples, times their weights on the scale of 1, (m, 2D) in single precision."""
        xp, (n_components, _) = array_namespace(self.frequencies), self.frequencies.shape
        features = zeros_on(self.frequencies, (rows.shape[0], 2 * n_components), xp.float32)
        turns_per_unit = self.frequencies.T / (2 * math.pi)
        for block in self._blocks(rows.shape[0]):
            turns = self._matrix(rows[block]) @ turns_per_unit
            turns -= xp.round(turns)  # what is left is small enough for single precision
            phase = as_type(2 * math.pi * turns, xp.float32)
            apply_out("cos", phase, out=features[block, :n_components])
            apply_out("sin", phase, out=features[block, n_components:])
        scale = take_rows(self.data.weight, rows) / (self.largest * math.sqrt(n_components))
        features *= as_type(scale, xp.float32)[:, None]
        return features

    def _zeros(self, shape: tuple[Any, ...]) -> np.ndarray:
        return zeros_on(self.frequencies, shape, self.frequencies.dtype)

    def _blocks(self, n: int) -> Any:
        size = max(self.expected.shape)
        return iter_row_blocks(n, size, min_rows=_MIN_PRODUCT_ROWS, like=self.frequencies)

    def _matrix(self, rows: np.ndarray) -> np.ndarray:
        """The probabilities of all classes of some samples, in double precision."""
        proba = take_rows(self.data.proba, rows)
        if proba.ndim == 1:
            return np.column_stack([1 - proba, proba])
        return doubles(proba)

    def _compute_expected(self, rows: np.ndarray) -> np.ndarray:
        """Expected sums of features by class, (K, 2D)."""
        waves, total = self.waves(rows), self._zeros(self.expected.shape)
        for block in self._blocks(rows.shape[0]):
            total += self._matrix(rows[block]).T @ doubles(waves[block, :])
        return total

    @property
    def sums(self) -> BlockSums:
        size = math.prod(self.expected.shape)
        return BlockSums(size, self._init_sums, self._update_sums, self._values_from_sums)

    def _init_sums(self, n_draws: int) -> tuple[Array, Array]:
        """Sums of features less what is expected (R, K, 2D), and of what pairs leave out (R,)."""
        return self._zeros((n_draws, *self.expected.shape)) - self.expected, self._zeros((n_draws,))

    def _update_sums(self, sums: tuple[Array, Array], rows: Array, labels: Array) -> None:
        gaps, diagonal = sums
        n, n_draws = labels.shape
        for block in iter_slices(n, _SINGLE_BLOCK_SIZE):
            waves = self.waves(rows[block])
            for draws in iter_slices(n_draws, self._draws_at_once()):
                gaps[draws, ...] += self._class_sums(labels[block, draws], waves)
        if self.estimation == "unbiased":
            xp, most = array_namespace(diagonal), max(n_draws, self.expected.shape[0])
            for row_block in iter_row_blocks(n, most, like=diagonal):
                norms = self._norms(rows[row_block])
                diagonal += xp.sum(take_labels(norms, labels[row_block, :]), axis=0)

    def _values_from_sums(self, sums: tuple[Array, Array]) -> np.ndarray:
        gaps, diagonal = sums
        other = gaps if self.class_kernel is None else self.class_kernel @ gaps
        xp, shape = array_namespace(gaps), (gaps.shape[0], -1)
        squares = to_numpy(row_dots(xp.reshape(gaps, shape), xp.reshape(other, shape)))
        squares = self.largest**2 * squares
        if self.estimation == "biased":
            return np.maximum(squares, 0.0)
        return (squares - to_numpy(diagonal)) / self.pair_weight

    def flip_signs(self, signs: np.ndarray) -> np.ndarray:
        """Values (R,) if the residuals of the observed labels are multiplied by signs (R, n)."""
        order, label = np.arange(len(self.data.label)), self.data.label[:, None]
        gaps = np.zeros((len(signs), *self.expected.shape))
        diagonal = np.zeros(len(signs))
        for rows in (order[block] for block in iter_slices(len(order), _SINGLE_BLOCK_SIZE)):
            waves, matrix = self.waves(rows), self._matrix(rows)
            for row, gap in zip(signs, gaps, strict=True):
                flipped = waves * row[rows, None].astype(np.float32)
                gap += self._class_sums(label[rows], flipped)[0] - matrix.T @ flipped
            diagonal += take_labels(self._norms(rows), label[rows]).sum()
        return self._values_from_sums((gaps, diagonal))

    def _class_sums(self, labels: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Sums of the feature rows of each class, (R, K, 2D), for labels (m, R)."""
        (m, n_draws), n_classes = labels.shape, self.expected.shape[0]
        if not isinstance(labels, np.ndarray):  # on a GPU, sparse sums would cost more
            xp = array_namespace(labels)
            is_class = labels.T[:, None, :] == arange_like(labels, n_classes)[None, :, None]
            table = xp.reshape(as_type(is_class, features.dtype), (n_draws * n_classes, m))
            return xp.reshape(table @ features, (n_draws, n_classes, -1))
        cell = labels + np.arange(0, n_draws * n_classes, n_classes, dtype=np.int32)
        starts = np.arange(0, m * n_draws + 1, n_draws, dtype=np.int32)
        ones = np.ones(m * n_draws, dtype=np.float32)
        shape = (n_draws * n_classes, m)
        sums = sparse.csc_array((ones, cell.ravel(), starts), shape=shape) @ features
        return sums.reshape(n_draws, n_classes, -1)

    def _norms(self, rows: np.ndarray) -> np.ndarray:
        """(Σ w²) rᵀ M r of each label of some samples, (m, K): the norm of φ is 1."""
        matrix = similarity = self._matrix(rows)
        diagonal = 1.0
        if self.class_kernel is not None:
            similarity = matrix @ self.class_kernel
            diagonal = array_namespace(matrix).linalg.diagonal(self.class_kernel)
        norms = diagonal - 2 * similarity
        norms += row_dots(similarity, matrix)[:, None]
        norms *= take_rows(self.data.squares, rows)[:, None]
        return norms

    def _draws_at_once(self) -> int:
        """The draws whose sums by class are taken together."""
        if isinstance(self.expected, np.ndarray):
            return max(1, _SUMS // math.prod(self.expected.shape))
        return max(1, _SUMS_ON_DEVICE // (_SINGLE_BLOCK_SIZE * self.expected.shape[0]))


def make_kernel_error(
    data: ClassData,
    *,
    method: str = "exact",
    n_components: int = N_COMPONENTS,
    random_state: RandomState = None,
    **options: Any,
) -> Statistic:
    """The squared kernel error as a function of the labels: exact, or by random features."""
    estimation, block_size = options["estimation"], options.pop("block_size", None)
    check_enough_for_estimation(data, estimation, block_size)
    if method == "exact":
        return SquaredKernelError(data, block_size=block_size, **options)
    check_fourier(method, options["kernel"], estimation)
    seed = draw_seed(random_state)
    return FourierKernelError(data, n_components=n_components, seed=seed, **options)
