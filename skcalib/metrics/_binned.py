"""The expected calibration error: in bins of the predictions, or at each distinct prediction."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from .._data import ClassData, check_predictions
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import CANONICAL_CONSTRAINTS, Count, IntegerInterval, Label, StrOptions
from .._numerics.sorting import (
    bin_extents,
    mean_variances,
    median_variance_bins,
    product_bins,
    quantile_bins,
    uniform_bins,
)
from ..lenses import Lens
from ._reductions import SampleRequirement, average_over_reductions, reduce_classes
from ._registry import register_metric

# Distances of the mean outcome from the mean prediction, vectors of K numbers: a factor and a power
# of the absolute differences, which are summed over the classes.
_DISTANCES = {"total-variation": (0.5, 1), "cityblock": (1.0, 1), "sqeuclidean": (1.0, 2)}

_DEBIAS_REQUIREMENT = SampleRequirement(
    "a bin in which at least 2 samples carry weight", "choose fewer bins, or debias=False"
)


def _assign_bins(
    data: ClassData, n_bins: int, strategy: str, min_bin_size: int
) -> tuple[np.ndarray, int]:
    """Return the index of the bin of each sample, (n,), and the number of bins."""
    proba, weight = data.doubles, data.weight
    if strategy == "median-variance":
        return median_variance_bins(proba.reshape(len(proba), -1), weight, min_bin_size)
    if strategy == "quantile":
        return quantile_bins(proba, weight, n_bins), n_bins
    if data.is_binary:
        return uniform_bins(proba, n_bins), n_bins
    return product_bins(proba, n_bins)


def _iter_class_residuals(data: ClassData, bins: np.ndarray, n_bins: int) -> Iterator[np.ndarray]:
    """Yield the sums of w (1[y = k] − p_k) in each bin, (B,), for one class after another."""
    if data.is_binary:
        mass = np.bincount(bins, data.weighted_residuals, n_bins)
        yield from (mass, -mass)
        return
    label, weight = data.label, data.weight
    for k, proba in enumerate(data.iter_class_proba()):
        yield np.bincount(bins, weight * ((label == k) - proba), n_bins)


def _bin_residuals(
    data: ClassData, bins: np.ndarray, share: np.ndarray, distance: str
) -> np.ndarray:
    """Return the share of each bin times its gap, (B,)."""
    factor, power = _DISTANCES[distance]
    share = np.where(share > 0, share, 1.0)
    residuals = _iter_class_residuals(data, bins, len(share))
    return factor * sum(np.abs(mass) ** power for mass in residuals) / share ** (power - 1)


def _bin_error(
    data: ClassData,
    n_bins: int,
    strategy: str,
    min_bin_size: int,
    norm: str,
    distance: str,
    debias: bool,
    add_bin_width: bool,
    signed: bool,
) -> float:
    proba, weight = data.proba, data.weight
    bins, n_bins = _assign_bins(data, n_bins, strategy, min_bin_size)
    share = np.bincount(bins, weight, n_bins)
    residual = _bin_residuals(data, bins, share, distance)
    if norm == "l1" and not add_bin_width:
        return float(residual.sum())
    if norm == "l1":
        width = 1 / n_bins if strategy == "uniform" else bin_extents(bins, proba, n_bins)
        return float((residual + width * share).sum())
    filled = share > 0
    gap = residual[filled] / share[filled]
    if norm == "max":
        return float(gap.max())
    square = gap**2
    if debias:
        variance = mean_variances(bins, data.label, weight, n_bins, data.square)[filled]
        if np.isnan(variance).all():
            return np.nan  # no bin has two samples
        square = np.where(np.isnan(variance), 0.0, square - variance)
    mean_square = float(share[filled] @ square)
    if signed:
        return float(np.copysign(np.sqrt(abs(mean_square)), mean_square))
    return float(np.sqrt(max(mean_square, 0.0)))


def _expected_calibration_error(
    data: ClassData, *, signed: bool = False, **options: Any
) -> float | np.ndarray:
    names = ("norm", "distance", "debias", "add_bin_width")
    check_bin_options(*(options[name] for name in names))
    if options["multi_class"] == "canonical" and not data.is_binary:
        check_simplex_options(options["strategy"], options["debias"], options["add_bin_width"])
    error = average_over_reductions(
        _bin_error, data, needs=_DEBIAS_REQUIREMENT, signed=signed, **options
    )
    check_debiased(error)
    return error


@register_metric(
    _expected_calibration_error,
    CANONICAL_CONSTRAINTS
    | {
        "n_bins": [Count(1)],
        "strategy": [StrOptions({"uniform", "quantile", "median-variance"})],
        "min_bin_size": [IntegerInterval(1)],
        "norm": [StrOptions({"l1", "l2", "max"})],
        "distance": [StrOptions(set(_DISTANCES))],
        "debias": ["boolean"],
        "add_bin_width": ["boolean"],
    },
    largest=lambda options: 2 * _DISTANCES[options["distance"]][0] + options["add_bin_width"],
    cost="n log n",
    in_report=True,
    supports_counts=True,
    clips_square=lambda options: options["debias"],
)
def expected_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: Literal["uniform", "quantile", "median-variance"] = "uniform",
    min_bin_size: int = 10,
    norm: Literal["l1", "l2", "max"] = "l1",
    distance: Literal["total-variation", "cityblock", "sqeuclidean"] = "total-variation",
    debias: bool = False,
    add_bin_width: bool = False,
    multi_class: Literal["confidence", "top-label", "classwise", "canonical"] | Lens = "confidence",
    average: str | None = "auto",
) -> float | np.ndarray:
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
        Number of bins; with "canonical", of intervals into which the probability of each class is
        cut. "median-variance" bins are as many as `min_bin_size` allows.

    strategy : {"uniform", "quantile", "median-variance"}, default="uniform"
        Bins of equal width; of equal mass (total weight; not with "canonical" for more than two
        classes); or made by splitting bins at the median, again and again, along the class whose
        probabilities vary most.

    min_bin_size : int, default=10
        Least number of samples in a "median-variance" bin. A sample counts as one, whatever its
        weight: a weight of 2 is not the same as a sample that occurs twice.

    norm : {"l1", "l2", "max"}, default="l1"
        How the gaps of the bins become one number: their mean, their root mean square, or the
        largest of them (maximum calibration error).

    distance : {"total-variation", "cityblock", "sqeuclidean"}, default="total-variation"
        What the gap of one bin is: half the sum over the classes of the absolute differences
        between the frequencies of the labels and the mean prediction, which with two classes is the
        difference of the probabilities of the positive one; that sum; or the sum of the squared
        differences.

    debias : bool, default=False
        Whether to subtract from the mean square gap what the noise of the labels adds to it, as
        estimated in each bin. For `norm="l2"` and "total-variation" only. `sample_weight` then
        holds importance weights: a weight of 2 is not the same as a sample that occurs twice.

    add_bin_width : bool, default=False
        Whether to add the average width of the bins. The sum bounds the distance to calibration
        from above, which the error alone does not. For `norm="l1"` and
        "total-variation" only.

    multi_class : {"confidence", "top-label", "classwise", "canonical"}, Lens, default="confidence"
        For more than two classes, the binary problems that are measured: the probability of the
        predicted class and whether it was right; the same for each predicted class alone; or each
        class against the rest. With "canonical", all classes at once, in bins of the simplex; then
        `debias` and `add_bin_width` are not available. Or a lens, an object such as those of
        :mod:`skcalib.lenses`.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        How the values for single classes are averaged under "top-label" (over the classes that are
        predicted at all; "weighted" by their share of the predictions) and "classwise" ("weighted"
        by the share of the labels). "auto" is "weighted" for "top-label" and "macro" for
        "classwise", as these measures are defined. None returns the values of all classes, NaN for
        one that is never predicted.

    Returns
    -------
    error : float or ndarray of shape (n_classes,)
        Between 0 and 1 (2 with `add_bin_width` or another `distance`); 0 is best. An array if
        `average` is None and there are values for several classes.

    Raises
    ------
    ValueError
        If `debias` finds no bin with two samples; with "top-label" and "classwise", not for any
        class.

    Warns
    -----
    UndefinedMetricWarning
        If the average leaves out a class for which `debias` finds no bin with two samples.

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
    order of the samples does not matter. A share that falls short of j/B by less than 1e-9/B counts
    as j/B: it may be a rounding error of the sum of the weights. The cost is :math:`O(n \log B)`,
    or :math:`O(n \log n)` for quantile bins.

    With "canonical" [8]_ [9]_ the gap is the distance between the mean prediction and the
    frequencies of the K labels in a bin of probability vectors, by default in total variation,

    .. math::
        g_j = \frac{1}{2 P_j} \sum_{k=1}^K
        \Big| \sum_{i \in B_j} w_i (\mathbf{1}[y_i = k] - p_{ik}) \Big|.

    The other distances are :math:`2 g_j` ("cityblock") and the sum of the squares of the K
    differences ("sqeuclidean"), of which `norm="l1"` takes the mean over the bins: Section 4.3 of
    [8]_. That mean is no root, unlike `norm="l2"`, the root mean square of total variation
    distances. A problem of two classes, such as "confidence", has vectors :math:`(1 - p, p)` here:
    with :math:`g_j` as above, the distances are :math:`2 g_j` and :math:`2 g_j^2`.

    Uniform bins are products of the uniform intervals of all classes. Only those of the :math:`B^K`
    products that hold samples are formed, at :math:`O(n (K \log B + \log n))`. With more than a few
    classes most samples are alone in their bins, and a calibrated model's error is far from 0.

    Median-variance bins start as one bin of all samples. A bin is split along the class whose
    probabilities have the largest variance in it (the first of several; with two classes the
    positive one), between the two distinct values where the weight below is nearest to half (the
    lower place of two), provided that both parts hold `min_bin_size` samples; otherwise it stays.
    Variances that differ by less than 1e-9 of the largest count as equal, and so do two places
    where the shares of the weight below differ by less than 1e-9 in their distance to half. So
    equal predictions are never separated, fewer than twice `min_bin_size` samples make one bin, and
    a weight of 2 is the same as a sample that occurs twice only if `min_bin_size` is 1. The cost is
    about :math:`O(n (K + \log n) \log n)`.

    With `debias` [4]_ [5]_ [6]_, :math:`g_j^2` becomes

    .. math:: g_j^2 - \bar y_j (1 - \bar y_j) \frac{S_j}{P_j^2 - S_j},
        \qquad S_j = \sum_{i \in B_j} w_i^2, \quad \bar y_j = \sum_{i \in B_j} w_i y_i / P_j,

    where the fraction is :math:`1 / (n_j - 1)` for :math:`n_j` samples of equal weight. A bin of
    one sample, which tells nothing of its noise, contributes 0; without a bin of two there is no
    estimate: for a single class that is NaN, and the average is taken over the others. The noise is
    taken for that of one probability in the bin, so too much is subtracted where predictions differ
    much within a bin. The mean square is clipped at 0 before the root is taken, so for a calibrated
    model the error is often exactly 0, and still biased upwards.

    With `add_bin_width`, :math:`\sum_j P_j |I_j|` is added: for a uniform bin :math:`|I_j| = 1/B`,
    so the sum is at least that; for any other bin it is the distance between its least and its
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
    .. [4] J. Bröcker (2012). Estimating reliability and resolution of probability forecasts
       through decomposition of the empirical score. Climate Dynamics 39, 655–667.
       :doi:`10.1007/s00382-011-1191-1`
    .. [5] C. A. T. Ferro and T. E. Fricker (2012). A bias-corrected decomposition of the Brier
       score. Quarterly Journal of the Royal Meteorological Society 138, 1954–1960.
       :doi:`10.1002/qj.1924`
    .. [6] A. Kumar, P. Liang and T. Ma (2019). Verified Uncertainty Calibration. NeurIPS 2019.
       :arxiv:`1909.10155`
    .. [7] J. Błasiok, P. Gopalan, L. Hu and P. Nakkiran (2023). A Unifying Theory of Distance from
       Calibration. STOC 2023. :arxiv:`2211.16886`
    .. [8] D. Widmann, F. Lindsten and D. Zachariah (2019). Calibration tests in multi-class
       classification: A unifying framework. NeurIPS 2019. :arxiv:`1910.11385`
    .. [9] J. Vaicenavicius, D. Widmann, C. Andersson, F. Lindsten, J. Roll and T. B. Schön (2019).
       Evaluating model calibration in classification. AISTATS 2019. :arxiv:`1902.06977`

    Examples
    --------
    >>> from skcalib.metrics import expected_calibration_error
    >>> expected_calibration_error([0, 1, 1, 1], [0.1, 0.1, 0.9, 0.9], n_bins=10)
    0.25
    >>> expected_calibration_error(
    ...     [0, 1, 1, 1], [0.1, 0.1, 0.9, 0.9], n_bins=10, add_bin_width=True
    ... )
    0.35

    All classes at once: labels 0 and 1 where (0.5, 0.25, 0.25) was predicted twice, and a third of
    the samples predicted perfectly.

    >>> y_true = [0, 1, 2]
    >>> y_proba = [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]
    >>> expected_calibration_error(y_true, y_proba, multi_class="canonical")
    0.166...
    >>> expected_calibration_error(
    ...     y_true, y_proba, multi_class="canonical", distance="sqeuclidean"
    ... )
    0.0833...
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    return _expected_calibration_error(
        data,
        n_bins=n_bins,
        strategy=strategy,
        min_bin_size=min_bin_size,
        norm=norm,
        distance=distance,
        debias=debias,
        add_bin_width=add_bin_width,
        multi_class=multi_class,
        average=average,
    )


def check_bin_options(norm: str, distance: str, debias: bool, add_bin_width: bool) -> None:
    """Refuse `debias` except for squared gaps, `add_bin_width` except for mean absolute gaps."""
    if debias and norm != "l2":
        raise ValueError(
            "debias=True needs norm='l2': only the bias of squared gaps is known; found "
            f"norm={norm!r}. Pass norm='l2', or debias=False."
        )
    if add_bin_width and norm != "l1":
        raise ValueError(
            "add_bin_width=True needs norm='l1' (and debias=False): only with the mean absolute "
            f"gap is the sum a bound on a distance; found norm={norm!r}. Pass norm='l1', or "
            "add_bin_width=False."
        )
    name = "debias" if debias else "add_bin_width" if add_bin_width else None
    if name and distance != "total-variation":
        raise ValueError(
            f"{name}=True needs distance='total-variation', whose gaps it is made for; found "
            f"distance={distance!r}. Pass distance='total-variation', or {name}=False."
        )


def check_simplex_options(strategy: str, debias: bool, add_bin_width: bool) -> None:
    """Refuse options for all classes at once that need ordered predictions or two classes."""
    if strategy == "quantile":
        raise ValueError(
            "strategy='quantile' needs predictions that have an order; found "
            "multi_class='canonical', whose predictions are the vectors of all classes. Pass "
            "strategy='median-variance' or 'uniform', or measure 'confidence', 'top-label' or "
            "'classwise'."
        )
    name = "debias" if debias else "add_bin_width" if add_bin_width else None
    if name:
        raise ValueError(
            f"{name}=True needs binary problems: only for them is the correction known; found "
            f"multi_class='canonical' and more than two classes. Pass {name}=False, or measure "
            "'confidence', 'top-label' or 'classwise'."
        )


def check_debiased(error: float | np.ndarray) -> None:
    """Refuse a debiased error that is NaN: no bin had two samples."""
    if np.ndim(error) == 0 and np.isnan(error):
        raise ValueError(
            f"debias=True needs {_DEBIAS_REQUIREMENT.minimum}; found none. Choose fewer bins, or "
            "debias=False."
        )


def _level_set_error(data: ClassData) -> float:
    if data.is_binary:
        _, mass = data.pool_residuals()
        return float(np.abs(mass).sum())
    _, columns = pool_class_residuals(data)
    return 0.5 * sum(float(np.abs(mass).sum()) for mass in columns)


def pool_class_residuals(data: ClassData) -> tuple[np.ndarray, Iterator[np.ndarray]]:
    """Return the distinct predictions of K > 2 classes (m, K), and Σ w_i (e_y − p) at each.

    The sums come for one class after another, (m,).
    """
    points, level = np.unique(data.proba, axis=0, return_inverse=True)
    level, label, weight = level.ravel(), data.label, data.weight
    columns = (
        np.bincount(level, weight * ((label == k) - proba), len(points))
        for k, proba in enumerate(data.iter_class_proba())
    )
    return points, columns


_level_set_calibration_error = reduce_classes(_level_set_error)


def _count_levels(data: ClassData) -> float:
    """Return the effective number of distinct predictions, 1 / Σ W² of their shares W."""
    _, level = np.unique(data.proba, axis=0, return_inverse=True)
    share = np.bincount(level.ravel(), data.weight)
    return float(1 / (share @ share))


@register_metric(
    _level_set_calibration_error,
    CANONICAL_CONSTRAINTS,
    largest=1.0,
    cost="n log n",
    supports_counts=True,
    count_cells=reduce_classes(_count_levels),
)
def level_set_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    multi_class: Literal["confidence", "top-label", "classwise", "canonical"] | Lens = "confidence",
    average: str | None = "auto",
) -> float | np.ndarray:
    r"""Expected calibration error (ECE) without bins: the mean gap at each distinct prediction.

    It is 0 if, at every prediction, outcomes and prediction agree on average. This is what papers
    define as the ECE, :math:`\mathrm{E}\,|\mathrm{E}[y \mid p] - p|`, over the level sets of the
    predictions. It is for predictions that take few distinct values: the leaves of a tree, the
    steps of an isotonic fit, forecasts in whole percent. If no two samples share a
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

    multi_class : {"confidence", "top-label", "classwise", "canonical"}, Lens, default="confidence"
        For more than two classes, the binary problems that are measured: the probability of the
        predicted class and whether it was right; the same for each predicted class alone; or each
        class against the rest. With "canonical", all classes at once: samples share a level set if
        their whole probability vectors are equal. Or a lens, an object such as those of
        :mod:`skcalib.lenses`.

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
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    return _level_set_calibration_error(data, multi_class=multi_class, average=average)
