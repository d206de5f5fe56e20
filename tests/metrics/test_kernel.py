"""The squared kernel calibration error equals double loops for every kernel and estimate."""

from functools import partial

import numpy as np
import pytest
from oracles import skce_by_loops, skce_of_matrices_by_loops
from problems import random_problem, two_columns
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.gaussian_process.kernels import (
    RBF,
    DotProduct,
    Exponentiation,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

from skcalib._data import check_predictions
from skcalib._statistics.kernels import resolve_bandwidth
from skcalib.hypothesis_tests import UCMETest
from skcalib.metrics import (
    conditional_kernel_calibration_error,
    expected_calibration_error,
    joint_kernel_calibration_error,
    kernel_calibration_error,
    squared_kernel_calibration_error,
)

KERNELS = ["total-variation", "exponential", "laplacian", "rbf"]


@pytest.mark.parametrize("estimation", ["unbiased", "biased", "linear", "block"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_loops(n_classes, kernel, estimation, weighted):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 25, n_classes)
    weight = rng.random(25) if weighted else None
    matrix = two_columns(proba) if n_classes == 2 else proba
    expected = skce_by_loops(matrix, label, kernel, 0.3, estimation, weight, block_size=7)
    actual = squared_kernel_calibration_error(
        label,
        proba,
        sample_weight=weight,
        kernel=kernel,
        bandwidth=0.3,
        estimation=estimation,
        block_size=7 if estimation == "block" else None,
    )
    assert actual == pytest.approx(expected, abs=1e-12)
    if estimation == "biased":
        error = kernel_calibration_error(
            label, proba, sample_weight=weight, kernel=kernel, bandwidth=0.3
        )
        assert error == pytest.approx(np.sqrt(expected), abs=1e-12)


@pytest.mark.parametrize("estimation", ["unbiased", "biased", "linear", "block"])
@pytest.mark.parametrize("kernel", ["total-variation", "rbf"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_class_kernels_equal_loops(n_classes, kernel, estimation):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 25, n_classes)
    matrix = two_columns(proba) if n_classes == 2 else proba
    root = rng.normal(size=(n_classes, n_classes - 1))
    class_kernel = root @ root.T  # singular
    options = {"estimation": estimation, "class_kernel": class_kernel}
    if estimation == "block":
        options["block_size"] = 5
    expected = skce_by_loops(matrix, label, kernel, 0.3, **options)
    actual = squared_kernel_calibration_error(label, proba, kernel=kernel, bandwidth=0.3, **options)
    assert actual == pytest.approx(expected, abs=1e-12)
    names = np.array(["d", "a", "c", "b"])[:n_classes]
    renamed = squared_kernel_calibration_error(
        names[label], matrix, labels=names, kernel=kernel, bandwidth=0.3, **options
    )
    assert renamed == pytest.approx(expected, abs=1e-12)


def turned(s, t):
    """A kernel whose matrices are not symmetric: a multiple of the identity plus A(s) A(t)ᵀ."""
    same = np.exp(-np.abs(s[:, None] - t).sum(axis=2) / 0.6)[:, :, None, None] * np.eye(s.shape[1])
    return same + np.einsum("acp,bdp->abcd", *(np.stack([x, np.cos(9 * x)], 2) for x in (s, t)))


def of_sum(s, t):
    """Two kernels, each times a matrix."""
    return sum(RBF(length)(s, t)[:, :, None, None] * M for length, M in SUMMANDS)


_ROOTS = np.random.default_rng(1).normal(size=(2, 3, 3))
SUMMANDS = [(0.1, _ROOTS[0] @ _ROOTS[0].T), (0.6, _ROOTS[1][:, :1] @ _ROOTS[1][:, :1].T)]


@pytest.mark.parametrize("estimation", ["unbiased", "biased", "linear", "block"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_matrix_valued_kernels_equal_four_loops(n_classes, estimation, monkeypatch):
    from skcalib._statistics import gram

    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 25, n_classes)
    matrix = two_columns(proba) if n_classes == 2 else proba
    weight = rng.random(25)
    expected = skce_of_matrices_by_loops(
        matrix, label, lambda s, t: turned(s[None], t[None])[0, 0], estimation, weight, block_size=7
    )
    options = {"kernel": turned, "estimation": estimation, "sample_weight": weight}
    options["block_size"] = 7 if estimation == "block" else None
    for tile in (8, 1024):
        monkeypatch.setattr(gram, "_TILE_OF_MATRICES", tile)
        for columns in (proba, matrix):
            actual = squared_kernel_calibration_error(label, columns, **options)
            assert actual == pytest.approx(expected, abs=1e-12)
    if estimation == "biased":
        root = kernel_calibration_error(label, proba, kernel=turned, sample_weight=weight)
        assert root**2 == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("estimation", ["unbiased", "biased", "linear", "block"])
def test_a_sum_of_kernels_times_matrices_has_the_sum_of_errors(estimation):
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    parts = [
        squared_kernel_calibration_error(
            label, proba, kernel="rbf", bandwidth=length, class_kernel=matrix, estimation=estimation
        )
        for length, matrix in SUMMANDS
    ]
    actual = squared_kernel_calibration_error(label, proba, kernel=of_sum, estimation=estimation)
    assert actual == pytest.approx(sum(parts), abs=1e-12)


def test_matrices_are_computed_for_a_tile_at_a_time():
    label, proba = random_problem(np.random.default_rng(0), 300, 10)
    sizes = []

    def kernel(s, t):
        sizes.append(len(s) * len(t) * 100)
        return RBF(0.3)(s, t)[:, :, None, None] * np.eye(10)

    error = squared_kernel_calibration_error(label, proba, kernel=kernel)
    assert max(sizes) <= 1024**2
    named = squared_kernel_calibration_error(label, proba, kernel="rbf", bandwidth=0.3)
    assert error == pytest.approx(named, abs=1e-12)
    sizes.clear()
    options = {"estimation": "block", "block_size": 300}  # all pairs
    whole = squared_kernel_calibration_error(label, proba, kernel=kernel, **options)
    assert whole == pytest.approx(named, abs=1e-12)
    assert max(sizes) <= 1024**2


def test_matrix_valued_kernels_of_two_classes_at_a_time():
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    options = {"multi_class": "confidence", "estimation": "biased"}
    hit, confidence = proba.argmax(axis=1) == label, proba.max(axis=1)
    expected = squared_kernel_calibration_error(hit, confidence, kernel=turned, estimation="biased")
    actual = squared_kernel_calibration_error(label, proba, kernel=turned, **options)
    assert actual == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda s, t: turned(s, t)[..., :2], r"n_classes, n_classes\); found .*, 2\).* 3 columns"),
        (lambda s, t: turned(s, t)[..., 0], r"found shape \(3, 2, 3\)"),
        (lambda s, t: -turned(s, t), "must be positive semi-definite; found the eigenvalue -"),
        (lambda s, t: turned(s, t).swapaxes(2, 3), "must be positive semi-definite"),
        (lambda s, t: turned(s, t) + np.eye(3, k=1), "must be finite and symmetric"),
        (lambda s, t: np.nan * turned(s, t), "must have finite values"),
    ],
)
def test_bad_matrix_valued_kernels_are_refused(kernel, message):
    label, proba = random_problem(np.random.default_rng(0), 20, 3)
    with pytest.raises(ValueError, match=message):
        squared_kernel_calibration_error(label, proba, kernel=kernel)


def test_matrix_valued_kernels_are_refused_where_kernels_must_have_numbers_for_values():
    label, proba = random_problem(np.random.default_rng(0), 20, 3)
    message = r"found shape \(3, 2, 3, 3\).*Matrices are for squared kernel errors without"
    with pytest.raises(ValueError, match=message):
        squared_kernel_calibration_error(label, proba, kernel=turned, class_kernel=np.eye(3))
    with pytest.raises(ValueError, match=message):
        conditional_kernel_calibration_error(label, proba, kernel=turned)
    with pytest.raises(ValueError, match=message):
        UCMETest(kernel=turned).fit(proba, label)


def test_class_kernel_of_nearby_classes_forgives_confusion():
    # always 1/2 for each of two classes that count as the same, and it is the first
    proba = np.tile([0.5, 0.5, 0.0], (10, 1))
    same = [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    options = {"labels": [0, 1, 2], "bandwidth": 1.0}
    label = np.zeros(10, dtype=int)
    assert kernel_calibration_error(label, proba, **options) == pytest.approx(np.sqrt(0.5))
    error = kernel_calibration_error(label, proba, class_kernel=same, **options)
    assert error == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize(
    ("class_kernel", "message"),
    [
        (np.eye(2), "one row and one column for each of the 3 classes; found shape"),
        (np.triu(np.ones((3, 3))), "finite and symmetric"),
        (np.full((3, 3), np.nan), "finite and symmetric"),
        (-np.eye(3), "class_kernel must be positive semi-definite; found the eigenvalue -1"),
        ([["a"] * 3] * 3, "matrix of numbers"),
        (np.ones((3, 3)), "must tell classes apart"),
        (np.zeros((3, 3)), "must tell classes apart"),
    ],
)
def test_bad_class_kernels_are_refused(class_kernel, message):
    label, proba = random_problem(np.random.default_rng(0), 20, 3)
    for method in ("exact", "fourier"):
        options = {"class_kernel": class_kernel, "method": method}
        with pytest.raises(ValueError, match=message):
            squared_kernel_calibration_error(label, proba, **options)


def test_default_blocks_and_what_is_left_over():
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    options = {"estimation": "block", "bandwidth": 0.3}
    default = squared_kernel_calibration_error(label, proba, **options)
    six = squared_kernel_calibration_error(label, proba, block_size=6, **options)
    assert default == six
    used = squared_kernel_calibration_error(label[:36], proba[:36], **options)
    assert default == pytest.approx(used, abs=1e-15)
    whole = squared_kernel_calibration_error(label, proba, block_size=40, **options)
    unbiased = squared_kernel_calibration_error(label, proba, bandwidth=0.3)
    assert whole == pytest.approx(unbiased, abs=1e-14)
    pairs = squared_kernel_calibration_error(label, proba, block_size=2, **options)
    linear = squared_kernel_calibration_error(label, proba, estimation="linear", bandwidth=0.3)
    assert pairs == linear
    with pytest.raises(ValueError, match="block_size=41 for 40 samples"):
        squared_kernel_calibration_error(label, proba, block_size=41, **options)


def test_blocks_of_any_size_fit_the_tiles(monkeypatch):
    from skcalib._statistics import gram

    label, proba = random_problem(np.random.default_rng(0), 50, 3)
    for block_size in (2, 3, 7, 25):
        expected = skce_by_loops(proba, label, "rbf", 0.3, "block", block_size=block_size)
        for tile in (1, 6, 64):
            monkeypatch.setattr(gram, "_SMALL_TILE", tile)
            actual = squared_kernel_calibration_error(
                label, proba, kernel="rbf", bandwidth=0.3, estimation="block", block_size=block_size
            )
            assert actual == pytest.approx(expected, abs=1e-13)


def overlap(s, t):
    return np.minimum(s[:, None], t[None]).sum(axis=2)


@pytest.mark.parametrize("estimation", ["unbiased", "biased", "linear", "block"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_intersection_kernel_equals_loops(n_classes, estimation):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 20, n_classes)
    matrix, weight = two_columns(proba) if n_classes == 2 else proba, rng.random(20)
    options = {"kernel": "intersection", "sample_weight": weight}
    expected = skce_by_loops(matrix, label, "intersection", None, estimation, weight, block_size=4)
    error = squared_kernel_calibration_error(label, proba, estimation=estimation, **options)
    assert error == pytest.approx(expected, abs=1e-13)
    if estimation == "biased":
        root = kernel_calibration_error(label, proba, **options)
        assert root == pytest.approx(np.sqrt(expected), abs=1e-13)
    for lens in ("classwise", "confidence"):
        options |= {"estimation": estimation, "multi_class": lens}
        named = squared_kernel_calibration_error(label, proba, **options)
        called = squared_kernel_calibration_error(label, proba, **options | {"kernel": overlap})
        assert named == pytest.approx(called, abs=1e-13)


def test_the_intersection_kernel_is_semidefinite_between_probabilities_only():
    points = np.random.default_rng(0).dirichlet(np.full(5, 0.5), 40)
    assert np.linalg.eigvalsh(overlap(points, points))[0] > -1e-12
    far = 1 - np.abs(3 * points[:, None] - 3 * points[None]).sum(axis=2) / 2
    assert np.linalg.eigvalsh(far)[0] < -0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 0.3}, r"bandwidth must be left out for kernel='intersection'.*found 0\.3"),
        ({"method": "fourier"}, "frequencies are known; found 'intersection'"),
    ],
)
def test_what_the_intersection_kernel_lacks_is_refused_by_name(options, message):
    label, proba = random_problem(np.random.default_rng(0), 10, 3)
    with pytest.raises(ValueError, match=message):
        squared_kernel_calibration_error(label, proba, kernel="intersection", **options)
    for metric in (joint_kernel_calibration_error, conditional_kernel_calibration_error):
        with pytest.raises(ValueError, match=r"'kernel' parameter .*Got 'intersection'"):
            metric(label, proba, kernel="intersection")


@pytest.mark.parametrize("kernel", KERNELS)
def test_median_bandwidth_of_two_classes_is_that_of_two_columns(kernel):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 40)
    matrix = two_columns(proba)
    difference = matrix[:, None] - matrix[None]
    if kernel in ("exponential", "rbf"):
        distance = np.sqrt((difference**2).sum(axis=2))
    else:
        distance = np.abs(difference).sum(axis=2) * (0.5 if kernel == "total-variation" else 1)
    median = np.median(distance[np.triu_indices(40, 1)])
    assert squared_kernel_calibration_error(label, proba, kernel=kernel) == pytest.approx(
        skce_by_loops(matrix, label, kernel, median, "unbiased"), abs=1e-12
    )


def test_hand_examples():
    # as in the tests of CalibrationErrors.jl: predictions (1, 0) and (0, 1), kernel exp(−TV)
    perfect = np.array([[1.0, 0.0], [0.0, 1.0]])

    def skce(label, proba, estimation):
        return squared_kernel_calibration_error(
            label, proba, labels=[1, 2], bandwidth=1.0, estimation=estimation
        )

    for estimation in ("unbiased", "biased"):
        assert skce([1, 2], perfect, estimation) == 0
        # both wrong: residuals (−1, 1) and (1, −1)
    assert skce([2, 1], perfect, "unbiased") == pytest.approx(-2 * np.exp(-1))
    assert skce([2, 1], perfect, "biased") == pytest.approx(1 - np.exp(-1))
    # one wrong
    assert skce([1, 1], perfect, "unbiased") == 0
    assert skce([1, 1], perfect, "biased") == pytest.approx(0.5)


def test_equals_twice_the_scalar_form():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 30)
    residual = label - proba
    gram = np.exp(-np.abs(proba[:, None] - proba) / 0.4)
    scalar = residual @ gram @ residual / 30**2
    actual = squared_kernel_calibration_error(label, proba, bandwidth=0.4, estimation="biased")
    assert actual == pytest.approx(2 * scalar, abs=1e-12)


def test_confidence_is_twice_the_squared_mmce():
    # Kumar, Sarawagi and Jain (2018): correctness minus confidence, Laplace kernel of width 0.4
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 30, 4)
    confidence = proba.max(axis=1)
    residual = (proba.argmax(axis=1) == label) - confidence
    mmce = residual @ np.exp(-np.abs(confidence[:, None] - confidence) / 0.4) @ residual / 30**2
    actual = squared_kernel_calibration_error(
        label, proba, bandwidth=0.4, estimation="biased", multi_class="confidence"
    )
    assert actual == pytest.approx(2 * mmce, abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_callable_kernels(n_classes):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 30, n_classes)
    named = squared_kernel_calibration_error(label, proba, kernel="rbf", bandwidth=0.3)
    actual = squared_kernel_calibration_error(label, proba, kernel=RBF(0.3))
    assert actual == pytest.approx(named, abs=1e-12)

    def linear(s, t):
        return s @ t.T

    matrix = two_columns(proba) if n_classes == 2 else proba
    residual = np.eye(n_classes)[label] - matrix
    h = linear(matrix, matrix) * linear(residual, residual)
    expected = (h.sum() - np.trace(h)) / (30 * 29)
    actual = squared_kernel_calibration_error(label, proba, kernel=linear)
    assert actual == pytest.approx(expected, abs=1e-12)


def test_constant_predictions():
    error = squared_kernel_calibration_error([0, 1, 1, 1], [0.5] * 4, estimation="biased")
    assert error == pytest.approx(2 * 0.25**2)


@pytest.mark.parametrize("light", [1e-6, 1e-12, 1e-14, 2e-16, 1e-17, 1e-100])
@pytest.mark.parametrize("kernel", ["total-variation", "rbf"])
def test_unbiased_keeps_its_digits_under_uneven_weights(light, kernel):
    # two samples make one pair, whatever their weights
    def error(weight):
        return squared_kernel_calibration_error(
            [0, 1], [0.1, 0.9], sample_weight=weight, bandwidth=1.0, kernel=kernel
        )

    assert error([1, light]) == pytest.approx(error([1, 1]), rel=1e-12)


def test_a_class_predicted_once_has_no_pairs():
    proba = np.array([[0.6, 0.4, 0.0], [0.7, 0.3, 0.0], [0.1, 0.9, 0.0]])
    options = {"multi_class": "top-label", "labels": [0, 1, 2], "bandwidth": 1.0}
    values = squared_kernel_calibration_error([0, 1, 1], proba, average=None, **options)
    alone = squared_kernel_calibration_error([True, False], [0.6, 0.7], bandwidth=1.0)
    np.testing.assert_allclose(values, [alone, np.nan, np.nan], atol=1e-15)
    with pytest.warns(UndefinedMetricWarning, match=r"class\(es\) 1: .* at least 2 samples"):
        average = squared_kernel_calibration_error([0, 1, 1], proba, **options)
    assert average == pytest.approx(alone)


def test_bad_kernels_are_refused():
    with pytest.raises(ValueError, match=r"kernel must return the values for all pairs"):
        squared_kernel_calibration_error([0, 1], [0.1, 0.9], kernel=lambda s, t: s.sum())
    with pytest.raises(ValueError, match=r"kernel must return .* type <U1"):
        squared_kernel_calibration_error(
            [0, 1], [0.1, 0.9], kernel=lambda s, t: np.full((len(s), len(t)), "a")
        )
    with pytest.raises(ValueError, match=r"kernel must have finite values"):
        squared_kernel_calibration_error(
            [0, 1], [0.1, 0.9], kernel=lambda s, t: np.full((len(s), len(t)), np.nan)
        )


def test_unbiased_needs_two_samples():
    with pytest.raises(ValueError, match=r"at least 2 samples .* Use estimation='biased'"):
        squared_kernel_calibration_error([1], [0.5])
    with pytest.raises(ValueError, match="at least 2 samples"):
        squared_kernel_calibration_error([0, 1], [0.5, 0.5], sample_weight=[1, 0])
    assert squared_kernel_calibration_error([1], [0.5], estimation="biased") == pytest.approx(0.5)


def test_unbiased_mean_is_zero_for_a_calibrated_model():
    rng = np.random.default_rng(0)
    values = []
    for _ in range(500):
        label, proba = random_problem(rng, 10, 3, calibrated=True)
        values.append(
            squared_kernel_calibration_error(label, proba, labels=range(3), bandwidth=0.5)
        )
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(len(values))
    assert min(values) < 0


BY_MEDIAN = {
    "unbiased": squared_kernel_calibration_error,
    "root": kernel_calibration_error,
    "rbf": partial(squared_kernel_calibration_error, kernel="rbf"),
    "conditional": conditional_kernel_calibration_error,
    "joint": joint_kernel_calibration_error,
}


def nearly_tied(rng, n):
    """Predictions of a forest: few values, some of which differ in the last bit."""
    return rng.choice([0.1, 0.2, 0.3, 0.6, 0.9], size=n) + 2.0**-53 * rng.integers(0, 3, size=n)


def nearly_equal(rng, n):
    return 0.3 + 2.0**-53 * rng.integers(0, 3, size=n)


def tiny(rng, n):
    return 10.0 ** -rng.uniform(3, 20, size=n)


DRAWS = [nearly_tied, nearly_equal, tiny]


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("metric", BY_MEDIAN.values(), ids=BY_MEDIAN)
def test_defaults_do_not_depend_on_which_class_is_positive(metric, draw):
    rng = np.random.default_rng(0)
    proba = draw(rng, 120)
    label = rng.integers(2, size=120)
    expected = metric(label, proba)
    assert metric(1 - label, 1 - proba) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("metric", BY_MEDIAN.values(), ids=BY_MEDIAN)
def test_defaults_do_not_depend_on_the_last_bits(metric, n_classes, draw):
    rng = np.random.default_rng(0)
    label, proba = rng.integers(n_classes, size=120), draw(rng, 120)
    if n_classes > 2:
        proba = np.column_stack([proba / 2, proba / 2, 0.6 - proba / 2, 0.4 - proba / 2])
        proba = np.abs(proba) / np.abs(proba).sum(axis=1, keepdims=True)
    expected = metric(label, proba)
    moved = np.abs(proba + rng.uniform(-1e-15, 1e-15, size=proba.shape))
    assert metric(label, moved) == pytest.approx(expected, rel=1e-9)


def test_median_bandwidth_counts_pairs_by_their_weights():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 30)
    proba = np.round(proba, 1)
    weight = rng.choice([1, 2, 3], size=30)
    first, second = np.triu_indices(30, 1)
    distance = np.repeat(np.abs(proba[first] - proba[second]), weight[first] * weight[second])
    for metric in (squared_kernel_calibration_error, kernel_calibration_error):
        by_median = metric(label, proba, sample_weight=weight)
        fixed = metric(label, proba, sample_weight=weight, bandwidth=np.median(distance))
        assert by_median == pytest.approx(fixed, rel=1e-12)


def test_equal_predictions_have_the_bandwidth_1():
    for proba in (np.full(4, 0.3), np.full((4, 3), 1 / 3)):
        n_classes = 2 if proba.ndim == 1 else 3
        predictions = check_predictions([0, 1, 1, 0], proba, labels=range(n_classes))
        for kernel in KERNELS:
            assert resolve_bandwidth(predictions, kernel, "median") == 1


WITH_NOISE = {
    "sum": RBF(0.3) + WhiteKernel(0.1),
    "alone": WhiteKernel(),
    "product": RBF(0.3) * WhiteKernel(),
    "power": Exponentiation(RBF(0.3) + WhiteKernel(1e-5), 2),
    "nested": 2.0 * (DotProduct() + RBF(0.3) * (Matern() + WhiteKernel())),
}


@pytest.mark.parametrize("kernel", WITH_NOISE.values(), ids=WITH_NOISE)
def test_white_noise_is_refused(kernel):
    # k(X) has it on the diagonal, k(X, X) does not
    label, proba = random_problem(np.random.default_rng(0), 30, 3)
    for metric in BY_MEDIAN.values():
        with pytest.raises(ValueError, match="Leave the WhiteKernel out"):
            metric(label, proba, **{"kernel": kernel})


def test_other_kernels_of_scikit_learn_are_taken():
    label, proba = random_problem(np.random.default_rng(0), 30, 3)
    for kernel in (
        2.0 * RBF(0.3) + DotProduct() ** 2,
        Matern(0.5, nu=1.5) * RationalQuadratic(),
        PairwiseKernel(metric="rbf"),
    ):
        assert kernel_calibration_error(label, proba, kernel=kernel) > 0


def indefinite(s, t):
    return 1 - np.abs(s[:, None] - t).sum(axis=2) ** 2


@pytest.mark.parametrize("estimation", ["unbiased", "biased", "linear"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_kernels_that_are_not_semidefinite_are_refused(n_classes, estimation):
    label, proba = random_problem(np.random.default_rng(0), 30, n_classes)
    with pytest.raises(ValueError, match=r"kernel must be positive semi-definite; .* eigenvalue -"):
        squared_kernel_calibration_error(label, proba, kernel=indefinite, estimation=estimation)


def test_a_negative_square_tells_that_the_kernel_is_not_semidefinite():
    # on the 100 predictions that are tried the kernel is constant
    label, proba = np.repeat([0, 1], 150), np.full(300, 0.5)
    proba[np.setdiff1d(np.arange(300), np.linspace(0, 299, 100).astype(int))] = 0.6

    def kernel(s, t):
        return np.where(np.abs(s[:, :1] - t[:, 0]) > 0.05, 3.0, 1.0)

    label = (proba < 0.55).astype(int)
    with pytest.raises(ValueError, match=r"biased estimates are at least 0; found -"):
        squared_kernel_calibration_error(label, proba, kernel=kernel, estimation="biased")


def test_kernels_in_single_precision_are_taken():
    label, proba = random_problem(np.random.default_rng(0), 200, 3)

    def single(s, t):
        return RBF(0.3)(s, t).astype(np.float32)

    for metric in (squared_kernel_calibration_error, kernel_calibration_error):
        expected = metric(label, proba, kernel=RBF(0.3))
        assert metric(label, proba, kernel=single) == pytest.approx(expected, rel=1e-4)


def test_biased_squares_are_never_negative():
    label, proba = [1, 1, 1, 0, 0, 0, 0, 0, 0, 0], np.full(10, 0.3)
    for kernel in (*KERNELS, RBF(0.3)):
        square = squared_kernel_calibration_error(label, proba, kernel=kernel, estimation="biased")
        assert 0 <= square < 1e-15


@pytest.mark.parametrize("estimation", ["unbiased", "linear", "block"])
@pytest.mark.parametrize("average", ["auto", "macro", None])
def test_without_pairs_in_any_class_there_is_no_top_label_error(estimation, average):
    options = {"multi_class": "top-label", "average": average, "labels": range(3)}
    data = [0, 1, 1], np.eye(3)
    with pytest.raises(ValueError, match=r"needs a class with at least 2 .*none among the 3 .*use"):
        squared_kernel_calibration_error(*data, estimation=estimation, **options)
    with pytest.raises(ValueError, match=r"needs a class with at least 2 .*conditional error"):
        joint_kernel_calibration_error(*data, **options)
    biased = squared_kernel_calibration_error(*data, estimation="biased", **options)
    assert np.isfinite(biased).all()


def test_blocks_tell_the_least_number_of_samples():
    proba = np.repeat(np.eye(3), [5, 3, 2], axis=0)
    label = [0, 1, 0, 0, 0, 1, 1, 0, 2, 1]
    options = {"multi_class": "top-label", "estimation": "block", "labels": range(3)}
    with pytest.warns(UndefinedMetricWarning, match=r"class\(es\) 1, 2: .* at least 4 samples"):
        value = squared_kernel_calibration_error(label, proba, block_size=4, **options)
    each = squared_kernel_calibration_error(label, proba, block_size=4, average=None, **options)
    np.testing.assert_array_equal(np.isnan(each), [False, True, True])
    assert value == each[0]
    with pytest.raises(ValueError, match="needs a class with at least 6 samples"):
        squared_kernel_calibration_error(label, proba, block_size=6, **options)


def test_a_class_predicted_once_is_left_out_of_the_joint_error():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 20, 3)
    proba[:, 2] = 0
    proba /= proba.sum(axis=1, keepdims=True)
    proba[0] = [0, 0, 1]
    with pytest.warns(UndefinedMetricWarning, match=r"leaves out the class\(es\) 2"):
        joint_kernel_calibration_error(label, proba, multi_class="top-label")


@pytest.mark.parametrize(
    ("function", "option"),
    [
        (partial(squared_kernel_calibration_error, estimation="block"), "block_size"),
        (conditional_kernel_calibration_error, "n_components"),
        (expected_calibration_error, "n_bins"),
        (expected_calibration_error, "min_bin_size"),
    ],
)
@pytest.mark.parametrize("value", [True, 1.5, 0])
def test_counts_are_whole_numbers(function, option, value):
    with pytest.raises(
        ValueError, match=rf"'{option}' .*must be an int (in the range|from) .*Got {value}"
    ):
        function([0, 1, 1], [0.2, 0.7, 0.6], **{option: value})


def test_the_largest_values_are_those_documented():
    # one wrong prediction of certainty: the residual is the difference of two classes
    proba, label = np.eye(3)[[0, 0]], [1, 1]
    assert kernel_calibration_error(label, proba, labels=range(3)) == pytest.approx(np.sqrt(2))
    root = np.array([[3.0, 0, 0], [-1, 2, 0], [1, 0, 1]])
    matrix = root @ root.T
    options = {"labels": range(3), "class_kernel": matrix}
    expected = matrix[0, 0] + matrix[1, 1] - 2 * matrix[0, 1]
    for estimation in ("biased", "unbiased", "linear"):
        value = squared_kernel_calibration_error(label, proba, estimation=estimation, **options)
        assert value == pytest.approx(expected)
        assert value > 2


@pytest.mark.parametrize("bandwidth", [5e-324, 1e-310, 1e308])
@pytest.mark.parametrize("kernel", KERNELS)
def test_extreme_bandwidths_are_those_of_ties_or_of_none(kernel, bandwidth):
    # warnings are errors; of the smallest number half is 0
    label, proba = [0, 1, 1, 1, 0], np.array([0.2, 0.2, 0.5, 0.7, 0.7])
    same = np.equal.outer(proba, proba) if bandwidth < 1 else 1
    residual = label - proba
    expected = 2 * residual @ (same * np.ones((5, 5))) @ residual / 25
    actual = squared_kernel_calibration_error(
        label, proba, kernel=kernel, bandwidth=bandwidth, estimation="biased"
    )
    assert actual == pytest.approx(expected)


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 1.7e308])
def test_class_kernels_of_extreme_size_are_refused(scale):
    label, proba = random_problem(np.random.default_rng(0), 20, 3)
    with pytest.raises(ValueError, match="largest entry of class_kernel must lie between"):
        squared_kernel_calibration_error(label, proba, class_kernel=scale * np.eye(3))
    value = squared_kernel_calibration_error(label, proba, class_kernel=1e150 * np.eye(3))
    expected = squared_kernel_calibration_error(label, proba)
    assert value / 1e150 == pytest.approx(expected)
