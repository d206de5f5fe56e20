"""Intervals around calibration errors, and the comparison of two models."""

from functools import partial
from typing import TYPE_CHECKING

from .._guesses import raise_no_attribute
from ._clinical import ClinicalCalibration, clinical_calibration
from ._finite_sample import FiniteSampleRadius, finite_sample_radius
from ._intervals import (
    Comparison,
    ConfidenceInterval,
    SubgroupIntervals,
    compare_models,
    confidence_interval,
)

__all__ = [
    "ClinicalCalibration",
    "Comparison",
    "ConfidenceInterval",
    "FiniteSampleRadius",
    "SubgroupIntervals",
    "clinical_calibration",
    "compare_models",
    "confidence_interval",
    "finite_sample_radius",
]


if not TYPE_CHECKING:  # type checkers know all names
    __getattr__ = partial(raise_no_attribute, __name__)
