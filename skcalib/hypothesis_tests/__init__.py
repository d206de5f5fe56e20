"""Hypothesis tests of calibration, as estimators: ``CalibrationTest().fit(proba, y).p_value_``."""

from ._resampling import CalibrationTest

__all__ = ["CalibrationTest"]
