"""Kernel calibration errors."""

from functools import partial
from numbers import Real

import numpy as np

from .._numerics.gram import (
    KERNELS,
    gram_diagonal,
    gram_pair_sum,
    kernel_values,
    median_distance,
)
from .._numerics.laplace import laplace_pair_sum
from .._validation import (
    METRIC_CONSTRAINTS,
    REDUCTION_CONSTRAINTS,
    Interval,
    StrOptions,
    check_finite_kernel,
    check_kernel,
    check_predictions,
    check_two_samples,
    validate_params,
)
from ._reductions import average_over_reductions

KERNEL_CONSTRAINTS: dict = {
    "kernel": [StrOptions(set(KERNELS)), callable],
    "bandwidth": [StrOptions({"median"}), Interval(Real, 0, None, closed="neither")],
    "estimator": [StrOptions({"unbiased", "biased"})],
}


class SquaredKernelError:
    """The squared kernel calibration error as a function of the labels of given predictions.

    What does not depend on the labels is prepared once: the test evaluates many label vectors.
    """

    def __init__(self, predictions, kernel, bandwidth, estimator):
        self.predictions = predictions
        self.is_unbiased = estimator == "unbiased"
        self.pair_weight = _pair_weight(predictions.weight)
        self.residual_sums = self._sums_over_tiles
        if callable(kernel):
            self.kernel = check_kernel(kernel, predictions.matrix)
            return
        family = KERNELS[kernel]
        scale = family.per_probability if predictions.is_binary else family.scale
        if bandwidth == "median":
            bandwidth = scale * median_distance(predictions.proba, family.metric)
        self.kernel = partial(kernel_values, family=family, bandwidth=bandwidth)
        if predictions.is_binary and not family.is_gaussian:
            self.length = bandwidth / scale
            self.order = np.argsort(predictions.proba)
            self.ordered_proba = predictions.proba[self.order]
            self.ordered_weight = predictions.weight[self.order]
            self.residual_sums = self._sums_on_a_line

    def __call__(self, labels):
        """Values (R,) for R label vectors (R, n)."""
        pairs, diagonal = self.residual_sums(labels)
        check_finite_kernel(pairs)
        return pairs / self.pair_weight if self.is_unbiased else pairs + diagonal

    def _sums_on_a_line(self, labels):
        """Σ_{i≠j} w_i w_j h_ij and Σ_i w_i² h_ii of two classes, whose residuals are ±(y − p)."""
        residual = labels[:, self.order] - self.ordered_proba  # (R, n)
        residual *= self.ordered_weight
        pairs = laplace_pair_sum(self.ordered_proba, residual, self.length)
        return 2 * pairs, 2 * np.einsum("rn,rn->r", residual, residual)

    def _sums_over_tiles(self, labels):
        """The same for any number of classes and any kernel."""
        points, weight = self.predictions.matrix, self.predictions.weight
        residual = (labels.T[:, :, None] == np.arange(points.shape[1])).astype(np.float64)
        residual -= points[:, None, :]
        residual *= weight[:, None, None]  # (n, R, K)
        pairs = gram_pair_sum(self.kernel, points, residual)
        norms = np.einsum("nrk,nrk->rn", residual, residual)
        return pairs, norms @ gram_diagonal(self.kernel, points)


def _pair_weight(weight):
    """Σ_{i≠j} w_i w_j, without the cancellation of 1 − Σ w_i² where one weight is almost 1."""
    before = np.concatenate([[0.0], np.cumsum(weight[:-1])])
    after = np.concatenate([np.cumsum(weight[:0:-1])[::-1], [0.0]])
    return weight @ (before + after)


def _squared_kernel_calibration_error(predictions, kernel, bandwidth, estimator):
    if estimator == "unbiased" and len(predictions.weight) < 2:
        return np.nan  # there are no pairs
    error = SquaredKernelError(predictions, kernel, bandwidth, estimator)
    return float(error(predictions.label[None])[0])


@validate_params(
    METRIC_CONSTRAINTS
    | REDUCTION_CONSTRAINTS
    | KERNEL_CONSTRAINTS
    | {"multi_class": [StrOptions({"canonical", "confidence", "top-label", "classwise"})]},
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

    estimator : {"unbiased", "biased"}, default="unbiased"
        Whether the pairs of a sample with itself are left out.

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
    skcalib.hypothesis_tests.CalibrationTest : The p-value of this number.
    smooth_calibration_error : A distance on the scale of probabilities.

    Notes
    -----
    With weights :math:`w_i` that sum to 1, the residual :math:`r_i = e_{y_i} - p_i` of the one-hot
    label and :math:`h_{ij} = k(p_i, p_j) \langle r_i, r_j \rangle`,

    .. math::
        \mathrm{biased} = \sum_{i,j} w_i w_j h_{ij}, \qquad
        \mathrm{unbiased} = \frac{\sum_{i \ne j} w_i w_j h_{ij}}{1 - \sum_i w_i^2}

    (Table 1 of [1]_). Weights say how much a sample counts. For the unbiased estimator a whole
    weight is not the same as so many rows, because copies of a row are no independent samples.

    Two classes with a kernel exp(−d/ν) cost :math:`O(n \log n)`; otherwise :math:`O(n^2 K)` in
    matrix products over tiles, with memory for one tile only. `(n,)` and `(n, 2)` input give the
    same number, twice that of the scalar form with residuals :math:`y_i - p_i`. Ties need no
    special treatment, nor do probabilities 0 and 1.

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
    measure = partial(
        _squared_kernel_calibration_error, kernel=kernel, bandwidth=bandwidth, estimator=estimator
    )
    if estimator == "unbiased":
        check_two_samples(predictions)
    if multi_class == "canonical":
        return measure(predictions)
    return average_over_reductions(measure, predictions, multi_class, average)
