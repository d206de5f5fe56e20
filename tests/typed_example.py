"""What a user's type checker sees: run by mypy, not by pytest."""

from functools import partial
from typing import Any, assert_type

import numpy as np
from sklearn.linear_model import LogisticRegression

import skcalib
from skcalib import (
    AutoRecalibrator,
    CalibrationTest,
    RecalibratedClassifier,
    ReliabilityDisplay,
    calibration_report,
    compare_models,
    confidence_interval,
    smooth_calibration_error,
)
from skcalib.forecasts import GaussianForecast
from skcalib.hypothesis_tests import CoxTest, RequiredSampleSize, required_sample_size
from skcalib.lenses import BinaryProblem, Ordinal
from skcalib.metrics import (
    ScoreDecomposition,
    calibration_distance_bounds,
    expected_calibration_error,
    get_scorer,
    interval_loss,
    score_decomposition,
)
from skcalib.recalibration import (
    LensRecalibrator,
    SigmoidRecalibrator,
    TemperatureRecalibrator,
    export_sql,
)
from skcalib.report import CalibrationReport, ComparisonReport
from skcalib.streaming import CalibrationState
from skcalib.uncertainty import (
    ClinicalCalibration,
    Comparison,
    ConfidenceInterval,
    SubgroupClinicalCalibration,
    SubgroupIntervals,
    clinical_calibration,
)

y, proba = np.array([0, 1]), np.array([0.2, 0.7])

assert_type(CalibrationTest().fit(proba, y), CalibrationTest)
assert_type(CalibrationTest().fit(proba, y).p_value_, float)
assert_type(CalibrationTest().fit(proba, y).null_distribution_, np.ndarray)
assert_type(CoxTest().fit(proba, y).p_value_, float)
assert_type(AutoRecalibrator().fit(proba, y), AutoRecalibrator)
assert_type(AutoRecalibrator().fit(proba, y).predict_proba(proba), np.ndarray)
assert_type(RecalibratedClassifier(LogisticRegression()).fit(proba, y).combine_, str)
assert_type(ReliabilityDisplay.from_predictions(y, proba), ReliabilityDisplay)
assert_type(calibration_report(y, proba), CalibrationReport)
assert_type(calibration_report(y, {"before": [0.2, 0.7]}), ComparisonReport)
assert_type(confidence_interval("smooth_calibration_error", y, proba), ConfidenceInterval)
assert_type(confidence_interval("smooth_calibration_error", y, proba, by=y), SubgroupIntervals)
assert_type(compare_models("smooth_calibration_error", y, proba, proba), Comparison)
assert_type(compare_models("smooth_calibration_error", y, proba, proba).p_value, float)
assert_type(smooth_calibration_error(y, proba), float)
assert_type(smooth_calibration_error(y, proba, average=None), np.ndarray)
assert_type(partial(smooth_calibration_error, average="macro")(y, proba), float)
assert_type(SigmoidRecalibrator().fit(proba, y).n_features_in_, int)
assert_type(CalibrationTest().fit(proba, y).component_p_values_, dict[str, float])
assert_type(interval_loss(y, (proba, proba), coverage=0.9), float)
assert_type(interval_loss(y, (proba, proba), coverage=0.9, average=None), np.ndarray)
assert_type(score_decomposition(y, proba), ScoreDecomposition[float])
assert_type(score_decomposition(y, proba).miscalibration, float)
assert_type(score_decomposition(y, proba, average=None), ScoreDecomposition[np.ndarray])
assert_type(calibration_distance_bounds(y, proba), tuple[float, float])
assert_type(CalibrationState().evaluate("smooth_calibration_error").value, float)
assert_type(get_scorer("neg_log_loss")(LogisticRegression(), proba, y), float)
assert_type(clinical_calibration(y, proba), ClinicalCalibration)
assert_type(clinical_calibration([0, 1], [0.2, 0.7], by=[0, 1]), SubgroupClinicalCalibration)
assert_type(required_sample_size(proba, proba), RequiredSampleSize)
assert_type(GaussianForecast(proba, proba).interval(0.9), tuple[np.ndarray, np.ndarray])
assert_type(export_sql(SigmoidRecalibrator().fit(proba, y)), list[str])


class PositiveHalf:
    """A lens need not derive from Lens."""

    def reduce(self, data: Any) -> list[BinaryProblem]:
        return [BinaryProblem(data.label > 0, data.matrix[:, 1:].sum(axis=1))]


smooth_calibration_error(y, proba, multi_class=PositiveHalf(), average="macro")
LensRecalibrator(multi_class=Ordinal([0, 1, 2]))
smooth_calibration_error(y, proba, average="micro")  # type: ignore[call-overload]
smooth_calibration_error(y, proba, multi_class="one-vs-rest")  # type: ignore[call-overload]
CalibrationTest(method="exact")  # type: ignore[arg-type]
RecalibratedClassifier(LogisticRegression(), combine="geometric")  # type: ignore[arg-type]
expected_calibration_error(y, proba, strategy="unifrom")  # type: ignore[call-overload]
skcalib.smooth_calibration_eror(y, proba)  # type: ignore[attr-defined]
skcalib.metrics.smooth_calibration_eror(y, proba)  # type: ignore[attr-defined]
smooth_calibration_error(y, proba, avrage="macro")  # type: ignore[call-overload]
CalibrationTest(n_resamples="many")  # type: ignore[arg-type]
TemperatureRecalibrator(prior_weigth=3)  # type: ignore[call-arg]
TemperatureRecalibrator().fit(proba)  # type: ignore[call-arg]
confidence_interval("ici", y, proba, confidence_level="95%")  # type: ignore[call-overload]
calibration_report(y, proba, random_state="x")  # type: ignore[call-overload]
RecalibratedClassifier(LogisticRegression(), cv="five")  # type: ignore[arg-type]
CalibrationState().evalute("smooth_calibration_error")  # type: ignore[attr-defined]
p = CalibrationTest().fit(proba, y).pvalue_  # type: ignore[attr-defined]
