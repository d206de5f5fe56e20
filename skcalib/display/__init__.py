"""Figures, as scikit-learn displays: ``from_estimator``, ``from_predictions`` and ``plot``."""

from ._comparison import ComparisonDisplay
from ._decisions import DecisionDisplay
from ._local_calibration import LocalCalibrationDisplay
from ._null_distribution import NullDistributionDisplay
from ._pit_histogram import PITHistogramDisplay
from ._quantile_reliability import QuantileReliabilityDisplay
from ._reliability import ReliabilityDisplay
from ._reliability_curve import ReliabilityCurve
from ._score_decomposition import ScoreDecompositionDisplay
from ._sequential_test import SequentialTestDisplay
from ._simplex import SimplexDisplay
from ._witness import WitnessDisplay
from ._witness_panel import WitnessCurve

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
