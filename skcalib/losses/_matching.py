"""Distribution matching as a loss for training."""

import math
from collections.abc import Callable
from typing import Any, Literal

from array_api_compat import array_namespace

from .._inputs.options import select_arguments
from .._inputs.scikit_learn import StrOptions
from .._numerics.array_api import Array, arange_like, as_type, distances, stop_gradient
from .._numerics.matching import feature_values, uniform_mean, uniform_pair_mean
from .._statistics.kernels import KERNELS, kernel_values
from .._statistics.matching import PIT_BANDWIDTH
from .._statistics.matching_checks import FEATURE_KERNELS, SMOOTH_KERNELS, MatchingForm, name_of
from . import _checks, _predictions
from ._checks import POSITIVE, MatchingLossOptions, validate_loss_options
from ._predictions import ClassPredictions, Distributions, SampledForecast

# Expected losses that differ by less than this many rounding errors are equal.
_TIE_ROUNDINGS = 16

# The default bandwidth on probabilities of classes.
_PROBABILITY_BANDWIDTH = 0.4

# Half of the range of probabilities, in bandwidths, up to which a power series of the Gaussian
# kernel is better than pairs, and does not underflow in single precision.
_MAX_SERIES_REACH = 6.0

# The rounding errors of products of probabilities count for less than those of single precision
# with a Gaussian kernel of a larger bandwidth.
_MIN_PRODUCT_BANDWIDTH = 0.2

MATCHING_LOSS_CONSTRAINTS: dict = {
    "kernel": [StrOptions(SMOOTH_KERNELS | FEATURE_KERNELS), callable],
    "bandwidth": [POSITIVE, None],
    "given_kernel": [StrOptions(set(KERNELS)), callable],
    "given_bandwidth": [POSITIVE, None],
}


@validate_loss_options(MATCHING_LOSS_CONSTRAINTS)
def distribution_matching_loss(
    prediction: Any,
    target: Array,
    *,
    calibration: MatchingForm = "distribution",
    given: Array | None = None,
    sample_weight: Array | None = None,
    kernel: str | Callable = "rbf",
    bandwidth: float | None = None,
    given_kernel: str | Callable = "rbf",
    given_bandwidth: float | None = None,
    thresholds: Array | None = None,
    loss: Array | Callable | None = None,
    class_kernel: Array | None = None,
    detach_given: bool = False,
    estimation: Literal["unbiased", "biased"] = "unbiased",
    input_type: Literal["logits", "probabilities"] = "logits",
) -> Array:
    r"""Distribution matching error of a batch, as a function that can be differentiated.

    The formula of :func:`skcalib.metrics.distribution_matching_error` for NumPy, torch and JAX
    arrays, to be added to a proper loss [1]_. The unbiased estimate can be negative, and must not
    be clipped.

    Parameters
    ----------
    prediction : array, tuple of two or three arrays, or SampledForecast
        For classes, what `input_type` says: shape (n_samples, n_classes), or (n_samples,) of the
        second of two classes. For a number, means and standard deviations, each of shape
        (n_samples,); means, standard deviations and weights of mixtures of normal distributions,
        each of shape (n_samples, n_components); or :class:`SampledForecast` from the distribution
        of each sample.

    target : array of shape (n_samples,)
        Labels 0, 1, 2 and so on, or outcomes.

    calibration : {"distribution", "quantile", "threshold", "marginal", "decision", "group", \
            "individual", "local", "canonical", "top-label"}, default="distribution"
        The form of calibration, as for the metric. For classes, "distribution" is "canonical". For
        numbers it conditions on mean and log standard deviation (see the notes).

    given : array of shape (n_samples,) or (n_samples, n_features), default=None
        What is conditioned on: groups for "group", features for "individual". With "distribution"
        and "local" it takes the place of the forecast's parameters.

    sample_weight : array of shape (n_samples,), default=None
        Non-negative weights; only their ratios matter.

    kernel : {"rbf", "laplacian", "energy", "moments", "tanh", "thresholds", "loss"} or callable, \
            default="rbf"
        Kernel on the outcomes; "rbf", "laplacian" and "energy" also on probability integral
        transforms (PITs). "loss" compares the losses of all actions. A callable takes arrays of
        shapes (a, 1) and (b, 1), of outcomes or of PITs, and returns values of shape (a, b).
        Classes have the kernel 1 if they are equal and 0 if not, or "loss".

    bandwidth : float, default=None
        The ν of `kernel` in the units of the outcomes, or the s of "tanh": 0.2236 by default for
        PITs, otherwise required. "energy", "moments", "thresholds", "loss" and callables have none.

    given_kernel : {"rbf", "laplacian", "exponential", "total-variation"} or callable, default="rbf"
        Kernel on what is conditioned on, if that is numbers. A callable takes arrays of shapes (a,
        d) and (b, d).

    given_bandwidth : float, default=None
        The ν of `given_kernel`, in the units of what is conditioned on: 0.4 by default for
        probabilities of classes, otherwise required. Callables have none.

    thresholds : array of shape (n_thresholds,), default=None
        For ``calibration="threshold"`` and "decision" of a number (the decisions whether the
        outcome exceeds each), and for the kernels "tanh" and "thresholds".

    loss : array of shape (n_actions, n_classes), or callable, default=None
        For ``kernel="loss"`` and ``calibration="decision"``: the loss of each action in each class,
        or, for a number, a function of outcomes of shape (m,) that returns the losses of all
        actions, of shape (m, n_actions). For a number "decision" takes it, or `thresholds`.

    class_kernel : array of shape (n_classes, n_classes), default=None
        M of :math:`r^\top M r'`; by default the identity. A diagonal gives weights to classes. Not
        for "top-label", "marginal" and ``kernel="loss"``.

    detach_given : bool, default=False
        Whether what is conditioned on counts as constant, through which no gradients flow.

    estimation : {"unbiased", "biased"}, default="unbiased"
        "unbiased" averages over all pairs of different samples; "biased" also pairs each sample
        with itself.

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
    "marginal", with the kernel of the pairs (1 − c, c) of its probability c. For a number it is
    equation 3 of [1]_ with the forecast's randomness integrated out: in closed form for normal
    distributions and their mixtures, and over draws for others. The weights of mixtures are divided
    by their sum. The kernels "tanh" and "thresholds" are means over all thresholds.

    For a number, "distribution" compares forecasts of similar mean and standard deviation and is
    blind to their shape: mixtures that are skewed to the left and to the right look alike, and
    their errors can cancel. Pass what tells them apart as `given`, such as all parameters.

    A callable kernel must be symmetric and positive semi-definite. A loss with a step has the
    derivative 0: use "thresholds" instead.

    The cost is :math:`O(n^2)`, times K for classes, and times s² for s draws or components; all
    pairs are held. For "marginal" and "top-label" with "rbf" and a bandwidth of at least 0.12 it is
    :math:`O(n K)`.

    All arrays are of one package. Bad values lead to NaN.

    References
    ----------
    .. [1] Marx, Zalouk and Ermon (2023). Calibration by Distribution Matching. NeurIPS.
       :arxiv:`2310.20211`

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
    arrays = {"given": given, "sample_weight": sample_weight, "thresholds": thresholds}
    arrays |= {"loss": None if callable(loss) else loss, "class_kernel": class_kernel}
    _checks.check_arrays(prediction, target=target, **arrays)
    _checks.check_batch(target, sample_weight, given, least=2 if estimation == "unbiased" else 1)
    names = {*MATCHING_LOSS_CONSTRAINTS, *arrays, "calibration", "detach_given", "estimation"}
    error = MatchingLoss(**select_arguments(locals(), names - {"sample_weight"}))
    if isinstance(prediction, tuple | SampledForecast):
        _checks.check_forecast_batch(prediction, target, thresholds)
        return error.evaluate_forecasts(
            _predictions.as_distributions(prediction), target, sample_weight
        )
    _checks.check_class_batch(prediction, target)
    return error.evaluate_classes(
        _predictions.class_predictions(prediction, target, input_type), sample_weight
    )


class MatchingLoss(MatchingLossOptions):
    """The error of a batch with these options, which are checked first.

    Gradients flow through what is conditioned on, unless it is detached.
    """

    def evaluate_classes(self, classes: ClassPredictions, sample_weight: Array | None) -> Array:
        """The error of class probabilities."""
        self.check_classes(classes.proba.shape[1])
        weight = weights_of(sample_weight, classes.proba)
        has_losses = self.kernel_name == "loss"
        if self.calibration in ("marginal", "top-label") and not has_losses:
            multi_class = "confidence" if self.calibration == "top-label" else "classwise"
            averages = self._pair_averages(*classes.problems(multi_class), weight)
            return 2 * array_namespace(averages).mean(averages)
        residual = classes.residuals()
        if has_losses:
            residual = residual @ as_type(self.loss, residual.dtype).T
        weighted = residual
        if self.class_kernel is not None:
            weighted = residual @ as_type(self.class_kernel, residual.dtype)
        terms = weighted @ residual.T
        if self.calibration != "marginal":
            terms = self._class_condition_kernel(classes) * terms
        return pair_average(terms, weight, self.estimation)

    def evaluate_forecasts(
        self, forecast: Distributions, target: Array, sample_weight: Array | None
    ) -> Array:
        """The error of forecasts of a number."""
        self.check_forecasts(forecast)
        thresholds = as_type(self.thresholds, forecast.dtype)
        terms = self._terms(forecast, as_type(target, forecast.dtype), thresholds)
        near = self._forecast_condition_kernel(forecast, thresholds)
        weight = weights_of(sample_weight, terms)
        return pair_average(terms if near is None else near * terms, weight, self.estimation)

    # The terms of pairs

    def _terms(self, forecast: Any, outcome: Array, thresholds: Array) -> Any:
        """ℓ(y_i, y_j) − e_i(y_j) − e_j(y_i) + c_ij of outcomes, or of PITs, (n, n)."""
        kernel, bandwidth = self.kernel, self.bandwidth
        if self.is_of_pits:
            outcome = forecast.cdf(outcome)
            if callable(kernel):
                uniform = _predictions.uniform_like(outcome)
                means = uniform.kernel_means(kernel, None, outcome).T  # (n, 1)
                forecast_pairs = uniform.pair_means(kernel, None)
            else:
                bandwidth = PIT_BANDWIDTH if bandwidth is None else bandwidth
                means = uniform_mean(kernel, bandwidth, outcome)[:, None]
                forecast_pairs = uniform_pair_mean(kernel, bandwidth)
        elif self.kernel_name == "loss":
            residual = _predictions.loss_values(self.loss, outcome) - forecast.loss_means(self.loss)
            return residual @ residual.T
        elif self.has_decision_kernel:
            residual = feature_values(kernel, outcome, thresholds, bandwidth)
            residual = residual - forecast.feature_means(kernel, thresholds, bandwidth)
            return residual.T @ residual
        else:
            means = forecast.kernel_means(kernel, bandwidth, outcome)
            forecast_pairs = forecast.pair_means(kernel, bandwidth)
        pairs = _predictions.line_kernel(kernel, bandwidth, outcome, outcome)
        return pairs - means - means.T + forecast_pairs

    # The kernel on what is conditioned on

    def _forecast_condition_kernel(self, forecast: Any, thresholds: Array) -> Any:
        """The kernel on what is conditioned on, (n, n); None if nothing is."""
        if self.calibration in ("quantile", "marginal"):
            return None
        if self.calibration == "group":
            return equal_rows_kernel(self.given, forecast.dtype)
        if self.calibration == "threshold":
            return self._threshold_kernel(forecast.cdf(thresholds[None]))
        if self.calibration == "decision" and self.loss is not None:
            return equal_rows_kernel(_argmin_action(forecast.loss_means(self.loss)), forecast.dtype)
        if self.calibration == "decision":  # the outcome is said to exceed what it likely exceeds
            is_below = as_type(forecast.cdf(thresholds[None]) >= 0.5, forecast.dtype)
            return self._threshold_kernel(is_below)
        points = forecast.parameters if self.given is None else self.given
        return self._kernel_matrix(as_type(points, forecast.dtype))

    def _class_condition_kernel(self, classes: ClassPredictions) -> Any:
        """The kernel on what is conditioned on, (n, n)."""
        dtype = classes.proba.dtype
        if self.calibration == "group":
            return equal_rows_kernel(self.given, dtype)
        if self.calibration == "decision":
            action = _argmin_action(classes.proba @ as_type(self.loss, dtype).T)
            return equal_rows_kernel(action, dtype)
        if self.given is not None:
            return self._kernel_matrix(as_type(self.given, dtype))
        family = KERNELS.get(name_of(self.given_kernel))
        if family is None or not family.is_gaussian or self._width < _MIN_PRODUCT_BANDWIDTH:
            return self._kernel_matrix(classes.proba)
        # one matrix product in place of the distances of all pairs
        points = self._as_constant(classes.proba) / self._width
        xp = array_namespace(points)
        half = xp.sum(points**2, axis=1) / 2
        return xp.exp(points @ points.T - half[:, None] - half)

    @property
    def _width(self) -> float:
        return self.given_bandwidth or _PROBABILITY_BANDWIDTH

    def _as_constant(self, points: Array) -> Any:
        return stop_gradient(points) if self.detach_given else points

    def _kernel_matrix(self, points: Array) -> Any:
        """k of points (n,) or (n, d), (n, n)."""
        points = self._as_constant(points if points.ndim == 2 else points[:, None])
        if callable(self.given_kernel):
            return _predictions.call_kernel(self.given_kernel, points, points)
        return kernel_values(points, points, KERNELS[self.given_kernel], self._width)

    def _threshold_kernel(self, probability: Array) -> Any:
        """1 − the mean of |F_i(t) − F_j(t)| over thresholds, from F (n, m).

        Of decisions 0 and 1, it is the share of those in which two samples agree.
        """
        probability = self._as_constant(probability)
        return 1 - distances(probability, probability, "cityblock") / probability.shape[1]

    def _pair_averages(self, proba: Array, residual: Array, weight: Array) -> Any:
        """`pair_average` of k r_i r_j for binary problems with p and r (n, P), (P,)."""
        xp, family = array_namespace(proba), KERNELS.get(name_of(self.given_kernel))
        if family is not None and family.is_gaussian:
            reach = family.per_probability / self._width / 2
            if reach <= _MAX_SERIES_REACH:
                points = (2 * self._as_constant(proba) - 1) * reach
                return gaussian_average(points, residual, reach, weight, self.estimation)
        averages = []
        for k in range(proba.shape[1]):
            p, r = proba[:, k], residual[:, k]
            near = self._kernel_matrix(xp.stack([1 - p, p], axis=1))
            averages.append(pair_average(near * r[:, None] * r, weight, self.estimation))
        return xp.stack(averages)


def _argmin_action(expected: Array) -> Array:
    """The action of the least expected loss (n, A), the first of equal ones, (n,)."""
    xp, expected = array_namespace(expected), stop_gradient(expected)
    lowest = xp.min(expected, axis=1, keepdims=True)
    slack = (
        _TIE_ROUNDINGS * xp.finfo(expected.dtype).eps * xp.maximum(xp.abs(expected), xp.abs(lowest))
    )
    is_least = expected - lowest <= slack
    return xp.argmax(xp.astype(is_least, xp.int32), axis=1)


def equal_rows_kernel(groups: Array, dtype: Any) -> Array:
    """1 where two samples agree in all columns of groups (n, d), or (n,), (n, n)."""
    xp = array_namespace(groups)
    groups = groups if groups.ndim == 2 else groups[:, None]
    return xp.astype(xp.all(groups[:, None] == groups, axis=2), dtype)


# Averages over the pairs of a batch


def weights_of(sample_weight: Array | None, like: Array) -> Array:
    """Weights (n,) that sum to 1, of the type of an array (n, m); NaN if one is negative."""
    xp = array_namespace(like)
    if sample_weight is None:
        return xp.full_like(like[:, 0], 1 / len(like))
    weight = xp.astype(sample_weight, like.dtype)
    return weight / xp.sum(xp.where(weight >= 0, weight, math.nan))


def pair_average(terms: Array, weight: Array, estimation: str) -> Array:
    """Σ w_i w_j h_ij over all pairs, or the average over pairs of different samples."""
    xp = array_namespace(terms)
    share = weight[:, None] * weight
    if estimation == "unbiased":
        index = arange_like(weight, len(weight))
        share = xp.where(index[:, None] == index, 0.0, share)
        share = share / xp.sum(share)
    return xp.sum(share * terms)


def gaussian_average(
    points: Array, residual: Array, reach: float, weight: Array, estimation: str
) -> Array:
    """`pair_average` of exp(−(z_i − z_j)²/2) r_i r_j for the columns of z and r (n, P), (P,).

    The kernel is Σ_m φ_m(z_i) φ_m(z_j) with φ_m(z) = e^{−z²/2} z^m/√(m!), so that no pairs are
    held. For |z| ≤ reach, what is left out is the tail of a Poisson distribution of mean reach²,
    below 1e-16. Cost O(n P) times the number of terms.
    """
    xp = array_namespace(points)
    mass = weight[:, None] * residual
    term = xp.exp(-(points**2) / 2) * mass
    total = xp.sum(term, axis=0) ** 2
    for m in range(1, math.ceil(reach**2 + 9 * reach + 12)):
        term = term * points / math.sqrt(m)
        total = total + xp.sum(term, axis=0) ** 2
    if estimation == "biased":
        return total
    return (total - xp.sum(mass**2, axis=0)) / (1 - xp.sum(weight**2))
