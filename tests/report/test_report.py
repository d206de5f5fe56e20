"""The report shows the numbers of the metrics and gives the advice that they call for."""

from pathlib import Path

import numpy as np
import pytest
from oracles import brier_score
from problems import random_problem, two_columns
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import (
    calibration_distance_bounds,
    expected_calibration_error,
    smooth_calibration_error,
)
from skcalib.report import calibration_report


def test_numbers_are_those_of_the_metrics_for_two_classes():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 200)
    weight = rng.random(200)
    numbers = calibration_report(
        label, proba, sample_weight=weight, random_state=0, output_dict=True
    )
    matrix = two_columns(proba)
    expected = {
        "n_samples": 200,
        "n_classes": 2,
        "accuracy": accuracy_score(label, proba > 0.5, sample_weight=weight),
        "mean_confidence": np.average(matrix.max(axis=1), weights=weight),
        "brier_score_loss": brier_score_loss(label, proba, sample_weight=weight),
        "log_loss": log_loss(label, proba, sample_weight=weight),
        "n_tested": 200,
    }
    for metric in (smooth_calibration_error, expected_calibration_error):
        expected[metric.__name__] = metric(label, proba, sample_weight=weight)
    lower, upper = calibration_distance_bounds(label, proba, sample_weight=weight)
    expected |= {"distance_lower_bound": lower, "distance_upper_bound": upper}
    for key, value in expected.items():
        assert numbers[key] == pytest.approx(value, abs=1e-12), key
    test = CalibrationTest(random_state=np.random.RandomState(0))
    assert numbers["p_value"] == test.fit(proba, label, sample_weight=weight).p_value_
    parts = {f"p_value_{name}": p for name, p in test.adjusted_p_values_.items()}
    assert {name: numbers[name] for name in parts} == parts
    assert set(numbers) == {*expected, *parts, "p_value", "advice"}


def test_numbers_are_those_of_the_metrics_for_many_classes():
    label, proba = random_problem(np.random.default_rng(0), 200, 4)
    numbers = calibration_report(label, proba, random_state=0, output_dict=True)
    for metric in (smooth_calibration_error, expected_calibration_error):
        for kind in ("confidence", "classwise"):
            expected = metric(label, proba, multi_class=kind)
            assert numbers[f"{metric.__name__}_{kind}"] == pytest.approx(expected, abs=1e-15)
    lower, upper = calibration_distance_bounds(label, proba)
    assert numbers["distance_lower_bound_confidence"] == pytest.approx(lower, abs=1e-12)
    assert numbers["distance_upper_bound_confidence"] == pytest.approx(upper, abs=1e-12)
    assert numbers["brier_score_loss"] == pytest.approx(brier_score(label, proba), abs=1e-12)


def test_text_shows_the_numbers():
    label, proba = random_problem(np.random.default_rng(0), 200, 3)
    numbers = calibration_report(label, proba, random_state=0, output_dict=True)
    text = calibration_report(label, proba, random_state=0)
    for key, value in numbers.items():
        if isinstance(value, float):
            assert format(value, ".4f") in text, key
    assert numbers["advice"].split() == text.split("\n\n")[-1].split()


@pytest.mark.parametrize(
    ("power", "phrase"),
    [
        (1, "No evidence of miscalibration"),
        (3, "predictions are not sure enough: the log loss is"),
        (1 / 3, "predictions are too sure: the log loss is"),
        (-3, "rank the labels backwards"),
    ],
)
def test_advice(power, phrase):
    rng = np.random.default_rng(0)
    proba = rng.random(2000)
    truth = proba**power / (proba**power + (1 - proba) ** power)
    label = (rng.random(2000) < truth).astype(int)
    assert phrase in " ".join(calibration_report(label, proba, random_state=0).split())


def test_advice_where_errors_cancel():
    # 0.6 and 0.9 are both 0.75 in truth: wrong everywhere, right on average
    proba = np.repeat([0.6, 0.9], 2000)
    label = np.tile([1, 1, 1, 0], 1000)
    report = " ".join(calibration_report(label, proba, random_state=0).split())
    assert "probabilities of class 1 are spread too far" in report
    assert "probabilities of about 0.9, where 0.9 is predicted and 0.75 observed" in report


def test_a_class_that_is_off_is_named():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), size=3000)
    truth = proba * [1.0, 1.0, 1.4, 1.0]
    truth /= truth.sum(axis=1, keepdims=True)
    label = np.array(list("abcd"))[(rng.random((3000, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)]
    observed, predicted = np.mean(label == "c"), proba[:, 2].mean()
    report = " ".join(calibration_report(label, proba, random_state=0).split())
    expected = f"class c is observed {observed:.3g} of the time, where the mean prediction is"
    assert f"{expected} {predicted:.3g}" in report


def test_a_small_difference_is_called_small():
    rng = np.random.default_rng(0)
    proba = rng.uniform(0.2, 0.8, 200000)
    label = rng.random(200000) < proba + 0.006
    report = " ".join(calibration_report(label, proba, random_state=0).split())
    assert "Miscalibrated (p = 0.001)" in report
    assert "that is little, and may not matter" in report


def test_impossible_labels_are_certain_evidence():
    # one of ten samples: what has probability 0 does not happen
    label, proba = [1, 0, 1, 1, 0, 0, 1, 1, 0, 1], [0.0, *[0.5] * 9]
    report = " ".join(calibration_report(label, proba, random_state=0).split())
    assert "Miscalibrated (p = 0.001): a label occurred that had probability 0" in report


def test_large_problems_are_tested_on_a_part(monkeypatch):
    monkeypatch.setattr("skcalib.report._numbers._SECONDS", 50.5 * 999 * 3.3e-8)
    label, proba = random_problem(np.random.default_rng(0), 200, 3)
    numbers = calibration_report(label, proba, random_state=0, output_dict=True)
    assert numbers["n_tested"] == 50
    assert "(the p-values are of 50 samples, chosen at random)" in calibration_report(
        label, proba, random_state=0
    )


def test_strings_and_bad_input():
    label, proba = random_problem(np.random.default_rng(0), 50)
    names = np.array(["no", "yes"])[label]
    expected = calibration_report(label, proba, random_state=0)
    shown = calibration_report(names, proba, random_state=0)
    assert shown.replace("class yes", "class 1").split() == expected.split()
    with pytest.raises(ValueError, match=r"y_proba must lie in \[0, 1\]"):
        calibration_report(label, proba * 2)


def test_readme_shows_the_report():
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    proba = GaussianNB().fit(X_train, y_train).predict_proba(X_test)
    readme = Path(__file__).parents[2] / "README.md"
    report = calibration_report(y_test, proba, random_state=0)
    assert f"```text\n{report}\n```" in readme.read_text(encoding="utf-8")


def test_one_sample():
    assert calibration_report([1], [0.9], output_dict=True)["p_value"] > 0.5
