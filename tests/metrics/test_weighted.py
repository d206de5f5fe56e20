"""The weighted calibration error equals closed forms or other programs for every function class."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from time import sleep
from types import SimpleNamespace

import cvxpy
import highspy
import numpy as np
import pytest
from cvxpy.reductions.solvers.solving_chain import SolvingChain
from oracles import kernel_value, normalised
from problems import random_problem, two_columns
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import RBF
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
    _weighted,
    expected_calibration_error,
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


def test_default_of_two_classes_solves_no_program(monkeypatch):
    monkeypatch.setattr(cvxpy.Problem, "solve", None)
    assert weighted_calibration_error([0, 1], [0.4, 0.6]) == pytest.approx(0.04)
    assert error(Bounded() & Lipschitz(), [0, 1], [0.4, 0.6]) == pytest.approx(0.04)


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
def test_closed_forms(seed):
    label, proba, weight = random_case(seed)
    smooth = smooth_calibration_error(label, proba, sample_weight=weight, labels=[0, 1])
    _, mass = pooled_by_loops(label, proba, weight)
    sums = np.append(0, np.cumsum(mass))
    steps = 2 * sums - sums[-1]  # residuals of 1 below a threshold and −1 above
    for function_class, expected in {
        SMOOTH: smooth,
        SMOOTH_PROGRAM: smooth,
        Bounded(): np.abs(mass).sum(),
        Bounded() & Sign(): mass[mass > 0].sum(),
        Bounded() & Sign(positive=False): -mass[mass < 0].sum(),
        TotalVariation(1.0, "right"): np.abs(sums).max(),
        TotalVariation(1.0, "left"): np.abs(sums[-1] - sums).max(),
        TotalVariation(2.0, "both"): sums.max() - sums.min(),
        TotalVariation(0.0) & Bounded(): np.abs(sums[-1]),  # constants
        # mixtures of thresholds
        Monotone() & Bounded(): -steps.min(),
        Monotone(increasing=False) & Bounded(): steps.max(),
    }.items():
        actual = error(function_class, label, proba, weight)
        assert actual == pytest.approx(expected, abs=1e-12)
        if seed == 1:
            assert error(function_class, label, two_columns(proba), weight) == actual
    label, proba, weight = random_case(seed, 3)
    _, mass = pooled_by_loops(label, proba, weight)
    assert len(mass) < len(label)
    assert error(Bounded(), label, proba, weight) == pytest.approx(np.abs(mass).sum(), abs=1e-12)


def test_intersections_are_smaller():
    label, proba, weight = random_case(1)
    parts = [SMOOTH, Monotone() & Bounded(), TotalVariation(0.5, "both"), RKHSBall(), Bounded(0.3)]
    values = [error(part, label, proba, weight) for part in parts]
    for i in range(len(parts)):
        for j in range(i):
            both = error(parts[i] & parts[j], label, proba, weight)
            assert -1e-8 <= both <= min(values[i], values[j]) + 1e-8
            swapped = error(parts[j] & parts[i], label, proba, weight)
            assert swapped == pytest.approx(both, abs=1e-8)


def test_one_distinct_prediction_and_two():
    label, proba = [0, 1, 1, 1], [0.5] * 4
    for function_class in (SMOOTH, Monotone() & Bounded(), TotalVariation() & Bounded()):
        assert error(function_class, label, proba) == pytest.approx(0.25, abs=1e-12)
    # masses 0.75/2 and −0.75/2 at a distance of 0.5: bounded, although the class is not
    assert error(Lipschitz(), [1, 0], [0.25, 0.75]) == pytest.approx(0.75 / 4, abs=1e-12)
    label, proba = [0, 1, 1, 2], [[0.25, 0.25, 0.5]] * 4  # residuals (0, ¼, −¼)
    for function_class in (SMOOTH, Monotone() & Bounded()):
        assert error(function_class, label, proba) == pytest.approx(0.5, abs=1e-12)


# More classes


@pytest.mark.parametrize("kernel", ["laplacian", "exponential", "total-variation", "rbf"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_ball_is_the_kernel_error(kernel, n_classes):
    on_a_line = n_classes == 2 and kernel == "total-variation"  # its distance is |p − q| there
    name = "laplacian" if on_a_line else kernel

    def gram(points, others):
        return np.array([[kernel_value(name, p, q, 0.3) for q in others] for p in points])

    for seed in SEEDS[:3]:
        label, proba, weight = random_case(seed, n_classes)
        points, mass = pooled_by_loops(label, proba, weight)
        mass = mass.reshape(len(mass), -1)
        expected = 3 * np.sqrt(np.sum(gram(points, points) * (mass @ mass.T)))
        actual = error(RKHSBall(kernel, 0.3, radius=3.0), label, proba, weight)
        assert actual == pytest.approx(expected, abs=1e-8)
    for own_kernel in [gram, RBF(0.3)] if kernel == "rbf" else [gram]:
        actual = error(RKHSBall(own_kernel, radius=3.0), label, proba, weight)
        assert actual == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_median_bandwidth_of_a_ball_counts_samples(n_classes):
    label, proba, _ = random_case(1, n_classes)
    weight = np.random.default_rng(0).random(len(label))
    squared = squared_kernel_calibration_error(
        label, proba, sample_weight=weight, labels=range(n_classes), estimation="biased"
    )
    expected = np.sqrt(squared / 2 if n_classes == 2 else squared)
    ball = RKHSBall("total-variation", "median")
    for function_class in (ball, ball & Bounded(10.0)):
        actual = error(function_class, label, proba, weight)
        assert actual == pytest.approx(expected, abs=1e-8)


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


@pytest.mark.parametrize("multi_class", ["confidence", "top-label", "classwise"])
def test_reductions_are_those_of_the_smooth_error(multi_class):
    label, proba, weight = random_case(4, 3)
    for average in ("auto", "macro", "weighted", None):
        options = {"multi_class": multi_class, "average": average}
        expected = smooth_calibration_error(
            label, proba, sample_weight=weight, labels=range(3), **options
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
    label, proba = random_problem(np.random.default_rng(0), 50)
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


# Bad input


@pytest.mark.parametrize(
    "function_class",
    [
        Lipschitz(),
        Monotone(),
        Sign(),
        Sign(positive=False),
        TotalVariation(),
        Lipschitz() & Monotone(increasing=False),
    ],
    ids=repr,
)
def test_unbounded_classes_are_refused(function_class):
    message = r"must be bounded .* found {}.*Intersect it with Bounded"
    for n_classes in (2, 3) if function_class != TotalVariation() else (2,):
        label, proba, weight = random_case(2, n_classes)
        with pytest.raises(ValueError, match=message.format(re.escape(repr(function_class)))):
            error(function_class, label, proba, weight)
        assert np.isfinite(error(function_class & Bounded(), label, proba, weight))


def test_failures_of_the_solver_are_told(monkeypatch):
    def fail(self, *args, **options):
        raise cvxpy.SolverError("out of memory")

    message = r"Lipschitz.* could not be solved \(status: "
    for status in ("optimal_inaccurate", "unbounded_inaccurate", "user_limit"):
        monkeypatch.setattr(SolvingChain, "invert", lambda *_, s=status: SimpleNamespace(status=s))
        with pytest.raises(RuntimeError, match=message + status):
            error(SMOOTH_PROGRAM, [0, 1], [0.2, 0.7])
    monkeypatch.setattr(SolvingChain, "solve_via_data", fail)
    with pytest.raises(RuntimeError, match=message + "out of memory"):
        error(SMOOTH_PROGRAM, [0, 1], [0.2, 0.7])


def test_linear_programs_are_solved_without_highs(monkeypatch):
    monkeypatch.setattr(cvxpy, "installed_solvers", lambda: ["CLARABEL"])
    label, proba, weight = random_case(1)
    expected = smooth_calibration_error(label, proba, sample_weight=weight)
    assert error(SMOOTH_PROGRAM, label, proba, weight) == pytest.approx(expected, abs=1e-8)


class User(FunctionClass):
    """A class with these constraints."""

    def __init__(self, constraints):
        self.constraints = lambda points, values: constraints(values)

    def __repr__(self):
        return "User()"


EMPTY = User(lambda values: [values >= 1, values <= 0])


@pytest.mark.parametrize(
    ("function_class", "error_type", "message"),
    [
        (RKHSBall(lambda s, t: -np.exp(-np.abs(s - t.T))), ValueError, "found the eigenvalue -"),
        (RKHSBall(lambda s, t: np.abs(s - t.T)), ValueError, "semi-definite; .* eigenvalue -0.5"),
        (RKHSBall(lambda s, t: np.ones(len(s))), ValueError, "return the values for all pairs"),
        (RKHSBall(lambda s, t: np.where(s == t.T, np.nan, 1)), ValueError, "have finite values"),
        (EMPTY, ValueError, r"must contain a function; .* of .*User\(\)"),
        (EMPTY & RKHSBall(), ValueError, r"must contain a function; .* of .*User\(\)"),
        (EMPTY & Lipschitz(), ValueError, r"must contain a function; .* of .*User\(\)"),
        (User(lambda values: [cvxpy.abs(values) >= 1]), ValueError, "must have convex constraints"),
        (User(lambda values: values <= 1), TypeError, "must return a list of constraints"),
        (FunctionClass(), NotImplementedError, "FunctionClass must define constraints"),
        (Bounded, TypeError, r"found the type Bounded itself. Write Bounded\(\)"),
        (None, ValueError, r"'function_class' .* 'constraints'"),
        (cvxpy.abs, ValueError, r"'function_class' .* 'constraints'"),
    ],
)
def test_bad_function_classes_are_refused(function_class, error_type, message):
    with pytest.raises(error_type, match=message):
        error(function_class, [0, 1], [0.2, 0.7])


def add_pairs_as_needed(monkeypatch, max_paired_points, pairs_per_point):
    monkeypatch.setattr(function_classes, "_MAX_PAIRED_POINTS", max_paired_points)
    monkeypatch.setattr(function_classes, "_PAIRS_PER_POINT", pairs_per_point)


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
    add_pairs_as_needed(monkeypatch, 7, 2)
    assert error(function_class, label, proba) == pytest.approx(expected, abs=2e-8)


def test_pairs_as_they_are_needed_keep_classes_bounded(monkeypatch):
    add_pairs_as_needed(monkeypatch, 3, 1)
    # two groups far from each other; residuals cancel between the groups, but not within
    proba = np.array([[0.4, 0.5, 0.1], [0.42, 0.5, 0.08], [0.1, 0.5, 0.4], [0.08, 0.5, 0.42]])
    assert np.isfinite(error(Lipschitz(), [2, 1, 1, 0], proba))
    with pytest.raises(ValueError, match="must be bounded"):
        error(Lipschitz(), [2, 2, 1, 0], proba)


def test_points_closer_than_rounding_errors_are_linked(monkeypatch):
    add_pairs_as_needed(monkeypatch, 3, 1)
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


def test_the_standard_output_stays_where_it_is_in_threads(monkeypatch):
    # HiGHS prints its licence into os.devnull; no thread may leave that as the standard output
    make = highspy.Highs
    monkeypatch.setattr("highspy.Highs", lambda: sleep(0.02) or make())
    _weighted._silence_licence.cache_clear()
    before = os.fstat(1)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: error(SMOOTH_PROGRAM, [0, 1], [0.2, 0.7]), range(2)))
    assert os.path.samestat(os.fstat(1), before)
