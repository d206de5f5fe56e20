"""States as Arrow tables: rows of counts, metadata, and a digest of both."""

import hashlib
import json
from typing import Any

import numpy as np

from .._inputs.arrays import import_package
from ._checks import check_sound
from ._tally import Sums, Tally

_METADATA_KEY, _DIGEST_KEY = b"skcalib.CalibrationState", b"skcalib.digest"

_FORMAT_VERSION = 2

_NUMBER_COLUMNS = ("class", "probability", "event", "count", "weight", "squared_weight")
_NUMBER_TYPES = ["int64", "float64", "bool", "int64", "float64", "float64"]
_TABLE_COLUMNS = ("subgroup", "problem", *_NUMBER_COLUMNS)

_MAX_CLASS_BYTES = 2**26  # size of the array of all classes


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
    """The state that a table holds; refuse numbers that no samples can have."""
    text = _check_digest(table)
    try:
        columns = {name: table[name].to_numpy() for name in _TABLE_COLUMNS}
        state = _read_state(cls, [columns[name] for name in _NUMBER_COLUMNS], json.loads(text))
        check_sound(state)
        written = to_table(state)
        changed = [x for x in columns if _to_bytes(columns[x]) != _to_bytes(written[x].to_numpy())]
        if changed or written.schema.metadata[_METADATA_KEY] != text:
            changed = changed or ["metadata"]
            raise ValueError(f"contents must be as to_arrow writes them, found others in {changed}")
    except ValueError as error:
        reason = str(error).rstrip(".")
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError) as error:
        reason = f"metadata must have the form that to_arrow writes, found {error!r:.80}"
    else:
        return state
    raise ValueError(f"table is not a sound state: {reason}; write it again with to_arrow.")


def _read_state(cls: type, columns: list[np.ndarray], saved: dict[str, Any]) -> Any:
    """The state of metadata and columns of numbers, which must have the types of a state."""
    if saved["version"] != _FORMAT_VERSION:
        raise ValueError(f"version must be {_FORMAT_VERSION}, found {saved['version']!r:.80}")
    if (types := [values.dtype.name for values in columns]) != _NUMBER_TYPES:
        raise ValueError(f"types of numbers must be {_NUMBER_TYPES}, found {types}")
    states, stop, options = {}, 0, saved["states"][0]["options"]
    for entry in saved["states"]:
        classes, sums = entry["classes"], entry["sums"]
        if classes and len(classes) > 2:
            options = options | {"n_components": len(sums["arrays"][0][0]) // 2 if sums else 0}
        labels = entry["labels"] and (classes or entry["labels"])
        state = states[entry["subgroup"]] = cls(labels, **options)
        if classes != saved["states"][0]["classes"]:
            raise ValueError(f"subgroups must have the classes of the whole, found {classes!r:.80}")
        if classes is not None:
            if len(classes) * np.dtype(entry["type"]).itemsize > _MAX_CLASS_BYTES:
                raise ValueError(f"classes must take at most 64 MiB, found type {entry['type']}")
            state._initialize(np.array(classes, dtype=entry["type"]))
        if entry["numbers"][0]:
            n, state.total_weight, *state._weights = map(float, entry["numbers"])
            state.n_samples = int(n)
        for name, tally_entry in entry["tallies"].items():
            tally, start, stop = state._tallies[name], stop, stop + tally_entry["n_rows"]
            problem, proba, event, count, *weight = (values[start:stop] for values in columns)
            cell = np.searchsorted(tally.points[:-1], proba)
            key = 2 * (len(tally.points) * problem + cell) + event
            tally.sums = Sums(key, count, np.stack(weight) if tally_entry["is_weighted"] else None)
            tally.moves[:], tally.max_moves[:], tally.is_off_grid[:] = tally_entry["moves"]
        if sums:
            state._sums.gap[:], state._sums.total[:] = sums["arrays"]
            state._sums.is_rounded = bool(sums["moved"])
    full_state = states.pop(None)
    full_state._columns = tuple(map(_to_label, saved["columns"]))
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
        digest.update(_to_bytes(table[name].to_numpy()))
    return digest.hexdigest().encode()


def _to_bytes(values: np.ndarray) -> bytes:
    return _to_json(values).encode() if values.dtype.kind == "O" else values.tobytes()


def _check_digest(table: Any) -> bytes:
    """The metadata of all states, as JSON; refuse a table that was changed."""
    metadata = getattr(getattr(table, "schema", None), "metadata", None) or {}
    text = metadata.get(_METADATA_KEY, b"")
    if not text:
        description = f"{type(table).__name__} without the metadata of its schema"
    elif any(table.column_names.count(name) != 1 for name in _TABLE_COLUMNS):
        description = f"the columns {table.column_names}"
    elif _digest(table, text) != metadata.get(_DIGEST_KEY):
        description = f"{table.num_rows} row(s) with another digest than that in the metadata"
    else:
        return text
    raise ValueError(
        f"table must be what CalibrationState.to_arrow made, unchanged; found {description}. Read "
        "the whole file of a single state: merge states, not their tables. For counts of your own "
        "use from_counts."
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
