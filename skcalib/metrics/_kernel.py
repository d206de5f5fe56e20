"""Kernel calibration errors."""

import math
from functools import partial
from numbers import Integral, Real

import numpy as np

from .._numerics.gram import (
    KERNELS,
    gram_block_sums,
    gram_diagonal,
    gram_pair_sum,
    kernel_values,
    median_distance,
)
from .._numerics.laplace import laplace_pair_sum
from .._validation import (
    CANONICAL_CONSTRAINTS,
    METRIC_CONSTRAINTS,
    Interval,
    StrOptions,
    check_class_kernel,
    check_enough_for_estimator,
    check_finite_kernel,
    check_kernel,
    check_predictions,
    check_semidefinite,
    validate_params,
)
from ._reductions import average_over_reductions

KERNEL_CONSTRAINTS: dict = {
    "kernel": [StrOptions(set(KERNELS)), callable],
    "bandwidth": [StrOptions({"median"}), Interval(Real, 0, None, closed="neither")],
}
CLASS_KERNEL_CONSTRAINTS: dict = {"class_kernel": ["array-like", None]}
ESTIMATOR_CONSTRAINTS: dict = {
    "estimator": [StrOptions({"unbiased", "biased", "linear", "block"})],
    "block_size": [Interval(Integral, 2, None, closed="left"), None],
}


class SquaredKernelError:
    """The squared kernel calibration error as a function of the labels of given predictions.

    What does not depend on the labels is prepared once: a test evaluates many label vectors. With
    the root L of the class kernel, M = L Lᵀ, the term of a pair is h_ij = k(p_i, p_j) ⟨L r_i, L
    r_j⟩; all estimators and tests are sums of such terms, taken by :mod:`skcalib._numerics.gram`.
    """

    def __init__(
        self,
        predictions,
        *,
        kernel="total-variation",
        bandwidth="median",
        class_kernel=None,
        estimator="unbiased",
        block_size=None,
    ):
        self.predictions = predictions
        self.estimator = estimator
        self.block_size = _block_size(estimator, block_size, len(predictions.weight))
        weight = predictions.weight
        if self.block_size:
            n_blocks = len(weight) // self.block_size
            weight = weight[: n_blocks * self.block_size].reshape(n_blocks, self.block_size)
        self.pair_weight = _pair_weight(weight)  # of each block, if there are blocks
        self.root = None if class_kernel is None else _root(class_kernel, predictions)
        bandwidth = resolved_bandwidth(predictions, kernel, bandwidth)
        self.kernel = kernel_function(predictions, kernel, bandwidth)
        self.is_on_a_line = (
            predictions.is_binary and not callable(kernel) and not KERNELS[kernel].is_gaussian
        )
        if self.is_on_a_line:
            self.length = bandwidth / KERNELS[kernel].per_probability
            self.order = np.argsort(predictions.proba)
            self.ordered_proba = predictions.proba[self.order]
            self.ordered_weight = predictions.weight[self.order]

    def __call__(self, labels):
        """Values (R,) for R label vectors (R, n)."""
        if self.block_size:
            return self.block_sums(labels).sum(axis=0) / self.pair_weight.sum()
        pairs = self._pairs(labels)
        is_biased = self.estimator == "biased"
        values = pairs + self._diagonal(labels) if is_biased else pairs / self.pair_weight
        check_finite_kernel(values)
        return values

    def block_sums(self, labels):
        """Σ_{i≠j} w_i w_j h_ij within each block, (n_blocks, R)."""
        mass = self.weighted_residuals(labels)
        sums = gram_block_sums(self.kernel, self.predictions.matrix, mass, self.block_size)
        check_finite_kernel(sums)
        return sums

    def weighted_residuals(self, labels):
        """w_i L r_i for R label vectors (R, n): (n, R, K)."""
        points, weight = self.predictions.matrix, self.predictions.weight
        residual = (labels.T[:, :, None] == np.arange(points.shape[1])).astype(np.float64)
        residual -= points[:, None, :]
        residual *= weight[:, None, None]
        return residual if self.root is None else residual @ self.root

    def _pairs(self, labels):
        """Σ_{i≠j} w_i w_j h_ij."""
        if not self.is_on_a_line:
            mass = self.weighted_residuals(labels)
            return gram_pair_sum(self.kernel, self.predictions.matrix, mass)
        residual, scale = self._residuals_on_a_line(labels)
        return scale * laplace_pair_sum(self.ordered_proba, residual, self.length)

    def _diagonal(self, labels):
        """Σ_i w_i² h_ii."""
        if not self.is_on_a_line:
            mass = self.weighted_residuals(labels)
            norms = np.einsum("nrk,nrk->rn", mass, mass)
            return norms @ gram_diagonal(self.kernel, self.predictions.matrix)
        residual, scale = self._residuals_on_a_line(labels)
        return scale * np.einsum("rn,rn->r", residual, residual)

    def _residuals_on_a_line(self, labels):
        """The residuals of two classes are ±(y − p): these (R, n), and what the two ends make."""
        residual = labels[:, self.order] - self.ordered_proba
        residual *= self.ordered_weight
        direction = np.array([-1.0, 1.0])
        root = np.eye(2) if self.root is None else self.root
        return residual, np.sum((direction @ root) ** 2)


def resolved_bandwidth(predictions, kernel, bandwidth):
    """The number that "median" stands for, given these predictions."""
    if callable(kernel) or bandwidth != "median":
        return bandwidth
    family = KERNELS[kernel]
    scale = family.per_probability if predictions.is_binary else family.scale
    return scale * median_distance(predictions.proba, family.metric)


def kernel_function(predictions, kernel, bandwidth):
    """The kernel as a function of rows of probabilities."""
    if callable(kernel):
        return check_kernel(kernel, predictions.matrix)
    bandwidth = resolved_bandwidth(predictions, kernel, bandwidth)
    return partial(kernel_values, family=KERNELS[kernel], bandwidth=bandwidth)


def _block_size(estimator, block_size, n):
    """0 if there are no blocks."""
    if estimator == "block":
        return max(2, math.isqrt(n)) if block_size is None else block_size
    return 2 if estimator == "linear" else 0


def _root(class_kernel, predictions):
    """L with L Lᵀ = M, in the order of the classes."""
    matrix = check_class_kernel(class_kernel, len(predictions.classes))
    eigenvalue, vector = check_semidefinite(matrix, "class_kernel")
    return vector * np.sqrt(np.maximum(eigenvalue, 0))


def _pair_weight(weight):
    """Σ_{i≠j} w_i w_j of the last axis.

    Without the cancellation of (Σ w_i)² − Σ w_i² where one weight is almost everything.
    """
    none = np.zeros_like(weight[..., :1])
    before = np.concatenate([none, np.cumsum(weight[..., :-1], axis=-1)], axis=-1)
    after = np.concatenate([none, np.cumsum(weight[..., :0:-1], axis=-1)], axis=-1)[..., ::-1]
    return np.einsum("...i,...i->...", weight, before + after)


def _squared_kernel_calibration_error(predictions, **options):
    smallest = _block_size(
        options["estimator"], options["block_size"], len(predictions.weight)
    ) or (2 if options["estimator"] == "unbiased" else 1)
    if len(predictions.weight) < smallest:
        return np.nan  # there are no pairs
    error = SquaredKernelError(predictions, **options)
    return float(error(predictions.label[None])[0])


def _kernel_calibration_error(predictions, **options):
    square = _squared_kernel_calibration_error(
        predictions, estimator="biased", block_size=None, **options
    )
    return float(np.sqrt(max(square, 0.0)))


@validate_params(
    METRIC_CONSTRAINTS
    | CANONICAL_CONSTRAINTS
    | KERNEL_CONSTRAINTS
    | CLASS_KERNEL_CONSTRAINTS
    | ESTIMATOR_CONSTRAINTS,
    prefer_skip_nested_validation=True,
)
def squared_kernel_calibration_error(
    y_true,
    y_proba,
    *,
    sample_weight=None,
    pos_label=None,
    labels=None,
    kernel="total-variation",
    bandwidth="median",
    estimator="unbiased",
    block_size=None,
    class_kernel=None,
    multi_class="canonical",
    average="auto",
):
    r"""Squared kernel calibration error (SKCE) of all class probabilities jointly.

    Its expectation is 0 exactly if the model is calibrated in the strongest sense (canonically),
    given a universal kernel such as the default. The unbiased estimate scatters around 0 for a
    calibrated model and can be negative; the biased one is never negative and is too large by
    :math:`O(1/n)`. The number has no natural scale: use
    :class:`skcalib.hypothesis_tests.CalibrationTest` to judge it.

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

    kernel : {"total-variation", "exponential", "laplacian", "rbf"} or callable, \
            default="total-variation"
        Kernel on the probability vectors: exp(−d/ν) with the total variation distance d = ½‖s −
        t‖₁, with the Euclidean distance, or with ‖s − t‖₁; or exp(−‖s − t‖₂²/(2ν²)). Or a
        :class:`sklearn.gaussian_process.kernels.Kernel`, or any symmetric positive definite
        function of arrays of shapes (a, n_classes) and (b, n_classes) with values of shape (a, b).

    bandwidth : "median" or float, default="median"
        The ν of a named kernel. "median" takes the median of the distances between distinct
        predictions (among more than 1000, between an evenly spaced 1000), or a tenth of their mean
        if that is larger, as where predictions crowd at 0 or 1. It differs from model to model: fix
        the bandwidth to compare their errors.

    estimator : {"unbiased", "biased", "linear", "block"}, default="unbiased"
        Which pairs of samples are averaged: all pairs of different samples; these and each sample
        with itself; the first with the second, the third with the fourth, and so on; or all pairs
        of different samples within blocks. "linear" and "block" depend on the order of the samples;
        samples beyond the last whole pair or block are not used.

    block_size : int, default=None
        Number of consecutive samples in a block of the estimator "block"; None means
        :math:`\lfloor\sqrt n\rfloor`.

    class_kernel : array-like of shape (n_classes, n_classes), default=None
        A positive semi-definite matrix M over the classes, in the order of `labels`, such as
        similarities: the matrix-valued kernel is k·M. None is the identity. For
        ``multi_class="canonical"`` only.

    multi_class : {"canonical", "confidence", "top-label", "classwise"}, default="canonical"
        For more than two classes: all classes at once, or the binary problems of
        :func:`smooth_calibration_error`. "confidence" is twice the squared MMCE.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        How the values for single classes are averaged under "top-label" (over the classes that are
        predicted at all; "weighted" by their share of the predictions) and "classwise" ("weighted"
        by the share of the labels). "auto" is "weighted" for "top-label" and "macro" for
        "classwise", as these measures are defined. None returns the values of all classes, NaN for
        one that is never predicted.

    Returns
    -------
    error : float or ndarray of shape (n_classes,)
        At most 2; smaller is better. An array if `average` is None and there are values for
        several classes.

    See Also
    --------
    kernel_calibration_error : The square root of the biased estimate.
    skcalib.hypothesis_tests.CalibrationTest : The p-value of this number.
    smooth_calibration_error : A distance on the scale of probabilities.

    Notes
    -----
    With weights :math:`w_i` that sum to 1, the residual :math:`r_i = e_{y_i} - p_i` of the one-hot
    label and :math:`h_{ij} = k(p_i, p_j) \langle r_i, r_j \rangle`,

    .. math::
        \mathrm{biased} = \sum_{i,j} w_i w_j h_{ij}, \qquad
        \mathrm{unbiased} = \frac{\sum_{i \ne j} w_i w_j h_{ij}}{\sum_{i \ne j} w_i w_j}

    (Table 1 of [1]_); "linear" and "block" are the same quotient over fewer pairs. With a class
    kernel M, :math:`h_{ij} = k(p_i, p_j) \, r_i^\top M r_j`. Weights say how much a sample counts.
    For the unbiased estimator a whole weight is not the same as so many rows, because copies of a
    row are no independent samples.

    Two classes with a kernel exp(−d/ν) cost :math:`O(n \log n)`; otherwise "unbiased" and "biased"
    cost :math:`O(n^2 K)` in matrix products over tiles, with memory for one tile only, "linear"
    :math:`O(n K)` and "block" :math:`O(n B K)` for blocks of size B. `(n,)` and `(n, 2)` input
    give the same number, twice that of the scalar form with residuals :math:`y_i - p_i`. Ties need
    no special treatment, nor do probabilities 0 and 1.

    References
    ----------
    .. [1] D. Widmann, F. Lindsten and D. Zachariah (2019). Calibration tests in multi-class
       classification: A unifying framework. NeurIPS 2019. :arxiv:`1910.11385`

    Examples
    --------
    >>> from skcalib.metrics import squared_kernel_calibration_error
    >>> y_true, y_proba = [0, 1, 1, 0], [0.1, 0.4, 0.6, 0.9]
    >>> squared_kernel_calibration_error(y_true, y_proba)
    -0.068...
    >>> squared_kernel_calibration_error(y_true, y_proba, estimator="biased")
    0.115...
    """
    predictions = check_predictions(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    check_enough_for_estimator(predictions, estimator, block_size)
    measure = partial(
        _squared_kernel_calibration_error,
        kernel=kernel,
        bandwidth=bandwidth,
        class_kernel=class_kernel,
        estimator=estimator,
        block_size=block_size,
    )
    return average_over_reductions(measure, predictions, multi_class, average)


@validate_params(
    METRIC_CONSTRAINTS | CANONICAL_CONSTRAINTS | KERNEL_CONSTRAINTS | CLASS_KERNEL_CONSTRAINTS,
    prefer_skip_nested_validation=True,
)
def kernel_calibration_error(
    y_true,
    y_proba,
    *,
    sample_weight=None,
    pos_label=None,
    labels=None,
    kernel="total-variation",
    bandwidth="median",
    class_kernel=None,
    multi_class="canonical",
    average="auto",
):
    r"""Kernel calibration error (KCE) of all class probabilities jointly.

    The square root of the biased estimate of :func:`squared_kernel_calibration_error`: the largest
    residual that functions in the unit ball of the kernel's Hilbert space can see. It is 0 if, at
    every prediction, labels and predictions agree on average; on a finite sample of a calibrated
    model it is positive, of order :math:`n^{-1/2}`, so it is biased upwards.

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

    kernel : {"total-variation", "exponential", "laplacian", "rbf"} or callable, \
            default="total-variation"
        Kernel on the probability vectors, as in :func:`squared_kernel_calibration_error`.

    bandwidth : "median" or float, default="median"
        The ν of a named kernel. "median" differs from model to model: fix the bandwidth to compare
        their errors.

    class_kernel : array-like of shape (n_classes, n_classes), default=None
        A positive semi-definite matrix M over the classes, in the order of `labels`; None is the
        identity. For ``multi_class="canonical"`` only.

    multi_class : {"canonical", "confidence", "top-label", "classwise"}, default="canonical"
        For more than two classes: all classes at once, or the binary problems of
        :func:`smooth_calibration_error`.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        How the values for single classes are averaged under "top-label" (over the classes that are
        predicted at all; "weighted" by their share of the predictions) and "classwise" ("weighted"
        by the share of the labels). "auto" is "weighted" for "top-label" and "macro" for
        "classwise", as these measures are defined. None returns the values of all classes, NaN for
        one that is never predicted.

    Returns
    -------
    error : float or ndarray of shape (n_classes,)
        At least 0, which is best; at most :math:`\sqrt 2` for the named kernels without a class
        kernel. An array if `average` is None and there are values for several classes.

    See Also
    --------
    squared_kernel_calibration_error : Also unbiased, of the square.
    laplace_kernel_calibration_error : For two classes, with residuals y − p.

    Notes
    -----
    With weights :math:`w_i` that sum to 1 and the residual :math:`r_i = e_{y_i} - p_i`,

    .. math:: \mathrm{KCE}^2 = \sum_{i,j} w_i w_j k(p_i, p_j) \, r_i^\top M r_j

    (Lemma 1 of [1]_). Cost, ties and the case of two classes are those of
    :func:`squared_kernel_calibration_error`.

    References
    ----------
    .. [1] D. Widmann, F. Lindsten and D. Zachariah (2019). Calibration tests in multi-class
       classification: A unifying framework. NeurIPS 2019. :arxiv:`1910.11385`

    Examples
    --------
    >>> from skcalib.metrics import kernel_calibration_error
    >>> kernel_calibration_error([0, 1, 1, 0], [0.1, 0.4, 0.6, 0.9])
    0.34...
    """
    predictions = check_predictions(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    measure = partial(
        _kernel_calibration_error, kernel=kernel, bandwidth=bandwidth, class_kernel=class_kernel
    )
    return average_over_reductions(measure, predictions, multi_class, average)
