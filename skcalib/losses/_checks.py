"""What can be judged of a batch without looking at values, so that losses can be compiled."""

from typing import Any

from array_api_compat import array_namespace

from .._kernels.matching_checks import FORMS, NEEDS_GIVEN, PIT_FORMS, TAKES_GIVEN
from .._kernels.matching_classes import CLASS_FORMS
from .._numerics.array_api import Array
from .._sklearn import StrOptions
from ._forecasts import Normal, Sample

CLASS_CONSTRAINTS: dict = {"inputs": [StrOptions({"logits", "probabilities"})]}

SMOOTH_KERNELS = {"rbf", "laplacian", "energy"}

FEATURE_KERNELS = {"moments", "tanh", "thresholds"}

# Kernels that have a bandwidth.
WITH_BANDWIDTH = {"rbf", "laplacian", "tanh"}


def check_batch(
    target: Array, sample_weight: Array | None = None, given: Array | None = None, *, least: int = 1
) -> None:
    """One entry for each sample, and enough samples."""
    n = len(target)
    if target.ndim != 1:
        raise ValueError(
            f"target must have shape (n_samples,); found {tuple(target.shape)}. Drop the other "
            "axes."
        )
    if n < least:
        raise ValueError(
            f"A batch must have at least {least} samples, as pairs of them are compared; found "
            f"{n}. Drop the last batch of an epoch if it is smaller (drop_last=True)."
        )
    for name, array in (("sample_weight", sample_weight), ("given", given)):
        if array is not None and len(array) != n:
            raise ValueError(
                f"{name} must have one entry for each of the {n} samples of the batch; found "
                f"{len(array)}."
            )
    if sample_weight is not None and sample_weight.ndim != 1:
        raise ValueError(
            f"sample_weight must have shape (n_samples,); found {tuple(sample_weight.shape)}."
        )


def check_class_batch(prediction: Any, target: Array) -> None:
    """Scores of all classes for each sample, and labels that count from 0."""
    shape = getattr(prediction, "shape", None)
    if shape is None:
        raise TypeError(
            "prediction must be an array of class scores, a tuple (mean, std), or Draws; found "
            f"{type(prediction).__name__}."
        )
    if len(shape) not in (1, 2) or shape[0] != len(target):
        raise ValueError(
            f"prediction must have shape (n_samples, n_classes) or (n_samples,) for the "
            f"{len(target)} samples of target; found {tuple(shape)}. Flatten axes such as those of "
            "pixels first."
        )
    xp = array_namespace(target)
    if len(shape) == 2 and shape[1] > 2 and not xp.isdtype(target.dtype, "integral"):
        raise ValueError(
            f"target must hold integers 0, …, {shape[1] - 1} for {shape[1]} classes; found type "
            f"{target.dtype}."
        )


def check_class_form(
    calibration: str,
    given: Array | None,
    loss: Array | None,
    class_kernel: Array | None,
    n_classes: int,
    **own: Any,
) -> None:
    """Options that fit classes; `own` are those of forecasts with their defaults."""
    if calibration not in CLASS_FORMS:
        raise ValueError(
            f"calibration={calibration!r} is for forecasts of a number; found scores of classes. "
            f"Choose among {', '.join(map(repr, sorted(CLASS_FORMS)))}, or pass (mean, std)."
        )
    for name, (value, default) in own.items():
        if value is not default and value != default:
            raise ValueError(
                f"{name} must be left out for classes, where equal labels have the kernel 1 and "
                f"others 0; found {value!r}. The kernel on what is conditioned on is given_kernel."
            )
    _check_given(calibration, given)
    _check_table("loss", loss, calibration == "decision", n_classes)
    is_of_pairs = calibration in ("top-label", "marginal") and n_classes > 2
    if class_kernel is not None:
        if is_of_pairs:
            raise ValueError(
                f"class_kernel must be None for calibration={calibration!r}, which compares one "
                "class with the rest; found a matrix. Choose calibration='canonical'."
            )
        _check_table("class_kernel", class_kernel, True, n_classes)
        if len(class_kernel) != n_classes:
            raise ValueError(
                f"class_kernel must have one row for each of the {n_classes} classes; found "
                f"{len(class_kernel)}."
            )


def _check_table(name: str, table: Array | None, is_needed: bool, n_classes: int) -> None:
    if (table is None) == is_needed:
        raise ValueError(
            f"{name} must be given for calibration='decision', and for no other form; found "
            f"{'None' if table is None else 'an array'}. Pass losses of shape (n_actions, "
            "n_classes)."
        )
    if table is not None and (table.ndim != 2 or table.shape[1] != n_classes):
        raise ValueError(
            f"{name} must have one column for each of the {n_classes} classes; found shape "
            f"{tuple(table.shape)}."
        )


def check_forecast_form(
    calibration: str,
    forecast: Normal | Sample,
    given: Array | None,
    loss: Array | None,
    class_kernel: Array | None,
    thresholds: Array | None,
    given_bandwidth: float | None,
) -> None:
    """Options that fit forecasts of a number."""
    if calibration not in FORMS:
        raise ValueError(
            f"calibration={calibration!r} is for classes; found forecasts of a number. Choose "
            f"among {', '.join(map(repr, sorted(FORMS)))}."
        )
    for name, value in (("loss", loss), ("class_kernel", class_kernel)):
        if value is not None:
            raise ValueError(
                f"{name} must be None for forecasts of a number; found an array. Decisions whether "
                "an outcome exceeds something are given by thresholds."
            )
    _check_given(calibration, given)
    if calibration == "distribution" and given is None and forecast.parameters() is None:
        raise ValueError(
            "given must hold what the distributions depend on for calibration='distribution' with "
            "draws that have no parameters; found None. Pass features, or their parameters."
        )
    needs_bandwidth = calibration in ("distribution", "individual", "local")
    if needs_bandwidth and given_bandwidth is None:
        raise ValueError(
            f"given_bandwidth must be a number for calibration={calibration!r}; found None. Take "
            "the median distance of the training data, which does not change from batch to batch."
        )
    if calibration in ("threshold", "decision") and thresholds is None:
        raise ValueError(
            f"thresholds must be given for calibration={calibration!r}; found None. Pass quantiles "
            "of the training outcomes, or the thresholds of the decisions."
        )


def check_forecast_kernel(
    calibration: str,
    forecast: Normal | Sample,
    kernel: str,
    bandwidth: float | None,
    thresholds: Array | None,
) -> None:
    """A kernel that suits what is compared."""
    is_of_pits = calibration in PIT_FORMS
    if is_of_pits and kernel not in SMOOTH_KERNELS:
        raise ValueError(
            f"kernel must be one of {', '.join(map(repr, sorted(SMOOTH_KERNELS)))} for "
            f"calibration={calibration!r}, which compares PITs; found {kernel!r}."
        )
    needs_cdf = is_of_pits or kernel == "thresholds" or calibration == "decision"
    if needs_cdf and isinstance(forecast, Sample) and forecast.draws.cdf is None:
        raise ValueError(
            f"Draws must have a cdf for calibration={calibration!r} and kernel={kernel!r}; found "
            "None. Pass the distribution functions, or compare outcomes with kernel='rbf'."
        )
    has_bandwidth = kernel in WITH_BANDWIDTH
    if has_bandwidth and bandwidth is None and not is_of_pits:
        raise ValueError(
            f"bandwidth must be a number for kernel={kernel!r} on outcomes; found None. Take the "
            "median distance of the training outcomes, which does not change from batch to batch."
        )
    if not has_bandwidth and bandwidth is not None:
        raise ValueError(
            f"bandwidth must be None for kernel={kernel!r}, which has none; found {bandwidth!r}."
        )
    if kernel in ("tanh", "thresholds") and thresholds is None:
        raise ValueError(
            f"thresholds must be given for kernel={kernel!r}; found None. Pass the thresholds of "
            "the decisions."
        )


def _check_given(calibration: str, given: Array | None) -> None:
    if given is None and calibration in NEEDS_GIVEN:
        raise ValueError(
            f"given must be an array for calibration={calibration!r}; found None. Pass groups or "
            "features of the samples, or choose calibration='distribution'."
        )
    if given is not None and calibration not in TAKES_GIVEN:
        raise ValueError(
            f"given must be None for calibration={calibration!r}, which has a condition of its "
            f"own; found shape {tuple(given.shape)}. Choose calibration='group', 'individual' or "
            "'local'."
        )
