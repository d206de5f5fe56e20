"""Sums of random Fourier features for the squared kernel error of K classes."""

import numpy as np

from .._statistics.features import fourier_features, random_frequencies
from .._statistics.functions import KernelFamily
from ._problems import Rows

# Features of a block of rows (2 MB).
_FEATURES = 2**18


class FourierSums:
    """Σ w φ(p) (e_y − p)ᵀ of random features φ with ⟨φ(p), φ(q)⟩ ≈ k(p, q), and Σ w² ‖e_y − p‖²."""

    def __init__(
        self, n_classes: int, n_components: int, family: KernelFamily, bandwidth: float, seed: int
    ) -> None:
        self.frequencies = random_frequencies(
            family, bandwidth, (n_components, n_classes), np.random.default_rng(seed)
        )
        self.gap = np.zeros((n_classes, 2 * n_components))
        self.own = 0.0
        self.total = np.zeros(2)  # Σ w and Σ w²
        self.moved = False  # whether any predictions were rounded before

    def add(self, proba: np.ndarray, label: np.ndarray, rows: Rows) -> None:
        """Rows of probabilities (n, K), and labels (n,)."""
        mass = np.broadcast_to(rows.mass, len(label)).astype(np.float64)
        square = mass if rows.weight is None else rows.weight[1]
        at_once = max(1, _FEATURES // self.gap.shape[1])
        for start in range(0, len(label), at_once):
            block = slice(start, start + at_once)
            residual = -proba[block].astype(np.float64)
            residual[np.arange(len(residual)), label[block]] += 1
            self.own += float(square[block] @ np.einsum("nk,nk->n", residual, residual))
            residual *= mass[block, None]
            self.gap += residual.T @ fourier_features(proba[block], self.frequencies)
        self.total += mass.sum(), square.sum()
        self.moved |= bool(np.any(rows.moved))

    def merge(self, other: "FourierSums") -> None:
        self.gap = self.gap + other.gap
        self.own += other.own
        self.total = self.total + other.total
        self.moved |= other.moved

    def squared_error(self, estimator: str) -> float:
        """The "biased" or "unbiased" estimate."""
        biased = float(np.sum(self.gap**2))
        weight, square = self.total.tolist()
        if estimator == "biased":
            return biased / weight**2
        return (biased - self.own) / (weight**2 - square)
