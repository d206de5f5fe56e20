"""Class probabilities of a batch, and the residuals that the losses are made of."""

from typing import NamedTuple

from array_api_compat import array_namespace

from .._numerics.array_api import Array, count_like

# Probabilities are clipped to at least this where their logarithm is taken.
_SMALLEST = 1e-30


class ClassPredictions(NamedTuple):
    """Probabilities of classes, their logarithms, and labels 0, …, K − 1."""

    proba: Array  # (n, K)
    log_proba: Array  # (n, K)
    label: Array  # (n,)

    def residuals(self) -> Array:
        """One-hot labels minus probabilities, (n, K)."""
        xp = array_namespace(self.proba)
        classes = count_like(self.proba, self.proba.shape[1])
        is_class = self.label[:, None] == classes
        return xp.astype(is_class, self.proba.dtype) - self.proba

    def confidence(self) -> tuple[Array, Array]:
        """The largest probability, and whether its class is right minus it, (n,) each."""
        xp = array_namespace(self.proba)
        top = xp.argmax(self.proba, axis=1)
        hit = xp.astype(top == self.label, self.proba.dtype)
        proba = xp.max(self.proba, axis=1)
        return proba, hit - proba

    def binary(self) -> tuple[Array, Array]:
        """Probability and residual of the second of two classes; of more, the confidence."""
        if self.proba.shape[1] > 2:
            return self.confidence()
        return self.proba[:, 1], self.residuals()[:, 1]


def class_predictions(prediction: Array, target: Array, inputs: str) -> ClassPredictions:
    """From logits or probabilities, (n, K), or (n,) or (n, 1) of the second of two classes."""
    xp = array_namespace(prediction)
    value = at_least_single(prediction)
    if value.ndim == 2 and value.shape[1] == 1:
        value = value[:, 0]
    if inputs == "probabilities":
        if value.ndim == 1:
            value = xp.stack([1 - value, value], axis=1)
        log_proba = xp.log(xp.clip(value, _SMALLEST, 1.0))
        return ClassPredictions(value, log_proba, target)
    if value.ndim == 1:
        value = xp.stack([xp.zeros_like(value), value], axis=1)
    value = value - xp.max(value, axis=1, keepdims=True)
    log_proba = value - xp.log(xp.sum(xp.exp(value), axis=1, keepdims=True))
    return ClassPredictions(xp.exp(log_proba), log_proba, target)


def at_least_single(array: Array) -> Array:
    """The array in single or double precision."""
    xp = array_namespace(array)
    return array if array.dtype in (xp.float32, xp.float64) else xp.astype(array, xp.float32)
