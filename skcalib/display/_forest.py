"""A measure of each subgroup with its interval, and what the subgroups have in common."""

from dataclasses import dataclass
from math import ceil
from textwrap import fill
from typing import Any, Self

import numpy as np

from .._inputs.by import format_label
from ..uncertainty import RandomEffects, SubgroupClinicalCalibration, SubgroupIntervals
from ._base import Axes, Display, check_options, inches_of, shorten
from ._panels import MIN_WIDTH, columns_that_fit, label_outer, lay_out, legend_of_panels, panels

# Usual width of a panel, and heights of a row and of what is around, in inches.
_WIDTH, _ROW, _AROUND = 2.6, 0.25, 1.2

# Letters of a title in an inch of its panel, and of the longest word of the usual titles.
_TITLE_LETTERS_IN_INCH, _MIN_TITLE_LETTERS = 13, 11

RATIO = "observed_expected_ratio"

# Sides of the squares of the least and the most precise estimate, in points.
_SIDES = 2.5, 7.0

# The axis reaches at most this many times beyond the lowest and the highest ratio.
_MAX_REACH = 3.0

# The values of calibrated predictions that are not 0; of any metric it is not known.
_IDEAL = {RATIO: 1.0, "calibration_slope": 1.0, "estimate": np.nan}


@dataclass(eq=False, repr=False)
class ForestDisplay(Display):
    """Forest plot: a measure of each subgroup, such as each hospital, with its interval.

    Made by :meth:`from_result`. Each measure has a panel, in which each subgroup has a square for
    the estimate, the larger the more precise it is, and a line for the confidence interval; an
    estimate without an interval is hollow. The estimate and, if there is room, its interval are
    written at the right; the numbers of events and samples stand after the name. Below are all
    samples together; the mean over subgroups, as a diamond as wide as its interval; and the
    prediction interval, in which the measure of a new subgroup is to be expected. A line that goes
    on beyond the axes ends in an arrow. A dotted line marks calibrated predictions.

    Parameters
    ----------
    tables : dict of str to SubgroupIntervals
        The measures by name.

    random_effects : dict of str to RandomEffects
        Mean and prediction interval of some of them.

    n_events : ndarray of shape (n_subgroups,), default=None
        Number of events in each subgroup.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (n_measures,)
        The axes of all panels.

    points_ : list of matplotlib Line2D
        The estimates.

    legend_ : matplotlib Legend
        The legend.

    ax_ : matplotlib Axes
        The axes of the first panel.

    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    skcalib.uncertainty.clinical_calibration : With `by`, the measures.
    skcalib.uncertainty.confidence_interval : With `by`, any metric.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.display import ForestDisplay
    >>> from skcalib.uncertainty import clinical_calibration
    >>> y, proba = make_temperature_family(900, random_state=0)
    >>> site = np.repeat(["north", "south", "west"], 300)
    >>> result = clinical_calibration(y, proba, by=site, n_resamples=9, random_state=0)
    >>> list(ForestDisplay.from_result(result).tables)
    ['observed_expected_ratio', 'calibration_slope']
    """

    tables: dict[str, SubgroupIntervals]
    random_effects: dict[str, RandomEffects]
    n_events: np.ndarray | None = None

    @classmethod
    def from_result(
        cls, result: Any, *, measures: list[str] | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Create and draw the display of measures of subgroups.

        Parameters
        ----------
        result : SubgroupClinicalCalibration or SubgroupIntervals
            What :func:`~skcalib.uncertainty.clinical_calibration` or
            :func:`~skcalib.uncertainty.confidence_interval` returns if it gets `by`.

        measures : list of str, default=None
            Names of the clinical measures that are shown; by default O:E ratio and slope.

        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. Several panels take the place of the axes, or
            are drawn on as many axes as there are panels.

        **kwargs : dict
            Passed to matplotlib's `plot` for the estimates. Other names are refused.

        Returns
        -------
        display : ForestDisplay
            The display, drawn.
        """
        check_options(cls.from_result, kwargs)
        if isinstance(result, SubgroupIntervals) and measures is None:
            return cls({"estimate": result}, {}).plot(ax, **kwargs)
        check_is_of_subgroups(result)
        names = [RATIO, "calibration_slope"] if measures is None else measures
        check_measure_names(names, list(result.tables))
        tables = {name: result.tables[name] for name in names}
        effects = {k: v for k, v in result.random_effects.items() if k in tables}
        return cls(tables, effects, result.n_events).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. Several panels take the place of the axes, or
            are drawn on as many axes as there are panels.

        **kwargs : dict
            Passed to matplotlib's `plot` for the estimates. Other names are refused.

        Returns
        -------
        display : ForestDisplay
            This object, with its artists.
        """
        check_options(self.plot, kwargs)
        return self._draw_styled(ax, None, kwargs)

    def _draw(self, ax: Axes, name: str | None, style: dict[str, Any]) -> None:
        n_panels, n_rows = len(self.tables), len(next(iter(self.tables.values()))) + 3
        n_columns = columns_that_fit(ax, n_panels, 3)
        height = (_ROW * n_rows + _AROUND) * ceil(n_panels / n_columns)
        self.axes_ = panels(ax, n_panels, (1.5 + _WIDTH * n_columns, height), n_columns)
        self.ax_ = self.axes_[0]
        named_axes = zip(self.axes_, self.tables, strict=True)
        self.points_ = [self._draw_measure(axes, measure, style) for axes, measure in named_axes]
        label_outer(self.axes_, "", "")
        level = next(iter(self.tables.values())).confidence_level
        label = f"estimate and its {100 * level:.3g} % interval"
        note = f"behind the names: {'samples' if self.n_events is None else 'events / n'}"
        self.legend_ = legend_of_panels(self.axes_, self.ax_.collections[:1], [label], note)
        lay_out(self.ax_.figure)  # as labels of rows decide how wide the panels are
        for axes, measure in zip(self.axes_, self.tables, strict=True):
            letters = int(_TITLE_LETTERS_IN_INCH * inches_of(axes)[0])
            words = measure.replace("observed_expected", "O:E").replace("_", " ")
            title = fill(words, max(letters, _MIN_TITLE_LETTERS))
            axes.set_title(title, fontsize="medium")

    def _draw_measure(self, ax: Any, measure: str, style: dict[str, Any]) -> Any:
        """Draw the rows of one measure, which are the subgroups and, below, all together."""
        table, effect = self.tables[measure], self.random_effects.get(measure)
        estimate, low, high = (
            np.append(getattr(table, end), getattr(table.whole, end))
            for end in ("estimate", "low", "high")
        )
        rows = np.append(np.arange(len(table)), len(table) + 0.5)
        width, height = inches_of(ax)
        counts: Any = table.n_samples
        if self.n_events is not None:
            counts = map("{}/{}".format, self.n_events, table.n_samples)
        labels = [shorten(format_label(label, table.names), 44) for label in table.subgroups]
        titles = [fill(f"{label}, {n}", 32) for label, n in zip(labels, counts, strict=True)]
        titles.append("all samples")
        defaults = {"marker": "s", "markersize": 4, "linestyle": "", "fillstyle": "none"}
        (points,) = ax.plot(estimate, rows, **(defaults | style))
        color = points.get_color()
        with np.errstate(divide="ignore", invalid="ignore"):
            length = np.log(high / low) if measure == RATIO else high - low
            side = np.nan_to_num(_SIDES[1] * np.nanmin(length[:-1], initial=np.inf) / length)
        area = np.where(np.isnan(length), 0, np.clip(side, *_SIDES)) ** 2
        ax.scatter(estimate, rows, area, color=color, marker=points.get_marker(), zorder=3)
        ideal = _IDEAL.get(measure, 0.0)
        ax.axvline(ideal, color="0.4", linewidth=1, linestyle=":", zorder=1)
        ends = [estimate, low, high, np.array([ideal])]
        bars = list(zip(estimate, low, high, rows, strict=True))
        if effect is not None:
            mean, new = rows[-1] + np.array([1, 2])
            corners = [effect.low, effect.estimate, effect.high, effect.estimate]
            ax.fill(corners, mean + np.array([0, -0.3, 0, 0.3]), color=color)
            prediction = [effect.prediction_low, effect.prediction_high]
            ax.plot(prediction, [new, new], color="0.3", linewidth=3, solid_capstyle="butt")
            ends.append(np.array([effect.low, effect.high]))
            bars += [(effect.estimate, effect.low, effect.high, mean), (np.nan, *prediction, new)]
        if self.random_effects:  # the same rows in all panels
            titles += ["mean over subgroups", "a new subgroup"]
        is_narrow = width < MIN_WIDTH + 0.5 or height < _ROW * len(titles)
        if is_narrow or any("\n" in title for title in titles):
            ax.tick_params(labelsize="x-small")
        visible = np.concatenate(ends)
        visible = visible[np.isfinite(visible) & ((visible > 0) | (measure != RATIO))]
        visible = visible if len(visible) else np.zeros(1)  # nothing is known
        if measure == RATIO:
            near = np.append(estimate[estimate > 0], 1.0)
            visible = np.clip(visible, near.min() / _MAX_REACH, near.max() * _MAX_REACH)
            left, right = visible.min() / 1.1, visible.max() * 1.1
            ratio_axis(ax, left, right)
        else:
            pad = 0.05 * np.ptp(visible) or 0.1
            left, right = visible.min() - pad, visible.max() + pad
            ax.locator_params(axis="x", nbins=3)
        ax.hlines(rows, np.maximum(low, left), np.minimum(high, right), color=color, linewidth=1.2)
        arrow = {"color": color, "markersize": 4, "clip_on": False}
        beside = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": "small"}
        for value, start, stop, row in bars:
            if start < left or value < left:
                ax.plot(left, row, "<", **arrow)
            if stop > right:
                ax.plot(right, row, ">", **arrow)
            ax.text(1.03, row, format_estimate(value, start, stop, is_narrow), **beside)
        ax.set_xlim(left, right)
        ax.set_yticks(np.append(rows, rows[-1] + [1, 2])[: len(titles)], titles)
        ax.set_ylim(rows[-1] + len(titles) - len(rows) + 0.6, -0.6)
        return points


def format_estimate(value: float, low: float, high: float, is_short: bool) -> str:
    """The estimate, if there is one, and its interval, if there is one and room for it."""
    ends = "too few" if np.isnan(low) else f"{low:.2f} to {high:.2f}"
    if np.isnan(value):
        return "–" if np.isnan(low) else ends * (not is_short)
    return f"{value:.2f}" if is_short else f"{value:.2f} ({ends})"


def ratio_axis(ax: Axes, low: float, high: float) -> None:
    """Make the first axis logarithmic, with plain numbers from one end to the other."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    ax.set_xscale("log")
    plain, decades = MaxNLocator(3, steps=[1, 2, 5, 10]), LogLocator(subs=(1, 3))
    ax.xaxis.set_major_locator(plain if high < 8 * low else decades)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set_xlim(low, high)


def check_is_of_subgroups(result: object) -> None:
    """Only results of subgroups have a forest plot; those of any metric have one measure."""
    if not isinstance(result, SubgroupClinicalCalibration):
        raise ValueError(
            "result must be what clinical_calibration returns with `by`, or, without `measures`, "
            f"what confidence_interval returns with `by`; found {type(result).__name__}. Pass "
            "by=site to one of these functions, and its result here."
        )


def check_measure_names(names: Any, available: list[str]) -> None:
    """The measures that are shown are some of the clinical set."""
    if isinstance(names, str) or not len(names) or any(name not in available for name in names):
        raise ValueError(
            f"measures must be a list of names among {available}; found {names!r:.200}. Leave it "
            "out for O:E ratio and slope."
        )
