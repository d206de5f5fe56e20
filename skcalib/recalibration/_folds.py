"""Folds of a cross-validation, which divide nothing that belongs together."""

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import check_cv
from sklearn.utils.validation import has_fit_parameter

from .._data import AnyData, ClassData, Data, count_groups
from .._inputs.arrays import ArrayLike
from .._inputs.by import check_groups
from .._inputs.checks import positive_weight_rows
from .._inputs.warnings import warn
from .._numerics.dependence import UnitSums
from .._numerics.sorting import first_of_ties
from ..forecasts import Forecast
from ._base import ForecastRecalibrator, Recalibrator, clone_for
from ._scaling import TemperatureRecalibrator

# With fewer distinct predictions for each fold, equal ones are those of a grid, not copies.
_MIN_DISTINCT_PER_FOLD = 20

# Copies have the same outcome. Where residuals of equal predictions are less correlated, these are
# mostly predictions of the same categories or leaves.
_MIN_AGREEMENT = 0.25

# A class without samples keeps its probabilities after the best temperature if there are at least
# this many samples, and at least the second number were expected in it. Else it may just be rare.
_MIN_SAMPLES_TO_MISS, _MIN_EXPECTED = 200, 20

# The sentence on rows of a joined table, for the counts that `count_copies` returns.
COPIES = (
    "Each of {n_distinct_predictions} distinct predictions occurs {n_copies} times, always with "
    "the same outcome, as in a joined table. Copies say nothing new: drop them, or pass groups, "
    "with the same label for all copies of a row."
)


def add_units(
    recalibrator: Recalibrator,
    data: Data,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None,
) -> Data:
    """Return the data with their groups, and with the blocks that no fold divides.

    The effective number of samples falls by as much as residuals within groups agree. Blocks are
    the test sets of a splitter `cv`, or those of the cross-validation around the recalibrator;
    without these, groups; and without groups, equal predictions that seem to be copies.
    """
    n = np.shape(y)[0]
    if groups is not None:
        data = count_groups(data, check_groups(groups, n, sample_weight))
    else:
        groups = recalibrator._outer_groups
    inner = getattr(recalibrator, "recalibrator", None)
    blocks, cv = recalibrator._outer_blocks, getattr(recalibrator, "cv", getattr(inner, "cv", 5))
    has_splitter = not isinstance(cv, Integral)
    if has_splitter and (blocks is None or not recalibrator._is_nested):
        splits = check_cv(cv).split(np.zeros((n, 1)), np.asarray(y), groups)
        tests = [test for _, test in check_folds(list(splits))]
        check_partition(tests, n, alternative="")
        blocks = find_blocks(tests, n)
    if blocks is not None:
        blocks = blocks[positive_weight_rows(sample_weight, n)]
        if has_splitter:
            check_several_blocks(blocks)
        data = replace(data, blocks=blocks)
    joined, may_be_copies = join_samples(data, cv), blocks is None and groups is None
    if may_be_copies and not recalibrator._is_nested and (counts := count_copies(joined)):
        warn(COPIES.format(**counts))
    return share_labels_with_absent_classes(joined, recalibrator)


def join_samples(data: Data, n_folds: int) -> Data:
    """Return the data with blocks, if they have none: groups, or else what seem to be copies."""
    if data.blocks is not None:
        return data
    return replace(data, blocks=_find_copies(data, n_folds) if data.groups is None else data.groups)


def share_labels_with_absent_classes(data: AnyData, recalibrator: Recalibrator) -> Any:
    """Return data in which each sample has the labels of absent classes, too, in small parts.

    The parts are probabilities after the best temperature, which so stay what they are, whatever
    is fitted: no sample speaks of these classes. Further rows follow after those of the data.
    """
    n, size = len(data.weight), 1 / data.inverse_effective_size
    if data.is_forecast or data.is_binary or size < _MIN_SAMPLES_TO_MISS:
        return data
    absent = np.bincount(data.label, minlength=len(data.classes)) == 0
    # searches take no weights, as their scores ignore them
    inner = [value for value in recalibrator.get_params().values() if hasattr(value, "fit")]
    if not absent.any() or not all(has_fit_parameter(each, "sample_weight") for each in inner):
        return data
    temperature = clone_for(TemperatureRecalibrator(), data.classes)
    expected = temperature.fit(data.proba, data.user_labels, data.weight).predict_proba(data.proba)
    both = np.minimum(data.weight @ expected, data.weight @ data.matrix)
    absent &= size * both >= _MIN_EXPECTED
    if not absent.any():
        return data
    label_share = np.vstack([expected[:, ~absent].sum(axis=1), expected[:, absent].T])
    row = np.tile(np.arange(n), len(label_share))
    fields = {"groups": row, "blocks": row} | data._map_rows(lambda values: values[row])
    fields["label"][n:] = np.repeat(np.flatnonzero(absent), n)
    fields["weight"] = fields["weight"] * label_share.ravel()
    fields["square"] = data.squares[row] * label_share.ravel()
    return replace(data, **fields)


def count_copies(data: AnyData) -> dict[str, int] | None:
    """Return counts for `COPIES` if all blocks of equal predictions have one size and outcome."""
    if data.groups is not None or data.blocks is None:
        return None
    count, outcome = np.bincount(data.blocks), data.value if data.is_forecast else data.label
    first = np.unique(data.blocks, return_index=True)[1]
    if np.ptp(count) > 0 or (outcome != outcome[first[data.blocks]]).any():
        return None
    return {"n_distinct_predictions": len(count), "n_copies": int(count[0])}


def reads_units(recalibrator: BaseEstimator) -> bool:
    """True for recalibrators of this package, whose `fit` knows what belongs together."""
    return isinstance(recalibrator, Recalibrator | ForecastRecalibrator)


def fit_with_units(
    recalibrator: BaseEstimator,
    X: ArrayLike | Forecast,
    y: ArrayLike,
    *,
    groups: np.ndarray | None = None,
    blocks: np.ndarray | None = None,
    inflation: np.ndarray | None = None,
    neighbour: BaseEstimator | None = None,
    **params: ArrayLike | None,
) -> Any:
    """Fit, and tell a recalibrator of this package the groups (n,) and the blocks (n,).

    Inflation (n,) is the part of each sample in Σ w² over groups, divided by w². The fit may start
    from that of a neighbour, to almost the same samples.
    """
    if not reads_units(recalibrator):
        return recalibrator.fit(X, y, **params)
    context = {"_outer_groups": groups, "_outer_blocks": blocks, "_neighbour": neighbour}
    context["_outer_inflation"] = inflation
    vars(recalibrator).update(context)
    try:
        return recalibrator.fit(X, y, **params)
    finally:
        for name in context:
            delattr(recalibrator, name)


def find_blocks(tests: list[np.ndarray], n: int) -> np.ndarray:
    """Return the number of the first test set that holds each of n samples; −1 for none."""
    blocks = np.full(n, -1)
    for k in reversed(range(len(tests))):
        blocks[tests[k]] = k
    return blocks


def assign_folds(data: AnyData, n_folds: int) -> np.ndarray:
    """Return the fold of each sample (n,), random within each class, for any order of the rows.

    No fold divides a block.
    """
    first, class_rank = canonical_order(data)
    unit = find_units(data)
    if unit is None:
        unit = np.arange(len(first))
    else:  # a unit counts as one of its rarest class
        position, count = np.argsort(first), np.bincount(class_rank)[class_rank]
        by_unit = np.lexsort((position, count, unit))
        first = by_unit[first_of_ties(unit[by_unit])]
        first = first[np.argsort(position[first])]
    shuffled, size = np.random.default_rng(0).permutation(first), np.bincount(unit)
    # large ones of a class come first
    shuffled = shuffled[np.lexsort((-size[unit[shuffled]], class_rank[shuffled]))]
    fold = np.empty(len(size), dtype=np.intp)
    fold[unit[shuffled]] = np.arange(len(size)) % n_folds
    return fold[unit]


def find_units(data: AnyData) -> np.ndarray | None:
    """Return codes (n,) of what no fold divides; None if each sample stands alone."""
    if data.blocks is None or np.ptp(data.blocks) == 0:
        return None
    return np.unique(data.blocks, return_inverse=True)[1]


def _find_copies(data: AnyData, n_folds: int) -> np.ndarray | None:
    """Return codes (n,) of samples with equal predictions, which may be copies of each other.

    None if there are few distinct predictions, if all are distinct, or if outcomes of equal ones
    differ as those of others do.
    """
    keys = np.column_stack(data.forecast._sort_keys()) if data.is_forecast else data.columns
    first = keys if keys.ndim == 1 else keys[:, 0]
    if len(np.unique(first)) == len(first):
        return None
    distinct, code = np.unique(keys, axis=0, return_inverse=True)
    is_grid = len(distinct) < _MIN_DISTINCT_PER_FOLD * n_folds
    if is_grid or len(distinct) == len(code):
        return None
    units = UnitSums(data.weight, code.reshape(-1))
    agreement = units.correlation(data.iter_residuals(), per_sample=True)
    return code.reshape(-1) if agreement > _MIN_AGREEMENT else None


def canonical_order(data: AnyData) -> tuple[np.ndarray, np.ndarray]:
    """Return indices (n,) that sort the samples by all their values but the names of classes.

    Also return the rank (n,) of the class of each sample in an order that does not depend on names;
    0 for forecasts of a number.
    """
    if not data.is_forecast:
        classes = canonical_class_order(data)
        class_rank = np.argsort(classes)[data.label]
        first_key = data.matrix[:, classes[-1]]
        if len(np.unique(first_key)) == len(first_key):  # no other key matters
            return np.argsort(first_key), class_rank
        keys = [class_rank, data.weight, *data.matrix.T[classes]]
    else:
        class_rank = np.zeros(len(data.value), dtype=np.intp)
        keys = [data.value, data.weight, *data.forecast._sort_keys()]
    if data.groups is not None:  # equal samples are sorted by what is in their groups
        moment = np.bincount(data.groups, data.weight * (np.pi + keys[0] + keys[-1]) ** 2)
        keys.insert(0, moment[data.groups])
    return np.lexsort(keys), class_rank


def canonical_class_order(data: ClassData) -> np.ndarray:
    """Return indices (K,) that sort the classes, whatever their names.

    The keys are two moments of probabilities and labels; hardly any two classes share both.
    """
    matrix = data.matrix
    label_proba = matrix[np.arange(len(matrix)), data.label]
    square = np.einsum("n,nk,nk->k", data.weight, matrix, matrix)
    last, first = (
        square + np.bincount(data.label, data.weight * (shift + label_proba) ** 2, len(square))
        for shift in (np.pi, 1)  # whole numbers of certain predictions would be shared by chance
    )
    return np.lexsort((last.round(12), first.round(12)))


def check_folds(folds: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Refuse empty folds; return pairs of arrays of indices, which masks become."""
    if not folds:
        raise ValueError(
            "cv must yield at least one split; found none. A generator can be used only once: pass "
            "a splitter or a list."
        )
    checked_folds = []
    for k, pair in enumerate(folds):
        train, test = (
            np.flatnonzero(rows) if rows.dtype.kind == "b" else rows
            for rows in map(np.asarray, pair)
        )
        if len(train) == 0 or len(test) == 0:
            raise ValueError(
                f"cv must put samples into every training and test set; found {len(train)} and "
                f"{len(test)} in split {k}. Choose other folds."
            )
        checked_folds.append((train, test))
    return checked_folds


def check_several_blocks(blocks: np.ndarray) -> None:
    """Refuse samples of positive weight that are all in one test set."""
    if np.ptp(blocks) == 0:
        raise ValueError(
            "cv must put samples of positive weight into at least two test sets; found all in one."
            " Choose other folds, or more weights above 0."
        )


def check_partition(
    tests: list[np.ndarray],
    n: int,
    response: str = "probabilities",
    alternative: str = "; a RecalibratedClassifier with ensemble=True takes any",
) -> np.ndarray:
    """Return the positions of samples 0..n−1 in all test sets, which must hold each sample once."""
    order = np.concatenate(tests)
    if len(order) != n or not np.array_equal(np.sort(order), np.arange(n)):
        raise ValueError(
            f"cv must put every sample into exactly one test set, for out-of-fold {response} of "
            f"all; found {len(order)} test samples, {len(np.unique(order))} of them distinct, for "
            f"{n} samples. Choose a splitter such as KFold{alternative}."
        )
    return np.argsort(order)
