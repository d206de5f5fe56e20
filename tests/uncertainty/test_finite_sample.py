"""The radius that holds at every number of samples, and the bounds that it is made of."""

from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad

from skcalib import metrics
from skcalib.datasets import make_hard_instance, make_temperature_family
from skcalib.uncertainty import confidence_interval, finite_sample_radius

SMOOTH, LOWER = "smooth_calibration_error", "lower_distance_to_calibration"
LAPLACE, KERNEL = "laplace_kernel_calibration_error", "kernel_calibration_error"
INTERVAL, CUMULATIVE = "interval_calibration_error", "cumulative_calibration_error"
GRID, SURROGATE = {"method": "random-grid"}, {"method": "surrogate"}

# Massart (1990): P(√n sup |F_n − F| > x) ≤ 2 exp(−2x²); on one side exp(−2x²), where that is ≤ ½
TWO_SIDED = quad(lambda x: min(1, 2 * np.exp(-2 * x**2)), 0, 10, points=[0.5887])[0]
HALF = np.sqrt(np.log(2) / 2)
ONE_SIDED = HALF + quad(lambda x: np.exp(-2 * x**2), HALF, 10)[0]

# What one sample changes, times n; the bias, times √n; what is added above.
CONSTANTS = {
    "smooth": (SMOOTH, {}, 2, 1.5, 0),
    "lower": (LOWER, {"tol": 1e-2}, 2, 1, 1e-2),
    "laplace": (LAPLACE, {"bandwidth": 0.2}, np.sqrt(2 + 2 * np.exp(-5)), 1, 0),
    "kernel": (KERNEL, {"kernel": "rbf", "bandwidth": 0.3}, np.sqrt(8), np.sqrt(2), 0),
    # a grid of width 0.15 has at most 8 intervals that meet [0, 1]
    "grid": (INTERVAL, GRID | {"width": 0.15}, 2, np.sqrt(8), 0),
    "cumulative": (CUMULATIVE, {}, 2, TWO_SIDED + 2 * ONE_SIDED, 0),
    "cumulative, range": (CUMULATIVE, {"norm": "range"}, 2, 4 * ONE_SIDED, 0),
}
CASES = {key: row[:2] for key, row in CONSTANTS.items()} | {
    "surrogate": (INTERVAL, SURROGATE),
    "surrogate, precision": (INTERVAL, SURROGATE | {"precision": 0.1}),
}


@pytest.mark.parametrize("key", CONSTANTS)
def test_radius_by_hand(key):
    name, params, change, bias, slack = CONSTANTS[key]
    for n, alternative, delta in ((100, "two-sided", 0.05), (7, "greater", 0.1), (7, "less", 0.1)):
        deviation = change * np.sqrt(np.log(1 / delta) / (2 * n))
        expected = bias / np.sqrt(n) + deviation, deviation + slack
        if alternative != "two-sided":
            expected = (expected[0], np.inf) if alternative == "greater" else (np.inf, expected[1])
        options = {"confidence_level": 0.9, "alternative": alternative}
        assert finite_sample_radius(name, n, metric_params=params, **options) == pytest.approx(
            expected, abs=1e-7
        )
    default = finite_sample_radius(name, 100, metric_params=params)
    params = params | {"labels": [0, 1]}
    assert default == finite_sample_radius(name, 100, metric_params=params, confidence_level=0.95)


def draw_from(name):
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


@pytest.mark.parametrize("name", ["calibrated", "off", "opposite", "two points"])
@pytest.mark.parametrize(("metric", "params"), CASES.values(), ids=CASES)
def test_coverage_is_at_least_nominal_and_bias_within_its_bound(metric, params, name):
    measure = partial(getattr(metrics, metric), labels=[0, 1], **params)
    radius = partial(finite_sample_radius, metric, 40, metric_params=params)
    points, weight = draw_from(name)
    m = len(points)
    truth = measure(np.repeat([0, 1], m), np.tile(points, 2), sample_weight=weight.ravel())
    cells = np.random.default_rng(0).choice(2 * m, p=weight.ravel(), size=(25, 40))
    errors = np.array([measure(cell // m, points[cell % m]) for cell in cells])
    # at a level of 0.6, where each side may fail in every fifth repetition
    below, above = radius(confidence_level=0.6)
    assert np.mean((errors - below <= truth) & (truth <= errors + above)) >= 0.6
    # at a confidence level near 0 hardly more than the bound on the bias is left below
    below, _ = radius(confidence_level=1e-9, alternative="greater")
    assert np.mean(errors) - truth <= below + 4 * np.std(errors) / 5


@pytest.mark.parametrize("key", CASES)
def test_one_sample_changes_the_error_by_no_more_than_assumed(key):
    name, params, change, _, slack = CONSTANTS.get(key, (*CASES[key], 2, None, 0))
    changes, n = [], 300
    for p in (0.0, 0.9, 0.99, 1.0):  # all others have one residual
        label, proba = np.ones(n, dtype=int), np.full(n, p)
        values = []
        for label[-1], proba[-1] in ((1, 0.0), (0, 1.0)):
            values.append(getattr(metrics, name)(label, proba, labels=[0, 1], **params))
        changes.append(n * abs(values[0] - values[1]))
    assert max(changes) <= change + n * slack + 1e-9
    if name == SMOOTH:  # and it may come as near to that as one likes
        assert max(changes) > 1.85


@pytest.mark.parametrize("bandwidth", [0.01, 0.2, 10.0])
def test_norm_of_two_residuals_of_the_laplace_kernel(bandwidth):
    p = np.linspace(0, 1, 201)
    kernel = np.exp(-np.abs(p[:, None] - p) / bandwidth)
    pairs = [(r[:, None], s) for r in (1 - p, -p) for s in (1 - p, -p)]
    worst = max(np.max(r**2 + s**2 - 2 * r * s * kernel) for r, s in pairs)
    options = {"metric_params": {"bandwidth": bandwidth}, "confidence_level": 0.5}
    above = finite_sample_radius(LAPLACE, 1, **options, alternative="less").above
    assert above == pytest.approx(np.sqrt(worst * np.log(2) / 2), abs=1e-12)


@pytest.mark.parametrize("precision", [None, 0.1])
def test_surrogate_radius_is_the_least_over_widths(precision):
    n, error, last = 1000, 0.025, 5 if precision else 24  # 0.1/4 < 2^−5 ≤ 0.1/2
    options = SURROGATE | {"precision": precision}
    below, above = finite_sample_radius(INTERVAL, n, metric_params=options)
    bias = max(
        min(np.sqrt((2.0**k + 1) / n) + 2.0**-k - 2.0**-end for k in range(min(end, last) + 1))
        for end in [*range(last + 1), *([] if precision else [1000])]
    )
    assert below == pytest.approx(bias + np.sqrt(2 * np.log(1 / error) / n), abs=1e-6)
    rest = [0 if precision and k == last else 2.0**-k for k in range(last + 1)]
    least = min(np.sqrt(2 * np.log((k + 1) / error) / n) + r for k, r in enumerate(rest))
    assert above == pytest.approx(least, abs=1e-12)


def test_radius_of_the_mean_over_classes_covers():
    rng = np.random.default_rng(0)
    params = {"multi_class": "classwise"}
    below, _ = finite_sample_radius(SMOOTH, 60, metric_params=params, confidence_level=0.6)
    proba = rng.dirichlet(np.ones(3), size=(10, 60))  # calibrated
    labels = (proba.cumsum(axis=2) < rng.random((10, 60, 1))).sum(axis=2)
    for label, p in zip(labels, proba, strict=True):
        assert metrics.smooth_calibration_error(label, p, labels=range(3), **params) <= below


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("expected_calibration_error", {}, "metric must be one with a known radius"),
        (INTERVAL, {}, "method must be 'surrogate' or 'random-grid'"),
        (INTERVAL, SURROGATE | {"n_draws": 3}, "metric_params must be among"),
        (INTERVAL, SURROGATE | {"multi_class": "classwise"}, "multi_class must be"),
        (INTERVAL, SURROGATE | {"precision": -1}, "precision"),
        (INTERVAL, GRID, "must hold the width"),
        (INTERVAL, GRID | {"width": 0}, "width"),
        (LAPLACE, {"squared": True}, "metric_params must be among"),
        (LAPLACE, {"method": "fourier"}, "method must be 'exact'"),
        (LAPLACE, {"bandwidth": 0}, "The 'bandwidth' parameter"),
        (KERNEL, {}, "bandwidth must be a number"),
        (KERNEL, {"kernel": abs, "bandwidth": 1.0}, "kernel must be 'exp"),
        (LOWER, {"tol": -3}, "The 'tol' parameter"),
        (CUMULATIVE, {"norm": "foo"}, "The 'norm' parameter"),
        (SMOOTH, {"multi_class": "top-label"}, "multi_class must be"),
        (SMOOTH, {"average": None}, "average must be"),
        (SMOOTH, {"multi_class": "classwise", "average": "weighted"}, "average must be"),
    ],
)
def test_what_has_no_radius_is_refused(name, params, message):
    with pytest.raises(ValueError, match=message):
        finite_sample_radius(name, 100, metric_params=params)
    with pytest.raises(ValueError, match=message):
        confidence_interval(name, [0, 1], [0.2, 0.7], method="finite-sample", metric_params=params)


@pytest.mark.parametrize(("name", "params"), [(SMOOTH, {}), (INTERVAL, SURROGATE)])
def test_confidence_interval_is_the_estimate_and_the_radius(name, params):
    y, proba = make_temperature_family(200, inverse_temperature=3, random_state=0)
    function = partial(getattr(metrics, name), labels=[0, 1], **params)
    for n in (3, 200):
        data, options = (y[:n], proba[:n]), {"method": "finite-sample"}
        interval = confidence_interval(name, *data, metric_params=params, **options)
        below, above = finite_sample_radius(name, n, metric_params=params)
        estimate = function(*data)
        assert (interval.estimate, interval.low) == (estimate, max(estimate - below, 0))
        assert interval.high == min(estimate + above, 1)
        assert interval == confidence_interval(function, *data, **options)
    with pytest.raises(ValueError, match="needs sample_weight=None; found some"):
        confidence_interval(name, y, proba, sample_weight=proba, method="finite-sample")
