"""The expected calibration error: in bins of the predictions, or at each distinct prediction."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from .._data import ClassData, check_predictions
from .._inputs.arrays import ArrayLike
from .._inputs.options import check_edges
from .._inputs.scikit_learn import Average, Bins, IntegerInterval, Label
from .._numerics import sorting
from ..lenses import Lens
from ._reductions import SampleRequirement, average_over_reductions, reduce_classes
from ._registry import register_metric, root_of_estimate, select_options
from ._terms import Witness, witness_terms

# Distances of the mean outcome from the mean prediction, vectors of K numbers: a factor and a power
# of the absolute differences, which are summed over the classes.
_DISTANCES = {"total-variation": (0.5, 1), "cityblock": (1.0, 1), "sqeuclidean": (1.0, 2)}

_DEBIAS_REQUIREMENT = SampleRequirement(
    "a bin in which at least 2 samples carry weight", "choose fewer bins, or estimation='biased'"
)


def _assign_bins(data: ClassData, options: dict[str, Any]) -> tuple[np.ndarray, int]:
    """Return the index of the bin of each sample, (n,), and the number of bins."""
    proba, weight = data.proba.astype(np.float64, copy=False), data.weight
    strategy = options["strategy"]
    if strategy == "median-variance":
        points = proba.reshape(len(proba), -1)  # (n, K), or (n, 1)
        return sorting.median_variance_bins(points, weight, options["min_bin_size"])
    edges = sorting.bin_edges(options["n_bins"], 1 / data.inverse_effective_size)
    if strategy == "quantile":
        return sorting.quantile_bins(proba, weight, len(edges) - 1), len(edges) - 1
    if data.is_binary:
        return sorting.interval_bins(proba, edges), len(edges) - 1
    return sorting.product_bins(proba, edges)


def _iter_class_residuals(data: ClassData, bins: np.ndarray, n_bins: int) -> Iterator[np.ndarray]:
    """Yield the sums of w (1[y = k] − p_k) in each bin, (B,), for one class after another."""
    if data.is_binary:
        mass = np.bincount(bins, data.weighted_residuals, n_bins)
        yield from (-mass, mass)
        return
    label, weight = data.label, data.weight
    for k, proba in enumerate(data.iter_class_proba()):
        yield np.bincount(bins, weight * ((label == k) - proba), n_bins)


def _bin_widths(data: ClassData, bins: np.ndarray, n_bins: int, options: dict) -> np.ndarray:
    if options["strategy"] == "uniform":
        return np.diff(sorting.bin_edges(options["n_bins"], 1 / data.inverse_effective_size))
    return sorting.bin_extents(bins, data.proba, n_bins)


def _bin_error(data: ClassData, *, signed: bool, **options: Any) -> float:
    bins, n_bins = _assign_bins(data, options)
    share = np.bincount(bins, data.weight, n_bins)
    factor, power = _DISTANCES[options["distance"]]
    sums = sum(np.abs(mass) ** power for mass in _iter_class_residuals(data, bins, n_bins))
    # the share of each bin times its gap
    residual = factor * sums / np.where(share > 0, share, 1.0) ** (power - 1)
    if options["add_bin_width"]:
        residual = residual + _bin_widths(data, bins, n_bins, options) * share
    if options["norm"] == "l1":
        return float(residual.sum())
    filled = share > 0
    gap = residual[filled] / share[filled]
    if options["norm"] == "max":
        return float(gap.max())
    square = gap**2
    if options["estimation"] == "debiased":
        variance = sorting.mean_variances(bins, data.label, data.weight, n_bins, data.square)
        variance = variance[filled]
        if np.isnan(variance).all():
            return np.nan  # no bin has two samples
        square = np.where(np.isnan(variance), 0.0, square - variance)
    return float(root_of_estimate(share[filled] @ square, signed))


def find_cell_witness(
    data: ClassData, cell: np.ndarray, n_cells: int, norm: str, distance: str
) -> Witness:
    """Return the witness of the gaps of fixed cells, of which each sample has an index (n,).

    The gap of a cell is g = c Σ_k |d_k|^q, with the mean residuals d of its samples. One more of
    them, of weight dw and residual r, changes g by (Σ_k s_k r_k − q g) dw/W, where s is the
    gradient of g and W the share of the cell, which grows by dw.
    """
    factor, power = _DISTANCES[distance]
    share = np.bincount(cell, data.weight, n_cells)
    share = np.where(share > 0, share, 1.0)  # of empty cells, whose gap is 0
    mean = np.column_stack([*_iter_class_residuals(data, cell, n_cells)]) / share[:, None]  # (B, K)
    gap = factor * np.sum(np.abs(mean) ** power, axis=1)
    either = np.where(np.arange(mean.shape[1]) > 0, 1.0, -1.0)  # where a gap is 0
    sign = np.where(mean == 0, either, np.sign(mean))
    gradient = factor * power * np.abs(mean) ** (power - 1) * sign
    if norm == "l1":
        change, constant = np.ones(n_cells), gap
    elif norm == "max":
        change, constant = (np.arange(n_cells) == gap.argmax()) / share, gap.max()
    else:
        error = np.sqrt(share @ gap**2)
        scale = error or 1.0  # any gap is 0 if the error is
        change, constant = gap / scale, (error**2 + gap**2) / (2 * scale)
    offset = constant - power * change * gap
    return Witness((change[:, None] * gradient)[cell], offset[cell])


def _find_bin_witness(data: ClassData, **options: Any) -> Witness | None:
    if options["estimation"] == "debiased":
        return None
    bins, n_bins = _assign_bins(data, options)
    witness = find_cell_witness(data, bins, n_bins, options["norm"], options["distance"])
    if not options["add_bin_width"]:
        return witness
    widths = _bin_widths(data, bins, n_bins, options)
    return witness._replace(offset=witness.offset + widths[bins])


def _expected_calibration_error(
    data: ClassData, *, signed: bool = False, **options: Any
) -> float | np.ndarray:
    is_canonical = options["multi_class"] == "canonical" and not data.is_binary
    check_bin_options(options, is_canonical=is_canonical)
    needs = _DEBIAS_REQUIREMENT
    error = average_over_reductions(_bin_error, data, needs=needs, signed=signed, **options)
    if np.ndim(error) == 0 and np.isnan(error):
        raise ValueError(
            f"estimation='debiased' needs {needs.minimum}; found none. Choose fewer bins, or "
            "estimation='biased'."
        )
    return error


@register_metric(
    _expected_calibration_error,
    {"n_bins": [Bins(1)], "min_bin_size": [IntegerInterval(1)]},
    largest=lambda options: 2 * _DISTANCES[options["distance"]][0] + options["add_bin_width"],
    cost="n log n",
    in_report=True,
    supports_counts=True,
    clips_square=lambda options: options["estimation"] == "debiased",
    terms=witness_terms(_find_bin_witness),
)
def expected_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    n_bins: int | Literal["auto"] | ArrayLike = 15,
    strategy: Literal["uniform", "quantile", "median-variance"] = "uniform",
    min_bin_size: int = 10,
    norm: Literal["l1", "l2", "max"] = "l1",
    distance: Literal["total-variation", "cityblock", "sqeuclidean"] = "total-variation",
    estimation: Literal["biased", "debiased"] = "biased",
    add_bin_width: bool = False,
    multi_class: Literal["confidence", "top-label", "classwise", "canonical"] | Lens = "confidence",
    average: Average = "auto",
) -> float | np.ndarray:
    r"""Expected calibration error (ECE): mean gap between outcomes and predictions in bins.

    It is 0 if in every bin the mean outcome equals the mean prediction, also where errors cancel
    within a bin. On a finite sample of a calibrated model it is positive (biased upwards, the more
    so the more bins), and it jumps when a prediction crosses the edge of a bin. With two classes it
    is about the positive class, not the confidence.

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

    n_bins : int, "auto" or array-like of shape (n_bins + 1,), default=15
        Number of bins, or their edges, which increase from 0 to 1 (with "uniform"). "auto": the
        cube root of the effective number of samples, rounded up. With "canonical", of intervals for
        the probability of each class. Not for "median-variance".

    strategy : {"uniform", "quantile", "median-variance"}, default="uniform"
        Bins of equal width; of equal mass (total weight; not with "canonical" for more than two
        classes); or split at the median, again and again, along the class whose probabilities vary
        most.

    min_bin_size : int, default=10
        Least number of samples in a "median-variance" bin.

    norm : {"l1", "l2", "max"}, default="l1"
        Mean, root mean square, or largest gap of the bins (maximum calibration error).

    distance : {"total-variation", "cityblock", "sqeuclidean"}, default="total-variation"
        The gap of one bin: half the sum over the classes of the absolute differences between label
        frequencies and mean prediction; that sum; or the sum of the squares.

    estimation : {"biased", "debiased"}, default="biased"
        "debiased" subtracts the estimated noise of the labels from the mean square gap. It needs
        `norm="l2"` and "total-variation", and reads `sample_weight` as importance weights.

    add_bin_width : bool, default=False
        Add the average width of the bins, for an upper bound on the distance to calibration. For
        `norm="l1"` and "total-variation".

    multi_class : {"confidence", "top-label", "classwise", "canonical"}, Lens, default="confidence"
        More than two classes: the predicted class's probability and whether it was right; the same
        for each predicted class; each class against the rest; or all classes at once, in bins of
        the simplex, neither "debiased" nor with `add_bin_width`. Or a lens of
        :mod:`skcalib.lenses`.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        "macro" is the mean over classes. "weighted" weights classes by their share of the
        predictions ("top-label") or labels ("classwise"). "auto" is "weighted" for "top-label",
        else "macro". None returns the array of all values, even if there is only one. A class that
        is never predicted is NaN, and left out of means.

    Returns
    -------
    error : float or ndarray of shape (n_classes,)
        Between 0 and 1 (2 with `add_bin_width` or another `distance`); 0 is best.

    Raises
    ------
    ValueError
        If "debiased" finds no bin with two samples in any class.

    Warns
    -----
    UndefinedMetricWarning
        If the average leaves out a class for which "debiased" finds no bin with two samples.

    See Also
    --------
    smooth_calibration_error : A measure without bins, continuous in the predictions.

    Notes
    -----
    The measure goes back to [1]_; "confidence" is the form of [2]_, "top-label" that of [3]_,
    "canonical" that of [6]_. With weights :math:`w_i` that sum to 1, the bin :math:`B_j` has the
    share :math:`P_j = \sum_{i \in B_j} w_i` of the data and the gap :math:`g_j = |\sum_{i \in B_j}
    w_i (y_i - p_i)| / P_j`. The error is :math:`\sum_j P_j g_j`, :math:`(\sum_j P_j g_j^2)^{1/2}`
    or :math:`\max_j g_j`.

    Uniform bins are [j/B, (j+1)/B), or [a, b) between given edges, and the last contains 1.
    Quantile bins never separate ties. With "canonical" they are products of the intervals of all
    classes, and most of them hold a single sample. Cost: :math:`O(n \log B)`, or
    :math:`O(n \log n)`.

    With "debiased" [4]_, :math:`\bar y_j (1 - \bar y_j) / (n_j - 1)` is subtracted from
    :math:`g_j^2`, for :math:`n_j` samples of equal weight with the mean outcome :math:`\bar y_j`. A
    bin of one sample contributes 0. The mean square is clipped at 0, so the error is still biased
    upwards. With `add_bin_width` (equation 5 of [5]_), the width is that between the edges of a
    uniform bin, otherwise from its least to its greatest prediction.

    References
    ----------
    .. [1] Pakdaman Naeini, Cooper and Hauskrecht (2015). Obtaining Well Calibrated Probabilities
       Using Bayesian Binning. AAAI. :doi:`10.1609/aaai.v29i1.9602`
    .. [2] Guo, Pleiss, Sun and Weinberger (2017). On Calibration of Modern Neural Networks. ICML.
       :arxiv:`1706.04599`
    .. [3] Gupta and Ramdas (2022). Top-label calibration and multiclass-to-binary reductions. ICLR.
       :arxiv:`2107.08353`
    .. [4] Bröcker (2012). Estimating reliability and resolution of probability forecasts through
       decomposition of the empirical score. Climate Dynamics. :doi:`10.1007/s00382-011-1191-1`
    .. [5] Błasiok, Gopalan, Hu and Nakkiran (2023). A Unifying Theory of Distance from Calibration.
       STOC. :arxiv:`2211.16886`
    .. [6] Widmann, Lindsten and Zachariah (2019). Calibration tests in multi-class classification:
       A unifying framework. NeurIPS. :arxiv:`1910.11385`

    Examples
    --------
    >>> from skcalib.metrics import expected_calibration_error
    >>> expected_calibration_error([0, 1, 1, 1], [0.1, 0.1, 0.9, 0.9], n_bins=10)
    0.25
    >>> y_true = [0, 1, 2]
    >>> y_proba = [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]
    >>> expected_calibration_error(y_true, y_proba, multi_class="canonical")
    0.166...
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    return _expected_calibration_error(data, **select_options(locals()))


# Options without which a correction of the gaps is not known.
_CORRECTIONS = {
    ("estimation", "debiased"): {"norm": "l2", "distance": "total-variation"},
    ("add_bin_width", True): {"norm": "l1", "distance": "total-variation"},
}


def check_bin_options(options: dict[str, Any], *, is_canonical: bool) -> None:
    """Refuse corrections and bins that other options, or all classes at once, do not allow."""
    check_edges(options["n_bins"], options["strategy"])
    corrections = [request for request in _CORRECTIONS if options[request[0]] == request[1]]
    requests = [f"{name}={value!r}" for name, value in corrections]
    for correction, request in zip(corrections, requests, strict=True):
        for other, needed in _CORRECTIONS[correction].items():
            if options[other] != needed:
                raise ValueError(
                    f"{request} needs {other}={needed!r}, which its formula assumes; found {other}="
                    f"{options[other]!r}. Pass {other}={needed!r}, or leave {correction[0]} out."
                )
    requests += ["strategy='quantile'"] * (options["strategy"] == "quantile")
    if is_canonical and requests:
        raise ValueError(
            f"{requests[0]} needs binary problems, whose predictions have an order; found "
            "multi_class='canonical' and more than two classes. Leave it out, or measure "
            "'confidence', 'top-label' or 'classwise'."
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
    return points, _iter_class_residuals(data, level.ravel(), len(points))


_level_set_calibration_error = reduce_classes(_level_set_error)


def _find_level_witness(data: ClassData) -> Witness:
    points, level = np.unique(data.proba, axis=0, return_inverse=True)
    return find_cell_witness(data, level.ravel(), len(points), "l1", "total-variation")


@register_metric(
    _level_set_calibration_error,
    largest=1.0,
    cost="n log n",
    supports_counts=True,
    terms=witness_terms(_find_level_witness),
)
def level_set_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    multi_class: Literal["confidence", "top-label", "classwise", "canonical"] | Lens = "confidence",
    average: Average = "auto",
) -> float | np.ndarray:
    r"""Expected calibration error (ECE) without bins: the mean gap at each distinct prediction.

    It is 0 if, at every prediction, outcomes and prediction agree on average: the ECE as papers
    define it, :math:`\mathrm{E}\,|\mathrm{E}[y \mid p] - p|`. It is for predictions of few distinct
    values, such as the leaves of a tree. It is biased upwards, the more so the fewer samples share
    a prediction; if none do, it says nothing of calibration. With two classes it is about the
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

    multi_class : {"confidence", "top-label", "classwise", "canonical"}, Lens, default="confidence"
        More than two classes: the predicted class's probability and whether it was right; the same
        for each predicted class; each class against the rest; or all classes at once, at equal
        probability vectors. Or a lens of :mod:`skcalib.lenses`.

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
    expected_calibration_error : The same for bins of predictions.
    interval_calibration_error : The least binned error plus bin width; at most this error.

    Notes
    -----
    With weights :math:`w_i` that sum to 1,

    .. math:: \mathrm{ECE} = \sum_v \Big| \sum_{i: p_i = v} w_i (y_i - p_i) \Big|,

    the sum being over the distinct predictions v (Definition 1.1 of [1]_). It bounds the distance
    to calibration from above. With "canonical", it is half the sum over all classes (total
    variation).

    Cost: :math:`O(n \log n)` for sorting, with "canonical" :math:`O(n K \log n)`.

    References
    ----------
    .. [1] Błasiok, Gopalan, Hu and Nakkiran (2023). A Unifying Theory of Distance from Calibration.
       STOC. :arxiv:`2211.16886`

    Examples
    --------
    >>> from skcalib.metrics import level_set_calibration_error
    >>> level_set_calibration_error([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.9])
    0.15
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    return _level_set_calibration_error(data, **select_options(locals()))
