"""Where, and in which direction, the model errs."""

from inspect import signature
from textwrap import fill
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._inputs.by import check_by
from .._inputs.checks import check_predictions
from .._inputs.constraints import METRIC_CONSTRAINTS, REDUCTION_CONSTRAINTS, IntegerInterval
from .._inputs.scikit_learn import check_matplotlib_support, validate_params
from .._inputs.types import Label
from ._axes import (
    LEGEND,
    axes_of,
    check_style,
    is_small,
    legend_label,
    parts_below,
    settle,
    wrapped,
)
from ._grid import Grid, note_of_left_out, panel_title, panels_to_show
from ._problems import check_subgroups_fit, problems_of
from ._witness_panel import WitnessCurve, draw_witness, set_limits, witness_curve

_Y_LABEL = "witness\n(higher: predicted too low)"


class WitnessDisplay:
    r"""Witness of the smooth calibration error: where, and in which direction, the model errs.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. The curve is the function
    that :func:`skcalib.metrics.smooth_calibration_witness` returns. Where it is high, outcomes tend
    to be more frequent than predicted, and where it is low, less frequent. Its level means nothing
    but the sign of the mean residual: look at how it rises and falls. The strip below shows what it
    sees: the residuals, upwards where predictions are too low. The error is the sum of the
    residuals times the curve.

    Parameters
    ----------
    curves : list of WitnessCurve
        The numbers of each panel.

    name : str, default=None
        Name of the model, for the legend.

    left_out : dict, default=None
        The titles and errors of the panels for which there is no room, the largest first.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the curve, of the first panel if there are several.

    figure_ : matplotlib Figure
        The figure.

    line_ : matplotlib Line2D
        The curve of the first panel.

    axes_ : ndarray of matplotlib Axes of shape (n_panels,)
        The axes of all panels.

    lines_ : list of matplotlib Line2D
        The curves.

    strips_ : list of matplotlib Axes
        The axes of the bars, below the curves.

    bars_ : list of matplotlib StepPatch
        The sums of the residuals in 40 bins of equal width.

    legend_ : matplotlib Legend
        The legend.

    See Also
    --------
    skcalib.metrics.smooth_calibration_witness : The numbers, and how they are found.
    ReliabilityDisplay : How often the event happens.

    Examples
    --------
    >>> from skcalib.display import WitnessDisplay
    >>> display = WitnessDisplay.from_predictions([1, 1, 0], [0.2, 0.3, 0.9])
    >>> display.curves[0].witness
    array([1. , 0.9, 0.3])
    >>> round(display.curves[0].error, 3)
    0.387
    """

    def __init__(
        self,
        curves: list[WitnessCurve],
        *,
        name: str | None = None,
        left_out: dict[str, float] | None = None,
    ) -> None:
        self.curves = curves
        self.name = name
        self.left_out = left_out

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Label | None = None,
        multi_class: str = "confidence",
        by: Any = None,
        max_panels: int = 9,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the witness of a fitted classifier.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier with `predict_proba`.

        X : array-like of shape (n_samples, n_features)
            Features of data that the classifier was not fitted on.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        pos_label : int, float, bool or str, default=None
            With two classes, the one whose probability is shown. By default the last.

        multi_class : {"confidence", "top-label", "classwise"}, default="confidence"
            For more than two classes, what is shown: the probability of the predicted class and
            whether it was right; the same for each predicted class alone; or each class against
            the rest. The last two are a grid of panels, the largest errors first.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
            Subgroups that are shown apart, in a grid of panels: a column, or several, whose
            crossings are shown.

        max_panels : int, default=9
            The largest number of panels; others are named below.

        name : str, default=None
            Name of the model, for the legend, by default that of its class.

        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. Displays of several models can share it. A grid
            takes the place of the axes, or is drawn on as many axes as it has panels.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curves. Other names are refused.

        Returns
        -------
        display : WitnessDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        return cls.from_predictions(
            y,
            estimator.predict_proba(X),
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=estimator.classes_,
            multi_class=multi_class,
            by=by,
            max_panels=max_panels,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            **kwargs,
        )

    @classmethod
    @validate_params(
        METRIC_CONSTRAINTS
        | {
            "multi_class": REDUCTION_CONSTRAINTS["multi_class"],
            "by": "no_validation",
            "max_panels": [IntegerInterval(1)],
            "name": [str, None],
            "ax": "no_validation",
        },
        prefer_skip_nested_validation=True,
    )
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Label | None = None,
        labels: ArrayLike | None = None,
        multi_class: str = "confidence",
        by: Any = None,
        max_panels: int = 9,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the witness of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels: strings, integers or booleans.

        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities in [0, 1]. One-dimensional: of the positive class. Two-dimensional: one
            column for each class in the order of `labels`; rows sum to 1.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        pos_label : int, float, bool or str, default=None
            With two classes, the one whose probability is shown, and which a one-dimensional
            `y_proba` holds. By default the last of `labels`.

        labels : array-like of shape (n_classes,), default=None
            The classes, in the order of the columns of `y_proba`. By default the sorted labels in
            `y_true`.

        multi_class : {"confidence", "top-label", "classwise"}, default="confidence"
            For more than two classes, what is shown: the probability of the predicted class and
            whether it was right; the same for each predicted class alone; or each class against
            the rest. The last two are a grid of panels, the largest errors first.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
            Subgroups that are shown apart, in a grid of panels: a column, or several, whose
            crossings are shown.

        max_panels : int, default=9
            The largest number of panels; others are named below.

        name : str, default=None
            Name of the model, for the legend.

        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. Displays of several models can share it. A grid
            takes the place of the axes, or is drawn on as many axes as it has panels.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curves. Other names are refused.

        Returns
        -------
        display : WitnessDisplay
            The display, drawn.
        """
        check_matplotlib_support("WitnessDisplay")
        check_style(kwargs, "WitnessDisplay", signature(cls.from_predictions).parameters)
        predictions = check_predictions(
            y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
        )
        subgroups = None if by is None else check_by(by, np.shape(y_true)[0], sample_weight)
        check_subgroups_fit(subgroups, predictions, multi_class)
        curves = [
            witness_curve(problem.predictions, title=problem.title, x_label=problem.x_label)
            for problem in problems_of(predictions, multi_class, subgroups)
        ]
        errors = [curve.error for curve in curves]
        shown, rest = panels_to_show(errors, max_panels, keep_order=by is not None)
        left_out = {str(curves[k].title): errors[k] for k in rest}
        return cls([curves[k] for k in shown], name=name, left_out=left_out).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the curves, and the strips of the residuals below.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. Displays of several models can share it. A grid
            takes the place of the axes, or is drawn on as many axes as it has panels.

        name : str, default=None
            Name of the model, for the legend; by default that of the display.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curves. Other names are refused.

        Returns
        -------
        display : WitnessDisplay
            This object, with its artists.
        """
        check_matplotlib_support("WitnessDisplay")
        check_style(kwargs, "WitnessDisplay", signature(self.plot).parameters)
        name = self.name if name is None else name
        if len(self.curves) == 1 and self.curves[0].title is None:
            self._plot_one(axes_of(ax, (5, 4.5)), name, kwargs)
        else:
            self._plot_grid(ax, name, kwargs)
        self.ax_, self.line_ = self.axes_[0], self.lines_[0]
        self.figure_ = self.ax_.figure
        settle(self.figure_)
        return self

    def _plot_one(self, ax, name, style):
        (curve,) = self.curves
        label = legend_label(name, "smooth calibration error", curve.error, "witness")
        self._draw([ax], label, style)
        ax.set(xlabel=wrapped(fill(curve.x_label, 40), ax))
        ax.set_ylabel("witness" if is_small(ax) else _Y_LABEL)
        handles, labels = ax.get_legend_handles_labels()
        labels = [wrapped(text, ax) for text in labels]
        parts_below(ax).place_legend(ax, handles, labels, **LEGEND)
        self.legend_ = ax.get_legend()

    def _plot_grid(self, ax, name, style):
        grid = Grid.on(ax, len(self.curves))
        titles = [
            panel_title(one, curve, is_first=not one.lines)
            for one, curve in zip(grid.axes, self.curves, strict=True)
        ]
        self._draw(grid.axes, name or "witness", style)
        for one, title in zip(grid.axes, titles, strict=True):
            one.set_title(title, fontsize="medium")
        grid.label(self.curves[0].x_label, _Y_LABEL)
        handles, labels = grid.axes[0].get_legend_handles_labels()
        self.legend_ = grid.draw_legend(handles, labels, note_of_left_out(self.left_out), **LEGEND)

    def _draw(self, axes, label, style):
        drawn = [draw_witness(*pair, label, style) for pair in zip(axes, self.curves, strict=True)]
        self.axes_ = np.array(axes)
        self.lines_ = [artists["line"] for artists in drawn]
        self.strips_ = [artists["strip"] for artists in drawn]
        self.bars_ = [artists["bars"] for artists in drawn]
        set_limits(self.axes_, self.strips_)
