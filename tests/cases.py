"""The metrics, tests and recalibrators that the laws hold for. A new one joins its list."""

from functools import partial

from skcalib.function_classes import Bounded, Monotone
from skcalib.hypothesis_tests import (
    CalibrationInTheLargeTest,
    CalibrationSlopeTest,
    CalibrationTest,
    CoxTest,
    EquivalenceTest,
    HosmerLemeshowTest,
    RatingGradeTest,
    SequentialCalibrationTest,
    SpiegelhalterTest,
    UCMETest,
)
from skcalib.metrics import (
    calibration_distance_bounds,
    conditional_kernel_calibration_error,
    cumulative_calibration_error,
    decision_calibration_error,
    expected_calibration_error,
    integrated_calibration_index,
    interval_calibration_error,
    joint_kernel_calibration_error,
    kernel_calibration_error,
    laplace_kernel_calibration_error,
    level_set_calibration_error,
    lower_distance_to_calibration,
    score_decomposition,
    smooth_calibration_error,
    smooth_calibration_witness,
    smooth_expected_calibration_error,
    squared_kernel_calibration_error,
    weighted_calibration_error,
)
from skcalib.metrics._registry import METRICS
from skcalib.recalibration import (
    AutoRecalibrator,
    BetaRecalibrator,
    IntervalBinningRecalibrator,
    IsotonicRecalibrator,
    QuadraticRecalibrator,
    SigmoidRecalibrator,
    SplineRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
)
from skcalib.recalibration._registry import RECALIBRATORS


def one_of_each(cases):
    """The first case of every function and class, and of every way in which a test resamples."""
    kinds = {}
    for name, case in cases.items():
        if isinstance(case, CalibrationTest):
            kind = CalibrationTest, case.statistic in ("auto", "skce"), case.method
        else:
            kind = getattr(case, "func", case if callable(case) else type(case))
        kinds.setdefault(kind, name)
    return {name: cases[name] for name in kinds.values()}


# Every registered metric with its defaults, and the options that deserve the laws.
METRIC_CASES = {
    **{name: entry.function for name, entry in METRICS.items()},
    "smooth, top-label": partial(smooth_calibration_error, multi_class="top-label"),
    "smooth, classwise": partial(smooth_calibration_error, multi_class="classwise"),
    "expected, quantile": partial(expected_calibration_error, strategy="quantile", n_bins=4),
    "expected, l2": partial(expected_calibration_error, norm="l2", multi_class="classwise"),
    "expected, max": partial(expected_calibration_error, norm="max", multi_class="top-label"),
    "kernel, biased": partial(squared_kernel_calibration_error, estimation="biased", bandwidth=0.3),
    "kernel, rbf": partial(squared_kernel_calibration_error, kernel="rbf", bandwidth=0.2),
    "kernel, classwise": partial(
        squared_kernel_calibration_error,
        multi_class="classwise",
        kernel="exponential",
        bandwidth=0.3,
        estimation="biased",
    ),
    "kernel, root": partial(kernel_calibration_error, bandwidth=0.3),
    "conditional": partial(conditional_kernel_calibration_error, regularization=0.3, bandwidth=0.3),
    "conditional, fourier": partial(
        conditional_kernel_calibration_error,
        method="fourier",
        regularization=0.3,
        bandwidth=0.3,
        n_components=20,
        random_state=0,
    ),
    "conditional, nystroem": partial(
        conditional_kernel_calibration_error,
        kernel="exponential",
        method="nystroem",
        regularization=0.3,
        bandwidth=0.3,
        multi_class="classwise",
    ),
    "conditional, standardized": partial(
        conditional_kernel_calibration_error, bandwidth=0.3, estimation="standardized"
    ),
    "joint, linear": partial(joint_kernel_calibration_error, kernel="linear"),
    "cumulative, range": partial(
        cumulative_calibration_error, norm="range", multi_class="classwise"
    ),
    "expected, debiased": partial(
        expected_calibration_error,
        norm="l2",
        estimation="debiased",
        n_bins=2,
        multi_class="classwise",
    ),
    "expected, width": partial(
        expected_calibration_error, strategy="quantile", n_bins=4, add_bin_width=True
    ),
    "expected, canonical": partial(expected_calibration_error, multi_class="canonical", n_bins=3),
    "expected, canonical l2": partial(
        expected_calibration_error, multi_class="canonical", norm="l2"
    ),
    "expected, sqeuclidean": partial(
        expected_calibration_error, multi_class="canonical", distance="sqeuclidean", n_bins=3
    ),
    "expected, median-variance": partial(
        expected_calibration_error,
        multi_class="canonical",
        strategy="median-variance",
        min_bin_size=5,
    ),
    "interval, cells": partial(interval_calibration_error, precision=0.3, multi_class="classwise"),
    "interval, surrogate": partial(
        interval_calibration_error, method="surrogate", multi_class="top-label"
    ),
    "interval, random grid": partial(
        interval_calibration_error, method="random-grid", width=0.3, multi_class="classwise"
    ),
    "interval, drawn grid": partial(
        interval_calibration_error, method="random-grid", width=0.3, n_draws=5, random_state=0
    ),
    "interval, drawn surrogate": partial(
        interval_calibration_error, method="surrogate", n_draws=5, random_state=0
    ),
    "level set, canonical": partial(level_set_calibration_error, multi_class="canonical"),
    "integrated, E90": partial(integrated_calibration_index, quantile=0.9, multi_class="classwise"),
    "laplace, classwise": partial(
        laplace_kernel_calibration_error, bandwidth=1e-3, multi_class="classwise"
    ),
    "laplace, subsample": partial(
        laplace_kernel_calibration_error, method="subsample", n_draws=500, random_state=0
    ),
    "laplace, fourier": partial(laplace_kernel_calibration_error, method="fourier", random_state=0),
    "laplace, binning": partial(
        laplace_kernel_calibration_error, method="binning", random_state=0, squared=True
    ),
    "lower distance, classwise": partial(
        lower_distance_to_calibration, tol=1e-3, multi_class="classwise"
    ),
    "smooth expected, top-label": partial(
        smooth_expected_calibration_error, multi_class="top-label"
    ),
    "smooth expected, bandwidth": partial(
        smooth_expected_calibration_error, bandwidth=0.05, multi_class="classwise"
    ),
    "decision, given the action": partial(decision_calibration_error, given="action"),
    "decision, chosen": partial(decision_calibration_error, compared_actions="chosen"),
    "weighted": weighted_calibration_error,
    "weighted, classwise": partial(weighted_calibration_error, multi_class="classwise"),
    "weighted, monotone": partial(
        weighted_calibration_error, function_class=Monotone() & Bounded()
    ),
}


def parts_of(decomposition):
    return [value for value in vars(decomposition).values() if value is not None]


# Measures with several values, which are no scorers.
COMPOSITE_CASES = {
    "decomposition": lambda y, proba, **options: parts_of(score_decomposition(y, proba, **options)),
    "decomposition, log loss": lambda y, proba, **options: parts_of(
        score_decomposition(y, proba, score="log_loss", multi_class="classwise", **options)
    ),
    "bounds": partial(calibration_distance_bounds, multi_class="top-label"),
    "witness": smooth_calibration_witness,
}

TEST_CASES = {
    "default": CalibrationTest(n_resamples=49, random_state=0),
    "biased": CalibrationTest(
        "skce", estimation="biased", kernel="rbf", n_resamples=49, random_state=0
    ),
    "several bandwidths": CalibrationTest(
        "skce", bandwidth="multiple", n_resamples=19, random_state=0
    ),
    "smooth": CalibrationTest("smooth_calibration_error", n_resamples=19, random_state=0),
    "expected": CalibrationTest("expected_calibration_error", n_resamples=19, random_state=0),
    "consistency": CalibrationTest(method="consistency", n_resamples=19, random_state=0),
    "decision, asymptotic": CalibrationTest(
        "decision_calibration_error",
        metric_params={"given": "action"},
        method="asymptotic",
        n_resamples=49,
        random_state=0,
    ),
    "ucme": UCMETest(n_locations=3, n_resamples=49, random_state=0),
    "ucme, asymptotic": UCMETest(n_locations=3, method="asymptotic", random_state=0),
    "Spiegelhalter": SpiegelhalterTest(n_resamples=49, random_state=0),
    "Spiegelhalter, asymptotic": SpiegelhalterTest(method="asymptotic"),
    "in the large": CalibrationInTheLargeTest(
        alternative="greater", n_resamples=49, random_state=0
    ),
    "slope": CalibrationSlopeTest(alternative="less", n_resamples=49, random_state=0),
    "slope, asymptotic": CalibrationSlopeTest(method="asymptotic"),
    "Hosmer-Lemeshow": HosmerLemeshowTest(n_resamples=49, random_state=0),
    "Hosmer-Lemeshow, fitted": HosmerLemeshowTest(n_bins=5, method="asymptotic", ddof=1),
    "equivalence": EquivalenceTest(margin=0.2, n_resamples=19, random_state=0),
    "Cox": CoxTest(n_resamples=49, random_state=0),
    "Cox, asymptotic": CoxTest(method="asymptotic"),
}

# Tests that need equal weights; the other laws of estimators hold for them, too.
EQUAL_WEIGHT_CASES = {
    "asymptotic": CalibrationTest(method="asymptotic", n_resamples=49, random_state=0),
    "distribution-free": CalibrationTest(method="distribution-free"),
    "grades": RatingGradeTest(),
    "sequential": SequentialCalibrationTest(windows=(50,)),
}

# Two equal rows are a pair, for the unbiased estimate and for the bandwidth "median"; a row of
# weight 2 makes no pair with itself. A regularization and the neighbours of a local regression
# follow the number of rows.
NOT_REPEATABLE = {
    "conditional, standardized",
    "conditional_kernel_calibration_error",
    "expected, debiased",
    "expected, median-variance",
    "integrated, E90",
    "integrated_calibration_index",
    "joint, linear",
    "joint_kernel_calibration_error",
    "kernel, rbf",
    "kernel_calibration_error",
    "squared_kernel_calibration_error",
}

# Two candidates show what is AutoRecalibrator's own; all others are cases of their own.
TWO_CANDIDATES = [
    ("temperature", TemperatureRecalibrator()),
    ("isotonic", IsotonicRecalibrator(strict=True)),
]
RECALIBRATOR_CASES = {
    **{name: entry.recalibrator for name, entry in RECALIBRATORS.items()},
    "auto": AutoRecalibrator(TWO_CANDIDATES, cv=3),
    "binning, uniform": IntervalBinningRecalibrator("uniform", n_bins=7),
    "binning, means": IntervalBinningRecalibrator("uniform", n_bins=7, pseudo_count=0.0),
    "binning, quantile": IntervalBinningRecalibrator("quantile", n_bins=5),
    "binning, shifted": IntervalBinningRecalibrator(
        "uniform", n_bins=5, random_shift=True, random_state=0, pseudo_count=1.0
    ),
    "isotonic, steps": IsotonicRecalibrator(strict=False),
    "temperature, prior": TemperatureRecalibrator(prior_weight=2.0),
}

# A prior, or one sample more, has the weight of a sample; folds are dealt to rows, and what is
# significant depends on their number.
WITH_PRIOR_OR_FOLDS = {
    "Dirichlet",
    "Venn-Abers",
    "any decision",
    "auto",
    "beta",
    "binning",
    "binning, quantile",
    "binning, shifted",
    "binning, uniform",
    "closed test",
    "decision",
    "ensemble temperature",
    "intercept",
    "isotonic",
    "matrix scaling",
    "pairwise scaling",
    "problems of a lens",
    "quadratic",
    "scaling-binning",
    "sigmoid",
    "spline",
    "temperature",
    "temperature, prior",
    "vector scaling",
}

# Without a prior they are repeatable.
LIKELIHOODS = (
    BetaRecalibrator(prior_weight=0),
    QuadraticRecalibrator(prior_weight=0),
    SigmoidRecalibrator(prior_weight=0),
    SplineRecalibrator(smoothing=0.01, prior_weight=0),
    TemperatureRecalibrator(prior_weight=0),
    VectorScalingRecalibrator(prior_weight=0),
)
