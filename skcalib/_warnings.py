"""Warnings that point at the user's own line."""

import os
import sys
import warnings
from pathlib import Path

import joblib
import sklearn

_OWN_CODE = tuple(
    f"{Path(package).parent}{os.sep}" for package in (__file__, sklearn.__file__, joblib.__file__)
)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first caller outside of skcalib, scikit-learn and joblib."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN_CODE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
