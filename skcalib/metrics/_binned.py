"""Measures that sort the predictions into bins."""

from functools import partial
from numbers import Integral

import numpy as np

from .._numerics.intervals import (
    bin_extents,
    binned_sums,
    mean_variances,
    quantile_bins,
    uniform_bins,
)
from .._predictions import Predictions
from .._validation import (
    METRIC_CONSTRAINTS,
    REDUCTION_CONSTRAINTS,
    Interval,
    StrOptions,
    check_binned_options,
    check_debiased,
    check_predictions,
    validate_params,
)
from ._reductions import average_over_reductions


def _expected_calibration_error(
    predictions: Predictions,
    n_bins: int,
    strategy: str,
    norm: str,
    debias: bool,
    add_bin_width: bool,
) -> float:
    proba, weight = predictions.proba, predictions.weight
    if strategy == "uniform":
        bins = uniform_bins(proba, n_bins)
    else:
        bins = quantile_bins(proba, weight, n_bins)
    residual = np.abs(binned_sums(bins, predictions.signed_mass, n_bins))  # (B,)
    if norm == "l1" and not add_bin_width:
        return float(residual.sum())
    share = binned_sums(bins, weight, n_bins)
    if norm == "l1":
        width = 1 / n_bins if strategy == "uniform" else bin_extents(bins, proba, n_bins)
        return float((residual + width * share).sum())
    filled = share > 0
    gap = residual[filled] / share[filled]
    if norm == "max":
        return float(gap.max())
    square = gap**2
    if debias:
        variance = mean_variances(bins, predictions.label, weight, n_bins)[filled]
        if np.isnan(variance).all():
            return np.nan
        square = np.where(np.isnan(variance), 0.0, square - variance)
    return float(np.sqrt(max(share[filled] @ square, 0.0)))


@validate_params(
    METRIC_CONSTRAINTS
    | REDUCTION_CONSTRAINTS
    | {
        "n_bins": [Interval(Integral, 1, None, closed="left")],
        "strategy": [StrOptions({"uniform", "quantile"})],
        "norm": [StrOptions({"l1", "l2", "max"})],
        "debias": ["boolean"],
        "add_bin_width": ["boolean"],
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
    debias=False,
    add_bin_width=False,
    multi_class="confidence",
    average="auto",
):
    r"""Expected calibration error (ECE): mean gap between outcomes and predictions in bins.

    It is 0 if in every bin the mean outcome equals the mean prediction, also where errors cancel
    within a bin. On a finite sample of a calibrated model it is positive (biased upwards, the more
    so the more bins; see `debias`), and it jumps when a prediction crosses the edge of a bin. With
    two classes it concerns the probability of the positive class, not the confidence
    max(p, 1 − p).

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

    debias : bool, default=False
        Whether to subtract from the mean square gap what the noise of the labels adds to it, as
        estimated in each bin. For `norm="l2"` only. `sample_weight` then holds importance weights:
        a weight of 2 is not the same as a sample that occurs twice.

    add_bin_width : bool, default=False
        Whether to add the average width of the bins. The sum bounds the distance to calibration
        from above, which the error alone does not. For `norm="l1"` only.

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
        Between 0 and 1 (2 with `add_bin_width`); 0 is best. An array if `average` is None and there
        are values for several classes.

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

    With `debias` [4]_ [5]_ [6]_, :math:`g_j^2` becomes

    .. math:: g_j^2 - \bar y_j (1 - \bar y_j) \frac{S_j}{P_j^2 - S_j},
        \qquad S_j = \sum_{i \in B_j} w_i^2, \quad \bar y_j = \sum_{i \in B_j} w_i y_i / P_j,

    where the fraction is :math:`1 / (n_j - 1)` for :math:`n_j` samples of equal weight. A bin of
    one sample, which tells nothing of its noise, contributes 0; without a bin of two there is no
    estimate. The mean square is clipped at 0 before the root is taken, so for a calibrated model
    the error is often exactly 0, and still biased upwards.

    With `add_bin_width`, :math:`\sum_j P_j |I_j|` is added: for a uniform bin :math:`|I_j| = 1/B`,
    so the sum is at least that; for a quantile bin it is the distance between its least and its
    greatest prediction, since what lies between bins holds no mass. The result is an upper bound on
    the distance to the nearest calibrated function of the predictions (equation 5 of [7]_), and so
    at least half of the smooth calibration error. It is 0 for a calibrated model only if no bin
    has a width.

    References
    ----------
    .. [1] M. Pakdaman Naeini, G. Cooper and M. Hauskrecht (2015). Obtaining Well Calibrated
       Probabilities Using Bayesian Binning. AAAI 2015. :doi:`10.1609/aaai.v29i1.9602`
    .. [2] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger (2017). On Calibration of Modern Neural
       Networks. ICML 2017. :arxiv:`1706.04599`
    .. [3] C. Gupta and A. Ramdas (2022). Top-label calibration and multiclass-to-binary
       reductions. ICLR 2022. :arxiv:`2107.08353`
    .. [4] J. Bröcker (2012). Estimating reliability and resolution of probability forecasts through
       decomposition of the empirical score. Climate Dynamics 39, 655–667.
       :doi:`10.1007/s00382-011-1191-1`
    .. [5] C. A. T. Ferro and T. E. Fricker (2012). A bias-corrected decomposition of the Brier
       score. Quarterly Journal of the Royal Meteorological Society 138, 1954–1960.
       :doi:`10.1002/qj.1924`
    .. [6] A. Kumar, P. Liang and T. Ma (2019). Verified Uncertainty Calibration. NeurIPS 2019.
       :arxiv:`1909.10155`
    .. [7] J. Błasiok, P. Gopalan, L. Hu and P. Nakkiran (2023). A Unifying Theory of Distance from
       Calibration. STOC 2023. :arxiv:`2211.16886`

    Examples
    --------
    >>> from skcalib.metrics import expected_calibration_error
    >>> expected_calibration_error([0, 1, 1, 1], [0.1, 0.1, 0.9, 0.9], n_bins=10)
    0.25
    >>> expected_calibration_error(
    ...     [0, 1, 1, 1], [0.1, 0.1, 0.9, 0.9], n_bins=10, add_bin_width=True
    ... )
    0.35
    """
    check_binned_options(norm, debias, add_bin_width)
    predictions = check_predictions(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    measure = partial(
        _expected_calibration_error,
        n_bins=n_bins,
        strategy=strategy,
        norm=norm,
        debias=debias,
        add_bin_width=add_bin_width,
    )
    return check_debiased(average_over_reductions(measure, predictions, multi_class, average))
