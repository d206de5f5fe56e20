"""What a proper score is made of."""

from inspect import signature
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._inputs.constraints import METRIC_CONSTRAINTS, IntegerInterval
from .._inputs.probabilities import is_forecast
from .._inputs.scikit_learn import StrOptions, check_matplotlib_support, validate_params
from .._inputs.types import Label, RandomState
from ..forecasts import forecast_of
from ..metrics import ScoreDecomposition, score_decomposition
from ._axes import axes_of, check_style, legend_label, settle
from ._score_plane import CHANCE, draw_point

# Attributes of a decomposition, with their colours, from top to bottom.
_PARTS = {"miscalibration": "C1", "discrimination": "C0", "uncertainty": "0.8"}

# Methods of matplotlib that draw each kind.
_METHODS = {"bars": "barh", "points": "plot"}

_TITLES = {"brier": "Brier score", "log_loss": "log loss", "crps": "CRPS"}


class ScoreDecompositionDisplay:
    """What a proper score is made of: miscalibration, discrimination and uncertainty.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. The score is the
    miscalibration minus the discrimination plus the uncertainty. The miscalibration is what
    recalibration could remove, and should be compared with the line across its bar: that is what
    a calibrated model would show on such a sample, on average. The discrimination is what
    predictions know beyond the mean of the outcomes. The uncertainty concerns the outcomes alone.

    With ``kind="points"`` models are points in the plane of miscalibration and discrimination [1]_.
    The best are at the upper left. All points on a grey line have the same score, which is written
    at its end.

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
    .. [1] T. Dimitriadis, T. Gneiting, A. I. Jordan and P. Vogel (2024). Evaluating probabilistic
       classifiers: The triptych. International Journal of Forecasting 40(3).
       :doi:`10.1016/j.ijforecast.2023.09.007`

    Examples
    --------
    >>> from skcalib.datasets import make_gaussian_forecasts
    >>> from skcalib.display import ScoreDecompositionDisplay
    >>> y, forecast = make_gaussian_forecasts(200, dispersion=0.5, random_state=0)  # too narrow
    >>> display = ScoreDecompositionDisplay.from_predictions(y, forecast, random_state=0)
    >>> parts = display.decomposition
    >>> round(parts.miscalibration, 2), round(parts.expected_miscalibration, 2)
    (0.08, 0.04)
    """

    def __init__(
        self,
        decomposition: ScoreDecomposition,
        *,
        score: str = "crps",
        name: str | None = None,
        kind: str = "bars",
    ) -> None:
        self.decomposition = decomposition
        self.score = score
        self.name = name
        self.kind = kind

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Label | None = None,
        score: str = "auto",
        kind: str = "bars",
        n_resamples: int = 10,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the parts of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier with `predict_proba`, or a fitted regressor with a forecast: with
            `predict_forecast`, with ``predict(X, return_std=True)``, or of skpro or NGBoost.

        X : array-like of shape (n_samples, n_features)
            Features of data that the estimator was not fitted on.

        y : array-like of shape (n_samples,)
            Labels or outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        pos_label : int, float, bool or str, default=None
            With two classes, the one whose probability is scored. By default the last.

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
            Name of the model, for the axis or the legend, by default that of its class.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        **kwargs : dict
            Passed to matplotlib's `barh`, or to `plot` for the point. Other names are refused.

        Returns
        -------
        display : ScoreDecompositionDisplay
            The display, drawn.
        """
        classes = getattr(estimator, "classes_", None)
        if classes is None:
            predicted: Any = forecast_of(estimator, X)
        else:
            check_is_fitted(estimator)
            predicted = estimator.predict_proba(X)
        return cls.from_predictions(
            y,
            predicted,
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=classes,
            score=score,
            kind=kind,
            n_resamples=n_resamples,
            random_state=random_state,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            **kwargs,
        )

    @classmethod
    @validate_params(
        METRIC_CONSTRAINTS
        | {
            "score": [StrOptions({"auto", *_TITLES})],
            "kind": [StrOptions({"bars", "points"})],
            "n_resamples": [IntegerInterval(0)],
            "random_state": ["random_state"],
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
        sample_weight: ArrayLike | None = None,
        pos_label: Label | None = None,
        labels: ArrayLike | None = None,
        score: str = "auto",
        kind: str = "bars",
        n_resamples: int = 10,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the parts of labels and probabilities, or of outcomes and forecasts.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, or outcomes.

        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Probabilities, as for the metrics, or a forecast of a number, as
            :func:`~skcalib.forecasts.as_forecast` takes it.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        pos_label : int, float, bool or str, default=None
            With two classes, the one whose probability is scored. By default the last of `labels`.

        labels : array-like of shape (n_classes,), default=None
            The classes, in the order of the columns of `y_proba`.

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
        display : ScoreDecompositionDisplay
            The display, drawn.
        """
        check_matplotlib_support("ScoreDecompositionDisplay")
        options = signature(cls.from_predictions).parameters
        check_style(kwargs, "ScoreDecompositionDisplay", options, _METHODS[kind])
        if score == "auto":
            score = "crps" if is_forecast(y_proba) else "brier"
        decomposition = score_decomposition(
            y_true,
            y_proba,
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=labels,
            score=score,
            n_resamples=n_resamples,
            random_state=random_state,
        )
        return cls(decomposition, score=score, name=name, kind=kind).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the bars or the point.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        name : str, default=None
            Name of the model, for the axis or the legend; by default that of the display.

        **kwargs : dict
            Passed to matplotlib's `barh`, or to `plot` for the point. Other names are refused.

        Returns
        -------
        display : ScoreDecompositionDisplay
            This object, with its artists.
        """
        check_matplotlib_support("ScoreDecompositionDisplay")
        options = signature(self.plot).parameters
        check_style(kwargs, "ScoreDecompositionDisplay", options, _METHODS[self.kind])
        name, title = name or self.name, _TITLES[self.score]
        self.bars_ = self.point_ = self.isolines_ = None
        if self.kind == "points":
            ax = axes_of(ax, (5, 5))
            label = legend_label(name, title, float(self.decomposition.score), "model")
            label = label.replace("\n", ", ")
            self.point_, self.isolines_ = draw_point(ax, self.decomposition, title, label, kwargs)
            settle(ax.figure)
        else:
            ax = axes_of(ax, (5.5, 3))
            self._draw_bars(ax, name, title, kwargs)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_bars(self, ax, name, title, style):
        rows = [text.get_text() for text in ax.get_yticklabels()] if ax.containers else []
        parts = self.decomposition
        value = np.array([getattr(parts, part) for part in _PARTS])
        place = len(rows) + np.array([-0.25, 0.0, 0.25])
        labels = list(_PARTS) if not rows else [f"_{part}" for part in _PARTS]
        own = {"color": list(_PARTS.values()), "label": labels, "height": 0.23} | style
        self.bars_ = ax.barh(place, value, **own)
        texts = [f"{v:.3g}" if v > 1e-3 * value.max() else "0" for v in value]
        ax.bar_label(self.bars_, texts, padding=3, fontsize="small")
        if parts.expected_miscalibration is not None:
            label = None if CHANCE in ax.get_legend_handles_labels()[1] else CHANCE
            where = (parts.expected_miscalibration, place[0] - 0.14, place[0] + 0.14)
            ax.vlines(*where, color="black", linewidth=1.5, label=label)
        rows.append("\n".join([*filter(None, [name]), f"{title} {parts.score:.3g}"]))
        ax.set_yticks(range(len(rows)), rows)
        ax.set(
            ylim=(len(rows) - 0.5, -0.5),
            xlim=(0, 1.15 * ax.dataLim.x1),
        )
        ax.set_xlabel(f"{title} = miscalibration − discrimination + uncertainty", fontsize="small")
        ax.legend(
            loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False, fontsize="small"
        )
