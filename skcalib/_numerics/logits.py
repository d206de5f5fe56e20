"""The softmax of scores, and logarithms of probabilities, which are kept away from 0 and 1 here."""

from collections.abc import Iterator

import numpy as np
from scipy.special import logit

from .array_api import Array, apply_out, array_namespace, contiguous, doubles

# The machine epsilon of double precision, as in scikit-learn's log loss.
EPSILON = float(np.finfo(np.float64).eps)

# The smallest normal number of single precision: smaller probabilities have the same logarithm.
MIN_POSITIVE_PROBA = float(np.finfo(np.float32).tiny)

# Numbers in a block of rows: a few such blocks fit into the cache; a GPU needs larger ones.
_CACHE_BLOCK_ENTRIES, _DEVICE_BLOCK_ENTRIES = 2**15, 2**24

# Rows in the subsample that gives a first guess, or approximate second derivatives.
SAMPLE_SIZE = 4096


def iter_row_blocks(
    n: int, n_classes: int, every: int = 1, min_rows: int = 1, like: Array = None
) -> Iterator[slice]:
    """Yield slices that cover n rows of probabilities in blocks, one row in `every`.

    Products with matrices are slow if a block has fewer rows than they have columns. `on` is an
    array of the package that computes, None for NumPy.
    """
    is_numpy = like is None or isinstance(like, np.ndarray)
    block = _CACHE_BLOCK_ENTRIES if is_numpy else _DEVICE_BLOCK_ENTRIES
    step = max(block // n_classes, min_rows) * every
    for rows in iter_slices(n, step):
        yield slice(rows.start, rows.stop, every)


def iter_slices(n: int, size: int) -> Iterator[slice]:
    """Yield slices that cut n rows into blocks of this size; the last may be shorter."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def softmax_in_place(scores: Array) -> Array:
    """Overwrite each row of scores (n, K) by exp s_k / Σ_l exp s_l, and return them."""
    xp = array_namespace(scores)
    scores -= xp.max(scores, axis=1, keepdims=True)
    apply_out("exp", scores, out=scores)
    scores /= xp.sum(scores, axis=1, keepdims=True)
    return scores


def smallest_probability(proba: Array, least: float = EPSILON) -> float:
    """The lower bound to which probabilities, (n,) of two classes or (n, K), are clipped.

    A model with few levels, such as the votes of a forest, says 0 where it means less than its
    lowest level. So if there are zeros this is half the smallest positive probability of any class,
    and at most half of 1/K; else ε, or the smallest probability if that is less. It is ε if all are
    0 and 1. It is never below `least`, and for one column of two classes not below ε: next to 1,
    the probability of the other class is not known that well. Nor is it below ε for two columns of
    which one has no positive number below it but zeros, as 1 − p has.
    """
    xp, n_classes = array_namespace(proba), 2 if proba.ndim == 1 else proba.shape[1]
    columns = [proba]
    if proba.ndim == 1:
        # 1 − (1 − p) is 0 for p so small that 1 − p is 1: so both classes are treated alike
        complement = 1 - (proba if isinstance(proba, np.ndarray) else doubles(proba))
        columns, least = [1 - complement, complement], EPSILON
    elif n_classes == 2 and _is_complement(proba):
        least = EPSILON
    smallest = min(float(xp.min(xp.where(column > 0, column, 1.0))) for column in columns)
    if smallest == 1:
        return EPSILON
    if not (xp.any(columns[0] == 0) or xp.any(columns[-1] == 0)):
        return min(max(smallest, least), EPSILON)
    return max(min(smallest, 1 / n_classes) / 2, least)


def smallest_known_probability(columns: Array, smallest: float) -> float:
    """The lower bound, but of one column (n,) at least ε: the other class is not known better."""
    return max(smallest, EPSILON) if columns.ndim == 1 and smallest > 0 else smallest


def _is_complement(proba: Array) -> bool:
    """True if a column (n, 2) has zeros, and else no number that is as small as that of 1 − p."""
    xp = array_namespace(proba)
    least = xp.min(xp.where(proba > 0, proba, 1.0), axis=0)
    return bool(xp.any(xp.any(proba == 0, axis=0) & (least >= EPSILON / 4)))


def clip_proba(proba: Array, smallest: float = EPSILON, out: np.ndarray | None = None) -> Array:
    """Return the probabilities clipped to between `smallest` and 1 − `smallest`."""
    if isinstance(proba, np.ndarray):
        return np.clip(proba, smallest, 1 - smallest, out=out)
    return array_namespace(proba).clip(proba, smallest, 1 - smallest)


def log_probabilities(proba: Array, smallest: float = EPSILON) -> Array:
    """log p of clipped probabilities."""
    log_proba = clip_proba(proba, smallest)
    return apply_out("log", log_proba, out=log_proba)


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
    for rows in iter_row_blocks(*logits.shape):
        log_proba[rows] = _log_softmax(doubles(logits[rows]))
    return log_proba


def _log_softmax(logits: Array) -> Array:
    xp = array_namespace(logits)
    logits = contiguous(logits)
    log_proba = logits - xp.max(logits, axis=1, keepdims=True)
    log_proba -= xp.log(xp.sum(xp.exp(log_proba), axis=1, keepdims=True))
    return log_proba


def log_odds(proba: np.ndarray, smallest: float = EPSILON) -> np.ndarray:
    """log p − log(1 − p) of clipped probabilities."""
    return logit(clip_proba(proba, smallest))


def column_log_odds(columns: np.ndarray, smallest: float = 0.0) -> np.ndarray:
    """log p₁ − log p₀ of two columns (n, 2), or of one (n,), of clipped probabilities."""
    if columns.ndim == 1:
        return log_odds(columns, smallest_known_probability(columns, smallest))
    with np.errstate(divide="ignore"):
        logs = log_probabilities(columns, smallest)
    return logs[:, 1] - logs[:, 0]


def _brier_losses(proba: np.ndarray, label: np.ndarray) -> np.ndarray:
    """(y − p)² for proba (n,) of two classes, Σ_k (1[y = k] − p_k)² for (n, K). Returns (n,)."""
    if proba.ndim == 1:
        return (label - proba) ** 2
    square = np.empty(len(proba))
    for rows in iter_row_blocks(*proba.shape):
        block = proba[rows].astype(np.float64, copy=False)
        square[rows] = np.einsum("nk,nk->n", block, block)
    return square + 1 - 2 * _take_labels(proba, label)


def _log_losses(proba: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Minus the logarithm of the label's probability; shapes as in `_brier_losses`."""
    return -log_probabilities(_take_labels(proba, label))


def _take_labels(proba: np.ndarray, label: np.ndarray) -> np.ndarray:
    """The probability of the label of each row, (n,)."""
    if proba.ndim == 1:
        return np.where(label == 1, proba, 1 - proba)
    return proba[np.arange(len(label)), label].astype(np.float64, copy=False)


# From probabilities and labels to the loss of each sample.
PROPER_LOSSES = {"brier": _brier_losses, "log_loss": _log_losses}
