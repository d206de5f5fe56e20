"""Calibration of more predictions than fit into memory: states that take chunks and are merged."""

from ._evaluate import BoundedValue as BoundedValue
from ._state import CalibrationState

__all__ = ["CalibrationState"]
