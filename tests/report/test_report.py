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
    squared_kernel_calibration_error,
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
    for metric in (
        smooth_calibration_error,
        expected_calibration_error,
        squared_kernel_calibration_error,
    ):
        expected[metric.__name__] = metric(label, proba, sample_weight=weight)
    lower, upper = calibration_distance_bounds(label, proba, sample_weight=weight)
    expected |= {"distance_lower_bound": lower, "distance_upper_bound": upper}
    for key, value in expected.items():
        assert numbers[key] == pytest.approx(value, abs=1e-12), key
    assert set(numbers) == {*expected, "p_value", "advice"}
    test = CalibrationTest(random_state=np.random.RandomState(0))
    assert numbers["p_value"] == test.fit(proba, label, sample_weight=weight).p_value_


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
    expected = squared_kernel_calibration_error(label, proba)
    assert numbers["squared_kernel_calibration_error"] == pytest.approx(expected, abs=1e-15)
    assert numbers["brier_score_loss"] == pytest.approx(brier_score(label, proba), abs=1e-12)


def test_text_shows_the_numbers():
    label, proba = random_problem(np.random.default_rng(0), 200, 3)
    numbers = calibration_report(label, proba, random_state=0, output_dict=True)
    text = calibration_report(label, proba, random_state=0)
    for key, value in numbers.items():
        if isinstance(value, float):
            digits = ".1e" if key == "squared_kernel_calibration_error" else ".4f"
            assert format(value, digits) in text, key
    assert numbers["advice"].split() == text.split("\n\n")[-1].split()


@pytest.mark.parametrize(
    ("power", "phrase"),
    [(1, "No evidence of miscalibration"), (3, "underconfident by"), (1 / 3, "overconfident by")],
)
def test_advice(power, phrase):
    rng = np.random.default_rng(0)
    proba = rng.random(2000)
    truth = proba**power / (proba**power + (1 - proba) ** power)
    label = (rng.random(2000) < truth).astype(int)
    assert phrase in calibration_report(label, proba, random_state=0)


def test_advice_where_errors_cancel():
    # 0.6 and 0.9 are both 0.75 in truth: wrong everywhere, right on average
    proba = np.repeat([0.6, 0.9], 2000)
    label = np.tile([1, 1, 1, 0], 1000)
    assert "mean confidence agrees with the accuracy" in " ".join(
        calibration_report(label, proba, random_state=0).split()
    )


def test_impossible_labels_are_certain_evidence():
    # two samples cannot make the p-value small, but what has probability 0 does not happen
    report = calibration_report([1, 0], [0.0, 1.0])
    assert "Miscalibrated: 2 label(s) occurred that had probability 0" in report


def test_large_problems_are_tested_on_a_part(monkeypatch):
    monkeypatch.setattr("skcalib.report._numbers._MULTIPLICATIONS", 3 * 999 * 50**2)
    label, proba = random_problem(np.random.default_rng(0), 200, 3)
    numbers = calibration_report(label, proba, random_state=0, output_dict=True)
    assert numbers["n_tested"] == 50
    assert "(the last two numbers are of 50 samples, chosen at random)" in calibration_report(
        label, proba, random_state=0
    )


def test_strings_and_bad_input():
    label, proba = random_problem(np.random.default_rng(0), 50)
    names = np.array(["no", "yes"])[label]
    expected = calibration_report(label, proba, random_state=0)
    assert calibration_report(names, proba, random_state=0) == expected
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
