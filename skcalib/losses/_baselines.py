"""Losses of other papers, as baselines: density estimates and soft bins.

They estimate a calibration error with a bandwidth or a temperature that has to be chosen; the
other losses have none, or one with a meaning.
"""

import math
from numbers import Real
from typing import Literal

import numpy as np
from array_api_compat import array_namespace

from .._inputs.scikit_learn import Count, Interval, StrOptions
from .._numerics.array_api import Array, arange_like, asarray_like, special_functions, stop_gradient
from ._checks import POSITIVE, validate_loss_options
from ._errors import ROOT_ATOL, prepare_batch
from ._predictions import MIN_PROBABILITY, less_largest

# Soft bins that hold less than this share of a batch add less than that to the sum of squares.
_MIN_BIN_SHARE = 1e-12

# The smallest and the largest bandwidth of density estimates that are compared, and the number of
# them in each of two searches, over all and around the best.
_MIN_KDE_WIDTH, _MAX_KDE_WIDTH, _N_KDE_WIDTHS = 1e-5, 1.0, 21


@validate_loss_options(
    {
        "bandwidth": [POSITIVE, StrOptions({"likelihood"})],
        "order": [Interval(Real, 1, None, closed="left")],
    }
)
def kde_calibration_loss(
    prediction: Array,
    target: Array,
    *,
    sample_weight: Array | None = None,
    bandwidth: float | Literal["likelihood"] = 0.1,
    order: float = 1.0,
    input_type: Literal["logits", "probabilities"] = "logits",
) -> Array:
    r"""Canonical calibration error by kernel density estimates (ECE-KDE), for training.

    Parameters
    ----------
    prediction : array of shape (n_samples, n_classes) or (n_samples,)
        What `input_type` says, of all classes or of the second of two.

    target : array of shape (n_samples,)
        Labels 0, 1, 2 and so on.

    sample_weight : array of shape (n_samples,), default=None
        Non-negative weights; only their ratios matter.

    bandwidth : float or "likelihood", default=0.1
        The h of the kernels, which are Dirichlet distributions with parameters p/h + 1.
        "likelihood" uses the h in [1e-5, 1] under which each prediction of the batch is most likely
        given the others, as a constant.

    order : float, default=1.0
        The power q of the residuals; at least 1.

    input_type : {"logits", "probabilities"}, default="logits"
        What `prediction` holds.

    Returns
    -------
    loss : array of shape ()
        At least 0, and biased.

    Notes
    -----
    :math:`\sum_j w_j \sum_k |\sum_{i \ne j} w_i \kappa_{ji} 1[y_i = k] / \sum_{i \ne j} w_i
    \kappa_{ji} - p_{jk}|^q` where :math:`\kappa_{ji}` is the density at :math:`p_j` of the
    Dirichlet distribution with parameters :math:`p_i / h + 1` [1]_. Cost :math:`O(n^2 K)`, and 42
    times :math:`O(n^2 + n K)` more with "likelihood", which searches h on two grids to 3 %.

    Bad values lead to NaN.

    References
    ----------
    .. [1] Popordanoska, Sayer and Blaschko (2022). A Consistent and Differentiable Lp Canonical
       Calibration Error Estimator. NeurIPS. :arxiv:`2210.07810`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.losses import kde_calibration_loss
    >>> logits, labels = np.array([2.0, 2.0, 2.0]), np.array([1, 0, 1])
    >>> float(kde_calibration_loss(logits, labels, order=2.0)) > 0
    True
    """
    xp, classes, weight = prepare_batch(prediction, target, sample_weight, input_type, least=2)
    proba = classes.proba
    # logarithms of saturated probabilities would make gradients explode
    log_proba = xp.clip(classes.log_proba, math.log(MIN_PROBABILITY), None)
    index = arange_like(weight, len(weight))
    is_other = (index[:, None] != index) & (weight != 0)
    products = xp.where(is_other, log_proba @ proba.T, -math.inf)
    width = _likely_width(proba, products, weight) if bandwidth == "likelihood" else bandwidth
    share = xp.exp(less_largest(_log_densities(proba, products, width))) * weight
    share = share / xp.sum(share, axis=1, keepdims=True)
    gap = share @ (classes.residuals() + proba) - proba
    return xp.sum(weight * xp.sum(xp.abs(gap) ** order, axis=1))


def _log_densities(proba: Array, products: Array, width: Array | float) -> Array:
    """log κ_ji, (n, n), of the products Σ_k p_ik log p_jk; −∞ for i = j and i without weight."""
    xp = array_namespace(proba)
    gammaln, shape = special_functions(xp).gammaln, proba / width + 1
    normalizer = xp.sum(gammaln(shape), axis=1) - gammaln(xp.sum(shape, axis=1))
    return products / width - normalizer


def _likely_width(proba: Array, products: Array, weight: Array) -> Array:
    """The h of the largest leave-one-out likelihood, Σ_j w_j log Σ_{i≠j} w_i κ_ji."""
    xp, proba, products = array_namespace(weight), stop_gradient(proba), stop_gradient(products)

    def likelihood(width: Array) -> Array:
        exponent = _log_densities(proba, products, width)
        largest = xp.max(exponent, axis=1, keepdims=True)
        total = xp.sum(xp.exp(exponent - largest) * weight, axis=1)
        return xp.sum(weight * (largest[:, 0] + xp.log(total)))

    low, high = math.log(_MIN_KDE_WIDTH), math.log(_MAX_KDE_WIDTH)
    best, reach = (low + high) / 2, (high - low) / 2
    steps = asarray_like(weight, np.linspace(-1, 1, _N_KDE_WIDTHS))
    for _ in range(2):
        widths = xp.exp(xp.clip(best + reach * steps, low, high))
        values = xp.stack([likelihood(width) for width in widths])
        best = xp.log(widths[xp.argmax(values)])
        reach = reach * 2 / (_N_KDE_WIDTHS - 1)
    return xp.exp(best)


@validate_loss_options({"n_bins": [Count(1, 10_000)], "temperature": [POSITIVE]})
def soft_binned_calibration_loss(
    prediction: Array,
    target: Array,
    *,
    sample_weight: Array | None = None,
    n_bins: int = 15,
    temperature: float = 0.01,
    multi_class: Literal["confidence", "classwise"] = "confidence",
    input_type: Literal["logits", "probabilities"] = "logits",
) -> Array:
    r"""Calibration error with bins of soft membership, for training.

    Parameters
    ----------
    prediction : array of shape (n_samples, n_classes) or (n_samples,)
        What `input_type` says, of all classes or of the second of two.

    target : array of shape (n_samples,)
        Labels 0, 1, 2 and so on.

    sample_weight : array of shape (n_samples,), default=None
        Non-negative weights; only their ratios matter.

    n_bins : int, default=15
        Number of bins of equal width.

    temperature : float, default=0.01
        The T of the soft membership; the smaller, the harder the bins.

    multi_class : {"confidence", "classwise"}, default="confidence"
        For more than two classes: the predicted class and whether it was right, or the mean over
        each class against the rest.

    input_type : {"logits", "probabilities"}, default="logits"
        What `prediction` holds.

    Returns
    -------
    loss : array of shape ()
        Between 0 and 1, and biased.

    Notes
    -----
    With the centres :math:`\xi_m` of the bins and :math:`w_{im} = \mathrm{softmax}_m(-(c_i -
    \xi_m)^2 / T)`, it is :math:`\bigl(\sum_m (\sum_i w_i w_{im} r_i)^2 / \sum_i w_i w_{im} +
    10^{-10}\bigr)^{1/2}` for sample weights :math:`w_i` that sum to 1 [1]_. Cost and memory
    :math:`O(n)` times the number of bins, and times K for "classwise".

    Bad values lead to NaN.

    References
    ----------
    .. [1] Karandikar et al. (2021). Soft Calibration Objectives for Neural Networks. NeurIPS.
       :arxiv:`2108.00106`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.losses import soft_binned_calibration_loss
    >>> logits, labels = np.array([2.0, 2.0]), np.array([1, 0])
    >>> round(float(soft_binned_calibration_loss(logits, labels)), 4)  # 1/(1 + e⁻²) − 1/2
    0.3808
    """
    xp, classes, weight = prepare_batch(prediction, target, sample_weight, input_type)
    proba, residual = classes.problems(multi_class)
    centre = (xp.astype(arange_like(proba, n_bins), proba.dtype) + 0.5) / n_bins
    score = -((proba[:, :, None] - centre) ** 2) / temperature
    share = xp.exp(less_largest(score))
    mass = weight[:, None, None] * share / xp.sum(share, axis=2, keepdims=True)  # (n, P, n_bins)
    size = xp.sum(mass, axis=0)
    is_empty = size < _MIN_BIN_SHARE
    gap = xp.where(is_empty, 0.0, xp.sum(mass * residual[:, :, None], axis=0))
    squares = gap**2 / xp.where(is_empty, 1.0, size)
    return xp.mean(xp.sqrt(xp.sum(squares, axis=1) + ROOT_ATOL))
