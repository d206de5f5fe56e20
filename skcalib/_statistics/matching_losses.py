"""The actions that predictions call for, for one loss or several."""

from typing import Any

import numpy as np

from ..forecasts import Forecast
from ..forecasts._decisions import DecisionLoss, as_loss, expected_of_classes, least


def as_losses(loss: Any) -> list[DecisionLoss]:
    """One loss, or a list of them; the rows of a matrix are no list of losses."""
    is_list = isinstance(loss, list | tuple) and not (len(loss) and np.ndim(loss[0]) == 1)
    return [as_loss(one) for one in (loss if is_list else [loss])]


def actions(losses: list[DecisionLoss], forecast: Forecast) -> np.ndarray:
    """The best action for each loss, (n, L)."""
    return np.column_stack([one.best_for(forecast) for one in losses])


def class_actions(
    losses: list[DecisionLoss], classes: np.ndarray, matrix: np.ndarray
) -> np.ndarray:
    """The best action for each loss and probabilities (n, K), (n, L)."""
    tables = [one.of_classes(classes, len(classes)) for one in losses]
    return np.column_stack([least(expected_of_classes(matrix, table)) for table in tables])
