"""Statistics of a test, among the values that they have for calibrated models."""

from inspect import signature
from math import ceil
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._inputs.constraints import METRIC_CONSTRAINTS
from .._inputs.scikit_learn import check_matplotlib_support, validate_params
from ..forecasts import forecast_of
from ..hypothesis_tests import CalibrationTest
from ._axes import LEGEND, check_style, settle, wrapped
from ._grid import Grid

# Least width and usual height of a panel, in inches.
_LEAST, _HEIGHT = 1.5, 2.1

_TITLES = {"skce": "kernel error"}


class NullDistributionDisplay:
    """Statistics of a test, among the values that they have for calibrated models.

    Use :meth:`from_test`, :meth:`from_predictions` or :meth:`from_estimator` to create one. Each
    statistic has a panel. The bars are its values for outcomes that are drawn from the predictions,
    and the line is its value for the data: far to the right of the bars, or for a statistic with a
    sign to the left of them, it speaks against calibration.

    Parameters
    ----------
    statistics : dict of str to float
        The values for the data.

    null_distributions : dict of str to ndarray of shape (n_resamples,)
        The values for the drawn outcomes.

    p_values : dict of str to float
        The p-values; of several statistics, adjusted for their number.

    p_value : float, default=None
        The p-value of all statistics together.

    name : str, default=None
        Name of the model, for the legend.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (n_statistics,)
        The axes of all panels.

    bars_ : list of matplotlib StepPatch
        The numbers of drawn values in about 2 ∛n_resamples bins of equal width.

    lines_ : list of matplotlib Line2D
        The values for the data; at the right end if they are infinite.

    legend_ : matplotlib Legend
        The legend.

    ax_ : matplotlib Axes
        The axes of the first panel.

    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    skcalib.hypothesis_tests.CalibrationTest : The test, and what its statistics find.

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.display import NullDistributionDisplay
    >>> from skcalib.hypothesis_tests import CalibrationTest
    >>> y, proba = make_temperature_family(500, inverse_temperature=2, random_state=0)
    >>> test = CalibrationTest(random_state=0).fit(proba, y)
    >>> display = NullDistributionDisplay.from_test(test)
    >>> list(display.statistics)
    ['skce', 'log_loss', 'level_and_spread', 'local']
    """

    def __init__(
        self,
        statistics: dict[str, float],
        null_distributions: dict[str, np.ndarray],
        p_values: dict[str, float],
        *,
        p_value: float | None = None,
        name: str | None = None,
    ) -> None:
        self.statistics = statistics
        self.null_distributions = null_distributions
        self.p_values = p_values
        self.p_value = p_value
        self.name = name

    @classmethod
    def from_test(
        cls, test: Any, *, name: str | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Create and draw the display of a fitted test.

        Parameters
        ----------
        test : estimator
            A test of :mod:`skcalib.hypothesis_tests` that is fitted, and whose method draws
            outcomes. The omnibus test has a panel for each of its components.

        name : str, default=None
            Name of the model, for the legend.

        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. Several panels take the place of the axes, or
            are drawn on as many axes as there are panels.

        **kwargs : dict
            Passed to matplotlib's `axvline` for the values of the data. Other names are refused.

        Returns
        -------
        display : NullDistributionDisplay
            The display, drawn.
        """
        check_matplotlib_support("NullDistributionDisplay")
        check_is_fitted(test)
        check_has_null_distribution(test)
        if hasattr(test, "component_statistics_"):
            found = (
                test.component_statistics_,
                test.component_null_distributions_,
                test.adjusted_p_values_,
            )
        else:
            title = _title_of(test)
            found = (
                {title: test.statistic_},
                {title: test.null_distribution_},
                {title: test.p_value_},
            )
        return cls(*found, p_value=test.p_value_, name=name).plot(ax, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        test: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        given: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Test the predictions of a fitted estimator, and draw the display.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier with `predict_proba`, or a regressor in which
            :func:`skcalib.forecasts.forecast_of` finds a forecast.

        X : array-like of shape (n_samples, n_features)
            Features of data that the estimator was not fitted on.

        y : array-like of shape (n_samples,)
            Labels, or outcomes.

        test : estimator, default=None
            The test, of which a copy is fitted. By default a
            :class:`~skcalib.hypothesis_tests.CalibrationTest`.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        groups : array-like of shape (n_samples,), default=None
            Labels of groups of samples that are not independent of each other.

        given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
            What calibration of forecasts is conditioned on.

        name : str, default=None
            Name of the model, for the legend, by default that of its class.

        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. Several panels take the place of the axes, or
            are drawn on as many axes as there are panels.

        **kwargs : dict
            Passed to matplotlib's `axvline` for the values of the data. Other names are refused.

        Returns
        -------
        display : NullDistributionDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        classes = getattr(estimator, "classes_", None)
        return cls.from_predictions(
            y,
            forecast_of(estimator, X) if classes is None else estimator.predict_proba(X),
            test=test,
            sample_weight=sample_weight,
            labels=classes,
            groups=groups,
            given=given,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            **kwargs,
        )

    @classmethod
    @validate_params(
        {
            "labels": METRIC_CONSTRAINTS["labels"],
            "test": "no_validation",
            "name": [str, None],
            "ax": "no_validation",
        },
        prefer_skip_nested_validation=True,
    )
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: Any,
        *,
        test: Any = None,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        given: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Test predictions, and draw the display.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, or outcomes.

        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Probabilities; one-dimensional ones are of the last class. Or a forecast of a number, as
            :func:`skcalib.forecasts.as_forecast` takes it.

        test : estimator, default=None
            The test, of which a copy is fitted. By default a
            :class:`~skcalib.hypothesis_tests.CalibrationTest`.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        labels : array-like of shape (n_classes,), default=None
            The classes, in the order of the columns of `y_proba`. By default those of the test.

        groups : array-like of shape (n_samples,), default=None
            Labels of groups of samples that are not independent of each other.

        given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
            What calibration of forecasts is conditioned on.

        name : str, default=None
            Name of the model, for the legend.

        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. Several panels take the place of the axes, or
            are drawn on as many axes as there are panels.

        **kwargs : dict
            Passed to matplotlib's `axvline` for the values of the data. Other names are refused.

        Returns
        -------
        display : NullDistributionDisplay
            The display, drawn.
        """
        options = signature(cls.from_predictions).parameters
        check_style(kwargs, "NullDistributionDisplay", options)
        test = CalibrationTest() if test is None else clone(test)
        if labels is not None and "labels" in test.get_params():
            test.set_params(labels=labels)
        further = {"sample_weight": sample_weight, "groups": groups, "given": given}
        chosen = {key: value for key, value in further.items() if value is not None}
        test.fit(y_proba, y_true, **chosen)
        return cls.from_test(test, name=name, ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. Several panels take the place of the axes, or
            are drawn on as many axes as there are panels.

        name : str, default=None
            Name of the model, for the legend; by default that of the display.

        **kwargs : dict
            Passed to matplotlib's `axvline` for the values of the data. Other names are refused.

        Returns
        -------
        display : NullDistributionDisplay
            This object, with its artists.
        """
        check_matplotlib_support("NullDistributionDisplay")
        check_style(kwargs, "NullDistributionDisplay", signature(self.plot).parameters)
        n_panels = len(self.statistics)
        figsize = (5.5, _HEIGHT * ceil(n_panels / 2) + 0.8)
        grid = Grid.of_width(ax, n_panels, figsize, _LEAST)
        self.axes_ = grid.axes
        drawn = [
            self._draw(one, statistic, kwargs)
            for one, statistic in zip(self.axes_, self.statistics, strict=True)
        ]
        self.bars_ = [bars for bars, _ in drawn]
        self.lines_ = [line for _, line in drawn]
        self._label(grid, name or self.name)
        self.ax_ = self.axes_[0]
        self.figure_ = self.ax_.figure
        settle(self.figure_)
        return self

    def _draw(self, ax, statistic, style):
        """One statistic: its draws, and its value for the data."""
        value, draws = self.statistics[statistic], self.null_distributions[statistic]
        counts, edges = np.histogram(draws, ceil(2 * np.cbrt(len(draws))))
        bars = ax.stairs(counts, edges, fill=True, color="0.7", label=_drawn(draws))
        low, high = min(edges[0], value), max(edges[-1], value)
        if not np.isfinite(value):  # for data that have probability 0
            high = edges[-1] + 0.5 * (edges[-1] - edges[0])
        own = {"color": "C3", "linewidth": 1.5, "label": "the data"}
        line = ax.axvline(min(value, high), **(own | style))
        margin = 0.04 * (high - low)
        ax.set(xlim=(low - margin, high + margin), ylim=(0, 1.08 * counts.max()), yticks=[])
        ax.locator_params(axis="x", nbins=3, min_n_ticks=2)
        ax.ticklabel_format(axis="x", scilimits=(-3, 3), useMathText=True)
        return bars, line

    def _label(self, grid, name):
        several = "adjusted " if len(self.statistics) > 1 else ""
        for ax, statistic in zip(self.axes_, self.statistics, strict=True):
            title = _TITLES.get(statistic, statistic.replace("_", " "))
            p_value = "" if several else f", {name}" if name else ""
            title = f"{title}{p_value}\n{several}p = {self.p_values[statistic]:.2g}"
            ax.set_title(wrapped(title, ax), fontsize="medium")
        handles, labels = self.axes_[0].get_legend_handles_labels()
        grid.label("value", "draws")
        parts = [name, None if self.p_value is None else f"all together: p = {self.p_value:.2g}"]
        self.legend_ = grid.draw_legend(handles, labels, ", ".join(filter(None, parts)), **LEGEND)


def _drawn(draws):
    return f"calibrated ({len(draws)} draws)"


def _title_of(test):
    """The name of the statistic, or of the test."""
    statistic = getattr(test, "statistic", None)
    if isinstance(statistic, str) and statistic != "auto":
        return statistic
    return getattr(statistic, "__name__", type(test).__name__)


def check_has_null_distribution(test: Any) -> None:
    """There must be draws to show."""
    if not hasattr(test, "null_distribution_"):
        method = getattr(test, "method", None)
        found = f"{type(test).__name__} with method={method!r}" if method else f"{test!r:.80}"
        raise ValueError(
            "test must have drawn outcomes, whose values are shown; found "
            f"{found}, which draws none. Fit CalibrationTest(method='conditional'), for instance."
        )
