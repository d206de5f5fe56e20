"""Slow, obviously right twins of the fast kernels, and simulators."""

import cvxpy
import numpy as np
from scipy.optimize import linprog


def labels_of(proba, rng):
    """Labels drawn from the predictions, one at a time."""
    if proba.ndim == 1:
        return np.array([int(rng.random() < p) for p in proba])
    return np.array([rng.choice(len(row), p=row / row.sum()) for row in proba])


def random_problem(rng, n, n_classes=2, calibrated=False):
    """Labels and probabilities: (n,) for two classes, else (n, K)."""
    if n_classes == 2:
        proba = rng.random(n)
        truth = proba if calibrated else proba**2
    else:
        proba = rng.dirichlet(np.ones(n_classes), size=n)
        truth = proba if calibrated else proba**3 / (proba**3).sum(axis=1, keepdims=True)
    return labels_of(truth, rng), proba


def normalised(weight, n):
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    return weight / weight.sum()


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
    return np.exp(-(difference**2).sum() / (2 * bandwidth**2))


def skce_by_loops(proba, label, kernel, bandwidth, estimator, weight=None):
    """Table 1 of Widmann, Lindsten and Zachariah (2019); proba (n, K), label 0..K−1."""
    n, n_classes = proba.shape
    weight = normalised(weight, n)
    residual = np.eye(n_classes)[label] - proba
    total = pairs = 0.0
    for i in range(n):
        for j in range(n):
            if estimator == "biased" or i != j:
                k = kernel_value(kernel, proba[i], proba[j], bandwidth)
                total += weight[i] * weight[j] * k * (residual[i] @ residual[j])
                pairs += weight[i] * weight[j]
    return total if estimator == "biased" else total / pairs


def two_columns(proba):
    return np.column_stack([1 - proba, proba])
