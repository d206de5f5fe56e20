"""The report shows the numbers of the metrics and gives the advice that they call for."""

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from oracles import brier_score
from problems import random_problem, two_columns
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from skcalib.hypothesis_tests import CalibrationTest, SubgroupCalibrationTest
from skcalib.metrics import (
    calibration_distance_bounds,
    expected_calibration_error,
    smooth_calibration_error,
)
from skcalib.report import calibration_report


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    monkeypatch.setattr("skcalib.report._numbers._N_RESAMPLES", 39)


def words(report):
    return " ".join(str(report).split())


def test_numbers_are_those_of_the_metrics_for_two_classes():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 200)
    weight = rng.random(200)
    numbers = calibration_report(label, proba, sample_weight=weight, random_state=0).numbers
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
    assert set(numbers) == {*expected, *parts, "p_value", "gain"}


def test_numbers_are_those_of_the_metrics_for_many_classes():
    label, proba = random_problem(np.random.default_rng(0), 200, 4)
    numbers = calibration_report(label, proba, random_state=0).numbers
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
    numbers = calibration_report(label, proba, random_state=0).numbers
    text = str(calibration_report(label, proba, random_state=0))
    for key, value in numbers.items():
        if isinstance(value, float):
            assert format(value, ".4f") in text, key
    report = calibration_report(label, proba, random_state=0)
    assert report.advice.split() == text.split("\n\n")[-1].split()
    assert {"log_loss", "smooth_calibration_error_confidence"} < set(report.intervals)
    for low, high in report.intervals.values():
        assert f"{low:.4f} to {high:.4f}" in text


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
    assert phrase in words(calibration_report(label, proba, random_state=0))


def test_advice_where_errors_cancel():
    # 0.6 and 0.9 are both 0.75 in truth: wrong everywhere, right on average
    proba = np.repeat([0.6, 0.9], 2000)
    label = np.tile([1, 1, 1, 0], 1000)
    report = words(calibration_report(label, proba, random_state=0))
    assert "probabilities of class 1 are spread too far" in report
    assert "probabilities of about 0.9, where 0.9 is predicted and 0.75 observed" in report


def test_a_class_that_is_off_is_named():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), size=3000)
    truth = proba * [1.0, 1.0, 1.4, 1.0]
    truth /= truth.sum(axis=1, keepdims=True)
    label = np.array(list("abcd"))[(rng.random((3000, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)]
    observed, predicted = np.mean(label == "c"), proba[:, 2].mean()
    report = words(calibration_report(label, proba, random_state=0))
    expected = f"class c is observed {observed:.3g} of the time, where the mean prediction is"
    assert f"{expected} {predicted:.3g}" in report


def test_a_small_difference_is_called_small():
    rng = np.random.default_rng(0)
    proba = rng.uniform(0.2, 0.8, 200000)
    label = rng.random(200000) < proba + 0.006
    report = words(calibration_report(label, proba, random_state=0))
    assert "Miscalibrated (p = 0.001)" in report
    assert "that is little, and may not matter" in report


def test_impossible_labels_are_certain_evidence():
    # one of ten samples: what has probability 0 does not happen
    label, proba = [1, 0, 1, 1, 0, 0, 1, 1, 0, 1], [0.0, *[0.5] * 9]
    report = words(calibration_report(label, proba, random_state=0))
    assert "Miscalibrated (p = 0.001): a label occurred that had probability 0" in report


def test_large_problems_are_tested_on_a_part(monkeypatch):
    monkeypatch.setattr("skcalib.report._numbers._SECONDS", 50.5 * 999 * 3.3e-8)
    label, proba = random_problem(np.random.default_rng(0), 200, 3)
    numbers = calibration_report(label, proba, random_state=0).numbers
    assert numbers["n_tested"] == 50
    assert "(the p-values are of 50 samples, chosen at random)" in str(
        calibration_report(label, proba, random_state=0)
    )


def test_strings_and_bad_input():
    label, proba = random_problem(np.random.default_rng(0), 50)
    names = np.array(["no", "yes"])[label]
    expected = calibration_report(label, proba, random_state=0)
    shown = calibration_report(names, proba, random_state=0)
    assert words(shown).replace("class yes", "class 1") == words(expected)
    with pytest.raises(ValueError, match=r"y_proba must lie in \[0, 1\]"):
        calibration_report(label, proba * 2)


def test_readme_shows_the_report(monkeypatch):
    monkeypatch.setattr("skcalib.report._numbers._N_RESAMPLES", 199)
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    proba = GaussianNB().fit(X_train, y_train).predict_proba(X_test)
    readme = Path(__file__).parents[2] / "README.md"
    report = calibration_report(y_test, proba, random_state=0)
    assert f"```text\n{report}\n```" in readme.read_text(encoding="utf-8")


def test_one_sample():
    assert calibration_report([1], [0.9]).numbers["p_value"] > 0.5


def test_dictionary_and_json_hold_everything():
    label, proba = random_problem(np.random.default_rng(0), 200, 3)
    report = calibration_report(label, proba, by=["a", "b"] * 100, random_state=0)
    content = report.to_dict()
    assert content["subgroups"] == report.subgroups
    assert content["p_value"] == report.numbers["p_value"]
    assert json.loads(report.to_json()) == content
    impossible = calibration_report([1, 0, 0, 1] * 5, [0.0, 0.1, 0.2, 0.9] * 5, random_state=0)
    json.loads(impossible.to_json(), parse_constant=pytest.fail)


def test_subgroups_are_those_of_the_table_and_the_test():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 300)
    by = {"site": rng.choice(["north", "south", "<west>"], 300)}
    report = calibration_report(label, proba, by=by, random_state=0)
    assert [one["subgroup"] for one in report.subgroups] == ["<west>", "north", "south"]
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


def test_recalibrated_predictions_are_not_to_be_recalibrated_again():
    label, proba = random_problem(np.random.default_rng(0), 200)
    report = calibration_report(label, proba, recalibrated=True, random_state=0)
    assert report.advice.startswith("Still miscalibrated (p = 0.001)")
    assert "RecalibratedClassifier" not in report.advice


def test_gain_is_that_on_unseen_samples():
    rng = np.random.default_rng(0)
    proba = rng.random(1000)
    truth = 1 / (1 + ((1 - proba) / proba) ** 0.4)
    label = (rng.random(1000) < truth).astype(int)
    report = calibration_report(label, proba, random_state=0)
    possible = log_loss(label, proba) - log_loss(label, truth)
    low, high = report.intervals["gain"]
    assert low < possible < high
    assert report.numbers["gain"] == pytest.approx(possible, abs=0.02)


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
        self.tags, self.texts, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data):
        self.texts.append(data)


def test_page_is_self_contained_and_safe(tmp_path):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 300)
    names = np.array(["<script>alert(1)</script>", '"&=1+1'])
    by = np.where(rng.random(300) < 0.5, "<b>", "'><img src=x>")
    report = calibration_report(names[label], proba, labels=names, by=by, random_state=0)
    html = report.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == html
    page = Elements()
    page.feed(html)
    assert not {"script", "b", "img", "link"} & set(page.tags)
    assert all(link.startswith("#") for link in page.links)
    text = " ".join("".join(page.texts).split())
    assert report.advice in text
    assert "<b>" in text
    assert "prefers-color-scheme: dark" in html
    assert report._repr_html_().count("<table>") == 3
    assert page.tags.count("svg") == 1
