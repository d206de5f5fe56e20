"""Checks of a batch that look at no values, so that losses can be compiled."""

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from .._inputs.scikit_learn import Function, Interval, StrOptions, validate_params
from .._numerics.array_api import Array
from .._statistics.matching_checks import (
    CLASS_FORMS,
    FORMS,
    PIT_FORMS,
    check_condition,
    check_form,
    check_unused_options,
)
from ._predictions import Distributions, SampledForecast

POSITIVE = Interval(Real, 0, None, closed="neither")

CLASS_CONSTRAINTS: dict = {"input_type": [StrOptions({"logits", "probabilities"})]}


def validate_loss_options(constraints: dict) -> Callable[[Function], Function]:
    """`validate_params` for losses. Bad values make them NaN without a warning, as in torch."""
    return lambda loss: validate_params(constraints)(np.errstate(all="ignore")(loss))


SMOOTH_KERNELS = {"rbf", "laplacian", "energy"}

# Kernels that have a bandwidth.
WITH_BANDWIDTH = {"rbf", "laplacian", "tanh"}


def name_of(kernel: Any) -> str:
    """The name of a kernel, or "callable"; kernels of scikit-learn are in no set."""
    return "callable" if callable(kernel) else kernel


def check_arrays(prediction: Any, **arrays_by_name: Any) -> None:
    """Arrays of one package."""
    arrays = parts_of(prediction) | {
        name: array
        for name, array in arrays_by_name.items()
        if array is not None or name == "target"
    }
    for name, array in arrays.items():
        if not is_array_api_obj(array):
            raise TypeError(
                f"{name} must be an array of NumPy, torch or JAX; found {type(array).__name__}. "
                "Convert it."
            )
        real = ("bool", "integral", "real floating")
        is_number = name == "target" or array_namespace(array).isdtype(array.dtype, real)
        if not is_number or isinstance(array, np.ma.MaskedArray):
            raise TypeError(
                f"{name} must hold real numbers, none of them masked; found a "
                f"{type(array).__name__} of type {array.dtype}. Convert it."
            )
    first, *other_names = arrays
    for name in other_names:
        if array_namespace(arrays[first]) is not array_namespace(arrays[name]):
            kinds = [
                f"{type(arrays[k]).__module__}.{type(arrays[k]).__name__}" for k in (first, name)
            ]
            raise TypeError(
                f"{first} and {name} must be arrays of the same package; found {kinds[0]} and "
                f"{kinds[1]}. Convert one of them."
            )


def parts_of(prediction: Any) -> dict[str, Any]:
    """The arrays of a prediction, by the names that users know."""
    if isinstance(prediction, SampledForecast):
        fields = ("values", "parameters", "weight")
        arrays = {f"{name} of SampledForecast": vars(prediction)[name] for name in fields}
        return {name: array for name, array in arrays.items() if array is not None}
    if not isinstance(prediction, tuple):
        return {"prediction": prediction}
    if len(prediction) not in (2, 3):
        raise ValueError(
            "prediction must be an array of class scores, a tuple (mean, std) or (mean, std, "
            f"weight), or SampledForecast; found a tuple of {len(prediction)}. Pass means and "
            "standard deviations, and for mixtures weights."
        )
    return dict(zip(("mean", "std", "weight"), prediction, strict=False))


def check_batch(
    target: Array, sample_weight: Array | None = None, given: Array | None = None, *, least: int = 1
) -> None:
    """One entry for each sample, and enough samples."""
    if target.ndim != 1:
        raise _wrong_shape("target", target, "shape (n_samples,)", "Drop the other axes.")
    n = target.shape[0]
    if n < least:
        required = "sample" if least == 1 else "samples, as pairs of them are compared"
        raise ValueError(
            f"target must have at least {least} {required}; found {n}. Drop the last batch of an "
            "epoch if it is smaller (drop_last=True)."
        )
    for name, array, axes in (("sample_weight", sample_weight, (1,)), ("given", given, (1, 2))):
        if array is not None and (array.ndim not in axes or array.shape[0] != n):
            shape = "(n_samples,)" if axes == (1,) else "(n_samples,) or (n_samples, n_features)"
            rule = f"shape {shape} for the {n} samples of target"
            raise _wrong_shape(name, array, rule, "Pass one entry for each sample.")


def _wrong_shape(name: str, array: Array, rule: str, remedy: str) -> ValueError:
    return ValueError(f"{name} must have {rule}; found {tuple(array.shape)}. {remedy}")


def check_class_batch(prediction: Array, target: Array) -> None:
    """Scores of all classes for each sample, and labels that count from 0."""
    if not is_array_api_obj(prediction):
        raise TypeError(
            "prediction must be an array with scores of classes; found "
            f"{type(prediction).__name__}. Use distribution_matching_loss for forecasts of a "
            "number."
        )
    shape = tuple(prediction.shape)
    if len(shape) not in (1, 2) or shape[0] != target.shape[0] or 0 in shape:
        raise ValueError(
            f"prediction must have shape (n_samples, n_classes) or (n_samples,) for the "
            f"{target.shape[0]} samples of target; found {shape}. Flatten axes such as those of "
            "pixels first."
        )
    xp = array_namespace(target)
    kinds: tuple[str, ...]
    if len(shape) == 2 and shape[1] > 2:
        kinds, labels = ("integral",), f"integers 0, …, {shape[1] - 1} for {shape[1]} classes"
    else:
        kinds, labels = ("bool", "integral", "real floating"), "numbers 0 and 1 for two classes"
    if not xp.isdtype(target.dtype, kinds):
        raise ValueError(
            f"target must hold {labels}; found type {target.dtype}. Pass the indices of the "
            "classes; for forecasts of a number, pass a tuple (mean, std)."
        )


def check_forecast_batch(prediction: Any, target: Array, thresholds: Array | None) -> None:
    """Means and standard deviations, with weights of a mixture, or draws, for each sample."""
    n, arrays = target.shape[0], parts_of(prediction)
    first = next(iter(arrays.values()))
    for name, array in arrays.items():
        if isinstance(prediction, tuple) and len(prediction) == 2:
            if tuple(array.shape) != (n,):
                rule = f"shape (n_samples,) for the {n} samples of target"
                remedy = "Drop the other axes, with squeeze or by an index."
                raise _wrong_shape(name, array, rule, remedy)
            continue
        if array.ndim != 2 or array.shape[0] != n or 0 in array.shape:
            rule = f"two axes, the first of them for the {n} samples of target"
            member_name = (
                "draws" if isinstance(prediction, SampledForecast) else "components of the mixtures"
            )
            raise _wrong_shape(name, array, rule, f"Put the {member_name} on the second axis.")
        if array.shape[1] != first.shape[1] and name != "parameters of SampledForecast":
            rule = f"the shape {tuple(first.shape)} of {next(iter(arrays))}"
            raise _wrong_shape(name, array, rule, "Pass one entry for each of them.")
    if thresholds is not None and (thresholds.ndim != 1 or 0 in thresholds.shape):
        rule = "shape (n_thresholds,), with at least one"
        raise _wrong_shape("thresholds", thresholds, rule, "Pass a vector.")


def check_class_form(matching: Any, n_classes: int) -> None:
    """Options of a `Matching` that fit classes."""
    form, loss, class_kernel = matching.calibration, matching.loss, matching.class_kernel
    check_form(form, CLASS_FORMS)
    check_unused_options(matching, kernel=("rbf", "loss"), bandwidth=(None,), thresholds=(None,))
    _check_given(matching, needs_bandwidth=matching.given is not None and form != "group")
    has_losses = name_of(matching.kernel) == "loss"
    if (loss is None) == (form == "decision" or has_losses) or callable(loss):
        loss_text = "a callable" if callable(loss) else "None" if loss is None else "an array"
        raise ValueError(
            "loss must be given for calibration='decision' and kernel='loss', and for no other "
            f"form; found {loss_text}. Pass an array (n_actions, n_classes)."
        )
    if has_losses and (form == "top-label" or class_kernel is not None):
        raise ValueError(
            "kernel='loss' compares the losses of all classes; found calibration='top-label', or "
            "weights of classes. Use calibration='canonical', and weigh the losses."
        )
    if loss is not None and (loss.ndim != 2 or loss.shape[1] != n_classes or 0 in loss.shape):
        rule = f"shape (n_actions, n_classes) with {n_classes} classes"
        raise _wrong_shape("loss", loss, rule, "Its rows are actions.")
    if class_kernel is None:
        return
    if form in ("top-label", "marginal"):
        raise ValueError(
            f"class_kernel must be None for calibration={form!r}, which compares one "
            "class with the rest; found a matrix. Choose calibration='canonical'."
        )
    if tuple(class_kernel.shape) != (n_classes, n_classes):
        rule = f"shape (n_classes, n_classes) with {n_classes} classes"
        raise _wrong_shape("class_kernel", class_kernel, rule, "Put weights on its diagonal.")


def check_forecast_form(matching: Any, forecast: Distributions) -> None:
    """Options of a `Matching`, and a kernel, that fit forecasts of a number."""
    form, kernel, bandwidth = matching.calibration, name_of(matching.kernel), matching.bandwidth
    check_form(form, FORMS)
    _check_loss_of_numbers(form, kernel, matching.loss, forecast)
    if matching.class_kernel is not None:
        raise ValueError(
            "class_kernel must be None for forecasts of a number; found an array. Leave it out."
        )
    is_given_forecast = form in ("distribution", "local") and matching.given is None
    if is_given_forecast and forecast.parameters is None:
        raise ValueError(
            f"given must hold what the distributions depend on for calibration={form!r} with "
            "draws that have no parameters; found None. Pass features, or their parameters."
        )
    _check_given(matching, needs_bandwidth=form in ("distribution", "individual", "local"))
    needed_by = f"kernel={kernel!r}" if kernel in ("tanh", "thresholds") else None
    has_thresholds = form == "threshold" or (form == "decision" and matching.loss is None)
    if has_thresholds:
        needed_by = f"calibration={form!r}"
    if needed_by and matching.thresholds is None:
        raise ValueError(
            f"thresholds must be given for {needed_by}; found None. Pass quantiles of the training "
            "outcomes, or the thresholds of the decisions."
        )
    is_of_pits = form in PIT_FORMS
    if is_of_pits and kernel not in SMOOTH_KERNELS | {"callable"}:
        raise ValueError(
            f"kernel must be one of {', '.join(map(repr, sorted(SMOOTH_KERNELS)))} or a callable "
            f"for calibration={form!r}, which compares PITs; found {kernel!r}."
        )
    needs_cdf = is_of_pits or kernel == "thresholds" or has_thresholds
    if needs_cdf and forecast.cdf is None:
        raise ValueError(
            f"SampledForecast must have a cdf for calibration={form!r} and kernel={kernel!r}; "
            "found None. Pass the distribution functions, or compare outcomes with kernel='rbf'."
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


def _check_loss_of_numbers(form: str, kernel: str, loss: Any, forecast: Distributions) -> None:
    is_used = kernel == "loss" or (form == "decision" and loss is not None)
    if is_used != (loss is not None) or (is_used and not callable(loss)):
        loss_text = "a callable" if callable(loss) else "None" if loss is None else "an array"
        raise ValueError(
            "loss must be a callable of outcomes for kernel='loss', may be one for "
            "calibration='decision', and must be None otherwise for forecasts of a number; found "
            f"{loss_text}. Decisions whether an outcome exceeds something are given by thresholds."
        )
    if form == "decision" and loss is not None and forecast.deviation is None:
        raise ValueError(
            "calibration='decision' with a loss needs normal distributions or mixtures of them, "
            "whose best action is known; found draws, which would choose the action by their own "
            "luck. Pass means and standard deviations, without n_draws, or thresholds."
        )


def _check_given(matching: Any, *, needs_bandwidth: bool) -> None:
    """Refuse a condition that does not fit the form, or has no bandwidth."""
    form = matching.calibration
    check_condition(form, matching.given)
    if callable(matching.given_kernel):
        if matching.given_bandwidth is not None:
            raise ValueError(
                "given_bandwidth must be None for a callable given_kernel, which has its own; "
                f"found {matching.given_bandwidth!r}. Leave it out."
            )
    elif needs_bandwidth and matching.given_bandwidth is None:
        raise ValueError(
            f"given_bandwidth must be a number for calibration={form!r}; found None. Take "
            "the median distance of the training data, which does not change from batch to batch."
        )
