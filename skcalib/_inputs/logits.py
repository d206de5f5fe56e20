"""Logits: the scores of a classifier whose softmax are its probabilities."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from .._numerics.array_api import Array
from .._numerics.softmax import row_blocks
from .arrays import as_array, look_like_probabilities, numbers_of_objects
from .device import numbers_in_place
from .probabilities import SUM_TOLERANCE, as_doubles, as_predicted, check_finite, is_single

# Next to larger numbers, differences between the other classes would be lost to rounding.
_LARGEST = 1e6


def check_logits(logits: Any, *, name: str, in_place: bool = False) -> Array:
    """Logits as float64: `(n,)` log-odds of the last of two classes, or `(n, K)` with K ≥ 2.

    Those of more than two classes in single precision stay what they are. With `in_place`, arrays
    of other packages stay where they are, if they may (see `device`).
    """
    kept = _logits_in_place(logits) if in_place else None
    if kept is not None:
        return kept
    scores = as_array(logits, name)
    if scores.dtype.kind == "O":
        scores = numbers_of_objects(scores)
    if scores.dtype.kind not in "iuf" and scores.size > 0:
        raise ValueError(
            f"{name} must hold logits as numbers; found type {scores.dtype}. Pass the scores of "
            "the classifier before its softmax."
        )
    scores = as_predicted(scores, name)
    if not is_single(scores):
        scores = as_doubles(scores)
    check_finite(scores, name)
    if max(-scores.min(), scores.max()) > _LARGEST:
        row = np.unravel_index(np.argmax(np.abs(scores)), scores.shape)
        raise ValueError(
            f"{name} must hold logits between {-_LARGEST:g} and {_LARGEST:g}; found "
            f"{float(scores[row])!r} in row {row[0]}. Replace a number that excludes a class by "
            "-1e4, as with np.clip(..., -1e4, 1e4)."
        )
    # rows of logits sum to 1 by chance, but hardly two of them
    are_sums = scores.ndim == 2 and all(
        np.allclose(as_doubles(scores[rows]).sum(axis=1), 1, rtol=0, atol=SUM_TOLERANCE)
        for rows in row_blocks(*scores.shape)
    )
    if are_sums and len(scores) > 1 and look_like_probabilities(scores):
        raise ValueError(
            f"{name} must hold logits, as declared; found rows between 0 and 1 that sum to 1. "
            "Declare them as probabilities, or pass the scores before the softmax."
        )
    return scores


def _logits_in_place(values: Any) -> Array | None:
    """Logits that stay where they are; None for others, and for those that may be refused."""
    logits = numbers_in_place(values)
    if logits is None:
        return None
    xp = array_namespace(logits)
    is_in_range = xp.all(xp.abs(logits) <= _LARGEST)
    may_be_shares = logits.ndim == 2 and xp.all((logits >= 0) & (logits <= 1))
    return logits if is_in_range and not may_be_shares else None
