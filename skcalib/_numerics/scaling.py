"""Softmax regression on log-probabilities, solved to the optimum.

The loss is the weighted cross-entropy between targets t and the softmax of scores s, which are
linear in the parameters: Σ_i w_i (log Σ_k exp s_ik − Σ_k t_ik s_ik). It is convex.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from . import array_api
from .array_api import MIN_DENOMINATOR, Array, array_namespace
from .logits import SAMPLE_SIZE, iter_row_blocks, softmax_in_place
from .newton import CURVATURE_RTOL, LOSS_RTOL, Solve, conjugate_gradients, line_search
from .scaling_designs import Design

# A fit ends after a Newton step that promises to lower the loss by no more than this: convergence
# is quadratic, so that the error left is below rounding.
_DECREASE_ATOL = 1e-16

# A fit ends one step earlier if the next one would promise less than this, as far as can be told
# from how fast promises fall and how exact the last step was. The gradient then is rounding, too.
_LAST_DECREASE_ATOL = 1e-24

# With more numbers than the first, a step is not taken if it promises less than the second times
# K/n: fitting K numbers to n labels costs K/2n by chance. The promise is reliable if the residual
# of conjugate gradients is at most the third.
_MAX_EXACT_ENTRIES, _DECREASE_PER_ENTRY, _SURE_RESIDUAL_RTOL = 10**7, 1e-4, 1e-2

# With more inputs than the first number above, products with the Hessian are in single precision;
# with more than this fraction of it, if each input is multiplied with all parameters of a class.
# Only steps depend on it.
_MIXING_SHARE = 0.005

# A product with inputs of a wider range needs double precision.
_MAX_SINGLE_RANGE = 1e3

# Replaces `_DECREASE_ATOL` where rounding keeps the step from halving the gradient.
_STALLED_DECREASE_ATOL = 1e-12

# Where predictions are certain and wrong, the curvature is too small. So a step is shortened until
# it changes no parameter by more than the first number, or no difference of two scores of a row by
# more than the second.
_MAX_PARAMETER_STEP, _MAX_SCORE_STEP = 30.0, 30.0

# The preconditioner is kept after steps that change differences of scores by no more than this.
_SMALL_SCORE_STEP = 0.5

# Probabilities below this have no effect on curvatures. In single precision, numbers below 1e-38
# make products slow.
_MIN_SHARE = 1e-30

# A parameter with a larger penalty stays at the start, as with an infinite one: it would move by
# rounding only, and products with the penalty drown all others.
_MAX_PENALTY = 1e16

# Where there is no optimum, a Newton step moves the scores by about one.
_MAX_SCALING_STEPS = 100


@dataclass(eq=False)
class SoftmaxProblem:
    """The data and the penalty: everything the loss depends on but the parameters.

    There is memory for the probabilities of one point: new memory costs time.
    """

    design: Design
    inputs: Array  # (n, K)
    target: Array  # (n, K)
    weight: Array  # (n,)
    start: Array  # (d, K)
    penalty: Array  # (d, K), infinite for a parameter that stays at the start
    offset: Array = None  # (n, K), added to the scores
    latest: Array = None  # (d, K), the parameters whose probabilities are in memory

    @cached_property
    def is_fixed(self) -> Array:
        return self.penalty > _MAX_PENALTY

    @cached_property
    def finite_penalty(self) -> Array:
        return array_namespace(self.penalty).where(self.is_fixed, 0.0, self.penalty)

    @cached_property
    def product_inputs(self) -> Array:
        """The inputs in the precision of products with the Hessian."""
        inputs, xp = self.inputs, array_namespace(self.inputs)
        share = _MIXING_SHARE if self.design.mixes_classes else 1
        are_many = math.prod(inputs.shape) > _MAX_EXACT_ENTRIES * share
        is_single = are_many and float(xp.max(inputs) - xp.min(inputs)) <= _MAX_SINGLE_RANGE
        return array_api.as_type(inputs, xp.float32) if is_single else inputs

    @cached_property
    def proba(self) -> Array:
        """The softmax of the scores of the latest point (n, K), in the precision of products."""
        dtype = self.product_inputs.dtype
        return array_namespace(self.target).empty_like(self.target, dtype=dtype)

    def blocks(self) -> Iterator[slice]:
        n, n_classes = self.target.shape
        min_rows = n_classes if self.design.mixes_classes else 1
        return iter_row_blocks(n, n_classes, min_rows=min_rows, like=self.target)

    def scores(self, parameters: Array, rows: slice) -> Array:
        """The scores of a slice of rows (b, K), with their offset."""
        scores = self.design.scores(parameters, self.inputs[rows, :])
        if self.offset is not None:
            scores += self.offset[rows, :]
        return scores

    def evaluate(self, parameters: Array) -> "Point":
        """The loss and its gradient at the parameters."""
        xp, deviation = array_namespace(parameters), parameters - self.start
        gradient = self.finite_penalty * deviation
        value = array_api.dot(deviation, gradient) / 2
        for rows in self.blocks():
            inputs, target, weight = self.inputs[rows, :], self.target[rows, :], self.weight[rows]
            scores = self.scores(parameters, rows)
            scores -= xp.max(scores, axis=1, keepdims=True)
            score = array_api.row_dots(target, scores)
            share = array_api.apply_out("exp", scores, out=scores)
            total = xp.sum(share, axis=1)
            share /= total[:, None]
            self.proba[rows, :] = xp.where(share > _MIN_SHARE, share, 0.0)
            value += weight @ xp.log(total)
            value -= weight @ score
            share -= target
            share *= weight[:, None]
            gradient += self.design.adjoint(share, inputs)
        gradient[self.is_fixed] = 0.0
        self.latest = parameters
        return Point(self, parameters, float(value), gradient)

    def max_score_change(self, step: Array) -> float:
        """The largest change, by the step, of the difference of two scores of one row."""
        xp, inputs = array_namespace(step), self.product_inputs
        size, unit = _factor_out_scale(step, inputs.dtype)
        largest = 0.0
        for rows in self.blocks():
            change = self.design.scores(unit, inputs[rows, :])
            largest = max(largest, float(xp.max(xp.max(change, axis=1) - xp.min(change, axis=1))))
        return size * largest


@dataclass(frozen=True, eq=False)
class Point:
    """The loss at some parameters, and its derivatives there."""

    problem: SoftmaxProblem
    parameters: Array  # (d, K)
    loss: float
    gradient: Array  # (d, K)

    @property
    def proba(self) -> Array:
        """The softmax of the scores (n, K), computed again if the memory holds another one."""
        if self.problem.latest is not self.parameters:
            self.problem.evaluate(self.parameters)
        return self.problem.proba

    def curvature(self, direction: Array) -> Array:
        """The product of the matrix of second derivatives with a direction (d, K)."""
        problem = self.problem
        proba, product = self.proba, problem.finite_penalty * direction
        size, unit = _factor_out_scale(direction, problem.product_inputs.dtype)
        for rows in problem.blocks():
            inputs = problem.product_inputs[rows, :]
            share = proba[rows, :]
            change = problem.design.scores(unit, inputs)
            change -= array_api.row_dots(share, change)[:, None]
            change *= share
            change *= array_api.as_type(problem.weight[rows, None], inputs.dtype)
            product += size * array_api.doubles(problem.design.adjoint(change, inputs))
        product[problem.is_fixed] = 0.0
        return product

    def preconditioner(self) -> Solve:
        """An approximate inverse of the matrix of second derivatives."""
        weight, n = self.problem.weight, self.problem.target.shape[0]
        xp = array_namespace(weight)
        # a sample would miss where the weight is, if it is not everywhere
        rows = slice(None, None, -(-n // SAMPLE_SIZE) if xp.min(weight) == xp.max(weight) else 1)
        inputs, share = self.problem.inputs[rows, :], self.proba[rows, :]
        if share.dtype != inputs.dtype:  # the last digits of where a fit ends would depend on it
            share = softmax_in_place(self.problem.scores(self.parameters, rows))
        spread = 1 - share
        spread *= share
        spread *= (weight[rows] / xp.sum(weight[rows]))[:, None]
        return self.problem.design.preconditioner(spread, inputs, self.problem.penalty)

    def newton_step(self, precondition: Solve, tolerance: float) -> tuple[Array, float]:
        """The step to the least loss, to second order, up to a relative residual.

        Also return the `max_score_change` of the step.
        """
        step = conjugate_gradients(self.curvature, -self.gradient, precondition, tolerance)
        if array_api.dot(self.gradient, step) >= 0:  # certain predictions hide the curvature
            step = -precondition(self.gradient)
        change = self.problem.max_score_change(step)
        parameter_share = _MAX_PARAMETER_STEP / (_max_abs(step) + MIN_DENOMINATOR)
        share = min(1.0, max(parameter_share, _MAX_SCORE_STEP / (change + MIN_DENOMINATOR)))
        return step * share, change * share

    def steepness(self, precondition: Solve) -> float:
        """The square of the gradient, in units in which all curvatures are about 1."""
        return array_api.dot(self.gradient, precondition(self.gradient))


def separate_preconditioner(point: Point) -> Solve:
    """An approximate inverse in the factors of uncorrelated inputs of `Affine`, without intercepts.

    The Hessian of their factors is taken for a product of two parts, the squares of inputs and the
    covariances of classes, as if these were the same in all rows. It keeps how classes depend on
    each other, which that of single classes does not. One penalty holds for all factors.
    """
    problem = point.problem
    rows, share = _sample_rows(point)
    spread, variance, directions = _covariance_of_classes(share)
    square = spread @ problem.inputs[rows] ** 2
    curvature = np.outer(square, variance) + problem.penalty[0, 0]

    def solve(residual: np.ndarray) -> np.ndarray:
        step = np.zeros_like(residual)
        step[:-1] = residual[:-1] @ directions / curvature @ directions.T
        return step

    return solve


def matrix_preconditioner(point: Point) -> Solve:
    """An approximate inverse for `AffineAndCommon`, where inputs depend on each other.

    It is `separate_preconditioner` for principal components of the inputs, bordered by β. The
    penalties are all taken for that of the influences. That of the design is better where they are
    strong, as they keep dependence from having an effect.
    """
    problem, n_classes = point.problem, point.proba.shape[1]
    if not isinstance(point.proba, np.ndarray) or problem.is_fixed.any():
        return point.preconditioner()
    rows, share = _sample_rows(point)
    inputs, penalty = problem.inputs[rows], float(problem.penalty[0, -1])
    uncertain = 1 - np.einsum("nk,nk->n", share, share)
    if penalty * len(rows) > uncertain @ np.mean(inputs**2, axis=1) / n_classes:
        return point.preconditioner()
    spread, variance, directions = _covariance_of_classes(share)
    inputs = np.hstack([inputs, np.ones((len(rows), 1))])
    second = (inputs * spread[:, None]).T @ inputs
    square, axes = np.linalg.eigh(second)
    curvature = np.outer(square.clip(min=0), variance) + penalty

    def solve_others(residual: np.ndarray) -> np.ndarray:
        return axes @ (axes.T @ residual @ directions / curvature) @ directions.T

    image = second[:, :-1] @ (directions * variance @ directions.T)
    response, trace = solve_others(image), float(np.trace(image))
    common_curvature = trace - float(np.vdot(image, response))
    if common_curvature <= CURVATURE_RTOL * trace:
        return point.preconditioner()

    def solve(residual: np.ndarray) -> np.ndarray:
        pull = residual[-1].sum() - float(np.vdot(residual[:-1], response))
        common = pull / common_curvature
        step = solve_others(residual[:-1]) - common * response
        return np.vstack([step, np.full((1, n_classes), common)])

    return solve


def _sample_rows(point: Point) -> tuple[np.ndarray, np.ndarray]:
    """Indices of rows in proportion to their weights, without chance, and their probabilities."""
    n = point.proba.shape[0]
    size = min(SAMPLE_SIZE, n)
    quantiles = (np.arange(size) + 0.5) / size
    rows = np.searchsorted(np.cumsum(point.problem.weight), quantiles).clip(max=n - 1)
    return rows, point.proba[rows]


def _covariance_of_classes(share: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Uncertainties of rows (n,), which sum to 1; principal variances and directions of classes."""
    spread = 1 - np.einsum("nk,nk->n", share, share)
    covariance = np.diag(share.mean(axis=0)) - share.T @ share / len(share)
    variance, directions = np.linalg.eigh(covariance)
    return spread / (spread.sum() + MIN_DENOMINATOR), variance.clip(min=0), directions


def is_large(values: Array) -> bool:
    """True for more than `_MAX_EXACT_ENTRIES` numbers: a fit may stop a little earlier."""
    return math.prod(values.shape) > _MAX_EXACT_ENTRIES


def _max_abs(values: Array) -> float:
    xp = array_namespace(values)
    return float(xp.max(xp.abs(values)))


def _factor_out_scale(parameters: Array, dtype: object) -> tuple[float, Array]:
    """A size, and parameters divided by it, of at most 1 and in the given precision."""
    size = _max_abs(parameters) + MIN_DENOMINATOR
    return size, array_api.as_type(parameters / size, dtype)


def softmax_regression(
    design: Design,
    inputs: Array,
    target: Array,
    weight: Array,
    start: Array,
    penalty: np.ndarray | float = 0.0,
    preconditioner: "Callable[[Point], Solve]" = Point.preconditioner,
    offset: np.ndarray | None = None,
    guess: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
    """Parameters (d, K) of least loss plus ½ Σ penalty·δ², and the score change of the last step.

    The change is small where the minimum exists, unless some probability is 0 there, and infinite
    if the minimum has not been reached. Inputs and targets are (n, K), and so is an offset of the
    scores; δ is the deviation from the start, which is 0 where the penalty is infinite. The search
    begins at the guess, by default at the start.

    Newton's method, each step by conjugate gradients, preconditioned by an approximation of the
    Hessian: by default in the parameters of each class, from a sample of the rows. Directions that
    the loss does not determine are left alone. A product with the Hessian costs as much as a
    gradient, O(n K) or O(n K²), and nothing is larger than inputs and parameters.

    All is computed in the namespace of the inputs, in double precision; parameters are returned in
    an array of NumPy.
    """
    start = array_api.asarray_like(inputs, start)
    penalty = array_api.asarray_like(inputs, np.array(np.broadcast_to(penalty, start.shape)))
    problem = SoftmaxProblem(design, inputs, target, weight, start, penalty, offset)
    if guess is not None:
        guess = array_api.asarray_like(inputs, guess)
        start = array_namespace(start).where(problem.is_fixed, start, guess)
    here = problem.evaluate(start)
    tolerance, change, last_promise = 0.1, 0.0, np.inf
    unseen = _DECREASE_PER_ENTRY * target.shape[1] / target.shape[0]
    for _ in range(_MAX_SCALING_STEPS):
        if not 0 < change <= _SMALL_SCORE_STEP:
            precondition = preconditioner(here)
        last_change = change
        step, change = here.newton_step(precondition, tolerance)
        promise = -array_api.dot(here.gradient, step)
        if is_large(target) and tolerance <= _SURE_RESIDUAL_RTOL and promise <= unseen:
            change *= min(1.0, promise / last_promise)  # of a further step
            return array_api.to_numpy(here.parameters), change
        rounding = LOSS_RTOL * abs(here.loss)
        there = line_search(
            problem.evaluate, here.parameters, step, here.loss, promise, rounding=rounding
        )
        if promise <= _STALLED_DECREASE_ATOL:
            flatter = there and there.steepness(precondition) <= here.steepness(precondition) / 4
            if not flatter:
                return array_api.to_numpy(here.parameters), max(last_change, change)
        if there is None:
            break
        here = there
        next_promise = promise * max(tolerance, promise / last_promise) ** 2
        if promise <= _DECREASE_ATOL or next_promise <= _LAST_DECREASE_ATOL:
            return array_api.to_numpy(here.parameters), change
        last_promise = promise
        loosest = 0.3 * np.sqrt(_LAST_DECREASE_ATOL / next_promise)  # so that the next is the last
        tolerance = float(np.clip(max(np.sqrt(promise), loosest), 1e-6, 0.1))
    return array_api.to_numpy(here.parameters), np.inf
