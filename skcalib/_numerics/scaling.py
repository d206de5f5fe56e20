"""Softmax regression on log-probabilities, solved to the optimum.

The loss is the weighted cross-entropy between targets t and the softmax of scores s, which are
linear in the parameters: Σ_i w_i (log Σ_k exp s_ik − Σ_k t_ik s_ik). It is convex.
"""

from collections.abc import Callable

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

# A decrease of the loss below this many units in its last place cannot be seen.
_ROUNDING = 1e-14

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


def softmax_regression(
    design: type[ScaledAndShifted] | type[Affine],
    inputs: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    start: np.ndarray,
    penalty: Callable[[np.ndarray], np.ndarray] = np.zeros_like,
) -> tuple[np.ndarray, float]:
    """Parameters (d, K) of least loss plus ½⟨δ, penalty(δ)⟩, and how much scores moved at the end.

    That is little where the minimum exists, unless some probability is 0 there. Inputs and targets
    are (n, K); δ is the deviation from the start, and its penalty is linear and semidefinite.

    Newton's method, each step by conjugate gradients, preconditioned by the Hessian's own entries
    of each class in a sample of the rows. Directions that the loss does not determine are left
    alone. A product with the Hessian costs as much as a gradient, O(n K) or O(n K²), and nothing is
    larger than inputs and parameters.
    """
    n, n_classes = target.shape
    proba = np.empty((n, n_classes))  # of the current parameters

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        deviation = parameters - start
        gradient = penalty(deviation)
        value = np.vdot(deviation, gradient) / 2
        for rows in row_blocks(n, n_classes):
            scores = design.scores(parameters, inputs[rows])
            scores -= scores.max(axis=1, keepdims=True)
            share = np.exp(scores, out=proba[rows])
            total = share.sum(axis=1)
            share /= total[:, None]
            value += weight[rows] @ np.log(total)
            value -= weight[rows] @ np.einsum("nk,nk->n", target[rows], scores)
            gradient += design.adjoint(weight[rows, None] * (share - target[rows]), inputs[rows])
        return float(value), gradient

    def curvature(direction: np.ndarray) -> np.ndarray:
        product = penalty(direction)
        for rows in row_blocks(n, n_classes):
            change = design.scores(direction, inputs[rows])
            share = proba[rows]
            change -= np.einsum("nk,nk->n", share, change)[:, None]
            change *= share
            change *= weight[rows, None]
            product += design.adjoint(change, inputs[rows])
        return product

    def preconditioner() -> Solve:
        # a sample would miss where the weight is, if it is not everywhere
        rows = slice(None, None, -(-n // _SAMPLE) if weight.min() == weight.max() else 1)
        share = proba[rows]
        spread = (weight[rows] / weight[rows].sum())[:, None] * share * (1 - share)
        return design.preconditioner(spread, inputs[rows], own_penalty)

    own_penalty = penalty(np.ones_like(start))
    parameters = start
    value, gradient = loss(parameters)
    tolerance, change = 0.1, 0.0
    for _ in range(_MOST_STEPS):
        precondition = preconditioner()
        step = conjugate_gradients(curvature, -gradient, precondition, tolerance)
        if np.vdot(gradient, step) >= 0:  # certain predictions hide the curvature
            step = -precondition(gradient)
        step *= min(1.0, _LONGEST / max(float(np.abs(step).max()), _TINY))
        promise = -float(np.vdot(gradient, step))
        scale = 1.0
        while True:
            new_value, new_gradient = loss(parameters + scale * step)
            if new_value <= value - 1e-4 * scale * promise + _ROUNDING * abs(value):
                break
            scale /= 2
        last_change, change = (
            change,
            max(
                float(np.ptp(design.scores(step, inputs[rows]), axis=1).max())
                for rows in row_blocks(n, n_classes)
            ),
        )
        stalled = np.linalg.norm(new_gradient) > np.linalg.norm(gradient) / 2
        if stalled and promise <= _SMALL_UNLESS_FALLING:
            break
        parameters, value, gradient = parameters + scale * step, new_value, new_gradient
        if promise <= _SMALL_DECREASE:
            break
        tolerance = float(np.clip(promise, 1e-6, 0.1))
    return parameters, max(last_change, change)


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
