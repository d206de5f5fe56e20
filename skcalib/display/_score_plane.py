"""Models as points in the plane of miscalibration and discrimination."""

from typing import Any

import numpy as np

from ..metrics import ScoreDecomposition
from ._axes import LEGEND, is_small, parts_below, wrapped
from ._reliability_panel import MARKERS

CHANCE = "miscalibration of a calibrated model"

# Names of artists, by which the next model on the same axes finds them.
_POINT, _ISOLINE = "model", "uncertainty "

# About as many lines of equal score, on axes that are large or small.
_LINES_IF_LARGE, _LINES_IF_SMALL = 8, 5

# Free room around the points, in units of their extents.
_MARGIN = 0.2


def draw_point(
    ax: Any, parts: ScoreDecomposition, title: str, label: str, style: dict[str, Any]
) -> tuple[Any, list]:
    """Draw a model and, anew, the lines of equal score."""
    check_same_uncertainty(ax, float(parts.uncertainty))
    known = ax.get_legend_handles_labels()[1]
    n_before = len(_points_on(ax))
    own = {"marker": MARKERS[n_before % len(MARKERS)], "linestyle": "", "gid": _POINT, "zorder": 3}
    place = (parts.miscalibration, parts.discrimination)
    (point,) = ax.plot(*place, **(own | {"label": label} | style))
    if parts.expected_miscalibration is not None:
        ends = [parts.expected_miscalibration, parts.miscalibration]
        ax.plot(ends, [place[1]] * 2, color=point.get_color(), linewidth=0.8, zorder=2)
        mark = {"marker": "|", "markersize": 9, "linestyle": "", "color": point.get_color()}
        ax.plot(ends[0], place[1], **mark)
        if CHANCE not in known:
            ax.plot([], [], label=CHANCE, **(mark | {"color": "0.5"}))
    _set_limits(ax)
    equal = f"equal {title}"
    isolines = _draw_isolines(ax, float(parts.uncertainty), equal)
    ax.set(xlabel=wrapped("miscalibration", ax), ylabel="discrimination")
    handles, labels = ax.get_legend_handles_labels()
    last = [text in (CHANCE, equal) for text in labels]
    order = np.argsort(last, kind="stable")
    entries = [handles[k] for k in order], [wrapped(labels[k], ax) for k in order]
    parts_below(ax).place_legend(ax, *entries, **LEGEND)
    return point, isolines


def _points_on(ax):
    return [line for line in ax.lines if line.get_gid() == _POINT]


def _isolines_on(ax):
    return [one for one in ax.get_children() if str(one.get_gid()).startswith(_ISOLINE)]


def _set_limits(ax):
    """Limits that hold all models; no miscalibration is at the left end."""
    x, y = np.concatenate([line.get_xydata() for line in ax.lines if len(line.get_xdata())]).T
    right = (1 + _MARGIN) * max(x.max(), 1e-9)
    room = max(_MARGIN * np.ptp(y), 0.5 * _MARGIN * right)
    ax.set(xlim=(0, right), ylim=(y.min() - room, y.max() + room))
    ax.locator_params(nbins=3 if is_small(ax) else 5)


def _draw_isolines(ax, uncertainty, label):
    """Lines on which miscalibration minus discrimination is the same, with the scores."""
    from matplotlib.ticker import MaxNLocator

    for artist in _isolines_on(ax):
        artist.remove()
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    least, most = left - top + uncertainty, right - bottom + uncertainty
    inner = 0.04 * (most - least)  # lines at the very corners have no room for their scores
    n_lines = _LINES_IF_SMALL if is_small(ax) else _LINES_IF_LARGE
    levels = MaxNLocator(n_lines, steps=[1, 2, 5, 10]).tick_values(least, most)
    levels = levels[(levels > least + inner) & (levels < most - inner)]
    digits = max(int(np.ceil(-np.log10(np.diff(levels).min()) - 1e-9)), 0) if len(levels) > 1 else 3
    gid = f"{_ISOLINE}{uncertainty!r}"
    lines: list = []
    for level in levels:
        rise = uncertainty - level  # from miscalibration to discrimination
        x = np.array([max(left, bottom - rise), min(right, top - rise)])
        style = {"color": "0.5", "alpha": 0.5, "linewidth": 0.8, "zorder": 1, "gid": gid}
        lines += ax.plot(x, x + rise, label=None if lines else label, **style)
        is_right = right + rise < top
        ax.annotate(
            f"{level:.{digits}f}",
            (x[1], x[1] + rise),
            xytext=(4, 0) if is_right else (0, 3),
            textcoords="offset points",
            ha="left" if is_right else "center",
            va="center" if is_right else "bottom",
            fontsize="small",
            color="0.5",
            annotation_clip=False,
            gid=gid,
        )
    return lines


def check_same_uncertainty(ax: Any, uncertainty: float) -> None:
    """The lines of equal score are those of the same outcomes."""
    for artist in _isolines_on(ax):
        found = float(artist.get_gid().removeprefix(_ISOLINE))
        if not np.isclose(found, uncertainty, rtol=1e-6):
            raise ValueError(
                "ax must show models of the same outcomes, as lines of equal score depend on their "
                f"uncertainty; found the uncertainties {found:.4g} and {uncertainty:.4g}. Draw "
                "models of other outcomes on axes of their own."
            )
