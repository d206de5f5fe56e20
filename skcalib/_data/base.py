"""Base of checked data of every kind."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from .._numerics.array_api import Array, array_namespace, take_rows


@dataclass(frozen=True, kw_only=True)
class EvaluationData(ABC):
    """Predictions, outcomes and weights of the same samples, which have been checked.

    Tests, intervals and reports use these verbs only, so that they work for predicted classes and
    for forecasts of a number alike.
    """

    is_forecast: ClassVar[bool]  # of a number; otherwise of classes

    # Names of the fields that all rows share; any other is None or has an entry for each row.
    _shared: ClassVar[frozenset[str]] = frozenset()

    weight: np.ndarray  # (n,), positive, sums to 1
    given: np.ndarray | None = None  # (n, d), or (n,) labels of groups: conditioned on
    groups: np.ndarray | None = None  # codes (n,), or crossed (n, 2), of dependent samples
    blocks: np.ndarray | None = None  # codes (n,) of what no fold of recalibrators divides
    # (n,), what each row contributes to 1 / (the effective number of samples); None if it is w²
    square: np.ndarray | None = None

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """The number of samples."""

    @property
    def inverse_effective_size(self) -> float:
        """1 / (the effective number of samples): Σ w_i², so 1/n for equal weights, or more."""
        return float(self.weight @ self.weight if self.square is None else self.square.sum())

    def mean(self, values: np.ndarray) -> float:
        """Return the weighted mean of values (n,), exact for counts of equal weights."""
        is_equal = (self.weight == self.weight[0]).all()
        return float(np.average(values, weights=None if is_equal else self.weight))

    @property
    def squares(self) -> np.ndarray:
        """Terms (n,) that sum to 1 / (the effective number of samples); w² without `square`."""
        return self.weight**2 if self.square is None else self.square

    @property
    @abstractmethod
    def outcome(self) -> np.ndarray:
        """The observed outcomes (n,), as `simulate_outcomes` returns simulated ones."""

    @property
    def labels(self) -> np.ndarray | None:
        """The argument `labels` of public functions: the classes, None for forecasts."""
        return None

    def _map_rows(self, function: Callable[[Any], Any]) -> dict[str, Any]:
        """Return the function of each field that has an entry for each row."""
        return {
            name: function(values)
            for name, values in vars(self).items()
            if values is not None and name not in self._shared
        }

    def take(self, rows: Array) -> Self:
        """Return some of the samples, possibly repeated; their weights sum to 1 again."""
        fields = self._map_rows(lambda values: take_rows(values, rows))
        weight = fields["weight"]
        total = array_namespace(weight).sum(weight)
        if isinstance(weight, np.ndarray) and len(weight) and (weight == weight[0]).all():
            fields["weight"] = np.broadcast_to(1 / len(weight), len(weight))  # 1/n to the last bit
        else:
            fields["weight"] = weight / total
        if self.square is not None:
            fields["square"] = fields["square"] / total**2
        return replace(self, **fields)

    @abstractmethod
    def simulate_outcomes(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """Return outcomes drawn from the predictions, (size, n)."""

    @abstractmethod
    def iter_residuals(self) -> Iterator[np.ndarray]:
        """Yield residuals (n,) of outcomes and predictions, on average 0; on the host."""

    def iter_couplings(self) -> Iterator[Self]:
        """Yield the data with each way in which simulated outcomes of a group may be alike."""
        yield self

    @abstractmethod
    def with_outcome(self, outcome: np.ndarray) -> Self:
        """Return the same predictions with other outcomes (n,)."""

    @abstractmethod
    def canonical_order(self) -> Array:
        """Return indices (n,) that sort the samples by their values."""
