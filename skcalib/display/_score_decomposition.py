"""A proper score as a sum of parts: as bars, or as a point in a plane of models."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from textwrap import fill
from typing import Any, Literal

import numpy as np

from .._inputs.arrays import ArrayLike
from .._inputs.options import select_arguments
from .._inputs.probabilities import is_forecast
from .._inputs.scikit_learn import Count, Label, RandomState
from ..metrics._proper import ScoreDecomposition, check_scored, decompose
from . import _base
from ._base import Axes, PredictionsDisplay

# Attributes of a decomposition, with their colours, from top to bottom.
_COMPONENT_COLORS = {"miscalibration": "C1", "discrimination": "C0", "uncertainty": "0.8"}

# Methods of matplotlib that draw each kind.
_METHODS = {"bars": "barh", "points": "plot"}

_SCORE_TITLES = {"brier": "Brier score", "log_loss": "log loss", "crps": "CRPS"}

_CHANCE = "miscalibration of a calibrated model"

# Names of artists, by which the next model on the same axes finds them.
_POINT, _ISOLINE = "model", "uncertainty "

# Number of lines of equal score, roughly, on axes that are large and on small ones.
_LINES_IF_LARGE, _LINES_IF_SMALL = 8, 5

# Free room around the points, in units of their extents.
_POINTS_MARGIN = 0.2


@dataclass(eq=False, repr=False)
class ScoreDecompositionDisplay(PredictionsDisplay):
    """Parts of a proper score: miscalibration, discrimination and uncertainty.

    Made by :meth:`from_estimator` or :meth:`from_predictions`. The score is the miscalibration
    minus the discrimination plus the uncertainty. The line across the bar of the miscalibration is
    what a calibrated model would show on average. With ``kind="points"`` models are points in the
    plane of both [1]_, the best at the upper left.

    Parameters
    ----------
    decomposition : ScoreDecomposition
        The parts.

    score : {"brier", "log_loss", "crps"}, default="crps"
        Which score was decomposed.

    name : str, default=None
        Name of the model, for the axis or the legend.

    kind : {"bars", "points"}, default="bars"
        A bar for each part; or a point for the model, and lines of equal score.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        The bars; None for points.

    point_ : matplotlib Line2D
        The point; None for bars.

    isolines_ : list of matplotlib Line2D
        The lines of equal score, until the next model is drawn; None for bars.

    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    skcalib.metrics.score_decomposition : The numbers.

    References
    ----------
    .. [1] Dimitriadis, Gneiting, Jordan and Vogel (2024). Evaluating probabilistic classifiers: The
       triptych. International Journal of Forecasting. :doi:`10.1016/j.ijforecast.2023.09.007`

    Examples
    --------
    >>> from skcalib.datasets import make_forecasts
    >>> from skcalib.display import ScoreDecompositionDisplay
    >>> y, forecast = make_forecasts(60, dispersion=0.5, random_state=0)  # too narrow
    >>> display = ScoreDecompositionDisplay.from_predictions(y, forecast, random_state=0)
    >>> round(display.decomposition.miscalibration, 2)
    0.12
    """

    decomposition: ScoreDecomposition
    _: KW_ONLY
    score: str = "crps"
    name: str | None = None
    kind: str = "bars"

    @classmethod
    @_base.validate_options(n_resamples=[Count(0, 10**9)])
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: object,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Label | None = None,
        labels: ArrayLike | None = None,
        score: Literal["auto", "brier", "log_loss", "crps"] = "auto",
        kind: Literal["bars", "points"] = "bars",
        n_resamples: int = 10,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Any:
        """Create and draw the parts of labels and probabilities, or of outcomes and forecasts.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, or outcomes.

        y_pred : array-like of shape (n_samples,) or (n_samples, n_classes), forecast, or dict
            Probabilities, as for the metrics, or a forecast of a number, as
            :func:`~skcalib.forecasts.as_forecast` takes it. Several models, by their names, are
            drawn on the same axes.

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take
            all arrays at ``np.repeat(np.arange(n), counts)``.

        pos_label : int, float, bool or str, default=None
            With two classes, the one whose probability is scored. By default the last of `labels`.

        labels : array-like of shape (n_classes,), default=None
            The classes, in the order of the columns of `y_pred`.

        score : {"auto", "brier", "log_loss", "crps"}, default="auto"
            The score. "auto" is "crps" for forecasts, and "brier" for classes.

        kind : {"bars", "points"}, default="bars"
            A bar for each part; or a point for the model, and lines of equal score.

        n_resamples : int, default=10
            Number of times that outcomes are drawn from the predictions, for the miscalibration of
            a calibrated model; 0 leaves it out.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws.

        name : str, default=None
            Name of the model, for the axis or the legend.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        **kwargs : dict
            Passed to matplotlib's `barh`, or to `plot` for the point. Other names are refused.

        Returns
        -------
        display : ScoreDecompositionDisplay, or dict of them
            The display, drawn; of several models, by their names.
        """
        _base.check_options(cls.from_predictions, kwargs, _METHODS[kind])
        if isinstance(y_pred, Mapping):
            _base.check_models(y_pred, "y_pred", name=name)
            names = ("sample_weight", "pos_label", "labels", "score", "kind", "n_resamples")
            options = select_arguments(locals(), (*names, "random_state")) | kwargs
            displays = {}
            for model, predicted in y_pred.items():
                options |= {"name": str(model), "ax": ax}
                displays[model] = cls.from_predictions(y_true, predicted, **options)
                ax = displays[model].ax_
            return displays
        if score == "auto":
            score = "crps" if is_forecast(y_pred) else "brier"
        data = check_scored(y_true, y_pred, score, sample_weight, pos_label, labels)
        decomposition = decompose(data, score, n_resamples, random_state)
        return cls(decomposition, score=score, name=name, kind=kind).plot(ax, **kwargs)

    @property
    def _method(self) -> str:  # type: ignore[override]
        return _METHODS[self.kind]

    def _draw(self, ax: Axes, name: str | None, style: dict[str, Any]) -> Any:
        title = _SCORE_TITLES[self.score]
        self.bars_ = self.point_ = self.isolines_ = None
        if self.kind == "bars":
            self.ax_ = ax = _base.axes_of(ax, (5.5, 3))
            return self._draw_bars(ax, name, title, style)
        self.ax_ = ax = _base.axes_of(ax, (5, 5))
        label = _base.legend_label(name, title, float(self.decomposition.score), "model")
        self._draw_point(ax, title, label.replace("\n", ", "), style)

    def _draw_bars(self, ax: Any, name: str | None, title: str, style: dict[str, Any]) -> None:
        rows = [text.get_text() for text in ax.get_yticklabels()] if ax.containers else []
        decomposition = self.decomposition
        value = np.array([getattr(decomposition, component) for component in _COMPONENT_COLORS])
        positions = len(rows) + np.array([-0.25, 0.0, 0.25])
        colors, labels = list(_COMPONENT_COLORS.values()), list(_COMPONENT_COLORS)
        if rows:  # the legend names them already
            labels = [f"_{component}" for component in labels]
        defaults = {"color": colors, "label": labels, "height": 0.23}
        self.bars_ = ax.barh(positions, value, **(defaults | style))
        texts = [f"{v:.3g}" if v > 1e-3 * value.max() else "0" for v in value]
        ax.bar_label(self.bars_, texts, padding=3, fontsize="small")
        if decomposition.expected_miscalibration is not None:
            label = None if _CHANCE in ax.get_legend_handles_labels()[1] else _CHANCE
            ends = positions[0] - 0.14, positions[0] + 0.14
            style = {"color": "black", "linewidth": 1.5, "label": label}
            ax.vlines(decomposition.expected_miscalibration, *ends, **style)
        model_name = fill(_base.shorten(name or "", 48), 24)
        rows.append("\n".join([*filter(None, [model_name]), f"{title} {decomposition.score:.3g}"]))
        ax.set_yticks(range(len(rows)), rows)
        ax.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, 1.15 * ax.dataLim.x1))
        ax.set_xlabel(f"{title} = miscalibration − discrimination + uncertainty", fontsize="small")
        ax.legend(
            loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False, fontsize="small"
        )

    def _draw_point(self, ax: Any, title: str, label: str | None, style: dict[str, Any]) -> None:
        decomposition = self.decomposition
        check_same_uncertainty(ax, float(decomposition.uncertainty))
        legend_labels = ax.get_legend_handles_labels()[1]
        n_before = sum(line.get_gid() == _POINT for line in ax.lines)
        marker = _base.MARKERS[n_before % len(_base.MARKERS)]
        defaults = {"marker": marker, "linestyle": "", "gid": _POINT, "zorder": 3}
        position = (decomposition.miscalibration, decomposition.discrimination)
        (point,) = ax.plot(*position, **(defaults | {"label": label} | style))
        self.point_ = point
        if decomposition.expected_miscalibration is not None:
            ends = [decomposition.expected_miscalibration, position[0]]
            color = point.get_color()
            ax.plot(ends, [position[1]] * 2, color=color, linewidth=0.8, zorder=2)
            mark = {"marker": "|", "markersize": 9, "linestyle": "", "color": color}
            ax.plot(ends[0], position[1], **mark)
            if _CHANCE not in legend_labels:
                ax.plot([], [], label=_CHANCE, **(mark | {"color": "0.5"}))
        _set_score_limits(ax)
        equal = f"equal {title}"
        self.isolines_ = _draw_isolines(ax, float(decomposition.uncertainty), equal)
        ax.set(xlabel=_base.wrap_label("miscalibration", ax), ylabel="discrimination")
        entries = zip(*ax.get_legend_handles_labels(), strict=True)
        models_first = sorted(entries, key=lambda entry: entry[1] in (_CHANCE, equal))
        handles, labels = map(list, zip(*models_first, strict=True))
        _base.legend_below(ax, handles, labels)


def _isolines_on(ax: Axes) -> list[Any]:
    return [artist for artist in ax.get_children() if str(artist.get_gid()).startswith(_ISOLINE)]


def _set_score_limits(ax: Any) -> None:
    """Limits that hold all models; no miscalibration is at the left end."""
    x, y = np.concatenate([line.get_xydata() for line in ax.lines if len(line.get_xdata())]).T
    right = (1 + _POINTS_MARGIN) * max(x.max(), 1e-9)
    room = max(_POINTS_MARGIN * np.ptp(y), 0.5 * _POINTS_MARGIN * right)
    ax.set(xlim=(0, right), ylim=(y.min() - room, y.max() + room))
    ax.locator_params(nbins=3 if _base.is_small(ax) else 5)


def _draw_isolines(ax: Any, uncertainty: Any, label: str) -> Any:
    """Lines on which miscalibration minus discrimination is the same, with the scores."""
    from matplotlib.ticker import MaxNLocator

    for artist in _isolines_on(ax):
        artist.remove()
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    least, most = left - top + uncertainty, right - bottom + uncertainty
    inner = 0.04 * (most - least)  # lines at the very corners have no room for their scores
    n_lines = _LINES_IF_SMALL if _base.is_small(ax) else _LINES_IF_LARGE
    levels = MaxNLocator(n_lines, steps=[1, 2, 5, 10]).tick_values(least, most)
    levels = levels[(levels > least + inner) & (levels < most - inner)]
    digits = max(int(np.ceil(-np.log10(np.diff(levels).min()) - 1e-9)), 0) if len(levels) > 1 else 3
    gid = f"{_ISOLINE}{uncertainty!r}"
    lines: list = []
    for level in levels:
        rise = uncertainty - level  # from miscalibration to discrimination
        x = np.array([max(left, bottom - rise), min(right, top - rise)])
        style = {"color": "0.5", "alpha": 0.5, "linewidth": 0.8, "zorder": 1, "gid": gid}
        lines += ax.plot(x, x + rise, label=None if lines else label, **style)
        style = {"textcoords": "offset points", "fontsize": "small", "color": "0.5", "gid": gid}
        style |= {"xytext": (0, 3), "ha": "center", "va": "bottom"}
        if right + rise < top:
            style |= {"xytext": (4, 0), "ha": "left", "va": "center"}
        ax.annotate(f"{level:.{digits}f}", (x[1], x[1] + rise), annotation_clip=False, **style)
    return lines


def check_same_uncertainty(ax: Axes, uncertainty: float) -> None:
    """The lines of equal score are those of the same outcomes."""
    for artist in _isolines_on(ax):
        present = float(artist.get_gid().removeprefix(_ISOLINE))
        if not np.isclose(present, uncertainty, rtol=1e-6):
            raise ValueError(
                "ax must show models of the same outcomes, as lines of equal score depend on their "
                f"uncertainty; found the uncertainties {present:.4g} and {uncertainty:.4g}. Draw "
                "models of other outcomes on axes of their own."
            )
