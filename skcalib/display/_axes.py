"""What all displays do with their axes."""

from collections.abc import Iterable
from difflib import get_close_matches
from inspect import signature
from textwrap import fill
from typing import Any

import numpy as np

# Between parts below the axes, in points; and height of a line, in units of the font size.
_PAD, _LINE = 4.0, 1.2

# Style of legends outside of the axes.
LEGEND: dict[str, Any] = {
    "frameon": False,
    "fontsize": "small",
    "labelspacing": 0.35,
    "handlelength": 1.8,
}

# Axes are small below this width or this height, in inches. Then a line of a label has this many
# letters for each inch of the axes, but no fewer than the last number.
_NARROW, _LOW, _LETTERS_IN_INCH, _LETTERS = 3.1, 2.0, 13, 20


def axes_of(ax: Any, figsize: tuple[float, float]) -> Any:
    """The axes to draw on: those given, perhaps as an array of one, or those of a new figure."""
    if ax is not None:
        axes = np.array(ax, dtype=object).ravel()
        if len(axes) != 1:
            raise ValueError(
                f"ax must be a single one, as there is one panel; found {len(axes)}. Pass one of "
                "them."
            )
        return axes[0]
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")[1]


def is_small(ax: Any) -> bool:
    """Whether labels need more than one line beside these axes."""
    width, height = _inches(ax)
    return bool(width < _NARROW or height < _LOW)


def wrapped(text: str, ax: Any) -> str:
    """A label, broken into lines where axes are small."""
    return _filled(text, ax) if is_small(ax) else text


def _inches(ax: Any) -> np.ndarray:
    return ax.get_window_extent().size / ax.figure.dpi


def _filled(text: str, ax: Any) -> str:
    """A text in lines that fit beside small axes."""
    letters = max(_LETTERS, int(_LETTERS_IN_INCH * _inches(ax).min()))
    return "\n".join(fill(line, letters) for line in text.split("\n"))


def legend_label(name: str | None, measure: str, error: float | None, otherwise: str) -> str:
    """The name of the model and its error, as far as they are known."""
    shown = None if error is None else f"{measure} {error:.3f}"
    return "\n".join(part for part in (name, shown) if part) or otherwise


def check_style(
    style: dict[str, Any], display: str, options: Iterable[str], method: str = "plot"
) -> None:
    """Further arguments must be those of a method of matplotlib's axes, or of what it draws."""
    from matplotlib.axes import Axes

    known = [
        name
        for name, parameter in signature(getattr(Axes, method)).parameters.items()
        if parameter.default is not parameter.empty
    ]
    for name in style:
        if name not in known and not hasattr(_artist_of(method), f"set_{name}"):
            similar = get_close_matches(name, list(options), n=1, cutoff=0.5)
            remedy = f"Did you mean {similar[0]!r}?" if similar else "Leave it out."
            raise TypeError(
                f"{display} takes its own options and those of matplotlib's {method}, such as "
                f"alpha; found the unknown option {name!r}. {remedy}"
            )


def _artist_of(method: str) -> type:
    """What a method of matplotlib's axes draws."""
    from matplotlib.collections import QuadMesh
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle, StepPatch

    artists: dict[str, type] = {"barh": Rectangle, "pcolormesh": QuadMesh, "stairs": StepPatch}
    return artists.get(method, Line2D)


def draw_legend(ax: Any) -> None:
    """The legend where it hides least, or below small axes."""
    if not is_small(ax):
        ax.legend(loc="best", framealpha=0.7, edgecolor="none", fontsize="small")
        return
    handles, labels = ax.get_legend_handles_labels()
    lines = [_filled(label, ax) for label in labels]
    parts_below(ax).place_legend(ax, handles, lines, **LEGEND)


class PartsBelow:
    """Places what is below the axes: a strip, its ticks, the label of the axis and the legend.

    This is the locator of the axes, so that everything keeps its place at every size. The strip and
    the legend take their room from that of the axes. As heights of texts are known only when a
    figure is drawn, they are measured then. `bottom` is where the strip ends, in units of the axes;
    without a strip it is 0.
    """

    def __init__(self, ax: Any, strip: Any = None, bottom: float = 0.0) -> None:
        from matplotlib.transforms import Affine2D

        self.get_subplotspec = ax.get_subplotspec  # which `tight_layout` asks of locators
        self.axis, self.bottom = (ax if strip is None else strip).xaxis, bottom
        self.below_ticks, self.below_label = Affine2D(), Affine2D()
        ax.xaxis.set_label_coords(0.5, bottom, transform=ax.transAxes + self.below_ticks)
        ax.set_axes_locator(self)

    def place_legend(self, ax: Any, *handles: Any, **style: Any) -> None:
        """Draw the legend below everything else."""
        ax.legend(
            *handles,
            loc="upper center",
            bbox_to_anchor=(0.5, self.bottom),
            bbox_transform=ax.transAxes + self.below_label,
            borderaxespad=0,
            **style,
        )

    def __call__(self, ax: Any, renderer: Any) -> Any:
        from matplotlib.transforms import Bbox

        pad = renderer.points_to_pixels(_PAD)
        texts = [text for text in self.axis.get_ticklabels() if text.get_text()]
        heights = [text.get_window_extent(renderer).height for text in texts if text.get_visible()]
        tick_length = renderer.points_to_pixels(self.axis.get_tick_padding())
        offset = ticks = max(heights, default=0.0) + tick_length + 2 * pad
        # a wide text reaches below the label at the left rather than beyond the right end
        left = ax.yaxis.get_tightbbox(renderer)
        free = 0.0 if left is None else max(ax.bbox.x0 - left.x0, 0.0)
        label = ax.xaxis.label.get_window_extent(renderer)
        self.below_ticks.clear().translate(-_aside(label.width, ax, free), -offset)
        if ax.get_xlabel():
            offset += label.height + pad
        if ax.get_legend() is not None:
            legend = ax.get_legend().get_window_extent(renderer)
            self.below_label.clear().translate(-_aside(legend.width, ax, free), -offset)
            offset += legend.height
        box, room = ax.get_position(original=True), 0.0
        if ax.figure.get_layout_engine() is None:  # which would make room
            line = _LINE * renderer.points_to_pixels(ax.xaxis.label.get_size())
            usual = min(ticks + line, box.y0 * ax.figure.bbox.height)
            room = float(np.clip((offset - usual) / ax.figure.bbox.height, 0, 0.6 * box.height))
        height = (box.height - room) / (1 - self.bottom)
        return Bbox.from_extents(box.x0, box.y1 - height, box.x1, box.y1)


def _aside(width: float, ax: Any, free: float) -> float:
    """How far to the left of the middle of the axes a text is, if there is free room."""
    beyond = (width - ax.bbox.width) / 2
    return float(np.clip(beyond, 0.0, max(min(free / 2, ax.bbox.x0 - beyond), 0.0)))


def settle(figure: Any) -> None:
    """Lay the figure out once: parts below axes depend on the size of the axes, and vice versa.

    Drawing does it again, from there.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure.figure)


def parts_below(ax: Any) -> PartsBelow:
    """What places the parts below these axes."""
    locator = ax.get_axes_locator()
    return locator if isinstance(locator, PartsBelow) else PartsBelow(ax)
