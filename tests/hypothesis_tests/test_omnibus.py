"""The omnibus test, its components, and the test of groups."""

import itertools
from dataclasses import replace
from functools import partial

import joblib
import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import binom, chi2, norm
from sklearn.base import clone

from skcalib._data import check_predictions
from skcalib._inputs.drawing import draw_labels
from skcalib._statistics.omnibus import PooledKernelError, compute_p_values, omnibus
from skcalib._statistics.residuals import ClasswiseScoreTest, MultiResolutionGaps, ScoreExcess
from skcalib._statistics.squared_error import SquaredKernelError
from skcalib.forecasts import GaussianForecast
from skcalib.hypothesis_tests import (
    CalibrationTest,
    SubgroupCalibrationTest,
    find_miscalibrated_subgroups,
)
from skcalib.hypothesis_tests._base import compute_null_values, select_largest_p_value
from skcalib.streaming import CalibrationState


def problem(rng, n, n_classes, *, weighted=False, levels=None):
    proba = rng.dirichlet(np.ones(n_classes), size=n)
    if levels:
        proba = (proba * levels).round() + 0.5
        proba /= proba.sum(axis=1, keepdims=True)
    label = draw_labels(proba, 1, rng)[0]
    label[:n_classes] = np.arange(n_classes)
    weight = rng.random(n) if weighted else None
    return check_predictions(label, proba, sample_weight=weight)


def residual_vectors(data, labels):
    """w_i (e_y − p_i) for one vector of labels, (n, K)."""
    matrix = data.matrix
    return data.weight[:, None] * ((labels[:, None] == np.arange(matrix.shape[1])) - matrix)


def level_and_spread_by_loops(data, residual):
    matrix, weight = data.matrix, data.weight
    values = []
    for k in range(matrix.shape[1]):
        p, r = matrix[:, k], residual[:, k]
        x = np.log(p / (1 - p))
        v = weight**2 * p * (1 - p)
        x = x - np.sum(v * x) / v.sum()
        shrinkage = 1 + np.sum(weight**2) / len(weight) / v.sum()
        values.append((r.sum() ** 2 / v.sum() + (r @ x) ** 2 / (v @ x**2)) / shrinkage)
    return max(values)


def local_gaps_by_loops(data, residual):
    matrix, weight = data.matrix, data.weight
    top = np.ones(len(matrix), int) if data.is_binary else matrix.argmax(axis=1)
    rows = np.arange(len(matrix))
    confidence, gap = matrix[rows, top], residual[rows, top]
    finest = 2 ** round(np.log2(1 / np.sum(weight**2)) / 2)
    below = np.array([weight[confidence < c].sum() for c in confidence])
    values = []
    n_groups = finest
    while n_groups >= 1:
        group = np.floor(finest * below + 1e-9).astype(int) // (finest // n_groups)
        one = np.sum(weight**2) / len(weight)

        def square_of(first, last, group=group, one=one):
            rows_in = (group >= first) & (group <= last)
            c = confidence[rows_in]
            variance = np.sum(weight[rows_in] ** 2 * c * (1 - c))
            return gap[rows_in].sum() ** 2 / (variance + one)

        squares = [square_of(j, j) for j in range(n_groups)]
        occupied = len(np.unique(group))
        values.append(-chi2.logsf(sum(squares), occupied))
        squares += [square_of(j, j + 1) for j in range(n_groups - 1)]  # neighbours merged
        squares += [square_of(j, j + 2) for j in range(n_groups - 2)]
        values.append(-chi2.logsf(max(squares), 1) - np.log(occupied))
        n_groups //= 2
    return max(values)


TWINS = [
    (ClasswiseScoreTest, level_and_spread_by_loops),
    (MultiResolutionGaps, local_gaps_by_loops),
]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("levels", [None, 3])
@pytest.mark.parametrize("certain", [0.9, 0.0])  # the sums of surprises alone
@pytest.mark.parametrize(("component", "twin"), TWINS)
def test_components_equal_loops(component, twin, n_classes, weighted, levels, certain, monkeypatch):
    monkeypatch.setattr("skcalib._statistics.residuals._MOSTLY_CERTAIN", certain)
    rng = np.random.default_rng(n_classes)
    data = problem(rng, 50, n_classes, weighted=weighted, levels=levels)
    statistic = component(data)
    labels = draw_labels(data.proba, 4, rng)
    expected = [twin(data, residual_vectors(data, row)) for row in labels]
    for few in (4, 1):  # fewer draws than classes are summed in another way
        np.testing.assert_allclose(statistic(labels[:few]), expected[:few], rtol=1e-10)
    signs = rng.choice([-1.0, 1.0], size=(3, 50))
    residual = residual_vectors(data, data.label)
    expected = [twin(data, residual * row[:, None]) for row in signs]
    np.testing.assert_allclose(statistic.flip_signs(signs), expected, rtol=1e-10)


def test_local_gaps_tell_the_hopeless_apart():
    # their chi-squared tails are 0 in double precision
    data = check_predictions(np.zeros(4000, int), np.linspace(0.8, 0.9, 4000), labels=[0, 1])
    labels = np.zeros((2, 4000), np.int32)
    labels[1, ::2] = 1
    worst, bad = MultiResolutionGaps(data)(labels)
    assert np.inf > worst > bad > 700


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("score", ["log_loss", "brier_score_loss"])
def test_score_minus_its_expectation(n_classes, score):
    data = problem(np.random.default_rng(0), 30, n_classes, weighted=True)
    scale = 0.5 if n_classes == 2 else 1.0

    def loss(row, label):
        if score == "log_loss":
            return -np.log(row[label])
        return scale * np.sum((np.eye(n_classes)[label] - row) ** 2)

    expected = sum(
        weight * (loss(row, label) - sum(p * loss(row, k) for k, p in enumerate(row)))
        for row, label, weight in zip(data.matrix, data.label, data.weight, strict=True)
    )
    test = CalibrationTest(score, n_resamples=9, labels=range(n_classes))
    test.fit(data.proba, data.label, sample_weight=data.weight)
    assert test.statistic_ == pytest.approx(expected, abs=1e-14)
    # the draws are centred: exactly so over all label vectors, here of four samples
    few = data.take(slice(4))
    labels = np.array(list(itertools.product(range(n_classes), repeat=4)))
    chance = np.prod(few.matrix[np.arange(4), labels], axis=1)
    values = ScoreExcess(few, score)(labels.astype(np.int32))
    assert chance @ values == pytest.approx(0.0, abs=1e-14)


def test_scores_have_a_direction():
    rng = np.random.default_rng(0)
    proba = rng.random(400)
    truth = 1 / (1 + np.exp(-0.5 * np.log(proba / (1 - proba))))
    label = rng.random(400) < truth  # the predictions are overconfident
    for score in ("log_loss", "brier_score_loss"):
        p_values = {
            alternative: CalibrationTest(score, alternative=alternative, random_state=0)
            .fit(proba, label)
            .p_value_
            for alternative in ("greater", "less", "two-sided")
        }
        assert p_values == {"greater": 0.001, "less": 1.0, "two-sided": 0.002}


@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_impossible_label_is_the_strongest_evidence(n_classes):
    rng = np.random.default_rng(0)
    data = problem(rng, 1000, n_classes)
    proba = data.matrix.copy()
    proba[0] = 0.0
    proba[0, 1] = 1.0
    label = data.label.copy()
    label[0] = 0
    test = CalibrationTest(n_resamples=99, random_state=0).fit(proba, label)
    assert test.component_statistics_["log_loss"] == np.inf
    assert test.component_p_values_["log_loss"] == 0.02  # two-sided
    assert test.statistic_ == np.inf
    assert test.p_value_ == 0.01


def test_pooled_kernel_error_is_the_exact_one_of_pooled_predictions():
    rng = np.random.default_rng(0)
    data = problem(rng, 300, 2, weighted=True, levels=20)  # fewer distinct ones than cells
    for kernel, bandwidth in (("total-variation", 0.2), ("intersection", "median")):
        pooled = PooledKernelError(data, kernel=kernel, bandwidth=bandwidth)
        exact = SquaredKernelError(data, kernel=kernel, bandwidth=bandwidth, estimation="biased")
        labels = draw_labels(data.proba, 5, rng)
        np.testing.assert_allclose(pooled(labels), exact(labels), rtol=1e-12)
        signs = rng.choice([-1.0, 1.0], size=(3, 300))
        np.testing.assert_allclose(pooled.flip_signs(signs), exact.flip_signs(signs), rtol=1e-12)


def test_the_intersection_kernel_is_exact_for_more_classes_and_fast_for_two():
    rng = np.random.default_rng(0)
    options = {"kernel": "intersection", "n_resamples": 10**9}
    assert omnibus(problem(rng, 60, 3), **options).kernel_method == "exact"
    assert omnibus(problem(rng, 60, 3), n_resamples=10**9).kernel_method == "fourier"
    assert omnibus(problem(rng, 5000, 2), **options).kernel_method == "pooled"


@pytest.mark.parametrize("statistic", ["auto", "skce", "kernel_calibration_error"])
@pytest.mark.parametrize("kernel", ["intersection", np.inner])
def test_a_bandwidth_without_effect_is_refused(statistic, kernel):
    test = CalibrationTest(statistic, kernel=kernel, bandwidth=0.3, n_resamples=9)
    with pytest.raises(ValueError, match=r"bandwidth must be left out for kernel=.*found 0\.3"):
        test.fit([[0.2, 0.8], [0.6, 0.4]], [0, 1])


def test_pooling_of_many_samples_hardly_changes_the_kernel_component():
    rng = np.random.default_rng(0)
    data = problem(rng, 6000, 2)
    test = omnibus(data)
    assert isinstance(test.components["skce"], PooledKernelError)
    exact = SquaredKernelError(data, estimation="biased")
    labels = draw_labels(data.proba, 200, rng)
    pooled, error = test.components["skce"](labels), exact(labels)
    np.testing.assert_allclose(pooled, error, rtol=4e-3)


def test_omnibus_is_the_share_of_draws_with_as_small_p_values():
    rng = np.random.default_rng(0)
    data = problem(rng, 200, 3)
    test = CalibrationTest(n_resamples=49, random_state=0).fit(data.proba, data.label)
    names = list(test.component_p_values_)
    assert names == ["skce", "log_loss", "level_and_spread", "local"]
    ranks, distances = [], []
    for name in names:
        values = np.append(
            test.component_statistics_[name], test.component_null_distributions_[name]
        )
        above = np.mean(values[:, None] <= values, axis=1)
        below = np.mean(values[:, None] >= values, axis=1)
        ranks.append(np.minimum(1, 2 * np.minimum(above, below)) if name == "log_loss" else above)
        top, second = np.sort(values)[[-1, -2]]
        distance = np.where(values == top, (top - second) / values.std(), 0.0)
        if name == "log_loss":
            bottom, next_to_it = np.sort(values)[:2]
            distance[values == bottom] = (next_to_it - bottom) / values.std()
        distances.append(distance)
    p_values = np.array(ranks)
    assert list(test.component_p_values_.values()) == pytest.approx(p_values[:, 0])
    weights = np.array([[1], [2], [2], [2]]) / 7  # half as much for the kernel error
    together = np.sum(weights * (1 + np.array(distances)) / p_values, axis=0)
    assert test.statistic_ == pytest.approx(together[0])
    assert test.p_value_ == pytest.approx(np.mean(together >= together[0]))
    smallest = p_values.min(axis=0)
    expected = [np.mean(smallest <= one) for one in p_values[:, 0]]
    assert list(test.adjusted_p_values_.values()) == pytest.approx(expected)
    kernel = CalibrationTest("skce", n_resamples=49, random_state=0).fit(data.proba, data.label)
    np.testing.assert_allclose(
        test.component_null_distributions_["skce"], kernel.null_distribution_, atol=1e-15
    )
    score = CalibrationTest("log_loss", n_resamples=49, random_state=0).fit(data.proba, data.label)
    assert score.p_value_ == test.component_p_values_["log_loss"]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": "rbf", "estimation": "biased"},
        {"estimation": "block", "metric_params": {"block_size": 7}},
        {"metric_params": {"class_kernel": np.diag([3.0, 2.0, 1.0, 1.0])}},
        {"metric_params": {"method": "fourier", "n_components": 5}},
    ],
    ids=str,
)
def test_several_bandwidths_are_tests_of_one_each(options, n_classes):
    # the same draws, and the combination by loops
    if n_classes == 2 and "class_kernel" in options.get("metric_params", {}):
        options = {"metric_params": {"class_kernel": np.diag([3.0, 2.0])}}
    rng = np.random.default_rng(0)
    data = problem(rng, 60, n_classes, weighted=True)
    matrix, weight = data.matrix, data.weight
    metric = "cityblock" if options.get("kernel") != "rbf" else "euclidean"
    scale = 0.5 if metric == "cityblock" else 1.0
    pairs = np.outer(weight, weight)[np.triu_indices(60, 1)]
    median = scale * weighted_median(pdist(matrix, metric), pairs)
    options = options | {"n_resamples": 49, "random_state": 0, "labels": range(n_classes)}
    fit = partial(_fitted, data=data, options=options)
    test, columns = fit("multiple"), []
    for name, bandwidth in (("median", 1.0), ("median/4", 0.25), ("median/16", 0.0625)):
        one = fit(bandwidth * median)
        np.testing.assert_allclose(
            test.component_null_distributions_[name], one.null_distribution_, rtol=1e-6, atol=1e-12
        )
        assert test.component_p_values_[name] == one.p_value_
        columns.append(np.append(one.statistic_, one.null_distribution_))
    evidence = []
    for row in range(50):
        reciprocals = []
        for values in columns:
            others = np.delete(values, row)
            p_value = (1 + np.sum(others >= values[row])) / 50
            beyond = max(values[row] - others.max(), 0.0) / np.std(values)
            reciprocals.append((1 + beyond) / p_value)
        evidence.append(np.mean(reciprocals))
    assert test.statistic_ == pytest.approx(evidence[0])
    assert test.p_value_ == np.mean(np.array(evidence) >= evidence[0] * (1 - 1e-9))


def weighted_median(values, weight):
    order = np.argsort(values)
    share = np.cumsum(weight[order]) / weight.sum()
    return values[order][np.argmax(share >= 0.5)]


def _fitted(bandwidth, *, data, options):
    test = CalibrationTest("skce", bandwidth=bandwidth, **options)
    return test.fit(data.proba, data.label, sample_weight=data.weight)


def test_narrow_kernels_find_waves():
    rng = np.random.default_rng(1)
    proba = rng.random(1000)
    label = rng.random(1000) < proba + proba * (1 - proba) * np.sin(40 * proba)
    several = CalibrationTest("skce", bandwidth="multiple", random_state=0).fit(proba, label)
    assert several.p_value_ == 0.001
    assert several.adjusted_p_values_["median/16"] < 0.01
    assert CalibrationTest("skce", random_state=0).fit(proba, label).p_value_ > 0.1


def test_several_bandwidths_of_a_state_and_of_groups():
    rng = np.random.default_rng(0)
    proba = np.round(rng.random(200), 2)
    label = (rng.random(200) < proba).astype(int)
    test = CalibrationTest("skce", bandwidth="multiple", n_resamples=99, random_state=0)
    test.fit(proba, label)
    state = CalibrationState().update(label, proba)
    counted = clone(test).fit(state)
    assert counted.component_statistics_ == pytest.approx(test.component_statistics_, abs=1e-12)
    grouped = clone(test).fit(proba, label, groups=np.arange(200) // 2)
    assert grouped.component_statistics_ == pytest.approx(test.component_statistics_, abs=1e-12)
    assert grouped.p_value_ > 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"kernel": lambda s, t: s @ t.T},
            "bandwidth must be left out for kernel=<fun.*found 'mul",
        ),
        ({"metric_params": {"multi_class": "classwise"}}, "found multi_class='classwise'"),
        ({"statistic": "smooth_calibration_error"}, "is for statistic='skce' .*'smooth_cal"),
        ({"statistic": "omnibus"}, "is for statistic='skce' .*'omnibus'"),
        ({"statistic": "auto"}, "is for statistic='skce' .*'omnibus'.* Use statistic='skce'"),
        ({"method": "asymptotic"}, "found .* bandwidth='multiple'"),
        ({"metric_params": {"n_bins": 3}}, "metric_params must be arguments"),
    ],
)
def test_where_several_bandwidths_are_refused(options, message):
    rng = np.random.default_rng(0)
    data = problem(rng, 30, 3)
    with pytest.raises((ValueError, TypeError), match=message):
        CalibrationTest(**{"statistic": "skce", "bandwidth": "multiple"} | options).fit(
            data.proba, data.label
        )
    with pytest.raises(ValueError, match=r"of probabilities of classes; found .* of forecasts"):
        CalibrationTest("skce", bandwidth="multiple").fit(
            GaussianForecast([0.0, 1], [1.0, 1]), [0.0, 1]
        )


def test_p_values_are_exactly_uniform_under_exchangeability():
    # every one of the B + 1 vectors in turn as the data
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 4))
    test = omnibus(problem(rng, 10, 3))
    p_values, adjusted = [], []
    for k in range(20):
        order = np.roll(np.arange(20), -k)
        together, found = test.combine_components(values[order][:1], values[order])
        p_values.append(np.mean(together >= together[0]))
        adjusted.append(min(found["adjusted_p_values_"].values()))
    for level in (0.05, 0.1, 0.5):
        assert np.mean(np.array(p_values) <= level) <= level
        assert np.mean(np.array(adjusted) <= level) <= level
    assert sorted(p_values) == pytest.approx(np.arange(1, 21) / 20)


@pytest.mark.parametrize(
    ("change", "component"),
    [("sure", "log_loss"), ("shift", "level_and_spread"), ("wave", "local")],
)
def test_components_find_what_they_are_for(change, component):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(2000, 4))
    proba = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    truth = z / 1.6 if change == "sure" else z + np.array([0.5, 0, 0, 0])
    truth = np.exp(truth) / np.exp(truth).sum(axis=1, keepdims=True)
    if change == "wave":
        truth, top = proba.copy(), proba.argmax(axis=1)
        confidence = proba.max(axis=1)
        order = confidence.argsort().argsort() / 2000
        moved = np.clip(confidence + 0.15 * np.sin(16 * order), 0.05, 0.95)
        truth *= ((1 - moved) / (1 - confidence))[:, None]
        truth[np.arange(2000), top] = moved
    label = draw_labels(truth, 1, rng)[0]
    test = CalibrationTest(n_resamples=99, random_state=0).fit(proba, label)
    assert test.p_value_ == 0.01
    smallest = min(test.adjusted_p_values_, key=test.adjusted_p_values_.get)
    assert test.adjusted_p_values_[component] <= 0.05
    assert smallest in {component, "skce"} or test.adjusted_p_values_[smallest] == 0.01


def test_auto_is_the_omnibus_whatever_its_options():
    rng = np.random.default_rng(0)
    data = problem(rng, 30, 2)
    test = CalibrationTest(n_resamples=9, method="asymptotic").fit(data.proba, data.label)
    assert not hasattr(test, "component_p_values_")  # the omnibus has no known law
    for options in ({"bandwidth": 0.2}, {"bandwidth": "median"}, {"estimation": "biased"}):
        for arguments in (options, {"metric_params": options}):
            test = CalibrationTest(n_resamples=9, random_state=0, **arguments)
            test.fit(data.proba, data.label)
            kernel = CalibrationTest("skce", n_resamples=9, **options).fit(data.proba, data.label)
            assert test.component_statistics_["skce"] == pytest.approx(kernel.statistic_, rel=1e-12)
            omnibus_test = CalibrationTest("omnibus", n_resamples=9, random_state=0, **options)
            assert test.p_value_ == omnibus_test.fit(data.proba, data.label).p_value_
    test = CalibrationTest(n_resamples=9).fit(data.proba, data.label)
    assert set(test.component_p_values_) == set(omnibus(data).components)
    test.fit(GaussianForecast(np.arange(20), np.ones(20)), rng.normal(size=20))
    assert list(test.component_p_values_) == ["skce", "pit", "bias_and_spread"]


def test_few_samples_and_certain_predictions():
    for proba, label in ([0.3], [1]), ([0.3, 1.0], [1, 1]), ([0.0, 1.0, 1.0], [0, 1, 1]):
        test = CalibrationTest(n_resamples=19, labels=[0, 1], random_state=0).fit(proba, label)
        assert 0 < test.p_value_ <= 1
        assert np.isfinite(test.statistic_)
    # nothing can differ from certain predictions that are right
    assert test.p_value_ == 1


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_rounding_breaks_no_ties(n_classes, weighted):
    # nearly every draw repeats the labels that were seen
    rng = np.random.default_rng(0)
    for _ in range(8):
        certain = np.eye(n_classes)[rng.integers(n_classes, size=10)]
        proba = certain + 10.0 ** rng.uniform(-16, -5, size=certain.shape)
        proba /= proba.sum(axis=1, keepdims=True)
        weight = rng.random(10) if weighted else None
        test = CalibrationTest(n_resamples=19, random_state=0, labels=range(n_classes))
        test.fit(proba, certain.argmax(axis=1), sample_weight=weight)
        assert test.p_value_ == 1.0
        assert set(test.component_p_values_.values()) == {1.0}


def test_order_of_samples_does_not_matter():
    rng = np.random.default_rng(0)
    data = problem(rng, 100, 3, weighted=True, levels=4)
    order = rng.permutation(100)
    first, second = (
        CalibrationTest(n_resamples=49, random_state=0).fit(
            data.proba[rows], data.label[rows], sample_weight=data.weight[rows]
        )
        for rows in (np.arange(100), order)
    )
    assert first.p_value_ == second.p_value_
    assert first.component_p_values_ == second.component_p_values_


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistic": "omnibus", "method": "asymptotic"}, "only known by draws"),
        (
            {"statistic": "log_loss", "kernel": "rbf"},
            "'log_loss' of classes has no options; found 'kernel'",
        ),
        ({"statistic": "omnibus", "estimation": "linear"}, "must be 'unbiased' or 'biased'"),
        ({"statistic": "omnibus", "kernel": "energy"}, "'kernel' parameter"),
        ({"statistic": "omnibus", "bandwidth": -1.0}, "'bandwidth' parameter"),
        (
            {"bandwidth": 1.0, "metric_params": {"bandwidth": 1.0}},
            r"bandwidth must be passed once; found bandwidth=1\.0 and metric_params=",
        ),
        ({"statistic": "skce", "estimation": "fair"}, "'estimation' parameter"),
        ({"alternative": "less"}, "needs a statistic with a sign"),
        ({"statistic": "skce", "alternative": "greater"}, "needs a statistic with a sign"),
        ({"alternative": "both"}, "'alternative' parameter"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        CalibrationTest(**options).fit([0.2, 0.7, 0.4], [0, 1, 1])


def test_options_of_many_samples_are_judged_too():
    rng = np.random.default_rng(0)
    proba = rng.random(5000)
    test = CalibrationTest("omnibus", bandwidth=-1.0)
    with pytest.raises(ValueError, match="'bandwidth' parameter"):
        test.fit(proba, rng.random(5000) < proba)
    with pytest.raises(TypeError, match=r"must be among kernel, bandwidth.*found n_bins"):
        test.set_params(bandwidth="median", metric_params={"n_bins": 3}).fit(
            proba, rng.random(5000) < proba
        )


# Groups


def grouped_problem(rng, n_groups, correlation, n_classes=2):
    """Calibrated predictions; labels of a group come from correlated normal variables."""
    size = rng.integers(2, 51, size=n_groups)
    code = np.repeat(np.arange(n_groups), size)
    common = rng.normal(size=n_groups)[code]
    own = rng.normal(size=len(code))
    uniform = norm.cdf(np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own)
    proba = rng.dirichlet(np.ones(n_classes), size=n_groups)[code]
    label = (uniform[:, None] > np.cumsum(proba, axis=1)).sum(axis=1)
    return np.minimum(label, n_classes - 1), proba, code


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("statistic", ["skce", "log_loss", "brier_score_loss"])
def test_groups_by_hand(statistic, n_classes):
    # all signs of three groups, against the same statistic of the multiplied residuals
    rng = np.random.default_rng(0)
    data = problem(rng, 12, n_classes, weighted=True)
    groups = np.array(list("aabbbcccccab"))
    code = np.unique(groups, return_inverse=True)[1]
    data = replace(data, groups=code)
    one = SquaredKernelError(data) if statistic == "skce" else ScoreExcess(data, statistic)
    test = CalibrationTest(n_resamples=200, random_state=0)
    observed = one(data.label[None])
    by_signs, *by_labels = compute_null_values(test, one, observed, np.arange(12))
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=3)))
    possible = one.flip_signs(signs[:, code])
    assert len(by_labels) == 2  # of a common class, and of the rank of one
    assert [values[0] for values in by_labels] == pytest.approx([by_signs[0]] * 2, abs=1e-12)
    distance = np.abs(by_signs[1:, None] - possible)
    assert distance.min(axis=1).max() < 1e-12
    assert distance.min(axis=0).max() < 1e-12


def test_signs_of_single_kernel_terms():
    rng = np.random.default_rng(0)
    for n_classes in (2, 3):
        data = problem(rng, 8, n_classes)
        error = SquaredKernelError(data)
        kernel, points, mass = error.gram_terms()
        terms = kernel(points, points) * (mass @ mass.T)
        np.fill_diagonal(terms, 0.0)
        signs = rng.choice([-1.0, 1.0], size=(4, 8))
        expected = np.einsum("ri,ij,rj->r", signs, terms, signs) / error.pair_weight
        np.testing.assert_allclose(error.flip_signs(signs), expected, atol=1e-14)


def test_groups_of_forecasts():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=60)
    code = np.repeat(np.arange(20), 3)
    outcome = mean + rng.normal(size=20)[code]
    forecast = GaussianForecast(mean, np.ones(60))
    options = {"n_resamples": 99, "random_state": 0}
    test = CalibrationTest(**options).fit(forecast, outcome, groups=code)
    assert test.p_value_ > 0.05  # calibrated; without groups the outcomes seem too much alike
    wrong = CalibrationTest(**options).fit(forecast, outcome + 1.5, groups=code)
    assert wrong.p_value_ <= 0.02


def test_groups_without_events():
    # 0.64 events are expected and none is seen: all residuals of groups have one sign
    rng = np.random.default_rng(0)
    proba, label, groups = (
        rng.uniform(0.002, 0.01, size=100),
        np.zeros(100, int),
        np.arange(100) // 2,
    )
    options = {"labels": [0, 1], "n_resamples": 99, "random_state": 0}
    test = CalibrationTest(**options).fit(proba, label, groups=groups)
    by = np.array(list("abcd"))[(np.arange(100) // 10) % 4]
    by_subgroup = SubgroupCalibrationTest(**options).fit(proba, label, by=by, groups=groups)
    found = find_miscalibrated_subgroups(
        label, proba, {"by": by}, groups=groups, recalibrate=False, **options
    )
    p_values = [test.p_value_, by_subgroup.p_value_, found.p_value]
    p_values += [*test.adjusted_p_values_.values(), *by_subgroup.subgroup_p_values_.values()]
    assert min(p_values) > 0.5
    # and a model that expects many of them is still wrong
    assert CalibrationTest(**options).fit(proba + 0.3, label, groups=groups).p_value_ <= 0.02


def test_size_with_groups_and_one_event():
    rng, n_repetitions, rejected = np.random.default_rng(0), 40, 0
    for seed in range(n_repetitions):
        proba = rng.uniform(0.001, 0.019, size=100)
        label = (rng.random(100) < proba).astype(int)
        test = CalibrationTest("skce", labels=[0, 1], n_resamples=19, random_state=seed)
        rejected += test.fit(proba, label, groups=np.arange(100) // 2).p_value_ <= 0.05
    assert rejected / n_repetitions <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / n_repetitions)


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.97])
@pytest.mark.parametrize(("n_groups", "size", "events"), [(20, 5, 5), (50, 20, 10), (500, 2, 20)])
def test_size_with_groups_and_few_events(n_groups, size, events, correlation):
    rng, n_repetitions, p_values = np.random.default_rng(0), 150, []
    groups, n = np.repeat(np.arange(n_groups), size), n_groups * size
    for seed in range(n_repetitions):
        proba = events / n * rng.uniform(0.2, 1.8, size=n)
        common = np.sqrt(correlation) * rng.normal(size=n_groups)[groups]
        uniform = norm.cdf(common + np.sqrt(1 - correlation) * rng.normal(size=n))
        test = CalibrationTest(labels=[0, 1], n_resamples=59, random_state=seed)
        p_values.append(test.fit(proba, (uniform < proba).astype(int), groups=groups).p_value_)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / n_repetitions)


def large_groups_and_pairs(rng):
    """Calibrated predictions: one number for the labels of each large group, none for pairs."""
    size = np.repeat([60, 2], [20, 380])
    code = np.repeat(np.arange(400), size)
    proba = rng.beta(1.5, 98.5, size=len(code))
    common = rng.random(400)[code]
    uniform = np.where(size[code] == 60, common, rng.random(len(code)))
    return proba, (uniform < proba).astype(int), code


def test_pairs_do_not_hide_the_dependence_of_large_groups():
    # with one dependence for all groups, 5 of 12 were rejected
    p_values = []
    for seed in range(12):
        proba, label, code = large_groups_and_pairs(np.random.default_rng(seed))
        test = CalibrationTest(labels=[0, 1], n_resamples=39, random_state=seed)
        p_values.append(test.fit(proba, label, groups=code).p_value_)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.1


@pytest.mark.parametrize("recalibrate", [False, True])
def test_subgroups_of_large_groups_are_not_blamed(recalibrate):
    # with one dependence for all groups, each p-value was 0.025
    proba, label, code = large_groups_and_pairs(np.random.default_rng(2))
    by = np.where(code < 20, "large", "pairs")
    options = {"labels": [0, 1], "n_resamples": 39, "random_state": 2}
    test = SubgroupCalibrationTest(**options).fit(proba, label, by=by, groups=code)
    search = find_miscalibrated_subgroups(
        label, proba, {"by": by}, groups=code, recalibrate=recalibrate, **options
    )
    assert min(test.p_value_, search.p_value) > 0.1


def test_groups_that_are_wrong_on_both_sides():
    # 40 groups, whose predictions are all right or all wrong with probability 0.1: one is wrong.
    # Their labels differ within groups anyway, so that these alone are taken for independent
    code = np.repeat(np.arange(40), 8)
    proba = np.where(np.arange(320) % 2 == 0, 0.1, 0.9)
    label = (proba > 0.5) ^ (code == 0)
    test = CalibrationTest("log_loss", alternative="less", n_resamples=999, random_state=0)
    p_value = test.fit(proba, label, groups=code).p_value_
    expected = binom.cdf(1, 40, 0.1)
    assert abs(p_value - expected) < 4 * np.sqrt(expected * (1 - expected) / 999)


@pytest.mark.parametrize(("n_classes", "n_couplings"), [(2, 1), (3, 2)])
def test_ranks_are_not_drawn_where_they_are_the_labels(n_classes, n_couplings):
    proba = np.random.default_rng(0).dirichlet(np.ones(n_classes), size=20)
    proba = -np.sort(-proba, axis=1)  # the same likeliest class of all samples
    data = check_predictions(np.arange(20) % n_classes, proba)
    assert len(list(data.iter_couplings())) == 1
    in_groups = replace(data, groups=np.arange(20) // 2)
    assert len(list(in_groups.iter_couplings())) == n_couplings


def test_each_p_value_is_the_largest():
    one = {"p_value_": 0.2, "statistic_": 3.0, "adjusted_p_values_": {"a": 0.1, "b": 0.5}}
    other = {"p_value_": 0.1, "statistic_": 4.0, "adjusted_p_values_": {"a": 0.3, "b": 0.4}}
    expected = {"p_value_": 0.2, "statistic_": 3.0, "adjusted_p_values_": {"a": 0.3, "b": 0.5}}
    assert select_largest_p_value([one, other]) == select_largest_p_value([other, one]) == expected


def test_order_and_jobs_do_not_matter_with_groups(monkeypatch):
    monkeypatch.setattr("skcalib._inputs.drawing._MAX_BATCH_RESIDUALS", 4000)  # several batches
    rng = np.random.default_rng(0)
    label, proba, code = grouped_problem(rng, 12, 0.3)
    order = rng.permutation(len(code))
    # predictions are tied within groups: those of other samples would be drawn
    proba = proba + 1e-6 * rng.normal(size=(len(code), 1)) * [1, -1]
    with joblib.parallel_config("threading"):
        found = [
            CalibrationTest(n_resamples=49, random_state=0, n_jobs=jobs)
            .fit(proba[rows], label[rows], groups=code[rows])
            .adjusted_p_values_
            for rows, jobs in ((slice(None), None), (order, 2))
        ]
    assert found[0] == found[1]


def test_order_and_jobs_do_not_matter_to_subgroups_of_groups():
    rng = np.random.default_rng(0)
    label, proba, code = grouped_problem(rng, 12, 0.3, 3)
    proba = proba + 1e-6 * rng.normal(size=(len(code), 1)) * [1, -1, 0]
    by, weight = rng.choice(list("ab"), size=len(code)), rng.exponential(size=len(code))
    options, p_values = {"n_resamples": 49, "random_state": 0}, []
    for rows, jobs in ((slice(None), None), (rng.permutation(len(code)), 2)):
        test = SubgroupCalibrationTest(**options, n_jobs=jobs)
        sample = {"sample_weight": weight[rows], "groups": code[rows]}
        with joblib.parallel_config("threading"):
            test.fit(proba[rows], label[rows], by=by[rows], **sample)
        search = find_miscalibrated_subgroups(
            label[rows], proba[rows], {"by": by[rows]}, **sample, **options
        )
        p_values.append((test.subgroup_p_values_, search.column_p_values))
    assert p_values[0] == p_values[1]


def test_labels_of_groups_do_not_matter():
    rng = np.random.default_rng(0)
    label, proba, code = grouped_problem(rng, 10, 0.3)
    p_values = {
        CalibrationTest(n_resamples=49, random_state=0).fit(proba, label, groups=groups).p_value_
        for groups in (code, code.astype(str), 100 - code)
    }
    assert len(p_values) == 1


@pytest.mark.parametrize(
    ("groups", "options", "message"),
    [
        ([0, 1], {}, "groups"),
        ([0, 0, 0], {}, "at least two groups"),
        ([0, np.nan, 1], {}, "groups must not hold missing"),
        ([0, 1, 1], {"method": "asymptotic"}, "needs groups=None"),
        ([0, 1, 1], {"statistic": "smooth_calibration_error"}, "made of residuals"),
        ([0, 1, 1], {"statistic": "skce", "estimation": "linear"}, "made of residuals"),
    ],
)
def test_bad_groups(groups, options, message):
    with pytest.raises(ValueError, match=message):
        CalibrationTest(**options).fit([0.2, 0.7, 0.4], [0, 1, 1], groups=groups)


def rejections(n_repetitions, level, make, *, with_groups, **options):
    n_resamples = round(2 / level) - 1
    count = 0
    for seed in range(n_repetitions):
        label, proba, code = make(np.random.default_rng(seed))
        test = CalibrationTest(n_resamples=n_resamples, random_state=seed, **options)
        test.set_params(labels=range(proba.shape[1]))
        test.fit(proba, label, groups=code if with_groups else None)
        count += test.p_value_ <= level
    return count / n_repetitions


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("statistic", ["omnibus", "skce", "log_loss"])
def test_size_with_groups(n_classes, statistic):
    repetitions, level = 200, 0.1

    def make(rng):
        return grouped_problem(rng, 25, 0.3, n_classes)

    rate = rejections(repetitions, level, make, with_groups=True, statistic=statistic)
    assert rate <= level + 4 * np.sqrt(level * (1 - level) / repetitions)
    ignored = rejections(60, level, make, with_groups=False, statistic=statistic)
    assert ignored > 2 * level  # a test that takes the samples for independent


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("n", [2, 10, 200])
@pytest.mark.parametrize("concentration", [1.0, 0.01])
@pytest.mark.parametrize("weighted", [False, True])
def test_size_of_the_omnibus(n_classes, n, concentration, weighted):
    repetitions, level = (200 if n < 200 else 100), 0.1
    rejected = 0
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        proba = rng.dirichlet(np.full(n_classes, concentration), size=n)
        label = draw_labels(proba, 1, rng)[0]
        # an effective size of about n/6
        weight = np.where(rng.random(n) < 0.1, 1.0, 0.08) if weighted else None
        test = CalibrationTest(n_resamples=19, random_state=seed, labels=range(n_classes))
        rejected += test.fit(proba, label, sample_weight=weight).p_value_ <= level
    assert rejected / repetitions <= level + 4 * np.sqrt(level * (1 - level) / repetitions)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 4, 10])
@pytest.mark.parametrize("n", [30, 300])
def test_size_of_several_bandwidths(n_classes, n):
    repetitions, level = 400, 0.05
    rejected = 0
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        proba = rng.dirichlet(np.full(n_classes, 0.5), size=n)
        label = draw_labels(proba, 1, rng)[0]
        test = CalibrationTest(
            "skce", bandwidth="multiple", n_resamples=19, random_state=seed, labels=range(n_classes)
        )
        rejected += test.fit(proba, label).p_value_ <= level
    assert abs(rejected / repetitions - level) <= 4 * np.sqrt(level * (1 - level) / repetitions)


def test_infinite_values_are_tied():
    p_values, distance = compute_p_values(np.array([np.inf, np.inf, 1.0, -np.inf, -np.inf]), True)
    np.testing.assert_allclose(p_values, [0.8, 0.8, 1, 0.8, 0.8])
    assert not distance.any()


def test_a_class_that_is_hardly_ever_expected_has_a_finite_variance():
    proba = np.array([[1e-310, 0.4, 0.6], [1e-310, 0.7, 0.3]])
    found = ClasswiseScoreTest(check_predictions([1, 2], proba, labels=[0, 1, 2]))
    assert found.scale[0, 0] == pytest.approx(0.25)  # that of one label


def test_standard_deviations_of_huge_values_do_not_warn():
    p_values, distance = compute_p_values(np.array([1e300, 1.0, 2.0]), False)
    assert p_values[0] == 1 / 3
    assert distance[1] == 0
