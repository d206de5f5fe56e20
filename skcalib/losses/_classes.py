"""Class probabilities of a batch, and the residuals that the losses are made of."""

import math
from typing import NamedTuple

from array_api_compat import array_namespace

from .._numerics.array_api import Array, at_least_single, count_like, stop_gradient

# Probabilities are clipped to at least this where their logarithm is taken.
SMALLEST_PROBABILITY = 1e-30


class ClassPredictions(NamedTuple):
    """Probabilities of classes, their logarithms, and labels 0, …, K − 1.

    If there are draws from the probabilities, their mean takes the place of them in the residuals.
    """

    proba: Array  # (n, K)
    log_proba: Array  # (n, K)
    label: Array  # (n,)
    drawn: Array | None = None  # (n, K)

    def residuals(self) -> Array:
        """One-hot labels minus probabilities, (n, K)."""
        xp = array_namespace(self.proba)
        classes = count_like(self.proba, self.proba.shape[1])
        is_class = self.label[:, None] == classes
        expected = self.proba if self.drawn is None else self.drawn
        return xp.astype(is_class, self.proba.dtype) - expected

    def confidence(self) -> tuple[Array, Array]:
        """The largest probability, and the residual of its class, (n,) each."""
        xp = array_namespace(self.proba)
        classes = count_like(self.proba, self.proba.shape[1])
        is_top = xp.argmax(self.proba, axis=1)[:, None] == classes
        proba, residual = (
            xp.sum(xp.where(is_top, part, 0.0), axis=1) for part in (self.proba, self.residuals())
        )
        return proba, residual

    def problems(self, multi_class: str) -> tuple[Array, Array]:
        """Probabilities and residuals of P binary problems, (n, P) each.

        They are the second of two classes; of more, the confidence, or each class and the rest.
        """
        if self.proba.shape[1] == 2:
            return self.proba[:, 1:], self.residuals()[:, 1:]
        if multi_class == "classwise":
            return self.proba, self.residuals()
        proba, residual = self.confidence()
        return proba[:, None], residual[:, None]


def class_predictions(prediction: Array, target: Array, input_type: str) -> ClassPredictions:
    """From logits or probabilities, (n, K), or (n,) or (n, 1) of the second of two classes.

    They are NaN for samples whose label is none of 0, …, K − 1.
    """
    xp = array_namespace(prediction)
    (value,) = at_least_single(prediction)
    if value.ndim == 2 and value.shape[1] == 1:
        value = value[:, 0]
    are_probabilities = input_type == "probabilities"
    if value.ndim == 1:
        first = 1 - value if are_probabilities else xp.zeros_like(value)
        value = xp.stack([first, value], axis=1)
    is_label = xp.any(target[:, None] == count_like(value, value.shape[1]), axis=1)
    value = xp.where(is_label[:, None], value, math.nan)
    if are_probabilities:
        log_proba = xp.log(xp.clip(value, SMALLEST_PROBABILITY, None))
        return ClassPredictions(value, log_proba, target)
    value = less_largest(value)
    log_proba = value - xp.log(xp.sum(xp.exp(value), axis=1, keepdims=True))
    return ClassPredictions(xp.exp(log_proba), log_proba, target)


def less_largest(score: Array) -> Array:
    """Scores minus the largest along the last axis, so that exponentials do not overflow.

    What is subtracted is held constant: it does not matter to shares, and derivatives of a maximum
    need care where it is recomputed.
    """
    xp = array_namespace(score)
    return score - stop_gradient(xp.max(score, axis=-1, keepdims=True))
