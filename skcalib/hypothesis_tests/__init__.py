"""Hypothesis tests of calibration, as estimators: ``CalibrationTest().fit(proba, y).p_value_``."""

from ._classical import CoxTest, HosmerLemeshowTest, SpiegelhalterTest
from ._kernel import UCMETest
from ._resampling import CalibrationTest

__all__ = ["CalibrationTest", "CoxTest", "HosmerLemeshowTest", "SpiegelhalterTest", "UCMETest"]
