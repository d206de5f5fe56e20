"""Pairwise scaling reaches the optimum of its written-out loss."""

import numpy as np
import pytest
import scipy.special
from problems import random_problem, two_columns
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from skcalib._numerics import scaling
from skcalib._numerics.scaling_designs import Affine, AffineAndCommon
from skcalib.recalibration import (
    IdentityRecalibrator,
    IsotonicRecalibrator,
    MatrixScalingRecalibrator,
    PairwiseScalingRecalibrator,
    TemperatureRecalibrator,
    _pairwise,
    _scaling,
)
from skcalib.recalibration._registry import RecalibratorChain

EPSILON = np.finfo(float).eps


def pairwise_problem(seed, n, n_classes, weighted=True):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, n, n_classes)
    proba = two_columns(proba) if n_classes == 2 else proba
    label[:n_classes] = range(n_classes)
    weight = rng.random(n) if weighted else np.ones(n)
    return label, proba, weight / weight.sum()


class Objective:
    """The documented objective, term by term, of factors B of standardised products."""

    def __init__(self, base, label, weight, penalty):
        self.base, self.label, self.weight = base, label, weight
        self.n, self.n_classes = base.shape
        logs = [[np.log(max(q, 1e-5)) for q in row] for row in base]
        u = np.array([[x - np.mean(row) for x in row] for row in logs])
        square = sum(w * np.mean(row**2) for w, row in zip(weight, u, strict=True))
        z = u / (2 * np.sqrt(square))
        pairs = [(i, j) for i in range(self.n_classes) for j in range(i, self.n_classes)]
        products = np.array([[row[i] * row[j] for i, j in pairs] for row in z])
        self.products = products - weight @ products
        self.strength = penalty * self.n_classes * sum(w**2 for w in weight)

    def proba(self, factors):
        factors = factors.reshape(-1, self.n_classes)
        return scipy.special.softmax(np.log(self.base) + self.products @ factors, axis=1)

    def loss(self, factors):
        own = self.proba(factors)[np.arange(self.n), self.label]
        return -self.weight @ np.log(own) + self.strength / 2 * (factors**2).sum()

    def gradient(self, factors):
        residual = self.proba(factors) - np.eye(self.n_classes)[self.label]
        slope = self.products.T @ (self.weight[:, None] * residual)
        return slope.ravel() + self.strength * factors

    def hessian(self, factors):
        total = self.strength * np.eye(len(factors))
        for w, p, row in zip(self.weight, self.proba(factors), self.products, strict=True):
            total += w * np.kron(np.outer(row, row), np.diag(p) - np.outer(p, p))
        return total


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_a_general_optimiser_finds_the_same(n_classes):
    label, proba, weight = pairwise_problem(n_classes, 60, n_classes)
    recalibrator = PairwiseScalingRecalibrator(TemperatureRecalibrator())
    recalibrator.fit(proba, label, sample_weight=weight)
    base = recalibrator.base_.predict_proba(proba)
    objective = Objective(base, label, weight, 0.1)
    start = np.zeros(objective.products.shape[1] * n_classes)
    oracle = minimize(
        objective.loss,
        start,
        jac=objective.gradient,
        hess=objective.hessian,
        method="trust-exact",
        options={"gtol": 1e-9},
    ).x
    assert np.abs(objective.gradient(oracle)).max() < 1e-9
    assert np.linalg.eigvalsh(objective.hessian(oracle))[0] >= 0.99 * objective.strength
    found = recalibrator.predict_proba(proba)
    np.testing.assert_allclose(found, objective.proba(oracle), atol=1e-7)
    # the written-out map, of new predictions too, and of its own parameters
    z = np.log(np.maximum(base, 1e-5))
    z -= z.mean(axis=1, keepdims=True)
    i, j = np.triu_indices(n_classes)
    scores = np.log(base) + (z[:, i] * z[:, j]) @ recalibrator.coef_ + recalibrator.intercept_
    np.testing.assert_allclose(found, scipy.special.softmax(scores, axis=1), atol=1e-14)


def test_derivatives_of_the_oracle_are_those_of_its_loss():
    label, proba, weight = pairwise_problem(1, 20, 3)
    objective = Objective(proba, label, weight, 0.1)
    at = np.random.default_rng(0).normal(size=18)
    steps = 1e-5 * np.eye(18)
    slope = [(objective.loss(at + e) - objective.loss(at - e)) / 2e-5 for e in steps]
    np.testing.assert_allclose(objective.gradient(at), slope, atol=1e-8)
    bend = [(objective.gradient(at + e) - objective.gradient(at - e)) / 2e-5 for e in steps]
    np.testing.assert_allclose(objective.hessian(at), bend, atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [5, 60])
def test_the_preconditioner_saves_steps_and_changes_no_result(n, weighted, monkeypatch):
    label, proba, weight = pairwise_problem(0, n, 4, weighted)
    if weighted:
        weight[:2] *= 1000
    found, calls = [], []
    curvature = scaling.Point.curvature
    monkeypatch.setattr(
        scaling.Point, "curvature", lambda *args: calls.append(0) or curvature(*args)
    )
    n_calls = []
    for preconditioner in (scaling.separate_preconditioner, scaling.Point.preconditioner):
        monkeypatch.setattr(_pairwise, "separate_preconditioner", preconditioner)
        calls.clear()
        recalibrator = PairwiseScalingRecalibrator(IdentityRecalibrator())
        found.append(recalibrator.fit(proba, label, sample_weight=weight).predict_proba(proba))
        n_calls.append(len(calls))
    np.testing.assert_allclose(*found, atol=1e-8)
    assert n_calls[0] <= n_calls[1]


def test_the_preconditioner_is_the_inverse_hessian_of_rows_that_differ_in_inputs_alone():
    """It leaves alone what is held."""
    n = 8
    inputs = np.array([[1, 1], [1, -1], [-2, 0], [0, 0]])[np.arange(n) % 4] * [1.0, 2.0]
    proba = np.tile([0.2, 0.3, 0.5], (n, 1))
    start, penalty = np.zeros((3, 3)), np.full((3, 3), 0.3)
    penalty[2] = np.inf
    weight, offset = np.full(n, 1 / n), np.log(proba)
    point = scaling.SoftmaxProblem(Affine, inputs, proba, weight, start, penalty, offset).evaluate(
        start
    )
    right = np.random.default_rng(0).normal(size=(3, 3))
    step = scaling.separate_preconditioner(point)(right)
    assert (step[2] == 0).all()
    np.testing.assert_allclose(point.curvature(step)[:2], right[:2], rtol=1e-9)


def test_the_preconditioner_of_matrices_is_the_inverse_hessian_too():
    """Of two classes, whose penalties are the same; inputs depend on each other."""
    inputs = np.random.default_rng(0).normal(size=(9, 2)) @ [[1, 1], [0, 0.1]] + [3, 1]
    proba, weight = np.tile([0.4, 0.6], (9, 1)), np.full(9, 1 / 9)
    penalty = np.vstack([np.full((3, 2), 0.01), np.zeros((1, 2))])
    start = np.zeros((4, 2))
    point = scaling.SoftmaxProblem(AffineAndCommon, inputs, proba, weight, start, penalty).evaluate(
        start
    )
    right = np.vstack([np.random.default_rng(1).normal(size=(3, 2)), [[0.3, 0.3]]])
    step = scaling.matrix_preconditioner(point)(right)
    np.testing.assert_allclose(point.curvature(step), right, rtol=1e-9)


def test_matrices_of_dependent_inputs_take_few_steps(monkeypatch):
    rng = np.random.default_rng(0)
    score = rng.normal(size=(1000, 1)) * [3, 2, -5, 1] + rng.normal(size=(1000, 4))
    proba, label = scipy.special.softmax(score, axis=1), rng.integers(4, size=1000)
    calls, found = [], []
    curvature = scaling.Point.curvature
    monkeypatch.setattr(
        scaling.Point, "curvature", lambda *args: calls.append(0) or curvature(*args)
    )
    recalibrator, n_calls = MatrixScalingRecalibrator(off_diagonal_penalty=0.1), []
    for preconditioner in (scaling.matrix_preconditioner, scaling.Point.preconditioner):
        monkeypatch.setattr(_scaling, "matrix_preconditioner", preconditioner)
        calls.clear()
        found.append(recalibrator.fit(proba, label).predict_proba(proba))
        n_calls.append(len(calls))
    np.testing.assert_allclose(*found, atol=1e-10)
    assert n_calls[0] < n_calls[1] / 2


def test_an_infinite_penalty_leaves_the_base():
    label, proba, _ = pairwise_problem(0, 50, 3)
    base = MatrixScalingRecalibrator()
    recalibrator = PairwiseScalingRecalibrator(base, penalty=np.inf).fit(proba, label)
    assert (recalibrator.coef_ == 0).all()
    expected = base.fit(proba, label).predict_proba(proba)
    np.testing.assert_allclose(recalibrator.predict_proba(proba), expected, atol=1e-14)


def test_the_default_base_is_matrix_scaling_with_penalties_1():
    label, proba, weight = pairwise_problem(0, 50, 3)
    parameters = dict.fromkeys(["diagonal_penalty", "off_diagonal_penalty", "intercept_penalty"], 1)
    given = PairwiseScalingRecalibrator(MatrixScalingRecalibrator(**parameters))
    expected = given.fit(proba, label, sample_weight=weight).predict_proba(proba)
    found = PairwiseScalingRecalibrator().fit(proba, label, sample_weight=weight)
    np.testing.assert_array_equal(found.predict_proba(proba), expected)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_chain_fits_each_recalibrator_to_what_the_one_before_it_returns(n_classes):
    label, proba, weight = pairwise_problem(0, 50, n_classes)
    chain = RecalibratorChain(IsotonicRecalibrator(), MatrixScalingRecalibrator())
    chain.fit(proba, label, sample_weight=weight)
    first = IsotonicRecalibrator().fit(proba, label, sample_weight=weight)
    second = MatrixScalingRecalibrator()
    second.fit(first.transform(proba), label, sample_weight=weight)
    expected = second.predict_proba(first.transform(proba))
    np.testing.assert_allclose(chain.predict_proba(proba), expected, atol=1e-12)


def test_classes_may_be_permuted():
    label, proba, weight = pairwise_problem(0, 80, 4)
    order = np.array([2, 0, 3, 1])
    expected = PairwiseScalingRecalibrator().fit(proba, label, sample_weight=weight)
    moved = PairwiseScalingRecalibrator()
    moved.fit(proba[:, order], np.argsort(order)[label], sample_weight=weight)
    found = moved.predict_proba(proba[:, order])
    np.testing.assert_allclose(found, expected.predict_proba(proba)[:, order], atol=1e-8)


def test_it_learns_what_no_linear_map_can():
    rng = np.random.default_rng(0)
    score = rng.normal(size=(4000, 3))
    score -= score.mean(axis=1, keepdims=True)
    truth = scipy.special.softmax(score - score[:, ::-1] ** 2, axis=1)
    label = (rng.random((4000, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    proba = scipy.special.softmax(score, axis=1)
    loss = {}
    for recalibrator in (MatrixScalingRecalibrator(), PairwiseScalingRecalibrator()):
        found = recalibrator.fit(proba[:2000], label[:2000]).predict_proba(proba[2000:])
        loss[type(recalibrator)] = -(truth[2000:] * np.log(found)).sum(axis=1).mean()
    best = -(truth[2000:] * np.log(truth[2000:])).sum(axis=1).mean()
    excess = {kind: value - best for kind, value in loss.items()}
    assert excess[PairwiseScalingRecalibrator] < excess[MatrixScalingRecalibrator] / 5


@pytest.mark.parametrize("weighted", [False, True])
def test_extremes(weighted):
    constant = np.tile([0.2, 0.3, 0.5], (20, 1))
    certain = np.eye(3)[np.arange(20) % 3]
    label, weight = np.arange(20) // 2 % 3, np.arange(1.0, 21) if weighted else None
    for proba in (
        constant,
        certain,
        np.full((20, 3), 1 / 3),
        np.vstack([certain, constant])[10:30],
    ):
        for base in (TemperatureRecalibrator(), IdentityRecalibrator()):
            for y in (label, np.zeros(20, dtype=int), certain.argmax(axis=1)):
                recalibrator = PairwiseScalingRecalibrator(base, labels=[0, 1, 2])
                found = recalibrator.fit(proba, y, sample_weight=weight).predict_proba(proba)
                assert np.isfinite(recalibrator.coef_).all()
                assert (found >= EPSILON / 2).all()
                np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)


def test_constant_predictions_stay_those_of_the_base():
    proba, label = np.tile([0.2, 0.3, 0.5], (20, 1)), np.arange(20) % 3
    recalibrator = PairwiseScalingRecalibrator().fit(proba, label)
    expected = recalibrator.base_.predict_proba(proba)
    np.testing.assert_allclose(recalibrator.predict_proba(proba), expected, atol=1e-12)


def test_steps_that_run_out_are_told(monkeypatch):
    label, proba, _ = pairwise_problem(0, 50, 3)
    recalibrator = PairwiseScalingRecalibrator(IdentityRecalibrator())
    monkeypatch.setattr(scaling, "_MAX_SCALING_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="PairwiseScalingRecalibrator has not reached"):
        recalibrator.fit(proba, label)


def test_a_hundred_classes_of_few_samples():
    """The 5050 products of 100 classes need no more directions than there are samples."""
    label, proba, _ = pairwise_problem(0, 100, 100)
    recalibrator = PairwiseScalingRecalibrator(IdentityRecalibrator()).fit(proba, label)
    assert recalibrator.coef_.shape == (5050, 100)
    assert np.isfinite(recalibrator.predict_proba(proba[:5])).all()


@pytest.mark.parametrize(("name", "value"), [("penalty", 0), ("penalty", -1), ("base", "matrix")])
def test_bad_parameters_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        PairwiseScalingRecalibrator(**{name: value}).fit([0.2, 0.7], [0, 1])
