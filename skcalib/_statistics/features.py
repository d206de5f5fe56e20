"""Features whose inner products approximate a kernel."""

import math

import numpy as np
from array_api_compat import array_namespace

from .._numerics.array_api import Array
from .functions import SMALLEST_BANDWIDTH, Kernel, KernelFamily
from .gram import gram_diagonal


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
    return direction * (family.scale / max(bandwidth, SMALLEST_BANDWIDTH))


def pivoted_cholesky(
    kernel: Kernel, points: np.ndarray, weight: np.ndarray, most: int, tolerance: float
) -> tuple[np.ndarray, float]:
    """Features (n, d) whose inner products approximate the kernel from below, and the error left.

    Points are added, the one with the largest weighted error first, until the error Σ_i w_i (k_ii −
    ⟨φ_i, φ_i⟩) is at most the tolerance, or there are `most`. Cost O(n d²), memory O(n d).
    """
    rest = gram_diagonal(kernel, points).astype(np.float64)
    features = np.zeros((len(points), min(most, len(points))))
    for d in range(features.shape[1]):
        pivot = int(np.argmax(weight * rest))
        if weight @ rest <= tolerance or rest[pivot] <= 0:
            return features[:, :d], float(weight @ rest)
        column = kernel(points, points[pivot : pivot + 1])[:, 0]
        column = column - features[:, :d] @ features[pivot, :d]
        column /= np.sqrt(rest[pivot])
        features[:, d] = column
        rest = np.maximum(rest - column**2, 0.0)
    return features, float(weight @ rest)
