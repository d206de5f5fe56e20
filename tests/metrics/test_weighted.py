"""The weighted calibration error equals closed forms or other programs for every function class."""

import subprocess
import sys
from importlib.metadata import version

import cvxpy
import numpy as np
import pytest
from oracles import kernel_value, normalised
from problems import random_problem, two_columns
from scipy.optimize import linprog
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.utils.fixes import parse_version

from skcalib import function_classes
from skcalib.function_classes import (
    Bounded,
    FunctionClass,
    Lipschitz,
    Monotone,
    RKHSBall,
    Sign,
    TotalVariation,
)
from skcalib.metrics import (
    expected_calibration_error,
    make_scorer,
    smooth_calibration_error,
    squared_kernel_calibration_error,
    weighted_calibration_error,
)

SMOOTH = Lipschitz() & Bounded()
SMOOTH_PROGRAM = Lipschitz() & Bounded() & Bounded()  # the same functions, by linear programming
SEEDS = range(6)  # all kinds of `random_case`


def random_case(seed, n_classes=2):
    """Labels, predictions with ties, and weights or none."""
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, int(rng.integers(n_classes, 20)), n_classes)
    if n_classes > 2:
        proba[-1] = proba[0]
    elif seed % 2:
        proba = np.round(proba, 1)  # 0 and 1 among them
    weight = rng.choice([0.5, 1.0, 3.0], size=len(label)) if seed % 3 else None
    return label, proba, weight


def pooled_by_loops(label, proba, weight):
    """The sorted distinct predictions, and the sum of w (y − p) at each; vectors for K classes."""
    weight = normalised(weight, len(label))
    outcome = label if proba.ndim == 1 else np.eye(proba.shape[1])[label]
    mass = {}
    for y, p, w in zip(outcome, proba, weight, strict=True):
        key = tuple(np.atleast_1d(p))
        mass[key] = mass.get(key, 0) + w * (y - p)
    points = np.array(sorted(mass))
    return points.reshape(-1, *proba.shape[1:]), np.array([mass[key] for key in sorted(mass)])


def error(function_class, label, proba, weight=None, **kwargs):
    labels = range(2 if np.ndim(proba) == 1 else len(proba[0]))
    return weighted_calibration_error(
        label, proba, sample_weight=weight, labels=labels, function_class=function_class, **kwargs
    )


# Two classes


@pytest.mark.parametrize("seed", SEEDS)
def test_default_is_the_smooth_error(seed):
    label, proba, weight = random_case(seed)
    options = {"sample_weight": weight, "labels": [0, 1]}
    expected = smooth_calibration_error(label, proba, **options)
    assert weighted_calibration_error(label, proba, **options) == expected
    assert error(Bounded() & Lipschitz(), label, proba, weight) == expected
    assert error(SMOOTH_PROGRAM, label, proba, weight) == pytest.approx(expected, abs=1e-12)


def test_default_of_two_classes_solves_no_program(monkeypatch):
    monkeypatch.setattr(cvxpy.Problem, "solve", None)
    assert weighted_calibration_error([0, 1], [0.4, 0.6]) == pytest.approx(0.04)


@pytest.mark.parametrize("gap", [6e-8, 1e-9, 1e-12])
def test_neighbours_may_be_closer_than_the_tolerance_of_the_solver(gap):
    label, proba = [1, 1, 0], [0.5, 0.5 + gap, 0.503]
    expected = smooth_calibration_error(label, proba)
    assert error(SMOOTH_PROGRAM, label, proba) == pytest.approx(expected, abs=1e-12)


def test_residuals_may_be_smaller_than_the_tolerance_of_the_solver():
    residual = 1e-13
    label, proba = [0, 0, 1], [residual, 2 * residual, 0.5]
    weight = [1, 1, 1e-20]
    expected = 1.5 * residual
    for function_class in (SMOOTH_PROGRAM, Monotone(increasing=False) & Bounded(), Bounded()):
        assert error(function_class, label, proba, weight) == pytest.approx(expected, rel=1e-9)
    with pytest.raises(ValueError, match="must be bounded"):
        error(Lipschitz(), label, proba, weight)


@pytest.mark.parametrize("epsilon", [0.01, 0.25, 0.5])
def test_two_points_by_hand(epsilon):
    # residuals −(½ − ε) and ½ − ε, 2ε apart, each with weight ½
    label, proba, r = [0, 1], np.array([0.5 - epsilon, 0.5 + epsilon]), 0.5 - epsilon
    for function_class, expected in {
        SMOOTH: epsilon * r,
        SMOOTH_PROGRAM: epsilon * r,
        Lipschitz(0.5) & Bounded(): 0.5 * epsilon * r,
        Bounded(2.0): 2 * r,
        Monotone() & Bounded(): r,
        Monotone(increasing=False) & Bounded(): 0,
        Bounded() & Sign(): r / 2,
        Bounded() & Sign(positive=False): r / 2,
        Lipschitz() & Bounded() & Sign(): epsilon * r,
        TotalVariation(1.0, "right"): r / 2,
        TotalVariation(2.0, "both"): r / 2,
    }.items():
        assert error(function_class, label, proba) == pytest.approx(expected, abs=1e-12)
    kernel = (0.5 - epsilon) * np.sqrt((1 - np.exp(-2 * epsilon)) / 2)
    assert error(RKHSBall(), label, proba) == pytest.approx(kernel, abs=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_bounded_is_the_mean_absolute_residual_of_distinct_predictions(seed):
    label, proba, weight = random_case(seed)
    _, mass = pooled_by_loops(label, proba, weight)
    assert error(Bounded(), label, proba, weight) == pytest.approx(np.abs(mass).sum(), abs=1e-12)
    positive = error(Bounded() & Sign(), label, proba, weight)
    negative = error(Bounded() & Sign(positive=False), label, proba, weight)
    assert positive == pytest.approx(mass[mass > 0].sum(), abs=1e-12)
    assert negative == pytest.approx(-mass[mass < 0].sum(), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_total_variation_gives_the_cumulative_errors(seed):
    label, proba, weight = random_case(seed)
    _, mass = pooled_by_loops(label, proba, weight)
    sums = np.append(0, np.cumsum(mass))
    for function_class, expected in {
        TotalVariation(1.0, "right"): np.abs(sums).max(),
        TotalVariation(1.0, "left"): np.abs(sums[-1] - sums).max(),
        TotalVariation(2.0, "both"): sums.max() - sums.min(),
        TotalVariation(0.0) & Bounded(): np.abs(sums[-1]),  # constants
    }.items():
        assert error(function_class, label, proba, weight) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_monotone_functions_are_mixtures_of_thresholds(seed):
    label, proba, weight = random_case(seed)
    _, mass = pooled_by_loops(label, proba, weight)
    # −1 below a threshold and 1 above, whose residuals are these
    thresholds = [mass[k:].sum() - mass[:k].sum() for k in range(len(mass) + 1)]
    up = error(Monotone() & Bounded(), label, proba, weight)
    down = error(Monotone(increasing=False) & Bounded(), label, proba, weight)
    assert up == pytest.approx(max(thresholds), abs=1e-12)
    assert down == pytest.approx(-min(thresholds), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_ball_of_the_laplace_kernel_is_the_kernel_error(seed):
    bandwidth = 1.0 if seed < 3 else 0.05
    label, proba, weight = random_case(seed)
    points, mass = pooled_by_loops(label, proba, weight)
    total = 0
    for p, c in zip(points, mass, strict=True):
        for q, d in zip(points, mass, strict=True):
            total += c * d * np.exp(-abs(p - q) / bandwidth)
    actual = error(RKHSBall("laplacian", bandwidth, radius=3.0), label, proba, weight)
    assert actual == pytest.approx(3 * np.sqrt(total), abs=1e-8)


def test_total_variation_kernel_of_two_classes_is_that_of_the_squared_kernel_error():
    label, proba, weight = random_case(1)
    for bandwidth in (0.3, "median"):
        squared = squared_kernel_calibration_error(
            label, proba, sample_weight=weight, bandwidth=bandwidth, estimator="biased"
        )
        actual = error(RKHSBall("total-variation", bandwidth), label, proba, weight)
        assert actual == pytest.approx(np.sqrt(squared / 2), abs=1e-8)


def test_lipschitz_functions_alone_give_the_transport_cost_if_the_mean_residual_is_0():
    # masses 0.75/2 and −0.75/2 at a distance of 0.5: bounded, although the class is not
    proba, label = [0.25, 0.75], [1, 0]
    assert error(Lipschitz(), label, proba) == pytest.approx(0.75 / 2 * 0.5, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS[1:2])
def test_intersections_are_smaller(seed):
    label, proba, weight = random_case(seed)
    parts = [SMOOTH, Monotone() & Bounded(), TotalVariation(0.5, "both"), RKHSBall(), Bounded(0.3)]
    values = [error(part, label, proba, weight) for part in parts]
    for i in range(len(parts)):
        for j in range(i):
            both = error(parts[i] & parts[j], label, proba, weight)
            assert -1e-8 <= both <= min(values[i], values[j]) + 1e-8
            swapped = error(parts[j] & parts[i], label, proba, weight)
            assert swapped == pytest.approx(both, abs=1e-8)


@pytest.mark.parametrize(
    "function_class", [SMOOTH, RKHSBall(), Monotone() & Bounded()], ids=["smooth", "ball", "up"]
)
def test_two_columns_are_one(function_class):
    label, proba, weight = random_case(1)
    reference = error(function_class, label, proba, weight)
    assert error(function_class, label, two_columns(proba), weight) == reference


def test_one_distinct_prediction():
    label, proba = [0, 1, 1, 1], [0.5] * 4
    for function_class in (SMOOTH, Monotone() & Bounded(), TotalVariation() & Bounded()):
        assert error(function_class, label, proba) == pytest.approx(0.25, abs=1e-12)
    label, proba = [0, 1, 1, 2], [[0.25, 0.25, 0.5]] * 4  # residuals (0, ¼, −¼)
    for function_class in (SMOOTH, Monotone() & Bounded()):
        assert error(function_class, label, proba) == pytest.approx(0.5, abs=1e-12)


# More classes


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kernel", ["laplacian", "exponential", "total-variation", "rbf"])
def test_ball_is_the_root_of_the_squared_kernel_error(seed, kernel):
    label, proba, weight = random_case(seed, 3)
    bandwidth = "median" if seed % 2 else 0.3
    squared = squared_kernel_calibration_error(
        label,
        proba,
        sample_weight=weight,
        labels=range(3),
        kernel=kernel,
        bandwidth=bandwidth,
        estimator="biased",
    )
    actual = error(RKHSBall(kernel, bandwidth), label, proba, weight)
    assert actual == pytest.approx(np.sqrt(squared), abs=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_kernels_of_scikit_learn_and_of_the_user(n_classes):
    label, proba, weight = random_case(1, n_classes)

    def gauss(s, t):
        return np.array([[kernel_value("rbf", a, b, 0.4) for b in t] for a in s])

    reference = error(RKHSBall("rbf", 0.4), label, proba, weight)
    assert error(RKHSBall(RBF(0.4)), label, proba, weight) == pytest.approx(reference, abs=1e-8)
    assert error(RKHSBall(gauss), label, proba, weight) == pytest.approx(reference, abs=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_bounded_is_the_l1_norm_of_the_residuals_of_distinct_rows(seed):
    label, proba, weight = random_case(seed, 3)
    _, mass = pooled_by_loops(label, proba, weight)
    assert len(mass) < len(label)
    assert error(Bounded(), label, proba, weight) == pytest.approx(np.abs(mass).sum(), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_monotone_components_are_those_of_the_classes_against_the_rest(seed):
    # each is a function of the probability of its class alone
    label, proba, weight = random_case(seed, 4)
    proba[:, 0] = np.round(proba[:, 0], 1)  # ties that concern one class only
    proba[:, 1:] *= (1 - proba[:, :1]) / proba[:, 1:].sum(axis=1, keepdims=True)
    monotone = Monotone() & Bounded()
    by_class = error(monotone, label, proba, weight, multi_class="classwise", average=None)
    together = error(monotone, label, proba, weight)
    assert together == pytest.approx(by_class.sum(), abs=1e-12)


def test_lipschitz_of_three_classes_by_hand():
    # class frequencies of each row are the other row: masses ±(−⅛, ⅛, 0), √2/4 apart
    p, q = [0.5, 0.25, 0.25], [0.25, 0.5, 0.25]
    label, proba = [0, 1, 1, 2, 0, 0, 1, 2], [p] * 4 + [q] * 4
    for function_class, expected in {
        SMOOTH: 1 / 16,
        Lipschitz(): 1 / 16,  # bounded here: the masses cancel
        Lipschitz(0.5): 1 / 32,
        Lipschitz() & Bounded(0.05): 4 * 0.05 / 8,
        Lipschitz(0.0) & Bounded(): 0,
    }.items():
        assert error(function_class, label, proba) == pytest.approx(expected, abs=1e-8)


def outer_lipschitz_program(points, mass):
    """sup of Σ ⟨mass_i, f_i⟩ with ‖f_i − f_j‖₂ ≤ ‖p_i − p_j‖₂ and |f_ik| ≤ 1, by cutting planes.

    The Euclidean balls are cut out by the tangents at the points that violate them, so the linear
    programs give upper bounds. Shrinking the last f until it is feasible gives a lower bound.
    """
    m, K = mass.shape
    i, j = np.triu_indices(m, 1)
    distance = pdist(points)
    rows, limits = [np.zeros(m * K)], [0.0]
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    for _ in range(100):
        solution = linprog(
            -mass.ravel(), A_ub=np.array(rows), b_ub=limits, bounds=(-1, 1), options=options
        )
        f = solution.x.reshape(m, K)
        gap = np.linalg.norm(f[i] - f[j], axis=1)
        excess = max(1.0, (gap / distance).max())
        if excess < 1 + 1e-7:
            break
        for pair in np.flatnonzero(gap > distance):
            normal = (f[i[pair]] - f[j[pair]]) / gap[pair]
            row = np.zeros((m, K))
            row[i[pair]], row[j[pair]] = normal, -normal
            rows.append(row.ravel())
            limits.append(distance[pair])
    return -solution.fun / excess, -solution.fun


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_lipschitz_of_three_classes_by_cutting_planes(seed):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, 7, 3)
    proba[-1] = proba[0]
    lower, upper = outer_lipschitz_program(*pooled_by_loops(label, proba, None))
    assert upper - lower < 1e-6
    actual = error(SMOOTH, label, proba)
    assert lower - 1e-8 <= actual <= upper + 1e-8


@pytest.mark.parametrize("multi_class", ["confidence", "top-label", "classwise"])
def test_reductions_are_those_of_the_smooth_error(multi_class):
    n_classes = 3
    label, proba, weight = random_case(4, n_classes)
    for average in ("auto", "macro", "weighted", None):
        options = {"multi_class": multi_class, "average": average}
        expected = smooth_calibration_error(
            label, proba, sample_weight=weight, labels=range(n_classes), **options
        )
        actual = error(SMOOTH_PROGRAM, label, proba, weight, **options)
        np.testing.assert_allclose(actual, expected, atol=1e-12)


def test_total_variation_is_for_a_line():
    label, proba, _ = random_case(0, 3)
    with pytest.raises(ValueError, match=r"one probability; found .* 3 classes.*'classwise'"):
        error(TotalVariation() & Bounded(), label, proba)
    assert error(TotalVariation() & Bounded(), label, proba, multi_class="classwise") > 0


# Classes of the user's own


class ConstantInBins(FunctionClass):
    def __init__(self, n_bins):
        self.n_bins = n_bins

    def constraints(self, points, values):
        same_bin = np.diff(np.floor(self.n_bins * points)) == 0
        return [(values[1:] - values[:-1])[same_bin] == 0]


@pytest.mark.parametrize("n_bins", [1, 8, 1024])
def test_functions_constant_in_bins_give_the_expected_error(n_bins):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 50)
    expected = expected_calibration_error(label, proba, n_bins=n_bins)
    assert error(ConstantInBins(n_bins) & Bounded(), label, proba) == pytest.approx(expected)


def test_any_object_with_constraints_will_do():
    class Cone:
        def constraints(self, points, values):
            return [cvxpy.norm(values[:, 1:], 2, axis=1) <= 1 + values[:, 0], values[:, 0] <= 0]

    label, proba, _ = random_case(0, 3)
    # at every row f = (0, u) or (−1, 0) or between, u the direction of the other two residuals
    _, mass = pooled_by_loops(label, proba, None)
    expected = sum(max(np.linalg.norm(row[1:]), -row[0]) for row in mass)
    assert error(Cone(), label, proba) == pytest.approx(expected, abs=1e-8)


def test_constraints_that_are_not_convex_are_refused():
    class Large:
        def constraints(self, points, values):
            return [cvxpy.abs(values) >= 1]

    with pytest.raises(ValueError, match="function_class must have convex constraints"):
        error(Large(), [0, 1], [0.2, 0.7])


def test_empty_classes_are_refused():
    class Nothing(FunctionClass):
        def constraints(self, points, values):
            return [values >= 1, values <= 0]

        def __repr__(self):
            return "Nothing()"

    for function_class in (Nothing(), Nothing() & RKHSBall(), Nothing() & Lipschitz()):
        with pytest.raises(ValueError, match=r"must contain a function; .* of Nothing\(\)"):
            error(function_class, [0, 1], [0.2, 0.7])


# Bad input


@pytest.mark.parametrize(
    "function_class",
    [
        Lipschitz(),
        Monotone(),
        Sign(),
        Sign(positive=False),
        Lipschitz() & Monotone(increasing=False),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_unbounded_classes_are_refused(function_class, n_classes):
    label, proba, weight = random_case(2, n_classes)
    with pytest.raises(ValueError, match=r"must be bounded .* found .*Intersect it with Bounded"):
        error(function_class, label, proba, weight)
    assert np.isfinite(error(function_class & Bounded(), label, proba, weight))


def test_total_variation_alone_is_unbounded():
    label, proba, weight = random_case(2)
    with pytest.raises(ValueError, match=r"must be bounded .* found TotalVariation\(bound=1.0"):
        error(TotalVariation(), label, proba, weight)


@pytest.mark.parametrize("status", ["optimal_inaccurate", "unbounded_inaccurate", "user_limit"])
def test_inaccurate_solutions_are_refused(monkeypatch, status):
    monkeypatch.setattr(cvxpy.Problem, "status", status)
    with pytest.raises(RuntimeError, match=rf"Lipschitz.* could not be solved \(status: {status}"):
        error(SMOOTH_PROGRAM, [0, 1], [0.2, 0.7])


def test_failures_of_the_solver_are_told(monkeypatch):
    def solve(self, **options):
        raise cvxpy.SolverError("out of memory")

    monkeypatch.setattr(cvxpy.Problem, "solve", solve)
    with pytest.raises(RuntimeError, match=r"could not be solved \(status: out of memory"):
        error(SMOOTH_PROGRAM, [0, 1], [0.2, 0.7])


def test_linear_programs_are_solved_without_highs(monkeypatch):
    monkeypatch.setattr(cvxpy, "installed_solvers", lambda: ["CLARABEL"])
    label, proba, weight = random_case(1)
    expected = smooth_calibration_error(label, proba, sample_weight=weight)
    assert error(SMOOTH_PROGRAM, label, proba, weight) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda s, t: -np.exp(-np.abs(s - t.T)), "positive semi-definite; found the eigenvalue -"),
        (lambda s, t: np.abs(s - t.T), "positive semi-definite; found the eigenvalue -0.5"),
        (lambda s, t: np.ones(len(s)), "kernel must return the values for all pairs"),
        (lambda s, t: np.where(s == t.T, np.nan, 1), "kernel must have finite values"),
    ],
)
def test_bad_kernels_are_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        error(RKHSBall(kernel), [0, 1], [0.2, 0.7])


@pytest.mark.parametrize("wrong", [None, "smooth", 1.0, cvxpy.abs])
def test_what_is_no_class_is_refused(wrong):
    with pytest.raises(ValueError, match=r"'function_class' .* 'constraints'"):
        error(wrong, [0, 1], [0.2, 0.7])


def test_as_a_scorer():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    scorer = make_scorer(weighted_calibration_error, function_class=Monotone() & Bounded())
    scores = cross_val_score(LogisticRegression(), X, y, scoring=scorer, cv=3)
    assert (scores < 0).all()
    fast = cross_val_score(
        LogisticRegression(), X, y, scoring=make_scorer(smooth_calibration_error), cv=3
    )
    program = make_scorer(weighted_calibration_error, function_class=SMOOTH_PROGRAM)
    slow = cross_val_score(LogisticRegression(), X, y, scoring=program, cv=3)
    np.testing.assert_allclose(slow, fast, atol=1e-12)


def test_constraints_must_be_a_list():
    class Lonely(FunctionClass):
        def constraints(self, points, values):
            return values <= 1

    with pytest.raises(TypeError, match="must return a list of constraints"):
        weighted_calibration_error([0, 1], [0.2, 0.9], function_class=Lonely())


def test_types_in_place_of_instances_are_refused():
    with pytest.raises(TypeError, match=r"found the type Bounded itself. Write Bounded\(\)"):
        weighted_calibration_error([0, 1], [0.2, 0.9], function_class=Bounded)
    with pytest.raises(TypeError, match="unsupported operand"):
        Lipschitz() & Bounded
    with pytest.raises(NotImplementedError, match="FunctionClass must define constraints"):
        weighted_calibration_error([0, 1], [0.2, 0.9], function_class=FunctionClass())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_median_bandwidth_of_a_ball_counts_samples(n_classes):
    label, proba, _ = random_case(1, n_classes)
    weight = np.random.default_rng(0).random(len(label))
    ball = RKHSBall("total-variation", "median") & Bounded(10.0)
    squared = squared_kernel_calibration_error(
        label, proba, sample_weight=weight, labels=range(n_classes), estimator="biased"
    )
    expected = np.sqrt(squared / 2 if n_classes == 2 else squared)
    assert error(ball, label, proba, weight) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    "function_class",
    [
        SMOOTH,
        Lipschitz(0.2) & Bounded(0.1),
        Lipschitz(3.0) & Monotone() & Bounded(),
        Lipschitz(2.0) & RKHSBall("rbf", 0.3),
        Lipschitz() & (Sign() & Lipschitz(0.5) & Bounded()),
    ],
    ids=repr,
)
def test_pairs_as_they_are_needed_give_the_error_of_all_pairs(function_class, monkeypatch):
    label, proba = random_problem(np.random.default_rng(0), 24, 4, calibrated=True)
    expected = error(function_class, label, proba)  # of all pairs at once
    monkeypatch.setattr(function_classes, "_MAX_PAIRED_POINTS", 7)
    monkeypatch.setattr(function_classes, "_PAIRS_PER_POINT", 2)
    assert error(function_class, label, proba) == pytest.approx(expected, abs=2e-8)


def test_pairs_as_they_are_needed_keep_classes_bounded(monkeypatch):
    monkeypatch.setattr(function_classes, "_MAX_PAIRED_POINTS", 3)
    monkeypatch.setattr(function_classes, "_PAIRS_PER_POINT", 1)
    # two groups far from each other; residuals cancel between the groups, but not within
    proba = np.array([[0.4, 0.5, 0.1], [0.42, 0.5, 0.08], [0.1, 0.5, 0.4], [0.08, 0.5, 0.42]])
    assert np.isfinite(error(Lipschitz(), [2, 1, 1, 0], proba))
    with pytest.raises(ValueError, match="must be bounded"):
        error(Lipschitz(), [2, 2, 1, 0], proba)


def test_points_closer_than_rounding_errors_are_linked(monkeypatch):
    monkeypatch.setattr(function_classes, "_MAX_PAIRED_POINTS", 3)
    monkeypatch.setattr(function_classes, "_PAIRS_PER_POINT", 1)
    proba = np.repeat([[0.3, 0.3, 0.4], [0.2, 0.5, 0.3]], 4, axis=0)
    proba[:, 1] += 1e-12 * np.arange(8)
    proba[:, 2] -= 1e-12 * np.arange(8)
    label = [0, 1, 2, 2, 0, 1, 1, 2]
    assert error(SMOOTH, label, proba) < 0.3  # not the mean absolute residual


def test_limits_hold_for_pairs_that_were_left_out():
    label, proba = random_problem(np.random.default_rng(0), 120, 3)
    smooth = Lipschitz() & Bounded()
    values = cvxpy.Variable(proba.shape)
    mass = (np.eye(3)[label] - proba) / 120
    n_pairs = []
    for constraints in function_classes._iter_programs(smooth, proba, values):
        if constraints is None:
            break
        residual = cvxpy.sum(cvxpy.multiply(mass, values))
        cvxpy.Problem(cvxpy.Maximize(residual), constraints).solve(solver="CLARABEL")
        n_pairs.append(constraints[0].size)
    assert max(n_pairs) < 120 * 119 / 2 / 4
    assert (pdist(values.value) <= pdist(proba) + 2e-8).all()


def test_a_subclass_may_add_constraints():
    class Flat(Lipschitz):
        def constraints(self, points, values):
            return [*super().constraints(points, values), cvxpy.abs(values) <= 0.01]

    label, proba = random_problem(np.random.default_rng(0), 70, 3)
    assert error(Flat(), label, proba) <= 0.01 * np.abs(np.eye(3)[label] - proba).sum() / 70


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_point_has_no_empty_constraints(n_classes):
    # versions of CVXPY before 1.9 refuse them
    points = np.full(1 if n_classes == 2 else (1, 3), 1 / 3)
    values = cvxpy.Variable(points.shape)
    classes = [Lipschitz(), Monotone(), Monotone(increasing=False)]
    for function_class in classes if n_classes == 3 else [*classes, TotalVariation()]:
        assert all(one.size > 0 for one in function_class.constraints(points, values))


@pytest.mark.skipif(
    parse_version(version("highspy")) < parse_version("1.16"), reason="HiGHS prints at every call"
)
def test_the_solver_prints_nothing():
    code = (
        "from skcalib.function_classes import Bounded, Monotone;"
        "from skcalib.metrics import weighted_calibration_error as error;"
        "print(error([0, 1], [0.5, 0.5], function_class=Monotone() & Bounded()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0.0\n"
