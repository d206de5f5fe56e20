"""Tests of calibration keep their size on calibrated models, and have power against others."""

from functools import partial

import numpy as np
import pytest
from problems import random_problem

from skcalib._data import check_predictions
from skcalib._statistics.squared_error import SquaredKernelError, largest_term
from skcalib.datasets import make_dirichlet_family
from skcalib.hypothesis_tests import CalibrationTest, UCMETest, _asymptotic
from skcalib.metrics import expected_calibration_error, squared_kernel_calibration_error

LEVELS = (0.01, 0.05, 0.1)


def dirichlet_problem(rng, n, n_classes, calibrated):
    proba = rng.dirichlet(np.full(n_classes, 0.5), size=n)
    truth = proba if calibrated else np.full_like(proba, 1 / n_classes)
    label = (rng.random((n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)
    return np.minimum(label, n_classes - 1), proba


SIZE_CASES = {
    "asymptotic": CalibrationTest(method="asymptotic", n_resamples=199),
    "linear": CalibrationTest(method="asymptotic", estimation="linear"),
    "block": CalibrationTest(method="asymptotic", estimation="block"),
    "ucme": UCMETest(method="asymptotic"),
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
    for estimation in ("biased", "unbiased", "linear", "block"):
        test = CalibrationTest(method="distribution-free", estimation=estimation, labels=range(5))
        rejected = sum(
            test.fit(*dirichlet_problem(rng, 300, 5, calibrated=True)[::-1]).p_value_ <= 0.1
            for _ in range(200)
        )
        assert rejected == 0


@pytest.mark.slow
def test_models_of_the_paper():
    # Figure 2 of Widmann et al. (2019), n = 250, K = 10, with conditional resampling besides
    tests = {
        "conditional": CalibrationTest("skce", n_resamples=99),
        "asymptotic": CalibrationTest(method="asymptotic", n_resamples=99),
        "linear": CalibrationTest(method="asymptotic", estimation="linear"),
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
        for estimation in ("unbiased", "biased", "linear", "block"):
            test = CalibrationTest("skce", method=method, estimation=estimation, n_resamples=9)
            expected = partial(squared_kernel_calibration_error, estimation=estimation)(
                label, proba
            )
            assert test.fit(proba, label).statistic_ == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("value", [True, 0, 2.5])
def test_number_of_locations_is_a_whole_number(value):
    with pytest.raises(ValueError, match=f"'n_locations' .*must be an int .*Got {value}"):
        UCMETest(n_locations=value).fit([0.2, 0.7, 0.6], [0, 1, 1])


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_distribution_free_bounds_do_not_depend_on_the_scale_of_the_class_kernel(scale):
    label, proba = random_problem(np.random.default_rng(0), 30, 3)
    error = SquaredKernelError(check_predictions(label, proba), class_kernel=scale * np.eye(3))
    bound = largest_term(scale * np.eye(3), 3)
    for size in (0.01, 0.3):
        scaled = _asymptotic.distribution_free_p_value(size * scale, "unbiased", 30, None, bound)
        expected = _asymptotic.distribution_free_p_value(size, "unbiased", 30, None, 2.0)
        assert scaled == pytest.approx(expected)
    assert np.isfinite(error(label[None])).all()
