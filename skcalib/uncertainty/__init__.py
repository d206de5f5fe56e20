"""Intervals around calibration errors, and the comparison of two models."""

from ._compare import Comparison, compare
from ._confidence_interval import ConfidenceInterval, confidence_interval

__all__ = ["Comparison", "ConfidenceInterval", "compare", "confidence_interval"]
