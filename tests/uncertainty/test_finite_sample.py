"""The radius that holds at every number of samples, and the bounds that it is made of."""

from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad

from skcalib import metrics
from skcalib.datasets import make_hard_instance, make_temperature_family
from skcalib.metrics import (
    cumulative_calibration_error,
    interval_calibration_error,
    kernel_calibration_error,
    laplace_kernel_calibration_error,
    lower_distance_to_calibration,
    smooth_calibration_error,
)
from skcalib.uncertainty import confidence_interval, finite_sample_radius

CASES = {
    "smooth": (smooth_calibration_error, {}),
    "lower": (lower_distance_to_calibration, {"tol": 1e-2}),
    "laplace": (laplace_kernel_calibration_error, {"bandwidth": 0.2}),
    "kernel": (kernel_calibration_error, {"kernel": "rbf", "bandwidth": 0.3}),
    "surrogate": (interval_calibration_error, {"method": "surrogate"}),
    "surrogate, precision": (interval_calibration_error, {"method": "surrogate", "precision": 0.1}),
    "grid": (interval_calibration_error, {"method": "random-grid", "width": 0.15}),
    "cumulative": (cumulative_calibration_error, {}),
    "cumulative, range": (cumulative_calibration_error, {"kind": "range"}),
}
all_cases = pytest.mark.parametrize(("metric", "params"), CASES.values(), ids=CASES)


def law(name):
    """Points, and probabilities (2, m) of label and point: what the samples are drawn from."""
    if name == "opposite":  # the outcome is what the model excludes: the largest residuals
        return np.array([0.0, 1.0]), np.array([[0.0, 0.5], [0.5, 0.0]])
    if name == "two points":
        y_true, y_proba, weight = make_hard_instance(offset=0.3)
        points = np.unique(y_proba)
        cells = [[weight[(y_proba == p) & (y_true == y)].sum() for p in points] for y in (0, 1)]
        return points, np.array(cells)
    points = (np.arange(500) + 0.5) / 500
    chance = points if name == "calibrated" else 0.1 + 0.3 * points
    return points, np.stack([1 - chance, chance]) / 500


def whole(metric, params, points, weight):
    """The value of the metric on the whole distribution."""
    y_true = np.repeat([0, 1], len(points))
    options = {"sample_weight": weight.ravel(), "labels": [0, 1]}
    return metric(y_true, np.tile(points, 2), **params, **options)


def samples(points, weight, n, n_repetitions, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n_repetitions):
        cell = rng.choice(weight.size, p=weight.ravel(), size=n)
        yield cell // len(points), points[cell % len(points)]


@pytest.mark.parametrize("name", ["calibrated", "off", "opposite", "two points"])
@all_cases
def test_coverage_is_at_least_nominal_and_bias_within_its_bound(metric, params, name):
    points, weight = law(name)
    truth, n = whole(metric, params, points, weight), 40
    errors = [metric(y, p, labels=[0, 1], **params) for y, p in samples(points, weight, n, 25)]
    # at a level of 0.6, where each side may fail in every fifth repetition
    below, above = finite_sample_radius(
        metric.__name__, n, metric_params=params, confidence_level=0.6
    )
    assert np.mean([error - below <= truth <= error + above for error in errors]) >= 0.6
    # at a confidence level near 0 hardly more than the bound on the bias is left below
    options = {"confidence_level": 1e-9, "alternative": "greater"}
    below, _ = finite_sample_radius(metric.__name__, n, metric_params=params, **options)
    standard_error = np.std(errors) / np.sqrt(len(errors))
    assert np.mean(errors) - truth <= below + 4 * standard_error


def test_radius_by_hand():
    # smooth error: 1.5/√n below, and 2·√(log(1/0.025)/(2n)) on either side
    deviation = np.sqrt(2 * np.log(40) / 100)
    below, above = finite_sample_radius("smooth_calibration_error", 100)
    assert above == pytest.approx(deviation, abs=1e-15)
    assert below == pytest.approx(0.15 + deviation, abs=1e-15)
    # lower distance: 1/√n, and the tolerance of the number above
    below, above = finite_sample_radius(
        "lower_distance_to_calibration", 100, metric_params={"tol": 1e-3}
    )
    assert above == pytest.approx(deviation + 1e-3, abs=1e-15)
    assert below == pytest.approx(0.1 + deviation, abs=1e-15)
    # a grid of width 0.15 has at most 8 intervals that meet [0, 1]
    options = {"method": "random-grid", "width": 0.15}
    below, above = finite_sample_radius("interval_calibration_error", 100, metric_params=options)
    assert above == pytest.approx(deviation, abs=1e-15)
    assert below == pytest.approx(np.sqrt(8) / 10 + deviation, abs=1e-15)


def test_one_sided_radius():
    name = "smooth_calibration_error"
    two = finite_sample_radius(name, 50, confidence_level=0.9)
    greater = finite_sample_radius(name, 50, confidence_level=0.95, alternative="greater")
    less = finite_sample_radius(name, 50, confidence_level=0.95, alternative="less")
    assert greater == (pytest.approx(two.below, abs=1e-15), np.inf)
    assert less == (np.inf, pytest.approx(two.above, abs=1e-15))


def test_constants_of_the_largest_gap_of_a_distribution_function():
    # Massart (1990): P(√n sup |F_n − F| > x) ≤ 2 exp(−2x²)
    two_sided = quad(lambda x: min(1, 2 * np.exp(-2 * x**2)), 0, 10, points=[0.5887])[0]
    # one-sided: exp(−2x²), where that is at most ½
    threshold = np.sqrt(np.log(2) / 2)
    one_sided = threshold + quad(lambda x: np.exp(-2 * x**2), threshold, 10)[0]
    for kind, bias in (("max", two_sided + 2 * one_sided), ("range", 4 * one_sided)):
        below, above = finite_sample_radius(
            "cumulative_calibration_error", 1, metric_params={"kind": kind}
        )
        assert below - above == pytest.approx(bias, abs=1e-7)


def changes(metric, params, n):
    """The largest change by one sample, over samples where all others have one residual."""
    largest = 0.0
    for p in (0.0, 0.9, 0.99, 1.0):
        first = np.r_[np.full(n - 1, p), 0.0], np.r_[np.ones(n - 1, dtype=int), 1]
        other = np.r_[np.full(n - 1, p), 1.0], np.r_[np.ones(n - 1, dtype=int), 0]
        one, two = (metric(y, q, labels=[0, 1], **params) for q, y in (first, other))
        largest = max(largest, abs(one - two))
    return n * largest


@all_cases
def test_one_sample_changes_the_error_by_no_more_than_assumed(metric, params):
    deviation = finite_sample_radius(
        metric.__name__, 1, metric_params=params, confidence_level=0.5, alternative="less"
    ).above
    if params.get("method") == "surrogate" or "tol" in params:
        deviation = np.sqrt(2 * np.log(2))  # 2·√(log(1/0.5)/(2n)), n = 1
    assumed = deviation / np.sqrt(np.log(2) / 2)
    slack = 300 * params.get("tol", 0)
    assert changes(metric, params, 300) <= assumed + slack + 1e-9
    if metric is smooth_calibration_error:  # and it may come as near to that as one likes
        assert changes(metric, params, 300) > 1.85


@pytest.mark.parametrize("bandwidth", [0.01, 0.05, 0.2, 1.0, 10.0])
def test_norm_of_two_residuals_of_the_laplace_kernel(bandwidth):
    grid = np.linspace(0, 1, 201)
    p, q = grid[:, None], grid
    kernel = np.exp(-np.abs(p - q) / bandwidth)
    worst = 0.0
    for r in (1 - p, -p):
        for s in (1 - q, -q):
            worst = max(worst, np.max(r**2 + s**2 - 2 * r * s * kernel))
    above = finite_sample_radius(
        "laplace_kernel_calibration_error",
        1,
        metric_params={"bandwidth": bandwidth},
        confidence_level=0.5,
        alternative="less",
    ).above
    assert np.sqrt(worst) == pytest.approx(above / np.sqrt(np.log(2) / 2), abs=1e-12)


@pytest.mark.parametrize("precision", [None, 0.1])
def test_surrogate_radius_is_the_least_over_widths(precision):
    n, error = 1000, 0.025
    options = {"method": "surrogate", "precision": precision}
    below, above = finite_sample_radius("interval_calibration_error", n, metric_params=options)
    last = 5 if precision else 24  # 0.1/4 < 2^−5 ≤ 0.1/2
    optima = list(range(last + 1)) + ([] if precision else [np.inf])
    bias = max(
        min(
            np.sqrt((2.0**k + 1) / n) + 2.0**-k - (2.0**-optimum)
            for k in range(last + 1)
            if k <= optimum
        )
        for optimum in optima
    )
    deviation = np.sqrt(2 * np.log(1 / error) / n)
    assert below == pytest.approx(bias + deviation, abs=1e-6)
    candidates = []
    for k in range(last + 1):
        rest = 0 if precision and k == last else 2.0**-k
        candidates.append(np.sqrt(2 * np.log((k + 1) / error) / n) + rest)
    assert above == pytest.approx(min(candidates), abs=1e-12)


def test_radius_of_the_mean_over_classes_covers():
    rng = np.random.default_rng(0)
    options = {"multi_class": "classwise", "labels": range(3)}
    below, above = finite_sample_radius(
        "smooth_calibration_error",
        60,
        metric_params={"multi_class": "classwise"},
        confidence_level=0.6,
    )
    proba = rng.dirichlet(np.ones(3), size=4000)
    truth = 0.0  # calibrated
    for _ in range(10):
        rows = rng.integers(0, 4000, size=60)
        label = (proba[rows].cumsum(axis=1) < rng.random((60, 1))).sum(axis=1)
        error = smooth_calibration_error(label, proba[rows], **options)
        assert error - below <= truth <= error + above


def test_radius_shrinks_like_the_root_of_n():
    for name in ("smooth_calibration_error", "laplace_kernel_calibration_error"):
        small, large = finite_sample_radius(name, 100), finite_sample_radius(name, 10_000)
        np.testing.assert_allclose(np.array(small), 10 * np.array(large))


def test_interval_covers_a_miscalibrated_model_at_a_large_number_of_samples():
    y_true, y_proba = make_temperature_family(10_000, inverse_temperature=3, random_state=0)
    error = smooth_calibration_error(y_true, y_proba)
    assert error - finite_sample_radius("smooth_calibration_error", 10_000).below > 0.02


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("expected_calibration_error", {}, "metric must be one with a known radius"),
        ("interval_calibration_error", {}, "method must be 'surrogate' or 'random-grid'"),
        (
            "interval_calibration_error",
            {"method": "surrogate", "n_draws": 3},
            "metric_params must be among",
        ),
        ("laplace_kernel_calibration_error", {"squared": True}, "metric_params must be among"),
        ("laplace_kernel_calibration_error", {"method": "fourier"}, "method must be 'exact'"),
        ("kernel_calibration_error", {}, "bandwidth must be a number"),
        ("kernel_calibration_error", {"kernel": abs, "bandwidth": 1.0}, "kernel must be 'exp"),
        ("smooth_calibration_error", {"multi_class": "top-label"}, "multi_class must be"),
        ("smooth_calibration_error", {"average": None}, "average must be"),
        (
            "smooth_calibration_error",
            {"multi_class": "classwise", "average": "weighted"},
            "average must be",
        ),
        (
            "interval_calibration_error",
            {"method": "surrogate", "multi_class": "classwise"},
            "multi_class must be",
        ),
    ],
)
def test_what_has_no_radius_is_refused(name, params, message):
    with pytest.raises(ValueError, match=message):
        finite_sample_radius(name, 100, metric_params=params)


def test_confidence_interval_is_the_estimate_and_the_radius():
    y, proba = make_temperature_family(200, inverse_temperature=3, random_state=0)
    for metric, params in (
        ("smooth_calibration_error", None),
        ("interval_calibration_error", {"method": "surrogate"}),
    ):
        options = {"metric_params": params, "confidence_level": 0.9}
        interval = confidence_interval(metric, y, proba, method="finite-sample", **options)
        below, above = finite_sample_radius(metric, 200, **options)
        function = getattr(metrics, metric)
        assert interval.estimate == function(y, proba, **params or {})
        assert interval.low == max(interval.estimate - below, 0)
        assert interval.high == interval.estimate + above
    laplace = partial(metrics.laplace_kernel_calibration_error, bandwidth=0.1)
    interval, with_labels = (
        confidence_interval(metric, y, proba, method="finite-sample")
        for metric in (laplace, partial(laplace, labels=[0, 1]))
    )
    assert with_labels == interval


def test_confidence_interval_without_a_known_radius():
    y, proba = make_temperature_family(200, random_state=0)
    with pytest.raises(ValueError, match="metric must be one with a known radius"):
        confidence_interval("expected_calibration_error", y, proba, method="finite-sample")
    with pytest.raises(ValueError, match="needs sample_weight=None; found some"):
        confidence_interval(
            "smooth_calibration_error", y, proba, sample_weight=np.ones(200), method="finite-sample"
        )


@pytest.mark.parametrize(
    ("metric", "params"),
    [
        ("lower_distance_to_calibration", {"tol": -3}),
        ("laplace_kernel_calibration_error", {"bandwidth": 0}),
        ("cumulative_calibration_error", {"kind": "foo"}),
        ("interval_calibration_error", {"method": "random-grid"}),
        ("interval_calibration_error", {"method": "random-grid", "width": 0}),
        ("interval_calibration_error", {"method": "surrogate", "precision": -1}),
    ],
)
def test_arguments_of_the_metric_are_judged(metric, params):
    with pytest.raises(ValueError, match=list(params)[-1] if len(params) > 1 else "met|width|par"):
        finite_sample_radius(metric, 100, metric_params=params)


def test_few_samples_and_functions_are_taken():
    y, proba = [0, 1, 1], [0.2, 0.7, 0.6]
    by_name = confidence_interval("smooth_calibration_error", y, proba, method="finite-sample")
    assert by_name.low == 0
    assert by_name == confidence_interval(
        smooth_calibration_error, y, proba, method="finite-sample"
    )
