"""Batches of tensors, with checks of values: no loss is NaN."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._inputs.probabilities import PROBABILITY_ATOL, PROBABILITY_ATOL_BY_ITEMSIZE
from .._numerics.array_api import promote_to_float
from ._checks import check_batch, check_class_batch

# The probabilities of a sample may miss 1 by this much.
_PROBABILITY_SUM_ATOL = 1e-2

_DIVERGED = "If the network has diverged, lower the learning rate or clip its gradients."
_DROP = "Drop these samples."


# Whether values are looked at, for which a step waits until the device has computed them.
_state = {"checks": True}


def set_value_checks(enabled: bool) -> None:
    """Switch the checks of values on or off, for all losses of this module.

    They are on at first, and make the host wait for the device several times a step; a compiled
    loss leaves them out in any case. Without them bad values lead to NaN; shapes and types are
    still judged.

    Parameters
    ----------
    enabled : bool
        False once a training runs as it should, True to find out why it does not.

    Notes
    -----
    Samples to ignore get the weight 0 then. Bandwidths that `fit` has learned are read once a step;
    pass numbers instead.

    Examples
    --------
    >>> from skcalib.torch import set_value_checks
    >>> set_value_checks(False)
    >>> set_value_checks(True)
    """
    _state["checks"] = enabled


def are_value_checks_enabled() -> bool:
    return _state["checks"] and not torch.compiler.is_compiling()


def is_all_true(condition: Tensor) -> bool:
    """True if all entries are true, or value checks are off."""
    return not are_value_checks_enabled() or bool(condition.all())


class TensorBatch(NamedTuple):
    """Targets (n,) of the samples that count, with what is given for them, and their weights."""

    target: Tensor
    given: Tensor | None
    sample_weight: Tensor | None


def class_batch(
    prediction: Tensor, batch: TensorBatch, input_type: str, ignore_index: int
) -> tuple[Tensor, TensorBatch]:
    """Scores (n, K) or (n,), with integer labels, of the samples that count."""
    if not isinstance(prediction, Tensor):
        raise TypeError(
            f"prediction must be a tensor of class scores; found {type(prediction).__name__}. For "
            "forecasts of a number pass a tuple (mean, std), SampledForecast or a distribution of "
            "torch to DistributionMatchingLoss."
        )
    (prediction,) = promote_to_float(prediction)
    if prediction.ndim == 2 and prediction.shape[1] == 1:
        prediction = prediction[:, 0]
    check_batch(batch.target, batch.sample_weight, batch.given, least=2)
    check_class_batch(prediction, batch.target)
    is_counted = batch.target != ignore_index
    if not are_value_checks_enabled():
        weight = 1.0 if batch.sample_weight is None else batch.sample_weight
        target = torch.where(is_counted, batch.target, 0)
        batch = batch._replace(target=target, sample_weight=is_counted.to(prediction) * weight)
    elif not bool(is_counted.all()):
        prediction = prediction[is_counted]
        batch = TensorBatch(*(None if tensor is None else tensor[is_counted] for tensor in batch))
    if len(batch.target) < 2:
        raise ValueError(
            f"target must have at least 2 samples other than ignore_index={ignore_index}, as "
            f"samples are compared with each other; found {len(batch.target)}. Leave this batch "
            "out."
        )
    check_finite_tensor("prediction", prediction)
    if input_type == "probabilities":
        prediction = _check_probabilities(prediction)
    else:
        _check_logits(prediction)
    _check_labels(batch.target, 2 if prediction.ndim == 1 else prediction.shape[1])
    _check_sides(batch)
    return prediction, batch._replace(target=batch.target.to(torch.int64))


def number_batch(batch: TensorBatch, dtype: torch.dtype) -> TensorBatch:
    """The batch with outcomes of some type."""
    batch = batch._replace(target=batch.target.to(dtype))
    check_batch(batch.target, batch.sample_weight, batch.given, least=2)
    check_finite_tensor("target", batch.target, _DROP)
    _check_sides(batch)
    return batch


def to_mean_and_std(prediction: tuple, n: int) -> tuple[Tensor, Tensor]:
    """Means and standard deviations, (n,) each; one standard deviation may serve all."""
    if len(prediction) != 2:
        raise ValueError(
            f"prediction must be a tuple (mean, std); found {len(prediction)} entries. Pass a "
            "distribution of torch for other families."
        )
    mean, std = promote_to_float(*map(torch.as_tensor, prediction))
    shapes = {(n,), (n, 1)}
    for name, tensor, allowed in (("mean", mean, shapes), ("std", std, {(), (1,)} | shapes)):
        if tuple(tensor.shape) not in allowed:
            raise ValueError(
                f"prediction must be a tuple (mean, std) of shape (n_samples,) for the {n} samples "
                f"of target; found {name} of shape {tuple(tensor.shape)}."
            )
    check_normal(mean=mean, std=std)
    return mean.reshape(-1), std.reshape(-1).expand(n)


def check_normal(**tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        check_finite_tensor(f"{name} of prediction", tensor)
    if not is_all_true(tensors["std"] > 0):
        raise ValueError(
            f"std of prediction must be positive; found {tensors['std'].min().item():.3g}. Let the "
            "network return log std and take its exponential, or use softplus."
        )


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


def check_finite_tensor(name: str, tensor: Tensor, remedy: str = _DIVERGED) -> None:
    check_tensor(name, tensor)
    is_finite = torch.isfinite(tensor)
    if not is_all_true(is_finite):
        count = tensor.numel() - int(is_finite.sum())
        raise ValueError(
            f"{name} must be finite; found NaN or infinity in {count} of {tensor.numel()} entries. "
            f"{remedy}"
        )


def check_between_0_and_1(name: str, tensor: Tensor, remedy: str) -> Tensor:
    """Probabilities, without those by which rounding takes them beyond 0 or 1."""
    beyond = PROBABILITY_ATOL_BY_ITEMSIZE.get(tensor.dtype.itemsize, PROBABILITY_ATOL)
    if not is_all_true((tensor >= -beyond) & (tensor <= 1 + beyond)):
        low, high = tensor.min().item(), tensor.max().item()
        raise ValueError(
            f"{name} must hold probabilities between 0 and 1; found "
            f"{low if low < -beyond else high:.3g}. {remedy}"
        )
    return tensor.clip(0, 1)


def _check_logits(prediction: Tensor) -> None:
    """Rows of logits may sum to 1 by chance, but not all of them."""
    if prediction.ndim == 1 or not are_value_checks_enabled():
        return
    are_shares = is_all_true((prediction >= 0) & (prediction <= 1))
    if are_shares and is_all_true((prediction.sum(dim=1) - 1).abs() < _PROBABILITY_SUM_ATOL):
        raise ValueError(
            "prediction must hold logits; found rows between 0 and 1 that sum to 1. Pass what the "
            "network returns before its softmax, or declare input_type='probabilities'."
        )


def _check_probabilities(prediction: Tensor) -> Tensor:
    remedy = "If these are logits, pass input_type='logits'."
    prediction = check_between_0_and_1("prediction", prediction, remedy)
    if prediction.ndim == 2:
        total = prediction.sum(dim=1)
        worst = total[(total - 1).abs().argmax()]
        if not is_all_true((worst - 1).abs() <= _PROBABILITY_SUM_ATOL):
            raise ValueError(
                "prediction must hold probabilities that sum to 1 for each sample; found a sum of "
                f"{worst.item():.3g}. Use softmax, or pass logits with input_type='logits'."
            )
    return prediction


def _check_labels(target: Tensor, n_classes: int) -> None:
    """Integers from 0, or, for two classes, numbers that are 0 or 1."""
    is_label = (target >= 0) & (target < n_classes)
    if target.is_floating_point():
        is_label &= target == target.round()
    if not is_all_true(is_label):
        label = target[~is_label][0]
        remedy = "Encode labels by scikit-learn's LabelEncoder, or pass ignore_index for samples"
        remedy += " to leave out."
        if target.is_floating_point():
            remedy += " For forecasts of a number pass a tuple (mean, std)."
        raise ValueError(
            f"target must hold labels 0 to {n_classes - 1} for {n_classes} classes; found "
            f"{label.item():.6g}. {remedy}"
        )


def _check_sides(batch: TensorBatch) -> None:
    if batch.given is not None:
        check_finite_tensor("given", batch.given, _DROP)
    if batch.sample_weight is not None:
        check_weight_tensor(batch.sample_weight)
        count = (batch.sample_weight > 0).sum()
        if not is_all_true(count >= 2):
            raise ValueError(
                "sample_weight must be positive for at least 2 samples, which are compared with "
                f"each other; found {int(count)}."
            )


def check_weight_tensor(sample_weight: Tensor) -> None:
    check_finite_tensor("sample_weight", sample_weight, _DROP)
    if not is_all_true(sample_weight >= 0):
        raise ValueError(
            f"sample_weight must be non-negative; found {sample_weight.min().item():.3g}. Leave "
            "samples out by weights of 0."
        )
