"""Softmax regression on log-probabilities, solved to the optimum.

The loss is the weighted cross-entropy between targets t and the softmax of scores s, which are
linear in the parameters: Σ_i w_i (log Σ_k exp s_ik − Σ_k t_ik s_ik). It is convex.
"""

from collections.abc import Callable, Iterator

import numpy as np

# So many numbers in a block of rows: a few blocks fit into the cache.
_BLOCK = 2**15

# So many rows give a first guess of the temperature.
_SAMPLE = 4096

# Convergence is quadratic: what is left after such a relative step is below rounding.
_SMALL_STEP = 1e-9

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


def row_blocks(n: int, n_classes: int, every: int = 1) -> Iterator[slice]:
    """Slices of every so many of n rows of probabilities."""
    step = max(_BLOCK // n_classes, n_classes) * every
    return (slice(i, min(i + step, n), every) for i in range(0, n, step))


def softmax(scores: np.ndarray) -> np.ndarray:
    """exp s_k / Σ_l exp s_l of each row (n, K), in place."""
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def tempered(log_proba: np.ndarray, temperature: float) -> np.ndarray:
    """softmax(log p / T) of each row (n, K); at T = 0 its largest ones share everything."""
    scores = log_proba - log_proba.max(axis=1, keepdims=True)
    if temperature == 0:
        scores = np.where(scores == 0, 0.0, -np.inf)
    else:
        scores /= temperature
    return softmax(scores)


def best_temperature(
    log_proba: Callable[[slice], np.ndarray], label: np.ndarray, weight: np.ndarray, prior: float
) -> float:
    """The T in [0, ∞] with the least loss of softmax(log p / T); 1 if all T have the same loss.

    log_proba returns rows (b, K). The targets are the labels (n,) with the share 1 − prior, and the
    predictions p with the share prior. The solution for a sample is the start for all rows.
    """
    n, inverse = len(label), 1.0
    for every in (max(n // _SAMPLE, 1), 1):
        start = inverse if 0 < inverse < np.inf else 1.0
        inverse = _best_inverse_temperature(log_proba, label, weight, prior, every, start)
    with np.errstate(divide="ignore"):
        return float(np.divide(1.0, inverse))


def _best_inverse_temperature(
    log_proba: Callable[[slice], np.ndarray],
    label: np.ndarray,
    weight: np.ndarray,
    prior: float,
    every: int,
    start: float,
) -> float:
    """The best β = 1/T for some rows.

    The slope of the loss in β is Σ w (E_β − E_t) log p and its curvature Σ w Var_β log p: mean and
    variance over the classes with probabilities softmax(β log p), and mean with the targets t. The
    slope at 0 and its limit at ∞, where only the largest count, tell whether the minimum is there;
    else it is found by Newton's method inside a bracket. log p is taken relative to the largest of
    the row, so that the limit at ∞ is exact.
    """
    n_classes = log_proba(slice(0, 1)).shape[1]

    def moments(beta: float) -> tuple[float, float]:
        """Σ w E_β and Σ w Var_β of log p."""
        mean = variance = 0.0
        for rows in row_blocks(len(label), n_classes, every):
            value = log_proba(rows)
            value -= value.max(axis=1, keepdims=True)
            share = np.exp(beta * value)
            total = share.sum(axis=1)
            first = np.einsum("nk,nk->n", share, value) / total
            value -= first[:, None]
            value *= value
            mean += weight[rows] @ first
            variance += weight[rows] @ (np.einsum("nk,nk->n", share, value) / total)
        return float(mean), float(variance)

    observed = uniform = 0.0
    for rows in row_blocks(len(label), n_classes, every):
        value = log_proba(rows)
        top = value.max(axis=1)
        observed += weight[rows] @ (value[np.arange(len(value)), label[rows]] - top)
        uniform += weight[rows] @ (value - top[:, None]).sum(axis=1) / n_classes
    if prior > 0:
        observed = (1 - prior) * observed + prior * moments(1.0)[0]
    if uniform == 0:
        return 1.0
    if observed == 0:
        return np.inf
    if observed <= uniform:
        return 0.0

    low, beta, high = 0.0, start, np.inf
    while True:
        mean, curvature = moments(beta)
        if mean < observed:
            low = beta
        else:
            high = beta
        step = (observed - mean) / curvature if curvature > 0 else np.inf
        if abs(step) <= _SMALL_STEP * beta:
            return beta + step
        new = beta + step
        if not low < new < high:
            new = (low + high) / 2 if high < np.inf else 2 * beta
        if new in (low, high):
            return new
        beta = new


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
