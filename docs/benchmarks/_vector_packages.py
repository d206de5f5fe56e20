"""The calls of other packages that compute the test vectors; tests/vectors has those of skcalib.

Each takes the input of a vector as arrays y, p, P, … and its parameters, and returns a number.
"""

import importlib
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[2] / "tests" / "vectors"
sys.path.insert(0, str(FOLDER))
calls = importlib.import_module("calls")


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
    "skcalib": calls.skcalib_calls,
    "netcal": netcal_calls,
    "MAPIE": mapie_calls,
    "uncertainty-calibration": uncertainty_calibration_calls,
    "relplot": relplot_calls,
    "scoringrules": scoringrules_calls,
    "torchmetrics": torchmetrics_calls,
}
