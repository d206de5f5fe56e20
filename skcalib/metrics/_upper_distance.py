"""Upper distance to calibration: the least change by a predictor that knows no more."""

from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Literal

import numpy as np

from .._data import ClassData, check_predictions, with_given
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import Average, Interval, Label, validate_params
from .._inputs.warnings import warn
from .._numerics import upper_distance
from .._numerics.distance import CertifiedTransport, transport_bounds
from .._numerics.interval import optimal_partition
from .._numerics.upper_distance import Levels
from ..lenses import Lens
from ._reductions import map_reduction, reduce_classes
from ._registry import register_metric, select_options

# Powers of distances of higher orders would underflow.
_ORDER_CONSTRAINTS: dict = {"order": [Interval(Real, 1, 16, closed="both")]}

# Partitions are built from a transport of this tolerance. Its nodes are closer to each other than
# the tolerance asks for, else the distance of 10⁵ predictions rises by up to six per cent.
_TRANSPORT_ATOL, _TRANSPORT_STEP = 1e-4, 2.5e-5

# Above this number of distinct predictions, the intervals that are one of the guesses are those of
# least interval error up to this precision.
_MAX_EXACT_GUESS_POINTS, _GUESS_PRECISION = 2**12, 3e-4


@dataclass(frozen=True, eq=False)
class UpperDistanceCertificate:
    """Certificate of the bracket on the upper distance to calibration.

    The values prove the upper end: they are calibrated, and their mean distance from the
    predictions is `upper`. Both can be checked with a few lines of NumPy.

    Parameters
    ----------
    lower : float
        Lower end of the bracket. It is `upper` if all partitions were compared.

    upper : float
        Upper end of the bracket, which :func:`upper_distance_to_calibration` returns.

    values : ndarray of shape (n_samples,)
        The calibrated predictions of the samples, without those of weight 0. Samples with the same
        prediction, and the same `given`, have the same value; it is the mean outcome of all samples
        that have it.

    See Also
    --------
    upper_distance_certificate : The function that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import upper_distance_certificate
    >>> y_true, y_proba = np.array([0, 1, 1]), np.array([0.4, 0.6, 0.9])
    >>> certificate = upper_distance_certificate(y_true, y_proba)
    >>> certificate.values
    array([0.5, 0.5, 1. ])
    >>> bool(np.isclose(np.mean(np.abs(certificate.values - y_proba)), certificate.upper))
    True
    """

    lower: float
    upper: float
    values: np.ndarray


def interval_change(data: ClassData) -> float:
    """Return the smallest change with cells that are intervals; of all cells if that is exact."""
    levels, _, guess = _levels(data)
    return levels.change(upper_distance.nearest_intervals(levels, guess))


def _upper_distance(data: ClassData, order: float) -> float:
    levels, _, cells, _ = _nearest(data, order)
    return levels.change(cells, order) ** (1 / order)


def make_certificate(data: ClassData, order: float = 1.0) -> UpperDistanceCertificate:
    """Return the bracket on the upper distance, and the predictions that prove its upper end."""
    levels, level, cells, transport = _nearest(data, order)
    lower = upper = levels.change(cells, order) ** (1 / order)
    if transport is not None:  # of any order: a mean is no larger than a root mean power
        lower_distance = transport_bounds(*data.pool_label_weights()[:2], _TRANSPORT_ATOL).lower
        lower = min(upper, max(lower_distance, upper_distance.relaxation_bound(levels)))
    return UpperDistanceCertificate(lower, upper, levels.means(cells)[level])


def _nearest(
    data: ClassData, order: float
) -> tuple[Levels, np.ndarray, np.ndarray, CertifiedTransport | None]:
    """Return the levels, the level of each sample, and the cells of least change.

    The last result is the transport from which the cells were built; None if all were compared.
    """
    levels, level, guess = _levels(data)
    if upper_distance.is_exact(levels):
        return levels, level, upper_distance.exhaustive_partition(levels, order), None
    weights = data.pool_label_weights()
    transport = transport_bounds(*weights[:2], _TRANSPORT_ATOL, _TRANSPORT_STEP)
    return levels, level, upper_distance.nearest_cells(levels, transport, guess, order), transport


def _levels(data: ClassData) -> tuple[Levels, np.ndarray, np.ndarray]:
    """Return the levels, the level of each sample, and cells (m,) that are intervals."""
    points, given, weight = data.proba, data.given, data.weight
    if given is None:
        points, level = np.unique(points, return_inverse=True)
    else:
        code = np.unique(given, axis=0 if given.ndim > 1 else None, return_inverse=True)[1]
        table = np.column_stack([points, code.ravel()])
        rows, level = np.unique(table, axis=0, return_inverse=True)
        points, level = rows[:, 0], level.ravel()  # which NumPy 2.0 gives a second axis
        _warn_lone_inputs(np.bincount(level))
    positive = np.bincount(level, weight * data.label)
    levels = Levels(points, np.bincount(level, weight), positive)
    if upper_distance.is_exact(levels):
        return levels, level, np.zeros(len(points), dtype=np.intp)
    pooled = data.pool_label_weights()
    precision = _GUESS_PRECISION if len(pooled.points) > _MAX_EXACT_GUESS_POINTS else None
    start = pooled.points[optimal_partition(*pooled[:2], precision)]
    return levels, level, np.searchsorted(start, points, side="right") - 1


def _warn_lone_inputs(n_rows: np.ndarray) -> None:
    """Warn if most samples are alone at their input: outcomes there are no probabilities."""
    if 2 * (n_rows == 1).sum() > n_rows.sum():
        warn(
            f"given should hold inputs that recur; found {(n_rows == 1).sum()} of {n_rows.sum()} "
            "samples alone at theirs. A predictor of them may know the labels, so the distance is "
            "that of the sample and not of the model. Pass groups or cells instead.",
            UserWarning,
        )


_upper_distance_to_calibration = reduce_classes(_upper_distance)


@register_metric(
    _upper_distance_to_calibration, _ORDER_CONSTRAINTS, cost="n log n", supports_counts=True
)
def upper_distance_to_calibration(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    given: ArrayLike | None = None,
    order: float = 1.0,
    multi_class: Literal["confidence", "top-label", "classwise"] | Lens = "confidence",
    average: Average = "auto",
    n_jobs: int | None = None,
) -> float | np.ndarray:
    r"""Upper distance to calibration: the least change by a map of the predictions.

    Equal predictions stay equal, unlike in :func:`lower_distance_to_calibration`. It is 0 if, at
    every prediction, outcomes and prediction agree on average; on samples of a calibrated model it
    is positive (biased upwards). It is the best upper bound on the distance to calibration that
    predictions and labels alone allow [1]_; with the inputs as `given`, that distance itself. For
    more than 12 distinct predictions (or inputs) it is the upper end of a bracket. With two classes
    it is about the positive class, not the confidence.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        What the calibrated predictor may know beside the prediction, such as the inputs of the
        model or groups: equal rows are the same input. By default nothing.

    order : float in [1, 16], default=1.0
        The root mean power that is taken: 1 for the mean distance, 2 for the root mean square.

    multi_class : {"confidence", "top-label", "classwise"} or Lens, default="confidence"
        More than two classes: the predicted class's probability and whether it was right; the same
        for each predicted class; or each class against the rest. Or a lens of
        :mod:`skcalib.lenses`.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        "macro" is the mean over classes. "weighted" weights classes by their share of the
        predictions ("top-label") or labels ("classwise"). "auto" is "weighted" for "top-label",
        else "macro". None returns the array of all values, even if there is only one. A class that
        is never predicted is NaN, and left out of means.

    n_jobs : int, default=None
        Number of threads for the classes; see :obj:`joblib.parallel_backend`.

    Returns
    -------
    distance : float or ndarray of shape (n_classes,)
        Between 0 and 1, in units of probability; 0 is best.

    Warns
    -----
    UserWarning
        If more than half of the samples are alone at their `given`.

    See Also
    --------
    upper_distance_certificate : The bracket, and what proves it.
    calibration_distance_bounds : Bounds for samples, too.
    lower_distance_to_calibration : The best lower bound.

    Notes
    -----
    Let v be the distinct predictions :math:`p_v` (with what is given) of weight :math:`w_v`, with
    sum 1, and mean outcome :math:`\eta_v`. The distance is the minimum over all partitions into
    cells, which need not be intervals,

    .. math::
        \min_B \Big( \sum_v w_v |p_v - \eta_{B(v)}|^r \Big)^{1/r}, \quad
        \eta_B = \sum_{v \in B} w_v \eta_v \Big/ \sum_{v \in B} w_v,

    with r the order (Definitions 5.2 and, for inputs, 4.1 of [1]_).

    Use it where predictions (or inputs) recur many times, or where rows and weights are a whole
    distribution; :func:`calibration_distance_bounds` is for samples without ties.

    For m up to 12 distinct values it is exact, in :math:`O(4^m)`. For more it is the best that is
    found: for order 1 never more than :func:`interval_calibration_error` (with ``precision=3e-4``
    if there are more than 4096 distinct predictions).

    References
    ----------
    .. [1] Błasiok, Gopalan, Hu and Nakkiran (2023). A Unifying Theory of Distance from Calibration.
       STOC. :arxiv:`2211.16886`

    Examples
    --------
    >>> from skcalib.metrics import upper_distance_to_calibration
    >>> round(upper_distance_to_calibration([0, 1], [0.4, 0.6]), 4)
    0.1
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    data = with_given(data, y_true, given, sample_weight)
    return _upper_distance_to_calibration(data, **select_options(locals()))


@validate_params(_ORDER_CONSTRAINTS)
def upper_distance_certificate(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    given: ArrayLike | None = None,
    order: float = 1.0,
    multi_class: Literal["confidence", "top-label", "classwise"] | Lens = "confidence",
    n_jobs: int | None = None,
) -> UpperDistanceCertificate | list[UpperDistanceCertificate | None]:
    """Certificate of the upper distance to calibration: its bracket, and calibrated predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        What the calibrated predictor may know beside the prediction, such as the inputs of the
        model or groups: equal rows are the same input. By default nothing.

    order : float in [1, 16], default=1.0
        The root mean power that is taken: 1 for the mean distance, 2 for the root mean square.

    multi_class : {"confidence", "top-label", "classwise"} or Lens, default="confidence"
        More than two classes: the predicted class's probability and whether it was right; the same
        for each predicted class; or each class against the rest. Or a lens of
        :mod:`skcalib.lenses`.

    n_jobs : int, default=None
        Number of threads for the classes; see :obj:`joblib.parallel_backend`.

    Returns
    -------
    certificate : UpperDistanceCertificate
        The bracket, and what proves its upper end. With "top-label" and "classwise" for more than
        two classes, a list of them, with None for a class never predicted.

    Warns
    -----
    UserWarning
        If more than half of the samples are alone at their `given`.

    See Also
    --------
    upper_distance_to_calibration : The upper end of the bracket.

    Notes
    -----
    The lower end is the larger of :func:`lower_distance_to_calibration` and, for up to 128 distinct
    values, the value of a linear program in which a value may be split between cells. For orders
    above 1 it is the bound of order 1. Cost: that of :func:`upper_distance_to_calibration`, and the
    linear program.

    Examples
    --------
    >>> from skcalib.metrics import upper_distance_certificate
    >>> certificate = upper_distance_certificate([0, 1], [0.4, 0.6])
    >>> round(certificate.lower, 4), round(certificate.upper, 4)
    (0.1, 0.1)
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    data = with_given(data, y_true, given, sample_weight)
    return map_reduction(partial(make_certificate, order=order), data, multi_class, n_jobs)
