"""The reliability diagram."""

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._inputs.checks import check_predictions
from .._inputs.constraints import METRIC_CONSTRAINTS, IntegerInterval
from .._numerics.isotonic import isotonic_fit
from .._sklearn import Interval, check_matplotlib_support, validate_params
from .._types import Label, RandomState
from ..metrics import smooth_calibration_error
from ._axes import axes_of, legend_label

_GRID = np.linspace(0.0, 1.0, 101)

_DIAGONAL = "calibrated (shaded: by chance)"


class ReliabilityDisplay:
    """Reliability diagram: how often the event happens, against its predicted probability.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. The curve is the isotonic
    regression of the outcomes on the predictions (CORP, [1]_); a calibrated model's curve stays in
    the consistency band around the diagonal. More than two classes are shown through the
    probability of the predicted class and whether it was right.

    Parameters
    ----------
    predicted : ndarray of shape (n_knots,)
        Predicted probabilities at the knots of the curve, sorted.

    observed : ndarray of shape (n_knots,)
        Frequencies of the event at the knots.

    band : tuple of three ndarrays, default=None
        Grid of probabilities, lower and upper end of the consistency band.

    shares : ndarray of shape (n_bins,), default=None
        Shares of the predictions in bins of equal width.

    error : float, default=None
        The smooth calibration error, for the legend.

    event : str, default=None
        What is predicted, for the label of the axis.

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

    References
    ----------
    .. [1] T. Dimitriadis, T. Gneiting and A. I. Jordan (2021). Stable reliability diagrams for
       probabilistic classifiers. PNAS 118(8). :doi:`10.1073/pnas.2016191118`

    Examples
    --------
    >>> from skcalib.display import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_predictions(
    ...     [0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], random_state=0
    ... )
    >>> display.observed
    array([0. , 0.5, 0.5, 1. ])
    """

    def __init__(
        self,
        predicted: np.ndarray,
        observed: np.ndarray,
        *,
        band: tuple | None = None,
        shares: np.ndarray | None = None,
        error: float | None = None,
        event: str | None = None,
        name: str | None = None,
    ) -> None:
        self.predicted = predicted
        self.observed = observed
        self.band = band
        self.shares = shares
        self.error = error
        self.event = event
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Label | None = None,
        confidence_level: float | None = 0.9,
        n_resamples: int = 200,
        n_bins: int = 20,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the diagram of a fitted classifier.

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

        confidence_level : float or None, default=0.9
            At each probability the curve of a calibrated model is in the band with this
            probability. None draws no band.

        n_resamples : int, default=200
            Number of label vectors drawn from the predictions for the band.

        n_bins : int, default=20
            Number of bars that show how the predictions are distributed.

        random_state : int, RandomState instance or None, default=None
            Seed of the band.

        name : str, default=None
            Name of the model, for the legend, by default that of its class.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curve.

        Returns
        -------
        display : ReliabilityDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        return cls.from_predictions(
            y,
            estimator.predict_proba(X),
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=estimator.classes_,
            confidence_level=confidence_level,
            n_resamples=n_resamples,
            n_bins=n_bins,
            random_state=random_state,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            **kwargs,
        )

    @classmethod
    @validate_params(
        METRIC_CONSTRAINTS
        | {
            "confidence_level": [Interval(Real, 0, 1, closed="neither"), None],
            "n_resamples": [IntegerInterval(1)],
            "n_bins": [IntegerInterval(1)],
            "random_state": ["random_state"],
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
        confidence_level: float | None = 0.9,
        n_resamples: int = 200,
        n_bins: int = 20,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the diagram of labels and probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.

        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities, as for the metrics.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        pos_label : int, float, bool or str, default=None
            With two classes, the one whose probability is shown. By default the last of `labels`.

        labels : array-like of shape (n_classes,), default=None
            The classes, in the order of the columns of `y_proba`.

        confidence_level : float or None, default=0.9
            At each probability the curve of a calibrated model is in the band with this
            probability. None draws no band.

        n_resamples : int, default=200
            Number of label vectors drawn from the predictions for the band.

        n_bins : int, default=20
            Number of bars that show how the predictions are distributed.

        random_state : int, RandomState instance or None, default=None
            Seed of the band.

        name : str, default=None
            Name of the model, for the legend.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curve.

        Returns
        -------
        display : ReliabilityDisplay
            The display, drawn.
        """
        check_matplotlib_support("ReliabilityDisplay")
        predictions = check_predictions(
            y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
        )
        if predictions.is_binary:
            event = f"{predictions.classes[1]}"
        else:
            predictions, event = predictions.confidence(), "the predicted class"
        proba, label, weight = predictions.proba, predictions.label, predictions.weight
        predicted, observed = isotonic_fit(proba, label, weight)
        band = None
        if confidence_level is not None:
            band = _consistency_band(
                predictions, confidence_level, n_resamples, check_random_state(random_state)
            )
        display = cls(
            predicted,
            observed,
            band=band,
            shares=np.histogram(proba, bins=n_bins, range=(0, 1), weights=weight)[0],
            error=float(
                smooth_calibration_error(label, proba, sample_weight=weight, labels=[0, 1])
            ),
            event=event,
            name=name,
        )
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
            Passed to matplotlib's `plot` for the curve.

        Returns
        -------
        display : ReliabilityDisplay
            This object, with `ax_`, `figure_` and `line_`.
        """
        check_matplotlib_support("ReliabilityDisplay")
        ax = axes_of(ax, (4.5, 4.5))
        if _DIAGONAL not in ax.get_legend_handles_labels()[1]:
            ax.plot([0, 1], [0, 1], color="0.5", linewidth=1, linestyle=":", label=_DIAGONAL)
        label = legend_label(
            name or self.name, "smooth calibration error", self.error, "observed frequency"
        )
        style = {"label": label} | kwargs
        (self.line_,) = ax.plot(self.predicted, self.observed, **style)
        color = self.line_.get_color()
        if self.band is not None:
            ax.fill_between(*self.band, color=color, alpha=0.15, linewidth=0)
        if self.shares is not None:
            edges = np.linspace(0, 1, len(self.shares) + 1)
            height = 0.2 * self.shares / self.shares.max()
            ax.bar(edges[:-1], height, np.diff(edges), align="edge", color=color, alpha=0.3)
        ax.set(
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
            xlabel="predicted probability" + (f" of {self.event}" if self.event else ""),
            ylabel="observed frequency",
        )
        ax.legend(loc="best", frameon=False, fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _consistency_band(predictions, confidence_level, n_resamples, random_state):
    """Pointwise band of the isotonic curves of labels drawn from the predictions."""
    proba, weight = predictions.proba, predictions.weight
    generator = np.random.default_rng(random_state.randint(2**31 - 1))
    within = _GRID[(proba.min() <= _GRID) & (proba.max() >= _GRID)]
    grid = np.concatenate([[proba.min()], within, [proba.max()]])
    curves = [
        np.interp(grid, *isotonic_fit(proba, predictions.redraw(generator, 1)[0], weight))
        for _ in range(n_resamples)
    ]
    tail = (1 - confidence_level) / 2
    lower, upper = np.quantile(curves, [tail, 1 - tail], axis=0)
    return grid, lower, upper
