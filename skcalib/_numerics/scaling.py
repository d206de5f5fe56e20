"""Softmax regression on log-probabilities, solved to the optimum.

The loss is the weighted cross-entropy between targets t and the softmax of scores s, which are
linear in the parameters: Σ_i w_i (log Σ_k exp s_ik − Σ_k t_ik s_ik). It is convex.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .softmax import row_blocks
from .temperature import _SAMPLE

# The search ends after a Newton step that promises to lower the loss by less than this.
_SMALL_DECREASE = 1e-16

# The same if rounding keeps the gradient from falling.
_SMALL_UNLESS_FALLING = 1e-12

# Where predictions are certain and wrong, the curvature does not tell how far to go. So a step is
# shortened until it changes no parameter by more than the first number, or moves scores of a row
# against each other by no more than the second.
_LONGEST, _LARGEST_CHANGE = 30.0, 30.0

# Where there is no optimum, a Newton step moves the scores by about one.
_MOST_STEPS = 100

# Products with the Hessian in a Newton step; a step that would need more is cut short.
_MOST_PRODUCTS = 1000

# Keeps the preconditioner away from singular, relative to its largest entry.
_RIDGE = 1e-9

_TINY = 1e-100

# Sums of squares below this fraction of those of the inputs are rounding errors.
_LOST = 1e-13

# A direction is not determined if its curvature is below this fraction of what the preconditioner
# expects.
_FLAT = 1e-6

# A change of the loss below this fraction of it may be a rounding error.
_ROUNDING = 1e-14

# A loss that falls by this fraction of what its slope promises is almost straight.
_STRAIGHT = 0.75

# The search along a step gives up below the first multiple of it, and stops above the second.
_SHORTEST_FRACTION, _LARGEST_MULTIPLE = 2.0**-30, 2.0**20

Solve = Callable[[np.ndarray], np.ndarray]


class ScaledAndShifted:
    """Scores v∘x + b of inputs x (n, K), with parameters (v, b) (2, K)."""

    @staticmethod
    def scores(parameters: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        scores = inputs * parameters[0]
        scores += parameters[1]
        return scores

    scores_of_rows = scores

    @staticmethod
    def adjoint(residual: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        return np.stack([np.einsum("nk,nk->k", residual, inputs), residual.sum(axis=0)])

    @staticmethod
    def preconditioner(spread: np.ndarray, inputs: np.ndarray, penalty: np.ndarray) -> Solve:
        """Inverse of the two by two blocks, on shifts with mean 0: a common one has no effect."""
        first = np.einsum("nk,nk->k", spread, inputs)
        second = np.einsum("nk,nk,nk->k", spread, inputs, inputs) + penalty[0]
        zeroth = spread.sum(axis=0) + penalty[1]
        ridge = _RIDGE * max(second.max(), zeroth.max()) + _TINY
        second += ridge
        zeroth += ridge
        determinant = second * zeroth - first**2

        def solve(residual: np.ndarray) -> np.ndarray:
            scale, shift = residual[0], residual[1] - residual[1].mean()
            solution = np.stack([zeroth * scale - first * shift, second * shift - first * scale])
            solution /= determinant
            solution[1] -= solution[1].mean()
            return solution

        return solve


class Affine:
    """Scores W x + b of inputs x (n, K), with parameters (W, b)ᵀ (K + 1, K)."""

    @staticmethod
    def scores(parameters: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        scores = inputs @ parameters[:-1]
        scores += parameters[-1]
        return scores

    @staticmethod
    def scores_of_rows(parameters: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        """The same; the scores of a row do not depend, to the last bit, on the other rows."""
        return np.einsum("nk,kl->nl", inputs, parameters[:-1]) + parameters[-1]

    @staticmethod
    def adjoint(residual: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        return np.vstack([inputs.T @ residual, residual.sum(axis=0)])

    @staticmethod
    def preconditioner(spread: np.ndarray, inputs: np.ndarray, penalty: np.ndarray) -> Solve:
        """Inverse of the blocks of the classes, simplified."""
        return ClassBlocks.of(spread, inputs, penalty).solve


class AffineAndCommon:
    """Scores (β I + W) x + b, with parameters (W, b, β)ᵀ (K + 2, K); the last row repeats β.

    A penalty on the diagonal of W draws the factors of the classes to a common one, and W stays
    exact, however little they differ from it.
    """

    @staticmethod
    def scores(parameters: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        scores = Affine.scores(parameters[:-1], inputs)
        scores += parameters[-1].mean() * inputs
        return scores

    @staticmethod
    def adjoint(residual: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        common = np.full(inputs.shape[1], np.vdot(residual, inputs) / inputs.shape[1])
        return np.vstack([Affine.adjoint(residual, inputs), common])

    @staticmethod
    def preconditioner(spread: np.ndarray, inputs: np.ndarray, penalty: np.ndarray) -> Solve:
        """That of `Affine`, bordered by β.

        To move β is to move the diagonal of W without its penalty λ. If S_k is the curvature of
        the loss along W_kk, the other parameters of class k following, that of β is Σ_k λ S_k/(λ +
        S_k): a part of the move is taken back by the diagonal.
        """
        blocks = ClassBlocks.of(spread, inputs, penalty[:-1])
        image = blocks.image_of_diagonal()
        follow = blocks.solve(image)
        own = blocks.curvature_of_diagonal()
        with np.errstate(divide="ignore", over="ignore"):
            curvature = float((own / (1 + own / np.diagonal(penalty))).sum())
        if curvature <= _LOST * own.sum():
            curvature = np.inf  # β and the mean of the diagonal are the same: only that moves

        def solve(residual: np.ndarray) -> np.ndarray:
            pull = residual[-1].sum() - np.vdot(residual[:-1], follow)
            common = pull / curvature
            step = blocks.solve(residual[:-1]) - common * follow
            return np.vstack([step, np.full(step.shape[1], common)])

        return solve


@dataclass(frozen=True, eq=False)
class ClassBlocks:
    """The curvature in the parameters of each class alone, with no covariances of inputs.

    That of class k is Σ_j (a_jk + λ_jk) W_kj² + z_k (b_k + Σ_j c_jk W_kj)² + μ_k b_k², with the
    weighted mean c and variance a/z of the inputs. Its second term matters: where all inputs are
    far from 0, factors and intercept are almost the same.
    """

    centre: np.ndarray  # c (K, K)
    variance: np.ndarray  # a (K, K)
    total: np.ndarray  # z (K,)
    penalty: np.ndarray  # λ and below it μ (K + 1, K), possibly infinite

    @classmethod
    def of(cls, spread: np.ndarray, inputs: np.ndarray, penalty: np.ndarray) -> "ClassBlocks":
        origin = inputs.mean(axis=0)  # squares of deviations from it keep more digits
        moved = inputs - origin
        total = spread.sum(axis=0) + _TINY
        first = moved.T @ spread
        centre = first / total
        variance = np.maximum((moved**2).T @ spread - centre * first, 0.0)
        noise = _LOST * float(origin @ origin) * total.max()
        variance += _RIDGE * variance.max() + noise + _TINY
        total += _RIDGE * total.max()
        return cls(centre + origin[:, None], variance, total, penalty)

    @cached_property
    def own(self) -> np.ndarray:
        """The curvature in single factors, (K, K)."""
        return self.variance + self.penalty[:-1]

    @cached_property
    def joint(self) -> np.ndarray:
        """The curvature in Σ_j c_jk W_kj if the intercept follows, (K,): 1/(1/z + 1/μ)."""
        with np.errstate(divide="ignore", over="ignore"):
            return self.total / (1 + self.total / self.penalty[-1])

    def solve(self, residual: np.ndarray) -> np.ndarray:
        """The inverse, by the formula of Sherman and Morrison."""
        factor, shift = residual[:-1], residual[-1]
        held = self.total + self.penalty[-1]
        factor = factor - self.centre * (self.total / held * shift)
        leverage = self.centre / self.own
        strength = self.joint / (1 + self.joint * np.einsum("jk,jk->k", leverage, self.centre))
        solution = factor / self.own
        solution -= leverage * (strength * np.einsum("jk,jk->k", leverage, factor))
        shift = shift - self.total * np.einsum("jk,jk->k", self.centre, solution)
        return np.vstack([solution, shift / held])

    def image_of_diagonal(self) -> np.ndarray:
        """The product of the matrix, but for the penalty, with a 1 for each W_kk, (K + 1, K)."""
        pull = self.total * np.diagonal(self.centre)
        image = np.vstack([self.centre * pull, pull])
        np.fill_diagonal(image, np.diagonal(image) + np.diagonal(self.variance))
        return image

    def curvature_of_diagonal(self) -> np.ndarray:
        """The curvature of the loss in each W_kk if the other parameters follow, (K,)."""
        taken = self.centre**2 / self.own
        np.fill_diagonal(taken, 0.0)
        strength = self.joint / (1 + self.joint * taken.sum(axis=0))
        return np.diagonal(self.variance) + strength * np.diagonal(self.centre) ** 2


Design = type[ScaledAndShifted] | type[Affine] | type[AffineAndCommon]


@dataclass(frozen=True, eq=False)
class Problem:
    """The data and the penalty: everything the loss depends on but the parameters."""

    design: Design
    inputs: np.ndarray  # (n, K)
    target: np.ndarray  # (n, K)
    weight: np.ndarray  # (n,)
    start: np.ndarray  # (d, K)
    penalty: np.ndarray  # (d, K), infinite for a parameter that stays at the start

    @cached_property
    def held(self) -> np.ndarray:
        return np.isinf(self.penalty)

    @cached_property
    def finite_penalty(self) -> np.ndarray:
        return np.where(self.held, 0.0, self.penalty)

    def at(self, parameters: np.ndarray) -> "Point":
        """The loss and its gradient at the parameters."""
        deviation = parameters - self.start
        gradient = self.finite_penalty * deviation
        value = np.vdot(deviation, gradient) / 2
        proba = np.empty(self.target.shape)
        for rows in row_blocks(*self.target.shape):
            inputs, target, weight = self.inputs[rows], self.target[rows], self.weight[rows]
            scores = self.design.scores(parameters, inputs)
            scores -= scores.max(axis=1, keepdims=True)
            share = np.exp(scores, out=proba[rows])
            total = share.sum(axis=1)
            share /= total[:, None]
            value += weight @ np.log(total)
            value -= weight @ np.einsum("nk,nk->n", target, scores)
            gradient += self.design.adjoint(weight[:, None] * (share - target), inputs)
        gradient[self.held] = 0.0
        return Point(self, parameters, float(value), gradient, proba)

    def change_of_scores(self, step: np.ndarray) -> float:
        """How much the step moves scores of one row against each other, at most."""
        return max(
            float(np.ptp(self.design.scores(step, self.inputs[rows]), axis=1).max())
            for rows in row_blocks(*self.target.shape)
        )


@dataclass(frozen=True, eq=False)
class Point:
    """The loss at some parameters, and its derivatives there."""

    problem: Problem
    parameters: np.ndarray  # (d, K)
    loss: float
    gradient: np.ndarray  # (d, K)
    proba: np.ndarray  # (n, K), the softmax of the scores

    def curvature(self, direction: np.ndarray) -> np.ndarray:
        """The product of the matrix of second derivatives with a direction (d, K)."""
        problem = self.problem
        product = problem.finite_penalty * direction
        for rows in row_blocks(*self.proba.shape):
            inputs, share = problem.inputs[rows], self.proba[rows]
            change = problem.design.scores(direction, inputs)
            change -= np.einsum("nk,nk->n", share, change)[:, None]
            change *= share
            change *= problem.weight[rows, None]
            product += problem.design.adjoint(change, inputs)
        product[problem.held] = 0.0
        return product

    def preconditioner(self) -> Solve:
        """An approximate inverse of that matrix."""
        weight, n = self.problem.weight, len(self.proba)
        # a sample would miss where the weight is, if it is not everywhere
        rows = slice(None, None, -(-n // _SAMPLE) if weight.min() == weight.max() else 1)
        share = self.proba[rows]
        spread = (weight[rows] / weight[rows].sum())[:, None] * share * (1 - share)
        return self.problem.design.preconditioner(
            spread, self.problem.inputs[rows], self.problem.penalty
        )

    def newton_step(self, precondition: Solve, tolerance: float) -> np.ndarray:
        """Where the loss is least, to second order, up to a relative residual."""
        step = conjugate_gradients(self.curvature, -self.gradient, precondition, tolerance)
        if np.vdot(self.gradient, step) >= 0:  # certain predictions hide the curvature
            step = -precondition(self.gradient)
        change = self.problem.change_of_scores(step)
        shares = _LONGEST / (np.abs(step).max() + _TINY), _LARGEST_CHANGE / (change + _TINY)
        return step * min(1.0, max(shares))

    def steepness(self, precondition: Solve) -> float:
        """The square of the gradient, in units in which all curvatures are about 1."""
        return float(np.vdot(self.gradient, precondition(self.gradient)))

    def lower(self, step: np.ndarray, promise: float) -> "Point | None":
        """The first of step, step/2, step/4, … that lowers the loss enough; None if none does.

        To second order the step lowers the loss by half of the promise. Where the loss falls almost
        straight on, 2 step, 4 step, … follow, as long as they lower it further.
        """
        scale = 1.0
        while scale >= _SHORTEST_FRACTION:
            point = self.problem.at(self.parameters + scale * step)
            if point.loss <= self.loss - 1e-4 * scale * promise + _ROUNDING * abs(self.loss):
                break
            scale /= 2
        else:
            return None
        while scale < _LARGEST_MULTIPLE:
            straight = max(_STRAIGHT * scale * promise, _ROUNDING * abs(self.loss))
            if self.loss - point.loss < straight:
                break
            scale *= 2
            further = self.problem.at(self.parameters + scale * step)
            if not further.loss < point.loss:
                break
            point = further
        return point


def softmax_regression(
    design: Design,
    inputs: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    start: np.ndarray,
    penalty: np.ndarray | float = 0.0,
) -> tuple[np.ndarray, float]:
    """Parameters (d, K) of least loss plus ½ Σ penalty·δ², and how much scores moved at the end.

    That is little where the minimum exists, unless some probability is 0 there, and infinite if it
    has not been reached. Inputs and targets are (n, K); δ is the deviation from the start, which is
    0 where the penalty is infinite.

    Newton's method, each step by conjugate gradients, preconditioned by an approximation of the
    Hessian in the parameters of each class, from a sample of the rows. Directions that the loss
    does not determine are left alone. A product with the Hessian costs as much as a gradient, O(n
    K) or O(n K²), and nothing is larger than inputs and parameters.
    """
    penalty = np.broadcast_to(np.asarray(penalty, dtype=np.float64), start.shape)
    problem = Problem(design, inputs, target, weight, start, penalty)
    here = problem.at(start)
    tolerance, change = 0.1, 0.0
    for _ in range(_MOST_STEPS):
        precondition = here.preconditioner()
        step = here.newton_step(precondition, tolerance)
        promise = -float(np.vdot(here.gradient, step))
        last_change, change = change, problem.change_of_scores(step)
        there = here.lower(step, promise)
        if promise <= _SMALL_UNLESS_FALLING:
            flatter = there and there.steepness(precondition) <= here.steepness(precondition) / 4
            if not flatter:
                return here.parameters, max(last_change, change)
        if there is None:
            break
        here = there
        if promise <= _SMALL_DECREASE:
            return here.parameters, max(last_change, change)
        tolerance = float(np.clip(np.sqrt(promise), 1e-6, 0.1))
    return here.parameters, np.inf


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray],
    right: np.ndarray,
    precondition: Solve,
    tolerance: float,
) -> np.ndarray:
    """The solution x of A x = right, A symmetric and semidefinite, up to a relative residual."""
    x = np.zeros_like(right)
    residual = right.copy()
    direction = precondition(residual)
    square = float(np.vdot(residual, direction))
    goal = tolerance**2 * square
    for _ in range(min(10 * right.size, _MOST_PRODUCTS)):
        image = product(direction)
        curvature = float(np.vdot(direction, image))
        if curvature <= _FLAT * square:
            break
        length = square / curvature
        x += length * direction
        residual -= length * image
        preconditioned = precondition(residual)
        previous, square = square, float(np.vdot(residual, preconditioned))
        if square <= goal:
            break
        direction *= square / previous
        direction += preconditioned
    return x
