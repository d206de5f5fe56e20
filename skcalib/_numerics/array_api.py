"""Functions that the array API lacks: special ones, distances between points, and safe quotients.

A formula that is written on the namespace of its arguments is the same for NumPy, torch and JAX
arrays, and differentiable with the latter two. Such formulas change nothing in place, and choose
between cases with `where`. As the derivatives of both cases are taken, both must be finite.
"""

import math
from functools import cache
from typing import Any

import array_api_compat.numpy
import numpy as np
import scipy.special
from array_api_compat import (
    device,
    is_array_api_obj,
    is_cupy_array,
    is_jax_namespace,
    is_torch_namespace,
)
from scipy.spatial.distance import cdist

Array = Any  # of NumPy, torch or JAX

# Keeps quotients and logarithms finite, where it is added to a number that may be 0.
MIN_DENOMINATOR = 1e-100

# Normal distributions and kernels are constant beyond this many standard deviations.
_MAX_RATIO = 1e8

# Up to this many differences of points, JAX computes them all at once.
_MAX_JAX_BLOCK_SIZE = 2**21

# From this argument on, erfcx is this many terms of its asymptotic series. Below it, exp(x²) and
# erfc are finite in single precision.
_SERIES_START, _N_SERIES_TERMS = 8.0, 16


def array_namespace(*arrays: Any) -> Any:
    """`array_api_compat.array_namespace` with a shortcut for NumPy."""
    if {*map(type, arrays)} == {np.ndarray}:
        return array_api_compat.numpy
    return array_api_compat.array_namespace(*arrays)


def special_functions(xp: Any) -> Any:
    """The module of the namespace that has erf, erfc, ndtr and gammaln."""
    if is_torch_namespace(xp):
        import torch

        return torch.special
    if is_jax_namespace(xp):
        import jax.scipy.special

        return jax.scipy.special
    return scipy.special


def erfcx(x: Array) -> Array:
    """exp(x²) erfc(x) at x ≥ −5. Older releases of JAX lack it."""
    xp = array_namespace(x)
    if not is_jax_namespace(xp):
        return special_functions(xp).erfcx(x)
    small, large = xp.clip(x, None, _SERIES_START), xp.clip(x, _SERIES_START, None)
    half = 1 / (2 * large**2)
    series = xp.ones_like(x)
    for term in range(2 * _N_SERIES_TERMS - 1, 0, -2):  # 1 − q + 3 q² − 15 q³ + … with q = 1/(2x²)
        series = 1 - term * half * series
    near = xp.exp(small**2) * special_functions(xp).erfc(small)
    return xp.where(x < _SERIES_START, near, series / (math.sqrt(math.pi) * large))


def bounded_ratio(shift: Array, spread: Array) -> Array:
    """shift/spread, clipped to ±1e8.

    It and its derivatives are finite, also where the spread is 0. NaN leads to NaN.
    """
    xp = array_namespace(shift, spread)
    shift, spread = xp.broadcast_arrays(shift, spread)
    is_far = xp.abs(shift) >= _MAX_RATIO * spread
    divide = _jax_divide() if is_jax_namespace(xp) else xp.divide
    ratio = divide(xp.where(is_far, 0.0, shift), xp.where(is_far, 1.0, spread))
    return xp.where(is_far, _MAX_RATIO * xp.sign(shift), ratio)


@cache
def _jax_divide() -> Any:
    """A function x/y whose derivative has no factor 1/y², which would overflow before 1/y does."""
    import jax

    @jax.custom_jvp
    def divide(x: Array, y: Array) -> Array:
        return x / y

    @divide.defjvp
    def derivative(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
        (x, y), (dx, dy) = primals, tangents
        return x / y, dx / y - x / y * (dy / y)

    return divide


def hypot(a: Array, b: Array) -> Array:
    """√(a² + b²) of positive numbers, without squares that overflow."""
    xp = array_namespace(a, b)
    if not is_jax_namespace(xp):
        return xp.hypot(a, b)
    scale = stop_gradient(xp.maximum(a, b))
    return scale * xp.sqrt((a / scale) ** 2 + (b / scale) ** 2)


def power_of_two(values: np.ndarray, axis: int | None) -> np.ndarray:
    """The power of two below the largest absolute value: a unit in which squares are finite.

    Numbers are divided by it without rounding, so that results do not depend on their unit.
    """
    _, exponent = np.frexp(np.abs(values).max(axis=axis, keepdims=True))
    return np.ldexp(1.0, np.maximum(exponent - 1, -1022))


def root_mean_square(weight: Array, values: np.ndarray, axis: int = -1) -> np.ndarray:
    """√(Σ w x²) along an axis of weights and values that broadcast, in any unit."""
    unit = power_of_two(values, axis)
    return np.sqrt(np.sum(weight * (values / unit) ** 2, axis=axis)) * unit.squeeze(axis)


def promote_to_float(*arrays: Array) -> tuple[Array, ...]:
    """Return the arrays in a common type, single or double precision."""
    xp = array_namespace(*arrays)
    dtype = xp.result_type(*arrays, xp.float32)
    if dtype not in (xp.float32, xp.float64):  # NumPy's longdouble
        dtype = xp.float64
    return tuple(xp.astype(array, dtype, copy=False) for array in arrays)


def as_type(array: Array, dtype: object) -> Array:
    """Return the array in another type; None stays None."""
    return None if array is None else array_namespace(array).astype(array, dtype, copy=False)


def distances(s: Array, t: Array, metric: str) -> Array:
    """ "cityblock" or "euclidean" distances of points (a, K) and (b, K), (a, b)."""
    xp = array_namespace(s, t)
    if is_torch_namespace(xp):
        import torch

        order = 1.0 if metric == "cityblock" else 2.0
        return torch.cdist(s, t, p=order, compute_mode="donot_use_mm_for_euclid_dist")
    if is_jax_namespace(xp):
        return _jax_distances(s, t, metric)
    if isinstance(s, np.ndarray):
        return cdist(s, t, metric).astype(s.dtype, copy=False)  # it is always in double precision
    gaps = (abs(s[:, k][:, None] - t[:, k][None, :]) for k in range(s.shape[1]))
    return sum(gaps) if metric == "cityblock" else sum(gap**2 for gap in gaps) ** 0.5


def _jax_distances(s: Array, t: Array, metric: str) -> Array:
    import jax

    def distances_from(point: Array) -> Array:
        gap = point - t
        if metric == "cityblock":
            return jax.numpy.sum(jax.numpy.abs(gap), axis=-1)
        square = jax.numpy.sum(gap**2, axis=-1)
        is_apart = square > 0  # the root has no derivative at 0
        root = jax.numpy.sqrt(jax.numpy.where(is_apart, square, 1.0))
        return jax.numpy.where(is_apart, root, 0.0)

    if s.shape[0] * t.size <= _MAX_JAX_BLOCK_SIZE:
        return jax.vmap(distances_from)(s)
    # the checkpoint holds no differences for the derivatives
    return jax.lax.map(jax.checkpoint(distances_from), s)


def stop_gradient(array: Array) -> Array:
    """Return the array as a constant, through which no gradient flows."""
    xp = array_namespace(array)
    if is_torch_namespace(xp):
        return array.detach()
    if is_jax_namespace(xp):
        import jax

        return jax.lax.stop_gradient(array)
    return array


def arange_like(array: Array, n: int) -> Array:
    """0, …, n − 1 on the device of an array."""
    return array_namespace(array).arange(n, **_device_option(array))


def asarray_like(array: Array, values: Array) -> Array:
    """Return the values in the type and on the device of an array."""
    return array_namespace(array).asarray(values, dtype=array.dtype, **_device_option(array))


def zeros_on(array: Array, shape: tuple[int, ...], dtype: object) -> Array:
    """Return zeros on the device of an array."""
    return array_namespace(array).zeros(shape, dtype=dtype, **_device_option(array))


def _device_option(array: Array) -> dict:
    """The argument `device` of an array; none for JAX, whose traced arrays have no device yet."""
    return {} if is_jax_namespace(array_namespace(array)) else {"device": device(array)}


def to_numpy(values: Array) -> Any:
    """Return an array of any package and device as one of NumPy; anything else is unchanged."""
    if hasattr(values, "detach"):  # PyTorch itself is not needed
        try:
            return values.numpy(force=True)
        except TypeError:  # NumPy has no bfloat16
            return values.float().numpy(force=True)
    if is_cupy_array(values):
        return values.get()
    is_foreign = is_array_api_obj(values) and not isinstance(values, np.ndarray | np.generic)
    return np.asarray(values) if is_foreign else values


def doubles(array: Array, copy: bool = False) -> Array:
    """Return the numbers in double precision."""
    xp = array_namespace(array)
    return xp.astype(array, xp.float64, copy=copy)


def contiguous(array: Array) -> Array:
    """Return the array in C order, if it is one of NumPy."""
    return np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array


def take_rows(array: Array, rows: Array) -> Array:
    """Return rows of an array or a forecast, given by indices (m,), a slice, or a mask (n,)."""
    if isinstance(array, np.ndarray) or isinstance(rows, slice) or not is_array_api_obj(array):
        return array[rows, ...]
    xp = array_namespace(array)
    if isinstance(rows, np.ndarray):
        rows = xp.asarray(np.flatnonzero(rows), **_device_option(array))
    return xp.take(array, rows, axis=0)


def identity_like(array: Array, n: int) -> Array:
    """The identity matrix in the type and on the device of an array."""
    return array_namespace(array).eye(n, dtype=array.dtype, **_device_option(array))


def apply_out(name: str, array: Array, out: Array) -> Array:
    """Return the named function of an array, computed in the memory of `out`."""
    function = getattr(array_namespace(array), name)
    if isinstance(array, np.ndarray):
        return function(array, out=out)
    out[...] = function(array)
    return out


def dot(a: Array, b: Array) -> float:
    """The sum of the products of all entries."""
    if isinstance(a, np.ndarray):
        return float(np.vdot(a, b))
    return float(array_namespace(a, b).sum(a * b))


def product(a: Array, b: Array) -> Array:
    """The matrix product; with NumPy it has contiguous columns if a (n, K) has."""
    if isinstance(a, np.ndarray) and a.strides[0] == a.itemsize:
        return np.matmul(a, b, order="F")
    return a @ b


def row_dots(a: Array, b: Array) -> Array:
    """⟨a_i, b_i⟩ of rows (..., n, K), (..., n)."""
    if isinstance(a, np.ndarray):
        return np.einsum("...k,...k->...", a, b)
    return array_namespace(a, b).vecdot(a, b)


def row_sums(a: np.ndarray) -> np.ndarray:
    """Σ_k a_ik of rows (n, K), (n,), in double precision; `sum(axis=1)` is slow on short rows."""
    if a.shape[1] == 2:
        return np.add(*a.T, dtype=np.float64)
    return np.einsum("nk->n", a, dtype=np.float64)


def column_dots(a: Array, b: Array) -> Array:
    """⟨a_k, b_k⟩ of columns (n, K), (K,)."""
    if isinstance(a, np.ndarray):
        return np.einsum("nk,nk->k", a, b)
    return array_namespace(a, b).sum(a * b, axis=0)


def take_labels(values: Array, labels: Array) -> Array:
    """values[i, labels[i, r]] for values (n, K) in C order and labels (n, R), as (n, R)."""
    if not isinstance(values, np.ndarray):
        return array_namespace(values).take_along_axis(values, labels, axis=1)
    n, n_columns = values.shape
    return np.take(values.reshape(-1), labels + np.arange(0, n * n_columns, n_columns)[:, None])
