"""Proper scores of single predictions."""

import numpy as np

from .logits import log_probabilities


def _brier_losses(proba: np.ndarray, label: np.ndarray) -> np.ndarray:
    """(y − p)² for proba (n,) of two classes, Σ_k (1[y = k] − p_k)² for (n, K). Returns (n,)."""
    if proba.ndim == 1:
        return (label - proba) ** 2
    return np.sum(proba**2, axis=1) + 1 - 2 * _of_labels(proba, label)


def _log_losses(proba: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Minus the logarithm of the label's probability; shapes as in `_brier_losses`."""
    return -log_probabilities(_of_labels(proba, label))


def _of_labels(proba: np.ndarray, label: np.ndarray) -> np.ndarray:
    if proba.ndim == 1:
        return np.where(label == 1, proba, 1 - proba)
    return np.take_along_axis(proba, label[:, None], axis=1)[:, 0]


# From probabilities and labels to the loss of each sample.
PROPER_LOSSES = {"brier": _brier_losses, "log_loss": _log_losses}
