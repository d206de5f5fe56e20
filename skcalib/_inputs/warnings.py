"""Warnings that point at the user's own line."""

import os
import sys
import warnings
from pathlib import Path

import joblib
import sklearn

_OWN_CODE = tuple(
    f"{folder}{os.sep}"
    for folder in (
        Path(__file__).parent.parent,
        Path(sklearn.__file__).parent,
        Path(joblib.__file__).parent,
    )
)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first caller outside of skcalib, scikit-learn and joblib."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN_CODE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
