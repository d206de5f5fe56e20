"""Logits: the scores of a classifier whose softmax are its probabilities."""

from typing import Any

import numpy as np

from .arrays import as_array, look_like_probabilities, numbers_of_objects
from .probabilities import SUM_TOLERANCE, as_doubles, as_predicted, check_finite

# Next to larger numbers, differences between the other classes would be lost to rounding.
_LARGEST = 1e6


def check_logits(logits: Any, *, name: str) -> np.ndarray:
    """Logits as float64: `(n,)` log-odds of the last of two classes, or `(n, K)` with K ≥ 2."""
    scores = as_array(logits, name)
    if scores.dtype.kind == "O":
        scores = numbers_of_objects(scores)
    if scores.dtype.kind not in "iuf" and scores.size > 0:
        raise ValueError(
            f"{name} must hold logits as numbers; found type {scores.dtype}. Pass the scores of "
            "the classifier before its softmax."
        )
    scores = as_doubles(as_predicted(scores, name))
    check_finite(scores, name)
    size = np.abs(scores)
    if size.max() > _LARGEST:
        row = np.unravel_index(np.argmax(size), size.shape)
        raise ValueError(
            f"{name} must hold logits between {-_LARGEST:g} and {_LARGEST:g}; found "
            f"{float(scores[row])!r} in row {row[0]}. Replace a number that excludes a class by "
            "-1e4, as with np.clip(..., -1e4, 1e4)."
        )
    # rows of logits sum to 1 by chance, but hardly two of them
    are_sums = scores.ndim == 2 and np.allclose(scores.sum(axis=1), 1, rtol=0, atol=SUM_TOLERANCE)
    if are_sums and len(scores) > 1 and look_like_probabilities(scores):
        raise ValueError(
            f"{name} must hold logits, as declared; found rows between 0 and 1 that sum to 1. "
            "Declare them as probabilities, or pass the scores before the softmax."
        )
    return scores
