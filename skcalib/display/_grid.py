"""Small multiples: a grid of axes with one legend below."""

from math import ceil
from textwrap import fill
from typing import Any, Self

import numpy as np

from ._axes import axes_of, parts_below

# Panels in a row, and the size of a panel, in inches.
_MOST_COLUMNS = 4
_WIDTH, _HEIGHT = 2.3, 3.0

# Width of a letter, in units of the font size.
_LETTER = 0.55

# Names of panels that are not shown, in the note below.
_MOST_NAMES = 20


class Grid:
    """Axes for some panels, and axes for the legend below them."""

    def __init__(self, axes: np.ndarray, below: Any = None) -> None:
        self.axes = axes
        if below is not None:
            below.set_gid(f"legend of {id(axes[0])}")  # by which the next model finds it
        wanted = f"legend of {id(axes[0])}"
        self.below = next((one for one in axes[0].figure.axes if one.get_gid() == wanted), None)

    @classmethod
    def on(cls, ax: Any, n_panels: int, n_columns: int | None = None) -> Self:
        """A grid in a new figure, in the place of axes, or on as many axes as there are panels."""
        if ax is not None and np.iterable(ax):
            axes = np.array(ax, dtype=object).ravel()
            check_number_of_axes(axes, n_panels)
            return cls(axes)
        n_columns = n_columns or min(_MOST_COLUMNS, ceil(n_panels**0.5))
        n_rows = ceil(n_panels / n_columns)
        shape: dict[str, Any] = {
            "nrows": n_rows + 1,
            "ncols": n_columns,
            "height_ratios": [1] * n_rows + [0.01],
        }
        if ax is None:
            import matplotlib.pyplot as plt

            size = (max(_WIDTH * n_columns, 4.5), _HEIGHT * n_rows + 0.8)
            figure = plt.figure(figsize=size, layout="constrained")
            grid = figure.add_gridspec(**shape)
        else:
            check_is_subplot(ax)
            figure, grid = ax.figure, ax.get_subplotspec().subgridspec(**shape)
            ax.set_axis_off()
        places = [divmod(k, n_columns) for k in range(n_panels)]
        axes = np.array([figure.add_subplot(grid[place]) for place in places])
        below = figure.add_subplot(grid[-1, :])
        below.set_axis_off()
        return cls(axes, below)

    @classmethod
    def of_width(cls, ax: Any, n_panels: int, figsize: tuple[float, float], least: float) -> Self:
        """A grid whose panels have at least this width, in inches; one panel is the axes given."""
        if np.iterable(ax):
            return cls.on(ax, n_panels)
        ax = axes_of(ax, figsize)
        if n_panels == 1:
            return cls(np.array([ax]))
        fit = max(int(ax.get_window_extent().width / ax.figure.dpi / least), 1)
        return cls.on(ax, n_panels, ceil(n_panels / ceil(n_panels / fit)))

    def label(self, x: str, y: str) -> None:
        """Labels at the outer axes."""
        for ax in self.axes:
            place = ax.get_subplotspec()
            if place is None or place.is_first_col() or len(self.axes) == 1:
                ax.set_ylabel(y)
            else:  # all panels have the same scale
                ax.tick_params(labelleft=False)
            below = [other for other in self.axes if _is_below(other, ax)]
            if not below:
                ax.set_xlabel(fill(x, 26))

    def draw_legend(self, handles: list, labels: list, note: str, **style: Any) -> Any:
        """One legend for all panels, and a note."""
        if self.below is None:
            ax = self.axes[-1]
            parts_below(ax).place_legend(ax, handles, labels, **style)
            return ax.get_legend()
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, 1), "borderaxespad": 0}
        legend = self.below.legend(handles, labels, **place, **style)
        if note:
            size = legend.get_texts()[0].get_size()
            width = self.below.get_window_extent().width * 72 / self.below.figure.dpi  # in points
            legend.set_title(fill(note, int(width / (_LETTER * size))), {"size": size})
        return legend


def _is_below(other: Any, ax: Any) -> bool:
    """Whether the other axes are in the same column, further down."""
    place, found = ax.get_subplotspec(), other.get_subplotspec()
    if place is None or found is None:
        return False
    return found.colspan == place.colspan and found.rowspan.start > place.rowspan.start


def panels_to_show(
    errors: list[float], most: int, *, keep_order: bool
) -> tuple[list[int], list[int]]:
    """The panels to show and those to leave out, the largest errors first.

    Subgroups that fit keep their own order.
    """
    order = np.argsort(-np.array(errors), kind="stable").tolist()
    if keep_order and len(order) <= most:
        return sorted(order), []
    return order[:most], order[most:]


def panel_title(ax: Any, curve: Any, *, is_first: bool) -> str:
    """The title of the curve and its error, beside those of other models on the same axes."""
    if curve.error is None:
        return f"{curve.title}"
    if not is_first:
        return f"{ax.get_title()}, {curve.error:.3f}"
    return f"{curve.title}\n{curve.measure} {curve.error:.3f}"


def note_of_left_out(left_out: dict[str, float] | None) -> str:
    """Which panels are not shown."""
    if not left_out:
        return ""
    names = list(left_out)
    if len(names) > _MOST_NAMES:
        names = [*names[:_MOST_NAMES], f"and {len(names) - _MOST_NAMES} more"]
    return f"not shown, with errors up to {max(left_out.values()):.3f}: {', '.join(names)}"


def check_is_subplot(ax: Any) -> None:
    """The place of axes in a grid can be divided."""
    if ax.get_subplotspec() is None:
        raise ValueError(
            "ax must be a subplot, whose place the panels can take; found axes that were added at "
            "a position of their own. Make it with plt.subplots(), or leave ax out."
        )


def check_number_of_axes(axes: np.ndarray, n_panels: int) -> None:
    """There must be one for each panel."""
    if len(axes) != n_panels:
        raise ValueError(
            f"ax must be one for each of the {n_panels} panels, or a single one whose place they "
            f"take; found {len(axes)}. Pass the axes_ of a display with the same panels."
        )
