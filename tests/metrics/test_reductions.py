"""How classes are spread among jobs."""

import threading

import joblib
import numpy as np
import pytest

from skcalib._data import check_predictions
from skcalib.lenses import _get_lens
from skcalib.metrics import (
    _reductions,
    calibration_distance_bounds,
    distance_certificate,
    lower_distance_to_calibration,
    smooth_calibration_error,
    smooth_expected_calibration_error,
    upper_distance_to_calibration,
)
from skcalib.metrics._reductions import average_over_reductions, map_reduction
from skcalib.metrics._registry import METRICS


def problem(n_classes=5, n=400):
    rng = np.random.default_rng(0)
    return rng.integers(n_classes, size=n), rng.dirichlet(np.ones(n_classes), size=n)


def test_of_tied_classes_the_first_is_predicted():
    data = check_predictions([0, 1, 2], [[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [0.2, 0.4, 0.4]])
    assert data.confidence().label.tolist() == [1, 0, 0]
    shares = [share for _, share, _ in data.iter_problems(_get_lens("top-label"))]
    np.testing.assert_allclose(shares, [2 / 3, 1 / 3, 0])


class Meeting:
    """The mean prediction of a class; each thread first waits until all are there."""

    def __init__(self, n_threads):
        self.barrier = threading.Barrier(n_threads, timeout=5)
        self.met = set()

    def __call__(self, predictions):
        if threading.get_ident() not in self.met:
            self.met.add(threading.get_ident())
            self.barrier.wait()
        return float(predictions.weight @ predictions.proba)


@pytest.mark.parametrize("multi_class", ["classwise", "top-label"])
def test_jobs_run_at_the_same_time(multi_class):
    label, proba = problem(n_classes=4)
    predictions = check_predictions(label, proba)
    alone = Meeting(1)
    expected = map_reduction(alone, predictions, multi_class)
    assert map_reduction(Meeting(2), predictions, multi_class, n_jobs=2) == expected
    values = average_over_reductions(Meeting(2), predictions, multi_class, None, n_jobs=2)
    np.testing.assert_array_equal(values, expected)
    with joblib.parallel_config("threading", n_jobs=2):
        assert map_reduction(Meeting(2), predictions, multi_class, n_jobs=None) == expected
        # one after another, as a measure that draws random numbers needs it
        values = average_over_reductions(alone, predictions, multi_class, None)
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(
    "metric",
    [
        smooth_calibration_error,
        smooth_expected_calibration_error,
        lower_distance_to_calibration,
        upper_distance_to_calibration,
        calibration_distance_bounds,
    ],
)
def test_jobs_do_not_change_values(metric, monkeypatch):
    jobs = []
    parallel = joblib.Parallel.__init__

    def spy(self, n_jobs=None, **options):
        jobs.append(n_jobs)
        parallel(self, n_jobs=n_jobs, **options)

    label, proba = problem()
    options = {"multi_class": "classwise", "average": None}
    expected = metric(label, proba, **options)
    monkeypatch.setattr(joblib.Parallel, "__init__", spy)
    np.testing.assert_array_equal(metric(label, proba, n_jobs=2, **options), expected)
    assert jobs == [2]


def test_certificates_are_found_in_jobs():
    label, proba = problem()
    certificates = distance_certificate(label, proba, multi_class="classwise")
    of_jobs = distance_certificate(label, proba, multi_class="classwise", n_jobs=2)
    assert [one.lower for one in of_jobs] == [one.lower for one in certificates]


def test_one_job_starts_no_joblib(monkeypatch):
    label, proba = problem(3, 60)
    options = {"multi_class": "classwise", "average": None}
    expected = smooth_calibration_error(label, proba, n_jobs=2, **options)
    monkeypatch.setattr(_reductions, "Parallel", None)
    actual = smooth_calibration_error(label, proba, **options)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("multi_class", ["confidence", "classwise", "top-label"])
@pytest.mark.parametrize("average", ["auto", "weighted", None])
def test_many_data_give_what_each_gives_alone(multi_class, average):
    label, proba = problem(n_classes=4)
    proba[:, 3] = 0  # a class that is never predicted
    proba /= proba.sum(axis=1, keepdims=True)
    weight = np.random.default_rng(1).random(len(label))
    parts = [slice(n) for n in (400, 3, 90)]
    data = [check_predictions(label[p], proba[p], weight[p], labels=range(4)) for p in parts]
    data.append(check_predictions([0, 1, 1], [0.2, 0.5, 0.5]))
    options = {"multi_class": multi_class, "average": average}
    values = METRICS["smooth_calibration_error"].measure_each(iter(data), **options)
    assert len(values) == len(data)
    for value, item in zip(values, data, strict=True):
        alone = average_over_reductions(smooth_error_of_two_classes, item, **options)
        np.testing.assert_allclose(value, alone, rtol=0, atol=1e-15)


def smooth_error_of_two_classes(data):
    return smooth_calibration_error(
        data.label, data.proba, sample_weight=data.weight, labels=[0, 1]
    )
