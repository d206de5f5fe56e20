"""The conditional and the joint kernel error equal their trace formulas in every method."""

import itertools
import tracemalloc

import numpy as np
import pytest
from oracles import normalised, skce_by_loops
from problems import random_problem, two_columns
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from skcalib._numerics import ridge
from skcalib._numerics.ridge import ridge_norm, ridge_norm_of_features
from skcalib._statistics.gram import compute_pivoted_cholesky, fourier_features
from skcalib.datasets import make_covariate_shift
from skcalib.metrics import (
    conditional_kernel_calibration_error,
    expected_calibration_error,
    joint_kernel_calibration_error,
    squared_kernel_calibration_error,
)


def kernel_by_loops(name, proba, gamma):
    n = len(proba)
    gram = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            linear = proba[i] @ proba[j]
            gaussian = np.exp(-np.sum((proba[i] - proba[j]) ** 2) / (2 * gamma**2))
            gram[i, j] = {"linear": linear, "rbf": gaussian, "linear-rbf": linear + gaussian}[name]
    return gram


def trace_formula(gram, proba, label, regularization):
    """Formula 7 of Moskvichev and Sejdinovic (2025), with explicit matrices."""
    n, n_classes = proba.shape
    residual = np.eye(n_classes)[label] - proba
    inverse = np.linalg.inv(gram + regularization * n * np.eye(n))
    return np.trace(inverse @ (residual @ residual.T) @ inverse @ gram)


@pytest.mark.parametrize("name", ["linear-rbf", "rbf", "linear"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("regularization", [None, 0.02])
def test_equals_the_trace_formula(name, n_classes, regularization):
    label, proba = random_problem(np.random.default_rng(0), 30, n_classes)
    matrix = two_columns(proba) if n_classes == 2 else proba
    gram = kernel_by_loops(name, matrix, 0.3)
    expected = trace_formula(gram, matrix, label, regularization or 30**-0.25)
    options = {"kernel": name, "regularization": regularization}
    if name != "linear":
        options["bandwidth"] = 0.3
    actual = conditional_kernel_calibration_error(label, proba, **options)
    assert actual == pytest.approx(expected, rel=1e-10)
    if name == "linear":
        return  # K features, exact in any case
    options |= {"method": "nystroem", "n_components": 30}
    approximate = conditional_kernel_calibration_error(label, proba, **options)
    assert approximate == pytest.approx(expected, rel=1e-3)


def test_weights_are_those_of_the_ridge_regression():
    # minimise Σ w‖r − M φ‖² + λ‖M‖² over M on explicit features
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 25, 3)
    weight = rng.exponential(size=25)
    w = normalised(weight, 25)
    residual = np.eye(3)[label] - proba
    operator = np.linalg.solve((proba.T * w) @ proba + 0.1 * np.eye(3), (proba.T * w) @ residual)
    actual = conditional_kernel_calibration_error(
        label, proba, sample_weight=weight, kernel="linear", regularization=0.1
    )
    assert actual == pytest.approx(np.sum(operator**2), rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_primal_and_dual_form_of_the_same_features_agree(weighted):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 60, 4)
    weight = normalised(rng.exponential(size=60) if weighted else None, 60)
    residual = np.eye(4)[label] - proba
    features = np.hstack([proba, fourier_features(proba, rng.normal(size=(7, 4)) / 0.3)])
    dual = ridge_norm(features @ features.T, residual, weight, 0.2)
    primal = ridge_norm_of_features(features.__getitem__, residual.__getitem__, weight, 0.2)
    assert primal == pytest.approx(dual, abs=1e-9)


def test_fourier_form_is_that_of_its_features(monkeypatch):
    label, proba = random_problem(np.random.default_rng(0), 60, 4)
    options = {"bandwidth": 0.3, "method": "fourier", "n_components": 7, "regularization": 0.2}
    actual = conditional_kernel_calibration_error(label, proba, random_state=3, **options)
    frequencies = np.random.RandomState(3).standard_normal(size=(7, 4)) / 0.3
    features = np.hstack([proba, fourier_features(proba, frequencies)])
    expected = trace_formula(features @ features.T, proba, label, 0.2)
    assert actual == pytest.approx(expected, rel=1e-9)
    monkeypatch.setattr(ridge, "_FEATURE_BLOCK_SIZE", 13)  # in blocks
    blocks = conditional_kernel_calibration_error(label, proba, random_state=3, **options)
    assert blocks == pytest.approx(actual, rel=1e-12)


def test_fourier_form_converges_at_the_rate_of_its_features():
    label, proba = random_problem(np.random.default_rng(0), 80, 3)
    exact = conditional_kernel_calibration_error(label, proba, bandwidth=0.3)
    errors = []
    options = {"bandwidth": 0.3, "method": "fourier"}
    for n_components in (10, 250):
        options["n_components"] = n_components
        values = [
            conditional_kernel_calibration_error(label, proba, random_state=seed, **options)
            for seed in range(60)
        ]
        errors.append(np.sqrt(np.mean((np.array(values) - exact) ** 2)))
        standard_error = np.std(values) / np.sqrt(60)
        assert abs(np.mean(values) - exact) < 4 * standard_error + exact / n_components
    assert errors[1] < 0.04 * exact
    assert 2.5 < errors[0] / errors[1] < 10  # √25 = 5


def test_nystroem_says_if_its_components_do_not_suffice():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 150, 3)
    options = {"bandwidth": 0.05, "regularization": 0.1, "sample_weight": rng.exponential(size=150)}
    options["kernel"] = "exponential"
    exact = conditional_kernel_calibration_error(label, proba, **options)
    options["method"] = "nystroem"
    enough = conditional_kernel_calibration_error(label, proba, n_components=150, **options)
    assert enough == pytest.approx(exact, rel=1e-3)
    with pytest.warns(ConvergenceWarning, match="10 components leave an error of at most") as seen:
        value = conditional_kernel_calibration_error(label, proba, n_components=10, **options)
    bound = float(str(seen[0].message).split("at most ")[1].split(" in the")[0])
    assert abs(value - exact) <= 1.05 * bound


def test_pivoted_cholesky_leaves_the_error_that_it_says():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=40)
    weight = normalised(rng.random(40), 40)
    gram = RBF(0.4)(proba)
    for most in (1, 5, 40):
        features, error = compute_pivoted_cholesky(
            RBF(0.4), proba, np.ones(40), weight, most, 1e-12
        )
        rest = gram - features @ features.T
        assert error == pytest.approx(weight @ np.diagonal(rest), abs=1e-10)
        assert np.linalg.eigvalsh(rest).min() > -1e-10  # from below
    assert error <= 1e-10


def test_constant_predictions_have_a_bandwidth():
    label = np.array([0, 1, 2, 0])
    proba = np.tile([0.5, 0.3, 0.2], (4, 1))
    for method in ("exact", "fourier", "nystroem"):
        error = conditional_kernel_calibration_error(label, proba, method=method, random_state=0)
        # one feature of squared length k = ‖p‖² + 1: M = r̄ √k/(k + λ)
        k, regularization = 0.38 + 1, 4**-0.25
        mean = np.array([0.5, 0.25, 0.25]) - [0.5, 0.3, 0.2]
        expected = mean @ mean * k / (k + regularization) ** 2
        assert error == pytest.approx(expected, rel=1e-3)


NOISE_CASES = {
    "two classes, exact": (7, 2, {}),
    "three classes, exact": (4, 3, {"kernel": "rbf"}),
    "fourier": (4, 3, {"method": "fourier", "random_state": 0, "n_components": 3}),
    "nystroem": (6, 2, {"method": "nystroem", "kernel": "exponential"}),
    "many samples, few features": (6, 2, {"kernel": "linear"}),
}


@pytest.mark.parametrize("name", NOISE_CASES)
def test_debiased_error_has_mean_0_and_deviation_1_over_all_labels(name):
    n, n_classes, options = NOISE_CASES[name]
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(n_classes), size=n)
    options = options | {
        "sample_weight": rng.exponential(size=n),
        "labels": range(n_classes),
        "regularization": 0.2,
    }
    if options.get("kernel") != "linear":
        options["bandwidth"] = 0.4
    debiased = options | {"estimation": "debiased"}
    labels = np.array(list(itertools.product(range(n_classes), repeat=n)))
    chance = np.prod(proba[np.arange(n), labels], axis=1)
    values = np.array(
        [conditional_kernel_calibration_error(row, proba, **debiased) for row in labels]
    )
    assert chance @ values == pytest.approx(0, abs=1e-14)
    in_deviations = conditional_kernel_calibration_error(
        labels[0], proba, estimation="standardized", **options
    )
    assert in_deviations == pytest.approx(values[0] / np.sqrt(chance @ values**2), rel=1e-10)


def noise_by_loops(form, proba):
    """Expectation and variance of Σ Q_ij ⟨r_i, r_j⟩ from explicit covariance matrices."""
    covariances = [np.diag(p) - np.outer(p, p) for p in proba]
    mean = variance = 0.0
    for i, p in enumerate(proba):
        mean += form[i, i] * (1 - p @ p)
        variance += 4 * form[i, i] ** 2 * (np.sum(p**3) - (p @ p) ** 2)
        for j in set(range(len(proba))) - {i}:
            variance += 2 * form[i, j] ** 2 * np.trace(covariances[i] @ covariances[j])
    return mean, variance


@pytest.mark.parametrize("n_classes", [2, 4])
def test_debiased_error_equals_loops_in_every_method(n_classes, monkeypatch):
    monkeypatch.setattr(ridge, "_MAX_PAIR_ENTRIES", 200)  # several blocks of pairs
    label, proba = random_problem(np.random.default_rng(0), 40, n_classes)
    matrix = two_columns(proba) if n_classes == 2 else proba
    frequencies = np.random.RandomState(3).standard_normal(size=(2, n_classes)) / 0.5
    waves = fourier_features(matrix, frequencies)
    grams = {
        "exact": kernel_by_loops("linear-rbf", matrix, 0.5),
        "nystroem": kernel_by_loops("linear-rbf", matrix, 0.5),
        "fourier": waves @ waves.T + matrix @ matrix.T,
    }
    options = {"bandwidth": 0.5, "regularization": 0.1, "random_state": 3}
    for method, gram in grams.items():
        options["method"] = method
        if method != "exact":
            options["n_components"] = 2 if method == "fourier" else 40
        inverse = np.linalg.inv(gram + 4.0 * np.eye(40))
        mean, variance = noise_by_loops(inverse @ gram @ inverse, matrix)
        expected = trace_formula(gram, matrix, label, 0.1) - mean
        options["estimation"] = "debiased"
        close = {"rel": 1e-9} if method != "nystroem" else {"rel": 1e-2}
        value = conditional_kernel_calibration_error(label, proba, **options)
        assert value == pytest.approx(expected, **close)
        options["estimation"] = "standardized"
        value = conditional_kernel_calibration_error(label, proba, **options)
        assert value == pytest.approx(expected / np.sqrt(variance), **close)


def test_pairs_of_scores_are_summed_alike_in_both_ways():
    rng = np.random.default_rng(0)
    scores, proba = rng.normal(size=(60, 3)), rng.dirichlet(np.ones(4), size=60)
    by_moments = ridge.noise_of_scores(scores, proba)  # more samples than numbers in the moments
    by_pairs = ridge.noise_of_pairs(lambda rows: scores[rows] @ scores.T, proba)
    assert by_moments == pytest.approx(by_pairs, rel=1e-12)


def test_probabilities_near_0_lose_no_digits_of_the_deviation():
    proba = np.array([1e-9, 3e-9, 2e-10])
    form = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 1.0]])
    spread, matrix = proba * (1 - proba), two_columns(proba)
    squares = (form * np.outer(2 * spread, 2 * spread) ** 0.5) ** 2
    own = 4 * spread * (1 - 2 * proba) ** 2  # Var 2p_y
    expected = 2 * (squares.sum() - np.trace(squares)) + np.diagonal(form) ** 2 @ own
    pairs = ridge.noise_of_pairs(form.__getitem__, matrix)
    assert pairs == pytest.approx(squares.sum(), rel=1e-12)
    actual = ridge.noise_variance(np.diagonal(form), pairs, matrix)
    assert actual == pytest.approx(expected, rel=1e-6)


def test_certain_predictions_have_no_deviation():
    options = {"estimation": "standardized", "bandwidth": 1.0}
    assert conditional_kernel_calibration_error([0, 1], [0.0, 1.0], **options) == 0
    assert conditional_kernel_calibration_error([1, 1], [0.0, 1.0], labels=[0, 1], **options) > 1e9


@pytest.mark.parametrize("method", ["exact", "fourier"])
def test_cross_validation_leaves_out_one_sample_at_a_time(method):
    rng = np.random.default_rng(1)
    n, weight = 25, rng.exponential(size=25)
    proba = rng.dirichlet(np.ones(3), size=n)
    label = rng.integers(3, size=n)
    frequencies = np.random.RandomState(3).standard_normal(size=(4, 3)) / 0.3
    features = np.hstack([proba, fourier_features(proba, frequencies)])
    if method == "exact":  # features of the whole Gram matrix
        size, basis = np.linalg.eigh(kernel_by_loops("linear-rbf", proba, 0.3))
        features = basis * np.sqrt(np.maximum(size, 0))
    w, residual = normalised(weight, n), np.eye(3)[label] - proba
    errors = []
    for penalty in ridge.PENALTIES:
        errors.append(0.0)
        for i in range(n):
            others = np.arange(n) != i
            part = features[others].T * w[others]
            second = part @ features[others] + penalty * np.eye(features.shape[1])
            operator = np.linalg.solve(second, part @ residual[others])
            errors[-1] += w[i] * np.sum((residual[i] - features[i] @ operator) ** 2)
    chosen = ridge.PENALTIES[np.argmin(errors)]
    assert ridge.PENALTIES[0] < chosen < ridge.PENALTIES[-1]
    options = {"method": method, "bandwidth": 0.3, "random_state": 3}
    if method == "fourier":
        options["n_components"] = 4
    options |= {"sample_weight": weight}
    actual = conditional_kernel_calibration_error(label, proba, regularization="cv", **options)
    expected = conditional_kernel_calibration_error(label, proba, regularization=chosen, **options)
    assert actual == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_joint_error_is_the_unbiased_kernel_error(n_classes):
    label, proba = random_problem(np.random.default_rng(0), 25, n_classes)
    matrix = two_columns(proba) if n_classes == 2 else proba
    residual = np.eye(n_classes)[label] - matrix
    h = kernel_by_loops("linear-rbf", matrix, 0.3) * (residual @ residual.T)
    expected = (h.sum() - np.trace(h)) / (25 * 24)
    actual = joint_kernel_calibration_error(label, proba, bandwidth=0.3)
    assert actual == pytest.approx(expected, abs=1e-13)
    named = joint_kernel_calibration_error(label, proba, kernel="total-variation", bandwidth=0.3)
    loops = skce_by_loops(matrix, label, "total-variation", 0.3, "unbiased")
    assert named == pytest.approx(loops, abs=1e-13)
    assert named == squared_kernel_calibration_error(label, proba, bandwidth=0.3)


def nan(s, t):
    return np.full((len(s), len(t)), np.nan)


def negative(s, t):
    return -(s @ t.T)


def asymmetric(s, t):
    return s[:, :1] + 0 * t[:, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"estimation": "debiased", "regularization": "cv"},
            "estimation='debiased' needs a regularization that",
        ),
        ({"method": "nystroem", "regularization": "cv"}, "'cv' needs method='exact' or 'fourier'"),
        (
            {"estimation": "standardized", "multi_class": "classwise"},
            "estimation='standardized' needs average=None",
        ),
        ({"kernel": "total-variation", "method": "fourier"}, "'fourier' needs kernel=.*'nystroem'"),
        ({"kernel": RBF(0.3), "method": "fourier"}, "'fourier' needs kernel=.*'nystroem'"),
        ({"kernel": nan}, "kernel must have finite values"),
        ({"kernel": nan, "method": "nystroem"}, "kernel must have finite values"),
        ({"kernel": negative}, "kernel must be positive semi-definite"),
        ({"kernel": negative, "method": "nystroem"}, "kernel must be positive semi-definite"),
        ({"kernel": asymmetric}, "kernel must be finite and symmetric"),
        ({"kernel": asymmetric, "method": "nystroem"}, "kernel must be finite and symmetric"),
        ({"kernel": "gaussian"}, "'kernel' parameter"),
        ({"bandwidth": 0}, "'bandwidth' parameter"),
        ({"regularization": 1e-7}, "'regularization' parameter"),
        ({"regularization": 1e7}, "'regularization' parameter"),
        ({"regularization": -1.0}, "'regularization' parameter"),
        ({"method": "primal"}, "'method' parameter"),
        ({"n_components": 0}, "'n_components' parameter"),
        ({"random_state": "seed"}, "'random_state' parameter"),
    ],
)
def test_bad_options_are_refused(options, message):
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    with pytest.raises(ValueError, match=message):
        conditional_kernel_calibration_error(label, proba, **options)


def test_callable_kernels():
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    named = conditional_kernel_calibration_error(label, proba, kernel="rbf", bandwidth=0.3)
    called = conditional_kernel_calibration_error(label, proba, kernel=RBF(0.3))
    assert called == pytest.approx(named, rel=1e-12)


@pytest.mark.parametrize("regularization", [1e-6, 1e-3, 1e6])
@pytest.mark.parametrize("kernel", ["linear", "linear-rbf"])
def test_extreme_regularization(regularization, kernel):
    # in coordinates of the singular vectors nothing cancels
    label, proba = random_problem(np.random.default_rng(0), 30, 3)
    residual = np.eye(3)[label] - proba
    options = {"kernel": kernel, "regularization": regularization}
    if kernel != "linear":
        options["bandwidth"] = 0.5
    actual = conditional_kernel_calibration_error(label, proba, **options)
    eigenvalue, vector = np.linalg.eigh(kernel_by_loops(kernel, proba, 0.5))
    eigenvalue = np.maximum(eigenvalue, 0)
    size = np.sum((vector.T @ residual) ** 2, axis=1)
    expected = np.sum(size * eigenvalue / (eigenvalue + 30 * regularization) ** 2)
    assert actual == pytest.approx(expected, rel=1e-4)
    assert actual >= 0


def test_one_sample_has_no_pairs():
    with pytest.raises(ValueError, match="at least 2 samples of positive weight"):
        joint_kernel_calibration_error([1], [0.3], labels=[0, 1])
    assert conditional_kernel_calibration_error([1], [0.3], labels=[0, 1]) > 0


def test_features_are_asked_for_in_blocks_of_rows():
    rng = np.random.default_rng(0)
    features, vectors, weight = (rng.random(shape) for shape in ((9000, 3), (9000, 2), 9000))
    sizes = []

    def block(rows):
        sizes.append(len(features[rows]))
        return features[rows]

    second, cross = ((weight[:, None] * features).T @ other for other in (features, vectors))
    expected = np.sum(np.linalg.solve(second + 0.2 * np.eye(3), cross) ** 2)
    actual = ridge_norm_of_features(block, vectors.__getitem__, weight, 0.2)
    assert actual == pytest.approx(expected, rel=1e-10)
    assert max(sizes) <= 5000


@pytest.mark.integration
def test_fourier_form_needs_little_memory():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(10), size=100_000)
    label = rng.integers(10, size=100_000)
    tracemalloc.start()
    conditional_kernel_calibration_error(label, proba, bandwidth=0.5, method="fourier")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6  # the data are 8 MB, the features of all rows 168 MB


@pytest.mark.slow
def test_covariate_shift_of_the_paper():
    # section 5.2 and Figures 2 and 4: n = 1000, mean of 20 trials
    def gaussian(y_true, y_proba, labels):
        return conditional_kernel_calibration_error(y_true, y_proba, labels=labels, kernel="rbf")

    measures = {
        "combined": conditional_kernel_calibration_error,
        "gaussian": gaussian,
        "joint": joint_kernel_calibration_error,
        "binned": expected_calibration_error,
    }
    samples = [
        [make_covariate_shift(location=location, random_state=seed) for seed in range(20)]
        for location in np.linspace(-1, 1, 9)
    ]
    ratio = {}
    for name, measure in measures.items():
        means = [np.mean([measure(y, p, labels=[0, 1]) for y, p in row]) for row in samples]
        ratio[name] = max(means) / min(means)
    assert ratio["combined"] <= 1.6
    assert ratio["joint"] > 5
    assert ratio["binned"] > ratio["combined"]
    assert ratio["gaussian"] > 1.2 * ratio["combined"]
