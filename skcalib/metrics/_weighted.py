"""The general form of the calibration errors: a supremum over a class of weight functions."""

import os
from functools import cache
from threading import Lock
from typing import Any, Literal

import numpy as np

from .. import function_classes
from .._data import ClassData, check_predictions
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import Average, HasMethods, Label
from ..function_classes import Bounded, FunctionClass, Lipschitz
from ..lenses import Lens
from ._binned import pool_class_residuals
from ._reductions import reduce_classes
from ._registry import register_metric, select_options
from ._smooth import smooth_errors

SMOOTH = Lipschitz() & Bounded()

# The class of the smooth calibration error, in either order.
_SMOOTH_CLASSES = (SMOOTH, Bounded() & Lipschitz())

# The smallest tolerances that HiGHS takes. By default constraints may be missed by 1e-7.
HIGHS_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}

_LICENCE_LOCK = Lock()


def _weighted_error(data: ClassData, function_class: FunctionClass) -> float:
    if isinstance(function_class, type):
        name = function_class.__name__
        raise TypeError(
            f"function_class must be an instance; found the type {name} itself. Write {name}()."
        )
    if data.is_binary and function_class in _SMOOTH_CLASSES:
        return smooth_errors([data])[0]
    import cvxpy

    proba = data.proba.astype(np.float64, copy=False)
    function_class = function_classes._resolve_for_sample(function_class, proba, data.weight)
    if data.is_binary:
        points, mass = data.pool_residuals()
    else:
        points, columns = pool_class_residuals(data)
        points, mass = points.astype(np.float64, copy=False), np.column_stack([*columns])
    scale = np.abs(mass).max() or 1.0  # the tolerances of solvers are absolute
    values = cvxpy.Variable(mass.shape)
    residual = cvxpy.sum(cvxpy.multiply(mass / scale, values))
    programs = function_classes._iter_programs(function_class, points, values)
    constraints = next(programs)
    while True:
        constraints = check_constraints(constraints, function_class)
        _solve(cvxpy.Problem(cvxpy.Maximize(residual), constraints), function_class)
        constraints = next(programs)
        if constraints is None:  # the solution satisfies all
            break
    return float(np.vdot(mass, values.value))


@cache
def _silence_licence() -> None:
    """Make HiGHS print its licence, as it does once in each process, into os.devnull."""
    import highspy

    try:
        stdout = os.dup(1)
    except OSError:  # there is no standard output
        return
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        try:
            highspy.Highs()
        finally:
            os.dup2(stdout, 1)
            os.close(stdout)


def _solve(problem: Any, function_class: FunctionClass) -> None:
    """Solve the convex program; if that is impossible, raise an error that says why."""
    import cvxpy

    # with a linear objective, a program that CVXPY calls quadratic is linear
    is_linear = problem.is_qp() and "HIGHS" in cvxpy.installed_solvers()
    if is_linear:
        with _LICENCE_LOCK:  # a second thread would save os.devnull as standard output
            _silence_licence()
    solver, options = ("HIGHS", dict(HIGHS_OPTIONS)) if is_linear else ("CLARABEL", {})
    try:  # in steps, as Problem.solve would warn, too, if the status is bad
        program, chain, inverse_data = problem.get_problem_data(solver, solver_opts=options)
        result = chain.solve_via_data(problem, program, solver_opts=options)
        solution = chain.invert(result, inverse_data)
        status = solution.status
    except cvxpy.DCPError as error:
        raise ValueError(
            f"function_class must have convex constraints; found those of {function_class!r}, "
            f"which CVXPY does not recognise as convex: {error}"
        ) from error
    except cvxpy.SolverError as error:
        status = str(error)
    if status == "optimal":
        problem.unpack(solution)
        return
    if status == "unbounded":
        raise ValueError(
            f"function_class must be bounded on the predictions; found {function_class!r}, some of "
            "whose functions make the weighted sum of the residuals arbitrarily large (Lipschitz, "
            "Monotone and TotalVariation alone contain all constants). Intersect it with Bounded()."
        )
    if status in ("infeasible", "infeasible_or_unbounded"):
        raise ValueError(
            "function_class must contain a function; found that none satisfies the constraints of "
            f"{function_class!r} (or that it is not bounded). Correct the constraints, or "
            "intersect it with Bounded()."
        )
    raise RuntimeError(
        f"The convex program of {function_class!r} could not be solved (status: {status}). Scale "
        "the class so that its functions are of the order of 1, or round the predictions."
    )


_weighted_calibration_error = reduce_classes(_weighted_error)


@register_metric(
    _weighted_calibration_error,
    {"function_class": [HasMethods("constraints")]},
    cost="minutes for more than two classes and some hundred samples",
    may_be_negative=True,
    is_selectable=False,
)
def weighted_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    function_class: FunctionClass = SMOOTH,
    multi_class: Literal["canonical", "confidence", "top-label", "classwise"] | Lens = "canonical",
    average: Average = "auto",
) -> float | np.ndarray:
    r"""Weighted calibration error: the largest residual that functions of a given class can see.

    It is 0 if outcomes and predictions agree on average under every weight function of the class;
    on a finite sample of a calibrated model it is positive (biased upwards), the more so the richer
    the class. Smooth, kernel, cumulative and binned errors are of this form; here the class is
    yours, by convex programming.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    function_class : object with a method `constraints`, default=Lipschitz() & Bounded()
        The class of weight functions: one of :mod:`skcalib.function_classes`, an intersection of
        them, or your own (see :class:`skcalib.function_classes.FunctionClass`).

    multi_class : {"canonical", "confidence", "top-label", "classwise"} or Lens, default="canonical"
        More than two classes: functions of the whole probability vector, with one value for each
        class; or the problems of :func:`smooth_calibration_error`. Or a lens of
        :mod:`skcalib.lenses`.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        "macro" is the mean over classes. "weighted" weights classes by their share of the
        predictions ("top-label") or labels ("classwise"). "auto" is "weighted" for "top-label",
        else "macro". None returns the array of all values, even if there is only one. A class that
        is never predicted is NaN, and left out of means.

    Returns
    -------
    error : float or ndarray of shape (n_classes,)
        Non-negative if the class contains 0, as those of :mod:`skcalib.function_classes` do; 0 is
        best.

    Raises
    ------
    ValueError
        If the class is unbounded on these predictions, or empty.
    RuntimeError
        If the solver fails or does not reach its accuracy.

    See Also
    --------
    smooth_calibration_error : The default class for two classes, which calls it.
    squared_kernel_calibration_error : The square for the ball of a reproducing kernel's space.

    Notes
    -----
    With weights :math:`w_i` that sum to 1 and a class :math:`\mathcal{F}` the error is

    .. math:: \mathrm{CE}[\mathcal{F}] = \sup_{f \in \mathcal{F}} \sum_i w_i f(p_i)^\top r_i.

    With two classes :math:`f` is a function of the probability of the positive class and :math:`r_i
    = y_i - p_i` (Definition 7.1 of [1]_). With more, :math:`f` maps probability vectors to vectors
    and :math:`r_i = e_{y_i} - p_i` (Definition 2 of [2]_).

    Ties are pooled; probabilities 0 and 1 need no clipping. CVXPY solves the problem for the m
    distinct predictions: linear programs with HiGHS, to about 1e-10, others (balls of reproducing
    kernels, Lipschitz functions of more than two classes) with Clarabel, to about 1e-8. The default
    of two classes needs no solver.

    References
    ----------
    .. [1] Błasiok, Gopalan, Hu and Nakkiran (2023). A Unifying Theory of Distance from Calibration.
       STOC. :arxiv:`2211.16886`
    .. [2] Widmann, Lindsten and Zachariah (2019). Calibration tests in multi-class classification:
       A unifying framework. NeurIPS. :arxiv:`1910.11385`

    Examples
    --------
    >>> from skcalib.function_classes import Bounded, Monotone
    >>> from skcalib.metrics import weighted_calibration_error
    >>> y_true, y_proba = [0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8]
    >>> round(weighted_calibration_error(y_true, y_proba), 9)
    0.04
    >>> monotone = Monotone() & Bounded()
    >>> round(weighted_calibration_error(y_true, y_proba, function_class=monotone), 9)
    0.1
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    return _weighted_calibration_error(data, **select_options(locals()))


def check_constraints(constraints: Any, function_class: FunctionClass) -> list:
    """Refuse constraints of a user's class that are no list."""
    if not isinstance(constraints, list | tuple):
        raise TypeError(
            f"function_class must return a list of constraints; found {constraints!r} from "
            f"{function_class!r}. Put it into a list."
        )
    return list(constraints)
