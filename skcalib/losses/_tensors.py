"""Batches of tensors and distributions of torch, with checks of values: no loss is NaN."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Categorical, Distribution, Independent, MixtureSameFamily
from torch.distributions import Normal as TorchNormal

from .._numerics.array_api import at_least_single
from ._checks import check_batch, check_class_batch, check_forecast_batch, parts_of
from ._predictions import Distributions, Draws, as_distributions

# The probabilities of a sample may miss 1 by this much.
_SUM_TOLERANCE = 1e-2

_DIVERGED = "If the network has diverged, lower the learning rate or clip its gradients."
_DROP = "Drop these samples."


# Whether values are looked at, for which a step waits until the device has computed them.
_state = {"checks": True}


def check_values(enabled: bool) -> None:
    """Switch the checks of values on or off, for all losses of this module.

    They are on at first, so that bad values raise an error that names them. To look at values,
    the host waits for the device several times a step, and a graph of :func:`torch.compile` ends.
    So a compiled loss leaves them out in any case. Without them bad values lead to NaN; shapes
    and types are still judged.

    Parameters
    ----------
    enabled : bool
        False once a training runs as it should, True to find out why it does not.

    Notes
    -----
    Samples to ignore get the weight 0 then, and are not removed. Bandwidths that `fit` has learned
    are read once a step all the same; pass numbers in their place.

    Examples
    --------
    >>> from skcalib.torch import check_values
    >>> check_values(False)
    >>> check_values(True)
    """
    _state["checks"] = enabled


def looks_at_values() -> bool:
    return _state["checks"] and not torch.compiler.is_compiling()


def holds(condition: Tensor) -> bool:
    """Whether all of it is true, as it is taken to be where values are not looked at."""
    return not looks_at_values() or bool(condition.all())


class Batch(NamedTuple):
    """Targets (n,) of the samples that count, with what is given for them, and their weights."""

    target: Tensor
    given: Tensor | None
    sample_weight: Tensor | None


def class_batch(
    prediction: Tensor, batch: Batch, input_type: str, ignore_index: int
) -> tuple[Tensor, Batch]:
    """Scores (n, K) or (n,), with integer labels, of the samples that count."""
    if not isinstance(prediction, Tensor):
        raise TypeError(
            f"prediction must be a tensor of class scores; found {type(prediction).__name__}. For "
            "forecasts of a number pass a tuple (mean, std), Draws or a distribution of torch to "
            "DistributionMatchingLoss."
        )
    (prediction,) = at_least_single(prediction)
    if prediction.ndim == 2 and prediction.shape[1] == 1:
        prediction = prediction[:, 0]
    check_batch(batch.target, batch.sample_weight, batch.given, least=2)
    check_class_batch(prediction, batch.target)
    is_counted = batch.target != ignore_index
    if not looks_at_values():
        weight = 1.0 if batch.sample_weight is None else batch.sample_weight
        target = torch.where(is_counted, batch.target, 0)
        batch = batch._replace(target=target, sample_weight=is_counted.to(prediction) * weight)
    elif not bool(is_counted.all()):
        prediction = prediction[is_counted]
        batch = Batch(*(None if part is None else part[is_counted] for part in batch))
    if len(batch.target) < 2:
        raise ValueError(
            f"A batch must have at least 2 samples with a target other than ignore_index="
            f"{ignore_index}, as samples are compared with each other; found {len(batch.target)}. "
            "Leave this batch out."
        )
    check_finite("prediction", prediction)
    if input_type == "probabilities":
        _check_probabilities(prediction)
    else:
        _check_logits(prediction)
    _check_labels(batch.target, 2 if prediction.ndim == 1 else prediction.shape[1])
    _check_sides(batch)
    return prediction, batch._replace(target=batch.target.to(torch.int64))


def number_batch(batch: Batch, dtype: torch.dtype) -> Batch:
    """The batch with outcomes of some type."""
    batch = batch._replace(target=batch.target.to(dtype))
    check_batch(batch.target, batch.sample_weight, batch.given, least=2)
    check_finite("target", batch.target, _DROP)
    _check_sides(batch)
    return batch


def normal_parameters(prediction: tuple, n: int) -> tuple[Tensor, Tensor]:
    """Means and standard deviations, (n,) each; one standard deviation may serve all."""
    if len(prediction) != 2:
        raise ValueError(
            f"prediction must be a tuple (mean, std); found {len(prediction)} entries. Pass a "
            "distribution of torch for other families."
        )
    mean, std = at_least_single(*map(torch.as_tensor, prediction))
    shapes = {(n,), (n, 1)}
    for name, tensor, allowed in (("mean", mean, shapes), ("std", std, {(), (1,)} | shapes)):
        if tuple(tensor.shape) not in allowed:
            raise ValueError(
                f"prediction must be a tuple (mean, std) of shape (n_samples,) for the {n} samples "
                f"of target; found {name} of shape {tuple(tensor.shape)}."
            )
    _check_normal(mean=mean, std=std)
    return mean.reshape(-1), std.reshape(-1).expand(n)


def _check_normal(**parts: Tensor) -> None:
    for name, tensor in parts.items():
        check_finite(f"{name} of prediction", tensor)
    if not holds(parts["std"] > 0):
        raise ValueError(
            f"std of prediction must be positive; found {parts['std'].min().item():.3g}. Let the "
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


def check_finite(name: str, tensor: Tensor, remedy: str = _DIVERGED) -> None:
    check_tensor(name, tensor)
    is_finite = torch.isfinite(tensor)
    if not holds(is_finite):
        count = tensor.numel() - int(is_finite.sum())
        raise ValueError(
            f"{name} must be finite; found NaN or infinity in {count} of {tensor.numel()} entries. "
            f"{remedy}"
        )


def check_between_0_and_1(name: str, tensor: Tensor, remedy: str) -> None:
    if not holds((tensor >= 0) & (tensor <= 1)):
        low, high = tensor.min().item(), tensor.max().item()
        raise ValueError(
            f"{name} must hold probabilities between 0 and 1; found "
            f"{low if low < 0 else high:.3g}. {remedy}"
        )


def _check_logits(prediction: Tensor) -> None:
    """Rows of logits may sum to 1 by chance, but not all of them."""
    if prediction.ndim == 1 or not looks_at_values():
        return
    are_shares = holds((prediction >= 0) & (prediction <= 1))
    if are_shares and holds((prediction.sum(dim=1) - 1).abs() < _SUM_TOLERANCE):
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
        if not holds((worst - 1).abs() <= _SUM_TOLERANCE):
            raise ValueError(
                "prediction must hold probabilities that sum to 1 for each sample; found a sum of "
                f"{worst.item():.3g}. Use softmax, or pass logits with input_type='logits'."
            )


def _check_labels(target: Tensor, n_classes: int) -> None:
    """Integers from 0, or, for two classes, numbers that are 0 or 1."""
    is_label = (target >= 0) & (target < n_classes)
    if target.is_floating_point():
        is_label &= target == target.round()
    if not holds(is_label):
        found = target[~is_label][0]
        remedy = "Encode labels by scikit-learn's LabelEncoder, or pass ignore_index for samples"
        remedy += " to leave out."
        if target.is_floating_point():
            remedy += " For forecasts of a number pass a tuple (mean, std)."
        raise ValueError(
            f"target must hold labels 0 to {n_classes - 1} for {n_classes} classes; found "
            f"{found.item():.6g}. {remedy}"
        )


def _check_sides(batch: Batch) -> None:
    if batch.given is not None:
        check_finite("given", batch.given, _DROP)
    if batch.sample_weight is not None:
        check_weights(batch.sample_weight)
        count = (batch.sample_weight > 0).sum()
        if not holds(count >= 2):
            raise ValueError(
                "sample_weight must be positive for at least 2 samples, which are compared with "
                f"each other; found {int(count)}."
            )


def check_weights(sample_weight: Tensor) -> None:
    check_finite("sample_weight", sample_weight, _DROP)
    if not holds(sample_weight >= 0):
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
) -> Distributions:
    """The distributions of the samples of a target; values are checked."""
    prediction, n = unwrapped(prediction), len(target)
    if isinstance(prediction, Draws):
        for name, tensor in parts_of(prediction).items():
            check_finite(name, tensor)
        check_forecast_batch(prediction, target, None)
        cdf = prediction.cdf and partial(_checked_cdf, prediction.cdf)
        return as_distributions(replace(prediction, cdf=cdf))
    if isinstance(prediction, Distribution):
        check_one_number_each(prediction, n)
        parts = _normal_mixture(prediction, n)
        if parts is None:
            return as_distributions(_draws_of(prediction, target, n_draws, needs_draws))
    else:
        parts = normal_parameters(prediction, n)
    forecast = as_distributions(parts)
    if n_draws is None or not needs_draws:
        return forecast
    shape = (*forecast.location.shape, n_draws)
    like = forecast.location
    return forecast.at(torch.randn(shape, dtype=like.dtype, device=like.device))


def _normal_mixture(distribution: Distribution, n: int) -> tuple[Tensor, ...] | None:
    """Means, standard deviations and weights of a mixture of normal distributions, (n, c) each."""
    if not isinstance(distribution, MixtureSameFamily):
        return None
    normal = unwrapped(distribution.component_distribution)
    if not isinstance(normal, tuple):
        return None
    parts = (*normal, _shares_of_components(distribution))
    mean, std, weight = (part.reshape(n, -1) for part in parts)
    _check_normal(mean=mean, std=std, weight=weight)
    return mean, std, weight


def _shares_of_components(mixture: MixtureSameFamily) -> Tensor:
    return mixture.mixture_distribution.probs.expand(mixture.component_distribution.batch_shape)


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


def _draws_of(
    distribution: Distribution, target: Tensor, n_draws: int | None, needs_draws: bool
) -> Draws:
    n, weight = len(target), None
    many = N_DRAWS if n_draws is None else n_draws
    if not needs_draws:
        values = target[:, None]  # in the place of draws nobody looks at
    elif distribution.has_rsample:
        values = distribution.rsample((many,)).reshape(many, n).T
    elif (
        isinstance(distribution, MixtureSameFamily)
        and distribution.component_distribution.has_rsample
    ):
        # draws from each component, with its weight: gradients flow through both
        share = _shares_of_components(distribution).reshape(n, -1)
        each = max(1, N_DRAWS // share.shape[1]) if n_draws is None else n_draws
        drawn = distribution.component_distribution.rsample((each,))
        values = drawn.reshape(each, n, -1).permute(1, 0, 2).reshape(n, -1)
        weight = share.repeat(1, each) / each
    else:
        values, weight = _scored(distribution, many)
    (values,) = at_least_single(values)
    check_finite("draws from prediction", values)
    cdf = partial(_cdf_at, distribution)
    return Draws(values, cdf, _parameters(distribution, n), weight)


def _scored(distribution: Distribution, n_draws: int) -> tuple[Tensor, Tensor]:
    """Draws, and weights 1/m through which gradients flow (the score function), (n, m) each.

    The derivative of Σ_k w_k f(x_k) is Σ_k (f(x_k) − mean of the other f) ∂ log q(x_k) / m. Its
    mean is that of E f, and so it is for products of such sums over different samples. The weights
    sum to 1 whatever the parameters, so that constants cancel.
    """
    if n_draws < 2:
        raise ValueError(
            "n_draws must be at least 2 for distributions without rsample, whose draws are "
            f"compared with each other; found {n_draws}. Take 16."
        )
    error = ValueError(
        "prediction must be a distribution of a number with rsample, or with sample and log_prob, "
        f"through which gradients flow; found {type(distribution).__name__}. For classes, pass "
        "logits; for a number choose calibration='quantile', which takes the cdf."
    )
    if isinstance(distribution, Bernoulli | Categorical):
        raise error
    try:
        values = distribution.sample((n_draws,))
        log_density = distribution.log_prob(values).reshape(n_draws, -1).T
    except NotImplementedError as missing:
        raise error from missing
    ratio = (log_density - log_density.detach()).exp()
    weight = 1 / n_draws + (ratio - ratio.mean(dim=1, keepdim=True)) / (n_draws - 1)
    return values.reshape(n_draws, -1).T, weight


def _parameters(distribution: Distribution, n: int) -> Tensor | None:
    """Mean and log standard deviation, (n, 2); None if one of them is missing or infinite."""
    try:
        moments = (distribution.mean, distribution.stddev.log())
    except NotImplementedError:
        return None
    parameters = torch.stack(at_least_single(*(moment.reshape(n) for moment in moments)), dim=1)
    return parameters if holds(torch.isfinite(parameters)) else None


def _checked_cdf(cdf: Callable[[Tensor], Tensor], points: Tensor) -> Tensor:
    """Distribution functions of a user."""
    probability = cdf(points)
    check_finite("cdf of Draws", probability)
    check_between_0_and_1("cdf of Draws", probability, "Pass distribution functions.")
    return probability


def _cdf_at(distribution: Distribution, points: Tensor) -> Tensor:
    """The distribution functions at points (n,), or (1, m) in common."""
    shape = distribution.batch_shape + distribution.event_shape
    shape = shape if points.ndim == 1 else torch.Size((-1, *[1] * len(shape)))
    try:
        (probability,) = at_least_single(distribution.cdf(points.reshape(shape)))
    except NotImplementedError as error:
        raise ValueError(
            "prediction must be a distribution with cdf for forms of calibration and kernels "
            "that compare probabilities; torch has none for "
            f"{type(distribution).__name__}. Choose calibration='distribution' or 'marginal', "
            "which compare draws, or take one with cdf."
        ) from error
    if points.ndim == 1:
        return probability.reshape(-1)
    return probability.reshape(points.shape[1], -1).T
