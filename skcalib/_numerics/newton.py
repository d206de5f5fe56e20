"""Newton steps by conjugate gradients, their line search, and steps of bounded numbers."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, lsq_linear, minimize, nnls

from .array_api import Array, array_namespace, dot, doubles

Solve = Callable[[Array], Array]

# A step must lower the loss by the first fraction of what its slope promises. If the loss falls by
# the second fraction, it is almost straight, and the step may be too short.
_MIN_DECREASE, _STRAIGHT_DECREASE = 0.25, 0.75

# A change of the loss below this fraction of it may be a rounding error.
LOSS_RTOL = 1e-14

# The line search fails below the first multiple of a step, and stops above the second.
_MIN_STEP_LENGTH, _MAX_STEP_LENGTH = 2.0**-30, 2.0**20

# Products with the Hessian in a Newton step; a step that would need more is cut short.
_MAX_PRODUCTS = 1000

# A direction is undetermined if its curvature is below this fraction of what the preconditioner
# expects.
CURVATURE_RTOL = 1e-6

# Curvatures below this fraction of the largest are rounding errors.
_EIGENVALUE_RTOL = 1e-13


def line_search(
    evaluate: Callable[[Any], Any],
    start: Array,
    step: Array,
    loss: float,
    promise: float,
    *,
    rounding: float,
) -> Any:
    """The point after the first of step, step/2, step/4, … that lowers the loss enough, or None.

    Where the loss falls almost straight on, or to less than half, steps of twice the length are
    tried, as long as they lower it further. `loss` and minus its slope, `promise`, are those at the
    start; `evaluate` returns a point with the attribute `loss`.
    """
    length = 1.0
    point = evaluate(start + step)
    while not point.loss <= loss - _MIN_DECREASE * length * promise + rounding:
        length /= 2
        if length < _MIN_STEP_LENGTH:
            return None
        point = evaluate(start + length * step)
    while length < _MAX_STEP_LENGTH:
        is_straight = loss - point.loss >= max(_STRAIGHT_DECREASE * length * promise, rounding)
        if not (is_straight or point.loss < loss / 2):
            break
        length *= 2
        further = evaluate(start + length * step)
        if not further.loss < point.loss:
            break
        point = further
    return point


def nonnegative_step(shares: np.ndarray, gradient: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """The step to the minimum of the quadratic approximation over shares of at least 0."""
    size, axes = np.linalg.eigh(curvature)
    root = np.sqrt(np.maximum(size, _EIGENVALUE_RTOL * size[-1]))
    goal = root * (axes.T @ shares) - (axes.T @ gradient) / root
    try:
        target = nnls(root[:, None] * axes.T, goal)[0]
    except RuntimeError:  # SciPy 1.13 may take no end of steps
        target = lsq_linear(root[:, None] * axes.T, goal, bounds=(0, np.inf)).x
    return target - shares


def minimize_in_bounds(
    loss: Callable,
    start: np.ndarray | list[float],
    bounds: list,
    *,
    loss_rtol: float,
    gradient_atol: float,
) -> OptimizeResult:
    """A minimum of a smooth loss, which returns its gradient as well, by a quasi-Newton method."""
    options = {"maxiter": 1000, "ftol": loss_rtol, "gtol": gradient_atol}
    return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)


def conjugate_gradients(
    product: Solve, right: Array, precondition: Solve, tolerance: float
) -> Array:
    """The solution x of A x = right, A symmetric and semidefinite, up to a relative residual."""
    xp = array_namespace(right)
    x = xp.zeros_like(right)
    residual = doubles(right, copy=True)
    direction = precondition(residual)
    square = dot(residual, direction)
    goal = tolerance**2 * square
    for _ in range(min(10 * math.prod(right.shape), _MAX_PRODUCTS)):
        image = product(direction)
        curvature = dot(direction, image)
        if curvature <= CURVATURE_RTOL * square:
            break
        length = square / curvature
        x += length * direction
        residual -= length * image
        preconditioned = precondition(residual)
        previous, square = square, dot(residual, preconditioned)
        if square <= goal:
            break
        direction *= square / previous
        direction += preconditioned
    return x
