"""Tests of states, which keep how many samples there are of each prediction and label."""

from typing import Any

from .._inputs.predictions import Predictions
from ..metrics._statistic import MetricStatistic
from ..streaming._checks import check_can_be_tested
from ..streaming._evaluate import KNOWN, check_params
from ..streaming._state import CalibrationState
from ._base import forget


def counted(test: Any, state: CalibrationState, **others: Any) -> Predictions:
    """The counts of a state, from which numbers of events are drawn."""
    for name, value in others.items():
        if value is not None:
            raise ValueError(
                f"{name} must be None for a CalibrationState, which holds all that is known of the "
                f"samples; found {type(value).__name__}. Leave it out."
            )
    if test.method != "conditional":
        raise ValueError(
            f"method={test.method!r} needs the samples themselves; found a CalibrationState. Use "
            "method='conditional', which is exact."
        )
    check_can_be_tested(state)
    test.classes_, test.n_features_in_ = state.classes, 1
    forget(test, "feature_names_in_")
    return state._counted()


def check_takes_counts(test: Any, statistic: Any) -> None:
    """The statistic must be a function of the number of events at each prediction."""
    if isinstance(statistic, MetricStatistic):
        check_params(getattr(statistic.options["metric"], "keywords", {}))
    if not statistic.takes_counts:
        raise ValueError(
            "The statistic of a test of a CalibrationState must be 'omnibus', 'skce' (of all pairs "
            "of samples, with a kernel that is not Gaussian), 'log_loss', 'brier_score_loss' or "
            f"one of {KNOWN}; found {test.statistic!r} with kernel={test.kernel!r} and "
            f"estimator={test.estimator!r}. Choose one of these, or test a part of the rows."
        )
