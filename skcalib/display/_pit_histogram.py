"""The histogram of probability integral transforms."""

from functools import partial
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
from ..forecasts._data import ForecastData, check_forecasts
from ..metrics import quantile_calibration_error
from ._axes import axes_of, check_style, draw_legend, legend_label, wrapped
from ._pit_bands import Band, band_of, drawn_distributions, pit_distribution, shade

_LINE = "calibrated"

# An ensemble with at most this many possible ranks has a bin for each.
_MOST_RANKS = 25

# Widths of bins that differ by less are equal.
_ROUNDING = 1e-9


class PITHistogramDisplay:
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
    >>> from skcalib.datasets import make_gaussian_forecasts
    >>> from skcalib.display import PITHistogramDisplay
    >>> y, forecast = make_gaussian_forecasts(dispersion=0.5, random_state=0)  # too narrow
    >>> display = PITHistogramDisplay.from_predictions(y, forecast, n_bins=5, random_state=0)
    >>> display.density.round(1)
    array([1.8, 0.5, 0.6, 0.5, 1.7])
    """

    def __init__(
        self,
        edges: np.ndarray,
        density: np.ndarray,
        *,
        band: Band | None = None,
        error: float | None = None,
        name: str | None = None,
    ) -> None:
        self.edges = edges
        self.density = density
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
        n_bins: int | None = None,
        atoms: str = "average",
        confidence_level: float | None = 0.9,
        n_resamples: int = 200,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the histogram of a fitted regressor.

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
            Name of the model, for the legend, by default that of its class.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        **kwargs : dict
            Passed to matplotlib's `stairs` for the bars. Other names are refused.

        Returns
        -------
        display : PITHistogramDisplay
            The display, drawn.
        """
        return cls.from_predictions(
            y,
            forecast_of(estimator, X),
            sample_weight=sample_weight,
            n_bins=n_bins,
            atoms=atoms,
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
            "n_bins": [IntegerInterval(1), None],
            "atoms": [StrOptions({"average", "randomize"})],
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
        n_bins: int | None = None,
        atoms: str = "average",
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
        check_matplotlib_support("PITHistogramDisplay")
        check_style(
            kwargs, "PITHistogramDisplay", signature(cls.from_predictions).parameters, "stairs"
        )
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
            drawn = drawn_distributions(
                data, edges[1:-1], n_resamples, random_state, is_uniform=is_uniform
            )
            # bars of different widths differ in how much they vary
            has_equal_bins = np.ptp(np.diff(edges)) < _ROUNDING
            band = band_of(
                _densities(drawn, edges),
                np.ones(len(density)),
                confidence_level,
                same_everywhere=is_uniform and has_equal_bins,
            )
        error = quantile_calibration_error(data.value, data.forecast, sample_weight=data.weight)
        return cls(edges, density, band=band, error=error, name=name).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the histogram.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        name : str, default=None
            Name of the model, for the legend; by default that of the display.

        **kwargs : dict
            Passed to matplotlib's `stairs` for the bars. Other names are refused.

        Returns
        -------
        display : PITHistogramDisplay
            This object, with `ax_`, `figure_` and `bars_`.
        """
        check_matplotlib_support("PITHistogramDisplay")
        check_style(kwargs, "PITHistogramDisplay", signature(self.plot).parameters, "stairs")
        ax = axes_of(ax, (5, 4))
        if _LINE not in ax.get_legend_handles_labels()[1]:
            if self.band is not None:
                shade(partial(_fill_steps, ax), self.edges, self.band, "bar")
            ax.axhline(1, color="0.3", linewidth=1, linestyle=":", label=_LINE)
        label = legend_label(
            name or self.name, "quantile calibration error", self.error, "outcomes"
        )
        style = {"label": label, "linewidth": 1.5} | kwargs
        self.bars_ = ax.stairs(self.density, self.edges, **style)
        color = self.bars_.get_edgecolor()
        ax.stairs(self.density, self.edges, fill=True, color=color, alpha=0.2)
        sharing = ax.get_shared_y_axes().get_siblings(ax)
        highest = max(one.dataLim.y1 for one in sharing)  # −inf where nothing is drawn yet
        n_lines = "\n".join(ax.get_legend_handles_labels()[1]).count("\n") + 1
        ax.set(
            xlim=(0, 1),
            ylim=(0, highest * (1 + 0.06 * n_lines)),  # with room for the legend
            xlabel=wrapped("PIT: forecast probability of less than the outcome", ax),
            ylabel="density",
        )
        draw_legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _edges(data: ForecastData, n_bins: int | None) -> np.ndarray:
    """Ends of the bins: of equal width, or the levels between which the PITs are known."""
    levels = getattr(data.forecast, "levels", None)
    if n_bins is None and levels is not None:
        return np.concatenate([[0.0], levels, [1.0]])
    if n_bins is None:
        n_bins = 10
        if data.forecast.is_exchangeable:
            n_ranks = data.forecast.components().location.shape[1] + 1
            n_bins = n_ranks if n_ranks <= _MOST_RANKS else n_bins
    return np.arange(n_bins + 1) / n_bins


def _densities(distribution: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Heights of bars (..., B) from the distribution function at the inner edges."""
    return np.diff(distribution, prepend=0.0, append=1.0, axis=-1) / np.diff(edges)


def _fill_steps(ax, edges, lower, upper, **style):
    ax.stairs(upper, edges, baseline=lower, fill=True, **style)
