"""A fuzzer that calls public functions with data in other containers, and counts the outcomes.

Run it by hand with ``python tests/fuzz.py --calls 1000 --seed 0 --only metrics --log FILE``. The
log is rewritten during the run, so a run that is killed leaves the counts up to then.

A case is a public callable with clean data, which are arrays of doubles and integers. A call
changes one of its arguments, or all of them. Each container declares what it holds. If that is the
clean content, the call must give the number of the clean call, or refuse the container. If it is
invalid, the call must refuse it. The outcomes are

- equal: the number of the clean call; result: a number, without a clean one to compare it with
- refused: a ValueError, TypeError or ImportError that names an argument
- silent: another number from the same content, a number from invalid content, or changed data
- foreign: any other error, or one that names no argument
- leak: a warning of NumPy or Python, or a change of NumPy's error state
- hang: more than 20 seconds
- left: a silent, foreign, leak or hang that is left as it is, for the reason in `LEFT`
"""

import argparse
import contextlib
import dataclasses
import datetime
import decimal
import fractions
import importlib.util
import inspect
import io
import json
import os
import random
import re
import signal
import tempfile
import time
import warnings
from collections import Counter, UserList, deque
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("MPLBACKEND", "agg")

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse

from skcalib.forecasts import EnsembleForecast, GaussianForecast

FOREIGN_WARNINGS = (RuntimeWarning, DeprecationWarning, FutureWarning, PendingDeprecationWarning)
FLAGGED = ("silent", "foreign", "leak", "hang")
ROOMS = (
    "metrics", "hypothesis_tests", "recalibration", "uncertainty", "lenses", "display", "losses",
    "torch", "report", "forecasts", "streaming", "datasets", "decisions", "function_classes",
    "command_line",
)  # fmt: skip
SECONDS_PER_CALL = 20
N = 16


class Container(NamedTuple):
    """A container: how to make it from clean values, and what it then holds."""

    make: Callable
    content: Callable | str  # a function that returns arrays of the same values, or a word


INVALID, ANY = "invalid", "any"


def same(values):
    return values


class Case(NamedTuple):
    """A public callable, the clean values and the role of each argument, and hostile options."""

    name: str  # room.callable/problem
    call: Callable
    arguments: dict[str, tuple[Any, str]]
    names: frozenset = frozenset()


# Clean data, all of it exact in half precision


def make_data(seed):
    rng = np.random.default_rng(seed)
    binary = np.round(rng.uniform(0.05, 0.95, N) * 256) / 256
    rows = rng.multinomial(250, [0.3, 0.3, 0.4], N) + 2.0
    rows[:, 2] = 256 - rows[:, 0] - rows[:, 1]
    mean, std = (np.round(x * 64) / 64 for x in (rng.normal(size=N), rng.uniform(0.5, 2, N)))
    labels = (rng.random(N) < binary).astype(int)
    classes = (rng.random((N, 1)) > rows.cumsum(axis=1) / 256).sum(axis=1).clip(0, 2)
    labels[:2], classes[:3] = [0, 1], [0, 1, 2]
    return {
        "labels": labels, "binary": binary, "classes": classes, "rows": rows / 256,
        "columns": np.column_stack([1 - binary, binary]), "mean": mean, "std": std,
        "outcome": np.round((mean + std * rng.normal(size=N)) * 64) / 64,
        "members": np.round(rng.normal(size=(N, 4)) * 64) / 64,
        "weight": np.round(rng.uniform(0.5, 2, N) * 64) / 64,
        "given": np.round(rng.normal(size=(N, 2)) * 64) / 64,
        "by": np.arange(N) % 2, "groups": np.arange(N) // 2,
    }  # fmt: skip


# Containers


def by_column(make):
    """Apply a function that makes a column to an array of one or two dimensions."""

    def make_each(values):
        if values.ndim == 1:
            return make(values)
        return pd.DataFrame({i: make(values[:, i]) for i in range(values.shape[1])})

    return make_each


def with_value(value, dtype=object):
    """Replace a single value."""

    def replace(values):
        changed = values.astype(dtype)
        changed.flat[1] = value
        return changed

    return replace


def list_with(value):
    def replace(values):
        entries = values.tolist()
        entries[1] = [value] * values.shape[1] if values.ndim == 2 else value
        return entries

    return replace


def of_objects(kind):
    def convert(values):
        entries = np.empty(values.shape, dtype=object)
        entries.flat[:] = [kind(value) for value in values.ravel().tolist()]
        return entries

    return convert


def rows_as_objects(values):
    entries = np.empty(len(values), dtype=object)
    for i, row in enumerate(values.tolist()):
        entries[i] = row
    return entries


def with_index(make_index):
    def make(values):
        kind = pd.Series if values.ndim == 1 else pd.DataFrame
        return kind(values, index=make_index(len(values)))

    return make


def read_only(values):
    values = values.copy()
    values.setflags(write=False)
    return values


def unaligned(values):
    memory = np.zeros(values.nbytes + 1, np.uint8)
    array = np.ndarray(values.shape, values.dtype, memory.data, 1)
    array[...] = values
    return array


def masked(values):
    return np.ma.array(values, mask=np.arange(values.size).reshape(values.shape) == 1)


def to_polars(values, dtype=None):
    if values.ndim == 1:
        return pl.Series("x", values, dtype)
    return pl.DataFrame(
        {f"c{i}": pl.Series(column, dtype=dtype) for i, column in enumerate(values.T)}
    )


def to_lazy(values):
    frame = to_polars(values)
    return (frame.to_frame() if values.ndim == 1 else frame).lazy()


def to_arrow(values, kind=None):
    if values.ndim == 1:
        return pa.array(values, type=kind)
    return pa.table({f"c{i}": pa.array(column, type=kind) for i, column in enumerate(values.T)})


def to_chunks(values):
    if values.ndim == 1:
        return pa.chunked_array([values[:3], values[3:]])
    return pa.table({f"c{i}": to_chunks(column) for i, column in enumerate(values.T)})


def with_null(make):
    """Make the first value missing."""

    def convert(values):
        return by_column(lambda column: make([None, *column.tolist()[1:]]))(values)

    return convert


def to_tensor(values, dtype=None, gradient=False):
    torch = load("torch")
    tensor = torch.tensor(values, dtype=None if dtype is None else getattr(torch, dtype))
    return tensor.requires_grad_() if gradient else tensor


@cache
def load(name):
    return importlib.import_module(name)


class ArrayOnly:
    """An object that can become an array, and can do nothing else."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)


class ArrayWithLength(ArrayOnly):
    def __len__(self):
        return len(self.values)

    def __getitem__(self, rows):
        return self.values[rows]


class LyingArray(np.ndarray):
    """A subclass whose sums are wrong."""

    def sum(self, *args, **kwargs):
        return 99.0

    def max(self, *args, **kwargs):
        return 0.5


class DLPack:
    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


COMMON = {
    "Fortran order": Container(np.asfortranarray, same),
    "read-only": Container(read_only, same),
    "negative strides": Container(lambda v: v[::-1].copy()[::-1], same),
    "every other row": Container(lambda v: np.repeat(v, 2, axis=0)[::2], same),
    "unaligned": Container(unaligned, same),
    "big-endian": Container(lambda v: v.astype(v.dtype.newbyteorder(">")), same),
    "matrix": Container(lambda v: np.matrix(v).T if v.ndim == 1 else np.matrix(v), same),
    "row of a matrix": Container(lambda v: np.matrix(v.ravel()), INVALID),
    "lying subclass": Container(lambda v: v.view(LyingArray), same),
    "masked, none": Container(np.ma.array, same),
    "masked, one": Container(masked, INVALID),
    "masked in a list": Container(lambda v: list(masked(v)), INVALID),
    "object": Container(lambda v: v.astype(object), same),
    "object, None": Container(with_value(None), INVALID),
    "object, NA": Container(with_value(pd.NA), INVALID),
    "object, NaT": Container(with_value(pd.NaT), INVALID),
    "object, NaN": Container(with_value(np.nan), INVALID),
    "object, array": Container(with_value(np.array([1.0, 2.0])), INVALID),
    "object, dict": Container(with_value({}), INVALID),
    "object, huge": Container(with_value(10**400), ANY),
    "list": Container(lambda v: v.tolist(), same),
    "tuple": Container(lambda v: tuple(v.tolist()), same),
    "list of arrays": Container(list, same),
    "deque": Container(lambda v: deque(v.tolist()), same),
    "UserList": Container(lambda v: UserList(v.tolist()), same),
    "list, None": Container(list_with(None), INVALID),
    "list, NA": Container(list_with(pd.NA), INVALID),
    "ragged": Container(list_with([1.0, 2.0, 3.0, 4.0, 5.0]), INVALID),
    "generator": Container(lambda v: (value for value in v.tolist()), same),
    "iterator": Container(lambda v: iter(v.tolist()), same),
    "dict": Container(lambda v: dict(enumerate(v.tolist())), same),
    "dict values": Container(lambda v: dict(enumerate(v.tolist())).values(), same),
    "set": Container(lambda v: set(map(str, v.ravel().tolist())), INVALID),
    "text": Container(lambda v: " ".join(map(str, v.ravel())), INVALID),
    "bytes": Container(lambda v: v.tobytes(), INVALID),
    "memoryview": Container(lambda v: memoryview(np.ascontiguousarray(v)), same),
    "scalar": Container(lambda v: v.ravel()[0], INVALID),
    "no row": Container(lambda v: v[:0], INVALID),
    "a row less": Container(lambda v: v[:-1], INVALID),
    "a row more": Container(lambda v: np.concatenate([v, v[:1]]), INVALID),
    "one row": Container(lambda v: v[None], INVALID),
    "three dimensions": Container(lambda v: np.stack([v, v])[None], INVALID),
    "no column": Container(lambda v: np.zeros((len(v), 0)), INVALID),
    "class": Container(lambda v: np.ndarray, INVALID),
    "function": Container(lambda v: lambda: v, INVALID),
    "object()": Container(lambda v: object(), INVALID),
    "complex": Container(lambda v: v + 1j, INVALID),
    "datetime": Container(lambda v: np.full(v.shape, np.datetime64("2020-01-01")), INVALID),
    "void": Container(lambda v: np.zeros(v.shape, "V8"), INVALID),
    "Series": Container(with_index(range), same),
    "Series, duplicate index": Container(with_index(lambda n: [0] * n), same),
    "Series, reversed index": Container(with_index(lambda n: range(n - 1, -1, -1)), same),
    "Series, NaN index": Container(with_index(lambda n: [np.nan] * n), same),
    "Series, text index": Container(with_index(lambda n: [f"r{i}" for i in range(n)]), same),
    "Index": Container(lambda v: pd.Index(v) if v.ndim == 1 else v, same),
    "pandas array": Container(by_column(pd.array), same),
    "pandas object": Container(by_column(lambda c: pd.Series(c, dtype=object)), same),
    "Categorical": Container(by_column(pd.Categorical), same),
    "SparseArray": Container(by_column(pd.arrays.SparseArray), same),
    "sparse matrix": Container(lambda v: scipy.sparse.csr_array(np.atleast_2d(v.T).T), same),
    "polars": Container(to_polars, same),
    "polars, null": Container(with_null(lambda c: pl.Series(c).to_frame().to_series()), INVALID),
    "polars, lazy": Container(to_lazy, same),
    "polars, object": Container(lambda v: pl.Series(v.tolist(), dtype=pl.Object), same),
    "objects of rows": Container(rows_as_objects, same),
    "polars, list": Container(lambda v: pl.Series(np.atleast_2d(v.T).T.tolist()), same),
    "arrow": Container(to_arrow, same),
    "arrow, chunks": Container(to_chunks, same),
    "arrow, null": Container(with_null(pa.array), INVALID),
    "arrow, list": Container(lambda v: pa.array(np.atleast_2d(v.T).T.tolist()), same),
    "arrow, scalars": Container(lambda v: [pa.scalar(x) for x in v.ravel().tolist()], ANY),
    "xarray": Container(lambda v: load("xarray").DataArray(v), same),
    "dask": Container(lambda v: load("dask.array").from_array(v, chunks=7), same),
    "array API": Container(lambda v: load("array_api_strict").asarray(v), same),
    "tensor": Container(to_tensor, same),
    "tensors in a list": Container(lambda v: list(to_tensor(v)), same),
    "tensor, meta": Container(lambda v: to_tensor(v).to("meta"), INVALID),
    "tensor, sparse": Container(lambda v: to_tensor(v).to_sparse(), same),
    "__array__": Container(ArrayOnly, same),
    "__array__ with a length": Container(ArrayWithLength, same),
    "DLPack": Container(DLPack, same),
}  # fmt: skip

NUMBERS = {
    "long double": Container(lambda v: v.astype(np.longdouble), same),
    "float32": Container(lambda v: v.astype(np.float32), same),
    "float16": Container(lambda v: v.astype(np.float16), same),
    "Decimal": Container(of_objects(decimal.Decimal), same),
    "Fraction": Container(of_objects(fractions.Fraction), same),
    "digits": Container(lambda v: v.astype(str), INVALID),
    "digits, object": Container(of_objects(str), INVALID),
    "digits, bytes": Container(lambda v: v.astype("S"), INVALID),
    "one digit, object": Container(with_value("0.5"), INVALID),
    "Float64": Container(by_column(lambda c: pd.array(c, dtype="Float64")), same),
    "Float32": Container(by_column(lambda c: pd.array(c, dtype="Float32")), same),
    "Float64, NA": Container(with_null(partial(pd.array, dtype="Float64")), INVALID),
    "pandas of arrow": Container(by_column(lambda c: pd.array(c, dtype="double[pyarrow]")), same),
    "pandas of arrow, NA": Container(with_null(partial(pd.array, dtype="double[pyarrow]")), INVALID),
    "polars float32": Container(lambda v: to_polars(v.astype(np.float32), pl.Float32), same),
    "arrow float32": Container(lambda v: to_arrow(v.astype(np.float32), pa.float32()), same),
    "arrow float16": Container(lambda v: to_arrow(v.astype(np.float16), pa.float16()), same),
    "arrow text": Container(lambda v: to_arrow(v.astype(str)), INVALID),
    "tensor, float32": Container(lambda v: to_tensor(v, "float32"), same),
    "tensor, float16": Container(lambda v: to_tensor(v, "float16"), same),
    "tensor, gradient": Container(lambda v: to_tensor(v, gradient=True), same),
    "NaN": Container(with_value(np.nan, float), INVALID),
    "infinite": Container(with_value(np.inf, float), INVALID),
    "minus infinite": Container(with_value(-np.inf, float), INVALID),
    "1e308": Container(with_value(1e308, float), ANY),
    "subnormal": Container(with_value(5e-324, float), ANY),
    "minus zero": Container(with_value(-0.0, float), with_value(0.0, float)),
    "object, date": Container(with_value(datetime.date(2020, 1, 1)), INVALID),
}  # fmt: skip
NOT_NEGATIVE = {"negative": Container(with_value(-1.0, float), INVALID)}
TEXT = np.array([*"abcdefghijklmnop"])


def to_text(values):
    return TEXT[values]


def of_text(make):
    return Container(lambda values: make(TEXT[values]), to_text)


LABELS = {
    "int8": Container(lambda v: v.astype(np.int8), same),
    "uint64": Container(lambda v: v.astype(np.uint64), same),
    "float": Container(lambda v: v.astype(float), same),
    "float16": Container(lambda v: v.astype(np.float16), same),
    "minus zero": Container(lambda v: np.where(v == 0, -0.0, v), lambda v: v.astype(float)),
    "bool": Container(lambda v: (v == 1).tolist(), lambda v: v == 1),
    "boolean": Container(lambda v: pd.array(v == 1, dtype="boolean"), lambda v: v == 1),
    "boolean, NA": Container(lambda v: pd.array([None, *(v == 1)[1:]], dtype="boolean"), INVALID),
    "polars bool": Container(lambda v: pl.Series(v == 1), lambda v: v == 1),
    "arrow bool": Container(lambda v: pa.array(v == 1), lambda v: v == 1),
    "tensor bool": Container(lambda v: to_tensor(v == 1), lambda v: v == 1),
    "text": of_text(same),
    "StringDType": of_text(lambda t: t.astype(np.dtypes.StringDType())),
    "bytes": of_text(lambda t: t.astype("S")),
    "text, object": of_text(lambda t: t.astype(object)),
    "string": of_text(partial(pd.array, dtype="string")),
    "string of arrow": of_text(partial(pd.Series, dtype="string[pyarrow]")),
    "string, NA": Container(lambda v: pd.array([None, *TEXT[v][1:]], dtype="string"), INVALID),
    "Categorical text": of_text(pd.Categorical),
    "Categorical, NA": Container(lambda v: pd.Categorical([None, *TEXT[v][1:]]), INVALID),
    "Categorical, unused": of_text(partial(pd.Categorical, categories=[*"abcd"])),
    "polars categories": of_text(lambda t: pl.Series(t).cast(pl.Categorical)),
    "arrow text": of_text(pa.array),
    "arrow dictionary": of_text(lambda t: pa.array(t).dictionary_encode()),
    "Int64": Container(partial(pd.array, dtype="Int64"), same),
    "Int64, NA": Container(lambda v: pd.array([None, *v[1:]], dtype="Int64"), INVALID),
    "int64 of arrow": Container(partial(pd.array, dtype="int64[pyarrow]"), same),
    "Decimal": Container(of_objects(decimal.Decimal), same),
    "date": Container(lambda v: np.datetime64("2020-01-01") + v.astype("m8[D]"), to_text),
    "huge integers": Container(lambda v: v.astype(object) + 2**70, lambda v: v + 1000),
    "huge uint64": Container(lambda v: v.astype(np.uint64) + np.uint64(2**63), lambda v: v + 1000),
    "mixed types": Container(lambda v: [(0, "b", 2.0)[i % 3] for i in v], INVALID),
    "mixed numbers": Container(lambda v: [True if i == 1 else float(i) for i in v], same),
    "one-hot": Container(lambda v: np.eye(v.max() + 1)[v], same),
    "fractions": Container(lambda v: v + 0.5, ANY),
    "one class": Container(np.zeros_like, ANY),
    "a class for each row": Container(lambda v: np.arange(len(v)), ANY),
    "NaN": Container(with_value(np.nan, float), INVALID),
    "infinite": Container(with_value(np.inf, float), ANY),
}
WEIGHTS = {
    "all zero": Container(np.zeros_like, INVALID),
    "bool": Container(lambda v: v > 0, np.ones_like),
    "int8": Container(lambda v: np.ones(len(v), np.int8), np.ones_like),
    "Int64": Container(lambda v: pd.array(np.ones(len(v), int), dtype="Int64"), np.ones_like),
    "tiny": Container(lambda v: v * 1e-300, ANY),
    "large": Container(lambda v: v * 1e300, ANY),
    "text": Container(lambda v: "balanced", INVALID),
    "by class": Container(lambda v: {0: 1.0, 1: 2.0}, INVALID),
    "column": Container(lambda v: v[:, None], same),
    "scalar": Container(lambda v: 2.0, ANY),
}
NAMED = {
    "frame, other order": Container(lambda v: pd.DataFrame(v, columns=range(v.shape[1])[::-1]), INVALID),
    "frame, duplicate names": Container(lambda v: pd.DataFrame(v, columns=[0] * v.shape[1]), ANY),
    "logits": Container(lambda v: np.log(v), INVALID),
    "percent": Container(lambda v: v * 100, INVALID),
    "labels": Container(lambda v: np.round(v).astype(int), ANY),
    "text labels": Container(lambda v: np.where(v > 0.5, "a", "b"), INVALID),
}  # fmt: skip


def without_rules(containers):
    """Containers for arguments that may take values which are invalid elsewhere."""
    return {
        name: Container(kind.make, ANY if kind.content is INVALID else kind.content)
        for name, kind in containers.items()
        if name not in ("one class", "one-hot", "matrix", "sparse matrix", "tensor, sparse")
    }


LENGTHS = {name: COMMON[name] for name in ("a row less", "a row more", "no row", "masked, one")}
GROUPS = {**without_rules(COMMON), **without_rules(LABELS), **LENGTHS}
HOSTILE = {
    repr(value)[:30]: Container(lambda _, value=value: value, ANY)
    for value in (
        None, [], {}, (), "x", "", b"y", float("nan"), float("inf"), -1, 0, 1, 2, 1.5, True, 1 + 2j,
        10**400, pd.NA, pd.NaT, np.float32(0.5), decimal.Decimal("0.5"), datetime.date(2020, 1, 1),
        ..., np.zeros((2, 2)), np.zeros((0, 2)), np.array(["a", None]), [[1], [1, 2]],
        [np.nan], [0.5, 0.1], [0, 1], ["a", "b"], {"a": 1}, {0: [1]}, pd.DataFrame({"a": [1]}), range(3),
    )
}  # fmt: skip
ROLES = {
    "labels": {**COMMON, **LABELS},
    "probabilities": {**COMMON, **NUMBERS, **NOT_NEGATIVE, **NAMED},
    "weights": {**COMMON, **NUMBERS, **NOT_NEGATIVE, **WEIGHTS},
    "numbers": {**COMMON, **NUMBERS},
    "positive": {**COMMON, **NUMBERS, **NOT_NEGATIVE},
    "scale": {**COMMON, **NUMBERS, **NOT_NEGATIVE},
    "groups": GROUPS,
    "features": {**without_rules(COMMON), **without_rules(NUMBERS), **LENGTHS},
    "option": HOSTILE,
}
ALL = {
    **{name: kind for name, kind in COMMON.items() if kind.content is same},
    "no row": Container(lambda v: v[:0], INVALID),
    "one row": Container(lambda v: v[:1], ANY),
    "two rows": Container(lambda v: v[:2], ANY),
    "the same row": Container(lambda v: np.repeat(v[:1], N, axis=0), ANY),
}
ROLE_OF = {
    "y_true": "labels", "y": "labels", "target": "labels", "y_proba": "probabilities",
    "X": "probabilities", "y_pred": "probabilities", "prediction": "probabilities",
    "y_pred_a": "probabilities", "y_pred_b": "probabilities", "sample_weight": "weights",
    "given": "numbers", "query": "query", "by": "groups", "by_each": "groups", "groups": "groups",
    "grades": "groups", "periods": "groups",
}  # fmt: skip
EXTRA = {
    "sample_weight": "weight", "given": "given", "by": "by", "by_each": "by", "groups": "groups",
    "grades": "by", "query": "given",
}  # fmt: skip
QUICK = {
    "random_state": 0, "n_resamples": 9, "n_locations": 2, "cv": 2, "n_simulations": 3,
    "input_type": "probabilities", "margin": 0.1,
}  # fmt: skip


# Cases


def parameters_of(function):
    return inspect.signature(function).parameters


def options_of(function, **options):
    """Options that make a call quick and repeatable."""
    accepted = parameters_of(function)
    return {name: value for name, value in {**QUICK, **options}.items() if name in accepted}


def problems_of(data):
    """The outcomes and predictions of each kind, with their roles."""
    normal = GaussianForecast(data["mean"], data["std"])
    return {
        "two": ((data["labels"], "labels"), (data["binary"], "probabilities")),
        "columns": ((data["labels"], "labels"), (data["columns"], "probabilities")),
        "three": ((data["classes"], "labels"), (data["rows"], "probabilities")),
        "normal": ((data["outcome"], "numbers"), (normal, "option")),
        "ensemble": ((data["outcome"], "numbers"), (EnsembleForecast(data["members"]), "option")),
    }


def iter_arguments(function, data, others=()):
    """The data arguments of a function: for each problem, alone and with each further argument."""
    names = [name for name in parameters_of(function) if name != "self"]
    extras = [name for name in names if name in EXTRA]
    needed = [
        name for name in extras if parameters_of(function)[name].default is inspect.Parameter.empty
    ]
    for problem, (outcome, prediction) in problems_of(data).items():
        arguments = {}
        for name in names:
            if ROLE_OF.get(name) == "labels":
                arguments[name] = outcome
            elif ROLE_OF.get(name) == "probabilities" or name in ("y_forecast", "true_proba"):
                arguments[name] = prediction
        further = {name: (data[EXTRA[name]], ROLE_OF[name]) for name in extras}
        yield problem, arguments | {name: further[name] for name in needed}, {}
        for name in extras:
            if name not in needed:
                fixed = {key: value for key, (value, _) in arguments.items()}
                fixed |= {key: further[key][0] for key in needed}
                yield f"{problem}/{name}", {name: further[name]}, fixed


def hostile_options(function, skipped=()):
    """Make each argument that holds no data hostile in turn."""
    return {
        name: (parameter.default, "option")
        for name, parameter in parameters_of(function).items()
        if parameter.default is not parameter.empty
        and name not in (*ROLE_OF, *EXTRA, *QUICK, "ax", "n_jobs", *skipped)
    }


def words_of(*functions):
    return frozenset(name for function in functions for name in parameters_of(function))


def cases_of_functions(room, functions, data, **options):
    for name, function in functions.items():
        fixed = options_of(function, **options)
        for problem, arguments, values in iter_arguments(function, data):
            if "/" not in problem:
                arguments |= {k: v for k, v in hostile_options(function).items() if k not in fixed}
            call = partial(function, **fixed, **values)
            yield Case(f"{room}.{name}/{problem}", call, arguments, words_of(function))


def public_of(room, is_wanted=inspect.isfunction):
    module = importlib.import_module(f"skcalib.{room}")
    return {
        name: getattr(module, name) for name in module.__all__ if is_wanted(getattr(module, name))
    }


def has_fit(item):
    return inspect.isclass(item) and hasattr(item, "fit")


def fit_test(kind, fit_names, **arguments):
    options = {name: value for name, value in arguments.items() if name not in fit_names}
    fitted = kind(**options).fit(**{name: arguments[name] for name in fit_names & set(arguments)})
    return [
        getattr(fitted, name, None) for name in ("statistic_", "p_value_", "p_values_", "e_value_")
    ]


def fit_and_transform(kind, fit_names, **arguments):
    options = {name: value for name, value in arguments.items() if name not in fit_names}
    fit_args = {name: arguments[name] for name in fit_names & set(arguments)}
    # a generator is read once
    fit_args = {name: list(v) if inspect.isgenerator(v) else v for name, v in fit_args.items()}
    fitted = kind(**options).fit(**fit_args)
    further = {
        name: fit_args[name] for name in ("by", "given") if name in parameters_of(fitted.transform)
    }
    return to_numbers(fitted.transform(fit_args["X"], **further))


def cases_of_estimators(room, data, run, **options):
    for name, kind in public_of(room, has_fit).items():
        if name in BY_HAND:
            continue
        fixed = options_of(kind, **options)
        if name == "QuantileRecalibrator":
            fixed["levels"] = LEVELS
        for problem, arguments, values in iter_arguments(kind.fit, data):
            if "/" not in problem:
                arguments |= {k: v for k, v in hostile_options(kind).items() if k not in fixed}
            if name == "FeatureRecalibrator" and "given" in arguments:
                arguments["given"] = data["given"], "features"
            call = partial(run, kind, set(parameters_of(kind.fit)), **fixed, **values)
            yield Case(f"{room}.{name}/{problem}", call, arguments, words_of(kind, kind.fit))


def metrics_cases(data):
    functions = public_of("metrics")
    for name in (
        "metric_table",
        "censoring_weights",
        "get_scorer",
        "make_scorer",
        "get_scorer_names",
        "capabilities",
    ):
        functions.pop(name)
    yield from cases_of_functions("metrics", functions, data)
    crps = partial(functions["score_decomposition"], score="crps")
    threshold = partial(functions["decision_calibration_error"], loss=0.5)
    binned = partial(functions["reliability_curve"], method="binned")
    yield from cases_of_functions(
        "metrics",
        {
            "score_decomposition, crps": crps,
            "decision_calibration_error, 0.5": threshold,
            "reliability_curve, binned": binned,
        },
        data,
    )
    from skcalib import metrics

    two = {"y_true": (data["labels"], "labels"), "y_proba": (data["binary"], "probabilities")}
    names = words_of(metrics.metric_table)
    for scoring in ("smooth_calibration_error", "expected_calibration_error"):
        call = partial(metrics.metric_table, metrics=[scoring])
        yield Case(f"metrics.metric_table/{scoring}", call, two, names)
    yield Case(
        "metrics.censoring_weights", metrics.censoring_weights,
        {"time": (data["std"], "positive"), "event": (data["labels"], "labels"),
         "horizon": (1.0, "option"), "by": (data["by"], "groups")},
        words_of(metrics.censoring_weights),
    )  # fmt: skip


def hypothesis_tests_cases(data):
    from skcalib import hypothesis_tests as tests

    yield from cases_of_estimators("hypothesis_tests", data, fit_test)
    quick = tests.SpiegelhalterTest(method="asymptotic")
    functions = public_of("hypothesis_tests")
    search = functions.pop("find_miscalibrated_subgroups")
    for problem in ("two", "three"):
        outcome, prediction = problems_of(data)[problem]
        yield Case(
            f"hypothesis_tests.find_miscalibrated_subgroups/{problem}",
            lambda search=search, **k: vars(search(n_resamples=9, random_state=0, min_samples=2, **k))["p_value"],
            {"y_true": outcome, "y_pred": prediction, "X": (data["given"], "features"),
             "sample_weight": (data["weight"], "weights"), **hostile_options(search, ["min_samples"])},
            words_of(search),
        )  # fmt: skip
    options = {"test": quick, "n_samples": 20, "max_samples": 200}
    for name, function in functions.items():
        arguments = {
            key: (
                data["binary"] if key == "y_proba" else data["binary"][::-1].copy(),
                "probabilities",
            )
            for key in ("y_proba", "true_proba")
            if key in parameters_of(function)
        }
        fixed = options_of(function, **options)
        arguments |= {k: v for k, v in hostile_options(function).items() if k not in fixed}
        yield Case(
            f"hypothesis_tests.{name}", partial(function, **fixed), arguments, words_of(function)
        )

    def watch(X, y):
        watched = tests.SequentialCalibrationTest().partial_fit(X, y)
        return [watched.p_value_, watched.e_value_]

    outcome, prediction = problems_of(data)["two"]
    yield Case(
        "hypothesis_tests.SequentialCalibrationTest.partial_fit", watch,
        {"X": prediction, "y": outcome}, words_of(watch),
    )  # fmt: skip


BY_HAND = ("PredictProba", "RecalibratedClassifier", "RecalibratedRegressor", "AutoRecalibrator")


def recalibration_cases(data):
    from sklearn.linear_model import LinearRegression, LogisticRegression

    from skcalib import recalibration as r

    yield from cases_of_estimators("recalibration", data, fit_and_transform)
    auto = partial(
        r.AutoRecalibrator, trees=False, cv=2,
        candidates=[("t", r.TemperatureRecalibrator()), ("i", r.IsotonicRecalibrator())],
    )  # fmt: skip
    for problem, arguments, values in iter_arguments(r.AutoRecalibrator.fit, data):
        if problem.startswith(("two", "three")):
            call = partial(fit_and_transform, auto, {"X", "y", "sample_weight", "groups"}, **values)
            names = words_of(r.AutoRecalibrator.fit)
            yield Case(f"recalibration.AutoRecalibrator/{problem}", call, arguments, names)
    # a fitted recalibrator meets new data
    for name, kind in public_of("recalibration", has_fit).items():
        if name in BY_HAND or not hasattr(kind, "predict_proba"):
            continue
        further = {
            key: data[EXTRA[key]] for key in ("by", "given") if key in parameters_of(kind.transform)
        }
        for problem in ("two", "three"):
            (outcome, _), prediction = problems_of(data)[problem]

            def predict(
                X, kind=kind, outcome=outcome, clean=prediction[0], further=further, **changed
            ):
                fitted = kind(**options_of(kind)).fit(clean, outcome, **further)
                return fitted.predict_proba(X, **{**further, **changed})

            arguments = {"X": prediction}
            arguments |= {
                key: (value, "features" if key == "given" else "groups")
                for key, value in further.items()
            }
            names = words_of(kind.transform)
            yield Case(f"recalibration.{name}.predict_proba/{problem}", predict, arguments, names)
    features = (data["given"], "features")
    labels, outcome = (data["labels"], "labels"), (data["outcome"], "numbers")
    model = LogisticRegression()

    def classify(X, y, **weights):
        meta = r.RecalibratedClassifier(model, r.TemperatureRecalibrator(), cv=2)
        return meta.fit(X, y, **weights).predict_proba(data["given"])

    def classify_new(X):
        meta = r.RecalibratedClassifier(model, r.TemperatureRecalibrator(), cv=2)
        return meta.fit(data["given"], data["labels"]).predict_proba(X)

    def transform(X, y):
        return r.PredictProba(model, cv=2).fit(X, y).transform(data["given"])

    def regress(X, y, **weights):
        meta = r.RecalibratedRegressor(LinearRegression(), r.LocationScaleRecalibrator(), cv=2)
        return to_numbers(meta.fit(X, y, **weights).predict(data["given"]))

    weight = (data["weight"], "weights")
    # the user's model checks X, with scikit-learn's messages
    names = words_of(r.RecalibratedClassifier, r.RecalibratedClassifier.fit)
    names |= {"array", "Input", "matrix", "samples", "argument", "arrays"}
    for name, call, arguments in (
        ("RecalibratedClassifier", classify, {"X": features, "y": labels}),
        (
            "RecalibratedClassifier/weight",
            partial(classify, data["given"], data["labels"]),
            {"sample_weight": weight},
        ),
        ("RecalibratedClassifier.predict_proba", classify_new, {"X": features}),
        ("PredictProba", transform, {"X": features, "y": labels}),
        ("RecalibratedRegressor", regress, {"X": features, "y": outcome}),
    ):
        yield Case(f"recalibration.{name}", call, arguments, names)
    fitted = r.TemperatureRecalibrator().fit(data["binary"], data["labels"])
    for name in ("export_onnx", "export_sql", "export_table"):
        function = getattr(r, name)
        if name == "export_table":
            fitted = r.IsotonicRecalibrator().fit(data["binary"], data["labels"])
        arguments = {"recalibrator": (fitted, "option"), **hostile_options(function)}
        yield Case(f"recalibration.{name}", function, arguments, words_of(function))


def uncertainty_cases(data):
    from sklearn.metrics import brier_score_loss

    from skcalib import uncertainty as u

    for metric in ("smooth_calibration_error", brier_score_loss, "quantile_calibration_error"):
        functions = {
            f"{name}, {getattr(metric, '__name__', metric)}": partial(getattr(u, name), metric)
            for name in ("confidence_interval", "compare_models")
        }
        yield from cases_of_functions("uncertainty", functions, data)
    yield from cases_of_functions(
        "uncertainty", {"clinical_calibration": u.clinical_calibration}, data
    )
    count = {
        "n_obligors": (np.array([100, 200, 300]), "positive"),
        "n_defaults": (np.array([0, 1, 5]), "positive"),
    }
    yield Case(
        "uncertainty.most_prudent_default_rates",
        u.most_prudent_default_rates,
        count | hostile_options(u.most_prudent_default_rates),
        words_of(u.most_prudent_default_rates),
    )
    radius = {"n_samples": (100, "option"), **hostile_options(u.finite_sample_radius)}
    yield Case(
        "uncertainty.finite_sample_radius",
        partial(u.finite_sample_radius, "smooth_calibration_error"),
        radius,
        words_of(u.finite_sample_radius),
    )
    both = [
        u.confidence_interval(brier_score_loss, data["labels"], data["binary"], n_resamples=9)
    ] * 2
    pool = {"results": (both, "option"), **hostile_options(u.pool_imputations)}
    yield Case(
        "uncertainty.pool_imputations", u.pool_imputations, pool, words_of(u.pool_imputations)
    )


def lenses_cases(data):
    from skcalib import lenses, metrics

    def grouped(y_true, y_proba):
        return lenses.class_groups(y_true, y_proba, [[0, 1], [2]])

    for problem in ("two", "columns", "three"):
        outcome, prediction = problems_of(data)[problem]
        arguments = {"y_true": outcome, "y_proba": prediction}
        names = words_of(lenses.class_groups, lenses.top_k) | {"ranking"}
        yield Case(f"lenses.top_k/{problem}", partial(lenses.top_k, k=1), arguments, names)
        yield Case(f"lenses.class_groups/{problem}", grouped, arguments, names)
        for lens in (lenses.TopK(1), lenses.Ordinal(), lenses.ClassGroups([[0, 1], [2]])):
            call = partial(metrics.expected_calibration_error, multi_class=lens)
            yield Case(f"lenses.{type(lens).__name__}/{problem}", call, arguments, names)

    class Given(lenses.Lens):
        """A user's lens, whose binary problem has the changed arguments."""

        def __init__(self, problem):
            self.problem = problem

        def reduce(self, data):
            yield lenses.BinaryProblem(**self.problem)

    def measure(**problem):
        clean = data["labels"], data["binary"]
        return metrics.smooth_calibration_error(*clean, multi_class=Given(problem), average=None)

    yield Case("lenses.BinaryProblem", measure, {
        "y_true": (data["labels"] == 1, "groups"), "y_proba": (data["binary"], "probabilities"),
        "weight": (1.0, "option"), "name": ("", "option"), "rows": (None, "option"),
    }, words_of(lenses.BinaryProblem) | {"multi_class"})  # fmt: skip
    marks = np.column_stack([data["labels"], 1 - data["labels"][::-1]])

    def multilabel(y_true, y_proba):
        return metrics.expected_calibration_error(y_true, y_proba, multi_class=lenses.Multilabel())

    yield Case("lenses.Multilabel", multilabel, {
        "y_true": (marks.astype(float), "numbers"), "y_proba": (data["columns"], "probabilities"),
    }, words_of(multilabel))  # fmt: skip
    for kind, argument, value in (
        (lenses.TopK, "k", 1),
        (lenses.ClassGroups, "partition", [[0], [1]]),
    ):
        yield Case(f"lenses.{kind.__name__}", kind, {argument: (value, "option")}, words_of(kind))


def draw(function, **arguments):
    import matplotlib.pyplot as plt

    try:
        display = function(**arguments)
        return [v for k, v in vars(display).items() if k[-1] != "_" and k != "name"]
    finally:
        plt.close("all")


def display_cases(data):
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import BayesianRidge

    from skcalib.hypothesis_tests import CalibrationTest

    displays = public_of("display", lambda item: hasattr(item, "from_predictions"))
    for name, display in displays.items():
        function = display.from_predictions
        null = CalibrationTest(n_resamples=9, random_state=0)
        fixed = options_of(function, metrics=["smooth_calibration_error"], test=null)
        for problem, arguments, values in iter_arguments(function, data):
            if "/" not in problem:
                arguments |= {
                    k: v for k, v in hostile_options(function, ["kwargs"]).items() if k not in fixed
                }
            if "y_preds" in parameters_of(function):
                prediction = problems_of(data)[problem.split("/")[0]][1]
                values["y_preds"] = {"a": prediction[0], "b": prediction[0][::-1]}
                arguments.pop("y_preds", None)
            call = partial(draw, function, **fixed, **values)
            yield Case(f"display.{name}/{problem}", call, arguments, words_of(function))
        if name == "ComparisonDisplay":
            for problem in ("two", "three"):
                outcome, prediction = problems_of(data)[problem]
                call = lambda y_true, y_pred, fixed=fixed, function=function, clean=prediction[0]: (
                    draw(function, y_true=y_true, y_preds={"a": y_pred, "b": clean[::-1]}, **fixed)
                )
                yield Case(
                    f"display.{name}, predictions/{problem}",
                    call,
                    {"y_true": outcome, "y_pred": prediction},
                    words_of(function) | {"y_pred"},
                )
            continue
        is_forecast = name in ("PITHistogramDisplay", "QuantileReliabilityDisplay")
        target = "outcome" if is_forecast else "classes" if name == "SimplexDisplay" else "labels"
        model = BayesianRidge() if is_forecast else DummyClassifier(strategy="prior")
        model.fit(data["given"], data[target])
        call = partial(
            draw, display.from_estimator, estimator=model, **options_of(function, test=null)
        )
        arguments = {
            "X": (data["given"], "numbers"),
            "y": (data[target], "numbers" if is_forecast else "labels"),
        }
        yield Case(
            f"display.{name}.from_estimator",
            call,
            arguments,
            words_of(display.from_estimator, function),
        )
    for name, display in public_of("display", inspect.isclass).items():
        if name not in displays or name != "ReliabilityDisplay":
            options = {key: (1, "option") for key in parameters_of(display)}
            yield Case(
                f"display.{name}.__init__", partial(draw, display), options, words_of(display)
            )


def losses_cases(data):
    for name, function in public_of("losses").items():
        for library in ("numpy", "torch"):
            convert = np.asarray if library == "numpy" else to_tensor
            for problem in ("two", "three", "columns"):
                (target, _), (prediction, _) = problems_of(data)[problem]
                arguments = {
                    "prediction": (prediction, "probabilities"), "target": (target, "labels"),
                    "sample_weight": (data["weight"], "weights"), **hostile_options(function),
                }  # fmt: skip
                call = partial(give, function, convert, input_type="probabilities")
                yield Case(
                    f"losses.{name}, {library}/{problem}", call, arguments, words_of(function)
                )


def give(function, convert, **arguments):
    """Make the clean arguments arrays of the library; keep the changed ones."""
    return function(**{
        key: convert(value) if type(value) is np.ndarray and value.flags.writeable and value.flags.c_contiguous
        and value.dtype in (np.float64, np.int64) and value.ndim in (1, 2) else value
        for key, value in arguments.items()
    })  # fmt: skip


def torch_cases(data):
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    from skcalib import torch as t

    rows, classes = data["rows"], data["classes"]
    arguments = {"prediction": (rows, "probabilities"), "target": (classes, "labels")}
    modules = {
        f"CalibrationPenalty, {name}": t.CalibrationPenalty(name, input_type="probabilities")
        for name in ("smooth", "kde", "soft-binned", "mmce")
    }
    modules["CalibrationRegularizedLoss"] = t.CalibrationRegularizedLoss(
        lambda prediction, target: 0.0, t.CalibrationPenalty("smooth", input_type="probabilities")
    )
    modules["DistributionMatchingLoss"] = t.DistributionMatchingLoss(
        calibration="canonical", input_type="probabilities"
    )
    for name, module in modules.items():
        is_penalty = isinstance(module, t.CalibrationPenalty)
        yield Case(
            f"torch.{name}",
            lambda prediction, target, module=module: give(
                lambda prediction, target: module(prediction, target),
                to_tensor,
                prediction=prediction,
                target=target,
            ),
            arguments,
            frozenset(("prediction", "target", *["input"] * is_penalty)),
        )
    clean = {
        "name": "smooth",
        "base": torch.nn.NLLLoss(),
        "penalty": t.CalibrationPenalty("smooth"),
    }
    for kind in (
        t.CalibrationPenalty,
        t.CalibrationRegularizedLoss,
        t.DistributionMatchingLoss,
        t.NegativeLogLikelihoodLoss,
    ):
        options = {
            k: (clean[k] if p.default is p.empty else p.default, "option")
            for k, p in parameters_of(kind).items()
            if k != "options"
        }
        yield Case(
            f"torch.{kind.__name__}.__init__",
            lambda kind=kind, **k: kind(**k) and None,
            options,
            words_of(kind),
        )


def report_cases(data):
    from skcalib.report import calibration_report

    def report(**arguments):
        return json.loads(calibration_report(**arguments, random_state=0).to_json())

    for problem, arguments, values in iter_arguments(calibration_report, data):
        if "/" not in problem:
            arguments |= hostile_options(calibration_report)
        yield Case(
            f"report.calibration_report/{problem}",
            partial(report, **values),
            arguments,
            words_of(calibration_report),
        )


LEVELS = np.array([0.125, 0.5, 0.75])


def forecasts_cases(data):
    from scipy import stats

    from skcalib import forecasts as f

    mean, std = (data["mean"], "numbers"), (data["std"], "scale")
    members = np.sort(data["members"], axis=1), "numbers"
    weights = (np.tile([0.5, 0.25, 0.125, 0.125], (N, 1)), "weights")
    makers = {
        "GaussianForecast": (f.GaussianForecast, {"mean": mean, "std": std}),
        "LogisticForecast": (f.LogisticForecast, {"location": mean, "scale": std}),
        "EnsembleForecast": (
            f.EnsembleForecast,
            {"members": (members[0], "members"), "weights": weights},
        ),
        "QuantileForecast": (
            f.QuantileForecast,
            {"quantiles": members, "levels": (np.array([0.125, 0.25, 0.5, 0.75]), "levels")},
        ),
        "ResidualForecast": (
            f.ResidualForecast,
            {"location": (data["mean"], "location"), "residuals": (data["outcome"], "residuals")},
        ),
        "GaussianMixtureForecast": (
            f.GaussianMixtureForecast,
            {"mean": members, "std": (np.ones((N, 4)), "positive"), "weights": weights},
        ),
    }
    clean = {}
    for name, (kind, arguments) in makers.items():

        def quantiles(kind=kind, **values):
            return (
                kind(**values).quantiles([0.25, 0.5])
                if kind is not f.QuantileForecast
                else kind(**values).cdf(0.0)
            )

        yield Case(f"forecasts.{name}", quantiles, arguments, words_of(kind))
        clean[name] = kind(**{key: value for key, (value, _) in arguments.items()})
    clean["CensoredForecast"] = f.CensoredForecast(clean["GaussianForecast"], -0.5)
    clean["DistributionForecast"] = f.DistributionForecast(stats.norm(data["mean"], data["std"]))
    outcome = (data["outcome"], "numbers")
    for name, forecast in clean.items():
        for method in (
            "cdf",
            "logcdf",
            "logsf",
            "logpdf",
            "pit_log_odds",
            "pit_bounds",
            "sf",
            "crps",
            "pit",
        ):
            function = getattr(forecast, method)
            argument = "threshold" if method == "sf" else "y"
            fixed = options_of(function)
            yield Case(
                f"forecasts.{name}.{method}",
                partial(function, **fixed),
                {argument: (data["outcome"], "thresholds")},
                words_of(function),
            )
        for method, argument in (("ppf", "level"), ("quantiles", "levels")):
            value = np.full(N, 0.5) if method == "ppf" else LEVELS
            yield Case(
                f"forecasts.{name}.{method}",
                getattr(forecast, method),
                {argument: (value, "levels")},
                frozenset((argument,)),
            )
        for method, options in (
            ("interval", {"coverage": 0.5}),
            ("sample", {"size": 2}),
            ("components", {"n_nodes": None}),
        ):
            arguments = {key: (value, "option") for key, value in options.items()}
            function = getattr(forecast, method)
            yield Case(
                f"forecasts.{name}.{method}",
                lambda function=function, **k: to_numbers(function(**k, **options_of(function))),
                arguments,
                words_of(function),
            )

    def as_pair(mean, std):
        return f.as_forecast((mean, std)).quantiles([0.25, 0.5])

    yield Case(
        "forecasts.as_forecast/pair",
        as_pair,
        {"mean": mean, "std": std},
        frozenset(("mean", "std", "y_forecast", "obj")),
    )
    yield Case(
        "forecasts.as_forecast",
        lambda obj: f.as_forecast(obj).quantiles([0.5]),
        {"obj": (data["members"], "option")},
        frozenset(("obj", "y_forecast")),
    )
    yield Case(
        "forecasts.concatenate",
        lambda forecasts: f.concatenate(forecasts).quantiles([0.5]),
        {"forecasts": ([clean["GaussianForecast"]] * 2, "option")},
        frozenset(("forecasts",)),
    )
    yield Case(
        "forecasts.CensoredForecast",
        lambda forecast, lower: f.CensoredForecast(forecast, lower).cdf(0.0),
        {"forecast": (clean["GaussianForecast"], "option"), "lower": (data["mean"], "lower")},
        frozenset(("forecast", "lower")),
    )
    yield Case(
        "forecasts.DistributionForecast",
        lambda dist: f.DistributionForecast(dist).cdf(0.0),
        {"dist": (stats.norm(data["mean"]), "option")},
        frozenset(("dist",)),
    )
    impute = partial(f.impute_censored, clean["GaussianForecast"], random_state=0)
    yield Case(
        "forecasts.impute_censored",
        impute,
        {"time": outcome, "event": (data["labels"], "labels")},
        words_of(f.impute_censored),
    )
    from sklearn.gaussian_process import GaussianProcessRegressor

    model = GaussianProcessRegressor(optimizer=None, alpha=0.1).fit(data["given"], data["outcome"])
    yield Case(
        "forecasts.get_forecast",
        lambda estimator: f.get_forecast(estimator, data["given"]).quantiles([0.5]),
        {"estimator": (model, "option")},
        frozenset(("estimator",)),
    )


def streaming_cases(data):
    from skcalib.streaming import CalibrationState

    state = partial(CalibrationState, n_components=4)

    def update(**arguments):
        updated = state().update(**arguments)
        return [
            to_numbers(updated.evaluate(name))
            for name in ("smooth_calibration_error", "expected_calibration_error")
        ]

    def merge(**arguments):  # an empty batch changes nothing
        merged = state().update(**arguments).merge(state().update(data["labels"], data["binary"]))
        return to_numbers(merged.evaluate("smooth_calibration_error"))

    for problem, arguments, values in iter_arguments(CalibrationState.update, data):
        call = partial(update, **values)
        yield Case(
            f"streaming.CalibrationState.update/{problem}",
            call,
            arguments,
            words_of(CalibrationState.update) | {"state"},
        )
        if problem == "two":
            yield Case(
                f"streaming.CalibrationState.merge/{problem}",
                merge,
                arguments,
                words_of(CalibrationState.update) | {"state"},
            )
    counts = {"y_true": (data["labels"], "labels"), "y_proba": (data["binary"], "probabilities")}
    init = hostile_options(CalibrationState)
    init.pop("n_components", None)

    def create(**options):
        return to_numbers(
            CalibrationState(**options)
            .update(data["labels"], data["binary"])
            .evaluate("smooth_calibration_error")
        )

    yield Case("streaming.CalibrationState", create, init, words_of(CalibrationState))
    full = state().update(data["labels"], data["binary"])
    yield Case(
        "streaming.CalibrationState.evaluate",
        full.evaluate,
        {"metric": ("smooth_calibration_error", "option")},
        frozenset(("metric",)),
    )
    yield Case(
        "streaming.CalibrationState.sample",
        full.sample,
        {k: (1, "option") for k in parameters_of(full.sample)},
        words_of(full.sample),
    )
    from_counts = CalibrationState.from_counts
    counts["count"] = np.arange(1, N + 1), "positive"
    yield Case(
        "streaming.CalibrationState.from_counts",
        lambda **k: to_numbers(from_counts(**k).evaluate("smooth_calibration_error")),
        counts,
        words_of(from_counts),
    )
    sums = {
        key: (np.arange(1.0, N + 1) * factor, "positive")
        for key, factor in (("weight", 1), ("squared_weight", 2))
    }
    clean = {key: value for key, (value, _) in counts.items()}
    yield Case(
        "streaming.CalibrationState.from_counts/weight",
        lambda **k: to_numbers(from_counts(**clean, **k).evaluate("smooth_calibration_error")),
        sums,
        words_of(from_counts),
    )


def datasets_cases(data):
    for name, function in public_of("datasets").items():
        fixed = options_of(function, n_samples=20)
        options = {k: v for k, v in hostile_options(function).items() if k not in fixed}
        if "n_samples" in fixed:
            yield Case(
                f"datasets.{name}/n_samples",
                partial(function, random_state=0),
                {"n_samples": (20, "option")},
                words_of(function),
            )
        yield Case(
            f"datasets.{name}",
            lambda function=function, fixed=fixed, **k: [
                x for x in function(**fixed, **k) if isinstance(x, np.ndarray)
            ],
            options,
            words_of(function),
        )


def decisions_cases(data):
    from skcalib import decisions as d

    for problem in ("two", "columns", "three"):
        prediction = problems_of(data)[problem][1]
        for name in ("bayes_action", "expected_loss"):
            function = getattr(d, name)
            yield Case(
                f"decisions.{name}/{problem}",
                partial(function, loss="zero-one"),
                {"y_pred": prediction},
                words_of(function),
            )
            yield Case(
                f"decisions.{name}/{problem}/loss",
                partial(function, prediction[0]),
                {"loss": ("zero-one", "option"), **hostile_options(function)},
                words_of(function),
            )
        matrix = (1.0 - np.eye(3 if problem == "three" else 2), "numbers")
        yield Case(
            f"decisions.DecisionLoss/{problem}",
            lambda loss, p=prediction[0]: d.expected_loss(p, loss=d.DecisionLoss(loss)),
            {"loss": matrix},
            words_of(d.DecisionLoss),
        )
    yield Case(
        "decisions.DecisionLoss",
        lambda **k: d.DecisionLoss(**k) and None,
        {"loss": ("zero-one", "option"), **hostile_options(d.DecisionLoss)},
        words_of(d.DecisionLoss),
    )


def function_classes_cases(data):
    from skcalib.function_classes import Bounded
    from skcalib.metrics import weighted_calibration_error

    for name, kind in public_of("function_classes", inspect.isclass).items():
        if name != "FunctionClass":
            call = lambda kind=kind, **k: weighted_calibration_error(
                data["labels"], data["binary"], function_class=kind(**k) & Bounded()
            )
            yield Case(f"function_classes.{name}", call, hostile_options(kind), words_of(kind))


# Files of the command line


def file_of(columns, separator=",", end="\n", quote="", encoding="utf-8"):
    rows = [list(columns), *zip(*columns.values(), strict=False)]
    lines = [separator.join(f"{quote}{value}{quote}" for value in row) for row in rows]
    return ".csv", (end.join(lines) + end).encode(encoding)


def with_cell(text, column="p"):
    def make(columns):
        values = list(columns[column])
        values[1] = text
        return file_of({**columns, column: values})

    return make


def frame_file(kind, **types):
    def make(columns):
        frame = pd.DataFrame(
            {"y": [int(v) for v in columns["y"]], "p": [float(v) for v in columns["p"]]}
        )
        for name, dtype in types.items():
            frame[name] = frame[name].astype(dtype)
        memory = io.BytesIO()
        table = pa.Table.from_pandas(frame)
        if kind == ".parquet":
            importlib.import_module("pyarrow.parquet").write_table(table, memory)
        elif kind == ".jsonl":
            return kind, frame.to_json(orient="records", lines=True).encode()
        else:
            importlib.import_module("pyarrow.feather").write_feather(table, memory)
        return kind, memory.getvalue()

    return make


FILES = {
    "CRLF": Container(partial(file_of, end="\r\n"), same),
    "CR": Container(partial(file_of, end="\r"), same),
    "mark of UTF-8": Container(partial(file_of, encoding="utf-8-sig"), same),
    "UTF-16": Container(partial(file_of, encoding="utf-16"), INVALID),
    "quotes": Container(partial(file_of, quote='"'), same),
    "semicolons": Container(partial(file_of, separator=";"), same),
    "tabs": Container(partial(file_of, separator="\t"), same),
    "bars": Container(partial(file_of, separator="|"), same),
    "spaces after commas": Container(partial(file_of, separator=", "), same),
    "no last end": Container(lambda c: (".csv", file_of(c)[1].rstrip()), same),
    "blank lines at the end": Container(lambda c: (".csv", file_of(c)[1] + b"\n\n"), same),
    "a column more": Container(lambda c: file_of({**c, "x": c["p"]}), same),
    "a name twice": Container(lambda c: (".csv", file_of({**c, "x": c["y"]})[1].replace(b"x", b"p", 1)), INVALID),
    "cut": Container(lambda c: (".csv", file_of(c)[1][:-12]), ANY),
    "cut in a row": Container(lambda c: (".csv", file_of(c)[1].rstrip() + b"\n1"), INVALID),
    "a value more": Container(lambda c: (".csv", file_of(c)[1].rstrip() + b"\n1,0.5,7\n"), INVALID),
    "empty": Container(lambda c: (".csv", b""), INVALID),
    "header": Container(lambda c: (".csv", b"y,p\n"), INVALID),
    "one row": Container(lambda c: (".csv", b"y,p\n1,0.5\n"), ANY),
    "NUL": Container(lambda c: (".csv", file_of(c)[1].replace(b"\n", b"\0\n", 2)), INVALID),
    "random bytes": Container(lambda c: (".csv", bytes(range(256)) * 3), INVALID),
    "bytes as parquet": Container(lambda c: (".parquet", b"PAR1" + bytes(range(256)) + b"PAR1"), INVALID),
    "text as parquet": Container(lambda c: (".parquet", file_of(c)[1]), ANY),
    "bytes as feather": Container(lambda c: (".feather", b"ARROW1" + bytes(range(256))), INVALID),
    "broken JSON": Container(lambda c: (".jsonl", b'{"y": 1, "p": 0.5}\n{"y": '), INVALID),
    "deep JSON": Container(lambda c: (".jsonl", b"[" * 100_000), INVALID),
    "list of JSON": Container(lambda c: (".jsonl", b"[1, 2]\n[1, 2]\n"), INVALID),
    "JSON Lines": Container(frame_file(".jsonl"), same),
    "parquet": Container(frame_file(".parquet"), same),
    "feather": Container(frame_file(".feather"), same),
    "parquet, float32": Container(frame_file(".parquet", p="float32"), same),
    "parquet, float16": Container(frame_file(".parquet", p="float16"), same),
    "parquet, int8": Container(frame_file(".parquet", y="int8"), same),
    "parquet, bool": Container(frame_file(".parquet", y="bool"), ANY),
    "parquet, text": Container(frame_file(".parquet", p="str"), same),
    "parquet, categories": Container(frame_file(".parquet", p="category", y="category"), same),
    "1.0 as labels": Container(lambda c: file_of({**c, "y": [f"{v}.0" for v in c["y"]]}), same),
    **{
        f"label {text!r}": Container(with_cell(text, "y"), INVALID)
        for text in ("", "NA", "nan", "NULL", " ")
    },
    **{
        f"probability {text[:9]!r}": Container(with_cell(text), INVALID)
        for text in ("", " ", "NA", "nan", "NULL", "inf", "-inf", "1e400", "x", "0,5", "-0.1", "1.5", "0x1", "1_0",
                     "0.5.5", "50%", "1+0j", "None", "True", "9" * 5000, "'0.5'", "\u22120.5", "1/2")
    },
    "probability '+.5'": Container(with_cell("+.5"), with_cell("0.5")),
    "probability '5e-1'": Container(with_cell("5e-1"), with_cell("0.5")),
    "probability '-0.0'": Container(with_cell("-0.0"), with_cell("0.0")),
    "probability '5e-324'": Container(with_cell("5e-324"), ANY),
}  # fmt: skip
ROLES["file"] = FILES


def run_program(file, arguments, output=None):
    """Return what the program printed or wrote; raise its refusal as a ValueError."""
    from skcalib._cli.command_line import run_command
    from skcalib.report._sections import DRAWING

    suffix, content = file_of(file) if isinstance(file, dict) else file
    out, err = io.StringIO(), io.StringIO()
    DRAWING["n_resamples"] = 2
    with tempfile.TemporaryDirectory() as folder:
        path, written = Path(folder, f"table{suffix}"), Path(folder, "written.csv")
        path.write_bytes(content)
        places = {"FILE": str(path), "OUT": str(written)}
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = run_command([places.get(argument, argument) for argument in arguments])
            except SystemExit:  # argparse refuses an option
                status = 2
        if status:
            raise ValueError(err.getvalue())
        if "--json" in arguments:
            return json.loads(out.getvalue())
        return [float(line.rpartition(",")[2]) for line in written.read_text().splitlines()[1:]]


def command_line_cases(data):
    columns = {"y": [str(v) for v in data["labels"]], "p": [repr(float(v)) for v in data["binary"]]}
    names = frozenset(
        ("table", "csv", "parquet", "feather", "jsonl", "label", "proba", "column", "p", "y")
    )
    report = ["report", "FILE", "--label", "y", "--proba", "p", "--json"]
    recalibrate = [
        "recalibrate",
        "FILE",
        "--label",
        "y",
        "--proba",
        "p",
        "--apply",
        "FILE",
        "--output",
        "OUT",
        "--method",
        "temperature",
    ]
    for name, arguments in (("report", report), ("recalibrate", recalibrate)):
        yield Case(
            f"command_line.{name}",
            partial(run_program, arguments=arguments),
            {"file": (columns, "file")},
            names,
        )
    for number, option in enumerate(
        ["", "x", "-1", "nan", "1e400", "y", "p", "\0", "\ud800", "FILE", "--json"]
    ):
        for flag in (
            "--weight",
            "--groups",
            "--by",
            "--pos-label",
            "--sep",
            "--encoding",
            "--levels",
            "--seed",
            "--name",
            "--date",
        ):
            yield Case(
                f"command_line.report {flag} {number}",
                lambda x, flag=flag, option=option: run_program(columns, [*report, flag, option]),
                {"x": (None, "once")},
                names,
            )


# Calls


class HangError(BaseException):
    """A call took too long. It is no Exception, as the package could catch that."""


def to_numbers(result, depth=0):
    """The numbers in a result, in their order."""
    if (
        depth > 7
        or result is None
        or isinstance(result, str | bytes | type | np.random.RandomState)
    ):
        return []
    if isinstance(result, bool | int | float | np.number | np.bool_):
        is_huge = isinstance(result, int) and abs(result) >= 2**1023  # too large for a double
        return [np.inf if is_huge else float(result)]
    if type(result).__module__.startswith("torch"):
        result = result.detach().numpy()
    if hasattr(result, "__array__") and type(result).__module__.split(".")[0] != "skcalib":
        array = np.asarray(result)
        return array.astype(float).ravel().tolist() if array.dtype.kind in "biuf" else []
    if dataclasses.is_dataclass(result):
        result = [
            getattr(result, field.name)
            for field in dataclasses.fields(result)
            if field.name not in ("labels", "classes")
        ]
    if isinstance(result, Mapping):
        result = [value for key, value in result.items() if key not in ("labels", "classes")]
    if isinstance(result, list | tuple):
        return [number for entry in result for number in to_numbers(entry, depth + 1)]
    if type(result).__module__.startswith("skcalib"):
        return to_numbers(vars(result), depth + 1)
    return []


def run_case(case, arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return to_numbers(case.call(**arguments))


def are_equal(numbers, clean, tolerance):
    return len(numbers) == len(clean) and np.allclose(
        numbers, clean, tolerance, tolerance, equal_nan=True
    )


def names_argument(error, names):
    words = set(re.findall(r"\w+", str(error)))
    return bool(
        words
        & (
            names
            | {"X", "y", "forecast", "probabilities", "labels", "levels", "table", "multi_class"}
        )
    )


def is_own(error):
    """True if the package, or the checks of scikit-learn that it calls, raised the error."""
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    return bool(
        re.search(r"/skcalib/|/sklearn/utils/|/tests/fuzz.py", trace.tb_frame.f_code.co_filename)
    )


def where(error):
    trace = error.__traceback__
    places = []
    while trace:
        file = trace.tb_frame.f_code.co_filename
        places.append(f"{'/'.join(file.split('/')[-2:])}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " < ".join(places[:-4:-1])


# Roles of arguments that have their own rule, and the containers that are valid by it
FREE = {
    **dict.fromkeys(
        ("levels", "residuals", "thresholds"),
        ("a row less", "a row more", "1e308", "no column", "scalar", "infinite", "minus infinite",
         "one row", "no row"),
    ),
    "query": ("a row less", "a row more"),
    "location": ("a row less", "a row more"),
    "scale": ("scalar",),
    "lower": ("scalar",),
    "members": ("NaN", "object, NaN", "object, None", "object, NA", "object, NaT", "list, None",
                "list, NA", "Float64, NA", "pandas of arrow, NA", "polars, null", "arrow, null"),
}  # fmt: skip

# Findings that are left as they are: the call, and the reason
LEFT = {
    r"Recalibrated(Classifier|Regressor)|PredictProba": "scikit-learn and the user's model read X",
    r"^losses.*(array API|dask|lying|meta|StringDType)": "packages that losses do not promise",
    r"^losses.*target.*bool": "the clean call has an array of another package",
    r"array API$": "arrays without a length",
    r"boolean": "the classes of pandas' boolean are numbers",
    r"n_nodes|max_samples|sample . size": "numbers beyond all memory",
    r"frame, duplicate names": "the text of narwhals",
    r"^torch.*tensor, (meta|sparse)": "the words of PyTorch, which has no data to read",
    r"X.*Fraction": "features of fractions are categories",
    r"event.*void": "numpy refuses to compare them",
    r"from_estimator \| [X*]": "the user's model reads X",
    r"concatenate|color|metric_params": "the words of Python and of Matplotlib",
    r"DistributionMatchingLoss.__init__": "the words of PyTorch",
    r"by.*huge": "labels that are shown as numbers",
    r"true_proba.*(function|class)": "what a user passes is called, and its error shown",
}


class Fuzzer:
    """The cases of some rooms, their clean results, and the counts of calls."""

    def __init__(self, seed=0, only="", log=None, n_cases=None):
        self.seed, self.log = seed, log
        self.data = make_data(seed)
        self.random = random.Random(seed)
        self.counts, self.findings, self.n_calls, self.clean = {}, [], 0, {}
        self.failures = {}
        cases = [
            case
            for room in ROOMS
            if not only.startswith(ROOMS) or only.startswith(room)
            for case in globals()[f"{room}_cases"](self.data)
        ]
        if n_cases is not None:  # each case costs a clean call
            cases = self.random.sample(cases, n_cases)
        self.plan = [
            (case, argument, name, container)
            for case in cases
            if re.match(only, case.name)
            for argument, (value, role) in [*case.arguments.items(), ("*", (None, "all"))]
            for name, container in self.containers_of(case, value, role).items()
        ]
        self.random.shuffle(self.plan)

    def containers_of(self, case, value, role):
        if role == "once":
            return {"": Container(same, ANY)}
        n_arrays = count_arrays(case)
        if role == "all":
            containers = ALL if n_arrays > 1 else {}
        else:
            containers = ROLES.get(role, ROLES["numbers"])
        omitted = set(FREE.get(role, ()))
        if n_arrays == 1:
            omitted |= {"a row less", "a row more"}
        if case.name.startswith("streaming"):
            omitted |= {"no row"}  # an empty batch changes nothing
        if role == "probabilities" and value.ndim == 1:
            omitted |= {name for name in containers if name.startswith("frame")}
        return {name: kind for name, kind in containers.items() if name not in omitted}

    def result_of(self, case, argument="", content=same):
        """The numbers of a clean call; None if it is refused."""
        key = case.name, argument, id(content)
        if key not in self.clean:
            arguments = {k: copy_of(value) for k, (value, _) in case.arguments.items()}
            try:
                for name in arguments if argument == "*" else {argument} & set(arguments):
                    if isinstance(arguments[name], np.ndarray) or content is not same:
                        arguments[name] = content(arguments[name])
                self.clean[key] = run_case(case, arguments)
            except Exception as error:
                self.clean[key] = None
                self.failures[key[:2]] = f"{type(error).__name__}: {error}"
        return self.clean[key]

    def run(self, n_calls, seconds=np.inf):
        end = time.process_time() + seconds
        signal.signal(signal.SIGALRM, raise_hang)
        for case, argument, name, container in self.plan:
            if self.n_calls >= n_calls or time.process_time() > end:
                break
            if self.result_of(case) is None:
                continue  # it does not take this kind of data
            if self.n_calls % 200 == 0:
                self.write(case.name)
            self.note(f"{self.n_calls} {case.name} {argument} {name}")
            outcome, text = self.judge(case, argument, container)
            if outcome is None:
                continue
            self.n_calls += 1
            room = case.name.split(".")[0]
            if outcome in FLAGGED:
                call = f"{case.name} | {argument} | {name}"
                outcome = "left" if any(re.search(pattern, call) for pattern in LEFT) else outcome
            self.counts.setdefault(room, Counter())[outcome] += 1
            if outcome in FLAGGED:
                self.findings.append((outcome, case.name, argument, name, text))
        self.write("end")
        return self.counts, self.findings

    def judge(self, case, argument, container):
        """The outcome of a call, and a remark on it."""
        arguments = {k: copy_of(value) for k, (value, _) in case.arguments.items()}
        try:
            for name in arguments if argument == "*" else [argument]:
                if argument != "*" or isinstance(arguments[name], np.ndarray):
                    if callable(container.content):
                        container.content(arguments[name])
                    arguments[name] = container.make(arguments[name])
        except Exception:
            return None, ""  # the container cannot hold these values
        before = {
            k: v.tobytes()
            for k, v in arguments.items()
            if isinstance(v, np.ndarray) and v.dtype != object
        }
        state = np.geterr()
        error, numbers, is_loss = None, [], case.name.startswith(("losses", "torch"))
        is_checked = not case.name.startswith("losses")  # JAX traces functions without values
        signal.setitimer(signal.ITIMER_REAL, SECONDS_PER_CALL)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                numbers = to_numbers(case.call(**arguments))
            except HangError:
                return "hang", ""
            except Exception as raised:
                error = raised
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        for name, content in before.items():
            if arguments[name].tobytes() != content:
                return "silent", f"changed {name}"
        if np.geterr() != state:
            np.seterr(**state)
            return "leak", "error state"
        if error is not None:
            text = f"{type(error).__name__}: {str(error)[:300]} @ {where(error)}"
            is_refusal = isinstance(error, ValueError | TypeError | ImportError) and is_own(error)
            if not is_refusal or not names_argument(error, case.names | set(case.arguments)):
                return "foreign", text
        elif container.content == INVALID and is_checked:
            clean = self.result_of(case)
            return (
                "silent",
                f"accepted{' equal' if are_equal(numbers, clean, 1e-12) else ''} {numbers[:3]}",
            )
        for leak in caught:
            if issubclass(leak.category, FOREIGN_WARNINGS):
                return (
                    "leak",
                    f"{leak.category.__name__}: {leak.message} @ {leak.filename[-60:]}:{leak.lineno}",
                )
        if error is not None:
            return "refused", ""
        if container.content in (ANY, INVALID):
            return "result", ""
        clean = self.result_of(case, argument, container.content)
        if clean is None:
            return (
                "silent",
                f"{numbers[:3]}, where arrays are refused: {self.failures.get((case.name, argument))}"[
                    :400
                ],
            )
        tolerance = 1e-12
        if is_loss:
            tolerance = 1e-2 if "float16" in str(arguments.get(argument, "")) else 1e-5
        if are_equal(numbers, clean, tolerance):
            return "equal", ""
        return "silent", f"{numbers[:4]}, clean {clean[:4]}"

    def note(self, text):
        if self.log:
            if not hasattr(self, "running"):
                self.running = open(f"{self.log}.running", "w")  # noqa: SIM115
            self.running.seek(0)
            self.running.write(text.ljust(200) + "\n")
            self.running.flush()

    def write(self, running):
        if self.log:
            content = {
                "seed": self.seed, "calls": self.n_calls, "planned": len(self.plan), "running": running,
                "counts": self.counts, "findings": self.findings,
            }  # fmt: skip
            Path(f"{self.log}.new").write_text(json.dumps(content, indent=0, default=str))
            os.replace(f"{self.log}.new", self.log)


def count_arrays(case):
    values = [value for value, _ in case.arguments.values()]
    values += [*getattr(case.call, "args", ()), *getattr(case.call, "keywords", {}).values()]
    return sum(isinstance(value, np.ndarray) for value in values)


def copy_of(value):
    return value.copy() if isinstance(value, np.ndarray | dict | list) else value


def raise_hang(*_):
    raise HangError


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a regular expression of room.callable/problem")
    parser.add_argument("--log", default=None, help="the file of counts")
    parser.add_argument("--list", action="store_true", help="list the cases that run")
    options = parser.parse_args()
    fuzzer = Fuzzer(options.seed, options.only, options.log)
    if options.list:
        for case in dict.fromkeys(case.name for case, *_ in fuzzer.plan):
            case = next(c for c, *_ in fuzzer.plan if c.name == case)
            start = time.monotonic()
            result = fuzzer.result_of(case)
            print(
                case.name,
                "-" if result is None else len(result),
                round(time.monotonic() - start, 3),
                fuzzer.failures.get((case.name, ""), "")[:150],
            )
        return
    counts, findings = fuzzer.run(options.calls)
    for finding in findings:
        print(*finding)
    print(json.dumps({"calls": fuzzer.n_calls, "planned": len(fuzzer.plan), "counts": counts}))


if __name__ == "__main__":
    main()
