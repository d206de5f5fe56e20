"""Calibration measures in the manner of :mod:`sklearn.metrics`; 0 is calibrated."""

from ._binned import expected_calibration_error
from ._distance import smooth_calibration_error
from ._kernel import squared_kernel_calibration_error
from ._scorers import get_scorer, get_scorer_names, make_scorer

__all__ = [
    "expected_calibration_error",
    "get_scorer",
    "get_scorer_names",
    "make_scorer",
    "smooth_calibration_error",
    "squared_kernel_calibration_error",
]
