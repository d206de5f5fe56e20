"""Kernel calibration errors."""

from functools import partial
from numbers import Real

import numpy as np

from .._numerics.gram import (
    DISTANCE_PER_PROBABILITY,
    DISTANCES,
    Kernel,
    gram_diagonal,
    gram_quadratic_form,
    median_distance,
    named_kernel,
)
from .._numerics.laplace import laplace_quadratic_form
from .._predictions import Predictions, average_over_reductions
from .._validation import (
    METRIC_CONSTRAINTS,
    REDUCTION_CONSTRAINTS,
    Interval,
    StrOptions,
    check_predictions,
    validate_params,
)

KERNEL_CONSTRAINTS: dict = {
    "kernel": [StrOptions(set(DISTANCES)), callable],
    "bandwidth": [StrOptions({"median"}), Interval(Real, 0, None, closed="neither")],
    "estimator": [StrOptions({"unbiased", "biased"})],
}


def skce_of_labels(
    predictions: Predictions,
    labels: np.ndarray,
    kernel: str | Kernel,
    bandwidth: str | float,
    estimator: str,
) -> np.ndarray:
    """The squared kernel calibration error of each of several label vectors (R, n)."""
    weight = predictions.weight
    if estimator == "unbiased" and len(weight) < 2:
        raise ValueError(
            "estimator='unbiased' needs at least 2 samples of positive weight; found 1. Use "
            "estimator='biased'."
        )
    pairs, diagonal = _residual_sums(predictions, labels, kernel, bandwidth)
    if estimator == "biased":
        return pairs
    return (pairs - diagonal) / (1 - weight @ weight)


def _residual_sums(predictions, labels, kernel, bandwidth):
    """Σ_{i,j} h_ij and Σ_i h_ii for each row of labels, with the weights inside the residuals."""
    proba, weight = predictions.proba, predictions.weight
    if bandwidth == "median" and not callable(kernel):
        bandwidth = _median_bandwidth(proba, kernel)
    if predictions.is_binary:
        residual = (labels - proba) * weight  # (R, n); the residuals of the two classes are ±this
        if not callable(kernel) and kernel != "rbf":
            order = np.argsort(proba)
            length = bandwidth / DISTANCE_PER_PROBABILITY[kernel]
            pairs = 2 * laplace_quadratic_form(proba[order], residual[:, order], length)
            return pairs, 2 * np.sum(residual**2, axis=1)
        residual = np.sqrt(2.0) * residual.T[:, :, None]  # (n, R, 1)
    else:
        residual = (labels.T[:, :, None] == np.arange(proba.shape[1])).astype(np.float64)
        residual -= proba[:, None, :]
        residual *= weight[:, None, None]  # (n, R, K)
    if not callable(kernel):
        kernel = named_kernel(kernel, bandwidth)
    points = predictions.matrix
    norms = np.einsum("nrk,nrk->rn", residual, residual)  # (R, n)
    return gram_quadratic_form(kernel, points, residual), norms @ gram_diagonal(kernel, points)


def _median_bandwidth(proba, kernel):
    if proba.ndim == 1:
        return DISTANCE_PER_PROBABILITY[kernel] * median_distance(proba, kernel)
    return median_distance(proba, kernel)


def _squared_kernel_calibration_error(predictions, kernel, bandwidth, estimator) -> float:
    return float(
        skce_of_labels(predictions, predictions.label[None], kernel, bandwidth, estimator)[0]
    )


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
        `y_true`.

    kernel : {"total-variation", "exponential", "laplacian", "rbf"} or callable, \
            default="total-variation"
        Kernel on the probability vectors: exp(−d/ν) with the total variation distance d = ½‖s −
        t‖₁, with the Euclidean distance, or with ‖s − t‖₁; or exp(−‖s − t‖₂²/(2ν²)). Or a
        symmetric positive definite function of two arrays of shapes (a, n_classes) and (b,
        n_classes) that returns the (a, b) kernel values.

    bandwidth : "median" or float, default="median"
        The ν of a named kernel. "median" takes the median of the distances between distinct
        predictions (among more than 1000, between an evenly spaced 1000).

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
    if multi_class == "canonical":
        return measure(predictions)
    return average_over_reductions(measure, predictions, multi_class, average)
