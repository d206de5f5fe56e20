"""Checks of counts, of weights, and of states before they are read."""

import pickle
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from .._inputs.arrays import ArrayLike, check_numbers, format_values
from .._inputs.by import Subgroups, check_distinct_keys
from ._tally import SINGLE_RTOL, WEIGHT_RTOL, RowWeights, merge_tables

# Sums of larger counts are not exact in double precision.
_MAX_COUNT = 2**53

# Squares of larger weights, or of their sums, may overflow; those of smaller ones underflow.
_MAX_WEIGHT, _MIN_WEIGHT = 1e130, 1e-130

# Sums of the same weights in another order differ by at most this fraction.
_SUM_RTOL = 1e-6


def are_empty(*values: Any) -> bool:
    """True if no argument of a batch holds a row."""
    return all(
        column.shape[:1] == (0,)
        if hasattr(type(column), "shape")
        else hasattr(type(column), "__len__") and not len(column)
        for column in values
    )


def check_sample_counts(count: ArrayLike, n: int) -> np.ndarray:
    """Return the numbers of samples of n rows; refuse negative ones, fractions, and zeros only."""
    counts = check_numbers(count, "count", ndim=1, length=n, rows="one number for each row")
    if (counts % 1 != 0).any() or (counts < 0).any() or not counts.any():
        raise ValueError(
            "count must hold the number of samples of each row, whole numbers that are not "
            f"negative and not all 0; found numbers from {counts.min():g} to {counts.max():g}. "
            "Pass sums of weights as weight and squared_weight."
        )
    if counts.sum() >= _MAX_COUNT:
        raise ValueError(
            f"count must have a sum below 2^53, as larger sums are not exact; found "
            f"{counts.sum():.3g}. Count less at a time."
        )
    return counts.astype(np.int64)


def check_weights_can_be_squared(weight: np.ndarray, name: str) -> None:
    """Refuse weights whose squares, of which a state keeps sums, overflow or underflow."""
    smallest, largest = weight.min(), weight.max()
    if not _MIN_WEIGHT <= smallest <= largest <= _MAX_WEIGHT:
        outlier = largest if largest > _MAX_WEIGHT else smallest
        raise ValueError(
            f"{name} must lie between {_MIN_WEIGHT:g} and {_MAX_WEIGHT:g} for a "
            f"CalibrationState, which sums squares of weights; found {outlier:.3g}. Divide all "
            "weights by one number, and leave out rows of weight 0."
        )


def check_sums(
    weight: ArrayLike | None, squared_weight: ArrayLike | None, counts: np.ndarray
) -> np.ndarray | None:
    """Return the sums of weights and of squared weights, (2, n), or None if neither is passed."""
    if weight is None and squared_weight is None:
        return None
    if weight is None or squared_weight is None:
        missing, present = ("weight", "squared_weight")[:: 1 if weight is None else -1]
        raise ValueError(
            f"weight and squared_weight must be given together; found {present} without {missing}. "
            "In SQL they are sum(w) and sum(w * w)."
        )
    rules: dict[str, Any] = {"ndim": 1, "length": len(counts), "rows": "one sum for each row"}
    both = {"weight": weight, "squared_weight": squared_weight}
    sums = np.stack([check_numbers(x, name, finite=False, **rules) for name, x in both.items()])
    mass, square = sums[:, counts > 0]
    check_weights_can_be_squared(mass, "weight")
    least, most = mass**2 / counts[counts > 0], mass**2
    if not ((square >= least * (1 - WEIGHT_RTOL)) & (square <= most * (1 + WEIGHT_RTOL))).all():
        raise ValueError(
            "squared_weight must be the sum of the squared weights of a row, which lies between "
            "weight² / count and weight²; found a value outside. In SQL it is sum(w * w)."
        )
    return sums


def check_not_empty(state: Any) -> None:
    """Refuse a state without samples."""
    if state.n_samples == 0:
        raise ValueError("The state must hold samples; found none. Call update first.")


def check_multiclass(state: Any) -> None:
    """Refuse two classes: only more of them have a problem of two classes for each."""
    check_not_empty(state)
    if state._is_multilabel:
        raise ValueError(
            "The state must be of classes that exclude each other; found one of Multilabel(), "
            "which counts each label alone. Use evaluate with multi_class=Multilabel()."
        )
    if state.is_binary:
        raise ValueError(
            "The state must have more than two classes, each of which is then a problem of two; "
            f"found {state.classes.tolist()}. Use the state itself."
        )


def is_same_lens(first: object, second: object) -> bool:
    """True if lenses are equal, or have the same pickle, as copies on other machines have."""
    with suppress(ValueError):  # of arrays within
        if first == second:
            return True
    with suppress(AttributeError, TypeError, pickle.PicklingError):  # of local classes
        return pickle.dumps(first) == pickle.dumps(second)
    return False


def check_same_problems(state: Any, problems: list[tuple[Any, float]]) -> None:
    """Refuse a lens that yields other problems for other batches."""
    before, now = ([name for name, _ in each] for each in (state._problems, problems))
    if before != now:
        raise ValueError(
            "multi_class must yield the same problems for all updates; found "
            f"{before!r:.100} and {now!r:.100}. Yield problems without events, too."
        )


def check_by_as_before(state: Any, subgroups: Subgroups | None) -> None:
    """Refuse subgroups in some updates only, of other columns, or that Python mixes up."""
    if subgroups is not None:
        _check_subgroups(state, subgroups.names, subgroups.labels)
    if state.n_samples and (subgroups is None) == bool(state.subgroups):
        before, now = ("with", "without") if state.subgroups else ("without", "with")
        raise ValueError(
            f"by must be given in all updates or in none; found an update {now} it after one "
            f"{before} it. Keep a second state for those without subgroups."
        )


def _check_subgroups(state: Any, columns: tuple, labels: Iterable[Any]) -> None:
    """Refuse subgroups of other columns than those of a state, and True beside 1."""
    if state._columns not in ((), columns):
        raise ValueError(
            "by must have the same columns, in the same order, in all updates and in states that "
            f"are merged; found {format_values(state._columns)} and {format_values(columns)}. Pass "
            "a dictionary of columns by name, or keep a state for each."
        )
    check_distinct_keys([*state.subgroups, *labels])


def check_mergeable(state: Any, other: Any) -> None:
    """Refuse to merge states of other arguments, classes, or with and without subgroups."""
    if not isinstance(other, type(state)):
        raise TypeError(
            f"other must be a CalibrationState; found {type(other).__name__}. Use update for data."
        )
    for name, value in state._options.items():
        if other._options[name] != value:
            raise ValueError(
                f"States that are merged must have the same {name}; found {value!r} and "
                f"{other._options[name]!r}. Make both with the same arguments."
            )
    if not is_same_lens(state._multi_class, other._multi_class):
        raise ValueError(
            f"States that are merged must have the same multi_class; found {state._multi_class!r} "
            f"and {other._multi_class!r}. Make both with the same arguments."
        )
    first, second = (s._labels if s.classes is None else s.classes for s in (state, other))
    if first is not None and second is not None and not np.array_equal(first, second):
        raise ValueError(
            "States that are merged must have the same classes; found "
            f"{format_values(np.asarray(first))} and {format_values(np.asarray(second))}. Pass "
            "labels to both."
        )
    have_samples = state.n_samples > 0 and other.n_samples > 0
    if have_samples and bool(state.subgroups) != bool(other.subgroups):
        raise ValueError(
            "States that are merged must both have subgroups, or neither; found one with and one "
            "without. Pass by to the updates of both."
        )
    if other.subgroups:
        _check_subgroups(state, other._columns, other.subgroups)
    if state.n_samples + other.n_samples >= _MAX_COUNT:
        raise ValueError(
            "States that are merged must hold fewer than 2^53 samples together; found "
            f"{state.n_samples + other.n_samples:,}. Keep them apart."
        )


def check_single_weights(state: Any, measure: str) -> None:
    """Refuse unequal weights: a state keeps sums, not the weight of each sample."""
    least, largest = state._weights
    if largest > least * (1 + WEIGHT_RTOL):
        raise ValueError(
            f"{measure} need equal weights in all updates, as single weights are not kept; found "
            f"some of {least:.10g} or less and some of {largest:.10g} or more. Update a state "
            "without weights, or keep a part of the samples themselves."
        )


def check_can_be_tested(state: Any) -> None:
    """Refuse predictions off the grid, from whose points a test draws labels, and more classes."""
    check_not_empty(state)
    if not state.is_binary:
        raise ValueError(
            "A test of a state needs two classes, as joint probabilities of more are not kept; "
            f"found {len(state.classes)} classes. Test state.confidence(), or one of "
            "state.classwise() and state.top_label()."
        )
    check_single_weights(state, "Tests of a state")
    if state._tally.is_off_grid.any():
        raise ValueError(
            "A test of a state needs predictions on its grid, from which it draws labels; found "
            f"some that are up to {state.max_rounding:.2g} away from it. Round the predictions "
            f"where they are made, as numpy.round(p, {state._options['decimals']}) does, and use "
            "and test the rounded ones, or test a sample of the rows."
        )


@np.errstate(all="ignore")  # a number that overflows or is NaN lies in no range
def check_sound(state: Any) -> None:
    """Refuse a state that was read if no samples can have its numbers."""
    for each in (state, *state.subgroups.values()):
        for name, *numbers in _iter_ranges(each):
            values, low, high = np.broadcast_arrays(*numbers)
            slack = 1 + _SUM_RTOL * (values.dtype.kind == "f")
            is_inside = (values * slack >= low) & (values <= high * slack)
            if not is_inside.all():
                value, low, high = (x.flat[np.argmin(is_inside)] for x in (values, low, high))
                raise ValueError(f"{name} must lie between {low:g} and {high:g}, found {value:g}")


def _iter_ranges(state: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the name of each number of a state, its value, and its least and largest valid values.

    Numbers in the earlier ranges are small enough to compute the later ones.
    """
    n, total, subgroups = state.n_samples, state.total_weight, state.subgroups.values()
    least, largest = state._weights if n else (0, _MIN_WEIGHT)
    yield "number of columns", bool(state._columns), bool(subgroups), bool(subgroups)
    classes = [0, 1] if state.classes is None else state.classes.tolist()
    yield "number of classes", len(set(classes)), max(len(classes), 2), len(classes)
    yield "n_samples", n, 0, _MAX_COUNT - 1
    yield "largest weight", largest, max(least, _MIN_WEIGHT), _MAX_WEIGHT
    yield "least weight", largest + least, largest, 2 * largest
    for name, tally in (state._tallies or {"binary": state._tally}).items():
        (key, count, sums), (weight, square) = tally.sums, tally.sums.weights
        problem, n_problems = key // (2 * len(tally.points)), len(tally.moves)
        yield "class", problem, 0, n_problems - 1
        yield "step from row to row", np.diff(key), 1, np.inf
        yield "count", count, 1, n
        yield "weight", weight, np.maximum(count * least, _MIN_WEIGHT), count * largest
        yield "squared_weight", square, weight**2 / count, weight**2
        ends = np.array(RowWeights(count, sums).weights if n else (least, largest))
        yield "weight of a sample", largest + ends, largest + least, 2 * largest
        counts, mass = (np.bincount(problem, x, n_problems) for x in (count, weight))
        move = tally.max_moves
        yield "sum of moves", tally.moves, np.minimum(move, 1) * least, move * mass
        yield "largest move", move, 0, np.where(tally.is_off_grid, np.inf, SINGLE_RTOL)
        if subgroups:
            merged = merge_tables([each._tallies[name].sums for each in subgroups])
            yield "row of subgroups", merged[:2], tally.sums[:2], tally.sums[:2]
            yield "weight of subgroups", merged.weights, tally.sums.weights, tally.sums.weights
        if name == "top-label":  # a sample counts in one problem, elsewhere in each
            counts, mass = counts.sum(), mass.sum()
        yield "sum of count", counts.astype(np.int64), n, n
        yield "sum of weight", mass, total, total
        yield "number of events", count[key % 2 == 1].sum(), n * (name == "classwise"), n
    if state._sums:
        mass, square = state._tally.sums.weights.sum(axis=1)
        yield "total of sums", state._sums.total, (mass, square, 0), (mass, square, 2 * square)
        yield "gap of sums", np.abs(state._sums.gap), 0, mass
