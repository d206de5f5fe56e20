"""Softmax regression on log-probabilities, solved to the optimum.

The loss is the weighted cross-entropy between targets t and the softmax of scores s, which are
linear in the parameters: Σ_i w_i (log Σ_k exp s_ik − Σ_k t_ik s_ik). It is convex.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .softmax import row_blocks
from .temperature import _SAMPLE

# The same of a decrease of the loss that a Newton step promises.
_SMALL_DECREASE = 1e-16

# The same where rounding keeps the gradient from falling.
_SMALL_UNLESS_FALLING = 1e-12

# Where predictions are certain and wrong, the curvature is too small to tell how far to go.
_LONGEST = 30.0

# Where there is no optimum, a Newton step moves the scores by about one.
_MOST_STEPS = 100

# Keeps the preconditioner away from singular, relative to its largest entry.
_RIDGE = 1e-9

_TINY = 1e-100

# A direction of less curvature than the preconditioner expects is one that is not determined.
_FLAT = 1e-6

# A smaller change of the loss, relative to the loss itself, may be rounding.
_ROUNDING = 1e-14

# A step that does not lower the loss even if it is this short is none.
_SHORTEST_FRACTION = 2.0**-30

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
        """Inverse of the two by two blocks, but for what adds the same to all scores."""
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
        """The same, to the last bit whatever rows come together."""
        return np.einsum("nk,kl->nl", inputs, parameters[:-1]) + parameters[-1]

    @staticmethod
    def adjoint(residual: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        return np.vstack([inputs.T @ residual, residual.sum(axis=0)])

    @staticmethod
    def preconditioner(spread: np.ndarray, inputs: np.ndarray, penalty: np.ndarray) -> Solve:
        """Inverse of the diagonal."""
        diagonal = Affine.adjoint(spread, inputs**2) + penalty
        diagonal += _RIDGE * diagonal.max() + _TINY
        return lambda residual: residual / diagonal


Penalty = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Problem:
    """The data and the penalty: everything the loss depends on but the parameters."""

    design: type[ScaledAndShifted] | type[Affine]
    inputs: np.ndarray  # (n, K)
    target: np.ndarray  # (n, K)
    weight: np.ndarray  # (n,)
    start: np.ndarray  # (d, K)
    penalty: Penalty

    def at(self, parameters: np.ndarray) -> "Point":
        """The loss at the parameters, with what its derivatives there are made of."""
        deviation = parameters - self.start
        gradient = self.penalty(deviation)
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
        product = problem.penalty(direction)
        for rows in row_blocks(*self.proba.shape):
            inputs, share = problem.inputs[rows], self.proba[rows]
            change = problem.design.scores(direction, inputs)
            change -= np.einsum("nk,nk->n", share, change)[:, None]
            change *= share
            change *= problem.weight[rows, None]
            product += problem.design.adjoint(change, inputs)
        return product

    def preconditioner(self) -> Solve:
        """An approximate inverse of that matrix."""
        weight, n = self.problem.weight, len(self.proba)
        # a sample would miss where the weight is, if it is not everywhere
        rows = slice(None, None, -(-n // _SAMPLE) if weight.min() == weight.max() else 1)
        share = self.proba[rows]
        spread = (weight[rows] / weight[rows].sum())[:, None] * share * (1 - share)
        own_penalty = self.problem.penalty(np.ones_like(self.parameters))
        return self.problem.design.preconditioner(spread, self.problem.inputs[rows], own_penalty)

    def newton_step(self, tolerance: float) -> np.ndarray:
        """Where the loss is least, to second order, up to a relative residual."""
        precondition = self.preconditioner()
        step = conjugate_gradients(self.curvature, -self.gradient, precondition, tolerance)
        if np.vdot(self.gradient, step) >= 0:  # certain predictions hide the curvature
            step = -precondition(self.gradient)
        return step * min(1.0, _LONGEST / max(float(np.abs(step).max()), _TINY))

    def lower(self, step: np.ndarray, promise: float) -> "Point | None":
        """The first of step, step/2, step/4, … that lowers the loss enough; None if none does."""
        scale = 1.0
        while scale >= _SHORTEST_FRACTION:
            point = self.problem.at(self.parameters + scale * step)
            if point.loss <= self.loss - 1e-4 * scale * promise + _ROUNDING * abs(self.loss):
                return point
            scale /= 2
        return None


def softmax_regression(
    design: type[ScaledAndShifted] | type[Affine],
    inputs: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    start: np.ndarray,
    penalty: Penalty = np.zeros_like,
) -> tuple[np.ndarray, float]:
    """Parameters (d, K) of least loss plus ½⟨δ, penalty(δ)⟩, and how much scores moved at the end.

    That is little where the minimum exists, unless some probability is 0 there. Inputs and targets
    are (n, K); δ is the deviation from the start, and its penalty is linear and semidefinite.

    Newton's method, each step by conjugate gradients, preconditioned by the Hessian's own entries
    of each class in a sample of the rows. Directions that the loss does not determine are left
    alone. A product with the Hessian costs as much as a gradient, O(n K) or O(n K²), and nothing is
    larger than inputs and parameters.
    """
    problem = Problem(design, inputs, target, weight, start, penalty)
    here = problem.at(start)
    tolerance, change = 0.1, 0.0
    for _ in range(_MOST_STEPS):
        step = here.newton_step(tolerance)
        promise = -float(np.vdot(here.gradient, step))
        there = here.lower(step, promise)
        last_change, change = change, problem.change_of_scores(step)
        if there is None:
            break
        stalled = np.linalg.norm(there.gradient) > np.linalg.norm(here.gradient) / 2
        if stalled and promise <= _SMALL_UNLESS_FALLING:
            break
        here = there
        if promise <= _SMALL_DECREASE:
            break
        tolerance = float(np.clip(promise, 1e-6, 0.1))
    return here.parameters, max(last_change, change)


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
    for _ in range(10 * right.size):
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
