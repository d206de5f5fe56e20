"""Intervals around calibration errors, and the comparison of two models."""

from ._blocks import consecutive_blocks
from ._clinical import ClinicalCalibration, clinical_calibration
from ._compare import Comparison, compare
from ._confidence_interval import ConfidenceInterval, confidence_interval
from ._finite_sample import FiniteSampleRadius, finite_sample_radius
from ._subgroups import SubgroupIntervals, confidence_intervals_by

__all__ = [
    "ClinicalCalibration",
    "Comparison",
    "ConfidenceInterval",
    "FiniteSampleRadius",
    "SubgroupIntervals",
    "clinical_calibration",
    "compare",
    "confidence_interval",
    "confidence_intervals_by",
    "consecutive_blocks",
    "finite_sample_radius",
]
