"""Intervals around calibration errors, and the comparison of two models."""

from .._guesses import guess_other_names
from ._clinical import (
    ClinicalCalibration as ClinicalCalibration,
    RandomEffects as RandomEffects,
    SubgroupClinicalCalibration as SubgroupClinicalCalibration,
    clinical_calibration,
    pool_imputations,
)
from ._default_rates import most_prudent_default_rates
from ._finite_sample import FiniteSampleRadius as FiniteSampleRadius, finite_sample_radius
from ._intervals import (
    Comparison as Comparison,
    ConfidenceInterval as ConfidenceInterval,
    SubgroupIntervals as SubgroupIntervals,
    compare_models,
    confidence_interval,
)

__all__ = [
    "clinical_calibration",
    "compare_models",
    "confidence_interval",
    "finite_sample_radius",
    "most_prudent_default_rates",
    "pool_imputations",
]

guess_other_names(__name__)
