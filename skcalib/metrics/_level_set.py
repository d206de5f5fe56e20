"""The expected calibration error without bins: every distinct prediction stands alone."""

import numpy as np
from numpy.typing import ArrayLike

from .._inputs.checks import check_predictions
from .._inputs.constraints import CANONICAL_CONSTRAINTS
from .._inputs.predictions import Predictions
from .._inputs.types import Label
from ._reductions import average_over_reductions, reduced
from ._registry import metric


def _level_set_calibration_error(predictions: Predictions) -> float:
    if predictions.is_binary:
        _, mass = predictions.pooled_mass()
        return float(np.abs(mass).sum())
    points, level = np.unique(predictions.proba, axis=0, return_inverse=True)
    level, label, weight = level.ravel(), predictions.label, predictions.weight
    return 0.5 * sum(
        float(np.abs(np.bincount(level, weight * ((label == k) - proba), len(points))).sum())
        for k, proba in enumerate(predictions.columns())
    )


@metric(
    reduced(_level_set_calibration_error),
    CANONICAL_CONSTRAINTS,
    cost="n log n",
    of_counts=True,
)
def level_set_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    multi_class: str = "confidence",
    average: str | None = "auto",
) -> float | np.ndarray:
    r"""Expected calibration error over level sets: the mean gap at each distinct prediction.

    It is 0 if, at every prediction, outcomes and prediction agree on average. This is the expected
    calibration error without bins, for predictions that take few distinct values: the leaves of a
    tree, the steps of an isotonic fit, forecasts in whole percent. If no two samples share a
    prediction it is the mean of :math:`|y - p|`, which says nothing of calibration; then take
    another measure. It is biased upwards, the more so the fewer samples share a prediction, and
    jumps where two different predictions become equal. With two classes it concerns the probability
    of the positive class, not the confidence max(p, 1 − p).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]. One-dimensional: of the positive class. Two-dimensional: one
        column for each class in the order of `labels`; rows sum to 1.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class whose probability a one-dimensional `y_proba` holds. By default the last of
        `labels`.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`. By default the sorted labels in
        `y_true`; if it holds only one of 0, 1 and −1, or of False and True, the other of {0, 1},
        {−1, 1} or {False, True} is supplied.

    multi_class : {"confidence", "top-label", "classwise", "canonical"}, default="confidence"
        For more than two classes, the binary problems that are measured: the probability of the
        predicted class and whether it was right; the same for each predicted class alone; or each
        class against the rest. With "canonical", all classes at once: samples share a level set if
        their whole probability vectors are equal.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        How the values for single classes are averaged under "top-label" (over the classes that are
        predicted at all; "weighted" by their share of the predictions) and "classwise" ("weighted"
        by the share of the labels). "auto" is "weighted" for "top-label" and "macro" for
        "classwise", as these measures are defined. None returns the values of all classes, NaN for
        one that is never predicted.

    Returns
    -------
    error : float or ndarray of shape (n_classes,)
        Between 0 and 1; 0 is best. An array if `average` is None and there are values for several
        classes.

    See Also
    --------
    expected_calibration_error : The same for bins of predictions.
    interval_calibration_error : The least binned error plus bin width; at most this error.
    weighted_calibration_error : With ``Bounded()``, the same by convex programming.

    Notes
    -----
    With weights :math:`w_i` that sum to 1,

    .. math:: \mathrm{ECE} = \sum_v \Big| \sum_{i: p_i = v} w_i (y_i - p_i) \Big|,

    the sum being over the distinct predictions v. On the whole distribution that is
    :math:`\mathrm{E}\,|\mathrm{E}[y \mid p] - p|` (Definition 1.1 of [1]_), which no sample can
    estimate if predictions are continuous. On the sample, moving every prediction to the mean
    outcome at it costs this much and calibrates the model, so it bounds the distance to calibration
    from above. With "canonical" and more than two classes, it is half the sum of the absolute
    residuals of all classes, the total variation distance.

    Predictions that differ in the last bit are different. The cost is :math:`O(n \log n)` for
    sorting, with "canonical" :math:`O(n K \log n)`; probabilities of exactly 0 and 1 need no
    special treatment.

    References
    ----------
    .. [1] J. Błasiok, P. Gopalan, L. Hu and P. Nakkiran (2023). A Unifying Theory of Distance from
       Calibration. STOC 2023. :arxiv:`2211.16886`

    Examples
    --------
    >>> from skcalib.metrics import level_set_calibration_error
    >>> level_set_calibration_error([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.9])
    0.15
    """
    predictions = check_predictions(y_true, y_proba, sample_weight, pos_label, labels)
    return average_over_reductions(_level_set_calibration_error, predictions, multi_class, average)
