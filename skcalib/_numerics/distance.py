"""The least transport that makes a joint law of predictions and labels calibrated.

With Γ_y the weight of the predictions with label y ∈ {0, 1}, and μ the law of the calibrated
predictions v, the lower distance to calibration of Błasiok, Gopalan, Hu & Nakkiran (2023) is

    min_μ  W1(Γ_0, (1 − v) μ) + W1(Γ_1, v μ).

Its dual, equation 21 of the paper, is to maximise ∫ f_0 dΓ_0 + ∫ f_1 dΓ_1 over 1-Lipschitz f_0 and
f_1 with (1 − v) f_0(v) + v f_1(v) ≤ 0 on [0, 1]. Here f_0 and f_1 are linear between nodes, and the
constraint holds at the nodes. An interior point method solves this linear program; its Newton
equations couple neighbouring nodes only, so a step costs O(nodes). The solution only proposes f and
μ: `_dual_bound` and `_primal_bound` turn them into bounds that hold for the data.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded

from .sorting import first_of_ties

# The first nodes cut [0, 1] into this many intervals, or follow the grid if that is coarser.
# Between nodes at a distance d the constraint is violated by at most d²/2.
_N_INTERVALS = 256

# Close nodes make the Newton equations stiff. If rounding makes their matrix indefinite, its
# diagonal is multiplied by 1 plus one of these numbers, the first that makes the matrix definite.
_REGULARISATION = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)

# The interior point method ends when its duality gap is below this fraction of the tolerance.
_DUALITY_GAP = 1e-3

_MAX_INTERIOR_STEPS = 200

_MAX_GRID_ROUNDS = 10

# A step goes this fraction of the way to the boundary.
_STEP_FRACTION = 0.995


class CertifiedTransport(NamedTuple):
    """Two bounds on the lower distance, and what proves them."""

    lower: float  # Σ weight · potentials, at the points
    upper: float  # cost of moving the points to the law
    nodes: np.ndarray  # (k,), sorted, from 0 to 1
    law: np.ndarray  # (k,), μ: the mass of the calibrated law at each node
    potentials: np.ndarray  # (2, k), f_0 and f_1 at the nodes, linear between them


def transport_bounds(
    points: np.ndarray, weight: np.ndarray, tol: float, step: float | None = None
) -> CertifiedTransport:
    """A lower and an upper bound on the lower distance, at most `tol` apart if that is reached.

    Points (m,) sorted and distinct in [0, 1], weight (2, m) of each label at each point, summing to
    1. The nodes are equally spaced ones and the points, all rounded to a grid whose step is at
    first about `step`, by default 4 `tol`; the bounds are those of the points themselves all the
    same. Where f breaks the constraint between nodes, nodes are added. If it does not, and the
    bounds are still too far apart, the grid is refined, or made coarser if the program on it could
    not be solved.
    """
    total = weight.sum(axis=1)
    if total.min() == 0:
        # calibrated predictions of one label alone are all 0, or all 1: the bounds are equal
        value, label = float(weight[0] @ points + weight[1] @ (1 - points)), int(total[0] == 0)
        nodes = np.array([0.0, 1.0])
        # f_0(v) = v and f_1(v) = v − 1, or the negatives: (1 − v) f_0 + v f_1 = 0
        potentials = (1 - 2 * label) * np.stack([nodes, nodes - 1])
        return CertifiedTransport(value, value, nodes, np.eye(2)[label], potentials)
    lower, upper = 0.0, np.inf
    ends = np.array([0.0, 1.0])
    dual, primal = (ends, np.zeros((2, 2))), (ends, total)
    grid = min(2.0 ** np.floor(np.log2(step or 4 * tol)), 1 / 4)
    extra = np.linspace(0, 1, _N_INTERVALS + 1)
    for _ in range(_MAX_GRID_ROUNDS):
        rounded = np.round(points / grid)
        rounded = np.union1d(rounded[first_of_ties(rounded)], np.round(extra / grid))
        nodes = rounded * grid
        split = _split_between_nodes(points, weight, nodes)
        f, target, is_solved = _solve_program(nodes, split, _DUALITY_GAP * tol)
        bound, violated, feasible = _dual_bound(nodes, split, f, tol / 8)
        if bound > lower:
            lower, dual = bound, (nodes, feasible)
        cost = _primal_bound(points, weight, nodes, target)
        if cost < upper:
            upper, primal = cost, (nodes, _calibrate_nodes(nodes, target, total).sum(axis=0))
        if upper - lower <= tol:
            break
        if not is_solved:
            grid *= 2
        elif len(violated):
            extra = np.union1d(extra, violated)
        else:
            grid /= 2
    nodes = np.union1d(dual[0], primal[0])  # the two bounds may stem from different rounds
    law = np.zeros(len(nodes))
    law[np.searchsorted(nodes, primal[0])] = primal[1]
    potentials = np.stack([np.interp(nodes, dual[0], f) for f in dual[1]])
    return CertifiedTransport(lower, upper, nodes, law, potentials)


def _split_between_nodes(points: np.ndarray, weight: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Weight (2, k) at the nodes with the same integrals of functions linear between nodes."""
    left = np.minimum(np.searchsorted(nodes, points, side="right") - 1, len(nodes) - 2)
    share_right = (points - nodes[left]) / (nodes[left + 1] - nodes[left])
    pairs, k = zip(weight * (1 - share_right), weight * share_right, strict=True), len(nodes)
    return np.stack([np.bincount(left, a, k) + np.bincount(left + 1, b, k) for a, b in pairs])


def _dual_bound(
    nodes: np.ndarray, split: np.ndarray, f: np.ndarray, tolerance: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """The objective of f (k, 2) made feasible, where f breaks the constraint by too much, and f.

    The last is the feasible pair of functions (2, k).
    """
    f, violation, top, peak = _violation(nodes, f)
    value = float(np.sum(split.T * f) - violation)
    return value, top[peak > tolerance], (f - violation).T


def _violation(
    nodes: np.ndarray, f: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """f (k, 2) made 1-Lipschitz, and the most by which it then breaks the other constraint.

    That constraint is homogeneous, so dividing f by its steepest slope keeps it. Its left side is
    quadratic between nodes, so its largest value v is known, and f − v satisfies it. Also returns
    the local maxima between nodes: where they are, and how high.
    """
    distance = np.diff(nodes)
    f = f / max(1.0, np.max(np.abs(np.diff(f, axis=0)) / distance[:, None]))
    slope = np.diff(f, axis=0) / distance[:, None]  # (k - 1, 2)
    level = (1 - nodes) * f[:, 0] + nodes * f[:, 1]  # (k,)
    # at a distance t from the left node, level + linear·t + curvature·t²
    curvature = slope[:, 1] - slope[:, 0]
    linear = f[:-1, 1] - f[:-1, 0] + (1 - nodes[:-1]) * slope[:, 0] + nodes[:-1] * slope[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        top = np.where(curvature < 0, -linear / (2 * curvature), 0.0)
    inside = (top > 0) & (top < distance)
    top, rise = top[inside], (linear[inside] * top[inside] + curvature[inside] * top[inside] ** 2)
    peak = level[:-1][inside] + rise
    violation = max(0.0, level.max(), peak.max(initial=0.0))
    return f, violation, nodes[:-1][inside] + top, peak


def _primal_bound(
    points: np.ndarray, weight: np.ndarray, nodes: np.ndarray, target: np.ndarray
) -> float:
    """The cost of moving the points to a calibrated law made of `target` (k,) at the nodes."""
    offered = _calibrate_nodes(nodes, target, weight.sum(axis=1))
    change = np.concatenate([points, nodes])
    order = np.argsort(change, kind="stable")  # merges two sorted runs
    excess = np.concatenate([weight, -offered], axis=1)[:, order].cumsum(axis=1)
    return float(np.sum(np.abs(excess[:, :-1]) @ np.diff(change[order])))


def _calibrate_nodes(nodes: np.ndarray, target: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Mass (2, k) of each label at the nodes: (1 − v) μ and v μ, with the labels' total weights.

    `target` (k,) is scaled down until it needs no more of either label than there is. What is left
    of label 0 goes to the node 0, what is left of label 1 to the node 1.
    """
    offered = np.stack([(1 - nodes) * target, nodes * target])  # (2, k)
    offered *= min(1.0, *(total / offered.sum(axis=1)))
    offered[0, 0] += total[0] - offered[0].sum()
    offered[1, -1] += total[1] - offered[1].sum()
    return offered


def _solve_program(
    nodes: np.ndarray, split: np.ndarray, gap: float
) -> tuple[np.ndarray, np.ndarray, bool]:
    """f (k, 2) and μ (k,) that nearly solve the program on the nodes, and whether they do.

    Mehrotra's predictor-corrector method for: maximise Σ split·f subject to A f ≤ limit, with
    slacks s > 0 and multipliers z > 0, Aᵀ z = split. The multipliers of the Lipschitz constraints
    are flows of weight between neighbouring nodes, those of calibration are μ.
    """
    program = _Program(nodes)
    objective = split.T  # (k, 2)
    f = np.full(objective.shape, -1.0)
    s = np.concatenate([program.limit[: -len(nodes)], np.ones(len(nodes))])
    z = np.concatenate([np.ones(len(s) - len(nodes)), np.full(len(nodes), 1 / len(nodes))])
    is_solved = False
    for _ in range(_MAX_INTERIOR_STEPS):
        missing = objective - program.adjoint(z)
        slack = program.limit - program.apply(f) - s
        products = s * z
        current = products.sum()  # not a dot product: threads would be slower, and change digits
        is_solved = bool(current < gap)
        if is_solved:
            break
        factor = program.normal_factor(z / s)
        if factor is None:
            break
        newton = partial(_interior_point_step, program, (factor, s, z, missing, slack))
        _, ds, dz = newton(-products)
        reached = np.sum((s + _max_step(s, ds) * ds) * (z + _max_step(z, dz) * dz))
        centre = (reached / current) ** 3 * current / len(s)
        df, ds, dz = newton(centre - products - ds * dz)
        primal, dual = _STEP_FRACTION * _max_step(s, ds), _STEP_FRACTION * _max_step(z, dz)
        f += primal * df
        s += primal * ds
        z += dual * dz
    return f, z[-len(nodes) :], is_solved


def _interior_point_step(
    program: "_Program", system: tuple[np.ndarray, ...], product: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps of f, s and z after which the equations hold and each s·z has grown by `product`.

    The system is the factor of the normal equations, s, z, and what is missing in either equation.
    """
    factor, s, z, missing, slack = system
    rhs = missing - program.adjoint((product - z * slack) / s)
    df = cho_solve_banded((factor, True), rhs.ravel(), check_finite=False).reshape(rhs.shape)
    ds = slack - program.apply(df)
    return df, ds, (product - z * ds) / s


def _max_step(values: np.ndarray, change: np.ndarray) -> float:
    """The longest step, at most 1, that keeps positive values from becoming negative."""
    with np.errstate(divide="ignore"):
        return float(min(1.0, 1 / np.max(-change / values, initial=0.0)))


class _Program:
    """The constraints A f ≤ limit: f is 1-Lipschitz, and (1 − v) f_0 + v f_1 ≤ 0 at the nodes."""

    def __init__(self, nodes: np.ndarray):
        distance = np.repeat(np.diff(nodes), 2)
        self.weights = np.column_stack([1 - nodes, nodes])  # (k, 2)
        self.limit = np.concatenate([distance, distance, np.zeros(len(nodes))])

    def apply(self, f: np.ndarray) -> np.ndarray:
        rise = np.diff(f, axis=0).ravel()
        return np.concatenate([rise, -rise, np.einsum("ky,ky->k", self.weights, f)])

    def _split_constraints(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n_nodes = len(self.weights)
        rise, fall = z[:-n_nodes].reshape(2, n_nodes - 1, 2)
        return rise, fall, z[-n_nodes:]

    def adjoint(self, z: np.ndarray) -> np.ndarray:
        rise, fall, level = self._split_constraints(z)
        result = self.weights * level[:, None]
        result[1:] += rise - fall
        result[:-1] -= rise - fall
        return result

    def normal_factor(self, scale: np.ndarray) -> np.ndarray | None:
        """Cholesky factor of Aᵀ diag(scale) A in lower banded form, f being read row by row.

        None if rounding makes the matrix indefinite even with the largest increase of its diagonal.
        """
        rise, fall, level = self._split_constraints(scale)
        coupling = rise + fall
        band = np.zeros((3, *self.weights.shape))
        band[0] = self.weights**2 * level[:, None]
        band[0, 1:] += coupling
        band[0, :-1] += coupling
        band[1, :, 0] = self.weights.prod(axis=1) * level
        band[2, :-1] = -coupling
        band = band.reshape(3, -1)
        diagonal = band[0].copy()
        for increase in _REGULARISATION:
            band[0] = (1 + increase) * diagonal
            try:
                return cholesky_banded(band, lower=True, check_finite=False)
            except LinAlgError:
                continue
        return None
