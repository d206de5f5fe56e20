"""Interval calibration error: the binned error and the bin width, traded off."""

import math
from numbers import Real
from typing import Any, Literal, cast

import numpy as np
from sklearn.utils import check_random_state

from .._data import ClassData, check_predictions
from .._inputs.arrays import ArrayLike
from .._inputs.options import OptionsOf, check_options_of
from .._inputs.scikit_learn import Average, Interval, Label, RandomState
from .._numerics.interval import (
    PARTITION_RTOL,
    mean_partition_sum,
    optimal_partition,
    partition_errors,
    sample_partition_sum,
)
from ..lenses import Lens
from ._reductions import average_over_reductions
from ._registry import RadiusRule, register_metric, select_options

# Narrower intervals of a random grid lose digits to rounding.
_MIN_WIDTH = 1e-6

# The surrogate takes the widths 2^−k. The search begins at this k, as the best is often near it.
_START_EXPONENT = 6

# The largest k. The sums for narrower intervals would suffer from rounding, and the error could
# fall by no more than this width.
_MAX_EXPONENT = 24

_INTERVAL_OPTIONS: OptionsOf = {
    "method": {
        "exact": ["precision"],
        "surrogate": ["precision", "n_draws"],
        "random-grid": ["width", "n_draws"],
    }
}


def largest_exponent(precision: float | None) -> int:
    """Return the largest k of the widths 2^−k: k* of Theorem 6.12, ε/4 < 2^−k* ≤ ε/2, or 24."""
    return min(math.ceil(1 - math.log2(max(precision or 0, PARTITION_RTOL))), _MAX_EXPONENT)


def _binary_interval_error(
    data: ClassData,
    method: str,
    precision: float | None,
    width: float | None,
    n_draws: int | None,
    rng: np.random.RandomState,
) -> float:
    if method == "exact":
        points, weight, _ = data.pool_label_weights()
        return sum(partition_errors(points, weight, optimal_partition(points, weight, precision)))
    points, mass = data.pool_residuals()

    def error(width: float) -> float:
        """Return the mean error over all shifts of a grid, or over draws as in Theorem 6.12."""
        if n_draws is None:
            return mean_partition_sum(points, mass, width)
        return sample_partition_sum(points, mass, width, rng.uniform(size=n_draws))

    if method == "random-grid":
        return error(cast(float, width))
    # every prediction is an interval, unless a precision excludes that
    best = np.inf if precision else float(np.abs(mass).sum())
    narrowest = largest_exponent(precision)
    first = min(_START_EXPONENT, narrowest) if n_draws is None else 0
    for k in range(first, narrowest + 1):
        value = error(2.0**-k)
        best = min(best, value + 2.0**-k)
        if n_draws is None and value >= best * (1 - PARTITION_RTOL):
            break  # halving the width never lowers the mean over all shifts
    for k in range(first - 1, -1, -1):
        if 2.0**-k >= best:
            break
        best = min(best, error(2.0**-k) + 2.0**-k)
    return best


def _interval_calibration_error(
    data: ClassData, *, random_state: RandomState = None, **options: Any
) -> float | np.ndarray:
    check_options_of(interval_calibration_error, _INTERVAL_OPTIONS, options)
    if options["method"] == "random-grid" and options["width"] is None:
        raise ValueError(
            "width must be given for method='random-grid'; found None. Pass the width of the "
            "intervals, for instance width=0.1."
        )
    rng = check_random_state(random_state)
    return average_over_reductions(_binary_interval_error, data, rng=rng, **options)


@register_metric(
    _interval_calibration_error,
    {
        "precision": [Interval(Real, 0, 1, closed="both"), None],
        "width": [Interval(Real, _MIN_WIDTH, 1, closed="both"), None],
    },
    cost="n log n",
    largest=lambda options: 2.0 if options["precision"] else 1.0,
    supports_counts=True,
    radius=RadiusRule(  # of "random-grid"
        lambda options: (math.sqrt(math.ceil(1 / options["width"]) + 1), 2.0, 0.0),
        {"method": ["surrogate", "random-grid"], "precision": None, "width": None},
    ),
)
def interval_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    method: Literal["exact", "surrogate", "random-grid"] = "exact",
    precision: float | None = None,
    width: float | None = None,
    n_draws: int | None = None,
    random_state: RandomState = None,
    multi_class: Literal["confidence", "top-label", "classwise"] | Lens = "confidence",
    average: Average = "auto",
) -> float | np.ndarray:
    r"""Interval calibration error (intCE): the least binned error plus bin width over all binnings.

    It is 0 if, at every prediction, outcomes and prediction agree on average; on samples of a
    calibrated model it is positive (biased upwards). With "exact" it is never less than the
    distance to calibration [1]_. With two classes it is about the positive class, not the
    confidence.

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

    method : {"exact", "surrogate", "random-grid"}, default="exact"
        "exact": the minimum over all partitions into intervals. "surrogate" (SintCE): the minimum
        over the widths 1, 1/2, 1/4, … of width plus mean binned error over random shifts, without
        `n_draws` never below "exact". "random-grid" (RintCE): that mean binned error for one
        `width`, which is *not* added.

    precision : float in [0, 1], default=None
        For "exact", predictions are first put into uncut cells of at most this extent and this
        share of the weight (without the last prediction); the value still bounds the distance. None
        is 0 (every cut) for up to 100 000 distinct predictions, 2e-5 for more. For "surrogate", the
        :math:`\varepsilon` of Theorem 6.12 of [1]_: the narrowest width lies in
        :math:`(\varepsilon/4, \varepsilon/2]`; None and 0 use all widths down to 6e-8.

    width : float in [1e-6, 1], default=None
        For "random-grid", the width :math:`\varepsilon` of the intervals;
        :func:`level_set_calibration_error` is the limit of narrow ones.

    n_draws : int, default=None
        For "surrogate" and "random-grid", the number of shifts that are drawn for each width. By
        default the exact mean over all shifts, at the cost of about one draw.

    random_state : int, RandomState instance or None, default=None
        Draws the shifts, if `n_draws` is given.

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
        Between 0 and 1 (2 with a `precision` above 0); 0 is best.

    See Also
    --------
    calibration_distance_bounds : A tighter bracket on the distance.
    upper_distance_to_calibration : The best bound, with cells of any form.
    expected_calibration_error : The error for one binning.

    Notes
    -----
    For a partition I of [0, 1] into intervals :math:`I_j`, with weights :math:`w_i` that sum to 1,

    .. math::
        \mathrm{intCE} = \min_I \sum_j \Big| \sum_{p_i \in I_j} w_i (y_i - p_i) \Big|
        + \sum_j |I_j| \sum_{p_i \in I_j} w_i

    (Definition 6.1 of [1]_). A dynamic programme finds the minimum in :math:`O(m^2)` for m distinct
    predictions at worst, and 10 to 20 µs for each of them in practice. "random-grid" (Definition
    6.5) is R(ε), the mean of the first sum over the partitions [r + jε, r + (j + 1)ε), r uniform in
    [0, ε), and "surrogate" is :math:`\min_k R(2^{-k}) + 2^{-k}` (Definition 6.10); both cost
    :math:`O(m)` per width after sorting. Ties are pooled.

    References
    ----------
    .. [1] Błasiok, Gopalan, Hu and Nakkiran (2023). A Unifying Theory of Distance from Calibration.
       STOC. :arxiv:`2211.16886`

    Examples
    --------
    >>> from skcalib.metrics import interval_calibration_error
    >>> interval_calibration_error([0, 1], [0.4, 0.6])
    0.19...
    >>> interval_calibration_error([0, 1], [0.1, 0.9], method="random-grid", width=0.5)
    0.09...
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    return _interval_calibration_error(data, **select_options(locals()))
