"""Slow twins of the fast kernels, which are obviously right."""

import functools
import itertools

import cvxpy
import numpy as np
from scipy import stats
from scipy.optimize import LinearConstraint, brentq, linprog, milp
from scipy.special import softmax

from skcalib._numerics.loess import loess_of_sorted


def normalised(weight, n):
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    return weight / weight.sum()


def labels_of_prior(log_proba, label, weight):
    """What samples of a prior expect of maps with parameters for each class (n, K).

    Of two classes, what is predicted; of more, softmax(log p / T) with the best T of the labels and
    eight samples with labels as predicted.
    """
    n_classes = log_proba.shape[1]
    proba = softmax(log_proba, axis=1)
    if n_classes == 2:
        return proba
    share = 8 * (weight**2).sum()
    target = (np.eye(n_classes)[label] + share * proba) / (1 + share)
    scale = np.abs(log_proba).max()

    def slope(inverse):
        residual = softmax(inverse / scale * log_proba, axis=1) - target
        return weight @ (residual * log_proba).sum(axis=1) / scale

    best = 0.0 if slope(0.0) >= 0 else brentq(slope, 0, 1e6, xtol=1e-15, rtol=1e-15)
    return softmax(best / scale * log_proba, axis=1)


def smooth_calibration_program(proba, outcome, weight=None):
    """Masses c (m,) at the sorted distinct predictions, and the distances (m − 1,) between them."""
    weight = normalised(weight, len(proba))
    points = sorted(set(proba))
    mass = [
        sum(w * (y - p) for p, y, w in zip(proba, outcome, weight, strict=True) if p == point)
        for point in points
    ]
    return np.array(mass), np.diff(points)


def smooth_calibration_linprog(proba, outcome, weight=None):
    """The linear program of Theorem 7.14 of Błasiok, Gopalan, Hu and Nakkiran (2023)."""
    mass, distance = smooth_calibration_program(proba, outcome, weight)
    step = np.diff(np.eye(len(mass)), axis=0)  # z -> z_{k+1} - z_k
    solution = linprog(
        -mass,
        A_ub=np.vstack([step, -step]),
        b_ub=np.concatenate([distance, distance]),
        bounds=(-1, 1),
        method="highs-ds",
    )
    return -solution.fun


def smooth_calibration_cvxpy(proba, outcome, weight=None):
    mass, distance = smooth_calibration_program(proba, outcome, weight)
    z = cvxpy.Variable(len(mass))
    constraints = [cvxpy.abs(z) <= 1, cvxpy.abs(cvxpy.diff(z)) <= distance]
    problem = cvxpy.Problem(cvxpy.Maximize(mass @ z), constraints)
    return problem.solve(solver=cvxpy.HIGHS)


def law_of_predictions(proba, outcome, weight):
    """The sorted distinct predictions u, and the weight of (u, y) for y = 0, 1: (m, 2)."""
    points, index = np.unique(proba, return_inverse=True)
    law = np.zeros((len(points), 2))
    np.add.at(law, (index, outcome), normalised(weight, len(proba)))
    return points, law


def lower_distance_by_joint_law(proba, outcome, weight, grid):
    """Linear program 17 of Błasiok et al. (2023), over the joint laws of (u, v, y), v in `grid`."""
    points, law = law_of_predictions(proba, outcome, weight)
    joint = [cvxpy.Variable((len(points), len(grid)), nonneg=True) for _ in range(2)]
    constraints = [cvxpy.sum(joint[y], axis=1) == law[:, y] for y in range(2)]
    positive, negative = cvxpy.sum(joint[1], axis=0), cvxpy.sum(joint[0], axis=0)
    constraints += [cvxpy.multiply(1 - grid, positive) == cvxpy.multiply(grid, negative)]
    cost = cvxpy.sum(cvxpy.multiply(np.abs(points[:, None] - grid), joint[0] + joint[1]))
    return cvxpy.Problem(cvxpy.Minimize(cost), constraints).solve(solver=cvxpy.HIGHS)


def lower_distance_by_slopes(proba, outcome, weight, grid):
    """Its dual, program 18: r(u, y) ≤ |u − v| + (y − v) s(v)."""
    points, law = law_of_predictions(proba, outcome, weight)
    r, s = cvxpy.Variable(law.shape), cvxpy.Variable((1, len(grid)))
    distance = np.abs(points[:, None] - grid)
    constraints = [r[:, [y]] <= distance + cvxpy.multiply((y - grid)[None], s) for y in range(2)]
    value = cvxpy.sum(cvxpy.multiply(law, r))
    return cvxpy.Problem(cvxpy.Maximize(value), constraints).solve(solver=cvxpy.HIGHS)


def lower_distance_by_potentials(proba, outcome, weight, grid):
    """Program 21, over two 1-Lipschitz functions on a grid that contains the predictions."""
    points, law = law_of_predictions(proba, outcome, weight)
    f = cvxpy.Variable((len(grid), 2))
    constraints = [cvxpy.abs(cvxpy.diff(f[:, y])) <= np.diff(grid) for y in range(2)]
    constraints += [cvxpy.multiply(1 - grid, f[:, 0]) + cvxpy.multiply(grid, f[:, 1]) <= 0]
    rows = np.searchsorted(grid, points)
    value = cvxpy.sum(cvxpy.multiply(law, f[rows]))
    return cvxpy.Problem(cvxpy.Maximize(value), constraints).solve(solver=cvxpy.HIGHS)


def interval_error_by_enumeration(proba, outcome, weight=None, precision=0.0):
    """min of binned error plus width over every partition of the distinct predictions."""
    points, law = law_of_predictions(proba, outcome, weight)
    total = law.sum(axis=1)
    before = np.cumsum(total) - total
    may_cut = [
        precision == 0
        or points[k] // precision > points[k - 1] // precision
        or before[k] // precision > before[k - 1] // precision
        for k in range(1, len(points))
    ]
    best = np.inf
    for cuts in itertools.product(*([False, True] if may else [False] for may in may_cut)):
        edges = [0, *(k + 1 for k, cut in enumerate(cuts) if cut), len(points)]
        cost = 0.0
        for first, stop in itertools.pairwise(edges):
            v, w = points[first:stop], law[first:stop]
            cost += abs(np.sum(w[:, 1] * (1 - v) - w[:, 0] * v)) + (v[-1] - v[0]) * w.sum()
        best = min(best, cost)
    return best


def set_partitions(items):
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for partition in set_partitions(rest):
        yield [[first], *partition]
        for k in range(len(partition)):
            yield [*partition[:k], [first, *partition[k]], *partition[k + 1 :]]


def distance_by_enumeration(proba, outcome, weight=None):
    """dCE: the least Σ w|p − g| over perfectly calibrated g, if all samples can be told apart."""
    weight = normalised(weight, len(proba))
    best = np.inf
    for partition in set_partitions(list(range(len(proba)))):
        cells = [np.array(cell) for cell in partition]
        best = min(
            best,
            sum(
                weight[c] @ np.abs(proba[c] - np.average(outcome[c], weights=weight[c]))
                for c in cells
            ),
        )
    return best


def upper_distance_by_enumeration(proba, outcome, weight=None):
    """dCE_up: the same over functions g of the prediction."""
    points, law = law_of_predictions(proba, outcome, weight)
    best = np.inf
    for partition in set_partitions(list(range(len(points)))):
        cells = [np.array(cell) for cell in partition]
        best = min(
            best,
            sum(
                law[c].sum(axis=1) @ np.abs(points[c] - law[c, 1].sum() / law[c].sum())
                for c in cells
            ),
        )
    return best


@functools.cache
def partitions_as_labels(n):
    """Every partition of n things: rows of the cell of each thing, (Bell number, n)."""
    rows = np.zeros((1, 1), dtype=np.int8)
    for _ in range(n - 1):
        choices = rows.max(axis=1) + 2  # a cell that is there, or a new one
        rank = np.concatenate([np.arange(k) for k in choices])
        rows = np.column_stack([np.repeat(rows, choices, axis=0), rank]).astype(np.int8)
    return rows


def least_change_by_enumeration(points, total, positive, order=1.0):
    """min over all partitions of (Σ w |p − mean outcome of the cell|^order)^(1/order)."""
    labels = partitions_as_labels(len(points))
    cost = np.zeros(len(labels))
    for cell in range(len(points)):
        inside = labels == cell
        mass = inside @ total
        mean = inside @ positive / np.where(mass > 0, mass, 1)
        cost += (inside * total * np.abs(points - mean[:, None]) ** order).sum(axis=1)
    return cost.min() ** (1 / order)


def least_change_by_integer_program(points, total, positive):
    """The same of order 1: choose cells, each at its cost, that cover every point once."""
    members = np.array(list(itertools.product([0, 1], repeat=len(points))))[1:]
    mean = members @ positive / (members @ total)
    cost = (members * total * np.abs(points - mean[:, None])).sum(axis=1)
    covered = LinearConstraint(members.T, 1, 1)
    return milp(cost, integrality=np.ones(len(cost)), constraints=covered, bounds=(0, 1)).fun


def least_change_of_split_points(points, total, positive, grid):
    """A linear program: points may be split among calibrated predictions on a grid."""
    outcome = positive / total
    moved = cvxpy.Variable((len(points), len(grid)), nonneg=True)
    change = cvxpy.sum(cvxpy.multiply(np.abs(points[:, None] - grid), moved))
    gap = cvxpy.sum(cvxpy.multiply(outcome[:, None] - grid, moved), axis=0)
    program = cvxpy.Problem(cvxpy.Minimize(change), [cvxpy.sum(moved, axis=1) == total, gap == 0])
    return program.solve(solver=cvxpy.HIGHS)


def isotonic_l1_by_enumeration(values, weights, upper):
    """min Σ weights·|values − G| over 0 ≤ G_1 ≤ … ≤ upper, G made of the values given."""
    candidates = sorted({0.0, upper, *np.clip(values, 0, upper)})
    # least cost so far, if the last G is that candidate
    best = dict.fromkeys(range(len(candidates)), 0.0)
    for value, weight in zip(values, weights, strict=True):
        running, cheapest = {}, np.inf
        for k, candidate in enumerate(candidates):
            cheapest = min(cheapest, best[k])
            running[k] = cheapest + weight * abs(value - candidate)
        best = running
    return min(best.values())


def uniform_bin(p, n_bins):
    """The j with j/B <= p < (j+1)/B, the last bin closed."""
    for j in range(n_bins):
        if p < (j + 1) / n_bins:
            return j
    return n_bins - 1


def quantile_bin(p, proba, weight, n_bins):
    below = sum(w for q, w in zip(proba, weight, strict=True) if q < p)
    return int(np.floor(n_bins * below / sum(weight) + 1e-9))


def binned_error(proba, outcome, weight, bins, n_bins, norm="l1"):
    weight = normalised(weight, len(proba))
    terms = []
    for j in range(n_bins):
        rows = [i for i in range(len(proba)) if bins[i] == j and weight[i] > 0]
        if rows:
            share = sum(weight[i] for i in rows)
            gap = abs(sum(weight[i] * (outcome[i] - proba[i]) for i in rows)) / share
            terms.append((share, gap))
    if norm == "l1":
        return sum(share * gap for share, gap in terms)
    if norm == "l2":
        return np.sqrt(sum(share * gap**2 for share, gap in terms))
    return max(gap for _, gap in terms)


def kernel_value(name, s, t, bandwidth):
    difference = np.asarray(s) - np.asarray(t)
    if name == "total-variation":
        return np.exp(-0.5 * np.abs(difference).sum() / bandwidth)
    if name == "laplacian":
        return np.exp(-np.abs(difference).sum() / bandwidth)
    if name == "exponential":
        return np.exp(-np.sqrt((difference**2).sum()) / bandwidth)
    if name == "intersection":
        return np.minimum(s, t).sum()
    return np.exp(-(difference**2).sum() / (2 * bandwidth**2))


def skce_by_loops(
    proba, label, kernel, bandwidth, estimation, weight=None, class_kernel=None, block_size=None
):
    """Table 1 of Widmann, Lindsten and Zachariah (2019); proba (n, K), label 0..K−1."""
    n, n_classes = proba.shape
    weight = normalised(weight, n)
    class_kernel = np.eye(n_classes) if class_kernel is None else class_kernel
    residual = np.eye(n_classes)[label] - proba
    block_size = {"linear": 2, "block": block_size}.get(estimation, n)
    used = n // block_size * block_size
    total = pairs = 0.0
    for i in range(used):
        for j in range(used):
            if i // block_size == j // block_size and (estimation == "biased" or i != j):
                k = kernel_value(kernel, proba[i], proba[j], bandwidth)
                h = k * (residual[i] @ class_kernel @ residual[j])
                total += weight[i] * weight[j] * h
                pairs += weight[i] * weight[j]
    return total if estimation == "biased" else total / pairs


def skce_of_matrices_by_loops(proba, label, kernel, estimation, weight=None, block_size=None):
    """The same with a matrix-valued kernel of two predictions, (K, K); Definition 1 there."""
    n, n_classes = proba.shape
    weight = normalised(weight, n)
    residual = np.eye(n_classes)[label] - proba
    block_size = {"linear": 2, "block": block_size}.get(estimation, n)
    used = n // block_size * block_size
    total = pairs = 0.0
    for i in range(used):
        for j in range(used):
            if i // block_size == j // block_size and (estimation == "biased" or i != j):
                matrix = kernel(proba[i], proba[j])
                for c in range(n_classes):
                    for d in range(n_classes):
                        h = residual[i, c] * matrix[c, d] * residual[j, d]
                        total += weight[i] * weight[j] * h
                pairs += weight[i] * weight[j]
    return total if estimation == "biased" else total / pairs


def brier_score(label, proba, weight=None):
    """As scikit-learn has it; before 1.7 it has it for two classes only."""
    indicator = label if proba.ndim == 1 else np.eye(proba.shape[1])[label]
    losses = (indicator - proba) ** 2
    return np.average(losses if proba.ndim == 1 else losses.sum(axis=1), weights=weight)


def dependence_by_pairs(weight, groups, residual, deviation):
    """How far residuals go together in each group, {group: from 0 to 1}, by loops over pairs.

    Of groups of at least half and at most twice its weight, and of two more of its own weight in
    which all goes together.
    """
    members = {g: np.flatnonzero(groups == g) for g in np.unique(groups).tolist()}

    def sum_pairs(values, rows):
        return sum(values[i] * values[j] for i in rows for j in rows if i != j)

    share = {g: weight[rows].sum() for g, rows in members.items()}
    products = {g: sum_pairs(residual, rows) for g, rows in members.items()}
    most = {g: sum_pairs(deviation, rows) for g, rows in members.items()}
    result = {}
    for g in members:
        similar = [h for h in members if 0.5 - 1e-8 <= share[h] / share[g] <= 2 + 1e-8]
        largest = sum(most[h] for h in similar) + 2 * most[g]
        ratio = (sum(products[h] for h in similar) + 2 * most[g]) / largest if largest > 0 else 1.0
        result[g] = min(max(ratio, 0.0), 1.0)
    return result


def change_without_groups(values, weight, groups):
    """How much a weighted mean changes without each group, as the jackknife counts it, by loops."""
    mean = np.average(values, weights=weight)
    names = np.unique(groups)
    without = [np.average(values[groups != g], weights=weight[groups != g]) for g in names]
    return np.sqrt((len(names) - 1) / len(names)) * (mean - np.array(without))


def student_by_hand(estimate, changes, size, least_variance=0.0):
    """The estimate, standard error and degrees of freedom of changes (U,)."""
    square = np.square(changes)
    scatter = sum((s - square.sum() / len(square)) ** 2 for s in square)
    degrees = 2 * square.sum() ** 2 / scatter if scatter else np.inf
    kinds = [
        (np.sqrt(square.sum()), max(1, min(degrees, size - 1))),
        (np.sqrt(least_variance), size - 1),
    ]
    widest = max(kinds, key=lambda kind: stats.t.ppf(0.975, kind[1]) * kind[0])
    return (estimate, *widest)


def loess(points, values, weight):
    """The smoothed values (n,) at the points (n,), by the fast kernel for sorted points."""
    order = np.lexsort((weight, values, points))  # of tied points, too, so that sums are the same
    fitted = np.empty(len(points))
    fitted[order] = loess_of_sorted(points[order], values[order], weight[order])
    return fitted
