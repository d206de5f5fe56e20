"""The reliability diagram of quantiles and of intervals."""

from inspect import signature
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._inputs.constraints import IntegerInterval
from .._inputs.scikit_learn import Interval, StrOptions, check_matplotlib_support, validate_params
from .._inputs.types import RandomState
from .._numerics.pit import pit_laws
from ..forecasts import forecast_of
from ..forecasts._data import check_forecasts
from ..metrics import quantile_calibration_error
from ..metrics._quantile import known_levels
from ._axes import axes_of, check_style, draw_legend, legend_label, wrapped
from ._pit_bands import Band, band_of, drawn_distributions, pit_distribution, shade

_GRID = np.arange(101) / 100

_LINE = "calibrated"

_LABELS = {
    "quantile": ("level of the quantile", "share of outcomes up to it"),
    "interval": ("level of the central interval", "share of outcomes in it"),
}


class QuantileReliabilityDisplay:
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
    >>> from skcalib.datasets import make_gaussian_forecasts
    >>> from skcalib.display import QuantileReliabilityDisplay
    >>> y, forecast = make_gaussian_forecasts(dispersion=0.5, random_state=0)  # too narrow
    >>> display = QuantileReliabilityDisplay.from_predictions(
    ...     y, forecast, kind="interval", levels=[0.5, 0.8, 0.95], random_state=0
    ... )
    >>> display.observed.round(2)
    array([0.26, 0.49, 0.69])
    """

    def __init__(
        self,
        levels: np.ndarray,
        observed: np.ndarray,
        *,
        kind: str = "quantile",
        band: Band | None = None,
        error: float | None = None,
        name: str | None = None,
    ) -> None:
        self.levels = levels
        self.observed = observed
        self.kind = kind
        self.band = band
        self.error = error
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        kind: str = "quantile",
        levels: ArrayLike | None = None,
        confidence_level: float | None = 0.9,
        n_resamples: int = 200,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the diagram of a fitted regressor.

        Parameters
        ----------
        estimator : estimator
            A fitted regressor with a forecast: with `predict_forecast`, with ``predict(X,
            return_std=True)``, or of skpro or NGBoost.

        X : array-like of shape (n_samples, n_features)
            Features of data that the regressor was not fitted on.

        y : array-like of shape (n_samples,)
            Outcomes.

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
            Name of the model, for the legend, by default that of its class.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curve. Other names are refused.

        Returns
        -------
        display : QuantileReliabilityDisplay
            The display, drawn.
        """
        return cls.from_predictions(
            y,
            forecast_of(estimator, X),
            sample_weight=sample_weight,
            kind=kind,
            levels=levels,
            confidence_level=confidence_level,
            n_resamples=n_resamples,
            random_state=random_state,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            **kwargs,
        )

    @classmethod
    @validate_params(
        {
            "y_true": "no_validation",
            "y_forecast": "no_validation",
            "sample_weight": "no_validation",
            "kind": [StrOptions({"quantile", "interval"})],
            "levels": ["array-like", None],
            "confidence_level": [Interval(Real, 0, 1, closed="neither"), None],
            "n_resamples": [IntegerInterval(1)],
            "random_state": ["random_state"],
            "name": [str, None],
            "ax": "no_validation",
        },
        prefer_skip_nested_validation=True,
    )
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_forecast: Any,
        *,
        sample_weight: ArrayLike | None = None,
        kind: str = "quantile",
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
        check_matplotlib_support("QuantileReliabilityDisplay")
        check_style(
            kwargs, "QuantileReliabilityDisplay", signature(cls.from_predictions).parameters
        )
        data = check_forecasts(y_true, y_forecast, sample_weight=sample_weight)
        error = quantile_calibration_error(
            data.value, data.forecast, sample_weight=data.weight, kind=kind, levels=levels
        )
        shown = known_levels(data.forecast, kind, levels)
        shown = _GRID if shown is None else np.unique(shown)
        folded = kind == "interval"
        law = pit_laws(*data.forecast.pit_bounds(data.value), folded=folded)
        band = None
        if confidence_level is not None:
            drawn = drawn_distributions(
                data,
                shown,
                n_resamples,
                random_state,
                folded=folded,
                is_uniform=data.forecast.is_continuous,
            )
            band = band_of(drawn, shown, confidence_level)
        observed = pit_distribution(law, data.weight, shown)
        display = cls(shown, observed, kind=kind, band=band, error=error, name=name)
        return display.plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        name : str, default=None
            Name of the model, for the legend; by default that of the display.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curve. Other names are refused.

        Returns
        -------
        display : QuantileReliabilityDisplay
            This object, with `ax_`, `figure_` and `line_`.
        """
        check_matplotlib_support("QuantileReliabilityDisplay")
        check_style(kwargs, "QuantileReliabilityDisplay", signature(self.plot).parameters)
        ax = axes_of(ax, (4.5, 4.5))
        if _LINE not in ax.get_legend_handles_labels()[1]:
            if self.band is not None:
                shade(ax.fill_between, self.levels, self.band, "point")
            ax.plot([0, 1], [0, 1], color="0.3", linewidth=1, linestyle=":", label=_LINE)
        label = legend_label(
            name or self.name, "quantile calibration error", self.error, "outcomes"
        )
        style = {"label": label} | kwargs
        if len(self.levels) < 30:
            style = {"marker": "o", "markersize": 4} | style
        (self.line_,) = ax.plot(self.levels, self.observed, **style)
        xlabel, ylabel = _LABELS[self.kind]
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel=wrapped(xlabel, ax), ylabel=ylabel)
        draw_legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
