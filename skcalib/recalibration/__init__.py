"""Recalibrators as scikit-learn transformers, and what joins them to a classifier."""

from ._auto import AutoRecalibrator
from ._binning import IntervalBinningRecalibrator, IntervalCertificate
from ._classifier import RecalibratedClassifier
from ._identity import IdentityRecalibrator
from ._isotonic import IsotonicRecalibrator
from ._logistic import BetaRecalibrator, QuadraticRecalibrator, SigmoidRecalibrator
from ._predict_proba import PredictProba
from ._scaling import DirichletRecalibrator, MatrixScalingRecalibrator, VectorScalingRecalibrator
from ._spline import SplineRecalibrator
from ._temperature import TemperatureRecalibrator
from ._venn_abers import VennAbersRecalibrator

__all__ = [
    "AutoRecalibrator",
    "BetaRecalibrator",
    "DirichletRecalibrator",
    "IdentityRecalibrator",
    "IntervalBinningRecalibrator",
    "IntervalCertificate",
    "IsotonicRecalibrator",
    "MatrixScalingRecalibrator",
    "PredictProba",
    "QuadraticRecalibrator",
    "RecalibratedClassifier",
    "SigmoidRecalibrator",
    "SplineRecalibrator",
    "TemperatureRecalibrator",
    "VectorScalingRecalibrator",
    "VennAbersRecalibrator",
]
