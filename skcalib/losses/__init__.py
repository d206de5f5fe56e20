"""Calibration errors of a batch as losses for training: one formula for NumPy, torch and JAX.

They take predictions first and targets second, as the losses of those packages do, and their
gradients come from the framework. :mod:`skcalib.torch` has them as modules.
"""

from .._guesses import guess_other_names
from ._baselines import kde_calibration_loss, soft_binned_calibration_loss
from ._errors import (
    conditional_kernel_calibration_loss,
    maximum_mean_calibration_loss,
    smooth_calibration_loss,
)
from ._matching import distribution_matching_loss
from ._predictions import SampledForecast

__all__ = [
    "SampledForecast",
    "conditional_kernel_calibration_loss",
    "distribution_matching_loss",
    "kde_calibration_loss",
    "maximum_mean_calibration_loss",
    "smooth_calibration_loss",
    "soft_binned_calibration_loss",
]

guess_other_names(__name__)
