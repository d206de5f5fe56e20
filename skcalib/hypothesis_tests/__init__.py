"""Hypothesis tests of calibration, as estimators: ``CalibrationTest().fit(proba, y).p_value_``."""

from ._calibration import CalibrationTest
from ._classical import CoxTest, HosmerLemeshowTest, SpiegelhalterTest
from ._ucme import UCMETest

__all__ = ["CalibrationTest", "CoxTest", "HosmerLemeshowTest", "SpiegelhalterTest", "UCMETest"]
