"""Expected and realised losses of decisions."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np

from .._data import with_groups
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import Label
from .._numerics.dependence import GroupedSums
from .._statistics.decisions import DecisionGaps
from ..metrics._decision_curve import make_decision_curve
from ..metrics._decisions import check_decision_data, decision_table
from . import _base
from ._base import Axes, PredictionsDisplay

_DIAGONAL = "as expected"

# Room for the name of an action: a letter's width, and the height of a line, in points.
_LETTER, _LINE = 5, 12

_DECISION_LABELS = {"loss": "mean loss", "net-benefit": "net benefit"}


@dataclass(eq=False, repr=False)
class DecisionDisplay(PredictionsDisplay):
    """Expected and realised losses: for each action, or along a cost ratio.

    Made by :meth:`from_estimator` or :meth:`from_predictions`. Points above the diagonal cost more
    than expected. Along a cost ratio the dashed line shows what is expected, the solid one what is
    realised; where the dashed line leaves the shaded band, the difference is more than chance.

    Parameters
    ----------
    place : ndarray of shape (n_places,)
        The actions; or the thresholds t, at which a false alarm costs t, and a miss 1 − t.

    expected : ndarray of shape (n_places,)
        Mean expected losses, or net benefits.

    realised : ndarray of shape (n_places,)
        Mean losses, or net benefits.

    margin : ndarray of shape (n_places,), default=None
        Half-widths of the intervals around what is realised. They say how far it may be from what
        is expected, if outcomes are drawn from the predictions, as dependent as the groups show.

    kind : {"actions", "loss", "net-benefit"}, default="actions"
        What is drawn.

    share : ndarray of shape (n_places,), default=None
        Shares of the samples with each action.

    treat_all : ndarray of shape (n_places,), default=None
        Mean losses, or net benefits, of acting always.

    treat_none : ndarray of shape (n_places,), default=None
        Mean losses, or net benefits, of acting never.

    name : str, default=None
        Name of the model, for the legend.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The points of the actions, or the line of what is realised.

    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    skcalib.metrics.decision_calibration : The numbers of the actions.
    skcalib.metrics.decision_curve : The numbers along a cost ratio.

    Notes
    -----
    With a threshold t it is best to act if the probability of the second class exceeds t. The net
    benefit of decision curves [1]_ is the share of true alarms minus t/(1 − t) times that of false
    ones.

    References
    ----------
    .. [1] Vickers and Elkin (2006). Decision Curve Analysis. Medical Decision Making.
       :doi:`10.1177/0272989X06295361`

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalib.display import DecisionDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    >>> model = GaussianNB().fit(X, y)
    >>> display = DecisionDisplay.from_estimator(model, X_test, y_test, loss=[[0, 1], [5, 0]])
    """

    place: np.ndarray
    expected: np.ndarray
    realised: np.ndarray
    _: KW_ONLY
    margin: np.ndarray | None = None
    kind: str = "actions"
    share: np.ndarray | None = None
    treat_all: np.ndarray | None = None
    treat_none: np.ndarray | None = None
    name: str | None = None

    @classmethod
    @_base.validate_options(thresholds=["array-like", None])
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: object,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Label | None = None,
        labels: ArrayLike | None = None,
        loss: Any = "zero-one",
        kind: Literal["actions", "loss", "net-benefit"] = "actions",
        thresholds: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        confidence_level: float = 0.95,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the display of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

        y_pred : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Probabilities of the positive class, or of all classes (rows sum to 1). Or a forecast of
            a number, as :func:`skcalib.forecasts.as_forecast` takes it.

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take
            all arrays at ``np.repeat(np.arange(n), counts)``.

        pos_label : int, float, bool or str, default=None
            With two classes, the one whose probability is compared with the thresholds, and which a
            one-dimensional `y_pred` holds. By default the last of `labels`.

        labels : array-like of shape (n_classes,), default=None
            The classes, in the order of the columns of `y_pred`. By default the sorted labels in
            `y_true`.

        loss : array-like of shape (n_actions, n_classes), float, callable or DecisionLoss, \
                default="zero-one"
            The losses of the actions, as :class:`skcalib.decisions.DecisionLoss` takes them. Along
            a cost ratio, a number c for forecasts, whose second class is an outcome above c.

        kind : {"actions", "loss", "net-benefit"}, default="actions"
            A point for each action; or the loss or the net benefit along a cost ratio, for two
            classes.

        thresholds : array-like of shape (n_thresholds,), default=None
            Cost ratios t in [0, 1): a false alarm costs t, a miss 1 − t. By default 0.01, …, 0.99.

        groups : array-like of shape (n_samples,) or (n_samples, 2), default=None
            Groups of samples that are not independent, such as the rows of a patient; at least 10.
            Two columns cross each other, such as patients and readers.

        confidence_level : float in (0, 1), default=0.95
            Probability with which the intervals and the band contain the expected value if
            predictions are calibrated.

        name : str, default=None
            Name of the model, for the legend.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        **kwargs : dict
            Passed to matplotlib's `plot`, for the points or the line of what is realised. Other
            names are refused.

        Returns
        -------
        display : DecisionDisplay
            The display, drawn.
        """
        _base.check_options(cls.from_predictions, kwargs)
        data, decision = check_decision_data(y_true, y_pred, loss, sample_weight, pos_label, labels)
        data = with_groups(data, y_true, groups, sample_weight)
        if kind == "actions":
            table = decision_table(DecisionGaps(data, loss=decision, given="action"))
            quantile = GroupedSums(data.weight, data.groups).quantile(confidence_level)
            options: Any = {"share": table.share, "margin": quantile * table.standard_error}
            display = cls(table.actions, table.expected, table.realised, **options, name=name)
        else:
            curve = vars(make_decision_curve(data, decision, kind, thresholds, confidence_level))
            display = cls(curve.pop("threshold"), **curve, kind=kind, name=name)
        return display.plot(ax, **kwargs)

    def _draw(self, ax: Axes, name: str | None, style: dict[str, Any]) -> None:
        self.ax_ = ax = _base.axes_of(ax, (5, 4.2))
        draw = self._draw_actions if self.kind == "actions" else self._draw_curves
        draw(ax, name, style)
        _base.draw_legend(ax)

    def _draw_actions(self, ax: Any, name: str | None, kwargs: dict[str, Any]) -> Any:
        if _DIAGONAL not in ax.get_legend_handles_labels()[1]:
            start = np.nanmean(self.expected)
            style = {"color": "0.5", "linewidth": 1, "linestyle": ":"}
            ax.axline((start, start), slope=1, label=_DIAGONAL, **style)
        style = {"label": name or "actions", "marker": "o", "linestyle": ""}
        style |= {"capsize": 3, "elinewidth": 1.2}
        points = ax.errorbar(self.expected, self.realised, self.margin, **(style | kwargs))
        self.line_, color = points[0], points[0].get_color()
        self.line_.set_zorder(4)  # above the names
        low, high = ax.dataLim.min.min(), ax.dataLim.max.max()
        room = 0.1 * max(high - low, 1e-9)
        ends = low - room, high + room
        ax.set(xlim=ends, ylim=ends, box_aspect=1)
        points = 72 * _base.inches_of(ax).min() / (ends[1] - ends[0])
        taken = np.flatnonzero(np.isfinite(self.expected))
        style = {"textcoords": "offset points", "fontsize": "small", "color": color}
        style["bbox"] = {"color": "white", "alpha": 0.7, "pad": 0}

        def span(x: float, shift: int, text: str) -> tuple[Any, ...]:
            start = points * x + shift - (0 if shift > 0 else _LETTER * len(text))
            return start, start + _LETTER * len(text)

        for k in taken[np.argsort(self.realised[taken], kind="stable")]:
            share = "" if self.share is None else f" ({self.share[k]:.0%})"
            text = f"{_base.shorten(self.place[k], 20)}{share}"
            x, y, width, up = self.expected[k], self.realised[k], _LETTER * len(text), -10
            rooms = points * (x - ends[0]), points * (ends[1] - x)
            is_outer = x > self.expected[taken].mean()
            is_right = rooms[1] >= width if is_outer else rooms[0] < width
            shift = 7 if is_right else -7
            start, end = span(x, shift, text)
            heights = [
                points * (annotation.xy[1] - y) + annotation.xyann[1]
                for annotation in ax.texts
                for begin, stop in [
                    span(annotation.xy[0], annotation.xyann[0], annotation.get_text())
                ]
                if begin < end and start < stop
            ]
            while any(abs(height - up) < _LINE for height in heights):
                up += 1
            alignment = {"xytext": (shift, up), "ha": "left" if is_right else "right"}
            ax.annotate(text, (x, y), **alignment, **style)
        ax.set(xlabel=_base.wrap_label("expected mean loss", ax), ylabel="realised mean loss")

    def _draw_curves(self, ax: Any, name: str | None, kwargs: dict[str, Any]) -> None:
        t, is_loss = self.place, self.kind == "loss"
        if self.treat_all is not None and not ax.lines:
            ax.plot(t, self.treat_all, color="0.5", linewidth=1, linestyle="-.", label="always act")
            ax.plot(t, self.treat_none, color="0.5", linewidth=1, linestyle=":", label="never act")
        begin = f"{name}, " if name else ""
        style = {"label": f"{begin}realised", "linewidth": 1.5} | kwargs
        (self.line_,) = ax.plot(t, self.realised, **style)
        color = self.line_.get_color()
        ax.plot(t, self.expected, color=color, linestyle="--", label=f"{begin}expected")
        if self.margin is not None:
            low, high = self.realised - self.margin, self.realised + self.margin
            ax.fill_between(t, low, high, color=color, alpha=0.15, linewidth=0)
        curves = np.concatenate([self.realised, self.expected])
        highest = max(curves.max(), *(line.get_ydata().max() for line in ax.lines[2:]), 1e-9)
        lowest = 0.0 if is_loss else -0.15 * highest  # the line "always act" falls without end
        ax.set(
            xlim=(0, 1),
            ylim=(lowest, 1.35 * highest if is_loss else 1.1 * highest),
            xlabel=_base.wrap_label("threshold t: a false alarm costs t, a miss 1 − t", ax),
            ylabel=_DECISION_LABELS[self.kind],
        )
