"""Valid and hostile calls of public names: a finite number, or an error that names an argument."""

import inspect
import random
import re
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from skcalib import forecasts, hypothesis_tests, lenses, metrics, recalibration, uncertainty
from skcalib.forecasts import EnsembleForecast, GaussianForecast, QuantileForecast

FOREIGN_WARNINGS = (RuntimeWarning, DeprecationWarning, FutureWarning, PendingDeprecationWarning)
CONTAINERS = (*forecasts.__all__, "ConfidenceInterval", "FiniteSampleRadius", "Comparison")
N = 12


def make_values(rng):
    """By name of an argument: values that may be right, and values that are wrong."""
    proba = np.round(rng.random(N), 2)
    rows = rng.dirichlet(np.ones(3), N)
    outcome = rng.normal(size=N)
    labels = (rng.random(N) < 0.5).astype(int)
    index = pd.Index(rng.permutation(N) * 7 + 3)
    hostile = [
        None, [], {}, "x", object(), float("nan"), float("inf"), -1, 0, 1, 1.5, True, b"y", 1 + 2j,
        np.full(N, np.nan), np.zeros((N, 0)), np.zeros((0, 2)), np.zeros((2, 2, 2)), proba[:-1],
        np.array(["a", None] * (N // 2), dtype=object), [[0.5], [0.2, 0.3]], pd.NA, np.float32(0.5),
        np.full(N, 1e308), -proba, labels.astype(str), {"a": proba}, pd.Series(proba, index=index),
        np.array(["2020-01-01"] * N, dtype="datetime64[D]"), np.ma.masked_array(proba, proba > 0.5),
    ]  # fmt: skip
    classes = [proba, rows, np.column_stack([1 - proba, proba]), proba.astype(np.float32), labels]
    classes += [pd.Series(proba, index=index), pd.DataFrame(rows, index=index), list(proba)]
    targets = [labels, labels.astype(bool), np.where(labels, "b", "a"), rng.integers(3, size=N)]
    targets += [pd.Series(labels, index=index), list(labels), np.zeros(N, int), outcome]
    numbers = [GaussianForecast(outcome, np.ones(N)), EnsembleForecast(rng.normal(size=(N, 4)))]
    numbers += [(outcome, np.abs(outcome)), QuantileForecast(np.sort(rows), [0.2, 0.5, 0.8])]
    weights = [None, None, np.ones(N), rng.random(N), np.zeros(N), np.r_[1e300, np.ones(N - 1)]]
    weights += [labels, np.full(N, 1e-320), -np.ones(N)]
    given = [rng.normal(size=(N, 2)), proba, np.where(labels, "u", "v"), {"a": labels, "b": proba}]
    groups = [rng.integers(4, size=N), np.where(labels, "u", "v"), np.arange(N), np.zeros(N)]
    known = {
        "y_true": targets, "y": targets, "y_proba": classes + numbers, "X": classes + numbers,
        "y_forecast": numbers, "sample_weight": weights, "given": given, "groups": groups,
        "by": groups, "query": given, "proba": classes, "columns": given, "random_state": [0],
        "n_resamples": [9, 19], "n_draws": [None, 3], "n_components": [5], "cv": [2, 3],
        "n_jobs": [None], "verbose": [0], "n_locations": [2], "estimation": ["biased", "linear"],
        "metric": ["smooth_calibration_error", "expected_calibration_error"], "norm": ["l1", "l2"],
    }  # fmt: skip
    return known, hostile


def make_arguments(function, values, draw):
    """Some arguments of a call, each right most of the time."""
    known, hostile = values
    arguments = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or name == "self":
            continue
        is_needed = parameter.default is parameter.empty
        if not is_needed and draw.random() < (0.5 if name in ("sample_weight", "given") else 0.85):
            continue
        pool = known.get(name, [parameter.default] if not is_needed else hostile)
        arguments[name] = draw.choice(pool if draw.random() < 0.93 else hostile)
    return arguments


def names_an_argument(error, names):
    words = set(re.findall(r"\w+", str(error)))
    return bool(words & (names | {"X", "y", "forecast", "probabilities", "labels", "levels"}))


def call_estimator(kind, values, draw):
    estimator = kind(**make_arguments(kind, values, draw))
    estimator.fit(**make_arguments(estimator.fit, values, draw))
    for attribute in ("p_value_", "statistic_"):
        if hasattr(estimator, attribute):
            return getattr(estimator, attribute)
    return estimator.transform(draw.choice(values[0]["X"]))


def run_calls(seed, n_calls):
    """What went wrong in calls drawn with the seed, and how many calls ended how."""
    rng, draw = np.random.default_rng(seed), random.Random(seed)
    rooms = (metrics, hypothesis_tests, recalibration, uncertainty, lenses)
    public = [(name, getattr(room, name)) for room in rooms for name in room.__all__]
    public = [(name, item) for name, item in public if name not in CONTAINERS]
    counts, wrong = Counter(), []
    for _ in range(n_calls):
        name, item = draw.choice(public)
        if inspect.isclass(item) and not hasattr(item, "fit"):
            continue
        values = make_values(rng)
        names = set(inspect.signature(item).parameters)
        if inspect.isclass(item):
            names |= set(inspect.signature(item.fit).parameters)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                if inspect.isclass(item):
                    result = call_estimator(item, values, draw)
                else:
                    result = item(**make_arguments(item, values, draw))
            except (ValueError, TypeError, ImportError) as error:
                counts["refused"] += 1
                if not names_an_argument(error, names):
                    wrong.append(f"{name}: {type(error).__name__} {str(error)[:120]}")
            except Exception as error:
                counts["foreign"] += 1
                wrong.append(f"{name}: {type(error).__name__} {str(error)[:120]}")
            else:
                counts["result"] += 1
                # there is no slope of equal predictions, or of labels of one class
                has_value = not (isinstance(result, float) and np.isnan(result))
                if not (has_value or name == "calibration_slope"):
                    wrong.append(f"{name}: NaN")
        for leak in caught:
            if issubclass(leak.category, FOREIGN_WARNINGS):
                wrong.append(f"{name}: {leak.category.__name__} {str(leak.message)[:100]}")
    return counts, wrong


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_call_ends_in_a_foreign_error_or_a_warning(seed):
    counts, wrong = run_calls(seed, 500)
    assert counts["result"] > 50
    assert not wrong, "\n".join(sorted(set(wrong)))
