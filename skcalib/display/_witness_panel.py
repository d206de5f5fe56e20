"""One witness on its axes, with the strip of the residuals below."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._inputs.predictions import Predictions
from .._numerics.smooth import lipschitz_maximiser
from ._axes import PartsBelow
from ._reliability_panel import LINES

# Name of the strip, by which the next model on the same axes finds it.
_STRIP = "residuals"

# Height of the strip and distance from the curve, in units of the height of the axes.
_HEIGHT, _DISTANCE = 0.35, 0.07

_N_BINS = 40


@dataclass(frozen=True, eq=False)
class WitnessCurve:
    """The numbers of one witness, to draw them with any library.

    Parameters
    ----------
    predicted : ndarray of shape (n_distinct,)
        The sorted distinct predictions.

    witness : ndarray of shape (n_distinct,)
        The function at these predictions, between −1 and 1, with Lipschitz constant 1.

    residual : ndarray of shape (n_distinct,)
        The weights of the samples times outcome minus prediction, summed at each prediction.

    title : str, default=None
        The class or subgroup of the samples.

    x_label : str, default="predicted probability"
        What is predicted, for the axis.

    Attributes
    ----------
    error : float
        The smooth calibration error, the sum of `witness` times `residual`.

    Examples
    --------
    >>> from skcalib.display import WitnessDisplay
    >>> (curve,) = WitnessDisplay.from_predictions([1, 1, 0], [0.2, 0.3, 0.9]).curves
    >>> curve.witness
    array([1. , 0.9, 0.3])
    >>> round(curve.error, 3)
    0.387
    """

    measure: ClassVar[str] = "smooth CE"

    predicted: np.ndarray
    witness: np.ndarray
    residual: np.ndarray
    title: str | None = None
    x_label: str = "predicted probability"

    @property
    def error(self) -> float:
        """The smooth calibration error."""
        return float(self.witness @ self.residual)


def witness_curve(predictions: Predictions, **names: Any) -> WitnessCurve:
    """The witness of two classes."""
    points, mass = predictions.pooled_mass()
    return WitnessCurve(points, lipschitz_maximiser(points, mass), mass, **names)


def draw_witness(ax: Any, curve: WitnessCurve, label: str, style: dict[str, Any]) -> dict[str, Any]:
    """Draw the curve, and the strip of the residuals below."""
    own: dict[str, Any] = {"label": label, "linestyle": LINES[len(ax.lines) % len(LINES)]}
    if len(curve.predicted) == 1:
        own["marker"] = "o"
    (line,) = ax.plot(curve.predicted, curve.witness, **(own | style))
    strip = _strip_below(ax)
    sums, edges = np.histogram(curve.predicted, _N_BINS, (0, 1), weights=curve.residual)
    color = line.get_color()
    strip.stairs(sums, edges, fill=True, alpha=0.25, color=color)
    bars = strip.stairs(sums, edges, linewidth=0.8, color=color, linestyle=line.get_linestyle())
    return {"line": line, "strip": strip, "bars": bars}


def _strip_below(ax):
    """The axes of the residuals, new or of the last model."""
    strip = next((one for one in ax.child_axes if one.get_label() == _STRIP), None)
    if strip is None:
        bottom = -_DISTANCE - _HEIGHT
        strip = ax.inset_axes([0, bottom, 1, _HEIGHT], sharex=ax, label=_STRIP)
        strip.axhline(0, color="0.4", linewidth=0.6)
        ax.tick_params(labelbottom=False)
        PartsBelow(ax, strip, bottom)
        for text, y, side in (("too low", 0.95, "top"), ("too high", 0.05, "bottom")):
            strip.text(
                0.02, y, text, transform=strip.transAxes, va=side, ha="left", fontsize="x-small"
            )
    return strip


def set_limits(axes: Any, strips: list[Any]) -> None:
    """The same limits for all panels: those between which witnesses of that sign may be, so that a
    flat one looks flat, and in the strips those that hold all bars and leave room for names.
    """
    values = np.concatenate([line.get_ydata() for ax in axes for line in ax.lines])
    ends = (-1.05 if values.min() < 0 else -0.05, 1.05 if values.max() > 0 else 0.05)
    heights = [np.abs(one.get_data().values).max() for strip in strips for one in strip.patches]
    most = 1.9 * max(*heights, 1e-12)
    for ax, strip in zip(axes, strips, strict=True):
        ax.set(xlim=(-0.02, 1.02), ylim=ends)
        strip.set_ylim(-most, most)
        strip.set_yticks([0], ["0"], fontsize="x-small")
        strip.tick_params(axis="y", length=2, pad=2)
