"""Measures that sort the predictions into bins."""

from functools import partial
from numbers import Integral

import numpy as np

from .._numerics.intervals import binned_sums, quantile_bins, uniform_bins
from .._predictions import Predictions
from .._validation import (
    METRIC_CONSTRAINTS,
    REDUCTION_CONSTRAINTS,
    Interval,
    StrOptions,
    check_predictions,
    validate_params,
)
from ._reductions import average_over_reductions


def _expected_calibration_error(
    predictions: Predictions, n_bins: int, strategy: str, norm: str
) -> float:
    proba, weight = predictions.proba, predictions.weight
    if strategy == "uniform":
        bins = uniform_bins(proba, n_bins)
    else:
        bins = quantile_bins(proba, weight, n_bins)
    residual = np.abs(binned_sums(bins, predictions.signed_mass, n_bins))  # (B,)
    if norm == "l1":
        return float(residual.sum())
    share = binned_sums(bins, weight, n_bins)
    filled = share > 0
    gap = residual[filled] / share[filled]
    return float(gap.max()) if norm == "max" else float(np.sqrt(share[filled] @ gap**2))


@validate_params(
    METRIC_CONSTRAINTS
    | REDUCTION_CONSTRAINTS
    | {
        "n_bins": [Interval(Integral, 1, None, closed="left")],
        "strategy": [StrOptions({"uniform", "quantile"})],
        "norm": [StrOptions({"l1", "l2", "max"})],
    },
    prefer_skip_nested_validation=True,
)
def expected_calibration_error(
    y_true,
    y_proba,
    *,
    sample_weight=None,
    pos_label=None,
    labels=None,
    n_bins=15,
    strategy="uniform",
    norm="l1",
    multi_class="confidence",
    average="auto",
):
    r"""Expected calibration error (ECE): mean gap between outcomes and predictions in bins.

    It is 0 if in every bin the mean outcome equals the mean prediction, also where errors cancel
    within a bin. On a finite sample of a calibrated model it is positive (biased upwards, the more
    so the more bins), and it jumps when a prediction crosses the edge of a bin. With two classes
    it concerns the probability of the positive class, not the confidence max(p, 1 − p).

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

    n_bins : int, default=15
        Number of bins.

    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal mass (total weight).

    norm : {"l1", "l2", "max"}, default="l1"
        Mean absolute gap, root mean square gap, or largest gap (maximum calibration error).

    multi_class : {"confidence", "top-label", "classwise"}, default="confidence"
        For more than two classes, the binary problems that are measured: the probability of the
        predicted class and whether it was right; the same for each predicted class alone; or each
        class against the rest.

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
    smooth_calibration_error : A measure without bins, continuous in the predictions.

    Notes
    -----
    The measure goes back to [1]_; "confidence" is the form of [2]_, "top-label" that of [3]_.

    With weights :math:`w_i` that sum to 1 and bins :math:`B_1, \dots, B_m`, a bin's share of the
    data is :math:`P_j = \sum_{i \in B_j} w_i` and its gap :math:`g_j = |\sum_{i \in B_j} w_i (y_i
    - p_i)| / P_j`. The error is :math:`\sum_j P_j g_j`, :math:`(\sum_j P_j g_j^2)^{1/2}` or
    :math:`\max_j g_j`; empty bins count for nothing.

    Uniform bins are [j/B, (j+1)/B), and the last contains 1. Quantile bin j holds the predictions
    below which lies a share of the weight in [j/B, (j+1)/B), so ties are never separated and the
    order of the samples does not matter. The cost is :math:`O(n \log B)`, or :math:`O(n \log n)`
    for quantile bins.

    References
    ----------
    .. [1] M. Pakdaman Naeini, G. Cooper and M. Hauskrecht (2015). Obtaining Well Calibrated
       Probabilities Using Bayesian Binning. AAAI 2015. :doi:`10.1609/aaai.v29i1.9602`
    .. [2] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger (2017). On Calibration of Modern Neural
       Networks. ICML 2017. :arxiv:`1706.04599`
    .. [3] C. Gupta and A. Ramdas (2022). Top-label calibration and multiclass-to-binary
       reductions. ICLR 2022. :arxiv:`2107.08353`

    Examples
    --------
    >>> from skcalib.metrics import expected_calibration_error
    >>> expected_calibration_error([0, 1, 1, 1], [0.1, 0.1, 0.9, 0.9], n_bins=10)
    0.25
    """
    predictions = check_predictions(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    measure = partial(_expected_calibration_error, n_bins=n_bins, strategy=strategy, norm=norm)
    return average_over_reductions(measure, predictions, multi_class, average)
