"""Penalties, proper losses and their sums as modules of torch."""

import inspect
import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Literal

import torch
from torch import Tensor
from torch.distributions import Distribution

from .._inputs.scikit_learn import (
    Interval,
    get_constraints,
    validate_parameter_constraints,
    validate_params,
)
from .._numerics.array_api import promote_to_float
from . import _tensors
from ._baselines import kde_calibration_loss, soft_binned_calibration_loss
from ._checks import check_batch
from ._errors import (
    conditional_kernel_calibration_loss,
    maximum_mean_calibration_loss,
    smooth_calibration_loss,
)
from ._torch_forecasts import check_one_number_each, unwrap_distribution

_ERRORS: dict[str, Callable[..., Tensor]] = {
    "conditional": conditional_kernel_calibration_loss,
    "kde": kde_calibration_loss,
    "mmce": maximum_mean_calibration_loss,
    "smooth": smooth_calibration_loss,
    "soft-binned": soft_binned_calibration_loss,
}


class Penalty(torch.nn.Module):
    """A calibration error of a batch, in at least single precision also under autocast."""

    def __init__(self, constraints: dict, **options: Any) -> None:
        super().__init__()
        validate_parameter_constraints(constraints, options, type(self).__name__)
        parameters = inspect.signature(type(self)).parameters.values()
        self._defaults = {parameter.name: parameter.default for parameter in parameters}
        for name, value in options.items():
            setattr(self, name, value)

    def forward(
        self,
        prediction: Any,
        target: Tensor,
        *,
        given: Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Calibration error of a batch.

        Parameters
        ----------
        prediction : tensor of shape (n_samples, n_classes), (n_samples,) or (n_samples, 1)
            Logits, or probabilities, of all classes or of the second of two. Penalties for
            forecasts of a number take a tuple of means and standard deviations, a distribution of
            torch, or :class:`skcalib.losses.SampledForecast`.

        target : tensor of shape (n_samples,) or (n_samples, 1)
            Labels 0, 1, …, or outcomes.

        given : tensor of shape (n_samples,) or (n_samples, n_features), default=None
            What is conditioned on, for penalties that can be conditioned.

        sample_weight : tensor of shape (n_samples,), default=None
            Non-negative weights; only their ratios matter.

        Returns
        -------
        loss : tensor of shape ()
            The error, in single or double precision.
        """
        target = _tensors.flat(target)
        _tensors.check_tensor("given", given)
        _tensors.check_tensor("sample_weight", sample_weight)
        with torch.autocast(target.device.type, enabled=False):
            return self._error(prediction, _tensors.TensorBatch(target, given, sample_weight))

    def _error(self, prediction: Any, batch: _tensors.TensorBatch) -> Tensor:
        raise NotImplementedError

    def extra_repr(self) -> str:
        current = {name: (getattr(self, name), default) for name, default in self._defaults.items()}
        texts = {
            name: (_brief(value), _brief(default)) for name, (value, default) in current.items()
        }
        return ", ".join(f"{name}={new}" for name, (new, old) in texts.items() if new != old)


def _brief(value: object) -> str:
    if isinstance(value, Tensor):
        return f"tensor of shape {tuple(value.shape)}"
    return repr(value)


class CalibrationPenalty(Penalty):
    """A calibration error from the literature, for a batch of class scores.

    The errors are biased: that of a calibrated model is positive, and larger in smaller batches.
    Only "conditional" with ``estimation="unbiased"`` has no bias.

    Parameters
    ----------
    name : {"conditional", "kde", "mmce", "smooth", "soft-binned"}
        The error; its function is under See Also.

    input_type : {"logits", "probabilities"}, default="logits"
        What predictions hold.

    ignore_index : int, default=-100
        Samples with this target are left out.

    **options : dict
        Options of the function, with its defaults, such as `bandwidth`.

    See Also
    --------
    skcalib.losses.conditional_kernel_calibration_loss : "conditional".
    skcalib.losses.kde_calibration_loss : "kde".
    skcalib.losses.maximum_mean_calibration_loss : "mmce".
    skcalib.losses.smooth_calibration_loss : "smooth".
    skcalib.losses.soft_binned_calibration_loss : "soft-binned".

    Notes
    -----
    Call it with predictions and targets. Bad values, such as NaN or labels out of range, raise
    errors. Half precision is computed in single precision.

    Examples
    --------
    >>> import torch
    >>> from skcalib.torch import CalibrationPenalty
    >>> logits = torch.tensor([2.0, 2.0], requires_grad=True)
    >>> loss = CalibrationPenalty("mmce", bandwidth=0.2)(logits, torch.tensor([1, 0]))
    >>> loss.backward()
    >>> round(loss.item(), 4)  # 1/(1 + e⁻²) − 1/2
    0.3808
    """

    @validate_params()
    def __init__(
        self,
        name: Literal["conditional", "kde", "mmce", "smooth", "soft-binned"],
        *,
        input_type: Literal["logits", "probabilities"] = "logits",
        ignore_index: int = -100,
        **options: Any,
    ) -> None:
        defaults = _options_of(_ERRORS[name])
        if not options.keys() <= defaults.keys():
            raise ValueError(
                f"options of CalibrationPenalty({name!r}) must be among {', '.join(defaults)}; "
                f"found {', '.join(options.keys() - defaults.keys())}. Leave others out."
            )
        constraints = get_constraints(_ERRORS[name]) | {"ignore_index": [Integral]}
        options = defaults | options | {"input_type": input_type}
        super().__init__(constraints, name=name, ignore_index=ignore_index, **options)
        self._options = list(options)
        self._defaults = defaults | {"ignore_index": -100}

    def _error(self, prediction: Any, batch: _tensors.TensorBatch) -> Tensor:
        if batch.given is not None:
            raise ValueError(
                "given must be None for CalibrationPenalty, which is conditioned on the "
                "prediction; found a tensor. Take DistributionMatchingLoss."
            )
        prediction, batch = _tensors.class_batch(
            prediction, batch, self.input_type, self.ignore_index
        )
        options = {name: getattr(self, name) for name in self._options}
        return _ERRORS[self.name](
            prediction, batch.target, sample_weight=batch.sample_weight, **options
        )

    def extra_repr(self) -> str:
        return ", ".join(filter(None, [repr(self.name), super().extra_repr()]))


def _options_of(function: Callable) -> dict[str, Any]:
    """The options of an error, with their defaults."""
    parameters = inspect.signature(function).parameters.values()
    options = {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    del options["sample_weight"]
    return options


class CalibrationRegularizedLoss(torch.nn.Module):
    r"""A proper loss and a calibration penalty: base + weight · penalty.

    Parameters
    ----------
    base : torch.nn.Module or callable
        The loss to train with, of predictions and targets, such as ``torch.nn.CrossEntropyLoss()``
        or :class:`NegativeLogLikelihoodLoss`. It returns the mean over the batch, or one value per
        sample (``reduction="none"``), which is averaged with the weights of the samples.

    penalty : torch.nn.Module or callable
        A calibration error of predictions and targets, such as :class:`DistributionMatchingLoss`.

    weight : float, default=1.0
        Weight of the penalty, at least 0. It may be changed during training. At 0 the penalty is
        not computed.

    Notes
    -----
    Both must take logits, or both probabilities. Search for the weight by the base loss on
    validation data, from 0 on: a penalty that is too strong costs sharpness.

    Examples
    --------
    >>> import torch
    >>> from skcalib.torch import CalibrationRegularizedLoss, DistributionMatchingLoss
    >>> loss = CalibrationRegularizedLoss(
    ...     torch.nn.CrossEntropyLoss(), DistributionMatchingLoss(), weight=2.0
    ... )
    >>> logits = torch.zeros((4, 3), requires_grad=True)
    >>> value = loss(logits, torch.tensor([0, 1, 2, 2]))
    >>> value.backward()
    """

    @validate_params(
        {
            "base": [callable],
            "penalty": [callable],
            "weight": [Interval(Real, 0, None, closed="left")],
        }
    )
    def __init__(
        self, base: Callable[..., Tensor], penalty: Callable[..., Tensor], weight: float = 1.0
    ) -> None:
        super().__init__()
        for name, value in (("base", base), ("penalty", penalty)):
            if isinstance(value, type):
                raise TypeError(
                    f"{name} must be a loss, not a class of losses; found {value.__name__}. Pass "
                    f"{value.__name__}()."
                )
        if isinstance(base, Penalty) and not isinstance(penalty, Penalty):
            raise TypeError(
                f"base must be a proper loss; found {type(base).__name__}, which is a penalty. "
                "Swap base and penalty."
            )
        if getattr(base, "reduction", None) == "sum":
            raise ValueError(
                "base must return a mean, or one value per sample; found reduction='sum', next to "
                "which a penalty counts less in larger batches. Give it reduction='mean'."
            )
        self.base = base
        self.penalty = penalty
        self.weight = weight

    def forward(
        self,
        prediction: Any,
        target: Tensor,
        *,
        given: Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """The sum for a batch.

        Parameters
        ----------
        prediction : tensor, tuple of tensors, or distribution of torch
            What both losses take.

        target : tensor of shape (n_samples,)
            Labels or outcomes.

        given : tensor of shape (n_samples,) or (n_samples, n_features), default=None
            What the penalty is conditioned on.

        sample_weight : tensor of shape (n_samples,), default=None
            Non-negative weights; only their ratios matter.

        Returns
        -------
        loss : tensor of shape ()
            The sum.
        """
        _tensors.check_tensor("sample_weight", sample_weight)
        loss = self._mean(self.base(prediction, target), _tensors.flat(target), sample_weight)
        if self.weight == 0:
            return loss
        sides = {"given": given, "sample_weight": sample_weight}
        sides = {name: value for name, value in sides.items() if value is not None}
        return loss + self.weight * self.penalty(prediction, target, **sides)

    def _mean(self, loss: Tensor, target: Tensor, sample_weight: Tensor | None) -> Tensor:
        """The mean over the samples that count."""
        ignored = getattr(self.base, "ignore_index", None)
        is_counted = torch.ones_like(target, dtype=torch.bool)
        if ignored is not None:
            is_counted = target != ignored
        if loss.ndim == 0:
            if sample_weight is not None:
                raise ValueError(
                    "sample_weight must be None for a base loss that is a mean already; found a "
                    "tensor. Give the base loss reduction='none'."
                )
            _check_counts(is_counted)
            return loss
        if loss.numel() != len(target):
            raise ValueError(
                f"base must return one number, or one for each of the {len(target)} samples; found "
                f"shape {tuple(loss.shape)}."
            )
        check_batch(target, sample_weight)
        weight = is_counted.to(loss.dtype)
        if sample_weight is not None:
            _tensors.check_weight_tensor(sample_weight)
            weight = weight * sample_weight.to(loss.dtype)
        _check_counts(weight)
        return (weight * loss.reshape(-1)).sum() / weight.sum()

    def extra_repr(self) -> str:
        return f"weight={self.weight!r}"


def _check_counts(weight: Tensor) -> None:
    if not _tensors.is_all_true(weight.any()):
        raise ValueError(
            "target must have a sample that counts, with a label other than ignore_index and a "
            f"positive sample_weight; found none of {len(weight)}. Leave this batch out."
        )


class NegativeLogLikelihoodLoss(torch.nn.Module):
    """Minus the logarithm of the density that a forecast gave to the outcome.

    It is the proper loss to which a penalty for forecasts of a number is added.

    Parameters
    ----------
    reduction : {"mean", "none"}, default="mean"
        Whether to return the mean over the batch, or one value per sample.

    See Also
    --------
    skcalib.metrics.negative_log_likelihood : The metric.

    Notes
    -----
    Call it with predictions and outcomes. Predictions are a tuple of means and standard deviations,
    or a distribution of torch.

    Examples
    --------
    >>> import torch
    >>> from skcalib.torch import NegativeLogLikelihoodLoss
    >>> loss = NegativeLogLikelihoodLoss()
    >>> round(loss((torch.zeros(2), torch.ones(2)), torch.zeros(2)).item(), 4)  # log √(2π)
    0.9189
    """

    @validate_params()
    def __init__(self, reduction: Literal["mean", "none"] = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, prediction: Any, target: Tensor) -> Tensor:
        """The loss of a batch.

        Parameters
        ----------
        prediction : tuple of two tensors of shape (n_samples,), or distribution of torch
            Means and standard deviations, or distributions.

        target : tensor of shape (n_samples,)
            Outcomes.

        Returns
        -------
        loss : tensor of shape () or (n_samples,)
            The mean, or one value per sample.
        """
        (target,) = promote_to_float(_tensors.flat(target))
        check_batch(target)
        _tensors.check_finite_tensor("target", target, "Drop these samples.")
        with torch.autocast(target.device.type, enabled=False):
            loss = _minus_log_density(prediction, target)
        return loss.mean() if self.reduction == "mean" else loss

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"


def _minus_log_density(prediction: Any, target: Tensor) -> Tensor:
    prediction, n = unwrap_distribution(prediction), len(target)
    if not isinstance(prediction, Distribution):
        mean, std = _tensors.to_mean_and_std(prediction, n)
        return ((target - mean) / std) ** 2 / 2 + torch.log(std) + math.log(2 * math.pi) / 2
    check_one_number_each(prediction, n)
    shape = prediction.batch_shape + prediction.event_shape
    return -prediction.log_prob(target.reshape(shape)).reshape(n)
