"""Forecasts of several models, of different rows, as one."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._base import Components, Forecast
from ._derived import at_log_odds
from ._ensemble import EnsembleForecast, ResidualForecast
from ._gaussian import GaussianForecast, GaussianMixtureForecast
from ._quantile import QuantileForecast


def concatenate(forecasts: Sequence[Forecast]) -> Forecast:
    """One forecast with the rows of all, in this order.

    Forecasts of one kind stay of that kind: normals, mixtures, ensembles and quantiles of one size,
    and residuals that are shared. Others are kept side by side.
    """
    first = forecasts[0]
    if len(forecasts) == 1:
        return first
    if len({type(forecast) for forecast in forecasts}) == 1:
        join = _JOINS.get(type(first))
        joined = None if join is None else join(forecasts)
        if joined is not None:
            return joined
    return ConcatenatedForecast(forecasts)


def _stack(forecasts: Sequence[Any], name: str) -> np.ndarray:
    return np.concatenate([getattr(forecast, name) for forecast in forecasts])


def _same(forecasts: Sequence[Any], name: str) -> bool:
    first = getattr(forecasts[0], name)
    return all(np.array_equal(getattr(forecast, name), first) for forecast in forecasts)


def _join_gaussian(forecasts: Sequence[GaussianForecast]) -> Forecast:
    return GaussianForecast(_stack(forecasts, "loc"), _stack(forecasts, "scale"))


def _join_mixtures(forecasts: Sequence[GaussianMixtureForecast]) -> Forecast | None:
    if len({forecast.loc.shape[1] for forecast in forecasts}) > 1:
        return None
    return GaussianMixtureForecast(*(_stack(forecasts, n) for n in ("loc", "scale", "weights")))


def _join_ensembles(forecasts: Sequence[EnsembleForecast]) -> Forecast | None:
    sizes = [forecast.members.shape[1] for forecast in forecasts]
    exchangeable = [forecast.is_exchangeable for forecast in forecasts]
    if len(set(exchangeable)) > 1 or (exchangeable[0] and len(set(sizes)) > 1):
        return None
    if exchangeable[0]:
        return EnsembleForecast(_stack(forecasts, "members"))
    missing = [(0, 0), (0, 0)]
    members, weights = [], []
    for forecast, size in zip(forecasts, sizes, strict=True):
        missing[1] = (0, max(sizes) - size)  # members of weight 0
        members.append(np.pad(forecast.members, missing, mode="edge"))
        weights.append(np.pad(forecast.weights, missing))
    return EnsembleForecast(np.concatenate(members), np.concatenate(weights))


def _join_quantiles(forecasts: Sequence[QuantileForecast]) -> Forecast | None:
    if not _same(forecasts, "levels"):
        return None
    return QuantileForecast(_stack(forecasts, "values"), forecasts[0].levels)


def _join_residuals(forecasts: Sequence[ResidualForecast]) -> Forecast | None:
    if not (_same(forecasts, "residuals") and _same(forecasts, "weights")):
        return None
    location = _stack(forecasts, "location")
    return ResidualForecast(location, forecasts[0].residuals, forecasts[0].weights)


_JOINS: dict[type, Callable[[Any], Forecast | None]] = {
    GaussianForecast: _join_gaussian,
    GaussianMixtureForecast: _join_mixtures,
    EnsembleForecast: _join_ensembles,
    QuantileForecast: _join_quantiles,
    ResidualForecast: _join_residuals,
}


class ConcatenatedForecast(Forecast):
    """Forecasts of any kinds side by side; each row asks the forecast that it came from."""

    def __init__(
        self, parts: Sequence[Forecast], places: Sequence[np.ndarray] | None = None
    ) -> None:
        if places is None:
            ends = np.cumsum([0, *(len(part) for part in parts)])
            places = [np.arange(*pair) for pair in itertools.pairwise(ends)]
        self.parts = tuple(parts)
        self.places = tuple(places)  # for each part the rows that it holds here

    @property
    def is_continuous(self) -> bool:  # type: ignore[override]
        return all(part.is_continuous for part in self.parts)

    @property
    def _n_rows(self) -> int:
        return sum(len(part) for part in self.parts)

    def _take(self, rows: np.ndarray) -> "ConcatenatedForecast":
        owner = np.empty(len(self), dtype=np.intp)
        row_there = np.empty(len(self), dtype=np.intp)
        for number, place in enumerate(self.places):
            owner[place] = number
            row_there[place] = np.arange(len(place))
        parts, places = [], []
        for number, part in enumerate(self.parts):
            place = np.flatnonzero(owner[rows] == number)
            parts.append(part[row_there[rows[place]]])
            places.append(place)
        return ConcatenatedForecast(parts, places)

    def _ask(self, method: str, *arguments: np.ndarray) -> Any:
        """The answers of the parts, each about its rows, in the order of the rows."""
        answers = [
            getattr(part, method)(*(values[place] for values in arguments))
            for part, place in zip(self.parts, self.places, strict=True)
            if len(place)
        ]
        return self._in_order(answers)

    def _in_order(self, answers: list[np.ndarray]) -> np.ndarray:
        order = np.argsort(np.concatenate(self.places), kind="stable")
        return np.concatenate(answers)[order]

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return self._ask("_cdf", y)

    def _sf(self, y: np.ndarray) -> np.ndarray:
        return self._ask("_sf", y)

    def _logcdf(self, y: np.ndarray) -> np.ndarray:
        return self._ask("_logcdf", y)

    def _logsf(self, y: np.ndarray) -> np.ndarray:
        return self._ask("_logsf", y)

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        return self._ask("_logpdf", y)

    def _ppf(self, level: np.ndarray) -> np.ndarray:
        return self._ask("_ppf", level)

    def _mean(self) -> np.ndarray:
        return self._ask("mean")

    def _std(self) -> np.ndarray:
        return self._ask("std")

    def _entropy(self) -> np.ndarray:
        return self._ask("entropy")

    def _sample(self, generator: np.random.Generator, size: int) -> np.ndarray:
        drawn = [part._sample(generator, size) for part in self.parts if len(part)]
        return self._in_order(drawn)

    def _pit_bounds(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bounds = [
            np.column_stack(part._pit_bounds(y[place]))
            for part, place in zip(self.parts, self.places, strict=True)
            if len(place)
        ]
        lower, upper = self._in_order(bounds).T
        return lower, upper

    def _crps(self, y: np.ndarray) -> np.ndarray:
        return self._ask("crps", y)

    def quantiles(self, levels: ArrayLike) -> np.ndarray:
        return self._in_order([part.quantiles(levels) for part in self.parts if len(part)])

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        super().interval(level)  # which judges the level
        ends = [np.column_stack(part.interval(level)) for part in self.parts if len(part)]
        low, high = self._in_order(ends).T
        return low, high

    def components(self, n_nodes: int = 64) -> Components:
        return self._joined([part.components(n_nodes) for part in self.parts if len(part)])

    def _atoms(self) -> Components | None:
        parts = [part._atoms() for part in self.parts if len(part)]
        known = [part for part in parts if part is not None]
        return self._joined(known) if len(known) == len(parts) else None

    def _joined(self, parts: Sequence[Components]) -> Components:
        """The components of all parts, in the order of the rows."""
        size = max(part.location.shape[1] for part in parts)
        arrays = []
        for name in Components._fields:
            padded = []  # further components have the weight 0
            for part in parts:
                values = getattr(part, name)
                wider = np.zeros((len(values), size))
                wider[:, : values.shape[1]] = values
                padded.append(wider)
            arrays.append(self._in_order(padded))
        return Components(*arrays)

    def match_scale(self, y: np.ndarray) -> np.ndarray:
        return self._ask("match_scale", y)

    def check_outcomes(self, y: np.ndarray, name: str) -> None:
        for part, place in zip(self.parts, self.places, strict=True):
            part.check_outcomes(y[place], name)


@at_log_odds.register
def _(forecast: ConcatenatedForecast, z: np.ndarray) -> np.ndarray:
    answers = [
        at_log_odds(part, z[place])
        for part, place in zip(forecast.parts, forecast.places, strict=True)
        if len(place)
    ]
    return forecast._in_order(answers)
