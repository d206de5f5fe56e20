"""Synthetic problems with known truth, in the manner of :mod:`sklearn.datasets`.

Every generator returns labels and probabilities in the order in which the metrics take them. Some
return a sample; those of the hard instances return a whole distribution, with weights.
"""

from ._covariate_shift import make_covariate_shift
from ._dirichlet import make_dirichlet_family
from ._hard_instances import (
    make_gaussian_kernel_blind_spot,
    make_indistinguishable_models,
    make_interval_error_gap,
    make_interval_error_jump,
)
from ._temperature import make_temperature_family

__all__ = [
    "make_covariate_shift",
    "make_dirichlet_family",
    "make_gaussian_kernel_blind_spot",
    "make_indistinguishable_models",
    "make_interval_error_gap",
    "make_interval_error_jump",
    "make_temperature_family",
]
