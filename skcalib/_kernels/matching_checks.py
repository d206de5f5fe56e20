"""The options of the distribution matching error, and what they must satisfy."""

from numbers import Real

import numpy as np

from .._inputs.constraints import IntegerInterval
from .._sklearn import Interval, StrOptions
from .checks import check_kernel
from .functions import KERNELS
from .matching_losses import as_losses

# Forms that compare PITs with the uniform distribution.
PIT_FORMS = {"quantile", "threshold", "local"}

FORMS = PIT_FORMS | {"marginal", "decision", "group", "distribution", "individual"}

NEEDS_GIVEN = {"group", "individual", "local"}

TAKES_GIVEN = NEEDS_GIVEN | {"distribution"}

MATCHING_CONSTRAINTS: dict = {
    "kernel": [StrOptions({"rbf", "laplacian", "energy"}), callable],
    "bandwidth": [StrOptions({"median"}), Interval(Real, 0, None, closed="neither")],
    "given_kernel": [StrOptions({*KERNELS, "wasserstein"}), callable],
    "given_bandwidth": [StrOptions({"median"}), Interval(Real, 0, None, closed="neither")],
    "loss": "no_validation",
    "estimator": [StrOptions({"unbiased", "biased"})],
    "method": [StrOptions({"exact", "fourier"})],
    "n_components": [IntegerInterval(1)],
    "random_state": ["random_state"],
}

# Larger outcomes have squares that overflow.
_LARGEST_OUTCOME = 1e150

_SOME_PITS = np.linspace(0, 1, 11)


def check_options(
    data,
    *,
    calibration="distribution",
    loss=None,
    kernel="rbf",
    bandwidth="median",
    given_kernel="rbf",
    given_bandwidth="median",
    estimator="unbiased",
    method="exact",
    n_components=200,
):
    """Options that fit each other and the data."""
    check_given_of_form(calibration, data.given, given_kernel)
    check_loss(calibration, loss)
    if calibration not in PIT_FORMS:
        check_size_of_outcomes(data.value)
    n = len(data.weight)
    if estimator == "unbiased" and n < 2:
        raise ValueError(
            "estimator='unbiased' needs at least 2 samples of positive weight; found 1. Use "
            "estimator='biased'."
        )
    if kernel == "energy" and bandwidth != "median":
        raise ValueError(
            f"bandwidth must be left at 'median' with kernel='energy', which has none; found "
            f"{bandwidth!r}. Leave it out."
        )
    if callable(kernel):
        is_of_pits = calibration in PIT_FORMS
        check_kernel(kernel, (_SOME_PITS if is_of_pits else data.value)[:, None])
    if method == "fourier":
        check_fourier(calibration, kernel, given_kernel)


def check_given_of_form(calibration, given, given_kernel):
    """Each form is conditioned on its own, and some on an array that is passed."""
    if given is None and calibration in NEEDS_GIVEN:
        what = "the group of each sample" if calibration == "group" else "features (n_samples, d)"
        raise ValueError(
            f"given must hold {what} for calibration={calibration!r}; found None. Pass it, or "
            "choose calibration='distribution', which is conditioned on the forecast."
        )
    if given is None:
        return
    if calibration not in TAKES_GIVEN:
        raise ValueError(
            f"given must be None for calibration={calibration!r}, which has a condition of "
            f"its own; found an array of shape {given.shape}. Choose calibration='group', "
            "'individual' or 'local'."
        )
    if calibration != "group" and given.dtype.kind not in "biuf":
        raise ValueError(
            f"given must hold numbers for calibration={calibration!r}; found type {given.dtype}. "
            "Use calibration='group' for labels of groups."
        )
    if given_kernel == "wasserstein":
        raise ValueError(
            "given_kernel='wasserstein' compares forecasts; found an array `given`. Leave one of "
            "the two out."
        )


def check_size_of_outcomes(value):
    largest = value[np.abs(value).argmax()]
    if abs(largest) > _LARGEST_OUTCOME:
        raise ValueError(
            f"y_true must be at most {_LARGEST_OUTCOME:g} in absolute value, so that distances can "
            f"be squared; found {largest:g}. Measure outcomes and forecasts in a larger unit."
        )


def check_loss(calibration, loss):
    if (loss is None) == (calibration == "decision"):
        raise ValueError(
            "loss must be given for calibration='decision', and for no other form; found "
            f"loss={loss!r} for calibration={calibration!r}. A number c stands for the decision "
            "whether the outcome exceeds c."
        )
    losses = loss if isinstance(loss, list | tuple) else [loss]
    if calibration == "decision" and not losses:
        raise ValueError("loss must hold at least one loss; found an empty list. Pass a number.")


def check_forecast_loss(loss):
    """Losses of outcomes that are numbers."""
    for one in [] if loss is None else as_losses(loss):
        one.check_is_of_numbers()


def check_class_losses(loss, classes):
    """Losses of these classes."""
    for one in as_losses(loss):
        one.of_classes(classes, len(classes))


def check_fourier(calibration, kernel, given_kernel):
    """Random frequencies are known for some kernels only."""
    is_known = kernel == "rbf" or (kernel == "laplacian" and calibration not in PIT_FORMS)
    if not is_known:
        raise ValueError(
            "method='fourier' needs kernel='rbf', or 'laplacian' for forms that do not compare "
            f"PITs; found kernel={kernel!r} with calibration={calibration!r}. Use method='exact'."
        )
    if callable(given_kernel) or calibration == "threshold":
        raise ValueError(
            "method='fourier' needs a named given_kernel, whose frequencies are known; found "
            f"given_kernel={given_kernel!r} with calibration={calibration!r}. Use method='exact'."
        )
