"""Warnings that point at the caller's own line."""

import sys
import warnings

# The packages whose frames lie between a warning and the code of the person who is warned.
_BETWEEN = {"skcalib", "sklearn", "joblib", "functools"}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first frame outside skcalib and the packages that call it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _package(frame) in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _package(frame) -> str:
    return frame.f_globals.get("__name__", "").partition(".")[0]
