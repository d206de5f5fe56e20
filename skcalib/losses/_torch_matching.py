"""Distribution matching as a module of torch."""

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution

from .._inputs.arrays import ArrayLike, check_numbers
from .._inputs.options import select_arguments
from .._inputs.scikit_learn import Interval, StrOptions, get_literal_constraints
from .._numerics.array_api import to_numpy
from .._statistics.matching_checks import (
    NEAR_FORMS,
    PIT_FORMS,
    WITH_BANDWIDTH,
    MatchingForm,
    name_of,
)
from .._statistics.matching_given import LEVELS, median_of, standardization
from ._checks import POSITIVE
from ._matching import MATCHING_LOSS_CONSTRAINTS, MatchingLoss, distribution_matching_loss
from ._modules import Penalty
from ._predictions import SampledForecast, class_predictions
from ._tensors import check_finite_tensor, class_batch, is_all_true, number_batch
from ._torch_forecasts import N_DRAWS, check_moment_range, check_user_values, to_distributions

_MODULE_CONSTRAINTS: dict = {
    **get_literal_constraints(distribution_matching_loss),
    **MATCHING_LOSS_CONSTRAINTS,
    "bandwidth": [StrOptions({"median"}), POSITIVE],
    "given_bandwidth": [StrOptions({"median"}), POSITIVE],
    "ignore_index": [Integral],
    "n_draws": [Interval(Integral, 1, None, closed="left"), None],
    "gumbel_temperature": [POSITIVE],
}

# Buffers that hold what `fit` learns.
_STANDARDIZATION = ("centre", "factor", "median")
_LEARNED = (
    "outcome_bandwidth",
    *(
        f"{variable}_{statistic}"
        for variable in ("given", "parameter")
        for statistic in _STANDARDIZATION
    ),
)


class DistributionMatchingLoss(Penalty):
    r"""Distribution matching error of a batch, for classes and for forecasts of a number.

    To be added to a proper loss [1]_. The unbiased estimate is 0 on average for calibrated models;
    it can be negative, and must not be clipped.

    Parameters
    ----------
    calibration : {"distribution", "quantile", "threshold", "marginal", "decision", "group", \
            "individual", "local", "canonical", "top-label"}, default="distribution"
        The form of calibration, as for :func:`skcalib.metrics.distribution_matching_error`. For
        classes, "distribution" is "canonical". For numbers it conditions on mean and log standard
        deviation (see the notes).

    kernel : {"rbf", "laplacian", "energy", "moments", "tanh", "thresholds", "loss"} or callable, \
            default="rbf"
        Kernel on the outcomes, or on probability integral transforms (PITs), as for
        :func:`skcalib.losses.distribution_matching_loss`. For classes, leave out all but "loss".

    bandwidth : "median" or float, default="median"
        Bandwidth of `kernel` in the units of the outcomes; "median" is the median distance of the
        training outcomes (at least a tenth of the root mean square distance), which `fit` computes,
        and for PITs 0.2236. Leave it out for classes.

    given_kernel : {"rbf", "laplacian", "exponential", "total-variation"} or callable, default="rbf"
        Kernel on what is conditioned on, if that is numbers. A callable takes tensors of shapes (a,
        d) and (b, d).

    given_bandwidth : "median" or float, default="median"
        Bandwidth of `given_kernel`, in the units of what is passed. "median" is the median distance
        of the training data after standardization, and 0.4 for probabilities of classes. Callables
        have none; "median" standardizes for them, and a number does not.

    thresholds : array-like of shape (n_thresholds,), default=None
        For ``calibration="threshold"`` and "decision" of a number, and for the kernels "tanh" and
        "thresholds". By default `fit` takes 64 quantiles of the training outcomes.

    loss : array-like of shape (n_actions, n_classes), or callable, default=None
        For ``kernel="loss"`` and ``calibration="decision"``: the loss of each action in each class,
        or, for a number, a function of outcomes of shape (m,) that returns the losses of all
        actions, of shape (m, n_actions).

    class_weight : array-like of shape (n_classes,), default=None
        How much the residuals of each class count.

    input_type : {"logits", "probabilities"}, default="logits"
        What predictions of classes hold.

    ignore_index : int, default=-100
        Samples with this target are left out, for classes.

    n_draws : int, default=None
        Draws from each distribution, for a mixture from each component. By default 16 in all, and
        none for classes, normal distributions and their mixtures, unless `kernel` is a callable.

    gumbel_temperature : float, default=1.0
        For draws of classes, which are one-hot (straight-through Gumbel-softmax): the lower, the
        less biased and the noisier their gradients.

    detach_given : bool, default=False
        Whether what is conditioned on counts as constant, through which no gradients flow.

    estimation : {"unbiased", "biased"}, default="unbiased"
        "unbiased" averages over all pairs of different samples; "biased" also pairs each sample
        with itself. Only "unbiased" stays unbiased when forecasts are drawn.

    See Also
    --------
    skcalib.losses.distribution_matching_loss : The function, with its formula.
    skcalib.metrics.distribution_matching_error : The metric, for any number of samples.

    Notes
    -----
    Call it with predictions and targets. Predictions of classes are tensors; those of a number a
    tuple of means and standard deviations, or a distribution of torch. Normal ones and mixtures of
    them (``MixtureSameFamily``) have a closed form. Others are drawn from with ``rsample``, or with
    ``sample`` and the score function. "quantile", "threshold" and "local" take their ``cdf`` and
    need no draws.

    For a number, "distribution" compares forecasts of similar mean and standard deviation and is
    blind to their shape: mixtures that are skewed to the left and to the right look alike, and
    their errors can cancel. Pass what tells them apart as `given`, such as all parameters.

    `fit` sets bandwidths once, as buffers that are saved with the state.

    The cost is that of the function. Bad values, such as NaN, labels out of range or standard
    deviations that are not positive, raise errors. Half precision is computed in single precision.

    References
    ----------
    .. [1] Marx, Zalouk and Ermon (2023). Calibration by Distribution Matching. NeurIPS.
       :arxiv:`2310.20211`

    Examples
    --------
    >>> import torch
    >>> from skcalib.torch import DistributionMatchingLoss
    >>> logits = torch.tensor([3.0, 3.0, 3.0, 3.0], requires_grad=True)
    >>> penalty = DistributionMatchingLoss("canonical")
    >>> round(penalty(logits, torch.tensor([1, 1, 0, 0])).item(), 2)  # 95 % sure, 50 % right
    0.24
    """

    def __init__(
        self,
        calibration: MatchingForm = "distribution",
        *,
        kernel: str | Callable = "rbf",
        bandwidth: str | float = "median",
        given_kernel: str | Callable = "rbf",
        given_bandwidth: str | float = "median",
        thresholds: ArrayLike | None = None,
        loss: ArrayLike | Callable | None = None,
        class_weight: ArrayLike | None = None,
        input_type: Literal["logits", "probabilities"] = "logits",
        ignore_index: int = -100,
        n_draws: int | None = None,
        gumbel_temperature: float = 1.0,
        detach_given: bool = False,
        estimation: Literal["unbiased", "biased"] = "unbiased",
    ) -> None:
        options = select_arguments(locals(), _MODULE_CONSTRAINTS)
        super().__init__(_MODULE_CONSTRAINTS, **options)
        if class_weight is not None and calibration in ("top-label", "marginal"):
            raise ValueError(
                f"class_weight must be None for calibration={calibration!r}, which compares one "
                "class with the rest; found weights. Choose calibration='canonical'."
            )
        self.register_buffer("thresholds", _constant("thresholds", thresholds, 1))
        if callable(loss):
            self.loss = loss
        else:
            self.register_buffer("loss", _constant("loss", loss, 2))
        self.register_buffer("class_weight", _constant("class_weight", class_weight, 1))
        self._learns_thresholds = thresholds is None
        for name in _LEARNED:
            self.register_buffer(name, None)

    def fit(
        self,
        target: ArrayLike | Tensor,
        given: ArrayLike | Tensor | None = None,
        prediction: Any = None,
    ) -> Self:
        """Take bandwidths and thresholds from the training data.

        Parameters
        ----------
        target : array-like of shape (n_samples,)
            Outcomes of the training data. For classes `fit` is only needed with `given`.

        given : array-like of shape (n_samples, n_features) or (n_samples,), default=None
            What will be conditioned on.

        prediction : tuple of two tensors, or distribution of torch, default=None
            Forecasts for the training data, as those that will be conditioned on with
            ``calibration="distribution"`` or "local". By default their means are expected to vary
            as much as the outcomes, and the bandwidth is 1.

        Returns
        -------
        self : DistributionMatchingLoss
            The loss.
        """
        device = target.device if isinstance(target, Tensor) else None
        outcome = _training_array("target", target, ndim=1)
        n, column = len(outcome), outcome[:, None]
        share = np.full(n, 1 / n)
        self.outcome_bandwidth = _buffer(median_of(column, share, "laplacian"), device)
        if self._learns_thresholds:
            self.thresholds = _buffer(np.quantile(outcome, LEVELS), device)
        # means of forecasts are expected to vary as the outcomes do
        (centre,), (spread,) = standardization(column, share)
        factor = 1.0 if np.isinf(spread) else 1 / spread
        self._hold("parameter", device, np.array([centre, 0.0]), np.array([factor, 1.0]), 1)
        if prediction is not None:
            self._fit_standardization(
                "parameter", _parameters_of(prediction, torch.as_tensor(outcome)), device
            )
        if given is not None and self.calibration in NEAR_FORMS:
            self._fit_standardization(
                "given", _training_array("given", given, n).reshape(n, -1), device
            )
        return self

    def _fit_standardization(self, variable: str, points: np.ndarray, device: Any) -> None:
        """Hold the standardization of points (n, d), and their median distance after it."""
        share = np.full(len(points), 1 / len(points))
        centre, spread = standardization(points, share)
        median = 1.0
        if not callable(self.given_kernel):
            median = median_of((points - centre) / spread, share, self.given_kernel)
        self._hold(variable, device, centre, 1 / spread, median)

    def _hold(self, variable: str, device: Any, *values: Any) -> None:
        for statistic, value in zip(_STANDARDIZATION, values, strict=True):
            setattr(self, f"{variable}_{statistic}", _buffer(value, device))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        for name in (*_LEARNED, "thresholds"):  # buffers of which it is not known what they hold
            value = state_dict.get(prefix + name)
            if value is not None and getattr(self, name) is None:
                setattr(self, name, torch.empty_like(value))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _error(self, prediction: Any, batch: Any) -> Tensor:
        if isinstance(prediction, tuple | list | SampledForecast | Distribution):
            return self._error_of_numbers(prediction, batch)
        return self._error_of_classes(prediction, batch)

    def _error_of_classes(self, prediction: Tensor | str, batch: Any) -> Tensor:
        prediction, batch = class_batch(prediction, batch, self.input_type, self.ignore_index)
        condition = self._condition(batch.given, prediction.dtype)
        classes = class_predictions(prediction, batch.target, self.input_type)
        class_kernel = None
        if self.class_weight is not None:
            class_kernel = torch.diag(self.class_weight)
            if len(self.class_weight) != classes.proba.shape[1]:
                raise ValueError(
                    f"class_weight must have one entry for each of the {classes.proba.shape[1]} "
                    f"classes; found {len(self.class_weight)}. Pass 1 for those without a weight."
                )
        if self.n_draws is not None:
            score = classes.log_proba.expand(self.n_draws, *classes.log_proba.shape)
            draws = torch.nn.functional.gumbel_softmax(score, self.gumbel_temperature, hard=True)
            classes = classes._replace(drawn_labels=draws.mean(dim=0))
        bandwidth = None if self.bandwidth == "median" else self.bandwidth
        matching = self._matching(**condition, bandwidth=bandwidth, class_kernel=class_kernel)
        return matching.evaluate_classes(classes, batch.sample_weight)

    def _error_of_numbers(self, prediction: Any, batch: Any) -> Tensor:
        kernel, form = name_of(self.kernel), self.calibration
        n_draws, needs_draws = self.n_draws, form not in PIT_FORMS and kernel != "thresholds"
        if n_draws is None and kernel == "callable" and self.loss is None:
            n_draws = N_DRAWS  # cheaper than the nodes of pairs, and unbiased
        distributions = to_distributions(
            prediction, batch.target, n_draws=n_draws, needs_draws=needs_draws
        )
        batch = number_batch(batch, distributions.dtype)
        if kernel == "moments":
            check_moment_range(batch.target, *distributions.feature_means("moments", None, None))
        is_given_forecast = form in ("distribution", "local")
        parameters = distributions.parameters if is_given_forecast else None
        options = self._condition(batch.given, distributions.dtype, parameters)
        if self._matching().reads_thresholds:
            thresholds = self._standardization("thresholds", "thresholds=None", "quantiles")
            options["thresholds"] = thresholds.to(batch.target)
        matching = self._matching(**options, bandwidth=self._bandwidth())
        return matching.evaluate_forecasts(distributions, batch.target, batch.sample_weight)

    def _matching(self, **batch_options: Any) -> MatchingLoss:
        """The error with the options that depend on the batch, and those of the module."""
        names = ("calibration", "kernel", "given_kernel", "loss", "detach_given", "estimation")
        options = {name: getattr(self, name) for name in names}
        for name, value in options.items():
            if callable(value):
                options[name] = partial(check_user_values, name, value)
        options["thresholds"] = None if self._learns_thresholds else self.thresholds
        return MatchingLoss(**options | batch_options)

    def _bandwidth(self) -> float | None:
        if self.bandwidth != "median":
            return self.bandwidth
        if self.calibration in PIT_FORMS or name_of(self.kernel) not in WITH_BANDWIDTH:
            return None
        median = self._standardization(
            "outcome_bandwidth", "bandwidth='median'", "the median distance"
        )
        return float(median)

    def _condition(
        self, given: Any, dtype: Any, parameters: Tensor | None = None
    ) -> dict[str, Any]:
        """The points that the error is conditioned on, and the bandwidth of the kernel on them."""
        variable, points = ("given", given) if given is not None else ("parameter", parameters)
        bandwidth = None if self.given_bandwidth == "median" else self.given_bandwidth
        if bandwidth is not None or points is None or self.calibration not in NEAR_FORMS:
            bandwidth = None if callable(self.given_kernel) else bandwidth
            return {"given": given, "given_bandwidth": bandwidth}
        centre, factor, median = (
            self._standardization(
                f"{variable}_{statistic}", "given_bandwidth='median'", "the median distance"
            )
            for statistic in _STANDARDIZATION
        )
        points = points.reshape(len(points), -1).to(dtype)
        if points.shape[1] != len(centre):
            raise ValueError(
                f"given must have the {len(centre)} features that fit saw; found {points.shape[1]}."
            )
        median = None if callable(self.given_kernel) else float(median)
        standardized = (points - centre.to(points)) * factor.to(points)
        return {"given": standardized, "given_bandwidth": median}

    def _standardization(self, name: str, option: str, variable: str) -> Tensor:
        value = getattr(self, name)
        if value is None:
            passed = "target and given" if name.startswith("given") else "target"
            raise ValueError(
                f"{option} stands for {variable} of the training data, which are not known yet. "
                f"Call fit with the {passed} of the training data first, or pass numbers."
            )
        if not is_all_true(torch.isfinite(value) & ((value != 0) | (value.ndim > 0))):
            raise ValueError(
                f"{name} must be finite and not 0; found other numbers in {value.dtype}. Keep this "
                "module in single or double precision, which takes predictions of any."
            )
        return value


def _buffer(values: np.ndarray | float, device: Any) -> Tensor:
    return torch.as_tensor(values, dtype=torch.get_default_dtype(), device=device)


def _training_array(
    name: str, values: ArrayLike | Tensor, n: int | None = None, ndim: int | None = None
) -> np.ndarray:
    """Finite numbers, (n,) or (n, d), in double precision."""
    array = check_numbers(to_numpy(values), name, ndim=ndim)
    n_rows = array.shape[0] if array.ndim in (1, 2) else 0
    if n_rows < 2 or n_rows != (n or n_rows):
        raise ValueError(
            f"{name} must have one row for each of the {n or 'training'} samples, at least 2; "
            f"found shape {array.shape}."
        )
    return array


def _parameters_of(prediction: Any, target: Tensor) -> np.ndarray:
    """Mean and log standard deviation of training data, (n, 2)."""
    parameters = to_distributions(prediction, target, needs_draws=False).parameters
    if parameters is None:
        raise ValueError(
            "prediction must consist of distributions with a mean and a standard deviation; found "
            "others. Pass what describes them as given."
        )
    return parameters.detach().cpu().to(torch.float64).numpy()


def _constant(name: str, values: ArrayLike | Tensor | None, ndim: int) -> Tensor | None:
    """A tensor of finite numbers, with `ndim` axes."""
    if values is None:
        return None
    if not isinstance(values, Tensor | np.ndarray):
        values = check_numbers(values, name).tolist()
    tensor = torch.as_tensor(values)
    if not tensor.is_floating_point():
        tensor = tensor.to(torch.get_default_dtype())
    if tensor.ndim != ndim or tensor.numel() == 0:
        raise ValueError(
            f"{name} must have {ndim} {'axis' if ndim == 1 else 'axes'} and some entries; found "
            f"shape {tuple(tensor.shape)}."
        )
    check_finite_tensor(name, tensor, "Replace them by numbers.")
    if name == "class_weight" and bool((tensor < 0).any()):
        raise ValueError(
            f"class_weight must be non-negative; found {tensor.min().item():.3g}. Leave a class "
            "out by a weight of 0."
        )
    return tensor
