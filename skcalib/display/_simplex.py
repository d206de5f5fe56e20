"""Three classes at once: arrows from predictions to observed frequencies."""

from dataclasses import KW_ONLY, dataclass
from textwrap import fill
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from .._data import ClassData, check_predictions
from .._inputs.arrays import ArrayLike
from .._inputs.options import select_arguments
from .._inputs.scikit_learn import Count, RandomState, check_matplotlib_support
from .._numerics.sorting import bin_edges, product_bins
from . import _base
from ._base import Axes, PredictionsDisplay

# The corners of the triangle, one for each class.
_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 3**0.5 / 2]])

# Distances that differ by less are equal.
_DISTANCE_ATOL = 1e-12

_GREY = "0.6"

# Area of the largest dot, in square points.
_MAX_DOT_AREA = 60.0

# Width of the arrows, in inches.
_WIDTH = 0.018


@dataclass(eq=False, repr=False)
class SimplexDisplay(PredictionsDisplay):
    r"""Three classes at once: arrows from predictions to observed frequencies.

    Made by :meth:`from_estimator` or :meth:`from_predictions`. From the mean prediction of each
    cell of the triangle an arrow leads to the frequencies of the classes there. Arrows that a
    calibrated model would often have by chance are grey.

    Parameters
    ----------
    predicted : ndarray of shape (n_cells, 3)
        The mean predictions of the cells that hold any.

    observed : ndarray of shape (n_cells, 3)
        The frequencies of the classes there.

    share : ndarray of shape (n_cells,)
        The shares of the samples.

    p_value : ndarray of shape (n_cells,)
        How often drawn labels are as far from the predictions, of each cell by itself.

    classes : ndarray of shape (3,)
        The classes: at the left, at the right and at the top.

    n_bins : int, default=5
        Number of intervals into which the probability of each class is cut.

    confidence_level : float, default=0.9
        Arrows whose p-value is at most one minus this are coloured.

    name : str, default=None
        Name of the model, for the legend.

    Attributes
    ----------
    error : float
        The canonical expected calibration error: the mean total variation distance between the two
        ends of the arrows.

    arrows_ : matplotlib Quiver
        The arrows.

    dots_ : matplotlib PathCollection
        The mean predictions.

    legend_ : matplotlib Legend
        The legend.

    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    ReliabilityDisplay : Any number of classes, one by one.

    Notes
    -----
    The p-values are :math:`(1 + \#\{d^*_b \ge d\}) / (1 + B)`, where d is the total variation
    distance between mean prediction and frequencies, and the :math:`d^*_b` are those of drawn
    labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalib.display import SimplexDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    >>> model = GaussianNB().fit(X, y)
    >>> display = SimplexDisplay.from_estimator(model, X_test, y_test, random_state=0)
    >>> round(display.error, 3)
    0.071
    """

    predicted: np.ndarray
    observed: np.ndarray
    share: np.ndarray
    p_value: np.ndarray
    classes: np.ndarray
    _: KW_ONLY
    n_bins: int = 5
    confidence_level: float = 0.9
    name: str | None = None

    _method: ClassVar = "quiver"

    @property
    def error(self) -> float:
        """The canonical expected calibration error."""
        return float(self.share @ _distance(self.observed - self.predicted))

    @classmethod
    @_base.validate_options(n_bins=[Count(1, 1000)])
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        n_bins: int = 5,
        confidence_level: float = 0.9,
        n_resamples: int = 200,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Axes | None = None,
        color: Any = "C0",
    ) -> Self:
        """Create and draw the triangle of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels: strings, integers or booleans.

        y_proba : array-like of shape (n_samples, 3)
            Probabilities in [0, 1], one column for each class in the order of `labels`; rows sum
            to 1.

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take
            all arrays at ``np.repeat(np.arange(n), counts)``.

        labels : array-like of shape (n_classes,), default=None
            The classes, in the order of the columns of `y_proba`. By default the sorted labels in
            `y_true`.

        n_bins : int, default=5
            Number of intervals into which the probability of each class is cut.

        confidence_level : float in (0, 1), default=0.9
            The arrow of a calibrated cell is grey with this probability.

        n_resamples : int, default=200
            Number of label vectors drawn from the predictions.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws.

        name : str, default=None
            Name of the model, for the legend.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        color : matplotlib color, default="C0"
            Colour of the arrows that are not by chance.

        Returns
        -------
        display : SimplexDisplay
            The display, drawn.
        """
        check_matplotlib_support("SimplexDisplay")
        data = check_predictions(y_true, y_proba, sample_weight=sample_weight, labels=labels)
        check_three_classes(data)
        cells, n_cells = product_bins(data.matrix, bin_edges(n_bins, data.n_samples))
        share = np.bincount(cells, data.weight, n_cells)
        sums = [np.bincount(cells, data.weight * p, n_cells) for p in data.proba.T]
        predicted = np.column_stack(sums) / share[:, None]

        def frequencies(label: np.ndarray) -> np.ndarray:
            counts = np.bincount(3 * cells + label, data.weight, 3 * n_cells)
            return counts.reshape(n_cells, 3) / share[:, None]

        observed = frequencies(data.label)
        generator = np.random.default_rng(check_random_state(random_state).randint(2**31))
        distance = _distance(observed - predicted) - _DISTANCE_ATOL
        n_as_far = np.zeros(n_cells)
        for _ in range(n_resamples):  # one by one, as all of them may not fit into memory
            label = data.simulate_outcomes(generator, 1)[0]
            n_as_far += _distance(frequencies(label) - predicted) >= distance
        p_value = (1 + n_as_far) / (1 + n_resamples)
        options = select_arguments(locals(), ("n_bins", "confidence_level", "name"))
        display = cls(predicted, observed, share, p_value, data.classes, **options)
        return display.plot(ax, color=color)

    def _draw(self, ax: Any, name: str | None, style: dict[str, Any]) -> None:
        from matplotlib.colors import to_rgba
        from matplotlib.lines import Line2D

        self.ax_ = ax = _base.axes_of(ax, (5, 5.2))
        _draw_triangle(ax, self.n_bins, self.classes)
        start, end = self.predicted @ _CORNERS, self.observed @ _CORNERS
        is_chance = self.p_value > 1 - self.confidence_level
        relative = self.share / self.share.max()
        color = style.pop("color", "C0")
        colors = np.where(is_chance[:, None], to_rgba(_GREY), to_rgba(color))
        colors[:, 3] *= np.clip(relative**0.5, np.where(is_chance, 0.4, 0.6), 1)
        vectors = np.hstack([start, end - start]).T
        scale = {"angles": "xy", "scale_units": "xy", "scale": 1, "units": "inches"}
        self.arrows_ = ax.quiver(*vectors, color=colors, width=_WIDTH, zorder=3, **(scale | style))
        self.dots_ = ax.scatter(
            *start.T, s=_MAX_DOT_AREA * relative, c=colors, linewidth=0, zorder=2
        )
        marker: dict[str, Any] = {"marker": ">", "markersize": 5, "linewidth": 1.5}
        handles = [Line2D([], [], color=c, **marker) for c in (color, _GREY)]
        chance = f"by chance ({100 * self.confidence_level:.3g} %)"
        labels = ["from prediction to frequencies", chance]
        title = _base.legend_label(name, "expected calibration error", self.error, "")
        self.legend_ = _base.legend_below(ax, handles, labels, title)


def _distance(difference: np.ndarray) -> np.ndarray:
    """Total variation distance, (n_cells,)."""
    return 0.5 * np.abs(difference).sum(axis=1)


def _draw_triangle(ax: Any, n_bins: int, classes: np.ndarray) -> None:
    """The triangle with its cells, and the classes at its corners."""
    ax.set(aspect="equal", xlim=(-0.03, 1.03), ylim=(-0.03, _CORNERS[2, 1] + 0.03), yticks=[])
    ax.spines[:].set_visible(False)
    ax.fill(*_CORNERS.T, facecolor="none", edgecolor="0.5", linewidth=1, zorder=1.5)
    for k in range(3):
        first, second = np.delete(_CORNERS, k, axis=0)
        for share in np.arange(1, n_bins) / n_bins:
            ends = share * _CORNERS[k] + (1 - share) * np.array([first, second])
            ax.plot(*ends.T, color="0.5", alpha=0.3, linewidth=0.6, zorder=1)
    letters = max(8, int(4 * _base.inches_of(ax)[0]))  # half of the width, which the layout reduces
    left, right, top = (
        fill(_base.shorten(name, 3 * width), width)
        for name, width in zip(classes.tolist(), (letters, letters, 2 * letters), strict=True)
    )
    ax.set_xticks([0, 1], [left, right])
    ax.tick_params(axis="x", length=0)
    for text, side in zip(ax.get_xticklabels(), ("left", "right"), strict=True):
        text.set_horizontalalignment(side)
    text_options = {"xytext": (0, 3), "textcoords": "offset points", "ha": "center", "va": "bottom"}
    size = ax.get_xticklabels()[0].get_size()
    ax.annotate(top, _CORNERS[2], **text_options, fontsize=size, annotation_clip=False)


def check_three_classes(data: ClassData) -> None:
    """A triangle has three corners."""
    if len(data.classes) != 3:
        raise ValueError(
            f"y_proba must be of three classes; found {len(data.classes)}. Use "
            "ReliabilityDisplay, with multi_class='classwise' for more than two classes, or merge "
            "classes with skcalib.lenses.class_groups."
        )
