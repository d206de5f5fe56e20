"""Forecasts of several models, of different rows, as one."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

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


def _asked(name: str, *, by_row: bool = True) -> Any:
    """A method that asks each part for its rows; arguments are split by rows, or all the same."""

    def method(self: "ConcatenatedForecast", *arguments: Any) -> Any:
        answers = [
            getattr(part, name)(*(value[place] if by_row else value for value in arguments))
            for part, place in zip(self.parts, self.places, strict=True)
            if len(place)
        ]
        return self._in_order(answers)

    return method


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

    def _in_order(self, answers: list[Any]) -> Any:
        """The answers of the parts that have rows, as one answer in the order of the rows."""
        if any(answer is None for answer in answers):
            return None
        if isinstance(answers[0], tuple):
            joined = [self._in_order(list(arrays)) for arrays in zip(*answers, strict=True)]
            return Components(*joined) if isinstance(answers[0], Components) else tuple(joined)
        if answers[0].ndim == 2:  # components that a part lacks have the weight 0
            width = max(answer.shape[1] for answer in answers)
            answers = [np.pad(a, ((0, 0), (0, width - a.shape[1]))) for a in answers]
        return np.concatenate(answers)[np.argsort(np.concatenate(self.places), kind="stable")]

    def _check_outcomes(self, y: np.ndarray, name: str) -> None:
        for part, place in zip(self.parts, self.places, strict=True):
            part._check_outcomes(y[place], name)

    _cdf = _asked("_cdf")
    _sf = _asked("_sf")
    _logcdf = _asked("_logcdf")
    _logsf = _asked("_logsf")
    _logpdf = _asked("_logpdf")
    _ppf = _asked("_ppf")
    _pit_bounds = _asked("_pit_bounds")
    _crps = _asked("_crps")
    _match_scale = _asked("_match_scale")
    mean = _asked("mean")
    std = _asked("std")
    entropy = _asked("entropy")
    quantiles = _asked("quantiles", by_row=False)
    interval = _asked("interval", by_row=False)
    components = _asked("components", by_row=False)
    _atoms = _asked("_atoms", by_row=False)
    _sample = _asked("_sample", by_row=False)


@at_log_odds.register
def _(forecast: ConcatenatedForecast, z: np.ndarray) -> np.ndarray:
    answers = [
        at_log_odds(part, z[place])
        for part, place in zip(forecast.parts, forecast.places, strict=True)
        if len(place)
    ]
    return forecast._in_order(answers)
