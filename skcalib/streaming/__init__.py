"""Calibration of more predictions than fit into memory: states that take chunks and are merged."""

from .._guesses import guess_other_names
from ._evaluate import BoundedValue as BoundedValue
from ._state import CalibrationState

__all__ = ["CalibrationState"]

guess_other_names(__name__)
