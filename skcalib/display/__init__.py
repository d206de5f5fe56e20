"""Figures, as scikit-learn displays: ``from_estimator``, ``from_predictions`` and ``plot``."""

from ._comparison import ComparisonDisplay
from ._decisions import DecisionDisplay
from ._local_calibration import LocalCalibrationDisplay
from ._pit import PITHistogramDisplay, QuantileReliabilityDisplay
from ._reliability import ReliabilityDisplay
from ._reliability_curve import ReliabilityCurve
from ._score_decomposition import ScoreDecompositionDisplay
from ._simplex import SimplexDisplay
from ._tests import NullDistributionDisplay, SequentialTestDisplay
from ._witness import WitnessCurve, WitnessDisplay

__all__ = [
    "ComparisonDisplay",
    "DecisionDisplay",
    "LocalCalibrationDisplay",
    "NullDistributionDisplay",
    "PITHistogramDisplay",
    "QuantileReliabilityDisplay",
    "ReliabilityCurve",
    "ReliabilityDisplay",
    "ScoreDecompositionDisplay",
    "SequentialTestDisplay",
    "SimplexDisplay",
    "WitnessCurve",
    "WitnessDisplay",
]
