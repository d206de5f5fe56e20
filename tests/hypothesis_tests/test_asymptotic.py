"""The distribution-free bounds and the asymptotic laws equal their formulas."""

import pickle

import numpy as np
import pytest
from oracles import kernel_value, skce_by_loops
from problems import random_problem, two_columns
from scipy.stats import ttest_1samp
from sklearn.gaussian_process.kernels import RBF

from skcalib._numerics.median_distance import median_distance
from skcalib._statistics.squared_error import largest_term
from skcalib.hypothesis_tests import CalibrationTest, _asymptotic
from skcalib.metrics import kernel_calibration_error, squared_kernel_calibration_error


def terms(proba, label, bandwidth, kernel="total-variation", class_kernel=None):
    """h_ij by loops, (n, n)."""
    n, n_classes = proba.shape
    class_kernel = np.eye(n_classes) if class_kernel is None else class_kernel
    residual = np.eye(n_classes)[label] - proba
    return np.array(
        [
            [
                kernel_value(kernel, proba[i], proba[j], bandwidth)
                * (residual[i] @ class_kernel @ residual[j])
                for j in range(n)
            ]
            for i in range(n)
        ]
    )


def test_distribution_free_bounds_by_formula():
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    label[:30] = 0  # miscalibrated enough for a bound below 1
    proba[:30] = [0.0, 0.5, 0.5]
    for estimation, block_size in (
        ("biased", None),
        ("unbiased", None),
        ("linear", None),
        ("block", 7),
    ):
        options = {"bandwidth": 0.5, "estimation": estimation}
        if block_size is not None:
            options["metric_params"] = {"block_size": block_size}
        test = CalibrationTest(method="distribution-free", **options).fit(proba, label)
        value = skce_by_loops(
            proba, label, "total-variation", 0.5, estimation, block_size=block_size
        )
        assert test.statistic_ == pytest.approx(value, abs=1e-13)
        bound = 2.0
        if estimation == "biased":
            expected = np.exp(-0.5 * max(0, np.sqrt(60 * value / bound) - 1) ** 2)
        else:
            pairs = 8 * 3 if estimation == "block" else 30  # 8 blocks of 7 hold 3 pairs each
            expected = np.exp(-pairs * value**2 / (2 * bound**2))
        assert 0 < expected < 1
        assert test.p_value_ == pytest.approx(expected, rel=1e-10)
        assert not hasattr(test, "null_distribution_")


def test_a_negative_unbiased_estimate_has_the_distribution_free_p_value_one():
    # both wrong, far apart: −2 e^{−1}
    test = CalibrationTest(method="distribution-free", bandwidth=1.0).fit([0.0, 1.0], [1, 0])
    assert test.statistic_ == pytest.approx(-2 * np.exp(-1))
    assert test.p_value_ == 1


def test_bound_of_the_terms_with_a_class_kernel():
    # the largest rᵀ M r' over residuals is found among differences of corners
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    matrix = root @ root.T
    bound = largest_term(matrix, 4)
    proba = rng.dirichlet(np.full(4, 0.05), size=3000)
    residual = np.eye(4)[rng.integers(0, 4, size=3000)] - proba
    values = np.einsum("nk,kl,nl->n", residual, matrix, residual)
    assert 0.9 * bound < values.max() <= bound + 1e-12
    assert largest_term(None, 4) == largest_term(np.eye(4), 4) == 2


def test_p_value_of_blocks_is_that_of_their_mean():
    label, proba = random_problem(np.random.default_rng(0), 61, 3)
    h = terms(proba, label, 0.5)
    pairs = [h[i, i + 1] for i in range(0, 60, 2)]
    test = CalibrationTest(method="asymptotic", estimation="linear", bandwidth=0.5)
    z = np.mean(pairs) / (np.std(pairs, ddof=1) / np.sqrt(30))
    expected = ttest_1samp(pairs, 0, alternative="greater")
    assert z == pytest.approx(expected.statistic)
    assert test.fit(proba, label).p_value_ == pytest.approx(expected.pvalue, rel=1e-10)
    blocks = []
    for start in range(0, 55, 5):
        block = h[start : start + 5, start : start + 5]
        blocks.append((block.sum() - np.trace(block)) / 20)
    test.set_params(estimation="block", metric_params={"block_size": 5}).fit(proba[:57], label[:57])
    expected = ttest_1samp(blocks, 0, alternative="greater").pvalue
    assert test.p_value_ == pytest.approx(expected, rel=1e-10)


def test_p_value_of_constant_terms():
    # every label is right and certain: all terms are 0
    test = CalibrationTest(method="asymptotic", estimation="linear")
    assert test.fit([0.0, 1.0, 0.0, 1.0], [0, 1, 0, 1]).p_value_ == 1
    # certain and wrong: all terms are 2, in two pairs
    assert test.fit([1.0, 1.0, 1.0, 1.0], [0, 0, 0, 0]).p_value_ == 0.25


@pytest.mark.parametrize("n_classes", [2, 3])
def test_bootstrap_equals_its_formula(n_classes):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 20, n_classes)
    matrix = two_columns(proba) if n_classes == 2 else proba
    test = CalibrationTest(method="asymptotic", bandwidth=0.5, n_resamples=7, random_state=0)
    test.fit(proba, label)
    h, n = terms(matrix, label, 0.5), 20
    scale = n / (n - 1)
    order = np.argsort(proba if n_classes == 2 else proba.max(axis=1))
    counts = np.random.RandomState(0).multinomial(n, np.full(n, 1 / n), size=7)
    for value, count in zip(test.null_distribution_, counts, strict=True):
        c = np.empty(n)
        c[order] = count
        total = 0.0
        for i in range(n):
            for j in range(n):
                total += c[i] * (scale * (c[j] - (i == j)) - 2) * h[i, j]
        expected = (total / n**2 + h.mean()) / scale
        assert value == pytest.approx(expected, abs=1e-13)
    unbiased = skce_by_loops(matrix, label, "total-variation", 0.5, "unbiased")
    assert test.statistic_ == pytest.approx(unbiased, abs=1e-13)
    # the comparison of the literature: T' against n/(n − 1)·unbiased − biased
    exceeding = np.sum(scale * test.null_distribution_ - h.mean() >= scale * unbiased - h.mean())
    assert test.p_value_ == (1 + exceeding) / 8


def test_bootstrap_in_batches(monkeypatch):
    label, proba = random_problem(np.random.default_rng(0), 50, 3)
    test = CalibrationTest(method="asymptotic", n_resamples=101, random_state=0)
    whole = test.fit(proba, label).null_distribution_.copy()
    monkeypatch.setattr(_asymptotic, "_MAX_BOOTSTRAP_ENTRIES", 50 * 10)
    np.testing.assert_allclose(test.fit(proba, label).null_distribution_, whole, atol=1e-15)


def test_asymptotic_test_does_not_depend_on_the_order_of_samples():
    label, proba = random_problem(np.random.default_rng(0), 50, 3)
    order = np.random.default_rng(1).permutation(50)
    test = CalibrationTest(method="asymptotic", n_resamples=99, random_state=0)
    expected = test.fit(proba, label).null_distribution_.copy()
    test.fit(proba[order], label[order])
    np.testing.assert_allclose(test.null_distribution_, expected, atol=1e-14)


def test_linear_and_block_depend_on_the_order_of_samples():
    label, proba = random_problem(np.random.default_rng(0), 50, 3)
    order = np.random.default_rng(1).permutation(50)
    for estimation in ("linear", "block"):
        test = CalibrationTest(method="asymptotic", estimation=estimation)
        p_value = test.fit(proba, label).p_value_
        assert p_value != test.fit(proba[order], label[order]).p_value_


def test_consistency_resampling_of_any_statistic():
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    for statistic in ("skce", "expected_calibration_error", lambda y, p: float(p[y == 0].sum())):
        test = CalibrationTest(statistic, method="consistency", n_resamples=20, random_state=0)
        test.fit(proba, label)
        assert test.null_distribution_.shape == (20,)
        assert len(set(test.null_distribution_)) > 5
        again = CalibrationTest(
            statistic, method="consistency", n_resamples=20, random_state=0
        ).fit(proba, label)
        np.testing.assert_array_equal(test.null_distribution_, again.null_distribution_)


def test_consistency_resampling_redraws_the_predictions():
    seen = []

    def statistic(y_true, y_proba, sample_weight):
        seen.append((y_proba.copy(), sample_weight.copy()))
        return 0.0

    proba, weight = np.array([0.1, 0.2, 0.4, 0.8]), np.array([0.5, 1.0, 1.5, 2.0])
    test = CalibrationTest(statistic, method="consistency", n_resamples=30, random_state=0)
    test.fit(proba, [0, 1, 0, 1], sample_weight=weight)
    drawn = {tuple(np.sort(p)) for p, _ in seen}
    assert len(drawn) > 10
    for p, w in seen:
        expected = weight[np.searchsorted(proba, p)]
        np.testing.assert_allclose(w, expected / expected.sum(), atol=1e-15)


def test_bandwidth_is_fixed_while_predictions_are_redrawn():
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    median = CalibrationTest(method="consistency", n_resamples=9, random_state=0)
    fixed = CalibrationTest(
        method="consistency",
        n_resamples=9,
        random_state=0,
        bandwidth=0.5 * median_distance(proba, np.ones(40), "cityblock"),
    )
    np.testing.assert_array_equal(
        median.fit(proba, label).null_distribution_, fixed.fit(proba, label).null_distribution_
    )


BAD_METHODS = {
    "any statistic": ({"statistic": "smooth_calibration_error"}, "needs statistic='skce'"),
    "callable": ({"statistic": lambda y, p: 0.0}, "needs statistic='skce'"),
    "biased": ({"estimation": "biased"}, "needs an unbiased estimate"),
    "one block": (
        {"estimation": "block", "metric_params": {"block_size": 30}},
        "at least two blocks",
    ),
}


@pytest.mark.parametrize(("options", "message"), BAD_METHODS.values(), ids=BAD_METHODS)
def test_what_the_asymptotic_method_refuses(options, message):
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    with pytest.raises(ValueError, match=message):
        CalibrationTest(**options, method="asymptotic").fit(proba, label)


def test_what_the_distribution_free_method_refuses():
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    with pytest.raises(ValueError, match="needs statistic='skce'"):
        CalibrationTest("expected_calibration_error", method="distribution-free").fit(proba, label)


def matrices(s, t):
    """k(s, t) diag(1, 2, 3) with the Gaussian kernel."""
    return RBF(0.5)(s, t)[:, :, None, None] * np.diag([1.0, 2.0, 3.0])


@pytest.mark.parametrize("estimation", ["unbiased", "biased", "linear"])
@pytest.mark.parametrize(
    ("kernel", "bound"),
    [
        (RBF(0.5), 2.0),
        (lambda s, t: 3 * RBF(0.5)(s, t), 6.0),
        (lambda s, t: s @ t.T, None),
        (matrices, 5.0),  # of (0, 1, −1), where 2 + 3 is largest
        (lambda s, t: np.zeros((len(s), len(t))), 1.0),
    ],
    ids=["stationary", "scaled", "linear", "matrices", "zero"],
)
def test_the_bound_of_a_kernel_of_the_users(kernel, bound, estimation):
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    label[:30] = 0
    proba[:30] = [0.0, 0.5, 0.5]
    bound = bound or 2 * np.max(np.sum(proba**2, axis=1))
    test = CalibrationTest(kernel=kernel, estimation=estimation, method="distribution-free")
    test.fit(proba, label)
    value = max(test.statistic_, 0)
    expected = np.exp(-30 * value**2 / (2 * bound**2))
    if estimation == "biased":
        expected = np.exp(-0.5 * max(0, np.sqrt(60 * value / bound) - 1) ** 2)
    assert test.p_value_ == pytest.approx(expected, rel=1e-10)
    # no term is larger
    residuals = np.eye(3)[label] - proba
    gram = kernel(proba, proba)
    gram = gram if gram.ndim == 4 else gram[:, :, None, None] * np.eye(3)
    assert np.abs(np.einsum("ia,ijab,jb->ij", residuals, gram, residuals)).max() <= bound


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "rbf"},
        {"bandwidth": 0.1},
        {"metric_params": {"class_kernel": np.eye(3)}},
        {"estimation": "biased"},
    ],
    ids=str,
)
def test_options_reach_the_statistic_which_refuses_what_it_does_not_know(options):
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    name = next(iter(options.get("metric_params", options)))
    with pytest.raises(TypeError, match=f"metric_params must be arguments.*'{name}'"):
        CalibrationTest("smooth_calibration_error", **options).fit(proba, label)


def test_options_reach_every_statistic_that_takes_them():
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    fast = {"n_resamples": 5, "random_state": 0}
    test = CalibrationTest("kernel_calibration_error", kernel="rbf", bandwidth=0.3, **fast)
    expected = kernel_calibration_error(label, proba, kernel="rbf", bandwidth=0.3)
    assert test.fit(proba, label).statistic_ == expected
    test = CalibrationTest(
        "skce", metric_params={"multi_class": "confidence"}, bandwidth=0.3, **fast
    )
    expected = squared_kernel_calibration_error(
        label, proba, multi_class="confidence", bandwidth=0.3
    )
    assert test.fit(proba, label).statistic_ == expected
    with pytest.raises(ValueError, match="'block_size' parameter"):
        CalibrationTest("skce", estimation="block", metric_params={"block_size": 1}).fit(
            proba, label
        )


@pytest.mark.parametrize("method", ["asymptotic", "distribution-free"])
def test_unequal_weights_need_another_method(method):
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    test = CalibrationTest(method=method, n_resamples=9)
    test.fit(proba, label, sample_weight=np.full(40, 3.0))
    with pytest.raises(ValueError, match=r"needs equal weights.*method='conditional'"):
        test.fit(proba, label, sample_weight=np.arange(1.0, 41.0) / 2)
    linear = CalibrationTest(method="asymptotic", estimation="linear")
    assert 0 < linear.fit(proba, label, sample_weight=np.arange(1.0, 41.0) / 2).p_value_ <= 1


def test_laws_are_those_of_the_options_that_count():
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    with pytest.raises(ValueError, match="needs an unbiased estimate; found estimation='biased'"):
        CalibrationTest(method="asymptotic", estimation="biased").fit(proba, label)


def test_statistics_survive_pickling():
    # equal strings need not be the same object
    label, proba = random_problem(np.random.default_rng(0), 40)
    test = CalibrationTest("skce", n_resamples=9, random_state=0)
    copy = pickle.loads(pickle.dumps(test)).set_params(kernel="".join(["total-", "variation"]))
    assert copy.fit(proba, label).p_value_ == test.fit(proba, label).p_value_


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"groups": np.repeat(range(10), 3)},
        {"estimation": "biased"},
        {"method": "asymptotic"},
        {"method": "asymptotic", "estimation": "linear"},
    ],
    ids=str,
)
def test_a_matrix_valued_kernel_is_tested_like_the_class_kernel_that_it_equals(options):
    label, proba = random_problem(np.random.default_rng(0), 30, 3)
    root = np.random.default_rng(1).normal(size=(3, 3))
    matrix = root @ root.T
    groups = options.get("groups")
    options = {key: value for key, value in options.items() if key != "groups"}

    def of_matrices(s, t):
        return RBF(0.3)(s, t)[:, :, None, None] * matrix

    pair = []
    for kernel, params in ((of_matrices, None), (RBF(0.3), {"class_kernel": matrix})):
        test = CalibrationTest(
            "skce", kernel=kernel, metric_params=params, n_resamples=19, random_state=0, **options
        )
        pair.append(test.fit(proba, label, groups=groups))
    assert pair[0].statistic_ == pytest.approx(pair[1].statistic_, abs=1e-12)
    assert pair[0].p_value_ == pytest.approx(pair[1].p_value_, rel=1e-10)
    for name in {"null_distribution_"} & set(vars(pair[1])):
        np.testing.assert_allclose(getattr(pair[0], name), getattr(pair[1], name), atol=1e-12)
