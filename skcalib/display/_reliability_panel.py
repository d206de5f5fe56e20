"""One reliability diagram on its axes, with the strip of the predictions below."""

from typing import Any

import numpy as np

from ._axes import LEGEND, PartsBelow, parts_below
from ._reliability_curve import ReliabilityCurve

DIAGONAL = "calibrated"

_BANDS = {"consistency": "by chance", "confidence": "confidence"}

# Names of artists, by which the next model on the same axes finds them.
_CURVE, _STRIP = "reliability curve", "predictions"

# Models on the same axes differ in more than colour.
LINES = ("-", "--", "-.", ":")
MARKERS = "os^Dv"

_MARGIN = 0.02

# Height of the strip and distance from the diagram, in units of the diagram's height.
_HEIGHT, _DISTANCE = 0.26, 0.07

# Every half of the strip has at least this share of its height.
_LEAST_HALF = 0.4


def curves_on(ax: Any) -> list:
    """The curves that are drawn on the axes already."""
    return [line for line in ax.lines if line.get_gid() == _CURVE]


def draw_curve(
    ax: Any, curve: ReliabilityCurve, label: str, shade: bool, style: dict[str, Any]
) -> dict[str, Any]:
    """Draw the diagonal, if it is missing, the band, the shaded area and the curve."""
    from matplotlib import rcParams

    n_before = len(curves_on(ax))
    known = ax.get_legend_handles_labels()[1]
    if DIAGONAL not in known:
        ax.plot([0, 1], [0, 1], color="0.4", linewidth=1, linestyle=":", label=DIAGONAL, zorder=1.5)
    own: dict[str, Any] = {"label": label, "gid": _CURVE, "zorder": 3}
    if "linestyle" not in rcParams["axes.prop_cycle"].keys:
        own["linestyle"] = LINES[n_before % len(LINES)]
    if curve.share is not None:
        own |= {"marker": MARKERS[n_before % len(MARKERS)], "markersize": 4}
    elif np.isfinite(curve.observed).sum() == 1:
        own["marker"] = "o"
    (line,) = ax.plot(curve.predicted, curve.observed, **(own | style))
    color = line.get_color()
    band = area = None
    if curve.band is not None:
        places, lower, upper, kind, level = curve.band
        band = ax.fill_between(places, lower, upper, color=color, alpha=0.18, linewidth=0)
        note = f"{_BANDS[kind]} ({100 * level:.3g} %)"
        if note not in known:
            ax.fill([], [], color="0.5", alpha=0.35, linewidth=0, label=note)
    if shade:
        area = _shade(ax, curve, color)
    return {"line": line, "band": band, "area": area}


def _shade(ax, curve, color):
    """The area between curve and diagonal; of bins, as bars."""
    is_alone = curve.gap is not None and curve.title is None  # the panels of a grid differ
    style = {"facecolor": color, "edgecolor": color, "alpha": 0.35, "hatch": "////", "linewidth": 0}
    style["label"] = f"mean gap {curve.gap:.3f}" if is_alone else "gap"
    if curve.ends is None:
        return ax.fill_between(curve.predicted, curve.predicted, curve.observed, **style)
    begin, end = curve.ends
    height = curve.observed - curve.predicted
    return ax.bar(begin, height, end - begin, curve.predicted, align="edge", **style)


def narrowest_end(curves: list[ReliabilityCurve]) -> float:
    """Where logit axes of all curves turn linear: at the end of the first bar of the strip."""
    return min((float(curve.edges[1]) for curve in curves if curve.edges is not None), default=0.01)


def set_axes(ax: Any, scale: str, end: float) -> None:
    """Limits and scale of both axes."""
    check_same_scale(ax, scale)
    ax.set_box_aspect(1)
    if scale == "linear":
        from matplotlib.ticker import MaxNLocator

        for axis in (ax.xaxis, ax.yaxis):  # no steps of 0.25, whose labels are wider than others
            axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10]))
        ax.set(xlim=(-_MARGIN, 1 + _MARGIN), ylim=(-_MARGIN, 1 + _MARGIN))
        return
    from ._logit_scale import set_logit_scale

    set_logit_scale(ax, end)


def draw_strip(ax: Any, curve: ReliabilityCurve, line: Any) -> Any:
    """Draw the distribution of the predictions below the axes: events upwards, others downwards."""
    if curve.edges is None or curve.events is None or curve.others is None:
        return None
    strip = next((one for one in ax.child_axes if one.get_label() == _STRIP), None)
    if strip is None:
        bottom = -_DISTANCE - _HEIGHT
        strip = ax.inset_axes([0, bottom, 1, _HEIGHT], sharex=ax, label=_STRIP)
        strip.axhline(0, color="0.4", linewidth=0.6)
        ax.tick_params(labelbottom=False)
        PartsBelow(ax, strip, bottom)
        _name_halves(strip, curve)
    style = {"color": line.get_color(), "linewidth": 0.8}
    for height in (curve.events, -curve.others):
        strip.stairs(height, curve.edges, fill=True, alpha=0.25, color=line.get_color())
        strip.stairs(height, curve.edges, linestyle=line.get_linestyle(), **style)
    _scale_strip(strip, curve)
    return strip


def _name_halves(strip, curve):
    """What the bars upwards and downwards are, where there are fewer of them."""
    halves = (curve.events, 0.95, "top"), (curve.others, 0.05, "bottom")
    for name, (bars, y, side) in zip(curve.names, halves, strict=True):
        half = len(bars) // 2
        x, end = (0.03, "left") if bars[:half].max() <= bars[-half:].max() else (0.97, "right")
        strip.text(x, y, name, transform=strip.transAxes, va=side, ha=end, fontsize="x-small")


def legend_entries(ax: Any) -> tuple[list, list]:
    """Handles and labels: curves before areas, bands and the diagonal."""
    pairs = list(zip(*ax.get_legend_handles_labels(), strict=True))
    curves = curves_on(ax)
    pairs.sort(key=lambda pair: (pair[0] not in curves, pair[1] == DIAGONAL))
    return [handle for handle, _ in pairs], [label for _, label in pairs]


def draw_legend(ax: Any) -> None:
    """The legend below the axes, where it hides nothing."""
    parts_below(ax).place_legend(ax, *legend_entries(ax), **LEGEND)


def _scale_strip(strip, curve):
    """Limits that hold the bars of all models, and one tick in each half that has room."""
    heights = np.concatenate([np.append(one.get_data().values, 0) for one in strip.patches])
    top, bottom = heights.max(), -heights.min()
    whole = top + bottom
    top, bottom = max(top, _LEAST_HALF * whole), max(bottom, _LEAST_HALF * whole)
    strip.set_ylim(-1.15 * bottom, 1.15 * top)
    reached = [(heights.max(), top), (heights.min(), bottom)]
    ticks = [
        np.copysign(_round_down(abs(height)), height)
        for height, room in reached
        if abs(height) >= 0.5 * room  # elsewhere the tick would stand at the edge
    ]
    strip.set_yticks(ticks, [f"{100 * abs(tick):.3g} %" for tick in ticks], fontsize="x-small")
    strip.tick_params(axis="y", length=2, pad=2)


def _round_down(value):
    """The largest of 1, 2, 5, 10, … that is not larger, in any power of ten."""
    power = 10.0 ** np.floor(np.log10(value))
    return max(step * power for step in (1, 2, 5) if step * power <= value * (1 + 1e-9))


def check_same_scale(ax: Any, scale: str) -> None:
    """Models on the same axes share their scale."""
    found = "linear" if ax.get_xscale() == "linear" else "logit"
    if curves_on(ax) and found != scale:
        raise ValueError(
            f"scale must be that of the other models on the axes, {found!r}; found {scale!r}. Pass "
            f"scale={found!r}, or other axes."
        )
