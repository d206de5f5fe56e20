"""Measures of the cumulated residuals."""

import math
from typing import Any, Literal

import numpy as np

from .._data import ClassData, check_predictions
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import Average, Label
from ..lenses import Lens
from ._reductions import reduce_classes
from ._registry import RadiusRule, register_metric, select_options
from ._terms import Witness, witness_terms


def _cumulative_error(data: ClassData, norm: str) -> float:
    _, mass = data.pool_residuals()
    total = np.cumsum(mass)
    highest, lowest = max(total.max(), 0.0), min(total.min(), 0.0)
    return float(max(highest, -lowest) if norm == "max" else highest - lowest)


_cumulative_calibration_error = reduce_classes(_cumulative_error)


def _find_cumulative_witness(data: ClassData, norm: str) -> Witness:
    points, mass = data.pool_residuals()
    total = np.concatenate([[0.0], np.cumsum(mass)])
    level = np.searchsorted(points, data.proba)
    rise, fall = 1.0 * (level < total.argmax()), -1.0 * (level < total.argmin())
    if norm == "range":
        return Witness(rise + fall)
    return Witness(rise if total.max() > -total.min() else fall)


# Bounds on √n times the mean of sup |F_n − F| (the gap) and of sup (F_n − F) (the rise), from
# Massart (1990). The gap is bounded by the integral of min(1, 2 exp(−2x²)), the rise by that of
# exp(−2x²), where values above 1/2 are replaced by 1.
_THRESHOLD = math.sqrt(math.log(2) / 2)
_TAIL = math.sqrt(math.pi / 8) * math.erfc(math.sqrt(math.log(2)))
_MAX_GAP = _THRESHOLD + 2 * _TAIL
_MAX_RISE = _THRESHOLD + _TAIL


def _radius_bounds(options: dict[str, Any]) -> tuple[float, float, float]:
    first = _MAX_GAP if options["norm"] == "max" else 2 * _MAX_RISE
    return first + 2 * _MAX_RISE, 2.0, 0.0


@register_metric(
    _cumulative_calibration_error,
    largest=1.0,
    cost="n log n",
    supports_counts=True,
    radius=RadiusRule(_radius_bounds, {"norm": None}),
    terms=witness_terms(_find_cumulative_witness),
)
def cumulative_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    norm: Literal["max", "range"] = "max",
    multi_class: Literal["confidence", "top-label", "classwise"] | Lens = "confidence",
    average: Average = "auto",
) -> float | np.ndarray:
    r"""Cumulative calibration error (ECCE): how far residuals add up along the sorted predictions.

    It is 0 if, at every prediction, outcomes and prediction agree on average; on samples of a
    calibrated model it is positive, of order :math:`n^{-1/2}` (biased upwards). It has nothing to
    tune [1]_, but jumps where two predictions become equal. With two classes it is about the
    positive class, not the confidence.

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

    norm : {"max", "range"}, default="max"
        The largest absolute value of the cumulated residuals (Kolmogorov–Smirnov, ECCE-MAD in
        [1]_), or the difference between the highest and the lowest (Kuiper, ECCE-R).

    multi_class : {"confidence", "top-label", "classwise"} or Lens, default="confidence"
        More than two classes: the predicted class's probability and whether it was right; the same
        for each predicted class; or each class against the rest. Or a lens of
        :mod:`skcalib.lenses`.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        "macro" is the mean over classes. "weighted" weights classes by their share of the
        predictions ("top-label") or labels ("classwise"). "auto" is "weighted" for "top-label",
        else "macro". None returns the array of all values, even if there is only one. A class that
        is never predicted is NaN, and left out of means.

    Returns
    -------
    error : float or ndarray of shape (n_classes,)
        Between 0 and 1; 0 is best.

    See Also
    --------
    expected_calibration_error : The measure with bins instead of cumulation.
    smooth_calibration_error : A measure that is continuous in the predictions.

    Notes
    -----
    With weights :math:`w_i` that sum to 1, the sorted distinct predictions :math:`v_1 < \dots <
    v_m` and :math:`F_0 = 0`,

    .. math:: F_k = \sum_{i: p_i \le v_k} w_i (y_i - p_i),

    the errors are :math:`\max_k |F_k|` ("max") and :math:`\max_k F_k - \min_k F_k` ("range"), the
    largest absolute sum of residuals over an interval of predictions. Ties are pooled; p ∈ {0, 1}
    needs no clipping. Cost: :math:`O(n \log n)`.

    References
    ----------
    .. [1] Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu (2022). Metrics of calibration for
       probabilistic predictions. Journal of Machine Learning Research. :arxiv:`2205.09680`

    Examples
    --------
    >>> from skcalib.metrics import cumulative_calibration_error
    >>> cumulative_calibration_error([0, 1, 1, 0], [0.25, 0.5, 0.5, 1.0])
    0.1875
    >>> cumulative_calibration_error([0, 1, 1, 0], [0.25, 0.5, 0.5, 1.0], norm="range")
    0.25
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    return _cumulative_calibration_error(data, **select_options(locals()))
