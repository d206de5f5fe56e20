"""Logistic regression on weighted outcomes, with or without a quadratic penalty.

Each row x_i of a design has a mass of either outcome, m_i0 and m_i1. Both may be positive, as when
rows with the same features are pooled. The loss is

    Σ_i (m_i0 log(1 + exp(x_iᵀβ)) + m_i1 log(1 + exp(−x_iᵀβ))) + |Dβ|²/2.

Newton's method works in the coordinates z = Tβ of a basis of the columns that is orthonormal under
the weight w_i = m_i0 + m_i1, so that neither the scale nor the origin of the features matters.
"""

from typing import NamedTuple

import numpy as np

from .newton import line_search

# Newton's method ends after a step that lowers the loss by less than this fraction of it: each step
# squares the fraction, so that the gain of the next one would be rounding.
_GAIN_RTOL = 1e-12

# The last step changes the log-odds by less than this. If no step does, there is no minimum.
_LOG_ODDS_ATOL = 1e-5

# A probability that differs from 0 or 1 by less than this counts as equal to it.
_CERTAIN_ATOL = float(np.finfo(np.float64).eps)

_MAX_LOGISTIC_STEPS = 100
MAX_NEWTON_STEP = 30.0

# A column is treated as a combination of others if less than this fraction of it is left when these
# are projected out; a slope is treated as 0 if it is below this fraction of its terms. Both are
# rounding errors.
_BASIS_COLUMN_RTOL = 1e-13
_SLOPE_RTOL = 1e-15

# A triangular root that was computed from its square has lost too many digits if an entry of its
# diagonal is below this fraction of another: its square is this small, squared.
_ROOT_RTOL = 1e-4

# Rows per block: at most the first number, which fit into the cache, and about the second divided
# by d² for d columns, as larger products would start threads, which cost more than they gain.
_DESIGN_BLOCK_SIZE, _DESIGN_BLOCK_WORK = 2**13, 2**18


class LogisticFit(NamedTuple):
    coefficients: np.ndarray  # (d,)
    loss: float
    converged: bool


class Moments(NamedTuple):
    """The loss at a point, and its first and second derivatives."""

    position: np.ndarray  # (d,)
    loss: float
    gradient: np.ndarray  # (d,)
    root: np.ndarray  # (d, d), triangular: root' root is the matrix of second derivatives
    noise: float  # the rounding error of the gradient


def logistic_fit(
    design: np.ndarray, mass: np.ndarray, start: np.ndarray, max_steps: int = _MAX_LOGISTIC_STEPS
) -> LogisticFit:
    """The unpenalised coefficients (d,) for a design (n, d) and the mass of the outcomes (2, n).

    A column that is a combination of those before it keeps its coefficient in `start`. If the loss
    has no minimum, the coefficients are finite, and almost attain the infimum. O(nd²) a step.
    """
    basis, triangle = orthonormal_basis(design, mass.sum(axis=0))
    optimum, converged = newton(basis, mass, triangle @ start, max_steps=max_steps)
    return LogisticFit(np.linalg.solve(triangle, optimum.position), optimum.loss, converged)


def orthonormal_basis(
    design: np.ndarray, weight: np.ndarray, *, overwrite: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Q (n, d) and triangular T (d, d) with design = QT and QᵀWQ = I, by Gram–Schmidt.

    A column that depends on those before it becomes 0 in Q. Then the component of Tβ is its
    coefficient itself, and has no effect. Q may overwrite the design, which saves its memory.
    """
    d = design.shape[1]
    basis = design if overwrite else np.empty(design.shape, order="F")
    triangle = np.eye(d)
    for j in range(d):
        column = np.array(design[:, j], dtype=np.float64)
        size = np.sqrt(weight @ column**2)
        for _ in range(2):  # the second pass removes rounding errors of the first
            overlap = basis[:, :j].T @ (weight * column)
            column -= basis[:, :j] @ overlap
            triangle[:j, j] += overlap
        residual_norm = np.sqrt(weight @ column**2)
        is_new = residual_norm > _BASIS_COLUMN_RTOL * size
        triangle[j, j] = residual_norm if is_new else 1.0
        basis[:, j] = column / residual_norm if is_new else 0.0
    return basis, triangle


def newton(
    basis: np.ndarray,
    mass: np.ndarray,
    position: np.ndarray,
    penalty: np.ndarray | None = None,
    max_steps: int = _MAX_LOGISTIC_STEPS,
    *,
    cache: dict[bytes, Moments] | None = None,
    min_promise: float = -np.inf,
) -> tuple[Moments, bool]:
    """Return the moments at the minimum over z (d,), and True if it has been reached.

    The basis (n, d) is orthonormal, and the penalty is |Dz|²/2 with D (m, d). The search starts
    from `position`, or from 0 if the loss is lower there. Outcomes that are fitted up to rounding
    can be separated; then there is no minimum. A step that promises no more than `enough` is not
    taken. `cache` holds the moments without penalty by position, for fits with other penalties.
    """
    if penalty is None:
        penalty = np.zeros((0, basis.shape[1]))
    cache = {} if cache is None else cache

    def evaluate(position: np.ndarray) -> Moments:
        key = position.tobytes()
        if key not in cache:
            cache[key] = _loss_moments(basis, mass, position)
        return _add_penalty(cache[key], penalty)

    origin = np.where(basis.any(axis=0), 0.0, position)
    here = min(evaluate(position), evaluate(origin), key=lambda moments: moments.loss)
    total = mass.sum(axis=0)
    separated = _CERTAIN_ATOL * total.min(where=total > 0, initial=total.max())
    for _ in range(max_steps):
        if here.loss <= separated:
            return here, False
        step, slope, hidden = _newton_step(here)
        if slope <= min_promise:
            return here, not hidden
        last_gain = _GAIN_RTOL * here.loss
        rounding = np.inf if slope <= last_gain else 0.0  # a flat loss is rounding
        there = line_search(evaluate, here.position, step, here.loss, slope, rounding=rounding)
        if there is None:
            return here, False
        here = there
        is_last = slope <= last_gain and np.linalg.norm(step) <= _LOG_ODDS_ATOL
        if is_last:
            return here, not hidden
    return here, False


def _newton_step(moments: Moments) -> tuple[np.ndarray, float, bool]:
    """The step, the slope of the loss along it, and True if rounding hides a component of it.

    The step is 0 in directions where the slope is lost in rounding. It is cut off in directions
    where fitted probabilities of almost 0 or 1 make the curvature look smaller than it is further
    along.
    """
    _, root, directions = np.linalg.svd(moments.root)
    slope = directions @ moments.gradient
    with np.errstate(divide="ignore", over="ignore"):  # infinite steps are cut off below
        step = np.divide(slope, root**2, out=np.zeros_like(slope), where=slope != 0)
    step = np.clip(step, -MAX_NEWTON_STEP, MAX_NEWTON_STEP)
    is_lost = np.abs(slope) <= moments.noise
    hidden = bool(np.abs(step[is_lost]).max(initial=0.0) > _LOG_ODDS_ATOL)
    step[is_lost] = 0
    return -step @ directions, float(slope @ step), hidden


def _add_penalty(moments: Moments, penalty: np.ndarray) -> Moments:
    bent = penalty @ moments.position  # (m,)
    return moments._replace(
        loss=moments.loss + float(bent @ bent) / 2,
        gradient=moments.gradient + bent @ penalty,
        root=np.asarray(np.linalg.qr(np.vstack([moments.root, penalty]), mode="r")),
    )


def _loss_moments(basis: np.ndarray, mass: np.ndarray, position: np.ndarray) -> Moments:
    """The loss and its derivatives at a position, summed over blocks of rows.

    The log-odds η_i lean to one outcome. With s_i the fitted probability of the other one, and m_i
    its mass, the loss is w_i log(1 + exp(−|η_i|)) + m_i|η_i| and its derivative ±(m_i − w_i s_i),
    which keep every digit where s_i is almost 0. The second derivatives are a sum of products, or
    come from an orthogonal factor where rounding errors of that sum would hide small ones.
    """
    d = len(position)
    loss, square, gradient, curvature = 0.0, 0.0, np.zeros(d), np.zeros((d, d))
    variance = np.empty(len(basis))
    n_rows = min(_DESIGN_BLOCK_SIZE, _DESIGN_BLOCK_WORK // d**2 + d)
    blocks = [slice(first, first + n_rows) for first in range(0, len(basis), n_rows)]
    for rows in blocks:
        negative, positive = mass[:, rows]
        weight = negative + positive
        log_odds = basis[rows] @ position
        lean = np.abs(log_odds)
        other = np.exp(-lean)  # s/(1 − s); divided by 1 plus itself below, it is s
        miss = np.where(log_odds > 0, negative, positive)
        loss += float(weight @ np.log1p(other) + miss @ lean)
        other /= 1 + other
        variance[rows] = weight * other * (1 - other)
        curvature += basis[rows].T @ (variance[rows, None] * basis[rows])
        other *= weight
        pull = np.where(log_odds > 0, miss - other, other - miss)
        gradient += pull @ basis[rows]
        square += float(pull @ (pull / weight))
    root = _triangular_root(curvature)
    if root is None:
        root = np.zeros((d, d))
        for rows in blocks:  # R with RᵀR = Σ AᵀA over the roots A
            scaled = np.sqrt(variance[rows, None]) * basis[rows]
            root = np.asarray(np.linalg.qr(np.vstack([root, scaled]), mode="r"))
    return Moments(position, loss, gradient, root, _SLOPE_RTOL * np.sqrt(square))


def _triangular_root(square: np.ndarray) -> np.ndarray | None:
    """R with RᵀR = square; None if rounding errors would be too large."""
    try:
        root = np.linalg.cholesky(square).T
    except np.linalg.LinAlgError:
        return None
    size = root.diagonal()
    return root if size.min() > _ROOT_RTOL * size.max() else None
