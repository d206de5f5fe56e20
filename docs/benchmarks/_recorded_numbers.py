"""The public numbers of skcalib, recorded to be compared with those after a change.

    python docs/benchmarks/_recorded_numbers.py record FILE
    python docs/benchmarks/_recorded_numbers.py compare BEFORE AFTER [--rtol 1e-12]

The first command calls what is public and what is registered, so that a new metric, test or
recalibrator takes part by itself: on each data set, by default and with each other value of one
option at a time. It writes {name: number} for the skcalib that is imported; what refuses its
arguments is recorded by its exception. The second one lists the names that differ, and exits with 1
if any does. Names that begin with "fit:" are of recalibrators, whose iterations end within a
tolerance of their own: `--fits-rtol`.
"""

import argparse
import inspect
import json
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args, get_origin

import numpy as np
from scipy import stats
from sklearn.linear_model import BayesianRidge, LogisticRegression

from skcalib import (
    datasets,
    decisions,
    forecasts as f,
    hypothesis_tests,
    losses,
    metrics,
    recalibration,
    report,
    uncertainty,
)
from skcalib.function_classes import Bounded, Monotone, RKHSBall
from skcalib.lenses import Ordinal, TopK
from skcalib.metrics._registry import ALL_METRICS, SIGNED_METRICS
from skcalib.recalibration._registry import FORECAST_RECALIBRATORS, RECALIBRATORS
from skcalib.streaming import CalibrationState
from skcalib.uncertainty import compare_models, confidence_interval, finite_sample_radius

MODULES = metrics, uncertainty, hypothesis_tests, decisions, losses, datasets, report
ROUNDING = 1e-15  # of sums whose terms cancel: their relative differences say nothing
LEVELS = [0.1, 0.3, 0.5, 0.7, 0.9]
# Whatever takes such an argument gets it.
ALWAYS = {"random_state": 0, "n_resamples": 9, "n_simulations": 9, "max_samples": 200, "cv": 3}
ALWAYS |= {"margin": 0.1, "max_rounds": 20, "n_samples": 60, "step_size": 0.05, "windows": (20,)}
ALWAYS |= {"k": 2, "partition": [[0], [1]], "n_obligors": [100, 200], "n_defaults": [0, 3]}
# Resampling takes a tenth of a second of each of the others, and seconds of these.
RESAMPLED = ALL_METRICS.keys() - {"lower_distance_to_calibration", "upper_distance_to_calibration"}
# Metrics whose intervals are tried with each of their options.
OF_ALL_OPTIONS = {"calibration_slope", "continuous_ranked_probability_loss"}
# Values of options, beside those that their annotations list.
CHOICES = {name: [5] for name in ("block_size", "min_bin_size", "n_bins", "n_draws", "n_knots")}
CHOICES |= {name: [0.3] for name in ("alpha", "bandwidth", "coverage", "loss", "precision")}
CHOICES |= {name: [0.3] for name in ("quantile", "regularization", "smoothing", "width")}
CHOICES |= {name: [2.0] for name in ("order", "prior_weight", "pseudo_count")}
CHOICES |= {
    "estimation": ["linear", "block"],
    "function_class": [Monotone() & Bounded(), RKHSBall()],
    "given": ["action"],
    "kernel": ["exponential", "rbf", "linear", "energy"],
    "levels": [LEVELS],
    "metric": [*sorted(RESAMPLED)[::3], *SIGNED_METRICS],
    "multi_class": [Ordinal(), TopK(2)],
    "n_actions": [3],
    "prevalence": [[0.3, 0.7]],
    "statistic": ["omnibus", "skce", "log_loss", "brier_score_loss", *sorted(RESAMPLED)],
    "thresholds": [(-1.0, 1.0)],
}
# Data that are options, as they change what is computed.
CONDITIONS = {"by", "given", "groups"}


def make_problem(pred, y, pred_b, **data):
    """Predictions, outcomes and all that goes with them, by the names of arguments."""
    n = len(y)
    features = np.random.default_rng(2).normal(size=(n, 2))
    data |= {"features": features, "given": features, "groups": np.arange(n) // 3}
    names = "X", "y_pred", "y_pred_a", "prediction", "y_proba" if "labels" in data else "y_forecast"
    data |= dict.fromkeys(names, pred) | {"y": y, "y_true": y, "y_pred_b": pred_b}
    return data | {"by": np.array(["p", "q", "r"])[np.arange(n) % 3]}


def make_class_problem(proba, labels, weight=None):
    """Predictions that are too sure."""
    columns = proba if proba.ndim == 2 else np.column_stack([1 - proba, proba])
    truth = columns**0.7 / (columns**0.7).sum(axis=1, keepdims=True)
    uniform = np.random.default_rng(1).random((len(proba), 1))
    code = np.minimum((truth.cumsum(axis=1) < uniform).sum(axis=1), len(labels) - 1)
    other, truth = (columns + columns.mean(axis=0)) / 2, truth if proba.ndim == 2 else truth[:, 1]
    other = other if proba.ndim == 2 else proba**1.2
    data = {"target": code, "labels": list(labels), "sample_weight": weight, "true_proba": truth}
    return make_problem(proba, np.asarray(labels)[code], other, **data)


def make_problems():
    rng = np.random.default_rng(0)
    three, rounded = rng.dirichlet([1, 2, 1], size=40), np.round(rng.beta(0.7, 1, size=40), 1)
    tenths = np.diff(np.round(three.cumsum(axis=1), 1), axis=1, prepend=0)
    yield "two", make_class_problem(rng.beta(1, 2, size=40), [0, 1])
    yield "ties", make_class_problem(rounded, [False, True], rng.integers(1, 5, size=40) / 2)
    yield "three", make_class_problem(three, [0, 1, 2])
    yield "strings", make_class_problem(tenths, ["b", "a", "c"], rng.random(40))
    yield "ten", make_class_problem(rng.dirichlet(np.ones(10), size=40), range(10))
    mean, std, noise = rng.normal(size=30), rng.uniform(0.5, 2, size=30), rng.normal(size=(30, 9))
    normal = f.GaussianForecast(mean, std)
    for forecast in (
        normal,
        f.EnsembleForecast(mean[:, None] + std[:, None] * noise),
        f.QuantileForecast(mean[:, None] + std[:, None] * stats.norm.ppf(LEVELS), LEVELS),
        f.ResidualForecast(mean, noise[0]),
        f.CensoredForecast(normal),
        f.DistributionForecast(stats.poisson(std)),
    ):
        y = mean + 1.4 * std * noise[:, 0]
        y = np.maximum(y, 0) if "Censored" in repr(type(forecast)) else y
        y = np.floor(std * 1.5) if "Distribution" in repr(type(forecast)) else y
        yield type(forecast).__name__, make_problem(forecast, y, (np.zeros(30), np.full(30, 2.0)))


def literals(annotation):
    """The values that an annotation lists."""
    if annotation is bool:
        return [False, True]
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [value for inner in get_args(annotation) for value in literals(inner)]


def variations(function, problem):
    """A label and the arguments of a function: by default, and for each other choice."""
    known, arguments, options = ALWAYS | problem, {}, {}
    for name, parameter in inspect.signature(function).parameters.items():
        is_needed = parameter.default is parameter.empty
        if name in known and (is_needed or name not in CONDITIONS):
            arguments[name] = known[name]
        elif not is_needed:
            values = literals(parameter.annotation) + CHOICES.get(name, [])
            values = {f" {name}={value}": value for value in values if value != parameter.default}
            values |= {f" {name}": problem[name]} if name in problem else {}
            options |= {label: {name: value} for label, value in values.items()}
        elif parameter.kind is not parameter.VAR_KEYWORD:
            return {}
    return {"": arguments} | {label: arguments | chosen for label, chosen in options.items()}


def numbers(value, name):
    """The numbers in a result, by name; of long arrays a few, and the mean of their sizes."""
    if isinstance(value, bool | int | float | np.number | np.bool_):
        yield name, float(value)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        array = value.astype(float).ravel()
        for i in np.unique(np.linspace(0, array.size - 1, min(array.size, 5)).astype(int)):
            yield f"{name}[{i}]", array[i]
        if array.size > 5:
            yield f"{name} mean", np.abs(array[np.isfinite(array)]).mean()
    elif hasattr(value, "to_dict"):  # a report or a table
        yield from numbers(value.to_dict(), name)
    elif isinstance(value, list | tuple):
        yield from numbers(getattr(value, "_asdict", lambda: dict(enumerate(value)))(), name)
    elif isinstance(value, Mapping):
        for key in value:
            yield from numbers(value[key], f"{name} {key}")
    elif type(value).__module__.startswith("skcalib"):
        fitted = "_" if hasattr(value, "get_params") else ""
        for key, inner in vars(value).items():
            if key.endswith(fitted) and key[0] != "_":
                yield from numbers(inner, f"{name} {key}")


class Recorder(dict):
    """Numbers by name."""

    def call(self, name, function, arguments):
        """Record a result, or the exception, so that no fault hides the numbers behind it."""
        try:
            result = function(**arguments)
            self.update(numbers(result, name))
        except Exception as error:
            self[name] = f"refused: {type(error).__name__}"
        else:
            return result

    def call_all(self, name, function, problem):
        for label, arguments in variations(function, problem).items():
            self.call(name + label, function, arguments)

    def fit_all(self, name, kind, problem, params):
        if "estimator" in inspect.signature(kind).parameters:
            model = LogisticRegression() if "labels" in problem else BayesianRidge()
            problem = problem | {"estimator": model, "X": problem["features"]}
        for label, chosen in variations(kind, problem).items():
            for fit_label, arguments in variations(kind.fit, problem | {"self": None}).items():
                model, full_name = kind(**params | chosen), name + label + fit_label
                del arguments["self"]
                if not (label and fit_label) and self.call(full_name, model.fit, arguments):
                    self.predict(full_name, model, problem)

    def predict(self, name, model, problem):
        for method in ("predict_proba", "predict_forecast", "transform", "summary"):
            bound = getattr(model, method, None)
            for label, arguments in variations(bound, problem).items() if bound else ():
                result = self.call(f"{name} {method}{label}", bound, arguments)
                for of in (
                    ("mean", "std", "cdf", "crps", "logpdf") if hasattr(result, "crps") else ()
                ):
                    self.call_all(f"{name} {of}", getattr(result, of), problem)

    def stream(self, name, problem):
        state = CalibrationState(problem["labels"])
        batch = {key: problem[key] for key in ("y_true", "y_proba", "sample_weight")}
        self.call(name, state.update, batch)
        for metric in ALL_METRICS:
            self.call(f"{name} {metric}", state.evaluate, {"metric": metric})


def record(file):
    """Write the numbers of all that is public, after each data set."""
    recorder = Recorder()
    kinds = {kind: {} for kind in map(recalibration.__dict__.get, recalibration.__all__)}
    for prototype in [entry.recalibrator for entry in RECALIBRATORS.values()]:
        kinds[type(prototype)] = prototype.get_params(deep=False)
    kinds |= {
        type(model): model.get_params(deep=False) for model in FORECAST_RECALIBRATORS.values()
    }
    for name, problem in make_problems():
        start = time.process_time()
        for module in MODULES:
            for public in module.__all__:
                function = getattr(module, public)
                if hasattr(function, "fit"):
                    recorder.fit_all(f"{name} {public}", function, problem, {})
                elif not inspect.isclass(function):
                    recorder.call_all(f"{name} {public}", function, problem)
        for metric in CHOICES["metric"]:
            for function in (confidence_interval, compare_models, finite_sample_radius):
                for label, arguments in variations(function, problem | {"metric": metric}).items():
                    if metric in OF_ALL_OPTIONS or not label:
                        full_name = f"{name} {function.__name__} {metric}{label}"
                        recorder.call(full_name, function, arguments)
        for kind, params in kinds.items():
            if hasattr(kind, "fit"):
                recorder.fit_all(f"fit: {name} {kind.__name__}", kind, problem, params)
        if "labels" in problem:
            recorder.stream(f"{name} state", problem)
        file.write_text(json.dumps(recorder, indent=0))
        print(f"{name}: {len(recorder)} numbers, {time.process_time() - start:.0f} s", flush=True)


def difference(before, after):
    """The relative difference of two numbers, infinite if one is none; 0 for equal ones."""
    if before == after or (before != before and after != after):
        return 0.0
    if isinstance(before, str) or isinstance(after, str) or not np.isfinite([before, after]).all():
        return np.inf
    gap = abs(before - after)
    return 0.0 if gap <= ROUNDING else gap / max(abs(before), abs(after))


def compare(before, after, rtol, fits_rtol):
    """Print what differs, the largest difference first; return whether anything does."""
    shared = before.keys() & after.keys()
    gaps = {name: difference(before[name], after[name]) for name in shared}
    limits = {name: fits_rtol if name.startswith("fit:") else rtol for name in shared}
    apart = sorted((name for name in shared if gaps[name] > limits[name]), key=gaps.get)[::-1]
    n_refused = sum(isinstance(before[name], str) for name in shared)
    print(f"{len(shared)} values compared, {n_refused} of them refusals; {len(apart)} differ")
    for name in apart:
        print(f"{gaps[name]:8.1e}  {name}: {before[name]} -> {after[name]}")
    for title, names in ("before", before.keys() - shared), ("after", after.keys() - shared):
        for name in sorted(names):
            print(f"only {title}: {name}")
    return bool(apart) or before.keys() != after.keys()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record").add_argument("file", type=Path)
    comparison = commands.add_parser("compare")
    comparison.add_argument("before", type=Path)
    comparison.add_argument("after", type=Path)
    comparison.add_argument("--rtol", type=float, default=1e-12)
    comparison.add_argument("--fits-rtol", type=float, default=1e-6)
    options = parser.parse_args()
    if options.command == "record":
        warnings.simplefilter("ignore")
        record(options.file)
        return 0
    before, after = (json.loads(path.read_text()) for path in (options.before, options.after))
    return int(compare(before, after, options.rtol, options.fits_rtol))


if __name__ == "__main__":
    sys.exit(main())
