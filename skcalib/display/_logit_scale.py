"""A logit axis on which 0 and 1 have a place."""

from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, Locator
from scipy.special import expit, logit

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

# Width of a digit and height of a line, in units of the font size.
_DIGIT, _LINE = 0.55, 1.6

_DECADE = np.log(10.0)


class _Ticks(Locator):
    """0, 1, 1/2 and powers of 10 from both ends, as many as there is room for."""

    def __init__(self, n_decades: int) -> None:
        self.n_decades = n_decades

    def __call__(self) -> list[float]:
        places = np.arange(-self.n_decades, self.n_decades + 1)
        step = next((s for s in range(1, self.n_decades + 1) if self._fits(s)), self.n_decades + 1)
        # the ends are narrow
        inner = places[(places % step == 0) & (self.n_decades + 1 - np.abs(places) > step / 2)]
        return [0.0, *map(_tick, inner.tolist()), 1.0]

    def _fits(self, step: int) -> bool:
        axis: Any = self.axis
        box = axis.axes.bbox
        size = axis.get_major_ticks(1)[0].label1.get_size() * axis.axes.figure.dpi / 72  # in pixels
        if axis.axis_name == "x":
            digits = max(len(_text(_tick(k))) for k in (self.n_decades, -self.n_decades))
            room, needed = box.width, _DIGIT * size * (digits + 1)
        else:
            room, needed = box.height, _LINE * size
        return room * step / (2 * self.n_decades + 2) >= needed


def _tick(place: int) -> float:
    """10^−k at the place −k, 1 − 10^−k at the place k, 1/2 at 0."""
    if place == 0:
        return 0.5
    return 10.0**place if place < 0 else 1 - 10.0**-place


def _text(value: float, _: Any = None) -> str:
    if value in (0.0, 0.5, 1.0):
        return f"{value:g}"
    distance = min(value, 1 - value)
    if distance > 5e-4:
        return f"{value:.3g}"
    power = f"10{round(np.log10(distance)):d}"
    power = "10" + power[2:].translate(_SUPERSCRIPTS)
    return power if value < 0.5 else f"1−{power}"


def set_logit_scale(ax: Any, end: float) -> None:
    """Both axes logarithmic in the odds between `end` and 1 − `end`, and linear beyond.

    The linear ends are as wide as the step from `end` to 10 · `end` or so. If the axes have such a
    scale that reaches further, it stays.
    """
    locator = ax.xaxis.get_major_locator()
    if isinstance(locator, _Ticks):
        end = min(end, 10.0**-locator.n_decades)
    highest = -logit(end)

    def forward(p):
        p = np.asarray(p, dtype=np.float64)
        inner = logit(np.clip(p, end, 1 - end))
        beyond = np.where(p < end, p / end - 1, np.where(p > 1 - end, 1 - (1 - p) / end, 0.0))
        return inner + _DECADE * beyond

    def inverse(z):
        z = np.asarray(z, dtype=np.float64)
        inner = expit(np.clip(z, -highest, highest))
        below, above = np.minimum(z + highest, 0), np.maximum(z - highest, 0)
        return inner + end * (below + above) / _DECADE

    decades = round(-np.log10(end))
    for name in ("x", "y"):
        getattr(ax, f"set_{name}scale")("function", functions=(forward, inverse))
        axis = getattr(ax, f"{name}axis")
        axis.set_major_locator(_Ticks(decades))
        axis.set_major_formatter(FuncFormatter(_text))
    ax.set(xlim=_limits(inverse, highest), ylim=_limits(inverse, highest))


def _limits(inverse: Any, highest: float) -> np.ndarray:
    reach = (highest + _DECADE) * 1.04
    return inverse([-reach, reach])
