"""The tables of a report: their headings, names, and numbers that all functions agree on."""

import json
import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score

from skcalib._data import check_forecasts
from skcalib._inputs.by import check_by_each, format_bounded
from skcalib.datasets import make_forecasts
from skcalib.display import NullDistributionDisplay
from skcalib.forecasts import (
    CensoredForecast,
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
)
from skcalib.hypothesis_tests import CalibrationTest, SubgroupCalibrationTest
from skcalib.metrics._registry import ALL_METRICS
from skcalib.report import CalibrationReport, calibration_report
from skcalib.report._forecasts import measure_forecasts
from skcalib.report._sections import DRAWING, Sections
from skcalib.report._text import _find_title
from skcalib.uncertainty import Comparison, clinical_calibration, confidence_interval

GAIN = Sections.gain

HEADINGS = [
    "Is it calibrated?",
    "How far from calibrated?",
    "In the large: level and spread",
    "How good are the predictions?",
]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setitem(DRAWING, "n_resamples", 2)
    monkeypatch.setattr(Sections, "gain", lambda _: None)
    monkeypatch.setattr(CalibrationReport, "figures", {})
    test = partial(CalibrationTest, n_resamples=99)
    monkeypatch.setattr("skcalib.report._classes.CalibrationTest", test)
    monkeypatch.setattr("skcalib.report._forecasts.CalibrationTest", test)
    subgroup_test = partial(SubgroupCalibrationTest, n_resamples=99)
    monkeypatch.setattr("skcalib.report._sections.SubgroupCalibrationTest", subgroup_test)


def problem(n):
    rng = np.random.default_rng(3)
    proba = rng.beta(1, 3, n)
    return (rng.random(n) < proba**1.2).astype(int), proba


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", ["classes", "forecasts"])
def test_four_tables_in_text_and_page(kind):
    data = problem(60) if kind == "classes" else make_forecasts(60, random_state=0)
    report = calibration_report(*data, random_state=0)
    for text in (str(report), report.to_html(), report._repr_html_()):
        positions = [text.index(heading) for heading in HEADINGS]
        assert all(first < second for first, second in pairwise(positions))
    titles = [title for key in report.numbers if (title := _find_title(key, report.numbers)[1])]
    assert all(f"\n{title} " in str(report) for title in titles)
    assert len(set(titles)) == len(titles) > 15


def test_each_measure_of_the_registry_has_its_table():
    for entry in ALL_METRICS.values():
        if entry.in_report:
            heading, title = _find_title(f"{entry.name}_classwise", {})
            assert heading == HEADINGS[1 if entry.chosen else 3]
            assert title == f"{entry.title} (classwise)"


# reports with intervals of everything, and clinical validations: 0.4 s
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", ["weights", "groups"])
def test_all_functions_print_the_same_intervals(kind):
    label, proba = problem(100)
    options = {"groups": np.arange(100) // 3} if kind == "groups" else {}
    options |= {"sample_weight": 1 + np.arange(100) % 3} if kind == "weights" else {}
    report = calibration_report(label, proba, random_state=0, **options)
    options |= {"n_resamples": 2, "random_state": 0}
    clinical = clinical_calibration(label, proba, **options)
    site = clinical_calibration(label, proba, by=np.zeros(100), **options)
    scores = {"log_loss": log_loss, "brier_score_loss": brier_score_loss}
    scores |= {"area_under_roc_curve": roc_auc_score}
    compared = set()
    for name, ends in report.intervals.items():
        others = []
        if hasattr(clinical, name):
            single, table = getattr(clinical, name), getattr(site, name)
            others += [single, table.whole, (table.low[0], table.high[0])]
        if name != "accuracy":
            others.append(confidence_interval(scores.get(name, name), label, proba, **options))
        for low, high in others:
            assert (low, high) == pytest.approx(ends, rel=1e-12, abs=1e-12), name
            compared.add(name)
    assert compared == report.intervals.keys() - {"accuracy"}


POISSON = stats.poisson(np.linspace(0.2, 6, 40))
BINOMIAL = stats.binom(5, np.linspace(0.05, 0.9, 40))


@pytest.mark.parametrize("law", [POISSON, BINOMIAL], ids=["poisson", "binomial"])
def test_expected_coverage_of_counts(law):
    numbers = measure_forecasts(check_forecasts(np.zeros(40), DistributionForecast(law)))
    for level in (0.5, 0.8, 0.95):
        low, high = law.ppf((1 - level) / 2), law.ppf((1 + level) / 2)
        inside = [law.pmf(k) * ((low <= k) & (k <= high)) for k in range(60)]
        expected = np.sum(inside, axis=0).mean()
        assert numbers[f"expected_coverage_{100 * level:.4g}"] == pytest.approx(expected, abs=1e-12)
        assert expected > level


def test_expected_coverage_of_censored_rain():
    mean = np.linspace(-2, 4, 30)
    forecast = CensoredForecast(GaussianForecast(mean, 1.5), lower=0.0)
    numbers = measure_forecasts(check_forecasts(np.ones(30), forecast))
    low, high = (stats.norm.ppf(q, mean, 1.5).clip(0) for q in (0.1, 0.9))
    below = np.where(low > 0, stats.norm.cdf(low, mean, 1.5), 0.0)
    expected = np.mean(stats.norm.cdf(high, mean, 1.5) - below)
    assert numbers["expected_coverage_80"] == pytest.approx(expected, abs=1e-12)
    assert expected > 0.85


@pytest.mark.parametrize("rounded", [False, True])
def test_expected_coverage_of_members_is_that_of_all_exchanges(rounded):
    values = np.random.default_rng(0).normal(size=(40, 10))
    values = values.round(0).clip(0) if rounded else values
    data = check_forecasts(values[:, 0], EnsembleForecast(values[:, 1:]))
    numbers = measure_forecasts(data)
    for level in (0.5, 0.8):
        inside = []
        for k in range(10):
            low, high = EnsembleForecast(np.delete(values, k, axis=1)).interval(level)
            inside.append((low <= values[:, k]) & (values[:, k] <= high))
        expected = np.mean(inside)
        assert numbers[f"expected_coverage_{100 * level:.4g}"] == pytest.approx(expected, abs=1e-12)


def test_the_coverage_that_continuous_forecasts_expect_is_their_level():
    y, forecast = make_forecasts(20, random_state=0)
    numbers = measure_forecasts(check_forecasts(y, forecast))
    assert not [key for key in numbers if key.startswith("expected")]


@pytest.mark.usefixtures("quick")
def test_numbers_hold_numbers_only_and_shares_are_exact():
    label, proba = np.repeat([1, 0], [309, 291]), np.linspace(0.9, 0.1, 600)
    report = calibration_report(label, proba, random_state=0)
    assert report.numbers["prevalence"] == 0.515
    assert report.numbers["accuracy"] == accuracy_score(label, proba >= 0.5)
    assert '"prevalence": 0.515,' in report.to_json()
    assert (report.event, json.loads(report.to_json())["event"]) == ("1", "1")
    assert "class 1\n" in str(report)
    y, forecast = make_forecasts(30, random_state=0)
    three = np.random.default_rng(0).dirichlet([1, 1, 1], 60)
    reports = [
        report,
        calibration_report(y, forecast, random_state=0),
        calibration_report(np.arange(60) % 3, three, random_state=0),
        calibration_report([True] * 20, np.linspace(0.1, 0.9, 20), random_state=0),
    ]
    for one in reports:
        assert {type(value) for value in one.numbers.values()} <= {int, float}


@pytest.mark.usefixtures("quick")
def test_subgroups_bear_the_names_of_their_columns():
    label, proba = problem(60)
    columns = {"stage": np.arange(60) % 2, "hist": np.arange(60) // 30}
    report = calibration_report(label, proba, by=columns, random_state=0)
    assert [row["subgroup"] for row in report.subgroups][1] == "stage 0 & hist 1"
    assert "\nstage 1 & hist 0 " in str(report)
    sites = clinical_calibration(label, proba, by=columns, n_resamples=2, random_state=0)
    assert "\nstage 1 & hist 1 " in str(sites)
    assert "\nstage 1 & hist 1 " in str(sites.observed_expected_ratio)


@pytest.mark.usefixtures("quick")
def test_each_column_by_itself():
    label, proba = problem(60)
    columns = {"sex": np.arange(60) % 2, "site": np.arange(60) // 30}
    report = calibration_report(label, proba, by_each=columns, random_state=0)
    alone = calibration_report(label, proba, by={"sex": columns["sex"]}, random_state=0)
    for row, of_one_column in zip(report.subgroups, alone.subgroups, strict=False):
        assert row["p_value"] == min(1.0, 2 * of_one_column["p_value"])  # Bonferroni
        assert row | {"p_value": 0} == of_one_column | {"p_value": 0}
    assert [row["name"] for row in report.subgroups] == ["sex 0", "sex 1", "site 0", "site 1"]
    p_values = [row["p_value"] for row in report.subgroups]
    assert report.numbers["subgroup_p_value"] == min(p_values)
    assert "2 tables, by Bonferroni" in str(report)
    assert str(report).count("smooth calibration error     95 % interval  p-value") == 2
    assert report.to_html().count("<th scope='col'>s") == 2
    assert report.audit["by"] == "'sex; site'"
    assert [each.title for each in check_by_each(columns, columns, 60, None)][:2] == [
        "sex, site",
        "sex",
    ]
    options = {"n_resamples": 2, "random_state": 0}
    results = clinical_calibration(label, proba, by_each=columns, **options)
    assert list(results) == ["sex", "site"]
    expected = clinical_calibration(label, proba, by={"site": columns["site"]}, **options)
    assert str(results["site"]) == str(expected)
    with pytest.raises(ValueError, match="by_each must name subgroups; found 60 distinct numbers"):
        calibration_report(label, proba, by_each={"age": proba})


@pytest.mark.parametrize(
    "columns",
    [
        {"by": {"sex": [0, 1]}, "by_each": {"sex": [0, 1]}},
        {"by_each": {"by": [0, 1], "by1": [1, 0]}},
    ],
)
def test_tables_of_subgroups_have_different_names(columns):
    columns = {"by": None} | columns
    with pytest.raises(ValueError, match="by and by_each must have columns of different names"):
        check_by_each(**columns, n=2, sample_weight=None)


@pytest.mark.usefixtures("quick")
def test_a_comparison_shows_the_subgroups_of_each_model():
    label, proba = problem(60)
    models = {"first": proba, "other": proba / 2}
    text = str(calibration_report(label, models, by={"site": np.arange(60) % 2}, random_state=0))
    assert "\nfirst: site  samples " in text
    assert "\nother: site  samples " in text


@pytest.mark.parametrize(
    ("p_value", "text"),
    [(0.0, "≤ 1e-6"), (1e-300, "≤ 1e-6"), (1e-6, "≤ 1e-6"), (2e-6, "= 2e-6"), (0.5, "= 0.5")],
)
def test_tiny_p_values_are_bounds(p_value, text):
    assert format_bounded(p_value) == text
    comparison = Comparison(0.1, 0.2, 0.1, 0.05, 0.15, p_value, 0.95)
    assert f"p_value{text.replace(' ', '')}, confidence_level=0.95)" in repr(comparison)
    parts = {"statistic": 1.0}, {"statistic": np.zeros(9)}, {"statistic": p_value}
    display = NullDistributionDisplay(*parts)
    assert display.plot(Figure().subplots()).ax_.get_title().endswith(f"p {text}")


@pytest.mark.usefixtures("quick")
def test_a_report_without_events_warns_once(monkeypatch):
    monkeypatch.setattr(Sections, "gain", GAIN)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = calibration_report(np.zeros(24), np.linspace(0, 0.9, 24), random_state=0)
    assert "gain" in report.numbers  # of five folds, each of which would warn
    assert len(caught) == 1
