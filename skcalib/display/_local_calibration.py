"""Maps of calibration over two features."""

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial import KDTree

from .._data import check_forecasts
from .._inputs.arrays import ArrayLike, as_array, column_names
from .._inputs.scikit_learn import Count, Interval, RandomState, StrOptions
from ..metrics._local import compute_local_calibration
from ._base import Display, axes_of, check_options, is_small, validate_options, wrap_label

_LABELS = {
    "bias": "mean PIT − 1/2\nabove 0: outcomes higher than forecast",
    "spread": "12 × variance of PITs − 1\nabove 0: forecasts too narrow",
    "error": "local calibration error\n0: calibrated",
}


@dataclass(eq=False, repr=False)
class LocalCalibrationDisplay(Display):
    """Map of calibration: where in the plane of two features forecasts are wrong.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. Each cell shows the
    calibration of the samples around its centre. A cell is grey if calibrated forecasts would often
    look as wrong there, and empty if no sample is within one bandwidth.

    Parameters
    ----------
    x : ndarray of shape (n_cells + 1,)
        Edges of the cells along the first feature.

    y : ndarray of shape (n_cells + 1,)
        Edges of the cells along the second feature.

    value : ndarray of shape (n_cells, n_cells)
        What is shown; rows are along the second feature. NaN in empty cells.

    is_chance : ndarray of shape (n_cells, n_cells)
        Whether a cell is grey.

    kind : {"bias", "spread", "error"}, default="bias"
        What the values are.

    feature_names : tuple of two str, default=("feature 0", "feature 1")
        Labels of the axes.

    name : str, default=None
        Name of the model, for the title.

    Attributes
    ----------
    mesh_ : matplotlib QuadMesh
        The coloured cells.

    colorbar_ : matplotlib Colorbar
        The colour bar.

    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    skcalib.metrics.local_calibration : The numbers, also for other numbers of features.

    Notes
    -----
    The values are the `bias`, the `spread` and the root of the `squared_error` (0 where it is
    negative) of :func:`~skcalib.metrics.local_calibration`, with a Gaussian kernel and both
    features divided by their ranges. A cell is grey if its `p_value` is above 1 minus the
    confidence level: a single cell of calibrated forecasts has a colour with at most that
    probability. Among many cells some do, mostly next to each other.

    The cost for n samples is :math:`O(n_{\\text{cells}}^2 \\, n)`, and as much for each resample:
    some seconds for 1000 samples.

    Examples
    --------
    >>> from skcalib.datasets import make_forecasts
    >>> from skcalib.display import LocalCalibrationDisplay
    >>> y, forecast, positions = make_forecasts(
    ...     problem="spatial", return_positions=True, random_state=0
    ... )
    >>> display = LocalCalibrationDisplay.from_predictions(
    ...     y, forecast, given=positions, n_cells=3, n_resamples=19, random_state=0
    ... )
    >>> display.value.round(1)  # outcomes are higher than forecast in the middle
    array([[-0.1,  0.1, -0.2],
           [ 0.1,  0.3,  0.1],
           [-0.1,  0.1, -0.2]])
    """

    x: np.ndarray
    y: np.ndarray
    value: np.ndarray
    is_chance: np.ndarray
    _: KW_ONLY
    kind: str = "bias"
    feature_names: tuple[str, str] = ("feature 0", "feature 1")
    name: str | None = None

    _takes_classes: ClassVar = False
    _method: ClassVar = "pcolormesh"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        given: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Create and draw the map of a fitted regressor.

        Parameters
        ----------
        estimator : estimator
            A fitted regressor with a forecast: with `predict_forecast`, with ``predict(X,
            return_std=True)``, or of skpro or NGBoost.

        X : array-like of shape (n_samples, n_features)
            Features of data that the regressor was not fitted on.

        y : array-like of shape (n_samples,)
            Outcomes.

        given : array-like of shape (n_samples, 2), default=None
            The two features of the map. By default `X`.

        **options : dict
            The options of `from_predictions`. `name` is by default that of the regressor's class.

        Returns
        -------
        display : LocalCalibrationDisplay
            The display, drawn.
        """
        given = X if given is None else given
        return super().from_estimator(estimator, X, y, given=given, **options)

    @classmethod
    @validate_options(
        kind=[StrOptions({"bias", "spread", "error"})],
        bandwidth=[Interval(Real, 0, None, closed="neither")],
        n_cells=[Count(1, 1000)],
    )
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_forecast: Any,
        *,
        given: ArrayLike,
        sample_weight: ArrayLike | None = None,
        kind: str = "bias",
        bandwidth: float = 0.1,
        n_cells: int = 20,
        confidence_level: float = 0.95,
        n_resamples: int = 99,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the map of outcomes and forecasts.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Outcomes.

        y_forecast : forecast
            A forecast of :mod:`skcalib.forecasts`, or whatever
            :func:`~skcalib.forecasts.as_forecast` takes, such as the tuple (mean, std).

        given : array-like of shape (n_samples, 2)
            The two features of the map.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        kind : {"bias", "spread", "error"}, default="bias"
            What the colours show: whether outcomes are higher or lower than forecast, whether
            forecasts are too narrow or too wide, or how large the quantile calibration error is.

        bandwidth : float, default=0.1
            Width of the Gaussian kernel around the centre of a cell, as a share of the range of
            each feature.

        n_cells : int, default=20
            Number of cells along each feature.

        confidence_level : float in (0, 1), default=0.95
            A single cell of calibrated forecasts is grey with at least this probability.

        n_resamples : int, default=99
            Number of times that outcomes are drawn from the forecasts, to see what is chance.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws.

        name : str, default=None
            Name of the model, for the title.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        **kwargs : dict
            Passed to matplotlib's `pcolormesh`. Other names are refused.

        Returns
        -------
        display : LocalCalibrationDisplay
            The display, drawn.
        """
        check_options(cls.from_predictions, kwargs, "pcolormesh")
        plane = check_plane(given)
        first, second = list(map(str, column_names(given))) or ("feature 0", "feature 1")
        data = check_forecasts(y_true, y_forecast, sample_weight=sample_weight, given=plane)
        positions = np.asarray(data.given)
        low, span = positions.min(axis=0), check_ranges(np.ptp(positions, axis=0))
        scaled = (positions - low) / span
        centre = (np.arange(n_cells) + 0.5) / n_cells
        query = np.column_stack([c.ravel() for c in np.meshgrid(centre, centre)])
        around = compute_local_calibration(
            replace(data, given=scaled), query, "rbf", bandwidth, n_resamples, random_state
        )
        value = np.sqrt(np.maximum(around.squared_error, 0.0))
        if kind != "error":
            value = getattr(around, kind)
        value[KDTree(scaled).query(query)[0] > bandwidth] = np.nan
        is_chance = np.asarray(around.p_value) > 1 - confidence_level
        x, y = (low + span * np.linspace(0, 1, n_cells + 1)[:, None]).T
        shape = (n_cells, n_cells)
        display = cls(
            x,
            y,
            value.reshape(shape),
            is_chance.reshape(shape),
            kind=kind,
            feature_names=(first, second),
            name=name,
        )
        return display.plot(ax, **kwargs)

    def _draw(self, ax, name, style):
        from matplotlib.colors import ListedColormap

        self.ax_ = ax = axes_of(ax, (5.5, 4.5))
        shown = np.ma.masked_where(self.is_chance | np.isnan(self.value), self.value)
        chance = np.ma.masked_where(~self.is_chance | np.isnan(self.value), self.value)
        ax.pcolormesh(self.x, self.y, chance, cmap=ListedColormap(["0.85"]))
        largest = float(np.abs(shown).max()) if shown.count() else 1.0
        own = {"cmap": "viridis", "vmin": 0.0, "vmax": largest}
        if self.kind != "error":
            own = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}
        self.mesh_ = ax.pcolormesh(self.x, self.y, shown, **(own | style))
        location = "bottom" if is_small(ax) else "right"
        self.colorbar_ = ax.figure.colorbar(self.mesh_, ax=ax, location=location)
        label = wrap_label(f"{_LABELS[self.kind]}, grey: chance", ax)
        self.colorbar_.set_label(label, fontsize="small")
        x_label, y_label = (wrap_label(one, ax) for one in self.feature_names)
        ax.set(xlabel=x_label, ylabel=y_label)
        if name:
            ax.set_title(wrap_label(name, ax))


def check_plane(given: Any) -> np.ndarray:
    """Features (n, 2)."""
    array = as_array(given, "given")
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(
            f"given must have two columns, the features of the map; found shape {array.shape}. "
            "Pass two of the features, or use skcalib.metrics.local_calibration for others."
        )
    return array


def check_ranges(span: np.ndarray) -> np.ndarray:
    """Ranges of the two features, which must not be constant."""
    if (span == 0).any():
        raise ValueError(
            f"given must not have a constant column; found one in column {int(np.argmin(span))}. "
            "Pass two features that vary."
        )
    return span
