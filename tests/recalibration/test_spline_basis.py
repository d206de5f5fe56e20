"""Natural splines and their smoothing equal general optimisers and quadrature."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit

from skcalib.recalibration._spline import (
    logistic_spline,
    natural_spline,
    quantile_knots,
    spline_basis,
    spline_curve,
    values_at_knots,
)


def spline_problem(seed, n=60):
    rng = np.random.default_rng(seed)
    points = np.sort(rng.normal(size=n) * 2)
    mass = rng.random((2, n))
    return points, mass / mass.sum()


def test_knots_are_quantiles():
    points = np.array([-2.0, -1, 0, 1, 4])
    np.testing.assert_array_equal(quantile_knots(points, 3), [-2, 0, 4])
    np.testing.assert_array_equal(quantile_knots(points, 10), points)
    np.testing.assert_array_equal(quantile_knots(points, 2), [-2, 4])
    np.testing.assert_array_equal(quantile_knots(points[:1], 10), [-2, -1])
    np.testing.assert_array_equal(quantile_knots(points[:2], 10), [-2, -1])


def test_crowded_knots_are_left_out():
    points = np.array([0.0, 0.005, 0.02, 0.025, 1.0, 1.001])
    np.testing.assert_array_equal(quantile_knots(points, 6), [0, 0.02, 1.001])
    np.testing.assert_array_equal(quantile_knots(points[:2], 6), [0, 0.005])


def test_straight_lines_go_on():
    knots, values = np.array([-1.0, 0, 2]), np.array([1.0, 0, 4])
    spline = natural_spline(knots, values)
    np.testing.assert_allclose(spline(knots[[0, -1]], 2), 0, atol=1e-12)
    far = spline_curve(knots, values).evaluate(np.array([-11.0, -1, 0.5, 2, 12]))
    expected = [1 - 10 * spline(-1, 1), 1, spline(0.5), 4, 4 + 10 * spline(2, 1)]
    np.testing.assert_allclose(far, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_basis_and_its_curvature(seed):
    rng = np.random.default_rng(seed)
    knots = np.sort(rng.normal(size=6) * 3)
    points = np.linspace(knots[0], knots[-1], 50)
    design, root = spline_basis(points, knots)
    coefficients = rng.normal(size=6)
    values = values_at_knots(coefficients, knots)
    np.testing.assert_allclose(
        design @ coefficients, spline_curve(knots, values).evaluate(points), atol=1e-12
    )
    spline = natural_spline(knots, values)
    curvature = sum(
        quad(lambda x: spline(x, 2) ** 2, left, right)[0] for left, right in pairwise(knots)
    )
    assert np.sum((root @ coefficients) ** 2) == pytest.approx(curvature, rel=1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 1e-4, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_equals_a_general_optimiser(seed, smoothing):
    points, mass = spline_problem(seed)
    knots = quantile_knots(points, 6)
    design, root = spline_basis(points, knots)

    def loss(coefficients):
        linear = design @ coefficients
        fit = mass[0] @ np.logaddexp(0, linear) + mass[1] @ np.logaddexp(0, -linear)
        return fit + smoothing / 2 * np.sum((root @ coefficients) ** 2)

    oracle = minimize(loss, np.eye(6)[1], method="BFGS", options={"gtol": 1e-10})
    values, used, converged = logistic_spline(points, mass, knots, 1 / 60, smoothing)
    assert used == smoothing
    assert converged
    fitted = spline_curve(knots, values).evaluate(points)
    np.testing.assert_allclose(fitted, design @ oracle.x, atol=1e-4)
    coefficients = np.linalg.lstsq(design, fitted, rcond=None)[0]
    assert loss(coefficients) <= oracle.fun + 1e-14


def test_the_smoother_the_stiffer():
    points, mass = spline_problem(0)
    knots = quantile_knots(points, 8)
    _, root = spline_basis(points, knots)
    bends = []
    for smoothing in (0.0, 1e-4, 1e-2, 1.0, 1e4):
        values, *_ = logistic_spline(points, mass, knots, 1 / 60, smoothing)
        line = np.interp(knots, knots[[0, -1]], values[[0, -1]])
        bends.append(np.sum((root[:, 2:] @ (values - line)[1:-1]) ** 2))
    assert (np.diff(bends) < 0).all()
    assert bends[-1] < 1e-8


@pytest.mark.parametrize(("bend", "is_curved"), [(0.0, False), (1.0, True)])
def test_smoothing_follows_the_data(bend, is_curved):
    rng = np.random.default_rng(0)
    points = np.sort(rng.normal(size=3000) * 2)
    truth = 1 / (1 + np.exp(-points - bend * np.abs(points)))
    label = rng.random(3000) < truth
    mass = np.stack([~label, label]) / 3000
    knots = quantile_knots(points, 10)
    values, smoothing, converged = logistic_spline(points, mass, knots, 1 / 3000)
    assert converged
    scale = (3000 * smoothing) ** -0.5
    assert (scale > 0.1) == is_curved
    fitted = 1 / (1 + np.exp(-spline_curve(knots, values).evaluate(points)))
    assert np.mean(np.abs(fitted - truth)) < 0.02


@pytest.mark.parametrize("seed", range(6))
def test_smoothing_is_the_mode_of_the_posterior(seed):
    rng = np.random.default_rng(seed)
    n = [40, 300, 1500][seed % 3]
    points = np.sort(rng.normal(size=n) * 2)
    label = rng.random(n) < expit(points - [0, 0.3, 1][seed % 2] * np.abs(points))
    mass = 0.98 / n * np.stack([~label, label])
    mass += 0.02 / n * np.stack([expit(-points), expit(points)])
    knots = quantile_knots(points, 8)
    design, root = spline_basis(points, knots)
    surprise = {}
    for scale in 2.0 ** np.arange(-8, 4):
        smoothing = 1 / n / scale**2
        values, *_ = logistic_spline(points, mass, knots, 1 / n, smoothing)
        linear = spline_curve(knots, values).evaluate(points)
        beta = np.linalg.lstsq(design, linear, rcond=None)[0]
        loss = mass[0] @ np.logaddexp(0, linear) + mass[1] @ np.logaddexp(0, -linear)
        loss += smoothing / 2 * np.sum((root @ beta) ** 2)
        spread = mass.sum(axis=0) * expit(linear) * expit(-linear)
        hessian = design.T @ (spread[:, None] * design) + smoothing * root.T @ root
        # −log of the marginal likelihood and of the prior density 2 exp(−2σ)
        log_volume = np.linalg.slogdet(hessian)[1] / 2 + (len(knots) - 2) * np.log(scale)
        surprise[smoothing] = n * loss + log_volume + 2 * scale
    best = min(surprise, key=surprise.get)
    assert logistic_spline(points, mass, knots, 1 / n)[1] == pytest.approx(best)
