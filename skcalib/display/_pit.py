"""Displays of PITs: their histogram, and how often quantiles and intervals cover the outcome."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state

from .._data import ForecastData, check_forecasts
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import Count, Interval, RandomState, StrOptions
from .._inputs.warnings import check_memory
from .._numerics.pit import PitLaw, pit_curve, pit_laws
from ..metrics._quantile import resolve_levels
from ..metrics._registry import ALL_METRICS
from ._base import (
    MAX_LEGEND_LINES,
    PredictionsDisplay,
    axes_of,
    check_options,
    draw_legend,
    legend_label,
    validate_options,
    wrap_label,
)

_ERROR = ALL_METRICS["quantile_calibration_error"]

_LINE = "calibrated"

# An ensemble with at most this many possible ranks has a bin for each.
_MAX_RANKS = 25

# Widths of bins that differ by less are equal.
_BIN_WIDTH_RTOL = 1e-9

# Levels at which a curve is drawn.
_GRID = np.arange(101) / 100

_PIT_LABELS = {
    "quantile": ("level of the quantile", "share of outcomes up to it"),
    "interval": ("level of the central interval", "share of outcomes in it"),
}

_LEVEL_CONSTRAINT = [Interval(Real, 0, 1, closed="neither"), None]


class Band(NamedTuple):
    """Where calibrated forecasts stay with the probability `level`: at one place, and at all."""

    lower: np.ndarray
    upper: np.ndarray
    lower_of_all: np.ndarray
    upper_of_all: np.ndarray
    level: float


class _PitDisplay(PredictionsDisplay):
    """Base of the displays of PITs: what is by chance, the line of calibration, and the legend."""

    _takes_classes: ClassVar = False
    _size: ClassVar[tuple[float, float]]
    _draw_expected: ClassVar[Callable[..., None]]
    _draw_outcomes: ClassVar[Callable[..., None]]
    error: float | None

    def _draw(self, ax: Any, name: str | None, style: dict[str, Any]) -> None:
        self.ax_ = ax = axes_of(ax, self._size)
        if _LINE not in ax.get_legend_handles_labels()[1]:
            self._draw_expected(
                ax, {"color": "0.3", "linewidth": 1, "linestyle": ":", "label": _LINE}
            )
        label = legend_label(name, "quantile calibration error", self.error, "outcomes")
        self._draw_outcomes(ax, {"label": label} | style)
        draw_legend(ax)


@dataclass(eq=False, repr=False)
class PITHistogramDisplay(_PitDisplay):
    """Histogram of PITs: where the outcomes lie in their forecasts.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. The probability integral
    transform (PIT) of an outcome is the probability that its forecast gave to less. PITs of
    calibrated forecasts are uniform: all bars have the height 1 but for chance. Bars that are high
    at both ends show forecasts that are too narrow, bars that are high in the middle forecasts that
    are too wide, and a slope shows a bias: outcomes are higher than forecast if it rises. A flat
    histogram does not show that forecasts are right for every sample.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Ends of the bins, from 0 to 1.

    density : ndarray of shape (n_bins,)
        Heights of the bars: the share of the PITs in each bin over its width.

    band : Band, default=None
        Tuple of arrays `lower`, `upper`, `lower_of_all` and `upper_of_all` of shape (n_bins,),
        heights between which single bars and all bars at once lie by chance, and the `level`.

    error : float, default=None
        The quantile calibration error, for the legend.

    name : str, default=None
        Name of the model, for the legend.

    Attributes
    ----------
    bars_ : matplotlib StepPatch
        The bars.

    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    QuantileReliabilityDisplay : The same PITs, cumulated.

    Notes
    -----
    An outcome of positive probability has an interval of PITs, from the probability of less to that
    of at most the outcome. By default it counts in each bin by the share of the interval that lies
    there [1]_. For an ensemble without weights that is the interval of the outcome's rank.

    References
    ----------
    .. [1] C. Czado, T. Gneiting and L. Held (2009). Predictive model assessment for count data.
       Biometrics 65(4). :doi:`10.1111/j.1541-0420.2009.01191.x`

    Examples
    --------
    >>> from skcalib.datasets import make_forecasts
    >>> from skcalib.display import PITHistogramDisplay
    >>> y, forecast = make_forecasts(dispersion=0.5, random_state=0)  # too narrow
    >>> display = PITHistogramDisplay.from_predictions(y, forecast, n_bins=5, random_state=0)
    >>> display.density.round(1)
    array([1.8, 0.5, 0.6, 0.5, 1.7])
    """

    edges: np.ndarray
    density: np.ndarray
    _: KW_ONLY
    band: Band | None = None
    error: float | None = None
    name: str | None = None

    _size: ClassVar = (5, 4)
    _method: ClassVar = "stairs"

    @classmethod
    @validate_options(
        confidence_level=_LEVEL_CONSTRAINT,
        n_bins=[Count(1, 1000), None],
        atoms=[StrOptions({"average", "randomize"})],
    )
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_forecast: Any,
        *,
        sample_weight: ArrayLike | None = None,
        n_bins: int | None = None,
        atoms: Literal["average", "randomize"] = "average",
        confidence_level: float | None = 0.9,
        n_resamples: int = 200,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the histogram of outcomes and forecasts.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Outcomes.

        y_forecast : forecast
            A forecast of :mod:`skcalib.forecasts`, or whatever
            :func:`~skcalib.forecasts.as_forecast` takes, such as the tuple (mean, std).

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        n_bins : int, default=None
            Number of bins of equal width. By default one for each rank of an ensemble without
            weights of up to 24 members, one for each cell of quantiles at given levels, and ten
            otherwise.

        atoms : {"average", "randomize"}, default="average"
            What becomes of the interval of PITs that an outcome of positive probability has: it is
            spread evenly over the bins, or one PIT is drawn from it.

        confidence_level : float or None, default=0.9
            Single bars of calibrated forecasts are in the darker band, and all bars at once in the
            lighter one, with this probability. None draws no band.

        n_resamples : int, default=200
            Number of times that outcomes are drawn from the forecasts, for the band.

        random_state : int, RandomState instance or None, default=None
            Seed of the band, and of the PITs if they are drawn.

        name : str, default=None
            Name of the model, for the legend.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        **kwargs : dict
            Passed to matplotlib's `stairs` for the bars. Other names are refused.

        Returns
        -------
        display : PITHistogramDisplay
            The display, drawn.
        """
        check_options(cls.from_predictions, kwargs, "stairs")
        data = check_forecasts(y_true, y_forecast, sample_weight=sample_weight)
        edges = _edges(data, n_bins)
        lower, upper = data.forecast.pit_bounds(data.value)
        if atoms == "randomize":
            lower = upper = data.forecast.pit(data.value, random_state=random_state)
        is_uniform = data.forecast.is_continuous or atoms == "randomize"
        law = pit_laws(lower, upper)
        density = _densities(pit_distribution(law, data.weight, edges[1:-1]), edges)
        band = None
        if confidence_level is not None:
            null_cdf = simulate_pit_cdf(
                data, edges[1:-1], n_resamples, random_state, is_uniform=is_uniform
            )
            # bars of different widths differ in how much they vary
            has_equal_bins = np.ptp(np.diff(edges)) < _BIN_WIDTH_RTOL
            band = band_of(
                _densities(null_cdf, edges),
                np.ones(len(density)),
                confidence_level,
                same_everywhere=is_uniform and has_equal_bins,
            )
        error = _ERROR.measure(data)
        return cls(edges, density, band=band, error=error, name=name).plot(ax, **kwargs)

    def _draw_expected(self, ax: Any, style: dict[str, Any]) -> None:
        if self.band is not None:
            shade(partial(_fill_steps, ax), self.edges, self.band, "bar")
        ax.axhline(1, **style)

    def _draw_outcomes(self, ax: Any, style: dict[str, Any]) -> None:
        self.bars_ = ax.stairs(self.density, self.edges, **({"linewidth": 1.5} | style))
        color = self.bars_.get_edgecolor()
        ax.stairs(self.density, self.edges, fill=True, color=color, alpha=0.2)
        sharing = ax.get_shared_y_axes().get_siblings(ax)
        highest = max(axes.dataLim.y1 for axes in sharing)  # −inf where nothing is drawn yet
        n_lines = "\n".join(ax.get_legend_handles_labels()[1]).count("\n") + 1
        ax.set(
            xlim=(0, 1),
            # with room for the legend, if it is inside
            ylim=(0, highest * (1 + 0.06 * (n_lines if n_lines <= MAX_LEGEND_LINES else 1))),
            xlabel=wrap_label("PIT: forecast probability of less than the outcome", ax),
            ylabel="density",
        )


@dataclass(eq=False, repr=False)
class QuantileReliabilityDisplay(_PitDisplay):
    """Reliability diagram of forecasts: how often quantiles or intervals cover the outcome.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. For calibrated forecasts
    the curve is the diagonal but for chance. Intervals that cover less often than they should are
    too narrow: their curve is below the diagonal. That of quantiles is then above it at low levels
    and below it at high ones; a bias moves it to one side. The diagram does not show whether
    forecasts are right for every sample.

    Parameters
    ----------
    levels : ndarray of shape (n_levels,)
        Levels of the quantiles or intervals, increasing.

    observed : ndarray of shape (n_levels,)
        Share of the outcomes that they cover.

    kind : {"quantile", "interval"}, default="quantile"
        Whether the levels are those of quantiles, or of central intervals.

    band : Band, default=None
        Tuple of arrays `lower`, `upper`, `lower_of_all` and `upper_of_all` of shape (n_levels,),
        shares between which single points and the whole curve lie by chance, and the `level`.

    error : float, default=None
        The quantile calibration error, for the legend.

    name : str, default=None
        Name of the model, for the legend.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The curve.

    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    PITHistogramDisplay : The same as a histogram.
    skcalib.metrics.quantile_calibration_error : The mean distance from the diagonal.

    Notes
    -----
    Of an outcome of positive probability, the part of its interval of PITs counts that lies below
    the level, as in :func:`~skcalib.metrics.quantile_calibration_error`. Forecasts by quantiles at
    given levels are shown at these.

    Examples
    --------
    >>> from skcalib.datasets import make_forecasts
    >>> from skcalib.display import QuantileReliabilityDisplay
    >>> y, forecast = make_forecasts(dispersion=0.5, random_state=0)  # too narrow
    >>> display = QuantileReliabilityDisplay.from_predictions(
    ...     y, forecast, kind="interval", levels=[0.5, 0.8, 0.95], random_state=0
    ... )
    >>> display.observed.round(2)
    array([0.26, 0.49, 0.69])
    """

    levels: np.ndarray
    observed: np.ndarray
    _: KW_ONLY
    kind: str = "quantile"
    band: Band | None = None
    error: float | None = None
    name: str | None = None

    _size: ClassVar = (4.5, 4.5)

    @classmethod
    @validate_options(
        confidence_level=_LEVEL_CONSTRAINT,
        kind=[StrOptions(set(_PIT_LABELS))],
        levels=["array-like", None],
    )
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_forecast: Any,
        *,
        sample_weight: ArrayLike | None = None,
        kind: Literal["quantile", "interval"] = "quantile",
        levels: ArrayLike | None = None,
        confidence_level: float | None = 0.9,
        n_resamples: int = 200,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the diagram of outcomes and forecasts.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Outcomes.

        y_forecast : forecast
            A forecast of :mod:`skcalib.forecasts`, or whatever
            :func:`~skcalib.forecasts.as_forecast` takes, such as the tuple (mean, std).

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        kind : {"quantile", "interval"}, default="quantile"
            Whether the levels are those of quantiles, or of central intervals.

        levels : array-like of shape (n_levels,), default=None
            Levels in [0, 1] at which the curve is drawn, and its distance from the diagonal
            averaged. By default all levels, drawn at 0, 0.01, …, 1; for forecasts by quantiles the
            levels that they have.

        confidence_level : float or None, default=0.9
            Single points of the curve of calibrated forecasts are in the darker band, and the whole
            curve in the lighter one, with this probability. None draws no band.

        n_resamples : int, default=200
            Number of times that outcomes are drawn from the forecasts, for the band.

        random_state : int, RandomState instance or None, default=None
            Seed of the band.

        name : str, default=None
            Name of the model, for the legend.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curve. Other names are refused.

        Returns
        -------
        display : QuantileReliabilityDisplay
            The display, drawn.
        """
        check_options(cls.from_predictions, kwargs)
        data = check_forecasts(y_true, y_forecast, sample_weight=sample_weight)
        error = _ERROR.measure(data, kind=kind, levels=levels)
        plotted_levels = resolve_levels(data.forecast, kind, levels)
        plotted_levels = _GRID if plotted_levels is None else np.unique(plotted_levels)
        folded = kind == "interval"
        law = pit_laws(*data.forecast.pit_bounds(data.value), folded=folded)
        band = None
        if confidence_level is not None:
            null_cdf = simulate_pit_cdf(
                data,
                plotted_levels,
                n_resamples,
                random_state,
                folded=folded,
                is_uniform=data.forecast.is_continuous,
            )
            band = band_of(null_cdf, plotted_levels, confidence_level)
        observed = pit_distribution(law, data.weight, plotted_levels)
        display = cls(plotted_levels, observed, kind=kind, band=band, error=error, name=name)
        return display.plot(ax, **kwargs)

    def _draw_expected(self, ax: Any, style: dict[str, Any]) -> None:
        if self.band is not None:
            shade(ax.fill_between, self.levels, self.band, "point")
        ax.plot([0, 1], [0, 1], **style)

    def _draw_outcomes(self, ax: Any, style: dict[str, Any]) -> None:
        if len(self.levels) < 30:
            style = {"marker": "o", "markersize": 4} | style
        (self.line_,) = ax.plot(self.levels, self.observed, **style)
        xlabel, ylabel = _PIT_LABELS[self.kind]
        ax.set(
            xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel=wrap_label(xlabel, ax), ylabel=ylabel
        )


def _edges(data: ForecastData, n_bins: int | None) -> np.ndarray:
    """Ends of the bins: of equal width, or the levels between which the PITs are known."""
    levels = getattr(data.forecast, "levels", None)
    if n_bins is None and levels is not None:
        return np.concatenate([[0.0], levels, [1.0]])
    if n_bins is None:
        n_bins = 10
        if data.forecast.is_exchangeable:
            n_ranks = data.forecast.components().location.shape[1] + 1
            n_bins = n_ranks if n_ranks <= _MAX_RANKS else n_bins
    return np.arange(n_bins + 1) / n_bins


def _densities(distribution: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Heights of bars (..., B) from the distribution function at the inner edges."""
    return np.diff(distribution, prepend=0.0, append=1.0, axis=-1) / np.diff(edges)


def _fill_steps(
    ax: Any, edges: np.ndarray, lower: np.ndarray, upper: np.ndarray, **style: Any
) -> None:
    ax.stairs(upper, edges, baseline=lower, fill=True, **style)


def pit_distribution(law: PitLaw, weight: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """F̂ at the levels, (m,)."""
    knots, before, after = pit_curve(law, weight)
    last = np.searchsorted(knots, levels, side="right") - 1
    following = np.minimum(last + 1, len(knots) - 1)
    gap = knots[following] - knots[last]
    share = np.divide(levels - knots[last], gap, out=np.zeros(len(levels)), where=gap > 0)
    return after[last] + share * (before[following] - after[last])


def simulate_pit_cdf(
    data: ForecastData,
    levels: np.ndarray,
    n_resamples: int,
    random_state: RandomState,
    *,
    folded: bool = False,
    is_uniform: bool,
) -> np.ndarray:
    """F̂ at increasing levels in [0, 1], for outcomes drawn from the forecasts, (R, m).

    PITs that are single numbers are uniform, also folded, and need no outcomes.
    """
    generator = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    if not is_uniform:
        null_cdf = []
        for _ in range(n_resamples):
            redrawn = data.with_outcome(data.simulate_outcomes(generator, 1)[0])
            law = pit_laws(*redrawn.forecast.pit_bounds(redrawn.value), folded=folded)
            null_cdf.append(pit_distribution(law, data.weight, levels))
        return np.array(null_cdf)
    weight, n = data.weight, data.n_samples
    shares = np.diff(levels, prepend=0.0, append=1.0)
    if (weight == weight[0]).all():
        needed = 16.0 * n_resamples * len(shares)
        check_memory(needed, f"n_resamples={n_resamples}", "Choose fewer.")
        counts = generator.multinomial(n, shares / shares.sum(), size=n_resamples)
        return np.cumsum(counts[:, :-1], axis=1) / n
    masses = [
        np.bincount(np.searchsorted(levels, generator.random(n)), weight, len(levels) + 1)
        for _ in range(n_resamples)
    ]
    return np.cumsum(np.array(masses)[:, :-1], axis=1)


def band_of(
    null_cdf: np.ndarray, expected: np.ndarray, level: float, *, same_everywhere: bool = False
) -> Band:
    """Bands around what is expected, (m,), from draws (R, m).

    The pointwise band holds the middle share of the draws at each place. The simultaneous one is a
    multiple of the standard deviation at each place that holds the same share of whole draws. If
    the draws have the same distribution everywhere, they are taken together.
    """
    tail = (1 - level) / 2
    axis = None if same_everywhere else 0
    gap = null_cdf - expected
    lower, upper = np.quantile(gap, [tail, 1 - tail], axis=axis)
    spread = np.sqrt(np.mean(gap**2, axis=axis, keepdims=True))
    score = np.divide(np.abs(gap), spread, out=np.zeros(gap.shape), where=spread > 1e-12)
    width = np.quantile(score.max(axis=1), level) * spread[0]
    return Band(expected + lower, expected + upper, expected - width, expected + width, level)


def shade(draw: Any, x: np.ndarray, band: Band, where: str) -> None:
    """Draw the bands with `draw`, a method of the axes with the arguments of `fill_between`."""
    per_cent = f"{100 * band.level:.3g} %"
    for lower, upper, shadow, note in (
        (band.lower_of_all, band.upper_of_all, "0.9", f"all {where}s"),
        (band.lower, band.upper, "0.8", f"one {where}"),
    ):
        label = f"{note} by chance ({per_cent})"
        draw(x, np.clip(lower, 0, None), upper, color=shadow, linewidth=0, label=label)
