"""Hypothesis tests of calibration, as estimators: ``CalibrationTest().fit(proba, y).p_value_``."""

from .._guesses import guess_other_names
from ._calibration import CalibrationTest
from ._classical import (
    CalibrationInTheLargeTest,
    CalibrationSlopeTest,
    CoxTest,
    HosmerLemeshowTest,
    SpiegelhalterTest,
)
from ._equivalence import EquivalenceTest
from ._grades import RatingGradeTest
from ._power import RequiredSampleSize as RequiredSampleSize, power_of_test, required_sample_size
from ._precision import PrecisionSampleSize as PrecisionSampleSize, sample_size_for_precision
from ._search import SubgroupSearch as SubgroupSearch, find_miscalibrated_subgroups
from ._sequential import SequentialCalibrationTest
from ._subgroups import SubgroupCalibrationTest
from ._ucme import UCMETest

__all__ = [
    "CalibrationInTheLargeTest",
    "CalibrationSlopeTest",
    "CalibrationTest",
    "CoxTest",
    "EquivalenceTest",
    "HosmerLemeshowTest",
    "RatingGradeTest",
    "SequentialCalibrationTest",
    "SpiegelhalterTest",
    "SubgroupCalibrationTest",
    "UCMETest",
    "find_miscalibrated_subgroups",
    "power_of_test",
    "required_sample_size",
    "sample_size_for_precision",
]


guess_other_names(__name__)
