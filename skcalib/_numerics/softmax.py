"""The softmax of rows of scores."""

from collections.abc import Iterator

import numpy as np
from array_api_compat import array_namespace

from .array_api import Array, written

# Numbers in a block of rows; a few such blocks fit into the cache. A GPU needs more to do at once.
_BLOCK, _BLOCK_ON_DEVICE = 2**15, 2**24

# Rows in the subsample that gives a first guess, or approximate second derivatives.
SAMPLE = 4096


def row_blocks(
    n: int, n_classes: int, every: int = 1, fewest: int = 1, on: Array = None
) -> Iterator[slice]:
    """Slices that go through n rows of probabilities in blocks, one row in `every`.

    Products with matrices are slow if a block has fewer rows than they have columns. `on` is an
    array of the package that computes, None for NumPy.
    """
    block = _BLOCK if on is None or isinstance(on, np.ndarray) else _BLOCK_ON_DEVICE
    step = max(block // n_classes, fewest) * every
    return (slice(i, min(i + step, n), every) for i in range(0, n, step))


def softmax(scores: Array) -> Array:
    """exp s_k / Σ_l exp s_l of each row (n, K), in place."""
    xp = array_namespace(scores)
    scores -= xp.max(scores, axis=1, keepdims=True)
    written("exp", scores, out=scores)
    scores /= xp.sum(scores, axis=1, keepdims=True)
    return scores
