"""Intervals around calibration errors, and the comparison of two models."""

from ._clinical import ClinicalCalibration, clinical_calibration
from ._compare import Comparison, compare
from ._confidence_interval import ConfidenceInterval, SubgroupIntervals, confidence_interval
from ._finite_sample import FiniteSampleRadius, finite_sample_radius

__all__ = [
    "ClinicalCalibration",
    "Comparison",
    "ConfidenceInterval",
    "FiniteSampleRadius",
    "SubgroupIntervals",
    "clinical_calibration",
    "compare",
    "confidence_interval",
    "finite_sample_radius",
]
