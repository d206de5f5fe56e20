"""Statistics of tests among their values for calibrated models, and evidence over time."""

from dataclasses import KW_ONLY, dataclass
from math import ceil
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._inputs.arrays import ArrayLike
from .._inputs.by import format_bounded
from .._inputs.scikit_learn import HasMethods, Interval, clone_instance
from ..hypothesis_tests import CalibrationTest
from ..hypothesis_tests._base import HypothesisTest
from . import _base
from ._base import Axes, Display, PredictionsDisplay
from ._panels import columns_that_fit, label_outer, legend_of_panels, panels

# Usual height of a panel, in inches.
_HEIGHT = 2.1

# A value farther from the draws than this many times their extent is written at the end.
_MAX_EXTENTS = 3.0

_STATISTIC_TITLES = {"skce": "kernel error"}

# The axis of e-values ends at this power of 1/α: larger ones hide where the line is crossed.
_ABOVE = 2

# Logarithm of the largest e-values that can be drawn, with a margin.
_FINITE = 250 * np.log(10)


@dataclass(eq=False, repr=False)
class NullDistributionDisplay(PredictionsDisplay):
    """Statistics of a test, among the values that they have for calibrated models.

    Made by :meth:`from_test`, :meth:`from_predictions` or :meth:`from_estimator`. Each statistic
    has a panel. The bars are its values for outcomes drawn from the predictions, and the line is
    its value for the data: far to the right of the bars, or for a statistic with a sign to the
    left, it is evidence against calibration.

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
        The values for the data. Those that are infinite, or farther from the bars than three
        times their extent, are written at the end.

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

    statistics: dict[str, float]
    null_distributions: dict[str, np.ndarray]
    p_values: dict[str, float]
    _: KW_ONLY
    p_value: float | None = None
    name: str | None = None

    @classmethod
    def from_test(
        cls, test: HypothesisTest, *, name: str | None = None, ax: Axes | None = None, **kwargs: Any
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
        _base.check_options(cls.from_test, kwargs)
        check_is_fitted(test)
        check_has_null_distribution(test)
        if hasattr(test, "component_statistics_"):
            nulls = test.component_null_distributions_
            statistics = [test.component_statistics_, nulls, test.adjusted_p_values_]
        else:
            title = _make_test_title(test)
            single = test.statistic_, test.null_distribution_, test.p_value_
            statistics = [{title: values} for values in single]
        return cls(*statistics, p_value=test.p_value_, name=name).plot(ax, **kwargs)

    @classmethod
    @_base.validate_options(test=[HasMethods("fit"), None])
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: object,
        *,
        test: HypothesisTest | None = None,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        given: ArrayLike | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Test predictions, and draw the display.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, or outcomes.

        y_pred : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Probabilities; one-dimensional ones are of the last class. Or a forecast of a number, as
            :func:`skcalib.forecasts.as_forecast` takes it.

        test : estimator, default=None
            The test, of which a copy is fitted. By default a
            :class:`~skcalib.hypothesis_tests.CalibrationTest`.

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take
            all arrays at ``np.repeat(np.arange(n), counts)``.

        labels : array-like of shape (n_classes,), default=None
            The classes, in the order of the columns of `y_pred`. By default those of the test.

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
        _base.check_options(cls.from_predictions, kwargs)
        test = CalibrationTest() if test is None else clone_instance(test, "test")
        if labels is not None and "labels" in test.get_params():
            test.set_params(labels=labels)
        further = {"sample_weight": sample_weight, "groups": groups, "given": given}
        fit_args = {key: value for key, value in further.items() if value is not None}
        test.fit(y_pred, y_true, **fit_args)
        return cls.from_test(test, name=name, ax=ax, **kwargs)

    def _draw(self, ax: Axes, name: str | None, style: dict[str, Any]) -> None:
        n_panels = len(self.statistics)
        size = (5.5, _HEIGHT * ceil(n_panels / 2) + 0.8)
        self.axes_ = axes = panels(ax, n_panels, size, columns_that_fit(ax, n_panels, 2))
        self.ax_ = axes[0]
        artists = [self._draw_one(*pair, style) for pair in zip(axes, self.statistics, strict=True)]
        self.bars_, self.lines_ = map(list, zip(*artists, strict=True))
        is_single = n_panels == 1
        for ax, statistic in zip(axes, self.statistics, strict=True):
            title = _STATISTIC_TITLES.get(statistic, statistic.replace("_", " "))
            title += f", {name}" if name and is_single else ""
            p_value = f"p {format_bounded(self.p_values[statistic], digits=2)}"
            title = f"{title}\n{p_value if is_single else f'adjusted {p_value}'}"
            ax.set_title(_base.wrap_label(title, ax), fontsize="medium")
        label_outer(axes, "value", "draws")
        joint = None if self.p_value is None else format_bounded(self.p_value, digits=2)
        words = [name, joint and f"all together: p {joint}"]
        note = "" if is_single else ", ".join(filter(None, words))
        handles, labels = self.ax_.get_legend_handles_labels()
        self.legend_ = legend_of_panels(axes, handles, labels, note)

    def _draw_one(self, ax: Any, statistic: str, style: dict[str, Any]) -> tuple[Any, ...]:
        """One statistic: its draws, and its value for the data."""
        value, draws = self.statistics[statistic], self.null_distributions[statistic]
        low, high = draws.min(), draws.max()
        least = 1e-9 * max(abs(low), abs(high))  # equal but for rounding
        ends = None if high - low > least else (low - least, high + least)
        counts, edges = np.histogram(draws, ceil(2 * np.cbrt(len(draws))), ends)
        label = f"calibrated ({len(draws)} draws)"
        bars = ax.stairs(counts, edges, fill=True, color="0.7", label=label)
        # a value far beyond the bars, or infinite, is at the end: the bars would be a line, too
        extent = edges[-1] - edges[0]
        ends = edges[0] - _MAX_EXTENTS * extent, edges[-1] + _MAX_EXTENTS * extent
        position = np.clip(value, *ends)
        low, high = min(edges[0], position), max(edges[-1], position)
        defaults = {"color": "C3", "linewidth": 1.5, "label": "the data"}
        line = ax.axvline(position, **(defaults | style))
        if position != value:
            text = f"{value:.3g} →" if value > position else f"← {value:.3g}"
            options = {"va": "top", "ha": "right" if value > position else "left"}
            ax.text(position, counts.max(), f" {text} ", fontsize="x-small", **options)
        margin = 0.04 * (high - low)
        ax.set(xlim=(low - margin, high + margin), ylim=(0, 1.08 * counts.max()), yticks=[])
        ax.locator_params(axis="x", nbins=3, min_n_ticks=2)
        ax.ticklabel_format(axis="x", scilimits=(-3, 3), useMathText=True)
        return bars, line


@dataclass(eq=False, repr=False)
class SequentialTestDisplay(Display):
    r"""The evidence of a sequential test of calibration, batch by batch.

    Made by :meth:`from_test`. The curve is the e-value: it falls or stays around 1 for a calibrated
    model. Where it first reaches the dashed line, :math:`1/\alpha`, the hypothesis is rejected at
    the level :math:`\alpha`; that is valid whenever one looks.

    Parameters
    ----------
    n_seen : ndarray of shape (n_batches,)
        Number of samples after each batch.

    log_e_value : ndarray of shape (n_batches,)
        Natural logarithm of the e-value after each batch.

    alpha : float, default=0.05
        The level at which the hypothesis is rejected.

    name : str, default=None
        Name of the model, for the legend.

    Attributes
    ----------
    rejected_at : int or None
        Number of samples after the batch at which the hypothesis was first rejected.

    line_ : matplotlib Line2D
        The e-value, on a logarithmic axis; above 1e250 it leaves the axes. The legend has the last
        value.

    threshold_ : matplotlib Line2D
        The line at :math:`1/\alpha`.

    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    skcalib.hypothesis_tests.SequentialCalibrationTest : The test.

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.display import SequentialTestDisplay
    >>> from skcalib.hypothesis_tests import SequentialCalibrationTest
    >>> test = SequentialCalibrationTest(labels=[0, 1])
    >>> for week in range(10):
    ...     y, proba = make_temperature_family(200, inverse_temperature=1.3, random_state=week)
    ...     test = test.partial_fit(proba, y)
    >>> SequentialTestDisplay.from_test(test, alpha=0.01).rejected_at
    1600
    """

    n_seen: np.ndarray
    log_e_value: np.ndarray
    _: KW_ONLY
    alpha: float = 0.05
    name: str | None = None

    @property
    def rejected_at(self) -> int | None:
        """Number of samples after the batch at which the hypothesis was first rejected."""
        rejected = np.flatnonzero(self.log_e_value >= -np.log(self.alpha))
        return int(self.n_seen[rejected[0]]) if len(rejected) else None

    @classmethod
    @_base.validate_options(alpha=[Interval(Real, 1e-100, 1, closed="left")])
    def from_test(
        cls,
        test: HypothesisTest,
        *,
        alpha: float = 0.05,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the display of a test that has seen samples.

        Parameters
        ----------
        test : SequentialCalibrationTest
            The test.

        alpha : float, default=0.05
            The level at which the hypothesis is rejected.

        name : str, default=None
            Name of the model, for the legend.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curve. Other names are refused.

        Returns
        -------
        display : SequentialTestDisplay
            The display, drawn.
        """
        _base.check_options(cls.from_test, kwargs)
        check_is_fitted(test)
        if not hasattr(test, "history_"):
            raise ValueError(
                "test must be a SequentialCalibrationTest, which keeps its history; found "
                f"{type(test).__name__}. For other tests there is NullDistributionDisplay."
            )
        history = test.history_
        n_seen, log_e_value = np.array(history["n_seen"]), np.array(history["log_e_value"])
        return cls(n_seen, log_e_value, alpha=alpha, name=name).plot(ax, **kwargs)

    def _draw(self, ax: Axes, name: str | None, style: dict[str, Any]) -> None:
        self.ax_ = ax = _base.axes_of(ax, (6.4, 3.6))
        highest = self.alpha**-_ABOVE
        log_e = self.log_e_value[-1]
        is_drawable = abs(log_e) < _FINITE or np.isinf(log_e)
        now = f"{np.exp(log_e):.3g}" if is_drawable else f"1e{log_e / np.log(10):+.0f}"
        model_name = "e-value" if name is None else name
        defaults = {"drawstyle": "steps-post", "label": f"{model_name}, now {now}"}
        defaults["marker"] = "o" if len(self.n_seen) == 1 else "None"
        finite_e_value = np.exp(np.clip(self.log_e_value, -_FINITE, _FINITE))
        (self.line_,) = ax.plot(self.n_seen, finite_e_value, **(defaults | style))
        self.threshold_ = self._draw_threshold(ax)
        ax.set_yscale("log")
        values = np.concatenate([line.get_ydata() for line in ax.lines])
        reached = values[values < 0.9 * np.exp(_FINITE)].max(initial=0)  # infinite ones leave it
        # With auto, since the next display on these axes may need more room below.
        ax.set_ylim(top=max(highest, 3 * reached), auto=True)
        ax.set_xlabel("samples seen")
        ax.set_ylabel(_base.wrap_label("evidence (e-value)", ax))
        _base.draw_legend(ax)

    def _draw_threshold(self, ax: Axes) -> Any:
        """The line at 1/α, which displays on the same axes share."""
        label = f"rejected at the level {self.alpha:g}"
        for line in ax.lines:
            if line.get_label() == label:
                return line
        ax.axhline(1.0, color="0.6", linewidth=0.8, label="_")
        return ax.axhline(1 / self.alpha, color="0.3", linestyle="--", linewidth=1.2, label=label)


def _make_test_title(test: HypothesisTest) -> str:
    """The name of the statistic, or of the test."""
    statistic = getattr(test, "statistic", None)
    if isinstance(statistic, str) and statistic != "auto":
        return statistic
    return getattr(statistic, "__name__", type(test).__name__)


def check_has_null_distribution(test: HypothesisTest) -> None:
    """There must be draws to show."""
    if not hasattr(test, "null_distribution_"):
        method = getattr(test, "method", None)
        test_text = f"{type(test).__name__} with method={method!r}" if method else f"{test!r:.80}"
        raise ValueError(
            "test must have drawn outcomes, whose values are shown; found "
            f"{test_text}, which draws none. Fit CalibrationTest(method='conditional'), for "
            "instance."
        )
