"""Edited tables with a right digest: they are refused by one error, or read as they are."""

import copy
import json
import random
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skcalib.metrics import smooth_calibration_error
from skcalib.streaming import CalibrationState
from skcalib.streaming._arrow import _DIGEST_KEY, _METADATA_KEY, _digest

pyarrow = pytest.importorskip("pyarrow")

RNG = np.random.default_rng(0)
PROBA = RNG.random(12)
MATRIX = RNG.dirichlet([1, 1, 1], 12)
LABEL = np.arange(12) % 3
OPTIONS = {"decimals": 3, "n_components": 2}
COUNTS = [[0.1, 0.5], [1, 3], [1.0, 3.5]]

TABLES = {
    "two classes": CalibrationState().update(LABEL > 1, PROBA),
    "weights": CalibrationState(**OPTIONS).update(LABEL > 1, PROBA, PROBA + 1, by=LABEL),
    "counts": CalibrationState.from_counts(
        ["b", "a"], *COUNTS[:2], weight=COUNTS[2], squared_weight=[1.0, 4.5], labels=["a", "b"]
    ),
    "three classes": CalibrationState(**OPTIONS).update(LABEL, MATRIX, by=LABEL // 2),
    "rounded": CalibrationState.from_counts(LABEL, MATRIX, LABEL + 1, resolution=0.1, **OPTIONS),
    "two columns": CalibrationState().update(LABEL > 1, PROBA, by={"a": LABEL, "b": PROBA > 0.5}),
    "no samples": CalibrationState([0, 1], **OPTIONS),
}
TABLES = {name: state.to_arrow() for name, state in TABLES.items()}

VALUES = (
    *(None, True, False, 0, 1, 2, -1, 10**9, 10**30, 0.5, -0.5, 1e-9, 1e308, np.nan, np.inf),
    *("x", "", "null", "<U1000000000", [], {}, [0], [[0]], [0, 1], {"a": 1}),
)


REFUSAL = re.compile("table is not a sound state: .*; write it again with to_arrow[.]", re.DOTALL)


def sign(table, text):
    """The table with other metadata, and the digest that fits them."""
    table = table.replace_schema_metadata({_METADATA_KEY: text, _DIGEST_KEY: b""})
    metadata = {_METADATA_KEY: text, _DIGEST_KEY: _digest(table, text)}
    return table.replace_schema_metadata(metadata)


def change_tree(tree, rng):
    """Change a value somewhere in metadata."""
    while True:
        key = rng.choice(range(len(tree)) if isinstance(tree, list) else list(tree))
        value = tree[key]
        if not isinstance(value, list | dict) or not value or rng.random() < 0.2:
            break
        tree = value
    how = rng.randrange(5)
    if how == 0:
        del tree[key]
    elif how == 1 and isinstance(value, int | float):
        tree[key] = value * rng.choice([0.5, 1 + 1e-3, 2, -1])
    elif how == 2 and isinstance(value, int | float):
        tree[key] = value + rng.choice([-1, 1])
    elif how == 3 and isinstance(tree, list):
        tree.insert(key, copy.deepcopy(rng.choice(tree)))
    else:
        tree[key] = copy.deepcopy(rng.choice(VALUES))


def change_column(table, rng):
    """The table with other values in a column, or with other rows."""
    n = table.num_rows
    if n == 0 or rng.random() < 0.1:
        return table.take(rng.choices(range(n), k=rng.randrange(n + 2)) if n else [])
    name = rng.choice(table.column_names)
    values, row, how = table[name].to_pylist(), rng.randrange(n), rng.randrange(6)
    kind = None if how == 0 else table[name].type
    if how == 0:  # perhaps another type
        values[row] = rng.choice([None, True, 0, 1, 2, -1, 0.5, 1e308, np.nan, np.inf])
    elif how == 1:
        rng.shuffle(values)
    elif how == 2:
        kind, values = rng.choice([pyarrow.float32(), pyarrow.int8(), pyarrow.string()]), values
    elif how == 3:  # other numbers of the same bytes
        kind = None
        values = table[name].to_numpy()
        if values.dtype.kind in "if":
            values = values.view(np.int64 if values.dtype.kind == "f" else np.float64)
    elif isinstance(values[row], int | float):
        values[row] = values[row] * rng.choice([-1, 2, 0, 1]) + rng.choice([0, 1])
    else:
        values[row] = rng.choice(values)
    return table.set_column(table.column_names.index(name), name, pyarrow.array(values, kind))


def change(table, rng):
    """The table with an edit and the right digest, or None if Arrow refuses it."""
    text = table.schema.metadata[_METADATA_KEY]
    if rng.random() < 0.4:
        try:
            return sign(change_column(table, rng), text)
        except (OverflowError, pyarrow.ArrowException):
            return None
    saved = json.loads(text)
    change_tree(saved, rng)
    return sign(table, json.dumps(saved).encode())


def problems_of(state):
    """The two-class states in a state, by the problem and class that name them in a table."""
    if state.classes is None or state.is_binary:
        return {("binary", 0): state}
    states = {"top-label": state.top_label(), "classwise": state.classwise()}
    return {(name, k): s for name in states for k, s in enumerate(states[name].values())}


def check_content(table, state):
    """Check that the state has the numbers of the rows, and computes the same error as they."""
    assert state.to_arrow().to_pydict() == table.to_pydict()
    assert state.to_arrow().schema.metadata == table.schema.metadata
    rows = table.to_pylist()
    n_rows = 0
    for key, part in {None: state, **state.subgroups}.items():
        subgroup = None if part is state else json.dumps(key)
        for (name, k), problem in problems_of(part).items():
            where = {"subgroup": subgroup, "problem": name, "class": k}
            cells = [row for row in rows if where.items() <= row.items()]
            n_rows += len(cells)
            assert problem.n_samples == sum(cell["count"] for cell in cells)
            if cells and k == 0:
                names = ("event", "probability", "weight")
                event, proba, weight = ([cell[name] for cell in cells] for name in names)
                assert_array_equal(problem.to_arrays()[0], problem.classes[np.array(event, int)])
                expected = smooth_calibration_error(event, proba, sample_weight=weight)
                value, bound = problem.evaluate("smooth_calibration_error")
                assert value == pytest.approx(expected, abs=1e-12)
                assert bound >= 0
    assert n_rows == len(rows)


def count_refused(table, n_edits, seed):
    """The number of edited tables that are refused; check the content of the others."""
    rng, n_refused = random.Random(seed), 0
    for _ in range(n_edits):
        edited = change(table, rng)
        if edited is None:
            continue
        try:
            state = CalibrationState.from_arrow(edited)
        except ValueError as error:
            if not REFUSAL.fullmatch(str(error)):
                raise
            n_refused += 1
        else:
            check_content(edited, state)
    return n_refused


@pytest.mark.parametrize("name", TABLES)
def test_edited_tables_are_refused_or_read_as_they_are(name):
    assert count_refused(TABLES[name], 12, 0) >= 4


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("states", 0, "numbers", 0), 11, "sum of count must lie between 11 and 11, found 12"),
        (("states", 0, "numbers", 1), 13.0, "sum of weight must lie between 13 and 13, found 12"),
        (("states", 0, "numbers", 2), np.nan, "largest weight must lie between"),
        (
            ("states", 0, "tallies", "binary", "moves", 0),
            [-0.1],
            "sum of moves must lie between",
        ),
        (("states", 0, "tallies", "binary", "moves", 1), [np.nan], "sum of moves must lie between"),
        (("states", 0, "tallies", "binary", "n_rows"), "x", "metadata must have the form .*Type"),
        (("states", 0, "tallies"), {"top-label": {}}, "metadata must have the form .*KeyError"),
        (
            ("states", 0, "type"),
            "<U500000000",
            "classes must take at most 64 MiB, found type <U",
        ),
        (("states", 0, "classes"), [0, 0], "number of classes must lie between 2 and 2, found 1"),
        (("columns",), ["a"], "number of columns must lie between 0 and 0, found 1"),
    ],
)
def test_the_refusal_names_the_rule(path, value, message):
    table = TABLES["two classes"]
    saved = tree = json.loads(table.schema.metadata[_METADATA_KEY])
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = value
    with pytest.raises(ValueError, match=f"not a sound state: {message}.*write it again"):
        CalibrationState.from_arrow(sign(table, json.dumps(saved).encode()))
