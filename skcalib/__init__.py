"""Calibration for scikit-learn: measures, hypothesis tests and recalibrators.

Is my model calibrated, how far from it is it, which of these models is better calibrated, and how
do I fix it? Submodules, and the names used daily, are loaded when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ._guesses import MODULES, raise_no_attribute
from ._versions import __version__ as __version__, show_versions as show_versions

if TYPE_CHECKING:
    from . import (
        datasets as datasets,
        decisions as decisions,
        display as display,
        forecasts as forecasts,
        function_classes as function_classes,
        hypothesis_tests as hypothesis_tests,
        lenses as lenses,
        losses as losses,
        metrics as metrics,
        recalibration as recalibration,
        report as report,
        streaming as streaming,
        torch as torch,
        uncertainty as uncertainty,
    )
    from .display import ReliabilityDisplay as ReliabilityDisplay
    from .hypothesis_tests import CalibrationTest as CalibrationTest
    from .metrics import (
        calibration_distance_bounds as calibration_distance_bounds,
        expected_calibration_error as expected_calibration_error,
        score_decomposition as score_decomposition,
        smooth_calibration_error as smooth_calibration_error,
    )
    from .recalibration import (
        AutoRecalibrator as AutoRecalibrator,
        RecalibratedClassifier as RecalibratedClassifier,
        RecalibratedRegressor as RecalibratedRegressor,
    )
    from .report import calibration_report as calibration_report
    from .uncertainty import (
        compare_models as compare_models,
        confidence_interval as confidence_interval,
    )

_USED_DAILY = {
    "AutoRecalibrator": "recalibration",
    "CalibrationTest": "hypothesis_tests",
    "RecalibratedClassifier": "recalibration",
    "RecalibratedRegressor": "recalibration",
    "ReliabilityDisplay": "display",
    "calibration_distance_bounds": "metrics",
    "calibration_report": "report",
    "compare_models": "uncertainty",
    "confidence_interval": "uncertainty",
    "expected_calibration_error": "metrics",
    "score_decomposition": "metrics",
    "smooth_calibration_error": "metrics",
}

__all__ = sorted([*_USED_DAILY, "show_versions"])

_SUBMODULES = [*MODULES, "torch"]


if not TYPE_CHECKING:  # type checkers know all names

    def __getattr__(name: str) -> Any:
        if name in _SUBMODULES:
            return importlib.import_module(f"skcalib.{name}")
        if name in _USED_DAILY:
            return getattr(importlib.import_module(f"skcalib.{_USED_DAILY[name]}"), name)
        raise_no_attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES, "__version__"])
