"""Vector, matrix and Dirichlet scaling reach the optimum of their written-out loss."""

import itertools
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.special
from oracles import labels_of_prior
from problems import random_problem, two_columns
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skcalib._numerics import scaling
from skcalib._numerics.scaling import conjugate_gradients
from skcalib._numerics.scaling_designs import Affine
from skcalib.recalibration import (
    ClosedTestingRecalibrator,
    DirichletRecalibrator,
    EnsembleTemperatureRecalibrator,
    InterceptRecalibrator,
    MatrixScalingRecalibrator,
    SigmoidRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
)

EPSILON = np.finfo(float).eps

CASES = {
    "temperature": TemperatureRecalibrator(),
    "temperature, prior": TemperatureRecalibrator(prior_weight=1.0),
    "vector": VectorScalingRecalibrator(),
    "matrix": MatrixScalingRecalibrator(),
    "Dirichlet": DirichletRecalibrator(),
}

all_cases = pytest.mark.parametrize("recalibrator", CASES.values(), ids=CASES)

regressions = pytest.mark.parametrize(
    "recalibrator", [CASES["vector"], CASES["matrix"], CASES["Dirichlet"]], ids=str
)


def target_of(recalibrator, proba, label, weight):
    share, expected = recalibrator.prior_weight * (weight**2).sum(), proba
    if not isinstance(recalibrator, MatrixScalingRecalibrator):
        share *= proba.shape[1] / 2
        expected = labels_of_prior(np.log(proba), label, weight)
    return (np.eye(proba.shape[1])[label] + share * expected) / (1 + share)


def objective(recalibrator, parameters, proba, weight, target):
    """The documented objective, term by term; parameters are (W, b) or (v, b)."""
    n_classes = proba.shape[1]
    factors, shift = parameters
    log_proba, penalty = np.log(proba), 0.0
    if isinstance(recalibrator, VectorScalingRecalibrator):
        factors = np.diag(factors)
    else:
        diagonal = [factors[k, k] for k in range(n_classes)]
        off = [factors[j, k] for j in range(n_classes) for k in range(n_classes) if j != k]
        squares = [sum(x**2 for x in values) for values in (off, shift)]
        strengths = [recalibrator.off_diagonal_penalty, recalibrator.intercept_penalty]
        if isinstance(recalibrator, MatrixScalingRecalibrator):
            log_proba = log_proba - log_proba.mean(axis=1, keepdims=True)
            spread = sum((x - np.mean(diagonal)) ** 2 for x in diagonal)
            strengths = [strengths[0] * (n_classes - 1), strengths[1]]
            penalty = recalibrator.diagonal_penalty * spread + np.dot(strengths, squares)
            penalty *= n_classes / 2 * (weight**2).sum()
        else:
            penalty = strengths[0] / (n_classes * (n_classes - 1)) * squares[0]
            penalty += strengths[1] / n_classes * squares[1]
    fitted = scipy.special.log_softmax(log_proba @ factors.T + shift, axis=1)
    return -weight @ (target * fitted).sum(axis=1) + penalty


def parameters_of(recalibrator):
    if isinstance(recalibrator, VectorScalingRecalibrator):
        return recalibrator.coef_, recalibrator.intercept_
    return recalibrator.coef_, recalibrator.intercept_


def weighted_problem(seed, n=50, n_classes=3):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, n, n_classes)
    proba = two_columns(proba) if n_classes == 2 else proba
    label[:n_classes] = range(n_classes)
    weight = rng.random(n)
    return label, proba, weight / weight.sum()


@pytest.mark.parametrize(("seed", "n_classes"), [(0, 2), (1, 3)])
@regressions
def test_no_parameters_are_better(recalibrator, seed, n_classes):
    label, proba, weight = weighted_problem(seed, n_classes=n_classes)
    fitted = clone(recalibrator).fit(proba, label, sample_weight=weight)
    data = (proba, weight, target_of(fitted, proba, label, weight))
    best = objective(fitted, parameters_of(fitted), *data)
    rng = np.random.default_rng(seed)
    for _ in range(100):
        size = 10 ** rng.uniform(-4, 0)
        moved = [x + size * rng.normal(size=x.shape) for x in parameters_of(fitted)]
        assert objective(fitted, moved, *data) >= best - 1e-13


@pytest.mark.slow  # the next oracle; that no parameters nearby are better is tested by default
@pytest.mark.parametrize("n_classes", [2, 3])
@regressions
def test_a_general_optimiser_finds_the_same(recalibrator, n_classes):
    label, proba, weight = weighted_problem(0, n_classes=n_classes)
    fitted = clone(recalibrator).fit(proba, label, sample_weight=weight)
    shapes = [x.shape for x in parameters_of(fitted)]
    target = target_of(fitted, proba, label, weight)

    def loss(flat):
        factors, shift = np.split(flat, [-n_classes])
        return objective(fitted, (factors.reshape(shapes[0]), shift), proba, weight, target)

    start = np.eye(n_classes) if len(shapes[0]) == 2 else np.ones(n_classes)
    oracle = minimize(loss, np.append(start, np.zeros(n_classes)), options={"gtol": 1e-9})
    found = np.concatenate([x.ravel() for x in parameters_of(fitted)])
    assert loss(found) <= oracle.fun + 1e-13
    assert loss(found) == pytest.approx(oracle.fun, abs=1e-10)
    if len(shapes[0]) == 2:  # strictly convex
        np.testing.assert_allclose(found, oracle.x, atol=1e-3)


def test_vector_scaling_of_two_classes_is_beta_calibration():
    label, proba, _ = weighted_problem(0, 300, 2)
    features = np.log(proba) * [-1, 1]
    oracle = LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky")
    expected = oracle.fit(features, label).predict_proba(features)
    recalibrator = VectorScalingRecalibrator(prior_weight=0).fit(proba, label)
    np.testing.assert_allclose(recalibrator.predict_proba(proba), expected, atol=1e-9)


def test_vector_scaling_recovers_the_truth():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=20_000)
    scale, shift = np.array([0.5, 1.0, 2.0]), np.array([0.5, 0.0, -0.5])
    truth = scipy.special.softmax(scale * np.log(proba) + shift, axis=1)
    label = (truth.cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1)
    recalibrator = VectorScalingRecalibrator().fit(proba, label)
    np.testing.assert_allclose(recalibrator.coef_, scale, atol=0.1)
    np.testing.assert_allclose(recalibrator.intercept_, shift, atol=0.15)
    assert recalibrator.intercept_.mean() == pytest.approx(0, abs=1e-12)


def test_strong_penalties_leave_a_temperature():
    label, proba, _ = weighted_problem(0, 100, 3)
    strong = dict.fromkeys(["diagonal_penalty", "off_diagonal_penalty", "intercept_penalty"], 1e7)
    recalibrator = MatrixScalingRecalibrator(**strong).fit(proba, label)
    temperature = TemperatureRecalibrator().fit(proba, label)
    np.testing.assert_allclose(
        recalibrator.coef_, np.eye(3) / temperature.temperature_, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(recalibrator.intercept_, 0, atol=1e-6)


def test_matrix_scaling_follows_data_where_there_are_many():
    rng = np.random.default_rng(0)
    log_proba = np.log(rng.dirichlet(np.ones(3), size=10_000))
    matrix = np.array([[1.0, 0.6, 0.0], [0.0, 0.5, 0.0], [-0.6, 0.0, 1.5]])
    truth = scipy.special.softmax(log_proba @ matrix.T, axis=1)
    label = (truth.cumsum(axis=1) < rng.random((10_000, 1))).sum(axis=1)
    proba = np.exp(log_proba)
    losses = [
        log_loss(label, clone(recalibrator).fit(proba, label).predict_proba(proba))
        for recalibrator in (CASES["temperature"], CASES["vector"], CASES["matrix"])
    ]
    assert losses[0] - 0.1 > losses[1] > losses[2] + 0.01
    assert losses[2] < log_loss(label, truth) + 0.01


@regressions
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_strong_prior_leaves_the_predictions_or_a_temperature(recalibrator, n_classes):
    label, proba, _ = weighted_problem(0, n_classes=n_classes)
    expected = proba
    if n_classes > 2 and not isinstance(recalibrator, MatrixScalingRecalibrator):
        expected = TemperatureRecalibrator().fit(proba, label).predict_proba(proba)
        assert np.abs(expected - proba).max() > 0.05
    recalibrator = clone(recalibrator).set_params(prior_weight=1e9)
    if isinstance(recalibrator, DirichletRecalibrator):  # without what holds the intercepts
        recalibrator.set_params(intercept_penalty=1e-9)
    fitted = recalibrator.fit(proba, label).predict_proba(proba)
    np.testing.assert_allclose(fitted, expected, atol=1e-4)


def test_what_constant_predictions_do_not_determine_stays():
    proba = np.tile([0.5, 0.3, 0.2], (10, 1))
    label = np.array([0] * 5 + [1] * 3 + [2] * 2)
    recalibrator = VectorScalingRecalibrator(prior_weight=0).fit(proba, label)
    np.testing.assert_allclose(recalibrator.coef_, 1, atol=1e-12)
    np.testing.assert_allclose(recalibrator.intercept_, 0, atol=1e-12)
    # other frequencies: only these are learned
    recalibrator.fit(proba, 2 - label)
    np.testing.assert_allclose(recalibrator.predict_proba(proba[:1]), [[0.2, 0.3, 0.5]], atol=1e-9)


@pytest.mark.parametrize("maker", [VectorScalingRecalibrator, MatrixScalingRecalibrator])
def test_separable_outcomes_without_prior_are_warned_about(maker):
    proba, label = [0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]
    recalibrator = maker(prior_weight=0)
    with pytest.warns(ConvergenceWarning, match="no maximum, as the outcomes can be separated"):
        recalibrator.fit(proba, label)
    calibrated = recalibrator.predict_proba(proba)
    assert np.isfinite(calibrated).all()
    assert (calibrated[:2, 0] > 0.999).all()
    maker().fit(proba, label)


ALL_SIZES = [(2, 20), (4, 1), (4, 20)]  # classes and samples


def extreme_problems(*sizes):
    rng = np.random.default_rng(0)
    for n_classes, n in sizes:
        corners = np.eye(n_classes)
        label = rng.integers(0, n_classes, n)
        proba = rng.dirichlet(np.ones(n_classes), n)
        missing = np.where(np.arange(n_classes) == 0, 0.0, proba)
        tiny = proba**60
        votes = np.round(5 * proba) + (proba == proba.max(axis=1, keepdims=True))
        yield n_classes, label, proba
        yield n_classes, label, np.tile(proba[0], (n, 1))
        yield n_classes, label, np.full((n, n_classes), 1 / n_classes)
        yield n_classes, label, corners[label]
        yield n_classes, label, corners[(label + 1) % n_classes]
        yield n_classes, label, corners[rng.integers(0, n_classes, n)]
        yield n_classes, label, (proba + corners[label]) / 2
        yield n_classes, label, (proba + corners[(label + 1) % n_classes]) / 2
        yield n_classes, np.zeros(n, dtype=int), proba
        yield n_classes, np.ones(n, dtype=int), missing / missing.sum(axis=1, keepdims=True)
        yield n_classes, label, tiny / tiny.sum(axis=1, keepdims=True)
        yield n_classes, label, votes / votes.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("weighted", [False, True])
@all_cases  # 0.3 s: twelve extremes for each number of classes and samples
def test_extremes(recalibrator, weighted):
    rng = np.random.default_rng(1)
    for n_classes, label, proba in extreme_problems(*([(4, 20)] if weighted else ALL_SIZES)):
        weight = 10.0 ** rng.uniform(-12, 3, len(label)) if weighted else None
        fitted = clone(recalibrator).set_params(labels=range(n_classes))
        with warnings.catch_warnings():
            if weighted:  # over 15 decades, where steps may run out: that is told
                warnings.simplefilter("ignore", ConvergenceWarning)
            fitted.fit(proba, label, sample_weight=weight)
        query = np.vstack([proba, np.eye(n_classes), np.full((1, n_classes), 1 / n_classes)])
        calibrated = fitted.predict_proba(query)
        assert (calibrated >= EPSILON).all()
        assert (calibrated <= 1 - EPSILON).all()
        np.testing.assert_allclose(calibrated.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("maker", [VectorScalingRecalibrator, DirichletRecalibrator])
def test_extremes_without_prior_are_finite(maker):
    for n_classes, label, proba in extreme_problems(*ALL_SIZES):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = maker(prior_weight=0, labels=range(n_classes)).fit(proba, label)
        calibrated = fitted.predict_proba(proba)
        assert np.isfinite(calibrated).all()
        np.testing.assert_allclose(calibrated.sum(axis=1), 1, atol=1e-12)


@all_cases
def test_absent_class_needs_a_name_and_keeps_some_probability(recalibrator):
    _, proba, _ = weighted_problem(0, 40)
    label = np.array(["a", "b"] * 20)
    with pytest.raises(ValueError, match=r"y holds only 2 distinct label.*labels=\[...\]"):
        clone(recalibrator).fit(proba, label)
    fitted = clone(recalibrator).set_params(labels=["a", "b", "c"]).fit(proba, label)
    assert (fitted.predict_proba(proba)[:, 2] > 0).all()


@pytest.mark.parametrize("n_classes", [2, 4])
@all_cases
def test_rows_are_the_same_alone(recalibrator, n_classes):
    label, proba, _ = weighted_problem(0, 60, n_classes)
    fitted = clone(recalibrator).fit(proba, label)
    together = fitted.predict_proba(proba)
    alone = np.vstack([fitted.predict_proba(row[None]) for row in proba])
    np.testing.assert_array_equal(alone, together)


def test_a_thousand_classes_need_little_memory():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(1000), size=200)
    label = rng.integers(0, 1000, 200)
    known = {"probabilities": (proba, 6), "logits": (np.log(proba), 8)}
    makers = TemperatureRecalibrator, VectorScalingRecalibrator
    for maker, input_type in itertools.product(makers, known):
        values, limit = known[input_type]
        tracemalloc.start()
        maker(input_type=input_type, labels=range(1000)).fit(values, label)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < limit * proba.nbytes


BAD_PARAMETERS = [
    (TemperatureRecalibrator, "prior_weight", -1),
    (TemperatureRecalibrator, "prior_weight", np.inf),
    (VectorScalingRecalibrator, "prior_weight", "large"),
    (MatrixScalingRecalibrator, "diagonal_penalty", -1),
    (MatrixScalingRecalibrator, "off_diagonal_penalty", 0),
    (MatrixScalingRecalibrator, "intercept_penalty", None),
    (DirichletRecalibrator, "off_diagonal_penalty", -1),
    (DirichletRecalibrator, "intercept_penalty", 0),
]


@pytest.mark.parametrize(("maker", "name", "value"), BAD_PARAMETERS)
def test_bad_parameters_are_refused(maker, name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter of {maker.__name__}"):
        maker(**{name: value}).fit([0.2, 0.7, 0.4], [0, 1, 1])


@pytest.mark.parametrize("base", [0.03, 0.5])
@pytest.mark.parametrize("spread", [0.03, 1e-3])
def test_vector_scaling_of_predictions_in_a_narrow_range(base, spread):
    """For two classes it is the logistic regression on 1, log p and log(1 − p)."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=500)
    proba, label = base * (1 + spread * u), (rng.random(500) < scipy.special.expit(u)).astype(int)
    design = np.column_stack([u, u**2 - 1])  # spans the same, up to O(spread)
    oracle = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12).fit(design, label)
    best = log_loss(label, oracle.predict_proba(design))
    fitted = VectorScalingRecalibrator(prior_weight=0).fit(proba, label)
    assert log_loss(label, fitted.predict_proba(proba)) == pytest.approx(best, abs=spread)
    sigmoid = SigmoidRecalibrator(prior_weight=0).fit(proba, label)  # a special case
    assert log_loss(label, fitted.predict_proba(proba)) <= 1e-9 + log_loss(
        label, sigmoid.predict_proba(proba)
    )


def test_weights_over_many_decades_in_a_pattern():
    """Every third sample has little weight: a sample of the rows could see these only."""
    rng = np.random.default_rng(0)
    n = 3 * 4098
    label, proba = random_problem(rng, n, 3)
    weight = np.ones(n)
    certain = np.arange(n) % 3 > 0
    proba[certain] = 0.98 * np.eye(3)[label[certain]] + 0.02 / 3
    weight[certain] = 1e6
    fitted = VectorScalingRecalibrator(prior_weight=0).fit(proba, label, sample_weight=weight)
    weight /= weight.sum()
    z = np.log(proba)

    def objective(parameters):
        scores = z * parameters[:3] + parameters[3:]
        scores -= scipy.special.logsumexp(scores, axis=1, keepdims=True)
        residual = weight[:, None] * (np.exp(scores) - np.eye(3)[label])
        gradient = np.concatenate([(residual * z).sum(axis=0), residual.sum(axis=0)])
        return -weight @ scores[np.arange(n), label], gradient

    best = minimize(objective, np.repeat([1.0, 0.0], 3), jac=True, method="BFGS")
    ours = objective(np.concatenate([fitted.coef_, fitted.intercept_]))[0]
    assert ours <= best.fun + 1e-9


def test_a_temperature_keeps_the_largest_class_beside_coarse_levels():
    proba = np.vstack([np.repeat(np.eye(6), 5, axis=0), np.tile([0.5, 0.5, 0, 0, 0, 0], (4, 1))])
    label = np.append(np.repeat(np.arange(6), 5), [0, 1, 2, 1])
    query = np.array([[0.1, 0.2, 0.15, 0.15, 0.15, 0.25], [0.05, 0.24, 0.15, 0.18, 0.15, 0.23]])
    recalibrator = TemperatureRecalibrator().fit(proba, label)
    np.testing.assert_array_equal(recalibrator.predict(query), [5, 1])


@regressions
@pytest.mark.parametrize(
    ("n_classes", "n", "hit"), [(2, 30, 0.3), (2, 300, 0.3), (3, 300, 0.0), (10, 1000, 0.1)]
)
def test_certain_and_mostly_wrong(recalibrator, n_classes, n, hit):
    """Uniform probabilities are within reach."""
    rng = np.random.default_rng(0)
    top = rng.integers(0, n_classes, n)
    wrong = (top + 1 + rng.integers(0, n_classes - 1, n)) % n_classes
    label = np.where(rng.random(n) < hit, top, wrong)
    proba = np.eye(n_classes)[top]
    fitted = clone(recalibrator).set_params(labels=range(n_classes)).fit(proba, label)
    loss = log_loss(label, fitted.predict_proba(proba), labels=range(n_classes))
    assert loss < np.log(n_classes) + 0.01


@regressions
def test_a_strong_prior_keeps_votes_but_for_zeros(recalibrator):
    rng = np.random.default_rng(0)
    proba = rng.multinomial(20, [0.7, 0.2, 0.1], size=60) / 20
    fitted = clone(recalibrator).set_params(prior_weight=1e9)
    label = rng.integers(0, 3, size=60)
    fitted.fit(proba, label)
    expected = np.maximum(proba, 1 / 40)
    if not isinstance(recalibrator, MatrixScalingRecalibrator):
        temperature = TemperatureRecalibrator().fit(proba, label).temperature_
        expected **= 1 / temperature
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(proba), expected, atol=1e-7)


@all_cases
def test_layout_in_memory_changes_no_bit(recalibrator):
    label, proba = random_problem(np.random.default_rng(0), 300, 33)
    one, two = (clone(recalibrator).fit(p, label) for p in (proba, np.asfortranarray(proba)))
    np.testing.assert_array_equal(
        one.predict_proba(proba), two.predict_proba(np.asfortranarray(proba))
    )


PENALTIES = {
    MatrixScalingRecalibrator: ["diagonal_penalty", "off_diagonal_penalty", "intercept_penalty"],
    DirichletRecalibrator: ["off_diagonal_penalty", "intercept_penalty"],
}

single_penalties = pytest.mark.parametrize(
    ("maker", "name"), [(maker, name) for maker in PENALTIES for name in PENALTIES[maker]]
)


@pytest.mark.parametrize(("prior_weight", "n_classes"), [(4.0, 2), (0.0, 3), (4.0, 5)])
@single_penalties
def test_large_penalties_approach_the_restricted_model(maker, name, prior_weight, n_classes):
    label, proba, weight = weighted_problem(0, 60, n_classes)

    def map_with(penalty):
        recalibrator = maker(prior_weight=prior_weight, **{name: penalty})
        return recalibrator.fit(proba, label, sample_weight=weight).predict_proba(proba)

    limit = map_with(np.inf)
    strengths = [1e4, 1e10, 1e300]
    distance = [np.abs(map_with(strength) - limit).max() for strength in strengths]
    assert (np.diff(distance) <= 1e-12).all()
    assert (np.array(distance) <= np.maximum(1e4 / np.array(strengths), 1e-12)).all()


def restricted(maker, infinite, n_classes):
    """From free numbers to (W, b), with one temperature, no influences or no shifts."""

    def parameters(flat):
        flat = iter(flat)
        common = next(flat)
        diagonal = [
            common if "diagonal_penalty" in infinite else next(flat) for _ in range(n_classes)
        ]
        factors = np.diag(diagonal)
        if "off_diagonal_penalty" not in infinite:
            for j in range(n_classes):
                for k in range(n_classes):
                    if j != k:
                        factors[j, k] = next(flat)
        held = "intercept_penalty" in infinite
        return factors, np.array([0.0 if held else next(flat) for _ in range(n_classes)])

    return parameters


@pytest.mark.parametrize(
    ("maker", "infinite"),
    [
        (maker, infinite)
        for maker, names in PENALTIES.items()
        for size in (1, len(names))
        for infinite in itertools.combinations(names, size)
    ],
)
def test_infinite_penalties_are_the_restricted_model(maker, infinite):
    label, proba, weight = weighted_problem(1, 60)
    fitted = maker(**dict.fromkeys(infinite, np.inf)).fit(proba, label, sample_weight=weight)
    parameters = restricted(maker, infinite, 3)
    strengths = {name: getattr(fitted, name) for name in PENALTIES[maker]}
    finite = maker(prior_weight=fitted.prior_weight).set_params(
        **{name: 0.0 if np.isinf(value) else value for name, value in strengths.items()}
    )

    target = target_of(finite, proba, label, weight)

    def loss(flat):
        return objective(finite, parameters(flat), proba, weight, target)

    n_off, n_shift = (
        0 if f"{name}_penalty" in infinite else n
        for name, n in (("off_diagonal", 6), ("intercept", 3))
    )
    start = np.append(
        np.ones(1 if "diagonal_penalty" in infinite else 4), np.zeros(n_off + n_shift)
    )
    oracle = minimize(loss, start, options={"gtol": 1e-8})
    found = objective(finite, parameters_of(fitted), proba, weight, target)
    assert found == pytest.approx(oracle.fun, abs=1e-11)
    factors, shift = parameters_of(fitted)
    off_diagonal = factors[~np.eye(3, dtype=bool)]
    assert ("off_diagonal_penalty" in infinite) == (off_diagonal == 0).all()
    assert ("intercept_penalty" in infinite) == (shift == 0).all()
    assert ("diagonal_penalty" in infinite) == (np.ptp(np.diag(factors)) == 0)


@pytest.mark.parametrize("maker", PENALTIES)
def test_without_influences_no_matrix_is_multiplied(maker, monkeypatch):
    label, proba, _ = weighted_problem(0, 60, 4)
    for name in ("scores", "scores_of_rows"):
        monkeypatch.setattr(Affine, name, None)
    maker(off_diagonal_penalty=np.inf).fit(proba, label).predict_proba(proba)


def test_all_penalties_infinite_leave_a_temperature():
    label, proba, weight = weighted_problem(0, 100, 4)
    infinite = dict.fromkeys(PENALTIES[MatrixScalingRecalibrator], np.inf)
    fitted = MatrixScalingRecalibrator(**infinite).fit(proba, label, sample_weight=weight)
    temperature = TemperatureRecalibrator().fit(proba, label, sample_weight=weight)
    np.testing.assert_allclose(
        fitted.coef_, np.eye(4) / temperature.temperature_, rtol=1e-9, atol=0
    )


@pytest.mark.parametrize("penalty", [1e-300, 1e14, np.inf])
@single_penalties
def test_one_sample_is_no_work(maker, name, penalty, monkeypatch):
    products = []

    def counted(product, right, precondition, tolerance):
        return conjugate_gradients(
            lambda x: products.append(1) or product(x), right, precondition, tolerance
        )

    monkeypatch.setattr("skcalib._numerics.scaling.conjugate_gradients", counted)
    proba = np.random.default_rng(0).dirichlet(np.ones(30), size=1)
    for prior_weight in (0.0, 4.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # there is no maximum without prior
            recalibrator = maker(prior_weight=prior_weight, labels=range(30), **{name: penalty})
            assert np.isfinite(recalibrator.fit(proba, [0]).predict_proba(proba)).all()
    assert len(products) < 5000


def test_steps_that_run_out_are_told(monkeypatch):
    label, proba, _ = weighted_problem(0)
    monkeypatch.setattr("skcalib._numerics.scaling._MAX_SCALING_STEPS", 1)
    for maker in (VectorScalingRecalibrator, *PENALTIES):
        with pytest.warns(ConvergenceWarning, match="has not reached its optimum") as record:
            maker().fit(proba, label)
        assert record[0].filename == __file__


@pytest.mark.parametrize("spread", [0.1, 1e-2, 1e-3])
@pytest.mark.parametrize("n_classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_dirichlet_of_predictions_in_a_narrow_range(n_classes, spread):
    """The optimum in centred and scaled coordinates, which a general optimiser can find."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=(200, n_classes))
    proba = scipy.special.softmax(np.arange(n_classes) / 2 + spread * u, axis=1)
    label = np.array([rng.choice(n_classes, p=row) for row in scipy.special.softmax(u, axis=1)])
    weight = np.full(200, 1 / 200)
    centre = np.log(proba).mean(axis=0)
    fitted = DirichletRecalibrator().fit(proba, label)
    data = (proba, weight, target_of(fitted, proba, label, weight))

    def loss(flat):
        factors = flat[:-n_classes].reshape(n_classes, n_classes) / spread
        parameters = factors, flat[-n_classes:] - factors @ centre
        return objective(fitted, parameters, *data)

    start = np.append(spread * np.eye(n_classes), centre)
    oracle = minimize(loss, start, options={"gtol": 1e-7})
    assert objective(fitted, parameters_of(fitted), *data) <= oracle.fun + 1e-10


@regressions
def test_with_many_probabilities_the_fit_ends_early_and_hardly_earlier(recalibrator, monkeypatch):
    label, proba, weight = weighted_problem(3, n=300, n_classes=5)
    fitted = clone(recalibrator).fit(proba, label, sample_weight=weight)
    steps = []
    whole_step = scaling.Point.newton_step

    def counted(point, *arguments):
        steps[-1] += 1
        return whole_step(point, *arguments)

    monkeypatch.setattr(scaling.Point, "newton_step", counted)
    losses = []
    for many in (proba.size, proba.size - 1):
        monkeypatch.setattr(scaling, "_MAX_EXACT_ENTRIES", many)
        steps.append(0)
        fitted = clone(recalibrator).fit(proba, label, sample_weight=weight)
        target = target_of(fitted, proba, label, weight)
        losses.append(objective(fitted, parameters_of(fitted), proba, weight, target))
    assert steps[1] < steps[0]
    assert losses[1] <= losses[0] + 1e-4 * proba.shape[1] / len(proba)


def test_with_many_probabilities_a_fit_without_an_optimum_is_told(monkeypatch):
    # each step promises a part of what the last one did, and never little of it
    label, proba, _ = weighted_problem(0, n=30)
    monkeypatch.setattr(scaling, "_MAX_EXACT_ENTRIES", 0)
    with pytest.warns(ConvergenceWarning, match="no maximum"):
        fitted = VectorScalingRecalibrator(prior_weight=0).fit(proba, proba.argmax(axis=1))
    assert -np.log(fitted.predict_proba(proba).max(axis=1)).mean() < 2e-4 * 3 / 30
    VectorScalingRecalibrator(prior_weight=0).fit(proba, label)  # no warning


@pytest.mark.parametrize(
    ("input_type", "weighted", "n", "n_classes", "noise"),
    [("probabilities", True, 30, 10, 0), ("logits", False, 5, 5, 1)],
)
@pytest.mark.parametrize(
    "recalibrator",
    [
        CASES["temperature"],
        CASES["vector"],
        CASES["matrix"],
        CASES["Dirichlet"],
        EnsembleTemperatureRecalibrator(),
        InterceptRecalibrator(),
        ClosedTestingRecalibrator(),
    ],
    ids=str,
)
def test_order_does_not_matter_to_almost_certain_predictions(
    recalibrator, input_type, weighted, n, n_classes, noise
):
    # the loss hardly knows what the map is elsewhere: rounding would decide
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(n, n_classes))
    label = (3 * scores + noise * rng.gumbel(size=scores.shape)).argmax(axis=1)
    weight = rng.random(n) if weighted else np.ones(n)
    X, query = 200 * scores, rng.normal(size=(20, n_classes))
    if input_type == "probabilities":
        X, query = (scipy.special.softmax(x, axis=1) for x in (X, query))
    one = clone(recalibrator).set_params(labels=range(n_classes), input_type=input_type)
    found = []
    for rows in (np.arange(n), rng.permutation(n)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            one.fit(X[rows], label[rows], weight[rows])
        found.append(one.predict_proba(query))
    np.testing.assert_allclose(*found, atol=1e-12)


def test_dirichlet_of_constant_predictions_has_one_solution():
    # a free factor of a constant column is a free shift, so that frequencies are met exactly
    label = np.repeat([0, 1, 2], [4, 20, 8])
    proba = np.tile([0.0347, 0.9476, 0.0177], (32, 1))
    model = DirichletRecalibrator(prior_weight=0).fit(proba, label)
    np.testing.assert_allclose(model.coef_, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(proba[:1]), [[4 / 32, 20 / 32, 8 / 32]])
    order = np.random.default_rng(0).permutation(32)
    other = DirichletRecalibrator(prior_weight=0).fit(proba, label[order])
    new = np.eye(3) * 0.9 + 0.1 / 3
    np.testing.assert_allclose(other.predict_proba(new), model.predict_proba(new), atol=1e-12)


def test_the_preconditioner_of_many_inputs_knows_the_offset(monkeypatch):
    rng = np.random.default_rng(0)
    inputs, offset = rng.normal(size=(2, 300, 4))
    offset[:, 0] += 5
    start, weight = np.zeros((5, 4)), np.full(300, 1 / 300)

    def solution() -> np.ndarray:
        label = np.eye(4)[rng.integers(4, size=300)]
        problem = scaling.SoftmaxProblem(Affine, inputs, label, weight, start, start + 1e-3, offset)
        return problem.evaluate(start).preconditioner()(np.eye(5, 4))

    expected = solution()
    monkeypatch.setattr(scaling, "_MAX_EXACT_ENTRIES", 0)  # probabilities are in single precision
    np.testing.assert_allclose(solution(), expected, rtol=1e-9)


def test_no_number_is_too_small_for_fast_products(monkeypatch):
    monkeypatch.setattr(scaling, "_MAX_EXACT_ENTRIES", 0)  # probabilities are in single precision
    start, weight = np.zeros((5, 4)), np.full(3, 1 / 3)
    scores = np.tile([0.0, -95.0, -80.0, -60.0], (3, 1))
    problem = scaling.SoftmaxProblem(
        Affine, np.ones((3, 4)), np.eye(4)[:3], weight, start, start, scores
    )
    problem.evaluate(start)
    np.testing.assert_allclose(problem.proba[0], [1, 0, 0, np.exp(-60)], rtol=1e-6, atol=0)
