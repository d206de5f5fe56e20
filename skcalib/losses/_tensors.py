"""Batches of tensors and distributions of torch, with checks of values: no loss is NaN."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.distributions import Distribution, Independent
from torch.distributions import Normal as TorchNormal

from ._checks import check_batch, check_class_batch
from ._predictions import Draws, as_distributions

# The probabilities of a sample may miss 1 by this much.
_SUM_TOLERANCE = 1e-2

_DIVERGED = "If the network has diverged, lower the learning rate or clip its gradients."
_DROP = "Drop these samples."


class Batch(NamedTuple):
    """Targets (n,) of the samples that count, and what belongs to them."""

    target: Tensor
    given: Tensor | None
    sample_weight: Tensor | None


def class_batch(
    prediction: Tensor,
    target: Tensor,
    given: Tensor | None,
    sample_weight: Tensor | None,
    *,
    input_type: str,
    ignore_index: int,
) -> tuple[Tensor, Batch]:
    """Scores (n, K) or (n,), with integer labels."""
    if not isinstance(prediction, Tensor):
        raise TypeError(
            f"prediction must be a tensor of class scores; found {type(prediction).__name__}. For "
            "forecasts of a number pass a tuple (mean, std), Draws or a distribution of torch to "
            "DistributionMatchingLoss."
        )
    prediction = at_least_single(prediction)
    if prediction.ndim == 2 and prediction.shape[1] == 1:
        prediction = prediction[:, 0]
    check_batch(target, sample_weight, given, least=2)
    check_class_batch(prediction, target)
    is_counted = target != ignore_index
    if not bool(is_counted.all()):
        prediction, target = prediction[is_counted], target[is_counted]
        given, sample_weight = (
            None if tensor is None else tensor[is_counted] for tensor in (given, sample_weight)
        )
    if len(target) < 2:
        raise ValueError(
            f"A batch must have at least 2 samples with a target other than ignore_index="
            f"{ignore_index}, as samples are compared with each other; found {len(target)}. Leave "
            "this batch out."
        )
    check_finite("prediction", prediction)
    if input_type == "probabilities":
        _check_probabilities(prediction)
    else:
        _check_logits(prediction)
    _check_labels(target, 2 if prediction.ndim == 1 else prediction.shape[1])
    _check_sides(given, sample_weight)
    return prediction, Batch(target.to(torch.int64), given, sample_weight)


def number_batch(
    target: Tensor, given: Tensor | None, sample_weight: Tensor | None, dtype: torch.dtype
) -> Batch:
    """Outcomes of some type."""
    target = target.to(dtype)
    check_batch(target, sample_weight, given, least=2)
    check_finite("target", target, _DROP)
    _check_sides(given, sample_weight)
    return Batch(target, given, sample_weight)


def normal_parameters(prediction: tuple, n: int) -> tuple[Tensor, Tensor]:
    """Means and standard deviations, (n,) each; one standard deviation may serve all."""
    if len(prediction) != 2:
        raise ValueError(
            f"prediction must be a tuple (mean, std); found {len(prediction)} entries. Pass a "
            "distribution of torch for other families."
        )
    mean, std = (at_least_single(torch.as_tensor(entry)) for entry in prediction)
    shapes = {(n,), (n, 1)}
    for name, tensor, allowed in (("mean", mean, shapes), ("std", std, {(), (1,)} | shapes)):
        if tuple(tensor.shape) not in allowed:
            raise ValueError(
                f"prediction must be a tuple (mean, std) of shape (n_samples,) for the {n} samples "
                f"of target; found {name} of shape {tuple(tensor.shape)}."
            )
        check_finite(f"{name} of prediction", tensor)
    dtype = torch.promote_types(mean.dtype, std.dtype)
    if not bool((std > 0).all()):
        raise ValueError(
            f"std of prediction must be positive; found {std.min().item():.3g}. Let the network "
            "return log std and take its exponential, or use softplus."
        )
    return mean.reshape(-1).to(dtype), std.reshape(-1).to(dtype).expand(n)


def constant(name: str, values: ArrayLike | Tensor | None, ndim: int) -> Tensor | None:
    """A tensor of finite numbers, with `ndim` axes."""
    if values is None:
        return None
    tensor = torch.as_tensor(values)
    if not tensor.is_floating_point():
        tensor = tensor.to(torch.get_default_dtype())
    if tensor.ndim != ndim or tensor.numel() == 0:
        raise ValueError(
            f"{name} must have {ndim} {'axis' if ndim == 1 else 'axes'} and some entries; found "
            f"shape {tuple(tensor.shape)}."
        )
    check_finite(name, tensor, "Replace them by numbers.")
    if name == "class_weight" and bool((tensor < 0).any()):
        raise ValueError(
            f"class_weight must be non-negative; found {tensor.min().item():.3g}. Leave a class "
            "out by a weight of 0."
        )
    return tensor


def training_array(name: str, values: ArrayLike | Tensor, n: int | None = None) -> np.ndarray:
    """Finite numbers, (n,) or (n, d), in double precision."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().to(torch.float64).numpy()
    try:
        array = np.asarray(values, dtype=np.float64)
    except ValueError as error:
        raise ValueError(
            f"{name} must be numbers, in as many columns for each sample; {error}. For classes, "
            "pass the indices of the labels."
        ) from error
    if array.ndim not in (1, 2) or len(array) != (len(array) if n is None else n):
        raise ValueError(
            f"{name} must have one row for each of the {n or 'training'} samples; found shape "
            f"{array.shape}."
        )
    if len(array) < 2:
        raise ValueError(f"{name} must have at least 2 training samples; found {len(array)}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; found NaN or infinity. Drop these samples.")
    return array


def check_class_weight(class_weight: Tensor, prediction: Tensor) -> None:
    n_classes = 2 if prediction.ndim == 1 else prediction.shape[1]
    if len(class_weight) != n_classes:
        raise ValueError(
            f"class_weight must have one entry for each of the {n_classes} classes; found "
            f"{len(class_weight)}."
        )


def check_moments(target: Tensor, mean: Tensor, mean_square: Tensor) -> None:
    """The loss is of the order of the fourth power of outcomes."""
    limit = torch.finfo(target.dtype).max ** 0.25 / 10
    largest = max(target.abs().max().item(), mean.abs().max().item())
    largest = max(largest, mean_square.max().item() ** 0.5)
    if largest > limit:
        raise ValueError(
            f"target and prediction must not exceed {limit:.1g} for kernel='moments' in this "
            f"precision, whose fourth powers overflow; found {largest:.3g}. Standardize the "
            "outcomes."
        )


def at_least_single(tensor: Tensor) -> Tensor:
    """The tensor in single precision, unless it is in double precision."""
    return tensor if tensor.dtype == torch.float64 else tensor.to(torch.float32)


def flat(target: Tensor) -> Tensor:
    """(n,) for a target of shape (n, 1)."""
    check_tensor("target", target)
    return target[:, 0] if target.ndim == 2 and target.shape[1] == 1 else target


def check_tensor(name: str, tensor: Any) -> None:
    if tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(
            f"{name} must be a tensor; found {type(tensor).__name__}. Convert it with "
            "torch.as_tensor."
        )


def check_finite(name: str, tensor: Tensor, remedy: str = _DIVERGED) -> None:
    check_tensor(name, tensor)
    is_finite = torch.isfinite(tensor)
    if not bool(is_finite.all()):
        count = tensor.numel() - int(is_finite.sum())
        raise ValueError(
            f"{name} must be finite; found NaN or infinity in {count} of {tensor.numel()} entries. "
            f"{remedy}"
        )


def check_between_0_and_1(name: str, tensor: Tensor, remedy: str) -> None:
    low, high = tensor.min().item(), tensor.max().item()
    if low < 0 or high > 1:
        raise ValueError(
            f"{name} must hold probabilities between 0 and 1; found "
            f"{low if low < 0 else high:.3g}. {remedy}"
        )


def _check_logits(prediction: Tensor) -> None:
    """Rows of logits may sum to 1 by chance, but not all of them."""
    if prediction.ndim == 1 or bool(((prediction < 0) | (prediction > 1)).any()):
        return
    if bool(((prediction.sum(dim=1) - 1).abs() < _SUM_TOLERANCE).all()):
        raise ValueError(
            "prediction must hold logits; found rows between 0 and 1 that sum to 1. Pass what the "
            "network returns before its softmax, or declare input_type='probabilities'."
        )


def _check_probabilities(prediction: Tensor) -> None:
    remedy = "If these are logits, pass input_type='logits'."
    check_between_0_and_1("prediction", prediction, remedy)
    if prediction.ndim == 2:
        total = prediction.sum(dim=1)
        worst = total[(total - 1).abs().argmax()]
        if bool((worst - 1).abs() > _SUM_TOLERANCE):
            raise ValueError(
                "prediction must hold probabilities that sum to 1 for each sample; found a sum of "
                f"{worst.item():.3g}. Use softmax, or pass logits with input_type='logits'."
            )


def _check_labels(target: Tensor, n_classes: int) -> None:
    """Integers from 0, or, for two classes, numbers that are 0 or 1."""
    is_label = (target >= 0) & (target < n_classes)
    if target.is_floating_point():
        is_label &= target == target.round()
    if not bool(is_label.all()):
        found = target[~is_label][0]
        remedy = "Encode labels by scikit-learn's LabelEncoder, or pass ignore_index for samples"
        remedy += " to leave out."
        if target.is_floating_point():
            remedy += " For forecasts of a number pass a tuple (mean, std)."
        raise ValueError(
            f"target must hold labels 0 to {n_classes - 1} for {n_classes} classes; found "
            f"{found.item():.6g}. {remedy}"
        )


def _check_sides(given: Tensor | None, sample_weight: Tensor | None) -> None:
    if given is not None:
        check_finite("given", given, _DROP)
    if sample_weight is not None:
        check_weights(sample_weight)
        count = int((sample_weight > 0).sum())
        if count < 2:
            raise ValueError(
                "sample_weight must be positive for at least 2 samples, which are compared with "
                f"each other; found {count}."
            )


def check_weights(sample_weight: Tensor) -> None:
    check_finite("sample_weight", sample_weight, _DROP)
    if bool((sample_weight < 0).any()):
        raise ValueError(
            f"sample_weight must be non-negative; found {sample_weight.min().item():.3g}. Leave "
            "samples out by weights of 0."
        )


# Distributions

# Draws from distributions without a closed form, unless `n_draws` says otherwise.
N_DRAWS = 16


def unwrapped(prediction: Any) -> Any:
    """A pair of means and standard deviations for a normal distribution."""
    while isinstance(prediction, Independent):
        prediction = prediction.base_dist
    if isinstance(prediction, TorchNormal):
        return prediction.loc, prediction.scale
    return prediction


def forecast_of(
    prediction: Any, target: Tensor, *, n_draws: int | None = None, needs_draws: bool = True
) -> tuple[Tensor, Tensor] | Draws:
    """Means and standard deviations, or draws, for the samples of a target; values are checked."""
    prediction, n = unwrapped(prediction), len(target)
    if isinstance(prediction, Draws):
        check_finite("values of Draws", prediction.values)
        if prediction.parameters is not None:
            check_finite("parameters of Draws", prediction.parameters)
        cdf = None if prediction.cdf is None else _CheckedCdf(prediction.cdf)
        return replace(prediction, cdf=cdf)
    if isinstance(prediction, Distribution):
        n_draws = (N_DRAWS if n_draws is None else n_draws) if needs_draws else 0
        return _draws_of(prediction, target, n_draws)
    mean, std = normal_parameters(prediction, n)
    if n_draws is None or not needs_draws:
        return mean, std
    normal = as_distributions((mean, std))
    noise = torch.randn((n, n_draws), dtype=mean.dtype, device=mean.device)
    return Draws(mean[:, None] + std[:, None] * noise, normal.cdf, normal.parameters)


def parameters_of(prediction: Any, target: Tensor) -> np.ndarray:
    """Mean and log standard deviation of training data, (n, 2)."""
    parameters = as_distributions(forecast_of(prediction, target, needs_draws=False)).parameters
    if parameters is None:
        raise ValueError(
            "prediction must consist of distributions with a mean and a standard deviation; found "
            "others. Pass what describes them as given."
        )
    return parameters.detach().cpu().to(torch.float64).numpy()


def check_one_number_each(distribution: Distribution, n: int) -> None:
    """One independent number for each sample. Of numbers drawn together an event is made."""
    batch, event = distribution.batch_shape, distribution.event_shape
    if event.numel() != 1 or batch.numel() != n:
        raise ValueError(
            f"prediction must be a distribution of one number for each of the {n} samples of "
            f"target, independent of each other; found {type(distribution).__name__} with batch "
            f"shape {tuple(batch)} and event shape {tuple(event)}. Put the samples into the batch "
            "shape."
        )


def _draws_of(distribution: Distribution, target: Tensor, n_draws: int) -> Draws:
    n = len(target)
    if n_draws > 0 and not distribution.has_rsample:
        remedy = "Take one with rsample; for classes, pass logits"
        if _has_cdf(distribution):
            remedy += ", and for a number choose calibration='quantile', which takes the cdf"
        raise ValueError(
            f"prediction must be a distribution with rsample, through whose draws gradients flow; "
            f"found {type(distribution).__name__}, which has none. {remedy}."
        )
    check_one_number_each(distribution, n)
    shape = distribution.batch_shape + distribution.event_shape
    if n_draws > 0:
        values = at_least_single(distribution.rsample((n_draws,)).reshape(n_draws, n).T)
        check_finite("draws from prediction", values)
    else:
        values = at_least_single(target)[:, None]  # in the place of draws that are not looked at
    return Draws(values, _Cdf(distribution, shape), _parameters(distribution, n))


def _parameters(distribution: Distribution, n: int) -> Tensor | None:
    """Mean and log standard deviation, (n, 2); None if one of them is missing or infinite."""
    try:
        moments = (distribution.mean, distribution.stddev.log())
    except NotImplementedError:
        return None
    parameters = torch.stack([at_least_single(moment.reshape(n)) for moment in moments], dim=1)
    return parameters if bool(torch.isfinite(parameters).all()) else None


class _CheckedCdf:
    """Distribution functions of a user."""

    def __init__(self, cdf: Callable[[Tensor], Tensor]) -> None:
        self.cdf = cdf

    def __call__(self, points: Tensor) -> Tensor:
        probability = self.cdf(points)
        check_finite("cdf of Draws", probability)
        check_between_0_and_1("cdf of Draws", probability, "Pass distribution functions.")
        return probability


class _Cdf:
    """The distribution functions at points (n,), or (1, m) in common."""

    def __init__(self, distribution: Distribution, shape: torch.Size) -> None:
        self.distribution, self.shape = distribution, shape

    def __call__(self, points: Tensor) -> Tensor:
        n = self.shape.numel()
        if points.ndim == 1:
            return self._cdf(points.reshape(self.shape)).reshape(n)
        return self._cdf(points.reshape(-1, *[1] * len(self.shape))).reshape(-1, n).T

    def _cdf(self, points: Tensor) -> Tensor:
        try:
            return at_least_single(self.distribution.cdf(points))
        except NotImplementedError as error:
            remedy = "Take one with cdf; for classes, pass logits"
            if self.distribution.has_rsample:
                remedy = "Choose calibration='distribution' or 'marginal', which compare draws"
            raise ValueError(
                "prediction must be a distribution with cdf for forms of calibration and kernels "
                "that compare probabilities; torch has none for "
                f"{type(self.distribution).__name__}. {remedy}."
            ) from error


def _has_cdf(distribution: Distribution) -> bool:
    return type(distribution).cdf is not Distribution.cdf
