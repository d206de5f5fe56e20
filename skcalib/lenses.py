r"""Calibration lenses: from all classes to the aspect of the predictions that matters.

A lens maps labels and probabilities of K classes to those of smaller problems, whose calibration
any metric or test then measures. If the predictions are canonically calibrated, so is what is seen
through every lens; the reverse does not hold. Rows stay in their order, so weights fit both.

The argument `multi_class` takes a lens: an object of this module, or one of your own. Its names
"confidence", "top-label" and "classwise" stand for the three lenses that need no settings.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from ._data import ClassData, check_predictions
from ._guesses import guess_other_names
from ._inputs.arrays import ArrayLike, check_numbers, format_values
from ._inputs.labels import as_labels, encode_labels
from ._inputs.scikit_learn import IntegerInterval, validate_params
from ._numerics.logits import iter_row_blocks

__all__ = [
    "BinaryProblem",
    "ClassGroups",
    "Lens",
    "Multilabel",
    "Ordinal",
    "TopK",
    "class_groups",
    "top_k",
]

guess_other_names(__name__)

# By how much rounding takes a sum of probabilities beyond 0 or 1.
_PROBABILITY_ATOL = 1e-9


class BinaryProblem(NamedTuple):
    """One of the binary problems that a lens yields.

    Parameters
    ----------
    y_true : ndarray of shape (n_samples,)
        Whether the event happened: 0 and 1, or False and True.

    y_proba : ndarray of shape (n_samples,)
        The predicted probability of the event.

    weight : float, default=1.0
        The weight of the problem in an average over problems; not negative.

    name : object, default=""
        What warnings, figures and tests call the problem.

    rows : ndarray, default=None
        The samples of the problem, as indices or as a mask; `y_true` and `y_proba` hold these
        alone. None means all samples. A problem without samples has no value.

    See Also
    --------
    Lens : What yields such problems.

    Examples
    --------
    >>> from skcalib.lenses import BinaryProblem
    >>> BinaryProblem([0, 1], [0.25, 0.75], name="mammals").weight
    1.0
    """

    y_true: Any
    y_proba: Any
    weight: float = 1.0
    name: Any = ""
    rows: Any = None


class Lens(Protocol):
    """Object that makes binary problems of several classes; `multi_class` takes it.

    Write a class with the method `reduce`; it need not derive from this one. An attribute
    `average`, by default "weighted", says what ``average="auto"`` means. With a method
    ``combine(proba)``, from the recalibrated probabilities of all problems to those of the classes
    (n_samples, n_classes), :class:`skcalib.recalibration.LensRecalibrator` takes the lens, too.

    Notes
    -----
    Tests stay exact if the problems depend on nothing but the data.

    Examples
    --------
    Is the label among the two likeliest classes as often as the sum of their probabilities says?

    >>> import numpy as np
    >>> from skcalib.datasets import make_dirichlet_family
    >>> from skcalib.lenses import BinaryProblem
    >>> from skcalib.metrics import smooth_calibration_error
    >>> class WithinTop:
    ...     def __init__(self, k):
    ...         self.k = k
    ...     def reduce(self, data):
    ...         order = np.argsort(-data.matrix, axis=1)[:, : self.k]
    ...         event = (order == data.label[:, None]).any(axis=1)
    ...         proba = np.take_along_axis(data.matrix, order, axis=1).sum(axis=1)
    ...         yield BinaryProblem(event, proba, name=f"within the top {self.k}")
    >>> y_true, y_proba = make_dirichlet_family(model="M3", random_state=0)
    >>> smooth_calibration_error(y_true, y_proba, multi_class=WithinTop(2))
    0.66...
    """

    def __init__(self) -> None:  # else that of Protocol would be shown, with **kwargs
        return

    @abstractmethod
    def reduce(self, data: ClassData) -> Iterable[BinaryProblem]:
        """Yield the binary problems.

        Parameters
        ----------
        data : object
            The checked data: `matrix` (n_samples, n_classes), the probabilities; `label`
            (n_samples,), the position of each label in `classes`; `classes` (n_classes,); and
            `weight` (n_samples,), which sums to 1. Arrays must not be changed.

        Returns
        -------
        problems : iterable of BinaryProblem
            At least one.
        """


class _BuiltInLens(Lens):
    """A lens of this module: two classes are one binary problem, that of the last class."""

    average: ClassVar[str] = "macro"  # what average="auto" means
    is_single: ClassVar[bool] = False  # True if there is never more than one problem
    keeps_two_classes: ClassVar[bool] = True
    needs_indicator: ClassVar[bool] = False  # True for labels (n, L) that may all be 1
    x_label: ClassVar[str] = "predicted probability"
    event_names: ClassVar[tuple[str, str] | None] = None  # in figures; None for the problem's name

    # from probabilities of events (n, P) and the classes (K,) to (n, K); None if that cannot be
    _combine: Any = None

    def __post_init__(self) -> None:
        """Copy the arguments, which the caller may change later."""
        with suppress(TypeError):  # of iterators, which are refused when they are read
            vars(self).update(deepcopy(vars(self)))

    def _check_classes(self, classes: np.ndarray) -> None:
        """Refuse classes that the lens is not for."""

    def _is_identity(self, data: ClassData) -> bool:
        """True if the data are the only problem, as they are; classes are checked."""
        self._check_classes(data.classes)
        return data.is_binary and self.keeps_two_classes


@dataclass(frozen=True)
class _Confidence(_BuiltInLens):
    is_single = True

    def reduce(self, data: ClassData) -> Iterator[BinaryProblem]:
        hit = data.label == np.argmax(data.proba, axis=1)
        yield BinaryProblem(hit, data.proba.max(axis=1))


@dataclass(frozen=True)
class _TopLabel(_BuiltInLens):
    average = "weighted"
    x_label = "confidence if predicted"
    event_names = ("right", "wrong")

    def reduce(self, data: ClassData) -> Iterator[BinaryProblem]:
        top = np.argmax(data.proba, axis=1)
        for k, name in enumerate(data.classes.tolist()):
            rows = np.flatnonzero(top == k)
            share = float(data.weight[rows].sum())
            yield BinaryProblem(data.label[rows] == k, data.proba[rows, k], share, name, rows)


@dataclass(frozen=True)
class _Classwise(_BuiltInLens):
    def reduce(self, data: ClassData) -> Iterator[BinaryProblem]:
        events = ((name, data.label == k) for k, name in enumerate(data.classes.tolist()))
        return _iter_events(data, events)

    def _combine(self, proba: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Divide rows by their sums; rows of zeros become equal probabilities."""
        proba = np.where(proba.any(axis=1, keepdims=True), proba, 1.0)
        return proba / proba.sum(axis=1, keepdims=True)


def _iter_events(
    data: ClassData,
    events: Iterable[tuple[Any, np.ndarray]],
    columns: Iterable[np.ndarray] | None = None,
) -> Iterator[BinaryProblem]:
    """Yield problems of all samples, which are as heavy as their events are frequent."""
    columns = data.iter_class_proba() if columns is None else columns
    for (name, event), proba in zip(events, columns, strict=True):
        yield BinaryProblem(event, proba, float(data.weight @ event), name)


@validate_params({"k": [IntegerInterval(1)]})
def top_k(
    y_true: ArrayLike, y_proba: ArrayLike, k: int, *, labels: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    r"""The k largest probabilities in decreasing order, and the rest as "other".

    With k = 1 it is the confidence and whether the prediction was right.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    k : int
        Number of probabilities to keep, at most the number of classes.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    Returns
    -------
    rank : ndarray of shape (n_samples,)
        How many classes come before the true one, from 0 if it has the largest probability to
        k − 1; k for "other". Not every rank need occur: pass ``labels=range(k + 1)`` to the
        metrics, or ``range(n_classes)`` if `k` is the number of classes.

    proba : ndarray of shape (n_samples, k + 1)
        The k largest probabilities, and the sum of the others. If `k` is the number of classes, the
        result is the same as for one less.

    See Also
    --------
    class_groups : Groups of classes as the new classes.

    Notes
    -----
    Equal probabilities keep the order of the columns. The cost is :math:`O(n K \log K)`.

    References
    ----------
    .. [1] Vaicenavicius, Widmann, Andersson, Lindsten, Roll and Schön (2019). Evaluating model
       calibration in classification. AISTATS. :arxiv:`1902.06977`

    Examples
    --------
    >>> from skcalib.lenses import top_k
    >>> y_proba = [[0.125, 0.25, 0.5, 0.125], [0.25, 0.0, 0.125, 0.625], [0.5, 0.5, 0.0, 0.0]]
    >>> rank, proba = top_k(["c", "a", "d"], y_proba, 2, labels=["a", "b", "c", "d"])
    >>> rank
    array([0, 1, 2])
    >>> proba
    array([[0.5  , 0.25 , 0.25 ],
           [0.625, 0.25 , 0.125],
           [0.5  , 0.5  , 0.   ]])
    """
    data = check_predictions(y_true, y_proba, labels=labels)
    _check_k(k, data.classes)
    return _rank_classes(data, k)


def _rank_classes(data: ClassData, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ranks (n,) of the labels, and the sorted probabilities (n, k + 1) or (n, K)."""
    n, n_classes = len(data.label), len(data.classes)
    k = min(k, n_classes - 1)
    rank, proba = np.empty(n, dtype=np.intp), np.empty((n, k + 1))
    for rows, block in _iter_row_blocks(data):
        order = np.argsort(-block, axis=1, kind="stable")
        rank[rows] = np.argmax(order == data.label[rows, None], axis=1)
        ordered = np.take_along_axis(block, order, axis=1)
        proba[rows, :k], proba[rows, k] = ordered[:, :k], ordered[:, k:].sum(axis=1)
    return np.minimum(rank, k), proba


@validate_params({"partition": [dict, list, tuple]})
def class_groups(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    partition: dict | list | tuple,
    *,
    labels: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Groups of classes as the new classes, with the sums of their probabilities.

    For decisions that do not depend on the class within a group.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    partition : dict of lists, or list of lists
        The classes of each group, by the group's name or in the order of the groups, which are
        then called 0, 1, and so on. Every class belongs to exactly one of at least two groups.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    Returns
    -------
    group : ndarray of shape (n_samples,)
        Name of the true label's group. Not every group need occur: pass
        ``labels=sorted(partition)`` to the metrics, or ``labels=range(len(partition))`` if the
        groups have no names.

    proba : ndarray of shape (n_samples, n_groups)
        Probability of each group, in the order of the sorted names, as the metrics take them.

    See Also
    --------
    top_k : The largest probabilities, whatever their classes.

    Notes
    -----
    The cost is :math:`O(n K G)` for G groups.

    References
    ----------
    .. [1] Vaicenavicius, Widmann, Andersson, Lindsten, Roll and Schön (2019). Evaluating model
       calibration in classification. AISTATS. :arxiv:`1902.06977`

    Examples
    --------
    >>> from skcalib.lenses import class_groups
    >>> y_true = ["cat", "truck", "dog"]
    >>> y_proba = [[0.25, 0.125, 0.375, 0.25], [0.0, 0.25, 0.25, 0.5], [0.75, 0.0, 0.25, 0.0]]
    >>> group, proba = class_groups(
    ...     y_true,
    ...     y_proba,
    ...     {"vehicle": ["car", "truck"], "animal": ["cat", "dog"]},
    ...     labels=["car", "cat", "dog", "truck"],
    ... )
    >>> group
    array(['animal', 'vehicle', 'animal'], dtype='<U7')
    >>> proba
    array([[0.5 , 0.5 ],
           [0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    data = check_predictions(y_true, y_proba, labels=labels)
    names, group, proba = _merge_classes(data, partition)
    return names[group], proba


def _merge_classes(
    data: ClassData, partition: dict | list | tuple
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sorted names (G,) of groups, the position of each label's, and (n, G) sums."""
    names, group_index = _check_partition(partition, data.classes)
    is_member = (group_index[:, None] == np.arange(len(names))).astype(np.float64)  # (K, G)
    proba = np.empty((len(data.label), len(names)))
    for rows, block in _iter_row_blocks(data):
        proba[rows] = block @ is_member
    return names, group_index[data.label], np.minimum(proba, 1)


@dataclass(frozen=True)
class TopK(_BuiltInLens):
    """Lens of the k likeliest classes: the r-th largest probability, and whether it is right.

    There are k binary problems, for r = 1, ..., k. With k = 1 it is "confidence".

    Parameters
    ----------
    k : int
        Number of probabilities, at most the number of classes.

    See Also
    --------
    top_k : The same probabilities as one problem of k + 1 classes.

    Notes
    -----
    Equal probabilities keep the order of the columns. Two classes are one problem, that of the last
    class. Whether the label is among the k likeliest classes is another question: see the example
    of :class:`Lens`.

    References
    ----------
    .. [1] Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu and Hartley (2021). Calibration of neural
       networks using splines. ICLR. :arxiv:`2006.12800`

    Examples
    --------
    >>> from skcalib.lenses import TopK
    >>> from skcalib.metrics import expected_calibration_error
    >>> y_proba = [[0.5, 0.25, 0.25], [0.125, 0.625, 0.25]]
    >>> expected_calibration_error(
    ...     [0, 2], y_proba, multi_class=TopK(2), average=None, labels=[0, 1, 2]
    ... )
    array([0.5625, 0.25  ])
    """

    k: int

    def _check_classes(self, classes: np.ndarray) -> None:
        """Refuse fewer classes than are looked at."""
        _check_k(self.k, classes)

    def reduce(self, data: ClassData) -> Iterator[BinaryProblem]:
        rank, proba = _rank_classes(data, self.k)
        events = [(f"rank {r + 1}", rank == r) for r in range(self.k)]
        return _iter_events(data, events, proba.T[: self.k])


@dataclass(frozen=True)
class ClassGroups(_BuiltInLens):
    """Lens of groups of classes: each group against the rest, with the sums of probabilities.

    Parameters
    ----------
    partition : dict of lists, or list of lists
        The classes of each group, by the group's name or in the order of the groups, which are
        then called 0, 1, and so on. Every class belongs to exactly one of at least two groups.

    See Also
    --------
    class_groups : The groups as one problem of several classes.

    Notes
    -----
    There is a binary problem for each group, in the order of the sorted names; of two groups, only
    that of the last.

    Examples
    --------
    >>> from skcalib.lenses import ClassGroups
    >>> from skcalib.metrics import expected_calibration_error
    >>> y_proba = [[0.5, 0.25, 0.25], [0.125, 0.625, 0.25]]
    >>> lens = ClassGroups({"healthy": [0], "ill": [1, 2]})
    >>> expected_calibration_error([0, 2], y_proba, multi_class=lens, labels=[0, 1, 2])
    0.3125
    """

    partition: dict | list | tuple

    def _check_classes(self, classes: np.ndarray) -> None:
        """Refuse groups that are no partition of the classes."""
        _check_partition(self.partition, classes)

    def reduce(self, data: ClassData) -> Iterator[BinaryProblem]:
        names, group, proba = _merge_classes(data, self.partition)
        first = 1 if len(names) == 2 else 0
        events = ((name, group == k) for k, name in enumerate(names.tolist()) if k >= first)
        return _iter_events(data, events, proba.T[first:])


@dataclass(frozen=True)
class Ordinal(_BuiltInLens):
    r"""Lens of ordered classes: cumulative probabilities, and whether the label is at most k.

    There are K − 1 binary problems: the cumulative probability :math:`F_k = \sum_{j \le k} p_j`,
    and whether the label is class k or an earlier one. The sum of their Brier scores is the ranked
    probability score [1]_, so the mean of :func:`skcalib.metrics.score_decomposition` over the
    problems decomposes that score divided by K − 1.

    Parameters
    ----------
    ranking : list, default=None
        All classes, from the lowest to the highest. By default numbers are ordered by size; other
        labels need a `ranking`.

    Notes
    -----
    Two classes are one problem, that of the last class.

    References
    ----------
    .. [1] Epstein (1969). A scoring system for probability forecasts of ranked categories. Journal
       of Applied Meteorology 8(6).

    Examples
    --------
    >>> from skcalib.lenses import Ordinal
    >>> from skcalib.metrics import score_decomposition, smooth_calibration_error
    >>> y_true = ["low", "high", "medium", "low"]
    >>> y_proba = [[0.75, 0.25, 0.0], [0.0, 0.5, 0.5], [0.25, 0.5, 0.25], [0.5, 0.5, 0.0]]
    >>> lens = Ordinal(["low", "medium", "high"])
    >>> data = {"labels": ["low", "medium", "high"], "multi_class": lens}
    >>> smooth_calibration_error(y_true, y_proba, average=None, **data)
    array([0.140625, 0.078125])

    The ranked probability score:

    >>> float(2 * score_decomposition(y_true, y_proba, **data).score)
    0.171875
    """

    ranking: list | tuple | np.ndarray | None = None

    def _check_classes(self, classes: np.ndarray) -> None:
        """Refuse a ranking that is not one of the classes; two classes need none."""
        if self.ranking is not None or len(classes) > 2:
            _rank_all_classes(self.ranking, classes)

    def reduce(self, data: ClassData) -> Iterator[BinaryProblem]:
        order = _rank_all_classes(self.ranking, data.classes)
        position = np.argsort(order)[data.label]
        total = np.zeros(len(data.label))
        for k, name in enumerate(data.classes[order[:-1]].tolist()):
            total = total + data.proba[:, order[k]]
            event = position <= k
            proba = np.minimum(total, 1.0)
            yield BinaryProblem(event, proba, float(data.weight @ event), f"at most {name}")

    def _combine(self, proba: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Sort each row, which repairs quantiles that cross, and take differences.

        A sorted row is nowhere farther from any monotone one than the row was [2]_.
        """
        ends = np.zeros((len(proba), 1)), np.ones((len(proba), 1))
        cumulative = np.hstack([ends[0], np.sort(proba, axis=1), ends[1]])
        result = np.empty((len(proba), len(classes)))
        result[:, _rank_all_classes(self.ranking, classes)] = np.diff(cumulative, axis=1)
        return result


@dataclass(frozen=True)
class Multilabel(_BuiltInLens):
    """Lens of labels that do not exclude each other: each label is a binary problem.

    With it, `y_true` is an indicator matrix (n_samples, n_labels) of 0 and 1, and `y_proba` holds
    the probability of each label, (n_samples, n_labels), or is the list of arrays (n_samples, 2)
    that scikit-learn's ``MultiOutputClassifier`` predicts; `labels` are the names of the labels.

    Notes
    -----
    :class:`skcalib.hypothesis_tests.CalibrationTest` tests each label alone, and together by
    ``min(1, n_labels * min(p))``, which holds however labels depend on each other; averages of
    errors are refused. Intervals and comparisons draw rows with all their labels, and are for
    averages as well.

    Examples
    --------
    >>> from skcalib.lenses import Multilabel
    >>> from skcalib.metrics import smooth_calibration_error
    >>> y_true = [[1, 0], [1, 1], [0, 0], [1, 0]]
    >>> y_proba = [[0.75, 0.25], [0.75, 0.5], [0.25, 0.25], [0.75, 0.0]]
    >>> smooth_calibration_error(y_true, y_proba, multi_class=Multilabel(), average=None)
    array([0.15625, 0.03125])
    """

    needs_indicator = True
    keeps_two_classes = False

    def reduce(self, data: ClassData) -> Iterator[BinaryProblem]:
        if data.label.ndim != 2:
            raise ValueError(
                "multi_class=Multilabel() needs labels as an indicator matrix (n_samples, "
                f"n_labels); found labels of {len(data.classes)} classes, each sample having one. "
                "Choose another lens, or pass the matrix to a function that takes it."
            )
        return _iter_events(data, zip(data.classes.tolist(), data.label.T, strict=True))

    def _combine(self, proba: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Leave the probabilities of labels as they are."""
        return proba


@dataclass(frozen=True)
class _UserLens(_BuiltInLens):
    """A user's lens, whose problems are checked."""

    lens: Any
    keeps_two_classes = False

    def __post_init__(self) -> None:
        """Keep the user's lens, not a copy."""

    @property
    def average(self) -> str:  # type: ignore[override]
        return getattr(self.lens, "average", "weighted")

    def reduce(self, data: ClassData) -> Iterator[BinaryProblem]:
        proba = data.proba.view()
        proba.flags.writeable = False  # it may be the caller's
        n_problems = 0
        for problem in self.lens.reduce(replace(data, proba=proba)) or ():
            n_problems += 1
            yield _check_problem(problem, len(data.weight), self.lens)
        if n_problems == 0:
            raise ValueError(
                "multi_class must yield at least one BinaryProblem; found none from "
                f"{self.lens!r}. Yield them in its method reduce."
            )

    @property
    def _combine(self) -> Any:
        combine = getattr(self.lens, "combine", None)
        return combine and (lambda proba, classes: combine(proba))


# The lenses that have a name; "canonical" is the name of none, as nothing is reduced.
_NAMED_LENSES = {"confidence": _Confidence(), "top-label": _TopLabel(), "classwise": _Classwise()}


def _get_lens(multi_class: Any) -> Any:
    """Return the lens of a name, or the object itself, checked as it is used.

    "canonical" has none: all classes are measured at once.
    """
    if isinstance(multi_class, str):
        return _NAMED_LENSES.get(multi_class)
    if isinstance(multi_class, type):
        raise TypeError(
            f"multi_class must be an object; found the class {multi_class.__name__} itself. Write "
            f"{multi_class.__name__}()."
        )
    return multi_class if isinstance(multi_class, _BuiltInLens) else _UserLens(multi_class)


def _check_all_rows(problems: Sequence[Any], data: ClassData, multi_class: Any) -> None:
    """Refuse problems of some of the samples, where each sample is part of each problem."""
    if any(problem is None or len(problem.weight) < len(data.weight) for problem in problems):
        raise ValueError(
            "multi_class must yield problems of all samples, with rows=None; found one of some of "
            f"them from {multi_class!r}. Leave rows out."
        )


def _iter_row_blocks(data: ClassData) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield slices of rows, and their probabilities of all classes in double precision, (b, K)."""
    proba = data.matrix if data.is_binary else data.proba
    for rows in iter_row_blocks(*proba.shape):
        yield rows, proba[rows].astype(np.float64, copy=False)


def _check_k(k: int, classes: np.ndarray) -> None:
    """Refuse more probabilities than there are classes."""
    if not IntegerInterval(1, len(classes), closed="both").is_satisfied_by(k):
        raise ValueError(
            f"k must be at most the number of classes; found k={k!r} and {len(classes)} classes. "
            "Pass a smaller whole number, at least 1."
        )


def _rank_all_classes(ranking: ArrayLike | None, classes: np.ndarray) -> np.ndarray:
    """Return the positions (K,) of the classes from the lowest to the highest."""
    if ranking is None:
        if classes.dtype.kind in "biuf":
            return np.argsort(classes, kind="stable")
        raise ValueError(
            "ranking must list the classes from the lowest to the highest if they are not numbers; "
            f"found None and the classes {format_values(classes)}. Pass Ordinal(ranking=[...])."
        )
    names, ordered = classes.tolist(), np.ravel(as_labels(ranking, "ranking")).tolist()
    if len(ordered) != len(names) or any(name not in ordered for name in names):
        raise ValueError(
            f"ranking must list each of the classes {format_values(classes)} once; found "
            f"{ordered!r:.200}. Name those that are missing, of the same type as the labels."
        )
    return np.array([names.index(name) for name in ordered])


def _check_problem(problem: Any, n: int, lens: Lens) -> BinaryProblem:
    """Return a problem of somebody else's lens as arrays, if it is one of the data."""
    try:
        event, proba, weight, name, rows = BinaryProblem(*problem)
        index = np.arange(n) if rows is None else np.arange(n)[np.asarray(rows)]
        event, proba = as_labels(event, "y_true"), check_numbers(proba, "y_proba", finite=False)
        is_valid = (
            event.shape == proba.shape == index.shape
            and np.isin(event, [0, 1]).all()
            and (np.abs(proba - 0.5) <= 0.5 + _PROBABILITY_ATOL).all()
            and 0 <= float(weight) < np.inf
        )
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise TypeError(
            "multi_class must yield BinaryProblem(y_true, y_proba, weight, name, rows); found "
            f"{problem!r:.200} from {lens!r}: {error}. Correct its method reduce."
        ) from error
    if not is_valid:
        raise ValueError(
            "multi_class must yield problems with events 0 or 1 and probabilities in [0, 1], one "
            f"for each of the {index.size} rows, and a weight that is not negative; found shapes "
            f"{event.shape} and {proba.shape} and the weight {weight!r} for {name!r} from "
            f"{lens!r}. Correct its method reduce."
        )
    return BinaryProblem(event.astype(bool), proba.clip(0, 1), float(weight), name, rows)


def _check_partition(
    partition: dict | list | tuple, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted names of the groups, and for each class the index of its group (K,)."""
    if not isinstance(partition, dict | list | tuple):
        raise TypeError(
            f"partition must be a dict or a list of lists of classes; found {partition!r:.80}. "
            "Pass the classes of each group."
        )
    if isinstance(partition, dict):
        names, _ = encode_labels(
            list(partition), name="The names in partition", partner="partition"
        )
        groups: Any = [partition[name] for name in names.tolist()]
    else:
        names, groups = np.arange(len(partition)), partition
    class_names = classes.tolist()
    group_index = np.full(len(class_names), -1)
    for index, (name, members) in enumerate(zip(names.tolist(), groups, strict=True)):
        if isinstance(members, str | bytes) or not hasattr(members, "__iter__"):
            raise ValueError(
                f"partition must hold a list of classes for each group; found {members!r} for "
                f"group {name!r}. Write [{members!r}]."
            )
        for member in members:
            if member not in class_names:
                raise ValueError(
                    f"partition must hold only the classes {format_values(classes)}; found "
                    f"{member!r} in group {name!r}. Name all classes with labels=[...], of the "
                    "same type as the labels."
                )
            if group_index[class_names.index(member)] >= 0:
                raise ValueError(
                    f"partition must hold each class once; found {member!r} a second time, in "
                    f"group {name!r}. Remove it from one group."
                )
            group_index[class_names.index(member)] = index
    missing = classes[group_index < 0]
    if len(missing):
        raise ValueError(
            f"partition must hold every class; found no group for {format_values(missing)}. Put "
            "the rest into a group of its own."
        )
    n_filled = len(np.unique(group_index))
    if n_filled < max(2, len(names)):
        raise ValueError(
            "partition must have at least two groups, none of them empty; found "
            f"{len(names)} group(s), {n_filled} of them with classes. The probability of a single "
            "group is always 1."
        )
    return names, group_index
