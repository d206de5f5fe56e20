"""Checked forecasts of a number and their outcomes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from .._inputs.drawing import draw_levels_in_groups
from .._inputs.warnings import check_memory
from ..forecasts import EnsembleForecast, Forecast
from .base import EvaluationData


@dataclass(frozen=True)
class ForecastData(EvaluationData):
    """Checked forecasts, outcomes and weights. For classes there are `ClassData`."""

    kind: ClassVar[str] = "forecasts"
    is_forecast: ClassVar[Literal[True]] = True

    forecast: Forecast
    value: np.ndarray  # (n,), the outcomes

    @property
    def n_samples(self) -> int:
        return len(self.value)

    @property
    def outcome(self) -> np.ndarray:
        """The observed outcomes (n,), as `simulate_outcomes` returns simulated ones.

        An ensemble without weights has positions instead: the outcome itself has the position 0,
        the sorted members have those from 1.
        """
        if self.forecast.is_exchangeable:
            return np.zeros(len(self.value), dtype=np.intp)
        return self.value

    def simulate_outcomes(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """Outcomes drawn from the forecasts, (size, n); they are independent but for groups.

        For an ensemble without weights these are positions: all are equally likely if the outcome
        is exchangeable with the members.
        """
        check_memory(8.0 * size * len(self.value), f"n_resamples={size}", "Choose fewer.")
        if self.groups is not None:
            sample = self.forecast.pit_bounds(self.value), self.groups, self.weight
            return self._simulate_at(draw_levels_in_groups(*sample, size, generator))
        if self.forecast.is_exchangeable:
            n_values = self.forecast._n_members + 1
            return generator.integers(n_values, size=(size, len(self.value)))
        return self.forecast._simulate(generator, size)

    def iter_residuals(self) -> Iterator[np.ndarray]:
        """Yield the levels of the outcomes, minus their mean, (n,)."""
        level = np.mean(self.forecast.pit_bounds(self.value), axis=0)
        yield level - self.weight @ level

    def _simulate_at(self, level: np.ndarray) -> np.ndarray:
        """Outcomes, or positions, drawn by uniform numbers (size, n): high values by high ones."""
        if not self.forecast.is_exchangeable:
            return self.forecast._simulate_at(level)
        values = self.exchangeable_values()
        rank = (level * (self.forecast._n_members + 1)).astype(np.intp)
        rank_of_outcome = np.sum(values[:, 1:] < values[:, :1], axis=1)
        return np.where(rank == rank_of_outcome, 0, rank + (rank < rank_of_outcome))

    def exchangeable_values(self) -> np.ndarray:
        """The outcome and the sorted members of each ensemble, (n, s + 1); NaN if missing."""
        return np.column_stack([self.value, np.sort(self.forecast.members, axis=1)])

    def to_outcome_values(self, outcomes: np.ndarray) -> np.ndarray:
        """The values that redrawn outcomes (R, n) stand for."""
        if not self.forecast.is_exchangeable:
            return outcomes
        return np.take_along_axis(self.exchangeable_values(), outcomes.T, axis=1).T

    def with_outcome(self, outcome: np.ndarray) -> "ForecastData":
        """The data with other outcomes (n,), such as one row of `simulate_outcomes`.

        A member that changes places with the outcome changes the forecast as well.
        """
        if not self.forecast.is_exchangeable:
            return replace(self, value=outcome)
        pooled_rows = self.exchangeable_values()
        rows = np.arange(len(pooled_rows))
        value = pooled_rows[rows, outcome]
        pooled_rows[rows, outcome] = self.value
        return replace(self, value=value, forecast=EnsembleForecast(pooled_rows[:, 1:]))

    def canonical_order(self) -> np.ndarray:
        """Indices (n,) that sort the samples by their forecasts, in whatever order they came.

        The outcome that changes places with members is one of what a sample is sorted by.
        """
        keys = self.forecast._sort_keys()
        if self.forecast.is_exchangeable:
            keys = [*keys, self.value]
        if self.given is not None:
            keys = [*keys, *self.given.reshape(len(self.value), -1).T]
        return np.lexsort((self.weight, *keys))
