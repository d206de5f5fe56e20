"""NumPy, torch and JAX compute the same losses."""

import itertools
from functools import partial

import numpy as np
import pytest
from loss_cases import CASES, LABEL, LOGITS, MEAN, STD, Y, value
from loss_packages import FRAMEWORKS, PACKAGES, converted

from skcalib import losses
from skcalib._numerics import array_api
from skcalib.losses import distribution_matching_loss

TOLERANCE = {np.float64: 1e-12, np.float32: 1e-5}

packages = pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)


@packages
@pytest.mark.parametrize("name", CASES)
def test_packages_agree(name, package):
    case = CASES[name]
    expected = value(case, case.prediction)
    for dtype, tolerance in TOLERANCE.items():
        convert = converted(package, dtype)
        with package.double():
            actual = package.numpy(value(case, tuple(map(convert, case.prediction)), convert))
        assert actual.shape == ()
        assert actual.dtype == dtype
        assert actual == pytest.approx(expected, abs=tolerance)


@packages
def test_half_precision_is_taken_in_single_precision(package):
    convert = converted(package, np.float16)
    options = {"given_bandwidth": 1.0, "bandwidth": 0.8}
    actual = distribution_matching_loss((convert(MEAN), convert(STD)), convert(Y), **options)
    rounded = [array.astype(np.float16).astype(np.float64) for array in (MEAN, STD, Y)]
    expected = distribution_matching_loss(tuple(rounded[:2]), rounded[2], **options)
    assert package.numpy(actual).dtype == np.float32
    assert actual == pytest.approx(expected, abs=1e-5)


@packages
@pytest.mark.parametrize("kind", [np.int32, np.uint8, bool, np.float32])
def test_labels_of_two_classes_may_have_any_type(package, kind):
    labels = package.asarray((LABEL % 2).astype(kind))
    expected = distribution_matching_loss(LOGITS[:, 0], LABEL % 2)
    actual = distribution_matching_loss(package.asarray(np.float32(LOGITS[:, 0])), labels)
    assert actual == pytest.approx(expected, abs=1e-5)


def test_integers_are_numbers():
    mean = np.array([0, 1, 3])
    y, options = np.array([1, 1, 2]), {"calibration": "marginal", "bandwidth": 1}
    actual = distribution_matching_loss((mean, np.ones(3, dtype=int)), y, **options)
    expected = distribution_matching_loss((mean * 1.0, np.ones(3)), y * 1.0, **options)
    assert actual == expected
    assert actual.dtype == np.float64


# Extreme values


def extreme_logits():
    """Saturated logits, right and wrong, also all equal and all the same class."""
    for scale in (1e4, -1e4):
        logits = np.zeros((6, 3))
        logits[np.arange(5), [0, 1, 2, 0, 1]] = scale  # the last row is undecided
        yield logits, np.array([0, 2, 1, 0, 0, 2])
    yield np.tile([1e4, -1e4, 0.0], (6, 1)), np.array([0, 1, 2, 0, 0, 0])


CLASS_LOSSES = {
    form: partial(distribution_matching_loss, calibration=form)
    for form in ("canonical", "marginal", "top-label")
} | {
    "exponential": partial(distribution_matching_loss, given_kernel="exponential"),
    "narrow": partial(distribution_matching_loss, given_bandwidth=1e-3, calibration="marginal"),
    "smooth": partial(losses.smooth_calibration_loss, multi_class="classwise"),
    "maximum mean": losses.maximum_mean_calibration_loss,
    "conditional": partial(losses.conditional_kernel_calibration_loss, estimation="unbiased"),
    "balanced": partial(losses.maximum_mean_calibration_loss, balanced=True),
    "kde": losses.kde_calibration_loss,
    "likely": partial(losses.kde_calibration_loss, bandwidth="likelihood"),
    "soft-binned": losses.soft_binned_calibration_loss,
}


def assert_finite(package, function, arrays, dtype):
    arrays = [array.astype(dtype) for array in arrays]
    with package.double():
        if package is PACKAGES["numpy"]:
            with np.errstate(over="ignore"):  # squares may be infinite, and their exponentials 0
                assert np.isfinite(function(*arrays))
            return
        result, gradients = package.gradients(function, arrays)
    assert np.isfinite(result)
    for gradient in gradients:
        assert np.isfinite(gradient).all()


@packages
@pytest.mark.parametrize("name", CLASS_LOSSES)
def test_saturated_classes_are_finite(name, package):
    loss = CLASS_LOSSES[name]
    for (logits, label), dtype in itertools.product(extreme_logits(), TOLERANCE):
        target = package.asarray(label)
        assert_finite(package, lambda x, t=target: loss(x, t), [logits], dtype)
        certain = np.eye(3)[logits.argmax(axis=1)]
        function = lambda x, t=target: loss(x, t, input_type="probabilities")  # noqa: E731
        assert_finite(package, function, [certain], dtype)


@packages
@pytest.mark.parametrize("dtype", TOLERANCE, ids=["double", "single"])
@pytest.mark.parametrize(
    ("form", "kernel"),
    [
        *(("distribution", kernel) for kernel in ("rbf", "laplacian", "energy", "thresholds")),
        ("distribution", "tanh"),
        *((form, "rbf") for form in ("quantile", "threshold", "marginal", "decision")),
        ("quantile", "laplacian"),
        ("quantile", "energy"),
    ],
)
def test_extreme_forecasts_are_finite(form, kernel, dtype, package):
    options = {"calibration": form, "kernel": kernel}
    if form == "distribution":
        options["given_bandwidth"] = 1.0
    if kernel in ("rbf", "laplacian", "tanh") and form not in ("quantile", "threshold"):
        options["bandwidth"] = 0.5
    if form in ("threshold", "decision") or kernel in ("thresholds", "tanh"):
        options["thresholds"] = package.asarray(np.array([-1.0, 0.0], dtype=dtype))
    mean = np.array([0.0, 0.0, 1.0, -1.0, 5.0, 0.0, 1e10, 0.0])
    std = np.array([1e-30, 1e30, 1e-30, 1e30, 1e-8, 1.0, 1.0, 1e5])
    outcome = np.array([0.0, 1.0, 1e10, -1e10, -1e15, 1e-30, 0.0, 1e30])
    target = package.asarray(outcome.astype(dtype))

    def function(mean, std):
        return distribution_matching_loss((mean, std), target, **options)

    assert_finite(package, function, [mean, std], dtype)


@pytest.mark.skipif("jax" not in FRAMEWORKS, reason="needs JAX")
@pytest.mark.parametrize("kernel", ["exponential", "total-variation"])
def test_differences_of_many_points_are_not_held(kernel, monkeypatch):
    package = FRAMEWORKS["jax"]
    logits, label = LOGITS.astype(np.float32), package.asarray(LABEL)

    def gradients():
        return package.gradients(
            lambda x: distribution_matching_loss(x, label, given_kernel=kernel), [logits]
        )

    value, (gradient,) = gradients()
    monkeypatch.setattr(array_api, "_MAX_JAX_BLOCK_SIZE", 1)
    row_by_row, (other,) = gradients()
    assert row_by_row == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(other, gradient, atol=1e-6)
