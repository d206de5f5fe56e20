"""The softmax of rows of scores."""

from collections.abc import Iterator

import numpy as np

# Numbers in a block of rows; a few such blocks fit into the cache.
_BLOCK = 2**15

# Rows in the subsample that gives a first guess, or approximate second derivatives.
SAMPLE = 4096


def row_blocks(n: int, n_classes: int, every: int = 1, fewest: int = 1) -> Iterator[slice]:
    """Slices that go through n rows of probabilities in blocks, one row in `every`.

    Products with matrices are slow if a block has fewer rows than they have columns.
    """
    step = max(_BLOCK // n_classes, fewest) * every
    return (slice(i, min(i + step, n), every) for i in range(0, n, step))


def softmax(scores: np.ndarray) -> np.ndarray:
    """exp s_k / Σ_l exp s_l of each row (n, K), in place."""
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores
