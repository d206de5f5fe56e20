"""States as Arrow tables: rows of counts, metadata, and a digest of both."""

import hashlib
import json
from typing import Any

import numpy as np

from .._inputs.arrays import import_package
from ._tally import Sums, Tally

_METADATA_KEY, _DIGEST_KEY = b"skcalib.CalibrationState", b"skcalib.digest"

_FORMAT_VERSION = 2

_NUMBER_COLUMNS = ("class", "probability", "event", "count", "weight", "squared_weight")
_TABLE_COLUMNS = ("subgroup", "problem", *_NUMBER_COLUMNS)


def to_table(state: Any) -> Any:
    """The table of a state and its subgroups, with a row for each key."""
    if state._multi_class is not None:
        raise ValueError(
            "to_arrow needs a state without multi_class, as a table cannot hold a lens; found "
            f"{state._multi_class!r}. Pickle the state."
        )
    pyarrow = import_package("pyarrow", "to_arrow()", '"skcalib[arrow]"')
    metadata, tables = [], []
    for label, subgroup_state in ((None, state), *state.subgroups.items()):
        subgroup = None if subgroup_state is state else _to_json(label)
        metadata.append(_make_metadata(subgroup_state) | {"subgroup": subgroup})
        tallies = subgroup_state._tallies or {"binary": subgroup_state._tally}
        tables += [_tally_table(subgroup, name, tally) for name, tally in tallies.items()]
    table = pyarrow.concat_tables(tables).combine_chunks()
    text = _to_json(
        {"version": _FORMAT_VERSION, "columns": state._columns, "states": metadata}
    ).encode()
    return table.replace_schema_metadata({_METADATA_KEY: text, _DIGEST_KEY: _digest(table, text)})


def from_table(cls: type, table: Any) -> Any:
    """The state that a table holds."""
    names, metadata = _parse_table(table)
    columns = [table[name].to_numpy() for name in _NUMBER_COLUMNS]
    states, stop = {}, 0
    for entry in metadata:
        state = states[entry["subgroup"]] = cls(entry["labels"], **entry["options"])
        if entry["classes"] is not None:
            state._initialize(np.array(entry["classes"], dtype=entry["type"]))
        state.n_samples, state.total_weight, *state._weights = entry["numbers"]
        for name, tally_entry in entry["tallies"].items():
            tally, start, stop = state._tallies[name], stop, stop + tally_entry["n_rows"]
            problem, proba, event, count, *weight = (values[start:stop] for values in columns)
            cell = np.searchsorted(tally.points[:-1], proba)
            key = 2 * (len(tally.points) * problem + cell) + event
            tally.sums = Sums(key, count, np.stack(weight) if tally_entry["is_weighted"] else None)
            tally.moves, tally.max_moves, tally.is_off_grid = map(np.array, tally_entry["moves"])
        if entry["sums"]:
            state._sums.gap, state._sums.total = map(np.array, entry["sums"]["arrays"])
            state._sums.is_rounded = entry["sums"]["moved"]
    full_state = states.pop(None)
    full_state._columns = _to_label(names)
    full_state.subgroups = {_to_label(json.loads(text)): state for text, state in states.items()}
    return full_state


def _tally_table(subgroup: str | None, name: str, tally: Tally) -> Any:
    """The table of one tally, with a row for each key."""
    import pyarrow

    cell, event = np.divmod(tally.sums.key, 2)
    problem, cell = np.divmod(cell, len(tally.points))
    n = len(cell)
    values = (problem, tally.points[cell], event == 1, tally.sums.samples, *tally.sums.weights)
    texts = [pyarrow.array([text] * n, pyarrow.string()) for text in (subgroup, name)]
    return pyarrow.table([*texts, *values], names=_TABLE_COLUMNS)


def _make_metadata(state: Any) -> dict[str, Any]:
    """Everything that a state holds besides the rows of its table, as a dictionary for JSON."""
    sums = state._sums
    return {
        "labels": None if state._labels is None else np.asarray(state._labels),
        "options": state._options,
        "classes": state.classes,
        "type": None if state.classes is None else state.classes.dtype.str,
        "numbers": [state.n_samples, state.total_weight, *state._weights],
        "tallies": {
            name: {
                "n_rows": len(tally.sums.key),
                "is_weighted": tally.sums.weight is not None,
                "moves": [tally.moves, tally.max_moves, tally.is_off_grid],
            }
            for name, tally in state._tallies.items()
        },
        "sums": sums and {"arrays": [sums.gap, sums.total], "moved": sums.is_rounded},
    }


def _digest(table: Any, text: bytes) -> bytes:
    """The SHA-256 of the columns and the metadata, in hexadecimal digits."""
    digest = hashlib.sha256(text)
    for name in _TABLE_COLUMNS:
        values = table[name].to_numpy()
        digest.update(_to_json(values).encode() if values.dtype.kind == "O" else values.tobytes())
    return digest.hexdigest().encode()


def _parse_table(table: Any) -> tuple[list[Any], list[dict[str, Any]]]:
    """Columns of subgroups and metadata of all states; refuse a table that was changed."""
    metadata = getattr(getattr(table, "schema", None), "metadata", None) or {}
    text = metadata.get(_METADATA_KEY, b"")
    if not text:
        description = f"{type(table).__name__} without the metadata of its schema"
    elif not set(_TABLE_COLUMNS) <= set(table.column_names):
        description = f"the columns {table.column_names}"
    elif _digest(table, text) != metadata.get(_DIGEST_KEY):
        description = f"{table.num_rows} row(s) with another digest than that in the metadata"
    else:
        saved = json.loads(text)
        if saved["version"] == _FORMAT_VERSION:
            return saved["columns"], saved["states"]
        description = f"version {saved['version']} of it, which another version of skcalib reads"
    raise ValueError(
        f"table must be what CalibrationState.to_arrow made, unchanged; found {description}. Read "
        "the whole file, and of one state: merge states that were read, not their tables. Counts "
        "of your own enter by from_counts."
    )


def _to_json(value: object) -> str:
    return json.dumps(value, default=_to_python)


def _to_python(value: object) -> Any:
    """Return a number or an array of NumPy as one or a list of Python; refuse other objects."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise ValueError(
        "Labels of classes and subgroups must be strings, numbers, True, False or None in a "
        f"table; found {value!r} of type {type(value).__name__}. Turn them into strings before "
        "update."
    )


def _to_label(value: object) -> Any:
    """Return a label read from JSON, in which tuples are lists."""
    return tuple(map(_to_label, value)) if isinstance(value, list) else value
