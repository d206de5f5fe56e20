"""Logarithms of probabilities, the only place where these are kept away from 0 and 1."""

import numpy as np
from scipy.special import logit

# The machine epsilon of double precision, as in scikit-learn's log loss.
_CLIP = np.finfo(np.float64).eps


def clipped(proba: np.ndarray) -> np.ndarray:
    """Probabilities, at least ε and at most 1 − ε."""
    return np.clip(proba, _CLIP, 1 - _CLIP)


def log_probabilities(proba: np.ndarray) -> np.ndarray:
    """log p of clipped probabilities."""
    log_proba = clipped(proba)
    return np.log(log_proba, out=log_proba)


def log_odds(proba: np.ndarray) -> np.ndarray:
    """log p − log(1 − p) of clipped probabilities."""
    return logit(clipped(proba))
