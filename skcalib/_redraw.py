"""Labels redrawn from the predictions, in batches with seeds of their own."""

import numpy as np


def draw_labels(proba: np.ndarray, n_draws: int, generator: np.random.Generator) -> np.ndarray:
    """Labels y_i ~ Cat(proba_i), independent given the predictions.

    Parameters: proba (n,) for the second of two classes, or (n, K). Returns (n_draws, n) of int32.
    A class of probability 0 is never drawn.
    """
    uniform = generator.random((n_draws, len(proba)))
    if proba.ndim == 1:
        return (uniform < proba).astype(np.int32)
    cumulative = np.cumsum(proba, axis=1)
    cumulative /= cumulative[:, -1:]  # so that the last possible class reaches exactly 1
    label = np.zeros(uniform.shape, dtype=np.int32)
    for k in range(proba.shape[1] - 1):
        label += uniform >= cumulative[:, k]
    return label


# Entries in the residuals of one batch of resamples (32 MB).
_BATCH = 2**22


def batch_sizes(n_resamples, entries_per_resample, at_least):
    largest = max(1, _BATCH // entries_per_resample)
    n_batches = min(n_resamples, max(at_least, -(-n_resamples // largest)))
    small, n_larger = divmod(n_resamples, n_batches)
    return [small + (batch < n_larger) for batch in range(n_batches)]
