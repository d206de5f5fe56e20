"""Logarithms of probabilities keep their digits next to 0 and 1."""

import math
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.special
from oracles import brier_score
from problems import random_problem, two_columns
from scipy.optimize import brentq, minimize
from sklearn.metrics import log_loss

from skcalib._numerics.array_api import row_sums
from skcalib._numerics.logits import (
    MIN_POSITIVE_PROBA,
    PROPER_LOSSES,
    clip_proba,
    iter_row_blocks,
    log_odds,
    log_probabilities,
    smallest_probability,
    softmax_in_place,
)
from skcalib._numerics.newton import line_search
from skcalib._numerics.scaling import SoftmaxProblem, conjugate_gradients, softmax_regression
from skcalib._numerics.scaling_designs import (
    Affine,
    AffineAndCommon,
    Diagonal,
    DiagonalAndCommon,
    ScaledAndShifted,
)
from skcalib._numerics.temperature import TemperingProblem, scale_by_temperature

EPS = np.finfo(np.float64).eps


@pytest.mark.parametrize(
    ("proba", "expected"),
    [
        ([0.2, 0.7], EPS),  # no zero, no clipping
        ([1e-300, 1 - EPS], EPS),
        ([0.0, 0.02, 0.9], 0.01),  # half of the lowest level
        ([1.0, 0.02, 0.9], 0.01),
        ([1.0, 0.3, 0.75], 0.125),  # 1 − p is a probability, too
        ([0.0, 1e-300], EPS),
        ([[0.0, 0.5, 0.5], [0.9, 0.06, 0.04]], 0.02),
        ([[0.3, 0.3, 0.4], [0.9, 0.06, 0.04]], EPS),
        ([0.0, 0.5], 0.25),
        ([[0.5, 0.5, 0, 0, 0, 0]], 1 / 12),  # a larger probability than 1/K is not small
        ([1e-20, 0.02, 0.9], 0.01),  # as 1 − p is exactly 1
    ],
)
def test_what_a_probability_of_0_is_taken_for(proba, expected):
    assert smallest_probability(np.array(proba)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("proba", "expected"),
    [
        ([[0.3, 0.3, 0.4], [0.9, 0.06, 0.04]], EPS),
        ([[1e-20, 0.3, 0.7], [0.9, 0.06, 0.04]], 1e-20),
        ([[1e-200, 1e-20, 1.0], [0.9, 0.06, 0.04]], MIN_POSITIVE_PROBA),
        ([[0.0, 0.5, 0.5], [0.9, 0.06, 0.04]], 0.02),
        ([[0.0, 1e-30, 1.0], [0.9, 0.06, 0.04]], 5e-31),
        ([[0.0, 5e-324, 1.0], [0.9, 0.06, 0.04]], MIN_POSITIVE_PROBA),
        (np.eye(3), EPS),
        ([1e-20, 0.3], 0.15),  # of two classes, as 1 − p is exactly 1
        ([1e-15, 0.3], EPS),
    ],
)
def test_tiny_probabilities_of_more_classes_are_told_apart(proba, expected):
    smallest = smallest_probability(np.array(proba), MIN_POSITIVE_PROBA)
    np.testing.assert_allclose(smallest, expected, rtol=1e-12)
    assert np.isfinite(np.log(np.float32(smallest)))
    assert np.isfinite(log_probabilities(np.array(proba), smallest)).all()


@pytest.mark.parametrize("proba", [[0.0, 0.0], [0.0, 1.0], np.eye(3)])
def test_certain_predictions_stay_certain(proba):
    assert smallest_probability(np.array(proba)) == EPS


@pytest.mark.parametrize("smallest", [EPS, 1e-3])
def test_probabilities_are_kept_away_from_0_and_1(smallest):
    proba = np.array([0.0, 1e-320, 1e-3, 0.3, 1 - EPS / 2, 1.0])
    before = proba.copy()
    expected = [min(max(p, smallest), 1 - smallest) for p in proba]
    np.testing.assert_array_equal(clip_proba(proba, smallest), expected)
    with warnings.catch_warnings(action="error"):
        np.testing.assert_allclose(log_probabilities(proba, smallest), np.log(expected), rtol=1e-14)
        odds = np.array(expected) / (1 - np.array(expected))
        np.testing.assert_allclose(log_odds(proba, smallest), np.log(odds), rtol=1e-12)
    np.testing.assert_array_equal(proba, before)


def test_log_odds_keep_their_digits():
    assert log_odds(np.array([1e-10]))[0] == pytest.approx(np.log(1e-10) + 1e-10, rel=1e-15)
    assert log_odds(np.array([0.5 + 1e-12]))[0] == pytest.approx(4e-12, rel=1e-4)
    assert log_odds(np.array([0.5]))[0] == 0


DESIGNS = {"vector": ScaledAndShifted, "affine": Affine}
both_designs = pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
all_designs = pytest.mark.parametrize(
    "design", [*DESIGNS.values(), AffineAndCommon], ids=[*DESIGNS, "common"]
)


def identity(design, n_classes):
    if design is Affine:
        return np.eye(n_classes + 1, n_classes)
    if design is AffineAndCommon:
        return np.vstack([np.zeros((n_classes + 1, n_classes)), np.ones(n_classes)])
    return np.stack([np.ones(n_classes), np.zeros(n_classes)])


def softmax_problem(n=60, n_classes=3, seed=0):
    """Log-probabilities, labels, soft targets and weights."""
    rng = np.random.default_rng(seed)
    log_proba = np.log(rng.dirichlet(np.ones(n_classes), size=n))
    label = np.array([rng.choice(n_classes, p=row) for row in scale_by_temperature(log_proba, 1.7)])
    target = 0.95 * np.eye(n_classes)[label] + 0.05 * np.exp(log_proba)
    weight = rng.random(n)
    return log_proba, label, target, weight / weight.sum()


def naive_scores(design, parameters, inputs):
    if design is ScaledAndShifted:
        return np.array(
            [
                [v * x + b for v, x, b in zip(*parameters[:1], row, parameters[1], strict=True)]
                for row in inputs
            ]
        )
    if design is AffineAndCommon:
        *parameters, common = parameters
        parameters = np.array(parameters)
        parameters[:-1] += common.mean() * np.eye(inputs.shape[1])
    return np.array([parameters[:-1].T @ row + parameters[-1] for row in inputs])


def naive_loss(design, parameters, inputs, target, weight):
    scores = naive_scores(design, parameters, inputs)
    return -sum(
        w * (t @ scipy.special.log_softmax(s))
        for w, t, s in zip(weight, target, scores, strict=True)
    )


def slope_in_inverse(inverse, log_proba, label, weight):
    return sum(
        w * (scipy.special.softmax(inverse * row) @ row - row[k])
        for row, k, w in zip(log_proba, label, weight, strict=True)
    )


def temperature_of(log_proba, label, weight, prior=0.0):
    problem = TemperingProblem(lambda rows: log_proba[rows].copy(), label, weight, prior)
    return problem.best_temperature()


@pytest.mark.parametrize(("n", "n_classes", "every"), [(1, 3, 1), (10**5, 10, 1), (10**4, 7, 3)])
def test_blocks_are_a_partition_of_the_rows(n, n_classes, every):
    rows = np.concatenate([np.arange(n)[block] for block in iter_row_blocks(n, n_classes, every)])
    np.testing.assert_array_equal(rows, np.arange(0, n, every))


def test_softmax_equals_scipy():
    scores = np.random.default_rng(0).normal(scale=300, size=(50, 4))
    expected = scipy.special.softmax(scores, axis=1)
    np.testing.assert_allclose(softmax_in_place(scores.copy()), expected, rtol=1e-12, atol=1e-300)


def test_limits_of_the_temperature():
    log_proba = np.log([[0.4, 0.4, 0.2], [0.1, 0.2, 0.7]])
    np.testing.assert_array_equal(scale_by_temperature(log_proba, 0.0), [[0.5, 0.5, 0], [0, 0, 1]])
    np.testing.assert_allclose(scale_by_temperature(log_proba, np.inf), np.full((2, 3), 1 / 3))
    np.testing.assert_allclose(scale_by_temperature(log_proba, 1.0), np.exp(log_proba), atol=1e-15)


def test_temperature_by_hand():
    # odds of 9 (log-odds 2 log 3) are right in 3 of 4 cases, odds of 3
    log_proba = np.log([[0.1, 0.9]] * 4)
    temperature = temperature_of(log_proba, np.array([1, 1, 1, 0]), np.full(4, 0.25))
    assert temperature == pytest.approx(2, abs=1e-14)


@pytest.mark.parametrize("seed", range(10))
def test_temperature_is_the_root_of_the_slope(seed):
    log_proba, label, _, weight = softmax_problem(seed=seed)
    root = brentq(slope_in_inverse, 1e-3, 50, args=(log_proba, label, weight), xtol=1e-15)
    assert 1 / temperature_of(log_proba, label, weight) == pytest.approx(root, rel=1e-12)


def test_temperature_of_many_rows_starts_from_a_sample():
    log_proba, label, _, weight = softmax_problem(n=20_000, seed=3)
    temperature = temperature_of(log_proba, label, weight)
    proba = scale_by_temperature(log_proba, temperature)
    mean = np.einsum("nk,nk->n", proba, log_proba)
    assert abs(weight @ (mean - log_proba[np.arange(len(label)), label])) < 1e-14


def test_temperature_at_the_ends():
    log_proba = np.log([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
    half = np.full(2, 0.5)
    assert temperature_of(log_proba, np.array([0, 2]), half) == 0
    assert temperature_of(log_proba, np.array([2, 0]), half) == np.inf
    assert temperature_of(np.zeros((2, 3)), np.array([2, 0]), half) == 1
    # as much below as above the mean log-probability: the slope at 0 is 0
    tie = np.log([[0.2, 0.8], [0.2, 0.8]])
    assert temperature_of(tie, np.array([0, 1]), half) == np.inf


def test_prior_draws_the_temperature_to_one():
    log_proba = np.log([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
    label, half = np.array([0, 2]), np.full(2, 0.5)
    temperatures = [temperature_of(log_proba, label, half, p) for p in (0.01, 0.1, 0.5, 0.9, 1.0)]
    assert (np.diff(temperatures) > 0).all()
    assert temperatures[0] > 0
    assert temperatures[-1] == pytest.approx(1, abs=1e-14)


@both_designs
def test_designs_are_adjoint_and_equal_the_twin(design):
    rng = np.random.default_rng(0)
    inputs, residual = rng.normal(size=(2, 20, 4))
    parameters = rng.normal(size=identity(design, 4).shape)
    scores = design.scores(parameters, inputs)
    np.testing.assert_allclose(scores, naive_scores(design, parameters, inputs), atol=1e-12)
    np.testing.assert_allclose(design.scores_of_rows(parameters, inputs), scores, atol=1e-12)
    left = np.vdot(scores, residual)
    assert left == pytest.approx(np.vdot(parameters, design.adjoint(residual, inputs)), abs=1e-12)


def test_vector_preconditioner_inverts_the_blocks_of_the_classes():
    rng = np.random.default_rng(0)
    inputs, spread, penalty = rng.normal(size=(20, 3)), rng.random((20, 3)), rng.random((2, 3))
    residual = rng.normal(size=(2, 3))
    residual[1] -= residual[1].mean()
    expected = np.empty((2, 3))
    for k in range(3):
        features = np.column_stack([inputs[:, k], np.ones(20)])
        block = sum(w * np.outer(x, x) for w, x in zip(spread[:, k], features, strict=True))
        expected[:, k] = np.linalg.solve(block + np.diag(penalty[:, k]), residual[:, k])
    expected[1] -= expected[1].mean()
    solve = ScaledAndShifted.preconditioner(spread, inputs, penalty)
    np.testing.assert_allclose(solve(residual), expected, rtol=1e-7)
    np.testing.assert_allclose(solve(residual + np.array([[0], [5]])), solve(residual), atol=1e-12)


def dense_preconditioner(spread, inputs, penalty, common):
    """The inverse of what the preconditioner simplifies the Hessian to, class by class."""
    n_classes = inputs.shape[1]
    blocks = np.zeros((n_classes, n_classes + 1, n_classes, n_classes + 1))
    for k in range(n_classes):
        total = spread[:, k].sum()
        centre = spread[:, k] @ inputs / total
        variance = spread[:, k] @ (inputs - centre) ** 2
        feature = np.append(centre, 1)
        blocks[k, :, k, :] = np.diag(np.append(variance, 0)) + total * np.outer(feature, feature)
    matrix = blocks.reshape((n_classes * (n_classes + 1),) * 2)
    penalty_matrix = np.diag(penalty[: n_classes + 1].T.ravel())
    if not common:
        return np.linalg.inv(matrix + penalty_matrix)
    diagonal = np.eye(n_classes, n_classes + 1).ravel()
    image = (matrix @ diagonal)[:, None]
    corner = diagonal @ matrix @ diagonal
    return np.linalg.inv(np.block([[matrix + penalty_matrix, image], [image.T, corner]]))


@pytest.mark.parametrize("infinite", [None, 0, 3])
@pytest.mark.parametrize("common", [False, True])
def test_affine_preconditioner_inverts_the_simplified_blocks(common, infinite):
    rng = np.random.default_rng(0)
    inputs, spread = rng.normal(loc=2, size=(20, 3)), rng.random((20, 3))
    penalty, residual = np.zeros((5, 3)), rng.normal(size=(5, 3))
    penalty[:4] = rng.random((4, 3))
    if infinite is not None:
        penalty[infinite, 0] = 1e9
    residual[4] = residual[4].mean()
    inverse = dense_preconditioner(spread, inputs, penalty, common)
    right = residual[:4].T.ravel()
    expected = inverse @ (np.append(right, residual[4].sum()) if common else right)
    if infinite is not None:
        penalty[infinite, 0] = np.inf
    if common:
        solution = AffineAndCommon.preconditioner(spread, inputs, penalty)(residual)
        assert solution[4] == pytest.approx(np.full(3, expected[-1]), rel=1e-6)
    else:
        solution = Affine.preconditioner(spread, inputs, penalty[:4])(residual[:4])
    np.testing.assert_allclose(solution[:4].T.ravel(), expected[:12], rtol=1e-6, atol=1e-8)
    assert infinite is None or solution[infinite, 0] == 0


@pytest.mark.parametrize(
    ("seed", "strength"), [(0, 0.0), (1, 0.1), pytest.param(1, 0.0, marks=pytest.mark.slow)]
)  # 0.4 s: the optimiser finds its gradient by differences
@all_designs
def test_regression_equals_a_general_optimiser(design, strength, seed):
    inputs, _, target, weight = softmax_problem(n=12, seed=seed)
    start = identity(design, 3)
    if design is not ScaledAndShifted:
        strength += 1e-3

    def objective(flat):
        parameters = flat.reshape(start.shape)
        penalty = strength / 2 * ((parameters - start) ** 2).sum()
        return naive_loss(design, parameters, inputs, target, weight) + penalty

    fitted, change = softmax_regression(design, inputs, target, weight, start, strength)
    oracle = minimize(objective, start.ravel(), method="BFGS", options={"gtol": 1e-8})
    assert change < 0.05
    assert objective(fitted.ravel()) <= oracle.fun + 1e-13
    assert objective(fitted.ravel()) == pytest.approx(oracle.fun, abs=1e-9)
    np.testing.assert_allclose(
        softmax_in_place(design.scores(fitted, inputs)),
        softmax_in_place(design.scores(oracle.x.reshape(start.shape), inputs)),
        atol=1e-4,
    )


@all_designs
def test_gradient_at_the_solution_is_rounding(design):
    inputs, _, target, weight = softmax_problem(n=500, n_classes=5)
    start = identity(design, 5)
    fitted, _ = softmax_regression(design, inputs, target, weight, start, 1e-3)
    residual = softmax_in_place(design.scores(fitted, inputs)) - target
    gradient = design.adjoint(weight[:, None] * residual, inputs) + 1e-3 * (fitted - start)
    assert np.abs(gradient).max() < 1e-13


def test_what_is_not_determined_stays_at_the_start():
    # with constant inputs only the three scores are determined, up to a number added to all
    inputs = np.tile(np.log([0.5, 0.3, 0.2]), (10, 1))
    target = np.tile([0.2, 0.3, 0.5], (10, 1))
    start = identity(ScaledAndShifted, 3)
    fitted, _ = softmax_regression(ScaledAndShifted, inputs, target, np.full(10, 0.1), start)
    np.testing.assert_allclose(
        softmax_in_place(ScaledAndShifted.scores(fitted, inputs)), target, atol=1e-12
    )
    same, change = softmax_regression(
        ScaledAndShifted, inputs, np.exp(inputs), np.full(10, 0.1), start
    )
    np.testing.assert_allclose(same, start, atol=1e-12)
    assert change < 1e-12


def test_separated_outcomes_end_with_scores_that_still_move():
    inputs = np.log([[0.8, 0.2], [0.3, 0.7]])
    start = identity(ScaledAndShifted, 2)
    fitted, change = softmax_regression(ScaledAndShifted, inputs, np.eye(2), np.full(2, 0.5), start)
    assert change > 0.1
    assert np.isfinite(fitted).all()


def test_conjugate_gradients_solve_systems():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    matrix, right = root @ root.T, rng.normal(size=6)
    solution = conjugate_gradients(
        lambda x: matrix @ x, right, lambda r: r / np.diag(matrix), 1e-13
    )
    np.testing.assert_allclose(matrix @ solution, right, atol=1e-9)
    # rank one: the shortest solution
    singular = np.outer([3.0, 4.0], [3.0, 4.0])
    solution = conjugate_gradients(lambda x: singular @ x, singular[0], lambda r: r, 1e-13)
    np.testing.assert_allclose(solution, np.array([3.0, 4.0]) * 3 / 25, atol=1e-14)


@pytest.mark.parametrize(
    ("diagonal", "dense"), [(Diagonal, Affine), (DiagonalAndCommon, AffineAndCommon)]
)
def test_a_diagonal_design_is_the_general_one_where_other_influences_are_held(diagonal, dense):
    inputs, _, target, weight = softmax_problem(n=40, n_classes=4)
    n_rows = 2 if diagonal is Diagonal else 3
    rng = np.random.default_rng(0)
    parameters = rng.normal(size=(3, 4))
    penalty = (np.abs(parameters) * [[1.0], [1.0], [0.0]])[:n_rows]
    penalty[0, 1] = np.inf  # one factor stays, at the common one
    parameters[2] = parameters[2].mean()
    parameters = parameters[:n_rows]

    def general(parameters, off_diagonal):
        matrix = np.full((4, 4), off_diagonal)
        np.fill_diagonal(matrix, parameters[0])
        return np.vstack([matrix, parameters[1:]])

    scores = diagonal.scores(parameters, inputs)
    expected = naive_scores(dense, general(parameters, 0.0), inputs)
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    adjoint = dense.adjoint(target, inputs)
    expected = np.vstack([adjoint.diagonal(), adjoint[4:]])
    np.testing.assert_allclose(diagonal.adjoint(target, inputs), expected, atol=1e-12)

    start = np.zeros((n_rows, 4))
    start[::2] = 1
    few, many = (
        softmax_regression(design, inputs, target, weight, *data)[0]
        for design, *data in (
            (diagonal, start, penalty),
            (dense, general(start, 0.0), general(penalty, np.inf)),
        )
    )
    np.testing.assert_allclose(general(few, 0.0), many, atol=1e-13)
    spread = weight[:, None] * target * (1 - target)
    solve = diagonal.preconditioner(spread, inputs, penalty)
    expected = dense.preconditioner(spread, inputs, general(penalty, np.inf))
    np.testing.assert_allclose(
        general(solve(parameters), 0.0), expected(general(parameters, 0.0)), rtol=1e-6
    )


def test_common_design_is_adjoint():
    rng = np.random.default_rng(0)
    inputs, residual = rng.normal(size=(2, 20, 4))
    parameters = rng.normal(size=(6, 4))
    scores = AffineAndCommon.scores(parameters, inputs)
    np.testing.assert_allclose(
        scores, naive_scores(AffineAndCommon, parameters, inputs), atol=1e-12
    )
    right = np.vdot(parameters, AffineAndCommon.adjoint(residual, inputs))
    assert np.vdot(scores, residual) == pytest.approx(right, abs=1e-12)


@all_designs
def test_a_point_has_the_derivatives_of_its_loss(design):
    inputs, _, target, weight = softmax_problem(n=40, n_classes=3, seed=1)
    start = identity(design, 3)
    regression = SoftmaxProblem(design, inputs, target, weight, start, np.full(start.shape, 0.1))
    rng = np.random.default_rng(0)
    here = start + 0.3 * rng.normal(size=start.shape)
    direction, size = rng.normal(size=start.shape), 1e-4
    before, at, after = (regression.evaluate(here + t * direction) for t in (-size, 0, size))
    expected = naive_loss(design, here, inputs, target, weight) + 0.05 * ((here - start) ** 2).sum()
    assert at.loss == pytest.approx(expected, abs=1e-13)
    slope = (after.loss - before.loss) / (2 * size)
    assert np.vdot(at.gradient, direction) == pytest.approx(slope, abs=1e-7)
    bend = (after.gradient - before.gradient) / (2 * size)
    np.testing.assert_allclose(at.curvature(direction), bend, atol=1e-7)


def search(here, step, promise):
    return line_search(
        here.problem.evaluate, here.parameters, step, here.loss, promise, rounding=0.0
    )


def test_a_fit_holds_the_probabilities_of_one_point():
    rng = np.random.default_rng(0)
    inputs, label = 10 * rng.normal(size=(20_000, 10)), rng.integers(10, size=20_000)
    target, weight = np.eye(10)[label], np.full(20_000, 1 / 20_000)
    start = identity(ScaledAndShifted, 10)
    tracemalloc.start()
    problem = SoftmaxProblem(ScaledAndShifted, inputs, target, weight, start, np.zeros((2, 10)))
    here = problem.evaluate(start)
    step = -0.01 * here.gradient  # short, so that longer ones are tried, and compared with it
    there = search(here, step, -np.vdot(here.gradient, step))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert there.loss < here.loss
    assert peak < 1.7 * inputs.nbytes


def test_a_search_that_finds_no_lower_loss_ends():
    inputs, _, target, weight = softmax_problem()
    point = SoftmaxProblem(
        Affine, inputs, target, weight, identity(Affine, 3), np.zeros((4, 3))
    ).evaluate(identity(Affine, 3))
    assert search(point, point.gradient, promise=1.0) is None  # uphill
    assert search(point, np.full_like(point.gradient, np.nan), promise=1.0) is None


@all_designs
def test_preconditioners_scale_with_the_curvature(design):
    """Where predictions are almost certain, the curvature is tiny; no ridge may outweigh it."""
    rng = np.random.default_rng(0)
    shape, tiny = identity(design, 3).shape, 2.0**-40
    inputs, spread, penalty = rng.normal(size=(20, 3)), rng.random((20, 3)), rng.random(shape)
    residual = rng.normal(size=shape)
    expected = design.preconditioner(spread, inputs, penalty)(residual)
    solve = design.preconditioner(tiny * spread, inputs, tiny * penalty)
    np.testing.assert_allclose(tiny * solve(residual), expected, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_means_are_those_of_scikit_learn(n_classes):
    label, proba = random_problem(np.random.default_rng(0), 50, n_classes)
    labels = range(n_classes)
    brier, logarithm = (PROPER_LOSSES[name](proba, label) for name in ("brier", "log_loss"))
    assert brier.shape == logarithm.shape == (50,)
    assert brier.mean() == pytest.approx(brier_score(label, proba), abs=1e-14)
    matrix = two_columns(proba) if n_classes == 2 else proba
    assert logarithm.mean() == pytest.approx(log_loss(label, matrix, labels=labels), abs=1e-14)


def test_two_columns_are_two_classes_of_a_matrix():
    label, proba = random_problem(np.random.default_rng(0), 50)
    matrix = two_columns(proba)
    for name, factor in (("brier", 2), ("log_loss", 1)):
        binary, multiclass = (PROPER_LOSSES[name](p, label) for p in (proba, matrix))
        np.testing.assert_allclose(multiclass, factor * binary, rtol=1e-13, atol=1e-15)


def test_certain_and_wrong_is_finite():
    loss = PROPER_LOSSES["log_loss"](np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1]))
    np.testing.assert_allclose(loss, [0, -np.log(np.finfo(float).eps)], atol=1e-15)


@pytest.mark.parametrize("n_classes", [2, 3, 10, 300])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_of_rows_are_those_of_exact_arithmetic(n_classes, order, dtype):
    proba = np.random.default_rng(0).dirichlet(np.ones(n_classes), 50)
    proba = np.asarray(proba, dtype=dtype, order=order)
    total = row_sums(proba)
    assert total.dtype == np.float64
    np.testing.assert_allclose(total, [math.fsum(row) for row in proba.tolist()], rtol=1e-14)
