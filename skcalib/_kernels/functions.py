"""Kernels on the simplex, and their bandwidths."""

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist, pdist

from .._sklearn import Interval, StrOptions
from .checks import check_kernel

Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (a, K), (b, K) -> (a, b)

# The squared reciprocals of smaller ones overflow; distinct probabilities are then as good as
# infinitely far apart anyway.
SMALLEST_BANDWIDTH = 1e-150

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

KERNEL_CONSTRAINTS: dict = {
    "kernel": [StrOptions(set(KERNELS)), callable],
    "bandwidth": [StrOptions({"median"}), Interval(Real, 0, None, closed="neither")],
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


def kernel_function(predictions, kernel, bandwidth):
    """The kernel as a function of rows of probabilities."""
    if callable(kernel):
        return check_kernel(kernel, predictions.matrix)
    bandwidth = resolved_bandwidth(predictions, kernel, bandwidth)
    return partial(kernel_values, family=KERNELS[kernel], bandwidth=bandwidth)


def resolved_bandwidth(predictions, kernel, bandwidth):
    """The number that "median" stands for, given these predictions."""
    if callable(kernel) or bandwidth != "median":
        return bandwidth
    family = KERNELS[kernel]
    scale = family.per_probability if predictions.is_binary else family.scale
    return scale * median_distance(predictions.proba, family.metric)


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
