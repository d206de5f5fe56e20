"""Losses of decisions, and the actions that forecasts call for."""

from numbers import Real

import numpy as np

from ..forecasts import Forecast, QuantileForecast


def actions(loss, forecast: Forecast) -> np.ndarray:
    """The Bayes action for each loss, (n, L)."""
    losses = loss if isinstance(loss, list | tuple) else [loss]
    return np.column_stack([_action(one, forecast) for one in losses])


def _action(loss, forecast):
    """A number c is a threshold, with the loss 1[a ≠ 1[y > c]] of two actions.

    The better action is 1 if P(Y > c) > ½, that is, if the median exceeds c.
    """
    if isinstance(loss, Real):
        return (forecast.ppf(0.5) > loss).astype(np.intp)
    if isinstance(forecast, QuantileForecast):
        raise ValueError(
            "loss must be a number (a threshold), or a list of them, for a QuantileForecast, which "
            "knows no expected losses; found a callable. Pass thresholds, or an EnsembleForecast."
        )
    parts = forecast.components()
    if parts.variance.any():
        parts = Forecast.components(forecast)  # by nodes
    location, weight = parts.location, parts.weight
    values = np.asarray(loss(location.ravel()), dtype=np.float64)
    if values.ndim != 2 or len(values) != location.size or not np.isfinite(values).all():
        raise ValueError(
            "loss must return the finite losses of all actions, of shape (m, n_actions) for "
            f"outcomes of shape (m,); found shape {values.shape} for m = {location.size}, or NaN. "
            "Use np.column_stack([loss_of_action_0(y), loss_of_action_1(y)])."
        )
    expected = np.einsum("nca,nc->na", values.reshape(*location.shape, -1), weight)
    return expected.argmin(axis=1)


def class_actions(loss, matrix: np.ndarray) -> np.ndarray:
    """The Bayes action for each loss matrix (n_actions, K) and probabilities (n, K), (n, L)."""
    losses = loss if isinstance(loss, list | tuple) else [loss]
    return np.column_stack(
        [(matrix @ np.asarray(one, dtype=np.float64).T).argmin(axis=1) for one in losses]
    )
