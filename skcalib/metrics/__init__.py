"""Calibration measures in the manner of :mod:`sklearn.metrics`; 0 is calibrated."""

from .._guesses import guess_other_names

# isort: off
# In the order in which a report shows them.
from ._smooth import smooth_calibration_error, smooth_calibration_witness
from ._binned import expected_calibration_error
from ._quantile import quantile_calibration_error

# isort: on
from ._binned import level_set_calibration_error
from ._capabilities import capabilities
from ._censoring import censoring_weights
from ._clinical import (
    calibration_in_the_large,
    calibration_intercept,
    calibration_slope,
    integrated_calibration_index,
    observed_expected_ratio,
)
from ._conditional import conditional_kernel_calibration_error
from ._cumulative import cumulative_calibration_error
from ._decision_curve import DecisionCurve as DecisionCurve, decision_curve
from ._decisions import (
    DecisionCalibration as DecisionCalibration,
    any_decision_calibration_error,
    decision_calibration,
    decision_calibration_error,
)
from ._distance import (
    DistanceCertificate as DistanceCertificate,
    calibration_distance_bounds,
    distance_certificate,
    lower_distance_to_calibration,
)
from ._forecast_scores import (
    continuous_ranked_probability_loss,
    interval_loss,
    negative_log_likelihood,
)
from ._interval import interval_calibration_error
from ._kernel import (
    joint_kernel_calibration_error,
    kernel_calibration_error,
    squared_kernel_calibration_error,
)
from ._laplace import laplace_kernel_calibration_error
from ._local import LocalCalibration as LocalCalibration, local_calibration, local_calibration_error
from ._matching import distribution_matching_error
from ._matching_witness import MatchingWitness as MatchingWitness, distribution_matching_witness
from ._pit_histogram import PITHistogram as PITHistogram, pit_histogram
from ._proper import ScoreDecomposition as ScoreDecomposition, score_decomposition
from ._quantile import Sharpness as Sharpness, sharpness
from ._reliability_curve import ReliabilityCurve as ReliabilityCurve, reliability_curve
from ._risk_coverage import RiskCoverageCurve as RiskCoverageCurve, risk_coverage_curve
from ._scorers import get_scorer, get_scorer_names, make_scorer
from ._smooth_expected import smooth_expected_calibration_error
from ._table import metric_table
from ._upper_distance import (
    UpperDistanceCertificate as UpperDistanceCertificate,
    upper_distance_certificate,
    upper_distance_to_calibration,
)
from ._weighted import weighted_calibration_error

__all__ = [
    "any_decision_calibration_error",
    "calibration_distance_bounds",
    "calibration_in_the_large",
    "calibration_intercept",
    "calibration_slope",
    "capabilities",
    "censoring_weights",
    "conditional_kernel_calibration_error",
    "continuous_ranked_probability_loss",
    "cumulative_calibration_error",
    "decision_calibration",
    "decision_calibration_error",
    "decision_curve",
    "distance_certificate",
    "distribution_matching_error",
    "distribution_matching_witness",
    "expected_calibration_error",
    "get_scorer",
    "get_scorer_names",
    "integrated_calibration_index",
    "interval_calibration_error",
    "interval_loss",
    "joint_kernel_calibration_error",
    "kernel_calibration_error",
    "laplace_kernel_calibration_error",
    "level_set_calibration_error",
    "local_calibration",
    "local_calibration_error",
    "lower_distance_to_calibration",
    "make_scorer",
    "metric_table",
    "negative_log_likelihood",
    "observed_expected_ratio",
    "pit_histogram",
    "quantile_calibration_error",
    "reliability_curve",
    "risk_coverage_curve",
    "score_decomposition",
    "sharpness",
    "smooth_calibration_error",
    "smooth_calibration_witness",
    "smooth_expected_calibration_error",
    "squared_kernel_calibration_error",
    "upper_distance_certificate",
    "upper_distance_to_calibration",
    "weighted_calibration_error",
]


guess_other_names(__name__)
