"""Recalibration as a module of PyTorch, which is imported when the first one is made."""

from functools import cache
from typing import Any

import numpy as np


def scaling_module(
    factor: np.ndarray, shift: np.ndarray, smallest_probability: float, dtype: Any
) -> Any:
    """A `Scaling` of logits: factors (K,) or (K, K) of their log-probabilities, and shifts (K,)."""
    return _scaling_class()(factor, shift, smallest_probability, dtype)


def __getattr__(name: str) -> Any:
    """`Scaling`, where pickle and torch.load look for it."""
    if name == "Scaling":
        return _scaling_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _scaling_class() -> Any:
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            'to_module() needs PyTorch; it is not installed. Run pip install "skcalib[torch]".'
        ) from error

    class Scaling(torch.nn.Module):
        """Scores that are linear in the log-probabilities of logits."""

        def __init__(
            self, factor: np.ndarray, shift: np.ndarray, smallest_probability: float, dtype: Any
        ) -> None:
            super().__init__()
            dtype = torch.get_default_dtype() if dtype is None else dtype
            with np.errstate(divide="ignore"):
                low = np.log(smallest_probability)
            limits = np.array([low, np.log1p(-smallest_probability)])
            for name, values in (("factor", factor), ("shift", shift), ("limits", limits)):
                self.register_buffer(name, torch.tensor(values, dtype=dtype))

        def forward(self, logits: torch.Tensor) -> torch.Tensor:
            is_log_odds = logits.ndim == 1 or (logits.ndim == 2 and logits.shape[1] == 1)
            scores = logits.to(self.factor.dtype)
            if is_log_odds:
                scores = scores.reshape(-1)
                scores = torch.stack((torch.zeros_like(scores), scores), dim=1)
            if scores.ndim != 2 or scores.shape[1] != self.shift.shape[0]:
                raise ValueError(
                    "logits must have one column for each class seen at fit, or, for two of them, "
                    "hold the log-odds of the last one."
                )
            log_proba = torch.log_softmax(scores, dim=1)
            log_proba = torch.clamp(log_proba, self.limits[0], self.limits[1])
            if self.factor.ndim == 1:
                scores = log_proba * self.factor + self.shift
            else:
                scores = torch.nn.functional.linear(log_proba, self.factor, self.shift)
            if is_log_odds:
                return (scores[:, 1] - scores[:, 0]).reshape(logits.shape)
            return scores

        def extra_repr(self) -> str:
            return f"n_classes={len(self.shift)}"

    Scaling.__qualname__ = "Scaling"
    return Scaling
