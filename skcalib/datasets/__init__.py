"""Synthetic problems with known truth, in the manner of :mod:`sklearn.datasets`.

Every generator returns labels and probabilities, or outcomes and forecasts, in the order in which
the metrics take them. Most return a sample; :func:`make_hard_instance` returns a whole
distribution, with weights.
"""

from .._guesses import guess_other_names
from ._families import make_covariate_shift, make_dirichlet_family, make_temperature_family
from ._forecasts import make_forecasts
from ._hard_instances import make_hard_instance

__all__ = [
    "make_covariate_shift",
    "make_dirichlet_family",
    "make_forecasts",
    "make_hard_instance",
    "make_temperature_family",
]

guess_other_names(__name__)
