"""A report on calibration, in the manner of scikit-learn's `classification_report`."""

from .._guesses import guess_other_names
from ._report import (
    CalibrationReport as CalibrationReport,
    ComparisonReport as ComparisonReport,
    calibration_report,
)

__all__ = ["calibration_report"]

guess_other_names(__name__)
