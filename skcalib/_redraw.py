"""Outcomes redrawn from what was predicted, and the batches in which they are drawn."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

# Numbers in the residuals of one batch of draws (32 MB).
_BATCH = 2**22

# Uniform numbers that are drawn at once: they stay in the cache.
_CHUNK = 2**16


class Batch(NamedTuple):
    size: int
    seed: int


def seeded_batches(
    n_draws: int, numbers_per_draw: int, least: int, random_state: np.random.RandomState
) -> list[Batch]:
    """Batches of nearly equal size: at least `least` of them, if there are as many draws.

    Each has a seed of its own, so that the draws do not depend on which job makes them.
    """
    largest = max(1, _BATCH // numbers_per_draw)
    n_batches = min(n_draws, max(least, -(-n_draws // largest)))
    small, n_larger = divmod(n_draws, n_batches)
    seeds = random_state.randint(2**31 - 1, size=n_batches).tolist()
    return [Batch(small + (k < n_larger), seed) for k, seed in enumerate(seeds)]


def draw_labels(
    proba: np.ndarray, n_draws: int, generator: np.random.Generator | np.random.RandomState
) -> np.ndarray:
    """Labels y_i ~ Cat(proba_i), independent given the predictions.

    Parameters: proba (n,) for the second of two classes, or (n, K). Returns (n_draws, n) of int32.
    A class of probability 0 is never drawn.
    """
    label = np.zeros((n_draws, len(proba)), dtype=np.int32)
    if proba.ndim == 2:
        cumulative = np.cumsum(proba, axis=1, dtype=np.float64)
        cumulative /= cumulative[:, -1:]  # so that the last possible class reaches exactly 1
        below = np.ascontiguousarray(cumulative[:, :-1].T)  # (K − 1, n)
    for rows, columns in _chunks(*label.shape):
        part = label[rows, columns]
        uniform = generator.random(part.shape)
        if proba.ndim == 1:
            np.less(uniform, proba[columns], out=part)
            continue
        for bound in below:
            part += uniform >= bound[columns]
    return label


def _chunks(n_rows: int, n_columns: int) -> Iterator[tuple[slice, slice]]:
    """Slices of rows and columns in the order of memory, of at most `_CHUNK` numbers each."""
    if n_columns == 0:
        return
    per_chunk = max(1, _CHUNK // n_columns)
    for row in range(0, n_rows, per_chunk):
        for column in range(0, n_columns, _CHUNK):
            yield slice(row, row + per_chunk), slice(column, column + _CHUNK)
