"""Logarithms of probabilities, the only place where these are kept away from 0 and 1."""

import numpy as np
from array_api_compat import array_namespace
from scipy.special import logit

from .array_api import Array, contiguous, doubles, written
from .softmax import row_blocks

# The machine epsilon of double precision, as in scikit-learn's log loss.
_CLIP = float(np.finfo(np.float64).eps)


def smallest_probability(proba: Array) -> float:
    """The number that replaces probabilities of 0, among others: (n,) of two classes, or (n, K).

    A model with few levels, such as the votes of a forest, says 0 where it means less than its
    lowest level. So this is half the smallest positive probability of any class, but at least ε,
    and at most half of 1/K. It is ε if no probability is 0, or all are 0 and 1.
    """
    xp, n_classes = array_namespace(proba), 2 if proba.ndim == 1 else proba.shape[1]
    parts = [proba]
    if proba.ndim == 1:
        # 1 − (1 − p) is 0 for p so small that 1 − p is 1: so both classes are treated alike
        rest = 1 - doubles(proba)
        parts = [1 - rest, rest]
    if not any(xp.any(part == 0) for part in parts):
        return _CLIP
    least = min(float(xp.min(xp.where(part > 0, part, 1.0))) for part in parts)
    if least == 1:
        return _CLIP
    return max(min(least, 1 / n_classes) / 2, _CLIP)


def clipped(proba: Array, smallest: float = _CLIP, out: np.ndarray | None = None) -> Array:
    """Probabilities moved away from 0 and 1, by at least `smallest`."""
    if isinstance(proba, np.ndarray):
        return np.clip(proba, smallest, 1 - smallest, out=out)
    return array_namespace(proba).clip(proba, smallest, 1 - smallest)


def log_probabilities(proba: Array, smallest: float = _CLIP) -> Array:
    """log p of clipped probabilities."""
    log_proba = clipped(proba, smallest)
    return written("log", log_proba, out=log_proba)


def log_softmax(logits: Array) -> Array:
    """log p of all classes (n, K), from the log-odds (n,) of the last of two, or scores (n, K)."""
    xp = array_namespace(logits)
    if logits.ndim == 2 and logits.shape[1] == 2:
        logits = logits[:, 1] - logits[:, 0]
    if logits.ndim == 1:
        both = xp.stack([-logits, logits], axis=1)
        return -xp.logaddexp(xp.zeros_like(both), -both)
    if not isinstance(logits, np.ndarray):
        return _log_softmax(logits)
    log_proba = np.empty(logits.shape)
    for rows in row_blocks(*logits.shape):
        log_proba[rows] = _log_softmax(doubles(logits[rows]))
    return log_proba


def _log_softmax(logits: Array) -> Array:
    xp = array_namespace(logits)
    logits = contiguous(logits)
    log_proba = logits - xp.max(logits, axis=1, keepdims=True)
    log_proba -= xp.log(xp.sum(xp.exp(log_proba), axis=1, keepdims=True))
    return log_proba


def log_odds(proba: np.ndarray, smallest: float = _CLIP) -> np.ndarray:
    """log p − log(1 − p) of clipped probabilities."""
    return logit(clipped(proba, smallest))
