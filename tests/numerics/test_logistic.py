"""Logistic fits equal general optimisers, also where coefficients are not determined."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from skcalib._numerics import logistic
from skcalib._numerics.logistic import logistic_fit, newton, orthonormal_basis
from skcalib.recalibration._spline import logistic_spline, quantile_knots, spline_curve


def logistic_problem(seed, n=50, d=3):
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(n), rng.normal(size=(n, d - 1))])
    label = rng.integers(0, 2, size=n)
    mass = rng.random(n) * np.stack([1 - label, label])
    mass[:, :5] = 0.5  # nothing is separated
    return design, mass / mass.sum()


def loss(coefficients, design, mass, root=None):
    bent = 0.0 if root is None else root @ coefficients
    linear = design @ coefficients
    likelihood = mass[0] @ np.logaddexp(0, linear) + mass[1] @ np.logaddexp(0, -linear)
    return likelihood + np.sum(bent**2) / 2


@pytest.mark.parametrize("seed", range(10))
def test_equals_a_general_optimiser(seed):
    design, mass = logistic_problem(seed)
    mass[:, seed % 2 :: 3] *= 100
    mass /= mass.sum()
    fit = logistic_fit(design, mass, np.zeros(3))
    oracle = minimize(loss, np.zeros(3), (design, mass), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(fit.coefficients, oracle.x, atol=1e-6)
    assert fit.loss == pytest.approx(loss(fit.coefficients, design, mass), rel=1e-13)
    assert fit.loss <= oracle.fun + 1e-15
    assert fit.converged
    linear = design @ fit.coefficients
    gradient = (mass[0] * expit(linear) - mass[1] * expit(-linear)) @ design
    np.testing.assert_allclose(gradient, 0, atol=1e-12)


def test_equals_scikit_learn():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 2))
    label = (rng.random(300) < expit(features @ [1, -2] + 0.5)).astype(int)
    oracle = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12).fit(features, label)
    design = np.column_stack([np.ones(300), features])
    fit = logistic_fit(design, np.stack([1 - label, label]) / 300, np.zeros(3))
    expected = np.append(oracle.intercept_, oracle.coef_)
    np.testing.assert_allclose(fit.coefficients, expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_penalised_fit_is_the_optimum(seed):
    design, mass = logistic_problem(seed, d=4)
    root = np.random.default_rng(seed).normal(size=(2, 4)) / 5
    basis, triangle = orthonormal_basis(design, mass.sum(axis=0))
    start = triangle @ np.ones(4)
    moments, converged = newton(basis, mass, start, np.linalg.solve(triangle.T, root.T).T)
    position = moments.position
    coefficients = np.linalg.solve(triangle, position)
    assert converged
    best = loss(coefficients, design, mass, root)
    assert moments.loss == pytest.approx(best, rel=1e-13)
    assert best < loss(logistic_fit(design, mass, np.ones(4)).coefficients, design, mass, root)
    rng = np.random.default_rng(0)
    for scale in 10.0 ** rng.uniform(-5, 0, size=100):
        perturbed = coefficients + scale * rng.normal(size=4)
        assert loss(perturbed, design, mass, root) >= best - 1e-15


def test_two_groups_by_hand():
    # the fit goes through both frequencies, 1/4 and 1/2
    design = np.array([[1, 0], [1, 2]])
    fit = logistic_fit(design, np.array([[3, 2], [1, 2]]) / 8, np.zeros(2))
    np.testing.assert_allclose(fit.coefficients, [-np.log(3), np.log(3) / 2], rtol=1e-12)


def test_many_rows_are_summed_in_blocks(monkeypatch):
    design, mass = logistic_problem(0)
    whole = logistic_fit(design, mass, np.zeros(3))
    monkeypatch.setattr(logistic, "_DESIGN_BLOCK_SIZE", 7)
    blocks = logistic_fit(design, mass, np.zeros(3))
    np.testing.assert_allclose(blocks.coefficients, whole.coefficients, rtol=1e-12)


def test_basis_is_orthonormal():
    rng = np.random.default_rng(0)
    weight = rng.random(40)
    x = 1e3 + rng.random(40)
    design = np.column_stack([np.ones(40), x, x**2, 2 * x - 3])
    basis, triangle = orthonormal_basis(design, weight)
    np.testing.assert_allclose(
        basis.T @ (weight[:, None] * basis), np.diag([1, 1, 1, 0]), atol=1e-9
    )
    np.testing.assert_allclose((basis @ triangle)[:, :3], design[:, :3], rtol=1e-12)
    np.testing.assert_array_equal(np.tril(triangle, -1), 0)


def test_basis_may_overwrite_the_design():
    x = 1e3 + np.random.default_rng(0).random(40)
    design = np.asfortranarray(np.column_stack([np.ones(40), x, 2 * x - 3, x**2]))
    given, weight = design.copy(), np.full(40, 1 / 40)
    apart, triangle = orthonormal_basis(design, weight)
    np.testing.assert_array_equal(design, given)
    basis, same = orthonormal_basis(design, weight, overwrite=True)
    assert basis is design
    np.testing.assert_array_equal(basis, apart)
    np.testing.assert_array_equal(same, triangle)


def test_undetermined_coefficients_keep_their_start():
    mass = np.array([[0.1, 0.4], [0.2, 0.3]])
    constant = np.column_stack([np.ones(2), np.full(2, 5.0), np.full(2, 25.0)])
    fit = logistic_fit(constant, mass, np.array([0.0, 1.0, 0.5]))
    np.testing.assert_array_equal(fit.coefficients[1:], [1, 0.5])
    assert fit.coefficients[0] == pytest.approx(-17.5, rel=1e-12)
    x = np.array([2.0, 3.0])
    fit = logistic_fit(np.vander(x, 3, increasing=True), mass, np.array([0.0, 1.0, 0.0]))
    assert fit.coefficients[2] == 0
    np.testing.assert_allclose(
        expit(fit.coefficients[0] + fit.coefficients[1] * x), [2 / 3, 3 / 7], rtol=1e-12
    )


def test_nearly_equal_features_are_told_apart():
    x = np.array([0.0, 1e-12])
    fit = logistic_fit(
        np.column_stack([np.ones(2), x]), np.array([[3, 2], [1, 2]]) / 8, np.zeros(2)
    )
    np.testing.assert_allclose(fit.coefficients, [-np.log(3), np.log(3) * 1e12], rtol=1e-9)


@pytest.mark.parametrize("share", [1e-20, 1e-15, 1e-5])
@pytest.mark.parametrize("start", [0.0, 1.0, -50.0])
def test_almost_certain_outcomes_keep_their_digits(share, start):
    mass = np.array([[share, 1.0, 1.0], [1.0, 3.0, share]]) / 6
    design = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]])
    fit = logistic_fit(design, mass, np.array([0, start, start, start]))
    assert fit.converged
    expected = [-np.log(share), np.log(3), np.log(share)]
    np.testing.assert_allclose(design @ fit.coefficients, expected, rtol=1e-9)


@pytest.mark.parametrize("x", [[-3.0, -1.0, 1.0, 4.0], [-36.0, -36.0, 36.0, 36.0], [0, 0, 0, 1e-9]])
@pytest.mark.parametrize("tied", [False, True])
def test_without_a_minimum_the_infimum_is_approached(x, tied):
    negative = np.array([1.0, 1, 0.5 if tied else 0, 0])
    mass = np.stack([negative, 1 - negative]) / 4
    if x[0] == 0:
        mass = np.array([[0.25] * 3 + [0], [0, 0, 0, 0.25]])
    fit = logistic_fit(np.column_stack([np.ones(4), x]), mass, np.array([0.0, 1.0]))
    assert not fit.converged
    assert np.isfinite(fit.coefficients).all()
    infimum = np.log(2) / 4 if tied and len(set(x)) == 4 else 0
    if tied and len(set(x)) == 2 and x[0] != 0:
        infimum = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75)) / 2
    assert fit.loss == pytest.approx(infimum, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_soft_outcomes_always_have_a_minimum(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    proba = [
        expit(15 * rng.normal(size=n)),
        rng.choice([1e-16, 0.5, 1 - 1e-15], size=n),
        np.full(n, rng.choice([1e-16, 0.3])),
    ][seed % 3]
    proba = np.clip(proba, 1e-15, 1 - 1e-15)
    label = rng.random(n) < [0.5, proba > 0.5, proba < 0.5, 1.0][seed % 4]
    prior = 1 / n**2
    mass = (1 - prior) * np.stack([~label, label]) + prior * np.stack([1 - proba, proba])
    if seed % 5 == 0:
        mass *= 10.0 ** rng.uniform(-12, 0, size=n)
    mass /= mass.sum()
    design = np.vander(logit(proba), 3, increasing=True)
    fit = logistic_fit(design, mass, np.array([0.0, 1.0, 0.0]))
    assert fit.converged
    for scale in 10.0 ** rng.uniform(-4, 0, size=30):
        perturbed = fit.coefficients * (1 + scale * rng.normal(size=3))
        assert loss(perturbed, design, mass) >= fit.loss * (1 - 1e-11)


@pytest.mark.parametrize("bent", [False, True])
def test_outcomes_of_one_kind_are_soon_certain(bent, monkeypatch):
    calls = []

    def counted(*args):
        calls.append(1)
        return moments(*args)

    moments = logistic._loss_moments
    monkeypatch.setattr(logistic, "_loss_moments", counted)
    points = np.sort(np.random.default_rng(0).normal(size=300))
    mass = np.stack([np.full(300, 1 / 300), np.zeros(300)])
    if bent:
        knots = quantile_knots(points, 10)
        values, _, converged = logistic_spline(points, mass, knots, 1 / 300)
        fitted = spline_curve(knots, values).evaluate(points)
    else:
        design = np.column_stack([np.ones(300), points, points**2])
        fit = logistic_fit(design, mass, np.array([0.0, 1.0, 0.0]))
        fitted, converged = design @ fit.coefficients, fit.converged
    assert not converged
    assert np.isfinite(fitted).all()
    assert expit(fitted).max() < np.finfo(float).eps
    assert len(calls) < 100
