"""Which measures have their lowest expected value, over all labels, at the true probabilities.

Hartline, Hu and Wu (2026), A Perfectly Truthful Calibration Measure, COLT. All vectors of labels
are enumerated, with their probabilities under the truth.
"""

import itertools

import numpy as np
import pytest

from skcalib._data import check_predictions
from skcalib._statistics.squared_error import SquaredKernelError
from skcalib.metrics import (
    cumulative_calibration_error,
    expected_calibration_error,
    kernel_calibration_error,
    laplace_kernel_calibration_error,
    smooth_calibration_error,
    smooth_expected_calibration_error,
    squared_kernel_calibration_error,
)

TRUTH = np.array([0.2, 0.4, 0.7])
ALL_LABELS = np.array(list(itertools.product([0, 1], repeat=3)))
MASS = np.where(ALL_LABELS == 1, TRUTH, 1 - TRUTH).prod(axis=1)


def expected_value(metric, report, **options):
    values = [metric(label, np.array(report), labels=[0, 1], **options) for label in ALL_LABELS]
    return MASS @ values


def averaged_two_bin_error(label, report):
    """Its definition: the mean over all edges q of the squared sums of residuals on both sides."""
    edges, residual = np.unique([0, *report, 1]), label - report
    total = 0.0
    for low, high in itertools.pairwise(edges):
        is_below = report < (low + high) / 2
        squares = residual[is_below].sum() ** 2 + residual[~is_below].sum() ** 2
        total += (high - low) * squares
    return total / len(label) ** 2


def test_the_averaged_two_bin_error_is_half_the_error_of_two_columns():
    rng = np.random.default_rng(0)
    for n in (1, 2, 30):
        proba, label = np.round(rng.random(n), 1), rng.integers(0, 2, n)
        error = squared_kernel_calibration_error(
            label, proba, kernel="intersection", estimation="biased", labels=[0, 1]
        )
        assert error / 2 == pytest.approx(averaged_two_bin_error(label, proba), abs=1e-15)


@pytest.mark.parametrize("bandwidth", ["median", 0.3])
@pytest.mark.parametrize(
    "kernel", ["total-variation", "laplacian", "exponential", "rbf", "intersection"]
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_biased_squares_are_truthful_if_the_diagonal_is_constant(n_classes, kernel, bandwidth):
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(n_classes), 3)
    all_labels = np.array(list(itertools.product(range(n_classes), repeat=3)))
    mass = np.take_along_axis(truth, all_labels.T, axis=1).prod(axis=0)

    def expected_square(report):
        data = check_predictions([0, 1, 1], report, labels=range(n_classes))
        error = SquaredKernelError(data, kernel=kernel, bandwidth=bandwidth, estimation="biased")
        return mass @ error(all_labels)

    # Σ k_ii (1 − ‖t_i‖²) / n², whatever is reported
    noise = np.sum(1 - np.sum(truth**2, axis=1)) / 9
    assert expected_square(truth) == pytest.approx(noise, abs=1e-14)
    lies = [*rng.dirichlet(np.ones(n_classes), (30, 3)), np.eye(n_classes)[[0, 1, 1]]]
    values = [expected_square(lie) for lie in lies]
    assert min(values) > noise + 1e-6
    # a lie that is calibrated, too, costs nothing
    mean = np.broadcast_to(truth.mean(axis=0), truth.shape)
    assert expected_square(mean) == pytest.approx(noise, abs=1e-14)


@pytest.mark.parametrize(
    ("metric", "options", "lie"),
    [
        (smooth_calibration_error, {}, (0, 0.5, 0.5)),
        (smooth_expected_calibration_error, {}, (0, 0.5, 0.5)),
        (expected_calibration_error, {}, (0.4, 0.4, 0.4)),
        (cumulative_calibration_error, {}, (0, 0.5, 0.5)),
        (laplace_kernel_calibration_error, {}, (0, 0.5, 0.5)),
        (kernel_calibration_error, {"kernel": "intersection"}, (0, 0.5, 0.5)),
        (squared_kernel_calibration_error, {}, (1, 0.4, 0)),
        (squared_kernel_calibration_error, {"kernel": "intersection"}, (0.4, 0.4, 0.4)),
    ],
)
def test_other_measures_reward_a_lie(metric, options, lie):
    truth = expected_value(metric, TRUTH, **options)
    assert expected_value(metric, lie, **options) < truth - 0.01


@pytest.mark.parametrize("lens", ["confidence", "top-label"])
def test_the_likeliest_class_alone_is_not_truthful(lens):
    # to name the unlikely class as the likely one makes the outcome less uncertain
    truth, lie = np.array([[0.5, 0.3, 0.2]]), np.array([[0.33, 0.33, 0.34]])
    options = {"labels": range(3), "kernel": "intersection", "estimation": "biased"}

    def expected_square(report, reduction):
        error = squared_kernel_calibration_error
        values = [error([k], report, multi_class=reduction, **options) for k in range(3)]
        return truth[0] @ values

    assert expected_square(lie, lens) < expected_square(truth, lens) - 0.1
    for reduction in ("canonical", "classwise"):
        assert expected_square(lie, reduction) > expected_square(truth, reduction)


def test_a_mean_over_classes_weighted_by_labels_is_not_truthful():
    truth, lie = np.array([[0.6, 0.3, 0.1]]), np.array([[0.58, 0.39, 0.03]])
    options = {"labels": range(3), "multi_class": "classwise", "estimation": "biased"}
    for average, is_truthful in {"macro": True, "auto": True, "weighted": False}.items():
        at_truth, at_lie = (
            truth[0]
            @ [
                squared_kernel_calibration_error([k], report, average=average, **options)
                for k in range(3)
            ]
            for report in (truth, lie)
        )
        assert (at_lie > at_truth) == is_truthful
