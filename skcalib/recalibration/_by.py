"""Subgroups that a meta-estimator hands on to its recalibrator."""

from inspect import signature
from typing import Any

import numpy as np

from .._inputs.by import columns_of
from .._inputs.scikit_learn import check_method_params


def check_takes_by(recalibrator: Any, by: Any, method: str) -> None:
    """Subgroups are for a recalibrator that takes them, and some cannot do without."""
    parameter = signature(recalibrator.fit).parameters.get("by")
    name = type(recalibrator).__name__
    if by is not None and parameter is None:
        raise ValueError(
            f"by must be None for a recalibrator whose fit takes no by; found subgroups for "
            f"{name}. Choose a SubgroupRecalibrator, or a SubgroupForecastRecalibrator for "
            "forecasts."
        )
    if by is None and parameter is not None and parameter.default is parameter.empty:
        raise ValueError(
            f"by must hold the subgroup of each sample for {name}; found None. Pass them to the "
            f"method: {method}."
        )


def of_rows(by: Any, n: int, rows: np.ndarray) -> dict[str, Any]:
    """The argument `by` of a recalibrator for these of n samples; none if there are no subgroups.

    Columns keep their names and types.
    """
    if by is None:
        return {}
    return {"by": check_method_params(range(n), columns_of(by, n), indices=rows)}
