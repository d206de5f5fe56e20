"""What the penalties share."""

import inspect
from typing import Any

import torch
from torch import Tensor

from .._inputs.scikit_learn import validate_parameter_constraints
from ._checks import check_tensor, flat


class Penalty(torch.nn.Module):
    """A calibration error of a batch, in at least single precision also under autocast."""

    def __init__(self, constraints: dict, **options: Any) -> None:
        super().__init__()
        validate_parameter_constraints(constraints, options, type(self).__name__)
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
            torch, or :class:`skcalib.losses.Draws`.

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
        target = flat(target)
        check_tensor("given", given)
        check_tensor("sample_weight", sample_weight)
        with torch.autocast(target.device.type, enabled=False):
            return self._error(prediction, target, given, sample_weight)

    def _error(self, prediction, target, given, sample_weight):
        raise NotImplementedError

    def extra_repr(self) -> str:
        parameters = inspect.signature(type(self)).parameters.items()
        own = ((name, getattr(self, name), parameter.default) for name, parameter in parameters)
        return ", ".join(f"{name}={_brief(value)}" for name, value, old in own if value is not old)


def _brief(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"tensor of shape {tuple(value.shape)}"
    return repr(value)
