"""Distributions of torch in the place of numbers: closed forms, or draws that keep gradients."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.distributions import (
    Bernoulli,
    Categorical,
    Distribution,
    Independent,
    MixtureSameFamily,
    Normal as TorchNormal,
)

from .._numerics.array_api import promote_to_float
from . import _tensors
from ._checks import check_forecast_batch, parts_of
from ._predictions import Distributions, SampledForecast, as_distributions

# Draws from distributions without a closed form, unless `n_draws` says otherwise.
N_DRAWS = 16


def unwrap_distribution(prediction: Any) -> Any:
    """A pair of means and standard deviations for a normal distribution."""
    while isinstance(prediction, Independent):
        prediction = prediction.base_dist
    if isinstance(prediction, TorchNormal):
        return prediction.loc, prediction.scale
    return prediction


def to_distributions(
    prediction: Any, target: Tensor, *, n_draws: int | None = None, needs_draws: bool = True
) -> Distributions:
    """The distributions of the samples of a target; values are checked."""
    prediction, n = unwrap_distribution(prediction), len(target)
    if isinstance(prediction, SampledForecast):
        for name, tensor in parts_of(prediction).items():
            _tensors.check_finite_tensor(name, tensor)
        check_forecast_batch(prediction, target, None)
        cdf = prediction.cdf and partial(_check_user_cdf, prediction.cdf)
        return as_distributions(replace(prediction, cdf=cdf))
    if isinstance(prediction, Distribution):
        check_one_number_each(prediction, n)
        components = _normal_mixture(prediction, n)
        if components is None:
            return as_distributions(_draws_of(prediction, target, n_draws, needs_draws))
    else:
        components = _tensors.to_mean_and_std(prediction, n)
    forecast = as_distributions(components)
    if n_draws is None or not needs_draws:
        return forecast
    shape = (*forecast.location.shape, n_draws)
    like = forecast.location
    return forecast.place_points(
        torch.randn(shape, dtype=like.dtype, device=like.device), 1 / n_draws
    )


def _normal_mixture(distribution: Distribution, n: int) -> tuple[Tensor, ...] | None:
    """Means, standard deviations and weights of a mixture of normal distributions, (n, c) each."""
    if not isinstance(distribution, MixtureSameFamily):
        return None
    normal = unwrap_distribution(distribution.component_distribution)
    if not isinstance(normal, tuple):
        return None
    parameters = (*normal, _shares_of_components(distribution))
    mean, std, weight = (tensor.reshape(n, -1) for tensor in parameters)
    _tensors.check_normal(mean=mean, std=std, weight=weight)
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
) -> SampledForecast:
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
        samples = distribution.component_distribution.rsample((each,))
        values = samples.reshape(each, n, -1).permute(1, 0, 2).reshape(n, -1)
        weight = share.repeat(1, each) / each
    else:
        values, weight = _draw_with_score_weights(distribution, many)
    (values,) = promote_to_float(values)
    _tensors.check_finite_tensor("draws from prediction", values)
    cdf = partial(_cdf_at, distribution)
    return SampledForecast(values, cdf, _parameters(distribution, n), weight)


def _draw_with_score_weights(distribution: Distribution, n_draws: int) -> tuple[Tensor, Tensor]:
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
    parameters = torch.stack(promote_to_float(*(moment.reshape(n) for moment in moments)), dim=1)
    return parameters if _tensors.is_all_true(torch.isfinite(parameters)) else None


def check_user_values(name: str, function: Callable[..., Tensor], *points: Tensor) -> Tensor:
    """Values of a kernel or a loss of a user."""
    values = function(*points)
    _tensors.check_finite_tensor(f"values of {name}", values, "Check the function.")
    return values


def _check_user_cdf(cdf: Callable[[Tensor], Tensor], points: Tensor) -> Tensor:
    """Distribution functions of a user."""
    probability = cdf(points)
    _tensors.check_finite_tensor("cdf of SampledForecast", probability)
    return _tensors.check_between_0_and_1(
        "cdf of SampledForecast", probability, "Pass distribution functions."
    )


def _cdf_at(distribution: Distribution, points: Tensor) -> Tensor:
    """The distribution functions at points (n,), or (1, m) in common."""
    shape = distribution.batch_shape + distribution.event_shape
    shape = shape if points.ndim == 1 else torch.Size((-1, *[1] * len(shape)))
    try:
        (probability,) = promote_to_float(distribution.cdf(points.reshape(shape)))
    except NotImplementedError as error:
        raise ValueError(
            "prediction must be a distribution with cdf for forms of calibration and kernels that "
            f"compare probabilities; torch has none for {type(distribution).__name__}. Choose "
            "calibration='distribution' or 'marginal', which compare draws, or take one with cdf."
        ) from error
    if points.ndim == 1:
        return probability.reshape(-1)
    return probability.reshape(points.shape[1], -1).T


def check_moment_range(target: Tensor, mean: Tensor, mean_square: Tensor) -> None:
    """The loss is of the order of the fourth power of outcomes."""
    limit = torch.finfo(target.dtype).max ** 0.25 / 10
    largest = torch.stack([target.abs().max(), mean.abs().max(), mean_square.max() ** 0.5]).max()
    if not _tensors.is_all_true(largest <= limit):
        raise ValueError(
            f"target and prediction must not exceed {limit:.1g} for kernel='moments' in this "
            f"precision, whose fourth powers overflow; found {largest:.3g}. Standardize the "
            "outcomes."
        )
