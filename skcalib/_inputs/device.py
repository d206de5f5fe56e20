"""Predictions that are computed on where they live: tensors on a GPU, for example."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_strict_namespace,
    is_cupy_array,
    is_torch_array,
)

from .._numerics.array_api import (
    Array,
    at_least_single,
    rows_of,
    stop_gradient,
    to_numpy,
)
from .predictions import Predictions
from .scikit_learn import dispatches_arrays


def stays(values: Any) -> bool:
    """Whether an array is computed on where it lives. Everything else is converted to NumPy's.

    Arrays of PyTorch and CuPy stay if scikit-learn's `array_api_dispatch` is set, on devices that
    know double precision, in which sums are taken.
    """
    if not dispatches_arrays():
        return False
    is_known = is_torch_array(values) or is_cupy_array(values) or _is_strict(values)
    return is_known and getattr(device(values), "type", "") != "mps"


def _is_strict(values: Any) -> bool:
    """Whether this is an array of the package that tests for the standard."""
    if not hasattr(values, "__array_namespace__"):
        return False
    return is_array_api_strict_namespace(values.__array_namespace__())


def numbers_in_place(values: Any) -> Array | None:
    """Numbers (n,) or (n, K), K ≥ 2, that stay where they are; None for what does not."""
    if not stays(values) or values.ndim not in (1, 2) or 0 in values.shape:
        return None
    if not array_namespace(values).isdtype(values.dtype, "real floating"):
        return None
    (numbers,) = at_least_single(stop_gradient(values))
    return numbers[:, 0] if numbers.shape[1:] == (1,) else numbers


@dataclass(frozen=True)
class DevicePredictions(Predictions):
    """`Predictions` whose arrays, but for the classes, stay where they live.

    They have what sums need. `on_host` makes NumPy's arrays of them, for what sorts or searches.
    Probabilities have the precision of the user's, weights are double.
    """

    @classmethod
    def of(
        cls,
        proba: Array,
        label: np.ndarray,
        weight: np.ndarray,
        classes: np.ndarray,
        log_proba: Array | None = None,
    ) -> "DevicePredictions":
        """Labels and weights of NumPy join the probabilities."""
        xp = array_namespace(proba)
        label = xp.asarray(label.astype(np.int64), device=device(proba))
        weight = xp.asarray(np.array(weight), device=device(proba))
        return cls(proba, label, weight, classes, log_proba=log_proba)

    @property
    def matrix(self) -> Array:
        """The probabilities of all classes in the precision that they have, (n, K)."""
        if not self.is_binary:
            return self.proba
        return array_namespace(self.proba).stack([1 - self.proba, self.proba], axis=1)

    def take(self, rows: Array) -> "DevicePredictions":
        """Some of the samples, possibly repeated; their weights sum to 1 again."""
        weight = rows_of(self.weight, rows)
        return replace(
            self,
            proba=rows_of(self.proba, rows),
            label=rows_of(self.label, rows),
            weight=weight / array_namespace(weight).sum(weight),
            log_proba=None if self.log_proba is None else rows_of(self.log_proba, rows),
        )

    def sorted(self) -> "DevicePredictions":
        """The same in any order: sums on a device are not the same to the last bit anyway."""
        return self

    def canonical_order(self) -> Array:
        """The same order as NumPy's: by the largest probability, then by everything else."""
        xp, proba = array_namespace(self.proba), self.matrix
        largest = xp.max(proba, axis=1)
        order = xp.argsort(largest, stable=True)
        same = xp.diff(xp.take(largest, order)) == 0
        no = xp.zeros_like(same[:1])
        is_tied = xp.concat([same, no]) | xp.concat([no, same])
        tied = order[is_tied]
        columns = (proba[:, k] for k in range(proba.shape[1]))
        for key in (self.weight, *columns, largest):
            tied = xp.take(tied, xp.argsort(xp.take(key, tied), stable=True))
        order[is_tied] = tied
        return order

    def on_host(self) -> Predictions:
        """The same in arrays of NumPy."""
        proba = to_numpy(self.proba)
        return Predictions(
            proba.astype(np.float64) if self.is_binary else proba,
            to_numpy(self.label).astype(np.int32),
            to_numpy(self.weight),
            self.classes,
            log_proba=to_numpy(self.log_proba),
        )
