"""Synthetic problems with known truth, in the manner of :mod:`sklearn.datasets`.

Every generator returns labels and probabilities, or outcomes and forecasts, in the order in which
the metrics take them. Some return a sample; those of the hard instances return a whole
distribution, with weights.
"""

from ._covariate_shift import make_covariate_shift
from ._dirichlet import make_dirichlet_family
from ._discrete_forecasts import (
    make_count_forecasts,
    make_ensemble_forecasts,
    make_zero_inflated_forecasts,
)
from ._forecasts import make_forecaster_family, make_gaussian_forecasts, make_spatial_forecasts
from ._hard_instances import (
    make_gaussian_kernel_blind_spot,
    make_indistinguishable_models,
    make_interval_error_gap,
    make_interval_error_jump,
)
from ._temperature import make_temperature_family

__all__ = [
    "make_count_forecasts",
    "make_covariate_shift",
    "make_dirichlet_family",
    "make_ensemble_forecasts",
    "make_forecaster_family",
    "make_gaussian_forecasts",
    "make_gaussian_kernel_blind_spot",
    "make_indistinguishable_models",
    "make_interval_error_gap",
    "make_interval_error_jump",
    "make_spatial_forecasts",
    "make_temperature_family",
    "make_zero_inflated_forecasts",
]
