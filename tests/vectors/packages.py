"""The calls that compute the test vectors: those of skcalib and those of other packages.

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
        "debiased_rms_error": of_two(m.expected_calibration_error, norm="l2", debias=True),
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
        "cumulative_range": of_two(m.cumulative_calibration_error, kind="range"),
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
            y, EnsembleForecast(members), estimator="fair"
        ),
        "interval_score": interval_score,
        "crps_mixture": lambda y, weight, mean, std: crps(
            y, GaussianMixtureForecast(mean, std, np.tile(weight, (len(y), 1)))
        ),
    }


def netcal_calls():
    from netcal.metrics import ECE, MCE, MMCE
    from netcal.scaling import TemperatureScaling

    def temperature(y, p):
        scaling = TemperatureScaling()
        scaling.fit(p, y)
        return np.ravel(scaling.temperature)[0]

    return {
        "ece_right_open": lambda y, p, n_bins: ECE(n_bins).measure(p, y),
        "ece_left_open": lambda y, p, n_bins: ECE(n_bins).measure(p, y),
        "max_error_right_open": lambda y, p, n_bins: MCE(n_bins).measure(p, y),
        "ece_equal_mass": lambda y, p, n_bins: ECE(n_bins, equal_intervals=False).measure(p, y),
        "inverse_temperature": temperature,
        "confidence_ece": lambda y, P, n_bins: ECE(n_bins).measure(P, y),
        "confidence_ece_left_open": lambda y, P, n_bins: ECE(n_bins).measure(P, y),
        "confidence_max_error": lambda y, P, n_bins: MCE(n_bins).measure(P, y),
        "mmce": lambda y, P: MMCE().measure(P, y),
    }


def mapie_calls():
    from mapie.metrics import calibration as mc

    def unscaled(statistic):  # MAPIE divides by σ = √Σ p(1 − p) / n
        return lambda y, p: statistic(y, p) * mc.length_scale(p)

    return {
        "ece_right_open": lambda y, p, n_bins: mc.expected_calibration_error(
            y, p, num_bins=n_bins + 1
        ),
        "ece_left_open": lambda y, p, n_bins: mc.expected_calibration_error(
            y, p, num_bins=n_bins + 1
        ),
        "ece_equal_mass": lambda y, p, n_bins: mc.expected_calibration_error(
            y, p, num_bins=n_bins + 1, split_strategy="quantile"
        ),
        "top_label_ece": lambda y, P, n_bins: mc.top_label_ece(y, P, num_bins=n_bins + 1),
        "top_label_ece_macro": lambda y, P, n_bins: mc.top_label_ece(y, P, num_bins=n_bins + 1),
        "cumulative_max": unscaled(mc.kolmogorov_smirnov_statistic),
        "cumulative_range": unscaled(mc.kuiper_statistic),
        "spiegelhalter_z": lambda y, p: mc.spiegelhalter_statistic(y, p),
    }


def uncertainty_calibration_calls():
    import calibration as vc

    def debiased(y, p, n_bins):
        bins = [k / n_bins for k in range(1, n_bins + 1)]
        return vc.unbiased_l2_ce(vc.bin(list(zip(p, y, strict=True)), bins))

    return {
        "ece_right_open": lambda y, p, n_bins: vc.get_ece(p, y, num_bins=n_bins),
        "ece_left_open": lambda y, p, n_bins: vc.get_ece(p, y, num_bins=n_bins),
        "ece_equal_mass": lambda y, p, n_bins: vc.get_ece_em(p, y, num_bins=n_bins),
        "debiased_rms_error": debiased,
        "confidence_ece": lambda y, P, n_bins: vc.get_ece(P, y, num_bins=n_bins),
        "confidence_ece_left_open": lambda y, P, n_bins: vc.get_ece(P, y, num_bins=n_bins),
        "classwise_ece": lambda y, P, n_bins: vc.get_ece(P, y, num_bins=n_bins, mode="marginal"),
    }


def relplot_calls():
    from relplot import metrics as rp

    return {
        "ece_right_open": lambda y, p, n_bins: rp.binnedECE(p, y, n_bins),
        "ece_left_open": lambda y, p, n_bins: rp.binnedECE(p, y, n_bins),
        "smooth_ece": lambda y, p: rp.smECE(p, y),
    }


def scoringrules_calls():
    import scoringrules as sr

    return {
        "brier_score": lambda y, p: sr.brier_score(y, p).mean(),
        "crps_normal": lambda y, mean, std: sr.crps_normal(y, mean, std).mean(),
        "log_score_normal": lambda y, mean, std: sr.logs_normal(y, mean, std).mean(),
        "crps_ensemble": lambda y, members: sr.crps_ensemble(y, members, estimator="nrg").mean(),
        "fair_crps_ensemble": lambda y, members: sr.crps_ensemble(
            y, members, estimator="fair"
        ).mean(),
        "interval_score": lambda y, low, high, coverage: sr.interval_score(
            y, low, high, 1 - coverage
        ).mean(),
        "crps_mixture": lambda y, weight, mean, std: sr.crps_mixnorm(
            y, mean, std, np.tile(weight, (len(y), 1))
        ).mean(),
    }


def torchmetrics_calls():
    import torch
    from torchmetrics.functional.classification import (
        binary_calibration_error,
        multiclass_calibration_error,
    )

    def of_two(norm):
        return lambda y, p, n_bins: float(
            binary_calibration_error(torch.tensor(p), torch.tensor(y), n_bins, norm)
        )

    def of_classes(norm):
        return lambda y, P, n_bins: float(
            multiclass_calibration_error(torch.tensor(P), torch.tensor(y), P.shape[1], n_bins, norm)
        )

    return {
        "ece_right_open": of_two("l1"),
        "ece_left_open": of_two("l1"),
        "rms_error_right_open": of_two("l2"),
        "max_error_right_open": of_two("max"),
        "confidence_ece": of_classes("l1"),
        "confidence_ece_left_open": of_classes("l1"),
        "confidence_max_error": of_classes("max"),
    }


PACKAGES = {
    "skcalib": skcalib_calls,
    "netcal": netcal_calls,
    "MAPIE": mapie_calls,
    "uncertainty-calibration": uncertainty_calibration_calls,
    "relplot": relplot_calls,
    "scoringrules": scoringrules_calls,
    "torchmetrics": torchmetrics_calls,
}


def call_vector(calls, vector, inputs):
    """What the package computes of the vector's input."""
    data = {key: np.array(value) for key, value in inputs[vector["input"]].items()}
    return calls[vector["measure"]](**data, **vector["parameters"])
