"""The numbers of one reliability diagram: three kinds of curves, their bands and errors."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from .._inputs.predictions import Predictions
from .._numerics.isotonic import isotonic_knots
from .._numerics.reliability import (
    binned_means,
    bins_of,
    increasing_rate_bounds,
    rate_bounds,
    smoothed_counts,
    smoothed_rates,
)
from .._numerics.smooth_expected import smoothed_mass_at
from .._numerics.sorting import Pooled
from ..metrics._registry import ALL_METRICS
from ._panels import Problem

# The bars of the strip that shows the predictions, unless the bins of the curve are used.
_BARS = 20

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


class ReliabilityBand(NamedTuple):
    """Where a curve lies with the probability `level`, at each place."""

    places: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    kind: str
    level: float


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """The numbers of one reliability diagram, to draw them with any library.

    Parameters
    ----------
    predicted : ndarray of shape (n_knots,)
        Predicted probabilities at the knots of the curve, sorted; of bins, the mean predictions.

    observed : ndarray of shape (n_knots,)
        Frequencies of the event at the knots; NaN where no prediction is near.

    share : ndarray of shape (n_knots,), default=None
        Shares of the predictions in the bins. None if there are no bins.

    ends : tuple of two ndarrays of shape (n_knots,), default=None
        Where the bins begin and end. None if there are no bins.

    band : tuple, default=None
        Places, lower and upper end of the band at the places, its kind and its level.

    edges : ndarray of shape (n_bars + 1,), default=None
        Ends of the bars that show how the predictions are distributed.

    events : ndarray of shape (n_bars,), default=None
        Share of all samples that are in the bar and have the event.

    others : ndarray of shape (n_bars,), default=None
        Share of all samples that are in the bar and do not have the event.

    error : float, default=None
        The calibration error in the legend.

    measure : str, default="error"
        What the error is called there.

    gap : float, default=None
        Mean distance between the curve and the diagonal, over the predictions: the area that is
        shaded on request, weighted by the predictions.

    names : tuple of two str, default=("event", "no event")
        What the event is called, and what is called what is not the event.

    title : str, default=None
        The class or subgroup of the samples.

    x_label : str, default="predicted probability"
        What is predicted, for the axis.

    Examples
    --------
    >>> from skcalib.display import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_predictions(
    ...     [0, 1, 1, 1], [0.1, 0.1, 0.9, 0.9], method="binned", band=None
    ... )
    >>> curve = display.curves[0]
    >>> curve.predicted
    array([0.1, 0.9])
    >>> curve.observed
    array([0.5, 1. ])
    >>> float(curve.share @ abs(curve.observed - curve.predicted))  # the error
    0.25
    """

    predicted: np.ndarray
    observed: np.ndarray
    share: np.ndarray | None = None
    ends: tuple[np.ndarray, np.ndarray] | None = None
    band: Any = None
    edges: np.ndarray | None = None
    events: np.ndarray | None = None
    others: np.ndarray | None = None
    error: float | None = None
    measure: str = "error"
    gap: float | None = None
    names: tuple[str, str] = ("event", "no event")
    title: str | None = None
    x_label: str = "predicted probability"


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

    def gap(self, outcome: np.ndarray, error: float) -> float:
        """Mean distance between the curve and the diagonal: the error of bins and kernel means."""
        return error

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

    def gap(self, outcome, error):
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


class Options(NamedTuple):
    """How curves are made."""

    method: str
    n_bins: int
    strategy: str
    bandwidth: float | None
    band: str | None
    level: float
    n_resamples: int
    scale: str


# The measure beside each kind of curve, what it is called, and the options that both have.
_MEASURES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "isotonic": ("smooth_calibration_error", "smooth CE", ()),
    "binned": ("expected_calibration_error", "ECE", ("n_bins", "strategy")),
    "smooth": ("smooth_expected_calibration_error", "smECE", ("bandwidth",)),
}


def error_of(predictions: Predictions, options: Options) -> float:
    """The value of the measure that belongs to the method."""
    metric, _, shared = _MEASURES[options.method]
    own = {name: value for name, value in options._asdict().items() if name in shared}
    return float(ALL_METRICS[metric].measure(predictions, **own))


def reliability_curve(
    problem: Problem, error: float, options: Options, random_state: np.random.RandomState
) -> ReliabilityCurve:
    """The curve of two classes, its band and the distribution of the predictions."""
    order = np.argsort(problem.predictions.proba, kind="stable")
    predictions = problem.predictions.take(order)
    method = _method(predictions, options, error)
    label = predictions.label.astype(np.float64)
    predicted, observed = method.curve(label)
    band = None
    if options.band == "consistency":
        band = _consistency(method, predictions, options, random_state)
    elif options.band == "confidence":
        lower, upper = method.bounds(label, (1 - options.level) / 2)
        band = ReliabilityBand(method.places, lower, upper, options.band, options.level)
    edges = _edges(predictions.proba, options)
    others, events = (
        np.histogram(
            predictions.proba, edges, weights=predictions.weight * (predictions.label == k)
        )[0]
        for k in (0, 1)
    )
    return ReliabilityCurve(
        predicted,
        observed,
        share=method.share,
        ends=method.ends,
        band=band,
        edges=edges,
        events=events,
        others=others,
        error=error,
        measure=_MEASURES[options.method][1],
        gap=method.gap(label, error),
        names=problem.names,
        title=problem.title,
        x_label=problem.x_label,
    )


def _method(predictions: Predictions, options: Options, error: float) -> CurveMethod:
    if options.method == "isotonic":
        return Isotonic(predictions, options.scale)
    if options.method == "binned":
        return Binned(predictions, options.n_bins, options.strategy)
    bandwidth = error if options.bandwidth is None else options.bandwidth
    return Smooth(predictions, bandwidth, options.scale)


def _consistency(method, predictions, options, random_state):
    """The curves of labels drawn from the predictions."""
    generator = np.random.default_rng(random_state.randint(2**31 - 1))
    curves = [
        method.at_places(predictions.redraw(generator, 1)[0]) for _ in range(options.n_resamples)
    ]
    tail = (1 - options.level) / 2
    lower, upper = np.quantile(curves, [tail, 1 - tail], axis=0)
    return ReliabilityBand(method.places, lower, upper, "consistency", options.level)


def _edges(proba: np.ndarray, options: Options) -> np.ndarray:
    """Ends of the bars that show how the predictions are distributed."""
    if options.scale == "logit":
        end = end_of(proba)
        return np.concatenate([[0], expit(np.linspace(logit(end), -logit(end), _BARS + 1)), [1]])
    uses_bins = options.method == "binned" and options.strategy == "uniform"
    n_bars = options.n_bins if uses_bins else _BARS
    return np.arange(n_bars + 1) / n_bars
