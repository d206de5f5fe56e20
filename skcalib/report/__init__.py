"""A report on calibration, in the manner of scikit-learn's `classification_report`."""

from ._calibration_report import CalibrationReport
from ._report import calibration_report

__all__ = ["CalibrationReport", "calibration_report"]
