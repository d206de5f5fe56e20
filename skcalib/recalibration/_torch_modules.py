"""Modules of PyTorch that map logits to calibrated ones."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def count_columns(scores: Tensor) -> int:
    """The number K of columns of (n, K), or 0 for other dimensions.

    While a tracer records operations, the entries of a shape are tensors, and a comparison of one
    would warn.
    """
    if scores.ndim != 2:
        return 0
    return len(scores.unbind(1)) if torch.jit.is_tracing() else scores.shape[1]


def format_buffer(name: str, values: Tensor) -> str:
    """One number if all values are equal, else up to ten numbers, or the shape of more.

    If all log-probabilities have the same factor, the text is the temperature that divides them.
    """
    first = values.flatten()[0]
    if (values == first).all():
        is_temperature = name == "factor" and values.ndim == 1
        return f"temperature={1 / first:.4g}" if is_temperature else f"{name}={first:.4g}"
    if values.numel() > 10:
        return f"{name}=tensor of shape {tuple(values.shape)}"
    return f"{name}=[{', '.join(f'{value:.4g}' for value in values.flatten())}]"


class LogitMap(torch.nn.Module):
    """A map of logits (n, K), or of the log-odds of the last of two classes, (n,) or (n, 1)."""

    limits: Tensor  # of log-probabilities

    def __init__(
        self, n_classes: int, smallest_probability: float, dtype: torch.dtype, **buffers: np.ndarray
    ) -> None:
        super().__init__()
        self.n_classes = n_classes
        dtype = torch.get_default_dtype() if dtype is None else dtype
        with np.errstate(divide="ignore"):
            low = np.log(smallest_probability)
        buffers["limits"] = np.array([low, np.log1p(-smallest_probability)])
        for name, values in buffers.items():
            self.register_buffer(name, torch.tensor(values, dtype=dtype))

    def forward(self, logits: Tensor) -> Tensor:
        is_log_odds = logits.ndim == 1 or count_columns(logits) == 1
        scores = logits.to(self.limits.dtype)
        if is_log_odds:
            scores = scores.reshape(-1)
            scores = torch.stack((torch.zeros_like(scores), scores), dim=1)
        if count_columns(scores) != self.n_classes:
            raise ValueError(
                "logits must have one column for each class seen at fit, or, for two of them, "
                "hold the log-odds of the last one."
            )
        scores = self.map_logits(scores)
        if is_log_odds:
            return (scores[:, 1] - scores[:, 0]).reshape(logits.shape)
        return scores

    def map_logits(self, scores: Tensor) -> Tensor:
        """From logits (n, K) to calibrated ones."""
        raise NotImplementedError

    def log_proba(self, scores: Tensor) -> Tensor:
        """Clipped log-probabilities (n, K)."""
        return torch.clamp(torch.log_softmax(scores, dim=1), self.limits[0], self.limits[1])

    def extra_repr(self) -> str:
        texts = [f"n_classes={self.n_classes}"]
        for name, values in self.named_buffers(recurse=False):
            if name != "limits" and values.numel() > 0 and not values.is_meta:
                texts.append(format_buffer(name, values))
        return ", ".join(texts)


class Scaling(LogitMap):
    """Scores that are linear in log-probabilities; the factor is (K,) or (K, K).

    With bounds (2, K), it is (K, 2K): of clipped log-probabilities, and of given ones.
    """

    factor: Tensor
    shift: Tensor
    bounds: Tensor

    def __init__(
        self,
        factor: np.ndarray,
        shift: np.ndarray,
        smallest_probability: float,
        dtype: torch.dtype,
        **buffers: np.ndarray,
    ) -> None:
        buffers |= {"factor": factor, "shift": shift}
        super().__init__(len(shift), smallest_probability, dtype, **buffers)

    def map_logits(self, scores: Tensor) -> Tensor:
        log_proba = self.log_proba(scores)
        if hasattr(self, "bounds"):
            log_proba = torch.cat([log_proba.clamp(*self.bounds.unbind()), log_proba], dim=1)
        if self.factor.ndim == 1:
            return log_proba * self.factor + self.shift
        return torch.nn.functional.linear(log_proba, self.factor, self.shift)


class LogOddsMaps(LogitMap):
    """Calibrated log-odds of the last of two classes, or of each of K against the rest.

    Between knots (M, m) they are polynomials of the distance from an origin (M, m + 1), with
    coefficients (M, m + 1, d), plus a multiple (M,) of the log-probability.
    """

    knots: Tensor
    origin: Tensor
    coefficients: Tensor
    skew: Tensor

    def map_logits(self, scores: Tensor) -> Tensor:
        log_proba = self.log_proba(scores)
        if self.n_classes == 2:
            log_odds = self.map_log_odds(log_proba[:, 1:] - log_proba[:, :1], log_proba[:, 1:])
            return torch.cat((torch.zeros_like(log_odds), log_odds), dim=1)
        log_odds = self.map_log_odds(log_proba - self.log_rest(scores, log_proba), log_proba)
        return torch.nn.functional.logsigmoid(log_odds)

    def log_rest(self, scores: Tensor, log_proba: Tensor) -> Tensor:
        """Logarithms (n, K) of what each class leaves to the others.

        For the likeliest class the others are summed: in single precision its probability is 1
        where the rest is below 6e-8. In double precision it is rounded as predictions are.
        """
        if scores.dtype == torch.float64:
            return torch.log(-torch.expm1(log_proba))
        columns = torch.arange(self.n_classes, device=scores.device)
        is_largest = columns == torch.argmax(scores, dim=1)[:, None]
        other_scores = scores.masked_fill(is_largest, -torch.inf)
        log_complement = torch.logsumexp(other_scores, dim=1) - torch.logsumexp(scores, dim=1)
        log_complement = torch.clamp(log_complement, self.limits[0], self.limits[1])[:, None]
        smaller = log_proba.masked_fill(is_largest, -1.0)  # where the derivative is finite
        return torch.where(is_largest, log_complement, torch.log(-torch.expm1(smaller)))

    def map_log_odds(self, log_odds: Tensor, log_proba: Tensor) -> Tensor:
        """From predicted log-odds and log-probabilities (n, M) to calibrated log-odds."""
        piece = (log_odds[:, :, None] >= self.knots).sum(dim=2)
        column = torch.arange(log_odds.shape[1], device=piece.device)
        distance = log_odds - self.origin[column, piece]
        coefficients = self.coefficients[column, piece]  # (n, M, d)
        powers = coefficients.unbind(dim=2)  # torch.jit.script cannot unpack a list
        value = powers[-1]
        for power in range(len(powers) - 2, -1, -1):
            value = powers[power] + distance * value
        return value + self.skew * log_proba


class Mixture(LogitMap):
    """The logarithms of weighted means of the probabilities of other modules."""

    log_weight: Tensor

    def __init__(
        self, n_classes: int, members: Sequence[LogitMap], weights: np.ndarray, dtype: torch.dtype
    ) -> None:
        super().__init__(n_classes, 0.0, dtype, log_weight=np.log(weights))
        self.members = torch.nn.ModuleList(members)

    def map_logits(self, scores: Tensor) -> Tensor:
        log_proba = [torch.log_softmax(member(scores), dim=1) for member in self.members]
        return torch.logsumexp(torch.stack(log_proba, dim=2) + self.log_weight, dim=2)


class Chain(LogitMap):
    """A map of the results of another one."""

    def __init__(self, first: LogitMap, second: LogitMap, dtype: torch.dtype) -> None:
        super().__init__(first.n_classes, 0.0, dtype)
        self.first, self.second = first, second

    def map_logits(self, scores: Tensor) -> Tensor:
        return self.second(self.first(scores))


class PairwiseScaling(LogitMap):
    """Scores with products of log-probabilities above a floor, relative to their mean."""

    floor: Tensor
    quadratic: Tensor  # (K, K, K)
    shift: Tensor

    def map_logits(self, scores: Tensor) -> Tensor:
        log_proba = self.log_proba(scores)
        relative = torch.clamp(log_proba, min=self.floor)
        relative = relative - relative.mean(dim=1, keepdim=True)
        products = torch.einsum("ni,nj,ijk->nk", relative, relative, self.quadratic)
        return log_proba + products + self.shift
