"""A report on several models shows the report on each, and what differs between them."""

import json
from functools import partial

import numpy as np
import pytest
from problems import random_problem
from sklearn.metrics import log_loss

from skcalib.datasets import make_forecasts
from skcalib.forecasts import GaussianForecast
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.report import calibration_report
from skcalib.report._sections import DRAWING
from skcalib.uncertainty import compare_models


@pytest.fixture(autouse=True, scope="module")
def quick():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DRAWING, "n_resamples", 39)
        patch.setattr("skcalib.report._sections.Sections.gain", lambda _: None)
        few = partial(CalibrationTest, n_resamples=99)
        patch.setattr("skcalib.report._forecasts.CalibrationTest", few)
        yield


def models(n_classes=2):
    """Labels, and probabilities before and after they are moved towards their mean."""
    label, proba = random_problem(np.random.default_rng(0), 100, n_classes)
    return label, {"before": proba, "<b>after": (proba + proba.mean(axis=0)) / 2}


@pytest.fixture(scope="module")
def two():
    label, probas = models()
    options = {"recalibrated": True, "random_state": 0, "date": "today"}
    return label, probas, calibration_report(label, probas, name="Bayes", **options)


def test_reports_are_those_of_the_models(two):
    label, probas, found = two
    for name, proba in probas.items():
        options = {"name": f"Bayes, {name}", "recalibrated": name != "before", "date": "today"}
        expected = calibration_report(label, proba, **options, random_state=0)
        assert str(found.reports[name]) == str(expected)
        assert " ".join(f"{name}: {expected.advice}".split()) in " ".join(str(found).split())
    heading = "Calibration of Bayes, before and <b>after: 100 predictions, 2 classes"
    assert str(found).startswith(f"{heading}\ntoday\n\nbefore: Miscalibrated (p ≤ 0.001): ")
    assert "\n\n<b>after: Still miscalibrated" in str(found)


def test_changes_are_differences_with_their_intervals(two):
    label, probas, found = two
    before, after = (one.numbers for one in found.reports.values())
    rows = {one["measure"]: one for one in found.changes}
    for name, row in rows.items():
        assert (row["reference"], row["value"]) == (before[name], after[name])
        assert row["difference"] == after[name] - before[name]
        assert row["low"] <= row["difference"] <= row["high"]
        assert f"{row['low']:+.4f} to {row['high']:+.4f}" in str(found)
    paired = compare_models(log_loss, label, *list(probas.values())[::-1])
    assert rows["log_loss"]["low"] == pytest.approx(paired.low, rel=1e-9)
    assert rows["log_loss"]["high"] == pytest.approx(paired.high, rel=1e-9)
    assert {"calibration_slope", "smooth_calibration_error", "area_under_roc_curve"} < rows.keys()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_picture_shows_each_model_with_its_own_outcomes(n_classes):
    label, probas = models(n_classes)
    other = np.roll(label, 7)
    found = calibration_report(
        {"a": label, "b": other}, dict(zip("ab", probas.values(), strict=False))
    )
    (picture,) = found.draw().values()
    error = "smooth_calibration_error" + "_confidence" * (n_classes > 2)
    for name, report in found.reports.items():
        assert f"{name}, smooth CE {report.numbers[error]:.3f}" in picture
    if n_classes == 2:
        assert f"{label.mean():.4f}   {other.mean():.4f}" in str(found)


def test_a_model_does_not_differ_from_itself():
    label, probas = models()
    same = {"a": probas["before"], "b": probas["before"]}
    for row in calibration_report(label, same, random_state=0).changes:
        assert row["difference"] == 0
        assert row["low"] <= 0 <= row["high"]


def test_json_and_page_of_several_models(two):
    _, _, found = two
    content = json.loads(found.to_json())
    assert content["reports"]["before"] == json.loads(found.reports["before"].to_json())
    assert content["changes"] == found.changes
    html = found.to_html()
    assert html.count("<svg") == 1
    assert html.count("<script") == html.count("<b>") == 0
    assert html.count("&lt;b&gt;after</th>") == 1
    assert "The curves of before, &lt;b&gt;after, and" in html
    assert html.count("<h2>How far from calibrated?</h2>") == 2
    assert f"{found.changes[0]['difference']:+.4f}</td>" in html
    assert found._repr_html_().count("<table>") == 10


# two reports on three classes: 0.5 s
def test_changes_of_many_classes():
    label, probas = models(3)
    found = calibration_report(label, probas, random_state=0)
    rows = {one["measure"]: one for one in found.changes}
    assert "calibration_slope" not in rows
    for kind in ("confidence", "classwise"):  # confidences are of other outcomes for each model
        row = rows[f"smooth_calibration_error_{kind}"]
        options = {"metric_params": {"multi_class": kind}, "n_resamples": 39, "random_state": 0}
        paired = compare_models(
            "smooth_calibration_error", label, *list(probas.values())[::-1], **options
        )
        assert row["difference"] == pytest.approx(paired.difference, abs=1e-12)
        assert [row["low"], row["high"]] == pytest.approx([paired.low, paired.high], abs=0.1)


def test_changes_of_forecasts():
    y, forecast = make_forecasts(20, dispersion=0.5, random_state=0)
    wider = forecast.mean(), 2 * forecast.std()
    narrow = forecast.mean(), forecast.std() / 2
    found = calibration_report(y, {"a": forecast, "b": wider, "c": narrow}, random_state=0)
    assert [one["model"] for one in found.changes] == ["b", "b", "c", "c"]
    errors = [one for one in found.changes if one["measure"] == "quantile_calibration_error"]
    assert errors[0]["difference"] < 0 < errors[1]["difference"]
    paired = compare_models("continuous_ranked_probability_loss", y, wider, forecast)
    assert [found.changes[1][end] for end in ("low", "high")] == [paired.low, paired.high]
    assert "a, b and c: 20 forecasts" in str(found)
    assert found.to_html().count("<svg") == 1


def test_few_samples_have_no_intervals_of_changes():
    found = calibration_report([0, 1, 1], {"a": [0.1, 0.7, 0.8], "b": [0.3, 0.6, 0.9]})
    assert all(np.isnan([one["low"], one["high"]]).all() for one in found.changes)
    assert "nan" not in str(found)
    assert "null" in found.to_json()


def test_names_may_be_numbers():
    found = calibration_report([0, 1], {0: [0.1, 0.9], 1: [0.3, 0.8]})
    assert str(found).startswith("Calibration of models, 0 and 1: 2 predictions")
    assert {"0", "1"} == json.loads(found.to_json())["reports"].keys()


def test_models_that_cannot_be_compared():
    with pytest.raises(ValueError, match="at least 1 model"):
        calibration_report([0, 1], {})
    with pytest.raises(ValueError, match=r"y_pred\['b'\] must lie in \[0, 1\]"):
        calibration_report([0, 1], {"a": [0.1, 0.9], "b": [0.1, 1.9]})
    with pytest.raises(ValueError, match="must be of the same kind"):
        calibration_report([0, 1], {"a": [0.1, 0.9], "b": GaussianForecast([0.1, 1.9], [1.0, 1.0])})
