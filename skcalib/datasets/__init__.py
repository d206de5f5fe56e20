"""Synthetic problems with known truth, in the manner of :mod:`sklearn.datasets`.

Every generator returns labels and probabilities in the order in which the metrics take them.
"""

from ._covariate_shift import make_covariate_shift
from ._dirichlet import make_dirichlet_family
from ._temperature import make_temperature_family

__all__ = ["make_covariate_shift", "make_dirichlet_family", "make_temperature_family"]
