"""Figures, as scikit-learn displays: ``from_estimator``, ``from_predictions`` and ``plot``."""

from ._reliability import ReliabilityDisplay

__all__ = ["ReliabilityDisplay"]
