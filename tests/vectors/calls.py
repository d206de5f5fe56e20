"""The calls of skcalib that compute the test vectors.

Each takes the input of a vector as arrays y, p, P, w, … and its parameters, and returns a number.
"""

import numpy as np


def skcalib_calls():
    from skcalib import metrics as m
    from skcalib.forecasts import EnsembleForecast, GaussianMixtureForecast, QuantileForecast
    from skcalib.hypothesis_tests import HosmerLemeshowTest, SpiegelhalterTest
    from skcalib.recalibration import TemperatureRecalibrator

    def of_two(metric, **options):
        def call(y, p, w=None, **parameters):
            return metric(y, p, sample_weight=w, labels=[0, 1], **options, **parameters)

        return call

    def of_classes(metric, **options):
        def call(y, P, w=None, **parameters):
            labels = range(P.shape[1])
            return metric(y, P, sample_weight=w, labels=labels, **options, **parameters)

        return call

    def confidence(P, y):
        return P.argmax(axis=1) == y, P.max(axis=1)

    def reflect(y, p, w=None, **parameters):  # bins [a, b) of 1 − p are bins (a, b] of p
        return ece(1 - y, 1 - p, w, **parameters)

    def reflect_confidence(y, P, w=None, **parameters):
        hit, top = confidence(P, y)
        return reflect(hit.astype(int), top, w, **parameters)

    def mmce(y, P, w=None):
        hit, top = confidence(P, y)
        return m.laplace_kernel_calibration_error(
            hit, top, sample_weight=w, labels=[False, True], bandwidth=0.4
        )

    def brier_part(name):
        return lambda y, p, w=None: getattr(of_two(m.score_decomposition)(y, p, w), name)

    def log_loss(y, p, w=None):
        return of_two(m.score_decomposition)(y, p, w, score="log_loss").score

    def multiclass_score(score):
        def call(y, P, w=None):  # the sum over the classes of the scores of each against the rest
            parts = of_classes(m.score_decomposition, multi_class="classwise", average=None)
            return np.sum(parts(y, P, w, score=score).score)

        return call

    def inverse_temperature(y, p, w=None):
        fit = TemperatureRecalibrator(prior_weight=0).fit(p, y, sample_weight=w)
        return 1 / fit.temperature_

    def interval_score(y, low, high, coverage):
        levels = [(1 - coverage) / 2, (1 + coverage) / 2]
        forecast = QuantileForecast(np.column_stack([low, high]), levels)
        return m.interval_loss(y, forecast, coverage=coverage)

    def crps(y, forecast, **options):
        return m.continuous_ranked_probability_loss(y, forecast, **options)

    ece = of_two(m.expected_calibration_error)
    return {
        "ece_right_open": ece,
        "ece_left_open": reflect,
        "rms_error_right_open": of_two(m.expected_calibration_error, norm="l2"),
        "max_error_right_open": of_two(m.expected_calibration_error, norm="max"),
        "debiased_rms_error": of_two(
            m.expected_calibration_error, norm="l2", estimation="debiased"
        ),
        "ece_equal_mass": of_two(m.expected_calibration_error, strategy="quantile"),
        "level_set_ece": of_two(m.level_set_calibration_error),
        "upper_distance": of_two(m.upper_distance_to_calibration),
        "interval_error": of_two(m.interval_calibration_error),
        "smooth_error": of_two(m.smooth_calibration_error),
        "laplace_kernel_error": of_two(m.laplace_kernel_calibration_error),
        "gaussian_kernel_error": lambda y, p, w=None: (
            of_two(m.kernel_calibration_error, kernel="rbf", bandwidth=1.0)(y, p, w) / 2**0.5
        ),
        "smooth_ece": of_two(m.smooth_expected_calibration_error),
        "cumulative_max": of_two(m.cumulative_calibration_error),
        "cumulative_range": of_two(m.cumulative_calibration_error, norm="range"),
        "brier_score": brier_part("score"),
        "brier_miscalibration": brier_part("miscalibration"),
        "brier_discrimination": brier_part("discrimination"),
        "brier_uncertainty": brier_part("uncertainty"),
        "log_loss": log_loss,
        "observed_expected_ratio": of_two(m.observed_expected_ratio),
        "spiegelhalter_z": lambda y, p: (
            SpiegelhalterTest(method="asymptotic", labels=[0, 1]).fit(p, y).statistic_
        ),
        "hosmer_lemeshow": lambda y, p, n_bins: (
            HosmerLemeshowTest(n_bins, method="asymptotic", labels=[0, 1]).fit(p, y).statistic_
        ),
        "calibration_in_the_large": of_two(m.calibration_in_the_large),
        "calibration_slope": of_two(m.calibration_slope),
        "calibration_intercept": of_two(m.calibration_intercept),
        "inverse_temperature": inverse_temperature,
        "confidence_ece": of_classes(m.expected_calibration_error),
        "confidence_ece_left_open": reflect_confidence,
        "confidence_max_error": of_classes(m.expected_calibration_error, norm="max"),
        "classwise_ece": of_classes(m.expected_calibration_error, multi_class="classwise"),
        "top_label_ece": of_classes(m.expected_calibration_error, multi_class="top-label"),
        "top_label_ece_macro": of_classes(
            m.expected_calibration_error, multi_class="top-label", average="macro"
        ),
        "canonical_ece": of_classes(m.expected_calibration_error, multi_class="canonical"),
        "multiclass_brier_score": multiclass_score("brier"),
        "skce": of_classes(m.squared_kernel_calibration_error, bandwidth=0.5),
        "mmce": mmce,
        "jkce": of_classes(m.joint_kernel_calibration_error, bandwidth=0.5),
        "ckce": of_classes(m.conditional_kernel_calibration_error, bandwidth=0.5),
        "decision_error": of_classes(m.decision_calibration_error, given="action"),
        "crps_normal": lambda y, mean, std: crps(y, (mean, std)),
        "log_score_normal": lambda y, mean, std: m.negative_log_likelihood(y, (mean, std)),
        "quantile_calibration_error": lambda y, mean, std, norm: m.quantile_calibration_error(
            y, (mean, std), norm=norm
        ),
        "crps_ensemble": lambda y, members: crps(y, EnsembleForecast(members)),
        "fair_crps_ensemble": lambda y, members: crps(
            y, EnsembleForecast(members), estimation="fair"
        ),
        "interval_score": interval_score,
        "crps_mixture": lambda y, weight, mean, std: crps(
            y, GaussianMixtureForecast(mean, std, np.tile(weight, (len(y), 1)))
        ),
    }


def call_vector(calls, vector, inputs):
    """What the package computes of the vector's input."""
    data = {key: np.array(value) for key, value in inputs[vector["input"]].items()}
    return calls[vector["measure"]](**data, **vector["parameters"])
