"""Every callable that takes `n_bins`: edges of equal width are their number, or are refused."""

import inspect
from dataclasses import fields, is_dataclass
from functools import partial

import matplotlib as mpl
import numpy as np
import pytest
from scipy.stats import binned_statistic, norm

from skcalib import display, forecasts, hypothesis_tests, losses, metrics, recalibration
from skcalib.streaming import CalibrationState
from skcalib.uncertainty import confidence_interval

mpl.use("Agg")
MODULES = (display, forecasts, hypothesis_tests, losses, metrics, recalibration)

RNG = np.random.default_rng(0)
PROBA = np.concatenate([RNG.random(60), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]])
LABEL = np.asarray(RNG.random(66) < PROBA**2)
MATRIX = RNG.dirichlet(np.ones(3), size=66)
CLASS = np.arange(66) % 3
NUMBER = RNG.normal(size=66) * 1.5
FORECAST = (np.zeros(66), np.ones(66))
UNEQUAL = [0, 0.001, 0.01, 0.1, 0.5, 1]


def make_display(cls, data, **options):
    return cls.from_predictions(*data, **options)


def fit(cls, proba, label, *attributes, **options):
    model = cls(**options).fit(proba, label)
    return [getattr(model, name) for name in attributes]


# What each makes of the number of bins.
USES = {
    "expected_calibration_error": partial(metrics.expected_calibration_error, LABEL, PROBA),
    "reliability_curve": partial(
        metrics.reliability_curve, LABEL, PROBA, method="binned", random_state=0
    ),
    "ReliabilityDisplay": partial(
        make_display,
        display.ReliabilityDisplay,
        (LABEL, PROBA),
        method="binned",
        random_state=0,
        n_resamples=9,
    ),
    "pit_histogram": partial(metrics.pit_histogram, NUMBER, FORECAST, random_state=0),
    "PITHistogramDisplay": partial(
        make_display, display.PITHistogramDisplay, (NUMBER, FORECAST), random_state=0, n_resamples=9
    ),
}
# Its groups are of equal mass, so that edges are another request.
USES_EDGES = USES | {
    "HosmerLemeshowTest": partial(
        fit, hypothesis_tests.HosmerLemeshowTest, PROBA, LABEL, "statistic_", n_resamples=9
    )
}
# Those whose bins have no edges from 0 to 1, or one number of them for each class.
NUMBER_ONLY = {
    "IntervalBinningRecalibrator": partial(
        fit, recalibration.IntervalBinningRecalibrator, PROBA, LABEL
    ),
    "ScalingBinningRecalibrator": partial(
        fit, recalibration.ScalingBinningRecalibrator, PROBA, LABEL
    ),
    "SimplexDisplay": partial(make_display, display.SimplexDisplay, (CLASS, MATRIX)),
    "find_miscalibrated_subgroups": partial(
        hypothesis_tests.find_miscalibrated_subgroups, PROBA, LABEL, {"age": PROBA}
    ),
    "soft_binned_calibration_loss": partial(losses.soft_binned_calibration_loss, LABEL, PROBA),
}


def numbers_of(value):
    """All numbers in a result, as flat arrays."""
    if isinstance(value, list | tuple):
        return [number for item in value for number in numbers_of(item)]
    if is_dataclass(value):
        return numbers_of([getattr(value, field.name) for field in fields(value)])
    try:
        return [np.asarray(value, dtype=np.float64).ravel()]
    except (TypeError, ValueError):
        return []


def test_every_callable_with_bins_is_named_here():
    callables = {name: getattr(module, name) for module in MODULES for name in module.__all__}
    takes = {
        name
        for name, item in callables.items()
        for function in (item, getattr(item, "from_predictions", item))
        if callable(function) and "n_bins" in inspect.signature(function).parameters
    }
    assert takes == USES_EDGES.keys() | NUMBER_ONLY.keys()


@pytest.mark.parametrize("name", USES)
def test_edges_of_equal_width_are_their_number(name):
    # 66 samples: five bins by the cube root rule
    number, *same = (
        numbers_of(USES[name](n_bins=bins)) for bins in (5, (0, 0.2, 0.4, 0.6, 0.8, 1), "auto")
    )
    for other in same:
        for expected, found in zip(number, other, strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", USES_EDGES)
@pytest.mark.parametrize(
    "edges", [[0.0, 0.5], [0.5, 1.0], [0, 0.5, 0.5, 1], [0, 0.6, 0.5, 1], [], "sqrt", [[0, 1]]]
)
def test_what_are_no_edges_is_refused(name, edges):
    with pytest.raises(ValueError, match="edges of bins that increase from 0 to 1"):
        USES_EDGES[name](n_bins=edges)


@pytest.mark.parametrize("name", NUMBER_ONLY)
def test_a_number_is_a_number(name):
    with pytest.raises(ValueError, match=r"n_bins.*an int from"):
        NUMBER_ONLY[name](n_bins=[0, 0.5, 1])


@pytest.mark.parametrize(
    "use",
    [
        partial(metrics.expected_calibration_error, LABEL, PROBA, strategy="quantile"),
        partial(metrics.reliability_curve, LABEL, PROBA, method="binned", strategy="quantile"),
    ],
)
def test_edges_that_would_be_moved_are_refused(use):
    with pytest.raises(ValueError, match="strategy must be 'uniform', which keeps the edges"):
        use(n_bins=[0, 0.5, 1])


# Unequal edges against the bins of SciPy and NumPy


def mean_in_bins(values):
    return binned_statistic(PROBA, values, bins=UNEQUAL).statistic


def test_curve_and_errors_in_unequal_bins():
    share = binned_statistic(PROBA, None, "count", bins=UNEQUAL).statistic / len(PROBA)
    predicted, observed = mean_in_bins(PROBA), mean_in_bins(LABEL)
    filled = share > 0
    curve = metrics.reliability_curve(LABEL, PROBA, method="binned", n_bins=UNEQUAL, band=None)
    np.testing.assert_allclose(curve.predicted, predicted[filled], atol=1e-12)
    np.testing.assert_allclose(curve.observed, observed[filled], atol=1e-12)
    np.testing.assert_array_equal(curve.edges, UNEQUAL)
    error = np.nansum(share * np.abs(predicted - observed))
    assert curve.error == pytest.approx(error, abs=1e-12)
    ece = partial(metrics.expected_calibration_error, LABEL, PROBA, n_bins=UNEQUAL)
    assert ece() == pytest.approx(error, abs=1e-12)
    assert ece(add_bin_width=True) == pytest.approx(error + share @ np.diff(UNEQUAL), abs=1e-12)


def test_hosmer_lemeshow_in_unequal_bins():
    proba, label = np.clip(PROBA, 0.001, 0.999), LABEL
    count, expected, observed = (
        binned_statistic(proba, values, "sum", bins=UNEQUAL).statistic
        for values in (np.ones(66), proba, label)
    )
    n, e, o = (values[count > 0] for values in (count, expected, observed))
    statistic = np.sum((o - e) ** 2 / (e * (1 - e / n)))  # Hosmer and Lemeshow
    test = hypothesis_tests.HosmerLemeshowTest(UNEQUAL, method="asymptotic").fit(proba, label)
    assert test.statistic_ == pytest.approx(statistic, rel=1e-12)
    assert test.degrees_of_freedom_ == len(n)


def test_pit_histogram_in_unequal_bins():
    edges = [0, 0.05, 0.25, 0.9, 1]
    density = np.histogram(norm.cdf(NUMBER), edges, density=True)[0]
    histogram = metrics.pit_histogram(NUMBER, FORECAST, n_bins=edges, confidence_level=None)
    np.testing.assert_allclose(histogram.density, density, atol=1e-12)


def test_a_soft_label_is_two_weighted_rows():
    share, proba = np.array([0.3, 0.6, 1.0, 0.0]), np.array([0.2, 0.7, 0.9, 0.1])
    with pytest.raises(ValueError, match="soft label s is exactly two rows") as refusal:
        metrics.expected_calibration_error(share, proba)
    line = str(refusal.value).partition(": y_true=")[2].rstrip(".")
    names = {"np": np, "s": share, "p": proba}
    arguments = eval(f"dict(y_true={line})", names)  # what the message says works as it stands
    error = metrics.expected_calibration_error(**arguments, n_bins=2)
    by_hand = (abs(0.3 - 0.2 + 0.0 - 0.1) + abs(0.6 - 0.7 + 1.0 - 0.9)) / 4
    assert error == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize("bins", [UNEQUAL, "auto"])
def test_tests_intervals_and_states_take_edges(bins):
    name, params = "expected_calibration_error", {"n_bins": bins}
    error = metrics.expected_calibration_error(LABEL, PROBA, **params)
    test = hypothesis_tests.CalibrationTest(name, n_resamples=9, metric_params=params)
    assert test.fit(PROBA, LABEL).statistic_ == pytest.approx(error, abs=1e-12)
    interval = confidence_interval(name, LABEL, PROBA, metric_params=params, random_state=0)
    assert interval.estimate == pytest.approx(error, abs=1e-12)
    state = CalibrationState().update(LABEL, PROBA)
    assert state.evaluate(name, **params).value == pytest.approx(error, abs=1e-4)
