"""Intervals around calibration errors, and the comparison of two models."""

from ._blocks import consecutive_blocks
from ._clinical import ClinicalCalibration, clinical_calibration
from ._compare import Comparison, compare
from ._confidence_interval import ConfidenceInterval, confidence_interval
from ._finite_sample import FiniteSampleRadius, finite_sample_radius

__all__ = [
    "ClinicalCalibration",
    "Comparison",
    "ConfidenceInterval",
    "FiniteSampleRadius",
    "clinical_calibration",
    "compare",
    "confidence_interval",
    "consecutive_blocks",
    "finite_sample_radius",
]
