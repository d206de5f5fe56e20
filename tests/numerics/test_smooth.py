"""The isotonic L1 fit and the Lipschitz program reach the optimum found by enumeration."""

import numpy as np
import pytest
from oracles import isotonic_l1_by_enumeration
from scipy.optimize import linprog

from skcalib._numerics import smooth
from skcalib._numerics.smooth import bounded_isotonic_l1, lipschitz_maxima


@pytest.mark.parametrize("items_worth_collapsing", [0, 96])
def test_isotonic_l1_reaches_the_optimum(items_worth_collapsing, monkeypatch):
    monkeypatch.setattr(smooth, "_ITEMS_WORTH_COLLAPSING", items_worth_collapsing)
    for seed in range(80):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 60)) if seed % 10 else 200
        values = rng.normal(size=n).cumsum() * 0.1
        if seed % 2:
            values = np.round(values, 1)
        weights = rng.random(n) + 1e-3
        weights /= weights.sum()
        upper = float(rng.choice([0.0, 0.5, 5.0, max(values.max(), 0)]))
        fit = bounded_isotonic_l1(values[None], weights[None], upper)[0]
        assert fit.min() >= 0
        assert fit.max() <= upper
        assert (np.diff(fit) >= 0).all()
        cost = weights @ np.abs(values - fit)
        expected = isotonic_l1_by_enumeration(values, weights, upper)
        assert cost == pytest.approx(expected, abs=1e-12), seed


@pytest.mark.parametrize("shape", ["increasing", "decreasing", "peak", "valley", "waves", "walk"])
def test_isotonic_l1_perturbations_do_not_improve(shape):
    n = 5000
    x = np.linspace(0, 1, n)
    values = {
        "increasing": x,
        "decreasing": 1 - x,
        "peak": 1 - np.abs(2 * x - 1),
        "valley": np.abs(2 * x - 1),
        "waves": x + 0.3 * np.sin(40 * x),
        "walk": np.random.default_rng(0).normal(size=n).cumsum() / 40,
    }[shape]
    weights = np.random.default_rng(1).random(n)
    fit = bounded_isotonic_l1(values[None], weights[None], 0.8)[0]
    cost = weights @ np.abs(values - fit)
    rng = np.random.default_rng(2)
    for _ in range(500):
        first, last = np.sort(rng.integers(0, n + 1, size=2))
        perturbed = fit.copy()
        perturbed[first:last] += rng.choice([-1, 1]) * 10 ** rng.uniform(-6, -1)
        perturbed = np.maximum.accumulate(np.clip(perturbed, 0, 0.8))
        assert weights @ np.abs(values - perturbed) >= cost - 1e-12


def test_two_points_by_hand():
    # c = (−0.3, 0.2): f = ∓1 discards 0.1 of mass, and 0.2 moves over a distance of 0.5.
    problem = np.array([0.2, 0.7]), np.array([-0.3, 0.2])
    assert lipschitz_maxima([problem]) == pytest.approx([0.2])


def test_no_mass_gives_zero():
    assert lipschitz_maxima([(np.array([0.1, 0.5, 0.9]), np.zeros(3))]) == [0]


@pytest.mark.parametrize("max_items", [1, 100, 2**16])
def test_many_problems_give_what_each_gives_alone(max_items, monkeypatch):
    monkeypatch.setattr(smooth, "_MAX_ITEMS_AT_ONCE", max_items)
    rng = np.random.default_rng(0)
    problems = [
        (np.sort(rng.choice(1000, size=n, replace=False)) / 1000, rng.normal(size=n) / n)
        for n in [1, 30, 2, 200, 1, 30, 31, 7]
    ]
    problems[3][1][::2] = 0.01  # tied values of the flow
    alone = [linear_program_maximum(*problem) for problem in problems]
    np.testing.assert_allclose(lipschitz_maxima(iter(problems)), alone, rtol=0, atol=1e-9)
    one_by_one = [lipschitz_maxima([problem])[0] for problem in problems]
    np.testing.assert_allclose(lipschitz_maxima(problems), one_by_one, rtol=0, atol=1e-15)


def linear_program_maximum(points, mass):
    n = len(points)
    if n == 1:
        return abs(mass[0])
    rise = (np.eye(n)[1:] - np.eye(n)[:-1]) / np.diff(points)[:, None]
    solution = linprog(-mass, np.vstack([rise, -rise]), np.ones(2 * n - 2), bounds=(-1, 1))
    return -solution.fun


def test_no_problem_gives_no_maximum():
    assert lipschitz_maxima([]) == []
