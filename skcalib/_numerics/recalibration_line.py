"""The intercept and the slope that calibrate log-odds best: where predictions are too high, or too
extreme.

Infinite values are limits of likelihoods without a maximum.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from .logistic import logistic_fit

# Of the intercept, in log-odds.
_TOLERANCE = 1e-14


def calibrating_intercept(log_odds: np.ndarray, label: np.ndarray, weight: np.ndarray) -> float:
    """The likeliest a in P(y = 1) = expit(a + x); infinite if only one outcome occurs.

    There the mean probability is the frequency of the outcomes.
    """
    if label.min() == label.max():
        return np.inf if label[0] == 1 else -np.inf
    level = float(np.log(weight @ label) - np.log(weight @ (1 - label)))
    lowest, highest = level - float(log_odds.max()), level - float(log_odds.min())

    def excess(intercept: float) -> float:
        return float(weight @ (expit(intercept + log_odds) - label))

    # beyond these ends rounding cannot change the sign
    return float(brentq(excess, lowest - 1, highest + 1, xtol=_TOLERANCE))


def calibrating_slope(
    log_odds: np.ndarray, label: np.ndarray, weight: np.ndarray
) -> tuple[float, bool]:
    """The likeliest b in P(y = 1) = expit(a + bx) for the best a, and whether it was reached.

    It is infinite if a threshold separates the outcomes, but for ties at the threshold, and NaN if
    all log-odds are equal or only one outcome occurs.
    """
    if log_odds.min() == log_odds.max() or label.min() == label.max():
        return np.nan, True
    negative, positive = log_odds[label == 0], log_odds[label == 1]
    if negative.max() <= positive.min():
        return np.inf, True
    if positive.max() <= negative.min():
        return -np.inf, True
    centred = log_odds - weight @ log_odds  # keeps every digit if all are nearly equal
    design = np.column_stack([np.ones(len(label)), centred])
    fit = logistic_fit(design, weight * np.stack([1 - label, label]), np.zeros(2))
    return float(fit.coefficients[1]), fit.converged
