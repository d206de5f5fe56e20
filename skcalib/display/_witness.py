"""Where, and in which direction, the model errs."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from .._data import ClassData, check_predictions
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import Label
from .._numerics.smooth import lipschitz_maximiser
from .._numerics.smooth_expected import interpolate_smooth_mass
from ..lenses import Lens
from ..metrics._reliability_curve import MIN_CURVE_BANDWIDTH
from ._base import LINES, Axes, check_options, draw_bars, name_halves, strip_below, validate_options
from ._panels import CURVE, CurvesDisplay, choose_panels, curves_on, problems_of
from ._reliability_panel import round_down

# Height of the strip, in units of the height of the axes.
_WITNESS_STRIP_HEIGHT = 0.35

_N_BINS = 40

# The axis reaches at least this far from 0, or as far as the mean probability of the rarer outcome
# if that is less, so that smaller curves look flat.
_FLATNESS_ATOL = 0.1

# Standard deviation of the kernel that smooths the residuals, in units of that of the predictions
# over the fifth root of the effective number of samples.
_SMOOTHNESS = 2.0

# The curve leaves out this share of the lowest and of the highest predictions, and is drawn at this
# many points.
_TAIL, _N_POSITIONS = 0.025, 201


@dataclass(frozen=True, eq=False)
class WitnessCurve:
    """The numbers of one panel, residuals and witness, to draw them with any library.

    Parameters
    ----------
    predicted : ndarray of shape (n_distinct,)
        The sorted distinct predictions.

    witness : ndarray of shape (n_distinct,)
        The function at these predictions, between −1 and 1, with Lipschitz constant 1.

    residual : ndarray of shape (n_distinct,)
        The weights of the samples times outcome minus prediction, summed at each prediction.

    positions : ndarray of shape (n_positions,)
        Where the residuals are smoothed.

    smoothed : ndarray of shape (n_positions,)
        Kernel means of outcome minus prediction there.

    share : ndarray of shape (n_distinct,)
        The shares of the samples at these predictions.

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
    positions: np.ndarray
    smoothed: np.ndarray
    share: np.ndarray
    title: str | None = None
    x_label: str = "predicted probability"

    @property
    def error(self) -> float:
        """The smooth calibration error."""
        return float(self.witness @ self.residual)


def witness_curve(data: ClassData, **names: Any) -> WitnessCurve:
    """Return the residuals of two classes, smoothed and summed, and their witness."""
    points, mass = data.pool_residuals()
    index = np.searchsorted(points, data.proba)
    share = np.bincount(index, data.weight, len(points))
    deviation = np.sqrt(share @ (points - share @ points) ** 2)
    bandwidth = _SMOOTHNESS * float(deviation) * data.inverse_effective_size**0.2
    bandwidth = max(bandwidth, MIN_CURVE_BANDWIDTH)
    first, last = points[np.searchsorted(np.cumsum(share), [_TAIL, 1 - _TAIL])].tolist()
    positions = np.unique(np.linspace(first, last, _N_POSITIONS))
    smoothed, density = (
        interpolate_smooth_mass(points, each, bandwidth, positions) for each in (mass, share)
    )
    witness = lipschitz_maximiser(points, mass)
    return WitnessCurve(points, witness, mass, positions, smoothed / density, share, **names)


@dataclass(eq=False, repr=False)
class WitnessDisplay(CurvesDisplay):
    """Residuals and their witness: where, and in which direction, the model errs.

    Made by :meth:`from_estimator` or :meth:`from_predictions`. The curve is the smoothed residual:
    the mean of outcome minus prediction among predictions nearby, which is above 0 where they are
    too low. The strip below shows the residuals themselves, summed in bins, so that bars are long
    where many predictions are far off. The smooth calibration error in the legend is the sum of
    these residuals times :func:`skcalib.metrics.smooth_calibration_witness`.

    Parameters
    ----------
    curves : list of WitnessCurve
        The numbers of each panel.

    name : str, default=None
        Name of the model, for the legend.

    left_out : dict, default=None
        The titles and errors of the panels for which there is no room, the largest first.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the curve, of the first panel if there are several.

    figure_ : matplotlib Figure
        The figure.

    line_ : matplotlib Line2D
        The curve of the first panel.

    axes_ : ndarray of matplotlib Axes of shape (n_panels,)
        The axes of all panels.

    lines_ : list of matplotlib Line2D
        The curves.

    strips_ : list of matplotlib Axes
        The axes of the bars, below the curves.

    bars_ : list of matplotlib StepPatch
        The sums of the residuals in 40 bins of equal width.

    legend_ : matplotlib Legend
        The legend.

    See Also
    --------
    skcalib.metrics.smooth_calibration_witness : The witness.

    Examples
    --------
    >>> from skcalib.display import WitnessDisplay
    >>> display = WitnessDisplay.from_predictions([1, 1, 0], [0.2, 0.3, 0.9])
    >>> round(display.curves[0].error, 3)
    0.387
    """

    curves: list[WitnessCurve]

    _size: ClassVar = (5, 4.5)
    _curve: ClassVar = "smoothed residuals"
    _y_label: ClassVar = "observed − predicted"
    _measure: ClassVar = "smooth calibration error"

    @classmethod
    @validate_options()
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Label | None = None,
        labels: ArrayLike | None = None,
        multi_class: Literal["confidence", "top-label", "classwise"] | Lens = "confidence",
        by: Any = None,
        max_panels: int = 9,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the residuals of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels: strings, integers or booleans.

        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities of the positive class, or of all classes (rows sum to 1).

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take
            all arrays at ``np.repeat(np.arange(n), counts)``.

        pos_label : int, float, bool or str, default=None
            With two classes, the one whose probability is shown, and which a one-dimensional
            `y_proba` holds. By default the last of `labels`.

        labels : array-like of shape (n_classes,), default=None
            The classes, in the order of the columns of `y_proba`. By default the sorted labels in
            `y_true`.

        multi_class : {"confidence", "top-label", "classwise"} or Lens, default="confidence"
            For more than two classes, what is shown: the probability of the predicted class and
            whether it was right; the same for each predicted class alone; or each class against the
            rest. The last two are a grid of panels, the largest errors first. Or a lens, an object
            such as those of :mod:`skcalib.lenses`.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
            Subgroups that are shown apart, in a grid of panels: a column, or several, whose
            crossings are shown.

        max_panels : int, default=9
            The largest number of panels; others are named below.

        name : str, default=None
            Name of the model, for the legend.

        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. Displays of several models can share it. A grid
            takes the place of the axes, or is drawn on as many axes as it has panels.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curves. Other names are refused.

        Returns
        -------
        display : WitnessDisplay
            The display, drawn.
        """
        check_options(cls.from_predictions, kwargs)
        data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
        problems = problems_of(data, multi_class, by, np.shape(y_true)[0], sample_weight)
        curves = [
            witness_curve(problem.predictions, title=problem.title, x_label=problem.x_label)
            for problem in problems
        ]
        errors = [curve.error for curve in curves]
        panels, left_out = choose_panels(problems, errors, max_panels, keep_order=by is not None)
        return cls([curves[k] for k in panels], name=name, left_out=left_out).plot(ax, **kwargs)

    def _draw_curves(self, label: str, style: dict[str, Any]) -> list[Any]:
        self.strips_, self.bars_, lines = [], [], []
        for ax, curve in zip(self.axes_, self.curves, strict=True):
            linestyle = LINES[len(curves_on(ax)) % len(LINES)]
            defaults = {"label": label, "linestyle": linestyle, "gid": CURVE}
            if len(curve.positions) == 1:
                defaults["marker"] = "o"
            if not curves_on(ax):
                ax.axhline(0, color="0.4", linewidth=0.6, zorder=1.5)
                name_halves(ax, ("too low", "too high"), ("left", "left"))
            (line,) = ax.plot(curve.positions, curve.smoothed, **(defaults | style))
            lines.append(line)
            strip = strip_below(ax, "residuals", _WITNESS_STRIP_HEIGHT)
            name_halves(strip, ("too low", "too high"), ("left", "left"))
            sums, edges = np.histogram(curve.predicted, _N_BINS, (0, 1), weights=curve.residual)
            self.strips_.append(strip)
            self.bars_.append(draw_bars(strip, sums, edges, line))
        _set_witness_limits(self.axes_, self.strips_, self.curves)
        return lines


def _set_witness_limits(axes: Any, strips: list[Any], curves: list[WitnessCurve]) -> None:
    """Give all panels the same limits, not too close, so that a flat curve looks flat.

    The limits of the strips hold all bars and leave room for names.
    """
    rarer = max(curve.share @ np.minimum(curve.predicted, 1 - curve.predicted) for curve in curves)
    least = max(min(_FLATNESS_ATOL, rarer), 1e-9)
    values = np.concatenate([line.get_ydata() for ax in axes for line in curves_on(ax)])
    ends = 1.4 * min(-least, values.min()), 1.4 * max(least, values.max())
    heights = [np.abs(patch.get_data().values).max() for strip in strips for patch in strip.patches]
    most = max(*heights, 1e-12)
    tick = round_down(most)
    for ax, strip in zip(axes, strips, strict=True):
        ax.set(xlim=(-0.02, 1.02), ylim=ends)
        ax.locator_params(axis="y", nbins=5)
        strip.set_ylim(-1.9 * most, 1.9 * most)
        strip.set_yticks([tick], [f"{tick:g}"], fontsize="x-small")
