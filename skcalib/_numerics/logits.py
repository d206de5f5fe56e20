"""Logarithms of probabilities, the only place where these are kept away from 0 and 1."""

import numpy as np
from scipy.special import log_expit, logit

# The machine epsilon of double precision, as in scikit-learn's log loss.
_CLIP = float(np.finfo(np.float64).eps)


def smallest_probability(proba: np.ndarray) -> float:
    """The number that replaces probabilities of 0, among others: (n,) of two classes, or (n, K).

    A model with few levels, such as the votes of a forest, says 0 where it means less than its
    lowest level. So this is half the smallest positive probability of any class, but at least ε,
    and at most half of 1/K. It is ε if no probability is 0, or all are 0 and 1.
    """
    # 1 − (1 − p) is 0 for p so small that 1 − p is 1: so both classes are treated alike
    parts = (1 - (1 - proba), 1 - proba) if proba.ndim == 1 else (proba,)
    if not any((part == 0).any() for part in parts):
        return _CLIP
    least = min(part.min(where=part > 0, initial=1.0) for part in parts)
    if least == 1:
        return _CLIP
    n_classes = 2 if proba.ndim == 1 else proba.shape[1]
    return max(min(float(least), 1 / n_classes) / 2, _CLIP)


def clipped(
    proba: np.ndarray, smallest: float = _CLIP, out: np.ndarray | None = None
) -> np.ndarray:
    """Probabilities moved away from 0 and 1, by at least `smallest`."""
    return np.clip(proba, smallest, 1 - smallest, out=out)


def log_probabilities(proba: np.ndarray, smallest: float = _CLIP) -> np.ndarray:
    """log p of clipped probabilities."""
    log_proba = clipped(proba, smallest)
    return np.log(log_proba, out=log_proba)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """log p of all classes (n, K), from the log-odds (n,) of the last of two, or scores (n, K)."""
    if logits.ndim == 2 and logits.shape[1] == 2:
        logits = logits[:, 1] - logits[:, 0]
    if logits.ndim == 1:
        return log_expit(np.column_stack([-logits, logits]))
    log_proba = np.ascontiguousarray(logits)
    log_proba = log_proba - log_proba.max(axis=1, keepdims=True)
    log_proba -= np.log(np.exp(log_proba).sum(axis=1, keepdims=True))
    return log_proba


def log_odds(proba: np.ndarray, smallest: float = _CLIP) -> np.ndarray:
    """log p − log(1 − p) of clipped probabilities."""
    return logit(clipped(proba, smallest))
