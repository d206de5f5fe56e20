"""Calibration errors of a batch that can be differentiated, beside those of distribution matching.

They are biased: those of a calibrated model are positive, and larger in smaller batches.
"""

import math
from numbers import Real
from typing import Any, Literal

from array_api_compat import array_namespace

from .._inputs.scikit_learn import Interval
from .._numerics.array_api import Array, identity_like
from .._numerics.smooth_expected import MIN_SMOOTHING_BANDWIDTH, smooth_mass
from .._statistics.kernels import KERNELS, kernel_values
from ._checks import POSITIVE, check_arrays, check_batch, check_class_batch, validate_loss_options
from ._matching import pair_average, weights_of
from ._predictions import ClassPredictions, class_predictions

# |x| becomes √(x² + ε), and √x becomes √(x + ε), whose derivatives are finite at 0.
_ABSOLUTE_VALUE_ATOL = 1e-12
ROOT_ATOL = 1e-10

# Steps per bandwidth of the integral over predictions.
_STEPS_PER_BANDWIDTH = 32


@validate_loss_options(
    {"bandwidth": [Interval(Real, MIN_SMOOTHING_BANDWIDTH, None, closed="left")]}
)
def smooth_calibration_loss(
    prediction: Array,
    target: Array,
    *,
    sample_weight: Array | None = None,
    bandwidth: float = 0.1,
    multi_class: Literal["confidence", "classwise"] = "confidence",
    input_type: Literal["logits", "probabilities"] = "logits",
) -> Array:
    r"""Smooth expected calibration error of a batch at a fixed bandwidth, for training.

    Parameters
    ----------
    prediction : array of shape (n_samples, n_classes) or (n_samples,)
        What `input_type` says, of all classes or of the second of two.

    target : array of shape (n_samples,)
        Labels 0, 1, 2 and so on.

    sample_weight : array of shape (n_samples,), default=None
        Non-negative weights; only their ratios matter.

    bandwidth : float, default=0.1
        Standard deviation σ of the Gaussian kernel, on the scale of the probabilities; at least
        1e-5.

    multi_class : {"confidence", "classwise"}, default="confidence"
        For more than two classes: the predicted class and whether it was right, or the mean over
        each class against the rest.

    input_type : {"logits", "probabilities"}, default="logits"
        What `prediction` holds.

    Returns
    -------
    loss : array of shape ()
        Between 0 and 1, and biased.

    See Also
    --------
    skcalib.metrics.smooth_expected_calibration_error : The metric.

    Notes
    -----
    :math:`\int_0^1 |r(t)| \, dt` of the residuals smoothed by a kernel that is reflected at 0 and
    1, :math:`r(t) = \sum_i w_i (y_i - p_i) K_\sigma(t, p_i)`, as for the metric [1]_, by the
    trapezoidal rule with 32 steps to a bandwidth; :math:`|r|` becomes :math:`\sqrt{r^2 +
    10^{-12}}`. Cost and memory :math:`O(n / \sigma)`, times K for "classwise".

    Bad values lead to NaN.

    References
    ----------
    .. [1] Błasiok and Nakkiran (2024). Smooth ECE. ICLR. :arxiv:`2309.12236`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.losses import smooth_calibration_loss
    >>> logits, labels = np.array([2.0, 2.0, -2.0, -2.0]), np.array([1, 0, 0, 1])
    >>> round(float(smooth_calibration_loss(logits, labels)), 2)
    0.38
    """
    xp, classes, weight = prepare_batch(prediction, target, sample_weight, input_type)
    proba, residual = classes.problems(multi_class)
    mass = weight[:, None] * residual
    n_steps = math.ceil(_STEPS_PER_BANDWIDTH / min(bandwidth, 1.0))
    height = xp.sqrt(smooth_mass(proba, mass, bandwidth, n_steps) ** 2 + _ABSOLUTE_VALUE_ATOL)
    inner = xp.sum(height, axis=1) - (height[:, 0] + height[:, -1]) / 2
    return xp.mean(inner) / n_steps


@validate_loss_options({"bandwidth": [POSITIVE]})
def maximum_mean_calibration_loss(
    prediction: Array,
    target: Array,
    *,
    sample_weight: Array | None = None,
    bandwidth: float = 0.4,
    balanced: bool = False,
    multi_class: Literal["confidence", "classwise"] = "confidence",
    input_type: Literal["logits", "probabilities"] = "logits",
) -> Array:
    r"""Maximum mean calibration error (MMCE) of a batch, for training.

    Parameters
    ----------
    prediction : array of shape (n_samples, n_classes) or (n_samples,)
        What `input_type` says, of all classes or of the second of two.

    target : array of shape (n_samples,)
        Labels 0, 1, 2 and so on.

    sample_weight : array of shape (n_samples,), default=None
        Non-negative weights; only their ratios matter.

    bandwidth : float, default=0.4
        The ν of the kernel :math:`e^{-|c - c'| / \nu}`.

    balanced : bool, default=False
        Whether hits and misses have the same weight in sum, as in the paper
        (:math:`\mathrm{MMCE}_w`).

    multi_class : {"confidence", "classwise"}, default="confidence"
        For more than two classes: the predicted class and whether it was right, or the mean over
        each class against the rest.

    input_type : {"logits", "probabilities"}, default="logits"
        What `prediction` holds.

    Returns
    -------
    loss : array of shape ()
        Between 0 and 1, and biased: of order :math:`n^{-1/2}` for calibrated models.

    See Also
    --------
    distribution_matching_loss : Twice its square without bias, with ``calibration="top-label"``,
        ``given_kernel="total-variation"`` and ``given_bandwidth=0.4``.

    Notes
    -----
    :math:`(\sum_{ij} w_i w_j r_i r_j e^{-|c_i - c_j| / \nu} + 10^{-10})^{1/2}` with the confidence
    c and the residual r, hit minus c [1]_. With two classes c is the probability of the second one.
    Cost and memory :math:`O(n^2)`, times K for "classwise".

    With `balanced` each :math:`w_i` is divided by the sum of the weights of its kind, hits or
    misses (of two classes, the labels), and batches of one kind have the loss 0. That is no
    calibration error: it is not 0 for calibrated models unless half of their predictions hit.

    Bad values lead to NaN.

    References
    ----------
    .. [1] Kumar, Sarawagi and Jain (2018). Trainable Calibration Measures for Neural Networks from
       Kernel Mean Embeddings. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.losses import maximum_mean_calibration_loss
    >>> logits, labels = np.array([2.0, 2.0]), np.array([1, 0])
    >>> round(float(maximum_mean_calibration_loss(logits, labels)), 4)  # 1/(1 + e⁻²) − 1/2
    0.3808
    """
    xp, classes, weight = prepare_batch(prediction, target, sample_weight, input_type)
    proba, residual = classes.problems(multi_class)
    total = 0.0
    for k in range(proba.shape[1]):
        points = proba[:, k : k + 1]
        near = kernel_values(points, points, KERNELS["laplacian"], bandwidth)
        class_residual = residual[:, k]
        if balanced:
            is_hit = class_residual + proba[:, k] > 0.5
            class_residual = class_residual * _shares_of_kinds(is_hit, weight)
        square = pair_average(near * class_residual[:, None] * class_residual, weight, "biased")
        total = total + xp.sqrt(xp.clip(square, 0.0, None) + ROOT_ATOL)
    return total / proba.shape[1]


@validate_loss_options(
    {"bandwidth": [POSITIVE], "regularization": [Interval(Real, 1e-6, 1e6, closed="both"), None]}
)
def conditional_kernel_calibration_loss(
    prediction: Array,
    target: Array,
    *,
    sample_weight: Array | None = None,
    bandwidth: float = 0.4,
    regularization: float | None = None,
    estimation: Literal["biased", "unbiased"] = "biased",
    input_type: Literal["logits", "probabilities"] = "logits",
) -> Array:
    r"""Conditional kernel calibration error (CKCE) of a batch, for training.

    Parameters
    ----------
    prediction : array of shape (n_samples, n_classes) or (n_samples,)
        What `input_type` says, of all classes or of the second of two.

    target : array of shape (n_samples,)
        Labels 0, 1, 2 and so on.

    sample_weight : array of shape (n_samples,), default=None
        Non-negative weights; only their ratios matter.

    bandwidth : float, default=0.4
        The γ of the kernel :math:`p^\top q + \exp(-\|p - q\|^2 / (2 \gamma^2))`.

    regularization : float in [1e-6, 1e6], default=None
        The λ of the ridge regression; None means :math:`n^{-1/4}` for batches of n samples
        of positive weight.

    estimation : {"biased", "unbiased"}, default="biased"
        "unbiased" leaves out the product of each residual with itself, so that the mean for
        calibrated predictions is 0.

    input_type : {"logits", "probabilities"}, default="logits"
        What `prediction` holds.

    Returns
    -------
    loss : array of shape ()
        At most :math:`1 / (2 \lambda)`, and at least 0 unless it is unbiased.

    See Also
    --------
    skcalib.metrics.conditional_kernel_calibration_error : The metric.

    Notes
    -----
    The squared norm of a kernel ridge regression of the residuals on the predictions [1]_, for
    kernel and labels as in the metric: :math:`\sum_{ij} Q_{ij} \langle r_i, r_j \rangle`, or
    "unbiased" the sum over :math:`i \ne j`. Cost :math:`O(n^3 + n^2 K)`, memory :math:`O(n^2)`:
    choose small batches.

    Bad values lead to NaN.

    References
    ----------
    .. [1] Moskvichev and Sejdinovic (2025). All Models Are Miscalibrated, But Some Less So.
       :arxiv:`2502.11465`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.losses import conditional_kernel_calibration_loss
    >>> logits, labels = np.array([2.0, 2.0, -2.0, -2.0]), np.array([1, 0, 0, 1])
    >>> round(float(conditional_kernel_calibration_loss(logits, labels, regularization=0.1)), 3)
    0.293
    """
    xp, classes, weight = prepare_batch(prediction, target, sample_weight, input_type)
    proba, root = classes.proba, xp.sqrt(weight)[:, None]
    gram = proba @ proba.T + kernel_values(proba, proba, KERNELS["rbf"], bandwidth)
    gram, residual = root * gram * root.T, root * classes.residuals()
    ridge = regularization
    if ridge is None:
        ridge = xp.sum(xp.astype(weight != 0, weight.dtype)) ** -0.25
    shifted = gram + ridge * identity_like(gram, len(weight))
    if estimation == "biased":
        solution, diagonal_sum = xp.linalg.solve(shifted, residual), 0.0
    else:
        inverse = xp.linalg.inv(shifted)
        solution = inverse @ residual
        diagonal = xp.linalg.diagonal(inverse) - ridge * xp.sum(inverse**2, axis=1)
        diagonal_sum = xp.sum(diagonal[:, None] * residual**2)
    return xp.sum(solution * (gram @ solution)) - diagonal_sum


def prepare_batch(
    prediction: Array, target: Array, sample_weight: Array | None, input_type: str, least: int = 1
) -> tuple[Any, ClassPredictions, Array]:
    """Return the namespace of checked arrays, the predictions, and weights that sum to 1."""
    check_arrays(prediction, target=target, sample_weight=sample_weight)
    check_batch(target, sample_weight, least=least)
    check_class_batch(prediction, target)
    classes = class_predictions(prediction, target, input_type)
    return array_namespace(classes.proba), classes, weights_of(sample_weight, classes.proba)


def _shares_of_kinds(is_hit: Array, weight: Array) -> Array:
    """1 over the weight of all hits for hits, and of all misses for misses; 0 if one is missing."""
    xp = array_namespace(weight)
    hits = xp.sum(xp.where(is_hit, weight, 0.0))
    misses = xp.sum(xp.where(is_hit, 0.0, weight))
    kind_weight = xp.where(is_hit, hits, misses)
    has_both = (hits > 0) & (misses > 0)
    return xp.where(has_both, 1 / xp.where(has_both, kind_weight, 1.0), 0.0)
