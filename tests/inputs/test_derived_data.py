"""Data that are made of other data: every field follows its rows through every verb."""

import dataclasses
import inspect
from collections.abc import Iterator

import numpy as np
import pytest
from array_api_compat import array_namespace

from skcalib import _data
from skcalib._data import ClassData, EvaluationData, ForecastData, MultilabelData
from skcalib._numerics.array_api import to_numpy
from skcalib.forecasts import EnsembleForecast, Forecast
from skcalib.lenses import BinaryProblem

N = 8

# What verbs say anew; they keep everything else. Groups differ in all rows and tell which is which.
_PROBABILITIES = {"proba", "complement", "log_proba"}
_PROBLEM = _PROBABILITIES | {"label", "classes"}
RESTATED = {
    "confidence": _PROBLEM,
    "iter_problems": _PROBLEM,
    "iter_one_vs_rest": _PROBLEM,
    "swap_classes": _PROBLEM,
    "with_proba": _PROBABILITIES,
    "with_outcome": {"label", "value", "forecast"},
    "iter_couplings": {"has_common_rank"},
}

# Methods of two classes alone, of classes that exclude each other, and of data on any device.
TWO = {"swap_classes", "pool_residuals", "pool_label_weights"}
SEVERAL = {"confidence", "iter_one_vs_rest", "iter_class_proba"}
ANY_DEVICE = {"take", "to_numpy", "with_proba"}


class HalfTheRows:
    """Problems of all rows, and of some, as indices and as a mask."""

    def reduce(self, data):
        event, proba = np.arange(N) % 2, np.linspace(0, 1, N)
        yield BinaryProblem(event, proba)
        for rows in (np.arange(1, N, 2), np.arange(N) < 3):
            yield BinaryProblem(event[rows], proba[rows], rows=rows)


def fields_of(kind, data):
    """A value for each field; one that is not known here is random if it is an array."""
    rng = np.random.default_rng(0)
    weight = rng.uniform(1, 2, N)
    values = {
        "weight": weight / weight.sum(),
        "groups": np.arange(N),
        "count": np.arange(N) + 1,
        "mean_rounding": 0.25,
        "classes": np.array(["a", "b", "c"][: data.get("n_classes", 3)]),
        "forecast": EnsembleForecast(rng.normal(size=(N, 3))),
        "label": np.arange(N) % 2,
    } | data
    for field in dataclasses.fields(kind):
        is_array = "ndarray" in str(field.type)
        values.setdefault(field.name, rng.random(N) if is_array else field.default)
    return {field.name: values[field.name] for field in dataclasses.fields(kind)}


def make(name):
    rng = np.random.default_rng(1)
    matrix = rng.dirichlet([1, 1, 1], N)
    if name == "forecasts":
        return ForecastData(**fields_of(ForecastData, {}))
    if name == "labels":  # of which no row stands for several samples
        given = {"proba": matrix, "label": (matrix > 0.3).astype(int), "count": None}
        return MultilabelData(**fields_of(MultilabelData, given))
    given = {"proba": matrix, "complement": None, "log_proba": np.log(matrix)}
    if name == "two classes":
        given = {"proba": matrix[:, 0], "log_proba": np.log(matrix[:, :2]), "n_classes": 2}
    fields = fields_of(ClassData, given)
    if name == "device":
        array_api_strict = pytest.importorskip("array_api_strict")
        for key, value in fields.items():
            if isinstance(value, np.ndarray) and key != "classes":
                fields[key] = array_api_strict.asarray(value)
    return ClassData(**fields)


def arguments(verb, data):
    outcome = data.outcome if data.is_forecast else 1 - to_numpy(data.label)
    package = np if data.is_forecast else array_namespace(data.proba)
    available = {
        "rows": package.asarray([5, 1, 1]),
        "outcome": outcome,
        "outcomes": outcome[None],
        "lens": HalfTheRows(),
        "proba": None if data.is_forecast else 1 - data.proba,
        "data": data,
        "y_true": np.zeros(N),
        "given": data.given,
        "groups": np.arange(N),
        "may_be_crossed": False,
        "sample_weight": None,
        "values": np.zeros(N),
    }
    parameters = inspect.signature(verb).parameters
    return {name: available[name] for name in parameters}  # name the argument of a new verb above


def iter_derived(value):
    if isinstance(value, EvaluationData):
        yield value
    elif isinstance(value, Iterator | list | tuple):
        for item in value:
            yield from iter_derived(item)


def iter_verbs(name, data):
    """The names of all public methods, and of doors that add fields; what each returns."""
    left_out = {"simulate_outcomes"} | (SEVERAL if name == "two classes" else TWO)
    if name == "labels":
        left_out |= SEVERAL | {"sort_samples"}
    methods = {verb: method for verb, method in inspect.getmembers(type(data), inspect.isfunction)}
    for verb in sorted(methods.keys() - left_out):
        if not verb.startswith("_") and (name != "device" or verb in ANY_DEVICE):
            method = getattr(data, verb)
            yield verb, method(**arguments(method, data))
    for verb in sorted(vars(_data)):
        if verb.startswith("with_") and name != "device":
            function = getattr(_data, verb)
            yield verb, function(**arguments(function, data))


def rows_of(value):
    return value.components().location if isinstance(value, Forecast) else to_numpy(value)


def check_fields(verb, data, derived):
    restated = RESTATED.get(verb, set())
    rows = to_numpy(derived.groups)
    assert rows is not None, f"{verb} drops groups"
    ratio = to_numpy(derived.weight)[0] / to_numpy(data.weight)[rows[0]]  # as they sum to 1 again
    factors = {"weight": ratio, "square": ratio**2}
    for field in dataclasses.fields(derived):
        before, after = getattr(data, field.name), getattr(derived, field.name)
        if field.name in restated or before is None:
            continue
        assert after is not None, f"{verb} drops {field.name}"
        if isinstance(before, bool | float) or field.name == "classes":
            assert after is before, f"{verb} changes {field.name}"
            continue
        expected = rows_of(before)[rows] * factors.get(field.name, 1)
        np.testing.assert_allclose(rows_of(after), expected, rtol=1e-14, err_msg=field.name)


VERBS = {
    "forecasts": {"take", "iter_couplings", "with_outcome", "with_groups"},
    "labels": {"take", "iter_problems", "with_outcome", "with_given", "to_numpy", "with_proba"},
    "classes": {"take", "confidence", "iter_problems", "iter_one_vs_rest", "sort_samples"},
    "two classes": {"take", "swap_classes", "with_outcome", "iter_couplings", "with_groups"},
    "device": ANY_DEVICE,
}


@pytest.mark.parametrize("name", VERBS)
def test_every_field_follows_its_rows_through_every_verb(name):
    data = make(name)
    visited = set()
    for verb, value in iter_verbs(name, data):
        for derived in iter_derived(value):
            check_fields(verb, data, derived)
            visited.add(verb)
    assert visited >= VERBS[name]  # so that none passes because it was not called
