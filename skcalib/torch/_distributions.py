"""Predictive distributions of a number as the losses take them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, Independent
from torch.distributions import Normal as TorchNormal

from ..losses import Draws
from ..losses._forecasts import Normal, as_distributions
from ._checks import at_least_single, check_between_0_and_1, check_finite, normal_parameters

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
    normal = Normal(mean, std)
    noise = torch.randn((n, n_draws), dtype=mean.dtype, device=mean.device)
    return Draws(mean[:, None] + std[:, None] * noise, normal.cdf, normal.parameters())


def parameters_of(prediction: Any, target: Tensor) -> np.ndarray:
    """Mean and log standard deviation of training data, (n, 2)."""
    parameters = as_distributions(forecast_of(prediction, target, needs_draws=False)).parameters()
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
