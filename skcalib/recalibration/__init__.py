"""Recalibrators as scikit-learn transformers, and what joins them to a classifier."""

from ._isotonic import IsotonicRecalibrator
from ._pipeline import PredictProba, RecalibratedClassifier

__all__ = ["IsotonicRecalibrator", "PredictProba", "RecalibratedClassifier"]
