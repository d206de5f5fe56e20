"""Distribution matching as a loss for training."""

from numbers import Real
from typing import Any

from array_api_compat import array_namespace

from .._inputs.scikit_learn import Interval, StrOptions, validate_params
from .._numerics.array_api import Array, as_type, stop_gradient
from .._statistics.functions import KERNELS
from .._statistics.matching import PIT_BANDWIDTH
from .._statistics.matching_checks import FORMS, PIT_FORMS
from .._statistics.matching_classes import CLASS_FORMS
from ._checks import (
    CLASS_CONSTRAINTS,
    FEATURE_KERNELS,
    SMOOTH_KERNELS,
    check_arrays,
    check_batch,
    check_class_batch,
    check_class_form,
    check_forecast_batch,
    check_forecast_form,
    check_forecast_kernel,
)
from ._classes import ClassPredictions, class_predictions
from ._conditions import Condition, same_group
from ._forecasts import Draws, Normal, Sample, as_distributions
from ._pairs import pair_average, weights_of
from ._terms import feature_residuals, outcome_terms, uniform_terms

# Expected losses that differ by less than this many rounding errors are equal.
_TIE = 16

_POSITIVE = Interval(Real, 0, None, closed="neither")

MATCHING_LOSS_CONSTRAINTS: dict = {
    "calibration": [StrOptions(FORMS | CLASS_FORMS)],
    "kernel": [StrOptions(SMOOTH_KERNELS | FEATURE_KERNELS)],
    "bandwidth": [_POSITIVE, None],
    "given_kernel": [StrOptions(set(KERNELS))],
    "given_bandwidth": [_POSITIVE, None],
    "detach_given": ["boolean"],
    "estimator": [StrOptions({"unbiased", "biased"})],
    **CLASS_CONSTRAINTS,
}


@validate_params(MATCHING_LOSS_CONSTRAINTS, prefer_skip_nested_validation=True)
def distribution_matching_loss(
    prediction: Any,
    target: Array,
    *,
    calibration: str = "distribution",
    given: Array | None = None,
    sample_weight: Array | None = None,
    kernel: str = "rbf",
    bandwidth: float | None = None,
    given_kernel: str = "rbf",
    given_bandwidth: float | None = None,
    thresholds: Array | None = None,
    loss: Array | None = None,
    class_kernel: Array | None = None,
    detach_given: bool = False,
    estimator: str = "unbiased",
    input_type: str = "logits",
) -> Array:
    r"""Distribution matching error of a batch, as a function that can be differentiated.

    The formula of :func:`skcalib.metrics.distribution_matching_error`, for NumPy, torch and JAX
    arrays alike: added to a proper loss, it draws a model in training towards calibration [1]_. The
    expectation of the unbiased estimate is the same for every size of a batch; it can be negative,
    and must not be clipped.

    Parameters
    ----------
    prediction : array, tuple of two arrays, or Draws
        For classes, what `input_type` says: shape (n_samples, n_classes), or (n_samples,) of the
        second of two classes. For a number, means and standard deviations, each of shape
        (n_samples,), or :class:`Draws` from the distribution of each sample.

    target : array of shape (n_samples,)
        Labels 0, 1, 2 and so on, or outcomes.

    calibration : {"distribution", "quantile", "threshold", "marginal", "decision", "group", \
            "individual", "local", "canonical", "top-label"}, default="distribution"
        The form of calibration, as for the metric. For classes, "distribution" is "canonical".

    given : array of shape (n_samples,) or (n_samples, n_features), default=None
        What is conditioned on: groups for "group", features for "individual" and "local". With
        "distribution" it takes the place of the forecast's parameters.

    sample_weight : array of shape (n_samples,), default=None
        Non-negative weights; only their ratios matter.

    kernel : {"rbf", "laplacian", "energy", "moments", "tanh", "thresholds"}, default="rbf"
        Kernel on the outcomes; "rbf", "laplacian" and "energy" also on probability integral
        transforms (PITs). Classes have the kernel 1 if they are equal, and 0 if not.

    bandwidth : float, default=None
        The ν of `kernel` in the units of the outcomes, or the s of "tanh". For PITs it is 0.2236 by
        default; otherwise it is required, as a number that depends on the batch would bias the
        estimate. "energy", "moments" and "thresholds" have none.

    given_kernel : {"rbf", "laplacian", "exponential", "total-variation"}, default="rbf"
        Kernel on what is conditioned on, if that is numbers.

    given_bandwidth : float, default=None
        The ν of `given_kernel`, in the units of what is conditioned on. For probabilities of
        classes it is 0.4 by default; otherwise it is required.

    thresholds : array of shape (n_thresholds,), default=None
        For ``calibration="threshold"`` and "decision" of a number (the decisions whether the
        outcome exceeds each), and for the kernels "tanh" and "thresholds".

    loss : array of shape (n_actions, n_classes), default=None
        The loss of each action in each class, for ``calibration="decision"`` of classes.

    class_kernel : array of shape (n_classes, n_classes), default=None
        M of :math:`r^\top M r'`; by default the identity. A diagonal gives weights to classes, and
        ``loss.T @ loss`` compares losses, as the metric does with ``kernel="loss"``. Not for
        "top-label" and "marginal".

    detach_given : bool, default=False
        Whether what is conditioned on counts as constant. Otherwise gradients flow through it, too.

    estimator : {"unbiased", "biased"}, default="unbiased"
        Whether the average is over all pairs of different samples, or also over each sample with
        itself.

    input_type : {"logits", "probabilities"}, default="logits"
        What `prediction` holds for classes.

    Returns
    -------
    loss : array of shape ()
        The estimate, in units of the kernel.

    See Also
    --------
    skcalib.metrics.distribution_matching_error : The metric, for any number of samples.

    Notes
    -----
    For classes, :math:`h_{ij} = k(z_i, z_j) \, r_i^\top M r_j` with the residuals r, labels minus
    probabilities; for one class against the rest :math:`2 k r_i r_j`, whose mean over classes is
    "marginal". For a number it is equation 3 of [1]_ with the forecast's randomness integrated
    out: in closed form for normal distributions, and over draws for others, which leaves the
    estimate unbiased. The actions of "decision" are constants.

    The kernels "tanh" and "thresholds" are the means over all thresholds, as in the metric. Its
    thresholds for "thresholds" and ``calibration="threshold"`` are 64 quantiles of all forecasts
    pooled; here they must not change from batch to batch. "moments" takes the fourth power of
    outcomes, which must not overflow.

    The cost is :math:`O(n^2)`, times K for classes (with "rbf" in matrix products), and times s²
    for s draws; all pairs are held, as a batch is small. For "marginal" and "top-label" with "rbf"
    and a bandwidth of at least 0.12 it is :math:`O(n K)`, by a power series that is exact to
    rounding; with another kernel, "marginal" holds the pairs K times where gradients are taken.

    All arrays are of one package. Half precision and integers become single precision, or double
    precision in NumPy for integers; `target`, `given` and what is constant take the type of the
    prediction. No value raises an error, so that the function can be compiled. Bad values lead to
    NaN: labels that are none of 0, …, K − 1, also with a weight of 0, standard deviations that are
    not positive, negative weights, NaN, and less than two positive weights.

    References
    ----------
    .. [1] C. Marx, S. Zalouk and S. Ermon (2023). Calibration by Distribution Matching: Trainable
       Kernel Calibration Metrics. NeurIPS 2023. :arxiv:`2310.20211`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.losses import distribution_matching_loss
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=256)
    >>> y = mean + rng.normal(size=256)
    >>> std = np.full(256, 0.5)  # half the true one
    >>> loss = distribution_matching_loss((mean, std), y, bandwidth=1.0, given_bandwidth=1.0)
    >>> bool(loss > 0)
    True
    """
    check_arrays(
        prediction,
        target=target,
        given=given,
        sample_weight=sample_weight,
        thresholds=thresholds,
        loss=loss,
        class_kernel=class_kernel,
    )
    check_batch(target, sample_weight, given, least=2 if estimator == "unbiased" else 1)
    condition = Condition(given_kernel, given_bandwidth, detach_given)
    if isinstance(prediction, tuple | Draws):
        check_forecast_batch(prediction, target, thresholds)
        forecast = as_distributions(prediction)
        thresholds = as_type(thresholds, forecast.dtype)
        check_forecast_form(
            calibration, forecast, given, loss, class_kernel, thresholds, given_bandwidth
        )
        check_forecast_kernel(calibration, forecast, kernel, bandwidth, thresholds)
        terms = _forecast_terms(forecast, target, calibration, kernel, bandwidth, thresholds)
        near = _near_forecasts(forecast, calibration, condition, given, thresholds)
        weight = weights_of(sample_weight, terms)
        return pair_average(terms if near is None else near * terms, weight, estimator)
    check_class_batch(prediction, target)
    return class_matching_loss(
        class_predictions(prediction, target, input_type),
        calibration=calibration,
        given=given,
        sample_weight=sample_weight,
        kernel=kernel,
        bandwidth=bandwidth,
        condition=condition,
        thresholds=thresholds,
        loss=loss,
        class_kernel=class_kernel,
        estimator=estimator,
    )


def class_matching_loss(
    classes: ClassPredictions,
    *,
    calibration: str,
    given: Array | None,
    sample_weight: Array | None,
    kernel: str,
    bandwidth: float | None,
    condition: Condition,
    thresholds: Array | None,
    loss: Array | None,
    class_kernel: Array | None,
    estimator: str,
) -> Array:
    """The error for classes, of arrays that are checked."""
    check_class_form(
        calibration,
        given,
        condition.given_bandwidth,
        loss,
        class_kernel,
        classes.proba.shape[1],
        kernel=(kernel, "rbf"),
        bandwidth=(bandwidth, None),
        thresholds=(thresholds, None),
    )
    weight = weights_of(sample_weight, classes.proba)
    if calibration in ("marginal", "top-label"):
        multi_class = "confidence" if calibration == "top-label" else "classwise"
        proba, residual = classes.problems(multi_class)
        averages = condition.pair_averages(proba, residual, weight, estimator)
        return 2 * array_namespace(averages).mean(averages)
    terms, near = _class_terms(classes, calibration, condition, given, loss, class_kernel)
    return pair_average(near * terms, weight, estimator)


def _forecast_terms(forecast, target, calibration, kernel, bandwidth, thresholds):
    """The terms of outcomes or PITs, (n, n)."""
    outcome = as_type(target, forecast.dtype)
    if calibration in PIT_FORMS:
        bandwidth = PIT_BANDWIDTH if bandwidth is None else bandwidth
        return uniform_terms(forecast.cdf(outcome), kernel, bandwidth)
    if kernel in FEATURE_KERNELS:
        residual = feature_residuals(forecast, outcome, kernel, bandwidth, thresholds)
        return residual @ residual.T
    return outcome_terms(forecast, outcome, kernel, bandwidth)


def _near_forecasts(
    forecast: Normal | Sample,
    calibration: str,
    condition: Condition,
    given: Array,
    thresholds: Array,
) -> Array | None:
    """The kernel on what is conditioned on, (n, n); None if nothing is."""
    if calibration in ("quantile", "marginal"):
        return None
    if calibration == "group":
        return same_group(given, forecast.dtype)
    if calibration == "threshold":
        return condition.near_thresholds(forecast.cdf(thresholds[None]))
    if calibration == "decision":  # the outcome is said to exceed a threshold if that is likely
        is_below = as_type(forecast.cdf(thresholds[None]) >= 0.5, forecast.dtype)
        return condition.near_thresholds(is_below)
    points = forecast.parameters() if given is None else given
    return condition.near(as_type(points, forecast.dtype))


def _class_terms(
    classes: ClassPredictions,
    calibration: str,
    condition: Condition,
    given: Array,
    loss: Array,
    class_kernel: Array,
) -> tuple[Array, Array]:
    """The terms rᵀ M r', and the kernel on what is conditioned on, (n, n) each."""
    xp = array_namespace(classes.proba)
    residual = classes.residuals()
    weighted = residual
    if class_kernel is not None:
        weighted = residual @ as_type(class_kernel, residual.dtype)
    terms = weighted @ residual.T
    if calibration == "group":
        return terms, same_group(given, residual.dtype)
    if calibration == "decision":
        expected = stop_gradient(classes.proba) @ as_type(loss, residual.dtype).T
        slack = _TIE * xp.finfo(residual.dtype).eps * xp.max(xp.abs(expected))
        is_least = expected <= xp.min(expected, axis=1, keepdims=True) + slack
        action = xp.argmax(xp.astype(is_least, xp.int32), axis=1)  # the first of equal ones
        return terms, same_group(action, residual.dtype)
    if given is not None:
        return terms, condition.near(as_type(given, residual.dtype))
    return terms, condition.near_probabilities(classes.proba)
