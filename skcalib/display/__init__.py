"""Figures, as scikit-learn displays: ``from_estimator``, ``from_predictions`` and ``plot``."""

from ._local_calibration import LocalCalibrationDisplay
from ._pit_histogram import PITHistogramDisplay
from ._quantile_reliability import QuantileReliabilityDisplay
from ._reliability import ReliabilityDisplay

__all__ = [
    "LocalCalibrationDisplay",
    "PITHistogramDisplay",
    "QuantileReliabilityDisplay",
    "ReliabilityDisplay",
]
