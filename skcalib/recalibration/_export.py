"""The maps of recalibrators, written down for use without Python: as SQL, and as tables."""

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._inputs.arrays import listed
from .._inputs.probabilities import SUM_TOLERANCE
from ._auto import AutoRecalibrator
from ._base import OneVsRestRecalibrator, Recalibrator
from ._binning import IntervalBinningRecalibrator, ScalingBinningRecalibrator
from ._either import IdentityRecalibrator
from ._isotonic import IsotonicRecalibrator, VennAbersRecalibrator
from ._logistic import BetaRecalibrator, LogisticRecalibrator
from ._logits import LogScaleRecalibrator
from ._prior_shift import PriorShiftRecalibrator
from ._scaling import EnsembleTemperatureRecalibrator
from ._spline import SplineRecalibrator, spline_pieces
from ._sql import (
    HIGHEST,
    LOWEST,
    clip,
    clipped_logs,
    divided,
    expit,
    from_point,
    let,
    linear,
    logs_of,
    number,
    of_clipped,
    share,
    softmax,
    steps,
)
from ._updating import ClosedTestRecalibrator


def export_sql(recalibrator: Any, *, columns: Sequence[str] | None = None) -> list[str]:
    """The map of a recalibrator as SQL expressions.

    Parameters
    ----------
    recalibrator : estimator
        A fitted recalibrator of class probabilities (not of logits), of this package.

    columns : list of str, default=None
        The names of the columns that hold the predicted probabilities, in the order of the classes;
        for two classes also the one of the last class alone. They are put in double quotes. By
        default they are those of the data frame that the recalibrator was fitted on, or else
        ``"proba_"`` followed by the class.

    Returns
    -------
    expressions : list of str
        One for each class, in the order of `classes_`. The value is the calibrated probability, or
        NULL where a predicted one is missing or outside [0, 1], or where those of more than two
        classes do not sum to 1 (within 1e-5).

    See Also
    --------
    export_table : The table of an interval map, to join.

    Notes
    -----
    :class:`DecisionRecalibrator`, :class:`AnyDecisionRecalibrator`, :class:`SubgroupRecalibrator`,
    and recalibrators that are searches over others, have no formula. Of an average the expressions
    hold all its formulas.

    The expressions hold no names but those of the columns, and nothing but standard SQL: arithmetic
    in double precision, CASE, COALESCE, NULLIF, `abs`, `ln` and `exp`. They were tested with DuckDB
    and with SQLite, which needs 3.35 or newer with its mathematical functions. The results differ
    from those of `predict_proba` by rounding, less than 1e-9. SQLite may misread the last digit of
    a number, and put a prediction that equals a cut of an interval map on its other side; this
    happens to about one number in 20 000.

    For two classes an expression takes some 600 characters, that of a spline 10 000, that of an
    isotonic map 60 for each knot. For K > 2, each of the K expressions of one-vs-rest maps contains
    the maps of all classes. Those of scaling maps grow with K, and with K² if a matrix scales. Of
    more than a hundred classes the expressions are too long to be of use.

    Examples
    --------
    >>> import sqlite3
    >>> from skcalib.recalibration import IsotonicRecalibrator, export_sql
    >>> recalibrator = IsotonicRecalibrator(strict=False)
    >>> recalibrator = recalibrator.fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1])
    >>> _, positive = export_sql(recalibrator, columns=["score"])
    >>> database = sqlite3.connect(":memory:")
    >>> database.execute("CREATE TABLE scores (id, score)").connection.executemany(
    ...     "INSERT INTO scores VALUES (?, ?)", [(1, 0.25), (2, 0.8), (3, None)]
    ... ).execute(f"SELECT id, {positive} FROM scores").fetchall()
    [(1, 0.5), (2, 1.0), (3, None)]
    """
    classes = check_writable(recalibrator)
    names = [quoted(name) for name in check_columns(recalibrator, columns)]
    if len(classes) == 2:
        formula = _formulas(recalibrator, names[-1:])[0]
        positive = f"CASE WHEN {names[-1]} BETWEEN 0e0 AND 1e0 THEN {formula} END"
        return [f"1e0 - {positive}", positive]
    conditions = [f"{name} BETWEEN 0e0 AND 1e0" for name in names]
    conditions.append(f"abs({' + '.join(names)} - 1e0) <= {number(SUM_TOLERANCE)}")
    is_valid = " AND ".join(conditions)
    return [
        f"CASE WHEN {is_valid} THEN {formula} END" for formula in _formulas(recalibrator, names)
    ]


def export_table(recalibrator: Any) -> dict[str, np.ndarray]:
    """The map of an interval recalibrator as a table.

    Parameters
    ----------
    recalibrator : estimator
        A fitted :class:`IsotonicRecalibrator` or :class:`IntervalBinningRecalibrator`, or an
        :class:`AutoRecalibrator` that has chosen one.

    Returns
    -------
    table : dict
        A table, ready for :class:`pandas.DataFrame`. It has a row for each interval of predicted
        probabilities, from its "start" to the next one: the map is "value" + "slope" · (p −
        "start"). For two classes p is the probability of the last one. For more there are such
        rows for each "class", and the results of a sample are divided by their sum; if all are 0,
        the sample keeps its predicted probabilities.

    See Also
    --------
    export_sql : The same map as an SQL expression.

    Notes
    -----
    The first interval starts at 0, and starts increase. So the row of a prediction is the last one
    whose start it reaches: a lookup with sorted keys in a spreadsheet, an ASOF join in a database.

    Examples
    --------
    >>> from skcalib.recalibration import IntervalBinningRecalibrator, export_table
    >>> recalibrator = IntervalBinningRecalibrator("uniform", n_bins=2)
    >>> export_table(recalibrator.fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1]))["start"]
    array([0. , 0.5])
    """
    classes = check_writable(recalibrator)
    chosen = _alone(recalibrator)
    if not isinstance(chosen, IsotonicRecalibrator | IntervalBinningRecalibrator):
        raise ValueError(
            "recalibrator must be an interval map, IsotonicRecalibrator() or "
            f"IntervalBinningRecalibrator(); found {type(chosen).__name__}. Use export_sql, and "
            "fitted attributes for the parameters."
        )
    maps = [_pieces(chosen, learned) for learned in chosen.maps_]
    of_class = classes[-len(maps) :]
    table = {"class": np.repeat(of_class, [len(pieces.start) for pieces in maps])}
    for name in ("start", "value", "slope"):
        table[name] = np.concatenate([getattr(pieces, name) for pieces in maps])
    return table


def _alone(recalibrator: Any) -> Any:
    """The recalibrator itself, or the one that has all the weight of an average."""
    is_auto = isinstance(recalibrator, AutoRecalibrator)
    return (
        recalibrator.best_recalibrator_
        if is_auto and len(recalibrator.weights_) == 1 and recalibrator.uniform_share_ == 0
        else recalibrator
    )


class Pieces(NamedTuple):
    """From each start to the next one, the map is value + slope · (p − start); the first is 0."""

    start: np.ndarray
    value: np.ndarray
    slope: np.ndarray


def _pieces(recalibrator: Any, learned: Any) -> Pieces:
    """The map of one class of an interval recalibrator."""
    if isinstance(recalibrator, IsotonicRecalibrator):
        knots, values = learned
        with np.errstate(over="ignore"):
            slope = np.append(np.diff(values) / np.diff(knots), 0.0)
        slope[~np.isfinite(slope)] = 0.0  # a step, as nothing lies between
        if knots[0] == 0:
            return Pieces(knots, values, slope)
        return Pieces(np.append(0.0, knots), np.append(values[0], values), np.append(0.0, slope))
    low, high = recalibrator._kept(np.array([0.0, 1.0]))
    start = np.unique([0.0, low, high, *learned.cuts[learned.cuts <= 1]])
    value = recalibrator._map_binary(start, learned)
    bins = np.searchsorted(learned.cuts, start, side="right")
    keeps = np.isnan(learned.values[bins]) & (start >= low) & (start < high)
    begins = np.append(True, np.diff(value) != 0) | keeps
    return Pieces(start[begins], value[begins], keeps[begins].astype(np.float64))


@singledispatch
def _formulas(recalibrator: Any, names: list[str]) -> list[str]:
    """The map as formulas, one for two classes or K, of the names of the probabilities."""
    raise ValueError(
        "recalibrator must have a map that a formula can express; found "
        f"{type(recalibrator).__name__}. Call its predict_proba, or choose another recalibrator."
    )


@_formulas.register
def _(recalibrator: IdentityRecalibrator, names: list[str]) -> list[str]:
    return names


@_formulas.register
def _(recalibrator: AutoRecalibrator, names: list[str]) -> list[str]:
    if (alone := _alone(recalibrator)) is not recalibrator:
        return _formulas(alone, names)
    parts = [
        [f"{number(weight)} * {let(formula)}" for formula in _formulas(one, names)]
        for one, weight in zip(
            recalibrator.recalibrators_.values(), recalibrator.weights_.values(), strict=True
        )
    ]
    if recalibrator.uniform_share_ > 0:
        uniform = number(recalibrator.uniform_share_ / len(recalibrator.classes_))
        parts.append([uniform] * len(names))
    return [" + ".join(terms) for terms in zip(*parts, strict=True)]


@_formulas.register(OneVsRestRecalibrator)
@_formulas.register(LogisticRecalibrator)
def _(recalibrator: Any, names: list[str]) -> list[str]:
    mapped = [
        let(_of_class(recalibrator, name, learned))
        for name, learned in zip(names, recalibrator.maps_, strict=True)
    ]
    return [mapped[0][1:-1]] if len(names) == 1 else divided(mapped, names)


@_formulas.register
def _(recalibrator: ScalingBinningRecalibrator, names: list[str]) -> list[str]:
    results = [let(formula) for formula in _formulas(recalibrator.recalibrator_, names)]
    binned = [
        steps(name, one.cuts, [*map(number, one.values)])
        for name, one in zip(results, recalibrator.maps_, strict=True)
    ]
    return binned if len(names) == 1 else divided([let(one) for one in binned], results)


@_formulas.register
def _(recalibrator: PriorShiftRecalibrator, names: list[str]) -> list[str]:
    new, old = recalibrator.prevalence_, recalibrator.source_prevalence_
    if np.array_equal(new, old):
        return names
    both = [let(f"{number(1)} - {names[0]}"), *names] if len(names) == 1 else names
    parts = [
        let(linear(0.0, [factor], [name])) for factor, name in zip(new / old, both, strict=True)
    ]
    total = let(" + ".join(parts))
    shares = [share(part, total, number(one)) for part, one in zip(parts, new, strict=True)]
    return shares[-len(names) :]


@_formulas.register
def _(recalibrator: LogScaleRecalibrator, names: list[str]) -> list[str]:
    check_is_of_probabilities(recalibrator)
    smallest = recalibrator.smallest_probability_
    factors, shift = recalibrator._linear_map()
    matrix = np.diag(factors) if factors.ndim == 1 else factors
    if len(names) == 1:
        slope, constant = (matrix[1] - matrix[0])[::-1], shift[1] - shift[0]

        def positive(ends: np.ndarray) -> np.ndarray:
            return recalibrator._map(ends)[:, 1]

        def of_kept(kept: str) -> str:
            return expit(linear(constant, slope, logs_of(kept)))

        return [of_clipped(names[0], smallest, positive, of_kept)]
    return softmax(clipped_logs(names, smallest), -np.log(smallest), matrix, shift)


@_formulas.register
def _(recalibrator: ClosedTestRecalibrator, names: list[str]) -> list[str]:
    if recalibrator.chosen_ == "none" and recalibrator.input_type == "probabilities":
        return names
    return _formulas.dispatch(LogScaleRecalibrator)(recalibrator, names)


@_formulas.register
def _(recalibrator: EnsembleTemperatureRecalibrator, names: list[str]) -> list[str]:
    check_is_of_probabilities(recalibrator)
    smallest, inverse = recalibrator.smallest_probability_, 1 / recalibrator.temperature_
    *shares, rest = recalibrator.shares_
    if len(names) == 1:

        def positive(ends: np.ndarray) -> np.ndarray:
            return recalibrator._map(ends)[:, 1]

        def mixture(kept: str) -> str:
            tempered = let(expit(linear(0.0, [inverse, -inverse], logs_of(kept))))
            return linear(rest / 2, shares, [tempered, kept])

        return [of_clipped(names[0], smallest, positive, mixture)]
    logs, n_classes = clipped_logs(names, smallest), len(names)
    tempered, given = (
        softmax(logs, -np.log(smallest), factor * np.eye(n_classes), np.zeros(n_classes))
        for factor in (inverse, 1.0)
    )
    return [
        clip(let(linear(rest / n_classes, shares, [let(t), let(g)])), LOWEST, HIGHEST)
        for t, g in zip(tempered, given, strict=True)
    ]


def _of_class(recalibrator: Any, name: str, learned: Any) -> str:
    """The map of one class as a formula."""
    if isinstance(recalibrator, VennAbersRecalibrator):
        (from_knot, lower), (to_knot, upper) = learned
        low = let(steps(name, from_knot, [*map(number, [0.0, *lower])]))
        high = let(steps(name, to_knot, [*map(number, [*upper, 1.0])], closed=True))
        return f"{high} / ({number(1)} - {low} + {high})"
    if not isinstance(recalibrator, LogisticRecalibrator):
        found = _pieces(recalibrator, learned)
        pieces = [
            linear(value, [slope], [from_point(name, start)])
            for start, value, slope in zip(*found, strict=True)
        ]
        return steps(name, found.start[1:], pieces)
    return of_clipped(
        name,
        recalibrator.smallest_probability_,
        lambda ends: recalibrator._map_binary(ends, learned),
        lambda kept: expit(_log_odds_of(recalibrator, logs_of(kept), learned)),
    )


def _log_odds_of(recalibrator: LogisticRecalibrator, logs: list[str], learned: Any) -> str:
    """Calibrated log-odds, of the logarithms of a probability and of the other one."""
    if isinstance(recalibrator, BetaRecalibrator):
        c, a, b = learned
        return linear(c, [a, -b], logs)
    x = let(" - ".join(logs))
    if not isinstance(recalibrator, SplineRecalibrator):
        powers = [" * ".join([x] * power) for power in range(1, len(learned))]
        return linear(learned[0], learned[1:], powers)
    knots, values = learned
    pieces = []
    for origin, coefficients in zip([knots[0], *knots], spline_pieces(knots, values), strict=True):
        distance = from_point(x, origin)
        piece = number(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            piece = f"{number(coefficient)} + {distance} * ({piece})"
        pieces.append(piece)
    return steps(x, knots, pieces)


def check_is_of_probabilities(recalibrator: Any) -> None:
    """Refuse a map of logits, which has no formula of probabilities."""
    if recalibrator.input_type == "logits":
        raise ValueError(
            "recalibrator must be fitted on probabilities, whose formula this is; found "
            "input_type='logits'. Fit it on scipy.special.softmax(X, axis=1), and apply the "
            "formula to that."
        )


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def check_writable(recalibrator: Any) -> np.ndarray:
    """The classes of a fitted recalibrator of class probabilities; others are refused."""
    if isinstance(recalibrator, Recalibrator):
        check_is_fitted(recalibrator)
        if hasattr(recalibrator, "classes_"):  # it is not fitted on forecasts
            return recalibrator.classes_
    is_class = isinstance(recalibrator, type)
    found = f"the class {recalibrator.__name__}" if is_class else type(recalibrator).__name__
    raise TypeError(
        f"recalibrator must be a fitted recalibrator of class probabilities; found {found}. Pass "
        "the object itself: the last step of a pipeline, the recalibrator_ of a "
        "RecalibratedClassifier."
    )


def check_columns(recalibrator: Any, columns: Any) -> list[str]:
    """Names of the columns: one for each class, or one for the last of two."""
    classes = recalibrator.classes_
    if columns is None:
        names = getattr(recalibrator, "feature_names_in_", recalibrator.get_feature_names_out())
        return names.tolist()
    expected = f"{len(classes)} different names, in the order of the classes {listed(classes)}"
    if len(classes) == 2:
        expected += ", or the name of the column of the last class"
    given = [] if isinstance(columns, str) or not np.iterable(columns) else list(columns)
    are_names = all(isinstance(name, str) and name for name in given)
    if not given or not are_names or len(set(given)) < len(given):
        raise ValueError(
            f"columns must be a list of {expected}; found {columns!r}. Pass such names."
        )
    if len(given) != len(classes) and (len(classes), len(given)) != (2, 1):
        raise ValueError(
            f"columns must be a list of {expected}; found {len(given)} name(s). Pass a name for "
            "each class."
        )
    return given
