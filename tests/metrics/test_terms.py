"""Laws of the terms whose sum is a metric: of every metric that declares them, by all lenses."""

from functools import cache, partial

import numpy as np
import pytest
from cases import METRIC_CASES
from problems import labels_of, problem
from scipy import stats

from skcalib._data import check_forecasts, check_predictions
from skcalib.forecasts import DistributionForecast
from skcalib.lenses import BinaryProblem, Ordinal, TopK
from skcalib.metrics import (
    any_decision_calibration_error,
    decision_calibration_error,
    expected_calibration_error,
    kernel_calibration_error,
    laplace_kernel_calibration_error,
    squared_kernel_calibration_error,
)
from skcalib.metrics._registry import find_entry, resolve_metric
from skcalib.metrics._terms import Witness, witness_terms

# Metrics and options without terms: what they take cannot be written as a sum, or is not.
WITHOUT_TERMS = {
    "conditional",
    "conditional, fourier",
    "conditional, nystroem",
    "conditional, standardized",
    "conditional_kernel_calibration_error",
    "expected, debiased",
    "integrated, E90",
    "integrated_calibration_index",
    "interval, cells",
    "interval_calibration_error",
    "interval, drawn grid",
    "interval, drawn surrogate",
    "interval, random grid",
    "interval, surrogate",
    "laplace, binning",
    "laplace, fourier",
    "laplace, subsample",
    "smooth expected, bandwidth",
    "smooth expected, top-label",
    "smooth_expected_calibration_error",
    "upper_distance_to_calibration",
    "weighted",
    "weighted, classwise",
    "weighted, monotone",
}


def matrices(s, t):
    """A kernel whose values are matrices (K, K), which tell the classes apart."""
    distance = np.abs(s[:, None] - t[None]).sum(axis=2)
    n_classes = s.shape[1]
    by_class = np.eye(n_classes) + np.diag(np.arange(n_classes))
    return np.exp(-distance)[:, :, None, None] * by_class


def asymmetric(y):
    """The losses of two actions, whatever the number of classes, (n, 2)."""
    return np.column_stack([(y - 0.2) ** 2, 3 * (y - 1.0) ** 2])


# Options for which terms have branches of their own.
OTHER_OPTIONS = {
    "expected, max, distance": partial(
        expected_calibration_error, norm="max", distance="sqeuclidean"
    ),
    "expected, l2, distance": partial(
        expected_calibration_error, norm="l2", distance="sqeuclidean", n_bins=3
    ),
    "expected, l1, distance": partial(expected_calibration_error, distance="cityblock"),
    "expected, equal widths": partial(expected_calibration_error, add_bin_width=True),
    "kernel, matrices": partial(kernel_calibration_error, kernel=matrices),
    "kernel, unbiased matrices": partial(squared_kernel_calibration_error, kernel=matrices),
    "laplace, squared": partial(laplace_kernel_calibration_error, squared=True),
    "decision, losses": partial(decision_calibration_error, loss=asymmetric),
    "decision, losses of the chosen": partial(
        decision_calibration_error, loss=asymmetric, compared_actions="chosen", given="action"
    ),
    "any decision, three actions": partial(any_decision_calibration_error, n_actions=3),
}
# All lenses take the place of these.
OF_A_LENS = {"lower distance, classwise", "smooth, classwise", "smooth, top-label"}

CASES = METRIC_CASES | OTHER_OPTIONS
WITH_TERMS = {name: case for name, case in CASES.items() if name not in WITHOUT_TERMS | OF_A_LENS}

with_terms = pytest.mark.parametrize("metric", WITH_TERMS.values(), ids=WITH_TERMS)


class Halves:
    """A lens of problems of some samples, whose weights say nothing of these."""

    average = "weighted"

    def reduce(self, data):
        is_low = data.matrix[:, 0] < 0.4
        for k, half in enumerate((is_low, ~is_low)):
            yield BinaryProblem(data.label[half] == k, data.matrix[half, k], 1 + 2 * k, rows=half)


# All kinds of lenses and averages.
REDUCTIONS = [
    ("canonical", "auto"),
    (Halves(), "auto"),
    (Halves(), "macro"),
    ("confidence", "auto"),
    ("top-label", "auto"),
    ("top-label", "macro"),
    ("classwise", "macro"),
    ("classwise", "weighted"),
    (Ordinal(), "weighted"),
    (TopK(2), "auto"),
]


def iter_options(metric, data, fixed=None):
    """All options of a case, with each of the reductions that it takes."""
    entry = find_entry(metric)
    fixed = {name: value for name, value in (fixed or {}).items() if name in entry.options}
    if "multi_class" not in entry.options:
        yield entry.validate_options(entry.fixed | fixed)
        return
    for lens, average in REDUCTIONS[: 2 if data.is_binary else None]:
        options = {"multi_class": lens, "average": average}
        try:
            options = entry.validate_options(entry.fixed | fixed | options)
            entry.compute(data, **options)
        except ValueError:  # not all cases take "canonical"
            continue
        yield options


def classes(n_classes, weighted=True):
    label, proba = problem(n_classes)
    weight = np.random.default_rng(1).random(len(label)) if weighted else None
    return check_predictions(label, proba, weight, labels=range(n_classes))


def test_options_without_terms_are_known():
    for name in WITHOUT_TERMS:
        entry, options = resolve_metric(METRIC_CASES[name])
        assert entry.terms is None or entry.terms(classes(3), **options) is None
    entry, options = resolve_metric("smooth_calibration_error", {"multi_class": "classwise"})
    assert entry.terms(classes(3), **options | {"average": None}) is None  # three numbers


@with_terms
def test_the_sum_of_the_terms_is_the_metric(metric):
    entry = find_entry(metric)
    for data in (classes(2), classes(2, weighted=False), classes(3)):
        for options in iter_options(metric, data):
            terms = entry.terms(data, **options)
            actual = terms.sum_by_sample(len(data.weight)).sum()
            expected = entry.compute(data, **options)
            np.testing.assert_allclose(actual, expected, rtol=1e-12, err_msg=str(options))


def distance_from_delete_one(entry, data, options):
    """The largest distance of a term from what the sample changes, in units of the largest term.

    Without a sample of weight w, the weights of the others have the sum 1 − w.
    """
    value, weight = entry.compute(data, **options), np.asarray(data.weight)
    terms = entry.terms(data, **options).sum_by_sample(len(weight)) / weight
    rows = np.array([1, 12, 33, 59])
    others = (data.take(np.delete(np.arange(len(weight)), i)) for i in rows)
    change = value - np.array([entry.compute(part, **options) for part in others])
    distance = terms[rows] - value - change * (1 / weight[rows] - 1)
    return np.abs(distance).max() / np.abs(terms).max()


@cache
def wrong_model(n, n_classes):
    """A few predictions, each of a share of the samples, that give classes each other's chances."""
    rng = np.random.default_rng(4)
    level = rng.dirichlet(np.ones(n_classes), size=5)[np.arange(n) % 5]
    label = labels_of(np.roll(level, 1, axis=1), rng)
    weight = rng.uniform(0.5, 1.5, size=n)
    return check_predictions(label, level, weight, labels=range(n_classes))


# Options with which cells do not move with the samples, and values are exact.
SMOOTH = {"bandwidth": 0.3, "n_bins": 3, "strategy": "uniform", "tol": 1e-5, "precision": None}

# What a lens does with the terms of a problem does not depend on the metric.
MEASURED_BY_ALL_LENSES = ("expected_calibration_error", "smooth_calibration_error")


@with_terms
def test_terms_are_what_single_samples_change(metric):
    entry = find_entry(metric)
    n_reductions = 2 if entry.name not in MEASURED_BY_ALL_LENSES else None
    for n_classes in (2, 3):
        reductions = [*iter_options(metric, wrong_model(100, n_classes), SMOOTH)]
        for options in reductions[:n_reductions]:
            for n in (100, 400):
                distance = distance_from_delete_one(entry, wrong_model(n, n_classes), options)
                assert distance < 5 / n, (n, n_classes, options)


@with_terms
def test_terms_of_other_outcomes_are_of_the_same_sum(metric):
    """Observed ones are among them; and errors that are convex are at least what the sum says.

    Such an error is a supremum of sums, or smooth and above its tangents.
    """
    entry = find_entry(metric)
    is_concave = "joint" in entry.name
    for data in (classes(2), classes(3)):
        rows, n_classes = np.arange(len(data.weight)), len(data.classes)
        for options in iter_options(metric, data):
            terms = entry.terms(data, **options)
            assert (terms.possible == terms.observed[:, None]).any(axis=1).all()
            np.testing.assert_allclose(terms.proba.sum(axis=1), 1, rtol=1e-12)
            if terms.row is not None:
                continue
            np.testing.assert_array_equal(terms.possible[rows, data.label], terms.observed)
            if is_concave or options.get("estimation") == "unbiased":
                continue
            for shift in range(1, n_classes):
                label = (data.label + shift) % n_classes
                bound = terms.weight @ terms.possible[rows, label]
                other = entry.compute(data.with_outcome(label), **options)
                assert bound <= other + 1e-12, options


def test_what_is_expected_of_the_outcomes_is_the_offset():
    rng = np.random.default_rng(0)
    factor, offset = rng.normal(size=(40, 3)), rng.normal(size=40)
    terms = witness_terms(lambda data: Witness(factor, offset))(classes(3))
    expected = np.sum(terms.proba * terms.possible, axis=1)
    np.testing.assert_allclose(expected, offset, atol=1e-12)
    label = classes(3).label
    factors = np.take_along_axis(factor, label[:, None], axis=1)[:, 0]
    expected = factors - np.sum(factor * classes(3).proba, axis=1) + offset
    np.testing.assert_allclose(terms.observed, expected, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("metric", WITH_TERMS.values(), ids=WITH_TERMS)
def test_an_error_of_zero_has_finite_terms(metric, n_classes):
    entry = find_entry(metric)
    label = np.arange(12) % n_classes
    data = check_predictions(label, np.eye(n_classes)[label], labels=range(n_classes))
    for options in iter_options(metric, data):
        terms = entry.terms(data, **options)
        assert np.isfinite(terms.possible).all()
        value = entry.compute(data, **options)  # 0, but for the widths of bins
        assert terms.weight @ terms.observed == pytest.approx(value, abs=1e-12)


# Forecasts: outcomes are no classes, so that terms of the observed ones are all there are.
FORECASTS = {
    "normal": DistributionForecast(stats.norm(np.linspace(0, 1, 60), 1.0)),
    "counts": DistributionForecast(stats.poisson(np.linspace(1, 4, 60))),
}
FORECAST_OPTIONS = {
    f"decision, {actions}, {given}": (
        "decision_calibration_error",
        {"loss": 0.7, "compared_actions": actions, **given},
    )
    for actions in ("all", "chosen")
    for given in ({}, {"given": "action"})
}


@pytest.mark.parametrize("forecast", FORECASTS.values(), ids=FORECASTS)
@pytest.mark.parametrize("case", FORECAST_OPTIONS.values(), ids=FORECAST_OPTIONS)
def test_terms_of_forecasts(case, forecast):
    rng = np.random.default_rng(1)
    entry, options = resolve_metric(*case)
    y = np.round(1 + rng.gamma(1, 2, size=60), 0 if forecast is FORECASTS["counts"] else 3)
    data = check_forecasts(y, forecast, sample_weight=rng.uniform(0.5, 1.5, size=60))
    value = entry.compute(data, **options)
    np.testing.assert_allclose(
        entry.terms(data, **options).sum_by_sample(60).sum(), value, rtol=1e-12
    )
    for copies in (1, 4):
        many = data.take(np.tile(np.arange(60), copies))
        assert distance_from_delete_one(entry, many, options) < 8 / (60 * copies)


@pytest.mark.parametrize("estimation", ["biased", "unbiased"])
@pytest.mark.parametrize("kernel", ["exponential", "rbf", "intersection"])
def test_terms_of_classes_with_a_kernel(kernel, estimation):
    root = np.array([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [-0.2, 0.3, 2.0]])
    for n_classes in (2, 3):
        class_kernel = root[:n_classes, :n_classes] @ root[:n_classes, :n_classes].T
        options = {"kernel": kernel, "estimation": estimation, "class_kernel": class_kernel}
        entry, options = resolve_metric("squared_kernel_calibration_error", options)
        data = classes(n_classes)
        terms, value = entry.terms(data, **options), entry.compute(data, **options)
        np.testing.assert_allclose(terms.weight @ terms.observed, value, rtol=1e-12)
