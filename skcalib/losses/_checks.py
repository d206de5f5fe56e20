"""Checks of a batch that look at no values, so that losses can be compiled."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from .._inputs.arrays import format_value
from .._inputs.scikit_learn import Function, Interval, LensNames, validate_params
from .._numerics.array_api import Array
from .._statistics.matching_checks import WITH_BANDWIDTH, MatchingOptions, check_matching_options
from ._predictions import Distributions, SampledForecast

POSITIVE = Interval(Real, 0, None, closed="neither")

# The arguments that have the same rule in all losses.
LOSS_CONSTRAINTS: dict = {"multi_class": [LensNames({"confidence", "classwise"})]}


def validate_loss_options(constraints: dict) -> Callable[[Function], Function]:
    """`validate_params` for losses. Bad values make them NaN without a warning, as in torch."""
    judge = validate_params(LOSS_CONSTRAINTS | constraints)
    return lambda loss: judge(np.errstate(all="ignore")(loss))


def check_arrays(prediction: Any, **arrays_by_name: Any) -> None:
    """Arrays of one package."""
    arrays = parts_of(prediction) | {
        name: array
        for name, array in arrays_by_name.items()
        if array is not None or name == "target"
    }
    for name, array in arrays.items():
        if not is_array_api_obj(array) or getattr(array, "is_sparse", isinstance(array, type)):
            raise TypeError(
                f"{name} must be a dense array of NumPy, torch or JAX; found "
                f"{type(array).__name__}. Convert it."
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
        if array is not None and (
            array.ndim not in axes or array.shape[0] != n or 0 in array.shape
        ):
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


@dataclass(frozen=True, kw_only=True)
class MatchingLossOptions(MatchingOptions):
    """The options of the loss: bandwidths are numbers, as a batch must not choose them."""

    given: Array | None = None
    bandwidth: float | None = None
    given_bandwidth: float | None = None
    thresholds: Array | None = None
    class_kernel: Array | None = None
    detach_given: bool = False

    @property
    def has_thresholds(self) -> bool:
        """True if the form of calibration is about thresholds of outcomes."""
        is_decision = self.calibration == "decision" and self.loss is None
        return self.calibration == "threshold" or is_decision

    @property
    def reads_thresholds(self) -> bool:
        return self.has_thresholds or self.kernel_name in ("tanh", "thresholds")

    def find_uses(self, given: Any, is_of_classes: bool) -> dict[str, bool]:
        uses = super().find_uses(given, is_of_classes)
        compares_all = self.calibration not in ("top-label", "marginal") and self.kernel != "loss"
        is_named = not callable(self.given_kernel)
        return uses | {
            "class_kernel": is_of_classes and compares_all,
            "given_bandwidth": uses["given_kernel"] and is_named,
        }

    def check_classes(self, n_classes: int) -> None:
        """Refuse options that do not fit classes."""
        form, loss, class_kernel = self.calibration, self.loss, self.class_kernel
        check_matching_options(self, self.given, is_of_classes=True)
        self._check_given_bandwidth(is_needed=self.given is not None and form != "group")
        is_needed = form == "decision" or self.kernel_name == "loss"
        if (loss is None and is_needed) or callable(loss):
            raise ValueError(
                "loss must be given for calibration='decision' or kernel='loss'; found "
                f"{format_value(loss)}. Pass an array (n_actions, n_classes)."
            )
        if loss is not None and (loss.ndim != 2 or loss.shape[1] != n_classes or 0 in loss.shape):
            rule = f"shape (n_actions, n_classes) with {n_classes} classes"
            raise _wrong_shape("loss", loss, rule, "Its rows are actions.")
        if class_kernel is not None and tuple(class_kernel.shape) != (n_classes, n_classes):
            rule = f"shape (n_classes, n_classes) with {n_classes} classes"
            raise _wrong_shape("class_kernel", class_kernel, rule, "Put weights on its diagonal.")

    def check_forecasts(self, forecast: Distributions) -> None:
        """Refuse options, and a kernel, that do not fit forecasts of a number."""
        form, kernel = self.calibration, self.kernel_name
        check_matching_options(self, self.given, is_of_classes=False)
        self._check_loss_of_numbers(forecast)
        is_given_forecast = form in ("distribution", "local") and self.given is None
        if is_given_forecast and forecast.parameters is None:
            raise ValueError(
                f"given must hold what the distributions depend on for calibration={form!r} with "
                "draws that have no parameters; found None. Pass features, or their parameters."
            )
        self._check_given_bandwidth(is_needed=form in ("distribution", "individual", "local"))
        if self.thresholds is None and self.reads_thresholds:
            option = f"calibration={form!r}" if self.has_thresholds else f"kernel={kernel!r}"
            raise ValueError(
                f"thresholds must be given for {option}; found None. Pass quantiles of the "
                "training outcomes, or the thresholds of the decisions."
            )
        needs_cdf = self.is_of_pits or kernel == "thresholds" or self.has_thresholds
        if needs_cdf and forecast.cdf is None:
            raise ValueError(
                f"SampledForecast must have a cdf for calibration={form!r} and kernel={kernel!r}; "
                "found None. Pass the distribution functions, or compare outcomes with "
                "kernel='rbf'."
            )
        if kernel in WITH_BANDWIDTH and self.bandwidth is None and not self.is_of_pits:
            raise ValueError(
                f"bandwidth must be a number for kernel={kernel!r} on outcomes; found None. Take "
                "the median distance of the training outcomes, which does not change from batch to "
                "batch."
            )

    def _check_loss_of_numbers(self, forecast: Distributions) -> None:
        loss, is_decision = self.loss, self.calibration == "decision"
        if not callable(loss) and (loss is not None or self.kernel_name == "loss"):
            raise ValueError(
                "loss must be a callable of outcomes for kernel='loss', and may be one for "
                f"calibration='decision'; found {format_value(loss)}. Decisions whether an "
                "outcome exceeds something are given by thresholds."
            )
        if is_decision and loss is not None and forecast.deviation is None:
            raise ValueError(
                "calibration='decision' with a loss needs normal distributions or mixtures of "
                "them, whose best action is known; found draws, which would choose the action by "
                "their own luck. Pass means and standard deviations, without n_draws, or "
                "thresholds."
            )

    def _check_given_bandwidth(self, *, is_needed: bool) -> None:
        """Demand a bandwidth of a named kernel."""
        if is_needed and self.given_bandwidth is None and not callable(self.given_kernel):
            raise ValueError(
                f"given_bandwidth must be a number for calibration={self.calibration!r}; found "
                "None. Take the median distance of the training data, which does not change from "
                "batch to batch."
            )
