"""Calibration for scikit-learn: measures, hypothesis tests and recalibrators.

Is my model calibrated, how far from it is it, which of these models is better calibrated, and how
do I fix it? Submodules, and the names used daily, are loaded when they are first used.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_SUBMODULES = [
    "datasets",
    "decisions",
    "display",
    "forecasts",
    "function_classes",
    "hypothesis_tests",
    "lenses",
    "losses",
    "metrics",
    "recalibration",
    "report",
    "streaming",
    "torch",
    "uncertainty",
]

_USED_DAILY = {
    "CalibrationTest": "hypothesis_tests",
    "RecalibratedClassifier": "recalibration",
    "calibration_report": "report",
    "smooth_calibration_error": "metrics",
}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"skcalib.{name}")
    if name in _USED_DAILY:
        return getattr(importlib.import_module(f"skcalib.{_USED_DAILY[name]}"), name)
    raise AttributeError(f"module 'skcalib' has no attribute {name!r}")


def __dir__() -> Any:
    return sorted([*globals(), *_SUBMODULES, *_USED_DAILY])
