"""The report shows the numbers of the metrics and gives the advice that they call for."""

import datetime
import json
import re
from dataclasses import replace
from functools import partial
from html import escape
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pytest
from oracles import brier_score
from pages import read_page
from problems import random_problem, two_columns
from scipy.special import expit, softmax
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from skcalib._data import check_predictions
from skcalib.hypothesis_tests import CalibrationTest, SubgroupCalibrationTest
from skcalib.metrics import (
    calibration_distance_bounds,
    calibration_intercept,
    calibration_slope,
    expected_calibration_error,
    integrated_calibration_index,
    observed_expected_ratio,
    smooth_calibration_error,
)
from skcalib.recalibration import IsotonicRecalibrator
from skcalib.report import CalibrationReport, calibration_report
from skcalib.report._classes import ClassSections, max_tested_samples
from skcalib.report._findings import distinct_format, join_sentences
from skcalib.report._pictures import _writable_names, render_class_pictures
from skcalib.report._sections import DRAWING, Sections, subsample_evenly
from skcalib.report._text import measure_title
from skcalib.report._two_classes import area_under_roc_curve, clinical_intervals, two_class_numbers
from skcalib.uncertainty import clinical_calibration

GAIN = 0.12, 0.07, 0.17


@pytest.fixture(autouse=True, scope="module")
def quick():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DRAWING, "n_resamples", 39)
        patch.setattr(ClassSections, "gain", lambda _: GAIN)
        yield


@pytest.fixture(scope="module")
def binary():
    """Labels and probabilities of two classes, and their report."""
    label, proba = random_problem(np.random.default_rng(0), 103)
    return label, proba, calibration_report(label, proba, random_state=0)


@pytest.fixture(scope="module")
def three():
    """A report on three classes with subgroups."""
    label, proba = random_problem(np.random.default_rng(0), 100, 3)
    return calibration_report(label, proba, by=["a", "b"] * 50, random_state=0)


@pytest.fixture
def slow_and_true(monkeypatch):
    monkeypatch.setattr("skcalib.uncertainty._units._N_BLOCKS", 100)
    monkeypatch.setitem(DRAWING, "n_resamples", 199)
    monkeypatch.setattr(ClassSections, "gain", Sections.gain)


def problem_of(proba, label):
    """Checked predictions of two classes."""
    return check_predictions(label, proba, labels=[0, 1])


def advice(predictions, numbers, ends, found, rows=(), classes=(), recalibrated=False):
    sections = ClassSections(predictions, np.random.RandomState(0))
    numbers = {"n_samples": predictions.n_samples, "n_recalibrated": 2} | numbers
    verdict = sections.verdict(numbers, ends, rows, classes, recalibrated=recalibrated)
    return join_sentences(verdict, found)


def words(report):
    return " ".join(str(report).split())


def test_numbers_are_those_of_the_metrics_for_two_classes():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 200)
    weight = rng.random(200)
    report = calibration_report(label, proba, sample_weight=weight, random_state=0)
    numbers = report.numbers
    two_columns(proba)
    expected = {
        "n_samples": 200,
        "n_classes": 2,
        "accuracy": accuracy_score(label, proba > 0.5, sample_weight=weight),
        "brier_score_loss": brier_score_loss(label, proba, sample_weight=weight),
        "log_loss": log_loss(label, proba, sample_weight=weight),
        "n_tested": 200,
        "n_events": label.sum(),
        "prevalence": np.average(label, weights=weight),
        "mean_prediction": np.average(proba, weights=weight),
        "area_under_roc_curve": roc_auc_score(label, proba, sample_weight=weight),
    }
    for metric in (
        smooth_calibration_error,
        expected_calibration_error,
        integrated_calibration_index,
        observed_expected_ratio,
        calibration_intercept,
        calibration_slope,
    ):
        expected[metric.__name__] = metric(label, proba, sample_weight=weight)
    lower, upper = calibration_distance_bounds(label, proba, sample_weight=weight)
    expected |= {"distance_lower_bound": lower, "distance_upper_bound": upper}
    for key, value in expected.items():
        assert numbers[key] == pytest.approx(value, abs=1e-12), key
    test = CalibrationTest(random_state=np.random.RandomState(0))
    assert numbers["p_value"] == test.fit(proba, label, sample_weight=weight).p_value_
    parts = {f"p_value_{name}": p for name, p in test.adjusted_p_values_.items()}
    assert {name: numbers[name] for name in parts} == parts
    said = {name for finding in report.findings for name in finding.values} - {"class"}
    assert set(numbers) == {*expected, *parts, *said, "p_value", "gain", "n_recalibrated"}


def test_intervals_of_two_classes_are_those_of_a_clinical_validation(monkeypatch):
    monkeypatch.setattr("skcalib.uncertainty._units._N_BLOCKS", 100)  # single samples
    label, proba = random_problem(np.random.default_rng(0), 60)
    data = check_predictions(label, proba, weight := np.random.default_rng(1).random(60))
    found = clinical_intervals(data, two_class_numbers(data))
    clinical = clinical_calibration(label, proba, sample_weight=weight, n_resamples=1)
    for name in ("observed_expected_ratio", "calibration_intercept", "calibration_slope"):
        one = vars(clinical)[name]
        assert found[name] == pytest.approx((one.low, one.high), rel=1e-9), name
    low, high = found["area_under_roc_curve"]
    assert low < two_class_numbers(data)["area_under_roc_curve"] < high


def test_area_under_the_roc_curve_counts_ties_half():
    rng = np.random.default_rng(0)
    label, proba, weight = rng.integers(0, 2, 300), rng.integers(0, 9, 300) / 8, rng.random(300)
    for one in (None, weight):
        data = check_predictions(label, proba, one)
        expected = roc_auc_score(label, proba, sample_weight=one)
        assert area_under_roc_curve(data) == pytest.approx(expected, abs=1e-14)
    assert np.isnan(area_under_roc_curve(problem_of([0.2, 0.7], [1, 1])))


def test_what_two_classes_do_not_determine_is_left_out():
    one = calibration_report([1] * 20, np.linspace(0.1, 0.9, 20), random_state=0)
    assert not {"calibration_slope", "area_under_roc_curve"} & one.numbers.keys()
    assert "observed_expected_ratio" not in one.intervals
    apart = calibration_report([0] * 10 + [1] * 10, np.linspace(0.1, 0.9, 20), random_state=0)
    assert apart.numbers["calibration_slope"] == np.inf
    assert apart.intervals["calibration_slope"] == (-np.inf, np.inf)
    assert apart.numbers["area_under_roc_curve"] == pytest.approx(1, abs=1e-15)
    assert "area_under_roc_curve" not in apart.intervals
    json.loads(apart.to_json(), parse_constant=pytest.fail)


def test_head_of_the_report(binary, monkeypatch):
    monkeypatch.setattr(CalibrationReport, "figures", {})
    label, proba, silent = binary
    options = {"name": "a\n<b>model", "date": datetime.date(2026, 1, 31), "random_state": 0}
    report = calibration_report(label, proba, **options)
    assert {"integrated_calibration_index", "calibration_slope"} < report.intervals.keys()
    heading, date, empty, *rest = str(report).split("\n")
    assert (heading, date, empty) == (
        "Calibration of a <b>model: 103 predictions, 2 classes",
        "2026-01-31",
        "",
    )
    assert rest == str(silent).split("\n")[2:]  # the words come first
    assert rest[0].startswith("Miscalibrated")
    assert f"{'events':<46}  {label.sum():9}" in str(report)
    assert report.to_dict()["event"] == "1"
    assert [report.to_dict()[key] for key in ("name", "date")] == ["a <b>model", "2026-01-31"]
    assert silent.to_dict()["date"] is None
    html = report.to_html()
    assert "<h1>Calibration of a &lt;b&gt;model: 103 predictions, 2 classes</h1>" in html
    assert "<p>2026-01-31</p>" in html
    for found in report.findings:
        assert html.lower().count(escape(found.lower())) == 1


def test_report_of_an_estimator():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, "yes", "no")
    model = GaussianNB().fit(X, y)
    found = CalibrationReport.from_estimator(model, X, y, random_state=0)
    expected = calibration_report(
        y, model.predict_proba(X), labels=model.classes_, name="GaussianNB", random_state=0
    )
    assert str(found) == str(expected)
    few = CalibrationReport.from_estimator(model, X[:5], y[:5], name="Bayes", random_state=0)
    assert str(few).startswith("Calibration of Bayes: 5 predictions")
    with pytest.raises(TypeError, match=r"found GaussianNB.*CalibrationReport\.from_estimator"):
        calibration_report(model, X, y)


def test_numbers_are_those_of_the_metrics_for_many_classes():
    label, proba = random_problem(np.random.default_rng(0), 60, 4)
    numbers = calibration_report(label, proba, random_state=0).numbers
    for metric in (smooth_calibration_error, expected_calibration_error):
        for kind in ("confidence", "classwise"):
            expected = metric(label, proba, multi_class=kind)
            assert numbers[f"{metric.__name__}_{kind}"] == pytest.approx(expected, abs=1e-15)
    lower, upper = calibration_distance_bounds(label, proba)
    assert numbers["distance_lower_bound_confidence"] == pytest.approx(lower, abs=1e-12)
    assert numbers["distance_upper_bound_confidence"] == pytest.approx(upper, abs=1e-12)
    assert numbers["brier_score_loss"] == pytest.approx(brier_score(label, proba), abs=1e-12)


@pytest.mark.parametrize(("n", "is_said"), [(60, True), (39, False)])
def test_why_many_classes_show_no_gain(monkeypatch, n, is_said):
    """Ten samples of each of four classes are needed, and 280 / (10 + 4) = 20 are the most."""
    monkeypatch.setattr("skcalib.report._classes._MOST_RECALIBRATED", 280)
    monkeypatch.setattr(ClassSections, "gain", Sections.gain)
    label, proba = np.arange(n) % 4, np.eye(4)[np.arange(1, n + 1) % 4] * 0.9 + 0.025
    report = calibration_report(label, proba, random_state=0)
    assert report.advice.startswith("Miscalibrated")
    assert "gain" not in report.numbers
    assert ("gains is not shown: with so many classes" in " ".join(str(report).split())) is is_said


def test_text_shows_the_numbers(three):
    report = three
    text = str(report)
    for key, value in report.numbers.items():
        if isinstance(value, float) and measure_title(key, report.numbers):
            assert ("≤ 0.001" if value == 0.001 else format(value, ".4f")) in text, key
    assert report.advice.split() == text.split("\n\n")[1].split()
    assert {"log_loss", "smooth_calibration_error_confidence"} < set(report.intervals)
    for low, high in report.intervals.values():
        assert f"{low:.4f} to {high:.4f}" in text


@pytest.mark.parametrize(
    ("power", "phrase"),
    [
        (1, "No evidence of miscalibration"),
        (3, "predictions are underconfident: their log loss is"),
        (1 / 3, "predictions are overconfident: their log loss is"),
        (-3, "rank the labels backwards"),
    ],
)
def test_advice(power, phrase):
    rng = np.random.default_rng(0)
    proba = rng.random(1000)
    truth = proba**power / (proba**power + (1 - proba) ** power)
    label = (rng.random(1000) < truth).astype(int)
    report = calibration_report(label, proba, random_state=0)
    assert phrase in words(report)
    assert bool(report.findings) == ("confident" in phrase)  # none of what may be mixed up


def test_advice_where_errors_cancel():
    # 0.6 and 0.9 are both 0.75 in truth: wrong everywhere, right on average
    proba = np.repeat([0.6, 0.9], 400)
    label = np.tile([1, 1, 1, 0], 200)
    report = words(calibration_report(label, proba, random_state=0))
    assert "probabilities of class 1 are too extreme" in report
    assert "probabilities of about 0.9: 0.9 predicted, 0.75 observed" in report


@pytest.mark.parametrize("seed", range(5))
def test_the_largest_clear_gap_is_the_largest_of_those_that_are_clear(seed):
    rng = np.random.default_rng(seed)
    proba = np.sort(rng.beta(0.4, 0.4, 1000))
    label = rng.random(1000) < proba**2
    found = re.search(
        r"the largest clear gap is at \w+ (?:of about|from) [\d.e-]+(?: to [\d.e-]+)?: ([\d.]+) "
        r"predicted, ([\d.]+) observed",
        words(calibration_report(label, proba, random_state=0)),
    )
    expected, observed = map(float, found.groups())
    gaps = []
    for rows in np.array_split(np.arange(1000), 8):  # ranges of equal numbers of samples
        variance = (proba[rows] * (1 - proba[rows])).mean() / len(rows)
        gap = abs(label[rows].mean() - proba[rows].mean())
        gaps.append(gap * (gap > 2.5 * np.sqrt(variance)))
    assert abs(expected - observed) == pytest.approx(max(gaps), abs=0.011)


def test_rows_of_a_joined_table_are_told():
    rng = np.random.default_rng(0)
    proba = rng.random(150)
    label, rows = rng.random(150) < proba, np.repeat(np.arange(150), 3)
    sentence = "Each of 150 distinct predictions occurs 3 times, always with the same outcome"
    report = calibration_report(label[rows], proba[rows], random_state=0)
    assert sentence in words(report)
    assert "Until then, p-values are too small and intervals too narrow." in words(report)
    assert report.sentences[1 + len(report.findings)].name == "copies"  # before any advice
    for report in (
        calibration_report(label[rows], proba[rows], groups=rows, random_state=0),
        calibration_report(rng.random(450) < proba[rows], proba[rows], random_state=0),
        calibration_report(label, proba.round(1), random_state=0),
    ):
        assert "joined table" not in words(report)


def test_a_small_gap_that_is_much_of_a_rare_risk_is_not_small():
    # a larger gap near 1/2 is less of what is rarer there
    rng = np.random.default_rng(0)
    proba = np.r_[rng.uniform(0.01, 0.03, 7500), rng.uniform(0.4, 0.6, 52500)]
    truth = np.r_[1.6 * proba[:7500], proba[7500:] + 0.015]
    found = words(calibration_report(rng.random(60000) < truth, proba, random_state=0))
    assert "may not matter" not in found


def test_certain_predictions_may_be_the_clearest_gap():
    proba = np.r_[np.zeros(300), np.random.default_rng(0).uniform(0.2, 0.8, 300)]
    label = np.r_[np.arange(300) < 100, np.random.default_rng(1).random(300) < proba[300:]]
    assert "gap is at probabilities of about 0: 0 predicted" in words(
        calibration_report(label, proba, random_state=0)
    )


def test_a_class_that_is_off_is_named():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), size=600)
    truth = proba * [1.0, 1.0, 1.7, 1.0]
    truth /= truth.sum(axis=1, keepdims=True)
    label = np.array(list("abcd"))[(rng.random((600, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)]
    observed, predicted = np.mean(label == "c"), proba[:, 2].mean()
    _, found = ClassSections(check_predictions(label, proba), np.random.RandomState(0)).test()
    expected = "probabilities of class c, the clearest of 4 classes, are too low on average:"
    assert f"{expected} {predicted:.3g} predicted, {observed:.3g} observed" in found


def test_a_small_difference_is_called_small():
    rng = np.random.default_rng(1)
    for proba, error, is_small in (
        (rng.uniform(0.2, 0.8, 1000), 0.006, True),
        (rng.uniform(0.2, 0.8, 1000), 0.011, False),
        (rng.uniform(0.002, 0.008, 1000), 0.003, False),  # much for a rare event
    ):
        predictions = problem_of(proba, rng.random(1000) < proba)
        numbers = {"p_value": 0.001, "smooth_calibration_error": error, "n_tested": 1000000}
        text = advice(predictions, numbers | {"gain": 0.1}, {"gain": (-0.1, 0.3)}, ["x is y"])
        assert text.startswith("Miscalibrated (p ≤ 0.001): x is y. ")
        expected = (
            "This is small and may not matter: with 1000000 samples, a smooth calibration error "
            f"of {error} can be detected. If it matters, recalibrate on samples"
        )
        assert (expected in text) == is_small
        gains = advice(predictions, numbers | {"gain": GAIN[0]}, {"gain": GAIN[1:]}, ["x is y"])
        assert "small" not in gains
        assert gains.endswith(
            "cross-validation on 2 of the samples this lowers the log loss by 0.12."
        )
        after = advice(predictions, numbers, {}, ["x is y"], recalibrated=True)
        assert after.startswith("Still miscalibrated")
        assert "ecalibrate on data" not in after


def test_an_error_of_one_class_is_not_little():
    rng = np.random.default_rng(1)
    proba = rng.dirichlet([30, 12, 8, 5, 3], 4000)
    truth = proba.copy()
    truth[:, 4] *= 0.4  # too often predicted, and seldom the likeliest one
    truth /= truth.sum(axis=1, keepdims=True)
    label = (rng.random((4000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    predictions = check_predictions(label, proba, labels=range(5))
    sections = ClassSections(predictions, np.random.RandomState(0))
    numbers, classes = sections.measure()
    assert numbers["smooth_calibration_error_confidence"] < 0.01
    assert not sections.is_small(numbers, classes)
    assert sections.is_small(numbers, classes[1:])


@pytest.mark.parametrize(("predicted", "shape"), [(0.3, "constant"), (0.02, "varying")])
def test_a_wrong_level_is_not_called_overconfident(predicted, shape):
    rng = np.random.default_rng(0)
    proba = np.full(4000, predicted)
    if shape == "varying":
        proba = rng.beta(2, 2 / predicted - 2, 4000)
    label = rng.random(4000) < (proba + 0.05 if shape == "constant" else 3 * proba)
    _, found = ClassSections(problem_of(proba, label), np.random.RandomState(0)).test()
    assert found[0].startswith("probabilities of class 1 are too low on average")
    assert "confident" not in "".join(found)


# a difference of 0.009 needs 40 000 samples to be seen: 0.4 s
def test_numbers_that_differ_look_different():
    assert distinct_format(0.94123, 0.94467, 2) == ".3g"
    assert distinct_format(0.2, 0.9, 2) == ".2g"
    assert distinct_format(0.25, 0.25, 2) == ".6g"
    rng = np.random.default_rng(0)
    proba = np.full(40_000, 0.5)
    label = (rng.random(40_000) < 0.509).astype(int)
    _, findings = ClassSections(problem_of(proba, label), np.random.RandomState(0)).test()
    pairs = [re.findall(r": ([\d.]+) predicted, ([\d.]+)", one) for one in findings]
    assert all(pair[0][0] != pair[0][1] for pair in pairs)
    assert len(pairs) == 2


def test_a_gain_that_is_not_clear_is_not_promised():
    predictions = problem_of([0.3, 0.6], [0, 1])
    numbers = {"p_value": 0.01, "smooth_calibration_error": 0.3, "n_tested": 2, "gain": 0.01}
    text = advice(predictions, numbers, {"gain": (-0.01, 0.03)}, ["x is y"])
    assert "(p = 0.01)" in text
    assert text.endswith("it is not clear that this lowers the log loss.")


def test_columns_in_another_order_are_recognised():
    rng = np.random.default_rng(0)
    names = np.array(["ant", "bee", "cat", "dog"])
    label, proba = random_problem(rng, 150, 4)
    moved = [0, 2, 3, 1]  # the columns of bee, cat and dog in a circle
    right, wrong = (
        calibration_report(names[label], columns, labels=names, random_state=0)
        for columns in (proba, proba[:, moved])
    )
    assert right.advice.startswith("Miscalibrated")
    # what was column 1, of bee, is now column 3, that of dog
    expected = "is for class bee that of dog; for class cat that of bee; for class dog that of cat."
    assert f"the column that is highest most often {expected}" in wrong.advice
    assert "gain" not in wrong.numbers


def mistakes(label, proba, groups=None):
    data = check_predictions(label, proba)
    return ClassSections(replace(data, groups=groups), np.random.RandomState(0)).find_mistake()


@pytest.mark.parametrize(
    ("n", "n_classes", "phrase"), [(24, 2, "rank the labels backwards"), (12, 3, "another order")]
)
def test_mistakes_in_few_groups_are_not_clear(n, n_classes, phrase):
    label = np.arange(n) % n_classes
    predicted = np.where(np.arange(n) < 0.7 * n, (label + 1) % n_classes, label)
    proba = np.random.default_rng(0).dirichlet(np.ones(n_classes), n)
    proba += 2 * np.eye(n_classes)[predicted]
    proba /= proba.sum(axis=1, keepdims=True)
    proba = proba[:, 1] if n_classes == 2 else proba
    rows = np.repeat(np.arange(n), 40)
    assert mistakes(label, proba) is None
    assert phrase in mistakes(label[rows], proba[rows])
    assert mistakes(label[rows], proba[rows], rows) is None
    assert phrase in mistakes(label[rows], proba[rows], np.arange(len(rows)) // 2)


def test_a_mistake_of_columns_names_classes_without_steering_the_terminal():
    names = np.array(["\x1b[31mred", "a", "b"])
    proba = np.repeat(0.7 * np.eye(3) + 0.1, 30, axis=0)
    assert r"for class \x1b[31mred that of a" in mistakes(np.roll(np.repeat(names, 30), 30), proba)


def test_two_classes_that_are_mistaken_for_each_other_are_no_mistake_of_columns():
    # the column of class 1 is highest for both classes 1 and 2
    label = np.repeat([0, 1, 2], 200)
    proba = np.repeat([[0.8, 0.1, 0.1], [0.1, 0.6, 0.3], [0.1, 0.6, 0.3]], 200, axis=0)
    assert "another order" not in calibration_report(label, proba, random_state=0).advice


def test_worst_classes_come_first(monkeypatch):
    rng = np.random.default_rng(0)
    names = np.array(list("abcdefg"))
    label, proba = random_problem(rng, 120, 7)
    weight = rng.random(120)
    monkeypatch.setattr("skcalib.report._report.CalibrationReport.figures", {})
    report = calibration_report(names[label], proba, sample_weight=weight, random_state=0)
    errors = smooth_calibration_error(
        label, proba, sample_weight=weight, multi_class="classwise", average=None
    )
    rows = report.classes
    assert [row["class"] for row in rows] == names[np.argsort(-errors)].tolist()
    for row in rows:
        k = int(np.flatnonzero(names == row["class"])[0])
        assert row["smooth_calibration_error"] == pytest.approx(errors[k], abs=1e-15)
        assert row["observed_share"] == pytest.approx(np.average(label == k, weights=weight))
        assert row["mean_prediction"] == pytest.approx(np.average(proba[:, k], weights=weight))
    text = str(report)
    assert "5 of 7 classes, largest error first" in text
    shown = [
        re.search(rf"\n{row['class']} +{row['observed_share']:.4f} ", text) is not None
        for row in rows
    ]
    assert shown == [True] * 5 + [False] * 2
    assert report.to_dict()["classes"] == rows
    html = report.to_html()
    assert "5 of 7 classes, largest error first" in html
    assert f"{rows[0]['mean_prediction']:.4f}</td>" in html


def test_what_cannot_be_ruled_out_is_said():
    label, proba = random_problem(np.random.default_rng(0), 60, calibrated=True)
    report = calibration_report(label, proba, random_state=0)
    high = report.intervals["smooth_calibration_error"][1]
    assert f"may be up to {high:.2g} (95 % interval)" in report.advice
    few = calibration_report([0, 1, 1], [0.2, 0.6, 0.8], random_state=0)
    assert "The effective number of samples is 3: too few to say more." in few.advice
    weight = np.r_[1e9, np.ones(20_000)]  # all samples say as much as the first one
    label, proba = random_problem(np.random.default_rng(0), 20_001, calibrated=True)
    one = ClassSections(check_predictions(label, proba, sample_weight=weight), None)
    numbers = {"smooth_calibration_error": 0.3, "p_value": 0.5, "n_samples": 20_001}
    verdict = one.verdict(numbers, {}, [], [], recalibrated=False)
    assert verdict[1] == "The effective number of samples is 1: too few to say more."
    of_three = check_predictions([0, 1, 2], np.full((3, 3), 1 / 3))
    error = "smooth_calibration_error_confidence"
    text = advice(of_three, {"p_value": 0.5, error: 0.3}, {error: (0.0, 0.4)}, [])
    assert "The smooth calibration error (confidence) may be up to 0.4 (95 %" in text


def test_impossible_labels_are_certain_evidence():
    # one of ten samples: what has probability 0 does not happen
    label, proba = [1, 0, 1, 1, 0, 0, 1, 1, 0, 1], [0.0, *[0.5] * 9]
    report = words(calibration_report(label, proba, random_state=0))
    expected = (
        "Miscalibrated (p ≤ 0.001): 1 of 10 outcomes had probability 0 (perhaps rounded): the "
        "model was certain that they would not occur, and wrong"
    )
    assert expected in report


@pytest.mark.parametrize(
    ("label", "proba"),
    [([1], [0.0]), ([1, 0, 1], [0.0, 0.0, 1.0]), ([2, 1], [[0.5, 0.5, 0.0], [0.3, 0.6, 0.1]])],
)
def test_impossible_labels_among_the_fewest_samples(label, proba):
    labels = range(3 if np.ndim(proba) == 2 else 2)
    report = calibration_report(label, proba, labels=labels, random_state=0)
    assert report.numbers["p_value"] == 0.001
    assert f"1 of {len(label)} outcomes had probability 0 (" in report.advice


def test_impossible_labels_do_not_leave_it_to_a_test_of_groups():
    label, proba = random_problem(np.random.default_rng(0), 60, calibrated=True)
    label[0], proba[0] = 1, 0.0
    report = calibration_report(label, proba, groups=np.arange(60), random_state=0)
    assert report.numbers["p_value"] > 0.05
    expected = "1 of 60 outcomes had probability 0 (perhaps rounded)"
    assert report.advice.startswith(f"Miscalibrated: {expected}")
    assert report.findings[0].startswith(expected)
    assert "No evidence" not in report.advice


def test_an_impossible_label_is_among_the_samples_tested(monkeypatch):
    monkeypatch.setattr("skcalib.report._classes.max_tested_samples", lambda _: 20)
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 1000, calibrated=True)
    label[500], proba[500] = 1, 0.0
    report = calibration_report(label, proba, random_state=0)
    assert (report.numbers["n_tested"], report.numbers["p_value"]) == (20, 0.001)
    assert "1 of 1000 outcomes had probability 0" in report.advice


def test_large_problems_are_tested_on_a_part(monkeypatch):
    monkeypatch.setattr("skcalib.report._classes.max_tested_samples", lambda _: 50)
    monkeypatch.setattr(CalibrationReport, "figures", {})
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    report = calibration_report(label, proba, random_state=0)
    assert report.numbers["n_tested"] == 50
    p_value = f"{report.numbers['p_value']:.4f}" if report.numbers["p_value"] > 0.001 else "≤ 0.001"
    (line,) = [one for one in str(report).split("\n") if one.startswith("p-value of the omn")]
    assert line.endswith(f"{p_value}  50 of 60 samples, at random")
    assert "<td class='number'>50 of 60 samples, at random</td>" in report.to_html()


def test_the_gain_says_of_how_many_samples_it_is(monkeypatch):
    monkeypatch.setattr(ClassSections, "gain_sample_limits", lambda _: (1, 40))
    label, proba = random_problem(np.random.default_rng(0), 60)
    report = calibration_report(label, proba, random_state=0)
    assert "0.0700 to 0.1700  40 of 60 samples, at random\n" in str(report)


def test_strings_and_bad_input(binary):
    label, proba, expected = binary
    names = np.array(["no", "yes"])[label]
    shown = calibration_report(names, proba, pos_label="yes", random_state=0)
    assert words(shown).replace("class yes", "class 1") == words(expected)
    with pytest.raises(ValueError, match=r"y_pred must lie in \[0, 1\]"):
        calibration_report(label, proba * 2)


@pytest.mark.integration
@pytest.mark.usefixtures("slow_and_true")
def test_readme_shows_the_report():
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    proba = GaussianNB().fit(X_train, y_train).predict_proba(X_test)
    readme = read_page("README.md")
    report = f"{calibration_report(y_test, proba, random_state=0)}\n"
    (shown,) = re.findall(r"```text\n(Calibration of \d+ predictions.*?)```", readme, re.DOTALL)
    pattern = r"(.*\n)+".join(re.escape(part) for part in shown.split("...\n"))
    assert re.fullmatch(pattern, report)


def test_one_sample():
    assert calibration_report([1], [0.9]).numbers["p_value"] > 0.5


def test_counts_beside_one_column_are_numbers():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="Forecasts of a number are passed as") as refused:
        calibration_report(rng.poisson(5.0, 40), rng.gamma(5.0, 1.0, 40))
    assert "logits" not in str(refused.value)


def test_an_intercept_that_clipping_makes_is_left_out():
    label = np.arange(40) % 4 > 0
    numbers = calibration_report(label, np.ones(40), labels=[False, True]).numbers
    assert "calibration_intercept" not in numbers
    certain = np.where(np.arange(40) < 3, 1.0, 0.6)  # rounded, as no other is near 1
    numbers = calibration_report(label, certain, random_state=0).numbers
    assert not {"calibration_intercept", "calibration_slope"} & set(numbers)
    certain[3:6] = 1 - 1e-9
    numbers = calibration_report(label, certain, random_state=0).numbers
    assert {"calibration_intercept", "calibration_slope"} <= set(numbers)


def test_tenths_are_not_called_too_extreme():
    rng = np.random.default_rng(0)
    proba = rng.beta(1.2, 2, 400)
    label = rng.random(400) < proba
    report = calibration_report(label, np.round(proba, 1), random_state=0)
    assert len(report.findings) == 1
    assert "(perhaps rounded)" in report.findings[0]


def test_the_level_comes_first_where_no_event_occurred():
    proba = np.random.default_rng(0).random(400)
    _, found = ClassSections(problem_of(proba, np.zeros(400, int)), np.random.RandomState(0)).test()
    assert found[0].startswith("probabilities of class 1 are too high on average: ")
    assert found[1].endswith(" predicted, 0 observed")


def test_a_clear_level_is_told_beside_the_spread():
    rng = np.random.default_rng(0)
    score = 1.5 * rng.normal(size=500)
    event = np.tile([1, 1, 1, 0], 200)
    event[3:48:4] = 1  # twelve events, or one standard deviation, more than predicted
    for proba, label, expected in (
        (expit(score), rng.random(500) < expit(0.4 * score + 0.5), ["spread", "level"]),
        (expit(score), rng.random(500) < expit(score + 0.5), ["level"]),
        (np.repeat([0.6, 0.9], 400), event, ["spread"]),
    ):
        _, found = ClassSections(problem_of(proba, label), np.random.RandomState(0)).test()
        told = [text for text in found if text.name in ("spread", "level")]
        assert [text.name for text in told] == expected
        if expected[-1] == "level":
            assert told[-1].startswith("probabilities of class 1 are too low on average")


def test_a_spread_that_all_classes_share_is_said_of_all():
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(1500, 5))
    proba = softmax(logits, axis=1)
    label = (rng.random((1500, 1)) > proba.cumsum(axis=1)).sum(axis=1)
    sharp = check_predictions(label, softmax(1.6 * logits, axis=1), labels=range(5))
    _, found = ClassSections(sharp, np.random.RandomState(0)).test()
    assert any(
        text.startswith("probabilities of all classes are too extreme, most") for text in found
    )
    scale = np.array([1, 1, 1.8, 1, 1])
    sharp = check_predictions(label, softmax(scale * logits, axis=1), labels=range(5))
    _, found = ClassSections(sharp, np.random.RandomState(0)).test()
    expected = "probabilities of class 2, the clearest of 5 classes, are too extreme"
    assert any(text == expected for text in found), found


def test_a_large_gap_in_a_range_of_rare_events_is_not_small():
    rng = np.random.default_rng(1)
    score = rng.normal(-4, 1, 20_000)
    label = rng.random(20_000) < expit(0.8 * score - 0.65)
    sections = ClassSections(problem_of(expit(score), label), np.random.RandomState(0))
    numbers = {"smooth_calibration_error": 0.002}
    assert not sections.is_small(numbers, [])


def test_an_error_of_a_very_rare_event_is_told_beside_the_prevalence():
    rng = np.random.default_rng(0)
    proba = rng.uniform(0.005, 0.015, 1000)
    report = calibration_report(rng.random(1000) < proba, proba, random_state=0)
    high = report.intervals["smooth_calibration_error"][1]
    expected = f"{high:.2g}, {100 * high / report.numbers['prevalence']:.3g} % of the prevalence"
    assert expected in report.advice
    common = problem_of([0.98, 0.99] * 50, [0, *[1] * 99])  # the rarer outcome is no event
    assert ClassSections(common, rng).compare_to_prevalence(0.01) == ("", {})


def test_an_interval_of_the_ratio_without_1_is_told_where_the_test_finds_nothing():
    predictions = problem_of([0.3, 0.6], [0, 1])
    numbers = {"p_value": 0.08, "smooth_calibration_error": 0.3, "n_samples": 2, "n_tested": 2}
    for ends, phrase in (
        ((0.66, 0.99), "less frequent than predicted: the 95 % interval of the O:E ratio, 0.66 to"),
        ((1.004, 1.39), "more frequent than predicted"),
        ((1.0004, 1.3), "1.0004 to 1.3, excludes 1."),
    ):
        assert phrase in advice(predictions, numbers, {"observed_expected_ratio": ends}, [])
    assert "excludes" not in advice(predictions, numbers, {"observed_expected_ratio": (0.9, 1)}, [])


def test_accuracy_and_rank_are_those_of_scikit_learn():
    label, proba = random_problem(np.random.default_rng(0), 200, 3)
    report = calibration_report(label, proba, random_state=0)
    expected = roc_auc_score(label, proba, multi_class="ovr")
    assert report.numbers["area_under_roc_curve"] == pytest.approx(expected, abs=1e-12)
    low, high = report.intervals["accuracy"]
    assert report.numbers["accuracy"] == pytest.approx((proba.argmax(axis=1) == label).mean())
    assert low < report.numbers["accuracy"] < high <= 1


def test_names_cannot_steer_a_terminal():
    rng = np.random.default_rng(0)
    names = np.array([b"a", b"\x1b[2J", b"c"])
    label, proba = rng.integers(0, 3, 60), rng.dirichlet([3, 1, 3], 60)
    in_bytes = calibration_report(names[label], proba)
    assert json.loads(in_bytes.to_json())["classes"][0]["class"] in ("a", "\x1b[2J", "c")
    by = {"x\x07": ["u", "v"] * 30}
    red = np.array(["a", "\x1b[31mRED"])
    options = {"labels": red, "random_state": 0}
    single = calibration_report(red[label % 2], proba[:, 0], **options)
    assert single.event == red[1]
    several = calibration_report(
        red[label % 2], {"\x1bfirst": proba[:, 0], "\x1bsecond": proba[:, 1]}, **options
    )
    assert all("\x1b" not in str(report) for report in (single, several))
    assert list(several.reports) == ["\x1bfirst", "\x1bsecond"]
    report = calibration_report(names.astype(str)[label], proba, by=by, name="\x1bA", date="\x1b1")
    assert (report.name, report.date) == (r"\x1bA", r"\x1b1")
    assert r"\x1b[2J" in str(report)
    assert r"x\x07" in str(report)
    assert str(report).replace("\n", "").isprintable()


def test_dictionary_and_json_hold_everything(three):
    content = three.to_dict()
    assert content["subgroups"] == three.subgroups
    assert content["p_value"] == three.numbers["p_value"]
    assert json.loads(three.to_json()) == content
    impossible = calibration_report([1, 0, 0, 1] * 5, [0.0, 0.1, 0.2, 0.9] * 5, random_state=0)
    json.loads(impossible.to_json(), parse_constant=pytest.fail)


def test_subgroups_are_those_of_the_table_and_the_test():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 300)
    by = {"site": rng.choice(["north", "south", "<west>"], 300)}
    report = calibration_report(label, proba, by=by, random_state=0)
    assert [one["subgroup"] for one in report.subgroups] == ["<west>", "north", "south"]
    assert "\nsite    samples  smooth calibration error" in str(report)
    for one in report.subgroups:
        rows = by["site"] == one["subgroup"]
        assert one["n_samples"] == rows.sum()
        expected = smooth_calibration_error(label[rows], proba[rows])
        assert one["estimate"] == pytest.approx(expected, abs=1e-15)
        assert f"{one['low']:.4f} to {one['high']:.4f}" in str(report)
    test = SubgroupCalibrationTest(random_state=0).fit(proba, label, by=by)
    assert report.numbers["subgroup_p_value"] == pytest.approx(test.p_value_, abs=0.05)


def test_groups_widen_the_intervals():
    rng = np.random.default_rng(0)
    proba = np.repeat(rng.random(40), 10)
    label = (np.repeat(rng.random(40), 10) < proba).astype(int)
    groups = np.repeat(np.arange(40), 10)
    alone, grouped = (
        calibration_report(label, proba, groups=which, random_state=0) for which in (None, groups)
    )
    width = [np.diff(report.intervals["log_loss"])[0] for report in (alone, grouped)]
    assert width[1] > 2 * width[0]
    assert alone.numbers["p_value"] < 0.01 < grouped.numbers["p_value"]


def test_one_group_that_outweighs_the_others_leaves_no_intervals():
    label, proba = random_problem(np.random.default_rng(0), 100)
    groups = np.append(np.zeros(88), np.arange(12))
    report = calibration_report(label, proba, groups=groups, random_state=0)
    assert report.intervals.keys() <= {"gain"}


def test_large_groups_of_a_calibrated_model_are_no_miscalibration():
    # one number for the labels of a large group: with one dependence for all groups, p was 0.031
    rng = np.random.default_rng(2)
    size = np.repeat([60, 2], [20, 380])
    groups = np.repeat(np.arange(400), size)
    proba = rng.beta(1.5, 98.5, size=len(groups))
    common = rng.random(400)[groups]
    label = np.where(size[groups] == 60, common, rng.random(len(groups))) < proba
    report = calibration_report(label, proba, groups=groups, random_state=2)
    assert report.advice.startswith("No evidence of miscalibration")


def test_subgroups_of_many_samples_are_tested_on_even_parts(monkeypatch):
    monkeypatch.setattr("skcalib.report._classes.max_tested_samples", lambda _: 100)
    rng = np.random.default_rng(0)
    proba = rng.random(200)
    label = (rng.random(200) < proba).astype(int)
    by = np.repeat(["a", "b", "c"], [5, 20, 175])
    report = calibration_report(label, proba, by=by, random_state=0)
    assert report.subgroups[2]["p_value"] > 0.1
    label[199], proba[199] = 1, 0.0
    report = calibration_report(label, proba, by=by, random_state=0)
    assert [one["n_tested"] for one in report.subgroups] == [5, 20, 25]
    assert report.subgroups[2]["p_value"] < 0.01  # the impossible label is among those tested
    assert "(their p-values are of at most 25 samples of each, chosen at random)" in str(report)


# 25 subgroups, each with its test and its interval, and a page: 0.5 s
def test_of_many_subgroups_the_most_conspicuous_are_shown():
    rng = np.random.default_rng(0)
    proba, by = rng.uniform(0.1, 0.9, 300), np.arange(300) % 25
    label = np.where(by == 17, 0, rng.random(300) < proba)
    report = calibration_report(label, proba, by={"site": by.astype(str)}, random_state=0)
    assert len(report.subgroups) == 25
    (lines,) = [part.split("\n") for part in str(report).split("\n\n") if part.startswith("site")]
    assert lines[0].startswith("site (20 of 25)  samples")
    assert len(lines) == 21
    assert lines[1].startswith("17 ")
    html = report.to_html()
    assert "<th scope='col'>site (20 of 25)</th>" in html
    names = [f"<th scope='row'>{one['subgroup']}</th>" in html for one in report.subgroups]
    assert sum(names) == 20


def test_fewer_samples_in_groups_are_tested():
    label, proba = random_problem(np.random.default_rng(0), 60)
    alone = problem_of(proba, label)
    grouped = replace(alone, groups=np.arange(60) // 2)
    assert max_tested_samples(grouped) < 0.7 * max_tested_samples(alone)


def test_even_parts():
    rng = np.random.RandomState(0)
    code = np.repeat([0, 1, 2], [2, 30, 8])
    first = np.zeros(40, dtype=bool)
    first[[30, 31]] = True
    for most, sizes in ((40, [2, 30, 8]), (12, [2, 5, 5]), (3, [1, 1, 1]), (1, [1, 1, 1])):
        rows = subsample_evenly(code, most, rng, first)
        assert len(set(rows)) == len(rows)
        np.testing.assert_array_equal(np.bincount(code[rows]), sizes)
        assert most < 12 or {30, 31} <= set(rows)
    drawn = np.bincount(
        np.concatenate([subsample_evenly(code, 12, rng, None) for _ in range(2000)]), minlength=40
    )
    assert (drawn[:2] == 2000).all()
    deviation = np.sqrt(2000 * (5 / 30) * (25 / 30))
    assert np.abs(drawn[2:32] - 2000 * 5 / 30).max() < 4.5 * deviation


def test_miscalibrated_subgroups_contradict_no_evidence():
    rng = np.random.default_rng(0)
    proba, by = rng.uniform(0.2, 0.8, 1000), np.arange(1000) % 2
    label = rng.random(1000) < proba + np.where(by == 1, 0.15, -0.15)
    report = calibration_report(label, proba, by={"sex": by}, random_state=0)
    assert report.advice.startswith("No evidence of miscalibration")
    found = "subgroups (p ≤ 0.001) finds miscalibration in 2 of 2: sex 0; sex 1. Subgroups are"
    assert found in report.advice
    many = [
        {"name": str(k), "p_value": 0.01, "deviation": 1.0, "low": 0.1 * (k > 0)} for k in range(7)
    ]
    predictions = problem_of([0.3, 0.6], [0, 1])
    numbers = {"p_value": 0.5, "smooth_calibration_error": 0.3, "n_samples": 2, "n_tested": 2}
    numbers["subgroup_p_value"] = 0.01
    text = advice(predictions, numbers, {}, [], many)
    expected = "in 7 of 7: 0; 1; 2; 3; 4 and 2 more. An interval may begin at 0 all the same"
    assert expected in text
    numbers["p_value"] = 0.01
    assert "subgroups" not in advice(predictions, numbers, {}, [], many)
    # some of them explain what the test of all samples finds
    many.append(many[0] | {"subgroup": "right", "p_value": 0.9})
    text = advice(predictions, numbers, {}, ["x is y"], many)
    assert "x is y. The test of subgroups (p = 0.01) finds miscalibration in 7 of 8: 0; 1" in text
    assert text.endswith("SubgroupRecalibrator recalibrates each subgroup by itself.")
    text = advice(predictions, numbers | {"gain": 0.1}, {"gain": (0.05, 0.2)}, ["x is y"], many)
    assert "finds miscalibration in 7 of 8" in text
    assert "SubgroupRecalibrator" not in text
    assert text.endswith("this lowers the log loss by 0.1.")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_subgroups_that_are_wrong_on_opposite_sides_are_told_beside_the_whole(n_classes):
    rng = np.random.default_rng(0)
    p, by = rng.uniform(0.55, 0.75, 900), np.arange(900) % 3
    label = (rng.random(900) < p + np.array([0.2, -0.3, -0.1])[by]).astype(int)
    proba = p if n_classes == 2 else np.column_stack([1 - p, p, np.zeros(900)])
    options = {"labels": range(n_classes), "by": {"site": by}, "random_state": 0}
    report = calibration_report(label, proba, **options)
    assert report.advice.startswith("Miscalibrated")
    assert "wrong on opposite sides: " in report.advice
    assert re.search(
        r" than predicted in [^1]*0, less (often|frequent) in [^0]*1; [^0]*2\. Subg", report.advice
    )
    assert "RecalibratedClassifier" not in report.advice
    one_side = calibration_report(rng.random(900) < p - 0.1, p, by={"site": by}, random_state=0)
    assert "opposite" not in one_side.advice


def test_recalibrated_predictions_are_not_to_be_recalibrated_again():
    label, proba = random_problem(np.random.default_rng(0), 100)
    report = calibration_report(label, proba, recalibrated=True, random_state=0)
    assert report.advice.startswith("Still miscalibrated (p ≤ 0.001)")
    assert "RecalibratedClassifier" not in report.advice


# five folds of an average of recalibrators: 0.5 s
def test_gain_is_that_on_unseen_samples(monkeypatch):
    monkeypatch.setattr(ClassSections, "gain", Sections.gain)
    rng = np.random.default_rng(0)
    proba = rng.random(1000)
    truth = 1 / (1 + ((1 - proba) / proba) ** 0.4)
    label = (rng.random(1000) < truth).astype(int)
    report = calibration_report(label, proba, random_state=0)
    possible = log_loss(label, proba) - log_loss(label, truth)
    low, high = report.intervals["gain"]
    assert low < possible < high
    assert report.numbers["gain"] == pytest.approx(possible, abs=0.02)
    assert f"this lowers the log loss by {report.numbers['gain']:.2g}." in report.advice


def test_audit_trail_tells_data_apart():
    label, proba = random_problem(np.random.default_rng(0), 50)
    weight = np.ones(50)
    weight[3] = 0
    audits = [
        calibration_report(label, proba, **options).audit
        for options in (
            {"random_state": 0},
            {"random_state": 0, "sample_weight": weight},
            {"random_state": 1},
        )
    ]
    (name,) = [name for name in audits[0] if "sha256" in name]
    assert audits[0][name] == audits[2][name] != audits[1][name]
    assert audits[1]["rows left out"] == "1 (of weight 0)"
    assert audits[2]["random_state"] == "1"
    assert audits[0]["rows"] == 50


class Elements(HTMLParser):
    """The tags of a page, and its texts."""

    def __init__(self):
        super().__init__()
        self.tags, self.texts, self.links, self.ids, self.labels = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name.endswith(("src", "href"))]
        self.ids += [value for name, value in attrs if name == "id"]
        self.labels += [value for name, value in attrs if name == "aria-label"]

    def handle_data(self, data):
        self.texts.append(data)


def test_page_is_self_contained_and_safe(tmp_path):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 60)
    names = np.array(["<script>alert(1)</script>", '"&=1+1'])
    by = {"<script>site": np.where(rng.random(60) < 0.5, "<b>", "'><img src=x>")}
    report = calibration_report(names[label], proba, labels=names, by=by, random_state=0)
    html = report.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == html
    page = Elements()
    page.feed(html)
    assert not {"script", "b", "img", "link"} & set(page.tags)
    assert all(link.startswith("#") for link in page.links)
    text = " ".join("".join(page.texts).split())
    for found in report.findings:
        assert f"{found[0].upper()}{found[1:]}." in text
    assert "RecalibratedClassifier takes a classifier" in text
    assert "<b>" in text
    assert "<script>site" in text
    assert "prefers-color-scheme: dark" in html
    assert report._repr_html_().count("<table>") == 6
    assert page.tags.count("svg") == 4
    assert len(set(page.ids)) == len(page.ids)


@pytest.fixture(scope="module")
def page(binary):
    """The page of the report on two classes, drawn beside dark figures."""
    with plt.style.context("dark_background"):
        return binary[2].to_html()


# four pictures: 0.5 s
def test_pictures_take_the_colours_of_the_page(page, monkeypatch):
    few = partial(CalibrationTest, n_resamples=9)
    monkeypatch.setattr("skcalib.report._forecasts.CalibrationTest", few)
    label, proba = random_problem(np.random.default_rng(0), 20)
    with plt.style.context("dark_background"):
        forecast = calibration_report(label, (proba + 0.3, np.full(20, 1.0)), random_state=0)
        html = page + forecast.to_html()
    pictures = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(pictures) == 4
    used = set()
    for svg in pictures:
        used |= set(re.findall(r"(?:fill|stroke): ([^;\"]+)", svg))
    assert used == {
        "none",
        "currentColor",
        "var(--mark)",
        "var(--soft)",
        "var(--line)",
        "var(--faint)",
    }
    for name in ("mark", "soft", "line", "faint"):
        assert html.count(f"--{name}: ") == 2 * 3  # light, dark and print of two pages


def test_words_say_what_the_pictures_show(binary, page):
    label, proba, _ = binary
    elements = Elements()
    elements.feed(page)
    curve, residuals, benefit = elements.labels
    for place in np.quantile(proba, [0.1, 0.5, 0.9], method="inverted_cdf"):
        model = IsotonicRecalibrator(strict=False).fit(proba, label)
        seen = model.predict_proba([place])[0, 1]
        assert f"{place:.3g} came true {100 * seen:.3g} % of the time" in curve
    assert "leaves the band" in curve
    width = 2 * proba.std() / 103**0.2
    for kind, side in (("highest", 1), ("lowest", -1)):
        value, place = re.search(kind + r", ([+-][\d.]+), near ([\d.]+\d)", residuals).groups()
        kernel = sum(
            np.exp(-(((float(place) - sign * proba + shift) / width) ** 2) / 2)
            for sign in (1, -1)
            for shift in (-2, 0, 2)
        )
        gap = kernel @ (label - proba) / kernel.sum()
        assert float(value) == pytest.approx(gap, abs=0.01)
        assert side * gap > side * np.mean(label - proba)
    error = smooth_calibration_error(label, proba)
    assert residuals.endswith(f"The smooth calibration error is {error:.3f}.")
    threshold, value, expected = re.findall(r"\d\.\d+", benefit)
    threshold = float(threshold)
    assert threshold == pytest.approx(np.mean(label), abs=0.01)
    for outcome, said in ((label, value), (proba, expected)):
        harm = threshold / (1 - threshold)
        gain = np.mean((proba > threshold) * (outcome - (1 - outcome) * harm))
        assert float(said) == pytest.approx(gain, abs=0.002)


def test_names_that_no_picture_can_write():
    label, proba = random_problem(np.random.default_rng(0), 50)
    predictions = problem_of(proba, label)
    for names, shown in (
        (["$\\frac{1}{2", "\u732b"], ["class 0", "class 1"]),
        (["a\nb", "yes"], ["class 0", "yes"]),
        (["x" * 50, "class 0"], ["class 0", "class 1"]),
    ):
        assert _writable_names(names, "class") == shown
    classes = np.array(["$\\frac{1}{2", "\u732b"], dtype=object)
    few = replace(predictions, classes=classes).take(slice(20))
    numbers = {"smooth_calibration_error": 0.1, "prevalence": few.weight @ few.label}
    assert len(render_class_pictures(few, numbers, {}, [])) == 3
