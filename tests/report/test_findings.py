"""Every number that a report says is the number of that name; every superlative is true."""

import pickle
import re
from functools import partial
from string import Formatter

import numpy as np
import pytest
from scipy.special import softmax

from skcalib.forecasts import EnsembleForecast, GaussianForecast, QuantileForecast
from skcalib.hypothesis_tests import CalibrationTest, SubgroupCalibrationTest
from skcalib.report import calibration_report
from skcalib.report._findings import Finding, name_ends, say
from skcalib.report._sections import DRAWING, Sections

# Digits that are words of a sentence: levels, bounds, and names of what it is about.
WORDS = ("95 % interval", "excludes 1", "probability 0", "begin at 0")


@pytest.fixture(autouse=True, scope="module")
def quick():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DRAWING, "n_resamples", 19)
        patch.setattr(Sections, "gain", lambda sections: (0.0123, 0.0045, 0.0201))
        for module in ("_classes", "_forecasts"):
            test = partial(CalibrationTest, n_resamples=99)
            patch.setattr(f"skcalib.report.{module}.CalibrationTest", test)
        test = partial(SubgroupCalibrationTest, n_resamples=99)
        patch.setattr("skcalib.report._sections.SubgroupCalibrationTest", test)
        yield


def shifted(rng, n, n_classes):
    """Labels and probabilities that are wrong in a random way, from hardly to badly."""
    logits = rng.normal(size=(n, n_classes)) * rng.uniform(0.5, 3)
    label = (rng.random((n, 1)) > softmax(logits, axis=1).cumsum(axis=1)).sum(axis=1)
    logits = logits * np.exp(rng.normal(0, 0.5)) + rng.normal(0, 0.5, n_classes)
    proba = softmax(logits, axis=1)
    proba[rng.random(n) < 0.02 * rng.integers(2)] = np.eye(n_classes)[0]
    return np.minimum(label, n_classes - 1), proba


def two_classes(rng, n=150):
    label, proba = shifted(rng, n, 2)
    return label, proba[:, 1], {"labels": [0, 1]}


def many_classes(rng, n=150):
    label, proba = shifted(rng, n, 10)
    return label, proba, {"labels": range(10)}


def normals(rng, n=150):
    mean = rng.normal(size=n)
    std = np.exp(rng.normal(0, 0.3))
    y = rng.standard_t(rng.integers(2, 30), size=n) + mean + rng.normal(0, 0.5)
    return y, GaussianForecast(mean, np.full(n, std)), {}


def ensembles(rng, n=100):
    members = rng.normal(size=(n, 8)) * np.exp(rng.normal(0, 0.4)) + rng.normal(size=(n, 1))
    return rng.normal(rng.normal(0, 0.4), 1, n), EnsembleForecast(np.maximum(members, -0.5)), {}


def quantiles(rng, n=150):
    y, forecast, _ = normals(rng, n)
    levels = [0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975]
    return y, QuantileForecast(forecast.quantiles(levels), levels), {}


def in_groups(rng):
    y, predicted, options = two_classes(rng)
    return y, predicted, options | {"groups": np.arange(len(y)) // 5}


def in_subgroups(rng):
    n = 150
    by = rng.integers(0, 3, n)
    label, proba, options = two_classes(rng, n)
    flipped = np.where((by == 0) & (rng.random(n) < 0.5), 1 - label, label)
    return flipped, proba, options | {"by": {"site": by}}


def weighted(rng):
    y, predicted, options = two_classes(rng)
    return y, predicted, options | {"sample_weight": rng.exponential(size=len(y))}


def rare(rng):
    proba = rng.beta(1, 40, 400)
    label = rng.random(400) < proba * np.exp(rng.normal(0, 0.5))
    return label.astype(int), proba, {"labels": [0, 1]}


def joined(rng):
    predicted, options = rng.random(60), {"labels": [0, 1]}
    y = (rng.random(60) < predicted**2).astype(int)
    return np.repeat(y, 3), np.repeat(predicted, 3), options


def of_models(rng):
    drawn = {name: two_classes(rng) for name in ("a", "b", "c")[: rng.integers(2, 4)]}
    outcomes = {name: y for name, (y, _, _) in drawn.items()}
    return outcomes, {name: p for name, (_, p, _) in drawn.items()}, {"labels": [0, 1]}


KINDS = [two_classes, many_classes, normals, ensembles, quantiles, in_groups, in_subgroups]
KINDS += [weighted, rare, joined, of_models]


def classes_of(y, predicted, sample_weight=None, **_):
    """The binary problem of a report of classes: hits, probabilities and normalised weights."""
    y, predicted = np.asarray(y), np.asarray(predicted)
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    if predicted.ndim == 2:
        y, predicted = predicted.argmax(axis=1) == y, predicted.max(axis=1)
    return y, predicted, weight / weight.sum()


def standardized_scores(hit, proba, weight):
    """Sums of residuals and of residuals times log-odds, in standard deviations."""
    inner = np.clip(proba, 1e-16, 1 - 1e-16)
    weight = weight / weight.mean()
    odds, variance = np.log(inner / (1 - inner)), weight**2 * proba * (1 - proba)
    spread = odds - variance @ odds / variance.sum()
    squares = np.array([variance.sum(), variance @ spread**2])
    sums = np.array([weight @ (hit - proba), (weight * (hit - proba)) @ spread])
    return sums / np.sqrt(squares * (1 + 1 / variance.sum()))


def matrix_of(y, predicted, **options):
    """The labels, a column of probabilities for each class, and weights."""
    predicted, weight = np.asarray(predicted), options.get("sample_weight", np.ones(len(y)))
    if predicted.ndim == 1:
        predicted = np.column_stack([1 - predicted, predicted])
    return np.asarray(y), predicted, weight


def expected_values(report, y, predicted, options):
    """What the sentences say, computed anew from the data."""
    hit, proba, weight = classes_of(y, predicted, **options)
    label, rows, _ = matrix_of(y, predicted)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_rows = np.where(rows > 0, np.log(rows), 0.0)
        excess = weight @ (np.sum(rows * log_rows, axis=1) - log_rows[np.arange(len(rows)), label])
    values = {
        "log_loss_excess": excess,
        "n_certain_and_wrong": np.count_nonzero(rows[np.arange(len(rows)), label] == 0),
        "prevalence": weight @ label,
        "mean_prediction": weight @ proba,
        "n_distinct_predictions": len(np.unique(proba)),
        "n_copies": len(proba) // len(np.unique(proba)),
        "effective_size": 1 / (weight @ weight),
        "n_subgroups": len(report.subgroups),
        "n_miscalibrated_subgroups": sum(row["p_value"] < 0.05 for row in report.subgroups),
    }
    if "gap_from" in report.numbers:
        cell = (proba >= report.numbers["gap_from"]) & (proba <= report.numbers["gap_to"])
        values["gap_predicted"] = np.average(proba[cell], weights=weight[cell])
        values["gap_observed"] = np.average(hit[cell], weights=weight[cell])
    if "smooth_calibration_error" in report.intervals:
        rarer = min(weight @ label, 1 - weight @ label)
        high = report.intervals["smooth_calibration_error"][1]
        values["error_high_over_prevalence"] = high / rarer
    return values


def check_sentences(report, y, predicted, options):
    """Sentences make the advice, and say nothing but numbers of the report."""
    rest = report.advice
    for sentence in report.sentences:
        assert sentence in rest
        rest = rest.replace(sentence, "", 1)
    assert set(rest) <= set(" ;.")
    numbers = report.numbers | name_ends(report.intervals)
    is_forecast = "n_classes" not in numbers
    expected = {} if is_forecast else expected_values(report, y, predicted, options)
    for sentence in report.sentences:
        assert isinstance(sentence, Finding)
        names = {k: v for k, v in sentence.values.items() if isinstance(v, str)}
        assert say(sentence.name, sentence.template, numbers | names) == sentence
        words = "".join(text for text, *_ in Formatter().parse(sentence.template))
        for phrase in WORDS:
            words = words.replace(phrase, "")
        assert not re.search(r"[0-9]", words), sentence
        assert sentence.evidence == "" or numbers[sentence.evidence] <= 0.05
        for name, value in sentence.values.items():
            assert name in names or value == numbers[name]
            if name in expected:
                assert value == pytest.approx(expected[name], abs=1e-12), (name, sentence)
        if "class" in sentence.values:
            check_class(sentence, *matrix_of(y, predicted, **options))
        if "prevalence_of_class" in sentence.values:
            name = sentence.values["class"]
            (row,) = (row for row in report.classes if str(row["class"]) == name)
            assert numbers["prevalence_of_class"] == pytest.approx(row["observed_share"])
            assert numbers["mean_prediction_of_class"] == pytest.approx(row["mean_prediction"])
        if "std_factor" in sentence.values and isinstance(predicted, GaussianForecast):
            z = (y - predicted.mean()) / predicted.std()
            factor = z.std() if "small" in sentence else 1 / z.std()
            assert numbers["std_factor"] == pytest.approx(factor)
        check_directions(sentence, numbers, report.subgroups)
    assert report.advice.count("But ") <= 1
    assert "level %" not in str(report)  # no row for what a sentence alone says
    first = re.match(r"(No evidence of m|M|Still m)iscalibrat", report.advice)
    assert first is None or (first[1] == "No evidence of m") == (report.findings == [])


def check_class(sentence, label, matrix, weight):
    """The class of a sentence is the clearest one, and its spread is as it says."""
    n_classes = matrix.shape[1]
    scores = np.array(
        [standardized_scores(label == k, matrix[:, k], weight) for k in range(n_classes)]
    )
    kind, k = ["level", "spread"].index(sentence.name), int(sentence.values["class"])
    assert k == (1 if n_classes == 2 else np.argmax(np.abs(scores[:, kind])))
    if sentence.name == "spread":
        spread = scores[:, 1]
        assert ("too extreme" in sentence) == (spread[k] < 0) != ("not extreme" in sentence)
        is_shared = (np.sign(spread) == np.sign(spread[k])) & (np.abs(spread) > 2.5)
        assert ("all classes" in sentence) == (n_classes > 2 and is_shared.all())


def check_directions(sentence, numbers, subgroups):
    """Words that say which of two numbers is larger say so of these numbers."""

    def says(word, other, *, is_so):
        assert ((word in sentence), (other in sentence)) == (is_so, not is_so), sentence

    values = sentence.values
    if "log_loss_excess" in values:
        is_over = values["log_loss_excess"] > 0
        says("overconfident", "underconfident", is_so=is_over)
        says("higher", "lower", is_so=is_over)
    if "mean_prediction" in values or "mean_prediction_of_class" in values:
        predicted, observed = (v for v in values.values() if isinstance(v, float))
        says("too high on average", "too low on average", is_so=predicted > observed)
    if "observed_expected_ratio_low" in values:
        low, high = (values[f"observed_expected_ratio_{end}"] for end in ("low", "high"))
        assert (low > 1) != (high < 1)
        says("more", "less", is_so=low > 1)
    if "mean_z" in values:
        says("too low", "too high", is_so=values["mean_z"] > 0)
    if "std_factor" in values and "rms_z" in numbers:
        variance = numbers["rms_z"] ** 2 - numbers["mean_z"] ** 2
        says("too narrow", "too wide", is_so=variance > 1)
        says("too small", "too large", is_so=variance > 1)
        assert values["std_factor"] > 1
    if "interval_level" in values:
        is_narrow = values["pit_coverage"] < values["interval_level"]
        says("too few", "too many", is_so=is_narrow)
    if "gain" in values:
        assert numbers["gain_low"] > 0
    if "gap_from" in values:
        low, high = values["gap_from"], values.get("gap_to", np.inf)
        assert low - 1e-12 <= values["gap_predicted"] <= high + 1e-12
        says("probabilities", "confidences", is_so=numbers["n_classes"] == 2)
    for first, second in (("_from", "_to"), ("_low", "_high"), ("_level", "_coverage")):
        if first in sentence.template and second in sentence.template:
            assert sentence.template.index(first) < sentence.template.index(second)
    if "subgroups" in values:
        names = [row["name"] for row in subgroups if row["p_value"] < 0.05]
        assert values["subgroups"] == "; ".join(names)
        assert values["subgroup_p_value"] == numbers["subgroup_p_value"]


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 10))]
)
@pytest.mark.parametrize("draw", KINDS)
def test_what_a_report_says_is_in_its_numbers(draw, seed):
    y, predicted, options = draw(np.random.default_rng(seed))
    report = calibration_report(y, predicted, random_state=0, **options)
    if draw is not of_models:
        check_sentences(report, y, predicted, options)
        return
    shown = " ".join(str(report).split())
    for name, of_model in report.reports.items():
        check_sentences(of_model, y[name], predicted[name], options)
        assert f"{name}: {of_model.advice}" in shown
    for row in report.changes:
        models = report.reports[row["model"]], report.reports["a"]
        value, reference = (model.numbers[row["measure"]] for model in models)
        assert (row["value"], row["reference"]) == (value, reference)
        assert row["difference"] == value - reference


def test_sentences_survive_pickle_and_name_classes_with_braces():
    sentence = say("level", "{class} has {share:.2g}", {"class": "{0}", "share": 0.123})
    assert sentence == "{0} has 0.12"
    assert pickle.loads(pickle.dumps(sentence)).values == sentence.values
