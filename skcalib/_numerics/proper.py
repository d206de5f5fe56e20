"""Proper scores of single predictions."""

import numpy as np

from .logits import log_probabilities, row_blocks


def _brier_losses(proba: np.ndarray, label: np.ndarray) -> np.ndarray:
    """(y − p)² for proba (n,) of two classes, Σ_k (1[y = k] − p_k)² for (n, K). Returns (n,)."""
    if proba.ndim == 1:
        return (label - proba) ** 2
    square = np.empty(len(proba))
    for rows in row_blocks(*proba.shape):
        block = proba[rows].astype(np.float64, copy=False)
        square[rows] = np.einsum("nk,nk->n", block, block)
    return square + 1 - 2 * _of_labels(proba, label)


def _log_losses(proba: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Minus the logarithm of the label's probability; shapes as in `_brier_losses`."""
    return -log_probabilities(_of_labels(proba, label))


def _of_labels(proba: np.ndarray, label: np.ndarray) -> np.ndarray:
    if proba.ndim == 1:
        return np.where(label == 1, proba, 1 - proba)
    return proba[np.arange(len(label)), label].astype(np.float64, copy=False)


# From probabilities and labels to the loss of each sample.
PROPER_LOSSES = {"brier": _brier_losses, "log_loss": _log_losses}
