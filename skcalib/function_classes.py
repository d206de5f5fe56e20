"""Convex classes of weight functions for :func:`skcalib.metrics.weighted_calibration_error`."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

from ._guesses import guess_other_names
from ._inputs.scikit_learn import Interval, get_literal_constraints, validate_parameter_constraints
from ._inputs.warnings import check_memory, warn_if_slow
from ._statistics import kernels

__all__ = [
    "Bounded",
    "FunctionClass",
    "Lipschitz",
    "Monotone",
    "RKHSBall",
    "Sign",
    "TotalVariation",
]

guess_other_names(__name__)

# Up to this many points, `Lipschitz` constrains all pairs at once.
_MAX_PAIRED_POINTS = 64

# For more points, it starts with the pairs of each point and this many neighbours. In every round
# it adds this many of the violated pairs of each point.
_PAIRS_PER_POINT = 6

# In this many rounds, pairs that stay far below their limit are removed again.
_MAX_THINNING_ROUNDS = 5

# A solution may violate a limit by this share of the largest limit.
_LIMIT_RTOL = 1e-8

# Bytes for each point of a line, and seconds for each pair, that linear programs take; and seconds
# for each triple of points that others take.
_BYTES_OF_A_POINT, _SECONDS_OF_A_PAIR, _SECONDS_OF_A_TRIPLE = 7.5e3, 1.2e-8, 5e-9

_NON_NEGATIVE = [Interval(Real, 0, None, closed="left")]


class FunctionClass:
    """Base of the classes of weight functions; subclass it to write your own.

    A class says what its functions satisfy at the predictions, as constraints of CVXPY. Classes are
    intersected with ``&``, which this base supplies; any object with a method `constraints` may be
    used.

    See Also
    --------
    skcalib.metrics.weighted_calibration_error : The largest residual that such functions see.

    Examples
    --------
    Functions that are constant in ten bins, and at most 1, give the binned error:

    >>> import numpy as np
    >>> from skcalib.function_classes import Bounded, FunctionClass
    >>> from skcalib.metrics import weighted_calibration_error
    >>> class ConstantInBins(FunctionClass):
    ...     def constraints(self, points, values):
    ...         same_bin = np.diff(np.floor(10 * points)) == 0
    ...         step = values[1:] - values[:-1]
    ...         return [step[same_bin] == 0]
    >>> y_true, y_proba = [0, 1, 0, 1], [0.25, 0.25, 0.61, 0.63]
    >>> error = weighted_calibration_error(
    ...     y_true, y_proba, function_class=ConstantInBins() & Bounded()
    ... )
    >>> round(error, 9)
    0.185
    """

    def constraints(self, points: np.ndarray, values: np.ndarray) -> list:
        """Constraints on the values of a function at the predictions.

        Parameters
        ----------
        points : ndarray of shape (n_points,) or (n_points, n_classes)
            The distinct predictions in increasing order: probabilities of the positive class, or
            rows of probabilities.

        values : cvxpy.Expression of the shape of `points`
            The values of the function there: numbers, or one vector for each row.

        Returns
        -------
        constraints : list of cvxpy.Constraint
            Together they must be convex (follow the rules of disciplined convex programming).
        """
        raise NotImplementedError(f"{type(self).__name__} must define constraints(points, values).")

    def _resolve(self, points: np.ndarray, weight: np.ndarray) -> Any:
        """Return the class with the parameters that depend on the samples (n, …)."""
        return self

    def __and__(self, other: object) -> "FunctionClass":
        return _Intersection((self, other)) if _is_function_class(other) else NotImplemented

    def __rand__(self, other: object) -> "FunctionClass":
        return _Intersection((other, self)) if _is_function_class(other) else NotImplemented


def _is_function_class(other: object) -> bool:
    """True for an instance with `constraints`; a type has that, too, but no parameters."""
    return hasattr(other, "constraints") and not isinstance(other, type)


def _resolve_for_sample(function_class: Any, points: np.ndarray, weight: np.ndarray) -> Any:
    """Return the class with the parameters that depend on samples with these weights, (n,)."""
    has_resolve = hasattr(function_class, "_resolve")  # classes of a user need only `constraints`
    return function_class._resolve(points, weight) if has_resolve else function_class


def _iter_programs(function_class: Any, points: np.ndarray, values: Any) -> Iterator[list | None]:
    """Yield lists of constraints to solve one after the other.

    The first list may lack some constraints. After each solution for `values` comes the next list,
    or None if the solution satisfies all constraints.
    """
    if hasattr(function_class, "_iter_programs"):
        yield from function_class._iter_programs(points, values)
    else:
        yield function_class.constraints(points, values)
        yield from itertools.repeat(None)


@dataclass(frozen=True)
class _Intersection(FunctionClass):
    classes: tuple

    def _resolve(self, points: np.ndarray, weight: np.ndarray) -> Any:
        resolved = [_resolve_for_sample(each, points, weight) for each in self.classes]
        return _Intersection(tuple(resolved))

    def constraints(self, points: np.ndarray, values: np.ndarray) -> list:
        return [
            constraint
            for function_class in self.classes
            for constraint in function_class.constraints(points, values)
        ]

    def _iter_programs(self, points: np.ndarray, values: Any) -> Iterator[list | None]:
        programs = [
            _iter_programs(function_class, points, values) for function_class in self.classes
        ]
        lists: list[Any] = [next(program) for program in programs]
        while True:
            yield [constraint for constraints in lists for constraint in constraints]
            while (news := [next(program) for program in programs]) == [None] * len(news):
                yield None
            lists = [old if new is None else new for old, new in zip(lists, news, strict=True)]

    def __repr__(self) -> str:
        return " & ".join(map(repr, self.classes))


class _Checked(FunctionClass):
    """A class whose parameters obey their annotations and the `_parameter_constraints`."""

    _parameter_constraints: ClassVar[dict] = {"bound": _NON_NEGATIVE, "constant": _NON_NEGATIVE}

    def __post_init__(self) -> None:
        rules = get_literal_constraints(type(self).__init__) | self._parameter_constraints
        validate_parameter_constraints(rules, vars(self), caller_name=type(self).__name__)


@dataclass(frozen=True)
class Lipschitz(_Checked):
    r"""Functions that change at most `constant` times as much as their argument.

    Two classes: :math:`|f(p) - f(q)| \le L |p - q|`. More classes: :math:`\|f(p) - f(q)\|_2 \le L
    \|p - q\|_2` with Euclidean norms of the values and of the probability vectors.

    Parameters
    ----------
    constant : float, default=1.0
        The Lipschitz constant L; 0 leaves the constant functions.

    See Also
    --------
    skcalib.metrics.smooth_calibration_error : ``Lipschitz() & Bounded()``, fast.

    Notes
    -----
    Alone the class is unbounded, unless the mean residual is 0. On a line only neighbours are
    compared, otherwise all pairs of the m distinct predictions (:math:`O(m^2)` second-order cones).
    For m above 64 pairs are added until the solution violates none by more than 1e-8 of the largest
    distance.

    Examples
    --------
    >>> from skcalib.function_classes import Bounded, Lipschitz
    >>> Lipschitz(2.0) & Bounded()
    Lipschitz(constant=2.0) & Bounded(bound=1.0)
    """

    constant: float = 1.0

    def constraints(self, points: np.ndarray, values: np.ndarray) -> list:
        import cvxpy

        if len(points) == 1:
            return []
        if points.ndim == 1:
            _check_line_fits(len(points))
            return [cvxpy.abs(values[1:] - values[:-1]) <= self.constant * np.diff(points)]
        i, j = np.triu_indices(len(points), 1)  # the pairs of pdist, in its order
        return [cvxpy.norm(values[i] - values[j], 2, axis=1) <= self.constant * pdist(points)]

    def _iter_programs(self, points: np.ndarray, values: Any) -> Iterator[list | None]:
        """Yield all constraints at once, or those of near pairs and then also of violated pairs.

        The pairs always link all points, so that the program is bounded if that of all pairs is.
        """
        import cvxpy

        is_overridden = type(self).constraints is not Lipschitz.constraints
        are_few = points.ndim == 1 or len(points) <= _MAX_PAIRED_POINTS or self.constant == 0
        if is_overridden or are_few:
            yield self.constraints(points, values)
            yield from itertools.repeat(None)
        _check_pairs_fit("Lipschitz() of K classes", len(points), 6)
        limit = self.constant * squareform(pdist(points))
        edges = 1 + limit / limit.max()  # SciPy takes what is nearly 0 for no edge
        links = _symmetric(minimum_spanning_tree(edges).toarray() > 0)
        pairs = links | _smallest_per_row(limit + np.diag(np.full(len(limit), np.inf)))
        for n_rounds in itertools.count():
            i, j = np.nonzero(np.triu(pairs))
            yield [cvxpy.norm(values[i] - values[j], 2, axis=1) <= limit[i, j]]
            while True:
                slack = limit - squareform(pdist(values.value))
                is_violated = (slack < -_LIMIT_RTOL * limit.max()) & ~pairs
                if is_violated.any():
                    break
                yield None
            if n_rounds < _MAX_THINNING_ROUNDS:
                pairs &= slack <= 0.01 * np.maximum(limit, 0.01 * limit.max())
                pairs |= links
            pairs |= is_violated & _smallest_per_row(np.where(is_violated, slack, np.inf))


def _check_line_fits(n_points: int) -> None:
    """Refuse more points of a line than the memory of HiGHS holds; warn if pairs take long."""
    task = f"Lipschitz() at {n_points} distinct predictions"
    remedy = "Pass predictions rounded to fewer values, or call smooth_calibration_error."
    check_memory(_BYTES_OF_A_POINT * n_points, task, remedy)
    warn_if_slow(_SECONDS_OF_A_PAIR * n_points**2, task, remedy)


def _check_pairs_fit(name: str, n_points: int, n_matrices: int) -> None:
    """Refuse programs whose numbers for all pairs of points exceed the memory."""
    check_memory(
        8.0 * n_matrices * n_points**2,
        f"{name} at {n_points} distinct predictions",
        "Pass a random subsample of the rows, or predictions rounded to fewer values.",
    )


def _smallest_per_row(matrix: np.ndarray) -> np.ndarray:
    """Return the mask of the smallest entries per row of a symmetric matrix, made symmetric."""
    smallest = np.zeros(matrix.shape, dtype=bool)
    columns = np.argpartition(matrix, _PAIRS_PER_POINT, axis=1)[:, :_PAIRS_PER_POINT]
    np.put_along_axis(smallest, columns, True, axis=1)
    return _symmetric(smallest)


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return matrix | matrix.T


@dataclass(frozen=True)
class Bounded(_Checked):
    """Functions whose absolute value (of each component) is at most `bound`.

    Parameters
    ----------
    bound : float, default=1.0
        The largest absolute value.

    Notes
    -----
    Alone, this class gives the mean absolute residual of the distinct predictions (L1 norm for more
    than two classes). Unless samples share predictions, that measures sharpness rather than
    calibration.

    Examples
    --------
    >>> from skcalib.function_classes import Bounded
    >>> from skcalib.metrics import weighted_calibration_error
    >>> weighted_calibration_error([0, 1, 1, 1], [0.5] * 4, function_class=Bounded())
    0.25
    """

    bound: float = 1.0

    def constraints(self, points: np.ndarray, values: np.ndarray) -> list:
        import cvxpy

        return [cvxpy.abs(values) <= self.bound]


@dataclass(frozen=True)
class Sign(_Checked):
    """Functions without negative values (in any component), or without positive ones.

    With two classes, functions without negative values see outcomes that are more frequent than
    predicted, those without positive values outcomes that are less frequent.

    Parameters
    ----------
    positive : bool, default=True
        Whether the values are at least 0 or at most 0.

    Notes
    -----
    Alone the class is a cone, whose error is 0 or unbounded.

    Examples
    --------
    >>> from skcalib.function_classes import Bounded, Lipschitz, Sign
    >>> from skcalib.metrics import weighted_calibration_error
    >>> smooth = Lipschitz() & Bounded()
    >>> y_true, y_proba = [0, 0, 0, 1], [0.5] * 4
    >>> weighted_calibration_error(y_true, y_proba, function_class=smooth & Sign(positive=True))
    0.0
    >>> weighted_calibration_error(y_true, y_proba, function_class=smooth & Sign(positive=False))
    0.25
    """

    positive: bool = True

    def constraints(self, points: np.ndarray, values: np.ndarray) -> list:
        return [values >= 0 if self.positive else values <= 0]


@dataclass(frozen=True)
class Monotone(_Checked):
    """Monotone functions.

    With more than two classes each component is a monotone function of the probability of its own
    class alone.

    Parameters
    ----------
    increasing : bool, default=True
        Whether the functions are non-decreasing or non-increasing.

    Notes
    -----
    Alone the class is a cone, whose error is 0 or unbounded.

    Examples
    --------
    Predictions that are not extreme enough are seen by increasing functions:

    >>> from skcalib.function_classes import Bounded, Monotone
    >>> from skcalib.metrics import weighted_calibration_error
    >>> y_true, y_proba = [0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75]
    >>> weighted_calibration_error(y_true, y_proba, function_class=Monotone() & Bounded())
    0.25
    >>> weighted_calibration_error(y_true, y_proba, function_class=Monotone(False) & Bounded())
    0.0
    """

    increasing: bool = True

    def constraints(self, points: np.ndarray, values: np.ndarray) -> list:
        constraints = []
        for k, point in enumerate(points.reshape(len(points), -1).T):
            value = values if points.ndim == 1 else values[:, k]
            if len(point) == 1:
                continue
            order = np.argsort(point)
            step = value[order[1:]] - value[order[:-1]]
            tied = np.diff(point[order]) == 0  # only if there are other components
            constraints.append(step >= 0 if self.increasing else step <= 0)
            if tied.any():
                constraints.append(step[tied] == 0)
        return constraints


@dataclass(frozen=True)
class TotalVariation(_Checked):
    """Functions on [0, 1] whose total variation is at most `bound`; for two classes.

    Parameters
    ----------
    bound : float, default=1.0
        The largest total variation; 0 leaves the constant functions.

    zero_outside : {"left", "right", "both"} or None, default=None
        Where the functions are extended by 0: below 0, above 1, or both. The jump from or to that
        0 counts as variation.

    See Also
    --------
    skcalib.metrics.cumulative_calibration_error : The Kolmogorov–Smirnov and Kuiper forms, fast.

    Notes
    -----
    Consider the cumulative sums of the residuals over the sorted predictions, starting at 0. A
    bound of 1 with zeros on the right gives their largest absolute value (Kolmogorov–Smirnov). A
    bound of 2 with zeros on both sides gives their range (Kuiper). Functions that are extended by 0
    nowhere are unbounded, unless the mean residual is 0.

    Examples
    --------
    >>> from skcalib.function_classes import TotalVariation
    >>> from skcalib.metrics import weighted_calibration_error
    >>> kuiper = TotalVariation(bound=2, zero_outside="both")
    >>> weighted_calibration_error([0, 1], [0.25, 0.25], function_class=kuiper)
    0.25
    """

    bound: float = 1.0
    zero_outside: Literal["left", "right", "both"] | None = None

    def constraints(self, points: np.ndarray, values: np.ndarray) -> list:
        import cvxpy

        if points.ndim == 2:
            raise ValueError(
                "TotalVariation is a class of functions of one probability; found the "
                f"probabilities of {points.shape[1]} classes. Choose another function_class, or "
                "multi_class='classwise', 'confidence' or 'top-label'."
            )
        before = [0.0] if self.zero_outside in ("left", "both") else []
        after = [0.0] if self.zero_outside in ("right", "both") else []
        extended = cvxpy.hstack([*before, values, *after])
        if extended.size == 1:
            return []
        return [cvxpy.sum(cvxpy.abs(extended[1:] - extended[:-1])) <= self.bound]


@dataclass(frozen=True)
class RKHSBall(_Checked):
    r"""Functions of norm at most `radius` in the Hilbert space of a reproducing kernel.

    Two classes: functions of the probability of the positive class. More classes: one function of
    the probability vector for each class, in the space of the matrix-valued kernel
    :math:`\tilde{k} I`, whose squared norm is the sum of theirs.

    Parameters
    ----------
    kernel : {"laplacian", "exponential", "total-variation", "rbf"} or callable, \
            default="laplacian"
        Kernel exp(−d/ν) with d = ‖s − t‖₁, with the Euclidean distance, or with the total variation
        distance ½‖s − t‖₁; or exp(−‖s − t‖₂²/(2ν²)). With two classes all these distances are
        :math:`|s - t|`. Or a :class:`sklearn.gaussian_process.kernels.Kernel` without a
        `WhiteKernel`, or any symmetric positive definite function of arrays of shapes (a, c) and
        (b, c) with values of shape (a, b); c is 1 for two classes, otherwise their number.

    bandwidth : "median" or float, default=1.0
        The ν of a named kernel; "median" as in
        :func:`skcalib.metrics.squared_kernel_calibration_error`.

    radius : float, default=1.0
        The largest norm.

    See Also
    --------
    skcalib.metrics.laplace_kernel_calibration_error : ``RKHSBall()`` for two classes, fast.
    skcalib.metrics.squared_kernel_calibration_error : Squares of such errors, fast.

    Notes
    -----
    Alone, with radius 1 and :math:`c_i = w_i r_i`, this class gives :math:`(\sum_{i,j} k(p_i, p_j)
    \langle c_i, c_j \rangle)^{1/2}`. For more than two classes that is the square root of the
    biased :func:`~skcalib.metrics.squared_kernel_calibration_error`. For two it is the square root
    of half of that, with "total-variation".

    The functions are :math:`f = K^{1/2} \beta` at the predictions, with :math:`\|\beta\| \le` the
    radius: nothing is inverted. Cost: :math:`O(m^3)` for m distinct predictions.

    Examples
    --------
    >>> from skcalib.function_classes import RKHSBall
    >>> from skcalib.metrics import weighted_calibration_error
    >>> error = weighted_calibration_error(
    ...     [0, 1], [0.0, 0.5], function_class=RKHSBall("laplacian", bandwidth=0.2)
    ... )
    >>> round(error, 6)
    0.25
    """

    _parameter_constraints: ClassVar[dict] = kernels.KERNEL_CONSTRAINTS | {"radius": _NON_NEGATIVE}

    kernel: str | Callable = "laplacian"
    bandwidth: float | Literal["median"] = 1.0
    radius: float = 1.0

    def constraints(self, points: np.ndarray, values: np.ndarray) -> list:
        import cvxpy

        _check_pairs_fit("RKHSBall()", len(points), 4)
        warn_if_slow(
            _SECONDS_OF_A_TRIPLE * len(points) ** 3,
            f"RKHSBall() at {len(points)} distinct predictions",
            "Call squared_kernel_calibration_error, whose square root it is.",
        )
        eigenvalue, vector = kernels.check_semidefinite(self._gram(points), "kernel")
        root = vector * np.sqrt(np.maximum(eigenvalue, 0))  # root @ root.T is the Gram matrix
        coordinates = cvxpy.Variable(values.shape)
        return [values == root @ coordinates, cvxpy.pnorm(coordinates, 2) <= self.radius]

    def _resolve(self, points: np.ndarray, weight: np.ndarray) -> Any:
        if callable(self.kernel) or self.bandwidth != "median":
            return self
        family = self._family(points)
        bandwidth = kernels.median_bandwidth(points, weight, family.metric, family.scale)
        return replace(self, bandwidth=bandwidth)

    def _family(self, points: np.ndarray) -> kernels.KernelFamily:
        family = kernels.KERNELS[str(self.kernel)]
        # every distance on a line is |s − t|
        return family._replace(scale=1.0) if points.ndim == 1 else family

    def _gram(self, points: np.ndarray) -> np.ndarray:
        """Return the kernel values of all pairs of points, (m, m)."""
        rows = points.reshape(len(points), -1)
        if callable(self.kernel):
            gram = np.asarray(kernels.check_kernel(self.kernel, rows)(rows, rows), dtype=np.float64)
            kernels.check_finite_kernel(gram)
            return gram
        ball = self._resolve(points, np.ones(len(points)))
        return kernels.kernel_values(rows, rows, self._family(points), ball.bandwidth)
