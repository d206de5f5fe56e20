"""What the array API lacks: special functions, and distances between points.

A formula that is written on the namespace of its arguments is the same for NumPy, torch and JAX
arrays, and differentiable with the latter two. Such formulas change nothing in place, and choose
between cases with `where`. As the derivatives of both cases are taken, both must be finite.
"""

from typing import Any

import scipy.special
from array_api_compat import (
    array_namespace,
    is_jax_namespace,
    is_torch_array,
    is_torch_namespace,
)
from scipy.spatial.distance import cdist

Array = Any  # of NumPy, torch or JAX


def special_functions(xp: Any) -> Any:
    """A module with erf, erfc, erfcx, ndtr and gammaln."""
    if is_torch_namespace(xp):
        import torch

        return torch.special
    if is_jax_namespace(xp):
        import jax.scipy.special

        return jax.scipy.special
    return scipy.special


def distances(s: Array, t: Array, metric: str) -> Array:
    """ "cityblock" or "euclidean" distances of points (a, K) and (b, K), (a, b)."""
    xp = array_namespace(s, t)
    if is_torch_namespace(xp):
        import torch

        order = 1.0 if metric == "cityblock" else 2.0
        return torch.cdist(s, t, p=order, compute_mode="donot_use_mm_for_euclid_dist")
    if is_jax_namespace(xp):
        gap = s[:, None, :] - t
        if metric == "cityblock":
            return xp.sum(xp.abs(gap), axis=-1)
        square = xp.sum(gap**2, axis=-1)
        is_apart = square > 0  # the root has no derivative at 0
        return xp.where(is_apart, xp.sqrt(xp.where(is_apart, square, 1.0)), 0.0)
    return cdist(s, t, metric)


def stop_gradient(array: Array) -> Array:
    """The array as a constant, through which no gradient flows."""
    xp = array_namespace(array)
    if is_torch_namespace(xp):
        return array.detach()
    if is_jax_namespace(xp):
        import jax

        return jax.lax.stop_gradient(array)
    return array


def count_like(array: Array, n: int) -> Array:
    """0, …, n − 1 on the device of an array."""
    xp = array_namespace(array)
    return xp.arange(n, device=array.device) if is_torch_array(array) else xp.arange(n)
