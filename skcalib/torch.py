"""Losses that train PyTorch networks towards calibration: modules around :mod:`skcalib.losses`.

A penalty is added to a proper loss by :class:`CalibrationRegularizedLoss`.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        'skcalib.torch needs PyTorch; it is not installed. Run pip install "skcalib[torch]".'
    ) from error

from .losses._modules import (
    CalibrationPenalty,
    CalibrationRegularizedLoss,
    NegativeLogLikelihoodLoss,
)
from .losses._tensors import set_value_checks
from .losses._torch_matching import DistributionMatchingLoss

__all__ = [
    "CalibrationPenalty",
    "CalibrationRegularizedLoss",
    "DistributionMatchingLoss",
    "NegativeLogLikelihoodLoss",
    "set_value_checks",
]
