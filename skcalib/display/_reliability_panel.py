"""One reliability diagram on its axes, with the strip of the predictions below."""

from math import ceil
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit

from .._data import ClassData
from ..metrics._reliability_curve import ReliabilityCurve
from ._base import LINES, MARKERS, Axes, draw_bars, inches_of, is_small, name_halves, strip_below
from ._panels import CURVE, DIAGONAL, curves_on

_BANDS = {"consistency": "by chance", "confidence": "confidence"}

_AXES_MARGIN = 0.02

# Height of the strip, in units of the diagram's height.
_STRIP_HEIGHT = 0.26

# Every half of the strip has at least this share of its height.
_NAME_HEIGHT = 0.2  # of the name of a half, in inches
_MIN_HALF_HEIGHT = 0.4

# The patches that draw a model's bars: an outline and an area in each half of the strip.
_N_PATCHES = 4

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

# Width of a digit and height of a line, in units of the font size.
_DIGIT, _LINE = 0.55, 1.6

_DECADE = np.log(10.0)

# Height of three lines in the corner, in units of the height of narrow axes.
_CORNER_HEIGHT = 0.24

# Predictions this close to 0 or 1 are very sure: if most are, axes are logarithmic in the odds.
_SURE = 0.01


def draw_curve(
    ax: Any, curve: ReliabilityCurve, label: str, shade: bool | str, style: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """Draw the diagonal, if it is missing, the curve, its band and the shaded area; return them."""
    from matplotlib import rcParams

    n_before = len(curves_on(ax))
    if DIAGONAL not in ax.get_legend_handles_labels()[1]:
        ax.plot([0, 1], [0, 1], color="0.4", linewidth=1, linestyle=":", label=DIAGONAL, zorder=1.5)
    defaults: dict[str, Any] = {"label": label, "gid": CURVE, "zorder": 3}
    if "linestyle" not in rcParams["axes.prop_cycle"].keys:
        defaults["linestyle"] = LINES[n_before % len(LINES)]
    if curve.share is not None:
        defaults |= {"marker": MARKERS[n_before % len(MARKERS)], "markersize": 4}
    elif np.isfinite(curve.observed).sum() == 1:
        defaults["marker"] = "o"
    (line,) = ax.plot(curve.predicted, curve.observed, **(defaults | style))
    color = line.get_color()
    band = area = None
    if curve.band is not None:
        x, lower, upper, kind, level = curve.band
        style = {"color": color, "alpha": 0.18, "linewidth": 0}
        style["label"] = f"{_BANDS[kind]} ({100 * level:.3g} %)"
        band = ax.fill_between(x, lower, upper, **style)
    if curve.decomposition is not None:
        _write_parts(ax, curve.decomposition, color)
    if shade == "bars" and curve.ends is not None:
        begin, end = curve.ends
        bars = {"align": "edge", "color": color, "alpha": 0.5, "edgecolor": "white", "zorder": 1}
        ax.bar(begin, curve.observed, end - begin, **bars)
        line.set(linestyle="none", marker="o")
        color = "tab:red"
    if shade:
        area = _shade(ax, curve, color)
    return line, band, area


def _write_parts(ax: Any, components: Any, color: tuple[Any, ...]) -> None:
    """The parts of the Brier score in the corner, below those of other models."""
    values = components.miscalibration, components.discrimination, components.uncertainty
    text = "MCB {:.3f}\nDSC {:.3f}\nUNC {:.3f}".format(*values)
    style = {"va": "top", "color": color, "fontsize": "x-small", "transform": ax.transAxes}
    ax.text(0.03, 0.97 - _CORNER_HEIGHT * len(ax.texts), text, **style)


def _shade(ax: Any, curve: ReliabilityCurve, color: tuple[Any, ...]) -> Any:
    """The area between curve and diagonal; of bins, as bars."""
    is_alone = curve.gap is not None and curve.title is None  # the panels of a grid differ
    style = {"facecolor": color, "edgecolor": color, "alpha": 0.35, "hatch": "////", "linewidth": 0}
    style["label"] = f"mean gap {curve.gap:.3f}" if is_alone else "gap"
    if curve.ends is None:
        return ax.fill_between(curve.predicted, curve.predicted, curve.observed, **style)
    begin, end = curve.ends
    height = curve.observed - curve.predicted
    return ax.bar(begin, height, end - begin, curve.predicted, align="edge", **style)


def draw_strip(ax: Axes, curve: ReliabilityCurve, line: Any) -> Any:
    """Draw the distribution of the predictions below the axes: events upwards, others downwards.

    The bars of each model are divided by its highest one, so that no model squashes another.
    """
    if curve.edges is None or curve.events is None or curve.others is None:
        return None
    strip = strip_below(ax, "predictions", _STRIP_HEIGHT)
    half = len(curve.edges) // 2
    sides = [
        "left" if bars[:half].max() <= bars[-half:].max() else "right"  # where there are fewer
        for bars in (curve.events, curve.others)
    ]
    name_halves(strip, curve.names, sides)
    unit = max(curve.events.max(), curve.others.max())
    for heights in (curve.events, -curve.others):
        draw_bars(strip, heights / unit, curve.edges, line)
    _scale_strip(strip, unit)
    return strip


def _scale_strip(strip: Any, unit: float) -> None:
    """Limits that hold the bars of all models; of a single one, a tick in the higher half."""
    heights = np.concatenate([np.append(patch.get_data().values, 0) for patch in strip.patches])
    top, bottom = heights.max(), -heights.min()
    tick = round_down(unit) * (1 if top >= bottom else -1)
    ticks = [tick] if len(strip.patches) == _N_PATCHES else []  # models differ in their units
    # in a low strip each half has room for its name beside short bars
    share = min(_NAME_HEIGHT / inches_of(strip)[1], 0.5)
    least = max(_MIN_HALF_HEIGHT * (top + bottom), share / (1 - share) * max(top, bottom))
    strip.set_ylim(-1.15 * max(bottom, least), 1.15 * max(top, least))
    labels = [f"{100 * abs(share):.3g} %" for share in ticks]
    strip.set_yticks([share / unit for share in ticks], labels, fontsize="x-small")


def round_down(value: float) -> float:
    """The largest of 1, 2, 5, 10, … that is not larger, in any power of ten."""
    power = 10.0 ** np.floor(np.log10(value))
    return max(step * power for step in (1, 2, 5) if step * power <= value * (1 + 1e-9))


def choose_scale(ax: Any, data: list[ClassData], n_panels: int) -> Literal["linear", "logit"]:
    """The scale of models already on the axes; else "logit" if most predictions are very sure."""
    for axes in np.ravel(np.array(ax, dtype=object)):
        if axes is not None and curves_on(axes):
            return _scale_of(axes)
    sure = [axes.weight @ (np.minimum(axes.proba, 1 - axes.proba) <= _SURE) for axes in data]
    return "logit" if n_panels == 1 and np.mean(sure) > 0.5 else "linear"


def _scale_of(ax: Axes) -> Literal["linear", "logit"]:
    return "linear" if ax.get_xscale() == "linear" else "logit"


def check_same_scale(ax: Axes, scale: str) -> None:
    """Models on the same axes share their scale."""
    current = _scale_of(ax)
    if curves_on(ax) and current != scale:
        raise ValueError(
            f"axis_scale must be that of the other models on the axes, {current!r}; found "
            f"{scale!r}. Pass axis_scale={current!r}, or other axes."
        )


def set_axes(axes: np.ndarray, strips: list, scale: str) -> None:
    """Limits and scale of both axes, the same for all panels."""
    from matplotlib.ticker import MaxNLocator

    # a logit axis turns linear at the end of the first bar of a strip
    bars = [bar for strip in strips if strip is not None for bar in strip.patches]
    end = min((float(bar.get_data().edges[1]) for bar in bars), default=0.01)
    for ax in axes:
        ax.set_box_aspect(1)
        if scale == "logit":
            _set_logit_scale(ax, end)
            continue
        for axis in (ax.xaxis, ax.yaxis):  # no steps of 0.25, whose labels are wider than others
            axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10]))
        ax.set(xlim=(-_AXES_MARGIN, 1 + _AXES_MARGIN), ylim=(-_AXES_MARGIN, 1 + _AXES_MARGIN))


def _set_logit_scale(ax: Any, end: float) -> None:
    """Both axes logarithmic in the odds between `end` and 1 − `end`, and linear beyond.

    So 0 and 1 have a place. The linear ends are about as wide as the step from `end` to 10 · `end`.
    """
    highest = -logit(end)

    def forward(p: np.ndarray) -> np.ndarray:
        inner = np.clip(p, end, 1 - end)
        return logit(inner) + _DECADE * (np.asarray(p) - inner) / end

    def inverse(z: np.ndarray) -> np.ndarray:
        inner = np.clip(z, -highest, highest)
        return expit(inner) + end * (np.asarray(z) - inner) / _DECADE

    size = ax.yaxis.get_major_ticks(1)[0].label1.get_size() / 72
    n_decades = round(-np.log10(end))
    n_digits = max(len(_format_tick(_tick(decade))) for decade in (-n_decades, n_decades))
    width, height = inches_of(ax)
    side = min(width, height / (1 + _STRIP_HEIGHT))
    if is_small(ax):  # labels and legend take much of its room
        side /= 2
    limits = inverse(np.array([-1.04, 1.04]) * (highest + _DECADE))
    for name, needed in (("x", _DIGIT * size * (n_digits + 1)), ("y", _LINE * size)):
        getattr(ax, f"set_{name}scale")("function", functions=(forward, inverse))
        step = ceil((2 * n_decades + 2) / max(int(side / needed), 1))
        ax.set(**{f"{name}ticks": _ticks(n_decades, step), f"{name}lim": limits})
        getattr(ax, f"{name}axis").set_major_formatter(_format_tick)


def _ticks(n_decades: int, step: int) -> list[float]:
    """Places of ticks: 0, 1, 1/2, and every `step`-th power of 10 from both ends."""
    step = min(step, n_decades + 1)
    decades = np.arange(-n_decades, n_decades + 1)
    # the ends are narrow
    inner = decades[(decades % step == 0) & (n_decades + 1 - np.abs(decades) > step / 2)]
    return [0.0, *map(_tick, inner.tolist()), 1.0]


def _tick(decade: int) -> float:
    """10^−k at the place −k, 1 − 10^−k at the place k, 1/2 at 0."""
    if decade == 0:
        return 0.5
    return 10.0**decade if decade < 0 else 1 - 10.0**-decade


def _format_tick(value: float, _: Any = None) -> str:
    if value in (0.0, 0.5, 1.0):
        return f"{value:g}"
    distance = min(value, 1 - value)
    if distance > 5e-4:
        return f"{value:.3g}"
    power = f"{round(np.log10(distance)):d}".translate(_SUPERSCRIPTS)
    return f"10{power}" if value < 0.5 else f"1−10{power}"
