"""The table holds what the metrics themselves return."""

from functools import partial

import numpy as np
import pytest
from problems import random_problem
from sklearn.metrics import log_loss, roc_auc_score

from skcalib.forecasts import GaussianForecast
from skcalib.metrics import (
    continuous_ranked_probability_loss,
    expected_calibration_error,
    metric_table,
    smooth_calibration_error,
)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_row_for_each_model(n_classes):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 200, n_classes)
    models = {"model": proba, "blend": proba / 2 + proba.mean(axis=0) / 2}
    weight = rng.random(200)
    table = metric_table(label, models, sample_weight=weight)
    assert table.pop("model") == ["model", "blend"]
    ece = partial(expected_calibration_error, label, sample_weight=weight)
    one_hot = np.eye(n_classes)[label]
    for k, p in enumerate(models.values()):
        matrix = np.column_stack([1 - p, p]) if n_classes == 2 else p
        brier = np.average(np.sum((one_hot - matrix) ** 2, axis=1), weights=weight)
        expected = {
            "ECE": ece(p),
            "adaptive ECE": ece(p, strategy="quantile"),
            "classwise ECE": ece(p, multi_class="classwise"),
            "log loss": log_loss(label, p, sample_weight=weight),
            "Brier score": brier / 2 if n_classes == 2 else brier,
        }
        assert {name: values[k] for name, values in table.items()} == pytest.approx(expected)


def test_metrics_by_name_and_function():
    label, proba = random_problem(np.random.default_rng(1), 50, 3)
    expected = smooth_calibration_error(label, proba)
    table = metric_table(label, proba, metrics=["smooth_calibration_error"])
    assert table == {"smooth_calibration_error": [expected]}
    table = metric_table(label, proba, metrics={"mine": smooth_calibration_error})
    assert table == {"mine": [expected]}


def test_functions_get_what_was_passed():
    label, proba = random_problem(np.random.default_rng(1), 50, 2)
    names = np.where(label == 1, "yes", "no")
    table = metric_table(
        names, {"one": proba}, metrics={"AUC": roc_auc_score}, labels=["no", "yes"]
    )
    assert table["AUC"] == [roc_auc_score(label, proba)]


@pytest.mark.parametrize("metrics", ["ECE", {}, [], {"a": 3}, 7])
def test_bad_metrics(metrics):
    with pytest.raises(TypeError, match="metrics must be a list of names or a dict"):
        metric_table([0, 1], [0.2, 0.7], metrics=metrics)


def test_unknown_metric():
    with pytest.raises(ValueError, match="Did you mean 'expected_calibration_error'"):
        metric_table([0, 1], [0.2, 0.7], metrics=["ECE"])


def test_forecasts_are_refused():
    y = [0, 1, 1, 0]
    with pytest.raises(ValueError, match="y_proba must hold probabilities of classes"):
        metric_table(y, GaussianForecast([0.1, 0.2, 0.3, 0.4], 1.0))
    with pytest.raises(ValueError, match="metrics must be a metric of classes"):
        metric_table(y, [0.2, 0.7, 0.8, 0.1], metrics={"CRPS": continuous_ranked_probability_loss})


def test_outcomes_of_each_model():
    rng = np.random.default_rng(0)
    proba = {"a": rng.random(50), "b": rng.random(50)}
    right = {"b": rng.random(50) < 0.5, "a": rng.random(50) < proba["a"]}
    table = metric_table(right, proba)
    for k, name in enumerate(proba):
        alone = metric_table(right[name], proba[name])
        assert {title: [column[k]] for title, column in table.items() if title != "model"} == alone
    for labels, predictions in ((right, {"a": proba["a"]}), (right, proba["a"])):
        with pytest.raises(ValueError, match="only if y_proba is one with the same names"):
            metric_table(labels, predictions)
