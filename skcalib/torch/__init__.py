"""Losses that train PyTorch networks towards calibration: modules around :mod:`skcalib.losses`.

A penalty is added to a proper loss by :class:`CalibrationRegularizedLoss`.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        'skcalib.torch needs PyTorch; it is not installed. Run pip install "skcalib[torch]".'
    ) from error

from ._errors import (
    KDECalibrationLoss,
    MMCELoss,
    SmoothCalibrationLoss,
    SoftBinnedCalibrationLoss,
)
from ._matching import DistributionMatchingLoss
from ._regularized import CalibrationRegularizedLoss, NegativeLogLikelihoodLoss

__all__ = [
    "CalibrationRegularizedLoss",
    "DistributionMatchingLoss",
    "KDECalibrationLoss",
    "MMCELoss",
    "NegativeLogLikelihoodLoss",
    "SmoothCalibrationLoss",
    "SoftBinnedCalibrationLoss",
]
