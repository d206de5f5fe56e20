"""Laws of intervals and comparisons: of every metric that can be named, and of all predictions."""

import numpy as np
import pytest
from problems import random_problem
from sklearn.metrics import brier_score_loss, log_loss

from skcalib.forecasts import EnsembleForecast, GaussianForecast
from skcalib.lenses import Multilabel
from skcalib.metrics._registry import ALL_METRICS, METRICS, SIGNED_METRICS
from skcalib.uncertainty import clinical_calibration, compare_models, confidence_interval

N = 12

# Metrics whose values of three classes or of matrices of labels take longer than the others. That
# of two takes 9 s of the upper distance, each value of which is a program in integers.
SLOW = {"upper_distance_to_calibration", "joint_kernel_calibration_error"}
SLOW |= {"any_decision_calibration_error", "lower_distance_to_calibration"}
SLOW |= {"smooth_expected_calibration_error"}


def classes(n_classes, n=N, seed=0):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, n, n_classes)
    label[:n_classes] = range(n_classes)
    other = proba**2 if n_classes == 2 else proba**2 / np.sum(proba**2, axis=1, keepdims=True)
    return label, proba, other, {"labels": range(n_classes)}


def multilabel(n=N):
    rng = np.random.default_rng(0)
    proba = rng.random((n, 2))
    label = (rng.random((n, 2)) < proba).astype(int)
    return label, proba, proba**2, {"metric_params": {"multi_class": Multilabel()}}


def forecasts(kind, n=N):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=n)
    y = rng.normal(mean)
    if kind == "normal":
        models = [GaussianForecast(mean + shift, 1.0) for shift in (0, 0.5)]
    else:
        members = rng.normal(mean[:, None], 1, size=(n, 5))
        models = [EnsembleForecast(members + shift) for shift in (0, 0.5)]
    return y, *models, {}


def all_cases():
    for name, metric in (ALL_METRICS | SIGNED_METRICS).items():
        if "classes" in metric.takes:
            yield name, "two classes", classes(2)
            if name not in SIGNED_METRICS and name not in SLOW:
                yield name, "three classes", classes(3)
            if "multi_class" in metric.options and name not in SLOW:
                yield name, "labels of a matrix", multilabel()
        if "forecasts" in metric.takes and name != "decision_calibration_error":  # of a loss
            yield name, "normal forecasts", forecasts("normal")
            if name != "negative_log_likelihood":  # ensembles have no density
                yield name, "ensembles", forecasts("ensemble")


CASES = {f"{name}, {kind}": (name, data) for name, kind, data in all_cases()}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        pytest.param(*case, marks=pytest.mark.slow if case[0].startswith("upper") else (), id=key)
        for key, case in CASES.items()
    ],
)
def test_every_metric_has_an_interval_and_a_comparison(name, data):
    y, a, b, options = *data[:3], dict(data[3])
    metric = (ALL_METRICS | SIGNED_METRICS)[name]
    if metric.requires_given:
        options |= {"given": np.random.default_rng(1).normal(size=(N, 2))}
    level, n_resamples = (0.8, 9) if name in SLOW else (0.9, 19)
    options |= {"confidence_level": level, "n_resamples": n_resamples, "random_state": 0}
    interval = confidence_interval(name, y, a, **options)
    least = -np.inf if metric.may_be_negative else 0.0
    assert interval.low <= max(interval.estimate, least) <= interval.high
    assert np.isfinite(interval.high)
    result = compare_models(name, y, a, b, **options)
    assert result.estimate_a == pytest.approx(interval.estimate, rel=1e-12)
    assert result.low <= result.difference <= result.high
    # 0 lies outside if and only if the p-value is small
    is_outside = not result.low <= 0 <= result.high
    assert is_outside == (result.p_value <= 1 - level + 1e-12)


@pytest.mark.parametrize("name", ["expected_calibration_error", "log_loss", *SIGNED_METRICS])
def test_one_sided_ends_are_those_of_two_sides(name):
    y, a, b, _ = classes(2, 60)
    metric = log_loss if name == "log_loss" else name
    options = {"n_resamples": 39, "random_state": 0}
    for function, models in ((confidence_interval, [a]), (compare_models, [a, b])):
        both = function(metric, y, *models, confidence_level=0.9, **options)
        lower, upper = (
            function(metric, y, *models, confidence_level=0.95, alternative=side, **options)
            for side in ("greater", "less")
        )
        assert (lower.low, upper.high) == pytest.approx((both.low, both.high), rel=1e-6)
        if function is compare_models:
            p_values = min(lower.p_value, upper.p_value)
            assert both.p_value == pytest.approx(min(1, 2 * p_values))
            swapped = compare_models(metric, y, b, a, alternative="less", **options)
            if metric != "expected_calibration_error":  # its world in the middle is another
                assert swapped.p_value == pytest.approx(lower.p_value, rel=1e-9)


DRAWN_FROM_NOTHING = {
    **{name: (name, classes(2, 60)) for name in SIGNED_METRICS},
    "log loss": (log_loss, classes(2, 60)),
    "Brier score": (brier_score_loss, classes(2, 60)),
    "log loss of three classes": (log_loss, classes(3, 60)),
    "ranked": ("continuous_ranked_probability_loss", forecasts("normal", 60)),
    "intervals of ensembles": ("interval_loss", forecasts("ensemble", 60)),
}


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("metric", "data"), DRAWN_FROM_NOTHING.values(), ids=DRAWN_FROM_NOTHING)
def test_means_and_signed_measures_depend_on_neither_seed_nor_order(metric, data, grouped):
    y, a, b, _ = data
    rng = np.random.default_rng(0)
    order, weight = rng.permutation(60), rng.uniform(0.5, 1, size=60)
    groups = np.arange(60) // 3 if grouped else None
    for function, models in ((confidence_interval, [a]), (compare_models, [a, b])):
        options = {"sample_weight": weight, "groups": groups, "random_state": 0}
        first = function(metric, y, *models, **options)
        options = {
            "sample_weight": weight[order],
            "groups": None if groups is None else groups[order],
            "random_state": 1,
        }
        again = function(metric, y[order], *(model[order] for model in models), **options)
        for name in vars(first):
            expected = getattr(first, name)
            assert getattr(again, name) == pytest.approx(expected, rel=1e-9, abs=1e-12), name


@pytest.mark.parametrize("groups", [None, np.arange(60) // 3])
def test_all_functions_agree_on_their_numbers(groups):
    y, a, b, _ = classes(2, 60)
    options = {"groups": groups, "n_resamples": 19, "random_state": 0, "confidence_level": 0.9}
    clinical = clinical_calibration(y, a, **options)
    for name in SIGNED_METRICS:
        interval = confidence_interval(name, y, a, **options)
        comparison = compare_models(name, y, a, b, **options)
        measured = getattr(clinical, name)
        assert measured.estimate == pytest.approx(interval.estimate, rel=1e-12)
        assert [*measured] == pytest.approx([*interval], rel=1e-9)
        assert comparison.estimate_a == pytest.approx(interval.estimate, rel=1e-12)
        assert comparison.estimate_b == confidence_interval(name, y, b, **options).estimate
    quantiles = {"integrated_calibration_index": None, "e50": 0.5, "e90": 0.9}
    for name, quantile in quantiles.items():
        params = {"quantile": quantile}
        metric = "integrated_calibration_index"
        interval = confidence_interval(metric, y, a, metric_params=params, **options)
        assert [*getattr(clinical, name)] == pytest.approx([*interval], rel=1e-12)


def test_labels_of_a_row_vary_together():
    # a matrix of two equal columns holds no more than one of them
    rng = np.random.default_rng(0)
    proba = rng.random(60)
    label = (rng.random(60) < proba**2).astype(int)
    options = {"n_resamples": 39, "random_state": 0}
    params = {"multi_class": Multilabel()}
    single = confidence_interval("smooth_calibration_error", label, proba, **options)
    twice = confidence_interval(
        "smooth_calibration_error", *(np.column_stack([x, x]) for x in (label, proba)),
        metric_params=params, **options
    )  # fmt: skip
    assert twice.estimate == pytest.approx(single.estimate, rel=1e-9)
    assert twice.high == pytest.approx(single.high, rel=0.05)


def test_every_metric_takes_part():
    assert {name for name, _ in CASES.values()} == (METRICS | ALL_METRICS | SIGNED_METRICS).keys()
