"""The hard instances of Błasiok et al. (2023): what the lemmas claim, by our own measures."""

import numpy as np
import pytest
from oracles import least_change_by_enumeration, upper_distance_by_enumeration

from skcalib.datasets import make_hard_instance
from skcalib.metrics import (
    calibration_distance_bounds,
    interval_calibration_error,
    kernel_calibration_error,
    laplace_kernel_calibration_error,
    lower_distance_to_calibration,
    smooth_calibration_error,
)

ALPHAS = [0.01, 0.1, 0.24, 0.4]
BLIND = "gaussian-blind-spot"


@pytest.mark.parametrize("alpha", ALPHAS)
def test_lemma_4_5_distances_differ_where_predictions_and_labels_do_not(alpha):
    near = make_hard_instance("near", offset=alpha, return_inputs=True)
    far = make_hard_instance("far", offset=alpha, return_inputs=True)
    laws = []
    for y_true, y_proba, weight, _ in (near, far):
        assert weight.sum() == pytest.approx(1, abs=1e-15)
        cells = [(p, y) for p in (0.5 - alpha, 0.5 + alpha) for y in (0, 1)]
        laws.append([weight[(y_proba == p) & (y_true == y)].sum() for p, y in cells])
    np.testing.assert_allclose(laws, 0.25, atol=1e-15)
    distance = 2 * alpha**2 / (1 + 2 * alpha)  # at most the 2α² of the lemma
    for (y_true, y_proba, weight, inputs), expected in ((near, distance), (far, alpha)):
        share = [weight[inputs == x].sum() for x in range(4)]
        positive = [weight[inputs == x] @ y_true[inputs == x] for x in range(4)]
        table = np.array([y_proba[:4], share, positive])
        assert least_change_by_enumeration(*table) == pytest.approx(expected, abs=1e-15)
    # so no measure of predictions and labels can be nearer to both than these two are
    for y_true, y_proba, weight, _ in (near, far):
        lower, upper = calibration_distance_bounds(y_true, y_proba, sample_weight=weight, tol=1e-6)
        assert distance - 1e-6 <= lower <= distance + 1e-15
        assert upper == pytest.approx(alpha, abs=1e-15)
        smooth = smooth_calibration_error(y_true, y_proba, sample_weight=weight)
        assert smooth == pytest.approx(alpha**2, abs=1e-15)


@pytest.mark.parametrize("separation", [1e-6, 1e-3, 0.05])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_lemma_6_8_interval_error_is_quadratically_larger_than_the_upper_distance(
    alpha, separation
):
    y_true, y_proba, weight = make_hard_instance(offset=alpha, separation=separation)
    assert len(np.unique(y_proba)) == 4
    upper = upper_distance_by_enumeration(y_proba, y_true, weight)
    assert upper <= 2 * alpha * (alpha + separation) / (1 + 2 * alpha) + 1e-15
    interval = interval_calibration_error(y_true, y_proba, sample_weight=weight)
    assert interval == pytest.approx(alpha + 2 * alpha * separation / (1 + 2 * alpha), abs=1e-15)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_lemma_6_9_interval_error_is_discontinuous(alpha):
    limit = make_hard_instance(offset=alpha)
    error = interval_calibration_error(limit[0], limit[1], sample_weight=limit[2])
    assert error == pytest.approx(alpha, abs=1e-15)
    for shift in (1e-3, 1e-9):
        y_true, y_proba, weight = make_hard_instance(offset=alpha, separation=-shift)
        np.testing.assert_array_equal(y_true, limit[0])
        np.testing.assert_array_equal(weight, limit[2])
        assert np.abs(y_proba - limit[1]).max() == pytest.approx(shift, rel=1e-6)
        moved = interval_calibration_error(y_true, y_proba, sample_weight=weight)
        assert moved == pytest.approx(4 * alpha * (alpha - shift) / (1 + 2 * alpha), abs=1e-14)
        assert moved < error - 0.1 * alpha
        # while a continuous measure moves by no more than the predictions
        lower = [
            lower_distance_to_calibration(y, p, sample_weight=w, tol=1e-6)
            for y, p, w in (limit, (y_true, y_proba, weight))
        ]
        assert abs(lower[0] - lower[1]) <= shift + 1e-6


@pytest.mark.parametrize("scale", [0.1, 0.02, pytest.param(0.005, marks=pytest.mark.slow)])
def test_theorem_8_6_the_gaussian_kernel_is_blind(scale):
    y_true, y_proba, weight = make_hard_instance(BLIND, period=scale)
    assert weight.sum() == pytest.approx(1, abs=1e-12)
    assert weight.min() >= 0
    points = np.unique(y_proba)
    mass = np.array([np.sum((weight * (y_true - y_proba))[y_proba == p]) for p in points])
    gram = np.exp(-((points[:, None] - points) ** 2))  # the kernel of the theorem
    square = mass @ gram @ mass
    bound = np.sqrt(scale) * np.exp(-1 / (8 * scale * (1 + scale)))
    assert square <= bound**2 + 1e-16
    # the error of two classes has residuals (−r, r), and distances √2 |p − q|
    options = {"sample_weight": weight, "kernel": "rbf", "bandwidth": 1.0}
    gaussian = kernel_calibration_error(y_true, y_proba, **options)
    assert gaussian**2 / 2 == pytest.approx(square, abs=1e-15)
    smooth = smooth_calibration_error(y_true, y_proba, sample_weight=weight)
    assert smooth >= 0.3 * scale**1.5
    laplace = laplace_kernel_calibration_error(y_true, y_proba, sample_weight=weight)
    assert laplace >= smooth / np.sqrt(2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"offset": 0.0}, "'offset' parameter"),
        ({"offset": 0.5}, "'offset' parameter"),
        ({"problem": "middle"}, "'problem' parameter"),
        ({"offset": 0.4, "separation": 0.2}, r"separation must be above -0\.4 and at most 0\.1"),
        ({"separation": -0.1}, r"separation must be above -0\.1"),
        ({"problem": BLIND, "period": 0.2}, "'period' parameter"),
        ({"problem": BLIND, "period": 0.0}, "'period' parameter"),
        (
            {"problem": BLIND, "offset": 0.2},
            "offset must be left out for problem='gaussian-blind-spot'",
        ),
        ({"problem": "far", "separation": 0.01}, "separation must be left out for problem='far'"),
        ({"period": 0.02}, "period must be left out for problem='near'"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_hard_instance(**options)
