"""Numbers in a picture are those of the report, although a part of the samples may be drawn."""

import re
from functools import partial

import numpy as np
import pytest
from matplotlib.figure import Figure

from skcalib._data import check_forecasts, check_predictions
from skcalib.datasets import make_forecasts, make_temperature_family
from skcalib.forecasts import EnsembleForecast
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.report import _pictures, calibration_report
from skcalib.report._classes import ClassSections
from skcalib.report._forecasts import ForecastSections
from skcalib.report._pictures import render_model_curves
from skcalib.uncertainty import clinical_calibration

ERROR = re.compile(r"(?:smooth CE|(?:smooth|quantile) calibration error)(?: is)? (\d\.\d+)")


@pytest.fixture(autouse=True)
def few_are_drawn(monkeypatch):
    monkeypatch.setattr(_pictures, "_MAX_DRAWN", 50)
    few = partial(CalibrationTest, n_resamples=9)
    monkeypatch.setattr("skcalib.report._classes.CalibrationTest", few)


def errors(svg):
    """The errors that a picture and its words name. Texts are paths, with comments before them."""
    (words,) = re.findall('aria-label="(.*?)"', svg)
    texts = re.findall("<!-- (.*?) -->", svg)
    written = [float(error) for text in [*texts, words] for error in ERROR.findall(text)]
    numbers = [text for text in texts if re.search(r"[a-z].*\d\.\d", text) and " to " not in text]
    assert all(ERROR.search(text) for text in numbers), numbers
    return written


def classes(n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    truth = rng.dirichlet(np.ones(n_classes), 150)
    y = (truth.cumsum(axis=1) > rng.random((150, 1))).argmax(axis=1)
    proba = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    weight = rng.random(150) if weighted else None
    data = check_predictions(y, proba, weight, labels=np.arange(n_classes))
    return ClassSections(data, np.random.RandomState(0))


def forecasts(kind):
    y, forecast = make_forecasts(150, dispersion=0.6, random_state=0)
    if kind == "ensemble":
        spread = 0.7 * np.random.default_rng(0).normal(size=(150, 9))
        forecast = EnsembleForecast(forecast.mean()[:, None] + spread)
    return ForecastSections(check_forecasts(y, forecast), np.random.RandomState(0))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (partial(classes, 2, weighted=False), "smooth_calibration_error"),
        (partial(classes, 10, weighted=True), "smooth_calibration_error_confidence"),
        (partial(forecasts, "normal"), "quantile_calibration_error"),
        (partial(forecasts, "ensemble"), "quantile_calibration_error"),
    ],
)
def test_errors_in_legends_and_words_are_those_of_all_samples(make, name):
    sections = make()
    numbers, _ = sections.measure()
    figures = sections.pictures(numbers, {}, [])
    written = [error for svg in figures.values() for error in errors(svg)]
    assert written == [round(numbers[name], 3)] * (3 if sections.data.kind == "classes" else 1)
    assert sum("drawn from 50 samples" in title for title in figures) >= 1


@pytest.mark.parametrize("kind", ["classes", "forecasts"])
def test_each_model_has_its_own_error_in_the_legend(kind):
    if kind == "classes":  # each with outcomes of its own
        models = {"a": classes(2, weighted=False), "b": classes(2, weighted=True)}
        models["c"] = classes(2, weighted=True)
    else:
        models = {"a": forecasts("normal"), "b": forecasts("ensemble")}
    numbers = {name: sections.measure()[0] for name, sections in models.items()}
    data = {name: sections.data for name, sections in models.items()}
    (svg,) = render_model_curves(data, numbers).values()
    key = "smooth" if kind == "classes" else "quantile"
    assert errors(svg) == [round(of[f"{key}_calibration_error"], 3) for of in numbers.values()]


def test_a_forest_plot_names_the_columns_if_there_are_several():
    label, proba = make_temperature_family(40, random_state=0)
    columns = {"sex": np.arange(40) % 2, "site": np.arange(40) // 20}
    rows = calibration_report(label, proba, by_each=columns, random_state=0).subgroups
    forest = _pictures._draw_forest(rows, {"observed_expected_ratio": 1.0}, {}, Figure())
    words = forest.split("<path")[0]
    assert all(f"{name}: " in words for name in ("sex 0", "sex 1", "site 0", "site 1"))


def test_the_net_benefit_of_rare_events_has_digits():
    proba = np.linspace(1e-5, 3e-4, 40)
    data = check_predictions(np.arange(40) == 39, proba)
    words = _pictures._draw_decisions(data, {"prevalence": proba.mean()}, Figure())
    assert "0.000" not in words.split("<path")[0].split("threshold of")[1].split(", near")[1]


def test_the_page_of_two_classes_has_net_benefit_and_with_subgroups_a_forest_plot():
    y, proba = make_temperature_family(150, inverse_temperature=2, random_state=1)
    site = np.repeat(["north", "south", "University hospital of the far west"], [70, 74, 6])
    report = calibration_report(y, proba / 5, by={"site": site}, random_state=0)
    figures = list(report.figures.items())
    assert [name.split()[0] for name, _ in figures] == ["How", "Where,", "What", "How"]
    (title, benefit), (_, forest) = figures[2:]
    assert "net benefit" in title
    (t, value) = re.search(
        r"threshold of (\d\.\d+), .* benefit of acting by the predictions is (\d[.\d]*)",
        benefit,
    ).groups()
    drawn = np.random.default_rng(0).permutation(150)[:50]
    acts = proba[drawn] / 5 > float(t)
    harm = float(t) / (1 - float(t))
    expected = np.mean(acts * np.where(y[drawn] == 1, 1, -harm))
    assert float(value) == pytest.approx(expected, abs=0.02)
    # the forest plot has the closed form, of all samples
    by_site = clinical_calibration(y, proba / 5, by=site, n_resamples=1, random_state=0)
    table = by_site.observed_expected_ratio
    rows = [
        f"{table[name].estimate:.2f} ({table[name].low:.2f} to {table[name].high:.2f})"
        for name in ("north", "south")
    ]
    name = "observed_expected_ratio"
    low, high = report.intervals[name]
    rows += [
        f"{table.estimate[list(table).index(site[-1])]:.2f} (too few)",
        f"{report.numbers[name]:.2f} ({low:.2f} to {high:.2f})",
    ]
    texts = re.findall("<!-- (.*?) -->", forest)
    assert set(rows) <= set(texts)
    assert f"north, {y[site == 'north'].sum()}/70" in texts
    assert all(row in forest.split("<path")[0] for row in rows)  # in words, too
    assert [row["n_events"] for row in report.subgroups] == by_site.n_events.tolist()
