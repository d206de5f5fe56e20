"""The options of the distribution matching error, and what they must satisfy."""

from numbers import Real

import numpy as np

from .._inputs.constraints import IntegerInterval
from .._inputs.scikit_learn import Interval, StrOptions
from ..forecasts import QuantileForecast
from .checks import check_kernel
from .functions import KERNELS
from .matching_losses import as_losses

# Forms that compare PITs with the uniform distribution.
PIT_FORMS = {"quantile", "threshold", "local"}

FORMS = PIT_FORMS | {"marginal", "decision", "group", "distribution", "individual"}

NEEDS_GIVEN = {"group", "individual", "local"}

TAKES_GIVEN = NEEDS_GIVEN | {"distribution"}

# Kernels of decisions, which have finitely many features; see `matching_features`.
FEATURE_KERNELS = {"moments", "thresholds", "tanh", "loss"}

# Those of them that take what the decision is about.
_NEED_LOSS = {"tanh", "loss"}

_WITHOUT_BANDWIDTH = {"energy", "moments", "thresholds", "loss"}

MATCHING_CONSTRAINTS: dict = {
    "kernel": [StrOptions({"rbf", "laplacian", "energy", *FEATURE_KERNELS}), callable],
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

# Terms of the features of larger outcomes have squares that overflow.
_LARGEST_FEATURE = 1e70
_LARGEST_OF_MOMENTS = 1e35

# The standard deviation of a forecast divided by the bandwidth of "tanh".
_WIDEST = 1e150

# Forms of calibration for classes.
CLASS_FORMS = {
    "canonical",
    "decision",
    "distribution",
    "group",
    "individual",
    "marginal",
    "top-label",
}

_SOME_PITS = np.linspace(0, 1, 11)


def check_form(calibration, forms):
    """Refuse a form of calibration that is for classes only, or for numbers only."""
    if calibration in forms:
        return
    own, found, remedy = ("classes", "forecasts of a number", "class probabilities")
    if forms is CLASS_FORMS:
        own, found, remedy = found, "class probabilities", "a forecast (see skcalib.forecasts)"
    raise ValueError(
        f"calibration={calibration!r} is for {own}; found {found}. Choose among "
        f"{', '.join(map(repr, sorted(forms)))}, or pass {remedy}."
    )


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
    check_loss(calibration, kernel, loss)
    if calibration not in PIT_FORMS:
        is_squared = kernel == "moments"
        check_size_of_outcomes(data.value, _LARGEST_OF_MOMENTS if is_squared else _LARGEST_OUTCOME)
    n = len(data.weight)
    if estimator == "unbiased" and n < 2:
        raise ValueError(
            "estimator='unbiased' needs at least 2 samples of positive weight; found 1. Use "
            "estimator='biased'."
        )
    check_bandwidth_of_kernel(kernel, bandwidth)
    if not callable(kernel) and kernel in FEATURE_KERNELS:
        check_decision_kernel(data, calibration, kernel, loss)
    if callable(kernel):
        is_of_pits = calibration in PIT_FORMS
        check_kernel(kernel, (_SOME_PITS if is_of_pits else data.value)[:, None])
    if method == "fourier":
        check_fourier(calibration, kernel, given_kernel)


def check_bandwidth_of_kernel(kernel, bandwidth):
    """Some kernels have no bandwidth, and one has no median to take it from."""
    if callable(kernel):
        return
    if kernel in _WITHOUT_BANDWIDTH and bandwidth != "median":
        raise ValueError(
            f"bandwidth must be left at 'median' with kernel={kernel!r}, which has none; found "
            f"{bandwidth!r}. Leave it out."
        )
    if kernel == "tanh" and bandwidth == "median":
        raise ValueError(
            "bandwidth must be a number with kernel='tanh': the distance from the threshold, in "
            "the units of the outcome, over which the decision changes; found 'median'. Pass "
            "bandwidth=1.0, or less for a sharper step."
        )


def check_decision_kernel(data, calibration, kernel, loss):
    """Kernels of decisions are of outcomes, and most need what quantiles do not tell."""
    if calibration in PIT_FORMS:
        raise ValueError(
            f"kernel={kernel!r} is a kernel of outcomes; found calibration={calibration!r}, which "
            "compares PITs. Use kernel='rbf', or another form such as 'marginal'."
        )
    if kernel != "thresholds" and isinstance(data.forecast, QuantileForecast):
        raise ValueError(
            f"kernel={kernel!r} is not known for this forecast: a QuantileForecast tells the "
            "probabilities of its cells, and no expected values. Use kernel='thresholds', or an "
            "EnsembleForecast."
        )
    losses = as_losses(loss) if kernel in _NEED_LOSS else []
    if kernel == "tanh" and not all(isinstance(one.loss, Real) for one in losses):
        raise ValueError(
            "loss must be a number, the threshold, or a list of numbers for kernel='tanh'; found "
            f"{loss!r:.80}. Use kernel='loss' for other losses."
        )
    if kernel == "loss":
        for one in losses:
            check_size_of_losses(one.at_outcomes(data.value))


def check_moments(mean, std):
    """Means and standard deviations that can be squared."""
    for name, values in (("means", mean), ("standard deviations", std)):
        if not (np.abs(values) <= _LARGEST_OF_MOMENTS).all():  # NaN too
            row = int(np.argmin(np.abs(values) <= _LARGEST_OF_MOMENTS))
            raise ValueError(
                f"kernel='moments' needs forecasts whose {name} are finite and at most "
                f"{_LARGEST_OF_MOMENTS:g}; found {values[row]:g} in row {row}. Use "
                "kernel='thresholds'."
            )


def check_size_of_losses(losses):
    """Losses whose products can be squared."""
    largest = np.abs(losses).max()
    if largest > _LARGEST_FEATURE:
        raise ValueError(
            f"loss must be at most {_LARGEST_FEATURE:g} in absolute value, so that products can be "
            f"squared; found {largest:g}. Measure it in a larger unit."
        )


def check_width_of_steps(scale, variance):
    """Forecasts that are not too wide for the bandwidth of "tanh"."""
    widest = float(np.sqrt(variance.max()))
    if widest > _WIDEST * scale:
        raise ValueError(
            f"bandwidth must be at least {1 / _WIDEST:g} times the standard deviations of the "
            f"forecasts with kernel='tanh'; found {scale:g} and {widest:g}. Pass a larger one, or "
            "use kernel='loss', whose step is sharp."
        )


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


def check_size_of_outcomes(value, most):
    largest = value[np.abs(value).argmax()]
    if abs(largest) > most:
        raise ValueError(
            f"y_true must be at most {most:g} in absolute value, so that distances can be squared; "
            f"found {largest:g}. Measure outcomes and forecasts in a larger unit."
        )


def check_loss(calibration, kernel, loss):
    is_needed = calibration == "decision" or (not callable(kernel) and kernel in _NEED_LOSS)
    if (loss is None) == is_needed:
        raise ValueError(
            "loss must be given for calibration='decision', and for kernel='loss' or 'tanh', and "
            f"in no other case; found loss={loss!r:.80} for calibration={calibration!r} and "
            f"kernel={kernel!r}. A number c stands for the decision whether the outcome exceeds c."
        )
    losses = loss if isinstance(loss, list | tuple) else [loss]
    if is_needed and not losses:
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
    if not (is_known or (not callable(kernel) and kernel in FEATURE_KERNELS)):
        raise ValueError(
            "method='fourier' needs kernel='rbf', a kernel of decisions, or 'laplacian' for forms "
            f"that do not compare PITs; found kernel={kernel!r} with calibration={calibration!r}. "
            "Use method='exact'."
        )
    if callable(given_kernel) or calibration == "threshold":
        raise ValueError(
            "method='fourier' needs a named given_kernel, whose frequencies are known; found "
            f"given_kernel={given_kernel!r} with calibration={calibration!r}. Use method='exact'."
        )
