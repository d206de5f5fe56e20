"""Recalibrators as scikit-learn transformers, and what joins them to a classifier or regressor."""

from .._guesses import guess_other_names
from ._auto import AutoRecalibrator
from ._binning import (
    IntervalBinningRecalibrator,
    IntervalCertificate as IntervalCertificate,
    ScalingBinningRecalibrator,
)
from ._classifier import RecalibratedClassifier
from ._decision import AnyDecisionRecalibrator, DecisionRecalibrator
from ._either import IdentityRecalibrator
from ._export import export_onnx, export_sql, export_table
from ._features import FeatureRecalibrator
from ._isotonic import IsotonicRecalibrator, VennAbersRecalibrator
from ._lens import LensRecalibrator
from ._levels import PITRecalibrator, QuantileRecalibrator
from ._location_scale import LocationScaleRecalibrator
from ._logistic import BetaRecalibrator, QuadraticRecalibrator, SigmoidRecalibrator
from ._nonhomogeneous import NonhomogeneousRegressionRecalibrator
from ._pairwise import PairwiseScalingRecalibrator
from ._predict_proba import PredictProba
from ._prior_shift import PriorShiftRecalibrator
from ._regressor import RecalibratedRegressor
from ._scaling import (
    DirichletRecalibrator,
    EnsembleTemperatureRecalibrator,
    MatrixScalingRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
)
from ._spline import SplineRecalibrator
from ._subgroups import SubgroupRecalibrator
from ._updating import ClosedTestingRecalibrator, InterceptRecalibrator

__all__ = [
    "AnyDecisionRecalibrator",
    "AutoRecalibrator",
    "BetaRecalibrator",
    "ClosedTestingRecalibrator",
    "DecisionRecalibrator",
    "DirichletRecalibrator",
    "EnsembleTemperatureRecalibrator",
    "FeatureRecalibrator",
    "IdentityRecalibrator",
    "InterceptRecalibrator",
    "IntervalBinningRecalibrator",
    "IsotonicRecalibrator",
    "LensRecalibrator",
    "LocationScaleRecalibrator",
    "MatrixScalingRecalibrator",
    "NonhomogeneousRegressionRecalibrator",
    "PITRecalibrator",
    "PairwiseScalingRecalibrator",
    "PredictProba",
    "PriorShiftRecalibrator",
    "QuadraticRecalibrator",
    "QuantileRecalibrator",
    "RecalibratedClassifier",
    "RecalibratedRegressor",
    "ScalingBinningRecalibrator",
    "SigmoidRecalibrator",
    "SplineRecalibrator",
    "SubgroupRecalibrator",
    "TemperatureRecalibrator",
    "VectorScalingRecalibrator",
    "VennAbersRecalibrator",
    "export_onnx",
    "export_sql",
    "export_table",
]

guess_other_names(__name__)
