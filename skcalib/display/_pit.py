"""Displays of PITs: their histogram, and how often quantiles and intervals cover the outcome."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np

from .._data import check_forecasts
from .._inputs.arrays import ArrayLike
from .._inputs.options import select_arguments
from .._inputs.scikit_learn import RandomState
from ..metrics._pit_histogram import PIT_CONSTRAINTS, Band, make_quantile_curve, pit_histogram
from . import _base
from ._base import Axes, PredictionsDisplay

_LINE = "calibrated"

_PIT_LABELS = {
    "quantile": ("level of the quantile", "share of outcomes up to it"),
    "interval": ("level of the central interval", "share of outcomes in it"),
}


class _PitDisplay(PredictionsDisplay):
    """Base of the displays of PITs: what is by chance, the line of calibration, and the legend."""

    _takes_classes: ClassVar = False
    _size: ClassVar[tuple[float, float]]
    _draw_expected: ClassVar[Callable[..., None]]
    _draw_outcomes: ClassVar[Callable[..., None]]
    error: float | None

    def _draw(self, ax: Axes, name: str | None, style: dict[str, Any]) -> None:
        self.ax_ = ax = _base.axes_of(ax, self._size)
        if _LINE not in ax.get_legend_handles_labels()[1]:
            style_of_line = {"color": "0.3", "linewidth": 1, "linestyle": ":", "label": _LINE}
            self._draw_expected(ax, style_of_line)
        label = _base.legend_label(name, "quantile calibration error", self.error, "outcomes")
        self._draw_outcomes(ax, {"label": label} | style)
        _base.draw_legend(ax)


@dataclass(eq=False, repr=False)
class PITHistogramDisplay(_PitDisplay):
    """Histogram of PITs: where the outcomes lie in their forecasts.

    Made by :meth:`from_estimator` or :meth:`from_predictions`. The probability integral transform
    (PIT) of an outcome is the probability that its forecast gave to less. PITs of calibrated
    forecasts are uniform: all bars have the height 1 but for chance. High ends show too narrow
    forecasts, a high middle too wide ones, and a slope a bias. A flat histogram does not prove that
    each forecast is right: errors of different samples can cancel.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Ends of the bins, from 0 to 1.

    density : ndarray of shape (n_bins,)
        Heights of the bars: the share of the PITs in each bin over its width.

    band : Band, default=None
        Tuple of arrays `lower`, `upper`, `lower_of_all` and `upper_of_all` of shape (n_bins,),
        heights between which single bars and all bars at once lie by chance, and the
        `confidence_level`.

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
    skcalib.metrics.pit_histogram : The numbers alone.

    Notes
    -----
    An outcome of positive probability has an interval of PITs, from the probability of less to that
    of at most the outcome, for an ensemble without weights that of its rank. By default it counts
    in each bin by the share of the interval that lies there [1]_.

    References
    ----------
    .. [1] Czado, Gneiting and Held (2009). Predictive model assessment for count data. Biometrics.
       :doi:`10.1111/j.1541-0420.2009.01191.x`

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
    @_base.validate_options(**PIT_CONSTRAINTS)
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_forecast: object,
        *,
        sample_weight: ArrayLike | None = None,
        n_bins: int | Literal["auto"] | ArrayLike | None = None,
        atoms: Literal["average", "randomize"] = "average",
        confidence_level: float | None = 0.9,
        n_resamples: int = 200,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Axes | None = None,
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
            Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take
            all arrays at ``np.repeat(np.arange(n), counts)``.

        n_bins : int, "auto" or array-like of shape (n_bins + 1,), default=None
            Number of bins of equal width, or edges that increase from 0 to 1. "auto": the cube root
            of the effective number of samples, rounded up. By default one for each rank of an
            ensemble without weights of up to 24 members, one for each cell of quantiles at given
            levels, and ten otherwise.

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
        _base.check_options(cls.from_predictions, kwargs, "stairs")
        options = select_arguments(locals(), ("atoms", "random_state", *PIT_CONSTRAINTS))
        numbers = pit_histogram(y_true, y_forecast, sample_weight=sample_weight, **options)
        return cls(**vars(numbers), name=name).plot(ax, **kwargs)

    def _draw_expected(self, ax: Axes, style: dict[str, Any]) -> None:
        if self.band is not None:
            shade(partial(_fill_steps, ax), self.edges, self.band, "bar")
        ax.axhline(1, **style)

    def _draw_outcomes(self, ax: Axes, style: dict[str, Any]) -> None:
        self.bars_ = ax.stairs(self.density, self.edges, **({"linewidth": 1.5} | style))
        color = self.bars_.get_edgecolor()
        ax.stairs(self.density, self.edges, fill=True, color=color, alpha=0.2)
        sharing = ax.get_shared_y_axes().get_siblings(ax)
        highest = max(axes.dataLim.y1 for axes in sharing)  # −inf where nothing is drawn yet
        n_lines = "\n".join(ax.get_legend_handles_labels()[1]).count("\n") + 1
        ax.set(
            xlim=(0, 1),
            # with room for the legend, if it is inside
            ylim=(0, highest * (1 + 0.09 * (n_lines if n_lines <= _base.MAX_LEGEND_LINES else 1))),
            xlabel=_base.wrap_label("PIT: forecast probability of less than the outcome", ax),
            ylabel="density",
        )


@dataclass(eq=False, repr=False)
class QuantileReliabilityDisplay(_PitDisplay):
    """Reliability diagram of forecasts: how often quantiles or intervals cover the outcome.

    Made by :meth:`from_estimator` or :meth:`from_predictions`. For calibrated forecasts the curve
    is the diagonal but for chance. Intervals below the diagonal are too narrow. The diagonal does
    not prove that each forecast is right: errors of different samples can cancel.

    Parameters
    ----------
    levels : ndarray of shape (n_levels,)
        Levels of the quantiles or intervals, increasing.

    observed : ndarray of shape (n_levels,)
        Share of the outcomes that they cover.

    band : Band, default=None
        Tuple of arrays `lower`, `upper`, `lower_of_all` and `upper_of_all` of shape (n_levels,),
        shares between which single points and the whole curve lie by chance, and the
        `confidence_level`.

    error : float, default=None
        The quantile calibration error, for the legend.

    level_type : {"quantile", "interval"}, default="quantile"
        Whether the levels are those of quantiles, or of central intervals.

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
    the level.

    Examples
    --------
    >>> from skcalib.datasets import make_forecasts
    >>> from skcalib.display import QuantileReliabilityDisplay
    >>> y, forecast = make_forecasts(dispersion=0.5, random_state=0)  # too narrow
    >>> display = QuantileReliabilityDisplay.from_predictions(
    ...     y, forecast, level_type="interval", levels=[0.5, 0.8, 0.95], random_state=0
    ... )
    >>> display.observed.round(2)
    array([0.26, 0.49, 0.69])
    """

    levels: np.ndarray
    observed: np.ndarray
    band: Band | None = None
    error: float | None = None
    _: KW_ONLY
    level_type: str = "quantile"
    name: str | None = None

    _size: ClassVar = (4.5, 4.5)

    @classmethod
    @_base.validate_options(confidence_level=PIT_CONSTRAINTS["confidence_level"])
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_forecast: object,
        *,
        sample_weight: ArrayLike | None = None,
        level_type: Literal["quantile", "interval"] = "quantile",
        levels: ArrayLike | None = None,
        confidence_level: float | None = 0.9,
        n_resamples: int = 200,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Axes | None = None,
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
            Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take
            all arrays at ``np.repeat(np.arange(n), counts)``.

        level_type : {"quantile", "interval"}, default="quantile"
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
        _base.check_options(cls.from_predictions, kwargs)
        data = check_forecasts(y_true, y_forecast, sample_weight=sample_weight)
        options = level_type, levels, confidence_level, n_resamples, random_state
        curve = make_quantile_curve(data, *options)
        return cls(*curve, level_type=level_type, name=name).plot(ax, **kwargs)

    def _draw_expected(self, ax: Axes, style: dict[str, Any]) -> None:
        if self.band is not None:
            shade(ax.fill_between, self.levels, self.band, "point")
        ax.plot([0, 1], [0, 1], **style)

    def _draw_outcomes(self, ax: Axes, style: dict[str, Any]) -> None:
        if len(self.levels) < 30:
            style = {"marker": "o", "markersize": 4} | style
        (self.line_,) = ax.plot(self.levels, self.observed, **style)
        x_label, y_label = _PIT_LABELS[self.level_type]
        ax.set(xlabel=_base.wrap_label(x_label, ax), ylabel=y_label)
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")


def _fill_steps(
    ax: Axes, edges: np.ndarray, lower: np.ndarray, upper: np.ndarray, **style: Any
) -> None:
    ax.stairs(upper, edges, baseline=lower, fill=True, **style)


def shade(draw: Any, x: np.ndarray, band: Band, where: str) -> None:
    """Draw the bands with `draw`, a method of the axes with the arguments of `fill_between`."""
    per_cent = f"{100 * band.confidence_level:.3g} %"
    for lower, upper, shadow, note in (
        (band.lower_of_all, band.upper_of_all, "0.9", f"all {where}s"),
        (band.lower, band.upper, "0.8", f"one {where}"),
    ):
        label = f"{note} by chance ({per_cent})"
        draw(x, np.clip(lower, 0, None), upper, color=shadow, linewidth=0, label=label)
