"""Losses that train PyTorch networks towards calibration: modules around :mod:`skcalib.losses`.

A penalty is added to a proper loss by :class:`CalibrationRegularizedLoss`.
"""

from .losses.torch import (
    CalibrationPenalty,
    CalibrationRegularizedLoss,
    DistributionMatchingLoss,
    NegativeLogLikelihoodLoss,
)

__all__ = [
    "CalibrationPenalty",
    "CalibrationRegularizedLoss",
    "DistributionMatchingLoss",
    "NegativeLogLikelihoodLoss",
]
