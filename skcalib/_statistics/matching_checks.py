"""The options of the distribution matching error, and the rules that they must satisfy."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np

from .._data import AnyData, ForecastData
from .._inputs.arrays import check_numbers, format_value, is_number
from .._inputs.options import refuse_unused
from .._inputs.scikit_learn import Count, Interval, StrOptions
from ..forecasts._base import MAX_NUMBER
from ..forecasts._decisions import DecisionLoss, as_loss
from .kernels import KERNELS, MIN_KERNEL_BANDWIDTH, check_kernel
from .squared_error import check_enough_for_estimation, check_has_pairs

# Forms that compare PITs with the uniform distribution.
PIT_FORMS = {"quantile", "threshold", "local"}

NEEDS_GIVEN = {"group", "individual"}

TAKES_GIVEN = NEEDS_GIVEN | {"distribution", "local"}

# Forms whose condition is numbers, which a kernel compares: of forecasts, and of classes.
NEAR_FORMS = {"distribution", "individual", "local"}
_NEAR_FORMS_OF_CLASSES = {"canonical", "distribution", "individual", "marginal", "top-label"}

# All forms, in annotations.
MatchingForm = Literal[
    "distribution",
    "quantile",
    "threshold",
    "marginal",
    "decision",
    "group",
    "individual",
    "local",
    "canonical",
    "top-label",
]
_FORMS = set(get_args(MatchingForm)) - {"canonical", "top-label"}
_CLASS_FORMS = set(get_args(MatchingForm)) - PIT_FORMS

# Kernels of decisions, which have finitely many features; see `matching_features`.
FEATURE_KERNELS = {"moments", "thresholds", "tanh", "loss"}

SMOOTH_KERNELS = {"rbf", "laplacian", "energy"}

# Kernels that have a bandwidth.
WITH_BANDWIDTH = {"rbf", "laplacian", "tanh"}

# Squares of smaller bandwidths vanish.
_BANDWIDTH: list = [
    StrOptions({"median"}),
    Interval(Real, MIN_KERNEL_BANDWIDTH, None, closed="left"),
]

MATCHING_CONSTRAINTS: dict = {
    "kernel": [StrOptions(SMOOTH_KERNELS | FEATURE_KERNELS), callable],
    "bandwidth": _BANDWIDTH,
    "given_kernel": [StrOptions({*KERNELS, "wasserstein"}), callable],
    "given_bandwidth": _BANDWIDTH,
    "n_components": [Count(1)],
}

# Terms of the features of larger outcomes have squares that overflow.
_MAX_FEATURE = 1e70
_MAX_OF_MOMENTS = 1e35

# The standard deviation of a forecast divided by the bandwidth of "tanh".
_MAX_STD_RATIO = 1e150

_SOME_PITS = np.linspace(0, 1, 11)


def name_of(kernel: Any) -> str:
    """The name of a kernel, or "callable"; kernels of scikit-learn are in no set."""
    return "callable" if callable(kernel) else kernel


@dataclass(frozen=True, kw_only=True)
class MatchingOptions:
    """The options of the error, with the defaults of the metric."""

    calibration: str = "distribution"
    loss: Any = None
    thresholds: Any = None
    kernel: Any = "rbf"
    bandwidth: Any = "median"
    given_kernel: Any = "rbf"
    given_bandwidth: Any = "median"
    estimation: str = "unbiased"
    method: str = "exact"
    n_components: int = 200
    seed: int | None = None

    @property
    def kernel_name(self) -> str:
        """The name of the kernel on outcomes, or "callable"."""
        return name_of(self.kernel)

    @property
    def is_of_pits(self) -> bool:
        """True if PITs are compared with the uniform distribution, not outcomes with forecasts."""
        return self.calibration in PIT_FORMS

    @property
    def reads_thresholds(self) -> bool:
        """True if `thresholds` are those of the kernel."""
        return self.kernel == "tanh"

    @property
    def has_decision_kernel(self) -> bool:
        """True if the kernel is one of decisions, with finitely many features."""
        return self.kernel_name in FEATURE_KERNELS

    @property
    def step_thresholds(self) -> np.ndarray:
        """The thresholds of "tanh", of which one may be a number alone, (L,)."""
        values = [self.thresholds] if is_number(self.thresholds) else self.thresholds
        return check_numbers(values, "thresholds", ndim=1, rows="at least one threshold")

    def find_uses(self, given: Any, is_of_classes: bool) -> dict[str, bool]:
        """Return for each option whether it has an effect beside the others."""
        form, has_losses = self.calibration, self.kernel == "loss"
        is_near = form in (_NEAR_FORMS_OF_CLASSES if is_of_classes else NEAR_FORMS)
        is_near &= not (is_of_classes and has_losses and form == "marginal")
        is_random = is_near or self.kernel == "laplacian"
        is_rough = self.kernel == "rbf" and not self.is_of_pits  # fewer frequencies, none random
        of_numbers = {
            "method": is_random or is_rough,
            "n_components": is_random and self.method == "fourier",
            "bandwidth": self.kernel_name in WITH_BANDWIDTH,
            "thresholds": self.reads_thresholds,
        }
        return {name: is_read and not is_of_classes for name, is_read in of_numbers.items()} | {
            "given": form in TAKES_GIVEN,
            "loss": form == "decision" or has_losses,
            "given_kernel": is_near,
            # with features, a number leaves them in their units for any kernel
            "given_bandwidth": is_near
            and not (is_of_classes and given is None and callable(self.given_kernel)),
        }

    @property
    def losses(self) -> list[DecisionLoss]:
        """One loss, or a list of them; the rows of a matrix are no list of losses."""
        loss = self.loss
        is_list = isinstance(loss, list | tuple) and not (len(loss) and np.ndim(loss[0]) == 1)
        return [as_loss(function) for function in (loss if is_list else [loss])]


def check_matching_options(options: MatchingOptions, given: Any, *, is_of_classes: bool) -> None:
    """The rules of the metric and of the losses alike: options that fit each other and the form."""
    _check_form(options.calibration, is_of_classes)
    _check_given(options.calibration, given)
    _check_kernel(options, is_of_classes)
    uses = options.find_uses(given, is_of_classes)
    unused = [name for name, is_read in uses.items() if not is_read]
    kind = "class probabilities" if is_of_classes else "forecasts of a number"
    names = ("calibration", "kernel", "given_kernel", "method")
    cause = ", ".join(f"{name}={format_value(getattr(options, name))}" for name in names)
    defaults = {**vars(type(options)()), "given": None}
    refuse_unused({**vars(options), "given": given}, defaults, unused, f"{kind} with {cause}")


def _check_form(calibration: str, is_of_classes: bool) -> None:
    """Refuse a form of calibration that is for classes only, or for numbers only."""
    forms = _CLASS_FORMS if is_of_classes else _FORMS
    if calibration in forms:
        return
    expected, actual, remedy = "classes", "forecasts of a number", "class probabilities"
    if is_of_classes:
        expected, actual, remedy = actual, remedy, "a forecast (see skcalib.forecasts)"
    raise ValueError(
        f"calibration={calibration!r} is for {expected}; found {actual}. Choose among "
        f"{', '.join(map(repr, sorted(forms)))}, or pass {remedy}."
    )


def _check_kernel(options: MatchingOptions, is_of_classes: bool) -> None:
    """Refuse a kernel that cannot compare what the form of calibration compares."""
    form, is_random = options.calibration, options.method == "fourier" and not is_of_classes
    compared, kernels = "outcomes", {"callable", *SMOOTH_KERNELS, *FEATURE_KERNELS}
    if is_of_classes:  # "rbf", the default, stands for whether labels are equal
        compared, kernels = "labels", {"rbf"} if form == "top-label" else {"rbf", "loss"}
    elif options.is_of_pits:
        compared, kernels = "PITs", {"callable", *SMOOTH_KERNELS}
    if is_random:  # whose frequencies are known
        kernels -= {"callable", "energy"} | ({"laplacian"} if options.is_of_pits else set())
    if options.kernel_name not in kernels:
        names = " or ".join(map(repr, sorted(kernels))).replace("'callable'", "a callable")
        raise ValueError(
            f"kernel must be {names} with method="
            f"{options.method!r} for calibration={form!r}, which compares {compared}; found "
            f"{format_value(options.kernel)}. Choose one of these, or leave it out."
        )


def check_matching(data: AnyData, options: MatchingOptions) -> None:
    """Refuse options that do not fit each other or the data."""
    calibration, given = options.calibration, data.given
    check_matching_options(options, given, is_of_classes=not data.is_forecast)
    if not data.is_forecast:
        check_enough_for_estimation(data, options.estimation)
    _check_given_values(data, options)
    kernel, loss = options.kernel_name, options.loss
    needs = {"loss": calibration == "decision" or kernel == "loss", "thresholds": kernel == "tanh"}
    for name, is_needed in needs.items():
        if is_needed and getattr(options, name) is None:
            remedy = "a number, for the decision whether outcomes exceed it, or losses of actions"
            if name == "thresholds":
                remedy = "the outcomes around which the kernel rises"
            raise ValueError(
                f"{name} must be given for calibration={calibration!r} and kernel={kernel!r}; "
                f"found None. Pass {remedy}."
            )
    if isinstance(loss, list | tuple) and not loss:
        raise ValueError("loss must hold at least one loss; found an empty list. Pass a number.")
    if data.is_forecast:
        _check_forecast_options(data, options)
    for decision in [] if options.loss is None else options.losses:
        if data.is_forecast:
            decision.check_is_of_numbers()
        else:
            decision.of_classes(data.classes, len(data.classes))


def _check_given_values(data: AnyData, options: MatchingOptions) -> None:
    """Refuse values of `given` that the form cannot be conditioned on."""
    calibration, given = options.calibration, data.given
    if options.given_kernel == "wasserstein" and (given is not None or not data.is_forecast):
        actual = "class probabilities" if given is None else "an array `given`"
        raise ValueError(
            f"given_kernel='wasserstein' compares forecasts of a number; found {actual}. Use "
            "another kernel, such as 'total-variation'."
        )
    if given is None:
        return
    if calibration != "group" and given.dtype.kind not in "biuf":
        raise ValueError(
            f"given must hold numbers for calibration={calibration!r}; found type {given.dtype}. "
            "Use calibration='group' for labels of groups."
        )
    if calibration == "group" and options.estimation == "unbiased":
        n_groups = len(np.unique(given, axis=0 if given.ndim > 1 else None))
        if n_groups == len(given) > 1:
            raise ValueError(
                "given must put several samples into a group for calibration='group', which "
                f"compares samples of a group; found {n_groups} groups of one sample each. Pass "
                "a column that is no id, or calibration='individual' for continuous numbers."
            )


def _check_given(calibration: str, given: Any) -> None:
    """Demand an array for forms that have no condition of their own."""
    if given is None and calibration in NEEDS_GIVEN:
        required = (
            "the group of each sample" if calibration == "group" else "features (n_samples, d)"
        )
        raise ValueError(
            f"given must hold {required} for calibration={calibration!r}; found None. Pass it, or "
            "choose calibration='distribution', which is conditioned on the forecast."
        )


def _check_forecast_options(data: ForecastData, options: MatchingOptions) -> None:
    kernel, bandwidth = options.kernel, options.bandwidth
    if not options.is_of_pits:
        most = _MAX_OF_MOMENTS if kernel == "moments" else MAX_NUMBER
        largest = np.abs(check_numbers(data.value, "y_true", most=most)).max()
        if 0 < largest < 1 / MAX_NUMBER:
            raise ValueError(
                f"y_true must reach {1 / MAX_NUMBER:g} in absolute value, so that distances can be "
                f"squared; found at most {largest:g}. Measure outcomes and forecasts in a smaller "
                "unit."
            )
    check_has_pairs(options.estimation, len(data.weight))
    if callable(kernel):
        check_kernel(kernel, (_SOME_PITS if options.is_of_pits else data.value)[:, None])
    if kernel == "tanh" and bandwidth == "median":
        raise ValueError(
            "bandwidth must be a number with kernel='tanh': the distance from the threshold, in "
            "the units of the outcome, over which the decision changes; found 'median'. Pass "
            "bandwidth=1.0, or less for a sharper step."
        )
    if options.has_decision_kernel:
        _check_decision_kernel(data, options)
    if options.method == "fourier" and callable(options.given_kernel):
        raise ValueError(
            "method='fourier' needs a named given_kernel, whose frequencies are known; found "
            f"given_kernel={options.given_kernel!r}. Use method='exact'."
        )


def _check_decision_kernel(data: ForecastData, options: MatchingOptions) -> None:
    """Refuse quantiles where expected values are needed, and what a kernel cannot take."""
    kernel = options.kernel
    if kernel != "thresholds" and data.forecast._has_quantiles_only:
        raise ValueError(
            f"kernel={kernel!r} is not known for this forecast: a QuantileForecast tells the "
            "probabilities of its cells, and no expected values. Use kernel='thresholds', or an "
            "EnsembleForecast."
        )
    if kernel == "loss":
        for decision in options.losses:
            check_size_of_losses(decision.at_outcomes(data.value))


def check_moments(mean: np.ndarray, std: np.ndarray) -> None:
    """Refuse means and standard deviations whose squares overflow."""
    for name, values in (("means", mean), ("standard deviations", std)):
        if not (np.abs(values) <= _MAX_OF_MOMENTS).all():  # NaN too
            row = int(np.argmin(np.abs(values) <= _MAX_OF_MOMENTS))
            raise ValueError(
                f"kernel='moments' needs forecasts whose {name} are finite and at most "
                f"{_MAX_OF_MOMENTS:g}; found {values[row]:g} in row {row}. Use "
                "kernel='thresholds'."
            )


def check_size_of_losses(losses: np.ndarray) -> None:
    """Refuse losses whose products overflow when squared."""
    largest = np.abs(losses).max()
    if largest > _MAX_FEATURE:
        raise ValueError(
            f"loss must be at most {_MAX_FEATURE:g} in absolute value, so that products can be "
            f"squared; found {largest:g}. Measure it in a larger unit."
        )


def check_width_of_steps(scale: float, variance: np.ndarray) -> None:
    """Refuse forecasts that are too wide for the bandwidth of "tanh"."""
    widest = float(np.sqrt(variance.max()))
    if widest > _MAX_STD_RATIO * scale:
        raise ValueError(
            f"bandwidth must be at least {1 / _MAX_STD_RATIO:g} times the standard deviations of "
            f"the forecasts with kernel='tanh'; found {scale:g} and {widest:g}. Pass a larger one, "
            "or use kernel='loss', whose step is sharp."
        )
