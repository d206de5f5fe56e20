"""CalibrationTest by resampled labels: exact p-values, batches, random states, size and power."""

import sys
from functools import partial

import numpy as np
import pytest
from oracles import skce_by_loops
from problems import random_problem, two_columns
from scipy.stats import ks_2samp
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import brier_score_loss, log_loss

from skcalib import metrics
from skcalib._inputs.drawing import make_batches
from skcalib._statistics.base import iter_sample_blocks
from skcalib._statistics.kernels import KERNELS
from skcalib.hypothesis_tests import CalibrationTest, SequentialCalibrationTest, SpiegelhalterTest
from skcalib.metrics import smooth_calibration_error, squared_kernel_calibration_error
from skcalib.metrics._registry import METRICS


@pytest.mark.parametrize(
    "test", [CalibrationTest(n_resamples=9), SequentialCalibrationTest(), SpiegelhalterTest()]
)
def test_a_fitted_test_shows_what_it_found(test):
    label, proba = random_problem(np.random.default_rng(0), 20)
    test = clone(test)
    before, page = repr(test), test._repr_mimebundle_()["text/html"]
    assert "#" not in before
    assert "p-value" not in page.lower() + test._repr_html_()
    test.fit(proba, label)
    found = f"p-value {test.p_value_:.3g}"
    assert repr(test).startswith(f"{before}  # ")
    assert repr(test).endswith(found)
    for html in (test._repr_html_(), test._repr_mimebundle_()["text/html"]):
        assert html.endswith(f"{found}</p>")
    assert repr(clone(test)) == before
    assert ("e-value" if "Sequential" in before else "statistic ") in repr(test)
    with config_context(display="text"):
        assert list(test._repr_mimebundle_()) == ["text/plain"]


def all_labels(n, n_classes):
    grid = np.indices((n_classes,) * n)
    return grid.reshape(n, -1).T


def exact_p_value(label, proba, statistic):
    """P(T* ≥ T) by enumeration of all label vectors; proba (n, K)."""
    observed = statistic(label)
    return sum(
        np.prod(proba[np.arange(len(label)), drawn])
        for drawn in all_labels(*proba.shape)
        if statistic(drawn) >= observed - 1e-12
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_p_value_approaches_the_exact_one(n_classes, seed):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, 6, n_classes)
    matrix = two_columns(proba) if n_classes == 2 else proba

    def statistic(labels):
        return skce_by_loops(matrix, labels, "total-variation", 0.4, "unbiased")

    expected = exact_p_value(label, matrix, statistic)
    test = CalibrationTest(
        "skce", bandwidth=0.4, n_resamples=4999, random_state=seed, labels=range(n_classes)
    )
    actual = test.fit(proba, label).p_value_
    assert abs(actual - expected) < 4 * np.sqrt(expected * (1 - expected) / 4999) + 2e-4


def test_null_distribution_consists_of_statistics_of_labels():
    # with 3 predictions there are 8 label vectors, so only 8 values are possible
    proba = np.array([0.2, 0.5, 0.9])
    test = CalibrationTest("skce", bandwidth=0.4, random_state=0, labels=[0, 1]).fit(
        proba, [1, 0, 1]
    )
    possible = {
        drawn.tobytes(): skce_by_loops(
            two_columns(proba), drawn, "total-variation", 0.4, "unbiased"
        )
        for drawn in all_labels(3, 2)
    }
    distance = np.abs(test.null_distribution_[:, None] - np.array(list(possible.values())))
    assert distance.min(axis=1).max() < 1e-12
    assert (distance.min(axis=0) < 1e-12).all()


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kernel", ["total-variation", "rbf"])
def test_batches_equal_single_evaluations(n_classes, kernel, monkeypatch):
    label, proba = random_problem(np.random.default_rng(0), 40, n_classes)
    monkeypatch.setattr("skcalib.metrics._statistic.MetricStatistic.min_batches", 1)
    metric = partial(squared_kernel_calibration_error, kernel=kernel, labels=range(n_classes))
    options = {"n_resamples": 50, "random_state": 0}
    batched = CalibrationTest("skce", kernel=kernel, **options).fit(proba, label)
    single = CalibrationTest(metric, **options).fit(proba, label)
    np.testing.assert_allclose(batched.null_distribution_, single.null_distribution_, atol=1e-12)
    assert batched.statistic_ == pytest.approx(single.statistic_, abs=1e-12)
    assert batched.p_value_ == single.p_value_


@pytest.mark.parametrize(
    "statistic", ["skce", "smooth_calibration_error", "expected_calibration_error", log_loss]
)
def test_statistic_is_the_metric(statistic):
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 60)
    name = "squared_kernel_calibration_error" if statistic == "skce" else statistic
    metric = statistic if callable(statistic) else getattr(metrics, name)
    test = CalibrationTest(statistic, n_resamples=9).fit(proba, label)
    assert test.statistic_ == metric(label, proba)


def test_callables_get_labels_and_probabilities_as_passed():
    seen = []

    def statistic(y_true, y_proba):
        seen.append((y_true.dtype.kind, y_proba.shape))
        return brier_score_loss(y_true, y_proba[:, 1], pos_label="yes")

    proba = np.random.default_rng(0).random(20)
    y = np.where(proba > 0.5, "yes", "no")
    CalibrationTest(statistic, n_resamples=5).fit(two_columns(proba), y)
    assert set(seen) == {("U", (20, 2))}
    for column in (proba, proba[:, None]):
        seen.clear()
        test = CalibrationTest(lambda y, p: seen.append(p.shape) or 0.0, n_resamples=5)
        test.set_params(labels=["no", "yes"]).fit(column, y)
        assert set(seen) == {(20,)}


def test_metrics_survive_classes_that_are_not_drawn():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 5, 4)
    for statistic in ("skce", "expected_calibration_error", "smooth_calibration_error"):
        test = CalibrationTest(statistic, n_resamples=20, labels=range(4)).fit(proba, label)
        assert 0 < test.p_value_ <= 1


@pytest.mark.integration
@pytest.mark.parametrize("statistic", ["skce", "smooth_calibration_error", brier_score_loss])
def test_result_does_not_depend_on_jobs(statistic, monkeypatch):
    monkeypatch.setattr("skcalib._inputs.drawing._MAX_BATCH_RESIDUALS", 1000)
    label, proba = random_problem(np.random.default_rng(0), 100)
    options = {"n_resamples": 30, "random_state": 0}
    two = CalibrationTest(statistic, n_jobs=2, **options).fit(proba, label)
    one = CalibrationTest(statistic, **options).fit(proba, label)
    np.testing.assert_array_equal(two.null_distribution_, one.null_distribution_)
    assert len(two.null_distribution_) == 30


@pytest.mark.parametrize(("n_resamples", "expected"), [(1, 1), (10, 10), (999, 64)])
def test_single_evaluations_are_spread_over_batches(n_resamples, expected):
    batches = make_batches(n_resamples, 50, 64, np.random.RandomState(0))
    assert len(batches) == expected
    assert sum(batch.size for batch in batches) == n_resamples
    assert min(batch.size for batch in batches) > 0
    assert len({batch.seed for batch in batches}) == expected


def test_batches_keep_their_size():
    batches = make_batches(999, 10**5, 1, np.random.RandomState(0))
    assert sum(batch.size for batch in batches) == 999
    assert max(batch.size for batch in batches) * 10**5 <= 2**22


def test_labels_are_drawn_for_blocks_of_samples():
    blocks = list(iter_sample_blocks(np.arange(10_000), 999))
    np.testing.assert_array_equal(np.concatenate(blocks), np.arange(10_000))
    assert max(map(len, blocks)) * 999 <= 2**22


def test_null_distribution_is_exchangeable_between_paths():
    label, proba = random_problem(np.random.default_rng(0), 40)
    options = {"n_resamples": 300, "kernel": "laplacian", "bandwidth": 0.5}
    metric = partial(
        squared_kernel_calibration_error, kernel="laplacian", bandwidth=0.5, labels=[0, 1]
    )
    fast = CalibrationTest("skce", random_state=0, **options).fit(proba, label)
    slow = CalibrationTest(metric, n_resamples=300, random_state=1).fit(proba, label)
    assert fast.statistic_ == pytest.approx(slow.statistic_, abs=1e-15)
    assert ks_2samp(fast.null_distribution_, slow.null_distribution_).pvalue > 1e-3


def test_random_state():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 50)

    def null(random_state):
        test = CalibrationTest(n_resamples=20, random_state=random_state)
        return test.fit(proba, label).null_distribution_.tolist()

    assert null(1) == null(1) == null(np.random.RandomState(1))
    assert null(1) != null(2)
    assert null(None) != null(None)


def test_verbose_shows_progress(capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    label, proba = random_problem(np.random.default_rng(0), 20)
    CalibrationTest("smooth_calibration_error", n_resamples=50).fit(proba, label)
    assert capfd.readouterr().err == ""
    CalibrationTest("smooth_calibration_error", n_resamples=50, verbose=10).fit(proba, label)
    assert capfd.readouterr().err.count("Done") > 5


def test_impossible_labels_are_rejected_and_p_is_never_zero():
    proba = np.array([0.0] * 10 + [1.0] * 10)
    wrong = (proba == 0).astype(int)
    test = CalibrationTest(n_resamples=99, labels=[0, 1])
    assert test.fit(proba, wrong).p_value_ == 0.01
    assert test.fit(proba, 1 - wrong).p_value_ == 1


def test_a_constant_calibrated_forecast_is_not_rejected():
    # MAPIE 1.6.0, probmetrics 1.3.0 and MCGrad 0.1.5 get tied predictions wrong
    label = np.array([0, 1] * 100)
    for statistic in ("skce", "smooth_calibration_error"):
        assert CalibrationTest(statistic).fit(np.full(200, 0.5), label).p_value_ > 0.5


def test_underconfidence_is_rejected():
    # MAPIE 1.6.0's one-sided Spiegelhalter test gives p = 1 here
    rng = np.random.default_rng(0)
    proba = rng.random(1000)
    label = (rng.random(1000) < np.where(proba > 0.5, 0.98, 0.02)).astype(int)
    assert CalibrationTest(random_state=0).fit(proba, label).p_value_ == 0.001


def test_crowded_predictions_do_not_blind_the_test():
    rng = np.random.default_rng(0)
    n = 2000
    certain = rng.random(n) < 0.9
    proba = np.where(certain, 10.0 ** rng.uniform(-60, -10, n), rng.random(n))
    label = (rng.random(n) < np.where(certain, proba, proba**3)).astype(int)
    for kernel in ("total-variation", "rbf"):
        test = CalibrationTest("skce", kernel=kernel, n_resamples=99, random_state=0)
        assert test.fit(proba, label).p_value_ == 0.01


def test_statistics_cannot_change_the_data():
    label, proba = random_problem(np.random.default_rng(0), 20)

    def sort(y_true, y_proba):
        y_proba.sort()
        return 0.0

    with pytest.raises(ValueError, match="read-only"):
        CalibrationTest(sort, n_resamples=5).fit(proba, label)


def test_statistics_that_are_not_finite_are_refused():
    label, proba = random_problem(np.random.default_rng(0), 20)
    with pytest.raises(ValueError, match="statistic must be finite"):
        CalibrationTest(lambda y_true, y_proba: np.nan, n_resamples=5).fit(proba, label)
    with pytest.raises(ValueError, match="statistic must return one number"):
        CalibrationTest(lambda y_true, y_proba: y_proba, n_resamples=5).fit(proba, label)


def test_consistent_statistic_under_weights():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 50)
    weight = rng.random(50)
    for statistic in ("skce", "smooth_calibration_error", brier_score_loss):
        test = CalibrationTest(statistic, n_resamples=5).fit(proba, label, sample_weight=weight)
        name = "squared_kernel_calibration_error" if statistic == "skce" else statistic
        metric = statistic if callable(statistic) else getattr(metrics, name)
        expected = metric(label, proba, sample_weight=weight)
        assert test.statistic_ == pytest.approx(expected, abs=1e-15)


def rejections(n, n_classes, statistic, n_repetitions, levels, calibrated=True):
    def one(seed):
        rng = np.random.default_rng(seed)
        label, proba = random_problem(rng, n, n_classes, calibrated=calibrated)
        test = CalibrationTest(
            statistic, n_resamples=99, random_state=seed, labels=range(n_classes)
        )
        return test.fit(proba, label).p_value_

    p_value = np.array([one(seed) for seed in range(n_repetitions)])
    assert p_value.min() > 0
    assert p_value.max() <= 1
    return [np.mean(p_value <= level) for level in levels]


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("n", [20, 200, 2000])
def test_size_of_the_default_test(n, n_classes):
    # with 99 resamples levels that are multiples of 0.01 are met exactly
    levels, n_repetitions = [0.01, 0.05, 0.1], 1000
    found = rejections(n, n_classes, "skce", n_repetitions, levels)
    for level, rate in zip(levels, found, strict=True):
        assert abs(rate - level) < 4 * np.sqrt(level * (1 - level) / n_repetitions)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["smooth_calibration_error", "expected_calibration_error"])
def test_size_with_other_statistics(statistic):
    (rate,) = rejections(100, 2, statistic, 500, [0.05])
    assert abs(rate - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 500)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_size_and_power_at_a_glance(n_classes):
    (rate,) = rejections(50, n_classes, "skce", 80, [0.05])
    assert rate < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 80)
    (power,) = rejections(300, n_classes, "skce", 5, [0.05], calibrated=False)
    assert power == 1


def test_names_of_metrics_and_partial_callables_agree():
    label, proba = random_problem(np.random.default_rng(0), 30)
    options = {"n_resamples": 20, "random_state": 0}
    by_name = CalibrationTest("smooth_calibration_error", **options).fit(proba, label)
    by_callable = CalibrationTest(partial(smooth_calibration_error, labels=[0, 1]), **options).fit(
        proba, label
    )
    np.testing.assert_array_equal(by_name.null_distribution_, by_callable.null_distribution_)


@pytest.mark.parametrize(
    ("statistic", "params", "match"),
    [
        ("expected_calibration_error", {"strategy": "foo"}, "'strategy' parameter"),
        ("expected_calibration_error", {"n_bins": 0}, "'n_bins' parameter"),
        ("interval_calibration_error", {"precision": -1}, "'precision' parameter"),
        ("laplace_kernel_calibration_error", {"bandwidth": 0}, "'bandwidth' parameter"),
        ("skce", {"class_kernel": 3}, "'class_kernel' parameter"),
        ("smooth_calibration_error", {"pos_label": 0}, "metric_params must not hold"),
        (smooth_calibration_error, {"sample_weight": [1] * 20}, "metric_params must not hold"),
    ],
)
def test_arguments_of_the_metric_are_judged(statistic, params, match):
    label, proba = random_problem(np.random.default_rng(0), 20)
    with pytest.raises(ValueError, match=match):
        CalibrationTest(statistic, metric_params=params, n_resamples=5).fit(proba, label)


def test_p_values_do_not_underflow():
    test = CalibrationTest(method="asymptotic", estimation="linear", bandwidth=0.1)
    p_value = test.fit(np.full(40_000, 0.999), np.zeros(40_000, dtype=int)).p_value_
    assert type(p_value) is float
    assert 0 < p_value < 1e-300


OPTION_VALUES = {
    "kernel": sorted(KERNELS),
    "bandwidth": ["median", 0.3],
    "estimation": ["unbiased", "biased"],
}
NO_MEDIAN = ["laplace_kernel_calibration_error", "smooth_expected_calibration_error"]


@pytest.mark.parametrize(
    ("statistic", "name", "value"),
    [
        (entry.name, name, value)
        for entry in METRICS.values()
        for name, values in OPTION_VALUES.items()
        for value in values
        if name in entry.options
        and not (value == "median" and entry.name in NO_MEDIAN)
        and not (value == "unbiased" and entry.options[name] == "biased")
    ],
)
def test_every_option_reaches_the_statistic(statistic, name, value):
    # also one that is the default of another statistic
    rng = np.random.default_rng(0)
    proba, label = rng.dirichlet(np.ones(3), 30), np.arange(30) % 3
    metric = METRICS[statistic]
    data = {"given": proba[:, :1]} if metric.requires_given else {}
    expected = metric.function(label, proba, **data, **{name: value})
    for arguments in ({name: value}, {"metric_params": {name: value}}):
        test = CalibrationTest(statistic, n_resamples=1, random_state=0, **arguments)
        actual = test.fit(proba, label, **data).statistic_
        assert actual == pytest.approx(expected, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize(
    ("name", "value"),
    [("kernel", "total-variation"), ("bandwidth", "median"), ("estimation", "unbiased")],
)
def test_an_option_that_the_statistic_lacks_is_refused(name, value):
    test = CalibrationTest("smooth_calibration_error", **{name: value})
    with pytest.raises(TypeError, match=f"found '{name}', while smooth_calibration_error takes"):
        test.fit([0.2, 0.7, 0.4], [0, 1, 1])
