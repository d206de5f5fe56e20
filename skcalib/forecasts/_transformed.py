"""Forecasts made of others: moved, at other levels, or side by side, each kind in its way."""

import itertools
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.special import ndtri

from ._as_forecast import as_forecast
from ._base import Components, Forecast, RowFunction
from ._derived import AffineForecast, RecalibratedForecast, ppf_log_odds, remap_weights
from ._ensemble import EnsembleForecast, ResidualForecast
from ._gaussian import GaussianMixtureForecast, LocationScaleForecast
from ._quantile import QuantileForecast


@singledispatch
def affine(forecast: Forecast, centre: np.ndarray, new: np.ndarray, factor: np.ndarray) -> Forecast:
    """Return the forecasts of new + factor (Y − centre), of the same kind if there is one."""
    return AffineForecast(forecast, new - factor * centre, factor)


@affine.register(LocationScaleForecast)
def _(forecast: Any, centre: np.ndarray, new: np.ndarray, factor: np.ndarray) -> Forecast:
    return type(forecast)(new + factor * (forecast.loc - centre), factor * forecast.scale)


@affine.register
def _(forecast: GaussianMixtureForecast, centre: Any, new: Any, factor: Any) -> Forecast:
    location = new[:, None] + factor[:, None] * (forecast.loc - centre[:, None])
    return GaussianMixtureForecast(location, factor[:, None] * forecast.scale, forecast.weights)


@affine.register
def _(forecast: EnsembleForecast, centre: Any, new: Any, factor: Any) -> Forecast:
    members = new[:, None] + factor[:, None] * (forecast.members - centre[:, None])
    return EnsembleForecast(members, None if forecast.is_exchangeable else forecast.weights)


@affine.register
def _(forecast: ResidualForecast, centre: Any, new: Any, factor: Any) -> Forecast:
    # the spread of all rows is the same, and so is its factor
    location = new + factor[0] * (forecast.location - centre)
    return ResidualForecast(location, factor[0] * forecast.residuals, forecast.weights)


@affine.register
def _(forecast: QuantileForecast, centre: Any, new: Any, factor: Any) -> Forecast:
    values = new[:, None] + factor[:, None] * (forecast.values - centre[:, None])
    return QuantileForecast(np.maximum.accumulate(values, axis=1), forecast.levels)


@singledispatch
def center_and_spread(forecast: Forecast) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation; if infinite, median and spread of quartiles."""
    mean, std = forecast.mean(), forecast.std()
    is_finite = np.isfinite(mean) & np.isfinite(std)
    if is_finite.all():
        return mean, std
    low, median, high = forecast.quantiles([0.25, 0.5, 0.75]).T
    spread = (high - low) / (ndtri(0.75) - ndtri(0.25))
    return np.where(is_finite, mean, median), np.where(is_finite, std, spread)


@center_and_spread.register
def _(forecast: QuantileForecast) -> tuple[np.ndarray, np.ndarray]:
    levels, values = forecast.levels, forecast.values
    centre = forecast.quantiles([np.clip(0.5, levels[0], levels[-1])])[:, 0]
    width = ndtri(levels[-1]) - ndtri(levels[0])
    return centre, (values[:, -1] - values[:, 0]) / (width or 1.0)


@singledispatch
def apply_level_map(forecast: Forecast, level_map: Any) -> Forecast:
    """Return the forecasts R∘F; members of ensembles keep their values, and get other weights."""
    return RecalibratedForecast(forecast, level_map)


@apply_level_map.register
def _(forecast: EnsembleForecast, level_map: Any) -> Forecast:
    members, weights = forecast._cached_order
    return EnsembleForecast(members, remap_weights(weights, level_map))


@apply_level_map.register
def _(forecast: ResidualForecast, level_map: Any) -> Forecast:
    weights = remap_weights(forecast.weights[None], level_map)[0]
    return ResidualForecast(forecast.location, forecast.residuals, weights)


def concatenate(forecasts: Sequence[Any]) -> Forecast:
    """One forecast with the rows of several, such as those of each day.

    Parameters
    ----------
    forecasts : sequence of forecasts
        At least one, in the order of the rows: whatever :func:`as_forecast` takes.

    Returns
    -------
    forecast : Forecast
        All rows, in this order. It is of the same kind as the forecasts if all are of one kind,
        hold arrays, and share what rows have in common, such as levels; the number of members may
        differ. Otherwise each row is answered by the forecast that it came from.

    See Also
    --------
    as_forecast : The forecast that a single object stands for.

    Examples
    --------
    >>> from skcalib.forecasts import GaussianForecast, concatenate
    >>> days = [GaussianForecast([day, day + 1.0], [1.0, 2.0]) for day in (10, 20)]
    >>> forecast = concatenate(days)
    >>> type(forecast).__name__, forecast.mean()
    ('GaussianForecast', array([10., 11., 20., 21.]))
    """
    forecasts = [as_forecast(each, name=f"forecasts[{k}]") for k, each in enumerate(forecasts)]
    if not forecasts:
        raise ValueError(
            "forecasts must hold at least one forecast; found none. Pass a list of those that were "
            "made, such as one for each day."
        )
    first = forecasts[0]
    if len(forecasts) == 1:
        return first
    is_one_kind = len({type(forecast) for forecast in forecasts}) == 1
    joined = _concatenate(forecasts) if is_one_kind and first._holds_arrays else None
    return ConcatenatedForecast(forecasts) if joined is None else joined


def _concatenate(forecasts: Sequence[Forecast]) -> Forecast | None:
    """Return forecasts of one kind as one; None unless they share all that is not by row."""
    first = forecasts[0]
    states = [forecast._state() for forecast in forecasts]
    columns = {name: [state.pop(name) for state in states] for name in first._row_attributes}
    if not all(np.array_equal(s[name], states[0][name]) for s in states for name in s):
        return None
    if len({array.shape[1:] for array in columns[first._row_attributes[0]]}) > 1:
        if "weights" not in columns:
            return None
        columns = {name: _pad_members(arrays, name) for name, arrays in columns.items()}
    return first._with_state(states[0] | {name: np.concatenate(a) for name, a in columns.items()})


def _pad_members(arrays: Sequence[np.ndarray], name: str) -> list[np.ndarray]:
    """Return arrays (n, s) of one width: further members are missing, components are repeated.

    Their weight is 0.
    """
    width = max(array.shape[1] for array in arrays)
    fill = {"weights": 0.0, "members": np.nan}
    options: Any = {"constant_values": fill[name]} if name in fill else {"mode": "edge"}
    return [np.pad(a, ((0, 0), (0, width - a.shape[1])), **options) for a in arrays]


def _delegate(name: str | Callable, *, by_row: bool = True) -> Any:
    """Return a method that calls each forecast; arguments are split by rows, or all the same."""
    call = name if callable(name) else lambda forecast, *a, **k: getattr(forecast, name)(*a, **k)

    def method(self: "ConcatenatedForecast", *arguments: Any, **options: Any) -> Any:
        answers = [
            call(forecast, *(value[rows] if by_row else value for value in arguments), **options)
            for forecast, rows in zip(self.forecasts, self.row_indices, strict=True)
            if len(rows)
        ]
        return self._restore_order(answers)

    return method


class ConcatenatedForecast(Forecast):
    """Forecasts of any kinds side by side; each row belongs to the forecast that it came from."""

    def __init__(
        self, forecasts: Sequence[Forecast], row_indices: Sequence[np.ndarray] | None = None
    ) -> None:
        if row_indices is None:
            ends = np.cumsum([0, *(len(forecast) for forecast in forecasts)])
            row_indices = [np.arange(*pair) for pair in itertools.pairwise(ends)]
        self.forecasts = tuple(forecasts)
        self.row_indices = tuple(row_indices)  # for each forecast its rows here

    @property
    def is_continuous(self) -> bool:  # type: ignore[override]
        return all(forecast.is_continuous for forecast in self.forecasts)

    def __len__(self) -> int:
        return sum(len(forecast) for forecast in self.forecasts)

    def _take(self, rows: np.ndarray) -> "ConcatenatedForecast":
        forecasts, row_indices = [], []
        for forecast, indices in zip(self.forecasts, self.row_indices, strict=True):
            positions = np.flatnonzero(np.isin(rows, indices))
            forecasts.append(forecast[np.searchsorted(indices, rows[positions])])  # they ascend
            row_indices.append(positions)
        return ConcatenatedForecast(forecasts, row_indices)

    def _restore_order(self, answers: list[Any]) -> Any:
        """Join the answers of the forecasts that have rows, in the order of the rows."""
        if any(answer is None for answer in answers):
            return None
        if isinstance(answers[0], tuple):
            joined = [self._restore_order(list(arrays)) for arrays in zip(*answers, strict=True)]
            return Components(*joined) if isinstance(answers[0], Components) else tuple(joined)
        if answers[0].ndim == 2:  # components that a forecast lacks have the weight 0
            answers = _pad_members(answers, "weights")
        return np.concatenate(answers)[np.argsort(np.concatenate(self.row_indices), kind="stable")]

    def _expect(self, function: RowFunction, kinks: np.ndarray | None = None) -> np.ndarray:
        answers = [
            forecast._expect(
                lambda y, row, rows=rows: function(y, rows[row]),  # type: ignore[misc]
                None if kinks is None else kinks[rows],
            )
            for forecast, rows in zip(self.forecasts, self.row_indices, strict=True)
            if len(rows)
        ]
        return self._restore_order(answers)

    def _check_outcomes(self, y: np.ndarray, name: str, *, may_be_impossible: bool) -> None:
        for forecast, rows in zip(self.forecasts, self.row_indices, strict=True):
            forecast._check_outcomes(y[rows], name, may_be_impossible=may_be_impossible)

    _ppf = _delegate("_ppf")


# The methods whose arguments have a row for each forecast, and those that take the same for all.
_BY_ROW = ("_cdf", "_sf", "_logcdf", "_logsf", "_logpdf", "_pit_bounds", "_crps", "_match_scale")
_ALIKE = ("quantiles", "interval", "components", "_atoms", "_sample")

for _name in (*_BY_ROW, "mean", "std", "entropy", *_ALIKE):
    setattr(ConcatenatedForecast, _name, _delegate(_name, by_row=_name not in _ALIKE))


ppf_log_odds.register(ConcatenatedForecast)(_delegate(ppf_log_odds))
