"""Where, and in which direction, the model errs."""

from inspect import signature
from textwrap import fill
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._inputs.checks import check_predictions
from .._inputs.constraints import METRIC_CONSTRAINTS
from .._numerics.smooth import lipschitz_maximiser
from .._sklearn import check_matplotlib_support, validate_params
from .._types import Label
from ._axes import (
    LEGEND,
    PartsBelow,
    axes_of,
    check_line_style,
    is_small,
    legend_label,
    parts_below,
    settle,
    wrapped,
)
from ._problems import problems_of
from ._reliability_panel import LINES

# Name of the strip, by which the next model on the same axes finds it.
_STRIP = "residuals"

# Height of the strip and distance from the curve, in units of the height of the axes.
_HEIGHT, _DISTANCE = 0.35, 0.07

_N_BINS = 40


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
    predicted : ndarray of shape (n_distinct,)
        The sorted distinct predictions.

    witness : ndarray of shape (n_distinct,)
        The function at these predictions, between −1 and 1, with Lipschitz constant 1.

    residual : ndarray of shape (n_distinct,)
        The weights of the samples times outcome minus prediction, summed at each prediction.

    x_label : str, default="predicted probability"
        What is predicted, for the axis.

    name : str, default=None
        Name of the model, for the legend.

    Attributes
    ----------
    error : float
        The smooth calibration error, the sum of `witness` times `residual`.

    line_ : matplotlib Line2D
        The curve.

    bars_ : matplotlib StepPatch
        The sums of the residuals in 40 bins of equal width.

    strip_ : matplotlib Axes
        The axes of the bars.

    ax_ : matplotlib Axes
        The axes of the curve.

    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    skcalib.metrics.smooth_calibration_witness : The numbers, and how they are found.
    ReliabilityDisplay : How often the event happens.

    Notes
    -----
    For more than two classes, what is predicted is whether the predicted class is right. For a
    class k against the rest, pass the labels ``y == k`` with the probability of k.

    Examples
    --------
    >>> from skcalib.display import WitnessDisplay
    >>> display = WitnessDisplay.from_predictions([1, 1, 0], [0.2, 0.3, 0.9])
    >>> display.witness
    array([1. , 0.9, 0.3])
    >>> round(display.error, 3)
    0.387
    """

    def __init__(
        self,
        predicted: np.ndarray,
        witness: np.ndarray,
        residual: np.ndarray,
        *,
        x_label: str = "predicted probability",
        name: str | None = None,
    ) -> None:
        self.predicted = predicted
        self.witness = witness
        self.residual = residual
        self.x_label = x_label
        self.name = name

    @property
    def error(self) -> float:
        """The smooth calibration error."""
        return float(self.witness @ self.residual)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Label | None = None,
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

        name : str, default=None
            Name of the model, for the legend, by default that of its class.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curve. Other names are refused.

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
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            **kwargs,
        )

    @classmethod
    @validate_params(
        METRIC_CONSTRAINTS | {"name": [str, None], "ax": "no_validation"},
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

        name : str, default=None
            Name of the model, for the legend.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curve. Other names are refused.

        Returns
        -------
        display : WitnessDisplay
            The display, drawn.
        """
        check_matplotlib_support("WitnessDisplay")
        check_line_style(kwargs, "WitnessDisplay", signature(cls.from_predictions).parameters)
        predictions = check_predictions(
            y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
        )
        (problem,) = problems_of(predictions, "confidence", None)
        points, mass = problem.predictions.pooled_mass()
        witness = lipschitz_maximiser(points, mass)
        return cls(points, witness, mass, x_label=problem.x_label, name=name).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the curve, and the strip of the residuals below.

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
        display : WitnessDisplay
            This object, with its artists.
        """
        check_matplotlib_support("WitnessDisplay")
        check_line_style(kwargs, "WitnessDisplay", signature(self.plot).parameters)
        ax = axes_of(ax, (5, 4.5))
        label = legend_label(name or self.name, "smooth calibration error", self.error, "witness")
        own: dict[str, Any] = {"label": label, "linestyle": LINES[len(ax.lines) % len(LINES)]}
        if len(self.predicted) == 1:
            own["marker"] = "o"
        (self.line_,) = ax.plot(self.predicted, self.witness, **(own | kwargs))
        self.strip_ = _strip_below(ax)
        sums, edges = np.histogram(self.predicted, _N_BINS, (0, 1), weights=self.residual)
        style = {"color": self.line_.get_color(), "linestyle": self.line_.get_linestyle()}
        self.strip_.stairs(sums, edges, fill=True, alpha=0.25, color=style["color"])
        self.bars_ = self.strip_.stairs(sums, edges, linewidth=0.8, **style)
        _scale(self.strip_)
        _set_limits(ax)
        ax.set(xlim=(-0.02, 1.02), xlabel=wrapped(fill(self.x_label, 40), ax))
        ax.set_ylabel("witness" if is_small(ax) else "witness\n(higher: predicted too low)")
        handles, labels = ax.get_legend_handles_labels()
        labels = [wrapped(text, ax) for text in labels]
        parts_below(ax).place_legend(ax, handles, labels, **LEGEND)
        self.ax_, self.figure_ = ax, ax.figure
        settle(self.figure_)
        return self


def _strip_below(ax):
    """The axes of the residuals, new or of the last model."""
    strip = next((one for one in ax.child_axes if one.get_label() == _STRIP), None)
    if strip is None:
        bottom = -_DISTANCE - _HEIGHT
        strip = ax.inset_axes([0, bottom, 1, _HEIGHT], sharex=ax, label=_STRIP)
        strip.axhline(0, color="0.4", linewidth=0.6)
        ax.tick_params(labelbottom=False)
        PartsBelow(ax, strip, bottom)
        for text, y, side in (("too low", 0.95, "top"), ("too high", 0.05, "bottom")):
            strip.text(
                0.02, y, text, transform=strip.transAxes, va=side, ha="left", fontsize="x-small"
            )
    return strip


def _set_limits(ax):
    """Limits between which witnesses of that sign may be, so that a flat one looks flat."""
    values = np.concatenate([line.get_ydata() for line in ax.lines])
    ax.set(ylim=(-1.05 if values.min() < 0 else -0.05, 1.05 if values.max() > 0 else 0.05))


def _scale(strip):
    """The same limit on both sides, that holds the bars of all models and leaves room for names."""
    largest = max(np.abs(one.get_data().values).max() for one in strip.patches)
    strip.set_ylim(*(1.9 * max(largest, 1e-12) * np.array([-1, 1])))
    strip.set_yticks([0], ["0"], fontsize="x-small")
    strip.tick_params(axis="y", length=2, pad=2)
