"""The state of a stream of predictions: counts on a grid, and sums."""

import hashlib
import pickle
from collections.abc import Callable, Iterator
from copy import copy
from numbers import Real
from threading import Lock
from typing import Any, Literal, Self, overload

import numpy as np

from .._data import ClassData, check_predictions
from .._inputs.arrays import ArrayLike, as_array, format_values
from .._inputs.by import Columns, Subgroups, check_by
from .._inputs.checks import check_sample_weight, positive_weight_rows
from .._inputs.drawing import draw_from_counts, draw_seed
from .._inputs.options import select_arguments
from .._inputs.scikit_learn import (
    Count,
    IntegerInterval,
    Interval,
    RandomState,
    num_samples,
    validate_params,
)
from .._inputs.warnings import check_memory
from ..lenses import Lens, _check_all_rows, _get_lens
from . import _checks
from ._arrow import from_table, to_table
from ._evaluate import BoundedValue, check_metric_params, evaluate_state
from ._tally import FourierSums, RowWeights, Tally, add_classes, copy_arrays

_BINARY_CLASSES = np.array([False, True])
_BINARY_CLASSES.flags.writeable = False


class CalibrationState:
    r"""Counts of any number of predictions, in constant memory.

    Predictions are counted on a grid of probabilities for each label: of a stream, of chunks of
    files, or of several machines.

    Parameters
    ----------
    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of the probabilities. By default the sorted labels
        of the first update, which must then hold all of them.

    decimals : int, default=4
        Decimals of the grid between 0.01 and 0.99, from 3 to 6; each decade nearer to 0 or 1 has
        one decimal more. No other prediction is rounded to 0 or 1.

    n_components : int, default=64
        Random frequencies of the sums for the squared kernel error of more than two classes; 0 for
        none.

    kernel : {"total-variation", "exponential", "laplacian", "rbf"}, default="total-variation"
        The kernel of that error, as in :func:`skcalib.metrics.squared_kernel_calibration_error`.

    bandwidth : float, default=1.0
        Its bandwidth.

    random_state : int, default=0
        Seed of the frequencies. States can be merged only if it is the same.

    multi_class : Lens, default=None
        A lens of :mod:`skcalib.lenses` whose problems are counted, too, so that `evaluate` takes
        it. With :class:`~skcalib.lenses.Multilabel`, labels are an indicator matrix, and nothing
        else is counted.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,) or None
        The classes, as a read-only array; None before the first update.

    is_binary : bool
        Whether there are two classes.

    n_samples : int
        Number of samples with a positive weight.

    total_weight : float
        Sum of their weights.

    mean_rounding : float
        Mean distance between the predictions and their points on the grid; of more than two
        classes, between the confidences and theirs.

    max_rounding : float
        The largest such distance.

    subgroups : dict
        The state of each subgroup, if updates name subgroups.

    See Also
    --------
    skcalib.hypothesis_tests.CalibrationTest : Tests a state exactly, if all predictions were on the
        grid.
    skcalib.hypothesis_tests.SequentialCalibrationTest : A test that may be looked at every week.

    Notes
    -----
    At 4 decimals there are 29 603 points, so a state of two classes takes at most 0.95 MB, with
    weights 1.9 MB, and twice as much while samples wait to be sorted in. A state of K classes holds
    counts of each class against the rest, and of the predicted class: 16 bytes for each point and
    label that occur, with weights 32.

    **What the grid changes.** With :math:`\bar\varepsilon` the mean distance between predictions
    and points, the lower distance changes by at most :math:`\bar\varepsilon`; the smooth
    calibration error and the Brier score by :math:`2 \bar\varepsilon`; the squared Laplace kernel
    error by :math:`2 \bar\varepsilon (1 + 1/h)`, and the squared kernel error of two classes with a
    bandwidth ν by twice that, with :math:`h = \nu/a` for a kernel whose distance is :math:`a |p -
    q|`. Binned errors have no bound unless all predictions were on the grid.

    Weights must be on the same scale in all updates: a sample without a weight has weight 1.

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.metrics import smooth_calibration_error
    >>> from skcalib.streaming import CalibrationState
    >>> state = CalibrationState()
    >>> for week in range(10):
    ...     y, p = make_temperature_family(1000, inverse_temperature=2, random_state=week)
    ...     state = state.update(y, p)
    >>> state.n_samples
    10000
    >>> error, bound = state.evaluate(smooth_calibration_error)
    >>> print(f"{error:.5f}, by the grid changed by at most {bound:.5f}")
    0.03799, by the grid changed by at most 0.00004
    """

    @validate_params(
        {
            "decimals": [IntegerInterval(3, 6, closed="both")],
            "n_components": [Count(0)],
            "bandwidth": [Interval(Real, 0, None, closed="neither")],
            "random_state": [IntegerInterval(0)],
        }
    )
    def __init__(
        self,
        labels: ArrayLike | None = None,
        *,
        decimals: int = 4,
        n_components: int = 64,
        kernel: Literal["total-variation", "exponential", "laplacian", "rbf"] = "total-variation",
        bandwidth: float = 1.0,
        random_state: int = 0,
        multi_class: Lens | None = None,
    ) -> None:
        self._labels = copy(labels) if hasattr(labels, "__getitem__") else labels
        self._multi_class = multi_class
        self._problems: list[tuple[Any, float]] = []  # of the lens: names and sums of weights
        decimals = int(decimals)
        names = ("decimals", "n_components", "kernel", "bandwidth", "random_state")
        self._options = select_arguments(locals(), names)
        self.classes: Any = None  # an array, once there are samples
        self.n_samples = 0
        self.total_weight = 0.0
        self._weights = [np.inf, -np.inf]  # bounds on the smallest and the largest weight
        self.subgroups: dict[Any, CalibrationState] = {}
        self._columns: tuple[Any, ...] = ()  # those whose values name the subgroups
        self._tallies: dict[str, Tally] = {}
        self._sums: FourierSums | None = None
        self._lock = Lock()  # held while samples are added

    def __repr__(self) -> str:
        text = f"{type(self).__name__}(n_samples={self.n_samples}"
        if self.classes is not None:
            text += f", classes={format_values(self.classes)}"
        return text + f", n_subgroups={len(self.subgroups)}" * bool(self.subgroups) + ")"

    def _attributes(self) -> dict[str, Any]:
        """A copy of the attributes at one moment, without the lock, which has no pickle."""
        attributes = vars(self).copy()
        del attributes["_lock"]
        return attributes

    def __copy__(self) -> Self:
        state = object.__new__(type(self))
        vars(state).update(self._attributes(), _lock=Lock())
        return state

    def __getstate__(self) -> tuple[bytes, bytes]:
        """The pickled attributes and their digest."""
        content = pickle.dumps(self._attributes(), protocol=5)
        return content, hashlib.sha256(content).digest()

    def __setstate__(self, saved: tuple[bytes, bytes]) -> None:
        content, digest = saved
        if hashlib.sha256(content).digest() != digest:
            raise ValueError(
                "A pickled CalibrationState must be unchanged; found another digest than that in "
                "it. Send or read it again, or store states with to_arrow."
            )
        vars(self).update(pickle.loads(content), _lock=Lock())
        if self.classes is not None:
            self.classes.flags.writeable = False  # an array from a pickle is writeable

    def update(
        self,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        by: Columns | None = None,
    ) -> Self:
        """Take more samples; a batch may be empty.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels: strings, integers or booleans.

        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities in [0, 1]. One-dimensional: of the last class.

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative sample weights, on the same scale in all updates; 1 by default.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
                default=None
            Subgroups, each of which gets a state of its own in `subgroups` besides. In all updates
            or in none, and always of the same columns: a column without a name is called "by".

        Returns
        -------
        self : object
            The state.
        """
        if _checks.are_empty(y_true, y_proba, () if sample_weight is None else sample_weight):
            return self
        with self._lock:
            data = self._check_data(y_true, y_proba, sample_weight)
            n, weight = num_samples(y_true), None
            if sample_weight is not None:
                used = check_sample_weight(sample_weight, n)[positive_weight_rows(sample_weight, n)]
                _checks.check_weights_can_be_squared(used, "sample_weight")
                weight = np.stack([used, used**2])
            subgroups = None if by is None else check_by(by, n, sample_weight)
            rows = RowWeights(None, weight)
            return self._replace_state(self._copy()._update(data, rows, subgroups))

    @classmethod
    @validate_params(
        {"resolution": [Interval(Real, 0, 1, closed="both")], "labels": "no_validation"},
        prefer_skip_nested_validation=False,  # the state judges its labels and options
    )
    def from_counts(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        count: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        squared_weight: ArrayLike | None = None,
        resolution: float = 0.0,
        labels: ArrayLike | None = None,
        by: Columns | None = None,
        **options: Any,
    ) -> Self:
        """A state of samples that were counted elsewhere, such as by GROUP BY in a database.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            The label of each row.

        y_proba : array-like of shape (n_rows,) or (n_rows, n_classes)
            Its probabilities.

        count : array-like of shape (n_rows,)
            How many samples it stands for.

        weight : array-like of shape (n_rows,), default=None
            The sum of their weights; by default each has weight 1.

        squared_weight : array-like of shape (n_rows,), default=None
            The sum of their squared weights; needed with `weight`.

        resolution : float, default=0.0
            The step to which the probabilities were rounded, which counts in the bounds. Those of
            confidences are infinite if it may have changed the predicted class of a row.

        labels : array-like of shape (n_classes,), default=None
            The classes, as in :class:`CalibrationState`.

        by : array-like, dict or data frame, default=None
            The subgroup of each row, as in `update`.

        **options : dict
            Further arguments of :class:`CalibrationState`.

        Returns
        -------
        state : CalibrationState
            The state.
        """
        state = cls(labels, **options)
        if _checks.are_empty(y_true, y_proba, count):
            return state
        n = len(as_array(y_true, "y_true"))
        counts = _checks.check_sample_counts(count, n)
        sums = _checks.check_sums(weight, squared_weight, counts)
        if state._multi_class is not None and resolution > 0:
            raise ValueError(
                "resolution must be 0 for a state with multi_class, whose problems may add up "
                f"rounding errors; found {resolution!r}. Count probabilities that are not rounded."
            )
        data = state._check_data(y_true, y_proba, counts)
        used = counts > 0
        rows = RowWeights(counts[used], None if sums is None else sums[:, used], resolution / 2)
        return state._update(data, rows, None if by is None else check_by(by, n, counts))

    def merge(self, other: "CalibrationState") -> Self:
        """Take all samples of another state, which stays as it is.

        Parameters
        ----------
        other : CalibrationState
            A state with the same arguments.

        Returns
        -------
        self : object
            The state.
        """
        _checks.check_mergeable(self, other)
        with self._lock:
            return self._replace_state(self._copy()._merge(copy(other)))

    def _merge(self, other: "CalibrationState") -> Self:
        _checks.check_mergeable(self, other)
        if other.n_samples == 0:
            return self
        if self.n_samples == 0:
            self._initialize(other.classes)
        self._add_problems(other._problems)
        for name, tally in self._tallies.items():
            tally.merge(other._tallies[name])
        if self._sums is not None and other._sums is not None:
            self._sums.merge(other._sums)
        self._columns = other._columns
        for label, state in other.subgroups.items():
            self.subgroups[label] = self._subgroup_to_update(label)._merge(state)
        self.n_samples += other.n_samples
        self.total_weight += other.total_weight
        self._widen(*other._weights)
        return self

    def to_arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels, probabilities and weights that metrics and displays take as they are.

        For more than two classes: whether the predicted class was right, the confidence, and
        weights. A row stands for all samples at a point of the grid that have a label. What depends
        on the number of samples would take a row for one: use `evaluate` for unbiased estimates,
        :class:`skcalib.hypothesis_tests.CalibrationTest` of the state for tests, and `sample` for
        intervals, bands and the report.

        Returns
        -------
        y_true : ndarray of shape (n_rows,)
            Labels.

        y_proba : ndarray of shape (n_rows,)
            Probabilities of the last class, or confidences.

        sample_weight : ndarray of shape (n_rows,)
            Sums of weights.
        """
        state = self._to_binary()
        rows = state._rows()
        return rows.classes[rows.label], rows.proba, rows.weight * state.total_weight

    @validate_params({"n_samples": [IntegerInterval(1), None]})
    def sample(
        self, n_samples: int | None = None, *, random_state: RandomState = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Single samples, for what needs them: intervals, the report, recalibrators.

        Parameters
        ----------
        n_samples : int, default=None
            How many are drawn at random without replacement, in random order; by default, or if
            there are not more, all. 10⁸ take some 10 s and 3 GB.

        random_state : int, RandomState instance or None, default=None
            Seed of the draw and of the order.

        Returns
        -------
        y_true : ndarray of shape (n_samples,)
            Labels; of more than two classes, whether the predicted class was right.

        y_proba : ndarray of shape (n_samples,)
            Probabilities of the last class, or confidences, at points of the grid.

        Raises
        ------
        ValueError
            If the weights differ, as single ones are not kept.
        """
        state = self._to_binary()
        _checks.check_single_weights(state, "Single samples of a state")
        rows, samples = state._rows(), state._tallies["binary"].sums.samples
        n = state.n_samples if n_samples is None else min(n_samples, state.n_samples)
        check_memory(40.0 * n, f"A sample of {n:,}", "Pass n_samples, such as n_samples=100_000.")
        seed = draw_seed(random_state)
        index = draw_from_counts(samples, n, np.random.default_rng(seed))
        return rows.classes[rows.label[index]], rows.proba[index]

    @property
    def is_binary(self) -> bool:
        """True if there are two classes."""
        has_two_classes = self.classes is not None and len(self.classes) == 2
        return has_two_classes and not self._is_multilabel

    @property
    def _is_multilabel(self) -> bool:
        return getattr(self._multi_class, "needs_indicator", False)

    @property
    def mean_rounding(self) -> float:
        """Mean distance between the predictions, or confidences, and their points on the grid."""
        n_problems = len(self._problems) if self._is_multilabel else 1
        total = self.total_weight * n_problems
        return float(self._tally.moves.sum() / total) if self.total_weight else 0.0

    @property
    def max_rounding(self) -> float:
        """The largest such distance."""
        return float(self._tally.max_moves.max())

    @property
    def _tally(self) -> Tally:
        """The tally of the predictions, or of the confidences."""
        return next(iter(self._tallies.values()), Tally(1, self._options["decimals"]))

    def confidence(self) -> "CalibrationState":
        """The state of the confidences of more than two classes, and whether they were right.

        Returns
        -------
        state : CalibrationState
            A state of the classes False and True.
        """
        _checks.check_multiclass(self)
        return self._make_binary_state(self._tallies["top-label"].merge_problems())

    def top_label(self) -> "dict[Any, CalibrationState]":
        """For each class, the state of the confidences with which it was predicted.

        Returns
        -------
        states : dict
            States of the classes False and True, by class. Empty ones for classes that were never
            predicted.
        """
        return self._make_binary_states("top-label")

    def classwise(self) -> "dict[Any, CalibrationState]":
        """For each class, the state of its probabilities, and whether it occurred.

        Returns
        -------
        states : dict
            States of the classes False and True, by class.
        """
        return self._make_binary_states("classwise")

    @overload
    def evaluate(
        self, metric: str | Callable, *, average: None, **params: object
    ) -> BoundedValue[np.ndarray]: ...

    @overload
    def evaluate(self, metric: str | Callable, **params: object) -> BoundedValue[float]: ...

    def evaluate(self, metric: str | Callable, **params: Any) -> BoundedValue:
        """A measure of all samples, and a bound on what the grid has changed.

        Parameters
        ----------
        metric : str or callable
            A metric of :mod:`skcalib.metrics`, or its name. Unbiased and debiased estimates are
            those of the samples. Any other callable gets the arrays of `to_arrays`, the weights as
            `sample_weight`.

        **params : dict
            Further arguments of the metric, such as `multi_class`.

        Returns
        -------
        evaluation : BoundedValue
            The pair of `value` and `bound`.
        """
        return evaluate_state(copy(self), metric, params)

    def to_arrow(self) -> Any:
        """The state as a table, which Parquet files can hold; needs pyarrow.

        Returns
        -------
        table : pyarrow.Table
            A row for each problem, point of the grid and event: "subgroup" (JSON), "problem"
            ("binary", "top-label" or "classwise"), "class" (its index), "probability", "event",
            "count", "weight" and "squared_weight". All else is in the metadata of its schema.
        """
        return to_table(copy(self))

    @classmethod
    def from_arrow(cls, table: Any) -> Self:
        """The state that a table of `to_arrow` holds.

        Parameters
        ----------
        table : pyarrow.Table
            The table, perhaps read from a Parquet file.

        Returns
        -------
        state : CalibrationState
            The state.
        """
        return from_table(cls, table)

    # Adding samples

    def _check_data(self, y_true: ArrayLike, y_proba: ArrayLike, sample_weight: Any) -> ClassData:
        classes = self._labels if self.classes is None else self.classes
        return check_predictions(
            y_true, y_proba, sample_weight, labels=classes, multi_class=self._multi_class
        )

    def _copy(self) -> Self:
        """Return a copy that can take more samples while this state stays as it is."""
        state = copy(self)
        state.subgroups = self.subgroups.copy()
        state._tallies = {name: copy_arrays(tally) for name, tally in self._tallies.items()}
        state._sums = self._sums and copy_arrays(self._sums)
        return state

    def _replace_state(self, other: Self) -> Self:
        """Take all that another state holds at once, or nothing if interrupted."""
        vars(self).update(other._attributes())
        return self

    def _subgroup_to_update(self, label: object) -> "CalibrationState":
        """Return the state of a subgroup, or a new one, to which samples can be added."""
        if label in self.subgroups:
            return self.subgroups[label]._copy()
        return type(self)(self._labels, multi_class=self._multi_class, **self._options)

    def _update(self, data: ClassData, rows: RowWeights, subgroups: Subgroups | None) -> Self:
        """Take checked samples, and those of each subgroup once more."""
        _checks.check_by_as_before(self, subgroups)
        self._add(data, rows)
        if subgroups is not None:
            self._columns = subgroups.names
            for label, subgroup_rows in zip(subgroups.labels, subgroups.rows(), strict=True):
                state = self.subgroups[label] = self._subgroup_to_update(label)
                state._add(data.take(subgroup_rows), rows.take(subgroup_rows))
        return self

    def _add(self, data: ClassData, rows: RowWeights) -> None:
        """Add checked samples to the tallies, in blocks."""
        if self.classes is None:
            self._initialize(data.classes)
        n, n_numbers = len(data.label), data.proba.size
        block_size = max(1, 2**20 * n // n_numbers)  # rows with a million probabilities
        for start in range(0, 0 if self._is_multilabel else n, block_size):
            block = slice(start, start + block_size)
            block_args = data.proba[block], data.label[block], rows.take(block)
            if self.is_binary:
                self._tallies["binary"].add(0, *block_args)
            else:
                add_classes(self._tallies, self._sums, *block_args)
        mass = float(np.broadcast_to(rows.mass, n).sum())
        lens = None if self._multi_class is None else _get_lens(self._multi_class)
        if lens is not None and not lens._is_identity(data):
            problems = list(data.iter_problems(lens))
            _check_all_rows([problem for *_, problem in problems], data, self._multi_class)
            self._add_problems([(name, mass * share) for name, share, _ in problems])
            for k, (*_, problem) in enumerate(problems):
                self._tallies["lens"].add(k, problem.proba, problem.label, rows)
        self.n_samples += n if rows.count is None else int(rows.count.sum())
        self.total_weight += mass
        self._widen(*rows.weights)

    def _add_problems(self, problems: list[tuple[Any, float]]) -> None:
        """Add the weights of the problems of a lens, which are always the same ones."""
        if problems and "lens" not in self._tallies:
            self._problems = [(name, 0.0) for name, _ in problems]
            self._tallies["lens"] = Tally(len(problems), self._options["decimals"])
        _checks.check_same_problems(self, problems)
        self._problems = [
            (name, before + weight)
            for (name, before), (_, weight) in zip(self._problems, problems, strict=True)
        ]

    def _widen(self, least: float, largest: float) -> None:
        """Widen the range of the weights of single samples."""
        self._weights = [min(self._weights[0], least), max(self._weights[1], largest)]

    def _initialize(self, classes: np.ndarray) -> None:
        """Make empty tallies for the classes."""
        decimals, n_components, *kernel = self._options.values()
        self.classes = classes.copy()
        self.classes.flags.writeable = False
        if self._is_multilabel:
            return
        if self.is_binary:
            self._tallies = {"binary": Tally(1, decimals)}
            return
        self._tallies = {name: Tally(len(classes), decimals) for name in ("top-label", "classwise")}
        if n_components:
            self._sums = FourierSums(len(classes), n_components, *kernel)

    # Reading

    def _to_binary(self) -> "CalibrationState":
        """Return this state, or its confidences for more than two classes; refuse empty ones."""
        state = copy(self)
        _checks.check_not_empty(state)
        return state if state.is_binary else state.confidence()

    def _rows(self) -> ClassData:
        """Return data of two classes, one row for each point of the grid and label."""
        return self._tallies["binary"].to_data(self.classes)

    def _to_test_data(self, metric_params: dict[str, Any]) -> ClassData:
        """Return the counts, from which a test draws numbers of events."""
        _checks.check_can_be_tested(self)
        check_metric_params(metric_params)
        return self._tally.shares(self.classes)

    def _iter_lens_problems(self) -> Iterator[tuple[Any, float, ClassData]]:
        """Yield the name, the weight and the data of each problem of the lens."""
        for k, (name, weight) in enumerate(self._problems):
            problem = self._tallies["lens"].take_problem(k)
            yield name, weight / self.total_weight, problem.to_data(_BINARY_CLASSES)

    def _make_binary_state(self, tally: Tally) -> "CalibrationState":
        """Return the state of two classes with the tally of a single problem."""
        state = CalibrationState(_BINARY_CLASSES, **self._options)
        state.classes, state._tallies = _BINARY_CLASSES, {"binary": tally}
        state.n_samples = int(tally.sums.samples.sum())
        state.total_weight = float(tally.sums.weights[0].sum())
        state._weights = self._weights if state.n_samples else state._weights
        return state

    def _make_binary_states(self, name: str) -> "dict[Any, CalibrationState]":
        _checks.check_multiclass(self)
        make, take = self._make_binary_state, self._tallies[name].take_problem
        return {label: make(take(k)) for k, label in enumerate(self.classes.tolist())}
