"""The bracket of the least calibrating transport contains the value of a linear program."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles import law_of_predictions
from problems import small_case
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

from skcalib._numerics import distance
from skcalib._numerics.distance import transport_bounds


@pytest.mark.parametrize("epsilon", [1e-5, 0.1, 0.25, 0.4999])
@pytest.mark.parametrize("share", [0.5, 1e-3])
def test_bracket_of_two_points(epsilon, share):
    # label 0 with weight 1 − share at ½ − ε, label 1 with weight share at ½ + ε
    points = np.array([0.5 - epsilon, 0.5 + epsilon])
    weight = np.array([[1 - share, 0.0], [0.0, share]])
    step = 1 / 1000
    exact = program_21(points, weight, 1001)
    for tol in (1e-2, 1e-4, 1e-6):
        lower, upper, *_ = transport_bounds(points, weight, tol)
        assert lower <= upper <= lower + tol
        assert lower <= exact + 1e-9
        assert upper >= exact - step**2 / 2 - 1e-9
        if share == 0.5:
            assert lower - 1e-14 <= 2 * epsilon * points[0] <= upper + 1e-14


def program_21(points, weight, n_nodes):
    """The dual program on equally spaced nodes and the points; too large by at most h²/2."""
    nodes = np.union1d(points, np.linspace(0, 1, n_nodes))
    k = len(nodes)
    cost = np.zeros(2 * k)
    rows = np.searchsorted(nodes, points)
    cost[rows], cost[k + rows] = weight
    step = sp.diags_array([-np.ones(k - 1), np.ones(k - 1)], offsets=[0, 1], shape=(k - 1, k))
    steps = sp.block_diag([step, step])
    level = sp.hstack([sp.diags_array(1 - nodes), sp.diags_array(nodes)])
    distance = np.tile(np.diff(nodes), 2)
    solution = linprog(
        -cost,
        A_ub=sp.vstack([steps, -steps, level]),
        b_ub=np.concatenate([distance, distance, np.zeros(k)]),
        bounds=(None, None),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return -solution.fun


@pytest.mark.parametrize("seed", range(10))
def test_bracket_contains_the_program(seed):
    points, law = law_of_predictions(*small_case(seed))
    lower, upper, *_ = transport_bounds(points, law.T, 1e-6)
    assert lower <= upper <= lower + 1e-6
    exact = program_21(points, law.T, 1001)
    assert lower <= exact + 1e-8
    assert upper >= exact - 0.5e-6 - 1e-8


@pytest.mark.parametrize("seed", range(10))
def test_primal_bound_is_the_transport_cost(seed):
    rng = np.random.default_rng(seed)
    points, nodes = np.sort(rng.random(20)), np.union1d([0, 1], rng.random(15))
    weight = rng.random((2, 20))
    weight /= weight.sum()
    target = rng.random(17)
    total = weight.sum(axis=1)
    # what is offered is scaled to at most what there is; the rest goes to 0 or 1
    offered = np.stack([(1 - nodes) * target, nodes * target])
    offered *= min(total / offered.sum(axis=1))
    offered[0, 0] += total[0] - offered[0].sum()
    offered[1, -1] += total[1] - offered[1].sum()
    expected = sum(
        total[y] * wasserstein_distance(points, nodes, weight[y], offered[y]) for y in range(2)
    )
    bound = distance._primal_bound(points, weight, nodes, target)
    assert bound == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_dual_bound_is_that_of_a_feasible_pair(seed):
    rng = np.random.default_rng(seed)
    nodes = np.union1d([0, 1], rng.random(15))
    split, f = rng.random((2, 17)), 3 * rng.normal(size=(17, 2)).cumsum(axis=0)
    bound, violated, _ = distance._dual_bound(nodes, split, f, 1e-3)
    steepest = max(1, np.max(np.abs(np.diff(f, axis=0)) / np.diff(nodes)[:, None]))
    fine = np.union1d(nodes, np.linspace(0, 1, 20_001))
    f0, f1 = (np.interp(fine, nodes, f[:, y] / steepest) for y in range(2))
    level = (1 - fine) * f0 + fine * f1
    expected = np.sum(split * f.T) / steepest - max(0, level.max())
    assert bound == pytest.approx(expected, abs=1e-7)
    assert bound <= expected + 1e-12
    assert all(np.min(np.abs(fine[level > 1e-3 - 1e-9] - v)) < 1e-4 for v in violated)


def test_hard_cases_are_bracketed():
    rng = np.random.default_rng(0)
    for kind in range(8):
        for _ in range(2):
            proba = rng.random(40)
            if kind == 1:
                proba = 0.5 + 1e-12 * proba  # nearly one prediction
            if kind == 2:
                proba = 1 - 1e-12 * np.round(10 * proba)
            if kind == 3:
                proba = proba**30  # crowded at 0
            if kind == 4:
                proba = np.round(proba)
            if kind == 5:
                proba = np.clip(np.repeat(proba[:20], 2) + [0, 1e-15] * 20, 0, 1)
            label = rng.integers(0, 2, size=40)
            weight = 10.0 ** rng.uniform(-15, 0, size=40) if kind == 6 else rng.random(40)
            if kind == 7:
                weight = np.where(label, 1e-14, 1) * weight
            points, law = law_of_predictions(proba, label, weight)
            for tol in (1e-1, 1e-4, 1e-6):
                lower, upper, *_ = transport_bounds(points, law.T, tol)
                assert lower - 1e-12 <= upper <= lower + tol


@pytest.mark.parametrize("tol", [1e-3, 1e-6])  # 0.3 s, as fewer samples lose no pivot
def test_saturated_and_wrong_predictions_are_bracketed(tol):
    # close nodes with much weight: the Newton equations lose their last pivot to rounding
    rng = np.random.default_rng(0)
    proba = 1 / (1 + np.exp(-np.abs(10 * rng.normal(size=3000))))
    label = (rng.random(3000) < 0.01).astype(int)
    points, law = law_of_predictions(proba, label, None)
    lower, upper, *_ = transport_bounds(points, law.T, tol)
    assert 0.9 < lower <= upper <= lower + tol


def test_one_class_is_exact():
    points, weight = np.array([0.2, 0.7]), np.array([[0.0, 0.0], [0.25, 0.75]])
    expected = 0.25 * 0.8 + 0.75 * 0.3
    bracket = transport_bounds(points, weight, 1e-2)[:2]
    np.testing.assert_allclose(bracket, expected, atol=1e-15)


def test_the_largest_violation_may_lie_between_nodes():
    # (1 − v) f_0(v) + v f_1(v) with f_0 = −0.1 + 0.7 v and f_1 = 0.6 − 0.7 v, before scaling by the
    # steepest slope: −0.1 + 1.4 v − 1.4 v², which is largest at v = ½, where it is 0.25
    nodes, f = np.array([0.0, 1.0]), np.array([[-0.1, 0.6], [0.6, -0.1]])
    value, violated, _ = distance._dual_bound(nodes, np.full((2, 2), 0.25), f, 1e-3)
    assert value == pytest.approx(0.25 * f.sum() - 0.25, abs=1e-15)
    np.testing.assert_allclose(violated, [0.5], atol=1e-15)
