"""The numbers of one reliability diagram."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from .._inputs.predictions import Predictions
from ..metrics import (
    expected_calibration_error,
    smooth_calibration_error,
    smooth_expected_calibration_error,
)
from ._reliability_methods import Binned, CurveMethod, Isotonic, Smooth, end_of

# The bars of the strip that shows the predictions, unless the bins of the curve are used.
_BARS = 20


class ReliabilityBand(NamedTuple):
    """Where a curve lies with the probability `level`, at each place."""

    places: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    kind: str
    level: float


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """The numbers of one reliability diagram, to draw them with any library.

    Parameters
    ----------
    predicted : ndarray of shape (n_knots,)
        Predicted probabilities at the knots of the curve, sorted; of bins, the mean predictions.

    observed : ndarray of shape (n_knots,)
        Frequencies of the event at the knots; NaN where no prediction is near.

    share : ndarray of shape (n_knots,), default=None
        Shares of the predictions in the bins. None if there are no bins.

    ends : tuple of two ndarrays of shape (n_knots,), default=None
        Where the bins begin and end. None if there are no bins.

    band : tuple, default=None
        Places, lower and upper end of the band at the places, its kind and its level.

    edges : ndarray of shape (n_bars + 1,), default=None
        Ends of the bars that show how the predictions are distributed.

    events : ndarray of shape (n_bars,), default=None
        Share of all samples that are in the bar and have the event.

    others : ndarray of shape (n_bars,), default=None
        Share of all samples that are in the bar and do not have the event.

    error : float, default=None
        The calibration error in the legend.

    measure : str, default="error"
        What the error is called there.

    gap : float, default=None
        Mean distance between the curve and the diagonal, over the predictions: the area that is
        shaded on request, weighted by the predictions.

    names : tuple of two str, default=("event", "no event")
        What the event is called, and what is called what is not the event.

    title : str, default=None
        The class or subgroup of the samples.

    x_label : str, default="predicted probability"
        What is predicted, for the axis.

    Examples
    --------
    >>> from skcalib.display import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_predictions(
    ...     [0, 1, 1, 1], [0.1, 0.1, 0.9, 0.9], method="binned", band=None
    ... )
    >>> curve = display.curves[0]
    >>> curve.predicted
    array([0.1, 0.9])
    >>> curve.observed
    array([0.5, 1. ])
    >>> float(curve.share @ abs(curve.observed - curve.predicted))  # the error
    0.25
    """

    predicted: np.ndarray
    observed: np.ndarray
    share: np.ndarray | None = None
    ends: tuple[np.ndarray, np.ndarray] | None = None
    band: Any = None
    edges: np.ndarray | None = None
    events: np.ndarray | None = None
    others: np.ndarray | None = None
    error: float | None = None
    measure: str = "error"
    gap: float | None = None
    names: tuple[str, str] = ("event", "no event")
    title: str | None = None
    x_label: str = "predicted probability"


class Options(NamedTuple):
    """How curves are made."""

    method: str
    n_bins: int
    strategy: str
    bandwidth: float | None
    band: str | None
    level: float
    n_resamples: int
    scale: str


def error_of(predictions: Predictions, options: Options) -> tuple[str, float]:
    """The name and the value of the measure that belongs to the method."""
    data: dict[str, Any] = {"sample_weight": predictions.weight, "labels": [0, 1]}
    label, proba = predictions.label, predictions.proba
    if options.method == "binned":
        data |= {"n_bins": options.n_bins, "strategy": options.strategy}
        return "ECE", float(expected_calibration_error(label, proba, **data))
    if options.method == "smooth":
        bandwidth = options.bandwidth
        error = smooth_expected_calibration_error(label, proba, bandwidth=bandwidth, **data)
        return "smECE", float(error)
    return "smooth CE", float(smooth_calibration_error(label, proba, **data))


def reliability_curve(
    predictions: Predictions, options: Options, random_state: np.random.RandomState, **names: Any
) -> ReliabilityCurve:
    """The curve of two classes, its band and the distribution of the predictions."""
    order = np.argsort(predictions.proba, kind="stable")
    predictions = predictions.take(order)
    measure, error = error_of(predictions, options)
    method = _method(predictions, options, error)
    label = predictions.label.astype(np.float64)
    predicted, observed = method.curve(label)
    band, gap = None, error
    if isinstance(method, Isotonic):
        gap = method.gap(label)
    if options.band == "consistency":
        band = _consistency(method, predictions, options, random_state)
    elif options.band == "confidence":
        lower, upper = method.bounds(label, (1 - options.level) / 2)
        band = ReliabilityBand(method.places, lower, upper, options.band, options.level)
    return ReliabilityCurve(
        predicted,
        observed,
        share=method.share,
        ends=method.ends,
        band=band,
        **_distribution(predictions, options),
        error=error,
        measure=measure,
        gap=gap,
        **names,
    )


def _method(predictions: Predictions, options: Options, error: float) -> CurveMethod:
    if options.method == "isotonic":
        return Isotonic(predictions, options.scale)
    if options.method == "binned":
        return Binned(predictions, options.n_bins, options.strategy)
    bandwidth = error if options.bandwidth is None else options.bandwidth
    return Smooth(predictions, bandwidth, options.scale)


def _consistency(method, predictions, options, random_state):
    """The curves of labels drawn from the predictions."""
    generator = np.random.default_rng(random_state.randint(2**31 - 1))
    curves = [
        method.at_places(predictions.redraw(generator, 1)[0]) for _ in range(options.n_resamples)
    ]
    tail = (1 - options.level) / 2
    lower, upper = np.quantile(curves, [tail, 1 - tail], axis=0)
    return ReliabilityBand(method.places, lower, upper, "consistency", options.level)


def _distribution(predictions, options):
    """Edges of bars, and the shares of samples with and without the event in each."""
    uses_bins = options.method == "binned" and options.strategy == "uniform"
    n_bars = options.n_bins if uses_bins else _BARS
    edges = np.arange(n_bars + 1) / n_bars
    if options.scale == "logit":
        end = end_of(predictions.proba)
        inner = expit(np.linspace(logit(end), -logit(end), _BARS + 1))
        edges = np.concatenate([[0], inner, [1]])
    shares = [
        np.histogram(
            predictions.proba, edges, weights=predictions.weight * (predictions.label == k)
        )
        for k in (0, 1)
    ]
    return {"edges": edges, "events": shares[1][0], "others": shares[0][0]}
