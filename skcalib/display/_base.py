"""Base of all displays: judged options, the way from an estimator, and axes with a legend."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from inspect import signature
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._inputs.annotations import Estimator
from .._inputs.arrays import ArrayLike, format_value
from .._inputs.scikit_learn import (
    Bins,
    Function,
    IntegerInterval,
    check_matplotlib_support,
    validate_params,
)
from ..forecasts import get_forecast
from ..forecasts._estimators import has_forecast

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes = Figure = Any  # matplotlib is imported where it draws

# Constraints of the options that several displays have.
_SHARED: dict[str, Any] = {
    "n_bins": [Bins(1, 1000)],
    "max_panels": [IntegerInterval(1)],
    "name": [str, None],
}

# Models on the same axes differ in more than colour.
LINES = ("-", "--", "-.", ":")
MARKERS = "os^Dv"

_LEGEND = {"frameon": False, "fontsize": "small", "labelspacing": 0.35, "handlelength": 1.8}

# Axes are small below this width or this height, in inches. A line of a label has this many letters
# for each inch of the axes, but no fewer than the last number.
_NARROW, _LOW, _LETTERS_IN_INCH, _LETTERS = 3.1, 2.0, 13, 20

# A legend with a longer line than this, or with more lines, would hide much of the axes.
_MAX_LEGEND_LENGTH, MAX_LEGEND_LINES = 40, 8

# Distance between texts below the axes, in points; and height of a line, in units of its font size.
_PAD, _LINE = 4.0, 1.2

# Distance of a strip from the axes above it, in units of their height.
_GAP = 0.07


def validate_options(**constraints: list) -> Callable[[Function], Function]:
    """A decorator that judges options: those of one display, and those that several have."""
    return validate_params(_SHARED | constraints)


class Display:
    """Base of all displays, which have `name` and `_draw`."""

    name: str | None = None
    ax_: Any

    # The method of matplotlib's axes that takes the further options.
    _method: ClassVar[str] = "plot"

    def plot(self, ax: Axes | None = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. Several panels take the place of the axes, or
            are drawn on as many axes as there are panels.

        name : str, default=None
            Name of the model; by default that of the display.

        **kwargs : dict
            Passed to the method of matplotlib's axes that draws the display, as in
            `from_predictions`. Other names are refused.

        Returns
        -------
        display : object
            This object, with its artists.
        """
        check_options(self.plot, kwargs, self._method)
        return self._draw_styled(ax, name, kwargs)

    def _draw_styled(self, ax: Any, name: Any, style: dict[str, Any], **draw_options: Any) -> Any:
        self._draw(ax, self.name if name is None else str(name), style, **draw_options)
        self.figure_ = self.ax_.figure.figure
        return self

    def _draw(self, ax: Axes, name: str | None, style: dict[str, Any]) -> None:
        """Draw on the axes, and set `ax_` and the artists."""
        raise NotImplementedError


class PredictionsDisplay(Display):
    """Base of displays that can be made of an estimator; they have `from_predictions`."""

    _takes_classes: ClassVar[bool] = True

    @classmethod
    def from_estimator(cls, estimator: Any, X: ArrayLike, y: ArrayLike, **options: Any) -> Self:
        """Create and draw the display of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier with `predict_proba` where the display takes probabilities, and a
            regressor in which :func:`skcalib.forecasts.get_forecast` finds a forecast where it
            takes forecasts.

        X : array-like of shape (n_samples, n_features)
            Features of data that the estimator was not fitted on.

        y : array-like of shape (n_samples,)
            Labels, or outcomes.

        **options : dict
            The options of `from_predictions`. `labels` are the classes of the estimator, and `name`
            is by default the name of its class.

        Returns
        -------
        display : object
            The display, drawn.
        """
        predicted, data_args = response_of(estimator, X, takes_classes=cls._takes_classes)
        return cls._from_response(estimator, y, predicted, data_args, options)

    @classmethod
    def _from_response(
        cls,
        estimator: Estimator,
        y: ArrayLike,
        predicted: Any,
        data_args: dict[str, Any],
        options: dict[str, Any],
    ) -> Any:
        """The display of predictions that the estimator has made."""
        options = add_labels(options, data_args)
        if options.get("name") is None:
            options["name"] = type(estimator).__name__
        make: Callable = cls.from_predictions  # type: ignore[attr-defined]
        return make(y, predicted, **options)


def response_of(
    estimator: BaseEstimator, X: ArrayLike, *, takes_classes: bool
) -> tuple[Any, dict[str, ArrayLike]]:
    """The probabilities of a fitted classifier and its classes as `labels`, or a forecast."""
    if takes_classes and not has_forecast(estimator):
        check_is_fitted(estimator)
    if takes_classes and hasattr(estimator, "classes_"):
        return estimator.predict_proba(X), {"labels": estimator.classes_}
    return get_forecast(estimator, X), {}


def add_labels(options: Mapping[str, Any], data_args: Mapping[str, Any]) -> dict[str, Any]:
    """The options with the labels of the estimator, whose columns no other labels may name."""
    if "labels" in data_args and options.get("labels") is not None:
        raise TypeError(
            "labels must be left out, as the classes of the estimator are the labels; found "
            f"{format_value(options['labels'])}. Pass its predictions to name them yourself."
        )
    return {**options, **data_args}


def check_models(models: Any, argument: str, *, least: int = 1, name: str | None = None) -> None:
    """Models have names, which are the keys of a dict, and no other `name`."""
    count = len(models) if isinstance(models, Mapping) else 0
    if count < least or name is not None:
        raise ValueError(
            f"{argument} must be a dict with the predictions of at least {least} model(s) by their "
            f"names, without `name`; found {count} model(s) in a {type(models).__name__} and name="
            f"{name!r}. Pass {{'name': predictions}}."
        )


def check_options(function: Callable, options: dict[str, Any], method: str = "plot") -> None:
    """Further options must be those of a method of matplotlib's axes, or of what it draws.

    Short names, such as ls, are replaced by the long ones that the defaults have.
    """
    display = function.__self__  # type: ignore[attr-defined]
    display = (display if isinstance(display, type) else type(display)).__name__
    check_matplotlib_support(display)
    from matplotlib import cbook, lines, patches, quiver
    from matplotlib.axes import Axes

    artists = {"barh": patches.Rectangle, "quiver": quiver.Quiver, "stairs": patches.StepPatch}
    artist: type = artists.get(method, lines.Line2D)
    artist_options = signature(getattr(Axes, method)).parameters
    for name in options:
        option = artist_options.get(name)
        is_option = option is not None and option.default is not option.empty
        if not is_option and not hasattr(artist, f"set_{name}"):
            display_options = signature(function).parameters
            similar = get_close_matches(name, display_options, n=1, cutoff=0.5)
            remedy = f"Did you mean {similar[0]!r}?" if similar else "Leave it out."
            raise TypeError(
                f"{display} takes its own options and those of matplotlib's {method}, such as "
                f"alpha; found the unknown option {name!r}. {remedy}"
            )
    full_names = cbook.normalize_kwargs(dict(options), artist)
    options.clear()
    options |= full_names


def axes_of(ax: Axes | None, figsize: tuple[float, float]) -> Any:
    """The axes to draw on: those given, perhaps as an array of one, or those of a new figure."""
    if ax is not None:
        axes = np.array(ax, dtype=object).ravel()
        if len(axes) != 1:
            raise ValueError(
                f"ax must be a single one, as there is one panel; found {len(axes)}. Pass one of "
                "them."
            )
        if not hasattr(axes[0], "plot"):
            raise TypeError(
                f"ax must be axes of matplotlib; found {format_value(axes[0])}. Pass plt.gca()."
            )
        return axes[0]
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")[1]


def inches_of(ax: Any) -> np.ndarray:
    """Width and height of axes."""
    return ax.get_window_extent().size / ax.figure.dpi


def is_small(ax: Axes) -> bool:
    """True if labels need more than one line beside these axes."""
    width, height = inches_of(ax)
    return bool(width < _NARROW or height < _LOW)


def shorten(name: str, most: int) -> str:
    """The name, cut to `most` letters by an ellipsis in the middle."""
    text, end = f"{name}", most // 3
    return text if len(text) <= most else f"{text[: most - end - 1]}…{text[-end:]}"


def wrap_label(text: str, ax: Axes, n_lines: int = 5) -> str:
    """A label, whose lines are broken to fit the axes; each becomes at most `n_lines`, or so."""
    room = inches_of(ax).min() if is_small(ax) else inches_of(ax)[0]
    letters = max(_LETTERS, int(_LETTERS_IN_INCH * room))
    return "\n".join(fill(shorten(line, n_lines * letters), letters) for line in text.split("\n"))


def legend_label(name: str | None, measure: str, error: float | None, otherwise: str) -> str:
    """The name of the model and its error, as far as they are known."""
    error_text = None if error is None else f"{measure} {error:.3f}"
    return "\n".join(line for line in (name, error_text) if line) or otherwise


def legend_style() -> dict[str, Any]:
    """Options of legends below; handles with the same label are side by side."""
    from matplotlib.legend_handler import HandlerTuple

    return _LEGEND | {"handler_map": {tuple: HandlerTuple(ndivide=None, pad=0)}}


def draw_legend(ax: Axes) -> None:
    """The legend where it hides least, or below axes that are small for it."""
    labels = ax.get_legend_handles_labels()[1]
    lines = "\n".join(labels).split("\n")
    if is_small(ax) or len(lines) > MAX_LEGEND_LINES or max(map(len, lines)) > _MAX_LEGEND_LENGTH:
        n_columns = 1 if len(lines) <= MAX_LEGEND_LINES or is_small(ax) else 2
        legend_below(ax, *ax.get_legend_handles_labels(), n_columns=n_columns)
    else:
        ax.legend(loc="best", framealpha=0.7, edgecolor="none", fontsize="small")


class _PlaceAbove:
    """Locator of axes that leave the lowest part of their place to what is below them.

    That is a strip that ends at `bottom`, in units of the height of the axes, and a legend whose
    height is `inches`, where no layout engine makes room for it.
    """

    def __init__(self, ax: Any) -> None:
        self.get_subplotspec = ax.get_subplotspec  # which `tight_layout` asks of locators
        self.bottom, self.inches = 0.0, 0.0
        ax.set_axes_locator(self)

    def __call__(self, ax: Axes, renderer: Any) -> Any:
        from matplotlib.transforms import Bbox

        box = ax.get_position(original=True)
        room = min(self.inches * ax.figure.dpi / ax.figure.bbox.height, 0.6 * box.height)
        height = (box.height - room) / (1 - self.bottom)
        return Bbox.from_extents(box.x0, box.y1 - height, box.x1, box.y1)


def _place_of(ax: Axes) -> _PlaceAbove:
    locator = ax.get_axes_locator()
    return locator if isinstance(locator, _PlaceAbove) else _PlaceAbove(ax)


def _place_below(ax: Axes, bottom: float, points: float) -> dict[str, Any]:
    """A place in the middle of the axes, some points below their height `bottom`."""
    from matplotlib.transforms import ScaledTranslation

    offset = ScaledTranslation(0, -points / 72, ax.figure.dpi_scale_trans)
    return {"x": 0.5, "y": bottom, "transform": ax.transAxes + offset}


def _height_of_ticks(ax: Any) -> float:
    """Height of the ticks at the lower end and of their labels, in points."""
    size = ax.xaxis.get_major_ticks(1)[0].label1.get_size()
    n_lines = 1 + max((label.get_text().count("\n") for label in ax.get_xticklabels()), default=0)
    return ax.xaxis.get_tick_padding() + _LINE * size * n_lines + _PAD


def strip_below(ax: Any, label: str, height: float) -> Any:
    """Axes below others, which they share the first axis with: new, or those of the last model.

    The height is in units of that of the axes above.
    """
    strip = next((child for child in ax.child_axes if child.get_label() == label), None)
    if strip is None:
        _place_of(ax).bottom = bottom = -_GAP - height
        strip = ax.inset_axes([0, bottom, 1, height], sharex=ax, label=label)
        strip.axhline(0, color="0.4", linewidth=0.6)
        strip.tick_params(axis="y", length=2, pad=2)
        ax.tick_params(labelbottom=False)
        ax.xaxis.set_label_coords(**_place_below(ax, bottom, _height_of_ticks(strip)))
        if inches_of(ax)[0] < _LOW:  # room for a wide label is at the left
            ax.xaxis.label.set(x=1, ha="right", multialignment="center")
    return strip


def draw_bars(strip: Axes, heights: np.ndarray, edges: np.ndarray, line: Any) -> Any:
    """Bars in the style of a line; returns their outline."""
    color, style = line.get_color(), line.get_linestyle()
    strip.stairs(heights, edges, fill=True, alpha=0.25, color=color)
    return strip.stairs(heights, edges, linewidth=0.8, color=color, linestyle=style)


def name_halves(strip: Any, names: tuple[str, str], sides: Sequence[str]) -> None:
    """Write what the bars upwards and downwards show, at the left or at the right."""
    if strip.texts:
        return
    style = {"fontsize": "x-small", "transform": strip.transAxes}
    for name, side, y, end in zip(names, sides, (0.95, 0.05), ("top", "bottom"), strict=True):
        x = 0.03 if side == "left" else 0.97
        strip.text(x, y, shorten(name, _LETTERS), ha=side, va=end, **style)


def legend_below(
    ax: Any, handles: list, labels: list, note: str = "", *, n_columns: int = 1
) -> Any:
    """The legend below the label of the axes, with a note as its title."""
    label, box = ax.xaxis.label, _place_of(ax)
    points = _height_of_ticks(ax) + _PAD
    if label.get_text():
        points += _LINE * label.get_size() * (label.get_text().count("\n") + 1)
    anchor = _place_below(ax, box.bottom, points)
    legend = ax.legend(
        handles,
        [wrap_label(text, ax) for text in labels],
        loc="upper center",
        bbox_to_anchor=(anchor["x"], anchor["y"]),
        bbox_transform=anchor["transform"],
        borderaxespad=0,
        ncols=n_columns,
        **legend_style(),
    )
    legend.set_title(wrap_label(note, ax), {"size": "small"})
    figure = ax.figure
    if figure.get_layout_engine() is None:
        needed = points / 72 + legend.get_window_extent().height / figure.dpi
        there = ax.get_position(original=True).y0 * figure.bbox.height / figure.dpi
        box.inches = max(needed - there, 0.0)
    return legend
