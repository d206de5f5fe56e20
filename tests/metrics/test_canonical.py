"""The expected calibration error of all classes at once equals loops over bins of the simplex."""

from functools import partial

import numpy as np
import pytest
from oracles import normalised, uniform_bin
from problems import random_problem

from skcalib.datasets import make_dirichlet_family
from skcalib.metrics import expected_calibration_error, squared_kernel_calibration_error
from skcalib.uncertainty import confidence_interval

canonical_error = partial(expected_calibration_error, multi_class="canonical")


def distance_by_loops(first, second, name):
    differences = [abs(a - b) for a, b in zip(first, second, strict=True)]
    if name == "sqeuclidean":
        return sum(difference**2 for difference in differences)
    return sum(differences) / (2 if name == "total-variation" else 1)


def canonical_error_by_loops(
    label, proba, bins, weight=None, norm="l1", distance="total-variation"
):
    weight = normalised(weight, len(label))
    shares, gaps = [], []
    for cell in set(bins):
        rows = [i for i in range(len(label)) if bins[i] == cell and weight[i] > 0]
        if rows:
            share = sum(weight[i] for i in rows)
            means, frequencies = [], []
            for k in range(proba.shape[1]):
                means.append(sum(weight[i] * proba[i, k] for i in rows) / share)
                frequencies.append(sum(weight[i] for i in rows if label[i] == k) / share)
            shares.append(share)
            gaps.append(distance_by_loops(means, frequencies, distance))
    if norm == "l1":
        return sum(share * gap for share, gap in zip(shares, gaps, strict=True))
    if norm == "l2":
        return np.sqrt(sum(share * gap**2 for share, gap in zip(shares, gaps, strict=True)))
    return max(gaps)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("seed", range(15))
def test_uniform_bins_equal_loops(seed, norm):
    rng = np.random.default_rng(seed)
    n_classes, n_bins = 3 + seed % 4, 1 + seed % 5
    distance = ("total-variation", "sqeuclidean", "cityblock")[seed % 3]
    label, proba = random_problem(rng, 40, n_classes)
    weight = rng.choice([0.0, 1.0, 2.5], size=40) if seed % 2 else None
    bins = [tuple(uniform_bin(p, n_bins) for p in row) for row in proba]
    actual = canonical_error(
        label,
        proba,
        sample_weight=weight,
        labels=range(n_classes),
        n_bins=n_bins,
        norm=norm,
        distance=distance,
    )
    expected = canonical_error_by_loops(label, proba, bins, weight, norm, distance)
    assert actual == pytest.approx(expected, abs=1e-12)


def test_by_hand():
    y_true = [0, 1, 0, 2]
    y_proba = [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.125, 0.125, 0.75], [0.125, 0.125, 0.75]]
    # frequencies (½, ½, 0) against (½, ¼, ¼), and (½, 0, ½) against (⅛, ⅛, ¾)
    first, second = 1 / 4, 3 / 8
    assert canonical_error(y_true, y_proba) == pytest.approx((first + second) / 2)
    assert canonical_error(y_true, y_proba, norm="max") == pytest.approx(second)
    root = np.sqrt((first**2 + second**2) / 2)
    assert canonical_error(y_true, y_proba, norm="l2") == pytest.approx(root)
    weighted = canonical_error(y_true, y_proba, sample_weight=[1, 1, 3, 3])
    assert weighted == pytest.approx((first + 3 * second) / 4)
    # differences 0, ¼, ¼ and ⅜, ⅛, ¼
    squares = canonical_error(y_true, y_proba, distance="sqeuclidean")
    assert squares == pytest.approx((2 / 16 + 14 / 64) / 2)
    sums = canonical_error(y_true, y_proba, distance="cityblock", norm="max")
    assert sums == pytest.approx(2 * second)
    # one bin: (½, ¼, ¼) against the mean (5/16, 3/16, ½)
    assert canonical_error(y_true, y_proba, n_bins=1) == pytest.approx(1 / 4)


def test_median_variance_bins_by_hand():
    # the third class varies most, and its median lies between 0.2 and 0.5
    y_true = [0, 1, 1, 1]
    y_proba = [[0.8, 0.2, 0.0], [0.6, 0.2, 0.2], [0.3, 0.2, 0.5], [0.2, 0.2, 0.6]]
    split = {"strategy": "median-variance", "labels": [0, 1, 2]}
    # (½, ½, 0) against (0.7, 0.2, 0.1), and (0, 1, 0) against (0.25, 0.2, 0.55)
    error = canonical_error(y_true, y_proba, min_bin_size=2, **split)
    assert error == pytest.approx((0.3 + 0.8) / 2)
    squares = canonical_error(y_true, y_proba, min_bin_size=2, distance="sqeuclidean", **split)
    assert squares == pytest.approx((0.04 + 0.09 + 0.01 + 0.0625 + 0.64 + 0.3025) / 2)
    # one bin: (¼, ¾, 0) against (0.475, 0.2, 0.325)
    assert canonical_error(y_true, y_proba, min_bin_size=3, **split) == pytest.approx(0.55)
    assert canonical_error(y_true, y_proba, **split) == pytest.approx(0.55)
    # every sample alone: half the L1 norm of its residual is 1 minus its label's probability
    error = canonical_error(y_true, y_proba, min_bin_size=1, **split)
    assert error == pytest.approx((0.2 + 0.8 + 0.8 + 0.8) / 4)


def test_examples_of_calibration_errors_jl():
    # its test/ece.jl, with 10 bins: predictions that are right, and right on average
    assert canonical_error([1, 0], [[0.0, 1.0], [1.0, 0.0]], n_bins=10) == 0
    right_on_average = [[0.0, 1.0], [0.5, 0.5], [0.5, 0.5], [1.0, 0.0]]
    assert canonical_error([1, 1, 0, 0], right_on_average, n_bins=10) == 0


@pytest.mark.parametrize("strategy", ["uniform", "quantile", "median-variance"])
@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_two_classes_are_the_binary_measure(strategy, norm):
    label, proba = random_problem(np.random.default_rng(0), 60)
    binary = expected_calibration_error(label, proba, strategy=strategy, norm=norm)
    assert canonical_error(label, proba, strategy=strategy, norm=norm) == binary


@pytest.mark.parametrize("strategy", ["uniform", "quantile", "median-variance"])
@pytest.mark.parametrize("multi_class", ["confidence", "top-label", "classwise"])
def test_distances_of_two_classes(strategy, multi_class):
    # of the vectors (1 − p, p): all of them follow from |y − p|
    label, proba = random_problem(np.random.default_rng(0), 60, 2 if strategy == "quantile" else 4)
    options = {"strategy": strategy, "multi_class": multi_class, "n_bins": 5, "average": None}
    mean, root = (expected_calibration_error(label, proba, norm=m, **options) for m in ("l1", "l2"))
    sums, squares = (
        expected_calibration_error(label, proba, distance=one, **options)
        for one in ("cityblock", "sqeuclidean")
    )
    np.testing.assert_allclose(sums, 2 * np.asarray(mean), rtol=1e-12)
    np.testing.assert_allclose(squares, 2 * np.asarray(root) ** 2, rtol=1e-12)


def test_intervals_know_the_largest_value():
    proba = np.tile(np.eye(3), (20, 1))
    label = np.roll(proba, 1, axis=1).argmax(axis=1)
    label[:6] = proba[:6].argmax(axis=1)
    for distance in ("cityblock", "sqeuclidean"):
        params = {"multi_class": "canonical", "distance": distance}
        interval = confidence_interval(
            "expected_calibration_error",
            label,
            proba,
            labels=range(3),
            metric_params=params,
            n_resamples=20,
            random_state=0,
        )
        assert 1 < interval.estimate < interval.high <= 2


@pytest.mark.parametrize("strategy", ["uniform", "median-variance"])
@pytest.mark.parametrize("seed", range(10))
def test_a_third_class_that_never_is_changes_nothing(strategy, seed):
    label, proba = random_problem(np.random.default_rng(seed), 64)
    matrix = np.column_stack([1 - proba, proba, np.zeros(64)])
    options = {"strategy": strategy, "n_bins": 7, "min_bin_size": 4}
    actual = canonical_error(label, matrix, labels=range(3), **options)
    expected = canonical_error(label, proba, **options)
    assert actual == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("strategy", ["uniform", "median-variance"])
def test_order_of_classes_does_not_matter(strategy):
    label, proba = random_problem(np.random.default_rng(0), 200, 5)
    order = np.array([3, 0, 4, 1, 2])
    reference = canonical_error(label, proba, strategy=strategy, n_bins=4)
    permuted = canonical_error(
        label, proba[:, order], labels=order.tolist(), strategy=strategy, n_bins=4
    )
    assert permuted == pytest.approx(reference, abs=1e-12)


def test_finer_bins_see_more():
    # bins of the coarser partition are unions of those of the finer
    for seed in range(10):
        label, proba = random_problem(np.random.default_rng(seed), 100, 4)
        uniform = [canonical_error(label, proba, n_bins=b) for b in (1, 2, 4, 8, 64)]
        split = [
            canonical_error(label, proba, strategy="median-variance", min_bin_size=s)
            for s in (100, 25, 12, 5, 1)
        ]
        for errors in (uniform, split):
            assert (np.diff(errors) > -1e-12).all()
            assert errors[0] < errors[-1]
        alone = 1 - proba[np.arange(100), label].mean()
        assert split[-1] == pytest.approx(alone, abs=1e-12)
        assert uniform[-1] <= alone + 1e-12


@pytest.mark.parametrize("strategy", ["uniform", "quantile", "median-variance"])
def test_binary_problems_keep_all_options(strategy):
    label, proba = random_problem(np.random.default_rng(0), 60)
    options = {"strategy": strategy, "n_bins": 4}
    width = canonical_error(label, proba, add_bin_width=True, **options)
    assert width > canonical_error(label, proba, **options)
    debiased = canonical_error(label, proba, norm="l2", estimation="debiased", **options)
    assert debiased < canonical_error(label, proba, norm="l2", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"strategy": "quantile"},
            "strategy='quantile' needs binary problems, whose predictions have an order",
        ),
        ({"norm": "l2", "estimation": "debiased"}, "estimation='debiased' needs binary problems"),
        ({"add_bin_width": True}, "add_bin_width=True needs binary problems"),
        (
            {"add_bin_width": True, "distance": "cityblock"},
            "add_bin_width=True needs distance='total-variation'.* found distance='cityblock'",
        ),
        (
            {"norm": "l2", "estimation": "debiased", "distance": "sqeuclidean"},
            "estimation='debiased' needs distance='total-variation'",
        ),
        ({"distance": "euclidean"}, "The 'distance' parameter"),
        ({"min_bin_size": 0}, "The 'min_bin_size' parameter"),
        ({"min_bin_size": 2.5}, "The 'min_bin_size' parameter"),
    ],
    ids=str,
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        canonical_error([0, 1, 2], np.eye(3), **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "means"),
    [
        # ECE, and biased and unbiased SKCE
        ("M1", {"ece": 0.44, "biased": 0.0018, "unbiased": 0.0}),
        ("M2", {"ece": 0.66, "biased": 0.0998, "unbiased": 0.0966}),
        ("M3", {"ece": 0.89, "biased": 0.0205, "unbiased": 0.0152}),
    ],
)
def test_means_over_the_data_sets_of_the_paper(model, means):
    # Widmann, Lindsten and Zachariah (2019), Section 7: n = 250, K = 10, ten uniform bins, kernel
    # exp(−TV/ν), ν the median distance; means to as many digits as are known, over 2000 data sets
    random_state = np.random.RandomState(0)
    values = {name: [] for name in means}
    for _ in range(2000):
        y, proba = make_dirichlet_family(model=model, random_state=random_state)
        values["ece"].append(canonical_error(y, proba, labels=range(10), n_bins=10))
        for estimation in ("biased", "unbiased"):
            error = squared_kernel_calibration_error(
                y, proba, labels=range(10), estimation=estimation
            )
            values[estimation].append(error)
    for name, mean in means.items():
        half_a_digit = 0.005 if name == "ece" else 0.00005
        four_deviations = 4 * np.std(values[name]) / np.sqrt(2000)
        assert np.mean(values[name]) == pytest.approx(mean, abs=half_a_digit + four_deviations), (
            name
        )
