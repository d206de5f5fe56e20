"""Reliability curves: three kinds, their bands and errors."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import expit, logit
from sklearn.utils import check_random_state

from .._data import ClassData, check_predictions
from .._inputs.annotations import DataFrame
from .._inputs.arrays import ArrayLike, import_package
from .._inputs.options import OptionsOf, check_edges, check_options_of, select_arguments
from .._inputs.scikit_learn import Bins, Count, Interval, Label, RandomState, validate_params
from .._numerics.isotonic import isotonic_knots
from .._numerics.reliability import (
    assign_bins,
    bin_means,
    effective_counts,
    increasing_rate_bounds,
    rate_bounds,
    smooth_rates,
)
from .._numerics.smooth_expected import interpolate_smooth_mass
from .._numerics.sorting import LabelWeights, bin_edges
from ._registry import ALL_METRICS

# The bars of the strip that shows the predictions, unless the bins of the curve are used.
_BARS = 20

# Smoothing by less cannot be seen.
MIN_CURVE_BANDWIDTH = 1e-3

# A smoothed curve ends this many bandwidths away from the predictions.
_CURVE_REACH = 2.0

# Number of cells to whose centres predictions are moved where labels are drawn again and again.
_CELLS = 4096

# The ends of a logit axis, if no prediction is closer to 0 or 1; and the closest ends.
_WIDEST_END, _NARROWEST_END = 1e-2, 1e-6

# Places at which bands and smoothed curves are computed.
_N_PLACES = 201


@dataclass(frozen=True)
class Problem:
    """Predictions of two classes, and what a figure calls them."""

    predictions: ClassData
    names: tuple[str, str]  # of what is predicted, and of the rest
    x_label: str
    title: str | None = None

    @classmethod
    def whole(cls, data: ClassData, title: str | None = None) -> "Problem":
        """Two classes as they are; of more, the confidence and whether the prediction is right."""
        if data.is_binary:
            other, event = map(str, data.classes.tolist())
            return cls(data, (event, other), f"predicted probability of {event}", title)
        return cls(data.confidence(), ("right", "wrong"), "confidence", title)


class ReliabilityBand(NamedTuple):
    """A band that holds a curve, at each position, with probability `confidence_level`."""

    positions: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    kind: str
    confidence_level: float


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """The numbers of one reliability diagram: what :func:`reliability_curve` returns.

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
        Places, lower and upper end of the band at the places, its kind and its
        `confidence_level`.

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

    decomposition : ScoreDecomposition, default=None
        The parts of the Brier score, for the corner.

    Examples
    --------
    >>> from skcalib.metrics import reliability_curve
    >>> curve = reliability_curve(
    ...     [0, 1, 1, 1], [0.1, 0.1, 0.9, 0.9], method="binned", band=None
    ... )
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
    decomposition: Any = None

    def to_frame(self) -> DataFrame:
        """The knots as a data frame.

        Returns
        -------
        frame : pandas.DataFrame
            The columns "predicted" and "observed"; "share", "start" and "end" of bins; and "low"
            and "high", the band at the knots.
        """
        pd = import_package("pandas", "to_frame()", "pandas")
        columns = {"predicted": self.predicted, "observed": self.observed}
        if self.share is not None and self.ends is not None:
            columns |= {"share": self.share, "start": self.ends[0], "end": self.ends[1]}
        if self.band is not None:
            for name, values in (("low", self.band.lower), ("high", self.band.upper)):
                columns[name] = np.interp(self.predicted, self.band.positions, values)
        return pd.DataFrame(columns)


class CurveMethod(ABC):
    """A curve through outcomes of two classes; the predictions are sorted."""

    # The error beside the curve, and what it is called.
    metric: ClassVar[str]
    measure: ClassVar[str]

    positions: np.ndarray  # of the bands
    share: np.ndarray | None = None  # of bins
    ends: tuple[np.ndarray, np.ndarray] | None = None

    def __init__(self, data: ClassData, error: float, scale: str) -> None:
        self.predictions = data.take(np.argsort(data.proba, kind="stable"))
        self.proba, self.weight = self.predictions.proba, self.predictions.weight
        self.label = self.predictions.label.astype(np.float64)
        self.error, self.scale = error, scale

    @classmethod
    def error_of(cls, data: ClassData, **options: Any) -> float:
        """The value of the measure that belongs to the curve."""
        return float(ALL_METRICS[cls.metric].measure(data, **options))

    @abstractmethod
    def curve(self, outcome: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predicted and observed frequencies."""

    @abstractmethod
    def curve_at_bands(self, outcome: np.ndarray) -> np.ndarray:
        """The curve at the places of the bands."""

    def gap(self) -> float:
        """Mean distance between the curve and the diagonal: the error of bins and kernel means."""
        return self.error

    @abstractmethod
    def bounds(self, outcome: np.ndarray, tail: float) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on the frequencies there, each of which is missed with the probability `tail`."""

    def band(
        self, kind: str | None, level: float, n_resamples: int, random_state: np.random.RandomState
    ) -> ReliabilityBand | None:
        """Bands of the curves of drawn labels, or of the frequencies."""
        tail = (1 - level) / 2
        if kind is None:
            return None
        if kind == "confidence":
            return ReliabilityBand(self.positions, *self.bounds(self.label, tail), kind, level)
        generator = np.random.default_rng(random_state.randint(2**31 - 1))
        draw = self.predictions.simulate_outcomes
        curves = [self.curve_at_bands(draw(generator, 1)[0]) for _ in range(n_resamples)]
        lower, upper = np.quantile(curves, [tail, 1 - tail], axis=0)
        return ReliabilityBand(self.positions, lower, upper, kind, level)

    def grid(self, n: int) -> np.ndarray:
        """0, 1 and evenly spaced places between them on the scale, of which there are n."""
        if self.scale == "linear":
            return np.arange(n) / (n - 1)
        end = logit(end_of(self.proba))
        return np.concatenate([[0], expit(np.linspace(end, -end, n)), [1]])

    def edges(self) -> np.ndarray:
        """Ends of the bars that show how the predictions are distributed."""
        return self.grid(_BARS + 1)


class Isotonic(CurveMethod):
    """Least squares over increasing curves; linear between the knots."""

    metric, measure = "smooth_calibration_error", "smooth CE"

    def __init__(self, data: ClassData, error: float, scale: str) -> None:
        super().__init__(data, error, scale)
        self.points, self.level = np.unique(self.proba, return_inverse=True)
        self.positions = np.unique(np.clip(self.grid(_N_PLACES), self.proba[0], self.proba[-1]))

    def table(self, outcome: np.ndarray, power: int = 1) -> np.ndarray:
        """The weight of each label at each distinct prediction, (2, m)."""
        mass = self.weight**power
        hits = np.bincount(self.level, mass * outcome, len(self.points))
        return np.stack([np.bincount(self.level, mass * (1 - outcome), len(self.points)), hits])

    def curve(self, outcome: np.ndarray) -> tuple[Any, ...]:
        return isotonic_knots(self.points, self.table(outcome))

    def curve_at_bands(self, outcome: np.ndarray) -> np.ndarray:
        return np.interp(self.positions, *self.curve(outcome))

    def bounds(self, outcome: np.ndarray, tail: float) -> tuple[Any, ...]:
        table = LabelWeights(self.points, self.table(outcome), self.table(outcome, power=2))
        lower, upper = increasing_rate_bounds(table, self.positions, tail)
        fit = self.curve_at_bands(outcome)  # outside of the bounds only if no increasing curve fits
        return np.minimum(lower, fit), np.maximum(upper, fit)

    def gap(self) -> float:
        fit = np.interp(self.proba, *self.curve(self.label))
        return float(self.weight @ np.abs(fit - self.proba))


class Binned(CurveMethod):
    """Means of predictions and outcomes in bins; bands are constant in each bin."""

    metric, measure = "expected_calibration_error", "ECE"

    def __init__(
        self, data: ClassData, error: float, scale: str, *, n_bins: ArrayLike, strategy: str
    ) -> None:
        super().__init__(data, error, scale)
        edges = bin_edges(n_bins, 1 / data.inverse_effective_size)
        self.bars = edges if strategy == "uniform" and scale == "linear" else None
        self.bins, begin, end = assign_bins(self.proba, self.weight, edges, strategy)
        self.ends = begin, end
        self.share = np.bincount(self.bins, self.weight)
        self.predicted = bin_means(self.bins, self.proba, self.weight)
        self.count = self.share**2 / np.bincount(self.bins, self.weight**2)
        # a NaN behind each bin keeps the bands of bins apart
        self.positions = np.column_stack([begin, end, end]).ravel()

    def means(self, outcome: np.ndarray) -> np.ndarray:
        return bin_means(self.bins, outcome, self.weight)

    def curve(self, outcome: np.ndarray) -> tuple[Any, ...]:
        return self.predicted, self.means(outcome)

    def curve_at_bands(self, outcome: np.ndarray) -> np.ndarray:
        return _step_coordinates(self.means(outcome))

    def bounds(self, outcome: np.ndarray, tail: float) -> tuple[Any, ...]:
        lower, upper = rate_bounds(self.means(outcome), self.count, tail)
        return _step_coordinates(lower), _step_coordinates(upper)

    def edges(self) -> np.ndarray:
        return super().edges() if self.bars is None else self.bars


def _step_coordinates(values: np.ndarray) -> np.ndarray:
    return np.column_stack([values, values, np.full(len(values), np.nan)]).ravel()


class Smooth(CurveMethod):
    """Kernel means of the residuals."""

    metric, measure = "smooth_expected_calibration_error", "smECE"

    def __init__(
        self, data: ClassData, error: float, scale: str, *, bandwidth: float | None
    ) -> None:
        super().__init__(data, error, scale)
        self.bandwidth = max(error if bandwidth is None else bandwidth, MIN_CURVE_BANDWIDTH)
        self.positions = np.union1d(self.grid(_N_PLACES), self.proba[[0, -1]])
        behind = np.searchsorted(self.proba, self.positions)
        neighbours = np.stack([np.maximum(behind - 1, 0), np.minimum(behind, len(self.proba) - 1)])
        distance = np.abs(self.proba[neighbours] - self.positions).min(axis=0)
        self.is_near = distance <= _CURVE_REACH * self.bandwidth

        near = self.positions[self.is_near]
        self.density = interpolate_smooth_mass(self.proba, self.weight, self.bandwidth, near)
        self.cell = np.minimum((self.proba * _CELLS).astype(np.intp), _CELLS - 1)

    def _rates(self, points: np.ndarray, mass: np.ndarray) -> np.ndarray:
        rate, near = np.full(len(self.positions), np.nan), self.positions[self.is_near]
        rate[self.is_near] = smooth_rates(points, mass, self.density, self.bandwidth, near)
        return rate

    def curve(self, outcome: np.ndarray) -> tuple[Any, ...]:
        return self.positions, self._rates(self.proba, self.weight * (outcome - self.proba))

    def curve_at_bands(self, outcome: np.ndarray) -> np.ndarray:
        mass = np.bincount(self.cell, self.weight * (outcome - self.proba), _CELLS)
        return self._rates((np.arange(_CELLS) + 0.5) / _CELLS, mass)

    def bounds(self, outcome: np.ndarray, tail: float) -> tuple[Any, ...]:
        count = effective_counts(self.proba, self.weight, self.bandwidth, self.positions)
        rate = self.curve(outcome)[1]
        lower, upper = rate_bounds(np.nan_to_num(rate), count, tail)
        lower[~self.is_near] = upper[~self.is_near] = np.nan
        return lower, upper


def end_of(proba: np.ndarray) -> float:
    """The probability at which a logit axis turns linear, so that it has ends: a power of 10.

    No prediction between 0 and 1 is beyond, unless it is within 1e-6 of them.
    """
    distance = np.minimum(proba, 1 - proba)
    least = np.min(distance, where=distance > 0, initial=_WIDEST_END)
    return float(np.clip(10.0 ** np.floor(np.log10(least) + 1e-9), _NARROWEST_END, _WIDEST_END))


# The curves by the name of their method.
METHODS: dict[str, type[CurveMethod]] = {"isotonic": Isotonic, "binned": Binned, "smooth": Smooth}


def make_curve(
    problem: Problem, method: CurveMethod, decomposition: Any = None, **band_options: Any
) -> ReliabilityCurve:
    """The numbers of the diagram: the curve, its band and the distribution of the predictions."""
    predicted, observed = method.curve(method.label)
    edges = method.edges()
    nonevents, events = (
        np.histogram(method.proba, edges, weights=method.weight * (method.label == k))[0]
        for k in (0, 1)
    )
    return ReliabilityCurve(
        predicted,
        observed,
        band=method.band(**band_options),
        edges=edges,
        events=events,
        others=nonevents,
        gap=method.gap(),
        decomposition=decomposition,
        **{name: getattr(method, name) for name in ("share", "ends", "error", "measure")},
        **select_arguments(vars(problem), ("names", "title", "x_label")),
    )


CURVE_CONSTRAINTS: dict = {
    "n_bins": [Bins(1)],
    "bandwidth": [Interval(Real, MIN_CURVE_BANDWIDTH, None, closed="left"), None],
    "n_resamples": [Count(1)],
}


# The options of each curve, and of each band.
CURVE_OPTIONS: OptionsOf = {
    "method": {"isotonic": (), "binned": ("n_bins", "strategy"), "smooth": ("bandwidth",)},
    "band": {
        None: (),
        "confidence": ("confidence_level",),
        "consistency": ("confidence_level", "n_resamples"),
    },
}


def select_curve_options(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a curve of this method has; refuse those that nothing reads."""
    check_options_of(reliability_curve, CURVE_OPTIONS, arguments)
    check_edges(arguments["n_bins"], arguments["strategy"])
    return select_arguments(arguments, CURVE_OPTIONS["method"][arguments["method"]])


@validate_params(CURVE_CONSTRAINTS)
def reliability_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    method: Literal["isotonic", "smooth", "binned"] = "isotonic",
    n_bins: int | Literal["auto"] | ArrayLike = 15,
    strategy: Literal["uniform", "quantile"] = "uniform",
    bandwidth: float | None = None,
    band: Literal["consistency", "confidence"] | None = "consistency",
    confidence_level: float = 0.9,
    n_resamples: int = 200,
    random_state: RandomState = None,
) -> ReliabilityCurve:
    """Reliability curve (calibration curve): how often happens what is predicted.

    Of more than two classes it is the curve of the confidence in the predicted class.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    method : {"isotonic", "smooth", "binned"}, default="isotonic"
        The curve: least squares over increasing curves; kernel means, whose bandwidth is the
        smooth expected calibration error; or means in bins.

    n_bins : int, "auto" or array-like of shape (n_bins + 1,), default=15
        Number of bins of "binned", or their edges, which increase from 0 to 1 (with "uniform").
        "auto": the cube root of the effective number of samples, rounded up.

    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width or of equal mass.

    bandwidth : float, default=None
        Standard deviation of the kernel of "smooth", on the scale of the probabilities; at
        least 0.001. By default the smooth expected calibration error.

    band : {"consistency", "confidence"} or None, default="consistency"
        Where the curve of a calibrated model is by chance; or where the frequencies may be, around
        the curve.

    confidence_level : float, default=0.9
        At each probability the curve, or the frequency, is in the band with this probability.

    n_resamples : int, default=200
        Number of label vectors drawn from the predictions for the consistency band.

    random_state : int, RandomState instance or None, default=None
        Seed of the consistency band.

    Returns
    -------
    curve : ReliabilityCurve
        Its `predicted` and `observed` frequencies, the `band`, and more. Its method `to_frame`
        makes a data frame.

    See Also
    --------
    skcalib.display.ReliabilityDisplay : Draws it, also by class, by subgroup and by model.

    Notes
    -----
    The confidence band of "isotonic" holds if frequencies do not decrease with the predictions:
    where they do, it may cover none of them. That of "smooth" does not allow for the bias of the
    kernel, which is largest at both ends: near 0, a band of 0.9 covered 0.67 of the rare events of
    500 predictions.

    Examples
    --------
    >>> from skcalib.metrics import reliability_curve
    >>> curve = reliability_curve([0, 0, 1, 1], [0.2, 0.4, 0.4, 0.8], band=None)
    >>> curve.predicted, curve.observed
    (array([0.2, 0.4, 0.8]), array([0. , 0.5, 1. ]))
    """
    make, options = METHODS[method], select_curve_options(locals())
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels)
    problem = Problem.whole(data)
    error = make.error_of(problem.predictions, **options)
    curve = make(problem.predictions, error, "linear", **options)
    drawing = {"n_resamples": n_resamples, "random_state": check_random_state(random_state)}
    return make_curve(problem, curve, kind=band, level=confidence_level, **drawing)
