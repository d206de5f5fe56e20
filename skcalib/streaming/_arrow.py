"""States as Arrow tables."""

import json
from typing import Any

import numpy as np

from .._numerics.grid import grid
from ._problems import Problems
from ._tally import Sums, Tally, merged

_KEY = b"skcalib.CalibrationState"

_COLUMNS = (
    "subgroup",
    "problem",
    "class",
    "probability",
    "event",
    "count",
    "weight",
    "squared_weight",
)


def to_table(state: Any) -> Any:
    """The table of a state and its subgroups, with a row for each key."""
    import pyarrow

    states = [(None, state), *((_text(label), one) for label, one in state.subgroups.items())]
    parts = [
        _columns(label, name, problems)
        for label, one in states
        for name, problems in one._problems.items()
    ]
    parts = parts or [_columns(None, "binary", Problems(1, state._options["decimals"]))]
    columns = {name: pyarrow.concat_arrays([part[name] for part in parts]) for name in parts[0]}
    kept = [{"subgroup": label} | _others(one) for label, one in states]
    return pyarrow.table(columns).replace_schema_metadata({_KEY: _text(kept)})


def from_table(cls: type, table: Any) -> Any:
    """The state that a table holds."""
    metadata = getattr(getattr(table, "schema", None), "metadata", None) or {}
    if _KEY not in metadata:
        raise ValueError(
            "table must be one that CalibrationState.to_arrow made, whose schema has metadata; "
            f"found {type(table).__name__} without it. Counts of your own enter by from_counts."
        )
    if missing := sorted(set(_COLUMNS) - set(table.column_names)):
        raise ValueError(
            f"table must have all columns that CalibrationState.to_arrow made; found none called "
            f"{missing}. Read all columns of the file."
        )
    columns = {name: table[name].to_numpy() for name in _COLUMNS}
    every = json.loads(metadata[_KEY])
    place = {kept["subgroup"]: k for k, kept in enumerate(every)}
    code = np.array([place.get(text, -1) for text in table["subgroup"].to_pylist()], dtype=np.intp)
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(len(every) + 1))
    states = {}
    for kept, start, stop in zip(every, bounds, bounds[1:], strict=False):
        state = cls(kept["labels"], **kept["options"])
        own = order[start:stop]
        _restore(state, kept, {name: values[own] for name, values in columns.items()})
        states[kept["subgroup"]] = state
    whole = states.pop(None)
    whole.subgroups = {_label(json.loads(text)): state for text, state in states.items()}
    return whole


def _columns(subgroup: str | None, name: str, problems: Problems) -> dict[str, Any]:
    import pyarrow

    sums = problems.tally.sums
    cell, event = np.divmod(sums.key, 2)
    problem, cell = np.divmod(cell, len(grid(problems.decimals)))
    weight, square = sums.weights
    n = len(sums.key)
    return {
        "subgroup": pyarrow.array([subgroup] * n, pyarrow.string()),
        "problem": pyarrow.array([name] * n, pyarrow.string()),
        "class": pyarrow.array(problem),
        "probability": pyarrow.array(grid(problems.decimals)[cell]),
        "event": pyarrow.array(event == 1),
        "count": pyarrow.array(sums.samples),
        "weight": pyarrow.array(weight),
        "squared_weight": pyarrow.array(square),
    }


def _others(state: Any) -> dict[str, Any]:
    """What a state holds besides the rows of its table, for the metadata."""
    labels = None if state._labels is None else np.asarray(state._labels).tolist()
    classes = None if state.classes is None else state.classes.tolist()
    sums = state._sums
    return {
        "labels": labels,
        "options": state._options,
        "classes": classes,
        "type": None if classes is None else state.classes.dtype.str,
        "n_samples": state.n_samples,
        "total_weight": state.total_weight,
        "extremes": state._extremes,
        "problems": {
            name: {
                "moves": problems.moves.tolist(),
                "largest_moves": problems.largest_moves.tolist(),
                "is_off_grid": problems.is_off_grid.tolist(),
                "is_weighted": problems.tally.sums.weight is not None,
            }
            for name, problems in state._problems.items()
        },
        "sums": sums
        and {
            "gap": sums.gap.tolist(),
            "own": sums.own,
            "total": sums.total.tolist(),
            "moved": sums.moved,
        },
    }


def _restore(state: Any, kept: dict[str, Any], columns: dict[str, np.ndarray]) -> None:
    if kept["classes"] is None:
        return
    classes = np.empty(len(kept["classes"]), dtype=object)
    classes[:] = kept["classes"]
    state._begin(classes.astype(np.dtype(kept["type"])))
    state.n_samples, state.total_weight = kept["n_samples"], kept["total_weight"]
    state._extremes = tuple(kept["extremes"])
    points = grid(state._options["decimals"])
    for name, problems in state._problems.items():
        known = kept["problems"][name]
        own = np.flatnonzero(columns["problem"] == name)
        cell = np.searchsorted(points[:-1], columns["probability"][own])
        _check_unchanged(state, name, columns["count"][own], columns["probability"][own], cell)
        key = 2 * (len(points) * columns["class"][own] + cell) + columns["event"][own]
        weight = np.stack([columns["weight"][own], columns["squared_weight"][own]])
        sums = Sums(key, columns["count"][own], weight if known["is_weighted"] else None)
        problems.tally = Tally(merged([sums]))
        problems.moves = np.array(known["moves"])
        problems.largest_moves = np.array(known["largest_moves"])
        problems.is_off_grid = np.array(known["is_off_grid"])
    if kept["sums"]:
        state._sums.gap = np.array(kept["sums"]["gap"])
        state._sums.own = kept["sums"]["own"]
        state._sums.total = np.array(kept["sums"]["total"])
        state._sums.moved = kept["sums"]["moved"]


def _check_unchanged(
    state: Any, name: str, count: np.ndarray, proba: np.ndarray, cell: np.ndarray
) -> None:
    """The rows must be those that the metadata are of."""
    n = state.n_samples * (len(state.classes) if name == "classwise" else 1)
    is_grid = np.array_equal(grid(state._options["decimals"])[cell], proba)
    if not is_grid or (count < 1).any() or count.sum() != n:
        raise ValueError(
            f"table must hold the rows that CalibrationState.to_arrow made, which count {n} "
            f"samples of the problem {name!r}; found {count.sum()}, or others. Read the whole "
            "file, and of one state: merge states that were read, not their tables."
        )


def _text(value: Any) -> str:
    """JSON of the label of a subgroup, or of all that a state holds besides."""
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    """Numbers of NumPy as those of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise ValueError(
        "Labels of classes and subgroups must be strings, numbers, True, False or None in a "
        f"table; found {value!r} of type {type(value).__name__}. Turn them into strings before "
        "update."
    )


def _label(value: Any) -> Any:
    return tuple(map(_label, value)) if isinstance(value, list) else value
