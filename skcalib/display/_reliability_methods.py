"""The three curves of a reliability diagram, for any outcomes of the same predictions."""

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import expit, logit

from .._inputs.predictions import Predictions
from .._numerics.isotonic import isotonic_knots
from .._numerics.pooled import Pooled
from .._numerics.reliability import (
    binned_means,
    bins_of,
    increasing_rate_bounds,
    rate_bounds,
    smoothed_counts,
    smoothed_rates,
)
from .._numerics.smooth_expected import smoothed_mass_at

# Smoothing by less cannot be seen.
SMALLEST_BANDWIDTH = 1e-3

# A smoothed curve ends this many bandwidths away from the predictions.
_REACH = 2.0

# Number of cells to whose centres predictions are moved where labels are drawn again and again.
_CELLS = 4096

# The ends of a logit axis, if no prediction is closer to 0 or 1; and the closest ends.
_WIDEST_END, _NARROWEST_END = 1e-2, 1e-6

# Places at which bands and smoothed curves are computed.
_N_PLACES = 201


class CurveMethod(ABC):
    """A curve through outcomes of two classes; the predictions are sorted."""

    places: np.ndarray  # of the bands
    share: np.ndarray | None = None  # of bins
    ends: tuple[np.ndarray, np.ndarray] | None = None

    def __init__(self, predictions: Predictions) -> None:
        self.proba, self.weight = predictions.proba, predictions.weight

    @abstractmethod
    def curve(self, outcome: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predicted and observed frequencies."""

    @abstractmethod
    def at_places(self, outcome: np.ndarray) -> np.ndarray:
        """The curve at the places of the bands."""

    @abstractmethod
    def bounds(self, outcome: np.ndarray, tail: float) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on the frequencies there, each of which is missed with the probability `tail`."""


class Isotonic(CurveMethod):
    """Least squares over increasing curves; linear between the knots."""

    def __init__(self, predictions: Predictions, scale: str) -> None:
        super().__init__(predictions)
        self.points, self.level = np.unique(self.proba, return_inverse=True)
        inside = _places(scale, self.proba)
        self.places = np.unique(np.clip(inside, self.proba[0], self.proba[-1]))

    def table(self, outcome, power=1):
        """The weight of each label at each distinct prediction, (2, m)."""
        mass = self.weight**power
        hits = np.bincount(self.level, mass * outcome, len(self.points))
        return np.stack([np.bincount(self.level, mass * (1 - outcome), len(self.points)), hits])

    def curve(self, outcome):
        return isotonic_knots(self.points, self.table(outcome))

    def at_places(self, outcome):
        return np.interp(self.places, *self.curve(outcome))

    def bounds(self, outcome, tail):
        table = Pooled(self.points, self.table(outcome), self.table(outcome, power=2))
        lower, upper = increasing_rate_bounds(table, self.places, tail)
        fit = self.at_places(outcome)  # outside of the bounds only if no increasing curve fits
        return np.minimum(lower, fit), np.maximum(upper, fit)

    def gap(self, outcome):
        fit = np.interp(self.proba, *self.curve(outcome))
        return float(self.weight @ np.abs(fit - self.proba))


class Binned(CurveMethod):
    """Means of predictions and outcomes in bins; bands are constant in each bin."""

    def __init__(self, predictions: Predictions, n_bins: int, strategy: str) -> None:
        super().__init__(predictions)
        self.bins, begin, end = bins_of(self.proba, self.weight, n_bins, strategy)
        self.ends = begin, end
        self.share = np.bincount(self.bins, self.weight)
        self.predicted = binned_means(self.bins, self.proba, self.weight)
        self.count = self.share**2 / np.bincount(self.bins, self.weight**2)
        # a NaN behind each bin keeps the bands of bins apart
        self.places = np.column_stack([begin, end, end]).ravel()

    def means(self, outcome):
        return binned_means(self.bins, outcome, self.weight)

    def curve(self, outcome):
        return self.predicted, self.means(outcome)

    def at_places(self, outcome):
        return _in_steps(self.means(outcome))

    def bounds(self, outcome, tail):
        lower, upper = rate_bounds(self.means(outcome), self.count, tail)
        return _in_steps(lower), _in_steps(upper)


def _in_steps(values: np.ndarray) -> np.ndarray:
    return np.column_stack([values, values, np.full(len(values), np.nan)]).ravel()


class Smooth(CurveMethod):
    """Kernel means of the residuals."""

    def __init__(self, predictions: Predictions, bandwidth: float, scale: str) -> None:
        super().__init__(predictions)
        self.bandwidth = max(bandwidth, SMALLEST_BANDWIDTH)
        self.places = _places(scale, self.proba)
        behind = np.searchsorted(self.proba, self.places)
        neighbours = np.stack([np.maximum(behind - 1, 0), np.minimum(behind, len(self.proba) - 1)])
        distance = np.abs(self.proba[neighbours] - self.places).min(axis=0)
        self.is_near = distance <= _REACH * self.bandwidth

        near = self.places[self.is_near]
        self.density = smoothed_mass_at(self.proba, self.weight, self.bandwidth, near)
        self.cell = np.minimum((self.proba * _CELLS).astype(np.intp), _CELLS - 1)

    def _rates(self, points, mass):
        rate, near = np.full(len(self.places), np.nan), self.places[self.is_near]
        rate[self.is_near] = smoothed_rates(points, mass, self.density, self.bandwidth, near)
        return rate

    def curve(self, outcome):
        return self.places, self._rates(self.proba, self.weight * (outcome - self.proba))

    def at_places(self, outcome):
        mass = np.bincount(self.cell, self.weight * (outcome - self.proba), _CELLS)
        return self._rates((np.arange(_CELLS) + 0.5) / _CELLS, mass)

    def bounds(self, outcome, tail):
        count = smoothed_counts(self.proba, self.weight, self.bandwidth, self.places)
        rate = self.curve(outcome)[1]
        lower, upper = rate_bounds(np.nan_to_num(rate), count, tail)
        lower[~self.is_near] = upper[~self.is_near] = np.nan
        return lower, upper


def _places(scale: str, proba: np.ndarray) -> np.ndarray:
    """Where curves and bands are computed: a grid, and the predictions at its ends."""
    grid = np.linspace(0, 1, _N_PLACES)
    if scale == "logit":
        end = end_of(proba)
        grid = np.concatenate([[0], expit(np.linspace(logit(end), -logit(end), _N_PLACES)), [1]])
    return np.unique(np.concatenate([grid, proba[[0, -1]]]))


def end_of(proba: np.ndarray) -> float:
    """The probability at which a logit axis turns linear, so that it has ends: a power of 10.

    No prediction between 0 and 1 is beyond, unless it is within 1e-6 of them.
    """
    distance = np.minimum(proba, 1 - proba)
    least = np.min(distance, where=distance > 0, initial=_WIDEST_END)
    return float(np.clip(10.0 ** np.floor(np.log10(least) + 1e-9), _NARROWEST_END, _WIDEST_END))
