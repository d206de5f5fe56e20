"""Small multiples with one legend below, and the problems of two classes that they show."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from math import ceil
from textwrap import fill
from typing import Any, ClassVar

import numpy as np

from .._data import ClassData
from .._inputs.by import Columns, check_by
from ..lenses import Lens, _get_lens
from ..metrics._reliability_curve import Problem
from . import _base
from ._base import Axes, Figure, PredictionsDisplay

DIAGONAL = "calibrated"

# Name of the curves of models, by which the next model on the same axes finds them.
CURVE = "curve of a model"

# Panels in a row, and the size of a panel and its least width, in inches.
_MAX_COLUMNS = 4
_WIDTH, _HEIGHT, MIN_WIDTH = 2.3, 3.0, 1.5

# Width of a letter, in units of the font size.
_LETTER_WIDTH = 0.55

# Names of panels that are not shown, in the note below.
_MAX_NAMES = 20

# Room for the handle of a legend, in letters.
_HANDLE = 8


def problems_of(
    data: ClassData, multi_class: str | Lens, by: Columns | None, n_samples: int, sample_weight: Any
) -> list[Problem]:
    """One problem, or one for each problem of a lens or subgroup that has samples."""
    lens = _get_lens(multi_class)
    is_single = lens._is_identity(data) or lens.is_single
    if by is not None:
        subgroups = check_by(by, n_samples, sample_weight)
        if not is_single:
            raise ValueError(
                f"by must be None with multi_class={multi_class!r}: the grid shows either "
                f"subgroups or classes; found {len(subgroups.labels)} subgroups and "
                f"{len(data.classes)} classes. Pass multi_class='confidence', or the "
                "samples of one subgroup."
            )
        titled_rows = zip(subgroups.titles, subgroups.rows(), strict=True)
        return [Problem.whole(data.take(rows), title) for title, rows in titled_rows]
    if is_single:
        return [Problem.whole(data)]
    return [
        Problem(problem, lens.event_names or (f"{name}", "others"), lens.x_label, f"{name}")
        for name, _, problem in data.iter_problems(lens)
        if problem is not None
    ]


def choose_panels(
    problems: list[Problem], errors: list[float], most: int, *, keep_order: bool
) -> tuple[list[int], dict[str, float]]:
    """The problems to show, the largest errors first, and the titles and errors of the others.

    Subgroups that fit keep their own order.
    """
    order = np.argsort(-np.array(errors), kind="stable").tolist()
    if keep_order and len(order) <= most:
        order.sort()
    return order[:most], {str(problems[k].title): errors[k] for k in order[most:]}


def panels(ax: Any, n: int, size: tuple[float, float], n_columns: int | None = None) -> np.ndarray:
    """Axes for some panels: those given, in the place of those given, or in a new figure.

    The size is that of a new figure of one panel, or of as many as given columns hold.
    """
    if ax is not None and np.iterable(ax):
        axes = np.array(ax, dtype=object).ravel()
        if len(axes) != n:
            raise ValueError(
                f"ax must be one for each of the {n} panels, or a single one whose place they "
                f"take; found {len(axes)}. Pass the axes_ of a display with the same panels."
            )
        return axes
    if n == 1:
        return np.array([_base.axes_of(ax, size)])
    if n_columns is None:
        n_columns = min(_MAX_COLUMNS, ceil(n**0.5))
        size = max(_WIDTH * n_columns, 4.5), _HEIGHT * ceil(n / n_columns) + 0.8
    if ax is None:
        import matplotlib.pyplot as plt

        figure: Any = plt.figure(figsize=size, layout="constrained")
    elif ax.get_subplotspec() is None:
        raise ValueError(
            "ax must be a subplot, whose place the panels can take; found axes that were added at "
            "a position of their own. Make it with plt.subplots(), or leave ax out."
        )
    else:
        figure = ax.figure.add_subfigure(ax.get_subplotspec())
        ax.set_axis_off()
    has_engine = figure.get_layout_engine() is not None
    room = None if has_engine else {"bottom": 0.3, "hspace": 0.5}  # for the legend and for titles
    shape = ceil(n / n_columns), n_columns
    axes = figure.subplots(*shape, squeeze=False, gridspec_kw=room).ravel()
    for unused in axes[n:]:
        unused.remove()
    return axes[:n]


def lay_out(figure: Figure) -> None:
    """Place all axes now, if the figure has a layout engine."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure.figure)


def columns_that_fit(ax: Axes, n: int, most: int) -> int:
    """Columns of panels that are wide enough, as even as may be."""
    fit = most if ax is None or np.iterable(ax) else max(int(_base.inches_of(ax)[0] / MIN_WIDTH), 1)
    return ceil(n / ceil(n / fit))


def label_outer(axes: np.ndarray, x: str, y: str) -> None:
    """Labels at the axes at the left and at the lower end of each column."""
    for ax in axes:
        cell = ax.get_subplotspec()
        if cell is None or cell.is_first_col() or len(axes) == 1:
            ax.set_ylabel(y)
        else:  # all panels have the same scale
            ax.tick_params(labelleft=False)
        if not any(_is_below(other, ax) for other in axes):
            ax.set_xlabel(fill(_base.shorten(x, 78), 26))


def _is_below(other: Any, ax: Axes) -> bool:
    """True if the other axes are in the same column, further down."""
    cell, other_cell = ax.get_subplotspec(), other.get_subplotspec()
    if cell is None or other_cell is None:
        return False
    return other_cell.colspan == cell.colspan and other_cell.rowspan.start > cell.rowspan.start


def legend_of_panels(axes: np.ndarray, handles: list, labels: list, note: str = "") -> Any:
    """One legend for all panels, with a note: below them where they have a figure, or part of one.

    Panels on the axes of a user have it in the last of them.
    """
    ax, figure = axes[-1], axes[-1].figure
    if len(axes) == 1:
        return _base.legend_below(ax, handles, labels, note)
    if len(figure.axes) > len(axes):
        style = _base.legend_style()
        legend = ax.legend(handles, labels, loc="best", title=_base.wrap_label(note, ax), **style)
        legend.get_title().set_size("small")
        return legend
    for legend in figure.legends:  # of the model before
        legend.remove()
    legend = figure.legend(handles, labels, loc="outside lower center", **_base.legend_style())
    size = legend.get_texts()[0].get_size()
    letters = int(figure.bbox.width / figure.dpi * 72 / (_LETTER_WIDTH * size))
    for text in legend.get_texts():
        lines = _base.shorten(text.get_text(), 3 * letters).split("\n")
        text.set_text("\n".join(fill(line, letters - _HANDLE) for line in lines))
    legend.set_title(fill(note, letters), {"size": size})
    return legend


def legend_entries(ax: Axes) -> tuple[list, list]:
    """Handles and labels: curves before areas, bands and the diagonal; equal labels together."""
    curves = curves_on(ax)
    together: dict[tuple, list] = {}
    for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
        together.setdefault((handle not in curves, label == DIAGONAL, label), []).append(handle)
    entries = sorted(together, key=lambda entry: entry[:2])
    artists = [together[entry] for entry in entries]
    handles = [tuple(same) if len(same) > 1 else same[0] for same in artists]
    return handles, [label for *_, label in entries]


def curves_on(ax: Axes) -> list:
    """The curves of models that are drawn on the axes already."""
    return [line for line in ax.lines if line.get_gid() == CURVE]


def note_of_left_out(left_out: dict[str, float] | None) -> str:
    """Return the note on panels that are not shown."""
    if not left_out:
        return ""
    names = [_base.shorten(name, 30) for name in left_out]
    if len(names) > _MAX_NAMES:
        names = [*names[:_MAX_NAMES], f"and {len(names) - _MAX_NAMES} more"]
    errors = "error" if len(left_out) == 1 else "errors at most"
    return f"not shown: {', '.join(names)} ({errors} {max(left_out.values()):.3f})"


def _make_panel_title(ax: Axes, curve: Any) -> str:
    """The title of the curve and its error, beside those of other models on the same axes."""
    title = _base.wrap_label(f"{curve.title}", ax, 2)
    if curve.error is None:
        return title
    if curves_on(ax):
        return f"{ax.get_title()}, {curve.error:.3f}"
    return f"{title}\n{curve.measure} {curve.error:.3f}"


@dataclass(eq=False, repr=False)
class CurvesDisplay(PredictionsDisplay):
    """Base of displays of one curve, or of one for each class or subgroup."""

    curves: list
    _: KW_ONLY
    name: str | None = None
    left_out: dict[str, float] | None = None

    # Size of a figure of one panel, name of a curve, and label of the second axis; and the measure
    # in the legend, if it is not called as in the titles of panels.
    _size: ClassVar[tuple[float, float]]
    _curve: ClassVar[str]
    _y_label: ClassVar[str]
    _measure: ClassVar[str | None] = None

    # Draws each curve on its axes, and returns the lines.
    _draw_curves: ClassVar[Callable[..., list]]

    def _draw(self, ax: Axes, name: str | None, style: dict[str, Any], **draw_options: Any) -> None:
        is_single = len(self.curves) == 1 and self.curves[0].title is None
        self.axes_ = axes = panels(ax, len(self.curves), self._size)
        self.ax_ = axes[0]
        if is_single:
            (curve,) = self.curves
            label = _base.legend_label(
                name, self._measure or curve.measure, curve.error, self._curve
            )
            line = label.replace("\n", ", ")
            label = line if _base.wrap_label(line, self.ax_) == line else label
            x_label = _base.wrap_label(fill(_base.shorten(curve.x_label, 108), 36), self.ax_)
            self.ax_.set(xlabel=x_label, ylabel=_base.wrap_label(self._y_label, self.ax_))
        else:
            label = name or self._curve
            for panel, curve in zip(axes, self.curves, strict=True):
                panel.set_title(_make_panel_title(panel, curve), fontsize="medium")
            label_outer(axes, self.curves[0].x_label, self._y_label)
        self.lines_ = self._draw_curves(label, style, **draw_options)
        self.line_ = self.lines_[0]
        note = note_of_left_out(self.left_out)
        self.legend_ = legend_of_panels(axes, *legend_entries(self.ax_), note)
        lay_out(self.ax_.figure)  # once now, as it does not foresee the size of square axes
        if is_single and _base.is_small(self.ax_):
            self.ax_.yaxis.label.set_size("x-small")
