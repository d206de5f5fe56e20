"""The distribution-free, asymptotic and UCME tests equal their formulas and keep their size."""

from functools import partial

import numpy as np
import pytest
from oracles import kernel_value, skce_by_loops
from problems import random_problem, two_columns
from scipy.stats import chi2, ttest_1samp
from sklearn.gaussian_process.kernels import RBF

from skcalib._inputs.checks import check_predictions
from skcalib._kernels.squared_error import SquaredKernelError
from skcalib._numerics.median_distance import median_distance
from skcalib.datasets import make_dirichlet_family
from skcalib.hypothesis_tests import CalibrationTest, UCMETest, _asymptotic
from skcalib.metrics import (
    expected_calibration_error,
    kernel_calibration_error,
    squared_kernel_calibration_error,
)

LEVELS = (0.01, 0.05, 0.1)


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


# Distribution-free bounds, section 6 of Widmann, Lindsten and Zachariah (2019)


def test_distribution_free_bounds_by_formula():
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    label[:30] = 0  # miscalibrated enough for a bound below 1
    proba[:30] = [0.0, 0.5, 0.5]
    for estimator, block_size in (
        ("biased", None),
        ("unbiased", None),
        ("linear", None),
        ("block", 7),
    ):
        options = {"bandwidth": 0.5, "estimator": estimator}
        if block_size is not None:
            options["metric_params"] = {"block_size": block_size}
        test = CalibrationTest(method="distribution-free", **options).fit(proba, label)
        value = skce_by_loops(
            proba, label, "total-variation", 0.5, estimator, block_size=block_size
        )
        assert test.statistic_ == pytest.approx(value, abs=1e-13)
        bound = 2.0
        if estimator == "biased":
            expected = np.exp(-0.5 * max(0, np.sqrt(60 * value / bound) - 1) ** 2)
        else:
            pairs = 8 * 3 if estimator == "block" else 30  # 8 blocks of 7 hold 3 pairs each
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
    bound = _asymptotic.largest_term(matrix, 4)
    proba = rng.dirichlet(np.full(4, 0.05), size=3000)
    residual = np.eye(4)[rng.integers(0, 4, size=3000)] - proba
    values = np.einsum("nk,kl,nl->n", residual, matrix, residual)
    assert 0.9 * bound < values.max() <= bound + 1e-12
    assert _asymptotic.largest_term(None, 4) == _asymptotic.largest_term(np.eye(4), 4) == 2


# Asymptotic laws


def test_p_value_of_blocks_is_that_of_their_mean():
    label, proba = random_problem(np.random.default_rng(0), 61, 3)
    h = terms(proba, label, 0.5)
    pairs = [h[i, i + 1] for i in range(0, 60, 2)]
    test = CalibrationTest(method="asymptotic", estimator="linear", bandwidth=0.5)
    z = np.mean(pairs) / (np.std(pairs, ddof=1) / np.sqrt(30))
    expected = ttest_1samp(pairs, 0, alternative="greater")
    assert z == pytest.approx(expected.statistic)
    assert test.fit(proba, label).p_value_ == pytest.approx(expected.pvalue, rel=1e-10)
    blocks = []
    for start in range(0, 55, 5):
        block = h[start : start + 5, start : start + 5]
        blocks.append((block.sum() - np.trace(block)) / 20)
    test.set_params(estimator="block", metric_params={"block_size": 5}).fit(proba[:57], label[:57])
    expected = ttest_1samp(blocks, 0, alternative="greater").pvalue
    assert test.p_value_ == pytest.approx(expected, rel=1e-10)


def test_p_value_of_constant_terms():
    # every label is right and certain: all terms are 0
    test = CalibrationTest(method="asymptotic", estimator="linear")
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
    order = np.lexsort((np.full(n, 1 / n), *np.atleast_2d(proba.T)))
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
    monkeypatch.setattr(_asymptotic, "_COUNTS", 50 * 10)
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
    for estimator in ("linear", "block"):
        test = CalibrationTest(method="asymptotic", estimator=estimator)
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

    proba, weight = np.array([0.1, 0.2, 0.4, 0.8]), np.array([1.0, 2.0, 3.0, 4.0])
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
    "biased": ({"estimator": "biased"}, "needs an unbiased estimator"),
    "one block": (
        {"estimator": "block", "metric_params": {"block_size": 30}},
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
    with pytest.raises(ValueError, match="needs a named kernel, which is at most 1"):
        CalibrationTest(kernel=RBF(), method="distribution-free").fit(proba, label)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "rbf"},
        {"bandwidth": 0.1},
        {"metric_params": {"class_kernel": np.eye(3)}},
        {"estimator": "biased"},
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
    test = CalibrationTest(metric_params={"multi_class": "confidence"}, bandwidth=0.3, **fast)
    expected = squared_kernel_calibration_error(
        label, proba, multi_class="confidence", bandwidth=0.3
    )
    assert test.fit(proba, label).statistic_ == expected
    with pytest.raises(ValueError, match="'block_size' parameter"):
        CalibrationTest(estimator="block", metric_params={"block_size": 1}).fit(proba, label)


@pytest.mark.parametrize("method", ["asymptotic", "distribution-free"])
def test_unequal_weights_need_another_method(method):
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    test = CalibrationTest(method=method, n_resamples=9)
    test.fit(proba, label, sample_weight=np.full(40, 3.0))
    with pytest.raises(ValueError, match=r"needs equal weights.*method='conditional'"):
        test.fit(proba, label, sample_weight=np.arange(1.0, 41.0))
    linear = CalibrationTest(method="asymptotic", estimator="linear")
    assert 0 < linear.fit(proba, label, sample_weight=np.arange(1.0, 41.0)).p_value_ <= 1


# UCME


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_ucme_by_loops(n_classes, weighted):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 80, n_classes)
    weight = rng.exponential(size=80) if weighted else np.ones(80)
    matrix = two_columns(proba) if n_classes == 2 else proba
    points, classes = rng.dirichlet(np.ones(n_classes), size=3), rng.integers(n_classes, size=3)
    w = weight / weight.sum()
    mean, covariance = np.zeros(3), np.zeros((3, 3))
    for p, y, share in zip(matrix, label, w, strict=True):
        k = np.array([kernel_value("rbf", t, p, 0.4) for t in points])
        mean += share * k * ((y == classes) - p[classes])
        for a in range(3):
            for b in range(3):  # of the indicators of two classes, of which one occurs
                both = p[classes[a]] if classes[a] == classes[b] else 0.0
                covariance[a, b] += share**2 * k[a] * k[b] * (both - p[classes[a]] * p[classes[b]])
    expected = mean @ np.linalg.solve(covariance, mean)
    test = UCMETest(
        locations=(points, classes), kernel="rbf", bandwidth=0.4, labels=range(n_classes)
    )
    test.fit(proba, label, sample_weight=weight if weighted else None)
    assert test.statistic_ == pytest.approx(expected, rel=1e-9)
    assert test.degrees_of_freedom_ == 3
    assert test.p_value_ == pytest.approx(chi2.sf(expected, 3), rel=1e-9)


def test_ucme_of_impossible_labels():
    label = np.random.default_rng(0).integers(0, 3, size=100)
    for seed in range(5):
        test = UCMETest(random_state=seed).fit(np.eye(3)[(label + 1) % 3], label)
        assert test.statistic_ == np.inf
        assert 0 < test.p_value_ < 1e-300
    p_values = [
        UCMETest(random_state=0, labels=[0, 1]).fit(np.full(n, 0.3), np.zeros(n, int)).p_value_
        for n in (2, 5, 10, 50)
    ]
    assert p_values == sorted(p_values, reverse=True)
    assert 1 > p_values[0] > 0.3 > 1e-4 > p_values[-1] > 0


def test_ucme_leaves_out_directions_without_variation():
    label, proba = random_problem(np.random.default_rng(0), 100, 3)
    point = np.full((2, 3), 1 / 3)
    twice = UCMETest(locations=(point, [1, 1]), labels=range(3)).fit(proba, label)
    once = UCMETest(locations=(point[:1], [1]), labels=range(3)).fit(proba, label)
    assert twice.degrees_of_freedom_ == once.degrees_of_freedom_ == 1
    assert twice.p_value_ == pytest.approx(once.p_value_, rel=1e-9)
    perfect = UCMETest(random_state=0).fit(np.eye(3)[label], label)
    assert (perfect.degrees_of_freedom_, perfect.p_value_) == (0, 1.0)


def test_ucme_locations_are_drawn_from_the_simplex():
    label, proba = random_problem(np.random.default_rng(0), 100, 3)
    test = UCMETest(n_locations=200, random_state=0).fit(proba, np.array(["c", "a", "b"])[label])
    points, classes = test.locations_
    assert points.shape == (200, 3)
    np.testing.assert_allclose(points.sum(axis=1), 1)
    assert set(classes) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("locations", "message"),
    [
        ((np.full((2, 3), 1 / 3),), "must be a pair"),
        ((np.full((2, 2), 1 / 2), [0, 1]), "probability vectors of 3 classes"),
        ((np.full((2, 3), 1 / 2), [0, 1]), "must sum to 1"),
        ((np.full((2, 3), 1 / 3), [0]), "same length"),
        ((np.full((2, 3), 1 / 3), [0, 7]), "must hold only the classes"),
    ],
)
def test_bad_locations_are_refused(locations, message):
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    with pytest.raises(ValueError, match=message):
        UCMETest(locations=locations, labels=range(3)).fit(proba, label)


# Size and power


def dirichlet_problem(rng, n, n_classes, calibrated):
    proba = rng.dirichlet(np.full(n_classes, 0.5), size=n)
    truth = proba if calibrated else np.full_like(proba, 1 / n_classes)
    label = (rng.random((n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)
    return np.minimum(label, n_classes - 1), proba


SIZE_CASES = {
    "asymptotic": CalibrationTest(method="asymptotic", n_resamples=199),
    "linear": CalibrationTest(method="asymptotic", estimator="linear"),
    "block": CalibrationTest(method="asymptotic", estimator="block"),
    "ucme": UCMETest(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZE_CASES)
@pytest.mark.parametrize("n_classes", [2, 5])
def test_size(name, n_classes):
    n, repetitions = 300, 1000
    rng = np.random.default_rng(0)
    p_values = []
    for seed in range(repetitions):
        label, proba = dirichlet_problem(rng, n, n_classes, calibrated=True)
        test = SIZE_CASES[name].set_params(labels=range(n_classes))
        if "random_state" in test.get_params():
            test.set_params(random_state=seed)
        p_values.append(test.fit(proba, label).p_value_)
    for level in LEVELS:
        rate = np.mean(np.array(p_values) <= level)
        assert rate <= level + 4 * np.sqrt(level * (1 - level) / repetitions), level


@pytest.mark.slow
def test_distribution_free_bounds_hardly_ever_reject():
    rng = np.random.default_rng(0)
    for estimator in ("biased", "unbiased", "linear", "block"):
        test = CalibrationTest(method="distribution-free", estimator=estimator, labels=range(5))
        rejected = sum(
            test.fit(*dirichlet_problem(rng, 300, 5, calibrated=True)[::-1]).p_value_ <= 0.1
            for _ in range(200)
        )
        assert rejected == 0


@pytest.mark.slow
def test_models_of_the_paper():
    # Figure 2 of Widmann et al. (2019), n = 250, K = 10, with conditional resampling besides
    tests = {
        "conditional": CalibrationTest(n_resamples=99),
        "asymptotic": CalibrationTest(method="asymptotic", n_resamples=99),
        "linear": CalibrationTest(method="asymptotic", estimator="linear"),
        "distribution-free": CalibrationTest(method="distribution-free"),
        "consistency": CalibrationTest(
            partial(
                expected_calibration_error, multi_class="canonical", n_bins=10, labels=range(10)
            ),
            method="consistency",
            n_resamples=19,
        ),
    }

    def rejections(name, model, n, repetitions, level=0.05):
        p_values = []
        for seed in range(repetitions):
            y_true, y_proba = make_dirichlet_family(n, model=model, random_state=seed)
            test = tests[name].set_params(labels=range(10), random_state=seed)
            p_values.append(test.fit(y_proba, y_true).p_value_)
        return np.mean(np.array(p_values) <= level)

    n, repetitions = 250, 200
    allowed = 0.05 + 4 * np.sqrt(0.05 * 0.95 / repetitions)
    assert rejections("consistency", "M1", n, 50) > 0.95
    for model in ("M1", "M3"):
        assert rejections("distribution-free", model, n, repetitions) == 0
    for name in ("conditional", "asymptotic", "linear"):
        assert rejections(name, "M1", n, repetitions) <= allowed
        assert rejections(name, "M2", n, 50) == 1
    assert rejections("conditional", "M3", n, 50) == rejections("asymptotic", "M3", n, 50) == 1
    # where power is not 1: with fewer samples
    conditional = rejections("conditional", "M3", 25, 400)
    asymptotic = rejections("asymptotic", "M3", 25, 400)
    assert 0.2 < conditional < 0.98
    assert conditional >= asymptotic - 4 * np.sqrt(2 * 0.25 / 400)


@pytest.mark.parametrize("name", SIZE_CASES)
def test_power(name):
    label, proba = dirichlet_problem(np.random.default_rng(0), 1000, 4, calibrated=False)
    test = SIZE_CASES[name].set_params(labels=range(4), random_state=0)
    assert test.fit(proba, label).p_value_ < 0.01


def test_statistic_is_the_metric_for_every_estimator():
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    for method in ("conditional", "consistency", "distribution-free"):
        for estimator in ("unbiased", "biased", "linear", "block"):
            test = CalibrationTest(method=method, estimator=estimator, n_resamples=9)
            expected = partial(squared_kernel_calibration_error, estimator=estimator)(label, proba)
            assert test.fit(proba, label).statistic_ == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("value", [True, 0, 2.5])
def test_number_of_locations_is_a_whole_number(value):
    with pytest.raises(ValueError, match=f"'n_locations' .*must be an int .*Got {value}"):
        UCMETest(n_locations=value).fit([0.2, 0.7, 0.6], [0, 1, 1])


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_distribution_free_bounds_do_not_depend_on_the_scale_of_the_class_kernel(scale):
    label, proba = random_problem(np.random.default_rng(0), 30, 3)
    error = SquaredKernelError(check_predictions(label, proba), class_kernel=scale * np.eye(3))
    bound = _asymptotic.largest_term(scale * np.eye(3), 3)
    for size in (0.01, 0.3):
        scaled = _asymptotic.distribution_free_p_value(size * scale, "unbiased", 30, None, bound)
        expected = _asymptotic.distribution_free_p_value(size, "unbiased", 30, None, 2.0)
        assert scaled == pytest.approx(expected)
    assert np.isfinite(error(label[None])).all()
