"""Metrics that are means over the samples, and the losses that they are means of."""

from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.metrics import brier_score_loss, log_loss

from .._inputs.predictions import Predictions
from ..forecasts._data import ForecastData
from ..metrics._registry import entry_of, with_known

# The mean of the losses may miss the metric by this share, for it is summed in another order.
_ROUNDING = 1e-9


def is_mean(function: partial) -> bool:
    """Whether this is known to be a mean: one of ours, or one of two functions of scikit-learn."""
    entry = entry_of(function)
    return entry.is_mean if entry else is_mean_loss(function)


def is_mean_loss(function: partial) -> bool:
    """Whether this is a loss of scikit-learn, which is never negative, and not a sum."""
    is_sum = not function.keywords.get("normalize", True)
    return _unwrapped(function) in (log_loss, brier_score_loss) and not is_sum


def losses_of(
    function: partial, data: Predictions | ForecastData, value: float
) -> np.ndarray | None:
    """The losses (n,) of which this `value` of the metric is the mean; None if they are not known.

    Arguments of scikit-learn's functions may change what they are means of: then the mean differs.
    """
    for losses in _candidates(function, data):
        if np.isclose(data.weight @ losses, value, rtol=_ROUNDING, atol=0):
            return losses
    return None


def _candidates(function, data):
    if isinstance(data, ForecastData):
        metric = with_known(partial(function, average=None), data.known)
        return [metric(*data.arguments(data.outcome))]
    proba = data.simplex
    of_label = np.take_along_axis(proba, data.label[:, None], axis=1)[:, 0]
    if _unwrapped(function) is log_loss:
        return [-np.log(np.maximum(of_label, np.finfo(np.float64).eps))]
    square = np.einsum("nk,nk->n", proba, proba) - 2 * of_label + 1
    return [square / 2, square]  # for two classes the half by default


def _unwrapped(function: Callable) -> Callable:
    while isinstance(function, partial):
        function = function.func
    return function
