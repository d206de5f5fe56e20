"""Figures, as scikit-learn displays: ``from_estimator``, ``from_predictions`` and ``plot``."""

from .._guesses import guess_other_names
from ._comparison import ComparisonDisplay
from ._decisions import DecisionDisplay
from ._forest import ForestDisplay
from ._grades import RatingGradeDisplay
from ._pit import PITHistogramDisplay, QuantileReliabilityDisplay
from ._reliability import ReliabilityDisplay
from ._score_decomposition import ScoreDecompositionDisplay
from ._simplex import SimplexDisplay
from ._tests import NullDistributionDisplay, SequentialTestDisplay
from ._witness import WitnessDisplay

__all__ = [
    "ComparisonDisplay",
    "DecisionDisplay",
    "ForestDisplay",
    "NullDistributionDisplay",
    "PITHistogramDisplay",
    "QuantileReliabilityDisplay",
    "RatingGradeDisplay",
    "ReliabilityDisplay",
    "ScoreDecompositionDisplay",
    "SequentialTestDisplay",
    "SimplexDisplay",
    "WitnessDisplay",
]


guess_other_names(__name__)
