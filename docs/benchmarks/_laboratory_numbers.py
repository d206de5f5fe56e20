"""The numbers of `laboratory.py`: all that have an interval or a p-value, from the registries."""

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from _laboratory_data import KINDS
from scipy.stats import norm
from sklearn.metrics import brier_score_loss, log_loss

from skcalib import hypothesis_tests, metrics
from skcalib._inputs.scikit_learn import get_constraints
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics._registry import ALL_METRICS, SIGNED_METRICS
from skcalib.report import calibration_report
from skcalib.uncertainty import compare_models, confidence_interval

ENTRIES, LOSSES = ALL_METRICS | SIGNED_METRICS, (log_loss, brier_score_loss)
IDEALS = {"observed_expected_ratio": 1.0, "calibration_slope": 1.0}  # that of all others is 0
ALL_ROWS, MAX_ROWS = 20_000, {"n³": 1500, "n²": 6000}  # of a population, by the cost
THRESHOLDS = (0.05, 0.2, 0.5, 0.8)  # of decision curves
DATA, DRAWS = ("sample_weight", "groups", "labels"), ("n_resamples", "random_state")


class Number(NamedTuple):
    """Of a sample, `run` gives a p-value, or low, high and estimate, whose mean is the truth."""

    run: Callable
    visits: Callable  # whether a kind of data is for it
    truth: Callable = lambda kind, max_rows: None  # None: the mean of the estimates


def visitor(takes, lens="", is_right=None):
    """Whether a kind of data has such predictions, more than two classes, and right ones."""
    return lambda kind: (
        kind.takes in takes
        and (not lens or kind.n_classes > 2)
        and is_right in (None, kind.is_right)
    )


def zero(kind, max_rows):
    return 0.0


def select(function, sample, *names):
    """What the function takes of the sample; weights and groups may not be left out."""
    known = {name: sample[name] for name in names if sample.get(name) is not None}
    takes = inspect.signature(function).parameters
    if lacking := [name for name in DATA[:2] if name in known and name not in takes]:
        raise ValueError(f"takes no {' and no '.join(lacking)}")
    return {name: value for name, value in known.items() if name in takes}


def measure_interval(metric, names, params, subgroups, sample):
    options = {"metric_params": params} | select(confidence_interval, sample, *names)
    by = sample["by"] if subgroups else None
    result = confidence_interval(metric, sample["y"], sample["p"], by=by, **options)
    result = result[by[0]] if subgroups else result
    return result.low, result.high, result.estimate


def measure_difference(metric, names, params, models, sample):
    options = {"metric_params": params} | select(compare_models, sample, *names)
    result = compare_models(metric, sample["y"], *sample[models], **options)
    return result.low, result.high, result.difference


def measure_test(make, names, sample):
    test = make(**select(make, sample, "labels", "margin", *DRAWS))
    options = select(test.fit, sample, "sample_weight", "groups", *names)
    return test.fit(sample["p"], sample["y"], **options).p_value_


def measure_search(search, sample):
    options = select(search, sample, *DATA, *DRAWS)
    return search(sample["y"], sample["p"], {"by": sample["by"]}, **options).p_value


def measure_curve(kind, threshold, sample):
    options = {"kind": kind, "thresholds": [threshold]}
    options |= select(metrics.decision_curve, sample, *DATA)
    curve = metrics.decision_curve(sample["y"], sample["p"], **options)
    gap, margin = curve.realised[0] - curve.expected[0], curve.margin[0]
    if margin == 0:
        raise ValueError("no sample is acted on")
    return gap - margin, gap + margin, gap


def measure_decision(action, sample):
    """Realised minus expected loss of the samples that take an action, or of all if it is None."""
    options = select(metrics.decision_calibration, sample, *DATA)
    loss = 1 - np.eye(len(sample["labels"]))
    table = metrics.decision_calibration(sample["y"], sample["p"], loss=loss, **options)
    gap, deviation = table.realised_loss - table.expected_loss, table.standard_error_of_loss
    if action is not None:
        if table.share[action] == 0:
            raise ValueError("no sample takes the action")
        gap = table.realised[action] - table.expected[action]
        deviation = table.standard_error[action]
    margin = norm.isf(0.025) * deviation
    return gap - margin, gap + margin, gap


def measure_report(name, sample):
    options = select(calibration_report, sample, *DATA, "random_state")
    report = calibration_report(sample["y"], sample["p"], **options)
    if name not in report.intervals:
        raise ValueError("the report has no such interval")
    return *report.intervals[name], report.numbers[name]


@cache
def population_value(name, lens, title, model, max_rows):
    """The metric of the whole distribution: many predictions, with all outcomes as expected."""
    entry, kind = ENTRIES[name], KINDS[title]
    if kind.is_right:
        return IDEALS.get(name, 0.0)
    options = {"multi_class": lens} if lens else {}
    if entry.options.get("estimation") == "unbiased":
        options["estimation"] = (
            "biased"  # the unbiased one leaves out the pairs of a row with itself
        )
    n_rows, values = min(max_rows, MAX_ROWS.get(entry.cost, ALL_ROWS)), []
    for seed in range(3):
        whole = kind.population(np.random.default_rng([2, seed]), n_rows)
        data = select(entry.function, whole, *DATA, *["given"] * entry.requires_given)
        values.append(entry.function(whole["y"], whole[model], **data, **options))
    return float(np.mean(values))


def make_metric_numbers(metric, entry=None, lens=""):
    """The intervals of a metric, or of a loss of scikit-learn, and of differences of two models."""
    name = entry.name if entry else metric.__name__
    is_signed = entry is not None and not entry.lower_is_better
    is_mean = not is_signed and not (entry and entry.chosen)
    visits = visitor(entry.takes if entry else ("classes",), lens)
    names = (*DATA, *DRAWS, *["given"] * bool(entry and entry.requires_given))
    options = (metric, names, {"multi_class": lens} if lens else None)

    def truth(kind, max_rows, model="p"):
        return None if is_mean else population_value(name, lens, kind.title, model, max_rows)

    def difference(kind, max_rows):
        return None if is_mean else truth(kind, max_rows) - truth(kind, max_rows, "other")

    title = f"{name} {lens}".strip()
    yield f"interval: {title}", Number(partial(measure_interval, *options, False), visits, truth)
    if entry and not lens:
        yield f"subgroup: {title}", Number(partial(measure_interval, *options, True), visits, truth)
    if not is_signed:
        run = partial(measure_difference, *options, "models")
        yield f"difference: {title}", Number(run, visits, difference)
    if is_signed or is_mean:
        run = partial(measure_difference, *options, "twins")
        yield f"equal models: {title}", Number(run, visits, zero)


def list_lenses(entry):
    """The names of the lenses that a metric takes, "" for its default."""
    if entry is None or "multi_class" not in entry.parameters:
        return [""]
    constraints = get_constraints(entry.function)["multi_class"]
    names = {name for rule in constraints for name in getattr(rule, "options", ())}
    return ["", *sorted(names - {entry.options["multi_class"]})]


def make_test_numbers():
    """Each statistic of the default test, with each lens, and all other tests."""
    both = ("classes", "forecasts")
    for statistic in sorted(CalibrationTest._parameter_constraints["statistic"][0].options):
        entry = ALL_METRICS.get(statistic)
        names = ["given"] * bool(entry and entry.requires_given)
        for lens in list_lenses(entry):
            params = {"multi_class": lens} if lens else None
            make = partial(CalibrationTest, statistic, metric_params=params)
            visits = visitor(entry.takes if entry else both, lens, is_right=True)
            yield f"{statistic} {lens}".strip(), Number(partial(measure_test, make, names), visits)
    for name in hypothesis_tests.__all__:
        test = getattr(hypothesis_tests, name)
        takes = inspect.signature(test).parameters
        if "margin" in takes:  # a model that is as wrong as is to be excluded

            def truth(kind, max_rows, metric=takes["metric"].default):
                return population_value(metric, "", kind.title, "p", max_rows)

            visits = visitor(["classes"], is_right=False)
            yield name, Number(partial(measure_test, test, ["by"]), visits, truth)
        elif hasattr(test, "fit"):
            yield name, Number(partial(measure_test, test, ["by"]), visitor(both, is_right=True))
        elif "y_true" in takes:
            yield name, Number(partial(measure_search, test), visitor(both, is_right=True))


def make_expected_numbers():
    """Margins around what predictions let expect, and what only reports have an interval of."""
    visits = visitor(["classes"], is_right=True)
    for kind in sorted(get_constraints(metrics.decision_curve)["kind"][0].options):
        for threshold in THRESHOLDS:
            run = partial(measure_curve, kind, threshold)
            yield f"margin: {kind} at {threshold}", Number(run, visits, zero)
    for action in (None, 0, 1):
        run = partial(measure_decision, action)
        yield f"margin: loss of action {action}", Number(run, visits, zero)
    for title in ("wrong: too sharp", "wrong: gaussian too narrow"):
        sample, takes = KINDS[title].sample(np.random.default_rng(0)), [KINDS[title].takes]
        report = calibration_report(sample["y"], sample["p"], random_state=0)
        for name in sorted({*report.intervals} - {*ENTRIES, *(loss.__name__ for loss in LOSSES)}):
            # a gain is shown of predictions that are refuted
            visits = visitor(takes, is_right=False if name == "gain" else None)
            yield f"report of {takes[0]}: {name}", Number(partial(measure_report, name), visits)


@cache
def make_numbers():
    pairs = [(name, entry, lens) for name, entry in ENTRIES.items() for lens in list_lenses(entry)]
    lists = [make_metric_numbers(*pair) for pair in [*pairs, *((loss,) for loss in LOSSES)]]
    tests = ((f"test: {name}", number) for name, number in make_test_numbers())
    return dict(pair for numbers in (*lists, tests, make_expected_numbers()) for pair in numbers)
