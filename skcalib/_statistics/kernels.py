"""Kernels on the simplex: their values and bandwidths, and what they must satisfy."""

import math
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from .._data import ClassData
from .._inputs.scikit_learn import Interval, StrOptions
from .._numerics import laplace
from .._numerics.array_api import Array, distances, to_numpy
from .._numerics.median_distance import median_distance

# (a, K), (b, K) -> (a, b), or (a, b, K, K) if it is matrix-valued
Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]

# The least bandwidth that is used. The squared reciprocal of a smaller one overflows, and distinct
# probabilities are as good as infinitely far apart anyway.
MIN_KERNEL_BANDWIDTH = 1e-150

# Gaussian kernels are 0 from this many bandwidths on.
_MAX_BANDWIDTHS_APART = 1e4

# The largest number of points on which a kernel is tried.
_TRIED = 100

# If the median distance is below this, the points are all but equal.
_MEDIAN_RTOL = 1e-6


class KernelFamily(NamedTuple):
    """exp(−d/ν) of a distance d, or exp(−d²/(2ν²)) if Gaussian, or 1 − d if linear."""

    metric: str  # name in scipy
    scale: float  # d is this multiple of the metric
    per_probability: float  # for two classes d is this multiple of |p − q|
    is_gaussian: bool = False
    is_linear: bool = False
    # fast sums over pairs of points on a line; None if there are none
    pair_sum: Any = laplace.laplace_pair_sum
    product: Any = laplace.laplace_product


# Kernels on vectors of any kind, which have a bandwidth.
KERNELS = {
    "total-variation": KernelFamily("cityblock", 0.5, 1.0),
    "laplacian": KernelFamily("cityblock", 1.0, 2.0),
    "exponential": KernelFamily("euclidean", 1.0, math.sqrt(2.0)),
    "rbf": KernelFamily("euclidean", 1.0, math.sqrt(2.0), is_gaussian=True, pair_sum=None),
}

# Also the kernel 1 − d with the total variation distance d. Between probability vectors it is Σ_k
# min(s_k, t_k), so it is positive semi-definite; between other vectors it need not be.
SIMPLEX_KERNELS = KERNELS | {
    "intersection": KERNELS["total-variation"]._replace(
        is_linear=True, pair_sum=laplace.linear_pair_sum, product=laplace.linear_product
    )
}

KERNEL_CONSTRAINTS: dict = {
    "kernel": [StrOptions(set(KERNELS)), callable],
    "bandwidth": [StrOptions({"median"}), Interval(Real, 0, None, closed="neither")],
}


def kernel_values(s: Array, t: Array, family: KernelFamily, bandwidth: float) -> Array:
    """k of points (a, K) and (b, K), (a, b), on the namespace of the arrays."""
    scale = family.scale / max(bandwidth, MIN_KERNEL_BANDWIDTH)
    distance = distances(s, t, family.metric) * scale
    xp = array_namespace(distance)
    if family.is_gaussian:  # squares that overflow would have derivatives that are NaN
        distance = xp.clip(distance, None, _MAX_BANDWIDTHS_APART) ** 2 / 2
    return 1 - distance if family.is_linear else xp.exp(-distance)


def kernel_function(
    data: ClassData, kernel: str | Callable, bandwidth: Any, *, may_be_matrices: bool = False
) -> Any:
    """The kernel as a function of rows of probabilities."""
    if callable(kernel):
        return check_kernel(kernel, data.matrix, may_be_matrices=may_be_matrices)
    bandwidth = resolve_bandwidth(data, kernel, bandwidth)
    return partial(kernel_values, family=SIMPLEX_KERNELS[kernel], bandwidth=bandwidth)


def resolve_bandwidth(data: ClassData, kernel: str | Callable, bandwidth: float | str) -> Any:
    """The number that "median" stands for, given these predictions."""
    if callable(kernel):
        return bandwidth
    family = SIMPLEX_KERNELS[kernel]
    if family.is_linear:
        return 1.0
    if bandwidth != "median":
        return float(bandwidth)  # no number of NumPy meets arrays of other packages
    scale = family.per_probability if data.is_binary else family.scale
    points, weight = to_numpy(data.proba), to_numpy(data.weight)
    return median_bandwidth(points, weight, family.metric, scale, data.square)


def median_bandwidth(
    points: np.ndarray,
    weight: np.ndarray,
    metric: str,
    scale: float,
    square: np.ndarray | None = None,
) -> float:
    """Median of the distances between points (n, K), or (n,): `scale` times those of the metric.

    Below 1e-6 it grows again as the median falls, to 1 for equal points. So points that are equal
    but for rounding errors have the bandwidth of equal ones.
    """
    median = scale * median_distance(points, weight, metric, square)
    return max(median, min(1.0, _MEDIAN_RTOL**2 / median)) if median > 0 else 1.0


def check_kernel(kernel: Callable, points: np.ndarray, *, may_be_matrices: bool = False) -> Any:
    """A kernel must be positive semi-definite; it is tried on a few points (n, K).

    A matrix-valued one is a kernel on pairs of a point and a class, so that its values for all
    pairs make one matrix.
    """
    rows, columns = points[:3], points[:2]
    values = np.asarray(kernel(rows, columns))
    shape, size = (len(rows), len(columns)), points.shape[1]
    is_of_matrices = may_be_matrices and values.shape == (*shape, size, size)
    if not (is_of_matrices or values.shape == shape) or values.dtype.kind not in "biuf":
        matrices = ", or matrices of shape (a, b, n_classes, n_classes)" * may_be_matrices
        is_refused = values.ndim == 4 and not may_be_matrices
        remedy = " Matrices are for squared kernel errors without a class_kernel." * is_refused
        raise ValueError(
            "kernel must return the values for all pairs of rows, of shape (a, b) for arrays of "
            f"shapes (a, n_classes) and (b, n_classes){matrices}; found shape {values.shape} and "
            f"type {values.dtype} for a = {shape[0]}, b = {shape[1]} and {size} columns.{remedy}"
        )
    _check_diagonal(kernel, rows)
    n_tried = min(len(points), max(2, _TRIED // size) if is_of_matrices else _TRIED)
    sample = points[np.linspace(0, len(points) - 1, n_tried).astype(np.intp)]
    values = np.asarray(kernel(sample, sample))
    check_finite_kernel(values)
    if is_of_matrices:
        values = values.swapaxes(1, 2).reshape(n_tried * size, -1)
    rounding = 1e-4 if values.dtype == np.float32 else 1e-8
    check_semidefinite(values.astype(np.float64), "kernel", rounding)
    return kernel


def _check_diagonal(kernel: Callable, rows: np.ndarray) -> None:
    """A sample with itself must have the same value as two equal samples.

    Kernels of scikit-learn may know that a sample is compared with itself: `WhiteKernel` does.
    """
    if not hasattr(kernel, "diag"):
        return
    stated, equal = kernel.diag(rows), np.diagonal(kernel(rows, rows))
    if not np.allclose(stated, equal, rtol=1e-12, atol=0.0, equal_nan=True):
        raise ValueError(
            "kernel must have the same value for a sample with itself as for two equal samples; "
            f"found {float(stated[0]):.6g} and {float(equal[0]):.6g}, as a WhiteKernel makes them. "
            "Leave the WhiteKernel out."
        )


def check_finite_kernel(sums: np.ndarray) -> None:
    """Values of a user's kernel, and sums of them, must be finite."""
    if not np.isfinite(sums).all():
        raise ValueError(
            "kernel must have finite values; found NaN or infinity among the pairs of samples."
        )


def check_semidefinite(matrix: np.ndarray, name: str, rounding: float = 1e-8) -> tuple[Any, ...]:
    """Eigenvalues and eigenvectors of a class kernel, or of a kernel's values for all pairs.

    The matrix may miss symmetry by `rounding` times its largest entry, and semi-definiteness by
    `rounding` times its largest eigenvalue.
    """
    suffix = " of its values for all pairs of predictions" * (name == "kernel")
    asymmetry, largest = np.abs(matrix - matrix.T).max(), np.abs(matrix).max()
    if not asymmetry <= rounding * largest:  # NaN too
        raise ValueError(
            f"{name} must be finite and symmetric; found a difference of {asymmetry:.3g} between "
            f"entries{suffix} that should be equal. Choose another one."
        )
    eigenvalue, vector = np.linalg.eigh(matrix)
    if eigenvalue[0] < -rounding * eigenvalue[-1]:
        raise ValueError(
            f"{name} must be positive semi-definite; found the eigenvalue {eigenvalue[0]:.3g} (the "
            f"largest is {eigenvalue[-1]:.3g}){suffix}. Choose another one, computed in double "
            "precision."
        )
    return eigenvalue, vector
